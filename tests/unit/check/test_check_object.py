from __future__ import annotations

from typing import Any

import pytest

from kaigen.check import codes
from kaigen.check.schema_check import check_object
from kaigen.diagnostics.diagnostic import Severity
from kaigen.diagnostics.problem import Problem
from kaigen.kubernetes.schemas import SUPPORTED_VERSIONS, is_cluster_scoped
from tests.unit.check.example_objects import example
from tests.unit.check.mutations import at
from tests.unit.check.mutations import place as named

Object = dict[str, Any]
POD = ("spec", "template", "spec")
SERVER = (*POD, "containers", 0)


def deployment(place: tuple[str | int, ...] = (), **fields: object) -> Object:
    """The example Deployment with some fields of one place set; None takes a field away."""
    obj = example("Deployment")
    target = at(obj, place)
    for name, value in fields.items():
        if value is None:
            del target[name]
        else:
            target[name] = value
    return obj


def only(findings: list[Problem]) -> Problem:
    assert len(findings) == 1, findings
    return findings[0]


def test_supported_versions_are_five_consecutive_minor_versions_oldest_first() -> None:
    minors = [int(version.removeprefix("1.")) for version in SUPPORTED_VERSIONS]
    assert minors == list(range(minors[0], minors[0] + 5))


def test_an_unsupported_version_raises_value_error() -> None:
    with pytest.raises(ValueError, match=r"no schemas of Kubernetes 1\.12; there are 1\.33, "):
        check_object(example("Job"), target="1.12")


def test_an_unknown_kind_suggests_the_nearest() -> None:
    finding = only(check_object({"apiVersion": "apps/v1", "kind": "Deploiment"}))
    assert finding == Problem(codes.UNKNOWN_KIND, "unknown kind `Deploiment`", ("kind",), "did you mean `Deployment`?")


def test_a_kind_with_the_wrong_group_suggests_the_right_one() -> None:
    finding = only(check_object({"apiVersion": "v1", "kind": "Deployment"}))
    assert (finding.message, finding.hint) == ("no kind `Deployment` in v1", "use apiVersion apps/v1")


@pytest.mark.parametrize(
    ("api_version", "kind", "target", "message", "hint"),
    [
        ("batch/v1beta1", "CronJob", "1.36", "it was removed after 1.24", "use apiVersion batch/v1"),
        ("policy/v1beta1", "PodSecurityPolicy", "1.36", "it was removed after 1.24", ""),
        ("autoscaling/v2beta2", "HorizontalPodAutoscaler", "1.36", "it was removed after 1.25", "use apiVersion "),
        (
            "resource.k8s.io/v1",
            "ResourceClaim",
            "1.33",
            "it was added in 1.34",
            "use apiVersion resource.k8s.io/v1beta",
        ),
    ],
)
def test_a_kind_that_the_version_does_not_serve_names_the_first_or_last_version(
    api_version: str, kind: str, target: str, message: str, hint: str
) -> None:
    finding = only(check_object({"apiVersion": api_version, "kind": kind}, target=target))
    assert finding.code == codes.KIND_NOT_SERVED
    assert finding.message.endswith(message)
    assert finding.hint.startswith(hint)


def test_a_deprecated_version_is_a_warning_that_names_the_new_one() -> None:
    obj = example("LocalQueue") | {"apiVersion": "kueue.x-k8s.io/v1beta1"}
    finding = only(check_object(obj))
    assert (finding.code, finding.severity) == (codes.KIND_DEPRECATED, Severity.WARNING)
    assert finding.hint == "use apiVersion kueue.x-k8s.io/v1beta2"


@pytest.mark.parametrize(
    ("obj", "message"),
    [
        ({}, "missing field `apiVersion`"),
        ({"apiVersion": "v1"}, "missing field `kind`"),
        ({"apiVersion": 1, "kind": "Pod"}, "must be a string, not the number 1"),
        ({"apiVersion": "v1", "kind": ["Pod"]}, "must be a string, not a list"),
    ],
)
def test_an_object_needs_an_api_version_and_a_kind(obj: Object, message: str) -> None:
    assert only(check_object(obj)).message == message


def test_a_typo_in_a_field_is_reported_with_its_path_and_the_nearest_field() -> None:
    obj = deployment(SERVER, volumeMount=[])
    finding = only(check_object(obj))
    assert finding.code == codes.UNKNOWN_FIELD
    assert finding.where == "spec.template.spec.containers[0].volumeMount"
    obj = deployment(("spec",), strategy={"typ": "Recreate"})
    assert only(check_object(obj)).hint == "did you mean `type`?"
    obj = deployment(POD, nodeselector={}, nodeSelector=None)
    assert only(check_object(obj)).hint == "did you mean `nodeSelector`?"


def test_all_problems_of_an_object_are_returned_in_its_order() -> None:
    obj = deployment(SERVER, image=7, stdin="yes", ports=[{"name": "http"}])
    obj["spec"]["replicas"] = "2"
    obj["spec"]["extra"] = 1
    found = {(f.where, f.code) for f in check_object(obj)}
    assert found == {
        ("spec.replicas", codes.WRONG_TYPE),
        ("spec.extra", codes.UNKNOWN_FIELD),
        ("spec.template.spec.containers[0].image", codes.WRONG_TYPE),
        ("spec.template.spec.containers[0].stdin", codes.WRONG_TYPE),
        ("spec.template.spec.containers[0].ports[0]", codes.MISSING_FIELD),
    }


@pytest.mark.parametrize(
    ("place", "field", "value", "message", "hint"),
    [
        (("spec",), "replicas", "2", "must be an integer, not `2`", "write it without quotes: 2"),
        (("spec",), "replicas", 2.0, "must be an integer, not the number 2.0", ""),
        (("spec",), "replicas", True, "must be an integer, not true", ""),
        (("spec",), "replicas", 2**31, "2147483648 exceeds 32 bits", ""),
        (("spec",), "replicas", -1, "must be at least 0, not -1", ""),
        (("spec",), "paused", "true", "must be true or false, not `true`", "write it without quotes: true"),
        (POD, "hostname", 8, "must be a string, not the number 8", 'write it in quotes: "8"'),
        (POD, "restartPolicy", "always", "must be one of Always, Never, OnFailure, not `always`",
         "did you mean `Always`?"),
        (POD, "dnsPolicy", 3,
         "must be one of ClusterFirst, ClusterFirstWithHostNet, Default, None, not the number 3", ""),
        (POD, "containers", [], "must not be empty", ""),
        (POD, "containers", {"name": "x"}, "must be a list, not a mapping", ""),
        (POD, "securityContext", [], "must be a mapping, not a list", ""),
        (POD, "terminationGracePeriodSeconds", -1, "must be at least 0, not -1", ""),
        ((*SERVER, "resources", "limits"), "memory", "8GB",
         "`8GB` is not a quantity such as 500m or 16Gi", "the units are "),
        ((*SERVER, "resources", "limits"), "memory", "", "`` is not a quantity such as 500m or 16Gi", ""),
        ((*SERVER, "resources", "limits"), "memory", True,
         "must be a quantity such as 500m or 16Gi, not true", ""),
        ((*SERVER, "ports", 0), "containerPort", 70000, "must be between 1 and 65535, not 70000", ""),
        ((*SERVER, "livenessProbe", "tcpSocket"), "port", [1],
         "must be the number or name of a port, not a list", ""),
        (("metadata",), "creationTimestamp", "yesterday",
         "`yesterday` is not a time such as 2026-11-21T10:00:00Z", ""),
        (("metadata",), "labels", {"a": True}, "must be a string, not true", 'write it in quotes: "true"'),
    ],
)  # fmt: skip
def test_a_wrong_value_is_described(
    place: tuple[str | int, ...], field: str, value: object, message: str, hint: str
) -> None:
    finding = only(check_object(deployment(place, **{field: value})))
    assert finding.message == message
    assert finding.hint.startswith(hint)
    assert finding.path[: len(place) + 1] == (*place, field)


@pytest.mark.parametrize("value", ["1", "100m", "1.5", ".5", "1.", "+2Gi", "1e3", "2E-1", "0", 4, 0.25, "1Ei"])
def test_every_notation_of_a_quantity_is_accepted(value: object) -> None:
    assert check_object(deployment((*SERVER, "resources", "limits"), memory=value)) == []


def test_an_optional_field_may_be_null_and_a_required_one_may_not() -> None:
    obj = example("Deployment")
    obj["metadata"]["creationTimestamp"] = None
    obj["spec"]["template"]["spec"]["hostname"] = None
    assert check_object(obj) == []
    obj["spec"]["template"]["spec"]["containers"][0]["name"] = None
    assert only(check_object(obj)).message == "must be a string, not null"


@pytest.mark.parametrize(
    ("place", "extra", "message"),
    [
        ((*POD, "containers"), {"name": "server", "image": "x"}, "has the same name `server` as item 0"),
        ((*SERVER, "env"), {"name": "HF_TOKEN"}, "has the same name `HF_TOKEN` as item 1"),
        ((*POD, "volumes"), {"name": "shm"}, "has the same name `shm` as item 1"),
        ((*SERVER, "volumeMounts"), {"name": "shm", "mountPath": "/model"},
         "has the same mountPath `/model` as item 0"),
        ((*SERVER, "ports"), {"containerPort": 8000, "protocol": "TCP"},
         "has the same containerPort the number 8000 and protocol `TCP` as item 0"),
    ],
)  # fmt: skip
def test_a_duplicate_entry_is_found_by_its_keys_and_their_defaults(
    place: tuple[str | int, ...], extra: Object, message: str
) -> None:
    obj = example("Deployment")
    at(obj, place).append(extra)
    finding = only(check_object(obj))
    assert (finding.code, finding.message) == (codes.DUPLICATE_ENTRY, message)
    assert finding.path == (*place, len(at(obj, place)) - 1)


def test_one_port_number_of_two_protocols_is_two_ports() -> None:
    obj = example("Deployment")
    at(obj, (*SERVER, "ports")).append({"containerPort": 8000, "protocol": "UDP"})
    assert check_object(obj) == []


def test_a_duplicate_finalizer_is_found() -> None:
    obj = example("ConfigMap")
    obj["metadata"]["finalizers"] = ["a.example/x", "a.example/y", "a.example/x"]
    finding = only(check_object(obj))
    assert finding.where == "metadata.finalizers[2]"


@pytest.mark.parametrize(
    ("place", "value", "message"),
    [
        ((*POD, "volumes", 1), {"name": "shm", "emptyDir": {}, "configMap": {"name": "x"}},
         "configMap and emptyDir are mutually exclusive"),
        ((*SERVER, "env", 2, "valueFrom"), {},
         "needs one of configMapKeyRef, fieldRef, fileKeyRef, resourceFieldRef, secretKeyRef"),
        ((*SERVER, "livenessProbe"), {"periodSeconds": 3}, "needs one of exec, grpc, httpGet, tcpSocket"),
    ],
)  # fmt: skip
def test_mutually_exclusive_fields_are_reported(place: tuple[str | int, ...], value: Object, message: str) -> None:
    obj = example("Deployment")
    at(obj, place[:-1])[place[-1]] = value
    finding = only([f for f in check_object(obj) if f.code == codes.FIELD_CONFLICT])
    assert (finding.message, finding.path) == (message, place)


def test_fields_of_a_later_version_are_unknown_to_an_earlier_target() -> None:
    obj = deployment(SERVER, restartPolicyRules=[])
    assert only(check_object(obj, target="1.33")).code == codes.UNKNOWN_FIELD
    assert check_object(obj, target="1.34") == []


def test_values_of_a_later_version_are_unknown_to_an_earlier_target() -> None:
    obj = example("StatefulSet")
    obj["spec"]["updateStrategy"] = {"type": "Recreate"}
    assert only(check_object(obj, target="1.36")).code == codes.BAD_VALUE
    assert check_object(obj, target="1.37") == []


@pytest.mark.parametrize(
    ("kind", "policy", "expected"),
    [("Job", None, "OnFailure or Never"), ("Deployment", "Never", "Always"), ("JobSet", "Always", "OnFailure")],
)
def test_a_kind_accepts_only_its_restart_policies(kind: str, policy: str | None, expected: str) -> None:
    obj = example(kind)
    spec = obj["spec"]
    if kind == "JobSet":
        spec = spec["replicatedJobs"][0]["template"]["spec"]
    pod = spec["template"]["spec"]
    pod["restartPolicy"] = policy
    if policy is None:
        del pod["restartPolicy"]
    finding = only(check_object(obj))
    assert finding.code == codes.FIELD_CONFLICT
    assert f"restartPolicy {expected}" in finding.message


def test_pods_of_a_job_set_restart_on_failure_where_none_is_set() -> None:
    obj = example("JobSet")
    del obj["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]["spec"]["restartPolicy"]
    assert check_object(obj) == []


def test_a_selector_must_match_the_labels_of_its_own_pods() -> None:
    obj = example("Deployment")
    obj["spec"]["selector"]["matchLabels"]["tier"] = "gpu"
    finding = only(check_object(obj))
    assert finding.code == codes.SELECTOR_MISMATCH
    assert finding.path == ("spec", "selector", "matchLabels", "tier")


def test_a_mount_needs_its_volume_and_a_probe_its_port() -> None:
    obj = example("Deployment")
    at(obj, SERVER)["volumeMounts"][0]["name"] = "modell"
    at(obj, SERVER)["startupProbe"]["httpGet"]["port"] = "htp"
    found = {(f.where, f.message, f.hint) for f in check_object(obj)}
    assert found == {
        (
            "spec.template.spec.containers[0].volumeMounts[0].name",
            "no volume `modell` in the pod",
            "did you mean `model`?",
        ),
        (
            "spec.template.spec.containers[0].startupProbe.httpGet.port",
            "no port `htp` in the container",
            "did you mean `http`?",
        ),
    }


@pytest.mark.parametrize(
    ("kind", "place", "value", "message"),
    [
        ("Service", "spec.ports", None, "missing field `ports`"),
        ("Role", "rules[0].apiGroups", None, "the rule grants nothing without apiGroups"),
        ("Role", "rules[0].resources", [], "the rule grants nothing without resources"),
        ("HorizontalPodAutoscaler", "spec.metrics[0].type", "Resource",
         "a metric of type Resource needs the field `resource`"),
        ("HorizontalPodAutoscaler", "spec.metrics[0].pods.target.averageValue", None,
         "a target of type AverageValue needs the field `averageValue`"),
        ("Job", "spec.completions", None, "completionMode Indexed needs completions"),
        ("Job", "spec.podFailurePolicy.rules[1].onExitCodes.containerName", "tuner",
         "no container `tuner` in the pod"),
        ("Job", "spec.template.spec.containers[0].resources.claims[0].name", "gpus",
         "no resource claim `gpus` in the pod"),
        ("Deployment", "spec.template.spec.containers[0].lifecycle.preStop.sleep.seconds", 61,
         "preStop sleeps 61 seconds, but the grace period of the pod is 60"),
    ],
)  # fmt: skip
def test_a_field_that_requires_another_is_reported_without_it(
    kind: str, place: str, value: object, message: str
) -> None:
    obj = example(kind)
    path = named(place)
    at(obj, path[:-1])[path[-1]] = value
    if value is None:
        del at(obj, path[:-1])[path[-1]]
    assert message in [finding.message for finding in check_object(obj)]


@pytest.mark.parametrize(
    ("kind", "place", "good", "bad"),
    [
        ("Deployment", "spec.strategy.rollingUpdate.maxSurge", [0, 3, "25%"], ["", "25", "x%", -1, 1.5]),
        ("Deployment", "spec.template.spec.serviceAccountName", ["a.b-c", ""], ["A", "a_b", "x" * 254]),
        ("Deployment", "spec.template.spec.containers[0].livenessProbe.tcpSocket.port", [1, 65535, "http"],
         [0, 65536, "HTTP", "a" * 16, ""]),
        ("Deployment", "spec.template.spec.containers[0].image", ["x"], [""]),
        ("Deployment", "spec.template.spec.containers[0].env[2].valueFrom.fieldRef.fieldPath",
         ["metadata.name", "metadata.labels['a/b']", "status.hostIPs"], ["metadata", "spec.containers", ""]),
        ("Deployment", "spec.selector.matchLabels.tier", [], ["a b", "-a", "x" * 64]),
        ("Deployment", "metadata.finalizers", [["example.com/x"]], [["a b"], [""]]),
        ("CronJob", "spec.schedule", ["0 3 * * *", "@daily", "@every 1h", "*/5 0-3 1,2 * MON"],
         ["0 3 * *", "daily", ""]),
        ("PersistentVolumeClaim", "spec.resources.requests.storage", ["1Gi", 5], ["0", "-1Gi", "x"]),
        ("PersistentVolumeClaim", "spec.storageClassName", ["", "fast"], ["Fast"]),
        ("NetworkPolicy", "spec.egress[0].to[0].ipBlock.cidr", ["10.0.0.0/8", "fd00::/8"],
         ["10.0.0.0", "x/8", ""]),
        ("Ingress", "spec.rules[0].host", ["*.example.com", "a.b", ""], ["*", "A.b", "a.*.b"]),
        ("Ingress", "spec.rules[0].http.paths[0].path", ["/", "/v1"], ["v1", ""]),
    ],
)  # fmt: skip
def test_fields_must_have_the_form_that_the_server_requires(
    kind: str, place: str, good: list[object], bad: list[object]
) -> None:
    path = named(place)
    for value, fits in [(v, True) for v in good] + [(v, False) for v in bad]:
        obj = example(kind)
        at(obj, path[:-1])[path[-1]] = value
        found = [f for f in check_object(obj) if f.code in (codes.BAD_VALUE, codes.OUT_OF_RANGE, codes.WRONG_TYPE)]
        assert (found == []) is fits, value
        assert all(f.path[: len(path)] == path for f in found)


def test_a_claim_template_is_a_volume_of_the_pod() -> None:
    obj = example("StatefulSet")
    assert check_object(obj) == []
    del obj["spec"]["volumeClaimTemplates"]
    assert only(check_object(obj)).code == codes.UNKNOWN_NAME_IN_POD


def test_an_object_that_sops_encrypted_is_checked() -> None:
    secret: Object = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "hf"},
        "data": {"token": "ENC[AES256_GCM,data:p673w==,iv:YY=,tag:UQ=,type:str]"},
        "sops": {"version": "3.9.0"},
    }
    assert check_object(secret) == []
    secret["data"] = {"token": "not base64!"}
    assert only(check_object(secret)).message == "is not valid base64"


def test_the_status_is_not_checked() -> None:
    obj = example("Deployment") | {"status": {"whatever": 1}}
    assert check_object(obj) == []


def test_a_string_of_a_subclass_is_a_string() -> None:
    class Text(str):
        __slots__ = ()

    assert check_object(deployment(SERVER, image=Text("x"))) == []


def test_the_scope_of_kinds_is_known() -> None:
    assert is_cluster_scoped("v1", "Namespace") is True
    assert is_cluster_scoped("karpenter.sh/v1", "NodePool") is True
    assert is_cluster_scoped("v1", "Pod") is False
    assert is_cluster_scoped("example.com/v1", "Thing") is None


@pytest.mark.parametrize(
    ("spec", "findings"),
    [
        ({"selector": {"a": "b"}}, ["missing field `ports`"]),
        ({"selector": {"a": "b"}, "clusterIP": "None"}, []),
        ({"type": "ExternalName", "externalName": "a.example.com"}, []),
    ],
    ids=["cluster IP", "headless", "external name"],
)
def test_a_service_needs_ports_unless_it_is_headless_or_external(spec: Object, findings: list[str]) -> None:
    service: Object = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "a"}, "spec": spec}
    assert [each.message for each in check_object(service)] == findings
