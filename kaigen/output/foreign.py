"""Files of an output folder that kaigen did not write, although whatever syncs the folder reads them."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Sequence, Set
from pathlib import Path

from kaigen.config.block_settings import matches_glob
from kaigen.diagnostics.diagnostic import Diagnostic, Mark
from kaigen.output.index import INDEX_NAME, STAGING_PREFIX, parse_index, read_index_file
from kaigen.output.lock import is_being_written
from kaigen.output.root import NOT_SEPARATE, OWN_DIRECTORY, why_misplaced
from kaigen.system.limits import FOLDER_DEPTH

MOST = 50
"""Most files that are reported."""

IGNORE_NAME = ".sourceignore"
"""The file with which Flux leaves files out of what it deploys; it applies to its folder and those below."""


def foreign_files(root: Path, trees: Collection[str], own: Sequence[str] = ()) -> list[str]:
    """Return the paths of foreign files, relative to the folder and sorted.

    Links, special files and folders that are nested too deep are foreign. So are folders without a file: Git stores
    them only as submodules, whose files Argo CD and Flux read.

    Args:
        root: the output folder of all environments; need not exist.
        trees: names of the folders in it that kaigen renders into, empty for the output folder itself. Only these have
            an index; damaged indexes own nothing.
        own: globs of files that are the user's own.
    """
    if not root.is_dir():
        return []
    owned = frozenset(path for tree in trees for path in _owned(root, tree))
    found = list(_foreign(str(root), owned, trees))
    if "" not in trees and any(path.startswith(STAGING_PREFIX) for path in found) and is_being_written(str(root)):
        # A run that writes one of the trees has a container next to it.
        found = [path for path in found if not path.startswith(STAGING_PREFIX)]
    return sorted(path for path in found if not matches_glob(path, own))


def checkout_top(folder: Path) -> Path:
    """Return the top of the Git checkout that contains a folder; the folder itself outside of a checkout."""
    place = Path(os.path.abspath(folder))
    return next((each for each in (place, *place.parents) if os.path.lexists(each / ".git")), place)


def ignore_files(root: Path, inside: Path, own: Sequence[str] = ()) -> list[str]:
    """Return the `.sourceignore` files above an output folder, relative to it, such as `../.sourceignore`.

    Args:
        root: the output folder.
        inside: the repository that contains it; folders up to the top of its checkout are searched.
        own: globs of files that are the user's own; only those that start with `../` name files above the folder.
    """
    place, top = Path(os.path.abspath(root)), checkout_top(inside)
    own = [glob for glob in own if glob.startswith("../")]
    found = []
    for depth, folder in enumerate(place.parents, start=1):
        if not folder.is_relative_to(top):
            break
        path = "../" * depth + IGNORE_NAME
        if os.path.lexists(folder / IGNORE_NAME) and not matches_glob(path, own):
            found.append(path)
    return found


def _owned(root: Path, tree: str) -> Iterator[str]:
    """Yield the files that a tree's index lists, relative to the output folder, and the index."""
    index, prefix = root / tree / INDEX_NAME, f"{tree}/" if tree else ""
    if index.is_file() and not index.is_symlink() and not (root / tree).is_symlink():
        listed, problems = parse_index(read_index_file(index, str(index)), str(index))
        if not problems.has_errors:
            yield f"{prefix}{INDEX_NAME}"
            yield from (f"{prefix}{path}" for path in listed)


def _foreign(root: str, owned: Set[str], trees: Collection[str]) -> Iterator[str]:
    """Yield the foreign files of a folder; `owned` are those that kaigen wrote."""
    waiting = [""]
    while waiting:
        prefix = waiting.pop()
        with os.scandir(os.path.join(root, prefix)) as found:
            entries = list(found)
        if not entries and prefix and prefix[:-1] not in trees:
            yield prefix[:-1]
        for entry in entries:
            path = f"{prefix}{entry.name}"
            if entry.is_dir(follow_symlinks=False) and prefix.count("/") < FOLDER_DEPTH:
                waiting.append(f"{path}/")
            elif path not in owned or not entry.is_file(follow_symlinks=False):
                yield path


def foreign_diagnostics(
    root: Path, trees: Collection[str], own: Sequence[str] = (), inside: Path | None = None
) -> list[Diagnostic]:
    """Return an error for each foreign file of an output folder, or one for a folder in the wrong place.

    Args:
        root: as for `foreign_files`.
        trees: as for `foreign_files`.
        own: as for `foreign_files`.
        inside: the repository that must contain the folder; None for a folder that the user named.
    """
    if problem := why_misplaced(os.path.realpath(root), inside):
        return [Diagnostic(NOT_SEPARATE, problem, Mark(str(root)), OWN_DIRECTORY)]
    problems = [
        Diagnostic(
            "KG0607",
            "Flux does not deploy what this file lists, and it can list files of the output",
            Mark(os.path.normpath(root / path)),
            f"delete it, or list `{path}` in `allow.files` of kaigen.yaml",
        )
        for path in (ignore_files(root, inside, own) if inside is not None else ())
    ]
    found = foreign_files(root, trees, own)
    problems += [
        Diagnostic(
            "KG0607",
            "kaigen did not write this folder, and if it is a submodule, what syncs the output reads its files"
            if (root / path).is_dir() and not (root / path).is_symlink()
            else "kaigen did not write this file, and what syncs the folder reads it",
            Mark(f"{root}/{path}".encode(errors="replace").decode()),
            "delete it, or list it in `allow.files` of kaigen.yaml",
        )
        for path in found[:MOST]
    ]
    if len(found) > MOST:
        message = f"{len(found) - MOST} more files that kaigen did not write"
        problems.append(Diagnostic("KG0607", message, Mark(str(root)), "run `git status` in the folder"))
    return problems
