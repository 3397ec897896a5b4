"""The generation loop: one thread, one batch, one token per row and step, and new rows between two steps."""

from __future__ import annotations

import sys
import threading
import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch

from kaigen_chat.cache import RowsCache
from kaigen_chat.errors import Refused, not_serving
from kaigen_chat.job import Job, Piece, Waiting
from kaigen_chat.metrics import Metrics
from kaigen_chat.model import LanguageModel
from kaigen_chat.row import Row
from kaigen_chat.sampler import Choice, choose

Delivery = tuple[Job, Piece]

_FAILURES = 3  # steps that fail in a row before the engine gives up


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of the engine.

    Attributes:
        rows: answers that are generated at once.
        queue: how many more answers may wait.
        cache_tokens: rows × columns of the KV cache.
        chunk: prompt tokens that are computed between two steps of the batch.
    """

    rows: int
    queue: int
    cache_tokens: int
    chunk: int

    @property
    def most(self) -> int:
        """Answers that there is a place for at the same time: a request for more is never accepted."""
        return self.rows + self.queue


@dataclass(slots=True)
class _Prefill:
    """Prompts whose keys and values are being computed, chunk by chunk, with padding on the left."""

    jobs: list[Job]
    tokens: torch.Tensor
    cache: RowsCache
    done: int = 0

    @property
    def rows(self) -> int:
        """Return the number of answers of the job."""
        return sum(job.choices for job in self.jobs)


class Engine:
    """Runs jobs on a model.

    Args:
        model: used by the engine's thread alone.
        limits: its limits.
        metrics: where it counts.
        deliver: is called from the engine's thread, once a step, with what the step brought.
    """

    def __init__(
        self, model: LanguageModel, limits: Limits, metrics: Metrics, deliver: Callable[[Sequence[Delivery]], None]
    ) -> None:
        self._model = model
        self._limits = limits
        self._metrics = metrics
        self._deliver = deliver
        self._waiting = Waiting(limits.rows, limits.queue)
        self._wake = threading.Condition()
        self._stopping = False
        self._broken = False
        self._rows: list[Row] = []
        self._cache = self._empty()
        self._prefill: _Prefill | None = None
        self._out: list[Delivery] = []
        self._thread = threading.Thread(target=self._run, name="engine", daemon=True)
        metrics.watch(
            running=lambda: len(self._rows) + (self._prefill.rows if self._prefill else 0),
            waiting=lambda: self._waiting.rows,
            cache=lambda: len(self._rows) * self._cache.width / limits.cache_tokens,
            cache_bytes=lambda: self._cache.bytes,
        )

    def _empty(self) -> RowsCache:
        return RowsCache(0, 0, self._model.context, self._limits.cache_tokens)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def stop(self) -> None:
        """Stop the thread after the current step; unfinished jobs get an error."""
        with self._wake:
            self._stopping = True
            self._wake.notify()
        self._thread.join()

    @property
    def works(self) -> bool:
        """Whether the loop runs."""
        return self._thread.is_alive() and not self._broken

    def submit(self, jobs: Sequence[Job]) -> None:
        """Queue jobs, all or none.

        Raises:
            Refused: the queue is full, or the engine does not run.
        """
        with self._wake:
            if self._stopping or not self.works:
                raise not_serving("The server is not able to answer.")
            self._waiting.push(jobs)
            self._wake.notify()

    def cancel(self, jobs: Sequence[Job]) -> None:
        """Free the resources of the jobs before the next step."""
        with self._wake:
            for job in jobs:
                job.cancelled = True
            self._wake.notify()

    def _run(self) -> None:
        failures = 0
        while True:
            with self._wake:
                while not (self._stopping or self._rows or self._prefill or self._waiting.head()):
                    self._wake.wait()
                if self._stopping:
                    break
            try:
                self._step()
                failures = 0
            except Exception:
                failures += 1
                sys.stderr.write(traceback.format_exc())
                self._fail_all(Refused(500, "The model failed on this request.", kind="server_error"))
                self._broken = failures >= _FAILURES
            self._flush()
            if self._broken:
                break
        self._fail_all(not_serving("The server ends."), also_waiting=True)
        self._flush()

    def _step(self) -> None:
        self._drop_cancelled()
        if self._prefill is None:
            self._admit()
        if self._prefill is not None:
            self._prefill_chunk(self._prefill)
        if self._rows:
            self._decode()

    def _flush(self) -> None:
        if self._out:
            out, self._out = self._out, []
            self._deliver(out)

    # Which jobs are in.

    def _drop_cancelled(self) -> None:
        with self._wake:
            gone = self._waiting.drop_cancelled()
            for job in gone:
                self._waiting.done(job.choices)
        self._metrics.cancelled(sum(job.choices for job in gone))
        for number in range(len(self._rows) - 1, -1, -1):
            if self._rows[number].job.cancelled:
                self._metrics.cancelled(1)  # first: who sees that the row is gone may look at the count
                self._remove(number)
        prefill = self._prefill
        if prefill is not None and all(job.cancelled for job in prefill.jobs):
            self._metrics.cancelled(prefill.rows)
            self._prefill = None
            self._done(prefill.rows)

    def _admit(self) -> None:
        """Take as many jobs from the queue as there is room for, with prompts that fit in one chunk."""
        jobs: list[Job] = []
        rows = len(self._rows)
        longest = max((row.job.most for row in self._rows), default=0)
        width = 0
        with self._wake:
            while (job := self._waiting.head()) is not None:
                rows += job.choices
                longest = max(longest, job.most)
                width = max(width, len(job.prompt))
                full = rows > self._limits.rows or rows * longest > self._limits.cache_tokens
                if full or (jobs and (len(jobs) + 1) * width > self._limits.chunk):
                    break
                jobs.append(self._waiting.pop())
        if not jobs:
            return
        now = time.monotonic()
        for job in jobs:
            self._metrics.queued(now - job.born)
        width = max(len(job.prompt) for job in jobs)
        tokens = torch.zeros((len(jobs), width), dtype=torch.long)
        for number, job in enumerate(jobs):
            tokens[number, width - len(job.prompt) :] = torch.tensor(job.prompt)
        self._prefill = _Prefill(jobs, tokens, RowsCache(len(jobs), width, width))

    # The model's passes.

    def _prefill_chunk(self, prefill: _Prefill) -> None:
        count, width = prefill.tokens.shape
        begin = prefill.done
        end = min(width, begin + max(1, self._limits.chunk // count))
        pads = torch.tensor([[width - len(job.prompt)] for job in prefill.jobs])
        logits = self._model.forward(
            prefill.tokens[:, begin:end],
            None if count == 1 else torch.arange(end) >= pads,
            (torch.arange(begin, end) - pads).clamp(min=0),
            prefill.cache,
        )
        prefill.done = end
        if end < width:
            return
        self._metrics.prompted(sum(len(job.prompt) for job in prefill.jobs))
        rows: list[Row] = []
        picks: list[int] = []
        for number, job in enumerate(prefill.jobs):
            rows += [Row(job, job.first + choice, self._model) for choice in range(job.choices)]
            picks += [number] * job.choices
        self._prefill = None
        # From here on the rows are in the batch, and removed from it like any others.
        self._cache.append(prefill.cache, picks)
        first = len(self._rows)
        self._rows += rows
        self._take(
            first,
            choose(logits[torch.tensor(picks, device=logits.device)], [row.chooser for row in rows], self._model.eos),
        )

    def _decode(self) -> None:
        lengths = torch.tensor([[row.stored] for row in self._rows])
        longest = int(lengths.max())
        self._cache.trim(longest)
        padded = int(lengths.min()) < longest
        logits = self._model.forward(
            torch.tensor([[row.last] for row in self._rows]),
            torch.arange(longest + 1) >= longest - lengths if padded else None,
            lengths,
            self._cache,
        )
        for row in self._rows:
            row.stored += 1
        self._metrics.stepped(len(self._rows))
        self._take(0, choose(logits, [row.chooser for row in self._rows], self._model.eos))

    def _take(self, first: int, chosen: Sequence[Choice]) -> None:
        """Append a token to each row from `first` on, and remove the rows that end with it."""
        now = time.monotonic()
        ended = []
        for number, choice in enumerate(chosen, first):
            row = self._rows[number]
            self._metrics.generated(row.since(now), first=not row.tokens)
            piece = row.add(choice, now)
            if piece is not None:
                self._out.append((row.job, piece))
                if piece.finish is not None:
                    ended.append(number)
                    self._metrics.finished(piece.finish, now - row.job.born)
        for number in reversed(ended):
            self._remove(number, now - self._rows[number].job.born)

    def _remove(self, number: int, seconds: float | None = None) -> None:
        self._cache.remove(number)
        self._rows[number] = self._rows[-1]
        self._rows.pop()
        self._done(1, seconds)

    def _done(self, rows: int, seconds: float | None = None) -> None:
        with self._wake:
            self._waiting.done(rows, seconds)

    def _fail_all(self, error: Refused, *, also_waiting: bool = False) -> None:
        """Fail every running job, and start with an empty batch."""
        jobs = {id(row.job): row.job for row in self._rows}
        rows = len(self._rows)
        if self._prefill is not None:
            jobs |= {id(job): job for job in self._prefill.jobs}
            rows += self._prefill.rows
        self._done(rows)
        if also_waiting:
            with self._wake:
                while self._waiting.head() is not None:
                    job = self._waiting.pop()
                    jobs[id(job)] = job
                    self._waiting.done(job.choices)
        self._rows, self._prefill = [], None
        self._cache = self._empty()
        self._out += [(job, Piece(job.first, error=error)) for job in jobs.values()]
        self._metrics.failed(len(jobs))
