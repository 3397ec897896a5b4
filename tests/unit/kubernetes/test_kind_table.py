"""A row of the table of object kinds is all that the packages need to know of a kind beyond its schema."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from kaigen.kubernetes.kind_table import KINDS, find_kind, kind_of
from kaigen.kubernetes.object_kind import SCALABLE, ObjectKind
from kaigen.kubernetes.references import POD_REFERENCES
from kaigen.kubernetes.schemas import index

ROOT = Path(__file__).parents[3]
WITHOUT_SCHEMA = {"ClusterTrainingRuntime.trainer.kubeflow.org", "TCPRoute.gateway.networking.k8s.io"}


def test_one_row_is_enough_for_every_package() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.unit.kubernetes.throwaway_kind"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    known = json.loads(done.stdout)
    assert known.pop("policy")[0] == "metadata.name"
    assert known == {
        "schema": ["unknown field `certificate`"],
        "restart": "a Gadget's pods need restartPolicy Always, not Never",
        "unresolved": ["there is no ConfigMap `missing` in namespace ml"],
        "edges": ["reads external/ConfigMap/ml/missing", "reads external/Secret/ml/stamp"],
        "family": "workload",
        "scaled": ["Gadget.example.com"],
        "rolls": True,
        "immutable": True,
        "granted": True,
        "health": [
            "(has(status.conditions) && status.conditions.exists(c, c.type in ['Shiny'] && c.status == 'True'))"
        ],
        "wave": [3],
        "watched": True,
    }


@pytest.mark.parametrize("row", KINDS.values(), ids=lambda row: row.type)
def test_every_row_is_of_a_kind_with_a_schema(row: ObjectKind) -> None:
    groups = {version.rpartition("/")[0] for version in index()["kinds"].get(row.kind, {})}
    assert (row.group in groups) is (row.type not in WITHOUT_SCHEMA)


def test_every_target_of_a_reference_has_a_row() -> None:
    fields = [field for row in KINDS.values() for field in row.references or ()]
    targets = {target for field in (*fields, *POD_REFERENCES) for target in field.targets}
    assert targets - {SCALABLE} <= set(KINDS)


def test_a_kind_is_found_in_any_version_of_its_group() -> None:
    assert find_kind("batch/v1", "Job") is find_kind("batch/v2alpha1", "Job")
    assert find_kind("example.com/v1", "Job").lifecycle == ""
    assert kind_of({"apiVersion": 3, "kind": ["Job"]}).type == ""


@pytest.mark.parametrize(
    ("kind", "name", "known"),
    [
        ("ClusterRole", "view", True),
        ("ClusterRole", "system:node", True),
        ("ClusterRole", "views", False),
        ("ConfigMap", "kube-root-ca.crt", True),
        ("ServiceAccount", "default", True),
        ("Secret", "default", False),
    ],
)
def test_objects_that_every_cluster_has_are_known(kind: str, name: str, known: bool) -> None:
    row = next(row for row in KINDS.values() if row.kind == kind)
    assert row.has_built_in(name) is known
