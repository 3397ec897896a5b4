"""The rows of the table of reach, by subject."""
