"""JobSets, and TrainJobs of Kubeflow Trainer with their runtimes."""

from __future__ import annotations

from tests.tenancy.objects import claim_of, job_set, object_of, restored_from
from tests.tenancy.tenants import Body


def _training_runtime(job_set: Body) -> Body:
    """Return a TrainingRuntime with the spec of a JobSet."""
    return object_of("trainer.kubeflow.org/v1alpha1", "TrainingRuntime", spec={"template": {"spec": job_set["spec"]}})


def _train_job(**fields: object) -> Body:
    """Return a TrainJob with further fields."""
    spec = {"runtimeRef": {"kind": "TrainingRuntime", "name": "a"}, **fields}
    return object_of("trainer.kubeflow.org/v1alpha1", "TrainJob", spec=spec)


def _patched_train_job(**pod_fields: object) -> Body:
    """Return a TrainJob that changes the pods of its runtime."""
    job = {"name": "node", "template": {"spec": {"template": {"spec": pod_fields}}}}
    change = {"manager": "example.com/a", "trainingRuntimeSpec": {"template": {"spec": {"replicatedJobs": [job]}}}}
    return _train_job(runtimePatches=[change])


def _policy(storage: str, annotations: Body | None = None, **more: object) -> Body:
    """Return a JobSet that makes claims."""
    return job_set(claim_of(storage, **more), annotations=annotations or {})


DENIED: dict[str, tuple[Body, str]] = {
    "annotation of the claims of a JobSet": (
        _policy("standard", {"k8s.io/CloneRequest": "x"}),
        "the annotation `k8s.io/CloneRequest`",
    ),
    "class of the claims of a JobSet": (_policy("gp3"), "the storage class `gp3`"),
    "annotation of the claims of a TrainingRuntime": (
        _training_runtime(_policy("standard", {"k8s.io/CloneRequest": "x"})),
        "the annotation `k8s.io/CloneRequest`",
    ),
    "class of the claims of a TrainingRuntime": (_training_runtime(_policy("gp3")), "the storage class `gp3`"),
    "patch of the pods of a TrainJob": (
        _patched_train_job(serviceAccountName="deployer"),
        "a change of the pods of a runtime, or an initializer",
    ),
    "node of a TrainJob": (
        _patched_train_job(nodeSelector={"kubernetes.io/hostname": "a"}),
        "nodes by the label `kubernetes.io/hostname`",
    ),
    "control plane of a TrainJob": (
        _patched_train_job(tolerations=[{"key": "node-role.kubernetes.io/control-plane", "operator": "Exists"}]),
        "the toleration `node-role.kubernetes.io/control-plane`",
    ),
    "all taints of a TrainJob": (
        _patched_train_job(tolerations=[{"operator": "Exists"}]),
        "the toleration of all taints",
    ),
    "image of a TrainJob": (_train_job(trainer={"image": "x:1"}), "the image `x:1`"),
    "bucket of a TrainJob": (_train_job(trainer={"args": ["s3://other/b"]}), "the bucket `s3://other/b`"),
    "bucket in a command of a TrainJob": (
        _train_job(trainer={"command": ["s3://other/x"]}),
        "the bucket `s3://other/x`",
    ),
    "bucket in a variable of a TrainJob": (
        _train_job(trainer={"env": [{"name": "A", "value": "s3://other/b"}]}),
        "the bucket `s3://other/b`",
    ),
    "built image of a TrainJob": (
        _train_job(trainer={"args": ["--output=type=image,name=other.example.com/x"]}),
        "the image `other.example.com/x`",
    ),
    "device of a TrainJob": (
        _train_job(trainer={"resourcesPerNode": {"limits": {"deviceclass.resource.kubernetes.io/a": "1"}}}),
        "devices by the resource `deviceclass.resource.kubernetes.io/a`",
    ),
    "volume of the claims of a JobSet": (_policy("standard", volumeName="team-b-x"), "the volume `team-b-x`"),
    "data of the claims of a JobSet": (_policy("standard", **restored_from("team-b")), "the data of `team-b/x`"),
    "import into the claims of a JobSet": (
        job_set(annotations={"cdi.kubevirt.io/storage.import.endpoint": "x"}),
        "the annotation `cdi.kubevirt.io/storage.import.endpoint`",
    ),
    "volume of a JobSet": (job_set(claim_of("", volumeName="team-b-x")), "the volume `team-b-x`"),
    "class of a JobSet": (job_set(claim_of("gp3")), "the storage class `gp3`"),
}
"""Objects with what the finding names, by what is wrong with them."""

ALLOWED: dict[str, Body] = {
    "trainer of a TrainJob": _train_job(
        trainer={
            "image": "example.com/x",
            "args": ["s3://shared/a/b"],
            "numNodes": 2,
            "resourcesPerNode": {"limits": {"nvidia.com/gpu": "1"}},
        }
    ),
    "TrainJob that Kueue admits": _patched_train_job(
        nodeSelector={"zone": "a"}, tolerations=[{"key": "nvidia.com/gpu", "operator": "Exists"}]
    ),
    "JobSet": _policy("standard"),
    "annotation of the claims of a JobSet": job_set(annotations={"example.com/a": "x"}),
}
"""Objects that the tenant may have."""
