"""Rules between the fields of custom kinds that the webhooks of their controllers enforce and no schema contains.

`tests/cluster/test_webhooks.py` asks the webhooks.
"""

from __future__ import annotations

from collections.abc import Callable

from kaigen.check.jobset_rules import job_set_findings, training_runtime_findings
from kaigen.check.keda_rules import scaled_object_findings, trigger_findings
from kaigen.check.kueue_rules import cluster_queue_findings, resource_flavor_findings
from kaigen.check.lws_rules import leader_worker_set_findings
from kaigen.check.ray_rules import ray_job_findings
from kaigen.check.webhook_problems import Findings
from kaigen.kubernetes.manifest import Object

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
