"""What specs add to pods: volumes, variables, containers, host names."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.unit.compile.specs import Block, Object, context, job, model, pod, problem_paths, topology
from tests.unit.compile.topologies import CONTAINER, group

Make = Callable[..., Block]
KINDS: list[Make] = [job, model, lambda **spec: topology(**CONTAINER, **spec)]
every_kind = pytest.mark.parametrize("make", KINDS, ids=["Job", "Model", "Topology"])
DATA = {"data": {"claimName": "datasets", "mountPath": "/data"}}


def named(items: list[Object]) -> dict[str, Object]:
    """Return items of a list by name, without the name."""
    return {item["name"]: {key: value for key, value in item.items() if key != "name"} for item in items}


@every_kind
@pytest.mark.parametrize(("target", "expected"), [("1.34", ["KG0346"]), ("1.35", [])])
def test_older_clusters_have_images_as_volumes_behind_a_gate(make: Make, target: str, expected: list[str]) -> None:
    block = make(volumes={"files": {"image": "registry.example/data:1", "mountPath": "/files"}})
    found = problem_paths(block, context(target=target))
    assert [code for code, path in found if path == "spec.volumes.files.image"] == expected


@every_kind
def test_volumes_are_mounted_in_the_main_container(make: Make) -> None:
    volumes = {
        **DATA,
        "conf": {"configMap": {"name": "c", "items": {"k": "a/b"}, "optional": True}, "mountPath": "/conf"},
        "keys": {"secret": {"name": "s"}, "mountPath": "/keys", "subPath": "a"},
        "logs": {"emptyDir": {"sizeLimit": "1Gi"}},
        "big": {"ephemeral": {"size": "1Gi", "storageClassName": "fast"}, "mountPath": "/big"},
        "files": {"image": "registry.example/data:1", "mountPath": "/files"},
    }
    plain, found = pod(make()), pod(make(volumes=volumes))
    own = named(plain.get("volumes", []))
    assert named(found["volumes"]) == {
        **own,
        "data": {"persistentVolumeClaim": {"claimName": "datasets"}},
        "conf": {"configMap": {"name": "c", "items": [{"key": "k", "path": "a/b"}], "optional": True}},
        "keys": {"secret": {"secretName": "s"}},
        "logs": {"emptyDir": {"sizeLimit": "1Gi"}},
        "files": {"image": {"reference": "registry.example/data:1"}},
        "big": {
            "ephemeral": {
                "volumeClaimTemplate": {
                    "spec": {
                        "accessModes": ["ReadWriteOnce"],
                        "storageClassName": "fast",
                        "resources": {"requests": {"storage": "1Gi"}},
                    }
                }
            }
        },
    }
    mounts = plain["containers"][0].get("volumeMounts", [])
    assert found["containers"][0]["volumeMounts"] == [
        *mounts,
        {"name": "data", "mountPath": "/data"},
        {"name": "conf", "mountPath": "/conf", "readOnly": True},
        {"name": "keys", "mountPath": "/keys", "subPath": "a", "readOnly": True},
        {"name": "big", "mountPath": "/big"},
        {"name": "files", "mountPath": "/files", "readOnly": True},
    ]


@every_kind
def test_variables_come_from_objects(make: Make) -> None:
    sources = [{"secret": {"name": "s"}}, {"config": {"name": "c"}, "prefix": "P_", "optional": True}]
    (container,) = pod(make(envFrom=sources))["containers"]
    assert container["envFrom"] == [
        {"secretRef": {"name": "s"}},
        {"prefix": "P_", "configMapRef": {"name": "c", "optional": True}},
    ]


@every_kind
def test_sidecars_start_first_and_init_containers_last(make: Make) -> None:
    plain = pod(make())
    found = pod(make(sidecars={"proxy": {"image": "p"}}, initContainers={"prepare": {"image": "q"}}))
    first, *own, last = found["initContainers"]
    assert (first["name"], first["restartPolicy"]) == ("proxy", "Always")
    assert own == plain.get("initContainers", [])
    assert last["name"] == "prepare"
    assert "restartPolicy" not in last
    assert found["containers"] == plain["containers"]


@every_kind
def test_further_containers_are_hardened(make: Make) -> None:
    found = pod(make(sidecars={"proxy": {"image": "p"}}, initContainers={"prepare": {"image": "q"}}))
    added = [each for each in found["initContainers"] if each["name"] in {"proxy", "prepare"}]
    for container in added:
        assert container["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }
        assert container["resources"] == {"requests": {"cpu": "50m", "memory": "128Mi"}, "limits": {"memory": "128Mi"}}


@every_kind
def test_pods_have_host_names_dns_and_pull_secrets(make: Make) -> None:
    spec: Object = {
        "hostname": "h",
        "dnsPolicy": "None",
        "dnsConfig": {"nameservers": ["10.0.0.1"]},
        "hostAliases": [{"ip": "10.0.0.2", "hostnames": ["a"]}],
    }
    image = {"ref": "p", "pullSecrets": [{"name": "second"}]}
    found = pod(make(**spec, imagePullSecrets=[{"name": "first"}], sidecars={"proxy": {"image": image}}))
    assert {key: found[key] for key in spec} == spec
    assert found["imagePullSecrets"] == [{"name": "second"}, {"name": "first"}]


def test_the_downloader_has_variables_of_the_spec() -> None:
    (container,) = pod(model(env={"HTTPS_PROXY": "http://proxy"}))["containers"]
    assert container["env"][-1] == {"name": "HTTPS_PROXY", "value": "http://proxy"}
    assert problem_paths(model(env={"KAIGEN_APP": "x"})) == [("KG0313", "spec.env.KAIGEN_APP")]


def test_every_pod_of_a_group_has_the_sidecar() -> None:
    spec = {"model": {"folder": "/weights"}, "image": "vllm/vllm-openai:v0.25.1", "resources": {"gpus": 1}}
    block = topology(**spec, shape={"nodes": 2}, sidecars={"agent": {"image": "a"}}, volumes=DATA)
    for found in group(block):
        assert [each["name"] for each in found["initContainers"]] == ["agent"]
        assert found["containers"][0]["volumeMounts"][-1] == {"name": "data", "mountPath": "/data"}


def test_pods_request_further_resources() -> None:
    extra = {"vpc.amazonaws.com/efa": 4, "hugepages-2Mi": "5Gi"}
    resources = pod(job(resources={"gpus": 8, "extra": extra}))["containers"][0]["resources"]
    for part in (resources["requests"], resources["limits"]):
        assert (part["vpc.amazonaws.com/efa"], part["hugepages-2Mi"]) == ("4", "5Gi")
    clash = job(resources={"gpus": 8, "extra": {"nvidia.com/gpu": 1}})
    assert problem_paths(clash) == [("KG0325", "spec.resources.extra.nvidia.com/gpu")]


def test_pods_have_a_scheduler() -> None:
    assert pod(job(placement={"schedulerName": "volcano"}))["schedulerName"] == "volcano"
    assert "schedulerName" not in pod(job())


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({"volumes": {"scratch": {"emptyDir": {}}}}, ("KG0325", "spec.volumes.scratch")),
        ({"volumes": {"output": {"emptyDir": {}}}}, ("KG0325", "spec.volumes.output")),
        ({"sidecars": {"run": {"image": "a"}}}, ("KG0325", "spec.sidecars.run")),
        ({"initContainers": {"fetch-inputs": {"image": "a"}}}, ("KG0325", "spec.initContainers.fetch-inputs")),
        (
            {"sidecars": {"a": {"image": "a"}}, "initContainers": {"a": {"image": "a"}}},
            ("KG0325", "spec.initContainers.a"),
        ),
        (
            {"sidecars": {"a": {"image": "a", "mounts": {"dta": "/d"}}}, "volumes": DATA},
            ("KG0326", "spec.sidecars.a.mounts.dta"),
        ),
        (
            {
                "initContainers": {"a": {"image": "a", "mounts": {"data": "/d", "output": {"path": "/d/"}}}},
                "volumes": DATA,
            },
            ("KG0314", "spec.initContainers.a.mounts.output"),
        ),
        ({"volumes": {"x": {"claimName": "c", "mountPath": "/output/"}}}, ("KG0314", "spec.volumes.x.mountPath")),
        ({"volumes": {**DATA, "y": {"claimName": "c", "mountPath": "/data"}}}, ("KG0314", "spec.volumes.y.mountPath")),
        ({"volumes": {"x": {"claimName": "c", "mountPath": "/inputs/x"}}}, ("KG0314", "spec.volumes.x.mountPath")),
        ({"nodes": 2, "hostname": "h"}, ("KG0340", "spec.hostname")),
    ],
)
def test_what_is_in_the_way_of_kaigens_own_is_reported(spec: dict[str, Any], expected: tuple[str, str]) -> None:
    inputs = [{"url": "https://a.example/x"}]
    output = {"volume": {"size": "1Gi", "accessModes": ["ReadWriteMany"]}}
    assert problem_paths(job(inputs=inputs, output=output, **spec)) == [expected]


def test_kaigens_volumes_can_be_mounted_in_other_containers() -> None:
    block = job(
        output={"volume": {"size": "1Gi"}},
        sidecars={"upload": {"image": "a", "mounts": {"output": {"path": "/out", "readOnly": True}}}},
    )
    (sidecar,) = pod(block)["initContainers"]
    assert sidecar["volumeMounts"] == [{"name": "output", "mountPath": "/out", "readOnly": True}]
