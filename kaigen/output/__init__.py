"""The output tree: what kaigen writes, atomically, and the index of its own files."""
