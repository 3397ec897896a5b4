"""No syncer fights what the API server, and the webhooks of LeaderWorkerSet and JobSet, add to what kaigen writes."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cluster.apps import add_gpu_node
from tests.cluster.argocd import ArgoCD
from tests.cluster.client import Object
from tests.cluster.defaults import check_argocd, check_flux, objects_of
from tests.cluster.flux import Flux
from tests.cluster.group_controllers import GroupControllers
from tests.cluster.plane import Plane


@pytest.fixture
def apps(plane: Plane, groups: GroupControllers, namespace: str) -> dict[str, list[Object]]:
    """The objects of the apps for a namespace, on a plane with the webhooks."""
    add_gpu_node(plane)
    plane.set_pod_security(namespace, "privileged")
    groups.start_leader_worker_set()
    groups.start_job_set()
    return objects_of(namespace)


def test_argocd_does_not_fight_defaults(
    plane: Plane, argocd: ArgoCD, apps: dict[str, list[Object]], namespace: str, tmp_path: Path
) -> None:
    check_argocd(plane, argocd, apps, namespace, tmp_path)


def test_flux_does_not_fight_defaults(plane: Plane, flux: Flux, apps: dict[str, list[Object]], namespace: str) -> None:
    check_flux(plane, flux, apps, namespace)
