"""The sampling parameters that every route's body is converted to."""

from __future__ import annotations

from dataclasses import dataclass

_COLD = 1e-4  # below it, dividing by the temperature only makes numbers that are too large


@dataclass(frozen=True, slots=True)
class Sampling:
    """Parameters of one request; those of OpenAI and vLLM mean what they mean there.

    Attributes:
        max_tokens: most tokens of an answer.
        min_tokens: before that many, no end-of-text token is chosen.
        temperature: 0 takes the likeliest token always.
        top_p: sample among the likeliest tokens whose probabilities sum up to it.
        top_k: sample among that many tokens; 0 among all.
        repetition_penalty: divides the logits of tokens that are in the prompt or answer; 1 has no effect.
        presence_penalty: is subtracted from the logit of a token that is in the answer.
        frequency_penalty: is taken once for each time it does.
        logit_bias: token ids and what is added to their logits.
        seed: makes the sampling repeatable; None draws one.
        stop: texts that end the answer and are not part of it.
        stop_tokens: tokens that do.
        ignore_eos: go on after the model's own end-of-text tokens.
        logprobs: how many of the most likely tokens to return with each token; 0 for only its own, None for none.
    """

    max_tokens: int
    min_tokens: int = 0
    temperature: float = 1.0
    top_p: float = 1.0
    top_k: int = 0
    repetition_penalty: float = 1.0
    presence_penalty: float = 0.0
    frequency_penalty: float = 0.0
    logit_bias: tuple[tuple[int, float], ...] = ()
    seed: int | None = None
    stop: tuple[str, ...] = ()
    stop_tokens: frozenset[int] = frozenset()
    ignore_eos: bool = False
    logprobs: int | None = None

    @property
    def greedy(self) -> bool:
        """Whether the most likely token is always chosen."""
        return self.temperature < _COLD

    @property
    def penalised(self) -> bool:
        """Whether logits depend on what was generated before."""
        return self.repetition_penalty != 1 or self.presence_penalty != 0 or self.frequency_penalty != 0


@dataclass(frozen=True, slots=True)
class Defaults:
    """The defaults of a request: the model's generation_config.json, or OpenAI's defaults."""

    temperature: float = 1.0
    top_p: float = 1.0
    top_k: int = 0
    repetition_penalty: float = 1.0
