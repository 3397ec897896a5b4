"""The objects that a tool wrote, and whether they are the ones that were asked for."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import yaml

from benchmarks.workload import Object


class NotTheSame(Exception):
    """A tool wrote other objects than it was given. The text names the first."""


def read_objects(path: Path) -> list[Object]:
    """Every object of the YAML files in a folder, or of one file, in the order of the files' names."""
    files = [path] if path.is_file() else sorted(path.rglob("*.y*ml"))
    return list(_parse(files))


def write_objects(folder: Path, objects: Sequence[Object]) -> list[Path]:
    """Write each object to a file of its own, as YAML in blocks. Returns the files."""
    folder.mkdir(parents=True)
    files = [folder / f"{name}.yaml" for name in names(objects)]
    for path, item in zip(files, objects, strict=True):
        path.write_text(yaml.dump(item, Dumper=yaml.CSafeDumper, sort_keys=False))
    return files


def names(objects: Sequence[Object]) -> list[str]:
    """A name for each object, unlike all others."""
    about = ((item["kind"].lower(), item["metadata"]["name"]) for item in objects)
    return [f"{number:05}-{kind}-{name}" for number, (kind, name) in enumerate(about)]


def require_same(found: Iterable[Object], wanted: Iterable[Object]) -> None:
    """Objects are equal, whatever their order and that of their keys.

    Raises:
        NotTheSame: they are not.
    """
    have = Counter(map(_canonical, found))
    want = Counter(map(_canonical, wanted))
    if have != want:
        missing, extra = want - have, have - want
        raise NotTheSame(
            f"{missing.total()} of {want.total()} objects are missing, such as {next(iter(missing), 'none')}, "
            f"and {extra.total()} others are there, such as {next(iter(extra), 'none')}"
        )


def _parse(files: Iterable[Path]) -> Iterator[Object]:
    for file in files:
        for document in yaml.load_all(file.read_bytes(), Loader=yaml.CSafeLoader):
            # A kustomization tells a tool what to read; it is no object of the cluster.
            if document and document["kind"] != "Kustomization":
                yield document


def _canonical(item: Object) -> str:
    return json.dumps(item, sort_keys=True)
