// keeper/context_node.js: what runs a context's code in Node, in the sandbox (see context_python.py, which says more)
//
// SIGINT may come only while a script runs under Node's watchdog of it: elsewhere it ends Node, and one that comes while the
// watchdog stops is lost, and strikes a later script. So before the driver leaves the watchdog it asks (S). From the answer
// on no signal comes, but a word (I, and the mark of the call that is meant); and the answer says whether one was sent,
// which then is waited for under the watchdog. The keeper sends at most one for a call.
//
// The code shares all objects with this driver, and may change any. What the driver needs it took before: nothing here
// looks up a method of a value, or a member that may be missing.
'use strict';
{
    const fs = require('fs'), vm = require('vm'), util = require('util'), net = require('net'), Module = require('module');
    const { Writable } = require('stream'), { writeSync, readSync } = fs, { inspect } = util, { Script } = vm;
    const { isPromise, isNativeError } = util.types, { wait } = Atomics, { byteLength } = Buffer, text = String;
    const allocate = Buffer.allocUnsafeSlow, exit = process.reallyExit.bind(process);
    const free = Function.prototype.bind.bind(Function.prototype.call);     // free(method)(object, ...) calls it
    const decode = free(Buffer.prototype.utf8Slice), encode = free(Buffer.prototype.utf8Write);
    const then = free(Promise.prototype.then), find = free(String.prototype.indexOf), write = free(Writable.prototype.write);
    const findLast = free(String.prototype.lastIndexOf), cut = free(String.prototype.slice), matches = free(RegExp.prototype.exec);
    const waits = free(Object.getOwnPropertyDescriptor(Writable.prototype, 'writableLength').get);
    const corked = free(Object.getOwnPropertyDescriptor(Writable.prototype, 'writableCorked').get);
    const uncork = free(Writable.prototype.uncork), awaits = /\bawait\b/;
    const { stdout, stderr } = process;
    const ask = 3, out = 4, err = 5, piece = 4000, most = 1 << 20, late = 1000;
    const interruptible = { __proto__: null, breakOnSigint: true };
    const importer = vm.constants && vm.constants.USE_MAIN_CONTEXT_DEFAULT_LOADER;
    const nothing = allocate(0), frame = allocate(4096), came = allocate(4096), still = new Int32Array(new SharedArrayBuffer(4));
    const digits = Buffer.from('0123456789abcdef'), bytes_of = Uint8Array, run_starter = free(Script.prototype.runInThisContext);
    const listeners = process.listenerCount.bind(process), warn = free(process.emitWarning);
    let mark = '', cells = 0, running = 0, held = allocate(4096), n_held = 0, begin = null, telling = false, ending = null;

    const sleep = () => wait(still, 0, 0, 1);

    // --- what is said: at once, or not at all: a pipe takes so much whole

    const say = (fd, kind, payload = nothing, at = 0, n = payload.length) => {
        const head = encode(frame, '\u0001' + mark + kind, 0, 64);
        for (let i = 0; i < 4; i++)
            frame[head + i] = digits[n >> (12 - 4 * i) & 15];
        for (let i = 0; i < n; i++)
            frame[head + 4 + i] = payload[at + i];
        for (;;) {
            try {
                writeSync(fd, frame, 0, head + 4 + n);
                return;
            } catch (e) {
                if (e.code !== 'EAGAIN')
                    exit(1);
                sleep();
            }
        }
    };
    const bytes = (string) => {
        const made = allocate(byteLength(string));
        encode(made, string, 0, made.length);
        return made;
    };
    const tell = (...parts) => {
        let data = '', at = 0;
        for (let i = 0; i < parts.length; i += 2) {
            const value = cut(text(parts[i + 1]), 0, most);
            data += parts[i] + ' ' + byteLength(value) + '\n' + value;
        }
        data = bytes(data);
        telling = true;
        for (; data.length - at > piece; at += piece)
            say(out, 'R', data, at, piece);
        say(out, 'L', data, at, data.length - at);
        telling = false;
    };
    const show = (value, main) => tell('main', main ? 1 : 0, 'text', inspect(value));

    // --- what is heard

    const take = (from, n) => {
        if (n_held + n > held.length) {
            const more = allocate(2 * (n_held + n));
            for (let i = 0; i < n_held; i++)
                more[i] = held[i];
            held = more;
        }
        for (let i = 0; i < n; i++)
            held[n_held++] = from[i];
    };
    const word = (first = 0) => {       // the next one from @first on; null: it is not there yet
        for (let at = first; at < n_held; at++)
            if (held[at] === 0)
                return { __proto__: null, text: decode(held, first, at), end: at + 1 };
        return null;
    };
    const drop = (n) => {
        for (let i = n; i < n_held; i++)
            held[i - n] = held[i];
        n_held -= n;
    };
    // The answer to the question of that number: '1', a signal was sent. Answers to others are passed over.
    const may_leave = (number) => {
        say(out, 'S', bytes(number));
        for (;;) {
            const got = word();
            if (got !== null) {
                drop(got.end);
                if (got.text[0] === 'S' && got.text[1] === number)
                    return got.text[2];
                continue;
            }
            try {
                const n = readSync(ask, came, 0, came.length);
                if (n === 0)
                    exit(0);
                take(came, n);
            } catch (e) {
                if (e.code !== 'EAGAIN')
                    exit(1);
                wait(still, 0, 0, 0.1);
            }
        }
    };

    // --- a call's end

    const flush = (stream, done) => {
        while (corked(stream) > 0)
            uncork(stream);
        if (waits(stream) === 0)
            done();
        else
            write(stream, '', done);
    };
    const end = (call, code) => {
        if (running !== call)
            return;
        running = 0;
        ending = null;
        say(err, 'E');
        say(out, 'E', bytes(text(code)));
    };
    const finish = (call, code) => {
        ending = () => end(call, code);     // an interrupt waits for no output
        try {
            flush(stderr, () => {
                try {
                    flush(stdout, () => end(call, code));
                } catch {
                    end(call, code);
                }
            });
        } catch {
            end(call, code);
        }
    };
    const print = (e) => {
        const said = isNativeError(e) ? text(e.stack) : 'Uncaught ' + inspect(e);
        const vm_at = find(said, '(node:vm:'), eval_at = find(said, 'at [eval]');
        const ours = vm_at < 0 || (eval_at >= 0 && eval_at < vm_at) ? eval_at : vm_at;
        return (ours < 0 ? said : cut(said, 0, findLast(said, '\n', ours))) + '\n';
    };
    const complain = (e) => {
        try {
            write(stderr, print(e));
        } catch {
            write(stderr, 'it threw what cannot be shown\n');
        }
    };
    const failed = (call, e) => {
        let name = 'Error', value = 'it threw what cannot be shown', said = value + '\n';
        try {
            const shown = print(e), what = isNativeError(e) ? text(e.message) : inspect(e);
            name = isNativeError(e) ? text(e.name) : name;
            value = what;
            said = shown;
        } catch { /* it stays so */ }
        write(stderr, said);
        tell('name', name, 'value', value, 'traceback', said);
        finish(call, 1);
    };
    const interrupted = (call) => {
        write(stderr, 'Interrupted\n');
        tell('name', 'Interrupted', 'value', '', 'traceback', 'Interrupted\n');
        finish(call, 130);
    };

    // --- a call

    const compile = (code, filename) => {
        const options = { __proto__: null, filename, importModuleDynamically: importer };
        try {
            return new Script(code, options);
        } catch (e) {
            if (matches(awaits, code) === null)
                throw e;
        }
        try {
            return new Script('(async () => (' + code + '\n))()', options);
        } catch {
            return new Script('(async () => {' + code + '\n})()', options);
        }
    };
    const was_struck = (e) => {
        try {
            return isNativeError(e) && e.code === 'ERR_SCRIPT_EXECUTION_INTERRUPTED';
        } catch {
            return false;
        }
    };
    Object.defineProperty(globalThis, '__cloche_context', { value: () => {
        const once = begin;
        begin = null;
        if (once !== null)
            once();
    } });
    const starter = new Script('__cloche_context()', { __proto__: null, filename: 'node:vm:context' });
    const evaluate = (code) => {        // what came of it
        const got = { __proto__: null, struck: false, threw: false, value: undefined };
        let answer = '', script = null;
        try {           // while Node tells of a syntax error it may swallow what interrupts
            script = compile(code, '<cell ' + ++cells + '>');
        } catch (e) {
            got.threw = true;
            got.value = e;
        }
        begin = () => {
            say(err, 'B');
            say(out, 'B');      // it may be interrupted from here on
            try {
                if (script !== null)
                    got.value = run_starter(script, interruptible);
                if (!got.threw && got.value !== undefined && !isPromise(got.value))
                    show(got.value, true);
            } catch (e) {
                got.threw = true;
                got.value = e;
                got.struck = was_struck(e);
            }
            answer = may_leave('1');
            for (let i = 0; answer === '1' && !got.struck && listeners('SIGINT') === 0 && i < late; i++)
                sleep();        // the signal that was sent ends this, unless the code, or Node amid an error, has caught it
            if (answer === '1' && listeners('SIGINT') === 0)
                got.struck = true;
        };
        try {
            run_starter(starter, interruptible);
        } catch {
            got.struck = true;  // the one signal that was sent
        }
        if (telling) {          // in the midst of a result
            say(out, 'L');
            telling = false;
        }
        if (answer === '') {    // what came of it may have been cut in two by the signal
            n_held = 0;
            may_leave('2');
        }
        return got;
    };
    const run = (first, code) => {
        const call = cells + 1;
        mark = first;
        running = call;
        listen(false);
        const got = evaluate(code);
        listen(true);
        if (got.struck) {
            interrupted(call);
        } else if (got.threw) {
            failed(call, got.value);
        } else if (!isPromise(got.value)) {
            finish(call, 0);
        } else {
            try {
                then(got.value, (value) => settled(call, value, false), (e) => settled(call, e, true));
            } catch (e) {
                failed(call, e);
            }
        }
    };
    const settled = (call, value, threw) => {   // also of a call that was interrupted, long after
        if (running !== call || ending !== null)
            return;
        if (threw)
            return failed(call, value);
        try {
            if (value !== undefined)
                show(value, true);
        } catch (e) {
            return failed(call, e);
        }
        finish(call, 0);
    };
    const hear = () => {
        for (let first = word(); first !== null; first = word()) {
            const kind = first.text[0], code = kind === 'I' || kind === 'S' ? first : word(first.end);
            if (code === null)
                return;
            drop(code.end);
            if (code !== first)
                run(first.text, code.text);
            else if (kind === 'I' && running !== 0 && first.text === 'I' + mark)
                ending !== null ? ending() : interrupted(running);
        }
    };

    const pipe = new net.Socket({ fd: ask, readable: true, writable: false, manualStart: true })._handle;
    const start = pipe.readStart.bind(pipe), stop = pipe.readStop.bind(pipe);
    const listen = (on) => on ? start() : stop();
    pipe.onread = (data) => {
        if (data === undefined)
            exit(0);
        const got = new bytes_of(data);
        take(got, got.length);
        hear();
    };
    process.on('uncaughtException', complain);
    process.on('unhandledRejection', complain);
    process.emitWarning = (warning, ...more) => {      // import() is none of an experiment to who writes the code
        if (typeof warning !== 'string' || find(warning, 'vm.USE_MAIN_CONTEXT') < 0)
            warn(process, warning, ...more);
    };
    globalThis.require = Module.createRequire(process.cwd() + '/');
    globalThis.display = (...values) => {
        for (let i = 0; i < values.length; i++)
            show(values[i], false);
    };
    start();
}
