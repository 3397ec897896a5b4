"""JupyterLab behind oauth2-proxy with the arguments that kaigen renders, and a small OpenID Connect provider."""

from __future__ import annotations

import base64
import hashlib
import http.client
import json
import threading
import time
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import pytest
import websocket
import yaml
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding, rsa

from benchmarks.environments import python_environment
from kaigen.config.settings import Config
from kaigen.pipeline.run import render
from tests import plain_yaml
from tests.cluster.processes import Command, Processes, free_ports, listening
from tests.cluster.tools.parts import locate_part

pytestmark = pytest.mark.engine

RUNTIME = Path(__file__).parents[2] / "runtimes" / "notebook"
HOST = "lab.example.com"
ISSUER = "https://login.example.com"
TOKEN = "s3cret-of-the-lab"
SECRETS = {"client-secret": "s3cret-of-the-client", "cookie-secret": "0123456789abcdef0123456789abcdef"}
ADA = {"sub": "7d1c", "email": "ada@example.com", "email_verified": True, "groups": ["research"]}
SPEC = {
    "apiVersion": "kaigen.dev/v1alpha1",
    "kind": "Notebook",
    "metadata": {"name": "lab"},
    "spec": {
        "route": {
            "host": HOST,
            "ingress": {},
            "tls": {"secret": {"name": "lab-tls"}},
            "oidc": {
                "issuer": ISSUER,
                "clientId": "notebooks",
                "allowedGroups": ["research"],
                "allowedEmails": ["ada@example.com"],
                "allowedDomains": ["partner.example.com"],
            },
        }
    },
}


SERVER = """
import os, sys
from jupyterlab.labapp import LabApp
from kaigen_notebook.settings import server_arguments
own = [each for each in server_arguments(os.environ) if not each.startswith("--ServerApp.port=")]
LabApp.launch_instance(argv=[*own, f"--ServerApp.port={sys.argv[1]}", *sys.argv[2:]])
"""
"""The server of the image, on a port that is free here."""


def _coded(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


class Provider:
    """A provider whose next user is `user`: it signs ID tokens, and verifies the client and its code verifier."""

    def __init__(self) -> None:
        self.user: Mapping[str, Any] = ADA
        self._key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        self._asked: dict[str, dict[str, str]] = {}
        provider = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                provider.answer(self)

            do_POST = do_GET

            def log_message(self, format: str, *args: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def answer(self, request: BaseHTTPRequestHandler) -> None:
        """Answer one request (source of the endpoints: OpenID Connect Core 1.0, Discovery 1.0, RFC 7636)."""
        address = urlsplit(request.path)
        if address.path == "/auth":
            asked = {name: values[0] for name, values in parse_qs(address.query).items()}
            code = uuid.uuid4().hex
            self._asked[code] = asked
            request.send_response(302)
            request.send_header(
                "Location", f"{asked['redirect_uri']}?{urlencode({'code': code, 'state': asked['state']})}"
            )
            request.end_headers()
            return
        found: dict[str, Any] = {}
        if address.path == "/.well-known/openid-configuration":
            ends = {"authorization_endpoint": "auth", "token_endpoint": "token", "jwks_uri": "keys"}
            found = {"issuer": self.url, **{name: f"{self.url}/{end}" for name, end in ends.items()}}
            found |= {"id_token_signing_alg_values_supported": ["RS256"], "code_challenge_methods_supported": ["S256"]}
        elif address.path == "/keys":
            public = self._key.public_key().public_numbers()
            numbers = {"n": _coded(public.n.to_bytes(256)), "e": _coded(public.e.to_bytes(3))}
            found = {"keys": [{"kty": "RSA", "alg": "RS256", "use": "sig", "kid": "a", **numbers}]}
        elif address.path == "/token":
            sent = parse_qs(request.rfile.read(int(request.headers["Content-Length"])).decode())
            asked = self._asked.pop(sent["code"][0])
            verifier = hashlib.sha256(sent["code_verifier"][0].encode()).digest()
            assert asked["code_challenge"] == _coded(verifier)
            client = base64.b64decode(request.headers["Authorization"].removeprefix("Basic ")).decode()
            assert client == f"notebooks:{SECRETS['client-secret']}"
            token = self._signed({"aud": "notebooks", "nonce": asked["nonce"], **self.user})
            found = {"access_token": "a", "token_type": "Bearer", "expires_in": 300, "id_token": token}
        body = json.dumps(found).encode()
        request.send_response(200 if found else 404)
        request.send_header("Content-Type", "application/json")
        request.send_header("Content-Length", str(len(body)))
        request.end_headers()
        request.wfile.write(body)

    def _signed(self, claims: Mapping[str, Any]) -> str:
        now = int(time.time())
        body = {"iss": self.url, "iat": now, "exp": now + 300, **claims}
        text = ".".join(_coded(json.dumps(part).encode()) for part in ({"alg": "RS256", "kid": "a"}, body))
        return f"{text}.{_coded(self._key.sign(text.encode(), padding.PKCS1v15(), hashes.SHA256()))}"


@dataclass
class Browser:
    """A browser, for which the host of the route is the proxy's port, and which keeps cookies.

    Attributes:
        port: port of the proxy.
        cookies: values by name.
    """

    port: int
    cookies: dict[str, str] = field(default_factory=dict)

    @property
    def cookie(self) -> str:
        return "; ".join(f"{name}={value}" for name, value in self.cookies.items())

    def ask(
        self, path: str, method: str = "GET", body: str = "", headers: Mapping[str, str] | None = None
    ) -> tuple[int, str, str]:
        """Return status, Location and body of the answer to one request."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        connection.request(method, path, body, {"Host": HOST, "Cookie": self.cookie, **(headers or {})})
        answer = connection.getresponse()
        text = answer.read().decode(errors="replace")
        for line in answer.headers.get_all("Set-Cookie") or []:
            name, _, value = line.partition(";")[0].partition("=")
            self.cookies[name] = value
            assert not name.startswith("_oauth2_proxy") or ("Secure" in line and "SameSite=Lax" in line)
        connection.close()
        return answer.status, answer.headers.get("Location", ""), text

    def visit(self, path: str, provider: Provider) -> tuple[int, str]:
        """Return status and text of a page, after the redirects of a login."""
        for _ in range(8):
            status, target, text = self.ask(path)
            if status not in (302, 303):
                return status, text
            if target.startswith(provider.url):
                connection = http.client.HTTPConnection(urlsplit(provider.url).netloc)
                connection.request("GET", target.removeprefix(provider.url))
                target = str(connection.getresponse().headers["Location"])
                assert target.startswith(f"https://{HOST}/oauth2/callback?")
            found = urlsplit(target)
            path = f"{found.path}?{found.query}"
        raise AssertionError("too many redirects")


@dataclass(frozen=True)
class Lab:
    """What runs.

    Attributes:
        provider: the provider.
        proxy: port of the proxy.
        jupyter: port of Jupyter.
    """

    provider: Provider
    proxy: int
    jupyter: int


def rendered(folder: Path) -> tuple[Mapping[str, Any], Mapping[str, str]]:
    """Return the container of the proxy, and its ConfigMap's files."""
    (folder / "spec.yaml").write_text(yaml.safe_dump(SPEC))
    texts = [bytes(data).decode() for data in render([str(folder / "spec.yaml")], Config(root=folder)).values()]
    objects = {body["kind"]: body for text in texts for body in plain_yaml.load_all(text)}
    _, proxy = objects["StatefulSet"]["spec"]["template"]["spec"]["containers"]
    return proxy, objects["ConfigMap"]["data"]


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    folder = tmp_path_factory.mktemp("login")
    container, emails = rendered(folder)
    for mount, files in (("secret", SECRETS), ("emails", emails)):
        (folder / mount).mkdir()
        for name, text in files.items():
            (folder / mount / name).write_text(text)
    (folder / "token").write_text(f"{TOKEN}\n")
    (folder / "home").mkdir()
    proxy, jupyter = free_ports(2)
    provider = Provider()
    replaced = {
        ISSUER: provider.url,
        "/etc/oauth2-proxy": str(folder),
        "http-address=:4180": f"http-address=127.0.0.1:{proxy}",
        "127.0.0.1:8888": f"127.0.0.1:{jupyter}",
    }
    arguments = [str(each) for each in container["args"]]
    for old, new in replaced.items():
        assert any(old in each for each in arguments)
        arguments = [each.replace(old, new) for each in arguments]
    assert [each["name"] for each in container["env"]] == ["OAUTH2_PROXY_BASIC_AUTH_PASSWORD"]
    programs = python_environment("notebook", [RUNTIME / "requirements.txt"])
    options = [str(jupyter), "--allow-root", f"--ServerApp.root_dir={folder / 'home'}"]
    paths = {"HOME": str(folder / "home"), "PYTHONPATH": str(RUNTIME), "JUPYTER_TOKEN_FILE": str(folder / "token")}
    (folder / "processes").mkdir()
    processes = Processes(folder / "processes", folder / "scratch")
    try:
        processes.start(Command("jupyter", [str(programs / "python"), "-c", SERVER, *options], paths))
        processes.start(
            Command("proxy", [str(locate_part("oauth2-proxy")), *arguments], {container["env"][0]["name"]: TOKEN})
        )
        for port in (jupyter, proxy):
            processes.wait_until(partial(listening, port), f"port {port} answers")
        yield Lab(provider, proxy, jupyter)
    finally:
        processes.close()
        provider.close()


def signed_in(lab: Lab, user: Mapping[str, Any] = ADA) -> Browser:
    lab.provider.user = user
    browser = Browser(lab.proxy)
    browser.visit("/lab", lab.provider)
    return browser


def socket_of(lab: Lab, browser: Browser, kernel: str, origin: str = f"https://{HOST}") -> websocket.WebSocket:
    """Return the WebSocket of a kernel, through the proxy."""
    url = f"ws://127.0.0.1:{lab.proxy}/api/kernels/{kernel}/channels"
    return websocket.create_connection(url, timeout=60, host=HOST, origin=origin, cookie=browser.cookie)


def kernel_of(browser: Browser) -> str:
    """Return the ID of a new kernel."""
    headers = {"Content-Type": "application/json", "X-XSRFToken": browser.cookies["_xsrf"]}
    status, _, text = browser.ask("/api/kernels", "POST", '{"name": "python3"}', headers)
    assert status == 201, text
    return str(json.loads(text)["id"])


def test_a_user_signs_in_once_and_runs_a_cell_over_the_websocket(lab: Lab) -> None:
    browser = Browser(lab.proxy)
    lab.provider.user = ADA
    status, page = browser.visit("/lab", lab.provider)
    assert (status, "jupyter-config-data" in page) == (200, True)
    identity = json.loads(browser.ask("/api/me")[2])["identity"]
    assert (identity["username"], identity["name"]) == ("7d1c", "ada@example.com")
    socket = socket_of(lab, browser, kernel_of(browser))
    content = {"code": "print(6 * 7)", "silent": False, "store_history": True, "user_expressions": {}}
    header = {
        "msg_id": uuid.uuid4().hex,
        "username": "",
        "session": "a",
        "msg_type": "execute_request",
        "version": "5.3",
    }
    message = {"channel": "shell", "header": header, "parent_header": {}, "metadata": {}, "content": content}
    socket.send(json.dumps(message))
    while (answer := json.loads(socket.recv()))["header"]["msg_type"] != "stream":
        pass
    assert answer["content"]["text"] == "42\n"
    socket.close()


@pytest.mark.parametrize(
    "user",
    [
        {**ADA, "groups": ["sales"]},
        {**ADA, "email": "eve@example.com"},
        {**ADA, "email_verified": False},
        {"sub": "7d1c", "groups": ["research"]},
    ],
    ids=["another group", "another address", "address not verified", "no address"],
)
def test_another_user_of_the_provider_does_not_get_in(lab: Lab, user: Mapping[str, Any]) -> None:
    lab.provider.user = user
    browser = Browser(lab.proxy)
    assert browser.visit("/lab", lab.provider)[0] in (403, 500)
    assert browser.ask("/api/contents")[0] == 401


def test_a_user_of_an_allowed_domain_gets_in(lab: Lab) -> None:
    browser = signed_in(lab, {**ADA, "sub": "9", "email": "bob@partner.example.com"})
    assert browser.ask("/api/contents")[0] == 200


def test_nobody_reaches_jupyter_without_a_login_or_the_token(lab: Lab) -> None:
    stranger, direct = Browser(lab.proxy), Browser(lab.jupyter)
    given = {"Authorization": f"token {TOKEN}"}
    assert stranger.ask("/api/contents")[0] == 401
    assert stranger.ask("/api/contents", headers=given)[0] == 401
    assert stranger.ask("/lab")[0] == 302
    assert direct.ask("/api/contents")[0] == 403
    assert (
        direct.ask("/api/contents", headers={"X-Forwarded-User": "7d1c", "X-Forwarded-Email": "ada@example.com"})[0]
        == 403
    )
    wrong = base64.b64encode(b"7d1c:guess").decode()
    assert direct.ask("/api/contents", headers={"Authorization": f"Basic {wrong}"})[0] == 403
    assert direct.ask("/api/contents", headers={"Authorization": "Basic !"})[0] == 403
    assert direct.ask("/api/contents", headers=given)[0] == 200


def test_another_page_in_the_browser_of_a_user_runs_nothing(lab: Lab) -> None:
    browser = signed_in(lab)
    kernel = kernel_of(browser)
    body = '{"name": "python3"}'
    assert browser.ask("/api/kernels", "POST", body, {"Origin": "https://evil.example.com"})[0] in (403, 404)
    assert browser.ask("/api/kernels", "POST", body)[0] == 403
    with pytest.raises(websocket.WebSocketBadStatusException):
        socket_of(lab, browser, kernel, origin="https://other.example.com")
