"""Memory of a fine-tuning run: of the node for its processes, and of each GPU."""

from __future__ import annotations

from math import ceil

from msgspec import Struct

from kaigen.sizing.constants import constant
from kaigen.sizing.facts import ModelFacts

_LOADED = {"lora": 2.0, "qlora": 2.0, "full": 4.0}
"""Bytes of a parameter that a process reads before it copies the model to a GPU (source: kaigen-train's README)."""

_ON_GPU = {"lora": 2.0, "qlora": 0.5, "full": 16.0}
"""Least bytes of a parameter on each GPU.

`full` has float32 weights and gradients and the two moments of AdamW; adapters are not counted, nor are activations.
"""

_ON_CPU = {"lora": 4.0, "full": 16.0}
"""Bytes of a parameter without a GPU, where the computation is float32."""


class Training(Struct, frozen=True):
    """A fine-tuning run, as far as its memory depends on it.

    Attributes:
        method: `lora`, `qlora` or `full`.
        batch_size: samples in one pass of a process.
        max_length: tokens of a sample.
        gpus: GPUs of a node; 0 for a CPU.
        merge: whether the adapter is added to the weights.
        rank: of the adapter.
        checkpointing: whether activations are computed twice in place of being stored.
    """

    method: str
    batch_size: int
    max_length: int
    gpus: int
    merge: bool
    rank: int = 16
    checkpointing: bool = True


def parameters(facts: ModelFacts) -> float:
    """Return the number of parameters of a model whose weights have 16 or 32 bits, in 2**30."""
    return facts.weights / (4 if facts.dtype == "float32" else 2)


def node_memory(facts: ModelFacts, training: Training) -> int:
    """Return the memory of a pod, in GiB.

    With GPUs: for each of them a process that reads the weights before it copies them, and PyTorch with CUDA. Without:
    weights, gradients, optimizer and activations of one process. An adapter is added to a second copy of the weights.
    """
    billions = parameters(facts)
    merged = facts.weights if training.merge else 0.0
    if training.gpus:
        each = _LOADED[training.method] * billions * constant("trainerSlack") + constant("trainerGpuGiB")
        return ceil(training.gpus * each + merged)
    weights = _ON_CPU.get(training.method, 4.0) * billions * constant("trainerSlack")
    return ceil(weights + _activations(facts, training) + merged + constant("trainerGiB"))


def _activations(facts: ModelFacts, training: Training) -> float:
    """Return the activations of a pass, in GiB: inputs of all layers, one layer, and logits with gradients."""
    tokens = training.batch_size * training.max_length / 2**30
    words = facts.vocabulary or constant("vocabularyUnknown")
    layers = facts.layers + constant("trainedTensors")
    return tokens * 4 * (facts.hidden_size * layers + words * constant("trainedLogits"))


def least_gpu_memory(facts: ModelFacts, method: str) -> float:
    """Return what weights, gradients and optimizer of a process take at least of its GPU, in GiB."""
    return _ON_GPU[method] * parameters(facts)


def peak_gpu_memory(facts: ModelFacts, training: Training) -> float:
    """Return what a pass takes of each GPU at most, in GiB, CUDA's own memory included.

    That is the weights with what the method adds, logits with their copies and gradient, and the inputs of all layers,
    or all of their activations without checkpointing. Measured on an H200 (tests/gpu/measured.jsonl).
    """
    count = parameters(facts)
    fixed = least_gpu_memory(facts, training.method)
    if training.method == "qlora":
        # The embedding and the output stay as they are, and are computed with in 32 bits.
        table = min(facts.embedding, count)
        fixed = (count - table) * constant("trainedQuantized") + table * constant("trainedEmbedding")
    if training.method != "full":
        fixed += count * constant("trainedAdapter") * training.rank / facts.hidden_size
    tokens = training.batch_size * training.max_length / 2**30
    words = facts.vocabulary or constant("vocabularyUnknown")
    logits = constant("trainedLogitBytesQlora" if training.method == "qlora" else "trainedLogitBytes")
    layer = 2.0 if training.checkpointing else constant("trainedLayerBytes")
    return fixed + tokens * (logits * words + layer * facts.hidden_size * facts.layers) + constant("contextGiB")
