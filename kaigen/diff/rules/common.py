"""What holds for objects of every kind."""

from __future__ import annotations

from collections.abc import Iterator

from kaigen.diff.objects import Obj, get_text
from kaigen.diff.rules.case import Case, Finding, under
from kaigen.kubernetes.kind_table import KINDS

_WAVE = "argocd.argoproj.io/sync-wave"


def moved(case: Case) -> Iterator[Finding]:
    """Another namespace: Kubernetes moves nothing."""
    old, new = case.pair
    if old.namespace != new.namespace:
        was, now = old.namespace or "no namespace", new.namespace or "no namespace"
        yield "notice", f"moved: deleted in {was}, created in {now}"


def passed_on(case: Case) -> Iterator[Finding]:
    """The same object in the hands of another app."""
    if case.passed_from:
        row = KINDS.get(case.obj.type)
        loss = " with its data" if row is not None and row.data == "deleted" else ""
        yield (
            ("danger" if loss else "notice"),
            f"passes here from app {case.passed_from}: if that one is pruned first, it is deleted{loss} "
            "and made anew",
        )


def renamed(case: Case) -> Iterator[Finding]:
    """Another name of an object that nothing more special is said about."""
    old, new = case.pair
    if old.name != new.name:
        yield "notice", f"{old} is deleted, {new} is created"


def api_version(case: Case) -> Iterator[Finding]:
    """Another version of the same API."""
    old, new = case.pair
    if old.api_version != new.api_version:
        yield (
            "info",
            f"written in {new.api_version} instead of {old.api_version}: the same object if the cluster "
            "serves both",
        )


def metadata_only(case: Case) -> Iterator[Finding]:
    """Labels and annotations alone."""
    if case.fields and all(under(change, "metadata") for change in case.fields):
        yield "info", "metadata only, nothing restarts"


def sync_wave(case: Case) -> Iterator[Finding]:
    """Another place in Argo CD's order."""
    old, new = case.pair
    was, now = (get_text(side.annotations, _WAVE) or "0" for side in (old, new))
    if was != now:
        yield "info", f"Argo CD syncs it in wave {now} instead of {was}"


def namespace_removed(case: Case) -> Iterator[Finding]:
    """A namespace that is gone, with everything in it."""
    from kaigen.diff.rules.storage import keepers

    if keepers(case.obj):
        yield "notice", "the namespace is kept (unmanaged from now on)"
    else:
        yield "danger", "the namespace is deleted with everything in it, also what Git does not know"


def definition_removed(case: Case) -> Iterator[Finding]:
    """A CustomResourceDefinition that is gone, with all objects of its kind."""
    kind = get_text(case.obj.data, "spec", "names", "kind") or case.obj.name
    yield "danger", f"every {kind} of the cluster is deleted with it"


def updated(case: Case) -> Iterator[Finding]:
    """Nothing more special is known."""
    follows = "; what follows is up to its controller" if _is_custom(case.obj) else ""
    yield "info", f"updated in place{follows}"


def created(case: Case) -> Iterator[Finding]:
    """Nothing more special is known."""
    yield "info", "is created"


def deleted(case: Case) -> Iterator[Finding]:
    """Nothing more special is known."""
    yield "info", "is deleted"


def _is_custom(obj: Obj) -> bool:
    """Whether its group is not one of Kubernetes' own."""
    group = obj.type.partition(".")[2]
    return "." in group and (not group.endswith(".k8s.io") or group.endswith(".x-k8s.io"))
