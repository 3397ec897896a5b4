"""The rules that the builders implement."""

from __future__ import annotations

from typing import Any

import pytest

from kaigen.catalog.catalog import BUILT_IN
from kaigen.catalog.gpus import gpu_names
from kaigen.catalog.profiles import profile_names
from kaigen.compile.builders.jobs import seconds
from kaigen.compile.builders.sources import identity
from kaigen.compile.builders.weights import PERMANENT_EXIT_CODES
from kaigen.kinds.block import read_block
from kaigen.kinds.blocks import Source
from kaigen.kinds.job import Job
from kaigen.kinds.model import Model
from tests.unit.compile.specs import SOURCE, configured, context, job, model, objects, pod, problem_paths, topology
from tests.unit.compile.topologies import CONTEXT


@pytest.mark.parametrize(
    ("duration", "expected"),
    [
        (None, 0),
        ("0s", 0),
        ("90s", 90),
        ("1m", 60),
        ("1h30m", 5400),
        ("2d", 172800),
        ("1d2h3m4s", 93784),
        ("30m1h", 5400),
        ("10s10s", 20),
        ("007s", 7),
    ],
)
def test_a_duration_is_the_sum_of_its_parts(duration: str | None, expected: int) -> None:
    assert seconds(duration) == expected


def identity_of(**fields: Any) -> str:
    source = {"huggingFace": {"repo": "a/b", **fields}}
    return identity(read_block(Source, source))


@pytest.mark.parametrize(
    "fields",
    [
        {"repo": "a/c"},
        {"revision": "v2"},
        {"include": ["*.json"]},
        {"exclude": ["*.json"]},
        {"include": ["a", "b"]},
        {"include": ["b", "a"]},
        {"include": ["a,b"]},
    ],
    ids=str,
)
def test_different_files_have_different_identities(fields: dict[str, Any]) -> None:
    assert identity_of(**fields) != identity_of()
    others = [{"include": ["a", "b"]}, {"include": ["a,b"]}, {"exclude": ["*.json"]}, {"include": ["*.json"]}]
    assert len({identity_of(**other) for other in others}) == len(others)


def test_transfer_settings_do_not_change_the_identity() -> None:
    assert identity_of(tokenSecret={"name": "t"}, endpoint="https://mirror") == identity_of()
    assert identity_of(revision="main", include=[], exclude=[]) == identity_of()
    assert len(identity_of()) == 16


def test_gates_wait_for_the_identity_that_the_downloader_writes() -> None:
    block = model()
    wanted = f"--identity={identity(block.spec.source)}"
    fetched = pod(block)["containers"][0]["args"]
    awaited = pod(job(model="m"), context(models={"m": block}))["initContainers"][0]["args"]
    assert wanted in fetched
    assert wanted in awaited


def test_evictions_are_no_failures_and_permanent_errors_are_not_retried() -> None:
    policy = objects(model())["Job"]["spec"]["podFailurePolicy"]["rules"]
    assert policy[0] == {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}
    assert policy[1]["action"] == "FailJob"
    assert policy[1]["onExitCodes"]["values"] == list(PERMANENT_EXIT_CODES)
    names = {container["name"] for container in pod(model())["containers"]}
    assert policy[1]["onExitCodes"]["containerName"] in names
    assert len(objects(job())["Job"]["spec"]["podFailurePolicy"]["rules"]) == 1


def test_the_policy_names_the_init_container_that_fetches() -> None:
    block = job(model={"source": SOURCE, "mountPath": "/output/m"}, output={"volume": {"size": "1Gi"}})
    rules = objects(block)["Job"]["spec"]["podFailurePolicy"]["rules"]
    assert rules[1]["onExitCodes"]["containerName"] == pod(block)["initContainers"][0]["name"]


@pytest.mark.parametrize(
    ("security", "expected"),
    [
        ({}, {"runAsNonRoot": True, "runAsUser": 65532, "runAsGroup": 65532, "fsGroup": 65532}),
        ({"runAsUser": 1000}, {"runAsNonRoot": True, "runAsUser": 1000, "runAsGroup": 1000, "fsGroup": 1000}),
        (
            {"runAsUser": 1000, "fsGroup": 7},
            {"runAsNonRoot": True, "runAsUser": 1000, "runAsGroup": 1000, "fsGroup": 7},
        ),
        ({"podSecurity": "baseline"}, {}),
        ({"podSecurity": "baseline", "fsGroup": 7}, {"fsGroup": 7}),
        ({"podSecurity": "baseline", "runAsUser": 0}, {"runAsUser": 0, "runAsGroup": 0, "fsGroup": 0}),
        ({"podSecurity": "baseline", "runAsUser": 5}, {"runAsUser": 5, "runAsGroup": 5, "fsGroup": 5}),
    ],
    ids=str,
)
def test_user_and_group_of_a_pod(security: dict[str, Any], expected: dict[str, Any]) -> None:
    policy = {"fsGroupChangePolicy": "OnRootMismatch"} if "fsGroup" in expected else {}
    wanted = {**expected, **policy, "seccompProfile": {"type": "RuntimeDefault"}}
    assert pod(job(security=security))["securityContext"] == wanted
    assert pod(model(security=security))["securityContext"] == wanted


def test_root_requires_a_looser_pod_security_level() -> None:
    wrong = {"runAsUser": 0}
    assert problem_paths(job(security=wrong)) == [("KG0305", "spec.security.runAsUser")]
    assert problem_paths(model(security=wrong)) == [("KG0305", "spec.security.runAsUser")]


def test_capabilities_are_those_of_the_main_container_only() -> None:
    security = {"podSecurity": "privileged", "capabilities": ["SYS_NICE", "IPC_LOCK"]}
    for made in (
        pod(job(security=security, inputs=[{"url": "https://example.com/a"}])),
        pod(topology(model="many", security=security), CONTEXT),
    ):
        added = [each["securityContext"]["capabilities"].get("add") for each in made["containers"]]
        assert added == [["IPC_LOCK", "SYS_NICE"]]
        for each in made.get("initContainers", ()):
            assert each["securityContext"]["capabilities"] == {"drop": ["ALL"]}


@pytest.mark.parametrize(
    ("security", "code", "path"),
    [
        ({}, "KG0340", "spec.security.capabilities"),
        ({"podSecurity": "privileged", "runAsUser": 1000}, "KG0340", "spec.security.capabilities"),
        ({"podSecurity": "baseline"}, "KG0305", "spec.security.capabilities.0"),
    ],
)
def test_capabilities_require_root_and_a_level_that_allows_them(security: dict[str, Any], code: str, path: str) -> None:
    block = {**security, "capabilities": ["IPC_LOCK"]}
    assert problem_paths(job(security=block)) == [(code, path)]
    assert problem_paths(topology(model="many", security=block), CONTEXT) == [(code, path)]


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({}, True),
        ({"resources": {"gpus": 1}}, False),
        ({"resources": {"gpus": 0}}, True),
        ({"resources": {"gpus": {"profile": "1g.5gb"}}}, False),
        ({"resources": {"gpus": 1}, "security": {"readOnlyRootFilesystem": True}}, True),
        ({"security": {"readOnlyRootFilesystem": False}}, False),
    ],
    ids=str,
)
def test_root_file_system_is_read_only_without_a_gpu(spec: dict[str, Any], expected: bool) -> None:
    container = pod(job(**spec))["containers"][0]
    assert container["securityContext"]["readOnlyRootFilesystem"] is expected


@pytest.mark.parametrize(
    ("resources", "requests", "limits"),
    [
        ({}, {"cpu": "1", "memory": "4Gi"}, {"memory": "4Gi"}),
        ({"gpus": 2}, {"cpu": "4", "memory": "16Gi", "nvidia.com/gpu": 2}, {"memory": "16Gi", "nvidia.com/gpu": 2}),
        (
            {"gpus": {"profile": "1g.10gb", "count": 3}, "cpu": "2", "memory": "8Gi"},
            {"cpu": "2", "memory": "8Gi", "nvidia.com/mig-1g.10gb": 3},
            {"memory": "8Gi", "nvidia.com/mig-1g.10gb": 3},
        ),
        (
            {"ephemeralStorage": "10Gi"},
            {"cpu": "1", "memory": "4Gi", "ephemeral-storage": "10Gi"},
            {"memory": "4Gi", "ephemeral-storage": "10Gi"},
        ),
        ({"cpu": 2, "memory": 1073741824.0}, {"cpu": "2", "memory": "1073741824"}, {"memory": "1073741824"}),
        ({"cpu": 0.5, "memory": 1e9}, {"cpu": "500m", "memory": "1G"}, {"memory": "1G"}),
    ],
    ids=str,
)
def test_resources_of_a_container(resources: dict[str, Any], requests: dict[str, Any], limits: dict[str, Any]) -> None:
    given = pod(job(resources=resources))["containers"][0]["resources"]
    assert given == {"requests": requests, "limits": limits}


def test_a_device_claim_is_made_named_and_used() -> None:
    block = job(resources={"gpus": {"deviceClassName": "gpu.example.com", "count": 4}})
    template, spec = objects(block)["ResourceClaimTemplate"], pod(block)
    (request,) = template["spec"]["spec"]["devices"]["requests"]
    assert request["exactly"] == {"deviceClassName": "gpu.example.com", "allocationMode": "ExactCount", "count": 4}
    (claim,) = spec["resourceClaims"]
    assert claim["resourceClaimTemplateName"] == template["metadata"]["name"]
    assert spec["containers"][0]["resources"]["claims"] == [{"name": claim["name"]}]


@pytest.mark.parametrize("profile", profile_names())
@pytest.mark.parametrize("gpu", gpu_names(BUILT_IN))
def test_every_gpu_is_selected_by_its_label_or_rejected(profile: str, gpu: str) -> None:
    where, block = context(profile), job(resources={"gpuType": gpu})
    labels = {label for group in where.profile.gpu_labels for label in group}
    if problem_paths(block, where):
        assert problem_paths(block, where) == [("KG0307", "spec.resources.gpuType")]
    else:
        made = pod(block, where)
        assert labels & made.get("nodeSelector", {}).keys() or any(label in str(made["affinity"]) for label in labels)


def test_unknown_gpu_is_rejected() -> None:
    assert problem_paths(job(resources={"gpuType": "L5"})) == [("KG0306", "spec.resources.gpuType")]


def test_node_selector_of_the_user_overrides_the_profiles() -> None:
    block = job(
        resources={"gpuType": "L4", "instanceType": "g2"},
        placement={"nodeSelector": {"nvidia.com/gpu.product": "mine", "pool": "a"}},
    )
    assert pod(block)["nodeSelector"] == {
        "nvidia.com/gpu.product": "mine",
        "node.kubernetes.io/instance-type": "g2",
        "pool": "a",
    }


@pytest.mark.parametrize("profile", profile_names())
def test_spot_nodes_are_selected_where_the_profile_has_them(profile: str) -> None:
    where, block = context(profile), job(placement={"spot": True})
    spot = where.profile.spot
    if spot is None:
        assert problem_paths(block, where) == [("KG0308", "spec.placement.spot")]
    else:
        spec = pod(block, where)
        assert spot.node_selector.items() <= spec.get("nodeSelector", {}).items()
        assert all(label in str(spec.get("affinity")) for labels in spot.node_labels for label in labels)
        assert list(spot.tolerations) == spec.get("tolerations", [])


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({"resources": {"gpus": 1}}, "nvidia"),
        ({}, None),
        ({"resources": {"gpus": 1}, "placement": {"runtimeClassName": ""}}, None),
        ({"placement": {"runtimeClassName": "gvisor"}}, "gvisor"),
    ],
    ids=str,
)
def test_runtime_class_of_gpu_pods_is_the_profiles_by_default(spec: dict[str, Any], expected: str | None) -> None:
    assert pod(job(**spec), context("k3s")).get("runtimeClassName") == expected


@pytest.mark.parametrize("version", ["1.2.3", "0.0.0", "1.2.3-rc.1", "1.2.3-rc.1+build.5", "10.20.30--x"])
def test_a_chart_may_have_any_version_of_semver(version: str) -> None:
    metadata = {"name": "j", "annotations": {"kaigen.dev/version": version}}
    assert problem_paths(read_block(Job, {"metadata": metadata, "spec": {"image": "i"}})) == []


@pytest.mark.parametrize("version", ["", "1", "1.0", "v1.2.3", "01.2.3", "1.2.3 ", "1.2.3-", "1.2.3-01", "latest"])
def test_version_that_helm_rejects_is_rejected(version: str) -> None:
    metadata = {"name": "j", "annotations": {"kaigen.dev/version": version}}
    block = read_block(Job, {"metadata": metadata, "spec": {"image": "i"}})
    assert problem_paths(block) == [("KG0406", "metadata.annotations.kaigen.dev/version")]


def test_a_wave_among_the_annotations_moves_the_whole_app() -> None:
    wave = "argocd.argoproj.io/sync-wave"

    def waves(**annotations: str) -> dict[str, int]:
        whole = {"source": SOURCE, "store": {"volume": {"size": "1Gi"}}}
        metadata = {"name": "m", "annotations": annotations}
        made = objects(read_block(Model, {"metadata": metadata, "spec": whole}))
        return {kind: int(o["metadata"].get("annotations", {}).get(wave, 0)) for kind, o in made.items()}

    assert waves(**{wave: "10"}) == {kind: number + 10 for kind, number in waves().items()}
    assert waves(**{wave: "-5"}) == {kind: number - 5 for kind, number in waves().items()}


@pytest.mark.parametrize(
    ("profile", "volume", "possible"),
    [
        ("eks", {"accessModes": ["ReadWriteMany"]}, False),
        ("eks", {"accessModes": ["ReadWriteOnce", "ReadOnlyMany"]}, False),
        ("eks", {"accessModes": ["ReadWriteMany"], "storageClassName": "gp2"}, False),
        ("eks", {"accessModes": ["ReadWriteMany"], "storageClassName": "efs"}, True),
        ("eks", {"accessModes": ["ReadWriteMany"], "storageClassName": ""}, True),
        ("eks", {"accessModes": ["ReadWriteOncePod"]}, True),
        ("aks", {"accessModes": ["ReadWriteMany"]}, False),
        ("aks", {"accessModes": ["ReadWriteMany"], "storageClassName": "azurefile-csi"}, True),
        ("gke", {"accessModes": ["ReadWriteMany"], "storageClassName": "premium-rwo"}, False),
        ("gke", {"accessModes": ["ReadOnlyMany"]}, True),
        ("k3s", {"accessModes": ["ReadWriteMany"]}, False),
        ("kind", {"accessModes": ["ReadWriteMany"]}, False),
        ("generic", {"accessModes": ["ReadWriteMany"]}, True),
    ],
)
def test_access_modes_must_be_those_of_the_storage_class(profile: str, volume: dict[str, Any], possible: bool) -> None:
    volume = {"size": "1Gi", **volume}
    expected = [] if possible else [("KG0319", "spec.store.volume.accessModes")]
    assert problem_paths(model(store={"volume": volume}), context(profile)) == expected
    output = {"volume": volume}
    expected = [] if possible else [("KG0319", "spec.output.volume.accessModes")]
    assert problem_paths(job(output=output), context(profile)) == expected


@pytest.mark.parametrize(
    ("profile", "name", "known"),
    [
        ("aks", "efs", False),
        ("aks", "standard-rwx", False),
        ("eks", "azurefile-csi-premium", False),
        ("gke", "gp3", False),
        ("kind", "managed-csi", False),
        ("k3s", "standard", True),
        ("aks", "azurefile-csi-premium", True),
        ("gke", "standard", True),
        ("aks", "fast-ssd", True),
        ("aks", "", True),
        ("aks", None, True),
        ("generic", "efs", True),
    ],
)
def test_a_storage_class_of_another_cloud_is_reported(profile: str, name: str | None, known: bool) -> None:
    volume = {"size": "1Gi", **({} if name is None else {"storageClassName": name})}
    where = context(profile)
    for field, found in (
        ("spec.store.volume", model(store={"volume": volume})),
        ("spec.output.volume", job(output={"volume": volume})),
        ("spec.storage", topology(engine="vllm", model={"huggingFace": {"repo": "o/n"}}, storage=volume)),
    ):
        expected = [] if known else [("KG0451", f"{field}.storageClassName")]
        assert [each for each in problem_paths(found, where) if each[0] == "KG0451"] == expected
    # The environment has a class of this name, which kaigen.yaml says.
    named = configured(where, storage_classes={"shared": name or ""})
    assert problem_paths(model(store={"volume": volume}), named) == []
