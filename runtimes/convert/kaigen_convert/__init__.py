"""Converts weights of the Hugging Face Hub for distributed-llama."""

__version__ = "0.2.0"

VERSION = "1"
"""Version of the output: a change of the bytes that are written changes it, and with it the identity of the result."""
