"""Lists in pages, names without contents, versions of kinds, and answers that are none."""

from __future__ import annotations

import json
import socket
from pathlib import Path
from typing import Any

import pytest

from kaigen.cluster import client
from kaigen.cluster.client import Cluster
from kaigen.cluster.errors import ApiError, Forbidden
from kaigen.diagnostics.errors import SystemFailure
from tests.unit.cluster.api_server import api_server, kubeconfig

_LIST = "/api/v1/namespaces/ml/pods?limit=500"
_GROUP: dict[str, Any] = {
    "versions": [{"groupVersion": "acme.dev/v2beta1"}, {"groupVersion": "acme.dev/v1"}],
    "preferredVersion": {"groupVersion": "acme.dev/v1"},
}
_NEW = {"resources": [{"name": "mice", "kind": "Mouse", "namespaced": True}, {"name": "rats", "kind": "Rat"}]}
_OLD = {
    "resources": [
        {"name": "mice", "kind": "Mouse", "namespaced": True},
        {"name": "mice/status", "kind": "Mouse", "namespaced": True},
        {"name": "zoos", "kind": "Zoo", "namespaced": False},
    ]
}
_DISCOVERY = {"/apis/acme.dev": (200, _GROUP), "/apis/acme.dev/v1": (200, _OLD), "/apis/acme.dev/v2beta1": (200, _NEW)}


def pods(*names: str, token: str = "") -> dict[str, Any]:
    items = [{"metadata": {"name": name}} for name in names]
    return {"apiVersion": "v1", "kind": "PodList", "metadata": {"continue": token}, "items": items}


def test_lists_are_read_in_pages_and_items_have_their_kind(tmp_path: Path) -> None:
    answers = {_LIST: (200, pods("a", token="next")), f"{_LIST}&continue=next": (200, pods("b"))}
    with api_server(tmp_path, answers) as (cluster, requests):
        found = cluster.objects("v1/Pod", "ml")
    assert [item["metadata"]["name"] for item in found] == ["a", "b"]
    assert {(item["apiVersion"], item["kind"]) for item in found} == {("v1", "Pod")}
    assert requests == list(answers)


def test_list_that_changed_too_much_between_its_pages_is_read_at_once(tmp_path: Path) -> None:
    whole = "/api/v1/namespaces/ml/pods?labelSelector=app"
    answers = {
        f"{whole}&limit=500": (200, pods("a", token="old")),
        f"{whole}&limit=500&continue=old": (410, {"reason": "Expired"}),
        whole: (200, pods("b", "c")),
    }
    with api_server(tmp_path, answers) as (cluster, _):
        found = cluster.objects("v1/Pod", "ml", "app")
    assert [item["metadata"]["name"] for item in found] == ["b", "c"]


@pytest.mark.parametrize(
    ("type_", "namespace", "path"),
    [
        ("Mouse.acme.dev", "ml", "/apis/acme.dev/v1/namespaces/ml/mice"),
        ("Mouse.acme.dev", "", "/apis/acme.dev/v1/mice"),
        ("Rat.acme.dev", "ml", "/apis/acme.dev/v2beta1/namespaces/ml/rats"),
        ("Zoo.acme.dev", "ml", "/apis/acme.dev/v1/zoos"),
    ],
)
def test_kind_is_read_in_the_preferred_version_that_has_it(
    tmp_path: Path, type_: str, namespace: str, path: str
) -> None:
    answers = {**_DISCOVERY, f"{path}?limit=500": (200, {"items": [{"metadata": {"name": "a"}}]})}
    with api_server(tmp_path, answers) as (cluster, requests):
        assert len(cluster.objects_of_type(type_, namespace)) == 1
        assert len(cluster.objects_of_type(type_, namespace)) == 1
    assert len(requests) == len(_DISCOVERY) + 2, "a group is asked for once"


@pytest.mark.parametrize("type_", ["Cat.acme.dev", "Mouse.gone.dev"])
def test_type_that_the_cluster_does_not_have_has_no_objects(tmp_path: Path, type_: str) -> None:
    with api_server(tmp_path, _DISCOVERY) as (cluster, _):
        assert cluster.objects_of_type(type_, "ml") == []
        assert cluster.names_of_type(type_, "ml") == []
        assert not cluster.has(type_, "ml", "a")


@pytest.mark.parametrize(
    "answer",
    [
        {"columnDefinitions": [{"name": "Age"}, {"name": "Name"}], "rows": [{"cells": ["1d", "tom"]}]},
        {"items": [{"metadata": {"name": "tom"}}]},
    ],
)
def test_names_are_those_of_a_table_or_of_a_server_without_tables(tmp_path: Path, answer: Any) -> None:
    path = "/apis/acme.dev/v1/namespaces/ml/mice"
    answers = {
        **_DISCOVERY,
        f"{path}?includeObject=None&limit=500": (200, answer),
        f"{path}/tom?includeObject=None": (200, answer),
    }
    with api_server(tmp_path, answers) as (cluster, _):
        assert cluster.names_of_type("Mouse.acme.dev", "ml") == ["tom"]
        assert cluster.has("Mouse.acme.dev", "ml", "tom")
        assert not cluster.has("Mouse.acme.dev", "ml", "jerry")


def test_refusal_says_what_the_user_may_not_do(tmp_path: Path) -> None:
    answers = {_LIST: (403, {"reason": "Forbidden", "message": "pods is forbidden"})}
    with api_server(tmp_path, answers) as (cluster, _), pytest.raises(Forbidden, match="pods is forbidden") as raised:
        cluster.objects("v1/Pod", "ml")
    assert raised.value.hint == "check the rights of the user of the kubeconfig"


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        ((502, b"<html>bad gateway"), "<html>bad gateway"),
        ((401, {"message": "Unauthorized"}), "Unauthorized"),
        ((500, [1]), r"\[1\]"),
    ],
)
def test_error_of_something_in_between_is_shown(tmp_path: Path, answer: tuple[int, Any], text: str) -> None:
    with api_server(tmp_path, {"/version": answer}) as (cluster, _), pytest.raises(ApiError, match=text):
        cluster.request("GET", "/version")


@pytest.mark.parametrize("body", [b"<html>log in", [1], b""])
def test_page_of_another_server_is_an_error(tmp_path: Path, body: Any) -> None:
    with (
        api_server(tmp_path, {"/version": (200, body)}) as (cluster, _),
        pytest.raises(SystemFailure, match="not of an API server"),
    ):
        cluster.request("GET", "/version")


def test_server_that_does_not_answer_is_asked_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "TIMEOUT_S", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as server:
        path = tmp_path / "config"
        path.write_text(json.dumps(kubeconfig(f"http://127.0.0.1:{server.getsockname()[1]}")))
        with pytest.raises(SystemFailure, match=r"cannot reach the cluster at .* Read timed out"):
            Cluster(str(path)).request("GET", "/version")
        server.settimeout(0)
        for _ in range(2):
            server.accept()[0].close()
        with pytest.raises(BlockingIOError):
            server.accept()
