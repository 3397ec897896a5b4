"""The draft model of speculative decoding takes memory of each GPU: its weights, and its layers of the cache."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kaigen.catalog.catalog import BUILT_IN
from kaigen.catalog.presets import find_preset
from kaigen.config.settings import Config
from kaigen.pipeline.run import Run
from kaigen.plan.specs import plan_specs
from kaigen.sizing import format
from kaigen.sizing.constants import GIB
from kaigen.sizing.plan import Plan

CONTEXT = 8192
SMALL = find_preset("qwen3-1.7b", BUILT_IN)
assert SMALL is not None
BOTH = {"resources": {"gpuType": "H100", "gpus": 2}, "shape": {"tensorParallel": 2}}


def document(kind: str, name: str, spec: dict[str, Any]) -> dict[str, Any]:
    return {"apiVersion": "kaigen.dev/v1alpha1", "kind": kind, "metadata": {"name": name}, "spec": spec}


def planned(speculative: Any, repo: str = "Qwen/Qwen3-1.7B", **spec: Any) -> Plan:
    """Return the plan of qwen3-32b on two H100 with this configuration, next to a Model `small` of a repository."""
    arguments = {"speculative-config": speculative} if speculative else {}
    served = {
        "preset": "qwen3-32b",
        "contextLength": CONTEXT,
        "concurrency": 4,
        "engineArgs": arguments,
        **BOTH,
        **spec,
    }
    source = {"huggingFace": {"repo": repo, "revision": "0" * 40}}
    documents = [
        document("Topology", "big", {**served, **BOTH, **spec}),
        document("Model", "small", {"source": source}),
    ]
    run = Run.load(documents, Config(root=Path("/nowhere")), use_cache=False)
    (item,) = plan_specs(run.specs, run.resolve).plans
    return item.answer.plan


ALONE = planned(None)


@pytest.mark.parametrize(
    ("speculative", "gpus"),
    [
        ({"model": "/models/small", "num_speculative_tokens": 5}, 2),
        ('{"model": "/models/small", "num_speculative_tokens": 5}', 2),
        ({"model": "Qwen/Qwen3-1.7B", "num_speculative_tokens": 5, "draft_tensor_parallel_size": 1}, 1),
    ],
)
def test_draft_model_takes_memory_of_each_gpu(speculative: Any, gpus: int) -> None:
    assert SMALL is not None
    found = planned(speculative, models=["small"])
    assert found.memory.draft == pytest.approx(SMALL.weights_gib / gpus)
    token = SMALL.layers * 2 * SMALL.kv_heads / gpus * (SMALL.head_dim or 0) * 2
    assert found.memory.kv_cache - ALONE.memory.kv_cache == pytest.approx(4 * CONTEXT * token / GIB)
    assert found.memory.free == pytest.approx(
        ALONE.memory.free - found.memory.draft - (found.memory.kv_cache - ALONE.memory.kv_cache)
    )
    assert found.max_concurrency < ALONE.max_concurrency
    (row,) = [row for row in format.rows(found) if row.name == "draft model"]
    assert (row.gib, row.how) == (found.memory.draft, "weights of qwen3-1.7b")


@pytest.mark.parametrize(
    "speculative",
    [{"method": "ngram"}, {"model": "ngram"}, {"method": "qwen3_next_mtp", "model": "/models/small"}, {}],
)
def test_methods_without_other_weights_take_no_memory(speculative: Any) -> None:
    found = planned(speculative and {**speculative, "num_speculative_tokens": 5}, models=["small"])
    assert (found.memory, found.notes) == (ALONE.memory, ALONE.notes)


def test_draft_model_of_unknown_size_is_a_note() -> None:
    found = planned({"model": "/models/small", "num_speculative_tokens": 5}, "org/unknown", models=["small"])
    assert found.memory == ALONE.memory
    (note,) = set(found.notes) - set(ALONE.notes)
    assert note.startswith("the draft model `/models/small` is not counted, because its size is unknown")
