"""Which objects make Secrets, and with which keys."""

from __future__ import annotations

from dataclasses import dataclass

from kaigen.check.pods import Object, entries, group_of, mapping
from kaigen.diagnostics.field_path import FieldPath as Path


@dataclass(frozen=True, slots=True)
class Made:
    """A Secret that an object comes to in the cluster.

    Attributes:
        name: of the Secret.
        keys: those it will have; None when the object does not tell.
        way: `ExternalSecret`, `SealedSecret` or `SOPS`.
        path: where the object says which keys there are.
    """

    name: str
    keys: frozenset[str] | None
    way: str
    path: Path


def made_by(obj: Object) -> Made | None:
    """The Secret that an object makes; None when it makes none."""
    key = (group_of(obj), obj.get("kind"))
    if key == ("external-secrets.io", "ExternalSecret"):
        return _external(obj)
    name = mapping(obj.get("metadata")).get("name")
    if not isinstance(name, str):
        return None
    spec = mapping(obj.get("spec"))
    if key == ("bitnami.com", "SealedSecret"):
        # The controller gives the Secret the name of its SealedSecret, whatever the template says.
        keys = {*mapping(spec.get("encryptedData")), *mapping(mapping(spec.get("template")).get("data"))}
        return Made(name, frozenset(map(str, keys)), "SealedSecret", ("spec", "encryptedData"))
    if key == ("", "Secret"):
        keys = {*mapping(obj.get("data")), *mapping(obj.get("stringData"))}
        field = "stringData" if "stringData" in obj else "data"
        return Made(name, frozenset(map(str, keys)), "SOPS" if "sops" in obj else "Secret", (field,))
    return None


def _external(obj: Object) -> Made | None:
    spec = mapping(obj.get("spec"))
    target = mapping(spec.get("target"))
    name = target.get("name") or mapping(obj.get("metadata")).get("name")
    if not isinstance(name, str) or "manifest" in target:
        return None
    template = mapping(target.get("template"))
    templated = set(mapping(template.get("data")))
    given = {item.get("secretKey") for _, item in entries(spec.get("data"))}
    unknown = bool(spec.get("dataFrom") or template.get("templateFrom"))
    # What a template writes takes the place of what was read, unless it is merged with it.
    if templated and template.get("mergePolicy") != "Merge":
        given, unknown = set(), bool(template.get("templateFrom"))
    keys = None if unknown else frozenset(str(key) for key in {*given, *templated} if key is not None)
    return Made(name, keys, "ExternalSecret", ("spec", "data") if "data" in spec else ("spec",))
