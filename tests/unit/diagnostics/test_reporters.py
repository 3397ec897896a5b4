"""Reports: the same diagnostics in every form."""

from __future__ import annotations

import json
import re
import unicodedata
from pathlib import Path
from xml.etree import ElementTree

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kaigen import __version__
from kaigen.diagnostics.codes import codes
from kaigen.diagnostics.diagnostic import Diagnostic, Mark, Severity
from kaigen.diagnostics.report import OUTPUTS, render_report

SARIF = json.loads((Path(__file__).parent / "data" / "sarif-2.1.0.json").read_text())

ERROR = Diagnostic(
    "KG0118",
    "a space is missing after `image:`",
    Mark("specs/a.yaml", 7, 3, 6, "  image:x"),
    "write `image: x`",
    path="spec.image",
)
SECOND = Diagnostic("KG0130", "the key `a` is given twice, first on line 1", Mark("specs/a.yaml", 12, 1, 1, "a: 2"))
WARNING = Diagnostic("KG0109", "no file in this folder", Mark("specs/empty"), severity=Severity.WARNING)
NOTE = Diagnostic("KG0110", "nothing in particular", severity=Severity.NOTE)
ALL = [WARNING, SECOND, NOTE, ERROR, ERROR]


def test_the_text_report_shows_the_place_and_the_way_out() -> None:
    assert (
        render_report(ALL, "text")
        == """\
note[KG0110]: nothing in particular

specs/a.yaml:7:3: error[KG0118]: a space is missing after `image:`
  |
7 |   image:x
  |   ^^^^^^
  = hint: write `image: x`
  = field: spec.image

specs/a.yaml:12:1: error[KG0130]: the key `a` is given twice, first on line 1
   |
12 | a: 2
   | ^

specs/empty: warning[KG0109]: no file in this folder

2 errors, 1 warning, 1 note in 2 files
"""
    )


def test_colour_adds_only_colour() -> None:
    painted = render_report(ALL, "text", color=True)
    plain = re.sub(r"\x1b\]8;;.*?\x1b\\", "", painted)
    assert "\x1b[1;31merror[KG0118]\x1b[0m" in plain
    assert "\x1b[1;33mwarning[KG0109]\x1b[0m" in plain
    assert re.sub(r"\x1b\[[0-9;]*m", "", plain) == render_report(ALL, "text")


PAGE = f"https://github.com/kaigen-dev/kaigen/blob/v{__version__}/docs/diagnostics.md"


def test_a_code_on_a_terminal_is_a_hyperlink_to_its_explanation() -> None:
    painted = render_report([ERROR], "text", color=True)
    assert f"error[\x1b]8;;{PAGE}#kg0118\x1b\\KG0118\x1b]8;;\x1b\\]" in painted


def test_messages_link_to_the_site_of_a_company(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KAIGEN_DOCS_URL", "https://docs.example.com/kaigen/")
    link = "https://docs.example.com/kaigen/diagnostics.html#kg0118"
    assert json.loads(render_report([ERROR], "json"))["diagnostics"][0]["url"] == link
    (run,) = json.loads(render_report([ERROR], "sarif"))["runs"]
    assert run["tool"]["driver"]["rules"][0]["helpUri"] == link
    assert render_report([ERROR], "github").endswith(f"%0A{link}\n")
    assert link in render_report([ERROR], "text", color=True)
    assert link not in render_report([ERROR], "text")


def test_a_clean_run_says_so() -> None:
    assert render_report([], "text", files=["a", "b"]) == "no problems in 2 files\n"
    assert render_report([], "text", files=["a"]) == "no problems in 1 file\n"
    assert render_report([], "text") == ""
    assert render_report([], "github", files=["a"]) == ""


def carets(mark: Mark) -> tuple[str, str]:
    """Return the excerpt of a mark, and the text above its carets, by terminal columns."""
    lines = render_report([Diagnostic("KG0110", "x", mark)], "text").splitlines()
    shown, under = (line.partition("| ")[2] for line in lines[2:4])
    start, length = under.index("^"), under.count("^")
    cells = "".join(char * width(char) for char in shown)
    return shown, cells[start : start + length]


def width(char: str) -> int:
    if unicodedata.category(char) in ("Mn", "Me"):
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("a: here", "here"),
        ("a:\there", "here"),
        ("\t\t- here: x", "here"),
        ("値段: here", "here"),
        ("😀 here", "here"),
        ("e\u0301e\u0301: here", "here"),
        ("\x1b[31mhere", "here"),
        ("\u202ehere", "here"),
    ],
)
def test_the_carets_underline_the_marked_text(text: str, meant: str) -> None:
    shown, under = carets(Mark("f", 1, text.index(meant) + 1, len(meant), text))
    assert under == meant
    assert shown.isprintable()


def test_wide_characters_get_wide_carets() -> None:
    assert carets(Mark("f", 1, 4, 2, "a: 値段"))[1] == "値値段段"


@pytest.mark.parametrize("before", [0, 1, 60, 100, 5000, 1_000_000])
@pytest.mark.parametrize("after", [0, 10, 200, 1_000_000])
def test_a_long_line_is_cut_around_the_caret(before: int, after: int) -> None:
    text = "x" * before + "here" + "y" * after
    shown, under = carets(Mark("f", 1, before + 1, 4, text))
    assert under == "here"
    assert len(shown) <= 120
    assert shown.startswith("…") == (before + after > 116 and before > 40)


def test_a_place_behind_the_end_of_a_line_is_shown_there() -> None:
    report = render_report([Diagnostic("KG0110", "x", Mark("f", 1, 3, 1, "a:"))], "text")
    assert report.splitlines()[2:4] == ["1 | a:", "  |   ^"]


def test_a_message_cannot_act_on_a_terminal() -> None:
    hostile = Diagnostic("KG0110", "a\x1b]0;owned\x07\nb\u202e", Mark("f\x1b[2J\n.yaml", 1, 1, 1, "\x9b31m"), "\r\x08")
    for output in OUTPUTS:
        report = render_report([hostile], output)
        assert not [char for char in report if unicodedata.category(char) == "Cc" and char != "\n"], output


def test_the_json_report_has_a_stable_shape() -> None:
    report = json.loads(render_report(ALL, "json", files=["specs/a.yaml", "specs/b.yaml"]))
    assert report["version"] == 1
    assert report["summary"] == {"error": 2, "warning": 1, "note": 1, "files": 3}
    assert report["diagnostics"][1] == {
        "code": "KG0118",
        "url": f"{PAGE}#kg0118",
        "severity": "error",
        "message": "a space is missing after `image:`",
        "hint": "write `image: x`",
        "path": "spec.image",
        "file": "specs/a.yaml",
        "line": 7,
        "column": 3,
        "endColumn": 9,
        "text": "  image:x",
    }
    assert report["diagnostics"][0] == {
        "code": "KG0110",
        "url": f"{PAGE}#kg0110",
        "severity": "note",
        "message": "nothing in particular",
        "hint": "",
        "path": "",
        "file": None,
        "line": None,
        "column": None,
        "endColumn": None,
        "text": None,
    }
    assert json.loads(render_report([], "json"))["diagnostics"] == []


@pytest.mark.parametrize("found", [ALL, [], [NOTE]])
def test_the_sarif_report_follows_its_schema(found: list[Diagnostic]) -> None:
    report = json.loads(render_report(found, "sarif", files=["specs/a.yaml", "specs/ü b.yaml"]))
    jsonschema.Draft4Validator(SARIF, format_checker=jsonschema.FormatChecker()).validate(report)


def test_the_sarif_report_points_at_rules_and_lines() -> None:
    (run,) = json.loads(render_report(ALL, "sarif"))["runs"]
    rules = run["tool"]["driver"]["rules"]
    assert [rule["id"] for rule in rules] == ["KG0109", "KG0110", "KG0118", "KG0130"]
    for result in run["results"]:
        assert rules[result["ruleIndex"]]["id"] == result["ruleId"]
        assert rules[result["ruleIndex"]]["fullDescription"]["text"] == codes()[result["ruleId"]].explanation
    (location,) = run["results"][1]["locations"]
    assert location["physicalLocation"] == {
        "artifactLocation": {"uri": "specs/a.yaml"},
        "region": {"startLine": 7, "startColumn": 3, "endColumn": 9, "snippet": {"text": "  image:x"}},
    }
    assert location["logicalLocations"] == [{"fullyQualifiedName": "spec.image", "kind": "member"}]
    assert "locations" not in run["results"][0]


@pytest.mark.parametrize(
    ("path", "uri"),
    [
        ("specs/ü b.yaml", "specs/%C3%BC%20b.yaml"),
        ("<stdin>", "%3Cstdin%3E"),
        ("/srv/a.yaml", "file:///srv/a.yaml"),
        ("caf\udce9.yaml", "caf%E9.yaml"),
    ],
)
def test_the_sarif_report_writes_paths_as_uris(path: str, uri: str) -> None:
    (run,) = json.loads(render_report([Diagnostic("KG0110", "x", Mark(path))], "sarif", files=[path]))["runs"]
    assert run["results"][0]["locations"][0]["physicalLocation"] == {"artifactLocation": {"uri": uri}}
    assert run["artifacts"] == [{"location": {"uri": uri}}]


def test_the_github_report_is_workflow_commands() -> None:
    odd = Diagnostic("KG0110", "100% wrong:\r\nyes, really", Mark("a,b:c%.yaml", 3, 1, 2, "xx"))
    assert render_report([ERROR, WARNING, NOTE, odd], "github").splitlines() == [
        f"::notice title=KG0110 not valid YAML::nothing in particular%0A{PAGE}#kg0110",
        "::error file=a%2Cb%3Ac%25.yaml,line=3,col=1,endColumn=2,title=KG0110 not valid YAML"
        f"::100%25 wrong:%0D%0Ayes, really%0A{PAGE}#kg0110",
        "::error file=specs/a.yaml,line=7,col=3,endColumn=8,title=KG0118 missing colon or space"
        f"::a space is missing after `image:`%0Awrite `image: x`%0A{PAGE}#kg0118",
        f"::warning file=specs/empty,title=KG0109 no spec in the folder::no file in this folder%0A{PAGE}#kg0109",
    ]


def test_the_junit_report_has_a_case_a_file() -> None:
    suites = ElementTree.fromstring(render_report(ALL, "junit", files=["specs/b.yaml", "specs/a.yaml"]))
    (suite,) = suites
    assert suite.attrib == {"name": "kaigen", "tests": "4", "failures": "1", "errors": "0"}
    assert [(case.get("name"), [child.tag for child in case]) for case in suite] == [
        ("specs/b.yaml", []),
        ("specs/a.yaml", ["failure"]),
        ("kaigen", ["system-out"]),
        ("specs/empty", ["system-out"]),
    ]
    failure = suite[1][0]
    assert failure.attrib == {"type": "KG0118", "message": "2 errors: a space is missing after `image:`"}
    assert failure.text
    assert "7 |   image:x" in failure.text


def test_another_output_is_refused() -> None:
    with pytest.raises(ValueError, match="unknown output 'html'"):
        render_report([], "html")


def test_no_report_shows_a_credential() -> None:
    token = "hf_" + "aB3dE5gH7jK9mN1pQ3sT5vX7zA9cE1gH3j"
    leaky = Diagnostic(
        "KG0202",
        f"`{token}` is not a number",
        Mark("a.yaml", 1, 8, 37, f"size: {token} # x"),
        f"remove {token}",
        path=token,
    )
    for output in OUTPUTS:
        report = render_report([leaky], output)
        assert token not in report
        assert token[8:24] not in report


_TEXT = st.text(max_size=30)
_MARKS = st.builds(Mark, _TEXT, st.integers(0, 3), st.integers(0, 40), st.integers(0, 40), _TEXT)
_DIAGNOSTICS = st.builds(
    Diagnostic,
    st.sampled_from(["KG0110", "KG9999"]),
    _TEXT,
    st.none() | _MARKS,
    _TEXT,
    st.sampled_from(Severity),
    _TEXT,
)


@given(st.lists(_DIAGNOSTICS, max_size=4), st.sampled_from(OUTPUTS), st.booleans(), st.lists(_TEXT, max_size=2))
def test_any_diagnostic_can_be_reported(found: list[Diagnostic], output: str, color: bool, files: list[str]) -> None:
    report = render_report(found, output, color=color, files=files)
    report.encode()
    if output in ("json", "sarif"):
        assert json.loads(report)
    if output == "junit":
        assert ElementTree.fromstring(report).tag == "testsuites"
    if output == "sarif":
        jsonschema.Draft4Validator(SARIF).validate(json.loads(report))
