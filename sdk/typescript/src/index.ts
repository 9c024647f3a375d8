// Sandboxes of cloche, over the API of its daemon (docs/sdk.md, docs/daemon.md).

export * from "./errors.js";
export * from "./api.js";
export { Client, execute, type CallOptions, type ClientOptions } from "./client.js";
export { BackgroundCommand, CommandStream, Context, Sandbox, type Command, type ReadOptions, type RunOptions, type SandboxOptions, type WriteOptions } from "./sandbox.js";
export {
  ApprovalStream, bytesOf, contentsOf, EventStream, OutputStream, Stream, Watch,
  type Collected, type Completed, type Encoding, type FileEvent, type Gap, type Outcome, type Output, type Shown,
} from "./streams.js";
export type { AuditFilter, SandboxFilter } from "./parts.js";
export type { Event } from "./events.js";
export type { Data } from "./transport.js";
