"""No name of a file, a folder or a spec does anything in a commit message, a pull request or a log."""

from __future__ import annotations

import re
from datetime import UTC, datetime

import pytest

from kaigen.cli.console import table
from kaigen.core.text import shown_name
from kaigen.diagnostics.collector import Diagnostics
from kaigen.diff.markdown import code_span, render_markdown
from kaigen.diff.model import Change
from kaigen.publish.branch_changes import commit_message
from kaigen.publish.results import AppChanges, TreeResult
from kaigen.publish.source import Source
from kaigen.scaffold.expired import Expired
from kaigen.yaml import sources
from kaigen.yaml.document import parse
from tests.unit.security.hostile import JOB, Repository

NAMES = {
    "a fence": "a\n```\n@everyone [x](http://evil.example)",
    "a fence of tildes": "a\n~~~~\nb",
    "no pipeline": "[skip ci]",
    "no pipeline on GitLab": "[CI SKIP]",
    "no pipeline, in other words": "[no ci] [skip actions]",
    "a trailer without a pipeline": "a\n\n\nskip-checks: true",
    "another author": "a\n\nCo-authored-by: Eve <eve@evil.example>",
    "another source": "a\n\nSource-Commit: " + "f" * 40,
    "an issue that is closed": "Closes #1",
    "an issue by its address": "Fixes https://github.com/ada/models/issues/1",
    "an issue of another project": "Resolves ada/models#1, ada/models!2",
    "a mention": "@everyone",
    "a commit of another project": "ada/models@5f1c5f1c",
    "a quick action": "a\n/merge",
    "a command": "a\n::stop-commands::x",
    "an older command": "##[stop-commands]x",
    "a terminal": "\x1b[2J\x1b]0;x\x07",
    "a line start": "a\rb",
    "line breaks of Unicode": "a\u2028b\u2029c\x85d",
    "the other direction": "a\u202ely.lmay\u2066",
    "invisible characters": "a\u200bb\u00adc\U000e0041d\ufeff",
    "HTML": "<!-- a --><img src=x onerror=alert(1)></details>",
    "a picture": "![x](http://evil.example/p.png)",
    "a code span": "a`b``c",
    "a table cell": "a | b",
    "a label, a milestone and a snippet of GitLab": "~bug %1 $1 &1",
    "wide brackets": "\uff3bskip ci\uff3d",
    "an option": "-rf",
    "a surrogate": "a\udc80b",
}
"""Names that do something elsewhere: in Markdown, in Git, on GitHub and GitLab, in a terminal."""
SOURCE = Source("a" * 40, 0, "https://example.com/acme/specs.git", "teams", "main", dirty=False)
_OBEYED = re.compile(r"[^\S \n]|[`@#!\[\]<>()|~%$&*\\\x00-\x09\x0b-\x1f]|^\s*(?:/|::)|: true", re.MULTILINE)
"""What Markdown, a forge, a runner or a terminal acts on."""
each_name = pytest.mark.parametrize("name", NAMES.values(), ids=NAMES)


def check(text: str, lines: int) -> None:
    """Check that a text has this many lines and nothing that anything acts on."""
    assert len(text.splitlines()) == lines
    assert _OBEYED.findall(text) == []
    assert all(char.isprintable() or char == "\n" for char in text)


@each_name
def test_a_shown_name_is_one_word(name: str) -> None:
    check(shown_name(name), 1)
    assert " " not in shown_name(name)


@pytest.mark.parametrize("name", ["specs/a.yaml", "modèles/数据.yaml", "a_b-c.d", "a+b=c,d"])
def test_a_usual_name_stays(name: str) -> None:
    assert shown_name(name) == name


@each_name
@pytest.mark.parametrize("field", ["file", "kind", "name"])
def test_what_prune_prints_for_the_commit_message_does_nothing(field: str, name: str) -> None:
    given = {"file": f"specs/{name}/e.yaml", "kind": "Job", "name": "trial"} | {field: name}
    text = "kind: x\nmetadata: {name: x}\n"
    (document,) = parse(sources.Source(given["file"], text), Diagnostics())
    assert isinstance(document.data, dict)
    document.data.update(kind=given["kind"], metadata={"name": given["name"]})
    row = Expired(document, datetime(2020, 1, 31, tzinfo=UTC)).row()
    _, line = table([("SPEC", "EXPIRED", "FILE"), row])
    check(line, 1)
    assert len(line.split("  ")) == 3
    assert line.split("  ")[0].count("/") == 1, "a line cannot begin with a quick action of GitLab"


def test_kind_and_name_cannot_close_an_issue() -> None:
    (document,) = parse(sources.Source("a.yaml", "kind: Closes\nmetadata: {name: GH-1}\n"), Diagnostics())
    (cell, *_) = Expired(document, datetime(2020, 1, 31, tzinfo=UTC)).row()
    assert cell == "Closes/GH-1"


@each_name
def test_the_message_of_a_published_commit_does_nothing(name: str) -> None:
    usual = TreeResult("prod", "rendered/prod", AppChanges(removed=("ml/a",)), (0, 0, 1))
    odd = TreeResult(name, f"out/{name}", AppChanges(added=(f"ml/{name}",)), (1, 0, 0))
    source = Source("a" * 40, 0, "", f"teams/{name}", "main", dirty=False)
    expected = commit_message(SOURCE, [usual]).replace("Source-Repository: ", "").splitlines()
    text = commit_message(source, [odd])
    assert len(text.splitlines()) == len(expected) - 1
    for line in text.splitlines():
        check(re.sub(r" \(|\):$", "", line), 1 if line else 0)
    assert text.count("Source-Commit:") == 1


@each_name
def test_a_cell_of_a_table_stays_on_its_line(name: str) -> None:
    lines = table([("APP", "FILE"), (name, name)])
    assert len(lines) == 2
    assert all(len(line.splitlines()) == 1 and line.isprintable() for line in lines)
    assert "##[" not in lines[1]


@each_name
def test_a_code_span_and_a_line_of_the_lock_stay_on_their_line(name: str) -> None:
    span = code_span(name)
    fence = span[: len(span) - len(span.lstrip("`"))]
    assert span.isprintable()
    assert span.count(fence) == 2 or fence not in span[len(fence) : -len(fence)].replace("`" * (len(fence) + 1), "")
    text = render_markdown(Change(apps=(), lock=(f"hf://{name} is removed",)))
    (item,) = [line for line in text.splitlines() if line.startswith("- ")]
    assert all(char.isprintable() or char == "\u200b" for char in item)
    assert not re.search(r"[@#!][\w-]|(?<!\\)[`<\[*]", item)


@pytest.mark.parametrize("command", [("pin", "--check"), ("prune", "--expired", "--dry-run"), ("render",)])
def test_a_folder_with_such_a_name_is_no_line_of_a_command(repository: Repository, command: tuple[str, ...]) -> None:
    expired = JOB.replace("{name: evaluate}", "{name: NAME, annotations: {kaigen.dev/expires-at: 2020-01-01}}")
    folders = [name.replace("/", "-") for name in NAMES.values() if "\udc80" not in name]
    repository.write(
        {f"specs/{folder}/e.yaml": expired.replace("NAME", f"e{number}") for number, folder in enumerate(folders)}
    )
    done = repository.kaigen(*command)
    found = [line for line in done.text.splitlines() if re.match(r"\s*(?:::|@|```|/merge|skip-checks|Source-)", line)]
    assert found == []
    assert "##[" not in done.text
    assert all(char.isprintable() or char in "\n\t" for char in done.out)
