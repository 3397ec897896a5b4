"""The API of distributed-llama: each connection has one complete request."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing

import h11

_CHUNK = 65536


class Broken(Exception):
    """The API did not answer, or ended while it did."""


class Upstream:
    """The API on a port of this pod."""

    def __init__(self, port: int, host: str = "127.0.0.1") -> None:
        self._host = host
        self._port = port

    async def answers(self, seconds: float) -> bool:
        """Return whether the API answers in time.

        It closes its port while it has no workers, and a request on an open port is complete before it is closed again.
        """
        try:
            async with asyncio.timeout(seconds):
                async with aclosing(self._request("GET", "/v1/models", b"")) as answer:
                    async for _ in answer:
                        pass
        except (Broken, TimeoutError):
            return False
        return True

    async def chat(self, body: bytes) -> AsyncGenerator[str]:
        """Yield the pieces of an answer.

        Args:
            body: a request that streams.

        Raises:
            Broken: the API ended, or answered something else.
        """
        rest = b""
        async with aclosing(self._request("POST", "/v1/chat/completions", body)) as answer:
            async for data in answer:
                *lines, rest = (rest + data).split(b"\n")
                for line in lines:
                    if (piece := _piece(line)) is not None:
                        yield piece
        # The last line has no end.
        if (piece := _piece(rest)) is not None:
            yield piece

    async def _request(self, method: str, path: str, body: bytes) -> AsyncGenerator[bytes]:
        try:
            reader, writer = await asyncio.open_connection(self._host, self._port)
        except OSError as error:
            raise Broken(f"no connection: {error}") from None
        try:
            # The program looks for the name of this header in exactly these letters.
            head = f"{method} {path} HTTP/1.1\r\nHost: {self._host}\r\nContent-Type: application/json\r\n"
            writer.write(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
            await writer.drain()
            async for data in _answer(reader, method):
                yield data
        except (OSError, h11.RemoteProtocolError) as error:
            raise Broken(f"no complete answer: {error}") from None
        finally:
            writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()


async def _answer(reader: asyncio.StreamReader, method: str) -> AsyncIterator[bytes]:
    """Yield the body of an answer."""
    connection = h11.Connection(h11.CLIENT)
    # The request was written without the library, which writes names of headers in lower case.
    connection.send(h11.Request(method=method, target="/", headers=[("Host", "ring")]))
    connection.send(h11.EndOfMessage())
    while True:
        event = connection.next_event()
        if event is h11.NEED_DATA:
            connection.receive_data(await reader.read(_CHUNK))
        elif isinstance(event, h11.Response):
            if event.status_code != 200:
                raise Broken(f"status {event.status_code}")
        elif isinstance(event, h11.Data):
            yield bytes(event.data)
        elif isinstance(event, h11.EndOfMessage):
            return
        else:
            raise Broken("the connection was closed")


def _piece(line: bytes) -> str | None:
    """Return the text in one line of a stream; None for a line without any.

    Raises:
        Broken: the line is not an answer of the API.
    """
    name, _, value = line.strip().partition(b":")
    value = value.strip()
    if name != b"data" or value == b"[DONE]":
        return None
    try:
        text = json.loads(value.decode("utf-8", "replace"))["choices"][0].get("delta", {}).get("content")
    except (ValueError, LookupError, AttributeError, TypeError):
        raise Broken("an answer that is not a chat") from None
    return text if isinstance(text, str) and text else None
