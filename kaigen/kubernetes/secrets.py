"""Types of Secrets, and the objects that make them: ExternalSecrets, SealedSecrets, and Secrets themselves."""

from __future__ import annotations

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
        source: `ExternalSecret`, `SealedSecret`, `SOPS` or `Secret`.
        path: the field of the object that lists the keys.
    """

    name: str
    keys: frozenset[str] | None
    source: str
    path: FieldPath


def made_secret(obj: Object) -> MadeSecret | None:
    """Return the Secret that an object makes; None when it makes none."""
    type_ = type_of(obj)
    if type_ == EXTERNAL_SECRET:
        return _external(obj)
    name = mapping(obj.get("metadata")).get("name")
    if not isinstance(name, str):
        return None
    spec = mapping(obj.get("spec"))
    if type_ == SEALED_SECRET:
        # The controller gives the Secret the name of its SealedSecret, whatever the template contains.
        keys = {*mapping(spec.get("encryptedData")), *mapping(mapping(spec.get("template")).get("data"))}
        return MadeSecret(name, frozenset(map(str, keys)), "SealedSecret", ("spec", "encryptedData"))
    if type_ == SECRET:
        keys = {*mapping(obj.get("data")), *mapping(obj.get("stringData"))}
        field = "stringData" if "stringData" in obj else "data"
        return MadeSecret(name, frozenset(map(str, keys)), "SOPS" if "sops" in obj else "Secret", (field,))
    return None


def _external(obj: Object) -> MadeSecret | None:
    spec = mapping(obj.get("spec"))
    target = mapping(spec.get("target"))
    name = target.get("name") or mapping(obj.get("metadata")).get("name")
    if not isinstance(name, str) or "manifest" in target:
        return None
    template = mapping(target.get("template"))
    templated = set(mapping(template.get("data")))
    given = {text(item.get("secretKey")) for _, item in entries(spec.get("data"))} - {""}
    unknown = bool(spec.get("dataFrom") or template.get("templateFrom"))
    # Templated keys replace the keys that were read, unless they are merged.
    if templated and template.get("mergePolicy") != "Merge":
        given, unknown = set(), bool(template.get("templateFrom"))
    keys = None if unknown else frozenset({*given, *map(str, templated)})
    return MadeSecret(name, keys, "ExternalSecret", ("spec", "data") if "data" in spec else ("spec",))
