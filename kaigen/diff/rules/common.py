"""Rules for objects of every kind: what becomes of the object as such, and what cannot change in place."""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

from kaigen.core.json_types import Json, JsonObject
from kaigen.diff.formatting import listing, value
from kaigen.diff.model import ABSENT, Absent
from kaigen.diff.objects import Obj, get, get_map, get_text
from kaigen.diff.pairing import diff_fields
from kaigen.diff.rules.case import Case, Finding, is_forced, under
from kaigen.diff.rules.storage import keepers
from kaigen.kubernetes.kind_table import KINDS
from kaigen.kubernetes.manifest import Object
from kaigen.system.lazy_import import lazy_imports

with lazy_imports():
    from kaigen.check import custom_rules

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


TYPES = frozenset(row.type for row in KINDS.values() if row.immutable) | {"ConfigMap", "Service"}

# Fields that the scheduler and Kueue may still set on the template of a suspended run.
_SUSPENDED = frozenset(
    {"nodeSelector", "tolerations", "schedulingGates", "annotations", "labels", "nodeAffinity", "resources"}
)


def immutable(case: Case) -> Iterator[Finding]:
    """Immutable fields changed."""
    old, new = case.pair
    found = list(_changed(old, new))
    if not found:
        return
    names = listing(found, 4)
    if is_forced(new):
        loss = ", and its data is lost" if new.type == "PersistentVolumeClaim" else ""
        yield (
            ("danger" if loss else "notice"),
            (f"is deleted and created again: {names} cannot change in place, and force is set{loss}"),
        )
        return
    cure = {
        "PersistentVolumeClaim": f"delete {new} first, which loses its data, or use another name",
        "Job.batch": "rename the Job, which starts a new run, or delete it first",
    }.get(new.type, f"delete {new} first or use another name")
    yield "danger", f"will be rejected: {names} {'is' if len(found) == 1 else 'are'} immutable; {cure}"


def custom_rule(case: Case) -> Iterator[Finding]:
    """A change that a rule of the custom kind does not allow, unless the fields themselves say so."""
    old, new = case.pair
    if any(_changed(old, new)):
        return
    for problem in custom_rules.custom_findings(cast(Object, new.data), cast(Object, old.data)):
        yield "danger", f"will be rejected: {problem.where}: {problem.message}; delete {new} first or use another name"


def _changed(old: Obj, new: Obj) -> Iterator[str]:
    row = KINDS.get(new.type)
    for rule in row.immutable if row else ():
        if rule.path == "spec.completions" and _indexed_together(new):
            continue
        keys = rule.path.split(".")
        was, now = get(old.data, *keys), get(new.data, *keys)
        if rule.mutable:
            yield from _changed_keys(rule.path, get_map(was), get_map(now), rule.mutable)
            continue
        if rule.once and was is ABSENT:
            continue
        default: Json | Absent = ABSENT if rule.default is None else rule.default
        was, now = (default if side is ABSENT else side for side in (was, now))
        if was != now and not _allowed_while_suspended(old, rule.path, was, now):
            yield rule.path
    if new.type == "Service":
        yield from _service(old, new)
    if get(old.data, "immutable") is True and new.type in ("ConfigMap", "Secret"):
        for field in ("data", "binaryData", "stringData", "immutable"):
            if get(old.data, field) != get(new.data, field):
                yield f"{field} (immutable: true)"


def _changed_keys(field: str, was: JsonObject, now: JsonObject, allowed: tuple[str, ...]) -> Iterator[str]:
    for key in sorted((was.keys() | now.keys()) - set(allowed)):
        if was.get(key) != now.get(key):
            yield f"{field}.{key}"


def _indexed_together(job: Obj) -> bool:
    """Return whether a Job is Indexed; its completions may change together with its parallelism."""
    spec = get_map(job.data, "spec")
    return spec.get("completionMode") == "Indexed" and spec.get("completions") == spec.get("parallelism", 1)


def _allowed_while_suspended(old: Obj, field: str, was: Json | Absent, now: Json | Absent) -> bool:
    if field not in ("spec.template", "spec.replicatedJobs") or get(old.data, "spec", "suspend") is not True:
        return False
    if isinstance(was, Absent) or isinstance(now, Absent):
        return False
    return all(_SUSPENDED & set(change.keys) for change in diff_fields(was, now))


def _service(old: Obj, new: Obj) -> Iterator[str]:
    """Yield changed address fields of a Service, which are immutable unless its type is ExternalName."""
    before, after = get_map(old.data, "spec"), get_map(new.data, "spec")
    if "ExternalName" in (before.get("type"), after.get("type")):
        return
    was, now = before.get("clusterIP"), after.get("clusterIP")
    # Removing the field keeps the address, so only another value is rejected.
    if now and was != now:
        yield "spec.clusterIP" + (" (the cluster assigned an address)" if not was else "")
    kind = before.get("type"), after.get("type")
    if kind == ("LoadBalancer", "LoadBalancer") and before.get("loadBalancerClass") != after.get("loadBalancerClass"):
        yield "spec.loadBalancerClass"


def silently_kept(case: Case) -> Iterator[Finding]:
    """The API server accepts the change of a field but ignores it, or may reject it."""
    old, new = case.pair
    if new.type == "Service":
        was = get(old.data, "spec", "clusterIP")
        if was is not ABSENT and was != "" and get(new.data, "spec", "clusterIP") in (ABSENT, ""):
            yield (
                "notice",
                f"clusterIP stays {value(was)}: removing the field changes nothing; delete {new} to get another "
                "address",
            )
    if new.type == "PersistentVolumeClaim":
        for field in ("storageClassName", "volumeName"):
            now = get(new.data, "spec", field)
            if get(old.data, "spec", field) is ABSENT and now is not ABSENT:
                yield (
                    "notice",
                    f"is rejected unless the claim already has {field} {value(now)} or has none: the "
                    "cluster may have set it",
                )
