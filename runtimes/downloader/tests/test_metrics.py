"""Metrics for Prometheus: what a running download shows, and that nobody can stop it by reading them."""

from __future__ import annotations

import http.client
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hub import Hub
from kaigen_downloader import __version__, metrics
from kaigen_downloader.metrics import CONTENT_TYPE, served, text
from kaigen_downloader.progress import Display, Meter
from prometheus_client.parser import text_string_to_metric_families
from runs import ID, PACKAGE, Runner, arguments, content, finish, start
from s3 import S3

Samples = dict[tuple[str, str], float]


def samples(body: str) -> Samples:
    """The values by name and action, read by the parser of Prometheus' own client."""
    return {
        (sample.name.removeprefix("kaigen_downloader_"), sample.labels.get("action", "")): sample.value
        for family in text_string_to_metric_families(body)
        for sample in family.samples
    }


def get(port: int, path: str = "/metrics", host: str = "127.0.0.1") -> http.client.HTTPResponse:
    """Ask for a path; the body can be read from the answer."""
    connection = http.client.HTTPConnection(host, port, timeout=10)
    connection.request("GET", path)
    return connection.getresponse()


def until(asked: Callable[[], Samples], holds: Callable[[Samples], bool]) -> Samples:
    """Ask again until something holds."""
    for _ in range(500):
        try:
            found = asked()
        except OSError:
            found = {}
        if holds(found):
            return found
        time.sleep(0.02)
    raise AssertionError(found)


@pytest.fixture
def port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


@pytest.fixture
def shown(port: int) -> Iterator[Display]:
    display = Display().between("owner/name@main", "/model")
    with served(port, display):
        yield display


def test_a_running_download_shows_its_bytes_and_files(hub: Hub, dest: Path, port: int) -> None:
    hub.rate = 1e5
    total = sum(len(stored.data) for stored in hub.files.values())
    run = start(arguments(hub, dest, "--metrics-port", str(port)))
    moving = until(
        lambda: samples(get(port).read().decode()), lambda found: 0 < found.get(("done_bytes", "fetch"), 0) < total
    )
    later = until(
        lambda: samples(get(port).read().decode()),
        lambda found: found["done_bytes", "fetch"] > moving["done_bytes", "fetch"],
    )
    hub.rate = 0
    assert finish(run).code == 0
    assert moving["size_bytes", "fetch"] == later["size_bytes", "fetch"] == total
    assert moving["files", "fetch"] == 5
    assert moving["damaged_bytes_total", "fetch"] == 0
    assert later["received_bytes_total", "fetch"] > moving["received_bytes_total", "fetch"]
    with pytest.raises(OSError, match="refused"):
        get(port)


def test_counts_of_an_upload_are_those_of_reading_and_of_storing(
    tmp_path: Path, s3: S3, run: Runner, port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    made, counts = tmp_path / "made", []
    made.mkdir()
    (made / "model.m").write_bytes(content(1000, 7))
    close = metrics._Server.server_close

    def count_and_close(server: metrics._Server) -> None:
        counts.extend(server.shown.counts())
        close(server)

    monkeypatch.setattr(metrics._Server, "server_close", count_and_close)
    where = ["--dest", f"s3://{s3.bucket}/out", "--identity", ID, "--s3-endpoint", s3.url]
    assert run("put", str(made), *where, "--metrics-port", str(port)).code == 0
    assert [(each.action, each.done, each.completed) for each in counts] == [("check", 1000, 1), ("fetch", 1000, 1)]


def test_names_and_types_are_those_that_prometheus_expects(shown: Display, port: int) -> None:
    meter = Meter("fetch", shown, total=100, files=2, done=10)
    meter.add(50)
    meter.lose(20)
    meter.complete_file()
    answer = get(port)
    body = answer.read().decode()
    assert (answer.status, answer.headers["Content-Type"]) == (200, CONTENT_TYPE)
    families = {family.name: family for family in text_string_to_metric_families(body)}
    assert all(family.documentation for family in families.values())
    assert {name: family.type for name, family in families.items()} == {
        "kaigen_downloader_info": "gauge",
        "kaigen_downloader_received_bytes": "counter",
        "kaigen_downloader_damaged_bytes": "counter",
        "kaigen_downloader_done_bytes": "gauge",
        "kaigen_downloader_size_bytes": "gauge",
        "kaigen_downloader_done_files": "gauge",
        "kaigen_downloader_files": "gauge",
    }
    assert families["kaigen_downloader_info"].samples[0].labels == {
        "version": __version__,
        "source": "owner/name@main",
        "dest": "/model",
    }
    assert samples(body) == {
        ("info", ""): 1,
        ("received_bytes_total", "fetch"): 50,
        ("damaged_bytes_total", "fetch"): 20,
        ("done_bytes", "fetch"): 40,
        ("size_bytes", "fetch"): 100,
        ("done_files", "fetch"): 1,
        ("files", "fetch"): 2,
    }


@pytest.mark.parametrize("odd", ['a"b', "a\\b", "a\nb", "ä\\n", '"\\', "{}=,"])
def test_odd_names_are_escaped(odd: str) -> None:
    (family,) = (each for each in text_string_to_metric_families(text(odd, odd, [])) if each.samples)
    assert family.samples[0].labels == {"version": __version__, "source": odd, "dest": odd}


def test_secrets_are_not_shown(port: int) -> None:
    display = Display().between("http://user:pass@host/a?token=hf_abcdefgh", "/model")
    with served(port, display):
        assert b"pass" not in (body := get(port).read())
        assert b"hf_" not in body


def test_other_paths_and_methods_are_refused(shown: Display, port: int) -> None:
    assert get(port, "/").status == 404
    assert get(port, "/metrics/..").status == 404
    assert get(port, "/metrics?x=1").status == 200
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    connection.request("POST", "/metrics", b"x")
    assert connection.getresponse().status == 501


@pytest.mark.skipif(not socket.has_dualstack_ipv6(), reason="no IPv6 here")
def test_pods_with_ipv6_answer_too(shown: Display, port: int) -> None:
    assert get(port, host="::1").status == 200


def test_a_port_that_is_in_use_is_a_warning(hub: Hub, run: Runner, dest: Path) -> None:
    with socket.create_server(("", 0)) as taken:
        port = taken.getsockname()[1]
        done = run.fetch(hub, dest, "--metrics-port", str(port))
    assert done.code == 0
    assert f"warning: no metrics on port {port}: Address already in use" in done.err


@pytest.mark.parametrize("wrong", ["0", "65536", "http", "-1"])
def test_a_wrong_port_is_an_error(hub: Hub, run: Runner, dest: Path, wrong: str) -> None:
    done = run.fetch(hub, dest, f"--metrics-port={wrong}")
    assert done.code == 13
    assert "--metrics-port" in done.err
    assert not dest.exists()


def test_a_client_that_drips_is_cut_and_the_next_one_is_answered(
    shown: Display, port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(metrics, "_DEADLINE", 0.3)
    ended = threading.Event()

    def drip() -> None:
        with socket.create_connection(("127.0.0.1", port)) as connection:
            try:
                while not ended.wait(0.05):
                    connection.sendall(b"G")
            except OSError:
                cut.set()

    cut = threading.Event()
    thread = threading.Thread(target=drip, daemon=True)
    thread.start()
    time.sleep(0.1)
    assert get(port).status == 200
    assert cut.wait(10)
    ended.set()
    thread.join()


def test_idle_clients_delay_neither_a_scrape_nor_the_end(port: int) -> None:
    with served(port, Display().between("owner/name@main", "/model")):
        idle = [socket.create_connection(("127.0.0.1", port)) for _ in range(20)]
        begin = time.monotonic()
        assert get(port).status == 200
    assert time.monotonic() - begin < 3
    for connection in idle:
        connection.close()


def test_a_folder_that_is_no_text_is_shown_as_far_as_it_is(port: int) -> None:
    with served(port, Display().between("owner/name@main", "/mod\udcffel")):
        assert b'dest="/mod?el"' in get(port).read()


def test_clients_that_leave_are_no_lines_in_the_log(
    shown: Display, port: int, capfd: pytest.CaptureFixture[str]
) -> None:
    for _ in range(3):
        with socket.create_connection(("127.0.0.1", port)) as connection:
            connection.sendall(b"GET /metrics HTTP/1.1\r\n\r\n")
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
    with socket.create_connection(("127.0.0.1", port)) as connection:
        connection.sendall(b"\x00\xff nonsense\r\n\r\n")
        connection.recv(1000)
    assert get(port).status == 200
    assert capfd.readouterr().err == ""


def test_without_the_option_there_is_no_server(hub: Hub, run: Runner, dest: Path) -> None:
    code = (
        "import sys; from kaigen_downloader.cli import main;"
        f"assert main({arguments(hub, dest)!r}, {{}}) == 0;"
        "print('http.server' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], env={"PYTHONPATH": str(PACKAGE)}, capture_output=True, text=True, check=True
    )
    assert done.stdout == "False\n"
