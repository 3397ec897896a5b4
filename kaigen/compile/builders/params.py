"""Parameters of a container: variables, and a file in a ConfigMap of their own."""

from __future__ import annotations

import re
from collections.abc import Mapping

from msgspec import Struct

from kaigen.compile.app import Object
from kaigen.compile.builders import settings
from kaigen.compile.builders.frame import Frame
from kaigen.compile.expressions import Expr, Item, JsonText, Setting, Text, Tree
from kaigen.compile.field_expressions import ContentName
from kaigen.compile.problems import Problems
from kaigen.core.json_types import FieldPath
from kaigen.kinds.blocks import Env, Params

FOLDER = "/etc/kaigen"
"""Folder of the file."""
KEY = "params.json"
"""Name of the file."""

_VOLUME = "params"


class ParamsOf(Struct, frozen=True):
    """The parameters of an app.

    Attributes:
        params: parameters by name.
        doc: describes their setting.
        file: path of the file in the container; None for kaigen's folder.
        origin: the spec's field of the parameters.
        exported: whether each is a variable, too.
    """

    params: Params
    doc: str
    file: str | None = None
    origin: FieldPath = ("spec", "params")
    exported: bool = True

    @property
    def has_file(self) -> bool:
        """Whether the container has the file."""
        return bool(self.params) or self.file is not None

    @property
    def setting(self) -> Setting:
        """The setting of the parameters."""
        params = dict(self.params)
        schema = {**settings.OBJECT, "required": sorted(params), "additionalProperties": True}
        return Setting("params", params, self.doc, schema, origin=self.origin)

    @property
    def name(self) -> Expr:
        """The name of the ConfigMap: another one for other content, so that pods with the old file stay as they are."""
        return ContentName("-params", JsonText(self.setting))

    def config_maps(self, frame: Frame, component: str) -> list[Object]:
        """Return the ConfigMap with the file; nothing without one."""
        if not self.has_file:
            return []
        body: dict[str, Tree] = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": frame.metadata("", component, name=self.name),
            "data": {KEY: JsonText(self.setting)},
        }
        return [Object(role="configmap-params", body=body)]

    def mounts(self) -> list[Mapping[str, Tree]]:
        """Return the volume mount of the file; nothing without one."""
        if not self.has_file:
            return []
        if self.file is None:
            return [{"name": _VOLUME, "mountPath": FOLDER, "readOnly": True}]
        return [{"name": _VOLUME, "mountPath": self.file, "subPath": KEY, "readOnly": True}]

    def volumes(self) -> list[Tree]:
        """Return the volume with the file; nothing without one."""
        return [{"name": _VOLUME, "configMap": {"name": self.name}}] if self.has_file else []

    def variables(self) -> list[Tree]:
        """Return the variables `PARAM_*`."""
        found = self.setting
        if not self.exported:
            return []
        return [{"name": _variable(name), "value": Text(Item(found, name), verbatim=True)} for name in self.params]

    def check(self, env: Env, problems: Problems) -> None:
        """Report two sources of one variable.

        Args:
            env: the spec's variables.
            problems: collects the errors.
        """
        sources = {name: f"`env.{name}`" for name in env}
        for name in self.params if self.exported else ():
            variable = _variable(name)
            source = sources.setdefault(variable, f"`params.{name}`")
            if source != f"`params.{name}`":
                problems.error(
                    "KG0313",
                    f"`params.{name}` becomes the variable {variable}, as does {source}",
                    ("spec", "params", name),
                    "rename one of them",
                )


def _variable(name: str) -> str:
    """Return the variable of a parameter, whose name a shell can read: other characters become underscores."""
    return "PARAM_" + re.sub(r"[^A-Z0-9_]", "_", name.upper())
