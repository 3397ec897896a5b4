"""`--set APP.key=value`: what a text assigns as Helm reads it, texts that are refused, and how overrides are merged."""

from __future__ import annotations

from typing import Any

import pytest

from kaigen.config.assignments import merge_overrides, parse_assignment
from kaigen.diagnostics.errors import InputError
from tests.unit.config.reports import report


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("a.b=c", {"a": {"b": "c"}}),
        ("a.b=", {"a": {"b": ""}}),
        ("a.b.c=d", {"a": {"b": {"c": "d"}}}),
        ("a.b=c=d", {"a": {"b": "c=d"}}),
        ("a.b=c.d[0]", {"a": {"b": "c.d[0]"}}),
        ("a.b=1,a.c=2", {"a": {"b": 1, "c": 2}}),
        ("a.b=1,c.d=2", {"a": {"b": 1}, "c": {"d": 2}}),
        ("a.b.c=1,a.b.d=2", {"a": {"b": {"c": 1, "d": 2}}}),
        ("a.b=1,a.b.c=2", {"a": {"b": {"c": 2}}}),
        ("a.b[0]=1,a.b.c=2", {"a": {"b": {"c": 2}}}),
        (r"a.b\.c=1", {"a": {"b.c": 1}}),
        (r"a.b=1\,2", {"a": {"b": "1,2"}}),
        (r"a.b=\\", {"a": {"b": "\\"}}),
        ("a.b=c\\", {"a": {"b": "c"}}),
        ("ns/a.b=c", {"ns/a": {"b": "c"}}),
        ("a.b=1,", {"a": {"b": 1}}),
    ],
)
def test_dots_separate_keys_and_commas_assignments(text: str, values: object) -> None:
    assert parse_assignment(text) == values


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0", 0),
        ("12", 12),
        ("-12", -12),
        ("+12", 12),
        ("012", "012"),
        ("-0", 0),
        ("1.5", "1.5"),
        ("9223372036854775807", 9223372036854775807),
        ("9223372036854775808", "9223372036854775808"),
        ("-9223372036854775808", -9223372036854775808),
        ("-9223372036854775809", "-9223372036854775809"),
        ("true", True),
        ("False", False),
        ("NULL", None),
        ("yes", "yes"),
        ("{}", [""]),
        ("{a}", ["a"]),
        ("{a,1,true}", ["a", 1, True]),
        (r"{a\,b,c}", ["a,b", "c"]),
    ],
)
def test_a_value_has_its_yaml_type(text: str, value: object) -> None:
    found = parse_assignment(f"a.b={text}")["a"]["b"]
    assert (found, type(found)) == (value, type(value))


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("a.b={c},a.d=1", {"a": {"b": ["c"], "d": 1}}),
        ("a.b={c}", {"a": {"b": ["c"]}}),
    ],
)
def test_an_assignment_may_follow_a_list(text: str, values: object) -> None:
    assert parse_assignment(text) == values


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("a.b[0]=c", {"b": ["c"]}),
        ("a.b[2]=c", {"b": [None, None, "c"]}),
        ("a.b[0]=c,a.b[1]=d", {"b": ["c", "d"]}),
        ("a.b[0].c=1", {"b": [{"c": 1}]}),
        ("a.b[0].c=1,a.b[0].d=2", {"b": [{"c": 1, "d": 2}]}),
        ("a.b[0].c=1,a.b[1].c=2", {"b": [{"c": 1}, {"c": 2}]}),
        ("a.b[0]=1,a.b[0].c=2", {"b": [{"c": 2}]}),
        ("a.b[0][1]=c", {"b": [[None, "c"]]}),
        ("a.b[0][0]=c,a.b[0][1]=d", {"b": [["c", "d"]]}),
        ("a.b[0][0]=c,a.b[1][0]=d", {"b": [["c"], ["d"]]}),
        ("a.b[0][0]=c,a.b[0].d=1", {"b": [{"d": 1}]}),
        ("a.b[0].d=1,a.b[0][0]=c", {"b": [["c"]]}),
        ("a.b.c=1,a.b[0]=d", {"b": ["d"]}),
        ("a.b[0]={c,d}", {"b": [["c", "d"]]}),
    ],
)
def test_an_index_sets_an_entry_of_a_list(text: str, values: object) -> None:
    assert merge_overrides({}, parse_assignment(text)) == {"a": values}


def test_the_highest_index_is_that_of_helm() -> None:
    assert list(parse_assignment("a.b[65536]=1")["a"]["b"]) == [65536]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "a key is missing"),
        ("=1", "a key is missing"),
        ("a.=1", "a key is missing"),
        ("a..b=1", "a key is missing"),
        ("a", "`a` has no value"),
        ("a.b", "`b` has no value"),
        ("a,b.c=1", "`a` has no value"),
        ("a=1", "`a` names no setting"),
        ("a[0]=1", "`a` names no setting"),
        ("a.b[=1", "`[=1` is not an index of a list"),
        ("a.b[]=1", "`[` is not an index of a list"),
        ("a.b[x]=1", "`[x` is not an index of a list"),
        ("a.b[-1]=1", "`[-1` is not an index of a list"),
        ("a.b[0", "`[0` is not an index of a list"),
        ("a.b[1234567890]=1", "`[1234567890` is not an index of a list"),
        ("a.b[123456789]=1", "index 123456789 is too large"),
        ("a.b[65537]=1", "index 65537 is too large"),
        ("a.b[0]", "`[0]` has no value"),
        ("a.b[0]c=1", "`[0]c` has no value"),
        ("a.b[0]c", "`[0]c` has no value"),
        ("a.b[0].=1", "a key is missing"),
        ("a.b={c", "a list must end with `}`"),
        ("a.b={c,", "a list must end with `}`"),
    ],
)
def test_a_text_that_is_no_assignment_is_refused_with_the_reason(text: str, reason: str) -> None:
    with pytest.raises(InputError) as raised:
        parse_assignment(text)
    assert report(raised.value.diagnostics) == [
        f"KG0704 `--set {text}` is not APP.key=value: {reason} | for example `--set qwen.storage.size=20Gi`"
    ]


@pytest.mark.parametrize(
    ("base", "over", "merged"),
    [
        ({"a": 1}, {"b": 2}, {"a": 1, "b": 2}),
        ({"a": 1}, {"a": 2}, {"a": 2}),
        ({"a": {"b": 1}}, {"a": {"c": 2}}, {"a": {"b": 1, "c": 2}}),
        ({"a": {"b": 1}}, {"a": None}, {"a": None}),
        ({"a": {"b": 1}}, {"a": {"b": None}}, {"a": {"b": None}}),
        ({"a": [1, 2]}, {"a": [3]}, {"a": [3]}),
        ({"a": 1}, {"a": {"b": 2}}, {"a": {"b": 2}}),
        (None, {"a": 1}, {"a": 1}),
        ({"a": 1}, 2, 2),
    ],
)
def test_mappings_are_merged_and_null_is_kept(base: Any, over: Any, merged: object) -> None:
    assert merge_overrides(base, over) == merged


@pytest.mark.parametrize(
    ("base", "text", "merged"),
    [
        ([1, 2, 3], "a.b[1]=x", [1, "x", 3]),
        ([1], "a.b[2]=x", [1, None, "x"]),
        ([{"c": 1}], "a.b[0].d=2", [{"c": 1, "d": 2}]),
        ([[1, 2]], "a.b[0][1]=x", [[1, "x"]]),
        ("text", "a.b[0]=x", ["x"]),
    ],
)
def test_an_entry_is_merged_into_the_list_of_earlier_overrides(base: Any, text: str, merged: object) -> None:
    earlier = {"a": {"b": base}}
    assert merge_overrides(earlier, parse_assignment(text)) == {"a": {"b": merged}}
    assert earlier == {"a": {"b": base}}, "earlier overrides are not changed"
