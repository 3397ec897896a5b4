"""Changes of files that are shown before they are written, all or none."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal

from msgspec import Struct

from kaigen.diagnostics.errors import SystemFailure
from kaigen.files import read_regular
from kaigen.system.limits import GENERATED_FILE_BYTES

Action = Literal["add", "change", "keep"]
_MARK = "\ufeff"


class FileChange(Struct, frozen=True):
    """What happens to one file.

    Attributes:
        path: the file.
        old: its content; None if it does not exist.
        new: its content afterwards.
        note: why it is kept, or what to do by hand; may be empty.
    """

    path: Path
    old: str | None
    new: str
    note: str = ""

    @property
    def action(self) -> Action:
        """What happens to the file."""
        if self.old is None:
            return "add"
        return "keep" if self.old == self.new else "change"

    def diff(self) -> Iterator[str]:
        """Return the lines of a unified diff."""
        name = self.path.as_posix()
        old, new = (self.old or "").splitlines(), self.new.splitlines()
        return difflib.unified_diff(old, new, name, name, n=2, lineterm="")


def mark_of(path: Path) -> str:
    """Return the byte order mark that a file starts with; empty for none. Texts of specs are without it."""
    with path.open("rb") as file:
        return _MARK if file.read(len(_MARK.encode())) == _MARK.encode() else ""


def read_text(path: Path) -> str | None:
    """Return the content of a file; None if it does not exist.

    Raises:
        SystemFailure: it cannot be read.
    """
    try:
        return read_regular(path, GENERATED_FILE_BYTES).decode()
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not UTF-8"
        raise SystemFailure(f"{path}: {reason}") from error


def write_changes(changes: Sequence[FileChange]) -> None:
    """Write every file that changes, or none.

    Raises:
        SystemFailure: a file cannot be written; those before it are as they were.
    """
    done: list[FileChange] = []
    try:
        for change in changes:
            if change.action == "keep":
                continue
            change.path.parent.mkdir(parents=True, exist_ok=True)
            done.append(change)
            change.path.write_text(change.new, encoding="utf-8", newline="\n")
    except OSError as error:
        for change in done:
            if change.old is None:
                change.path.unlink(missing_ok=True)
            else:
                change.path.write_text(change.old, encoding="utf-8", newline="\n")
        raise SystemFailure(f"{error.filename}: {error.strerror}") from error
