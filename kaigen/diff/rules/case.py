"""What a rule looks at, and what a rule is."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from kaigen.diff.model import FieldChange, Level, ObjectStatus
from kaigen.diff.objects import Obj

Finding = tuple[Level, str]
"""What a rule says: how bad, and what happens."""

FORCE_ARGO = "Force=true"
SYNC_OPTIONS = "argocd.argoproj.io/sync-options"
FLUX = "kustomize.toolkit.fluxcd.io/"


@dataclass(frozen=True, slots=True)
class Case:
    """One object that differs.

    Attributes:
        status: what became of it.
        old: the object before; None when it is added.
        new: the object now; None when it is removed.
        fields: what differs, without its name and namespace.
        siblings: reads every object that its app holds now, itself among them.
        passed_from: the app that held it before, when that was another one; empty otherwise.
    """

    status: ObjectStatus
    old: Obj | None
    new: Obj | None
    fields: tuple[FieldChange, ...] = ()
    siblings: Callable[[], list[Obj]] = list
    passed_from: str = ""

    @property
    def obj(self) -> Obj:
        """The object now, or before when it is removed."""
        found = self.new or self.old
        if found is None:
            raise ValueError("a case needs an object")
        return found

    @property
    def pair(self) -> tuple[Obj, Obj]:
        """The object before and now, of a case that has both."""
        if self.old is None or self.new is None:
            raise ValueError(f"{self.obj} is only on one side")
        return self.old, self.new


@dataclass(frozen=True, slots=True)
class Rule:
    """One thing that is known about Kubernetes.

    Attributes:
        name: stable, for filters and tests.
        on: what must have become of the object.
        apply: says what happens; nothing when it does not concern the object.
        types: kinds with their group (`Service`, `Job.batch`) that it concerns; empty for every kind.
    """

    name: str
    on: frozenset[ObjectStatus]
    apply: Callable[[Case], Iterable[Finding]]
    types: frozenset[str] = frozenset()


def option(obj: Obj, name: str) -> bool:
    """Whether Argo CD's sync options on the object contain this one, as in `Prune=false`."""
    text = obj.annotations.get(SYNC_OPTIONS)
    return isinstance(text, str) and name in (part.strip() for part in text.split(","))


def is_forced(obj: Obj) -> bool:
    """Whether Argo CD or Flux is asked to delete the object and create it anew when it cannot be updated."""
    return option(obj, FORCE_ARGO) or flux(obj, "force") == "enabled"


def flux(obj: Obj, name: str) -> str:
    """The value of kustomize-controller's annotation or label of this name, lower case."""
    found = obj.annotations.get(FLUX + name) or obj.labels.get(FLUX + name)
    return found.lower() if isinstance(found, str) else ""


def under(change: FieldChange, *keys: str) -> bool:
    """Whether the field lies at or below this path."""
    return change.keys[: len(keys)] == keys
