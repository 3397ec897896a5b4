"""Rules for the objects of Argo CD and Flux."""

from __future__ import annotations

from collections.abc import Iterator

from kaigen.diff.formatting import listing, value
from kaigen.diff.model import ABSENT
from kaigen.diff.objects import Obj, get, get_list, get_map, get_text
from kaigen.diff.rules.case import Case, Finding, under
from kaigen.diff.trees import is_own
from kaigen.kubernetes.kind_table import OWN_KINDS

APPLICATION = "Application.argoproj.io"
APPLICATION_SET = "ApplicationSet.argoproj.io"
PROJECT = "AppProject.argoproj.io"
KUSTOMIZATION = "Kustomization.kustomize.toolkit.fluxcd.io"
HELM_RELEASE = "HelmRelease.helm.toolkit.fluxcd.io"
SOURCES = frozenset(
    f"{kind}.source.toolkit.fluxcd.io" for kind in ("Bucket", "GitRepository", "HelmRepository", "OCIRepository")
)

_FINALIZER = "resources-finalizer.argocd.argoproj.io"


def syncer_removed(case: Case) -> Iterator[Finding]:
    """An Application, ApplicationSet, Kustomization or HelmRelease was removed."""
    obj = case.obj
    folder = _removed_app(case)
    if folder:
        yield "notice", f"the objects of {folder} are deleted, as they are shown there"
    elif obj.type == HELM_RELEASE:
        yield "danger", "the Helm release is uninstalled with all its objects, except those marked to keep"
    elif obj.type == APPLICATION_SET:
        if get(obj.data, "spec", "syncPolicy", "preserveResourcesOnDeletion") is True:
            yield "notice", "its Applications are deleted; their objects are kept (no longer managed)"
        else:
            yield ("danger", "its Applications are deleted with all their objects, except those marked to keep")
    elif _deletes_with(obj):
        yield "danger", "all its objects are deleted with it, except those marked to keep"
    else:
        yield "notice", "its objects are kept (no longer managed)"


def _removed_app(case: Case) -> str:
    """Return the folder that an object of kaigen's synced, if its files are removed too and so shown one by one."""
    if not is_own(case.obj):
        return ""
    for keys in (("spec", "source", "path"), ("spec", "path"), ("spec", "chart", "spec", "chart")):
        *_, namespace, app, form = ["", "", "", *get_text(case.obj.data, *keys).split("/")]
        inner = f"{namespace}/{app}"
        folder = f"{case.top}/{inner}" if case.top else inner
        if (
            form in ("manifests", "chart")
            and case.trees.has_folder("old", f"{folder}/manifests")
            and not case.trees.has_folder("new", folder)
        ):
            return inner
    return ""


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
                (f"deploys to {label} {value(now)} instead of {value(was)}: everything is created again there"),
            )


def verification(case: Case) -> Iterator[Finding]:
    """What is synced need no longer be signed, or by others."""
    old, new = case.pair
    fields = (("spec", "verify"), ("spec", "signatureKeys"), ("spec", "sourceIntegrity"))
    for keys in fields:
        was, now = get(old.data, *keys), get(new.data, *keys)
        if was not in (ABSENT, []) and was != now:
            instead = "nothing" if now in (ABSENT, []) else value(now)
            yield "danger", f"what is synced is verified with {instead} instead of {value(was)} ({keys[-1]})"


def sync_account(case: Case) -> Iterator[Finding]:
    """Argo CD or Flux applies as another account."""
    old, new = case.pair
    was, now = (get(side.data, "spec", "serviceAccountName") for side in (old, new))
    if was != now:
        who = "the account of the controller" if now is ABSENT else f"ServiceAccount {value(now)}"
        before = "the account of the controller" if was is ABSENT else f"ServiceAccount {value(was)}"
        yield "danger", f"applies as {who} instead of {before}"


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
        yield ("notice", f"manual changes are now {'reverted' if heals else 'kept'} (selfHeal)")
    if get(old.data, "spec", "suspend") != get(new.data, "spec", "suspend"):
        suspended = get(new.data, "spec", "suspend") is True
        yield (
            "notice",
            ("suspended: changes in Git are not applied" if suspended else "resumed: changes in Git are applied again"),
        )
    if any(under(change, "spec", "values") for change in case.fields):
        yield "notice", "runs helm upgrade with the new values"


def _prunes(obj: Obj) -> bool:
    return True in (get(obj.data, "spec", "prune"), get(obj.data, "spec", "syncPolicy", "automated", "prune"))


def project(case: Case) -> Iterator[Finding]:
    """The permissions of an Argo CD project changed."""
    before, after = _permissions(case.old), _permissions(case.new)
    more = [label for label in after if label not in before]
    less = [label for label in before if label not in after]
    grave = [label for label in more if not _is_own_permission(label, case)]
    start = "project allows more" if case.old is not None else "project allows"
    if grave:
        yield "danger", f"{start}: {listing(grave, 5)}"
    plain = [label for label in more if label not in grave]
    if plain:
        yield "notice", f"{start}{' also' if grave else ''}: {listing(plain, 5)}"
    if less and case.new is not None:
        yield "notice", f"project no longer allows: {listing(less, 5)}"


_OWN_LABELS = frozenset(f"{kind}.{group} in namespaces".replace(". ", " ") for group, kind in OWN_KINDS)


def _is_own_permission(label: str, case: Case) -> bool:
    """Return whether a project of kaigen's may have a permission.

    That is a kind that kaigen creates, a namespace of the tree, a source or an account that another project had, or the
    PersistentVolumes and the Namespace of that namespace, which are judged themselves.
    """
    if not is_own(case.obj):
        return False
    others, usual, ends = case.trees.once(("projects", case.top), lambda: _old_permissions(case))
    if label in _OWN_LABELS or label in others:
        return True
    if label in ("PersistentVolume cluster-wide", "Namespace cluster-wide"):
        return True
    if not label.startswith(("namespace ", "applies as ")):
        return not others and label.startswith("source ") and case.trees.config(case.obj.path).gitops is not None
    words = label.split()
    place = words[1] if words[0] == "namespace" else words[-3]
    folder = f"{case.top}/{place}" if case.top else place
    start, end = label.split(f" {place} ", 1) if f" {place} " in label else (label, "")
    return (
        case.trees.has_folder("new", folder)
        and start.partition(" ")[0] in (usual or {start})
        and end.removeprefix("on ") in (ends or {end.removeprefix("on ")})
    )


def _old_permissions(case: Case) -> tuple[set[str], set[str], set[str]]:
    """Return the permissions of kaigen's projects in the old tree, their first words, and their clusters."""
    projects = [obj for obj in case.trees.of_kind("old", "AppProject", case.top) if is_own(obj)]
    found = {each for obj in projects for each in _permissions(obj)}
    return found, {each.partition(" ")[0] for each in found}, {each.rpartition(" on ")[2] for each in found}


def _permissions(obj: Obj | None) -> list[str]:
    if obj is None:
        return []
    spec = get_map(obj.data, "spec")
    found = [f"source {value(repo)}" for repo in get_list(spec, "sourceRepos")]
    for target in get_list(spec, "destinations"):
        cluster = get_text(target, "server") or get_text(target, "name")
        found.append(f"namespace {get_text(target, 'namespace') or '*'} on {cluster or '*'}")
    for account in get_list(spec, "destinationServiceAccounts"):
        who = get_text(account, "defaultServiceAccount")
        place = get_text(account, "namespace") or "*"
        found.append(f"applies as {who} in namespace {place} on {get_text(account, 'server') or '*'}")
    for field, label in (("clusterResourceWhitelist", "cluster-wide"), ("namespaceResourceWhitelist", "in namespaces")):
        for item in get_list(spec, field):
            found.append(f"{get_text(item, 'kind')}.{get_text(item, 'group')} {label}".replace(". ", " "))
    return list(dict.fromkeys(found))
