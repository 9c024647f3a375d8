// Events as they come, and the end of a command.

import type { Display, Result, ResultFile, Approval, FileChange } from "./api.js";
import { errorOf, object, parse, record } from "./client.js";
import { AnswerError, CommandError, ConnectionLost } from "./errors.js";
import { Events, type Event } from "./events.js";
import type { Answer } from "./transport.js";

export type Encoding = "text" | "base64";

/** What the result of a command has beside its members. */
export interface Outcome {
  /** Whether it ended with 0. */
  readonly ok: boolean;
  /** Itself, if it ended with 0; otherwise CommandError. */
  check(): this;
  /** Its output as bytes: exactly what was written, where it was asked for with encoding: "base64". */
  stdoutBytes(): Uint8Array;
  stderrBytes(): Uint8Array;
}

export type Completed<R extends Result> = R & Outcome;

export function bytesOf(text: string, encoding: Encoding = "text"): Uint8Array {
  if (encoding !== "base64") return Buffer.from(text, "utf8");
  if (!/^[A-Za-z0-9+/]*={0,2}$/.test(text) || text.length % 4 !== 0) throw new AnswerError("what should be base64 is not");
  return Buffer.from(text, "base64");
}

/** Bytes of a file that came back. Its path is a name that the code chose: check it before you write it to a disk. */
export function contentsOf(file: ResultFile): Uint8Array {
  return file.content_base64 !== undefined ? bytesOf(file.content_base64, "base64") : bytesOf(file.content ?? "");
}

export function completed<R extends Result>(said: unknown, encoding?: Encoding): Completed<R> {
  const result = record<R>(said, "stdout", "stderr");
  if (result.exit_code !== null && typeof result.exit_code !== "number") throw new AnswerError("an answer lacks exit_code");
  const more: PropertyDescriptorMap & ThisType<R> = {
    ok: { value: result.exit_code === 0 },
    check: {
      value: function check(): R {
        if (result.exit_code !== 0) throw new CommandError(result);
        return result;
      },
    },
    stdoutBytes: { value: () => bytesOf(result.stdout, encoding) },
    stderrBytes: { value: () => bytesOf(result.stderr, encoding) },
  };
  return Object.defineProperties(result, more) as Completed<R>;
}

/** Something that a command wrote. */
export interface Output {
  readonly type: "output";
  readonly stream: "stdout" | "stderr";
  readonly data: string;
  readonly encoding: Encoding;
}

/** Something that code showed, in a context. */
export interface Shown {
  readonly type: "display";
  readonly display: Display;
}

/** A file that came back, of /v1/execute with collect. */
export interface Collected {
  readonly type: "file";
  readonly file: ResultFile;
}

/** Output that is kept no more, of a command in the background. */
export interface Gap {
  readonly type: "gap";
  readonly stream: string;
  readonly bytes: number;
}

/** Something that changed in a workspace. */
export interface FileEvent extends FileChange {
  readonly type: string;
}

export function output(event: Event, said: Record<string, unknown>, encoding: Encoding): Output {
  if (typeof said["data"] !== "string") throw new AnswerError("an event has no data");
  return { type: "output", stream: event.name === "stdout" ? "stdout" : "stderr", data: said["data"], encoding };
}

/** Events as they come. Leaving it (close, break, the end of `await using`) ends what is streamed. */
export abstract class Stream<T> implements AsyncIterableIterator<T>, AsyncDisposable {
  readonly #answer: Answer;
  readonly #events: AsyncGenerator<Event>;
  #closed = false;

  constructor(answer: Answer, most: number) {
    this.#answer = answer;
    this.#events = Stream.#read(answer, most);
  }

  static async *#read(answer: Answer, most: number): AsyncGenerator<Event> {
    const events = new Events(most);
    for await (const piece of answer.pieces()) yield* events.feed(piece);
  }

  /** What an event is to the caller; undefined: the stream's end. */
  protected abstract take(event: Event, said: unknown): T | undefined;

  /** The connection's end: nothing more, unless something is missing. */
  protected ended(): void {}

  async next(): Promise<IteratorResult<T, undefined>> {
    if (this.#closed) return { done: true, value: undefined };
    try {
      const { done, value } = await this.#events.next();
      if (done) {
        if (!this.#closed) this.ended();
        this.close();
        return { done: true, value: undefined };
      }
      const said = parse(value.data);
      if (value.name === "error") throw errorOf(said, 0);
      const found = this.take(value, said);
      if (found !== undefined) return { done: false, value: found };
      this.close();
      return { done: true, value: undefined };
    } catch (error) {
      this.close();
      throw error;
    }
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  async return(): Promise<IteratorResult<T, undefined>> {
    this.close();
    return { done: true, value: undefined };
  }

  close(): void {
    this.#closed = true;
    this.#answer.close();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.close();
  }
}

/** Events of the daemon or of its record: `data` is JSON. */
export class EventStream extends Stream<Event> {
  protected override take(event: Event): Event {
    return event;
  }
}

/** Approvals: those that are pending, then each that is new or changes. */
export class ApprovalStream extends Stream<Approval> {
  protected override take(_: Event, said: unknown): Approval {
    return record<Approval>(said, "id", "state");
  }
}

/** Changes in a workspace. */
export class Watch extends Stream<FileEvent> {
  protected override take(event: Event, said: unknown): FileEvent {
    return { ...record<FileChange>(said, "path"), type: event.name };
  }
}

/** What a command or code writes, and what else it shows. `result` when it has ended, without the output. */
export class OutputStream<R extends Result> extends Stream<Output | Shown | Collected> {
  result: Completed<R> | undefined;
  readonly #encoding: Encoding;
  readonly #empty: Partial<R>;

  constructor(answer: Answer, most: number, encoding: Encoding = "text", empty: Partial<R> = {}) {
    super(answer, most);
    this.#encoding = encoding;
    this.#empty = empty;
  }

  protected override take(event: Event, said: unknown): Output | Shown | Collected | undefined {
    const members = object(said);
    if (event.name === "stdout" || event.name === "stderr") return output(event, members, this.#encoding);
    if (event.name === "result") return { type: "display", display: members as unknown as Display };
    if (event.name === "file") return { type: "file", file: record<ResultFile>(said, "path") };
    if (event.name !== "exit") throw new AnswerError("an event that no command has");
    this.result = completed<R>({ ...this.#empty, ...members, stdout: "", stderr: "" });
    return undefined;
  }

  protected override ended(): void {
    throw new ConnectionLost("the stream ended before the command had");
  }

  /** Read on to the end: the result. */
  async wait(): Promise<Completed<R>> {
    for await (const _ of this) void _;
    if (!this.result) throw new ConnectionLost("the stream was closed before the command had ended");
    return this.result;
  }
}
