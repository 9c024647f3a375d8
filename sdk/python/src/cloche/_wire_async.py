"""The same as _wire.py, for asyncio."""
from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import TypeVar

from cloche._base import ConnectionFailed, ConnectionLost, TimedOut
from cloche._wire import PIECE, Target, left, socket_address

T = TypeVar("T")


async def _within(what: Awaitable[T], deadline: float | None, late: str) -> T:
    try:
        return await asyncio.wait_for(what, left(deadline))
    except asyncio.TimeoutError as e:
        raise TimedOut(late) from e


class AsyncWire:
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    @classmethod
    async def open(cls, target: Target, deadline: float | None) -> AsyncWire:
        try:
            if target.socket:
                with socket_address(target.socket) as address:
                    opened = await _within(asyncio.open_unix_connection(address), deadline, f"{target} does not answer")
            else:
                opened = await _within(asyncio.open_connection(target.host, target.port, ssl=target.tls), deadline, f"{target} does not answer")
        except OSError as e:
            raise ConnectionFailed(f"no cloche serve answers at {target}: {e.strerror or e}") from e
        return cls(*opened)

    async def send(self, data: bytes, deadline: float | None) -> None:
        try:
            self._writer.write(data)
            await _within(self._writer.drain(), deadline, "the daemon does not read in the time that the caller gave")
        except OSError as e:
            raise ConnectionLost(f"the connection broke: {e.strerror or e}") from e

    async def recv(self, deadline: float | None) -> bytes:
        """What came; nothing at the end."""
        try:
            return await _within(self._reader.read(PIECE), deadline, "no answer in the time that the caller gave")
        except OSError as e:
            raise ConnectionLost(f"the connection broke: {e.strerror or e}") from e

    def close(self) -> None:
        self._writer.transport.abort()
