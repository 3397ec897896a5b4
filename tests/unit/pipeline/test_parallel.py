"""Work on several cores gives the same result as on one, even if a process dies."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent.parent

PRELUDE = """\
import os, signal, sys
os.sched_getaffinity = lambda process: {0, 1, 2}  # as on a machine of three cores
from kaigen.system.parallel import map_on_cores
parent = os.getpid()
"""

SPEC = """\
apiVersion: kaigen.dev/v1alpha1
kind: {kind}
metadata:
  name: app-{number:03}
spec:
  {spec}
"""


def python(code: str, *, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Run a program in a process of its own, which has no threads."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "KAIGEN_CACHE_DIR": str((cwd or ROOT) / ".cache")}
    return subprocess.run(
        [sys.executable, "-c", PRELUDE + code], env=environment, cwd=cwd, capture_output=True, text=True, check=False
    )


def test_results_come_in_the_order_of_the_items_from_all_processes() -> None:
    done = python(
        "found = map_on_cores(lambda item: (item, os.getpid()), range(1000))\n"
        "assert [item for item, _ in found] == list(range(1000))\n"
        "assert len({process for _, process in found}) == 3\n"
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    "reason",
    [
        "items = range(150)",
        "import threading; threading.Thread(target=threading.Event().wait, daemon=True).start()",
        "os.sched_getaffinity = lambda process: {0}",
    ],
    ids=["few items", "another thread", "one core"],
)
def test_one_process_does_it_all_where_more_would_not_pay_or_not_be_safe(reason: str) -> None:
    done = python(
        f"items = range(1000)\n{reason}\nassert {{os.getpid()}} == set(map_on_cores(lambda item: os.getpid(), items))\n"
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    "end",
    ["os.kill(os.getpid(), signal.SIGKILL)", "sys.exit(0)", "raise MemoryError", "return lambda: None"],
    ids=["killed", "exits", "raises", "cannot say"],
)
def test_a_share_whose_process_does_not_finish_is_done_here(end: str) -> None:
    done = python(
        "def work(item):\n"
        f"    if item == 700 and os.getpid() != parent: {end}\n"
        "    return item\n"
        "assert map_on_cores(work, range(1000)) == list(range(1000))\n"
        "try: os.wait()\n"
        "except ChildProcessError: pass\n"
        "else: assert False, 'a child is left'\n"
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("item", [0, 1, 3, 998])
def test_an_error_is_raised_here_whichever_process_meets_it(item: int) -> None:
    done = python(f"map_on_cores(lambda item: 1 // (item - {item}), range(1000))")
    assert done.stderr.rstrip().endswith("ZeroDivisionError: integer division or modulo by zero")
    assert done.stderr.count("Traceback") == 1


def test_one_process_does_it_all_when_there_is_no_room_for_more() -> None:
    done = python(
        "def fork(): raise BlockingIOError(11, 'no room')\n"
        "os.fork = fork\n"
        "assert map_on_cores(lambda item: os.getpid(), range(1000)) == [parent] * 1000\n"
    )
    assert done.returncode == 0, done.stderr


def test_what_is_left_of_a_killed_run_ends(tmp_path: Path) -> None:
    done = python(
        "def work(item):\n"
        "    if item == 0: return item\n"
        "    if os.getpid() == parent: os.kill(parent, signal.SIGKILL)\n"
        "    open(str(os.getpid()), 'w').close()\n"
        "    return b'x' * 10_000\n"
        "map_on_cores(work, range(1000))\n",
        cwd=tmp_path,
    )
    assert done.returncode == -signal.SIGKILL
    until = time.monotonic() + 10
    while alive := [path.name for path in tmp_path.iterdir() if (Path("/proc") / path.name / "exe").exists()]:
        assert time.monotonic() < until, alive
        time.sleep(0.02)


def render(folder: Path, cores: int) -> tuple[int, str, dict[str, bytes]]:
    """Render a repository on so many cores: exit code, what was said, and the tree."""
    done = python(
        f"os.sched_getaffinity = lambda process: set(range({cores}))\n"
        "forks, fork = [], os.fork\n"
        "os.fork = lambda: forks.append(1) or fork()\n"
        "from kaigen.cli.main import run\n"
        "code = run(['render', '--format', 'both'])\n"
        f"assert len(forks) == {cores} - 1\n"
        "sys.exit(code)\n",
        cwd=folder,
    )
    assert "Traceback" not in done.stderr, done.stderr
    output = folder / "rendered"
    files = {str(path.relative_to(output)): path.read_bytes() for path in output.rglob("*") if path.is_file()}
    return done.returncode, done.stdout + done.stderr, files


@pytest.fixture
def repositories(tmp_path: Path) -> list[Path]:
    """Create two equal repositories: Jobs that refer to Models, some with warnings."""
    folders = [tmp_path / name / "repository" for name in ("one", "three")]
    for folder in folders:
        (folder / "specs").mkdir(parents=True)
        (folder / "kaigen.yaml").write_text("apiVersion: kaigen.dev/v1alpha1\nkind: Config\n")
        for number in range(400):
            model = number % 2
            spec = (
                "{source: {huggingFace: {repo: a/b}}, store: {volume: {size: 1Gi}}}"
                if model
                else f"{{image: i, model: app-{number + 1:03}}}"
            )
            text = SPEC.format(kind="Model" if model else "Job", number=number, spec=spec)
            (folder / "specs" / f"{number:03}.yaml").write_text(text)
    return folders


def test_a_render_on_three_cores_writes_and_prints_the_same_as_on_one(repositories: list[Path]) -> None:
    one, three = (render(folder, cores) for folder, cores in zip(repositories, (1, 3), strict=True))
    assert one[0] == 0
    assert len(one[2]) > 4000
    assert one == three


def test_a_mistake_is_reported_the_same_on_three_cores_as_on_one(repositories: list[Path]) -> None:
    for folder in repositories:
        for number in (6, 8, 250):
            path = folder / "specs" / f"{number:03}.yaml"
            path.write_text(path.read_text().replace("{image: i", "{image: i, placement: {spot: true}"))
    one, three = (render(folder, cores) for folder, cores in zip(repositories, (1, 3), strict=True))
    assert one[0] == 2
    assert one[1].count("KG0308") == 3
    assert one == three
