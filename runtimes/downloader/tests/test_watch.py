"""`wait` and `verify`."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path

import pytest
from hub import Hub
from runs import ID, PACKAGE, Done, Runner, finish, start, until


@pytest.fixture
def complete(hub: Hub, run: Runner, dest: Path) -> Path:
    assert run.fetch(hub, dest).code == 0
    return dest


def test_wait_returns_at_once_when_the_model_is_there(run: Runner, complete: Path) -> None:
    done = run("wait", "--dest", str(complete), "--identity", ID)
    assert done.code == 0
    assert done.err == "ready: owner/name@c0ffee000000, 5 files, 1.0 MiB\n"


def test_wait_blocks_until_the_fetch_is_done(hub: Hub, dest: Path) -> None:
    hub.rate = 1e6
    waiting = start(["wait", "--dest", str(dest), "--identity", ID, "--timeout", "30s"], KAIGEN_PROGRESS="0.2")
    assert waiting.stderr is not None
    first = waiting.stderr.readline()
    assert "no such folder, 0 B present" in first
    fetching = start(
        ["fetch", "huggingface", "--repo", hub.repo, "--dest", str(dest), "--identity", ID, "--endpoint", hub.url]
    )
    until(lambda: hub.sent)
    assert waiting.poll() is None
    assert finish(fetching).code == 0
    done = finish(waiting)
    assert done.code == 0
    assert "no marker, " in done.err
    assert "ready: " in done.err


def test_wait_reports_the_state_and_times_out(run: Runner, complete: Path) -> None:
    argv = ["wait", "--dest", str(complete), "--identity", "another", "--timeout", "0.1"]
    done = run(*argv)
    assert done.code == 20
    assert f"marker of another identity ({ID[:16]}, wanted another)" in done.err
    assert "1.1 MiB present" in done.err  # blocks of the disk, and the marker
    (complete / "config.json").unlink()
    done = run(*argv[:4], ID, *argv[5:])
    assert done.code == 20
    assert "marker is there but config.json is missing" in done.err


def test_wait_prints_at_a_bounded_rate(run: Runner, dest: Path) -> None:
    done = run("wait", "--dest", str(dest), "--identity", ID, "--timeout", "1", KAIGEN_PROGRESS="0.2")
    assert 2 <= done.err.count("waiting for") <= 6


def test_many_may_wait_for_one(run: Runner, hub: Hub, dest: Path) -> None:
    from kaigen_downloader.polling import Polling
    from kaigen_downloader.watch import wait

    ready = []
    polling = Polling(timeout=20, every=60, poll=0.01)
    waiting = [threading.Thread(target=lambda: ready.append(wait(str(dest), ID, polling))) for _ in range(4)]
    for thread in waiting:
        thread.start()
    assert not ready
    assert run.fetch(hub, dest).code == 0
    for thread in waiting:
        thread.join(10)
    assert len(ready) == 4


def test_a_waiting_pod_ends_at_once_on_sigterm(dest: Path) -> None:
    process = start(["wait", "--dest", str(dest), "--identity", ID])
    assert process.stderr is not None
    process.stderr.readline()
    process.terminate()
    assert finish(process).code == 143


@pytest.mark.parametrize("full", [[], ["--full"]])
def test_verify_accepts_a_complete_folder(run: Runner, complete: Path, full: list[str]) -> None:
    done = run("verify", "--dest", str(complete), "--identity", ID, *full)
    assert done.code == 0
    lines = done.out.splitlines()
    assert len(lines) == 6
    assert all(line.endswith("  ok") for line in lines[:5])
    assert lines[5].startswith("OK: owner/name@c0ffee000000, 5 files, 1.0 MiB, names")
    assert ("sha256" in lines[5]) == bool(full)


def last(done: Done) -> str:
    assert done.code == 1
    return done.out.splitlines()[-1]


def test_verify_finds_wrong_files(run: Runner, complete: Path) -> None:
    argv = ["verify", "--dest", str(complete)]
    (complete / "extra").write_text("")
    path = complete / "model-00001.safetensors"
    path.write_bytes(bytes(50_000))
    assert "1 other file in the folder" in run(*argv).out
    assert run(*argv).code == 0
    assert "FAILED" in last(run(*argv, "--full"))
    assert "wrong sha256" in run(*argv, "--full").out
    path.write_bytes(b"")
    (complete / "config.json").unlink()
    done = run(*argv)
    assert "2 files bad" in last(done)
    assert "size 0" in done.out
    assert "missing" in done.out


def test_verify_needs_the_marker_of_the_identity(run: Runner, complete: Path) -> None:
    assert "expected another" in last(run("verify", "--dest", str(complete), "--identity", "another"))
    path = complete / ".kaigen" / "model.json"
    path.write_text(path.read_text().replace('"schema": 1', '"schema": 2'))
    assert "has no marker" in last(run("verify", "--dest", str(complete)))
    path.write_text("{")
    assert "has no marker" in last(run("verify", "--dest", str(complete)))
    assert run("verify", "--dest", str(complete / "nowhere")).code == 1


def test_verify_of_many_files_shows_the_bad_ones(hub: Hub, run: Runner, dest: Path) -> None:
    for number in range(60):
        hub.add(f"part-{number}", b"x")
    assert run.fetch(hub, dest).code == 0
    (dest / "part-7").unlink()
    done = run("verify", "--dest", str(dest))
    assert len(done.out.splitlines()) == 2
    assert "part-7" in done.out


@pytest.mark.parametrize("argv", [["wait", "--identity", ID], ["verify", "--full"]])
def test_waiting_and_verifying_load_nothing_heavy(complete: Path, argv: list[str]) -> None:
    code = (
        "import sys; from kaigen_downloader.cli import main; import os;"
        f"assert main({[*argv, '--dest', str(complete)]!r}, os.environ) == 0;"
        "heavy = {'botocore', 'http.client', 'urllib.request', 'ssl', 'asyncio'};"
        "print(sorted(heavy & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], env={"PYTHONPATH": str(PACKAGE)}, capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines()[-1] == "[]"
