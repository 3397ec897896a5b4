"""The effective spec of an app, and where each field came from."""
