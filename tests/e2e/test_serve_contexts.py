"""Contexts: processes in a sandbox that run code for one call after the other, with results beside the output."""
import base64
import json
import os
import signal
import threading

import pytest

from helpers import requirement
from helpers.approvals import Asking, one_pending
from helpers.daemon import Daemon, caller, restart
from helpers.places import rounds
from helpers.runner import wait_for

pytestmark = requirement("R61", "R64", "R65")

LOOP = "n = 0\nwhile True:\n    n += 1\n    if n == 1: open('loops', 'w').close()"


class Context:
    def __init__(self, box, language="python", **members):
        self.box = box
        answer = box.daemon.post(f"{box.at}/contexts", {"language": language, **members})
        assert answer.status == 201, answer
        self.id = answer.json["context_id"]
        self.at = f"{box.at}/contexts/{self.id}"
        assert answer.headers["Location"] == self.at
        assert (answer.json["state"], answer.json["language"]) == ("idle", language), answer.json

    def call(self, code, status=200, **members):
        answer = self.box.daemon.post(f"{self.at}/execute", {"code": code, **members})
        assert answer.status == status, answer
        return answer.json

    def out(self, code):
        answer = self.call(code)
        assert answer["exit_code"] == 0 and answer["stderr"] == "" and answer["error"] is None, answer
        return answer["stdout"]

    def value(self, code):
        """Of its last expression."""
        answer = self.call(code)
        assert answer["results"] and answer["results"][-1]["main"], answer
        return answer["results"][-1]["text"]

    def state(self):
        return self.box.daemon.get(self.at).json["state"]

    def loops(self):
        """LOOP really runs in it: a context is busy before its code is at its first line."""
        return wait_for(lambda: self.box.daemon.get(f"{self.box.at}/stat/loops").ok)

    def post(self, what):
        return self.box.daemon.post(f"{self.at}/{what}", {})

    def later(self, code, **members):
        """A call in a thread of its own, whose answer is there after join()."""
        got = []
        thread = threading.Thread(target=lambda: got.append(self.box.daemon.post(f"{self.at}/execute", {"code": code, **members})))
        thread.start()
        assert wait_for(lambda: got or self.state() == "busy") and not got, got
        return lambda: (thread.join(60), got[0])[1]


@pytest.fixture
def context(box):
    return Context(box)


# --- state ------------------------------------------------------------------------------------------------------------

def test_variables_stay_between_calls(context):
    first = context.call("import math\nx = 40\ndef f(y):\n    return x + y")
    assert (first["exit_code"], first["signal"], first["stdout"], first["results"], first["context_state"]) == (0, None, "", [], "idle"), first
    assert context.value("f(2)") == "42" and context.value("_ + 1") == "43"
    assert context.out("print(math.floor(2.5), __name__)") == "2 __main__\n"
    assert context.call("x;")["results"] == []


def test_two_contexts_share_nothing(box):
    one, two = Context(box), Context(box, env={"WHO": "two"}, cwd="/tmp")
    one.out("x = 1")
    assert two.call("x")["error"]["name"] == "NameError"
    assert two.value("import os; os.environ['WHO'], os.getcwd()") == "('two', '/tmp')"
    assert one.value("import os; 'WHO' in os.environ") == "False" and one.value("x") == "1"
    assert [c["context_id"] for c in box.daemon.get(f"{box.at}/contexts").json["contexts"]] == [one.id, two.id]
    # they are in no list of commands
    assert box.daemon.get(f"{box.at}/exec").json["commands"] == []


def test_a_restart_loses_them(context):
    context.out("x = 1")
    answer = context.post("restart")
    assert answer.status == 200 and (answer.json["context_id"], answer.json["state"]) == (context.id, "idle"), answer
    assert context.call("x")["error"]["name"] == "NameError"
    assert context.value("1 + 1") == "2"


def test_a_restart_ends_what_runs(context):
    answer = context.later(LOOP)
    assert context.post("restart").status == 200
    assert answer().json["signal"] == 9 and answer().json["context_state"] == "dead"
    assert context.value("2") == "2"


def test_it_is_deleted_once(context, box):
    assert box.daemon("DELETE", context.at).status in (200, 202)
    assert wait_for(lambda: box.daemon.get(context.at).status == 404)
    for answer in (box.daemon("DELETE", context.at), context.post("restart"), context.post("interrupt"),
                   box.daemon.post(f"{context.at}/execute", {"code": "1"})):
        assert answer.status == 404, answer
    assert box.daemon.get(f"{box.at}/contexts").json == {"contexts": []}


def test_they_survive_the_warden(context, daemon):
    context.out("x = 7")
    restart(daemon, "cloche-warden")
    assert context.value("x") == "7"


# --- interrupting, and time -------------------------------------------------------------------------------------------

def test_an_endless_loop_is_interrupted_and_variables_stay(context):
    context.out("kept = 'yes'")
    answer = context.later(LOOP)
    assert context.loops() and context.post("interrupt").status == 200
    got = answer().json
    assert (got["exit_code"], got["error"]["name"], got["context_state"]) == (130, "KeyboardInterrupt", "idle"), got
    assert "KeyboardInterrupt" in got["stderr"]
    assert context.value("kept, n > 0") == "('yes', True)"
    # of one that waits nothing is interrupted
    assert context.post("interrupt").status == 200
    assert context.value("kept") == "'yes'"


def test_a_call_has_a_time_and_the_context_outlives_it(context):
    context.out("x = 1\nimport time")
    got = context.call("print('before', flush=True)\ntime.sleep(600)", timeout_ms=500)
    assert got["timed_out"] and got["stdout"] == "before\n" and got["context_state"] == "idle", got
    assert context.value("x") == "1"


def test_time_may_be_over_before_the_code_begins(box):
    """An interpreter that is still starting is not killed by what is meant for the code."""
    context = Context(box)
    got = context.call("import time\ntime.sleep(600)", timeout_ms=1)
    assert got["timed_out"] and got["context_state"] == "idle" and got["error"]["name"] == "KeyboardInterrupt", got
    assert context.value("1") == "1"


def test_a_start_may_take_longer_than_the_grace(daemon):
    """Grace is for code that is interrupted, and there is none yet."""
    box = daemon.create(name="start", policy={"limits": {"grace": "600ms"}})
    assert box.put("sitecustomize.py", b"import time; time.sleep(1.2)").ok
    context = Context(box, env={"PYTHONPATH": box.exec(["pwd"])["stdout"].strip()})
    got = context.call("import time\ntime.sleep(600)", timeout_ms=1)
    assert got["timed_out"] and got["context_state"] == "idle" and got["error"]["name"] == "KeyboardInterrupt", got
    assert got["duration_ms"] >= 700, got


def test_what_cannot_be_interrupted_is_killed(box):
    context = Context(box)
    context.out("import signal, time\nsignal.signal(signal.SIGINT, signal.SIG_IGN)")
    got = context.call("time.sleep(600)", timeout_ms=200)
    assert got["timed_out"] and got["signal"] == 9 and got["context_state"] == "dead", got


def test_a_client_that_goes_interrupts(context, box):
    context.out("x = 1")
    connection = box.daemon.connection()
    connection.request("POST", f"{context.at}/execute", body=json.dumps({"code": LOOP}),
                       headers={"Content-Type": "application/json", **box.daemon.credential()})
    assert context.loops() and context.state() == "busy"
    connection.close()
    assert wait_for(lambda: context.state() == "idle")
    assert context.value("x, n > 0") == "(1, True)"


def test_one_call_at_a_time(context):
    answer = context.later("import time; time.sleep(600)")
    refused = context.call("1", status=409)
    assert refused["code"] == "context.busy"
    assert context.post("interrupt").status == 200
    assert answer().json["exit_code"] == 130


# --- its end ----------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("code,exit_code,signal", [("import os; os.kill(os.getpid(), 9)", None, 9), ("import os; os._exit(3)", 3, None)])
def test_a_dead_one_says_so(context, code, exit_code, signal):
    got = context.call(code)
    assert (got["exit_code"], got["signal"], got["context_state"]) == (exit_code, signal, "dead"), got
    shown = context.box.daemon.get(context.at).json
    assert (shown["state"], shown["exit_code"], shown["signal"]) == ("dead", exit_code, signal), shown
    refused = context.call("1", status=409)
    assert refused["code"] == "context.dead" and "restart" in refused["detail"], refused
    assert (context.post("interrupt").status, context.post("interrupt").json["code"]) == (409, "context.dead")
    assert context.post("restart").json["state"] == "idle"
    assert context.value("1") == "1"


@pytest.mark.root
def test_one_that_does_not_start_again_says_so_to_all(box, daemon):
    """Also to a call that came before that was known: nothing waits for it, and the sandbox goes on."""
    box.exec("mkdir /tmp/d")
    context = Context(box, cwd="/tmp/d")
    box.exec("rmdir /tmp/d")
    assert context.call("import os; os._exit(3)")["context_state"] == "dead"
    got = {}
    threads = [threading.Thread(target=lambda what=what, body=body: got.__setitem__(what, daemon.post(f"{context.at}/{what}", body)))
               for what, body in (("restart", {}), ("execute", {"code": "1"}))]
    guest = wait_for(lambda: found if len(found := daemon.processes("cloche-guest")) == 1 else None)[0]
    os.kill(guest, signal.SIGSTOP)
    try:
        threads[0].start()
        assert wait_for(lambda: context.state() != "dead")
        threads[1].start()
        assert wait_for(lambda: context.state() == "busy")
    finally:
        os.kill(guest, signal.SIGCONT)
    for thread in threads:
        if thread.ident is not None:
            thread.join(60)
    assert {what: answer.json["code"] for what, answer in got.items()} == {"restart": "exec.cwd", "execute": "exec.cwd"}, got
    assert daemon.get(context.at).status == 404
    assert box.exec(["true"])["exit_code"] == 0 and Context(box).value("1") == "1"


def test_leaving_by_exit_is_no_end(context):
    assert context.call("exit(3)")["exit_code"] == 3
    assert context.call("exit()")["error"] is None
    assert context.state() == "idle"


def test_there_is_a_limit(box):
    for _ in range(16):
        Context(box)
    answer = box.daemon.post(f"{box.at}/contexts", {"language": "python"})
    assert (answer.status, answer.json["code"]) == (429, "context.many"), answer


def test_an_idle_context_keeps_no_sandbox_alive(daemon):
    box = daemon.create(name="idle", idle_timeout=2)
    Context(box).out("x = 1")
    assert wait_for(lambda: box.show()["state"] == "stopped"), box.show()


# --- results ----------------------------------------------------------------------------------------------------------

RICH = """
class Table:
    def __repr__(self): return 'a table'
    def _repr_html_(self): return '<table>\u20ac</table>'
    def _repr_svg_(self): return '<svg/>'
    def _repr_png_(self): return b'\\x89PNG'
    def _repr_json_(self): return {'rows': [1, 2.5, None]}
    def _repr_latex_(self): raise ValueError('not now')
class Bundle:
    def _repr_mimebundle_(self, include=None, exclude=None): return {'text/html': '<b/>', 'text/plain': 'b', 'x/unknown': 'y'}
"""


def test_results_in_many_forms(context):
    context.out(RICH)
    got = context.call("display(Table(), 5)\nprint('out')\nTable()")
    table = {"text": "a table", "html": "<table>€</table>", "svg": "<svg/>", "png": base64.b64encode(b"\x89PNG").decode(),
             "json": {"rows": [1, 2.5, None]}}
    assert got["results"] == [{"main": False, **table}, {"main": False, "text": "5"}, {"main": True, **table}], got
    assert got["stdout"] == "out\n" and got["error"] is None and got["results_truncated"] is False
    assert context.call("Bundle()")["results"] == [{"main": True, "text": "b", "html": "<b/>"}]
    assert context.call("Table")["results"][0].keys() == {"main", "text"}


def test_an_error_is_as_python_shows_it(context):
    got = context.call("def f():\n    return 1 / 0\nf()")
    assert got["exit_code"] == 1 and got["error"]["name"] == "ZeroDivisionError" and got["error"]["value"] == "division by zero", got
    assert got["stderr"] == got["error"]["traceback"]
    assert got["stderr"].startswith('Traceback (most recent call last):\n  File "<cell 1>", line 3, in <module>\n    f()\n'), got["stderr"]
    assert "<string>" not in got["stderr"]
    assert context.call("x = =")["error"]["name"] == "SyntaxError"
    asked = context.call("input('name? ')")
    assert asked["error"]["name"] == "EOFError" and "context" in asked["error"]["value"], asked


def test_await_at_the_top(context):
    assert context.value("import asyncio\nawait asyncio.sleep(0, 'awaited')") == "'awaited'"
    answer = context.later("await asyncio.sleep(600)")
    context.post("interrupt")
    assert answer().json["error"]["name"] == "KeyboardInterrupt"
    assert context.value("await asyncio.sleep(0, 1)") == "1"


PYPLOT = """
class Figure:
    def __init__(self, n): self.n = n
    def __repr__(self): return 'figure %d' % self.n
    def savefig(self, file, format, bbox_inches=None): file.write(('%s of %d' % (format, self.n)).encode())
open_ones = []
def get_fignums(): return list(open_ones)
def figure(n): return Figure(n)
def plot(): open_ones.append(len(open_ones) + 1)
def close(which): open_ones.clear()
"""


def test_figures_are_shown_when_the_call_ends(context, box):
    """By a package that has matplotlib's names: the real one is in no test's sandbox."""
    assert box.daemon.post(f"{box.at}/dirs/matplotlib", None).ok
    assert box.put("matplotlib/__init__.py", b"").ok and box.put("matplotlib/pyplot.py", PYPLOT.encode()).ok
    got = context.call("import os\nimport matplotlib.pyplot as plt\nplt.plot(); plt.plot()\nprint(os.environ['MPLBACKEND'])")
    assert got["stdout"] == "agg\n"
    assert got["results"] == [{"main": False, "text": f"figure {n}", "png": base64.b64encode(b"png of %d" % n).decode(),
                               "svg": f"svg of {n}"} for n in (1, 2)], got
    assert context.call("1;")["results"] == []


def test_a_module_of_the_workspace_is_not_the_drivers(box):
    assert box.put("json.py", b"raise SystemExit('planted')").ok
    assert Context(box).value("1") == "1"


# --- output -----------------------------------------------------------------------------------------------------------

def test_ten_mebibytes_of_output(daemon):
    box = daemon.create(name="loud", policy={"limits": {"output": "32m"}})
    context = Context(box)
    got = context.call("import sys\nfor _ in range(160): print('x' * 65535)\nprint('e' * (1 << 20), file=sys.stderr)\n'end'")
    assert len(got["stdout"]) == 10 << 20 and not got["stdout_truncated"] and len(got["stderr"]) == (1 << 20) + 1, got["exit_code"]
    assert got["results"] == [{"main": True, "text": "'end'"}]
    assert context.value("1") == "1"


def test_output_is_cut_at_the_policys_limit(daemon):
    context = Context(daemon.create(name="short", policy={"limits": {"output": "1k"}}))
    got = context.call("print('x' * 5000)\n6 * 7")
    assert got["stdout"] == "x" * 1024 and got["stdout_truncated"] and got["results"][0]["text"] == "42", got
    assert context.out("print(1)") == "1\n"
    got = context.call("display('x' * 5000)\nprint('y' * 1000)")
    assert got["stdout"] == "y" * 1000 + "\n" and not got["stdout_truncated"] and len(got["results"]) == 1, got


def test_events_come_while_it_runs(context):
    box = context.box
    connection = box.daemon.connection()
    connection.request("POST", f"{context.at}/execute", body=json.dumps({"code": "import time\nprint('now')\nopen('said', 'w')\nwhile True: time.sleep(1)"}),
                       headers={"Content-Type": "application/json", "Accept": "text/event-stream", **box.daemon.credential()})
    response = connection.getresponse()
    assert [response.readline() for _ in range(2)] == [b"event: stdout\n", b'data: {"data":"now\\n"}\n']
    assert context.post("interrupt").status == 200
    rest = response.read().decode()
    assert "event: exit\n" in rest and '"name":"KeyboardInterrupt"' in rest and '"context_state":"idle"' in rest, rest


def test_what_is_written_between_calls_is_nobodys(context):
    context.out("import threading, time\ndef late():\n    time.sleep(0.3); print('late'); open('done', 'w')\nthreading.Thread(target=late).start()")
    assert wait_for(lambda: context.box.daemon.get(f"{context.box.at}/stat/done").ok)
    assert context.out("print('mine')") == "mine\n"


def test_what_is_left_running_keeps_no_call(context):
    got = context.call("import subprocess\np = subprocess.Popen(['sh', '-c', 'while :; do echo y; done'])\nprint('over')", timeout_ms=20000)
    assert not got["timed_out"] and "over\n" in got["stdout"], got["exit_code"]
    assert context.call("p.kill(); p.wait()")["exit_code"] == 0


# --- other languages --------------------------------------------------------------------------------------------------

def test_javascript(box):
    context = Context(box, "javascript")
    context.out("let x = 40; const add = (y) => x + y; var os = require('os')")
    got = context.call("console.log('out'); console.error('err'); add(2)")
    assert (got["stdout"], got["stderr"], got["results"]) == ("out\n", "err\n", [{"main": True, "text": "42"}]), got
    assert context.call("display({a: 1}); x += 1;")["results"] == [{"main": False, "text": "{ a: 1 }"}, {"main": True, "text": "41"}]
    assert context.value("await new Promise((done) => setTimeout(() => done('later'), 1))") == "'later'"
    got = context.call("null.x")
    assert got["exit_code"] == 1 and got["error"]["name"] == "TypeError" and "<cell 5>:1" in got["stderr"] and "node:" not in got["stderr"], got
    for endless in ("while (true) x;", "await new Promise(() => {})"):
        answer = context.later(endless)
        assert context.post("interrupt").status == 200
        got = answer().json
        assert (got["exit_code"], got["error"]["name"], got["context_state"]) == (130, "Interrupted", "idle"), got
    assert context.value("x") == "41"
    # the mark of a call is not in what its children have
    assert context.value("require('child_process').execSync('cd /proc/self/fd; echo *').toString()") == "'0 1 2 3\\n'"
    assert context.call("process.exit(3)")["context_state"] == "dead"
    assert context.post("restart").json["state"] == "idle"
    assert context.call("x")["error"]["name"] == "ReferenceError"


ENDLESS = {
    "python": (("while True: pass", "import time; time.sleep(600)", "while True: display('y' * 9000)", "await asyncio.sleep(600)"),
               "kept = 41; import asyncio", lambda context: context.value("kept")),
    "javascript": (("while (true) kept;", "await new Promise(() => {})", "for (;;) display('y'.repeat(9000))", "(async () => { await 1; await new Promise(() => {}) })()"),
                   "let kept = 41", lambda context: context.value("kept")),
    "shell": (("while :; do :; done", "g() { while :; do sleep 0.01; done; }; g", "sleep 600 & wait", "sleep 600 | cat",
               "sleep 0 & wait $!; while ((1)); do ((x++)); done"),
              "kept=41", lambda context: context.out("sleep 0 & wait $!; ((!$?)) && echo $kept").strip()),
}


@pytest.mark.parametrize("language", ENDLESS)
def test_an_interrupt_strikes_the_call_that_it_is_for(box, language):
    """Early, late, and twice: the call after it has its result."""
    codes, keep, kept = ENDLESS[language]
    context = Context(box, language)
    context.call(keep)
    for n in range(rounds(8, 40)):
        answer = context.later(codes[n % len(codes)])
        for _ in range(1 + n % 3):
            assert context.post("interrupt").status == 200
        got = answer().json
        assert (got["exit_code"], got["context_state"]) == (130, "idle"), (n, got)
        if language != "shell":
            assert got["error"]["name"] in ("KeyboardInterrupt", "Interrupted"), (n, got)
        assert kept(context) == "41", n


def test_bash_keeps_no_signal_for_a_later_wait(box):
    """It notes one that comes behind a `wait`, and would end the next one with it, in whatever call."""
    context = Context(box, "shell")
    answer = context.later(": >began; wait; while ((1)); do ((x++)); done")
    assert wait_for(lambda: box.daemon.get(f"{box.at}/stat/began").ok) and context.post("interrupt").status == 200
    assert answer().json["exit_code"] == 130
    assert context.out("sleep 0.1 & wait $!; echo $?") == "0\n"
    # a job in the background has SIGINT ignored, as in any script
    answer = context.later("sleep 600 & until [[ $(</proc/$!/comm) = sleep ]]; do :; done; : >job; wait")
    assert wait_for(lambda: box.daemon.get(f"{box.at}/stat/job").ok)
    assert context.post("interrupt").status == 200 and answer().json["exit_code"] == 130
    assert context.out("kill -0 $! && kill $!") == ""
    # and what only looks like one is none
    assert context.call("(exit 151)")["exit_code"] == 151
    assert context.call("set -e; trap 'echo failed' ERR")["context_state"] == "idle"
    assert context.out("echo on") == "on\n"


def test_what_a_call_kept_away_strikes_no_later_one(context, box):
    """A signal that it blocked; and one with the default action, which comes when the call is over."""
    answer = context.later("import os, signal, time\nblock = lambda how: signal.pthread_sigmask(how, [signal.SIGINT])\n"
                           "block(signal.SIG_BLOCK)\nopen('blocked', 'w').close()\nwhile not os.path.exists('go'): time.sleep(0.01)")
    assert wait_for(lambda: box.daemon.get(f"{box.at}/stat/blocked").ok) and context.post("interrupt").status == 200
    assert box.put("go", b"").ok
    assert (answer().json["exit_code"], answer().json["error"]) == (0, None), answer().json
    assert context.call("block(signal.SIG_UNBLOCK);")["error"] is None
    pid = context.value("signal.signal(signal.SIGINT, signal.SIG_DFL)\nos.getpid()")
    assert box.exec(["kill", "-INT", pid])["exit_code"] == 0
    assert context.value("1") == "1"
    # and the signal is not kept from the code
    assert context.call("os.kill(os.getpid(), signal.SIGINT)\ntime.sleep(60)")["signal"] == 2


def test_code_cannot_break_the_driver_of_javascript(box):
    """Whatever it changes in the objects that both have: the next call is answered as ever."""
    context = Context(box, "javascript")
    for code in (
        "for (const k of ['writeSync', 'readSync', 'read', 'write']) require('fs')[k] = () => { throw 4 };",
        "Object.prototype.timeout = 'x'; Object.prototype.toJSON = () => 'fake'; Object.prototype.then = 3;",
        "Array.prototype.push = Array.prototype.map = Array.prototype[Symbol.iterator] = () => { throw 1 };",
        "JSON.stringify = JSON.parse = String.prototype.slice = String.prototype.indexOf = String.prototype.padStart = () => 'fake';",
        "Object.defineProperty(Array.prototype, '0', { set() { throw 2 }, get() { return 'fake' } }); null",
        "Buffer.from = Buffer.concat = Buffer.alloc = Buffer.prototype.toString = Buffer.prototype.subarray = () => { throw 3 };",
        "globalThis.Symbol = globalThis.String = globalThis.Atomics = globalThis.Uint8Array = undefined;",
        "process.stdout.write = process.stderr.write = () => { throw 5 }; process.stdout.cork();",
        "process.reallyExit = process.on = () => { throw 6 }; Promise.prototype.then = Function.prototype.call = Function.prototype.bind = undefined;",
        "try { __cloche_context() } catch {} try { globalThis.__cloche_context = 1 } catch {}",
    ):
        got = context.call(code)
        assert (got["exit_code"], got["context_state"]) == (0, "idle"), (code, got)
        assert context.call("1 + 1")["results"] == [{"main": True, "text": "2"}], code
    assert context.call("await new Promise(() => {})", timeout_ms=500)["context_state"] == "idle"
    assert context.call("null.x")["error"]["name"] == "TypeError"


def test_what_javascript_does_between_calls_is_nobodys(box):
    context = Context(box, "javascript")
    context.call("const done = () => require('fs').writeFileSync('done', '');\n"
                 "setTimeout(() => { console.log('late'); Promise.reject(new Error('late')); setTimeout(done, 20) }, 20);")
    assert wait_for(lambda: box.daemon.get(f"{box.at}/stat/done").ok)
    got = context.call("console.log('mine')")
    assert (got["stdout"], got["stderr"], got["error"]) == ("mine\n", "", None), got
    # the value of what was interrupted comes in no other call
    answer = context.later("let settle; globalThis.late = new Promise((done) => { settle = done }); await late")
    assert context.post("interrupt").status == 200
    assert answer().json["exit_code"] == 130
    assert context.call("await (async () => { settle('old'); await 0; await 0; })()")["results"] == []
    assert context.call("await 1; process.exit(3)")["exit_code"] == 3 and context.state() == "dead"


def test_import_works_in_javascript(box):
    context = Context(box, "javascript")
    got = context.call("(await import('os')).EOL")
    assert (got["results"], got["stderr"]) == ([{"main": True, "text": "'\\n'"}], ""), got


def test_the_driver_of_shell_is_not_in_its_trace(box):
    context = Context(box, "shell")
    assert context.call("set -x; x=1")["stderr"] == "++ x=1\n"
    assert context.call("y=2")["stderr"] == "++ y=2\n"
    assert context.call("builtin() { :; }; set +x")["exit_code"] == 0
    assert context.out("echo $x $y") == "1 2\n"
    context.call("exec 2>&1")
    assert context.call("echo err >&2")["stdout"] == "err\n"


def test_much_output_of_javascript_is_whole(box):
    context = Context(box, "javascript")
    got = context.call("for (let i = 0; i < 9000; i++) console.log('x'.repeat(99))\nprocess.stderr.write('e'.repeat(300000))\n'end'")
    assert len(got["stdout"]) == 900000 and len(got["stderr"]) == 300000 and got["results"][0]["text"] == "'end'", got["exit_code"]


def test_shell(box):
    context = Context(box, "shell")
    context.out("x=40; f() { echo $((x + $1)); }; cd /tmp")
    got = context.call("f 2; pwd; echo err >&2; false")
    assert (got["stdout"], got["stderr"], got["exit_code"], got["error"]) == ("42\n/tmp\n", "err\n", 1, None), got
    for endless in ("while :; do :; done", "g() { while :; do sleep 0.01; done; }; h() { g; echo not; }; h; echo not", "sleep 600; echo not"):
        answer = context.later(endless)
        assert context.post("interrupt").status == 200
        got = answer().json
        assert (got["exit_code"], got["stdout"], got["context_state"]) == (130, "", "idle"), got
    assert context.out("set -u; echo $x") == "40\n"
    assert context.call("if")["exit_code"] == 2
    assert context.out("bash -c 'cd /proc/self/fd; echo *'") == "0 1 2 3\n"
    assert context.call("read y < /dev/stdin")["exit_code"] == 1
    assert context.out("exec >/tmp/log; echo hidden") == "" and context.call("cat /tmp/log >&2")["stderr"] == "hidden\n"
    assert context.call("exit 4")["exit_code"] == 4 and context.state() == "dead"


# --- strangers --------------------------------------------------------------------------------------------------------

def test_output_is_no_frame(context):
    got = context.call("print('\\1' * 40 + 'L0000')\nprint('\\1' + '0' * 32 + 'E00010')")
    assert got["stdout"] == "\1" * 40 + "L0000\n\1" + "0" * 32 + "E00010\n" and got["results"] == [], got


# The driver's own things, as code in its process finds them.
STEAL = """
import gc, types, os
cells = {}
for f in gc.get_objects():
    if isinstance(f, types.FunctionType) and f.__name__ in ('say', 'tell', 'end') and f.__closure__:
        cells[f.__name__] = f
say = cells['say']
free = dict(zip(say.__code__.co_freevars, say.__closure__))
out = dict(zip(cells['tell'].__code__.co_freevars, cells['tell'].__closure__))['out'].cell_contents
mark = free['mark'].cell_contents
def raw(b): os.write(out, b)
"""


@pytest.mark.parametrize("lie", [
    "raw(b'\\1' + mark + b'Q0000')",                                    # no such frame
    "raw(b'\\1' + mark + b'Lffff')",                                    # one that is too long
    "raw(b'\\1' + mark + b'E0003999')",                                 # no such code
    "raw(b'\\1' + mark + b'B0000')",                                    # it has begun
])
def test_a_driver_that_says_what_none_says_is_killed(context, lie):
    got = context.call(STEAL + lie + "\nimport time; time.sleep(600)")
    assert got["signal"] == 9 and got["context_state"] == "dead", got
    assert context.post("restart").status == 200 and context.value("1") == "1"


@pytest.mark.parametrize("lie,results", [
    ("say(out, b'L', b'')", 0), ("say(out, b'L', b'main 9\\n1')", 0), ("say(out, b'L', b'main 1\\n1secret 1\\n1')", 0),
    ("say(out, b'L', b'main 1\\n1png 3\\n<b>')", 1), ("say(out, b'L', b'main 1\\n1json 9\\n[[[[[[[[[')", 1),
    ("say(out, b'L', b'main 1\\n1text 2\\n\\xff\\xfe')", 1), ("say(out, b'L', b'main 1\\n1name 1\\nx')", 0),
])
def test_a_malformed_result_is_none(context, lie, results):
    got = context.call(STEAL + lie)
    assert len(got["results"]) == results and got["results_truncated"] == (results == 0) and got["context_state"] == "idle", got
    assert all(set(r) <= {"main", "text"} for r in got["results"]), got


def test_a_flood_of_results_is_cut(context):
    got = context.call("for i in range(400): display(i)")
    assert len(got["results"]) == 256 and got["results_truncated"], len(got["results"])
    got = context.call("for i in range(30): display('x' * 900000)")
    assert 0 < len(got["results"]) < 10 and got["results_truncated"], len(got["results"])
    assert context.value("1") == "1"


def test_a_driver_that_lies_about_its_end_ends_itself_alone(context):
    """The call is over when that is said; what the code still writes is nobody's, and the next call waits for its turn."""
    got = context.call(STEAL + "cells['end'](7)\nprint('later')\nx = 1")
    assert (got["exit_code"], got["stdout"]) == (7, ""), got
    other = Context(context.box)
    assert other.value("1") == "1"


def test_time_is_never_over_behind_the_end(daemon):
    """The call has ended, and only stderr's word of it is still to come: nothing is left to interrupt or to kill."""
    context = Context(daemon.create(name="brief", policy={"limits": {"grace": "50ms"}}))
    assert context.value("1") == "1"
    got = context.call(STEAL + "say(out, b'E', b'7')\nimport time; time.sleep(1.5)", timeout_ms=800)
    assert (got["exit_code"], got["timed_out"], got["context_state"]) == (7, False, "idle"), got
    assert context.value("1") == "1"


def test_a_driver_that_hangs_is_killed_in_time(context):
    context.out("import signal, time\nsignal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])")
    got = context.call("time.sleep(600)", timeout_ms=200)
    assert got["timed_out"] and got["context_state"] == "dead", got


# --- requests ---------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("body,code", [
    ({}, "context.request"), ([], "context.request"), ({"language": 1}, "context.request"), ({"language": "cobol"}, "context.language"),
    ({"language": "python", "pty": {}}, "context.request"), ({"language": "python", "env": 1}, "exec.request"),
    ({"language": "python", "limits": {"time": "1s"}}, "context.request"),
    ({"language": "python", "limits": {"output": "1k"}}, "context.request"),
])
def test_malformed_beginnings(box, body, code):
    answer = box.daemon.post(f"{box.at}/contexts", body)
    assert (answer.status, answer.json["code"]) == (400, code), answer


@pytest.mark.parametrize("body,status,code", [
    ({}, 400, "context.request"), ({"code": 1}, 400, "context.request"), ({"code": "1", "stdin": ""}, 400, "context.request"),
    ({"code": "a\0b"}, 400, "http.json"), ({"code": "1", "timeout_ms": 0}, 400, "exec.request"),
    ({"code": "#" * 130000}, 413, "exec.too-long"),
])
def test_malformed_calls(context, body, status, code):
    answer = context.box.daemon.post(f"{context.at}/execute", body)
    assert (answer.status, answer.json["code"]) == (status, code), answer
    assert context.value("1") == "1"


def test_a_command_is_no_context(box):
    begun = box.daemon.post(f"{box.at}/exec", {"command": "sleep 600", "background": True}).json["exec_id"]
    at = f"{box.at}/contexts/{begun}"
    for answer in (box.daemon.get(at), box.daemon.post(f"{at}/execute", {"code": "1"}), box.daemon.post(f"{at}/interrupt", {}),
                   box.daemon.post(f"{at}/restart", {}), box.daemon("DELETE", at)):
        assert (answer.status, answer.json["code"]) == (404, "context.unknown"), answer
    assert box.daemon.get(f"{box.at}/exec/{begun}").json["state"] == "running"


def test_a_context_is_no_command(context):
    """It is none that is signalled, written to, followed or ended as such."""
    box, at = context.box, f"{context.box.at}/exec/{context.id}"
    context.out("x = 1")
    for answer in (box.daemon.get(at), box.daemon.get(f"{at}/stream"), box.daemon.post(f"{at}/signal", {"signal": "KILL"}),
                   box.daemon("POST", f"{at}/stdin", b"x"), box.daemon.post(f"{at}/resize", {"rows": 9, "cols": 9}), box.daemon("DELETE", at)):
        assert (answer.status, answer.json["code"]) == (404, "exec.unknown"), answer
    assert context.state() == "idle" and context.value("x") == "1"


def test_limits_of_a_context_are_its_own(box):
    begun = box.daemon.post(f"{box.at}/contexts", {"language": "python", "limits": {"memory": "48m"}})
    if begun.status == 409:
        pytest.skip("no cgroup for it: " + begun.json["code"])
    at = f"{box.at}/contexts/{begun.json['context_id']}"
    got = box.daemon.post(f"{at}/execute", {"code": "x = bytearray(200 << 20)"}).json
    assert got["oom_killed"] and got["limit_reached"]["of"] == "command" and got["context_state"] == "dead", got
    assert box.daemon.post(f"{at}/restart", {}).json["state"] == "idle"
    assert box.daemon.post(f"{at}/execute", {"code": "print(1)"}).json["stdout"] == "1\n"
    assert box.exec(["true"])["exit_code"] == 0


def test_variables_of_a_context_are_not_in_the_transcript(box):
    context = Context(box, env={"TOKEN": "a-value-that-nobody-is-to-see"})
    show = "import os\nprint(os.environ['TOKEN'])"
    assert context.out(show) == "a-value-that-nobody-is-to-see\n"
    assert context.post("restart").status == 200
    context.out(show)
    said = json.dumps(box.daemon.get(f"{box.at}/transcript").json["entries"])
    assert "a-value-that" not in said and said.count("[variable TOKEN]") == 2, said


def test_they_are_in_the_record(context, box):
    context.out("print('in the record')")
    context.post("restart")

    def entries():
        found = box.daemon.get("/v1/audit?limit=200").json["entries"]
        return [(e["metadata"].get("capability"), e["metadata"].get("context") or e["metadata"].get("context_new")) for e in found]
    assert wait_for(lambda: any(c and "restart" in c for c, _ in entries())), entries()
    assert ("exec", True) in entries() and ("exec", int(context.id)) in entries(), entries()


@requirement("R63")
def test_an_agents_contexts_are_judged_with_their_code(cloche):
    daemon = Daemon(cloche, gate=None)
    try:
        agent = caller(daemon, "agent")
        box = agent.create()

        def approved(path, body, params):
            asking = Asking(agent, "POST", path, body)
            asked = one_pending(daemon)
            assert (asked["tool"], asked["params"]) == ("code_execute", params), asked
            assert daemon.post(f"/v1/approvals/{asked['id']}/approve").ok
            return asked["rule"], asking.wait()
        rule, made = approved(f"{box.at}/contexts", {"language": "python"},
                              {"language": "python", "code": "", "context": "new", "stdin": False, "background": True})
        assert (rule, made.status) == ("code", 201), made
        known = made.json["context_id"]
        rule, got = approved(f"{box.at}/contexts/{known}/execute", {"code": "__import__('os').getpid() > 0"},
                             {"language": "python", "code": "__import__('os').getpid() > 0", "context": known, "stdin": False})
        assert (rule, got.json["results"]) == ("code-dangerous", [{"main": True, "text": "True"}]), got
    finally:
        daemon.stop()
