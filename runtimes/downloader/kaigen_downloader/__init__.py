"""Downloads a model snapshot to a volume or bucket, verifies it, and writes a completion marker."""

__version__ = "0.2.0"
