"""How long the tests of this folder wait."""

PATIENCE = 420.0
"""Seconds that a test waits for what must happen. A pod that starts in seconds takes minutes on a busy machine."""
