"""`kaigen policies`: the rules of tenants as admission policies."""

from __future__ import annotations

import click

from kaigen.cli.console import Console
from kaigen.cli.options import environment_option, read_configs, require_repository
from kaigen.tenancy.policies import policies
from kaigen.yaml.dump import dump


@click.command("policies")
@environment_option("the first")
@click.option(
    "--engine",
    type=click.Choice(["kubernetes", "kyverno"]),
    default="kubernetes",
    help="ValidatingAdmissionPolicies of Kubernetes, or ValidatingPolicies of Kyverno.",
)
@click.pass_obj
def command(console: Console, environment: str, engine: str) -> None:
    """Print the rules of tenants as admission policies.

    A cluster with these policies refuses what `kaigen validate` refuses for the tenants of kaigen.yaml. They apply to
    the namespaces of a tenant and to what its service accounts write anywhere. Apply them as an administrator.
    """
    config = read_configs(environment)[0]
    require_repository(config)
    found = policies(config.tenants, "kyverno" if engine == "kyverno" else "kubernetes")
    console.write("---\n".join(dump(body) for body in found))
    if not found:
        console.say("kaigen.yaml has no `tenants`")
