"""The kind `Model`."""
