#!/usr/bin/env python3
"""Behaves as `dllama worker` and `dllama-api` of distributed-llama do on the network, by the name that it is called by.

What was observed with v0.16.2 and v0.16.4, and is the same here:

- The first connection to a worker is its root. A worker whose root closes before the session ends with code 1.
- In a session a worker has closed its listening socket. When its root closes, it listens again in the same process.
- The root connects in the order of the list. If one worker is missing, the others end. Up to v0.16.2 so does the root;
  later ones try again after three seconds.
- The root notices a lost worker with its next request. v0.16.2 then goes on without an answer, later ones close the
  API.
- The API ends on a connection without a request, on a body that is not JSON or has no messages, on content that is no
  text, and if the length of the body is not announced as `Content-Length`.

The version is that of the variable PEER_VERSION. Only Python's standard library is used.
"""

from __future__ import annotations

import json
import os
import socket
import struct
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

VERSION = tuple(int(number) for number in os.environ.get("PEER_VERSION", "0.16.4").split("."))
RETRY_SECONDS = float(os.environ.get("PEER_RETRY_SECONDS", "3"))
TOKEN_SECONDS = float(os.environ.get("PEER_TOKEN_SECONDS", "0.01"))
MAGIC = 0x0A00ABCD
_FLAGS = {
    *("model", "tokenizer", "buffer-float-type", "workers", "max-seq-len", "nthreads", "temperature", "topp", "seed"),
    *("chat-template", "gpu-index", "gpu-segments", "net-turbo", "port", "prompt", "steps"),
}
_ABORTED, _SEGMENTATION_FAULT = 134, 139


def end(message: str, code: int) -> NoReturn:
    """End the process."""
    print(message, flush=True)
    os._exit(code)


def parse(arguments: Sequence[str]) -> dict[str, list[str]]:
    """Return the values of flags; only `--workers` has several."""
    known = _FLAGS | ({"host"} if VERSION >= (0, 16, 4) else set())
    found: dict[str, list[str]] = {}
    index = 0
    while index + 1 < len(arguments):
        name = arguments[index].removeprefix("--")
        if name not in known or not arguments[index].startswith("--"):
            end(f"Unknown option: {arguments[index]}", _ABORTED)
        values = [arguments[index + 1]]
        while name == "workers" and index + 1 + len(values) < len(arguments):
            if arguments[index + 1 + len(values)].startswith("-"):
                break
            values.append(arguments[index + 1 + len(values)])
        found[name] = values
        index += 1 + len(values)
    return found


def listen(host: str, port: int) -> socket.socket:
    """Return a socket that listens."""
    server = socket.create_server((host, port), reuse_port=False)
    print(f"Listening on {host}:{port}...", flush=True)
    return server


def receive(connection: socket.socket) -> Any:
    """Return one message.

    Raises:
        OSError: the connection was closed.
    """
    size = struct.unpack("!I", _exactly(connection, 4))[0]
    return json.loads(_exactly(connection, size))


def _exactly(connection: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        part = connection.recv(size - len(data))
        if not part:
            raise ConnectionError("the connection was closed")
        data += part
    return data


def send(connection: socket.socket, message: Any) -> None:
    """Send one message."""
    data = json.dumps(message).encode()
    connection.sendall(struct.pack("!I", len(data)) + data)


def worker(flags: Mapping[str, Sequence[str]]) -> NoReturn:
    """Serve one root after the other."""
    port = int(flags.get("port", ["9990"])[0])
    while True:
        server = listen(flags.get("host", ["0.0.0.0"])[0], port)
        root, _ = server.accept()
        try:
            start = receive(root)
        except OSError as error:
            end(f"Critical error: {error}", 1)
        others = [server.accept()[0] for _ in range(start["index"] - 1)]
        server.close()
        try:
            others += [_connect(each) for each in start["later"]]
        except OSError as error:
            end(f"Critical error: {error}", 1)
        send(root, "loaded")
        try:
            while True:
                send(root, {"token": receive(root)["position"]})
        except OSError as error:
            print(f"Read network exception: {error}", flush=True)
        finally:
            for each in (root, *others):
                each.close()


def _connect(address: str) -> socket.socket:
    host, _, port = address.partition(":")
    return socket.create_connection((host, int(port)), 10)


class Lost(Exception):
    """A worker is lost."""


def root(flags: Mapping[str, Sequence[str]]) -> NoReturn:
    """Connect to all workers, then answer requests, one at a time."""
    model = Path(flags["model"][0])
    if struct.unpack("<I", model.read_bytes()[:4])[0] != MAGIC or not Path(flags["tokenizer"][0]).is_file():
        end("Unsupported model file", _ABORTED)
    workers = flags.get("workers", [])
    while True:
        try:
            connections = _session(workers)
            serve(flags, connections, model.name)
        except (OSError, Lost) as error:
            print(f"Connection error: {error}", flush=True)
        if VERSION < (0, 16, 3):
            end("Critical error", 1)
        print("Retrying in 3 seconds...", flush=True)
        time.sleep(RETRY_SECONDS)


def _session(workers: Sequence[str]) -> list[socket.socket]:
    """Return the connections to all workers, in the order of the list."""
    connections: list[socket.socket] = []
    try:
        connections += (_connect(address) for address in workers)
        for index, connection in enumerate(connections):
            send(connection, {"index": index + 1, "later": workers[index + 1 :]})
        for connection in connections:
            receive(connection)
    except OSError:
        for connection in connections:
            connection.close()
        raise
    return connections


def serve(flags: Mapping[str, Sequence[str]], workers: Sequence[socket.socket], model: str) -> None:
    """Answer requests until a worker is lost.

    Raises:
        Lost: a worker is lost; all connections are closed.
    """
    host = flags.get("host", ["0.0.0.0"])[0]
    with listen(host, int(flags.get("port", ["9990"])[0])) as server:
        try:
            while True:
                connection, _ = server.accept()
                with connection:
                    try:
                        _answer(connection, workers, model, int(flags["max-seq-len"][0]))
                    except BrokenPipeError as error:
                        print(f"Socket error: {error}", flush=True)
                    except Lost:
                        if VERSION >= (0, 16, 3):
                            raise
                        print("Broken pipe", flush=True)
        finally:
            for each in workers:
                each.close()


def _answer(connection: socket.socket, workers: Sequence[socket.socket], model: str, context: int) -> None:
    method, path, body = _request(connection)
    if method == "GET" and path == "/v1/models":
        data = json.dumps({"object": "list", "data": [{"id": model, "object": "model"}]}).encode()
        connection.sendall(_head("application/json", f"Content-Length: {len(data)}") + data)
        return
    if method != "POST" or path != "/v1/chat/completions":
        connection.sendall(b"HTTP/1.1 404 Not Found\r\nConnection: close\r\nContent-Length: 9\r\n\r\nNot Found")
        return
    try:
        given = json.loads(body)
        messages = given["messages"]
    except (ValueError, LookupError, TypeError):
        end("terminate called after throwing an instance of 'parse_error'", _ABORTED)
    if not all(isinstance(each, dict) and isinstance(each.get("content"), str) for each in messages):
        end("terminate called after throwing an instance of 'type_error'", _ABORTED)
    pieces = _tokens(messages[-1]["content"], workers, min(given.get("max_tokens", 8), context))
    if given.get("stream"):
        connection.sendall(_head("text/event-stream", "Transfer-Encoding: chunked"))
        for piece in pieces:
            choice = {"index": 4294967295, "delta": {"role": "assistant", "content": piece}, "finish_reason": ""}
            _chunk(connection, f"data: {json.dumps({'choices': [choice]})}\r\n\r\n")
        stop = {"index": 4294967295, "delta": {}, "finish_reason": "stop"}
        _chunk(connection, f"data: {json.dumps({'choices': [stop]})}\r\n\r\n")
        _chunk(connection, "data: [DONE]")
        connection.sendall(b"0000\r\n\r\n")
        return
    message = {"role": "assistant", "content": "".join(pieces)}
    data = json.dumps({"choices": [{"index": 4294967295, "message": message, "finish_reason": ""}]}).encode()
    connection.sendall(_head("application/json", f"Content-Length: {len(data)}") + data)


def _request(connection: socket.socket) -> tuple[str, str, bytes]:
    data = b""
    while b"\r\n\r\n" not in data:
        part = connection.recv(65535)
        if not part:
            end("terminate called: Error while reading headers from socket", _ABORTED)
        data += part
    head, _, body = data.partition(b"\r\n\r\n")
    lines = head.decode("latin-1").split("\r\n")
    headers = dict(line.split(": ", 1) for line in lines[1:] if ": " in line)
    length = int(headers.get("Content-Length", 0))
    while len(body) < length:
        part = connection.recv(65535)
        if not part:
            end("terminate called: Error while reading body from socket", _ABORTED)
        body += part
    method, path = lines[0].split(" ")[:2]
    if method == "POST" and not body:
        end("Segmentation fault", _SEGMENTATION_FAULT)
    return method, path, body


def _tokens(prompt: str, workers: Sequence[socket.socket], count: int) -> Iterator[str]:
    """Yield the words of an answer; each needs all workers."""
    for position in range(count):
        time.sleep(TOKEN_SECONDS)
        try:
            for connection in workers:
                send(connection, {"position": position})
            for connection in workers:
                receive(connection)
        except OSError as error:
            raise Lost(str(error)) from None
        yield f"{prompt[:20]}-{position}/{len(workers)} "


def _head(kind: str, more: str) -> bytes:
    return f"HTTP/1.1 200 OK\r\nContent-Type: {kind}; charset=utf-8\r\nConnection: close\r\n{more}\r\n\r\n".encode()


def _chunk(connection: socket.socket, text: str) -> None:
    data = text.encode()
    connection.sendall(f"{len(data):x}\r\n".encode() + data + b"\r\n")


def main() -> NoReturn:
    """Run the program that the process is called by."""
    if Path(sys.argv[0]).name == "dllama-api":
        root(parse(sys.argv[1:]))
    if sys.argv[1:2] != ["worker"]:
        end("This peer has only the mode `worker`", 1)
    worker(parse(sys.argv[2:]))


if __name__ == "__main__":
    main()
