"""Compares the largest pods of apps with the nodes of a cluster."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from kaigen.core.text import plural, some_of
from kaigen.kubernetes.manifest import Object, identity_of, mapping
from kaigen.kubernetes.node_fit import allocatable, may_provision, unmet_selector, untolerated_taint
from kaigen.kubernetes.requests import readable
from kaigen.requirements.model import Finding, Pod, Requirement

NODE = "node"
"""Kind of the requirement that a node has room for a pod."""
_MOST_NAMES = 3
_COMMON = ("memory", "cpu", "ephemeral-storage")
_NONE = "no node fits"


def pod_findings(
    pods: Iterable[Pod], nodes: Sequence[Object], pools: Sequence[Object]
) -> Iterator[tuple[Requirement, Finding]]:
    """Yield one finding for each app: of a pod that fits no node, or else of its largest one.

    A pod for which a NodePool may make a node is a note, because the instance types of a NodePool are not known.

    Args:
        pods: of all apps.
        nodes: of the cluster.
        pools: NodePools of the cluster and of the repository.
    """
    apps: dict[str, list[Pod]] = {}
    for pod in pods:
        apps.setdefault(pod.use.app, []).append(pod)
    for own in apps.values():
        found = [(pod, _finding(pod, nodes, pools)) for pod in sorted(own, key=_size, reverse=True)]
        pod, finding = min(found, key=lambda pair: (pair[1].status != "missing", _NONE not in pair[1].detail))
        namespace, _, name = pod.use.app.partition("/")
        amounts = ", ".join(f"{resource} {readable(resource, pod.requests[resource])}" for resource in _order(pod))
        yield Requirement(NODE, f"{name} ({pod.owner}: {amounts})", namespace, uses=(pod.use,)), finding


def _finding(pod: Pod, nodes: Sequence[Object], pools: Sequence[Object]) -> Finding:
    selected = [node for node in nodes if not unmet_selector(node, pod.spec)]
    usable = [node for node in selected if not _taint(node, pod)]
    fitting = [node for node in usable if not _lacking(node, pod)]
    if fitting:
        return Finding("found", f"fits {plural(len(fitting), 'node')}: {_names(fitting)}")
    if not nodes:
        why = "the cluster has none"
    elif not selected:
        why = f"none has `{unmet_selector(nodes[0], pod.spec)}`"
    elif not usable:
        why = f"it does not tolerate `{_taint(selected[0], pod)}` of {_names(selected)}"
    else:
        why = _too_small(pod, usable)
    makers = [identity_of(pool).name for pool in pools if may_provision(pool, pod.spec, pod.requests)]
    if makers:
        return Finding("found", f"{_NONE} now ({why}); NodePool {some_of(makers, _MOST_NAMES)} may make one")
    return Finding("missing", f"{_NONE}: {why}")


def _too_small(pod: Pod, nodes: Sequence[Object]) -> str:
    """Return which resource the node lacks that lacks the fewest, and how much of it the largest node has."""
    closest = min(nodes, key=lambda node: len(_lacking(node, pod)))
    resource = _lacking(closest, pod)[0]
    largest = max(nodes, key=lambda node: allocatable(node).get(resource, 0))
    has = readable(resource, allocatable(largest).get(resource, 0))
    return f"of {_names(nodes)}, {identity_of(largest).name} has the most {resource}: {has}"


def _lacking(node: Object, pod: Pod) -> list[str]:
    offered = allocatable(node)
    return [name for name in _order(pod) if offered.get(name, 0) < pod.requests[name]]


def _taint(node: Object, pod: Pod) -> str:
    return untolerated_taint(mapping(node.get("spec")).get("taints"), pod.spec)


def _order(pod: Pod) -> list[str]:
    """Return the resources that a pod requests: devices, then CPU, memory and disk."""
    return sorted((name for name, amount in pod.requests.items() if amount), key=lambda name: (name in _COMMON, name))


def _size(pod: Pod) -> tuple[int, ...]:
    devices = sum(amount for name, amount in pod.requests.items() if name not in _COMMON)
    return (devices, *(pod.requests.get(name, 0) for name in _COMMON))


def _names(nodes: Sequence[Object]) -> str:
    return some_of(sorted(identity_of(node).name for node in nodes), _MOST_NAMES)
