"""The `git` program: reading trees, and publishing commits."""
