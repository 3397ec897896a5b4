"""What the definitions of custom kinds say in addition to their schemas: rules in CEL, and defaults."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from kaigen.check import codes
from kaigen.check.cel import CelError, evaluate
from kaigen.core.json_types import FieldPath
from kaigen.diagnostics.diagnostic import Severity
from kaigen.diagnostics.problem import Problem
from kaigen.kubernetes.manifest import Object
from kaigen.kubernetes.schemas import custom_rules

if TYPE_CHECKING:
    from kaigen.kubernetes.schema_nodes import CustomRules, RulePlace


def custom_findings(obj: Object, old: Object | None = None) -> Iterator[Problem]:
    """Yield the rules of its kind that an object breaks.

    Args:
        obj: an object that fits its schema.
        old: the object before a change: only the rules that compare with it are then evaluated.
    """
    found = custom_rules(obj.get("apiVersion"), obj.get("kind"))
    if found is None:
        return
    place, rules = found
    before = None if old is None else _with_defaults(place, old)
    yield from _Walk(rules, old is not None).findings(place, _with_defaults(place, obj), before, ())


def default_findings(obj: Object) -> Iterator[Problem]:
    """Yield a warning for each default that the API server adds inside of a list that the syncer owns as a whole.

    Argo CD compares such a list with what it applied, finds a difference that no sync removes, and never stops
    syncing. Flux compares with the answer of the API server.
    """
    found = custom_rules(obj.get("apiVersion"), obj.get("kind"))
    if found is not None:
        yield from _added(found[0], obj, (), False)


def _added(place: RulePlace, value: Any, path: FieldPath, whole: bool) -> Iterator[Problem]:
    if whole and isinstance(value, dict):
        for key, child in place.get("p", {}).items():
            if "default" in child and value.get(key) is None:
                added = json.dumps(_with_defaults(child, child["default"]))
                message = f"the API server adds `{key}: {added}` here, so Argo CD never sees the object as synced"
                yield Problem(codes.DEFAULT_IN_LIST, message, path, f"set {key}: {added}", Severity.WARNING)
    for step, inner, item, _ in _children(place, value, None):
        yield from _added(inner, item, (*path, step), whole or "whole" in place)


def _with_defaults(place: RulePlace, value: Any) -> Any:
    """Return a value as the API server completes it before it evaluates rules."""
    if isinstance(value, dict):
        children = place.get("p", {})
        whole = dict(value)
        for key, child in children.items():
            if "default" in child and (key not in whole or (whole[key] is None and "null" not in child)):
                whole[key] = child["default"]
        inner = place.get("m")
        for key, item in whole.items():
            found = children.get(key, inner)
            if found is not None:
                whole[key] = _with_defaults(found, item)
        return whole
    if isinstance(value, list) and "l" in place:
        return [_with_defaults(place["l"], item) for item in value]
    return value


class _Walk:
    """Evaluates the rules of one kind, of objects or of changes."""

    def __init__(self, rules: CustomRules, compares: bool) -> None:
        self._rules = rules
        self._compares = compares

    def findings(self, place: RulePlace, value: Any, old: Any, path: FieldPath) -> Iterator[Problem]:
        if value is None or (self._compares and old is None):
            return
        for number in place.get("then", ()) if self._compares else place.get("rules", ()):
            rule, message = self._rules[number]
            try:
                if evaluate(rule, {"self": value, "oldSelf": old}) is not True:
                    yield Problem(codes.CUSTOM_RULE, message, path)
            except CelError as error:
                yield Problem(codes.CUSTOM_RULE, f"{message} (no answer: {error})", path)
        for key, child, item, before in _children(place, value, old):
            yield from self.findings(child, item, before, (*path, key))


def _children(place: RulePlace, value: Any, old: Any) -> Iterator[tuple[str | int, RulePlace, Any, Any]]:
    """Yield key, place and value of each part of a value, with the part of the old value that it is compared with."""
    if isinstance(value, dict):
        children, inner = place.get("p", {}), place.get("m")
        for key, item in value.items():
            child = children.get(key, inner)
            if child is not None:
                yield key, child, item, old.get(key) if isinstance(old, dict) else None
    elif isinstance(value, list) and (inner := place.get("l")) is not None:
        # Items of a list without keys have no old value.
        keys = place.get("k", [])
        before: list[object] = old if isinstance(old, list) and keys else []
        known = {_key(item, keys): item for item in before}
        for number, item in enumerate(value):
            yield number, inner, item, known.get(_key(item, keys))


def _key(item: object, keys: list[str]) -> tuple[object, ...]:
    return tuple(str(item.get(key)) for key in keys) if isinstance(item, Mapping) else ()
