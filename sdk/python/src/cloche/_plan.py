"""What a request is to be, and what is done with its answer, whichever client asks: no connection here."""
from __future__ import annotations

import io
import ipaddress
import json
import os
import random
import ssl
import stat
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

from cloche import _api as api
from cloche._base import AnswerError, ApiError, ApprovalPending, ConnectionFailed, ConnectionLost, read
from cloche._wire import Target

ANSWER_MAX = 64 * 1024 * 1024       # bytes of an answer that is kept in memory
DOWNLOAD_MAX = 1024 * 1024 * 1024   # of a file that is written to a disk
ERROR_MAX = 64 * 1024
TIMEOUT = 300.0
PIECE = 1024 * 1024
UNDO = 10.0                         # seconds for ending what was made for nobody
QUERY = Mapping[str, Any]


class Asked:
    """What became of a request."""

    unknown = False     # something was sent, and the daemon has not said whether it was done


def default_socket() -> str:
    """Where `cloche serve` of this user listens."""
    state = os.environ.get("XDG_STATE_HOME", "")
    if state.startswith("/"):
        return f"{state}/cloche/serve/api.sock"
    if os.geteuid() == 0:
        return "/var/lib/cloche/serve/api.sock"
    return str(Path.home() / ".local/state/cloche/serve/api.sock")


def target(url: str | None, socket: str | None, tls: ssl.SSLContext | None) -> Target:
    """Where the daemon is: what the caller says, or CLOCHE_URL, CLOCHE_SOCKET, or the usual place."""
    if url is not None and socket is not None:
        raise ValueError("url and socket are two daemons: give one")
    if url is None and socket is None:
        url, socket = os.environ.get("CLOCHE_URL") or None, os.environ.get("CLOCHE_SOCKET") or None
        socket = None if url else socket or default_socket()
    if url is None or url.startswith("unix:"):
        path = (url or socket or "").removeprefix("unix:")
        if not path or "://" in path:
            raise ValueError(f"{path!r} is no path of a unix socket; an address is url=")
        return Target(socket=path)
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.username is not None or parts.path not in ("", "/") or parts.query:
        raise ValueError("the daemon's address is http://HOST:PORT, https://HOST:PORT or unix:PATH")
    secure = parts.scheme == "https"
    return Target(host=parts.hostname, port=parts.port or (443 if secure else 80), tls=(tls or ssl.create_default_context()) if secure else None)


def is_here(host: str) -> bool:
    """Whether what is sent there stays on this machine. A name of a network is no address, whatever it begins with."""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def credential(token: str | None, at: Target, insecure: bool, chosen: bool) -> str:
    """The token that is sent; "" none. It never leaves this machine in clear. CLOCHE_TOKEN belongs to the daemon of the
    environment: it is not sent to one that the program has @chosen."""
    found = token if token is not None else "" if chosen else os.environ.get("CLOCHE_TOKEN", "")
    if any(not "!" <= c <= "~" for c in found):
        raise ValueError("the token holds a character that no token has")
    if found and not at.socket and at.tls is None and not is_here(at.host) and not insecure:
        raise ValueError(f"a token is not sent to {at.host} without TLS: use https://, or insecure=True where the network is trusted")
    return found


def path_of(route: api.Route, names: Iterable[str], path: str | None = None, query: QUERY | None = None) -> str:
    """The route's path with @names in the places of its ids, in their order, and @path at its end."""
    out, rest = [], list(names)
    for word in route.path.split("/"):
        if word == "{path}":
            out.append(file_path(path or ""))
        elif word.startswith("{"):
            out.append(one_name(rest.pop(0)))
        else:
            out.append(word)
    assert not rest, "more names than the route has places"
    asked = {key: str(value).lower() if isinstance(value, bool) else str(value) for key, value in (query or {}).items() if value is not None}
    return "/".join(out) + (f"?{urlencode(asked)}" if asked else "")


def one_name(name: str) -> str:
    """An id or a name as one part of a path, which no proxy takes for another path."""
    if not isinstance(name, str) or name in ("", ".", ".."):
        raise ValueError(f"{name!r} is no id and no name")
    return quote(name, safe="")


def file_path(path: str) -> str:
    """A path in a sandbox. With .. in it a proxy in front of the daemon could take it for another route."""
    if ".." in path.split("/"):
        raise api.DeniedError(403, "files.path-escapes", "Path escapes workspace.", f'"{path}": use a path below the workspace, without ".."')
    words = quote(os.fsencode(path), safe="/")
    return "%2F" + words.lstrip("/") if words.startswith("/") else words


def decoded_json(data: bytes) -> Any:
    try:
        return json.loads(data)
    except (ValueError, RecursionError) as e:
        raise AnswerError("an answer is no JSON") from e


def failure(status: int, fields: Mapping[str, str], data: bytes) -> Exception:
    """What an answer that is no success means."""
    if status < 400:
        return AnswerError(f"an answer with status {status}; redirects are not followed")
    try:
        said = json.loads(data)
    except (ValueError, RecursionError):
        said = None
    said = said if isinstance(said, dict) else {}
    return error_of(said, status, fields)


def error_of(said: Mapping[str, Any], status: int, fields: Mapping[str, str] | None = None) -> ApiError:
    """An error, in the daemon's own words; also one that is the last event of a stream."""
    words = [said.get(name) for name in ("code", "error", "detail", "request_id")]
    code, message, detail, request_id = (word if isinstance(word, str) else "" for word in words)
    kind = api.BY_CODE.get(code) or api.BY_STATUS.get(status) or (api.ServerError if status >= 500 else api.InvalidError if status else ApiError)
    after = (fields or {}).get("retry-after", "")
    return kind(status, code or f"http.{status}", message or f"the daemon answered with status {status}", detail,
                request_id, float(after) if after.isascii() and after.isdigit() and len(after) < 6 else None)


def pending(said: Any) -> ApprovalPending | None:
    """A 202 that says that somebody has to approve it first."""
    if not isinstance(said, dict) or "approval" not in said or "exec_id" in said:
        return None
    wait = read(api.ApprovalWait, said)
    return ApprovalPending(wait.approval, wait.url, wait.risk, wait.rule, wait.timeout)


def may_retry(error: Exception, repeatable: bool, attempt: int) -> float | None:
    """Seconds to wait before the same is asked again, or None. What may have been done once is asked again only where that
    is the same."""
    again = isinstance(error, ConnectionFailed) or (isinstance(error, ApiError) and error.code == "http.rate")
    again = again or (repeatable and (isinstance(error, ConnectionLost) or (isinstance(error, ApiError) and error.status == 503)))
    if not again:
        return None
    said = error.retry_after if isinstance(error, ApiError) else None
    return min(said if said is not None else 0.1 * 2 ** attempt, 10.0) * random.uniform(1.0, 1.25)


def wait_of(timeout: float | None, members: Mapping[str, Any], default: float | None) -> float | None:
    """How long a call waits: as the caller says; or so long as its command may take, with what may come in front of it."""
    asked = members.get("timeout_ms")
    if timeout is not None or default is None or not isinstance(asked, int):
        return timeout if timeout is not None else default
    return max(default, asked / 1000 + default)


def is_regular(file: Any) -> int | None:
    """The size of what is behind an open file, from where it is; None if that is not known. Only of a file itself: what
    decompresses one has its descriptor too, and a file of /proc says 0."""
    if type(file) is not io.FileIO and not (type(file) in (io.BufferedReader, io.BufferedRandom) and type(file.raw) is io.FileIO):
        return None
    try:
        state = os.fstat(file.fileno())
        size = state.st_size - file.tell()
    except (OSError, ValueError):
        return None
    return size if stat.S_ISREG(state.st_mode) and size > 0 else None
