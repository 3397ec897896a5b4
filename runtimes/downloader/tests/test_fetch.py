"""What a fetch brings, and what it leaves alone."""

from __future__ import annotations

import re
import stat
import time
from datetime import datetime
from pathlib import Path

import pytest
from hub import COMMIT, REPO, Hub
from runs import ID, Runner, content, files, finish, holds, marker, sha256, start, until


def test_a_fetch_brings_every_file_and_writes_the_marker(hub: Hub, run: Runner, dest: Path) -> None:
    done = run.fetch(hub, dest)
    assert done.code == 0, done.err
    assert holds(dest, hub)
    assert files(dest) == set(hub.files)
    found = marker(dest)
    assert found is not None
    total = sum(len(stored.data) for stored in hub.files.values())
    assert found["schema"] == 1
    assert found["identity"] == ID
    assert found["source"] == {"type": "huggingface", "repo": REPO, "revision": "main", "commit": COMMIT}
    assert found["files"] == [
        {"path": path, "size": len(stored.data), "sha256": sha256(stored.data)}
        for path, stored in sorted(hub.files.items())
    ]
    assert found["bytes"] == found["fetched"] == total == hub.sent
    started, finished = (datetime.fromisoformat(found[name]) for name in ("started", "finished"))
    assert started <= finished
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", found["finished"])
    assert "complete: owner/name@c0ffee000000, 5 files" in done.err


def test_other_users_may_read_what_was_fetched(hub: Hub, run: Runner, dest: Path) -> None:
    assert run.fetch(hub, dest).code == 0
    modes = {stat.S_IMODE((dest / path).stat().st_mode) for path in [*hub.files, ".kaigen/model.json"]}
    assert modes == {0o644}
    assert stat.S_IMODE((dest / "tokenizer").stat().st_mode) == 0o755


def test_nothing_is_left_of_the_work(hub: Hub, run: Runner, dest: Path) -> None:
    assert run.fetch(hub, dest).code == 0
    left = sorted(str(path.relative_to(dest)) for path in (dest / ".kaigen").rglob("*"))
    assert left == [".kaigen/lock", ".kaigen/model.json", ".kaigen/partial"]


def test_a_second_fetch_asks_the_hub_nothing(hub: Hub, run: Runner, dest: Path) -> None:
    assert run.fetch(hub, dest).code == 0
    asked = len(hub.seen)
    before = marker(dest)
    done = run.fetch(hub, dest)
    assert done.code == 0
    assert "already complete" in done.err
    assert len(hub.seen) == asked
    assert marker(dest) == before


def test_a_listing_of_many_pages_is_read_to_its_end(hub: Hub, run: Runner, dest: Path) -> None:
    hub.page = 2
    assert run.fetch(hub, dest).code == 0
    assert holds(dest, hub)
    assert len(hub.requests("hub", "/tree/")) == 3


def test_a_revision_is_pinned_to_its_commit(hub: Hub, run: Runner, dest: Path) -> None:
    commit = "ab" * 20
    hub.revisions = {"refs/pr/1": commit, commit: commit}
    assert run.fetch(hub, dest, "--revision", "refs/pr/1").code == 0
    found = marker(dest)
    assert found is not None
    assert found["source"]["revision"] == "refs/pr/1"
    assert found["source"]["commit"] == commit
    resolved = hub.requests("hub", "/resolve/")
    assert resolved
    assert all(f"/resolve/{commit}/" in seen.path for seen in resolved)


@pytest.mark.parametrize(
    ("globs", "expected"),
    [
        (["--include", "*.safetensors"], {"model-00001.safetensors", "model-00002.safetensors"}),
        (["--include", "*.json", "--include", "tokenizer/"], {"config.json", "tokenizer/vocab with space.txt"}),
        (["--exclude", "*.safetensors", "--exclude", "empty"], {"config.json", "tokenizer/vocab with space.txt"}),
        (["--include", "model*", "--exclude", "*2.safetensors"], {"model-00001.safetensors"}),
    ],
)
def test_globs_choose_the_files(hub: Hub, run: Runner, dest: Path, globs: list[str], expected: set[str]) -> None:
    assert run.fetch(hub, dest, *globs).code == 0
    assert files(dest) == expected


def test_globs_that_select_nothing_are_an_error(hub: Hub, run: Runner, dest: Path) -> None:
    done = run.fetch(hub, dest, "--include", "*.gguf")
    assert done.code == 13
    assert "select none of the 5 files" in done.err
    assert "config.json" in done.err
    assert marker(dest) is None


def test_a_hub_without_a_cdn_serves_the_files_itself(hub: Hub, run: Runner, dest: Path) -> None:
    hub.cdn = False
    assert run.fetch(hub, dest).code == 0
    assert holds(dest, hub)
    assert not hub.requests("cdn")


def test_a_large_file_is_fetched_in_parts_with_one_request_to_the_hub(hub: Hub, run: Runner, dest: Path) -> None:
    assert run.fetch(hub, dest).code == 0
    parts = hub.requests("cdn", "model-00002")
    assert len(parts) == 16
    assert {seen.range for seen in parts} == {
        f"bytes={65536 * index}-{min(65536 * (index + 1), 16 * 65536 - 5) - 1}" for index in range(16)
    }
    assert len(hub.requests("hub", "resolve/" + COMMIT + "/model-00002")) == 1


def test_a_new_identity_fetches_changed_files_and_removes_old_ones(hub: Hub, run: Runner, dest: Path) -> None:
    assert run.fetch(hub, dest).code == 0
    (dest / "notes.txt").write_text("mine")
    hub.sent = 0
    del hub.files["tokenizer/vocab with space.txt"]
    hub.add("model-00001.safetensors", content(50_000, 3))
    hub.add("tokenizer.json", b"{}")
    hub.revisions["main"] = "d0" * 20
    done = run.fetch(hub, dest, identity="other")
    assert done.code == 0, done.err
    assert holds(dest, hub)
    assert files(dest) == {*hub.files, "notes.txt"}
    assert not (dest / "tokenizer").exists()
    assert hub.sent == 50_000 + 2
    found = marker(dest)
    assert found is not None
    assert found["identity"] == "other"
    assert {file["path"] for file in found["files"]} == set(hub.files)


def test_files_of_an_unfinished_run_are_removed_with_the_next_identity(hub: Hub, run: Runner, dest: Path) -> None:
    assert run.fetch(hub, dest).code == 0
    hub.add("adapter.json", b"[]")
    hub.files["broken"] = hub.add("broken", content(2000), lfs=True)
    hub.files["broken"].listed_oid = "0" * 64
    assert run.fetch(hub, dest, "--connections", "1", identity="second").code == 11
    assert (dest / "adapter.json").exists()
    assert marker(dest) is None
    del hub.files["broken"], hub.files["adapter.json"]
    assert run.fetch(hub, dest, identity="third").code == 0
    assert files(dest) == set(hub.files)


def test_a_folder_may_take_the_place_of_a_file_of_the_model_before(hub: Hub, run: Runner, dest: Path) -> None:
    assert run.fetch(hub, dest).code == 0
    del hub.files["empty"]
    hub.add("empty/now.txt", b"not empty")
    assert run.fetch(hub, dest, identity="second").code == 0
    assert (dest / "empty" / "now.txt").read_bytes() == b"not empty"
    del hub.files["empty/now.txt"]
    hub.add("empty", b"")
    assert run.fetch(hub, dest, identity="third").code == 0
    assert (dest / "empty").read_bytes() == b""


def test_a_missing_repository_leaves_the_old_model_unchanged(hub: Hub, run: Runner, dest: Path) -> None:
    assert run.fetch(hub, dest).code == 0
    before = marker(dest)
    assert run.fetch(hub, dest, "--revision", "nope", identity="other").code == 10
    assert marker(dest) == before
    assert holds(dest, hub)


def test_a_marker_with_a_missing_file_is_not_trusted(hub: Hub, run: Runner, dest: Path) -> None:
    assert run.fetch(hub, dest).code == 0
    (dest / "config.json").unlink()
    (dest / "model-00001.safetensors").write_bytes(b"short")
    hub.sent = 0
    done = run.fetch(hub, dest)
    assert done.code == 0
    assert "config.json is missing and more" in done.err
    assert holds(dest, hub)
    assert hub.sent == len(hub.files["config.json"].data) + 50_000


def test_a_file_with_other_bytes_of_the_same_size_is_replaced(hub: Hub, run: Runner, dest: Path) -> None:
    dest.mkdir()
    (dest / "model-00001.safetensors").write_bytes(bytes(50_000))
    assert run.fetch(hub, dest).code == 0
    assert holds(dest, hub)


def test_a_second_fetch_waits_and_finds_the_work_done(hub: Hub, dest: Path) -> None:
    hub.rate = 1e6
    argv = ["fetch", "huggingface", "--repo", REPO, "--dest", str(dest), "--identity", ID, "--endpoint", hub.url]
    both = [start(argv), start(argv)]
    results = [finish(process) for process in both]
    assert [done.code for done in results] == [0, 0]
    said = "".join(done.err for done in results)
    assert said.count("waiting for it") == 1
    assert said.count("already complete") == 1
    assert hub.sent == sum(len(stored.data) for stored in hub.files.values())


def test_the_lock_of_a_killed_fetch_is_free(hub: Hub, run: Runner, dest: Path) -> None:
    hub.rate = 5e4
    process = start(["fetch", "huggingface", "--repo", REPO, "--dest", str(dest), "--identity", ID])
    process.kill()
    finish(process)
    process = start([*_plain(hub, dest)])
    until(lambda: hub.sent)
    process.kill()
    finish(process)
    hub.rate = None
    assert run.fetch(hub, dest).code == 0


def _plain(hub: Hub, dest: Path) -> list[str]:
    return ["fetch", "huggingface", "--repo", REPO, "--dest", str(dest), "--identity", ID, "--endpoint", hub.url]


def test_the_endpoint_flag_overrides_the_environment(hub: Hub, run: Runner, dest: Path) -> None:
    argv = ["fetch", "huggingface", "--repo", REPO, "--dest", str(dest), "--identity", ID]
    assert run(*argv, HF_ENDPOINT=hub.url + "/").code == 0
    assert run(*argv[:-1], "two", "--endpoint", hub.url, HF_ENDPOINT="http://127.0.0.1:1").code == 0


def test_memory_does_not_grow_with_the_file(hub: Hub, tmp_path: Path) -> None:
    peaks = []
    for mebibytes in (4, 96):
        hub.add("model.bin", content(1 << 20) * mebibytes)
        argv = _plain(hub, tmp_path / str(mebibytes))
        process = start([*argv, "--include", "model.bin", "--connections", "8"])
        peak = 0
        # The peak of the program itself; wait4 includes the process that it was forked from.
        while process.poll() is None:
            status = Path(f"/proc/{process.pid}/status").read_text()
            peak = max([peak, *map(int, re.findall(r"VmHWM:\s+(\d+) kB", status))])
            time.sleep(0.005)
        assert finish(process).code == 0
        peaks.append(peak / 1024)
    assert peaks[1] - peaks[0] < 16, peaks
