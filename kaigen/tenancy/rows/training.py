"""What TrainJobs of Kubeflow Trainer reach: they change the pods of a TrainingRuntime, which is checked as it is."""

from __future__ import annotations

from kaigen.kubernetes.manifest import ALL
from kaigen.tenancy.conditions.values import Granted, Missing, NodeKey, NoKeys
from kaigen.tenancy.conditions.volumes import BucketText, BuildArgument
from kaigen.tenancy.reach import Reach
from kaigen.tenancy.rows.pods import DEVICE_CLASS, NODE_KEYS

_TRAIN_JOB = ("TrainJob.trainer.kubeflow.org",)
_TRAINER = ("spec", "trainer")
_TRAINER_WORDS = tuple((*_TRAINER, field, ALL) for field in ("command", "args"))
_PATCHED = ("spec", "runtimePatches", ALL, "trainingRuntimeSpec", "template", "spec", "replicatedJobs", ALL)
_PATCHED_POD = (*_PATCHED, "template", "spec", "template", "spec")

TRAINING_REACHES: tuple[Reach, ...] = (
    Reach(
        "train-job-patch",
        "a change of the pods of a runtime, or an initializer",
        _TRAIN_JOB,
        (
            # Of Kubeflow Trainer before 2.2.
            ("spec", "podTemplateOverrides"),
            # What initializers download, and by which credentials.
            ("spec", "initializer", "dataset"),
            ("spec", "initializer", "model"),
            *(
                (*_PATCHED_POD, field)
                for field in (
                    *("affinity", "containers", "imagePullSecrets", "initContainers"),
                    *("securityContext", "serviceAccountName", "volumes"),
                )
            ),
        ),
        Missing(),
    ),
    # Kueue patches the labels of nodes and the tolerations of a TrainJob that it admits, as those of the pods of a Job.
    Reach(
        "train-job-node-label",
        "nodes by the label",
        _TRAIN_JOB,
        ((*_PATCHED_POD, "nodeSelector"),),
        NoKeys(NODE_KEYS, "nodes"),
    ),
    Reach(
        "train-job-toleration",
        "the toleration",
        _TRAIN_JOB,
        ((*_PATCHED_POD, "tolerations", ALL),),
        NodeKey(f"|{NODE_KEYS}", "nodes"),
    ),
    # What a TrainJob sets of the container of its runtime.
    Reach("train-job-image", "the image", _TRAIN_JOB, ((*_TRAINER, "image"),), Granted("images")),
    Reach(
        "train-job-argument",
        "the bucket",
        _TRAIN_JOB,
        (*_TRAINER_WORDS, (*_TRAINER, "env", ALL, "value")),
        BucketText(),
    ),
    Reach("train-job-build", "the image", _TRAIN_JOB, _TRAINER_WORDS, BuildArgument()),
    Reach(
        "train-job-device",
        "devices by the resource",
        _TRAIN_JOB,
        tuple((*_TRAINER, "resourcesPerNode", field) for field in ("limits", "requests")),
        NoKeys(DEVICE_CLASS),
    ),
)
