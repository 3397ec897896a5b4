"""Samples as tokens, with the ones that are trained on."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from kaigen_train.dataset import Sample
from kaigen_train.errors import BadInput

IGNORED = -100
"""Label of a token that is not trained on (source: torch.nn.CrossEntropyLoss)."""


class Tokenizer(Protocol):
    """What is used of transformers' tokenizers."""

    eos_token_id: int | None
    chat_template: Any

    def encode(self, text: str, *, add_special_tokens: bool) -> list[int]:
        """Return the tokens of a text."""

    def apply_chat_template(self, conversation: Any, **options: Any) -> Any:
        """Return the text of a conversation."""


@dataclass(frozen=True, slots=True)
class Tokens:
    """The tokens of a sample.

    Attributes:
        ids: the tokens.
        labels: the tokens that are trained on, and `IGNORED` in place of the others.
    """

    ids: array[int]
    labels: array[int]

    @property
    def trained(self) -> int:
        """Number of tokens that are trained on: the first one has nothing before it."""
        return sum(label != IGNORED for label in self.labels[1:])


def tokenize(samples: Sequence[Sample], tokenizer: Tokenizer, max_length: int) -> list[Tokens]:
    """Return the tokens of the samples that have tokens to train on among the first `max_length`.

    Raises:
        BadInput: the tokenizer cannot write a conversation.
    """
    found = []
    for sample in samples:
        ids, labels = array("i"), array("i")
        for text, special, trained in _segments(sample, tokenizer):
            part = text if isinstance(text, list) else tokenizer.encode(text, add_special_tokens=special)
            ids.extend(part)
            labels.extend(part if trained else [IGNORED] * len(part))
        tokens = Tokens(ids[:max_length], labels[:max_length])
        if tokens.trained:
            found.append(tokens)
    return found


def _segments(sample: Sample, tokenizer: Tokenizer) -> list[tuple[str | list[int], bool, bool]]:
    """Return the texts of a sample, whether special tokens come with each, and whether it is trained on.

    Each text is tokenized by itself, as a server tokenizes a prompt before it has the completion.
    """
    end: list[int] = [] if tokenizer.eos_token_id is None else [tokenizer.eos_token_id]
    if sample.messages is not None:
        return [(text, False, trained) for text, trained in _turns(sample, tokenizer)]
    if sample.pair is not None:
        prompt = tokenizer.encode(sample.pair[0], add_special_tokens=True)
        if end and prompt[-1:] == end and len(prompt) > 1:
            prompt = prompt[:-1]  # The tokenizer ends each text.
        return [(prompt, False, False), (sample.pair[1], False, True), (end, False, True)]
    assert sample.text is not None
    text = tokenizer.encode(sample.text, add_special_tokens=True)
    return [(text, False, True), ([] if text[-1:] == end else end, False, True)]


def _turns(sample: Sample, tokenizer: Tokenizer) -> list[tuple[str, bool]]:
    """Return a conversation as texts: what the assistant says, with the end of its turn, is trained on.

    Templates that write an earlier message in another way once a later one follows, as those of reasoning models
    do, leave only the messages that the whole conversation has in the same form.
    """
    messages = sample.messages
    assert messages is not None
    whole = _render(messages, tokenizer, sample.where)
    found: list[tuple[str, bool]] = []
    position = 0
    for number, message in enumerate(messages):
        if message["role"] != "assistant":
            continue
        before = _render(messages[:number], tokenizer, sample.where, prompt=True) if number else ""
        until = _render(messages[: number + 1], tokenizer, sample.where)
        if len(before) < position or not (whole.startswith(until) and until.startswith(before)):
            continue
        found += [(whole[position : len(before)], False), (whole[len(before) : len(until)], True)]
        position = len(until)
    if not found:
        raise BadInput(
            f"{sample.where}: the model's chat template writes no message of the assistant in the same way with and "
            "without what follows; use `prompt` and `completion`"
        )
    return [*found, (whole[position:], False)]


def _render(messages: Sequence[Any], tokenizer: Tokenizer, where: str, *, prompt: bool = False) -> str:
    if not tokenizer.chat_template:
        raise BadInput(
            f"{where} has `messages`, and the model has no chat template; use an instruct model, or `prompt` and "
            "`completion`"
        )
    try:
        text = tokenizer.apply_chat_template(list(messages), tokenize=False, add_generation_prompt=prompt)
    except Exception as error:  # The template is a program of the model's author: it raises what it wants.
        raise BadInput(f"{where}: the model's chat template refuses the messages: {error}") from None
    return str(text)
