"""Secrets by reference: which of them the apps expect, who makes them, and what is written so that somebody does."""
