"""Rules between the fields of one object, for kinds without pods.

The API server has these rules in code, custom resources in CEL. Of the latter only those that matter for objects that
kaigen writes are here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from kaigen.check import codes
from kaigen.core.json_types import FieldPath
from kaigen.diagnostics.problem import Problem
from kaigen.kubernetes.manifest import Object, entries, mapping


def _service(obj: Object) -> Iterator[Problem]:
    spec = mapping(obj.get("spec"))
    if spec and not spec.get("ports") and spec.get("type") != "ExternalName" and spec.get("clusterIP") != "None":
        hint = "set spec.ports, or make the Service headless with clusterIP: None"
        yield Problem(codes.MISSING_FIELD, "missing field `ports`", ("spec",), hint)


def _role(obj: Object) -> Iterator[Problem]:
    for number, rule in entries(obj.get("rules")):
        if not rule.get("nonResourceURLs"):
            for field in ("apiGroups", "resources"):
                if not rule.get(field):
                    message = f"the rule grants nothing without {field}"
                    yield Problem(codes.MISSING_FIELD, message, ("rules", number))


def _autoscaler(obj: Object) -> Iterator[Problem]:
    for number, metric in entries(mapping(obj.get("spec")).get("metrics")):
        kind = metric.get("type")
        if not isinstance(kind, str) or not kind:
            continue
        field = kind[0].lower() + kind[1:]
        path: FieldPath = ("spec", "metrics", number)
        if metric.get(field) is None:
            yield Problem(codes.MISSING_FIELD, f"a metric of type {kind} needs the field `{field}`", path)
            continue
        target = mapping(mapping(metric[field]).get("target"))
        fields = {"Utilization": "averageUtilization", "AverageValue": "averageValue", "Value": "value"}
        value = fields.get(str(target.get("type")))
        if value and target.get(value) is None:
            message = f"a target of type {target['type']} needs the field `{value}`"
            yield Problem(codes.MISSING_FIELD, message, (*path, field, "target"))


def _route(obj: Object) -> Iterator[Problem]:
    for number, rule in entries(mapping(obj.get("spec")).get("rules")):
        path: FieldPath = ("spec", "rules", number)
        for place, match in entries(rule.get("matches")):
            way = mapping(match.get("path"))
            value = way.get("value")
            free = way.get("type") == "RegularExpression"
            if not free and isinstance(value, str) and not value.startswith("/"):
                where = (*path, "matches", place, "path", "value")
                yield Problem(codes.BAD_VALUE, f"`{value}` is not a path: it must start with /", where)
        for place, backend in entries(rule.get("backendRefs")):
            is_service = backend.get("kind", "Service") == "Service" and not backend.get("group")
            if is_service and backend.get("port") is None:
                message = "a reference to a Service needs the field `port`"
                yield Problem(codes.MISSING_FIELD, message, (*path, "backendRefs", place))


def _inference_pool(obj: Object) -> Iterator[Problem]:
    picker = mapping(mapping(obj.get("spec")).get("endpointPickerRef"))
    if picker and picker.get("kind", "Service") == "Service" and picker.get("port") is None:
        message = "a reference to a Service needs the field `port`"
        yield Problem(codes.MISSING_FIELD, message, ("spec", "endpointPickerRef"))


def _helm_release(obj: Object) -> Iterator[Problem]:
    spec = mapping(obj.get("spec"))
    given = [field for field in ("chart", "chartRef") if spec.get(field) is not None]
    if spec and len(given) != 1:
        yield Problem(codes.FIELD_CONFLICT, "set exactly one of chart and chartRef", ("spec",))


def _scaled_object(obj: Object) -> Iterator[Problem]:
    spec = mapping(obj.get("spec"))
    least, most = spec.get("minReplicaCount"), spec.get("maxReplicaCount", 100)
    if isinstance(least, int) and isinstance(most, int) and least > most:
        message = f"minReplicaCount {least} exceeds maxReplicaCount {most}"
        yield Problem(codes.FIELD_CONFLICT, message, ("spec", "minReplicaCount"))


KIND_RULES: dict[str, Callable[[Object], Iterator[Problem]]] = {
    "Service": _service,
    "HorizontalPodAutoscaler.autoscaling": _autoscaler,
    "HTTPRoute.gateway.networking.k8s.io": _route,
    "HelmRelease.helm.toolkit.fluxcd.io": _helm_release,
    "InferencePool.inference.networking.k8s.io": _inference_pool,
    "ScaledObject.keda.sh": _scaled_object,
    "ClusterRole.rbac.authorization.k8s.io": _role,
    "Role.rbac.authorization.k8s.io": _role,
}
