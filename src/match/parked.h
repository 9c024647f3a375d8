/* match/parked.h: interpreters that are started ahead and wait for code, in a sandbox that nobody has used yet
 *
 * What is started is what `argv` of the language's row would start, by a way around: a file that the interpreter reads
 * while it starts. That file removes every trace of itself, writes the byte PARKED to standard output, and reads one
 * job from standard input: eight hexadecimal digits, and so many bytes, the environment's entries, each ended by a NUL.
 * When it has it, it writes that byte once more; nothing else is said to it before. Then the interpreter goes on as
 * always: it reads its code from standard input. So nothing has to be imitated: frames, modules, arguments and the end
 * of the process are its own.
 *
 * No module of Python is imported ahead: a file of the code's own folder may have its name.
 */
#ifndef CLOCHE_MATCH_PARKED_H
#define CLOCHE_MATCH_PARKED_H

#define PARKED      '\006'
#define PARKED_SIZE 8           /* digits of a job's size */

/* Where there is a sitecustomize of the system, it is that; where there is none, it ends as the import of none does.
 *
 * At its end an interpreter looks three times through all objects that there are for cycles that nobody reaches. That
 * takes longer than short code does, and nearly all of these objects are the interpreter's own. settle() takes those
 * out of it (gc.freeze). Nothing of that is to be seen:
 * - Names of __main__ are not among them: what the code makes is collected as always. A dictionary that is filled again
 *   after it was empty is one of the collector's anew.
 * - Where the code put something of its own into one of the modules or classes that were there, or into an object that
 *   such a module names, which would keep it
 *   from being collected, all is undone before the end. This is looked for by iterators that are made ahead, and are
 *   run by the function that was first to be called at the end: no frame is made, so nobody who traces sees it. (It
 *   looks at the values of these modules and classes; site, which is still being imported, gets one more name.)
 * - Who imports gc has it undone before: what that import calls is what would be a weak reference to the lock of that
 *   name, and its answer, None, means that there is no lock yet. */
static const char *const parked_python[] = { "sh", "-c",
    "printf %s \"$1\" >/tmp/sitecustomize.py && PYTHONPATH=/tmp exec \"$0\" -", "python3",
    "import os, sys\n"
    "def take(n):\n"
    "    got = b''\n"
    "    while len(got) < n:\n"
    "        more = os.read(0, n - len(got))\n"
    "        if not more:\n"
    "            os._exit(1)\n"
    "        got += more\n"
    "    return got\n"
    "def settle():\n"
    "    own, before = sys.modules, set(sys.modules)\n"
    "    import atexit, gc, _collections, _frozen_importlib, _operator as op, itertools as it\n"
    "    for name in set(own) - before:\n"
    "        del own[name]\n"
    "    places = [vars(m) for n, m in own.items() if n not in ('__main__', 'builtins', 'site', 'sys')]\n"
    "    places += [vars(v) for p in places[:] for n, v in p.items() if n[:2] != '__' and hasattr(v, '__dict__')\n"
    "               and not isinstance(v, (type, type(sys), type(settle)))]\n"
    "    places += [vars(c) for c in gc.get_objects() if isinstance(c, type)]\n"
    "    sizes = list(map(len, places))\n"
    "    places.append(vars(own['site']))\n"
    "    values = [v for p in places for v in p.values()]\n"
    "    other = it.chain(map(op.ne, map(len, places), sizes),\n"
    "                     map(op.is_not, it.chain.from_iterable(map(op.methodcaller('values'), places)), values))\n"
    "    undo = it.starmap(gc.unfreeze, it.compress(it.repeat(()), other))\n"
    "    atexit.register(_collections.deque(maxlen=0).extend, undo)\n"
    "    _frozen_importlib._module_locks['gc'] = gc.unfreeze\n"
    "    main = vars(own['__main__'])\n"
    "    names = main.copy()\n"
    "    main.clear()\n"
    "    gc.collect()\n"
    "    gc.freeze()\n"
    "    main.update(names)\n"
    "def park():\n"
    "    none = None\n"
    "    for remove, what in (os.unlink, __file__), (os.unlink, __spec__.cached), (os.rmdir, '/tmp/__pycache__'):\n"
    "        try:\n"
    "            remove(what)\n"
    "        except OSError:\n"
    "            pass\n"
    "    sys.path.remove('/tmp')\n"
    "    sys.path_importer_cache.pop('/tmp', None)\n"
    "    del os.environ['PYTHONPATH'], sys.modules['sitecustomize']\n"
    "    try:\n"
    "        import sitecustomize\n"
    "    except ImportError as e:\n"
    "        if e.name != 'sitecustomize':\n"
    "            raise\n"
    "        none = e.with_traceback(None)\n"
    "    exec(compile('print(end=\"\")', '', 'exec'), {})\n"
    "    try:\n"
    "        settle()\n"
    "    except (AttributeError, ImportError, KeyError):\n"
    "        pass\n"
    "    os.write(1, b'\\6')\n"
    "    job, coerced = take(int(take(8), 16)).split(b'\\0')[:-1], os.environb.get(b'LC_CTYPE')\n"
    "    for name in list(os.environb):\n"
    "        del os.environb[name]\n"
    "    for entry in job:\n"
    "        name, _, value = entry.partition(b'=')\n"
    "        os.environb[name] = value\n"
    "    if coerced:\n"
    "        os.environb.setdefault(b'LC_CTYPE', coerced)\n"
    "    if 'PYTHONPATH' in os.environ:\n"
    "        sys.path.insert(0, os.environ['PYTHONPATH'])\n"
    "    os.write(1, b'\\6')\n"
    "    return none\n"
    "none = park()\n"
    "if none:\n"
    "    raise none\n", NULL };

/* It is loaded before the code as `--require` does it. Threads would load it too, but it is gone: those of the code are
 * started without, and for the one of hooks there is an empty file in its place while that starts. */
static const char *const parked_node[] = { "sh", "-c",
    "printf %s \"$1\" >/tmp/parked.js && exec \"$0\" -r /tmp/parked.js -", "node",
    "const fs = require('fs'), Module = require('module'), threads = require('worker_threads');\n"
    "const take = (n) => {\n"
    "    const got = Buffer.alloc(n);\n"
    "    for (let at = 0, more; at < n; at += more)\n"
    "        if ((more = fs.readSync(0, got, at, n - at)) === 0)\n"
    "            process.reallyExit(1);\n"
    "    return got.toString();\n"
    "};\n"
    "fs.unlinkSync(__filename);\n"
    "delete require.cache[__filename];\n"
    "process.execArgv.length = process._preload_modules.length = 0;\n"
    "threads.Worker = new Proxy(threads.Worker, {\n"
    "    construct: (Worker, [file, options = {}], self) =>\n"
    "        Reflect.construct(Worker, [file, { ...options, execArgv: options.execArgv || [] }], self),\n"
    "});\n"
    "threads.Worker.prototype.constructor = threads.Worker;\n"
    "const make = () => {\n"
    "    try {\n"
    "        fs.writeFileSync(__filename, '', { flag: 'wx' });\n"
    "        return true;\n"
    "    } catch {\n"
    "        return false;\n"
    "    }\n"
    "};\n"
    "if (Module.register)\n"
    "    Module.register = new Proxy(Module.register, {\n"
    "        apply: (register, self, args) => {\n"
    "            const made = make();\n"
    "            try {\n"
    "                return Reflect.apply(register, self, args);\n"
    "            } finally {\n"
    "                if (made)\n"
    "                    fs.unlinkSync(__filename);\n"
    "            }\n"
    "        },\n"
    "    });\n"
    "Module.syncBuiltinESMExports();\n"
    "require('net');\n"
    "new (require('vm').Script)('0').runInThisContext();\n"
    "fs.writeSync(1, '\\u0006');\n"
    "const job = take(parseInt(take(8), 16)).split('\\0').slice(0, -1);\n"
    "for (const name of Object.keys(process.env))\n"
    "    delete process.env[name];\n"
    "for (const entry of job) {\n"
    "    const at = entry.indexOf('=');\n"
    "    process.env[entry.slice(0, at)] = entry.slice(at + 1);\n"
    "}\n"
    "fs.writeSync(1, '\\u0006');\n", NULL };

#endif
