"""The format of the data files: compact JSON, one line per definition, always the same bytes."""

from __future__ import annotations

import hashlib
import json
from typing import Any

Schema = dict[str, Any]
Node = str | dict[str, Any]
Files = dict[str, bytes]

# The node of a string or an integer by its format.
STRING_FORMATS = {None: "s", "byte": "byte", "date-time": "time"}
INTEGER_FORMATS = {None: "i", "int64": "i", "int32": "i32"}


def sha256(content: bytes) -> str:
    """Return the SHA-256 of the content in hex."""
    return hashlib.sha256(content).hexdigest()


def dump(value: object) -> str:
    """Return compact JSON with sorted keys."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"))


def dump_shard(source: str, definitions: dict[str, Any]) -> bytes:
    """Return a shard as JSON with one line per definition, so that a diff shows the changed definition."""
    lines = ",\n".join(f"{dump(name)}:{dump(node)}" for name, node in sorted(definitions.items()))
    return f'{{"source":{dump(source)},"defs":{{\n{lines}\n}}}}\n'.encode()


def dump_index(index: Schema) -> bytes:
    """Return the index as JSON with one line per kind."""
    lines = ",\n".join(f"{dump(kind)}:{dump(entry)}" for kind, entry in sorted(index["kinds"].items()))
    return f'{{"targets":{dump(index["targets"])},"kinds":{{\n{lines}\n}}}}\n'.encode()
