"""The same as _wire.py, for asyncio."""
from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeVar

from cloche._base import ConnectionFailed, ConnectionLost, TimedOut
from cloche._wire import PIECE, Target, left, socket_address

T = TypeVar("T")
Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


_shielded: set[asyncio.Task[Any]] = set()       # a loop alone does not keep a task


async def shielded(what: Coroutine[Any, Any, T]) -> T:
    """It is done also if the caller is cancelled."""
    task = asyncio.ensure_future(what)
    _shielded.add(task)
    task.add_done_callback(_shielded.discard)
    return await asyncio.shield(task)


def _drop(opening: asyncio.Task[Streams]) -> None:
    """What was opened for nobody."""
    if not opening.cancelled() and opening.exception() is None:
        opening.result()[1].transport.abort()


# asyncio.wait_for of Python 3.10 and 3.11 forgets that a task was cancelled when what it waits for is there already.
async def _opened(opening: Callable[[], Coroutine[Any, Any, Streams]], deadline: float | None, late: str) -> Streams:
    seconds = left(deadline)
    task = asyncio.ensure_future(opening())
    try:
        await asyncio.wait({task}, timeout=seconds)
        if not task.done():
            raise TimedOut(late)
        return task.result()
    except BaseException:
        task.cancel()
        task.add_done_callback(_drop)
        raise


class AsyncWire:
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    @classmethod
    async def open(cls, target: Target, deadline: float | None) -> AsyncWire:
        late = f"{target} does not answer"
        try:
            if target.socket:
                with socket_address(target.socket) as address:
                    opened = await _opened(lambda: asyncio.open_unix_connection(address), deadline, late)
            else:
                opened = await _opened(lambda: asyncio.open_connection(target.host, target.port, ssl=target.tls), deadline, late)
        except OSError as e:
            raise ConnectionFailed(f"no cloche serve answers at {target}: {e.strerror or e}") from e
        return cls(*opened)

    async def _within(self, what: Callable[[], Awaitable[T]], deadline: float | None, says: str) -> T:
        """When the time is over the connection is closed, which ends what is waited for."""
        seconds = left(deadline)
        if seconds is None:
            return await what()
        late = False

        def over() -> None:
            nonlocal late
            late = True
            self.close()

        timer = asyncio.get_running_loop().call_later(seconds, over)
        try:
            done = await what()
        except OSError as e:
            if late:
                raise TimedOut(says) from e
            raise
        finally:
            timer.cancel()
        if late:
            raise TimedOut(says)
        return done

    async def send(self, data: bytes, deadline: float | None) -> None:
        try:
            self._writer.write(data)
            await self._within(self._writer.drain, deadline, "the daemon does not read in the time that the caller gave")
        except OSError as e:
            raise ConnectionLost(f"the connection broke: {e.strerror or e}") from e

    async def recv(self, deadline: float | None) -> bytes:
        """What came; nothing at the end."""
        try:
            return await self._within(lambda: self._reader.read(PIECE), deadline, "no answer in the time that the caller gave")
        except OSError as e:
            raise ConnectionLost(f"the connection broke: {e.strerror or e}") from e

    def close(self) -> None:
        self._writer.transport.abort()
