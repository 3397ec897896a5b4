"""Folders as build contexts: packed the same way on every machine, and pushed to a registry."""
