"""Checks of Kubernetes objects against schemas, policies and each other: plain dicts in, problems out."""
