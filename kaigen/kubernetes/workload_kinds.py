"""Rows of the table of object kinds: everything that runs pods.

Immutable fields follow Kubernetes v1.36's validation of updates (`pkg/apis/*/validation`), the CEL rules in the
custom resources' own schemas, and the webhooks of LeaderWorkerSet, JobSet and Kubeflow Trainer.
"""

from __future__ import annotations

from msgspec.structs import replace

from kaigen.kubernetes.names import LABEL_1123, LABEL_FORM, LABEL_VALUE_NAME, SUBDOMAIN_NAME, NameRule, label_1035_name
from kaigen.kubernetes.object_kind import (
    TRIGGER_AUTHENTICATION,
    HealthConditions,
    ImmutableField,
    ObjectKind,
    PodPath,
    PodSelector,
    ReferenceField,
)

_ENDING = ("OnFailure", "Never")
_RUNNING = ("Always",)
_TEMPLATE = (PodPath("spec.template"),)
_JOB_LABELS = ("batch.kubernetes.io/", "controller-uid", "job-name")
_RAY_LABELS = ("app.kubernetes.io/", "ray.io/")
_OWN_PODS = PodSelector("selector", own=True)
_SELECTOR = ImmutableField("spec.selector")
_MANAGED_BY = ImmutableField("spec.managedBy")
_RUNTIME_PODS = (PodPath("spec.template.spec.replicatedJobs[].template.spec.template"),)
_RUNTIMES = ("ClusterTrainingRuntime.trainer.kubeflow.org", "TrainingRuntime.trainer.kubeflow.org")


def _ray_containers(cluster: str) -> tuple[PodPath, ...]:
    """Return the containers that KubeRay adds to pods of a cluster (source: its CustomResourceDefinition)."""
    head = f"{cluster}.headGroupSpec.template"
    return (
        PodPath(f"{cluster}.autoscalerOptions", "autoscaler", single=True, joins=head),
        PodPath(f"{cluster}.historyServerOptions.collectorOptions", "collector", single=True, joins=head),
    )


WORKLOAD_KINDS = (
    ObjectKind("Pod", lifecycle="serving", pods=(PodPath(""),), references=(), wave=3, family="workload"),
    ObjectKind("PodTemplate", pods=(PodPath("template"),), references=()),
    ObjectKind("ReplicationController", pods=_TEMPLATE, references=()),
    ObjectKind(
        "DaemonSet.apps",
        lifecycle="rolling",
        pods=_TEMPLATE,
        restart_policies=_RUNNING,
        selector=_OWN_PODS,
        references=(),
        immutable=(_SELECTOR,),
        wave=3,
        family="workload",
    ),
    ObjectKind(
        "Deployment.apps",
        lifecycle="rolling",
        pods=_TEMPLATE,
        restart_policies=_RUNNING,
        pod_labels=("pod-template-hash",),
        scalable=True,
        selector=_OWN_PODS,
        references=(),
        immutable=(_SELECTOR,),
        emitted=True,
        wave=3,
        family="workload",
    ),
    ObjectKind(
        "ReplicaSet.apps",
        lifecycle="serving",
        pods=_TEMPLATE,
        restart_policies=_RUNNING,
        scalable=True,
        selector=_OWN_PODS,
        references=(),
        immutable=(_SELECTOR,),
        wave=3,
        family="workload",
    ),
    ObjectKind(
        "StatefulSet.apps",
        lifecycle="rolling",
        pods=_TEMPLATE,
        restart_policies=_RUNNING,
        claim_templates=("spec.volumeClaimTemplates",),
        pod_labels=("apps.kubernetes.io/", "controller-revision-hash", "statefulset.kubernetes.io/"),
        scalable=True,
        selector=_OWN_PODS,
        references=(ReferenceField("spec.serviceName", ("Service",)),),
        immutable=(
            ImmutableField("spec.podManagementPolicy", "OrderedReady"),
            ImmutableField(
                "spec",
                mutable=(
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
        data="claimed",
        name=NameRule(LABEL_1123, 52, LABEL_FORM, "its revisions add 11 characters to it in a label"),
        emitted=True,
        wave=3,
        family="workload",
    ),
    ObjectKind(
        "Job.batch",
        lifecycle="run",
        pods=_TEMPLATE,
        restart_policies=_ENDING,
        pod_labels=_JOB_LABELS,
        references=(),
        immutable=(
            ImmutableField("spec.template"),
            _SELECTOR,
            ImmutableField("spec.completionMode", "NonIndexed"),
            ImmutableField("spec.podFailurePolicy"),
            ImmutableField("spec.successPolicy"),
            ImmutableField("spec.backoffLimitPerIndex"),
            _MANAGED_BY,
            ImmutableField("spec.completions"),
        ),
        name=LABEL_VALUE_NAME,
        emitted=True,
        wave=2,
        family="workload",
    ),
    ObjectKind(
        "CronJob.batch",
        pods=(PodPath("spec.jobTemplate.spec.template"),),
        restart_policies=_ENDING,
        pod_labels=_JOB_LABELS,
        references=(),
        name=replace(SUBDOMAIN_NAME, max_length=52, reason="its Jobs add 11 characters to it"),
        emitted=True,
        wave=3,
        family="workload",
    ),
    ObjectKind(
        "LeaderWorkerSet.leaderworkerset.x-k8s.io",
        lifecycle="rolling",
        pods=(
            PodPath("spec.leaderWorkerTemplate.leaderTemplate", "leader"),
            PodPath("spec.leaderWorkerTemplate.workerTemplate", "worker"),
        ),
        restart_policies=_RUNNING,
        claim_templates=("spec.volumeClaimTemplates", "spec.leaderWorkerTemplate.volumeClaimTemplates"),
        pod_labels=(
            "apps.kubernetes.io/",
            "controller-revision-hash",
            "leaderworkerset.sigs.k8s.io/",
            "statefulset.kubernetes.io/",
        ),
        scalable=True,
        references=(),
        immutable=(ImmutableField("spec.leaderWorkerTemplate.subGroupPolicy.subGroupSize"),),
        name=label_1035_name(48, "its groups and their revisions add up to 15 characters to it in a label"),
        emitted=True,
        wave=3,
        # https://lws.sigs.k8s.io/docs/reference/leaderworkerset.v1/, 2026-11-01
        health=HealthConditions(("Available",)),
        family="workload",
    ),
    ObjectKind(
        "JobSet.jobset.x-k8s.io",
        lifecycle="run",
        pods=(PodPath("spec.replicatedJobs[].template.spec.template"),),
        restart_policies=_ENDING,
        # `Default` in pkg/webhooks/jobset_webhook.go of JobSet v0.10
        default_restart_policy="OnFailure",
        claim_templates=("spec.volumeClaimPolicies[].templates",),
        pod_labels=(*_JOB_LABELS, "jobset.sigs.k8s.io/"),
        references=(),
        immutable=(
            ImmutableField("spec.replicatedJobs"),
            ImmutableField("spec.failurePolicy", once=True),
            ImmutableField("spec.successPolicy", once=True),
            ImmutableField("spec.startupPolicy", once=True),
            ImmutableField("spec.network", once=True),
            _MANAGED_BY,
        ),
        name=label_1035_name(63, "it becomes the value of a label"),
        emitted=True,
        wave=3,
        # https://jobset.sigs.k8s.io/docs/reference/jobset.v1alpha2/, 2026-11-01
        health=HealthConditions(("Completed",), degraded=("Failed",), suspended=("Suspended",)),
        family="workload",
    ),
    # Kubeflow Trainer makes a JobSet of a TrainJob and the TrainingRuntime that it names; both have its name.
    ObjectKind(
        "TrainingRuntime.trainer.kubeflow.org",
        pods=_RUNTIME_PODS,
        restart_policies=_ENDING,
        default_restart_policy="OnFailure",
        claim_templates=("spec.template.spec.volumeClaimPolicies[].templates",),
        pod_labels=(*_JOB_LABELS, "jobset.sigs.k8s.io/", "trainer.kubeflow.org/"),
        references=(),
        name=SUBDOMAIN_NAME,
        emitted=True,
        wave=2,
        family="workload",
    ),
    ObjectKind("ClusterTrainingRuntime.trainer.kubeflow.org", pods=_RUNTIME_PODS, references=()),
    ObjectKind(
        "TrainJob.trainer.kubeflow.org",
        lifecycle="run",
        references=(ReferenceField("spec.runtimeRef.name", _RUNTIMES),),
        immutable=(
            ImmutableField("spec.runtimeRef"),
            ImmutableField("spec.initializer"),
            ImmutableField("spec.trainer"),
            ImmutableField("spec.activeDeadlineSeconds"),
            _MANAGED_BY,
        ),
        name=label_1035_name(63, "its JobSet has it in a label"),
        emitted=True,
        wave=3,
        # github.com/kubeflow/trainer/v2 v2.2.1, pkg/apis/trainer/v1alpha1/trainjob_types.go
        health=HealthConditions(("Complete",), degraded=("Failed",), suspended=("Suspended",)),
        family="workload",
    ),
    ObjectKind(
        "ScaledJob.keda.sh",
        pods=(PodPath("spec.jobTargetRef.template"),),
        restart_policies=_ENDING,
        pod_labels=(*_JOB_LABELS, "scaledjob.keda.sh/"),
        references=(TRIGGER_AUTHENTICATION,),
        name=LABEL_VALUE_NAME,
        wave=3,
        family="workload",
    ),
    ObjectKind(
        "RayCluster.ray.io",
        lifecycle="serving",
        pods=(
            PodPath("spec.headGroupSpec.template", "head"),
            PodPath("spec.workerGroupSpecs[].template"),
            *_ray_containers("spec"),
        ),
        pod_labels=_RAY_LABELS,
        immutable=(_MANAGED_BY, ImmutableField("spec.gcsFaultToleranceOptions.backend", once=True)),
        name=label_1035_name(53, "its Service adds -serve-svc to it"),
        wave=3,
        # https://ray-project.github.io/kuberay/reference/api/, 2026-11-01
        health=HealthConditions(
            ("RayClusterProvisioned",), degraded=("ReplicaFailure",), suspended=("RayClusterSuspended",)
        ),
        family="workload",
    ),
    ObjectKind(
        "RayService.ray.io",
        lifecycle="serving",
        pods=(
            PodPath("spec.rayClusterConfig.headGroupSpec.template", "head"),
            PodPath("spec.rayClusterConfig.workerGroupSpecs[].template"),
            *_ray_containers("spec.rayClusterConfig"),
        ),
        pod_labels=_RAY_LABELS,
        immutable=(_MANAGED_BY,),
        name=label_1035_name(47, "the Service of its cluster adds 16 characters to it"),
        wave=3,
        # https://ray-project.github.io/kuberay/reference/api/, 2026-11-01
        health=HealthConditions(("Ready",)),
        family="workload",
    ),
    # github.com/ray-project/kuberay/ray-operator v1.6.2, apis/ray/v1/rayjob_types.go and controllers/ray/utils
    ObjectKind(
        "RayJob.ray.io",
        pods=(
            PodPath("spec.rayClusterSpec.headGroupSpec.template", "head"),
            PodPath("spec.rayClusterSpec.workerGroupSpecs[].template"),
            PodPath("spec.submitterPodTemplate", "submitter"),
            *_ray_containers("spec.rayClusterSpec"),
        ),
        pod_labels=(*_JOB_LABELS, *_RAY_LABELS),
        immutable=(_MANAGED_BY,),
        name=label_1035_name(47, "the name of its cluster adds 6 characters to it"),
        wave=3,
        family="workload",
    ),
)
