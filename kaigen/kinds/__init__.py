"""The kinds a person writes: typed models, the one source of validation, schemas and reference docs."""
