"""The files of both trees of a comparison, the app of each, and their objects for rules that look at several apps."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping
from typing import Any, Literal, NamedTuple, TypeAlias, TypeVar

from kaigen.config.settings import Config
from kaigen.diff.objects import Obj, Unreadable, read_objects
from kaigen.gitops.layout import SYNCER_FOLDERS, TENANT_FOLDER

_NOT_OBJECTS = frozenset(
    (
        "kustomization.yaml",
        "kustomization.yml",
        "Kustomization",
        "name-references.kustomize",
        "index.yaml",
        "index.json",
    )
)
_OBJECT_SUFFIXES = (".yaml", ".yml", ".json")

Role = Literal["object", "chart", "other", "bookkeeping"]


class AppKey(NamedTuple):
    """The identity of an app: the folder above the namespace, the namespace, the name.

    A folder that is not an app has only a `root`.
    """

    root: str
    namespace: str
    name: str


class FileRole(NamedTuple):
    """The app and role of a file.

    Attributes:
        app: the app it belongs to.
        role: `bookkeeping` for a file that follows from other files, such as a `kustomization.yaml`.
        file: its path within the app's folder.
    """

    app: AppKey
    role: Role
    file: str


def locate(path: str) -> FileRole:
    """Return the app and role of a file of a rendered tree.

    Apps are in `<namespace>/<app>/manifests/<file>` and `<namespace>/<app>/chart/**`, below any
    folder, such as that of an environment. Any other file belongs to its own folder.
    """
    parts = path.split("/")
    file = parts[-1]
    if any(part.startswith(".") for part in parts):
        return FileRole(AppKey("/".join(parts[:-1]), "", ""), "bookkeeping", file)
    is_object = file.endswith(_OBJECT_SUFFIXES)
    if len(parts) >= 4 and parts[-2] == "manifests":
        app = AppKey("/".join(parts[:-4]), parts[-4], parts[-3])
        role: Role = "bookkeeping" if file in _NOT_OBJECTS else "object" if is_object else "other"
        return FileRole(app, role, f"manifests/{file}")
    for number in range(2, len(parts) - 1):
        if parts[number] == "chart":
            app = AppKey("/".join(parts[: number - 2]), parts[number - 2], parts[number - 1])
            return FileRole(app, "chart", "/".join(parts[number:]))
    app = AppKey("/".join(parts[:-1]), "", "")
    return FileRole(app, "bookkeeping" if file in _NOT_OBJECTS else "object" if is_object else "other", file)


_T = TypeVar("_T")


class Once:
    """Remembers values, so that an index is made once and not for each object that is judged."""

    def __init__(self) -> None:
        self._values: dict[Hashable, Any] = {}

    def once(self, key: Hashable, compute: Callable[[], _T]) -> _T:
        """Return the value of a key, computed by the first call.

        Args:
            key: names the value; one key is always used with functions of one result.
            compute: returns the value.
        """
        if key not in self._values:
            self._values[key] = compute()
        found: _T = self._values[key]
        return found


Side: TypeAlias = Literal["old", "new"]

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
    for folder in SYNCER_FOLDERS:
        if folder in parts:
            return "/".join(parts[: parts.index(folder)])
    return locate(path).app.root


def is_own(obj: Obj) -> bool:
    """Return whether an object is in a folder in which only kaigen writes, or files that the diff shows as foreign."""
    parts = obj.path.split("/")
    if len(parts) >= 3 and parts[-3] == TENANT_FOLDER:
        return True
    return any(folder in parts[:2] for folder in SYNCER_FOLDERS)


def _name_of(obj: Obj) -> str:
    return obj.name


def place_of(obj: Obj) -> str:
    """Return the namespace that an object is in: its own, or that of its app."""
    return obj.namespace or locate(obj.path).app.namespace
