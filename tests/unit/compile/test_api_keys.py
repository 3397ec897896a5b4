"""The programs of Envoy that read the API key of a request, run by LuaJIT as Envoy runs them."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from lupa.luajit21 import LuaRuntime

from kaigen.compile.topology.router_config import plain_config

KEY = "sk-one"
BLANKS = " " * 55_000
"""Envoy takes 60 KiB of headers."""


class Headers:
    """The headers of a request, as Envoy gives them to a program."""

    def __init__(self, values: Mapping[str, str]) -> None:
        self._values = values

    def get(self, name: str) -> str | None:
        return self._values.get(name)


class Handle:
    """A request: the status with which the program answers it, if it does."""

    def __init__(self, headers: Mapping[str, str]) -> None:
        self._headers = Headers(headers)
        self.status = ""

    def headers(self) -> Headers:
        return self._headers

    def respond(self, headers: Any, body: str) -> None:
        self.status = headers[":status"]


def status(authorization: str, **keys: Any) -> str:
    """Return the status with which the program of a router answers a request; empty if it lets it pass."""
    config = plain_config(hold=0, **{"keys": "", **keys})
    manager = config["static_resources"]["listeners"][0]["filter_chains"][0]["filters"][0]["typed_config"]
    (text,) = [
        each["typed_config"]["default_source_code"]["inline_string"]
        for each in manager["http_filters"]
        if each["name"] == "envoy.filters.http.lua"
    ]
    lua, handle = LuaRuntime(unpack_returned_tuples=True), Handle({"authorization": authorization})
    lua.execute(text)
    lua.globals().envoy_on_request(handle)
    return handle.status


@pytest.fixture(params=["keys", "sums"])
def given(request: pytest.FixtureRequest, tmp_path: Path) -> Mapping[str, Any]:
    """Return where a router has its keys: in a file, or as checksums."""
    if request.param == "sums":
        return {"sums": [hashlib.sha256(KEY.encode()).hexdigest()]}
    (tmp_path / "keys").write_text(f"\n \n  {KEY}\t\n", encoding="utf-8")
    return {"keys": str(tmp_path / "keys")}


@pytest.mark.parametrize("text", [f"Bearer {KEY}", f"bearer \t{KEY}  "])
def test_a_valid_key_passes(text: str, given: Mapping[str, Any]) -> None:
    assert status(text, **given) == ""


@pytest.mark.parametrize("text", ["", "Bearer", "Bearer  ", KEY, f"Basic {KEY}", f"Bearer {KEY}x", f"Bearer x {KEY}"])
def test_any_other_text_is_refused(text: str, given: Mapping[str, Any]) -> None:
    assert status(text, **given) == "401"


@pytest.mark.parametrize("text", [f"Bearer x{BLANKS}x", f"Bearer {BLANKS}", BLANKS, f"Bearer{BLANKS}x", "x" * 55_000])
def test_a_long_header_does_not_keep_envoy_busy(text: str, given: Mapping[str, Any]) -> None:
    began = time.monotonic()
    assert status(text, **given) == "401"
    assert time.monotonic() - began < 2
