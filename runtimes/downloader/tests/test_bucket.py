"""A model in a bucket: what is there after a fetch, and what another fetch makes of it."""

from __future__ import annotations

import json
import os
import re
import time
from pathlib import Path
from urllib.parse import unquote

import pytest
from hub import REPO, Hub
from kaigen_downloader.upload import part_size
from runs import ID, Done, Runner, content, finish, sha256, start
from s3 import KEYS, S3, Handler

MIB = 1 << 20
BIG = 11 * MIB + 77


def order(hub: Hub, s3: S3, *more: str, prefix: str = "llm/v1", identity: str = ID) -> list[str]:
    """The command line of a fetch into the bucket; parts have the 5 MiB that are the least."""
    fixed = ["fetch", "huggingface", "--repo", REPO, "--identity", identity, "--endpoint", hub.url]
    return [*fixed, *s3.dest(prefix), "--part-size", "5Mi", "--timeout", "5", *more]


def fill(run: Runner, hub: Hub, s3: S3, *more: str, prefix: str = "llm/v1", identity: str = ID) -> Done:
    return run(*order(hub, s3, *more, prefix=prefix, identity=identity))


def holds(s3: S3, hub: Hub, prefix: str = "llm/v1/") -> bool:
    """Whether the bucket has the Hub's files and the marker, and nothing else of ours."""
    wanted = {prefix + path: stored.data for path, stored in hub.files.items()}
    found = {key for key in s3.everything() if key.startswith(prefix)}
    assert found == {*wanted, f"{prefix}.kaigen/model.json"}
    assert not s3.uploads()
    return all(s3.get(key) == data for key, data in wanted.items())


@pytest.mark.promise("Koldun", "The Model's Job streams files from Hugging Face into the S3 bucket")
@pytest.mark.promise("Koldun", "Step 1, model caching pipeline: size and checksum data")
def test_it_is_there_whole_with_its_checksums(hub: Hub, s3: S3, run: Runner) -> None:
    hub.add("model-00003.safetensors", content(BIG, 3))
    done = fill(run, hub, s3)
    assert done.code == 0, done.err
    assert holds(s3, hub)
    assert len(s3.requests("PUT .*model-00003.*partNumber=")) == 3
    for path in ("config.json", "model-00001.safetensors", "model-00003.safetensors", "empty"):
        assert s3.sums(f"llm/v1/{path}")["sha256"] == sha256(hub.files[path].data)
    assert "complete: owner/name@c0ffee000000, 6 files, 12.0 MiB" in done.err
    assert "every checksum right" in done.err


def test_the_marker_is_the_one_that_a_folder_gets(hub: Hub, s3: S3, run: Runner, dest: Path) -> None:
    hub.add("model-00003.safetensors", content(BIG, 3))
    assert fill(run, hub, s3).code == 0
    assert run.fetch(hub, dest).code == 0
    ours = (s3.get("llm/v1/.kaigen/model.json") or b"").splitlines()
    theirs = (dest / ".kaigen" / "model.json").read_bytes().splitlines()
    times = (b' "started"', b' "finished"')
    assert [line for line in ours if not line.startswith(times)] == [
        line for line in theirs if not line.startswith(times)
    ]
    assert len(ours) == len(theirs)


def test_a_second_fetch_asks_the_hub_nothing_and_the_bucket_little(hub: Hub, s3: S3, run: Runner) -> None:
    assert fill(run, hub, s3).code == 0
    asked = len(hub.seen)
    s3.asked.clear()
    done = fill(run, hub, s3, prefix="llm/v1//")
    assert done.code == 0
    assert "already complete" in done.err
    assert len(hub.seen) == asked
    assert len(s3.asked) == 2
    assert not s3.requests("^(PUT|POST|DELETE)")


def test_a_missing_or_resized_object_is_detected(hub: Hub, s3: S3, run: Runner) -> None:
    assert fill(run, hub, s3).code == 0
    s3.client.delete_object(Bucket=s3.bucket, Key="llm/v1/config.json")
    s3.put("llm/v1/model-00001.safetensors", b"short")
    hub.sent = 0
    done = fill(run, hub, s3)
    assert done.code == 0
    assert "config.json is missing and more" in done.err
    assert holds(s3, hub)
    assert hub.sent == len(hub.files["config.json"].data) + 50_000


def test_a_new_identity_fetches_changed_files_and_removes_old_ones(hub: Hub, s3: S3, run: Runner) -> None:
    assert fill(run, hub, s3).code == 0
    s3.put("llm/v1/notes.txt", b"mine")
    s3.put("llm/v10/other", b"theirs")
    del hub.files["tokenizer/vocab with space.txt"]
    hub.add("model-00001.safetensors", content(50_000, 9))
    hub.add("tokenizer.json", b"{}")
    hub.revisions["main"] = "d0" * 20
    hub.sent = 0
    done = fill(run, hub, s3, identity="other")
    assert done.code == 0, done.err
    assert hub.sent == 50_000 + 2
    assert s3.get("llm/v1/notes.txt") == b"mine"
    assert s3.get("llm/v10/other") == b"theirs"
    s3.client.delete_object(Bucket=s3.bucket, Key="llm/v1/notes.txt")
    assert holds(s3, hub)
    assert json.loads(s3.get("llm/v1/.kaigen/model.json") or b"")["identity"] == "other"


def test_object_metadata_names_are_case_insensitive(hub: Hub, s3: S3, run: Runner) -> None:
    def capitals(handler: Handler) -> bool:
        if handler.command != "HEAD" or handler.path.endswith("owned.json"):
            return False
        found = s3.sums(unquote(handler.path).split("/", 2)[2])
        size = len(s3.get(unquote(handler.path).split("/", 2)[2]) or b"")
        sums = {f"X-Amz-Meta-{name.title()}": value for name, value in found.items()}
        handler.reply(200, b"", {"Content-Length": str(size)} | sums)
        return True

    assert fill(run, hub, s3).code == 0
    s3.faults.append(capitals)
    hub.sent = 0
    assert fill(run, hub, s3, identity="two").code == 0
    assert hub.sent == 0


def test_the_whole_bucket_may_be_the_model(hub: Hub, s3: S3, run: Runner) -> None:
    s3.put("mine", b"1")
    assert fill(run, hub, s3, prefix="").code == 0
    assert s3.get("config.json") == hub.files["config.json"].data
    assert "already complete" in fill(run, hub, s3, prefix="").err
    del hub.files["config.json"]
    assert fill(run, hub, s3, prefix="", identity="two").code == 0
    assert s3.everything() == {*hub.files, ".kaigen/model.json", "mine"}


def test_names_of_all_kinds_come_back_from_a_listing(hub: Hub, s3: S3, run: Runner) -> None:
    for name in ("Größe 100%.txt", "日本/モデル+1&2=3.bin", "a'b\"c<d>#?.json", "~x@y:z,!$(1).txt"):
        hub.add(name, name.encode())
    assert fill(run, hub, s3).code == 0
    assert holds(s3, hub)
    assert "already complete" in fill(run, hub, s3).err
    hub.files.pop("日本/モデル+1&2=3.bin")
    hub.sent = 0
    assert fill(run, hub, s3, identity="two").code == 0
    assert hub.sent == 0
    assert holds(s3, hub)


@pytest.mark.parametrize("named", ["--s3-region", "AWS_REGION", "AWS_DEFAULT_REGION", ""])
def test_the_region_is_signed_with(hub: Hub, s3: S3, run: Runner, monkeypatch: pytest.MonkeyPatch, named: str) -> None:
    if named.startswith("AWS"):
        monkeypatch.setenv(named, "eu-west-3")
    done = fill(run, hub, s3, *(["--s3-region", "eu-west-3"] if named.startswith("--") else []))
    assert done.code == 0, done.err
    signed = {asked.headers["Authorization"].split("/")[2] for asked in s3.asked}
    assert signed == {"eu-west-3" if named else "us-east-1"}


@pytest.mark.parametrize(("style", "host"), [("path", "s3.invalid"), ("virtual", "{}.s3.invalid")])
def test_the_bucket_is_named_in_the_path_or_the_host(
    hub: Hub, s3: S3, run: Runner, monkeypatch: pytest.MonkeyPatch, style: str, host: str
) -> None:
    monkeypatch.setenv("http_proxy", s3.url)
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    done = fill(run, hub, s3, "--s3-endpoint", "http://s3.invalid", "--s3-addressing", style)
    assert done.code == 0, done.err
    assert holds(s3, hub)
    assert {asked.headers["Host"] for asked in s3.asked} == {host.format(s3.bucket)}


def test_a_web_identity_gives_the_credentials(
    hub: Hub, s3: S3, run: Runner, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name in KEYS:
        monkeypatch.delenv(name)
    (tmp_path / "token").write_text("a.b.c")
    monkeypatch.setenv("AWS_WEB_IDENTITY_TOKEN_FILE", str(tmp_path / "token"))
    monkeypatch.setenv("AWS_ROLE_ARN", "arn:aws:iam::123456789012:role/models")
    monkeypatch.setenv("AWS_ENDPOINT_URL_STS", f"http://{s3.backend}")
    done = fill(run, hub, s3)
    assert done.code == 0, done.err
    assert holds(s3, hub)
    tokens = {asked.headers.get("X-Amz-Security-Token") for asked in s3.asked}
    assert len(tokens) == 1
    assert None not in tokens
    monkeypatch.setenv("AWS_ENDPOINT_URL_STS", "http://127.0.0.1:1")
    done = fill(run, hub, s3)
    assert done.code == 20, done.err
    assert "Traceback" not in done.err


def test_a_mount_of_it_is_verified_whatever_its_modes_and_times(hub: Hub, s3: S3, run: Runner, tmp_path: Path) -> None:
    assert fill(run, hub, s3).code == 0
    mount = tmp_path / "mount"
    for key in s3.everything():
        path = mount / key.removeprefix("llm/v1/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(s3.get(key) or b"")
        path.chmod(0o444)
        os.utime(path, (0, 0))
    for folder in [mount, *(path for path in mount.rglob("*") if path.is_dir())]:
        folder.chmod(0o555)
        os.utime(folder, (0, 0))
    before = sorted(path.stat().st_mtime for path in mount.rglob("*"))
    assert run("verify", "--dest", str(mount), "--full", "--identity", ID).code == 0
    assert run("wait", "--dest", str(mount), "--identity", ID).code == 0
    assert sorted(path.stat().st_mtime for path in mount.rglob("*")) == before


@pytest.mark.parametrize(
    ("size", "asked", "part"),
    [
        (0, 16 * MIB, 16 * MIB),
        (100 * MIB, 4096, 5 * MIB),
        (10_000 * 16 * MIB, 16 * MIB, 16 * MIB),
        (10_000 * 16 * MIB + 1, 16 * MIB, 16 * MIB + 1),
        (5 << 40, 16 * MIB, -(-(5 << 40) // 10_000)),
    ],
)
def test_parts_are_as_large_as_the_protocol_wants(size: int, asked: int, part: int) -> None:
    assert part_size(size, asked) == part
    assert -(-size // part) <= 10_000


def test_memory_does_not_grow_with_the_file(hub: Hub, s3: S3) -> None:
    hub.add("model.bin", content(MIB) * 300)
    # The server of the test keeps no part: it would be as large as the file.
    parts = re.compile("partNumber=|uploadId=")

    def swallow(handler: Handler) -> bool:
        if not parts.search(handler.about):
            return False
        left = int(handler.headers["Content-Length"])
        if handler.command == "POST":
            handler.rfile.read(left)
            handler.reply(200, b"<CompleteMultipartUploadResult/>")
            return True
        while left:
            left -= len(handler.rfile.read(min(left, MIB)))
        handler.reply(200, b"", {"ETag": '"x"'})
        return True

    s3.faults.append(swallow)
    fixed = ["fetch", "huggingface", "--repo", REPO, "--identity", ID, "--endpoint", hub.url]
    process = start([*fixed, *s3.dest(), "--include", "model.bin"], **KEYS)
    peak = 0
    while process.poll() is None:
        status = Path(f"/proc/{process.pid}/status").read_text()
        peak = max([peak, *map(int, re.findall(r"VmHWM:\s+(\d+) kB", status))])
        time.sleep(0.005)
    assert finish(process).code == 0
    # The program, and with the defaults four parts of 16 MiB.
    assert peak / 1024 < 100 + 4 * 16, peak
