"""Read the objects a tool wrote and compare them with its input."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import yaml

from benchmarks.workload import Object


class NotTheSame(Exception):
    """A tool wrote objects that differ from its input. The message shows the first difference."""


def read_objects(path: Path) -> list[Object]:
    """Return every object of one YAML file, or of the YAML files in a folder by file name."""
    files = [path] if path.is_file() else sorted(path.rglob("*.y*ml"))
    return list(_parse(files))


def write_objects(folder: Path, objects: Sequence[Object]) -> list[Path]:
    """Write each object to a YAML file of its own in block style and return the files."""
    folder.mkdir(parents=True)
    files = [folder / f"{name}.yaml" for name in names(objects)]
    for path, item in zip(files, objects, strict=True):
        path.write_text(yaml.dump(item, Dumper=yaml.CSafeDumper, sort_keys=False))
    return files


def names(objects: Sequence[Object]) -> list[str]:
    """Return a unique name for each object."""
    about = ((item["kind"].lower(), item["metadata"]["name"]) for item in objects)
    return [f"{number:05}-{kind}-{name}" for number, (kind, name) in enumerate(about)]


def require_same(actual: Iterable[Object], expected: Iterable[Object]) -> None:
    """Compare objects, ignoring their order and the order of their keys.

    Raises:
        NotTheSame: they differ.
    """
    actual_texts = Counter(map(_canonical, actual))
    expected_texts = Counter(map(_canonical, expected))
    if actual_texts != expected_texts:
        missing, extra = expected_texts - actual_texts, actual_texts - expected_texts
        raise NotTheSame(
            f"{missing.total()} of {expected_texts.total()} objects are missing, such as "
            f"{next(iter(missing), 'none')}, and {extra.total()} are not expected, such as {next(iter(extra), 'none')}"
        )


def _parse(files: Iterable[Path]) -> Iterator[Object]:
    for file in files:
        for document in yaml.load_all(file.read_bytes(), Loader=yaml.CSafeLoader):
            # A kustomization lists files to read; it is not an object of the cluster.
            if document and document["kind"] != "Kustomization":
                yield document


def _canonical(item: Object) -> str:
    return json.dumps(item, sort_keys=True)
