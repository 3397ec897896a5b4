"""The registry client: tokens, redirects, retries. tests/cluster tests it against a real registry."""

from __future__ import annotations

import base64
import json
import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from kaigen.diagnostics.errors import SystemFailure
from kaigen.oci import realms
from kaigen.oci.credentials import Credentials, find_credentials
from kaigen.oci.http import ATTEMPTS
from kaigen.oci.reference import Reference
from kaigen.oci.registry import Registry, digest_of
from tests.unit.oci.web import Reply, Web

ROOT = Path(__file__).parents[3]
BASIC = "Basic " + base64.b64encode(b"ada:correct-horse").decode()


@pytest.fixture
def logged_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Writes Docker's configuration as `docker login` does."""
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path))
    monkeypatch.setenv("HELM_REGISTRY_CONFIG", str(tmp_path / "helm.json"))

    def write(host: str) -> None:
        auth = base64.b64encode(b"ada:correct-horse").decode()
        (tmp_path / "config.json").write_text(json.dumps({"auths": {host: {"auth": auth}}}))

    return write


def registry(web: Web) -> Registry:
    return Registry(Reference(web.host, "charts/qwen"), pause=lambda seconds: None)


def test_a_token_is_fetched_with_the_credentials_and_used(
    make_web: Callable[[], Web], logged_in: Callable[[str], None]
) -> None:
    web, tokens = make_web(), make_web()
    logged_in(web.host)
    tokens.answer = lambda method, path, auth: (200, {}, b'{"token": "t1"}') if auth == BASIC else (401, {}, b"")

    def answer(method: str, path: str, auth: str) -> Reply:
        if auth == "Bearer t1":
            return (200, {}, b"{}")
        return (401, {"WWW-Authenticate": f'Bearer realm="http://{tokens.host}/token",service="reg"'}, b"")

    web.answer = answer
    assert registry(web).manifest("1.0") == b"{}"
    assert [path for _, path, _ in tokens.asked] == [
        "/token?service=reg&scope=repository%3Acharts%2Fqwen%3Apull%2Cpush"
    ]
    assert all("correct-horse" not in path for _, path, _ in [*tokens.asked, *web.asked])


@pytest.mark.parametrize("listed", [False, True])
def test_credentials_go_to_a_token_service_of_another_domain_only_if_it_is_listed(
    make_web: Callable[[], Web], logged_in: Callable[[str], None], listed: bool
) -> None:
    web, tokens = make_web(), make_web()
    logged_in(web.host)
    realm = f"http://localhost:{tokens.host.rpartition(':')[2]}/token"
    if listed:
        config = Path(os.environ["DOCKER_CONFIG"]) / "config.json"
        data = json.loads(config.read_text())
        data["auths"]["localhost"] = {}
        config.write_text(json.dumps(data))
    tokens.answer = lambda method, path, auth: (200, {}, b'{"token": "t1"}')
    web.answer = lambda method, path, auth: (
        (200, {}, b"{}")
        if auth == "Bearer t1"
        else (401, {"WWW-Authenticate": f'Bearer realm="{realm}",service="reg"'}, b"")
    )
    if listed:
        assert registry(web).manifest("1.0") == b"{}"
    else:
        with pytest.raises(SystemFailure, match="names a token service of another domain, localhost"):
            registry(web).manifest("1.0")
    assert [auth for _, _, auth in tokens.asked] == ([BASIC] if listed else [])


def test_the_downloader_has_the_same_rule() -> None:
    assert Path(realms.__file__).read_text() == (ROOT / "runtimes/downloader/kaigen_downloader/realms.py").read_text()


def test_credentials_do_not_follow_a_redirect_to_another_host(
    make_web: Callable[[], Web], logged_in: Callable[[str], None]
) -> None:
    web, elsewhere = make_web(), make_web()
    logged_in(web.host)
    elsewhere.answer = lambda method, path, auth: (200, {}, b"{}")

    def answer(method: str, path: str, auth: str) -> Reply:
        if auth != BASIC:
            return (401, {"WWW-Authenticate": 'Basic realm="x"'}, b"")
        return (307, {"Location": f"http://{elsewhere.host}/blob"}, b"")

    web.answer = answer
    assert registry(web).manifest("1.0") == b"{}"
    assert [auth for _, _, auth in elsewhere.asked] == [""]


def test_credentials_do_not_go_to_an_upload_on_another_host(
    make_web: Callable[[], Web], logged_in: Callable[[str], None]
) -> None:
    web, elsewhere = make_web(), make_web()
    logged_in(web.host)
    elsewhere.answer = lambda method, path, auth: (201, {}, b"")

    def answer(method: str, path: str, auth: str) -> Reply:
        if auth != BASIC:
            return (401, {"WWW-Authenticate": 'Basic realm="x"'}, b"")
        return (
            (202, {"Location": f"http://{elsewhere.host}/upload?state=1"}, b"") if method == "POST" else (404, {}, b"")
        )

    web.answer = answer
    assert registry(web).push_blob(b"content") == digest_of(b"content")
    assert [(method, path.partition("&")[0], auth) for method, path, auth in elsewhere.asked] == [
        ("PUT", "/upload?state=1", "")
    ]


def test_rejected_credentials_are_reported_without_the_password(
    make_web: Callable[[], Web], logged_in: Callable[[str], None]
) -> None:
    web = make_web()
    logged_in(web.host)
    web.answer = lambda method, path, auth: (401, {"WWW-Authenticate": 'Basic realm="x"'}, b"")
    with pytest.raises(SystemFailure, match="rejected the credentials to read charts/qwen") as error:
        registry(web).manifest("1.0")
    assert "correct-horse" not in f"{error.value}{error.value.hint}"
    assert len(web.asked) == 2


def test_missing_credentials_are_reported(make_web: Callable[[], Web], logged_in: Callable[[str], None]) -> None:
    web = make_web()
    logged_in("other.example.com")
    web.answer = lambda method, path, auth: (401, {"WWW-Authenticate": 'Basic realm="x"'}, b"")
    with pytest.raises(SystemFailure, match="requires credentials to read charts/qwen") as error:
        registry(web).manifest("1.0")
    assert f"docker login {web.host}" in error.value.hint


def test_a_request_to_a_busy_registry_is_retried(make_web: Callable[[], Web], logged_in: Callable[[str], None]) -> None:
    web = make_web()
    logged_in("")
    web.answer = lambda method, path, auth: (200, {}, b"{}") if len(web.asked) > 2 else (503, {"Retry-After": "1"}, b"")
    assert registry(web).manifest("1.0") == b"{}"
    assert len(web.asked) == 3


def test_retries_end_on_a_registry_that_stays_busy(
    make_web: Callable[[], Web], logged_in: Callable[[str], None]
) -> None:
    web = make_web()
    logged_in("")
    said = json.dumps({"errors": [{"code": "UNAVAILABLE", "message": "come back later"}]}).encode()
    web.answer = lambda method, path, auth: (503, {}, said)
    with pytest.raises(SystemFailure, match="UNAVAILABLE: come back later"):
        registry(web).manifest("1.0")
    assert len(web.asked) == ATTEMPTS


def test_an_interrupted_upload_starts_again(make_web: Callable[[], Web], logged_in: Callable[[str], None]) -> None:
    web = make_web()
    logged_in("")

    def answer(method: str, path: str, auth: str) -> Reply:
        if method == "POST":
            return (202, {"Location": f"/v2/charts/qwen/blobs/uploads/{len(web.asked)}"}, b"")
        begun = sum(asked == "POST" for asked, _, _ in web.asked)
        return (404, {}, b"") if method == "HEAD" else (500, {}, b"") if begun < 3 else (201, {}, b"")

    web.answer = answer
    registry(web).push_blob(b"content")
    assert [method for method, _, _ in web.asked] == ["HEAD", *["POST", "PUT", "HEAD"] * 2, "POST", "PUT"]


@pytest.mark.parametrize("there", [True, False])
def test_an_upload_with_a_digest_mismatch_starts_again_unless_another_writer_finished_it(
    make_web: Callable[[], Web], logged_in: Callable[[str], None], there: bool
) -> None:
    web = make_web()
    logged_in("")
    spoilt = json.dumps({"errors": [{"code": "DIGEST_INVALID", "message": "did not match"}]}).encode()

    def answer(method: str, path: str, auth: str) -> Reply:
        if method == "POST":
            return (202, {"Location": f"/v2/charts/qwen/blobs/uploads/{len(web.asked)}"}, b"")
        begun = sum(asked == "POST" for asked, _, _ in web.asked)
        if method == "HEAD":
            return (200 if there and begun else 404, {}, b"")
        return (400, {}, spoilt) if begun == 1 else (201, {}, b"")

    web.answer = answer
    registry(web).push_blob(b"content")
    again = [] if there else ["POST", "PUT"]
    assert [method for method, _, _ in web.asked] == ["HEAD", "POST", "PUT", "HEAD", *again]


def test_a_manifest_with_a_digest_mismatch_is_pushed_again(
    make_web: Callable[[], Web], logged_in: Callable[[str], None]
) -> None:
    web = make_web()
    logged_in("")
    spoilt = json.dumps({"errors": [{"code": "DIGEST_INVALID", "message": "did not match"}]}).encode()
    web.answer = lambda method, path, auth: (201, {}, b"") if len(web.asked) > 2 else (400, {}, spoilt)
    registry(web).push_manifest("1.0", b"{}", "application/json")
    assert [method for method, _, _ in web.asked] == ["PUT"] * 3
    web.answer = lambda method, path, auth: (400, {}, spoilt)
    with pytest.raises(SystemFailure, match="DIGEST_INVALID"):
        registry(web).push_manifest("1.0", b"{}", "application/json")


def test_an_unreachable_registry_is_reported() -> None:
    with pytest.raises(SystemFailure, match=r"cannot reach the registry 127\.0\.0\.1:1"):
        Registry(Reference("127.0.0.1:1", "a"), pause=lambda seconds: None).manifest("1.0")


def test_credentials_of_a_helper_are_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    helper = tmp_path / "docker-credential-demo"
    helper.write_text(
        '#!/bin/sh\nread host\ncase "$1 $host" in\n'
        '"get one.example.com") echo \'{"Username": "ada", "Secret": "s1"}\';;\n'
        '"get two.example.com") echo \'{"Username": "<token>", "Secret": "t2"}\';;\n'
        "*) echo 'credentials not found in native keychain'; exit 1;;\nesac\n"
    )
    helper.chmod(helper.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path))
    monkeypatch.setenv("HELM_REGISTRY_CONFIG", str(tmp_path / "none"))
    (tmp_path / "config.json").write_text(
        json.dumps({"credHelpers": {"one.example.com": "demo"}, "credsStore": "demo", "auths": {"two.example.com": {}}})
    )
    assert find_credentials("one.example.com") == Credentials("ada", "s1")
    assert find_credentials("two.example.com") == Credentials(identity_token="t2")
    assert find_credentials("three.example.com") is None
    assert "s1" not in repr(find_credentials("one.example.com"))


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("{", "not valid JSON"),
        ("[]", "not a JSON object"),
        ('{"auths": {"h": {"auth": "?"}}}', "invalid `auth`"),
        ('{"credHelpers": {"h": "../../bin/sh"}}', "is not a valid name of a credential helper"),
        ('{"credHelpers": {"h": "none-such"}}', "is not on the PATH"),
    ],
)
def test_invalid_credential_files_are_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: str, words: str
) -> None:
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path))
    (tmp_path / "config.json").write_text(content)
    with pytest.raises(SystemFailure, match=words):
        find_credentials("h")
