"""Builds the next state of an output tree in a container next to it, then swaps the two in one step.

```
deploy/                       the tree
.kaigen-staging-<16 digits>/  this run's container, gone when it ends
    .gitignore                `*`, so that leftovers of a killed run are never committed
    new                       the next state of the file or directory that changes; after the swap, the old one
    old/, journal             only where the file system cannot swap
```

A process may be killed at any moment: the tree is then the old or the new one, and the next writer removes the
leftovers. The one exception is a file system that cannot swap two directories (NFS, SMB, 9p, FAT): kaigen renames
twice there, and a process killed between the two renames, microseconds apart, leaves no tree until the next writer
reads the journal and finishes.

Nothing is synced to disk. After a power loss the file system may have lost writes; kaigen compares contents, so the
next run restores them.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence, Set
from contextlib import suppress
from stat import S_IMODE, S_ISDIR

from kaigen.diagnostics.errors import SystemFailure
from kaigen.output import replacement
from kaigen.output.contents import FileContent, Stamp, data_of, now_ns, stamp_of
from kaigen.output.index import STAGING_PREFIX, parents, path_problem
from kaigen.output.replacement import OPEN_DIRECTORY, Replacement, exists, remove_directory

_CONTAINER = re.compile(re.escape(STAGING_PREFIX) + "[0-9a-f]{16}")
_OLD_PREFIX = ".kaigen-old-"
_FILE_MODE = 0o644
_DIRECTORY_MODE = 0o755


class Staging:
    """The container of one run: a context manager that deletes the container on exit.

    Attributes:
        written: the stamp of each file written, by its path in the tree.
        done_ns: when the last file was written, in nanoseconds since the epoch; no one else can change them before.
    """

    def __init__(self, parent: int, root: str, owned: Set[str]) -> None:
        """Create the container.

        Args:
            parent: descriptor of the tree's parent directory, locked.
            root: the tree's name in it.
            owned: paths of the tree that kaigen wrote; all others are preserved.
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
            return  # the container has the old tree: `recover` restores it
        # The tree is written, or an error is being raised; the next writer removes what is left.
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
            writes: files below it that are new or change.
            removes: files below it to remove, together with directories that become empty.
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
            replacement = Replacement(self._owned, writes.keys(), removes)
            old = os.open(name, OPEN_DIRECTORY, dir_fd=above)
            try:
                replacement.copy_unchanged(old, at, self._fd, "new")
                self.done_ns = now_ns()
                self._swap(above, at)
                self._remove_old(replacement, old, above, at)
            finally:
                os.close(old)
        finally:
            os.close(above)

    def _descend(self, at: str) -> tuple[int, str]:
        """Open the directory of a path without following links, or the deepest one that exists.

        Returns:
            Descriptor of the directory above the path that was reached, and that path.
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
        """Start the next state of a directory with the written files."""
        made: set[str] = set()
        os.mkdir("new", _DIRECTORY_MODE, dir_fd=self._fd)
        # Most umasks keep 0755. If this directory got the mode, all directories below will too, which saves a call for
        # each. Other reasons for a different mode, a set-group-ID bit or a default ACL, are inherited as well.
        status = os.stat("new", dir_fd=self._fd, follow_symlinks=False)
        self._chmod = S_IMODE(status.st_mode) != _DIRECTORY_MODE
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
        # Exclusive, so that no byte is ever written to a file shared with the old tree.
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
        file = os.open(target, flags, _FILE_MODE, dir_fd=self._fd)
        try:
            remaining = memoryview(data)
            while remaining:
                remaining = remaining[os.write(file, remaining) :]
            found = os.fstat(file)
            if S_IMODE(found.st_mode) != _FILE_MODE:
                os.fchmod(file, _FILE_MODE)
                found = os.fstat(file)
            return stamp_of(found)
        finally:
            os.close(file)

    def _swap(self, above: int, at: str) -> None:
        """Swap the new state into the tree; `new` in the container is then the old one."""
        name = self._entry(at)
        try:
            replacement.exchange(self._fd, "new", above, name)
        except OSError as error:
            if error.errno not in replacement.UNSUPPORTED:
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

    def _remove_old(self, replacement: Replacement, old: int, above: int, at: str) -> None:
        live = os.open(self._entry(at), OPEN_DIRECTORY, dir_fd=above)
        try:
            replacement.remove_old(old, at, live, at)
        except OSError as error:
            old_name = _OLD_PREFIX + os.urandom(8).hex()
            os.rename(self._name, old_name, src_dir_fd=self._parent, dst_dir_fd=self._parent)
            message = f"the output tree is written, but the old one could not be removed: {error}"
            raise SystemFailure(message, hint=f"check {old_name} next to the tree, then delete it") from error
        finally:
            os.close(live)


def recover(parent: int, root: str) -> None:
    """Finish the work of killed runs on a tree and remove their containers.

    A container may come from anywhere, such as a commit. So nothing outside of this tree is written, and the container
    of another tree waits for the next write of that one.

    Args:
        parent: descriptor of the tree's parent directory, locked.
        root: the tree's name in it.

    Raises:
        SystemFailure: a run was killed between two renames (see above) and somebody created a new tree since.
    """
    with os.scandir(parent) as entries:
        names = [entry.name for entry in entries if _CONTAINER.fullmatch(entry.name)]
    for name in names:
        found = os.stat(name, dir_fd=parent, follow_symlinks=False)
        if not S_ISDIR(found.st_mode) or found.st_uid != os.geteuid():
            continue  # in a shared directory, leave the containers of other users alone
        container = os.open(name, OPEN_DIRECTORY, dir_fd=parent)
        try:
            if exists(container, "old") and exists(container, "journal"):
                where = _read_journal(container)
                if where and where[0] != root:
                    continue
                _finish(parent, container, name, where)
        finally:
            os.close(container)
        with suppress(OSError):
            remove_directory(parent, name)


def _finish(parent: int, container: int, name: str, where: Sequence[str]) -> None:
    above = os.dup(parent)
    try:
        for part in where[:-1]:
            inner = os.open(part, OPEN_DIRECTORY, dir_fd=above)
            os.close(above)
            above = inner
        if where and not exists(above, where[-1]):
            complete = "new" if exists(container, "new") else "old"
            # A tree and the folders in it are directories: opening it refuses anything else.
            os.close(os.open(complete, OPEN_DIRECTORY, dir_fd=container))
            os.rename(complete, where[-1], src_dir_fd=container, dst_dir_fd=above)
            return
    except (FileNotFoundError, NotADirectoryError):
        pass
    finally:
        os.close(above)
    if exists(container, "new"):
        message = f"an interrupted run left the output tree in {name}/old, and another tree was created since"
        raise SystemFailure(message, hint=f"copy your own files out of {name}/old, then delete {name}")


def _read_journal(container: int) -> list[str]:
    """Return the segments of the renamed path, relative to the parent of the tree; none if it is damaged."""
    try:
        file = os.open("journal", os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=container)
    except OSError:
        return []
    try:
        data = os.read(file, 1 << 16)
    except OSError:
        return []
    finally:
        os.close(file)
    parts = os.fsdecode(data[:-1]).split("/") if data.endswith(b"\0") else []
    # The first segment is the tree's name, which `OutputRoot` has checked.
    below = "/".join(parts[1:])
    return [] if "" in parts or ".." in parts or (below and path_problem(below)) else parts
