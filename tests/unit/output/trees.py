"""Helpers for the tests of the output tree: directory snapshots, and child processes that may be killed."""

from __future__ import annotations

import os
import stat
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from kaigen.output import replacement
from kaigen.output.changeset import read_index
from kaigen.output.index import INDEX_NAME
from kaigen.output.root import resolve_root

Snapshot = dict[str, tuple[str, bytes, int]]


def snapshot(root: Path) -> Snapshot:
    """Return every entry below a directory: kind, content or link target, and permission bits."""
    found: Snapshot = {}
    for above, directories, files in os.walk(root):
        for name in directories + files:
            path = Path(above, name)
            mode = path.lstat().st_mode
            if stat.S_ISLNK(mode):
                entry = ("link", os.readlink(path).encode(), 0)
            elif stat.S_ISDIR(mode):
                entry = ("directory", b"", stat.S_IMODE(mode))
            elif stat.S_ISREG(mode):
                entry = ("file", path.read_bytes(), stat.S_IMODE(mode))
            else:
                entry = ("special", b"", stat.S_IMODE(mode))
            found[path.relative_to(root).as_posix()] = entry
    return found


def contents(root: Path) -> dict[str, bytes]:
    """Return the regular files below a directory, without kaigen's index."""
    return {path: data for path, (kind, data, _) in snapshot(root).items() if kind == "file" and path != INDEX_NAME}


def read_tree(root: Path) -> dict[str, bytes]:
    """Return the files of a tree that kaigen wrote, without the index, sorted by path.

    Owned paths that are no longer regular files in plain directories are skipped.
    """
    files = snapshot(root) if root.exists() else {}
    owned, _ = read_index(resolve_root(root))
    return {path: files[path][1] for path in sorted(owned) if files.get(path, ("",))[0] == "file"}


def write_files(root: Path, files: dict[str, bytes]) -> None:
    """Write files without kaigen."""
    for path, data in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_bytes(data)


def leftovers(directory: Path) -> list[str]:
    """Return the temporary files of kaigen in a directory."""
    return sorted(name for name in os.listdir(directory) if name.startswith(".kaigen-"))


def fork(work: Callable[[], object]) -> int:
    """Start a child process that runs `work` and exits, and return its process id."""
    child = os.fork()
    if child:
        return child
    try:
        work()
        os._exit(0)
    except BaseException:
        traceback.print_exc()
        sys.stderr.flush()
    finally:
        os._exit(70)


def in_child(work: Callable[[], object]) -> int:
    """Run `work` in a child process and return its exit code, 70 after an exception."""
    return os.waitstatus_to_exitcode(os.waitpid(fork(work), 0)[1])


def unprivileged(work: Callable[[], object]) -> int:
    """Run `work` like `in_child`, but never as root, who ignores permissions."""

    def drop_and_work() -> None:
        if os.geteuid() == 0:
            os.setgroups([])
            os.setgid(65534)
            os.setuid(65534)
        work()

    return in_child(drop_and_work)


DIED = 99
_CALLS = ("mkdir", "rename", "link", "unlink", "rmdir", "open", "write", "chmod", "fchmod", "chown", "utime")


def die_at(number: int, *, torn: bool = False) -> None:
    """End this process before its `number`-th system call that changes the file system, counted from 0.

    It ends without cleanup, like SIGKILL. With `torn`, a write at that point writes half of its data first.
    """
    count = 0

    def step(*arguments: object, name: str = "") -> None:
        nonlocal count
        if name == "open" and not int(str(arguments[1])) & os.O_CREAT:
            return
        if count == number:
            if torn and name == "write":
                data = memoryview(arguments[1])  # type: ignore[arg-type]
                real["write"](arguments[0], data[: len(data) // 2])
            os._exit(DIED)
        count += 1

    real: dict[str, Callable[..., object]] = {name: getattr(os, name) for name in _CALLS}
    real["exchange"] = replacement.exchange

    def wrap(name: str) -> Callable[..., object]:
        def call(*arguments: object, **options: object) -> object:
            step(*arguments, name=name)
            return real[name](*arguments, **options)

        return call

    for name in _CALLS:
        setattr(os, name, wrap(name))
    replacement.exchange = wrap("exchange")  # type: ignore[assignment]


@contextmanager
def no_exchange() -> Iterator[None]:
    """A file system that cannot swap two directories."""
    import errno

    def refuse(*_: object) -> None:
        raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))

    real = replacement.exchange
    replacement.exchange = refuse  # type: ignore[assignment]
    try:
        yield
    finally:
        replacement.exchange = real


def at_the_swap(monkeypatch: pytest.MonkeyPatch, work: Callable[[], object]) -> None:
    """Run `work` right before the new tree is swapped in."""
    real = replacement.exchange

    def late(first: int, first_name: str, second: int, second_name: str) -> None:
        monkeypatch.setattr(replacement, "exchange", real)
        work()
        real(first, first_name, second, second_name)

    monkeypatch.setattr(replacement, "exchange", late)
