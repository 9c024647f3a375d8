/* console/egress.js: where sandboxes connect to: each decision about their network, by host, and which rule it was */
import { clear, el, field, option, shown } from "./dom.js";
import { flat } from "./text.js";

const ROWS_MAX = 1000, SHOWN_MAX = 200, FIRST = 1000;

/* Of each sandbox and host what was decided. */
export class Decisions {
    constructor() {
        this.rows = new Map();
        this.left = 0;          /* decisions that there was no room for */
    }

    take(e) {
        const m = e.metadata || {};
        if (e.type !== "policy_decision" || m.host === undefined)
            return;
        const key = JSON.stringify([e.sandbox, m.host, m.port]);
        const row = this.rows.get(key) || { box: e.sandbox || "", host: m.host, port: m.port, allowed: 0, denied: 0, other: 0 };
        if (!this.rows.has(key) && this.rows.size >= ROWS_MAX) {
            this.left++;
            return;
        }
        row[m.decision === "allow" ? "allowed" : m.decision === "deny" ? "denied" : "other"] += Number.isInteger(m.count) && m.count > 0 ? m.count : 1;
        Object.assign(row, { last: m.decision, rule: m.rule, reason: m.reason, method: m.method, via: m.via, at: e.timestamp });
        this.rows.delete(key);
        this.rows.set(key, row);        /* the newest is the last */
    }

    /* Newest first. */
    some(box, words, verdict) {
        const out = [];
        for (const row of [...this.rows.values()].reverse())
            if ((box === "" || row.box === box) && (verdict === "" || verdict === row.last) &&
                (words === "" || String(row.host).toLowerCase().includes(words)))
                out.push(row);
        return out;
    }
}

const WORDS = { allow: ["good", "allowed"], deny: ["bad", "refused"] };

function line(row, names) {
    const [kind, word] = Object.hasOwn(WORDS, row.last) ? WORDS[row.last] : ["warn", shown(row.last, 20)];
    const cells = [el("td", "", el("span", `state ${kind}`, word)),
        el("td", "host", shown(row.port !== undefined ? `${row.host}:${row.port}` : row.host, 100)), el("td", "", String(row.allowed)), el("td", "", String(row.denied)),
        el("td", "", shown(row.rule || row.reason || "–", 100), row.rule && row.reason ? el("small", "quiet", " ", shown(row.reason, 60)) : null),
        el("td", "", shown(names.get(row.box) || row.box.slice(0, 12), 40))];
    ["", "Host", "Allowed", "Refused", "Rule", "Sandbox"].forEach((label, i) => { cells[i].dataset.label = label; });
    return el("tr", "", ...cells);
}

/* What the sandbox's policy says of the network. */
async function policyOf(ctx, box) {
    const { network } = (await ctx.api.get(`/v1/sandboxes/${box}`)).policy || {};
    return el("details", "", el("summary", "", "What its policy says of the network"), shown(network === undefined ? "nothing: the daemon's settings" : network, 4000, true));
}

export function open(ctx, root) {
    const decisions = new Decisions(), stop = new AbortController(), names = new Map();
    const which = el("select", "", option("", "all sandboxes")), verdict = el("select", "", option("", "all"), option("allow", "allowed"), option("deny", "refused"));
    const words = el("input"), body = el("tbody"), state = el("span", "quiet"), none = el("p", "none", "No decision is on record."), rules = el("div"), over = el("p", "quiet");
    const table = el("table", "hosts", el("thead", "", el("tr", "", ...["", "Host", "Allowed", "Refused", "Rule or reason", "Sandbox"].map((t) => el("th", "", t)))), body);
    let frame = 0;

    words.type = "search";
    words.placeholder = "part of a host";
    const show = () => {
        frame = 0;
        const found = decisions.some(which.value, words.value.toLowerCase(), verdict.value);
        clear(body, ...found.slice(0, SHOWN_MAX).map((row) => line(row, names)));
        none.hidden = found.length > 0;
        table.hidden = found.length === 0;
        over.textContent = found.length > SHOWN_MAX || decisions.left > 0
            ? `${Math.max(0, found.length - SHOWN_MAX)} more fit and are not shown; ${decisions.left} decisions were about further hosts.` : "";
    };
    const soon = () => { frame = frame || requestAnimationFrame(show); };
    const chosen = async () => {
        soon();
        clear(rules);
        if (which.value !== "")
            clear(rules, await policyOf(ctx, which.value).catch((e) => el("p", "warn", e.message)));
    };
    const begin = async () => {
        try {
            for (const box of (await ctx.api.get("/v1/sandboxes?limit=100")).sandboxes) {
                names.set(box.id, box.name);
                which.append(option(box.id, `${flat(box.name, 60)} (${flat(box.id, 12)})`));
            }
            const first = (await ctx.api.get(`/v1/audit?type=policy_decision&limit=${FIRST}`)).entries;
            first.forEach((e) => decisions.take(e));
            soon();
            const after = first.length > 0 ? `&after=${first[first.length - 1].seq}` : "";
            ctx.api.follow(`/v1/audit/stream?type=policy_decision${after}`, (name, e) => {
                decisions.take(e);
                soon();
            }, (on, why) => { state.textContent = on ? "live" : `not connected: ${why}`; }, stop.signal);
        } catch (e) {
            ctx.say(e.message);
        }
    };

    which.addEventListener("change", chosen);
    verdict.addEventListener("change", soon);
    words.addEventListener("input", soon);
    root.append(el("header", "bar", el("h1", "", "Egress "), state), el("div", "filters", field("Sandbox", which), field("Decision", verdict), field("Filter", words)), rules, table, none, over);
    show();
    begin();
    return () => {
        stop.abort();
        cancelAnimationFrame(frame);
    };
}
