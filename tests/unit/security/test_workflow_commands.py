"""No text of a repository is at a place of the log where a pipeline would run it as a command.

GitHub's runner obeys `::command::` at the start of a line, and its older form `##[command]` anywhere.
"""

from __future__ import annotations

import json

import pytest

from kaigen.cli.console import Console
from kaigen.diagnostics.errors import KaigenError
from tests.unit.security.hostile import CONFIG, Repository

COMMAND = "::stop-commands::x"
OLDER = "##[stop-commands]x"


@pytest.mark.parametrize("field", ["kinds", "specs", "output", "catalog", "patches", "namespace", "profile"])
@pytest.mark.parametrize("name", [f"a\n{COMMAND}\nb", f"a\n{COMMAND}\n{'b' * 300}", f"a\r{COMMAND}\r\x00"])
@pytest.mark.parametrize("command", [("validate", "--output", "github"), ("render",), ("render", "--check")])
def test_a_value_of_the_configuration_is_no_command(
    repository: Repository, field: str, name: str, command: tuple[str, ...]
) -> None:
    value = json.dumps([{"file": name}] if field == "patches" else [name] if field in ("kinds", "specs") else name)
    config = "\n".join(line for line in CONFIG.split("\n") if not line.startswith(f"{field}:"))
    repository.write({"kaigen.yaml": f"{config}\n{field}: {value}\n"})
    done = repository.kaigen(*command)
    lines = done.text.replace("\r", "\n").split("\n")
    assert [line for line in lines if COMMAND in line and line.strip().startswith(COMMAND)] == []


def test_the_name_of_a_file_is_no_command(repository: Repository) -> None:
    name = f"specs/a\n{COMMAND}\n.yaml"
    repository.write({name: "kind: [\n"})
    for command in (("validate", "--output", "github"), ("validate",), ("render",)):
        done = repository.kaigen(*command)
        assert done.code == 2
        assert [line for line in done.text.split("\n") if line.strip() == COMMAND] == []


@pytest.mark.parametrize("older", [OLDER, f"##{OLDER}", f"#{OLDER}", "##\x1b[0m[stop-commands]x"])
def test_the_older_form_of_a_command_is_broken_up(repository: Repository, older: str) -> None:
    repository.write({f"specs/{OLDER}.yaml": json.dumps({"apiVersion": older, "kind": older, older: older})})
    repository.write({"specs/broken.yaml": f"kind: [a{OLDER}\n"})
    for command in (("validate", "--output", "github"), ("validate",), ("render",), ("render", "--check")):
        done = repository.kaigen(*command)
        assert done.code == 2
        assert OLDER not in done.err
        assert "# [stop-commands]x" in done.err or "github" in command
        assert all(line.startswith("::") for line in done.out.splitlines() if OLDER in line)


def test_the_older_form_of_a_command_is_broken_up_in_other_messages(capsys: pytest.CaptureFixture[str]) -> None:
    console = Console()
    console.say(f"a {OLDER}")
    console.say("a ##\x1b[0m[stop-commands]x")
    console.failure(KaigenError(OLDER, hint=OLDER))
    err = capsys.readouterr().err
    assert OLDER not in err
    assert err.count("# [stop-commands]x") == 4
