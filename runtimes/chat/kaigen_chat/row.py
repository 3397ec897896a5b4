"""One answer while it is generated."""

from __future__ import annotations

import time

from kaigen_chat.job import Job, Piece, Spelled, TokenLogprobs
from kaigen_chat.model import LanguageModel
from kaigen_chat.sampler import Choice, Chooser, generator
from kaigen_chat.text import Detokenizer, StopTexts


class Row:
    """A row of the batch: its tokens so far, and how much of their text was sent.

    Attributes:
        job: whose answer it is.
        choice: which one.
        chooser: what its next token depends on.
        stored: tokens in the KV cache.
        last: the newest token, which is not in the cache yet.
        tokens: tokens of the answer.
    """

    def __init__(self, job: Job, choice: int, model: LanguageModel) -> None:
        self.job = job
        self.choice = choice
        self.chooser = Chooser(job.sampling, job.prompt, generator(job.sampling.seed, choice))
        self.stored = len(job.prompt)
        self.last = job.prompt[-1]
        self.tokens = 0
        self._model = model
        self._ends = job.sampling.stop_tokens | (frozenset() if job.sampling.ignore_eos else frozenset(model.eos))
        # Without a stop text to look for, an answer that is not streamed is decoded once.
        self._at_once: list[int] | None = [] if job.whole and not job.sampling.stop else None
        self._text = Detokenizer(model.decode)
        self._stops = StopTexts(job.sampling.stop)
        self._kept: list[str] = []
        self._logprobs: list[TokenLogprobs] = []
        self._unsent = 0
        self._when = job.born

    def since(self, now: float) -> float:
        """Seconds since its last token, or since the request came."""
        return now - self._when

    def add(self, choice: Choice, now: float | None = None) -> Piece | None:
        """Append a token.

        Returns:
            The text to send: None while characters are incomplete, may be the start of a stop text, or are
            requested all at once.
        """
        self._when = time.monotonic() if now is None else now
        self.last = choice.token
        self.tokens += 1
        self._unsent += 1
        self.chooser.note(choice.token)
        ends = choice.token in self._ends
        finish = "stop" if ends else "length" if self.tokens >= self.job.sampling.max_tokens else None
        text = "" if ends else self._read(choice.token)
        if finish is not None and not self._stops.hit:
            text += self._rest()
        if self._stops.hit:
            finish = "stop"
        if choice.logprob is not None and not ends:
            self._logprobs.append(
                TokenLogprobs(
                    Spelled(self._model.spell(choice.token), choice.logprob),
                    tuple(Spelled(self._model.spell(other.token), other.logprob) for other in choice.top),
                )
            )
        return self._piece(text, finish)

    def _read(self, token: int) -> str:
        if self._at_once is not None:
            self._at_once.append(token)
            return ""
        return self._stops.add(self._text.add(token))

    def _rest(self) -> str:
        if self._at_once is not None:
            return self._model.decode(self._at_once)
        return self._stops.add(self._text.end()) + self._stops.end()

    def _piece(self, text: str, finish: str | None) -> Piece | None:
        if finish is None and (self.job.whole or not (text or self._logprobs)):
            if text:
                self._kept.append(text)
            return None
        piece = Piece(self.choice, "".join(self._kept) + text, self._unsent, tuple(self._logprobs), finish)
        self._kept, self._logprobs, self._unsent = [], [], 0
        return piece
