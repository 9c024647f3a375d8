// A sandbox, and what it has.

import { randomBytes } from "node:crypto";
import * as fs from "node:fs";
import * as path from "node:path";
import { inspect } from "node:util";

import * as api from "./api.js";
import { routes, type Route } from "./api.js";
import { Client, ERROR_MAX, list, object, parse, pause, pending, record, split, type CallOptions, type Query, type Request } from "./client.js";
import { AnswerError, AnswerTooLong, ApprovalPending, ConnectionLost } from "./errors.js";
import { completed, EventStream, output, OutputStream, Watch, type Completed, type Encoding, type Gap, type Output } from "./streams.js";
import type { Answer, Data } from "./transport.js";

export const DOWNLOAD_MAX = 1024 * 1024 * 1024;
const UNDO = 10; // seconds for ending what was made for nobody
export type Command = string | readonly string[];
export type SandboxOptions = api.CreateOptions & CallOptions & { idempotencyKey?: string };
export type RunOptions = api.ExecOptions & CallOptions;

const octal = (mode: number | undefined): string | undefined => mode?.toString(8);

/** A local file, which is opened when the first of it is asked for. */
async function* contents(local: string): AsyncGenerator<Uint8Array> {
  yield* fs.createReadStream(local) as AsyncIterable<Uint8Array>;
}

/** A sandbox. `await using` ends it where this object made it; connect() is one that is there, and is not ended. */
export class Sandbox implements AsyncDisposable {
  readonly client!: Client;
  readonly files = new Files(this);
  readonly commands = new Commands(this);
  readonly contexts = new Contexts(this);
  readonly ports = new Ports(this);
  readonly attach = new Attach(this);
  readonly policy = new Policy(this);
  readonly transcript = new Transcript(this);
  readonly #ends: boolean;
  #info: api.SandboxInfo;

  private constructor(client: Client, info: api.SandboxInfo, ends: boolean) {
    Object.defineProperty(this, "client", { value: client, enumerable: false });
    this.#info = info;
    this.#ends = ends;
  }

  /**
   * Make one. A request whose answer was lost finds what it made, by its Idempotency-Key; the answer of one that was repeated has no
   * `key` (newKey makes one). What was perhaps made when the caller's patience ended is ended, within 10 s, unless the caller has a name
   * for it: an idempotencyKey of its own, or a workspace to reattach.
   */
  static async create(options?: SandboxOptions, client: Client = new Client()): Promise<Sandbox> {
    const [{ idempotencyKey, ...body }, call] = split(options);
    const headers = { "Idempotency-Key": idempotencyKey ?? randomBytes(16).toString("hex") };
    const asked = { unknown: false };
    const make = async (how: CallOptions): Promise<api.SandboxInfo> =>
      record<api.SandboxInfo>(await client.ask(routes.POST_SANDBOXES, { body, headers, repeatable: true, asked, ...how }), "id", "name", "state");
    try {
      const info = await make(call);
      return new Sandbox(client, info, info.reattached !== true);
    } catch (error) {
      if (asked.unknown && idempotencyKey === undefined && body.reattach !== true && !(error instanceof ApprovalPending))
        await make({ timeout: UNDO }).then(({ id }) => client.ask(routes.DELETE_SANDBOXES_ID, { names: [id], timeout: UNDO })).catch(() => undefined);
      throw error;
    }
  }

  /** One that is there, by its id or the name of one that lives. */
  static async connect(which: string, client: Client = new Client()): Promise<Sandbox> {
    return new Sandbox(client, await client.sandboxes.info(which), false);
  }

  /** Its record, as it was when it was last asked for (refresh). */
  get info(): api.SandboxInfo {
    return this.#info;
  }

  get id(): string {
    return this.#info.id;
  }

  get name(): string {
    return this.#info.name;
  }

  [inspect.custom](): string {
    return `<Sandbox ${this.id}>`;
  }

  ask(route: Route, names: readonly string[] = [], how: Request = {}): Promise<unknown> {
    return this.client.ask(route, { ...how, names: [this.id, ...names] });
  }

  async #is(route: Route): Promise<api.SandboxInfo> {
    this.#info = record<api.SandboxInfo>(await this.ask(route), "id", "name", "state");
    return this.#info;
  }

  refresh(): Promise<api.SandboxInfo> {
    return this.#is(routes.GET_SANDBOXES_ID);
  }

  /** End it, with everything that runs in it. One that has ended is left as it is. */
  async delete(): Promise<void> {
    if ((await this.refresh()).state !== "stopped") await this.#is(routes.DELETE_SANDBOXES_ID);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (!this.#ends) return;
    try {
      await this.delete();
    } catch (error) {
      if (!(error instanceof api.NotFoundError) && !(error instanceof api.GoneError)) throw error;
    }
  }

  async pause(): Promise<void> {
    await this.#is(routes.POST_SANDBOXES_ID_PAUSE);
  }

  async resume(): Promise<void> {
    await this.#is(routes.POST_SANDBOXES_ID_RESUME);
  }

  /** Make one that is degraded or stopped anew, empty. */
  async recover(): Promise<void> {
    await this.#is(routes.POST_SANDBOXES_ID_RECOVER);
  }

  /** New sandboxes that begin with its files. The caller ends them. */
  async fork(count = 1, name?: string): Promise<Sandbox[]> {
    const said = await this.ask(routes.POST_SANDBOXES_ID_FORK, [], { body: { count, ...(name !== undefined ? { name } : {}) } });
    return list<api.SandboxInfo>(said, "sandboxes").map((info) => new Sandbox(this.client, record<api.SandboxInfo>(info, "id"), true));
  }

  /** Keep its files as a template. */
  async snapshot(name: string): Promise<api.Template> {
    return record<api.Template>(await this.ask(routes.POST_SANDBOXES_ID_SNAPSHOT, [], { body: { name } }), "id");
  }

  /** What it uses now; undefined when it has stopped. */
  async usage(): Promise<api.Usage | undefined> {
    return list<api.Usage>(await this.ask(routes.GET_SANDBOXES_ID_USAGE), "usage")[0];
  }

  /** A new key; the former one is none any more. */
  async newKey(): Promise<api.SandboxKey> {
    return record<api.SandboxKey>(await this.ask(routes.POST_SANDBOXES_ID_KEY), "key");
  }

  /** See that its browser runs, and where its DevTools are. */
  async browser(): Promise<api.BrowserInfo> {
    return record<api.BrowserInfo>(await this.ask(routes.POST_SANDBOXES_ID_BROWSER), "path");
  }

  /** Entries of the record about it, with the filters of client.audit.list. */
  async audit(filter: Query = {}): Promise<Record<string, unknown>> {
    return object(await this.ask(routes.GET_SANDBOXES_ID_AUDIT, [], { query: filter }));
  }

  /** Run a command to its end: a list of words, or a string for /bin/sh. */
  async run(command: Command, options?: RunOptions): Promise<Completed<api.Result>> {
    const [members, call] = split(options);
    const said = await this.ask(routes.POST_SANDBOXES_ID_EXEC, [], { body: { command, ...members }, ...this.client.patience(call, members) });
    return completed<api.Result>(said, members.encoding);
  }

  /** The same, with its output as it comes. Leaving the stream ends the command. */
  async stream(command: Command, options?: RunOptions): Promise<OutputStream<api.Result>> {
    const [members, call] = split(options);
    const answer = await this.client.stream(routes.POST_SANDBOXES_ID_EXEC, { names: [this.id], body: { command, ...members }, ...call });
    return new OutputStream<api.Result>(answer, this.client.maxAnswer, members.encoding);
  }

  /** Start a command in the background. */
  async spawn(command: Command, options?: RunOptions): Promise<BackgroundCommand> {
    const [members, call] = split(options);
    const said = await this.ask(routes.POST_SANDBOXES_ID_EXEC, [], { body: { command, background: true, ...members }, ...call });
    return new BackgroundCommand(this, record<api.CommandInfo>(said, "exec_id"));
  }
}

class Of {
  protected readonly sandbox!: Sandbox;

  constructor(sandbox: Sandbox) {
    Object.defineProperty(this, "sandbox", { value: sandbox, enumerable: false });
  }
}

/** Commands in the background. */
export class Commands extends Of {
  /** The oldest first, those that have ended among them. */
  async list(): Promise<api.CommandInfo[]> {
    return list<api.CommandInfo>(await this.sandbox.ask(routes.GET_SANDBOXES_ID_EXEC), "commands");
  }

  async get(id: string): Promise<BackgroundCommand> {
    return new BackgroundCommand(this.sandbox, record<api.CommandInfo>(await this.sandbox.ask(routes.GET_SANDBOXES_ID_EXEC_ID, [id]), "exec_id"));
  }
}

/** A command in the background. */
export class BackgroundCommand extends Of {
  info: api.CommandInfo;

  constructor(sandbox: Sandbox, info: api.CommandInfo) {
    super(sandbox);
    this.info = info;
  }

  get id(): string {
    return this.info.exec_id;
  }

  async #is(route: Route, how: Request = {}): Promise<api.CommandInfo> {
    this.info = record<api.CommandInfo>(await this.sandbox.ask(route, [this.id], how), "exec_id");
    return this.info;
  }

  refresh(): Promise<api.CommandInfo> {
    return this.#is(routes.GET_SANDBOXES_ID_EXEC_ID);
  }

  /** Bytes for its stdin, which it has taken when this returns; end: nothing comes after them. */
  async write(data: string | Uint8Array, options: { end?: boolean } & CallOptions = {}): Promise<number> {
    const [{ end = false }, call] = split(options);
    const how = { data, query: { end }, headers: { "Content-Type": "application/octet-stream" }, ...call };
    const found = object(await this.sandbox.ask(routes.POST_SANDBOXES_ID_EXEC_ID_STDIN, [this.id], how))["bytes"];
    return typeof found === "number" ? found : 0;
  }

  /** INT, SIGINT, or a number: to its process group, of a terminal to the group in front. */
  signal(signal: string | number): Promise<api.CommandInfo> {
    return this.#is(routes.POST_SANDBOXES_ID_EXEC_ID_SIGNAL, { body: { signal } });
  }

  resize(rows: number, cols: number): Promise<api.CommandInfo> {
    return this.#is(routes.POST_SANDBOXES_ID_EXEC_ID_RESIZE, { body: { rows, cols } });
  }

  /** End it (SIGTERM, after the policy's grace SIGKILL); of one that had ended, remove the record. */
  delete(): Promise<api.CommandInfo> {
    return this.#is(routes.DELETE_SANDBOXES_ID_EXEC_ID);
  }

  /** Its output, from the beginning of what is kept, or behind what the caller has. Where the connection breaks it goes on. */
  stream(options: { after?: string; encoding?: Encoding } & CallOptions = {}): CommandStream {
    return new CommandStream(this.sandbox, this.id, options);
  }

  /** Until it has ended. */
  async wait(call: CallOptions = {}): Promise<api.CommandInfo> {
    for await (const _ of this.stream(call)) void _;
    return this.refresh();
  }
}

/** The output of a command in the background. `position` is `after` of another stream that goes on there. */
export class CommandStream implements AsyncIterableIterator<Output | Gap>, AsyncDisposable {
  position: string | undefined;
  ended = false;
  readonly #sandbox: Sandbox;
  readonly #id: string;
  readonly #encoding: Encoding;
  readonly #call: CallOptions;
  readonly #deadline: number;
  #stream: EventStream | undefined;
  #closed = false;
  #tries = 0;

  constructor(sandbox: Sandbox, id: string, options: { after?: string; encoding?: Encoding } & CallOptions) {
    this.#sandbox = sandbox;
    this.#id = id;
    this.position = options.after;
    this.#encoding = options.encoding ?? "text";
    this.#call = split(options)[1];
    this.#deadline = options.timeout === undefined ? Infinity : performance.now() + options.timeout * 1000;
  }

  async #connect(): Promise<EventStream> {
    const { client } = this.#sandbox;
    const left = this.#deadline === Infinity ? {} : { timeout: Math.max(0, this.#deadline - performance.now()) / 1000 };
    const query = { after: this.position, encoding: this.#encoding };
    const answer = await client.stream(routes.GET_SANDBOXES_ID_EXEC_ID_STREAM, { names: [this.#sandbox.id, this.#id], query, ...this.#call, ...left });
    this.ended = answer.status === 204;
    return new EventStream(answer, client.maxAnswer);
  }

  async next(): Promise<IteratorResult<Output | Gap, undefined>> {
    while (!this.ended && !this.#closed) {
      let found: IteratorResult<{ name: string; id: string; data: string }, undefined>;
      try {
        this.#stream ??= await this.#connect();
        if (this.ended || this.#closed) break;
        found = await this.#stream.next();
        if (this.#closed) break;
        if (found.done) throw new ConnectionLost("the stream ended before the command had");
      } catch (error) {
        this.#stream?.close();
        this.#stream = undefined;
        if (this.#closed) break;
        if (!(error instanceof ConnectionLost) || ++this.#tries > this.#sandbox.client.retries) throw error;
        await pause(0.1 * this.#tries, this.#call.signal);
        continue;
      }
      const event = found.value;
      const said = object(parse(event.data));
      this.#tries = 0;
      this.position = event.id || this.position;
      if (event.name === "stdout" || event.name === "stderr") return { done: false, value: output(event, said, this.#encoding) };
      if (event.name === "gap" && typeof said["bytes"] === "number")
        return { done: false, value: { type: "gap", stream: String(said["stream"]), bytes: said["bytes"] } };
      if (event.name !== "exit") throw new AnswerError("an event that no command has");
      this.ended = true;
    }
    this.close();
    return { done: true, value: undefined };
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  async return(): Promise<IteratorResult<Output | Gap, undefined>> {
    this.close();
    return { done: true, value: undefined };
  }

  close(): void {
    this.#closed = true;
    this.#stream?.close();
    this.#stream = undefined;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.close();
  }
}

export class Contexts extends Of {
  /** A process that runs code for one call after the other, and keeps its variables. */
  async create(language: "python" | "javascript" | "shell" = "python", options: api.NewContextOptions = {}): Promise<Context> {
    return new Context(this.sandbox, record<api.ContextInfo>(await this.sandbox.ask(routes.POST_SANDBOXES_ID_CONTEXTS, [], { body: { language, ...options } }), "context_id"));
  }

  async list(): Promise<api.ContextInfo[]> {
    return list<api.ContextInfo>(await this.sandbox.ask(routes.GET_SANDBOXES_ID_CONTEXTS), "contexts");
  }

  async get(id: string): Promise<Context> {
    return new Context(this.sandbox, record<api.ContextInfo>(await this.sandbox.ask(routes.GET_SANDBOXES_ID_CONTEXTS_ID, [id]), "context_id"));
  }
}

/** A process that runs code for one call after the other. The end of `await using` ends it. */
export class Context extends Of implements AsyncDisposable {
  info: api.ContextInfo;

  constructor(sandbox: Sandbox, info: api.ContextInfo) {
    super(sandbox);
    this.info = info;
  }

  get id(): string {
    return this.info.context_id;
  }

  async #is(route: Route): Promise<api.ContextInfo> {
    this.info = record<api.ContextInfo>(await this.sandbox.ask(route, [this.id]), "context_id");
    return this.info;
  }

  /** Run code in it, after what ran there before. */
  async execute(code: string, options?: api.ContextCodeOptions & CallOptions): Promise<Completed<api.ContextResult>> {
    const [members, call] = split(options);
    const how = { body: { code, ...members }, ...this.sandbox.client.patience(call, members) };
    return completed<api.ContextResult>(await this.sandbox.ask(routes.POST_SANDBOXES_ID_CONTEXTS_ID_EXECUTE, [this.id], how), members.encoding);
  }

  /** The same, with its output and results as they come. Leaving the stream interrupts the code. */
  async stream(code: string, options?: api.ContextCodeOptions & CallOptions): Promise<OutputStream<api.ContextResult>> {
    const [members, call] = split(options);
    const { client } = this.sandbox;
    const answer = await client.stream(routes.POST_SANDBOXES_ID_CONTEXTS_ID_EXECUTE, { names: [this.sandbox.id, this.id], body: { code, ...members }, ...call });
    return new OutputStream<api.ContextResult>(answer, client.maxAnswer, members.encoding, { results: [], results_truncated: false, error: null });
  }

  refresh(): Promise<api.ContextInfo> {
    return this.#is(routes.GET_SANDBOXES_ID_CONTEXTS_ID);
  }

  /** End the code that runs in it; its variables stay. */
  interrupt(): Promise<api.ContextInfo> {
    return this.#is(routes.POST_SANDBOXES_ID_CONTEXTS_ID_INTERRUPT);
  }

  /** End its process and begin it anew, without variables. */
  restart(): Promise<api.ContextInfo> {
    return this.#is(routes.POST_SANDBOXES_ID_CONTEXTS_ID_RESTART);
  }

  delete(): Promise<api.ContextInfo> {
    return this.#is(routes.DELETE_SANDBOXES_ID_CONTEXTS_ID);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    try {
      await this.delete();
    } catch (error) {
      if (!(error instanceof api.NotFoundError) && !(error instanceof api.GoneError) && !(error instanceof api.ConflictError)) throw error;
    }
  }
}

export interface WriteOptions extends CallOptions {
  parents?: boolean;
  exclusive?: boolean;
  /** The file's mode: 0o755. */
  mode?: number;
}

export interface ReadOptions extends CallOptions {
  offset?: number;
  length?: number;
  /** Bytes that the caller takes. */
  limit?: number;
}

/** Files of the workspace. Paths are below it, or begin with where it is inside. */
export class Files extends Of {
  async #open(path: string, options: ReadOptions): Promise<Answer> {
    const [{ offset, length }, call] = split(options);
    const how = { names: [this.sandbox.id], path, query: { offset, length }, headers: { Accept: "application/octet-stream" }, ...call };
    const answer = await this.sandbox.client.open(routes.GET_SANDBOXES_ID_FILES_PATH, how);
    if (answer.status === 202) {
      throw pending(parse((await answer.read(ERROR_MAX)).toString("utf8"))) ?? new AnswerError("an answer that no file has");
    }
    return answer;
  }

  /** Its contents. */
  async read(path: string, options: ReadOptions = {}): Promise<Uint8Array> {
    return (await this.#open(path, options)).read(options.limit ?? this.sandbox.client.maxAnswer);
  }

  async readText(path: string, options: ReadOptions = {}): Promise<string> {
    return new TextDecoder("utf-8", { fatal: true }).decode(await this.read(path, options));
  }

  /** Its contents in pieces, as they come. */
  async *chunks(path: string, options: ReadOptions = {}): AsyncGenerator<Uint8Array> {
    yield* (await this.#open(path, options)).pieces();
  }

  /** Write the whole file: text, bytes, or pieces of bytes (a Readable too). How many bytes. */
  async write(path: string, data: Data, options: WriteOptions = {}): Promise<number> {
    const [{ parents, exclusive, mode }, call] = split(options);
    const how = { path, data, query: { parents, exclusive, mode: octal(mode) }, headers: { "Content-Type": "application/octet-stream" }, ...call };
    const found = object(await this.sandbox.ask(routes.PUT_SANDBOXES_ID_FILES_PATH, [], how))["size"];
    return typeof found === "number" ? found : 0;
  }

  /** Write a local file there. */
  upload(local: string, path: string, options: WriteOptions = {}): Promise<number> {
    return this.write(path, contents(local), options);
  }

  /** Write its contents to a local file, whose name is the caller's: all of them, or nothing. How many bytes. */
  async download(from: string, local: string, options: { limit?: number } & CallOptions = {}): Promise<number> {
    const limit = options.limit ?? DOWNLOAD_MAX;
    const answer = await this.#open(from, split(options)[1]);
    const half = path.join(path.dirname(local), `.cloche-${randomBytes(8).toString("hex")}`);
    let size = 0;
    let file: fs.promises.FileHandle | undefined;
    try {
      file = await fs.promises.open(half, "wx", 0o600);
      for await (const piece of answer.pieces()) {
        size += piece.length;
        if (size > limit) throw new AnswerTooLong(`the file has more than the ${limit} bytes that the caller takes`);
        await file.writeFile(piece);
      }
      await file.close();
      await fs.promises.rename(half, local);
    } catch (error) {
      await file?.close().catch(() => undefined);
      if (file) await fs.promises.rm(half, { force: true });
      throw error;
    } finally {
      answer.close();
    }
    return size;
  }

  async size(path: string): Promise<number> {
    const answer = await this.sandbox.client.open(routes.HEAD_SANDBOXES_ID_FILES_PATH, { names: [this.sandbox.id], path });
    answer.close();
    return Number(answer.headers["content-length"] ?? 0);
  }

  async stat(path: string): Promise<api.Entry> {
    return record<api.Entry>(await this.sandbox.ask(routes.GET_SANDBOXES_ID_STAT_PATH, [], { path }), "name", "type");
  }

  async exists(path: string): Promise<boolean> {
    try {
      await this.stat(path);
      return true;
    } catch (error) {
      if (error instanceof api.NoSuchFileError) return false;
      throw error;
    }
  }

  /** Entries of a folder. */
  async list(path = ""): Promise<api.Entry[]> {
    return list<api.Entry>(await this.sandbox.ask(routes.GET_SANDBOXES_ID_DIRS_PATH, [], { path }), "entries");
  }

  async mkdir(path: string, options: { parents?: boolean; mode?: number } = {}): Promise<void> {
    await this.sandbox.ask(routes.POST_SANDBOXES_ID_DIRS_PATH, [], { path, query: { parents: options.parents, mode: octal(options.mode) } });
  }

  async delete(path: string, options: { recursive?: boolean } = {}): Promise<void> {
    await this.sandbox.ask(routes.DELETE_SANDBOXES_ID_FILES_PATH, [], { path, query: { ...options } });
  }

  /** What changes below a folder, as it happens. The first event is `watching`. */
  async watch(path?: string, options: { recursive?: boolean } & CallOptions = {}): Promise<Watch> {
    const [{ recursive = false }, call] = split(options);
    const { client } = this.sandbox;
    return new Watch(await client.stream(routes.GET_SANDBOXES_ID_WATCH, { names: [this.sandbox.id], query: { path, recursive }, ...call }), client.maxAnswer);
  }
}

export class Ports extends Of {
  /** Expose one; its `url` and `path` are in this answer only. */
  async expose(port: number, options: api.NewPortOptions = {}): Promise<api.Port> {
    return record<api.Port>(await this.sandbox.ask(routes.POST_SANDBOXES_ID_PORTS, [], { body: { port, ...options } }), "id");
  }

  async list(): Promise<api.Port[]> {
    return list<api.Port>(await this.sandbox.ask(routes.GET_SANDBOXES_ID_PORTS), "ports");
  }

  async delete(which: string): Promise<api.Port> {
    return record<api.Port>(await this.sandbox.ask(routes.DELETE_SANDBOXES_ID_PORTS_ID, [which]), "id");
  }
}

/** Sessions of people, with an editor or at the desktop (docs/attach.md). */
export class Attach extends Of {
  /** A ticket for a session. */
  async create(mode: api.Attach["mode"], options: api.NewAttachOptions = {}): Promise<api.Attach> {
    return record<api.Attach>(await this.sandbox.ask(routes.POST_SANDBOXES_ID_ATTACH, [], { body: { mode, ...options } }), "id");
  }

  /** A session for its ticket, which is used up. */
  async open(ticket: string): Promise<api.Attach> {
    return record<api.Attach>(await this.sandbox.ask(routes.POST_SANDBOXES_ID_ATTACH_OPEN, [], { body: { ticket } }), "id");
  }

  async list(): Promise<api.Attach[]> {
    return list<api.Attach>(await this.sandbox.ask(routes.GET_SANDBOXES_ID_ATTACH), "sessions");
  }

  async delete(which: string): Promise<api.Attach> {
    return record<api.Attach>(await this.sandbox.ask(routes.DELETE_SANDBOXES_ID_ATTACH_SESSIONS_ID, [which]), "id");
  }
}

export class Policy extends Of {
  /** What it was asked to be held to, and what it is held to. */
  async get(): Promise<api.PolicyInfo> {
    return record<api.PolicyInfo>(await this.sandbox.ask(routes.GET_SANDBOXES_ID_POLICY), "revision");
  }

  /** Change it by a merge patch; with a revision only if nobody has changed it since. */
  async patch(patch: Record<string, unknown>, revision?: string): Promise<api.PolicyInfo> {
    const headers = { "Content-Type": "application/merge-patch+json", ...(revision !== undefined ? { "If-Match": `"${revision}"` } : {}) };
    return record<api.PolicyInfo>(await this.sandbox.ask(routes.PATCH_SANDBOXES_ID_POLICY, [], { body: patch, headers }), "revision");
  }
}

/** What was done in a sandbox; also when it is gone. */
export class Transcript extends Of {
  /** `entries`, and `next`, which is the offset of the following page. */
  async page(offset?: number): Promise<Record<string, unknown>> {
    return object(await this.sandbox.ask(routes.GET_SANDBOXES_ID_TRANSCRIPT, [], { query: { offset } }));
  }

  /** What commands wrote, of a page. */
  async logs(offset?: number): Promise<Record<string, unknown>> {
    return object(await this.sandbox.ask(routes.GET_SANDBOXES_ID_LOGS, [], { query: { offset } }));
  }

  /** The messages of a page. */
  async messages(offset?: number): Promise<Record<string, unknown>> {
    return object(await this.sandbox.ask(routes.GET_SANDBOXES_ID_MESSAGES, [], { query: { offset } }));
  }

  /** Put a message of the conversation into it: its number. */
  async addMessage(role: string, content: unknown): Promise<number> {
    const found = object(await this.sandbox.ask(routes.POST_SANDBOXES_ID_MESSAGES, [], { body: { role, content } }))["operation"];
    return typeof found === "number" ? found : 0;
  }
}
