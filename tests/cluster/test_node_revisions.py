"""Revisions of a Model on a real node, side by side, with requests in flight."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest

from kaigen.pipeline.result import Compiled
from runtimes.downloader.tests.hub import REPO, Hub
from tests.cluster.apps import JOB, POD, asking_pod, compiled, job_name, spec
from tests.cluster.client import Object, is_true
from tests.cluster.images import BASE
from tests.cluster.node import Node
from tests.cluster.processes import wait_until
from tests.cluster.services import tiny_hub
from tests.cluster.test_node_rollout import DEPLOYMENT, is_rolled_out

ONE, TWO, THREE, FOUR = (f"{number}" * 40 for number in range(1, 5))
SMALL = {"cpu": "50m", "memory": "64Mi"}
# Maps the weights like an engine, and compares them with the file for each answer.
SERVER = """
import http.server, mmap, os, time
path = "/model/model.safetensors"
weights = mmap.mmap(os.open(path, os.O_RDONLY), 0, access=mmap.ACCESS_READ)
loaded = bytes(weights[:])
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        if self.path != "/ready":
            time.sleep(0.2)
        same = bytes(weights[:]) == loaded == open(path, "rb").read()
        self.send_response(200 if same else 500); self.end_headers()
        self.wfile.write(loaded[:1])
    def log_message(self, *_): pass
http.server.ThreadingHTTPServer(("", 8000), Handler).serve_forever()
"""


@dataclass
class Team:
    """What a team has in Git for a namespace, as Argo CD or Flux sync it."""

    node: Node
    namespace: str
    hub: Hub
    folder: Path
    job: str = ""

    def _model(self, commit: str) -> Object:
        source = {"repo": REPO, "revision": commit, "endpoint": self.hub.url}
        volume = {"size": "1Gi", "accessModes": ["ReadWriteMany"], "storageClassName": "local-path"}
        return spec("Model", "tiny", source={"huggingFace": source}, store={"volume": volume})

    def _web(self) -> Object:
        command = ["python", "-c", SERVER]
        block = {"command": command, "port": 8000, "probes": {"ready": "/ready"}, "shape": {"replicas": 2}}
        return spec("Topology", "web", engine="container", image=BASE, model="tiny", resources=SMALL, **block)

    def apps(self, commit: str, *more: Object) -> dict[str, Compiled]:
        specs = [self._model(commit), self._web(), *more]
        return compiled(self.folder, specs, self.namespace, "generic")

    def sync(self, commit: str, *names: str, more: Object | None = None) -> None:
        """Apply apps with a revision of the model, and prune the download of another one.

        Args:
            commit: the revision.
            names: the apps.
            more: a spec besides the Model and the Topology.
        """
        apps = self.apps(commit, *([more] if more else []))
        for name in names:
            for rendered in apps[name].objects:
                self.node.client.apply(rendered.body)
        before, self.job = self.job, job_name(apps["tiny"])
        if before and before != self.job:
            self.node.run("kubectl", "delete", "job", before, "--namespace", self.namespace)

    def publish(self, commit: str) -> None:
        """Put other weights on the Hub: the digit of the commit."""
        self.hub.revisions[commit] = commit
        self.hub.add("model.safetensors", commit[:1].encode() * 500_000)

    def downloaded(self) -> str:
        """Wait for the download; return its log."""
        complete = partial(is_true, condition="Complete")
        self.node.client.wait(JOB, self.job, self.namespace, complete, "complete")
        return self.logs(f"job/{self.job}")

    def rolled_out(self) -> None:
        self.node.client.wait(DEPLOYMENT, "web", self.namespace, is_rolled_out, "rolled out", timeout=600)

    def logs(self, name: str) -> str:
        return self.node.run("kubectl", "logs", "--namespace", self.namespace, name).stdout

    def waiting(self) -> list[str]:
        """Return the new pods that wait for their revision."""
        pods = self.node.client.objects(POD, self.namespace, "app.kubernetes.io/name=web")
        return [
            str(pod["metadata"]["name"])
            for pod in pods
            for status in pod["status"].get("initContainerStatuses", [])
            if "running" in status["state"]
        ]

    def reads(self, revision: str) -> bool:
        """Return whether a pod that has not ended reads a revision."""
        pods = self.node.client.objects(POD, self.namespace)
        running = [pod["spec"] for pod in pods if pod["status"]["phase"] not in {"Succeeded", "Failed"}]
        return revision in json.dumps(running)


@pytest.fixture
def team(node: Node, node_namespace: str, tmp_path: Path) -> Iterator[Team]:
    hub = tiny_hub(node, "revisions.test")
    yield Team(node, node_namespace, hub, tmp_path)
    hub.__exit__()


@pytest.mark.ran("Job", "PersistentVolumeClaim", "Role", "RoleBinding", by=("node", "downloader"))
@pytest.mark.ran("Deployment", "Service", by="node")
def test_a_new_revision_and_a_rollback_lose_no_request(team: Team) -> None:
    team.publish(ONE)
    team.sync(ONE, "tiny", "web")
    team.rolled_out()
    first = team.job
    created = team.node.client.create(asking_pod(threads=4), team.namespace)
    client = str(created["metadata"]["name"])
    team.node.client.wait(POD, client, team.namespace, lambda pod: pod["status"]["phase"] == "Running", "runs")

    # A new revision: the old pods serve while it is downloaded and until the new ones are ready.
    team.publish(TWO)
    team.hub.rate = 100_000
    reader = spec(
        "Job",
        "reader",
        image=BASE,
        model="tiny",
        command=["python", "-c", "import signal; signal.signal(15, lambda *_: exit()); signal.pause()"],
        resources=SMALL,
    )
    team.sync(TWO, "tiny", "web", "reader", more=reader)
    wait_until(lambda: bool(team.waiting()), "a new pod waits for the download")
    assert not is_true(team.node.client.get(JOB, team.job, team.namespace), "Complete")
    assert "fetching" in team.downloaded()
    team.hub.rate = None
    team.rolled_out()

    # A rollback: the Job is created again and finds the folder.
    team.hub.files.clear()
    team.hub.seen.clear()
    team.sync(ONE, "tiny", "web")
    assert team.job == first
    assert "already complete" in team.downloaded()
    team.rolled_out()
    assert team.hub.seen == []
    time.sleep(2)

    team.node.run("kubectl", "exec", "--namespace", team.namespace, client, "--", "touch", "/tmp/stop")
    team.node.client.wait(POD, client, team.namespace, lambda pod: pod["status"]["phase"] == "Succeeded", "over")
    counted = json.loads(team.logs(client))
    print(counted)
    assert counted.keys() == {"1", "2"}

    # Further revisions: a Job still reads the second one. Only then it is removed.
    team.publish(THREE)
    team.sync(THREE, "tiny", "web")
    used = re.search("revision ([0-9a-f]+) is read by pod reader-", team.downloaded())
    assert used is not None
    readers = ["--selector", "app.kubernetes.io/name=reader"]
    team.node.run("kubectl", "delete", "job", "--namespace", team.namespace, *readers)
    wait_until(lambda: not team.reads(used[1]), "no pod reads the second revision", timeout=300)
    team.publish(FOUR)
    team.sync(FOUR, "tiny")
    assert f"removed revision {used[1]}: 2 files" in team.downloaded()
