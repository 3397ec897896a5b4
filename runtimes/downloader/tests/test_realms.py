"""The login of a registry goes to servers of its own domain, and to those that the user has listed."""

from __future__ import annotations

import base64
import json
from pathlib import Path

import pytest
from kaigen_downloader.realms import is_own_realm
from runs import ID, Runner
from servers import Request, serving

KNOWN = [
    ("registry-1.docker.io", "https://auth.docker.io/token"),
    ("ghcr.io", "https://ghcr.io/token"),
    ("quay.io", "https://quay.io/v2/auth"),
    ("public.ecr.aws", "https://public.ecr.aws/token/"),
    ("acme.azurecr.io", "https://acme.azurecr.io/oauth2/token"),
    ("europe-docker.pkg.dev", "https://europe-docker.pkg.dev/v2/token"),
    ("gcr.io", "https://gcr.io/v2/token"),
    ("registry.gitlab.com", "https://gitlab.com/jwt/auth"),
    ("registry.acme.example", "https://gitlab.acme.example/jwt/auth"),
    ("nvcr.io", "https://nvcr.io/proxy_auth"),
    ("registry.acme.example:5000", "https://registry.acme.example:5001/auth"),
    ("registry.tools.svc", "https://auth.tools.svc/token"),
    ("REGISTRY.acme.example.", "https://Auth.Acme.Example./token"),
    ("registry", "https://registry/token"),
    ("10.0.0.1:5000", "https://10.0.0.1/token"),
    ("[::1]:5000", "https://[::1]:5001/token"),
]
"""Registries and the servers of tokens that they name. Amazon's private registry asks for the password itself."""
OTHER = [
    ("ghcr.io", "https://evil.example/token"),
    ("ghcr.io", "https://evil.io/token"),
    ("quay.io", "https://quay.io.evil.example/v2/auth"),
    ("registry-1.docker.io", "https://docker.io.evil.example/token"),
    ("registry-1.docker.io", "https://evil-docker.io/token"),
    ("registry.gitlab.com", "https://com/jwt/auth"),
    ("registry.gitlab.com", "https://evil.com/jwt/auth"),
    ("registry.acme.example", "https://registry.acme.example@evil.example/token"),
    ("registry.acme.example", "https://evil.example/registry.acme.example"),
    ("registry", "https://other/token"),
    ("registry.svc", "https://other.svc/token"),
    ("registry.acme.example", "https://169.254.169.254/latest"),
    ("10.0.0.1:5000", "https://10.0.0.2/token"),
    ("10.0.0.1:5000", "https://9.0.0.1/token"),
    ("10.1.2.3", "https://x.1.2.3/token"),
    ("[::1]:5000", "https://[::2]/token"),
    ("registry.acme.example", ""),
    ("registry.acme.example", "https://"),
    ("registry.acme.example", "https://[::1"),
    ("registry.redhat.io", "https://sso.redhat.com/auth"),
]


@pytest.mark.parametrize(("registry", "realm"), KNOWN)
def test_known_registries_get_their_tokens(registry: str, realm: str) -> None:
    assert is_own_realm(f"https://{registry}/v2/a", realm)


@pytest.mark.parametrize(("registry", "realm"), OTHER)
def test_another_domain_gets_no_login(registry: str, realm: str) -> None:
    assert not is_own_realm(
        f"https://{registry}", realm, ["ghcr.io", registry, "https://index.docker.io/v1/", "", "x["]
    )


@pytest.mark.parametrize(
    "listed", ["sso.redhat.com", "https://sso.redhat.com", "https://sso.redhat.com/v1/", "SSO.redhat.com:443"]
)
def test_a_server_that_the_user_lists_gets_the_login(listed: str) -> None:
    assert is_own_realm("https://registry.redhat.io", "https://sso.redhat.com/auth", ["ghcr.io", listed])


@pytest.mark.parametrize(("listed", "asks"), [((), "nothing"), (("localhost",), "login"), (("127.0.0.1",), "nothing")])
def test_the_login_is_sent_only_where_the_user_lists_the_server(
    run: Runner, dest: Path, listed: tuple[str, ...], asks: str
) -> None:
    seen: list[str] = []

    def token(request: Request) -> None:
        seen.append(request.headers["Authorization"] or "")
        request.reply(200, b'{"token": "token"}')

    with serving(token) as tokens:
        realm = f'Bearer realm="http://localhost:{tokens.rpartition(":")[2]}/token",service="x"'
        with serving(lambda request: request.reply(401, b"", {"WWW-Authenticate": realm})) as host:
            login = base64.b64encode(b"user:a-password").decode()
            auth = json.dumps({"auths": {host: {"auth": login}, **{each: {} for each in listed}}})
            argv = ("fetch", "oci", "--ref", f"{host}/model:1", "--plain-http", "--dest", str(dest), "--identity", ID)
            done = run(*argv, REGISTRY_AUTH=auth)
            anonymous = run(*argv)
    assert (done.code, anonymous.code) == (10, 10)
    refused = "refers to localhost for its login, which is another domain" in done.err
    assert refused == (asks == "nothing"), done.err
    assert seen == [*([f"Basic {login}"] if asks == "login" else []), ""]
    assert "a-password" not in done.err


def test_a_redirect_of_a_registry_gets_no_login(run: Runner, dest: Path) -> None:
    seen: list[str | None] = []

    def elsewhere(request: Request) -> None:
        seen.append(request.headers["Authorization"])
        request.reply(401, b"", {"WWW-Authenticate": 'Basic realm="x"'})

    with (
        serving(elsewhere) as other,
        serving(lambda request: request.reply(307, b"", {"Location": f"http://{other}{request.path}"})) as host,
    ):
        auth = json.dumps({"auths": {host: {"auth": base64.b64encode(b"user:a-password").decode()}}})
        argv = ("fetch", "oci", "--ref", f"{host}/model:1", "--plain-http", "--dest", str(dest), "--identity", ID)
        done = run(*argv, REGISTRY_AUTH=auth)
    assert done.code == 10
    assert not any(seen)
