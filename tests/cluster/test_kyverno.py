"""Kyverno's own engine refuses by the policies of a tenant what kaigen refuses of its specs, and nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster.client import Object
from tests.cluster.kyverno import Kyverno
from tests.cluster.plane import Plane
from tests.cluster.processes import wait_until
from tests.cluster.tenants import check_policies, deployer, refusal
from tests.tenancy.objects import pod

pytestmark = pytest.mark.engine

REPLICA_SET: Object = {
    "apiVersion": "apps/v1",
    "kind": "ReplicaSet",
    "metadata": {"name": "x"},
    "spec": {
        "selector": {"matchLabels": {"app": "x"}},
        "template": {"metadata": {"labels": {"app": "x"}}, "spec": pod()["spec"]},
    },
}


@pytest.fixture(scope="module")
def kyverno(plane: Plane) -> Iterator[Kyverno]:
    """Kyverno on the plane."""
    running = Kyverno(plane)
    yield running
    running.close()


@pytest.mark.usefixtures("kyverno")
@pytest.mark.ran("ValidatingPolicy", by="kyverno")
def test_kyverno_refuses_what_kaigen_refuses(plane: Plane, tmp_path: Path) -> None:
    check_policies(plane, tmp_path, "kyverno")


def test_kyverno_skips_replica_sets_by_a_default_of_its_chart(plane: Plane, kyverno: Kyverno, tmp_path: Path) -> None:
    """docs/tenants.md says how to change the default."""
    with deployer(plane, tmp_path, "kyverno") as client:
        assert refusal(client, REPLICA_SET, "kyverno") == "kind"
        kyverno.skip("[ReplicaSet,*,*]", "[ReplicaSet/?*,*,*]")
        wait_until(lambda: not refusal(client, REPLICA_SET, "kyverno"), "Kyverno skips ReplicaSets")
        kyverno.skip()
