"""Merge patches of objects."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kaigen.compile.expressions import Release, Scope, Setting, resolve
from kaigen.compile.field_expressions import Labels
from kaigen.extend.merge import Merge, MergeFailed
from kaigen.extend.pointer import thaw
from tests.unit.extend.repository import compiled, messages
from tests.unit.extend.test_patches import patched

SCOPE = Scope("app", "ml", {"count": 3, "res": {"limits": {"cpu": "1"}}, "none": ""})
COUNT = Setting("count", 3, "How many.", {"type": "integer"})
RES = Setting("res", {"limits": {"cpu": "1"}}, "Resources.", {"type": "object"})
NONE = Setting("none", "", "Nothing.", {"type": "string"}, optional=True)


def merge(body: Any, patch: Any) -> Any:
    return Merge(SCOPE).apply(body, patch)


def test_settings_and_labels_become_plain_where_a_patch_reaches_into_them() -> None:
    body = {"labels": Labels({"a": Release(), "b": "c"}, {"d": "e"}), "res": RES}
    assert resolve(merge(thaw(body), {"labels": {"a": "z"}}), SCOPE) == {
        "labels": {"a": "z", "b": "c", "d": "e"},
        "res": {"limits": {"cpu": "1"}},
    }


@pytest.mark.parametrize(
    ("body", "patch", "result"),
    [
        ({"a": "b"}, {"a": "c"}, {"a": "c"}),
        ({"a": "b"}, {"b": "c"}, {"a": "b", "b": "c"}),
        ({"a": "b", "b": "c"}, {"a": None}, {"b": "c"}),
        ({"a": ["b"]}, {"a": "c"}, {"a": "c"}),
        ({"a": "c"}, {"a": ["b"]}, {"a": ["b"]}),
        ({"a": {"b": "c"}}, {"a": {"b": "d", "c": None}}, {"a": {"b": "d"}}),
        ({"a": [{"b": "c"}]}, {"a": [1]}, {"a": [1]}),
        ({"a": 1}, {"a": {"b": {"c": None, "d": 2}}}, {"a": {"b": {"d": 2}}}),
        ({"a": COUNT}, {"a": {"b": 1}}, {"a": {"b": 1}}),
    ],
)
def test_a_merge_patch_follows_the_rfc(body: Any, patch: Any, result: Any) -> None:
    assert merge(thaw(body), patch) == result


def test_a_merge_patch_reports_absent_fields_that_it_removes() -> None:
    done = Merge(SCOPE)
    done.apply({"a": {"b": NONE}}, {"a": {"b": None, "c": None}})
    assert done.absent == [(("a", "b"), ("a", "b")), (("a", "c"), ("a", "c"))]


CONTAINERS: Any = {
    "containers": [
        {"name": "run", "image": "a", "env": [{"name": "A", "value": "1"}], "args": ["x"]},
        {"name": "side", "image": "b"},
    ]
}


@pytest.mark.parametrize(
    ("patch", "changed"),
    [
        ([{"name": "side", "image": "c"}], {1: {"name": "side", "image": "c"}}),
        ([{"name": "side", "$patch": "delete"}], {1: None}),
        (
            [{"name": "run", "$patch": "delete"}, {"name": "side", "tty": True}],
            {0: None, 1: {"name": "side", "image": "b", "tty": True}},
        ),
        ([{"name": "run", "$patch": "replace", "image": "z"}], {0: {"name": "run", "image": "z"}}),
        ([{"$patch": "replace"}, {"name": "only", "image": "z"}], {0: {"name": "only", "image": "z"}, 1: None}),
        ([{"name": "new", "image": "z"}], {2: {"name": "new", "image": "z"}}),
        (
            [{"name": "run", "args": ["y"], "env": [{"name": "A", "value": "2"}, {"name": "B", "value": "3"}]}],
            {
                0: {
                    "name": "run",
                    "image": "a",
                    "env": [{"name": "A", "value": "2"}, {"name": "B", "value": "3"}],
                    "args": ["y"],
                }
            },
        ),
        ([{"name": "run", "env": {"$patch": "delete"}}], {0: {"name": "run", "image": "a", "args": ["x"]}}),
        (
            [{"name": "run", "env": [{"name": "A", "$patch": "delete"}]}],
            {0: {"name": "run", "image": "a", "env": [], "args": ["x"]}},
        ),
    ],
)
def test_containers_are_merged_by_name(patch: Any, changed: dict[int, Any]) -> None:
    wanted: list[Any] = [*CONTAINERS["containers"], None]
    for index, value in changed.items():
        wanted[index] = value
    assert merge(thaw(CONTAINERS), {"containers": patch}) == {
        "containers": [item for item in wanted if item is not None]
    }


def test_ports_are_merged_by_their_number() -> None:
    body = {"ports": [{"containerPort": 80, "name": "http"}]}
    assert merge(body, {"ports": [{"containerPort": 80, "hostPort": 8080}, {"containerPort": 81}]}) == {
        "ports": [{"containerPort": 80, "name": "http", "hostPort": 8080}, {"containerPort": 81}]
    }


@pytest.mark.parametrize(
    ("patch", "message", "hint"),
    [
        ([{"image": "z"}], "an entry of `containers` must have `name`", "known: `name: run`, `name: side`"),
        (
            [{"name": "rnu", "tty": True}],
            "`containers` has no `rnu`, and a new container needs `image`",
            "did you mean `run`?",
        ),
    ],
)
def test_an_entry_that_cannot_be_merged_is_one_problem(patch: Any, message: str, hint: str) -> None:
    with pytest.raises(MergeFailed) as caught:
        merge(thaw(CONTAINERS), {"containers": patch})
    assert (str(caught.value), caught.value.hint, caught.value.path) == (message, hint, ("containers", 0))


def pod_patch(containers: str) -> str:
    return (
        "  - target: {app: one, kind: Job}\n"
        f"    patch: {{spec: {{template: {{spec: {{containers: {containers}}}}}}}}}\n"
    )


def test_a_patch_as_for_kustomize_keeps_the_settings_of_the_container(tmp_path: Path) -> None:
    item = compiled(patched(tmp_path, pod_patch("[{name: main, env: [{name: A, value: b}]}]")))
    (job,) = [each.body for each in item.objects if each.object.kind == "Job"]
    (container,) = job["spec"]["template"]["spec"]["containers"]
    assert container["env"] == [{"name": "A", "value": "b"}]
    assert container["image"] == "registry.example/job:1"
    assert "image" in [setting.path for setting in item.app.settings]


@pytest.mark.parametrize(
    ("patch", "code", "message"),
    [
        (pod_patch("[{name: mian, tty: true}]"), "KG1022", "has no `mian`"),
        (
            pod_patch("[{name: gone, $patch: delete}]"),
            "KG1022",
            "has no `name: gone` in `spec.template.spec.containers`",
        ),
        (pod_patch("[{name: main, $patch: remove}]"), "KG1020", "unknown `$patch`: `remove`"),
        (pod_patch("[{name: main, $retainKeys: [name]}]"), "KG1020", "`$retainKeys` is not supported"),
        ("  - target: {app: one, kind: Job}\n    patch: {$patch: delete}\n", "KG1020", "a whole object"),
    ],
)
def test_a_wrong_merge_patch_is_one_finding(tmp_path: Path, patch: str, code: str, message: str) -> None:
    (found,) = messages(patched(tmp_path, patch))
    assert code in found
    assert message in found
