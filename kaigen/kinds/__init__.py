"""The kinds a person writes: pydantic models, the one source of validation, schemas and reference docs."""
