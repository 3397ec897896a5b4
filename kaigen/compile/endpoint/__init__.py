"""The compiler of the kind `Endpoint`."""
