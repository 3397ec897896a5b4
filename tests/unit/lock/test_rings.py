"""Rings of distributed-llama whose model only the lock knows."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from runtimes.downloader.tests.hub import Hub
from runtimes.downloader.tests.s3 import S3
from tests.unit.lock.conftest import CONFIG, Repository, model, model_files
from tests.unit.lock.registry import Registry
from tests.unit.lock.test_render import cut, objects
from tests.unit.lock.test_sources import bucket, in_bucket, in_registry, registry, server

__all__ = ["bucket", "cut", "registry", "server"]

SHAPE = {**CONFIG, "model_type": "llama", "intermediate_size": 14336}
FILES = {**model_files(SHAPE), "tokenizer.json": b"{}"}
CONVERT = "  convert: {distributedLlama: {weights: q40}}\n"
RING = (
    """\
---
apiVersion: kaigen.dev/v1alpha1
kind: Topology
metadata: {name: ring}
spec:
  engine: distributedLlama
  model: tuned
  image: example.com/acme/dllama:v0.16.4@sha256:"""
    + "ab" * 32
    + """
  shape: {nodes: 4, groups: leaderWorkerSet}
"""
)


REJECTED = [
    ({"model_type": "qwen2"}, "KG0390", "distributed-llama cannot run models of type `qwen2`"),
    ({"rope_scaling": {"type": "yarn"}}, "KG0390", "distributed-llama has no RoPE scaling `yarn`"),
    ({"attention_bias": True}, "KG0390", "ignores biases, and the model has `attention_bias`"),
    ({"rms_norm_eps": 0.1}, "KG0390", "distributed-llama cannot use `rms_norm_eps: 0.1`"),
    ({"intermediate_size": "big"}, "KG1103", '`intermediate_size` of the config is "big", and not a whole number'),
]


@pytest.mark.parametrize(("change", "error", "message"), REJECTED)
def test_a_locked_model_that_cannot_run_is_the_only_error(
    repository: Repository, hub: Hub, change: dict[str, object], error: str, message: str
) -> None:
    hub.commit({**FILES, **model_files({**SHAPE, **change})})
    repository.write(model(hub, more=CONVERT, size="auto") + RING)
    code, printed = repository.run("lock")
    assert code == 2, printed
    assert set(re.findall(r"KG\d+", printed)) == {error}
    assert message in printed


@pytest.mark.parametrize("source", ["hub", "bucket", "registry"])
def test_a_ring_is_planned_and_rendered_from_the_lock(
    repository: Repository, request: pytest.FixtureRequest, source: str, cut: Callable[[], None]
) -> None:
    found = request.getfixturevalue(source)
    if isinstance(found, Hub):
        found.commit(FILES)
        spec = model(found, more=CONVERT)
    elif isinstance(found, S3):
        for name in ("config.json", "tokenizer.json"):
            found.put(f"llm/qwen/{name}", FILES[name])
        spec = in_bucket(found, CONVERT, "5Gi")
    else:
        assert isinstance(found, Registry)
        found.artifact("1", FILES)
        spec = in_registry(found, more=CONVERT, size="5Gi")
    repository.write(spec + RING)
    code, printed = repository.run("render")
    assert (code, "KG0394" in printed) == (0, True), printed
    assert repository.run("lock")[0] == 0
    cut()
    code, printed = repository.run("render")
    assert (code, "KG0394" in printed) == (0, False), printed
    (lws,) = objects(repository, "LeaderWorkerSet")
    limits = lws["spec"]["leaderWorkerTemplate"]["workerTemplate"]["spec"]["containers"][0]["resources"]["limits"]
    code, printed = repository.run("plan", "specs")
    assert code == 0, printed
    (worker,) = [line for line in printed.splitlines() if line.startswith("worker")]
    assert worker.split()[1] == "3"
    assert worker.split()[-1] == limits["memory"]
    repository.write(spec + RING.replace("nodes: 4", "nodes: 16"))
    code, printed = repository.run("render")
    assert code == 2
    assert "the model has 8 KV heads, and a ring cannot have more nodes than that" in printed
