"""What kaigen sends to the processes of templates and patches, and what it accepts from them."""

from __future__ import annotations

import sys
import threading
from pathlib import Path
from types import ModuleType
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.msgpack import Ext

from kaigen.compile.expressions import Release, Scope, Setting
from kaigen.compile.field_expressions import Entries, Items, Labels
from kaigen.diagnostics.errors import SystemFailure
from kaigen.extend import patch_process, process, template_process
from kaigen.extend.patch_wire import PatchRequest, Sender
from kaigen.extend.tokens import MisusedValue
from kaigen.extend.wire import Rendered, decode, encode, plain
from tests.unit.extend.repository import HEAD, compiled, repository

SCOPE = Scope("app", "ml", {"count": 3, "args": [], "env": {}})
COUNT = Setting("count", 3, "How many.", {"type": "integer"})
ARGS = Setting("args", [], "Arguments.", {"type": "array"})
ENV = Setting("env", {}, "Labels.", {"type": "object"})
BODY = {
    "name": Release("-x"),
    "count": COUNT,
    "args": Items(None, ("a", Release()), ARGS),
    "labels": Labels({"app": Release()}, more=ENV),
    "entries": Entries({"fixed": COUNT}, ENV),
}


def patched(body: Any, content: Any) -> Any:
    """Return an object after a patch in the process."""
    sender = Sender(SCOPE)
    request = encode(PatchRequest([sender.frozen(body)], msgspec.Raw(encode(content))))
    (answer,) = sender.read(process.ask(process.PATCHES, request))
    return answer.body


def test_expressions_come_back_as_they_were() -> None:
    found = patched(BODY, {"other": 1})
    assert found == {**BODY, "other": 1}
    assert found["name"] is BODY["name"]
    assert found["count"] is COUNT


def test_expressions_stay_around_what_a_patch_adds() -> None:
    found = patched(
        BODY, [{"op": "add", "path": "/args/-", "value": "b"}, {"op": "add", "path": "/labels/x", "value": "y"}]
    )
    assert found["args"] == Items(None, ("a", Release(), "b"), ARGS)
    assert found["labels"] == Labels({"app": Release()}, {"x": "y"}, more=ENV)
    merged = patched(BODY, {"entries": {"more": 1}})
    assert merged["entries"] == Entries({"fixed": COUNT, "more": 1}, ENV)


@pytest.mark.parametrize("value", [Ext(12, b"\x63"), Ext(13, encode([1, {}])), Ext(13, encode([2, {}])), b"x", {1: 2}])
def test_an_answer_refers_only_to_what_was_sent(value: Any) -> None:
    sender = Sender(SCOPE)
    sender.frozen(BODY)
    with pytest.raises(ValueError, match=r"\w"):
        sender.read(encode([{"body": {"a": value}}]))


def test_a_deep_answer_is_refused() -> None:
    tree: Any = 1
    for _ in range(300):
        tree = [tree]
    with pytest.raises(ValueError, match="200 levels"):
        Sender(SCOPE).read(encode([{"body": tree}]))


@given(st.binary(max_size=200))
def test_any_bytes_are_an_answer_or_an_error(data: bytes) -> None:
    for read in (Sender(SCOPE).read, lambda data: decode(data, Rendered)):
        try:
            read(data)
        except ValueError:
            continue


@pytest.mark.parametrize("value", [None, True, 1.5, 2**63, -(2**90), "a", [1, {"b": None}]])
def test_values_of_templates_arrive_unchanged(value: Any) -> None:
    found = decode(encode(Rendered((), (plain(value),))), Rendered).values[0]
    assert (found, type(found)) == (value, type(value))


@pytest.mark.parametrize("value", ["\ud800", {"\ud800": 1}, 1 << 5000])
def test_values_that_no_file_can_have_are_errors(value: Any) -> None:
    with pytest.raises(MisusedValue):
        plain(value)


def observed(monkeypatch: pytest.MonkeyPatch, module: ModuleType) -> list[bytes]:
    """Return the requests that a module answers in this process from now on."""
    requests: list[bytes] = []
    answer = module.answer

    def run(request: bytes, report: Any) -> bytes:
        requests.append(request)
        found: bytes = answer(request, report)
        return found

    monkeypatch.setattr(module, "answer", run)
    return requests


def test_without_processes_the_result_is_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    patch = "patches:\n- target: {app: one, kind: ConfigMap}\n  patch: {data: {more: x}}\n"
    files = {
        "kaigen.yaml": f"namespace: ml\nkinds: [kinds]\n{patch}",
        "t/map.yaml.jinja": HEAD + "  a: {{ setting('a.b', spec.text, 'Text.') }}\n  b: '{{ release }}-{{ 2 }}'\n",
    }
    apart = compiled(repository(tmp_path / "apart", files))
    asked = [observed(monkeypatch, module) for module in (template_process, patch_process)]
    monkeypatch.setattr(sys, "executable", "")
    here = compiled(repository(tmp_path / "here", files))
    assert list(map(len, asked)) == [2, 1], "a check, a rendering and a patch"
    assert here.files("both") == apart.files("both")


def test_a_python_without_the_packages_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    process.forget(process.PATCHES)
    for executable in ("/bin/false", "/no/such/python"):
        monkeypatch.setattr(sys, "executable", executable)
        with pytest.raises(SystemFailure, match=f"^{executable} does not start"):
            process.ask(process.PATCHES, b"")


def test_threads_get_their_own_answers() -> None:
    found: dict[int, Any] = {}

    def work(number: int) -> None:
        for _ in range(20):
            found[number] = patched({"n": number}, {"m": number})

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == {number: {"n": number, "m": number} for number in range(4)}
