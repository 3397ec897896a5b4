"""Types of Secrets, and the objects that make them: ExternalSecrets, SealedSecrets, Certificates, and Secrets."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from kaigen.core.json_types import FieldPath
from kaigen.kubernetes.manifest import Object, entries, mapping, text, type_of

OPAQUE = "Opaque"
DOCKER_CONFIG = "kubernetes.io/dockerconfigjson"
DOCKER_CONFIG_KEY = ".dockerconfigjson"
TLS = "kubernetes.io/tls"
TLS_KEYS = ("tls.crt", "tls.key")


SECRET = "Secret"
EXTERNAL_SECRET = "ExternalSecret.external-secrets.io"
SEALED_SECRET = "SealedSecret.bitnami.com"


class MadeSecret(Struct, frozen=True):
    """A Secret that an object becomes in the cluster.

    Attributes:
        name: of the Secret.
        keys: the keys that it will have; None when the object does not list them.
        source: `ExternalSecret`, `SealedSecret`, `SOPS`, `Secret` or `cert-manager`.
        path: the field of the object that lists the keys.
    """

    name: str
    keys: frozenset[str] | None
    source: str
    path: FieldPath


CERT_MANAGER = "cert-manager"
"""The source of a Secret that cert-manager makes."""

_CERTIFICATE = "Certificate.cert-manager.io"
_ISSUERS = ("cert-manager.io/issuer", "cert-manager.io/cluster-issuer")
_ACME = "kubernetes.io/tls-acme"
"""cert-manager requests certificates for an Ingress with this annotation by default, and for none of a Gateway.

Source: `hasShimAnnotation` and `SyncFnFor` in cert-manager's pkg/controller/certificate-shim (1.19).
"""


def made_secrets(obj: Object) -> Iterator[MadeSecret]:
    """Yield the Secrets that an object makes, or that cert-manager makes for it."""
    type_ = type_of(obj)
    spec = mapping(obj.get("spec"))
    if type_ == EXTERNAL_SECRET:
        yield from _external(obj)
    elif type_ == _CERTIFICATE:
        yield from _certificate(spec.get("secretName"), ("spec", "secretName"))
    elif type_ == "Ingress.networking.k8s.io" and _has_issuer(obj, acme=True):
        for index, tls in entries(spec.get("tls")):
            yield from _certificate(tls.get("secretName"), ("spec", "tls", index, "secretName"))
    elif type_ == "Gateway.gateway.networking.k8s.io" and _has_issuer(obj, acme=False):
        for index, listener in entries(spec.get("listeners")):
            for number, ref in entries(mapping(listener.get("tls")).get("certificateRefs")):
                # cert-manager makes none in other namespaces and of other kinds.
                if ref.get("kind") in {None, "Secret"} and "namespace" not in ref:
                    path = ("spec", "listeners", index, "tls", "certificateRefs", number, "name")
                    yield from _certificate(ref.get("name"), path)
    elif isinstance(name := mapping(obj.get("metadata")).get("name"), str):
        yield from _named(obj, name)


def _named(obj: Object, name: str) -> Iterator[MadeSecret]:
    type_ = type_of(obj)
    if type_ == SEALED_SECRET:
        spec = mapping(obj.get("spec"))
        # The controller gives the Secret the name of its SealedSecret, whatever the template contains.
        keys = {*mapping(spec.get("encryptedData")), *mapping(mapping(spec.get("template")).get("data"))}
        yield MadeSecret(name, frozenset(map(str, keys)), "SealedSecret", ("spec", "encryptedData"))
    elif type_ == SECRET:
        keys = {*mapping(obj.get("data")), *mapping(obj.get("stringData"))}
        field = "stringData" if "stringData" in obj else "data"
        yield MadeSecret(name, frozenset(map(str, keys)), "SOPS" if "sops" in obj else "Secret", (field,))


def _has_issuer(obj: Object, *, acme: bool) -> bool:
    notes = mapping(mapping(obj.get("metadata")).get("annotations"))
    return any(key in notes for key in _ISSUERS) or (acme and notes.get(_ACME) == "true")


def _certificate(name: object, path: FieldPath) -> Iterator[MadeSecret]:
    if isinstance(name, str) and name:
        yield MadeSecret(name, None, CERT_MANAGER, path)


def _external(obj: Object) -> Iterator[MadeSecret]:
    spec = mapping(obj.get("spec"))
    target = mapping(spec.get("target"))
    name = target.get("name") or mapping(obj.get("metadata")).get("name")
    if not isinstance(name, str) or "manifest" in target:
        return
    template = mapping(target.get("template"))
    templated = set(mapping(template.get("data")))
    given = {text(item.get("secretKey")) for _, item in entries(spec.get("data"))} - {""}
    unknown = bool(spec.get("dataFrom") or template.get("templateFrom"))
    # Templated keys replace the keys that were read, unless they are merged.
    if templated and template.get("mergePolicy") != "Merge":
        given, unknown = set(), bool(template.get("templateFrom"))
    keys = None if unknown else frozenset({*given, *map(str, templated)})
    yield MadeSecret(name, keys, "ExternalSecret", ("spec", "data") if "data" in spec else ("spec",))
