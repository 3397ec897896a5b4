"""Objects that run pods which work together: a JobSet, or a TrainJob of Kubeflow Trainer, which makes one."""

from __future__ import annotations

from msgspec.structs import replace

from kaigen.compile.app import Object
from kaigen.compile.builders.jobs import Run, failure_policy
from kaigen.compile.expressions import Tree

REPLICATED_JOB = "node"
"""Name of the only Job of a JobSet, in the names of its pods: `JOBSET-node-0-INDEX`."""

_DISRUPTED = "has condition DisruptionTarget"
"""Text of the message of a Job that failed because a pod was evicted (source: k8s.io/kubernetes,
pkg/controller/job/pod_failure_policy.go)."""

_TRAINER = "trainer.kubeflow.org"
_STEP = f"{_TRAINER}/trainjob-ancestor-step"
"""Label of the Job that trains (source: pkg/constants/constants.go of github.com/kubeflow/trainer/v2 v2.2.1)."""


def job_set(run: Run) -> Object:
    """Return the JobSet of pods that work together."""
    return run.object({"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet"}, _job_set_spec(run))


def training_runtime(run: Run) -> Object:
    """Return the TrainingRuntime of a TrainJob: the JobSet that Kubeflow Trainer makes of it.

    It has no policy for PyTorch: the pods have the variables of torchrun as in every Job of several nodes.
    """
    metadata: Tree = {"labels": {_STEP: "trainer"}}
    spec: dict[str, Tree] = {"mlPolicy": {"numNodes": run.nodes}, "template": {"spec": _job_set_spec(run, metadata)}}
    # The queue admits the TrainJob.
    own = replace(run, role="trainingruntime", wave=run.wave - 1, labels=None, annotations=None)
    return own.object({"apiVersion": f"{_TRAINER}/v1alpha1", "kind": "TrainingRuntime"}, spec)


def train_job(run: Run, runtime: Object) -> Object:
    """Return the TrainJob of a TrainingRuntime. It has the same name, so that a changed one is another run."""
    spec: dict[str, Tree] = {"runtimeRef": {"apiGroup": _TRAINER, "kind": runtime.kind, "name": runtime.name}}
    return replace(run, name=runtime.name).object({"apiVersion": f"{_TRAINER}/v1alpha1", "kind": "TrainJob"}, spec)


def _job_set_spec(run: Run, metadata: Tree = None) -> dict[str, Tree]:
    """Return the spec of a JobSet.

    Its only Job has no retries of its own: the first failed pod fails the Job, and JobSet deletes all pods and starts
    them again. An eviction does not count as a retry.

    Args:
        run: what it runs.
        metadata: of the template of the Job; None for none.
    """
    policy = failure_policy(run.permanent, disruption="FailJob")
    attempt = run.job_spec({"backoffLimit": 0}, policy, "Time limit of each attempt in seconds")
    template: dict[str, Tree] = {**({"metadata": metadata} if metadata else {}), "spec": attempt}
    return {
        "failurePolicy": {"maxRestarts": run.retry_limit, "rules": _rules(run)},
        "network": {"enableDNSHostnames": True, "publishNotReadyAddresses": True},
        "replicatedJobs": [{"name": REPLICATED_JOB, "replicas": 1, "template": template}],
    }


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
