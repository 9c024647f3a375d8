// The client, of the routes of docs/openapi.yaml.

import { inspect } from "node:util";

import * as api from "./api.js";
import { byCode, byStatus, routes, type Route } from "./api.js";
import { AnswerError, ApiError, ApprovalPending, ConnectionFailed, ConnectionLost } from "./errors.js";
import { Approvals, Audit, DaemonEvents, Grants, Sandboxes, Templates, Tokens, Volumes } from "./parts.js";
import { completed, OutputStream, type Completed } from "./streams.js";
import { describe, findTarget, send, type Answer, type Asked, type Data, type Target } from "./transport.js";

export const ANSWER_MAX = 64 * 1024 * 1024;
export const ERROR_MAX = 64 * 1024;
const LOOPBACK = ["localhost", "::1"];

export interface ClientOptions {
  /** http://HOST:PORT, https://HOST:PORT, or unix:PATH; without it and socket CLOCHE_URL, CLOCHE_SOCKET, or the usual place. */
  url?: string;
  socket?: string;
  /** Without it, url and socket CLOCHE_TOKEN; or none, which is the owner on the unix socket. */
  token?: string;
  /** Seconds that a call waits for its whole answer, of a stream for its beginning: 300. Infinity: as long as it takes. */
  timeout?: number;
  /** How often what can be asked again is: 2. */
  retries?: number;
  /** Bytes of an answer that is kept in memory, and of one event: 64 MiB. */
  maxAnswer?: number;
  /** ApprovalPending is thrown where somebody has to approve something, in place of waiting. */
  respondAsync?: boolean;
  /** Certificates to trust, in PEM. */
  ca?: string | Buffer;
  /** A token may be sent to another host without TLS. */
  insecure?: boolean;
}

/** What each call may have beside its members. */
export interface CallOptions {
  /** Seconds that it waits; of a stream for all of it. */
  timeout?: number;
  /** Ends it: the connection is closed, which ends a command that was waited for. */
  signal?: AbortSignal;
}

export type Query = Readonly<Record<string, string | number | boolean | null | undefined>>;

export interface Request extends CallOptions {
  names?: readonly string[];
  path?: string;
  query?: Query;
  body?: unknown;
  data?: Data;
  headers?: Readonly<Record<string, string>>;
  repeatable?: boolean;
  asked?: Asked;
}

/** Members of a request, without what is the call's own. */
export function split<T extends CallOptions>(options: T | undefined): [Omit<T, keyof CallOptions>, CallOptions] {
  const { timeout, signal, ...members } = options ?? ({} as T);
  return [members, { ...(timeout !== undefined ? { timeout } : {}), ...(signal !== undefined ? { signal } : {}) }];
}

/** A timeout, if it is one. */
function seconds(timeout: number): number {
  if (typeof timeout !== "number" || !(timeout >= 0)) throw new RangeError(`${inspect(timeout)} is no timeout: a number of seconds, or Infinity`);
  return timeout;
}

export function object(said: unknown): Record<string, unknown> {
  if (typeof said !== "object" || said === null || Array.isArray(said)) throw new AnswerError("an answer is no object");
  return said as Record<string, unknown>;
}

/** An answer's array called @member. */
export function list<T>(said: unknown, member: string): T[] {
  const found = object(said)[member];
  if (!Array.isArray(found)) throw new AnswerError(`an answer lacks ${member}`);
  for (const one of found) object(one);
  return found as T[];
}

/** An answer that has at least the texts @members. */
export function record<T>(said: unknown, ...members: (keyof T & string)[]): T {
  const found = object(said);
  for (const member of members) if (typeof found[member] !== "string") throw new AnswerError(`an answer lacks ${member}`);
  return found as T;
}

function oneName(name: string | undefined): string {
  if (typeof name !== "string" || ["", ".", ".."].includes(name)) throw new TypeError(`${inspect(name)} is no id and no name`);
  return encodeURIComponent(name);
}

/** A path in a sandbox. With .. in it a proxy in front of the daemon could take it for another route. */
function filePath(path: string): string {
  const words = path.split("/");
  if (words.includes(".."))
    throw new api.DeniedError(403, "files.path-escapes", "Path escapes workspace.", `"${path}": use a path below the workspace, without ".."`);
  const out = words.map(encodeURIComponent).join("/");
  return out.startsWith("/") ? `%2F${out.replace(/^\/+/, "")}` : out;
}

export function pathOf(route: Route, names: readonly string[] = [], path = "", query: Query = {}): string {
  const rest = [...names];
  const out = route.path.split("/").map((word) => (word === "{path}" ? filePath(path) : word.startsWith("{") ? oneName(rest.shift()) : word));
  const asked = new URLSearchParams();
  for (const [key, value] of Object.entries(query)) if (value !== undefined && value !== null) asked.set(key, String(value));
  return out.join("/") + (asked.size > 0 ? `?${asked}` : "");
}

export function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new AnswerError("an answer is no JSON");
  }
}

/** An error, in the daemon's own words; also one that is the last event of a stream. */
export function errorOf(said: unknown, status: number, retryAfter?: string): ApiError {
  const words: Record<string, unknown> = typeof said === "object" && said !== null ? (said as Record<string, unknown>) : {};
  const text = (name: string): string => (typeof words[name] === "string" ? (words[name] as string) : "");
  const code = text("code");
  const kind = byCode.get(code) ?? byStatus[status] ?? (status >= 500 ? api.ServerError : status ? api.InvalidError : ApiError);
  const after = retryAfter !== undefined && /^\d{1,5}$/.test(retryAfter) ? Number(retryAfter) : undefined;
  return new kind(status, code || `http.${status}`, text("error") || `the daemon answered with status ${status}`, text("detail"), text("request_id"), after);
}

async function failure(answer: Answer): Promise<Error> {
  const text = (await answer.read(ERROR_MAX)).toString("utf8");
  if (answer.status < 400) return new AnswerError(`an answer with status ${answer.status}; redirects are not followed`);
  let said: unknown;
  try {
    said = JSON.parse(text);
  } catch {
    said = undefined;
  }
  return errorOf(said, answer.status, answer.headers["retry-after"]);
}

/** A 202 that says that somebody has to approve it first. */
export function pending(said: unknown): ApprovalPending | undefined {
  if (typeof said !== "object" || said === null || !("approval" in said) || "exec_id" in said) return undefined;
  return new ApprovalPending(record<api.ApprovalWait>(said, "approval", "url", "risk"));
}

/** Seconds to wait before the same is asked again. What may have been done once is asked again only where that is the same. */
function mayRetry(error: unknown, repeatable: boolean, attempt: number): number | undefined {
  const said = error instanceof ApiError ? error : undefined;
  const again = error instanceof ConnectionFailed || said?.code === "http.rate" || (repeatable && (error instanceof ConnectionLost || said?.status === 503));
  return again ? Math.min(said?.retryAfter ?? 0.1 * 2 ** attempt, 10) * (1 + Math.random() / 4) : undefined;
}

export const pause = (seconds: number, signal?: AbortSignal): Promise<void> =>
  new Promise((go, stop) => {
    const timer = setTimeout(go, seconds * 1000);
    signal?.addEventListener("abort", () => {
      clearTimeout(timer);
      stop(signal.reason);
    }, { once: true });
  });

/** A daemon. Each request has a connection of its own. */
export class Client {
  readonly target: Target;
  readonly timeout: number;
  readonly retries: number;
  readonly maxAnswer: number;
  readonly respondAsync: boolean;
  readonly sandboxes = new Sandboxes(this);
  readonly templates = new Templates(this);
  readonly volumes = new Volumes(this);
  readonly tokens = new Tokens(this);
  readonly approvals = new Approvals(this);
  readonly grants = new Grants(this);
  readonly audit = new Audit(this);
  readonly events = new DaemonEvents(this);
  readonly #token: string;

  constructor(options: ClientOptions = {}) {
    this.target = findTarget(options.url, options.socket, options.ca);
    // CLOCHE_TOKEN belongs to the daemon of the environment, and is not sent to one that the program chose
    const chosen = options.url !== undefined || options.socket !== undefined;
    this.#token = options.token ?? (chosen ? undefined : process.env["CLOCHE_TOKEN"]) ?? "";
    this.timeout = seconds(options.timeout ?? 300);
    this.retries = options.retries ?? 2;
    this.maxAnswer = options.maxAnswer ?? ANSWER_MAX;
    this.respondAsync = options.respondAsync ?? false;
    const { socket, tls, host = "" } = this.target;
    if (!/^[!-~]*$/.test(this.#token)) throw new TypeError("the token holds a character that no token has");
    if (this.#token && socket === undefined && !tls && !LOOPBACK.includes(host) && !/^127\.\d+\.\d+\.\d+$/.test(host) && !options.insecure)
      throw new TypeError(`a token is not sent to ${host} without TLS: use https://, or insecure where the network is trusted`);
  }

  toString(): string {
    return `Client ${describe(this.target)}`;
  }

  [inspect.custom](): string {
    return `<${this}>`;
  }

  /** Ask: an answer whose status says success, to be read and closed. */
  async open(route: Route, ask: Request = {}): Promise<Answer> {
    const path = pathOf(route, ask.names, ask.path, ask.query);
    const patience = seconds(ask.timeout ?? this.timeout);
    const deadline = performance.now() + patience * 1000;
    const repeatable = ask.repeatable ?? ["GET", "HEAD"].includes(route.method);
    const headers: Record<string, string> = { Accept: "application/json", "User-Agent": "cloche-typescript/0.1.0" };
    if (this.#token) headers["Authorization"] = `Bearer ${this.#token}`;
    if (this.respondAsync && route.method !== "GET") headers["Prefer"] = "respond-async";
    let data = ask.data;
    if (ask.body !== undefined) {
      data = JSON.stringify(ask.body);
      headers["Content-Type"] = "application/json";
    }
    const once = data !== undefined && typeof data !== "string" && !(data instanceof Uint8Array);
    Object.assign(headers, ask.headers);
    const asked = ask.asked ?? { unknown: false };
    for (let attempt = 0; ; attempt++) {
      const before = asked.unknown;
      try {
        const left = patience === Infinity ? Infinity : (deadline - performance.now()) / 1000;
        const answer = await send(this.target, {
          method: route.method, path, headers, timeout: left, asked, ...(data !== undefined ? { data } : {}), ...(ask.signal ? { signal: ask.signal } : {}),
        });
        if (answer.status >= 200 && answer.status < 300) return answer;
        if (answer.status !== 502 && answer.status !== 504) asked.unknown = before; // a gateway does not know either
        throw await failure(answer);
      } catch (error) {
        const wait = mayRetry(error, repeatable, attempt);
        if (wait === undefined || once || attempt >= this.retries || performance.now() + wait * 1000 >= deadline) throw error;
        await pause(wait, ask.signal);
      }
    }
  }

  /** Ask: the JSON of the answer, undefined where there is none. */
  async ask(route: Route, ask: Request = {}): Promise<unknown> {
    const answer = await this.open(route, ask);
    try {
      const data = await answer.read(this.maxAnswer);
      const said = data.length > 0 ? parse(data.toString("utf8")) : undefined;
      const waits = answer.status === 202 ? pending(said) : undefined;
      if (waits) throw waits;
      return said;
    } finally {
      answer.close();
    }
  }

  /** Ask for events. Without a timeout only their beginning has a limit. */
  async stream(route: Route, ask: Request = {}): Promise<Answer> {
    const answer = await this.open(route, { ...ask, headers: { ...ask.headers, Accept: "text/event-stream" } });
    try {
      if (answer.status === 202) {
        const waits = pending(parse((await answer.read(ERROR_MAX)).toString("utf8")));
        if (waits) throw waits;
      }
      if (answer.status !== 204 && answer.headers["content-type"]?.split(";")[0] !== "text/event-stream")
        throw new AnswerError("an answer is no stream of events");
    } catch (error) {
      answer.close();
      throw error;
    }
    if (ask.timeout === undefined) answer.forever();
    return answer;
  }

  /** How long a call waits whose command may take that long. */
  patience(call: CallOptions, members: { timeout_ms?: number }): CallOptions {
    if (call.timeout !== undefined || members.timeout_ms === undefined) return call;
    return { ...call, timeout: this.timeout + members.timeout_ms / 1000 };
  }

  async health(): Promise<Record<string, unknown>> {
    return object(await this.ask(routes.GET_HEALTH));
  }

  /** Whether it takes requests; otherwise UnavailableError says why. */
  async ready(): Promise<Record<string, unknown>> {
    return object(await this.ask(routes.GET_READY, { repeatable: false }));
  }

  async version(): Promise<Record<string, unknown>> {
    return object(await this.ask(routes.GET_VERSION));
  }

  /** The daemon's numbers, in the text format of Prometheus. */
  async metrics(): Promise<string> {
    const answer = await this.open(routes.GET_METRICS, { headers: { Accept: "text/plain" } });
    return (await answer.read(this.maxAnswer)).toString("utf8");
  }

  /** What each living sandbox uses now. */
  async usage(): Promise<api.Usage[]> {
    return list<api.Usage>(await this.ask(routes.GET_USAGE), "usage");
  }

  /** End all sandboxes: how many. */
  async killAll(): Promise<number> {
    const found = object(await this.ask(routes.POST_KILL))["stopped"];
    return typeof found === "number" ? found : 0;
  }

  /** Run code in a sandbox of its own, which ends with it. */
  async execute(language: string, code: string, options?: api.ExecuteOptions & CallOptions): Promise<Completed<api.Result>> {
    const [members, call] = split(options);
    const said = await this.ask(routes.POST_EXECUTE, { body: { language, code, ...members }, ...this.patience(call, members) });
    return completed<api.Result>(said, members.encoding);
  }

  /** The same, with its output as it comes. */
  async executeStream(language: string, code: string, options?: api.ExecuteOptions & CallOptions): Promise<OutputStream<api.Result>> {
    const [members, call] = split(options);
    const answer = await this.stream(routes.POST_EXECUTE, { body: { language, code, ...members }, ...call });
    return new OutputStream<api.Result>(answer, this.maxAnswer, members.encoding);
  }
}

/** Run code in a sandbox of its own, which ends with it (Client.execute). */
export function execute(language: string, code: string, options?: api.ExecuteOptions & CallOptions): Promise<Completed<api.Result>> {
  return new Client().execute(language, code, options);
}

