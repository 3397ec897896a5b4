"""`python -m benchmarks.serving`: ask the real vLLM while it is rolled out, drained, scaled up, and loses a replica.

vLLM serves a tiny model on the CPU of a real node, behind what kaigen renders. Uses the node of the cluster tests,
which needs root: build it first with `make cluster-tools` (`make bench-serving` does).
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from benchmarks import serving_client
from tests.cluster.apps import POD, client_pod, compiled, find
from tests.cluster.client import Object, is_true
from tests.cluster.node import NAME, Node
from tests.cluster.processes import wait_until
from tests.cluster.tiny_llama import base_files
from tests.cluster.traefik import CLASS, Traefik
from tests.cluster.vllm_app import CONTEXT, model, start_hub, topology
from tests.cluster.vllm_image import vllm_image

APP = "chat"
HOST = "chat.test"
LOST = "lost replica"
_DEPLOYMENT = "apps/v1/Deployment"
_LABEL = f"app.kubernetes.io/name={APP}"
_TIMEOUT = 900
_CALM = 10
"""Seconds between two disturbances."""


@dataclass(frozen=True, slots=True)
class Request:
    """A request of a client.

    Attributes:
        client: name of the client.
        start: when it was sent.
        first: when the first part of the answer arrived; None without an answer.
        end: when it ended.
        outcome: `whole`, `cut` or `lost`.
        detail: what went wrong, or that the request was sent again.
    """

    client: str
    start: float
    first: float | None
    end: float
    outcome: str
    detail: str


@dataclass(frozen=True, slots=True)
class Disturbance:
    """Something that happened to the app.

    Attributes:
        name: what.
        start: when it began.
        end: when all replicas were ready, and no other pod was left.
    """

    name: str
    start: float
    end: float

    def overlaps(self, request: Request) -> bool:
        """Return whether a request was in flight meanwhile."""
        return request.start <= self.end and request.end >= self.start


@dataclass(frozen=True, slots=True)
class Result:
    """What the clients saw.

    Attributes:
        requests: their requests.
        disturbances: what happened, in order.
        probe_seconds: after how long the readiness probe notices a replica that does not answer.
    """

    requests: Sequence[Request]
    disturbances: Sequence[Disturbance]
    probe_seconds: float

    def failed(self) -> list[Request]:
        """Return the requests without a whole answer."""
        return [each for each in self.requests if each.outcome != "whole"]

    def unexcused(self) -> list[Request]:
        """Return the failed requests that no replica was lost with, or that came after its probe had noticed."""
        lost = [each for each in self.disturbances if each.name == LOST]
        return [
            request
            for request in self.failed()
            if not any(request.end >= each.start and request.start <= each.start + self.probe_seconds for each in lost)
        ]


@dataclass(slots=True)
class Serving:
    """The app on a node.

    Attributes:
        node: where it runs.
        folder: for its spec.
        namespace: its namespace.
        specs: specs of what it needs.
        fields: fields of its Topology.
    """

    node: Node
    folder: Path
    namespace: str
    specs: Sequence[Object]
    fields: dict[str, Any] = field(default_factory=dict)

    def apply(self, **fields: Any) -> None:
        """Render the app with changed fields and apply it, as a commit would."""
        self.fields |= fields
        specs = [*self.specs, topology(APP, "tiny", **self.fields)]
        for app in compiled(self.folder, specs, self.namespace, "generic").values():
            for rendered in app.objects:
                self.node.client.apply(rendered.body)

    def deployment(self) -> Object:
        """Return the Deployment as rendered."""
        specs = [*self.specs, topology(APP, "tiny", **self.fields)]
        return find(compiled(self.folder, specs, self.namespace, "generic")[APP], "Deployment")

    def pods(self) -> list[Object]:
        """Return the app's pods, also those that are ending."""
        return self.node.client.objects(POD, self.namespace, _LABEL)

    def settle(self) -> None:
        """Wait until all replicas of the newest version are ready, and no other pod is left."""
        replicas = self.fields["shape"]["replicas"]

        def settled() -> bool:
            status = self.node.client.get(_DEPLOYMENT, APP, self.namespace)
            pods = self.pods()
            return (
                status.get("status", {}).get("observedGeneration") == status["metadata"]["generation"]
                and status["status"].get("updatedReplicas") == status["status"].get("readyReplicas") == replicas
                and len(pods) == replicas
                and all(is_true(pod, "Ready") for pod in pods)
            )

        wait_until(settled, f"{replicas} replicas are ready", _TIMEOUT, every=0.5)


def roll_out(app: Serving) -> None:
    """Deploy a changed pod."""
    app.apply(env={**app.fields["env"], "ROLLOUT": str(time.time())})


def drain(app: Serving) -> None:
    """Drain the node, as before an upgrade. Another has room for the pods: the same one, once it is free again."""
    command = ["drain", NAME, "--ignore-daemonsets", "--delete-emptydir-data", f"--timeout={_TIMEOUT}s"]
    names = {pod["metadata"]["name"] for pod in app.pods()}
    argv = [str(app.node.program("kubectl")), *command, "--pod-selector", _LABEL]
    argv.append(f"--kubeconfig={app.node.kubeconfig}")
    with subprocess.Popen(
        app.node.network.command(argv), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        try:
            wait_until(lambda: any("deletionTimestamp" in pod["metadata"] for pod in app.pods()), "a pod is evicted")
            app.node.run("kubectl", "uncordon", NAME)
            printed, _ = process.communicate(timeout=_TIMEOUT)
        finally:
            process.kill()
    assert process.returncode == 0, printed
    assert not names & {pod["metadata"]["name"] for pod in app.pods()}, printed


def scale_up(app: Serving) -> None:
    """Add a replica."""
    app.apply(shape={"replicas": app.fields["shape"]["replicas"] + 1})


def scale_down(app: Serving) -> None:
    """Remove a replica."""
    app.apply(shape={"replicas": app.fields["shape"]["replicas"] - 1})


def lose(app: Serving) -> None:
    """Kill the processes of a replica, as when memory runs out."""
    pod = app.pods()[0]
    (status,) = pod["status"]["containerStatuses"]
    app.node.ctr("tasks", "kill", "--signal", "SIGKILL", status["containerID"].removeprefix("containerd://"))
    started = status["containerID"]
    wait_until(
        lambda: all(each["status"]["containerStatuses"][0].get("containerID") != started for each in app.pods()),
        "the container starts again",
    )


DISTURBANCES: Sequence[tuple[str, Callable[[Serving], None]]] = (
    ("rollout", roll_out),
    ("drain", drain),
    ("scale-up", scale_up),
    (LOST, lose),
    ("scale-down", scale_down),
)


def measure(node: Node, folder: Path, namespace: str, seconds: float, *, route: bool = False) -> Result:
    """Serve, ask, and disturb.

    Args:
        node: with Traefik if clients use the route.
        folder: for specs.
        namespace: an existing namespace.
        seconds: shortest time of the requests. The disturbances are repeated until then, each at least once.
        route: whether more clients ask through an HTTPRoute.

    Raises:
        TimeoutError: the app was not ready in time.
        AssertionError: a disturbance did not happen as it should.
    """
    node.import_image(vllm_image())
    hub = start_hub(node, base_files(context=CONTEXT))
    try:
        app = Serving(node, folder, namespace, [model("tiny", hub)])
        app.apply(
            env={"VLLM_CPU_KVCACHE_SPACE": "1"},
            shape={"replicas": 2},
            drain="30s",
            **({"route": {"host": HOST, "gateway": {"className": CLASS}}} if route else {}),
        )
        app.settle()
        probe = app.deployment()["spec"]["template"]["spec"]["containers"][0]["readinessProbe"]
        noticed = probe["periodSeconds"] * probe["failureThreshold"] + probe["timeoutSeconds"]
        with _clients(app, route=route) as requests:
            disturbances = list(_disturb(app, seconds))
        return Result(requests, disturbances, noticed)
    finally:
        hub.__exit__()


def _disturb(app: Serving, seconds: float) -> Iterator[Disturbance]:
    end = time.time() + seconds
    first = True
    while first or time.time() < end:
        for name, disturb in DISTURBANCES:
            time.sleep(_CALM)
            start = time.time()
            disturb(app)
            app.settle()
            yield Disturbance(name, start, time.time())
            if not first and time.time() >= end:
                break
        first = False
    time.sleep(_CALM)


@contextmanager
def _clients(app: Serving, *, route: bool) -> Iterator[list[Request]]:
    """Run the clients in a pod; the list is filled when they have ended."""
    node = app.node
    targets = {"Service": (APP, APP), **({"route": (node.network.host, HOST)} if route else {})}
    pod = client_pod("")
    (container,) = pod["spec"]["containers"]
    container["command"] = ["python", "-c", Path(serving_client.__file__).read_text(), json.dumps(targets)]
    name = node.client.create(pod, app.namespace)["metadata"]["name"]
    node.client.wait(POD, name, app.namespace, lambda found: found["status"]["phase"] == "Running", "running")
    requests: list[Request] = []
    yield requests
    node.run("kubectl", "exec", "--namespace", app.namespace, name, "--", "touch", str(serving_client.STOP))
    node.client.wait(POD, name, app.namespace, lambda found: found["status"]["phase"] == "Succeeded", "over")
    printed = node.run("kubectl", "logs", "--namespace", app.namespace, name).stdout
    requests += [Request(**json.loads(line)) for line in printed.splitlines()]


def _percentiles(seconds: Sequence[float]) -> str:
    """Return the median and the 99th percentile."""
    if len(seconds) < 2:
        return "too few"
    cuts = statistics.quantiles(seconds, n=100, method="inclusive")
    return f"p50 {cuts[49]:.2f} s, p99 {cuts[98]:.2f} s"


def _counts(requests: Sequence[Request]) -> str:
    counts = {outcome: sum(each.outcome == outcome for each in requests) for outcome in ("lost", "cut")}
    retried = sum(each.detail == serving_client.RETRIED for each in requests)
    whole = [each.end - each.start for each in requests if each.outcome == "whole"]
    return (
        f"{len(requests)} requests, {counts['lost']} lost, {counts['cut']} cut, {retried} sent again, "
        f"{_percentiles(whole)}"
    )


def as_text(result: Result) -> str:
    """Return a result for a terminal."""
    requests = result.requests
    began = min(each.start for each in requests)
    lines = [f"{max(each.end for each in requests) - began:.0f} s: {_counts(requests)}"]
    first = [each.first - each.start for each in requests if each.first is not None and "streamed" in each.client]
    lines.append(f"  first part of a streamed answer: {_percentiles(first)}")
    for each in result.disturbances:
        seen = [request for request in requests if each.overlaps(request)]
        lines.append(f"  {each.name} at {each.start - began:.0f} s, for {each.end - each.start:.0f} s: {_counts(seen)}")
    for client in sorted({each.client for each in requests}):
        lines.append(f"  {client}: {_counts([each for each in requests if each.client == client])}")
    for request in result.failed():
        lines.append(
            f"  {request.outcome} at {request.end - began:.1f} s, sent at {request.start - began:.1f} s, "
            f"{request.client}: {request.detail}"
        )
    return "\n".join(lines)


def main() -> int:
    """Run the benchmark.

    Returns:
        0 if no request failed except those of a lost replica, else 1.
    """
    parser = argparse.ArgumentParser(prog="python -m benchmarks.serving", description=__doc__)
    parser.add_argument(
        "--seconds", type=float, default=600, metavar="S", help="shortest time of the requests (default: 600)"
    )
    parser.add_argument("--route", action="store_true", help="ask through an HTTPRoute of Traefik, too")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write each request to a file")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="kaigen-bench-") as scratch, Node(images=["downloader"]) as node:
        if options.route:
            Traefik(node)
        node.make_namespace("serving")
        result = measure(node, Path(scratch), "serving", options.seconds, route=options.route)
    print(as_text(result))
    if options.json:
        options.json.write_text(json.dumps([asdict(each) for each in result.requests]))
    return 1 if result.unexcused() else 0


if __name__ == "__main__":
    sys.exit(main())
