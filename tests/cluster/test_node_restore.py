"""A cluster that is built anew from Git: a run whose results are in a bucket is not run again, on a real node."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from runtimes.downloader.tests.hub import COMMIT, REPO, Hub
from runtimes.downloader.tests.s3 import S3
from tests.cluster.apps import JOB, POD, spec
from tests.cluster.argocd import ArgoCD
from tests.cluster.client import Object, is_true
from tests.cluster.git import Repository
from tests.cluster.images import BASE
from tests.cluster.node import Node
from tests.cluster.services import bucket_keys, s3_server
from tests.cluster.team import ARGOCD, Team, bootstrap_argocd, remove_applications, wait_application
from tests.cluster.test_node_chain import SERVE

NAMESPACE = "v1/Namespace"
SMALL = {"cpu": "50m", "memory": "128Mi"}
VOLUME = {"volume": {"size": "1Gi"}}
TUNE = """
import os, pathlib
assert pathlib.Path("/model/model.safetensors").exists()
merged = pathlib.Path("/output/merged")
merged.mkdir()
(merged / "model.safetensors").write_text(os.urandom(8).hex())
print("tuned")
"""
READ = "print(open('/model/model.safetensors').read())"


@pytest.fixture
def storage(node: Node) -> Iterator[S3]:
    """An S3 server next to the node, with a bucket."""
    with s3_server(node) as server:
        with node.network.entered():
            server.make_bucket("results")
        yield server


def specs(hub: Hub, storage: S3) -> dict[str, Object]:
    """Return a model, the run that tunes it, the Model of its results in the bucket and its reader, and a server of its
    volume."""
    source = {"repo": REPO, "revision": COMMIT, "endpoint": hub.url}
    keys = {"secret": {"name": "bucket-keys"}}
    where = {"uri": "s3://results/tune", "endpoint": f"http://{storage.backend}", "credentials": keys}
    program = {"image": BASE, "resources": SMALL}
    return {
        "tiny": spec("Model", "tiny", source={"huggingFace": source}, store=VOLUME),
        "tune": spec(
            "Job",
            "tune",
            command=["python", "-c", TUNE],
            model="tiny",
            output={**VOLUME, "bucket": {**where, "skipIfComplete": True}},
            **program,
        ),
        "tuned": spec("Model", "tuned", source={"job": {"name": "tune", "path": "merged"}}, store=VOLUME),
        "read": spec("Job", "read", command=["python", "-c", READ], model="tuned", **program),
        "mounted": spec(
            "Topology",
            "mounted",
            engine="container",
            command=["python", "-c", SERVE],
            model={"job": {"name": "tune", "path": "merged"}},
            probes={"ready": "/model.safetensors"},
            drain="5s",
            **program,
        ),
    }


class Cluster:
    """A namespace that Argo CD fills from Git."""

    def __init__(self, node: Node, argocd: ArgoCD, team: Team, repository: Repository) -> None:
        self.node, self.argocd, self.team, self.repository = node, argocd, team, repository

    def fill(self) -> None:
        """Sync everything, and wait until all of it is done."""
        node, team = self.node, self.team
        node.client.apply(bucket_keys("bucket-keys", team.space))
        files = team.files()
        revision = self.repository.commit(files)
        bootstrap_argocd(node, team, files)
        for name in team.specs:
            wait_application(node, self.argocd, team.name(team.space, name), revision)

    def empty(self) -> None:
        """Take everything away, the namespace and its volumes too."""
        node, space = self.node, self.team.space
        remove_applications(node, self.argocd, self.team.environment)
        node.client.delete(NAMESPACE, space)
        node.client.wait_gone(NAMESPACE, space)
        node.make_namespace(space)

    def job(self, app: str, component: str = "run") -> str:
        """Return the name of a completed Job."""
        labels = f"app.kubernetes.io/name={app},app.kubernetes.io/component={component}"
        (found,) = self.node.client.objects(JOB, self.team.space, labels)
        assert is_true(found, "Complete")
        return str(found["metadata"]["name"])

    def printed(self, job: str, container: str) -> str:
        """Return the last line of a container of a Job."""
        argv = ["kubectl", "logs", "-n", self.team.space, f"job/{job}", "--container", container]
        return self.node.run(*argv).stdout.strip().rpartition("\n")[2]


@pytest.fixture
def cluster(
    node: Node, node_argocd: ArgoCD, node_namespace: str, hub: Hub, storage: S3, tmp_path: Path
) -> Iterator[Cluster]:
    repository = Repository(tmp_path / "repository")
    settings = {"profile": "generic", "allow": {"servers": ["127.0.0.1", node.network.host]}}
    name = node_namespace[-6:]
    team = Team(tmp_path / "team", repository.url, name, ARGOCD, specs(hub, storage), node_namespace, settings)
    yield Cluster(node, node_argocd, team, repository)
    remove_applications(node, node_argocd, team.environment)


@pytest.mark.ran("Job", "PersistentVolumeClaim", by=("node", "argocd"))
def test_an_empty_cluster_restores_the_results_of_a_run_and_does_not_repeat_it(cluster: Cluster, storage: S3) -> None:
    node, team = cluster.node, cluster.team
    cluster.fill()
    run = cluster.job("tune")
    assert cluster.printed(run, "run") == "tuned"
    assert "not complete" in cluster.printed(run, "restore")
    stored = partial(storage.get, f"tune/{run}/merged/model.safetensors")
    with node.network.entered():
        before = stored()
    assert before is not None
    assert cluster.printed(cluster.job("read"), "run") == before.decode()

    cluster.empty()
    assert node.client.objects(POD, team.space) == []
    cluster.fill()
    assert cluster.job("tune") == run
    line = f"already complete: s3://results/tune/{run}, 1 file"
    assert cluster.printed(run, "restore") == line
    assert cluster.printed(run, "run") == line
    # The gate of the model had nothing to wait for, and the upload nothing to store.
    (pod,) = node.client.objects(POD, team.space, f"batch.kubernetes.io/job-name={run}")
    _, gate = pod["spec"]["initContainers"]
    assert "nothing to do" in cluster.printed(run, gate["name"])
    assert "already complete" in cluster.printed(cluster.job("tune", "upload"), "upload")
    with node.network.entered():
        assert stored() == before
    assert cluster.printed(cluster.job("read"), "run") == before.decode()
    file = ["--", "cat", "/model/model.safetensors"]
    assert node.run("kubectl", "exec", "-n", team.space, "deployment/mounted", *file).stdout == before.decode()
