"""`kaigen sign`: signatures of artifacts in a registry, or of the rendered output."""

from __future__ import annotations

from pathlib import Path

import click

from kaigen.cli.console import Console
from kaigen.cli.options import read_configs, require_repository
from kaigen.config.settings import Config
from kaigen.core.text import plural
from kaigen.oci.reference import Reference, parse_reference
from kaigen.oci.registry import Registry, digest_of
from kaigen.oci.signature import read_manifest, sign_manifest
from kaigen.scaffold.changes import FileChange, read_text, write_changes
from kaigen.signing.tree import FILE_NAME, digests_of, sign_tree
from kaigen.system.lazy_import import lazy_imports

with lazy_imports():
    from kaigen.signing import keys


@click.command("sign")
@click.argument("artifacts", nargs=-1, metavar="[oci://…]...")
@click.option(
    "--key",
    "path",
    type=click.Path(path_type=Path, dir_okay=False),
    envvar="KAIGEN_SIGN_KEY",
    required=True,
    metavar="FILE",
    help="Private key, in PEM. Default: KAIGEN_SIGN_KEY.",
)
@click.option("--plain-http", is_flag=True, help="Connect to remote registries without TLS.")
@click.pass_obj
def command(console: Console, artifacts: tuple[str, ...], path: Path, plain_http: bool) -> None:
    """Sign artifacts of a registry, or the rendered output.

    Attaches a signature to each artifact, as cosign does: Flux, cosign and `kaigen verify` verify it. It is for this
    repository and tag; sign again for another tag. Without an
    artifact, writes `kaigen.sigstore.json` next to kaigen.yaml: a signed list of every file of the rendered output, of
    all environments, with its SHA-256. Signs what is there: run `kaigen render --check` first.

    The key is ECDSA on P-256. The password of an encrypted key is read from KAIGEN_SIGN_PASSWORD.
    """
    key = keys.read_private_key(path)
    for text in artifacts:
        reference, digest = artifact_of(text)
        registry = Registry(reference, plain_http=plain_http)
        manifest = read_manifest(registry, digest or reference.tag)
        added = sign_manifest(registry, manifest, key, (reference.tag,) if reference.tag else ())
        console.out(f"{'signed' if added else 'is signed already:'} {reference} {digest_of(manifest)}")
    if artifacts:
        return
    configs = read_configs("")
    require_repository(configs[0])
    root, folders = configs[0].root, output_folders(configs)
    digests = digests_of(root, folders)
    target = root / FILE_NAME
    text = sign_tree(digests, folders, key).decode() + "\n"
    write_changes([FileChange(target, read_text(target), text)])
    console.say(f"wrote {FILE_NAME} with {plural(len(digests), 'file')}")


def artifact_of(text: str) -> tuple[Reference, str]:
    """Return repository and tag, and the digest, of `oci://HOST/REPOSITORY[:TAG][@DIGEST]`.

    Raises:
        InputError: KG0906.
    """
    name, _, digest = text.partition("@sha256:")
    reference = parse_reference(name, tag=True)
    if not reference.tag and not digest:
        reference = parse_reference(f"{reference}:latest", tag=True)
    return reference, f"sha256:{digest}" if digest else ""


def output_folders(configs: list[Config]) -> list[str]:
    """Return the output folders of all environments."""
    return sorted({config.output for config in configs})
