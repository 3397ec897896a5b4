"""Registries that answer with anything: tokens, challenges and manifests."""

from __future__ import annotations

import time
from pathlib import Path

from runs import ID, Done, Runner
from servers import Request, serving


def fetch(run: Runner, host: str, dest: Path, *more: str, **env: str) -> Done:
    """Fetch an artifact."""
    argv = ("fetch", "oci", "--ref", f"{host}/model:1", "--plain-http", "--dest", str(dest), "--identity", ID)
    return run(*argv, "--timeout", "2s", *more, **{"KAIGEN_ATTEMPTS": "2"} | env)


def test_a_long_challenge_is_read_in_linear_time(run: Runner, dest: Path) -> None:
    challenge = {"WWW-Authenticate": "Bearer " + "a" * 65_000}
    with serving(lambda request: request.reply(401, b"", challenge)) as host:
        begin = time.process_time()
        done = fetch(run, host, dest)
    assert time.process_time() - begin < 5
    assert done.code in (10, 20), done.err


def test_the_address_of_a_login_may_have_a_query(run: Runner, dest: Path) -> None:
    seen: list[str] = []

    def answer(request: Request) -> None:
        if request.path.startswith("/token"):
            seen.append(request.path)
            return request.reply(200, b'{"token": "a-token"}')
        realm = f'Bearer Realm="http://{request.host}/token?account=a#x",service="s s"'
        if request.headers["Authorization"] is None:
            return request.reply(401, b"", {"WWW-Authenticate": realm})
        return request.reply(404)

    with serving(answer) as host:
        assert fetch(run, host, dest).code == 10
    assert seen == ["/token?account=a&service=s+s&scope=repository%3Amodel%3Apull"]
