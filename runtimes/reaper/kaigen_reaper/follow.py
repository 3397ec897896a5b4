"""Lists Jobs and volumes page by page, and watches them."""

from __future__ import annotations

import random
import threading
import time
from urllib.parse import urlencode

from kaigen_reaper.cluster import Api, Expired, Json, items, mapping, pages
from kaigen_reaper.contract import SELECTOR
from kaigen_reaper.errors import ApiUnavailable
from kaigen_reaper.index import JOBS, Index
from kaigen_reaper.metrics import Metrics
from kaigen_reaper.records import key_of
from kaigen_reaper.text import say

_WATCH = 300
_SILENCE = _WATCH + 30.0
_LONGEST_PAUSE = 30.0
_GONE = 410
_SHORT = 1.0
_FULL = 4
"""How many times as large a whole object is as its metadata, at least."""


class Follower:
    """Keeps the Jobs or volumes of a namespace in an index.

    Attributes:
        synced: set after the first complete list.
    """

    def __init__(self, api: Api, index: Index, kind: str, namespace: str, *, page: int, metrics: Metrics) -> None:
        """Initialize.

        Args:
            api: the API server.
            index: what it fills.
            kind: `jobs` or `volumes`.
            namespace: empty for all.
            page: objects in one page of a list.
            metrics: counts errors.
        """
        self.synced = threading.Event()
        self._api = api
        self._index = index
        self._kind = kind
        self._namespace = namespace
        self._page = page
        self._metrics = metrics
        group = "/apis/batch/v1" if kind == JOBS else "/api/v1"
        scope = f"/namespaces/{namespace}" if namespace else ""
        self._path = f"{group}{scope}/{'jobs' if kind == JOBS else 'persistentvolumeclaims'}"

    def list(self) -> str:
        """List everything.

        Returns:
            The version from which to watch.

        Raises:
            ApiUnavailable: the API server cannot be reached or refuses.
        """
        version = ""
        found: list[str] = []
        for page in pages(self._api, self._path, {"labelSelector": SELECTOR}, max(1, self._page // _FULL)):
            version = version or str(mapping(page.get("metadata")).get("resourceVersion"))
            for obj in items(page):
                found.append(self._index.set(self._kind, obj))
        self._index.keep_only(self._kind, self._namespace, found)
        self.synced.set()
        self._index.wake()
        return version

    def run(self, stop: threading.Event) -> None:
        """List and watch until `stop` is set."""
        version, problem, failed = "", "", 0
        while not stop.is_set():
            try:
                version = version or self.list()
                begin = time.monotonic()
                version = self._watch(version, stop)
                problem, failed = "", 0
                if time.monotonic() - begin > _SHORT:
                    continue
            except ApiUnavailable as error:
                # After a lost connection the watch goes on; after an answer of the server everything is listed again.
                if error.status:
                    version = ""
                if not isinstance(error, Expired):
                    failed += 1
                    self._metrics.add("errors_total", what=f"follow {self._kind}")
                    if str(error) != problem:
                        problem = str(error)
                        say(f"warning: {problem}")
            stop.wait(min(_LONGEST_PAUSE, 0.5 * 2 ** min(failed, 8)) * random.uniform(0.5, 1.0))
        self._api.close()

    def _watch(self, version: str, stop: threading.Event) -> str:
        """Apply the events of one watch, and return the version from which to go on."""
        query = {
            "watch": "1",
            "labelSelector": SELECTOR,
            "resourceVersion": version,
            "allowWatchBookmarks": "true",
            "timeoutSeconds": str(_WATCH),
        }
        for event in self._api.stream(f"{self._path}?{urlencode(query)}", _SILENCE):
            if stop.is_set():
                break
            version = self._apply(event) or version
        return version

    def _apply(self, event: Json) -> str:
        """Apply an event, and return its version."""
        kind, obj = event.get("type"), mapping(event.get("object"))
        if kind == "ERROR" or not kind:
            message = f"watch {self._path}: {obj.get('message') or 'the answer was cut off'}"
            raise Expired(message, _GONE) if obj.get("code") == _GONE else ApiUnavailable(message, 500)
        if kind == "DELETED":
            self._index.remove(self._kind, key_of(obj))
        elif kind != "BOOKMARK":
            self._index.set(self._kind, obj)
        return str(mapping(obj.get("metadata")).get("resourceVersion") or "")
