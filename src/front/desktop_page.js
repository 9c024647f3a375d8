/* front/desktop_page.js: a viewer of a sandbox's display, by RFB 3.8 (RFC 6143) over a WebSocket (docs/desktop.md)
 *
 * All that comes is the sandbox's word. It becomes pixels of one canvas, and nothing else: no text of it is shown, no
 * clipboard is read or written. What is longer than it may be, or unknown, ends it. Keys and the pointer are sent where
 * the address says "control"; whether they may is not up to this page. What a sandbox draws may look like a page of
 * ours that asks for something: above it stands, always, that it is the sandbox's.
 */
"use strict";
(() => {
    const PIXELS = 16 << 20, TEXT = 1 << 20, AT_ONCE = 64;
    const canvas = document.getElementById("screen"), paint = canvas.getContext("2d");
    const [, mode, token, sandbox] = /^#(view|control)=([a-z0-9_]+)(?::([0-9a-f]{32}))?$/.exec(location.hash) || [];
    const control = mode === "control";
    const KEYS = {
        Backspace: 0xff08, Tab: 0xff09, Enter: 0xff0d, Escape: 0xff1b, Delete: 0xffff, Home: 0xff50, ArrowLeft: 0xff51,
        ArrowUp: 0xff52, ArrowRight: 0xff53, ArrowDown: 0xff54, PageUp: 0xff55, PageDown: 0xff56, End: 0xff57,
        Insert: 0xff63, ContextMenu: 0xff67, Pause: 0xff13, ScrollLock: 0xff14, PrintScreen: 0xff61, NumLock: 0xff7f,
        CapsLock: 0xffe5, AltGraph: 0xfe03,
    };
    const SIDES = { Shift: 0xffe1, Control: 0xffe3, Alt: 0xffe9, Meta: 0xffeb };
    let chunks = [], have = 0, done = 0, wake = () => {}, over = false, ws = null;

    function say(text) {
        document.getElementById("say").textContent = text;
    }

    function end(text) {
        if (over)
            return;
        over = true;
        say(text);
        ws.close();
        wake();
    }

    function need(yes, what) {
        if (!yes)
            throw new Error(what);
    }

    /* --- bytes --- */

    async function take(n) {
        const out = new Uint8Array(n);
        while (have < n && !over)
            await new Promise((go) => { wake = go; });
        need(!over, "");
        for (let at = 0; at < n;) {
            const size = Math.min(chunks[0].length, n - at);
            out.set(chunks[0].subarray(0, size), at);
            at += size;
            have -= size;
            if (size === chunks[0].length)
                chunks.shift();
            else
                chunks[0] = chunks[0].subarray(size);
        }
        return new DataView(out.buffer);
    }

    async function skip(n, most) {
        need(n <= most, "a text of the display is too long");
        for (; n > 0; n -= Math.min(n, 65536))
            await take(Math.min(n, 65536));
    }

    /* So much was drawn, of AT_ONCE: whoever has the tab open can go on using it. */
    async function breathe(pixels) {
        done += 1 + pixels * AT_ONCE / PIXELS;
        if (done < AT_ONCE)
            return;
        done = 0;
        await new Promise((go) => setTimeout(go));
    }

    function send(...bytes) {
        if (!over && ws.readyState === WebSocket.OPEN)
            ws.send(new Uint8Array(bytes));
    }

    const two = (n) => [n >> 8 & 255, n & 255];
    const four = (n) => [...two(n >>> 16), ...two(n)];

    function ask(incremental) {
        send(3, incremental, 0, 0, 0, 0, ...two(canvas.width), ...two(canvas.height));
    }

    function resize(width, height) {
        need(width > 0 && height > 0 && width * height <= PIXELS, "the display has no such size");
        canvas.width = width;
        canvas.height = height;
    }

    /* --- what the display says --- */

    async function greet() {
        need(new TextDecoder().decode(await take(12)) === "RFB 003.008\n", "that is no display that speaks RFB 3.8");
        send(...new TextEncoder().encode("RFB 003.008\n"));
        const kinds = new Uint8Array((await take((await take(1)).getUint8(0))).buffer);
        need(kinds.includes(1), "the display wants a password, which it has none of");
        send(1);
        need((await take(4)).getUint32(0) === 0, "the display refuses");
        send(1);
        const init = await take(24);
        await skip(init.getUint32(20), TEXT);       /* its name */
        resize(init.getUint16(0), init.getUint16(2));
        send(0, 0, 0, 0, 32, 24, 0, 1, 0, 255, 0, 255, 0, 255, 0, 8, 16, 0, 0, 0);     /* red, green, blue, nothing */
        send(2, 0, 0, 3, ...four(1), ...four(0), ...four(-223));        /* CopyRect, Raw, DesktopSize */
        ask(0);
    }

    async function raw(x, y, width, height) {
        if (width === 0 || height === 0)
            return;
        const pixels = new Uint8ClampedArray((await take(width * height * 4)).buffer);
        for (let i = 3; i < pixels.length; i += 4)
            pixels[i] = 255;
        paint.putImageData(new ImageData(pixels, width, height), x, y);
    }

    async function update() {
        const count = (await take(3)).getUint16(1);
        let sized = false, copied = 0;
        await breathe(0);
        for (let i = 0; i < count; i++) {
            const head = await take(12);
            const [x, y, width, height] = [0, 2, 4, 6].map((at) => head.getUint16(at));
            const kind = head.getInt32(8);
            if (kind === -223) {
                need(!sized, "the display has two sizes at once");
                sized = true;
                await breathe(width * height);
                resize(width, height);
                ask(0);
                continue;
            }
            need(x + width <= canvas.width && y + height <= canvas.height, "a picture is larger than the display");
            await breathe(width * height);
            if (kind === 0) {
                await raw(x, y, width, height);
            } else {
                need(kind === 1, "the display speaks an encoding that it was not asked for");
                const from = await take(4);
                copied += width * height;
                need(copied <= 4 * canvas.width * canvas.height, "the display copies more than it shows");
                if (width > 0 && height > 0)
                    paint.drawImage(canvas, from.getUint16(0), from.getUint16(2), width, height, x, y, width, height);
            }
        }
        ask(1);
    }

    async function talk() {
        await greet();
        say(control ? "You have the pointer and the keyboard. So has the agent." : "You see what the sandbox shows.");
        for (;;) {
            const type = (await take(1)).getUint8(0);
            await breathe(0);
            if (type === 0)
                await update();
            else if (type === 1)
                await skip((await take(5)).getUint16(3) * 6, TEXT);
            else if (type === 3)
                await skip((await take(7)).getUint32(3), TEXT);     /* what was copied there: not for here */
            else
                need(type === 2, "the display says something that is no RFB");
        }
    }

    /* --- what is done here --- */

    function keysym(event) {
        if ([...event.key].length === 1) {
            const c = event.key.codePointAt(0);
            return c < 0x100 ? c : 0x01000000 + c;
        }
        if (event.key in SIDES)
            return SIDES[event.key] + (event.location === 2 ? 1 : 0);
        if (/^F([1-9]|1[0-2])$/.test(event.key))
            return 0xffbd + Number(event.key.slice(1));
        return KEYS[event.key] || 0;
    }

    function listen() {
        const down = new Map();
        const key = (sym, pressed) => send(4, pressed, 0, 0, ...four(sym));
        const release = () => { down.forEach((sym) => key(sym, 0)); down.clear(); };
        const on = (name, what) => canvas.addEventListener(name, (event) => { event.preventDefault(); what(event); }, { passive: false });
        let mask = 0;
        function point(event, buttons) {
            const box = canvas.getBoundingClientRect();
            const at = (pixel, size, of) => Math.min(of - 1, Math.max(0, Math.floor(pixel * of / size)));
            send(5, buttons, ...two(at(event.clientX - box.left, box.width, canvas.width)),
                 ...two(at(event.clientY - box.top, box.height, canvas.height)));
        }
        function move(event) {
            mask = event.buttons & 1 | (event.buttons & 4) >> 1 | (event.buttons & 2) << 1;
            point(event, mask);
        }
        on("keydown", (event) => {
            const sym = down.get(event.code) || keysym(event);
            if (sym === 0)
                return;
            down.set(event.code, sym);
            key(sym, 1);
        });
        on("keyup", (event) => {
            if (down.has(event.code))
                key(down.get(event.code), 0);
            down.delete(event.code);
        });
        on("mousedown", (event) => { canvas.focus(); move(event); });
        on("mouseup", move);
        on("mousemove", move);
        on("contextmenu", () => {});
        on("wheel", (event) => {
            const step = event.deltaY < 0 ? 8 : event.deltaY > 0 ? 16 : event.deltaX < 0 ? 32 : 64;
            point(event, mask | step);
            point(event, mask);
        });
        canvas.addEventListener("blur", release);
        canvas.focus();
    }

    /* The policy of the page has no style sheet but what is said here. What is ours is outside of what scrolls. */
    function lay() {
        const style = (id, what) => Object.assign(document.getElementById(id).style, what);
        Object.assign(document.body.style, { margin: "0", height: "100vh", display: "flex", flexDirection: "column" });
        style("ours", { flex: "none", position: "sticky", top: "0", zIndex: "1", padding: "4px 8px", background: "white", color: "black" });
        style("say", { margin: "4px 0" });
        style("theirs", { flex: "1", minHeight: "0", overflow: "auto" });
        if (sandbox !== undefined)
            document.getElementById("whose").textContent = "Sandbox " + sandbox;
    }

    lay();
    if (token === undefined) {
        say("This address has no session in it. `cloche desktop SANDBOX` prints one that has.");
        return;
    }
    say("Connecting.");
    ws = new WebSocket(location.origin.replace(/^http/, "ws") + "/desktop/ws/" + token + "?mode=" + mode, ["binary"]);
    ws.binaryType = "arraybuffer";
    ws.onmessage = (event) => {
        if (over)
            return;
        chunks.push(new Uint8Array(event.data));
        have += event.data.byteLength;
        if (have > 4 * PIXELS + (4 << 20))
            end("It ended: the display says more than was asked for");
        wake();
    };
    ws.onclose = (event) => end(event.reason || "The connection is over, or there was none: the session's time may be over, or the sandbox has no desktop.");
    if (control)
        listen();
    talk().catch((error) => end("It ended: " + error.message));
})();
