"""Lines that `kaigen init` adds to files of other people."""

from __future__ import annotations

import pytest

from kaigen.catalog.profiles import profile_names
from kaigen.cli.init import command as init_command
from kaigen.scaffold.changes import add_entry, add_lines, add_settings

HOOK = "repos:\n  - repo: https://example.com/kaigen\n    rev: v1\n"


def test_only_missing_lines_are_added() -> None:
    wanted = "# kaigen\na\nb\n"
    assert add_lines("x\na", wanted) == "x\na\n\n# kaigen\nb\n"
    assert add_lines("", wanted) == wanted
    done = add_lines("x\n", wanted)
    assert add_lines(done, wanted) == done


def test_settings_are_added_next_to_those_of_others() -> None:
    merged = add_settings('{"a": 1, "s": {"x": "y"}}', '{"s": {"k": "v"}}')
    assert merged == '{\n  "a": 1,\n  "s": {\n    "x": "y",\n    "k": "v"\n  }\n}\n'
    assert merged is not None
    assert add_settings(merged, '{"s": {"k": "v"}}') == merged


@pytest.mark.parametrize("text", ['{"a": 1} // comment', '{"s": {"k": "other"}}', '{"s": 1}', "[1]", ""])
def test_settings_that_cannot_be_extended_are_not(text: str) -> None:
    assert add_settings(text, '{"s": {"k": "v"}}') is None


@pytest.mark.parametrize(
    ("text", "merged"),
    [
        ("", HOOK),
        ("# only a comment\n", "# only a comment\n" + HOOK),
        ("fail_fast: true\n", "fail_fast: true\n" + HOOK),
        (
            "repos:\n  - repo: a\n    hooks:\n      - id: b  # why\n  # at the end\n\nfail_fast: true\n",
            "repos:\n  - repo: a\n    hooks:\n      - id: b  # why\n"
            "  - repo: https://example.com/kaigen\n    rev: v1\n  # at the end\n\nfail_fast: true\n",
        ),
        ("repos:\n- repo: a", "repos:\n- repo: a\n- repo: https://example.com/kaigen\n  rev: v1\n"),
        ("repos:\n- {repo: a}\n", "repos:\n- {repo: a}\n- repo: https://example.com/kaigen\n  rev: v1\n"),
    ],
)
def test_an_entry_is_added_at_the_end_of_a_list(text: str, merged: str) -> None:
    assert add_entry(text, HOOK, "repos") == merged


@pytest.mark.parametrize("text", ["repos: []\n", "repos: [{repo: a}]\n", "repos: x\n", "- a\n", "a: [\n"])
def test_a_list_of_another_style_is_left_alone(text: str) -> None:
    assert add_entry(text, HOOK, "repos") is None


def test_help_of_init_names_every_profile() -> None:
    (option,) = (each for each in init_command.params if each.name == "profile")
    text = getattr(option, "help", "")
    assert [name for name in sorted(profile_names()) if name in text] == sorted(profile_names())
