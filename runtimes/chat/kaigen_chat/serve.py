"""Runs the server: loads the model, listens, and stops on a signal."""

from __future__ import annotations

import signal
import socket
import sys
import time
from collections.abc import Callable

import uvicorn

from kaigen_chat import __version__
from kaigen_chat.app import build
from kaigen_chat.connections import RECEIVE_BUFFER, Connection, allow_connections
from kaigen_chat.engine import Limits
from kaigen_chat.errors import BadSettings
from kaigen_chat.keys import Keys
from kaigen_chat.metrics import Metrics
from kaigen_chat.model import LanguageModel
from kaigen_chat.service import Service
from kaigen_chat.settings import Settings, flag

_SWITCH = 0.0005  # seconds
_KEEP_ALIVE = 620
"""Seconds without a request after which a connection is closed: more than proxies keep one, which then close it."""


def serve(settings: Settings, keys: Keys, say: Callable[[str], None]) -> None:
    """Serve until SIGTERM or SIGINT, then finish running answers.

    Args:
        settings: what to serve, and how.
        keys: one of these must be sent; none lets everybody in.
        say: prints one line.

    Raises:
        Failure: the server cannot start.
    """
    allow_connections()
    listeners = [_listen(settings.host, settings.port, "port")]
    if settings.probe_port is not None:
        listeners.append(_listen(settings.host, settings.probe_port, "probe_port"))
        Connection.probe_port = listeners[-1].getsockname()[1]
    began = time.monotonic()
    model = LanguageModel(settings)
    name = settings.served_model_name or settings.model.resolve().name
    limits = Limits(
        rows=settings.max_num_seqs,
        queue=settings.max_queue,
        cache_tokens=settings.max_cache_tokens or settings.max_num_seqs * model.context,
        chunk=settings.prefill_chunk,
    )
    say(_summary(name, model, limits, time.monotonic() - began))
    if not keys.required:
        say("no API key is set: everybody who reaches the port may use the model")
    # The engine gives up the interpreter's lock in every operation of PyTorch and would wait up to 5 ms, the
    # default, to get it back while requests are handled.
    sys.setswitchinterval(_SWITCH)
    server: uvicorn.Server
    service = Service(model, limits, Metrics(name, __version__), name, lambda: bool(server.should_exit))
    server = uvicorn.Server(
        uvicorn.Config(
            build(service, keys, settings.max_body, Connection.probe_port),
            http=Connection,
            log_level=settings.log_level,
            access_log=settings.log_level == "debug",
            timeout_keep_alive=_KEEP_ALIVE,
            timeout_graceful_shutdown=max(1, round(settings.drain_timeout)),
            server_header=False,
            lifespan="on",
        )
    )
    # uvicorn raises the signal again when it has ended; by then it has done all that there was to do.
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: None)
    for listener in listeners:
        host, port = listener.getsockname()[:2]
        say(f"listening on {host}:{port}" + (" for probes" if port == Connection.probe_port else ""))
    server.run(sockets=listeners)
    say("ended")


def _listen(host: str, port: int, setting: str) -> socket.socket:
    """Bind the port before the model is loaded, so that a port in use is reported immediately."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        listener = socket.socket(family, kind, protocol)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        # Connections inherit it.
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVE_BUFFER)
        listener.bind(address)
    except OSError as error:
        raise BadSettings(
            f"cannot listen on {host}:{port} ({flag('host')}, {flag(setting)}): {error.strerror or error}"
        ) from None
    return listener


def _summary(name: str, model: LanguageModel, limits: Limits, seconds: float) -> str:
    facts = model.facts
    cache = ""
    if facts.cache_bytes is not None:
        cache = f", KV cache at most {_size(facts.cache_bytes * limits.cache_tokens)}"
    return (
        f"kaigen-chat {__version__}: {name} loaded in {seconds:.1f} s on {model.device.type}, "
        f"{facts.parameters / 1e6:.1f} M parameters as {model.dtype} ({_size(facts.weight_bytes)}), "
        f"context {model.context}, {limits.rows} rows{cache}"
    )


def _size(count: float) -> str:
    for unit in ("B", "KiB", "MiB", "GiB"):
        if count < 1024 or unit == "GiB":
            break
        count /= 1024
    return f"{count:.0f} {unit}" if count >= 100 or unit == "B" else f"{count:.1f} {unit}"
