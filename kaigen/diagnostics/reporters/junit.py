"""For test dashboards: JUnit's XML, a test case a file, failed when the file has an error."""

from __future__ import annotations

from collections.abc import Sequence
from xml.etree import ElementTree

from kaigen.core.text import plural
from kaigen.diagnostics.diagnostic import Diagnostic, Severity
from kaigen.diagnostics.reporters.summary import safe_text
from kaigen.diagnostics.reporters.text import render as render_text

_NO_FILE = "kaigen"


def render(diagnostics: Sequence[Diagnostic], *, color: bool = False, files: Sequence[str] = ()) -> str:
    """Return the report. Warnings and notes are part of the output of a case and do not fail it."""
    cases: dict[str, list[Diagnostic]] = {file: [] for file in files}
    for item in diagnostics:
        cases.setdefault(item.mark.file if item.mark else _NO_FILE, []).append(item)
    suite = ElementTree.Element("testsuite", name="kaigen")
    failed = 0
    for file, found in cases.items():
        name = safe_text(file).replace("\n", " ")
        case = ElementTree.SubElement(suite, "testcase", classname="kaigen", name=name, file=name)
        errors = [item for item in found if item.severity is Severity.ERROR]
        others = [item for item in found if item.severity is not Severity.ERROR]
        if errors:
            failed += 1
            message = plural(len(errors), "error") + ": " + safe_text(errors[0].message)
            failure = ElementTree.SubElement(case, "failure", type=errors[0].code, message=message)
            failure.text = safe_text(render_text(errors))
        if others:
            ElementTree.SubElement(case, "system-out").text = safe_text(render_text(others))
    suite.set("tests", str(len(cases)))
    suite.set("failures", str(failed))
    suite.set("errors", "0")
    suites = ElementTree.Element("testsuites")
    suites.append(suite)
    ElementTree.indent(suites)
    body = ElementTree.tostring(suites, encoding="unicode")
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{body}\n'
