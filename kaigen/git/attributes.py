"""Reads the attributes with which Git converts files between a commit and the working tree."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from kaigen.diagnostics.errors import SystemFailure
from kaigen.git.runner import run_git

CONVERSIONS = ("filter", "ident", "working-tree-encoding")
"""Attributes that replace text at checkout. Those of line ends only add carriage returns, which kaigen never writes."""
_NONE = (b"unspecified", b"unset")
ATTRIBUTES_NAME = ".gitattributes"


def index_has_attributes(top: Path) -> bool:
    """Return whether the index of a working tree has a `.gitattributes` file, without running Git.

    Source: gitformat-index. An index whose paths are compressed or in another file counts as one that has.

    Args:
        top: the top of the working tree.
    """
    git = top / ".git"
    try:
        if git.is_file():
            git = top / git.read_text(encoding="utf-8").removeprefix("gitdir:").strip()
        index = (git / "index").read_bytes()
    except FileNotFoundError:
        return False
    is_compressed = int.from_bytes(index[4:8], "big") > 3
    return is_compressed or f"{ATTRIBUTES_NAME}\0".encode() in index or any(git.glob("sharedindex.*"))


def conversions(folder: Path, paths: Sequence[str]) -> dict[str, str]:
    """Return the attribute that converts a file, by path; files that are not converted are left out.

    The `.gitattributes` files of the index count as those of the working tree: Git uses the former at checkout, and
    they may be converted, too.

    Args:
        folder: a folder in a working tree.
        paths: relative to it.

    Raises:
        InputError: the folder is not in a repository, or has the files of a bare one (KG0802).
        SystemFailure: git is missing or fails.
    """
    names = b"".join(os.fsencode(path) + b"\0" for path in paths)
    found: dict[str, str] = {}
    for source in ((), ("--cached",)):
        done = run_git(folder, ["check-attr", "-z", "--stdin", *source, *CONVERSIONS], stdin=names)
        if not done.ok:
            raise SystemFailure(f"git check-attr failed: {done.err.strip()}")
        fields = done.out.split(b"\0")
        for path, name, value in zip(fields[0::3], fields[1::3], fields[2::3], strict=False):
            if value not in _NONE:
                found.setdefault(os.fsdecode(path), name.decode("ascii"))
    return found
