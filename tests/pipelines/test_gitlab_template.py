"""The GitLab template: its scripts run for real, in a clone, with what GitLab would set."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
import yaml

from tests.pipelines.checkout import ROOT, Checkout, plant_modules
from tests.pipelines.forge import TOKEN, Forge, running

TEMPLATE = ROOT / "gitops" / "gitlab" / "kaigen.gitlab-ci.yml"
SPEC = "specs/finetune.yaml"


def split() -> tuple[dict[str, Any], str]:
    """The inputs, and the text of the jobs."""
    header, text = TEMPLATE.read_text().split("\n---\n")
    inputs: dict[str, Any] = yaml.safe_load(header)["spec"]["inputs"]
    return inputs, text


def jobs(**inputs: str) -> dict[str, Any]:
    """The jobs as GitLab has them with inputs, the others being as the defaults say."""
    declared, text = split()
    given = {name: str(each["default"]) for name, each in declared.items()} | inputs
    filled = re.sub(r"\$\[\[ inputs\.([a-z]+) \]\]", lambda match: json.dumps(given[match[1]]), text)
    found: dict[str, Any] = yaml.safe_load(filled)
    return found


class Pipeline:
    """A pipeline of a merge request."""

    shell = ("bash", "-eo", "pipefail", "-c")

    def __init__(self, checkout: Checkout, forge: Forge) -> None:
        self.checkout = checkout
        self.forge = forge

    def run(self, name: str, *, token: bool = True, **inputs: str) -> subprocess.CompletedProcess[str]:
        """Run a job's script in the folder where its preparation leaves it."""
        found = jobs(**inputs)
        environment = {
            **self.forge.environment("gitlab"),
            **found[".kaigen"]["variables"],
            **found[name].get("variables", {}),
            "CI_PROJECT_DIR": str(self.checkout.top),
            "CI_MERGE_REQUEST_TARGET_BRANCH_NAME": "main",
        }
        if not token:
            del environment["KAIGEN_GITLAB_TOKEN"]
        (script,) = found[name]["script"]
        done = self.checkout.run(script, environment, self.shell)
        assert TOKEN not in done.stdout + done.stderr
        return done

    def artifact(self, name: str) -> str:
        """What a job has left."""
        return (self.checkout.top / name).read_text()


@pytest.fixture(params=["bash", "sh"])
def pipeline(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Pipeline]:
    """GitLab's runner takes bash where the image has it, else sh."""
    with running("gitlab") as forge:
        found = Pipeline(Checkout(tmp_path), forge)
        if request.param == "sh":
            found.shell = ("sh", "-e", "-c")  # type: ignore[assignment]
        yield found


@pytest.fixture
def checkout_of_job(tmp_path: Path) -> Iterator[Pipeline]:
    with running("gitlab") as forge:
        yield Pipeline(Checkout(tmp_path), forge)


def test_the_template_follows_gitlabs_schema(check_schema: Any, tmp_path: Path) -> None:
    path = tmp_path / "kaigen.gitlab-ci.yml"
    path.write_text(yaml.safe_dump(jobs()))
    check_schema("vendor.gitlab-ci", path)


def test_every_input_is_used_and_every_one_used_is_there() -> None:
    inputs, text = split()
    assert set(re.findall(r"\$\[\[ inputs\.([a-z]+) \]\]", text)) == set(inputs)
    scripts = [line for job in jobs().values() for line in job.get("script", ()) if "$[[" in line]
    assert scripts == []


def test_validate_leaves_reports_whether_or_not_there_are_problems(pipeline: Pipeline) -> None:
    assert pipeline.run("kaigen validate").returncode == 0
    assert json.loads(pipeline.artifact("kaigen-gitlab.json")) == []
    pipeline.checkout.edit(SPEC, "spec:\n", "spec:\n  retris: 3\n")
    done = pipeline.run("kaigen validate")
    assert done.returncode == 2
    assert f"{SPEC}:6:3: error[KG0201]" in done.stderr
    (entry,) = json.loads(pipeline.artifact("kaigen-gitlab.json"))
    assert entry["location"] == {"path": SPEC, "lines": {"begin": 6}}
    assert re.fullmatch("[0-9a-f]{32}", entry["fingerprint"])
    assert ElementTree.fromstring(pipeline.artifact("kaigen-junit.xml"))[0].get("failures") == "1"
    assert json.loads(pipeline.artifact("kaigen-sarif.sarif"))["runs"][0]["results"]


def test_the_reports_are_those_that_the_job_keeps(pipeline: Pipeline) -> None:
    pipeline.run("kaigen validate")
    kept = jobs()["kaigen validate"]["artifacts"]
    for path in (*kept["paths"], *kept["reports"].values()):
        assert pipeline.artifact(path)


def test_a_broken_configuration_leaves_no_empty_report(pipeline: Pipeline) -> None:
    (pipeline.checkout.here / "kaigen.yaml").write_text("kind: [\n")
    assert pipeline.run("kaigen validate").returncode == 2
    assert not list(pipeline.checkout.top.glob("kaigen-*"))


def test_a_stale_tree_fails(pipeline: Pipeline) -> None:
    assert pipeline.run("kaigen render").returncode == 0
    pipeline.checkout.edit(SPEC, "memory: 24Gi\n", "memory: 25Gi\n")
    assert pipeline.run("kaigen render").returncode == 1
    assert pipeline.run("kaigen render", environments="nope neither").returncode == 2


def test_the_diff_is_one_note_kept_up_to_date(pipeline: Pipeline) -> None:
    assert pipeline.run("kaigen diff").returncode == 0
    assert pipeline.run("kaigen comment").stdout == "comment: skipped\n"
    assert pipeline.forge.comments == {}
    pipeline.checkout.edit(SPEC, "memory: 24Gi\n", "memory: 25Gi\n")
    for said in ("created", "unchanged"):
        assert pipeline.run("kaigen diff").returncode == 0
        done = pipeline.run("kaigen comment")
        assert done.stdout.splitlines()[-1] == f"comment: {said}"
    (body,) = pipeline.forge.comments.values()
    assert "25Gi" in body
    assert body.partition("\n\n")[2] in pipeline.artifact("kaigen-diff-1.md")


def test_without_a_token_the_diff_is_printed_alone(pipeline: Pipeline) -> None:
    pipeline.checkout.edit(SPEC, "memory: 24Gi\n", "memory: 25Gi\n")
    done = pipeline.run("kaigen diff", token=False)
    assert done.returncode == 0
    assert "25Gi" in done.stdout
    assert pipeline.run("kaigen comment", token=False).returncode == 0
    assert pipeline.forge.requests == []


def test_files_of_the_checkout_are_neither_run_nor_posted_nor_followed(pipeline: Pipeline) -> None:
    victim = pipeline.checkout.temp / "victim"
    plant_modules(pipeline.checkout.here)
    for name in ("kaigen-diff-1.md", "kaigen-diff-1.changed", "kaigen-junit.xml"):
        (pipeline.checkout.top / name).symlink_to(victim)
    (pipeline.checkout.top / "kaigen-diff-2.md").write_text("Approved.")
    for name in ("kaigen validate", "kaigen render", "kaigen diff", "kaigen comment"):
        done = pipeline.run(name)
        assert done.returncode == 0, done.stderr
    assert not victim.exists()
    assert not (pipeline.checkout.temp / "ran").exists()
    assert not (pipeline.checkout.top / "kaigen-diff-2.md").exists()
    assert pipeline.forge.comments == {}


def test_the_preparation_installs_the_pinned_kaigen_and_runs_no_file_of_the_checkout(
    checkout_of_job: Pipeline, tmp_path: Path
) -> None:
    pipeline = checkout_of_job
    source = tmp_path / "kaigen-source"
    subprocess.run(["git", "clone", "--quiet", "--no-local", "--depth=1", ROOT.as_uri(), source], check=True)
    commit = subprocess.run(
        ["git", "rev-parse", "HEAD"], cwd=source, check=True, capture_output=True, text=True
    ).stdout.strip()
    plant_modules(pipeline.checkout.here)
    programs = tmp_path / "programs"
    programs.mkdir()
    (programs / "python3").symlink_to(sys.executable)
    (script,) = jobs()[".kaigen"]["before_script"]
    environment = {
        **jobs(version=commit, repository=source.as_uri())[".kaigen"]["variables"],
        "CI_BUILDS_DIR": str(tmp_path / "builds"),
        "CI_PROJECT_DIR": str(pipeline.checkout.top),
        "CI_JOB_ID": "1",
        "PIP_NO_INDEX": "1",
        "PIP_CONFIG_FILE": "/dev/null",
        "PYTHONPATH": sysconfig.get_path("purelib"),
    }
    found = f'PATH="{programs}:$PATH"\n{script}\ncommand -v kaigen\nkaigen --version\n'
    done = pipeline.checkout.run(found, environment, pipeline.shell)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(f"{tmp_path}/builds/.kaigen-1/venv/bin/kaigen\nkaigen ")
    assert not (pipeline.checkout.temp / "ran").exists()


def test_specs_that_are_wrong_fail_the_diff(pipeline: Pipeline) -> None:
    pipeline.checkout.edit(SPEC, "spec:\n", "spec:\n  retris: 3\n")
    assert pipeline.run("kaigen diff").returncode == 2
