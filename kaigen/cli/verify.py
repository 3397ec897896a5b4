"""`kaigen verify`: whether artifacts in a registry, or the rendered output, are those that were signed."""

from __future__ import annotations

from pathlib import Path

import click

from kaigen.cli.console import Console
from kaigen.cli.options import read_configs, require_repository
from kaigen.cli.sign import artifact_of, output_folders
from kaigen.core.text import plural
from kaigen.files import read_file
from kaigen.oci.signature import Claim, verify_artifact
from kaigen.signing.bundle import SignatureInvalid
from kaigen.signing.tree import FILE_NAME, check_tree, digests_of
from kaigen.system.lazy_import import lazy_imports
from kaigen.system.limits import GENERATED_FILE_BYTES

with lazy_imports():
    from kaigen.signing import keys


@click.command("verify")
@click.argument("artifacts", nargs=-1, metavar="[oci://…]...")
@click.option(
    "--key",
    "paths",
    type=click.Path(path_type=Path, dir_okay=False),
    required=True,
    multiple=True,
    metavar="FILE",
    help="Public key, in PEM; can be repeated: one of them must have signed.",
)
@click.option(
    "--name",
    metavar="HOST/REPOSITORY",
    help="Repository that the signature must be for, such as the original of a copy. Default: that of the artifact.",
)
@click.option(
    "--tag",
    metavar="TAG",
    help="Tag that the signature must be for. Default: that of the artifact, if the signature has tags.",
)
@click.option("--plain-http", is_flag=True, help="Connect to remote registries without TLS.")
@click.pass_obj
def command(
    console: Console,
    artifacts: tuple[str, ...],
    paths: tuple[Path, ...],
    name: str | None,
    tag: str | None,
    plain_http: bool,
) -> None:
    """Verify the signatures of artifacts, or of the rendered output.

    Exits with 1 if an artifact has no signature of the keys for its repository and tag. Signatures without a name or
    tags, such as those of cosign, are valid for each, unless --name or --tag is given. Without an artifact, compares
    every file of the rendered output, of all environments, with `kaigen.sigstore.json`: a file that is missing, new or
    different fails.

    Take the keys from a place that a pull request cannot change.
    """
    for option, value in (("--name", name), ("--tag", tag)):
        if value == "":
            raise click.UsageError(f"{option} is empty")
        if value is not None and len(artifacts) != 1:
            raise click.UsageError(f"{option} requires exactly one artifact")
    expected = Claim(name or "", (tag,) if tag else ())
    public = [keys.read_public_key(path) for path in paths]
    for text in artifacts:
        reference, digest = artifact_of(text)
        found = verify_artifact(reference, digest, public, expected=expected, plain_http=plain_http)
        console.out(f"verified {reference} {found}")
    if artifacts:
        return
    configs = read_configs("")
    require_repository(configs[0])
    root, folders = configs[0].root, output_folders(configs)
    bundle = read_file(root / FILE_NAME, root, GENERATED_FILE_BYTES, "run `kaigen sign`")
    if bundle is None:
        raise SignatureInvalid(f"there is no {FILE_NAME}", hint="run `kaigen sign`")
    digests = digests_of(root, folders)
    check_tree(bundle, public, digests, folders)
    console.say(f"verified {plural(len(digests), 'file')} of {', '.join(folders)}")
