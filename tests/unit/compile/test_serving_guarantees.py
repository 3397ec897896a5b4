"""What every Topology guarantees about its pods, whatever its shape: storage, Secrets, tokens and pod order."""

from __future__ import annotations

import pytest

from tests.rendering import Object, objects_of, of_kind, pod_specs, secret_names

HEADER = """\
apiVersion: kaigen.dev/v1alpha1
kind: Topology
metadata: {name: chat}
spec:
"""
HUB = "  model: {huggingFace: {repo: org/base, revision: " + "0" * 40 + "}}\n"
FOLDER = "  model: {folder: /weights}\n"
GPUS = "  resources: {gpus: 8, gpuType: H100}\n"
AUTH = "  auth: {secret: {name: api-key}}\n"

SHAPES = {
    "deployment": FOLDER + GPUS,
    "statefulset": HUB + GPUS + "  storage: {size: 50Gi}\n",
    "leaderworkerset": FOLDER + GPUS + "  shape: {nodes: 2}\n",
    "sets": FOLDER + GPUS + "  shape: {nodes: 2, replicas: 2, groups: statefulSet}\n",
    "ray": FOLDER + GPUS + '  shape: {nodes: 2, executor: ray}\n  engineVersion: "0.15"\n',
}
every_shape = pytest.mark.parametrize("shape", SHAPES)


def pods(body: str) -> dict[str, Object]:
    return pod_specs(objects_of(HEADER + body))


def is_worker(name: str) -> bool:
    return "worker" in name


def test_api_key_secret_is_read_by_the_pod_of_a_single_node() -> None:
    (pod,) = pods(SHAPES["deployment"] + AUTH).values()
    assert secret_names(pod) == {"api-key"}


@pytest.mark.parametrize("shape", ["leaderworkerset", "sets", "ray"])
def test_api_key_secret_is_read_only_by_leaders(shape: str) -> None:
    made = pods(SHAPES[shape] + AUTH)
    assert {secret_names(pod) == {"api-key"} for name, pod in made.items() if not is_worker(name)} == {True}
    assert [secret_names(pod) for name, pod in made.items() if is_worker(name)] == [set()] * (len(made) // 2)


@every_shape
def test_no_pod_reads_a_secret_the_spec_does_not_name(shape: str) -> None:
    made = pods(SHAPES[shape])
    assert made
    assert {name for name, pod in made.items() if secret_names(pod)} == set()


@every_shape
def test_serving_pods_mount_no_service_account_token(shape: str) -> None:
    made = pods(SHAPES[shape])
    assert made
    for pod in made.values():
        assert pod["automountServiceAccountToken"] is False
        assert "serviceAccountName" not in pod


@pytest.mark.parametrize("more", ["", "  shape: {nodes: 2}\n", "  shape: {nodes: 2, groups: statefulSet}\n"])
def test_volume_owned_by_a_pod_is_mounted_by_one_node_only(more: str) -> None:
    objects = objects_of(HEADER + SHAPES["statefulset"] + more)
    templates = [
        template
        for each in [*of_kind(objects, "StatefulSet"), *of_kind(objects, "LeaderWorkerSet")]
        for template in each["spec"].get("leaderWorkerTemplate", each["spec"])["volumeClaimTemplates"]
    ]
    assert templates
    for template in templates:
        assert template["kind"] == "PersistentVolumeClaim"
        assert template["spec"]["accessModes"] == ["ReadWriteOnce"]


@pytest.mark.parametrize("shape", ["statefulset", "sets"])
def test_pods_of_a_stateful_set_start_in_parallel(shape: str) -> None:
    """Workers wait for their leader and the leader for its workers: one by one, none would become ready."""
    sets = of_kind(objects_of(HEADER + SHAPES[shape]), "StatefulSet")
    assert sets
    assert {each["spec"]["podManagementPolicy"] for each in sets} == {"Parallel"}


@every_shape
def test_serving_pods_run_unprivileged(shape: str) -> None:
    made = pods(SHAPES[shape])
    assert made
    for pod in made.values():
        assert pod["securityContext"]["runAsNonRoot"] is True
        assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        for container in [*pod.get("initContainers", []), *pod["containers"]]:
            context = container["securityContext"]
            assert context["allowPrivilegeEscalation"] is False
            assert context["capabilities"] == {"drop": ["ALL"]}


@pytest.mark.parametrize("shape", ["deployment", "statefulset", "sets"])
def test_selectors_match_only_the_pods_of_their_own_workload(shape: str) -> None:
    objects = objects_of(HEADER + SHAPES[shape])
    workloads = [*of_kind(objects, "Deployment"), *of_kind(objects, "StatefulSet")]
    assert workloads
    for each in workloads:
        selector = each["spec"]["selector"]["matchLabels"].items()
        selected = [
            other["metadata"]["name"]
            for other in workloads
            if selector <= other["spec"]["template"]["metadata"]["labels"].items()
        ]
        assert selected == [each["metadata"]["name"]]


@every_shape
def test_service_selects_leaders_and_no_workers(shape: str) -> None:
    objects = objects_of(HEADER + SHAPES[shape])
    (service,) = (each for each in of_kind(objects, "Service") if each["metadata"]["name"] == "chat")
    labels: dict[str, dict[str, str]] = {}
    for each in objects:
        spec, name = each.get("spec", {}), each["metadata"]["name"]
        if "leaderWorkerTemplate" in spec:
            for role in ("leader", "worker"):
                labels[role] = spec["leaderWorkerTemplate"][f"{role}Template"]["metadata"]["labels"]
        elif "template" in spec:
            labels[name] = spec["template"]["metadata"]["labels"]
    selector = service["spec"]["selector"].items()
    assert {name: selector <= each.items() for name, each in labels.items()} == {
        name: not is_worker(name) for name in labels
    }
