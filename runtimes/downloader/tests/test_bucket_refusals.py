"""What a server of S3 or this program refuses, each in one line, and what is never printed."""

from __future__ import annotations

import ssl
from collections.abc import Callable
from pathlib import Path

import pytest
import trustme
from hub import Hub
from runs import Runner
from s3 import S3, SECRET, Handler, error
from test_bucket import fill, holds, order

MARKER = "llm/v1/.kaigen/model.json"


REGION = {"X_Amz_Bucket_Region": "eu-north-1"}


@pytest.mark.parametrize(
    ("pattern", "fault", "code", "message"),
    [
        (".", error(404, "NoSuchBucket"), 10, "bucket models-"),
        (".", lambda handler: handler.reply(404, b"nothing here"), 10, "bucket models-"),
        (".", error(404, "NoSuchAccount"), 10, "answers 404 to GetObject: NoSuchAccount No"),
        ("^GET .*model.json", error(403, "AccessDenied"), 10, "access denied: the credentials lack s3:GetObject"),
        ("list-type=2", error(403, "AccessDenied"), 10, "lack s3:ListBucket on s3://models-"),
        ("^PUT .*owned.json", error(403, "AccessDenied"), 10, "lack s3:PutObject on s3://models-"),
        ("^DELETE .*model.json", error(403, "AccessDenied"), 10, "lack s3:DeleteObject on s3://models-"),
        ("big.bin\\?uploads", error(403, "AccessDenied"), 10, "lack s3:PutObject on s3://models-"),
        (".", error(403, "InvalidAccessKeyId"), 10, "rejects the credentials: InvalidAccessKeyId"),
        (".", error(403, "SignatureDoesNotMatch"), 10, "rejects the credentials: SignatureDoes"),
        (".", error(400, "ExpiredToken", **REGION), 10, "rejects the credentials: ExpiredToken"),
        (
            ".",
            error(403, "RequestTimeTooSkewed", Date="Mon, 01 Jan 2024 00:00:00 GMT"),
            20,
            "m from its own: fix its clock",
        ),
        (
            ".",
            error(403, "RequestTimeTooSkewed", Date="Thu, 01 Jan 1970 00:00:00 +99999999999999999999"),
            20,
            "rejects the time of this node: fix its clock",
        ),
        (".", error(301, "PermanentRedirect", **REGION), 13, "is in region eu-north-1: set --s3-region=eu-n"),
        (
            ".",
            error(400, "AuthorizationHeaderMalformed", "<Region>eu-west-1</Region>"),
            13,
            "is in region eu-west-1: set --s3-region=eu-west-1",
        ),
        (".", error(307, "TemporaryRedirect", Location="http://other.invalid/"), 13, "redirects to http"),
        ("partNumber=1", error(507, "XMinioStorageFull"), 12, "the server has no space left"),
        ("partNumber=1", error(400, "InvalidRequest"), 10, "answers 400 to UploadPart: InvalidRequest No"),
        (
            "list-type=2",
            lambda handler: handler.reply(200, b"<html><p>Log in</p></html>"),
            20,
            "does not respond like an S3 server",
        ),
    ],
)
def test_an_error_of_the_server_is_one_line(
    large: Hub, s3: S3, run: Runner, pattern: str, fault: Callable[[Handler], None], code: int, message: str
) -> None:
    s3.fail(1000, pattern, fault)
    done = fill(run, large, s3)
    assert done.code == code, done.err
    assert message in done.err
    assert sum(line.startswith("error: ") for line in done.err.splitlines()) == 1
    assert "Traceback" not in done.err
    assert SECRET not in done.err + done.out
    assert s3.get(MARKER) is None
    # None of these is retried, and no redirect to another server or region is followed.
    assert len(s3.requests(pattern)) <= 4
    assert not s3.requests("^HEAD /models-[0-9]+$")


def test_a_missing_bucket_ends_with_10(hub: Hub, s3: S3, run: Runner) -> None:
    s3.bucket += "-not"
    done = fill(run, hub, s3)
    assert done.code == 10
    assert f"bucket {s3.bucket} does not exist on 127.0.0.1:" in done.err
    assert not hub.seen


def test_a_missing_server_ends_with_20(hub: Hub, s3: S3, run: Runner) -> None:
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
    ("env", "code", "message"),
    [
        ({"AWS_ACCESS_KEY_ID": "a"}, 10, "no credentials found: Partial credentials found in env"),
        (
            {"AWS_ROLE_ARN": "arn:aws:iam::123456789012:role/m", "AWS_WEB_IDENTITY_TOKEN_FILE": "/none/token"},
            10,
            "no credentials found: [Errno 2] No such file or directory: '/none/token'",
        ),
        ({"AWS_PROFILE": "other"}, 13, "The config profile (other) could not be found"),
    ],
    ids=["partial", "identity", "profile"],
)
def test_invalid_credentials_are_reported(
    hub: Hub, s3: S3, run: Runner, monkeypatch: pytest.MonkeyPatch, env: dict[str, str], code: int, message: str
) -> None:
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    for name, value in env.items():
        monkeypatch.setenv(name, value)
    done = fill(run, hub, s3)
    assert done.code == code, done.err
    assert message in done.err
    assert "Traceback" not in done.err
    assert not s3.asked


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--dest", "s3://"], "is not a valid bucket name"),
        (["--dest", "s3://UPPER/x"], "is not a valid bucket name"),
        (["--dest", "s3:bucket"], "a bucket is s3://BUCKET"),
        (["--dest", "s3://models/../x"], "is not a valid prefix"),
        (["--dest", "s3://models//x"], "is not a valid prefix"),
        (["--dest", "s3://models/" + "x/" * 300], "a prefix longer than 512 bytes"),
        (["--s3-endpoint", "ftp://somewhere"], "not the http or https URL of a server"),
        (["--s3-endpoint", "http://me:hush@somewhere"], "not the http or https URL of a server"),
        (["--s3-addressing", "other"], "invalid choice"),
        (["--s3-region", "no such region"], "must be one word"),
        (["--s3-region", "a/b"], "region"),
        (["--dest", "/models/folder"], "--s3-endpoint is for a bucket, and --dest /models/folder is a folder"),
    ],
)
def test_an_invalid_argument_ends_with_13(hub: Hub, s3: S3, run: Runner, more: list[str], message: str) -> None:
    done = run(*order(hub, s3, *more))
    assert done.code == 13, done.err
    assert message in done.err
    assert "hush" not in done.err
    assert not s3.asked


@pytest.mark.parametrize("command", ["wait", "verify"])
def test_wait_and_verify_need_a_mounted_folder(run: Runner, command: str) -> None:
    done = run(command, "--dest", "s3://models/x", "--identity", "ab")
    assert done.code == 13
    assert f"{command} needs a folder: mount s3://models/x and give the mount path" in done.err


@pytest.mark.parametrize("name", ["../up", "a//b", "/root", ".kaigen/model.json", "a\\b", "x\ny"])
def test_a_name_that_leads_out_is_refused_before_anything_changes(hub: Hub, s3: S3, run: Runner, name: str) -> None:
    hub.add(name, b"evil")
    done = fill(run, hub, s3)
    assert done.code == 13, done.err
    assert not s3.everything()


@pytest.mark.parametrize(("size", "code"), [(10**13, 13), (10**27, 11), (10**400, 11)])
def test_a_file_that_no_object_can_be_is_refused_before_anything_changes(
    hub: Hub, s3: S3, run: Runner, size: int, code: int
) -> None:
    hub.files["config.json"].listed_size = size
    done = fill(run, hub, s3)
    assert (done.code, "config.json" in done.err) == (code, True), done.err
    assert not s3.everything()


def test_a_key_that_is_too_long_is_refused_before_anything_changes(hub: Hub, s3: S3, run: Runner) -> None:
    hub.add("/".join(["n" * 200] * 5), b"long")
    done = fill(run, hub, s3, prefix="a/" * 12)
    assert done.code == 13, done.err
    assert "makes a key longer than 1024 bytes" in done.err
    assert not s3.everything()


def test_no_secret_is_printed_or_stored(large: Hub, s3: S3, run: Runner) -> None:
    s3.fail(3, ".", error(503, "SlowDown", f"<Key>{SECRET}</Key>"))
    s3.fail(1, "partNumber", error(400, SECRET))
    done = fill(run, large, s3)
    assert done.code == 10
    assert SECRET not in done.err
    assert "***" in done.err
    assert not [key for key in s3.everything() if SECRET.encode() in (s3.get(key) or b"")]


def test_a_custom_certificate_authority_is_trusted_when_configured(
    backend: str, s3: S3, hub: Hub, run: Runner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    authority = trustme.CA()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    with S3(backend, bucket=f"{s3.bucket}-tls", tls=context) as secured:
        done = fill(run, hub, secured)
        assert done.code == 20
        assert "the certificate is not trusted; set SSL_CERT_FILE to a CA bundle" in done.err
        authority.cert_pem.write_to_path(tmp_path / "ca.pem")
        monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "ca.pem"))
        done = fill(run, hub, secured)
        assert done.code == 0, done.err
        assert holds(secured, hub)
