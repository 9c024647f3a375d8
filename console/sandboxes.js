/* console/sandboxes.js: what lives, what it uses, and what a person may do about it */
import { button, clear, confirmed, dialog, el, every, pairs, shown } from "./dom.js";
import { bytes, duration } from "./text.js";

const PAGE = 100, EACH_MS = 2000, NAME = 40;

const STATES = { ready: "good", degraded: "bad", recovering: "warn", initializing: "warn", stopping: "warn", stopped: "off" };

function stateOf(box) {
    const kind = box.paused ? "warn" : Object.hasOwn(STATES, box.state) ? STATES[box.state] : "off";
    return el("span", `state ${kind}`, shown(box.paused ? `${box.state}, paused` : box.state, NAME));
}

function engineOf(box) {
    const facts = box.facts || {};
    return el("span", "", shown(facts.engine || "–", NAME), facts.boundary ? el("small", "", " ", shown(facts.boundary, NAME)) : null);
}

function details(box) {
    return dialog("Sandbox", (into, close) => {
        const facts = box.facts || {};
        into.append(pairs([
            ["Name", shown(box.name)], ["Id", shown(box.id)], ["State", stateOf(box)], ["Because", box.detail],
            ["Made by", box.owner === null ? "the daemon's owner" : shown(`token ${box.owner}`)],
            ["Workspace key", box.workspace_key], ["Volume", box.volume], ["Template", box.template],
            ["Labels", Object.keys(box.labels || {}).length > 0 ? shown(box.labels, 2000, true) : null],
            ["Made", new Date(box.created_ms).toLocaleString()],
            ["Ends when idle for", box.idle_timeout > 0 ? duration(box.idle_timeout * 1000) : "never"],
            ["Lives at most", box.max_lifetime > 0 ? duration(box.max_lifetime * 1000) : "for ever"],
            ["Facts", shown(facts, 4000, true)],
        ]), el("p", "buttons", button("Close", "", close)));
    });
}

/* A row is made once and changed in place, so that what has the focus keeps it, and buttons stay where they are. */
class Row {
    constructor(view, box) {
        this.view = view;
        this.cells = {};
        this.node = el("tr");
        for (const name of ["name", "state", "engine", "age", "memory", "cpu", "runs", "does"]) {
            this.cells[name] = el("td", name);
            this.cells[name].dataset.label = { name: "", state: "State", engine: "Engine", age: "Age", memory: "Memory", cpu: "Processor", runs: "Runs", does: "" }[name];
            this.node.append(this.cells[name]);
        }
        this.key = "";
        this.was = null;
        this.buttons();
        this.show(box, null);
    }

    buttons() {
        const { ctx } = this.view, may = ctx.rights.act;
        const id = () => this.box.id;
        this.pause = button("Pause", "", () => this.view.act("POST", `/v1/sandboxes/${id()}/${this.box.paused ? "resume" : "pause"}`));
        this.stop = button("End", "danger", async () => {
            const about = el("p", "", "It ends at once, with everything that runs in it: ", shown(this.box.name, NAME), " ", shown(id()));
            if (await confirmed("End this sandbox?", about, "End it"))
                this.view.act("DELETE", `/v1/sandboxes/${id()}`);
        });
        this.shell = el("a", "button", "Terminal");
        clear(this.cells.does, button("Details", "", () => details(this.box)), may ? this.shell : null, may ? this.pause : null, may ? this.stop : null);
    }

    show(box, usage) {
        const key = JSON.stringify([box.name, box.state, box.paused, box.facts && box.facts.engine, box.facts && box.facts.boundary]);
        this.box = box;
        if (key !== this.key) {
            this.key = key;
            clear(this.cells.name, el("strong", "", shown(box.name, NAME)), el("small", "", shown(box.id.slice(0, 12))));
            clear(this.cells.state, stateOf(box));
            clear(this.cells.engine, engineOf(box));
            this.pause.textContent = box.paused ? "Resume" : "Pause";
            this.pause.disabled = this.stop.disabled = box.state === "stopping";
            this.shell.href = `#terminal/${box.id}`;
        }
        this.cells.age.textContent = duration(Date.now() - (box.started_ms || box.created_ms));
        this.use(usage);
    }

    use(usage) {
        const now = performance.now(), was = this.was;
        this.cells.memory.textContent = usage ? bytes(usage.memory_bytes) : "–";
        this.cells.cpu.textContent = usage && was && now > was.at ? `${Math.max(0, (usage.cpu_us - was.cpu) / (now - was.at) / 10).toFixed(0)} %` : "–";
        if (usage)
            this.was = { at: now, cpu: usage.cpu_us };
        const runs = usage ? JSON.stringify(usage.running) : "";
        if (runs !== this.runs)
            clear(this.cells.runs, usage && usage.running.length > 0 ? shown(usage.running.join(", "), NAME) : "–");
        this.runs = runs;
    }
}

export function open(ctx, root) {
    const view = { ctx, rows: new Map(), after: "" };
    const body = el("tbody"), none = el("p", "none", "No sandbox is there."), count = el("span", "quiet");
    const table = el("table", "boxes", el("thead", "", el("tr", "", ...["Sandbox", "State", "Engine", "Age", "Memory", "Processor", "Runs", ""].map((t) => el("th", "", t)))), body);
    const next = button("Next page", "", () => turn(view.next)), first = button("First page", "", () => turn(""));

    const turn = (after) => {
        view.after = after;
        load();
    };
    view.act = async (method, path) => {
        try {
            await ctx.api.ask(method, path);
            ctx.say("");
        } catch (e) {
            ctx.say(e.message);
        }
        load();
    };
    async function load() {
        let boxes, usage;
        try {
            [boxes, usage] = await Promise.all([ctx.api.get(`/v1/sandboxes?limit=${PAGE}${view.after ? `&after=${encodeURIComponent(view.after)}` : ""}`),
                                                ctx.api.get("/v1/usage").catch(() => ({ usage: [] }))]);
        } catch (e) {
            ctx.say(e.message);
            return;
        }
        const used = new Map(usage.usage.map((u) => [u.id, u])), seen = new Set();
        for (const box of boxes.sandboxes.slice(0, PAGE)) {
            seen.add(box.id);
            if (view.rows.has(box.id)) {
                view.rows.get(box.id).show(box, used.get(box.id));
            } else {
                const row = new Row(view, box);
                row.use(used.get(box.id));
                view.rows.set(box.id, row);
                body.append(row.node);
            }
        }
        for (const [id, row] of view.rows)
            if (!seen.has(id)) {
                row.node.remove();
                view.rows.delete(id);
            }
        view.next = boxes.next;
        none.hidden = seen.size > 0;
        table.hidden = seen.size === 0;
        next.hidden = !boxes.next;
        first.hidden = view.after === "";
        count.textContent = boxes.next ? `${seen.size} of more` : `${seen.size}`;
    }

    root.append(el("header", "bar", el("h1", "", "Sandboxes ", count), first, next), table, none);
    none.hidden = next.hidden = first.hidden = true;
    return every(EACH_MS, load);
}
