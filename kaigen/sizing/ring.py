"""Models in a ring of distributed-llama: which numbers of nodes can run them, and the memory of each node.

Source of rules and formulas: the code of distributed-llama v0.16.2 and v0.16.4, and the sizes that they print.

The flags that a spec may set are those of `AppCliArgs::parse` there. The program ends on a flag that it does not know,
and reads a number that is none as 0.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from math import ceil
from typing import Any

from msgspec import Struct

from kaigen.diagnostics.suggest import did_you_mean
from kaigen.sizing.distributed_llama import BLOCK, BYTES, Shape, file_bytes

BUFFER_TYPES: Mapping[str, str] = {"q40": "q80", "f32": "f32"}
"""The only type of buffers that works with each type of weights."""

DEFAULT_CONTEXT = 4096
"""Context without `contextLength`: the cache has 32 bits, and the context of most models would not fit."""

_BATCH = 32
"""Tokens of a prompt that are processed at a time."""
_BUFFER_BYTES: Mapping[str, float] = {"q80": 34 / 32, "f32": 4.0}
_HEADROOM = 1.2
"""Factor for what the program does not count: its code, the tokenizer, messages, requests."""
_MIB, _GIB = 2**20, 2**30
_STEP = 64
_SIZES = (1, 2, 4, 8, 16, 32, 64)


class RingPlan(Struct, frozen=True):
    """How a model runs in a ring.

    Attributes:
        shape: of the model; None when unknown, and then the bytes are 0.
        weights: type of the weights: `q40` or `f32`.
        nodes: of the ring, the root included.
        context: longest context, in tokens.
        root: bytes that the root needs.
        worker: bytes that a worker needs; 0 without workers.
        file: bytes of the file with the weights.
    """

    shape: Shape | None
    weights: str
    nodes: int
    context: int
    root: int = 0
    worker: int = 0
    file: int = 0


def why_not(shape: Shape, nodes: int, weights: str) -> str:
    """Return why a ring of so many nodes cannot run a model; empty when it can."""
    if not is_ring_size(nodes):
        return f"a ring has 1, 2, 4, 8, … nodes, and not {nodes}"
    if nodes > shape.kv_heads:
        return f"the model has {shape.kv_heads} KV heads, and a ring cannot have more nodes than that"
    for name, size in _divided_parts(shape):
        if size % nodes:
            return f"{name} of the model, {size}, cannot be divided by {nodes} nodes"
    if weights == "q40":
        for name, size in (("width of the heads", shape.q_dim), ("width of the MLP", shape.hidden_dim)):
            if size // nodes % BLOCK:
                each = f"each of {nodes} nodes has {size // nodes} of the {name}"
                return f"{each}, which is not a multiple of {BLOCK}, as q40 requires"
    return ""


def is_ring_size(nodes: int) -> bool:
    """Return whether a ring can have so many nodes: 1, 2, 4, 8, …."""
    return nodes > 0 and nodes & (nodes - 1) == 0


def _divided_parts(shape: Shape) -> Iterator[tuple[str, int]]:
    """Yield what is divided among the nodes, with its size."""
    yield "the number of heads", shape.heads
    if shape.has_head_norms:
        yield "the number of KV heads", shape.kv_heads
    yield "the width of the heads", shape.q_dim
    yield "the width of the KV heads", shape.kv_dim
    yield "the width of the MLP", shape.hidden_dim
    yield "the vocabulary", shape.vocabulary


def runnable_nodes(shape: Shape, weights: str) -> list[int]:
    """Return the numbers of nodes with which a ring can run a model, the smallest first."""
    return [nodes for nodes in _SIZES if not why_not(shape, nodes, weights)]


def ring_plan(shape: Shape, weights: str, nodes: int, context: int) -> RingPlan:
    """Return how a model runs in a ring.

    Args:
        shape: of the model.
        weights: type of the weights: `q40` or `f32`.
        nodes: a number of nodes that can run it.
        context: longest context, in tokens.
    """
    sizes = [node_bytes(shape, weights, nodes, context, index) for index in range(nodes)]
    # The pods of all workers are alike, so each gets what the largest needs.
    worker = max(sizes[1:], default=0)
    return RingPlan(shape, weights, nodes, context, sizes[0], worker, file_bytes(shape, weights))


def memory_request(needed: int) -> str:
    """Return the memory to request for a node that needs so many bytes, with headroom."""
    return f"{max(2, ceil(needed * _HEADROOM / _MIB / _STEP)) * _STEP}Mi"


def ring_text(plan: RingPlan) -> str:
    """Return the nodes of a ring and their memory in words, for a model of known shape."""
    root = f"the root needs {plan.root / _GIB:.2f} GiB and requests {memory_request(plan.root)}"
    if plan.nodes == 1:
        return root
    each = f"each of {plan.nodes - 1} workers" if plan.nodes > 2 else "the worker"
    return f"{root}, {each} needs {plan.worker / _GIB:.2f} GiB and requests {memory_request(plan.worker)}"


def node_bytes(shape: Shape, weights: str, nodes: int, context: int, index: int) -> int:
    """Return the memory that a node of a ring needs, as the program prints it.

    Args:
        shape: of the model.
        weights: type of the weights.
        nodes: of the ring.
        context: longest context, in tokens.
        index: of the node; 0 for the root.
    """
    each = BYTES[weights]
    cache = shape.layers * 2 * context * (shape.kv_dim // nodes) * 4
    layers = shape.layers * (each * shape.layer_weights / nodes + 4 * shape.layer_floats)
    head = each * shape.dim * shape.vocabulary / nodes + 4 * shape.dim
    embedding = 0 if index else 4 * shape.vocabulary * shape.dim
    return ceil(_buffers(shape, weights, nodes, context, index) + cache + layers + head + embedding)


def _buffers(shape: Shape, weights: str, nodes: int, context: int, index: int) -> float:
    """Return the bytes of what a node computes with and sends."""
    buffer = BUFFER_TYPES[weights]
    size = _BUFFER_BYTES[buffer]
    quantized = 0.0 if buffer == "f32" else size
    dim, q_dim = shape.dim, shape.q_dim
    own_q, own_kv, own_mlp = q_dim / nodes, shape.kv_dim / nodes, shape.hidden_dim / nodes
    pipes = 256 + _BATCH * (4 * dim + 4 * shape.vocabulary + dim * nodes * size)
    row = 8 * dim + dim * quantized + 4 * q_dim + own_q * (size + 4) + 8 * own_kv + 4
    row += 4 * shape.heads / nodes * context + 4 * shape.vocabulary / nodes + own_mlp * (8 + quantized)
    rope = shape.head_dim if shape.has_head_norms else (index + 1) * own_q - index * own_kv
    experts = 0.0
    if shape.experts:
        active = shape.active_experts
        each = 4 * dim + 8 * own_mlp + 4 + (dim + own_mlp) * quantized
        experts = active * each + 4 * (shape.experts + active)
    return pipes + _BATCH * (row + experts) + 4 * context * rope


class RingFlag(Struct, frozen=True):
    """A flag of distributed-llama.

    Attributes:
        expected: its values in words.
        pattern: of a value as text.
        most: greatest number; None for no limit.
        choices: all values, where there are few.
    """

    expected: str
    pattern: str
    most: float | None = None
    choices: tuple[str, ...] = ()

    def accepts(self, value: str) -> bool:
        """Return whether the program reads a text as it is meant."""
        if self.choices:
            return value in self.choices
        if not re.fullmatch(self.pattern, value):
            return False
        return self.most is None or (float(value) if "." in value else int(value)) <= self.most


def _choice(*names: str) -> RingFlag:
    return RingFlag(" or ".join(f"`{name}`" for name in names), "", choices=names)


_WHOLE = r"[0-9]{1,20}"
_NUMBER = r"[0-9]{1,10}(\.[0-9]{1,20})?"

RING_FLAGS: Mapping[str, RingFlag] = {
    "chat-template": _choice("llama2", "llama3", "deepSeek3"),
    "gpu-index": RingFlag("a whole number from 0", r"[0-9]{1,4}"),
    "gpu-segments": RingFlag("two whole numbers such as `0:16`", r"[0-9]{1,9}:[0-9]{1,9}"),
    "net-turbo": _choice("0", "1"),
    "seed": RingFlag("a whole number from 0 to 2^63 - 1", _WHOLE, 2**63 - 1),
    "temperature": RingFlag("a number from 0", _NUMBER),
    "topp": RingFlag("a number from 0 to 1", _NUMBER, 1),
}
"""Flags by name, without dashes."""


def wrong_value(name: str, value: Any) -> tuple[str, str]:
    """Return what is wrong with the value of a flag, and what to do; both empty for nothing.

    Args:
        name: of the flag, without dashes.
        value: as JSON; None for no value.
    """
    flag = RING_FLAGS[name]
    text = value if isinstance(value, str) else json.dumps(value)
    if flag.accepts(text):
        return "", ""
    if value is None:
        return f"`--{name}` requires a value", f"write {flag.expected}"
    hint = did_you_mean(text, flag.choices) or f"write {flag.expected}"
    return f"`--{name}` must be {flag.expected}, and not `{text}`", hint
