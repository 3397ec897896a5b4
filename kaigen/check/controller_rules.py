"""Rules between the fields of custom kinds that the webhooks of their controllers enforce and no schema contains.

Sources, by the name of the function in them: `pkg/webhooks` of sigs.k8s.io/lws v0.9.0 and sigs.k8s.io/jobset v0.12.0,
`pkg/webhooks` and `pkg/controller/jobframework` of sigs.k8s.io/kueue v0.16.2 and v0.19.2, and `apis/keda/v1alpha1` of
github.com/kedacore/keda/v2 v2.21.0. `tests/cluster/test_webhooks.py` asks the webhooks.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping

from msgspec.structs import replace

from kaigen.check import codes, forms
from kaigen.check.names import label_findings
from kaigen.check.ray_rules import ray_job_findings
from kaigen.core.json_types import FieldPath
from kaigen.core.text import describe
from kaigen.diagnostics.problem import Problem
from kaigen.kubernetes.manifest import Object, entries, mapping
from kaigen.kubernetes.names import LABEL_1123, SUBDOMAIN, is_qualified
from kaigen.kubernetes.pods import pod_templates
from kaigen.kubernetes.quantities import nano
from kaigen.kubernetes.queues import POD_ANNOTATIONS, QUEUE_LABEL, RUN_SECONDS_LABEL
from kaigen.kubernetes.runs import job_set_spec

Findings = Iterator[Problem]
_MOST_PODS = 2**31 - 1


def _conflict(message: str, path: FieldPath, hint: str = "") -> Problem:
    return Problem(codes.FIELD_CONFLICT, message, path, hint)


def _bad(message: str, path: FieldPath, hint: str = "") -> Problem:
    return Problem(codes.BAD_VALUE, message, path, hint)


def _count(body: Object, field: str, default: int | None = None) -> int | None:
    """Return a count; the default where it is not set, and None for a value of another type."""
    value = body.get(field)
    return default if value is None else value if isinstance(value, int) and not isinstance(value, bool) else None


# LeaderWorkerSet

_PERCENT = re.compile(r"[0-9]+%")


def _share(value: object, whole: int, *, up: bool) -> int | None:
    """Return a count of pods, which may be given in percent of all; None for anything else."""
    if isinstance(value, int):
        return value
    if not isinstance(value, str) or not _PERCENT.fullmatch(value):
        return None
    amount = int(value[:-1]) * whole
    return -(-amount // 100) if up else amount // 100


def leader_worker_set_findings(obj: Object) -> Findings:
    """Follow `generalValidate` of LeaderWorkerSet."""
    spec = mapping(obj.get("spec"))
    template = mapping(spec.get("leaderWorkerTemplate"))
    replicas, size = _count(spec, "replicas", 1), _count(template, "size", 1)
    place: FieldPath = ("spec", "leaderWorkerTemplate")
    if size is not None and size < 1:
        yield Problem(codes.OUT_OF_RANGE, f"must be at least 1, not {size}", (*place, "size"))
    if replicas is not None and size is not None and replicas * size > _MOST_PODS:
        yield Problem(codes.OUT_OF_RANGE, f"{replicas} groups of {size} pods are more than 2^31", ("spec", "replicas"))
    yield from _rolling_update(mapping(spec.get("rolloutStrategy")), replicas)
    yield from _sub_groups(template, size)
    notes = mapping(mapping(obj.get("metadata")).get("annotations"))
    if _SUB_GROUP_TOPOLOGY in notes and template.get("subGroupPolicy") is None:
        path = ("metadata", "annotations", _SUB_GROUP_TOPOLOGY)
        yield _conflict("needs spec.leaderWorkerTemplate.subGroupPolicy", path)


_SUB_GROUP_TOPOLOGY = "leaderworkerset.sigs.k8s.io/subgroup-exclusive-topology"


def _rolling_update(strategy: Object, replicas: int | None) -> Findings:
    rolling = mapping(strategy.get("rollingUpdateConfiguration"))
    path: FieldPath = ("spec", "rolloutStrategy", "rollingUpdateConfiguration")
    for field in ("maxUnavailable", "maxSurge", "partition"):
        value = rolling.get(field)
        if isinstance(value, int) and value < 0:
            yield Problem(codes.OUT_OF_RANGE, f"must be at least 0, not {value}", (*path, field))
        elif field != "partition" and isinstance(value, str):
            if not _PERCENT.fullmatch(value):
                yield _bad(f"must be a number or a percentage, not `{value}`", (*path, field))
            elif int(value[:-1]) > 100:
                yield Problem(codes.OUT_OF_RANGE, "must not be more than 100%", (*path, field))
    unavailable, surge = (rolling.get(field) for field in ("maxUnavailable", "maxSurge"))
    fewer = _share(1 if unavailable is None else unavailable, replicas or 0, up=False)
    more = _share(0 if surge is None else surge, replicas or 0, up=True)
    if replicas and fewer == 0 and more == 0:
        yield _conflict("`maxSurge` and `maxUnavailable` must not both be 0 groups", path)


def _sub_groups(template: Object, size: int | None) -> Findings:
    """Follow `validateUpdateSubGroupPolicy`."""
    policy = mapping(template.get("subGroupPolicy"))
    part = _count(policy, "subGroupSize")
    if size is None or size < 1 or part is None:
        return
    path: FieldPath = ("spec", "leaderWorkerTemplate", "subGroupPolicy", "subGroupSize")
    if part < 1:
        yield Problem(codes.OUT_OF_RANGE, f"must be at least 1, not {part}", path)
    elif part > size:
        yield _conflict(f"subGroupSize {part} exceeds size {size}", path)
    elif policy.get("subGroupPolicyType") == "LeaderExcluded" and (size - 1) % part:
        yield _conflict(f"the {size - 1} workers of a group are not a multiple of {part}", path)
    elif size % part and (size - 1) % part:
        yield _conflict(f"neither size {size} nor its {size - 1} workers are a multiple of {part}", path)


# JobSet


def _label_1035(value: object, path: FieldPath) -> Findings:
    if isinstance(value, str) and (len(value) > 63 or not re.fullmatch(f"(?![0-9]){LABEL_1123}", value)):
        yield _bad(f"`{value}` is not a DNS label that starts with a letter", path)


def job_set_findings(obj: Object) -> Findings:
    """Follow `ValidateCreate` of JobSet."""
    spec = mapping(obj.get("spec"))
    yield from _label_1035(mapping(spec.get("network")).get("subdomain") or None, ("spec", "network", "subdomain"))
    yield from _managed_by(spec)
    names: dict[str, Object] = {}
    for number, replicated in entries(spec.get("replicatedJobs")):
        names[str(replicated.get("name"))] = replicated
        path: FieldPath = ("spec", "replicatedJobs", number)
        yield from _label_1035(replicated.get("groupName"), (*path, "groupName"))
        yield from _replicated_job(replicated, path)
        if number == 0 and replicated.get("dependsOn") is not None:
            yield _conflict("the first replicated Job cannot depend on another", (*path, "dependsOn"))
        for place, item in entries(replicated.get("dependsOn")):
            if str(item.get("name")) not in names:
                message = f"no replicated Job `{item.get('name')}` before this one"
                yield _bad(message, (*path, "dependsOn", place, "name"))
    yield from _targets(spec.get("successPolicy"), names, ("spec", "successPolicy"))
    yield from _failure_policy(mapping(spec.get("failurePolicy")), names)
    yield from _coordinator(mapping(spec.get("coordinator")), names)
    yield from _claim_policies(obj, [each for _, each in entries(spec.get("replicatedJobs"))])


def training_runtime_findings(obj: Object) -> Findings:
    """Follow `ValidateCreate` of JobSet for the JobSet of a TrainingRuntime."""
    spec, place = job_set_spec(obj)
    for problem in job_set_findings({"metadata": obj.get("metadata"), "spec": spec}):
        yield replace(problem, path=(*place, *problem.path[1:])) if problem.path[:1] == ("spec",) else problem


def _managed_by(spec: Object) -> Findings:
    manager = spec.get("managedBy")
    if isinstance(manager, str):
        prefix, slash, _ = manager.partition("/")
        if len(manager) > 63 or not slash or not re.fullmatch(SUBDOMAIN, prefix):
            yield _bad(f"`{manager}` is not a name such as example.com/controller", ("spec", "managedBy"))


def _replicated_job(replicated: Object, path: FieldPath) -> Findings:
    replicas = _count(replicated, "replicas", 1)
    parallelism = _count(mapping(mapping(replicated.get("template")).get("spec")), "parallelism", 1)
    if replicas is not None and parallelism is not None and replicas * parallelism > _MOST_PODS:
        message = f"{replicas} Jobs of {parallelism} pods are more than 2^31"
        yield Problem(codes.OUT_OF_RANGE, message, (*path, "replicas"))


def _targets(policy: object, names: Mapping[str, Object], path: FieldPath) -> Findings:
    targets = mapping(policy).get("targetReplicatedJobs")
    for number, name in enumerate(targets if isinstance(targets, list) else ()):
        if str(name) not in names:
            yield _bad(f"no replicated Job `{name}`", (*path, "targetReplicatedJobs", number))


_RULE_NAME = r"[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?"
_REASONS = (
    "BackoffLimitExceeded",
    "DeadlineExceeded",
    "FailedIndexes",
    "MaxFailedIndexesExceeded",
    "PodFailurePolicy",
)


def _failure_policy(policy: Object, names: Mapping[str, Object]) -> Findings:
    """Follow `validateFailurePolicy`."""
    seen: set[str] = set()
    path: FieldPath = ("spec", "failurePolicy")
    if policy.get("restartStrategy") == "InPlaceRestart":
        message = "InPlaceRestart needs the feature gate of the same name, which is off by default"
        yield _conflict(message, (*path, "restartStrategy"))
    for number, rule in entries(policy.get("rules")):
        place = (*path, "rules", number)
        name = rule.get("name") or f"failurePolicyRule{number}"
        if isinstance(name, str):
            if len(name) > 128 or not re.fullmatch(_RULE_NAME, name):
                yield _bad(f"`{name}` is not the name of a rule: letters, digits and `_`", (*place, "name"))
            if name in seen:
                yield Problem(codes.DUPLICATE_ENTRY, f"has the same name {name} as another rule", (*place, "name"))
            seen.add(name)
        yield from _targets(rule, names, place)
        if rule.get("action") in ("RestartJob", "RestartJobAndIgnoreMaxRestarts"):
            message = f"{rule['action']} needs the feature gate RestartJob, which is off by default"
            yield _conflict(message, (*place, "action"), "use RestartJobSet")
        reasons = rule.get("onJobFailureReasons")
        for item, reason in enumerate(reasons if isinstance(reasons, list) else ()):
            if reason not in _REASONS:
                message = f"must be one of {', '.join(_REASONS)}, not `{reason}`"
                yield _bad(message, (*place, "onJobFailureReasons", item))


def _coordinator(coordinator: Object, names: Mapping[str, Object]) -> Findings:
    """Follow `validateCoordinator`."""
    if not coordinator:
        return
    path: FieldPath = ("spec", "coordinator")
    replicated = names.get(str(coordinator.get("replicatedJob")))
    if replicated is None:
        yield _bad(f"no replicated Job `{coordinator.get('replicatedJob')}`", (*path, "replicatedJob"))
        return
    job = mapping(mapping(replicated.get("template")).get("spec"))
    if job.get("completionMode", "Indexed") != "Indexed" or job.get("completions") is None:
        yield _conflict("the Job of a coordinator must be Indexed and have completions", (*path, "replicatedJob"))
        return
    for field, least in (("jobIndex", _count(replicated, "replicas", 1)), ("podIndex", _count(job, "completions"))):
        index = _count(coordinator, field, 0)
        if index is not None and least is not None and not 0 <= index < least:
            yield _bad(f"there is no number {index} of {least}", (*path, field))


def _claim_policies(obj: Object, jobs: list[Object]) -> Findings:
    """Follow `validateVolumeClaimPolicies`."""
    name = mapping(obj.get("metadata")).get("name")
    seen: set[str] = set()
    pods = [template.spec for template in pod_templates(obj)] if jobs else []
    for number, policy in entries(mapping(obj.get("spec")).get("volumeClaimPolicies")):
        for place, template in entries(policy.get("templates")):
            claim = mapping(template.get("metadata")).get("name")
            path: FieldPath = ("spec", "volumeClaimPolicies", number, "templates", place, "metadata", "name")
            if not isinstance(claim, str):
                yield Problem(codes.MISSING_FIELD, "missing field `name`", path[:-1])
                continue
            if claim in seen:
                yield Problem(codes.DUPLICATE_ENTRY, f"has the same name {claim} as another template", path)
            seen.add(claim)
            if not re.fullmatch(SUBDOMAIN, claim):
                yield _bad(f"`{claim}` is not a DNS name in lower case", path)
            elif len(f"{claim}-{name}") > 63:
                yield Problem(codes.NAME_TOO_LONG, f"`{claim}-{name}` is longer than 63 characters", path)
            if any(claim == volume.get("name") for pod in pods for _, volume in entries(pod.get("volumes"))):
                yield Problem(codes.DUPLICATE_ENTRY, f"a pod has a volume `{claim}` of its own", path)
            if not any(claim == mount for pod in pods for mount in _mounted(pod)):
                yield _conflict(f"no container mounts `{claim}`", path)


def _mounted(pod: Object) -> Iterator[object]:
    for field in ("initContainers", "containers"):
        for _, container in entries(pod.get(field)):
            yield from (mount.get("name") for _, mount in entries(container.get("volumeMounts")))


# Kueue


def cluster_queue_findings(obj: Object) -> Findings:
    """Follow `validateResourceGroups`."""
    spec = mapping(obj.get("spec"))
    # v1beta1 calls it `cohort`.
    cohort = bool(spec.get("cohortName") or spec.get("cohort"))
    resources: set[str] = set()
    flavors: set[str] = set()
    for number, group in entries(spec.get("resourceGroups")):
        path: FieldPath = ("spec", "resourceGroups", number)
        covered = group.get("coveredResources")
        covered = covered if isinstance(covered, list) else []
        for place, name in enumerate(covered):
            where = (*path, "coveredResources", place)
            if isinstance(name, str) and not is_qualified(name):
                yield Problem(codes.RESOURCE_NAME_INVALID, f"{describe(name)} is not the name of a resource", where)
            elif isinstance(name, str) and name in resources:
                yield Problem(codes.DUPLICATE_ENTRY, f"another group covers {name}", where)
            resources.add(str(name))
        for place, flavor in entries(group.get("flavors")):
            where = (*path, "flavors", place)
            if str(flavor.get("name")) in flavors:
                yield Problem(codes.DUPLICATE_ENTRY, f"another group has {flavor.get('name')}", (*where, "name"))
            flavors.add(str(flavor.get("name")))
            yield from _quotas(flavor, covered, cohort, where)


def _quotas(flavor: Object, covered: list[object], cohort: bool, path: FieldPath) -> Findings:
    """Follow `validateFlavorQuotas`."""
    quotas = entries(flavor.get("resources"))
    for (number, quota), name in zip(quotas, covered, strict=False):
        place = (*path, "resources", number)
        if isinstance(name, str) and quota.get("name") != name:
            found = describe(quota.get("name"))
            yield _conflict(f"must be {describe(name)}, as in coveredResources, not {found}", (*place, "name"))
        amounts = {field: nano(quota.get(field)) for field in ("nominalQuota", "borrowingLimit", "lendingLimit")}
        for field, amount in amounts.items():
            if amount is None:
                continue
            if amount < 0:
                yield Problem(codes.AMOUNT_DOUBTFUL, f"must not be negative: {quota[field]}", (*place, field))
            if field == "lendingLimit" and not cohort:
                yield _conflict("needs `cohortName`: without a cohort there is no queue to share with", (*place, field))
        lent, own = amounts["lendingLimit"], amounts["nominalQuota"]
        if lent is not None and own is not None and lent > own:
            yield _conflict("must not exceed nominalQuota", (*place, "lendingLimit"))


def resource_flavor_findings(obj: Object) -> Findings:
    """Follow `ValidateResourceFlavor`."""
    spec = mapping(obj.get("spec"))
    yield from label_findings(spec.get("nodeLabels"), ("spec", "nodeLabels"))
    for field in ("nodeTaints", "tolerations"):
        for number, entry in entries(spec.get(field)):
            key = entry.get("key")
            if isinstance(key, str) and not is_qualified(key) and (key or field == "nodeTaints"):
                yield Problem(codes.LABEL_INVALID, f"`{key}` is not a valid label key", ("spec", field, number, "key"))


def queued_findings(obj: Object) -> Findings:
    """Follow `ValidateQueueName`, `validateCreateForMaxExecTime` and `ValidateTASPodSetRequest`."""
    labels = mapping(mapping(obj.get("metadata")).get("labels"))
    queue, limit = labels.get(QUEUE_LABEL), labels.get(RUN_SECONDS_LABEL)
    if isinstance(queue, str) and not re.fullmatch(SUBDOMAIN, queue):
        yield _bad(f"`{queue}` is not the name of a queue", ("metadata", "labels", QUEUE_LABEL))
    if isinstance(limit, str) and not (limit.isdecimal() and int(limit) > 0):
        message = f"must be a number of seconds above 0, not `{limit}`"
        yield _bad(message, ("metadata", "labels", RUN_SECONDS_LABEL))
    for template in pod_templates(obj):
        notes = mapping(template.metadata.get("annotations"))
        if template.path and any(str(key).startswith(POD_ANNOTATIONS) for key in notes):
            yield from _topology(notes, (*template.path, "metadata", "annotations"))


def _topology(notes: Object, path: FieldPath) -> Findings:
    ways = [key for key in ("required", "preferred", "unconstrained") if f"{POD_ANNOTATIONS}{key}-topology" in notes]
    if len(ways) > 1:
        key = f"{POD_ANNOTATIONS}{ways[1]}-topology"
        yield _conflict(f"must not be set next to {POD_ANNOTATIONS}{ways[0]}-topology", (*path, key))
    for name in ("required", "preferred", "slice-required"):
        key = f"{POD_ANNOTATIONS}{name}-topology"
        level = notes.get(key)
        if isinstance(level, str) and not is_qualified(level):
            yield _bad(f"`{level}` is not the name of a label", (*path, key))
    free = notes.get(f"{POD_ANNOTATIONS}unconstrained-topology")
    if isinstance(free, str) and free not in _BOOLEANS:
        yield _bad(f"must be true or false, not `{free}`", (*path, f"{POD_ANNOTATIONS}unconstrained-topology"))
    slices, size = f"{POD_ANNOTATIONS}slice-required-topology", f"{POD_ANNOTATIONS}slice-size"
    if (slices in notes) is not (size in notes):
        given, other = (slices, size) if slices in notes else (size, slices)
        yield _conflict(f"needs the annotation {other}", (*path, given))
    amount = notes.get(size)
    if isinstance(amount, str) and not (amount.isdecimal() and int(amount) > 0):
        yield _bad(f"must be a number above 0, not `{amount}`", (*path, size))


_BOOLEANS = ("1", "t", "T", "TRUE", "true", "True", "0", "f", "F", "FALSE", "false", "False")


# KEDA

_RESOURCES = ("cpu", "memory")


def scaled_object_findings(obj: Object) -> Findings:
    """Follow `CheckReplicaCountBoundsAreValid`, `CheckFallbackValid` and `ValidateTriggers`, except the rule in CEL."""
    spec = mapping(obj.get("spec"))
    least, idle = _count(spec, "minReplicaCount", 0), _count(spec, "idleReplicaCount")
    if idle is not None and least is not None and idle >= least:
        message = f"idleReplicaCount {idle} must be less than minReplicaCount {least}"
        yield _conflict(message, ("spec", "idleReplicaCount"))
    triggers = [trigger for _, trigger in entries(spec.get("triggers"))]
    modifiers = mapping(mapping(spec.get("advanced")).get("scalingModifiers"))
    if spec.get("fallback") is not None and not modifiers and all(each.get("type") in _RESOURCES for each in triggers):
        yield _conflict("needs a trigger other than cpu and memory", ("spec", "fallback"))
    if modifiers.get("formula") and not modifiers.get("target"):
        yield Problem(codes.MISSING_FIELD, "missing field `target`", ("spec", "advanced", "scalingModifiers"))
    yield from trigger_findings(obj)


def trigger_findings(obj: Object) -> Findings:
    """Follow `ValidateTriggers`, and `cronMetadata.Validate` of `pkg/scalers`, which the controller calls."""
    triggers = mapping(obj.get("spec")).get("triggers")
    names: set[str] = set()
    if triggers == []:
        yield Problem(codes.MISSING_FIELD, "needs at least one trigger", ("spec", "triggers"))
    for number, trigger in entries(triggers):
        path: FieldPath = ("spec", "triggers", number)
        if trigger.get("useCachedMetrics") and trigger.get("type") in (*_RESOURCES, "cron"):
            yield _conflict(f"a trigger of type {trigger['type']} has no cache", (*path, "useCachedMetrics"))
        name = trigger.get("name")
        if isinstance(name, str) and name:
            if name in names:
                yield Problem(codes.DUPLICATE_ENTRY, f"has the same name {name} as another trigger", (*path, "name"))
            names.add(name)
        if trigger.get("type") == "cron":
            yield from _cron_findings(mapping(trigger.get("metadata")), (*path, "metadata"))


def _cron_findings(metadata: Object, path: FieldPath) -> Findings:
    for field, form in (("start", forms.schedule), ("end", forms.schedule), ("timezone", forms.time_zone)):
        for mismatch in form(metadata.get(field)) or ():
            yield Problem(mismatch.code, mismatch.message, (*path, field), mismatch.hint)
        if str(metadata.get(field)).startswith("@"):
            yield _bad("a window of KEDA has times such as `0 6 * * *`", (*path, field))
    if metadata.get("start") == metadata.get("end"):
        yield _conflict("`start` and `end` are the same time", (*path, "end"))
    if metadata.get("desiredReplicas") in (None, "", "0", 0):
        yield Problem(codes.MISSING_FIELD, "`desiredReplicas` must be at least 1", path)


CONTROLLER_RULES: dict[str, Callable[[Object], Findings]] = {
    "ClusterQueue.kueue.x-k8s.io": cluster_queue_findings,
    "JobSet.jobset.x-k8s.io": job_set_findings,
    "TrainingRuntime.trainer.kubeflow.org": training_runtime_findings,
    "LeaderWorkerSet.leaderworkerset.x-k8s.io": leader_worker_set_findings,
    "RayJob.ray.io": ray_job_findings,
    "ResourceFlavor.kueue.x-k8s.io": resource_flavor_findings,
    "ScaledJob.keda.sh": trigger_findings,
    "ScaledObject.keda.sh": scaled_object_findings,
}
