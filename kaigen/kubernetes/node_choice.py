"""Which nodes a pod may run on, by their instance types."""

from __future__ import annotations

from collections.abc import Iterator

from kaigen.catalog.catalog import Catalog
from kaigen.catalog.instances import Instance, find_instance, instances
from kaigen.catalog.profiles import get_profile
from kaigen.core.json_types import FieldPath
from kaigen.kubernetes.manifest import Object, entries, mapping, text

INSTANCE_TYPE = "node.kubernetes.io/instance-type"
"""Node label with the instance type. https://kubernetes.io/docs/reference/labels-annotations-taints"""


def instance_types(pod: Object) -> tuple[FieldPath, list[str]] | None:
    """Return the instance types that a pod may run on, and the field that names them; None for any type."""
    named = mapping(pod.get("nodeSelector")).get(INSTANCE_TYPE)
    if isinstance(named, str):
        return ("nodeSelector", INSTANCE_TYPE), [named]
    path = ("affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution")
    found: list[str] = []
    for _, term in entries(_required(pod).get("nodeSelectorTerms")):
        chosen = [
            each.get("values")
            for _, each in entries(term.get("matchExpressions"))
            if (each.get("key"), each.get("operator")) == (INSTANCE_TYPE, "In")
        ]
        if not chosen or not isinstance(chosen[0], list):
            return None
        found += [each for each in chosen[0] if isinstance(each, str)]
    return (path, found) if found else None


def possible_instances(pod: Object, resource: str, count: int, catalog: Catalog, profile: str) -> list[Instance]:
    """Return the instance types that a pod with GPUs may run on.

    Those that it names, or else those of the profile's cloud whose node labels its node selector and affinity allow
    and one of which they name; for a profile without a cloud, those on premises.

    Args:
        pod: its spec.
        resource: of its GPUs, such as `nvidia.com/gpu`.
        count: how many it requests.
        catalog: has the instance types.
        profile: of the cluster.
    """
    named = instance_types(pod)
    if named is not None:
        found = [find_instance(name, catalog) for name in named[1]]
        return [item for item in found if item is not None and _has(item, resource, count)]
    terms = [*_terms(pod)]
    cloud = get_profile(profile).cloud or "on-premises"
    return [
        item
        for item in instances(catalog, cloud)
        if _has(item, resource, count) and any(_agrees(item.node_labels(profile), term) for term in terms)
    ]


def _has(item: Instance, resource: str, count: int) -> bool:
    return item.gpu.resource == resource and item.count >= count


def _terms(pod: Object) -> Iterator[dict[str, list[object]]]:
    """Yield the alternatives of a pod's node selector and affinity: allowed values by node label."""
    own = {key: [value] for key, value in mapping(pod.get("nodeSelector")).items()}
    terms = [*entries(_required(pod).get("nodeSelectorTerms"))]
    for _, term in terms:
        chosen = {
            text(each.get("key")): values
            for _, each in entries(term.get("matchExpressions"))
            if each.get("operator") == "In" and isinstance(values := each.get("values"), list)
        }
        yield {**chosen, **own}
    if not terms:
        yield own


def _required(pod: Object) -> Object:
    node = mapping(mapping(pod.get("affinity")).get("nodeAffinity"))
    return mapping(node.get("requiredDuringSchedulingIgnoredDuringExecution"))


def _agrees(labels: dict[str, str], term: dict[str, list[object]]) -> bool:
    """Return whether a term selects a label beyond the architecture, and allows the values of all that it selects."""
    shared = labels.keys() & term.keys()
    return bool(shared - {"kubernetes.io/arch"}) and all(labels[key] in term[key] for key in shared)
