"""Environment variables of a spec."""

from __future__ import annotations

from typing import Any

from kaigen.compile.builders import settings
from kaigen.compile.expressions import Setting, SpecPath, Text, Tree
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


def variables_of(env: Env, origin: SpecPath = ("spec", "env")) -> list[Tree]:
    """Return the variables of a spec in its order, each value a setting.

    Args:
        env: variables by name.
        origin: the spec's field of the variables.
    """
    variables: list[Tree] = []
    for name, value in env.items():
        if isinstance(value, EnvSource):
            variables.append({"name": name, **_source(value)})
        else:
            setting = Setting(
                f"env.{name}", _text(value), "Environment variable.", settings.PLAIN, origin=(*origin, name)
            )
            variables.append({"name": name, "value": Text(setting)})
    return variables
