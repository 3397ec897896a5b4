"""Which pods of an app a selector selects."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from kaigen.check.pods import Object, PodTemplate, containers, entries, group_of, mapping, pod_templates

# Labels that a kind's controller puts on its pods; their values are known to it alone.
MADE_LABELS: dict[str, tuple[str, ...]] = {
    "CronJob": ("batch.kubernetes.io/", "controller-uid", "job-name"),
    "Deployment": ("pod-template-hash",),
    "Job": ("batch.kubernetes.io/", "controller-uid", "job-name"),
    "JobSet": ("batch.kubernetes.io/", "controller-uid", "job-name", "jobset.sigs.k8s.io/"),
    "LeaderWorkerSet": (
        "apps.kubernetes.io/",
        "controller-revision-hash",
        "leaderworkerset.sigs.k8s.io/",
        "statefulset.kubernetes.io/",
    ),
    "RayCluster": ("app.kubernetes.io/", "ray.io/"),
    "RayService": ("app.kubernetes.io/", "ray.io/"),
    "ScaledJob": ("batch.kubernetes.io/", "controller-uid", "job-name", "scaledjob.keda.sh/"),
    "StatefulSet": ("apps.kubernetes.io/", "controller-revision-hash", "statefulset.kubernetes.io/"),
}


class Pods(NamedTuple):
    """The pods of one template of an app.

    Attributes:
        kind: the kind that makes them.
        namespace: theirs; empty when it is left to the deployment.
        labels: of the template.
        ports: the names of the ports of their containers.
    """

    kind: str
    namespace: str
    labels: Object
    ports: frozenset[str]


def pods_of(objs: Sequence[Object]) -> list[Pods]:
    """The pods of all templates of an app."""
    found = []
    for obj in objs:
        for template in pod_templates(obj):
            namespace = mapping(obj.get("metadata")).get("namespace")
            found.append(
                Pods(
                    str(obj.get("kind")),
                    namespace if isinstance(namespace, str) else "",
                    mapping(template.metadata.get("labels")),
                    frozenset(_port_names(template)),
                )
            )
    return found


def _port_names(template: PodTemplate) -> Iterator[str]:
    for container in containers(template):
        for _, port in entries(container.body.get("ports")):
            name = port.get("name")
            if isinstance(name, str):
                yield name


def selected(pods: Sequence[Pods], namespace: str, selector: Object, *, plain: bool = False) -> list[Pods]:
    """The pods that a selector selects.

    Args:
        pods: those of the app.
        namespace: the selector's.
        selector: a label selector, or, where `plain`, a mapping of labels.
        plain: the selector is a mapping of labels, as a Service's.
    """
    labels = selector if plain else mapping(selector.get("matchLabels"))
    wanted: list[tuple[object, object, list[object]]] = [
        (key, "In", [value]) for key, value in labels.items()
    ]
    if not plain:
        for _, expression in entries(selector.get("matchExpressions")):
            values = expression.get("values")
            listed = values if isinstance(values, list) else []
            wanted.append((expression.get("key"), expression.get("operator"), listed))
    return [
        pod
        for pod in pods
        if (pod.namespace == namespace or "" in (pod.namespace, namespace))
        and all(_fits(pod, key, operator, values) for key, operator, values in wanted)
    ]


def _fits(pod: Pods, key: object, operator: object, values: list[object]) -> bool:
    if not isinstance(key, str):
        return True
    there = key in pod.labels
    if not there and key.startswith(MADE_LABELS.get(pod.kind, ())):
        return True
    value = pod.labels.get(key)
    match operator:
        case "In":
            return there and value in values
        case "NotIn":
            return not there or value not in values
        case "Exists":
            return there
        case "DoesNotExist":
            return not there
    return True


def selector_of(obj: Object) -> tuple[str, Object, bool] | None:
    """The field of a kind that selects pods of the app, the selector, and whether it is plain labels.

    Returns:
        None for other kinds, and where nothing in particular is selected.
    """
    spec = mapping(obj.get("spec"))
    match group_of(obj), obj.get("kind"):
        case "", "Service":
            return _unless_empty("selector", spec, plain=True)
        case "policy", "PodDisruptionBudget":
            return _unless_empty("selector", spec)
        case "networking.k8s.io", "NetworkPolicy":
            return _unless_empty("podSelector", spec)
        case "monitoring.coreos.com", "PodMonitor":
            named = mapping(spec.get("namespaceSelector"))
            return None if named else _unless_empty("selector", spec)
        case "inference.networking.k8s.io", "InferencePool":
            return _unless_empty("selector", spec)
    return None


def _unless_empty(field: str, spec: Object, *, plain: bool = False) -> tuple[str, Object, bool] | None:
    selector = mapping(spec.get(field))
    return (field, selector, plain) if any(selector.values()) else None
