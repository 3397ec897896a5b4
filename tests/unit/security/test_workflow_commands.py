"""No text of a repository starts a line of the log, where a pipeline would run it as a command."""

from __future__ import annotations

import json

import pytest

from tests.unit.security.hostile import CONFIG, Repository

COMMAND = "::stop-commands::x"


@pytest.mark.parametrize("field", ["kinds", "specs", "output", "catalog", "patches", "namespace", "profile"])
@pytest.mark.parametrize("name", [f"a\n{COMMAND}\nb", f"a\n{COMMAND}\n{'b' * 300}", f"a\r{COMMAND}\r\x00"])
@pytest.mark.parametrize("command", [("validate", "--output", "github"), ("render",), ("render", "--check")])
def test_a_value_of_the_configuration_is_no_command(
    repository: Repository, field: str, name: str, command: tuple[str, ...]
) -> None:
    value = json.dumps(
        [{"file": name}] if field == "patches" else [name] if field in ("kinds", "specs") else name
    )
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
