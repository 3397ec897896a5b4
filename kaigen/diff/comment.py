"""One comment of kaigen in a pull request, kept up to date: `python -m kaigen.diff.comment FILE`.

For pipelines on GitHub and GitLab, from whose variables it learns where it runs. The comment is found again by its
first line, which nobody sees.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from kaigen.diagnostics.diagnostic import KaigenError, SystemFailure
from kaigen.diff.markdown import MARKER

PAGE = 100
"""Comments that are asked for at once; both forges give no more."""
PAGES = 100
"""Pages that are looked through at most."""
TIMEOUT = 30.0
"""Seconds that a forge may take to answer."""
_OPEN = re.compile(r"^[ ]{0,3}(`{3,}|~{3,})", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Comment:
    """A comment that is there already.

    Attributes:
        url: where it is changed.
        body: its text.
    """

    url: str
    body: str


class Forge(Protocol):
    """What is asked of GitHub and of GitLab."""

    limit: int
    whole: str

    def comments(self) -> Iterator[Comment]:
        """The comments of the pull request, oldest first."""

    def create(self, body: str) -> None:
        """Add a comment."""

    def update(self, comment: Comment, body: str) -> None:
        """Replace the text of a comment."""


@dataclass(frozen=True, slots=True)
class _Api:
    """A JSON API and how it is told who asks.

    Attributes:
        base: URL of the comments.
        header: the header in which the token goes.
        token: never in a message.
    """

    base: str
    header: tuple[str, str]

    def __repr__(self) -> str:
        return f"_Api({self.base!r})"

    def ask(self, method: str, url: str, data: Mapping[str, str] | None = None) -> Any:
        """The answer to a request.

        Raises:
            SystemFailure: the forge refuses, or cannot be reached.
        """
        import json
        from http.client import HTTPException
        from urllib.error import HTTPError, URLError
        from urllib.request import HTTPRedirectHandler, Request, build_opener

        class Stay(HTTPRedirectHandler):
            """Follows nothing: a token goes to the host that was named, and to no other."""

            def redirect_request(self, *_: Any, **__: Any) -> None:
                """Nothing instead."""

        if not url.startswith(("https://", "http://")):
            raise SystemFailure(f"{url or 'no address'} is no address of an API")
        name, value = self.header
        headers = {name: value, "Accept": "application/json", "User-Agent": "kaigen"}
        body = None
        if data is not None:
            body = json.dumps(data).encode()
            headers["Content-Type"] = "application/json"
        request = Request(url, body, headers, method=method)
        try:
            with build_opener(Stay).open(request, timeout=TIMEOUT) as answer:
                return json.loads(answer.read() or b"null")
        except HTTPError as error:
            raise SystemFailure(
                f"{method} {url}: HTTP {error.code} {_reason(error)}", hint=_hint(error.code)
            ) from None
        except (URLError, HTTPException, OSError, ValueError) as error:
            raise SystemFailure(f"{method} {url}: {getattr(error, 'reason', error)}") from None

    def pages(self, query: str = "") -> Iterator[dict[str, Any]]:
        """Every item of a list that is given page by page."""
        for page in range(1, PAGES + 1):
            items = self.ask("GET", f"{self.base}?per_page={PAGE}&page={page}{query}")
            if not isinstance(items, list):
                raise SystemFailure(f"GET {self.base}: the answer is no list")
            yield from (item for item in items if isinstance(item, dict))
            if len(items) < PAGE:
                return


def _reason(error: Any) -> str:
    """What the forge says of a refusal, in one short line."""
    import json

    try:
        said = json.loads(error.read(10_000))
        text = said.get("message") or said.get("error") or error.reason
    except (ValueError, AttributeError, OSError):
        text = error.reason
    return " ".join(str(text).split())[:200]


def _hint(status: int) -> str:
    if status in (401, 403, 404):
        return (
            "the token may not write comments: GitHub needs `permissions: pull-requests: write`, and gives the "
            "pull requests of forks no such token; GitLab needs a project access token with the scope `api`"
        )
    return ""


class GitHub:
    """Comments of a pull request on GitHub."""

    limit = 65_536
    """Characters of a comment, as GitHub counts them."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        """Take what GitHub Actions says of the run.

        Raises:
            KaigenError: it is none of a pull request, or has no token.
        """
        number = _pull_request(environment)
        token = _needed(environment, "GITHUB_TOKEN")
        repository = _needed(environment, "GITHUB_REPOSITORY")
        api = environment.get("GITHUB_API_URL", "https://api.github.com").rstrip("/")
        self._repository = f"{api}/repos/{repository}"
        self._api = _Api(f"{self._repository}/issues/{number}/comments", ("Authorization", f"Bearer {token}"))
        server, run = environment.get("GITHUB_SERVER_URL"), environment.get("GITHUB_RUN_ID")
        self.whole = f"{server}/{repository}/actions/runs/{run}" if server and run else ""

    def comments(self) -> Iterator[Comment]:
        """See `Forge`."""
        for item in self._api.pages():
            yield Comment(f"{self._repository}/issues/comments/{item.get('id')}", str(item.get("body") or ""))

    def create(self, body: str) -> None:
        """See `Forge`."""
        self._api.ask("POST", self._api.base, {"body": body})

    def update(self, comment: Comment, body: str) -> None:
        """See `Forge`."""
        self._api.ask("PATCH", comment.url, {"body": body})


class GitLab:
    """Notes of a merge request on GitLab."""

    limit = 1_000_000
    """Characters of a note, as GitLab counts them."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        """Take what GitLab CI says of the job.

        Raises:
            KaigenError: it is none of a merge request, or has no token.
        """
        number = _needed(environment, "CI_MERGE_REQUEST_IID", "run it in a merge request's pipeline")
        hint = "a project access token with the scope `api`: the job's own token may not write notes"
        token = _needed(environment, "KAIGEN_GITLAB_TOKEN", hint)
        project = _needed(environment, "CI_MERGE_REQUEST_PROJECT_ID")
        api = _needed(environment, "CI_API_V4_URL").rstrip("/")
        base = f"{api}/projects/{project}/merge_requests/{number}/notes"
        self._api = _Api(base, ("PRIVATE-TOKEN", token))
        self.whole = environment.get("CI_JOB_URL", "")

    def comments(self) -> Iterator[Comment]:
        """See `Forge`."""
        for item in self._api.pages("&sort=asc&order_by=created_at"):
            yield Comment(f"{self._api.base}/{item.get('id')}", str(item.get("body") or ""))

    def create(self, body: str) -> None:
        """See `Forge`."""
        self._api.ask("POST", self._api.base, {"body": body})

    def update(self, comment: Comment, body: str) -> None:
        """See `Forge`."""
        self._api.ask("PUT", comment.url, {"body": body})


def find_forge(environment: Mapping[str, str]) -> Forge:
    """The forge whose pipeline this is.

    Raises:
        KaigenError: it is none of a pull request, or lacks a variable.
    """
    if environment.get("GITLAB_CI"):
        return GitLab(environment)
    if environment.get("GITHUB_ACTIONS"):
        return GitHub(environment)
    raise SystemFailure(
        "this is no pipeline of GitHub or GitLab", hint="they set GITHUB_ACTIONS or GITLAB_CI in every job"
    )


def keep_comment(forge: Forge, text: str, *, name: str = "", only_update: bool = False) -> str:
    """Have the text stand in the pull request once.

    Args:
        forge: where.
        text: Markdown; kaigen's marker at its start is put in where it is missing.
        name: tells several comments of one pull request apart, such as those of environments.
        only_update: change a comment that is there, and add none.

    Returns:
        What was done: `created`, `updated`, `unchanged` or `left out`.

    Raises:
        SystemFailure: the forge refuses, or cannot be reached.
    """
    plain = text.removeprefix(MARKER).lstrip("\n")
    marker = MARKER
    if name:
        word = re.sub(r"[^A-Za-z0-9._-]", "-", name).replace("--", "-")
        marker = MARKER.replace(" -->", f" of {word} -->")
        plain = f"### {word}\n\n{plain}"
    body = shorten(f"{marker}\n{plain}", forge.limit, forge.whole).rstrip("\n")
    for comment in forge.comments():
        if comment.body.startswith(marker):
            if comment.body.replace("\r\n", "\n").rstrip("\n") == body:
                return "unchanged"
            forge.update(comment, body)
            return "updated"
    if only_update:
        return "left out"
    forge.create(body)
    return "created"


def shorten(text: str, limit: int, whole: str = "") -> str:
    """The text, cut at the end of a line with a note where it is longer than a limit.

    Args:
        text: Markdown.
        limit: characters.
        whole: address where all of it can be read; may be empty.
    """
    if len(text) <= limit:
        return text
    where = f" [The run]({whole}) has all of it." if whole else ""
    note = f"\n\n_The rest is cut off: a comment takes {limit:,} characters at most.{where}_\n"
    kept = text[: limit - len(note) - 200]
    kept = kept[: kept.rfind("\n") + 1] or kept
    fences = _OPEN.findall(kept)
    if len(fences) % 2:
        kept += f"{fences[-1]}\n"
    open_details = kept.count("<details>") - kept.count("</details>")
    return kept + "\n</details>\n" * min(open_details, 10) + note


def _needed(environment: Mapping[str, str], name: str, hint: str = "") -> str:
    value = environment.get(name, "").strip()
    if not value:
        raise SystemFailure(f"the variable {name} is not set", hint=hint)
    return value


def _pull_request(environment: Mapping[str, str]) -> int:
    import json

    path = _needed(environment, "GITHUB_EVENT_PATH")
    try:
        event = json.loads(Path(path).read_bytes())
        return int(event["pull_request"]["number"])
    except OSError as error:
        raise SystemFailure(f"{path}: {error.strerror}") from None
    except (ValueError, KeyError, TypeError):
        raise SystemFailure(
            "this is no run of a pull request", hint="run it on the event `pull_request`"
        ) from None


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line.

    Returns:
        The exit code: 0 done, 3 the surroundings failed.
    """
    parser = argparse.ArgumentParser(prog="python -m kaigen.diff.comment", description=__doc__.split(":")[0])
    parser.add_argument("file", help="the comment's text, Markdown")
    parser.add_argument(
        "--name", default="", help="tells several comments apart, such as an environment's name"
    )
    parser.add_argument("--only-update", action="store_true", help="change a comment that is there, add none")
    options = parser.parse_args(arguments)
    try:
        text = Path(options.file).read_text(encoding="utf-8")
        forge = find_forge(os.environ)
        done = keep_comment(forge, text, name=options.name, only_update=options.only_update)
    except OSError as error:
        print(f"error: {error.filename}: {error.strerror}", file=sys.stderr)
        return SystemFailure.exit_code
    except KaigenError as error:
        print(f"error: {error}", file=sys.stderr)
        if error.hint:
            print(f"  = hint: {error.hint}", file=sys.stderr)
        return error.exit_code
    print(f"comment: {done}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
