"""What each rule between the fields of one object says, with its place and hint."""

from __future__ import annotations

from typing import Any

import pytest

from kaigen.check.object_rules import rule_findings
from kaigen.check.references import check_references

Object = dict[str, Any]
IN = "spec.template.spec"
C = f"{IN}.containers[0]"
_ZONE = "write a name of the time zone database, such as `Europe/Berlin` or `Etc/UTC`"
DECLARE = "list it in `external` of kaigen.yaml if the cluster has it"


def deployment(container: Object | None = None, spec: Object | None = None, **fields: Any) -> Object:
    """A Deployment with one container, with these fields of the container, the pod and the Deployment."""
    pod = {"containers": [{"name": "main", **(container or {})}], **(spec or {})}
    template = {"metadata": {"labels": {"app": "x"}}, "spec": pod}
    selector = {"matchLabels": {"app": "x"}}
    return object_of("apps/v1", "Deployment", {"selector": selector, "template": template, **fields})


def object_of(api_version: str, kind: str, spec: Object) -> Object:
    """An object."""
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": "x", "namespace": "ml"}, "spec": spec}


def shown(obj: Object) -> list[tuple[str, str, str]]:
    """Place, message and hint of each finding."""
    return [(each.where, each.message, each.hint) for each in rule_findings(obj)]


VOLUMES = {"volumes": [{"name": "model"}]}


@pytest.mark.parametrize(
    ("obj", "findings"),
    [
        (deployment(spec={"restartPolicy": "Never"}), [
            (f"{IN}.restartPolicy", "a Deployment's pods need restartPolicy Always, not Never",
             "set restartPolicy: Always")]),
        (deployment(spec={"restartPolicy": "Sometimes"}), []),
        (object_of("batch/v1", "Job", {"template": {"spec": {"containers": []}}}), [
            (IN, "a Job's pods need restartPolicy OnFailure or Never, and Always is the default",
             "set restartPolicy: OnFailure")]),
        (deployment({"volumeMounts": [3, {"name": "modell"}, {}, {"name": "x"}]}, VOLUMES), [
            (f"{C}.volumeMounts[1].name", "no volume `modell` in the pod", "did you mean `model`?"),
            (f"{C}.volumeMounts[3].name", "no volume `x` in the pod", "")]),
        (deployment({"volumeMounts": "x", "volumeDevices": [{"name": "modell"}]}, VOLUMES), [
            (f"{C}.volumeDevices[0].name", "no volume `modell` in the pod", "did you mean `model`?")]),
        (deployment({"volumeMounts": [{"name": "model"}]}, VOLUMES), []),
        (deployment({
            "ports": [{"name": "http"}],
            "livenessProbe": "x",
            "readinessProbe": {"tcpSocket": {"port": "htp"}, "httpGet": {"port": 80}},
            "startupProbe": {"httpGet": {"port": "http"}},
        }), [(f"{C}.readinessProbe.tcpSocket.port", "no port `htp` in the container", "did you mean `http`?")]),
        (deployment({"resources": {"claims": [{"name": "gpus"}, {"name": "gpu"}]}},
                    {"resourceClaims": [{"name": "gpu"}]}), [
            (f"{C}.resources.claims[0].name", "no resource claim `gpus` in the pod", "did you mean `gpu`?")]),
        (deployment({"lifecycle": {"preStop": {"sleep": {"seconds": 31}}}}), [
            (f"{C}.lifecycle.preStop.sleep.seconds",
             "preStop sleeps 31 seconds, but the grace period of the pod is 30",
             "raise terminationGracePeriodSeconds")]),
        (deployment({"lifecycle": {"preStop": {"sleep": {"seconds": 30}}}}), []),
        (deployment({"lifecycle": {"preStop": {"sleep": {"seconds": 1}}}}, {"terminationGracePeriodSeconds": 0}), [
            (f"{C}.lifecycle.preStop.sleep.seconds",
             "preStop sleeps 1 seconds, but the grace period of the pod is 0",
             "raise terminationGracePeriodSeconds")]),
        (deployment(selector={"matchLabels": {"app": "x", "tier": "gpu"}}), [
            ("spec.selector.matchLabels.tier", "the pods of the template lack the label tier: gpu", "")]),
        (deployment(selector={}), [("spec.selector", "the selector is empty", "")]),
        (deployment(selector={"matchExpressions": [{"key": "app", "operator": "Exists"}]}), []),
        (object_of("batch/v1", "CronJob", {"jobTemplate": {"spec": {
            "completionMode": "Indexed",
            "podFailurePolicy": {"rules": [{}, {"onExitCodes": {"containerName": "mian"}}]},
            "template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "main"}]}},
        }}}), [
            ("spec.jobTemplate.spec", "completionMode Indexed needs completions", ""),
            ("spec.jobTemplate.spec.podFailurePolicy.rules[1].onExitCodes.containerName",
             "no container `mian` in the pod", "did you mean `main`?")]),
        (object_of("batch/v1", "Job", {
            "completionMode": "Indexed", "completions": 2,
            "template": {"spec": {"restartPolicy": "Never", "containers": []}},
        }), []),
        (object_of("v1", "Service", {"selector": {"a": "b"}}), [
            ("spec", "missing field `ports`", "set spec.ports, or make the Service headless with clusterIP: None")]),
        (object_of("autoscaling/v2", "HorizontalPodAutoscaler", {"metrics": [
            {"type": 3}, {"type": "ContainerResource"},
            {"type": "Pods", "pods": {"target": {"type": "AverageValue", "averageValue": 1}}},
            {"type": "Resource", "resource": {"target": {"type": "Utilization"}}},
            {"type": "Object", "object": {"target": {"type": "Value"}}},
        ]}), [
            ("spec.metrics[1]", "a metric of type ContainerResource needs the field `containerResource`", ""),
            ("spec.metrics[3].resource.target", "a target of type Utilization needs the field `averageUtilization`",
             ""),
            ("spec.metrics[4].object.target", "a target of type Value needs the field `value`", "")]),
        (object_of("keda.sh/v1alpha1", "ScaledObject", {"minReplicaCount": 4, "maxReplicaCount": 4}), []),
        (object_of("keda.sh/v1alpha1", "ScaledObject", {"triggers": [
            {"type": "cron", "metadata": {"start": "0 6 * * *", "end": "0 20 * * 1-5", "timezone": "Asia/Kolkata",
                                          "desiredReplicas": "2"}},
            {"type": "cron", "metadata": {"start": "0 25 * * *", "end": "@daily", "timezone": "Mars/Olympus"}},
            {"type": "cron", "metadata": {"start": "0 6 * * *", "end": "0 6 * * *", "timezone": "UTC",
                                          "desiredReplicas": "1"}}]}), [
            ("spec.triggers[1].metadata.start", "`25` is not a number from 0 to 23 (hour)", ""),
            ("spec.triggers[1].metadata.end", "a window of KEDA has times such as `0 6 * * *`", ""),
            ("spec.triggers[1].metadata.timezone", "unknown time zone `Mars/Olympus`", _ZONE),
            ("spec.triggers[1].metadata", "`desiredReplicas` must be at least 1", ""),
            ("spec.triggers[2].metadata.end", "`start` and `end` are the same time", "")]),
        ({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
          "subjects": [{"kind": "ServiceAccount", "name": "A", "namespace": "ml"},
                       {"kind": "ServiceAccount", "name": "a"}, {"kind": "User", "name": "A"}]}, [
            ("subjects[0].name", "`A` is not a DNS name in lower case", ""),
            ("subjects[1]", "missing field `namespace`: a ServiceAccount is in one, and a ClusterRoleBinding is not",
             "")]),
        ({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "rules": [
            {"nonResourceURLs": ["/x"]}, {"apiGroups": [""]}, {"resources": ["pods"]}]}, [
            ("rules[0].nonResourceURLs", "paths belong to no namespace, so only a ClusterRole may have them", ""),
            ("rules[1]", "the rule grants nothing without resources", ""),
            ("rules[2]", "the rule grants nothing without apiGroups", "")]),
    ],
)  # fmt: skip
def test_a_rule_says_what_is_wrong_where_and_how_to_fix_it(obj: Object, findings: list[tuple[str, str, str]]) -> None:
    assert shown(obj) == findings


def references(*objs: Object) -> list[tuple[int, str, str, str]]:
    """Index, place, message and hint of each finding of an app."""
    return [(number, each.where, each.message, each.hint) for number, each in check_references(objs)]


SERVICE = object_of("v1", "Service", {"selector": {"app": "x"}, "ports": [{"name": "web", "port": 80}]})
PORTS = {"ports": [{"name": "web", "containerPort": 80}]}


def test_a_service_that_leads_nowhere_is_reported() -> None:
    assert references(SERVICE, deployment(PORTS)) == []
    assert references(SERVICE) == [(0, "spec.selector", "the Service selects no pod of the app", "")]
    target = object_of("v1", "Service", {"selector": {"app": "x"}, "ports": [{"port": 1, "targetPort": "wbe"}]})
    place = "spec.ports[0].targetPort"
    assert references(target, deployment(PORTS)) == [
        (0, place, "no selected pod has a port `wbe`", "their ports are web")
    ]
    assert references(target, deployment()) == [(0, place, "no selected pod has a port `wbe`", "")]


def test_two_objects_of_one_name_are_reported_at_the_second() -> None:
    assert references(SERVICE, deployment(), dict(SERVICE)) == [
        (2, "metadata.name", "the app has two Service objects named `x`", "")
    ]


@pytest.mark.parametrize(
    ("backend", "hint"),
    [({"number": 81}, "its ports are 80"), ({"name": "wbe"}, "its ports are web"), ({"number": 80}, None)],
)
def test_a_port_that_a_service_lacks_is_reported_with_those_it_has(backend: Object, hint: str | None) -> None:
    path = {"path": "/", "backend": {"service": {"name": "x", "port": backend}}}
    ingress = object_of("networking.k8s.io/v1", "Ingress", {"rules": [{"http": {"paths": [path]}}]})
    ((name, port),) = backend.items()
    place = f"spec.rules[0].http.paths[0].backend.service.port.{name}"
    expected = [(2, place, f"the Service `x` has no port {port}", hint)]
    assert references(SERVICE, deployment(), ingress) == (expected if hint else [])


def test_only_the_keys_of_config_maps_are_compared() -> None:
    config: Object = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "c", "namespace": "ml"},
        "data": {"level": "1"},
        "binaryData": {"blob": ""},
    }

    def reads(key: str, **fields: Any) -> Object:
        source = {"configMapKeyRef": {"name": "c", "key": key, **fields}}
        return deployment({"env": [{"name": "A", "valueFrom": source}]})

    place = f"{C}.env[0].valueFrom.configMapKeyRef"
    assert references(config, reads("level")) == references(config, reads("blob")) == []
    assert references(config, reads("levle")) == [
        (1, f"{place}.key", "the ConfigMap `c` has no key `levle`", "did you mean `level`?")
    ]
    assert references(config, reads("levle", optional=True)) == []
    assert references(reads("level", optional=True)) == []
    assert references(reads("level")) == [(0, f"{place}.name", "there is no ConfigMap `c` in namespace ml", DECLARE)]
    assert check_references([config, reads("levle")], external={("ConfigMap", "ml", "c")}) == []
