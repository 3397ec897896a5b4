"""A signed model is complete or refused: whatever source it is from, no file of the signature may be missing."""

from __future__ import annotations

import io
import json
import tarfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from hub import Hub
from runs import ID, Done, Runner, files, marker, sha256
from s3 import S3
from servers import Request, serving
from signer import SIGNED_BY, signature

MODEL = {
    "config.json": b'{"a": 1}',
    "model.safetensors": b"w" * 2000,
    "pytorch_model.bin": b"b" * 2000,
    "original/model.pth": b"p",
    "tokenizer_config.json": b'{"chat_template": "safe"}',
    "special_tokens_map.json": b"{}",
    "sub/vocab.json": b"{}",
}
"""A signed model that has its weights in three formats."""
DEFAULT = MODEL.keys() - {"pytorch_model.bin", "original/model.pth"}
"""The files that are fetched from the Hub without options."""
SIG = {"model.sig": signature(MODEL.items())}


def without(*paths: str) -> dict[str, bytes]:
    """The model without some files."""
    return {path: data for path, data in (MODEL | SIG).items() if path not in paths}


def only(*paths: str) -> dict[str, bytes]:
    """Some files of the model, and the signature."""
    return {path: data for path, data in (MODEL | SIG).items() if path in (*paths, "model.sig")}


def serve(hub: Hub, content: Mapping[str, bytes]) -> None:
    """Let the Hub have other files."""
    hub.files.clear()
    for path, data in content.items():
        hub.add(path, data)


@pytest.mark.parametrize(
    ("content", "options", "missing"),
    [
        (without("model.safetensors"), (), "'model.safetensors'"),
        (without("model.safetensors", "pytorch_model.bin"), (), "'model.safetensors'"),
        (
            without("tokenizer_config.json", "special_tokens_map.json"),
            (),
            "'special_tokens_map.json', 'tokenizer_config.json'",
        ),
        (without("sub/vocab.json"), (), "'sub/vocab.json'"),
        (only("config.json"), (), "'model.safetensors', 'special_tokens_map.json', 'sub/vocab.json', 'tok"),
        (only(), (), "'config.json', 'model.safetensors', 'special_tokens_map.json', 'sub/vocab.json', 'tok"),
        (only("pytorch_model.bin"), (), "'config.json', 'model.safetensors'"),
        (without("pytorch_model.bin"), ("--duplicates",), "'pytorch_model.bin'"),
        (without("original/model.pth"), ("--duplicates",), "'original/model.pth'"),
        (without("original/model.pth"), ("--exclude=*.safetensors",), "'original/model.pth'"),
        (without("sub/vocab.json"), ("--include=sub/", "--include=model.sig"), "'sub/vocab.json'"),
        (without("config.json"), ("--include=*.json", "--include=model.sig"), "'config.json'"),
        (without("config.json"), ("--exclude=sub/*",), "'config.json'"),
    ],
)
def test_a_hub_that_leaves_out_signed_files_is_refused(
    hub: Hub, run: Runner, dest: Path, content: Mapping[str, bytes], options: tuple[str, ...], missing: str
) -> None:
    serve(hub, content)
    done = run.fetch(hub, dest, SIGNED_BY, *options)
    assert done.code == 10, done.err
    error = done.err.splitlines()[-1]
    assert error.startswith("error: ")
    assert missing in error
    assert marker(dest) is None
    serve(hub, MODEL | SIG)
    assert run.fetch(hub, dest, SIGNED_BY, *options).code == 0


def test_of_many_missing_files_the_first_are_named(hub: Hub, run: Runner, dest: Path) -> None:
    many = {f"part-{number:03}": b"x" for number in range(100)}
    serve(hub, {"part-000": b"x", "model.sig": signature(many.items())})
    done = run.fetch(hub, dest, SIGNED_BY)
    assert done.code == 10
    line = "error: the source lacks 99 files of the signature model.sig: 'part-001', "
    assert done.err.splitlines()[-1].startswith(line)
    assert len(done.err.splitlines()[-1]) < 200


@pytest.mark.parametrize(
    ("options", "fetched"),
    [
        ((), DEFAULT),
        (("--duplicates",), MODEL.keys()),
        (("--include=*.bin", "--include=*.json", "--include=model.sig"), MODEL.keys() - {"model.safetensors"}),
        (("--exclude=*.safetensors",), MODEL.keys() - {"model.safetensors"}),
        (("--include=config.json", "--include=model.sig"), {"config.json"}),
        (("--exclude=sub/", "--exclude=tokenizer*"), DEFAULT - {"sub/vocab.json", "tokenizer_config.json"}),
    ],
)
def test_what_the_user_leaves_out_may_be_missing(
    hub: Hub, run: Runner, dest: Path, options: tuple[str, ...], fetched: set[str]
) -> None:
    fetched = set(fetched) - {"original/model.pth"} if "--include=*.bin" in options else set(fetched)
    # The source does not have the other files, either.
    for content in (MODEL | SIG, only(*fetched)):
        serve(hub, content)
        done = run.fetch(hub, dest, SIGNED_BY, *options)
        assert done.code == 0, done.err
        assert files(dest) == {*fetched, "model.sig"}


@pytest.mark.parametrize(
    ("signed", "options", "message"),
    [
        ([], (), "config.json is not in the signature"),
        ([], ("--include=model.sig",), "lists none of the files that are fetched"),
        (MODEL.items(), ("--include=model.sig",), "lists none of the files that are fetched"),
        (MODEL.items(), ("--include=model.sig", "--include=.git*"), "lists none of the files that are fetched"),
        ([("model.sig", b"x")], ("--include=model.sig",), "lists none of the files that are fetched"),
        ([*MODEL.items(), ("config.json", b"evil")], (), "it lists a file twice"),
        ([("config.json", b"evil"), *MODEL.items()], (), "it lists a file twice"),
        ([*MODEL.items(), (5, b"")], (), "does not sign a list of files"),
        ([*MODEL.items(), (None, b"")], (), "does not sign a list of files"),
        ([*MODEL.items(), (["a"], b"")], (), "does not sign a list of files"),
        ([*MODEL.items(), ("./config.json", b"")], (), "lacks 1 file of the signature model.sig: './config.json'"),
        ([*MODEL.items(), ("../x\x1b[2J", b"")], (), "lacks 1 file"),
        ([*MODEL.items(), (".gitattributes", b"other")], (), ".gitattributes is not the file that was signed"),
        ([*MODEL.items(), (".gitignore", b"")], (), "lacks 1 file of the signature model.sig: '.gitignore'"),
    ],
)
def test_a_signature_that_does_not_fit_the_files_is_refused(
    hub: Hub, run: Runner, dest: Path, signed: list[tuple[object, bytes]], options: tuple[str, ...], message: str
) -> None:
    serve(hub, MODEL | {".gitattributes": b"x", "model.sig": signature(signed)})
    done = run.fetch(hub, dest, SIGNED_BY, *options)
    assert (done.code, message in done.err) == (10, True), done.err
    assert "Traceback" not in done.err
    assert marker(dest) is None


def test_an_incomplete_folder_of_a_run_without_the_check_is_not_accepted(hub: Hub, run: Runner, dest: Path) -> None:
    serve(hub, without("sub/vocab.json"))
    assert run.fetch(hub, dest).code == 0
    done = run.fetch(hub, dest, SIGNED_BY)
    assert (done.code, "lacks 1 file" in done.err) == (10, True), done.err
    assert marker(dest) is None
    serve(hub, MODEL | SIG)
    assert run.fetch(hub, dest, SIGNED_BY).code == 0
    hub.seen.clear()
    done = run.fetch(hub, dest, SIGNED_BY)
    assert ("already complete" in done.err, hub.seen) == (True, [])


Fetch = Callable[[Mapping[str, bytes], Path], Done]
"""Fetches a source with these files."""


@contextmanager
def registry(content: Mapping[str, bytes], *, is_image: bool) -> Iterator[str]:
    """A registry with an artifact, or with an image that has the files in `/models`."""
    blobs = dict(content)
    if is_image:
        layer = io.BytesIO()
        with tarfile.open(fileobj=layer, mode="w") as archive:
            for path, data in content.items():
                entry = tarfile.TarInfo(f"models/{path}")
                entry.size = len(data)
                archive.addfile(entry, io.BytesIO(data))
        blobs = {"layer": layer.getvalue()}
    kind = "application/vnd.oci.image.config.v1+json" if is_image else "application/vnd.oci.empty.v1+json"
    layers = [
        {
            "mediaType": "application/vnd.oci.image.layer.v1.tar" if is_image else "application/octet-stream",
            "digest": f"sha256:{sha256(data)}",
            "size": len(data),
            "annotations": {"org.opencontainers.image.title": path},
        }
        for path, data in blobs.items()
    ]
    manifest = json.dumps({"config": {"mediaType": kind}, "layers": layers}).encode()
    by_digest = {sha256(data): data for data in blobs.values()}

    def answer(request: Request) -> None:
        found = by_digest.get(request.path.rpartition("sha256:")[2])
        request.reply(200, manifest if "/manifests/" in request.path else found or b"")

    with serving(answer) as host:
        yield host


@pytest.fixture(params=["hub", "hub to bucket", "s3", "http", "artifact", "image", "put", "put in place"])
def fetch(request: pytest.FixtureRequest, hub: Hub, s3: S3, run: Runner, tmp_path: Path) -> Iterator[Fetch]:
    """Each source that can have a signature."""
    with ExitStack() as servers:

        def call(content: Mapping[str, bytes], dest: Path) -> Done:
            to = ("--dest", str(dest), "--identity", ID, SIGNED_BY)
            if request.param == "hub":
                serve(hub, content)
                return run.fetch(hub, dest, SIGNED_BY)
            if request.param == "hub to bucket":
                serve(hub, content)
                return run.fetch(hub, dest, SIGNED_BY, *s3.dest(f"out/{dest.name}"))
            if request.param == "s3":
                for path in MODEL | SIG:
                    s3.client.delete_object(Bucket=s3.bucket, Key=f"in/{path}")
                for path, data in content.items():
                    s3.put(f"in/{path}", data)
                return run("fetch", "s3", "--uri", f"s3://{s3.bucket}/in", "--endpoint", s3.url, *to)
            if request.param == "http":
                serve(hub, content)
                urls = (f"--file={path}={hub.url}/owner/name/resolve/main/{path}" for path in MODEL | SIG)
                return run("fetch", "http", *urls, *to)
            if request.param.startswith("put"):
                folder = dest if request.param == "put in place" else dest.with_name(f"{dest.name}-from")
                for path, data in content.items():
                    (folder / path).parent.mkdir(parents=True, exist_ok=True)
                    (folder / path).write_bytes(data)
                return run("put", str(folder), *to)
            host = servers.enter_context(registry(content, is_image=request.param == "image"))
            ref = ("--ref", f"{host}/model:1", "--plain-http")
            return run("fetch", "oci", *ref, *(("--path", "models") if request.param == "image" else ()), *to)

        yield call


@pytest.mark.parametrize("left_out", ["model.safetensors", "tokenizer_config.json", "config.json"])
def test_every_source_is_complete_or_refused(fetch: Fetch, s3: S3, tmp_path: Path, left_out: str) -> None:
    done = fetch(without(left_out), tmp_path / "one")
    assert (done.code, left_out in done.err) == (10, True), done.err
    assert marker(tmp_path / "one") is None
    assert not any(key.endswith(".kaigen/model.json") for key in s3.everything())
    done = fetch(MODEL | SIG, tmp_path / "two")
    assert (done.code, "signature model.sig verified" in done.err) == (0, True), done.err
