"""Requests and results of the engine. Needs no PyTorch."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

from kaigen_chat.errors import Refused, too_busy
from kaigen_chat.sampling import Sampling


@dataclass(frozen=True, slots=True)
class Spelled:
    """A token as a client sees it, with the logarithm of its probability."""

    text: str
    logprob: float


@dataclass(frozen=True, slots=True)
class TokenLogprobs:
    """A token of the answer, and the most likely alternatives."""

    token: Spelled
    top: tuple[Spelled, ...]


@dataclass(frozen=True, slots=True)
class Piece:
    """A further part of one answer.

    Attributes:
        choice: which of the request's answers.
        text: what follows; may be empty.
        tokens: how many tokens it took since the last piece.
        logprobs: these tokens, if requested.
        finish: why the answer ends here: `stop` or `length`; None while it goes on.
        error: the request failed, and nothing follows.
    """

    choice: int
    text: str = ""
    tokens: int = 0
    logprobs: tuple[TokenLogprobs, ...] = ()
    finish: str | None = None
    error: Refused | None = None


@dataclass(slots=True, eq=False)
class Job:
    """One prompt and how to answer it.

    Attributes:
        prompt: its tokens; never empty.
        sampling: how.
        choices: how many answers.
        first: the number of the first answer, for requests of several prompts.
        whole: pieces come only when an answer is complete.
        cancelled: set when the client no longer wants the answers.
        born: when it was made, by `time.monotonic`.
    """

    prompt: Sequence[int]
    sampling: Sampling
    choices: int = 1
    first: int = 0
    whole: bool = False
    cancelled: bool = False
    born: float = field(default_factory=time.monotonic)

    @property
    def most(self) -> int:
        """Tokens of the prompt and its longest answer."""
        return len(self.prompt) + self.sampling.max_tokens


class Waiting:
    """The jobs that wait, first come first served, and the count of rows that are asked for in all.

    Bounded by rows, so that what is refused does not depend on how soon the engine looks.
    """

    def __init__(self, rows: int, queue: int) -> None:
        """
        Args:
            rows: answers that are generated at once.
            queue: how many more answers may wait.
        """
        self._rows = rows
        self._most = rows + queue
        self._jobs: deque[Job] = deque()
        self._open = 0
        self._queued = 0
        self._seconds = 1.0  # how long an answer takes, in the running mean

    @property
    def rows(self) -> int:
        """Return the number of waiting answers."""
        return self._queued

    def push(self, jobs: Sequence[Job]) -> None:
        """Accept all of the jobs or none.

        Raises:
            Refused: the queue is full.
        """
        more = sum(job.choices for job in jobs)
        if self._open + more > self._most:
            waiting = max(0, self._open - self._rows) + more
            raise too_busy(max(1, min(60, round(self._seconds * waiting / self._rows))))
        self._open += more
        self._queued += more
        self._jobs.extend(jobs)

    def head(self) -> Job | None:
        """Return the next job without taking it."""
        return self._jobs[0] if self._jobs else None

    def pop(self) -> Job:
        """Take the next job. Its rows still count until they are `done`."""
        job = self._jobs.popleft()
        self._queued -= job.choices
        return job

    def done(self, rows: int, seconds: float | None = None) -> None:
        """Rows that ended, and how long they took when they ended well."""
        self._open -= rows
        if seconds is not None:
            self._seconds += (seconds - self._seconds) / 8

    def drop_cancelled(self) -> list[Job]:
        """Remove the rows of disconnected clients."""
        gone = [job for job in self._jobs if job.cancelled]
        if gone:
            self._jobs = deque(job for job in self._jobs if not job.cancelled)
            self._queued -= sum(job.choices for job in gone)
        return gone
