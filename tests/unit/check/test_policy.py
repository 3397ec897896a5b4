"""Names, labels, sizes, resources, and what must not be in Git."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from kaigen.check import codes
from kaigen.check.policy import check_policy
from kaigen.diagnostics.diagnostic import Severity
from kaigen.diagnostics.problem import Problem
from tests.unit.check.example_objects import example, label, objects
from tests.unit.check.mutations import at

Object = dict[str, Any]
SERVER = ("spec", "template", "spec", "containers", 0)


def only(findings: list[Problem]) -> Problem:
    assert len(findings) == 1, findings
    return findings[0]


def named(api_version: str, kind: str, name: str) -> Object:
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": name}}


@pytest.mark.parametrize("obj", objects(), ids=label)
def test_the_examples_meet_all_policies(obj: Object) -> None:
    assert check_policy(obj) == []


@pytest.mark.parametrize(
    ("api_version", "kind", "name"),
    [
        ("v1", "ConfigMap", "a.b-c"),
        ("v1", "ConfigMap", "a" * 253),
        ("v1", "ConfigMap", "2024.facts"),
        ("v1", "Service", "a" * 63),
        ("v1", "Namespace", "2024"),
        ("batch/v1", "Job", "tune.5d41402abc"),
        ("batch/v1", "CronJob", "a" * 52),
        ("apps/v1", "StatefulSet", "a" * 52),
        ("apps/v1", "Deployment", "a" * 64),
        ("rbac.authorization.k8s.io/v1", "Role", "system:Reader_1"),
        ("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet", "a" * 48),
        ("ray.io/v1", "RayService", "a" * 47),
    ],
)
def test_a_valid_name_is_accepted(api_version: str, kind: str, name: str) -> None:
    assert check_policy(named(api_version, kind, name)) == []


@pytest.mark.parametrize(
    ("api_version", "kind", "name", "code", "hint"),
    [
        ("v1", "ConfigMap", "Chat_Params", codes.NAME_INVALID, "use `chat-params`"),
        ("v1", "ConfigMap", "a..b", codes.NAME_INVALID, ""),
        ("v1", "ConfigMap", "-a", codes.NAME_INVALID, "use `a`"),
        ("v1", "ConfigMap", "a\n", codes.NAME_INVALID, "use `a`"),
        ("v1", "ConfigMap", "ä", codes.NAME_INVALID, ""),
        ("v1", "ConfigMap", "a" * 254, codes.NAME_TOO_LONG, ""),
        ("v1", "Service", "4chat", codes.NAME_INVALID, ""),
        ("v1", "Service", "chat.v1", codes.NAME_INVALID, "use `chat-v1`"),
        ("v1", "Service", "a" * 64, codes.NAME_TOO_LONG, ""),
        ("v1", "Namespace", "ai.prod", codes.NAME_INVALID, "use `ai-prod`"),
        ("batch/v1", "Job", "a" * 64, codes.NAME_TOO_LONG, ""),
        ("batch/v1", "CronJob", "a" * 53, codes.NAME_TOO_LONG, ""),
        ("apps/v1", "StatefulSet", "a" * 53, codes.NAME_TOO_LONG, ""),
        ("rbac.authorization.k8s.io/v1", "Role", "a/b", codes.NAME_INVALID, "use `a-b`"),
        ("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet", "a" * 49, codes.NAME_TOO_LONG, ""),
        ("ray.io/v1", "RayCluster", "a" * 54, codes.NAME_TOO_LONG, ""),
        ("keda.sh/v1alpha1", "ScaledObject", "a" * 55, codes.NAME_TOO_LONG, ""),
        ("kueue.x-k8s.io/v1beta2", "LocalQueue", "a" * 64, codes.NAME_TOO_LONG, ""),
    ],
)
def test_an_invalid_name_is_reported(api_version: str, kind: str, name: str, code: str, hint: str) -> None:
    finding = only(check_policy(named(api_version, kind, name)))
    assert (finding.code, finding.path, finding.hint) == (code, ("metadata", "name"), hint)


def test_the_limit_of_a_name_is_explained() -> None:
    finding = only(check_policy(named("batch/v1", "CronJob", "a" * 60)))
    assert (
        finding.message == "the name has 60 characters; the limit for a CronJob is 52: its Jobs add 11 characters to it"
    )


def test_an_object_needs_a_name_and_a_generated_one_is_a_warning() -> None:
    assert only(check_policy({"apiVersion": "v1", "kind": "ConfigMap"})).code == codes.NAME_MISSING
    obj: Object = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"generateName": "tune-"}}
    finding = only(check_policy(obj))
    assert (finding.code, finding.severity) == (codes.NAME_GENERATED, Severity.WARNING)
    obj["metadata"] = {"generateName": "Tune-"}
    assert [f.code for f in check_policy(obj)] == [codes.NAME_INVALID, codes.NAME_GENERATED]


def test_the_names_of_jobs_and_pods_of_a_jobset_are_limited() -> None:
    obj = example("JobSet")
    obj["metadata"]["name"] = "a" * 48  # -node-1-3-xxxxx makes 63
    assert check_policy(obj) == []
    obj["metadata"]["name"] = "a" * 49
    assert "pods get names of 64 characters" in only(check_policy(obj)).message
    obj["metadata"]["name"] = "a" * 57
    assert "Jobs get names of 64 characters" in only(check_policy(obj)).message


def test_a_cluster_scoped_object_has_no_namespace() -> None:
    obj = example("NodePool")
    obj["metadata"]["namespace"] = "ai"
    assert only(check_policy(obj)).code == codes.NAMESPACE_ON_CLUSTER_KIND
    obj = example("ConfigMap")
    obj["metadata"]["namespace"] = "AI"
    assert only(check_policy(obj)).path == ("metadata", "namespace")


@pytest.mark.parametrize(
    ("key", "value", "valid"),
    [
        ("app", "chat", True),
        ("app.kubernetes.io/name", "Chat_1.2", True),
        ("app", "", True),
        ("a" * 63, "b" * 63, True),
        ("a" * 64, "b", False),
        ("app", "b" * 64, False),
        ("app", "v1+cu128", False),
        ("app", "-chat", False),
        ("app/name/x", "chat", False),
        ("App.Example.com/name", "chat", False),
        ("", "chat", False),
        ("/name", "chat", False),
    ],
)
@pytest.mark.parametrize("place", [("metadata",), ("spec", "template", "metadata")])
def test_labels_have_a_syntax(key: str, value: str, valid: bool, place: tuple[str, ...]) -> None:
    obj = example("Deployment")
    at(obj, place)["labels"][key] = value
    findings = check_policy(obj)
    assert ([] if valid else [(codes.LABEL_INVALID, (*place, "labels", key))]) == [(f.code, f.path) for f in findings]


def test_annotations_have_keys_and_a_size() -> None:
    obj = example("ConfigMap")
    obj["metadata"]["annotations"] = {"a b": "", "Example.com/ok": ""}
    wrong = [(codes.ANNOTATION_INVALID, key) for key in ("a b", "Example.com/ok")]
    assert [(f.code, f.path[-1]) for f in check_policy(obj)] == wrong
    obj["metadata"]["annotations"] = {"note": "x" * (256 * 1024 - 4)}
    assert check_policy(obj) == []
    obj["metadata"]["annotations"] = {"note": "x" * (256 * 1024 - 3)}
    assert only(check_policy(obj)).code == codes.TOO_LARGE
    obj["metadata"]["annotations"] = {"note": "ü" * (128 * 1024)}
    assert only(check_policy(obj)).code == codes.TOO_LARGE


def test_a_config_map_has_keys_and_a_size() -> None:
    obj = example("ConfigMap")
    obj["data"] = {"a/b": "", "..": "", "..x": "", "ok.json": ""}
    wrong = [(codes.DATA_KEY_INVALID, ("data", key)) for key in ("a/b", "..", "..x")]
    assert [(f.code, f.path) for f in check_policy(obj)] == wrong
    obj["data"] = {"tokenizer.bin": ""}
    finding = only(check_policy(obj))
    assert (finding.code, finding.path) == (codes.DATA_KEY_INVALID, ("binaryData", "tokenizer.bin"))
    obj["data"] = {"a": "x" * (1024 * 1024 + 1)}
    finding = only(check_policy(obj))
    assert (finding.code, finding.severity) == (codes.TOO_LARGE, Severity.ERROR)
    obj["data"] = {"a": "x" * (512 * 1024)}
    finding = only(check_policy(obj))
    assert (finding.code, finding.severity) == (codes.TOO_LARGE, Severity.WARNING)


@pytest.mark.parametrize(
    ("place", "field", "value", "code"),
    [
        (SERVER, "name", "Server", codes.POD_NAME_INVALID),
        (SERVER, "name", "a" * 64, codes.POD_NAME_INVALID),
        (SERVER, "name", "wait-model", codes.POD_NAME_INVALID),
        (("spec", "template", "spec", "volumes", 0), "name", "my.volume", codes.POD_NAME_INVALID),
        ((*SERVER, "env", 0), "name", "1ST", codes.ENV_NAME_INVALID),
        ((*SERVER, "env", 0), "name", "A=B", codes.ENV_NAME_INVALID),
        ((*SERVER, "ports", 0), "name", "HTTP", codes.PORT_NAME_INVALID),
        ((*SERVER, "ports", 0), "name", "a-name-too-long-", codes.PORT_NAME_INVALID),
        ((*SERVER, "ports", 0), "name", "8080", codes.PORT_NAME_INVALID),
        ((*SERVER, "ports", 0), "name", "a--b", codes.PORT_NAME_INVALID),
        ((*SERVER, "ports", 1), "name", "http", codes.PORT_NAME_INVALID),
        (("spec", "template", "spec"), "nodeSelector", {"gpu": "NVIDIA L4"}, codes.LABEL_INVALID),
    ],
)
def test_names_inside_a_pod_have_a_syntax(place: tuple[str | int, ...], field: str, value: object, code: str) -> None:
    obj = example("Deployment")
    at(obj, place)[field] = value
    finding = only(check_policy(obj))
    assert finding.code == code
    assert finding.path[: len(place) + 1] == (*place, field)


@pytest.mark.parametrize(
    ("ports", "places"),
    [
        ([{"port": 80}], []),
        ([{"port": 80}, {"port": 81, "name": "b"}], [("spec", "ports", 0)]),
        ([{"port": 80, "name": "a"}, {"port": 81, "name": "a"}], [("spec", "ports", 1, "name")]),
        ([{"port": 80, "name": "A"}], [("spec", "ports", 0, "name")]),
        ([{"port": 80, "targetPort": "too-long-a-port-name"}], [("spec", "ports", 0, "targetPort")]),
    ],
)
def test_the_ports_of_a_service_have_names(ports: list[Object], places: list[tuple[str | int, ...]]) -> None:
    obj = example("Service")
    obj["spec"]["ports"] = ports
    assert [(f.code, f.path) for f in check_policy(obj)] == [(codes.PORT_NAME_INVALID, p) for p in places]


@pytest.mark.parametrize(
    ("resources", "shared", "message"),
    [
        ({}, {}, "requests no cpu and no memory"),
        ({"requests": {"cpu": "1"}}, {}, "requests no memory"),
        ({"limits": {"cpu": "1"}}, {"requests": {"cpu": "1"}}, "requests no memory"),
        ({"limits": {"cpu": "1", "memory": "1Gi"}}, {}, None),
        ({}, {"requests": {"cpu": "1", "memory": "1Gi"}}, None),
    ],
)
def test_every_container_should_request_cpu_and_memory(resources: Object, shared: Object, message: str | None) -> None:
    obj = example("Pod")
    obj["spec"]["containers"][0]["resources"] = resources
    obj["spec"]["resources"] = shared
    findings = check_policy(obj)
    if message is None:
        assert findings == []
    else:
        finding = only(findings)
        assert (finding.code, finding.severity) == (codes.REQUEST_MISSING, Severity.WARNING)
        assert message in finding.message


def test_an_ephemeral_container_has_no_resources() -> None:
    obj = example("Pod")
    secure = obj["spec"]["containers"][0]["securityContext"]
    obj["spec"]["ephemeralContainers"] = [{"name": "debug", "image": "x", "securityContext": secure}]
    assert check_policy(obj) == []


@pytest.mark.parametrize(
    ("requests", "limits", "code"),
    [
        ({"nvidia.com/gpu": 1}, {"nvidia.com/gpu": "1"}, None),
        ({}, {"nvidia.com/gpu": 1}, None),
        ({"nvidia.com/gpu": 1}, {}, codes.REQUEST_AND_LIMIT_DISAGREE),
        ({"nvidia.com/gpu": 1}, {"nvidia.com/gpu": 2}, codes.REQUEST_AND_LIMIT_DISAGREE),
        ({"hugepages-2Mi": "1Gi"}, {"hugepages-2Mi": "1Gi"}, None),
        ({"hugepages-2Mi": "1Gi"}, {"hugepages-2Mi": "2Gi"}, codes.REQUEST_AND_LIMIT_DISAGREE),
        ({"memory": "1024Mi"}, {"memory": "1Gi"}, None),
        ({"memory": "2G"}, {"memory": "2Gi"}, None),
        ({"memory": "2Gi"}, {"memory": "2G"}, codes.REQUEST_AND_LIMIT_DISAGREE),
        ({"cpu": "1.5"}, {"cpu": "1500m"}, None),
        ({"cpu": "1501m"}, {"cpu": "1.5"}, codes.REQUEST_AND_LIMIT_DISAGREE),
        ({"cpu": "1e3"}, {"cpu": "1k"}, None),
        ({}, {"gpu": 1}, codes.RESOURCE_NAME_INVALID),
        ({}, {"nvidia.com/gpu": "500m"}, codes.AMOUNT_DOUBTFUL),
        ({"memory": "512m"}, {}, codes.AMOUNT_DOUBTFUL),
        ({"cpu": "-1"}, {}, codes.AMOUNT_DOUBTFUL),
    ],
)
def test_requests_and_limits_must_be_consistent(requests: Object, limits: Object, code: str | None) -> None:
    obj = example("Pod")
    resources = {"requests": {"cpu": "1", "memory": "1Gi"} | requests, "limits": limits}
    obj["spec"]["containers"][0]["resources"] = resources
    assert [f.code for f in check_policy(obj)] == ([code] if code else [])


def test_milli_bytes_are_reported_as_a_typo() -> None:
    obj = example("Pod")
    obj["spec"]["containers"][0]["resources"]["requests"]["memory"] = "512m"
    assert only(check_policy(obj)).hint == "did you mean 512Mi?"


def test_a_secret_with_values_is_refused_and_one_that_sops_encrypted_is_not() -> None:
    secret = named("v1", "Secret", "hf")
    assert check_policy(secret) == []
    secret |= {"stringData": {"token": "hf_x"}, "data": {"other": base64.b64encode(b"x").decode()}}
    assert [(f.code, f.path) for f in check_policy(secret)] == [
        (codes.SECRET_OBJECT, ("data", "other")),
        (codes.SECRET_OBJECT, ("stringData", "token")),
    ]
    secret |= {"stringData": {"token": "ENC[AES256_GCM,data:x]"}, "data": {}, "sops": {"version": "3.9.0"}}
    assert check_policy(secret) == []
    del secret["sops"]
    assert only(check_policy(secret)).code == codes.SECRET_OBJECT


def test_a_credential_is_found_in_any_field() -> None:
    token = "hf_" + "aB3" * 12
    obj = example("Deployment")
    at(obj, SERVER)["args"] = ["--token", token]
    obj["metadata"]["annotations"]["note"] = f"use {token}"
    at(obj, SERVER)["env"][0] = {"name": "NOTE", "value": token}
    found = [(f.code, f.where, f.message) for f in check_policy(obj)]
    assert found == [
        (codes.SECRET_VALUE, "metadata.annotations.note", "looks like a Hugging Face token"),
        (codes.SECRET_VALUE, "spec.template.spec.containers[0].env[0].value", "looks like a Hugging Face token"),
        (codes.SECRET_VALUE, "spec.template.spec.containers[0].args[1]", "looks like a Hugging Face token"),
    ]


def test_a_credential_without_a_known_form_is_found_by_its_name() -> None:
    key = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYzz12345678"
    config = example("ConfigMap")
    config["data"] = {"secretAccessKey": key}
    assert only(check_policy(config)).message == "looks like an AWS secret access key"
    config["data"] = {"sha": key}
    assert check_policy(config) == []
    pod = example("Pod")
    pod["spec"]["containers"][0]["env"] = [{"name": "AWS_SECRET_ACCESS_KEY", "value": key}]
    assert {f.code for f in check_policy(pod)} == {codes.SECRET_VALUE}


@pytest.mark.parametrize(
    ("name", "value", "warned"),
    [
        ("HF_TOKEN", "changeme", True),
        ("DB_PASSWORD", "changeme", True),
        ("WANDB_API_KEY", "changeme", True),
        ("HF_TOKEN", "", False),
        ("HF_TOKEN", "$(OTHER)", False),
        ("HF_TOKEN", "/run/secrets/token", False),
        ("HF_TOKEN_PATH", "changeme", False),
        ("MAX_TOKENS", "512", False),
        ("TOKENIZER", "x", False),
        ("SECRETARY", "x", False),
    ],
)
def test_a_literal_in_a_variable_that_names_a_secret_is_a_warning(name: str, value: str, warned: bool) -> None:
    obj = example("Pod")
    obj["spec"]["containers"][0]["env"] = [{"name": name, "value": value}]
    assert [(f.code, f.severity) for f in check_policy(obj)] == (
        [(codes.SECRET_LITERAL, Severity.WARNING)] if warned else []
    )


def test_a_status_is_a_warning() -> None:
    finding = only(check_policy(example("Deployment") | {"status": {"replicas": 1}}))
    assert (finding.code, finding.severity) == (codes.STATUS_PRESENT, Severity.WARNING)
    assert check_policy(example("Deployment") | {"status": {}}) == []


@pytest.mark.parametrize("junk", [None, 7, "x", [], [[]], [None], {}, {"name": []}, {1: 2}, [{"name": {}}]])
@pytest.mark.parametrize("kind", ["Deployment", "Service", "ConfigMap", "JobSet", "CronJob"])
def test_values_of_the_wrong_type_are_ignored(kind: str, junk: object) -> None:
    """The schema check reports them; the policies must not fail."""
    for field in list(example(kind)):
        if field not in ("apiVersion", "kind"):
            check_policy(example(kind) | {field: junk})
    for field in example(kind).get("spec", {}):
        obj = example(kind)
        obj["spec"][field] = junk
        check_policy(obj)
    if kind == "Deployment":
        for place in (SERVER, ("spec", "template", "spec")):
            for field in at(example(kind), place):
                obj = example(kind)
                at(obj, place)[field] = junk
                check_policy(obj)


def test_sizes_of_volumes_without_a_unit_are_reported() -> None:
    requests: dict[str, Any] = {"spec": {"resources": {"requests": {"storage": 50}}}}
    claim: dict[str, Any] = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "a"}, **requests}
    volumes = [
        {"name": "cache", "emptyDir": {"sizeLimit": "10"}},
        {"name": "fast", "ephemeral": {"volumeClaimTemplate": requests}},
        {"name": "whole", "emptyDir": {"sizeLimit": "1Gi"}},
        {"name": "free", "emptyDir": {}},
    ]
    pod = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [], "volumes": volumes}}
    owner: dict[str, Any] = {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": {"name": "a"},
        "spec": {"template": pod, "volumeClaimTemplates": [{"metadata": {"name": "a"}, **requests}]},
    }
    found = [
        (problem.where, problem.message, problem.hint)
        for obj in (claim, owner)
        for problem in check_policy(obj, pod_security="privileged")
        if problem.code == "KG0563"
    ]
    fifty = ("storage 50 is 50 bytes", "did you mean `50Gi`?")
    template = "spec.template.spec.volumes"
    size = "spec.resources.requests.storage"
    assert found == [
        (size, *fifty),
        (f"spec.volumeClaimTemplates[0].{size}", *fifty),
        (f"{template}[0].emptyDir.sizeLimit", "storage 10 is 10 bytes", "did you mean `10Gi`?"),
        (f"{template}[1].ephemeral.volumeClaimTemplate.{size}", *fifty),
    ]


@pytest.mark.parametrize(
    ("size", "memory", "found"),
    [
        ("64Gi", ["16Gi", "32Gi"], ["the volume is 64Gi of memory, but the limit of its container is 32Gi"]),
        ("32Gi", ["16Gi", "32Gi"], []),
        ("64Gi", ["16Gi", None], []),
        ("64Gi", [], []),
    ],
)
def test_a_volume_in_memory_fits_into_a_container(size: str, memory: list[str | None], found: list[str]) -> None:
    containers = [
        {
            "name": f"c{number}",
            "resources": {"limits": {"memory": limit} if limit else {}},
            "volumeMounts": [{"name": "shm", "mountPath": "/dev/shm"}],
        }
        for number, limit in enumerate(memory)
    ]
    volumes = [{"name": "shm", "emptyDir": {"medium": "Memory", "sizeLimit": size}}]
    spec = {"containers": containers, "volumes": volumes}
    pod: dict[str, Any] = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}, "spec": spec}
    problems = [each for each in check_policy(pod, pod_security="privileged") if each.code == "KG0563"]
    assert [each.message for each in problems] == found
    assert all(each.severity is Severity.WARNING for each in problems)


def test_fields_of_a_live_object_are_reported_where_they_are() -> None:
    annotation = "kubectl.kubernetes.io/last-applied-configuration"
    metadata = {"name": "a", "uid": "x", "resourceVersion": "7", "managedFields": [{}], "generation": 3}
    metadata |= {"creationTimestamp": "2026-01-01T00:00:00Z", "annotations": {annotation: "{}"}}
    service: dict[str, Any] = {"apiVersion": "v1", "kind": "Service", "metadata": metadata}
    service["spec"] = {"clusterIP": "10.0.0.7", "ports": [{"port": 80}]}
    found = [(each.path[-1], each.severity) for each in check_policy(service) if each.code == codes.LIVE_FIELD]
    refused = [(name, Severity.ERROR) for name in ("managedFields", "resourceVersion", "uid")]
    ignored = [(name, Severity.WARNING) for name in ("creationTimestamp", "generation", annotation, "clusterIP")]
    assert found == [*refused, *ignored]


def test_a_generated_manifest_and_a_fixed_address_are_no_copy_of_a_live_object() -> None:
    service: dict[str, Any] = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "a"}}
    service["metadata"]["creationTimestamp"] = None
    service["spec"] = {"clusterIP": "10.0.0.7", "ports": [{"port": 80}]}
    assert [each for each in check_policy(service) if each.code == codes.LIVE_FIELD] == []


def requests(cpu: str, memory: str) -> Object:
    return {"name": "main", "image": "a:1", "resources": {"requests": {"cpu": cpu, "memory": memory}}}


def term(*types: str) -> Object:
    expression = {"key": "node.kubernetes.io/instance-type", "operator": "In", "values": list(types)}
    return {"matchExpressions": [expression] if types else []}


def required(*terms: Object) -> Object:
    node = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": list(terms)}}
    return {"affinity": {"nodeAffinity": node}}


SMALL = {"nodeSelector": {"node.kubernetes.io/instance-type": "g6.xlarge"}}


@pytest.mark.parametrize(
    ("nodes", "cpu", "memory", "largest"),
    [
        (SMALL, "4", "16Gi", ""),
        (SMALL, "4100m", "1Gi", "`g6.xlarge` has 4 CPUs and 16Gi"),
        (SMALL, "1", "17Gi", "`g6.xlarge` has 4 CPUs and 16Gi"),
        (required(term("g6.xlarge", "g6.2xlarge")), "8", "32Gi", ""),
        (required(term("g6.xlarge"), term("g6.2xlarge")), "9", "1Gi", "`g6.2xlarge` has 8 CPUs and 32Gi"),
        (required(term("g6.xlarge"), term()), "900", "9Ti", ""),
        (required(term("g6.xlarge", "p6e-gb200.36xlarge")), "900", "9Ti", ""),
        ({}, "900", "9Ti", ""),
    ],
)
def test_one_allowed_instance_type_has_what_a_pod_requests(nodes: Object, cpu: str, memory: str, largest: str) -> None:
    spec = {"containers": [requests(cpu, memory)], **nodes}
    body: Object = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}, "spec": spec}
    found = [each for each in check_policy(body, pod_security="privileged") if each.code == codes.NODE_TOO_SMALL]
    assert [each.message.partition(", but ")[2] for each in found] == ([largest] if largest else [])


@pytest.mark.parametrize(
    ("names", "resource", "count", "found"),
    [
        (("p5.48xlarge",), "nvidia.com/gpu", 8, ""),
        (("p5.48xlarge",), "nvidia.com/gpu", 16, "the pod requests 16 nvidia.com/gpu, but `p5.48xlarge` has 8"),
        (("g6.xlarge", "g6.12xlarge"), "nvidia.com/gpu", 4, ""),
        (
            ("g6.xlarge", "g6.12xlarge"),
            "nvidia.com/gpu",
            5,
            "the pod requests 5 nvidia.com/gpu, but `g6.12xlarge` has 4",
        ),
        (("g6.xlarge", "acme.large"), "nvidia.com/gpu", 5, ""),
        (("p5.48xlarge",), "nvidia.com/mig-1g.10gb", 16, ""),
    ],
)
def test_one_allowed_instance_type_has_the_gpus_that_a_pod_requests(
    names: tuple[str, ...], resource: str, count: int, found: str
) -> None:
    container = requests("1", "1Gi")
    container["resources"]["limits"] = {resource: count}
    spec = {"containers": [container], **required(term(*names))}
    body: Object = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}, "spec": spec}
    findings = [each for each in check_policy(body, pod_security="privileged") if each.code == codes.NODE_TOO_SMALL]
    assert [each.message for each in findings] == ([found] if found else [])
