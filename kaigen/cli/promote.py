"""`kaigen promote`: promote revisions and images between environments."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click
from msgspec import to_builtins

from kaigen.cli.console import Console, table
from kaigen.config.load import find_root
from kaigen.promote import plan_promotion

if TYPE_CHECKING:
    from kaigen.promote import Promotion


@click.command("promote")
@click.argument("apps", nargs=-1, metavar="[APP]...")
@click.option("--from", "source", required=True, metavar="ENV", help="Environment to promote from.")
@click.option("--to", "target", required=True, metavar="ENV", help="Environment to promote to.")
@click.option("--dry-run", is_flag=True, help="Print what would change; write nothing.")
@click.option("--skip", is_flag=True, help="Allow promotions that skip the order of `promotion` in kaigen.yaml.")
@click.option("--output", "-o", type=click.Choice(["text", "json"]), default="text", help="Output format.")
@click.pass_obj
def command(
    console: Console, apps: tuple[str, ...], source: str, target: str, dry_run: bool, skip: bool, output: str
) -> None:
    """Promote revisions and images from one environment to another.

    Promotes each APP (default: all apps, and kaigen's own images that they use) by writing pins/ENV.yaml of the
    target environment, to be reviewed and committed. Pinned values override the specs until the next promotion.
    """
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
        console.say(f"nothing to promote: {target} equals {source}")
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
    console.say(f"{promotion.path}: {count} from {source}{', not written' if dry_run else '; review and commit it'}")


def _json(console: Console, promotion: Promotion, source: str, target: str, dry_run: bool) -> None:
    data = {
        "from": source,
        "to": target,
        "file": promotion.path.as_posix(),
        "moves": [to_builtins(move) for move in promotion.moves],
        "dropped": list(promotion.dropped),
        "written": promotion.text is not None and not dry_run,
    }
    console.out(json.dumps(data, indent=2, ensure_ascii=False))
