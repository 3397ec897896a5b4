"""How far long work is, on a real terminal and nowhere else."""

from __future__ import annotations

import fcntl
import os
import pty
import struct
import subprocess
import sys
import termios
from pathlib import Path

import pytest

from benchmarks.workload import write_repository
from kaigen.system.progress import report_progress

ROOT = Path(__file__).parents[2]

AT_ONCE = (
    "import kaigen.cli.console as progress\n"
    "progress.DELAY_S = progress.INTERVAL_S = 0.0\n"
    "from kaigen.cli.main import main\n"
    "main()"
)
"""The command, saying at once what it else says after a while."""


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    return write_repository(tmp_path / "repository", 12)


def on_a_terminal(repository: Path, *arguments: str, code: str = AT_ONCE, columns: int = 80, **variables: str) -> str:
    """What a call writes to standard error when that is a terminal of so many columns."""
    ours, theirs = pty.openpty()

    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    env = {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": str(ROOT),
        "KAIGEN_CACHE_DIR": str(repository.parent / "cache"),
        "TERM": "xterm",
        "PYTHONDONTWRITEBYTECODE": "1",
        **variables,
    }
    command = [sys.executable, "-c", code, *arguments]
    with subprocess.Popen(command, cwd=repository, env=env, stdout=subprocess.DEVNULL, stderr=theirs):
        os.close(theirs)
        output = b""
        try:
            while block := os.read(ours, 65536):
                output += block
        except OSError:
            pass  # Linux says so when the other end is closed
        os.close(ours)
    return output.decode()


def screen(output: str) -> list[str]:
    """Return the lines on the terminal at the end: text after a carriage return overwrites the line."""
    lines = []
    for line in output.replace("\r\n", "\n").split("\n"):
        shown = ""
        for part in line.split("\r"):
            shown = part + shown[len(part) :]
        lines.append(shown.rstrip())
    return lines


@pytest.mark.parametrize("arguments", [[], ["--no-cache"], ["--stdout"], ["specs"]])
def test_a_terminal_shows_progress_and_is_left_clean(repository: Path, arguments: list[str]) -> None:
    output = on_a_terminal(repository, "render", *arguments)
    assert "\rreading 0 of 12 …" in output
    assert "\rreading 11 of 12 …" in output
    assert "\rcompiling 11 of 12 …" in output
    assert not [line for line in screen(output) if "reading" in line or "compiling" in line]
    assert screen(output)[0].split() == ([] if "--stdout" in arguments else ["APP", "KIND", "OBJECTS", "SPEC"])


def test_only_what_is_compiled_is_counted(repository: Path) -> None:
    on_a_terminal(repository, "render")
    spec = repository / "specs" / "job-00001.yaml"
    spec.write_text(spec.read_text(encoding="utf-8").replace("epochs: 3", "epochs: 4"), encoding="utf-8")
    output = on_a_terminal(repository, "render")
    assert "\rreading 0 of 1 …" in output
    assert "of 12" not in output


def test_a_problem_is_printed_on_a_clean_line(repository: Path) -> None:
    (repository / "specs" / "job-00003.yaml").write_text("kind: Job\n", encoding="utf-8")
    output = on_a_terminal(repository, "--color", "never", "render")
    assert "\rreading 11 of 12 …" in output
    assert screen(output)[0].endswith("error[KG0203]: `apiVersion` is missing")


@pytest.mark.parametrize(("arguments", "terminal"), [(["-q", "render"], "xterm"), (["render"], "dumb")])
def test_quiet_runs_and_simple_terminals_show_no_progress(
    repository: Path, arguments: list[str], terminal: str
) -> None:
    assert "compiling" not in on_a_terminal(repository, *arguments, TERM=terminal)


def test_no_escape_sequence_is_written(repository: Path) -> None:
    output = on_a_terminal(repository, "render", NO_COLOR="1")
    assert "compiling" in output
    assert "\x1b" not in output


def test_a_narrow_terminal_is_not_overrun(repository: Path) -> None:
    output = on_a_terminal(repository, "render", "--no-cache", columns=12)
    written = [part for part in output.split("APP")[0].split("\r") if part]
    assert written
    assert max(map(len, written)) <= 11


def test_short_work_shows_no_progress(repository: Path) -> None:
    code = "import kaigen.cli.console as progress\nprogress.DELAY_S = 600.0\nfrom kaigen.cli.main import main\nmain()"
    assert screen(on_a_terminal(repository, "render", code=code))[0].startswith("APP")
    assert "\r" not in on_a_terminal(repository, "render", "--no-cache", code=code).replace("\r\n", "")


def test_a_pipe_gets_no_progress(repository: Path) -> None:
    env = {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), "KAIGEN_CACHE_DIR": "off", "TERM": "xterm"}
    done = subprocess.run(
        [sys.executable, "-c", AT_ONCE, "render"], cwd=repository, env=env, capture_output=True, text=True, check=True
    )
    assert done.stderr.startswith("APP")


def test_counting_yields_each_item_and_reports_the_progress() -> None:
    calls: list[tuple[str, int, int]] = []
    assert list(report_progress("ab", "reading", lambda *each: calls.append(each))) == ["a", "b"]
    assert calls == [("reading", 0, 2), ("reading", 1, 2)]
    items = ["a"]
    assert report_progress(items, "reading", None) is items
