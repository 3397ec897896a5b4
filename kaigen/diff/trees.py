"""Both trees of a comparison, for rules that look at more than one app."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Literal, TypeAlias

from kaigen.config.settings import Config
from kaigen.diff.objects import Obj, Unreadable, read_objects
from kaigen.diff.tree import locate

Side: TypeAlias = Literal["old", "new"]

OWN_FOLDERS = ("_argocd", "_flux")
"""Folders at the top of a tree in which kaigen writes the objects of syncers; no namespace can have these names."""

TENANT_FOLDER = "_tenant"
"""The folder of a namespace in which kaigen writes the objects of its tenancy; no app can have this name."""


class Trees:
    """The files of both trees, whose objects are read when a rule asks for them.

    Args:
        old: path to bytes.
        new: the same for the new tree.
        settings: kaigen.yaml by the folder of an environment in the trees; empty for a tree without one.
    """

    def __init__(
        self,
        old: Mapping[str, bytes] | None = None,
        new: Mapping[str, bytes] | None = None,
        settings: Mapping[str, Config] | None = None,
    ) -> None:
        self._files: dict[Side, Mapping[str, bytes]] = {"old": old or {}, "new": new or {}}
        self._settings = settings or {}
        self._found: dict[tuple[Side, str, str], list[Obj]] = {}
        self._read: dict[tuple[str, bytes], list[Obj]] = {}

    def of_kind(self, side: Side, kind: str, top: str, word: str = "") -> list[Obj]:
        """Return the objects of a kind in the tree of one environment.

        Args:
            side: which tree.
            kind: the kind, without its group.
            top: folder of the environment, as `top_of` returns it.
            word: a name or a namespace; files without it, in their path or content, are not read.
        """
        key = (side, kind, word)
        if key not in self._found:
            self._found[key] = [obj for obj in self._objects(side, kind, word) if obj.kind == kind]
        return [obj for obj in self._found[key] if top_of(obj.path) == top]

    def _objects(self, side: Side, kind: str, word: str) -> Iterator[Obj]:
        kind_bytes, word_bytes = kind.encode(), word.encode("utf-8", "replace")
        for path, data in self._files[side].items():
            has_words = kind_bytes in data and (word in path or word_bytes in data)
            if has_words and locate(path).role == "object":
                if (path, data) not in self._read:
                    found = read_objects(path, data)
                    self._read[path, data] = [] if isinstance(found, Unreadable) else found
                yield from self._read[path, data]

    def has_folder(self, side: Side, folder: str) -> bool:
        """Return whether a tree has files in a folder or below it."""
        return any(path.startswith(f"{folder}/") for path in self._files[side])

    def config(self, path: str) -> Config:
        """Return the settings of the environment that a file belongs to; the defaults where they are not known."""
        return self._settings.get(top_of(path)) or Config()


def top_of(path: str) -> str:
    """Return the folder of the environment that a file of a tree is in; empty for a tree without environments."""
    parts = path.split("/")
    for folder in OWN_FOLDERS:
        if folder in parts:
            return "/".join(parts[: parts.index(folder)])
    return locate(path).app.root


def is_own(obj: Obj) -> bool:
    """Return whether an object is in a folder in which only kaigen writes, or files that the diff shows as foreign."""
    parts = obj.path.split("/")
    if len(parts) >= 3 and parts[-3] == TENANT_FOLDER:
        return True
    return any(folder in parts[:2] for folder in OWN_FOLDERS)
