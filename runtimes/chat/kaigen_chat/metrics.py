"""Prometheus metrics, with vLLM's names where autoscalers use them, so that rules work with both engines."""

from __future__ import annotations

from collections.abc import Callable

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, disable_created_metrics, generate_latest

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

_SECONDS = (0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 60, 120, 300)
_ROWS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)


class Metrics:
    """All counters of one server."""

    def __init__(self, model: str, version: str) -> None:
        disable_created_metrics()
        self.registry = CollectorRegistry()
        self._model = model
        label = ["model_name"]

        def counter(name: str, about: str, *more: str) -> Counter:
            return Counter(name, about, [*label, *more], registry=self.registry)

        def histogram(name: str, about: str, buckets: tuple[float, ...] = _SECONDS) -> Histogram:
            return Histogram(name, about, label, buckets=buckets, registry=self.registry).labels(model)

        info = Gauge("kaigen_chat_info", "1, with the version", [*label, "version"], registry=self.registry)
        info.labels(model, version).set(1)
        self._prompt = counter("vllm:prompt_tokens", "Tokens of prompts that were read").labels(model)
        self._generated = counter("vllm:generation_tokens", "Tokens that were generated").labels(model)
        self._success = counter("vllm:request_success", "Answers by why they ended", "finished_reason")
        self._cancelled = counter("kaigen_chat_cancelled", "Answers nobody waited for any more").labels(model)
        self._failed = counter("kaigen_chat_failed", "Requests on which the model failed").labels(model)
        self._http = Counter("kaigen_chat_http_requests", "HTTP requests", ["route", "code"], registry=self.registry)
        self._first = histogram("vllm:time_to_first_token_seconds", "From the request to its first token")
        self._between = histogram("vllm:inter_token_latency_seconds", "Between two tokens of an answer")
        self._whole = histogram("vllm:e2e_request_latency_seconds", "From the request to the end of an answer")
        self._queue = histogram("vllm:request_queue_time_seconds", "From the request to its turn")
        self._batch = histogram("kaigen_chat_batch_rows", "Rows of a step", _ROWS)

    def watch(
        self,
        running: Callable[[], float],
        waiting: Callable[[], float],
        cache: Callable[[], float],
        cache_bytes: Callable[[], float],
    ) -> None:
        """Set the sources of the gauges."""
        for name, about, read in (
            ("vllm:num_requests_running", "Answers that are generated now", running),
            ("vllm:num_requests_waiting", "Answers that wait for their turn", waiting),
            ("vllm:kv_cache_usage_perc", "Share of the KV cache in use, 0 to 1", cache),
            ("kaigen_chat_kv_cache_bytes", "Bytes that are held for the KV cache", cache_bytes),
        ):
            Gauge(name, about, ["model_name"], registry=self.registry).labels(self._model).set_function(read)

    def text(self) -> bytes:
        """Return the metrics in Prometheus text format."""
        out: bytes = generate_latest(self.registry)
        return out

    def queued(self, seconds: float) -> None:
        """Count a job that starts."""
        self._queue.observe(seconds)

    def prompted(self, tokens: int) -> None:
        """Count prompts that were read."""
        self._prompt.inc(tokens)

    def generated(self, seconds: float, *, first: bool) -> None:
        """Count a token, with the time since the last one or since the request."""
        self._generated.inc()
        (self._first if first else self._between).observe(seconds)

    def stepped(self, rows: int) -> None:
        """Count a step of the batch."""
        self._batch.observe(rows)

    def finished(self, reason: str, seconds: float) -> None:
        """Count a finished answer."""
        self._success.labels(self._model, reason).inc()
        self._whole.observe(seconds)

    def cancelled(self, rows: int) -> None:
        """Count cancelled answers."""
        self._cancelled.inc(rows)

    def failed(self, jobs: int) -> None:
        """Count failed requests."""
        self._failed.inc(jobs)

    def answered(self, route: str, code: int) -> None:
        """Count an HTTP response."""
        self._http.labels(route, str(code)).inc()
