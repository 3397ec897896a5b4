"""A writer killed at any moment leaves the old or the new tree, and the next writer cleans up."""

from __future__ import annotations

import os
import random
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

import pytest

from kaigen.output.tree import write_tree
from tests.unit.output.trees import (
    DIED,
    Snapshot,
    die_at,
    fork,
    in_child,
    leftovers,
    no_exchange,
    snapshot,
    write_files,
)

OLD = {
    "apps/llama/deployment.yaml": b"kind: Deployment\n",
    "apps/llama/service.yaml": b"kind: Service\n",
    "apps/phi/job.yaml": b"kind: Job\n",
    "gone/soon.yaml": b"old\n",
    "kustomization.yaml": b"resources: []\n",
}
ACROSS = {
    "apps/llama/deployment.yaml": b"kind: Deployment # new\n",
    "apps/llama/service.yaml": b"kind: Service\n",
    "apps/new/job.yaml": b"kind: Job\n",
    "kustomization.yaml": b"resources: [apps]\n",
}
INSIDE = {path: data + b"# new\n" if "llama" in path else data for path, data in OLD.items()}
ONE = {**OLD, "apps/phi/job.yaml": b"kind: Job # new\n"}
FOREIGN = {"README.md": b"mine", "apps/llama/notes.txt": b"mine too"}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "deploy"


def both(root: Path, old: dict[str, bytes], new: dict[str, bytes]) -> tuple[Snapshot, Snapshot]:
    """How the tree looks in either version; it is left in the old one, with files of others in it."""
    write_files(root, FOREIGN)
    write_tree(root, new)
    after = snapshot(root)
    write_tree(root, old)
    return snapshot(root), after


@pytest.mark.parametrize("torn", [False, True])
@pytest.mark.parametrize("new", [ACROSS, INSIDE, ONE, {}])
def test_a_write_killed_before_any_system_call_leaves_the_old_or_new_tree(
    root: Path, new: dict[str, bytes], torn: bool
) -> None:
    old_tree, new_tree = both(root, OLD, new)
    seen = []
    for number in range(10_000):

        def work(number: int = number) -> None:
            die_at(number, torn=torn)
            write_tree(root, new)

        code = in_child(work)
        assert code in (0, DIED)
        found = snapshot(root)
        assert found in (old_tree, new_tree)
        seen.append(found == new_tree)
        write_tree(root, OLD)
        assert snapshot(root) == old_tree
        assert leftovers(root.parent) == []
        if code == 0:
            break
    assert len(seen) > 5
    assert seen == sorted(seen)
    assert seen[0] is False
    assert seen[-1] is True


def test_a_killed_first_write_leaves_no_tree_or_the_whole_tree(root: Path) -> None:
    write_tree(root, OLD)
    whole = snapshot(root)
    write_tree(root, {})
    root.rmdir()
    code = DIED
    number = 0
    while code == DIED:

        def work(number: int = number) -> None:
            die_at(number)
            write_tree(root, OLD)

        code = in_child(work)
        assert not root.exists() or snapshot(root) == whole
        write_tree(root, OLD)
        assert snapshot(root) == whole
        assert leftovers(root.parent) == []
        write_tree(root, {})
        root.rmdir()
        number += 1
    assert (code, number > 20) == (0, True)


@pytest.mark.parametrize("new", [ACROSS, INSIDE])
def test_without_exchange_a_killed_write_may_leave_no_tree_until_the_next_write(
    root: Path, new: dict[str, bytes]
) -> None:
    old_tree, new_tree = both(root, OLD, new)
    changes = root / "apps/llama" if new is INSIDE else root
    missing = 0
    with no_exchange():
        for number in range(10_000):

            def work(number: int = number) -> None:
                die_at(number)
                write_tree(root, new)

            code = in_child(work)
            if changes.exists():
                assert snapshot(root) in (old_tree, new_tree)
            else:
                missing += 1
                # The first step of the next write, before it looks at the tree, is to finish the last one.
                assert write_tree(root, new).is_empty
                assert snapshot(root) == new_tree
            write_tree(root, OLD)
            assert snapshot(root) == old_tree
            assert leftovers(root.parent) == []
            if code == 0:
                break
    assert missing == 1


def test_git_ignores_an_unfinished_staging_directory(root: Path) -> None:
    import subprocess

    both(root, OLD, ACROSS)
    subprocess.run(["git", "init", "-q", "."], cwd=root.parent, check=True)
    subprocess.run(["git", "add", "-A"], cwd=root.parent, check=True)

    def work() -> None:
        die_at(12)
        write_tree(root, ACROSS)

    assert in_child(work) == DIED
    assert leftovers(root.parent) != []
    command = ["git", "status", "--porcelain", "--untracked-files=all"]
    status = subprocess.run(command, cwd=root.parent, check=True, capture_output=True, text=True).stdout
    assert [line for line in status.splitlines() if not line.startswith("A ")] == []


def writer(root: Path, versions: list[dict[str, bytes]], ready: int) -> Callable[[], None]:
    def work() -> None:
        while True:
            for version in versions:
                write_tree(root, version)
                os.write(ready, b".")

    return work


@pytest.mark.parametrize("forced", [nullcontext, no_exchange])
@pytest.mark.parametrize("seed", range(2))
def test_sigkill_at_a_random_moment_leaves_the_old_or_new_tree(
    root: Path, seed: int, forced: Callable[[], AbstractContextManager[None]]
) -> None:
    chance = random.Random(seed)
    bulk = {f"bulk/{n % 7}/{n}.yaml": b"%d" % n for n in range(60)}
    versions = [{**OLD, **bulk}, {**ACROSS, **{path: data + b"!" for path, data in bulk.items()}}]
    trees = both(root, *versions)
    for _ in range(25):
        read, write = os.pipe()
        with forced():
            child = fork(writer(root, versions, write))
        try:
            os.read(read, 1)
            time.sleep(chance.uniform(0, 0.012))
        finally:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            os.close(read)
            os.close(write)
        if forced is nullcontext or root.exists():
            assert snapshot(root) in trees
        version = chance.choice((0, 1))
        write_tree(root, versions[version])
        assert snapshot(root) == trees[version]
        assert leftovers(root.parent) == []


@pytest.fixture
def reader_pipe() -> Iterator[tuple[int, int]]:
    read, write = os.pipe()
    yield read, write
    os.close(read)
    os.close(write)


def test_a_reader_never_sees_a_mixed_tree(root: Path, reader_pipe: tuple[int, int]) -> None:
    files = [{f"{n % 5}/{n}": b"%d" % version for n in range(30)} for version in (0, 1)]
    write_tree(root, files[0])
    read, write = reader_pipe
    child = fork(writer(root, files, write))
    try:
        met = set()
        os.read(read, 1)
        until = time.monotonic() + 0.5
        while time.monotonic() < until:
            # One open descriptor is one state of the tree, old or new, until its files are cleared away.
            directory = os.open(root, os.O_RDONLY)
            try:
                found = []
                for n in range(30):
                    file = os.open(f"{n % 5}/{n}", os.O_RDONLY, dir_fd=directory)
                    found.append(os.read(file, 10))
                    os.close(file)
            except FileNotFoundError:
                continue
            finally:
                os.close(directory)
            assert len(set(found)) == 1
            met.add(found[0])
        assert met == {b"0", b"1"}
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
