"""The Job that uploads the output of a run to a bucket."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from kaigen.compile.app import Object
from kaigen.compile.builders import settings
from kaigen.compile.builders.access import role_and_binding, token_mount, token_volume
from kaigen.compile.builders.bucket_access import check_access, location, transfer_arguments
from kaigen.compile.builders.egress import bucket_servers, check_egress, egress_policy, identity_labels
from kaigen.compile.builders.frame import LOCATION
from kaigen.compile.builders.image_build import FAILED
from kaigen.compile.builders.job_gate import AwaitedRun, job_gate, run_rule
from kaigen.compile.builders.job_output import UPLOAD
from kaigen.compile.builders.jobs import Run, job, seconds
from kaigen.compile.builders.mounts import read_only_mount
from kaigen.compile.builders.pods import pull_secrets
from kaigen.compile.builders.sources import globs
from kaigen.compile.builders.storage import SHARED
from kaigen.compile.builders.weights import PERMANENT_EXIT_CODES, upload_container
from kaigen.compile.expressions import Expr, Joined, Release, Tree
from kaigen.compile.job.resolution import JobResolution
from kaigen.compile.job.schedule import cron_job, run_name, schedule_of
from kaigen.compile.problems import Problems
from kaigen.core.json_types import FieldPath
from kaigen.kinds.job import JobSpec, OutputBucket
from kaigen.kinds.schedule import Schedule

AT: FieldPath = ("spec", "output", "bucket")

_GATE = "wait-for-run"
_OUTPUT = "/output"
_RETRIES = 6
_SLACK_SECONDS = 60
"""How much longer than the starting deadline a run may not exist until it counts as left out."""
_SUFFIX = f"-{UPLOAD}"
_ANY_RUN: Tree = {"apiGroups": ["batch"], "resources": ["jobs"], "verbs": ["get"]}
_CLOUDS = ("aks", "eks", "gke")
_TRANSFER: FieldPath = (*AT, "transfer")


class Upload(Struct, frozen=True):
    """The upload of the output of a run.

    Attributes:
        job: the Job that uploads.
        access: its ServiceAccount, and what it and the pod may do.
    """

    job: Object
    access: list[Object]


def output_bucket(spec: JobSpec) -> OutputBucket | None:
    """Return the bucket that the output is uploaded to; None for none."""
    if spec.output is None or spec.template is not None:
        return None
    return spec.output.bucket


def upload(
    resolution: JobResolution, run: Object, wave: int, labels: Mapping[str, Tree], annotations: Mapping[str, Tree]
) -> Upload | None:
    """Return the upload of the output; None if the spec has no bucket for it.

    Its own Job, so that a failed upload does not repeat the run, and no GPU waits for it.

    Args:
        resolution: the Job.
        run: the Job or JobSet that writes the output.
        wave: its sync wave.
        labels: further labels of the Job.
        annotations: further annotations of the Job.
    """
    bucket, name = output_bucket(resolution.spec), run.name
    if bucket is None:
        return None
    assert isinstance(name, Expr)
    awaited = AwaitedRun(run.kind, str(run.body["apiVersion"]).partition("/")[0], name)
    frame, scheduled = resolution.frame, resolution.spec.schedule is not None
    single = {_GATE: FAILED, UPLOAD: PERMANENT_EXIT_CODES}
    uploader = Run(
        frame,
        role="job-upload",
        component=UPLOAD,
        wave=wave,
        pod=_pod(resolution, bucket, awaited),
        retries=_RETRIES,
        deadline=None,
        origin=(),
        prefix="upload.",
        permanent={UPLOAD: (*PERMANENT_EXIT_CODES, *FAILED)} if scheduled else single,
        labels=labels,
        pod_labels=identity_labels(bucket_servers(bucket, AT)),
        annotations={LOCATION: location(bucket), **annotations},
        suffix=_SUFFIX,
    )
    made = cron_job(uploader, resolution.spec, overlaps=True) or job(uploader)
    egress = egress_policy(
        frame, UPLOAD, bucket_servers(bucket, AT), resolution.context, proxy=bucket.transfer.proxy, what=UPLOAD
    )
    return Upload(made, [*_access(resolution, bucket, awaited), *egress])


def check_upload(resolution: JobResolution, problems: Problems) -> None:
    """Report a bucket that the output cannot be uploaded to."""
    bucket = output_bucket(resolution.spec)
    if bucket is None:
        return
    check_access(bucket, AT, problems)
    _check_volume(resolution, problems)
    check_egress(bucket_servers(bucket, AT), resolution.context, problems)


def _check_volume(resolution: JobResolution, problems: Problems) -> None:
    """Warn of a volume that a cloud attaches to one node: the upload may be on another one than the run."""
    volume = resolution.output
    if resolution.context.profile.name not in _CLOUDS or volume is None or SHARED & set(volume.access_modes):
        return
    problems.warning(
        "KG0309",
        f"the run and its upload share a volume that is {', '.join(volume.access_modes)}: on two nodes, each waits for "
        "the other to release it",
        ("spec", "output", "volume"),
        "set `accessModes: [ReadWriteMany]` with a class that has it, or a `placement` of one node for both",
    )


def _pod(resolution: JobResolution, bucket: OutputBucket, run: AwaitedRun) -> dict[str, Tree]:
    spec, context, placement = resolution.spec, resolution.context, resolution.spec.placement
    volume = resolution.naming.volume
    arguments, keys = transfer_arguments(bucket, AT, "upload")
    image = bucket.transfer.image
    schedule = schedule_of(spec)
    mounts: list[Tree] = [read_only_mount(volume, _OUTPUT, None)]
    container = upload_container(
        bucket,
        _OUTPUT,
        run.name if schedule is None else "",
        run.name,
        bucket.transfer,
        context,
        arguments=[*_of_schedule(schedule, run), *arguments, *globs(bucket)],
        name=UPLOAD,
        env=keys if schedule is None else [run_name(), *keys],
        mounts=mounts if schedule is None else [*mounts, token_mount()],
        origin=_TRANSFER,
    )
    # The uploader of a schedule waits itself: there may be no run to wait for.
    gate = job_gate(run, context, name=_GATE, transfer=bucket.transfer, prefix=UPLOAD, origin=_TRANSFER)
    claim: Tree = {"claimName": resolution.claim_name, "readOnly": True}
    return {
        "restartPolicy": "Never",
        "serviceAccountName": Release(_SUFFIX),
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "imagePullSecrets": settings.pull_secrets(
            "upload.imagePullSecrets",
            pull_secrets(*([image] if image is not None else []), spec=spec),
            "Secrets for pulling the uploader's image.",
            origin=_TRANSFER,
        ),
        # Not those of `resources`: the upload needs no GPU.
        "nodeSelector": settings.string_map(
            "upload.nodeSelector",
            placement.node_selector,
            "Labels that a node must have to run the upload.",
            origin=("spec", "placement", "nodeSelector"),
        ),
        "tolerations": settings.objects(
            "upload.tolerations",
            placement.tolerations,
            "Tolerations of the upload.",
            origin=("spec", "placement", "tolerations"),
        ),
        "securityContext": dict(resolution.security),
        **({"initContainers": [gate]} if schedule is None else {}),
        "containers": [container],
        "volumes": [{"name": volume, "persistentVolumeClaim": claim}, token_volume()],
    }


def _of_schedule(schedule: Schedule | None, run: AwaitedRun) -> list[Tree]:
    """Return the arguments by which the uploader finds the run of its own time; none for a Job that runs once."""
    if schedule is None:
        return []
    left_out = seconds(schedule.starting_deadline) + _SLACK_SECONDS
    return [Joined(("--run-of=", run.name)), f"--left-out-after={left_out}s"]


def _access(resolution: JobResolution, bucket: OutputBucket, run: AwaitedRun) -> list[Object]:
    """Return the ServiceAccount of the upload, which may read the run that it waits for."""
    frame = resolution.frame
    given = bucket.credentials.service_account if bucket.credentials is not None else None
    own = settings.string_map(
        "upload.serviceAccountAnnotations",
        given.annotations if given is not None else {},
        "Annotations of the ServiceAccount of the upload, by which a cloud gives it an identity.",
        origin=(*AT, "credentials", "serviceAccount", "annotations") if given is not None else (),
    )
    body: dict[str, Tree] = {
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": frame.metadata(_SUFFIX, UPLOAD, more=own),
        "automountServiceAccountToken": False,
    }
    account = Object(role=f"serviceaccount{_SUFFIX}", body=body)
    # The names of the runs of a schedule are not known.
    rules = [run_rule(run) if resolution.spec.schedule is None else _ANY_RUN]
    return [account, *role_and_binding(frame, _SUFFIX, UPLOAD, rules, Release(_SUFFIX), role_suffix=_SUFFIX)]
