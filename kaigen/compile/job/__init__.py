"""The kind `Job`."""
