"""Objects that the webhooks of controllers refuse, and what kaigen says of them.

`tests/cluster/test_webhooks.py` asks the webhooks.
"""

from __future__ import annotations

from typing import Any

from kaigen.kubernetes.queues import QUEUE_LABEL, RUN_SECONDS_LABEL
from tests.unit.check.api_rules import Refused

LWS, JOB_SET, QUEUE, SCALED = "LeaderWorkerSet", "JobSet", "ClusterQueue", "ScaledObject"
ROLLING = "spec.rolloutStrategy"
_GROUPS = "spec.leaderWorkerTemplate.subGroupPolicy"
_RULES = "spec.failurePolicy"
TOPOLOGY = "kueue.x-k8s.io/podset-required-topology"


def _rolling(**amounts: Any) -> dict[str, Any]:
    return {"type": "RollingUpdate", "rollingUpdateConfiguration": amounts}


def _failure(**rule: Any) -> dict[str, Any]:
    return {"maxRestarts": 1, "rules": [{"action": "FailJobSet", **rule}]}


def _group(*resources: dict[str, Any], covered: tuple[str, ...] = ("cpu",)) -> list[dict[str, Any]]:
    return [{"coveredResources": list(covered), "flavors": [{"name": "a", "resources": list(resources)}]}]


def _quota(name: str = "cpu", **limits: Any) -> dict[str, Any]:
    return {"name": name, "nominalQuota": "4", **limits}


CASES = (
    Refused(LWS, "spec.leaderWorkerTemplate.size", 0, "", "must be at least 1, not 0"),
    Refused(LWS, ROLLING, _rolling(maxSurge=0, maxUnavailable=0), ".rollingUpdateConfiguration",
            "`maxSurge` and `maxUnavailable` must not both be 0 groups"),
    Refused(LWS, ROLLING, _rolling(maxSurge="150%"), ".rollingUpdateConfiguration.maxSurge",
            "must not be more than 100%"),
    Refused(LWS, ROLLING, _rolling(maxSurge="many"), ".rollingUpdateConfiguration.maxSurge",
            "must be a number or a percentage, not `many`"),
    Refused(LWS, ROLLING, _rolling(partition=-1), ".rollingUpdateConfiguration.partition",
            "must be at least 0, not -1"),
    Refused(LWS, _GROUPS, {"subGroupSize": 0}, ".subGroupSize", "must be at least 1, not 0"),
    Refused(LWS, _GROUPS, {"subGroupSize": 100}, ".subGroupSize", "subGroupSize 100 exceeds size 2"),
    Refused(LWS, "metadata.annotations", {"leaderworkerset.sigs.k8s.io/subgroup-exclusive-topology": "rack"},
            '["leaderworkerset.sigs.k8s.io/subgroup-exclusive-topology"]',
            "needs spec.leaderWorkerTemplate.subGroupPolicy"),
    Refused(JOB_SET, "spec.network", {"subdomain": "9a"}, ".subdomain",
            "`9a` is not a DNS label that starts with a letter"),
    Refused(JOB_SET, "spec.managedBy", "me", "", "`me` is not a name such as example.com/controller"),
    Refused(JOB_SET, "spec.replicatedJobs[0].groupName", "A", "", "`A` is not a DNS label that starts with a letter"),
    Refused(JOB_SET, "spec.replicatedJobs[0].dependsOn", [{"name": "a", "status": "Ready"}], "",
            "the first replicated Job cannot depend on another"),
    Refused(JOB_SET, "spec.successPolicy", {"operator": "All", "targetReplicatedJobs": ["a"]},
            ".targetReplicatedJobs[0]", "no replicated Job `a`"),
    Refused(JOB_SET, _RULES, _failure(targetReplicatedJobs=["a"]), ".rules[0].targetReplicatedJobs[0]",
            "no replicated Job `a`"),
    Refused(JOB_SET, _RULES, _failure(onJobFailureReasons=["Bad"]), ".rules[0].onJobFailureReasons[0]",
            "must be one of BackoffLimitExceeded, DeadlineExceeded, FailedIndexes, MaxFailedIndexesExceeded, "
            "PodFailurePolicy, not `Bad`"),
    Refused(JOB_SET, _RULES, _failure(name="a-b"), ".rules[0].name",
            "`a-b` is not the name of a rule: letters, digits and `_`"),
    Refused(JOB_SET, _RULES, _failure(action="RestartJob"), ".rules[0].action",
            "RestartJob needs the feature gate RestartJob, which is off by default"),
    Refused(JOB_SET, _RULES, {"restartStrategy": "InPlaceRestart"}, ".restartStrategy",
            "InPlaceRestart needs the feature gate of the same name, which is off by default"),
    Refused(JOB_SET, "spec.coordinator", {"replicatedJob": "a"}, ".replicatedJob", "no replicated Job `a`"),
    Refused(JOB_SET, "spec.volumeClaimPolicies",
            [{"templates": [{"metadata": {"name": "unused"},
                             "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
                             }]}],
            "[0].templates[0].metadata.name", "no container mounts `unused`"),
    Refused(QUEUE, "spec.resourceGroups", _group(_quota("memory")), "[0].flavors[0].resources[0].name",
            "must be `cpu`, as in coveredResources, not `memory`"),
    Refused(QUEUE, "spec.resourceGroups", [*_group(_quota()), *_group(_quota())], "[1].coveredResources[0]",
            "another group covers cpu"),
    Refused(QUEUE, "spec.resourceGroups", _group(_quota(lendingLimit="5")),
            "[0].flavors[0].resources[0].lendingLimit", "must not exceed nominalQuota"),
    Refused(QUEUE, "spec", {"resourceGroups": _group(_quota(lendingLimit="1"))},
            ".spec.resourceGroups[0].flavors[0].resources[0].lendingLimit",
            "needs `cohortName`: without a cohort there is no queue to share with"),
    Refused(QUEUE, "spec.resourceGroups", _group({"name": "cpu", "nominalQuota": "-1"}),
            "[0].flavors[0].resources[0].nominalQuota", "must not be negative: -1"),
    Refused("ResourceFlavor", "spec", {"nodeLabels": {"a b": "c"}}, '.spec.nodeLabels["a b"]',
            "`a b` is not a valid label key"),
    Refused("ResourceFlavor", "spec", {"tolerations": [{"key": "a b", "operator": "Exists"}]},
            ".spec.tolerations[0].key", "`a b` is not a valid label key"),
    Refused(SCALED, "spec.idleReplicaCount", 1, "", "idleReplicaCount 1 must be less than minReplicaCount 0"),
    Refused(SCALED, "spec.triggers", [], "", "needs at least one trigger"),
    Refused(SCALED, "spec.triggers",
            [{"type": "cron", "useCachedMetrics": True,
              "metadata": {"timezone": "UTC", "start": "0 8 * * *", "end": "0 9 * * *", "desiredReplicas": "1"}}],
            "[0].useCachedMetrics", "a trigger of type cron has no cache"),
    Refused("Job", "metadata.labels", {QUEUE_LABEL: "Wrong"}, f'["{QUEUE_LABEL}"]',
            "`Wrong` is not the name of a queue"),
    Refused("Job", "metadata.labels", {QUEUE_LABEL: "a", RUN_SECONDS_LABEL: "soon"}, f'["{RUN_SECONDS_LABEL}"]',
            "must be a number of seconds above 0, not `soon`"),
    Refused("Job", "spec.template.metadata", {"annotations": {TOPOLOGY: "a b"}}, f'.annotations["{TOPOLOGY}"]',
            "`a b` is not the name of a label"),
)  # fmt: skip
"""One for each rule."""
