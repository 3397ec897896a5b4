"""A tenant does not widen its quota: what gives quota belongs to the cluster, and a LocalQueue needs a grant."""

from __future__ import annotations

from pathlib import Path

from kaigen.config.load import load_config
from kaigen.pipeline.validate import validate

OWN = """\
apiVersion: kaigen.dev/v1alpha1
kind: Queue
metadata: {name: mine, namespace: lab}
spec: {quota: [{gpuType: H100, gpus: 64}]}
"""
LOCAL = """\
apiVersion: kaigen.dev/v1alpha1
kind: Queue
metadata: {name: research, namespace: lab}
spec: {clusterQueue: research}
"""
WIDER = """\
apiVersion: kaigen.dev/v1alpha1
kind: Queue
metadata: {name: research, namespace: lab}
spec: {quota: [{gpuType: H100, gpus: 8}], priorities: {urgent: 9000}}
"""


def problems(root: Path, text: str, grants: str = "", *, passthrough: bool = False) -> list[str]:
    """Return what the tenant `lab` is not granted."""
    config = "apiVersion: kaigen.dev/v1alpha1\nkind: Config\nspecs: [.]\n"
    config += "passthrough: true\n" if passthrough else ""
    config += f"tenants: {{lab: {{folders: [lab], namespaces: [lab]{grants}}}}}\n"
    (root / "kaigen.yaml").write_text(config, encoding="utf-8")
    (root / "lab").mkdir(exist_ok=True)
    (root / "lab" / "queue.yaml").write_text(text, encoding="utf-8")
    found, _ = validate((), load_config(root))
    return [item.message.rpartition("is not granted ")[2] for item in found if item.code == "KG0582"]


def test_a_tenant_has_no_quota_of_its_own(tmp_path: Path) -> None:
    refused = problems(tmp_path, OWN, ", classes: ['ClusterQueue/*']")
    assert refused == ["the kinds ResourceFlavor.kueue.x-k8s.io and ClusterQueue.kueue.x-k8s.io"]


def test_a_tenant_cannot_replace_the_queue_that_it_may_use(tmp_path: Path) -> None:
    refused = problems(tmp_path, WIDER, ", classes: [ClusterQueue/research]")
    first = "ResourceFlavor.kueue.x-k8s.io, WorkloadPriorityClass.kueue.x-k8s.io"
    assert refused == [f"the kinds {first} and ClusterQueue.kueue.x-k8s.io"]


def test_a_tenant_uses_only_the_cluster_queues_that_it_is_granted(tmp_path: Path) -> None:
    assert problems(tmp_path, LOCAL) == ["the queue `ClusterQueue/research`"]
    assert problems(tmp_path, LOCAL, ", classes: [ClusterQueue/other]") == ["the queue `ClusterQueue/research`"]
    assert problems(tmp_path, LOCAL, ", classes: [ClusterQueue/research]") == []


TRAIN_JOB = """\
apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainJob
metadata: {name: train, namespace: lab}
spec:
  runtimeRef: {kind: TrainingRuntime, name: train}
  runtimePatches:
    - manager: kueue.x-k8s.io/manager
      trainingRuntimeSpec:
        template: {spec: {replicatedJobs: [{name: node, template: {spec: {template: {spec: POD}}}}]}}
"""


def test_a_tenant_does_not_change_the_pods_of_a_runtime_as_kueue_does(tmp_path: Path) -> None:
    kueue = TRAIN_JOB.replace("POD", "{nodeSelector: {zone: a}, tolerations: [], schedulingGates: [{name: a}]}")
    assert problems(tmp_path, kueue, passthrough=True) == []
    for change in ("volumes: [{name: a, hostPath: {path: /}}]", "serviceAccountName: other", "securityContext: {}"):
        refused = problems(tmp_path, TRAIN_JOB.replace("POD", f"{{{change}}}"), passthrough=True)
        assert any("a change of the pods of a runtime, or an initializer" in each for each in refused), change
