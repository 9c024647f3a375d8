"""HTTP/1.1 and server-sent events as bytes, without a connection. Strict, and with a ceiling on everything."""
from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from cloche._base import AnswerError, AnswerTooLong, ConnectionLost

HEAD_MAX = 64 * 1024        # bytes of an answer's head
INTERIM_MAX = 8             # heads of 1xx in front of it
LINE_MAX = 1024             # of a chunk's length, or of a trailer
TRAILER_MAX = 64 * 1024

_STATUS = re.compile(rb"HTTP/1\.[01] ([1-9][0-9]{2})(?: [\t -~\x80-\xff]*)?\Z")
_FIELD = re.compile(rb"([!#$%&'*+\-.^_`|~0-9A-Za-z]+):[ \t]*([\t -~\x80-\xff]*?)[ \t]*\Z")
_PATH = re.compile(r"[!-~]+\Z")
_VALUE = re.compile(r"[ -~]*\Z")


def request(method: str, target: str, host: str, fields: Mapping[str, str]) -> bytes:
    """The head of a request. What would end a line in it is refused."""
    if not _PATH.match(target) or not _VALUE.match(host) or not all(_VALUE.match(value) for value in fields.values()):
        raise ValueError("a request has a character that no request may have")
    lines = [f"{method} {target} HTTP/1.1", f"Host: {host}", "Connection: close", *(f"{name}: {value}" for name, value in fields.items())]
    return "\r\n".join([*lines, "", ""]).encode("ascii")


@dataclass
class Head:
    status: int
    fields: dict[str, str]

    def length(self) -> int | None:
        """Bytes of its body, where it says so."""
        said = self.fields.get("content-length")
        if said is None:
            return None
        if not re.match(r"[0-9]{1,18}\Z", said):
            raise AnswerError("an answer's length is no number")
        return int(said)


def head(data: bytes) -> Head:
    """Of what is in front of the empty line."""
    first, *rest = data.split(b"\r\n")
    status = _STATUS.match(first)
    if status is None:
        raise AnswerError("not an answer of cloche serve: no HTTP/1.1")
    fields: dict[str, str] = {}
    for line in rest:
        field = _FIELD.match(line)
        if field is None:
            raise AnswerError("not an answer of cloche serve: a field of its head is malformed")
        name, value = field[1].decode("ascii").lower(), field[2].decode("latin-1")
        if name in fields and name in ("content-length", "transfer-encoding", "content-type", "content-encoding"):
            raise AnswerError(f"an answer has two of {name}")
        fields[name] = value
    if "transfer-encoding" in fields and "content-length" in fields:
        raise AnswerError("an answer has two lengths")
    if fields.get("content-encoding", "identity") != "identity":
        raise AnswerError("an answer is compressed, which nobody asked for")
    return Head(int(status[1]), fields)


class Body:
    """The bytes of a body, of what came over the connection. `done` when it has ended."""

    def __init__(self, head: Head, method: str) -> None:
        self.done = method == "HEAD" or head.status in (204, 304)
        self._left = head.length()
        self._until_end = False
        self._chunked = False
        self._state = "length"
        self._line = bytearray()
        self._trailer = 0
        coding = head.fields.get("transfer-encoding")
        if coding is not None:
            if coding.lower() != "chunked":
                raise AnswerError("an answer has a coding that nobody asked for")
            self._chunked = True
        elif self._left is None:
            if not self.done and head.status < 300:
                raise AnswerError("an answer does not say where it ends: cut it would look whole")
            self._until_end = True
        elif self._left == 0:
            self.done = True

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Pieces of the body in what came."""
        if self.done:
            return
        if self._until_end:
            yield data
        elif not self._chunked:
            assert self._left is not None
            if len(data) > self._left:
                raise AnswerError("an answer is longer than it says")
            self._left -= len(data)
            self.done = self._left == 0
            yield data
        else:
            yield from self._feed_chunks(data)

    def end(self) -> None:
        """The connection ended."""
        if self._until_end:
            self.done = True
        if not self.done:
            raise ConnectionLost("the connection ended before the answer had")

    def _feed_chunks(self, data: bytes) -> Iterator[bytes]:
        at = 0
        while at < len(data) and not self.done:
            if self._state == "data":
                assert self._left is not None
                piece = data[at:at + self._left]
                at += len(piece)
                self._left -= len(piece)
                if self._left == 0:
                    self._state = "after"
                yield piece
                continue
            end = data.find(b"\n", at)
            part = data[at:] if end < 0 else data[at:end + 1]
            at += len(part)
            self._line += part
            if len(self._line) > LINE_MAX:
                raise AnswerError("an answer's chunk is malformed")
            if end >= 0:
                line = bytes(self._line)
                self._line.clear()
                self._take_line(line)

    def _take_line(self, line: bytes) -> None:
        if not line.endswith(b"\r\n"):
            raise AnswerError("an answer's chunk is malformed")
        if self._state == "after":
            if line != b"\r\n":
                raise AnswerError("an answer's chunk is malformed")
            self._state = "length"
        elif self._state == "length":
            size = re.match(rb"([0-9A-Fa-f]{1,15})(?:;[^\r\n]*)?\r\n\Z", line)
            if size is None:
                raise AnswerError("an answer's chunk is malformed")
            self._left = int(size[1], 16)
            self._state = "data" if self._left else "trailer"
        elif line == b"\r\n":
            self.done = True
        else:
            self._trailer += len(line)
            if self._trailer > TRAILER_MAX:
                raise AnswerTooLong("an answer's trailer is too long")


@dataclass
class Event:
    """An event of a stream: its name, its id ("" none), its data."""

    name: str
    id: str
    data: str

    def json(self) -> Any:
        """Its data."""
        try:
            return json.loads(self.data)
        except (ValueError, RecursionError) as e:
            raise AnswerError("an event is no JSON") from e


class Events:
    """Server-sent events out of a stream's bytes (HTML, "Server-sent events"); no event is longer than @most bytes."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._line = bytearray()
        self._data: list[bytes] = []
        self._size = 0
        self._name = ""
        self._id = ""
        self._cr = False

    def feed(self, data: bytes) -> Iterator[Event]:
        if self._cr and data.startswith(b"\n"):
            data = data[1:]
            self._cr = False
        if data:
            self._cr = data.endswith(b"\r")
        lines = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")
        for line in lines[:-1]:
            self._keep(line)
            whole = bytes(self._line)
            self._line.clear()
            event = self._take(whole)
            if event is not None:
                yield event
        self._keep(lines[-1])

    def _keep(self, piece: bytes) -> None:
        if len(self._line) + len(piece) + self._size > self._most:
            raise AnswerTooLong(f"an event has more than {self._most} bytes")
        self._line += piece

    def _take(self, line: bytes) -> Event | None:
        if not line:
            event = Event(self._name or "message", self._id, b"\n".join(self._data).decode("utf-8", "replace")) if self._data else None
            self._data, self._size, self._name = [], 0, ""
            return event
        name, _, value = line.partition(b":")
        value = value[1:] if value.startswith(b" ") else value
        if name == b"data":
            self._data.append(value)
            self._size += len(value) + 1
        elif name == b"event":
            self._name = value[:256].decode("utf-8", "replace")
        elif name == b"id" and b"\0" not in value:
            self._id = value[:256].decode("utf-8", "replace")
        return None
