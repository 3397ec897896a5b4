"""What a comparison of two rendered trees found: apps, their objects, the fields, and what it means."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Final, Literal, TypeAlias

from kaigen.diagnostics.field_path import dotted

Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"
Level: TypeAlias = Literal["info", "notice", "danger"]
ObjectStatus: TypeAlias = Literal["added", "removed", "changed", "replaced"]
AppStatus: TypeAlias = Literal["added", "removed", "changed", "moved"]

_RANK: dict[Level, int] = {"info": 0, "notice": 1, "danger": 2}


class Absent(Enum):
    """The type of `ABSENT`: a field that is not there, which is not the same as one that is null."""

    ABSENT = "absent"

    def __repr__(self) -> str:
        return "ABSENT"


ABSENT: Final = Absent.ABSENT


@dataclass(frozen=True, slots=True)
class Effect:
    """One thing that a change does to what runs.

    Attributes:
        level: `info` (nothing that runs is touched), `notice` (something restarts, starts, stops or is
            reached in another way), `danger` (data is lost, the change would be refused, or security is
            looser).
        text: what happens, in plain words, without a full stop.
        rule: name of the rule that said so; stable, for filters.
    """

    level: Level
    text: str
    rule: str

    @property
    def rank(self) -> int:
        """0 for info, 1 for notice, 2 for danger."""
        return _RANK[self.level]


@dataclass(frozen=True, slots=True)
class FieldChange:
    """One field that differs.

    Attributes:
        keys: the way to it; a step into a list is an `At`.
        old: what it was, `ABSENT` when it was not there.
        new: what it is, `ABSENT` when it is gone.
    """

    keys: tuple[str, ...]
    old: Json | Absent
    new: Json | Absent

    @property
    def path(self) -> str:
        """The way to it as people write it, as in `spec.template.spec.containers[run].env[EPOCHS].value`."""
        return dotted(self.keys)


@dataclass(frozen=True, slots=True)
class ObjectChange:
    """One object that differs.

    Attributes:
        kind: its kind; empty for a file that could not be read as objects.
        api_version: its API version, the new one unless it is removed.
        namespace: its own namespace, the new one unless it is removed; empty when it names none.
        old_name: its name before; None when it is added.
        new_name: its name now; None when it is removed.
        status: `replaced` when the same role is played by an object of another name or namespace.
        path: the file it stands in, the new one unless it is removed.
        fields: what differs, its name and namespace left out; empty when it is added or removed.
        effects: what that means, dangers first.
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


@dataclass(frozen=True, slots=True)
class AppChange:
    """One app that differs: a folder `<namespace>/<app>` of the tree, or any other folder that holds objects.

    Attributes:
        namespace: the folder of its namespace; empty for a folder that is no app.
        name: the app; empty for a folder that is no app.
        status: `moved` when it went from one namespace to another.
        objects: what differs, the most dangerous first.
        charts: how many files of its chart differ.
        effects: what concerns the app as a whole, dangers first.
        root: the folder above the namespace, as for an environment; the folder itself when it is no app.
        old_namespace: where a moved app was; empty otherwise.
    """

    namespace: str
    name: str
    status: AppStatus
    objects: tuple[ObjectChange, ...] = ()
    charts: int = 0
    effects: tuple[Effect, ...] = ()
    root: str = ""
    old_namespace: str = ""

    @property
    def title(self) -> str:
        """The app as people call it: `team-a/finetune`, `prod/team-a/finetune`, or the folder."""
        return "/".join(part for part in (self.root, self.namespace, self.name) if part) or "."

    @property
    def rank(self) -> int:
        """The highest rank of any effect in it; 0 without any."""
        return max((effect.rank for _, effect in self.all_effects()), default=0)

    def all_effects(self) -> Iterator[tuple[ObjectChange | None, Effect]]:
        """Every effect with the object it belongs to, None for the app's own."""
        for effect in self.effects:
            yield None, effect
        for item in self.objects:
            for effect in item.effects:
                yield item, effect


@dataclass(frozen=True, slots=True)
class Change:
    """All that differs between two trees.

    Attributes:
        apps: the most dangerous first, then by name.
        formatting_only: files whose bytes differ while their objects are the same.
        other_files: files that differ and are neither objects nor charts.
    """

    apps: tuple[AppChange, ...] = ()
    formatting_only: int = 0
    other_files: int = 0

    def count(self, level: Level) -> int:
        """How many effects of this level there are."""
        return sum(effect.level == level for app in self.apps for _, effect in app.all_effects())
