"""A Job that runs now: its volume with the files of a project, then the Job, or nothing at all."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from kaigen.cluster.client import Cluster
from kaigen.cluster.errors import ApiError
from kaigen.config.settings import Config
from kaigen.core.text import plural
from kaigen.diagnostics.errors import CheckFailed
from kaigen.kubernetes.manifest import Manifest
from kaigen.kubernetes.quantities import units
from kaigen.ops.archive import Entry, entries_of
from kaigen.ops.build import Objects, Run, run_objects
from kaigen.ops.cleanup import expire_after_run
from kaigen.ops.creation import Creation
from kaigen.ops.helper import CLAIM, await_gone, ensure_claim, existing_claim, mount_volume
from kaigen.ops.interrupts import interruptible
from kaigen.ops.jobs import JOB
from kaigen.ops.transfer import upload
from kaigen.system.progress import Progress

Say = Callable[[str], object]
_GIB = 1 << 30


def create_run(
    cluster: Cluster,
    run: Run,
    config: Config,
    *,
    project: Path | None = None,
    folder: str = "",
    report: Say,
    detail: Say,
    progress: Progress | None = None,
    create_claim: bool = True,
) -> Manifest:
    """Create the volume of a run, upload its project, and create its Job. The Job starts when all files are there.

    If something fails, or the user interrupts, what was created is deleted.

    Args:
        cluster: the cluster.
        run: the run.
        config: settings of the repository.
        project: folder whose content is uploaded; None for nothing.
        folder: where it goes in the container.
        report: receives what was created.
        detail: receives what happens meanwhile.
        progress: receives the bytes that were uploaded.
        create_claim: create the volume if it does not exist.

    Returns:
        The Job.

    Raises:
        InputError: the run is invalid.
        CheckFailed: a Job of that name exists, or the volume belongs to another one.
        SystemFailure: the cluster refused, or a file could not be uploaded.
    """
    objects = run_objects(run, config)
    if not await_gone(cluster, JOB, run.job, run.namespace, detail):
        raise CheckFailed(f"Job {run.job} already exists", hint="delete it first, or choose another name")
    if not create_claim:
        existing_claim(cluster, run.namespace, run.claim.name)
    entries = entries_of(project) if project is not None else []
    _check(cluster, run, objects, entries, detail)
    creation = Creation(cluster, run.namespace)
    with interruptible(), creation.undone_on_error(detail):
        created = ensure_claim(cluster, run.namespace, objects.claim, detail, creation.create)
        report(f"persistentvolumeclaim/{run.claim.name} {'created' if created else 'exists'}")
        if not created:
            expire_after_run(cluster, run.claim.name, run.namespace, run.job)
        if project is not None:
            purpose = f"upload-{run.name}"
            with mount_volume(
                cluster, run.namespace, run.claim, config, purpose=purpose, say=detail, warn=report, creation=creation
            ) as mount:
                upload(mount, entries, folder, progress)
            files = sum(not entry.is_folder for entry in entries)
            report(f"{plural(files, 'file')} uploaded to {folder}")
        job = _make_job(cluster, run, objects, creation)
    report(f"job.batch/{run.job} created")
    return job


def _check(cluster: Cluster, run: Run, objects: Objects, entries: list[Entry], detail: Say) -> None:
    """Check before anything is uploaded that the server accepts every object, and that the files fit.

    Raises:
        ApiError: the user lacks a right, or the server refuses an object.
        CheckFailed: the files are larger than the volume.
    """
    is_new = await_gone(cluster, CLAIM, run.claim.name, run.namespace, detail)
    size = sum(entry.size for entry in entries)
    if is_new and size > (capacity := units(run.claim.size) or 0):
        needed = -(-size * 11 // (10 * _GIB))
        message = f"the files have {size} bytes, and the volume {run.claim.name} only {capacity}"
        raise CheckFailed(message, hint=f"give it more, such as --pvc-size {needed}Gi")
    for body in (*([objects.claim] if is_new else []), *objects.others, objects.job):
        try:
            cluster.create(body, run.namespace, dry_run=True)
        except ApiError as error:
            # A webhook with side effects cannot take part in a dry run.
            if "dry run" not in str(error):
                raise


def _make_job(cluster: Cluster, run: Run, objects: Objects, creation: Creation) -> Manifest:
    """Create the Job and what it needs, which it then owns."""
    others = [(f"{body['apiVersion']}/{body['kind']}", creation.create(body)) for body in objects.others]
    job = creation.create(objects.job)
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": run.job, "uid": job["metadata"]["uid"]}
    for kind, body in others:
        change = {"metadata": {"ownerReferences": [owner]}}
        cluster.patch(kind, body["metadata"]["name"], run.namespace, change)
    return job
