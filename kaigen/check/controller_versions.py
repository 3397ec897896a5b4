"""What the versions of controllers in kaigen.yaml do not have of what an object uses.

`kaigen/catalog/controller_versions.json` has the fields and values that differ between the versions that it lists. A
version of a minor version that is not listed has at least what the versions before and after it have in common.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any

from kaigen.catalog.engines import parse_version
from kaigen.catalog.json_tables import load_table
from kaigen.check import codes
from kaigen.core.json_types import FieldPath
from kaigen.diagnostics.diagnostic import Severity
from kaigen.diagnostics.problem import Problem
from kaigen.kubernetes.manifest import Object, mapping

TITLES = {
    "kueue": "Kueue",
    "keda": "KEDA",
    "lws": "LeaderWorkerSet",
    "jobset": "JobSet",
    "karpenter": "Karpenter",
    "argocd": "Argo CD",
    "flux": "Flux",
}
"""The name of each controller by its key in `cluster` of kaigen.yaml."""


@cache
def _table() -> dict[str, Any]:
    return load_table("controller_versions")


@cache
def known_versions(controller: str) -> tuple[str, ...]:
    """Return the versions of a controller that the table lists, oldest first."""
    return tuple(_table()[controller]["versions"])


def _compared(controller: str, version: str) -> list[int]:
    """Return the numbers of the versions in the table that a version is judged by; none if it is newer than all."""
    wanted, listed = parse_version(version), [parse_version(each) for each in known_versions(controller)]
    for number, each in enumerate(listed):
        if each[:2] == wanted[:2]:
            return [number]
        if each > wanted:
            return [number - 1, number] if number else [0]
    return []


def version_findings(obj: Object, versions: Mapping[str, str]) -> Iterator[Problem]:
    """Check an object against versions of controllers.

    Args:
        obj: the object.
        versions: the version of each controller by its key in kaigen.yaml.
    """
    name = f"{obj.get('apiVersion')}/{obj.get('kind')}"
    for controller, version in versions.items():
        rows = _table()[controller]
        if name in rows["served"] and (numbers := _compared(controller, version)):
            shown = [f"{TITLES[controller]} {known_versions(controller)[number]}" for number in numbers]
            hint = f"correct `cluster.{controller}` in kaigen.yaml if the cluster has a version that knows it"
            for missing, message, path in _missing(rows, name, obj, numbers):
                severity = Severity.ERROR if len(missing) == len(numbers) else Severity.WARNING
                without = " and ".join(shown[place] for place in missing)
                yield Problem(codes.NOT_IN_VERSION, f"{without} {message}", path, hint, severity)


def _missing(
    rows: Mapping[str, Any], name: str, obj: Object, numbers: Sequence[int]
) -> Iterator[tuple[list[int], str, FieldPath]]:
    """Yield what versions do not have: their places in `numbers`, what they lack, and where it is."""
    group = name.partition("/")[0]
    # Of the controllers of a distribution, not all may be in the table.
    unserved = [
        at
        for at, number in enumerate(numbers)
        if not _has(rows["served"][name], number)
        and any(each.startswith(f"{group}/") and _has(spans, number) for each, spans in rows["served"].items())
    ]
    if unserved:
        yield unserved, f"does not serve {name.rpartition('/')[0]} {obj['kind']}", ("apiVersion",)
    for place, changes in rows["fields"][name].items():
        if (first := place.partition(".")[0].rstrip("[]{}")) not in obj:
            continue
        states = [_row(changes, number) for number in numbers]
        absent = [at for at, row in enumerate(states) if row is None]
        for path, value in _values({first: obj[first]}, place.split("."), ()):
            if absent:
                yield absent, f"has no field `{place}`", path
            elif isinstance(value, str) and any(value in change.get("enum", ()) for _, change in changes if change):
                other = [at for at, row in enumerate(states) if row and value not in row.get("enum", (value,))]
                if other:
                    yield other, f"does not accept `{value}` here", path


def _has(spans: Sequence[Sequence[int]], number: int) -> bool:
    return any(first <= number <= last for first, last in spans)


def _row(changes: Sequence[Any], number: int) -> dict[str, Any] | None:
    """Return what limits a field in a version; None where it does not have the field."""
    row: dict[str, Any] | None = None
    for since, change in changes:
        if since <= number:
            row = None if change is None else {**(row or {}), **change}
    return row


def _values(value: object, steps: Sequence[str], path: FieldPath) -> Iterator[tuple[FieldPath, object]]:
    """Yield the values at a place such as `spec.rules[].action`, with their paths."""
    if not steps:
        yield path, value
        return
    name, rest = steps[0].rstrip("[]{}"), steps[1:]
    if name in mapping(value):
        yield from _entries(mapping(value)[name], steps[0][len(name) :], rest, (*path, name))


def _entries(value: object, nested: str, rest: Sequence[str], path: FieldPath) -> Iterator[tuple[FieldPath, object]]:
    if not nested:
        yield from _values(value, rest, path)
    elif isinstance(value, list):
        for number, item in enumerate(value):
            yield from _entries(item, nested[2:], rest, (*path, number))
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from _entries(item, nested[2:], rest, (*path, str(key)))
