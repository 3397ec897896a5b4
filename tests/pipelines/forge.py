"""GitHub's and GitLab's comments, and GitHub's pull requests, as far as kaigen uses them, on loopback."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

TOKEN = "token-that-must-stay-secret"
"""What the servers take; without it they answer as the forges do."""

_ROUTES = {
    "github": ("/repos/ada/models/issues/7/comments", "Authorization", f"Bearer {TOKEN}"),
    "gitlab": ("/projects/42/merge_requests/7/notes", "PRIVATE-TOKEN", TOKEN),
}
HEAD = "5f1c" * 10
_OWN_USER = 11


@dataclass(slots=True)
class Forge:
    """A running server.

    Attributes:
        url: of its API.
        comments: text by id, in the order in which they were made.
        others: ids of comments that another user than that of the token wrote.
        base: branch that the pull request is merged into now.
        head: its newest commit.
        errors: errors that GitHub's GraphQL API answers with.
        pulls: bodies of the requests that opened a pull request.
        requests: method and path of every request.
        redirect: where requests are sent to instead; empty for nowhere.
        seen: headers that came in.
    """

    url: str = ""
    comments: dict[int, str] = field(default_factory=dict)
    others: set[int] = field(default_factory=set)
    base: str = "main"
    head: str = HEAD
    errors: list[dict[str, str]] = field(default_factory=list)
    pulls: list[dict[str, str]] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)
    redirect: str = ""
    seen: list[dict[str, str]] = field(default_factory=list)

    @property
    def event(self) -> dict[str, Any]:
        """GitHub's event of a run that began before anything of the pull request changed."""
        return {"pull_request": {"number": 7, "base": {"ref": "main"}, "head": {"sha": HEAD}}}

    def page(self, variables: dict[str, Any]) -> dict[str, Any]:
        """Return what GitHub's GraphQL API answers to the query for comments."""
        start, size = int(variables["after"] or 0), variables["size"]
        nodes = [
            {"id": f"IC_{key}", "body": text, "viewerDidAuthor": key not in self.others}
            for key, text in self.comments.items()
        ]
        end = start + size
        page = {"hasNextPage": end < len(nodes), "endCursor": str(end) if nodes else None}
        pull = {"baseRefName": self.base, "headRefOid": self.head}
        comments = {"nodes": nodes[start:end], "pageInfo": page}
        return {"repository": {"pullRequest": {**pull, "comments": comments}}}

    def environment(self, kind: str) -> dict[str, str]:
        """Return the forge's environment variables of a job, except for GitHub's pull request."""
        if kind == "github":
            return {
                "GITHUB_ACTIONS": "true",
                "GITHUB_API_URL": self.url,
                "GITHUB_GRAPHQL_URL": f"{self.url}/graphql",
                "GITHUB_REPOSITORY": "ada/models",
                "GITHUB_TOKEN": TOKEN,
                "GITHUB_SERVER_URL": "https://forge.example",
                "GITHUB_RUN_ID": "99",
            }
        return {
            "GITLAB_CI": "true",
            "CI_API_V4_URL": self.url,
            "CI_MERGE_REQUEST_PROJECT_ID": "42",
            "CI_MERGE_REQUEST_IID": "7",
            "CI_MERGE_REQUEST_TARGET_BRANCH_NAME": "main",
            "CI_COMMIT_SHA": HEAD,
            "KAIGEN_GITLAB_TOKEN": TOKEN,
            "CI_JOB_URL": "https://forge.example/job/99",
        }


@contextmanager
def running(kind: str) -> Iterator[Forge]:
    """A forge that listens until the end of the block.

    Args:
        kind: `github` or `gitlab`.
    """
    forge = Forge()
    listing, header, value = _ROUTES[kind]

    class Handler(BaseHTTPRequestHandler):
        def _answer(self, status: int, body: Any, **headers: str) -> None:
            data = json.dumps(body).encode()
            self.send_response(status)
            for name, text in headers.items():
                self.send_header(name, text)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def _handle(self) -> None:
            parts = urlsplit(self.path)
            forge.requests.append(f"{self.command} {parts.path}")
            forge.seen.append(dict(self.headers.items()))
            body = json.loads(self.rfile.read(int(self.headers.get("Content-Length") or 0)) or b"null")
            if forge.redirect:
                self._answer(302, {}, Location=forge.redirect)
            elif self.headers.get(header) != value:
                self._answer(403, {"message": "Resource not accessible by integration"})
            elif parts.path == "/repos/ada/models/pulls" and self.command == "POST":
                if any(each["head"] == body["head"] for each in forge.pulls):
                    problem = {"message": f"A pull request already exists for ada:{body['head']}."}
                    self._answer(422, {"message": "Validation Failed", "errors": [problem]})
                else:
                    forge.pulls.append(body)
                    self._answer(201, {"number": 8})
            elif parts.path == listing and self.command == "POST":
                key = 1000 + len(forge.comments)
                forge.comments[key] = body["body"]
                self._answer(201, {"id": key})
            elif parts.path == "/graphql" and kind == "github":
                self._graphql(body["query"], body["variables"])
            elif kind == "gitlab":
                self._gitlab(parts.path, body, parse_qs(parts.query))
            else:
                self._answer(404, {"message": "Not Found"})

        def _graphql(self, query: str, variables: dict[str, Any]) -> None:
            if forge.errors:
                self._answer(200, {"data": None, "errors": forge.errors})
            elif "updateIssueComment(" in query:
                forge.comments[int(variables["id"].removeprefix("IC_"))] = variables["body"]
                self._answer(200, {"data": {"updateIssueComment": {"clientMutationId": None}}})
            else:
                self._answer(200, {"data": forge.page(variables)})

        def _gitlab(self, path: str, body: Any, query: dict[str, list[str]]) -> None:
            single = re.fullmatch(rf"{listing}/(\d+)", path)
            if path == "/user":
                self._answer(200, {"id": _OWN_USER, "username": "project_42_bot"})
            elif f"{path}/notes" == listing:
                self._answer(200, {"iid": 7, "target_branch": forge.base, "sha": forge.head})
            elif path == listing:
                size, page = int(query["per_page"][0]), int(query["page"][0])
                every = [
                    {"id": key, "body": text, "author": {"id": 66 if key in forge.others else _OWN_USER}}
                    for key, text in forge.comments.items()
                ]
                self._answer(200, every[size * (page - 1) : size * page])
            elif single and self.command == "PUT":
                forge.comments[int(single[1])] = body["body"]
                self._answer(200, {"id": int(single[1])})
            else:
                self._answer(404, {"message": "Not Found"})

        do_GET = do_POST = do_PUT = _handle

        def log_message(self, format: str, *args: Any) -> None:
            """Nothing: the tests look at `requests`."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    forge.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield forge
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
