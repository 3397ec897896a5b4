"""What Argo CD and Flux report of apps.

An object of a syncer lists what it applied: an Application in `status.resources`, a Kustomization and a HelmRelease in
`status.inventory`. An app belongs to the one that lists most of its objects, so it does not matter how it is named.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

from msgspec import Struct

from kaigen.cluster.errors import Forbidden
from kaigen.config.gitops import GitOps
from kaigen.kubernetes.manifest import Identity, Object, entries, identity_of, join_type, mapping, text
from kaigen.status.app_status import Sync, SyncName

if TYPE_CHECKING:
    from kaigen.cluster.client import Cluster

_APPLICATION = "Application.argoproj.io"
_KUSTOMIZATION = "Kustomization.kustomize.toolkit.fluxcd.io"
_RELEASE = "HelmRelease.helm.toolkit.fluxcd.io"


class Syncer(Struct, frozen=True):
    """An object of Argo CD or Flux that applies others.

    Attributes:
        sync: what it reports.
        applies: what it applied.
    """

    sync: Sync
    applies: frozenset[Identity]


def read_syncers(cluster: Cluster, gitops: GitOps | None, namespaces: Iterable[str]) -> list[Syncer]:
    """Return every object of the syncers that the repository configures. What the user may not read is left out.

    Args:
        cluster: the cluster.
        gitops: settings of the environment; None without syncers.
        namespaces: namespaces of apps, where tenants have theirs.

    Raises:
        SystemFailure: the cluster cannot be reached.
    """
    places: list[tuple[str, str, Callable[[Object], Syncer]]] = []
    if gitops and gitops.argocd:
        places.append((_APPLICATION, gitops.argocd.namespace, read_application))
    if gitops and gitops.flux:
        for namespace in sorted({gitops.flux.namespace, *namespaces}):
            places.append((_KUSTOMIZATION, namespace, _of_flux))
            places.append((_RELEASE, namespace, _of_flux))
    return [read(item) for type_, namespace, read in places for item in _readable(cluster, type_, namespace)]


def find_sync(objects: Iterable[Identity], syncers: Iterable[Syncer]) -> Sync | None:
    """Return what the syncer of an app reports; None when no syncer lists any of its objects."""
    own = frozenset(objects)
    best = max(syncers, key=lambda each: len(each.applies & own), default=None)
    return best.sync if best and best.applies & own else None


def _readable(cluster: Cluster, type_: str, namespace: str) -> list[Object]:
    try:
        return cluster.objects_of_type(type_, namespace)
    except Forbidden:
        return []


def read_application(obj: Object) -> Syncer:
    """Return what an Application of Argo CD reports."""
    status = mapping(obj.get("status"))
    sync, operation = mapping(status.get("sync")), mapping(status.get("operationState"))
    name: SyncName = _OF_ARGOCD.get(text(sync.get("status")), "unknown")
    message = ""
    phase = text(operation.get("phase"))
    # An operation that runs and has ended failed, and waits for its next attempt (source: Argo CD 3.5,
    # controller/appcontroller.go, where it sets FinishedAt).
    if phase in ("Failed", "Error") or (phase == "Running" and operation.get("finishedAt")):
        name, message = "failed", _refused(operation) or text(operation.get("message"))
    elif phase == "Running":
        name, message = "progressing", text(operation.get("message"))
    revisions = sync.get("revisions")
    several = "+".join(map(str, revisions)) if isinstance(revisions, list) else ""
    applies = (
        Identity(
            join_type(text(item.get("group")), text(item.get("kind"))),
            text(item.get("namespace")),
            text(item.get("name")),
        )
        for _, item in entries(status.get("resources"))
    )
    found = Sync(_title(obj), name, text(sync.get("revision")) or several, message)
    return Syncer(found, frozenset(applies))


def _refused(operation: Object) -> str:
    """Return why the first object of an operation was not applied; empty when all were."""
    for _, item in entries(mapping(operation.get("syncResult")).get("resources")):
        if item.get("status") == "SyncFailed":
            return f"{text(item.get('kind'))} {text(item.get('name'))}: {text(item.get('message'))}"
    return ""


_OF_ARGOCD: dict[str, SyncName] = {"Synced": "synced", "OutOfSync": "out of sync"}


def _of_flux(obj: Object) -> Syncer:
    status = mapping(obj.get("status"))
    name: SyncName = "progressing"
    message = "waiting for its controller"
    for _, item in entries(status.get("conditions")):
        if item.get("type") == "Ready":
            name = _OF_FLUX.get(text(item.get("status")), "progressing")
            message = text(item.get("message"))
    if mapping(obj.get("spec")).get("suspend") is True:
        name = "suspended"
    revision = text(status.get("lastAppliedRevision")) or text(status.get("lastAttemptedRevision"))
    shown = "" if name == "synced" else message
    return Syncer(Sync(_title(obj), name, revision, shown), frozenset(_inventory(status)))


_OF_FLUX: dict[str, SyncName] = {"True": "synced", "False": "failed"}


def _inventory(status: Object) -> Iterator[Identity]:
    """Yield the objects of an inventory, whose entries are `NAMESPACE_NAME_GROUP_KIND`.

    The name of a Role may contain colons, which are written as two underscores (source: cli-utils, object.ObjMetadata).
    """
    for _, item in entries(mapping(status.get("inventory")).get("entries")):
        namespace, _, rest = text(item.get("id")).partition("_")
        name, group, kind = [*rest.rsplit("_", 2), "", ""][:3]
        yield Identity(join_type(group, kind), namespace, name.replace("__", ":"))


def _title(obj: Object) -> str:
    identity = identity_of(obj)
    return f"{identity.kind} {identity.namespace}/{identity.name}"
