"""The client of the Hub: which token is sent where, and what its answers mean."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from kaigen.diagnostics.errors import KaigenError, NotFound, SystemFailure
from kaigen.hub.client import HUB, Hub
from tests.unit.oci.web import Web

COMMIT = "0123456789" * 4
DEFAULT = ".cache/huggingface/token"


@pytest.mark.parametrize(
    ("variables", "files", "token"),
    [
        ({}, {}, ""),
        ({"HF_TOKEN": "one"}, {}, "one"),
        ({"HF_TOKEN": " one\n"}, {DEFAULT: "two"}, "one"),
        ({"HF_TOKEN": ""}, {DEFAULT: "two"}, "two"),
        ({"HF_TOKEN": " \n"}, {DEFAULT: "two"}, "two"),
        ({}, {DEFAULT: "two\n"}, "two"),
        ({"XDG_CACHE_HOME": "xdg"}, {DEFAULT: "two", "xdg/huggingface/token": "three"}, "three"),
        ({"HF_HOME": "hf", "XDG_CACHE_HOME": "xdg"}, {DEFAULT: "two", "hf/token": "four"}, "four"),
        ({"HF_TOKEN_PATH": "own", "HF_HOME": "hf"}, {"hf/token": "four", "own": "five"}, "five"),
        ({"HF_TOKEN_PATH": "absent"}, {DEFAULT: "two"}, ""),
        ({}, {DEFAULT: "\udcff"}, ""),
        ({}, {f"{DEFAULT}/folder": "two"}, ""),
    ],
)
def test_the_token_is_where_huggingface_hub_has_it(
    home: Path, monkeypatch: pytest.MonkeyPatch, variables: Mapping[str, str], files: Mapping[str, str], token: str
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value if name == "HF_TOKEN" else str(home / value))
    for path, content in files.items():
        (home / path).parent.mkdir(parents=True, exist_ok=True)
        (home / path).write_bytes(content.encode("utf-8", "surrogateescape"))
    assert Hub().server(None).token == token


@pytest.mark.parametrize(
    ("endpoint", "sent"),
    [
        (None, True),
        ("", True),
        ("https://hub.example", True),
        ("https://hub.example/", True),
        ("http://localhost:8080", True),
        ("http://127.0.0.1:8080", True),
        ("http://[::1]:8080", True),
        ("http://hub.example", False),
        ("http://huggingface.co", False),
        ("http://localhost.example", False),
        ("http://127.0.0.1.example", False),
        ("http://localhost@hub.example", False),
        ("ftp://hub.example", False),
        ("hub.example", False),
    ],
)
def test_a_token_needs_tls_or_this_machine(monkeypatch: pytest.MonkeyPatch, endpoint: str | None, sent: bool) -> None:
    monkeypatch.setenv("HF_TOKEN", "hf_secret")
    server = Hub().server(endpoint)
    assert server.token == ("hf_secret" if sent else "")
    assert ("Authorization" in server.headers) == sent
    assert "hf_secret" not in repr(server)


@pytest.mark.parametrize(
    ("endpoint", "sent"),
    [
        (None, True),
        (HUB, True),
        ("https://hub.example/", True),
        ("https://hub.example:8443", False),
        ("https://other.example", False),
        ("http://localhost:8080", False),
    ],
)
def test_a_hub_that_only_a_spec_names_gets_no_stored_token(home: Path, endpoint: str | None, sent: bool) -> None:
    (home / DEFAULT).parent.mkdir(parents=True)
    (home / DEFAULT).write_text("hf_secret")
    hub = Hub("" if endpoint in (None, HUB) else "https://hub.example")
    assert hub.server(endpoint).token == ("hf_secret" if sent else "")


@pytest.mark.parametrize(
    ("given", "variable", "named", "url"),
    [
        ("", "", None, HUB),
        ("", "https://mirror.example/", None, "https://mirror.example"),
        ("https://own.example", "https://mirror.example", "", "https://own.example"),
        ("https://own.example", "", "https://spec.example/", "https://spec.example"),
    ],
)
def test_the_hub_is_that_of_the_spec_or_the_settings_or_the_environment(
    monkeypatch: pytest.MonkeyPatch, given: str, variable: str, named: str | None, url: str
) -> None:
    if variable:
        monkeypatch.setenv("HF_ENDPOINT", variable)
    assert Hub(given).server(named).url == url


SET = "set HF_TOKEN to a token that may read it"
USE = "use a token in HF_TOKEN that may read it"


@pytest.mark.parametrize(
    ("status", "code", "token", "kind", "message", "hint"),
    [
        (404, "RevisionNotFound", "", NotFound, "has no `main` of o/n", ""),
        (404, "RepoNotFound", "", NotFound, "does not have o/n, or does not show it", SET),
        (404, "", "", NotFound, "does not have o/n, or does not show it", SET),
        (401, "RepoNotFound", "", NotFound, "does not have o/n, or does not show it", SET),
        (401, "", "t", NotFound, "does not have o/n, or does not show it", USE),
        (403, "", "t", NotFound, "does not have o/n, or does not show it", USE),
        (401, "GatedRepo", "", NotFound, "o/n is gated", f"accept its terms on the Hub, and {SET}"),
        (403, "GatedRepo", "t", NotFound, "o/n is gated", f"accept its terms on the Hub, and {USE}"),
        (400, "", "", SystemFailure, "answered HTTP 400 for o/n", ""),
        (410, "", "t", SystemFailure, "answered HTTP 410 for o/n", ""),
        (503, "", "", SystemFailure, "answered HTTP 503 for o/n", ""),
    ],
)
def test_every_question_has_the_same_failures(
    make_web: Callable[[], Web],
    monkeypatch: pytest.MonkeyPatch,
    status: int,
    code: str,
    token: str,
    kind: type[KaigenError],
    message: str,
    hint: str,
) -> None:
    web = make_web()
    web.answer = lambda method, path, auth: (status, {"X-Error-Code": code} if code else {}, b"")
    monkeypatch.setenv("HF_TOKEN", token)
    hub = Hub(f"http://{web.host}")
    questions: list[Callable[[], object]] = [
        lambda: hub.commit("o/n", "main", None),
        lambda: hub.content("o/n", "main", "config.json", None),
        lambda: hub.ask("o/n", "main", None, lambda revision: revision.commit),
    ]
    for question in questions:
        with pytest.raises(kind) as failure:
            question()
        assert str(failure.value).endswith(message)
        assert failure.value.hint == hint
    assert {auth for _, _, auth in web.asked} == {f"Bearer {token}" if token else ""}


def test_a_token_that_is_not_sent_without_tls_is_not_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_TOKEN", "t")
    server = Hub().server("http://hub.example")
    assert server.headers.keys() == {"User-Agent"}
    refusal = server.refusal("o/n", "main", 401, "")
    assert refusal.hint == "name the Hub with https://: the token of this machine is not sent without TLS"
    monkeypatch.delenv("HF_TOKEN")
    monkeypatch.setenv("HF_TOKEN_PATH", "/nonexistent")
    assert Hub().server("http://hub.example").refusal("o/n", "main", 401, "").hint == SET


def test_a_commit_is_found_without_huggingface_hub(
    make_web: Callable[[], Web], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    web = make_web()
    web.answer = lambda method, path, auth: (200, {}, b'{"sha": "%s"}' % COMMIT.encode())
    hub = Hub(f"http://{web.host}")
    assert hub.commit("o/n", "refs/pr/1", None) == COMMIT
    assert web.asked == [("GET", "/api/models/o/n/revision/refs%2Fpr%2F1", "")]
    with pytest.raises(SystemFailure, match="`kaigen lock` requires huggingface_hub"):
        hub.ask("o/n", "main", None, lambda revision: revision.commit)
