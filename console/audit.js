/* console/audit.js: the audit record as it grows, and a filter */
import { button, clear, el, field, option, shown } from "./dom.js";

const ROWS_MAX = 500, FIRST = 200, FRAME_MAX = 100;
const TYPES = ["sandbox_lifecycle", "sandbox_mode_transition", "policy_decision", "secret_token_replacement_outbound", "secret_sanitization_inbound",
    "privileged_capability_invocation", "plugin_fallback_attempt", "fetch_proxy_error", "security_kill_switch", "signing_request_submitted",
    "signing_request_rejected", "signing_request_approved"];
const SEVERITIES = ["info", "warn", "error", "critical"];

function row(e) {
    const more = el("details", "", el("summary", "", "more"), shown(e, 4000, true));
    return el("li", `entry ${SEVERITIES.includes(e.severity) ? e.severity : ""}`, el("time", "", shown(String(e.timestamp).slice(11, 19), 8)), " ",
              el("span", "severity", shown(e.severity, 10)), " ", shown(e.summary, 200), " ", about(e), " ", more);
}

/* What says most, in one line. */
function about(e) {
    const m = e.metadata || {}, words = [];
    for (const name of ["capability", "event", "decision", "host", "port", "path", "command", "by", "reason", "rule"])
        if (m[name] !== undefined && m[name] !== null)
            words.push(`${name} ${m[name]}`);
    if (e.sandbox)
        words.push(`sandbox ${String(e.sandbox).slice(0, 12)}`);
    return el("small", "quiet", shown(words.join(" · "), 240));
}

export function open(ctx, root) {
    const type = el("select", "", option("", "all types"), ...TYPES.map((t) => option(t, t)));
    const severity = el("select", "", option("", "all"), ...SEVERITIES.map((s) => option(SEVERITIES.slice(SEVERITIES.indexOf(s)).join(","), s === "critical" ? s : `${s} and above`)));
    const words = el("input"), list = el("ol", "entries"), state = el("span", "quiet"), missed = el("span", "quiet"), none = el("p", "none", "No entry fits.");
    let stop = new AbortController(), waiting = [], skipped = 0, held = false, frame = 0;

    words.type = "search";
    words.placeholder = "words in it";
    const fits = (e) => words.value === "" || JSON.stringify(e).toLowerCase().includes(words.value.toLowerCase());
    const flush = () => {
        frame = 0;
        if (held)
            return;
        skipped += Math.max(0, waiting.length - FRAME_MAX);
        for (const e of waiting.slice(-FRAME_MAX)) {
            const node = row(e);
            node.hidden = !fits(e);
            node.entry = e;
            list.prepend(node);
        }
        waiting = [];
        while (list.children.length > ROWS_MAX)
            list.lastChild.remove();
        tidy();
    };
    const tidy = () => {
        none.hidden = [...list.children].some((n) => !n.hidden);
        pause.textContent = held ? "Go on" : "Hold";
        missed.textContent = skipped > 0 ? `${skipped} were too many to show` : "";
    };
    const take = (e) => {
        waiting.push(e);
        if (waiting.length > ROWS_MAX) {
            waiting.shift();
            skipped++;
        }
        frame = frame || requestAnimationFrame(flush);
    };
    const begin = async () => {
        stop.abort();
        stop = new AbortController();
        const { signal } = stop;
        const query = `limit=${FIRST}${type.value ? `&type=${type.value}` : ""}${severity.value ? `&severity=${severity.value}` : ""}`;
        waiting = [];
        skipped = 0;
        clear(list);
        try {
            const first = (await ctx.api.get(`/v1/audit?${query}`)).entries;
            if (signal.aborted)
                return;
            first.forEach(take);
            const after = first.length > 0 ? `&after=${first[first.length - 1].seq}` : "";
            ctx.api.follow(`/v1/audit/stream?${query}${after}`, (name, e) => name === "entry" && take(e),
                           (on, why) => { state.textContent = on ? "live" : `not connected: ${why}`; }, signal);
        } catch (e) {
            state.textContent = e.message;
        }
        tidy();
    };
    const pause = button("Hold", "", () => {
        held = !held;
        flush();
        tidy();
    });

    type.addEventListener("change", begin);
    severity.addEventListener("change", begin);
    words.addEventListener("input", () => {
        for (const node of list.children)
            node.hidden = !fits(node.entry);
        tidy();
    });
    root.append(el("header", "bar", el("h1", "", "Audit "), state, missed, pause), el("div", "filters", field("Type", type), field("Severity", severity), field("Filter", words)), list, none);
    none.hidden = true;
    begin();
    return () => {
        stop.abort();
        cancelAnimationFrame(frame);
    };
}
