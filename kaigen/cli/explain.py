"""`kaigen explain`: a field of a kind, like `kubectl explain`, or the effective spec of an app."""

from __future__ import annotations

import json
import textwrap
from typing import Any

import click

from kaigen.cli.console import Console
from kaigen.cli.effective import effective_data, effective_text
from kaigen.cli.kinds import find_entry, named_kinds
from kaigen.cli.options import environment_option, override_options, read_one_config, read_overrides
from kaigen.diagnostics.suggest import did_you_mean, nearest
from kaigen.explain.effective import effective_spec
from kaigen.kinds.schema import branches, deref, entries, field_names, json_schema, walk


@click.command("explain")
@click.argument("field", metavar="KIND[.PATH] | APP")
@click.option(
    "--effective", is_flag=True, help="Show the effective spec of an app and the origin of each value."
)
@environment_option("the first")
@override_options
@click.option(
    "--output",
    "-o",
    type=click.Choice(["text", "yaml", "json"]),
    default="text",
    help="Output format of --effective.",
)
@click.pass_obj
def command(
    console: Console,
    field: str,
    effective: bool,
    environment: str,
    assignments: tuple[str, ...],
    value_files: tuple[str, ...],
    output: str,
) -> None:
    """Explain a field of a kind, or the effective spec of an app.

    For a field, like kubectl explain: prints its type, description, default, and nested fields. For example:
    kaigen explain Model.spec.source

    For an app, NAME or NAMESPACE/NAME: prints its spec with overrides, pins and defaults, and the origin of each
    value. For example: kaigen explain --effective qwen --env prod
    """
    if effective:
        _explain_app(console, field, environment, assignments, value_files, output)
        return
    if environment or assignments or value_files or output != "text":
        raise click.UsageError("--env, --set, --values and --output require --effective APP")
    _explain_field(console, field)


def _explain_app(
    console: Console,
    app: str,
    environment: str,
    assignments: tuple[str, ...],
    value_files: tuple[str, ...],
    output: str,
) -> None:
    found = effective_spec(
        app, read_one_config(console, environment), read_overrides(assignments, value_files)
    )
    if output == "text":
        console.write(effective_text(found, color=console.colored(err=False)))
    else:
        console.write(effective_data(found, output))


def _explain_field(console: Console, field: str) -> None:
    kinds = named_kinds(console)
    key = max(
        (name for name in kinds if f"{field.lower()}.".startswith(f"{name.lower()}.")), key=len, default=""
    )
    name = field[: len(key)] if key else field.split(".")[0]
    entry = find_entry(name, kinds)
    rest = field[len(name) :].strip(".")
    path = [part for part in rest.replace("[]", "").split(".") if part]
    root = json_schema(entry)
    for depth, part in enumerate(path):
        if walk(root, path[: depth + 1]) is None:
            known = field_names(root, path[:depth])
            # Users often omit `spec`, which contains most fields.
            below = [] if depth else nearest(part, field_names(root, ["spec"]))
            if below and not nearest(part, known):
                hint = f"did you mean `{entry.key}.spec.{below[0]}`?"
            else:
                hint = did_you_mean(part, known) or (
                    "fields: " + ", ".join(known) if known else "it has no fields"
                )
            raise click.UsageError(f"{'.'.join([entry.key, *path[:depth]])} has no field {part}; {hint}")
    node = walk(root, path) or root
    console.out(f"KIND:     {entry.kind}")
    console.out(f"VERSION:  {entry.api_version}")
    if path:
        console.out(f"FIELD:    {'.'.join(path)} <{type_name(root, node)}>")
    console.out("")
    for line in textwrap.wrap(node.get("description", ""), 96) or [""]:
        console.out(f"  {line}")
    _facts(console, node)
    _fields(console, root, node)


def type_name(root: dict[str, Any], node: dict[str, Any]) -> str:
    """A schema's type as a person says it."""
    names = []
    for branch in branches(root, node):
        kind = branch.get("type", "object" if "properties" in branch else "any")
        if isinstance(kind, list):
            kind = "quantity" if kind == ["string", "number"] else " | ".join(kind)
        if kind == "array":
            kind = f"[]{type_name(root, deref(root, branch.get('items', {})))}"
        elif kind == "object" and (inner := entries(branch)) is not None:
            kind = f"map of {type_name(root, deref(root, inner))}"
        names.append(kind)
    return " | ".join(dict.fromkeys(names))


def _facts(console: Console, node: dict[str, Any]) -> None:
    facts = []
    if "default" in node and node["default"] not in ({}, []):
        facts.append(f"Default: {json.dumps(node['default'], ensure_ascii=False)}")
    values = node.get("enum") or ([node["const"]] if "const" in node else [])
    if values:
        facts.append("Values: " + ", ".join(map(str, values)))
    bounds = [
        f"{word} {node[name]}"
        for name, word in (("minimum", "at least"), ("maximum", "at most"))
        if name in node
    ]
    if bounds:
        facts.append("Range: " + ", ".join(bounds))
    if "maxLength" in node:
        facts.append(f"Length: at most {node['maxLength']}")
    if node.get("examples"):
        facts.append("Example: " + json.dumps(node["examples"][0], ensure_ascii=False))
    for fact in facts:
        console.out(f"  {fact}")


def _fields(console: Console, root: dict[str, Any], node: dict[str, Any]) -> None:
    for branch in branches(root, node):
        if branch.get("type") == "array":
            _fields(console, root, deref(root, branch.get("items", {})))
        inner = entries(branch)
        if inner is not None:
            _fields(console, root, deref(root, inner))
        if "properties" not in branch:
            continue
        required = set(branch.get("required", []))
        choice = [name for option in branch.get("oneOf", []) for name in option.get("required", [])]
        console.out("")
        console.out("FIELDS:" if not choice else f"FIELDS (exactly one of {', '.join(choice)}):")
        for name, field in branch["properties"].items():
            full = deref(root, field)
            marker = " -required-" if name in required else ""
            console.out(f"  {name} <{type_name(root, full)}>{marker}")
            for line in textwrap.wrap(full.get("description", ""), 92):
                console.out(f"      {line}")
