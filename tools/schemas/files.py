"""The form of the data files: compact JSON, a line for each definition, always the same bytes."""

from __future__ import annotations

import hashlib
import json
from typing import Any

Schema = dict[str, Any]
Node = str | dict[str, Any]
Files = dict[str, bytes]

# How a string or an integer of a format is written in a node.
STRING_FORMATS = {None: "s", "byte": "byte", "date-time": "time"}
INTEGER_FORMATS = {None: "i", "int64": "i", "int32": "i32"}


def sha256(content: bytes) -> str:
    """Hex digest."""
    return hashlib.sha256(content).hexdigest()


def dump(value: object) -> str:
    """Compact JSON with sorted keys."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"))


def dump_shard(source: str, definitions: dict[str, Any]) -> bytes:
    """A shard as JSON with a line for each definition, so that a change shows where it is."""
    lines = ",\n".join(f"{dump(name)}:{dump(node)}" for name, node in sorted(definitions.items()))
    return f'{{"source":{dump(source)},"defs":{{\n{lines}\n}}}}\n'.encode()


def dump_index(index: Schema) -> bytes:
    """The index as JSON with a line for each kind."""
    lines = ",\n".join(f"{dump(kind)}:{dump(entry)}" for kind, entry in sorted(index["kinds"].items()))
    return f'{{"targets":{dump(index["targets"])},"kinds":{{\n{lines}\n}}}}\n'.encode()
