"""Traces of the emitted configurations of Envoy, as a collector of OTLP gets them from the real Envoy."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import yaml

from kaigen.compile.builders.envoy_telemetry import with_traces
from kaigen.compile.endpoint.envoy import ASKED
from kaigen.compile.topology.router_config import engines_cluster, plain_config
from kaigen.kinds.monitoring import Traces
from kaigen.pipeline.run import Run
from kaigen.yaml.dump import dump
from tests.cluster import test_endpoint as endpoint
from tests.cluster import test_router as router
from tests.cluster.envoy import locate_envoy
from tests.otlp import Collector, Span, collecting

pytestmark = pytest.mark.engine

PROTOCOLS = ["grpc", "http/protobuf"]
HOST = "otel-collector.monitoring"
CLIENT = "4bf92f3577b34da6a3ce929d0e0e4736"
"""Identifier of the trace of a client."""


class Engine(router.Handler):
    """Answers with the trace that it should go on with."""

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["content-length"]))
        self.answer({"traceparent": self.headers.get("traceparent", "")})


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    """What a test starts, which ends with it."""
    with ExitStack() as stack:
        yield stack


@pytest.fixture
def collector() -> Iterator[Collector]:
    """A collector."""
    with collecting() as running:
        yield running


def block(protocol: str) -> str:
    """Return the field of a spec."""
    port, path = (4317, "") if protocol == "grpc" else (4318, "/v1/traces")
    return f"monitoring: {{traces: {{endpoint: 'http://{HOST}:{port}{path}', protocol: {protocol}}}}}"


def found_at(collector: Collector, protocol: str, text: str) -> str:
    """Return a configuration of Envoy with the address of the collector, which has no name here."""
    config = yaml.safe_load(text)
    (cluster,) = [each for each in config["static_resources"]["clusters"] if each["name"] == "traces"]
    (group,) = cluster["load_assignment"]["endpoints"]
    address = group["lb_endpoints"][0]["endpoint"]["address"]["socket_address"]
    assert address["address"] == HOST
    url = urlsplit(collector.grpc if protocol == "grpc" else collector.http)
    address.update(address=url.hostname, port_value=url.port)
    return json.dumps(config)


def span_of(collector: Collector, service: str, trace: str) -> Span:
    """Wait for the span of a service in a trace."""
    found: list[Span] = []

    def arrived() -> bool:
        found[:] = [span for span in collector.of(service) if span.trace == trace]
        return bool(found)

    router.until(arrived)
    return found[0]


def traceparent(answer: Any) -> tuple[str, str]:
    """Return the identifiers of trace and span that an engine got."""
    version, trace, span, flags = answer["traceparent"].split("-")
    assert (version, flags) == ("00", "01")
    return trace, span


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_an_endpoint_sends_a_span_and_gives_its_trace_to_the_engine(
    stack: ExitStack, collector: Collector, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, protocol: str
) -> None:
    monkeypatch.setattr(endpoint, "Engine", Engine)
    monkeypatch.setattr(endpoint, "SPECS", endpoint.SPECS.replace("monitoring: {}", block(protocol)))
    rendered = endpoint.rendered

    def with_address(folder: Path) -> tuple[Mapping[str, str], str]:
        data, clusters = rendered(folder)
        return {**data, "envoy.yaml": found_at(collector, protocol, data["envoy.yaml"])}, clusters

    monkeypatch.setattr(endpoint, "rendered", with_address)
    endpoint.Running(stack, locate_envoy(), tmp_path)
    status, answer = endpoint.ask({"model": "chat"}, path=f"{ASKED[0]}?x=1")
    trace, sent = traceparent(answer)
    span = span_of(collector, "models", trace)
    assert (status, span.identifier, span.attributes["http.status_code"]) == (200, sent, "200")
    status, answer = endpoint.ask({"model": "chat"}, traceparent=f"00-{CLIENT}-00f067aa0ba902b7-01")
    assert traceparent(answer)[0] == CLIENT
    assert span_of(collector, "models", CLIENT).parent == "00f067aa0ba902b7"
    assert "key-of" not in str(collector.spans)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_router_sends_a_span_and_gives_its_trace_to_the_engine(
    stack: ExitStack, collector: Collector, tmp_path: Path, protocol: str
) -> None:
    spec = (
        "apiVersion: kaigen.dev/v1alpha1\nkind: Topology\nmetadata: {name: chat}\nspec:\n"
        "  model: {folder: /weights}\n  engineVersion: 0.32.0\n  resources: {gpus: 1}\n"
        f"  shape: {{replicas: 2}}\n  router: {{}}\n  {block(protocol)}\n"
    )
    (tmp_path / "specs.yaml").write_text(spec)
    run = Run.load([str(tmp_path / "specs.yaml")], use_cache=False)
    bodies = [each.body for app in run.apps() for each in app.app.render()]
    (text,) = [body["data"]["envoy.yaml"] for body in bodies if "envoy.yaml" in body.get("data", {})]
    config = json.loads(found_at(collector, protocol, text))
    config["static_resources"]["listeners"][0]["address"]["socket_address"]["port_value"] = router.PORT
    router.serve(stack, (router.HOSTS[0], router.ENGINE_PORT), Engine)
    (tmp_path / "envoy.yaml").write_text(json.dumps(config))
    command = [str(locate_envoy()), "--config-path", str(tmp_path / "envoy.yaml"), "--disable-hot-restart"]
    command += ["--config-yaml", engines_cluster(router.HOSTS[0], router.ENGINE_PORT), "--log-level", "error"]
    router.start(stack, [*command, "--concurrency", "2"], tmp_path / "envoy.log", dict(os.environ))
    # No picker runs here: the router passes requests on without one.
    router.until(lambda: router.ask({})[0] == 200)
    status, answer = router.ask({}, headers={"traceparent": f"00-{CLIENT}-00f067aa0ba902b7-01"})
    trace, sent = traceparent(answer)
    assert (status, trace) == (200, CLIENT)

    def spans() -> list[Span]:
        return [span for span in collector.of("chat-router") if span.trace == trace]

    router.until(lambda: "00f067aa0ba902b7" in {span.parent for span in spans()})
    # The span of the call to the picker is one, too.
    assert sent in {span.identifier for span in spans()}


def test_envoy_accepts_a_collector_with_tls(tmp_path: Path) -> None:
    traces = Traces(endpoint="https://otel.example.com/v1/traces", protocol="http/protobuf")
    (tmp_path / "envoy.yaml").write_text(dump(with_traces(plain_config(keys="", hold=0), traces, "chat-router")))
    command = [str(locate_envoy()), "--mode", "validate", "--config-path", str(tmp_path / "envoy.yaml")]
    command += ["--config-yaml", engines_cluster(router.HOSTS[0], router.ENGINE_PORT, plain=True)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
