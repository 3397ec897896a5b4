"""Findings for references between the objects of an app that lead nowhere, and for classes that kaigen.yaml lacks.

Secrets are never in Git, so references to them are not checked here. The caller names the objects that exist without
the app, and the classes that kaigen.yaml lists in `external`.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence

from msgspec import Struct, field

from kaigen.check import codes
from kaigen.config.external import ExternalEntry
from kaigen.core.json_types import FieldPath
from kaigen.diagnostics.diagnostic import Severity
from kaigen.diagnostics.problem import Problem
from kaigen.diagnostics.suggest import did_you_mean
from kaigen.kubernetes.claims import created_volume
from kaigen.kubernetes.cluster_needs import DEFAULT_CLASS, cluster_needs
from kaigen.kubernetes.kind_table import KINDS
from kaigen.kubernetes.manifest import Identity, Object, entries, identity_of, mapping
from kaigen.kubernetes.object_kind import ObjectKind
from kaigen.kubernetes.references import Reference, references_of
from kaigen.kubernetes.selectors import Pods, pods_of, select_pods, selector_of

External = Container[tuple[str, str, str]]
"""Kind, namespace (empty where the deployment chooses it) and name of objects that exist without the app."""


class MissingObject(Problem, frozen=True, kw_only=True):
    """A reference to an object that is neither in the app nor known to exist without it.

    Attributes:
        target: what is named.
    """

    target: Identity


class _App(Struct, frozen=True, dict=True):
    """All objects of an app by their identity.

    Attributes:
        pods: its pods.
        external: objects that exist without it.
        objects: its objects.
        names: their names by type and namespace.
    """

    pods: list[Pods]
    external: External
    objects: dict[Identity, Object] = field(default_factory=dict)
    names: dict[tuple[str, str], list[str]] = field(default_factory=dict)

    def add(self, identity: Identity, obj: Object) -> Object:
        """Add an object unless there is one of the same name, and return the one that is there."""
        found = self.objects.setdefault(identity, obj)
        if found is obj:
            self.names.setdefault((identity.type, identity.namespace), []).append(identity.name)
        return found

    def find(self, target: Identity) -> Object | None:
        """Return an object of the app; one without a namespace goes to the namespace of the others."""
        found = self.objects.get(target)
        if found is None and target.namespace:
            found = self.objects.get(target._replace(namespace=""))
        return found

    def has(self, target: Identity) -> bool:
        """Whether an object is in the app or exists without it."""
        row = KINDS.get(target.type) or ObjectKind(target.type)
        return (
            self.find(target) is not None
            or row.outside_git
            or row.has_built_in(target.name)
            or self.is_external(target)
        )

    def is_external(self, target: Identity) -> bool:
        """Whether the caller named an object."""
        return (target.kind, target.namespace, target.name) in self.external


def check_references(objs: Sequence[Object], *, external: External = ()) -> list[tuple[int, Problem]]:
    """Check that the objects of an app are unique and that those they name exist.

    Args:
        objs: all objects of the app.
        external: objects that exist without the app.

    Returns:
        Findings, each with the index of its object.
    """
    app = _App(pods_of(objs), external)
    findings: list[tuple[int, Problem]] = []
    for number, obj in enumerate(objs):
        identity = identity_of(obj)
        if identity.name and app.add(identity, obj) is not obj:
            message = f"the app has two {identity.kind} objects named `{identity.name}`"
            findings.append((number, Problem(codes.DUPLICATE_OBJECT, message, ("metadata", "name"))))
        volume = created_volume(obj)
        if volume is not None:
            app.add(identity_of(volume.body), volume.body)
    for number, obj in enumerate(objs):
        findings += [(number, finding) for finding in _object_findings(app, obj)]
    return findings


def _object_findings(app: _App, obj: Object) -> Iterator[Problem]:
    yield from _selector_findings(app, obj)
    for reference in references_of(obj):
        target = reference.target
        if not app.has(target):
            if not (reference.optional and target.type == "ConfigMap"):
                yield _unresolved(app, reference)
            continue
        found = app.find(target)
        if found is None:
            continue
        if target.type == "Service" and reference.port is not None:
            yield from _service_port(found, reference)
        elif target.type == "ConfigMap" and not reference.optional and not app.is_external(target):
            yield from _config_keys(found, reference)


def _unresolved(app: _App, reference: Reference) -> MissingObject:
    target = reference.target
    known = (
        name
        for namespace in dict.fromkeys((target.namespace, ""))
        for name in app.names.get((target.type, namespace), ())
    )
    where = f" in namespace {target.namespace}" if target.namespace else ""
    message = f"there is no {target.kind} `{target.name}`{where}"
    return MissingObject(
        codes.REFERENCE_UNRESOLVED,
        message,
        reference.path,
        did_you_mean(target.name, known) or "list it in `external` of kaigen.yaml if the cluster has it",
        Severity.WARNING,
        target=target,
    )


def _selector_findings(app: _App, obj: Object) -> Iterator[Problem]:
    selector = selector_of(obj)
    if selector is None:
        return
    identity = identity_of(obj)
    pods = select_pods(app.pods, identity.namespace, selector)
    if not pods:
        if not app.is_external(identity):
            message = f"the {identity.kind} selects no pod of the app"
            yield Problem(codes.SELECTS_NO_PODS, message, ("spec", selector.field))
        return
    if identity.type == "Service":
        for number, port in entries(mapping(obj.get("spec")).get("ports")):
            target = port.get("targetPort")
            if isinstance(target, str) and not any(target in pod.ports for pod in pods):
                path: FieldPath = ("spec", "ports", number, "targetPort")
                message = f"no selected pod has a port `{target}`"
                yield Problem(codes.PORT_UNRESOLVED, message, path, _known_ports(pods))


def _known_ports(pods: Sequence[Pods]) -> str:
    names = sorted({name for pod in pods for name in pod.ports})
    return f"their ports are {', '.join(names)}" if names else ""


def _service_port(service: Object, reference: Reference) -> Iterator[Problem]:
    """Check a port by which a route calls a Service, by number or name."""
    ports = [item for _, item in entries(mapping(service.get("spec")).get("ports"))]
    by = "name" if isinstance(reference.port, str) else "port"
    known = [item.get(by) for item in ports]
    if ports and reference.port not in known:
        message = f"the Service `{reference.target.name}` has no port {reference.port}"
        hint = f"its ports are {', '.join(str(port) for port in known if port is not None)}"
        yield Problem(codes.PORT_UNRESOLVED, message, reference.port_path, hint)


def _config_keys(config: Object, reference: Reference) -> Iterator[Problem]:
    """Check the keys that are read of a ConfigMap of the app."""
    known = [str(key) for key in (*mapping(config.get("data")), *mapping(config.get("binaryData")))]
    for key, path in reference.keys:
        if key not in known:
            message = f"the ConfigMap `{reference.target.name}` has no key `{key}`"
            yield Problem(codes.REFERENCE_UNRESOLVED, message, path, did_you_mean(key, known))


_TYPES = {
    "StorageClass": "StorageClass.storage.k8s.io",
    "PriorityClass": "PriorityClass.scheduling.k8s.io",
    "RuntimeClass": "RuntimeClass.node.k8s.io",
}


def check_classes(objs: Sequence[Object], external: Sequence[ExternalEntry]) -> Iterator[tuple[int, MissingObject]]:
    """Yield a warning for each class that is neither listed nor made, with the index of its object.

    Args:
        objs: the objects.
        external: what kaigen.yaml lists. Classes of a kind are checked only if it lists some of that kind.
    """
    listed = {kind: [item for item in external if item.kind == kind] for kind in _TYPES}
    if not any(listed.values()):
        return
    made = {identity_of(obj) for obj in objs}
    for number, obj in enumerate(objs):
        for need in cluster_needs(obj):
            known = listed.get(need.kind)
            if not known or need.name == DEFAULT_CLASS:
                continue
            target = Identity(_TYPES[need.kind], "", need.name)
            if target in made or any(item.is_named(need.kind, "", need.name) for item in known):
                continue
            hint = did_you_mean(need.name, [item.name for item in known])
            yield (
                number,
                MissingObject(
                    codes.REFERENCE_UNRESOLVED,
                    f"there is no {need.kind} `{need.name}`",
                    need.path,
                    hint or "list it in `external` of kaigen.yaml if the cluster has it",
                    Severity.WARNING,
                    target=target,
                ),
            )
