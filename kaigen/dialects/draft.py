"""Builder of specs: plain data, with the origin of each field in the foreign document."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from msgspec import ValidationError

from kaigen.core.json_types import FieldPath
from kaigen.diagnostics.diagnostic import Diagnostic
from kaigen.diagnostics.problem import dotted_path
from kaigen.kinds.block import Block, read_block
from kaigen.kinds.lowering import Lowered
from kaigen.kinds.positioned import SourceField, Unplaced, find_source
from kaigen.kinds.spelling import old_spellings, respell
from kaigen.system.lazy_import import lazy_imports

with lazy_imports():
    from kaigen.kinds import block_schema, errors

if TYPE_CHECKING:
    from kaigen.kinds.base import AppBlock
    from kaigen.kinds.compat import Naming, ServingNaming
    from kaigen.kinds.lowering import Lowering

B = TypeVar("B", bound=Block)


class Draft:
    """Collects the fields of a spec; `finish` validates them like a written spec."""

    def __init__(self, default_origin: FieldPath = ()) -> None:
        """Start a spec.

        Args:
            default_origin: field of the foreign document for fields without an origin.
        """
        self.data: dict[str, Any] = {}
        self.origins: dict[FieldPath, FieldPath] = {("spec",): default_origin} if default_origin else {}
        self.hints: dict[str, str] = {}
        self.sources: dict[FieldPath, SourceField] = {}

    def lowered(self, block: AppBlock, naming: Naming | ServingNaming | None = None) -> Lowered:
        """Return the finished spec with the origins of its fields.

        Args:
            block: the spec, from `finish`.
            naming: names of the foreign system to keep; None for kaigen's own.
        """
        return Lowered(block, self.origins, naming, self.hints, self.sources)

    def put(
        self, path: FieldPath, value: Any, origin: FieldPath | None = None, source: SourceField | None = None
    ) -> None:
        """Set a field, creating the mappings that contain it.

        Args:
            path: of the field in the spec.
            value: plain data.
            origin: field of the foreign document that the value came from; None for that of the containing field.
            source: where the value was written if that is another document.
        """
        here: Any = self.data
        for key in path[:-1]:
            here = here.setdefault(key, {})
        here[path[-1]] = value
        self.sources.pop(path, None)
        if origin is not None:
            self.origins[path] = origin
        if source is not None:
            self.sources[path] = source

    def add(self, path: FieldPath, values: list[Any], origin: FieldPath | None = None) -> None:
        """Append entries to a list, which is created if it does not exist."""
        here = self.get(path)
        start = len(here) if here else 0
        self.put(path, [*(here or []), *values])
        if origin is not None:
            for index in range(len(values)):
                self.origins[(*path, start + index)] = origin

    def get(self, path: FieldPath) -> Any:
        """Return the value of a field; None when it is not set."""
        here: Any = self.data
        for key in path:
            if not isinstance(here, Mapping) or key not in here:
                return None
            here = here[key]
        return here

    def finish(self, kind: type[B], lowering: Lowering) -> B | None:
        """Return the spec, or None after errors at foreign fields that the kind cannot represent."""
        try:
            return read_block(kind, respell(self.data, old_spellings(self.data, kind)))
        except ValidationError:
            violations = block_schema.violations(kind, self.data)
            document = Unplaced(self.data)
            for item in errors.find_problems(document, block_schema.block_schema(kind), violations):
                path = item.problem.path
                field = dotted_path(path) or kind.__name__
                message = f"kaigen's `{field}` cannot represent this: {item.problem.message}"
                source = find_source(path, self.sources, self.origins)
                if source is not None:
                    lowering.report([Diagnostic("KG0413", message, source.mark, path=source.path)])
                else:
                    lowering.error("KG0413", message, self._origin(path))
            return None

    def _origin(self, path: FieldPath) -> FieldPath:
        for length in range(len(path), 0, -1):
            if path[:length] in self.origins:
                return self.origins[path[:length]]
        return ("metadata", "name")
