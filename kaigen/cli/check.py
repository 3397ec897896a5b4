"""`kaigen check`: checks of plain Kubernetes manifests."""

from __future__ import annotations

import sys
from io import BytesIO

import click

from kaigen.cli.console import Console
from kaigen.cli.options import checkout_folder, paths_argument, read_configs
from kaigen.diagnostics.codes import codes, codes_url
from kaigen.diagnostics.report import render_report
from kaigen.diagnostics.suggest import did_you_mean
from kaigen.kubernetes.schemas import SUPPORTED_VERSIONS
from kaigen.pipeline.check_manifests import check_manifests, together


@click.command("check")
@paths_argument
@click.option("--kubernetes", default="", metavar="VERSION", help="Kubernetes version. Default: as in kaigen.yaml.")
@click.option(
    "--pod-security",
    type=click.Choice(["restricted", "baseline", "privileged"]),
    default="restricted",
    show_default=True,
    help="Pod Security level of the pods.",
)
@click.option("--ignore", multiple=True, metavar="CODE", help="Ignore a diagnostic code, such as KG0565.")
@click.option("--strict", is_flag=True, help="Treat warnings as errors.")
@click.option("--passthrough", is_flag=True, help="Read standard input and print it unchanged if there is no error.")
@click.option(
    "--output",
    "-o",
    type=click.Choice(["text", "json", "sarif", "github", "gitlab", "junit"]),
    default="text",
    help="Output format.",
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
    """Check Kubernetes manifests.

    Checks the manifests in PATH (default: the rendered trees; - is standard input) against the Kubernetes schemas,
    Pod Security, and rules for names, secrets and references. Exits with 1 if there is an error, and with 2 if a file
    cannot be read. With --passthrough, the output of helm template or kustomize build is passed on only if it has no
    error.
    """
    if passthrough and paths not in ((), ("-",)):
        raise click.UsageError("--passthrough reads standard input only; do not name other paths")
    configs = read_configs()
    _check_words(kubernetes, ignore)
    if passthrough or paths:
        calls = [(configs[0], paths or ("-",))]
    else:
        calls = [(config, (str(config.root / config.output),)) for config in configs]
    data = sys.stdin.buffer.read() if "-" in calls[0][1] else b""
    checked = together(
        check_manifests(named, config, stdin=BytesIO(data), target=kubernetes, pod_security=pod_security, ignore=ignore)
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
    if kubernetes and kubernetes not in SUPPORTED_VERSIONS:
        known = ", ".join(SUPPORTED_VERSIONS)
        raise click.UsageError(f"unknown Kubernetes version {kubernetes}; known: {known}")
    for code in ignore:
        if code not in codes():
            hint = did_you_mean(code, codes()) or f"all codes: {codes_url()}"
            raise click.UsageError(f"no code {code}; {hint}")
