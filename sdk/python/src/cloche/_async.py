"""The asynchronous client, of the routes of docs/openapi.yaml."""
from __future__ import annotations

import asyncio
import contextlib
import json
import os
import secrets
import ssl
import tempfile
from collections.abc import AsyncIterable, AsyncIterator, Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, BinaryIO, Generic, List, Literal, TypeVar

from cloche import _api as api
from cloche._base import AnswerError, AnswerTooLong, ApprovalPending, ClocheError, ConnectionLost, Outcome, read
from cloche._http import HEAD_MAX, INTERIM_MAX, Body, Event, Events, Head, head, request
from cloche._kinds import FileEvent, Gap, Output
from cloche._plan import (ANSWER_MAX, DOWNLOAD_MAX, ERROR_MAX, PIECE, QUERY, TIMEOUT, UNDO, Asked, credential, decoded_json, error_of, failure,
                          is_regular, may_retry, path_of, pending, target, wait_of)
from cloche._wire import left, until
from cloche._wire_async import AsyncWire, shielded

if TYPE_CHECKING:
    from typing_extensions import Self, Unpack

T = TypeVar("T")
Words = Sequence[str] | str
Data = str | bytes | BinaryIO | AsyncIterable[bytes]
NO_NAMES: tuple[str, ...] = ()


class AsyncAnswer:
    """An answer whose head has come. Its body comes as it is read."""

    def __init__(self, wire: AsyncWire, method: str, deadline: float | None) -> None:
        self._wire = wire
        self._method = method
        self.deadline = deadline
        self._rest = b""
        self.head = Head(0, {})
        self._body: Body | None = None

    async def begin(self) -> None:
        for _ in range(INTERIM_MAX):
            data = self._rest
            while b"\r\n\r\n" not in data:
                if len(data) > HEAD_MAX:
                    raise AnswerTooLong("the head of an answer is too long")
                more = await self._wire.recv(self.deadline)
                if not more:
                    raise ConnectionLost("the daemon ended the connection without an answer")
                data += more
            first, self._rest = data.split(b"\r\n\r\n", 1)
            if len(first) > HEAD_MAX:
                raise AnswerTooLong("the head of an answer is too long")
            self.head = head(first)
            if self.head.status >= 200:
                self._body = Body(self.head, self._method)
                return
        raise AnswerError("an answer that does not begin")

    async def pieces(self) -> AsyncIterator[bytes]:
        """The body as it comes."""
        assert self._body is not None
        data, self._rest = self._rest, b""
        while True:
            for piece in self._body.feed(data) if data else ():
                yield piece
            if self._body.done:
                return
            data = await self._wire.recv(self.deadline)
            if not data:
                self._body.end()

    async def read(self, most: int) -> bytes:
        """All of it, if that is no more than @most bytes."""
        out = bytearray()
        said = self.head.length() if self._method != "HEAD" else None
        if said is not None and said > most:
            raise AnswerTooLong(f"an answer has {said} bytes, and the caller takes {most}")
        async for piece in self.pieces():
            out += piece
            if len(out) > most:
                raise AnswerTooLong(f"an answer has more than the {most} bytes that the caller takes")
        return bytes(out)

    def close(self) -> None:
        self._wire.close()


class AsyncStream(Generic[T]):
    """Events as they come. Leaving it (close, or the end of `async with`) ends what is streamed."""

    def __init__(self, answer: AsyncAnswer, most: int) -> None:
        self._answer = answer
        self._most = most
        self._events = self._read()

    async def _read(self) -> AsyncIterator[Event]:
        parser = Events(self._most)
        async for piece in self._answer.pieces():
            for event in parser.feed(piece):
                yield event

    async def _next_event(self) -> tuple[Event, Any]:
        event = await self._events.__anext__()
        said = event.json()
        if event.name == "error":
            raise error_of(said if isinstance(said, dict) else {}, 0)
        return event, said

    async def _next(self) -> T:
        raise NotImplementedError

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> T:
        try:
            return await self._next()
        except BaseException:       # whatever it is, nothing comes after it
            self.close()
            raise

    def close(self) -> None:
        self._answer.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()


class AsyncEventStream(AsyncStream[Event]):
    """Events of the daemon, of its record, of approvals; `data` is JSON, which `json()` of each reads."""

    async def _next(self) -> Event:
        return (await self._next_event())[0]


class AsyncApprovalStream(AsyncStream[api.Approval]):
    """Approvals: those that are pending, then each that is new or changes."""

    async def _next(self) -> api.Approval:
        return read(api.Approval, (await self._next_event())[1])


class AsyncWatch(AsyncStream[FileEvent]):
    """Changes in a workspace."""

    async def _next(self) -> FileEvent:
        event, said = await self._next_event()
        change = read(api.FileChange, said)
        return FileEvent(event.name, change.path, bool(change.directory), change.from_)


R = TypeVar("R", bound=Outcome)


class AsyncOutputStream(AsyncStream["Output | api.Display | api.ResultFile"], Generic[R]):
    """What a command or code writes, and what else it shows. `result` when it has ended, without the output."""

    def __init__(self, answer: AsyncAnswer, most: int, kind: type[R], encoding: str) -> None:
        super().__init__(answer, most)
        self._kind = kind
        self._encoding = encoding
        self.result: R | None = None

    async def _next(self) -> Output | api.Display | api.ResultFile:
        if self.result is not None:
            raise StopAsyncIteration
        try:
            event, said = await self._next_event()
        except StopAsyncIteration:
            raise ConnectionLost("the stream ended before the command had") from None
        if event.name in ("stdout", "stderr"):
            return _output(event, said, self._encoding)
        if event.name == "result":
            return read(api.Display, said)
        if event.name == "file":
            return read(api.ResultFile, said)
        if event.name != "exit" or not isinstance(said, dict):
            raise AnswerError("an event that no command has")
        self.result = read(self._kind, {"stdout": "", "stderr": "", "results": [], "results_truncated": False, "error": None, **said})
        raise StopAsyncIteration

    async def wait(self) -> R:
        """Read on to the end: the result."""
        async for _ in self:
            pass
        assert self.result is not None
        return self.result


class AsyncClient:
    """A daemon. Without url and socket: CLOCHE_URL, CLOCHE_SOCKET, or where `cloche serve` of this user listens, and there,
    without token, CLOCHE_TOKEN. No token is the owner on the unix socket. Each request has a connection of its own.

    timeout: seconds that a call waits for its whole answer (of a stream: for its beginning). Calls with timeout_ms wait for
    that in addition. retries: how often what can be asked again is. max_answer: bytes of an answer that is kept in memory.
    respond_async: ApprovalPending is raised where somebody has to approve something, in place of waiting."""

    def __init__(self, url: str | None = None, *, socket: str | None = None, token: str | None = None, timeout: float | None = TIMEOUT,
                 retries: int = 2, max_answer: int = ANSWER_MAX, respond_async: bool = False, tls: ssl.SSLContext | None = None,
                 insecure: bool = False) -> None:
        self.target = target(url, socket, tls)
        self._token = credential(token, self.target, insecure, url is not None or socket is not None)
        self.timeout = timeout
        self.retries = retries
        self.max_answer = max_answer
        self.respond_async = respond_async
        self.sandboxes = AsyncSandboxes(self)
        self.templates = AsyncTemplates(self)
        self.volumes = AsyncVolumes(self)
        self.tokens = AsyncTokens(self)
        self.approvals = AsyncApprovals(self)
        self.grants = AsyncGrants(self)
        self.audit = AsyncAudit(self)
        self.events = AsyncDaemonEvents(self)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.target}>"

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        return None

    # --- requests

    async def open(self, route: api.Route, names: Sequence[str] = NO_NAMES, *, path: str | None = None, query: QUERY | None = None,
                   body: Any = None, data: Data | None = None, fields: Mapping[str, str] | None = None, timeout: float | None = None,
                   repeatable: bool | None = None, asked: Asked | None = None) -> AsyncAnswer:
        """Ask: an answer whose status says success, to be read and closed."""
        asked = asked or Asked()
        at = path_of(route, names, path, query)
        patience = timeout if timeout is not None else self.timeout
        deadline = until(patience)
        if repeatable is None:
            repeatable = route.method in ("GET", "HEAD")
        headers = {"Accept": "application/json", "User-Agent": "cloche-python/0.1.0", **(fields or {})}
        if self._token:
            headers["Authorization"] = f"Bearer {self._token}"
        if self.respond_async and route.method != "GET":
            headers["Prefer"] = "respond-async"
        if body is not None:
            data = json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass")
            headers.setdefault("Content-Type", "application/json")
        once = data is not None and not isinstance(data, (str, bytes))
        for attempt in range(self.retries + 1):
            try:
                return await self._once(route.method, at, headers, data, deadline, asked)
            except ClocheError as e:
                pause = may_retry(e, repeatable, attempt)
                if pause is None or once or attempt == self.retries:
                    raise
                rest = left(deadline)
                if rest is not None and rest <= pause:
                    raise
            await asyncio.sleep(pause)
        raise AssertionError

    async def _once(self, method: str, at: str, headers: Mapping[str, str], data: Data | None, deadline: float | None, asked: Asked) -> AsyncAnswer:
        wire = await AsyncWire.open(self.target, deadline)
        answer = AsyncAnswer(wire, method, deadline)
        before, asked.unknown = asked.unknown, True
        try:
            try:
                await self._say(wire, method, at, headers, data, deadline)
            except ConnectionLost as e:
                # refused before it was through: why is there to be read
                try:
                    await answer.begin()
                except ConnectionLost:
                    raise e from None
            else:
                await answer.begin()
            if 200 <= answer.head.status < 300:
                return answer
            if answer.head.status not in (502, 504):        # a gateway does not know either
                asked.unknown = before
            raise failure(answer.head.status, answer.head.fields, await answer.read(ERROR_MAX))
        except BaseException:
            wire.close()
            raise

    async def _say(self, wire: AsyncWire, method: str, at: str, headers: Mapping[str, str], data: Data | None, deadline: float | None) -> None:
        host = self.target.authority
        if isinstance(data, str):
            data = data.encode()
        if data is None or isinstance(data, bytes):
            length = {} if data is None and method in ("GET", "HEAD", "DELETE") else {"Content-Length": str(len(data or b""))}
            first = request(method, at, host, {**headers, **length})
            await wire.send(first + data if data and len(data) < PIECE else first, deadline)
            if data and len(data) >= PIECE:
                await wire.send(data, deadline)
            return
        size = is_regular(data)
        length = {"Transfer-Encoding": "chunked"} if size is None else {"Content-Length": str(size)}
        await wire.send(request(method, at, host, {**headers, **length}), deadline)
        async for piece in _pieces(data):
            if size is not None:
                piece = piece[:size]
                size -= len(piece)
                await wire.send(piece, deadline)
                if size == 0:
                    return
            elif piece:
                await wire.send(b"%x\r\n%s\r\n" % (len(piece), piece), deadline)
        if size:
            raise ClocheError("the file became shorter while it was sent")
        if size is None:
            await wire.send(b"0\r\n\r\n", deadline)

    async def ask(self, route: api.Route, names: Sequence[str] = NO_NAMES, **how: Any) -> Any:
        """Ask: the JSON of the answer, None where there is none."""
        answer = await self.open(route, names, **how)
        try:
            data = await answer.read(self.max_answer)
            said = decoded_json(data) if data else None
            waits = pending(said) if answer.head.status == 202 else None
            if waits is not None:
                raise waits
            return said
        finally:
            answer.close()

    async def stream(self, route: api.Route, names: Sequence[str] = NO_NAMES, *, timeout: float | None = None, **how: Any) -> AsyncAnswer:
        """Ask for events. @timeout: seconds for all of them; otherwise only their beginning has a limit."""
        answer = await self.open(route, names, timeout=timeout, fields={"Accept": "text/event-stream", **how.pop("fields", {})}, **how)
        try:
            if answer.head.status == 202:
                waits = pending(decoded_json(await answer.read(ERROR_MAX)))
                if waits is not None:
                    raise waits
            if answer.head.status != 204 and answer.head.fields.get("content-type", "").partition(";")[0] != "text/event-stream":
                raise AnswerError("an answer is no stream of events")
        except BaseException:
            answer.close()
            raise
        if timeout is None:
            answer.deadline = None
        return answer

    # --- the daemon

    async def health(self) -> dict[str, Any]:
        return _object(await self.ask(api.GET_HEALTH))

    async def ready(self) -> dict[str, Any]:
        """Whether it takes requests; otherwise UnavailableError says why."""
        return _object(await self.ask(api.GET_READY, repeatable=False))

    async def version(self) -> dict[str, Any]:
        return _object(await self.ask(api.GET_VERSION))

    async def metrics(self) -> str:
        """The daemon's numbers, in the text format of Prometheus."""
        answer = await self.open(api.GET_METRICS, fields={"Accept": "text/plain"})
        try:
            return (await answer.read(self.max_answer)).decode("utf-8", "replace")
        finally:
            answer.close()

    async def usage(self) -> List[api.Usage]:
        """What each living sandbox uses now."""
        return read(api.UsageList, await self.ask(api.GET_USAGE)).usage

    async def kill_all(self) -> int:
        """End all sandboxes: how many."""
        said = _object(await self.ask(api.POST_KILL))
        return next((value for value in said.values() if isinstance(value, int)), 0)

    async def execute(self, language: str, code: str, *, timeout: float | None = None, **options: Unpack[api.ExecuteOptions]) -> api.Result:
        """Run code in a sandbox of its own, which ends with it."""
        said = await self.ask(api.POST_EXECUTE, body={"language": language, "code": code, **options},
                              timeout=wait_of(timeout, options, self.timeout))
        return _result(api.Result, said, options.get("encoding", "text"))

    async def execute_stream(self, language: str, code: str, *, timeout: float | None = None,
                             **options: Unpack[api.ExecuteOptions]) -> AsyncOutputStream[api.Result]:
        """The same, with its output as it comes."""
        answer = await self.stream(api.POST_EXECUTE, body={"language": language, "code": code, **options}, timeout=timeout)
        return AsyncOutputStream(answer, self.max_answer, api.Result, options.get("encoding", "text"))


async def _pieces(data: BinaryIO | AsyncIterable[bytes]) -> AsyncIterator[bytes]:
    if not isinstance(data, AsyncIterable) or hasattr(data, "read"):
        file: Any = data
        while piece := file.read(PIECE):
            yield piece
    else:
        async for piece in data:
            yield piece


def _object(said: Any) -> dict[str, Any]:
    if not isinstance(said, dict):
        raise AnswerError("an answer is no object")
    return said


def _output(event: Event, said: Any, encoding: str) -> Output:
    data = said.get("data") if isinstance(said, dict) else None
    if not isinstance(data, str):
        raise AnswerError("an event has no data")
    return Output("stdout" if event.name == "stdout" else "stderr", data, encoding)


def _result(kind: type[R], said: Any, encoding: str) -> R:
    result = read(kind, said)
    result._encoding = encoding
    return result


class _AsyncPart:
    """A part of a client, about some of its routes."""

    def __init__(self, client: AsyncClient) -> None:
        self._client = client


class AsyncSandboxes(_AsyncPart):
    async def create(self, *, timeout: float | None = None, idempotency_key: str | None = None, **options: Unpack[api.CreateOptions]) -> AsyncSandbox:
        """Make one. Its members are those of the API (docs/daemon.md)."""
        return await AsyncSandbox(self._client, timeout=timeout, idempotency_key=idempotency_key, **options).start()

    async def get(self, which: str) -> AsyncSandbox:
        """One that is there, by its id or the name of one that lives."""
        return await AsyncSandbox.connect(which, self._client)

    async def info(self, which: str) -> api.SandboxInfo:
        return read(api.SandboxInfo, await self._client.ask(api.GET_SANDBOXES_ID, [which]))

    async def page(self, *, prefix: str | None = None, label: str | None = None, state: str | None = None, limit: int | None = None,
                   after: str | None = None, workspace_key: str | None = None) -> api.SandboxList:
        """Those that live, the oldest first; `next` of it is `after` of the following page."""
        query = {"prefix": prefix, "label": label, "state": state, "limit": limit, "after": after, "workspace_key": workspace_key}
        return read(api.SandboxList, await self._client.ask(api.GET_SANDBOXES, query=query))

    async def list(self, **filters: Any) -> AsyncIterator[api.SandboxInfo]:
        """All of them, page by page, with the filters of page()."""
        seen: set[str] = set()
        while True:
            page = await self.page(**filters)
            for one in page.sandboxes:
                yield one
            if page.next is None or page.next in seen:
                return
            seen.add(page.next)
            filters["after"] = page.next

    async def delete(self, which: str) -> api.SandboxInfo:
        """End it; of one that has stopped, remove the record."""
        return read(api.SandboxInfo, await self._client.ask(api.DELETE_SANDBOXES_ID, [which]))


class AsyncTemplates(_AsyncPart):
    async def list(self) -> List[api.Template]:
        return read(api.Templates, await self._client.ask(api.GET_TEMPLATES)).templates

    async def delete(self, which: str) -> api.Template:
        return read(api.Template, await self._client.ask(api.DELETE_TEMPLATES_ID, [which]))


class AsyncVolumes(_AsyncPart):
    async def list(self) -> List[api.Volume]:
        return read(api.Volumes, await self._client.ask(api.GET_VOLUMES)).volumes

    async def delete(self, which: str) -> api.Volume:
        return read(api.Volume, await self._client.ask(api.DELETE_VOLUMES_ID, [which]))


class AsyncTokens(_AsyncPart):
    async def create(self, role: Literal["operator", "agent", "approver", "auditor"], **options: Unpack[api.NewTokenOptions]) -> api.Token:
        """Make one; its `token` is in this answer only."""
        return read(api.Token, await self._client.ask(api.POST_TOKENS, body={"role": role, **options}))

    async def list(self) -> List[api.Token]:
        return read(api.Tokens, await self._client.ask(api.GET_TOKENS)).tokens

    async def delete(self, which: str) -> api.Token:
        """End it at once."""
        return read(api.Token, await self._client.ask(api.DELETE_TOKENS_ID, [which]))


class AsyncApprovals(_AsyncPart):
    async def list(self, *, state: str | None = None, limit: int | None = None, after: str | None = None) -> List[api.Approval]:
        return (await self.page(state=state, limit=limit, after=after)).approvals

    async def page(self, *, state: str | None = None, limit: int | None = None, after: str | None = None) -> api.Approvals:
        query = {"state": state, "limit": limit, "after": after}
        return read(api.Approvals, await self._client.ask(api.GET_APPROVALS, query=query))

    async def get(self, which: str) -> api.Approval:
        return read(api.Approval, await self._client.ask(api.GET_APPROVALS_ID, [which]))

    async def approve(self, which: str, **options: Unpack[api.ApproveOptions]) -> api.Approval:
        return read(api.Approval, await self._client.ask(api.POST_APPROVALS_ID_APPROVE, [which], body=dict(options)))

    async def deny(self, which: str, **options: Unpack[api.DenyOptions]) -> api.Approval:
        return read(api.Approval, await self._client.ask(api.POST_APPROVALS_ID_DENY, [which], body=dict(options)))

    async def stream(self, *, follow: bool = True, timeout: float | None = None) -> AsyncApprovalStream:
        """What is pending, then each approval that is new or changes."""
        answer = await self._client.stream(api.GET_APPROVALS_STREAM, query={"follow": follow}, timeout=timeout)
        return AsyncApprovalStream(answer, self._client.max_answer)


class AsyncGrants(_AsyncPart):
    async def list(self) -> List[api.Grant]:
        return read(api.Grants, await self._client.ask(api.GET_GRANTS)).grants

    async def delete(self, which: str) -> None:
        await self._client.ask(api.DELETE_GRANTS_ID, [which])


class AsyncAudit(_AsyncPart):
    async def list(self, *, sandbox: str | None = None, type: str | None = None, severity: str | None = None, since_ms: int | None = None,
                   until_ms: int | None = None, by: str | None = None, after: int | None = None, limit: int | None = None) -> dict[str, Any]:
        """The newest entries, or those behind one (`after`): `entries`, and `next` for the following ones."""
        query = {"sandbox": sandbox, "type": type, "severity": severity, "since_ms": since_ms, "until_ms": until_ms, "by": by,
                 "after": after, "limit": limit}
        return _object(await self._client.ask(api.GET_AUDIT, query=query))

    async def size(self, *, sandbox: str | None = None, type: str | None = None, severity: str | None = None, by: str | None = None) -> int:
        query = {"sandbox": sandbox, "type": type, "severity": severity, "by": by}
        said = _object(await self._client.ask(api.GET_AUDIT_SIZE, query=query)).get("size")
        return said if isinstance(said, int) else 0

    async def stream(self, *, sandbox: str | None = None, type: str | None = None, severity: str | None = None, since_ms: int | None = None,
                     until_ms: int | None = None, by: str | None = None, after: int | None = None, limit: int | None = None,
                     timeout: float | None = None) -> AsyncEventStream:
        query = {"sandbox": sandbox, "type": type, "severity": severity, "since_ms": since_ms, "until_ms": until_ms, "by": by,
                 "after": after, "limit": limit}
        answer = await self._client.stream(api.GET_AUDIT_STREAM, query=query, timeout=timeout)
        return AsyncEventStream(answer, self._client.max_answer)


class AsyncDaemonEvents(_AsyncPart):
    async def list(self, *, sandbox: str | None = None, limit: int | None = None) -> List[api.EventInfo]:
        return read(api.Events, await self._client.ask(api.GET_EVENTS, query={"sandbox": sandbox, "limit": limit})).events

    async def stream(self, *, sandbox: str | None = None, limit: int | None = None, after: int | None = None,
                     timeout: float | None = None) -> AsyncEventStream:
        query = {"sandbox": sandbox, "limit": limit, "after": after}
        answer = await self._client.stream(api.GET_EVENTS_STREAM, query=query, timeout=timeout)
        return AsyncEventStream(answer, self._client.max_answer)


class AsyncSandbox:
    """A sandbox. `async with` makes it and ends it; create() makes one that the caller ends; connect() is one that is there."""

    def __init__(self, client: AsyncClient | None = None, *, timeout: float | None = None, idempotency_key: str | None = None,
                 **options: Unpack[api.CreateOptions]) -> None:
        self.client = client or AsyncClient()
        self._timeout = timeout
        self._own_key = idempotency_key is not None
        self.idempotency_key = idempotency_key or secrets.token_hex(16)
        self._options = options
        self._info: api.SandboxInfo | None = None
        self._ends = True
        self.files = AsyncFiles(self)
        self.commands = AsyncCommands(self)
        self.contexts = AsyncContexts(self)
        self.ports = AsyncPorts(self)
        self.attach = AsyncAttach(self)
        self.policy = AsyncPolicy(self)
        self.transcript = AsyncTranscript(self)

    @classmethod
    async def create(cls, client: AsyncClient | None = None, *, timeout: float | None = None, idempotency_key: str | None = None,
                     **options: Unpack[api.CreateOptions]) -> Self:
        return await cls(client, timeout=timeout, idempotency_key=idempotency_key, **options).start()

    @classmethod
    async def connect(cls, which: str, client: AsyncClient | None = None) -> Self:
        """One that is there. The end of `async with` does not end it."""
        self = cls(client)
        return self._is(await self.client.sandboxes.info(which), False)

    def _is(self, info: api.SandboxInfo, ends: bool) -> Self:
        self._info = info
        self._ends = ends
        return self

    async def start(self) -> Self:
        """Make it, if it is not made. A request whose answer was lost finds what it made, by its Idempotency-Key; the answer
        of one that was repeated has no `key` (new_key makes one). What was perhaps made when the caller's patience ended is
        ended, within 10 s, unless the caller has a name for it: an idempotency_key of its own, or a workspace to reattach."""
        if self._info is None:
            asked = Asked()
            try:
                info = await self._make(self._timeout, asked)
            except BaseException as e:
                named = self._own_key or self._options.get("reattach")
                if asked.unknown and not named and not isinstance(e, (ApprovalPending, GeneratorExit)):
                    await shielded(self._undo())
                raise
            self._is(info, not info.reattached)
        return self

    async def _make(self, timeout: float | None, asked: Asked | None = None) -> api.SandboxInfo:
        said = await self.client.ask(api.POST_SANDBOXES, body=dict(self._options), fields={"Idempotency-Key": self.idempotency_key},
                                     timeout=timeout, repeatable=True, asked=asked)
        return read(api.SandboxInfo, said)

    async def _undo(self) -> bool:
        """End what was made for a request whose answer nobody has: its key finds it. Otherwise start() may find it."""
        try:
            made = await self._make(UNDO)
            await self.client.ask(api.DELETE_SANDBOXES_ID, [made.id], timeout=UNDO)
        except ClocheError:
            return False
        self.idempotency_key = secrets.token_hex(16)
        return True

    @property
    def info(self) -> api.SandboxInfo:
        """Its record, as it was when it was last asked for (refresh)."""
        if self._info is None:
            raise ClocheError("this sandbox is not made yet: use it in a with statement, or Sandbox.create()")
        return self._info

    @property
    def id(self) -> str:
        return self.info.id

    @property
    def name(self) -> str:
        return self.info.name

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self._info.id if self._info else 'not made'}>"

    async def __aenter__(self) -> Self:
        return await self.start()

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._ends and self._info is not None:
            with contextlib.suppress(api.NotFoundError, api.GoneError):
                await self.delete()

    async def _ask(self, route: api.Route, *names: str, **how: Any) -> Any:
        return await self.client.ask(route, [self.id, *names], **how)

    # --- its life

    async def _now(self, route: api.Route) -> api.SandboxInfo:
        """Ask what answers with its record: that is its record then."""
        self._info = read(api.SandboxInfo, await self._ask(route))
        return self._info

    async def refresh(self) -> api.SandboxInfo:
        return await self._now(api.GET_SANDBOXES_ID)

    async def delete(self) -> None:
        """End it, with everything that runs in it. One that has ended is left as it is."""
        if (await self.refresh()).state != "stopped":
            await self._now(api.DELETE_SANDBOXES_ID)

    async def pause(self) -> None:
        await self._now(api.POST_SANDBOXES_ID_PAUSE)

    async def resume(self) -> None:
        await self._now(api.POST_SANDBOXES_ID_RESUME)

    async def recover(self) -> None:
        """Make one that is degraded or stopped anew, empty."""
        await self._now(api.POST_SANDBOXES_ID_RECOVER)

    async def fork(self, count: int = 1, *, name: str | None = None) -> List[Self]:
        """New sandboxes that begin with its files. The caller ends them, by delete() or `async with`."""
        body = {"count": count, **({"name": name} if name is not None else {})}
        forks = read(api.Forks, await self._ask(api.POST_SANDBOXES_ID_FORK, body=body))
        return [type(self)(self.client)._is(info, True) for info in forks.sandboxes]

    async def snapshot(self, name: str) -> api.Template:
        """Keep its files as a template."""
        return read(api.Template, await self._ask(api.POST_SANDBOXES_ID_SNAPSHOT, body={"name": name}))

    async def usage(self) -> api.Usage | None:
        """What it uses now; None when it has stopped."""
        found = read(api.UsageList, await self._ask(api.GET_SANDBOXES_ID_USAGE)).usage
        return found[0] if found else None

    async def new_key(self) -> api.SandboxKey:
        """A new key; the former one is none any more."""
        return read(api.SandboxKey, await self._ask(api.POST_SANDBOXES_ID_KEY))

    async def browser(self) -> api.BrowserInfo:
        """See that its browser runs, and where its DevTools are."""
        return read(api.BrowserInfo, await self._ask(api.POST_SANDBOXES_ID_BROWSER))

    async def audit(self, **filters: Any) -> dict[str, Any]:
        """Entries of the record about it, with the filters of Client.audit.list."""
        return _object(await self._ask(api.GET_SANDBOXES_ID_AUDIT, query=filters))

    # --- commands

    async def run(self, command: Words, *, timeout: float | None = None, **options: Unpack[api.ExecOptions]) -> api.Result:
        """Run a command to its end: a list of words, or a string for /bin/sh."""
        said = await self._ask(api.POST_SANDBOXES_ID_EXEC, body={"command": command, **options},
                               timeout=wait_of(timeout, options, self.client.timeout))
        return _result(api.Result, said, options.get("encoding", "text"))

    async def stream(self, command: Words, *, timeout: float | None = None, **options: Unpack[api.ExecOptions]) -> AsyncOutputStream[api.Result]:
        """The same, with its output as it comes. Leaving the stream ends the command."""
        answer = await self.client.stream(api.POST_SANDBOXES_ID_EXEC, [self.id], body={"command": command, **options}, timeout=timeout)
        return AsyncOutputStream(answer, self.client.max_answer, api.Result, options.get("encoding", "text"))

    async def spawn(self, command: Words, **options: Unpack[api.ExecOptions]) -> AsyncCommand:
        """Start a command in the background."""
        said = await self._ask(api.POST_SANDBOXES_ID_EXEC, body={"command": command, "background": True, **options})
        return AsyncCommand(self, read(api.CommandInfo, said))


class _AsyncOf:
    """A part of a sandbox."""

    def __init__(self, sandbox: AsyncSandbox) -> None:
        self._sandbox = sandbox

    async def _ask(self, route: api.Route, *names: str, **how: Any) -> Any:
        return await self._sandbox._ask(route, *names, **how)


class AsyncCommands(_AsyncOf):
    """Commands in the background."""

    async def list(self) -> List[api.CommandInfo]:
        """The oldest first, those that have ended among them."""
        said = _object(await self._ask(api.GET_SANDBOXES_ID_EXEC)).get("commands")
        return [read(api.CommandInfo, one) for one in said] if isinstance(said, list) else []

    async def get(self, exec_id: str) -> AsyncCommand:
        return AsyncCommand(self._sandbox, read(api.CommandInfo, await self._ask(api.GET_SANDBOXES_ID_EXEC_ID, exec_id)))


class AsyncCommand:
    """A command in the background."""

    def __init__(self, sandbox: AsyncSandbox, info: api.CommandInfo) -> None:
        self._sandbox = sandbox
        self.info = info

    @property
    def id(self) -> str:
        return self.info.exec_id

    async def _ask(self, route: api.Route, **how: Any) -> api.CommandInfo:
        self.info = read(api.CommandInfo, await self._sandbox._ask(route, self.id, **how))
        return self.info

    async def refresh(self) -> api.CommandInfo:
        return await self._ask(api.GET_SANDBOXES_ID_EXEC_ID)

    async def write(self, data: str | bytes, *, end: bool = False, timeout: float | None = None) -> int:
        """Bytes for its stdin, which it has taken when this returns; @end: nothing comes after them."""
        said = _object(await self._sandbox._ask(api.POST_SANDBOXES_ID_EXEC_ID_STDIN, self.id, data=data, query={"end": end}, timeout=timeout,
                                                fields={"Content-Type": "application/octet-stream"})).get("bytes")
        return said if isinstance(said, int) else 0

    async def signal(self, signal: str | int) -> api.CommandInfo:
        """INT, SIGINT, or a number: to its process group, of a terminal to the group in front."""
        return await self._ask(api.POST_SANDBOXES_ID_EXEC_ID_SIGNAL, body={"signal": signal})

    async def resize(self, rows: int, cols: int) -> api.CommandInfo:
        return await self._ask(api.POST_SANDBOXES_ID_EXEC_ID_RESIZE, body={"rows": rows, "cols": cols})

    async def delete(self) -> api.CommandInfo:
        """End it (SIGTERM, after the policy's grace SIGKILL); of one that had ended, remove the record."""
        return await self._ask(api.DELETE_SANDBOXES_ID_EXEC_ID)

    async def stream(self, *, after: str | None = None, encoding: Literal["text", "base64"] = "text",
                     timeout: float | None = None) -> AsyncCommandStream:
        """Its output, from the beginning of what is kept, or behind what the caller has. Where the connection breaks it goes on."""
        stream = AsyncCommandStream(self, after, encoding, timeout)
        await stream.connect()
        return stream

    async def wait(self, *, timeout: float | None = None) -> api.CommandInfo:
        """Until it has ended."""
        stream = await self.stream(timeout=timeout)
        try:
            async for _ in stream:
                pass
        finally:
            stream.close()
        return await self.refresh()


class AsyncCommandStream:
    """The output of a command in the background. `position` is `after` of another stream that goes on there."""

    def __init__(self, command: AsyncCommand, after: str | None, encoding: str, timeout: float | None) -> None:
        self._command = command
        self.position = after
        self._encoding = encoding
        self._timeout = timeout
        self._deadline = until(timeout)
        self._stream: AsyncEventStream | None = None
        self._tries = 0
        self._closed = False
        self.ended = False

    async def connect(self) -> None:
        sandbox = self._command._sandbox
        answer = await sandbox.client.stream(api.GET_SANDBOXES_ID_EXEC_ID_STREAM, [sandbox.id, self._command.id],
                                             query={"after": self.position, "encoding": self._encoding}, timeout=left(self._deadline))
        self._stream = AsyncEventStream(answer, sandbox.client.max_answer)
        self.ended = answer.head.status == 204
        if self._closed:        # meanwhile, by another thread or task
            self._drop()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Output | Gap:
        while not self.ended and not self._closed:
            stream = self._stream
            try:
                if stream is None:
                    await self.connect()
                    continue
                event = await stream.__anext__()
            except (ConnectionLost, StopAsyncIteration) as e:
                self._drop()
                if self._closed:
                    break
                self._tries += 1
                if self._tries > self._command._sandbox.client.retries:
                    raise ConnectionLost("the stream ended before the command had") from e
                await asyncio.sleep(0.1 * self._tries)
                continue
            try:
                found = self._take(event)
            except AnswerError:
                self.close()
                raise
            if found is not None:
                return found
        self.close()
        raise StopAsyncIteration

    def _take(self, event: Event) -> Output | Gap | None:
        """What an event is to the caller; None: the command's end."""
        said = _object(event.json())
        self._tries = 0
        self.position = event.id or self.position
        if event.name in ("stdout", "stderr"):
            return _output(event, said, self._encoding)
        if event.name == "gap" and isinstance(said.get("bytes"), int):
            return Gap(str(said.get("stream")), said["bytes"])
        if event.name != "exit":
            raise AnswerError("an event that no command has")
        self.ended = True
        return None

    def _drop(self) -> None:
        stream, self._stream = self._stream, None
        if stream is not None:
            stream.close()

    def close(self) -> None:
        """It ends, also for another thread or task that reads it. The command goes on."""
        self._closed = True
        self._drop()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()


class AsyncContexts(_AsyncOf):
    async def create(self, language: Literal["python", "javascript", "shell"] = "python", **options: Unpack[api.NewContextOptions]) -> AsyncContext:
        """A process that runs code for one call after the other, and keeps its variables."""
        said = await self._ask(api.POST_SANDBOXES_ID_CONTEXTS, body={"language": language, **options})
        return AsyncContext(self._sandbox, read(api.ContextInfo, said))

    async def list(self) -> List[api.ContextInfo]:
        said = _object(await self._ask(api.GET_SANDBOXES_ID_CONTEXTS)).get("contexts")
        return [read(api.ContextInfo, one) for one in said] if isinstance(said, list) else []

    async def get(self, context_id: str) -> AsyncContext:
        return AsyncContext(self._sandbox, read(api.ContextInfo, await self._ask(api.GET_SANDBOXES_ID_CONTEXTS_ID, context_id)))


class AsyncContext:
    """A process that runs code for one call after the other. The end of `async with` ends it."""

    def __init__(self, sandbox: AsyncSandbox, info: api.ContextInfo) -> None:
        self._sandbox = sandbox
        self.info = info

    @property
    def id(self) -> str:
        return self.info.context_id

    async def _ask(self, route: api.Route) -> api.ContextInfo:
        self.info = read(api.ContextInfo, await self._sandbox._ask(route, self.id))
        return self.info

    async def execute(self, code: str, *, timeout: float | None = None, **options: Unpack[api.ContextCodeOptions]) -> api.ContextResult:
        """Run code in it, after what ran there before."""
        said = await self._sandbox._ask(api.POST_SANDBOXES_ID_CONTEXTS_ID_EXECUTE, self.id, body={"code": code, **options},
                                        timeout=wait_of(timeout, options, self._sandbox.client.timeout))
        return _result(api.ContextResult, said, options.get("encoding", "text"))

    async def stream(self, code: str, *, timeout: float | None = None,
                     **options: Unpack[api.ContextCodeOptions]) -> AsyncOutputStream[api.ContextResult]:
        """The same, with its output and results as they come. Leaving the stream interrupts the code."""
        client = self._sandbox.client
        answer = await client.stream(api.POST_SANDBOXES_ID_CONTEXTS_ID_EXECUTE, [self._sandbox.id, self.id], body={"code": code, **options},
                                     timeout=timeout)
        return AsyncOutputStream(answer, client.max_answer, api.ContextResult, options.get("encoding", "text"))

    async def refresh(self) -> api.ContextInfo:
        return await self._ask(api.GET_SANDBOXES_ID_CONTEXTS_ID)

    async def interrupt(self) -> api.ContextInfo:
        """End the code that runs in it; its variables stay."""
        return await self._ask(api.POST_SANDBOXES_ID_CONTEXTS_ID_INTERRUPT)

    async def restart(self) -> api.ContextInfo:
        """End its process and begin it anew, without variables."""
        return await self._ask(api.POST_SANDBOXES_ID_CONTEXTS_ID_RESTART)

    async def delete(self) -> api.ContextInfo:
        return await self._ask(api.DELETE_SANDBOXES_ID_CONTEXTS_ID)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        with contextlib.suppress(api.NotFoundError, api.GoneError, api.ConflictError):
            await self.delete()


class AsyncFiles(_AsyncOf):
    """Files of the workspace. Paths are below it, or begin with where it is inside."""

    async def read(self, path: str, *, offset: int | None = None, length: int | None = None, limit: int | None = None,
                   timeout: float | None = None) -> bytes:
        """Its contents, at most @limit bytes of them (the client's max_answer)."""
        answer = await self._open(path, offset, length, timeout)
        try:
            return await answer.read(self._sandbox.client.max_answer if limit is None else limit)
        finally:
            answer.close()

    async def read_text(self, path: str, *, encoding: str = "utf-8", limit: int | None = None) -> str:
        return (await self.read(path, limit=limit)).decode(encoding)

    async def chunks(self, path: str, *, offset: int | None = None, length: int | None = None, timeout: float | None = None) -> AsyncIterator[bytes]:
        """Its contents in pieces, as they come."""
        answer = await self._open(path, offset, length, timeout)
        try:
            async for piece in answer.pieces():
                yield piece
        finally:
            answer.close()

    async def _open(self, path: str, offset: int | None, length: int | None, timeout: float | None) -> AsyncAnswer:
        answer = await self._sandbox.client.open(api.GET_SANDBOXES_ID_FILES_PATH, [self._sandbox.id], path=path, timeout=timeout,
                                                 query={"offset": offset, "length": length}, fields={"Accept": "application/octet-stream"})
        if answer.head.status == 202:
            try:
                raise pending(decoded_json(await answer.read(ERROR_MAX))) or AnswerError("an answer that no file has")
            finally:
                answer.close()
        return answer

    async def write(self, path: str, data: Data, *, parents: bool = False, exclusive: bool = False, mode: int | None = None,
                    timeout: float | None = None) -> int:
        """Write the whole file: text, bytes, an open file, or pieces of bytes. How many bytes."""
        query = {"parents": parents or None, "exclusive": exclusive or None, "mode": None if mode is None else format(mode, "o")}
        said = _object(await self._ask(api.PUT_SANDBOXES_ID_FILES_PATH, path=path, data=data, query=query, timeout=timeout,
                                       fields={"Content-Type": "application/octet-stream"}))
        size = said.get("size")
        return size if isinstance(size, int) else 0

    async def upload(self, local: str | os.PathLike[str], path: str, *, parents: bool = False, exclusive: bool = False, mode: int | None = None,
                     timeout: float | None = None) -> int:
        """Write a local file there."""
        with open(local, "rb") as file:
            return await self.write(path, file, parents=parents, exclusive=exclusive, mode=mode, timeout=timeout)

    async def download(self, path: str, local: str | os.PathLike[str], *, limit: int = DOWNLOAD_MAX, timeout: float | None = None) -> int:
        """Write its contents to a local file, whose name is the caller's: all of them, or nothing. How many bytes."""
        local = os.fspath(local)
        answer = await self._open(path, None, None, timeout)
        size = 0
        try:
            with tempfile.NamedTemporaryFile(dir=os.path.dirname(local) or ".", prefix=".cloche-", delete=False) as file:
                try:
                    async for piece in answer.pieces():
                        size += len(piece)
                        if size > limit:
                            raise AnswerTooLong(f"the file has more than the {limit} bytes that the caller takes")
                        file.write(piece)
                    file.close()
                    os.replace(file.name, local)
                except BaseException:
                    os.unlink(file.name)
                    raise
        finally:
            answer.close()
        return size

    async def size(self, path: str) -> int:
        answer = await self._sandbox.client.open(api.HEAD_SANDBOXES_ID_FILES_PATH, [self._sandbox.id], path=path)
        answer.close()
        return answer.head.length() or 0

    async def stat(self, path: str) -> api.Entry:
        return read(api.Entry, await self._ask(api.GET_SANDBOXES_ID_STAT_PATH, path=path))

    async def exists(self, path: str) -> bool:
        try:
            await self.stat(path)
        except api.NoSuchFileError:
            return False
        return True

    async def list(self, path: str = "") -> List[api.Entry]:
        """Entries of a folder."""
        return read(api.Entries, await self._ask(api.GET_SANDBOXES_ID_DIRS_PATH, path=path)).entries

    async def mkdir(self, path: str, *, parents: bool = False, mode: int | None = None) -> None:
        query = {"parents": parents or None, "mode": None if mode is None else format(mode, "o")}
        await self._ask(api.POST_SANDBOXES_ID_DIRS_PATH, path=path, query=query)

    async def delete(self, path: str, *, recursive: bool = False) -> None:
        await self._ask(api.DELETE_SANDBOXES_ID_FILES_PATH, path=path, query={"recursive": recursive or None})

    async def watch(self, path: str | None = None, *, recursive: bool = False, timeout: float | None = None) -> AsyncWatch:
        """What changes below a folder, as it happens. The first event is `watching`."""
        client = self._sandbox.client
        answer = await client.stream(api.GET_SANDBOXES_ID_WATCH, [self._sandbox.id], query={"path": path, "recursive": recursive}, timeout=timeout)
        return AsyncWatch(answer, client.max_answer)


class AsyncPorts(_AsyncOf):
    async def expose(self, port: int, **options: Unpack[api.NewPortOptions]) -> api.Port:
        """Expose one; its `url` and `path` are in this answer only."""
        return read(api.Port, await self._ask(api.POST_SANDBOXES_ID_PORTS, body={"port": port, **options}))

    async def list(self) -> List[api.Port]:
        return read(api.Ports, await self._ask(api.GET_SANDBOXES_ID_PORTS)).ports

    async def delete(self, which: str) -> api.Port:
        return read(api.Port, await self._ask(api.DELETE_SANDBOXES_ID_PORTS_ID, which))


class AsyncAttach(_AsyncOf):
    """Sessions of people, with an editor or at the desktop (docs/attach.md)."""

    async def create(self, mode: Literal["inspect", "write", "view", "control"], **options: Unpack[api.NewAttachOptions]) -> api.Attach:
        """A ticket for a session."""
        return read(api.Attach, await self._ask(api.POST_SANDBOXES_ID_ATTACH, body={"mode": mode, **options}))

    async def open(self, ticket: str) -> api.Attach:
        """A session for its ticket, which is used up."""
        return read(api.Attach, await self._ask(api.POST_SANDBOXES_ID_ATTACH_OPEN, body={"ticket": ticket}))

    async def list(self) -> List[api.Attach]:
        return read(api.Attached, await self._ask(api.GET_SANDBOXES_ID_ATTACH)).sessions

    async def delete(self, which: str) -> api.Attach:
        return read(api.Attach, await self._ask(api.DELETE_SANDBOXES_ID_ATTACH_SESSIONS_ID, which))


class AsyncPolicy(_AsyncOf):
    async def get(self) -> api.PolicyInfo:
        """What it was asked to be held to, and what it is held to."""
        return read(api.PolicyInfo, await self._ask(api.GET_SANDBOXES_ID_POLICY))

    async def patch(self, patch: Mapping[str, Any], *, revision: str | None = None) -> api.PolicyInfo:
        """Change it by a merge patch; with @revision only if nobody has changed it since."""
        fields = {"Content-Type": "application/merge-patch+json", **({"If-Match": f'"{revision}"'} if revision is not None else {})}
        return read(api.PolicyInfo, await self._ask(api.PATCH_SANDBOXES_ID_POLICY, body=dict(patch), fields=fields))


class AsyncTranscript(_AsyncOf):
    """What was done in a sandbox; also when it is gone."""

    async def page(self, offset: int | None = None) -> dict[str, Any]:
        """`entries`, and `next`, which is @offset of the following page."""
        return _object(await self._ask(api.GET_SANDBOXES_ID_TRANSCRIPT, query={"offset": offset}))

    async def logs(self, offset: int | None = None) -> dict[str, Any]:
        """What commands wrote, of a page."""
        return _object(await self._ask(api.GET_SANDBOXES_ID_LOGS, query={"offset": offset}))

    async def messages(self, offset: int | None = None) -> dict[str, Any]:
        """The messages of a page."""
        return _object(await self._ask(api.GET_SANDBOXES_ID_MESSAGES, query={"offset": offset}))

    async def add_message(self, role: str, content: Any) -> int:
        """Put a message of the conversation into it: its number."""
        said = _object(await self._ask(api.POST_SANDBOXES_ID_MESSAGES, body={"role": role, "content": content})).get("operation")
        return said if isinstance(said, int) else 0
