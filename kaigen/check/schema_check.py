"""Checks whether the API server of a Kubernetes version accepts an object."""

from __future__ import annotations

from functools import cache, lru_cache
from typing import TYPE_CHECKING

from msgspec.structs import replace

from kaigen.check import codes
from kaigen.check.atoms import Check
from kaigen.check.custom_rules import custom_findings
from kaigen.check.object_rules import rule_findings
from kaigen.check.schema_compiler import Schemas
from kaigen.core.json_types import FieldPath
from kaigen.core.text import describe
from kaigen.diagnostics.diagnostic import Severity
from kaigen.diagnostics.problem import MOST, Problem
from kaigen.diagnostics.suggest import did_you_mean
from kaigen.kubernetes.manifest import group_of
from kaigen.kubernetes.pods import pod_templates
from kaigen.kubernetes.schemas import (
    DEFAULT_VERSION,
    SUPPORTED_VERSIONS,
    definition,
    index,
    kinds_of_group,
    may_be_custom,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kaigen.kubernetes.schema_nodes import Kind

_METADATA = "meta.v1/ObjectMeta"
_POD_SPEC = "core.v1/PodSpec"
_WITH_PODS = frozenset({"", "apps", "batch"})
"""The groups whose schemas have the rules of pods."""


def check_object(obj: dict[str, object], *, target: str = DEFAULT_VERSION) -> list[Problem]:
    """Check an object against the schema of its kind, and against the rules that no schema contains.

    Args:
        obj: one Kubernetes object of plain values.
        target: one of `SUPPORTED_VERSIONS`.

    Returns:
        All problems, in the order of the object.

    Raises:
        ValueError: the target is not supported.
    """
    api_version, kind = obj.get("apiVersion"), obj.get("kind")
    if isinstance(api_version, str) and isinstance(kind, str):
        check = _find_check(target, api_version, kind)
    else:
        check = _missing_type(api_version, kind)
    if isinstance(check, Problem):
        unknown = check.severity is Severity.ERROR
        return [check] if unknown else [check, *_metadata_problems(obj, target)]
    findings: list[Problem] = []
    if "sops" in obj:  # SOPS adds this block next to the encrypted values and removes it when it decrypts
        obj = {key: value for key, value in obj.items() if key != "sops"}
    findings += _problems(check, obj)
    # As in the API server, rules of custom kinds see objects that fit their schema.
    broken = [] if findings else list(custom_findings(obj))
    findings += _pod_problems(obj, target, {each.path for each in findings})
    findings += rule_findings(obj)
    findings += broken
    entry = index()["kinds"][str(kind)][str(api_version)]
    if "deprecated" in entry:
        findings.append(_deprecated(str(kind), str(api_version), target))
    return findings


def _metadata_problems(obj: dict[str, object], target: str) -> Iterator[Problem]:
    """Return the problems of the metadata, which every kind has, also one without a schema."""
    metadata = obj.get("metadata")
    if metadata is not None:
        for problem in _problems(_schemas(target).check_of(_METADATA), metadata):
            yield replace(problem, path=("metadata", *problem.path))


def _pod_problems(obj: dict[str, object], target: str, known: set[FieldPath]) -> Iterator[Problem]:
    """Return what the API server would say of the pods of a custom kind, whose own schema has few rules of pods."""
    if group_of(obj) in _WITH_PODS:
        return
    for template in pod_templates(obj):
        if template.single:
            continue
        for problem in _problems(_schemas(target).check_of(_POD_SPEC), template.spec):
            path = template.place(problem.path)
            if path not in known and problem.code != codes.UNKNOWN_FIELD:
                yield replace(problem, path=path)


def _problems(check: Check, value: object) -> list[Problem]:
    return [
        # Only problems that are reported need hints.
        Problem(p.code, p.message, tuple(reversed(p.path)), p.hint if number < MOST else "")
        for number, p in enumerate(check(value) or ())
    ]


def _missing_type(api_version: object, kind: object) -> Problem:
    """Return the problem of an object whose apiVersion or kind is not a string."""
    name, value = ("kind", kind) if isinstance(api_version, str) else ("apiVersion", api_version)
    if value is None:
        return Problem(codes.MISSING_FIELD, f"missing field `{name}`", ())
    return Problem(codes.WRONG_TYPE, f"must be a string, not {describe(value)}", (name,))


@lru_cache(maxsize=1024)
def _find_check(target: str, api_version: str, kind: str) -> Check | Problem:
    """Return the check of a kind, or the problem when there is none."""
    if target not in SUPPORTED_VERSIONS:
        raise ValueError(f"no schemas of Kubernetes {target}; there are {', '.join(SUPPORTED_VERSIONS)}")
    kinds = index()["kinds"]
    versions = kinds.get(kind)
    if (versions is None or api_version not in versions) and may_be_custom(api_version, kind):
        return _unchecked(api_version, kind, versions or {}, target)
    if versions is None:
        hint = did_you_mean(kind, kinds)
        return Problem(codes.UNKNOWN_KIND, f"unknown kind `{kind}`", ("kind",), hint)
    entry = versions.get(api_version)
    if entry is None:
        return Problem(
            codes.UNKNOWN_KIND, f"no kind `{kind}` in {api_version}", ("apiVersion",), _served_by(versions, target)
        )
    try:
        if "ref" in entry:
            return _schemas(target).check_of(entry["ref"])
    except KeyError:
        pass
    return Problem(
        codes.KIND_NOT_SERVED,
        f"{api_version} {kind} is not served by Kubernetes {target}{_when(entry)}",
        ("apiVersion",),
        _served_by(versions, target),
    )


def _unchecked(api_version: str, kind: str, versions: dict[str, Kind], target: str) -> Problem:
    """Return the note about a custom kind without a schema; a warning when its group has similar kinds or versions."""
    group = api_version.rpartition("/")[0]
    same = {name: entry for name, entry in versions.items() if name.rpartition("/")[0] == group}
    hint = _served_by(same, target) if same else did_you_mean(kind, kinds_of_group(group))
    return Problem(
        codes.UNCHECKED_KIND,
        f"kaigen has no schema of {api_version} {kind}, so its fields were not checked",
        ("apiVersion",) if same else ("kind",),
        hint,
        Severity.WARNING if hint else Severity.NOTE,
    )


@cache
def _schemas(target: str) -> Schemas:
    return Schemas(target)


def _when(entry: Kind) -> str:
    """Describe when a kind was served, where that is known."""
    if "until" in entry:
        return f": it was removed after {entry['until']}"
    if "since" in entry:
        return f": it was added in {entry['since']}"
    return ""


def _served_by(versions: dict[str, Kind], target: str) -> str:
    """Return a hint with the API versions in which a target serves a kind."""
    served = [
        name
        for name, entry in versions.items()
        if "ref" in entry and definition(entry["ref"], target) is not None and "deprecated" not in entry
    ]
    # The most stable ones: v1 before v1beta2 before v1alpha1.
    mature = [name for name in served if "alpha" not in name and "beta" not in name]
    stable = mature or [name for name in served if "alpha" not in name] or served
    return f"use apiVersion {' or '.join(sorted(stable))}" if stable else ""


def _deprecated(kind: str, api_version: str, target: str) -> Problem:
    hint = _served_by(index()["kinds"][kind], target)
    message = f"{api_version} {kind} is deprecated"
    return Problem(codes.KIND_DEPRECATED, message, ("apiVersion",), hint, Severity.WARNING)
