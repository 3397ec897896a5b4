"""`promote`: a Job from a Notebook."""

from __future__ import annotations

import click

from kaigen.cli.console import Console
from kaigen.cli.live.session import command_words
from kaigen.cli.options import environment_option, read_one_config
from kaigen.system.lazy_import import lazy_imports

with lazy_imports():
    from kaigen.scaffold import notebook_job


@click.command("promote")
@click.argument("name", required=False, default="")
@click.option("-f", "--filename", default="", metavar="FILE", help="File with the spec. Default: all specs.")
@environment_option("the first")
@click.option("--image", default="", metavar="IMAGE", help="Image that trains. Default: that of the Notebook.")
@click.option("--command", "words", default="", callback=command_words, metavar="COMMAND", help="Command of the image.")
@click.option("--label", default="", metavar="TEXT", help="End of the name. Default: the Git branch, or the Unix time.")
@click.pass_obj
def promote(
    console: Console, /, name: str, filename: str, environment: str, image: str, words: list[str], label: str
) -> None:
    """Write the spec of a Job that trains what was tried in a Notebook.

    Reads the spec of the Notebook in this repository, and writes `model-LABEL.yaml` next to it: the image, the base
    model and the dataset at the same paths, the resources and the parameters. Checks the new spec. What the Notebook
    does not answer, such as which of two datasets to use, is a comment in the file.
    """
    config = read_one_config(console, environment)
    paths = [filename] if filename else []
    made = notebook_job.promotion_of(config, name, paths=paths, image=image, command=words, label=label)
    notebook_job.write_promotion(made, config)
    console.out(str(made.path))
    for field in made.blank:
        console.say(f"fill in `{field}`: see the comment in {made.path}")
