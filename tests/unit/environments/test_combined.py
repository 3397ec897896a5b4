"""The diagnostics of several environments, each once."""

from __future__ import annotations

from kaigen.diagnostics.diagnostic import Diagnostic, Mark, Severity
from kaigen.environments.combined import combine_diagnostics

COMMIT = "@8a52b1f6a1c9"


def warning(line: int, file: str = "specs/a.yaml", message: str = "moves", code: str = "KG0310") -> Diagnostic:
    mark = Mark(file, line, 3, 4, "repo: org/name")
    return Diagnostic(code, message, mark, "run `kaigen lock`", Severity.WARNING, "spec.repo")


def test_a_problem_of_all_environments_is_reported_once_without_their_names() -> None:
    assert combine_diagnostics({"dev": [warning(5)], "prod": [warning(5)]}) == [warning(5)]


def test_a_problem_of_a_commit_is_the_one_of_the_working_tree_at_another_line() -> None:
    promoted = warning(4, f"specs/a.yaml{COMMIT}")
    assert combine_diagnostics({"prod": [promoted], "dev": [warning(5)]}) == [warning(5)]


def test_a_problem_of_two_commits_is_reported_at_the_first() -> None:
    staging, prod = warning(4, f"specs/a.yaml{COMMIT}"), warning(3, "specs/a.yaml@0123456789ab")
    (found,) = combine_diagnostics({"dev": [], "staging": [staging], "prod": [prod]})
    assert (found.mark, found.message) == (staging.mark, "moves (in staging, prod)")


def test_a_problem_that_only_a_commit_has_names_its_environment() -> None:
    old = warning(4, f"specs/a.yaml{COMMIT}", message="other", code="KG0320")
    found = combine_diagnostics({"dev": [warning(5)], "prod": [old]})
    assert [(item.message, item.mark) for item in found] == [
        ("moves (in dev)", warning(5).mark),
        ("other (in prod)", old.mark),
    ]


def test_the_name_that_an_environment_gives_a_bucket_does_not_repeat_a_moving_source() -> None:
    found = combine_diagnostics(
        {"dev": [warning(5, message="s3://dev/x")], "prod": [warning(5, message="s3://prod/x")]}
    )
    assert [item.message for item in found] == ["s3://dev/x"]
    sizes = {name: [warning(5, message=f"{name} is small", code="KG0320")] for name in ("dev", "prod")}
    assert len(combine_diagnostics(sizes)) == 2
