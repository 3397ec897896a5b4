"""Deferred fields validate as others do, but cost nothing in a file that does not set them."""

from __future__ import annotations

from typing import Annotated, Any

import pytest
from pydantic import Field, GetCoreSchemaHandler, ValidationError
from pydantic_core import CoreSchema, core_schema

from kaigen.config.deferred import Deferred
from kaigen.kinds.base import Block

_BUILT: list[str] = []


class _Size:
    """A type that records when its validator is built."""

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        _BUILT.append("size")
        return core_schema.int_schema(ge=1, strict=True)


class _Inner(Block):
    max_size: Annotated[int, _Size] = 1


class _Plain(Block):
    own: _Inner | None = None
    listed: list[_Inner] = Field([])
    named: dict[str, _Inner] = Field({})


class _File(Block):
    own: Annotated[_Inner | None, Deferred()] = None
    listed: Annotated[list[_Inner], Deferred()] = Field([])
    named: Annotated[dict[str, _Inner], Deferred()] = Field({})


def test_validators_of_absent_blocks_are_not_built() -> None:
    _BUILT.clear()
    assert _File.model_validate({}).own is None
    assert not _BUILT
    own = _File.model_validate({"own": {"maxSize": 2}}).own
    assert own is not None
    assert own.max_size == 2
    assert _BUILT


@pytest.mark.parametrize(
    "data",
    [
        {"own": {"maxSize": 0}},
        {"own": {"max_size": 2}},
        {"own": {"other": 1}},
        {"listed": [{}, {"maxSize": "2"}]},
        {"listed": ({},)},
        {"named": {b"a": {}}},
        {"named": {"a": {"maxSize": 0}, "b": 1}, "listed": 1},
    ],
)
def test_errors_are_those_of_a_plain_field(data: dict[str, Any]) -> None:
    found = [_errors(model, data) for model in (_File, _Plain)]
    assert found[0] == found[1]


def _errors(model: type[Block], data: dict[str, Any]) -> list[Any]:
    with pytest.raises(ValidationError) as error:
        model.model_validate(data, by_alias=True, by_name=False)
    return error.value.errors(include_url=False)


def test_json_schema_is_that_of_a_plain_field_but_for_titles() -> None:
    found, expected = (model.model_json_schema(by_alias=True) for model in (_File, _Plain))
    assert found["$defs"] == expected["$defs"]
    for name, schema in expected["properties"].items():
        assert {**found["properties"][name], "title": ""} == {**schema, "title": ""}
