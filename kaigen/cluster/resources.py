"""Where an API server serves the objects of a kind, by its own account."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import NamedTuple
from urllib import parse

from kaigen.kubernetes.manifest import Object, entries, mapping, text

_quote = partial(parse.quote, safe=":")  # names of Roles have colons


class _Served(NamedTuple):
    version: str
    plural: str
    namespaced: bool


class Resources:
    """The kinds that an API server serves, asked group by group, each once."""

    def __init__(self, read: Callable[[str], Object | None]) -> None:
        """Nothing is asked yet.

        Args:
            read: returns the answer for a path; None when the server has nothing there.
        """
        self._read = read
        self._served: dict[str, dict[str, _Served]] = {}

    def path(self, type_: str, namespace: str = "", name: str = "") -> str | None:
        """Return the path of the objects of a type, in the preferred version that has it; None when none has.

        Args:
            type_: kind and group, as in `Service` and `Job.batch`.
            namespace: empty for all namespaces; without effect for objects of the cluster.
            name: name of an object; empty for all objects.
        """
        kind, _, group = type_.partition(".")
        if group not in self._served:
            self._served[group] = dict(self._kinds(group))
        served = self._served[group].get(kind)
        if served is None:
            return None
        where = ("namespaces", _quote(namespace)) if namespace and served.namespaced else ()
        return "/".join([served.version, *where, served.plural, *([_quote(name)] if name else [])])

    def _kinds(self, group: str) -> Iterator[tuple[str, _Served]]:
        """Yield each kind of a group with where it is served, the preferred version last."""
        for version in reversed(list(self._versions(group))):
            for _, item in entries((self._read(version) or {}).get("resources")):
                plural = text(item.get("name"))
                if "/" not in plural:
                    yield (text(item.get("kind")), _Served(version, plural, item.get("namespaced") is not False))

    def _versions(self, group: str) -> Iterator[str]:
        """Yield the paths of the versions of a group, the preferred one first."""
        if not group:
            yield "/api/v1"
            return
        found = self._read(f"/apis/{group}") or {}
        versions = [mapping(found.get("preferredVersion")), *(item for _, item in entries(found.get("versions")))]
        for version in dict.fromkeys(text(item.get("groupVersion")) for item in versions):
            if version:
                yield f"/apis/{version}"
