"""The valid objects under `examples/`, written by kaigen and by others."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

from tests import plain_yaml

FOLDER = Path(__file__).parent / "examples"

Object = dict[str, Any]


@cache
def _read(name: str) -> list[str]:
    # As JSON, which resolves YAML aliases to separate copies.
    return [json.dumps(doc) for doc in plain_yaml.load_all((FOLDER / name).read_text())]


def objects(*names: str) -> list[Object]:
    """All objects of some files, or of all; the caller may change them."""
    found = names or tuple(sorted(path.name for path in FOLDER.glob("*.yaml")))
    return [json.loads(obj) for name in found for obj in _read(name)]


@cache
def _by_kind() -> dict[str, str]:
    return {obj["kind"]: json.dumps(obj) for obj in objects()}


def example(kind: str) -> Object:
    """The example of a kind; the caller may change it."""
    found: Object = json.loads(_by_kind()[kind])
    return found


def label(obj: Object) -> str:
    """What a test is called after an object."""
    return f"{obj['apiVersion']}/{obj['kind']}".replace("/", "-")
