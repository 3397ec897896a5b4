"""JobSets: pods that work together, and that all start again when one of them fails."""

from __future__ import annotations

from kaigen.compile.app import Object
from kaigen.compile.builders.jobs import Run, failure_policy
from kaigen.compile.expressions import Tree

REPLICATED_JOB = "node"
"""Name of the only Job of a JobSet, in the names of its pods: `JOBSET-node-0-INDEX`."""

_DISRUPTED = "has condition DisruptionTarget"
"""Text of the message of a Job that failed because a pod was evicted (source: k8s.io/kubernetes,
pkg/controller/job/pod_failure_policy.go)."""


def job_set(run: Run) -> Object:
    """Return the JobSet of pods that work together.

    Its only Job has no retries of its own: the first failed pod fails the Job, and JobSet deletes all pods and starts
    them again. An eviction does not count as a retry.
    """
    policy = failure_policy(run.permanent, disruption="FailJob")
    attempt = run.job_spec({"backoffLimit": 0}, policy, "Time limit of each attempt in seconds")
    spec: dict[str, Tree] = {
        "failurePolicy": {"maxRestarts": run.retry_limit, "rules": _rules(run)},
        "network": {"enableDNSHostnames": True, "publishNotReadyAddresses": True},
        "replicatedJobs": [{"name": REPLICATED_JOB, "replicas": 1, "template": {"spec": attempt}}],
    }
    return run.object({"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet"}, spec)


def _rules(run: Run) -> list[Tree]:
    """Return what follows the failure of the Job, by its reason; for other reasons, JobSet starts it again."""
    rules: list[Tree] = [
        {"name": "timeLimit", "action": "FailJobSet", "onJobFailureReasons": ["DeadlineExceeded"]},
        {
            "name": "disruption",
            "action": "RestartJobSetAndIgnoreMaxRestarts",
            "onJobFailureReasons": ["PodFailurePolicy"],
            **({"onJobFailureMessagePatterns": [_DISRUPTED]} if run.permanent else {}),
        },
    ]
    if run.permanent:
        rules.append({"name": "permanent", "action": "FailJobSet", "onJobFailureReasons": ["PodFailurePolicy"]})
    return rules
