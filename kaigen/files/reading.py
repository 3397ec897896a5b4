"""Reads a file of a repository: never a device or a pipe, and no more than a limit."""

from __future__ import annotations

import os
from stat import S_ISREG

from kaigen.diagnostics.diagnostic import Mark
from kaigen.diagnostics.errors import InputError

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
        # A pipe is opened without waiting for its other end.
        file = os.open(real, os.O_RDONLY | os.O_NONBLOCK)
    except FileNotFoundError:
        if os.path.lexists(path):
            raise InputError.of("KG0101", "this symbolic link is broken", mark=mark, hint=hint) from None
        return None
    except OSError as error:
        raise _unreadable(error, mark, hint) from error
    try:
        if not S_ISREG(os.fstat(file).st_mode):
            raise InputError.of("KG0102", "this is not a regular file", mark=mark, hint=hint)
        with open(file, "rb", closefd=False) as stream:
            data = stream.read(most + 1)
    except OSError as error:
        raise _unreadable(error, mark, hint) from error
    finally:
        os.close(file)
    if len(data) > most:
        raise InputError.of("KG0104", f"the file is larger than {size_text(most)}", mark=mark, hint=hint)
    return data


def _unreadable(error: OSError, mark: Mark, hint: str) -> InputError:
    return InputError.of("KG0102", f"cannot read this file: {reason_of(error)}", mark=mark, hint=hint)


def reason_of(error: OSError) -> str:
    """Return why the system refused something, as a message has it."""
    return (error.strerror or type(error).__name__).lower()


def size_text(count: int) -> str:
    """Return a number of bytes as people read it: `2 MiB`."""
    for unit, factor in (("MiB", 1024 * 1024), ("KiB", 1024)):
        if count >= factor and count % factor == 0:
            return f"{count // factor} {unit}"
    return f"{count} bytes"
