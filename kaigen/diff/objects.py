"""Reads the Kubernetes objects of a tree's files, and accesses their fields."""

from __future__ import annotations

from functools import cached_property

from msgspec import Struct
from yaml.error import YAMLError

from kaigen.core.json_types import Json, JsonObject
from kaigen.diff.model import ABSENT, Absent
from kaigen.yaml.compose import Unreadable as NotReadable
from kaigen.yaml.compose import compose_each
from kaigen.yaml.construct import Constructor
from kaigen.yaml.scalars import kubernetes_value

LARGEST = 8 << 20
"""Bytes of a file; all definitions of the Prometheus operator have 4 MiB. Its objects take a hundred times as much."""

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
        documents = _documents(text)
    except UnicodeDecodeError:
        return Unreadable(path, "it is not UTF-8 text")
    except YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f" in line {mark.line + 1}" if mark is not None else ""
        return Unreadable(path, f"it is not valid YAML{where}")
    if isinstance(documents, str):
        return Unreadable(path, documents)
    objects = []
    for item in documents:
        if not isinstance(item, dict) or not isinstance(item.get("kind"), str) or "apiVersion" not in item:
            return Unreadable(path, "it contains something other than Kubernetes objects", foreign=True)
        objects.append(Obj(_without_provenance(item), path))
    return objects


def _documents(text: str) -> list[Json] | str:
    """Return the documents of a file that are not empty, as Kubernetes reads them, or why it cannot be read."""
    constructor = Constructor(text, kubernetes_value)
    found = []
    try:
        for node in compose_each(text):
            found.append(constructor.construct(node))
            for problem in constructor.problems:
                return f"{problem.message} (line {problem.node.start_mark.line + 1})"
    except NotReadable as error:
        line = text.count("\n", 0, error.index) + 1
        return f"{error.problem.message} (line {line})"
    return [item for item in found if item is not None]


def _without_provenance(data: JsonObject) -> JsonObject:
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
