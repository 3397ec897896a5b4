"""The reaper on a real API server: what it deletes, what it keeps, and what its role allows."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from tests.cluster.apps import CLAIM, JOB, POD
from tests.cluster.client import Object, is_true
from tests.cluster.plane import Plane
from tests.cluster.privileges import granted, is_refused, used
from tests.cluster.processes import wait_until
from tests.cluster.reaper import ACCOUNT, add_finished_pods, install_access, job, running, volume
from tests.cluster.simulate import pod, pod_spec

TRACKING = {"argocd.argoproj.io/tracking-id": "app:/Pod:x/y"}
FLUX = {"kustomize.toolkit.fluxcd.io/name": "apps"}
BULK = 300


def names(plane: Plane, kind: str, namespace: str) -> set[str]:
    """Names of objects that are not being deleted."""
    return {
        each["metadata"]["name"]
        for each in plane.client.objects(kind, namespace)
        if "deletionTimestamp" not in each["metadata"]
    }


def with_claim(name: str, claim: str) -> Object:
    body = pod(name)
    body["spec"] = pod_spec() | {
        "volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": claim}}],
        "schedulerName": "none",
    }
    return body


@pytest.mark.promise("Ephemeral GPU", "`pvcTTLSecondsAfterFinished`: the PVC is deleted after its TTL")
def test_what_expired_is_deleted_with_exactly_the_role_of_the_chart(
    plane: Plane, namespace: str, tmp_path: Path
) -> None:
    client = plane.client
    roles = install_access(plane, namespace, {})
    for each in (job("now", 3, pod_ttl="0"), job("later", 1, pod_ttl="3600")):
        client.create(each, namespace)
    finished = {
        name: client.wait(JOB, name, namespace, lambda obj: is_true(obj, "Complete"), "complete")
        for name in ("now", "later")
    }
    tracked = next(
        each["metadata"]["name"]
        for each in client.objects(POD, namespace)
        if each["metadata"]["ownerReferences"][0]["name"] == "now"
    )
    client.patch(POD, tracked, namespace, {"metadata": {"annotations": TRACKING}})
    add_finished_pods(plane, namespace, finished["now"], BULK)
    for each in (
        volume("expired", job="now", ttl="0"),
        volume("by-time", expires_at="2026-01-01T00:00:00Z"),
        volume("used", job="now", ttl="0"),
        volume("tracked", job="now", ttl="0"),
        volume("kept", job="later", ttl="3600"),
        volume("waiting", job="unknown", ttl="0"),
    ):
        client.create(each, namespace)
    client.patch(CLAIM, "tracked", namespace, {"metadata": {"labels": FLUX}})
    client.create(with_claim("user", "used"), namespace)
    kept = {each for each in names(plane, POD, namespace) if each.startswith("later-")} | {tracked, "user"}
    mark = plane.audit.mark()

    with running(plane, namespace, tmp_path / "account", "--rate=500", f"--lease={ACCOUNT}") as process:
        wait_until(lambda: names(plane, POD, namespace) == kept, "the expired pods are gone")
        wait_until(
            lambda: names(plane, CLAIM, namespace) == {"used", "tracked", "kept", "waiting"},
            "the expired volumes are gone",
        )
        # Its user ends, and a Job ends while the reaper watches.
        client.delete(POD, "user", namespace)
        client.create(job("watched", 1, pod_ttl="1"), namespace)
        client.wait(JOB, "watched", namespace, lambda obj: is_true(obj, "Complete"), "complete")
        wait_until(lambda: names(plane, CLAIM, namespace) == {"tracked", "kept", "waiting"}, "the last one is gone")
        wait_until(lambda: names(plane, POD, namespace) == kept - {"user"}, "the Job's pod is gone")
        process.send_signal(signal.SIGTERM)
        _, printed = process.communicate(timeout=60)
    assert process.returncode == 0
    assert "warning" not in printed, printed
    assert names(plane, JOB, namespace) == {"now", "later", "watched"}

    user = f"system:serviceaccount:{namespace}:{ACCOUNT}"
    role = {"rules": [rule for each in roles for rule in each["rules"]]}
    # A watch is in the log when its connection has ended.
    wait_until(lambda: used(plane, mark, user, role) == granted(role), "every permission was used", 60)
    deletions = [request for request in plane.audit.requests(mark) if request.user == user and request.verb == "delete"]
    assert len(deletions) >= BULK + 6
    assert all(set(each.body["preconditions"]) == {"uid", "resourceVersion"} for each in deletions)
    noted = client.request("GET", f"/apis/events.k8s.io/v1/namespaces/{namespace}/events").body["items"]
    reasons = {each["reason"]: each["regarding"]["kind"] for each in noted if "reason" in each}
    assert reasons["FinishedPodsDeleted"] == "Job"
    assert reasons["ExpiredVolumeDeleted"] == "PersistentVolumeClaim"

    own = plane.as_service_account(namespace, ACCOUNT)
    assert is_refused(own, "DELETE", own.path(JOB, "now", namespace))
    assert is_refused(own, "GET", own.path(POD, tracked, namespace))
    assert is_refused(own, "DELETE", own.path(POD, namespace=namespace))
    assert is_refused(own, "POST", own.path(POD, namespace=namespace), pod("new"))
    assert is_refused(own, "PATCH", own.path(CLAIM, "kept", namespace), {"metadata": {"labels": {}}})
    assert is_refused(own, "GET", own.path("v1/Secret", namespace=namespace))
    assert is_refused(own, "GET", own.path(POD, namespace="default"))
    assert is_refused(own, "GET", own.path("coordination.k8s.io/v1/Lease", "other", namespace))
