"""What the lock records of weights, whatever server has them: config.json and the headers of safetensors files."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from msgspec import Struct

_CONNECTIONS = 8
_LARGEST_CONFIG = 8 << 20
_LARGEST_HEADER = 100_000_000
"""Bytes of a header (source: the safetensors library refuses larger ones)."""
_FIRST = 64 << 10
"""Bytes of the first request: the headers of most files are smaller."""

Read = Callable[[str, int, int], bytes]
"""Returns the bytes of a file from a start to an end; fewer at the end of the file."""

S = TypeVar("S")
T = TypeVar("T")


class Shapes(Struct, frozen=True):
    """Tensors of safetensors files.

    Attributes:
        parameters: number of parameters by dtype.
        bytes: size of the tensors.
    """

    parameters: dict[str, int]
    bytes: int

    @classmethod
    def of(cls, found: Iterable[Shapes]) -> Shapes:
        """Return the sum."""
        parameters: dict[str, int] = {}
        size = 0
        for each in found:
            size += each.bytes
            for dtype, count in each.parameters.items():
                parameters[dtype] = parameters.get(dtype, 0) + count
        return cls(parameters, size)


class Facts(Struct, frozen=True):
    """What an engine is planned from.

    Attributes:
        config: content of config.json; empty without one.
        shapes: the tensors that an engine loads.
    """

    config: Mapping[str, Any]
    shapes: Shapes

    def fields(self) -> dict[str, Any]:
        """Return the fields of an entry of the lock."""
        return {
            "architecture": architecture_of(self.config),
            "parameters": self.shapes.parameters,
            "weights": self.shapes.bytes,
            "config": self.config,
        }


def read_facts(paths: Iterable[str], read: Read) -> Facts:
    """Return the facts of a model from ranges of its files.

    Args:
        paths: its files.
        read: returns a range of a file.

    Raises:
        ValueError: config.json or a header is damaged.
    """
    known = list(paths)
    content = read("config.json", 0, _LARGEST_CONFIG) if "config.json" in known else None
    shapes = all_at_once(lambda path: _header(path, read), weight_files(known))
    return Facts(parse_config(content), Shapes.of(shapes))


def _header(path: str, read: Read) -> Shapes:
    """Return the tensors of a safetensors file (source: its format: 8 bytes with the length, then JSON)."""
    start = read(path, 0, _FIRST)
    end = 8 + int.from_bytes(start[:8], "little")
    if len(start) < 8 or end > _LARGEST_HEADER:
        raise ValueError(f"{path} is not a safetensors file")
    header = json.loads(start[8:end] if end <= len(start) else start[8:] + read(path, len(start), end))
    parameters: dict[str, int] = {}
    size = 0
    for name, tensor in header.items():
        if name == "__metadata__":
            continue
        dtype, (first, last) = str(tensor["dtype"]), tensor["data_offsets"]
        parameters[dtype] = parameters.get(dtype, 0) + math.prod(int(each) for each in tensor["shape"])
        size += int(last) - int(first)
    if size < 0 or min(parameters.values(), default=0) < 0:
        raise ValueError(f"{path} has a tensor without a size")
    return Shapes(dict(sorted(parameters.items())), size)


def all_at_once(work: Callable[[S], T], items: Sequence[S]) -> list[T]:
    """Return `[work(item) for item in items]`, computed at the same time."""
    with ThreadPoolExecutor(_CONNECTIONS) as pool:
        return list(pool.map(work, items))


def weight_files(paths: Iterable[str]) -> list[str]:
    """Return the files that engines load: those with safetensors at the top, without a second copy of them."""
    tensors = sorted(path for path in paths if path.endswith(".safetensors") and "/" not in path)
    own = [path for path in tensors if not path.startswith("consolidated")]
    return own or tensors


def parse_config(content: bytes | None) -> dict[str, Any]:
    """Return the content of config.json, with null in place of numbers that JSON does not have."""
    found = json.loads(content, parse_constant=lambda _: None) if content is not None else {}
    if not isinstance(found, dict):
        raise ValueError("config.json is not a mapping")
    return {key: _finite(value) for key, value in found.items()}


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def architecture_of(config: Mapping[str, Any]) -> str:
    """Return the first class name in config.json; empty if unknown."""
    names = config.get("architectures")
    return str(names[0]) if isinstance(names, list) and names else ""
