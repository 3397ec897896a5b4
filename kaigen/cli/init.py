"""`kaigen init`: a repository of kaigen in a new folder or an existing one."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path

import click
from msgspec.structs import replace

from kaigen.cli.console import Console
from kaigen.config.load import load_config
from kaigen.scaffold.changes import FileChange, write_changes
from kaigen.scaffold.image_settings import images_to_pin, with_images
from kaigen.scaffold.place import find_place
from kaigen.scaffold.repository import plan_repository
from kaigen.scaffold.templates import CONFIG, EXAMPLES, NO_REPOSITORY, Choices

_WORDS = {"add": "added", "change": "extended", "keep": "kept"}


@click.command("init")
@click.argument("folder", metavar="[DIR]", default=".")
@click.option(
    "--profile",
    default="generic",
    show_default=True,
    metavar="NAME,...",
    help="Cluster profile: aks, eks, generic, gke, k3s or kind. ENVIRONMENT=NAME, also several, sets that of one.",
)
@click.option("--namespace", default="ml", show_default=True, help="Namespace of the apps.")
@click.option(
    "--environments",
    metavar="NAME,...",
    default="",
    help="Environments, in the order of promotion. NAME=argocd or NAME=flux selects what syncs one.",
)
@click.option("--argocd", is_flag=True, help="Write objects for Argo CD.")
@click.option("--flux", is_flag=True, help="Write objects for Flux.")
@click.option(
    "--reaper",
    is_flag=True,
    help="Add the chart of kaigen-reaper, which deletes expired pods and volumes, and objects for what syncs it.",
)
@click.option(
    "--runner",
    default="ubuntu-latest",
    show_default=True,
    metavar="LABEL,...",
    help="Labels of the runners of GitHub Actions, such as self-hosted,linux.",
)
@click.option("--force", is_flag=True, help="Replace files that exist, except README.md.")
@click.option("--dry-run", is_flag=True, help="Print what would be added; write nothing.")
@click.pass_obj
def command(
    console: Console,
    folder: str,
    profile: str,
    namespace: str,
    environments: str,
    argocd: bool,
    flux: bool,
    reaper: bool,
    runner: str,
    force: bool,
    dry_run: bool,
) -> None:
    """Create a GitOps repository.

    Writes kaigen.yaml, examples in specs/, schemas and editor settings, a pipeline and pre-commit hooks to DIR
    (default: the working folder). In an existing repository, adds what is missing: keeps the files that exist, and
    extends .gitignore, .gitattributes, editor settings and hooks. Pipeline, hooks and editor settings go to the top
    folder of the Git repository, also if DIR is below it.
    """
    root = Path(folder)
    pairs = [name.partition("=") for item in environments.split(",") if (name := item.strip())]
    syncers = {name: syncer for name, sign, syncer in pairs if sign}
    names = tuple(name for name, _, _ in pairs)
    labels = tuple(label.strip() for label in runner.split(","))
    profiles = dict(item.split("=", 1) for item in profile.split(",") if "=" in item)
    plain = [item for item in profile.split(",") if "=" not in item]
    if len(plain) > 1:
        raise click.UsageError(f"--profile names {' and '.join(plain)} for all environments; name one of them")
    everywhere = plain[0] if plain else "generic"
    choices = Choices(everywhere, namespace, argocd, flux, names, syncers, reaper, labels, profiles)
    changes = plan_repository(root, choices, force=force)
    if not dry_run:
        write_changes(changes)
        if not _lacks_repository(root, choices, changes):
            changes = _with_pins(root, changes)
    print_changes(console, changes, dry_run=dry_run)
    if dry_run:
        console.say("\nNothing written. Run it again without --dry-run.")
        return
    if all(change.action == "keep" for change in changes):
        console.say("\nNothing to add. `kaigen upgrade` updates schemas, hooks and pinned versions.")
        return
    if _lacks_repository(root, choices, changes):
        also = "; also in the files of reaper/" if reaper else ""
        console.say(f"\n{CONFIG} has no `gitops.repository`: no remote `origin` has a URL that a cluster can reach.")
        console.say(f"Set it before you render, for example to {NO_REPOSITORY}{also}.")
    where = "" if root.resolve() == Path.cwd() else f"cd {shlex.quote(folder)} && "
    console.say(f"\nNext: {where}kaigen render; then review rendered/ and commit everything.")


def _lacks_repository(root: Path, choices: Choices, changes: Sequence[FileChange]) -> bool:
    """Return whether a new kaigen.yaml says what syncs the tree, and not from where."""
    is_new = any(change.path == root / CONFIG and change.action == "add" for change in changes)
    return is_new and choices.is_synced and not find_place(root).repository


def _with_pins(root: Path, changes: list[FileChange]) -> list[FileChange]:
    """Return the changes of a new kaigen.yaml with the images that specs of the folder use already, and write these."""
    added = [change for change in changes if change.path == root / CONFIG and change.action == "add"]
    if not added or any(change.path == root / EXAMPLES[0] for change in changes):
        return changes
    environments = load_config(root).environments or ("",)
    pins = images_to_pin([load_config(root, name) for name in environments])
    if not pins:
        return changes
    pinned = with_images(root / CONFIG, pins)
    write_changes([pinned])
    return [replace(change, new=pinned.new) if change in added else change for change in changes]


def print_changes(console: Console, changes: Sequence[FileChange], *, dry_run: bool) -> None:
    """Print what happens to each file; with `dry_run`, also how existing files change."""
    for change in changes:
        word = _WORDS[change.action]
        if change.action == "change" and not (change.old and change.new.startswith(change.old)):
            word = "changed"
        console.say(f"{word:<8} {change.path.as_posix()}")
        if change.note:
            console.say("         " + change.note.rstrip("\n").replace("\n", "\n           "))
        if dry_run and change.action == "change":
            for line in change.diff():
                console.out(line)
