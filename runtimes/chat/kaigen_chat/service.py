"""Connects the event loop, which handles requests, with the engine's thread."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from types import TracebackType
from typing import TypeVar

from kaigen_chat.engine import Delivery, Engine, Limits
from kaigen_chat.errors import bad_request, not_serving
from kaigen_chat.job import Job, Piece
from kaigen_chat.metrics import Metrics
from kaigen_chat.model import LanguageModel

T = TypeVar("T")


class Answer:
    """The results of one request. Used as a context: leaving it early frees the resources of its jobs.

    Attributes:
        prompt_tokens: of all prompts together.
        choices: how many answers there will be.
    """

    def __init__(self, service: Service, jobs: Sequence[Job]) -> None:
        self.prompt_tokens = sum(len(job.prompt) for job in jobs)
        self.choices = sum(job.choices for job in jobs)
        self.completion_tokens = 0
        self._service = service
        self._jobs = jobs
        self._open = self.choices
        self._pieces: list[Piece] = []
        self._news = asyncio.Event()

    def put(self, piece: Piece) -> None:
        """Add a piece; called from the event loop's thread."""
        self._pieces.append(piece)
        self._news.set()

    async def next(self) -> list[Piece]:
        """The pieces since the last call, one at least; none when all answers are complete.

        Raises:
            Refused: the engine failed.
        """
        if not self._open:
            return []
        while not self._pieces:
            self._news.clear()
            await self._news.wait()
        pieces, self._pieces = self._pieces, []
        for piece in pieces:
            if piece.error is not None:
                raise piece.error
            self.completion_tokens += piece.tokens
            self._open -= piece.finish is not None
        return pieces

    async def whole(self) -> list[Piece]:
        """Return all answers by number, for jobs that are not streamed."""
        pieces: list[Piece] = []
        while more := await self.next():
            pieces += more
        return sorted(pieces, key=lambda piece: piece.choice)

    def close(self) -> None:
        """The client has disconnected."""
        self._service.forget(self._jobs, cancel=self._open > 0)
        self._open = 0

    def __enter__(self) -> Answer:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class Service:
    """One model, served.

    Args:
        model: what answers.
        limits: the limits of the engine.
        metrics: where it counts.
        name: what clients call the model.
        draining: returns whether the server is shutting down and accepts no more requests.
    """

    def __init__(
        self, model: LanguageModel, limits: Limits, metrics: Metrics, name: str, draining: Callable[[], bool]
    ) -> None:
        self.model = model
        self.limits = limits
        self.metrics = metrics
        self.name = name
        self.draining = draining
        self._answers: dict[Job, Answer] = {}
        self._loop: asyncio.AbstractEventLoop | None = None
        self._engine = Engine(model, limits, metrics, self._deliver)
        # One thread: some tokenizers are not to be used for encoding by two at once.
        self._reader = ThreadPoolExecutor(1, "tokenizer")

    def start(self) -> None:
        """Start the engine; call it in the event loop."""
        self._loop = asyncio.get_running_loop()
        self._engine.start()

    def stop(self) -> None:
        """Stop it."""
        self._engine.stop()
        self._reader.shutdown()

    @property
    def works(self) -> bool:
        """Whether the engine runs."""
        return self._engine.works

    async def read(self, parse: Callable[[], T]) -> T:
        """Run a function that needs the tokenizer, outside the event loop."""
        return await asyncio.get_running_loop().run_in_executor(self._reader, parse)

    def check(self, prompt: Sequence[int], max_tokens: int | None, param: str, choices: int = 1) -> int:
        """Return the maximum length of an answer to a prompt.

        Args:
            prompt: its tokens.
            max_tokens: what the request says.
            param: the field that the prompt came from.
            choices: how many answers are asked for.

        Raises:
            Refused: there is no room for an answer, or for one of that length, or a token is none of the model's.
        """
        if not prompt:
            raise bad_request("The prompt is empty", param)
        if max(prompt) >= self.model.vocabulary:
            raise bad_request(f"The model has no token {max(prompt)}", param)
        room = self.model.context - len(prompt)
        if room < 1:
            raise self._too_long(f"the prompt alone has {len(prompt)}", param)
        if max_tokens is not None and max_tokens > room:
            raise self._too_long(f"the prompt has {len(prompt)}, and max_tokens asks for {max_tokens} more", param)
        if max_tokens is not None:
            return max_tokens
        return max(1, self.span(choices) - len(prompt))

    def span(self, choices: int = 1) -> int:
        """Most tokens of a prompt and each of its answers, as long as the request does not ask for more."""
        return min(self.model.context, self.limits.cache_tokens // choices)

    def _too_long(self, what: str, param: str) -> Exception:
        return bad_request(
            f"The context of this model is {self.model.context} tokens: {what}", param, "context_length_exceeded"
        )

    def ask(self, jobs: Sequence[Job]) -> Answer:
        """Queue the jobs of one request, all or none.

        Raises:
            Refused: the queue is full, the request never fits, or the server is about to end.
        """
        if self.draining():
            raise not_serving("The server is about to end.")
        for job in jobs:
            self._check_fits(job)
        if sum(job.choices for job in jobs) > self.limits.most:
            raise bad_request(f"This server takes at most {self.limits.most} answers in one request", "n")
        answer = Answer(self, jobs)
        for job in jobs:
            self._answers[job] = answer
        try:
            self._engine.submit(jobs)
        except BaseException:
            self.forget(jobs, cancel=False)
            raise
        return answer

    def _check_fits(self, job: Job) -> None:
        if job.choices > self.limits.rows:
            raise bad_request(f"This server generates at most {self.limits.rows} answers at once", "n")
        if job.choices * job.most > self.limits.cache_tokens:
            raise bad_request(
                f"{job.choices} × {job.most} tokens are more than the {self.limits.cache_tokens} this server keeps",
                "max_tokens",
            )
        bad = [
            token
            for token in (*(token for token, _ in job.sampling.logit_bias), *job.sampling.stop_tokens)
            if token >= self.model.vocabulary
        ]
        if bad:
            raise bad_request(f"The model has no token {bad[0]}")

    def forget(self, jobs: Sequence[Job], *, cancel: bool) -> None:
        """Count jobs whose client has disconnected; `cancel` if the engine may still work on them."""
        for job in jobs:
            self._answers.pop(job, None)
        if cancel:
            self._engine.cancel(jobs)

    def _deliver(self, deliveries: Sequence[Delivery]) -> None:
        loop = self._loop
        if loop is not None and not loop.is_closed():
            loop.call_soon_threadsafe(self._hand_out, deliveries)

    def _hand_out(self, deliveries: Sequence[Delivery]) -> None:
        for job, piece in deliveries:
            answer = self._answers.get(job)
            if answer is not None:
                answer.put(piece)
