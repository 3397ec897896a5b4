"""A source that answers for another revision, digest or prefix than the one that was asked for is refused."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from xml.sax.saxutils import escape

import pytest
from hub import COMMIT, Hub
from runs import ID, Done, Runner, files, marker, sha256
from s3 import S3
from servers import Request, serving

OTHER = "beef" * 10


@pytest.mark.parametrize(
    ("revision", "answer", "code"),
    [
        (COMMIT, COMMIT, 0),
        ("main", COMMIT, 0),
        ("main", OTHER, 0),
        ("v" + COMMIT[1:], OTHER, 0),
        (COMMIT[:12], COMMIT, 0),
        (COMMIT.upper(), COMMIT, 0),
        ("ab" * 32, "ab" * 32, 0),
        (COMMIT, OTHER, 10),
        (COMMIT.upper(), OTHER, 10),
        (COMMIT, COMMIT[:39] + "1", 10),
        (COMMIT, "ab" * 32, 10),
        ("ab" * 32, COMMIT, 10),
        ("ab" * 32, "cd" * 32, 10),
        (COMMIT, COMMIT[:39], 20),
        (COMMIT, COMMIT.upper(), 20),
        (COMMIT, "", 20),
        ("main", "a", 20),
        ("main", COMMIT + "0", 20),
        ("main", "../" * 13 + "x", 20),
    ],
)
def test_a_hub_answers_with_the_commit_that_was_asked_for(
    hub: Hub, run: Runner, dest: Path, revision: str, answer: str, code: int
) -> None:
    hub.revisions |= {revision: answer}
    done = run.fetch(hub, dest, "--revision", revision)
    assert (done.code, done.err.count("\n") == 1 or code == 0) == (code, True), done.err
    assert (marker(dest) is not None) == (code == 0)
    if code:
        assert ("answers with commit" if code == 10 else "returns no commit") in done.err
        assert not hub.requests("hub", "/tree/")


def fetch_oci(run: Runner, dest: Path, paths: Mapping[str, bytes], version: str) -> Done:
    """Fetch an artifact of a registry that answers by the last part of each path."""

    def answer(request: Request) -> None:
        found = paths.get(request.path.rpartition("/")[2])
        request.reply(404 if found is None else 200, found or b"")

    with serving(answer) as host:
        ref = ("--ref", f"{host}/model{version}", "--plain-http")
        return run("fetch", "oci", *ref, "--dest", str(dest), "--identity", ID, KAIGEN_ATTEMPTS="2")


def digest(data: bytes) -> str:
    return f"sha256:{sha256(data)}"


LAYER = b"weights"
MANIFEST = json.dumps(
    {
        "config": {"mediaType": "application/vnd.oci.empty.v1+json"},
        "layers": [
            {
                "mediaType": "x",
                "digest": digest(LAYER),
                "size": len(LAYER),
                "annotations": {"org.opencontainers.image.title": "model"},
            }
        ],
    }
).encode()
INDEX = json.dumps({"manifests": [{"digest": digest(MANIFEST)}]}).encode()


@pytest.mark.parametrize(
    ("version", "paths", "code"),
    [
        (f"@{digest(MANIFEST)}", {digest(MANIFEST): MANIFEST, digest(LAYER): LAYER}, 0),
        (f":1@{digest(MANIFEST)}", {digest(MANIFEST): MANIFEST, digest(LAYER): LAYER}, 0),
        (":1", {"1": INDEX, digest(MANIFEST): MANIFEST, digest(LAYER): LAYER}, 0),
        (f"@{digest(MANIFEST)}", {digest(MANIFEST): MANIFEST + b" ", digest(LAYER): LAYER}, 11),
        (f":1@{digest(MANIFEST)}", {"1": MANIFEST, digest(LAYER): LAYER}, 10),
        (f":1@{digest(MANIFEST)}", {digest(MANIFEST): INDEX, digest(LAYER): LAYER}, 11),
        (f"@{digest(INDEX)}", {digest(INDEX): MANIFEST, digest(LAYER): LAYER}, 11),
        (":1", {"1": INDEX, digest(MANIFEST): MANIFEST + b"\n", digest(LAYER): LAYER}, 11),
        (f"@{digest(MANIFEST)}", {digest(MANIFEST): MANIFEST, digest(LAYER): b"WEIGHTS"}, 11),
        (f"@{digest(MANIFEST)}", {digest(MANIFEST): MANIFEST, digest(LAYER): b"short"}, 11),
    ],
)
def test_a_registry_answers_with_the_digest_that_was_asked_for(
    run: Runner, dest: Path, version: str, paths: Mapping[str, bytes], code: int
) -> None:
    done = fetch_oci(run, dest, paths, version)
    assert done.code == code, done.err
    assert (marker(dest) is not None) == (code == 0)
    assert files(dest) == ({"model"} if code == 0 else set())


def test_an_image_is_found_only_with_its_own_digest(run: Runner, tmp_path: Path) -> None:
    with serving(lambda request: request.reply(200, MANIFEST + b" ")) as host:
        ref = ("--ref", f"{host}/model@{digest(MANIFEST)}", "--plain-http")
        done = run("find-image", *ref, "--write", str(tmp_path / "digest"))
    assert (done.code, "sends another manifest" in done.err) == (11, True), done.err
    assert not (tmp_path / "digest").exists()


@pytest.mark.parametrize(("sent", "code"), [(b"weights", 0), (b"WEIGHTS", 11), (b"other", 11), (b"", 11)])
def test_a_web_server_answers_with_the_checksum_that_was_asked_for(
    run: Runner, dest: Path, sent: bytes, code: int
) -> None:
    with serving(lambda request: request.reply(200, sent, {"ETag": digest(LAYER)})) as host:
        order = ("--file", f"model=http://{host}/model", "--sha256", f"model={sha256(LAYER)}")
        done = run("fetch", "http", *order, "--dest", str(dest), "--identity", ID, KAIGEN_ATTEMPTS="2")
    assert done.code == code, done.err
    assert (marker(dest) is not None) == (code == 0)


def test_a_bucket_has_the_revision_that_was_asked_for(s3: S3, run: Runner, dest: Path) -> None:
    s3.put("in/model", b"weights")
    argv = ("fetch", "s3", "--uri", f"s3://{s3.bucket}/in", "--endpoint", s3.url, "--identity", ID)
    done = run(*argv, "--dest", str(dest))
    revision = next(line for line in done.err.splitlines() if line.startswith("revision of")).split()[-1]
    s3.put("in/model", b"WEIGHTS")
    done = run(*argv, "--dest", str(dest.with_name("two")), "--locked", revision)
    assert (done.code, "not those of the revision" in done.err) == (10, True), done.err
    assert marker(dest.with_name("two")) is None


def test_weights_of_a_bucket_in_another_format_are_skipped_and_belong_to_its_revision(
    s3: S3, run: Runner, dest: Path
) -> None:
    for path in ("model.safetensors", "pytorch_model.bin"):
        s3.put(f"in/{path}", b"weights")
    argv = ("fetch", "s3", "--uri", f"s3://{s3.bucket}/in", "--endpoint", s3.url, "--identity", ID)
    done = run(*argv, "--dest", str(dest))
    revision = next(line for line in done.err.splitlines() if line.startswith("revision of")).split()[-1]
    assert files(dest) == {"model.safetensors", "pytorch_model.bin"}
    one = dest.with_name("one")
    done = run(*argv, "--dest", str(one), "--skip-duplicates", "--locked", revision)
    assert done.code == 0, done.err
    assert files(one) == {"model.safetensors"}


def listing(*keys: str, kind: str = "ListBucketResult") -> bytes:
    """Return an answer of S3 with objects of one byte."""
    objects = "".join(f'<Contents><Key>{escape(key)}</Key><Size>1</Size><ETag>"x"</ETag></Contents>' for key in keys)
    return f"<{kind}><Name>models</Name><IsTruncated>false</IsTruncated>{objects}</{kind}>".encode()


@pytest.mark.parametrize(
    "key",
    ["out/model", "in", "In/model", "in-other/model", "/in/model", "x/in/model", "", "in\\model", "../in/model", "i"],
)
@pytest.mark.parametrize("others", [[], ["in/model"]])
def test_a_key_outside_the_prefix_is_refused(run: Runner, dest: Path, key: str, others: list[str]) -> None:
    with serving(lambda request: request.reply(200, listing(*others, key))) as host:
        argv = ("fetch", "s3", "--uri", "s3://models/in", "--endpoint", f"http://{host}", "--region", "us-east-1")
        keys = {"SOURCE_AWS_ACCESS_KEY_ID": "key", "SOURCE_AWS_SECRET_ACCESS_KEY": "secret"}
        done = run(*argv, "--dest", str(dest), "--identity", ID, **keys)
    assert (done.code, "which is not below s3://models/in" in done.err) == (10, True), done.err
    assert (files(dest), marker(dest)) == (set(), None)


def test_a_bucket_to_store_in_lists_only_keys_below_the_prefix(
    hub: Hub, run: Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "key")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    seen: list[str] = []

    def answer(request: Request) -> None:
        seen.append(request.command)
        is_listing = "list-type" in request.path
        request.reply(200 if is_listing else 404, listing("other/model") if is_listing else b"")

    with serving(answer) as host:
        done = run.fetch(hub, Path("x"), "--dest", "s3://models/in", "--s3-endpoint", f"http://{host}")
    assert (done.code, "which is not below s3://models/in" in done.err) == (10, True), done.err
    assert set(seen) == {"GET"}
