"""Files of an output folder that kaigen did not write, although whatever syncs the folder reads them."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from kaigen.config.block_settings import matches_glob
from kaigen.diagnostics.diagnostic import Diagnostic, Mark
from kaigen.output.index import INDEX_NAME, STAGING_PREFIX, parse_index
from kaigen.output.root import OWN_DIRECTORY, misplaced

MOST = 50
"""Most files that are reported."""


def foreign_files(root: Path, own: Sequence[str] = ()) -> list[str]:
    """Return the paths of foreign files, relative to the folder and sorted.

    A folder may contain several trees, each with an index. Links and special files are foreign; damaged indexes own
    nothing.

    Args:
        root: the output folder of all environments; need not exist.
        own: globs of files that are the user's own.
    """
    if not root.is_dir():
        return []
    return sorted(path for path in _foreign(str(root), "", frozenset()) if not matches_glob(path, own))


def _foreign(folder: str, prefix: str, owned: frozenset[str]) -> Iterator[str]:
    """Yield the foreign files of a folder; `owned` are paths of the trees above, relative to the output folder."""
    with os.scandir(folder) as found:
        entries = list(found)
    index = next((each for each in entries if each.name == INDEX_NAME), None)
    if index is not None and index.is_file(follow_symlinks=False):
        with open(index.path, "rb") as file:
            listed, problems = parse_index(file.read(), index.path)
        if not problems.has_errors:
            owned |= {f"{prefix}{path}" for path in listed} | {f"{prefix}{INDEX_NAME}"}
    for entry in entries:
        path = f"{prefix}{entry.name}"
        if entry.is_dir(follow_symlinks=False):
            if not entry.name.startswith(STAGING_PREFIX):
                yield from _foreign(entry.path, f"{path}/", owned)
        elif path not in owned or not entry.is_file(follow_symlinks=False):
            yield path


def foreign_diagnostics(root: Path, own: Sequence[str] = (), inside: Path | None = None) -> list[Diagnostic]:
    """Return an error for each foreign file of an output folder, or one for a folder in the wrong place.

    Args:
        root: as for `foreign_files`.
        own: as for `foreign_files`.
        inside: the repository that must contain the folder; None for a folder that the user named.
    """
    if problem := misplaced(os.path.realpath(root), inside):
        return [Diagnostic("KG0602", problem, Mark(str(root)), OWN_DIRECTORY)]
    found = foreign_files(root, own)
    problems = [
        Diagnostic(
            "KG0607",
            "kaigen did not write this file, and what syncs the folder reads it",
            Mark(f"{root}/{path}".encode(errors="replace").decode()),
            "delete it, or list it in `allow.files` of kaigen.yaml",
        )
        for path in found[:MOST]
    ]
    if len(found) > MOST:
        message = f"{len(found) - MOST} more files that kaigen did not write"
        problems.append(Diagnostic("KG0607", message, Mark(str(root)), "run `git status` in the folder"))
    return problems
