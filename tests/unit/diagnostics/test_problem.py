"""Problems without a file, and their categories."""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path

import pytest

from kaigen.compile.problems import Problems
from kaigen.diagnostics.category import Category
from kaigen.diagnostics.diagnostic import Diagnostic, Mark, Severity
from kaigen.diagnostics.errors import KaigenError
from kaigen.diagnostics.problem import Problem, ProblemError
from kaigen.sizing.problem import Field, PlanError

ROOT = Path(__file__).parents[3]


def test_a_problem_and_its_diagnostic_have_the_category_of_their_code() -> None:
    assert Problem("KG0110", "broken").category is Category.SYNTAX
    assert Diagnostic("KG0301", "no Model `a`").category is Category.SPEC_REFERENCE


def test_a_located_problem_keeps_message_hint_severity_and_path() -> None:
    problem = Problem("KG0202", "wrong", ("spec", "args", 0), "quote it", Severity.WARNING)
    mark = Mark("a.yaml", 3, 5)
    assert problem.located(mark) == Diagnostic("KG0202", "wrong", mark, "quote it", Severity.WARNING, "spec.args[0]")


def test_a_raised_problem_ends_a_command_as_bad_input() -> None:
    error = ProblemError("KG0306", "unknown GPU type `H10`", ("spec",), "did you mean `H100`?")
    assert isinstance(error, KaigenError)
    assert (error.exit_code, str(error), error.hint) == (2, "unknown GPU type `H10`", "did you mean `H100`?")


def test_a_sizing_error_is_a_problem_that_names_its_field() -> None:
    error = PlanError("KG1105", Field.HARDWARE, "does not fit", "use more GPUs")
    assert isinstance(error, ProblemError)
    assert error.problem == Problem("KG1105", "does not fit", (), "use more GPUs")


@pytest.mark.parametrize(
    ("name", "hint"), [("t5", "did you mean `t4`?"), ("zzzz", "known: a100, t4"), ("", "known: a100, t4")]
)
def test_an_unknown_name_gets_the_nearest_known_name_or_the_list(name: str, hint: str) -> None:
    assert ProblemError.unknown("KG0306", "GPU", name, ["t4", "a100"], ("spec",)).hint == hint


def test_a_warning_does_not_fail_a_compile_step() -> None:
    problems = Problems()
    problems.warning("KG0352", "open to all", ("spec",))
    assert not problems.failed
    problems.add_diagnostic(Diagnostic("KG1005", "template fails"))
    assert problems.failed


def test_every_exception_that_the_package_defines_is_shown_without_a_traceback() -> None:
    outside = [
        f"{path.relative_to(ROOT)}: {name}"
        for path in sorted((ROOT / "kaigen").rglob("*.py"))
        for name in re.findall(r"^class (\w+)\((?:Exception|[A-Z]\w*Error)\b", path.read_text(), re.MULTILINE)
        if not name.startswith("Kaigen") and not issubclass(getattr(import_module(_module(path)), name), KaigenError)
    ]
    assert outside == [
        "kaigen/check/cel.py: CelError",  # becomes a problem of the object
        "kaigen/contexts/patterns.py: MalformedPattern",  # .dockerignore is reported with its line
        "kaigen/extend/sandbox.py: UndefinedName",  # jinja2 requires its own class
        "kaigen/programs/gate.py: Failed",  # in a pod, as the next ones
        "kaigen/programs/generate.py: Failed",
        "kaigen/programs/generate.py: BadLine",
        "kaigen/programs/kaigen_tables.py: Broken",
        "kaigen/programs/kaito_chat.py: Answered",
        "kaigen/programs/kaito_chat.py: Gone",
        "kaigen/regex/parser.py: PatternError",  # as of the module re; schemas are reported with their line
    ]


def _module(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts)
