"""What a syncer reads is what was checked: no file of another origin in the output passes unseen."""

from __future__ import annotations

import fcntl
import json
import os

import pytest

from tests.unit.security.hostile import CONFIG, Repository

POD = "apiVersion: v1\nkind: Pod\nmetadata: {name: evil}\nspec: {hostPID: true, containers: [{name: a, image: a}]}\n"
INDEX = "# kaigen index 1: the files in this directory that kaigen wrote and may remove.\nmanifests/pod.yaml\n"
GITOPS = "gitops: {repository: https://git.example.com/a.git, argocd: {applications: set}}\n"


@pytest.fixture
def rendered(repository: Repository) -> Repository:
    repository.write({"kaigen.yaml": CONFIG + "format: both\n" + GITOPS})
    repository.rendered()
    repository.git("tag", "base")
    return repository


def gates(repository: Repository) -> tuple[int, int, str]:
    """Return the exit codes of both checks, and the dangers in the diff."""
    check = repository.kaigen("render", "--check")
    validate = repository.kaigen("validate")
    diff = repository.kaigen("diff", "--base", "base", "--output", "json")
    assert diff.code == 0, diff.err
    apps = json.loads(diff.out)["apps"]
    effects = [effect for app in apps for effect in app["effects"]]
    return check.code, validate.code, "\n".join(each["text"] for each in effects if each["level"] == "danger")


@pytest.mark.parametrize(
    "path",
    [
        "ml/evaluate/chart/templates/zz-evil.yaml",
        "ml/evil/manifests/pod.yaml",
        "ml/evaluate/manifests/.argocd-source.yaml",
        "ml/evaluate/manifests/.argocd-source-evaluate.yaml",
        "ml/evaluate/manifests/kustomization.yml",
        "ml/.sourceignore",
        "evil.yaml",
    ],
)
def test_a_foreign_file_fails_both_checks_and_is_a_danger(rendered: Repository, path: str) -> None:
    assert gates(rendered) == (0, 0, "")
    rendered.write({f"rendered/{path}": POD})
    check, validate, dangers = gates(rendered)
    assert (check, validate) == (2, 2)
    assert path in dangers
    assert "KG0607" in rendered.kaigen("validate").err


def test_a_link_in_the_output_fails_both_checks(rendered: Repository) -> None:
    (rendered.folder / "rendered" / "ml" / "evil").symlink_to("../../specs")
    check, validate, dangers = gates(rendered)
    assert (check, validate, "ml/evil" in dangers) == (2, 2, True)


def test_a_file_that_the_index_lists_is_removed_by_the_next_render(rendered: Repository) -> None:
    rendered.write({"rendered/ml/evil/manifests/pod.yaml": POD})
    index = rendered.folder / "rendered" / ".kaigen-index"
    index.write_text(index.read_text() + "ml/evil/manifests/pod.yaml\n")
    assert rendered.kaigen("render", "--check").code == 1


def test_a_foreign_file_between_environments_is_found(repository: Repository) -> None:
    repository.write({"kaigen.yaml": CONFIG + "environments: {dev: {}, prod: {}}\n"})
    repository.rendered()
    repository.git("tag", "base")
    assert gates(repository) == (0, 0, "")
    repository.write({"rendered/staging/pod.yaml": POD, "rendered/prod/ml/evil/manifests/pod.yaml": POD})
    check, validate, dangers = gates(repository)
    assert (check, validate) == (2, 2)
    assert "staging/pod.yaml" in dangers
    assert "prod/ml/evil/manifests/pod.yaml" in dangers


def test_an_edited_folder_that_is_no_longer_rendered_is_a_danger(rendered: Repository) -> None:
    config = (rendered.folder / "kaigen.yaml").read_text()
    rendered.write({"kaigen.yaml": config + "output: rendered2\n"})
    assert rendered.kaigen("render").code == 0
    job = rendered.folder / "rendered" / "ml" / "evaluate" / "manifests" / "job.yaml"
    job.write_text(job.read_text().replace("example.com/evaluate:1.0", "example.com/evil:1.0"))
    assert "ml/evaluate/manifests/job.yaml" in gates(rendered)[2]


def test_files_of_the_user_are_allowed_by_name_and_the_grant_is_a_danger(rendered: Repository) -> None:
    config = (rendered.folder / "kaigen.yaml").read_text()
    rendered.write(
        {
            "kaigen.yaml": config + "allow: {files: [README.md, 'ml/own/*']}\n",
            "rendered/README.md": "# Ours\n",
            "rendered/ml/own/manifests/pod.yaml": POD,
        }
    )
    check, validate, dangers = gates(rendered)
    assert (check, validate) == (0, 0)
    assert "files README.md in the output" in dangers
    rendered.commit()
    rendered.git("tag", "--force", "base")
    assert gates(rendered) == (0, 0, "")
    rendered.write({"rendered/ml/own/manifests/pod.yaml": POD.replace("evil", "worse")})
    assert gates(rendered)[:2] == (0, 0)
    assert "ml/own/manifests/pod.yaml" in gates(rendered)[2]


def test_a_merged_foreign_object_is_not_shown_as_removed(rendered: Repository) -> None:
    rendered.write({"rendered/ml/evil/manifests/pod.yaml": POD})
    rendered.commit()
    done = rendered.kaigen("diff", "--base", "HEAD")
    assert "removed" not in done.out


def test_a_check_of_some_specs_does_not_look_at_the_whole_folder(rendered: Repository) -> None:
    rendered.write({"rendered/evil.yaml": POD})
    assert rendered.kaigen("validate", "specs/evaluate.yaml").code == 0
    assert rendered.kaigen("render").code == 0


@pytest.mark.parametrize("folder", ["ml/evil", "evil"])
def test_an_index_in_another_folder_owns_nothing(rendered: Repository, folder: str) -> None:
    rendered.write({f"rendered/{folder}/manifests/pod.yaml": POD, f"rendered/{folder}/.kaigen-index": INDEX})
    check, validate, dangers = gates(rendered)
    assert (check, validate, f"{folder}/manifests/pod.yaml" in dangers) == (2, 2, True)


def test_an_index_between_environments_owns_nothing(repository: Repository) -> None:
    repository.write({"kaigen.yaml": CONFIG + "environments: {dev: {}, prod: {}}\n"})
    repository.rendered()
    repository.git("tag", "base")
    repository.write({"rendered/evil/manifests/pod.yaml": POD, "rendered/evil/.kaigen-index": INDEX})
    check, validate, dangers = gates(repository)
    # The next render removes it, as what a deleted environment left behind.
    assert (check, validate, "evil/manifests/pod.yaml" in dangers) == (1, 2, True)


@pytest.mark.parametrize("folder", ["ml/evaluate/chart/templates/x", "ml", ""])
def test_a_folder_with_the_name_of_a_running_render_is_foreign(rendered: Repository, folder: str) -> None:
    path = f"{folder}/.kaigen-staging-0123456789abcdef/pod.yaml".lstrip("/")
    rendered.write({f"rendered/{path}": POD})
    check, validate, dangers = gates(rendered)
    assert (check, validate, path in dangers) == (2, 2, True)


def test_only_a_running_render_may_have_files_next_to_the_environments(repository: Repository) -> None:
    repository.write({"kaigen.yaml": CONFIG + "environments: {dev: {}, prod: {}}\n"})
    repository.rendered()
    repository.git("tag", "base")
    container = "rendered/.kaigen-staging-0123456789abcdef"
    repository.write({f"{container}/new/ml/x.yaml": POD})
    directory = os.open(repository.folder / "rendered", os.O_RDONLY)
    try:
        fcntl.flock(directory, fcntl.LOCK_EX)
        assert gates(repository) == (0, 0, "")
    finally:
        os.close(directory)
    # In a checkout no render is running, whatever files are there.
    repository.write({"rendered/.kaigen-staging-lock": ""})
    check, validate, dangers = gates(repository)
    assert (check, validate, ".kaigen-staging-0123456789abcdef" in dangers) == (2, 2, True)


def test_a_submodule_in_the_output_fails_both_checks(rendered: Repository) -> None:
    head = rendered.git("rev-parse", "HEAD")
    rendered.git("update-index", "--add", "--cacheinfo", f"160000,{head},rendered/ml/evil/manifests")
    rendered.git("commit", "--quiet", "--message=Change")
    # A checkout without submodules has an empty folder.
    (rendered.folder / "rendered/ml/evil/manifests").mkdir(parents=True)
    check, validate, dangers = gates(rendered)
    assert (check, validate, "ml/evil/manifests" in dangers) == (2, 2, True)
    assert "if it is a submodule" in rendered.kaigen("validate").err
    rendered.write({"rendered/ml/evil/manifests/.git": "gitdir: ../x\n"})
    assert gates(rendered)[:2] == (2, 2)


def test_the_output_of_an_environment_without_specs_may_be_an_empty_folder(repository: Repository) -> None:
    repository.write({"kaigen.yaml": CONFIG + "environments: {dev: {}, prod: {}}\n"})
    repository.rendered()
    repository.git("tag", "base")
    (repository.folder / "specs" / "evaluate.yaml").unlink()
    assert repository.kaigen("render").code == 0
    assert gates(repository)[:2] == (0, 0)
