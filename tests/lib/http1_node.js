// What Node's own HTTP parser (llhttp, no lenient flag) makes of raw bytes, over loopback connections.
//
// stdin: a JSON array of {kind: "request" | "response", method, bytes (base64)}; stdout: {methods, results}, where a
// result is {head: null | {what, target, fields}, body, hash, whole, error}. `body` counts the body's bytes, `hash` is
// their FNV-1a, `whole` says that the message ended, `error` is what the parser refused, before or after the head.
// tests/conformance/test_http1_node.py compares it with our codec (http1_cat).
'use strict';
const http = require('http');
const net = require('net');

const SETTLE_MS = 5000;     // a case that says nothing for so long is a failure of this script

function fresh() {
    return {head: null, body: 0, hash: 2166136261, whole: false, error: null};
}

function drain(stream, result, done) {
    stream.on('data', (chunk) => {
        result.body += chunk.length;
        for (const byte of chunk)
            result.hash = Math.imul(result.hash ^ byte, 16777619) >>> 0;
    });
    stream.on('end', () => {
        result.whole = stream.complete;
        done();
    });
    stream.on('error', done);
    stream.on('aborted', done);
}

function withTimeout(result, start) {
    return new Promise((resolve) => {
        const timer = setTimeout(() => finish('TIMEOUT'), SETTLE_MS);
        function finish(error) {
            clearTimeout(timer);
            if (error && result.error === null)
                result.error = error.code || String(error.message || error);
            resolve(result);
        }
        start(finish);
    });
}

// A server of which only the first message of each connection is looked at.
function tryRequest(server, bytes) {
    const result = fresh();
    return withTimeout(result, (finish) => {
        let first = null;
        let finished = false;
        const client = net.connect({port: server.address().port, host: '127.0.0.1'});
        const done = () => {
            if (finished)
                return;
            finished = true;
            // Whatever the parser still says of the same bytes has been said one turn later.
            setImmediate(() => setImmediate(() => {
                client.destroy();
                finish(null);
            }));
        };
        const seen = (req) => {
            first = req;
            result.head = {what: req.method, target: req.url, fields: req.rawHeaders.length / 2};
        };
        server.current = {
            message(req, res) {
                res.on('error', () => {});
                if (first !== null)
                    return;
                seen(req);
                drain(req, result, done);
            },
            connect(req, socket) {
                seen(req);
                result.whole = true;
                socket.destroy();
                done();
            },
            refused(error, socket) {
                socket.on('error', () => {});
                if (first !== null && first.complete)
                    return;         // of the next message; this one's end is still to come
                result.error = error.code || error.message;
                socket.destroy();
            },
        };
        client.on('error', () => {});
        client.on('close', done);
        client.resume();
        client.end(bytes);
    });
}

// A client whose server answers with the bytes and closes.
function tryResponse(method, bytes) {
    const result = fresh();
    return withTimeout(result, (finish) => {
        const server = net.createServer((socket) => {
            socket.on('error', () => {});
            socket.once('data', () => socket.end(bytes));
        });
        const done = (error) => {
            setImmediate(() => {
                server.close();
                if (req)
                    req.destroy();
                finish(error);
            });
        };
        let req = null;
        server.listen(0, '127.0.0.1', () => {
            req = http.request({
                port: server.address().port, host: '127.0.0.1', method, agent: false, maxHeaderSize: 131072,
                path: method === 'CONNECT' ? 'name.example:443' : '/',
            });
            const seen = (res) => {
                result.head = {what: String(res.statusCode), target: '-', fields: res.rawHeaders.length / 2};
            };
            let first = null;
            req.on('response', (res) => {
                first = res;
                seen(res);
                drain(res, result, done);
            });
            for (const event of ['connect', 'upgrade'])
                req.on(event, (res, socket) => {
                    seen(res);
                    result.whole = true;
                    socket.destroy();
                    done(null);
                });
            req.on('error', (error) => {
                if (first === null || !first.complete)     // else: of bytes behind the message
                    done(error);
            });
            req.end();
        });
    });
}

async function main() {
    const chunks = [];
    for await (const chunk of process.stdin)
        chunks.push(chunk);
    const cases = JSON.parse(Buffer.concat(chunks));
    const server = http.createServer({maxHeaderSize: 131072, insecureHTTPParser: false, keepAliveTimeout: 1});
    server.maxHeadersCount = 0;
    for (const event of ['request', 'checkContinue', 'checkExpectation'])
        server.on(event, (req, res) => server.current.message(req, res));
    server.on('connect', (req, socket) => server.current.connect(req, socket));
    server.on('clientError', (error, socket) => server.current.refused(error, socket));
    await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
    const results = [];
    for (const one of cases) {
        const bytes = Buffer.from(one.bytes, 'base64');
        results.push(one.kind === 'request' ? await tryRequest(server, bytes)
                                            : await tryResponse(one.method, bytes));
    }
    process.stdout.write(JSON.stringify({methods: http.METHODS, version: process.version, results}));
    server.closeAllConnections();
    server.close();
}

main();
