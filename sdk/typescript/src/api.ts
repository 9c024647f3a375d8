// What the daemon's API has. Written by tools/gen_sdk.py from docs/openapi.yaml; do not edit.

import { ApiError } from "./errors.js";

export interface Route {
  readonly method: string;
  readonly path: string;
}

export const routes = {
  /** whether it takes requests */
  GET_READY: { method: "GET", path: "/ready" },
  /** the daemon's numbers, for Prometheus (text format 0.0.4, or OpenMetrics by Accept); operator and auditor */
  GET_METRICS: { method: "GET", path: "/metrics" },
  /** which version answers */
  GET_VERSION: { method: "GET", path: "/v1/version" },
  /** what each living sandbox uses now */
  GET_USAGE: { method: "GET", path: "/v1/usage" },
  /** the same of one; an empty list when it has stopped */
  GET_SANDBOXES_ID_USAGE: { method: "GET", path: "/v1/sandboxes/{id}/usage" },
  /** events as they happen (text/event-stream) */
  GET_EVENTS_STREAM: { method: "GET", path: "/v1/events/stream" },
  /** is it there */
  GET_HEALTH: { method: "GET", path: "/v1/health" },
  /** what happened, the newest, oldest first */
  GET_EVENTS: { method: "GET", path: "/v1/events" },
  /** end all sandboxes; answers when they are gone */
  POST_KILL: { method: "POST", path: "/v1/kill" },
  /** run code in a sandbox of its own, which ends with it */
  POST_EXECUTE: { method: "POST", path: "/v1/execute" },
  /** those that live, oldest first */
  GET_SANDBOXES: { method: "GET", path: "/v1/sandboxes" },
  /** make one */
  POST_SANDBOXES: { method: "POST", path: "/v1/sandboxes" },
  /** new sandboxes that begin with its files */
  POST_SANDBOXES_ID_FORK: { method: "POST", path: "/v1/sandboxes/{id}/fork" },
  /** keep its files as a template */
  POST_SANDBOXES_ID_SNAPSHOT: { method: "POST", path: "/v1/sandboxes/{id}/snapshot" },
  /** files that sandboxes begin with */
  GET_TEMPLATES: { method: "GET", path: "/v1/templates" },
  /** remove one, by its name or id */
  DELETE_TEMPLATES_ID: { method: "DELETE", path: "/v1/templates/{id}" },
  /** durable workspaces */
  GET_VOLUMES: { method: "GET", path: "/v1/volumes" },
  /** remove one that no sandbox has */
  DELETE_VOLUMES_ID: { method: "DELETE", path: "/v1/volumes/{id}" },
  /** one, by id or by the name of one that lives */
  GET_SANDBOXES_ID: { method: "GET", path: "/v1/sandboxes/{id}" },
  /** end it; of one that has stopped, remove the record */
  DELETE_SANDBOXES_ID: { method: "DELETE", path: "/v1/sandboxes/{id}" },
  /** stop its processes and its commands' clocks */
  POST_SANDBOXES_ID_PAUSE: { method: "POST", path: "/v1/sandboxes/{id}/pause" },
  /** let them go on */
  POST_SANDBOXES_ID_RESUME: { method: "POST", path: "/v1/sandboxes/{id}/resume" },
  /** make one that is degraded or stopped anew, empty */
  POST_SANDBOXES_ID_RECOVER: { method: "POST", path: "/v1/sandboxes/{id}/recover" },
  /** what it was asked to be held to, and what it is held to, each value with its origin */
  GET_SANDBOXES_ID_POLICY: { method: "GET", path: "/v1/sandboxes/{id}/policy" },
  /** change it, while it lives what can change then (network.allow and deny; time, grace, output, memory, cpus and pids of limits) */
  PATCH_SANDBOXES_ID_POLICY: { method: "PATCH", path: "/v1/sandboxes/{id}/policy" },
  /** contexts, the oldest first */
  GET_SANDBOXES_ID_CONTEXTS: { method: "GET", path: "/v1/sandboxes/{id}/contexts" },
  /** a process that runs code for one call after the other */
  POST_SANDBOXES_ID_CONTEXTS: { method: "POST", path: "/v1/sandboxes/{id}/contexts" },
  /** a context, as it is now */
  GET_SANDBOXES_ID_CONTEXTS_ID: { method: "GET", path: "/v1/sandboxes/{id}/contexts/{context_id}" },
  /** end it (SIGTERM, after the policy's grace SIGKILL), answered when it has ended */
  DELETE_SANDBOXES_ID_CONTEXTS_ID: { method: "DELETE", path: "/v1/sandboxes/{id}/contexts/{context_id}" },
  /** run code in it, after what ran there before */
  POST_SANDBOXES_ID_CONTEXTS_ID_EXECUTE: { method: "POST", path: "/v1/sandboxes/{id}/contexts/{context_id}/execute" },
  /** ends the code that runs in it, and no later code (SIGINT to its commands); its variables stay */
  POST_SANDBOXES_ID_CONTEXTS_ID_INTERRUPT: { method: "POST", path: "/v1/sandboxes/{id}/contexts/{context_id}/interrupt" },
  /** end its process and begin it anew, without variables; answered when it has begun */
  POST_SANDBOXES_ID_CONTEXTS_ID_RESTART: { method: "POST", path: "/v1/sandboxes/{id}/contexts/{context_id}/restart" },
  /** commands in the background, the oldest first, those that have ended among them (64 at most are kept) */
  GET_SANDBOXES_ID_EXEC: { method: "GET", path: "/v1/sandboxes/{id}/exec" },
  /** run a command */
  POST_SANDBOXES_ID_EXEC: { method: "POST", path: "/v1/sandboxes/{id}/exec" },
  /** a command in the background, as it is now */
  GET_SANDBOXES_ID_EXEC_ID: { method: "GET", path: "/v1/sandboxes/{id}/exec/{exec_id}" },
  /** end it (SIGTERM, after the policy's grace SIGKILL), answered when it has ended; of one that had, its record goes */
  DELETE_SANDBOXES_ID_EXEC_ID: { method: "DELETE", path: "/v1/sandboxes/{id}/exec/{exec_id}" },
  /** its output, from the beginning of what is kept or from where the caller was, until it ends */
  GET_SANDBOXES_ID_EXEC_ID_STREAM: { method: "GET", path: "/v1/sandboxes/{id}/exec/{exec_id}/stream" },
  /** bytes for its stdin, answered when the command has taken them */
  POST_SANDBOXES_ID_EXEC_ID_STDIN: { method: "POST", path: "/v1/sandboxes/{id}/exec/{exec_id}/stdin" },
  /** a signal to its process group, of a terminal to the group in front */
  POST_SANDBOXES_ID_EXEC_ID_SIGNAL: { method: "POST", path: "/v1/sandboxes/{id}/exec/{exec_id}/signal" },
  /** another size of its terminal */
  POST_SANDBOXES_ID_EXEC_ID_RESIZE: { method: "POST", path: "/v1/sandboxes/{id}/exec/{exec_id}/resize" },
  /** contents */
  GET_SANDBOXES_ID_FILES_PATH: { method: "GET", path: "/v1/sandboxes/{id}/files/{path}" },
  /** how large the file is */
  HEAD_SANDBOXES_ID_FILES_PATH: { method: "HEAD", path: "/v1/sandboxes/{id}/files/{path}" },
  /** write */
  PUT_SANDBOXES_ID_FILES_PATH: { method: "PUT", path: "/v1/sandboxes/{id}/files/{path}" },
  /** remove */
  DELETE_SANDBOXES_ID_FILES_PATH: { method: "DELETE", path: "/v1/sandboxes/{id}/files/{path}" },
  /** entries of a folder */
  GET_SANDBOXES_ID_DIRS_PATH: { method: "GET", path: "/v1/sandboxes/{id}/dirs/{path}" },
  /** make a folder */
  POST_SANDBOXES_ID_DIRS_PATH: { method: "POST", path: "/v1/sandboxes/{id}/dirs/{path}" },
  /** what changes below a folder of the workspace, as it happens (text/event-stream) */
  GET_SANDBOXES_ID_WATCH: { method: "GET", path: "/v1/sandboxes/{id}/watch" },
  /** one entry */
  GET_SANDBOXES_ID_STAT_PATH: { method: "GET", path: "/v1/sandboxes/{id}/stat/{path}" },
  /** how many entries are in memory that the caller may see, or that the filters of /v1/audit let through */
  GET_AUDIT_SIZE: { method: "GET", path: "/v1/audit/size" },
  /** the newest entries of the audit record, or those behind one, oldest first */
  GET_AUDIT: { method: "GET", path: "/v1/audit" },
  /** entries as they come, as server-sent events */
  GET_AUDIT_STREAM: { method: "GET", path: "/v1/audit/stream" },
  /** what was done in it, a page of its transcript (with --transcript edits also what files became, with diffs); also when it is gone */
  GET_SANDBOXES_ID_TRANSCRIPT: { method: "GET", path: "/v1/sandboxes/{id}/transcript" },
  /** what commands wrote in it, of a page of its transcript; also when it is gone */
  GET_SANDBOXES_ID_LOGS: { method: "GET", path: "/v1/sandboxes/{id}/logs" },
  /** the messages of a page of its transcript; also when it is gone */
  GET_SANDBOXES_ID_MESSAGES: { method: "GET", path: "/v1/sandboxes/{id}/messages" },
  /** put a message of the conversation into its transcript */
  POST_SANDBOXES_ID_MESSAGES: { method: "POST", path: "/v1/sandboxes/{id}/messages" },
  /** the same of one sandbox, also when it has stopped */
  GET_SANDBOXES_ID_AUDIT: { method: "GET", path: "/v1/sandboxes/{id}/audit" },
  /** a new key for one that lives; the former one is none any more */
  POST_SANDBOXES_ID_KEY: { method: "POST", path: "/v1/sandboxes/{id}/key" },
  /** see that its browser runs, and where its DevTools are */
  POST_SANDBOXES_ID_BROWSER: { method: "POST", path: "/v1/sandboxes/{id}/browser" },
  /** the ports that are exposed, without their capabilities */
  GET_SANDBOXES_ID_PORTS: { method: "GET", path: "/v1/sandboxes/{id}/ports" },
  /** expose one */
  POST_SANDBOXES_ID_PORTS: { method: "POST", path: "/v1/sandboxes/{id}/ports" },
  /** end it, and all connections by it */
  DELETE_SANDBOXES_ID_PORTS_ID: { method: "DELETE", path: "/v1/sandboxes/{id}/ports/{exposed_id}" },
  /** the sessions of people that are open, with an editor or at the desktop (docs/attach.md) */
  GET_SANDBOXES_ID_ATTACH: { method: "GET", path: "/v1/sandboxes/{id}/attach" },
  /** a ticket for a session of an editor, or at the desktop */
  POST_SANDBOXES_ID_ATTACH: { method: "POST", path: "/v1/sandboxes/{id}/attach" },
  /** a session for its ticket, which is used up */
  POST_SANDBOXES_ID_ATTACH_OPEN: { method: "POST", path: "/v1/sandboxes/{id}/attach/open" },
  /** end it, and all its connections */
  DELETE_SANDBOXES_ID_ATTACH_SESSIONS_ID: { method: "DELETE", path: "/v1/sandboxes/{id}/attach/sessions/{session_id}" },
  /** the tokens there are, without what they are; for operators */
  GET_TOKENS: { method: "GET", path: "/v1/tokens" },
  /** make one; for operators */
  POST_TOKENS: { method: "POST", path: "/v1/tokens" },
  /** end it at once; for operators */
  DELETE_TOKENS_ID: { method: "DELETE", path: "/v1/tokens/{id}" },
  /** what agents asked for and somebody has to approve, or did; the newest first */
  GET_APPROVALS: { method: "GET", path: "/v1/approvals" },
  /** what is pending, then each approval that is new or changes, as events */
  GET_APPROVALS_STREAM: { method: "GET", path: "/v1/approvals/stream" },
  /** one; an agent sees its own */
  GET_APPROVALS_ID: { method: "GET", path: "/v1/approvals/{id}" },
  /** approve it; for operators and approvers, never by who asked */
  POST_APPROVALS_ID_APPROVE: { method: "POST", path: "/v1/approvals/{id}/approve" },
  /** deny it; likewise */
  POST_APPROVALS_ID_DENY: { method: "POST", path: "/v1/approvals/{id}/deny" },
  /** what is approved for longer; for operators and approvers */
  GET_GRANTS: { method: "GET", path: "/v1/grants" },
  /** end it */
  DELETE_GRANTS_ID: { method: "DELETE", path: "/v1/grants/{id}" },
} as const satisfies Record<string, Route>;

/** No credential where one is needed, or one that is no good. */
export class AuthError extends ApiError {}

/** This caller may not. */
export class DeniedError extends ApiError {}

/** Who was asked said no, or nobody answered in time. */
export class ApprovalDeniedError extends DeniedError {}

/** There is no such thing, or not for this caller. */
export class NotFoundError extends ApiError {}

/** There is no such sandbox, or not for this caller. */
export class SandboxNotFoundError extends NotFoundError {}

/** There is no such file in the sandbox. */
export class NoSuchFileError extends NotFoundError {}

/** Not in this state, or not while something else is done. */
export class ConflictError extends ApiError {}

/** It was there, and is not any more. */
export class GoneError extends ApiError {}

/** The sandbox ended. */
export class SandboxGoneError extends GoneError {}

/** The request is not one that the daemon takes. */
export class InvalidError extends ApiError {}

/** More than the daemon takes. */
export class TooLargeError extends InvalidError {}

/** Too many requests, sandboxes or other things at once. */
export class TooManyError extends ApiError {}

/** Not on this host. */
export class UnsupportedError extends ApiError {}

/** The daemon, or what it asked, failed. */
export class ServerError extends ApiError {}

/** Not now: try again. */
export class UnavailableError extends ApiError {}

/** No room on a disk. */
export class FullError extends ApiError {}

export const byStatus: Readonly<Record<number, typeof ApiError>> = {
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
};
export const byCode: ReadonlyMap<string, typeof ApiError> = new Map<string, typeof ApiError>([
  ["gate.denied", ApprovalDeniedError],
  ["gate.declined", ApprovalDeniedError],
  ["gate.timeout", ApprovalDeniedError],
  ["sandbox.not-found", SandboxNotFoundError],
  ["files.not-found", NoSuchFileError],
  ["sandbox.gone", SandboxGoneError],
]);

export interface Usage {
  id: string;
  /** 0 where it is not known */
  memory_bytes: number;
  cpu_us: number;
  processes: number;
  operations: number;
  /** first words of at most 8 commands */
  running: string[];
}

export interface UsageList {
  usage: Usage[];
}

export interface Approval {
  id: string;
  state: "pending" | "approved" | "denied" | "timeout";
  risk: "LOW" | "MEDIUM" | "HIGH" | "CRITICAL";
  tool: string;
  params: Record<string, unknown> | null;
  sandbox: string | null;
  /** owner, ROLE:ID of the token, key:ID of the sandbox */
  caller: string;
  caller_name: string | null;
  /** null: no rule is about this tool */
  rule: string | null;
  description: string | null;
  /** SHA-256 of what will be done */
  digest: string;
  created_ms: number;
  expires_ms: number;
  /** of a pending one */
  remaining_ms: number;
  decided_ms: number | null;
  decided_by: string | null;
  decided_by_name: string | null;
  reason: string | null;
  /** it was approved and done */
  used: boolean;
}

export interface Approvals {
  approvals: Approval[];
  /** there are older ones */
  more: boolean;
  /** for after=, where there are */
  next: string | null;
}

export interface ApproveOptions {
  scope?: "once" | "sandbox" | "caller";
  /** seconds that a wider scope stands */
  expires?: number;
  reason?: string;
  /** of what was shown; another one is 409 gate.digest */
  digest?: string;
}

export interface DenyOptions {
  reason?: string;
  /** of what was shown; another one is 409 gate.digest */
  digest?: string;
}

export interface Grant {
  id: string;
  tool: string;
  rule: string;
  caller: string;
  sandbox: string | null;
  created_ms: number;
  expires_ms: number | null;
  granted_by_name: string | null;
}

export interface Grants {
  grants: Grant[];
}

export interface ApprovalWait {
  approval: string;
  state: "pending";
  url: string;
  risk: "LOW" | "MEDIUM" | "HIGH" | "CRITICAL";
  rule: string | null;
  timeout: number;
}

export interface SandboxKey {
  id: string;
  key: string;
}

export interface NewTokenOptions {
  name?: string;
  /** seconds; 0 never */
  expires?: number;
}

export interface NewPortOptions {
  name?: string;
  /** seconds; 0 or absent: as long as the sandbox lives */
  ttl?: number;
}

export interface Port {
  id: string;
  sandbox: string;
  port: number;
  name: string;
  created_ms: number;
  expires_ms: number | null;
  /** so far */
  connections: number;
  /** in the answer to its making only, as url and host_url */
  path?: string;
  url?: string | null;
  /** the same at a name of its own */
  host_url?: string | null;
}

export interface BrowserInfo {
  path: string;
  /** null: the daemon listens at no TCP address */
  cdp_url: string | null;
}

export interface Ports {
  ports: Port[];
}

export interface NewAttachOptions {
  /** of the session; absent: 1800 */
  seconds?: number;
  /** seconds for the ticket to be used; absent: 120 */
  within?: number;
}

export interface Attach {
  /** of the ticket, and of the session that it opens */
  id: string;
  sandbox: string;
  /** view and control are of the desktop (docs/desktop.md) */
  mode: "inspect" | "write" | "view" | "control";
  /** of the ticket, or of the session */
  expires_ms: number;
  /** of the session */
  seconds: number;
  /** whose it is, in words */
  person: string;
  /** what the sandbox's user is called inside; empty: not known */
  user: string;
  /** where that is inside */
  workspace: string;
  /** in the answer to its making only */
  ticket?: string;
  /** the session's credential, in the answer to its opening only */
  token?: string;
  /** of the desktop, in the same answer: the page, with the credential behind its # */
  path?: string;
  /** the same with the daemon's address for browsers; null: it has none */
  url?: string | null;
}

export interface Attached {
  sessions: Attach[];
}

export interface Token {
  id: string;
  role: "operator" | "agent" | "approver" | "auditor";
  name: string;
  created_ms: number;
  expires_ms: number | null;
  /** in the answer to its making only */
  token?: string;
}

export interface Tokens {
  tokens: Token[];
}

export interface PolicyInfo {
  revision: string;
  policy: Record<string, unknown>;
  /** null in the answer to a PATCH, and where the sandbox is not ready */
  effective: Record<string, unknown> | null;
}

export interface VolumeOptions {
  /** the workspace_key where there is none */
  name?: string;
  retention?: number;
}

export interface RecoveryOptions {
  /** seconds that it is degraded */
  after: number;
  tries?: number;
  /** seconds */
  window?: number;
}

export interface CreateOptions {
  name?: string;
  labels?: Record<string, string>;
  /** a settings file as JSON */
  policy?: Record<string, unknown>;
  idle_timeout?: number;
  max_lifetime?: number;
  workspace_key?: string;
  /** needs workspace_key */
  reattach?: boolean;
  volume?: VolumeOptions;
  /** name or id of a template; not with volume */
  template?: string;
  /** made again with the next daemon; needs a volume */
  persistent?: boolean;
  /** made anew by itself; false: not; absent: as the daemon does it */
  recovery?: false | RecoveryOptions;
}

export interface Recovery {
  /** seconds */
  after: number;
  tries: number;
  /** seconds */
  window: number;
  /** of the tries, in this window */
  used: number;
  /** all were used */
  given_up: boolean;
  /** when the next one is due */
  next_ms: number | null;
}

export interface Replaced {
  id: string;
  differs: ("profile" | "template" | "image" | "host" | "runtime" | "state")[];
}

export interface SandboxInfo {
  id: string;
  /** the id of the token that made it; null is the daemon's owner */
  owner: string | null;
  /** in the answer to its making only */
  key?: string | null;
  name: string;
  state: "uninitialized" | "initializing" | "ready" | "degraded" | "stopping" | "stopped" | "recovering";
  paused: boolean;
  default: boolean;
  labels: Record<string, string>;
  policy: Record<string, unknown> | null;
  created_ms: number;
  started_ms: number | null;
  ended_ms: number | null;
  last_used_ms: number;
  idle_timeout: number;
  max_lifetime: number;
  /** by itself; null: not */
  recovery: Recovery | null;
  /** what it is, as its keeper said; texts, but for the list `warnings`. Empty before it is made */
  facts: Record<string, unknown>;
  detail: string;
  workspace_key: string | null;
  /** its id */
  volume: string | null;
  /** the id of the one that it began with */
  template: string | null;
  /** it is made again with the next daemon */
  persistent: boolean;
  /** in an answer to reattach only */
  reattached?: boolean;
  /** in an answer to reattach only; the one that was destroyed */
  replaced?: Replaced | null;
}

export interface Template {
  id: string;
  owner: string | null;
  name: string;
  /** of its files */
  bytes: number;
  created_ms: number;
  /** in the answer to its making only: for so long the sandbox was paused */
  paused_us?: number;
}

export interface Templates {
  templates: Template[];
}

export interface Forks {
  sandboxes: SandboxInfo[];
  /** of files that were copied */
  bytes: number;
  /** for so long the source was paused */
  paused_us: number;
}

export interface Volume {
  id: string;
  owner: string | null;
  name: string;
  /** seconds without a sandbox after which it is removed; 0 never */
  retention: number;
  created_ms: number;
  unused_ms: number;
  /** the one that has it */
  sandbox: string | null;
}

export interface Volumes {
  volumes: Volume[];
}

export interface SandboxList {
  sandboxes: SandboxInfo[];
  /** the id for after= */
  next: string | null;
}

export interface FileOptions {
  /** relative to the workspace, without . and .., each once; missing folders are made */
  path: string;
  /** this or content_base64 */
  content?: string;
  /** RFC 4648, 4, with padding */
  content_base64?: string;
}

export interface ExecuteOptions {
  /** what the code reads */
  stdin?: string;
  /** written into the workspace before the code runs; together at most 8 MiB */
  files?: FileOptions[];
  /** patterns of files to return, relative to the workspace: out/*.csv, ** /*.log */
  collect?: string[];
  /** of its sandbox, as a settings file in JSON */
  policy?: Record<string, unknown>;
  /** the policy's member of that name */
  limits?: Record<string, unknown>;
  env?: Record<string, string>;
  timeout_ms?: number;
  encoding?: "text" | "base64";
}

export interface ExecOptions {
  /** absolute, or below the workspace; without `..` (exec.cwd) */
  cwd?: string;
  env?: Record<string, string>;
  /** all of it; in the background whether it stays open */
  stdin?: string | boolean;
  timeout_ms?: number;
  limits?: CommandLimitsOptions;
  /** not in the background */
  encoding?: "text" | "base64";
  /** in the background alone; a terminal, whose stdin stays open */
  pty?: false | SizeOptions;
}

export interface CommandLimitsOptions {
  /** bytes, or a size such as 64m; from 4m */
  memory?: string | number;
  /** such as 0.5 */
  cpus?: string | number;
  /** processes and threads, from 2 */
  pids?: string | number;
  /** seconds, or a time such as 10s; in the place of timeout_ms */
  time?: string | number;
  /** of stdout and of stderr, each; not of a terminal, or in the background */
  output?: string | number;
}

export interface LimitReached {
  code: "limits.reached.memory" | "limits.reached.pids" | "limits.reached.time";
  limit: "memory" | "pids" | "time";
  /** whose it is */
  of: "command" | "sandbox";
}

export interface SizeOptions {
  rows: number;
  cols: number;
}

export interface CommandInfo {
  exec_id: string;
  state: "running" | "ending" | "ended";
  /** its first word */
  command: string;
  started_ms: number;
  ended_ms: number | null;
  duration_ms: number;
  exit_code: number | null;
  signal: number | null;
  timed_out: boolean;
  oom_killed: boolean;
  limit_reached: LimitReached | null;
  /** it is open */
  stdin: boolean;
  pty: boolean;
  stdout_bytes: number;
  stderr_bytes: number;
  /** of those, that are kept no more */
  stdout_dropped: number;
  stderr_dropped: number;
}

export interface ResultFile {
  /** relative to the workspace */
  path: string;
  /** of a path that is no text, as content_base64 of a file */
  path_base64?: string;
  content?: string;
  /** of a file that is no text */
  content_base64?: string;
  /** only its beginning is here */
  truncated?: boolean;
  /** a code: it could not be read, and there is no content */
  error?: string;
}

export interface Result {
  exit_code: number | null;
  signal: number | null;
  duration_ms: number;
  timed_out: boolean;
  oom_killed: boolean;
  limit_reached: LimitReached | null;
  stdout: string;
  stderr: string;
  stdout_truncated: boolean;
  stderr_truncated: boolean;
  /** of /v1/execute with collect */
  files?: ResultFile[];
  /** there may be more than files has */
  files_truncated?: boolean;
}

export interface NewContextOptions {
  /** absolute, or below the workspace; without `..` (exec.cwd) */
  cwd?: string;
  env?: Record<string, string>;
  limits?: CommandLimitsOptions;
}

export interface ContextInfo {
  context_id: string;
  state: "idle" | "busy" | "ending" | "dead";
  language: string;
  started_ms: number;
  /** of one that is dead; or the signal */
  exit_code: number | null;
  signal: number | null;
  oom_killed: boolean;
}

export interface ContextCodeOptions {
  timeout_ms?: number;
  /** of stdout and stderr */
  encoding?: "text" | "base64";
}

export interface Display {
  /** the value of the last expression; otherwise something that was displayed */
  main: boolean;
  text?: string;
  html?: string;
  markdown?: string;
  latex?: string;
  svg?: string;
  /** base64 */
  png?: string;
  /** base64 */
  jpeg?: string;
  /** any value */
  json?: unknown;
}

export interface CodeError {
  name: string;
  value?: string;
  traceback?: string;
}

export interface ContextResult extends Result {
  /** of the context, when the call had ended */
  context_state: "idle" | "ending" | "dead";
  results: Display[];
  /** some are not here */
  results_truncated: boolean;
  /** what the code raised */
  error: null | CodeError;
}

export interface Entry {
  name: string;
  type: "file" | "directory" | "symlink" | "other";
  size: number;
  mode: string;
  mtime_ms: number;
}

export interface Entries {
  entries: Entry[];
}

export interface FileChange {
  /** relative to the workspace */
  path: string;
  /** not of watching and overflow */
  directory?: boolean;
  /** of renamed: its former path */
  from?: string;
}

export interface EventInfo {
  number: number;
  at_ms: number;
  sandbox: string | null;
  type: string;
  detail: string;
}

export interface Events {
  events: EventInfo[];
}
