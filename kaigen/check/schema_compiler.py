"""Compiles the nodes of `kaigen.kubernetes.schemas` to functions that check values.

A node is compiled at its first value and kept, so a process compiles only the fields that it meets. The functions
return None for a valid value. Paths are built on the way up, so that a valid object costs no bookkeeping.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from kaigen.check import codes
from kaigen.check.atoms import ATOMS, Check, Mismatch, between, bounds, long_enough, matching, one_of, wrong_type
from kaigen.check.conditions import rule_problems
from kaigen.check.forms import FORMS
from kaigen.core.text import describe
from kaigen.diagnostics.suggest import did_you_mean
from kaigen.kubernetes.schemas import definition

if TYPE_CHECKING:
    from kaigen.kubernetes.schema_nodes import Mapping, Node, Scalar

# A leaf without limits is the type itself: the most frequent check is then one comparison without a call.
Field = Check | type
LEAVES: dict[str, type] = {"s": str, "b": bool}
CHECKS = {**ATOMS, **FORMS}
_CORE = re.compile(r"\.v[0-9]+((alpha|beta)[0-9]+)?/")
"""In names of definitions of Kubernetes; those of custom resources have the group and no version before the `/`."""


class Schemas:
    """The compiled schemas of one Kubernetes version."""

    def __init__(self, target: str) -> None:
        self.target = target
        self._known: dict[str, Check] = {}
        # In custom resources null is a value. In others it is as if the field were not there.
        self._custom = False

    def check_of(self, ref: str) -> Check:
        """Return the check of a definition, named `SHARD/NAME`.

        Raises:
            KeyError: the target has no such definition.
        """
        check = self._known.get(ref)
        if check is None:
            found = definition(ref, self.target)
            if found is None:
                raise KeyError(ref)
            before, self._custom = self._custom, _CORE.search(ref) is None
            try:
                check = self._known[ref] = self._call(self._compile(found))
            finally:
                self._custom = before
        return check

    def _compile(self, node: Node) -> Field:
        if isinstance(node, str):
            if "/" in node:
                return self.check_of(node)
            return LEAVES.get(node) or CHECKS[node]
        if "p" in node:
            check = self._object(node)
        elif "m" in node:
            check = self._map(node)
        elif "l" in node:
            check = self._list(node)
        else:
            check = scalar(node)
        extra = self._combinations(node)
        if extra:
            check = every([check, *extra])
        if node.get("blank"):
            check = or_else("", check)
        return or_else(None, check) if node.get("null") else check

    def _call(self, field: Field) -> Check:
        """Return the check of a field as a function."""
        return ATOMS["s" if field is str else "b"] if isinstance(field, type) else field

    def _object(self, node: Mapping) -> Check:
        nodes = node["p"]
        required = tuple(node.get("r", ()))
        union = node.get("u")
        members = frozenset(union[1]) if union else frozenset()
        free = bool(node.get("open"))
        least, most = node.get("min"), node.get("max")
        counted = least is not None or most is not None
        rules = node.get("rules", ())
        fields: dict[str, Field] = {}
        custom = self._custom

        def compile_node(child: Node) -> Field:
            # Compiled at its first value, when another definition may be in progress.
            before, self._custom = self._custom, custom
            try:
                return self._compile(child)
            finally:
                self._custom = before

        def check(value: object) -> list[Mismatch] | None:
            if value.__class__ is not dict and not isinstance(value, dict):
                return wrong_type("a mapping", value)
            assert isinstance(value, dict)
            problems: list[Mismatch] = []
            for key, child in value.items():
                field = fields.get(key)
                if field is child.__class__:
                    continue
                if field is None:
                    if key not in nodes:
                        if not free:
                            problems.append(unknown_field(key, nodes, value))
                        continue
                    field = fields[key] = compile_node(nodes[key])
                if child is None and not custom and key not in required:
                    continue
                found = leaf_problem(field, child) if isinstance(field, type) else field(child)
                if found is not None:
                    for problem in found:
                        problem.path.append(key)
                    problems += found
            if required:
                problems += missing_fields(required, value)
            if union is not None:
                given = members & value.keys()
                if len(given) != 1 or not value[next(iter(given))]:
                    problems += union_problems(union, value)
            if counted:
                problems += count_problems(len(value), "entries", least, most)
            for when, then in rules:
                problems += rule_problems(when, then, value)
            return problems or None

        return check

    def _map(self, node: Mapping) -> Check:
        field = self._compile(node["m"])
        least, most = node.get("min"), node.get("max")
        counted = least is not None or most is not None
        key_check = CHECKS[node["keys"]] if "keys" in node else None
        custom = self._custom

        def check(value: object) -> list[Mismatch] | None:
            if value.__class__ is not dict and not isinstance(value, dict):
                return wrong_type("a mapping", value)
            assert isinstance(value, dict)
            problems: list[Mismatch] = []
            for key, child in value.items():
                wrong_key = key_check(key) if key_check is not None else None
                if wrong_key is not None:
                    wrong_key[0].path.append(str(key))
                    problems += wrong_key
                    continue
                if field is child.__class__ and key.__class__ is str:
                    continue
                if child is None and not custom:
                    continue
                if not isinstance(key, str):
                    found: list[Mismatch] | None = wrong_type("a string", key)
                else:
                    found = leaf_problem(field, child) if isinstance(field, type) else field(child)
                if found is not None:
                    for problem in found:
                        problem.path.append(str(key))
                    problems += found
            if counted:
                problems += count_problems(len(value), "entries", least, most)
            return problems or None

        return check

    def _list(self, node: Mapping) -> Check:
        field = self._compile(node["l"])
        least, most = node.get("min"), node.get("max")
        counted = least is not None or most is not None
        custom = self._custom
        keys = node.get("k")
        defaults = node.get("kd", {})
        distinct = bool(node.get("set"))

        def check(value: object) -> list[Mismatch] | None:
            if value.__class__ is not list and not isinstance(value, (list, tuple)):
                return wrong_type("a list", value)
            assert isinstance(value, (list, tuple))
            problems: list[Mismatch] = []
            for place, child in enumerate(value):
                if field is child.__class__ or (child is None and not custom and isinstance(field, type)):
                    continue
                found = leaf_problem(field, child) if isinstance(field, type) else field(child)
                if found is not None:
                    for problem in found:
                        problem.path.append(place)
                    problems += found
            if len(value) > 1 and not problems:
                if keys is not None:
                    problems += repeated_keys(value, keys, defaults)
                elif distinct:
                    problems += repeated_items(value)
            if counted:
                problems += count_problems(len(value), "items", least, most)
            return problems or None

        return check

    def _combinations(self, node: Mapping) -> list[Check]:
        checks: list[Check] = []
        for name, most in (("one", 1), ("any", None)):
            parts = node.get(name)
            if isinstance(parts, list):
                forms = [self._call(self._compile(part)) for part in parts]
                checks.append(fitting(forms, most, node.get("kd", {})))
        if "none" in node:
            checks.append(not_fitting(self._call(self._compile(node["none"]))))
        return checks


def scalar(node: Mapping) -> Check:
    """Return the check of a scalar with its limits."""
    checks: list[Check] = []
    if "enum" in node:
        checks.append(one_of(node["enum"]))
    elif "t" in node:
        checks.append(CHECKS[node["t"]])
    if "re" in node:
        checks.append(matching(node["re"]))
    if "min" in node or "max" in node:
        checks.append(between(node.get("min"), node.get("max")))
    if "minlen" in node or "maxlen" in node:
        checks.append(long_enough(node.get("minlen"), node.get("maxlen")))
    return checks[0] if len(checks) == 1 else every(checks)


def every(checks: Sequence[Check]) -> Check:
    """Return a check that runs all checks until one fails."""

    def check(value: object) -> list[Mismatch] | None:
        for part in checks:
            found = part(value)
            if found is not None:
                return found
        return None

    return check


def or_else(passes: str | None, check: Check) -> Check:
    """Return a check that accepts one more value."""
    return lambda value: None if value == passes else check(value)


def fitting(parts: Sequence[Check], most: int | None, defaults: dict[str, Scalar]) -> Check:
    """Return the check that a value with its defaults matches at least one, or exactly one, of several forms."""

    def check(value: object) -> list[Mismatch] | None:
        if defaults and isinstance(value, dict):
            value = {**defaults, **{key: child for key, child in value.items() if child is not None}}
        found = [part(value) for part in parts]
        matches = sum(problems is None for problems in found)
        if matches == 0:
            return next(problems for problems in found if problems is not None)
        if most is not None and matches > most:
            return [Mismatch(codes.BAD_VALUE, f"matches {matches} mutually exclusive forms")]
        return None

    return check


def not_fitting(part: Check) -> Check:
    """Return the check that a value does not match a form."""

    def check(value: object) -> list[Mismatch] | None:
        return [Mismatch(codes.BAD_VALUE, f"must not be {describe(value)}")] if part(value) is None else None

    return check


def leaf_problem(leaf: type, value: object) -> list[Mismatch] | None:
    """Check a value that is not exactly of the type of a leaf; subclasses of str are strings."""
    return ATOMS["s" if leaf is str else "b"](value)


def unknown_field(key: object, nodes: dict[str, Node], value: dict[str, object]) -> Mismatch:
    """Return the mismatch of a field that the schema does not have."""

    def hint() -> str:
        meant = did_you_mean(str(key), [name for name in nodes if name not in value])
        return meant or (f"known fields are {', '.join(sorted(nodes))}" if 0 < len(nodes) <= 12 else "")

    return Mismatch(codes.UNKNOWN_FIELD, f"unknown field `{key}`", hint, [str(key)])


def missing_fields(required: Sequence[str], value: dict[str, object]) -> list[Mismatch]:
    """Return the mismatches of required fields that a mapping does not have."""
    return [Mismatch(codes.MISSING_FIELD, f"missing field `{key}`") for key in required if key not in value]


def union_problems(union: tuple[int, list[str]], value: dict[str, object]) -> list[Mismatch]:
    """Return the mismatch of too few or too many of mutually exclusive fields."""
    least, members = union
    # An empty list is as none: the API server cannot tell them apart.
    given = [name for name in members if value.get(name) not in (None, [])]
    if least <= len(given) <= 1:
        return []
    if given:
        return [Mismatch(codes.FIELD_CONFLICT, f"{' and '.join(given)} are mutually exclusive")]
    few = f"needs one of {', '.join(members)}" if len(members) <= 8 else "needs a source"
    return [Mismatch(codes.FIELD_CONFLICT, few)]


def count_problems(count: int, what: str, least: float | None, most: float | None) -> list[Mismatch]:
    """Return the mismatch of too few or too many entries or items."""
    if (least is None or count >= least) and (most is None or count <= most):
        return []
    if count == 0:
        return [Mismatch(codes.OUT_OF_RANGE, "must not be empty")]
    return [Mismatch(codes.OUT_OF_RANGE, f"must have {bounds(least, most)} {what}, not {count}")]


def repeated_keys(
    items: Sequence[dict[str, object]], keys: Sequence[str], defaults: dict[str, Scalar]
) -> list[Mismatch]:
    """Return the mismatches of list items that share the keys by which the server distinguishes them."""
    if len(keys) == 1:
        key = keys[0]
        names: list[object] = [item.get(key) for item in items]
    else:
        names = [tuple([item.get(key, defaults.get(key)) for key in keys]) for item in items]
    if len(set(names)) == len(names):
        return []
    problems = []
    first: dict[object, int] = {}
    for index, name in enumerate(names):
        if first.setdefault(name, index) != index:
            shown = " and ".join(
                f"{key} {describe(part)}"
                for key, part in zip(keys, name if isinstance(name, tuple) else [name], strict=True)
            )
            message = f"has the same {shown} as item {first[name]}"
            problems.append(Mismatch(codes.DUPLICATE_ENTRY, message, path=[index]))
    return problems


def repeated_items(items: Sequence[object]) -> list[Mismatch]:
    """Return the mismatches of equal items of a set."""
    problems = []
    for place, item in enumerate(items):
        if item in items[:place]:
            message = f"duplicate item {describe(item)}"
            problems.append(Mismatch(codes.DUPLICATE_ENTRY, message, path=[place]))
    return problems
