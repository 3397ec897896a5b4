"""The compiler of the kind `Notebook`."""
