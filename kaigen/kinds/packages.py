"""What installed packages add to kaigen: their entry points of a group, loaded, and what is wrong with them."""

from __future__ import annotations

import linecache
import traceback
from collections.abc import Mapping
from importlib.metadata import entry_points
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from msgspec import Struct
from msgspec.json import Decoder

from kaigen.diagnostics.diagnostic import Diagnostic, Mark
from kaigen.kinds.block import Block
from kaigen.kinds.block_schema import block_schema

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

T = TypeVar("T")

_HINT = "report this to the authors of the package"


class Offer(Struct, Generic[T], frozen=True):
    """One thing that an installed package adds.

    Attributes:
        value: the thing.
        name: of its entry point.
        reference: `module:attribute` of its entry point.
        package: name and version of the package.
        noun: what it is, such as `kind`.
    """

    value: T
    name: str
    reference: str
    package: str
    noun: str

    def unusable(self, reason: str) -> Diagnostic:
        """Return the error of a thing that cannot be used."""
        return _unusable(self.noun, self.name, self.package, reason)


def offers(
    group: str, noun: str, type_: type[T], own: Mapping[str, str] | None = None
) -> tuple[list[Offer[T]], list[Diagnostic]]:
    """Return what the installed packages add under a group, and the errors of entry points that cannot be loaded.

    Args:
        group: of the entry points.
        noun: what they name, for messages.
        type_: of what they name, alone or in a list.
        own: entry points that kaigen itself has in the group, which are left out.
    """
    found: list[Offer[T]] = []
    problems: list[Diagnostic] = []
    points = {(point.name, point.value): point for point in entry_points(group=group)}
    for key, point in sorted(points.items()):
        if own is not None and key in own.items():
            continue
        package = f"{point.dist.name} {point.dist.version}" if point.dist else point.value
        for value in _load(point, noun, package, type_, problems):
            found.append(Offer(value, point.name, point.value, package, noun))
    return found, problems


def _load(point: EntryPoint, noun: str, package: str, type_: type[T], problems: list[Diagnostic]) -> list[T]:
    try:
        value = point.load()
    except Exception as error:
        where = f"the {noun} `{point.name}` of the package {package} cannot be loaded"
        problems.append(failure(error, where, "KG1010"))
        return []
    items = list(value) if isinstance(value, list | tuple) else [value]
    wrong = next((item for item in items if not isinstance(item, type_)), None)
    if wrong is not None:
        reason = f"`{point.value}` is a {type(wrong).__name__}, not a {type_.__name__}"
        problems.append(_unusable(noun, point.name, package, reason))
        return []
    return items


def _unusable(noun: str, name: str, package: str, reason: str) -> Diagnostic:
    message = f"the {noun} `{name}` of the package {package} cannot be used: {reason}"
    return Diagnostic("KG1010", message, hint=_HINT)


def model_problem(model: Any, *required: str) -> str:
    """Return why documents cannot be read as a model; empty if they can.

    Args:
        model: what a package names as a model.
        required: fields that it must have.
    """
    if not (isinstance(model, type) and issubclass(model, Block)):
        return "must be a subclass of `kaigen.kinds.base.Block`"
    if not {*required} <= set(model.__struct_fields__):
        names = " and ".join(f"`{name}`" for name in required)
        return f"must have the field{'s' if len(required) > 1 else ''} {names}"
    try:
        block_schema(model)
        Decoder(model)
    except Exception as error:
        # Types are written by the package; a wrong one raises anything.
        return f"cannot be used: {error}"
    return ""


def failure(error: BaseException, what: str, code: str) -> Diagnostic:
    """Return the diagnostic of an exception in a package's code, at the line that raised it."""
    own = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if "/kaigen/" not in frame.filename.replace("\\", "/") and not frame.filename.startswith("<")
    ]
    last = own[-1] if own else None
    text = " ".join(str(error).split())[:300]
    mark = None
    if last is not None and last.lineno:
        text_of_line = linecache.getline(last.filename, last.lineno).rstrip("\n")
        column = len(text_of_line) - len(text_of_line.lstrip())
        mark = Mark(last.filename, last.lineno, column + 1, max(1, len(text_of_line) - column), text_of_line)
    message = f"{what}: {type(error).__name__}{f': {text}' if text else ''}"
    return Diagnostic(code, message, mark, _HINT)
