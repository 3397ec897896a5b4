"""What Argo CD and Flux need to know about each app: data that the cache stores."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

AppKey = tuple[str, str]
"""Namespace and name of an app."""


class AppFacts(Struct, frozen=True, array_like=True):
    """Facts about one app that Argo CD and Flux need.

    Attributes:
        namespace: namespace of the app, and its folder in the tree.
        name: name of the app and its Helm release.
        source: file of the spec.
        version: version of its chart.
        kinds: apiVersion and kind of its objects, sorted.
        places: namespace, API group and kind of its namespaced objects, sorted.
        namespaces: namespaces of its objects, sorted; `""` for cluster-scoped objects.
        needs: apps that it waits for.
        deadline_s: longest time limit of its Jobs in seconds; 0 if one has no limit or there are none.
        start_s: longest time that its other pods may take to start, in seconds; 0 if it is not known, or a Job has no
            limit.
        queued: whether it has runs that wait in a queue of Kueue, suspended.
        scaled: apiVersion, kind and name of the objects whose replicas are set in the cluster, as by an autoscaler.
        rules: rules of its Roles, each with the namespace of the Role.
        binds: namespace of its RoleBindings, with kind and name of the roles that they refer to.
        pod_security: Pod Security level that its pods need.
        encrypted: whether it has files encrypted with SOPS; only its manifests include them.
        homeless: whether one of those files names no namespace, and no object is in another one than the app.
        replaces: whether it has Jobs with fixed names, which must be replaced to change, and no data that the
            replacement would delete.
    """

    namespace: str
    name: str
    source: str = ""
    version: str = ""
    kinds: tuple[tuple[str, str], ...] = ()
    namespaces: tuple[str, ...] = ()
    places: tuple[tuple[str, str, str], ...] = ()
    needs: tuple[AppKey, ...] = ()
    deadline_s: int = 0
    start_s: int = 0
    queued: bool = False
    scaled: tuple[tuple[str, str, str], ...] = ()
    rules: tuple[tuple[str, Mapping[str, Any]], ...] = ()
    binds: tuple[tuple[str, str, str], ...] = ()
    pod_security: str = "restricted"
    encrypted: bool = False
    homeless: bool = False
    replaces: bool = False

    @property
    def key(self) -> AppKey:
        """The namespace and name."""
        return (self.namespace, self.name)

    @property
    def waited_for(self) -> bool:
        """Whether the apps that need it wait until it is healthy, and not only until it is applied.

        A value that is missing in the store must not stop every app of the namespace: pods wait for their own Secrets.
        """
        return {kind for _, kind in self.kinds} != {"ExternalSecret"}

    def kinds_in(self, namespace: str) -> list[tuple[str, str]]:
        """Return the group and kind of its objects in a namespace."""
        return [(group, kind) for place, group, kind in self.places if place == namespace]
