"""`logs -f` over connections that break: every line once, and in order."""

from __future__ import annotations

from pathlib import Path

import pytest

from kaigen.cluster.client import Cluster
from kaigen.cluster.errors import ApiError
from kaigen.ops import logs as ops_logs
from kaigen.ops.logs import logs
from tests.unit.ops import log_server as log_server_module
from tests.unit.ops.log_server import JOB, Connection, log_server

LINES = [
    "2026-01-01T10:00:00.000000001Z a",
    "2026-01-01T10:00:01.000000000Z b",
    # Twice the same line at the same time, and one of standard error that is late.
    "2026-01-01T10:00:01.500000000Z c",
    "2026-01-01T10:00:01.500000000Z c",
    "2026-01-01T10:00:02.000000000Z d",
    "2026-01-01T10:00:01.900000000Z late",
    "2026-01-01T10:00:02.000000000Z ",
    "2026-01-01T10:00:09.000000000Z e f",
]
ALL = [line.partition(" ")[2] for line in LINES]
DONE = Connection(len(LINES), ended=True)


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ops_logs, "POLL_S", 0.0)


def followed(folder: Path, *connections: Connection, chunked: bool = True) -> list[str]:
    with log_server(folder, LINES, *connections) as server:
        server.chunked = chunked
        return [line.decode() for line in logs(Cluster(str(server.kubeconfig)), JOB, follow=True)]


@pytest.mark.parametrize("until", range(len(LINES) + 1))
def test_no_line_is_lost_or_repeated_wherever_the_connection_breaks(tmp_path: Path, until: int) -> None:
    size = sum(len(line) + 1 for line in LINES[:until])
    # In the middle of a line, at its end, and an answer that ends early without an error.
    for cut in (max(size - 3, 0), size, None):
        for chunked in (True, False):
            assert followed(tmp_path, Connection(until, cut), DONE, chunked=chunked) == ALL


def test_lines_that_a_short_connection_sends_again_are_printed_once(tmp_path: Path) -> None:
    assert followed(tmp_path, *(Connection(count) for count in (3, 3, 4, 6)), DONE) == ALL


def test_the_last_lines_are_asked_for_once(tmp_path: Path) -> None:
    with log_server(tmp_path, LINES, Connection(3), DONE) as server:
        found = [line.decode() for line in logs(Cluster(str(server.kubeconfig)), JOB, follow=True, tail=2)]
        assert found == ALL[1:]
        assert [query.get("tailLines") for query in server.queries] == [["2"], None]
        assert server.queries[1]["sinceTime"] == ["2026-01-01T10:00:01Z"]


def test_lines_are_not_lost_when_none_of_the_old_ones_is_wanted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_server_module, "DATE", "Thu, 01 Jan 2026 10:00:02 GMT")
    with log_server(tmp_path, LINES, Connection(4, cut=0), DONE) as server:
        found = [line.decode() for line in logs(Cluster(str(server.kubeconfig)), JOB, follow=True, tail=0)]
    assert found == ["d", "", "e f"]


def test_a_container_that_starts_and_a_busy_server_are_waited_for(tmp_path: Path) -> None:
    waits = Connection(status=400, message='container "run" in pod "job-x" is waiting to start: Pulling')
    busy = Connection(status=503, message="the server is busy")
    assert followed(tmp_path, waits, busy, Connection(2), busy, DONE) == ALL


def test_a_server_that_stays_away_and_a_refusal_are_errors(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ApiError, match="may not read logs"):
        followed(tmp_path, Connection(2), Connection(status=403, message="you may not read logs"))
    monkeypatch.setattr(ops_logs, "PATIENCE_S", 0.05)
    with pytest.raises(ApiError, match="is busy"):
        followed(tmp_path, Connection(2), Connection(status=503, message="the server is busy"))
