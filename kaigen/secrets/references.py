"""Where an object refers to a Secret, and which of its keys are read there."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from kaigen.check.pods import CONTAINER_FIELDS, Object, entries, group_of, mapping
from kaigen.diagnostics.field_path import FieldPath as Path

OPAQUE = "Opaque"
DOCKER = "kubernetes.io/dockerconfigjson"
TLS = "kubernetes.io/tls"
DOCKER_KEY = ".dockerconfigjson"
TLS_KEYS = ("tls.crt", "tls.key")

_OTHER_WAYS = {
    ("", "ConfigMap"),
    ("", "Secret"),
    ("apiextensions.k8s.io", "CustomResourceDefinition"),
    ("bitnami.com", "SealedSecret"),
    ("external-secrets.io", "ExternalSecret"),
}
"""Kinds whose fields only look like references, or that make Secrets."""

_MONITOR_FIELDS = {"bearerTokenSecret", "credentials", "keySecret", "password", "secret", "username"}
"""Fields of ServiceMonitor and PodMonitor that hold the name of a Secret and a key."""


@dataclass(frozen=True, slots=True)
class Reference:
    """One place in an object that names a Secret.

    Attributes:
        name: of the Secret.
        keys: what is read of it; empty when that is all, whichever keys it has.
        path: where the name stands in the object.
        purpose: what it is read for, a few words.
        as_file: the values become files, not variables.
        type: the type that the Secret must have.
        optional: it works without.
        namespace: of the Secret; empty for the object's own.
    """

    name: str
    keys: tuple[str, ...]
    path: Path
    purpose: str
    as_file: bool = False
    type: str = OPAQUE
    optional: bool = False
    namespace: str = ""


def references(obj: Object) -> list[Reference]:
    """Every reference of an object to a Secret, in the order of its fields.

    A pod's spec is found wherever it stands, so that kinds that kaigen does not know are read too.
    """
    key = (group_of(obj), str(obj.get("kind")))
    if key in _OTHER_WAYS:
        return []
    own = _KINDS.get(key)
    return [*(own(obj) if own else ()), *_walk(obj, (), key[0])]


def _walk(node: object, path: Path, group: str) -> Iterator[Reference]:
    if isinstance(node, list):
        for number, item in enumerate(node):
            yield from _walk(item, (*path, number), group)
    elif isinstance(node, dict):
        if isinstance(node.get("containers"), list):
            yield from _pod(node, path)
            return
        for key, value in node.items():
            if isinstance(value, dict):
                yield from _selector(str(key), value, (*path, str(key)), group)
            yield from _walk(value, (*path, str(key)), group)


def _selector(field: str, value: Object, path: Path, group: str) -> Iterator[Reference]:
    """A field outside of pods that names a Secret by the usual name of such fields."""
    name, key = value.get("name"), value.get("key")
    if not isinstance(name, str):
        return
    space = _text(value.get("namespace"))
    optional = value.get("optional") is True
    monitor = group == "monitoring.coreos.com" and field in _MONITOR_FIELDS
    if isinstance(key, str) and (monitor or field.lower().endswith("secretkeyref")):
        yield Reference(name, (key,), (*path, "name"), _at(path), optional=optional, namespace=space)
    elif key is None and field.lower().endswith("secretref"):
        yield Reference(name, (), (*path, "name"), _at(path), optional=optional, namespace=space)


def _at(path: Path) -> str:
    return ".".join(str(step) for step in path if step != "spec" and isinstance(step, str))


def _pod(spec: Object, path: Path) -> Iterator[Reference]:
    yield from _pulls(spec, path)
    for role in CONTAINER_FIELDS:
        for number, body in entries(spec.get(role)):
            yield from _container(body, (*path, role, number))
    for number, volume in entries(spec.get("volumes")):
        yield from _volume(volume, (*path, "volumes", number))


def _pulls(holder: Object, path: Path) -> Iterator[Reference]:
    for number, item in entries(holder.get("imagePullSecrets")):
        name = item.get("name")
        if isinstance(name, str) and name:
            place = (*path, "imagePullSecrets", number, "name")
            yield Reference(name, (DOCKER_KEY,), place, "pulls images", as_file=True, type=DOCKER)


def _container(body: Object, path: Path) -> Iterator[Reference]:
    of = f" of {body['name']}" if isinstance(body.get("name"), str) else ""
    for number, variable in entries(body.get("env")):
        source = mapping(mapping(variable.get("valueFrom")).get("secretKeyRef"))
        name, key = source.get("name"), source.get("key")
        if isinstance(name, str) and isinstance(key, str):
            place = (*path, "env", number, "valueFrom", "secretKeyRef", "name")
            purpose = f"variable {variable.get('name')}{of}"
            yield Reference(name, (key,), place, purpose, optional=source.get("optional") is True)
    for number, origin in entries(body.get("envFrom")):
        source = mapping(origin.get("secretRef"))
        name = source.get("name")
        if isinstance(name, str):
            place = (*path, "envFrom", number, "secretRef", "name")
            yield Reference(name, (), place, f"variables{of}", optional=source.get("optional") is True)


def _volume(volume: Object, path: Path) -> Iterator[Reference]:
    purpose = f"volume {volume.get('name')}"
    if "secret" in volume:
        yield from _files(mapping(volume["secret"]), "secretName", (*path, "secret"), purpose)
    for number, source in entries(mapping(volume.get("projected")).get("sources")):
        if "secret" in source:
            place = (*path, "projected", "sources", number, "secret")
            yield from _files(mapping(source["secret"]), "name", place, purpose)
    share = mapping(volume.get("azureFile"))
    if isinstance(share.get("secretName"), str):
        keys = ("azurestorageaccountname", "azurestorageaccountkey")
        yield Reference(str(share["secretName"]), keys, (*path, "azureFile", "secretName"), purpose)
    for kind, body in volume.items():
        for field in ("secretRef", "nodePublishSecretRef"):
            name = mapping(mapping(body).get(field)).get("name")
            if isinstance(name, str):
                yield Reference(name, (), (*path, kind, field, "name"), purpose)


def _files(source: Object, field: str, path: Path, purpose: str) -> Iterator[Reference]:
    name = source.get(field)
    if isinstance(name, str):
        found = (item.get("key") for _, item in entries(source.get("items")))
        keys = tuple(key for key in found if isinstance(key, str))
        optional = source.get("optional") is True
        yield Reference(name, keys, (*path, field), purpose, as_file=True, optional=optional)


def _service_account(obj: Object) -> Iterator[Reference]:
    yield from _pulls(obj, ())
    for number, item in entries(obj.get("secrets")):
        name = item.get("name")
        if isinstance(name, str):
            yield Reference(name, (), ("secrets", number, "name"), "the account's")


def _ingress(obj: Object) -> Iterator[Reference]:
    for number, item in entries(mapping(obj.get("spec")).get("tls")):
        name = item.get("secretName")
        if isinstance(name, str) and name:
            yield Reference(
                name, TLS_KEYS, ("spec", "tls", number, "secretName"), "TLS", as_file=True, type=TLS
            )


def _gateway(obj: Object) -> Iterator[Reference]:
    for number, listener in entries(mapping(obj.get("spec")).get("listeners")):
        for place, item in entries(mapping(listener.get("tls")).get("certificateRefs")):
            name = item.get("name")
            if isinstance(name, str) and item.get("kind", "Secret") == "Secret" and not item.get("group"):
                path: Path = ("spec", "listeners", number, "tls", "certificateRefs", place, "name")
                space = _text(item.get("namespace"))
                yield Reference(name, TLS_KEYS, path, "TLS", as_file=True, type=TLS, namespace=space)


def _trigger_authentication(obj: Object) -> Iterator[Reference]:
    for number, item in entries(mapping(obj.get("spec")).get("secretTargetRef")):
        name, key = item.get("name"), item.get("key")
        if isinstance(name, str) and isinstance(key, str):
            path: Path = ("spec", "secretTargetRef", number, "name")
            yield Reference(name, (key,), path, f"trigger's {item.get('parameter')}")


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


_KINDS: dict[tuple[str, str], Callable[[Object], Iterator[Reference]]] = {
    ("", "ServiceAccount"): _service_account,
    ("gateway.networking.k8s.io", "Gateway"): _gateway,
    ("keda.sh", "TriggerAuthentication"): _trigger_authentication,
    ("networking.k8s.io", "Ingress"): _ingress,
}
