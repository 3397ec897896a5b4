"""The unified diff of two versions of a file, in the format of Git."""

from __future__ import annotations

from collections.abc import Iterator

from kaigen.system.lazy_import import lazy_imports

with lazy_imports():
    import difflib
LARGEST = 1 << 20
"""Bytes of a file whose lines are compared. What kaigen renders is smaller: an API server stores 1.5 MB at most."""


def unified_diff(path: str, old: bytes | None, new: bytes | None) -> Iterator[str]:
    """Compare two versions of a file.

    Args:
        path: the name of the file, printed as `a/path` and `b/path`.
        old: its bytes; None when it does not exist.
        new: the same for the new version.

    Yields:
        Lines without their ends; none when both versions are equal. One line when a version is too large to review.
    """
    names = ("/dev/null" if old is None else f"a/{path}", "/dev/null" if new is None else f"b/{path}")
    if max(len(old or b""), len(new or b"")) > LARGEST:
        if old != new:
            yield f"Files {names[0]} ({len(old or b'')} bytes) and {names[1]} ({len(new or b'')} bytes) differ"
        return
    before, after = _lines(old or b""), _lines(new or b"")
    if before is None or after is None:
        if old != new:
            yield f"Binary files {names[0]} and {names[1]} differ"
        return
    if not before and not after and (old is None) != (new is None):
        yield f"--- {names[0]}"
        yield f"+++ {names[1]}"
    for line in difflib.unified_diff(before, after, *names, lineterm=""):
        text, missing_end, _ = line.partition(_NO_END)
        yield text
        if missing_end:
            yield "\\ No newline at end of file"


# A text has no zero byte: `_lines` treats such files as binary.
_NO_END = "\0"


def _lines(data: bytes) -> list[str] | None:
    if b"\0" in data:
        return None
    try:
        lines = data.decode().split("\n")
    except UnicodeDecodeError:
        return None
    last = lines.pop()
    return [*lines, last + _NO_END] if last else lines
