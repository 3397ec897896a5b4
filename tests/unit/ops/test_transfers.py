"""The progress of transfers: seen on a terminal and without one."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from kaigen.cli.console import Console
from kaigen.cli.live import session
from kaigen.diagnostics.errors import SystemFailure
from kaigen.ops import transfer
from kaigen.ops.archive import entries_of

_CODE = """
import sys, time
from kaigen.cli.console import Console
from kaigen.cli.live.session import transfer_line
with transfer_line(Console()) as report:
    for done in range(0, 101, 10):
        report("uploading", done << 20, 100 << 20)
        time.sleep(0.07)
print("10 files copied")
"""


def test_a_terminal_shows_a_bar_that_goes_at_the_end() -> None:
    leader, follower = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-c", _CODE],
        stdout=follower,
        stderr=follower,
        env={**os.environ, "TERM": "xterm", "COLUMNS": "100"},
    )
    os.close(follower)
    printed = b""
    while True:
        try:
            data = os.read(leader, 4096)
        except OSError:  # the end of a terminal
            break
        if not data:
            break
        printed += data
    os.close(leader)
    assert process.wait(30) == 0
    *frames, last = printed.decode().split("\r")
    assert last == "\n"
    assert frames[-1] == "10 files copied"
    found = [frame for frame in frames if "uploading" in frame]
    assert found
    for frame in found:
        assert re.match(r"uploading \[#+\.*\] \d+\.0 MiB of 100\.0 MiB, [\d.]+ MiB/s(, \d+ s left)? *$", frame), frame


def test_a_pipe_gets_a_plain_line_now_and_then(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(session, "LINE_S", 0.0)
    with session.transfer_line(Console()) as report:
        assert report is not None
        report("downloading", 512 << 10, 1 << 20)
    printed = capsys.readouterr()
    assert printed.out == ""
    assert re.fullmatch(r"downloading 50% 512\.0 KiB of 1\.0 MiB, [\d.]+ \w?i?B/s, \d+ s left\n", printed.err), (
        printed.err
    )
    with session.transfer_line(Console(verbosity=-1)) as report:
        assert report is None


@pytest.mark.parametrize(
    ("free", "expected"),
    [("12", "the volume of 1.0 GiB is full: no space"), ("900000", "the files could not be written to /artifacts: no")],
)
def test_a_full_volume_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, free: str, expected: str) -> None:
    class Mount:
        cluster, namespace, pod = None, "ml", "p"

        def persist(self, act: Callable[[], None], *_: object) -> None:
            act()

        def output(self, *_: str) -> str:
            return f"/dev/sda 1048576 1 {free} 99% /artifacts"

    monkeypatch.setattr(transfer, "run_command", lambda *_, **__: SimpleNamespace(exit_code=2, errors="no space"))
    (tmp_path / "zeros.bin").write_bytes(b"0" * 100)
    with pytest.raises(SystemFailure, match=expected) as caught:
        transfer.upload(Mount(), entries_of(tmp_path), "/artifacts")  # type: ignore[arg-type]
    assert ("--pvc-size" in caught.value.hint) == (free == "12")
