"""Fields that the API server, or a kind's own webhook, lets nobody change in place.

The table follows Kubernetes v1.36's validation of updates (`pkg/apis/*/validation`), the CEL rules in the
custom resources' own schemas, and the webhooks of LeaderWorkerSet and JobSet.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from kaigen.diff.fields import diff_fields
from kaigen.diff.formatting import listing, value
from kaigen.diff.model import ABSENT, Absent, Json
from kaigen.diff.objects import JsonMap, Obj, get, get_map
from kaigen.diff.rules.case import Case, Finding, is_forced


@dataclass(frozen=True, slots=True)
class Immutable:
    """A field that stays as it was made.

    Attributes:
        field: dotted way to it.
        default: what the server takes when it is left out.
        other_than: when given, everything in the map is immutable but these keys.
        once: it may be set where it was not.
    """

    field: str
    default: Json | Absent = ABSENT
    other_than: tuple[str, ...] = ()
    once: bool = False


_TABLE: dict[str, tuple[Immutable, ...]] = {
    "Job.batch": (
        Immutable("spec.template"),
        Immutable("spec.selector"),
        Immutable("spec.completionMode", "NonIndexed"),
        Immutable("spec.podFailurePolicy"),
        Immutable("spec.successPolicy"),
        Immutable("spec.backoffLimitPerIndex"),
        Immutable("spec.managedBy"),
        Immutable("spec.completions"),
    ),
    "Deployment.apps": (Immutable("spec.selector"),),
    "DaemonSet.apps": (Immutable("spec.selector"),),
    "ReplicaSet.apps": (Immutable("spec.selector"),),
    "StatefulSet.apps": (
        Immutable("spec.podManagementPolicy", "OrderedReady"),
        Immutable(
            "spec",
            other_than=(
                "minReadySeconds",
                "ordinals",
                "persistentVolumeClaimRetentionPolicy",
                "podManagementPolicy",
                "replicas",
                "revisionHistoryLimit",
                "template",
                "updateStrategy",
            ),
        ),
    ),
    "PersistentVolumeClaim": (
        Immutable("spec.volumeMode", "Filesystem"),
        Immutable("spec.volumeName", once=True),
        Immutable("spec.storageClassName", once=True),
        Immutable("spec.accessModes"),
        Immutable("spec.selector"),
        Immutable("spec.dataSource"),
        Immutable("spec.dataSourceRef"),
    ),
    "PersistentVolume": (
        Immutable("spec.volumeMode", "Filesystem"),
        Immutable("spec.nodeAffinity", once=True),
        Immutable(
            "spec",
            other_than=(
                "accessModes",
                "capacity",
                "claimRef",
                "mountOptions",
                "nodeAffinity",
                "persistentVolumeReclaimPolicy",
                "storageClassName",
                "volumeAttributesClassName",
                "volumeMode",
            ),
        ),
    ),
    "StorageClass.storage.k8s.io": (
        Immutable("provisioner"),
        Immutable("parameters"),
        Immutable("reclaimPolicy", "Delete"),
        Immutable("volumeBindingMode", "Immediate"),
    ),
    "RoleBinding.rbac.authorization.k8s.io": (Immutable("roleRef"),),
    "ClusterRoleBinding.rbac.authorization.k8s.io": (Immutable("roleRef"),),
    "Secret": (Immutable("type", "Opaque"),),
    "PriorityClass.scheduling.k8s.io": (
        Immutable("value", 0),
        Immutable("preemptionPolicy", "PreemptLowerPriority"),
    ),
    "RuntimeClass.node.k8s.io": (Immutable("handler"),),
    "IngressClass.networking.k8s.io": (Immutable("spec.controller"),),
    "ResourceClaim.resource.k8s.io": (Immutable("spec"),),
    "ResourceClaimTemplate.resource.k8s.io": (Immutable("spec"),),
    "GatewayClass.gateway.networking.k8s.io": (Immutable("spec.controllerName"),),
    "LeaderWorkerSet.leaderworkerset.x-k8s.io": (
        Immutable("spec.leaderWorkerTemplate.subGroupPolicy.subGroupSize"),
    ),
    "JobSet.jobset.x-k8s.io": (
        Immutable("spec.replicatedJobs"),
        Immutable("spec.failurePolicy", once=True),
        Immutable("spec.successPolicy", once=True),
        Immutable("spec.startupPolicy", once=True),
        Immutable("spec.network", once=True),
        Immutable("spec.managedBy"),
    ),
    "LocalQueue.kueue.x-k8s.io": (Immutable("spec.clusterQueue"),),
    "ResourceFlavor.kueue.x-k8s.io": (Immutable("spec.topologyName", once=True),),
    "NodePool.karpenter.sh": (
        Immutable("spec.template.spec.nodeClassRef.group"),
        Immutable("spec.template.spec.nodeClassRef.kind"),
    ),
    "NodeClaim.karpenter.sh": (Immutable("spec"),),
    "RayCluster.ray.io": (
        Immutable("spec.managedBy"),
        Immutable("spec.gcsFaultToleranceOptions.backend", once=True),
    ),
    "RayService.ray.io": (Immutable("spec.managedBy"),),
}

TYPES = frozenset(_TABLE) | {"ConfigMap", "Service"}

# What the scheduler and Kueue may still set on the template of a suspended run.
_SUSPENDED = frozenset(
    {"nodeSelector", "tolerations", "schedulingGates", "annotations", "labels", "nodeAffinity", "resources"}
)


def immutable(case: Case) -> Iterator[Finding]:
    """Every immutable field that differs, in one sentence."""
    old, new = case.pair
    found = list(_changed(old, new))
    if not found:
        return
    names = listing(found, 4)
    if is_forced(new):
        loss = ", and its data is lost" if new.type == "PersistentVolumeClaim" else ""
        yield (
            ("danger" if loss else "notice"),
            (f"is deleted and created anew: {names} cannot change in place, and it is forced{loss}"),
        )
        return
    cure = {
        "PersistentVolumeClaim": f"delete {new} first, which loses its data, or use another name",
        "Job.batch": "give the Job another name, which makes a new run, or delete it first",
    }.get(new.type, f"delete {new} first or use another name")
    yield "danger", f"would be refused: {names} {'is' if len(found) == 1 else 'are'} immutable; {cure}"


def _changed(old: Obj, new: Obj) -> Iterator[str]:
    if new.type == "Job.batch" and _indexed_together(new):
        rules: tuple[Immutable, ...] = tuple(
            rule for rule in _TABLE[new.type] if rule.field != "spec.completions"
        )
    else:
        rules = _TABLE.get(new.type, ())
    for rule in rules:
        keys = rule.field.split(".")
        was, now = get(old.data, *keys), get(new.data, *keys)
        if rule.other_than:
            yield from _changed_keys(rule.field, get_map(was), get_map(now), rule.other_than)
            continue
        if rule.once and was is ABSENT:
            continue
        was, now = (rule.default if side is ABSENT else side for side in (was, now))
        if was != now and not _allowed_while_suspended(old, rule.field, was, now):
            yield rule.field
    if new.type == "Service":
        yield from _service(old, new)
    if get(old.data, "immutable") is True and new.type in ("ConfigMap", "Secret"):
        for field in ("data", "binaryData", "stringData", "immutable"):
            if get(old.data, field) != get(new.data, field):
                yield f"{field} (immutable: true)"


def _changed_keys(field: str, was: JsonMap, now: JsonMap, allowed: tuple[str, ...]) -> Iterator[str]:
    for key in sorted((was.keys() | now.keys()) - set(allowed)):
        if was.get(key) != now.get(key):
            yield f"{field}.{key}"


def _indexed_together(job: Obj) -> bool:
    """Completions of an Indexed Job may change, together with its parallelism."""
    spec = get_map(job.data, "spec")
    return spec.get("completionMode") == "Indexed" and spec.get("completions") == spec.get("parallelism", 1)


def _allowed_while_suspended(old: Obj, field: str, was: Json | Absent, now: Json | Absent) -> bool:
    if field not in ("spec.template", "spec.replicatedJobs") or get(old.data, "spec", "suspend") is not True:
        return False
    if isinstance(was, Absent) or isinstance(now, Absent):
        return False
    return all(_SUSPENDED & set(change.keys) for change in diff_fields(was, now))


def _service(old: Obj, new: Obj) -> Iterator[str]:
    """A Service's address: once given it stays, unless its type goes from or to ExternalName."""
    before, after = get_map(old.data, "spec"), get_map(new.data, "spec")
    if "ExternalName" in (before.get("type"), after.get("type")):
        return
    was, now = before.get("clusterIP"), after.get("clusterIP")
    # Leaving it out keeps what there is, so only another value is refused.
    if now and was != now:
        yield "spec.clusterIP" + (" (an address was given by the cluster)" if not was else "")
    kind = before.get("type"), after.get("type")
    if kind == ("LoadBalancer", "LoadBalancer") and before.get("loadBalancerClass") != after.get(
        "loadBalancerClass"
    ):
        yield "spec.loadBalancerClass"


def silently_kept(case: Case) -> Iterator[Finding]:
    """A field whose removal or late setting the server takes without doing what it says."""
    old, new = case.pair
    if new.type == "Service":
        was = get(old.data, "spec", "clusterIP")
        if was is not ABSENT and was != "" and get(new.data, "spec", "clusterIP") in (ABSENT, ""):
            yield (
                "notice",
                f"clusterIP stays {value(was)}: leaving it out changes nothing; delete {new} to get another",
            )
    if new.type == "PersistentVolumeClaim":
        for field in ("storageClassName", "volumeName"):
            now = get(new.data, "spec", field)
            if get(old.data, "spec", field) is ABSENT and now is not ABSENT:
                yield (
                    "notice",
                    f"is refused unless the claim already has {field} {value(now)} or none yet: the "
                    "cluster may have filled it in",
                )
