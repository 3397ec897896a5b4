"""TLS: who is trusted, and that nothing that began with it goes on without it."""

from __future__ import annotations

import base64
import json
import ssl
from pathlib import Path

import pytest
import trustme
from hub import Hub
from kaigen_downloader.net import is_encrypted
from kaigen_downloader.s3 import address
from runs import ID, Runner, holds
from servers import Request, serving


@pytest.fixture
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture
def trusted(authority: trustme.CA, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ssl.SSLContext:
    """The context of a server that the program trusts."""
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "ca.pem"))
    return server_context(authority)


def server_context(authority: trustme.CA) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    return context


def in_capitals(url: str) -> str:
    scheme, colon, rest = url.partition(":")
    return scheme.upper() + colon + rest


def test_a_hub_with_an_own_authority_is_trusted_when_named(
    authority: trustme.CA, run: Runner, dest: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Hub(tls=server_context(authority)) as hub:
        hub.add("config.json", b"{}")
        done = run.fetch(hub, dest)
        assert done.code == 20
        assert "the certificate is not trusted" in done.err
        assert "SSL_CERT_FILE" in done.err
        assert not hub.seen
        authority.cert_pem.write_to_path(tmp_path / "ca.pem")
        monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "ca.pem"))
        done = run.fetch(hub, dest)
        assert done.code == 0, done.err
        assert holds(dest, hub)


@pytest.mark.parametrize("capitals", [False, True])
def test_a_redirect_from_https_to_http_is_not_followed(
    trusted: ssl.SSLContext, run: Runner, dest: Path, capitals: bool
) -> None:
    with Hub(tls=trusted) as hub:
        hub.add("model.bin", bytes(2000))
        hub.url = in_capitals(hub.url) if capitals else hub.url
        done = run.fetch(hub, dest, KAIGEN_ATTEMPTS="2")
        assert done.code == 10, done.err
        assert "127.0.0.1 refers from https to http" in done.err
        assert not hub.requests("cdn")


def test_a_redirect_to_a_scheme_in_capitals_is_followed(trusted: ssl.SSLContext, run: Runner, dest: Path) -> None:
    with Hub(tls=trusted) as hub:
        hub.add("model.bin", bytes(2000))
        hub.cdn = False

        def capitals(handler: Request) -> None:
            target = handler.path.partition("/first")[2]
            handler.reply(302, b"", {"Location": in_capitals(hub.url) + target})

        with serving(capitals, tls=trusted) as host:
            done = run.fetch(hub, dest, "--endpoint", f"https://{host}/first")
        assert done.code == 0, done.err
        assert holds(dest, hub)


def test_the_next_page_of_a_listing_does_not_leave_tls(trusted: ssl.SSLContext, run: Runner, dest: Path) -> None:
    with Hub(tls=trusted) as hub:
        for name in "abcd":
            hub.add(name, b"x")
        hub.page, hub.next_page_at = 2, hub.cdn_url
        done = run.fetch(hub, dest)
        assert done.code == 10, done.err
        assert "127.0.0.1 refers from https to http" in done.err
        assert not hub.requests("cdn")


@pytest.mark.parametrize("scheme", ["http", "HTTP", "Http"])
def test_a_login_to_a_registry_does_not_leave_tls(
    trusted: ssl.SSLContext, run: Runner, dest: Path, scheme: str
) -> None:
    seen: list[str] = []

    def token(request: Request) -> None:
        seen.append(request.headers["Authorization"])
        request.reply(200, b'{"token": "token"}')

    with serving(token) as plain:
        realm = f'Bearer realm="{scheme}://{plain}/token",service="x"'
        with serving(lambda request: request.reply(401, b"", {"WWW-Authenticate": realm}), tls=trusted) as host:
            login = base64.b64encode(b"user:a-password").decode()
            auth = json.dumps({"auths": {host: {"auth": login}}})
            argv = ("fetch", "oci", "--ref", f"{host}/model:1", "--dest", str(dest), "--identity", ID)
            done = run(*argv, REGISTRY_AUTH=auth)
    assert (done.code, "refers from https to http" in done.err) == (10, True), done.err
    assert seen == []


def test_a_url_is_encrypted_whatever_the_case_of_its_scheme() -> None:
    found = [is_encrypted(f"{scheme}://a.example/") for scheme in ("https", "HTTPS", "http", "HTTP", "ftp")]
    assert found == [True, True, False, False, False]


def test_the_scheme_of_a_bucket_may_be_in_capitals() -> None:
    assert address("s3://models/a", "HTTPS://s3.example:9000").endpoint == "https://s3.example:9000"


@pytest.mark.parametrize("variable", ["https_proxy", "http_proxy"])
@pytest.mark.parametrize("scheme", ["https", "socks5", "HTTPS", "ftp"])
def test_a_proxy_that_would_get_its_password_in_clear_is_refused(
    run: Runner, dest: Path, monkeypatch: pytest.MonkeyPatch, scheme: str, variable: str
) -> None:
    seen: list[str] = []
    with serving(lambda request: seen.append(request.path)) as proxy:
        monkeypatch.setenv(variable, f"{scheme}://user:a-password@{proxy}")
        file = f"a={variable.partition('_')[0]}://a.example/a"
        done = run("fetch", "http", "--file", file, "--dest", str(dest), "--identity", ID)
    assert (done.code, "has no http URL: set it to http://HOST:PORT" in done.err) == (13, True), done.err
    assert "a-password" not in done.err
    assert seen == []


def test_a_proxy_with_an_odd_port_is_refused(run: Runner, hub: Hub, dest: Path) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("http_proxy", "http://127.0.0.1:notaport")
        done = run.fetch(hub, dest)
    assert (done.code, "HTTP_PROXY has no http URL" in done.err) == (13, True), done.err
