"""A run that ends at once if the bucket has its results already: they are restored to the volume of the output."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kaigen.compile.builders.access import account_of
from kaigen.compile.builders.bucket_access import transfer_arguments, transfer_server
from kaigen.compile.builders.egress import Server, bucket_servers
from kaigen.compile.builders.pods import SCRATCH
from kaigen.compile.builders.weights import restore_container
from kaigen.compile.expressions import Setting, Tree
from kaigen.compile.field_expressions import Arguments
from kaigen.compile.job.resolution import JobResolution
from kaigen.compile.job.upload import AT, output_bucket
from kaigen.compile.problems import Problems
from kaigen.core.json_types import FieldPath
from kaigen.kinds.job import JobSpec, OutputBucket
from kaigen.programs.files import program

RESTORE = "restore"
"""Name of the init container."""

_FIELD: FieldPath = (*AT, "skipIfComplete")
_RUN = "KAIGEN_RUN"
_NOTE = ".kaigen-complete"
"""File in the scratch folder, by which the containers that follow see that there is nothing to do."""


def restored_bucket(spec: JobSpec) -> OutputBucket | None:
    """Return the bucket that a run looks for its results in; None where it always runs."""
    bucket = output_bucket(spec)
    # Each run of a schedule has a folder of its own, so none has results already.
    return bucket if bucket is not None and bucket.skip_if_complete and spec.schedule is None else None


def restored_servers(spec: JobSpec) -> list[Server]:
    """Return the servers that the pods of a run ask for its results."""
    bucket = restored_bucket(spec)
    return bucket_servers(bucket, AT) if bucket is not None else []


def with_restore(resolution: JobResolution, init: Sequence[Tree]) -> list[Tree]:
    """Return the init containers of a run, after the one that restores its results: then they have nothing to do."""
    bucket, output = restored_bucket(resolution.spec), resolution.output
    if bucket is None or output is None:
        return list(init)
    scratch: Tree = {"name": SCRATCH, "mountPath": resolution.scratch_folder}
    note = f"{resolution.scratch_folder}/{_NOTE}"
    endpoint, region = transfer_server(bucket)
    _, keys = transfer_arguments(bucket, AT, RESTORE)
    label = "jobset.sigs.k8s.io/jobset-name" if resolution.has_job_set else "batch.kubernetes.io/job-name"
    run: Tree = {"name": _RUN, "valueFrom": {"fieldRef": {"fieldPath": f"metadata.labels['{label}']"}}}
    restore = restore_container(
        bucket,
        output.mount_path,
        f"$({_RUN})",
        bucket.transfer,
        resolution.context,
        note=note,
        arguments=[
            *([f"--endpoint={endpoint}"] if endpoint else []),
            *([f"--region={region}"] if region else []),
        ],
        name=RESTORE,
        env=[run, *keys],
        mounts=[{"name": resolution.naming.volume, "mountPath": output.mount_path}, scratch],
        origin=(*AT, "transfer"),
    )
    return [restore, *(_skipping(container, note, scratch) for container in init)]


def _skipping(container: Tree, note: str, scratch: Tree) -> Tree:
    """Return a container of the downloader that does nothing if the results were restored."""
    assert isinstance(container, Mapping)
    args, mounts = container["args"], container.get("volumeMounts", [])
    assert isinstance(args, list)
    assert isinstance(mounts, list)
    return {**container, "args": [f"--skip-if={note}", *args], "volumeMounts": [*mounts, scratch]}


def entry_or_note(resolution: JobResolution, point: Mapping[str, Tree]) -> Mapping[str, Tree]:
    """Return `command` and `args` of the container, which prints why there is nothing to do if that is so."""
    command = point["command"]
    if restored_bucket(resolution.spec) is None or not isinstance(command, Setting):
        return point
    runs = resolution.program
    own = runs.entry if runs is not None and not runs.command else ()
    note = f"{resolution.scratch_folder}/{_NOTE}"
    return {**point, "command": Arguments(("sh", program("unless_file.sh"), note, *own), command)}


def check_restore(resolution: JobResolution, problems: Problems) -> None:
    """Report a run whose program or whose access to the bucket is unknown."""
    spec, bucket = resolution.spec, restored_bucket(resolution.spec)
    if bucket is None:
        return
    if resolution.program is None and not spec.command:
        problems.error(
            "KG0456",
            "`skipIfComplete` needs `command`: the image's own entry point is not known, and would run in any case",
            _FIELD,
            "set `command` to the program of the image",
        )
    given = bucket.credentials
    if given is not None and given.service_account is not None and account_of(spec) is None:
        problems.error(
            "KG0456",
            "`skipIfComplete` needs an account: the pods of the run read the bucket as well, and only the upload has "
            "the one of `credentials.serviceAccount`",
            _FIELD,
            "set `serviceAccount` of the Job to an account with the same identity",
        )
