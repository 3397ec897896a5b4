"""The one comment in a pull request: made once, kept up to date, never with a token in what is printed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from kaigen.diff.comment import shorten
from kaigen.diff.forge import GitHub
from kaigen.diff.markdown import MARKER
from tests.pipelines.checkout import ROOT
from tests.pipelines.forge import TOKEN, Forge, running
from tests.scenarios import call_in_process

INTO = "_To be merged into `main`._\n"


@pytest.fixture(params=["github", "gitlab"])
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def forge(kind: str) -> Iterator[Forge]:
    with running(kind) as found:
        yield found


class Outcome(NamedTuple):
    """What the program prints."""

    stdout: str
    stderr: str


class Caller:
    """Calls the program in the environment of a job: in this process, or in one of its own."""

    def __init__(self, folder: Path, kind: str, forge: Forge) -> None:
        self.folder = folder
        event = folder / "event.json"
        event.write_text(json.dumps(forge.event))
        self.variables = {**forge.environment(kind), "GITHUB_EVENT_PATH": str(event)}
        self.in_its_own_process = False

    def __call__(self, text: str, *arguments: str, fails: bool = False, **variables: str) -> Outcome:
        file = self.folder / "comment.md"
        file.write_text(text)
        command = ["comment", *arguments, str(file)]
        variables = {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), **self.variables, **variables}
        if self.in_its_own_process:
            done = subprocess.run([sys.executable, "-m", "kaigen", *command], env=variables, capture_output=True)
            code, out, err = done.returncode, done.stdout, done.stderr
        else:
            code, out, err = call_in_process(command, self.folder, variables)
        outcome = Outcome(out.decode(), err.decode())
        assert TOKEN not in outcome.stdout + outcome.stderr
        assert "Traceback" not in outcome.stderr
        assert code == (3 if fails else 0), outcome.stderr
        return outcome


@pytest.fixture
def call(tmp_path: Path, kind: str, forge: Forge) -> Caller:
    return Caller(tmp_path, kind, forge)


@pytest.mark.parametrize("in_its_own_process", [False, True])
def test_the_second_run_updates_the_comment_of_the_first(forge: Forge, call: Caller, in_its_own_process: bool) -> None:
    call.in_its_own_process = in_its_own_process
    forge.comments = {1: "A person's comment", 2: f"> {MARKER}\nA person quotes kaigen"}
    forge.others = {1, 2}
    assert call(f"{MARKER}\nfirst\n").stdout == "comment: created\n"
    assert call(f"{MARKER}\nsecond\n").stdout == "comment: updated\n"
    assert call(f"{MARKER}\nsecond\n").stdout == "comment: unchanged\n"
    assert list(forge.comments) == [1, 2, 1002]
    assert forge.comments[1002] == f"{MARKER}\n{INTO}\nsecond"


def test_a_comment_is_found_on_a_later_page(forge: Forge, call: Caller) -> None:
    forge.comments = {number: f"Comment {number}" for number in range(230)}
    forge.comments[400] = f"{MARKER}\r\nas a browser sends it"
    assert call(f"{MARKER}\nnew\n").stdout == "comment: updated\n"
    assert len(forge.comments) == 231
    assert forge.comments[400] == f"{MARKER}\n{INTO}\nnew"


def test_exactly_full_pages_end(kind: str, forge: Forge, call: Caller) -> None:
    forge.comments = {number: f"Comment {number}" for number in range(100)}
    assert call("text").stdout == "comment: created\n"
    count = {"github": 3, "gitlab": 5}[kind]  # the state, (the user,) one page (and an empty one), the new comment
    assert len(forge.requests) == count


IMITATIONS = {
    "the marker and nothing else": MARKER,
    "kaigen's own words": f"{MARKER}\n{INTO}\nNo changes to the rendered objects.",
    "the text that this run writes": f"{MARKER}\n{INTO}\nchange",
    "no line end": f"{MARKER}looks good",
    "line ends of a browser": f"{MARKER}\r\nlooks good",
    "a space after the marker": f"{MARKER} \nlooks good",
    "an approval": f"{MARKER}\n**0 dangers**",
    "two markers": f"{MARKER}\n{MARKER}\nx",
    "a marker of another comment as well": f"{MARKER}\n<!-- kaigen diff of prod -->",
    "the longest comment": f"{MARKER}\n{'x' * 60_000}",
}
"""Comments with which another user claims to be kaigen."""


@pytest.mark.parametrize("name", ["", "prod"])
@pytest.mark.parametrize("text", IMITATIONS.values(), ids=IMITATIONS)
def test_a_comment_of_another_user_is_not_kaigens(text: str, name: str, forge: Forge, call: Caller) -> None:
    text = text.replace(MARKER, "<!-- kaigen diff of prod -->", 1) if name else text
    options = ("--name", name) if name else ()
    forge.comments = {1: text}
    forge.others = {1}
    assert call("change", "--only-update", *options).stdout == "comment: skipped\n"
    for said in ("created", "unchanged"):
        assert call("change", *options).stdout == f"comment: {said}\n"
    assert forge.comments[1] == text
    assert len(forge.comments) == 2


def test_kaigens_comment_is_found_after_hundreds_of_imitations(forge: Forge, call: Caller) -> None:
    forge.comments = {number: MARKER for number in range(250)}
    forge.others = set(forge.comments)
    forge.comments[300] = f"{MARKER}\nold"
    assert call("new").stdout == "comment: updated\n"
    assert forge.comments[300] == f"{MARKER}\n{INTO}\nnew"
    assert {forge.comments[number] for number in forge.others} == {MARKER}


@pytest.mark.parametrize("field", ["base", "head"])
def test_a_run_of_an_earlier_base_or_commit_writes_nothing(field: str, forge: Forge, call: Caller) -> None:
    forge.comments = {1: f"{MARKER}\n1 danger"}
    setattr(forge, field, "other")
    done = call("No changes")
    assert done.stdout == "comment: outdated\n"
    assert "its newest run writes the comment" in done.stderr
    assert forge.comments == {1: f"{MARKER}\n1 danger"}


def test_a_pipeline_of_the_merged_result_is_about_its_source(tmp_path: Path) -> None:
    with running("gitlab") as forge:
        call = Caller(tmp_path, "gitlab", forge)
        call.variables |= {"CI_COMMIT_SHA": "0" * 40, "CI_MERGE_REQUEST_SOURCE_BRANCH_SHA": forge.head}
        assert call("text").stdout == "comment: created\n"


def test_the_name_of_a_base_stays_in_its_code_span(tmp_path: Path) -> None:
    base = "a`b\u202e@everyone"
    with running("github") as forge:
        forge.base = base
        call = Caller(tmp_path, "github", forge)
        event = forge.event
        event["pull_request"]["base"]["ref"] = base
        (tmp_path / "event.json").write_text(json.dumps(event))
        call("text")
        (body,) = forge.comments.values()
    assert body.splitlines()[1] == "_To be merged into ``a`b\\u202e@everyone``._"


def test_an_error_of_githubs_graphql_api_is_reported(tmp_path: Path) -> None:
    with running("github") as forge:
        call = Caller(tmp_path, "github", forge)
        forge.errors = [{"type": "FORBIDDEN", "message": "Resource not accessible\nby integration"}]
        done = call("text", fails=True)
        assert "/graphql: Resource not accessible by integration" in done.stderr
        assert "pull-requests: write" in done.stderr
        forge.errors = [{"message": "Something went wrong"}]
        assert "hint" not in call("text", fails=True).stderr
        assert forge.comments == {}


def test_the_graphql_api_of_a_server_is_next_to_its_rest_api(tmp_path: Path) -> None:
    call = Caller(tmp_path, "github", Forge(url="https://forge.example/api/v3"))
    assert GitHub(call.variables)._graphql == "https://forge.example/api/v3/graphql"
    del call.variables["GITHUB_GRAPHQL_URL"]
    assert GitHub(call.variables)._graphql == "https://forge.example/api/graphql"
    del call.variables["GITHUB_API_URL"]
    assert GitHub(call.variables)._graphql == "https://api.github.com/graphql"


def test_each_environment_has_a_comment_of_its_own(forge: Forge, call: Caller) -> None:
    for name in ("prod", "prod-eu", "a b--x"):
        assert call(f"{MARKER}\nchange\n", "--name", name).stdout == "comment: created\n"
    assert call(f"{MARKER}\nother\n", "--name", "prod").stdout == "comment: updated\n"
    texts = list(forge.comments.values())
    assert texts[0].splitlines()[1:] == [INTO.strip(), "", "### prod", "", "other"]
    assert texts[1].splitlines()[3] == "### prod-eu"
    assert texts[2].count("--") == 2, "a comment of HTML ends at the first -->"


def test_only_update_creates_no_comment_but_updates_an_old_one(forge: Forge, call: Caller) -> None:
    assert call("No changes", "--only-update").stdout == "comment: skipped\n"
    assert forge.comments == {}
    call(f"{MARKER}\nchange\n")
    assert call(f"{MARKER}\nNo changes\n", "--only-update").stdout == "comment: updated\n"
    assert [*forge.comments.values()] == [f"{MARKER}\n{INTO}\nNo changes"]


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


@pytest.mark.parametrize("in_its_own_process", [False, True])
def test_a_token_without_write_access_is_reported_with_a_hint(
    forge: Forge, call: Caller, in_its_own_process: bool
) -> None:
    call.in_its_own_process = in_its_own_process
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
