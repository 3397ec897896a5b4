"""Do the objects of an app find each other?

Secrets are never in Git, so that references to them are not followed. What a cluster or another app brings
along is named by the caller.
"""

from __future__ import annotations

from collections.abc import Container as Collection
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from kaigen.check import codes
from kaigen.check.pods import Container, Object, PodTemplate, containers, entries, mapping, pod_templates
from kaigen.check.relations import relations_of
from kaigen.check.selectors import Pods, pods_of, selected, selector_of
from kaigen.diagnostics.field_path import FieldPath as Path
from kaigen.diagnostics.problem import Problem

Identity = tuple[str, str, str]

# What every cluster and every namespace has.
BUILT_IN = frozenset(
    {
        ("ServiceAccount", "default"),
        ("ConfigMap", "kube-root-ca.crt"),
        ("ClusterRole", "admin"),
        ("ClusterRole", "cluster-admin"),
        ("ClusterRole", "edit"),
        ("ClusterRole", "view"),
    }
)


class _App(NamedTuple):
    """All objects of an app, found by what they are."""

    objects: dict[Identity, Object]
    pods: list[Pods]
    external: Collection[Identity]

    def find(self, kind: str, namespace: str, name: str) -> Object | None:
        """An object of the app; one without a namespace goes where the others go."""
        found = self.objects.get((kind, namespace, name))
        if found is None and namespace:
            found = self.objects.get((kind, "", name))
        return found

    def has(self, kind: str, namespace: str, name: str) -> bool:
        """Whether an object is in the app or said to be there anyway."""
        return (
            self.find(kind, namespace, name) is not None
            or (kind, name) in BUILT_IN
            or (kind == "ClusterRole" and name.startswith("system:"))
            or (kind, namespace, name) in self.external
        )


def check_references(
    objs: Sequence[Object], *, external: Collection[Identity] = ()
) -> list[tuple[int, Problem]]:
    """Check that what the objects of one app refer to is there.

    Args:
        objs: all objects of the app.
        external: kind, namespace (empty: left to the deployment) and name of what is there without the app.

    Returns:
        Findings, each with the index of its object.
    """
    app = _App({}, pods_of(objs), external)
    findings: list[tuple[int, Problem]] = []
    first: dict[tuple[object, ...], int] = {}
    for place, obj in enumerate(objs):
        identity = _identity(obj)
        key = (str(obj.get("apiVersion")).rpartition("/")[0], *identity)
        if identity[2] and first.setdefault(key, place) != place:
            message = f"the {identity[0]} `{identity[2]}` is in the app twice"
            findings.append((place, Problem(codes.DUPLICATE_OBJECT, message, ("metadata", "name"))))
        app.objects.setdefault(identity, obj)
    for place, obj in enumerate(objs):
        findings += [(place, finding) for finding in _object_findings(app, obj)]
    return findings


def _identity(obj: Object) -> Identity:
    metadata = mapping(obj.get("metadata"))
    return str(obj.get("kind")), str(metadata.get("namespace") or ""), str(metadata.get("name") or "")


def _object_findings(app: _App, obj: Object) -> Iterator[Problem]:
    namespace = _identity(obj)[1]
    for template in pod_templates(obj):
        yield from _pod_findings(app, namespace, template)
    yield from _selector_findings(app, namespace, obj)
    for relation in relations_of(obj):
        space = namespace if relation.namespace is None else relation.namespace
        found = app.find(relation.kind, space, relation.name)
        if not app.has(relation.kind, space, relation.name):
            yield _unresolved(app, relation.kind, space, relation.name, relation.path)
        elif found is not None and relation.port is not None and relation.kind == "Service":
            yield from _service_port(found, relation.name, relation.port, relation.port_path)


def _unresolved(app: _App, kind: str, namespace: str, name: str, path: Path) -> Problem:
    from kaigen.diagnostics.suggest import did_you_mean

    known = [n for k, space, n in app.objects if k == kind and space in (namespace, "")]
    where = f" in namespace {namespace}" if namespace else ""
    message = f"there is no {kind} `{name}`{where}"
    return Problem(codes.REFERENCE_UNRESOLVED, message, path, did_you_mean(name, known))


def _selector_findings(app: _App, namespace: str, obj: Object) -> Iterator[Problem]:
    found = selector_of(obj)
    if found is None:
        return
    field, selector, plain = found
    pods = selected(app.pods, namespace, selector, plain=plain)
    if not pods:
        kind, _, name = _identity(obj)
        if (kind, namespace, name) not in app.external:
            message = f"the {kind} selects no pod of the app"
            yield Problem(codes.SELECTS_NO_PODS, message, ("spec", field))
        return
    if obj.get("kind") == "Service":
        for number, port in entries(mapping(obj.get("spec")).get("ports")):
            target = port.get("targetPort")
            if isinstance(target, str) and not any(target in pod.ports for pod in pods):
                path: Path = ("spec", "ports", number, "targetPort")
                message = f"no selected pod has a port `{target}`"
                yield Problem(codes.PORT_UNRESOLVED, message, path, _known_ports(pods))


def _known_ports(pods: Sequence[Pods]) -> str:
    names = sorted({name for pod in pods for name in pod.ports})
    return f"their ports are {', '.join(names)}" if names else ""


def _service_port(service: Object, name: str, port: object, path: Path) -> Iterator[Problem]:
    """A port by which a route calls a Service, by number or name."""
    ports = [item for _, item in entries(mapping(service.get("spec")).get("ports"))]
    field = "name" if isinstance(port, str) else "port"
    known = [item.get(field) for item in ports]
    if ports and port not in known:
        message = f"the Service `{name}` has no port {port}"
        hint = f"its ports are {', '.join(str(k) for k in known if k is not None)}"
        yield Problem(codes.PORT_UNRESOLVED, message, path, hint)


def _pod_findings(app: _App, namespace: str, template: PodTemplate) -> Iterator[Problem]:
    """What a pod refers to: its account, claims, config and device claims."""
    spec, path = template.spec, (*template.path, "spec")
    account = spec.get("serviceAccountName")
    if isinstance(account, str) and account and not app.has("ServiceAccount", namespace, account):
        yield _unresolved(app, "ServiceAccount", namespace, account, (*path, "serviceAccountName"))
    for number, volume in entries(spec.get("volumes")):
        yield from _volume_findings(app, namespace, volume, (*path, "volumes", number))
    for number, claim in entries(spec.get("resourceClaims")):
        for field, kind in (
            ("resourceClaimName", "ResourceClaim"),
            ("resourceClaimTemplateName", "ResourceClaimTemplate"),
        ):
            name = claim.get(field)
            if isinstance(name, str) and not app.has(kind, namespace, name):
                yield _unresolved(app, kind, namespace, name, (*path, "resourceClaims", number, field))
    for container in containers(template):
        yield from _container_findings(app, namespace, container)


def _volume_findings(app: _App, namespace: str, volume: Object, path: Path) -> Iterator[Problem]:
    claim = mapping(volume.get("persistentVolumeClaim")).get("claimName")
    if isinstance(claim, str) and not app.has("PersistentVolumeClaim", namespace, claim):
        place = (*path, "persistentVolumeClaim", "claimName")
        yield _unresolved(app, "PersistentVolumeClaim", namespace, claim, place)
    if "configMap" in volume:
        yield from _config(app, namespace, mapping(volume["configMap"]), (*path, "configMap"))
    for number, source in entries(mapping(volume.get("projected")).get("sources")):
        if "configMap" in source:
            place = (*path, "projected", "sources", number, "configMap")
            yield from _config(app, namespace, mapping(source["configMap"]), place)


def _container_findings(app: _App, namespace: str, container: Container) -> Iterator[Problem]:
    for number, source in entries(container.body.get("envFrom")):
        if "configMapRef" in source:
            path: Path = (*container.path, "envFrom", number, "configMapRef")
            yield from _config(app, namespace, mapping(source["configMapRef"]), path)
    for number, variable in entries(container.body.get("env")):
        source = mapping(variable.get("valueFrom"))
        if "configMapKeyRef" in source:
            path = (*container.path, "env", number, "valueFrom", "configMapKeyRef")
            yield from _config(app, namespace, mapping(source["configMapKeyRef"]), path)


def _config(app: _App, namespace: str, reference: Object, path: Path) -> Iterator[Problem]:
    """A reference to a ConfigMap, and to its keys when it is in the app."""
    name = reference.get("name")
    if not isinstance(name, str) or reference.get("optional") is True:
        return
    if not app.has("ConfigMap", namespace, name):
        yield _unresolved(app, "ConfigMap", namespace, name, (*path, "name"))
    config = app.find("ConfigMap", namespace, name)
    if config is None or (config.get("kind"), namespace, name) in app.external:
        return
    keys = {**mapping(config.get("data")), **mapping(config.get("binaryData"))}
    wanted: list[tuple[object, Path]] = [(reference.get("key"), (*path, "key"))] if "key" in reference else []
    wanted += [
        (item.get("key"), (*path, "items", number, "key")) for number, item in entries(reference.get("items"))
    ]
    for key, place in wanted:
        if isinstance(key, str) and key not in keys:
            from kaigen.diagnostics.suggest import did_you_mean

            message = f"the ConfigMap `{name}` has no key `{key}`"
            yield Problem(
                codes.REFERENCE_UNRESOLVED,
                message,
                place,
                did_you_mean(key, [k for k in keys if isinstance(k, str)]),
            )
