"""The references of an object: every field that contains the name of another object.

The checks, the graph and the list of Secrets all read what `references_of` returns.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

from msgspec import Struct

from kaigen.core.json_types import FieldPath
from kaigen.kubernetes.kind_table import KINDS, kind_of
from kaigen.kubernetes.manifest import Identity, Object, group_of, mapping, text
from kaigen.kubernetes.object_kind import SCALABLE, ObjectKind, ReferenceField, Use
from kaigen.kubernetes.pods import CONTAINER_FIELDS
from kaigen.kubernetes.schemas import is_cluster_type
from kaigen.kubernetes.secrets import DOCKER_CONFIG, DOCKER_CONFIG_KEY

_SECRET = ("Secret",)
_CONFIG_MAP = ("ConfigMap",)


def _of_containers() -> Iterator[ReferenceField]:
    for field in CONTAINER_FIELDS:
        yield ReferenceField(f"{field}[].env[].valueFrom.configMapKeyRef.name", _CONFIG_MAP, "reads")
        yield ReferenceField(f"{field}[].env[].valueFrom.secretKeyRef.name", _SECRET, "reads")
        yield ReferenceField(f"{field}[].envFrom[].configMapRef.name", _CONFIG_MAP, "reads")
        yield ReferenceField(f"{field}[].envFrom[].secretRef.name", _SECRET, "reads")


POD_REFERENCES = (
    ReferenceField("serviceAccountName", ("ServiceAccount",), "runs as"),
    ReferenceField(
        "imagePullSecrets[].name",
        _SECRET,
        "pulls with",
        keys=(DOCKER_CONFIG_KEY,),
        secret_type=DOCKER_CONFIG,
        as_files=True,
    ),
    *_of_containers(),
    ReferenceField("volumes[].persistentVolumeClaim.claimName", ("PersistentVolumeClaim",), "mounts"),
    ReferenceField("volumes[].configMap.name", _CONFIG_MAP, "reads", as_files=True),
    ReferenceField("volumes[].secret.secretName", _SECRET, "reads", as_files=True),
    ReferenceField("volumes[].projected.sources[].configMap.name", _CONFIG_MAP, "reads", as_files=True),
    ReferenceField("volumes[].projected.sources[].secret.name", _SECRET, "reads", as_files=True),
    ReferenceField(
        "volumes[].azureFile.secretName", _SECRET, "reads", keys=("azurestorageaccountname", "azurestorageaccountkey")
    ),
    ReferenceField("volumes[].*.secretRef.name", _SECRET, "reads"),
    ReferenceField("volumes[].*.nodePublishSecretRef.name", _SECRET, "reads"),
    ReferenceField("resourceClaims[].resourceClaimName", ("ResourceClaim.resource.k8s.io",)),
    ReferenceField("resourceClaims[].resourceClaimTemplateName", ("ResourceClaimTemplate.resource.k8s.io",)),
)
"""Paths are relative to the spec of the pod."""


_MONITORING_FIELDS = frozenset({"bearerTokenSecret", "credentials", "keySecret", "password", "secret", "username"})
"""Fields of ServiceMonitor, PodMonitor and their like that contain the name of a Secret and a key."""

_KEYED = ("ConfigMap", "Secret")
_USUAL_FIELD = ReferenceField("", ("Secret",), "reads")


class Reference(Struct, frozen=True):
    """One place in an object that names another object.

    Attributes:
        target: what is named. Its namespace is empty for an object of the cluster, and where the object that names
            it leaves its own namespace to the deployment.
        path: where the name is.
        use: what the object does with the target.
        keys: keys of a ConfigMap or Secret that are read, with their places; empty for all of them.
        optional: the object works without the target.
        secret_type: type that a Secret must have.
        as_files: the values become files, and not environment variables.
        port: port of a Service that is called, by number or name; None when none is given.
        port_path: where the port is.
    """

    target: Identity
    path: FieldPath
    use: Use
    keys: tuple[tuple[str, FieldPath], ...] = ()
    optional: bool = False
    secret_type: str = "Opaque"
    as_files: bool = False
    port: object = None
    port_path: FieldPath = ()


class _Step:
    """A node of the tree of all paths to the references of one kind."""

    __slots__ = ("any_key", "items", "keys", "known", "names")

    def __init__(self) -> None:
        self.keys: dict[str, _Step] = {}
        self.items: _Step | None = None
        self.any_key: _Step | None = None
        self.known: set[str] = set()
        self.names: list[tuple[str, ReferenceField, dict[str, str]]] = []

    def add(self, path: str, field: ReferenceField) -> None:
        """Add the path of one field."""
        *parents, name = path.replace("[]", ".[]").split(".")
        step = self
        for parent in parents:
            if parent == "[]":
                step.items = step.items or _Step()
                step = step.items
            elif parent == "*":
                step.any_key = step.any_key or _Step()
                step = step.any_key
            else:
                step.known.add(parent)
                step = step.keys.setdefault(parent, _Step())
        step.known.add(name)
        step.names.append((name, field, _targets(field)))


_NOTHING = _Step()


def references_of(obj: Object, namespace: str = "") -> list[Reference]:
    """Return every reference of an object; one target as often as it is named.

    A kind that the table of object kinds does not describe completely is searched for pods and for fields with the
    usual names of references to Secrets.

    Args:
        obj: a Kubernetes object; values of the wrong type are ignored.
        namespace: where the deployment puts the object when it does not name a namespace itself.
    """
    row = kind_of(obj)
    own = text(mapping(obj.get("metadata")).get("namespace")) or namespace
    if is_cluster_type(row.kind, row.group):
        own = ""
    found: list[Reference] = []
    _walk(_steps_of(row.type), obj, (), own, found)
    if row.references is None:
        found += _search(obj, (), group_of(obj), own)
    return found


@cache
def _steps_of(type_: str) -> _Step:
    root, row = _Step(), KINDS.get(type_) or ObjectKind(type_)
    for field in row.references or ():
        root.add(field.path, field)
    if row.references is not None:  # for other kinds the search finds them
        for pod in row.pods:
            prefix = f"{pod.path}.spec" if pod.path else "spec"
            for field in POD_REFERENCES:
                root.add(f"{prefix}.{field.path}", field)
    return root


@cache
def _pod_steps() -> _Step:
    root = _Step()
    for field in POD_REFERENCES:
        root.add(field.path, field)
    return root


def _walk(step: _Step, value: object, path: FieldPath, namespace: str, found: list[Reference]) -> None:
    """Add the references below a value; paths are built only where the tree of steps leads on."""
    if isinstance(value, list):
        below = step.items or _NOTHING
        for number, item in enumerate(value):
            if isinstance(item, dict) and (below.any_key or not below.known.isdisjoint(item)):
                _walk(below, item, (*path, number), namespace, found)
        return
    if not isinstance(value, dict):
        return
    for name, field, targets in step.names:
        if name in value:
            reference = _reference(field, targets, value, name, path, namespace)
            if reference is not None:
                found.append(reference)
    for key, below in step.keys.items():
        if key in value:
            _walk(below, value[key], (*path, key), namespace, found)
    if step.any_key is not None:
        for key, item in value.items():
            _walk(step.any_key, item, (*path, str(key)), namespace, found)


def _reference(
    field: ReferenceField, targets: dict[str, str], holder: Object, name_field: str, path: FieldPath, namespace: str
) -> Reference | None:
    """Return the reference of a field; None when it names an object of another kind."""
    name = holder.get(name_field)
    if not isinstance(name, str) or not name:
        return None
    target = _target(field, targets, holder) if name_field == "name" else field.targets[0]
    if target is None:
        return None
    kind, _, group = target.partition(".")
    if is_cluster_type(kind, group):
        namespace = ""
    else:
        given = holder.get({"name": "namespace", "secretName": "secretNamespace"}.get(name_field, ""))
        namespace = text(given) or namespace
    port, port_path = _port(field, holder, path) if field.port else (None, ())
    keys = _keys(field, holder, path) if target in _KEYED else ()
    is_login = [key for key, _ in keys] == [DOCKER_CONFIG_KEY]
    return Reference(
        Identity(target, namespace, name),
        (*path, name_field),
        field.use,
        keys,
        holder.get("optional") is True,
        DOCKER_CONFIG if is_login else field.secret_type,
        field.as_files,
        port,
        port_path,
    )


def _target(field: ReferenceField, targets: dict[str, str], holder: Object) -> str | None:
    """Return the type of the object that is named; None when the field must not name it."""
    kind = holder.get("kind")
    target = field.targets[0] if kind is None else targets.get(str(kind))
    if target is None:
        return None
    version = holder.get("apiVersion")
    group = group_of(holder) if isinstance(version, str) else holder.get("group")
    return target if not group or group == target.partition(".")[2] else None


def _targets(field: ReferenceField) -> dict[str, str]:
    """Return the types that a field may name, by their kinds."""
    named: list[str] = []
    for target in field.targets:
        named += [row.type for row in KINDS.values() if row.scalable] if target == SCALABLE else [target]
    return {target.partition(".")[0]: target for target in named}


def _keys(field: ReferenceField, holder: Object, path: FieldPath) -> tuple[tuple[str, FieldPath], ...]:
    key, items = holder.get("key"), holder.get("items")
    if isinstance(key, str):
        return ((key, (*path, "key")),)
    if isinstance(items, list):
        listed = [(mapping(item).get("key"), (*path, "items", n, "key")) for n, item in enumerate(items)]
        return tuple((key, place) for key, place in listed if isinstance(key, str))
    return tuple((key, ()) for key in field.keys)


def _port(field: ReferenceField, holder: Object, path: FieldPath) -> tuple[object, FieldPath]:
    for place in field.port:
        value: object = holder
        steps = place.split(".")
        for step in steps:
            value = mapping(value).get(step)
        if value is not None:
            return value, (*path, *steps)
    return None, ()


def _search(node: object, path: FieldPath, group: str, namespace: str) -> Iterator[Reference]:
    """Yield the references of pods, and of fields that are named as references to Secrets usually are."""
    if isinstance(node, list):
        for number, item in enumerate(node):
            if isinstance(item, (dict, list)):
                yield from _search(item, (*path, number), group, namespace)
    elif isinstance(node, dict):
        if isinstance(node.get("containers"), list):
            found: list[Reference] = []
            _walk(_pod_steps(), node, path, namespace, found)
            yield from found
            return
        for key, value in node.items():
            if isinstance(value, dict):
                yield from _secret_field(str(key), value, (*path, str(key)), group, namespace)
                yield from _search(value, (*path, str(key)), group, namespace)
            elif isinstance(value, list):
                yield from _search(value, (*path, str(key)), group, namespace)


def _secret_field(name: str, value: Object, path: FieldPath, group: str, namespace: str) -> Iterator[Reference]:
    key = value.get("key")
    monitoring = group == "monitoring.coreos.com" and name in _MONITORING_FIELDS
    usual = name.lower().endswith("secretref" if key is None else "secretkeyref")
    if usual or (monitoring and isinstance(key, str)):
        reference = _reference(_USUAL_FIELD, {"Secret": "Secret"}, value, "name", path, namespace)
        if reference is not None:
            yield reference
