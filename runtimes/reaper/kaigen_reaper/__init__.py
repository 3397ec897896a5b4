"""Deletes the finished pods and the expired volumes of kaigen's Jobs, and creates volumes that expire."""

__version__ = "0.2.0"
