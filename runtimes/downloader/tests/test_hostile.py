"""Servers and folders that answer with anything: an error in one line, no traceback, and no wait without an end."""

from __future__ import annotations

import itertools
import json
import os
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from hub import Handler, Hub, status
from kaigen_downloader import text as redaction
from kaigen_downloader.disk import Disk
from kaigen_downloader.errors import Transient
from kaigen_downloader.folder import Folder
from kaigen_downloader.net import referred, retry_after
from kaigen_downloader.progress import Display
from kaigen_downloader.text import whole_number
from runs import ID, Runner

SUPERSCRIPT = "\u00b2"
DEEP = "[" * 100_000


def replies(code: int, **headers: str) -> Callable[[Handler], None]:
    return lambda handler: handler.reply(code, b"x", {name.replace("_", "-"): value for name, value in headers.items()})


@pytest.mark.parametrize(
    "fault",
    [
        replies(206, Content_Range=f"bytes 0-0/{SUPERSCRIPT}"),
        replies(206, Content_Range="bytes 0-0/" + "9" * 5000),
        replies(416, Content_Range=f"bytes */{SUPERSCRIPT}"),
        replies(302, Location="http://[::1"),
        replies(302, Location="http://a:99999999/"),
        replies(302, Location="\x00"),
        replies(302, Location="http://a b/"),
        replies(302, Location="ftp://127.0.0.1/"),
        status(503, Retry_After=SUPERSCRIPT),
    ],
)
def test_odd_headers_are_an_error_in_one_line(
    hub: Hub, run: Runner, dest: Path, fault: Callable[[Handler], None]
) -> None:
    hub.fail(1000, "hub", fault, "config.json")
    done = run.fetch(hub, dest, KAIGEN_ATTEMPTS="2")
    assert done.code in (10, 20), done.err
    assert "Traceback" not in done.err


@pytest.mark.parametrize("location", ["http://[::1", "http://a b/", "ftp://127.0.0.1/", "file:///etc/passwd"])
def test_a_redirect_that_leads_nowhere_is_a_failure_of_the_server(
    hub: Hub, run: Runner, dest: Path, location: str
) -> None:
    hub.fail(1000, "hub", replies(302, Location=location))
    done = run.fetch(hub, dest, KAIGEN_ATTEMPTS="2")
    assert (done.code, "which is not an http or https URL" in done.err) == (20, True), done.err


@pytest.mark.parametrize("value", [SUPERSCRIPT, "9" * 5000, "1e400", "-1", "\u0663"])
def test_a_pause_is_a_number_with_a_limit(value: str) -> None:
    for headers in ({"Retry-After": value}, {"RateLimit": f"t={value}"}):
        pause = retry_after(headers, 0.0)
        assert pause is None or 0 <= pause <= 24 * 3600


@pytest.mark.parametrize(
    "value",
    [
        *("http://[::1", "http://a:x/", "//[", "http://a:99999999/", "http://a b/", "http://a\x7f/"),
        *("ftp://a/", "file:///etc/passwd", "javascript:1"),
    ],
)
def test_a_redirect_to_no_url_passes_as_a_fault(value: str) -> None:
    with pytest.raises(Transient, match="not an http or https URL"):
        referred("http://a.example/", value)


def test_numbers_of_headers() -> None:
    assert [whole_number(text) for text in ("0", "18", "", SUPERSCRIPT, "-1", "9" * 19)] == [
        0,
        18,
        None,
        None,
        None,
        None,
    ]


@pytest.mark.parametrize("text", ["5", "null", '"a"', "{}", "[1, null]", DEEP, "\x00"])
def test_an_odd_list_of_files_is_none(tmp_path: Path, text: str) -> None:
    (tmp_path / ".kaigen").mkdir()
    (tmp_path / ".kaigen" / "owned.json").write_text(text)
    folder = Folder(str(tmp_path))
    try:
        assert Disk(folder, Display()).owned() == set()
    finally:
        folder.close()


ENTRY = {"path": "a", "size": 1, "sha256": "0"}
MARKER: dict[str, object] = {
    "schema": 1,
    "identity": ID,
    "source": {"type": "x", "commit": "c"},
    "files": [],
    "started": "",
    "finished": "",
    "bytes": 0,
}


@pytest.mark.parametrize("size", ["1e999", "-1", "NaN", "true", '"1"', "1" + "0" * 400])
def test_a_marker_with_an_odd_size_is_none(run: Runner, dest: Path, size: str) -> None:
    (dest / ".kaigen").mkdir(parents=True)
    text = json.dumps(MARKER | {"files": [ENTRY]}).replace('"size": 1', f'"size": {size}')
    (dest / ".kaigen" / "model.json").write_text(text)
    done = run("wait", "--dest", str(dest), "--identity", ID, "--timeout", "0.1s")
    assert (done.code, "no marker" in done.err) == (20, True), done.err
    assert run("verify", "--dest", str(dest)).code == 1


def test_a_marker_without_names_and_times_is_read(hub: Hub, run: Runner, dest: Path) -> None:
    (dest / ".kaigen").mkdir(parents=True)
    text = json.dumps(MARKER | {"source": {"type": "", "commit": "c"}})
    (dest / ".kaigen" / "model.json").write_text(text)
    assert run("wait", "--dest", str(dest), "--identity", ID, "--timeout", "1s").code == 0
    done = run.fetch(hub, dest, "--facts", "facts")
    assert (done.code, "warning: facts not written" in done.err) == (0, True), done.err


def test_control_characters_of_servers_and_markers_are_not_printed(hub: Hub, run: Runner, dest: Path) -> None:
    hub.fail(1, "hub", status(403, X_Error_Message="\x1b]0;title\x07 \x9b2J done"))
    done = run.fetch(hub, dest)
    assert (done.code, "]0;title 2J done" in done.err) == (10, True), done.err
    (dest / ".kaigen").mkdir(parents=True, exist_ok=True)
    path = "a\x1b[2Jb\ud800"
    (dest / ".kaigen" / "model.json").write_text(json.dumps(MARKER | {"files": [ENTRY | {"path": path}]}))
    done = run("verify", "--dest", str(dest))
    assert (done.code, "a[2Jb?" in done.out) == (1, True), done.out
    assert not any((char < " " and char != "\n") or "\x7f" <= char < "\xa0" for char in done.err + done.out)


def test_secrets_may_be_added_while_others_are_looked_for() -> None:
    ended = threading.Event()

    def hide() -> None:
        numbers = itertools.count()
        while not ended.is_set():
            redaction.hide(f"a-secret-of-this-test-{next(numbers) % 2000}")

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    thread = threading.Thread(target=hide, daemon=True)
    thread.start()
    try:
        for _ in range(300):
            redaction.redact("a message")
    finally:
        ended.set()
        thread.join()
        sys.setswitchinterval(before)
        redaction._secrets = frozenset()


@pytest.mark.parametrize("text", ["5", "null", "[]", DEEP, json.dumps({"schema": 1, "source": 5})])
@pytest.mark.parametrize("name", ["model.json", "owned.json", "revisions.json"])
def test_odd_state_stops_no_fetch(hub: Hub, run: Runner, dest: Path, name: str, text: str) -> None:
    (dest / ".kaigen").mkdir(parents=True)
    (dest / ".kaigen" / name).write_text(text)
    done = run.fetch(hub, dest)
    assert done.code == 0, done.err


def test_a_pipe_in_place_of_the_marker_blocks_nothing(hub: Hub, run: Runner, dest: Path) -> None:
    (dest / ".kaigen").mkdir(parents=True)
    os.mkfifo(dest / ".kaigen" / "model.json")
    begin = time.monotonic()
    done = run("wait", "--dest", str(dest), "--identity", ID, "--timeout", "1s")
    assert (done.code, "not a regular file" in done.err) == (20, True), done.err
    assert run("verify", "--dest", str(dest)).code != 0
    assert run.fetch(hub, dest).code != 0
    assert time.monotonic() - begin < 30
