"""For code scanning: SARIF 2.1.0, as GitHub, GitLab and editors read it."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from urllib.parse import quote

from kaigen import __version__
from kaigen.core.json_types import JsonObject
from kaigen.diagnostics.codes import code_url, codes
from kaigen.diagnostics.diagnostic import Diagnostic, Mark, Severity
from kaigen.diagnostics.reporters.summary import LONGEST_LINE, fingerprints

SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"


_PROBLEMS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.NOTE: "recommendation"}
_GROUPS = {"KG01": "syntax", "KG02": "fields", "KG03": "references", "KG04": "dialects", "KG05": "kubernetes"}


def render(diagnostics: Sequence[Diagnostic], *, color: bool = False, files: Sequence[str] = ()) -> str:
    """The report; its rules are the codes that occur."""
    codes = sorted({item.code for item in diagnostics})
    rules = {code: place for place, code in enumerate(codes)}
    driver: JsonObject = {
        "name": "kaigen",
        "semanticVersion": __version__,
        "rules": [_rule(code, diagnostics) for code in codes],
    }
    marks = fingerprints(diagnostics)
    run: JsonObject = {
        "tool": {"driver": driver},
        "columnKind": "unicodeCodePoints",
        "artifacts": [{"location": {"uri": uri(file)}} for file in dict.fromkeys(files)],
        "results": [_result(item, rules[item.code], mark) for item, mark in zip(diagnostics, marks, strict=True)],
    }
    return json.dumps({"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}, indent=2) + "\n"


def _rule(code: str, diagnostics: Sequence[Diagnostic]) -> JsonObject:
    """The rule of a code; code scanning sorts rules by their worst severity."""
    known = codes().get(code)
    if known is None:
        return {"id": code}
    worst = max(item.severity for item in diagnostics if item.code == code)
    return {
        "id": code,
        "name": code,
        "shortDescription": {"text": known.title},
        "fullDescription": {"text": known.explanation},
        "helpUri": code_url(code),
        "help": {"text": known.explanation, "markdown": f"**{known.title}**\n\n{known.explanation}"},
        "defaultConfiguration": {"level": worst.label},
        "properties": {"tags": [_GROUPS.get(code[:4], "checks")], "problem.severity": _PROBLEMS[worst]},
    }


def _result(item: Diagnostic, rule: int, fingerprint: str) -> JsonObject:
    text = item.message + (f"; {item.hint}" if item.hint else "")
    result: JsonObject = {
        "ruleId": item.code,
        "ruleIndex": rule,
        "level": item.severity.label,
        "message": {"text": text},
        # By this, code scanning knows a problem again when lines above it come or go.
        "partialFingerprints": {"primaryLocationLineHash": fingerprint},
    }
    if item.mark:
        location: JsonObject = {"physicalLocation": _physical(item.mark)}
        if item.path:
            location["logicalLocations"] = [{"fullyQualifiedName": item.path, "kind": "member"}]
        result["locations"] = [location]
    return result


def _physical(mark: Mark) -> JsonObject:
    place: JsonObject = {"artifactLocation": {"uri": uri(mark.file)}}
    if mark.line:
        region: JsonObject = {"startLine": mark.line}
        if mark.column:
            region |= {"startColumn": mark.column, "endColumn": mark.column + max(mark.length, 1)}
        if 0 < len(mark.text) <= LONGEST_LINE:
            region["snippet"] = {"text": mark.text}
        place["region"] = region
    return place


def uri(path: str) -> str:
    """A path as a URI reference: relative ones stay relative to where kaigen ran."""
    quoted = quote(os.fsencode(path))
    return f"file://{quoted}" if path.startswith("/") else quoted
