"""`kaigen promote`: what one environment runs becomes what the next one runs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from kaigen.cli.console import Console, table

if TYPE_CHECKING:
    from kaigen.promote.promotion import Promotion


@click.command("promote")
@click.argument("apps", nargs=-1, metavar="[APP]...")
@click.option("--from", "source", required=True, metavar="ENV", help="Environment that has been tried.")
@click.option("--to", "target", required=True, metavar="ENV", help="Environment that gets the same.")
@click.option("--dry-run", is_flag=True, help="Say what would change; write nothing.")
@click.option("--skip", is_flag=True, help="Allow other steps than those of `promotion` in kaigen.yaml.")
@click.option("--output", "-o", type=click.Choice(["text", "json"]), default="text", help="How it is told.")
@click.pass_obj
def command(
    console: Console,
    apps: tuple[str, ...],
    source: str,
    target: str,
    dry_run: bool,
    skip: bool,
    output: str,
) -> None:
    """Move revisions and images from one environment to another.

    Of each APP, or of all with those of kaigen's own images that they use. They are written to pins/ENV.yaml of the
    environment that gets them, to be reviewed and committed: an environment with pins keeps what it runs, whatever
    the specs say, until the next promotion.
    """
    from kaigen.config.load import find_root
    from kaigen.promote.promotion import plan_promotion

    here = Path.cwd()
    root = find_root(here)
    promotion = plan_promotion(Path() if root == here else root, source, target, apps, skip=skip)
    if promotion.diagnostics and console.verbosity >= 0:
        console.report(promotion.diagnostics)
        console.say("")
    if not dry_run:
        promotion.write()
    if output == "json":
        _json(console, promotion, source, target, dry_run)
    else:
        _text(console, promotion, source, target, dry_run)


def _text(console: Console, promotion: Promotion, source: str, target: str, dry_run: bool) -> None:
    if promotion.text is None:
        console.say(f"{target} has what {source} has: nothing to promote")
        return
    rows = [
        (
            move.app,
            move.field,
            f"{move.new} (now pinned)" if move.old == move.new else f"{move.old or '(none)'} → {move.new}",
        )
        for move in promotion.moves
    ]
    rows += [(app, field, "dropped") for app, _, field in (name.partition(" ") for name in promotion.dropped)]
    for line in table([("APP", "FIELD", "CHANGE"), *rows]):
        console.out(line)
    count = f"{len(rows)} {'change' if len(rows) == 1 else 'changes'}"
    console.say(
        f"{promotion.path}: {count} from {source}, {'not written' if dry_run else 'to be reviewed and committed'}"
    )


def _json(console: Console, promotion: Promotion, source: str, target: str, dry_run: bool) -> None:
    import json
    from dataclasses import asdict

    told = {
        "from": source,
        "to": target,
        "file": promotion.path.as_posix(),
        "moves": [asdict(move) for move in promotion.moves],
        "dropped": list(promotion.dropped),
        "written": promotion.text is not None and not dry_run,
    }
    console.out(json.dumps(told, indent=2, ensure_ascii=False))
