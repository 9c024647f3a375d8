"""A display that says what it likes, and the page that shows it: the tab stays its person's (docs/desktop.md)."""
import base64
import json
import shutil
import subprocess

import pytest

from helpers import places, requirement

pytestmark = [requirement("R48"), pytest.mark.skipif(shutil.which("node") is None, reason="no node")]

# The page's script in a page that has what it uses and no more: what it is told comes in one message, as a flood would.
# Says how it ended, what it drew, and how often anything else had a turn meanwhile.
PAGE = r"""
const fs = require("fs"), vm = require("vm");
const said = Buffer.from(fs.readFileSync(0, "utf8"), "base64"), count = { resize: 0, copy: 0, raw: 0, turns: 0 };
const elements = {};
const element = (id) => elements[id] ||= { style: {}, textContent: "", addEventListener() {}, focus() {}, set width(n) { this.w = n; count.resize++; },
    get width() { return this.w; }, set height(n) { this.h = n; }, get height() { return this.h; },
    getContext: () => ({ putImageData() { count.raw++; }, drawImage() { count.copy++; } }) };
let ws;
class WebSocket {
    static OPEN = 1;
    readyState = 1;
    constructor() { ws = this; }
    send() {}
    close() {}
}
class ImageData {}
const drawn = () => count.copy + count.raw + count.resize;
let before = 0;
const turn = () => { count.turns += drawn() !== before; before = drawn(); setImmediate(turn); };
vm.runInNewContext(fs.readFileSync(process.argv[1], "utf8"), { document: { getElementById: element, body: { style: {} } }, WebSocket, ImageData, TextDecoder, TextEncoder,
    setTimeout, location: { hash: "#view=cloche_attach_0:" + "ab".repeat(16), origin: "http://here" } });
ws.onmessage({ data: said.buffer.slice(said.byteOffset, said.byteOffset + said.length) });
turn();
setInterval(() => {
    if (count.last === drawn()) {
        console.log(JSON.stringify({ ...count, say: elements.say.textContent, whose: elements.whose.textContent }));
        process.exit(0);
    }
    count.last = drawn();
}, 300);
"""


def shown(*parts, width=100, height=100):
    greeting = b"RFB 003.008\n\1\1\0\0\0\0" + width.to_bytes(2, "big") + height.to_bytes(2, "big") + bytes(16) + bytes(4)
    done = subprocess.run(["node", "-e", PAGE, str(places.REPO / "src/front/desktop_page.js")], input=base64.b64encode(greeting + b"".join(parts)), capture_output=True,
                          check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def update(*rectangles):
    return b"\0\0" + len(rectangles).to_bytes(2, "big") + b"".join(rectangles)


def rectangle(kind, x=0, y=0, width=0, height=0, data=b""):
    return b"".join(n.to_bytes(2, "big") for n in (x, y, width, height)) + kind.to_bytes(4, "big", signed=True) + data


def copy(width, height):
    return rectangle(1, 0, 0, width, height, bytes(4))


def test_what_nobody_asked_for_does_not_fill_the_tab():
    assert shown(b"\2" * (70 << 20))["say"] == "It ended: the display says more than was asked for"


def test_what_a_display_says_is_shown():
    said = shown(update(rectangle(0, 0, 0, 2, 2, bytes(16)), copy(50, 50)), update(rectangle(-223, 0, 0, 200, 100)))
    assert said["say"].startswith("You see") and (said["raw"], said["copy"]) == (1, 1) and said["whose"] == "Sandbox " + "ab" * 16, said


@pytest.mark.parametrize("what, parts, why", [
    ("a size that is too large", [update(rectangle(-223, 0, 0, 8192, 4096))], "no such size"),
    ("two sizes", [update(rectangle(-223, 0, 0, 10, 10), rectangle(-223, 0, 0, 20, 20))], "two sizes"),
    ("copies of all of it", [update(*[copy(100, 100)] * 5)], "copies more"),
])
def test_what_would_be_too_much_ends_it(what, parts, why):
    said = shown(*parts)
    assert why in said["say"] and said["copy"] <= 4, (what, said)


@pytest.mark.parametrize("parts", [[update(*[rectangle(0, 0, 0, 1, 1, bytes(4))] * 20000)], [update(copy(1, 1))] * 20000, [update(*[copy(100, 100)] * 4)] * 5000],
                         ids=["rectangles", "updates", "copies"])
def test_a_flood_lets_others_have_a_turn(parts):
    """All of it is there at once: the page gives its tab back every 64 pictures."""
    said = shown(*parts)
    assert said["raw"] + said["copy"] == 20000 and said["turns"] > 100, said
