"""Reads the files of the submodules of a commit."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from pathlib import Path

from kaigen.diagnostics.errors import InputError
from kaigen.git.repository import has_commit, read_tree_at, submodules_at


def is_below(path: str, folders: Iterable[str]) -> bool:
    """Return whether a path is one of the folders or below one; `.` is the folder of every path."""
    return any(folder == "." or path == folder or path.startswith(f"{folder.rstrip('/')}/") for folder in folders)


def read_submodules_at(repo: Path, ref: str, folders: Collection[str]) -> dict[str, bytes]:
    """Return the content of every regular file of the submodules that a commit has in some folders, by path.

    A submodule is read in its place in the working tree, at its commit, with its own submodules.

    Args:
        repo: the repository, or any folder in its working tree.
        ref: branch, tag, commit or any other name of a commit.
        folders: relative to `repo`, with `/` as separator; a submodule may be in one of them, or contain it.

    Raises:
        InputError: as for `read_tree_at`, or this clone does not have a commit of a submodule (KG0805).
        SystemFailure: git is missing or fails.
    """
    files: dict[str, bytes] = {}
    for path, commit in submodules_at(repo, ref).items():
        inner = list(_inside(path, folders))
        if not inner:
            continue
        place = repo / path
        if not has_commit(place, commit):
            raise InputError.of(
                "KG0805",
                f"commit {ref[:12]} has the submodule `{path}` at {commit[:12]}, which this clone does not have",
                hint="run `git submodule update --init --recursive`, and fetch the commit in the submodule",
            )
        found = read_tree_at(place, commit) | read_submodules_at(place, commit, inner)
        files |= {f"{path}/{name}": data for name, data in found.items()}
    return files


def _inside(path: str, folders: Iterable[str]) -> Iterator[str]:
    """Yield the folders as they are in a submodule; those that are elsewhere are left out."""
    for folder in folders:
        if is_below(path, [folder]):
            yield "."
        elif is_below(folder, [path]):
            yield folder.removeprefix(f"{path}/")
