"""Which revisions of a model the pods of the namespace read."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from urllib.parse import urlencode

from kaigen_downloader.cluster import Api, ApiUnavailable, Json, refused

_PAGE = 100
_RUNNING = "status.phase!=Succeeded,status.phase!=Failed"


def readers(names: Collection[str], env: Mapping[str, str]) -> dict[str, str]:
    """Return the revisions that pods read, each with the name of one pod.

    A pod reads a revision if its spec contains the name: in the path of a mount, or in the arguments of the container
    that waits for it. Pods that have ended do not count.

    Args:
        names: of the revisions.
        env: has the address of the API server.

    Raises:
        ApiUnavailable: the API server cannot be reached or refuses.
    """
    api = Api(env)
    found: dict[str, str] = {}
    query = {"limit": str(_PAGE), "fieldSelector": _RUNNING}
    while True:
        path = f"/api/v1/namespaces/{api.namespace}/pods?{urlencode(query)}"
        status, page = api.call("GET", path)
        items = page.get("items")
        if status != 200 or not isinstance(items, list):
            # A list that was cut off must not look like one without pods.
            raise ApiUnavailable(refused("list pods", status, page))
        for pod in map(_object, items):
            spec = json.dumps(pod.get("spec"))
            for name in names:
                if name in spec:
                    found.setdefault(name, str(_object(pod.get("metadata")).get("name")))
        following = _object(page.get("metadata")).get("continue")
        if not following:
            return found
        query["continue"] = str(following)


def _object(value: object) -> Json:
    return value if isinstance(value, dict) else {}
