"""Further Models of a Topology, repositories that flags of vLLM name, and weights in one file."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from kaigen.compile.context import Context
from kaigen.config.lock_file import Lock, LockedFile, LockedModel
from tests.unit.compile.specs import Object, context, model, pod, problem_paths, topology
from tests.unit.compile.topologies import COMMIT, HUB, args

SHARED = {"volume": {"size": "100Gi", "accessModes": ["ReadWriteMany"]}}
GGUF_IMAGE = {"image": "acme/vllm-gguf:v0.10.0"}


def source(**hub: Any) -> Object:
    return {"huggingFace": {"repo": "org/model", "revision": COMMIT, **hub}}


CONTEXT = context(
    models={
        "base": model(store=SHARED),
        "draft": model(store=SHARED),
        "quantized": model(store=SHARED, source=source(include=["*Q4*.gguf", "*.json"])),
        "by-url": model(
            store=SHARED, source={"http": {"files": [{"url": "https://example.com/a/b.gguf", "sha256": "0" * 64}]}}
        ),
        "settings": model(store=SHARED, source=source(include=["*.json"])),
        "twice": model(store=SHARED, source=source(duplicates=True)),
        "chosen": model(store=SHARED, source=source(include=["consolidated*.safetensors", "*.json"])),
        "not-chosen": model(store=SHARED, source=source(include=["model*.safetensors", "*.json"])),
    }
)


def draft(value: Any) -> Object:
    return {"engineArgs": {"speculative-config": value}}


def test_a_second_model_is_mounted_at_its_revision_and_waited_for() -> None:
    found = pod(topology(model="base", models=["draft"], **draft({"model": "/models/draft"})), CONTEXT)
    claim = {"claimName": "draft-weights", "readOnly": True}
    assert {"name": "model-draft", "persistentVolumeClaim": claim} in found["volumes"]
    (mount,) = [each for each in found["containers"][0]["volumeMounts"] if each["name"] == "model-draft"]
    assert (mount["mountPath"], mount["readOnly"]) == ("/models/draft", True)
    gates = {each["name"]: each["args"] for each in found["initContainers"]}
    assert list(gates) == ["wait-for-model", "wait-for-model-draft"]
    assert f"--dest=/models/draft/{mount['subPath']}" in gates["wait-for-model-draft"]


def test_a_second_model_may_have_a_folder_of_its_own() -> None:
    found = pod(topology(model="base", models=[{"name": "draft", "mountPath": "/small"}]), CONTEXT)
    assert "/small" in [each["mountPath"] for each in found["containers"][0]["volumeMounts"]]


@pytest.mark.parametrize(
    ("spec", "code", "path"),
    [
        ({"models": ["draft", "draft"]}, "KG0314", "spec.models.1"),
        ({"models": ["nothing"]}, "KG0301", "spec.models.0"),
        ({"models": [{"name": "draft", "mountPath": "/model"}]}, "KG0314", "spec.model"),
        ({"volumes": {"d": {"claimName": "draft-weights", "mountPath": "/d"}}}, "KG0378", "spec.volumes.d.claimName"),
        (draft({"model": "org/draft"}), "KG0377", "spec.engineArgs.speculative-config.model"),
        (draft('{"model": "org/draft"}'), "KG0377", "spec.engineArgs.speculative-config"),
        ({"engineArgs": {"speculative-config.model": "org/d"}}, "KG0377", "spec.engineArgs.speculative-config.model"),
        ({"engineArgs": ["--tokenizer=org/other"]}, "KG0377", "spec.engineArgs.0"),
        ({"engineArgs": {"hf_config_path": "org/other"}}, "KG0377", "spec.engineArgs.hf_config_path"),
    ],
)
def test_a_second_model_that_pods_cannot_read_is_reported(spec: Object, code: str, path: str) -> None:
    assert problem_paths(topology(model="base", **spec), CONTEXT) == [(code, path)]


@pytest.mark.parametrize(
    "spec",
    [
        {"volumes": {"d": {"claimName": "notes-weights", "mountPath": "/d"}}},
        {"env": {"HF_HUB_OFFLINE": "0"}, **draft({"model": "org/draft", "revision": COMMIT})},
        draft({"method": "ngram", "num_speculative_tokens": 3}),
        draft({"method": "mtp"}),
        {"engineArgs": {"tokenizer": "/models/draft"}},
    ],
)
def test_what_pods_can_read_is_not_reported(spec: Object) -> None:
    assert problem_paths(topology(model="base", **spec), CONTEXT) == []


def revisions(engine_args: Any) -> list[str]:
    """Return the revision flags of an engine that pulls its weights."""
    return [each for each in args(topology(model=HUB, engineArgs=engine_args)) if "revision" in each]


def test_the_commit_of_the_weights_is_that_of_their_repository_only() -> None:
    weights, code = f"--revision={COMMIT}", f"--code-revision={COMMIT}"
    assert revisions({}) == revisions({"tokenizer": "org/base"}) == [weights, f"--tokenizer-revision={COMMIT}", code]
    assert revisions({"tokenizer": "org/other"}) == [weights, code]
    assert revisions(["--tokenizer", "org/other"]) == [weights, code]
    own = "1" * 40
    assert revisions({"tokenizer-revision": own}) == [weights, code, f"--tokenizer-revision={own}"]


@pytest.mark.parametrize(
    ("engine_args", "expected"),
    [
        ({"tokenizer": "org/other"}, [("KG0310", "spec.engineArgs.tokenizer")]),
        ({"tokenizer": "org/other", "tokenizer-revision": "main"}, [("KG0310", "spec.engineArgs.tokenizer")]),
        ({"tokenizer": "org/other", "tokenizer-revision": COMMIT}, []),
        ({"hf-config-path": "org/other"}, [("KG0377", "spec.engineArgs.hf-config-path")]),
        ({"hf-config-path": "org/base"}, []),
        ({"speculative-config": {"model": "org/d"}}, [("KG0310", "spec.engineArgs.speculative-config.model")]),
        ({"speculative-config": {"model": "org/d", "revision": COMMIT}}, []),
    ],
)
def test_another_repository_needs_a_commit_of_its_own(engine_args: Any, expected: list[tuple[str, str]]) -> None:
    assert problem_paths(topology(model=HUB, engineArgs=engine_args)) == expected


def test_the_engine_loads_the_file_that_the_spec_names() -> None:
    spec = topology(model={"name": "quantized", "file": "a-Q4_K_M.gguf"}, **GGUF_IMAGE)
    assert args(spec, CONTEXT)[0] == "/model/a-Q4_K_M.gguf"
    hub = topology(model={"huggingFace": {**HUB["huggingFace"], "gguf": "Q4_K_M"}}, **GGUF_IMAGE)
    assert args(hub)[:1] == ["org/base:Q4_K_M"]
    assert f"--revision={COMMIT}" in args(hub)


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({"model": "by-url"}, [("KG0379", "spec.model")]),
        ({"model": "settings"}, []),
        ({"model": {"name": "quantized", "file": "a-Q8_0.gguf"}, **GGUF_IMAGE}, [("KG0379", "spec.model.file")]),
        ({"model": {"name": "by-url", "file": "b.gguf"}, **GGUF_IMAGE}, []),
        ({"model": {"name": "by-url", "file": "b.gguf"}}, [("KG0379", "spec.model")]),
        (
            {"model": {"huggingFace": {"repo": "org/a-gguf", "revision": COMMIT}}},
            [("KG0379", "spec.model.huggingFace.repo")],
        ),
        ({"model": {**HUB, "file": "a.gguf"}}, [("KG0340", "spec.model.file")]),
    ],
)
def test_gguf_weights_need_their_file_and_an_engine_that_loads_them(spec: Object, expected: list[Any]) -> None:
    assert problem_paths(topology(**spec), CONTEXT) == expected


def mistral(name: str, where: Context = CONTEXT) -> list[tuple[str, str]]:
    return problem_paths(topology(model=name, engineArgs={"load-format": "mistral"}), where)


def test_the_format_of_mistral_needs_files_that_the_downloader_skips() -> None:
    missing = [("KG0380", "spec.engineArgs.load-format")]
    assert mistral("base") == mistral("not-chosen") == missing
    assert mistral("twice") == mistral("chosen") == []


def test_the_lock_shows_whether_the_downloader_skips_them() -> None:
    def locked(*names: str) -> Context:
        files = {name: LockedFile(size=1, sha256="0" * 64) for name in names}
        return replace(CONTEXT, lock=Lock(models={f"a/b@{COMMIT}": LockedModel(commit=COMMIT, files=files)}))

    assert mistral("base", locked("consolidated.safetensors")) == []
    assert mistral("base", locked("consolidated.safetensors", "model.safetensors")) != []
