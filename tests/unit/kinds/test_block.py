"""Blocks: reading, the fields that a document sets, and copies with changes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import pytest
from msgspec import ValidationError, field

from kaigen.kinds.base import DNS_LABEL, Quantity, text
from kaigen.kinds.block import Block, Choice, document_name, later, read_block, replace_fields, set_fields
from kaigen.kinds.block_schema import block_schema, broken_rules, violations


class Inner(Block):
    """A block in a block."""

    size: Quantity = "1"
    file_name: str | None = None


class Outer(Block):
    """A block with every kind of field."""

    name: Annotated[str, text(DNS_LABEL, max_length=5)]
    inner: Inner = field(default_factory=Inner)
    listed: list[Inner] = field(default_factory=list)
    named: dict[str, Inner] = field(default_factory=dict)
    either: str | Inner | None = None
    port: int = 80


class One(Choice):
    """A block with a choice."""

    exactly_one = ("first", "secondField")

    first: str | None = None
    second_field: str | None = None


def test_set_fields_are_those_of_the_document_even_with_the_value_of_the_default() -> None:
    data = {"name": "a", "port": 80, "inner": {}, "listed": [{"fileName": "b"}], "named": {"x": {"size": 1}}}
    block = read_block(Outer, {**data, "either": {"size": "2"}})
    assert set_fields(block) == {"name", "port", "inner", "listed", "named", "either"}
    assert set_fields(block.inner) == set()
    assert set_fields(block.listed[0]) == {"file_name"}
    assert set_fields(block.named["x"]) == {"size"}
    assert isinstance(block.either, Inner)
    assert set_fields(block.either) == {"size"}
    assert set_fields(read_block(Outer, {"name": "a"}).inner) == set()


def test_set_fields_of_a_block_made_in_python_are_those_with_other_values_than_the_default() -> None:
    assert set_fields(Outer(name="a", port=80, inner=Inner(size="2"))) == {"name", "inner"}


def test_a_copy_with_changes_keeps_the_set_fields_and_adds_the_changed_ones() -> None:
    block = read_block(Outer, {"name": "a", "port": 80})
    copy = replace_fields(block, listed=[], name="b")
    assert (copy.name, copy.port) == ("b", 80)
    assert set_fields(copy) == {"name", "port", "listed"}
    assert set_fields(block) == {"name", "port"}


def test_a_field_has_its_name_in_documents() -> None:
    assert document_name(Inner, "file_name") == "fileName"


@pytest.mark.parametrize(
    ("written", "value"), [("5Gi", "5Gi"), (5, "5"), (0.5, "500m"), (1073741824.0, "1073741824"), (1e30, "1e+30")]
)
def test_a_quantity_is_text_even_if_the_document_has_a_number(written: object, value: str) -> None:
    assert read_block(Inner, {"size": written}).size == value


@pytest.mark.parametrize(
    ("model", "data"),
    [
        (Inner, {"size": -1}),
        (Inner, {"size": True}),
        (Inner, {"size": "5GB"}),
        (Inner, {"size": "1" * 41}),
        (Inner, {"file_name": "a"}),
        (Outer, {}),
        (Outer, {"name": "a\n"}),
        (Outer, {"name": "abcdef"}),
        (Outer, {"name": "a", "port": 80.0}),
        (Outer, {"name": "a", "port": True}),
        (Outer, {"name": "a", "other": 1}),
        (One, {}),
        (One, {"first": "a", "secondField": "b"}),
    ],
)
def test_model_and_schema_reject_the_same_data(model: type[Block], data: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        read_block(model, data)
    assert list(violations(model, data))


def test_a_union_that_crashes_msgspec_is_refused() -> None:
    class Wrong(Block):
        """A text with a pattern, or a list."""

        names: Annotated[str, text(DNS_LABEL)] | list[str] = ""

    with pytest.raises(TypeError, match="msgspec crashes on a union"):
        block_schema(Wrong)


class Range(Block):
    """A block with a rule of its own."""

    low: int
    high: int

    def __post_init__(self) -> None:
        """Check the order.

        Raises:
            ValueError: the range is empty.
        """
        if self.low > self.high:
            raise ValueError("is empty")


if TYPE_CHECKING:
    ImportedRange = Range
else:
    ImportedRange = later(f"{__name__}:Range")


class Ranges(Block):
    """Blocks with rules at every place."""

    one: Range | None = None
    listed: list[Range] = field(default_factory=list)
    named: dict[str, Range] = field(default_factory=dict)
    variables: dict[str, str | int | Range] = field(default_factory=dict)
    texts: dict[str, str | int] = field(default_factory=dict)
    imported: ImportedRange | None = None


def test_broken_rules_are_found_at_every_place_with_their_path() -> None:
    empty, full = {"low": 2, "high": 1}, {"low": 1, "high": 2}
    data = {"one": empty, "listed": [full, empty], "named": {"a": full, "b": empty}, "imported": empty}
    assert broken_rules(Ranges, data) == [
        (("one",), "is empty"),
        (("listed", 1), "is empty"),
        (("named", "b"), "is empty"),
        (("imported",), "is empty"),
    ]
    assert broken_rules(Ranges, {"one": full, "imported": full}) == []
    assert broken_rules(Ranges, {"variables": {"a": "x", "b": empty}}) == [(("variables", "b"), "is empty")]
    # msgspec does not say which entry of a map it is.
    assert [path for path, _ in broken_rules(Ranges, {"texts": {"a": 1, "b": None}})] == [("texts",)]
