"""A place next to an output tree where its next state is built before one step puts it in force.

```
deploy/                       the tree
.kaigen-staging-<16 digits>/  this run's container, gone when it ends
    .gitignore                `*`, so that a leftover of a killed run is never committed
    new                       the next state of the file or directory that changes; after a swap, the old one
    old/, journal             only where the file system cannot swap
```

A process may be killed at any moment: the tree is then the old or the new one, and the next writer removes
what lies about. The one exception is a file system that cannot swap two directories (NFS, SMB, 9p, FAT):
there two renames follow each other, and a process killed between them, microseconds apart, leaves no tree
at its place until the next writer reads the journal and finishes.

Nothing is forced to the disk. After a power loss the file system may hold less than was written; kaigen
compares contents, so the next run mends that.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Set
from contextlib import suppress
from stat import S_IMODE, S_ISDIR

from kaigen.diagnostics.diagnostic import SystemFailure
from kaigen.output import exchange
from kaigen.output.contents import FileContent, Stamp, data_of, now_ns, stamp_of
from kaigen.output.copying import OPEN_DIRECTORY, remove_directory
from kaigen.output.index import STAGING_PREFIX, parents
from kaigen.output.merge import Merge, exists

_CONTAINER = re.compile(re.escape(STAGING_PREFIX) + "[0-9a-f]{16}")
_SPENT_PREFIX = ".kaigen-old-"
_FILE_MODE = 0o644
_DIRECTORY_MODE = 0o755


class Staging:
    """One run's container. A context manager: on leaving, the container is deleted.

    Attributes:
        written: the stamp of each file written, by its path in the tree.
        done_ns: when all was written, nanoseconds since the epoch; nobody else could change it till then.
    """

    def __init__(self, parent: int, root: str, owned: Set[str]) -> None:
        """Make the container.

        Args:
            parent: descriptor of the directory that holds the tree, locked.
            root: the tree's name there.
            owned: paths in the tree that are kaigen's; all else survives.
        """
        self.written: dict[str, Stamp] = {}
        self.done_ns = 0
        self._parent = parent
        self._root = root
        self._owned = owned
        self._half_done = False
        self._chmod = True
        self._name = STAGING_PREFIX + os.urandom(8).hex()
        os.mkdir(self._name, 0o700, dir_fd=parent)
        self._fd = os.open(self._name, OPEN_DIRECTORY, dir_fd=parent)

    def __enter__(self) -> Staging:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._fd)
        if self._half_done:
            return  # the old tree is in there: `sweep` brings it back
        # Either the tree is as it shall be or an error is on its way; the next writer tries again.
        with suppress(OSError):
            remove_directory(self._parent, self._name)

    def replace_file(self, path: str, content: FileContent) -> None:
        """Write one file of the tree, in a directory that exists."""
        above, at = self._descend(path)
        try:
            if at != path:
                raise FileNotFoundError(path)
            self._write(".gitignore", b"*\n")
            self.written[path] = self._write("new", data_of(content))
            self.done_ns = now_ns()
            os.rename("new", self._entry(path), src_dir_fd=self._fd, dst_dir_fd=above)
        finally:
            os.close(above)

    def replace_directory(self, at: str, writes: Mapping[str, FileContent], removes: Set[str]) -> None:
        """Write and remove files below one directory of the tree, all at once.

        Args:
            at: the directory, relative to the root; empty for the root itself. It need not exist.
            writes: files below it that shall hold other bytes or come to be.
            removes: files below it that shall go, with directories that become empty.
        """
        above, at = self._descend(at)
        try:
            self._write(".gitignore", b"*\n")
            self._write_files(at, writes)
            name = self._entry(at)
            if not exists(above, name):
                self.done_ns = now_ns()
                os.rename("new", name, src_dir_fd=self._fd, dst_dir_fd=above)
                return
            merge = Merge(self._owned, writes.keys(), removes)
            old = os.open(name, OPEN_DIRECTORY, dir_fd=above)
            try:
                merge.bring(old, at, self._fd, "new")
                self.done_ns = now_ns()
                self._swap(above, at)
                self._clear(merge, old, above, at)
            finally:
                os.close(old)
        finally:
            os.close(above)

    def _descend(self, at: str) -> tuple[int, str]:
        """Walk to a path of the tree without following links, at most to the first directory that is missing.

        Returns:
            Descriptor of the directory that holds, or would hold, the path that was reached; and that path.
        """
        above, reached = os.dup(self._parent), ""
        try:
            for part in at.split("/") if at else ():
                inner = os.open(self._entry(reached), OPEN_DIRECTORY, dir_fd=above)
                os.close(above)
                above, reached = inner, f"{reached}/{part}" if reached else part
        except FileNotFoundError:
            pass
        except BaseException:
            os.close(above)
            raise
        return above, reached

    def _entry(self, path: str) -> str:
        return path.rpartition("/")[2] or self._root

    def _write_files(self, at: str, writes: Mapping[str, FileContent]) -> None:
        """Begin the next state of a directory with the files that are written."""
        made: set[str] = set()
        os.mkdir("new", _DIRECTORY_MODE, dir_fd=self._fd)
        # Most umasks leave 0755 as it is, and where this directory got its mode at once, all below it will: a call less
        # for each. What else makes modes differ, a set-group-ID bit or a default ACL, is inherited too.
        found = os.stat("new", dir_fd=self._fd, follow_symlinks=False)
        self._chmod = S_IMODE(found.st_mode) != _DIRECTORY_MODE
        if self._chmod:
            os.chmod("new", _DIRECTORY_MODE, dir_fd=self._fd)
        start = len(at) + 1 if at else 0
        for path in sorted(writes):
            below = path[start:]
            missing = []
            for parent in parents(below):
                if parent in made:
                    break
                missing.append(parent)
            for parent in reversed(missing):
                self._make_directory("new/" + parent)
                made.add(parent)
            self.written[path] = self._write("new/" + below, data_of(writes[path]))

    def _make_directory(self, target: str) -> None:
        os.mkdir(target, _DIRECTORY_MODE, dir_fd=self._fd)
        if self._chmod:
            os.chmod(target, _DIRECTORY_MODE, dir_fd=self._fd)

    def _write(self, target: str, data: bytes) -> Stamp:
        # Exclusive: whatever else happens, no byte goes into a file that the old tree shares.
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
        file = os.open(target, flags, _FILE_MODE, dir_fd=self._fd)
        try:
            rest = memoryview(data)
            while rest:
                rest = rest[os.write(file, rest) :]
            found = os.fstat(file)
            if S_IMODE(found.st_mode) != _FILE_MODE:
                os.fchmod(file, _FILE_MODE)
                found = os.fstat(file)
            return stamp_of(found)
        finally:
            os.close(file)

    def _swap(self, above: int, at: str) -> None:
        """Put the new state in force; the old one is then `new` in the container."""
        name = self._entry(at)
        try:
            exchange.exchange(self._fd, "new", above, name)
        except OSError as error:
            if error.errno not in exchange.UNSUPPORTED:
                raise
            self._rename_twice(above, name, os.path.join(self._root, at) if at else self._root)

    def _rename_twice(self, above: int, name: str, where: str) -> None:
        self._write("journal", os.fsencode(where) + b"\0")
        self._half_done = True
        try:
            os.rename(name, "old", src_dir_fd=above, dst_dir_fd=self._fd)
            os.rename("new", name, src_dir_fd=self._fd, dst_dir_fd=above)
        except BaseException:
            if not exists(above, name):
                os.rename("old", name, src_dir_fd=self._fd, dst_dir_fd=above)
            self._half_done = False
            raise
        self._half_done = False
        os.unlink("journal", dir_fd=self._fd)

    def _clear(self, merge: Merge, old: int, above: int, at: str) -> None:
        live = os.open(self._entry(at), OPEN_DIRECTORY, dir_fd=above)
        try:
            merge.clear(old, at, live, at)
        except OSError as error:
            spent = _SPENT_PREFIX + os.urandom(8).hex()
            os.rename(self._name, spent, src_dir_fd=self._parent, dst_dir_fd=self._parent)
            message = f"the output tree is written, but what it replaced could not be cleared: {error}"
            raise SystemFailure(message, hint=f"look into {spent} next to it, and delete that") from error
        finally:
            os.close(live)


def sweep(parent: int) -> None:
    """Finish and clear away what killed runs left in a directory that we hold the lock of.

    Raises:
        SystemFailure: a run was killed between two renames (see above) and somebody made a new tree since.
    """
    with os.scandir(parent) as entries:
        names = [entry.name for entry in entries if _CONTAINER.fullmatch(entry.name)]
    for name in names:
        found = os.stat(name, dir_fd=parent, follow_symlinks=False)
        if not S_ISDIR(found.st_mode) or found.st_uid != os.geteuid():
            continue  # in a directory that all may write to, others' leftovers are theirs
        container = os.open(name, OPEN_DIRECTORY, dir_fd=parent)
        try:
            _finish(parent, container, name)
        finally:
            os.close(container)
        with suppress(OSError):
            remove_directory(parent, name)


def _finish(parent: int, container: int, name: str) -> None:
    if not exists(container, "old") or not exists(container, "journal"):
        return
    where = _read_journal(container)
    above = os.dup(parent)
    try:
        for part in where[:-1]:
            inner = os.open(part, OPEN_DIRECTORY, dir_fd=above)
            os.close(above)
            above = inner
        if where and not exists(above, where[-1]):
            complete = "new" if exists(container, "new") else "old"
            os.rename(complete, where[-1], src_dir_fd=container, dst_dir_fd=above)
            return
    except (FileNotFoundError, NotADirectoryError):
        pass
    finally:
        os.close(above)
    if exists(container, "new"):
        message = (
            f"an interrupted run left the output tree in {name}/old, and there is another one at its place"
        )
        raise SystemFailure(message, hint=f"take from {name}/old what is yours, then delete {name}")


def _read_journal(container: int) -> list[str]:
    """The parts of the path, below the parent of the tree, that two renames were about; none when damaged."""
    file = os.open("journal", os.O_RDONLY | os.O_NOFOLLOW, dir_fd=container)
    try:
        data = os.read(file, 1 << 16)
    finally:
        os.close(file)
    parts = os.fsdecode(data[:-1]).split("/") if data.endswith(b"\0") else []
    return [] if any(part in ("", ".", "..") for part in parts) else parts
