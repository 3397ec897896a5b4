"""Checks of the flags that a spec gives to vLLM, by the table of its version."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from difflib import get_close_matches
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from kaigen.catalog.engines import Version
from kaigen.catalog.vllm_flags import (
    Flag,
    Minor,
    environment_of,
    flags_of,
    known_range,
    minor_of,
    names_with,
    nearest_version,
    successor_of,
    version_text,
    versions_with,
)
from kaigen.compile.field_expressions import ListFlags
from kaigen.compile.problems import Problems
from kaigen.core.json_types import FieldPath, Json
from kaigen.diagnostics.diagnostic import Severity
from kaigen.diagnostics.problem import Problem, ProblemError
from kaigen.kinds.topology import TopologySpec

_ARGS: FieldPath = ("spec", "engineArgs")
PLUGINS = {"tool-parser-plugin", "reasoning-parser-plugin"}
"""Flags that load code, which may register more names."""


class Given(Struct, frozen=True):
    """A flag as a spec gives it.

    Attributes:
        name: without dashes in front, with dashes for underscores; a short name keeps its dash.
        value: its value; True for none.
        path: its place in the spec.
    """

    name: str
    value: Json
    path: FieldPath


def check_flags(spec: TopologySpec, version: Version | None, problems: Problems) -> None:
    """Report flags of `engineArgs` that the version does not have, or whose values it refuses, and unknown variables.

    Args:
        spec: the spec.
        version: of vLLM; None when it is unknown.
        problems: collects the problems; they are warnings when kaigen has no table of the version.
    """
    table = nearest_version(version)
    exact = version is not None and minor_of(version) == table
    if exact:
        _check_variables(spec, table, problems)
    given = list(given_flags(spec))
    if not given:
        if version is None:
            _warn_of_unknown(spec, "", problems)
        return
    if not exact:
        _warn_of_version(spec, version, table, problems)
    names = {each.name for each in given}
    for each in given:
        found = problem_of(each, table)
        if found is not None:
            problems.add(found if exact else replace(found, severity=Severity.WARNING))
        elif not names & PLUGINS:
            found = unregistered_problem(each, table)
            # An image of one's own may contain plugins that register more.
            if found is not None:
                is_error = exact and not spec.has_own_image
                problems.add(found if is_error else replace(found, severity=Severity.WARNING))


def _check_variables(spec: TopologySpec, version: Minor, problems: Problems) -> None:
    """Warn of variables with the prefix of vLLM's own that a known version does not read."""
    known = environment_of(version)
    for name in spec.env:
        if name.startswith("VLLM_") and name not in known:
            near = get_close_matches(name, known, n=1, cutoff=0.75)
            hint = f"did you mean `{near[0]}`?" if near else "delete it, unless a plugin reads it"
            message = f"vLLM {version_text(version)} does not read `{name}`"
            problems.warning("KG0361", message, ("spec", "env", name), hint)


def list_flags(version: Version | None) -> ListFlags:
    """Return how the flags of a version of vLLM, the newest for None, take several values."""
    table = nearest_version(version)
    return ListFlags(json=names_with(table, "json"), repeated=names_with(table, "repeat"))


def _warn_of_unknown(spec: TopologySpec, checked: str, problems: Problems) -> None:
    """Warn of an image whose version is unknown.

    Args:
        spec: the spec.
        checked: what follows from it for `engineArgs`.
        problems: collects the warning.
    """
    field = "image" if spec.image is not None else "build" if spec.build is not None else "engine"
    message = f"the version of vLLM in the image is unknown, so kaigen sets no flags of recent versions{checked}"
    problems.warning("KG0362", message, ("spec", field), "set `engineVersion` to the version of vLLM in the image")


def _warn_of_version(spec: TopologySpec, version: Version | None, table: Minor, problems: Problems) -> None:
    shown = version_text(table)
    if version is None:
        _warn_of_unknown(spec, f", and checks `engineArgs` as those of {shown}", problems)
        return
    message = f"kaigen does not have the flags of vLLM {version_text(version)}; they are checked as those of {shown}"
    problems.warning("KG0362", message, _ARGS, f"known: {known_range()}")


def given_flags(spec: TopologySpec) -> Iterator[Given]:
    """Yield the flags that a spec gives."""
    if spec.quantization is not None:
        yield Given("quantization", spec.quantization, ("spec", "quantization"))
    args = spec.engine_args
    if isinstance(args, dict):
        for written, value in args.items():
            yield Given(_name(written), value, (*_ARGS, written))
        return
    yield from given_in(args)


def flag_values(spec: TopologySpec) -> dict[str, Json]:
    """Return the values of a spec's `engineArgs` by name; True for a flag without a value."""
    return {each.name: each.value for each in given_flags(spec) if each.path[: len(_ARGS)] == _ARGS}


def given_in(arguments: Sequence[str]) -> Iterator[Given]:
    """Yield the flags in a list of arguments."""
    for index, argument in enumerate(arguments):
        if argument.startswith("-") and not _is_number(argument):
            written, equals, value = argument.partition("=")
            after = arguments[index + 1] if index + 1 < len(arguments) else "-"
            following: Json = True if after.startswith("-") and not _is_number(after) else after
            yield Given(_name(written), value if equals else following, (*_ARGS, index))


def json_of(value: object) -> Mapping[str, Any]:
    """Return a mapping that a flag is given, also as text; an empty one for any other value."""
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except ValueError:
            return {}
    return value if isinstance(value, dict) else {}


def _name(written: str) -> str:
    short = written.startswith("-") and not written.startswith("--")
    return written if short else written.removeprefix("--").replace("_", "-")


def problem_of(given: Given, version: Minor) -> Problem | None:
    """Return what is wrong with a flag in a known version; None for nothing."""
    name, _, field = given.name.partition(".")
    flag = flags_of(version).get(name)
    if flag is None:
        message, hint = _unknown(name, version)
        return Problem("KG0361", message, given.path, hint)
    wrong = "" if field else _wrong_value(flag, given)
    if wrong:
        return Problem("KG0361", f"`--{name}` {wrong}", given.path)
    if flag.deprecated:
        message = f"vLLM {version_text(version)} deprecates `--{name}`"
        return Problem("KG0361", message, given.path, flag.deprecated.rstrip("."), Severity.WARNING)
    return None


def unregistered_problem(given: Given, version: Minor) -> Problem | None:
    """Return that a version of vLLM does not register a name, such as that of a parser; None where it does."""
    flag = flags_of(version).get(given.name)
    if flag is None or not flag.registered or given.value in flag.registered:
        return None
    message = f"vLLM {version_text(version)} does not have `{given.value}` for `--{given.name}`"
    hint = ProblemError.unknown("KG0361", "name", str(given.value), flag.registered, given.path).hint
    return Problem("KG0361", message, given.path, hint)


def _unknown(name: str, version: Minor) -> tuple[str, str]:
    """Return message and hint about a flag that a version does not have."""
    message = f"vLLM {version_text(version)} has no flag `--{name}`, and does not start with it"
    others = versions_with(name)
    earlier = [other for other in others if other < version]
    later = [other for other in others if other > version]
    if earlier:
        message += f"; {version_text(earlier[-1])} still had it"
    elif later:
        message += f"; it is in {version_text(later[0])} and later"
    successor = successor_of(name, version)
    if successor:
        return message, f"use {successor}"
    near = get_close_matches(name, flags_of(version), n=1, cutoff=0.75)
    return message, f"did you mean `--{near[0]}`?" if near else "delete it"


def _wrong_value(flag: Flag, given: Given) -> str:
    """Return what is wrong with a value, to follow the flag's name; empty for nothing."""
    value = given.value
    if not flag.type:
        return "" if isinstance(value, bool) or given.name.startswith("-") else _not_a_switch(value)
    if isinstance(value, bool):
        return "" if value and flag.many else "requires a value"
    values = value if isinstance(value, list) and flag.many in {"list", "repeat"} else [value]
    for each in values:
        wrong = _wrong_type(flag, each)
        if wrong:
            return wrong
    return ""


def _not_a_switch(value: Json) -> str:
    # In a list of arguments, the word after a switch is an argument of its own.
    return "" if isinstance(value, str) else f"is a switch: use true or false, not {json.dumps(value)}"


def _wrong_type(flag: Flag, value: Json) -> str:
    shown = value if isinstance(value, str) else json.dumps(value)
    if flag.choices:
        if shown in flag.choices:
            return ""
        near = get_close_matches(shown, flag.choices, n=1)
        listed = f"did you mean `{near[0]}`?" if near else f"use one of {', '.join(flag.choices)}"
        return f"does not accept `{shown}`: {listed}"
    if flag.type == "json":
        return "" if not isinstance(value, str) or _is_json(value) else f"requires JSON, not `{shown}`"
    if flag.type in {"int", "float"} and shown not in flag.words and not _is_number(shown, whole=flag.type == "int"):
        kind = "a whole number" if flag.type == "int" else "a number"
        words = "".join(f" or `{word}`" for word in flag.words)
        return f"requires {kind}{words}, not `{shown}`"
    return ""


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except ValueError:
        return False
    return True


def _is_number(text: str, *, whole: bool = False) -> bool:
    """Return whether a text is a number; sizes such as `8k` and `1.5M` count as whole ones."""
    digits = text.removesuffix("i").rstrip("kKmMgGtT") if whole else text
    try:
        float(digits)
    except ValueError:
        return False
    return not whole or digits != text or "." not in digits
