"""Other systems' own CustomResourceDefinitions accept the examples that kaigen reads, field by field."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.cluster.client import ApiError
from tests.cluster.plane import Plane

ROOT = Path(__file__).parents[2]
FILES = sorted(
    file
    for system in ("ephemeral", "kaito", "koldun")
    for file in [
        *(ROOT / "examples" / system).glob("*.yaml"),
        *(ROOT / "tests/chart/specs").rglob(f"{system}*.yaml"),
    ]
)

UNDEFINED = {"ConfigMap", "Ingress"}
"""Kinds of no system, and a kind of later versions of Koldun, of which there is no definition."""

LATER = (
    ("spec", "command"),
    ("spec", "conversion", "convertWeights"),
    ("spec", "conversion", "dependencies"),
    ("spec", "preConverted"),
    ("spec", "preConvertedPVCName"),
    ("spec", "preConvertedSizeBytes"),
    ("spec", "preConvertedSizeHuman"),
)
"""Fields that kaigen reads and the definitions do not have."""


def _has(document: Any, path: tuple[str, ...]) -> bool:
    for name in path:
        if not isinstance(document, dict) or name not in document:
            return False
        document = document[name]
    return True


def _delete(document: Any, path: tuple[str, ...]) -> None:
    for name in path[:-1]:
        document = document[name]
    del document[path[-1]]


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.relative_to(ROOT).as_posix())
def test_other_systems_definitions_accept_what_kaigen_reads(plane: Plane, namespace: str, file: Path) -> None:
    documents = [item for item in yaml.safe_load_all(file.read_text()) if item["kind"] not in UNDEFINED]
    assert documents
    for document in documents:
        # A mirror is of the whole cluster, all others are of a namespace; which one does not matter here.
        of_cluster = document["kind"] == "ModelMirror"
        document["metadata"].pop("namespace", None)
        for path in LATER:
            if _has(document, path):
                # An option of egpu, or a field of later versions: the definition does not have it.
                with pytest.raises(ApiError, match=f'unknown field "{".".join(path)}"'):
                    plane.client.create(document, namespace, dry_run=True)
                _delete(document, path)
        if of_cluster:
            plane.client.create(document, dry_run=True)
        else:
            plane.client.create(document, namespace, dry_run=True)
