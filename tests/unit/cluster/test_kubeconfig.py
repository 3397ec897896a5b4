"""Kubeconfigs are read as kubectl reads them, or not at all."""

from __future__ import annotations

import base64
import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from kaigen.cluster.kubeconfig import log_in
from kaigen.diagnostics.errors import SystemFailure
from tests.unit.cluster.api_server import kubeconfig


def write(path: Path, content: Any) -> str:
    path.write_text(json.dumps(content))
    return str(path)


@pytest.fixture
def two(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """KUBECONFIG with two files."""
    files = [
        write(tmp_path / name, kubeconfig(f"https://{name}.example.com", name, token=name)) for name in ("one", "two")
    ]
    monkeypatch.setenv("KUBECONFIG", os.pathsep.join(files))


@pytest.mark.usefixtures("two")
@pytest.mark.parametrize(("context", "chosen"), [("", "one"), ("one", "one"), ("two", "two")])
def test_the_first_of_several_files_sets_the_current_context(context: str, chosen: str) -> None:
    found = log_in(context=context)
    assert found.configuration.host == f"https://{chosen}.example.com"
    assert found.configuration.api_key == {"BearerToken": f"Bearer {chosen}"}
    assert found.namespace == f"of-{chosen}"


@pytest.mark.usefixtures("two")
def test_option_takes_the_place_of_the_variable(tmp_path: Path) -> None:
    path = write(tmp_path / "three", kubeconfig("https://three.example.com", "three"))
    assert log_in(path).configuration.host == "https://three.example.com"


@pytest.mark.parametrize(
    "user", [{"as": "root"}, {"as-groups": ["system:masters"]}, {"as-uid": "1"}, {"as-user-extra": {"a": ["b"]}}]
)
def test_user_who_impersonates_is_refused(tmp_path: Path, user: dict[str, Any]) -> None:
    path = write(tmp_path / "config", kubeconfig("https://a.example.com", token="t", **user))
    with pytest.raises(SystemFailure, match="user here of the kubeconfig impersonates another"):
        log_in(path)


def plugin(code: str) -> dict[str, Any]:
    version = "client.authentication.k8s.io/v1"
    return {"apiVersion": version, "command": sys.executable, "args": ["-c", code], "interactiveMode": "Never"}


def credential(**status: str) -> str:
    answer = {"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status": status}
    return f"print({json.dumps(answer)!r})"


def test_credential_plugin_gives_the_token(tmp_path: Path) -> None:
    path = write(tmp_path / "config", kubeconfig("https://a.example.com", exec=plugin(credential(token="t"))))
    assert log_in(path).configuration.api_key == {"BearerToken": "Bearer t"}


@pytest.mark.parametrize(
    ("command", "message"),
    [
        (plugin("import sys; sys.exit('log in first')"), "exec: process returned 1. log in first"),
        (plugin("print('no JSON')"), "exec: failed to decode process output"),
        (plugin(credential()), "exec: missing token or clientCertificateData"),
        ({**plugin(""), "command": "/nowhere/plugin"}, "No such file or directory"),
    ],
)
def test_credential_plugin_that_fails_does_not_make_the_user_anonymous(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], command: dict[str, Any], message: str
) -> None:
    path = write(tmp_path / "config", kubeconfig("https://a.example.com", exec=command))
    with pytest.raises(SystemFailure, match="the credential plugin of user here failed: ") as raised:
        log_in(path)
    assert message in str(raised.value)
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "text",
        "a: [",
        "{}",
        "{current-context: a, contexts: {}}",
        "{current-context: a, contexts: [{}]}",
        "{current-context: a, contexts: [{name: a}]}",
        "{current-context: a, contexts: [{name: a, context: {cluster: b}}], clusters: []}",
        "{current-context: a, contexts: [{name: a, context: {cluster: b, user: c}}], clusters: [{name: b, cluster: "
        "{server: 'https://a'}}], users: [{name: c, user: {client-certificate-data: abcde}}]}",
        "{current-context: a, contexts: [{name: a, context: {cluster: b}}], clusters: [{name: b, cluster: "
        "{server: 'https://a', certificate-authority: /nowhere}}]}",
    ],
)
def test_file_that_is_no_kubeconfig_is_one_error(tmp_path: Path, text: str) -> None:
    path = tmp_path / "config"
    path.write_text(text)
    with pytest.raises(SystemFailure, match="no usable kubeconfig") as raised:
        log_in(str(path))
    assert raised.value.hint == "set KUBECONFIG, or --kubeconfig and --context"


def test_proxy_server_name_and_token_file_are_those_of_the_file(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("t")
    content = kubeconfig("https://a.example.com", tokenFile="token")
    content["clusters"][0]["cluster"] |= {
        "proxy-url": "http://127.0.0.1:3128",
        "tls-server-name": "b.example.com",
        "certificate-authority-data": base64.b64encode(b"x").decode(),
    }
    found = log_in(write(tmp_path / "config", content)).configuration
    assert (found.proxy, found.tls_server_name) == ("http://127.0.0.1:3128", "b.example.com")
    assert found.api_key == {"BearerToken": "Bearer t"}
