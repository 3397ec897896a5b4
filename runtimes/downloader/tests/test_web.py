"""Files from addresses of their own: proven where a checksum is known, watched where none is."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest
from hub import Handler, Hub
from runs import ID, Runner, content, finish, marker, sha256, start, until

BIG = 40 * 65536 + 77


def address(hub: Hub, name: str) -> str:
    """Where the CDN of the test serves a file."""
    return f"{hub.cdn_url}/{name}?X-Amz-Signature={hub.signature}"


def order(dest: Path, *more: str) -> list[str]:
    fixed = ["fetch", "http", "--dest", str(dest), "--identity", ID, "--part-size", "64Ki", "--timeout", "5"]
    return [*fixed, *more]


@pytest.fixture
def large(hub: Hub) -> Hub:
    hub.add("data.parquet", content(BIG, 3))
    return hub


def test_files_from_several_servers_are_verified(hub: Hub, run: Runner, dest: Path) -> None:
    model, config = hub.files["model-00002.safetensors"].data, hub.files["config.json"].data
    redirected = f"{hub.url}/owner/name/resolve/main/model-00002.safetensors"
    done = run(
        *order(dest, "--file", f"a/model.safetensors={redirected}", "--file", f"c.json={address(hub, 'config.json')}"),
        *("--sha256", f"a/model.safetensors={sha256(model)}", "--sha256", f"c.json={sha256(config)}"),
        HF_TOKEN="hf_abcdefgh",
    )
    assert done.code == 0, done.err
    assert (dest / "a" / "model.safetensors").read_bytes() == model
    assert (dest / "c.json").read_bytes() == config
    assert "every checksum right" in done.err
    found = marker(dest)
    assert found is not None
    assert found["source"]["type"] == "http"
    assert {seen.authorization for seen in hub.seen} == {None}
    assert "already complete" in run(*order(dest, "--file", f"c.json={address(hub, 'config.json')}")).err


def test_a_file_without_a_known_checksum_is_fetched_with_a_message(hub: Hub, run: Runner, dest: Path) -> None:
    done = run(*order(dest, "--file", f"c.json={address(hub, 'config.json')}"))
    assert done.code == 0, done.err
    assert "1 file without a checksum to prove" in done.err
    found = marker(dest)
    assert found is not None
    assert found["files"][0]["sha256"] == sha256(hub.files["config.json"].data)


def test_a_url_from_a_variable_is_never_printed(hub: Hub, run: Runner, dest: Path) -> None:
    secret = address(hub, "config.json")
    done = run(*order(dest, "--file-from", "c.json=ADDRESS"), ADDRESS=secret)
    assert done.code == 0, done.err
    missing = run(
        *order(dest / "other", "--file-from", "c.json=ADDRESS"), ADDRESS=f"{hub.url}/none?key={hub.signature}"
    )
    assert missing.code == 10
    for text in (done.err, missing.err, (dest / ".kaigen" / "model.json").read_text()):
        assert hub.signature not in text
        assert "/config.json" not in text
    assert "has no URL" in run(*order(dest, "--file-from", "c.json=ADDRESS")).err


def test_another_checksum_than_named_ends_with_11(hub: Hub, run: Runner, dest: Path) -> None:
    file = f"c.json={address(hub, 'config.json')}"
    done = run(*order(dest, "--file", file, "--sha256", f"c.json={'0' * 64}"))
    assert done.code == 11, done.err
    assert marker(dest) is None


def test_a_killed_run_resumes_if_the_server_reports_no_change(large: Hub, run: Runner, dest: Path) -> None:
    large.etag, large.rate = '"one"', 1.5e6
    process = start(order(dest, "--file", f"d={address(large, 'data.parquet')}"))
    until(lambda: large.sent > BIG / 2)
    process.send_signal(signal.SIGKILL)
    finish(process)
    large.rate, large.sent = None, 0
    done = run(*order(dest, "--file", f"d={address(large, 'data.parquet')}"))
    assert done.code == 0, done.err
    assert large.sent < BIG * 3 / 4
    assert (dest / "d").read_bytes() == large.files["data.parquet"].data


@pytest.mark.parametrize("etag", ['"two"', None])
def test_a_killed_run_starts_again_if_the_content_may_have_changed(
    large: Hub, run: Runner, dest: Path, etag: str | None
) -> None:
    large.etag, large.rate = etag and '"one"', 1.5e6
    process = start(order(dest, "--file", f"d={address(large, 'data.parquet')}"))
    until(lambda: large.sent > BIG / 2)
    process.send_signal(signal.SIGKILL)
    finish(process)
    large.add("data.parquet", content(BIG, 4))
    large.etag, large.rate = etag, None
    done = run(*order(dest, "--file", f"d={address(large, 'data.parquet')}"))
    assert done.code == 0, done.err
    assert (dest / "d").read_bytes() == content(BIG, 4)


def test_a_file_that_changes_while_it_is_fetched_ends_with_11(large: Hub, run: Runner, dest: Path) -> None:
    large.etag = '"0"'

    def change(handler: Handler) -> bool:
        if handler.headers.get("Range", "").startswith("bytes=131072-"):
            large.etag = '"1"'
        return False

    large.faults.append(change)
    done = run(*order(dest, "--file", f"d={address(large, 'data.parquet')}", "--connections", "1"))
    assert done.code == 11, done.err
    assert "changed while it was fetched" in done.err


def test_a_server_without_resume_or_size_is_reported(hub: Hub, run: Runner, dest: Path) -> None:
    hub.ranges = False
    assert run(*order(dest, "--file", f"c.json={address(hub, 'config.json')}")).code == 0

    def endless(handler: Handler) -> bool:
        handler.send_response(200)
        handler.send_header("Connection", "close")
        handler.end_headers()
        handler.wfile.write(b"some")
        handler.close_connection = True
        return True

    hub.faults.append(endless)
    done = run(*order(dest / "other", "--file", f"c.json={address(hub, 'config.json')}"))
    assert done.code == 20, done.err
    assert "does not report the size" in done.err


def test_a_missing_file_ends_with_10(hub: Hub, run: Runner, dest: Path) -> None:
    done = run(*order(dest, "--file", f"c.json={hub.url}/nothing"))
    assert done.code == 10, done.err
    assert "c.json: 127.0.0.1 answers 404" in done.err


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ((), "nothing to fetch"),
        (("--file", "c.json"), "must be PATH="),
        (("--file", "../c=http://127.0.0.1:9/"), "leads out"),
        (("--file", ".kaigen/x=http://127.0.0.1:9/"), "reserved name"),
        (("--file", "c=ftp://127.0.0.1/"), "not an http or https URL"),
        (("--file", "c=http://me:pass@127.0.0.1:9/"), "user name"),
        (("--file", "c=http://127.0.0.1:9/", "--sha256", "c=abc"), "64 digits"),
        (("--file", "c=http://127.0.0.1:9/", "--sha256", f"d={'0' * 64}"), "no such file"),
        (("--file", "c=http://127.0.0.1:9/a", "--file", "c=http://127.0.0.1:9/b"), "twice"),
        (("--file", "c=http://127.0.0.1:9/a", "--file", "c/d=http://127.0.0.1:9/b"), "as a file and as a folder"),
    ],
)
def test_an_invalid_argument_ends_with_13(run: Runner, dest: Path, more: tuple[str, ...], said: str) -> None:
    done = run(*order(dest, *more))
    assert (done.code, said in done.err) == (13, True), done.err
    assert "pass" not in done.err
