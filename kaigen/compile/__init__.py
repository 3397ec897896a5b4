"""Kinds to apps: one module a kind, built from the bricks they share."""
