"""JSON patches, merge patches and JSON pointers on objects with expressions."""

from __future__ import annotations

from typing import Any

import pytest

from kaigen.compile.expressions import Release, Scope, Setting
from kaigen.compile.field_expressions import Labels
from kaigen.extend.pointer import OperationFailed, apply, parse_pointer, same, thaw

SCOPE = Scope("app", "ml", {"count": 3, "res": {"limits": {"cpu": "1"}}, "none": ""})
COUNT = Setting("count", 3, "How many.", {"type": "integer"})
RES = Setting("res", {"limits": {"cpu": "1"}}, "Resources.", {"type": "object"})
NONE = Setting("none", "", "Nothing.", {"type": "string"}, optional=True)


def done(body: Any, *operations: dict[str, Any]) -> Any:
    tree = thaw(body)
    for operation in operations:
        tree, _ = apply(tree, operation, SCOPE)
    return tree


def op(name: str, path: str, **rest: Any) -> dict[str, Any]:
    return {"op": name, "path": path, **rest}


@pytest.mark.parametrize(
    ("body", "operation", "result"),
    [
        ({"a": 1}, op("add", "/b", value=2), {"a": 1, "b": 2}),
        ({"a": 1}, op("add", "/a", value=2), {"a": 2}),
        ({"a": [1, 2]}, op("add", "/a/1", value=9), {"a": [1, 9, 2]}),
        ({"a": [1, 2]}, op("add", "/a/2", value=9), {"a": [1, 2, 9]}),
        ({"a": [1, 2]}, op("add", "/a/-", value=[3]), {"a": [1, 2, [3]]}),
        ({"a": 1}, op("add", "", value={"b": 2}), {"b": 2}),
        ({"": 1}, op("replace", "/", value=2), {"": 2}),
        ({"a/b": 1, "m~n": 2}, op("remove", "/a~1b"), {"m~n": 2}),
        ({"a/b": 1, "m~n": 2}, op("replace", "/m~0n", value=3), {"a/b": 1, "m~n": 3}),
        ({"a": [1, 2, 3]}, op("remove", "/a/1"), {"a": [1, 3]}),
        ({"a": {"b": 1}}, op("replace", "/a/b", value=None), {"a": {"b": None}}),
        ({"a": {"b": 1}, "c": {}}, op("move", "/c/d", **{"from": "/a/b"}), {"a": {}, "c": {"d": 1}}),
        ({"a": [1, 2, 3]}, op("move", "/a/0", **{"from": "/a/2"}), {"a": [3, 1, 2]}),
        ({"a": 1}, op("move", "/a", **{"from": "/a"}), {"a": 1}),
        ({"a": {"b": 1}}, op("copy", "/c", **{"from": "/a"}), {"a": {"b": 1}, "c": {"b": 1}}),
        ({"a": {"b": [1, "x"]}}, op("test", "/a", value={"b": [1.0, "x"]}), {"a": {"b": [1, "x"]}}),
        ({"0": 1}, op("replace", "/0", value=2), {"0": 2}),
    ],
)
def test_operations_follow_the_rfc(body: Any, operation: dict[str, Any], result: Any) -> None:
    before = thaw(body)
    assert done(body, operation) == result
    assert body == before


def test_a_copy_is_independent() -> None:
    copied = done({"a": {"b": 1}}, op("copy", "/c", **{"from": "/a"}), op("replace", "/c/b", value=2))
    assert copied == {"a": {"b": 1}, "c": {"b": 2}}


@pytest.mark.parametrize(
    ("body", "operation", "message", "hint"),
    [
        ({"spec": {"replicas": 1}}, op("replace", "/spec/replica", value=1), "/spec has no `replica`", "`replicas`?"),
        ({"spec": {"a": 1}}, op("remove", "/spec/xyz"), "/spec has no `xyz`", "fields: `a`"),
        ({"a": {}}, op("add", "/a/b/c", value=1), "/a has no `b`", "it is empty"),
        ({"x": 1}, op("remove", "/y"), "the object has no `y`", "fields: `x`"),
        ({"c": [{"name": "main"}]}, op("remove", "/c/1"), "index 1 is out of range: /c has 1 entry", "0 is `main`"),
        ({"c": ["x", 1]}, op("replace", "/c/main", value=1), "/c is a list", "use an index: 0 is `x`, 1"),
        ({"c": [1]}, op("remove", "/c/01"), "/c is a list, so `01` must be an index", ""),
        ({"c": [1]}, op("add", "/c/2", value=1), "index 2 is out of range: /c has 1 entry", ""),
        ({"c": [1]}, op("remove", "/c/-"), "`-` is the end of /c", "`add` only"),
        ({"c": 1}, op("add", "/c/d", value=1), "/c is `1`, so nothing can be added to it", ""),
        ({"c": "x"}, op("remove", "/c/d/e"), "/c is `x`, so it has no `d`", ""),
        ({"c": True}, op("test", "/c", value=1), "`/c` is `true`, not `1`", ""),
        ({"c": {"d": 1}}, op("test", "/c", value={}), "`/c` is a mapping, not a mapping", ""),
        ({"a": {"b": 1}}, op("move", "/a/b/c", **{"from": "/a"}), "a value cannot be moved into itself", ""),
        ({"a": 1}, op("copy", "/b", **{"from": "/c"}), "the object has no `c`", ""),
        ({"a": 1}, op("remove", ""), "the whole object cannot be removed", ""),
        ({"a": NONE}, op("replace", "/a", value="x"), "the object has no `a`", "omitted while its setting is empty"),
    ],
)
def test_a_failed_operation_names_what_the_object_has(
    body: Any, operation: dict[str, Any], message: str, hint: str
) -> None:
    with pytest.raises(OperationFailed) as failed:
        done(body, operation)
    assert message in str(failed.value)
    assert hint in failed.value.hint


def test_a_patch_replaces_only_the_expression_that_it_names() -> None:
    body = {"name": Release("-x"), "n": COUNT, "res": RES}
    kept = done(body, op("add", "/other", value=1), op("test", "/n", value=3), op("test", "/name", value="app-x"))
    assert kept["name"] is body["name"]
    assert kept["n"] is COUNT
    assert kept["res"] is RES
    assert done(body, op("replace", "/n", value=5))["n"] == 5


def test_settings_and_labels_become_plain_where_a_patch_reaches_into_them() -> None:
    labels = Labels({"a": Release(), "b": "c"}, {"d": "e"})
    body = {"labels": labels, "res": RES}
    opened = done(body, op("replace", "/res/limits/cpu", value="2"), op("remove", "/labels/b"))
    assert opened == {"labels": {"a": Release(), "d": "e"}, "res": {"limits": {"cpu": "2"}}}
    assert RES.default == {"limits": {"cpu": "1"}}


@pytest.mark.parametrize(
    ("left", "right", "equal"),
    [(1, 1.0, True), (1, True, False), (0, False, False), ([1], [1.0], True), ({"a": 1}, {"a": True}, False)],
)
def test_values_are_compared_as_json(left: Any, right: Any, equal: bool) -> None:
    assert same(left, right) is equal


@pytest.mark.parametrize("pointer", ["a", "#/a", "/a~2b", "/a~"])
def test_malformed_pointers_are_rejected(pointer: str) -> None:
    with pytest.raises(ValueError, match=r"write `~` as|does not start"):
        parse_pointer(pointer)
