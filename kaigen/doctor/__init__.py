"""Checks whether a cluster is ready for kaigen's apps, and how to make it so."""
