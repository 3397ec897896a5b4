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
    "github": (
        r"/repos/ada/models/issues/7/comments",
        r"/repos/ada/models/issues/comments/(\d+)",
        "PATCH",
        "Authorization",
        f"Bearer {TOKEN}",
    ),
    "gitlab": (
        r"/projects/42/merge_requests/7/notes",
        r"/projects/42/merge_requests/7/notes/(\d+)",
        "PUT",
        "PRIVATE-TOKEN",
        TOKEN,
    ),
}


@dataclass(slots=True)
class Forge:
    """A running server.

    Attributes:
        url: of its API.
        comments: text by id, in the order in which they were made.
        pulls: bodies of the requests that opened a pull request.
        requests: method and path of every request.
        redirect: where requests are sent to instead; empty for nowhere.
        seen: headers that came in.
    """

    url: str = ""
    comments: dict[int, str] = field(default_factory=dict)
    pulls: list[dict[str, str]] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)
    redirect: str = ""
    seen: list[dict[str, str]] = field(default_factory=list)

    def environment(self, kind: str) -> dict[str, str]:
        """Return the forge's environment variables of a job, except for GitHub's pull request."""
        if kind == "github":
            return {
                "GITHUB_ACTIONS": "true",
                "GITHUB_API_URL": self.url,
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
    listing, single, method_of_change, header, value = _ROUTES[kind]

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
            elif re.fullmatch(listing, parts.path) and self.command == "GET":
                query = parse_qs(parts.query)
                size, page = int(query["per_page"][0]), int(query["page"][0])
                every = [{"id": key, "body": text} for key, text in forge.comments.items()]
                self._answer(200, every[size * (page - 1) : size * page])
            elif re.fullmatch(listing, parts.path) and self.command == "POST":
                key = 1000 + len(forge.comments)
                forge.comments[key] = body["body"]
                self._answer(201, {"id": key})
            elif (found := re.fullmatch(single, parts.path)) and self.command == method_of_change:
                forge.comments[int(found[1])] = body["body"]
                self._answer(200, {"id": int(found[1])})
            else:
                self._answer(404, {"message": "Not Found"})

        do_GET = do_POST = do_PUT = do_PATCH = _handle

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
