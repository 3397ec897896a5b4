"""A small OpenAI-compatible server for CPU, CI and small models."""

__version__ = "0.2.0"
