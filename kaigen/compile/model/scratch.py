"""The disk of the node on which files of buckets are converted: what it must have, and the most that it may take."""

from __future__ import annotations

from msgspec import Struct

from kaigen.catalog.presets import find_preset
from kaigen.compile.builders import settings
from kaigen.compile.context import Context
from kaigen.compile.expressions import Tree
from kaigen.compile.known_model import model_of_preset
from kaigen.config.locked_files import chosen_files
from kaigen.core.json_types import FieldPath
from kaigen.kinds.model import DownloadSpec, ModelSpec
from kaigen.kubernetes.quantities import units
from kaigen.sizing.constants import GIB, room_for
from kaigen.sizing.distributed_llama import converted_bytes


class Scratch(Struct, frozen=True):
    """Sizes of the files on the disk, in bytes; 0 where they are not known.

    Attributes:
        source: downloaded files; 0 where they are not on this disk.
        exact: whether `source` counts every file.
        converted: converted files.
    """

    source: int
    exact: bool
    converted: int

    @property
    def request(self) -> dict[str, Tree]:
        """The request of a container for the disk, which decides the node; empty where a size is not known."""
        total = self.source + self.converted
        return {"ephemeral-storage": room_for(total / GIB)} if total and self.converted else {}


def scratch_of(spec: DownloadSpec, context: Context) -> Scratch:
    """Return what a conversion whose result goes to a bucket needs of the disk."""
    converted = converted_bytes(spec, context.catalog)
    if spec.store.bucket is None:
        return Scratch(0, True, converted)
    size, exact = _source_bytes(spec, context)
    return Scratch(size, exact, converted if size else 0)


def scratch_volumes(spec: DownloadSpec, scratch: Scratch, origin: FieldPath) -> list[Tree]:
    """Return the volumes on the disk.

    A volume that takes more than its limit ends the pod. So the source has a limit only where every file is known: the
    facts of a model are about the weights that an engine loads, and a repository may have others.
    """
    volumes: list[Tree] = []
    if spec.store.bucket is not None:
        size = scratch.source if scratch.exact else 0
        volumes.append(_volume("weights", size, "convert.sourceDisk", "downloaded", origin))
    volumes.append(_volume("converted", scratch.converted, "convert.disk", "converted", origin))
    return volumes


def _volume(name: str, size: int, path: str, what: str, origin: FieldPath) -> Tree:
    if not size:
        return {"name": name, "emptyDir": {}}
    doc = f"Most that the {what} files may take of the node's disk."
    return {"name": name, "emptyDir": {"sizeLimit": settings.quantity(path, room_for(size / GIB), doc, origin=origin)}}


def _source_bytes(spec: DownloadSpec, context: Context) -> tuple[int, bool]:
    """Return the size of the files of a source, and whether it counts every file."""
    hub, s3 = spec.source.hugging_face, spec.source.s3
    locked = context.lock.of(hub) if hub is not None and context.lock is not None else None
    if hub is not None and locked is not None and locked.files:
        return sum(file.size for file in chosen_files(locked, hub).values()), True
    if s3 is not None and s3.revision is not None:
        return int(s3.revision.split(":")[1]), True
    if isinstance(spec, ModelSpec) and spec.facts is not None:
        return int(units(spec.facts.weights) or 0), False
    preset = find_preset(hub.repo, context.catalog) if hub is not None else None
    return (model_of_preset(preset).weights_bytes if preset is not None else 0), False
