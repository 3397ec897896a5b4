"""Every call of git runs against the repository that is named, without prompts."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from kaigen.diagnostics.errors import InputError, SystemFailure
from kaigen.git.runner import NOT_INHERITED, run_git


def plant_bare_repository(folder: Path) -> Path:
    """Write a bare repository that fetches missing objects with a command; return the file that the command makes."""
    ran = folder.parent / "ran"
    files = {
        "HEAD": "ref: refs/heads/main\n",
        "refs/heads/main": f"{'1' * 40}\n",
        "objects/keep": "",
        "config": "[core]\n\trepositoryformatversion = 1\n\tbare = true\n[extensions]\n\tpartialClone = origin\n"
        f'[remote "origin"]\n\turl = .\n\tpromisor = true\n\tuploadpack = "touch {ran};"\n',
    }
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return ran


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    folder = tmp_path / "repo"
    folder.mkdir()
    assert run_git(folder, ["init", "-q", "-b", "main"]).ok
    return folder


def test_no_variable_that_binds_git_to_a_repository_is_inherited() -> None:
    command = ["git", "rev-parse", "--local-env-vars"]
    local = set(subprocess.run(command, capture_output=True, text=True, check=True).stdout.split())
    configuration = {name for name in local if name.startswith("GIT_CONFIG")}
    set_by_every_call = {"GIT_NO_REPLACE_OBJECTS", "GIT_INTERNAL_SUPER_PREFIX"}
    assert local - configuration - set_by_every_call <= set(NOT_INHERITED)


@pytest.mark.parametrize("name", ["GIT_DIR", "GIT_OBJECT_DIRECTORY", "GIT_SHALLOW_FILE", "GIT_INDEX_FILE"])
def test_a_hook_cannot_redirect_a_call(repo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setenv(name, str(tmp_path / "other"))
    option = {"GIT_OBJECT_DIRECTORY": "objects", "GIT_SHALLOW_FILE": "shallow", "GIT_INDEX_FILE": "index"}
    result = run_git(repo, ["rev-parse", "--git-path", option.get(name, "HEAD")])
    assert result.ok
    assert (repo / result.out.decode().strip()).is_relative_to(repo / ".git")


def test_the_configuration_of_the_caller_is_inherited(repo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIT_CONFIG_COUNT", "1")
    monkeypatch.setenv("GIT_CONFIG_KEY_0", "user.name")
    monkeypatch.setenv("GIT_CONFIG_VALUE_0", "Ada")
    assert run_git(repo, ["config", "user.name"]).out == b"Ada\n"


def test_git_never_prompts(repo: Path) -> None:
    result = run_git(repo, ["-c", "alias.env=!env", "env"])
    variables = dict(line.partition("=")[::2] for line in result.out.decode().split("\n"))
    assert variables["GIT_TERMINAL_PROMPT"] == "0"
    assert variables["GCM_INTERACTIVE"] == "never"
    assert variables["LC_ALL"] == "C"


@pytest.mark.parametrize(
    "args", [["ls-tree", "main"], ["rev-parse", "--verify", "--quiet", "main^{commit}"], ["status"], ["fetch"]]
)
def test_a_planted_bare_repository_is_refused(repo: Path, args: list[str]) -> None:
    planted = repo / "specs"
    ran = plant_bare_repository(planted)
    with pytest.raises(InputError, match=r"specs' looks like a bare Git repository") as caught:
        run_git(planted, args)
    assert caught.value.diagnostics[0].code == "KG0802"
    assert not ran.exists()


def test_git_alone_runs_the_command_of_a_planted_bare_repository(repo: Path) -> None:
    planted = repo / "specs"
    ran = plant_bare_repository(planted)
    subprocess.run(["git", "ls-tree", "main"], cwd=planted, capture_output=True, check=False)
    assert ran.exists()


def test_a_working_tree_of_a_bare_repository_is_read(repo: Path, tmp_path: Path) -> None:
    identity = ["-c", "user.name=Ada", "-c", "user.email=ada@example.com"]
    assert run_git(repo, [*identity, "commit", "-q", "--allow-empty", "-m", "one"]).ok
    assert run_git(tmp_path, ["clone", "-q", "--bare", str(repo), "bare"]).ok
    command = ["git", "--git-dir", "bare", "worktree", "add", "-q", "tree", "main"]
    subprocess.run(command, cwd=tmp_path, check=True)
    assert run_git(tmp_path / "tree", ["log", "--format=%s"]).out == b"one\n"


def test_a_failure_has_the_exit_code_and_the_error_output(repo: Path) -> None:
    result = run_git(repo, ["rev-parse", "--verify", "nothing"])
    assert not result.ok
    assert result.code == 128
    assert result.err.startswith("fatal: ")


def test_a_missing_folder_is_an_input_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="does not exist"):
        run_git(tmp_path / "nothing", ["status"])


def test_a_missing_git_is_a_system_failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SystemFailure, match="not installed"):
        run_git(tmp_path, ["status"])
