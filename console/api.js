/* console/api.js: the daemon's public routes, as any client speaks them
 *
 * The token goes into a header, never into an address. What an answer may hold has a ceiling, and so has a line of a
 * stream.
 */

const ANSWER_MAX = 32 << 20, LINE_MAX = 4 << 20;
const AGAIN_MS = 1000, AGAIN_MOST_MS = 30000;

export class ApiError extends Error {
    constructor(status, code, text) {
        super(text);
        this.status = status;
        this.code = code;
    }
}

async function textWithin(response, most) {
    if (response.body === null)
        return "";
    const reader = response.body.getReader(), decoder = new TextDecoder();
    let text = "", n = 0;

    for (;;) {
        const { done, value } = await reader.read();
        if (done)
            return text + decoder.decode();
        n += value.length;
        if (n > most) {
            reader.cancel();
            throw new ApiError(0, "console.large", "the answer is larger than the console takes");
        }
        text += decoder.decode(value, { stream: true });
    }
}

function parsed(text) {
    try {
        return JSON.parse(text);
    } catch {
        return null;
    }
}

async function refusal(response) {
    const said = parsed(await textWithin(response, ANSWER_MAX).catch(() => "")) || {};
    return new ApiError(response.status, String(said.code || "http"), String(said.error || `status ${response.status}`));
}

const wait = (ms, signal) => new Promise((done) => {
    const timer = setTimeout(done, ms);
    signal.addEventListener("abort", () => {
        clearTimeout(timer);
        done();
    }, { once: true });
});

/* Lines of a stream of events to @event(name, data, id); true at its end. */
async function events(response, event) {
    const reader = response.body.getReader(), decoder = new TextDecoder();
    let text = "", name = "", data = "", id = "";

    for (;;) {
        const { done, value } = await reader.read();
        if (done)
            return;
        text += decoder.decode(value, { stream: true });
        for (let end; (end = text.indexOf("\n")) >= 0; text = text.slice(end + 1)) {
            const line = text.slice(0, end);
            if (line === "") {
                const object = data !== "" ? parsed(data) : null;
                if (object !== null)
                    event(name, object, id);
                name = data = "";
            } else if (line.startsWith("event: ")) {
                name = line.slice(7);
            } else if (line.startsWith("data: ")) {
                data += line.slice(6);
            } else if (line.startsWith("id: ")) {
                id = line.slice(4);
            }
        }
        if (text.length + data.length > LINE_MAX) {
            reader.cancel();
            throw new ApiError(0, "console.large", "an event is larger than the console takes");
        }
    }
}

export class Api {
    /* @ended is called when the token opens nothing any more. */
    constructor(token, ended) {
        this.token = token;
        this.ended = ended;
    }

    async fetch(method, path, body, signal, headers = {}) {
        const said = { method, signal, cache: "no-store", credentials: "omit", redirect: "error", headers };
        if (this.token)
            headers.Authorization = `Bearer ${this.token}`;
        if (body !== undefined) {
            said.body = JSON.stringify(body);
            headers["Content-Type"] = "application/json";
        }
        const response = await fetch(path, said).catch((e) => {
            throw new ApiError(0, "console.network", signal && signal.aborted ? "" : `the daemon does not answer (${e.message})`);
        });
        if (response.ok)
            return response;
        const why = await refusal(response);
        if (response.status === 401 && this.ended)
            this.ended(why);
        throw why;
    }

    async ask(method, path, body) {
        const answer = parsed(await textWithin(await this.fetch(method, path, body), ANSWER_MAX) || "{}");
        if (answer === null)
            throw new ApiError(0, "console.json", "the answer is no JSON");
        return answer;
    }

    get(path) {
        return this.ask("GET", path);
    }

    /* Events until @signal aborts, anew after an interruption, behind what came last. @state(connected, why). */
    async follow(path, event, state, signal) {
        let pause = AGAIN_MS, last = "";

        while (!signal.aborted) {
            try {
                const headers = last !== "" ? { "Last-Event-ID": last } : {};
                const response = await this.fetch("GET", path, undefined, signal, headers);
                state(true, "");
                pause = AGAIN_MS;
                await events(response, (name, data, id) => {
                    last = id || last;
                    event(name, data);
                });
                state(false, "it was interrupted");
            } catch (e) {
                if (signal.aborted)
                    return;
                state(false, e.message);
                if (e.status === 401 || e.status === 403 || e.status === 404)
                    return;
            }
            await wait(pause, signal);
            pause = Math.min(2 * pause, AGAIN_MOST_MS);
        }
    }

    /* A command's WebSocket: browsers give it no header but this one. */
    exec(box) {
        const at = `${location.protocol === "https:" ? "wss" : "ws"}://${location.host}`;
        const socket = new WebSocket(`${at}/v1/sandboxes/${encodeURIComponent(box)}/exec/ws`,
                                     ["cloche.exec", `cloche.bearer.${this.token}`]);
        socket.binaryType = "arraybuffer";
        return socket;
    }
}
