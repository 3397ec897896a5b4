"""Rules for the objects of Argo CD and Flux."""

from __future__ import annotations

from collections.abc import Iterator

from kaigen.diff.formatting import listing, value
from kaigen.diff.model import ABSENT
from kaigen.diff.objects import Obj, get, get_list, get_map, get_text
from kaigen.diff.rules.case import Case, Finding, under

APPLICATION = "Application.argoproj.io"
APPLICATION_SET = "ApplicationSet.argoproj.io"
PROJECT = "AppProject.argoproj.io"
KUSTOMIZATION = "Kustomization.kustomize.toolkit.fluxcd.io"
HELM_RELEASE = "HelmRelease.helm.toolkit.fluxcd.io"
SOURCES = frozenset(
    f"{kind}.source.toolkit.fluxcd.io"
    for kind in ("Bucket", "GitRepository", "HelmRepository", "OCIRepository")
)

_FINALIZER = "resources-finalizer.argocd.argoproj.io"


def syncer_removed(case: Case) -> Iterator[Finding]:
    """An Application, ApplicationSet, Kustomization or HelmRelease was removed."""
    obj = case.obj
    if obj.type == HELM_RELEASE:
        yield "danger", "the Helm release is uninstalled with all its objects, except those marked to keep"
    elif obj.type == APPLICATION_SET:
        if get(obj.data, "spec", "syncPolicy", "preserveResourcesOnDeletion") is True:
            yield "notice", "its Applications are deleted; their objects are kept (no longer managed)"
        else:
            yield (
                "danger",
                "its Applications are deleted with all their objects, except those marked to keep",
            )
    elif _deletes_with(obj):
        yield "danger", "all its objects are deleted with it, except those marked to keep"
    else:
        yield "notice", "its objects are kept (no longer managed)"


def _deletes_with(obj: Obj) -> bool:
    if obj.type == KUSTOMIZATION:
        policy = get_text(obj.data, "spec", "deletionPolicy") or "MirrorPrune"
        if policy == "MirrorPrune":
            return get(obj.data, "spec", "prune") is True
        return policy != "Orphan"
    finalizers = [str(item) for item in get_list(obj.data, "metadata", "finalizers")]
    return any(item.partition("/")[0] == _FINALIZER for item in finalizers)


def sync_source(case: Case) -> Iterator[Finding]:
    """The source changed."""
    old, new = case.pair
    for way, label in (
        (("spec", "source", "repoURL"), "repository"),
        (("spec", "source", "targetRevision"), "revision"),
        (("spec", "source", "path"), "path"),
        (("spec", "path"), "path"),
        (("spec", "url"), "repository"),
        (("spec", "ref", "branch"), "branch"),
        (("spec", "ref", "tag"), "tag"),
        (("spec", "ref", "commit"), "commit"),
        (("spec", "ref", "semver"), "version"),
        (("spec", "ref", "digest"), "digest"),
        (("spec", "sourceRef", "name"), "source"),
        (("spec", "chart", "spec", "version"), "chart version"),
    ):
        was, now = get(old.data, *way), get(new.data, *way)
        if was != now:
            yield "notice", f"syncs from {label} {value(now)} instead of {value(was)}"


def sync_target(case: Case) -> Iterator[Finding]:
    """The destination changed."""
    old, new = case.pair
    for way, label in (
        (("spec", "destination", "server"), "cluster"),
        (("spec", "destination", "name"), "cluster"),
        (("spec", "destination", "namespace"), "namespace"),
        (("spec", "targetNamespace"), "namespace"),
    ):
        was, now = get(old.data, *way), get(new.data, *way)
        if was != now:
            yield (
                "danger",
                (
                    f"deploys to {label} {value(now)} instead of {value(was)}: everything is created again there"
                ),
            )


def sync_policy(case: Case) -> Iterator[Finding]:
    """Automatic sync, pruning or self-healing changed."""
    old, new = case.pair
    if _prunes(old) != _prunes(new):
        yield (
            "notice",
            (
                "prune on: objects removed from Git are now deleted from the cluster"
                if _prunes(new)
                else "prune off: objects removed from Git now stay in the cluster"
            ),
        )
    automated = ("spec", "syncPolicy", "automated")
    automatic = get(new.data, *automated) is not ABSENT
    if automatic != (get(old.data, *automated) is not ABSENT):
        yield "notice", f"now syncs {'automatically' if automatic else 'only manually'}"
    if get(old.data, *automated, "selfHeal") is not get(new.data, *automated, "selfHeal"):
        heals = get(new.data, *automated, "selfHeal") is True
        yield (
            "notice",
            f"manual changes are now {'reverted' if heals else 'kept'} (selfHeal)",
        )
    if get(old.data, "spec", "suspend") != get(new.data, "spec", "suspend"):
        suspended = get(new.data, "spec", "suspend") is True
        yield (
            "notice",
            (
                "suspended: changes in Git are not applied"
                if suspended
                else "resumed: changes in Git are applied again"
            ),
        )
    if any(under(change, "spec", "values") for change in case.fields):
        yield "notice", "runs helm upgrade with the new values"


def _prunes(obj: Obj) -> bool:
    return True in (
        get(obj.data, "spec", "prune"),
        get(obj.data, "spec", "syncPolicy", "automated", "prune"),
    )


def project(case: Case) -> Iterator[Finding]:
    """The permissions of an Argo CD project changed."""
    before, after = _permissions(case.old), _permissions(case.new)
    more = [label for label in after if label not in before]
    less = [label for label in before if label not in after]
    if more and case.old is not None:
        yield "danger", f"project allows more: {listing(more, 5)}"
    elif more:
        yield "notice", f"project allows: {listing(more, 5)}"
    if less and case.new is not None:
        yield "notice", f"project no longer allows: {listing(less, 5)}"


def _permissions(obj: Obj | None) -> list[str]:
    if obj is None:
        return []
    spec = get_map(obj.data, "spec")
    found = [f"source {value(repo)}" for repo in get_list(spec, "sourceRepos")]
    for target in get_list(spec, "destinations"):
        cluster = get_text(target, "server") or get_text(target, "name")
        found.append(f"namespace {get_text(target, 'namespace') or '*'} on {cluster or '*'}")
    for field, label in (
        ("clusterResourceWhitelist", "cluster-wide"),
        ("namespaceResourceWhitelist", "in namespaces"),
    ):
        for item in get_list(spec, field):
            found.append(f"{get_text(item, 'kind')}.{get_text(item, 'group')} {label}".replace(". ", " "))
    return list(dict.fromkeys(found))
