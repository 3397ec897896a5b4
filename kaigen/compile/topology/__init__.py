"""The compiler of the kind `Topology`."""
