"""The input and the type of a rule."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from msgspec import Struct

from kaigen.diff.model import FieldChange, Level, ObjectStatus
from kaigen.diff.objects import Obj
from kaigen.diff.trees import Once, Trees, place_of, top_of

Finding = tuple[Level, str]
"""The result of a rule: the level, and the effect as text."""

FORCE_ARGO = "Force=true"
SYNC_OPTIONS = "argocd.argoproj.io/sync-options"
FLUX = "kustomize.toolkit.fluxcd.io/"


class Siblings(Once):
    """The objects of an app in the new tree, which are read when a rule asks for them.

    Args:
        read: returns them.
    """

    def __init__(self, read: Callable[[], list[Obj]] = list) -> None:
        super().__init__()
        self._read = read

    def __call__(self) -> list[Obj]:
        """Return the objects."""
        return self.once("objects", self._read)


class Case(Struct, frozen=True):
    """One object that differs.

    Attributes:
        status: how it changed.
        old: the object before; None when it is added.
        new: the object now; None when it is removed.
        fields: the changed fields, without name and namespace.
        siblings: every object of its app in the new tree, including itself.
        passed_from: the app that owned it before, if that was another one; empty if not.
        trees: both trees, with kaigen.yaml.
    """

    status: ObjectStatus
    old: Obj | None
    new: Obj | None
    fields: tuple[FieldChange, ...] = ()
    siblings: Siblings = Siblings()
    passed_from: str = ""
    trees: Trees = Trees()

    @property
    def obj(self) -> Obj:
        """The object now, or before when it is removed."""
        found = self.new or self.old
        if found is None:
            raise ValueError("a case needs an object")
        return found

    @property
    def place(self) -> str:
        """The namespace that the object is in: its own, or that of its app."""
        return place_of(self.obj)

    @property
    def top(self) -> str:
        """The folder of its environment in the trees."""
        return top_of(self.obj.path)

    @property
    def pair(self) -> tuple[Obj, Obj]:
        """The old and the new object of a case that has both."""
        if self.old is None or self.new is None:
            raise ValueError(f"{self.obj} is only on one side")
        return self.old, self.new


class Rule(Struct, frozen=True):
    """A rule about Kubernetes objects.

    Attributes:
        name: stable, for filters and tests.
        on: the statuses that it applies to.
        apply: yields the effects; none when the object is not affected.
        types: kinds with their group (`Service`, `Job.batch`) that it applies to; empty for every kind.
    """

    name: str
    on: frozenset[ObjectStatus]
    apply: Callable[[Case], Iterable[Finding]]
    types: frozenset[str] = frozenset()


def option(obj: Obj, name: str) -> bool:
    """Return whether the object has this sync option of Argo CD, such as `Prune=false`."""
    text = obj.annotations.get(SYNC_OPTIONS)
    return isinstance(text, str) and name in (part.strip() for part in text.split(","))


def is_forced(obj: Obj) -> bool:
    """Return whether Argo CD or Flux deletes and re-creates the object if it cannot be updated."""
    return option(obj, FORCE_ARGO) or flux(obj, "force") == "enabled"


def flux(obj: Obj, name: str) -> str:
    """Return the value of kustomize-controller's annotation or label of this name, in lower case."""
    found = obj.annotations.get(FLUX + name) or obj.labels.get(FLUX + name)
    return found.lower() if isinstance(found, str) else ""


def under(change: FieldChange, *keys: str) -> bool:
    """Return whether the field is at or below this path."""
    return change.keys[: len(keys)] == keys
