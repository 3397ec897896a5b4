"""`--signed-by`: only files that the key has signed are marked complete."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from hub import Hub
from runs import Runner, marker

MODEL = json.loads((Path(__file__).parent / "signed.json").read_text())
KEY = f"--signed-by={MODEL['key']}"


def signature_of(change: Callable[[dict[str, Any]], object], curve: ec.EllipticCurve) -> tuple[str, str]:
    """Return a key and the signature of another list of files, in the same format."""
    bundle = json.loads(MODEL["signature"])
    envelope = bundle["dsseEnvelope"]
    statement = json.loads(base64.b64decode(envelope["payload"]))
    change(statement)
    payload = json.dumps(statement).encode()
    key = ec.generate_private_key(curve)
    digest = {256: hashes.SHA256(), 384: hashes.SHA384(), 521: hashes.SHA512()}[key.key_size]
    kind = envelope["payloadType"].encode()
    signed = b"DSSEv1 %d %s %d %s" % (len(kind), kind, len(payload), payload)
    envelope["payload"] = base64.b64encode(payload).decode()
    envelope["signatures"] = [{"sig": base64.b64encode(key.sign(signed, ec.ECDSA(digest))).decode()}]
    form = serialization.PublicFormat.SubjectPublicKeyInfo
    der = key.public_key().public_bytes(serialization.Encoding.DER, form)
    return f"--signed-by={base64.b64encode(der).decode()}", json.dumps(bundle)


@pytest.fixture
def serve(hub: Hub) -> Callable[[Mapping[str, str]], None]:
    """Serves the signed model with other files added or replaced; an empty text removes a file."""

    def call(changes: Mapping[str, str]) -> None:
        hub.files.clear()
        for path, text in {**MODEL["files"], "model.sig": MODEL["signature"], **changes}.items():
            if text:
                hub.add(path, text.encode())

    return call


Serve = Callable[[Mapping[str, str]], None]


def test_a_model_signed_by_the_reference_implementation_is_complete(
    hub: Hub, serve: Serve, tmp_path: Path, run: Runner
) -> None:
    serve({})
    done = run.fetch(hub, tmp_path, KEY)
    assert done.code == 0, done.err
    assert "signature model.sig verified" in done.err
    assert marker(tmp_path) is not None


def test_one_of_several_keys_and_some_of_the_files_are_enough(
    hub: Hub, serve: Serve, tmp_path: Path, run: Runner
) -> None:
    serve({})
    other, _ = signature_of(lambda statement: None, ec.SECP256R1())
    assert run.fetch(hub, tmp_path, other, KEY, "--exclude=sub/*").code == 0


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"model.safetensors": "WEIGHTS"}, "model.safetensors is not the file that was signed"),
        ({"evil.py": "import os"}, "evil.py is not in the signature"),
        ({"model.sig": ""}, "the source has no signature model.sig"),
        ({"model.sig": "{}"}, "not a signature in OpenSSF's format"),
        ({"model.sig": "[" * 100_000}, "not a signature in OpenSSF's format"),
        ({"model.sig": MODEL["signature"].replace("in-toto", "other")}, "not a signature of the keys"),
        ({"model.sig": MODEL["signature"].replace("ewog", "ewoJ", 1)}, "not a signature"),
    ],
)
def test_other_files_are_refused_and_not_marked(
    hub: Hub, serve: Serve, tmp_path: Path, run: Runner, changes: Mapping[str, str], message: str
) -> None:
    serve(changes)
    done = run.fetch(hub, tmp_path, KEY)
    assert (done.code, message in done.err) == (10, True), done.err
    assert marker(tmp_path) is None
    serve({})
    assert run.fetch(hub, tmp_path, KEY).code == 0


def test_a_signature_of_another_key_is_refused(hub: Hub, serve: Serve, tmp_path: Path, run: Runner) -> None:
    key, signature = signature_of(lambda statement: None, ec.SECP384R1())
    serve({"model.sig": signature})
    done = run.fetch(hub, tmp_path, KEY)
    assert (done.code, "not a signature of the keys" in done.err) == (10, True), done.err
    assert run.fetch(hub, tmp_path, key).code == 0


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda it: it.update(predicateType="https://example.com"), "does not sign a list of files"),
        (lambda it: it["predicate"].pop("resources"), "does not sign a list of files"),
        (lambda it: it["predicate"]["serialization"].update(method="shards"), "signs parts of files"),
        (lambda it: it["predicate"]["resources"].pop(), "contradicts itself"),
    ],
)
def test_a_signature_of_something_else_is_refused(
    hub: Hub, serve: Serve, tmp_path: Path, run: Runner, change: Callable[[dict[str, Any]], object], message: str
) -> None:
    key, signature = signature_of(change, ec.SECP521R1())
    serve({"model.sig": signature})
    done = run.fetch(hub, tmp_path, key)
    assert (done.code, message in done.err) == (10, True), done.err


UNKNOWN = base64.b64encode(bytes.fromhex("302a300506032b657f032100") + bytes(32)).decode()
"""A key of an algorithm that does not exist."""


@pytest.mark.parametrize("wrong", [["--signed-by=x"], [f"--signed-by={UNKNOWN}"], [KEY, "--signature=../x"]])
def test_a_wrong_key_or_path_is_an_error_before_the_download(
    hub: Hub, serve: Serve, tmp_path: Path, run: Runner, wrong: list[str]
) -> None:
    serve({})
    done = run.fetch(hub, tmp_path, *wrong)
    assert (done.code, "Traceback" not in done.err) == (13, True), done.err
    assert hub.seen == []
