"""`claim`."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fake_cluster import Cluster, Server
from kaigen_reaper.cli import main

CLAIMS = "persistentvolumeclaims"
LABELS = {"app.kubernetes.io/name": "tune", "app.kubernetes.io/instance": "tune", "kaigen.dev/expires": "true"}
VOLUME: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "PersistentVolumeClaim",
    "metadata": {
        "name": "tune-output",
        "labels": LABELS,
        "annotations": {"kaigen.dev/job": "tune-1", "kaigen.dev/ttl": "3600"},
    },
    "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
}
Run = Callable[..., int]


@pytest.fixture(autouse=True)
def account(cluster: Cluster) -> None:
    """Create the ServiceAccount that owns the volume."""
    cluster.put("serviceaccounts", {"metadata": {"name": "tune-claim", "uid": "uid-a"}})


@pytest.fixture
def run(server: Server, tmp_path: Path) -> Run:
    """Run `claim` as a pod of a Job."""

    def call(volume: object = VOLUME, **env: str) -> int:
        own = {"KAIGEN_POLL": "0.05", "KAIGEN_TERMINATION_LOG": str(tmp_path / "termination-log")}
        (tmp_path / "termination-log").touch()
        argv = ["claim", "--owner=tune-claim", f"--volume={json.dumps(volume)}", "--timeout=20"]
        return main(argv, server.env | own | env)

    return call


def claim_of(cluster: Cluster) -> dict[str, Any]:
    found = cluster.get(CLAIMS, "tune-output")
    assert found is not None
    return found


def owners(cluster: Cluster) -> list[tuple[str, str]]:
    return [(each["name"], each["uid"]) for each in claim_of(cluster)["metadata"]["ownerReferences"]]


def test_the_volume_is_created_with_the_service_account_as_owner(
    run: Run, cluster: Cluster, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run() == 0
    assert owners(cluster) == [("tune-claim", "uid-a")]
    assert claim_of(cluster)["spec"] == VOLUME["spec"]
    assert capsys.readouterr().err == (
        "created PersistentVolumeClaim models/tune-output, owned by ServiceAccount tune-claim\n"
    )


def test_a_second_run_changes_nothing(run: Run, cluster: Cluster) -> None:
    run()
    before = claim_of(cluster)["metadata"]["resourceVersion"]
    assert run() == 0
    assert claim_of(cluster)["metadata"]["resourceVersion"] == before


def next_run() -> dict[str, Any]:
    changed: dict[str, Any] = json.loads(json.dumps(VOLUME))
    changed["metadata"]["annotations"] = {"kaigen.dev/job": "tune-2", "kaigen.dev/ttl": "60"}
    return changed


def test_the_next_run_of_the_app_keeps_the_volume_and_starts_its_clock(run: Run, cluster: Cluster) -> None:
    run()
    uid = claim_of(cluster)["metadata"]["uid"]
    assert run(next_run()) == 0
    metadata = claim_of(cluster)["metadata"]
    assert metadata["uid"] == uid
    assert metadata["annotations"] == next_run()["metadata"]["annotations"]


@pytest.mark.parametrize("condition", ["Complete", "Failed"])
def test_no_volume_is_created_for_a_run_that_has_ended(
    run: Run, cluster: Cluster, capsys: pytest.CaptureFixture[str], condition: str
) -> None:
    conditions = [{"type": condition, "status": "True"}]
    cluster.put("jobs", {"metadata": {"name": "tune-1"}}, conditions=conditions)
    assert run() == 0
    assert cluster.names(CLAIMS) == set()
    assert "Job tune-1 has ended" in capsys.readouterr().err


def test_a_volume_is_created_for_a_run_that_goes_on(run: Run, cluster: Cluster) -> None:
    cluster.put("jobs", {"metadata": {"name": "tune-1"}}, conditions=[{"type": "Failed", "status": "False"}])
    assert run() == 0
    assert cluster.names(CLAIMS) == {"tune-output"}


def test_a_change_is_tried_again_after_another_change_in_between(run: Run, cluster: Cluster) -> None:
    run()

    def change(method: str, path: str) -> None:
        if method == "PATCH":
            cluster.before = lambda method, path: None
            cluster.put(CLAIMS, claim_of(cluster))

    cluster.before = change
    assert run(next_run()) == 0
    assert claim_of(cluster)["metadata"]["annotations"]["kaigen.dev/job"] == "tune-2"
    assert [call.status for call in cluster.calls if call.method == "PATCH"] == [409, 200]


def test_a_missing_service_account_is_waited_for(run: Run, cluster: Cluster) -> None:
    cluster.remove("serviceaccounts", "tune-claim")
    threading.Timer(
        0.3, lambda: cluster.put("serviceaccounts", {"metadata": {"name": "tune-claim", "uid": "uid-b"}})
    ).start()
    assert run() == 0
    assert owners(cluster) == [("tune-claim", "uid-b")]


def test_it_waits_for_the_end_of_an_old_volume(run: Run, cluster: Cluster, capsys: pytest.CaptureFixture[str]) -> None:
    run()
    old = claim_of(cluster)
    old["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    threading.Timer(0.4, lambda: cluster.remove(CLAIMS, "tune-output")).start()
    assert run(next_run()) == 0
    assert claim_of(cluster)["metadata"]["uid"] != old["metadata"]["uid"]
    assert "is being deleted; a pod may still mount it" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"labels": {**LABELS, "app.kubernetes.io/instance": "other"}}, "belongs to another app (other)"),
        ({"labels": {**LABELS, "kaigen.dev/expires": "false"}}, "exists and does not expire"),
        (
            {"ownerReferences": [{"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "db", "uid": "x"}]},
            "belongs to StatefulSet db",
        ),
    ],
)
def test_a_volume_of_something_else_is_an_error(
    run: Run, cluster: Cluster, tmp_path: Path, change: dict[str, Any], reason: str
) -> None:
    metadata = {"name": "tune-output", "labels": LABELS} | change
    before = cluster.put(CLAIMS, {"metadata": metadata, "spec": {}})["metadata"]["resourceVersion"]
    assert run() == 10
    message = (tmp_path / "termination-log").read_text()
    assert reason in message
    assert message.endswith("Rename the volume in the spec, or delete that one")
    assert claim_of(cluster)["metadata"]["resourceVersion"] == before


def test_errors_of_the_api_server_are_waited_for(run: Run, server: Server, cluster: Cluster) -> None:
    cluster.statuses = [500, 403, 429, 0, 503]
    server.rotate("token-2", write=False)
    threading.Timer(0.4, lambda: server.rotate("token-2")).start()
    assert run() == 0
    assert owners(cluster) == [("tune-claim", "uid-a")]


def test_an_invalid_volume_fails_at_once(run: Run, cluster: Cluster, tmp_path: Path) -> None:
    cluster.statuses = [0, 0, 0, 422]
    assert run() == 13
    assert "the API server answers 422 to create: not now" in (tmp_path / "termination-log").read_text()


@pytest.mark.parametrize(
    ("volume", "reason"),
    [
        ("text", "must be a PersistentVolumeClaim of v1"),
        ({**VOLUME, "metadata": {"name": "a/b"}}, "not a valid name: 'a/b'"),
        ({**VOLUME, "metadata": {"name": "a"}}, 'the label kaigen.dev/expires must be "true"'),
        ({**VOLUME, "metadata": {**VOLUME["metadata"], "namespace": "x"}}, "must be models"),
    ],
)
def test_invalid_arguments_are_refused(run: Run, cluster: Cluster, tmp_path: Path, volume: object, reason: str) -> None:
    assert run(volume) == 13
    assert reason in (tmp_path / "termination-log").read_text()
    assert not cluster.calls


def test_it_gives_up_after_the_timeout(server: Server, capsys: pytest.CaptureFixture[str]) -> None:
    server.cluster.put(
        CLAIMS, {"metadata": {"name": "tune-output", "labels": LABELS, "deletionTimestamp": "2026-01-01T00:00:00Z"}}
    )
    env = server.env | {"KAIGEN_POLL": "0.1"}
    assert main(["claim", "--owner=tune-claim", f"--volume={json.dumps(VOLUME)}", "--timeout=1"], env) == 20
    assert "error: waited 1s: PersistentVolumeClaim models/tune-output is being deleted" in (capsys.readouterr().err)
