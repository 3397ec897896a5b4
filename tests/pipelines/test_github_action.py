"""The GitHub Action: its scripts run for real, in a clone, with what GitHub would set."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import sysconfig
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.pipelines.checkout import ROOT, Checkout, plant_modules, read_yaml
from tests.pipelines.forge import TOKEN, Forge, running

ACTION = ROOT / "gitops" / "github-action" / "action.yml"
COMMENT = ROOT / "gitops" / "github-comment" / "action.yml"
SPEC = "specs/finetune.yaml"


def steps(action: Path = ACTION) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = read_yaml(action)["runs"]["steps"]
    return found


def step(name: str) -> dict[str, Any]:
    both = [*steps(), *(each for each in steps(COMMENT) if each.get("name") == "Comment")]
    (found,) = [each for each in both if each.get("name") == name]
    return found


def obeyed(text: str) -> list[str]:
    """Return the lines with commands that the runner obeys in what a step prints.

    It obeys `::command::` at the start of a line, and the older form `##[command]` anywhere.
    """
    found, paused = [], ""
    for line in text.splitlines():
        if paused:
            paused = "" if line == f"::{paused}::" else paused
        elif stopped := re.fullmatch(r"::stop-commands::(\w{32})", line):
            paused = stopped[1]
        elif line.lstrip().startswith("::") or "##[" in line:
            found.append(line)
    return found


class Job:
    """One job: what its steps write for each other and for people."""

    def __init__(self, checkout: Checkout, forge: Forge) -> None:
        self.checkout = checkout
        self.forge = forge
        self.summary = checkout.temp / "summary.md"
        self.output = checkout.temp / "output"
        self.others = [checkout.temp / name for name in ("env", "path", "state")]
        self.event = checkout.temp / "event.json"
        self.event.write_text(json.dumps(forge.event))

    def run(self, name: str, **inputs: str) -> subprocess.CompletedProcess[str]:
        """Run a step with inputs, the others being as the action's defaults say."""
        found = step(name)
        self.summary.write_text("")
        self.output.write_text("")
        for path in self.others:
            path.write_text("")
        defaults = {
            key: str(each["default"])
            for action in (ACTION, COMMENT)
            for key, each in read_yaml(action)["inputs"].items()
        }
        given = {**defaults, "base": "main", "token": TOKEN, **inputs}
        environment = {**self.forge.environment("github")}
        del environment["GITHUB_TOKEN"]
        environment |= {
            "GITHUB_WORKSPACE": str(self.checkout.top),
            "GITHUB_ACTION_PATH": str(ACTION.parent),
            "GITHUB_EVENT_PATH": str(self.event),
            "GITHUB_STEP_SUMMARY": str(self.summary),
            "GITHUB_OUTPUT": str(self.output),
            **{f"GITHUB_{path.name.upper()}": str(path) for path in self.others},
        }
        assert found["shell"] == "bash"
        script = self.checkout.temp / "step.sh"
        script.write_text(found["run"])
        done = self.checkout.run(
            str(script),
            environment | self._variables(found.get("env", {}), given),
            ("bash", "--noprofile", "--norc", "-euo", "pipefail"),
        )
        assert TOKEN not in done.stdout + done.stderr
        assert [path.name for path in self.others if path.read_text()] == []
        return done

    @staticmethod
    def _variables(declared: Mapping[str, str], given: Mapping[str, str]) -> dict[str, str]:
        found = {}
        for name, expression in declared.items():
            match = re.fullmatch(r"\$\{\{ inputs\.([a-z-]+) \}\}", expression)
            assert match, expression
            found[name] = given[match[1]]
        return found


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    return Checkout(tmp_path)


@pytest.fixture
def job(checkout: Checkout) -> Iterator[Job]:
    with running("github") as forge:
        yield Job(checkout, forge)


def change(checkout: Checkout, old: str, new: str) -> None:
    """Change the memory of a Job, in its spec alone."""
    checkout.edit(SPEC, f"memory: {old}\n", f"memory: {new}\n")


# What the file says


@pytest.mark.parametrize("path", [ACTION, COMMENT], ids=lambda path: path.parent.name)
def test_the_action_follows_githubs_schema(check_schema: Any, path: Path) -> None:
    check_schema("vendor.github-actions", path)


def test_no_script_has_a_value_pasted_into_it() -> None:
    scripts = [each["run"] for each in (*steps(), *steps(COMMENT)) if "run" in each]
    assert len(scripts) == 7
    assert [text for text in scripts if "${{" in text] == []


@pytest.mark.parametrize("path", [ACTION, COMMENT], ids=lambda path: path.parent.name)
def test_every_input_and_step_that_is_referred_to_is_there_and_every_input_is_used(path: Path) -> None:
    text = path.read_text()
    body = text[text.index("\nruns:") :]
    outputs = text[text.index("\noutputs:") :] if "\noutputs:" in text else ""
    assert set(re.findall(r"inputs\.([a-z-]+)", body)) == set(read_yaml(path)["inputs"])
    ids = {each["id"] for each in steps(path) if "id" in each}
    assert set(re.findall(r"steps\.([a-z-]+)\.", body + outputs)) <= ids


def test_other_actions_are_pinned_to_a_commit() -> None:
    used = [each["uses"] for each in (*steps(), *steps(COMMENT)) if "uses" in each]
    assert len(used) == 5
    assert [each for each in used if not re.fullmatch(r"[\w./-]+@[0-9a-f]{40}", each)] == []


def test_only_the_job_without_a_checkout_has_a_token_that_can_write() -> None:
    assert "token" not in read_yaml(ACTION)["inputs"]
    assert [each for each in steps() if "TOKEN" in str(each.get("env"))] == []
    assert [each for each in steps(COMMENT) if "working-directory" in each] == []
    install = [next(each for each in steps(path) if "Install" in each.get("name", "")) for path in (ACTION, COMMENT)]
    assert install[0] == install[1]


# What the steps do


def test_the_install_step_installs_the_kaigen_that_the_action_came_with(job: Job, tmp_path: Path) -> None:
    # Without a package index: what a build takes is in this interpreter's own environment.
    offline = {"PIP_NO_INDEX": "1", "PIP_CONFIG_FILE": "/dev/null", "PYTHONPATH": sysconfig.get_path("purelib")}
    fresh = tmp_path / "fresh"
    found = step("Install kaigen")["run"]
    programs = tmp_path / "programs"
    programs.mkdir()
    (programs / "python3").symlink_to(sys.executable)
    plant_modules(job.checkout.here)
    done = job.checkout.run(
        f'PATH="{programs}:$PATH"\n{found}',
        {"RUNNER_TEMP": str(fresh), "GITHUB_ACTION_PATH": str(ACTION.parent), **offline},
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("kaigen ")
    assert list(fresh.glob("kaigen/lib/python*/site-packages/kaigen/diff/comment.py"))
    assert not (job.checkout.temp / "ran").exists()


def test_no_step_runs_a_file_of_the_checkout(job: Job) -> None:
    change(job.checkout, "24Gi", "25Gi")
    job.checkout.kaigen("render")
    plant_modules(job.checkout.here)
    job.checkout.commit()
    for name in (
        "kaigen validate",
        "kaigen validate, for code scanning",
        "kaigen render --check",
        "kaigen diff",
        "Comment",
    ):
        done = job.run(name)
        assert done.returncode == 0, done.stderr
    assert not (job.checkout.temp / "ran").exists()


def test_validate_reports_problems_as_annotations_and_fails(job: Job) -> None:
    assert job.run("kaigen validate").returncode == 0
    job.checkout.edit(SPEC, "spec:\n", "spec:\n  retris: 3\n")
    done = job.run("kaigen validate")
    assert done.returncode == 2
    assert [line for line in obeyed(done.stdout) if line.startswith(f"::error file={SPEC},line=")]


def test_annotations_of_a_folder_below_name_the_file_as_the_repository_does(tmp_path: Path) -> None:
    checkout = Checkout(tmp_path, "platform/ai")
    checkout.edit(SPEC, "spec:\n", "spec:\n  retris: 3\n")
    with running("github") as forge:
        job = Job(checkout, forge)
        assert f"file=platform/ai/{SPEC}," in job.run("kaigen validate").stdout
        job.run("kaigen validate, for code scanning", sarif="true")
    (run,) = json.loads((checkout.temp / "kaigen.sarif").read_text())["runs"]
    location = run["results"][0]["locations"][0]["physicalLocation"]["artifactLocation"]
    assert location == {"uri": f"platform/ai/{SPEC}"}


def test_paths_and_environments_reach_kaigen_as_they_were_written(job: Job) -> None:
    odd = "specs/a b; $(touch hacked) `touch hacked`.yaml"
    job.checkout.edit(SPEC, "kind: Job", "kind: Jobb")
    (job.checkout.here / SPEC).rename(job.checkout.here / odd)
    done = job.run("kaigen validate", paths=f"{odd}\nspecs/qwen.yaml\n")
    assert done.returncode == 2
    assert "touch hacked" in done.stdout
    done = job.run("kaigen validate", environments="$(touch hacked)")
    assert done.returncode == 2
    assert not (job.checkout.here / "hacked").exists()


def test_every_environment_is_validated(job: Job) -> None:
    done = job.run("kaigen validate", environments="nope,neither\n")
    assert done.returncode == 2
    assert "nope" in done.stdout
    assert "neither" in done.stdout


def test_sarif_is_written_whether_or_not_there_are_problems(job: Job) -> None:
    for text, count in (("", 0), ("  retris: 3\n", 1)):
        job.checkout.edit(SPEC, "spec:\n", f"spec:\n{text}")
        assert job.run("kaigen validate, for code scanning").returncode == 0
        path = job.checkout.temp / "kaigen.sarif"
        assert job.output.read_text() == f"file={path}\n"
        (run,) = json.loads(path.read_text())["runs"]
        assert len(run["results"]) == count


def test_sarif_of_a_broken_configuration_is_none(job: Job) -> None:
    (job.checkout.here / "kaigen.yaml").write_text("kind: [\n")
    assert job.run("kaigen validate, for code scanning").returncode == 0
    assert job.output.read_text() == ""


def test_a_stale_tree_fails_with_its_diff_and_an_annotation(job: Job) -> None:
    assert job.run("kaigen render --check").returncode == 0
    change(job.checkout, "24Gi", "25Gi")
    done = job.run("kaigen render --check")
    assert done.returncode == 1
    assert re.search(r"^\+ +memory: 25Gi$", done.stdout, re.MULTILINE)
    assert done.stdout.splitlines()[-1].startswith("::error title=The rendered tree is stale::")
    assert len(obeyed(done.stdout)) == 1


@pytest.mark.parametrize(
    "name", ["kaigen validate", "kaigen validate, for code scanning", "kaigen render --check", "kaigen diff"]
)
def test_the_runner_obeys_no_error_of_kaigen_or_git(job: Job, name: str) -> None:
    for program in ("kaigen", "git"):
        path = job.checkout.temp / "kaigen" / "bin" / program
        path.write_text("#!/bin/sh\nprintf '::add-mask::a\\nb ##[add-mask]a' >&2\nexit 3\n")
        path.chmod(0o755)
    done = job.run(name)
    assert (done.returncode, done.stderr) == (3 if name != "kaigen validate, for code scanning" else 1, "")
    assert "b ##[add-mask]a\n" in done.stdout
    assert obeyed(done.stdout) == []


def test_the_diff_is_in_the_summary_and_one_comment_is_kept(job: Job) -> None:
    change(job.checkout, "24Gi", "25Gi")
    job.checkout.kaigen("render")
    job.checkout.commit()
    assert job.run("kaigen diff").returncode == 0
    assert job.output.read_text() == "changed=true\n"
    assert "| `ml/finetune` |" in job.summary.read_text()
    assert job.run("Comment").stdout == "comment: created\n"
    (body,) = job.forge.comments.values()
    assert "25Gi" in body

    # Another push changes the comment, and one that takes all back leaves no claim behind.
    change(job.checkout, "25Gi", "26Gi")
    job.checkout.kaigen("render")
    job.run("kaigen diff")
    assert job.run("Comment").stdout == "comment: updated\n"
    assert "26Gi" in job.forge.comments[1000]
    change(job.checkout, "26Gi", "24Gi")
    job.checkout.kaigen("render")
    job.run("kaigen diff")
    assert job.output.read_text() == "changed=false\n"
    assert job.run("Comment").stdout == "comment: updated\n"
    (body,) = job.forge.comments.values()
    assert "No changes" in body


def test_a_change_of_nothing_makes_no_comment(job: Job) -> None:
    assert job.run("kaigen diff").returncode == 0
    assert job.run("Comment").stdout == "comment: skipped\n"
    assert job.forge.comments == {}


def test_a_shallow_clone_fetches_what_the_diff_needs(tmp_path: Path) -> None:
    checkout = Checkout(tmp_path)
    change(checkout, "24Gi", "25Gi")
    checkout.commit()
    shallow = tmp_path / "shallow"
    origin = (tmp_path / "origin").as_uri()
    done = checkout.run(
        f"git push --quiet origin change && git clone --quiet --depth=1 --branch=change {origin} {shallow}", {}
    )
    assert done.returncode == 0, done.stderr
    checkout.here = checkout.top = shallow
    with running("github") as forge:
        done = Job(checkout, forge).run("kaigen diff")
        assert done.returncode == 0, done.stderr
        assert "25Gi" in (checkout.temp / "summary.md").read_text()


def test_specs_that_are_wrong_fail_the_diff(job: Job) -> None:
    job.checkout.edit(SPEC, "spec:\n", "spec:\n  retris: 3\n")
    assert job.run("kaigen diff").returncode == 2
    assert job.output.read_text() == ""
