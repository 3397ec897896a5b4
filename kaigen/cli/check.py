"""`kaigen check`: plain manifests, whoever made them."""

from __future__ import annotations

import sys

import click

from kaigen.cli.console import Console
from kaigen.cli.options import checkout_folder, paths_argument, read_configs


@click.command("check")
@paths_argument
@click.option("--kubernetes", default="", metavar="VERSION", help="Target version. Default: kaigen.yaml's.")
@click.option(
    "--pod-security",
    type=click.Choice(["restricted", "baseline", "privileged"]),
    default="restricted",
    show_default=True,
    help="Pod Security level that pods must keep.",
)
@click.option("--ignore", multiple=True, metavar="CODE", help="Leave out a kind of finding, as in KG0565.")
@click.option("--strict", is_flag=True, help="Warnings fail, too.")
@click.option(
    "--passthrough", is_flag=True, help="Read standard input; print it unchanged when nothing is wrong."
)
@click.option(
    "--output",
    "-o",
    type=click.Choice(["text", "json", "sarif", "github", "gitlab", "junit"]),
    default="text",
    help="How problems are told.",
)
@click.pass_obj
def command(
    console: Console,
    paths: tuple[str, ...],
    kubernetes: str,
    pod_security: str,
    ignore: tuple[str, ...],
    strict: bool,
    passthrough: bool,
    output: str,
) -> None:
    """Check plain Kubernetes manifests, whoever made them.

    Those in PATH (default: the rendered trees; - is standard input) against the schemas of Kubernetes, Pod Security,
    and rules about names, secrets and references. Exit 1 when one finding is an error, 2 when a file cannot be read.
    With --passthrough, what helm template or kustomize build prints goes on down the pipe only when it is right.
    """
    from io import BytesIO

    from kaigen.diagnostics.report import render_report
    from kaigen.pipeline.check_manifests import check_manifests, together

    if passthrough and paths not in ((), ("-",)):
        raise click.UsageError("--passthrough reads standard input, and no other path")
    configs = read_configs()
    _check_words(kubernetes, ignore)
    if passthrough or paths:
        calls = [(configs[0], paths or ("-",))]
    else:
        calls = [(config, (str(config.root / config.output),)) for config in configs]
    data = sys.stdin.buffer.read() if "-" in calls[0][1] else b""
    checked = together(
        check_manifests(
            named, config, stdin=BytesIO(data), target=kubernetes, pod_security=pod_security, ignore=ignore
        )
        for config, named in calls
    )
    found = checked.diagnostics
    if output != "text":
        text = render_report(found, output, files=list(checked.files), folder=checkout_folder()).rstrip("\n")
        if text:
            click.echo(text, err=passthrough)
    elif found:
        console.report(found, checked.files)
    elif not passthrough:
        many = "object" if checked.objects == 1 else "objects"
        console.say(f"{checked.objects} {many}: no problems")
    if checked.unreadable:
        raise click.exceptions.Exit(2)
    if checked.failed(strict=strict):
        raise click.exceptions.Exit(1)
    if passthrough:
        sys.stdout.buffer.write(data)


def _check_words(kubernetes: str, ignore: tuple[str, ...]) -> None:
    """Refuse versions and codes that there are not.

    Raises:
        UsageError: there is one.
    """
    from kaigen.diagnostics.codes import codes
    from kaigen.diagnostics.suggest import did_you_mean
    from kaigen.kubernetes.versions import SUPPORTED_VERSIONS

    if kubernetes and kubernetes not in SUPPORTED_VERSIONS:
        known = ", ".join(SUPPORTED_VERSIONS)
        raise click.UsageError(f"no schemas of Kubernetes {kubernetes}; there are {known}")
    for code in ignore:
        if code not in codes():
            hint = did_you_mean(code, codes()) or "docs/diagnostics.md lists them"
            raise click.UsageError(f"no code {code}; {hint}")
