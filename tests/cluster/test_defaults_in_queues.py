"""No syncer fights what the webhooks of Kueue and KEDA add to what kaigen writes, in a queue with room for all."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from kaigen.kubernetes.manifest import group_of
from kaigen.kubernetes.queues import QUEUE_LABEL, is_queued
from tests.cluster.apps import add_gpu_node
from tests.cluster.argocd import ArgoCD
from tests.cluster.client import Object
from tests.cluster.defaults import check_argocd, check_flux, objects_of, queue_objects
from tests.cluster.flux import Flux
from tests.cluster.group_controllers import GroupControllers
from tests.cluster.plane import Plane
from tests.cluster.test_queues import CLUSTER_QUEUE

pytestmark = pytest.mark.engine

KUEUES = ("kueue", "kueue-0.16")


def is_judged(body: Object) -> bool:
    """Return whether the webhooks of Kueue or KEDA see an object."""
    return is_queued(body) or group_of(body) in ("kueue.x-k8s.io", "keda.sh")


@pytest.fixture(params=KUEUES)
def apps(
    plane: Plane, groups: GroupControllers, namespace: str, request: pytest.FixtureRequest
) -> Iterator[dict[str, list[Object]]]:
    """The objects of the apps for a namespace with their queues, on a plane with all webhooks."""
    add_gpu_node(plane)
    plane.set_pod_security(namespace, "privileged")
    groups.start_leader_worker_set()
    groups.start_job_set()
    groups.start_keda_webhooks()
    groups.start_kueue(request.param)
    found = {app: bodies for app, bodies in objects_of(namespace).items() if any(map(is_judged, bodies))}
    bodies = [body for each in found.values() for body in each]
    queues = {body["metadata"].get("labels", {}).get(QUEUE_LABEL) for body in bodies}
    own = {body["metadata"]["name"] for body in bodies if body["kind"] == "LocalQueue"}
    for each in queue_objects(namespace, sorted(queues - own - {None})):
        plane.client.apply(each)
    yield found
    # Those of the cluster go when the workloads of the namespace are gone.
    plane.client.delete(CLUSTER_QUEUE, namespace)


def check_judged(plane: Plane, apps: dict[str, list[Object]], namespace: str, mark: int) -> None:
    """Check that the apps have all kinds that the webhooks see, and that Kueue is at work in the namespace."""
    kinds = {body["kind"] for bodies in apps.values() for body in bodies if is_judged(body)}
    assert kinds >= {"Job", "JobSet", "ScaledObject", "ClusterQueue", "LocalQueue", "ResourceFlavor", "Topology"}
    made = [each for each in plane.audit.writes_since(mark, namespace=namespace, user="kueue") if each.verb == "create"]
    assert any(each.resource == "workloads" for each in made)


def test_argocd_does_not_fight_the_webhooks_of_queues(
    plane: Plane, argocd: ArgoCD, apps: dict[str, list[Object]], namespace: str, tmp_path: Path
) -> None:
    mark = plane.audit.mark()
    check_argocd(plane, argocd, apps, namespace, tmp_path)
    check_judged(plane, apps, namespace, mark)


def test_flux_does_not_fight_the_webhooks_of_queues(
    plane: Plane, flux: Flux, apps: dict[str, list[Object]], namespace: str
) -> None:
    mark = plane.audit.mark()
    check_flux(plane, flux, apps, namespace)
    check_judged(plane, apps, namespace, mark)
