"""Checks that a directory can be the root of an output tree."""

from __future__ import annotations

import os
import re
from pathlib import Path
from stat import S_ISDIR

from msgspec import Struct

from kaigen.diagnostics.diagnostic import Mark
from kaigen.diagnostics.errors import InputError

NOT_SEPARATE = "KG0602"
"""The code of a folder that cannot be the output."""
OWN_DIRECTORY = "choose a separate output directory, such as 'deploy'"


class OutputRoot(Struct, frozen=True):
    """The root of an output tree.

    Attributes:
        shown: as the user typed it, for messages.
        parent: its parent directory, absolute and without symbolic links; may not exist yet.
        name: its name in the parent directory.
    """

    shown: str
    parent: str
    name: str

    @property
    def path(self) -> str:
        """The root, absolute and without symbolic links."""
        return os.path.join(self.parent, self.name)

    @property
    def exists(self) -> bool:
        """Whether the root exists."""
        return os.path.lexists(self.path)

    def mark(self, path: str = "") -> Mark:
        """Return the mark of a file of the tree, for a diagnostic."""
        shown = os.path.join(self.shown, path) if path else self.shown
        return Mark(shown.encode(errors="replace").decode())


def resolve_root(root: Path, inside: Path | None = None) -> OutputRoot:
    """Return the root of an output tree after checking that kaigen can replace it as a whole.

    The result does not depend on which files change.

    Args:
        root: the directory.
        inside: the repository that contains it, wherever symbolic links lead; None for a directory that the user
            named on the command line.

    Raises:
        InputError: KG0602, it is not a directory, is outside the repository or in `.git`, or is a symbolic link that
            leaves its parent; KG0604, it is a mount point or contains one, is a Git working tree, or contains the
            working directory.
    """
    shown = str(root)
    mark = Mark(shown)
    outer, last = os.path.split(os.path.abspath(root))
    outer = os.path.realpath(outer)
    target = os.path.realpath(os.path.join(outer, last))
    leaves = os.path.commonpath([outer, target]) != outer or target == outer
    if last and leaves:
        message = f"the output directory is a symbolic link to {target}, outside its parent"
        raise InputError.of(NOT_SEPARATE, message, mark=mark, hint="give the path of the target directory")
    if problem := why_misplaced(target, inside):
        raise InputError.of(NOT_SEPARATE, problem, mark=mark, hint=OWN_DIRECTORY)
    try:
        found = os.lstat(target)
    except FileNotFoundError:
        found = None
    except NotADirectoryError:
        message = "a parent of the output directory is a file"
        raise InputError.of(NOT_SEPARATE, message, mark=mark, hint=OWN_DIRECTORY) from None
    if found is not None and not S_ISDIR(found.st_mode):
        message = "the output directory is a file"
        raise InputError.of(NOT_SEPARATE, message, mark=mark, hint=OWN_DIRECTORY)
    if obstacle := _obstacle(target):
        raise InputError.of(
            "KG0604", f"kaigen cannot replace the output directory: it {obstacle}", mark=mark, hint=OWN_DIRECTORY
        )
    parent, name = os.path.split(target)
    return OutputRoot(shown, parent, name)


def why_misplaced(target: str, inside: Path | None) -> str:
    """Return why kaigen must not write to a directory, whatever it contains; empty when it may."""
    if any(part.casefold() == ".git" for part in target.split(os.sep)):
        return "the output directory is in the folder of Git"
    if inside is None:
        return ""
    repository = os.path.realpath(inside)
    if target == repository or os.path.commonpath([repository, target]) != repository:
        return f"the output directory is {target}, which is not a folder of the repository {repository}"
    return ""


def _obstacle(root: str) -> str:
    """Return why a directory cannot be replaced as a whole; empty when it can."""
    try:
        working = os.getcwd()
    except FileNotFoundError:
        working = ""
    below = root.rstrip("/") + "/"
    if working == root:
        return "is the working directory"
    if working.startswith(below):
        return "contains the working directory"
    if os.path.lexists(below + ".git"):
        return "is a Git working tree"
    if os.path.ismount(root):
        return "is a mount point"
    for point in _mount_points():
        if point == root:
            return "is a mount point"
        if point.startswith(below):
            return f"contains a mount point, {point.removeprefix(below)}"
    return ""


_MOUNT_TABLE = "/proc/self/mountinfo"
_OCTAL = re.compile(rb"\\([0-7]{3})")


def _mount_points() -> list[str]:
    """Return all mount points, including bind mounts; none on systems that do not list them (Linux does)."""
    try:
        with open(_MOUNT_TABLE, "rb") as file:
            lines = file.read().splitlines()
    except OSError:
        return []
    # proc(5): the fifth field is the mount point, with blanks and backslashes as \ooo.
    return [os.fsdecode(_OCTAL.sub(lambda m: bytes([int(m[1], 8)]), line.split(b" ")[4])) for line in lines]
