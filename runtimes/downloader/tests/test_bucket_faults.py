"""Servers of S3 that fail or refuse, sources that fail meanwhile, and runs that meet or are killed."""

from __future__ import annotations

import json
import re
import signal
import ssl
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import trustme
from hub import Handler as HubHandler
from hub import Hub, corrupt, cut, status
from runs import Runner, content, finish, start, until
from s3 import KEYS, S3, SECRET, Handler, drop, error, lose, stall
from test_bucket import BIG, fill, holds, order

MARKER = "llm/v1/.kaigen/model.json"
OWNED = "llm/v1/.kaigen/owned.json"


@pytest.fixture
def large(hub: Hub) -> Hub:
    """A model with one file of three parts."""
    hub.add("big.bin", content(BIG, 3))
    return hub


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
def test_what_fails_twice_is_tried_again(
    large: Hub, s3: S3, run: Runner, pattern: str, fault: Callable[[Handler], None]
) -> None:
    s3.fail(1 if fault is lose else 2, pattern, fault)
    done = fill(run, large, s3)
    assert done.code == 0, done.err
    assert "of 8 follows" in done.err
    assert holds(s3, large)


@pytest.mark.parametrize(
    ("pattern", "fault", "said"),
    [
        ("^GET .*model.json", error(503, "SlowDown"), "GetObject .kaigen/model.json: 127.0.0.1:"),
        ("partNumber=1", error(503, "SlowDown"), "UploadPart big.bin: 127.0.0.1:"),
        ("partNumber=1", drop(10), "UploadPart big.bin: 127.0.0.1:"),
        ("partNumber=1", stall(2), "nothing moved in the time allowed"),
        ("^POST .*uploadId=", error(500, "InternalError"), "answers 500 InternalError"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_goes_on_failing_ends_with_20(
    large: Hub, s3: S3, run: Runner, pattern: str, fault: Callable[[Handler], None], said: str
) -> None:
    s3.fail(1000, pattern, fault)
    done = run(*order(large, s3, "--timeout", "0.4"), KAIGEN_ATTEMPTS="2")
    assert done.code == 20
    assert said in done.err
    assert "gave up after 2 attempts" in done.err
    assert s3.get(MARKER) is None
    assert s3.get("llm/v1/big.bin") is None
    assert not s3.uploads()
    s3.faults.clear()
    assert fill(run, large, s3).code == 0
    assert holds(s3, large)


REGION = {"X_Amz_Bucket_Region": "eu-north-1"}


@pytest.mark.parametrize(
    ("pattern", "fault", "code", "said"),
    [
        (".", error(404, "NoSuchBucket"), 10, "there is no bucket models-"),
        (
            "^GET .*model.json",
            error(403, "AccessDenied"),
            10,
            "access denied: the credentials lack s3:GetObject",
        ),
        ("list-type=2", error(403, "AccessDenied"), 10, "lack s3:ListBucket on s3://models-"),
        ("^PUT .*owned.json", error(403, "AccessDenied"), 10, "lack s3:PutObject on s3://models-"),
        ("^DELETE .*model.json", error(403, "AccessDenied"), 10, "lack s3:DeleteObject on s3://models-"),
        ("big.bin\\?uploads", error(403, "AccessDenied"), 10, "lack s3:PutObject on s3://models-"),
        (".", error(403, "InvalidAccessKeyId"), 10, "does not accept the credentials: InvalidAccessKeyId"),
        (".", error(403, "SignatureDoesNotMatch"), 10, "does not accept the credentials: SignatureDoes"),
        (".", error(400, "ExpiredToken"), 10, "does not accept the credentials: ExpiredToken"),
        (".", error(403, "RequestTimeTooSkewed"), 20, "does not accept the time of this node"),
        (
            ".",
            error(301, "PermanentRedirect", **REGION),
            13,
            "is in region eu-north-1: give --s3-region=eu-n",
        ),
        (
            ".",
            error(400, "AuthorizationHeaderMalformed", "<Region>eu-west-1</Region>"),
            13,
            "is in region eu-west-1: give --s3-region=eu-west-1",
        ),
        (
            ".",
            error(307, "TemporaryRedirect", Location="http://other.invalid/"),
            13,
            "sends us elsewhere to http",
        ),
        ("partNumber=1", error(507, "XMinioStorageFull"), 12, "the server has no space left"),
        ("partNumber=1", error(400, "InvalidRequest"), 10, "answers 400 to UploadPart: InvalidRequest No"),
        (
            "list-type=2",
            lambda handler: handler.reply(200, b"<html><p>Log in</p></html>"),
            20,
            "does not answer as S3 does",
        ),
    ],
)
def test_what_the_server_refuses_is_said_in_one_line(
    large: Hub, s3: S3, run: Runner, pattern: str, fault: Callable[[Handler], None], code: int, said: str
) -> None:
    s3.fail(1000, pattern, fault)
    done = fill(run, large, s3)
    assert done.code == code, done.err
    assert said in done.err
    assert sum(line.startswith("error: ") for line in done.err.splitlines()) == 1
    assert "Traceback" not in done.err
    assert SECRET not in done.err + done.out
    assert s3.get(MARKER) is None
    # None of these is tried again, and nobody is followed to another server or region.
    assert len(s3.requests(pattern)) <= 4
    assert not s3.requests("^HEAD /models-[0-9]+$")


def test_a_bucket_that_is_not_there_ends_with_10(hub: Hub, s3: S3, run: Runner) -> None:
    s3.bucket += "-not"
    done = fill(run, hub, s3)
    assert done.code == 10
    assert f"there is no bucket {s3.bucket} on 127.0.0.1:" in done.err
    assert not hub.seen


def test_a_server_that_is_not_there_ends_with_20(hub: Hub, s3: S3, run: Runner) -> None:
    argv = order(hub, s3, "--s3-endpoint", "http://127.0.0.1:1")
    done = run(*argv, KAIGEN_ATTEMPTS="2")
    assert done.code == 20
    assert "127.0.0.1:1: cannot connect; gave up after 2 attempts" in done.err


def test_without_credentials_it_ends_with_10(
    hub: Hub, s3: S3, run: Runner, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "none"))
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "none"))
    done = fill(run, hub, s3)
    assert done.code == 10
    assert "no credentials found: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY" in done.err
    assert not s3.asked


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (["--dest", "s3://"], "cannot be the name of a bucket"),
        (["--dest", "s3://UPPER/x"], "cannot be the name of a bucket"),
        (["--dest", "s3:bucket"], "a bucket is s3://BUCKET"),
        (["--dest", "s3://models/../x"], "cannot be a prefix"),
        (["--dest", "s3://models//x"], "cannot be a prefix"),
        (["--dest", "s3://models/" + "x/" * 300], "a prefix longer than 512 bytes"),
        (["--s3-endpoint", "ftp://somewhere"], "not the http or https URL of a server"),
        (["--s3-endpoint", "http://me:hush@somewhere"], "not the http or https URL of a server"),
        (["--s3-addressing", "other"], "invalid choice"),
        (["--s3-region", "no such region"], "must be one word"),
        (["--s3-region", "a/b"], "region"),
        (["--dest", "/tmp/folder"], "--s3-endpoint is for a bucket, and --dest /tmp/folder is a folder"),
    ],
)
def test_what_cannot_be_meant_ends_with_13(hub: Hub, s3: S3, run: Runner, more: list[str], said: str) -> None:
    done = run(*order(hub, s3, *more))
    assert done.code == 13, done.err
    assert said in done.err
    assert "hush" not in done.err
    assert not s3.asked


@pytest.mark.parametrize("command", ["wait", "verify"])
def test_wait_and_verify_want_the_mount(run: Runner, command: str) -> None:
    done = run(command, "--dest", "s3://models/x", "--identity", "ab")
    assert done.code == 13
    assert f"{command} looks at a folder: mount s3://models/x and name the mount" in done.err


@pytest.mark.parametrize("name", ["../up", "a//b", "/root", ".kaigen/model.json", "a\\b", "x\ny"])
def test_a_name_that_leads_out_is_refused_before_anything_changes(
    hub: Hub, s3: S3, run: Runner, name: str
) -> None:
    hub.add(name, b"evil")
    done = fill(run, hub, s3)
    assert done.code == 13, done.err
    assert not s3.everything()


def test_a_key_that_is_too_long_is_refused_before_anything_changes(hub: Hub, s3: S3, run: Runner) -> None:
    hub.add("/".join(["n" * 200] * 5), b"long")
    done = fill(run, hub, s3, prefix="a/" * 12)
    assert done.code == 13, done.err
    assert "makes a key longer than 1024 bytes" in done.err
    assert not s3.everything()


@pytest.mark.parametrize("name", ["big.bin", "config.json"])
def test_bytes_that_stay_wrong_are_never_seen(large: Hub, s3: S3, run: Runner, name: str) -> None:
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


def test_bytes_that_were_changed_on_the_way_are_fetched_again(large: Hub, s3: S3, run: Runner) -> None:
    large.fail(1, "cdn", corrupt, "big.bin")
    done = fill(run, large, s3)
    assert done.code == 0, done.err
    assert "big.bin: wrong checksum, fetching it again" in done.err
    assert holds(s3, large)


def test_a_source_that_is_cut_goes_on_where_it_was(large: Hub, s3: S3, run: Runner) -> None:
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


def test_a_file_without_a_checksum_is_fetched_again_and_changes_are_seen(
    hub: Hub, s3: S3, run: Runner
) -> None:
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
    """Kills a fetch when it has uploaded a part; what it said."""
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
def test_a_run_that_was_killed_is_healed_by_the_next(
    large: Hub, s3: S3, run: Runner, how: signal.Signals
) -> None:
    s3.client.create_multipart_upload(Bucket=s3.bucket, Key="llm/v1/theirs")
    s3.client.create_multipart_upload(Bucket=s3.bucket, Key="elsewhere")
    said = interrupted(large, s3, how)
    if how is signal.SIGTERM:
        assert said.endswith("terminated; the next run goes on from what is here\n")
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


def test_a_run_that_another_one_took_over_from_stops(large: Hub, s3: S3, run: Runner) -> None:
    def take_over(handler: Handler) -> bool:
        if "partNumber=3" in handler.about:
            note = json.loads(s3.get(OWNED) or b"{}")
            s3.put(OWNED, json.dumps(note | {"run": "another"}).encode())
        return False

    s3.faults.append(take_over)
    done = fill(run, large, s3)
    assert done.code == 20, done.err
    assert "another run has begun to write to s3://" in done.err
    assert s3.get(MARKER) is None
    assert s3.get("llm/v1/big.bin") is None
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


def test_an_upload_that_somebody_aborts_ends_the_run(large: Hub, s3: S3, run: Runner) -> None:
    s3.fail(1, "partNumber=2", error(404, "NoSuchUpload"))
    done = fill(run, large, s3)
    assert done.code == 20
    assert "big.bin: somebody has aborted the upload" in done.err


def test_a_server_that_cannot_list_uploads_is_borne(large: Hub, s3: S3, run: Runner) -> None:
    s3.fail(1000, "^GET /[^/]*\\?uploads", error(501, "NotImplemented"))
    done = fill(run, large, s3)
    assert done.code == 0, done.err
    assert "warning: unfinished uploads of earlier runs are not looked for" in done.err
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


def test_no_secret_is_printed_or_stored(large: Hub, s3: S3, run: Runner) -> None:
    s3.fail(3, ".", error(503, "SlowDown", f"<Key>{SECRET}</Key>"))
    s3.fail(1, "partNumber", error(400, SECRET))
    done = fill(run, large, s3)
    assert done.code == 10
    assert SECRET not in done.err
    assert "***" in done.err
    assert not [key for key in s3.everything() if SECRET.encode() in (s3.get(key) or b"")]


def test_a_server_with_an_own_authority_is_trusted_when_named(
    backend: str, s3: S3, hub: Hub, run: Runner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    authority = trustme.CA()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    with S3(backend, bucket=f"{s3.bucket}-tls", tls=context) as secured:
        done = fill(run, hub, secured)
        assert done.code == 20
        assert "the certificate is not trusted; name a CA bundle in SSL_CERT_FILE" in done.err
        authority.cert_pem.write_to_path(tmp_path / "ca.pem")
        monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "ca.pem"))
        done = fill(run, hub, secured)
        assert done.code == 0, done.err
        assert holds(secured, hub)
        sums = {asked.headers.get("X-Amz-Content-SHA256", "") for asked in secured.asked}
        assert not any("UNSIGNED" in text for text in sums)
