"""The connection of a client: reads events of HTTP and sends them, within limits."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any

import h11

from kaigen_ringproxy.framing import StrictConnection

_CHUNK = 16384
_HEAD_BYTES = 32768


class Gone(Exception):
    """The client closed the connection."""


class Client:
    """One connection of a client."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, read_seconds: float) -> None:
        self.http = StrictConnection(_HEAD_BYTES)
        self._reader = reader
        self._writer = writer
        self._read_seconds = read_seconds
        # Wait for all that the client has not read: by default, only for what exceeds 64 KiB.
        writer.transport.set_write_buffer_limits(high=0)

    async def event(self) -> Any:
        """Return the next event of the connection.

        Raises:
            Gone: it was closed.
            h11.RemoteProtocolError: the client does not send HTTP.
        """
        while (event := self.http.next_event()) is h11.NEED_DATA:
            if self.http.they_are_waiting_for_100_continue:
                await self.send(h11.InformationalResponse(status_code=100, headers=[]))
            self.http.receive_data(await self._read())
        if isinstance(event, h11.ConnectionClosed):
            raise Gone
        return event

    async def _read(self) -> bytes:
        # A client with more to read than to wait for must not keep the others from being answered.
        await asyncio.sleep(0)
        try:
            return await self._reader.read(_CHUNK)
        except OSError:
            raise Gone from None

    async def first_byte(self) -> None:
        """Wait until the client sends something.

        Raises:
            Gone: it closed the connection.
        """
        if self.http.trailing_data[0]:
            return
        data = await self._read()
        if not data:
            raise Gone
        self.http.receive_data(data)

    async def left(self) -> None:
        """Wait until the client closes the connection, or sends too much; a request that it sends is kept."""
        size = 0
        with contextlib.suppress(Gone):
            while size <= _HEAD_BYTES and (data := await self._read()):
                self.http.receive_data(data)
                size += len(data)

    async def send(self, event: Any) -> None:
        """Send a part of an answer.

        Raises:
            Gone: the client closed the connection, or does not read.
        """
        data = self.http.send(event)
        if not data:
            return
        try:
            self._writer.write(data)
            while not await self._is_read():
                pass
        except OSError:
            raise Gone from None

    async def _is_read(self) -> bool:
        """Wait until the client has read everything; returns False if it has read only a part of it in time.

        Raises:
            Gone: it has read nothing.
        """
        transport = self._writer.transport
        before = transport.get_write_buffer_size()
        try:
            async with asyncio.timeout(self._read_seconds):
                await self._writer.drain()
        except TimeoutError:
            if transport.get_write_buffer_size() < before:
                return False
            transport.abort()
            raise Gone from None
        return True

    async def discard(self, most: int, seconds: float) -> None:
        """End the answer, and read what the client still sends, so that it gets the answer before the end.

        Args:
            most: most bytes to read.
            seconds: longest time to read.
        """
        self.http.forget()
        with contextlib.suppress(Gone, OSError, TimeoutError):
            self._writer.write_eof()
            async with asyncio.timeout(seconds):
                while most > 0 and (data := await self._read()):
                    most -= len(data)

    def abort(self) -> None:
        """Close the connection at once, whatever the client has not read."""
        self._writer.transport.abort()

    async def close(self) -> None:
        """Close the connection when the client has read everything."""
        self._writer.close()
        try:
            async with asyncio.timeout(self._read_seconds):
                await self._writer.wait_closed()
        except TimeoutError:
            self._writer.transport.abort()
        except OSError:
            pass
