"""Rules for objects of every kind."""

from __future__ import annotations

from collections.abc import Iterator

from kaigen.diff.objects import Obj, get_text
from kaigen.diff.rules.case import Case, Finding, under
from kaigen.diff.rules.storage import keepers
from kaigen.kubernetes.kind_table import KINDS

_WAVE = "argocd.argoproj.io/sync-wave"


def moved(case: Case) -> Iterator[Finding]:
    """The namespace changed: Kubernetes cannot move objects."""
    old, new = case.pair
    if old.namespace != new.namespace:
        was, now = old.namespace or "no namespace", new.namespace or "no namespace"
        yield "notice", f"moved: deleted in {was}, created in {now}"


def passed_on(case: Case) -> Iterator[Finding]:
    """Another app owns the object now."""
    if case.passed_from:
        row = KINDS.get(case.obj.type)
        loss = " with its data" if row is not None and row.data == "deleted" else ""
        yield (
            ("danger" if loss else "notice"),
            f"moves here from app {case.passed_from}: if that one is pruned first, it is deleted{loss} "
            "and created again",
        )


def renamed(case: Case) -> Iterator[Finding]:
    """The object was renamed, and no other rule applies."""
    old, new = case.pair
    if old.name != new.name:
        yield "notice", f"{old} is deleted, {new} is created"


def api_version(case: Case) -> Iterator[Finding]:
    """The API version changed."""
    old, new = case.pair
    if old.api_version != new.api_version:
        yield (
            "info",
            f"API version {new.api_version} instead of {old.api_version}: the same object if the cluster serves both",
        )


def metadata_only(case: Case) -> Iterator[Finding]:
    """Only labels and annotations changed."""
    if case.fields and all(under(change, "metadata") for change in case.fields):
        yield "info", "metadata only, nothing restarts"


def sync_wave(case: Case) -> Iterator[Finding]:
    """The sync wave changed."""
    old, new = case.pair
    was, now = (get_text(side.annotations, _WAVE) or "0" for side in (old, new))
    if was != now:
        yield "info", f"Argo CD syncs it in wave {now} instead of {was}"


def namespace_removed(case: Case) -> Iterator[Finding]:
    """A namespace was removed, with everything in it."""
    if keepers(case.obj):
        yield "notice", "the namespace is kept (no longer managed)"
    else:
        yield ("danger", "the namespace is deleted with everything in it, including objects that are not in Git")


def definition_removed(case: Case) -> Iterator[Finding]:
    """A CustomResourceDefinition was removed, with all objects of its kind."""
    kind = get_text(case.obj.data, "spec", "names", "kind") or case.obj.name
    yield "danger", f"every {kind} in the cluster is deleted with it"


def updated(case: Case) -> Iterator[Finding]:
    """No other rule applies."""
    follows = "; its controller decides what happens next" if _is_custom(case.obj) else ""
    yield "info", f"updated in place{follows}"


def created(case: Case) -> Iterator[Finding]:
    """No other rule applies."""
    yield "info", "is created"


def deleted(case: Case) -> Iterator[Finding]:
    """No other rule applies."""
    yield "info", "is deleted"


def _is_custom(obj: Obj) -> bool:
    """Whether its group is not one of Kubernetes' own."""
    group = obj.type.partition(".")[2]
    return "." in group and (not group.endswith(".k8s.io") or group.endswith(".x-k8s.io"))
