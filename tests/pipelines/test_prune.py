"""The schedules that remove what has expired: their scripts run for real, in a clone, and push to its origin."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.pipelines.checkout import ROOT, Checkout, read_yaml
from tests.pipelines.forge import TOKEN, Forge, running
from tests.pipelines.test_gitlab_template import jobs

WORKFLOW = ROOT / "gitops" / "github-prune" / "kaigen-prune.yml"
SPEC = "specs/finetune.yaml"
EXPIRED = 'metadata:\n  annotations: {kaigen.dev/expires-at: "2026-01-31"}\n'
GITLAB = "kaigen prune"


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    """A clone of the default branch."""
    found = Checkout(tmp_path)
    git(found.top, "switch", "--quiet", "main")
    return found


@pytest.fixture
def forge() -> Iterator[Forge]:
    with running("github") as found:
        yield found


def git(folder: Path, *arguments: str) -> str:
    done = subprocess.run(["git", *arguments], cwd=folder, check=True, capture_output=True, text=True)
    return done.stdout


def expire(checkout: Checkout) -> None:
    checkout.edit(SPEC, "metadata:\n", EXPIRED)
    checkout.kaigen("-q", "render")
    checkout.commit()


def changed(checkout: Checkout) -> dict[str, str]:
    """What the pushed branch changes, by path."""
    origin = checkout.temp.parent / "origin"
    listing = git(origin, "show", "--name-status", "--format=", "kaigen-prune")
    return {path: status for status, path in (line.split("\t") for line in listing.splitlines())}


def workflow_steps() -> list[dict[str, Any]]:
    (job,) = read_yaml(WORKFLOW)["jobs"].values()
    found: list[dict[str, Any]] = job["steps"]
    return found


def run_workflow(checkout: Checkout, forge: Forge) -> subprocess.CompletedProcess[str]:
    """Run the scripts of the workflow, as GitHub does, and return the last one."""
    output = checkout.temp / "output"
    output.write_text("")
    environment = {**forge.environment("github"), "GITHUB_OUTPUT": str(output)}
    del environment["GITHUB_TOKEN"]
    commit, request = (each for each in workflow_steps() if "run" in each)
    shell = ("bash", "-e", "-c")  # GitHub's default for steps without `shell`
    done = checkout.run(commit["run"], environment, shell)
    if done.returncode == 0 and output.read_text() == "done=true\n":
        assert set(request["env"]) == {"TOKEN", "BASE", "BRANCH"}
        variables = {"TOKEN": TOKEN, "BASE": "main", "BRANCH": request["env"]["BRANCH"]}
        done = checkout.run(request["run"], environment | variables, shell)
    assert TOKEN not in done.stdout + done.stderr
    return done


def test_the_workflow_follows_githubs_schema_and_pins_what_it_uses(check_schema: Any) -> None:
    check_schema("vendor.github-workflows", WORKFLOW)
    first, second = (each["uses"] for each in workflow_steps() if "uses" in each)
    assert first in (ROOT / "kaigen" / "scaffold" / "files" / "workflow.yaml").read_text()
    assert second.startswith("kaigen-dev/kaigen/gitops/github-action@v")


def test_no_script_of_the_workflow_has_a_value_pasted_into_it() -> None:
    assert [each["run"] for each in workflow_steps() if "${{" in each.get("run", "")] == []


def test_one_pull_request_removes_what_has_expired(checkout: Checkout, forge: Forge) -> None:
    expire(checkout)
    for said in ("created", "updated"):
        done = run_workflow(checkout, forge)
        assert done.stdout == f"pull request: {said}\n", done.stderr
        git(checkout.top, "reset", "--quiet", "--hard", "HEAD~1")
    found = changed(checkout)
    assert found.pop(SPEC) == "D"
    assert {status for path, status in found.items() if "/finetune/" in path} == {"D"}
    (pull,) = forge.pulls
    assert pull["title"] == "Remove what has expired"
    assert (pull["head"], pull["base"]) == ("kaigen-prune", "main")
    assert "Job/finetune  2026-01-31 00:00 UTC" in pull["body"]


def test_names_stay_in_the_block_of_the_pull_request_and_out_of_the_commit(checkout: Checkout, forge: Forge) -> None:
    text = (checkout.here / SPEC).read_text().replace("metadata:\n", EXPIRED)
    for number, folder in enumerate(
        ("a\n```\n@everyone [x](http:", "[skip ci]", "a\n\nskip-checks: true", "Closes #1")
    ):
        path = checkout.here / "specs" / folder / "e.yaml"
        path.parent.mkdir()
        path.write_text(text.replace("name: finetune", f"name: trial-{number}"))
    checkout.kaigen("-q", "render")
    checkout.commit()
    assert run_workflow(checkout, forge).stdout == "pull request: created\n"
    (pull,) = forge.pulls
    block = pull["body"].splitlines()
    assert (block[0], block[-1], len(block)) == ("```text", "```", 7)
    assert [line.split("  ")[0] for line in block[2:-1]] == [f"Job/trial-{number}" for number in (3, 1, 2, 0)]
    assert block[-2].endswith("  specs/a??????everyone??x??http?/e.yaml:1:1")
    for odd in ("`", "@", "[", "#", ": true"):
        assert not [line for line in block[1:-1] if odd in line]
    message = git(checkout.temp.parent / "origin", "show", "--no-patch", "--format=%B", "kaigen-prune")
    assert message.splitlines()[2:7] == block[1:-1]


def test_nothing_is_pushed_while_nothing_has_expired(checkout: Checkout, forge: Forge) -> None:
    assert run_workflow(checkout, forge).returncode == 0
    assert forge.requests == []
    assert "kaigen-prune" not in git(checkout.temp.parent / "origin", "branch")


def test_a_refusal_of_the_forge_fails_the_workflow(checkout: Checkout, forge: Forge) -> None:
    expire(checkout)
    forge.redirect = "https://elsewhere.example"
    done = run_workflow(checkout, forge)
    assert done.returncode == 1
    assert done.stdout == ""


@pytest.fixture
def origin(checkout: Checkout) -> Path:
    """The origin, which takes push options as GitLab does, and writes them to a file."""
    found = checkout.temp.parent / "origin"
    git(found, "config", "receive.advertisePushOptions", "true")
    hook = found / ".git" / "hooks" / "pre-receive"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text('#!/bin/sh\nenv | grep "^GIT_PUSH_OPTION_[0-9]" | sort >options\n')
    hook.chmod(0o755)
    (found.parent / "ml").mkdir()
    (found.parent / "ml" / "specs.git").symlink_to(found)
    return found


def run_gitlab(checkout: Checkout, token: str = TOKEN, protected: str = "true") -> subprocess.CompletedProcess[str]:
    (script,) = jobs()[GITLAB]["script"]
    variables = {
        "CI_SERVER_URL": checkout.temp.parent.as_uri(),
        "CI_PROJECT_PATH": "ml/specs",
        "CI_COMMIT_BRANCH": "main",
        "CI_COMMIT_REF_PROTECTED": protected,
        "KAIGEN_PRUNE_TOKEN": token,
    }
    done = checkout.run(script, variables, ("sh", "-e", "-c"))
    assert TOKEN not in done.stdout + done.stderr
    return done


def test_gitlab_opens_a_merge_request_by_push_options(checkout: Checkout, origin: Path) -> None:
    assert run_gitlab(checkout).returncode == 0
    assert "kaigen-prune" not in git(origin, "branch")
    expire(checkout)
    done = run_gitlab(checkout)
    assert done.returncode == 0, done.stderr
    assert changed(checkout)[SPEC] == "D"
    options = [line.partition("=")[2] for line in (origin / ".git" / "options").read_text().splitlines()]
    assert options == [
        "merge_request.create",
        "merge_request.target=main",
        "merge_request.title=Remove what has expired",
        "merge_request.remove_source_branch",
    ]


def test_gitlab_runs_on_protected_branches_alone(checkout: Checkout, origin: Path) -> None:
    expire(checkout)
    for protected in ("false", ""):
        done = run_gitlab(checkout, protected=protected)
        assert done.returncode == 1
        assert "protected branch" in done.stderr
    assert "kaigen-prune" not in git(origin, "branch")


def test_gitlab_fails_without_a_token_and_runs_only_in_its_schedule(checkout: Checkout) -> None:
    done = run_gitlab(checkout, token="")
    assert done.returncode == 1
    assert "set KAIGEN_PRUNE_TOKEN" in done.stderr
    assert jobs()[GITLAB]["rules"] == [{"if": '$CI_PIPELINE_SOURCE == "schedule" && $KAIGEN_PRUNE == "true"'}]
