"""The problems that one compile step reports, and fields that have no effect where they are set.

kaigen never ignores a field silently. What reads a spec lists the fields that it understands, by their names in
documents: `port`, or `shape.nodes` for a field of a block. The name of a block contains all of its fields. Every other
field is reported, a new one too.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from typing import TypeVar

from kaigen.core.json_types import FieldPath
from kaigen.diagnostics.diagnostic import Diagnostic, Severity
from kaigen.diagnostics.problem import Problem, ProblemError
from kaigen.kinds.block import Block, document_name, set_fields

T = TypeVar("T")


class Problems:
    """Problems of one spec.

    Attributes:
        items: errors, and warnings that do not stop the compilation; their paths lead into the spec.
        diagnostics: problems that have a place of their own, such as a line of a template.
    """

    def __init__(self) -> None:
        self.items: list[Problem] = []
        self.diagnostics: list[Diagnostic] = []
        self._stopped = False

    def error(self, code: str, message: str, path: FieldPath, hint: str = "") -> None:
        """Add an error; the caller goes on, so that one run reports all errors."""
        self.items.append(Problem(code, message, path, hint))

    def warning(self, code: str, message: str, path: FieldPath, hint: str = "") -> None:
        """Add a warning about something that works but may surprise."""
        self.items.append(Problem(code, message, path, hint, Severity.WARNING))

    def add(self, problem: Problem) -> None:
        """Add a problem that another step returned or raised."""
        self.items.append(problem)

    def add_diagnostic(self, item: Diagnostic) -> None:
        """Add a problem that has a place of its own, such as a line of a template."""
        self.diagnostics.append(item)

    def stop(self) -> None:
        """Stop the compilation without an error here, since another spec of the same document has one."""
        self._stopped = True

    @property
    def failed(self) -> bool:
        """Whether an error was added, or the compilation is stopped."""
        severities = [item.severity for item in self.items] + [item.severity for item in self.diagnostics]
        return self._stopped or Severity.ERROR in severities

    def attempt(self, step: Callable[[], T], default: T) -> T:
        """Return the step's result, or the default after adding the error that the step raises."""
        try:
            return step()
        except ProblemError as error:
            self.items.append(error.problem)
            return default


def report_ignored_field(problems: Problems, field: str, path: FieldPath, where: str, hint: str) -> None:
    """Add the error that a field has no effect.

    Args:
        problems: collects the error.
        field: name of the field.
        path: path of the field.
        where: end of the message, such as "on one node".
        hint: what to do instead.
    """
    problems.error("KG0340", f"`{field}` has no effect {where}", path, hint)


def is_understood(field: str, understood: Collection[str]) -> bool:
    """Return whether a list of fields has a field, one of its fields, or a block that contains it."""
    return any(f"{field}.".startswith(f"{each}.") or each.startswith(f"{field}.") for each in understood)


def ignored_fields(
    block: Block, understood: Collection[str], path: FieldPath = ("spec",), prefix: str = ""
) -> Iterator[tuple[str, FieldPath]]:
    """Yield the name and the path of each field that a document sets and a list of fields does not have.

    Args:
        block: the spec, or a block of it.
        understood: the fields that have an effect.
        path: path of the block.
        prefix: beginning of the names of its fields.
    """
    for field in block.__struct_fields__:
        name = document_name(block, field)
        whole, at = f"{prefix}{name}", (*path, name)
        if field not in set_fields(block) or whole in understood:
            continue
        if not is_understood(whole, understood):
            yield whole, at
            continue
        value = getattr(block, field)
        if isinstance(value, Block):
            yield from ignored_fields(value, understood, at, f"{whole}.")
        for index, item in enumerate(value if isinstance(value, list) else ()):
            if isinstance(item, Block):
                yield from ignored_fields(item, understood, (*at, index), f"{whole}.")
