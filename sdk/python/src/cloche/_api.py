"""What the daemon's API has. Written by tools/gen_sdk.py from docs/openapi.yaml; do not edit."""
from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, TypedDict

from cloche._base import ApiError, Contents, Outcome


class Route(NamedTuple):
    method: str
    path: str


GET_READY = Route("GET", "/ready")
GET_METRICS = Route("GET", "/metrics")
GET_VERSION = Route("GET", "/v1/version")
GET_USAGE = Route("GET", "/v1/usage")
GET_SANDBOXES_ID_USAGE = Route("GET", "/v1/sandboxes/{id}/usage")
GET_EVENTS_STREAM = Route("GET", "/v1/events/stream")
GET_HEALTH = Route("GET", "/v1/health")
GET_EVENTS = Route("GET", "/v1/events")
POST_KILL = Route("POST", "/v1/kill")
POST_EXECUTE = Route("POST", "/v1/execute")
GET_SANDBOXES = Route("GET", "/v1/sandboxes")
POST_SANDBOXES = Route("POST", "/v1/sandboxes")
POST_SANDBOXES_ID_FORK = Route("POST", "/v1/sandboxes/{id}/fork")
POST_SANDBOXES_ID_SNAPSHOT = Route("POST", "/v1/sandboxes/{id}/snapshot")
GET_TEMPLATES = Route("GET", "/v1/templates")
DELETE_TEMPLATES_ID = Route("DELETE", "/v1/templates/{id}")
GET_VOLUMES = Route("GET", "/v1/volumes")
DELETE_VOLUMES_ID = Route("DELETE", "/v1/volumes/{id}")
GET_SANDBOXES_ID = Route("GET", "/v1/sandboxes/{id}")
DELETE_SANDBOXES_ID = Route("DELETE", "/v1/sandboxes/{id}")
POST_SANDBOXES_ID_PAUSE = Route("POST", "/v1/sandboxes/{id}/pause")
POST_SANDBOXES_ID_RESUME = Route("POST", "/v1/sandboxes/{id}/resume")
POST_SANDBOXES_ID_RECOVER = Route("POST", "/v1/sandboxes/{id}/recover")
GET_SANDBOXES_ID_POLICY = Route("GET", "/v1/sandboxes/{id}/policy")
PATCH_SANDBOXES_ID_POLICY = Route("PATCH", "/v1/sandboxes/{id}/policy")
GET_SANDBOXES_ID_CONTEXTS = Route("GET", "/v1/sandboxes/{id}/contexts")
POST_SANDBOXES_ID_CONTEXTS = Route("POST", "/v1/sandboxes/{id}/contexts")
GET_SANDBOXES_ID_CONTEXTS_ID = Route("GET", "/v1/sandboxes/{id}/contexts/{context_id}")
DELETE_SANDBOXES_ID_CONTEXTS_ID = Route("DELETE", "/v1/sandboxes/{id}/contexts/{context_id}")
POST_SANDBOXES_ID_CONTEXTS_ID_EXECUTE = Route("POST", "/v1/sandboxes/{id}/contexts/{context_id}/execute")
POST_SANDBOXES_ID_CONTEXTS_ID_INTERRUPT = Route("POST", "/v1/sandboxes/{id}/contexts/{context_id}/interrupt")
POST_SANDBOXES_ID_CONTEXTS_ID_RESTART = Route("POST", "/v1/sandboxes/{id}/contexts/{context_id}/restart")
GET_SANDBOXES_ID_EXEC = Route("GET", "/v1/sandboxes/{id}/exec")
POST_SANDBOXES_ID_EXEC = Route("POST", "/v1/sandboxes/{id}/exec")
GET_SANDBOXES_ID_EXEC_ID = Route("GET", "/v1/sandboxes/{id}/exec/{exec_id}")
DELETE_SANDBOXES_ID_EXEC_ID = Route("DELETE", "/v1/sandboxes/{id}/exec/{exec_id}")
GET_SANDBOXES_ID_EXEC_ID_STREAM = Route("GET", "/v1/sandboxes/{id}/exec/{exec_id}/stream")
POST_SANDBOXES_ID_EXEC_ID_STDIN = Route("POST", "/v1/sandboxes/{id}/exec/{exec_id}/stdin")
POST_SANDBOXES_ID_EXEC_ID_SIGNAL = Route("POST", "/v1/sandboxes/{id}/exec/{exec_id}/signal")
POST_SANDBOXES_ID_EXEC_ID_RESIZE = Route("POST", "/v1/sandboxes/{id}/exec/{exec_id}/resize")
GET_SANDBOXES_ID_FILES_PATH = Route("GET", "/v1/sandboxes/{id}/files/{path}")
HEAD_SANDBOXES_ID_FILES_PATH = Route("HEAD", "/v1/sandboxes/{id}/files/{path}")
PUT_SANDBOXES_ID_FILES_PATH = Route("PUT", "/v1/sandboxes/{id}/files/{path}")
DELETE_SANDBOXES_ID_FILES_PATH = Route("DELETE", "/v1/sandboxes/{id}/files/{path}")
GET_SANDBOXES_ID_DIRS_PATH = Route("GET", "/v1/sandboxes/{id}/dirs/{path}")
POST_SANDBOXES_ID_DIRS_PATH = Route("POST", "/v1/sandboxes/{id}/dirs/{path}")
GET_SANDBOXES_ID_WATCH = Route("GET", "/v1/sandboxes/{id}/watch")
GET_SANDBOXES_ID_STAT_PATH = Route("GET", "/v1/sandboxes/{id}/stat/{path}")
GET_AUDIT_SIZE = Route("GET", "/v1/audit/size")
GET_AUDIT = Route("GET", "/v1/audit")
GET_AUDIT_STREAM = Route("GET", "/v1/audit/stream")
GET_SANDBOXES_ID_TRANSCRIPT = Route("GET", "/v1/sandboxes/{id}/transcript")
GET_SANDBOXES_ID_LOGS = Route("GET", "/v1/sandboxes/{id}/logs")
GET_SANDBOXES_ID_MESSAGES = Route("GET", "/v1/sandboxes/{id}/messages")
POST_SANDBOXES_ID_MESSAGES = Route("POST", "/v1/sandboxes/{id}/messages")
GET_SANDBOXES_ID_AUDIT = Route("GET", "/v1/sandboxes/{id}/audit")
POST_SANDBOXES_ID_KEY = Route("POST", "/v1/sandboxes/{id}/key")
POST_SANDBOXES_ID_BROWSER = Route("POST", "/v1/sandboxes/{id}/browser")
GET_SANDBOXES_ID_PORTS = Route("GET", "/v1/sandboxes/{id}/ports")
POST_SANDBOXES_ID_PORTS = Route("POST", "/v1/sandboxes/{id}/ports")
DELETE_SANDBOXES_ID_PORTS_ID = Route("DELETE", "/v1/sandboxes/{id}/ports/{exposed_id}")
GET_SANDBOXES_ID_ATTACH = Route("GET", "/v1/sandboxes/{id}/attach")
POST_SANDBOXES_ID_ATTACH = Route("POST", "/v1/sandboxes/{id}/attach")
POST_SANDBOXES_ID_ATTACH_OPEN = Route("POST", "/v1/sandboxes/{id}/attach/open")
DELETE_SANDBOXES_ID_ATTACH_SESSIONS_ID = Route("DELETE", "/v1/sandboxes/{id}/attach/sessions/{session_id}")
GET_TOKENS = Route("GET", "/v1/tokens")
POST_TOKENS = Route("POST", "/v1/tokens")
DELETE_TOKENS_ID = Route("DELETE", "/v1/tokens/{id}")
GET_APPROVALS = Route("GET", "/v1/approvals")
GET_APPROVALS_STREAM = Route("GET", "/v1/approvals/stream")
GET_APPROVALS_ID = Route("GET", "/v1/approvals/{id}")
POST_APPROVALS_ID_APPROVE = Route("POST", "/v1/approvals/{id}/approve")
POST_APPROVALS_ID_DENY = Route("POST", "/v1/approvals/{id}/deny")
GET_GRANTS = Route("GET", "/v1/grants")
DELETE_GRANTS_ID = Route("DELETE", "/v1/grants/{id}")


class AuthError(ApiError):
    """No credential where one is needed, or one that is no good."""


class DeniedError(ApiError):
    """This caller may not."""


class ApprovalDeniedError(DeniedError):
    """Who was asked said no, or nobody answered in time."""


class NotFoundError(ApiError):
    """There is no such thing, or not for this caller."""


class SandboxNotFoundError(NotFoundError):
    """There is no such sandbox, or not for this caller."""


class NoSuchFileError(NotFoundError):
    """There is no such file in the sandbox."""


class ConflictError(ApiError):
    """Not in this state, or not while something else is done."""


class GoneError(ApiError):
    """It was there, and is not any more."""


class SandboxGoneError(GoneError):
    """The sandbox ended."""


class InvalidError(ApiError):
    """The request is not one that the daemon takes."""


class TooLargeError(InvalidError):
    """More than the daemon takes."""


class TooManyError(ApiError):
    """Too many requests, sandboxes or other things at once."""


class UnsupportedError(ApiError):
    """Not on this host."""


class ServerError(ApiError):
    """The daemon, or what it asked, failed."""


class UnavailableError(ApiError):
    """Not now: try again."""


class FullError(ApiError):
    """No room on a disk."""


BY_STATUS: dict[int, type[ApiError]] = {
    401: AuthError,
    403: DeniedError,
    404: NotFoundError,
    409: ConflictError,
    412: ConflictError,
    410: GoneError,
    400: InvalidError,
    405: InvalidError,
    406: InvalidError,
    411: InvalidError,
    414: InvalidError,
    415: InvalidError,
    416: InvalidError,
    417: InvalidError,
    422: InvalidError,
    426: InvalidError,
    431: InvalidError,
    413: TooLargeError,
    429: TooManyError,
    501: UnsupportedError,
    505: UnsupportedError,
    500: ServerError,
    502: ServerError,
    504: ServerError,
    503: UnavailableError,
    507: FullError,
}
BY_CODE: dict[str, type[ApiError]] = {
    "gate.denied": ApprovalDeniedError,
    "gate.declined": ApprovalDeniedError,
    "gate.timeout": ApprovalDeniedError,
    "sandbox.not-found": SandboxNotFoundError,
    "files.not-found": NoSuchFileError,
    "sandbox.gone": SandboxGoneError,
}


@dataclass(kw_only=True)
class Usage:
    id: str
    memory_bytes: int
    cpu_us: int
    processes: int
    operations: int
    running: list[str]


@dataclass(kw_only=True)
class UsageList:
    usage: list[Usage]


@dataclass(kw_only=True)
class Approval:
    id: str
    state: Literal['pending', 'approved', 'denied', 'timeout']
    risk: Literal['LOW', 'MEDIUM', 'HIGH', 'CRITICAL']
    tool: str
    params: dict[str, Any] | None
    sandbox: str | None
    caller: str
    caller_name: str | None
    rule: str | None
    description: str | None
    digest: str
    created_ms: int
    expires_ms: int
    remaining_ms: int
    decided_ms: int | None
    decided_by: str | None
    decided_by_name: str | None
    reason: str | None
    used: bool


@dataclass(kw_only=True)
class Approvals:
    approvals: list[Approval]
    more: bool
    next: str | None


class ApproveOptions(TypedDict, total=False):
    scope: Literal['once', 'sandbox', 'caller']
    expires: int
    reason: str
    digest: str


class DenyOptions(TypedDict, total=False):
    reason: str
    digest: str


@dataclass(kw_only=True)
class Grant:
    id: str
    tool: str
    rule: str
    caller: str
    sandbox: str | None
    created_ms: int
    expires_ms: int | None
    granted_by_name: str | None


@dataclass(kw_only=True)
class Grants:
    grants: list[Grant]


@dataclass(kw_only=True)
class ApprovalWait:
    approval: str
    state: Literal['pending']
    url: str
    risk: Literal['LOW', 'MEDIUM', 'HIGH', 'CRITICAL']
    rule: str | None
    timeout: int


@dataclass(kw_only=True)
class SandboxKey:
    id: str
    key: str = field(repr=False)


class NewTokenOptions(TypedDict, total=False):
    name: str
    expires: int


class NewPortOptions(TypedDict, total=False):
    name: str
    ttl: int


@dataclass(kw_only=True)
class Port:
    id: str
    sandbox: str
    port: int
    name: str
    created_ms: int
    expires_ms: int | None
    connections: int
    path: str | None = field(default=None, repr=False)
    url: str | None = field(default=None, repr=False)
    host_url: str | None = field(default=None, repr=False)


@dataclass(kw_only=True)
class BrowserInfo:
    path: str
    cdp_url: str | None


@dataclass(kw_only=True)
class Ports:
    ports: list[Port]


class NewAttachOptions(TypedDict, total=False):
    seconds: int
    within: int


@dataclass(kw_only=True)
class Attach:
    id: str
    sandbox: str
    mode: Literal['inspect', 'write', 'view', 'control']
    expires_ms: int
    seconds: int
    person: str
    user: str
    workspace: str
    ticket: str | None = field(default=None, repr=False)
    token: str | None = field(default=None, repr=False)
    path: str | None = field(default=None, repr=False)
    url: str | None = field(default=None, repr=False)


@dataclass(kw_only=True)
class Attached:
    sessions: list[Attach]


@dataclass(kw_only=True)
class Token:
    id: str
    role: Literal['operator', 'agent', 'approver', 'auditor']
    name: str
    created_ms: int
    expires_ms: int | None
    token: str | None = field(default=None, repr=False)


@dataclass(kw_only=True)
class Tokens:
    tokens: list[Token]


@dataclass(kw_only=True)
class PolicyInfo:
    revision: str
    policy: dict[str, Any]
    effective: dict[str, Any] | None


class VolumeOptions(TypedDict, total=False):
    name: str
    retention: int


class RecoveryOptions(TypedDict, total=False):
    after: int
    tries: int
    window: int


class CreateOptions(TypedDict, total=False):
    name: str
    labels: dict[str, str]
    policy: dict[str, Any]
    idle_timeout: int
    max_lifetime: int
    workspace_key: str
    reattach: bool
    volume: VolumeOptions
    template: str
    persistent: bool
    recovery: Literal[False] | RecoveryOptions


@dataclass(kw_only=True)
class Recovery:
    after: int
    tries: int
    window: int
    used: int
    given_up: bool
    next_ms: int | None


@dataclass(kw_only=True)
class Replaced:
    id: str
    differs: list[Literal['profile', 'template', 'image', 'host', 'runtime', 'state']]


@dataclass(kw_only=True)
class SandboxInfo:
    id: str
    owner: str | None
    name: str
    state: Literal['uninitialized', 'initializing', 'ready', 'degraded', 'stopping', 'stopped', 'recovering']
    paused: bool
    default: bool
    labels: dict[str, str]
    policy: dict[str, Any] | None
    created_ms: int
    started_ms: int | None
    ended_ms: int | None
    last_used_ms: int
    idle_timeout: int
    max_lifetime: int
    recovery: Recovery | None
    facts: dict[str, Any]
    detail: str
    workspace_key: str | None
    volume: str | None
    template: str | None
    persistent: bool
    key: str | None = field(default=None, repr=False)
    reattached: bool | None = None
    replaced: Replaced | None = None


@dataclass(kw_only=True)
class Template:
    id: str
    owner: str | None
    name: str
    bytes: int
    created_ms: int
    paused_us: int | None = None


@dataclass(kw_only=True)
class Templates:
    templates: list[Template]


@dataclass(kw_only=True)
class Forks:
    sandboxes: list[SandboxInfo]
    bytes: int
    paused_us: int


@dataclass(kw_only=True)
class Volume:
    id: str
    owner: str | None
    name: str
    retention: int
    created_ms: int
    unused_ms: int
    sandbox: str | None


@dataclass(kw_only=True)
class Volumes:
    volumes: list[Volume]


@dataclass(kw_only=True)
class SandboxList:
    sandboxes: list[SandboxInfo]
    next: str | None


class FileOptions(TypedDict, total=False):
    path: str
    content: str
    content_base64: str


class ExecuteOptions(TypedDict, total=False):
    stdin: str
    files: list[FileOptions]
    collect: list[str]
    policy: dict[str, Any]
    limits: dict[str, Any]
    env: dict[str, str]
    timeout_ms: int
    encoding: Literal['text', 'base64']


class ExecOptions(TypedDict, total=False):
    cwd: str
    env: dict[str, str]
    stdin: str | bool
    timeout_ms: int
    limits: CommandLimitsOptions
    encoding: Literal['text', 'base64']
    pty: Literal[False] | SizeOptions


class CommandLimitsOptions(TypedDict, total=False):
    memory: str | int
    cpus: str | float
    pids: str | int
    time: str | float
    output: str | int


@dataclass(kw_only=True)
class LimitReached:
    code: Literal['limits.reached.memory', 'limits.reached.pids', 'limits.reached.time']
    limit: Literal['memory', 'pids', 'time']
    of: Literal['command', 'sandbox']


class SizeOptions(TypedDict, total=False):
    rows: int
    cols: int


@dataclass(kw_only=True)
class CommandInfo:
    exec_id: str
    state: Literal['running', 'ending', 'ended']
    command: str
    started_ms: int
    ended_ms: int | None
    duration_ms: int
    exit_code: int | None
    signal: int | None
    timed_out: bool
    oom_killed: bool
    limit_reached: LimitReached | None
    stdin: bool
    pty: bool
    stdout_bytes: int
    stderr_bytes: int
    stdout_dropped: int
    stderr_dropped: int


@dataclass(kw_only=True)
class ResultFile(Contents):
    path: str
    path_base64: str | None = None
    content: str | None = None
    content_base64: str | None = None
    truncated: bool | None = None
    error: str | None = None


@dataclass(kw_only=True)
class Result(Outcome):
    exit_code: int | None
    signal: int | None
    duration_ms: int
    timed_out: bool
    oom_killed: bool
    limit_reached: LimitReached | None
    stdout: str
    stderr: str
    stdout_truncated: bool
    stderr_truncated: bool
    files: list[ResultFile] | None = None
    files_truncated: bool | None = None


class NewContextOptions(TypedDict, total=False):
    cwd: str
    env: dict[str, str]
    limits: CommandLimitsOptions


@dataclass(kw_only=True)
class ContextInfo:
    context_id: str
    state: Literal['idle', 'busy', 'ending', 'dead']
    language: str
    started_ms: int
    exit_code: int | None
    signal: int | None
    oom_killed: bool


class ContextCodeOptions(TypedDict, total=False):
    timeout_ms: int
    encoding: Literal['text', 'base64']


@dataclass(kw_only=True)
class Display:
    main: bool
    text: str | None = None
    html: str | None = None
    markdown: str | None = None
    latex: str | None = None
    svg: str | None = None
    png: str | None = None
    jpeg: str | None = None
    json: Any = None


@dataclass(kw_only=True)
class CodeError:
    name: str
    value: str | None = None
    traceback: str | None = None


@dataclass(kw_only=True)
class Entry:
    name: str
    type: Literal['file', 'directory', 'symlink', 'other']
    size: int
    mode: str
    mtime_ms: int


@dataclass(kw_only=True)
class Entries:
    entries: list[Entry]


@dataclass(kw_only=True)
class FileChange:
    path: str
    directory: bool | None = None
    from_: str | None = None


@dataclass(kw_only=True)
class EventInfo:
    number: int
    at_ms: int
    sandbox: str | None
    type: str
    detail: str


@dataclass(kw_only=True)
class Events:
    events: list[EventInfo]


@dataclass(kw_only=True)
class ContextResult(Result):
    context_state: Literal['idle', 'ending', 'dead']
    results: list[Display]
    results_truncated: bool
    error: None | CodeError
