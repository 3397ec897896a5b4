"""Folders as tar archives: written as a stream with checksums, and read from one that is not trusted."""

from __future__ import annotations

import hashlib
import os
import stat
import tarfile
from collections.abc import Callable, Iterator
from pathlib import Path, PurePosixPath
from typing import IO, Any

from msgspec import Struct
from pathspec import GitIgnoreSpec

from kaigen.diagnostics.errors import NotFound, SystemFailure

IGNORE_FILES = (".kaigenignore", ".gitignore")
"""Files with patterns of what stays at home, in the syntax of Git. The first one that a folder has is read."""

_BLOCK = tarfile.BLOCKSIZE
_CHUNK = 1024 * 1024

Advance = Callable[[int], object]
"""Receives a number of bytes that were just copied."""


class Entry(Struct, frozen=True):
    """A file or folder that is copied.

    Attributes:
        path: where it is.
        name: its path in the archive.
        size: bytes of a file; 0 for a folder.
        is_folder: whether it is a folder.
    """

    path: Path
    name: str
    size: int = 0
    is_folder: bool = False


def entries_of(source: Path, name: str = "") -> list[Entry]:
    """Return what is copied of a folder, or the file itself.

    The folder itself is not among them: it is the target. Empty folders are, ignored files and `.git` are not.

    Args:
        source: a file or folder.
        name: name of a file in the archive; its own name when empty.

    Raises:
        NotFound: there is no such file.
        SystemFailure: something in the folder cannot be copied.
    """
    if not source.exists():
        raise NotFound(f"{source}: no such file or folder")
    if not source.is_dir():
        return [Entry(source, _checked(name or source.name, source), source.stat().st_size)]
    ignored = ignore_rule(source)
    return [
        entry
        for entry in _walk(source, PurePosixPath())
        if not ignored(f"{entry.name}/" if entry.is_folder else entry.name)
    ]  # a pattern may include again what another one ignores, so every folder is entered


def ignore_rule(folder: Path) -> Callable[[str], bool]:
    """Return whether a path in a folder is ignored, as a function; the path of a folder ends in a slash."""
    patterns = ["/.git/"]
    for file in (folder / name for name in IGNORE_FILES):
        if file.is_file():
            patterns += file.read_text(encoding="utf-8").splitlines()
            break
    return GitIgnoreSpec.from_lines(patterns).match_file


def _walk(folder: Path, below: PurePosixPath) -> Iterator[Entry]:
    with os.scandir(folder) as found:
        items = sorted(found, key=lambda item: item.name)
    for item in items:
        path, name = Path(item.path), str(below / item.name)
        if name == ".git":
            continue
        if item.is_dir(follow_symlinks=False):
            yield Entry(path, _checked(name, path), is_folder=True)
            yield from _walk(path, below / item.name)
        elif item.is_symlink() and not path.is_file():
            raise SystemFailure(f"{path}: a symbolic link to a folder, or to nothing, cannot be copied")
        elif stat.S_ISREG(item.stat().st_mode):
            yield Entry(path, _checked(name, path), item.stat().st_size)
        else:
            raise SystemFailure(f"{path}: only files and folders can be copied")


def _checked(name: str, path: Path) -> str:
    """Return a name; refuse one that a list of checksums cannot contain."""
    if "\n" in name or "\\" in name or not name.isprintable():
        raise SystemFailure(f"{path}: the name has a backslash or a control character", hint="rename it")
    return name


def write_archive(entries: list[Entry], checksums: dict[str, str], advance: Advance | None = None) -> Iterator[bytes]:
    """Yield a tar archive, in chunks.

    Args:
        entries: what it contains.
        checksums: receives the SHA-256 of each file by name.
        advance: receives the bytes of the files as they are read.

    Raises:
        SystemFailure: a file changed while it was read.
    """
    for entry in entries:
        info = tarfile.TarInfo(entry.name)
        info.mtime = int(entry.path.stat().st_mtime)
        if entry.is_folder:
            info.type, info.mode = tarfile.DIRTYPE, 0o775
            yield info.tobuf(tarfile.PAX_FORMAT)
            continue
        info.size = entry.size
        info.mode = mode_of(entry)
        yield info.tobuf(tarfile.PAX_FORMAT)
        yield from content_of(entry, checksums, advance)
        if entry.size % _BLOCK:
            yield bytes(_BLOCK - entry.size % _BLOCK)
    yield bytes(2 * _BLOCK)


def mode_of(entry: Entry) -> int:
    """Return the mode that a file gets in the volume: its group may write, and it is executable if it is here."""
    return 0o775 if entry.path.stat().st_mode & stat.S_IXUSR else 0o664


def content_of(
    entry: Entry, checksums: dict[str, str], advance: Advance | None = None, digest: Any = None, start: int = 0
) -> Iterator[bytes]:
    """Yield the content of a file, in chunks.

    Args:
        entry: the file.
        checksums: receives its SHA-256 by its name.
        advance: receives the bytes as they are read.
        digest: the SHA-256 of what comes before the start.
        start: offset of the first byte.

    Raises:
        SystemFailure: the file changed while it was read.
    """
    digest, left = digest or hashlib.sha256(), entry.size - start
    with entry.path.open("rb") as file:
        file.seek(start)
        while left:
            data = file.read(min(_CHUNK, left))
            if not data:
                break
            digest.update(data)
            left -= len(data)
            if advance is not None:
                advance(len(data))
            yield data
        if left or file.read(1):
            raise SystemFailure(f"{entry.path}: the file changed while it was copied", hint="copy it again")
    checksums[entry.name] = digest.hexdigest()


def digest_of_start(entry: Entry, size: int) -> Any:
    """Return the SHA-256 of the first bytes of a file, which takes more bytes."""
    digest, left = hashlib.sha256(), size
    with entry.path.open("rb") as file:
        while data := file.read(min(_CHUNK, left)):
            digest.update(data)
            left -= len(data)
    return digest


class Received(Struct):
    """What was read from an archive.

    Attributes:
        checksums: the SHA-256 of each file by its name in the archive.
        size: bytes of the files.
        links: number of links, which are not copied.
    """

    checksums: dict[str, str]
    size: int = 0
    links: int = 0


def read_archive(stream: IO[bytes], target: Callable[[str], Path], advance: Advance | None = None) -> Received:
    """Write the files and folders of an archive, and return what they are.

    Links are left out: a link could lead a later file to anywhere. A name that leads out of the archive is refused.

    Args:
        stream: the archive.
        target: returns where a name goes.
        advance: receives the bytes of the files as they are written.

    Raises:
        SystemFailure: the archive is damaged, or has a name that leads out of it.
    """
    found = Received({})
    try:
        with tarfile.open(fileobj=stream, mode="r|") as archive:
            for member in archive:
                _extract(archive, member, target, found, advance)
    except tarfile.TarError as error:
        raise SystemFailure(f"the archive is damaged: {error}") from None
    return found


def _extract(
    archive: tarfile.TarFile,
    member: tarfile.TarInfo,
    target: Callable[[str], Path],
    found: Received,
    advance: Advance | None,
) -> None:
    name = PurePosixPath(member.name)
    if name.is_absolute() or ".." in name.parts or "\0" in member.name:
        raise SystemFailure(f"the archive is refused: `{member.name}` leads out of it")
    path = target(str(name))
    if member.isdir():
        path.mkdir(parents=True, exist_ok=True)
        return
    content = archive.extractfile(member) if member.isreg() else None
    if content is None:
        found.links += 1
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    digest = hashlib.sha256()
    with path.open("wb") as file:
        while data := content.read(_CHUNK):
            file.write(data)
            digest.update(data)
            found.size += len(data)
            if advance is not None:
                advance(len(data))
    if member.mode & stat.S_IXUSR:
        path.chmod(path.stat().st_mode | stat.S_IXUSR)
    found.checksums[str(name)] = digest.hexdigest()
