"""A spec of kaigen's own in the making: plain data, and where each field of it came from."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from kaigen.diagnostics.field_path import dotted
from kaigen.kinds.spec import Path

if TYPE_CHECKING:
    from kaigen.kinds.base import Block
    from kaigen.kinds.lowering import Lowering

B = TypeVar("B", bound="Block")


class Draft:
    """Collects a spec's fields; `finish` validates them as a person's would be."""

    def __init__(self, otherwise: Path = ()) -> None:
        """Begin one.

        Args:
            otherwise: field of the foreign document that stands for all that names no other.
        """
        self.data: dict[str, Any] = {}
        self.origins: dict[Path, Path] = {("spec",): otherwise} if otherwise else {}
        self.hints: dict[str, str] = {}

    def put(self, path: Path, value: Any, origin: Path | None = None) -> None:
        """Set a field. Mappings on the way are made.

        Args:
            path: of the field.
            value: plain data.
            origin: field of the foreign document that it came from; None for that of what it is in.
        """
        here: Any = self.data
        for key in path[:-1]:
            here = here.setdefault(key, {})
        here[path[-1]] = value
        if origin is not None:
            self.origins[path] = origin

    def add(self, path: Path, values: list[Any], origin: Path | None = None) -> None:
        """Put entries at the end of a list, which is made when there is none."""
        here = self.get(path)
        start = len(here) if here else 0
        self.put(path, [*(here or []), *values])
        if origin is not None:
            for index in range(len(values)):
                self.origins[(*path, start + index)] = origin

    def get(self, path: Path) -> Any:
        """A field's value; None when it is not set."""
        here: Any = self.data
        for key in path:
            if not isinstance(here, Mapping) or key not in here:
                return None
            here = here[key]
        return here

    def finish(self, kind: type[B], lowering: Lowering) -> B | None:
        """The spec, or None with an error where the foreign field says what kaigen's kind cannot."""
        from pydantic import ValidationError

        try:
            return kind.model_validate(self.data, by_alias=True, by_name=False)
        except ValidationError as error:
            for line in error.errors():
                path = self._path(line["loc"])
                field = dotted(path) or kind.__name__
                message = line["msg"][:1].lower() + line["msg"][1:]
                lowering.error(
                    "KG0413", f"cannot be said in kaigen's `{field}`: {message}", self._origin(path)
                )
            return None

    def _path(self, location: tuple[int | str, ...]) -> Path:
        """A place in the data: pydantic names branches of unions on the way too."""
        here: Any = self.data
        path: list[int | str] = []
        for key in location:
            try:
                here = here[key]
            except (KeyError, IndexError, TypeError):
                continue
            path.append(key)
        return tuple(path)

    def _origin(self, path: Path) -> Path:
        for length in range(len(path), 0, -1):
            if path[:length] in self.origins:
                return self.origins[path[:length]]
        return ("metadata", "name")
