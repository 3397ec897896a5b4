"""File names that some volumes do not distinguish, and the name of our own folder in all its spellings.

Windows, SMB, APFS and folders of ext4 with `casefold` ignore case, and some of them also Unicode's normalization, code
points that are not shown, or dots and blanks at the end of a name.
"""

from __future__ import annotations

import os
import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence

from kaigen_downloader.errors import BadInput
from kaigen_downloader.folder import STATE, Folder, split
from kaigen_downloader.text import shown

_FILLERS = frozenset("\u115f\u1160")
"""Letters that are not shown. ext4 ignores them (source: Linux, fs/unicode, Default_Ignorable_Code_Point); other such
code points are marks, or not printable and therefore refused."""
_SHORT_NAME = re.compile(r"kaigen~[0-9]+|ka[0-9a-f]{4}~[0-9]+")
"""The name of 8 characters that NTFS also gives to `.kaigen` (source: Git, is_ntfs_dot_generic in path.c)."""
_PROBES = f"{STATE}/names"


def folded(name: str) -> str:
    """Return a text that is the same for all names that any volume may take for one name.

    Names that every volume distinguishes, such as `e` and `é`, may have the same text, too.

    Args:
        name: one component of a path.
    """
    if not name.isascii():
        plain = unicodedata.normalize("NFKD", name)
        name = "".join(char for char in plain if char not in _FILLERS and unicodedata.category(char)[0] != "M")
    return name.upper().casefold().rstrip(" .")


def is_state(name: str) -> bool:
    """Return whether the name of a folder is that of our own on some volume.

    Args:
        name: the first component of a path.
    """
    plain = folded(name.partition(":")[0]).lstrip(" ")  # NTFS: what follows a colon is a stream of the file.
    return plain == STATE or _SHORT_NAME.fullmatch(plain) is not None


def _alike(paths: Iterable[str]) -> Iterator[list[tuple[str, ...]]]:
    """Yield paths, as components, that some volume may take for one path."""
    groups: dict[str, list[str]] = {}
    for path in paths:
        groups.setdefault("/".join(map(folded, path.split("/"))), []).append(path)
    for group in groups.values():
        by_depth: dict[int, list[tuple[str, ...]]] = {}
        for path in group if len(group) > 1 else ():
            parts = split(path)
            by_depth.setdefault(len(parts), []).append(parts)
        yield from (each for each in by_depth.values() if len(each) > 1)


def check_volume(folder: Folder, paths: Iterable[str]) -> None:
    """Check that a volume distinguishes all files of a source.

    Most do, and repositories may have such names. So the volume itself is asked: each name is made in an empty folder.

    Raises:
        BadInput: two files of the source would be one file.
    """
    _clear(folder)  # A run may have been killed here.
    for group in _alike(paths):
        first = [_first_names(folder, sorted(set(names))) for names in zip(*group, strict=True)]
        seen: dict[tuple[str, ...], str] = {}
        for parts in sorted(group):
            path = "/".join(parts)
            one = tuple(names[part] for names, part in zip(first, parts, strict=True))
            if (other := seen.setdefault(one, path)) != path:
                raise BadInput(
                    f"{folder.path} takes {shown(other)} and {shown(path)} for one file: exclude one of them, or use a "
                    "volume that distinguishes upper and lower case"
                )


def _first_names(folder: Folder, names: Sequence[str]) -> dict[str, str]:
    """Return for each name the first one that is the same to the volume."""
    found: dict[str, str] = {}
    made: dict[int, str] = {}
    try:
        for name in names:
            path = f"{_PROBES}/{name}"
            try:
                fd = folder.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, create=True)
            except FileExistsError:
                status = folder.stat(path)
                found[name] = made.get(status.st_ino if status else 0, names[0])
            else:
                made[os.fstat(fd).st_ino] = found[name] = name
                os.close(fd)
    finally:
        _clear(folder)
    return found


def _clear(folder: Folder) -> None:
    for name in folder.names(_PROBES):
        folder.remove(f"{_PROBES}/{name}")
    folder.remove_folder(_PROBES)
