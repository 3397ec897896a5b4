"""The compiler of the kind `Alias`."""
