"""Trees on a branch of a real Git server over HTTP with a password."""

from __future__ import annotations

import socket
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from kaigen.diagnostics.errors import CheckFailed, InputError, SystemFailure
from kaigen.git.remote import Git
from kaigen.output.index import INDEX_NAME
from kaigen.publish.branch import ATTEMPTS, PublishOptions
from kaigen.publish.branch_changes import read_trailers
from tests.unit.publish.clones import Clone, app
from tests.unit.publish.gitserver import PASSWORD, Bare, GitServer, git

MakeClone = Callable[[str], Clone]

in_every_place = pytest.mark.parametrize("place", ["", "ai/platform"], ids=["top", "subfolder"])


def without_index(files: dict[str, str]) -> dict[str, str]:
    return {path: text for path, text in files.items() if not path.endswith(INDEX_NAME)}


def codes(error: pytest.ExceptionInfo[InputError]) -> set[str]:
    return {item.code for item in error.value.diagnostics}


@in_every_place
def test_the_first_publication_creates_the_branch(clone: Clone, bare: Bare) -> None:
    result = clone.publish(app("qwen"), environment="prod")
    assert (result.status, result.attempts) == ("published", 1)
    assert bare.branches() == {"deploy": result.commit}
    assert without_index(bare.files()) == {"rendered/ml/qwen/manifests/job.yaml": "qwen 1\n"}
    assert bare.message().startswith("Render prod: ml/qwen\n\nprod (rendered):\n- added ml/qwen\n\n")
    trailers = read_trailers(bare.git("log", "-1", "--format=%(trailers)", "deploy"))
    assert trailers["Source-Commit"] == clone.git("rev-parse", "HEAD")
    assert trailers["Source-Repository"].startswith("http://127.0.0.1")
    assert PASSWORD not in bare.message()


@in_every_place
def test_publishing_an_unchanged_tree_does_nothing(clone: Clone, bare: Bare, server: GitServer) -> None:
    first = clone.publish(app("qwen"))
    clone.commit("a change that renders to the same")
    server.asked.clear()
    again = clone.publish(app("qwen"))
    assert (again.status, again.commit) == ("unchanged", first.commit)
    assert bare.commits() == ["Render ml/qwen"]
    assert not any("receive-pack" in request for request in server.asked)


@in_every_place
def test_changed_and_removed_apps_are_reported_and_foreign_files_stay(clone: Clone, bare: Bare, tmp_path: Path) -> None:
    clone.publish({**app("qwen"), **app("old"), **app("same")})
    others = tmp_path / "others"
    git(tmp_path, "clone", "--quiet", "--branch=deploy", str(bare.path), str(others))
    (others / "README.md").write_text("ours\n")
    (others / "rendered" / "ml" / "old" / "notes.txt").write_text("keep\n")
    git(others, "add", ".")
    git(others, "-c", "user.name=B", "-c", "user.email=b@example.com", "commit", "--quiet", "--message=notes")
    git(others, "push", "--quiet")
    clone.commit("second")
    result = clone.publish({**app("qwen", "2"), **app("same"), **app("new")})
    tree = result.trees[0]
    assert (tree.apps.added, tree.apps.changed, tree.apps.removed) == (("ml/new",), ("ml/qwen",), ("ml/old",))
    assert tree.files == (1, 1, 1)
    assert bare.message().startswith(
        "Render ml/new, ml/old, ml/qwen\n\nrendered:\n- added ml/new\n- changed ml/qwen\n- removed ml/old\n"
    )
    assert without_index(bare.files()) == {
        "README.md": "ours\n",
        "rendered/ml/old/notes.txt": "keep\n",
        "rendered/ml/new/manifests/job.yaml": "new 1\n",
        "rendered/ml/qwen/manifests/job.yaml": "qwen 2\n",
        "rendered/ml/same/manifests/job.yaml": "same 1\n",
    }


@in_every_place
def test_publishing_an_empty_tree_removes_all_files_of_kaigen(clone: Clone, bare: Bare) -> None:
    clone.publish(app("qwen"))
    clone.publish(app("other"), path="elsewhere")
    clone.commit("none")
    clone.publish({})
    assert set(bare.files()) == {f"elsewhere/{INDEX_NAME}", "elsewhere/ml/other/manifests/job.yaml"}


@in_every_place
def test_a_tree_can_be_published_to_the_top_of_a_branch(clone: Clone, bare: Bare) -> None:
    clone.publish(app("qwen"), branch="env/prod", path="")
    assert set(bare.files("env/prod")) == {INDEX_NAME, "ml/qwen/manifests/job.yaml"}
    clone.commit("second")
    assert clone.publish(app("qwen", "2"), branch="env/prod", path="").status == "published"


@in_every_place
def test_publishing_leaves_the_clone_unchanged(clone: Clone, bare: Bare) -> None:
    clone.write("notes.txt", "mine, not committed\n")
    clone.write("staged.txt", "staged\n")
    clone.git("add", "staged.txt")
    before = clone.state()
    clone.publish(app("qwen"))
    assert clone.state() == before
    clone.git("fsck", "--strict")


@in_every_place
def test_every_foreign_file_in_the_way_is_reported(clone: Clone, bare: Bare, tmp_path: Path) -> None:
    clone.publish(app("first"), path="elsewhere")
    others = tmp_path / "others"
    git(tmp_path, "clone", "--quiet", "--branch=deploy", str(bare.path), str(others))
    (others / "rendered" / "ml" / "qwen" / "manifests").mkdir(parents=True)
    (others / "rendered" / "ml" / "qwen" / "manifests" / "job.yaml").write_text("by hand\n")
    (others / "rendered" / "ml" / "other").write_text("a file\n")
    git(others, "add", ".")
    git(others, "-c", "user.name=B", "-c", "user.email=b@example.com", "commit", "--quiet", "--message=mine")
    git(others, "push", "--quiet")
    tip = bare.branches()
    with pytest.raises(InputError) as error:
        clone.publish({**app("qwen"), **app("other")})
    assert codes(error) == {"KG0601"}
    assert {str(item.mark) for item in error.value.diagnostics} == {
        "rendered/ml/other",
        "rendered/ml/qwen/manifests/job.yaml",
    }
    assert bare.branches() == tip


def test_a_symbolic_link_in_place_of_a_folder_is_not_followed(clone: Clone, bare: Bare, tmp_path: Path) -> None:
    clone.publish(app("first"), path="elsewhere")
    others = tmp_path / "others"
    git(tmp_path, "clone", "--quiet", "--branch=deploy", str(bare.path), str(others))
    (others / "rendered").symlink_to("elsewhere")
    git(others, "add", ".")
    git(others, "-c", "user.name=B", "-c", "user.email=b@example.com", "commit", "--quiet", "--message=link")
    git(others, "push", "--quiet")
    with pytest.raises(InputError) as error:
        clone.publish(app("qwen"))
    assert codes(error) == {"KG0601"}


def test_a_damaged_index_stops_the_publication(clone: Clone, bare: Bare, tmp_path: Path) -> None:
    clone.publish(app("qwen"))
    others = tmp_path / "others"
    git(tmp_path, "clone", "--quiet", "--branch=deploy", str(bare.path), str(others))
    (others / "rendered" / INDEX_NAME).write_text("<<<<<<< ours\n")
    git(others, "-c", "user.name=B", "-c", "user.email=b@example.com", "commit", "--quiet", "-a", "--message=bad")
    git(others, "push", "--quiet")
    clone.commit("second")
    with pytest.raises(InputError) as error:
        clone.publish(app("qwen", "2"))
    assert codes(error) == {"KG0605"}


@in_every_place
def test_an_older_commit_does_not_overwrite_a_newer_one(clone: Clone, bare: Bare) -> None:
    old = clone.git("rev-parse", "HEAD")
    clone.commit("second")
    clone.publish(app("qwen", "2"))
    clone.git("checkout", "--quiet", old)
    with pytest.raises(CheckFailed, match=r"which is newer than") as error:
        clone.publish(app("qwen", "1"))
    assert "--allow-older" in error.value.hint
    assert bare.files()["rendered/ml/qwen/manifests/job.yaml"] == "qwen 2\n"
    # The same content is not a step back.
    assert clone.publish(app("qwen", "2")).status == "unchanged"
    assert clone.publish(app("qwen", "1"), options=PublishOptions(allow_older=True)).status == "published"


@in_every_place
def test_a_publication_from_an_unknown_commit_is_not_overwritten(make_clone: MakeClone, bare: Bare) -> None:
    ours, theirs = make_clone("clone"), make_clone("theirs")
    theirs.commit("their work")
    theirs.publish({**app("qwen"), **app("theirs")})
    with pytest.raises(CheckFailed, match="is not in this clone: its changes would be lost"):
        ours.publish({**app("qwen"), **app("ours")})
    # Known, but not contained.
    ours.git("fetch", "--quiet", str(theirs.top), "main")
    ours.commit("our work")
    with pytest.raises(CheckFailed, match="does not contain: its changes would be lost"):
        ours.publish({**app("qwen"), **app("ours")})
    ours.git("merge", "--quiet", "--no-edit", theirs.git("rev-parse", "HEAD"))
    ours.publish({**app("qwen"), **app("ours"), **app("theirs")})
    assert bare.commits() == ["Render ml/ours", "Render ml/qwen, ml/theirs"]


@in_every_place
def test_a_shallow_clone_that_lacks_the_history_is_reported(
    clone: Clone, bare: Bare, tmp_path: Path, server: GitServer, place: str
) -> None:
    clone.publish(app("qwen"))
    clone.commit("second")
    shallow = tmp_path / "shallow"
    git(tmp_path, "clone", "--quiet", "--depth=1", clone.top.as_uri(), str(shallow))
    pipeline = Clone(shallow, place)
    for name, value in (
        ("user.name", "CI"),
        ("user.email", "ci@example.com"),
        ("remote.origin.url", server.url("deploy")),
    ):
        pipeline.git("config", name, value)
    with pytest.raises(CheckFailed, match="this shallow clone cannot show") as error:
        pipeline.publish(app("qwen", "2"))
    assert "fetch-depth: 0" in error.value.hint
    pipeline.git("fetch", "--quiet", "--unshallow", clone.top.as_uri())
    assert pipeline.publish(app("qwen", "2")).status == "published"


@in_every_place
def test_output_of_another_repository_is_not_overwritten(
    clone: Clone, bare: Bare, tmp_path: Path, server: GitServer, place: str
) -> None:
    clone.git("config", "remote.origin.url", "https://example.com/acme/one.git")
    clone.publish(app("qwen"), remote=server.url("deploy"))
    other = Clone.make(tmp_path / "other", "git@example.com:acme/two.git", None, place)
    with pytest.raises(CheckFailed, match=r"rendered from another repository, https://example\.com/acme/one\.git"):
        other.publish(app("else"), remote=server.url("deploy"))
    assert other.publish(app("else"), remote=server.url("deploy"), path="teams/two").status == "published"


@in_every_place
def test_output_of_another_folder_of_the_repository_is_not_overwritten(clone: Clone, bare: Bare) -> None:
    clone.publish(app("qwen"))
    clone.git("switch", "--quiet", "--create", "other")
    other = Clone(clone.top, "other/team")
    other.folder.mkdir(parents=True)
    other.job("else")
    other.commit("another kaigen.yaml")
    with pytest.raises(CheckFailed, match=r"rendered from another folder of this repository") as error:
        other.publish(app("else"))
    assert "--allow-older" in error.value.hint
    assert other.publish(app("else"), path="other").status == "published"


@in_every_place
def test_a_worktree_at_an_older_commit_does_not_overwrite_a_newer_one(clone: Clone, bare: Bare, tmp_path: Path) -> None:
    old = clone.worktree(tmp_path / "tree")
    clone.commit("second")
    clone.publish(app("qwen", "2"))
    with pytest.raises(CheckFailed, match=r"which is newer than"):
        old.publish(app("qwen", "1"))
    old.git("checkout", "--quiet", "main~0")
    assert old.publish(app("qwen", "3")).status == "published"


@in_every_place
def test_a_shallow_clone_of_the_published_branch_itself_is_reported(
    clone: Clone, bare: Bare, tmp_path: Path, server: GitServer, place: str
) -> None:
    clone.git("push", "--quiet", "origin", "main")
    clone.publish(app("qwen"), branch="main")
    clone.git("pull", "--quiet", "origin", "main")
    # The one commit that the pipeline has seems to add the folder, and says of another one what it was rendered from.
    clone.commit("second")
    clone.publish(app("other"), branch="main", path="elsewhere")
    shallow = tmp_path / "shallow"
    git(tmp_path, "clone", "--quiet", "--depth=1", "--branch=main", bare.path.as_uri(), str(shallow))
    pipeline = Clone(shallow, place)
    for name, value in (("user.name", "CI"), ("user.email", "ci@example.com")):
        pipeline.git("config", name, value)
    with pytest.raises(CheckFailed, match="does not have the commit that last published `main`, folder rendered"):
        pipeline.publish(app("qwen", "2"), branch="main")
    assert pipeline.publish(app("new"), branch="main", path="third").status == "published"


@in_every_place
def test_uncommitted_changes_are_rejected_or_recorded(clone: Clone, bare: Bare) -> None:
    clone.write("README.md", "of no matter\n")
    clone.publish(app("qwen"))
    clone.job("new")
    with pytest.raises(InputError, match="uncommitted changes in specs") as error:
        clone.publish(app("new"))
    assert codes(error) == {"KG0901"}
    clone.publish(app("new"), allow_dirty=True)
    assert read_trailers(bare.message())["Source-State"] == "uncommitted changes"


@in_every_place
def test_an_uncommitted_lock_is_rejected(clone: Clone, bare: Bare) -> None:
    clone.write("kaigen.lock", "{}\n")
    with pytest.raises(InputError, match=r"uncommitted changes in kaigen\.lock") as error:
        clone.publish(app("qwen"))
    assert codes(error) == {"KG0901"}


@in_every_place
def test_a_pull_request_branch_is_named_by_its_content(clone: Clone, bare: Bare) -> None:
    proposal = PublishOptions(pull_request=True)
    with pytest.raises(InputError) as error:
        clone.publish(app("qwen"), options=proposal)
    assert codes(error) == {"KG0904"}
    clone.publish(app("qwen"))
    assert clone.publish(app("qwen"), options=proposal).status == "unchanged"
    clone.commit("second")
    first = clone.publish(app("qwen", "2"), options=proposal)
    assert first.status == "proposed"
    assert first.branch.startswith("kaigen/")
    assert bare.files("deploy")["rendered/ml/qwen/manifests/job.yaml"] == "qwen 1\n"
    assert bare.files(first.branch)["rendered/ml/qwen/manifests/job.yaml"] == "qwen 2\n"
    again = clone.publish(app("qwen", "2"), options=proposal)
    assert (again.status, again.branch, again.commit) == ("unchanged", first.branch, first.commit)
    other = clone.publish(app("qwen", "3"), options=proposal)
    assert other.branch != first.branch
    # After it is merged the same change may be proposed once more.
    bare.git("update-ref", "refs/heads/deploy", first.commit)
    clone.publish(app("qwen", "1"))
    assert clone.publish(app("qwen", "2"), options=proposal).branch != first.branch


@pytest.mark.parametrize(
    ("words", "url"),
    [
        (
            "Create a pull request for 'x' on GitHub by visiting:\n     https://github.com/a/b/pull/new/x",
            "https://github.com/a/b/pull/new/x",
        ),
        (
            "To create a merge request for x, visit:\n  https://gitlab.com/a/b/-/merge_requests/new?x=1",
            "https://gitlab.com/a/b/-/merge_requests/new?x=1",
        ),
        (
            "Create a new pull request for 'x':\n  https://gitea.example.com/a/b/compare/main...x",
            "https://gitea.example.com/a/b/compare/main...x",
        ),
        ("See https://example.com/status for maintenance", ""),
    ],
)
def test_the_pull_request_url_of_a_code_host_is_found(clone: Clone, bare: Bare, words: str, url: str) -> None:
    clone.publish(app("qwen"))
    clone.commit("second")
    bare.hook("post-receive", "cat <<'END'\n\n" + words + "\n\nEND")
    assert clone.publish(app("qwen", "2"), options=PublishOptions(pull_request=True)).url == url


def test_a_dry_run_pushes_nothing_and_writes_no_object(clone: Clone, bare: Bare) -> None:
    before = clone.git("count-objects", "-v")
    result = clone.publish(app("qwen"), options=PublishOptions(dry_run=True))
    assert (result.status, result.commit) == ("planned", "")
    assert result.message.startswith("Render ml/qwen\n")
    assert bare.branches() == {}
    assert clone.git("count-objects", "-v") == before


def test_a_custom_message_keeps_the_trailers(clone: Clone, bare: Bare) -> None:
    clone.publish(app("qwen"), options=PublishOptions(message="Roll out\n\nTicket 12"))
    assert bare.message().startswith("Roll out\n\nTicket 12\n\nSource-Commit: ")


@pytest.mark.parametrize("way", ["url", "credentials in the remote"])
def test_a_wrong_password_is_an_error_without_the_password(
    clone: Clone, bare: Bare, server: GitServer, way: str
) -> None:
    url = server.url("deploy", user="eve", password="hunter2-hunter2")
    if way != "url":
        clone.git("config", "remote.origin.url", url)
    with pytest.raises(SystemFailure, match="rejected the credentials") as error:
        clone.publish(app("qwen"), remote=url if way == "url" else "origin")
    assert "hunter2" not in f"{error.value} {error.value.hint}"
    assert bare.branches() == {}


def test_missing_credentials_cause_no_prompt(clone: Clone, bare: Bare, server: GitServer) -> None:
    with pytest.raises(SystemFailure, match="rejected the credentials, or git has none"):
        clone.publish(app("qwen"), remote=server.url("deploy", user=""))


def test_credentials_of_a_helper_and_of_a_header_are_used(clone: Clone, bare: Bare, server: GitServer) -> None:
    import base64

    clone.git("config", "remote.origin.url", server.url("deploy", user=""))
    clone.git("config", "credential.helper", f"!f() {{ echo username=ada; echo password={PASSWORD}; }}; f")
    assert clone.publish(app("qwen")).status == "published"
    clone.git("config", "--unset", "credential.helper")
    header = base64.b64encode(f"ada:{PASSWORD}".encode()).decode()
    clone.git("config", f"http.http://127.0.0.1:{server.port}/.extraHeader", f"Authorization: Basic {header}")
    clone.commit("second")
    assert clone.publish(app("qwen", "2")).status == "published"


@pytest.mark.parametrize(
    ("remote", "words"),
    [
        ("http://127.0.0.1:1/x.git", "cannot reach"),
        ("http://no-such-host.invalid/x.git", "cannot reach"),
        ("SERVER/none.git", "does not exist"),
    ],
)
def test_a_missing_remote_is_reported(clone: Clone, server: GitServer, remote: str, words: str) -> None:
    with pytest.raises(SystemFailure, match=words):
        clone.publish(app("qwen"), remote=remote.replace("SERVER", server.url("").removesuffix("/.git")))


def test_publishing_gives_up_on_a_silent_remote(clone: Clone, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kaigen.git.remote.STALL_LIMIT_S", 1)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        remote = f"http://127.0.0.1:{silent.getsockname()[1]}/x.git"
        with pytest.raises(SystemFailure, match="cannot reach") as error:
            clone.publish(app("qwen"), remote=remote)
    assert "too slow" in str(error.value.hint)


def test_a_configured_stall_limit_is_kept(clone: Clone, monkeypatch: pytest.MonkeyPatch) -> None:
    limits = {"GIT_HTTP_LOW_SPEED_LIMIT", "GIT_HTTP_LOW_SPEED_TIME"}
    assert limits <= Git.of(clone.folder, "origin").env.keys()
    clone.git("config", "http.lowSpeedTime", "7")
    assert limits.isdisjoint(Git.of(clone.folder, "origin").env)
    clone.git("config", "--unset", "http.lowSpeedTime")
    monkeypatch.setenv("GIT_HTTP_LOW_SPEED_LIMIT", "5")
    assert limits.isdisjoint(Git.of(clone.folder, "origin").env)


def test_a_configured_ssh_command_is_kept(clone: Clone, monkeypatch: pytest.MonkeyPatch) -> None:
    def asked() -> str | None:
        return Git.of(clone.folder, "origin").env.get("GIT_SSH_COMMAND")

    for name in ("GIT_SSH", "GIT_SSH_COMMAND", "GIT_SSH_VARIANT"):
        monkeypatch.delenv(name, raising=False)
    assert "-o ConnectTimeout=120" in (asked() or "")
    for key, value in (("core.sshCommand", "ssh -4"), ("ssh.variant", "plink")):
        clone.git("config", key, value)
        assert asked() is None
        clone.git("config", "--unset", key)
    monkeypatch.setenv("GIT_SSH", "plink")
    assert asked() is None


@pytest.mark.parametrize("remote", ["--upload-pack=touch pwned", "-x", "", "orgin", "a b"])
def test_an_invalid_remote_is_rejected(clone: Clone, bare: Bare, remote: str) -> None:
    with pytest.raises(InputError) as error:
        clone.publish(app("qwen"), remote=remote)
    assert codes(error) == {"KG0902"}
    assert not (clone.folder / "pwned").exists()


@pytest.mark.parametrize(
    "branch", ["-d", "--delete", "a..b", "a b", "refs/heads/x", "+deploy", "x:y", "a~1", ".x", "x.lock", "@{-1}"]
)
def test_an_invalid_branch_name_is_rejected(clone: Clone, bare: Bare, branch: str) -> None:
    if branch == "+deploy":
        # A branch may be called so; it is not an order to force.
        clone.publish(app("qwen"), branch=branch)
        assert set(bare.branches()) == {"+deploy"}
        return
    with pytest.raises(InputError) as error:
        clone.publish(app("qwen"), branch=branch)
    assert codes(error) == {"KG0902"}
    assert bare.branches() == {}


def test_the_output_of_a_rejecting_hook_is_quoted(clone: Clone, bare: Bare) -> None:
    bare.hook("pre-receive", "echo 'Ticket missing in the message' >&2; exit 1")
    with pytest.raises(SystemFailure, match="rejected the push: pre-receive hook declined") as error:
        clone.publish(app("qwen"))
    assert "Ticket missing in the message" in error.value.hint
    assert bare.branches() == {}


def test_a_protected_branch_is_reported(clone: Clone, bare: Bare) -> None:
    # What GitHub prints.
    bare.hook("update", "echo 'error: GH006: Protected branch update failed for refs/heads/deploy.' >&2; exit 1")
    with pytest.raises(SystemFailure, match="the branch is protected") as error:
        clone.publish(app("qwen"))
    assert "--pull-request" in error.value.hint


def test_a_read_only_server_is_reported(clone: Clone, bare: Bare) -> None:
    bare.git("config", "http.receivepack", "false")
    with pytest.raises(SystemFailure, match="rejected the credentials"):
        clone.publish(app("qwen"))


def test_a_branch_that_moves_before_the_push_is_read_again(make_clone: MakeClone, bare: Bare) -> None:
    ours, theirs = make_clone("clone"), make_clone("theirs")
    ours.publish(app("base"), path="base")
    # The clone's own hook runs just before the objects go: then the other publishes.
    script = ours.top / ".git" / "hooks" / "pre-push"
    script.parent.mkdir(exist_ok=True)
    mark = ours.folder.parent / "done"
    theirs.git("fetch", "--quiet", "origin", "deploy:deploy")
    tree = theirs.git("rev-parse", "deploy^{tree}")
    script.write_text(
        f"#!/bin/sh\n[ -e {mark} ] && exit 0\ntouch {mark}\ncd {theirs.folder}\nunset GIT_DIR\n"
        f"new=$(git commit-tree -p deploy -m theirs {tree})\ngit push --quiet origin $new:refs/heads/deploy\n"
    )
    script.chmod(0o755)
    result = ours.publish(app("qwen"))
    assert (result.status, result.attempts) == ("published", 2)
    assert bare.commits() == ["Render ml/qwen", "theirs", "Render ml/base"]


def test_publishing_gives_up_on_a_branch_that_always_moves(
    clone: Clone, bare: Bare, monkeypatch: pytest.MonkeyPatch
) -> None:
    clone.publish(app("base"), path="base")
    script = clone.top / ".git" / "hooks" / "pre-push"
    script.parent.mkdir(exist_ok=True)
    script.write_text(
        f"#!/bin/sh\nexport GIT_DIR={bare.path}\n"
        "new=$(git -c user.name=B -c user.email=b@example.com commit-tree -p deploy -m other 'deploy^{tree}')\n"
        "git update-ref refs/heads/deploy $new\n"
    )
    script.chmod(0o755)
    with pytest.raises(SystemFailure, match=f"changed during each of {ATTEMPTS} attempts"):
        clone.publish(app("qwen"))
    assert len(bare.commits()) == ATTEMPTS + 1


def test_a_missing_author_is_reported(clone: Clone, bare: Bare) -> None:
    clone.git("config", "--unset", "user.name")
    clone.git("config", "--unset", "user.email")
    with pytest.raises(InputError, match="git has no author for the commit") as error:
        clone.publish(app("qwen"))
    assert codes(error) == {"KG0903"}


@pytest.mark.parametrize("way", ["asked for", "configured"])
def test_a_commit_is_signed_with_an_ssh_key(clone: Clone, bare: Bare, tmp_path: Path, way: str) -> None:
    key = tmp_path / "key"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key], check=True)
    clone.git("config", "gpg.format", "ssh")
    clone.git("config", "user.signingKey", str(key))
    if way == "configured":
        clone.git("config", "commit.gpgSign", "true")
    clone.publish(app("qwen"), options=PublishOptions(sign=True if way == "asked for" else None))
    allowed = tmp_path / "allowed"
    allowed.write_text(f"ada@example.com {key.with_suffix('.pub').read_text()}")
    bare.git("config", "gpg.ssh.allowedSignersFile", str(allowed))
    bare.git("verify-commit", "deploy")
    clone.commit("second")
    clone.publish(app("qwen", "2"), options=PublishOptions(sign=False))
    with pytest.raises(AssertionError):
        bare.git("verify-commit", "deploy")


def test_a_key_that_cannot_sign_stops_before_the_push(clone: Clone, bare: Bare, tmp_path: Path) -> None:
    clone.git("config", "gpg.format", "ssh")
    clone.git("config", "user.signingKey", str(tmp_path / "none"))
    with pytest.raises(SystemFailure, match="cannot sign the commit"):
        clone.publish(app("qwen"), options=PublishOptions(sign=True))
    assert bare.branches() == {}


@in_every_place
def test_the_branch_that_is_checked_out_must_be_pushed_first_and_can_then_be_published_to(
    clone: Clone, bare: Bare, server: GitServer, place: str
) -> None:
    with pytest.raises(InputError) as error:
        clone.publish(app("qwen"), branch="main")
    assert codes(error) == {"KG0904"}
    elsewhere = server.make("clusters")
    clone.publish(app("qwen"), branch="main", remote=server.url("clusters"))
    assert set(elsewhere.branches()) == {"main"}
    clone.git("push", "--quiet", "origin", "main")
    before = clone.state()
    clone.publish(app("qwen"), branch="main")
    assert clone.state() == before
    assert f"{place}/specs/qwen.yaml".removeprefix("/") in bare.files("main")
    clone.git("pull", "--quiet", "origin", "main")
    assert clone.publish(app("qwen"), branch="main").status == "unchanged"


def test_a_line_ending_filter_of_the_branch_changes_no_byte(clone: Clone, bare: Bare, tmp_path: Path) -> None:
    clone.git("config", "core.autocrlf", "true")
    clone.publish({"ml/qwen/manifests/job.yaml": b"one\r\ntwo\n"})
    blob = subprocess.run(
        ["git", "cat-file", "blob", "deploy:rendered/ml/qwen/manifests/job.yaml"], cwd=bare.path, capture_output=True
    )
    assert blob.stdout == b"one\r\ntwo\n"


def test_a_repository_of_sha256_objects_works(tmp_path: Path) -> None:
    folder = tmp_path / "clone"
    remote = tmp_path / "remote.git"
    git(tmp_path, "init", "--quiet", "--bare", "--object-format=sha256", str(remote))
    git(tmp_path, "init", "--quiet", "--object-format=sha256", "--initial-branch=main", str(folder))
    clone = Clone(folder)
    for name, value in (("user.name", "A"), ("user.email", "a@example.com")):
        clone.git("config", name, value)
    clone.job("qwen")
    clone.commit("one")
    result = clone.publish(app("qwen"), remote=str(remote))
    assert Bare(remote).branches() == {"deploy": result.commit}
    assert len(result.commit) == 64
    assert clone.publish(app("qwen"), remote=str(remote)).status == "unchanged"
