"""An environment that follows commits: each spec is compiled as of the commit that was promoted to it."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from kaigen.commit_promotion import CommitPromotion, Request, plan_commit_promotion
from kaigen.config.load import load_config
from kaigen.config.lock_file import lock_text, lock_with
from kaigen.diagnostics.errors import InputError
from kaigen.lock.names import source_names
from kaigen.pipeline.change import tree_at
from kaigen.pipeline.run import Run, render

CONFIG = """\
namespace: ml
promotion: [dev, staging, prod]
environments:
  dev: {}
  staging: {follows: commits, namespace: ml-staging}
  prod: {follows: commits, namespace: ml-prod}
"""
PINS = "apiVersion: kaigen.dev/v1alpha1\nkind: Pins\ncommits: {}\n"
JOB = """\
apiVersion: kaigen.dev/v1alpha1
kind: Job
metadata: {{name: {name}{metadata}}}
spec: {{image: "python:3.12-slim", command: [python, revision-{version}]}}
"""


_VERSION = re.compile(r"revision-([0-9])")


class Repository:
    """A clone whose kaigen.yaml is in a folder."""

    def __init__(self, top: Path, place: str = "") -> None:
        self.top = top
        self.root = top / place

    @classmethod
    def make(cls, top: Path, place: str = "") -> Repository:
        made = cls(top, place)
        made.root.mkdir(parents=True)
        made.git("init", "-q", "-b", "main")
        made.git("config", "user.name", "Ada")
        made.git("config", "user.email", "ada@example.com")
        made.write("kaigen.yaml", CONFIG)
        for name in ("staging", "prod"):
            made.write(f"pins/{name}.yaml", PINS)
        return made

    def git(self, *arguments: str) -> str:
        done = subprocess.run(["git", *arguments], cwd=self.top, check=True, capture_output=True, text=True)
        return done.stdout.strip()

    def write(self, path: str, text: str) -> None:
        (self.root / path).parent.mkdir(parents=True, exist_ok=True)
        (self.root / path).write_text(text)

    def job(self, name: str, version: int, metadata: str = "") -> None:
        self.write(f"specs/{name}.yaml", JOB.format(name=name, version=version, metadata=metadata))

    def commit(self) -> str:
        self.git("add", "--all")
        self.git("commit", "-q", "--allow-empty", "-m", "next")
        return self.git("rev-parse", "HEAD")

    def promote(self, target: str = "prod", source: str = "dev", **options: Any) -> CommitPromotion:
        source = "" if {"commit", "hold"} & options.keys() else source
        request = Request(target, source, skip=True, **options)
        promotion = plan_commit_promotion(self.root, request)
        promotion.write()
        self.commit()
        return promotion

    def versions(self, environment: str = "prod") -> dict[str, str]:
        """Return the version of each Job that an environment runs."""
        files = render((), load_config(self.root, environment))
        found = ((path.split("/")[1], _VERSION.search(data.decode())) for path, data in files.items())
        return {name: match[1] for name, match in found if match}


@pytest.fixture
def place() -> str:
    """The folder of kaigen.yaml."""
    return "ai/platform"


@pytest.fixture
def repository(tmp_path: Path, place: str) -> Repository:
    return Repository.make(tmp_path / "clone", place)


in_every_place = pytest.mark.parametrize("place", ["", "ai/platform"], ids=["top", "subfolder"])


def moved(promotion: CommitPromotion) -> list[str]:
    return [move.app for move in promotion.moves if move.field == "commit"]


@in_every_place
def test_a_merge_reaches_the_first_environment_and_each_later_one_is_promoted(repository: Repository) -> None:
    repository.job("tune", 1)
    repository.job("serve", 1)
    first = repository.commit()
    assert repository.versions("dev") == {"tune": "1", "serve": "1"}
    assert repository.versions() == {}
    assert moved(repository.promote("staging")) == ["serve", "tune"]
    repository.job("tune", 2)
    repository.commit()
    assert (repository.versions("dev")["tune"], repository.versions("staging")["tune"]) == ("2", "1")
    # Only what differs moves, and staging gives its own commits on.
    assert moved(repository.promote("staging", apps=("tune",))) == ["tune"]
    repository.job("tune", 3)
    repository.commit()
    promotion = repository.promote("prod", "staging")
    assert moved(promotion) == ["serve", "tune"]
    assert promotion.change is not None
    assert {app.title for app in promotion.change.apps} == {"ml-prod/serve", "ml-prod/tune"}
    assert repository.versions() == {"tune": "2", "serve": "1"}
    assert load_config(repository.root, "prod").commits == {move.app: move.new for move in promotion.moves[:2]}
    assert promotion.moves[0].new == first
    assert repository.promote("prod", "staging").text is None


@in_every_place
def test_a_rollback_is_an_older_commit_and_a_hold_keeps_it(repository: Repository) -> None:
    repository.job("tune", 1)
    first = repository.commit()
    repository.job("tune", 2)
    repository.commit()
    repository.promote()
    assert moved(repository.promote(apps=("tune",), commit=first, hold=True)) == ["tune"]
    assert repository.versions() == {"tune": "1"}
    again = repository.promote()
    assert (again.text, again.held) == (None, ("tune",))
    assert repository.promote(apps=("tune",)).held == ()
    assert repository.versions() == {"tune": "2"}
    repository.promote(hold=True)
    assert repository.promote().held == ("tune",)


def test_new_and_removed_apps_wait_for_their_promotion(repository: Repository) -> None:
    repository.job("tune", 1)
    repository.commit()
    repository.promote()
    (repository.root / "specs" / "tune.yaml").unlink()
    repository.job("other", 1)
    repository.job("try", 1, ", environments: [dev]")
    repository.commit()
    assert repository.versions() == {"tune": "1"}
    promotion = repository.promote()
    assert (moved(promotion), promotion.dropped) == (["other"], ("tune",))
    assert repository.versions() == {"other": "1"}


def test_settings_for_an_app_that_was_not_promoted_are_no_mistake(repository: Repository) -> None:
    model = (
        "apiVersion: kaigen.dev/v1alpha1\nkind: Model\nmetadata: {name: qwen}\n"
        "spec: {source: {huggingFace: {repo: acme/small, revision: main}}, store: {volume: {size: 5Gi}}}\n"
    )
    repository.write("specs/model.yaml", model)
    repository.commit()
    repository.promote()
    before = render((), load_config(repository.root, "prod"))
    repository.job("new", 1)
    values = "values: {new: {resources: {memory: 2Gi}}}\n"
    repository.write("kaigen.yaml", CONFIG + values)
    repository.commit()
    assert render((), load_config(repository.root, "prod")) == before
    # What is locked is what the specs say now, in every environment.
    assert {name.apps for name in source_names([load_config(repository.root, "prod")]).values()}


def test_each_spec_has_the_lock_of_its_commit(repository: Repository) -> None:
    def lock(digit: str) -> None:
        repository.write("kaigen.lock", lock_text(lock_with({}, {"python:3.12-slim": f"sha256:{digit * 64}"})))
        repository.commit()

    def digests() -> set[str]:
        files = render((), load_config(repository.root, "prod"))
        return {digit for digit in "123" for data in files.values() if f"sha256:{digit * 64}" in data.decode()}

    repository.job("tune", 1)
    lock("1")
    repository.promote()
    repository.job("other", 1)
    lock("2")
    assert digests() == {"1"}
    repository.promote(apps=("other",))
    assert digests() == {"1", "2"}
    lock("3")
    assert digests() == {"1", "2"}
    assert moved(repository.promote()) == ["other", "tune"]
    assert digests() == {"3"}


def errors(root: Path, environment: str = "prod", inputs: Sequence[str] = ()) -> list[tuple[str, str, str]]:
    with pytest.raises(InputError) as error:
        render(inputs, load_config(root, environment))
    return [(item.code, item.message, item.hint) for item in error.value.diagnostics]


def test_an_environment_without_promoted_commits_is_an_error_and_not_empty(repository: Repository) -> None:
    repository.job("tune", 1)
    (repository.root / "pins" / "prod.yaml").unlink()
    repository.commit()
    ((code, _, hint),) = errors(repository.root)
    assert code == "KG0727"
    assert "kaigen promote" in hint
    promotion = repository.promote()
    # Compared with the specs, which it had until now.
    assert promotion.change is not None
    assert promotion.change.apps == ()
    assert repository.versions() == {"tune": "1"}


def test_a_commit_that_is_unknown_or_lacks_the_spec_is_an_error_at_its_line(repository: Repository) -> None:
    repository.job("tune", 1)
    first = repository.commit()
    repository.write("pins/prod.yaml", f"{PINS[:-4]}\n  tune: {'a' * 40}\n  gone: '{first}'\n")
    found = errors(repository.root)
    assert [code for code, _, _ in found] == ["KG0728", "KG0729"]
    assert "aaaaaaaaaaaa" in found[0][1]
    assert "no spec of `gone`" in found[1][1]
    with pytest.raises(InputError, match="no commit 'nowhere'"):
        repository.promote(apps=("tune",), commit="nowhere")
    # A promotion ends the error.
    repository.commit()
    repository.promote()
    assert repository.versions() == {"tune": "1"}


@in_every_place
def test_a_shallow_clone_says_how_to_get_the_commit(repository: Repository, tmp_path: Path) -> None:
    repository.job("tune", 1)
    repository.commit()
    repository.promote()
    shallow = tmp_path / "shallow"
    repository.git("clone", "-q", "--depth=1", repository.top.as_uri(), str(shallow))
    ((code, _, hint),) = errors(shallow / repository.root.relative_to(repository.top))
    assert code == "KG0728"
    assert "fetch-depth: 0" in hint


def test_a_worktree_has_the_commits_of_its_clone(repository: Repository, tmp_path: Path) -> None:
    repository.job("tune", 1)
    repository.commit()
    repository.promote()
    tree = tmp_path / "tree"
    repository.git("worktree", "add", "-q", "--detach", str(tree))
    place = repository.root.relative_to(repository.top)
    assert Repository(tree, str(place)).versions() == {"tune": "1"}


def test_a_spec_that_refers_to_one_that_was_not_promoted_says_so(repository: Repository) -> None:
    model = (
        "apiVersion: kaigen.dev/v1alpha1\nkind: Model\nmetadata: {name: qwen}\nspec: {source: {huggingFace: "
        "{repo: a/b, revision: 7ae557604adf67be50417f59c2c2f167def9a775}}, store: {volume: {size: 5Gi}}}\n"
    )
    repository.write("specs/model.yaml", model)
    repository.write(
        "specs/tune.yaml", JOB.format(name="tune", version=1, metadata="").replace("spec: {", "spec: {model: qwen, ")
    )
    repository.commit()
    with pytest.raises(InputError, match="environment `prod` does not have the Model `qwen`") as error:
        repository.promote(apps=("tune",))
    assert "kaigen promote --to prod qwen" in error.value.diagnostics[0].hint
    assert moved(repository.promote()) == ["qwen", "tune"]


def test_overrides_next_to_the_specs_are_those_that_are_checked_out(repository: Repository) -> None:
    repository.job("train", 1)
    overrides = (
        "apiVersion: kaigen.dev/v1alpha1\nkind: Overrides\noverrides: [{match: {app: train}, spec: {image: %s}}]\n"
    )
    repository.write("specs/overrides/prod.yaml", overrides % "python:3.13-slim")
    repository.commit()
    repository.promote()
    assert set(load_config(repository.root, "prod").commits or ()) == {"train"}
    repository.write("specs/overrides/prod.yaml", overrides % "python:3.14-slim")
    files = render((), load_config(repository.root, "prod"))
    assert b"python:3.14-slim" in files["ml-prod/train/manifests/job.yaml"]


def test_plain_objects_follow_the_commit_of_their_file(repository: Repository) -> None:
    repository.write("kaigen.yaml", f"{CONFIG}passthrough: true\n")
    text = "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: flags}}\ndata: {{version: revision-{}}}\n"
    repository.write("specs/flags.yaml", text.format(1))
    repository.commit()
    assert moved(repository.promote()) == ["specs/flags.yaml"]
    repository.write("specs/flags.yaml", text.format(2))
    repository.commit()
    assert (repository.versions("dev"), repository.versions()) == ({"flags": "2"}, {"flags": "1"})
    repository.promote()
    assert repository.versions() == {"flags": "2"}


def test_a_config_json_that_changed_is_an_error_because_it_is_read_as_it_is_now(repository: Repository) -> None:
    repository.job("tune", 1)
    spec = (repository.root / "specs/tune.yaml").read_text()
    repository.write("specs/tune.yaml", f"# of config.json\n{spec}")
    repository.write("specs/config.json", '{"model_type": "qwen2"}')
    repository.commit()
    repository.promote()
    assert repository.versions() == {"tune": "1"}
    repository.write("specs/config.json", '{"model_type": "qwen3"}')
    ((code, message, _),) = errors(repository.root)
    assert code == "KG0729"
    assert "config.json` is not as in commit" in message


def test_the_diff_renders_a_commit_that_has_no_tree_from_the_commits_that_it_follows(repository: Repository) -> None:
    repository.job("tune", 1)
    repository.commit()
    repository.promote()
    repository.job("tune", 2)
    commit = repository.commit()
    config = load_config(repository.root, "prod")
    before = tree_at(config, commit, config.output)
    assert before == render((), config)
    assert before


def test_positions_name_the_commit(repository: Repository) -> None:
    repository.job("tune", 1)
    repository.write("specs/tune.yaml", (repository.root / "specs/tune.yaml").read_text().replace("command", "comand"))
    commit = repository.commit()
    repository.write("pins/prod.yaml", f"{PINS[:-4]}\n  tune: '{commit}'\n")
    run = Run.load((), load_config(repository.root, "prod"))
    (found,) = run.diagnostics
    assert found.mark is not None
    assert found.mark.file.endswith(f"specs/tune.yaml@{commit[:12]}")


def test_uncommitted_specs_and_unknown_apps_are_not_promoted(repository: Repository) -> None:
    repository.job("tune", 1)
    repository.commit()
    with pytest.raises(InputError, match="no app `tuna`"):
        repository.promote(apps=("tuna",))
    repository.job("tune", 2)
    with pytest.raises(InputError, match="uncommitted changes in specs"):
        repository.promote()
