"""Environment variables of a spec."""

from __future__ import annotations

from typing import Any

from kaigen.compile.builders import settings
from kaigen.compile.expressions import Setting, Text, Tree
from kaigen.core.json_types import FieldPath
from kaigen.kinds.blocks import Env, EnvSource


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
        "name": settings.text(f"env.{name}.name", reference.name, f"{kind} with the variable.", origin=(*at, "name")),
        "key": settings.text(
            f"env.{name}.key", reference.key, f"Key of the variable in the {kind}.", origin=(*at, "key")
        ),
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
            setting = Setting(
                f"env.{name}", _text(value), "Environment variable.", settings.PLAIN, origin=(*origin, name)
            )
            variables.append({"name": name, "value": Text(setting)})
    return variables
