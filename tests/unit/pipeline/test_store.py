"""The cache of a repository: what it stores comes back as it was, and nothing else does."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from kaigen.config.load import load_config
from kaigen.config.settings import Config
from kaigen.diagnostics.diagnostic import Diagnostic, Mark, Severity
from kaigen.gitops.facts import AppFacts
from kaigen.output.contents import digest
from kaigen.pipeline.gpu_facts import GpuFacts, GpuObject
from kaigen.pipeline.queue_facts import QueueFacts
from kaigen.pipeline.rollout_facts import RolloutFacts
from kaigen.pipeline.run import Run
from kaigen.pipeline.store import Store, Stored, SyncRecord
from kaigen.pipeline.summary import AppSummary, Missing, ObjectKey, SourceSummary
from kaigen.secrets.facts import Facts, Maker, Use

SPEC = """\
apiVersion: kaigen.dev/v1alpha1
kind: Job
metadata: {name: train}
spec: {image: "registry.example/train:1.0.0", command: [train]}
"""


def everything() -> Stored:
    """Return a cache that has every record, with a value in every field."""
    mark = Mark("specs/a.yaml", 3, 5, 7, "  name: ä")
    problem = Diagnostic("KG0101", "wrong", mark, "fix it", Severity.WARNING, "spec.image")
    app = AppSummary(
        namespace="ml",
        name="train",
        kind="Job",
        source="specs/a.yaml",
        position=0,
        objects=(ObjectKey("batch", "Job", "ml", "train"), ObjectKey("", "folder", "", "s3://models/a")),
        needs=(("ml", "model"),),
        facts=AppFacts(
            namespace="ml",
            name="train",
            source="specs/a.yaml",
            version="0.1.0",
            kinds=(("batch/v1", "Job"),),
            namespaces=("", "ml"),
            places=(("ml", "batch", "Job"),),
            needs=(("ml", "model"),),
            deadline_s=60,
            start_s=5,
            queued=True,
            scaled=(("apps/v1", "Deployment", "web"),),
            rules=(("ml", {"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}),),
            binds=(("ml", "Role", "train"),),
            pod_security="baseline",
            encrypted=True,
            homeless=True,
            replaces=True,
        ),
        secrets=Facts(
            reads=(
                (
                    "ml",
                    "hub",
                    "Opaque",
                    Use("ml/train", "Job/train", ("token",), "for the Hub", mark, "spec.env", True, True),
                ),
            ),
            makes=(
                ("ml", "hub", Maker("Secret", "ml/hub", frozenset({"token", "other"}), mark)),
                ("ml", "sops", Maker("SOPS", "ml/hub", None)),
            ),
        ),
        hosts=("a.example",),
        gpus=GpuFacts(
            (GpuObject(("ml", "Job", "train"), 8, 1, "why", 1, 25, 9.5, 1.25),), ((("ml", "Job", "train"), 2),)
        ),
        unpinned=("vllm",),
        queues=QueueFacts((("ml", {"kind": "LocalQueue"}),), (["ml", "Job", "train", "research", "", []],)),
        rollout=RolloutFacts(("chat", "chat-v2"), 10),
    )
    summary = SourceSummary(
        digest="d",
        defines=(("Job", "ml", "train"),),
        documents=(("v1", "Secret", "hub"),),
        lookups=((("v1", "Secret", "hub"), "e"),),
        consumed=(("specs/b.yaml", 1),),
        references=((("Model", "ml", "model"), "f"),),
        diagnostics=(problem,),
        matched=(0, "overrides[1]"),
        apps=(app,),
        form="manifests",
        files={"ml/train/manifests/job.yaml": "0a"},
        missing=(Missing("Secret", "ml", "hub", problem),),
        absent=(("Job", "ml", "try"),),
    )
    return Stored((problem,), {"specs/a.yaml": summary}, SyncRecord("g", {"argocd/root.yaml": "0b"}))


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "cache", Config(root=tmp_path), ())


def file_of(root: Path) -> Path:
    (found,) = (root / "cache" / "render").glob("*.cache")
    return found


def test_every_record_comes_back_as_it_was(store: Store) -> None:
    assert store.read() == Stored()
    store.write(everything())
    found = store.read()
    assert found == everything()
    assert type(found.sources["specs/a.yaml"].apps[0].objects[0]) is ObjectKey


def test_every_field_of_the_example_differs_from_its_default() -> None:
    """A field that is added and not in the example would not be tested."""
    summary = everything().sources["specs/a.yaml"]
    (app,) = summary.apps
    assert app.facts is not None
    assert app.secrets is not None
    assert app.gpus is not None
    records: list[msgspec.Struct] = [everything(), everything().sync, summary, app, app.facts, app.secrets]
    records += [app.gpus, app.gpus.objects[0], app.secrets.reads[0][3], app.secrets.makes[0][2]]
    for record in records:
        for field in msgspec.structs.fields(record):
            value = getattr(record, field.name)
            assert value != field.default, field.name
            assert value or field.name == "position", field.name


DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda data: b"",
    "only the header": lambda data: data.partition(b"\n")[0],
    "the header and its end": lambda data: data.partition(b"\n")[0] + b"\n",
    "half": lambda data: data[: len(data) // 2],
    "without its last byte": lambda data: data[:-1],
    "with one byte more": lambda data: data + b"\0",
    "twice": lambda data: data + data,
    "another byte in the content": lambda data: data[:-9] + bytes([data[-9] ^ 1]) + data[-8:],
    "another byte in the header": lambda data: bytes([data[0] ^ 1]) + data[1:],
    "no header": lambda data: data.partition(b"\n")[2],
    "another name of an app": lambda data: data.replace(b"train", b"other"),
    "JSON": lambda data: json.dumps({"run": "x", "kinds": [], "sources": {}, "sync": ["", {}]}).encode(),
    "an array in an array in an array": lambda data: b"\x91" * 5000,
    "zeros": lambda data: bytes(len(data)),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_cache_has_nothing(tmp_path: Path, store: Store, damage: str) -> None:
    store.write(everything())
    file = file_of(tmp_path)
    file.write_bytes(DAMAGES[damage](file.read_bytes()))
    assert store.read() == Stored()


FOREIGN: dict[str, bytes] = {
    "not an array": msgspec.msgpack.encode({"kind_problems": None}),
    "nothing": b"",
    "a number": msgspec.msgpack.encode(7),
    "sources that are a list": msgspec.msgpack.encode([None, [], ["", {}]]),
    "a summary that is a string": msgspec.msgpack.encode([None, {"a.yaml": "text"}, ["", {}]]),
    "a summary with one field": msgspec.msgpack.encode([None, {"a.yaml": ["d"]}, ["", {}]]),
    "a digest that is a number": msgspec.msgpack.encode([None, {}, [1, {}]]),
    "a severity that does not exist": msgspec.msgpack.encode([[["KG0101", "m", None, "", 9, ""]], {}]),
    "an object that is a key of a map": msgspec.msgpack.encode([None, {1: ["d"]}, ["", {}]]),
    "an array in an array in an array": b"\x93\xc0\x81\xa1a" + b"\x91" * 100_000,
    "a string that is not UTF-8": b"\x93\xc0\x81\xa1\xff\x90",
    "an array that is longer than the file": b"\xdd\xff\xff\xff\xff",
}


@pytest.mark.parametrize("content", FOREIGN)
def test_content_of_other_types_is_nothing_even_with_a_right_header(tmp_path: Path, store: Store, content: str) -> None:
    store.write(everything())
    file, data = file_of(tmp_path), FOREIGN[content]
    run = store._run
    file.write_bytes(digest(f"{run}\0".encode() + data).encode() + b"\n" + data)
    assert store.read() == Stored()


def test_the_cache_of_other_settings_is_not_used(tmp_path: Path, store: Store) -> None:
    store.write(everything())
    other = Store(tmp_path / "cache", Config(root=tmp_path, namespace="other"), ())
    assert other.read() == Stored()
    same = Store(tmp_path / "cache", Config(root=tmp_path), ())
    assert same.read() == everything()


def test_a_folder_in_place_of_the_cache_has_nothing(tmp_path: Path, store: Store) -> None:
    store.write(everything())
    file = file_of(tmp_path)
    file.unlink()
    file.mkdir()
    assert store.read() == Stored()
    store.write(everything())
    assert store.read() == Stored()


def test_what_cannot_be_encoded_is_not_stored(tmp_path: Path, store: Store) -> None:
    name = os.fsdecode(b"specs/\xff.yaml")
    store.write(msgspec.structs.replace(everything(), sources={name: everything().sources["specs/a.yaml"]}))
    assert store.read() == Stored()


def test_a_damaged_cache_costs_a_compilation_and_the_next_run_uses_a_new_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tmp_path / "repository"
    root.mkdir()
    (root / "kaigen.yaml").write_text("apiVersion: kaigen.dev/v1alpha1\nkind: Config\nspecs: [specs]\n")
    (root / "specs").mkdir()
    (root / "specs" / "job.yaml").write_text(SPEC)
    monkeypatch.setenv("KAIGEN_CACHE_DIR", str(tmp_path / "cache"))
    counts = []
    for damaged in (False, False, True, False):
        if damaged:
            file_of(tmp_path).write_bytes(b"damaged")
        run = Run.load((), load_config(root))
        run.tree(root / "rendered").write()
        run.save()
        counts.append(run.compiled)
    assert counts == [1, 0, 1, 0]
