"""Revisions of a model next to each other: a folder for each one, named by its identity.

The folder above them has a list of the revisions that were asked for, newest first. Pods read one revision each, so a
download changes no other folder. Old folders are removed before the next download, when no pod reads them.

Before revisions had folders, the files were in the folder above itself. They count as a revision, too.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager

from kaigen_downloader import marker as markers
from kaigen_downloader.cluster import ApiUnavailable
from kaigen_downloader.errors import BadInput
from kaigen_downloader.folder import STATE, split
from kaigen_downloader.marker import Marker
from kaigen_downloader.names import is_state
from kaigen_downloader.remote import RemoteFile, Snapshot
from kaigen_downloader.store import Files, Plan, Store
from kaigen_downloader.text import plural, say

LIST = f"{STATE}/revisions.json"

Readers = Callable[[Collection[str]], Mapping[str, str]]
"""Returns which revisions pods read, each with the name of a pod. Raises ApiUnavailable when that is not known."""


class _Below:
    """The small files of a folder, by paths below another one."""

    def __init__(self, files: Files, name: str) -> None:
        self._files, self._name = files, name

    def read(self, path: str) -> bytes | None:
        return self._files.read(f"{self._name}/{path}")

    def write(self, path: str, data: bytes) -> None:
        self._files.write(f"{self._name}/{path}", data)

    def file_size(self, path: str) -> int | None:
        return self._files.file_size(f"{self._name}/{path}")


class Revisions:
    """The revisions in one folder or below one prefix, of which this run asks for one."""

    def __init__(self, root: Store, opened: Callable[[str], AbstractContextManager[Store]], current: str) -> None:
        """Read which revisions there are.

        Args:
            root: the folder above them.
            opened: opens the folder of a revision.
            current: the revision of this run.
        """
        self._root = root
        self._opened = opened
        self._current = current
        self._flat = markers.read(root)
        above = [self._flat.identity] if self._flat is not None else []
        # The list and the marker are files of a volume that others may write to.
        self._names = list(dict.fromkeys((current, *filter(_is_name, (*self._listed(), *above)))))

    def _listed(self) -> list[str]:
        try:
            found = json.loads(self._root.read(LIST) or b"[]")
        except (ValueError, RecursionError):
            return []
        return [name for name in found if isinstance(name, str)] if isinstance(found, list) else []

    def _save(self) -> None:
        if self._listed() != self._names:
            self._root.record(LIST, (json.dumps(self._names) + "\n").encode())

    def _marker(self, name: str) -> Marker | None:
        """Return the marker of a complete revision; None for another one."""
        files: Files = _Below(self._root, name)
        found = markers.read(files)
        if found is None and self._flat is not None and self._flat.identity == name:
            files, found = self._root, self._flat
        return found if found is not None and not markers.wrong_sizes(files, found) else None

    def remove_old(self, keep: int, readers: Readers) -> list[str]:
        """Record the revision of this run as the newest, and remove old ones.

        Args:
            keep: how many complete revisions stay besides this one.
            readers: asked only if there is something to remove.

        Returns:
            Descriptions of the revisions that stay.
        """
        self._save()
        complete = [name for name in self._names[1:] if self._marker(name) is not None]
        stay = {name: f"{name} is kept for a rollback" for name in complete[:keep]}
        old = [name for name in self._names[1:] if name not in stay]
        used: Mapping[str, str] = {}
        if old:
            try:
                used = readers(old)
            except ApiUnavailable as error:
                say(f"warning: old revisions are not removed: which of them pods read is not known: {error}")
                used = dict.fromkeys(old, "")
        for name in old:
            if name in used:
                stay[name] = f"{name} is read by pod {used[name]}" if used[name] else f"{name} may be in use"
            else:
                self._remove(name)
        for text in stay.values():
            say(f"revision {text}")
        return list(stay.values())

    def _remove(self, name: str) -> None:
        with self._opened(name) as store:
            files = _clear(store)
            store.discard()
        if self._flat is not None and self._flat.identity == name:
            files += _clear(self._root)
            self._flat = None
        self._names.remove(name)
        self._save()
        say(f"removed revision {name}: {plural(files, 'file')}")

    def move_in(self, store: Store) -> Marker | None:
        """Take over the files from before revisions had folders, if they are those of this run.

        Returns:
            The marker; None if they are others or not complete.
        """
        found = self._flat
        if found is None or found.identity != self._current or markers.wrong_sizes(self._root, found):
            return None
        store.clear(_plan_for(file.path for file in found.files))
        taken = store.take(self._root, {file.path: file.path for file in found.files})
        if len(taken) < len(found.files):
            return None
        store.tidy()
        markers.write(store, found)
        store.disown()
        say(f"took over the files of {found.summary} in the folder above")
        return found

    def offers(self, files: Sequence[RemoteFile]) -> dict[str, str]:
        """Return which files other revisions have: path in the folder above them by path of the file."""
        by_sum: dict[tuple[str, int], str] = {}
        by_path: dict[tuple[str, int], str] = {}
        for name in self._names[1:]:
            found = self._marker(name)
            for file in found.files if found is not None else ():
                below = f"{name}/{file.path}"
                where = below if self._root.file_size(below) is not None else file.path
                by_sum.setdefault((file.sha256, file.size), where)
                by_path.setdefault((file.path, file.size), where)
        offered = {
            file.path: by_sum.get((file.sha256, file.size)) if file.sha256 else by_path.get((file.path, file.size))
            for file in files
            if file.provable
        }
        return {path: where for path, where in offered.items() if where is not None}

    def take(self, store: Store, offers: Mapping[str, str]) -> set[str]:
        """Put files of other revisions into a store; return the paths of those that could be."""
        return store.take(self._root, offers)


def _is_name(name: str) -> bool:
    """Return whether this is the name of a folder of a revision, and not a path to another one."""
    try:
        return split(name) == (name,) and not is_state(name)
    except BadInput:
        return False


def _plan_for(ours: Iterable[str], *, gone: bool = False) -> Plan:
    """Return a plan that fetches nothing."""
    paths = tuple(sorted(ours))
    return Plan(Snapshot("", ()), {}, (), paths if gone else (), frozenset(paths))


def _clear(store: Store) -> int:
    """Remove the files of a revision, the marker first; return how many there were."""
    found = markers.read(store)
    ours = store.owned() | ({file.path for file in found.files} if found is not None else set())
    store.clear(_plan_for(ours, gone=True))
    store.tidy()
    store.disown()
    return len(ours)
