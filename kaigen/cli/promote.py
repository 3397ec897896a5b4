"""`kaigen promote`: promote revisions and images between environments."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click
from msgspec import to_builtins

from kaigen.cli.console import Console, table
from kaigen.cli.options import address_options
from kaigen.config.load import find_root, load_config
from kaigen.diagnostics.errors import InputError
from kaigen.promote import plan_promotion
from kaigen.system.lazy_import import lazy_imports

if TYPE_CHECKING:
    from kaigen.config.settings import Config
    from kaigen.promote import Move, Promotion

with lazy_imports():
    from kaigen import commit_promotion, rollouts
    from kaigen.cli import gates
    from kaigen.cluster import connect
    from kaigen.diff import text as diff_text
    from kaigen.gates import verdicts
    from kaigen.scaffold import changes as scaffold_changes


@click.command("promote")
@click.argument("apps", nargs=-1, metavar="[APP]...")
@click.option("--from", "source", default="", metavar="ENV", help="Environment to promote from.")
@click.option("--to", "target", default="", metavar="ENV", help="Environment to promote to.")
@click.option("--weight", type=click.IntRange(0, 100), metavar="PERCENT", help="Requests that the canary of APP gets.")
@click.option("--finish", is_flag=True, help="Make the canary of APP the version that serves.")
@click.option("--commit", default="", metavar="GITREF", help="Promote the specs of this commit, also an older one.")
@click.option("--hold", is_flag=True, help="Keep the apps at their commits until they are promoted by name.")
@click.option("--dry-run", is_flag=True, help="Print what would change; write nothing.")
@click.option("--skip", is_flag=True, help="Allow promotions that skip the order of `promotion` in kaigen.yaml.")
@click.option("--from-cluster", is_flag=True, help="Read the reports of the gates of --from from its cluster first.")
@address_options
@click.option("--output", "-o", type=click.Choice(["text", "json"]), default="text", help="Output format.")
@click.pass_obj
def command(
    console: Console,
    apps: tuple[str, ...],
    source: str,
    target: str,
    weight: int | None,
    finish: bool,
    commit: str,
    hold: bool,
    dry_run: bool,
    skip: bool,
    from_cluster: bool,
    context: str,
    kubeconfig: str,
    output: str,
) -> None:
    """Promote revisions and images, or whole specs, from one environment to another.

    Promotes each APP (default: all apps, and kaigen's own images that they use) by writing pins/ENV.yaml of the
    target environment, to be reviewed and committed. Pinned values override the specs until the next promotion.

    To an environment with `follows: commits` it promotes the commits of specs, and prints what changes in the objects.
    --commit and --hold are for these environments: a rollback is the promotion of an older commit.

    If the environment of --from has gates, which are Jobs with `workload: benchmark` or `evaluate`, their reports in
    `reports/ENV` must be about what it runs now and have passed. Otherwise the command prints them, writes no pins and
    exits with 1.

    With --weight or --finish it changes the `canary` of one Topology in its file, to be reviewed and committed. More
    requests need the gates that judge the canary: those of --from, by default the first environment.
    """
    here = Path.cwd()
    root = Path() if (found := find_root(here)) == here else found
    if weight is not None or finish:
        if len(apps) != 1 or target or commit or hold or skip or (finish and weight is not None):
            raise click.UsageError("--weight or --finish needs one APP, and excludes --to, --commit, --hold and --skip")
        config = load_config(root, source)
        if not source and config.environments:
            config = load_config(root, next(iter(config.environments)))
        _move_canary(console, config, apps[0], weight, (from_cluster, context, kubeconfig), dry_run, output)
        return
    if not target:
        raise click.UsageError("give --to, or --weight or --finish for the canary of a Topology")
    if not (source or commit or hold) or (source and commit):
        raise click.UsageError("give --from, or --commit or --hold for an environment with `follows: commits`")
    promotion: Promotion
    if load_config(root, target).follows_commits:
        request = commit_promotion.Request(target, source, apps, commit, hold, skip)
        promotion = commit_promotion.plan_commit_promotion(root, request)
    elif commit or hold:
        hint = f"set `environments.{target}.follows: commits` in kaigen.yaml"
        raise InputError.of("KG0714", f"`{target}` follows the specs, not commits", hint=hint)
    else:
        promotion = plan_promotion(root, source, target, apps, skip=skip)
    if promotion.diagnostics and console.verbosity >= 0:
        console.report(promotion.diagnostics)
        console.say("")
    if source and promotion.text is not None:
        refused = f"so nothing is promoted to {target}"
        _pass_gates(console, load_config(root, source), refused, apps, (from_cluster, context, kubeconfig))
    if not dry_run:
        promotion.write()
    if output == "json":
        _json(console, promotion, source, target, dry_run)
    else:
        _text(console, promotion, source or "this clone", target, dry_run)


def _move_canary(
    console: Console,
    config: Config,
    app: str,
    weight: int | None,
    address: tuple[bool, str, str],
    dry_run: bool,
    output: str,
) -> None:
    """Change the weight of a canary, or make it the version that serves."""
    change = rollouts.plan_finish(config, app) if weight is None else rollouts.plan_weight(config, app, weight)
    if change.raises:
        refused = f"so {change.app} stays at {change.old} %"
        _pass_gates(console, config, refused, (change.pool,), address)
    if not dry_run:
        scaffold_changes.write_changes([change.file])
    if output == "json":
        data = {
            "app": change.app,
            "file": change.file.path.as_posix(),
            "pool": change.pool,
            "from": change.old,
            "weight": change.new,
            "finished": change.finished,
            "removed": change.removed,
            "written": change.file.action == "change" and not dry_run,
        }
        console.out(json.dumps(data, indent=2, ensure_ascii=False))
        return
    for line in change.file.diff():
        console.out(line)
    if change.finished:
        done = f"{change.pool} serves {change.app}, and its pods stay; {change.removed} goes"
    elif change.file.action == "keep":
        done = f"{change.pool} gets {change.new} % of the requests already"
    else:
        done = f"{change.pool} gets {change.new} % of the requests to {change.app}, before {change.old} %"
    console.say(f"{done}{', not written' if dry_run else ''}")


def _pass_gates(
    console: Console, config: Config, refused: str, apps: tuple[str, ...], address: tuple[bool, str, str]
) -> None:
    """Check that the gates of the source have passed, and print their reports if not."""
    from_cluster, context, kubeconfig = address
    found = verdicts.find_gates(config, apps)
    if from_cluster and found:
        judged = verdicts.collect_reports(config.root, found, connect.connect(context, kubeconfig))
    else:
        judged = verdicts.read_verdicts(config.root, found)
    if all(each.passed for each in judged):
        return
    console.write(gates.render_verdicts([each for each in judged if not each.passed]))
    count = sum(not each.passed for each in judged)
    of = f" of {config.environment}" if config.environment else ""
    console.say(f"{count} of {len(judged)} gates{of} have not passed, {refused}")
    if any(each.state in ("missing", "outdated") for each in judged):
        environment = f" --env {config.environment}" if config.environment else ""
        console.say(f"wait for their Jobs, then run: kaigen gates{environment} --from-cluster")
    raise click.exceptions.Exit(1)


def _text(console: Console, promotion: Promotion, source: str, target: str, dry_run: bool) -> None:
    change = promotion.change if isinstance(promotion, commit_promotion.CommitPromotion) else None
    if isinstance(promotion, commit_promotion.CommitPromotion) and promotion.held:
        console.say(f"held, so not promoted: {', '.join(promotion.held)}")
    if promotion.text is None:
        console.say(f"nothing to promote: {target} equals {source}")
        return
    rows = [(move.app, move.field, _change(move)) for move in promotion.moves]
    rows += [(app, field, "dropped") for app, _, field in (name.partition(" ") for name in promotion.dropped)]
    for line in table([("APP", "FIELD", "CHANGE"), *rows]) if rows else ():
        console.out(line)
    if change is not None and change.apps:
        console.out("")
        console.write(diff_text.render_text(change, color=console.colored(err=False), width=console.width()))
    count = f"{len(rows)} {'change' if len(rows) == 1 else 'changes'}"
    console.say(f"{promotion.path}: {count} from {source}{', not written' if dry_run else '; review and commit it'}")


def _change(move: Move) -> str:
    old, new = (value[:12] if move.field == commit_promotion.COMMIT else value for value in (move.old, move.new))
    return f"{new} (now pinned)" if old == new else f"{old or '(none)'} → {new}"


def _json(console: Console, promotion: Promotion, source: str, target: str, dry_run: bool) -> None:
    data = {
        "from": source,
        "to": target,
        "file": promotion.path.as_posix(),
        "moves": [to_builtins(move) for move in promotion.moves],
        "dropped": list(promotion.dropped),
        **({"held": list(promotion.held)} if isinstance(promotion, commit_promotion.CommitPromotion) else {}),
        "written": promotion.text is not None and not dry_run,
    }
    console.out(json.dumps(data, indent=2, ensure_ascii=False))
