"""Read the YAML files of the catalogue, once per process."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import yaml


@cache
def load(name: str) -> dict[str, Any]:
    """Return the content of `kaigen/catalog/NAME.yaml`; callers must not change it."""
    text = (Path(__file__).parent / f"{name}.yaml").read_text(encoding="utf-8")
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    data: dict[str, Any] = yaml.load(text, Loader=loader)
    return data
