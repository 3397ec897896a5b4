"""Concurrent and killed publications lose nothing and leave nothing half done."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from kaigen.diagnostics.errors import CheckFailed
from kaigen.output.index import INDEX_NAME
from kaigen.publish.results import BranchResult
from tests.unit.publish.clones import Clone, app
from tests.unit.publish.gitserver import Bare, GitServer

ROOT = Path(__file__).parents[3]
ROUNDS = 5
KILLS = 12
MakeClone = Callable[[str], Clone]


def together(*calls: Callable[[], object]) -> list[object]:
    """Return the results of calls that start at the same time."""
    with ThreadPoolExecutor(len(calls)) as pool:
        return [each.result(60) for each in [pool.submit(call) for call in calls]]


def test_two_clones_can_publish_at_the_same_time(make_clone: MakeClone, bare: Bare) -> None:
    clones = {name: make_clone(name) for name in ("clone", "other")}
    attempts = []
    for number in range(ROUNDS):
        for clone in clones.values():
            clone.commit(f"work {number}")

        def publish(name: str, version: str = str(number)) -> BranchResult:
            return clones[name].publish(app("qwen", version), path=name, environment=name)

        results = together(*(lambda name=name: publish(name) for name in clones))
        attempts += [result.attempts for result in results if isinstance(result, BranchResult)]
        assert len(attempts) == 2 * (number + 1)
        files = bare.files()
        assert [files[f"{name}/ml/qwen/manifests/job.yaml"] for name in clones] == [f"qwen {number}\n"] * 2
    assert len(bare.commits()) == 2 * ROUNDS
    assert max(attempts) > 1, "they never met"
    bare.git("fsck", "--strict")


def test_concurrent_publications_of_one_commit_make_one_commit(make_clone: MakeClone, bare: Bare) -> None:
    clones = [make_clone(name) for name in ("clone", "second", "third")]
    results = together(*(lambda clone=clone: clone.publish(app("qwen")) for clone in clones))
    statuses = sorted(result.status for result in results if isinstance(result, BranchResult))
    assert statuses == ["published", "unchanged", "unchanged"]
    assert bare.commits() == ["Render ml/qwen"]


def test_concurrent_publications_of_diverging_commits_keep_one_and_reject_the_other(
    make_clone: MakeClone, bare: Bare
) -> None:
    clones = {name: make_clone(name) for name in ("clone", "other")}
    for name, clone in clones.items():
        clone.commit(f"work of {name}")

    def publish(name: str) -> str:
        try:
            return clones[name].publish(app(name)).status
        except CheckFailed:
            return "refused"

    assert sorted(map(str, together(lambda: publish("clone"), lambda: publish("other")))) == ["published", "refused"]
    assert len(bare.commits()) == 1


@pytest.mark.parametrize("place", ["", "ai"], ids=["top", "subfolder"])
def test_concurrent_repetitions_of_old_pipelines_are_refused(make_clone: MakeClone, bare: Bare) -> None:
    newest = make_clone("clone")
    old = {}
    for number in range(2):
        old[f"{number}"] = make_clone(f"old-{number}")
        newest.commit(f"work {number}")
    newest.publish(app("qwen", "new"))

    def again(name: str) -> str:
        try:
            return old[name].publish(app("qwen", name)).status
        except CheckFailed as error:
            return str(error)

    for refusal in together(*(lambda name=name: again(name) for name in old)):
        assert "is not in this clone" in str(refusal)
    for clone in old.values():
        clone.git("fetch", "--quiet", str(newest.top), "main")
    for refusal in together(*(lambda name=name: again(name) for name in old)):
        assert "which is newer than" in str(refusal)
    assert bare.files()["rendered/ml/qwen/manifests/job.yaml"] == "qwen new\n"


def test_one_clone_can_publish_several_branches_at_the_same_time(clone: Clone, bare: Bare) -> None:
    branches = [f"env/{number}" for number in range(4)]
    before = clone.state()
    together(*(lambda branch=branch: clone.publish(app("qwen"), branch=branch, path="") for branch in branches))
    assert sorted(bare.branches()) == branches
    assert clone.state() == before


def test_a_killed_publication_leaves_the_branch_old_or_new(clone: Clone, bare: Bare, server: GitServer) -> None:
    rng = random.Random(20260102)
    clone.job("evaluate")
    clone.commit("two specs")

    def start() -> subprocess.Popen[bytes]:
        env = {**os.environ, "PYTHONPATH": str(ROOT), "TMPDIR": str(clone.folder.parent)}
        command = [sys.executable, "-m", "kaigen", "publish"]
        return subprocess.Popen(
            command, cwd=clone.folder, env=env, stderr=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True
        )

    begin = time.monotonic()
    process = start()
    _, said = process.communicate(timeout=60)
    took = time.monotonic() - begin
    assert process.returncode == 0, said.decode()
    killed = landed = 0
    for version in range(2, 2 + 3 * KILLS):
        if killed == KILLS:
            break
        clone.job("qwen", str(version))
        commit = clone.commit(f"version {version}")
        before, tip = clone.state(), bare.branches()["deploy"]
        begin = time.monotonic()
        process = start()
        try:
            # Mostly in the second half, where Git fetches, writes and pushes.
            process.wait(took * rng.uniform(0.45 if rng.random() < 0.8 else 0.0, 1.05))
            took = 0.9 * (time.monotonic() - begin)
        except subprocess.TimeoutExpired:
            # With the git that it has called, as when a machine goes down.
            os.killpg(process.pid, signal.SIGKILL)
            killed += 1
        process.communicate()
        after = bare.branches()["deploy"]
        if after != tip:
            landed += 1
            assert bare.git("rev-parse", "deploy^").strip() == tip
        assert f"Source-Commit: {commit}" in bare.message() or after == tip
        assert clone.state() == before
        bare.git("fsck", "--strict", "--connectivity-only")
        if rng.random() < 0.5:
            process = start()
            _, said = process.communicate(timeout=60)
            assert process.returncode == 0, said.decode()
            assert f"Source-Commit: {commit}" in bare.message()
    assert killed == KILLS
    process = start()
    process.communicate(timeout=60)
    assert process.returncode == 0
    assert f"Source-Commit: {commit}" in bare.message()
    assert set(bare.files()) >= {f"rendered/{INDEX_NAME}", "rendered/ml/evaluate/manifests/job.yaml"}
    bare.git("fsck", "--strict")
    clone.git("fsck", "--strict")
