"""The options that select a cluster."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

Function = Callable[..., Any]


def address_options(function: Function) -> Function:
    """`--context` and `--kubeconfig`."""
    function = click.option("--kubeconfig", default="", metavar="FILE", help="Kubeconfig. Default: as kubectl.")(
        function
    )
    return click.option("--context", default="", metavar="NAME", help="Context. Default: the current one.")(function)
