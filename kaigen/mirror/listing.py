"""Transfer lists as text, JSON and YAML."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

from msgspec import to_builtins

from kaigen.mirror.model import TransferList
from kaigen.yaml.dump import dump

HEAD = ("KIND", "SOURCE", "VERSION", "TARGET", "BYTES", "DIGEST")


def rows(found: TransferList) -> Iterator[tuple[str, ...]]:
    """Return the lines of a list, one an item: kind, source, version, target, bytes, and digest or checksum."""
    for image in found.images:
        yield "image", image.source, "", image.target, "", image.digest
    for model in found.models:
        size = "" if model.bytes is None else str(model.bytes)
        yield "model", model.source, model.revision, model.target, size, model.sha256
    for chart in found.charts:
        yield "chart", chart.source, chart.version, chart.source, "", ""


def render_text(lists: Iterable[TransferList]) -> str:
    """Return lists as lines of fields that tabs separate, `-` for an empty one, each line once."""
    lines = dict.fromkeys(row for found in lists for row in rows(found))
    return "".join("\t".join(field or "-" for field in row) + "\n" for row in (HEAD, *lines))


def render_json(lists: Iterable[TransferList]) -> str:
    """Return lists as JSON."""
    return json.dumps(_data(lists), indent=2, ensure_ascii=False) + "\n"


def render_yaml(lists: Iterable[TransferList]) -> str:
    """Return lists as YAML."""
    return dump(_data(lists))


def _data(lists: Iterable[TransferList]) -> list[dict[str, Any]]:
    return [to_builtins(found) for found in lists]
