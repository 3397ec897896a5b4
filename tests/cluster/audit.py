"""Reading the API server's audit log: who asked for what."""

from __future__ import annotations

import json
import os
import uuid
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.cluster.client import ApiError, Client, Object
from tests.cluster.processes import wait_until

_WRITES = frozenset({"create", "update", "patch", "delete", "deletecollection"})
_BLOCK = 64 * 1024  # bytes read at once when looking for the last newline

# Leases and events are logged only for service accounts, as which kaigen's programs run. Secrets and tokens are logged
# without their content, all other writes with the request body.
POLICY: Object = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["RequestReceived"],
    "rules": [
        {
            "level": "Metadata",
            "userGroups": ["system:serviceaccounts"],
            "resources": [
                {"group": "coordination.k8s.io", "resources": ["leases"]},
                {"group": "events.k8s.io", "resources": ["events"]},
            ],
        },
        {"level": "None", "resources": [{"group": "coordination.k8s.io", "resources": ["leases"]}]},
        {"level": "None", "resources": [{"group": "", "resources": ["events"]}, {"group": "events.k8s.io"}]},
        {"level": "None", "nonResourceURLs": ["/healthz*", "/livez*", "/readyz*", "/openapi*", "/version"]},
        {
            "level": "Metadata",
            "resources": [
                {"group": "", "resources": ["secrets", "serviceaccounts/token"]},
                {"group": "authentication.k8s.io"},
            ],
        },
        {"level": "Request"},
    ],
}


@dataclass(frozen=True, slots=True)
class Request:
    """One request that the API server answered.

    Attributes:
        user: Who asked, as authentication knows them; for whom, when they asked in another's name.
        agent: The user agent they gave.
        verb: Kubernetes verb.
        group: API group; empty for the core.
        resource: Plural of the kind, with ``/subresource`` where one was meant.
        namespace: Empty for what has none.
        name: Empty for lists and for names that the server made.
        code: HTTP status of the answer.
        uri: Path and query.
        time: When it came, RFC 3339 with microseconds.
        body: What was sent; empty where nothing was or the policy leaves it out.
        reason: Why it was allowed: with the role and its binding, where these did.
        message: Why it was refused; empty where it was not.
    """

    user: str
    agent: str
    verb: str
    group: str
    resource: str
    namespace: str
    name: str
    code: int
    uri: str
    time: str
    body: Object
    reason: str = ""
    message: str = ""

    @property
    def writes(self) -> bool:
        """Whether it may have changed something: dry runs and refused requests cannot have."""
        return self.verb in _WRITES and "dryRun=" not in self.uri and 200 <= self.code < 300

    def __str__(self) -> str:
        """One line for an assertion's message."""
        return f"{self.verb} {self.resource} {self.namespace}/{self.name} by {self.user}: {self.code}"


class Audit:
    """The audit log of one plane. A mark is a place in it, after all that was answered before."""

    def __init__(self, path: Path, client: Client) -> None:
        """Read a log.

        Args:
            path: The log, one JSON event a line.
            client: Asks for the marks.
        """
        self._path = path
        self._client = client

    def mark(self) -> int:
        """The place in the log that the next answered request will have, or one shortly before it."""
        # An event may be written just after its answer has left. A request of its own, looked for in the log,
        # says that those before it are in.
        needle = f"mark-{uuid.uuid4().hex}"
        try:
            self._client.request("GET", f"/api/v1/namespaces/{needle}")
        except ApiError as error:
            if error.code != 404:
                raise
        place = self._path.stat().st_size if self._path.exists() else 0
        start = max(0, place - 1_000_000)
        found = -1

        def seen() -> bool:
            nonlocal found
            with self._path.open("rb") as log:
                log.seek(start)
                data = log.read()
            at = data.find(needle.encode())
            end = data.find(b"\n", at) if at >= 0 else -1
            found = start + end + 1 if end >= 0 else -1
            return found >= 0

        wait_until(seen, "the audit log holds the mark", 10)
        return found

    def requests(self, since: int = 0, until: int | None = None) -> Iterator[Request]:
        """All answered requests from one mark to another (to now where it is None)."""
        yield from self._requests(since, until, ("ResponseComplete",))

    def all_since(self, mark: int) -> Iterator[Request]:
        """All requests since a mark, including watches that have not ended; those that have come twice."""
        yield from self._requests(mark, None, ("ResponseStarted", "ResponseComplete"))

    def _requests(self, since: int, until: int | None, stages: Collection[str]) -> Iterator[Request]:
        end = self.mark() if until is None else until
        with self._path.open("rb") as log:
            log.seek(since)
            for line in log.read(end - since).splitlines():
                event = json.loads(line)
                if event.get("stage") in stages and "objectRef" in event:
                    yield _request(event)

    def place(self) -> int:
        """The end of the last whole event in the log: a mark that may lie before the last answered requests."""
        # The API server may be in the middle of writing an event, so the end of the file may be within a line.
        if not self._path.exists():
            return 0
        with self._path.open("rb") as log:
            end = log.seek(0, os.SEEK_END)
            while end > 0:
                start = max(0, end - _BLOCK)
                log.seek(start)
                newline = log.read(end - start).rfind(b"\n")
                if newline >= 0:
                    return start + newline + 1
                end = start
        return 0

    def writes_since(self, mark: int, *, namespace: str | None = None, user: str | None = None) -> list[Request]:
        """What may have changed something since a mark.

        Args:
            mark: From ``mark``.
            namespace: Only there; None for everywhere.
            user: Only by this user; None for all.
        """
        return [
            request
            for request in self.requests(mark)
            if request.writes
            and (namespace is None or request.namespace == namespace)
            and (user is None or request.user == user)
        ]


def _request(event: Object) -> Request:
    target = event["objectRef"]
    resource = target.get("resource", "")
    if "subresource" in target:
        resource = f"{resource}/{target['subresource']}"
    body = event.get("requestObject")  # a list where it is a JSON patch
    return Request(
        user=(event.get("impersonatedUser") or event["user"]).get("username", ""),
        agent=event.get("userAgent", ""),
        verb=event["verb"],
        group=target.get("apiGroup", ""),
        resource=resource,
        namespace=target.get("namespace", ""),
        name=target.get("name", ""),
        code=event.get("responseStatus", {}).get("code", 0),
        uri=event["requestURI"],
        time=event["requestReceivedTimestamp"],
        body=body if isinstance(body, dict) else {},
        reason=event.get("annotations", {}).get("authorization.k8s.io/reason", ""),
        message=event.get("responseStatus", {}).get("message", ""),
    )
