"""Sandboxes that are made ahead, with an interpreter that waits in them (docs/daemon.md)."""
import base64
import os
import re
import signal
import tempfile
import threading
import time

import pytest

from helpers import places, requirement
from helpers.daemon import Daemon, caller
from helpers.mcp import Client
from helpers.runner import wait_for

pytestmark = requirement("R64", "R69", "R81")

# each says something that an interpreter which only pretends would say otherwise
CORPUS = {
    "print": "print(1)",
    "empty": "",
    "no newline": "print('x', end='')",
    "argv": "import sys; print(sys.argv, sys.orig_argv, sys.path, sys.flags, sys.executable, sys.prefix)",
    "main": "print(__name__, sorted(globals()), __builtins__, __spec__, __loader__.__name__)",
    "modules": "import sys; print(sorted(sys.modules), sorted(sys.path_importer_cache), sys.meta_path)",
    "environment": "import os; e = dict(os.environ); e.pop('CLOCHE_SANDBOX'); print(e, list(os.environ)); os.system('env | grep -v CLOCHE_SANDBOX | grep -v ^_=')",
    "file system": "import os; print(os.getcwd(), os.listdir('/tmp'), os.listdir('.'), os.listdir(os.environ['HOME']), os.umask(0))",
    "descriptors": "import os; print(sorted(os.listdir('/proc/self/fd')), [os.readlink(f'/proc/self/fd/{n}').split(':')[0] for n in (0, 1, 2)])",
    "processes": "import os; print(os.getpid(), os.getppid(), os.getpgrp(), os.getsid(0), sorted(p for p in os.listdir('/proc') if p.isdigit()))",
    "identity": "import os, resource; print(os.getuid(), os.getgid(), os.getgroups(), [resource.getrlimit(n) for n in range(16)])",
    "traceback": "def f():\n    return 1 / 0\ndef g():\n    f()\ng()",
    "chained": "try:\n    {}['a']\nexcept KeyError as e:\n    raise ValueError('b') from e",
    "stack": "import inspect, traceback\ndef f():\n    traceback.print_stack(); print([x.function for x in inspect.stack()])\nf()",
    "recursion": "import sys\nd = 0\ndef f():\n    global d\n    d += 1\n    f()\ntry:\n    f()\nexcept RecursionError:\n    print(d, sys.getrecursionlimit())",
    "syntax": "print(1)\nif x\n",
    "indentation": "  print(1)",
    "encoding": "# -*- coding: latin-1 -*-\nprint('h\u00e9')",
    "unicode": "print('h\u00e9llo \u4e16 \U0001f600')",
    "surrogate": "print('\\ud800')",
    "input": "try:\n    input('? ')\nexcept EOFError as e:\n    print('eof', e)",
    "stdin": "import sys; print(repr(sys.stdin.read()), sys.stdin.encoding, sys.stdin.errors, sys.stdout.encoding, sys.stdout.line_buffering, sys.stderr.errors)",
    "exit": "import sys; sys.exit(7)",
    "exit text": "raise SystemExit('why')",
    "exit none": "raise SystemExit",
    "exit big": "import sys; sys.exit(256 + 3)",
    "_exit": "import os; print('lost'); os._exit(4)",
    "atexit": "import atexit\natexit.register(print, 'first')\natexit.register(print, 'last')\nraise RuntimeError('x')",
    "interrupt": "import os, signal; os.kill(os.getpid(), signal.SIGINT)",
    "interrupt caught": "import os, signal\ntry:\n    os.kill(os.getpid(), signal.SIGINT); signal.pause()\nexcept KeyboardInterrupt:\n    print('caught')",
    "term": "import os, signal; print('a', flush=True); os.kill(os.getpid(), signal.SIGTERM)",
    "abort": "import os; os.abort()",
    "signals": "import signal; print([(s, signal.getsignal(s)) for s in signal.valid_signals()], signal.pthread_sigmask(signal.SIG_BLOCK, []))",
    "thread": "import threading, time\ndef f():\n    time.sleep(.05); print('thread', threading.current_thread().name)\nthreading.Thread(target=f).start(); print(threading.main_thread().name)",
    "thread fails": "import threading\nt = threading.Thread(target=lambda: 1 / 0, name='t'); t.start(); t.join()",
    "fork": "import os\nif os.fork() == 0:\n    print('child', flush=True); os._exit(0)\nprint(os.wait()[1])",
    "pool": "import multiprocessing as m\ndef f(x):\n    return x * x\nwith m.get_context('fork').Pool(2) as p:\n    print(p.map(f, range(5)))",
    "subprocess": "import subprocess, sys; print(subprocess.run([sys.executable, '-c', 'import sys; print(sys.argv, sys.path[0])'], capture_output=True, text=True))",
    "async": "import asyncio\nasync def f():\n    await asyncio.sleep(0.01); return 3\nprint(asyncio.run(f()))",
    "warning": "import warnings; warnings.warn('old', DeprecationWarning); warnings.warn('user')",
    "hook": "import sys\nsys.excepthook = lambda *a: print('hook', a[0].__name__)\n1 / 0",
    "displayhook": "1 + 1\n'not shown'",
    "stderr": "import sys; sys.stderr.write('err'); sys.stdout.write('out')",
    "no stdout": "import os, sys; os.close(1); print('x')",
    "binary": "import sys; sys.stdout.buffer.write(bytes(range(256)))",
    "large": "print('x' * 3000000)",
    "import own": "open('mod.py', 'w').write('A = 5'); import mod; print(mod.A, mod.__file__)",
    "shadow": "open('json.py', 'w').write('print(\"mine\")'); import json; print(json.__file__)",
    "future": "from __future__ import annotations\ndef f(a: undefined): pass\nprint(f.__annotations__)",
    "site": "import site, sys; print(site.ENABLE_USER_SITE, site.getsitepackages(), 'sitecustomize' in sys.modules)",
    "locale": "import locale, time; print(locale.setlocale(locale.LC_ALL), time.tzname, locale.getpreferredencoding())",
    "gc": "import gc; print(gc.isenabled(), gc.get_threshold(), gc.get_freeze_count())",
    "finalizer": "class A:\n    def __del__(self):\n        print('gone')\na = A()",
    "unraisable": "class A:\n    def __del__(self):\n        1 / 0\nA(); print('on')",
    "ctypes": "import ctypes; print(ctypes.c_char_p.in_dll(ctypes.CDLL(None), 'program_invocation_name').value)",
    "exec": "import os; print('a', flush=True); os.execvp('echo', ['echo', 'b'])",
    "oom": "b = bytearray(1 << 40)",
    "comment": "#" + "x" * 300000 + "\nprint('after')",
    # what the end of an interpreter finds, and when (settle() in match/parked.h)
    "gc objects": "import gc; gc.freeze(); print(gc.get_freeze_count() > 1000); gc.unfreeze(); print(len(gc.get_objects()) > 1000, gc.get_freeze_count())",
    "gc by name": "import importlib, gc; print(importlib.import_module('gc').get_freeze_count(), importlib.reload(gc).get_freeze_count())",
    "gc of own": "import gc, weakref\nclass A:\n    pass\na = A(); a.a = a; r = weakref.ref(a); del a; gc.collect(); print(r())",
    "traced": "import sys\nsys.settrace(lambda f, e, a: print(e, f.f_code.co_name, f.f_code.co_filename))\ndef f():\n    pass\nf()\nimport math, _json, gc",
    "profiled": "import sys\nsys.setprofile(lambda f, e, a: print(e, f.f_code.co_name))\ndef f():\n    pass\nf()",
    "names": "x: int = 1\nprint(list(globals()), __annotations__, __loader__)",
    **{f"end: {name}": "class A:\n    def __del__(self):\n        print('gone')\n" + code for name, code in {
        "in a cycle": "a = A(); a.me = a",
        "of a function": "a = A()\ndef f():\n    return a",
        "in a module": "import os\nos.x = A()",
        "in a module, which it needs": "import os\nclass B:\n    def __del__(self):\n        print('gone', os.getcwd())\nos.x = B()",
        "beside a patch": "import os\nos.listdir = lambda *a: []\na = A()",
        "beside a patch of C": "import time\ntime.sleep = lambda s: None\na = A()",
        "beside a name that is gone": "import os\ndel os.listdir; os.lists = lambda: a\na = A()",
        "in a class": "import os\nos._Environ.x = A()",
        "beside a patched class": "import io\nio.IOBase.x = lambda s: A\na = A()",
        "of an object": "import os\nos.environ.x = A()\nfrom os import environ",
        "in site": "import site\nsite.x = A()",
        "beside patched site": "import site\nsite.main = lambda: A\na = A()",
        "in builtins": "import builtins\nbuiltins.x = A()",
        "in sys": "import sys\nsys.x = A(); sys.meta_path.append(A())",
        "in codecs": "import codecs\nb = A()\ncodecs.register(lambda n: b)",
        "in a module of its own": "import sys, types\nm = types.ModuleType('m'); m.a = A(); sys.modules['m'] = m",
        "in a module that is gone": "import os, sys\ndel sys.modules['os']\nimport os as other\nother.x = A()",
        "of atexit": "import atexit\na = A()\natexit.register(print, 'first'); atexit.register(lambda: print('last', a is None))",
        "of a thread": "import threading, time\na = A()\nthreading.Thread(target=lambda: time.sleep(.05)).start()",
        "of a child": "import os, sys\na = A()\nif os.fork() == 0:\n    sys.exit(3)\nprint(os.wait()[1])",
        "after a failure": "a = A()\n1 / 0",
        "after gc": "a = A()\nimport gc\nclass B:\n    pass",
        "weak": "import weakref\na = A(); f = weakref.finalize(a, print, 'end'); r = weakref.ref(a, lambda r: print('dead'))",
        "of a generator": "def g():\n    try:\n        yield 1\n    finally:\n        print('end')\nx = g(); next(x)",
        "of a coroutine": "async def g():\n    pass\nx = g()",
        "of a file": "import warnings\nwarnings.simplefilter('always')\nf = open('/dev/null')\ndef g():\n    return f",
    }.items()},
}
NODE = {
    "print": "console.log(1)",
    "empty": "",
    "process": "console.log(process.argv, process.execArgv, process.env.PATH, Object.keys(process.env).filter(k => k != 'CLOCHE_SANDBOX'), process.pid, process.ppid, process.title, process.exitCode, process.cwd())",
    "module": "console.log(module.id, module.paths, module.children, Object.keys(require.cache), require.main, __filename, __dirname, Object.getOwnPropertyNames(globalThis).length)",
    "files": "const fs = require('fs'); console.log(fs.readdirSync('/tmp'), fs.readdirSync('.'), fs.readdirSync('/proc/self/fd').length)",
    "uncaught": "function f() { throw new TypeError('x') }\nf()",
    "syntax": "let x = ;",
    "rejected": "Promise.reject(new Error('no'))",
    "stack": "console.log(new Error('here').stack)",
    "exit": "process.exit(7)",
    "exit code": "process.exitCode = 3; process.on('exit', c => console.log('bye', c))",
    "stdin": "process.stdin.on('data', d => console.log('got', String(d))).on('end', () => console.log('end'))",
    "stdin sync": "console.log(require('fs').readFileSync(0).length)",
    "timers": "setTimeout(() => console.log('b'), 20); setImmediate(() => console.log('a')); process.nextTick(() => console.log('0'))",
    "await": "(async () => { await 1; console.log('x'); })()",
    "import": "import('node:fs').then(m => console.log(typeof m.readFileSync, Object.keys(m).length))",
    "static import": "import fs from 'fs'; console.log(typeof fs)",
    "worker": "const { Worker } = require('worker_threads'); console.log(Worker.name, Worker.length); new Worker('console.log(process.execArgv, process.argv.length)', { eval: true }).on('exit', c => console.log('exit', c))",
    "worker of own": "new (require('worker_threads').Worker)('console.log(process.env.A, process.execArgv)', { eval: true, env: { A: 'b' }, execArgv: ['--no-warnings'] })",
    "worker import": "import('worker_threads').then(m => console.log(m.Worker === require('worker_threads').Worker))",
    "worker class": "const { Worker } = require('worker_threads'); console.log(Worker, Object.getOwnPropertyNames(Worker.prototype), new Worker('1', { eval: true }).constructor === Worker); try { new Worker('1', null) } catch (e) { console.log(e.message) } try { Worker('1') } catch (e) { console.log(e.message) }",
    "worker of libraries": "const { Worker } = require('worker_threads'); class Mine extends Worker {} new Mine('console.log(process.execArgv)', { eval: true, execArgv: undefined }).on('exit', c => console.log('exit', c))",
    "hooks": "const m = require('module'), hook = 'data:text/javascript,export async function resolve(s, c, n) { return s === \"mine\" ? { url: \"data:text/javascript,export default 5\", shortCircuit: true } : n(s, c) }'; console.log(m.register); m.register(hook); m.register(hook); import('mine').then(f => console.log(f.default, require('fs').readdirSync('/tmp')))",
    "hooks of nothing": "try { require('module').register('./none.mjs', 'file:///workspace/') } catch (e) { console.log(e.code) } console.log(require('fs').readdirSync('/tmp'))",
    "fork": "require('fs').writeFileSync('c.js', 'console.log(process.execArgv, process.argv.length)'); require('child_process').fork('./c.js')",
    "spawn": "console.log(require('child_process').execFileSync(process.execPath, ['-p', '1 + 1']).toString())",
    "own module": "require('fs').writeFileSync('m.js', 'exports.a = 5'); console.log(require('./m').a, require.resolve('./m'))",
    "signal": "process.kill(process.pid, 'SIGTERM')",
    "signal caught": "process.on('SIGINT', () => { console.log('int'); process.exit(0) }); setTimeout(() => process.kill(process.pid, 'SIGINT'), 10); setTimeout(() => {}, 5000)",
    "abort": "process.abort()",
    "large": "process.stdout.write('x'.repeat(3000000))",
    "warning": "process.emitWarning('old', 'DeprecationWarning')",
    "memory": "console.log(require('v8').getHeapStatistics().heap_size_limit)",
    "unicode": "console.log('h\u00e9llo \u4e16 \U0001f600'.length)",
    "stderr": "console.error('err'); console.log('out')",
}
ENVIRONMENTS = {"none": {}, "own": {"A": "b", "B": "\u00e9", "C": ""}, "unbuffered": {"PYTHONUNBUFFERED": "1"}, "path": {"PYTHONPATH": "/workspace/.packages"},
                "optimised": {"PYTHONOPTIMIZE": "1"}, "seed": {"PYTHONHASHSEED": "0"}, "zone": {"TZ": "Asia/Tokyo"}, "other": {"HOME": "/tmp", "USER": "me"}}
SHOWS = "import os, sys, time; e = dict(os.environ); e.pop('CLOCHE_SANDBOX'); print(list(e.items()), sys.path, sys.flags, time.tzname, hash('a') if sys.flags.hash_randomization == 0 else '')"


def numbers(daemon):
    found = {}
    for line in daemon.get("/metrics").body.decode().splitlines():
        if line.startswith("cloche_pool"):
            name, value = line.rsplit(" ", 1)
            found[name.removeprefix("cloche_pool_")] = float(value)
    return found


def hits(daemon):
    return numbers(daemon)['requests_total{result="hit"}']


def parked(daemon):
    return numbers(daemon)['sandboxes{state="parked"}']


def run(daemon, code, language="python", **more):
    answer = daemon("POST", "/v1/execute", {"language": language, "encoding": "base64", "code": code, **more})
    assert answer.status == 200, answer
    found = {k: v for k, v in answer.json.items() if k != "duration_ms"}
    for name in ("stdout", "stderr"):       # an address is no two processes' alike
        found[name] = re.sub(rb"0x[0-9a-f]{6,}|\(node:\d+\)", b"0x", base64.b64decode(found[name]))
    return found


def warm(daemon, **more):
    """One is parked for such a request, whoever has taken the former ones."""
    if parked(daemon) == 0:
        run(daemon, "", **more)
    assert wait_for(lambda: parked(daemon) > 0, 60), (numbers(daemon), daemon.log)


@pytest.fixture
def pair(cloche):
    """The same daemon with a pool and without."""
    pooled, cold = (Daemon(cloche, "--pool", n, "--state-dir", str(cloche.home / n), "--listen", f"unix:{cloche.home}/{n}.sock",
                           path=cloche.home / f"{n}.sock") for n in ("2", "0"))
    yield pooled, cold
    assert pooled.stop() == 0 and cold.stop() == 0, pooled.log


@pytest.fixture
def pooled(cloche):
    made = Daemon(cloche, "--pool", "2")
    yield made
    assert made.stop() == 0, made.log


@pytest.mark.parametrize("language, corpus", [("python", CORPUS), ("javascript", NODE)])
def test_what_waited_behaves_as_what_was_started(pair, language, corpus):
    pooled, cold = pair
    wrong = {}
    for name, code in corpus.items():
        warm(pooled, language=language)
        before = hits(pooled)
        got, want = run(pooled, code, language), run(cold, code, language)
        assert hits(pooled) == before + 1
        if got != want:
            wrong[name] = {k: [got[k], want[k]] for k in want if got[k] != want[k]}
    assert not wrong


def test_what_waited_need_not_be_looked_through_at_its_end(pooled):
    """The objects that an interpreter begins with are taken out of what its collector walks through, three times, when it ends."""
    warm(pooled)
    before = hits(pooled)
    asks = "import _frozen_importlib as f; print(f._module_locks['gc'].__self__.get_freeze_count() > 1000)"
    assert run(pooled, asks)["stdout"] == b"True\n" and hits(pooled) == before + 1


def test_variables_of_the_call(pair):
    pooled, cold = pair
    for env in ENVIRONMENTS.values():
        warm(pooled)
        assert run(pooled, SHOWS, env=env) == run(cold, SHOWS, env=env)


def test_variables_of_the_policy(pair):
    """An interpreter adds some itself while it starts, and looks for packages of its user where one of them leads."""
    pooled, cold = pair
    own = {"path": ".local/lib/python3.11/site-packages/usercustomize.py", "content": "print('mine')"}
    for more in ({"policy": {"env": {"LANG": "C"}}}, {"policy": {"env": {"LANG": "C"}}, "env": {"A": "b"}},
                 {"policy": {"env": {"HOME": "/workspace"}}, "files": [own]}, {"policy": {"env": {"PYTHONUSERBASE": "/workspace/.local"}}, "files": [own]}):
        before, got = hits(pooled), []
        assert wait_for(lambda: got.append(run(pooled, SHOWS, **more)) or hits(pooled) > before, 60)
        assert got[-1] == run(cold, SHOWS, **more)


def test_standard_input_and_files_of_the_call(pair):
    pooled, cold = pair
    for more in ({"stdin": "a\nb"}, {"files": [{"path": "json.py", "content": "X = 'mine'"}]}, {"stdin": "", "files": [{"path": "a/b", "content": "c"}]}):
        warm(pooled)
        code = "import sys, os; print(sys.argv, repr(sys.stdin.read())); import json; print(json.__file__, os.listdir('.'))"
        assert run(pooled, code, **more) == run(cold, code, **more)


def test_a_miss_is_a_start(pooled):
    """The first of a kind, another policy, limits, a language that does not wait: each has what it asked for."""
    warm(pooled)
    assert numbers(pooled)['requests_total{result="miss"}'] == 1
    before = hits(pooled)
    assert run(pooled, "import os; print(os.uname().nodename)", policy={"hostname": "mine"})["stdout"] == b"mine\n"
    assert run(pooled, "b = bytearray(b'x' * (200 << 20))", limits={"memory": "64m"})["oom_killed"]
    assert run(pooled, "echo a", "shell")["stdout"] == b"a\n"
    assert hits(pooled) == before
    # the same once more has one of its own, under the same limit, and in the place of a kind that nobody asked for since
    big = "b = bytearray(b'x' * (200 << 20))"
    assert wait_for(lambda: run(pooled, big, limits={"memory": "64m"})["oom_killed"] and hits(pooled) > before, 60)


def test_what_has_the_hosts_files_or_a_network_is_not_made_ahead(pooled, cloche):
    (cloche.home / "given").mkdir()
    for policy in ({"workspace": str(cloche.home / "given")}, {"network": {"mode": "allowlist", "allow": ["example.org"]}}, {"mode": "light"}):
        for _ in range(2):
            assert run(pooled, "print(1)", policy=policy)["exit_code"] == 0
    time.sleep(1)
    found = numbers(pooled)
    assert (found['requests_total{result="hit"}'], found['requests_total{result="miss"}']) == (0, 6), found
    assert found['sandboxes{state="parked"}'] == found['sandboxes{state="starting"}'] == 0, found


def test_time_begins_with_the_call(pooled):
    warm(pooled)
    time.sleep(1.5)
    answer = pooled.post("/v1/execute", {"language": "python", "code": "import time; time.sleep(.5); print(1)", "timeout_ms": 1000})
    assert answer.json["stdout"] == "1\n" and answer.json["duration_ms"] < 1400 and hits(pooled) == 1, answer
    warm(pooled)
    assert run(pooled, "while True: pass", timeout_ms=200)["timed_out"] and hits(pooled) == 2


def test_a_long_call_holds_up_no_other(pooled):
    """What takes the place of one that was taken lets the call begin first, and does not wait for its end."""
    warm(pooled)
    call = threading.Thread(target=run, args=(pooled, "import time; time.sleep(10)"))
    call.start()
    assert wait_for(lambda: hits(pooled) == 1, 60) and wait_for(lambda: parked(pooled) == 1, 60) and call.is_alive()
    call.join()


def test_what_waits_is_nobodys(pooled):
    """In no list and no event; the record knows it from the moment when somebody took it, as theirs."""
    warm(pooled)
    assert wait_for(lambda: not pooled.get("/v1/sandboxes").json["sandboxes"], 60)
    text = pooled.get("/metrics").body.decode()
    assert all(line.endswith(" 0") for line in text.splitlines() if line.startswith("cloche_sandboxes{")), text
    known = {e["sandbox"] for e in pooled.get("/v1/events").json["events"]}
    mine = run(pooled, "import os; print(os.environ['CLOCHE_SANDBOX'])")["stdout"].decode().strip()
    assert mine not in known and hits(pooled) == 1
    events = [e["detail"] for e in pooled.get("/v1/events").json["events"] if e["sandbox"] == mine]
    assert events[:3] == ["asked for", "initializing to ready", "python3 ..."], events
    record = pooled.get(f"/v1/sandboxes/{mine}").json
    assert record["labels"] == {"made-by": "execute"} and record["state"] in ("stopping", "stopped"), record
    kept = pooled.get(f"/v1/sandboxes/{mine}/transcript?offset=0").json["entries"]
    assert [e["argv"] for e in kept if e["event"] == "exec"] == [["python3", "-"]], kept


def test_demand_says_how_many(cloche):
    daemon = Daemon(cloche, "--pool", "2", "--pool-idle", "2s")
    assert sum(numbers(daemon)[f'sandboxes{{state="{s}"}}'] for s in ("parked", "starting")) == 0
    run(daemon, "")
    warm(daemon)
    assert wait_for(lambda: parked(daemon) == 0, 60), "nobody asks any more"
    assert wait_for(lambda: not daemon.processes("cloche-keeper"), 60)
    assert daemon.stop() == 0, daemon.log


def test_memory_bounds_them(cloche):
    daemon = Daemon(cloche, "--pool", "8", "--pool-memory", "1")
    for _ in range(3):
        run(daemon, "")
    time.sleep(1)
    assert parked(daemon) == 0 and hits(daemon) == 0
    assert daemon.stop() == 0, daemon.log


def test_the_place_of_one_is_anybodys(cloche):
    """The ceiling of all sandboxes is reached by clients' alone."""
    daemon = Daemon(cloche, "--pool", "2", "--max-sandboxes", "2")
    warm(daemon)
    made = [daemon.create() for _ in range(2)]
    assert daemon.post("/v1/sandboxes", {}).json["code"] == "sandbox.too-many"
    assert wait_for(lambda: parked(daemon) == 0, 60)
    for one in made:
        daemon("DELETE", f"/v1/sandboxes/{one.id}")
    warm(daemon)
    assert daemon.stop() == 0, daemon.log


def test_to_take_one_needs_no_place(cloche):
    """Where as many live as may, the one that waits is given, and does not end to make room for itself."""
    daemon = Daemon(cloche, "--pool", "1", "--max-sandboxes", "2")
    daemon.create()
    warm(daemon)
    before = hits(daemon)
    mine = run(daemon, "import os; print(os.environ['CLOCHE_SANDBOX'])")["stdout"].decode().strip()
    # one that was made anew for the same record has another id inside
    assert hits(daemon) == before + 1 and daemon.get(f"/v1/sandboxes/{mine}").ok, daemon.log
    assert daemon.stop() == 0, daemon.log


def test_a_call_that_is_refused_asks_for_none(cloche):
    daemon = Daemon(cloche, "--pool", "2", "--max-sandboxes-per-agent", "1")
    agent = caller(daemon, "agent")
    assert agent.post("/v1/sandboxes", {}).status == 201
    for n in range(3):
        assert agent.post("/v1/execute", {"language": "python", "code": "", "policy": {"hostname": f"kind-{n}"}}).status == 429
    time.sleep(1)
    found = numbers(daemon)
    assert parked(daemon) == found["fill_duration_seconds_count"] == found['requests_total{result="miss"}'] == 0, found
    assert daemon.stop() == 0, daemon.log


def test_one_callers_kinds_take_no_place_of_others(cloche):
    """Nor are the kinds of others forgotten when one caller asks for more of them than are known at once."""
    daemon = Daemon(cloche, "--pool", "2")
    agent = caller(daemon, "agent")
    warm(daemon)

    def ask(n, **more):
        return agent.post("/v1/execute", {"language": "python", "code": "", "policy": {"hostname": f"kind-{n}", **more}}).status

    for n in range(4):
        assert ask(n) == 200
        time.sleep(.3)      # one of it is made
    assert 200 not in {ask(n, mode="off") for n in range(4, 70)}    # a keeper refuses that, and makes nothing
    before = hits(daemon)
    assert run(daemon, "print(1)")["stdout"] == b"1\n" and hits(daemon) == before + 1
    assert daemon.stop() == 0, daemon.log


@pytest.mark.parametrize("kind", ["new", "slow"])
def test_one_callers_ever_new_kinds_do_not_keep_others_from_having_one(cloche, kind):
    """What others need is made before more for whoever has most; what is made slowly holds up no other one."""
    daemon = Daemon(cloche)
    agent = caller(daemon, "agent")
    over, asked = threading.Event(), []

    def ask():
        while not over.is_set():
            asked.append(len(asked))
            limits = {"limits": {"cpus": 0.01}} if kind == "slow" else {}
            agent.post("/v1/execute", {"language": "python", "code": "", "policy": {"hostname": f"kind-{len(asked)}", **limits}})
    asking = [threading.Thread(target=ask) for _ in range(3)]
    for t in asking:
        t.start()
    try:
        assert wait_for(lambda: len(asked) >= 8, 60)
        for calls in range(40):
            run(daemon, "")
            if hits(daemon) >= 8:       # nobody asks twice for one of the others
                break
            time.sleep(.5)
        assert hits(daemon) >= 8, f"{hits(daemon)} of {calls + 1}"
    finally:
        over.set()
        for t in asking:
            t.join()
    assert daemon.stop() == 0, daemon.log


def test_other_settings_other_sandboxes(cloche):
    """They are read when one is made, so they are when it is taken; and a reload ends all."""
    settings = cloche.home / "settings.yaml"
    settings.write_text("hostname: first\n")
    daemon = Daemon(cloche, "--pool", "1", "--settings", str(settings))
    asks = "import os; print(os.uname().nodename)"
    warm(daemon)
    settings.write_text("hostname: second\n")
    assert run(daemon, asks)["stdout"] == b"second\n" and hits(daemon) == 1
    warm(daemon)
    assert run(daemon, asks)["stdout"] == b"second\n"
    warm(daemon)
    pids = set(daemon.processes("cloche-keeper"))
    os.kill(daemon.process.pid, signal.SIGHUP)
    assert wait_for(lambda: not pids & set(daemon.processes("cloche-keeper")), 60)
    assert run(daemon, asks)["stdout"] == b"second\n"
    assert daemon.stop() == 0, daemon.log


@pytest.mark.skipif(not places.IS_ROOT, reason="only root may write where a sandbox sees the host's programs")
def test_an_interpreter_that_is_replaced(cloche):
    """As an upgrade does it: what waits is the old one."""
    with tempfile.TemporaryDirectory(prefix="cloche-test-", dir="/opt") as folder:
        os.chmod(folder, 0o755)

        def put(version):
            path = os.path.join(folder, "python3")
            with open(path + ".new", "w", encoding="ascii") as f:
                f.write(f'#!/bin/sh\nVERSION={version} exec /usr/bin/python3 "$@"\n')
            os.chmod(path + ".new", 0o755)
            os.rename(path + ".new", path)
        put(1)
        settings = cloche.home / "settings.yaml"
        settings.write_text(f"env: {{PATH: '{folder}/other:{folder}:/usr/bin:/bin'}}\n", encoding="ascii")
        daemon = Daemon(cloche, "--pool", "1", "--settings", str(settings))
        asks = "import os; print(open('/proc/self/environ').read().split('VERSION=')[1][0])"
        warm(daemon)
        assert run(daemon, asks)["stdout"] == b"1\n" and hits(daemon) == 1
        warm(daemon)
        put(2)
        assert run(daemon, asks)["stdout"] == b"2\n" and hits(daemon) == 2
        warm(daemon)
        os.mkdir(os.path.join(folder, "other"))
        os.link(os.path.join(folder, "python3"), os.path.join(folder, "other", "python3"))
        put(3)      # it is not the first one any more
        assert run(daemon, asks)["stdout"] == b"2\n"
        assert daemon.stop() == 0, daemon.log


@pytest.mark.slow       # it waits, and does nothing meanwhile
@pytest.mark.skipif(not places.IS_ROOT, reason="only root may write where a sandbox sees the host's programs")
def test_one_that_takes_its_time_is_made_all_the_same(cloche):
    """What its keeper waits for has the time that the engine gives it, and not 20 s from the beginning: an emulated machine needs more."""
    with tempfile.TemporaryDirectory(prefix="cloche-test-", dir="/opt") as folder:
        os.chmod(folder, 0o755)
        program = os.path.join(folder, "python3")
        with open(program, "w", encoding="ascii") as f:     # slow where it is to wait
            f.write('#!/bin/sh\n[ "$PYTHONPATH" != /tmp ] || sleep 22\nexec /usr/bin/python3 "$@"\n')
        os.chmod(program, 0o755)
        settings = cloche.home / "settings.yaml"
        settings.write_text(f"env: {{PATH: '{folder}:/usr/bin:/bin'}}\n", encoding="ascii")
        daemon = Daemon(cloche, "--pool", "1", "--settings", str(settings))
        assert run(daemon, "print(1)")["stdout"] == b"1\n"
        assert wait_for(lambda: parked(daemon) > 0, 60), daemon.log
        assert run(daemon, "print(2)")["stdout"] == b"2\n" and hits(daemon) == 1
        assert daemon.stop() == 0, daemon.log


def test_mcp_takes_them_too(pooled):
    session = Client(pooled)
    first = session.call("code_execute", code="print(1)", language="python")
    assert first["stdout"] == "1\n"
    assert wait_for(lambda: parked(pooled) > 0, 60)
    said = session.call("code_execute", code="import sys; print(sys.argv, sys.path[:2]); x = 1 / 0", language="python")
    assert said["stdout"] == "['-'] ['', '/workspace/.packages']\n" and said["exit_code"] == 1, said
    assert said["stderr"].splitlines()[1] == '  File "<stdin>", line 1, in <module>' and hits(pooled) == 1
    # it is the session's own from here on, and its next code starts as always
    assert session.call("code_execute", code="print(2)", language="python", sandbox_id=said["sandbox_id"])["stdout"] == "2\n"


def test_a_lower_ceiling_is_the_ceiling_of_what_waits(cloche):
    """Settings that say less than an agent's policy refuse it, and no sandbox that was made before is given in its place."""
    settings = cloche.home / "settings.yaml"
    settings.write_text("limits: {memory: 512m}\n")
    daemon = Daemon(cloche, "--pool", "1", "--settings", str(settings))
    agent = caller(daemon, "agent")
    asks = {"language": "python", "code": "print(1)", "policy": {"limits": {"memory": "256m"}}}
    assert agent.post("/v1/execute", asks).json["stdout"] == "1\n"
    assert wait_for(lambda: parked(daemon) > 0, 60), daemon.log
    settings.write_text("limits: {memory: 128m}\n")
    answer = agent.post("/v1/execute", asks)
    assert hits(daemon) == 1 and answer.status != 200 and "memory" in answer.json["error"], answer
    assert daemon.stop() == 0, daemon.log
