"""The commands in `docs/sizing.md` work as shown."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from kaigen.cli.main import run

PAGE = (Path(__file__).parents[3] / "docs" / "sizing.md").read_text(encoding="utf-8")
SPEC = """\
apiVersion: kaigen.dev/v1alpha1
kind: Topology
metadata: {name: chat}
spec: {preset: phi-4, resources: {instanceType: g6e.xlarge}}
"""
CONFIG = '{"hidden_size": 4096, "max_position_embeddings": 8192, "num_attention_heads": 32, "num_hidden_layers": 32}'


def commands() -> list[str]:
    lines = [line for block in re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL) for line in block.splitlines()]
    inline = re.findall(r"`(kaigen plan --config [^`]*)`", PAGE)
    return [line.partition("  #")[0].strip() for line in [*lines, *inline]]


@pytest.mark.parametrize("line", commands())
def test_a_command_of_the_page_works(
    line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "specs").mkdir()
    (tmp_path / "specs" / "chat.yaml").write_text(SPEC, encoding="utf-8")
    (tmp_path / "config.json").write_text(CONFIG, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    assert run(shlex.split(line)[1:]) == 0
    assert ("default/chat" if "cost" in line else "NODES") in capsys.readouterr().out


def test_the_page_has_commands() -> None:
    assert len(commands()) == 11


def test_the_program_of_the_page_works(capsys: pytest.CaptureFixture[str]) -> None:
    (program,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    exec(compile(program, "docs/sizing.md", "exec"), {})
    assert "Layout(nodes=1, tp=2, pp=1, dp=2)" in capsys.readouterr().out
