"""JSON with the same bytes for the same content."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any


def encode(data: Mapping[str, Any]) -> bytes:
    """Return JSON whose bytes depend only on the content."""
    return json.dumps(data, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()
