"""The local folder of a synchronization, and the record of what both sides had last."""

from __future__ import annotations

import errno
import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path, PurePosixPath

from kaigen.contexts.folder import IGNORE_FILE as DOCKER_IGNORE
from kaigen.contexts.folder import read_rules
from kaigen.diagnostics.errors import SystemFailure
from kaigen.ops.archive import IGNORE_FILES, ignore_rule
from kaigen.ops.folder_sync import Base, digest_of

MOST_BYTES = 100 * 1024 * 1024
"""Size of the largest file that is copied: Jupyter reads and writes a file in memory."""
RECORDS = ".kaigen-notebook"
"""Folder with the record, in the synchronized folder."""

_NO_LINKS = {errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS}


class LocalFolder:
    """The files of a folder, without hidden, ignored and large ones and symbolic links.

    Attributes:
        skipped: paths of files that are too large.
    """

    def __init__(self, root: Path) -> None:
        self._root = root
        self._known: dict[str, tuple[tuple[int, int, int], str]] = {}
        self.skipped: set[str] = set()

    def ignores(self) -> Callable[[str], bool]:
        """Return whether a path is not synchronized, as a function; the path of a folder ends in a slash.

        Raises:
            InputError: the folder's `.dockerignore` cannot be read.
        """
        rule, docker = ignore_rule(self._root), _docker_rule(self._root)

        def ignored(path: str) -> bool:
            parts = path.rstrip("/").split("/")
            parents = ("/".join(parts[:count]) + "/" for count in range(1, len(parts)))
            return not _plain(parts) or any(map(rule, parents)) or rule(path) or docker(path)

        return ignored

    def digests(self) -> dict[str, str]:
        """Return the SHA-256 of each file by its path."""
        ignored = self.ignores()
        found: dict[str, str] = {}
        known: dict[str, tuple[tuple[int, int, int], str]] = {}
        self.skipped = set()
        for path, state in self._walk(self._root, PurePosixPath(), ignored):
            if state.st_size > MOST_BYTES:
                self.skipped.add(path)
                continue
            mark = (state.st_size, state.st_mtime_ns, state.st_ino)
            before = self._known.get(path)
            digest = before[1] if before and before[0] == mark else digest_of(self.read(path))
            known[path] = (mark, digest)
            found[path] = digest
        self._known = known
        return found

    def _walk(
        self, folder: Path, below: PurePosixPath, ignored: Callable[[str], bool]
    ) -> Iterator[tuple[str, os.stat_result]]:
        with os.scandir(folder) as entries:
            items = sorted(entries, key=lambda item: item.name)
        for item in items:
            path = str(below / item.name)
            if item.is_dir(follow_symlinks=False):
                if not ignored(f"{path}/"):
                    yield from self._walk(Path(item.path), below / item.name, ignored)
            elif item.is_file(follow_symlinks=False) and not ignored(path):
                yield path, item.stat(follow_symlinks=False)

    def read(self, path: str) -> bytes:
        """Return the content of a file."""
        return (self._root / path).read_bytes()

    def write(self, path: str, data: bytes, expected: str | None) -> bool:
        """Write a file if it still has the expected hash, or does not exist if that is None."""
        if self.ignores()(path):
            return False
        target = self._parent(path) / PurePosixPath(path).name
        if not _has(target, expected):
            return False
        descriptor, name = tempfile.mkstemp(dir=target.parent, prefix=".kaigen-")
        try:
            with open(descriptor, "wb") as file:
                file.write(data)
            if expected is None:
                os.chmod(name, 0o666 & ~_umask())
                return _link(name, target)
            shutil.copymode(target, name)
            if not _has(target, expected):
                return False
            os.replace(name, target)
            return True
        finally:
            with suppress(FileNotFoundError):
                os.unlink(name)

    def _parent(self, path: str) -> Path:
        """Return the folder of a path, and create it; a symbolic link must not lead out of the root."""
        folder = self._root
        for part in PurePosixPath(path).parent.parts:
            folder = folder / part
            if folder.is_symlink() or (folder.exists() and not folder.is_dir()):
                raise SystemFailure(f"{folder} is not a folder", hint="rename it, or ignore its name")
            folder.mkdir(exist_ok=True)
        return folder


def _docker_rule(root: Path) -> Callable[[str], bool]:
    """Return whether `.dockerignore` excludes a path of a folder, as a function; nothing next to a `.kaigenignore`."""
    file = root / DOCKER_IGNORE
    if (root / IGNORE_FILES[0]).is_file() or not file.is_file():
        return lambda _: False
    rules = read_rules(file)

    def excluded(path: str) -> bool:
        found, name = rules.top, path.rstrip("/")
        parts = name.split("/")
        for count in range(1, len(parts) + 1):
            found = rules.of("/".join(parts[:count]), found)
        return found.ignored and not (path.endswith("/") and rules.may_include_below(name))

    return excluded


class Record:
    """What both sides had last, in a file of the synchronized folder.

    Attributes:
        base: the hash of each file.
    """

    def __init__(self, root: Path, name: str, volume: str) -> None:
        """Read the file; a record of another volume does not count.

        Args:
            root: the synchronized folder.
            name: name of the record.
            volume: UID of the claim with the files of the notebook.
        """
        self._path, self._volume = root / RECORDS / f"{name}.json", volume
        self.base: Base = {}
        with suppress(FileNotFoundError, ValueError, KeyError, TypeError, AttributeError):
            stored = json.loads(self._path.read_text(encoding="utf-8"))
            if stored["volume"] == volume:
                self.base = {str(path): str(digest) for path, digest in stored["files"].items()}

    def save(self) -> None:
        """Write the file."""
        self._path.parent.mkdir(exist_ok=True)
        (self._path.parent / ".gitignore").write_text("*\n", encoding="utf-8")
        text = json.dumps({"volume": self._volume, "files": self.base}, indent=1, sort_keys=True)
        scratch = self._path.with_suffix(".tmp")
        scratch.write_text(f"{text}\n", encoding="utf-8")
        scratch.replace(self._path)


def _plain(parts: list[str]) -> bool:
    """Return whether names are usable on both sides: not hidden, and no way out of the folder."""
    return all(part and not part.startswith(".") and "\\" not in part and part.isprintable() for part in parts)


def _has(target: Path, expected: str | None) -> bool:
    if expected is None:
        return not os.path.lexists(target)
    return target.is_file() and not target.is_symlink() and digest_of(target.read_bytes()) == expected


def _link(name: str, target: Path) -> bool:
    """Give a file its name unless the name is taken, and return whether it was free."""
    try:
        os.link(name, target)
    except FileExistsError:
        return False
    except OSError as error:
        if error.errno not in _NO_LINKS or os.path.lexists(target):
            raise
        os.rename(name, target)
    return True


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
