// Server-sent events out of a stream's bytes (HTML, "Server-sent events"), with a ceiling on each.

import { AnswerTooLong } from "./errors.js";

export interface Event {
  /** Its name. */
  readonly name: string;
  /** Its id, "" none. */
  readonly id: string;
  readonly data: string;
}

const LF = 10;
const CR = 13;

export class Events {
  readonly #most: number;
  #line: Buffer[] = [];
  #lineSize = 0;
  #data: string[] = [];
  #dataSize = 0;
  #name = "";
  #id = "";
  #cr = false;

  constructor(most: number) {
    this.#most = most;
  }

  /** The events that end in what came. */
  *feed(data: Buffer): Generator<Event> {
    let at = 0;
    for (let i = 0; i < data.length; i++) {
      const byte = data[i];
      if (byte !== LF && byte !== CR) {
        this.#cr = false;
        continue;
      }
      if (byte === LF && this.#cr) {
        this.#cr = false;
        at = i + 1;
        continue;
      }
      this.#keep(data.subarray(at, i));
      at = i + 1;
      this.#cr = byte === CR;
      const event = this.#take(Buffer.concat(this.#line).toString("utf8"));
      this.#line = [];
      this.#lineSize = 0;
      if (event) yield event;
    }
    this.#keep(data.subarray(at));
  }

  #keep(piece: Buffer): void {
    this.#lineSize += piece.length;
    if (this.#lineSize + this.#dataSize > this.#most) throw new AnswerTooLong(`an event has more than ${this.#most} bytes`);
    if (piece.length > 0) this.#line.push(piece);
  }

  #take(line: string): Event | undefined {
    if (line === "") {
      const event = this.#data.length > 0 ? { name: this.#name || "message", id: this.#id, data: this.#data.join("\n") } : undefined;
      this.#data = [];
      this.#dataSize = 0;
      this.#name = "";
      return event;
    }
    const colon = line.indexOf(":");
    const name = colon < 0 ? line : line.slice(0, colon);
    let value = colon < 0 ? "" : line.slice(colon + 1);
    if (value.startsWith(" ")) value = value.slice(1);
    if (name === "data") {
      this.#data.push(value);
      this.#dataSize += value.length + 1;
    } else if (name === "event") {
      this.#name = value.slice(0, 256);
    } else if (name === "id" && !value.includes("\0")) {
      this.#id = value.slice(0, 256);
    }
    return undefined;
  }
}
