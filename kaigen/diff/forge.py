"""The comments of a pull request on GitHub or of a merge request on GitLab, for the pipeline that runs for it.

Anybody who may comment can write a text that begins like kaigen's comment, and change it afterwards. Therefore only
comments of the token's own user are returned:

- GitHub: the field `viewerDidAuthor` of the GraphQL API, by which `gh pr comment --edit-last` finds its comment
  (github.com/cli/cli, api/queries_comments.go). It is right for tokens of persons, of apps and of GitHub Actions. The
  REST API does not answer `GET /user` to the token of GitHub Actions.
- GitLab: `author.id` of a note, and the id that `GET /user` returns (docs.gitlab.com/api/notes and /api/users).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from http.client import HTTPException
from pathlib import Path
from typing import Any, Protocol, TypeVar
from urllib.error import HTTPError, URLError
from urllib.request import HTTPRedirectHandler, Request, build_opener

from msgspec import Struct, ValidationError, convert

from kaigen.diagnostics.errors import SystemFailure

PAGE = 100
"""Comments per request; the limit of both forges."""
PAGES = 100
"""Most pages that are searched."""
TIMEOUT = 30.0
"""Seconds to wait for a forge."""

_COMMENTS = """
query($owner: String!, $name: String!, $number: Int!, $size: Int!, $after: String) {
  repository(owner: $owner, name: $name) {
    pullRequest(number: $number) {
      baseRefName
      headRefOid
      comments(first: $size, after: $after) {
        nodes { id body viewerDidAuthor }
        pageInfo { hasNextPage endCursor }
      }
    }
  }
}
"""
_UPDATE = """
mutation($id: ID!, $body: String!) {
  updateIssueComment(input: {id: $id, body: $body}) { clientMutationId }
}
"""

_REFUSED = ("FORBIDDEN", "NOT_FOUND", "INSUFFICIENT_SCOPES")
"""Types of errors of GitHub's GraphQL API for what a token may not do."""


class Comment(Struct, frozen=True):
    """A comment of the token's own user.

    Attributes:
        id: identifies it for updates.
        body: its text.
    """

    id: str
    body: str


class Revision(Struct, frozen=True):
    """What a pull request is about.

    Attributes:
        base: the branch that it is merged into.
        head: the commit that is merged.
    """

    base: str
    head: str


class _Page(Struct, frozen=True, rename="camel"):
    """Whether a list of GitHub goes on, and where."""

    has_next_page: bool
    end_cursor: str | None


class _Node(Struct, frozen=True, rename="camel"):
    """A comment on GitHub."""

    id: str
    body: str
    viewer_did_author: bool


class _Nodes(Struct, frozen=True, rename="camel"):
    """A page of comments on GitHub."""

    nodes: tuple[_Node | None, ...]
    page_info: _Page


class _PullRequest(Struct, frozen=True, rename="camel"):
    """A pull request on GitHub, with a page of its comments."""

    base_ref_name: str
    head_ref_oid: str
    comments: _Nodes


class _User(Struct, frozen=True):
    """A user of GitLab."""

    id: int


class _Note(Struct, frozen=True):
    """A note on GitLab; its author may have been deleted."""

    id: int
    body: str
    author: _User | None


class _MergeRequest(Struct, frozen=True):
    """A merge request on GitLab."""

    target_branch: str
    sha: str | None


_Answer = TypeVar("_Answer")


class Forge(Protocol):
    """The operations of GitHub and GitLab that kaigen uses.

    Attributes:
        limit: characters of a comment.
        whole: address of the run; may be empty.
        revision: what the pipeline runs for.
    """

    limit: int
    whole: str
    revision: Revision

    def current(self) -> Revision:
        """Return what the pull request is about now."""

    def own_comments(self) -> Iterator[Comment]:
        """Return the comments of the token's own user in the pull request, oldest first."""

    def create(self, body: str) -> None:
        """Add a comment."""

    def update(self, comment: Comment, body: str) -> None:
        """Replace the text of a comment."""


class _Api(Struct, frozen=True):
    """A JSON API with its authentication.

    Attributes:
        header: name and value of the header with the token; the value is never printed.
    """

    header: tuple[str, str]

    def __repr__(self) -> str:
        return "_Api()"

    def ask(self, method: str, url: str, data: Mapping[str, Any] | None = None) -> Any:
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
            raise SystemFailure(f"{method} {url}: HTTP {error.code} {_reason(error)}", hint=_hint(error.code)) from None
        except (URLError, HTTPException, OSError, ValueError) as error:
            raise SystemFailure(f"{method} {url}: {getattr(error, 'reason', error)}") from None


def _reason(error: Any) -> str:
    """The reason that the forge gives for an error, on one short line."""
    try:
        body = json.loads(error.read(10_000))
        text = body.get("message") or body.get("error") or error.reason
    except (ValueError, AttributeError, OSError):
        text = error.reason
    return _short(text)


def _short(text: object) -> str:
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
        self._number, self.revision = _pull_request(environment)
        token = _needed(environment, "GITHUB_TOKEN")
        repository = _needed(environment, "GITHUB_REPOSITORY")
        api = environment.get("GITHUB_API_URL", "https://api.github.com").rstrip("/")
        self._owner, _, self._name = repository.partition("/")
        self._comments = f"{api}/repos/{repository}/issues/{self._number}/comments"
        # GitHub Enterprise Server has HOST/api/v3 and HOST/api/graphql.
        self._graphql = environment.get("GITHUB_GRAPHQL_URL") or f"{api.removesuffix('/v3')}/graphql"
        self._api = _Api(("Authorization", f"Bearer {token}"))
        server, run = environment.get("GITHUB_SERVER_URL"), environment.get("GITHUB_RUN_ID")
        self.whole = f"{server}/{repository}/actions/runs/{run}" if server and run else ""

    def current(self) -> Revision:
        """See `Forge`."""
        found = self._page(1, None)
        return Revision(found.base_ref_name, found.head_ref_oid)

    def own_comments(self) -> Iterator[Comment]:
        """See `Forge`."""
        after = None
        for _ in range(PAGES):
            comments = self._page(PAGE, after).comments
            for item in comments.nodes:
                if item is not None and item.viewer_did_author:
                    yield Comment(item.id, item.body)
            if not comments.page_info.has_next_page:
                return
            after = comments.page_info.end_cursor

    def create(self, body: str) -> None:
        """See `Forge`."""
        self._api.ask("POST", self._comments, {"body": body})

    def update(self, comment: Comment, body: str) -> None:
        """See `Forge`."""
        self._query(_UPDATE, {"id": comment.id, "body": body})

    def _page(self, size: int, after: str | None) -> _PullRequest:
        """Return the pull request with a page of its comments."""
        place = {"owner": self._owner, "name": self._name, "number": self._number}
        data = self._query(_COMMENTS, {**place, "size": size, "after": after})
        found = data.get("repository") if isinstance(data, dict) else None
        pull = found.get("pullRequest") if isinstance(found, dict) else None
        return _converted(pull, _PullRequest, f"POST {self._graphql}")

    def _query(self, query: str, variables: Mapping[str, Any]) -> Any:
        """Return the data of an answer of the GraphQL API, which reports errors with status 200."""
        answer = self._api.ask("POST", self._graphql, {"query": query, "variables": variables})
        errors = answer.get("errors") if isinstance(answer, dict) else "the answer is not a mapping"
        if not errors:
            return answer.get("data")
        first = errors[0] if isinstance(errors, list) else errors
        text = first.get("message") if isinstance(first, dict) else first
        is_refused = isinstance(first, dict) and first.get("type") in _REFUSED
        raise SystemFailure(f"POST {self._graphql}: {_short(text)}", hint=_hint(403 if is_refused else 0))


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
        # The first is set only in a pipeline of the merged result, whose CI_COMMIT_SHA is the merge.
        head = environment.get("CI_MERGE_REQUEST_SOURCE_BRANCH_SHA") or _needed(environment, "CI_COMMIT_SHA")
        self.revision = Revision(_needed(environment, "CI_MERGE_REQUEST_TARGET_BRANCH_NAME"), head)
        self._root = _needed(environment, "CI_API_V4_URL").rstrip("/")
        self._merge_request = f"{self._root}/projects/{project}/merge_requests/{number}"
        self._notes = f"{self._merge_request}/notes"
        self._api = _Api(("PRIVATE-TOKEN", token))
        self.whole = environment.get("CI_JOB_URL", "")

    def current(self) -> Revision:
        """See `Forge`."""
        found = self._get(self._merge_request, _MergeRequest)
        return Revision(found.target_branch, found.sha or "")

    def own_comments(self) -> Iterator[Comment]:
        """See `Forge`."""
        user = self._get(f"{self._root}/user", _User)
        for page in range(1, PAGES + 1):
            query = f"?per_page={PAGE}&page={page}&sort=asc&order_by=created_at"
            items = self._get(f"{self._notes}{query}", tuple[_Note, ...])
            for item in items:
                if item.author == user:
                    yield Comment(str(item.id), item.body)
            if len(items) < PAGE:
                return

    def create(self, body: str) -> None:
        """See `Forge`."""
        self._api.ask("POST", self._notes, {"body": body})

    def update(self, comment: Comment, body: str) -> None:
        """See `Forge`."""
        self._api.ask("PUT", f"{self._notes}/{comment.id}", {"body": body})

    def _get(self, url: str, form: type[_Answer]) -> _Answer:
        return _converted(self._api.ask("GET", url), form, f"GET {url}")


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
        "this is not a GitHub or GitLab pipeline", hint="run it in a job, where GITHUB_ACTIONS or GITLAB_CI is set"
    )


def _converted(data: Any, form: type[_Answer], request: str) -> _Answer:
    """Return an answer as typed values.

    Raises:
        SystemFailure: it has another form.
    """
    try:
        return convert(data, form)
    except ValidationError as error:
        raise SystemFailure(f"{request}: the answer has an unknown form: {error}") from None


def _needed(environment: Mapping[str, str], name: str, hint: str = "") -> str:
    value = environment.get(name, "").strip()
    if not value:
        raise SystemFailure(f"the variable {name} is not set", hint=hint)
    return value


def _pull_request(environment: Mapping[str, str]) -> tuple[int, Revision]:
    """Return the number and the revision of the pull request that the event is about."""
    path = _needed(environment, "GITHUB_EVENT_PATH")
    try:
        found = json.loads(Path(path).read_bytes())["pull_request"]
        return int(found["number"]), Revision(str(found["base"]["ref"]), str(found["head"]["sha"]))
    except OSError as error:
        raise SystemFailure(f"{path}: {error.strerror}") from None
    except (ValueError, KeyError, TypeError):
        raise SystemFailure("this run is not for a pull request", hint="run it on the event `pull_request`") from None
