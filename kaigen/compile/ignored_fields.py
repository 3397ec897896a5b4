"""Reports of fields that have no effect where they are set; kaigen never ignores a field silently."""

from __future__ import annotations

from kaigen.compile.expressions import SpecPath
from kaigen.compile.problems import Problems


def report_ignored_field(problems: Problems, field: str, path: SpecPath, where: str, hint: str) -> None:
    """Add the error that a field has no effect.

    Args:
        problems: collects the error.
        field: name of the field.
        path: path of the field.
        where: end of the message, such as "on one node".
        hint: what to do instead.
    """
    problems.error("KG0340", f"`{field}` has no effect {where}", path, hint)
