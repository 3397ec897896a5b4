"""`kaigen secrets`: the Secrets that apps need, and ways to create them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import click
from msgspec.structs import replace

from kaigen.cli.console import Console, table
from kaigen.cli.options import environment_option, read_one_config
from kaigen.config.block_settings import ExternalSecretsSettings
from kaigen.pipeline.app_names import check_names
from kaigen.pipeline.app_secrets import expected_secrets
from kaigen.pipeline.run import Run
from kaigen.secrets.external import external_of
from kaigen.secrets.listing import render_external, render_json, render_yaml, script

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kaigen.config.settings import Config
    from kaigen.secrets.expected import ExpectedSecret
    from kaigen.secrets.external import External


@click.command("secrets")
@click.argument("apps", nargs=-1, metavar="[APP]...")
@environment_option("the first")
@click.option(
    "--output",
    "-o",
    type=click.Choice(["table", "json", "yaml", "kubectl", "externalsecret"]),
    default="table",
    help="Output format; kubectl and externalsecret create the Secrets that are missing from the repository.",
)
@click.option(
    "--store",
    metavar="[KIND/]NAME",
    help="Store of the ExternalSecrets; KIND is ClusterSecretStore (default) or SecretStore. "
    "Default: the store in kaigen.yaml.",
)
@click.pass_obj
def command(console: Console, apps: tuple[str, ...], environment: str, output: str, store: str | None) -> None:
    """List the Secrets that apps need, with their keys.

    Lists the Secrets of each APP, `NAME` or `NAMESPACE/NAME` (default: all apps). `-o kubectl` prints a script that
    prompts for each value and creates the Secrets; no value appears in the script or on a command line.
    `-o externalsecret` prints an ExternalSecret for each.
    """
    if store is not None and output != "externalsecret":
        raise click.UsageError("--store requires -o externalsecret")
    config = read_one_config(console, environment)
    compilation = Run.load((), config, use_cache=False).compilation()
    check_names(apps, [(item.app.namespace, item.app.name) for item in compilation.apps])
    secrets = expected_secrets(compilation, apps, config.external)
    if output == "table":
        _table(console, secrets)
    elif output in {"json", "yaml"}:
        console.write(render_json(secrets) if output == "json" else render_yaml(secrets))
    else:
        todo = [secret for secret in secrets if secret.maker is None]
        if len(todo) < len(secrets):
            console.say(f"{len(secrets) - len(todo)} of {len(secrets)} skipped: something else creates them")
        if output == "kubectl":
            console.write(script(todo))
        else:
            console.write(render_external(todo, _external(config, store)))


def _table(console: Console, secrets: Sequence[ExpectedSecret]) -> None:
    if not secrets:
        console.say("the apps need no Secrets")
        return
    rows = [("NAMESPACE", "NAME", "KEYS", "TYPE", "CREATED BY", "USED BY", "SPEC")]
    for secret in secrets:
        keys = ", ".join((*secret.keys, *(["all"] if secret.whole else [])))
        maker = secret.maker.source if secret.maker else "optional" if secret.optional else "-"
        rows.append(
            (
                secret.namespace,
                secret.name,
                keys,
                secret.type.removeprefix("kubernetes.io/"),
                maker,
                ", ".join(app.removeprefix(f"{secret.namespace}/") for app in secret.apps),
                ", ".join(dict.fromkeys(_place(str(use.mark)) for use in secret.uses if use.mark)),
            )
        )
    for line in table(rows):
        console.out(line)
    missing = sum(secret.maker is None and not secret.optional for secret in secrets)
    if missing:
        console.say("")
        noun = "Secret is" if missing == 1 else "Secrets are"
        console.say(
            f"{missing} {noun} not in the repository; `kaigen secrets -o kubectl` or `-o externalsecret` creates them"
        )


def _place(mark: str) -> str:
    """The file and line without the column."""
    return mark.rpartition(":")[0] if mark.count(":") > 1 else mark


def _external(config: Config, store: str | None) -> External:
    known = external_of(config)
    if store is None:
        if known is None:
            raise click.UsageError("no store: pass --store NAME, or set `secrets.externalSecrets.store` in kaigen.yaml")
        return known
    kind, _, name = store.rpartition("/")
    store_kind: Literal["ClusterSecretStore", "SecretStore"]
    if kind in {"", "ClusterSecretStore"} and name:
        store_kind = "ClusterSecretStore"
    elif kind == "SecretStore" and name:
        store_kind = "SecretStore"
    else:
        raise click.UsageError(
            f"invalid --store {store}: use [KIND/]NAME, where KIND is ClusterSecretStore or SecretStore"
        )
    settings = config.external_secrets or ExternalSecretsSettings(store="")
    chosen = replace(settings, store=name, store_kind=store_kind)
    external = external_of(replace(config, external_secrets=chosen))
    assert external is not None
    return external
