"""Pods of a tenant in kinds that kaigen does not know, or in fields of Ray that are not a pod template, are refused."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from tests.unit.security.hostile import CONFIG, Repository

POD: dict[str, Any] = {
    "hostNetwork": True,
    "containers": [
        {
            "name": "c",
            "image": "evil.example/x:1",
            "securityContext": {"privileged": True},
            "resources": {"limits": {"nvidia.com/gpu": 64}},
        }
    ],
    "volumes": [{"name": "h", "hostPath": {"path": "/"}}],
}
TEMPLATE = {"spec": POD}
HEAD = {"rayStartParams": {}, "template": TEMPLATE}
RAY = {"headGroupSpec": HEAD, "workerGroupSpecs": [{"groupName": "w", "replicas": 8, "template": TEMPLATE}]}
UNKNOWN = {
    "InferenceService.serving.kserve.io": {"predictor": POD},
    "PyTorchJob.kubeflow.org": {"pytorchReplicaSpecs": {"Worker": {"replicas": 9, "template": TEMPLATE}}},
    "MPIJob.kubeflow.org": {"mpiReplicaSpecs": {"Launcher": {"template": TEMPLATE}}},
    "TFJob.kubeflow.org": {"tfReplicaSpecs": {"PS": {"template": TEMPLATE}}},
    "Workflow.argoproj.io": {"templates": [{"name": "a", "container": POD["containers"][0]}]},
    "Service.serving.knative.dev": {"template": TEMPLATE},
    "TaskRun.tekton.dev": {"taskSpec": {"steps": POD["containers"]}},
    "RayCronJob.ray.io": {"jobTemplate": {"rayClusterSpec": RAY}},
    "Rollout.argoproj.io": {"template": TEMPLATE},
    "Job.batch.volcano.sh": {"tasks": [{"template": TEMPLATE}]},
}
"""The kinds that are common next to AI work, as their documentation shows them, and their pods."""

KNOWN = {
    "RayJob.ray.io": {"rayClusterSpec": RAY, "submitterPodTemplate": TEMPLATE},
    "RayCluster.ray.io": RAY,
    "RayService.ray.io": {"rayClusterConfig": RAY},
}
PLAIN = CONFIG.replace("namespace: ml", "namespace: team-a") + "passthrough: true\n"


def document(type_: str, spec: object) -> str:
    kind, _, group = type_.partition(".")
    metadata = {"name": "x", "namespace": "team-a"}
    return yaml.safe_dump({"apiVersion": f"{group}/v1", "kind": kind, "metadata": metadata, "spec": spec})


@pytest.fixture
def team(repository: Repository) -> Repository:
    """A repository with a tenant that may have these kinds, and no spec."""
    (repository.folder / "specs/evaluate.yaml").unlink()
    tenant = {
        "folders": ["specs"],
        "namespaces": ["team-a"],
        "images": ["registry.example.com/*"],
        "gpus": 8,
        "kinds": [*UNKNOWN, *KNOWN],
    }
    repository.write({"kaigen.yaml": PLAIN + yaml.safe_dump({"tenants": {"team-a": tenant}})})
    return repository


@pytest.mark.parametrize("type_", UNKNOWN)
def test_pods_of_a_kind_that_kaigen_does_not_know_are_refused(team: Repository, type_: str) -> None:
    team.write({"specs/x.yaml": document(type_, UNKNOWN[type_])})
    done = team.kaigen("validate")
    assert done.code == 2, done.text
    for said in (
        f"is not granted pods in a kind, or in a field of it, that kaigen does not know: {type_}",
        "is not granted the image `evil.example/x:1`",
        "is not granted a privileged container",
        "kaigen does not know how many pods",
    ):
        assert said in done.err, done.text


@pytest.mark.parametrize("type_", KNOWN)
def test_rules_of_pods_apply_to_every_place_of_ray(team: Repository, type_: str) -> None:
    team.write({"specs/x.yaml": document(type_, KNOWN[type_])})
    done = team.kaigen("validate")
    places = 3 if type_ == "RayJob.ray.io" else 2
    assert done.err.count("is not granted a privileged container") == places, done.text
    assert done.err.count("is not granted a volume of type `hostPath`") == places
    assert f"request {64 * (places + 7)} GPUs, and it has 8" in done.err
    assert "that kaigen does not know" not in done.err


def test_pods_of_a_kind_that_kaigen_does_not_know_are_a_danger_in_the_diff(repository: Repository) -> None:
    repository.write({"kaigen.yaml": PLAIN})
    repository.rendered()
    type_ = "InferenceService.serving.kserve.io"
    repository.write({"specs/x.yaml": document(type_, UNKNOWN[type_])})
    assert repository.kaigen("render").code == 0
    done = repository.kaigen("diff", "--base", "HEAD")
    said = " ".join(done.out.split())
    assert "danger: runs pods that kaigen does not know the kind of, at spec.predictor" in said, done.text
    assert "danger: security is looser" in said
