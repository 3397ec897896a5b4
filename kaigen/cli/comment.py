"""`kaigen comment`: one comment in a pull request, updated by every run of its pipeline."""

from __future__ import annotations

import os
from pathlib import Path

import click

from kaigen.cli.console import Console
from kaigen.diff.comment import update_comment
from kaigen.diff.forge import find_forge


@click.command("comment")
@click.argument("file", metavar="FILE")
@click.option(
    "--name", default="", metavar="NAME", help="Name of the comment, to keep several, such as one per environment."
)
@click.option("--only-update", is_flag=True, help="Update an existing comment; create none.")
@click.pass_obj
def command(console: Console, file: str, name: str, only_update: bool) -> None:
    """Create or update a comment in a pull request.

    Posts the Markdown in FILE, such as the output of `kaigen diff -o markdown`, to the pull request on GitHub or the
    merge request on GitLab that the pipeline runs for. Later runs update the same comment; comments of other users
    than that of the token stay as they are. A run that is older than the base or the commits of the pull request writes
    nothing. Reads the pipeline's variables; requires GITHUB_TOKEN on GitHub and KAIGEN_GITLAB_TOKEN on GitLab.
    """
    text = Path(file).read_text(encoding="utf-8")
    done = update_comment(find_forge(os.environ), text, name=name, only_update=only_update)
    console.out(f"comment: {done}")
    if done == "outdated":
        console.say("the pull request has another base or other commits now; its newest run writes the comment")
