"""`kaigen publish`: publish the rendered output to a branch or registry."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click
from msgspec import to_builtins

from kaigen.cli.console import Console
from kaigen.cli.options import read_config, require_repository
from kaigen.config.publish import Publish
from kaigen.core.text import shown_name
from kaigen.publish.branch import PublishOptions
from kaigen.publish.plan import Requested, destination, make_plan
from kaigen.publish.results import BranchResult
from kaigen.publish.source import is_checked_out
from kaigen.system.lazy_import import lazy_imports

with lazy_imports():
    from kaigen.signing import keys

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kaigen.config.settings import Config
    from kaigen.publish.plan import Plan
    from kaigen.publish.results import ArtifactResult, TreeResult

MOST_APPS = 20
"""Most apps listed per kind of change; `-v` lists all."""


@click.command("publish")
@click.option(
    "--env",
    "environments",
    multiple=True,
    metavar="NAME",
    help="Environment in kaigen.yaml; can be repeated. Default: all.",
)
@click.option("--remote", metavar="NAME|URL", help="Git remote to push to. Default: origin.")
@click.option("--branch", metavar="NAME", help="Deploy branch; {env} is replaced. Default: deploy.")
@click.option(
    "--path",
    metavar="DIR",
    help="Folder in the branch, or . for its root; {env} is replaced. Default: the path of the output folder.",
)
@click.option("--pull-request", is_flag=True, default=None, help="Push to a new branch for review.")
@click.option(
    "--charts", metavar="oci://…", help="Push charts to this OCI repository; {env} and {namespace} are replaced."
)
@click.option(
    "--version-suffix", is_flag=True, default=None, help="Append a digest of the content to each chart version."
)
@click.option(
    "--manifests", metavar="oci://…", help="Push manifests for Flux to this OCI repository; {env} is replaced."
)
@click.option("--plain-http", is_flag=True, help="Connect to remote registries without TLS.")
@click.option("-m", "--message", default="", metavar="TEXT", help="Commit message, without trailers.")
@click.option("--sign/--no-sign", default=None, help="Sign the commit. Default: Git's commit.gpgSign.")
@click.option(
    "--sign-key",
    type=click.Path(path_type=Path, dir_okay=False),
    envvar="KAIGEN_SIGN_KEY",
    metavar="FILE",
    help="Sign charts and manifests with this private key. Default: KAIGEN_SIGN_KEY.",
)
@click.option("--allow-dirty", is_flag=True, help="Allow uncommitted changes.")
@click.option(
    "--allow-older", is_flag=True, help="Allow replacing output of a commit that this commit does not include."
)
@click.option("--dry-run", is_flag=True, help="Print what would be published; push nothing.")
@click.option("--output", "-o", type=click.Choice(["text", "json"]), default="text", help="Output format.")
@click.pass_obj
def command(
    console: Console,
    environments: tuple[str, ...],
    remote: str | None,
    branch: str | None,
    path: str | None,
    pull_request: bool | None,
    charts: str | None,
    version_suffix: bool | None,
    manifests: str | None,
    plain_http: bool,
    message: str,
    sign: bool | None,
    sign_key: Path | None,
    allow_dirty: bool,
    allow_older: bool,
    dry_run: bool,
    output: str,
) -> None:
    """Publish the rendered output to a deploy branch or an OCI registry.

    Renders every spec and commits the tree to the deploy branch of the remote, next to the files of others. With
    --charts or --manifests, pushes artifacts to a registry instead. Publishes nothing if nothing changed. Never
    forces: if the branch has moved, kaigen starts again from its new commit; if that commit is rendered from a newer
    one, kaigen stops. Does not change the working folder.
    """
    for name, value in (
        ("--remote", remote),
        ("--branch", branch),
        ("--path", path),
        ("--charts", charts),
        ("--manifests", manifests),
    ):
        if value == "":
            raise click.UsageError(f"{name} is empty")
    base = read_config()
    require_repository(base)
    settings = base.publish or Publish()
    requested = Requested(remote, branch, path, charts, manifests, version_suffix, plain_http)
    where = destination(settings, requested)
    key = keys.read_private_key(sign_key) if sign_key else None
    names = list(dict.fromkeys(environments)) or list(base.environments) or [""]
    configs: list[Config] = [read_config(name) for name in names]
    plan = make_plan(configs, where, allow_dirty=allow_dirty)
    if plan.diagnostics and console.verbosity >= 0:
        console.report(plan.diagnostics)
    options = PublishOptions(
        message=message,
        sign=settings.sign if sign is None else sign,
        pull_request=settings.pull_request if pull_request is None else pull_request,
        allow_older=allow_older,
        dry_run=dry_run,
    )
    done: list[BranchResult | ArtifactResult] = []
    try:
        for result in plan.publish(options, key=key):
            done.append(result)
            if output == "text":
                _print_result(console, plan, result)
    finally:
        # Also when a later part fails: what is published is published.
        if output == "json":
            _write_json(console, plan, done)


def _write_json(console: Console, plan: Plan, done: Sequence[BranchResult | ArtifactResult]) -> None:
    source = plan.source
    branches = [to_builtins(item) for item in done if isinstance(item, BranchResult)]
    for tree in (tree for item in branches for tree in item["trees"]):
        tree["files"] = dict(zip(("added", "changed", "removed"), tree["files"], strict=True))
    data = {
        "source": {"commit": source.commit, "repository": source.repository, "dirty": source.dirty},
        "branches": branches,
        "artifacts": [to_builtins(item) for item in done if not isinstance(item, BranchResult)],
    }
    console.out(json.dumps(data, indent=2, ensure_ascii=False))


def _print_result(console: Console, plan: Plan, result: BranchResult | ArtifactResult) -> None:
    if not isinstance(result, BranchResult):
        words = {"published": "pushed", "unchanged": "is there already:", "planned": "would push"}
        console.out(f"{words[result.status]} {result.reference} {result.digest}")
        return
    place = f"{result.branch} on {result.remote}"
    if result.status == "unchanged":
        what = "has this change already" if result.branch != result.base else "is up to date"
        console.out(f"{place} {what}" + (f" ({result.commit[:12]})" if result.commit else ""))
        return
    if result.status == "planned":
        console.out(f"would commit to {place}:")
        console.out("")
        for line in result.message.rstrip("\n").split("\n"):
            console.out(f"    {line}".rstrip())
    else:
        console.out(f"pushed {result.commit[:12]} to {place}")
        for tree in result.trees:
            for line in _lines(tree, console.verbosity > 0):
                console.out(line)
    if result.status == "proposed":
        console.out(
            f"open a pull request: {result.url}"
            if result.url
            else f"open a pull request from {result.branch} to {result.base}"
        )
    elif result.status == "published" and is_checked_out(plan.git, plan.source, result.branch):
        console.say(f"{result.branch} is checked out here; run `git pull` to update it")
    if result.attempts > 1:
        console.say(f"{result.base} moved; published after {result.attempts} attempts", level=1)


def _lines(tree: TreeResult, everything: bool) -> list[str]:
    where = shown_name(tree.path or ".")
    lines = []
    for sign, apps in (("+", tree.apps.added), ("~", tree.apps.changed), ("-", tree.apps.removed)):
        shown = [shown_name(app) for app in (apps if everything else apps[:MOST_APPS])]
        lines += [f"  {sign} {where}/{app}" if where != "." else f"  {sign} {app}" for app in shown]
        if len(shown) < len(apps):
            lines.append(f"  {sign} and {len(apps) - len(shown)} more")
    return lines
