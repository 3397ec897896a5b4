"""Promotion of versions from one environment to the next."""
