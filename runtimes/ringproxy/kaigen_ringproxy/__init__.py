"""Checks requests before distributed-llama reads them, and waits for the workers of a ring."""

__version__ = "0.2.0"
