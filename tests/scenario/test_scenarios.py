"""Run every scenario file in this folder; `tests/scenarios.py` documents their format."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.goldens import Goldens
from tests.scenarios import Player, ScenarioError, base_of, parse

HERE = Path(__file__).parent
SCENARIOS = sorted(path.relative_to(HERE).as_posix() for path in HERE.rglob("*.txt"))
BROKEN = [name for name in SCENARIOS if name.startswith("broken/")]


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Return the folder that a scenario of `base/` creates; each is run once."""
    folders: dict[str, Path] = {}

    def get(name: str) -> Path:
        if name not in folders:
            folders[name] = folder = tmp_path_factory.mktemp(name)
            text = (HERE / "base" / f"{name}.txt").read_text(encoding="utf-8")
            Player(folder, tmp_path_factory.mktemp("cache")).play(text)
        return folders[name]

    return get


@pytest.mark.parametrize("name", SCENARIOS)
def test_a_scenario_has_the_output_in_its_file(
    name: str, golden: Goldens, base: Callable[[str], Path], tmp_path: Path
) -> None:
    text = (HERE / name).read_text(encoding="utf-8")
    folder = tmp_path / "folder"
    start = base_of(text)
    if start:
        shutil.copytree(base(start), folder, symlinks=True)
    else:
        folder.mkdir()
    golden.check(name, Player(folder, tmp_path / "cache").play(text))


@pytest.mark.parametrize("name", BROKEN)
def test_broken_input_exits_with_code_2_and_writes_nothing(name: str) -> None:
    sections = parse((HERE / name).read_text(encoding="utf-8"))
    calls = [section for section in sections if section.mark == "$" and section.name.startswith("kaigen ")]
    output = [section for section in sections if section.mark == "==="]
    assert calls
    assert [section.name for section in output if section.name.startswith("exit ")] == ["exit 2"] * len(calls)
    assert not [section.name for section in output if section.name in {"changed", "stdout"}]
    errors = [section.content().decode() for section in output if section.name == "stderr"]
    assert len(errors) == len(calls)
    assert all(re.search(r"error\[KG\d{4}\]", text) for text in errors)


def test_there_are_enough_broken_specs() -> None:
    assert len(BROKEN) >= 70


def play(folder: Path, text: str) -> str:
    return Player(folder, folder / "cache").play(text)


@pytest.mark.parametrize(
    ("section", "content"),
    [
        ("--- a\nx\n\n", b"x\n"),
        ("--- a\nx\n\\ no newline\n", b"x"),
        ("--- a\n\\--- b\n\\\\n\n", b"--- b\n\\n\n"),
        ("--- a (escaped)\n\\xef\\xbb\\xbfa: 1\\r\n\\tb\\\\\\x00\\\nc\n", b"\xef\xbb\xbfa: 1\r\n\tb\\\0c\n"),
        ("--- a\n", b""),
    ],
)
def test_a_file_is_written_byte_by_byte(tmp_path: Path, section: str, content: bytes) -> None:
    assert play(tmp_path, f"About.\n\n{section}") == f"About.\n\n{section}".rstrip("\n") + "\n"
    assert (tmp_path / "a").read_bytes() == content


@pytest.mark.parametrize(
    "content", [b"x\n", b"x", b"\n", b"x\n\n", b"--- a\n\\b\n", b"\x1b[1mx\n", b"\xff\r", b"", "é…\n".encode()]
)
def test_what_a_call_brings_about_can_be_read_back(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "in").write_bytes(content)
    copy = "import sys; data = sys.stdin.buffer.read(); sys.stdout.buffer.write(data); open('out', 'wb').write(data)"
    text = f'\n$ python -c "{copy}" < in\n=== file out\n'
    output = play(tmp_path, text)
    sections = {section.name: section.content() for section in parse(output)}
    assert sections.get("stdout", b"") == content
    assert sections["file out"] == content
    assert sections["changed"] == b"+ out\n"
    (tmp_path / "out").unlink()
    assert play(tmp_path, output) == output


def test_a_wrong_expectation_is_seen(tmp_path: Path) -> None:
    text = "\n$ kaigen --version\n=== stdout\nkaigen 99\n=== exit 3\n=== changed\n+ a\n"
    assert play(tmp_path, text) not in {text, ""}


def test_a_program_that_fails_during_setup_is_reported(tmp_path: Path) -> None:
    with pytest.raises(ScenarioError, match="rm nothing"):
        play(tmp_path, "\n$ rm nothing\n")


def test_a_traceback_is_never_right(tmp_path: Path) -> None:
    with pytest.raises(ScenarioError, match="a traceback on stderr"):
        play(tmp_path, '\n$ python -c "1/0"\n')
