"""Addresses of the explanations of codes, in the documentation."""

from __future__ import annotations

import os

from kaigen import __version__

_REPOSITORY = "https://github.com/kaigen-dev/kaigen"


def code_url(code: str) -> str:
    """Return the address of the explanation of a code.

    It is in the documentation of this version, or in the site whose address is in `KAIGEN_DOCS_URL`.
    """
    return f"{codes_url()}#{code.lower()}"


def codes_url() -> str:
    """Return the address of the page with all codes."""
    site = os.environ.get("KAIGEN_DOCS_URL", "").rstrip("/")
    return f"{site}/diagnostics.html" if site else f"{_REPOSITORY}/blob/v{__version__}/docs/diagnostics.md"
