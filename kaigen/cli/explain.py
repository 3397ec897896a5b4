"""`kaigen explain`: a field of a kind, like `kubectl explain`, a code, or the effective spec of an app."""

from __future__ import annotations

import json
import re
import textwrap
from collections.abc import Iterator, Mapping
from typing import Any

import click

from kaigen.cli.console import Console, table
from kaigen.cli.kinds import find_entry, named_kinds
from kaigen.cli.options import (
    environment_option,
    override_options,
    read_config,
    read_config_of,
    read_configs,
    read_overrides,
)
from kaigen.core.json_types import FieldPath
from kaigen.diagnostics import codes
from kaigen.diagnostics.suggest import did_you_mean
from kaigen.dialects import registry
from kaigen.explain import fields, topics
from kaigen.explain.effective import Effective, effective_spec, leaves
from kaigen.pipeline import run, sources
from kaigen.yaml.dump import dump, scalar

_WIDEST = 60
"""Rightmost column at which comments start, counted from 0."""

_Line = tuple[str, str]
"""A line of YAML and its comment."""


def effective_text(effective: Effective, *, color: bool) -> str:
    """The effective spec as text for a person, which is YAML of several documents."""
    where = f", environment {effective.environment}" if effective.environment else ""
    parts = [
        f"# {effective.namespace}/{effective.app}: {effective.kind} of {effective.source}{where}",
        *_aligned([*_lines(effective.document, (), effective.origins, "")], color),
    ]
    if effective.filled_in:
        origins = {path: "" for path, _ in _pairs(effective.filled_in)}
        parts += [
            "---",
            f"# Settings that the profile {effective.profile} fills in, chosen by {effective.profile_origin}",
            *_aligned([*_lines(dict(effective.filled_in), (), origins, "")], color),
        ]
    if effective.settings:
        values = {name: value for name, (value, _) in effective.settings.items()}
        origins = {path: effective.settings[str(path[0])][1] for path, _ in _pairs(values)}
        parts += ["---", "# Settings that are overridden", *_aligned([*_lines(values, (), origins, "")], color)]
    return "\n".join(parts) + "\n"


def _effective_data(effective: Effective, form: str) -> str:
    """The effective spec for programs: `yaml` or `json`."""
    if form == "json":
        return json.dumps(effective.as_data(), indent=2, ensure_ascii=False) + "\n"
    return dump(effective.as_data())


def _pairs(values: Mapping[str, Any]) -> Iterator[tuple[FieldPath, Any]]:
    return leaves(dict(values))


def _aligned(lines: list[_Line], color: bool) -> list[str]:
    start = min(max((len(text) for text, comment in lines if comment), default=0) + 2, _WIDEST)
    aligned = []
    for text, comment in lines:
        if comment:
            note = f"# {comment}"
            aligned.append(f"{text}  ".ljust(start) + (click.style(note, fg="cyan") if color else note))
        else:
            aligned.append(text)
    return aligned


def _lines(node: Any, path: FieldPath, origins: Mapping[FieldPath, str], indent: str) -> Iterator[_Line]:
    """The lines of a mapping or list that holds something."""
    items = node.items() if isinstance(node, dict) else enumerate(node)
    for key, value in items:
        here = (*path, key)
        head = f"{scalar(str(key))}:" if isinstance(node, dict) else "-"
        if not (isinstance(value, dict | list) and value):
            yield f"{indent}{head} {_leaf(value)}", origins[here]
        elif head == "-":
            for number, (text, comment) in enumerate(_lines(value, here, origins, f"{indent}  ")):
                yield (f"{indent}- {text[len(indent) + 2 :]}" if number == 0 else text), comment
        else:
            yield f"{indent}{head}", ""
            yield from _lines(value, here, origins, f"{indent}  ")


def _leaf(value: Any) -> str:
    return scalar(value) if isinstance(value, str) else json.dumps(value)


_EXAMPLES = (
    ("kaigen explain Model.spec.source", "a field"),
    ("kaigen explain Model --recursive", "all fields of a kind"),
    ("kaigen explain KG0302", "the code of a message"),
    ("kaigen explain PDB", "the fields that make a Kubernetes object, or a page of the documentation"),
    ("kaigen explain APP --env prod", "the spec of an app with the origin of each value"),
)
"""Examples at the end of the list of topics."""


@click.command("explain")
@click.argument("topic", required=False, metavar="[KIND[.PATH] | CODE | APP | WORD]")
@click.option("--recursive", is_flag=True, help="List the fields of all levels of KIND, without descriptions.")
@click.option("--effective", is_flag=True, help="Show the effective spec of an app and the origin of each value.")
@environment_option("the first that has it")
@override_options
@click.option(
    "--output", "-o", type=click.Choice(["text", "yaml", "json"]), default="text", help="Output format of --effective."
)
@click.pass_obj
def command(
    console: Console,
    topic: str | None,
    recursive: bool,
    effective: bool,
    environment: str,
    assignments: tuple[str, ...],
    value_files: tuple[str, ...],
    output: str,
) -> None:
    """Explain a field of a kind, a code, a word, or the effective spec of an app.

    For a field, like kubectl explain: prints its type, description, default, and nested fields. For example:
    kaigen explain Model.spec.source, kaigen explain kaigen.yaml.gitops

    For the code of a message: prints what it means and how to fix it. For example: kaigen explain KG0302

    For an app, NAME or NAMESPACE/NAME: prints its spec with overrides, pins and defaults, and the origin of each
    value; --effective is needed only where a kind has the same name. For example: kaigen explain qwen --env prod

    For a kind of Kubernetes, its abbreviation or another word: prints the fields of kaigen's kinds that make such
    objects, and the pages about it. For example: kaigen explain PDB

    Without an argument, lists what can be explained.
    """
    of_app = bool(environment or assignments or value_files or output != "text")
    if topic is None:
        if effective or of_app:
            raise click.UsageError("name an APP")
        _list_topics(console)
    elif effective or of_app:
        _explain_app(console, topic, environment, assignments, value_files, output)
    elif re.fullmatch("KG[0-9]+", topic.upper()):
        _explain_code(console, topic.upper())
    elif not recursive and _is_app(console, topic):
        _explain_app(console, topic, environment, assignments, value_files, output)
    else:
        _explain_field(console, topic, recursive=recursive)


def _explain_app(
    console: Console,
    app: str,
    environment: str,
    assignments: tuple[str, ...],
    value_files: tuple[str, ...],
    output: str,
) -> None:
    config = read_config_of(console, [app], environment)
    found = effective_spec(app, config, read_overrides(assignments, value_files))
    if output == "text":
        console.write(effective_text(found, color=console.colored(err=False)))
    else:
        console.write(_effective_data(found, output))


def _explain_field(console: Console, field: str, *, recursive: bool) -> None:
    kinds = named_kinds(console)
    key = max((name for name in kinds if f"{field.lower()}.".startswith(f"{name.lower()}.")), key=len, default="")
    name = field[: len(key)] if key else field.split(".")[0]
    path = [part for part in field[len(name) :].replace("[]", "").split(".") if part]
    if not key and (lines := topics.topic_lines(field, kinds)):
        for line in lines:
            console.out(line)
        return
    if not key and "." not in field:
        hint = did_you_mean(field, kinds) or "`kaigen explain` lists what can be explained"
        raise click.UsageError(f"nothing here is called {field}: no kind, app, code or word; {hint}")
    try:
        lines = fields.field_lines(find_entry(name, kinds), path, recursive=recursive)
    except fields.UnknownFieldError as error:
        raise click.UsageError(str(error)) from None
    for line in lines:
        console.out(line)


def _explain_code(console: Console, name: str) -> None:
    code = codes.codes().get(name)
    if code is None:
        raise click.UsageError(f"no code {name}; all codes: {codes.codes_url()}")
    console.out(f"CODE:     {name}")
    console.out(f"TITLE:    {code.title}")
    console.out("")
    for line in textwrap.wrap(code.explanation, 96):
        console.out(f"  {line}")


def _list_topics(console: Console) -> None:
    kinds = dict.fromkeys(named_kinds(console).values())
    rows = [(entry.key, entry.api_version, entry.summary) for entry in kinds]
    for line in table([("KIND", "APIVERSION", "DESCRIPTION"), *rows]):
        console.out(line)
    console.out("")
    for line in table([*_EXAMPLES]):
        console.out(line)


def _is_app(console: Console, name: str) -> bool:
    """Return whether the repository has an app of that name, and no kind has it.

    The path of a field has dots, which an app's name never has. It is explained in a broken repository too.
    """
    if "." in name or " " in name or name.lower() in (entry.key.lower() for entry in registry.own_kinds()):
        return False
    config = read_config()
    kinds = {key.lower() for key in named_kinds(console)}
    if name.lower() in kinds or sources.missing_repository(config) is not None:
        return False
    return any(run.Run.load((), each).find(name) for each in read_configs())
