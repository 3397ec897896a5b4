"""Progress: lines of JSON in a log, a bar on a terminal, without secrets and without a line too many."""

from __future__ import annotations

import json
import os
import pty
import struct
import subprocess
import sys
import termios
import time
from fcntl import ioctl
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hub import Hub
from kaigen_downloader.progress import Display, Meter
from runs import FAST, ID, PACKAGE, Runner, arguments, content, holds
from s3 import S3

FIELDS = [
    "time",
    "event",
    "action",
    "source",
    "dest",
    "bytes",
    "bytesTotal",
    "files",
    "filesTotal",
    "bytesPerSecond",
    "etaSeconds",
]

SELDOM = {"KAIGEN_PROGRESS": "1000"}  # seconds: only the end of an action has a line


def events(err: str) -> list[dict[str, Any]]:
    """The lines of JSON in the output of a run."""
    return [json.loads(line) for line in err.splitlines() if line.startswith("{")]


def on_terminal(argv: list[str], columns: int = 120) -> tuple[int, str]:
    """Run the program with a pseudo-terminal for standard error; return its exit code and what it showed."""
    ours, its = pty.openpty()
    ioctl(its, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    environ = {"PATH": os.environ["PATH"], "PYTHONPATH": str(PACKAGE), "HOME": "/nonexistent"}
    process = subprocess.Popen(
        [sys.executable, "-m", "kaigen_downloader", *argv],
        env=environ | FAST | SELDOM,
        stdin=its,
        stdout=subprocess.DEVNULL,
        stderr=its,
    )
    os.close(its)
    shown = b""
    try:
        while piece := os.read(ours, 65536):
            shown += piece
    except OSError:  # Linux: the other end is closed
        pass
    os.close(ours)
    return process.wait(60), shown.decode()


def screen(shown: str) -> list[str]:
    """The lines that stay on the screen: a status line is replaced by what comes after it."""
    return [line.rpartition("\x1b[K")[2] for line in shown.replace("\r\n", "\n").split("\n") if line]


def test_lines_of_json_show_bytes_files_and_speed(hub: Hub, run: Runner, dest: Path) -> None:
    hub.rate = 1e6
    begin = time.monotonic()
    done = run.fetch(hub, dest, KAIGEN_PROGRESS="0.1")
    most = (time.monotonic() - begin) / 0.1 + 1
    assert done.code == 0, done.err
    found = events(done.err)
    total = sum(len(stored.data) for stored in hub.files.values())
    assert 2 <= len(found) <= most, done.err
    assert all(list(each) == FIELDS for each in found)
    assert {(each["event"], each["action"], each["source"], each["dest"]) for each in found} == {
        ("progress", "fetch", "owner/name@main", str(dest))
    }
    assert all(one["bytes"] <= two["bytes"] and one["files"] <= two["files"] for one, two in pairwise(found))
    last = found[-1]
    assert (last["bytes"], last["bytesTotal"], last["files"], last["filesTotal"]) == (total, total, 5, 5)


def test_an_action_without_files_has_no_line(hub: Hub, run: Runner, dest: Path) -> None:
    done = run.fetch(hub, dest, **SELDOM)
    assert [each["action"] for each in events(done.err)] == ["fetch"]
    again = events(run.fetch(hub, dest, identity="other", **SELDOM).err)
    assert [(each["action"], each["files"]) for each in again] == [("check", 5)]


def test_none_shows_messages_only(hub: Hub, run: Runner, dest: Path) -> None:
    done = run.fetch(hub, dest, "--progress", "none", KAIGEN_PROGRESS="0.001")
    assert done.code == 0
    assert events(done.err) == []
    assert "\x1b" not in done.err
    assert "complete: owner/name" in done.err


def test_an_upload_shows_reading_and_storing(tmp_path: Path, s3: S3, run: Runner) -> None:
    made = tmp_path / "made"
    made.mkdir()
    (made / "model.m").write_bytes(content((5 << 20) + 5, 7))
    dest = f"s3://{s3.bucket}/out"
    done = run("put", str(made), "--dest", dest, "--identity", ID, "--s3-endpoint", s3.url, **SELDOM)
    assert done.code == 0, done.err
    found = events(done.err)
    assert [(each["action"], each["files"], each["bytes"]) for each in found] == [
        ("check", 1, (5 << 20) + 5),
        ("fetch", 1, (5 << 20) + 5),
    ]
    assert {(each["source"], each["dest"]) for each in found} == {(str(made), dest)}


def test_no_line_has_a_token_or_a_signed_url(hub: Hub, run: Runner, dest: Path) -> None:
    hub.token = "hf_secretsecret"
    done = run.fetch(hub, dest, HF_TOKEN="hf_secretsecret")
    assert events(done.err)
    assert "hf_secretsecret" not in done.err
    named = Display("json").between("https://user:password@example.com/x?signature=abc", "/model")
    assert "password" not in named.source
    assert "abc" not in named.source


def test_a_terminal_has_a_bar_that_messages_replace(hub: Hub, dest: Path) -> None:
    hub.rate = 1e6
    code, shown = on_terminal(arguments(hub, dest))
    assert code == 0, shown
    assert holds(dest, hub)
    assert "fetching 100% [########################] 1.0 MiB of 1.0 MiB, 5 of 5 files" in shown
    assert "{" not in shown
    left = screen(shown)
    assert not any(line.startswith("fetching ") and "[" in line for line in left), left
    assert left[-1].startswith("complete: owner/name@"), left


@pytest.mark.parametrize("columns", [1, 30, 0])
def test_a_bar_fits_into_one_line(hub: Hub, dest: Path, columns: int) -> None:
    hub.rate = 1e6
    code, shown = on_terminal(arguments(hub, dest), columns)
    assert code == 0, shown
    bars = [piece.partition("\r")[0] for piece in shown.split("\x1b[K")[1:]]
    bars = [bar for bar in bars if bar and "fetching".startswith(bar[:8]) and "\n" not in bar]
    assert bars
    assert max(map(len, bars)) <= max(1, (columns or 80) - 1)


def test_json_on_a_terminal_and_a_bar_in_a_file(hub: Hub, run: Runner, dest: Path) -> None:
    code, shown = on_terminal(arguments(hub, dest, "--progress", "json"))
    assert code == 0, shown
    assert [each["action"] for each in events(shown)] == ["fetch"]
    assert "\x1b" not in shown
    done = run.fetch(hub, dest.with_name("second"), "--progress", "bar")
    assert "fetching 100% [" in done.err


def test_a_meter_without_bytes_has_no_estimate(capsys: pytest.CaptureFixture[str]) -> None:
    meter = Meter("fetch", Display("json", every=0.0), total=100, files=2, done=40)
    meter.update()
    meter.add(70)
    meter.lose(200)
    meter.update()
    meter.complete_file()
    meter.lose(-400)
    meter.finish()
    first, second, last = events(capsys.readouterr().err)
    assert (first["bytes"], first["bytesPerSecond"], first["etaSeconds"]) == (40, 0, None)
    assert (second["bytes"], second["files"]) == (0, 0)
    assert (last["bytes"], last["files"]) == (100, 1)
