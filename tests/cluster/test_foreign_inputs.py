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
    for system in ("ephemeral", "kaito", "koldun", "substratus")
    for file in [*(ROOT / "examples" / system).rglob("*.yaml"), *(ROOT / "tests/chart/specs").rglob(f"{system}*.yaml")]
    if file.name != "kaigen.yaml"
)

UNDEFINED = {"ConfigMap", "Ingress", "ModelServer", "Token"}
"""Kinds of no system, kinds of later versions of Koldun, and one of Substratus' design: there is no definition."""

LATER: dict[str, list[tuple[str, ...]]] = {
    "gpu": [("spec", "command")],
    "kaito": [
        (*place, "inference", "preset", "presetOptions", name)
        for place in ((), ("spec", "template"))
        for name in ("modelWeightsPVC", "modelWeightsSubPath")
    ],
    "koldun": [
        ("spec", "conversion", "convertWeights"),
        ("spec", "conversion", "dependencies"),
        ("spec", "preConverted"),
        ("spec", "preConvertedPVCName"),
        ("spec", "preConvertedSizeBytes"),
        ("spec", "preConvertedSizeHuman"),
        ("spec", "nats"),
    ],
    "koldun Model": [("spec", "replicaPower")],
    "substratus": [
        ("spec", "container"),
        ("spec", "loader"),
        ("spec", "trainer"),
        ("spec", "quantization"),
        ("spec", "status"),
        ("spec", "baseModel"),
        ("spec", "sourceModel"),
        ("spec", "trainingDataset"),
        ("spec", "build", "git", "commit"),
        ("spec", "dataset", "namespace"),
        ("spec", "filename"),
        ("spec", "model", "namespace"),
        ("spec", "resources", "gpuCount"),
        ("spec", "resources", "type"),
    ],
}
"""Fields that kaigen reads and the definitions do not have, by the beginning of the API group.

An option of egpu, fields of a pull request of KAITO, fields of later versions of Koldun, and for Substratus those
of its design, of releases before 0.10, and the commit of a build.
"""


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


def _delete_other_types(spec: Any, plane: Plane, document: Any, namespace: str) -> None:
    """Delete what has another type in the releases of Substratus: names in place of blocks, and parameters."""
    if isinstance(spec.get("image"), dict):
        with pytest.raises(ApiError, match=r'unknown field "spec\.image\.'):
            plane.client.create(document, namespace, dry_run=True)
        del spec["image"]
    if isinstance(spec.get("model"), str):
        with pytest.raises(ApiError, match=r"spec\.model.*must be of type object"):
            plane.client.create(document, namespace, dry_run=True)
        del spec["model"]
    # The server looks at types when it knows all fields: those of a mapping come first.
    for name, value in sorted(spec.get("params", {}).items(), key=lambda item: not isinstance(item[1], dict)):
        if isinstance(value, bool | float | list | dict):
            with pytest.raises(ApiError, match=rf"spec\.params\.{name}"):
                plane.client.create(document, namespace, dry_run=True)
            del spec["params"][name]


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.relative_to(ROOT).as_posix())
def test_other_systems_definitions_accept_what_kaigen_reads(plane: Plane, namespace: str, file: Path) -> None:
    documents = [item for item in yaml.safe_load_all(file.read_text()) if item["kind"] not in UNDEFINED]
    assert documents
    for document in documents:
        # A mirror is of the whole cluster, all others are of a namespace; which one does not matter here.
        of_cluster = document["kind"] == "ModelMirror"
        document["metadata"].pop("namespace", None)
        system = document["apiVersion"].partition(".")[0]
        for path in (*LATER.get(system, ()), *LATER.get(f"{system} {document['kind']}", ())):
            if _has(document, path):
                with pytest.raises(ApiError, match=f'unknown field "{".".join(path)}"'):
                    plane.client.create(document, namespace, dry_run=True)
                _delete(document, path)
        if document["apiVersion"] == "substratus.ai/v1":
            _delete_other_types(document["spec"], plane, document, namespace)
        if of_cluster:
            plane.client.create(document, dry_run=True)
        else:
            plane.client.create(document, namespace, dry_run=True)
