"""What every dialect shares: foreign metadata, annotations that direct kaigen, and the result of lowering."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pydantic import Field, JsonValue

from kaigen.diagnostics.diagnostic import Diagnostic, Severity
from kaigen.diagnostics.field_path import dotted
from kaigen.kinds.base import APP_NAME_MAX, Annotations, AppName, Block, LabelName, Labels
from kaigen.kinds.compat import Naming, ServingNaming
from kaigen.kinds.job import Job
from kaigen.kinds.model import Model
from kaigen.kinds.spec import Path
from kaigen.kinds.validate import Positioned

if TYPE_CHECKING:
    from kaigen.kinds.topology import Topology

PREFIX = "kaigen.dev/"


class ForeignMetadata(Block):
    """An object's metadata. What only a cluster writes is accepted and left out."""

    name: AppName = Field(description=f"Name of the resource. At most {APP_NAME_MAX} characters and no dots.")
    namespace: LabelName | None = Field(None, description="Namespace. Default: the one in `kaigen.yaml`.")
    labels: Labels = Field({}, description="Labels; those of kaigen's own are left out.")
    annotations: Annotations = Field(
        {}, description="Annotations; those starting with `kaigen.dev/` direct kaigen."
    )
    creation_timestamp: str | None = Field(
        None,
        description="Written by a cluster, and as null by its tools; left out.",
        json_schema_extra={"type": ["string", "null"]},
    )
    deletion_timestamp: str | None = Field(None, description="Written by a cluster; left out.")
    generation: int | None = Field(None, description="Written by a cluster; left out.")
    resource_version: str | None = Field(None, description="Written by a cluster; left out.")
    uid: str | None = Field(None, description="Written by a cluster; left out.")
    self_link: str | None = Field(None, description="Written by a cluster; left out.")
    finalizers: list[str] = Field([], description="Written by the operator; left out.")
    owner_references: list[dict[str, JsonValue]] = Field([], description="Written by a cluster; left out.")
    managed_fields: list[dict[str, JsonValue]] = Field([], description="Written by a cluster; left out.")


CLUSTER_FIELDS = (
    "creationTimestamp",
    "deletionTimestamp",
    "generation",
    "resourceVersion",
    "uid",
    "selfLink",
    "finalizers",
    "ownerReferences",
    "managedFields",
)


@dataclass(frozen=True, slots=True)
class Lowered:
    """One spec of kaigen's own that a foreign document comes to.

    Attributes:
        block: the spec.
        origins: which field of the document each of its fields came from; the longest prefix of a path decides.
        naming: names of the foreign system to keep; None for kaigen's own.
        hints: by code, what helps in words of the foreign system, where the hint would name fields of kaigen's.
    """

    block: Model | Job | Topology
    origins: Mapping[Path, Path] = field(default_factory=dict)
    naming: Naming | ServingNaming | None = None
    hints: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Around:
    """What a lowering may know beside its document.

    Attributes:
        profile: name of the kind of cluster that the output is for.
        beside: the other documents of the same file.
        taken: takes those that become part of this one, and are nothing by themselves.
    """

    profile: str = "generic"
    beside: Sequence[Positioned] = ()
    taken: list[Positioned] = field(default_factory=list)


class Lowering:
    """One lowering on its way: reads the document, collects what is to be said about it."""

    def __init__(self, document: Positioned, around: Around | None = None) -> None:
        self.document = document
        self.around = around or Around()
        self.diagnostics: list[Diagnostic] = []

    @property
    def failed(self) -> bool:
        """Whether an error was noted."""
        return any(item.severity is Severity.ERROR for item in self.diagnostics)

    def error(
        self, code: str, message: str, path: Sequence[str | int], hint: str = "", *, key: bool = False
    ) -> None:
        """An error at a field of the foreign document."""
        self._say(Severity.ERROR, code, message, path, hint, key)

    def warning(
        self, code: str, message: str, path: Sequence[str | int], hint: str = "", *, key: bool = False
    ) -> None:
        """A warning at a field of the foreign document."""
        self._say(Severity.WARNING, code, message, path, hint, key)

    def _say(
        self, severity: Severity, code: str, message: str, path: Sequence[str | int], hint: str, key: bool
    ) -> None:
        mark = self.document.mark(path, key=key)
        self.diagnostics.append(Diagnostic(code, message, mark, hint, severity, dotted(path)))

    def ignored(self, fields: Iterable[str], path: Path, why: str) -> None:
        """Warn of each field that is there and has no effect."""
        here: Any = self.document.data
        for key in path:
            here = here.get(key, {})
        for name in fields:
            if name in here:
                self.warning("KG0405", f"`{name}` has no effect: {why}", (*path, name), "delete it", key=True)

    def directives(self, annotations: Mapping[str, str], known: Sequence[str]) -> dict[str, str]:
        """Annotations that direct kaigen, by name without their prefix; unknown ones are errors."""
        from kaigen.diagnostics.suggest import nearest

        found = {}
        for key, value in annotations.items():
            if not key.startswith(PREFIX):
                continue
            name = key.removeprefix(PREFIX)
            if name in known:
                found[name] = value
            else:
                meant = nearest(name, known)
                listed = ", ".join(PREFIX + item for item in known)
                self.error(
                    "KG0406",
                    f"unknown annotation `{key}`",
                    ("metadata", "annotations", key),
                    f"did you mean `{PREFIX}{meant[0]}`?" if meant else f"known: {listed}",
                    key=True,
                )
        return found

    def flag(self, directives: Mapping[str, str], name: str, default: bool) -> bool:
        """A directive that is true or false."""
        value = directives.get(name)
        if value in {"true", "false"}:
            return value == "true"
        if value is not None:
            self.error(
                "KG0406",
                f'`{PREFIX}{name}` must be "true" or "false"',
                ("metadata", "annotations", PREFIX + name),
            )
        return default
