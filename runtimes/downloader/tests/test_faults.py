"""Networks and servers that fail, and servers that refuse."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from hub import COMMIT, Handler, Hub, corrupt, cut, stall, status
from runs import FAST, PACKAGE, Runner, arguments, holds, marker

TOKEN = "hf_abcDEF0123456789secret"


@pytest.mark.parametrize(
    ("where", "part", "fault"),
    [
        ("hub", "/revision/", status(503)),
        ("hub", "/tree/", status(502)),
        ("hub", "/resolve/", status(500)),
        ("cdn", "model-00002", status(503)),
        ("cdn", "model-00002", status(429)),
        ("cdn", "model-00002", cut(10_000)),
        ("cdn", "model-00001", cut(0)),
        ("hub", "config.json", cut(3)),
        ("cdn", "model-00002", status(403)),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_request_that_fails_twice_is_retried(
    hub: Hub, run: Runner, dest: Path, where: str, part: str, fault: Callable[[Handler], None]
) -> None:
    hub.fail(2, where, fault, part)
    done = run.fetch(hub, dest)
    assert done.code == 0, done.err
    assert holds(dest, hub)
    assert "of 8 follows" in done.err


@pytest.mark.parametrize(
    ("where", "part", "fault", "said"),
    [
        ("hub", "/revision/", status(503), "listing owner/name: 127.0.0.1 answers 503"),
        ("hub", "config.json", status(500), "config.json: 127.0.0.1 answers 500"),
        ("cdn", "model-00001", cut(0), "model-00001.safetensors: the connection was cut"),
        ("cdn", "model-00001", status(403), "the signed URL is not accepted (status 403)"),
    ],
)
def test_a_persistent_failure_ends_with_20(
    hub: Hub, run: Runner, dest: Path, where: str, part: str, fault: Callable[[Handler], None], said: str
) -> None:
    hub.fail(1000, where, fault, part)
    done = run.fetch(hub, dest, KAIGEN_ATTEMPTS="3")
    assert done.code == 20
    assert said in done.err
    assert "gave up after 3 attempts" in done.err
    assert marker(dest) is None


def test_a_missing_hub_ends_with_20(run: Runner, dest: Path) -> None:
    with Hub() as hub:
        pass
    done = run.fetch(hub, dest, KAIGEN_ATTEMPTS="2")
    assert done.code == 20
    assert "Connection refused" in done.err


def test_progress_between_failures_renews_the_patience(hub: Hub, run: Runner, dest: Path) -> None:
    hub.fail(40, "cdn", cut(20_000), "model-00002")
    done = run.fetch(hub, dest, "--connections", "1", KAIGEN_ATTEMPTS="2")
    assert done.code == 0, done.err
    assert holds(dest, hub)
    # What came before a cut is kept.
    assert hub.sent == sum(len(stored.data) for stored in hub.files.values())


def test_a_read_that_stalls_is_given_up_and_tried_again(hub: Hub, run: Runner, dest: Path) -> None:
    hub.fail(1, "cdn", stall(100, 60), "model-00001")
    begin = time.monotonic()
    done = run.fetch(hub, dest, "--timeout", "0.3")
    assert done.code == 0
    assert time.monotonic() - begin < 30
    assert "nothing came for 0.3s" in done.err


def test_retry_after_is_honoured_by_all_connections(hub: Hub, run: Runner, dest: Path) -> None:
    hub.fail(1, "cdn", status(429, Retry_After="1"), "model-00002")
    begin = time.monotonic()
    done = run.fetch(hub, dest)
    assert done.code == 0
    assert time.monotonic() - begin >= 1
    assert "answers 429 Too Many Requests, wait 1s" in done.err


def test_a_retry_after_that_is_too_long_ends_the_run(hub: Hub, run: Runner, dest: Path) -> None:
    hub.fail(1, "hub", status(429, Retry_After="7200"), "/tree/")
    done = run.fetch(hub, dest)
    assert done.code == 20
    assert "wait 2h00m; that is longer than this run waits" in done.err


def test_an_expired_signed_url_is_asked_for_again(hub: Hub, run: Runner, dest: Path) -> None:
    def expire(handler: Handler) -> None:
        hub.signature = "sig-2"
        handler.content()

    hub.fail(1, "cdn", expire, "model-00002")
    done = run.fetch(hub, dest, "--connections", "1")
    assert done.code == 0, done.err
    assert holds(dest, hub)
    assert len(hub.requests("hub", f"/resolve/{COMMIT}/model-00002")) == 2


def test_bytes_that_were_changed_on_the_way_are_fetched_again(hub: Hub, run: Runner, dest: Path) -> None:
    hub.fail(1, "cdn", corrupt, "model-00002")
    hub.fail(1, "hub", corrupt, "config.json")
    done = run.fetch(hub, dest)
    assert done.code == 0, done.err
    assert "model-00002.safetensors: wrong checksum, fetching it again" in done.err
    assert "config.json: wrong checksum" in done.err
    assert holds(dest, hub)


@pytest.mark.parametrize("name", ["model-00002.safetensors", "config.json"])
def test_persistently_wrong_bytes_end_with_11(hub: Hub, run: Runner, dest: Path, name: str) -> None:
    hub.fail(1000, "cdn" if name.startswith("model") else "hub", corrupt, name)
    done = run.fetch(hub, dest)
    assert done.code == 11
    assert f"{name}: wrong checksum, also after fetching it 3 times" in done.err
    assert not (dest / name).exists()
    assert marker(dest) is None
    hub.faults.clear()
    assert run.fetch(hub, dest).code == 0
    assert holds(dest, hub)


@pytest.mark.parametrize("listed", [49_999, 50_001, 300_000])
def test_a_file_of_another_size_than_listed_ends_with_11(hub: Hub, run: Runner, dest: Path, listed: int) -> None:
    hub.files["model-00001.safetensors"].listed_size = listed
    done = run.fetch(hub, dest)
    assert done.code == 11, done.err
    assert f"the server has 50000 bytes, {listed} are listed" in done.err
    assert marker(dest) is None


def test_a_file_without_a_checksum_ends_with_11(hub: Hub, run: Runner, dest: Path) -> None:
    hub.files["config.json"].listed_oid = "none"
    done = run.fetch(hub, dest)
    assert done.code == 11
    assert "no usable checksum or size for 'config.json'" in done.err


def test_a_server_that_ignores_ranges_sends_each_file_whole(hub: Hub, run: Runner, dest: Path) -> None:
    hub.ranges = False
    done = run.fetch(hub, dest)
    assert done.code == 0, done.err
    assert holds(dest, hub)
    hub.fail(1, "cdn", cut(100_000), "model-00002")
    done = run.fetch(hub, dest.with_name("again"))
    assert done.code == 0, done.err


@pytest.mark.parametrize("gated", [False, True])
def test_a_repository_that_needs_a_token_ends_with_10(hub: Hub, run: Runner, dest: Path, gated: bool) -> None:
    hub.token, hub.gated = TOKEN, gated
    done = run.fetch(hub, dest)
    assert done.code == 10
    said = "is gated: accept its terms on the Hub; set HF_TOKEN" if gated else "private, and HF_TOKEN is not set"
    assert said in done.err
    done = run.fetch(hub, dest, HF_TOKEN="hf_wrongwrong")
    assert done.code == 10
    assert "HF_TOKEN" in done.err
    assert "has no access" in done.err
    assert marker(dest) is None


def test_a_missing_revision_or_file_ends_with_10(hub: Hub, run: Runner, dest: Path) -> None:
    done = run.fetch(hub, dest, "--revision", "v9")
    assert done.code == 10
    assert "owner/name has no revision 'v9'" in done.err
    hub.fail(1, "hub", status(404, X_Error_Code="EntryNotFound"), "config.json")
    done = run.fetch(hub, dest)
    assert done.code == 10
    assert "lists a file that it does not have" in done.err


def test_a_refusal_is_not_tried_again(hub: Hub, run: Runner, dest: Path) -> None:
    hub.token = TOKEN
    assert run.fetch(hub, dest).code == 10
    assert len(hub.seen) == 1


def test_the_token_is_sent_only_to_the_hub(hub: Hub, run: Runner, dest: Path) -> None:
    hub.token = TOKEN
    done = run.fetch(hub, dest, HF_TOKEN=TOKEN + "\n")
    assert done.code == 0, done.err
    assert {seen.authorization for seen in hub.requests("hub")} == {f"Bearer {TOKEN}"}
    assert {seen.authorization for seen in hub.requests("cdn")} == {None}


def test_a_page_on_another_host_does_not_get_the_token(hub: Hub, run: Runner, dest: Path) -> None:
    hub.token, hub.page, hub.next_page_at = TOKEN, 3, hub.cdn_url
    hub.fail(1000, "cdn", status(401), "/tree/")
    assert run.fetch(hub, dest, HF_TOKEN=TOKEN).code == 10
    asked = hub.requests("cdn", "/tree/")
    assert asked
    assert {seen.authorization for seen in asked} == {None}


def test_neither_token_nor_signature_is_printed(hub: Hub, run: Runner, dest: Path) -> None:
    hub.token = TOKEN
    for fault in (cut(0), status(403), status(503), corrupt):
        hub.faults.clear()
        hub.fail(1000, "cdn", fault)
        done = run.fetch(hub, dest, HF_TOKEN=TOKEN, KAIGEN_ATTEMPTS="2")
        assert done.code in (11, 20)
        assert TOKEN not in done.err + done.out
        assert "sig-1" not in done.err + done.out
    files = [path for path in dest.rglob("*") if path.is_file()]
    assert not any(TOKEN.encode() in path.read_bytes() for path in files)


def test_a_token_with_spaces_is_refused_without_printing_it(hub: Hub, run: Runner, dest: Path) -> None:
    done = run.fetch(hub, dest, HF_TOKEN="hf_one two")
    assert done.code == 13
    assert "hf_one" not in done.err
    assert not hub.seen


def test_a_renamed_repository_is_followed_with_the_token(hub: Hub, run: Runner, dest: Path) -> None:
    hub.token = TOKEN

    def renamed(handler: Handler) -> bool:
        if handler.name != "hub" or "/owner/name/" not in handler.path:
            return False
        handler.reply(307, b"moved", {"Location": handler.path.replace("/owner/name/", "/new/home/")})
        return True

    hub.repo = "new/home"
    hub.faults.append(renamed)
    done = run.fetch(hub, dest, HF_TOKEN=TOKEN)
    assert done.code == 0, done.err
    assert holds(dest, hub)


def test_a_model_larger_than_the_disk_ends_with_12_before_a_byte_is_fetched(hub: Hub, run: Runner, dest: Path) -> None:
    hub.files["model-00001.safetensors"].listed_size = 10**16
    done = run.fetch(hub, dest)
    assert done.code == 12
    assert "8.9 PiB" in done.err or "9094.9 TiB more is needed" in done.err
    assert not hub.requests("hub", "/resolve/")


def test_a_disk_that_fills_up_on_the_way_ends_with_12(hub: Hub, dest: Path) -> None:
    limit = 8 * 65536
    done = subprocess.run(
        [sys.executable, "-m", "kaigen_downloader", *arguments(hub, dest)],
        env={"PATH": os.environ["PATH"], "PYTHONPATH": str(PACKAGE)} | FAST,
        capture_output=True,
        text=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)),
        check=False,
    )
    assert done.returncode == 12, done.stderr
    assert "the volume is full" in done.stderr
    assert marker(dest) is None


def test_a_server_that_is_not_a_hub_ends_with_20(hub: Hub, run: Runner, dest: Path) -> None:
    hub.fail(1, "hub", lambda handler: handler.reply(200, b"<html>Please log in</html>"))
    done = run.fetch(hub, dest)
    assert done.code == 20
    assert "does not respond like a Hub" in done.err


def test_a_proxy_is_used(hub: Hub, run: Runner, dest: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", hub.url)
    hub.cdn = False
    done = run.fetch(hub, dest, "--endpoint", "http://hub.invalid")
    assert done.code == 0, done.err
    assert holds(dest, hub)
