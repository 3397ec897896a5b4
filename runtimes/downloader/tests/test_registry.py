"""Registries that answer with anything: tokens, challenges and manifests."""

from __future__ import annotations

import time
from pathlib import Path

from runs import ID, Done, Runner
from servers import serving


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
