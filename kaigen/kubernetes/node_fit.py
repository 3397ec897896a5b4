"""Whether a pod fits a node, as the scheduler decides it for a node without other pods.

Sources: https://kubernetes.io/docs/concepts/scheduling-eviction/assign-pod-node/ and
https://kubernetes.io/docs/concepts/scheduling-eviction/taint-and-toleration/
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from kaigen.kubernetes.manifest import Object, entries, identity_of, mapping, text
from kaigen.kubernetes.quantities import nano

_REPELLING = ("NoSchedule", "NoExecute")
_PROVIDED = ("kubernetes.io/", "k8s.io/", "karpenter.")
"""Parts of label keys that Karpenter's instance types have, whether a NodePool names them or not."""


def allocatable(node: Object) -> dict[str, int]:
    """Return what pods may request of a node, in billionths of the unit."""
    offered = mapping(mapping(node.get("status")).get("allocatable"))
    return {name: nano(amount) or 0 for name, amount in offered.items()}


def unmet_selector(node: Object, pod: Object) -> str:
    """Return what a pod selects and a node does not have: a label, or the last term of the affinity; or nothing."""
    labels = {**_labels(node), "metadata.name": identity_of(node).name}
    for key, value in mapping(pod.get("nodeSelector")).items():
        if labels.get(key) != value:
            return f"{key}={value}"
    terms = [term for _, term in entries(_required(pod).get("nodeSelectorTerms"))]
    unmet = ""
    for term in terms:
        unmet = next((_shown(rule) for rule in _rules(term) if not _holds(rule, labels)), "")
        if not unmet:
            return ""
    return unmet


def untolerated_taint(taints: object, pod: Object) -> str:
    """Return a taint that keeps a pod away, `KEY=VALUE:EFFECT`; or nothing.

    Args:
        taints: of a node, or of the template of a NodePool.
        pod: its spec.
    """
    tolerations = [each for _, each in entries(pod.get("tolerations"))]
    for _, taint in entries(taints):
        if taint.get("effect") in _REPELLING and not any(_tolerates(each, taint) for each in tolerations):
            value = f"={taint['value']}" if taint.get("value") else ""
            return f"{text(taint.get('key'))}{value}:{text(taint.get('effect'))}"
    return ""


def may_provision(pool: Object, pod: Object, requests: Mapping[str, int]) -> bool:
    """Return whether a NodePool of Karpenter may make a node for a pod; which instance types it has is not known.

    Args:
        pool: the NodePool.
        pod: the spec of the pod.
        requests: of the pod, in billionths of the unit.
    """
    spec = mapping(pool.get("spec"))
    template = mapping(spec.get("template"))
    made = mapping(template.get("spec"))
    limits = {name: nano(amount) or 0 for name, amount in mapping(spec.get("limits")).items()}
    if any(requests.get(name, 0) > limit for name, limit in limits.items()):
        return False
    if untolerated_taint(made.get("taints"), pod):
        return False
    labels = mapping(mapping(template.get("metadata")).get("labels"))
    allowed: dict[str, Sequence[object]] = {key: [value] for key, value in labels.items()}
    for _, rule in entries(made.get("requirements")):
        values = rule.get("values")
        if rule.get("operator") == "In" and isinstance(values, list):
            allowed[text(rule.get("key"))] = values
    wanted = {key: [value] for key, value in mapping(pod.get("nodeSelector")).items()}
    terms = [term for _, term in entries(_required(pod).get("nodeSelectorTerms"))] or [{}]
    return any(_may_have({**_chosen(term), **wanted}, allowed) for term in terms)


def _may_have(wanted: Mapping[str, Sequence[object]], allowed: Mapping[str, Sequence[object]]) -> bool:
    return all(
        bool({*values} & {*allowed[key]}) if key in allowed else any(part in key for part in _PROVIDED)
        for key, values in wanted.items()
    )


def _chosen(term: Object) -> dict[str, Sequence[object]]:
    return {
        text(rule.get("key")): values
        for _, rule in entries(term.get("matchExpressions"))
        if rule.get("operator") == "In" and isinstance(values := rule.get("values"), list)
    }


def _required(pod: Object) -> Object:
    node = mapping(mapping(pod.get("affinity")).get("nodeAffinity"))
    return mapping(node.get("requiredDuringSchedulingIgnoredDuringExecution"))


def _labels(node: Object) -> dict[str, object]:
    return {**mapping(mapping(node.get("metadata")).get("labels"))}


def _rules(term: Object) -> Iterator[Object]:
    for field in ("matchExpressions", "matchFields"):
        for _, rule in entries(term.get(field)):
            yield rule


def _shown(rule: Object) -> str:
    values = rule.get("values")
    listed = f" ({', '.join(map(str, values))})" if isinstance(values, list) and values else ""
    return f"{text(rule.get('key'))} {text(rule.get('operator'))}{listed}"


def _holds(rule: Object, labels: Mapping[str, object]) -> bool:
    key, values = text(rule.get("key")), rule.get("values")
    named = values if isinstance(values, list) else []
    has = labels.get(key)
    match rule.get("operator"):
        case "In":
            return has in named
        case "NotIn":
            return has not in named
        case "Exists":
            return key in labels
        case "DoesNotExist":
            return key not in labels
        case "Gt" | "Lt" as operator:
            own, limit = nano(has), nano(named[0]) if named else None
            if own is None or limit is None:
                return False
            return own > limit if operator == "Gt" else own < limit
    return True


def _tolerates(toleration: Object, taint: Object) -> bool:
    if toleration.get("effect") and toleration.get("effect") != taint.get("effect"):
        return False
    if toleration.get("operator", "Equal") == "Exists":
        return not toleration.get("key") or toleration.get("key") == taint.get("key")
    same = toleration.get("key") == taint.get("key")
    return same and text(toleration.get("value")) == text(taint.get("value"))
