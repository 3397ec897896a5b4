"""The Kubernetes versions whose schemas ship with kaigen."""

from __future__ import annotations

SUPPORTED_VERSIONS = ("1.33", "1.34", "1.35", "1.36", "1.37")
"""Oldest first; `tools/make_schemas.py` makes schemas of these."""

DEFAULT_VERSION = "1.36"
