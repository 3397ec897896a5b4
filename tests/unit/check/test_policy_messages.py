"""What each policy says: the place, the message, the hint and the severity of its findings."""

from __future__ import annotations

from typing import Any

import pytest

from kaigen.check.policy import ALTERNATIVES, check_policy
from kaigen.diagnostics.diagnostic import Severity
from kaigen.kubernetes.names import LABEL_FORM
from tests.unit.check.example_objects import example
from tests.unit.check.mutations import at

Object = dict[str, Any]
SERVER = ("spec", "template", "spec", "containers", 0)
CONTAINER = "spec.template.spec.containers[0]"
KIB = 1024


def shown(obj: Object) -> list[tuple[str, str, str]]:
    """Place, message and hint of each finding."""
    return [(each.where, each.message, each.hint) for each in check_policy(obj)]


def changed(kind: str, place: tuple[str | int, ...], value: object) -> Object:
    """The example of a kind with one value changed."""
    obj = example(kind)
    at(obj, place[:-1])[place[-1]] = value
    return obj


def test_an_unknown_level_raises_value_error() -> None:
    message = "no Pod Security level 'strict'; there are privileged, baseline, restricted"
    with pytest.raises(ValueError, match=f"^{message}$"):
        check_policy(example("Pod"), pod_security="strict")


def test_a_generated_name_is_explained() -> None:
    obj: Object = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"generateName": "Tune-"}}
    form = "lower-case letters, digits, '-' and '.', starting and ending with a letter or digit"
    assert shown(obj) == [
        ("metadata.generateName", f"`Tune-` is not a valid prefix of a name; allowed: {form}", ""),
        (
            "metadata.generateName",
            "a generated name makes a new object at every sync",
            "set metadata.name; append a hash of the content where each change must make a new object",
        ),
    ]


@pytest.mark.parametrize(("metadata", "where"), [({}, ""), ({"labels": {}}, "metadata")])
def test_a_missing_name_is_reported_where_it_belongs(metadata: Object, where: str) -> None:
    (finding,) = check_policy({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata})
    assert finding.message == "the object has no name"
    assert finding.path == ((where,) if where else ())


@pytest.mark.parametrize(
    ("kind", "place", "value", "findings"),
    [
        ("ConfigMap", ("metadata", "name"), "A", [
            ("metadata.name", "`A` is not a valid name; allowed: lower-case letters, digits, '-' and '.', "
             "starting and ending with a letter or digit", "use `a`")]),
        ("ConfigMap", ("metadata", "name"), "a" * 254, [
            ("metadata.name", "the name has 254 characters; the limit for a ConfigMap is 253", "")]),
        ("ConfigMap", ("metadata", "namespace"), "a" * 64, [
            ("metadata.namespace", "the name has 64 characters; the limit for a Namespace is 63", "")]),
        ("ConfigMap", ("metadata", "namespace"), "a.b", [
            ("metadata.namespace", f"`a.b` is not a valid name; allowed: {LABEL_FORM}", "use `a-b`")]),
        ("ConfigMap", ("metadata", "labels"), {"a b": "c", "d": "e f", "g": "h" * 64, "i": 1, "j": ""}, [
            ('metadata.labels["a b"]', "`a b` is not a valid label key", ""),
            ("metadata.labels.d",
             "`e f` is not a valid label value: letters, digits, and '-', '_', '.' between them", ""),
            ("metadata.labels.g", "the value has 64 characters; the limit for a label is 63", "")]),
        ("ConfigMap", ("metadata", "annotations"), {"a b": "c"}, [
            ('metadata.annotations["a b"]', "`a b` is not a valid annotation key", "")]),
        ("ConfigMap", ("metadata", "annotations"), {"ab": "c" * (256 * KIB - 1)}, [
            ("metadata.annotations", f"the annotations have {256 * KIB + 1} bytes; the limit is {256 * KIB}", "")]),
        ("NodePool", ("metadata", "namespace"), "ai", [
            ("metadata.namespace", "a NodePool belongs to no namespace", "remove metadata.namespace")]),
        ("Deployment", ("status",), {"replicas": 1}, [
            ("status", "the status field is written by a controller", "remove it")]),
        ("Deployment", ("spec", "template", "metadata", "annotations"), {"a b": "c"}, [
            ('spec.template.metadata.annotations["a b"]', "`a b` is not a valid annotation key", "")]),
        ("Deployment", ("spec", "template", "spec", "nodeSelector"), {"a b": "c"}, [
            ('spec.template.spec.nodeSelector["a b"]', "`a b` is not a valid label key", "")]),
        ("Deployment", ("spec", "template", "spec", "volumes", 1, "name"), "a.b", [
            ("spec.template.spec.volumes[1].name", f"`a.b` is not a valid volume name: {LABEL_FORM}",
             "use `a-b`")]),
        ("Deployment", (*SERVER, "name"), "A_b", [
            (f"{CONTAINER}.name", f"`A_b` is not a valid container name: {LABEL_FORM}", "use `a-b`")]),
        ("Deployment", (*SERVER, "name"), "a" * 64, [
            (f"{CONTAINER}.name", "the name has 64 characters; the limit for a container is 63", "")]),
        ("Deployment", (*SERVER, "name"), "wait-model", [
            (f"{CONTAINER}.name", "the name `wait-model` is already used in initContainers", "")]),
        ("Deployment", (*SERVER, "env", 0, "name"), "1ST", [
            (f"{CONTAINER}.env[0].name", "`1ST` is not a valid variable name: letters, digits, '_', '-', '.', "
             "and no leading digit", "")]),
        ("Deployment", (*SERVER, "ports", 0, "name"), "a" * 16, [
            (f"{CONTAINER}.ports[0].name",
             f"the port name `{'a' * 16}` has 16 characters; the limit is 15", "")]),
        ("Deployment", (*SERVER, "ports", 0, "name"), "80", [
            (f"{CONTAINER}.ports[0].name",
             "`80` is not a valid port name: lower-case letters, digits and single '-' between them", "")]),
        ("Deployment", (*SERVER, "ports", 1, "name"), "http", [
            (f"{CONTAINER}.ports[1].name", "duplicate port name `http`", "")]),
        ("Service", ("spec", "selector"), {"a b": "c"}, [
            ('spec.selector["a b"]', "`a b` is not a valid label key", "")]),
        ("Service", ("spec", "ports"), [{"port": 1}, {"port": 2}], [
            ("spec.ports[0]", "a Service with several ports needs a name for each", ""),
            ("spec.ports[1]", "a Service with several ports needs a name for each", "")]),
        ("Service", ("spec", "ports"), [{"port": 1, "name": "a"}, {"port": 2, "name": "a"}], [
            ("spec.ports[1].name", "duplicate port name `a`", "")]),
        ("Service", ("spec", "ports"), [{"port": 1, "name": "a" * 63}], []),
        ("Service", ("spec", "ports"), [{"port": 1, "name": "a" * 64}], [
            ("spec.ports[0].name", f"`{'a' * 64}` is not a valid port name: {LABEL_FORM}", "")]),
        ("Service", ("spec", "ports"), [{"port": 1, "targetPort": "A"}], [
            ("spec.ports[0].targetPort",
             "`A` is not a valid port name: lower-case letters, digits and single '-' between them", "")]),
        ("ConfigMap", ("data",), {"a/b": "", ".": "", "a" * 253: "", "tokenizer.bin": ""}, [
            ('data["a/b"]', "`a/b` is not a valid key: up to 253 letters, digits, '-', '_' and '.'", ""),
            ('data["."]', "`.` is not a valid key: up to 253 letters, digits, '-', '_' and '.'", ""),
            ('binaryData["tokenizer.bin"]', "the key `tokenizer.bin` is also in data", "")]),
    ],
)  # fmt: skip
def test_a_finding_has_a_place_a_message_and_a_hint(
    kind: str, place: tuple[str | int, ...], value: object, findings: list[tuple[str, str, str]]
) -> None:
    assert shown(changed(kind, place, value)) == findings


def test_the_value_of_a_secret_is_reported_at_its_key() -> None:
    obj: Object = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a"}, "data": {"b": "Yg=="}}
    ((where, message, hint),) = shown(obj)
    assert (where, message) == ("data.b", "the Secret contains a value for `b`")
    assert hint == ALTERNATIVES


@pytest.mark.parametrize(
    ("size", "message", "hint"),
    [
        (256 * KIB, "", ""),
        (256 * KIB + 1,
         f"the ConfigMap has {256 * KIB + 1} bytes; client-side apply stores a copy of at most {256 * KIB}",
         "sync it with server-side apply"),
        (1024 * KIB,
         f"the ConfigMap has {1024 * KIB} bytes; client-side apply stores a copy of at most {256 * KIB}",
         "sync it with server-side apply"),
        (1024 * KIB + 1, f"the ConfigMap has {1024 * KIB + 1} bytes; the limit is {1024 * KIB}",
         "store the data in a volume or an image"),
    ],
)  # fmt: skip
def test_a_config_map_has_two_limits(size: int, message: str, hint: str) -> None:
    obj: Object = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "a"},
        "data": {"a": "x" * (size - 6)},
        "binaryData": {"b": "eHh4" * 2},
    }
    assert shown(obj) == ([("", message, hint)] if message else [])


@pytest.mark.parametrize(
    ("requests", "limits", "findings"),
    [
        ({"memory": "512m"}, {}, [
            ("requests.memory", "memory 512m is not a whole number of bytes", "did you mean 512Mi?")]),
        ({"ephemeral-storage": "0.5"}, {}, [
            ("requests.ephemeral-storage", "ephemeral-storage 0.5 is not a whole number of bytes", "")]),
        ({"memory": 16}, {}, [("requests.memory", "memory 16 is 16 bytes", "did you mean `16Gi`?")]),
        ({"memory": "512"}, {}, [("requests.memory", "memory 512 is 512 bytes", "did you mean `512Mi`?")]),
        ({"memory": 134217728, "cpu": 96}, {}, []),
        ({"cpu": 4000}, {}, [("requests.cpu", "cpu 4000 is 4000 CPUs", "did you mean `4000m`?")]),
        ({"ephemeral-storage": 20}, {}, [
            ("requests.ephemeral-storage", "ephemeral-storage 20 is 20 bytes", "did you mean `20Gi`?")]),
        ({"cpu": "-1"}, {}, [("requests.cpu", "cpu must not be negative: -1", "")]),
        ({"cpu": "0"}, {"memory": "1Gi"}, []),
        ({}, {"gpu": 1}, [
            ("limits.gpu", "unknown resource `gpu`", "use the full name of the device, such as nvidia.com/gpu")]),
        ({}, {"a b/gpu": 1}, [('limits["a b/gpu"]', "unknown resource `a b/gpu`", "")]),
        ({}, {"nvidia.com/gpu": "500m"}, [
            ('limits["nvidia.com/gpu"]', "nvidia.com/gpu 500m is not a whole number of devices", "")]),
        ({"nvidia.com/gpu": 1}, {}, [
            ('requests["nvidia.com/gpu"]', "nvidia.com/gpu has a request but no limit",
             "set limits: {nvidia.com/gpu: 1}; request and limit must be equal")]),
        ({"nvidia.com/gpu": 1}, {"nvidia.com/gpu": 2}, [
            ('requests["nvidia.com/gpu"]',
             "nvidia.com/gpu has the request 1 and the limit 2; both must be equal", "")]),
        ({"memory": "2Gi"}, {"memory": "2G"}, [
            ("requests.memory", "the memory request of 2Gi exceeds the limit of 2G", "")]),
        ({"memory": "2Gi", "nvidia.com/gpu": 1, "a.b/c": 1}, {"memory": "2Gi", "a.b/c": "1"}, [
            ('requests["nvidia.com/gpu"]', "nvidia.com/gpu has a request but no limit",
             "set limits: {nvidia.com/gpu: 1}; request and limit must be equal")]),
    ],
)  # fmt: skip
def test_a_finding_about_resources_names_the_amounts(
    requests: Object, limits: Object, findings: list[tuple[str, str, str]]
) -> None:
    obj = example("Pod")
    obj["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "1", "memory": "1Gi"} | requests, "limits": limits}
    prefix = "spec.containers[0].resources."
    assert [(where.removeprefix(prefix), *rest) for where, *rest in shown(obj)] == findings


@pytest.mark.parametrize(("resources", "place"), [(None, ""), ({}, ".resources")])
def test_missing_requests_are_a_warning_with_a_hint(resources: Object | None, place: str) -> None:
    obj = example("Pod")
    container = obj["spec"]["containers"][0]
    container.pop("resources", None)
    if resources is not None:
        container["resources"] = resources
    (finding,) = check_policy(obj)
    assert (finding.where, finding.severity) == (f"spec.containers[0]{place}", Severity.WARNING)
    assert finding.message == f"the container `{container['name']}` requests no cpu and no memory"
    assert finding.hint == (
        "set them in resources.requests; without them the scheduler assumes that the container needs nothing"
    )


@pytest.mark.parametrize(
    ("name", "job", "findings"),
    [
        ("a" * 61, {}, [f"its Jobs get names of 65 characters, such as {'a' * 61}-b-0; the limit is 63"]),
        ("a" * 59, {"replicas": 1}, [
            f"its pods get names of 71 characters, such as {'a' * 59}-b-0-0-xxxxx; the limit is 63"]),
        ("a" * 51, {"replicas": 1}, []),
        ("a" * 51, {"replicas": 11}, [
            f"its pods get names of 64 characters, such as {'a' * 51}-b-10-0-xxxxx; the limit is 63"]),
        ("a" * 51, {"replicas": 10}, []),
        ("a" * 51, {"template": {"spec": {"parallelism": 11}}}, [
            f"its pods get names of 64 characters, such as {'a' * 51}-b-0-10-xxxxx; the limit is 63"]),
        ("a" * 51, {"template": {"spec": {"parallelism": 11, "completions": 10}}}, []),
        ("a" * 51, {"replicas": 0}, []),
    ],
)  # fmt: skip
def test_the_longest_names_of_a_jobset_are_shown(name: str, job: Object, findings: list[str]) -> None:
    obj: Object = {
        "apiVersion": "jobset.x-k8s.io/v1alpha2",
        "kind": "JobSet",
        "metadata": {"name": name},
        "spec": {"replicatedJobs": [{"name": "b", **job}]},
    }
    found = [each for each in check_policy(obj) if each.where.startswith("spec")]
    assert [each.message for each in found] == findings
    assert all(each.where == "spec.replicatedJobs[0].name" for each in found)


def test_a_port_name_of_fifteen_characters_is_short_enough() -> None:
    (finding,) = check_policy(changed("Deployment", (*SERVER, "ports", 0, "name"), "A" * 15))
    assert finding.message.startswith(f"`{'A' * 15}` is not a valid port name: ")


def test_a_literal_secret_in_a_variable_is_a_warning_at_its_value() -> None:
    obj = changed("Deployment", (*SERVER, "env", 0), {"name": "DB_PASSWORD", "value": "changeme"})
    (finding,) = check_policy(obj)
    assert (finding.where, finding.severity) == (f"{CONTAINER}.env[0].value", Severity.WARNING)
    assert finding.hint == f"if the value is secret, {ALTERNATIVES}"
