"""Listings that are too large or have no end: an error before they fill the memory."""

from __future__ import annotations

import itertools
import json
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest
from hub import COMMIT
from kaigen_downloader import listing
from runs import ID, Done, Runner
from servers import Request, serving

FILE = {"type": "file", "path": "a", "size": 1, "oid": "0" * 40}
S3 = {"AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": "s3_secret"}


def hub(pages: Callable[[Request], None]) -> Callable[[Request], None]:
    """A Hub whose repository has the pages of a function."""

    def answer(request: Request) -> None:
        if "/revision/" in request.path:
            request.reply(200, json.dumps({"sha": COMMIT}).encode())
        else:
            pages(request)

    return answer


def next_page(request: Request, number: int) -> dict[str, str]:
    return {"Link": f'<http://{request.host}/api/tree/{number}>; rel="next"'}


def fetch_hub(run: Runner, host: str, dest: Path) -> Done:
    where = ("--repo", "org/model", "--endpoint", f"http://{host}", "--dest", str(dest))
    return run("fetch", "huggingface", *where, "--identity", ID, "--timeout", "5s", KAIGEN_ATTEMPTS="2")


@pytest.fixture
def fetch_s3(monkeypatch: pytest.MonkeyPatch, run: Runner, dest: Path) -> Callable[[str], Done]:
    for name, value in S3.items():
        monkeypatch.setenv(name, value)

    def fetch(host: str) -> Done:
        where = ("--uri", "s3://models/a", "--region", "us-east-1", "--endpoint", f"http://{host}")
        more = ("--dest", str(dest), "--identity", ID, "--timeout", "5s")
        return run("fetch", "s3", *where, *more, KAIGEN_ATTEMPTS="2")

    return fetch


def page(entries: str, token: str = "", before: str = "") -> bytes:
    """A page of a bucket."""
    more = f"<NextContinuationToken>{token}</NextContinuationToken>" if token else ""
    return (
        f'<?xml version="1.0"?>{before}<ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/">'
        f"<Name>models</Name>{entries}<IsTruncated>{'true' if token else 'false'}</IsTruncated>{more}"
        "</ListBucketResult>"
    ).encode()


def entry(key: str, size: str = "1") -> str:
    return f"<Contents><Key>a/{key}</Key><Size>{size}</Size><ETag>&quot;{'0' * 32}&quot;</ETag></Contents>"


def test_a_page_of_the_hub_has_a_limit(run: Runner, dest: Path) -> None:
    large = json.dumps([FILE | {"path": "x" * listing.LARGEST_ANSWER}]).encode()
    with serving(hub(lambda request: request.reply(200, large))) as host:
        done = fetch_hub(run, host, dest)
    assert (done.code, "the answer is larger than 8.0 MiB" in done.err) == (20, True), done.err


@pytest.mark.parametrize(
    ("limit", "most", "files", "length"),
    [("MOST_PAGES", 7, 0, 1), ("MOST_FILES", 60, 10, 1), ("MOST_BYTES", 1 << 20, 1, 200_000)],
)
def test_all_pages_of_the_hub_have_limits(
    run: Runner, dest: Path, monkeypatch: pytest.MonkeyPatch, limit: str, most: int, files: int, length: int
) -> None:
    monkeypatch.setattr(listing, limit, most)
    numbers = itertools.count()

    def pages(request: Request) -> None:
        number = next(numbers)
        entries = [FILE | {"path": f"{number}-{index}" + "x" * length} for index in range(files)]
        request.reply(200, json.dumps(entries).encode(), next_page(request, number))

    with serving(hub(pages)) as host:
        done = fetch_hub(run, host, dest)
    assert (done.code, "returns an endless listing of org/model" in done.err) == (20, True), done.err
    assert next(numbers) < 10


@pytest.mark.parametrize(
    ("limit", "most", "files", "length"),
    [("MOST_PAGES", 7, 0, 1), ("MOST_FILES", 60, 10, 1), ("MOST_BYTES", 1 << 20, 1, 200_000)],
)
def test_all_pages_of_a_bucket_have_limits(
    fetch_s3: Callable[[str], Done], monkeypatch: pytest.MonkeyPatch, limit: str, most: int, files: int, length: int
) -> None:
    monkeypatch.setattr(listing, limit, most)
    numbers = itertools.count()

    def answer(request: Request) -> None:
        number = next(numbers)
        entries = "".join(entry(f"{number}-{index}" + "x" * length) for index in range(files))
        request.reply(200, page(entries, f"token-{number}"))

    with serving(answer) as host:
        done = fetch_s3(host)
    assert (done.code, "returns an endless listing of s3://models/a" in done.err) == (20, True), done.err
    assert next(numbers) < 10


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_entities_of_a_listing_are_not_expanded(fetch_s3: Callable[[str], Done], encoding: str) -> None:
    before = f"<!DOCTYPE x [<!ENTITY a '{'x' * 1_000_000}'>]>"
    bomb = page(entry("&a;" * 100), before=before).decode().encode(encoding)
    with serving(lambda request: request.reply(200, bomb)) as host:
        tracemalloc.start()
        try:
            done = fetch_s3(host)
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
    assert (done.code, "an answer that is not one of S3" in done.err) == (20, True), done.err
    assert peak < 60_000_000


@pytest.mark.parametrize(
    ("size", "code"), [("1e9", 20), ("x", 20), ("9" * 5000, 20), ("-5", 11), ("9" * 30, 11), ("", 20)]
)
def test_a_size_of_a_bucket_that_is_none_is_a_failure_of_the_server(
    fetch_s3: Callable[[str], Done], size: str, code: int
) -> None:
    with serving(lambda request: request.reply(200, page(entry("file", size)))) as host:
        done = fetch_s3(host)
    assert (done.code, "Traceback" not in done.err) == (code, True), done.err


def test_elements_below_each_other_are_a_failure_of_the_server(fetch_s3: Callable[[str], Done]) -> None:
    deep = page("<x>" * 100_000 + "</x>" * 100_000)
    with serving(lambda request: request.reply(200, deep)) as host:
        done = fetch_s3(host)
    assert (done.code != 0, "Traceback" not in done.err) == (True, True), done.err


def test_the_web_page_of_a_proxy_is_an_error_by_its_status(fetch_s3: Callable[[str], Done]) -> None:
    text = b"<!DOCTYPE HTML PUBLIC '-//IETF//DTD HTML 2.0//EN'><html><body>Forbidden</body></html>"
    with serving(lambda request: request.reply(403, text)) as host:
        done = fetch_s3(host)
    assert (done.code, "access denied" in done.err) == (10, True), done.err
