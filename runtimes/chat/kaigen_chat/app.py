"""All routes of the server, and their error responses."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import FastAPI, Request
from fastapi.exceptions import HTTPException
from fastapi.responses import PlainTextResponse, Response

from kaigen_chat import __version__, kaito_routes, openai_routes
from kaigen_chat.errors import Refused, not_serving
from kaigen_chat.http import OPEN, App, Gone, Guard, as_json, refusal
from kaigen_chat.keys import Keys
from kaigen_chat.metrics import CONTENT_TYPE
from kaigen_chat.service import Service

# Paths that are counted by their name.
_KEYED = frozenset({"/v1/chat/completions", "/v1/completions", "/v1/models", "/chat", "/generate"})


def build(service: Service, keys: Keys, max_body: int, probe_port: int | None = None) -> App:
    """The whole application.

    Args:
        service: what answers; started and stopped with the application.
        keys: one of these must be sent; none lets everybody in.
        max_body: most bytes of a request's body.
        probe_port: port that has the routes of probes only; None for none.
    """

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        service.start()
        yield
        service.stop()

    app = FastAPI(title="kaigen-chat", version=__version__, docs_url=None, redoc_url=None, lifespan=lifespan)
    app.include_router(openai_routes.router(service))
    app.include_router(kaito_routes.router(service))
    for route, handler in _health(service).items():
        app.add_api_route(route, handler, methods=["GET"])
    for kind, answer in (
        (Refused, _refused),
        (HTTPException, _http),
        (404, _http),
        (405, _http),
        (Gone, _gone),
        (Exception, _bug),
    ):
        app.add_exception_handler(kind, answer)
    return Guard(
        app, keys=keys, max_body=max_body, metrics=service.metrics, routes=OPEN | _KEYED, probe_port=probe_port
    )


def _health(service: Service) -> dict[str, object]:
    async def alive() -> Response:
        """Whether the engine runs: for liveness probes, and vLLM's and KAITO's route."""
        if not service.works:
            return refusal(not_serving("The engine does not run."))
        return as_json({"status": "Healthy"})

    async def ready() -> Response:
        """Return whether requests are accepted, for readiness probes."""
        if service.draining() or not service.works:
            return refusal(not_serving("The server takes no requests."))
        return as_json({"status": "Ready"})

    async def metrics() -> Response:
        return Response(service.metrics.text(), media_type=CONTENT_TYPE)

    async def home() -> Response:
        return PlainTextResponse("Server is running\n")

    return {"/": home, "/health": alive, "/healthz": alive, "/readyz": ready, "/metrics": metrics}


async def _refused(_: Request, error: Refused) -> Response:
    return refusal(error)


async def _http(request: Request, error: HTTPException) -> Response:
    what = {404: "There is no such route", 405: "This route has no such method"}.get(error.status_code)
    return refusal(Refused(error.status_code, f"{what or error.detail}: {request.method} {request.url.path}"))


async def _gone(_: Request, error: Gone) -> Response:
    return Response(status_code=499)


async def _bug(_: Request, error: Exception) -> Response:
    return refusal(Refused(500, "The server failed on this request.", kind="server_error"))
