"""The commit message: what people read first, and what the next publication reads."""

from __future__ import annotations

import subprocess

from hypothesis import given
from hypothesis import strategies as st

from kaigen.publish.branch_changes import MOST_APPS, SUBJECT_LENGTH, commit_message, read_trailers, subject
from kaigen.publish.results import AppChanges, TreeResult
from kaigen.publish.source import Source, same_repository

SOURCE = Source("a" * 40, 0, "https://example.com/acme/specs.git", "teams/one", "main", dirty=True)


def tree(environment: str = "prod", **apps: tuple[str, ...]) -> TreeResult:
    return TreeResult(environment, f"rendered/{environment}", AppChanges(**apps), (1, 0, 0))


def test_a_message_names_apps_and_the_source() -> None:
    trees = [tree("dev"), tree(changed=("ml/qwen",), added=("ml/finetune",), removed=("ml/old",))]
    trees[0] = TreeResult("dev", "rendered/dev", AppChanges(), (0, 0, 0))
    assert commit_message(SOURCE, trees) == (
        "Render prod: ml/finetune, ml/old, ml/qwen\n"
        "\n"
        "prod (rendered/prod):\n"
        "- added ml/finetune\n"
        "- changed ml/qwen\n"
        "- removed ml/old\n"
        "\n"
        f"Source-Commit: {'a' * 40}\n"
        "Source-Repository: https://example.com/acme/specs.git\n"
        "Source-Folder: teams/one\n"
        "Source-State: uncommitted changes\n"
        "Rendered-By: kaigen 0.2.0\n"
    )


def test_git_reads_the_trailers() -> None:
    message = commit_message(SOURCE, [tree(added=("ml/qwen",))])
    done = subprocess.run(["git", "interpret-trailers", "--parse"], input=message, capture_output=True, text=True)
    assert dict(line.split(": ", 1) for line in done.stdout.splitlines()) == {
        name: value for name, value in read_trailers(message).items() if name in done.stdout
    }
    assert f"Source-Commit: {'a' * 40}" in done.stdout


@given(st.lists(st.from_regex(r"[a-z]{1,20}/[a-z]{1,30}", fullmatch=True), min_size=1, max_size=300, unique=True))
def test_a_subject_is_short_and_counts_the_omitted_apps(apps: list[str]) -> None:
    line = subject([tree(changed=tuple(sorted(apps)))])
    head, _, more = line.partition(" and ")
    shown = head.removeprefix("Render prod: ").split(", ")
    assert len(line) <= SUBJECT_LENGTH or len(shown) == 1
    assert len(shown) + (int(more.split()[0]) if more else 0) == len(apps)


def test_the_body_of_a_thousand_apps_is_bounded() -> None:
    message = commit_message(SOURCE, [tree(added=tuple(f"ml/app-{number:04}" for number in range(1000)))])
    assert f"- added {1000 - MOST_APPS} more" in message
    assert len(message.splitlines()) < MOST_APPS + 20


def test_trailers_are_found_in_a_squashed_message() -> None:
    said = f"* Render prod: ml/qwen\n\n  Source-Commit: {'b' * 40}"
    squashed = f"Title (#12)\n\n{said}\n\nCo-authored-by: X <x@example.com>\n"
    assert read_trailers(squashed)["Source-Commit"] == "b" * 40


def test_urls_of_one_repository_are_equal() -> None:
    same = [
        "https://github.com/acme/specs.git",
        "https://github.com/acme/specs",
        "git@github.com:acme/specs.git",
        "ssh://git@github.com/acme/specs.git",
        "ssh://git@github.com:22/acme/specs/",
        "https://GitHub.com/acme/specs.git",
    ]
    assert all(same_repository(one, other) for one in same for other in same)
    assert not same_repository(same[0], "https://github.com/acme/other.git")
    assert not same_repository(same[0], "https://gitlab.com/acme/specs.git")
