"""A connection to the daemon: a socket, with an end of the caller's patience."""
from __future__ import annotations

import contextlib
import math
import os
import socket
import ssl
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeVar

from cloche._base import ConnectionFailed, ConnectionLost, TimedOut

PIECE = 256 * 1024
T = TypeVar("T")


@dataclass(frozen=True)
class Target:
    """Where a daemon is: a unix socket, or a TCP address, perhaps with TLS."""

    socket: str = ""
    host: str = ""
    port: int = 0
    tls: ssl.SSLContext | None = None

    @property
    def authority(self) -> str:
        """What Host says."""
        if self.socket:
            return "localhost"
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"

    def __str__(self) -> str:
        return f"unix:{self.socket}" if self.socket else f"{'https' if self.tls else 'http'}://{self.authority}"


@contextlib.contextmanager
def socket_address(path: str) -> Iterator[str]:
    """An address of a socket has at most 107 bytes; a folder may have a longer path."""
    if len(os.fsencode(path)) < 108:
        yield path
        return
    folder = os.open(os.path.dirname(path), os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield f"/proc/self/fd/{folder}/{os.path.basename(path)}"
    finally:
        os.close(folder)


def shielded(done: T) -> T:
    """What a task that is cancelled still does, of asyncio; a thread has done it already."""
    return done


def until(seconds: float | None) -> float | None:
    """When so many seconds are over; None: never."""
    if seconds is None or seconds == math.inf:
        return None
    if math.isnan(seconds):
        raise ValueError("a timeout is a number of seconds")
    return time.monotonic() + seconds


def left(deadline: float | None) -> float | None:
    """Seconds until then."""
    if deadline is None:
        return None
    seconds = deadline - time.monotonic()
    if seconds <= 0:
        raise TimedOut("no answer in the time that the caller gave")
    return seconds


def _is_ours(error: OSError) -> bool:
    """Whether the caller's time is over, and not that of the system's own connection (ETIMEDOUT, the same class)."""
    return isinstance(error, socket.timeout) and error.errno is None


def _connected(host: str, port: int, deadline: float | None) -> socket.socket:
    """A connection to the first of its addresses that answers, before @deadline, however many there are."""
    failed: OSError | None = None
    for family, kind, protocol, _, address in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM):
        sock = None
        try:
            sock = socket.socket(family, kind, protocol)
            sock.settimeout(left(deadline))
            sock.connect(address)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            return sock
        except BaseException as e:
            if sock is not None:
                sock.close()
            if not isinstance(e, OSError) or _is_ours(e):
                raise
            failed = e
    raise failed or OSError("it has no address")


class Wire:
    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock

    @classmethod
    def open(cls, target: Target, deadline: float | None) -> Wire:
        sock: socket.socket | None = None
        try:
            if target.socket:
                sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
                sock.settimeout(left(deadline))
                with socket_address(target.socket) as address:
                    sock.connect(address)
            else:
                sock = _connected(target.host, target.port, deadline)
                if target.tls is not None:
                    sock.settimeout(left(deadline))
                    sock = target.tls.wrap_socket(sock, server_hostname=target.host)
        except BaseException as e:
            if sock is not None:
                sock.close()
            if not isinstance(e, OSError):
                raise
            if _is_ours(e):
                raise TimedOut(f"{target} does not answer") from e
            raise ConnectionFailed(f"no cloche serve answers at {target}: {e.strerror or e}") from e
        return cls(sock)

    def send(self, data: bytes, deadline: float | None) -> None:
        try:
            self._sock.settimeout(left(deadline))
            self._sock.sendall(data)
        except OSError as e:
            if _is_ours(e):
                raise TimedOut("the daemon does not read in the time that the caller gave") from e
            raise ConnectionLost(f"the connection broke: {e.strerror or e}") from e

    def recv(self, deadline: float | None) -> bytes:
        """What came; nothing at the end."""
        try:
            self._sock.settimeout(left(deadline))
            return self._sock.recv(PIECE)
        except (OSError, ValueError) as e:
            if isinstance(e, OSError) and _is_ours(e):
                raise TimedOut("no answer in the time that the caller gave") from e
            raise ConnectionLost(f"the connection broke: {e}") from e

    def close(self) -> None:
        # also while another thread waits in recv()
        with contextlib.suppress(OSError):
            self._sock.shutdown(socket.SHUT_RDWR)
        self._sock.close()
