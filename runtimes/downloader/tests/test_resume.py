"""What a kill leaves, and that the next run goes on from it."""

from __future__ import annotations

import json
import random
import signal
import subprocess
import time
from pathlib import Path

import pytest
from hub import Hub
from runs import Runner, arguments, content, finish, holds, marker, start, until

PART = 65536


def journaled(dest: Path) -> int:
    """Bytes of large files that the journals say are there."""
    total = 0
    for journal in (dest / ".kaigen" / "partial").glob("*.journal"):
        header, *lines = journal.read_text().splitlines()
        size = json.loads(header)["size"]
        for line in lines:
            begin = int(line.split()[0]) * PART
            total += min(PART, size - begin)
    return total


def kill_in_the_middle(hub: Hub, dest: Path, how: signal.Signals, at: int) -> subprocess.Popen[str]:
    process = start(arguments(hub, dest))
    until(lambda: hub.sent > at and journaled(dest) > 0)
    process.send_signal(how)
    return process


@pytest.fixture
def big(hub: Hub) -> Hub:
    hub.files.clear()
    hub.add("config.json", b"{}")
    hub.add("model.safetensors", content(40 * PART + 77))
    return hub


def test_after_a_kill_only_the_missing_parts_are_fetched(big: Hub, run: Runner, dest: Path) -> None:
    big.rate = 1.5e6
    kill_in_the_middle(big, dest, signal.SIGKILL, 20 * PART).communicate()
    there = journaled(dest)
    assert there >= 10 * PART
    assert marker(dest) is None
    big.rate, big.sent = None, 0
    done = run.fetch(big, dest)
    assert done.code == 0, done.err
    assert "from an earlier run" in done.err
    assert holds(dest, big)
    found = marker(dest)
    assert found is not None
    finished = (dest / "config.json").exists()
    assert found["fetched"] == big.sent <= 40 * PART + 77 - there + 2 * finished
    assert big.sent < 30 * PART


def test_a_token_revoked_in_the_middle_ends_the_run_and_a_new_one_goes_on(big: Hub, run: Runner, dest: Path) -> None:
    big.token, big.rate, big.cdn = "hf_first", 1.5e6, False
    process = start(arguments(big, dest), HF_TOKEN="hf_first")
    until(lambda: journaled(dest) >= 2 * PART)
    big.token = "hf_second"
    done = finish(process)
    assert done.code == 10, done.err
    assert "HF_TOKEN is invalid or has no access" in done.err
    assert marker(dest) is None
    there, big.rate, big.sent = journaled(dest), None, 0
    done = run.fetch(big, dest, HF_TOKEN="hf_second")
    assert done.code == 0, done.err
    assert holds(dest, big)
    assert big.sent <= 40 * PART + 77 - there + 2


def test_a_sigterm_ends_the_run_at_once_and_it_can_be_resumed(big: Hub, run: Runner, dest: Path) -> None:
    big.rate = 1e6
    process = kill_in_the_middle(big, dest, signal.SIGTERM, 10 * PART)
    begin = time.monotonic()
    done = finish(process)
    assert time.monotonic() - begin < 4
    assert done.code == 143
    assert done.err.endswith("terminated; the next run goes on from what is here\n")
    big.rate, big.sent = None, 0
    assert run.fetch(big, dest).code == 0
    assert holds(dest, big)
    assert big.sent < 35 * PART


def test_the_marker_is_never_there_before_the_files_are(hub: Hub, run: Runner, dest: Path) -> None:
    for number in range(8):
        hub.add(f"shard-{number}", content(3 * PART + number, number))
    hub.rate = 2e6
    chance = random.Random(4)
    codes: list[int] = []
    while len(codes) < 8:
        process = start(arguments(hub, dest))
        limit = hub.sent + chance.randrange(0, 12 * PART)
        while process.poll() is None and hub.sent <= limit:
            if marker(dest) is not None:
                assert holds(dest, hub)
            time.sleep(0.002)
        process.kill()
        codes.append(finish(process).code)
        if marker(dest) is not None:
            assert holds(dest, hub)
            break
    assert codes.count(-signal.SIGKILL) >= 3
    hub.rate = None
    assert run.fetch(hub, dest).code == 0
    assert holds(dest, hub)


def test_a_damaged_part_of_an_earlier_run_is_the_only_one_fetched_again(big: Hub, run: Runner, dest: Path) -> None:
    big.rate = 1.5e6
    kill_in_the_middle(big, dest, signal.SIGKILL, 20 * PART).communicate()
    there = journaled(dest)
    journal = next((dest / ".kaigen" / "partial").glob("*.journal"))
    damaged = int(journal.read_text().splitlines()[1].split()[0])
    with journal.with_suffix(".part").open("r+b") as file:
        file.seek(damaged * PART + 5)
        file.write(b"torn")
    with journal.open("ab") as file:
        file.write(b"39 00")  # a line that was not wholly written
    big.rate, big.sent = None, 0
    done = run.fetch(big, dest)
    assert done.code == 0
    assert f"part {damaged} of an earlier run is damaged" in done.err
    assert holds(dest, big)
    assert big.sent <= 40 * PART + 77 - there + PART + 2


def test_a_file_that_was_whole_but_not_yet_in_place_is_not_fetched_again(big: Hub, run: Runner, dest: Path) -> None:
    big.rate = 3e6
    process = start(arguments(big, dest))
    until(lambda: journaled(dest) >= 38 * PART)
    process.kill()
    process.communicate()
    big.rate, big.sent = None, 0
    assert run.fetch(big, dest).code == 0
    assert holds(dest, big)
    assert big.sent <= 3 * PART


def test_another_part_size_keeps_complete_parts(big: Hub, run: Runner, dest: Path) -> None:
    big.rate = 1.5e6
    kill_in_the_middle(big, dest, signal.SIGKILL, 20 * PART).communicate()
    there = journaled(dest)
    big.rate, big.sent = None, 0
    assert run.fetch(big, dest, "--part-size", "1Mi").code == 0
    assert holds(dest, big)
    assert big.sent <= 40 * PART + 77 - there + 2


def test_parts_of_a_file_that_changed_are_thrown_away(big: Hub, run: Runner, dest: Path) -> None:
    big.rate = 1.5e6
    kill_in_the_middle(big, dest, signal.SIGKILL, 20 * PART).communicate()
    big.add("model.safetensors", content(40 * PART + 77, 9))
    big.rate, big.sent = None, 0
    assert run.fetch(big, dest).code == 0
    assert holds(dest, big)
    assert big.sent >= 40 * PART + 77
