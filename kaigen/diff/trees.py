"""Both trees of a comparison, for rules that look at more than one app."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Literal, TypeAlias

from kaigen.config.settings import Config
from kaigen.diff.objects import Obj, Unreadable, read_objects
from kaigen.diff.once import Once
from kaigen.diff.tree import locate

Side: TypeAlias = Literal["old", "new"]

OWN_FOLDERS = ("_argocd", "_flux")
"""Folders at the top of a tree in which kaigen writes the objects of syncers; no namespace can have these names."""

TENANT_FOLDER = "_tenant"
"""The folder of a namespace in which kaigen writes the objects of its tenancy; no app can have this name."""


_FEW = 64
"""Words that are looked for in the text of files; with more, all files with objects of the kind are read."""

_Index: TypeAlias = dict[tuple[str, str], list[Obj]]
"""Objects by the folder of their environment, and by a name or a namespace."""


class Trees(Once):
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
        super().__init__()
        self._files: dict[Side, Mapping[str, bytes]] = {"old": old or {}, "new": new or {}}
        self._settings = settings or {}
        self._words: dict[tuple[Side, str], set[str]] = {}
        self._read: dict[tuple[str, bytes], list[Obj]] = {}

    def of_kind(self, side: Side, kind: str, top: str) -> list[Obj]:
        """Return the objects of a kind in the tree of one environment.

        Args:
            side: which tree.
            kind: the kind, without its group.
            top: folder of the environment, as `top_of` returns it.
        """
        return self.once((side, kind), lambda: self._index(side, kind, "", lambda _: "")).get((top, ""), [])

    def named(self, side: Side, kind: str, top: str, name: str) -> list[Obj]:
        """Return the objects of a kind with this name; the other arguments are those of `of_kind`."""
        return self._with_word(side, kind, top, name, _name_of)

    def in_namespace(self, side: Side, kind: str, top: str, namespace: str) -> list[Obj]:
        """Return the objects of a kind in a namespace: their own, or that of their app."""
        return self._with_word(side, kind, top, namespace, place_of)

    def _with_word(self, side: Side, kind: str, top: str, word: str, word_of: Callable[[Obj], str]) -> list[Obj]:
        """Return the objects with a name or a namespace. Files without it, in path and content, need not be read."""
        words = self._words.setdefault((side, kind), set())
        words.add(word)
        in_text = word if len(words) <= _FEW else ""
        key = (side, kind, in_text, word_of)
        return self.once(key, lambda: self._index(side, kind, in_text, word_of)).get((top, word), [])

    def _index(self, side: Side, kind: str, word: str, word_of: Callable[[Obj], str]) -> _Index:
        found: _Index = {}
        for obj in self._objects(side, kind, word):
            if obj.kind == kind:
                found.setdefault((top_of(obj.path), word_of(obj)), []).append(obj)
        return found

    def _objects(self, side: Side, kind: str, word: str) -> Iterator[Obj]:
        kind_bytes, word_bytes = kind.encode(), word.encode("utf-8", "replace")
        for path, data in self._files[side].items():
            has_words = kind_bytes in data and (word in path or word_bytes in data)
            if has_words and locate(path).role == "object":
                yield from self._read_file(path, data)

    def _read_file(self, path: str, data: bytes) -> list[Obj]:
        if (path, data) not in self._read:
            found = read_objects(path, data)
            self._read[path, data] = [] if isinstance(found, Unreadable) else found
        return self._read[path, data]

    def of_namespace(self, side: Side, top: str, namespace: str) -> Iterator[Obj]:
        """Yield the objects of all apps of a namespace in the tree of one environment."""
        files = self.once((side, "namespaces"), lambda: self._by_namespace(side))
        for path in files.get((top, namespace), ()):
            yield from self._read_file(path, self._files[side][path])

    def _by_namespace(self, side: Side) -> dict[tuple[str, str], list[str]]:
        found: dict[tuple[str, str], list[str]] = {}
        for path in self._files[side]:
            role = locate(path)
            if role.role == "object" and role.app.name:
                found.setdefault((role.app.root, role.app.namespace), []).append(path)
        return found

    def has_folder(self, side: Side, folder: str) -> bool:
        """Return whether a tree has files in a folder or below it."""
        return folder in self.once((side, "folders"), lambda: self._folders(side))

    def _folders(self, side: Side) -> set[str]:
        found: set[str] = set()
        for path in self._files[side]:
            folder = path.rpartition("/")[0]
            while folder and folder not in found:
                found.add(folder)
                folder = folder.rpartition("/")[0]
        return found

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


def _name_of(obj: Obj) -> str:
    return obj.name


def place_of(obj: Obj) -> str:
    """Return the namespace that an object is in: its own, or that of its app."""
    return obj.namespace or locate(obj.path).app.namespace
