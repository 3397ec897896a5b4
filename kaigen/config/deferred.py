"""Fields whose validators are built when a file first sets them."""

from __future__ import annotations

from functools import cached_property
from typing import Any

from pydantic import ConfigDict, GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, core_schema

from kaigen.system.lazy_import import lazy_imports

with lazy_imports():
    from pydantic import type_adapter


class Deferred:
    """An annotation of a field: its type is validated as without it, with the same errors and JSON Schema.

    The type must not be a single `Block`, whose own settings pydantic cannot combine with those of `_adapter`.

    Building the validators of all blocks takes longer than compiling a spec, and most files set few of them.
    """

    def __init__(self) -> None:
        self._type: Any = None

    @cached_property
    def _adapter(self) -> type_adapter.TypeAdapter[Any]:
        return type_adapter.TypeAdapter(self._type, config=ConfigDict(strict=True))

    def _validate(self, value: object) -> object:
        return self._adapter.validate_python(value, by_alias=True, by_name=False)

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        """Return a schema that validates with the type's own, which is built on first use."""
        self._type = source
        return core_schema.no_info_plain_validator_function(self._validate)

    def __get_pydantic_json_schema__(
        self, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        """Return the JSON Schema of the type."""
        return handler(self._adapter.core_schema)
