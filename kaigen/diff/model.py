"""The result of comparing two rendered trees: apps, objects, fields and their effects."""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum
from typing import Final, Literal, TypeAlias

from msgspec import Struct

from kaigen.core.json_types import Json
from kaigen.diagnostics.problem import dotted_path

Level: TypeAlias = Literal["info", "notice", "danger"]
ObjectStatus: TypeAlias = Literal["added", "removed", "changed", "replaced"]
AppStatus: TypeAlias = Literal["added", "removed", "changed", "moved", "renamed"]

_RANK: dict[Level, int] = {"info": 0, "notice": 1, "danger": 2}


class Absent(Enum):
    """The type of `ABSENT`: a missing field, which is different from a null field."""

    ABSENT = "absent"

    def __repr__(self) -> str:
        return "ABSENT"


ABSENT: Final = Absent.ABSENT


class Effect(Struct, frozen=True):
    """One effect of a change in the cluster.

    Attributes:
        level: `info` (running pods are not affected), `notice` (something restarts, starts, stops or is
            reached differently), `danger` (data is lost, the change will be rejected, or security is
            looser).
        text: the effect in plain words, without a full stop.
        rule: name of the rule that found it; stable, for filters.
    """

    level: Level
    text: str
    rule: str

    @property
    def rank(self) -> int:
        """0 for info, 1 for notice, 2 for danger."""
        return _RANK[self.level]


class FieldChange(Struct, frozen=True):
    """One field that differs.

    Attributes:
        keys: its path; a step into a list is an `At`.
        old: the old value; `ABSENT` for a new field.
        new: the new value; `ABSENT` for a removed field.
    """

    keys: tuple[str, ...]
    old: Json | Absent
    new: Json | Absent

    @property
    def path(self) -> str:
        """Its path as text, as in `spec.template.spec.containers[run].env[EPOCHS].value`."""
        return dotted_path(self.keys)


class ObjectChange(Struct, frozen=True):
    """One object that differs.

    Attributes:
        kind: its kind; empty for a file that could not be read as objects.
        api_version: its API version, the new one unless it is removed.
        namespace: its namespace, the new one unless it is removed; empty when it has none.
        old_name: its name before; None when it is added.
        new_name: its name now; None when it is removed.
        status: `replaced` when an object with another name or namespace has the same role.
        path: its file, the new one unless it is removed.
        fields: the changed fields, without name and namespace; empty when it is added or removed.
        effects: its effects, dangers first.
    """

    kind: str
    api_version: str
    namespace: str
    old_name: str | None
    new_name: str | None
    status: ObjectStatus
    path: str
    fields: tuple[FieldChange, ...] = ()
    effects: tuple[Effect, ...] = ()

    @property
    def name(self) -> str:
        """Its name now, or before when it is removed."""
        return self.new_name if self.new_name is not None else self.old_name or ""

    @property
    def rank(self) -> int:
        """The highest rank of its effects; 0 without any."""
        return max((effect.rank for effect in self.effects), default=0)


class AppChange(Struct, frozen=True):
    """One app that differs: a folder `<namespace>/<app>` of the tree, or any other folder with objects.

    Attributes:
        namespace: the folder of its namespace; empty for a folder that is not an app.
        name: the app; empty for a folder that is not an app.
        status: `moved` when its namespace changed, `renamed` when its name changed or it became an alias.
        objects: the objects that differ, the most dangerous first.
        charts: how many files of its chart differ.
        effects: effects on the whole app, dangers first.
        root: the folder above the namespace, as for an environment; the folder itself when it is not an app.
        old_namespace: the old namespace of a moved app; empty for others.
        old_root: the old folder of an environment that is rendered elsewhere; empty for others.
        old_name: the old name of a renamed app; empty for others.
        alias_of: the app that answers in place of one that became an alias; empty for others.
    """

    namespace: str
    name: str
    status: AppStatus
    objects: tuple[ObjectChange, ...] = ()
    charts: int = 0
    effects: tuple[Effect, ...] = ()
    root: str = ""
    old_namespace: str = ""
    old_root: str = ""
    old_name: str = ""
    alias_of: str = ""

    @property
    def title(self) -> str:
        """The name to print: `team-a/finetune`, `prod/team-a/finetune`, or the folder."""
        return "/".join(part for part in (self.root, self.namespace, self.name) if part) or "."

    @property
    def summary(self) -> str:
        """The status, where a moved app was, and the other name of a renamed one."""
        if self.alias_of:
            return f"{self.status} to {self.alias_of}"
        if self.old_name:
            return f"{self.status}, was {self.old_name}"
        was = self.old_namespace or self.old_root
        return f"{self.status}, was in {was}" if was else self.status

    @property
    def rank(self) -> int:
        """The highest rank of any effect in it; 0 without any."""
        return max((effect.rank for _, effect in self.all_effects()), default=0)

    def all_effects(self) -> Iterator[tuple[ObjectChange | None, Effect]]:
        """Yield every effect with its object, None for effects on the app."""
        for effect in self.effects:
            yield None, effect
        for item in self.objects:
            for effect in item.effects:
                yield item, effect


class Change(Struct, frozen=True):
    """All differences between two trees.

    Attributes:
        apps: the most dangerous first, then by name.
        formatting_only: files whose bytes differ while their objects are the same.
        other_files: files that differ and are neither objects nor charts.
        lock: what a changed `kaigen.lock` means, in words.
        order: environments in the order of promotion, then the others as in kaigen.yaml.
    """

    apps: tuple[AppChange, ...] = ()
    formatting_only: int = 0
    other_files: int = 0
    lock: tuple[str, ...] = ()
    order: tuple[str, ...] = ()

    def count(self, level: Level) -> int:
        """Return the number of effects of this level."""
        return sum(effect.level == level for app in self.apps for _, effect in app.all_effects())
