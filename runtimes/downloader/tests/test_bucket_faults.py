"""Servers of S3 that fail or refuse, sources that fail meanwhile, and runs that meet or are killed."""

from __future__ import annotations

import json
import re
import signal
import time
from collections.abc import Callable

import pytest
from hub import Handler as HubHandler
from hub import Hub, corrupt, cut, status
from runs import Runner, content, finish, sha256, start, until
from s3 import KEYS, S3, Handler, drop, error, lose, stall
from test_bucket import BIG, fill, holds, order

MARKER = "llm/v1/.kaigen/model.json"
OWNED = "llm/v1/.kaigen/owned.json"


@pytest.mark.parametrize(
    ("pattern", "fault"),
    [
        ("^GET .*model.json", error(503, "SlowDown")),
        ("^GET .*list-type=2", error(500, "InternalError")),
        ("^PUT .*config.json", error(503, "SlowDown")),
        ("^POST .*big.bin\\?uploads", error(503, "ServiceUnavailable")),
        ("partNumber=2", error(503, "SlowDown")),
        ("partNumber=2", error(429, "TooManyRequests")),
        ("partNumber=2", error(400, "RequestTimeout")),
        ("partNumber=2", drop(100_000)),
        ("partNumber=3", lose),
        ("^POST .*uploadId=", error(503, "SlowDown")),
        ("^POST .*uploadId=", lose),
        ("^PUT .*model.json", lose),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_request_that_fails_twice_is_retried(
    large: Hub, s3: S3, run: Runner, pattern: str, fault: Callable[[Handler], None]
) -> None:
    s3.fail(1 if fault is lose else 2, pattern, fault)
    done = fill(run, large, s3)
    assert done.code == 0, done.err
    assert "of 8 follows" in done.err
    assert holds(s3, large)


@pytest.mark.parametrize(
    ("pattern", "fault", "message"),
    [
        ("^GET .*model.json", error(503, "SlowDown"), "GetObject .kaigen/model.json: 127.0.0.1:"),
        ("partNumber=1", error(503, "SlowDown"), "UploadPart big.bin: 127.0.0.1:"),
        ("partNumber=1", drop(10), "UploadPart big.bin: 127.0.0.1:"),
        ("partNumber=1", stall(2), "no data within the timeout"),
        ("^POST .*uploadId=", error(500, "InternalError"), "answers 500 InternalError"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_persistent_failure_ends_with_20(
    large: Hub, s3: S3, run: Runner, pattern: str, fault: Callable[[Handler], None], message: str
) -> None:
    s3.fail(1000, pattern, fault)
    # Short only for the case that times out: everything else may be slow on a busy machine.
    timeout = "0.4" if "within the timeout" in message else "30"
    done = run(*order(large, s3, "--timeout", timeout), KAIGEN_ATTEMPTS="2")
    assert done.code == 20
    assert message in done.err
    assert "gave up after 2 attempts" in done.err
    assert s3.get(MARKER) is None
    assert s3.get("llm/v1/big.bin") is None
    assert not s3.uploads()
    s3.faults.clear()
    assert fill(run, large, s3).code == 0
    assert holds(s3, large)


@pytest.mark.parametrize("name", ["big.bin", "config.json"])
def test_wrong_bytes_never_become_visible(large: Hub, s3: S3, run: Runner, name: str) -> None:
    large.fail(1000, "cdn" if name == "big.bin" else "hub", corrupt, name)
    done = fill(run, large, s3)
    assert done.code == 11
    assert f"{name}: wrong checksum, also after fetching it 3 times" in done.err
    assert s3.get(f"llm/v1/{name}") is None
    assert s3.get(MARKER) is None
    assert not s3.uploads()
    assert not s3.requests(f"^POST .*{name}.uploadId=")
    large.faults.clear()
    assert fill(run, large, s3).code == 0
    assert holds(s3, large)


def test_a_server_that_asks_for_a_pause_gets_it(hub: Hub, s3: S3, run: Runner) -> None:
    s3.fail(1, "^PUT .*owned.json", error(503, "SlowDown", Retry_After="1"))
    begin = time.monotonic()
    done = fill(run, hub, s3)
    assert done.code == 0, done.err
    assert time.monotonic() - begin >= 1
    assert "answers 503 SlowDown, wait 1s; attempt 2 of 8 follows in 1s" in done.err


def test_bytes_that_were_changed_on_the_way_are_fetched_again(large: Hub, s3: S3, run: Runner) -> None:
    large.fail(1, "cdn", corrupt, "big.bin")
    done = fill(run, large, s3)
    assert done.code == 0, done.err
    assert "big.bin: wrong checksum, fetching it again" in done.err
    assert holds(s3, large)


def test_an_interrupted_source_is_resumed(large: Hub, s3: S3, run: Runner) -> None:
    large.fail(5, "cdn", cut(3 << 20), "big.bin")
    large.fail(1, "cdn", status(503), "big.bin")
    done = fill(run, large, s3)
    assert done.code == 0, done.err
    assert large.sent == sum(len(stored.data) for stored in large.files.values())
    assert holds(s3, large)


def test_a_source_that_stays_cut_leaves_nothing_half(large: Hub, s3: S3, run: Runner) -> None:
    large.fail(1000, "cdn", cut(1000), "big.bin")
    done = run(*order(large, s3), KAIGEN_ATTEMPTS="3")
    assert done.code == 20
    assert "big.bin: the connection was cut; gave up after 3 attempts" in done.err
    assert s3.get("llm/v1/big.bin") is None
    assert not s3.uploads()


def test_a_server_without_ranges_sends_the_file_over_one_connection(large: Hub, s3: S3, run: Runner) -> None:
    large.ranges = False
    large.fail(1, "cdn", lambda handler: handler.content(limit=7 << 20), "big.bin")
    done = fill(run, large, s3)
    assert done.code == 0, done.err
    assert holds(s3, large)


def test_a_large_file_without_a_sha256_is_kept_after_a_failure(large: Hub, s3: S3, run: Runner) -> None:
    large.add("big.bin", large.files["big.bin"].data, lfs=False)  # of Git: its sha256 is not known before
    large.fail(1000, "hub", status(503), "config.json")
    argv = order(large, s3, "--connections", "1")
    assert run(*argv, KAIGEN_ATTEMPTS="2").code == 20
    assert s3.get("llm/v1/big.bin") == large.files["big.bin"].data
    large.faults.clear()
    large.seen.clear()
    done = run(*argv)
    assert done.code == 0, done.err
    assert not large.requests("hub", "big.bin")
    assert holds(s3, large)
    found = json.loads(s3.get(MARKER) or b"")["files"]
    assert {file["path"]: file["sha256"] for file in found}["big.bin"] == sha256(large.files["big.bin"].data)


def test_a_large_file_that_another_client_replaced_is_fetched_again(large: Hub, s3: S3, run: Runner) -> None:
    large.add("big.bin", large.files["big.bin"].data, lfs=False)
    large.fail(1000, "hub", status(503), "config.json")
    argv = order(large, s3, "--connections", "1")
    assert run(*argv, KAIGEN_ATTEMPTS="2").code == 20
    s3.put("llm/v1/big.bin", bytes(len(large.files["big.bin"].data)))
    large.faults.clear()
    done = run(*argv)
    assert done.code == 0, done.err
    assert holds(s3, large)


def test_a_file_without_a_checksum_is_fetched_again_and_changes_are_seen(hub: Hub, s3: S3, run: Runner) -> None:
    hub.add("data.bin", content(BIG, 5))
    hub.etag = '"one"'
    url = f"{hub.cdn_url}/data.bin?X-Amz-Signature={hub.signature}"
    argv = ["fetch", "http", "--file", f"data.bin={url}", *s3.dest(), "--part-size", "5Mi", "--timeout", "5"]
    assert run(*argv, "--identity", "one").code == 0
    assert s3.get("llm/v1/data.bin") == hub.files["data.bin"].data
    hub.sent = 0
    assert run(*argv, "--identity", "two").code == 0
    assert hub.sent > BIG

    before = s3.get("llm/v1/data.bin")

    def change(handler: HubHandler) -> bool:
        if handler.headers.get("Range", "").startswith("bytes=5242880-"):
            hub.etag = '"two"'
        return False

    hub.faults.append(change)
    done = run(*argv, "--identity", "three", "--connections", "1")
    assert done.code == 11
    assert "data.bin changed while it was fetched" in done.err
    assert not s3.uploads()
    assert s3.get("llm/v1/data.bin") == before
    assert s3.get(MARKER) is None


def interrupted(hub: Hub, s3: S3, how: signal.Signals) -> str:
    """Kills a fetch when it has uploaded a part; what it message."""
    hub.rate = 8e6
    process = start(order(hub, s3), **KEYS)
    until(lambda: s3.requests("partNumber=") and s3.uploads())
    process.send_signal(how)
    begin = time.monotonic()
    done = finish(process)
    assert time.monotonic() - begin < 5
    hub.rate = None
    assert done.code == (143 if how is signal.SIGTERM else -9), done.err
    return done.err


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_a_run_that_was_killed_is_healed_by_the_next(large: Hub, s3: S3, run: Runner, how: signal.Signals) -> None:
    s3.client.create_multipart_upload(Bucket=s3.bucket, Key="llm/v1/theirs")
    s3.client.create_multipart_upload(Bucket=s3.bucket, Key="elsewhere")
    message = interrupted(large, s3, how)
    if how is signal.SIGTERM:
        assert message.endswith("terminated; the next run goes on from what is here\n")
    assert s3.get(MARKER) is None
    assert s3.get("llm/v1/big.bin") is None
    assert "llm/v1/big.bin" in s3.uploads()
    whole = [path for path in large.files if f"llm/v1/{path}" in s3.everything()]
    large.seen.clear()
    done = fill(run, large, s3)
    assert done.code == 0, done.err
    assert "unfinished upload" in done.err
    assert not [path for path in whole if large.requests("hub", f"/resolve/{path}")]
    assert sorted(s3.uploads()) == ["elsewhere", "llm/v1/theirs"]
    assert s3.get("llm/v1/big.bin") == large.files["big.bin"].data


@pytest.mark.parametrize("moment", ["partNumber=3", "PUT .*config.json", "^POST .*uploadId=", "uploads&prefix"])
def test_a_run_that_another_one_took_over_from_stops(large: Hub, s3: S3, run: Runner, moment: str) -> None:
    seen = []

    def take_over(handler: Handler) -> bool:
        if re.search(moment, handler.about):
            seen.append(handler.about)
            # Uploads are looked for at the start, and at the end just before the marker is written.
            if len(seen) == (2 if "prefix" in moment else 1):
                note = json.loads(s3.get(OWNED) or b"{}")
                s3.put(OWNED, json.dumps(note | {"run": "another"}).encode())
        return False

    s3.faults.append(take_over)
    done = fill(run, large, s3)
    assert done.code == 20, done.err
    assert "another run has begun to write to s3://" in done.err
    assert s3.get(MARKER) is None
    # What was asked for before stays asked for; nothing is made after it.
    assert s3.get("llm/v1/big.bin") is None or moment != "partNumber=3"
    assert json.loads(s3.get(OWNED) or b"{}")["run"] == "another"


def test_of_two_runs_the_later_one_wins(large: Hub, s3: S3, run: Runner) -> None:
    def hurry(handler: Handler) -> bool:
        if len(s3.requests("^PUT .*owned.json")) == 2:
            large.rate = None
        return False

    large.rate = 1e6
    s3.faults.append(hurry)
    first = start(order(large, s3), **KEYS)
    until(lambda: s3.requests("^PUT .*owned.json"))
    assert fill(run, large, s3).code == 0
    done = finish(first)
    assert done.code == 20, done.err
    assert re.search(r"^error: another run has begun to write to s3://", done.err, re.M)
    assert holds(s3, large)


@pytest.mark.parametrize("before", [False, True])
def test_of_two_runs_that_begin_at_the_same_moment_one_ends(large: Hub, s3: S3, run: Runner, before: bool) -> None:
    def begin(handler: Handler) -> bool:
        if re.search("^PUT .*owned.json", handler.about):
            s3.put(OWNED, json.dumps({"run": "another", "files": []}).encode())
        return False

    if before:
        s3.put(OWNED, json.dumps({"run": "dead", "files": []}).encode())
    s3.put(MARKER, b"{}")
    s3.faults.append(begin)
    done = fill(run, large, s3)
    assert done.code == 20, done.err
    assert "another run has begun to write to s3://" in done.err
    assert json.loads(s3.get(OWNED) or b"{}")["run"] == "another"
    assert s3.get(MARKER) == b"{}"
    assert not s3.requests("config.json")


def test_a_lost_answer_to_the_first_write_is_no_other_run(large: Hub, s3: S3, run: Runner) -> None:
    s3.fail(1, "^PUT .*owned.json", lose)
    done = fill(run, large, s3)
    assert done.code == 0, done.err
    assert holds(s3, large)


def test_a_server_without_conditional_writes_is_used_with_a_warning(large: Hub, s3: S3, run: Runner) -> None:
    s3.fail(1, "^PUT .*owned.json", error(501, "NotImplemented"))
    done = fill(run, large, s3)
    assert done.code == 0, done.err
    assert "has no conditional writes: of two runs" in done.err
    assert holds(s3, large)


def test_an_upload_that_somebody_aborts_ends_the_run(large: Hub, s3: S3, run: Runner) -> None:
    s3.fail(1, "partNumber=2", error(404, "NoSuchUpload"))
    done = fill(run, large, s3)
    assert done.code == 20
    assert "big.bin: another client aborted the upload" in done.err


def test_a_server_that_cannot_list_uploads_is_borne(large: Hub, s3: S3, run: Runner) -> None:
    s3.fail(1000, "^GET /[^/]*\\?uploads", error(501, "NotImplemented"))
    done = fill(run, large, s3)
    assert done.code == 0, done.err
    assert "warning: unfinished uploads of earlier runs are not looked for" in done.err
    assert holds(s3, large)


def test_own_unfinished_uploads_are_found_on_later_pages(large: Hub, s3: S3, run: Runner) -> None:
    pages = []

    def first_page(handler: Handler) -> bool:
        if "uploads&prefix" not in handler.about or "key-marker" in handler.about:
            return False
        pages.append(handler.about)
        text = "<IsTruncated>true</IsTruncated><NextKeyMarker>a</NextKeyMarker>"
        text += "<NextUploadIdMarker>b</NextUploadIdMarker>"
        handler.reply(200, f"<ListMultipartUploadsResult>{text}</ListMultipartUploadsResult>".encode())
        return True

    s3.client.create_multipart_upload(Bucket=s3.bucket, Key="llm/v1/big.bin")
    s3.faults.append(first_page)
    done = fill(run, large, s3)
    assert done.code == 0, done.err
    assert len(pages) == 2
    assert s3.requests("uploads&prefix=.*key-marker=a&upload-id-marker=b")
    assert "aborted 1 unfinished upload of an earlier run" in done.err
    assert holds(s3, large)


def test_a_listing_of_many_pages_is_read_to_its_end(hub: Hub, s3: S3, run: Runner) -> None:
    def short(handler: Handler) -> bool:
        if "list-type=2" in handler.path and "max-keys" not in handler.path:
            handler.path += "&max-keys=2"
        return False

    s3.faults.append(short)
    assert fill(run, hub, s3).code == 0
    s3.asked.clear()
    assert "already complete" in fill(run, hub, s3).err
    assert len(s3.requests("list-type=2")) == 3
