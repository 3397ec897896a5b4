"""Output of an effective spec: YAML with the origin of each value next to it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

import click

from kaigen.core.json_types import FieldPath
from kaigen.explain.effective import Effective, leaves
from kaigen.yaml.dump import dump, scalar

WIDEST = 60
"""Rightmost column at which comments start, counted from 0."""

Line = tuple[str, str]
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


def effective_data(effective: Effective, form: str) -> str:
    """The effective spec for programs: `yaml` or `json`."""
    if form == "json":
        return json.dumps(effective.as_data(), indent=2, ensure_ascii=False) + "\n"
    return dump(effective.as_data())


def _pairs(values: Mapping[str, Any]) -> Iterator[tuple[FieldPath, Any]]:
    return leaves(dict(values))


def _aligned(lines: list[Line], color: bool) -> list[str]:
    start = min(max((len(text) for text, comment in lines if comment), default=0) + 2, WIDEST)
    aligned = []
    for text, comment in lines:
        if comment:
            note = f"# {comment}"
            aligned.append(f"{text}  ".ljust(start) + (click.style(note, fg="cyan") if color else note))
        else:
            aligned.append(text)
    return aligned


def _lines(node: Any, path: FieldPath, origins: Mapping[FieldPath, str], indent: str) -> Iterator[Line]:
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
