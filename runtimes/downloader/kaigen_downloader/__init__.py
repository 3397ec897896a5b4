"""Brings a model snapshot onto a volume or into a bucket, proves it complete, and says so with a marker file."""

__version__ = "0.1.0"
