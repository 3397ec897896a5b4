"""Concurrent writers wait for each other, or fail with an error that names the directory."""

from __future__ import annotations

import errno
import fcntl
import os
import signal
import stat
import threading
import time
from pathlib import Path

import pytest

from kaigen.diagnostics.errors import SystemFailure
from kaigen.output.index import INDEX_NAME
from kaigen.output.tree import plan_tree, write_tree
from tests.unit.output.trees import contents, fork, in_child, leftovers, read_tree


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "deploy"


def versions(count: int) -> list[dict[str, bytes]]:
    return [{f"{n % 4}/{n + v}": b"%d" % v for n in range(20)} for v in range(count)]


def race(root: Path) -> None:
    """Two processes write different trees, many times, into the same place."""

    def work(files: dict[str, bytes]) -> None:
        for _ in range(15):
            write_tree(root, files)

    two = versions(2)
    children = [fork(lambda files=files: work(files)) for files in two]  # type: ignore[misc]
    assert [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children] == [0, 0]
    assert contents(root) == read_tree(root)
    assert read_tree(root) in two
    assert leftovers(root.parent) == []


def test_two_processes_write_one_after_the_other(root: Path) -> None:
    race(root)


def test_two_threads_write_one_after_the_other(root: Path) -> None:
    two = versions(2)
    threads = [threading.Thread(target=lambda f=f: [write_tree(root, f) for _ in range(15)]) for f in two]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert contents(root) == read_tree(root)
    assert read_tree(root) in two


def test_a_second_writer_waits_and_then_fails(root: Path) -> None:
    holder = os.open(root.parent, os.O_RDONLY)
    fcntl.flock(holder, fcntl.LOCK_EX)
    start = time.monotonic()
    with pytest.raises(SystemFailure, match=r"another kaigen process has been writing in .* for 0\.05 s") as caught:
        write_tree(root, {"a": b""}, wait_s=0.05)
    assert 0.05 <= time.monotonic() - start < 2
    assert caught.value.exit_code == 3
    assert caught.value.hint
    assert not root.exists()
    assert plan_tree(root, {"a": b""}).added == (INDEX_NAME, "a")
    threading.Timer(0.05, os.close, (holder,)).start()
    write_tree(root, {"a": b""}, wait_s=5)
    assert read_tree(root) == {"a": b""}


def test_no_lock_file_stays_and_a_killed_writer_does_not_block(root: Path) -> None:
    ready, go = os.pipe()

    def work() -> None:
        descriptor = os.open(root.parent, os.O_RDONLY)
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        os.write(go, b".")
        signal.pause()

    child = fork(work)
    os.read(ready, 1)
    with pytest.raises(SystemFailure):
        write_tree(root, {"a": b""}, wait_s=0)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    write_tree(root, {"a": b""}, wait_s=0)
    assert os.listdir(root.parent) == ["deploy"]
    os.close(ready)
    os.close(go)


@pytest.fixture
def no_locks_on_directories(monkeypatch: pytest.MonkeyPatch) -> None:
    """As on NFS, where a directory cannot be locked but a file can."""
    real = fcntl.flock

    def flock(descriptor: int, operation: int) -> None:
        if stat.S_ISDIR(os.fstat(descriptor).st_mode):
            raise OSError(errno.EBADF, os.strerror(errno.EBADF))
        real(descriptor, operation)

    monkeypatch.setattr(fcntl, "flock", flock)


@pytest.mark.usefixtures("no_locks_on_directories")
def test_a_temporary_lock_file_replaces_an_unsupported_directory_lock(root: Path) -> None:
    race(root)


@pytest.mark.usefixtures("no_locks_on_directories")
def test_only_the_lock_file_of_a_killed_run_is_taken_over(root: Path) -> None:
    lock = root.parent / ".kaigen-staging-lock"
    lock.touch()
    write_tree(root, {"a": b""}, wait_s=0)
    assert leftovers(root.parent) == []
    with lock.open("w") as file:
        fcntl.flock(file.fileno(), fcntl.LOCK_EX)
        with pytest.raises(SystemFailure, match="another kaigen"):
            write_tree(root, {"b": b""}, wait_s=0)
    write_tree(root, {"b": b""}, wait_s=0)


def test_kaigen_does_not_write_where_nothing_can_be_locked(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def flock(*_: object) -> None:
        raise OSError(errno.ENOTSUP, os.strerror(errno.ENOTSUP))

    monkeypatch.setattr(fcntl, "flock", flock)
    with pytest.raises(SystemFailure, match="cannot lock files"):
        write_tree(root, {"a": b""})
    assert not root.exists()


def test_sibling_trees_do_not_remove_each_others_staging(root: Path) -> None:
    def work() -> None:
        for n in range(20):
            write_tree(root.parent / "other", {f"{n}": b"", "x": b"%d" % n})

    child = fork(work)
    for n in range(20):
        write_tree(root, {f"{n}": b"", "x": b"%d" % n})
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert read_tree(root) == read_tree(root.parent / "other") == {"19": b"", "x": b"19"}


def test_leftovers_of_another_user_are_not_removed(root: Path) -> None:
    theirs = root.parent / ".kaigen-staging-0123456789abcdef"
    theirs.mkdir()
    if os.geteuid() == 0:
        os.chown(theirs, 12345, 12345)

        def work() -> None:
            write_tree(root, {"a": b""})

        assert in_child(work) == 0
        assert theirs.exists()
        os.chown(theirs, 0, 0)
    write_tree(root, {"a": b"2"})
    assert not theirs.exists()
