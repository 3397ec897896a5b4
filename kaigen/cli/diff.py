"""`kaigen diff`: the effect of a change, for a pull request."""

from __future__ import annotations

import click

from kaigen.cli.console import Console
from kaigen.cli.options import environment_option, override_options, read_configs, read_overrides, require_repository
from kaigen.diagnostics.errors import InputError
from kaigen.system.lazy_import import lazy_imports

with lazy_imports():
    from kaigen.cli import gates
    from kaigen.diff import markdown, structured, text
    from kaigen.environments import combined
    from kaigen.git import repository
    from kaigen.pipeline import change as changes
    from kaigen.pipeline import run


@click.command("diff")
@click.option(
    "--base",
    default="HEAD",
    show_default=True,
    metavar="GITREF",
    help="Commit or tag to compare with; for a branch, the merge base.",
)
@environment_option("all")
@override_options
@click.option("--output", "-o", type=click.Choice(["text", "markdown", "json"]), default="text", help="Output format.")
@click.option("--exit-code", is_flag=True, help="Exit with 1 if there is a change.")
@click.pass_obj
def command(
    console: Console,
    base: str,
    environment: str,
    assignments: tuple[str, ...],
    value_files: tuple[str, ...],
    output: str,
    exit_code: bool,
) -> None:
    """Show what a change does, object by object.

    Compares the current specs with the tree that is rendered at GITREF, and explains each change: a new run, pods
    that restart, a volume that is kept, a field that cannot change in place. If GITREF contains no rendered tree, its
    specs are rendered.
    """
    configs = read_configs(environment)
    require_repository(configs[0])
    commit = repository.merge_base(configs[0].root, base)
    overrides = read_overrides(assignments, value_files)
    trees = combined.for_each(configs, lambda config: run.render((), config, overrides=overrides))
    is_readable = True
    try:
        before = changes.configs_at(configs[0], commit)
    except InputError:
        console.say(f"kaigen.yaml is invalid at {base}: a change of folders is not shown, and all it allows is new")
        is_readable = False
        before = {config.environment: config for config in configs}
    if environment:
        before = {name: config for name, config in before.items() if name == environment}
    change = changes.change_since(commit, before, configs, trees, is_readable=is_readable)
    if output == "markdown":
        reports = gates.reports_section(configs)
        console.write(markdown.render_markdown(change, markdown.MAX_CHARS - len(reports)))
        console.write(reports)
    elif output == "json":
        console.write(structured.render_json(change))
    else:
        console.write(text.render_text(change, color=console.colored(err=False), width=console.width()))
    if exit_code and change.apps:
        raise click.exceptions.Exit(1)
