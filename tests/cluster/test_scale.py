"""What the benchmark `benchmarks/cluster.py` measures of hundreds of apps, of a few: a second sync writes nothing."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks.cluster import Result, measure_argocd, measure_flux
from tests.cluster.apps import add_gpu_node
from tests.cluster.argocd import APPLICATION, ArgoCD
from tests.cluster.flux import GIT_REPOSITORY, KUSTOMIZATION, Flux
from tests.cluster.patience import PATIENCE
from tests.cluster.plane import Plane

pytestmark = pytest.mark.engine

APPS = 12


@pytest.fixture
def space(plane: Plane) -> Iterator[str]:
    """The name of a namespace that the sync makes; it and what is synced go at the end."""
    add_gpu_node(plane)
    name = f"scale-{uuid.uuid4().hex[:6]}"
    yield name
    for kind, home in ((APPLICATION, "argocd"), (KUSTOMIZATION, "flux-system"), (GIT_REPOSITORY, "flux-system")):
        found = [each["metadata"]["name"] for each in plane.client.objects(kind, home, f"bench={name}")]
        for each in sorted(found, key=lambda each: "." in each):
            plane.client.delete(kind, each, home)
        for each in found:
            plane.client.wait_gone(kind, each, home)
    plane.client.delete("v1/Namespace", name)


def check(result: Result) -> None:
    assert result.kept["Job"] == result.kept["Pod"] == APPS, "each ran once"
    assert result.second.objects == 0
    # Nothing is applied again and again until it fits.
    rendered = sum(count for kind, count in result.kept.items() if kind != "Pod")
    assert result.first.objects <= 1.5 * rendered


def test_argocd_syncs_many_apps_and_a_second_time_writes_nothing(
    plane: Plane, argocd: ArgoCD, space: str, tmp_path: Path
) -> None:
    check(measure_argocd(plane, argocd, tmp_path, APPS, space, PATIENCE))


def test_flux_syncs_many_apps_and_a_second_time_writes_nothing(
    plane: Plane, flux: Flux, space: str, tmp_path: Path
) -> None:
    check(measure_flux(plane, flux, tmp_path, APPS, space, PATIENCE))
