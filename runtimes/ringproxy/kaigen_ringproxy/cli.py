"""The command line: parses, runs, and returns an exit code for every outcome."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import signal
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NoReturn, TypeVar

from kaigen_ringproxy import __version__
from kaigen_ringproxy.gate import wait
from kaigen_ringproxy.metrics import Metrics
from kaigen_ringproxy.server import Options, Server
from kaigen_ringproxy.text import parse_checksum, parse_duration, say
from kaigen_ringproxy.turns import Turns
from kaigen_ringproxy.upstream import Upstream

OK, FAILED = 0, 1

T = TypeVar("T")


def _argument(parse: Callable[[str], T]) -> Callable[[str], T]:
    """Make argparse print the error of one of our parsers."""

    def convert(text: str) -> T:
        try:
            return parse(text)
        except ValueError as error:
            raise argparse.ArgumentTypeError(str(error)) from None

    return convert


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    seconds = _argument(parse_duration)
    top = argparse.ArgumentParser(
        prog="kaigen-ringproxy",
        description="Checks requests before distributed-llama reads them, and waits for the workers of a ring.",
    )
    top.add_argument("--version", action="version", version=__version__)
    commands = top.add_subparsers(dest="command", required=True)
    gate = commands.add_parser("wait", help="wait until DNS has all workers as ready; opens no connection to them")
    gate.add_argument("workers", nargs="+", metavar="WORKER", help="host name of a worker")
    gate.add_argument(
        "--ready", required=True, metavar="NAME", help="host name with the addresses of the workers that are ready"
    )
    gate.add_argument("--settle", type=seconds, default=10.0, metavar="TIME", help="how long all must stay ready")
    gate.add_argument("--timeout", type=seconds, default=86400.0, metavar="TIME", help="longest time to wait")
    serve = commands.add_parser("serve", help="serve the API of OpenAI in front of dllama-api")
    serve.add_argument("--host", default="0.0.0.0", help="address to listen on")
    serve.add_argument("--port", type=int, default=8000, help="port to listen on")
    serve.add_argument("--probe-port", type=int, metavar="PORT", help="port for /health and /ready alone, for probes")
    serve.add_argument("--upstream-port", type=int, default=9991, help="port of dllama-api in this pod")
    serve.add_argument(
        "--model-name", action="append", required=True, metavar="NAME", help="name of the model; repeatable"
    )
    serve.add_argument("--context", type=int, default=4096, help="longest context of the model, in tokens")
    serve.add_argument("--api-key-file", type=Path, metavar="FILE", help="keys, a line each; requests need one")
    serve.add_argument(
        "--api-key-sha256",
        action="append",
        type=_argument(parse_checksum),
        default=[],
        metavar="HEX",
        help="SHA-256 checksum of a key; requests need one of the keys; repeatable",
    )
    serve.add_argument("--queue", type=int, default=16, help="requests that may wait")
    serve.add_argument("--max-body", type=int, default=1 << 20, metavar="BYTES", help="most bytes of a request")
    serve.add_argument("--deadline", type=seconds, default=1800.0, metavar="TIME", help="longest time of a chat")
    serve.add_argument(
        "--drain-timeout", type=seconds, default=120.0, metavar="TIME", help="time for requests in flight at the end"
    )
    return top


def main(argv: Sequence[str]) -> int:
    """Run the program, and return its exit code."""
    given = parser().parse_args(argv)
    return asyncio.run(_wait(given) if given.command == "wait" else _serve(given))


async def _wait(given: argparse.Namespace) -> int:
    if await wait(given.workers, given.ready, settle=given.settle, timeout=given.timeout):
        return OK
    say("the workers were not ready in time")
    return FAILED


async def _serve(given: argparse.Namespace) -> int:
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    metrics, upstream = Metrics(), Upstream(given.upstream_port)
    turns = Turns(upstream, metrics, queue=given.queue)
    options = Options(
        names=given.model_name,
        context=given.context,
        key_file=given.api_key_file,
        key_checksums=tuple(given.api_key_sha256),
        body=given.max_body,
        deadline=given.deadline,
    )
    try:
        await Server(options, upstream, turns, metrics).serve(
            given.host, given.port, stop, given.drain_timeout, probe_port=given.probe_port
        )
    except OSError as error:
        say(f"error: {error}")
        return FAILED
    return OK


def run() -> NoReturn:
    """Run the program."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    code = FAILED
    with contextlib.suppress(KeyboardInterrupt):
        code = main(sys.argv[1:])
    sys.exit(code)
