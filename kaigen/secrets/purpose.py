"""What a Secret is read for, in a few words."""

from __future__ import annotations

from kaigen.core.json_types import FieldPath
from kaigen.kubernetes.manifest import Object, mapping
from kaigen.kubernetes.pods import CONTAINER_FIELDS
from kaigen.kubernetes.references import Reference
from kaigen.kubernetes.secrets import DOCKER_CONFIG, TLS


def purpose_of(obj: Object, reference: Reference) -> str:
    """Return what an object reads a Secret for, as in `variable HF_TOKEN of fetch`."""
    if reference.secret_type == DOCKER_CONFIG and "env" not in reference.path:
        return "pulls images"
    if reference.secret_type == TLS:
        return "TLS"
    path = reference.path
    for depth, step in enumerate(path):
        item = _value_at(obj, path[: depth + 2])
        match step:
            case str() if step in CONTAINER_FIELDS:
                return _of_container(obj, path, depth, item)
            case "volumes":
                return f"volume {item.get('name')}"
            case "secretTargetRef":
                return f"parameter {item.get('parameter')} of a trigger"
    return ".".join(step for step in path[:-1] if isinstance(step, str) and step != "spec") or "reference"


def _of_container(obj: Object, path: FieldPath, depth: int, container: Object) -> str:
    name = container.get("name")
    suffix = f" of {name}" if isinstance(name, str) else ""
    if path[depth + 2] == "env":
        variable = _value_at(obj, path[: depth + 4]).get("name")
        return f"variable {variable}{suffix}"
    return f"variables{suffix}"


def _value_at(obj: Object, path: FieldPath) -> Object:
    value: object = obj
    for step in path:
        value = value[step]  # type: ignore[index]
    return mapping(value)
