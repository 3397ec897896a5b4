"""Settings of common types, each with the JSON Schema of its value, and the environment variables of a spec."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from kaigen.catalog.catalog import Catalog
from kaigen.catalog.gpus import is_gpu_resource
from kaigen.compile.context import Context
from kaigen.compile.expressions import Setting, Text, Tree
from kaigen.core.json_types import FieldPath
from kaigen.kinds.base import QUANTITY
from kaigen.kinds.blocks import Env, EnvSource
from kaigen.kubernetes.manifest import mapping
from kaigen.kubernetes.metadata_keys import RESERVED_LABELS

STRING: Mapping[str, Any] = {"type": "string"}
TEXT: Mapping[str, Any] = {**STRING, "minLength": 1}
STRINGS: Mapping[str, Any] = {"type": "array", "items": {"type": "string"}}
STRING_MAP: Mapping[str, Any] = {"type": "object", "additionalProperties": {"type": "string"}}
LABELS: Mapping[str, Any] = {**STRING_MAP, "propertyNames": {"not": {"pattern": RESERVED_LABELS}}}
OBJECT: Mapping[str, Any] = {"type": "object"}
OBJECTS: Mapping[str, Any] = {"type": "array", "items": {"type": "object"}}
COUNT: Mapping[str, Any] = {"type": "integer", "minimum": 0}
SECONDS: Mapping[str, Any] = {"type": "integer", "minimum": 0}
FLAG: Mapping[str, Any] = {"type": "boolean"}
PLAIN: Mapping[str, Any] = {"type": ["string", "number", "boolean"]}
QUANTITY_SCHEMA: Mapping[str, Any] = {"type": ["string", "number"], "pattern": QUANTITY}
RESOURCES: Mapping[str, Any] = {
    "type": "object",
    "additionalProperties": False,
    "properties": {
        "requests": {"type": "object", "additionalProperties": QUANTITY_SCHEMA},
        "limits": {"type": "object", "additionalProperties": QUANTITY_SCHEMA},
        "claims": {"type": "array", "items": {"type": "object"}},
    },
}
PULL_POLICY: Mapping[str, Any] = {"enum": ["", "Always", "IfNotPresent", "Never"]}


def fixed_devices(requirements: Mapping[str, Any], catalog: Catalog) -> Mapping[str, Any]:
    """Return the schema of resources whose GPUs cannot change: flags of the engine have their number.

    Args:
        requirements: the resources by default.
        catalog: has the GPUs.
    """
    amounts = {
        name: amount
        for name, amount in mapping(requirements.get("limits")).items()
        if isinstance(amount, int) and is_gpu_resource(name, catalog)
    }
    if not amounts:
        return RESOURCES
    doc = "The engine is started for this number: change `resources.gpus` of the spec."
    fixed = {name: {"enum": [amount], "description": doc} for name, amount in amounts.items()}
    properties = dict(RESOURCES["properties"])
    for field in ("requests", "limits"):
        properties[field] = {**properties[field], "properties": fixed}
    return {**RESOURCES, "properties": properties}


def key(name: str) -> str:
    """Return a name as a part of a path that Go templates can read."""
    return "_" * name[0].isdigit() + name.replace("-", "_")


def text(path: str, default: str, doc: str, *, optional: bool = False, origin: FieldPath = ()) -> Setting:
    """Return a setting: a string."""
    return Setting(path, default, doc, STRING if optional else TEXT, optional, origin)


def storage_class(path: str, given: str | None, context: Context, doc: str, *, origin: FieldPath) -> Setting:
    """Return a setting: the class of a volume, which the profile decides where the spec does not."""
    default = context.profile.storage_class
    doc = f"StorageClass of {doc}; empty for the cluster's default. Cannot be changed in place."
    setting = text(path, default if given is None else given, doc, optional=True, origin=(*origin, "storageClassName"))
    return replace(setting, by_profile=given is None and bool(default))


def count(path: str, default: int, doc: str, *, optional: bool = False, origin: FieldPath = ()) -> Setting:
    """Return a setting: an integer, 0 or more."""
    return Setting(path, default, doc, COUNT, optional, origin)


def flag(path: str, default: bool, doc: str) -> Setting:
    """Return a setting: a boolean."""
    return Setting(path, default, doc, FLAG)


def quantity(path: str, default: str, doc: str, *, origin: FieldPath = ()) -> Setting:
    """Return a setting: a Kubernetes quantity."""
    return Setting(path, default, doc, QUANTITY_SCHEMA, False, origin)


def strings(path: str, default: Sequence[str], doc: str, *, optional: bool = False, origin: FieldPath = ()) -> Setting:
    """Return a setting: a list of strings."""
    return Setting(path, list(default), doc, STRINGS, optional, origin)


def string_map(path: str, default: Mapping[str, str], doc: str, *, origin: FieldPath = (), helper: str = "") -> Setting:
    """Return a setting: a map of strings, left out when empty."""
    return Setting(path, dict(default), doc, STRING_MAP, True, origin, helper)


def objects(
    path: str, default: Sequence[Mapping[str, Any]], doc: str, *, origin: FieldPath = (), helper: str = ""
) -> Setting:
    """Return a setting: a list of Kubernetes fragments, left out when empty."""
    return Setting(path, [dict(item) for item in default], doc, OBJECTS, True, origin, helper)


def pull_secrets(path: str, default: Sequence[Mapping[str, Any]], doc: str, *, origin: FieldPath = ()) -> Setting:
    """Return a setting: `imagePullSecrets` of pods, to which a parent chart may add."""
    return objects(path, default, doc, origin=origin, helper="imagePullSecrets")


def image(path: str, default: str, doc: str, *, origin: FieldPath = ()) -> Setting:
    """Return a setting: an image, whose registry a parent chart may replace."""
    return Setting(path, default, doc, TEXT, False, origin, "image")


def _text(value: str | int | bool) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def plain_variables(env: Env) -> list[dict[str, Any]]:
    """Return the variables of a spec in its order, without settings."""
    return [
        {"name": name, **(_source(value) if isinstance(value, EnvSource) else {"value": _text(value)})}
        for name, value in env.items()
    ]


def _source(source: EnvSource) -> dict[str, Any]:
    reference = source.secret or source.config
    assert reference is not None
    field = "secretKeyRef" if source.secret else "configMapKeyRef"
    return {"valueFrom": {field: {"name": reference.name, "key": reference.key}}}


def _source_settings(name: str, source: EnvSource, origin: FieldPath) -> dict[str, Tree]:
    """Return the source of a variable, with its name and key as settings."""
    reference = source.secret or source.config
    assert reference is not None
    kind, block, field = (
        ("Secret", "secret", "secretKeyRef") if source.secret else ("ConfigMap", "config", "configMapKeyRef")
    )
    at = (*origin, block)
    found: Tree = {
        "name": text(f"env.{name}.name", reference.name, f"{kind} with the variable.", origin=(*at, "name")),
        "key": text(f"env.{name}.key", reference.key, f"Key of the variable in the {kind}.", origin=(*at, "key")),
    }
    return {"valueFrom": {field: found}}


def variables_of(env: Env, origin: FieldPath = ("spec", "env")) -> list[Tree]:
    """Return the variables of a spec in its order, each value a setting.

    Args:
        env: variables by name.
        origin: the spec's field of the variables.
    """
    variables: list[Tree] = []
    for name, value in env.items():
        if isinstance(value, EnvSource):
            variables.append({"name": name, **_source_settings(name, value, (*origin, name))})
        else:
            setting = Setting(f"env.{name}", _text(value), "Environment variable.", PLAIN, origin=(*origin, name))
            variables.append({"name": name, "value": Text(setting)})
    return variables
