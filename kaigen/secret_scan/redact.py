"""Redact credentials in text that people read."""

from __future__ import annotations

import re
from functools import lru_cache

from kaigen.secret_scan.detect import looks_like_secret, may_contain_secret

WORD = re.compile(r"[^\s\"'`,;\[\](){}]+")
"""A word that may be a credential."""

_RUN = re.compile(r"[A-Za-z0-9/+_=-]{16,}")
_KEY_BLOCK = re.compile(r"(-----BEGIN [A-Z0-9 ]*PRIVATE KEY[A-Z ]*-----)(.*)", re.DOTALL)


@lru_cache(maxsize=32)
def redact(text: str) -> str:
    """Return the text with the middle of every credential replaced by `…`, one per character, to keep columns."""
    if not may_contain_secret(text):
        return text
    masked = WORD.sub(lambda word: mask(word.group()) if looks_like_secret(word.group()) else word.group(), text)
    if looks_like_secret(masked):
        # Only several words together are a credential: a key block, or a key after its name.
        masked = _KEY_BLOCK.sub(lambda block: block[1] + re.sub(r"\S", "…", block[2]), masked)
        masked = _RUN.sub(lambda run: mask(run.group()), masked)
    return masked


def mask(word: str) -> str:
    """Return a credential with all but its ends replaced by `…`."""
    if len(word) < 3:
        return word
    ends = 3 if len(word) >= 20 else 1
    return word[:ends] + "…" * (len(word) - ends - 1) + word[-1:]
