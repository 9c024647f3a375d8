/* console/dom.js: what pages are made of: elements with text, never HTML
 *
 * Text comes into the page by textContent alone. What may be a stranger's goes through shown(), which names what would
 * not be seen, and cuts what is long: the rest comes by a button, a part at a time.
 */
import { cut, pieces, textOf } from "./text.js";

const PART = 65536;     /* characters that one more click shows */

/* el("p", "class", child, ...): a child is an element, a text of ours, or null. */
export function el(tag, kind, ...children) {
    const made = document.createElement(tag);
    if (kind)
        made.className = kind;
    for (const child of children)
        if (child !== null && child !== undefined)
            made.append(child);
    return made;
}

export function button(label, kind, action) {
    const made = el("button", kind, label);
    made.type = "button";
    made.addEventListener("click", action);
    return made;
}

export function clear(node, ...children) {
    node.replaceChildren(...children.filter((c) => c !== null && c !== undefined));
}

function put(into, text, from, to, lines) {
    for (const piece of pieces(text, from, to, lines))
        into.append(piece.odd ? el("b", "odd", piece.text) : piece.text);
}

/* A stranger's text, of which @most characters are seen first. */
export function shown(value, most = 200, lines = false) {
    const text = textOf(value), out = el(lines ? "pre" : "span", "theirs");
    let at = cut(text, most);

    out.dir = "ltr";
    put(out, text, 0, at, lines);
    if (at === text.length)
        return out;
    const more = button("", "more", () => {
        const to = at + cut(text.slice(at, at + PART + 1), PART);
        const part = el("span");
        put(part, text, at, to, lines);
        more.before(part);
        at = to;
        label();
    });
    const label = () => {
        more.hidden = at >= text.length;
        more.textContent = `… ${(text.length - at).toLocaleString("en")} more characters`;
    };
    label();
    out.append(more);
    return out;
}

/* Name and value pairs; what is null is left out. */
export function pairs(rows) {
    const list = el("dl", "pairs");
    for (const [name, value] of rows) {
        if (value === null || value === undefined || value === "")
            continue;
        list.append(el("dt", "", name), el("dd", "", value instanceof Node ? value : shown(value)));
    }
    return list;
}

export function option(value, label) {
    const made = el("option", "", label);
    made.value = value;
    return made;
}

export function field(label, input) {
    return el("label", "field", el("span", "", label), input);
}

/* A dialog that is closed by Escape too; @fill(dialog, close) puts in what is in it. Resolves when it is closed. */
export function dialog(title, fill) {
    const box = el("dialog", "", el("h2", "", title));
    return new Promise((resolve) => {
        const close = () => box.close();
        box.addEventListener("close", () => {
            box.remove();
            resolve();
        });
        fill(box, close);
        document.body.append(box);
        box.showModal();
    });
}

/* Whether a person says yes. The way back has the focus. */
export async function confirmed(title, about, yes) {
    let said = false;
    await dialog(title, (box, close) => {
        const back = button("Cancel", "", close);
        back.autofocus = true;
        box.append(about, el("p", "buttons", back, button(yes, "danger", () => {
            said = true;
            close();
        })));
    });
    return said;
}

/* Calls @f at once and every @ms while the page is seen; the returned function ends that. */
export function every(ms, f) {
    let timer = 0, over = false;
    const turn = async () => {
        clearTimeout(timer);
        if (!document.hidden)
            await f();
        if (!over)
            timer = setTimeout(turn, ms);
    };
    turn();
    return () => {
        over = true;
        clearTimeout(timer);
    };
}
