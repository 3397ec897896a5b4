"""Read the tables of the catalogue, once per process."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any


@cache
def load_table(name: str) -> dict[str, Any]:
    """Return the content of `kaigen/catalog/NAME.json`; callers must not change it."""
    data: dict[str, Any] = json.loads((Path(__file__).parent / f"{name}.json").read_bytes())
    return data
