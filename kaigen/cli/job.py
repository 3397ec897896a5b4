"""`kaigen job`: Jobs that run now, on a live cluster."""

from __future__ import annotations

import click

from kaigen.cli.live import create, debug, files, remove, show
from kaigen.cli.live.flavor import KAIGEN, Flavor
from kaigen.cli.main import output_options

_ORDER = ("create", "list", "get", "watch", "logs", "events", "cp", "fetch", "copy-file", "debug", "delete", "cleanup")


class _Ordered(click.Group):
    """A group that lists its commands as a run uses them."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_ORDER)


def _describe_namespace(command: click.Command, flavor: Flavor) -> None:
    """Name the default namespace of a flavor in the help of a command."""
    for option in command.params:
        if isinstance(option, click.Option) and option.name == "namespace" and flavor.namespace:
            lists = command.name in ("list", "cleanup") and flavor.lists_all
            option.help = f"Namespace. Default: {'all' if lists else flavor.namespace}."


def group(flavor: Flavor, name: str, about: str) -> click.Group:
    """Return the commands of a flavor as one."""
    found = _Ordered(name, help=about)
    for module in (create, show, files, debug, remove):
        for command in module.commands(flavor):
            _describe_namespace(command, flavor)
            known = {parameter.name for parameter in command.params}
            command.params += [option for option in output_options() if option.name not in known]
            found.add_command(command)
    return found


command = group(
    KAIGEN,
    "job",
    "Run Jobs on a cluster, and show what they do.\n\nNeeds `pip install 'kaigen[cluster]'`. `kaigen job create` is "
    "for work that is not in Git; the other commands work with the Jobs that Argo CD or Flux synced, too.",
)
