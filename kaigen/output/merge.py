"""Bringing what stays of a directory into its next state, and clearing the old one without loss."""

from __future__ import annotations

import errno
import os
from collections.abc import Set
from contextlib import suppress

from kaigen.output.copying import OPEN_DIRECTORY, Signature, carry, imitate, make_writable, signature
from kaigen.output.index import directories


class Merge:
    """The way of one directory of a tree from its old state to its new one.

    First `bring` carries over all that is not replaced. Once the new state is in force, `clear` deletes the
    old one: only what is known to be in the new state or to be kaigen's. What somebody put there in between
    is moved over.
    """

    def __init__(self, owned: Set[str], writes: Set[str], removes: Set[str]) -> None:
        """Take what is to happen; all paths are relative to the tree's root.

        Args:
            owned: files that are kaigen's.
            writes: files that the new state holds already.
            removes: files that it shall not hold.
        """
        self._owned = owned
        self._writes = writes
        self._removes = removes
        self._touched = directories(writes | removes)
        self._emptied = directories(removes)
        self._known_directories = set(self._emptied)
        self._others: dict[str, Signature] = {}

    def bring(self, old: int, path: str, destination: int, target: str) -> None:
        """Carry over a directory, into one that exists and may hold the files that are written.

        Args:
            old: descriptor of the directory.
            path: of the directory; empty for the root.
            destination: descriptor that `target` is relative to.
            target: the directory to fill.

        Raises:
            OSError: EXDEV when something is mounted below.
        """
        prefix = path + "/" if path else ""
        with os.scandir(old) as entries:
            found = list(entries)
        for entry in found:
            inner = prefix + entry.name
            if inner in self._writes or (inner in self._removes and self._is_ours(entry, inner)):
                continue
            if entry.is_dir(follow_symlinks=False):
                self._bring_directory(old, entry.name, inner, destination, f"{target}/{entry.name}")
                continue
            if not self._is_ours(entry, inner):
                self._others[inner] = signature(os.stat(entry.name, dir_fd=old, follow_symlinks=False))
            carry(old, entry.name, destination, f"{target}/{entry.name}")
        copy = os.open(target, OPEN_DIRECTORY, dir_fd=destination)
        try:
            imitate(old, copy, times=bool(path) and path not in self._touched)
        finally:
            os.close(copy)

    def _bring_directory(self, old: int, name: str, path: str, destination: int, target: str) -> None:
        source = os.open(name, OPEN_DIRECTORY, dir_fd=old)
        try:
            if os.fstat(source).st_dev != os.fstat(old).st_dev:
                raise OSError(errno.EXDEV, os.strerror(errno.EXDEV), path)
            self._known_directories.add(path)
            with suppress(FileExistsError):
                os.mkdir(target, 0o700, dir_fd=destination)
            self.bring(source, path, destination, target)
        finally:
            os.close(source)
        if path in self._emptied:
            # Fails where something stays or is written, and then the directory shall stay too.
            with suppress(OSError):
                os.rmdir(target, dir_fd=destination)

    def _is_ours(self, entry: os.DirEntry[str], path: str) -> bool:
        """Whether kaigen wrote it: plain files are all it ever writes."""
        return path in self._owned and entry.is_file(follow_symlinks=False)

    def clear(self, old: int, path: str, live: int, live_path: str) -> None:
        """Delete what the old state holds, or move it over if it came while the new one was built.

        Args:
            old: descriptor of a directory of the old state.
            path: of that directory.
            live: descriptor of the new state's directory.
            live_path: of the new state's directory: `path` or one above it.
        """
        make_writable(old)
        prefix = path + "/" if path else ""
        with os.scandir(old) as entries:
            found = list(entries)
        for entry in found:
            inner = prefix + entry.name
            if entry.is_dir(follow_symlinks=False) and inner in self._known_directories:
                source = os.open(entry.name, OPEN_DIRECTORY, dir_fd=old)
                try:
                    self.clear(source, inner, live, live_path)
                finally:
                    os.close(source)
                os.rmdir(entry.name, dir_fd=old)
            elif self._is_ours(entry, inner) or self._is_carried(old, entry, inner):
                os.unlink(entry.name, dir_fd=old)
            else:
                below = inner[len(live_path) + 1 :] if live_path else inner
                self._rescue(old, entry, live, below, stale=inner in self._others)

    def _is_carried(self, old: int, entry: os.DirEntry[str], path: str) -> bool:
        known = self._others.get(path)
        return known is not None and known == signature(
            os.stat(entry.name, dir_fd=old, follow_symlinks=False)
        )

    def _rescue(self, old: int, entry: os.DirEntry[str], live: int, path: str, *, stale: bool) -> None:
        """Move an entry to the same place in the new state, or beside it when the place is taken."""
        directory = os.dup(live)
        try:
            for part in path.split("/")[:-1]:
                with suppress(FileExistsError):
                    os.mkdir(part, 0o755, dir_fd=directory)
                try:
                    inner = os.open(part, OPEN_DIRECTORY, dir_fd=directory)
                except OSError:
                    break  # a file is in the way: as near as we can
                os.close(directory)
                directory = inner
            name = entry.name
            # What was carried over is the former content of the same file, and gives way.
            if exists(directory, name) and (not stale or entry.is_dir(follow_symlinks=False)):
                name += f".kept-{os.urandom(4).hex()}"
            os.rename(entry.name, name, src_dir_fd=old, dst_dir_fd=directory)
            # rename(2) does nothing to two links of one file, which was then edited in place.
            with suppress(FileNotFoundError):
                os.unlink(entry.name, dir_fd=old)
        finally:
            os.close(directory)


def exists(directory: int, name: str) -> bool:
    """Whether an open directory has an entry of this name, of whatever kind."""
    try:
        os.stat(name, dir_fd=directory, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return True
