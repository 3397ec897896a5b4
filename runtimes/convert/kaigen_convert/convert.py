"""The conversion of a folder: tokenizer, weights, marker."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path

from kaigen_convert import VERSION, marker
from kaigen_convert.documents import Document, required
from kaigen_convert.model import content, plan
from kaigen_convert.output import Output, opened
from kaigen_convert.shape import read_shape
from kaigen_convert.tensors import Tensors
from kaigen_convert.text import say, size
from kaigen_convert.tokenizer import read_tokenizer

MODEL, TOKENIZER = "model.m", "tokenizer.t"


@dataclass(frozen=True, slots=True)
class Order:
    """What to convert.

    Attributes:
        source: folder with the downloaded files.
        source_identity: identity in their marker; None for a folder without one.
        dest: folder for the result.
        identity: identity for its marker.
        weights: type of the weights.
    """

    source: Path
    source_identity: str | None
    dest: Path
    identity: str
    weights: str


def convert(order: Order) -> Document:
    """Convert a folder, or adopt the result of an earlier run.

    Returns:
        What was measured.

    Raises:
        Failure: why not. There is then no marker.
    """
    with opened(order.dest) as output:
        found = marker.finished(order.dest, order.identity)
        if found is not None:
            say(f"already converted: {order.dest}")
            facts = found.get("facts")
            return facts if isinstance(facts, dict) else {}
        output.clear((MODEL, TOKENIZER))
        return _convert(order, output)


def _convert(order: Order, output: Output) -> Document:
    started = time.time()
    source = marker.read_source(order.source, order.source_identity)
    config = required(source.folder / "config.json")
    shape = read_shape(config, order.weights)
    tokenizer = read_tokenizer(source.folder, config, shape.vocabulary)
    for warning in tokenizer.warnings:
        say(f"warning: {warning}")
    tokens = tokenizer.content()
    tensors = Tensors(source.folder)
    try:
        stored = plan(shape, tensors)
        needed = shape.file_size
        output.check_space(needed + len(tokens))
        say(f"converting {len(stored)} tensors to {order.weights}: {size(needed)}")
        token_sum = output.write(TOKENIZER, (tokens,), len(tokens))
        model_sum = output.write(MODEL, content(shape, stored), needed)
    finally:
        tensors.close()
    ended = time.time()
    total = needed + len(tokens)
    facts: Document = {
        "bytes": total,
        "human": size(total),
        "seconds": round(ended - started, 3),
        "weights": order.weights,
        "tensors": len(stored),
        "version": VERSION,
        "warnings": list(tokenizer.warnings),
    }
    output.mark(
        marker.document(
            identity=order.identity,
            source=source,
            weights=order.weights,
            files=[(MODEL, needed, model_sum), (TOKENIZER, len(tokens), token_sum)],
            started=started,
            ended=ended,
            facts=facts,
        )
    )
    return facts
