"""The rendered configuration of a router without picker with the real Envoy, in front of a stand-in of an engine."""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, suppress
from http.client import HTTPConnection
from pathlib import Path
from socketserver import BaseServer

import pytest

from kaigen.compile.builders.autoscaling import ACTIVE_METRIC
from kaigen.compile.builders.envoy import READY, STATISTICS
from kaigen.compile.topology.router_config import OF_CLIENTS, engines_cluster, plain_config
from kaigen.yaml.dump import dump
from tests.cluster.envoy import locate_envoy
from tests.cluster.test_router import ENGINE_PORT, HOSTS, LIMIT, PORT, Engine, ask, limited, read, serve, start, until

pytestmark = pytest.mark.engine

HOST = HOSTS[0]


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    """What a test starts, which ends with it."""
    with ExitStack() as stack:
        yield stack


def run(stack: ExitStack, folder: Path, hold: int, sums: Sequence[str] = (), session: str = "") -> None:
    """Start Envoy; no engine runs. With a session, both hosts are in the cluster."""
    (folder / "keys").write_text("one\n")
    config = plain_config(keys="" if sums else str(folder / "keys"), hold=hold, sums=sums, session=session, port=PORT)
    (folder / "envoy.yaml").write_text(dump(config))
    command = [str(locate_envoy()), "--config-path", str(folder / "envoy.yaml"), "--disable-hot-restart"]
    clusters = engines_cluster(HOST, ENGINE_PORT, plain=True, session=bool(session))
    if session:
        first, second = (f"{{endpoint: {{address: {{socket_address: {{address: {each}" for each in HOSTS)
        end = f", port_value: {ENGINE_PORT}}}}}}}}}"
        clusters = clusters.replace(first + end, f"{first}{end}, {second}{end}")
        assert second in clusters
    command += ["--config-yaml", f"{clusters}\n{limited(LIMIT)}", "--log-level", "error"]
    start(stack, [*command, "--concurrency", "2"], folder / "envoy.log", dict(os.environ))
    until(lambda: ask({}, key="wrong")[0] == 401)


def unanswered() -> float:
    """Return the requests that Envoy has not answered, as KEDA reads them."""
    lines = read(READY, STATISTICS).decode().splitlines()
    (value,) = [line.split()[-1] for line in lines if line.startswith(f"{ACTIVE_METRIC}{{{OF_CLIENTS}}}")]
    return float(value)


def engine(stack: ExitStack, host: str = HOST) -> BaseServer:
    """Start an engine."""
    return serve(stack, (host, ENGINE_PORT), Engine)


def test_requests_wait_for_the_first_replica_and_are_counted(stack: ExitStack, tmp_path: Path) -> None:
    run(stack, tmp_path, hold=60)
    with ThreadPoolExecutor(20) as pool:
        held = [pool.submit(ask, {"prompt": "x" * size}) for size in (*([1] * 15), 10_000_000)]
        assert ask({}, key="wrong")[0] == 401
        until(lambda: unanswered() == 16)
        time.sleep(6)
        assert unanswered() == 16
        engine(stack)
        began = time.monotonic()
        assert [each.result()[0] for each in held] == [200] * 16
        assert time.monotonic() - began < 5
    until(lambda: unanswered() == 0)


def test_a_request_waits_for_the_time_of_hold_and_then_gets_503(stack: ExitStack, tmp_path: Path) -> None:
    run(stack, tmp_path, hold=20)
    began = time.monotonic()
    with ThreadPoolExecutor(8) as pool:
        assert {each.result()[0] for each in [pool.submit(ask, {}) for _ in range(8)]} == {503}
    assert 12 < time.monotonic() - began < 30


def test_a_request_whose_client_left_is_not_counted(stack: ExitStack, tmp_path: Path) -> None:
    run(stack, tmp_path, hold=60)
    with closing(HTTPConnection("127.0.0.1", PORT)) as connection:
        connection.request("POST", "/v1/chat/completions", "{}", {"authorization": "Bearer one"})
        until(lambda: unanswered() == 1)
    until(lambda: unanswered() == 0)


def test_the_next_request_waits_after_the_last_replica_stopped(stack: ExitStack, tmp_path: Path) -> None:
    run(stack, tmp_path, hold=60)
    with ExitStack() as first:
        engine(first)
        assert [ask({"prompt": "x"})[0] for _ in range(5)] == [200] * 5
    with ThreadPoolExecutor(1) as pool:
        held = pool.submit(ask, {"prompt": "x"})
        until(lambda: unanswered() == 1)
        time.sleep(2)
        assert not held.done()
        engine(stack)
        assert held.result()[0] == 200


def test_a_body_that_is_too_large_to_keep_is_refused_at_once(stack: ExitStack, tmp_path: Path) -> None:
    run(stack, tmp_path, hold=60)
    began = time.monotonic()
    # Envoy may close the connection while the client still sends. The status depends on what it has tried before.
    with suppress(ConnectionError):
        assert ask({"prompt": "x" * 40_000_000})[0] in (503, 507)
    assert time.monotonic() - began < 10
    engine(stack)
    assert ask({"prompt": "x" * 40_000_000})[1]["bytes"] > 40_000_000


def test_keys_are_checked_by_their_checksums(stack: ExitStack, tmp_path: Path) -> None:
    # Lengths around those at which the last block of SHA-256 changes.
    keys = ["one", "", *("k" * length for length in (54, 55, 56, 63, 64, 65, 119, 120, 1000))]
    run(stack, tmp_path, hold=60, sums=[hashlib.sha256(key.encode()).hexdigest() for key in keys[::2]])
    engine(stack)
    assert [ask({"prompt": "x"}, key=key)[0] for key in keys] == [
        200 if number % 2 == 0 else 401 for number in range(11)
    ]


def test_a_request_that_upgrades_its_connection_is_refused(stack: ExitStack, tmp_path: Path) -> None:
    run(stack, tmp_path, hold=60)
    assert ask({}, headers={"connection": "upgrade", "upgrade": "websocket"})[0] == 403


def test_requests_of_a_session_stay_with_an_engine_while_it_runs(stack: ExitStack, tmp_path: Path) -> None:
    run(stack, tmp_path, hold=20, session="x-user")
    engine(stack)

    def hosts(user: str) -> set[str]:
        return {ask({}, headers={"x-user": user})[1]["host"] for _ in range(6)}

    users = [f"user-{number}" for number in range(12)]
    with ExitStack() as second:
        engine(second, HOSTS[1])
        first = {user: hosts(user) for user in users}
        assert {len(each) for each in first.values()} == {1}
        assert set().union(*first.values()) == set(HOSTS)
        assert {ask({})[1]["host"] for _ in range(40)} == set(HOSTS)
    assert [hosts(user) for user in users] == [{HOST}] * 12


def test_answers_that_stream_are_passed_on_in_pieces(stack: ExitStack, tmp_path: Path) -> None:
    run(stack, tmp_path, hold=60)
    engine(stack)
    assert ask({"prompt": "x", "stream": True}) == (200, b"x" * 20)
