"""Chooses the next token of each row."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

import torch

from kaigen_chat.sampling import Sampling

# Candidates of a row that samples by top_p: nearly always enough, and far cheaper to sort than a vocabulary.
_CANDIDATES = 1024


@dataclass(frozen=True, slots=True)
class Alternative:
    """A token and the logarithm of its probability."""

    token: int
    logprob: float


@dataclass(frozen=True, slots=True)
class Choice:
    """The tokens chosen for a row.

    Attributes:
        token: its id.
        logprob: by the model alone, before temperature and penalties; None when not asked for.
        top: the likeliest tokens, as many as were asked for.
    """

    token: int
    logprob: float | None = None
    top: tuple[Alternative, ...] = ()


@dataclass(slots=True)
class Chooser:
    """What the choice of a row's next token depends on, besides the logits.

    Attributes:
        sampling: as asked for.
        prompt: tokens of the prompt.
        random: draws one number for each token, so that other rows do not change what this one draws.
        count: how often each token was chosen.
        chosen: how many tokens were.
    """

    sampling: Sampling
    prompt: Sequence[int]
    random: random.Random
    count: Counter[int] = field(default_factory=Counter)
    chosen: int = 0

    def note(self, token: int) -> None:
        """Count a chosen token."""
        self.chosen += 1
        if self.sampling.penalised:
            self.count[token] += 1


def generator(seed: int | None, choice: int) -> random.Random:
    """The source of randomness of one answer; the same for the same seed and number of the answer."""
    return random.Random() if seed is None else random.Random(f"{seed}/{choice}")


def choose(logits: torch.Tensor, rows: Sequence[Chooser], eos: Sequence[int]) -> list[Choice]:
    """Choose the next tokens of all rows.

    Args:
        logits: rows × vocabulary.
        rows: as many.
        eos: the model's end-of-text tokens.
    """
    with torch.inference_mode():
        return _choose(logits.float(), rows, eos)


def _choose(raw: torch.Tensor, rows: Sequence[Chooser], eos: Sequence[int]) -> list[Choice]:
    scores = _adjust(raw, rows, eos)
    tokens = scores.argmax(-1)
    drawn = [number for number, row in enumerate(rows) if not row.sampling.greedy]
    if drawn:
        index = torch.tensor(drawn, device=scores.device)
        tokens[index] = _draw(scores[index], [rows[number] for number in drawn])
    chosen: list[int] = tokens.tolist()
    return [
        Choice(token) if row.sampling.logprobs is None else _with_logprobs(raw[number], token, row.sampling.logprobs)
        for number, (token, row) in enumerate(zip(chosen, rows, strict=True))
    ]


def _adjust(raw: torch.Tensor, rows: Sequence[Chooser], eos: Sequence[int]) -> torch.Tensor:
    """The logits with penalties and biases; the same tensor when there are none."""
    scores = raw
    for number, row in enumerate(rows):
        sampling = row.sampling
        early = row.chosen < sampling.min_tokens
        if not (sampling.penalised or sampling.logit_bias or early):
            continue
        if scores is raw:
            scores = raw.clone()
        line = scores[number]
        if sampling.repetition_penalty != 1:
            seen = torch.tensor(sorted({*row.prompt, *row.count}), device=line.device)
            values = line[seen]
            penalty = sampling.repetition_penalty
            line[seen] = torch.where(values > 0, values / penalty, values * penalty)
        if row.count and (sampling.presence_penalty or sampling.frequency_penalty):
            seen = torch.tensor(list(row.count), device=line.device)
            often = torch.tensor(list(row.count.values()), device=line.device, dtype=line.dtype)
            line[seen] -= sampling.presence_penalty + sampling.frequency_penalty * often
        for token, bias in sampling.logit_bias:
            line[token] += bias
        if early:
            line[torch.tensor([*eos, *sampling.stop_tokens], dtype=torch.long, device=line.device)] = -torch.inf
    return scores


def _draw(scores: torch.Tensor, rows: Sequence[Chooser]) -> torch.Tensor:
    device = scores.device
    scaled = scores / torch.tensor([[row.sampling.temperature] for row in rows], device=device)
    numbers = torch.tensor([[row.random.random()] for row in rows], device=device)
    narrow = [n for n, row in enumerate(rows) if row.sampling.top_k or row.sampling.top_p < 1]
    if not narrow:
        return _pick(scaled.softmax(-1), numbers)
    if len(narrow) == len(rows):
        return _draw_narrow(scaled, numbers, [row.sampling for row in rows])
    out = _pick(scaled.softmax(-1), numbers)
    index = torch.tensor(narrow, device=device)
    out[index] = _draw_narrow(scaled[index], numbers[index], [rows[n].sampling for n in narrow])
    return out


def _draw_narrow(scaled: torch.Tensor, numbers: torch.Tensor, asked: Sequence[Sampling]) -> torch.Tensor:
    """Sample from the top_k most likely tokens that top_p allows."""
    vocabulary = scaled.shape[-1]
    width = min(vocabulary, max(sampling.top_k or _CANDIDATES for sampling in asked))
    while True:
        values, tokens = scaled.topk(width)
        limits = torch.tensor([[min(s.top_k or vocabulary, width)] for s in asked], device=scaled.device)
        values = values.masked_fill(torch.arange(width, device=scaled.device) >= limits, -torch.inf)
        # Of all tokens, or of the top_k when these are a limit.
        whole = torch.where(
            torch.tensor([[s.top_k > 0] for s in asked], device=scaled.device),
            values.logsumexp(-1, keepdim=True),
            scaled.logsumexp(-1, keepdim=True),
        )
        shares = (values - whole).exp()
        sums = shares.cumsum(-1)
        least = torch.tensor([[s.top_p] for s in asked], device=scaled.device)
        short = [bool(s.top_k == 0) for s in asked]
        if width == vocabulary or not any(
            is_short and total < p
            for is_short, total, (p,) in zip(short, sums[:, -1].tolist(), least.tolist(), strict=True)
        ):
            kept = shares.masked_fill(sums - shares >= least, 0)
            return tokens.gather(-1, _pick(kept, numbers)[:, None])[:, 0]
        width = vocabulary


def _pick(shares: torch.Tensor, numbers: torch.Tensor) -> torch.Tensor:
    """For each row the column at which the running sum of its shares passes its number from [0, 1)."""
    sums = shares.double().cumsum(-1)
    found = torch.searchsorted(sums, numbers.double() * sums[:, -1:], right=True)[:, 0]
    return found.clamp(max=shares.shape[-1] - 1)


def _with_logprobs(raw: torch.Tensor, token: int, count: int) -> Choice:
    logprobs = raw - raw.logsumexp(-1)
    values, tokens = logprobs.topk(min(count, len(logprobs))) if count else (logprobs[:0], logprobs[:0].long())
    top = tuple(Alternative(other, value) for other, value in zip(tokens.tolist(), values.tolist(), strict=True))
    return Choice(token, float(logprobs[token]), top)
