"""Hours of a Notebook on a real node: the CronJobs of a schedule of minutes start and stop its pod under Argo CD."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.cluster.apps import JOB, POD, compiled
from tests.cluster.argocd import APPLICATION, ArgoCD
from tests.cluster.client import is_true
from tests.cluster.images import runtime_image
from tests.cluster.live import call
from tests.cluster.node import Node
from tests.cluster.processes import wait_until
from tests.cluster.syncers import ArgoSyncer
from tests.cluster.test_notebook import NAME, STATEFUL_SET, TOKEN, notebook, wait_until_ready

pytestmark = pytest.mark.engine

HOURS = [{"start": "*/4 * * * *", "end": "2-59/4 * * * *", "timeZone": "Asia/Kolkata"}]
"""Open for two minutes of four; of each hour, so that the zone is another one and the minutes are the same."""


@pytest.mark.ran("CronJob", "StatefulSet", "Role", "RoleBinding", by=("node", "argocd", "reaper"))
def test_a_notebook_stops_and_starts_by_its_hours_while_its_app_stays_synced(
    node: Node, node_argocd: ArgoCD, node_namespace: str, tmp_path: Path
) -> None:
    for name in ("notebook", "reaper"):
        node.import_image(runtime_image(name))
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": f"{NAME}-token"}}
    node.client.create({**secret, "stringData": {"token": f"{TOKEN}\n"}}, node_namespace)
    syncer = ArgoSyncer(node, node_namespace, node_argocd, tmp_path)
    lab = notebook(hours=HOURS)
    syncer.publish(compiled(tmp_path / "specs", [lab], node_namespace))
    mark, seen = node.audit.mark(), set[Any]()

    def wait_for_run(action: str, replicas: int) -> None:
        """Wait until a run has set the replicas, and note what Argo CD says meanwhile."""

        def is_done() -> bool:
            (application,) = [
                each
                for each in node.client.objects(APPLICATION, node_argocd.namespace)
                if each["spec"]["destination"]["namespace"] == node_namespace
            ]
            seen.add(application["status"]["sync"]["status"])
            runs = node.client.objects(JOB, node_namespace, f"app.kubernetes.io/name={NAME}")
            ended = [each for each in runs if each["metadata"]["name"].startswith(f"{NAME}-{action}-")]
            live = node.client.get(STATEFUL_SET, NAME, node_namespace)["spec"]["replicas"]
            return any(is_true(each, "Complete") for each in ended) and live == replicas

        wait_until(is_done, f"{action} has run", 300, every=1)

    wait_for_run("stop", 0)
    node.client.wait_gone(POD, f"{NAME}-0", node_namespace)
    repository = tmp_path / "repository-of-specs"
    (repository / "specs").mkdir(parents=True)
    (repository / "kaigen.yaml").write_text(f"profile: k3s\nnamespace: {node_namespace}\n")
    (repository / "specs" / "lab.yaml").write_text(yaml.safe_dump(lab))
    printed = call(node, "kaigen", "status", folder=repository)
    assert re.search(rf"{NAME} +Notebook +suspended .* its hours ended at 20[-0-9]+T[:0-9]+Z", printed), printed

    wait_for_run("start", 1)
    wait_until_ready(node, node_namespace)
    assert seen == {"Synced"}
    assert syncer.writes(mark) == []
