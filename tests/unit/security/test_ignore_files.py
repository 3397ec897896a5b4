"""A `.sourceignore` above the output removes objects from what Flux deploys, so it does not pass unseen."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.unit.security.hostile import CONFIG, JOB, Repository

IGNORED = "rendered/ml/evaluate/manifests/job.yaml\n"


def dangers(repository: Repository) -> str:
    done = repository.kaigen("diff", "--base", "base", "--output", "json")
    assert done.code == 0, done.err
    effects = [effect for app in json.loads(done.out)["apps"] for effect in app["effects"]]
    return "\n".join(each["text"] for each in effects if each["level"] == "danger")


@pytest.fixture
def rendered(repository: Repository) -> Repository:
    repository.write({"kaigen.yaml": f"{CONFIG}output: deploy/rendered\n"})
    repository.rendered()
    repository.git("tag", "base")
    return repository


@pytest.mark.parametrize(("folder", "path"), [("", "../../.sourceignore"), ("deploy/", "../.sourceignore")])
def test_an_ignore_file_above_the_output_fails_both_checks_and_is_a_danger(
    rendered: Repository, folder: str, path: str
) -> None:
    assert rendered.kaigen("validate").code == 0
    rendered.write({f"{folder}.sourceignore": IGNORED})
    for command in (("validate",), ("render", "--check")):
        done = rendered.kaigen(*command)
        assert (done.code, "KG0607" in done.err, f"`{path}`" in done.err) == (2, True, True), done.text
    assert path in dangers(rendered)


def test_a_link_in_place_of_an_ignore_file_fails_the_check(rendered: Repository) -> None:
    (rendered.folder / ".sourceignore").symlink_to("kaigen.yaml")
    assert rendered.kaigen("validate").code == 2


def test_an_ignore_file_at_the_top_of_the_checkout_is_found_from_a_folder_below(
    repository: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    repository.write({"platform/kaigen.yaml": CONFIG, "platform/specs/a.yaml": JOB, ".sourceignore": IGNORED})
    monkeypatch.chdir(repository.folder / "platform")
    done = repository.kaigen("validate")
    assert (done.code, "../../.sourceignore" in done.err) == (2, True), done.text


def test_an_ignore_file_outside_of_the_checkout_is_not_reported(rendered: Repository, tmp_path: Path) -> None:
    (tmp_path / ".sourceignore").write_text("*\n", encoding="utf-8")
    assert rendered.kaigen("validate").code == 0


def test_an_ignore_file_can_be_allowed_and_its_changes_are_dangers(rendered: Repository) -> None:
    config = (rendered.folder / "kaigen.yaml").read_text(encoding="utf-8")
    grant = "allow: {files: [../../.sourceignore]}\n"
    rendered.write({"kaigen.yaml": config + grant, ".sourceignore": "docs/\n"})
    assert rendered.kaigen("validate").code == 0
    assert "files ../../.sourceignore" in dangers(rendered)
    rendered.commit()
    rendered.git("tag", "--force", "base")
    assert dangers(rendered) == ""
    rendered.write({".sourceignore": IGNORED})
    assert "../../.sourceignore" in dangers(rendered)


def test_a_glob_for_files_in_the_output_allows_no_ignore_file_above_it(rendered: Repository) -> None:
    config = (rendered.folder / "kaigen.yaml").read_text(encoding="utf-8")
    rendered.write({"kaigen.yaml": config + "allow: {files: ['*']}\n", ".sourceignore": IGNORED})
    assert rendered.kaigen("validate").code == 2
