"""What of a request is passed on: nothing that ends distributed-llama."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kaigen_ringproxy.checks import Refused, checked

NAMES = ["tiny", "other"]
HELLO = {"messages": [{"role": "user", "content": "Hello"}]}


def passed(**fields: Any) -> dict[str, Any]:
    """Return what is passed on of a request."""
    body = checked(json.dumps({**HELLO, **fields}).encode(), NAMES, 64).body
    found = json.loads(body)
    assert isinstance(found, dict)
    return found


def test_only_known_fields_are_passed_on() -> None:
    found = passed(model="other", temperature=0.1, stop="x", user="me", max_tokens=1000, seed=7, stream=False)
    assert found == {**HELLO, "stream": True, "max_tokens": 64, "seed": 7}


def test_parts_of_text_are_joined() -> None:
    parts = [{"type": "text", "text": "Hel"}, {"type": "text", "text": "lo"}]
    messages = [{"role": "developer", "content": parts, "name": "me"}]
    assert passed(messages=messages)["messages"] == [{"role": "system", "content": "Hello"}]


@pytest.mark.parametrize(
    ("fields", "param", "status"),
    [
        ({"messages": None}, "messages", 400),
        ({"messages": []}, "messages", 400),
        ({"messages": ["Hello"]}, "messages[0]", 400),
        ({"messages": [{"role": "tool", "content": "x"}]}, "messages[0].role", 400),
        ({"messages": [{"role": ["user"], "content": "x"}]}, "messages[0].role", 400),
        ({"messages": [{"role": "user", "content": None}]}, "messages[0].content", 400),
        ({"messages": [{"role": "user", "content": []}]}, "messages[0].content", 400),
        ({"messages": [{"role": "user", "content": "a\0b"}]}, "messages[0].content", 400),
        (
            {"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {}}]}]},
            "messages[0].content[0]",
            400,
        ),
        ({"messages": [{"role": "user", "content": "\ud800"}]}, "messages", 400),
        ({"model": "gpt"}, "model", 404),
        ({"model": ["tiny"]}, "model", 404),
        ({"stream": "yes"}, "stream", 400),
        ({"max_tokens": 0}, "max_tokens", 400),
        ({"max_completion_tokens": 1.5}, "max_completion_tokens", 400),
        ({"seed": -1}, "seed", 400),
        ({"n": 2}, "n", 400),
        ({"tools": [{}]}, "tools", 400),
        ({"response_format": {"type": "json_object"}}, "response_format", 400),
    ],
)
def test_a_wrong_field_is_named(fields: dict[str, Any], param: str, status: int) -> None:
    with pytest.raises(Refused) as refused:
        passed(**fields)
    assert (refused.value.param, refused.value.status) == (param, status)


@pytest.mark.parametrize(
    "body", [b"", b"{", b"[]", b"null", b"\xff", b'{"messages": NaN}', b"[" * 100_000, b'{"a": ' + b"9" * 5000 + b"}"]
)
def test_what_is_no_object_is_refused(body: bytes) -> None:
    with pytest.raises(Refused):
        checked(body, NAMES, 64)


ANY = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
CONTENT = st.text() | st.lists(st.fixed_dictionaries({"type": st.just("text") | ANY, "text": st.text() | ANY})) | ANY
MESSAGE = st.fixed_dictionaries({"role": st.sampled_from(["system", "user", "assistant"]) | ANY, "content": CONTENT})
REQUEST = st.fixed_dictionaries(
    {"messages": st.lists(MESSAGE, max_size=3) | ANY},
    optional={
        name: st.integers(-2, 2**70) | ANY
        for name in ("model", "stream", "max_tokens", "max_completion_tokens", "seed", "n", "tools", "response_format")
    },
)
BODY = st.binary() | (REQUEST | ANY).map(lambda data: json.dumps(data).encode())


@settings(max_examples=400, deadline=None)
@given(BODY)
def test_what_is_passed_on_never_ends_the_program(body: bytes) -> None:
    try:
        text = checked(body, NAMES, 64).body.decode("utf-8")
    except Refused:
        return
    found = json.loads(text)
    assert set(found) <= {"messages", "stream", "max_tokens", "seed"}
    assert found["stream"] is True
    assert found["messages"]
    for message in found["messages"]:
        assert set(message) == {"role", "content"}
        assert message["role"] in ("system", "user", "assistant")
        assert isinstance(message["content"], str)
        assert "\0" not in message["content"]
    assert 1 <= found.get("max_tokens", 1) <= 64
    assert 0 <= found.get("seed", 0) < 2**63
