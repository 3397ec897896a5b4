"""What serves: it waits for its weights, and a scaler's number and Git's spec do not disturb each other."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cluster.apps import POD, compiled, demo_specs, find
from tests.cluster.client import Object
from tests.cluster.plane import Plane
from tests.cluster.processes import wait_until
from tests.cluster.simulate import Course, release, set_course
from tests.cluster.syncers import make_syncer

DEPLOYMENT = "apps/v1/Deployment"
SCALED = "keda.sh/v1alpha1/ScaledObject"
SLICE = "discovery.k8s.io/v1/EndpointSlice"
BUDGET = "policy/v1/PodDisruptionBudget"
KINDS = (BUDGET, DEPLOYMENT, SCALED)
CHAT = "app.kubernetes.io/name=chat"


def topology(**spec: object) -> Object:
    """A small server, which needs no GPU."""
    whole = {"engine": "transformers", "model": {"folder": "/weights"}, **spec}
    return {"apiVersion": "kaigen.dev/v1alpha1", "kind": "Topology", "metadata": {"name": "chat"}, "spec": whole}


def ready_endpoints(plane: Plane, namespace: str) -> int:
    """Addresses to which the Service leads."""
    slices = plane.client.objects(SLICE, namespace, "kubernetes.io/service-name=chat")
    endpoints = [endpoint for each in slices for endpoint in each.get("endpoints") or []]
    return sum(bool(endpoint["conditions"].get("ready")) for endpoint in endpoints)


def live_pods(plane: Plane, namespace: str) -> list[Object]:
    return [pod for pod in plane.client.objects(POD, namespace, CHAT) if "deletionTimestamp" not in pod["metadata"]]


def is_held(pod: Object) -> bool:
    """Whether a pod is in its init container."""
    statuses = pod["status"].get("initContainerStatuses", [])
    return any("running" in status["state"] for status in statuses)


def test_requests_come_only_when_the_weights_are_there(plane: Plane, namespace: str, tmp_path: Path) -> None:
    specs = [demo_specs()["qwen"], topology(model="qwen")]
    apps = compiled(tmp_path / "specs", specs, namespace)
    starts = "object.metadata.?generateName.orValue('').startsWith('chat-')"
    set_course(plane.client, namespace, Course(hold_init="wait-for-model"), starts)
    for name in ("chat", "qwen"):  # what serves first: the order of files is not an order of work
        for rendered in apps[name].objects:
            plane.client.apply(rendered.body)
    wait_until(lambda: any(map(is_held, live_pods(plane, namespace))), "the pod waits", 60)
    assert ready_endpoints(plane, namespace) == 0
    # One pod of one may be away in a rollout, so the condition `Available` says nothing; the count does.
    assert "availableReplicas" not in plane.client.get(DEPLOYMENT, "chat", namespace)["status"]
    # It waits for the very files that the Model fetches.
    gate = find(apps["chat"], "Deployment")["spec"]["template"]["spec"]["initContainers"][0]
    fetch = find(apps["qwen"], "Job")["spec"]["template"]["spec"]["containers"][0]
    (identity,) = [argument for argument in gate["args"] if argument.startswith("--identity=")]
    assert identity in fetch["args"]
    release(plane.client, namespace, CHAT)
    wait_until(lambda: ready_endpoints(plane, namespace) == 1, "the Service leads to the pod", 60)


def scale(plane: Plane, namespace: str, replicas: int) -> None:
    """What KEDA and its autoscaler do."""
    plane.client.patch(DEPLOYMENT, "chat", namespace, {"spec": {"replicas": replicas}}, subresource="scale")
    wait_until(lambda: len(live_pods(plane, namespace)) == replicas, f"{replicas} pods", 60)


def generations(plane: Plane, namespace: str) -> dict[str, int]:
    """How often the specs of the app's objects have changed."""
    return {kind: plane.client.get(kind, "chat", namespace)["metadata"].get("generation", 0) for kind in KINDS}


def arguments(pod: Object) -> list[str]:
    found: list[str] = pod["spec"]["containers"][0]["args"]
    return found


def has_begun_scaling(plane: Plane, namespace: str) -> bool:
    """Answer for KEDA, which is not there, that the ScaledObject is well."""
    if plane.client.find(SCALED, "chat", namespace) is None:
        return False
    well = {"status": {"conditions": [{"type": "Ready", "status": "True"}]}}
    plane.client.patch(SCALED, "chat", namespace, well, subresource="status")
    return True


@pytest.mark.parametrize("way", ["argocd", "flux"])
def test_syncs_leave_the_scalers_number_alone_and_rollouts_keep_it(
    plane: Plane, namespace: str, tmp_path: Path, request: pytest.FixtureRequest, way: str
) -> None:
    syncer = make_syncer(request, way, plane, namespace, tmp_path)
    scaled = {
        "min": 0,
        "max": 3,
        "query": "sum(rate(requests_total[1m]))",
        "target": 5,
        "prometheus": {"address": "http://prometheus:9090"},
    }
    apps = compiled(tmp_path / "specs", [topology(autoscale=scaled)], namespace)
    revision = syncer.begin(apps)
    wait_until(lambda: has_begun_scaling(plane, namespace), "there is a ScaledObject", 60)
    syncer.wait("chat", revision)

    # Idle: the scaler takes the last pod away, and no sync brings it back.
    scale(plane, namespace, 0)
    mark = plane.audit.mark()
    syncer.let_pass(apps, 5)
    assert syncer.writes(mark) == []
    assert plane.client.get(DEPLOYMENT, "chat", namespace)["spec"]["replicas"] == 0

    # A change of the spec while nothing runs: only the Deployment is written, and still nothing runs.
    before = generations(plane, namespace)
    syncer.publish(compiled(tmp_path / "specs", [topology(autoscale=scaled, contextLength=4096)], namespace))
    after = generations(plane, namespace)
    assert {kind for kind in KINDS if after[kind] != before[kind]} == {DEPLOYMENT}
    assert live_pods(plane, namespace) == []

    # Demand: the scaler's pods run what Git says now, and as many as the scaler says.
    scale(plane, namespace, 2)
    assert all("--max-model-len=4096" in arguments(pod) for pod in live_pods(plane, namespace))
    wait_until(lambda: ready_endpoints(plane, namespace) == 2, "both are ready", 60)
    mark = plane.audit.mark()
    syncer.let_pass(apps, 5)
    assert syncer.writes(mark) == []

    # A rollout of what runs ends with as many pods as before.
    syncer.publish(compiled(tmp_path / "specs", [topology(autoscale=scaled, contextLength=2048)], namespace))
    wait_until(
        lambda: ["--max-model-len=2048" in arguments(pod) for pod in live_pods(plane, namespace)] == [True] * 2,
        "both pods are new",
        60,
    )
    assert plane.client.get(DEPLOYMENT, "chat", namespace)["spec"]["replicas"] == 2
    syncer.remove("chat")
    assert live_pods(plane, namespace) == []
