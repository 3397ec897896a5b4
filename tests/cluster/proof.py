"""Checks that objects of a test ran: what the marker `ran` of a test says must be in the cluster's audit log.

An object counts only if kaigen emitted it, which its label shows. What its controller writes into its status, what the
kubelet reads and which role allowed a request are in the log too, also of objects that are gone by the end of the test.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from kaigen.catalog.images import default_images
from kaigen.kubernetes.images import is_image, parse_image
from kaigen.kubernetes.kind_table import KINDS
from kaigen.kubernetes.object_kind import HealthConditions
from tests.cluster.audit import Request
from tests.cluster.client import Object, is_true
from tests.cluster.plane import RUNNING, Plane
from tests.cluster.processes import wait_until
from tests.cluster.tools.parts import programs

NODE = "node"
"""The value of `by` for the kubelet and containerd: containers of the objects ran."""

_KUBELET = "system:node:"
_MANAGED = "app.kubernetes.io/managed-by"
_BY_KAIGEN = {"kaigen", "Helm"}  # Helm requires its own name in charts
_ALLOWED = re.compile(r'allowed by RoleBinding "([^"]+)" of Role "([^"]+)"')
_DENIED = re.compile(r"ValidatingAdmissionPolicy '([^']+)' with binding '([^']+)' denied request")
_DENIED_BY_KYVERNO = re.compile(r'webhook "vpol\.[^"]+" denied the request: Policy (\S+) failed: ')
_HEALTH = {row.kind: row.health for row in KINDS.values() if row.health is not None}


@dataclass(slots=True)
class Emitted:
    """An object of kaigen on the cluster.

    Attributes:
        kind: its kind.
        namespace: its namespace.
        name: its name.
        body: its last content that was sent whole.
        status: its status.
        earlier: every status that it had before.
    """

    kind: str
    namespace: str
    name: str
    body: Object
    status: Object = field(default_factory=dict)
    earlier: list[Object] = field(default_factory=list)


@dataclass(slots=True)
class Seen:
    """What a cluster's audit log shows.

    Attributes:
        emitted: objects that kaigen emitted.
        serving: namespace and name of Services with a ready endpoint.
        reads: namespace and name of ConfigMaps that the kubelet read.
        accounts: namespace and name of service accounts whose token a pod got.
        roles: namespace and name of Roles that allowed a request.
        bindings: namespace and name of RoleBindings that allowed a request.
        denied: names of admission policies that refused a request, and of their bindings.
        images: of containers that were ready or ended well.
    """

    emitted: list[Emitted] = field(default_factory=list)
    serving: set[tuple[str, str]] = field(default_factory=set)
    reads: set[tuple[str, str]] = field(default_factory=set)
    accounts: set[tuple[str, str]] = field(default_factory=set)
    roles: set[tuple[str, str]] = field(default_factory=set)
    bindings: set[tuple[str, str]] = field(default_factory=set)
    denied: set[str] = field(default_factory=set)
    images: set[str] = field(default_factory=set)


def seen(requests: Iterable[Request]) -> Seen:
    """Return what the requests of an audit log show, in the order of the log."""
    found = Seen()
    objects: dict[tuple[str, str, str, str], Emitted] = {}
    for request in requests:
        _note_access(found, request)
        if not request.writes:
            continue
        resource, _, subresource = request.resource.partition("/")
        name = request.name or request.body.get("metadata", {}).get("name", "")
        key = (request.group, resource, request.namespace, name)
        if not subresource and request.body.get("metadata", {}).get("labels", {}).get(_MANAGED) in _BY_KAIGEN:
            entry = objects.setdefault(key, Emitted(request.body.get("kind", ""), request.namespace, name, {}))
            entry.kind = request.body.get("kind", entry.kind)
            entry.body = request.body
        if key in objects and isinstance(status := request.body.get("status"), dict):
            _set_status(objects[key], merged(objects[key].status, status, request.verb))
        _note_result(found, request, resource)
    found.emitted = list(objects.values())
    return found


def _note_access(found: Seen, request: Request) -> None:
    """Note who read what, which role allowed it, and which policy refused it."""
    if denied := _DENIED.search(request.message) or _DENIED_BY_KYVERNO.search(request.message):
        found.denied.update(denied.groups())
    if not 200 <= request.code < 300:
        return
    if allowed := _ALLOWED.search(request.reason):
        binding, role = (name.partition("/")[0] for name in allowed.groups())
        found.bindings.add((request.namespace, binding))
        found.roles.add((request.namespace, role))
    if not request.user.startswith(_KUBELET):
        return
    if request.resource == "serviceaccounts/token":
        found.accounts.add((request.namespace, request.name))
    if request.resource == "configmaps":
        selected = re.search(r"metadata\.name%3D([^&]+)", request.uri)
        found.reads.add((request.namespace, request.name or (selected[1] if selected else "")))


def _note_result(found: Seen, request: Request, resource: str) -> None:
    """Note Services that have an endpoint, and images that ran."""
    if resource == "endpointslices":
        service = request.body.get("metadata", {}).get("labels", {}).get("kubernetes.io/service-name")
        endpoints = request.body.get("endpoints") or []
        if service and any(entry.get("conditions", {}).get("ready") for entry in endpoints):
            found.serving.add((request.namespace, service))
    if request.resource == "pods/status":
        status = request.body.get("status") or {}
        for each in [*status.get("initContainerStatuses", []), *status.get("containerStatuses", [])]:
            ended = each.get("state", {}).get("terminated", {})
            if each.get("ready") or ended.get("exitCode") == 0:
                # An image that was pulled by its digest has its name in its ID alone.
                found.images.update((each.get("image", ""), each.get("imageID", "")))


def _set_status(entry: Emitted, status: Object) -> None:
    entry.earlier.append(entry.status)
    entry.status = status


def merged(status: Object, written: Object, verb: str = "patch") -> Object:
    """Return a status after a controller wrote to it.

    Args:
        status: the status before.
        written: what was written. A patch merges conditions by their type.
        verb: of the request; only a patch keeps what was there.
    """
    if verb != "patch":
        return written
    result = dict(status)
    for key, value in written.items():
        old = status.get(key)
        if isinstance(value, dict) and isinstance(old, dict):
            result[key] = merged(old, value)
        elif isinstance(value, list) and isinstance(old, list) and _have_types([*old, *value]):
            result[key] = list({each["type"]: each for each in [*old, *value]}.values())
        else:
            result[key] = value
    return result


def _have_types(entries: Sequence[Any]) -> bool:
    return all(isinstance(entry, dict) and "type" in entry for entry in entries)


Rule = Callable[[Emitted, Seen], bool]


def _conditions(*types: str) -> Rule:
    """Return a rule that needs one of these conditions."""
    return lambda entry, _: any(is_true({"status": entry.status}, type_) for type_ in types)


def _phase(*phases: str) -> Rule:
    return lambda entry, _: entry.status.get("phase") in phases


def _replicas(entry: Emitted, _: Seen) -> bool:
    ready = entry.status.get("readyReplicas") or 0
    return ready >= 1 and ready == entry.status.get("replicas")


def _accepted_by_parent(entry: Emitted, _: Seen) -> bool:
    parents = entry.status.get("parents") or []
    return any(is_true({"status": parent}, "Accepted") for parent in parents)


def _is_healthy_application(entry: Emitted) -> bool:
    status = entry.status
    health, sync = status.get("health", {}).get("status"), status.get("sync", {}).get("status")
    return (health, sync) == ("Healthy", "Synced")


def _has_healthy_application(entry: Emitted, found: Seen) -> bool:
    return any(
        other.body.get("spec", {}).get("project") == entry.name and _is_healthy_application(other)
        for other in found.emitted
        if other.kind == "Application"
    )


def _admits(entry: Emitted, _: Seen) -> bool:
    return any(is_true({"status": binding}, "Accepted") for binding in entry.status.get("bindings") or [])


def _picked_from(entry: Emitted, found: Seen) -> bool:
    """Whether its picker is ready, which it is only once it has read the pool."""
    return (entry.namespace, entry.body["spec"]["endpointPickerRef"]["name"]) in found.serving


def _in_active_queue(_: Emitted, found: Seen) -> bool:
    """Whether Kueue admits pods by a ClusterQueue; it writes no status of what a ClusterQueue refers to."""
    return any(other.kind == "ClusterQueue" and is_true({"status": other.status}, "Active") for other in found.emitted)


def _decided(entry: Emitted, found: Seen) -> bool:
    return entry.name in found.denied


_NEEDS_PODS: Mapping[str, Rule] = {
    "Deployment": _replicas,
    "StatefulSet": _replicas,
    "Job": _conditions("Complete"),
    "CronJob": lambda entry, _: bool(entry.status.get("lastSuccessfulTime")),
    "Pod": _phase("Succeeded", "Running"),
    "PersistentVolumeClaim": _phase("Bound"),
    "PersistentVolume": _phase("Bound"),
    "ConfigMap": lambda entry, found: (entry.namespace, entry.name) in found.reads,
    "ServiceAccount": lambda entry, found: (entry.namespace, entry.name) in found.accounts,
    "Role": lambda entry, found: (entry.namespace, entry.name) in found.roles,
    "RoleBinding": lambda entry, found: (entry.namespace, entry.name) in found.bindings,
    "Service": lambda entry, found: (entry.namespace, entry.name) in found.serving,
    "PodDisruptionBudget": lambda entry, _: (entry.status.get("expectedPods") or 0) >= 1,
}
"""When an object counts as run, of kinds that a real node must have run."""


def _trained(entry: Emitted, found: Seen) -> bool:
    """Whether a TrainJob of the runtime, which has its name, succeeded."""
    return any(
        _ran(other, found)
        for other in found.emitted
        if (other.kind, other.namespace, other.name) == ("TrainJob", entry.namespace, entry.name)
    )


_RULES: Mapping[str, Rule] = {
    **_NEEDS_PODS,
    "HorizontalPodAutoscaler": _conditions("ScalingActive"),
    "Ingress": lambda entry, _: bool(entry.status.get("loadBalancer", {}).get("ingress")),
    "Gateway": _conditions("Programmed"),
    "HTTPRoute": _accepted_by_parent,
    "InferencePool": _picked_from,
    **dict.fromkeys(("PodMonitor", "PrometheusRule"), _admits),
    "TrainingRuntime": _trained,
    "ResourceQuota": lambda entry, _: bool(entry.status.get("used")),
    "Namespace": lambda entry, found: any(other.namespace == entry.name for other in found.emitted),
    "ValidatingAdmissionPolicy": _decided,
    "ValidatingAdmissionPolicyBinding": _decided,
    "ValidatingPolicy": _decided,
    "ClusterQueue": _conditions("Active"),
    "LocalQueue": _conditions("Active"),
    **dict.fromkeys(("Cohort", "ResourceFlavor", "Topology", "WorkloadPriorityClass"), _in_active_queue),
    "Application": lambda entry, _: _is_healthy_application(entry),
    "ApplicationSet": _conditions("ResourcesUpToDate"),
    "AppProject": _has_healthy_application,
}
"""When an object counts as run. For other kinds: the conditions of kaigen's table, or `Ready`."""


def _rule(kind: str) -> Rule:
    if kind in _RULES:
        return _RULES[kind]
    health = _HEALTH.get(kind)
    return _by_conditions(health) if health else _conditions("Ready")


def _by_conditions(health: HealthConditions) -> Rule:
    def check(entry: Emitted, _: Seen) -> bool:
        holders = entry.status.get(health.at) or [] if health.at else [entry.status]
        return any(is_true({"status": holder}, type_) for holder in holders for type_ in health.healthy)

    return check


def _ran(entry: Emitted, found: Seen) -> bool:
    rule = _rule(entry.kind)
    return any(rule(replace(entry, status=status), found) for status in [entry.status, *entry.earlier])


def unproven(found: Seen, mark: Mark) -> Iterator[str]:
    """Yield what is missing, in words: of each kind one object must have run, or be on the cluster.

    Args:
        found: what the audit log shows.
        mark: a marker.
    """
    for kind in mark.kinds:
        objects = [entry for entry in found.emitted if entry.kind == kind]
        if not objects:
            yield f"kaigen emitted no {kind}"
        elif mark.by and not any(_ran(entry, found) for entry in objects):
            last = objects[-1]
            yield f"no {kind} ran: {last.name} has status {last.status}"


def absent(cluster: Plane, found: Seen, by: Iterable[str]) -> list[str]:
    """Return which parts did not run on a cluster, in words.

    Args:
        cluster: the cluster.
        found: what its audit log shows.
        by: `node`, programs that `tools/` builds, or names of kaigen's images.
    """
    missing = []
    for name in by:
        if name == NODE:
            runs = cluster.has_real_node
        elif name in programs():
            runs = name in {path.name for path in cluster.processes.programs()}
        else:
            repository = parse_image(default_images()[name]).repository
            runs = any(parse_image(image).repository.endswith(repository) for image in filter(is_image, found.images))
        if not runs:
            missing.append(f"{name} did not run")
    return missing


@dataclass(frozen=True, slots=True)
class Mark:
    """A marker `ran` of a test, or a marker `accepted`, which has no parts.

    Attributes:
        kinds: kinds of objects that run in the test.
        by: parts that run them.
    """

    kinds: tuple[str, ...]
    by: tuple[str, ...] = ()


def check_names(mark: Mark) -> None:
    """Check the arguments of a marker `ran`.

    Raises:
        ValueError: one of them is unknown, or pods of these kinds need a real node.
    """
    for name in mark.by:
        if name != NODE and name not in programs() and name not in default_images():
            raise ValueError(
                f"`by` names {name}, which is neither `node`, nor a program that tools/ builds, nor an image"
            )
    if not mark.kinds or not mark.by:
        raise ValueError("the marker `ran` needs a kind and `by`")
    if NODE not in mark.by and (pods := [kind for kind in mark.kinds if kind in _NEEDS_PODS]):
        raise ValueError(f"{', '.join(pods)} only run on a real node: add `node` to `by`")


def marks(item: pytest.Item) -> list[Mark]:
    """Return the markers `ran` and `accepted` of a test.

    Raises:
        ValueError: one has a wrong argument.
    """
    found = [Mark(marker.args) for marker in item.iter_markers("accepted")]
    for marker in item.iter_markers("ran"):
        by = marker.kwargs["by"]
        mark = Mark(marker.args, (by,) if isinstance(by, str) else tuple(by))
        check_names(mark)
        found.append(mark)
    return found


def places() -> dict[Plane, int]:
    """Return the end of the audit log of each running cluster."""
    return {cluster: cluster.audit.place() for cluster in RUNNING}


def check(found: Sequence[Mark], since: Mapping[Plane, int]) -> None:
    """Check that everything that markers name ran on one cluster.

    Args:
        found: the markers of a test.
        since: places in the audit logs at the beginning of the test. A cluster that is not in it started later.

    Raises:
        AssertionError: something did not run. The text names it.
    """
    missing: list[str] = []

    def is_proven() -> bool:
        nonlocal missing
        results = [_missing(cluster, since.get(cluster, 0), found) for cluster in RUNNING]
        missing = min(results, key=len, default=["no cluster is running"])
        return not missing

    # The last write of a controller may follow what the test waited for.
    with contextlib.suppress(TimeoutError):
        wait_until(is_proven, "everything that is marked ran", 20, every=1)
    assert not missing, f"a marker is wrong: {'; '.join(missing)}"


def _missing(cluster: Plane, since: int, found: Sequence[Mark]) -> list[str]:
    shown = seen(cluster.audit.all_since(since))
    return [reason for mark in found for reason in (*absent(cluster, shown, mark.by), *unproven(shown, mark))]
