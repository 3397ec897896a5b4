"""What kaigen reads as KAITO's is KAITO's: its CustomResourceDefinitions take every example, field by field."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from tests.cluster.plane import Plane

ROOT = Path(__file__).parents[2]
FILES = sorted(
    [*(ROOT / "examples/kaito").glob("*.yaml"), *(ROOT / "tests/chart/specs").rglob("kaito*.yaml")]
)


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.relative_to(ROOT).as_posix())
def test_kaitos_own_definitions_take_what_kaigen_reads(plane: Plane, namespace: str, file: Path) -> None:
    documents = [item for item in yaml.safe_load_all(file.read_text()) if item["kind"] != "ConfigMap"]
    assert documents
    for document in documents:
        # A mirror is of the whole cluster, all others are of a namespace; which one does not matter here.
        of_cluster = document["kind"] == "ModelMirror"
        document["metadata"].pop("namespace", None)
        if of_cluster:
            plane.client.create(document, dry_run=True)
        else:
            plane.client.create(document, namespace, dry_run=True)
