"""`cp`, `fetch` and `copy-file`: files of the volume of a Job."""

from __future__ import annotations

import posixpath
import secrets
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import click

from kaigen.cli.console import Console
from kaigen.cli.live.create import inside_mount
from kaigen.cli.live.flavor import Flavor
from kaigen.cli.live.session import Session, cluster_options, size_text, transfer_line
from kaigen.core.text import plural
from kaigen.diagnostics.errors import NotFound, SystemFailure
from kaigen.system.lazy_import import lazy_imports

if TYPE_CHECKING:
    from collections.abc import Callable

    from kaigen.ops.build import Claim
    from kaigen.ops.transfer import Mount
    from kaigen.system.progress import Progress

    Say = Callable[[str], object]

with lazy_imports():
    import json

    from kaigen.cluster import execution as cluster_execution
    from kaigen.ops import archive as ops_archive
    from kaigen.ops import build as ops_build
    from kaigen.ops import cleanup as ops_cleanup
    from kaigen.ops import helper as ops_helper
    from kaigen.ops import jobs as ops_jobs
    from kaigen.ops import transfer as ops_transfer

_MOVE = 'mkdir -p -- "$(dirname -- "$2")" && mv -f -- "$1" "$2" && rm -rf -- "$3" && wc -c < "$2"'
_REMOVE = 'rm -rf -- "$1"'


def commands(flavor: Flavor) -> list[click.Command]:
    """Return the commands."""
    return [_cp(flavor), _fetch(flavor), _copy_file(flavor)]


def _pvc_option(function: Any) -> Any:
    return click.option("--pvc-name", default="", metavar="NAME", help="Volume. Default: that of the Job.")(function)


def _cp(flavor: Flavor) -> click.Command:
    @click.command(
        "cp",
        help="Copy files to or from the volume of a Job, and check the copy.\n\n"
        f"SOURCE or TARGET is JOB:PATH, with an absolute path as in the Job: "
        f"`{flavor.program} cp data my-job:/artifacts/data`. Of a folder, the content is copied. "
        "`.kaigenignore`, or else `.gitignore`, lists what an upload leaves out. Symbolic links are not downloaded.",
    )
    @click.argument("source")
    @click.argument("target")
    @cluster_options
    @_pvc_option
    @click.pass_obj
    def command(console: Console, /, source: str, target: str, pvc_name: str, **where: Any) -> None:
        session = Session(console, flavor, **where)
        (job_from, path_from), (job_to, path_to) = _split(source), _split(target)
        if bool(job_from) == bool(job_to):
            raise click.UsageError("either SOURCE or TARGET must be JOB:PATH")
        if job_from:
            _download(session, session.volume(job_from, pvc_name), path_from, Path(target), job_from)
        else:
            _upload(session, session.volume(job_to, pvc_name), Path(source), path_to, job_to)

    return command


def _split(given: str) -> tuple[str, str]:
    """Return the Job and the path of `JOB:PATH`; no Job for a local path."""
    name, colon, path = given.partition(":")
    return (name, path) if colon and path.startswith("/") and "/" not in name and name else ("", given)


def _upload(session: Session, claim: Claim, source: Path, target: str, job: str) -> None:
    inside_mount(target, "target", claim.mount_path)
    entries = ops_archive.entries_of(source)
    session.existing(claim, job)
    with _mounted(session, claim, job, "copy") as mount, transfer_line(session.console) as progress:
        folder = target
        if not source.is_dir() and not target.endswith("/") and mount.kind(target) != "folder":
            folder, name = posixpath.split(target)
            entries = ops_archive.entries_of(source, name)
        size = ops_transfer.upload(mount, entries, folder, progress)
    files = sum(not entry.is_folder for entry in entries)
    session.console.out(f"{plural(files, 'file')} ({size_text(size)}) copied to {job}:{target}")


def _download(session: Session, claim: Claim, source: str, target: Path, job: str) -> None:
    inside_mount(source, "source", claim.mount_path)
    session.existing(claim, job)
    with _mounted(session, claim, job, "copy") as mount, transfer_line(session.console) as progress:
        place = _placed(target, single=mount.kind(source) == "file")
        found = ops_transfer.download(mount, source, place, progress)
    files = plural(len(found.checksums), "file")
    session.console.out(f"{files} ({size_text(found.size)}) copied to {target}")
    if found.links:
        session.console.say(f"{found.links} symbolic links were not copied")


def _placed(target: Path, *, single: bool) -> Callable[[str], Path]:
    """Return where each file of a download goes: a single one to the target itself, unless that is a folder."""
    if single and not target.is_dir():
        return lambda name: target
    return lambda name: target / name


def _mounted(session: Session, claim: Claim, job: str, purpose: str) -> Any:
    return ops_helper.mount_volume(
        session.cluster,
        session.namespace,
        claim,
        session.config,
        purpose=f"{purpose}-{job}",
        say=lambda text: session.console.say(text, level=1),
        warn=session.console.say,
    )


def _fetch(flavor: Flavor) -> click.Command:
    @click.command("fetch", help="Download the result of a Job, or all files of its volume with --all.")
    @click.argument("name")
    @click.argument("target", default=".", type=click.Path(path_type=Path))
    @cluster_options
    @_pvc_option
    @click.option("--all", "everything", is_flag=True, help="All files of the volume.")
    @click.pass_obj
    def command(console: Console, /, name: str, target: Path, pvc_name: str, everything: bool, **where: Any) -> None:
        session = Session(console, flavor, **where)
        claim = session.volume(name, pvc_name)
        artifact = "" if everything else ops_jobs.artifact_of(session.job(name))
        try:
            _download(session, claim, artifact or claim.mount_path, target, name)
        except NotFound as error:
            raise NotFound(f"Job {name} has no result yet: {error}", hint=_whereabouts(session, name)) from None

    return command


def _whereabouts(session: Session, name: str) -> str:
    """Return how to learn why a Job has no result."""
    every = session.command("fetch", name, "--all")
    return f"see what it does: {session.command('get', name)}; or download all its files: {every}"


def _copy_file(flavor: Flavor) -> click.Command:
    @click.command(
        "copy-file",
        help="Download a file from a URL to the volume of a Job. A volume that does not exist is created, so that "
        "the file can be there before the Job.",
    )
    @click.argument("name", metavar="JOB")
    @click.argument("url")
    @cluster_options
    @_pvc_option
    @click.option(
        "--target-path", default="/artifacts/input.jpg", show_default=True, metavar="PATH", help="Path of the file."
    )
    @click.option("--pvc-size", default="1Gi", show_default=True, metavar="QUANTITY", help="Size of a new volume.")
    @click.option(
        "--storage-class",
        default=flavor.storage_class,
        metavar="NAME",
        help=f"StorageClass of a new volume. Default: {flavor.storage_class or 'that of the profile'}.",
    )
    @click.pass_obj
    def command(
        console: Console,
        /,
        name: str,
        url: str,
        pvc_name: str,
        target_path: str,
        pvc_size: str,
        storage_class: str | None,
        **where: Any,
    ) -> None:
        if urlsplit(url).scheme not in ("http", "https") or not urlsplit(url).netloc:
            raise click.UsageError("URL must start with http:// or https://")
        if ".." in target_path.split("/"):
            inside_mount(target_path, "target_path")
        session = Session(console, flavor, **where)
        # The volume of a Job that exists, be it from Git, is the one that the Job reads.
        claim = session.volume(name, pvc_name) if session.find_job(name) is not None else None
        folder = claim.mount_path if claim is not None else "/artifacts"
        path = target_path if target_path.startswith("/") else f"{folder}/{target_path}"
        inside_mount(path, "target_path", folder)
        if claim is None or pvc_name:
            claim = ops_build.Claim(pvc_name or f"artifacts-{name}", folder, pvc_size, storage_class, flavor.pvc_ttl)
            run = ops_build.Run(name, session.namespace, flavor.job(name), claim, {"image": "none"})
            body = ops_build.run_objects(run, session.config).claim
            # No Job may ever come, whose end the time of the volume would begin with.
            ops_cleanup.expire_from_now(session.cluster, body)
            if ops_helper.ensure_claim(session.cluster, session.namespace, body, console.say):
                console.out(f"persistentvolumeclaim/{claim.name} created")
        with _mounted(session, claim, name, "copy-file") as mount, transfer_line(console) as progress:
            size = mount.persist(partial(_fetch_url, mount, url, path, folder, progress, console.say))
        console.out(f"{size_text(size)} downloaded to {name}:{path}")

    return command


def _reader(progress: Progress | None, say: Say) -> Callable[[bytes], None]:
    """Return the function that reads what the downloader writes to standard error.

    Args:
        progress: receives the bytes that were downloaded.
        say: receives why it tries again.
    """
    rest = b""

    def read(data: bytes) -> None:
        nonlocal rest
        *lines, rest = (rest + data).split(b"\n")
        for line in lines:
            try:
                event = json.loads(line)
            except ValueError:
                if not line.startswith(b"error:"):
                    say(line.decode(errors="replace"))
                continue
            if progress is not None and event.get("event") == "progress":
                progress("downloading", event["bytes"], event["bytesTotal"] or event["bytes"] + 1)

    return read


def _fetch_url(mount: Mount, url: str, path: str, volume: str, progress: Progress | None, say: Say) -> int:
    """Download a file to a volume in the pod, and return its size. No shell reads the URL or the path."""
    folder, name = f"{volume}/.kaigen-{secrets.token_hex(4)}", posixpath.basename(path)
    fetch = [
        "env",
        "KAIGEN_PROGRESS=1",
        "kaigen-downloader",
        "fetch",
        "http",
        f"--file={name}={url}",
        f"--dest={folder}",
        "--identity=file",
    ]
    printed = bytearray()
    try:
        done = cluster_execution.run_command(
            mount.cluster, mount.namespace, mount.pod, fetch, stdout=printed.extend, stderr=_reader(progress, say)
        )
        if done.exit_code:
            said = done.errors or printed.decode(errors="replace").strip()
            raise SystemFailure(f"{url} could not be downloaded: {said.splitlines()[-1] if said else done.exit_code}")
        size = bytearray()
        move = ["sh", "-c", _MOVE, "sh", f"{folder}/{name}", path, folder]
        done = cluster_execution.run_command(mount.cluster, mount.namespace, mount.pod, move, stdout=size.extend)
        if done.exit_code:
            raise SystemFailure(f"{path}: {done.errors}")
        return int(size)
    except SystemFailure:
        mount.output(_REMOVE, folder)
        raise
