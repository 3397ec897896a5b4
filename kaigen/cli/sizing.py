"""Options and errors that the commands of sizing share."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import click

from kaigen.diagnostics.errors import InputError
from kaigen.system.lazy_import import lazy_imports

with lazy_imports():
    from kaigen.sizing import problem


Command = Callable[..., Any]


def output_option(function: Command) -> Command:
    """`--output table|json`."""
    return click.option("--output", "-o", type=click.Choice(["table", "json"]), default="table", help="Output format.")(
        function
    )


def cloud_option(function: Command) -> Command:
    """`--cloud NAME`."""
    return click.option(
        "--cloud",
        type=click.Choice(["azure", "azure-arc", "aws", "gcp", "on-premises"]),
        help="Consider only the instance types of one cloud.",
    )(function)


def load_options(function: Command) -> Command:
    """`--context-length` and `--concurrency`."""
    function = click.option(
        "--concurrency",
        type=click.IntRange(min=1),
        metavar="N",
        help="Concurrent sequences of that length. Default: 1.",
    )(function)
    return click.option(
        "--context-length",
        type=click.IntRange(min=1),
        metavar="TOKENS",
        help="Longest sequence. Default: the longest that fits, at least 8192 or the model's limit.",
    )(function)


@contextmanager
def refusals() -> Iterator[None]:
    """Turn the error of a plan into an input error.

    Raises:
        InputError: instead of a PlanError.
    """
    try:
        yield
    except problem.PlanError as error:
        raise InputError.of(error.problem.code, str(error), hint=error.hint) from None
