"""Selecting pods of an app by their labels."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec import Struct

from kaigen.kubernetes.kind_table import kind_of
from kaigen.kubernetes.manifest import Object, entries, mapping, text
from kaigen.kubernetes.object_kind import ObjectKind
from kaigen.kubernetes.pods import PodTemplate, containers, pod_templates


class Pods(Struct, frozen=True):
    """The pods of one template of an app.

    Attributes:
        kind: the kind that makes them.
        namespace: of the pods; empty where the deployment chooses it.
        labels: labels of the template.
        ports: names of the ports of their containers.
    """

    kind: ObjectKind
    namespace: str
    labels: Object
    ports: frozenset[str]


class Selector(Struct, frozen=True):
    """Which pods an object selects.

    Attributes:
        field: the field of `spec` that selects them.
        labels: a mapping of labels where `plain`, or else a label selector.
        plain: as in a Service.
    """

    field: str
    labels: Object
    plain: bool = False


def pods_of(objs: Sequence[Object]) -> list[Pods]:
    """Return the pods of all templates of an app."""
    return [
        Pods(
            kind_of(obj),
            text(mapping(obj.get("metadata")).get("namespace")),
            mapping(template.metadata.get("labels")),
            frozenset(_port_names(template)),
        )
        for obj in objs
        for template in pod_templates(obj)
    ]


def _port_names(template: PodTemplate) -> Iterator[str]:
    for container in containers(template):
        for _, port in entries(container.body.get("ports")):
            name = port.get("name")
            if isinstance(name, str):
                yield name


def select_pods(pods: Sequence[Pods], namespace: str, selector: Selector) -> list[Pods]:
    """Return the pods that a selector in a namespace selects."""
    matched = selector.labels if selector.plain else mapping(selector.labels.get("matchLabels"))
    expressions: list[tuple[object, object, list[object]]] = [(key, "In", [value]) for key, value in matched.items()]
    if not selector.plain:
        for _, expression in entries(selector.labels.get("matchExpressions")):
            values = expression.get("values")
            listed = values if isinstance(values, list) else []
            expressions.append((expression.get("key"), expression.get("operator"), listed))
    return [
        pod
        for pod in pods
        if (pod.namespace == namespace or "" in (pod.namespace, namespace))
        and all(_fits(pod, key, operator, values) for key, operator, values in expressions)
    ]


def _fits(pod: Pods, key: object, operator: object, values: list[object]) -> bool:
    if not isinstance(key, str):
        return True
    present = key in pod.labels
    if not present and key.startswith(pod.kind.pod_labels):
        return True
    value = pod.labels.get(key)
    match operator:
        case "In":
            return present and value in values
        case "NotIn":
            return not present or value not in values
        case "Exists":
            return present
        case "DoesNotExist":
            return not present
    return True


def selector_of(obj: Object) -> Selector | None:
    """Return the field of an object that selects pods of other objects in its namespace.

    Returns:
        None for other kinds, and for a selector that is empty.
    """
    field = kind_of(obj).selector
    if field is None or field.own:
        return None
    spec = mapping(obj.get("spec"))
    labels = mapping(spec.get(field.field))
    if not any(labels.values()) or (field.unless and mapping(spec.get(field.unless))):
        return None
    return Selector(field.field, labels, field.plain)
