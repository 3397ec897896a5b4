"""`kaigen lock` for signed sources: a list of files that is not that of the signature gets no entry."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Mapping

import pytest

from runtimes.downloader.tests.hub import Hub
from runtimes.downloader.tests.s3 import S3
from runtimes.downloader.tests.signer import PEM, signature
from tests.unit.lock.conftest import Repository, model_files
from tests.unit.lock.registry import Registry
from tests.unit.lock.test_sources import bucket, in_bucket, in_registry, registry, server

__all__ = ["bucket", "registry", "server"]

MODEL = {**model_files(), "pytorch_model.bin": b"b" * 100, "tokenizer_config.json": b"{}", "sub/vocab.json": b"{}"}
"""A signed model that has its weights in two formats."""
SIG = {"model.sig": signature(MODEL.items())}
OTHER_KEY = """-----BEGIN PUBLIC KEY-----
MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEaxfR8uEsQkf4vOblY6RA8ncDfYEt6zOg9KE5RdiYwpZP40Li/hp/m47n60p8D54WK84zV2sxXs7L
tkBoN79R9Q==
-----END PUBLIC KEY-----
"""
"""The public key of the generator's point times two, of which nobody here has the private key."""


def key_lines(pem: str) -> str:
    lines = "".join(f"          {line}\n" for line in pem.splitlines())
    return f"    signature:\n      publicKeys:\n        - |\n{lines}"


def model(hub: Hub, more: str = "", name: str = "tuned", keys: str = PEM) -> str:
    return (
        f"apiVersion: kaigen.dev/v1alpha1\nkind: Model\nmetadata: {{name: {name}}}\nspec:\n"
        f"  source:\n    huggingFace:\n      repo: owner/name\n      endpoint: {hub.url}\n{more}"
        f"{key_lines(keys) if keys else ''}  store: {{volume: {{size: 5Gi}}}}\n"
    )


def without(*paths: str) -> dict[str, bytes]:
    return {path: data for path, data in (MODEL | SIG).items() if path not in paths}


def only(*paths: str) -> dict[str, bytes]:
    return {path: data for path, data in (MODEL | SIG).items() if path in (*paths, "model.sig")}


@pytest.mark.parametrize(
    ("files", "more", "message"),
    [
        (without("model.safetensors"), "", "lacks 1 file of the signature model.sig: 'model.safetensors'"),
        (
            without("tokenizer_config.json", "sub/vocab.json"),
            "",
            "lacks 2 files of the signature model.sig: 'sub/vocab.json', 'tokenizer_config.json'",
        ),
        (only("config.json"), "", "lacks 4 files of the signature model.sig"),
        (only(), "", "lacks 5 files of the signature model.sig"),
        (without("pytorch_model.bin"), "      duplicates: true\n", "lacks 1 file"),
        (without("sub/vocab.json"), "      exclude: ['*.md']\n", "lacks 1 file"),
        (without("sub/vocab.json"), "      include: [sub/, '*.sig']\n", "lacks 1 file"),
        (without("model.sig"), "", "the source has no signature model.sig"),
        (without(), "      include: ['*.json']\n", "the source has no signature model.sig"),
        (without(), "      include: [model.sig]\n", "lists none of the files that are downloaded"),
        (without() | {"evil.py": b"x"}, "", "'evil.py' is not in the signature model.sig"),
        (without() | {"config.json": b"{}"}, "", "'config.json' is not the file that was signed"),
        (without() | {"model.sig": b"{}"}, "", "model.sig: the signature is not a Sigstore bundle"),
        (without() | {"model.sig": signature([*MODEL.items(), (5, b"")])}, "", "does not sign a list of files"),
        (without() | {"model.sig": signature([*MODEL.items(), ("README.md", b"")])}, "", "lists a file twice"),
        (without() | {"model.sig": signature([])}, "", "is not in the signature model.sig"),
    ],
)
def test_files_that_are_not_those_of_the_signature_get_no_entry(
    repository: Repository, hub: Hub, files: Mapping[str, bytes], more: str, message: str
) -> None:
    hub.commit(dict(files))
    repository.write(model(hub, more))
    code, printed = repository.run("lock")
    assert (code, message in printed) == (2, True), printed
    assert "specs/a.yaml:7:13" in printed
    assert not (repository.root / "kaigen.lock").exists()


@pytest.mark.parametrize(
    ("files", "more"),
    [
        (without(), ""),
        (without("pytorch_model.bin"), ""),
        (without("sub/vocab.json"), "      exclude: [sub/]\n"),
        (only("config.json"), "      include: [config.json, model.sig]\n"),
        (without() | {".gitattributes": b"x"}, ""),
    ],
)
def test_what_the_user_leaves_out_may_be_missing(
    repository: Repository, hub: Hub, files: Mapping[str, bytes], more: str
) -> None:
    hub.commit(dict(files))
    repository.write(model(hub, more))
    code, printed = repository.run("lock")
    assert code == 0, printed
    (entry,) = repository.lock["models"].values()
    assert entry["files"].keys() == files.keys()


def test_a_signature_of_another_key_gets_no_entry(repository: Repository, hub: Hub) -> None:
    hub.commit(without())
    repository.write(model(hub, keys=OTHER_KEY))
    code, printed = repository.run("lock")
    assert (code, "model.sig: none of the keys made the signature" in printed) == (2, True), printed
    repository.write(model(hub, keys="-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----"))
    code, printed = repository.run("lock")
    assert (code, "`publicKeys` is not a public key in PEM" in printed) == (2, True), printed


def test_each_spec_of_one_repository_has_its_own_selection(repository: Repository, hub: Hub) -> None:
    hub.commit(without("sub/vocab.json"))
    repository.write(model(hub, keys=""))
    repository.write(model(hub, "      exclude: [sub/]\n", "second"), "specs/b.yaml")
    assert repository.run("lock")[0] == 0
    repository.write(model(hub, name="third"), "specs/c.yaml")
    assert repository.run("lock")[0] == 0  # The entry is there.
    code, printed = repository.run("lock", "--upgrade")
    assert (code, "lacks 1 file" in printed) == (2, True), printed


def test_without_cryptography_the_message_names_the_extra(repository: Repository, hub: Hub) -> None:
    hub.commit(without())
    repository.write(model(hub))
    program = "import sys; sys.modules['cryptography'] = None; from kaigen.cli.main import run; sys.exit(run(['lock']))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.returncode, "kaigen[sign]" in done.stderr) == (3, True), done.stderr


Serve = Callable[[Mapping[str, bytes]], str]
"""Serves files; returns a spec that names them."""


@pytest.fixture(params=["bucket", "artifact"])
def serve(request: pytest.FixtureRequest, bucket: S3, registry: Registry) -> Serve:
    def call(files: Mapping[str, bytes]) -> str:
        if request.param == "artifact":
            registry.artifact("1", files)
            return in_registry(registry, more=key_lines(PEM), size="5Gi")
        for path in (*MODEL, "model.sig", "evil.py"):
            bucket.client.delete_object(Bucket=bucket.bucket, Key=f"llm/qwen/{path}")
        for path, data in files.items():
            bucket.upload(f"llm/qwen/{path}", data, ChecksumAlgorithm="SHA256")
        return in_bucket(bucket, key_lines(PEM), "5Gi")

    return call


@pytest.mark.parametrize(
    ("files", "message"),
    [
        (without("model.safetensors"), "lacks 1 file of the signature model.sig: 'model.safetensors'"),
        # `pytorch_model.bin` is not fetched next to safetensors.
        (only("config.json"), "lacks 4 files of the signature model.sig"),
        (without("model.sig"), "the source has no signature model.sig"),
        (without() | {"README.md": b"evil"}, "'README.md' is not the file that was signed"),
        (without() | {"evil.py": b"x"}, "'evil.py' is not in the signature"),
    ],
)
def test_every_source_is_complete_or_gets_no_entry(
    repository: Repository, serve: Serve, files: Mapping[str, bytes], message: str
) -> None:
    repository.write(serve(files))
    code, printed = repository.run("lock")
    assert (code, message in printed) == (2, True), printed
    assert not (repository.root / "kaigen.lock").exists()
    repository.write(serve(without()))
    code, printed = repository.run("lock")
    assert code == 0, printed


def test_the_files_of_an_image_are_left_to_the_downloader(repository: Repository, registry: Registry) -> None:
    registry.image("car", without("model.safetensors"))
    repository.write(in_registry(registry, ":car", key_lines(PEM), "5Gi"))
    code, printed = repository.run("lock")
    assert code == 0, printed
