"""What proves to a server of S3 that the bytes it gets are right: a signature, or over TLS a CRC32."""

from __future__ import annotations

import base64
import re
import ssl
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import trustme
from hub import Hub
from runs import Runner
from s3 import CRC32, S3, Asked, Handler, damage, error
from test_bucket import fill, holds, order

PART = 5 << 20
NOTE = "PUT .kaigen/owned.json"


@pytest.fixture
def secured(backend: str, s3: S3, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[S3]:
    """A bucket behind TLS, on a server that verifies checksums."""
    authority = trustme.CA()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")
    monkeypatch.setenv("AWS_CA_BUNDLE", str(tmp_path / "ca.pem"))
    with S3(backend, bucket=f"{s3.bucket}-tls", tls=context, verifies=True) as server:
        yield server


def signs_body(asked: Asked) -> bool:
    """Return whether the signature covers the body of a request."""
    return re.fullmatch("[0-9a-f]{64}", asked.headers["X-Amz-Content-SHA256"]) is not None


def name_of(asked: Asked) -> str:
    """Return the method and the path of a request, and the number of its part."""
    method, _, path = asked.about.partition(" ")
    number = re.search("partNumber=([0-9]+)", path)
    name = path.partition("?")[0].partition("/llm/v1/")[2]
    return f"{method} {name}" + (f" {number[1]}" if number else "")


def unsigned(s3: S3) -> set[str]:
    """Return the requests whose body is not signed."""
    found = [asked for asked in s3.asked if not signs_body(asked)]
    assert all(asked.headers["X-Amz-Content-SHA256"] == "UNSIGNED-PAYLOAD" for asked in found)
    return set(map(name_of, found))


def checksums(s3: S3) -> dict[str, str]:
    """Return the CRC32 of each request that has one."""
    return {name_of(asked): asked.headers[CRC32] for asked in s3.asked if CRC32 in asked.headers}


def crc32(data: bytes) -> str:
    return base64.b64encode(zlib.crc32(data).to_bytes(4, "big")).decode()


def test_over_tls_bodies_have_a_crc32_and_everything_else_is_signed(large: Hub, secured: S3, run: Runner) -> None:
    completed: list[bytes] = []

    def keep(handler: Handler) -> bool:
        if re.search("^POST .*uploadId=", handler.about):
            body = handler.body
            completed.append(body())
            handler.body = lambda: completed[-1]  # type: ignore[method-assign]
        return False

    secured.faults.append(keep)
    done = fill(run, large, secured)
    assert done.code == 0, done.err
    assert holds(secured, large)
    big = large.files["big.bin"].data
    parts = [crc32(big[start : start + PART]) for start in range(0, len(big), PART)]
    assert len(parts) == 3
    expected = {f"PUT big.bin {number}": crc for number, crc in enumerate(parts, 1)}
    expected |= {f"PUT {path}": crc32(file.data) for path, file in large.files.items() if path != "big.bin"}
    sent = checksums(secured)
    note = sent.pop(NOTE)
    assert note
    assert sent == expected
    assert unsigned(secured) == {NOTE, *expected}
    begun = [asked for asked in secured.asked if asked.about.endswith("big.bin?uploads")]
    assert [asked.headers["x-amz-checksum-algorithm"] for asked in begun] == ["CRC32"]
    listed = re.findall(rb"<ChecksumCRC32>(.*?)</ChecksumCRC32>", completed[0])
    assert [each.decode() for each in listed] == parts


def test_over_http_every_body_is_signed(large: Hub, s3: S3, run: Runner) -> None:
    s3.verifies = True
    done = fill(run, large, s3)
    assert done.code == 0, done.err
    assert len(s3.requests("partNumber=")) == 3
    assert not unsigned(s3)
    assert not checksums(s3)
    assert not [asked for asked in s3.asked if "x-amz-checksum-algorithm" in asked.headers]


def test_a_server_that_ignores_checksums_gets_signed_bodies(large: Hub, secured: S3, run: Runner) -> None:
    secured.verifies = False
    done = fill(run, large, secured)
    assert done.code == 0, done.err
    assert holds(secured, large)
    assert "warning" not in done.err
    assert unsigned(secured) == {NOTE}
    assert checksums(secured).keys() == {NOTE}


@pytest.mark.parametrize(
    "refusal",
    [
        error(400, "InvalidArgument"),
        error(501, "NotImplemented"),
        error(403, "SignatureDoesNotMatch"),
        error(403, "AccessDenied"),
    ],
)
def test_a_server_that_refuses_checksums_gets_signed_bodies(
    large: Hub, secured: S3, run: Runner, refusal: Callable[[Handler], None]
) -> None:
    def refuse(handler: Handler) -> bool:
        found = [name for name in handler.headers if name.lower().startswith("x-amz-checksum-")]
        if found:
            refusal(handler)
        return bool(found)

    secured.faults.append(refuse)
    done = fill(run, large, secured)
    assert done.code == 0, done.err
    assert holds(secured, large)
    assert "warning" not in done.err
    assert len(secured.requests("^PUT .*owned.json")) == 2
    assert unsigned(secured) == {NOTE}


def test_a_part_that_no_server_confirms_is_sent_again_with_a_signature(large: Hub, secured: S3, run: Runner) -> None:
    def forget(handler: Handler) -> bool:
        secured.verifies = bool(handler.about.endswith("owned.json"))
        return False

    secured.faults.append(forget)
    done = fill(run, large, secured, "--connections", "1", "--include", "big.bin")
    assert done.code == 0, done.err
    assert secured.get("llm/v1/big.bin") == large.files["big.bin"].data
    sent = [asked for asked in secured.asked if "partNumber=" in asked.about]
    assert [signs_body(asked) for asked in sent] == [False, True, True, True]


@pytest.mark.parametrize("pattern", ["partNumber=2", "PUT .*config.json"])
def test_bytes_that_are_damaged_on_their_way_to_the_bucket_are_sent_again(
    large: Hub, secured: S3, run: Runner, pattern: str
) -> None:
    secured.fail(1, pattern, damage)
    done = fill(run, large, secured)
    assert done.code == 0, done.err
    assert "answers 400 BadDigest; attempt 2 of 8 follows" in done.err
    assert holds(secured, large)


def test_bytes_that_are_always_damaged_never_become_visible(large: Hub, secured: S3, run: Runner) -> None:
    secured.fail(1000, "partNumber=2", damage)
    done = run(*order(large, secured), KAIGEN_ATTEMPTS="2")
    assert done.code == 20, done.err
    assert "answers 400 BadDigest; gave up after 2 attempts" in done.err
    assert secured.get("llm/v1/big.bin") is None
    assert secured.get("llm/v1/.kaigen/model.json") is None
    assert not secured.uploads()
