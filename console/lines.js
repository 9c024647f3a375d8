/* console/lines.js: what a command writes to its terminal, as lines: pure
 *
 * It is no terminal that moves a cursor: it knows UTF-8, CR, LF, backspace, tab and SGR's sixteen colours, bold and
 * underline. All other escape sequences are dropped, whatever they ask for: titles, clipboards, links, reports. What
 * would not be seen is named.
 */
import { named, unseen } from "./text.js";

const LINES_MAX = 2000, COLUMNS_MAX = 2048, CELLS_MAX = 400000;
const CSI_MAX = 64, STRING_MAX = 65536;
const PLAIN = "";

/* The style after the numbers of an SGR: words of classes in order of colour, background, bold, underline. */
function restyled(was, numbers) {
    let { fg, bg, bold, line } = was;
    for (let i = 0; i < numbers.length; i++) {
        const n = numbers[i];
        if (n === 0)
            ({ fg, bg, bold, line } = { fg: -1, bg: -1, bold: false, line: false });
        else if (n === 1 || n === 22)
            bold = n === 1;
        else if (n === 4 || n === 24)
            line = n === 4;
        else if (n >= 30 && n <= 37)
            fg = n - 30;
        else if (n >= 90 && n <= 97)
            fg = n - 90 + 8;
        else if (n === 39)
            fg = -1;
        else if (n >= 40 && n <= 47)
            bg = n - 40;
        else if (n >= 100 && n <= 107)
            bg = n - 100 + 8;
        else if (n === 49)
            bg = -1;
        else if (n === 38 || n === 48)
            i += numbers[i + 1] === 5 ? 2 : numbers[i + 1] === 2 ? 4 : numbers.length;
    }
    return { fg, bg, bold, line };
}

function styleWord(s) {
    return [s.fg >= 0 ? `f${s.fg}` : "", s.bg >= 0 ? `k${s.bg}` : "", s.bold ? "bold" : "", s.line ? "under" : ""]
        .filter((w) => w !== "").join(" ");
}

export class Lines {
    constructor() {
        this.done = [];         /* lines that are whole, each an array of runs {text, style} */
        this.dropped = 0;       /* lines that were taken away at the top */
        this.cells = [];        /* of the last one: {text, style} */
        this.count = 0;         /* of all cells that are kept */
        this.at = 0;
        this.state = "ground";
        this.csi = "";
        this.string = 0;
        this.sgr = { fg: -1, bg: -1, bold: false, line: false };
        this.style = PLAIN;
        this.decoder = new TextDecoder();
    }

    feed(bytes) {
        const text = this.decoder.decode(bytes, { stream: true });
        for (let i = 0; i < text.length;) {
            const c = text.codePointAt(i);
            this.take(c);
            i += c > 0xffff ? 2 : 1;
        }
    }

    take(c) {
        switch (this.state) {
        case "ground": return this.plain(c);
        case "escape": return this.escape(c);
        case "csi": return this.inCsi(c);
        case "string": return this.inString(c);
        default:                /* behind an intermediate: one more, which ends it */
            if (c < 0x20 || c > 0x2f)
                this.state = "ground";
        }
    }

    plain(c) {
        if (c === 0x1b)
            this.state = "escape";
        else if (c === 0x0a)
            this.newline();
        else if (c === 0x0d)
            this.at = 0;
        else if (c === 0x08)
            this.at = Math.max(0, this.at - 1);
        else if (c === 0x09)
            do
                this.put(" ", this.style);
            while (this.at % 8 !== 0);
        else if (c >= 0x20 && unseen(c))
            this.put(named(c), "odd");      /* in no colours of the command's */
        else if (c >= 0x20)
            this.put(String.fromCodePoint(c), this.style);
    }

    escape(c) {
        this.csi = "";
        this.string = 0;
        if (c === 0x5b)                                             /* [ */
            this.state = "csi";
        else if (c === 0x5d || c === 0x50 || c === 0x58 || c === 0x5e || c === 0x5f)    /* ] P X ^ _ */
            this.state = "string";
        else if (c >= 0x20 && c <= 0x2f)
            this.state = "intermediate";
        else
            this.state = c === 0x1b ? "escape" : "ground";
    }

    inCsi(c) {
        if (c === 0x1b) {
            this.state = "escape";
        } else if (c >= 0x40 && c <= 0x7e) {
            if (c === 0x6d && /^[0-9;]*$/.test(this.csi)) {         /* m */
                this.sgr = restyled(this.sgr, this.csi.split(";").map(Number));
                this.style = styleWord(this.sgr);
            }
            this.state = "ground";
        } else if (c < 0x20 || c > 0x7e) {
            this.state = "ground";      /* it is none: what interrupts it is itself */
            this.plain(c);
        } else if (this.csi.length < CSI_MAX) {
            this.csi += String.fromCodePoint(c);
        } else {
            this.csi = "?";             /* too long for one of SGR's */
        }
    }

    /* Until BEL or ESC \; one without an end does not swallow what comes for ever. */
    inString(c) {
        if (c === 0x1b)
            this.state = "escape";
        else if (c === 0x07 || ++this.string > STRING_MAX)
            this.state = "ground";
    }

    put(text, style) {
        if (this.at >= COLUMNS_MAX)
            this.newline();
        while (this.cells.length < this.at)
            this.add({ text: " ", style: PLAIN });
        if (this.at < this.cells.length)
            this.cells[this.at] = { text, style };
        else
            this.add({ text, style });
        this.at++;
    }

    add(cell) {
        this.cells.push(cell);
        this.count++;
    }

    newline() {
        this.done.push(Lines.runs(this.cells));
        this.done[this.done.length - 1].n = this.cells.length;
        this.cells = [];
        this.at = 0;
        while (this.done.length > LINES_MAX || (this.count > CELLS_MAX && this.done.length > 0)) {
            this.count -= this.done.shift().n;
            this.dropped++;
        }
    }

    /* What comes next begins anew, on a line of its own: what was before it does not colour or swallow it. */
    cut() {
        if (this.cells.length > 0)
            this.newline();
        this.at = 0;
        this.state = "ground";
        this.sgr = { fg: -1, bg: -1, bold: false, line: false };
        this.style = PLAIN;
        this.decoder = new TextDecoder();
    }

    /* The line at hand, as those that are whole. */
    current() {
        return Lines.runs(this.cells);
    }

    static runs(cells) {
        const out = [];
        for (const { text, style } of cells) {
            const last = out[out.length - 1];
            if (last !== undefined && last.style === style)
                last.text += text;
            else
                out.push({ text, style });
        }
        return out;
    }
}
