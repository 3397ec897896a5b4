"""`run`: the process that watches, as a Deployment runs it."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from fake_cluster import Cluster, Server
from objects import CLAIMS, add_job, add_pod, add_volume, rfc3339

PACKAGE = Path(__file__).parents[1]
LEASE = "kaigen-reaper"


def until(check: Callable[[], object], what: str) -> None:
    """Wait until something is true."""
    end = time.monotonic() + 30
    while not check():
        assert time.monotonic() < end, what
        time.sleep(0.02)


class Process:
    """A running reaper.

    Attributes:
        lines: what it printed so far.
    """

    def __init__(self, server: Server, log: Path, *arguments: str) -> None:
        self._log = log
        with log.open("w") as file:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "kaigen_reaper", "run", "--rate=1000", "--port=0", *arguments],
                cwd=PACKAGE,
                env={**os.environ, **server.env, "KAIGEN_RETRY": "0.3", "KAIGEN_RECHECK": "0.3"},
                stderr=file,
            )

    @property
    def printed(self) -> str:
        """What it printed so far."""
        return self._log.read_text()

    def get(self, path: str) -> tuple[int, str]:
        """Return status and text of its own HTTP server."""
        until(lambda: "on port" in self.printed, "it listens")
        found = re.search(r"on port (\d+)", self.printed)
        assert found is not None
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{found[1]}{path}", timeout=10) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read().decode()

    def is_ready(self) -> bool:
        """Return whether it reports that it is ready."""
        return self.get("/readyz")[0] == 200


Start = Callable[..., Process]


@pytest.fixture
def start(server: Server, tmp_path: Path) -> Iterator[Start]:
    """Start reapers, and stop them at the end."""
    with contextlib.ExitStack() as stack:

        def begin(*arguments: str) -> Process:
            running = Process(server, tmp_path / f"log-{time.monotonic_ns()}", *arguments)

            def end() -> None:
                running.process.kill()
                running.process.wait()

            stack.callback(end)
            return running

        yield begin
        server.cluster.end_watches()


def test_pods_and_volumes_are_deleted_when_their_time_comes(start: Start, cluster: Cluster) -> None:
    reaper = start()
    until(reaper.is_ready, "it has listed")
    job = add_job(cluster, pod_ttl="1")
    add_pod(cluster, "tune-0", job)
    add_volume(cluster, "output", job="tune", ttl="0")
    add_pod(cluster, "user", phase="Running", claim="output")
    add_job(cluster, ended=time.time(), pod_ttl="1")
    until(lambda: cluster.deleted() == ["tune-0"], "the pod is deleted")
    assert cluster.names(CLAIMS) == {"output"}
    cluster.put("pods", cluster.objects["pods", "models", "user"], phase="Succeeded")
    until(lambda: not cluster.names(CLAIMS), "the volume is deleted after its last user ended")
    status, text = reaper.get("/metrics")
    assert status == 200
    assert 'kaigen_reaper_deleted_total{kind="pod"} 1\n' in text
    assert 'kaigen_reaper_deleted_total{kind="volume"} 1\n' in text
    assert 'kaigen_reaper_kept_total{kind="volume",reason="in use"}' in text
    assert 'kaigen_reaper_objects{kind="jobs"} 1\n' in text
    assert "# TYPE kaigen_reaper_leader gauge\nkaigen_reaper_leader 1\n" in text
    assert reaper.get("/healthz") == (200, "ok\n")
    assert reaper.get("/other")[0] == 404
    # Nobody watches pods: a Job's end is all it needs.
    assert {re.sub(r"\?.*", "", call.path).rpartition("/")[2] for call in cluster.calls if call.method == "WATCH"} == {
        "jobs",
        CLAIMS,
    }


def test_a_failed_deletion_is_tried_again(start: Start, cluster: Cluster) -> None:
    add_pod(cluster, "tune-0", add_job(cluster, ended=time.time() - 60, pod_ttl="0"))
    left = [403, 409]

    def fail(method: str, path: str) -> None:
        if method == "DELETE" and left:
            cluster.statuses = [left.pop()]

    cluster.before = fail
    start()
    until(lambda: cluster.deleted() == ["tune-0"], "the pod is deleted")


@pytest.mark.parametrize("error", [410, 500, None])
def test_a_watch_that_ends_loses_nothing(start: Start, cluster: Cluster, error: int | None) -> None:
    gone = add_job(cluster, "gone", pod_ttl="0")
    reaper = start()
    until(lambda: sum(call.method == "WATCH" for call in cluster.calls) == 2, "it watches")
    cluster.end_watches(error)
    cluster.remove("jobs", "gone")
    add_pod(cluster, "gone-0", gone)
    add_pod(cluster, "tune-0", add_job(cluster, ended=time.time(), pod_ttl="0"))
    until(lambda: cluster.deleted() == ["tune-0"], "the pod is deleted")
    until(lambda: 'objects{kind="jobs"} 1\n' in reaper.get("/metrics")[1], "the other Job is forgotten")


def test_a_new_token_is_used(start: Start, cluster: Cluster, server: Server) -> None:
    reaper = start()
    until(reaper.is_ready, "it has listed")
    server.rotate("token-2")
    cluster.end_watches(410)
    add_pod(cluster, "tune-0", add_job(cluster, ended=time.time(), pod_ttl="0"))
    until(lambda: cluster.deleted() == ["tune-0"], "the pod is deleted")


def test_one_of_two_deletes_and_the_other_takes_over(start: Start, cluster: Cluster) -> None:
    first = start(f"--lease={LEASE}")
    until(lambda: "is now the leader" in first.printed, "one leads")
    second = start(f"--lease={LEASE}")
    until(second.is_ready, "the other one is ready too")
    assert "kaigen_reaper_leader 0\n" in second.get("/metrics")[1]
    add_volume(cluster, "a", expires_at=rfc3339(time.time() - 60))
    until(lambda: cluster.deleted() == ["a"], "the volume is deleted")
    assert "deleted" in first.printed
    # SIGTERM gives the Lease up; without that, the other one would wait for 15 seconds.
    first.process.send_signal(signal.SIGTERM)
    assert first.process.wait(timeout=20) == 0
    assert first.printed.endswith("ended\n")
    lease = cluster.get("leases", LEASE)
    assert lease is not None
    add_volume(cluster, "b", expires_at=rfc3339(time.time() - 60))
    until(lambda: cluster.deleted() == ["a", "b"], "the other one deletes")
    assert lease["spec"]["leaseTransitions"] >= 0
    assert "is now the leader" in second.printed
