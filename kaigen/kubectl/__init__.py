"""The `kubectl` command."""
