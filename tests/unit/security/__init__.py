"""Attacks from the security review: each test carries one out."""
