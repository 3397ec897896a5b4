"""`kaigen lock`: what the moving names of specs stand for, in `kaigen.lock`."""

from __future__ import annotations

import json
from collections.abc import Sequence

import click

from kaigen.cli.console import Console
from kaigen.cli.options import read_configs, require_repository
from kaigen.config.lock_file import lock_text
from kaigen.config.settings import LOCK_NAME, Config
from kaigen.core.text import plural
from kaigen.diff.lock import lock_changes
from kaigen.hub.client import Hub
from kaigen.lock.buckets import Buckets
from kaigen.lock.plan import LockPlan, differences, plan_lock, stale
from kaigen.lock.registries import Registries
from kaigen.lock.servers import Servers
from kaigen.scaffold.changes import FileChange, read_text, write_changes


@click.command("lock")
@click.argument("names", nargs=-1, metavar="[NAME]...")
@click.option("--upgrade", is_flag=True, help="Resolve names again that have an entry: all, or each NAME.")
@click.option(
    "--check", is_flag=True, help="Write nothing; exit with 1 if the lock is stale. Asks servers only with --upgrade."
)
@click.option("--built", is_flag=True, help="Also record the digests of images that builds have pushed.")
@click.option(
    "--images/--no-images",
    "asks_images",
    default=True,
    help="Without images, those of the lock stay, and no registry is asked about others.",
)
@click.option("--plain-http", is_flag=True, help="Connect to remote registries without TLS.")
@click.option("--output", "-o", type=click.Choice(["text", "json"]), default="text", help="Output format.")
@click.pass_obj
def command(
    console: Console,
    names: tuple[str, ...],
    upgrade: bool,
    check: bool,
    built: bool,
    asks_images: bool,
    plain_http: bool,
    output: str,
) -> None:
    """Record what branches, tags and buckets stand for in `kaigen.lock`.

    Asks the Hugging Face Hub, S3 servers, Git servers and registries about each source and image in the specs of all
    environments that has no entry yet: commit or digest, files with sizes and checksums, licence, config.json, and the
    shapes of the weights from their headers; digests of images. Weights are not downloaded. Specs do not change. Review
    and commit the file: every other command reads it, and asks no server.

    NAME is an app, a repository, a bucket, an artifact, an image, or the URL of a Git repository. The token of the Hub
    is HF_TOKEN or that of `hf auth login`; credentials of buckets are those of the AWS CLI; those of registries are of
    `docker login`; those of Git servers are of Git.
    """
    if names and not upgrade:
        raise click.UsageError("NAME requires --upgrade")
    configs = read_configs("")
    require_repository(configs[0])
    if not asks_images and (built or (check and not upgrade)):
        raise click.UsageError("--no-images cannot be combined with --built, nor with --check that asks no server")
    if built and check:
        raise click.UsageError("--built cannot be combined with --check")
    if check and not upgrade:
        _check(console, configs, output)
        return
    servers = Servers(Hub(_endpoint(configs)), Buckets(), Registries(plain_http=plain_http))
    found = plan_lock(configs, servers, names if upgrade else None, built=built, asks_images=asks_images)
    path = configs[0].root / LOCK_NAME
    old = read_text(path)
    change = FileChange(path, old, lock_text(found.new))
    if not check:
        write_changes([change])
    _report(console, found, output, written=change.action != "keep" and not check)
    if check and change.action != "keep":
        raise click.exceptions.Exit(1)


def _endpoint(configs: Sequence[Config]) -> str:
    """Return the Hub of the first environment that sets one."""
    return next((config.network.hub_endpoint or "" for config in configs if config.network is not None), "")


def _check(console: Console, configs: Sequence[Config], output: str) -> None:
    found = stale(configs)
    if output == "json":
        data = {"missing": found.missing, "unused": found.unused}
        console.out(json.dumps(data, indent=2, ensure_ascii=False))
    else:
        for title, names in (("missing", found.missing), ("unused", found.unused)):
            for name in names:
                console.out(f"{title}\t{name}")
    if found.missing or found.unused:
        console.say(f"{LOCK_NAME} is stale; `kaigen lock` updates it")
        raise click.exceptions.Exit(1)
    console.say(f"{LOCK_NAME} has every name")


def _report(console: Console, plan: LockPlan, output: str, *, written: bool) -> None:
    changes = differences(plan)
    if output == "json":
        data = {"changes": changes, "written": written}
        if plan.not_built:
            data["notBuilt"] = plan.not_built
        console.out(json.dumps(data, indent=2, ensure_ascii=False))
        return
    for line in lock_changes(plan.old, plan.new):
        console.out(line)
    for name in plan.not_built:
        console.say(f"not built yet: {name}")
    entries = plural(len(plan.new.entries) + len(plan.new.images) + len(plan.new.git), "entry", "entries")
    if written:
        console.say(f"wrote {LOCK_NAME} with {entries}; review and commit it")
    elif changes:
        console.say(f"{LOCK_NAME} would change")
    else:
        console.say(f"{LOCK_NAME} is up to date with {entries}")
