/* console/terminal.js: a command in a sandbox, a line at a time
 *
 * It is a terminal for lines (lines.js), not for programs that draw: TERM is "dumb". What is typed goes when Enter is
 * pressed; keys that are no text have buttons.
 */
import { button, clear, el, field, option, shown } from "./dom.js";
import { Lines } from "./lines.js";
import { flat } from "./text.js";

const COLS = 100, ROWS = 30, WAITING_MAX = 1 << 20, SENT_MAX = 4096, PAST_MAX = 50, FRAME_BYTES = 65536;

/* One line of the screen. */
function put(node, runs) {
    clear(node, ...runs.map(({ text, style }) => style === "" ? text : el("span", style, text)));
    if (runs.length === 0)
        node.append("\u200b");
}

/* What a command wrote, in lines; and between them what the console has to say, in elements of another kind, which
 * nothing that is written makes or changes. */
class Screen {
    constructor() {
        this.node = el("div", "screen");
        this.node.setAttribute("role", "log");
        this.node.setAttribute("aria-label", "output");
        this.node.tabIndex = 0;
        this.reset();
    }

    reset() {
        this.lines = new Lines();
        this.drawn = 0;         /* of the lines that are whole, counted from the first there ever was */
        this.kept = 0;          /* of them, how many are in the page */
        this.last = el("div", "line");
        this.waiting = [];      /* bytes, and notes: elements */
        this.bytes = 0;
        this.lost = 0;          /* bytes in front of what waits */
        this.gap = { node: null, lost: 0 };
        clear(this.node, this.last);
    }

    /* What comes faster than it can be shown is left away, from its middle. */
    take(bytes) {
        this.waiting.push(bytes);
        this.bytes += bytes.length;
        while (this.bytes > WAITING_MAX && this.waiting.length > 1 && this.waiting[0] instanceof Uint8Array) {
            const gone = this.waiting.shift();
            this.bytes -= gone.length;
            this.lost += gone.length;
        }
        this.soon();
    }

    /* Behind what came until now. */
    note(...words) {
        this.waiting.push(el("p", "note", ...words));
        this.soon();
    }

    soon() {
        this.frame = this.frame || requestAnimationFrame(() => this.draw());
    }

    draw() {
        const below = this.node.scrollHeight - this.node.scrollTop - this.node.clientHeight < 40;
        this.frame = 0;
        for (let done = 0; this.waiting.length > 0 && done < FRAME_BYTES;) {
            if (this.lost > 0)
                this.missing();
            const some = this.waiting.shift();
            if (!(some instanceof Uint8Array)) {
                this.put(some);
                continue;
            }
            const part = some.subarray(0, FRAME_BYTES);
            if (part.length < some.length)
                this.waiting.unshift(some.subarray(FRAME_BYTES));
            this.bytes -= part.length;
            done += part.length;
            this.lines.feed(part);
        }
        this.rows();
        if (below)
            this.node.scrollTop = this.node.scrollHeight;
        if (this.waiting.length > 0)
            this.soon();
    }

    put(note) {
        this.lines.cut();
        this.rows();
        this.last.before(note);
    }

    /* Where no line is between two gaps they are one: there are no more notes than lines. */
    missing() {
        this.lines.cut();
        this.rows();
        if (this.gap.node === null || this.last.previousSibling !== this.gap.node) {
            this.gap = { node: el("p", "note"), lost: 0 };
            this.last.before(this.gap.node);
        }
        this.gap.lost += this.lost;
        this.gap.node.textContent = `${this.gap.lost} bytes are not shown`;
        this.lost = 0;
    }

    rows() {
        const { done, dropped } = this.lines, from = Math.max(this.drawn, dropped);
        for (const runs of done.slice(from - dropped)) {
            const node = el("div", "line");
            put(node, runs);
            this.last.before(node);
            this.kept++;
        }
        this.drawn = dropped + done.length;
        for (; this.kept > done.length; this.node.firstChild.remove())
            if (this.node.firstChild.className === "line")
                this.kept--;
        put(this.last, this.lines.current());
    }
}

/* A command under way: its socket, until that ends. */
class Command {
    constructor(ctx, box, line, screen, over) {
        this.socket = ctx.api.exec(box);
        this.socket.addEventListener("open", () => this.socket.send(JSON.stringify({
            command: line === "" ? ["/bin/sh", "-i"] : line, env: { TERM: "dumb" }, pty: { rows: ROWS, cols: COLS }, timeout_ms: 8 * 3600000 })));
        this.socket.addEventListener("message", (m) => {
            if (typeof m.data !== "string")
                screen.take(new Uint8Array(m.data, 1));
            else
                this.told(JSON.parse(m.data), screen);
        });
        this.socket.addEventListener("close", () => {
            if (!this.said)
                screen.note("the connection ended");
            over();
        });
    }

    told(m, screen) {
        if (m.type === "started")
            return;
        this.said = true;
        if (m.type === "exit")
            screen.note(m.signal !== null ? "it ended by signal " : "it ended with ", shown(m.signal !== null ? m.signal : m.exit_code));
        else
            screen.note("it was refused: ", shown(m.error, 400));
    }

    type(text) {
        const data = new TextEncoder().encode(text), out = new Uint8Array(data.length + 1);
        out.set(data, 1);
        if (this.socket.readyState === WebSocket.OPEN)
            this.socket.send(out);
    }

    end() {
        this.socket.close();
    }
}

/* Lines that were sent, by the arrows. */
function past(input) {
    const lines = [];
    let at = 0;
    input.addEventListener("keydown", (e) => {
        if (e.key !== "ArrowUp" && e.key !== "ArrowDown")
            return;
        e.preventDefault();
        at = Math.min(lines.length, Math.max(0, at + (e.key === "ArrowUp" ? -1 : 1)));
        input.value = lines[at] || "";
    });
    return (line) => {
        if (line !== "")
            lines.push(line);
        lines.splice(0, lines.length - PAST_MAX);
        at = lines.length;
    };
}

export function open(ctx, root, wanted) {
    const which = el("select"), program = el("input"), input = el("input", "typed"), screen = new Screen(), state = el("span", "quiet");
    const form = el("form", "entry"), keys = el("div", "keys"), remember = past(input);
    let command = null;

    const show = () => {
        form.hidden = keys.hidden = end.hidden = command === null;
        begin.hidden = command !== null;
        which.disabled = program.disabled = command !== null;
        state.textContent = command !== null ? "connected" : "not connected";
    };
    const begin = button("Start", "approve", () => {
        if (which.value === "")
            return;
        screen.reset();
        command = new Command(ctx, which.value, program.value.trim(), screen, () => {
            command = null;
            show();
        });
        show();
        input.focus();
    });
    const end = button("End", "danger", () => command && command.end());

    program.placeholder = "/bin/sh -i";
    program.maxLength = SENT_MAX;
    input.maxLength = SENT_MAX;
    input.autocomplete = "off";
    input.spellcheck = false;
    input.setAttribute("autocapitalize", "off");
    input.setAttribute("aria-label", "a line for the command");
    form.append(el("span", "prompt", "›"), input);
    form.addEventListener("submit", (e) => {
        e.preventDefault();
        if (command === null)
            return;
        command.type(`${input.value}\r`);
        remember(input.value);
        input.value = "";
    });
    for (const [label, byte] of [["Ctrl-C", "\x03"], ["Ctrl-D", "\x04"], ["Tab", "\t"], ["Esc", "\x1b"]])
        keys.append(button(label, "", () => {
            if (command === null)
                return;
            command.type(byte === "\t" ? input.value + byte : byte);
            if (byte === "\t")
                input.value = "";
            input.focus();
        }));
    root.append(el("header", "bar", el("h1", "", "Terminal "), state), el("div", "filters", field("Sandbox", which), field("Command", program), begin, end),
                el("p", "quiet", "Every line below is written by the sandbox, but those in a box with a bar at its left, which the console says. It shows lines and colours, and drops other escape sequences; programs that draw do not work here."),
                screen.node, form, keys);
    ctx.api.get("/v1/sandboxes?limit=100").then(({ sandboxes }) => {
        for (const box of sandboxes)
            which.append(option(box.id, `${flat(box.name, 60)} (${flat(box.id, 12)})`));
        if (wanted && sandboxes.some((b) => b.id === wanted))
            which.value = wanted;
    }).catch((e) => ctx.say(e.message));
    show();
    return () => command && command.end();
}
