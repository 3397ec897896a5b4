"""Registries that answer with anything: tokens, challenges and manifests."""

from __future__ import annotations

import io
import json
import tarfile
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from runs import ID, Done, Runner, files, marker, sha256
from servers import Request, serving


def fetch(run: Runner, host: str, dest: Path, *more: str, **env: str) -> Done:
    """Fetch an artifact."""
    argv = ("fetch", "oci", "--ref", f"{host}/model:1", "--plain-http", "--dest", str(dest), "--identity", ID)
    return run(*argv, "--timeout", "2s", *more, **{"KAIGEN_ATTEMPTS": "2"} | env)


def test_a_long_challenge_is_read_in_linear_time(run: Runner, dest: Path) -> None:
    challenge = {"WWW-Authenticate": "Bearer " + "a" * 65_000}
    with serving(lambda request: request.reply(401, b"", challenge)) as host:
        begin = time.process_time()
        done = fetch(run, host, dest)
    assert time.process_time() - begin < 5
    assert done.code in (10, 20), done.err


def test_the_address_of_a_login_may_have_a_query(run: Runner, dest: Path) -> None:
    seen: list[str] = []

    def answer(request: Request) -> None:
        if request.path.startswith("/token"):
            seen.append(request.path)
            return request.reply(200, b'{"token": "a-token"}')
        realm = f'Bearer Realm="http://{request.host}/token?account=a#x",service="s s"'
        if request.headers["Authorization"] is None:
            return request.reply(401, b"", {"WWW-Authenticate": realm})
        return request.reply(404)

    with serving(answer) as host:
        assert fetch(run, host, dest).code == 10
    assert seen == ["/token?account=a&service=s+s&scope=repository%3Amodel%3Apull"]


MANIFEST: dict[str, object] = {
    "config": {"mediaType": "application/vnd.oci.empty.v1+json"},
    "layers": [
        {
            "mediaType": "x",
            "digest": f"sha256:{'ab' * 32}",
            "size": 1,
            "annotations": {"org.opencontainers.image.title": "model"},
        }
    ],
}
TEXT = json.dumps(MANIFEST)
ODD: tuple[object, ...] = ([], {}, 5)


@pytest.mark.parametrize(
    "manifest",
    [
        *(json.dumps(MANIFEST | {"mediaType": odd}) for odd in ODD),
        *(json.dumps(MANIFEST | {"config": {"mediaType": odd}}) for odd in ODD),
        *(TEXT.replace('"size": 1', f'"size": {size}') for size in ("1e999", "NaN", "-1", "true", "9" * 400)),
        "[" * 100_000,
        "[]",
    ],
    ids=lambda text: text[:40],
)
def test_an_odd_manifest_is_an_error_in_one_line(run: Runner, dest: Path, manifest: str) -> None:
    def answer(request: Request) -> None:
        is_manifest = "/manifests/" in request.path
        request.reply(200 if is_manifest else 404, manifest.encode() if is_manifest else b"")

    with serving(answer) as host:
        done = fetch(run, host, dest)
    assert done.code in (10, 11, 20), done.err
    assert "Traceback" not in done.err


@pytest.mark.parametrize("realm", ["http://[::1", "http://a b/", "ftp://HOST/", "http://HOST:99999999/"])
def test_a_login_that_leads_nowhere_is_a_failure_of_the_server(run: Runner, dest: Path, realm: str) -> None:
    challenge = {"WWW-Authenticate": f'Bearer realm="{realm}"'}
    with serving(lambda request: request.reply(401, b"", challenge)) as host:
        done = fetch(run, host, dest)
    assert (done.code, "which is not an http or https URL" in done.err) == (20, True), done.err


@pytest.mark.parametrize(
    ("token", "code"),
    [
        *((f'{{"token": "a-token", "expires_in": {lasts}}}', 0) for lasts in ("1" + "0" * 400, "1e999", "NaN")),
        *((f'{{"token": "a-token", "expires_in": {lasts}}}', 0) for lasts in ("-5", "null", '"x"', "0.1")),
        ("[" * 100_000, 20),
        ("5", 20),
        ('{"token": "a\\nb"}', 20),
    ],
    ids=lambda value: str(value)[:50],
)
def test_an_odd_token_is_an_error_in_one_line(run: Runner, dest: Path, token: str, code: int) -> None:
    data = b"weights"

    def answer(request: Request) -> None:
        if request.path.startswith("/token"):
            return request.reply(200, token.encode())
        if request.headers["Authorization"] is None:
            realm = f'Bearer realm="http://{request.host}/token"'
            return request.reply(401, b"", {"WWW-Authenticate": realm})
        manifest = TEXT.replace("ab" * 32, sha256(data)).replace('"size": 1', f'"size": {len(data)}')
        return request.reply(200, manifest.encode() if "/manifests/" in request.path else data)

    with serving(answer) as host:
        done = fetch(run, host, dest)
    assert done.code == code, done.err
    assert "Traceback" not in done.err


def layer(path: str, data: bytes) -> bytes:
    """An archive with one file."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        member = tarfile.TarInfo(path)
        member.size = len(data)
        archive.addfile(member, io.BytesIO(data))
    return out.getvalue()


def image(*blobs: bytes) -> Callable[[Request], None]:
    """A registry with an image of these layers."""
    layers = [
        {"mediaType": "application/vnd.oci.image.layer.v1.tar", "digest": f"sha256:{sha256(blob)}", "size": len(blob)}
        for blob in blobs
    ]
    config = {"mediaType": "application/vnd.oci.image.config.v1+json"}
    manifest = json.dumps({"config": config, "layers": layers}).encode()
    by_digest = {sha256(blob): blob for blob in blobs}

    def answer(request: Request) -> None:
        digest = request.path.rpartition("sha256:")[2]
        request.reply(200, manifest if "/manifests/" in request.path else by_digest[digest])

    return answer


def test_the_last_of_equal_layers_has_the_final_content(run: Runner, dest: Path) -> None:
    one, two, deletion = layer("a", b"1"), layer("a", b"2"), layer(".wh.b", b"")
    with serving(image(one, deletion, two, layer("b", b"3"), one, deletion)) as host:
        done = fetch(run, host, dest)
    assert done.code == 0, done.err
    assert files(dest) == {"a"}
    assert (dest / "a").read_bytes() == b"1"


def test_a_layer_that_comes_often_is_fetched_and_unpacked_once(run: Runner, dest: Path) -> None:
    with serving(image(*[layer("a", b"1")] * 1000)) as host:
        done = fetch(run, host, dest)
    assert done.code == 0, done.err
    assert "unpacked 1 file of 1 layer" in done.err


def test_files_of_one_content_are_fetched_once(run: Runner, dest: Path) -> None:
    data, asked = b"weights", []
    layers = [
        {
            "mediaType": "x",
            "digest": f"sha256:{sha256(data)}",
            "size": len(data),
            "annotations": {"org.opencontainers.image.title": f"folder/{number}"},
        }
        for number in range(100)
    ]

    def answer(request: Request) -> None:
        asked.append(request.path)
        manifest = json.dumps(MANIFEST | {"layers": layers}).encode()
        request.reply(200, manifest if "/manifests/" in request.path else data)

    with serving(answer) as host:
        done = fetch(run, host, dest)
    assert done.code == 0, done.err
    assert len(asked) == 2
    assert {(dest / path).read_bytes() for path in files(dest)} == {data}
    found = marker(dest)
    assert found is not None
    assert (len(found["files"]), found["bytes"], found["fetched"]) == (100, 700, 7)
    assert '"files": 100, "filesTotal": 100' in done.err
    assert run("verify", "--dest", str(dest), "--full").code == 0
    assert sorted(path.name for path in (dest / ".kaigen").iterdir() if path.is_file()) == ["lock", "model.json"]


@pytest.mark.parametrize(
    ("more", "wanted"),
    [
        ([], {"model.safetensors", "pytorch_model.bin"}),
        (["--skip-duplicates"], {"model.safetensors"}),
        (["--skip-duplicates", "--include", "*model*"], {"model.safetensors", "pytorch_model.bin"}),
    ],
)
def test_weights_of_an_artifact_in_another_format_are_skipped(
    run: Runner, dest: Path, more: list[str], wanted: set[str]
) -> None:
    blobs = {"model.safetensors": b"1", "pytorch_model.bin": b"2"}
    title = "org.opencontainers.image.title"
    layers = [
        {"mediaType": "x", "digest": f"sha256:{sha256(data)}", "size": 1, "annotations": {title: name}}
        for name, data in blobs.items()
    ]
    manifest = json.dumps(MANIFEST | {"layers": layers}).encode()
    answers = {f"sha256:{sha256(data)}": data for data in blobs.values()}
    with serving(lambda request: request.reply(200, answers.get(request.path.rpartition("/")[2], manifest))) as host:
        done = fetch(run, host, dest, *more)
    assert done.code == 0, done.err
    assert files(dest) == wanted
