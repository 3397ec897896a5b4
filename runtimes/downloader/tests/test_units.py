"""The small pure parts, and what the image is made from."""

from __future__ import annotations

import re
import time
from email.utils import formatdate

import pytest
from kaigen_downloader import text
from kaigen_downloader.net import origin, retry_after
from runs import PACKAGE


@pytest.mark.parametrize(
    ("written", "count"),
    [("16Mi", 16 << 20), ("1Gi", 1 << 30), ("64k", 64000), ("5M", 5_000_000), ("4096", 4096), ("2KiB", 2048)],
)
def test_sizes(written: str, count: int) -> None:
    assert text.parse_size(written) == count


@pytest.mark.parametrize("written", ["", "Mi", "-1", "1.5Mi", "1Pi"])
def test_an_invalid_size_is_rejected(written: str) -> None:
    with pytest.raises(ValueError, match="not a size"):
        text.parse_size(written)


@pytest.mark.parametrize(
    ("written", "seconds"), [("2h", 7200), ("1h30m", 5400), ("90s", 90), ("90", 90), ("0.5", 0.5), ("1m0.5s", 60.5)]
)
def test_durations(written: str, seconds: float) -> None:
    assert text.parse_duration(written) == seconds


@pytest.mark.parametrize("written", ["", "h", "0", "-3", "nan", "inf", "1d", "1s1h"])
def test_an_invalid_duration_is_rejected(written: str) -> None:
    with pytest.raises(ValueError, match="not a duration"):
        text.parse_duration(written)


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ("GET https://cdn.example/x?X-Amz-Signature=abc&y=1 failed", "GET https://cdn.example/x?… failed"),
        ("http://user:pass@proxy.example:3128", "http://proxy.example:3128"),
        ("Authorization: Bearer abcdefgh.1234", "Authorization: Bearer ***"),
        ("token hf_AbCdEf123456 here", "token *** here"),
        ("a file hf_x", "a file hf_x"),
        ("HTTPS://user:p@ss@cdn.example/x?key=1", "HTTPS://cdn.example/x?…"),
        ("http://a.example/?x=me@b", "http://a.example/?…"),
    ],
)
def test_secrets_are_not_shown(given: str, shown: str) -> None:
    assert text.redact(given) == shown


def test_a_named_secret_is_hidden_in_any_text() -> None:
    text.hide("s3cr3t-of-this-test")
    assert text.redact("x=s3cr3t-of-this-test;") == "x=***;"


@pytest.mark.parametrize("piece", ["http://", "http://a", "bearer ", "basic  ", "hf_", "http://@", "x@"])
def test_secrets_of_a_long_text_are_found_in_linear_time(piece: str) -> None:
    begin = time.process_time()
    text.redact(piece * 200_000)
    assert time.process_time() - begin < 2


def test_only_the_start_of_a_long_message_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    text.say("a" * 100_000)
    assert 1000 < len(capsys.readouterr().err) < 5000


def test_numbers_for_people() -> None:
    assert [text.size(count) for count in (0, 1023, 1536, 5 << 30, 3 << 40)] == [
        "0 B",
        "1023 B",
        "1.5 KiB",
        "5.0 GiB",
        "3.0 TiB",
    ]
    assert [text.duration(seconds) for seconds in (3.2, 95, 7500)] == ["3.2s", "1m35s", "2h05m"]
    assert text.timestamp(0.9996) == "1970-01-01T00:00:01.000Z"


def test_an_origin_is_scheme_host_and_port() -> None:
    assert origin("https://Hub.Example/a?b") == origin("https://hub.example:443") == ("https", "hub.example", 443)
    assert origin("http://hub.example") != origin("https://hub.example")
    assert origin("https://hub.example.evil") != origin("https://hub.example")


def test_retry_after_may_be_a_number_a_date_or_the_hubs_own_header() -> None:
    now = time.time()
    assert retry_after({"Retry-After": "17"}, now) == 17
    assert retry_after({"Retry-After": formatdate(now + 30, usegmt=True)}, now) == pytest.approx(30, abs=1.1)
    assert retry_after({"RateLimit": '"api";r=0;t=55'}, now) == 55
    assert retry_after({"Retry-After": "soon"}, now) is None
    assert retry_after({}, now) is None


@pytest.mark.parametrize("name", ["requirements.txt", "requirements-build.txt"])
def test_the_image_installs_only_what_is_pinned_by_hash(name: str) -> None:
    lines = (PACKAGE / name).read_text().replace("\\\n", "").splitlines()
    pins = [line for line in lines if line.strip() and not line.lstrip().startswith("#")]
    assert pins
    assert all(re.match(r"[a-z0-9-]+==\S+ .*--hash=sha256:[0-9a-f]{64}", pin) for pin in pins)
    assert not [line for line in lines if "://" in line]
    assert not [pin for pin in pins if "index" in pin]


def test_the_image_runs_without_privileges_from_a_pinned_base() -> None:
    lines = (PACKAGE / "Dockerfile").read_text().splitlines()
    assert {line.split()[1] for line in lines if line.startswith("FROM ")} == {"${BASE}"}
    (base,) = [line.removeprefix("ARG BASE=") for line in lines if line.startswith("ARG BASE=")]
    assert re.fullmatch(r"docker\.io/library/python:\d+\.\d+(\.\d+)?-slim-[a-z]+@sha256:[0-9a-f]{64}", base)
    assert "USER 65532:65532" in lines
    stored = [line for line in lines if not line.startswith("RUN --mount=type=secret,")]
    assert not [line for line in stored if re.search(r"(?i)token|secret|password|ADD http", line)]
