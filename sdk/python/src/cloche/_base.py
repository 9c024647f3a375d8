"""What everything else stands on: errors, the end of a command, reading records out of JSON."""
from __future__ import annotations

import base64
import binascii
import dataclasses
import functools
import sys
import types
from collections.abc import Mapping
from typing import Any, TypeVar, Union, cast, get_args, get_origin, get_type_hints

T = TypeVar("T")


class ClocheError(Exception):
    """Anything that goes wrong with cloche."""


class ConnectionFailed(ClocheError):
    """Nobody answers there: nothing was asked."""


class ConnectionLost(ClocheError):
    """The connection ended before the answer had: what was asked may have been done, or not."""


class TimedOut(ClocheError):
    """The caller's own time was over. The connection is closed, which ends a command that was waited for."""


class AnswerError(ClocheError):
    """What came is no answer of cloche serve."""


class AnswerTooLong(AnswerError):
    """More came than the caller takes."""


class ApiError(ClocheError):
    """The daemon refuses, or failed. `code` is stable, the text is the daemon's."""

    def __init__(self, status: int, code: str, message: str, detail: str = "", request_id: str = "", retry_after: float | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.message = message
        self.detail = detail
        self.request_id = request_id
        self.retry_after = retry_after

    def __str__(self) -> str:
        return f"{self.message} [{self.code}]" + (f": {self.detail}" if self.detail else "")

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.status, self.code, self.message, self.detail, self.request_id, self.retry_after)


class ApprovalPending(ClocheError):
    """Somebody has to approve it first (a client with respond_async). The same request does it then."""

    def __init__(self, approval: str, url: str, risk: str, rule: str | None, timeout: int) -> None:
        super().__init__(f"approval {approval} is pending")
        self.approval = approval
        self.url = url
        self.risk = risk
        self.rule = rule
        self.timeout = timeout


class CommandError(ClocheError):
    """A command that did not end with 0, where the caller asked for that (Result.check)."""

    def __init__(self, result: Outcome) -> None:
        how = (f"was ended by signal {result.signal}" if result.exit_code is None else f"ended with {result.exit_code}")
        super().__init__(f"the command {how}" + (f": {result.stderr.strip()[-2000:]}" if result.stderr.strip() else ""))
        self.result = result


class Outcome:
    """What the result of a command has beside its members."""

    exit_code: int | None
    signal: int | None
    stdout: str
    stderr: str
    _encoding = "text"

    @property
    def ok(self) -> bool:
        """Whether it ended with 0."""
        return self.exit_code == 0

    def check(self: T) -> T:
        """Itself, if it ended with 0; otherwise CommandError."""
        assert isinstance(self, Outcome)
        if not self.ok:
            raise CommandError(self)
        return self

    @property
    def stdout_bytes(self) -> bytes:
        """Its output as bytes: exactly what was written, where it was asked for with encoding="base64"."""
        return decoded(self.stdout, self._encoding)

    @property
    def stderr_bytes(self) -> bytes:
        return decoded(self.stderr, self._encoding)


class Contents:
    """What a file that came back has beside its members."""

    content: str | None
    content_base64: str | None

    @property
    def raw(self) -> bytes:
        """Its contents as bytes. Its path is a name that the code chose: check it before you write it to a disk."""
        return decoded(self.content_base64, "base64") if self.content_base64 is not None else (self.content or "").encode()


def decoded(text: str, encoding: str) -> bytes:
    if encoding != "base64":
        return text.encode()
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError) as e:
        raise AnswerError("what should be base64 is not") from e


@functools.lru_cache(maxsize=None)
def _members(cls: Any) -> list[tuple[str, str, Any, bool]]:
    """(its name here, its name in JSON, its type, whether it has to be there)."""
    hints = get_type_hints(cls, vars(sys.modules[cls.__module__]))
    return [(f.name, f.name.rstrip("_"), hints[f.name], f.default is dataclasses.MISSING) for f in dataclasses.fields(cls)]


def read(cls: type[T], value: object) -> T:
    """A record out of an answer. Members that it does not know are passed over; a wrong type is an AnswerError."""
    if not isinstance(value, Mapping):
        raise AnswerError(f"an answer is no {cls.__name__}")
    found = {}
    for name, member, hint, required in _members(cast(Any, cls)):
        if value.get(member) is not None or (required and member in value):
            found[name] = _value(hint, value[member], f"{cls.__name__}.{member}")
        elif required:
            raise AnswerError(f"an answer lacks {cls.__name__}.{member}")
    return cls(**found)


def _value(hint: Any, value: Any, where: str) -> Any:
    origin = get_origin(hint)
    if hint is Any:
        return value
    if origin is Union or origin is types.UnionType:
        kinds = get_args(hint)
        if value is None and type(None) in kinds:
            return None
        return _value(next(kind for kind in kinds if kind is not type(None)), value, where)
    if origin is list and isinstance(value, list):
        return [_value(get_args(hint)[0], one, where) for one in value]
    if origin is dict and isinstance(value, dict):
        return {str(key): _value(get_args(hint)[1], one, where) for key, one in value.items()}
    if dataclasses.is_dataclass(hint) and isinstance(hint, type):
        return read(hint, value)
    # a newer daemon may have more words than an enumeration lists
    kind = str if origin is not None and origin not in (list, dict) else hint
    if isinstance(kind, type) and isinstance(value, kind) and (kind is bool or not isinstance(value, bool)):
        return value
    raise AnswerError(f"{where} has the wrong type")
