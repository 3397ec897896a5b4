"""Reports as forges read them: a problem is known again, and its file named as the repository names it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from msgspec.structs import replace

from kaigen.cli.options import checkout_folder
from kaigen.diagnostics.codes import codes
from kaigen.diagnostics.diagnostic import Diagnostic, Mark, Severity
from kaigen.diagnostics.report import FORGES, OUTPUTS, render_report
from kaigen.diagnostics.reporters.summary import fingerprints

ERROR = Diagnostic("KG0201", "unknown field `a`", Mark("specs/a.yaml", 7, 3, 1, "  a: 1"), "b", path="spec.a")
PLACELESS = Diagnostic("KG0702", "no environment `x`", severity=Severity.WARNING)


def moved(item: Diagnostic, line: int) -> Diagnostic:
    assert item.mark is not None
    return replace(item, mark=replace(item.mark, line=line))


def test_a_problem_has_the_same_fingerprint_when_lines_above_it_come() -> None:
    assert fingerprints([ERROR]) == fingerprints([moved(ERROR, 12)])


@pytest.mark.parametrize(
    "other",
    [
        replace(ERROR, code="KG0202"),
        replace(ERROR, path="spec.b"),
        replace(ERROR, mark=Mark("specs/b.yaml", 7, 3, 1, "  a: 1")),
        replace(ERROR, mark=Mark("specs/a.yaml", 7, 3, 1, "  a: 2")),
    ],
)
def test_another_problem_has_another_fingerprint(other: Diagnostic) -> None:
    assert fingerprints([ERROR]) != fingerprints([other])


def test_equal_problems_of_one_file_and_those_without_a_place_are_distinguished() -> None:
    others = [replace(PLACELESS, message=f"no environment `{name}`") for name in "xyz"]
    marks = fingerprints([ERROR, moved(ERROR, 12), *others])
    assert len(set(marks)) == 5


def test_sarif_has_what_code_scanning_asks_for() -> None:
    (run,) = json.loads(render_report([ERROR, PLACELESS], "sarif"))["runs"]
    for result in run["results"]:
        assert len(result["partialFingerprints"]["primaryLocationLineHash"]) == 32
    assert [rule["defaultConfiguration"]["level"] for rule in run["tool"]["driver"]["rules"]] == ["error", "warning"]
    for rule in run["tool"]["driver"]["rules"]:
        assert rule["help"]["text"] == codes()[rule["id"]].explanation
        assert rule["help"]["markdown"].startswith("**")
        assert rule["properties"]["problem.severity"] in ("error", "warning")


def test_the_gitlab_report_has_what_a_merge_request_shows() -> None:
    listed = json.loads(render_report([ERROR, PLACELESS], "gitlab"))
    by_code = {entry["check_name"]: entry for entry in listed}
    assert by_code["KG0201"] == {
        "check_name": "KG0201",
        "description": "KG0201: unknown field `a`; b",
        "severity": "major",
        "fingerprint": fingerprints([ERROR])[0],
        "location": {"path": "specs/a.yaml", "lines": {"begin": 7}},
    }
    assert by_code["KG0702"]["severity"] == "minor"
    assert by_code["KG0702"]["location"] == {"path": "kaigen.yaml", "lines": {"begin": 1}}
    assert json.loads(render_report([], "gitlab")) == []


@pytest.mark.parametrize("output", OUTPUTS)
def test_forges_see_paths_from_the_top_of_the_repository_and_people_from_where_they_are(output: str) -> None:
    said = render_report([ERROR], output, files=["specs/a.yaml"], folder="platform/ai")
    assert ("platform/ai/specs/a.yaml" in said) == (output in FORGES)


def test_paths_above_absolute_ones_and_standard_input_are_named_as_they_are() -> None:
    files = {"../a.yaml": "platform/a.yaml", "/a.yaml": "file:///a.yaml", "<stdin>": "%3Cstdin%3E"}
    for file, uri in files.items():
        found = [Diagnostic("KG0110", "x", Mark(file))]
        (run,) = json.loads(render_report(found, "sarif", folder="platform/ai"))["runs"]
        location = run["results"][0]["locations"][0]["physicalLocation"]["artifactLocation"]
        assert location == {"uri": uri}


@pytest.mark.parametrize("variable", ["GITHUB_WORKSPACE", "CI_PROJECT_DIR"])
def test_the_folder_of_a_checkout_is_that_below_its_top(
    variable: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    below = tmp_path / "platform" / "ai"
    below.mkdir(parents=True)
    for name in ("GITHUB_WORKSPACE", "CI_PROJECT_DIR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(below)
    assert checkout_folder() == ""
    monkeypatch.setenv(variable, str(tmp_path))
    assert checkout_folder() == "platform/ai"
    monkeypatch.setenv(variable, str(below))
    assert checkout_folder() == ""
    monkeypatch.setenv(variable, str(tmp_path / "elsewhere"))
    assert checkout_folder() == ""
