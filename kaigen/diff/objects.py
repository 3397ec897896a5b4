"""Reads the Kubernetes objects of a tree's files, and accesses their fields."""

from __future__ import annotations

import re
from functools import cached_property
from typing import Any, cast

import yaml
from msgspec import Struct

from kaigen.core.json_types import Json, JsonObject
from kaigen.diff.model import ABSENT, Absent

MAX_NODES = 200_000
"""The most values in one file with its aliases expanded; a large CRD has 20,000."""

MAX_DEPTH = 100
"""The maximum nesting depth of one file; a large CRD has 40 levels."""

LARGEST = 8 << 20
"""Bytes of a file; all definitions of the Prometheus operator have 4 MiB. Its objects take a hundred times as much."""

_DASHES = re.compile(rb"(?:[-?][ \t]++){10}")

PROVENANCE = ("kaigen.dev/source", "kaigen.dev/generated", "kaigen.dev/rendered", "kaigen.dev/version")
"""Prefixes of annotations that record where an object came from and have no effect in the cluster."""


def get(item: Json | Absent, *keys: str) -> Json | Absent:
    """Return the value at these keys; `ABSENT` when any of them is missing or null."""
    for key in keys:
        if not isinstance(item, dict):
            return ABSENT
        item = item.get(key, ABSENT)
    return ABSENT if item is None else item


def get_map(item: Json | Absent, *keys: str) -> JsonObject:
    """Return the map at these keys; empty when there is none."""
    found = get(item, *keys)
    return found if isinstance(found, dict) else {}


def get_list(item: Json | Absent, *keys: str) -> list[Json]:
    """Return the list at these keys; empty when there is none."""
    found = get(item, *keys)
    return found if isinstance(found, list) else []


def get_text(item: Json | Absent, *keys: str) -> str:
    """Return the scalar at these keys as text; empty when there is none."""
    found = get(item, *keys)
    return str(found) if isinstance(found, (str, int, float)) and not isinstance(found, bool) else ""


class Obj(Struct, frozen=True, dict=True):
    """One Kubernetes object of a file, without its provenance annotations.

    Attributes:
        data: the object.
        path: the file that it is in.
    """

    data: JsonObject
    path: str

    @cached_property
    def kind(self) -> str:
        """Its kind."""
        return get_text(self.data, "kind")

    @cached_property
    def api_version(self) -> str:
        """Its API version."""
        return get_text(self.data, "apiVersion")

    @cached_property
    def type(self) -> str:
        """Its kind and group: `Service`, `Job.batch`."""
        group, slash, _ = self.api_version.partition("/")
        return f"{self.kind}.{group}" if slash else self.kind

    @cached_property
    def name(self) -> str:
        """Its name, or the prefix that the API server completes."""
        return get_text(self.data, "metadata", "name") or get_text(self.data, "metadata", "generateName")

    @cached_property
    def namespace(self) -> str:
        """Its namespace; empty when it has none."""
        return get_text(self.data, "metadata", "namespace")

    @cached_property
    def annotations(self) -> JsonObject:
        """Its annotations."""
        return get_map(self.data, "metadata", "annotations")

    @cached_property
    def labels(self) -> JsonObject:
        """Its labels."""
        return get_map(self.data, "metadata", "labels")

    def __str__(self) -> str:
        return f"{self.kind} {self.name}"


class Unreadable(Struct, frozen=True):
    """A file without objects to compare.

    Attributes:
        path: the file.
        reason: why, in a few words.
        foreign: whether it is well-formed but contains no Kubernetes object.
    """

    path: str
    reason: str
    foreign: bool = False


def strip_header(data: bytes) -> bytes:
    """Return the file without its leading comment lines."""
    start = 0
    while data.startswith((b"#", b"\n", b"\r\n"), start):
        end = data.find(b"\n", start)
        if end < 0:
            return b""
        start = end + 1
    return data[start:]


def read_objects(path: str, data: bytes) -> list[Obj] | Unreadable:
    """Return the objects of one YAML or JSON file.

    Never raises: a file of another commit may contain anything, and the other files are still worth comparing.
    """
    if len(data) > LARGEST:
        return Unreadable(path, f"it has more than {LARGEST >> 20} MiB")
    try:
        text = data.decode("utf-8-sig")
        if _may_be_deep(data) and _depth(text) > MAX_DEPTH:
            return Unreadable(path, "it is nested too deeply")
        documents = [item for item in yaml.load_all(text, _loader()) if item is not None]
        if b"&" in data and not _fits(documents):
            return Unreadable(path, "its aliases expand to too much data")
    except UnicodeDecodeError:
        return Unreadable(path, "it is not UTF-8 text")
    except (yaml.YAMLError, ValueError, TypeError) as error:
        mark = getattr(error, "problem_mark", None)
        where = f" in line {mark.line + 1}" if mark is not None else ""
        return Unreadable(path, f"it is not valid YAML{where}")
    objects = []
    for item in documents:
        if not isinstance(item, dict) or not isinstance(item.get("kind"), str) or "apiVersion" not in item:
            return Unreadable(path, "it contains something other than Kubernetes objects", foreign=True)
        objects.append(Obj(_without_provenance(item), path))
    return objects


def _loader() -> Any:
    """Return a safe loader, the fast one if available, that keeps dates as text, as in JSON."""
    global _LOADER
    if _LOADER is None:
        base: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
        resolvers = {
            first: [(tag, pattern) for tag, pattern in known if tag != "tag:yaml.org,2002:timestamp"]
            for first, known in base.yaml_implicit_resolvers.items()
        }
        _LOADER = type("TreeLoader", (base,), {"yaml_implicit_resolvers": resolvers})
    return _LOADER


_LOADER: Any = None


def _may_be_deep(data: bytes) -> bool:
    """Return whether a file can be deeply nested: many brackets, deep indentation, or many dashes in a row."""
    return data.count(b"[") + data.count(b"{") > 50 or b" " * 40 in data or _DASHES.search(data) is not None


def _depth(text: str) -> int:
    """Return the nesting depth of a text, at most one more than the limit.

    Read from the parser's events, because libyaml's composer and ours recurse, and the former has no guard.
    """
    depth = deepest = 0
    for event in yaml.parse(text, _loader()):
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
            deepest = max(deepest, depth)
            if depth > MAX_DEPTH:
                break
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
    return deepest


def _fits(documents: list[object]) -> bool:
    """Return whether the documents are within the limits of size and depth with all aliases expanded."""
    known: dict[int, tuple[int, int]] = {}
    too_much = (MAX_NODES + 1, MAX_DEPTH + 1)

    def measure(item: object) -> tuple[int, int]:
        if not isinstance(item, (dict, list)):
            return 1, 0
        if id(item) not in known:
            # An element that contains itself meets this before it is measured.
            known[id(item)] = too_much
            inner = [measure(child) for child in (item.values() if isinstance(item, dict) else item)]
            size = 1 + sum(size for size, _ in inner)
            known[id(item)] = size, 1 + max((depth for _, depth in inner), default=0)
        return known[id(item)]

    size, depth = measure(documents)
    return size <= MAX_NODES and depth <= MAX_DEPTH + 1


def _without_provenance(item: dict[str, object]) -> JsonObject:
    data = cast(JsonObject, item)
    metadata = data.get("metadata")
    if not isinstance(metadata, dict):
        return data
    annotations = metadata.get("annotations")
    if not isinstance(annotations, dict):
        return data
    kept = {key: text for key, text in annotations.items() if not str(key).startswith(PROVENANCE)}
    if len(kept) == len(annotations):
        return data
    rest = {key: text for key, text in metadata.items() if key != "annotations"}
    return {**data, "metadata": {**rest, "annotations": kept} if kept else rest}
