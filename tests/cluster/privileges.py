"""What roles grant, and what accounts have asked for."""

from __future__ import annotations

from tests.cluster.client import ApiError, Client, Object
from tests.cluster.plane import Plane


def granted(role: Object) -> set[tuple[str, str, str]]:
    """Return verb, resource and name (empty for any) of everything that a Role grants."""
    return {
        (verb, resource, name)
        for rule in role["rules"]
        for verb in rule["verbs"]
        for resource in rule["resources"]
        for name in rule.get("resourceNames", [""])
    }


def used(plane: Plane, mark: int, account: str, role: Object) -> set[tuple[str, str, str]]:
    """Return the same of everything that an account has asked for since a mark; none of it may have been refused."""
    anything = {(verb, resource) for verb, resource, name in granted(role) if not name}
    found = set()
    for request in plane.audit.requests(mark):
        if request.user == account:
            assert request.code != 403, request
            named = "" if (request.verb, request.resource) in anything else request.name
            found.add((request.verb, request.resource, named))
    return found


def is_refused(client: Client, method: str, path: str, body: Object | None = None) -> bool:
    """Return whether the API server refuses a request for lack of permission."""
    try:
        client.request(
            method, path, body, content_type="application/merge-patch+json" if method == "PATCH" else "application/json"
        )
    except ApiError as error:
        return error.code == 403
    return False
