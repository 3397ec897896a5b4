"""The markers of tests, read from their source without running it."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator, Mapping
from typing import Any

import msgspec


class Found(msgspec.Struct, frozen=True):
    """A marker of a test.

    Attributes:
        marker: its name.
        arguments: its positional arguments.
        keywords: its other arguments.
        test: name of the test.
    """

    marker: str
    arguments: tuple[str, ...]
    keywords: Mapping[str, Any]
    test: str


def markers_in(source: str, names: Collection[str]) -> Iterator[Found]:
    """Yield the markers in a test file, also those of single cases of a test.

    Args:
        source: Python.
        names: names of the markers.

    Raises:
        ValueError: an argument is not a literal.
    """
    marks = {f"pytest.mark.{name}" for name in names}
    if not any(mark in source for mark in marks):
        return
    for function in ast.walk(ast.parse(source)):
        if not isinstance(function, ast.FunctionDef):
            continue
        for node in (node for decorator in function.decorator_list for node in ast.walk(decorator)):
            if isinstance(node, ast.Call) and ast.unparse(node.func) in marks:
                yield _found(node, function.name)


def _found(call: ast.Call, test: str) -> Found:
    return Found(
        ast.unparse(call.func).rpartition(".")[2],
        tuple(ast.literal_eval(argument) for argument in call.args),
        {keyword.arg: ast.literal_eval(keyword.value) for keyword in call.keywords if keyword.arg},
        test,
    )
