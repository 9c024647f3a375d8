/* console/text.js: text of strangers, for people: what nobody sees is named, and what is long is cut
 *
 * Nothing here knows of a page. The table is that of src/base/unseen.c, which cloche's terminal output goes by as well;
 * a test compares them.
 */

const UNSEEN = [
    [0x0, 0x1f], [0x7f, 0xa0], [0xad, 0xad], [0x34f, 0x34f], [0x600, 0x605], [0x61c, 0x61c], [0x6dd, 0x6dd],
    [0x70f, 0x70f], [0x890, 0x891], [0x8e2, 0x8e2], [0x115f, 0x1160], [0x1680, 0x1680], [0x17b4, 0x17b5],
    [0x180b, 0x180f], [0x2000, 0x200f], [0x2028, 0x202f], [0x205f, 0x206f], [0x2800, 0x2800], [0x3000, 0x3000],
    [0x3164, 0x3164], [0xe000, 0xf8ff], [0xfe00, 0xfe0f], [0xfeff, 0xfeff], [0xffa0, 0xffa0], [0xfff0, 0xfffb],
    [0xfffe, 0xffff], [0x110bd, 0x110bd], [0x110cd, 0x110cd], [0x13430, 0x1343f], [0x1bca0, 0x1bca3],
    [0x1d173, 0x1d17a], [0xe0000, 0xe0fff], [0xf0000, 0x10ffff],
];

/* Of a code point; half of a pair is one, too. */
export function unseen(c) {
    if (c >= 0xd800 && c <= 0xdfff)
        return true;
    for (const [from, to] of UNSEEN) {
        if (c < from)
            return false;
        if (c <= to)
            return true;
    }
    return false;
}

export function named(c) {
    return "U+" + c.toString(16).toUpperCase().padStart(4, "0");
}

/* text[from..to) as [{text, odd}]: odd ones are names of what would not be seen. @lines: newline and tab stay. */
export function pieces(text, from, to, lines) {
    const out = [];
    let plain = "";

    for (let i = from; i < to;) {
        const c = text.codePointAt(i);
        if (unseen(c) && !(lines && (c === 10 || c === 9))) {
            if (plain !== "")
                out.push({ text: plain, odd: false });
            plain = "";
            out.push({ text: named(c), odd: true });
        } else {
            plain += String.fromCodePoint(c);
        }
        i += c > 0xffff ? 2 : 1;
    }
    if (plain !== "")
        out.push({ text: plain, odd: false });
    return out;
}

/* Where a text of at most @most may be cut: not within a pair. */
export function cut(text, most) {
    if (text.length <= most)
        return text.length;
    const c = text.charCodeAt(most - 1);
    return c >= 0xd800 && c <= 0xdbff ? most - 1 : most;
}

/* The beginning of it, where no elements can be: in a list to choose from. */
export function flat(text, most) {
    return pieces(text, 0, cut(text, most), false).map((p) => p.text).join("") + (text.length > most ? "…" : "");
}

/* Anything as text: of what is no text its JSON. */
export function textOf(value) {
    if (value === null || value === undefined)
        return "";
    return typeof value === "string" ? value : JSON.stringify(value, null, 2);
}

/* Whether each number in it is what was said: JSON's may have more digits than a number here keeps, and is another one then. */
export function exact(value) {
    if (typeof value === "number")
        return Number.isFinite(value) && (!Number.isInteger(value) || Number.isSafeInteger(value));
    return value === null || typeof value !== "object" || Object.values(value).every(exact);
}

export function bytes(n) {
    if (!Number.isFinite(n) || n <= 0)
        return "–";
    const units = ["B", "KiB", "MiB", "GiB", "TiB"];
    let i = 0;
    for (; n >= 1024 && i < units.length - 1; i++)
        n /= 1024;
    return `${n >= 100 || i === 0 ? Math.round(n) : n.toFixed(1)} ${units[i]}`;
}

export function duration(ms) {
    const s = Math.max(0, Math.floor(ms / 1000));
    if (s < 60)
        return `${s} s`;
    if (s < 3600)
        return `${Math.floor(s / 60)} min`;
    if (s < 86400)
        return `${Math.floor(s / 3600)} h ${Math.floor(s % 3600 / 60)} min`;
    return `${Math.floor(s / 86400)} d ${Math.floor(s % 86400 / 3600)} h`;
}
