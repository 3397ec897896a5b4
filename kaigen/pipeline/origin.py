"""Whether what syncers read of an output folder is what kaigen wrote."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from kaigen.diagnostics.diagnostic import Diagnostic, Mark
from kaigen.diagnostics.errors import SystemFailure
from kaigen.files import walk
from kaigen.git.runner import run_git
from kaigen.output.foreign import MOST, checkout_top, foreign_diagnostics
from kaigen.output.root import NOT_SEPARATE

if TYPE_CHECKING:
    from kaigen.config.settings import Config


CONVERSIONS = ("filter", "ident", "working-tree-encoding")
"""Attributes that replace text at checkout. Those of line ends only add carriage returns, which kaigen never writes."""
_NONE = (b"unspecified", b"unset")
ATTRIBUTES_NAME = ".gitattributes"


def origin_diagnostics(root: Path, trees: Collection[str], config: Config, inside: Path | None) -> list[Diagnostic]:
    """Return an error for each file that kaigen did not write (KG0607), and for each that Git converts (KG0608).

    Args:
        root: the output folder of all environments; need not exist.
        trees: names of the folders in it that kaigen renders into, empty for the output folder itself.
        config: the repository's settings.
        inside: the repository that must contain the folder; None for a folder that the user named.
    """
    found = foreign_diagnostics(root, trees, config.allow.files, inside)
    if inside is not None and root.is_dir() and not any(each.code == NOT_SEPARATE for each in found):
        found += _converted(root, inside)
    return found


def _converted(root: Path, inside: Path) -> Iterator[Diagnostic]:
    """Yield an error for each file of the output that Git converts, up to `MOST` files."""
    top, place = checkout_top(inside), Path(os.path.abspath(root))
    above = [folder for folder in place.parents if folder.is_relative_to(top)]
    files = [os.path.relpath(os.path.join(folder, name), place) for folder, _, names in walk(place) for name in names]
    has_attributes = (
        any(os.path.lexists(folder / ATTRIBUTES_NAME) for folder in above)
        or any(os.path.basename(path) == ATTRIBUTES_NAME for path in files)
        or index_has_attributes(top)
    )
    if not has_attributes or not os.path.lexists(top / ".git"):
        return
    converted = conversions(place, sorted(files))
    for path in sorted(converted)[:MOST]:
        yield Diagnostic(
            "KG0608",
            f"Git converts this file at checkout (attribute `{converted[path]}`), so the commit has other bytes",
            Mark(f"{root}/{path}".encode(errors="replace").decode()),
            f"remove the attribute from {ATTRIBUTES_NAME} for the output folder",
        )
    if len(converted) > MOST:
        message = f"Git converts {len(converted) - MOST} more files at checkout"
        yield Diagnostic("KG0608", message, Mark(str(root)), f"remove the attributes from {ATTRIBUTES_NAME}")


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
