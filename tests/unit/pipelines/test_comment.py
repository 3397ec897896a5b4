"""The one comment in a pull request: made once, kept up to date, never with a token in what is printed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from kaigen.diff.comment import GitHub, shorten
from kaigen.diff.markdown import MARKER
from tests.unit.pipelines.checkout import ROOT
from tests.unit.pipelines.forge import TOKEN, Forge, running


@pytest.fixture(params=["github", "gitlab"])
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def forge(kind: str) -> Iterator[Forge]:
    with running(kind) as found:
        yield found


class Caller:
    """Calls the program in the environment of a job."""

    def __init__(self, folder: Path, kind: str, forge: Forge) -> None:
        self.folder = folder
        event = folder / "event.json"
        event.write_text(json.dumps({"pull_request": {"number": 7}}))
        self.variables = {**forge.environment(kind), "GITHUB_EVENT_PATH": str(event)}

    def __call__(
        self, text: str, *arguments: str, fails: bool = False, **variables: str
    ) -> subprocess.CompletedProcess[str]:
        file = self.folder / "comment.md"
        file.write_text(text)
        done = subprocess.run(
            [sys.executable, "-m", "kaigen", "comment", *arguments, str(file)],
            env={"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), **self.variables, **variables},
            capture_output=True,
            text=True,
            check=False,
        )
        assert TOKEN not in done.stdout + done.stderr
        assert "Traceback" not in done.stderr
        assert done.returncode == (3 if fails else 0), done.stderr
        return done


@pytest.fixture
def call(tmp_path: Path, kind: str, forge: Forge) -> Caller:
    return Caller(tmp_path, kind, forge)


def test_the_second_run_updates_the_comment_of_the_first(forge: Forge, call: Caller) -> None:
    forge.comments = {1: "A person's comment", 2: f"> {MARKER}\nA person quotes kaigen"}
    assert call(f"{MARKER}\nfirst\n").stdout == "comment: created\n"
    assert call(f"{MARKER}\nsecond\n").stdout == "comment: updated\n"
    assert call(f"{MARKER}\nsecond\n").stdout == "comment: unchanged\n"
    assert list(forge.comments) == [1, 2, 1002]
    assert forge.comments[1002] == f"{MARKER}\nsecond"


def test_a_comment_is_found_on_a_later_page(forge: Forge, call: Caller) -> None:
    forge.comments = {number: f"Comment {number}" for number in range(230)}
    forge.comments[400] = f"{MARKER}\r\nas a browser sends it"
    assert call(f"{MARKER}\nnew\n").stdout == "comment: updated\n"
    assert len(forge.comments) == 231
    assert forge.comments[400] == f"{MARKER}\nnew"


def test_exactly_full_pages_end(forge: Forge, call: Caller) -> None:
    forge.comments = {number: f"Comment {number}" for number in range(100)}
    assert call("text").stdout == "comment: created\n"
    assert [each.split()[0] for each in forge.requests] == ["GET", "GET", "POST"]


def test_each_environment_has_a_comment_of_its_own(forge: Forge, call: Caller) -> None:
    for name in ("prod", "prod-eu", "a b--x"):
        assert call(f"{MARKER}\nchange\n", "--name", name).stdout == "comment: created\n"
    assert call(f"{MARKER}\nother\n", "--name", "prod").stdout == "comment: updated\n"
    texts = list(forge.comments.values())
    assert texts[0].splitlines()[1:] == ["### prod", "", "other"]
    assert texts[1].splitlines()[1] == "### prod-eu"
    assert texts[2].count("--") == 2, "a comment of HTML ends at the first -->"


def test_only_update_creates_no_comment_but_updates_an_old_one(forge: Forge, call: Caller) -> None:
    assert call("No changes", "--only-update").stdout == "comment: skipped\n"
    assert forge.comments == {}
    call(f"{MARKER}\nchange\n")
    assert call(f"{MARKER}\nNo changes\n", "--only-update").stdout == "comment: updated\n"
    assert [*forge.comments.values()] == [f"{MARKER}\nNo changes"]


def test_a_comment_that_is_too_long_is_cut_with_a_note(kind: str, forge: Forge, call: Caller) -> None:
    limit = {"github": 65_536, "gitlab": 1_000_000}[kind]
    call(f"{MARKER}\n" + "ä line of the diff\n" * (limit // 10))
    (body,) = forge.comments.values()
    assert limit - 1_000 < len(body) <= limit
    assert body.startswith(MARKER)
    assert f"{limit:,} characters" in body
    assert "https://forge.example/" in body.splitlines()[-1]


def test_a_cut_comment_closes_what_is_open() -> None:
    text = "<details><summary>a</summary>\n\n```diff\n" + "+ line\n" * 1_000
    short = shorten(text, 2_000)
    assert len(short) <= 2_000
    assert short.count("```") == 2
    assert short.count("</details>") == 1
    assert shorten("short", 2_000) == "short"
    assert len(shorten("x" * 5_000, 2_000)) <= 2_000


def test_a_token_without_write_access_is_reported_with_a_hint(forge: Forge, call: Caller) -> None:
    wrong = "token-of-a-fork"
    done = call("text", fails=True, GITHUB_TOKEN=wrong, KAIGEN_GITLAB_TOKEN=wrong)
    assert "HTTP 403 Resource not accessible by integration" in done.stderr
    assert "pull-requests: write" in done.stderr
    assert wrong not in done.stdout + done.stderr
    assert forge.comments == {}


def test_a_token_goes_to_no_other_host(forge: Forge, call: Caller) -> None:
    with running("github") as other:
        forge.redirect = f"{other.url}/repos/ada/models/issues/7/comments"
        assert "HTTP 302" in call("text", fails=True).stderr
        assert other.seen == []


def test_an_unreachable_forge_is_reported_in_one_line(call: Caller) -> None:
    done = call("text", fails=True, GITHUB_API_URL="http://127.0.0.1:9", CI_API_V4_URL="http://127.0.0.1:9")
    assert "refused" in done.stderr
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize(
    ("missing", "said"),
    [
        ("GITHUB_TOKEN", "GITHUB_TOKEN is not set"),
        ("GITHUB_EVENT_PATH", "GITHUB_EVENT_PATH is not set"),
        ("GITHUB_ACTIONS", "not a GitHub or GitLab pipeline"),
    ],
)
def test_what_the_job_lacks_is_named(tmp_path: Path, missing: str, said: str) -> None:
    call = Caller(tmp_path, "github", Forge(url="http://127.0.0.1:9"))
    del call.variables[missing]
    assert said in call("text", fails=True).stderr


def test_a_push_is_no_pull_request(tmp_path: Path) -> None:
    call = Caller(tmp_path, "github", Forge(url="http://127.0.0.1:9"))
    (tmp_path / "event.json").write_text('{"ref": "refs/heads/main"}')
    assert "this run is not for a pull request" in call("text", fails=True).stderr


def test_an_address_that_is_no_http_is_refused(tmp_path: Path) -> None:
    call = Caller(tmp_path, "github", Forge(url="file:///etc"))
    assert "is not an API address" in call("text", fails=True).stderr


def test_a_forge_in_words_shows_no_token(tmp_path: Path) -> None:
    call = Caller(tmp_path, "github", Forge(url="http://127.0.0.1:9"))
    assert TOKEN not in repr(GitHub(call.variables)._api)
