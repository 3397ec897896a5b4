"""kaigen reads `--set` and values files as Helm does."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from kaigen.compile.app import App, Object
from kaigen.compile.expressions import JsonText, Release, Setting, Tree
from kaigen.config.assignments import parse_assignment
from kaigen.config.value_layers import Overrides
from kaigen.diagnostics.errors import InputError
from kaigen.emit.values import check_values, effective_values
from kaigen.pipeline.result import Compiled
from tests import helm
from tests.cases import write_chart
from tests.differences import assert_same

DEFAULTS: dict[str, Any] = {
    "text": "t",
    "number": 3,
    "flag": False,
    "list": ["a", "b"],
    "objects": [{"name": "one", "value": 1}, {"name": "two"}],
    "map": {"x": 1, "inner": {"deep": "d", "other": [1]}},
    "empty": {},
    "group.leaf": "l",
    "group.other": 1,
}

ALIKE: list[list[str]] = [
    [],
    # Types of values.
    ["text=other"],
    ["text="],
    ["text= spaces "],
    ["text=a=b"],
    ["text=a.b[0]"],
    ['text="quoted"'],
    ["text=a}"],
    ["text=näïve 🚀"],
    ["text=line\nbreak"],
    ["text=0123"],
    ["text=0x10"],
    ["text=1.5"],
    ["text=1e3"],
    ["text=1_000"],
    ["text=--5"],
    ["text=99999999999999999999"],
    ["text=TrueX"],
    ["text=~"],
    ["number=5"],
    ["number=0"],
    ["number=-0"],
    ["number=-7"],
    ["number=-07"],
    ["number=+5"],
    ["number=9007199254740992"],
    ["flag=true"],
    ["flag=TRUE"],
    ["flag=False"],
    # Escapes.
    [r"text=a\,b"],
    [r"text=a\\b"],
    [r"text=a\b"],
    [r"text=\{a\}"],
    [r"map.a\.b/c=1"],
    [r"map.a\=b=1"],
    [r"map.a\[0\]=1"],
    # Several in one argument, and several arguments.
    ["text=a,number=4"],
    ["text=a,list={x,y},flag=true"],
    ["text=a", "text=b"],
    ["map.x=2", "map.y=3"],
    ["text=a,"],
    # Mappings are merged, anything else is replaced.
    ["map.inner.deep=e"],
    ["map.inner.new.er=1"],
    ["map=scalar"],
    ["text.x=1"],
    ["list.x=1"],
    ["group.leaf=m"],
    ["empty.a.b.c=1"],
    # Lists.
    ["list={x,y,z}"],
    ["list={x}"],
    ["list={}"],
    ["list="],
    ["list={1,true,null,a b, c}"],
    [r"list={a\,b,c\}d}"],
    ["list={a,b},text=c"],
    ["list[0]=x"],
    ["list[1]=x"],
    ["list[3]=x"],
    ["list[0]="],
    ["list[0]={p,q}"],
    ["list[0][1]=x"],
    ["list[0].a=1,list[1].b=2"],
    ["list[0].a=1", "list[0].b=2"],
    ["list[0].a.b[1].c=1"],
    ["list={x,y}", "list[0]=z"],
    ["list={x,y}", "list[2]=z"],
    ["list[1]=x", "list={q}"],
    ["objects[0].value=2"],
    ["objects[1].name=three,objects[1].value=3"],
    ["map.inner.other[0]=9"],
    # Null removes a default.
    ["map.x=null"],
    ["map.x=NULL"],
    ["map.inner=null"],
    ["map.inner.deep=null"],
    ["map.x=null", "map.x=5"],
    ["map.x=5", "map.x=null"],
    ["list[0]=null"],
]

BOTH_REFUSE = [
    "text",
    "map..x=1",
    "map.x",
    "list={a,b",
    "list={a,{b,c}}",
    "list={a}b",
    "list[-1]=2",
    "list[a]=2",
    "list[]=2",
    "list[0]x=2",
    "list[65537]=2",
    "text,number=1",
]

KAIGEN_REFUSES = {
    "=1": "a key is missing",
    ".text=1": "a key is missing",
    "text=a,,number=1": "a key is missing",
    "map.": "a key is missing",
    "list[0=2": "is not an index of a list",
    "list[0]": "has no value",
}
"""Assignments that Helm ignores silently or reads in a surprising way."""

FILES: list[tuple[list[dict[str, Any]], list[str]]] = [
    ([{"list": ["x", "y"]}], ["list[1]=z"]),
    ([{"objects": [{"name": "n"}]}], ["objects[0].value=5"]),
    ([{"map": {"inner": {"new": 1}}}], ["map.inner.deep=null"]),
    ([{"map": {"inner": None}}], []),
    ([{"map": {"y": {"a": 1}}}], ["map.y=2"]),
    ([{"list": []}], []),
    ([{"empty": {"": 0, "a.b": [None, {"c": None}]}}], []),
    ([{"text": 1e21, "number": 0.1, "list": [1e-7, 1.0, True]}], []),
]


def the_app() -> App:
    """Return an app with a setting of each type, and one object that contains them all."""
    settings = [Setting(path, default, "Any value.", {}) for path, default in DEFAULTS.items()]
    shown = {setting.path: JsonText(setting) for setting in settings}
    body: dict[str, Tree] = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": Release()}, "data": shown}
    return App("app", "space", "Shown", "", (Object("all", body),), tuple(settings), summary="Shows its values.")


APP = the_app()


@pytest.fixture(scope="module")
def chart(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_chart(tmp_path_factory.mktemp("set"), Compiled(APP, APP.default_values(), APP.render()))


def assert_alike(chart: Path, files: Sequence[Overrides], assignments: Sequence[str]) -> None:
    # Helm's assignments name no app; kaigen's start with the app's name.
    own = [parse_assignment(_named(text)) for text in assignments]
    values = effective_values(APP, [*({"app": file} for file in files), *own])
    assert check_values(APP, values) == []
    merged = dict(files[0]) if files else None
    found = helm.template(chart, "app", "space", merged, assignments=assignments)
    assert_same(found, [item.body for item in APP.render(values)])


def _named(text: str) -> str:
    """Return `a=1,b={x,y}` with the app's name before each key."""
    parts, depth, start = [], 0, 0
    for at, char in enumerate(text):
        if text[at - 1 : at] == "\\":
            continue
        depth += {"{": 1, "}": -1}.get(char, 0)
        if char == "," and depth <= 0:
            parts.append(text[start:at])
            start = at + 1
    parts.append(text[start:])
    return ",".join(f"app.{part}" if part else "" for part in parts)


@pytest.mark.parametrize("assignments", ALIKE, ids=" ".join)
def test_assignments_equal_those_of_helm(chart: Path, assignments: list[str]) -> None:
    assert_alike(chart, [], assignments)


@pytest.mark.parametrize(("files", "assignments"), FILES, ids=str)
def test_assignments_override_values_files(chart: Path, files: list[dict[str, Any]], assignments: list[str]) -> None:
    assert_alike(chart, files, assignments)


@pytest.mark.parametrize("text", BOTH_REFUSE)
def test_assignments_that_helm_rejects_are_rejected(chart: Path, text: str) -> None:
    with pytest.raises(InputError) as caught:
        parse_assignment(_named(text))
    assert [item.code for item in caught.value.diagnostics] == ["KG0704"]
    with pytest.raises(helm.HelmError, match="failed parsing --set"):
        helm.template(chart, "app", "space", assignments=[text])


@pytest.mark.parametrize(("text", "reason"), KAIGEN_REFUSES.items())
def test_surprising_assignments_are_rejected(text: str, reason: str) -> None:
    with pytest.raises(InputError, match=reason):
        parse_assignment(f"app.{text}")


@pytest.mark.parametrize("text", ["", "app", "app=1", "app={a}", "app[0]=1", "app[0].x=1", "x.y=1,app=1"])
def test_an_assignment_names_an_app_and_a_setting(text: str) -> None:
    with pytest.raises(InputError) as caught:
        parse_assignment(text)
    assert [item.code for item in caught.value.diagnostics] == ["KG0704"]


def test_a_null_without_a_default_is_rejected() -> None:
    values = effective_values(APP, [parse_assignment("app.map.missing=null")])
    assert [item.message for item in check_values(APP, values)] == [
        "`app.map.missing`: null removes a default, and this setting has none"
    ]


def test_a_number_that_helm_would_round_is_rejected() -> None:
    values = effective_values(APP, [parse_assignment("app.number=9007199254740993")])
    assert [(item.message, item.hint) for item in check_values(APP, values)] == [
        ("`app.number`: Helm would round 9007199254740993", "quote it")
    ]


def test_an_app_may_be_named_with_its_namespace() -> None:
    layers = [parse_assignment("space/app.text=a"), parse_assignment("other/app.text=b")]
    assert effective_values(APP, layers)["text"] == "a"
