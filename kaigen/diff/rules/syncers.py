"""What Argo CD and Flux are told to sync, and what goes when they are told no longer."""

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
    """An Application, Kustomization or HelmRelease that is gone."""
    obj = case.obj
    if obj.type == HELM_RELEASE:
        yield "danger", "the Helm release is uninstalled with all it made, except what is marked to keep"
    elif obj.type == APPLICATION_SET:
        if get(obj.data, "spec", "syncPolicy", "preserveResourcesOnDeletion") is True:
            yield "notice", "its Applications are deleted; what they deployed is kept (unmanaged from now on)"
        else:
            yield (
                "danger",
                "its Applications are deleted with all they deployed, except what is marked to keep",
            )
    elif _deletes_with(obj):
        yield "danger", "all that it deployed is deleted with it, except what is marked to keep"
    else:
        yield "notice", "what it deployed is kept (unmanaged from now on)"


def _deletes_with(obj: Obj) -> bool:
    if obj.type == KUSTOMIZATION:
        policy = get_text(obj.data, "spec", "deletionPolicy") or "MirrorPrune"
        if policy == "MirrorPrune":
            return get(obj.data, "spec", "prune") is True
        return policy != "Orphan"
    finalizers = [str(item) for item in get_list(obj.data, "metadata", "finalizers")]
    return any(item.partition("/")[0] == _FINALIZER for item in finalizers)


def sync_source(case: Case) -> Iterator[Finding]:
    """From where it syncs."""
    old, new = case.pair
    for way, words in (
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
            yield "notice", f"syncs from {words} {value(now)} instead of {value(was)}"


def sync_target(case: Case) -> Iterator[Finding]:
    """Where it syncs to."""
    old, new = case.pair
    for way, words in (
        (("spec", "destination", "server"), "cluster"),
        (("spec", "destination", "name"), "cluster"),
        (("spec", "destination", "namespace"), "namespace"),
        (("spec", "targetNamespace"), "namespace"),
    ):
        was, now = get(old.data, *way), get(new.data, *way)
        if was != now:
            yield (
                "danger",
                (f"deploys to {words} {value(now)} instead of {value(was)}: made anew there"),
            )


def sync_policy(case: Case) -> Iterator[Finding]:
    """Whether it syncs by itself, and whether it deletes."""
    old, new = case.pair
    if _prunes(old) != _prunes(new):
        yield (
            "notice",
            (
                "prune: what leaves Git is deleted from the cluster from now on"
                if _prunes(new)
                else "no prune: what leaves Git stays in the cluster from now on"
            ),
        )
    automated = ("spec", "syncPolicy", "automated")
    by_itself = get(new.data, *automated) is not ABSENT
    if by_itself != (get(old.data, *automated) is not ABSENT):
        yield "notice", f"syncs {'by itself' if by_itself else 'only when asked'} from now on"
    if get(old.data, *automated, "selfHeal") is not get(new.data, *automated, "selfHeal"):
        heals = get(new.data, *automated, "selfHeal") is True
        yield (
            "notice",
            f"changes made by hand are {'undone' if heals else 'left alone'} from now on (selfHeal)",
        )
    if get(old.data, "spec", "suspend") != get(new.data, "spec", "suspend"):
        suspended = get(new.data, "spec", "suspend") is True
        yield (
            "notice",
            (
                "suspended: Git and cluster go apart"
                if suspended
                else "resumed: the cluster follows Git again"
            ),
        )
    if any(under(change, "spec", "values") for change in case.fields):
        yield "notice", "a helm upgrade with other values runs"


def _prunes(obj: Obj) -> bool:
    return True in (
        get(obj.data, "spec", "prune"),
        get(obj.data, "spec", "syncPolicy", "automated", "prune"),
    )


def project(case: Case) -> Iterator[Finding]:
    """What an Argo CD project lets its Applications do."""
    before, after = _permissions(case.old), _permissions(case.new)
    more = [words for words in after if words not in before]
    less = [words for words in before if words not in after]
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
    for field, words in (
        ("clusterResourceWhitelist", "cluster-wide"),
        ("namespaceResourceWhitelist", "in namespaces"),
    ):
        for item in get_list(spec, field):
            found.append(f"{get_text(item, 'kind')}.{get_text(item, 'group')} {words}".replace(". ", " "))
    return list(dict.fromkeys(found))
