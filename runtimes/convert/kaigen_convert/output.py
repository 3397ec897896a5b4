"""The folder of the result: files under temporary names, checked, then renamed, and the marker last."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from kaigen_convert.errors import NoSpace, NotWritten, explain
from kaigen_convert.marker import PATH, STATE
from kaigen_convert.text import say, size

_PARTS = f"{STATE}/partial"
"""Folder of unfinished files: kaigen-downloader, which removes old revisions, empties it too."""
_OWNED = f"{STATE}/owned.json"
_SPARE = 4 << 20
_EVERY = 10.0


@contextlib.contextmanager
def opened(folder: Path) -> Iterator[Output]:
    """Return the folder while this process is its only writer.

    Raises:
        Failure: it cannot be written.
    """
    state = folder / STATE
    try:
        state.mkdir(parents=True, exist_ok=True)
        lock = os.open(state / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    except OSError as error:
        raise explain(error, str(folder)) from None
    try:
        _wait_for(lock)
        yield Output(folder)
    except OSError as error:
        raise explain(error, str(folder)) from None
    finally:
        os.close(lock)


def _wait_for(lock: int) -> None:
    """Lock a file. The kernel frees it when its owner dies."""
    printed = False
    while True:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if not printed:
                say("another conversion writes to this folder, waiting for it")
            printed = True
            time.sleep(0.2)
        except OSError as error:
            say(f"warning: this file system has no locks ({error.strerror}): run one conversion only")
            return
        else:
            return


class Output:
    """A folder for the result of one conversion."""

    def __init__(self, folder: Path) -> None:
        """Initialize with a folder that exists."""
        self._folder = folder
        self._parts = folder / _PARTS
        self._owned = folder / _OWNED

    def clear(self, names: Sequence[str]) -> None:
        """Remove what an earlier run has left: the marker first, so that no pod uses the files.

        The names are recorded, so that kaigen-downloader can remove an unfinished result with its revision.
        """
        (self._folder / PATH).unlink(missing_ok=True)
        self._parts.mkdir(exist_ok=True)
        self._owned.write_text(json.dumps(sorted(names)))
        for path in (*(self._folder / name for name in names), *self._parts.iterdir()):
            path.unlink(missing_ok=True)
        _sync(self._folder)

    def check_space(self, needed: int) -> None:
        """Compare the needed bytes with the free ones.

        Raises:
            NoSpace: they do not fit.
        """
        found = os.statvfs(self._folder)
        free = found.f_bavail * found.f_frsize
        if needed + _SPARE > free:
            raise NoSpace(f"{self._folder} has {size(free)} left, and {size(needed + _SPARE)} are needed")

    def write(self, name: str, pieces: Iterable[bytes], expected: int) -> str:
        """Write a file under a temporary name, and rename it when it has the expected size.

        Args:
            name: of the file.
            pieces: its content.
            expected: its size in bytes.

        Returns:
            The sha256 in hex.

        Raises:
            NotWritten: it has another size.
        """
        part, digest, done, printed = self._parts / name, hashlib.sha256(), 0, time.monotonic()
        with part.open("wb", buffering=0) as file:
            for piece in pieces:
                view = memoryview(piece)
                while view:
                    view = view[file.write(view) :]
                digest.update(piece)
                done += len(piece)
                if time.monotonic() - printed >= _EVERY:
                    say(f"{name}: {size(done)} of {size(expected)}")
                    printed = time.monotonic()
            os.fchmod(file.fileno(), 0o644)
            os.fsync(file.fileno())
            found = os.fstat(file.fileno()).st_size
        if found != expected or done != expected:
            part.unlink()
            raise NotWritten(f"{name} has {found} bytes instead of {expected}")
        part.rename(self._folder / name)
        _sync(self._folder)
        return digest.hexdigest()

    def mark(self, content: bytes) -> None:
        """Write the marker."""
        part = self._parts / "model.json"
        with part.open("wb") as file:
            file.write(content)
            file.flush()
            os.fchmod(file.fileno(), 0o644)
            os.fsync(file.fileno())
        part.rename(self._folder / PATH)
        self._owned.unlink()
        self._parts.rmdir()
        _sync(self._folder / STATE)


def _sync(folder: Path) -> None:
    """Make names durable, where the file system can."""
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        with contextlib.suppress(OSError):
            os.fsync(fd)
    finally:
        os.close(fd)
