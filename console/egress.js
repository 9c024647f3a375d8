/* console/egress.js: where sandboxes connect to: each decision about their network, by host, and which rule it was */
import { clear, el, field, option, shown } from "./dom.js";
import { flat } from "./text.js";

const ROWS_MAX = 1000, SHOWN_MAX = 200, FIRST = 1000;

/* Of each sandbox and host what was decided. Where there is no more room, the sandbox that has most of it gives its oldest
 * row: one that asks for host after host takes the room from itself. */
export class Decisions {
    constructor() {
        this.rows = new Map();          /* of all sandboxes, the newest last */
        this.sizes = new Map();         /* how many of them each sandbox has */
        this.left = 0;                  /* rows that there was no more room for */
    }

    take(e) {
        const m = e.metadata || {}, box = e.sandbox || "";
        if (e.type !== "policy_decision" || m.host === undefined)
            return;
        const key = JSON.stringify([box, m.host, m.port]);
        const row = this.rows.get(key) || { box, host: m.host, port: m.port, allowed: 0, denied: 0, other: 0 };
        row[m.decision === "allow" ? "allowed" : m.decision === "deny" ? "denied" : "other"] += Number.isInteger(m.count) && m.count > 0 ? m.count : 1;
        Object.assign(row, { last: m.decision, rule: m.rule, reason: m.reason, method: m.method, via: m.via, at: e.timestamp });
        if (!this.rows.delete(key))
            this.sizes.set(box, (this.sizes.get(box) || 0) + 1);
        this.rows.set(key, row);
        if (this.rows.size > ROWS_MAX)
            this.drop();
    }

    drop() {
        let most = "";
        for (const [box, n] of this.sizes)
            if (n > (this.sizes.get(most) || 0))
                most = box;
        for (const [key, row] of this.rows)
            if (row.box === most) {
                this.rows.delete(key);
                break;
            }
        this.left++;
        this.sizes.set(most, this.sizes.get(most) - 1);
        if (this.sizes.get(most) === 0)
            this.sizes.delete(most);
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

/* At most @most of them, in their order: as many of each sandbox as there is room for, so that one does not hide the others. */
export function fair(rows, most) {
    const sizes = new Map();
    for (const { box } of rows)
        sizes.set(box, (sizes.get(box) || 0) + 1);
    const room = (share) => [...sizes.values()].reduce((sum, n) => sum + Math.min(n, share), 0);
    let share = most;
    while (share > 1 && room(share) > most)
        share--;
    const taken = new Map();
    return rows.filter(({ box }) => {
        taken.set(box, (taken.get(box) || 0) + 1);
        return taken.get(box) <= share;
    }).slice(0, most);
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
        const some = fair(found, SHOWN_MAX);
        clear(body, ...some.map((row) => line(row, names)));
        none.hidden = found.length > 0;
        table.hidden = found.length === 0;
        over.textContent = found.length > some.length || decisions.left > 0
            ? `${found.length - some.length} more fit and are not shown; ${decisions.left} older ones were dropped, of the sandboxes with most hosts.` : "";
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
