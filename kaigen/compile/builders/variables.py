"""Environment variables of a spec."""

from __future__ import annotations

from kaigen.compile.builders import settings
from kaigen.compile.expressions import Setting, SpecPath, Text, Tree
from kaigen.kinds.blocks import Env, EnvSource


def _text(value: str | int | bool) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def variables_of(env: Env, origin: SpecPath = ("spec", "env")) -> list[Tree]:
    """Return the variables of a spec in its order, each value a setting.

    Args:
        env: variables by name.
        origin: the spec's field of the variables.
    """
    variables: list[Tree] = []
    for name, value in env.items():
        if isinstance(value, EnvSource):
            reference = value.secret or value.config
            assert reference is not None
            field = "secretKeyRef" if value.secret else "configMapKeyRef"
            variables.append(
                {"name": name, "valueFrom": {field: {"name": reference.name, "key": reference.key}}}
            )
        else:
            setting = Setting(
                f"env.{name}", _text(value), "Environment variable.", settings.PLAIN, origin=(*origin, name)
            )
            variables.append({"name": name, "value": Text(setting)})
    return variables
