"""A collector of traces that keeps what it gets, for OTLP over gRPC and over HTTP."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import grpc  # type: ignore[import-untyped, unused-ignore]
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2 as service
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2_grpc as rpc


@dataclass(frozen=True)
class Span:
    """A span.

    Attributes:
        service: name of the service that sent it.
        name: its name.
        trace: identifier of its trace.
        identifier: its own.
        parent: identifier of the span that it is a part of; empty for none.
        attributes: what it says, as text.
    """

    service: str
    name: str
    trace: str
    identifier: str
    parent: str
    attributes: dict[str, str] = field(hash=False)


@dataclass
class Collector:
    """The spans that have arrived.

    Attributes:
        grpc: URL for gRPC.
        http: URL for HTTP.
        spans: the spans.
    """

    grpc: str = ""
    http: str = ""
    spans: list[Span] = field(default_factory=list)

    def take(self, request: Any) -> None:
        """Keep the spans of a request."""
        for resource in request.resource_spans:
            name = _attributes(resource.resource.attributes).get("service.name", "")
            for scope in resource.scope_spans:
                self.spans += [
                    Span(
                        name,
                        span.name,
                        span.trace_id.hex(),
                        span.span_id.hex(),
                        span.parent_span_id.hex(),
                        _attributes(span.attributes),
                    )
                    for span in scope.spans
                ]

    def of(self, service: str) -> list[Span]:
        """Return the spans of a service."""
        return [span for span in list(self.spans) if span.service == service]


def _attributes(given: Any) -> dict[str, str]:
    values = ((each.key, each.value) for each in given)
    return {key: str(getattr(value, value.WhichOneof("value"))) for key, value in values if value.WhichOneof("value")}


class _Grpc(rpc.TraceServiceServicer):  # type: ignore[misc, unused-ignore]
    def __init__(self, collector: Collector) -> None:
        self._collector = collector

    def Export(self, request: Any, _context: Any) -> Any:
        self._collector.take(request)
        return service.ExportTraceServiceResponse()


@contextmanager
def collecting(host: str = "127.0.0.1") -> Iterator[Collector]:
    """Collect spans during the block.

    Args:
        host: address to listen on.
    """
    collector = Collector()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self._body()
            found = self.path == "/v1/traces"
            if found:
                collector.take(service.ExportTraceServiceRequest.FromString(body))
            self.send_response(200 if found else 404)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def _body(self) -> bytes:
            if "Content-Length" in self.headers:
                return self.rfile.read(int(self.headers["Content-Length"]))
            parts = []
            while size := int(self.rfile.readline(), 16):
                parts.append(self.rfile.read(size))
                self.rfile.readline()
            self.rfile.readline()
            return b"".join(parts)

        def log_message(self, *_: object) -> None:
            pass

    over_http = ThreadingHTTPServer((host, 0), Handler)
    threading.Thread(target=over_http.serve_forever, daemon=True).start()
    over_grpc = grpc.server(ThreadPoolExecutor(4))
    rpc.add_TraceServiceServicer_to_server(_Grpc(collector), over_grpc)  # type: ignore[no-untyped-call, unused-ignore]
    port = over_grpc.add_insecure_port(f"{host}:0")
    over_grpc.start()
    collector.grpc = f"http://{host}:{port}"
    collector.http = f"http://{host}:{over_http.server_port}/v1/traces"
    try:
        yield collector
    finally:
        over_grpc.stop(None)
        over_http.shutdown()
        over_http.server_close()
