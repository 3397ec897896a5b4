"""`kaigen build`: what images are built from."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import click

from kaigen.cli.console import Console
from kaigen.cli.main import output_options
from kaigen.cli.options import read_config
from kaigen.contexts.artifact import LARGEST, Packed, Pushed, pack, plan_push, push, target
from kaigen.contexts.folder import find_secret_files, read_folder
from kaigen.contexts.spec_build import SpecBuild, read_build
from kaigen.core.text import plural
from kaigen.diff.formatting import size_text
from kaigen.environments.builds import default_repository
from kaigen.kubernetes.quantities import units
from kaigen.scaffold.changes import write_changes

if TYPE_CHECKING:
    from kaigen.oci.reference import Reference

_DOCKERFILE = "Dockerfile"


@click.group("build")
def command() -> None:
    """Push folders that images are built from.

    `kaigen render` builds the manifests of specs.
    """


def _size(_context: click.Context, _option: click.Parameter, value: str) -> int:
    found = units(value)
    if found is None or found <= 0:
        raise click.BadParameter(f"`{value}` is not a size such as 500Mi")
    return found


@command.command("push")
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
@click.option("--to", "repository", metavar="REGISTRY/REPOSITORY[:TAG]", help="Where to push the folder.")
@click.option(
    "--spec",
    "file",
    metavar="FILE",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Write the digest into the `build` of this spec. The repository of its image is the default of --to.",
)
@click.option(
    "--dockerfile",
    metavar="PATH",
    help="Path of the Dockerfile in the folder. Default: that of the spec, or Dockerfile.",
)
@click.option(
    "--max-size",
    "largest",
    default=f"{LARGEST >> 20}Mi",
    show_default=True,
    callback=_size,
    metavar="SIZE",
    help="Largest size of all files.",
)
@click.option("--plain-http", is_flag=True, help="Connect to a remote registry without TLS.")
@click.option("--dry-run", is_flag=True, help="Print the digest; push and write nothing.")
@click.option("--output", "-o", type=click.Choice(["text", "json"]), default="text", help="Output format.")
@click.pass_obj
def push_folder(
    console: Console,
    folder: Path,
    repository: str | None,
    file: Path | None,
    dockerfile: str | None,
    largest: int,
    plain_http: bool,
    dry_run: bool,
    output: str,
) -> None:
    """Push a folder to a registry, for `build: {artifact: …}` of a spec.

    Packs the files in DIR that .dockerignore (or DOCKERFILE.dockerignore) does not exclude, by Docker's rules, and not
    .git. The same files have the same digest on every machine. Prints the reference with the digest. Without a tag in
    --to, the tag is made of the digest. Warns about files that look like credentials.

    Credentials are those of `docker login` or `helm registry login`.
    """
    spec = read_build(file) if file is not None else None
    where = _where(repository, spec)
    entries = read_folder(folder, dockerfile or (spec.dockerfile if spec else "") or _DOCKERFILE)
    warnings = [*find_secret_files(entries)]
    if warnings and console.verbosity >= 0:
        console.report(warnings)
    with tempfile.TemporaryFile() as archive:
        packed = pack(entries, archive, largest)
        result = plan_push(packed, where)
        # Before the push: a spec that cannot be changed is found early.
        change = spec.with_artifact(result.reference) if spec is not None else None
        if not dry_run:
            result = push(packed, archive, where, plain_http=plain_http)
            write_changes([change] if change is not None else [])
    if output == "json":
        written = change is not None and change.action == "change" and not dry_run
        console.out(json.dumps(_data(packed, result, written=written), indent=2))
        return
    console.out(result.reference)
    done = {"published": "pushed", "unchanged": "the registry has it already:", "planned": "would push"}
    size = f"{plural(packed.files, 'file')}, {size_text(packed.bytes)}"
    console.say(f"{done[result.status]} {size}, tag {result.tag}")
    if change is None:
        console.say(f"set it in the spec as `build: {{artifact: {result.reference}}}`, or run this with --spec FILE")
    elif dry_run:
        console.say(f"would write it to {file}" if change.action == "change" else f"{file} has it already")
    else:
        console.say(
            f"wrote it to {file}; review and commit the change"
            if change.action == "change"
            else f"{file} has it already"
        )


def _where(repository: str | None, spec: SpecBuild | None) -> Reference:
    """Return where to push."""
    chosen = repository or (spec.repository if spec is not None else "")
    if not chosen and spec is not None:
        chosen = default_repository(spec.document.name or "", read_config())
    if not chosen:
        raise click.UsageError(
            "--to is missing: set it, or --spec to a spec with `build.repository`, or `builds.registry` in kaigen.yaml"
        )
    return target(chosen)


def _data(packed: Packed, result: Pushed, *, written: bool) -> dict[str, object]:
    return {
        "reference": result.reference,
        "digest": result.digest,
        "tag": result.tag,
        "status": result.status,
        "files": packed.files,
        "bytes": packed.bytes,
        "written": written,
    }


push_folder.params += [
    option for option in output_options() if option.name not in {parameter.name for parameter in push_folder.params}
]
