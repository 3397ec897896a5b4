"""Rules between the fields of one kind that the API server enforces and no schema contains.

Sources: pkg/apis/*/validation of k8s.io/kubernetes v1.36.3; each function names the one it follows. Custom resources
have theirs in CEL; of those only some that matter for objects that kaigen writes are here. Those of controllers'
webhooks are in `kaigen.check.controller_rules`.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Iterator

from kaigen.check import codes
from kaigen.check.limit_rules import limit_range_findings, quota_findings
from kaigen.core.json_types import FieldPath
from kaigen.diagnostics.problem import Problem
from kaigen.kubernetes.manifest import Object, entries, mapping
from kaigen.kubernetes.names import SUBDOMAIN

Findings = Iterator[Problem]


def _conflict(message: str, path: FieldPath, hint: str = "") -> Problem:
    return Problem(codes.FIELD_CONFLICT, message, path, hint)


def _number(value: object) -> int | None:
    """Return the number of a count or percentage; None for anything else."""
    if isinstance(value, str) and value.removesuffix("%").isdecimal():
        return int(value.removesuffix("%"))
    return value if isinstance(value, int) else None


def _strategy(obj: Object, field: str, surge: object) -> tuple[FieldPath, int | None, int | None]:
    """Return the place of the amounts of a rolling update, and how many more and fewer pods it may have."""
    rolling = mapping(mapping(mapping(obj.get("spec")).get(field)).get("rollingUpdate"))
    values = [
        rolling.get(name) if rolling.get(name) is not None else default
        for name, default in (("maxSurge", surge), ("maxUnavailable", "25%" if surge else 1))
    ]
    return ("spec", field, "rollingUpdate"), _number(values[0]), _number(values[1])


def _deployment(obj: Object) -> Findings:
    """Follow `ValidateRollingUpdateDeployment` and `ValidateDeploymentSpec`."""
    path, surge, unavailable = _strategy(obj, "strategy", "25%")
    if surge == 0 and unavailable == 0:
        yield _conflict("`maxSurge` and `maxUnavailable` must not both be 0", path)
    if (
        unavailable is not None
        and unavailable > 100
        and "%"
        in str(mapping(mapping(mapping(obj.get("spec")).get("strategy")).get("rollingUpdate")).get("maxUnavailable"))
    ):
        yield Problem(codes.OUT_OF_RANGE, "must not be more than 100%", (*path, "maxUnavailable"))
    spec = mapping(obj.get("spec"))
    deadline, ready = spec.get("progressDeadlineSeconds"), spec.get("minReadySeconds")
    deadline, ready = 600 if deadline is None else deadline, 0 if ready is None else ready
    if isinstance(deadline, int) and isinstance(ready, int) and deadline <= ready:
        field = "progressDeadlineSeconds" if spec.get("progressDeadlineSeconds") is not None else "minReadySeconds"
        message = f"progressDeadlineSeconds {deadline} must be more than minReadySeconds {ready}"
        yield _conflict(message, ("spec", field))
    yield from _no_deadline(obj)


def _daemon_set(obj: Object) -> Findings:
    """Follow `ValidateRollingUpdateDaemonSet`."""
    path, surge, unavailable = _strategy(obj, "updateStrategy", 0)
    if surge is not None and unavailable is not None and bool(surge) is bool(unavailable):
        yield _conflict("one of `maxSurge` and `maxUnavailable` must be 0, and the other not", path)
    yield from _no_deadline(obj)


def _no_deadline(obj: Object) -> Findings:
    """Follow `ValidatePodTemplateSpecForReplicaSet` and those of the other controllers."""
    path: FieldPath = ("spec", "template", "spec")
    if mapping(mapping(mapping(obj.get("spec")).get("template")).get("spec")).get("activeDeadlineSeconds") is not None:
        yield _conflict(
            f"the pods of a {obj.get('kind')} have no deadline", (*path, "activeDeadlineSeconds"), "delete it"
        )


def _claim(obj: Object) -> Findings:
    """Follow `ValidatePersistentVolumeClaimSpec` and `ValidatePersistentVolumeSpec`."""
    modes = mapping(obj.get("spec")).get("accessModes")
    if isinstance(modes, list) and "ReadWriteOncePod" in modes and len(set(map(str, modes))) > 1:
        yield _conflict("ReadWriteOncePod must be the only access mode", ("spec", "accessModes"))


_PEERS = ("ipBlock", "namespaceSelector", "podSelector")


def _network_policy(obj: Object) -> Findings:
    """Follow `ValidateNetworkPolicyPort`, `ValidateNetworkPolicyPeer` and `ValidateIPBlock`."""
    spec = mapping(obj.get("spec"))
    for direction, peers in (("ingress", "from"), ("egress", "to")):
        for number, rule in entries(spec.get(direction)):
            path: FieldPath = ("spec", direction, number)
            for place, port in entries(rule.get("ports")):
                first, last = port.get("port"), port.get("endPort")
                if last is not None and isinstance(first, str):
                    yield _conflict("needs a `port` that is a number", (*path, "ports", place, "endPort"))
                elif isinstance(first, int) and isinstance(last, int) and last < first:
                    yield _conflict(f"endPort {last} is below port {first}", (*path, "ports", place, "endPort"))
            for place, peer in entries(rule.get(peers)):
                where = (*path, peers, place)
                if peer and all(peer.get(field) is None for field in _PEERS):
                    yield Problem(codes.MISSING_FIELD, f"missing one of {', '.join(_PEERS)}", where)
                if peer.get("ipBlock") is not None:
                    if peer.get("podSelector") is not None or peer.get("namespaceSelector") is not None:
                        yield _conflict("`ipBlock` must be the only field of its peer", where)
                    yield from _except(mapping(peer["ipBlock"]), (*where, "ipBlock"))


def _except(block: Object, path: FieldPath) -> Findings:
    whole = _network(block.get("cidr"))
    excluded = block.get("except")
    for number, text in enumerate(excluded if isinstance(excluded, list) else ()):
        part = _network(text)
        if (
            whole
            and part
            and not (
                whole.version == part.version and whole.prefixlen < part.prefixlen and part.network_address in whole
            )
        ):
            yield _conflict(f"`{text}` is not a part of {block['cidr']}", (*path, "except", number))


def _network(text: object) -> ipaddress.IPv4Network | ipaddress.IPv6Network | None:
    try:
        return ipaddress.ip_network(str(text), strict=False)
    except ValueError:
        return None


def _pod_failure_policy(spec: Object, path: FieldPath) -> Findings:
    """Follow `validatePodFailurePolicyRule` and `validatePodFailurePolicyRuleOnExitCodes`."""
    for number, rule in entries(mapping(spec.get("podFailurePolicy")).get("rules")):
        place = (*path, "podFailurePolicy", "rules", number)
        if rule.get("action") == "FailIndex" and spec.get("backoffLimitPerIndex") is None:
            yield _conflict("FailIndex needs `backoffLimitPerIndex` of the Job", (*place, "action"))
        requirement = mapping(rule.get("onExitCodes"))
        values = requirement.get("values")
        numbers = [value for value in values if isinstance(value, int)] if isinstance(values, list) else []
        where = (*place, "onExitCodes", "values")
        if requirement.get("operator") == "In" and 0 in numbers:
            yield _conflict("0 is success, and no failure has it where `operator` is In", (*where, numbers.index(0)))
        if numbers != sorted(set(numbers)):
            yield _conflict("must be ordered and without duplicates", where, f"write {sorted(set(numbers))}")


def _job_spec(spec: Object, path: FieldPath) -> Findings:
    """Follow `validateJobSpec` and `ValidateJobSpec`."""
    if spec.get("completionMode") == "Indexed" and spec.get("completions") is None:
        yield _conflict("completionMode Indexed needs completions", path)
    if spec.get("selector") is not None and spec.get("manualSelector") is not True:
        yield _conflict("the API server makes the selector of a Job", (*path, "selector"), "delete it")
    failed, all_ = spec.get("maxFailedIndexes"), spec.get("completions")
    if isinstance(failed, int) and isinstance(all_, int) and failed > all_:
        yield _conflict(f"maxFailedIndexes {failed} exceeds completions {all_}", (*path, "maxFailedIndexes"))
    if spec.get("podFailurePolicy") is not None:
        restart = mapping(mapping(spec.get("template")).get("spec")).get("restartPolicy")
        if restart == "OnFailure":
            place = (*path, "template", "spec", "restartPolicy")
            yield _conflict("must be Never where the Job has a podFailurePolicy", place)
        yield from _pod_failure_policy(spec, path)


def _job(obj: Object) -> Findings:
    yield from _job_spec(mapping(obj.get("spec")), ("spec",))


def _cron_job(obj: Object) -> Findings:
    spec = mapping(mapping(mapping(obj.get("spec")).get("jobTemplate")).get("spec"))
    yield from _job_spec(spec, ("spec", "jobTemplate", "spec"))


def _service(obj: Object) -> Findings:
    spec = mapping(obj.get("spec"))
    if not spec.get("ports") and spec.get("type") != "ExternalName" and spec.get("clusterIP") != "None":
        hint = "set spec.ports, or make the Service headless with clusterIP: None"
        yield Problem(codes.MISSING_FIELD, "missing field `ports`", ("spec",), hint)
    for number, port in entries(spec.get("ports")):
        if port.get("appProtocol") == "":
            path: FieldPath = ("spec", "ports", number, "appProtocol")
            yield Problem(codes.BAD_VALUE, "must be a name such as http, or left out", path)
    if spec.get("type") in (None, "", "ClusterIP"):
        for number, port in entries(spec.get("ports")):
            if port.get("nodePort"):
                message = "`nodePort` needs the type NodePort or LoadBalancer"
                yield _conflict(message, ("spec", "ports", number, "nodePort"))
        if spec.get("externalTrafficPolicy") and not spec.get("externalIPs"):
            message = "`externalTrafficPolicy` needs the type NodePort or LoadBalancer"
            yield _conflict(message, ("spec", "externalTrafficPolicy"))


def _binding(obj: Object) -> Findings:
    """Follow `ValidateRoleBindingSubject`."""
    for number, subject in entries(obj.get("subjects")):
        name = subject.get("name")
        account = subject.get("kind") == "ServiceAccount"
        if account and obj.get("kind") == "ClusterRoleBinding" and not subject.get("namespace"):
            message = "missing field `namespace`: a ServiceAccount is in one, and a ClusterRoleBinding is not"
            yield Problem(codes.MISSING_FIELD, message, ("subjects", number))
        named = account and isinstance(name, str) and name
        if named and not (len(str(name)) <= 253 and re.fullmatch(SUBDOMAIN, str(name))):
            path = ("subjects", number, "name")
            yield Problem(codes.BAD_VALUE, f"`{name}` is not a DNS name in lower case", path)


_LEVELS = ("baseline", "privileged", "restricted")


def _namespace(obj: Object) -> Findings:
    """Follow `ValidateFinalizerName`, and the admission of Pod Security for its labels."""
    for key, value in mapping(mapping(obj.get("metadata")).get("labels")).items():
        is_level = str(key).startswith("pod-security.kubernetes.io/") and not str(key).endswith("-version")
        if is_level and (value is None or isinstance(value, str)) and value not in _LEVELS:
            path: FieldPath = ("metadata", "labels", str(key))
            yield Problem(codes.BAD_VALUE, f"must be one of {', '.join(_LEVELS)}, not `{value or ''}`", path)


def _role(obj: Object) -> Findings:
    for number, rule in entries(obj.get("rules")):
        if rule.get("nonResourceURLs"):
            path: FieldPath = ("rules", number, "nonResourceURLs")
            if obj.get("kind") == "Role":
                yield _conflict("paths belong to no namespace, so only a ClusterRole may have them", path)
            elif rule.get("apiGroups") or rule.get("resources") or rule.get("resourceNames"):
                yield _conflict("a rule has either resources or paths", path)
        else:
            for field in ("apiGroups", "resources"):
                if not rule.get(field):
                    message = f"the rule grants nothing without {field}"
                    yield Problem(codes.MISSING_FIELD, message, ("rules", number))


def _autoscaler(obj: Object) -> Findings:
    """Follow `validateHorizontalPodAutoscalerSpec` and `validateMetricTarget`."""
    spec = mapping(obj.get("spec"))
    least, most = spec.get("minReplicas"), spec.get("maxReplicas")
    if isinstance(least, int) and isinstance(most, int) and least > most:
        yield _conflict(f"minReplicas {least} exceeds maxReplicas {most}", ("spec", "minReplicas"))
    for number, metric in entries(spec.get("metrics")):
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


KIND_RULES: dict[str, Callable[[Object], Findings]] = {
    "CronJob.batch": _cron_job,
    "DaemonSet.apps": _daemon_set,
    "Deployment.apps": _deployment,
    "Job.batch": _job,
    "NetworkPolicy.networking.k8s.io": _network_policy,
    "PersistentVolume": _claim,
    "PersistentVolumeClaim": _claim,
    "LimitRange": limit_range_findings,
    "Namespace": _namespace,
    "ReplicaSet.apps": _no_deadline,
    "ResourceQuota": quota_findings,
    "StatefulSet.apps": _no_deadline,
    "Service": _service,
    "HorizontalPodAutoscaler.autoscaling": _autoscaler,
    "ClusterRoleBinding.rbac.authorization.k8s.io": _binding,
    "RoleBinding.rbac.authorization.k8s.io": _binding,
    "ClusterRole.rbac.authorization.k8s.io": _role,
    "Role.rbac.authorization.k8s.io": _role,
}
