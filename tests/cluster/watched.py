"""Servers of metrics for alerts: of an engine and of kube-state-metrics, with values that a test sets."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from kaigen.catalog import yaml_files

METRICS: Mapping[str, str] = yaml_files.load("engines")["engines"]["vllm"]["metrics"]


class Exporter:
    """Serves metrics on a port of loopback. A counter grows by its rate.

    Attributes:
        port: the port.
    """

    def __init__(self, gauges: Mapping[str, float], rates: Mapping[str, float] | None = None) -> None:
        """Serve.

        Args:
            gauges: values by series.
            rates: growth of counters a second, by series.
        """
        self._gauges, self._rates = dict(gauges), dict(rates or {})
        self._totals: dict[str, float] = {}
        self._at = time.monotonic()
        self._lock = threading.Lock()
        exporter = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                body = exporter.text().encode()
                self.send_response(200)
                self.send_header("Content-Type", "text/plain; version=0.0.4")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.port = self._server.server_port
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self) -> None:
        """Stop the server."""
        self._server.shutdown()
        self._server.server_close()

    def set(self, gauges: Mapping[str, float], rates: Mapping[str, float] | None = None) -> None:
        """Change values and rates."""
        with self._lock:
            self._count()
            self._gauges |= gauges
            self._rates |= rates or {}

    def text(self) -> str:
        """Return the metrics in the text format of Prometheus."""
        with self._lock:
            self._count()
            return "".join(f"{series} {value:.15g}\n" for series, value in (self._gauges | self._totals).items())

    def _count(self) -> None:
        now = time.monotonic()
        for series, rate in self._rates.items():
            self._totals[series] = self._totals.get(series, 0) + rate * (now - self._at)
        self._at = now


def answers(status: str) -> str:
    """Return the series of an engine's answers with a status."""
    return f'{METRICS["requests"]}{{handler="/v1/completions",method="POST",status="{status}"}}'


def first_tokens(limit: str) -> str:
    """Return the series of first tokens within a time."""
    return f'{METRICS["ttft"]}_bucket{{le="{limit}"}}'


def engine() -> Exporter:
    """Return the metrics of an engine that has enough of everything."""
    gauges = {METRICS["waiting"]: 0.0, METRICS["running"]: 3.0, METRICS["cache"]: 0.3}
    rates = {METRICS["preemptions"]: 0.0, answers("2xx"): 20.0, answers("5xx"): 0.0}
    return Exporter(gauges, rates | {first_tokens(limit): 20.0 for limit in ("0.5", "1.0", "2.5", "+Inf")})


def overload(exporter: Exporter) -> None:
    """Let an engine have too many requests: they wait, are preempted, are late and fail."""
    rates = {METRICS["preemptions"]: 5.0, answers("5xx"): 5.0, first_tokens("0.5"): 1.0, first_tokens("1.0"): 1.0}
    exporter.set({METRICS["waiting"]: 40.0, METRICS["cache"]: 0.99}, rates)


def series(name: str, **labels: str) -> str:
    """Return a series of kube-state-metrics in the namespace `ml`."""
    inner = ",".join(f'{key}="{value}"' for key, value in {"namespace": "ml", **labels}.items())
    return f"{name}{{{inner}}}"


def run(name: str, *, owner: str = "", failed: int = 0, active: int = 0, since: float = 0) -> dict[str, float]:
    """Return what kube-state-metrics says about a Job.

    Args:
        name: its name.
        owner: the CronJob that made it; empty for none.
        failed: whether it failed.
        active: its pods that run.
        since: Unix time at which it started.
    """
    found = {
        series("kube_job_status_start_time", job_name=name): since,
        series("kube_job_status_active", job_name=name): float(active),
        series("kube_job_failed", job_name=name, condition="true"): float(failed),
    }
    if owner:
        controller = {"owner_kind": "CronJob", "owner_name": owner, "owner_is_controller": "true"}
        found[series("kube_job_owner", job_name=name, **controller)] = 1
    return found


def replicas(kind: str, name: str, wanted: int, ready: int) -> dict[str, float]:
    """Return what kube-state-metrics says about a Deployment or a StatefulSet."""
    if kind == "Deployment":
        names = ("kube_deployment_spec_replicas", "kube_deployment_status_replicas_available")
    else:
        names = ("kube_statefulset_replicas", "kube_statefulset_status_replicas_ready")
    label = {kind.lower(): name}
    return {series(names[0], **label): float(wanted), series(names[1], **label): float(ready)}


def gate(pod: str, container: str, waits: int) -> dict[str, float]:
    """Return what kube-state-metrics says about an init container."""
    return {series("kube_pod_init_container_status_running", pod=pod, container=container, uid="0"): float(waits)}
