"""Reads files and folders of a repository, none of which is trusted: with limits, and never a device or a pipe."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from stat import S_ISDIR, S_ISREG

from kaigen.diagnostics.diagnostic import Diagnostic, Mark
from kaigen.diagnostics.errors import InputError
from kaigen.system.limits import FOLDER_DEPTH


def too_deep(folder: str) -> Diagnostic:
    """Return the error for a folder below `FOLDER_DEPTH` levels of folders."""
    shown = os.fsencode(os.path.normpath(folder)).decode(errors="replace").replace(os.sep, "/")
    message = f"folders are nested more than {FOLDER_DEPTH} levels deep"
    return Diagnostic("KG0105", message, Mark(shown), "remove this folder, or move its files up")


def walk(top: str | os.PathLike[str]) -> Iterator[tuple[str, list[str], list[str]]]:
    """Yield a folder and those below it, each with the names of its folders and of its other entries.

    As with `os.walk`, links to folders are not followed, and the caller may sort the names of folders or remove some,
    which are then not entered. Folders that cannot be listed are left out.

    Raises:
        InputError: KG0105, folders are nested too deep.
    """
    waiting = [(os.fspath(top), 0)]
    while waiting:
        folder, depth = waiting.pop()
        if depth > FOLDER_DEPTH:
            raise InputError([too_deep(folder)])
        folders: list[str] = []
        others: list[str] = []
        try:
            with os.scandir(folder) as entries:
                for entry in entries:
                    (folders if _is_folder(entry) else others).append(entry.name)
        except OSError:
            continue
        yield folder, folders, others
        inner = (os.path.join(folder, name) for name in reversed(folders))
        waiting += [(path, depth + 1) for path in inner if not os.path.islink(path)]


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:
        return False  # A link that leads to itself.


_OUTSIDE = "a symbolic link on this path leads out of the repository"


def read_file(
    path: str | os.PathLike[str], root: str | os.PathLike[str], most: int, hint: str, shown: str = ""
) -> bytes | None:
    """Return the content of a file; None if it does not exist.

    Args:
        path: the file.
        root: the repository, out of which a symbolic link must not lead.
        most: most bytes.
        hint: what to do when it cannot be read.
        shown: its name in diagnostics; the path when empty.

    Raises:
        InputError: KG0101, it is a broken link; KG0102, it is not a regular file, or cannot be read; KG0103, a link
            leads out of the repository; KG0104, it is larger.
    """
    mark = Mark(shown or os.fspath(path))
    real, base = os.path.realpath(path), os.path.realpath(root)
    if os.path.commonpath([real, base]) != base:
        raise InputError.of("KG0103", _OUTSIDE, mark=mark, hint="copy the file into the repository")
    try:
        data = read_regular(real, most)
    except FileNotFoundError:
        if os.path.lexists(path):
            raise InputError.of("KG0101", "this symbolic link is broken", mark=mark, hint=hint) from None
        return None
    except OSError as error:
        message = f"cannot read this file: {reason_of(error)}"
        raise InputError.of("KG0102", message, mark=mark, hint=hint) from error
    if len(data) > most:
        raise InputError.of("KG0104", f"the file is larger than {size_text(most)}", mark=mark, hint=hint)
    return data


def read_regular(path: str | os.PathLike[str], most: int) -> bytes:
    """Return the content of a regular file, and of one that is larger than a limit one byte more than the limit.

    Args:
        path: the file, or a link to it.
        most: the limit.

    Raises:
        OSError: it is missing, cannot be read, or is a folder, a pipe, a device or a socket.
    """
    _check_kind(path, os.stat(path).st_mode)
    # It may be another file by now, and a pipe is then opened without waiting for its other end.
    file = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    try:
        _check_kind(path, os.fstat(file).st_mode)
        with open(file, "rb", closefd=False) as stream:
            return stream.read(most + 1)
    finally:
        os.close(file)


def _check_kind(path: str | os.PathLike[str], mode: int) -> None:
    if S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), os.fspath(path))
    if not S_ISREG(mode):
        raise OSError(errno.EINVAL, "not a regular file", os.fspath(path))


def reason_of(error: OSError) -> str:
    """Return why the system refused something, as a message has it."""
    return (error.strerror or type(error).__name__).lower()


def size_text(count: int) -> str:
    """Return a number of bytes as people read it: `2 MiB`."""
    for unit, factor in (("MiB", 1024 * 1024), ("KiB", 1024)):
        if count >= factor and count % factor == 0:
            return f"{count // factor} {unit}"
    return f"{count} bytes"
