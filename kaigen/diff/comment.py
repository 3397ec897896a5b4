"""One comment of kaigen in a pull request on GitHub or a merge request on GitLab, updated by every run.

The pipeline's variables identify the pull request. The comment is found by its first line, a hidden marker.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from http.client import HTTPException
from pathlib import Path
from typing import Any, Protocol
from urllib.error import HTTPError, URLError
from urllib.request import HTTPRedirectHandler, Request, build_opener

from msgspec import Struct

from kaigen.diagnostics.errors import SystemFailure
from kaigen.diff.markdown import MARKER

PAGE = 100
"""Comments per request; the limit of both forges."""
PAGES = 100
"""Most pages that are searched."""
TIMEOUT = 30.0
"""Seconds to wait for a forge."""
_OPEN = re.compile(r"^[ ]{0,3}(`{3,}|~{3,})", re.MULTILINE)


class Comment(Struct, frozen=True):
    """An existing comment.

    Attributes:
        url: address for updates.
        body: its text.
    """

    url: str
    body: str


class Forge(Protocol):
    """The operations of GitHub and GitLab that kaigen uses."""

    limit: int
    whole: str

    def comments(self) -> Iterator[Comment]:
        """Return the comments of the pull request, oldest first."""

    def create(self, body: str) -> None:
        """Add a comment."""

    def update(self, comment: Comment, body: str) -> None:
        """Replace the text of a comment."""


class _Api(Struct, frozen=True):
    """A JSON API with its authentication.

    Attributes:
        base: URL of the comments.
        header: name and value of the header with the token; the value is never printed.
    """

    base: str
    header: tuple[str, str]

    def __repr__(self) -> str:
        return f"_Api({self.base!r})"

    def ask(self, method: str, url: str, data: Mapping[str, str] | None = None) -> Any:
        """Return the answer to a request.

        Raises:
            SystemFailure: the forge rejects the request, or cannot be reached.
        """

        class Stay(HTTPRedirectHandler):
            """Follows no redirect, so that the token is sent only to the configured host."""

            def redirect_request(self, *_: Any, **__: Any) -> None:
                """Return no request."""

        if not url.startswith(("https://", "http://")):
            raise SystemFailure(f"{url or 'the empty text'} is not an API address")
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
        """Return every item of a paginated list."""
        for page in range(1, PAGES + 1):
            items = self.ask("GET", f"{self.base}?per_page={PAGE}&page={page}{query}")
            if not isinstance(items, list):
                raise SystemFailure(f"GET {self.base}: the answer is not a list")
            yield from (item for item in items if isinstance(item, dict))
            if len(items) < PAGE:
                return


def _reason(error: Any) -> str:
    """The reason that the forge gives for an error, on one short line."""
    try:
        body = json.loads(error.read(10_000))
        text = body.get("message") or body.get("error") or error.reason
    except (ValueError, AttributeError, OSError):
        text = error.reason
    return " ".join(str(text).split())[:200]


def _hint(status: int) -> str:
    if status in (401, 403, 404):
        return (
            "allow the token to write comments: on GitHub set `permissions: pull-requests: write`, which pull requests "
            "from forks never get; on GitLab use a project access token with the scope `api`"
        )
    return ""


class GitHub:
    """Comments of a pull request on GitHub."""

    limit = 65_536
    """Characters of a comment, as GitHub counts them."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        """Read the variables of GitHub Actions.

        Raises:
            SystemFailure: the run is not for a pull request, or has no token.
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
        """Read the variables of GitLab CI.

        Raises:
            SystemFailure: the job is not for a merge request, or has no token.
        """
        number = _needed(environment, "CI_MERGE_REQUEST_IID", "run it in a merge request's pipeline")
        hint = "set it to a project access token with the scope `api`; the job token cannot write notes"
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
    """Return the forge that runs this pipeline.

    Raises:
        SystemFailure: the pipeline is not for a pull request, or a variable is missing.
    """
    if environment.get("GITLAB_CI"):
        return GitLab(environment)
    if environment.get("GITHUB_ACTIONS"):
        return GitHub(environment)
    raise SystemFailure(
        "this is not a GitHub or GitLab pipeline",
        hint="run it in a job, where GITHUB_ACTIONS or GITLAB_CI is set",
    )


def update_comment(forge: Forge, text: str, *, name: str = "", only_update: bool = False) -> str:
    """Create or update kaigen's comment in the pull request.

    Args:
        forge: the forge of the pull request.
        text: Markdown, with or without kaigen's marker at its start.
        name: distinguishes several comments in one pull request, such as one per environment.
        only_update: update an existing comment, and create none.

    Returns:
        What was done: `created`, `updated`, `unchanged` or `skipped`.

    Raises:
        SystemFailure: the forge rejects the request, or cannot be reached.
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
        return "skipped"
    forge.create(body)
    return "created"


def shorten(text: str, limit: int, whole: str = "") -> str:
    """Return the text; cut at the end of a line and followed by a note if it exceeds the limit.

    Args:
        text: Markdown.
        limit: characters.
        whole: address of the complete text; may be empty.
    """
    if len(text) <= limit:
        return text
    where = f" See [the run]({whole}) for the complete text." if whole else ""
    note = f"\n\n_Truncated: a comment has at most {limit:,} characters.{where}_\n"
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
    path = _needed(environment, "GITHUB_EVENT_PATH")
    try:
        event = json.loads(Path(path).read_bytes())
        return int(event["pull_request"]["number"])
    except OSError as error:
        raise SystemFailure(f"{path}: {error.strerror}") from None
    except (ValueError, KeyError, TypeError):
        raise SystemFailure(
            "this run is not for a pull request", hint="run it on the event `pull_request`"
        ) from None
