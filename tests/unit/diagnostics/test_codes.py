"""The registry of diagnostic codes."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import kaigen
from kaigen.check import codes as check_codes
from kaigen.diagnostics.codes import codes, page_url

PACKAGE = Path(kaigen.__file__).parent
TESTS = Path(__file__).parents[2]
CODE = re.compile(r"\bKG[0-9]{4}\b")
NAMED = re.compile(r"\bKG[0-9]{4}\b|\bcodes\.[A-Z_]+")


def codes_in_use(folder: str = "") -> set[str]:
    return {code for path in (PACKAGE / folder).rglob("*.py") for code in CODE.findall(path.read_text())}


def decisions(tree: ast.AST) -> Iterator[str]:
    """Yield the codes that a program decides by: it compares them, or looks something up by them."""
    for node in ast.walk(tree):
        read: list[ast.AST] = []
        match node:
            case ast.Compare():
                read = [node.left, *node.comparators]
            case ast.MatchValue() | ast.Subscript(ctx=ast.Load()):
                read = [node.value if isinstance(node, ast.MatchValue) else node.slice]
            case ast.Call(func=ast.Attribute(attr="get" | "pop" | "startswith" | "count" | "index")):
                read = [*node.args]
        for part in read:
            for each in ast.walk(part):
                if isinstance(each, ast.Constant) and isinstance(each.value, str) and each.value.startswith("KG"):
                    yield each.value


@pytest.mark.parametrize(
    "program",
    [
        'error.code == "KG0101"',
        '"KG0101" not in found',
        'error.code in {"KG0101", "KG0102"}',
        'match code:\n    case "KG0101" | "KG0102": pass',
        'hints.get("KG0101", "")',
        'hints["KG0101"]',
        'code.startswith("KG01")',
    ],
)
def test_a_decision_by_a_literal_code_is_found(program: str) -> None:
    assert list(decisions(ast.parse(program)))


def test_codes_are_compared_by_their_names() -> None:
    found = {str(path): [*decisions(ast.parse(path.read_text()))] for path in PACKAGE.rglob("*.py")}
    assert {path: literals for path, literals in found.items() if literals} == {}


def test_a_dialect_replaces_only_hints_of_problems_that_a_compiler_reports() -> None:
    replaced = re.compile(r"""hints\["(KG\d+)"\]|(KG\d+)=|"(KG\d+)":""")
    for path in (PACKAGE / "dialects").rglob("*.py"):
        for groups in replaced.findall(path.read_text()):
            assert {*filter(None, groups)} <= codes_in_use("compile"), path


def test_every_code_in_use_is_registered() -> None:
    missing = sorted(codes_in_use() - set(codes()))
    assert missing == [], "describe them in `kaigen/diagnostics/codes.yaml`, and run `make docs`"


def test_every_registered_code_is_in_use() -> None:
    assert sorted(set(codes()) - codes_in_use()) == []


def codes_in_tests() -> set[str]:
    """Return the codes that tests name, in Python, in scenarios or in golden files of messages."""
    constants = {f"codes.{name}": code for name, code in vars(check_codes).items() if name.isupper()}
    named: set[str] = set()
    for path in (each for suffix in ("py", "txt") for each in TESTS.rglob(f"*.{suffix}")):
        if path != Path(__file__) and "rendered" not in path.parts:
            named.update(NAMED.findall(path.read_text()))
    return {constants.get(name, name) for name in named}


def test_every_registered_code_occurs_in_a_test() -> None:
    missing = sorted(set(codes()) - codes_in_tests())
    assert missing == [], "add a test or a scenario with the diagnostic"


def test_codes_are_in_order_and_say_something() -> None:
    assert list(codes()) == sorted(codes())
    for code, entry in codes().items():
        assert re.fullmatch(r"KG[01][0-9]{3}", code)
        assert 3 <= len(entry.title) <= 60, code
        assert not entry.title.endswith("."), code
        assert entry.explanation.endswith("."), code
        assert entry.title not in entry.explanation.splitlines(), code


def test_status_names_a_page_of_this_version_or_of_your_own_site(monkeypatch: pytest.MonkeyPatch) -> None:
    (page,) = re.findall(r"page_url\('(.+?)'\)", (PACKAGE / "cli" / "status.py").read_text())
    assert (PACKAGE.parent / "docs" / f"{page}.md").is_file()
    assert page_url(page).endswith(f"/v{kaigen.__version__}/docs/{page}.md")
    monkeypatch.setenv("KAIGEN_DOCS_URL", "https://docs.example.com/")
    assert page_url(page) == f"https://docs.example.com/{page}.html"
