"""The command line: parses, runs, prints, and returns an exit code for every outcome."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import signal
import sys
import traceback
from collections.abc import Callable, Mapping, Sequence
from types import FrameType
from typing import TYPE_CHECKING, NoReturn

from kaigen_downloader.arguments import parser
from kaigen_downloader.errors import BadInput, Failure
from kaigen_downloader.origins import (
    bucket_source,
    checksums,
    hub_source,
    pace_of,
    patience_of,
    registry_source,
    setting,
    web_source,
)
from kaigen_downloader.text import has_status, plural, printable, redact, say

if TYPE_CHECKING:
    import argparse

    from kaigen_downloader.bucket_source import BucketFiles
    from kaigen_downloader.fetch import Order
    from kaigen_downloader.locked import Locked
    from kaigen_downloader.marker import Marker
    from kaigen_downloader.polling import Polling
    from kaigen_downloader.progress import Display
    from kaigen_downloader.remote import Source
    from kaigen_downloader.s3 import Address
    from kaigen_downloader.signature import Signed


def _dest(arguments: argparse.Namespace) -> str | Address:
    """Return the destination: a folder, or a location in a bucket."""
    options = {name: getattr(arguments, f"s3_{name}") or None for name in ("endpoint", "region", "addressing")}
    if _in_bucket(arguments.dest):
        from kaigen_downloader.s3 import address

        return address(arguments.dest, **options)
    given = [name for name, value in options.items() if value is not None]
    if given:
        raise BadInput(f"--s3-{given[0]} is for a bucket, and --dest {arguments.dest} is a folder")
    return str(arguments.dest)


def _in_bucket(dest: str) -> bool:
    return dest.startswith(("s3:", "gs:", "az:"))


def _folder(arguments: argparse.Namespace) -> str:
    """Return the folder of `wait` and `verify`."""
    if _in_bucket(arguments.dest):
        raise BadInput(f"{arguments.command} needs a folder: mount {arguments.dest} and give the mount path")
    return str(arguments.dest)


def _fetch(arguments: argparse.Namespace, env: Mapping[str, str]) -> int:
    from kaigen_downloader.fetch import fetch

    if arguments.source == "http":
        source, token = web_source(arguments, env), ""
    elif arguments.source == "s3":
        source, token = bucket_source(arguments, env, patience_of(env)), ""
        if arguments.if_complete is not None:
            return _fetch_finished(arguments, env, source)
    elif arguments.source == "oci":
        if arguments.unless is not None and os.path.exists(arguments.unless):
            say(f"{arguments.unless} exists: nothing is fetched")
            return 0
        source, token = registry_source(arguments, env), ""
    else:
        source, token = hub_source(arguments, env)
    locked = getattr(arguments, "locked", None) if arguments.source == "huggingface" else None
    shown = _display(arguments, env, source.name)
    return _stored(arguments, env, fetch, source, token, locked, shown)


def _fetch_finished(arguments: argparse.Namespace, env: Mapping[str, str], source: BucketFiles) -> int:
    """Fetch the results of a run that the bucket has, and write the file that says so.

    Of several pods with one volume, the first fetches, and the others only look.
    """
    from kaigen_downloader.fetch import fetch
    from kaigen_downloader.finished import finished, locked, write_note

    found = finished(source, arguments.identity)
    if found is None:
        return 0
    if env.get("JOB_COMPLETION_INDEX", "0") == "0":
        files = dataclasses.replace(source, only=frozenset(file.path for file in found.files))
        _stored(arguments, env, fetch, files, "", locked(found), _display(arguments, env, source.name))
    write_note(arguments.if_complete, f"already complete: {source.name}, {plural(len(found.files), 'file')}")
    return 0


def _put(arguments: argparse.Namespace, env: Mapping[str, str]) -> int:
    from kaigen_downloader.fetch import put
    from kaigen_downloader.folder import Folder
    from kaigen_downloader.local import Local

    if arguments.run_of is not None and not _of_run(arguments, env):
        return 0
    with contextlib.closing(Folder(arguments.folder)) as folder:
        shown = _display(arguments, env, arguments.folder)
        source = Local(folder, tuple(arguments.include), tuple(arguments.exclude), shown)
        return _stored(arguments, env, put, source, "", None, shown)


def _of_run(arguments: argparse.Namespace, env: Mapping[str, str]) -> bool:
    """Wait for a run of a schedule, and store its folder. Returns whether there is such a run."""
    from kaigen_downloader.job import run_at, wait_run
    from kaigen_downloader.polling import Polling

    run = run_at(arguments.run_of, env.get("JOB_NAME", ""))
    every, poll = setting(env, "KAIGEN_PROGRESS", 30.0), setting(env, "KAIGEN_POLL", 5.0)
    if not wait_run(run, arguments.left_out_after, env, Polling(arguments.run_timeout, every, poll)):
        return False
    arguments.folder = os.path.join(arguments.folder, run)
    arguments.dest = f"{arguments.dest.rstrip('/')}/{run}"
    arguments.identity = run
    return True


def _display(arguments: argparse.Namespace, env: Mapping[str, str], source: str) -> Display:
    """Return how progress is shown."""
    from kaigen_downloader.progress import display

    shown = display(arguments.progress, setting(env, "KAIGEN_PROGRESS", 10.0))
    return shown.between(source, arguments.dest)


def _metrics(port: int | None, shown: Display) -> contextlib.AbstractContextManager[None]:
    """Return the server of the metrics, if there is a port for them."""
    if port is None:
        return contextlib.nullcontext()
    from kaigen_downloader.metrics import served

    return served(port, shown)


def _signed(arguments: argparse.Namespace) -> Signed | None:
    """Return the signature that the files must have."""
    if not arguments.signed_by:
        return None
    from kaigen_downloader.signature import signed

    return signed(arguments.signed_by, arguments.signature)


def _stored(
    arguments: argparse.Namespace,
    env: Mapping[str, str],
    store: Callable[[Order], Marker],
    source: Source,
    token: str,
    locked: Locked | None,
    shown: Display,
) -> int:
    """Store the files of a source, and write the measurements."""
    from kaigen_downloader import facts, pods
    from kaigen_downloader.fetch import Order

    if arguments.facts is not None:
        facts.check_name(arguments.facts)
    order = Order(
        source=source,
        dest=_dest(arguments),
        identity=arguments.identity,
        token=token or None,
        connections=arguments.connections,
        part_size=arguments.part_size,
        timeout=arguments.timeout,
        pace=pace_of(arguments),
        patience=patience_of(env),
        progress=shown,
        keep=arguments.keep_revisions,
        derived=_derived(arguments),
        locked=locked,
        signed=_signed(arguments),
        readers=lambda names: pods.readers(names, env),
    )
    with _metrics(arguments.metrics_port, shown), facts.reported(arguments.facts, shown, env):
        marker = store(order)
    if arguments.facts is not None:
        _record(arguments.facts, marker, env, facts.url_of(arguments.dest, arguments.s3_endpoint))
    return 0


def _record(name: str, marker: Marker, env: Mapping[str, str], url: str = "") -> None:
    """Write what was measured to a ConfigMap, or report why not."""
    from kaigen_downloader import facts

    try:
        say(facts.write(name, facts.data(marker, url), env))
    except facts.FactsNotWritten as error:
        say(f"warning: facts not written: {error}")


def _derived(arguments: argparse.Namespace) -> str | None:
    """Return the folder of derived files."""
    if arguments.derived is not None and arguments.keep_revisions is None:
        raise BadInput("--derived is for --keep-revisions")
    return str(arguments.derived) if arguments.derived is not None else None


def _wait(arguments: argparse.Namespace, env: Mapping[str, str]) -> int:
    from kaigen_downloader.watch import wait

    wait(_folder(arguments), arguments.identity, _polling(arguments, env, poll=2.0))
    return 0


def _wait_files(arguments: argparse.Namespace, env: Mapping[str, str]) -> int:
    from kaigen_downloader.uploads import Uploads

    sums = checksums(arguments, arguments.file)
    uploads = Uploads(_folder(arguments), arguments.file, sums, setting(env, "KAIGEN_SETTLE", 5.0))
    uploads.wait(_polling(arguments, env, poll=2.0))
    return 0


def _wait_job(arguments: argparse.Namespace, env: Mapping[str, str]) -> int:
    from kaigen_downloader.job import KINDS, wait_job

    wait_job(KINDS[arguments.kind], arguments.name, env, _polling(arguments, env, poll=5.0))
    return 0


def _find_image(arguments: argparse.Namespace, env: Mapping[str, str]) -> int:
    from kaigen_downloader.find import find_image
    from kaigen_downloader.registry import Registry, login_of, parse

    reference = parse(arguments.ref)
    login = login_of(env.get("REGISTRY_AUTH", ""), reference.host)
    find_image(Registry(reference, login, plain=arguments.plain_http), arguments.write, patience_of(env))
    return 0


def _polling(arguments: argparse.Namespace, env: Mapping[str, str], *, poll: float) -> Polling:
    from kaigen_downloader.polling import Polling

    return Polling(
        timeout=arguments.timeout, every=setting(env, "KAIGEN_PROGRESS", 30.0), poll=setting(env, "KAIGEN_POLL", poll)
    )


def _verify(arguments: argparse.Namespace, env: Mapping[str, str]) -> int:
    from kaigen_downloader.watch import verify

    report = verify(_folder(arguments), arguments.identity, full=arguments.full)
    for line in report.lines():
        print(printable(line))
    if report.good and report.marker is not None and arguments.facts is not None:
        _record(arguments.facts, report.marker, env)
    return 0 if report.good else 1


def main(argv: Sequence[str], env: Mapping[str, str]) -> int:
    """Run one command.

    Args:
        argv: the arguments without the program's name.
        env: the environment.

    Returns:
        The exit code.
    """
    commands = {
        "fetch": _fetch,
        "put": _put,
        "wait": _wait,
        "wait-files": _wait_files,
        "wait-job": _wait_job,
        "find-image": _find_image,
        "verify": _verify,
    }
    try:
        arguments = parser().parse_args(argv)
        if arguments.skip_if is not None and os.path.exists(arguments.skip_if):
            say(f"{arguments.skip_if} exists: nothing to do")
            return 0
        return commands[arguments.command](arguments, env)
    except Failure as error:
        say(f"error: {error}")
        return error.code
    except Exception:
        sys.stderr.write(redact(traceback.format_exc()))
        say("error: this is a bug in kaigen-downloader")
        return 1


def _end(number: int, _: FrameType | None) -> NoReturn:
    # What is on the disk is at any moment such that the next run goes on from it: nothing to tidy up.
    prefix = b"\n" if has_status() else b""
    os.write(2, prefix + b"terminated; the next run goes on from what is here\n")
    os._exit(128 + number)


def run() -> NoReturn:
    """Run the program."""
    os.umask(0o022)  # pods of other users read the model
    signal.signal(signal.SIGTERM, _end)
    signal.signal(signal.SIGINT, _end)
    code = main(sys.argv[1:], os.environ)
    sys.stdout.flush()
    # Threads that sit in a connect do not keep the process.
    os._exit(code)
