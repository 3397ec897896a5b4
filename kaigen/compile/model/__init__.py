"""The compiler of the kind `Model`."""
