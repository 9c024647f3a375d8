// Parts of the client, each about some of its routes.

import type * as api from "./api.js";
import { routes } from "./api.js";
import { list, object, record, split, type CallOptions, type Client, type Query } from "./client.js";
import { Sandbox, type SandboxOptions } from "./sandbox.js";
import { ApprovalStream, EventStream } from "./streams.js";

class Part {
  protected readonly client: Client;

  constructor(client: Client) {
    this.client = client;
    Object.defineProperty(this, "client", { enumerable: false });
  }
}

export interface SandboxFilter {
  prefix?: string;
  label?: string;
  state?: string;
  limit?: number;
  after?: string;
  workspace_key?: string;
}

export class Sandboxes extends Part {
  /** Make one. Its members are those of the API (docs/daemon.md). */
  create(options?: SandboxOptions): Promise<Sandbox> {
    return Sandbox.create(options, this.client);
  }

  /** One that is there, by its id or the name of one that lives. */
  get(which: string): Promise<Sandbox> {
    return Sandbox.connect(which, this.client);
  }

  async info(which: string): Promise<api.SandboxInfo> {
    return record<api.SandboxInfo>(await this.client.ask(routes.GET_SANDBOXES_ID, { names: [which] }), "id", "name", "state");
  }

  /** Those that live, the oldest first; `next` of it is `after` of the following page. */
  async page(filter: SandboxFilter = {}): Promise<api.SandboxList> {
    const said = await this.client.ask(routes.GET_SANDBOXES, { query: { ...filter } });
    list(said, "sandboxes");
    return said as api.SandboxList;
  }

  /** All of them, page by page. */
  async *list(filter: SandboxFilter = {}): AsyncGenerator<api.SandboxInfo> {
    const seen = new Set<string>();
    for (let after = filter.after; ; ) {
      const page = await this.page({ ...filter, ...(after !== undefined ? { after } : {}) });
      yield* page.sandboxes;
      if (typeof page.next !== "string" || seen.has(page.next)) return;
      seen.add(page.next);
      after = page.next;
    }
  }

  /** End it; of one that has stopped, remove the record. */
  async delete(which: string): Promise<api.SandboxInfo> {
    return record<api.SandboxInfo>(await this.client.ask(routes.DELETE_SANDBOXES_ID, { names: [which] }), "id");
  }
}

export class Templates extends Part {
  async list(): Promise<api.Template[]> {
    return list<api.Template>(await this.client.ask(routes.GET_TEMPLATES), "templates");
  }

  async delete(which: string): Promise<api.Template> {
    return record<api.Template>(await this.client.ask(routes.DELETE_TEMPLATES_ID, { names: [which] }), "id");
  }
}

export class Volumes extends Part {
  async list(): Promise<api.Volume[]> {
    return list<api.Volume>(await this.client.ask(routes.GET_VOLUMES), "volumes");
  }

  async delete(which: string): Promise<api.Volume> {
    return record<api.Volume>(await this.client.ask(routes.DELETE_VOLUMES_ID, { names: [which] }), "id");
  }
}

export class Tokens extends Part {
  /** Make one; its `token` is in this answer only. */
  async create(role: api.Token["role"], options: api.NewTokenOptions = {}): Promise<api.Token> {
    return record<api.Token>(await this.client.ask(routes.POST_TOKENS, { body: { role, ...options } }), "id");
  }

  async list(): Promise<api.Token[]> {
    return list<api.Token>(await this.client.ask(routes.GET_TOKENS), "tokens");
  }

  /** End it at once. */
  async delete(which: string): Promise<api.Token> {
    return record<api.Token>(await this.client.ask(routes.DELETE_TOKENS_ID, { names: [which] }), "id");
  }
}

export class Approvals extends Part {
  async page(filter: { state?: string; limit?: number; after?: string } = {}): Promise<api.Approvals> {
    const said = await this.client.ask(routes.GET_APPROVALS, { query: { ...filter } });
    list(said, "approvals");
    return said as api.Approvals;
  }

  async list(filter: { state?: string; limit?: number; after?: string } = {}): Promise<api.Approval[]> {
    return (await this.page(filter)).approvals;
  }

  async get(which: string): Promise<api.Approval> {
    return record<api.Approval>(await this.client.ask(routes.GET_APPROVALS_ID, { names: [which] }), "id");
  }

  async approve(which: string, options: api.ApproveOptions = {}): Promise<api.Approval> {
    return record<api.Approval>(await this.client.ask(routes.POST_APPROVALS_ID_APPROVE, { names: [which], body: options }), "id");
  }

  async deny(which: string, options: api.DenyOptions = {}): Promise<api.Approval> {
    return record<api.Approval>(await this.client.ask(routes.POST_APPROVALS_ID_DENY, { names: [which], body: options }), "id");
  }

  /** What is pending, then each approval that is new or changes. */
  async stream(options: { follow?: boolean } & CallOptions = {}): Promise<ApprovalStream> {
    const [query, call] = split(options);
    return new ApprovalStream(await this.client.stream(routes.GET_APPROVALS_STREAM, { query: { follow: query.follow ?? true }, ...call }), this.client.maxAnswer);
  }
}

export class Grants extends Part {
  async list(): Promise<api.Grant[]> {
    return list<api.Grant>(await this.client.ask(routes.GET_GRANTS), "grants");
  }

  async delete(which: string): Promise<void> {
    await this.client.ask(routes.DELETE_GRANTS_ID, { names: [which] });
  }
}

export interface AuditFilter {
  sandbox?: string;
  type?: string;
  severity?: string;
  since_ms?: number;
  until_ms?: number;
  by?: string;
  after?: number;
  limit?: number;
}

export class Audit extends Part {
  /** The newest entries, or those behind one (`after`): `entries`, and `next` for the following ones. */
  async list(filter: AuditFilter = {}): Promise<{ entries: Record<string, unknown>[]; next: number; more: boolean }> {
    const said = await this.client.ask(routes.GET_AUDIT, { query: filter as Query });
    list(said, "entries");
    return said as { entries: Record<string, unknown>[]; next: number; more: boolean };
  }

  async size(filter: Pick<AuditFilter, "sandbox" | "type" | "severity" | "by"> = {}): Promise<number> {
    const found = object(await this.client.ask(routes.GET_AUDIT_SIZE, { query: filter as Query }))["size"];
    return typeof found === "number" ? found : 0;
  }

  async stream(options: AuditFilter & CallOptions = {}): Promise<EventStream> {
    const [query, call] = split(options);
    return new EventStream(await this.client.stream(routes.GET_AUDIT_STREAM, { query: query as Query, ...call }), this.client.maxAnswer);
  }
}

export class DaemonEvents extends Part {
  async list(filter: { sandbox?: string; limit?: number } = {}): Promise<api.EventInfo[]> {
    return list<api.EventInfo>(await this.client.ask(routes.GET_EVENTS, { query: { ...filter } }), "events");
  }

  async stream(options: { sandbox?: string; limit?: number; after?: number } & CallOptions = {}): Promise<EventStream> {
    const [query, call] = split(options);
    return new EventStream(await this.client.stream(routes.GET_EVENTS_STREAM, { query: query as Query, ...call }), this.client.maxAnswer);
  }
}
