"""`python -m benchmarks.chat`: compare tokens per second of the chat server and its peers, for one and many clients."""

from __future__ import annotations

import argparse
import http.client
import importlib
import json
import os
import random
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

_ROOT = Path(__file__).parent.parent
_RUNTIME = _ROOT / "runtimes" / "chat"
sys.path.insert(0, str(_RUNTIME / "tests"))

_WORDS = ("fox", "dog", "git", "says", "model", "token", "what", "should", "jump", "over", "the", "lazy")


@dataclass(frozen=True, slots=True)
class Peer:
    """A server that is measured.

    Attributes:
        name: its name in the table.
        command: starts it; {model} and {port} are replaced.
        ready: a route that returns 200 when the server is ready.
        model: its name of the model; {model} is replaced.
        extra: more fields of each request.
    """

    name: str
    command: tuple[str, ...]
    ready: str
    model: str
    extra: tuple[tuple[str, object], ...] = ()


_SERVE = (
    str(Path(sys.executable).parent / "transformers"),
    *("serve", "{model}", "--host", "127.0.0.1", "--port", "{port}", "--device", "cpu", "--dtype", "float32"),
)
PEERS = {
    "kaigen-chat": Peer(
        "kaigen-chat",
        (sys.executable, "-m", "kaigen_chat", "--model", "{model}", "--host", "127.0.0.1", "--port", "{port}"),
        "/readyz",
        "bench",
        # The model has no end-of-text token; this server would stop at the tokenizer's.
        (("ignore_eos", True),),
    ),
    "transformers-serve": Peer("transformers serve", _SERVE, "/health", "{model}"),
    "transformers-serve-cb": Peer(
        "transformers serve, continuous batching",
        # By default its cache takes most of the machine's memory.
        (*_SERVE, "--continuous-batching", "--cb-max-memory-percent", "0.05"),
        "/health",
        "{model}",
    ),
}


@dataclass(frozen=True, slots=True)
class Load:
    """The requests to every server.

    Attributes:
        clients: number of concurrent clients.
        requests: number of requests of each client, one after another.
        tokens: length of each answer.
        stream: whether answers are streamed.
    """

    clients: int
    requests: int
    tokens: int
    stream: bool


class Failed(Exception):
    """A server did not start, or its answer is wrong."""


@contextmanager
def running(peer: Peer, model: Path, log: Path, threads: int | None) -> Iterator[tuple[int, int]]:
    """Start a server, yield its port and process id, and stop it when the context ends."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = [part.format(model=model, port=port) for part in peer.command]
    env = {**os.environ, "PYTHONPATH": str(_RUNTIME), "HF_HUB_OFFLINE": "1", "HF_HOME": str(log.parent)}
    if threads is not None:
        env |= {"OMP_NUM_THREADS": str(threads), "MKL_NUM_THREADS": str(threads), "KAIGEN_CHAT_THREADS": str(threads)}
    with log.open("wb") as out, subprocess.Popen(command, stdout=out, stderr=out, env=env) as process:
        try:
            _await(peer, port, process)
            yield port, process.pid
        finally:
            process.terminate()
            try:
                process.wait(30)
            except subprocess.TimeoutExpired:
                process.kill()


def _await(peer: Peer, port: int, process: subprocess.Popen[bytes]) -> None:
    end = time.monotonic() + 180
    while time.monotonic() < end and process.poll() is None:
        try:
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
            connection.request("GET", peer.ready)
            if connection.getresponse().status == 200:
                return
        except OSError:
            pass
        finally:
            connection.close()
        time.sleep(0.1)
    raise Failed("the server did not start")


def ask(connection: http.client.HTTPConnection, peer: Peer, model: Path, load: Load, prompt: str) -> None:
    """Send one request.

    Raises:
        Failed: the answer does not have the requested number of tokens.
    """
    body = {
        "model": peer.model.format(model=model),
        "messages": [{"role": "user", "content": prompt}],
        "max_tokens": load.tokens,
        "temperature": 0,
        "stream": load.stream,
        **dict(peer.extra),
    }
    connection.request("POST", "/v1/chat/completions", json.dumps(body), {"Content-Type": "application/json"})
    answer = connection.getresponse()
    text = answer.read()
    if answer.status != 200:
        raise Failed(f"{answer.status}: {text[:200]!r}")
    if load.stream:
        if text.count(b"data: ") < 3:
            raise Failed(f"no stream: {text[:200]!r}")
    elif json.loads(text)["usage"]["completion_tokens"] != load.tokens:
        raise Failed(f"not {load.tokens} tokens: {text[:200]!r}")


def rate(port: int, peer: Peer, model: Path, load: Load) -> float:
    """Return the tokens per second of all clients together."""
    errors: list[BaseException] = []
    barrier = threading.Barrier(load.clients + 1)

    def client(number: int) -> None:
        chance = random.Random(number)
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=300)
        try:
            barrier.wait()
            for _ in range(load.requests):
                ask(connection, peer, model, load, " ".join(chance.choices(_WORDS, k=chance.randint(4, 24))))
        except (Failed, OSError) as error:
            errors.append(error)
        finally:
            connection.close()

    threads = [threading.Thread(target=client, args=(number,)) for number in range(load.clients)]
    for thread in threads:
        thread.start()
    barrier.wait()
    began = time.monotonic()
    for thread in threads:
        thread.join()
    seconds = time.monotonic() - began
    if errors:
        raise Failed(str(errors[0]))
    return load.clients * load.requests * load.tokens / seconds


def peak(pid: int) -> int:
    """Return the sum of the peak memory of a process and of each of its children, in bytes."""
    total = 0
    for task in Path(f"/proc/{pid}/task").iterdir():
        total += sum(peak(int(child)) for child in (task / "children").read_text().split())
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            total += int(line.split()[1]) * 1024
    return total


def measure(options: argparse.Namespace, model: Path, scratch: Path) -> dict[str, dict[str, list[float]]]:
    """Measure every server alone, each once per round."""
    found: dict[str, dict[str, list[float]]] = {}
    for turn in range(options.runs):
        for key in options.peers:
            peer = PEERS[key]
            print(f"round {turn + 1}: {peer.name}", file=sys.stderr, flush=True)
            numbers = found.setdefault(key, {})
            if numbers.get("failed"):
                continue
            try:
                with running(peer, model, scratch / f"{key}.log", options.threads) as (port, pid):
                    rate(port, peer, model, Load(2, 1, options.tokens, False))
                    for clients in options.clients:
                        load = Load(clients, options.requests, options.tokens, options.stream)
                        found_rate = rate(port, peer, model, load)
                        numbers.setdefault(str(clients), []).append(found_rate)
                        print(f"  {clients} clients: {found_rate:.1f}", file=sys.stderr, flush=True)
                    numbers.setdefault("memory", []).append(peak(pid) / 2**20)
            except Failed as error:
                numbers["failed"] = [turn]
                tail = (scratch / f"{key}.log").read_text(errors="replace").splitlines()[-3:]
                print(f"{peer.name} failed: {error}", *tail, sep="\n  ", flush=True)
    return found


def table(found: dict[str, dict[str, list[float]]], clients: Sequence[int]) -> Iterator[str]:
    """Return the lines of a table: medians, and the ratio of most to fewest clients with its range."""
    head = "".join(f"{f'{count} clients':>12}" for count in clients)
    yield f"{'tokens per second':42}{head}{'ratio':>8}{'range':>14}{'MiB':>8}"
    for key, numbers in found.items():
        if numbers.get("failed") or not numbers:
            continue
        few, many = numbers[str(clients[0])], numbers[str(clients[-1])]
        ratios = sorted(more / less for more, less in zip(many, few, strict=True))
        rates = "".join(f"{statistics.median(numbers[str(count)]):12.0f}" for count in clients)
        span = f"{ratios[0]:.1f}–{ratios[-1]:.1f}"
        memory = max(numbers["memory"])
        yield f"{PEERS[key].name:42}{rates}{statistics.median(ratios):8.1f}{span:>14}{memory:8.0f}"


def main() -> int:
    """Run the benchmark.

    Returns:
        0 if the chat server was measured, whatever the numbers are.
    """
    options = _parser().parse_args()
    with tempfile.TemporaryDirectory(prefix="kaigen-bench-chat-") as folder:
        # Next to the chat server's tests; importing it needs PyTorch.
        tiny = importlib.import_module("served.tiny")
        scratch = Path(folder)
        model = tiny.make(
            scratch / "bench",
            hidden=options.hidden,
            layers=options.layers,
            context=2048,
            num_attention_heads=options.hidden // 64,
            num_key_value_heads=max(1, options.hidden // 128),
            eos_token_id=None,
        )
        size = (model / "model.safetensors").stat().st_size / 2**20
        print(f"{size:.0f} MiB of weights, {options.tokens} tokens per answer, stream: {options.stream}", flush=True)
        found = measure(options, model, scratch)
    for line in table(found, options.clients):
        print(line)
    if options.json is not None:
        options.json.write_text(json.dumps(found, indent=2) + "\n")
    return int("failed" in found.get("kaigen-chat", {}))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.chat", description=__doc__)
    add = parser.add_argument
    add("--runs", type=int, default=3, metavar="N", help="rounds (default: 3)")
    add("--clients", type=int, nargs="+", default=[1, 4, 16], metavar="N", help="concurrent clients (default: 1 4 16)")
    add("--requests", type=int, default=3, metavar="N", help="requests per client (default: 3)")
    add("--tokens", type=int, default=64, metavar="N", help="tokens per answer (default: 64)")
    add("--hidden", type=int, default=512, metavar="N", help="width of the model (default: 512)")
    add("--layers", type=int, default=8, metavar="N", help="layers of the model (default: 8)")
    add("--threads", type=int, metavar="N", help="threads of each server (default: the server's default)")
    add("--stream", action="store_true", help="stream the answers")
    add("--peers", nargs="+", choices=list(PEERS), default=list(PEERS), metavar="PEER", help=", ".join(PEERS))
    add("--json", type=Path, metavar="FILE", help="also write every number to FILE")
    return parser


if __name__ == "__main__":
    sys.exit(main())
