/* console/approvals.js: what waits for a person
 *
 * What is asked is looked at in a dialog that has all of it; what is decided there is decided for the digest that was
 * shown, and the daemon refuses it for any other. Nothing is approved by a button that has only just come under the
 * pointer.
 */
import { button, clear, dialog, el, field, option, pairs, shown } from "./dom.js";
import { exact, textOf } from "./text.js";

const OPEN_MAX = 300, DECIDED_MAX = 30, WHOLE = 200000, SETTLE_MS = 700, REASON_MAX = 120;

/* In words what a tool does with its parameters; @p is a stranger's. */
const WORDS = {
    code_execute: (p) => ["wants to run ", textOf(p.language) || "code", p.background ? ", in the background" : ""],
    code_install_package: (p) => ["wants to install the package ", textOf(p.package), " from ", textOf(p.registry) || "pypi"],
    code_write_file: (p) => ["wants to write the file ", textOf(p.file_path)],
    code_read_file: (p) => ["wants to read the file ", textOf(p.file_path)],
    code_list_files: (p) => ["wants to list the folder ", textOf(p.path)],
    code_delete_file: (p) => ["wants to remove ", textOf(p.file_path || p.path)],
    code_make_folder: (p) => ["wants to make the folder ", textOf(p.file_path || p.path)],
    code_destroy_sandbox: () => ["wants to end the sandbox"],
    sandbox_create: () => ["wants to make a sandbox"],
    sandbox_policy: () => ["wants to change what the sandbox may do"],
    sandbox_snapshot: () => ["wants to copy the sandbox's files"],
    computer: (p) => ["wants to use its desktop: ", textOf(p.action)],
    expose_port: (p) => ["wants to open the sandbox's port ", textOf(p.port), " to the outside"],
    browser_control: () => ["wants to control the sandbox's browser"],
    desktop_view: (p) => [p.mode === "control" ? "wants to sit at the sandbox's desktop" : "wants to look at the sandbox's desktop"],
    attach_editor: (p) => ["wants to open an editor in the sandbox: ", textOf(p.mode)],
    token_create: (p) => ["wants a credential of the role ", textOf(p.role)],
    network: (p) => ["has a program that wants to connect to ", `${textOf(p.host)}:${textOf(p.port)}`,
                     p.method ? `: ${textOf(p.method)} ${textOf(p.path)}` : ""],
};

function sentence(a, most) {
    const p = a.params && typeof a.params === "object" ? a.params : {};
    const words = Object.hasOwn(WORDS, a.tool) ? WORDS[a.tool](p) : ["wants to use the tool ", a.tool];
    return el("p", "what", el("strong", "", shown(a.caller_name || a.caller, most)), " ", ...words.map((w) => shown(w, most)));
}

function risk(a) {
    return el("span", `risk ${a.risk.toLowerCase()}`, a.risk);
}

/* All that is on from the first look, as they come; those who want to know are told. */
export class Inbox {
    constructor(api) {
        this.api = api;
        this.open = new Map();          /* by id, in order of their coming */
        this.decided = [];
        this.told = new Set();
        this.connected = false;
        this.why = "";
        this.stop = new AbortController();
        this.api.follow("/v1/approvals/stream", (name, a) => this.hear(name, a), (on, why) => {
            if (on)
                this.open.clear();      /* what is pending comes again */
            this.connected = on;
            this.why = why;
            this.tell();
        }, this.stop.signal);
        this.clock = setInterval(() => this.tick(), 500);
    }

    end() {
        this.stop.abort();
        clearInterval(this.clock);
    }

    hear(name, a) {
        if (name !== "approval" || typeof a.id !== "string")
            return;
        if (a.state === "pending") {
            if (this.open.size < OPEN_MAX || this.open.has(a.id))
                this.open.set(a.id, { ...a, until: performance.now() + a.remaining_ms });
        } else {
            this.open.delete(a.id);
            this.decided = [a, ...this.decided.filter((d) => d.id !== a.id)].slice(0, DECIDED_MAX);
        }
        this.tell();
    }

    tick() {
        for (const f of this.told)
            f(false);
    }

    tell() {
        for (const f of this.told)
            f(true);
    }
}

const left = (a) => Math.max(0, Math.ceil((a.until - performance.now()) / 1000));

function scopes(a) {
    const one = el("select", "", option("once", "this once"));
    if (a.rule && a.sandbox && a.tool !== "network")
        one.append(option("sandbox", "and what the same rule asks about in this sandbox"));
    else if (a.tool === "network")
        one.append(option("sandbox", "and later ones to this host, as long as the sandbox lives"));
    return one;
}

function parameters(a) {
    const list = el("dl", "params");
    for (const [name, value] of Object.entries(a.params || {}))
        list.append(el("dt", "", shown(name)), el("dd", "", shown(value, WHOLE, true)));
    return list;
}

async function review(ctx, id, until) {
    let a;
    try {
        a = await ctx.api.get(`/v1/approvals/${id}`);
    } catch (e) {
        ctx.say(e.message);
        return;
    }
    await dialog("Approve this?", (box, close) => fill(ctx, box, close, { ...a, until }));
}

function fill(ctx, box, close, a) {
    const there = a.params !== null && typeof a.params === "object", whole = there && exact(a.params);
    const says = el("p", "warn"), clock = el("span", "clock"), scope = scopes(a), reason = el("input");
    const decide = async (what, body) => {
        yes.disabled = no.disabled = true;
        try {
            await ctx.api.ask("POST", `/v1/approvals/${a.id}/${what}`, { ...body, digest: a.digest, reason: reason.value });
            close();
        } catch (e) {
            says.textContent = e.message;
            no.disabled = false;
        }
    };
    const yes = button("Approve", "approve", () => decide("approve", { scope: scope.value })), no = button("Deny", "danger", () => decide("deny", {}));
    const ready = performance.now() + SETTLE_MS;
    const tick = setInterval(() => {
        clock.textContent = `${left(a)} s left`;
        if (left(a) === 0) {
            yes.disabled = no.disabled = true;
            says.textContent = "Its time is over: it is denied.";
        } else if (performance.now() >= ready && whole && says.textContent === "") {
            yes.disabled = false;
        }
    }, 200);

    yes.disabled = true;
    reason.maxLength = REASON_MAX;
    box.classList.add("review");
    box.addEventListener("close", () => clearInterval(tick));
    if (!there)
        says.textContent = "Not all of it can be shown, so that it can only be denied here.";
    else if (!whole)
        says.textContent = "A number in it is larger than this page can show: what stands here is rounded, so that it can only be denied here. `cloche approvals show` has all of it.";
    box.append(el("p", "", risk(a), " ", clock), sentence(a, 400), parameters(a), pairs([
        ["Sandbox", a.sandbox], ["Rule", a.rule], ["Why it is asked", a.description], ["Tool", a.tool], ["Asked by", a.caller],
        ["SHA-256 of what will be done", a.digest],
    ]), says);
    const back = button("Back", "", close);
    back.autofocus = true;
    if (ctx.rights.decide)
        box.append(field("Approve", scope), field("Reason (the caller is told)", reason), el("p", "buttons", back, no, yes));
    else
        box.append(el("p", "quiet", "An auditor decides nothing."), el("p", "buttons", back));
}

function card(ctx, a) {
    const clock = el("span", "clock");
    const node = el("article", `card ${a.risk.toLowerCase()}`, el("header", "", risk(a), " ", clock), sentence(a, 120),
                    el("p", "quiet", shown(a.description, 160)),
                    el("p", "buttons", button(ctx.rights.decide ? "Review…" : "Look…", "approve", () => review(ctx, a.id, a.until))));
    return { node, clock };
}

export function open(ctx, root) {
    const { inbox } = ctx, cards = new Map();
    const list = el("section", "cards"), none = el("p", "none", "Nothing waits for you."), why = el("p", "warn");
    const past = el("ol", "past"), line = el("span", "quiet");

    const show = (changed) => {
        for (const [id, one] of cards) {
            const a = inbox.open.get(id);
            if (a === undefined || left(a) === 0) {
                one.node.remove();
                cards.delete(id);
            } else {
                one.clock.textContent = `${left(a)} s left`;
            }
        }
        for (const [id, a] of inbox.open)
            if (!cards.has(id) && left(a) > 0) {
                cards.set(id, card(ctx, a));
                list.append(cards.get(id).node);        /* at the end: what is there stays where it is */
            }
        none.hidden = cards.size > 0;
        line.textContent = inbox.connected ? "live" : "not connected";
        why.textContent = inbox.why;
        if (changed)
            clear(past, ...inbox.decided.map((a) => el("li", "", el("span", `state ${a.state === "approved" ? "good" : "bad"}`, a.state), " ",
                  shown(a.caller_name || a.caller, 80), " ", shown(a.tool, 40), a.decided_by_name ? el("small", "", " by ", shown(a.decided_by_name, 80)) : null,
                  a.reason ? el("small", "", ": ", shown(a.reason, 120)) : null)));
    };

    root.append(el("header", "bar", el("h1", "", "Approvals "), line), why, list, none, el("h2", "", "Decided since this page was opened"), past);
    inbox.told.add(show);
    show(true);
    return () => inbox.told.delete(show);
}
