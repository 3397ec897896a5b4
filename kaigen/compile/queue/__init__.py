"""The compiler of the kind `Queue`."""
