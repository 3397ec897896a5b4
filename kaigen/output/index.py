"""The index of an output tree: the list of files that kaigen wrote, and which paths are allowed in it."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator

from kaigen.diagnostics.collector import Diagnostics
from kaigen.diagnostics.diagnostic import Diagnostic, Mark
from kaigen.files import read_file
from kaigen.system.lazy_import import lazy_imports
from kaigen.system.limits import GENERATED_FILE_BYTES

with lazy_imports():
    import unicodedata


INDEX_NAME = ".kaigen-index"
STAGING_PREFIX = ".kaigen-staging-"

# Paths only, one a line: a change of content leaves the index alone, and Git merges two branches' additions.
_FIRST = "# kaigen index 1"
_HEADER = f"""{_FIRST}: the files in this directory that kaigen wrote and may remove.
# After a merge conflict keep the lines of both sides.
"""

_PLAIN = re.compile(r"[\w-][\w.-]*(?:/[\w-][\w.-]*)*", re.ASCII)
_ODD_CHARACTERS = re.compile(r"[\x00-\x1f\x7f\\\ud800-\udfff]")
_MARKER = re.compile(r"(?:<<<<<<<|>>>>>>>|\|\|\|\|\|\|\|)(?: |$)|=======$")


def path_problem(path: str) -> str:
    """Return why kaigen must not own a file at this path of a tree; empty when it may."""
    if _PLAIN.fullmatch(path):
        return ""
    if not path or path.startswith("/"):
        return "is not relative to the output directory"
    if _ODD_CHARACTERS.search(path):
        return "has a backslash, a control character or a lone surrogate"
    if path.startswith("#") or _MARKER.match(path):
        return "looks like a comment or a conflict marker in the index"
    for part in path.split("/"):
        if part in ("", ".", ".."):
            return "has an empty, '.' or '..' segment"
        folded = part.casefold()
        if folded in (".git", INDEX_NAME) or folded.startswith(STAGING_PREFIX):
            return f"has the reserved segment '{part}'"
    return ""


def check_paths(paths: Iterable[str]) -> None:
    """Raise `ValueError` for the first path that kaigen must not own, which is a bug of the caller."""
    for path in paths:
        if problem := path_problem(path):
            raise ValueError(f"output path {path!r} {problem}")


def format_index(owned: Iterable[str]) -> bytes:
    """Return the index of these paths; empty bytes for no paths, since an empty tree has no index."""
    lines = sorted(owned)
    return (_HEADER + "\n".join(lines) + "\n").encode() if lines else b""


def read_index_file(path: str | os.PathLike[str], shown: str) -> bytes:
    """Return the bytes of an index, which is a regular file.

    Raises:
        InputError: it cannot be read, or is too large.
    """
    return read_file(path, os.path.dirname(path), GENERATED_FILE_BYTES, _RESTORE, shown) or b""


def parse_index(data: bytes, shown: str) -> tuple[frozenset[str], Diagnostics]:
    """Parse an index.

    Args:
        data: the bytes of the file.
        shown: its name in diagnostics.

    Returns:
        The owned paths, and errors (KG0605). Going on in spite of them could remove the wrong files.
    """
    diagnostics = Diagnostics()
    try:
        lines = data.decode().split("\n")
    except UnicodeDecodeError:
        diagnostics.add(Diagnostic("KG0605", "the index is not UTF-8 text", Mark(shown), _RESTORE))
        return frozenset(), diagnostics
    if not lines[0].startswith(_FIRST + ":"):
        known = lines[0].startswith("# kaigen index ")
        what = "the index was written by another version of kaigen" if known else "this is not an index of kaigen"
        hint = "upgrade kaigen" if known else _RESTORE
        # A merge conflict at the top hides the first line; then report the markers instead.
        if not any(_MARKER.match(line) for line in lines):
            diagnostics.add(Diagnostic("KG0605", what, Mark(shown, 1, 1, max(1, len(lines[0])), lines[0]), hint))
            return frozenset(), diagnostics
    owned = []
    for number, raw in enumerate(lines, 1):
        line = raw.removesuffix("\r")
        if not line or (line[0] == "#"):
            continue
        problem = "" if _PLAIN.fullmatch(line) else _line_problem(line)
        if problem:
            hint = _MERGE if _MARKER.match(line) else _RESTORE
            diagnostics.add(Diagnostic("KG0605", problem, Mark(shown, number, 1, len(line), line), hint))
        else:
            owned.append(line)
    return frozenset(owned), diagnostics


_RESTORE = "restore the file from Git; kaigen needs it to distinguish its own files from yours"
_MERGE = "keep the paths of both sides and delete the marker lines"


def _line_problem(line: str) -> str:
    if _MARKER.match(line):
        return "the index has an unresolved merge conflict"
    problem = path_problem(line)
    return f"the index lists a path that {problem}" if problem else ""


def fold(path: str) -> str:
    """Return the path as a file system compares it that ignores case and Unicode forms."""
    if path.isascii():
        return path.lower()
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", path).casefold())


def parents(path: str) -> Iterator[str]:
    """Yield the directories above a path, nearest first, without the root."""
    while "/" in path:
        path = path.rpartition("/")[0]
        yield path


def directories(paths: Iterable[str]) -> set[str]:
    """Return all directories of these files, without the root."""
    found: set[str] = set()
    for path in paths:
        for parent in parents(path):
            if parent in found:
                break
            found.add(parent)
    return found


def collisions(paths: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Yield pairs of paths that conflict on some file systems.

    The two differ only in case or Unicode form, or one is a file where the other needs a directory.
    """
    files = set(paths)
    folders = directories(files)
    for path in sorted(files & folders):
        yield path, min(other for other in files if other.startswith(path + "/"))
    everything = files | folders
    folded = {fold(path) for path in everything}
    if len(folded) == len(everything):
        return
    seen: dict[str, str] = {}
    for path in sorted(everything, key=lambda path: (path.count("/"), path)):
        first = seen.setdefault(fold(path), path)
        # Everything below two colliding folders collides too; report only the folders.
        same_folder = first.rpartition("/")[0] == path.rpartition("/")[0]
        if first != path and same_folder:
            yield first, path
