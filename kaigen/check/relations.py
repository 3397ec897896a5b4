"""What objects other than pods name: roles, workloads to scale, Services behind routes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from kaigen.check.pods import Object, entries, group_of, mapping
from kaigen.diagnostics.field_path import FieldPath as Path

# Kinds that a scaler may name and an app may hold.
SCALABLE = {"Deployment", "LeaderWorkerSet", "ReplicaSet", "StatefulSet"}


class Relation(NamedTuple):
    """One reference to an object.

    Attributes:
        kind: of the object referred to.
        namespace: of that object; None for the referring object's own, empty for none.
        name: of that object.
        path: where the reference stands.
        port: the port of a Service that is called, by number or name; None when none is named.
        port_path: where the port stands.
    """

    kind: str
    namespace: str | None
    name: str
    path: Path
    port: object = None
    port_path: Path = ()


def relations_of(obj: Object) -> Iterator[Relation]:
    """Every reference of an object that must be resolved; nothing for kinds without any."""
    find = FINDERS.get((group_of(obj), str(obj.get("kind"))))
    return find(obj) if find else iter(())


def _binding(obj: Object) -> Iterator[Relation]:
    role = mapping(obj.get("roleRef"))
    kind, name = role.get("kind"), role.get("name")
    if isinstance(name, str) and kind in ("Role", "ClusterRole"):
        yield Relation(str(kind), None if kind == "Role" else "", name, ("roleRef", "name"))
    for number, subject in entries(obj.get("subjects")):
        account = subject.get("name")
        if subject.get("kind") == "ServiceAccount" and isinstance(account, str):
            namespace = subject.get("namespace")
            space = namespace if isinstance(namespace, str) else None
            yield Relation("ServiceAccount", space, account, ("subjects", number, "name"))


def _scaler(obj: Object) -> Iterator[Relation]:
    spec = mapping(obj.get("spec"))
    target = mapping(spec.get("scaleTargetRef"))
    kind, name = target.get("kind", "Deployment"), target.get("name")
    if isinstance(kind, str) and kind in SCALABLE and isinstance(name, str):
        yield Relation(kind, None, name, ("spec", "scaleTargetRef", "name"))
    for number, trigger in entries(spec.get("triggers")):
        reference = mapping(trigger.get("authenticationRef"))
        name = reference.get("name")
        kind = reference.get("kind", "TriggerAuthentication")
        if isinstance(name, str):
            path = ("spec", "triggers", number, "authenticationRef", "name")
            yield Relation(str(kind), "" if kind == "ClusterTriggerAuthentication" else None, name, path)


def _stateful_set(obj: Object) -> Iterator[Relation]:
    name = mapping(obj.get("spec")).get("serviceName")
    if isinstance(name, str) and name:
        yield Relation("Service", None, name, ("spec", "serviceName"))


def _ingress(obj: Object) -> Iterator[Relation]:
    spec = mapping(obj.get("spec"))
    if "defaultBackend" in spec:
        yield from _ingress_backend(mapping(spec["defaultBackend"]), ("spec", "defaultBackend"))
    for number, rule in entries(spec.get("rules")):
        for place, way in entries(mapping(rule.get("http")).get("paths")):
            path = ("spec", "rules", number, "http", "paths", place, "backend")
            yield from _ingress_backend(mapping(way.get("backend")), path)


def _ingress_backend(backend: Object, path: Path) -> Iterator[Relation]:
    service = mapping(backend.get("service"))
    name, port = service.get("name"), mapping(service.get("port"))
    if isinstance(name, str):
        field = "name" if "name" in port else "number"
        port_path = (*path, "service", "port", field)
        yield Relation("Service", None, name, (*path, "service", "name"), port.get(field), port_path)


def _route(obj: Object) -> Iterator[Relation]:
    for number, rule in entries(mapping(obj.get("spec")).get("rules")):
        for place, backend in entries(rule.get("backendRefs")):
            kind, name = backend.get("kind", "Service"), backend.get("name")
            if kind not in ("Service", "InferencePool") or not isinstance(name, str):
                continue
            namespace = backend.get("namespace")
            path = ("spec", "rules", number, "backendRefs", place)
            yield Relation(
                str(kind),
                namespace if isinstance(namespace, str) else None,
                name,
                (*path, "name"),
                backend.get("port"),
                (*path, "port"),
            )


def _inference_pool(obj: Object) -> Iterator[Relation]:
    picker = mapping(mapping(obj.get("spec")).get("endpointPickerRef"))
    name = picker.get("name")
    if isinstance(name, str) and picker.get("kind", "Service") == "Service":
        port = mapping(picker.get("port")).get("number")
        path = ("spec", "endpointPickerRef")
        yield Relation("Service", None, name, (*path, "name"), port, (*path, "port", "number"))


FINDERS: dict[tuple[str, str], Callable[[Object], Iterator[Relation]]] = {
    ("apps", "StatefulSet"): _stateful_set,
    ("autoscaling", "HorizontalPodAutoscaler"): _scaler,
    ("gateway.networking.k8s.io", "GRPCRoute"): _route,
    ("gateway.networking.k8s.io", "HTTPRoute"): _route,
    ("inference.networking.k8s.io", "InferencePool"): _inference_pool,
    ("keda.sh", "ScaledObject"): _scaler,
    ("networking.k8s.io", "Ingress"): _ingress,
    ("rbac.authorization.k8s.io", "ClusterRoleBinding"): _binding,
    ("rbac.authorization.k8s.io", "RoleBinding"): _binding,
}
