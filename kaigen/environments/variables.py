"""Names in specs whose value an environment has: variables in hosts and buckets, and storage classes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from kaigen.core.json_types import FieldPath
from kaigen.diagnostics.suggest import did_you_mean
from kaigen.kinds.entry import OWN_SYSTEM
from kaigen.kinds.promotable import fields_named

if TYPE_CHECKING:
    from kaigen.config.settings import Config
    from kaigen.kinds.entry import KindEntry

TEXTS = frozenset({"host", "uri"})
"""Fields of kaigen's own kinds that may contain variables: hosts of routes, and URIs of buckets."""

CLASSES = frozenset({"storageClassName"})
"""Fields that may have a name of `storageClasses` in kaigen.yaml."""

_VARIABLE = re.compile(r"\{([^{}]*)\}")
_ENVIRONMENT, _CLUSTER = "environment", "cluster"


class Expansion(Struct, frozen=True):
    """A field with such a name.

    Attributes:
        path: the field.
        value: what it has in the environment.
        problems: codes, messages and hints.
    """

    path: FieldPath
    value: str
    problems: tuple[tuple[str, str, str], ...] = ()


def expansions(data: Any, entry: KindEntry, config: Config) -> Iterator[Expansion]:
    """Yield the fields of a document that the environment changes. What has a problem gets some valid value, so that
    the document has no second one there.

    Args:
        data: the document.
        entry: its kind.
        config: the settings of the run.
    """
    if entry.system != OWN_SYSTEM:
        return
    for path, text in _texts(data, entry, TEXTS):
        value, problems = _expanded(text, config)
        if value != text:
            yield Expansion(path, value, problems)
    for path, text in _texts(data, entry, CLASSES) if config.storage_classes else ():
        known = config.storage_classes.get(text)
        if known:
            yield Expansion(path, known)
        elif known is not None:
            message = f"`storageClasses` has no class for `{text}` in environment `{config.environment}`"
            hint = f"set `environments.{config.environment}.storageClasses.{text}` in kaigen.yaml"
            yield Expansion(path, text, (("KG0764", message, hint),))


def _expanded(text: str, config: Config) -> tuple[str, tuple[tuple[str, str, str], ...]]:
    found: list[tuple[str, str, str]] = []
    return _VARIABLE.sub(lambda match: _value(match[1], config, found), text), tuple(found)


def _value(name: str, config: Config, found: list[tuple[str, str, str]]) -> str:
    if name == _ENVIRONMENT and config.environment:
        return config.environment
    if name == _CLUSTER and len(config.clusters) == 1:
        return next(iter(config.clusters))
    if name == _ENVIRONMENT:
        hint = "select an environment with --env" if config.environments else "define `environments` in kaigen.yaml"
        problem = "`{environment}` is the name of an environment, and this is none"
    elif name == _CLUSTER:
        hint = f"list one cluster in `environments.{config.environment or 'NAME'}.clusters` of kaigen.yaml"
        count = len(config.clusters) or "none"
        problem = f"`{{cluster}}` is the name of the environment's cluster, and it lists {count}"
    else:
        hint = did_you_mean(name, (_ENVIRONMENT, _CLUSTER)) or "known: `{environment}`, `{cluster}`"
        problem = f"unknown variable `{{{name}}}`"
    found.append(("KG0763", problem, hint))
    return "x"


def _texts(data: Any, entry: KindEntry, names: frozenset[str]) -> Iterator[tuple[FieldPath, str]]:
    """Yield the fields of these names in the blocks of a document, with their values."""
    for field in sorted(fields_named(entry.model(), names)):
        for path, value in _reached(data, field.split("."), ()):
            if isinstance(value, str):
                yield path, value


def _reached(node: Any, steps: list[str], path: FieldPath) -> Iterator[tuple[FieldPath, Any]]:
    if not steps:
        yield path, node
        return
    step, rest = steps[0], steps[1:]
    if step == "*" and isinstance(node, dict):
        for key, value in node.items():
            yield from _reached(value, rest, (*path, key))
    elif step.endswith("[]") and isinstance(node, dict):
        entries = node.get(step.removesuffix("[]"))
        for index, value in enumerate(entries if isinstance(entries, list) else ()):
            yield from _reached(value, rest, (*path, step.removesuffix("[]"), index))
    elif isinstance(node, dict) and step in node:
        yield from _reached(node[step], rest, (*path, step))
