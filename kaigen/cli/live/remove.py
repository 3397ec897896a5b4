"""`delete` and `cleanup`: what is no longer needed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from kaigen.cli.console import Console
from kaigen.cli.live.flavor import Flavor
from kaigen.cli.live.session import Session, all_option, cluster_options
from kaigen.diagnostics.errors import CheckFailed, SystemFailure
from kaigen.system.lazy_import import lazy_imports

if TYPE_CHECKING:
    from kaigen.kubernetes.manifest import Manifest

with lazy_imports():
    from kaigen.kubernetes import metadata_keys, runs
    from kaigen.ops import cleanup as ops_cleanup
    from kaigen.ops import helper as ops_helper
    from kaigen.ops import jobs as ops_jobs


def commands(flavor: Flavor) -> list[click.Command]:
    """Return the commands."""
    return [_delete(flavor), _cleanup(flavor)]


def _delete(flavor: Flavor) -> click.Command:
    @click.pass_obj
    def delete(
        console: Console, /, name: str, pvc_name: str, keep_pvc: bool = False, delete_pvc: bool = False, **where: Any
    ) -> None:
        session = Session(console, flavor, **where)
        deletes_volume = delete_pvc or not (flavor.keeps_pvc or keep_pvc)
        job = session.find_job(name)
        if job is None:
            # The volume outlives its Job, and one of `copy-file` is there before it.
            if not (deletes_volume and _delete_own_volume(session, name, pvc_name)):
                _report_missing(session, name)
            return
        metadata = job["metadata"]
        if syncer := runs.tracked_by(job):
            raise CheckFailed(f"Job {name} is managed by {syncer}", hint="delete its spec from the repository")
        if not deletes_volume:
            ops_cleanup.keep_lifetimes(session.cluster, job)
        session.cluster.delete(ops_jobs.JOB, metadata["name"], session.namespace, uid=metadata["uid"])
        console.out(f"job.batch/{metadata['name']} deleted")
        if deletes_volume:
            _delete_volumes(session, name, job, pvc_name)
        elif flavor.keeps_pvc and (kept := sorted(ops_helper.claims_of(job["spec"]["template"]))):
            again = session.command("delete", name, "--delete-pvc")
            console.say(f"persistentvolumeclaim/{', '.join(kept)} stays until it expires; delete it with: {again}")

    if flavor.keeps_pvc:
        option = click.option("--delete-pvc", is_flag=True, help="Delete the volume, too.")
        about = "Delete a Job and its pods; the volume stays."
    else:
        option = click.option("--keep-pvc", is_flag=True, help="Keep the volume.")
        about = "Delete a Job, its pods, and the volume that was created for it."
    named = click.option("--pvc-name", default="", metavar="NAME", help="Volume. Default: that of the Job.")
    function = click.argument("name")(cluster_options(option(named(delete))))
    return click.command("delete", help=about)(function)


def _report_missing(session: Session, name: str) -> None:
    """Raise that there is no Job of a name, and how to delete the volume that it left.

    Raises:
        CheckFailed: in any case.
    """
    claim = f"artifacts-{name}"
    found = session.cluster.find(ops_helper.CLAIM, claim, session.namespace) if session.flavor.keeps_pvc else None
    if found is not None and _owner(found) == session.flavor.job(name):
        again = session.command("delete", name, "--delete-pvc")
        hint = f"its PersistentVolumeClaim {claim} is left; delete it with: {again}"
        raise CheckFailed(f'Job "{name}" not found in namespace {session.namespace}', hint=hint)
    session.job(name)


def _owner(claim: Manifest) -> str:
    """Return the name of the Job for which a volume was created; empty if no live command did."""
    return str((claim["metadata"].get("annotations") or {}).get(metadata_keys.RUN, ""))


def _delete_own_volume(session: Session, name: str, pvc_name: str) -> bool:
    """Delete the volume of a name that has no Job, and return whether there is one.

    Raises:
        CheckFailed: it belongs to another Job, or a syncer manages it.
    """
    claim = pvc_name or f"artifacts-{name}"
    found = session.cluster.find(ops_helper.CLAIM, claim, session.namespace)
    if found is None or "deletionTimestamp" in found["metadata"]:
        return False
    if _owner(found) != session.flavor.job(name):
        raise CheckFailed(f"PersistentVolumeClaim {claim} was not created for Job {name}")
    if syncer := runs.tracked_by(found):
        raise CheckFailed(f"PersistentVolumeClaim {claim} is managed by {syncer}")
    session.cluster.delete(ops_helper.CLAIM, claim, session.namespace, uid=found["metadata"]["uid"])
    session.console.out(f"persistentvolumeclaim/{claim} deleted")
    return True


def _delete_volumes(session: Session, name: str, job: Manifest, pvc_name: str) -> None:
    """Delete the volume that was named, or those that were created for the Job."""
    for claim in [pvc_name] if pvc_name else sorted(ops_helper.claims_of(job["spec"]["template"])):
        found = session.cluster.find(ops_helper.CLAIM, claim, session.namespace)
        if found is None:
            session.console.say(f"PersistentVolumeClaim {claim} not found")
            continue
        if not pvc_name and _owner(found) != job["metadata"]["name"]:
            session.console.say(f"PersistentVolumeClaim {claim} was not created for Job {name}; it stays")
            continue
        session.cluster.delete(ops_helper.CLAIM, claim, session.namespace, uid=found["metadata"]["uid"])
        session.console.out(f"persistentvolumeclaim/{claim} deleted")


def _cleanup(flavor: Flavor) -> click.Command:
    @click.command(
        "cleanup",
        help="Delete the volumes whose TTL is over, as kaigen-reaper does. Volumes of Argo CD and Flux, and volumes "
        "that a pod uses, stay.",
    )
    @cluster_options
    @all_option
    @click.option("--dry-run", is_flag=True, help="Only print what would be deleted.")
    @click.pass_obj
    def command(console: Console, /, dry_run: bool, everywhere: bool, **where: Any) -> None:
        session = Session(console, flavor, everywhere=everywhere, **where)
        deleted = skipped = failed = 0
        for item in ops_cleanup.decisions(session.cluster, session.namespaces):
            if item.kept_because:
                skipped += 1
                console.say(f"persistentvolumeclaim/{item.name} kept: {item.kept_because}", level=1)
                continue
            try:
                if not dry_run:
                    ops_cleanup.delete(session.cluster, item)
            except SystemFailure as error:
                failed += 1
                console.failure(error)
                continue
            deleted += 1
            note = " (dry run)" if dry_run else ""
            console.out(f"persistentvolumeclaim/{item.name} deleted from {item.namespace}{note}")
        console.say(f"Summary: {deleted} PVC(s) deleted, {skipped} skipped" + (f", {failed} failed" if failed else ""))
        if failed:
            raise SystemFailure(f"{failed} volumes could not be deleted")

    return command
