"""`kaigen render` that is killed at any moment leaves the old tree or the new one, and the next one heals."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from unittest import mock

import pytest

from kaigen.cli.main import run

ROOT = Path(__file__).parent.parent.parent.parent
SPECS = 60
KILLS = 25

SPEC = """\
apiVersion: kaigen.dev/v1alpha1
kind: Job
metadata:
  name: app-{number:02}
spec:
  image: python:3.12-slim
  command: [python, train.py, "{version}"]
  params: {{version: "{version}"}}
"""


class Repository:
    """A repository of many specs, rendered in processes of their own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.output = folder / "rendered"
        self.environment = {
            **{name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"},
            "PYTHONPATH": str(ROOT),
            "KAIGEN_CACHE_DIR": str(folder.parent / "cache"),
        }
        (folder / "specs").mkdir(parents=True)

    def say(self, version: str, *, only: int | None = None) -> None:
        """Write every spec, or a single one, of a version."""
        for number in range(SPECS) if only is None else [only]:
            path = self.folder / "specs" / f"app-{number:02}.yaml"
            path.write_text(SPEC.format(number=number, version=version), encoding="utf-8")

    def start(self, *options: str) -> subprocess.Popen[bytes]:
        """Begin a render."""
        command = [sys.executable, "-m", "kaigen", "-q", "render", *options]
        return subprocess.Popen(command, cwd=self.folder, env=self.environment, stderr=subprocess.PIPE)

    def render(self, *options: str) -> None:
        """Render to the end, in this process."""
        with contextlib.chdir(self.folder), mock.patch.dict(os.environ, self.environment):
            assert run(["-q", "render", *options]) == 0

    def time(self) -> float:
        """How long a render in its own process takes, in seconds."""
        begin = time.monotonic()
        process = self.start()
        _, said = process.communicate(timeout=60)
        assert process.returncode == 0, said.decode()
        return time.monotonic() - begin

    def tree(self, output: Path | None = None) -> dict[str, bytes]:
        """Every file of the output."""
        root = output or self.output
        return {path.relative_to(root).as_posix(): path.read_bytes() for path in root.rglob("*") if path.is_file()}

    def entries(self) -> set[str]:
        """Return the names in the repository's root."""
        return {path.name for path in self.folder.iterdir()}


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Repository:
    made = Repository(tmp_path_factory.mktemp("kill") / "repository")
    made.say("0")
    made.render()
    return made


def moment(rng: random.Random, took: float) -> float:
    """When to kill, in seconds: mostly late, where files are written and renamed."""
    return took * (rng.uniform(0.5, 1.05) if rng.random() < 0.8 else rng.uniform(0.0, 0.5))


def test_a_killed_render_leaves_the_old_tree_or_the_new_one(repository: Repository) -> None:
    rng = random.Random(20260101)
    # How long a render of changed specs takes here, so that the moments are spread over all of it.
    repository.say("warm")
    took = repository.time()
    killed = finished = old = new = 0
    for version in range(1, KILLS * 3):
        if killed == KILLS:
            break
        before = repository.tree()
        # All specs, or one of them: the tree is swapped as a whole, or only the app's folder.
        only = rng.choice([None, None, rng.randrange(SPECS)])
        repository.say(str(version), only=only)
        begin = time.monotonic()
        process = repository.start()
        try:
            process.wait(moment(rng, took))
            finished += 1
            took = 0.95 * (time.monotonic() - begin)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
            killed += 1
            took *= 1.02
        process.communicate()
        assert process.returncode in {0, -signal.SIGKILL}
        between = repository.tree()
        repository.render()
        healed = repository.tree()
        assert between in (before, healed), differences(between, before, healed)
        old, new = old + (between == before), new + (between == healed)
        assert repository.entries() == {"specs", "rendered"}
    assert killed == KILLS, f"{finished} renders ended before they were killed"
    assert old + new == killed + finished
    assert old > 0
    # The cache was written and read by killed and whole renders alike.
    repository.render("--no-cache", "-o", str(repository.folder.parent / "full"))
    assert repository.tree() == repository.tree(repository.folder.parent / "full")
    repository.render("--check", "--no-cache")


def differences(between: dict[str, bytes], before: dict[str, bytes], after: dict[str, bytes]) -> str:
    """Return which tree each file belongs to, for a message."""
    lines = []
    for path in sorted({*between, *before, *after}):
        if before.get(path) != after.get(path):
            which = [name for name, other in (("old", before), ("new", after)) if between.get(path) == other.get(path)]
            lines.append(f"{path}: {which or 'neither'}")
    return "\n".join(lines)
