"""A team's apps as Prometheus sees them: healthy ones, and for each alert one with its cause."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from kaigen.catalog import yaml_files
from tests.cluster.apps import spec
from tests.cluster.client import Object
from tests.cluster.simulate import Course

IMAGE = "registry.example.com/work:1"
ENGINE_VERSION = "0.32.0"
METRICS: Mapping[str, str] = yaml_files.load("engines")["engines"]["vllm"]["metrics"]

_EVERY_MINUTE = "* * * * *"
_GATED = "gated"
_ENDLESS = "endless"
_FAILING = "failing"
_PERMANENT = 10
_RUNS = ("once", "several", "trained")

COURSES: Mapping[str, Course] = {
    _GATED: Course(hold_init="*"),
    _ENDLESS: Course(state="completed", delay=3600),
    _FAILING: Course(state="failed"),
    # What the downloader ends with if another try would fail, too: a Job retries others for ten minutes.
    f"{_FAILING}-weights": Course(state="failed", exit_code=_PERMANENT),
    "unready": Course(state="unready"),
    "stalled": Course(state="completed", delay=3600),
}
"""What becomes of the pods whose name begins so."""

EXPECTED: Mapping[str, frozenset[str]] = {
    "chat": frozenset(
        {
            *("NotReady", "Queue", "KvCache", "Preemptions", "FirstToken"),
            *("ErrorBudgetFast", "ErrorBudgetSlow", "TokenExpiring"),
        }
    ),
    "models": frozenset({"NotReady"}),
    "unready-lab": frozenset({"NotReady"}),
    "unready-pair": frozenset({"NotReady"}),
    **{f"{_FAILING}-{name}": frozenset({"JobFailed"}) for name in (*_RUNS, "weights")},
    **{f"{_ENDLESS}-{name}": frozenset({"JobStuck"}) for name in _RUNS},
    # A pod that waits is not ready, and its run does not end.
    **{f"{_GATED}-{name}": frozenset({"NotReady", "GateWaiting"}) for name in ("chat", "lab")},
    **{f"{_GATED}-{name}": frozenset({"GateWaiting", "JobStuck"}) for name in _RUNS},
    "stalled": frozenset({"DownloadStuck"}),
    "nightly": frozenset({"ScheduleMissed"}),
    f"{_FAILING}-nightly": frozenset({"ScheduleMissed", "JobFailed"}),
    # A run that does not end makes the next one late.
    f"{_ENDLESS}-nightly": frozenset({"ScheduleMissed", "JobStuck"}),
    f"{_GATED}-nightly": frozenset({"ScheduleMissed", "JobStuck", "GateWaiting"}),
    "kaigen-reaper": frozenset({"ReaperErrors", "ReaperDown"}),
}
"""The alerts of each app whose cause the test makes, without `Kaigen` in front."""


def specs(hub: str, expires: str, expires_in: int) -> tuple[list[Object], list[Object]]:
    """Return the apps that are healthy at first, and those that have a cause of an alert.

    Args:
        hub: URL of a Hub.
        expires: day on which the token of `chat` expires.
        expires_in: seconds until then at which its alert begins.
    """

    def monitoring(**rules: object) -> Object:
        # Otherwise a run is stuck after a day.
        return {"alerts": {"rules": {"jobStuck": {"above": 40}, "scheduleMissed": {"above": 15}, **rules}}}

    def model(name: str) -> Object:
        source = {"huggingFace": {"repo": "owner/name", "revision": "c0ffee" + "0" * 34, "endpoint": hub}}
        store = {"volume": {"size": "1Gi", "accessModes": ["ReadWriteMany"]}}
        return spec("Model", name, source=source, store=store, monitoring=monitoring(jobStuck={"enabled": False}))

    def topology(name: str, **fields: object) -> Object:
        whole = {"engineVersion": ENGINE_VERSION, "resources": {"gpus": 0}, "probes": {"startup": "10m"}}
        return spec("Topology", name, **{"monitoring": {"alerts": {}}, **whole, **fields})

    def job(name: str, **fields: object) -> Object:
        # That of a schedule starts again every minute.
        late = {"jobStuck": {"above": 20}} if "schedule" in fields else {}
        return spec("Job", name, image=IMAGE, retries=0, monitoring=monitoring(**late), **fields)

    def jobs(prefix: str, **fields: object) -> list[Object]:
        return [
            job(f"{prefix}once", **fields),
            job(f"{prefix}nightly", schedule=_EVERY_MINUTE, **fields),
            job(f"{prefix}several", nodes=2, groups="jobSet", **fields),
            job(f"{prefix}trained", nodes=2, groups="trainJob", **fields),
        ]

    def lab(name: str, **fields: object) -> Object:
        return spec("Notebook", name, monitoring={"alerts": {}}, **fields)

    def pair(name: str) -> Object:
        shape = {"nodes": 2, "pipelineParallel": 2, "groups": "leaderWorkerSet"}
        return topology(name, model={"folder": "/weights"}, shape=shape)

    chat = topology(
        "chat",
        model={"folder": "/weights"},
        shape={"replicas": 2},
        router={},
        monitoring={
            "alerts": {"expires": {"hf-token": expires}, "rules": {"tokenExpiring": {"above": expires_in}}},
            "slo": {"availability": "99.9%", "ttft": {"p95": "1500ms"}},
            "dashboard": {},
        },
    )
    both: Object = {"alerts": {}, "dashboard": {}}
    endpoint = spec("Endpoint", "models", models=["chat"], clients={"a": {"models": ["*"]}}, monitoring=both)
    healthy = [model("weights"), chat, endpoint, lab("lab"), pair("pair"), *jobs("")]
    broken = [
        model("stalled"),
        model(f"{_FAILING}-weights"),
        lab("unready-lab"),
        pair("unready-pair"),
        *jobs(f"{_FAILING}-"),
        *jobs(f"{_ENDLESS}-"),
        topology(f"{_GATED}-chat", model={"name": "weights"}),
        lab(f"{_GATED}-lab", models=["weights"]),
        *jobs(f"{_GATED}-", model="weights"),
    ]
    return healthy, broken


class Exporter:
    """Serves the metrics of an engine under the names of vLLM. A counter grows by its rate.

    Attributes:
        gauges: values by series.
        rates: growth a second by series.
    """

    def __init__(self, host: str, port: int) -> None:
        """Serve the metrics of an engine that has enough of everything.

        Args:
            host: address to listen on.
            port: the port.
        """
        self._totals: dict[str, float] = {}
        self._at = time.monotonic()
        self._lock = threading.Lock()
        self.gauges: dict[str, float] = {METRICS[name]: value for name, value in _GAUGES.items()}
        self.rates: dict[str, float] = dict(_RATES)
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

        self._server = ThreadingHTTPServer((host, port), Handler)
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self) -> None:
        """Stop the server."""
        self._server.shutdown()
        self._server.server_close()

    def set(self, gauges: Mapping[str, float], rates: Mapping[str, float]) -> None:
        """Change values and rates, by the names of the catalogue or by series."""
        with self._lock:
            self._count()
            self.gauges |= {METRICS[name]: value for name, value in gauges.items()}
            self.rates |= rates

    def text(self) -> str:
        """Return the metrics in the text format of Prometheus."""
        with self._lock:
            self._count()
            return "".join(f"{series} {value:g}\n" for series, value in (self.gauges | self._totals).items())

    def _count(self) -> None:
        now = time.monotonic()
        for series, rate in self.rates.items():
            self._totals[series] = self._totals.get(series, 0) + rate * (now - self._at)
        self._at = now


def answers(status: str) -> str:
    """Return the series of answers with a status, in the notation of the exporter."""
    return f'{METRICS["requests"]}{{handler="/v1/completions",method="POST",status="{status}"}}'


def first_tokens(limit: str) -> str:
    """Return the series of first tokens within a time."""
    return f'{METRICS["ttft"]}_bucket{{le="{limit}"}}'


_GAUGES = {"waiting": 0, "running": 3, "cache": 0.3}
_RATES = {
    METRICS["preemptions"]: 0.0,
    answers("2xx"): 20.0,
    answers("5xx"): 0.0,
    **{first_tokens(limit): 20.0 for limit in ("0.5", "1.0", "2.5", "+Inf")},
}


def overload(exporter: Exporter) -> None:
    """Let the engine have too many requests: they wait, are preempted, are late and fail."""
    late = {first_tokens(limit): 1.0 for limit in ("0.5", "1.0")}
    exporter.set({"waiting": 40, "cache": 0.99}, {METRICS["preemptions"]: 5.0, answers("5xx"): 5.0, **late})


def namespaces_and_names(objects: Sequence[Object], kind: str) -> list[str]:
    """Return the namespace and the name of each object of a kind, separated by a slash."""
    return [f"{each['metadata']['namespace']}/{each['metadata']['name']}" for each in objects if each["kind"] == kind]
