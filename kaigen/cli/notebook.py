"""`kaigen notebook`: Notebooks of a live cluster, and the step from a Notebook to a Job."""

from __future__ import annotations

import click

from kaigen.cli.main import output_options
from kaigen.cli.notebooks import manage, promotion, work

_COMMANDS = (
    work.open_notebook,
    manage.list_notebooks,
    manage.suspend,
    manage.resume,
    work.sync,
    promotion.promote,
    manage.delete,
)


class _Ordered(click.Group):
    """A group that lists its commands as a user needs them."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [str(each.name) for each in _COMMANDS]


@click.group("notebook", cls=_Ordered)
def command() -> None:
    """Open Notebooks of a cluster, and turn them into Jobs.

    Needs `pip install 'kaigen[cluster]'`, except for `promote`. All commands also work with Notebooks that Argo CD or
    Flux synced, except those that would change them: those changes belong into Git.
    """


for each in _COMMANDS:
    known = {parameter.name for parameter in each.params}
    each.params += [option for option in output_options() if option.name not in known]
    command.add_command(each)
