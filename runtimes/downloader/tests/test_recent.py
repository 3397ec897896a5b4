"""Files of a bucket that are chosen by the time of their last change."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from blobs import ACCOUNT, Azure, azure
from hypothesis import given
from hypothesis import strategies as st
from kaigen_downloader.errors import Corrupt
from kaigen_downloader.recent import Recent
from runs import ID, Done, Runner
from s3 import S3

NOW = datetime.now(UTC)


@pytest.fixture
def days(s3: S3) -> S3:
    """A bucket with a file of each of five days, the oldest first."""
    for day in range(5):
        s3.put(f"in/day-{day}.jsonl", f"{day}\n".encode(), NOW - timedelta(hours=24 * (4 - day) + 1))
    return s3


def fetch(run: Runner, s3: S3, dest: Path, *more: str) -> Done:
    where = ("--uri", f"s3://{s3.bucket}/in", "--endpoint", s3.url, "--dest", str(dest), "--identity", ID)
    return run("fetch", "s3", *where, *more)


def fetched(dest: Path) -> list[str]:
    """Return the files of the folder, which are those of the marker."""
    found = sorted(path.name for path in dest.iterdir() if path.is_file())
    marker = json.loads((dest / ".kaigen" / "model.json").read_text())
    assert [file["path"] for file in marker["files"]] == found
    return found


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (("--newest", "2"), [3, 4]),
        (("--newest", "9"), [0, 1, 2, 3, 4]),
        (("--modified-within", "50h"), [2, 3, 4]),
        (("--modified-within", "3d"), [2, 3, 4]),
        (("--modified-within", "50h", "--newest", "1"), [4]),
        (("--newest", "1", "--exclude", "day-4*"), [3]),
    ],
)
def test_the_last_modified_files_are_fetched_and_listed(
    days: S3, run: Runner, dest: Path, options: tuple[str, ...], expected: list[int]
) -> None:
    done = fetch(run, days, dest, *options)
    assert done.code == 0, done.err
    assert fetched(dest) == [f"day-{day}.jsonl" for day in expected]
    total = 4 if "--exclude" in options else 5
    assert f"chosen {len(expected)} file" in done.err
    assert f" of {total}, modified from " in done.err


def test_a_run_that_is_repeated_keeps_the_list_of_its_first_attempt(days: S3, run: Runner, dest: Path) -> None:
    assert fetch(run, days, dest, "--newest", "1").code == 0
    days.put("in/day-5.jsonl", b"5\n")
    assert fetch(run, days, dest, "--newest", "1").code == 0
    assert fetched(dest) == ["day-4.jsonl"]


def test_no_new_file_is_an_error_that_a_retry_does_not_help(days: S3, run: Runner, dest: Path) -> None:
    done = fetch(run, days, dest, "--modified-within", "30m")
    assert done.code == 13
    assert f"s3://{days.bucket}/in: none of its 5 files was modified since " in done.err
    assert not (dest / ".kaigen" / "model.json").exists()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--newest", "0"), "not a number from 1 to 1000000"),
        (("--modified-within", "0d"), "not a duration"),
        (("--modified-within", "soon"), "not a duration"),
        (("--newest", "1", "--locked", f"1:2:{'0' * 64}"), "--locked names all files"),
    ],
)
def test_bad_options(s3: S3, run: Runner, dest: Path, options: tuple[str, ...], message: str) -> None:
    done = fetch(run, s3, dest, *options)
    assert (done.code, message in done.err) == (13, True), done.err


@pytest.fixture
def pod(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Azure]:
    with azure(tmp_path) as (made, variables):
        for name, value in variables.items():
            monkeypatch.setenv(name, value)
        yield made


def test_a_container_of_azure_has_times_too(pod: Azure, run: Runner, dest: Path) -> None:
    for day in range(3):
        pod.put(f"in/day-{day}", b"x")
        pod.blobs[f"in/day-{day}"].modified = NOW - timedelta(days=day)
    where = ("--uri", f"az://{ACCOUNT}/{pod.bucket}/in", "--endpoint", f"{pod.url}/{ACCOUNT}")
    done = run("fetch", "s3", *where, "--dest", str(dest), "--identity", ID, "--newest", "2")
    assert done.code == 0, done.err
    assert fetched(dest) == ["day-0", "day-1"]


def test_a_server_without_times_is_refused() -> None:
    with pytest.raises(Corrupt, match="does not say when 'a' was modified"):
        Recent(1).chosen({"a": None}, "s3://x")
    assert Recent().chosen({"b": None, "a": None}, "s3://x") == ["a", "b"]


@given(
    st.dictionaries(st.text("ab/", min_size=1, max_size=4), st.integers(0, 3), max_size=12),
    st.integers(1, 14),
)
def test_no_file_left_out_is_newer_than_one_that_is_chosen(ages: dict[str, int], count: int) -> None:
    modified = {path: NOW - timedelta(days=days) for path, days in ages.items()}
    chosen = Recent(count).chosen(dict(modified), "s3://x")
    assert len(chosen) == min(count, len(ages))
    left = [(modified[path], path) for path in ages if path not in chosen]
    assert max(left, default=(datetime.min.replace(tzinfo=UTC), "")) <= min(
        ((modified[path], path) for path in chosen), default=(NOW, "")
    )
