from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from kaigen.diagnostics.errors import InputError, SystemFailure
from kaigen.git.repository import head_commit, is_dirty, merge_base, read_tree_at, resolve

_IDENTITY = {
    "GIT_AUTHOR_NAME": "A",
    "GIT_AUTHOR_EMAIL": "a@example.org",
    "GIT_COMMITTER_NAME": "A",
    "GIT_COMMITTER_EMAIL": "a@example.org",
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_NOSYSTEM": "1",
}


def git(folder: Path, *args: str) -> str:
    done = subprocess.run(
        ["git", *args], cwd=folder, env=os.environ | _IDENTITY, check=True, capture_output=True, text=True
    )
    return done.stdout.strip()


def commit(folder: Path, files: dict[str, bytes], message: str = "change") -> str:
    for name, data in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", message)
    return git(folder, "rev-parse", "HEAD")


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    folder = tmp_path / "repo"
    folder.mkdir()
    git(folder, "init", "-q", "-b", "main")
    return folder


def code_and_hint(error: InputError) -> tuple[str, str]:
    return error.diagnostics[0].code, error.diagnostics[0].hint


class TestReadTree:
    def test_gives_the_files_as_they_were_at_the_ref(self, repo: Path) -> None:
        commit(repo, {"rendered/a.yaml": b"old", "README": b"x"})
        git(repo, "tag", "v1")
        commit(repo, {"rendered/a.yaml": b"new", "rendered/b.yaml": b"more"})
        assert read_tree_at(repo, "v1", "rendered") == {"a.yaml": b"old"}
        assert read_tree_at(repo, "HEAD", "rendered") == {"a.yaml": b"new", "b.yaml": b"more"}

    def test_gives_everything_without_a_folder(self, repo: Path) -> None:
        commit(repo, {"rendered/a.yaml": b"1", "README": b"x"})
        assert read_tree_at(repo, "main") == {"rendered/a.yaml": b"1", "README": b"x"}

    def test_is_empty_when_the_folder_was_not_there_yet(self, repo: Path) -> None:
        commit(repo, {"README": b"x"})
        assert read_tree_at(repo, "main", "rendered") == {}

    def test_is_empty_when_the_folder_was_a_file(self, repo: Path) -> None:
        commit(repo, {"rendered": b"x"})
        assert read_tree_at(repo, "main", "rendered") == {}

    def test_takes_the_folder_relative_to_where_it_is_asked(self, repo: Path) -> None:
        commit(repo, {"teams/a/rendered/x.yaml": b"1", "rendered/y.yaml": b"2"})
        assert read_tree_at(repo / "teams" / "a", "main", "./rendered/") == {"x.yaml": b"1"}

    def test_leaves_symbolic_links_and_submodules_out(self, repo: Path, tmp_path: Path) -> None:
        other = tmp_path / "other"
        other.mkdir()
        git(other, "init", "-q", "-b", "main")
        commit(other, {"x": b"1"})
        commit(repo, {"a.yaml": b"1"})
        (repo / "link").symlink_to("a.yaml")
        git(repo, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(other), "module")
        commit(repo, {})
        assert sorted(read_tree_at(repo, "main")) == [".gitmodules", "a.yaml"]

    def test_keeps_odd_names_and_any_bytes(self, repo: Path) -> None:
        names = ["a b.yaml", "tab\there", "new\nline", "-rf", ":(top)x", "ünï/çødé", 'quo"te', "back\\slash", "*"]
        files = {name: bytes([0, 10, 13, 255]) * number for number, name in enumerate(names)}
        commit(repo, files)
        assert read_tree_at(repo, "main") == files

    def test_keeps_names_that_are_not_utf8(self, repo: Path) -> None:
        (repo / os.fsdecode(b"caf\xe9")).write_bytes(b"1")
        commit(repo, {})
        assert read_tree_at(repo, "main") == {"caf\udce9": b"1"}

    def test_takes_an_odd_folder_name_literally(self, repo: Path) -> None:
        commit(repo, {":(glob)*/x": b"1", "y/x": b"2"})
        assert read_tree_at(repo, "main", ":(glob)*") == {"x": b"1"}

    def test_gives_the_same_content_for_every_file_that_shares_it(self, repo: Path) -> None:
        commit(repo, {"a": b"same", "b": b"same", "c": b""})
        assert read_tree_at(repo, "main") == {"a": b"same", "b": b"same", "c": b""}

    def test_reads_five_thousand_files(self, repo: Path) -> None:
        files = {f"ns{n % 50}/app{n % 500}/manifests/f{n}.yaml": b"kind: X\nn: %d\n" % n for n in range(5000)}
        commit(repo, files)
        assert read_tree_at(repo, "main") == files

    def test_refuses_a_bare_repository(self, repo: Path, tmp_path: Path) -> None:
        commit(repo, {"rendered/a": b"1"})
        git(tmp_path, "clone", "-q", "--bare", str(repo), "bare.git")
        with pytest.raises(InputError, match="looks like a bare Git repository") as caught:
            read_tree_at(tmp_path / "bare.git", "main", "rendered")
        assert code_and_hint(caught.value)[0] == "KG0802"

    @pytest.mark.parametrize("folder", ["/etc", "../x", "a/../../b"])
    def test_rejects_a_folder_outside_the_repository(self, repo: Path, folder: str) -> None:
        commit(repo, {"a": b"1"})
        with pytest.raises(InputError) as caught:
            read_tree_at(repo, "main", folder)
        assert code_and_hint(caught.value)[0] == "KG0804"

    def test_ignores_the_repository_that_a_hook_runs_in(
        self, repo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        commit(repo, {"a": b"1"})
        monkeypatch.setenv("GIT_DIR", str(tmp_path / "elsewhere"))
        monkeypatch.setenv("GIT_INDEX_FILE", str(tmp_path / "index"))
        assert read_tree_at(repo, "main") == {"a": b"1"}

    def test_a_missing_blob_is_reported(self, repo: Path) -> None:
        commit(repo, {"a": b"1"})
        oid = git(repo, "rev-parse", "main:a")
        (repo / ".git" / "objects" / oid[:2] / oid[2:]).unlink()
        with pytest.raises(SystemFailure, match="no content"):
            read_tree_at(repo, "main")

    def test_a_missing_tree_is_an_error_and_not_an_empty_folder(self, repo: Path) -> None:
        commit(repo, {"rendered/deep/a": b"1"})
        oid = git(repo, "rev-parse", "main:rendered/deep")
        (repo / ".git" / "objects" / oid[:2] / oid[2:]).unlink()
        with pytest.raises(SystemFailure, match="ls-tree failed"):
            read_tree_at(repo, "main", "rendered")


class TestRefs:
    def test_head_is_the_checked_out_commit(self, repo: Path) -> None:
        made = commit(repo, {"a": b"1"})
        assert head_commit(repo) == made

    def test_an_unknown_ref_comes_with_the_nearest(self, repo: Path) -> None:
        commit(repo, {"a": b"1"})
        git(repo, "branch", "release-1.2")
        with pytest.raises(InputError, match=r"no commit 'relaese-1\.2'") as caught:
            resolve(repo, "relaese-1.2")
        assert code_and_hint(caught.value) == ("KG0801", "did you mean 'release-1.2'?")

    def test_a_branch_that_is_only_at_the_remote_is_named_with_it(self, repo: Path, tmp_path: Path) -> None:
        commit(repo, {"a": b"1"})
        git(tmp_path, "clone", "-q", str(repo), "clone")
        clone = tmp_path / "clone"
        git(clone, "checkout", "-q", "-b", "work")
        git(clone, "branch", "-q", "-D", "main")
        with pytest.raises(InputError) as caught:
            resolve(clone, "main")
        assert code_and_hint(caught.value) == ("KG0801", "did you mean 'origin/main'?")
        with pytest.raises(InputError) as caught:
            resolve(clone, "origin/next")
        assert code_and_hint(caught.value) == ("KG0801", "fetch it first: git fetch origin next")

    @pytest.mark.parametrize(
        "ref", ["--help", "-x", "", "a b", "main\n", "main\0", "^main", "main..main", "main@{9}", "main:a", ":/"]
    )
    def test_an_invalid_ref_is_rejected(self, repo: Path, ref: str) -> None:
        commit(repo, {"a": b"1"})
        with pytest.raises(InputError) as caught:
            resolve(repo, ref)
        assert code_and_hint(caught.value)[0] == "KG0801"

    def test_a_ref_is_never_taken_for_an_option(self, repo: Path, tmp_path: Path) -> None:
        commit(repo, {"a": b"1"})
        with pytest.raises(InputError):
            merge_base(repo, f"--output={tmp_path / 'made'}")
        assert not (tmp_path / "made").exists()

    def test_a_repository_without_a_commit_is_reported(self, repo: Path) -> None:
        with pytest.raises(InputError) as caught:
            head_commit(repo)
        assert code_and_hint(caught.value) == ("KG0801", "make a first commit")

    def test_an_annotated_tag_names_its_commit(self, repo: Path) -> None:
        made = commit(repo, {"a": b"1"})
        git(repo, "tag", "-a", "v1", "-m", "one")
        assert resolve(repo, "v1") == made


class TestMergeBase:
    def test_is_the_last_common_commit(self, repo: Path) -> None:
        base = commit(repo, {"a": b"1"})
        git(repo, "checkout", "-q", "-b", "work")
        commit(repo, {"b": b"1"})
        git(repo, "checkout", "-q", "main")
        commit(repo, {"c": b"1"})
        git(repo, "checkout", "-q", "work")
        assert merge_base(repo, "main") == base

    def test_unrelated_histories_have_none(self, repo: Path) -> None:
        commit(repo, {"a": b"1"})
        git(repo, "checkout", "-q", "--orphan", "other")
        commit(repo, {"b": b"1"})
        with pytest.raises(InputError, match="no commit in common") as caught:
            merge_base(repo, "main")
        assert code_and_hint(caught.value)[0] == "KG0803"

    def test_the_hint_in_a_shallow_clone_is_to_fetch_more(self, repo: Path, tmp_path: Path) -> None:
        commit(repo, {"a": b"1"})
        git(repo, "checkout", "-q", "-b", "work")
        commit(repo, {"b": b"1"})
        git(repo, "checkout", "-q", "main")
        commit(repo, {"c": b"1"})
        git(tmp_path, "clone", "-q", "--depth=1", "--no-single-branch", repo.as_uri(), "clone")
        clone = tmp_path / "clone"
        git(clone, "checkout", "-q", "work")
        with pytest.raises(InputError) as caught:
            merge_base(clone, "origin/main")
        code, hint = code_and_hint(caught.value)
        assert code == "KG0803"
        assert "shallow" in hint


class TestDirty:
    def test_a_fresh_commit_is_clean(self, repo: Path) -> None:
        commit(repo, {"a/x": b"1"})
        assert not is_dirty(repo)

    @pytest.mark.parametrize("name", ["a/x", "a/new"])
    def test_changed_and_new_files_are_dirty(self, repo: Path, name: str) -> None:
        commit(repo, {"a/x": b"1", "b/y": b"1"})
        (repo / name).write_bytes(b"2")
        assert is_dirty(repo)
        assert is_dirty(repo, "a")
        assert not is_dirty(repo, "b")

    def test_does_not_run_programs_from_the_repository_configuration(self, repo: Path, tmp_path: Path) -> None:
        commit(repo, {"a": b"1"})
        script = tmp_path / "monitor"
        script.write_text(f"#!/bin/sh\ntouch {tmp_path / 'ran'}\n")
        script.chmod(0o755)
        git(repo, "config", "core.fsmonitor", str(script))
        assert not is_dirty(repo)
        assert not (tmp_path / "ran").exists()


class TestMissingRepository:
    def test_a_folder_outside_a_repository_is_rejected(self, tmp_path: Path) -> None:
        with pytest.raises(InputError, match="not in a Git repository") as caught:
            read_tree_at(tmp_path, "main")
        assert code_and_hint(caught.value)[0] == "KG0802"

    def test_an_invalid_ref_outside_a_repository_is_rejected(self, tmp_path: Path) -> None:
        with pytest.raises(InputError) as caught:
            resolve(tmp_path, "--x")
        assert code_and_hint(caught.value)[0] == "KG0802"

    def test_a_missing_folder_is_rejected(self, tmp_path: Path) -> None:
        with pytest.raises(InputError, match="does not exist") as caught:
            is_dirty(tmp_path / "nothing")
        assert code_and_hint(caught.value)[0] == "KG0802"

    def test_a_file_is_no_repository(self, tmp_path: Path) -> None:
        (tmp_path / "file").write_bytes(b"")
        with pytest.raises(InputError, match="not a folder"):
            head_commit(tmp_path / "file")

    def test_a_missing_git_is_a_system_failure(
        self, repo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        commit(repo, {"a": b"1"})
        monkeypatch.setenv("PATH", str(tmp_path))
        with pytest.raises(SystemFailure, match="not installed") as caught:
            read_tree_at(repo, "main")
        assert caught.value.exit_code == 3
