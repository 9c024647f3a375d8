// Errors that are not the daemon's own, and what those have in common.

/** Anything that goes wrong with cloche. */
export class ClocheError extends Error {
  override get name(): string {
    return this.constructor.name;
  }
}

/** Nobody answers there: nothing was asked. */
export class ConnectionFailed extends ClocheError {}

/** The connection ended before the answer had: what was asked may have been done, or not. */
export class ConnectionLost extends ClocheError {}

/** The caller's own time was over. The connection is closed, which ends a command that was waited for. */
export class TimedOut extends ClocheError {}

/** What came is no answer of cloche serve. */
export class AnswerError extends ClocheError {}

/** More came than the caller takes. */
export class AnswerTooLong extends AnswerError {}

/** The daemon refuses, or failed. `code` is stable, the texts are the daemon's. */
export class ApiError extends ClocheError {
  readonly status: number;
  readonly code: string;
  readonly detail: string;
  readonly requestId: string;
  readonly retryAfter: number | undefined;

  constructor(status: number, code: string, message: string, detail = "", requestId = "", retryAfter?: number) {
    super(message);
    this.status = status;
    this.code = code;
    this.detail = detail;
    this.requestId = requestId;
    this.retryAfter = retryAfter;
  }
}

/** Somebody has to approve it first (a client with respondAsync). The same request does it then. */
export class ApprovalPending extends ClocheError {
  readonly approval: string;
  readonly url: string;
  readonly risk: string;
  readonly rule: string | null;
  readonly timeout: number;

  constructor(wait: { approval: string; url: string; risk: string; rule: string | null; timeout: number }) {
    super(`approval ${wait.approval} is pending`);
    this.approval = wait.approval;
    this.url = wait.url;
    this.risk = wait.risk;
    this.rule = wait.rule;
    this.timeout = wait.timeout;
  }
}

/** A command that did not end with 0, where the caller asked for that (check). */
export class CommandError extends ClocheError {
  readonly result: { exit_code: number | null; signal: number | null; stdout: string; stderr: string };

  constructor(result: { exit_code: number | null; signal: number | null; stdout: string; stderr: string }) {
    const how = result.exit_code === null ? `was ended by signal ${result.signal}` : `ended with ${result.exit_code}`;
    const why = result.stderr.trim().slice(-2000);
    super(`the command ${how}${why ? `: ${why}` : ""}`);
    this.result = result;
  }
}
