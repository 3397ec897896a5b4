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
from kaigen.ops.archive import Entry, entries_of
from kaigen.ops.build import Objects, Run, run_objects
from kaigen.ops.helper import (
    CLAIM,
    await_gone,
    ensure_claim,
    existing_claim,
    ignore_interrupts,
    interruptible,
    mount_volume,
)
from kaigen.ops.jobs import JOB
from kaigen.ops.transfer import upload
from kaigen.system.progress import Progress

Say = Callable[[str], object]


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
    made: list[tuple[str, str]] = []
    with interruptible():
        try:
            _make_claim(cluster, run, objects, made, report, detail)
            if project is not None:
                _upload(cluster, run, config, entries, folder, report, detail, progress)
                files = sum(not entry.is_folder for entry in entries)
                report(f"{plural(files, 'file')} uploaded to {folder}")
            job = _make_job(cluster, run, objects, made)
        except BaseException:
            with ignore_interrupts():
                for kind, name in reversed(made):
                    if cluster.delete(kind, name, run.namespace):
                        detail(f"{name} deleted again")
            raise
    report(f"job.batch/{run.job} created")
    return job


def _make_claim(
    cluster: Cluster, run: Run, objects: Objects, made: list[tuple[str, str]], report: Say, detail: Say
) -> None:
    if await_gone(cluster, CLAIM, run.claim.name, run.namespace, detail):
        # Noted before the request: an interrupt may come while the server answers.
        made.append((CLAIM, run.claim.name))
    created = ensure_claim(cluster, run.namespace, objects.claim)
    report(f"persistentvolumeclaim/{run.claim.name} {'created' if created else 'exists'}")


def _upload(
    cluster: Cluster,
    run: Run,
    config: Config,
    entries: list[Entry],
    folder: str,
    report: Say,
    detail: Say,
    progress: Progress | None,
) -> None:
    purpose = f"upload-{run.name}"
    with mount_volume(cluster, run.namespace, run.claim, config, purpose=purpose, say=detail, warn=report) as mount:
        upload(mount, entries, folder, progress)


def _make_job(cluster: Cluster, run: Run, objects: Objects, made: list[tuple[str, str]]) -> Manifest:
    """Create the Job and what it needs, which it then owns."""
    others = []
    for body in objects.others:
        kind = f"{body['apiVersion']}/{body['kind']}"
        made.append((kind, body["metadata"]["name"]))
        others.append((kind, cluster.create(body, run.namespace)))
    made.append((JOB, run.job))
    try:
        job = cluster.create(objects.job, run.namespace)
    except ApiError as error:
        if error.reason == "AlreadyExists":
            made.remove((JOB, run.job))
        raise
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": run.job, "uid": job["metadata"]["uid"]}
    for kind, body in others:
        change = {"metadata": {"ownerReferences": [owner]}}
        cluster.patch(kind, body["metadata"]["name"], run.namespace, change)
    return job
