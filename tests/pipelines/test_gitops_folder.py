"""What holds for every file in gitops/, and for what `kaigen init` writes for pipelines."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from kaigen.scaffold.place import Place
from kaigen.scaffold.repository import new_files
from tests.pipelines.checkout import ROOT, read_yaml

FOLDER = ROOT / "gitops"
FILES = sorted(path for path in FOLDER.rglob("*") if path.is_file() and "__pycache__" not in path.parts)
HOSTS = r"(?:pypi|pythonhosted|npmjs|crates|rubygems|proxy\.golang|files\.python|index\.docker)\.\w+"


def test_every_yaml_file_passes_yamllint() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "yamllint", "--strict", "gitops", ".pre-commit-hooks.yaml"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.relative_to(FOLDER).as_posix())
def test_no_file_names_a_host_of_packages(path: Path) -> None:
    assert re.findall(HOSTS, path.read_text(encoding="utf-8")) == []


def test_scripts_can_be_run() -> None:
    scripts = [path for path in FILES if path.suffix == ".sh"]
    can_be_run = [path.name for path in scripts if path.stat().st_mode & 0o111]
    assert can_be_run == [path.name for path in scripts if path.read_text().startswith("#!")] == ["check.sh"]


@pytest.fixture(params=["", "teams/ml"])
def started(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    """What `kaigen init` writes to the top of a Git repository, or to a folder below it."""
    for name, text in new_files(Place(tmp_path / request.param, tmp_path)).items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    return tmp_path


def workflow_of(started: Path) -> Path:
    (workflow,) = (started / ".github" / "workflows").iterdir()
    return workflow


def test_the_workflow_of_a_new_repository_follows_githubs_schema(started: Path, check_schema: Any) -> None:
    check_schema("vendor.github-workflows", workflow_of(started))


def test_the_workflow_of_a_new_repository_uses_the_actions_with_inputs_that_they_have(started: Path) -> None:
    workflow = read_yaml(workflow_of(started))
    jobs = workflow["jobs"]
    for job, action in (("check", "github-action"), ("comment", "github-comment")):
        (step,) = [each for each in jobs[job]["steps"] if "kaigen" in each.get("uses", "")]
        assert re.fullmatch(rf"[\w-]+/kaigen/gitops/{action}@v[\d.]+", step["uses"])
        assert set(step.get("with", {})) <= set(read_yaml(FOLDER / action / "action.yml")["inputs"])
    assert workflow["permissions"] == {}
    assert jobs["check"]["permissions"] == {"contents": "read"}
    assert jobs["comment"]["permissions"] == {"pull-requests": "write"}
    assert [each for each in jobs["comment"]["steps"] if "checkout" in each["uses"]] == []


PLACES_OF_SECRETS = {
    "docs/pipelines.md": ("KAIGEN_GITLAB_TOKEN", "KAIGEN_PRUNE_TOKEN"),
    "docs/security.md": ("KAIGEN_GITLAB_TOKEN", "KAIGEN_PRUNE_TOKEN", "KAIGEN_SIGN_KEY"),
    "gitops/gitlab/kaigen.gitlab-ci.yml": ("KAIGEN_GITLAB_TOKEN", "KAIGEN_PRUNE_TOKEN"),
    "gitops/github-prune/kaigen-prune.yml": ("KAIGEN_PRUNE_TOKEN",),
    "kaigen/scaffold/files/gitlab.yaml": ("KAIGEN_GITLAB_TOKEN", "KAIGEN_PRUNE_TOKEN"),
}


def test_every_place_of_a_token_says_who_could_read_it() -> None:
    for path, names in PLACES_OF_SECRETS.items():
        text = " ".join((ROOT / path).read_text(encoding="utf-8").replace("#", " ").split())
        assert [name for name in names if name not in text] == []
        assert re.search(r"protected|select the default branch|rule of GitLab", text), path
    named = re.compile(r"KAIGEN_[A-Z]+_TOKEN")
    found = {
        path.relative_to(ROOT).as_posix()
        for folder in ("docs", "gitops", "kaigen")
        for path in (ROOT / folder).rglob("*")
        if path.is_file() and path.suffix in (".md", ".yml", ".yaml") and named.search(path.read_text())
    }
    assert found - {"docs/cli.md"} == PLACES_OF_SECRETS.keys()


def test_a_job_with_a_secret_of_github_has_an_environment() -> None:
    for path in (path for path in FILES if path.suffix in (".yml", ".yaml") and "action" not in path.name):
        for job in (read_yaml_documents(path).get("jobs") or {}).values():
            if "secrets." in str(job):
                assert job["environment"], path


def read_yaml_documents(path: Path) -> dict[str, Any]:
    """Return the last document of a file."""
    *_, found = yaml.safe_load_all(path.read_text(encoding="utf-8"))
    return dict(found)


def triggered_by_pull_requests() -> dict[str, Any]:
    """Return every workflow with the event `pull_request` that kaigen writes or documents, by its place."""
    places = {path.name: path.read_text(encoding="utf-8") for path in FILES if path.suffix in (".yml", ".yaml")}
    (workflow,) = [text for path, text in new_files(Place(ROOT / "new", ROOT / "new")).items() if "workflows" in path]
    places["kaigen init"] = workflow
    for page in [*(ROOT / "docs").rglob("*.md"), *ROOT.glob("*.md"), *FOLDER.rglob("*.md")]:
        for number, text in enumerate(re.findall(r"^```ya?ml\n(.*?)^```", page.read_text(), re.M | re.S)):
            places[f"{page.name}, example {number}"] = text
    found = {}
    for place, text in places.items():
        if re.search(r"^on:", text, re.M) and "pull_request" in text:
            found[place] = yaml.safe_load(text)
    return found


def test_checks_run_again_when_a_pull_request_gets_another_base() -> None:
    found = triggered_by_pull_requests()
    assert {"kaigen init"} < set(found)
    for place, workflow in found.items():
        # YAML 1.1 reads the key `on` as true.
        types = workflow[True]["pull_request"]["types"]
        assert types == ["opened", "synchronize", "reopened", "edited"], place
        conditions = [job["if"] for job in workflow["jobs"].values() if "if" in job]
        # GitHub reports a job that is skipped as passed.
        assert not [text for text in conditions if "action" in text or "changes" in text], place


def test_the_hooks_of_a_new_repository_are_those_of_this_one(started: Path) -> None:
    (repository,) = read_yaml(started / ".pre-commit-config.yaml")["repos"]
    known = {hook["id"] for hook in read_yaml(ROOT / ".pre-commit-hooks.yaml")}
    assert {hook["id"] for hook in repository["hooks"]} <= known
    done = subprocess.run(
        [sys.executable, "-m", "pre_commit", "validate-config", str(started / ".pre-commit-config.yaml")], check=False
    )
    assert done.returncode == 0


def test_the_pipeline_of_gitlab_includes_the_template_with_inputs_that_it_has(tmp_path: Path) -> None:
    place = Place(tmp_path / "ml", tmp_path, "https://gitlab.example.com/ml/specs.git")
    files = new_files(place)
    (include,) = yaml.safe_load(files[".gitlab-ci.yml"])["include"]
    assert include["remote"].endswith("/gitops/gitlab/kaigen.gitlab-ci.yml")
    head, _ = yaml.safe_load_all((FOLDER / "gitlab" / "kaigen.gitlab-ci.yml").read_text(encoding="utf-8"))
    assert set(include["inputs"]) <= set(head["spec"]["inputs"])
    assert not any(path.startswith(".github") for path in files)
