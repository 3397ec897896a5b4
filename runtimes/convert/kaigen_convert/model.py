"""The file `model.m`: the tensors of a model in the order in which the runtime reads them."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass

from kaigen_convert.errors import NotConvertible
from kaigen_convert.numbers import encoded
from kaigen_convert.shape import F32, LLAMA, Shape
from kaigen_convert.tensors import Floats, Tensor, Tensors

_PIECE = 1 << 19
"""Numbers that are converted at once: a few MiB of memory for each thread."""
_THREADS = 2


@dataclass(frozen=True, slots=True)
class Stored:
    """A tensor as the file stores it.

    Attributes:
        tensor: the numbers.
        kind: number of the type.
        heads: number of heads whose rows change places, as the runtime's RoPE of Llama turns neighbours; 0 for none.
    """

    tensor: Tensor
    kind: int
    heads: int = 0

    def pieces(self) -> Iterator[tuple[int, int]]:
        """Return first row and number of rows of each piece: whole heads, or at least one row."""
        rows = self.tensor.shape[0]
        unit = rows // self.heads if self.heads else 1
        step = max(1, _PIECE // (self.tensor.row * unit)) * unit
        return ((first, min(step, rows - first)) for first in range(0, rows, step))

    def convert(self, first: int, count: int) -> bytes:
        """Return a piece as bytes.

        Raises:
            NotConvertible: a number cannot be stored.
        """
        values = self.tensor.rows(first, count)
        if self.heads:
            values = _turned(values, self.tensor.shape[0] // self.heads, self.tensor.row)
        try:
            return encoded(values, self.kind)
        except ValueError as error:
            raise NotConvertible(f"the tensor `{self.tensor.name}` has {error}") from None


def _turned(values: Floats, head_rows: int, row: int) -> Floats:
    """Return the rows of heads with each row of the first half followed by its partner of the second half."""
    halves = values.reshape(-1, 2, head_rows // 2, row)
    return halves.swapaxes(1, 2).reshape(-1)


def plan(shape: Shape, tensors: Tensors) -> list[Stored]:
    """Return the tensors of a model in the order of the file.

    Raises:
        NotConvertible: one is missing, has another shape, or has no place in the file.
    """
    dim, hidden, kind = shape.dim, shape.hidden_dim, shape.weights
    embedding = tensors.take(("model.embed_tokens.weight",), (shape.vocabulary, dim))
    found = [Stored(embedding, F32)]

    def add(name: str, *size: int, type_: int = kind, heads: int = 0) -> None:
        found.append(Stored(tensors.take((name,), size), type_, heads))

    llama = shape.architecture == LLAMA
    for number in range(shape.layers):
        layer = f"model.layers.{number}"
        add(f"{layer}.self_attn.q_proj.weight", shape.q_dim, dim, heads=shape.heads if llama else 0)
        add(f"{layer}.self_attn.k_proj.weight", shape.kv_dim, dim, heads=shape.kv_heads if llama else 0)
        add(f"{layer}.self_attn.v_proj.weight", shape.kv_dim, dim)
        add(f"{layer}.self_attn.o_proj.weight", dim, shape.q_dim)
        if shape.experts:
            add(f"{layer}.mlp.gate.weight", shape.experts, dim, type_=F32)
        experts = [f"{layer}.mlp.experts.{expert}" for expert in range(shape.experts)]
        for mlp in experts or [f"{layer}.mlp"]:
            add(f"{mlp}.gate_proj.weight", hidden, dim)
            add(f"{mlp}.down_proj.weight", dim, hidden)
            add(f"{mlp}.up_proj.weight", hidden, dim)
        if shape.has_head_norms:
            add(f"{layer}.self_attn.q_norm.weight", shape.head_dim, type_=F32)
            add(f"{layer}.self_attn.k_norm.weight", shape.head_dim, type_=F32)
        add(f"{layer}.input_layernorm.weight", dim, type_=F32)
        add(f"{layer}.post_attention_layernorm.weight", dim, type_=F32)
    add("model.norm.weight", dim, type_=F32)
    # Models with tied embeddings have no head of their own.
    head = tensors.take(("lm_head.weight", "model.embed_tokens.weight"), (shape.vocabulary, dim))
    found.append(Stored(head, kind))
    tensors.check_all_used()
    return found


def content(shape: Shape, stored: list[Stored]) -> Iterator[bytes]:
    """Return the bytes of the file in pieces, converted by two threads ahead of the reader.

    Raises:
        Failure: a tensor cannot be read or stored.
    """
    yield shape.header_bytes
    waiting: deque[Future[bytes]] = deque()
    with ThreadPoolExecutor(_THREADS) as pool:
        try:
            for tensor in stored:
                for first, count in tensor.pieces():
                    waiting.append(pool.submit(tensor.convert, first, count))
                    if len(waiting) > _THREADS:
                        yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            for each in waiting:
                each.cancel()
