"""Hints for other tools' commands and options name what kaigen has, and never something as missing that it has."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache

import click
import pytest

from kaigen.cli import habits
from kaigen.cli.main import COMMANDS, LazyGroup

HINTS = {
    **habits.OTHER_COMMANDS,
    **habits.OTHER_OPTIONS,
    **habits.OPTIONS_OF_OTHERS,
    **{" ".join(key): hint for key, hint in habits.OPTIONS_OF.items()},
}


@cache
def commands() -> dict[str, click.Command]:
    """Return every command by its words, such as `job logs`."""
    found: dict[str, click.Command] = {}
    root = LazyGroup("kaigen")
    with click.Context(root) as context:
        for name in root.list_commands(context):
            command = root.get_command(context, name)
            assert command is not None
            found[name] = command
            for inner, subcommand in command.commands.items() if isinstance(command, click.Group) else ():
                found[f"{name} {inner}"] = subcommand
    return found


def options(command: click.Command) -> Iterator[str]:
    for parameter in command.params:
        if isinstance(parameter, click.Option):
            yield from (*parameter.opts, *parameter.secondary_opts, "--help")


def test_no_other_command_is_a_command() -> None:
    assert habits.OTHER_COMMANDS.keys() & COMMANDS.keys() == set()


def test_options_that_no_command_has_are_apart_from_those_that_some_have() -> None:
    known = {option for command in commands().values() for option in options(command)}
    assert habits.OTHER_OPTIONS.keys() & known == set()
    assert habits.OPTIONS_OF_OTHERS.keys() <= known


@pytest.mark.parametrize(("command", "option"), habits.OPTIONS_OF)
def test_option_of_a_hint_is_not_one_of_the_command(command: str, option: str) -> None:
    assert option not in options(commands()[command])


@pytest.mark.parametrize("key", HINTS)
def test_hint_names_commands_and_options_that_exist(key: str) -> None:
    for line in re.findall(r"`kaigen ([^`|]*)", HINTS[key]):
        words = line.split()
        if words[0].startswith("-"):
            continue  # of `kaigen` itself
        name = " ".join(words[:2]) if " ".join(words[:2]) in commands() else words[0]
        assert name in commands(), f"{key}: kaigen {name}"
        assert not isinstance(commands()[name], click.Group), f"{key}: kaigen {name}"
        unknown = {word for word in words if word.startswith("-") and word not in options(commands()[name])}
        assert unknown == set(), f"{key}: kaigen {line}"


@pytest.mark.parametrize("name", sorted({name for name in commands() if " " in name}))
def test_name_of_a_subcommand_alone_is_answered_with_the_whole_command(name: str) -> None:
    last = name.split()[1]
    if last not in COMMANDS:
        assert f"`kaigen {name}`" in habits.command_hint(last)
