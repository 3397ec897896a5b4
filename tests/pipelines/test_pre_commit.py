"""The hooks, run by a real pre-commit that installs them from a clone of this repository."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Any

import pytest
import yaml

from kaigen.scaffold.place import Place
from kaigen.scaffold.templates import top_files
from tests.pipelines.checkout import ROOT, Checkout, read_yaml

MANIFEST = ROOT / ".pre-commit-hooks.yaml"
SPEC = "specs/finetune.yaml"
_IDENTITY = ("-c", "user.name=Ada", "-c", "user.email=ada@example.com")


def git(folder: Path, *arguments: str) -> str:
    done = subprocess.run(["git", *_IDENTITY, *arguments], cwd=folder, capture_output=True, text=True, check=True)
    return done.stdout.strip()


@pytest.fixture(scope="module")
def hooks(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A repository with what the package is built of, and its commit."""
    folder = tmp_path_factory.mktemp("hooks")
    for name in ("pyproject.toml", "README.md", "LICENSE", MANIFEST.name):
        shutil.copy(ROOT / name, folder / name)
    shutil.copytree(ROOT / "kaigen", folder / "kaigen", ignore=shutil.ignore_patterns("__pycache__"))
    git(folder, "init", "--quiet", "--initial-branch=main")
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--message=Hooks")
    return folder, git(folder, "rev-parse", "HEAD")


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where pre-commit keeps what it has installed, for all tests of this file."""
    return tmp_path_factory.mktemp("home")


class PreCommit:
    """A repository that uses the hooks."""

    def __init__(self, checkout: Checkout, hooks: tuple[Path, str], home: Path) -> None:
        self.checkout = checkout
        self.home = home
        url, commit = hooks
        wanted: list[dict[str, Any]] = [
            {"id": "kaigen-validate"},
            {"id": "kaigen-render"},
            {"id": "kaigen-render-check"},
            {"id": "kaigen-check", "files": "^plain/"},
        ]
        config = {"repos": [{"repo": str(url), "rev": commit, "hooks": wanted}]}
        (checkout.top / ".pre-commit-config.yaml").write_text(yaml.safe_dump(config))

    def run(self, hook: str) -> subprocess.CompletedProcess[str]:
        """Run a hook over what is staged."""
        git(self.checkout.top, "add", "--all")
        return subprocess.run(
            [sys.executable, "-m", "pre_commit", "run", hook],
            cwd=self.checkout.top,
            env={
                "PATH": os.environ["PATH"],
                "HOME": str(self.home),
                "KAIGEN_CACHE_DIR": "off",
                # Without a package index: what the build takes is in this interpreter's own environment.
                "PIP_NO_INDEX": "1",
                "PIP_NO_DEPS": "1",
                "PIP_NO_BUILD_ISOLATION": "0",
                "PIP_CONFIG_FILE": os.devnull,
                "PYTHONPATH": sysconfig.get_path("purelib"),
            },
            capture_output=True,
            text=True,
            check=False,
        )


@pytest.fixture
def pre_commit(tmp_path: Path, hooks: tuple[Path, str], home: Path) -> PreCommit:
    return PreCommit(Checkout(tmp_path), hooks, home)


def test_the_manifest_is_one() -> None:
    done = subprocess.run([sys.executable, "-m", "pre_commit", "validate-manifest", str(MANIFEST)], check=False)
    assert done.returncode == 0
    assert [hook["entry"].split()[0] for hook in read_yaml(MANIFEST)] == ["kaigen"] * 4


def test_the_hooks_stop_what_is_wrong_and_render_writes(pre_commit: PreCommit) -> None:
    checkout = pre_commit.checkout
    (checkout.here / "plain").mkdir()
    manifest = checkout.here / "plain" / "config.yaml"
    manifest.write_text("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {a: b}\n")
    checkout.edit(SPEC, "memory: 24Gi", "memory: 25Gi")
    assert pre_commit.run("kaigen-validate").returncode == 0
    done = pre_commit.run("kaigen-render-check")
    assert done.returncode == 1
    assert re.search(r"^\+ +memory: 25Gi$", done.stdout, re.MULTILINE)

    # Rendering changes files, so the commit stops; once they are staged it goes on.
    done = pre_commit.run("kaigen-render")
    assert done.returncode == 1
    assert "files were modified by this hook" in done.stdout
    for hook in ("kaigen-render", "kaigen-render-check", "kaigen-check"):
        done = pre_commit.run(hook)
        assert done.returncode == 0, done.stdout + done.stderr
        assert "Passed" in done.stdout

    checkout.edit(SPEC, "memory: 25Gi", "memroy: 25Gi")
    manifest.write_text("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndta: {a: b}\n")
    assert "did you mean `memory`?" in pre_commit.run("kaigen-validate").stdout
    assert "plain/config.yaml:4:1: error[KG0504]" in pre_commit.run("kaigen-check").stdout


def test_the_hooks_that_init_writes_run_in_a_folder_below_the_top(
    tmp_path: Path, hooks: tuple[Path, str], home: Path
) -> None:
    pre_commit = PreCommit(Checkout(tmp_path, "teams/ml"), hooks, home)
    top = pre_commit.checkout.top
    config = yaml.safe_load(top_files(Place(top / "teams/ml", top))[".pre-commit-config.yaml"])
    (repository,) = config["repos"]
    repository |= {"repo": str(hooks[0]), "rev": hooks[1]}
    (top / ".pre-commit-config.yaml").write_text(yaml.safe_dump(config))

    pre_commit.checkout.edit(SPEC, "memory: 24Gi", "memory: 25Gi")
    assert "Passed" in pre_commit.run("kaigen-validate").stdout
    pre_commit.checkout.edit(SPEC, "memory: 25Gi", "memroy: 25Gi")
    assert "did you mean `memory`?" in pre_commit.run("kaigen-validate").stdout
