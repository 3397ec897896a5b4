"""Where an output tree may stand, and the lock that lets one writer at a time work there."""

from __future__ import annotations

import errno
import os
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from stat import S_ISDIR

from kaigen.diagnostics.diagnostic import InputError, Mark, SystemFailure
from kaigen.output.index import STAGING_PREFIX

_OWN_DIRECTORY = "choose an output directory of its own, such as 'deploy'"


@dataclass(frozen=True, slots=True)
class Place:
    """The root of an output tree.

    Attributes:
        shown: as the user typed it, for messages.
        parent: the directory that holds it, absolute and free of symbolic links; it may not exist.
        name: its name there.
    """

    shown: str
    parent: str
    name: str

    @property
    def path(self) -> str:
        """The root itself, absolute and free of symbolic links."""
        return os.path.join(self.parent, self.name)

    @property
    def exists(self) -> bool:
        """Whether there is a tree."""
        return os.path.lexists(self.path)

    def mark(self, path: str = "") -> Mark:
        """A file of the tree in a diagnostic."""
        shown = os.path.join(self.shown, path) if path else self.shown
        return Mark(shown.encode(errors="replace").decode())


def find_place(root: Path) -> Place:
    """Make sure that kaigen can replace the directory `root` as a whole.

    Raises:
        InputError: KG0602 when it is no directory or a symbolic link out of its parent; KG0604 when it is a
            mount point or holds one, is a Git working tree, or holds the working directory. Refused always,
            so that it does not hang on which files change.
    """
    shown = str(root)
    mark = Mark(shown)
    outer, last = os.path.split(os.path.abspath(root))
    outer = os.path.realpath(outer)
    target = os.path.realpath(os.path.join(outer, last))
    leaves = os.path.commonpath([outer, target]) != outer or target == outer
    if last and leaves:
        message = f"the output directory is a symbolic link to {target}, outside its parent"
        raise InputError.of("KG0602", message, mark=mark, hint="name the directory that is meant")
    try:
        found = os.lstat(target)
    except FileNotFoundError:
        found = None
    except NotADirectoryError:
        message = "a parent of the output directory is a file"
        raise InputError.of("KG0602", message, mark=mark, hint=_OWN_DIRECTORY) from None
    if found is not None and not S_ISDIR(found.st_mode):
        message = "the output directory is a file"
        raise InputError.of("KG0602", message, mark=mark, hint=_OWN_DIRECTORY)
    if problem := _in_the_way(target):
        raise InputError.of(
            "KG0604", f"kaigen cannot swap the output directory: it {problem}", mark=mark, hint=_OWN_DIRECTORY
        )
    parent, name = os.path.split(target)
    return Place(shown, parent, name)


def _in_the_way(root: str) -> str:
    try:
        working = os.getcwd()
    except FileNotFoundError:
        working = ""
    below = root.rstrip("/") + "/"
    if working == root:
        return "is the working directory"
    if working.startswith(below):
        return "holds the working directory"
    if os.path.lexists(below + ".git"):
        return "is a Git working tree"
    if os.path.ismount(root):
        return "is a mount point"
    for point in _mount_points():
        if point == root:
            return "is a mount point"
        if point.startswith(below):
            return f"holds a mount point, {point.removeprefix(below)}"
    return ""


_MOUNT_TABLE = "/proc/self/mountinfo"
_OCTAL = re.compile(rb"\\([0-7]{3})")


def _mount_points() -> list[str]:
    """Where something is mounted, bind mounts too; nothing where the system does not tell (Linux does)."""
    try:
        with open(_MOUNT_TABLE, "rb") as file:
            lines = file.read().splitlines()
    except OSError:
        return []
    # proc(5): the fifth field is the mount point, with blanks and backslashes as \ooo.
    return [os.fsdecode(_OCTAL.sub(lambda m: bytes([int(m[1], 8)]), line.split(b" ")[4])) for line in lines]


@contextmanager
def hold(place: Place, wait_s: float) -> Iterator[int]:
    """Be the only writer of trees in `place.parent`, which is made when it does not exist.

    Args:
        place: the tree.
        wait_s: how long to wait for another writer, in seconds.

    Yields:
        A descriptor of the parent directory.

    Raises:
        SystemFailure: another writer took longer.
    """
    os.makedirs(place.parent, exist_ok=True)
    parent = os.open(place.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        if _acquire(parent, place, wait_s):
            yield parent
        else:
            with _lock_file(parent, place, wait_s):
                yield parent
    finally:
        os.close(parent)


@contextmanager
def _lock_file(parent: int, place: Place, wait_s: float) -> Iterator[None]:
    """The same by a file, which goes with its holder; one left by a killed run is taken over."""
    while True:
        file = os.open(_LOCK_NAME, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600, dir_fd=parent)
        try:
            if not _acquire(file, place, wait_s):
                raise SystemFailure(f"the file system of {place.parent} cannot lock files")
            if _is_same(file, parent):
                break
        except BaseException:
            os.close(file)
            raise
        os.close(file)  # the holder before us removed it while we waited
    try:
        yield
    finally:
        os.unlink(_LOCK_NAME, dir_fd=parent)
        os.close(file)


_LOCK_NAME = STAGING_PREFIX + "lock"


def _is_same(file: int, parent: int) -> bool:
    try:
        return os.path.samestat(os.fstat(file), os.stat(_LOCK_NAME, dir_fd=parent, follow_symlinks=False))
    except FileNotFoundError:
        return False


def _acquire(descriptor: int, place: Place, wait_s: float) -> bool:
    """Lock it; False when the file system cannot lock this kind of file."""
    import fcntl

    until = time.monotonic() + wait_s
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        except BlockingIOError:
            if time.monotonic() >= until:
                message = f"another kaigen has been writing in {place.parent} for {wait_s:g} s"
                raise SystemFailure(message, hint="wait for it, or end it, and try again") from None
            time.sleep(0.02)
        except OSError as error:
            # NFS makes a flock a range lock, for which a directory cannot be opened: flock(2), "NFS details".
            if error.errno in (errno.EBADF, errno.EINVAL, errno.ENOTSUP):
                return False
            raise
