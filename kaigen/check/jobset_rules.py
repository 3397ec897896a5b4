"""Rules between the fields of JobSets and TrainingRuntimes that their webhooks enforce and no schema contains.

Source, by the name of the function in it: `pkg/webhooks` of sigs.k8s.io/jobset v0.12.0.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from msgspec.structs import replace

from kaigen.check import codes
from kaigen.check.webhook_problems import MOST_PODS, Findings, bad_value, conflict, count_of
from kaigen.core.json_types import FieldPath
from kaigen.diagnostics.problem import Problem
from kaigen.kubernetes.manifest import Object, entries, mapping
from kaigen.kubernetes.names import LABEL_1123, SUBDOMAIN
from kaigen.kubernetes.pods import pod_templates
from kaigen.kubernetes.runs import job_set_spec


def _label_1035(value: object, path: FieldPath) -> Findings:
    if isinstance(value, str) and (len(value) > 63 or not re.fullmatch(f"(?![0-9]){LABEL_1123}", value)):
        yield bad_value(f"`{value}` is not a DNS label that starts with a letter", path)


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
            yield conflict("the first replicated Job cannot depend on another", (*path, "dependsOn"))
        for place, item in entries(replicated.get("dependsOn")):
            if str(item.get("name")) not in names:
                message = f"no replicated Job `{item.get('name')}` before this one"
                yield bad_value(message, (*path, "dependsOn", place, "name"))
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
            yield bad_value(f"`{manager}` is not a name such as example.com/controller", ("spec", "managedBy"))


def _replicated_job(replicated: Object, path: FieldPath) -> Findings:
    replicas = count_of(replicated, "replicas", 1)
    parallelism = count_of(mapping(mapping(replicated.get("template")).get("spec")), "parallelism", 1)
    if replicas is not None and parallelism is not None and replicas * parallelism > MOST_PODS:
        message = f"{replicas} Jobs of {parallelism} pods are more than 2^31"
        yield Problem(codes.OUT_OF_RANGE, message, (*path, "replicas"))


def _targets(policy: object, names: Mapping[str, Object], path: FieldPath) -> Findings:
    targets = mapping(policy).get("targetReplicatedJobs")
    for number, name in enumerate(targets if isinstance(targets, list) else ()):
        if str(name) not in names:
            yield bad_value(f"no replicated Job `{name}`", (*path, "targetReplicatedJobs", number))


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
        yield conflict(message, (*path, "restartStrategy"))
    for number, rule in entries(policy.get("rules")):
        place = (*path, "rules", number)
        name = rule.get("name") or f"failurePolicyRule{number}"
        if isinstance(name, str):
            if len(name) > 128 or not re.fullmatch(_RULE_NAME, name):
                yield bad_value(f"`{name}` is not the name of a rule: letters, digits and `_`", (*place, "name"))
            if name in seen:
                yield Problem(codes.DUPLICATE_ENTRY, f"has the same name {name} as another rule", (*place, "name"))
            seen.add(name)
        yield from _targets(rule, names, place)
        if rule.get("action") in ("RestartJob", "RestartJobAndIgnoreMaxRestarts"):
            message = f"{rule['action']} needs the feature gate RestartJob, which is off by default"
            yield conflict(message, (*place, "action"), "use RestartJobSet")
        reasons = rule.get("onJobFailureReasons")
        for item, reason in enumerate(reasons if isinstance(reasons, list) else ()):
            if reason not in _REASONS:
                message = f"must be one of {', '.join(_REASONS)}, not `{reason}`"
                yield bad_value(message, (*place, "onJobFailureReasons", item))


def _coordinator(coordinator: Object, names: Mapping[str, Object]) -> Findings:
    """Follow `validateCoordinator`."""
    if not coordinator:
        return
    path: FieldPath = ("spec", "coordinator")
    replicated = names.get(str(coordinator.get("replicatedJob")))
    if replicated is None:
        yield bad_value(f"no replicated Job `{coordinator.get('replicatedJob')}`", (*path, "replicatedJob"))
        return
    job = mapping(mapping(replicated.get("template")).get("spec"))
    if job.get("completionMode", "Indexed") != "Indexed" or job.get("completions") is None:
        yield conflict("the Job of a coordinator must be Indexed and have completions", (*path, "replicatedJob"))
        return
    for field, least in (("jobIndex", count_of(replicated, "replicas", 1)), ("podIndex", count_of(job, "completions"))):
        index = count_of(coordinator, field, 0)
        if index is not None and least is not None and not 0 <= index < least:
            yield bad_value(f"there is no number {index} of {least}", (*path, field))


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
                yield bad_value(f"`{claim}` is not a DNS name in lower case", path)
            elif len(f"{claim}-{name}") > 63:
                yield Problem(codes.NAME_TOO_LONG, f"`{claim}-{name}` is longer than 63 characters", path)
            if any(claim == volume.get("name") for pod in pods for _, volume in entries(pod.get("volumes"))):
                yield Problem(codes.DUPLICATE_ENTRY, f"a pod has a volume `{claim}` of its own", path)
            if not any(claim == mount for pod in pods for mount in _mounted(pod)):
                yield conflict(f"no container mounts `{claim}`", path)


def _mounted(pod: Object) -> Iterator[object]:
    for field in ("initContainers", "containers"):
        for _, container in entries(pod.get(field)):
            yield from (mount.get("name") for _, mount in entries(container.get("volumeMounts")))
