// A request and its answer over a connection of its own: a unix socket or TCP, with a ceiling on everything.

import * as fs from "node:fs";
import * as http from "node:http";
import * as https from "node:https";
import * as os from "node:os";
import * as path from "node:path";

import { AnswerError, AnswerTooLong, ClocheError, ConnectionFailed, ConnectionLost, TimedOut } from "./errors.js";

export const HEAD_MAX = 64 * 1024;
const INTERIM_MAX = 8;
const TIMER_MAX = 2 ** 31 - 1; // milliseconds; a timer of more is one of 1

export type Data = string | Uint8Array | Iterable<Uint8Array> | AsyncIterable<Uint8Array>;

/** Where a daemon is. */
export interface Target {
  readonly socket?: string;
  readonly host?: string;
  readonly port?: number;
  readonly ca?: string | Buffer;
  readonly tls: boolean;
}

export interface Ask {
  readonly method: string;
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly data?: Data;
  /** Seconds for the whole answer; Infinity none. */
  readonly timeout: number;
  readonly signal?: AbortSignal;
  readonly asked?: Asked;
}

/** What became of a request. */
export interface Asked {
  /** Something was sent, and the daemon has not said whether it was done. */
  unknown: boolean;
}

/** Where `cloche serve` of this user listens. */
export function defaultSocket(): string {
  const state = process.env["XDG_STATE_HOME"] ?? "";
  if (state.startsWith("/")) return `${state}/cloche/serve/api.sock`;
  if (process.geteuid?.() === 0) return "/var/lib/cloche/serve/api.sock";
  return path.join(os.homedir(), ".local/state/cloche/serve/api.sock");
}

export function findTarget(url: string | undefined, socket: string | undefined, ca: string | Buffer | undefined): Target {
  if (url !== undefined && socket !== undefined) throw new TypeError("url and socket are two daemons: give one");
  if (url === undefined && socket === undefined) {
    url = process.env["CLOCHE_URL"] || undefined;
    socket = url ? undefined : process.env["CLOCHE_SOCKET"] || defaultSocket();
  }
  if (url === undefined || url.startsWith("unix:")) {
    const at = (url ?? socket ?? "").replace(/^unix:/, "");
    if (at === "" || at.includes("://")) throw new TypeError(`${at} is no path of a unix socket; an address is url`);
    return { socket: at, tls: false };
  }
  const parts = URL.canParse(url) ? new URL(url) : undefined;
  if (!parts || !["http:", "https:"].includes(parts.protocol) || parts.username !== "" || parts.pathname !== "/" || parts.search !== "" || parts.host === "")
    throw new TypeError("the daemon's address is http://HOST:PORT, https://HOST:PORT or unix:PATH");
  const tls = parts.protocol === "https:";
  const host = parts.hostname.replace(/^\[|\]$/g, "");
  return { host, port: parts.port ? Number(parts.port) : tls ? 443 : 80, tls, ...(ca !== undefined ? { ca } : {}) };
}

export function describe(target: Target): string {
  if (target.socket !== undefined) return `unix:${target.socket}`;
  const host = target.host?.includes(":") ? `[${target.host}]` : target.host;
  return `${target.tls ? "https" : "http"}://${host}:${target.port}`;
}

/** An answer whose head has come. Its body comes as it is read. */
export class Answer {
  readonly status: number;
  readonly headers: http.IncomingHttpHeaders;
  readonly #response: http.IncomingMessage;
  readonly #end: (error?: Error) => void;
  readonly #why: () => Error | undefined;
  readonly #forever: () => void;

  constructor(response: http.IncomingMessage, end: (error?: Error) => void, why: () => Error | undefined, forever: () => void) {
    this.status = response.statusCode ?? 0;
    this.headers = response.headers;
    this.#response = response;
    this.#end = end;
    this.#why = why;
    this.#forever = forever;
  }

  /** The body as it comes. */
  async *pieces(): AsyncGenerator<Buffer> {
    try {
      for await (const piece of this.#response) yield piece as Buffer;
      if (!this.#response.complete) throw new ConnectionLost("the connection ended before the answer had");
    } catch (error) {
      throw this.#why() ?? meaning(error);
    } finally {
      this.close();
    }
  }

  /** All of it, if that is no more than @most bytes. */
  async read(most: number): Promise<Buffer> {
    const parts: Buffer[] = [];
    let size = 0;
    const said = Number(this.headers["content-length"] ?? 0);
    if (said > most) {
      this.close();
      throw new AnswerTooLong(`an answer has ${said} bytes, and the caller takes ${most}`);
    }
    for await (const piece of this.pieces()) {
      size += piece.length;
      if (size > most) throw new AnswerTooLong(`an answer has more than the ${most} bytes that the caller takes`);
      parts.push(piece);
    }
    return Buffer.concat(parts);
  }

  /** From here on it may take as long as it does. */
  forever(): void {
    this.#forever();
  }

  close(): void {
    this.#end();
  }
}

function meaning(error: unknown): Error {
  if (error instanceof ClocheError) return error;
  const { code = "", message = String(error) } = error as { code?: string; message?: string };
  if (code === "HPE_HEADER_OVERFLOW") return new AnswerTooLong("the head of an answer is too long");
  if (code.startsWith("HPE_") && code !== "HPE_INVALID_EOF_STATE") return new AnswerError(`not an answer of cloche serve: ${message}`);
  return new ConnectionLost(`the connection broke: ${message}`);
}

/** An address of a socket has at most 107 bytes; a folder may have a longer path. */
function socketAddress(at: string): { address: string; done: () => void } {
  if (Buffer.byteLength(at) < 108) return { address: at, done: () => undefined };
  const folder = fs.openSync(path.dirname(at), fs.constants.O_RDONLY | fs.constants.O_DIRECTORY);
  return { address: `/proc/self/fd/${folder}/${path.basename(at)}`, done: () => fs.closeSync(folder) };
}

/** Ask: an answer, whatever its status. */
export function send(target: Target, ask: Ask): Promise<Answer> {
  return new Promise((resolve, reject) => {
    let connected = false;
    let ended = false;
    let interim = 0;
    let reason: Error | undefined;
    let timer: NodeJS.Timeout | undefined;
    const { data } = ask;
    const whole = typeof data === "string" || data instanceof Uint8Array ? Buffer.from(data as string) : undefined;
    const headers: Record<string, string> = { ...ask.headers };
    if (whole !== undefined) headers["Content-Length"] = String(whole.length);
    else if (data !== undefined) headers["Transfer-Encoding"] = "chunked";
    else if (!["GET", "HEAD", "DELETE"].includes(ask.method)) headers["Content-Length"] = "0";
    let place: { address: string; done: () => void } | undefined;
    const release = (): void => {
      place?.done();
      place = undefined;
    };
    try {
      place = target.socket !== undefined ? socketAddress(target.socket) : undefined;
    } catch (error) {
      reject(new ConnectionFailed(`no cloche serve answers at ${describe(target)}: ${(error as Error).message}`));
      return;
    }
    const request = (target.tls ? https : http).request({
      method: ask.method, path: ask.path, headers, agent: false, maxHeaderSize: HEAD_MAX, insecureHTTPParser: false,
      ...(place !== undefined ? { socketPath: place.address, setHost: true, host: "localhost" } : { host: target.host, port: target.port }),
      ...(target.ca !== undefined ? { ca: target.ca } : {}),
    });
    const aborted = (): void => end(ask.signal?.reason instanceof Error ? ask.signal.reason : new ClocheError("the caller ended it"));
    const patience = (): void => {
      clearTimeout(timer);
      timer = undefined;
    };
    const end = (error?: Error): void => {
      if (ended) return;
      ended = true;
      reason = error;
      patience();
      ask.signal?.removeEventListener("abort", aborted);
      request.destroy();
      if (error) reject(error);
    };
    if (Number.isFinite(ask.timeout))
      timer = setTimeout(() => end(new TimedOut("no answer in the time that the caller gave")), Math.min(Math.max(0, ask.timeout * 1000), TIMER_MAX));
    if (ask.signal?.aborted) {
      release();
      request.on("error", () => undefined);
      aborted();
      return;
    }
    ask.signal?.addEventListener("abort", aborted, { once: true });
    request.on("socket", (socket) => {
      socket.once(target.tls ? "secureConnect" : "connect", () => {
        connected = true;
        if (ask.asked) ask.asked.unknown = true;
      });
      socket.once("connect", release);
      socket.once("close", release);
    });
    request.on("information", () => {
      if (++interim > INTERIM_MAX) end(new AnswerError("an answer that does not begin"));
    });
    request.on("error", (error: Error) => {
      end(connected ? meaning(error) : new ConnectionFailed(`no cloche serve answers at ${describe(target)}: ${error.message}`));
    });
    request.on("response", (response) => {
      response.on("error", () => undefined);
      const coding = response.headers["content-encoding"];
      if (coding !== undefined && coding !== "identity") {
        end(new AnswerError("an answer is compressed, which nobody asked for"));
        return;
      }
      const status = response.statusCode ?? 0;
      const ends = response.headers["content-length"] !== undefined || response.headers["transfer-encoding"]?.toLowerCase() === "chunked";
      if (!ends && status >= 200 && status < 300 && status !== 204 && ask.method !== "HEAD") {
        end(new AnswerError("an answer does not say where it ends: cut it would look whole"));
        return;
      }
      resolve(new Answer(response, end, () => reason, patience));
    });
    if (data === undefined || whole !== undefined) request.end(whole);
    else upload(request, data as Exclude<Data, string | Uint8Array>).catch((error: unknown) => end(error instanceof Error ? error : new ClocheError(String(error))));
  });
}

async function upload(request: http.ClientRequest, data: Iterable<Uint8Array> | AsyncIterable<Uint8Array>): Promise<void> {
  for await (const piece of data) {
    if (request.destroyed) return;
    if (piece.length > 0 && !request.write(piece))
      await new Promise<void>((go) => {
        const on = (): void => {
          request.off("drain", on);
          request.off("close", on);
          go();
        };
        request.on("drain", on);
        request.on("close", on);
      });
  }
  request.end();
}
