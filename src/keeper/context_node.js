// keeper/context_node.js: what runs a context's code in Node, in the sandbox (see context_python.py, which says more)
'use strict';
{
    const fs = require('fs'), vm = require('vm'), util = require('util'), Module = require('module');
    const ask = 3, out = 4, err = 5, piece = 4000, most = 1 << 20, go = Symbol.for('cloche.context');
    let mark = '', cells = 0, interrupt = null, held = Buffer.alloc(0);

    const say = (fd, kind, payload = Buffer.alloc(0)) => {
        const size = payload.length.toString(16).padStart(4, '0');
        const frame = Buffer.concat([Buffer.from('\u0001' + mark + kind + size), payload]);
        for (;;) {
            try {
                fs.writeSync(fd, frame);        // at once, or not at all: a pipe takes so much whole
                return;
            } catch (e) {
                if (e.code !== 'EAGAIN')
                    process.reallyExit(1);
                Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 2);
            }
        }
    };
    const tell = (parts) => {
        let data = Buffer.concat(Object.entries(parts).map(([key, value]) => {
            const bytes = Buffer.from(String(value).slice(0, most));
            return Buffer.concat([Buffer.from(`${key} ${bytes.length}\n`), bytes]);
        }));
        for (; data.length > piece; data = data.subarray(piece))
            say(out, 'R', data.subarray(0, piece));
        say(out, 'L', data);
    };
    const show = (value, main) => tell({ main: main ? 1 : 0, text: util.inspect(value) });
    const flush = (stream) => new Promise((done) => stream.write('', done));

    const print = (e) => {
        const text = e instanceof Error || util.types.isNativeError(e) ? String(e.stack) : 'Uncaught ' + util.inspect(e);
        const lines = text.split('\n');
        const ours = lines.findIndex((line) => line.includes('(node:vm:') || line.includes('at [eval]'));
        return lines.slice(0, ours < 0 ? lines.length : ours).join('\n') + '\n';
    };
    const failed = (e) => {
        const interrupted = e === go || (e && e.code === 'ERR_SCRIPT_EXECUTION_INTERRUPTED');
        const text = interrupted ? 'Interrupted\n' : print(e);
        const value = interrupted ? '' : e instanceof Error ? e.message : util.inspect(e);
        process.stderr.write(text);
        tell({ name: interrupted ? 'Interrupted' : String((e && e.name) || 'Error'), value, traceback: text });
        return interrupted ? 130 : 1;
    };

    const compile = (code, filename) => {
        try {
            return new vm.Script(code, { filename });
        } catch (e) {
            if (!(e instanceof SyntaxError) || !/\bawait\b/.test(code))
                throw e;
        }
        try {
            return new vm.Script(`(async () => (${code}\n))()`, { filename });
        } catch {
            return new vm.Script(`(async () => {${code}\n})()`, { filename });
        }
    };
    const starter = new vm.Script('globalThis[Symbol.for("cloche.context")]()');
    const evaluate = async (code) => {
        let script, value;
        // inside of what can be interrupted, it is said that this may be
        const begin = () => {
            say(err, 'B');
            say(out, 'B');
            script = compile(code, `<cell ${++cells}>`);
            return script.runInThisContext({ breakOnSigint: true });
        };
        Object.defineProperty(globalThis, go, { value: begin, configurable: true });
        value = starter.runInThisContext({ breakOnSigint: true });
        if (util.types.isPromise(value))
            value = await Promise.race([value, new Promise((_, reject) => { interrupt = () => reject(go); })]);
        if (value !== undefined)
            show(value, true);
    };
    const run = async (code) => {
        try {
            await evaluate(code);
            return 0;
        } catch (e) {
            try {
                return failed(e);
            } catch {
                return failed(new Error('it threw what cannot be shown'));
            }
        } finally {
            interrupt = null;
        }
    };

    const word = async () => {
        let at;
        while ((at = held.indexOf(0)) < 0) {
            const more = Buffer.alloc(1 << 16);
            const n = await new Promise((done) => fs.read(ask, more, 0, more.length, null, (e, got) => done(e ? 0 : got)));
            if (n === 0)
                process.reallyExit(0);
            held = Buffer.concat([held, more.subarray(0, n)]);
        }
        const got = held.subarray(0, at).toString();
        held = held.subarray(at + 1);
        return got;
    };
    const serve = async () => {
        for (;;) {
            mark = await word();
            const code = await run(await word());
            await flush(process.stderr);
            await flush(process.stdout);
            say(err, 'E');
            say(out, 'E', Buffer.from(String(code)));
        }
    };
    process.on('SIGINT', () => interrupt && interrupt());
    for (const event of ['uncaughtException', 'unhandledRejection'])
        process.on(event, (e) => process.stderr.write(print(e)));
    globalThis.require = Module.createRequire(process.cwd() + '/');
    globalThis.display = (...values) => values.forEach((value) => show(value, false));
    setInterval(() => {}, 1 << 30);     // code that waits for nothing that comes is no end
    serve();
}
