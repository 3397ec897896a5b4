"""Is this an object that the API server of a target version takes?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kaigen.check import codes
from kaigen.check.atoms import Check, describe
from kaigen.check.rules import rule_findings
from kaigen.check.schema import Schemas
from kaigen.diagnostics.diagnostic import Severity
from kaigen.diagnostics.problem import Problem
from kaigen.kubernetes.schemas import definition, index
from kaigen.kubernetes.versions import DEFAULT_VERSION, SUPPORTED_VERSIONS

if TYPE_CHECKING:
    from kaigen.kubernetes.schema_nodes import Kind

_schemas: dict[str, Schemas] = {}
_checks: dict[tuple[str, object, object], Check] = {}


def check_object(obj: dict[str, object], *, target: str = DEFAULT_VERSION) -> list[Problem]:
    """Check an object against the schema of its kind, and against the rules that no schema can say.

    Args:
        obj: one Kubernetes object of plain values.
        target: one of `SUPPORTED_VERSIONS`.

    Returns:
        All findings, in the order of the object.

    Raises:
        ValueError: the target is not supported.
    """
    api_version, kind = obj.get("apiVersion"), obj.get("kind")
    try:
        check = _checks[target, api_version, kind]
    except (KeyError, TypeError):
        found = _find_check(target, api_version, kind)
        if isinstance(found, Problem):
            return [found]
        check = _checks[target, api_version, kind] = found
    findings: list[Problem] = []
    if "sops" in obj:  # SOPS adds its own block beside the encrypted values and takes it out again
        obj = {key: value for key, value in obj.items() if key != "sops"}
    problems = check(obj)
    if problems is not None:
        findings = [Problem(p.code, p.message, tuple(reversed(p.path)), p.hint) for p in problems]
    findings += rule_findings(obj)
    entry = index()["kinds"][str(kind)][str(api_version)]
    if "deprecated" in entry:
        findings.append(_deprecated(str(kind), str(api_version), target))
    return findings


def _find_check(target: str, api_version: object, kind: object) -> Check | Problem:
    """The check of a kind, or why there is none."""
    if target not in SUPPORTED_VERSIONS:
        raise ValueError(f"no schemas of Kubernetes {target}; there are {', '.join(SUPPORTED_VERSIONS)}")
    kinds = index()["kinds"]
    for name, value in (("apiVersion", api_version), ("kind", kind)):
        if value is None:
            return Problem(codes.MISSING_FIELD, f"lacks the field `{name}`", ())
        if not isinstance(value, str):
            return Problem(codes.WRONG_TYPE, f"must be a string, not {describe(value)}", (name,))
    assert isinstance(api_version, str)
    assert isinstance(kind, str)
    versions = kinds.get(kind)
    if versions is None:
        from kaigen.diagnostics.suggest import did_you_mean

        hint = did_you_mean(kind, kinds)
        return Problem(codes.UNKNOWN_KIND, f"unknown kind `{kind}`", ("kind",), hint)
    entry = versions.get(api_version)
    if entry is None:
        return Problem(
            codes.UNKNOWN_KIND,
            f"no kind `{kind}` in {api_version}",
            ("apiVersion",),
            _served_by(versions, target),
        )
    schemas = _schemas.get(target)
    if schemas is None:
        schemas = _schemas[target] = Schemas(target)
    try:
        if "ref" in entry:
            return schemas.check_of(entry["ref"])
    except KeyError:
        pass
    return Problem(
        codes.KIND_NOT_SERVED,
        f"{api_version} {kind} is not served by Kubernetes {target}{_when(entry)}",
        ("apiVersion",),
        _served_by(versions, target),
    )


def _when(entry: Kind) -> str:
    """From when to when a kind was served, where that is known."""
    if "until" in entry:
        return f": it was removed after {entry['until']}"
    if "since" in entry:
        return f": it came with {entry['since']}"
    return ""


def _served_by(versions: dict[str, Kind], target: str) -> str:
    """A hint that names the API versions in which a target serves a kind."""
    served = [
        name
        for name, entry in versions.items()
        if "ref" in entry and definition(entry["ref"], target) is not None and "deprecated" not in entry
    ]
    # The most settled ones: v1 before v1beta2 before v1alpha1.
    mature = [name for name in served if "alpha" not in name and "beta" not in name]
    stable = mature or [name for name in served if "alpha" not in name] or served
    return f"use apiVersion {' or '.join(sorted(stable))}" if stable else ""


def _deprecated(kind: str, api_version: str, target: str) -> Problem:
    hint = _served_by(index()["kinds"][kind], target)
    message = f"{api_version} {kind} is deprecated"
    return Problem(codes.KIND_DEPRECATED, message, ("apiVersion",), hint, Severity.WARNING)
