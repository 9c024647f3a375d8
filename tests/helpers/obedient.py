"""A sandbox on the near host of an Internet that does one thing after the other, as it is told."""
import json
import os
import signal
import subprocess

from helpers import leaks
from helpers.internet import ECHO, PRELUDE
from helpers.runner import wait_for

# Obeys lines of standard input, each one a Python expression, and prints what it gives.
OBEY = PRELUDE + """
import threading
held, later, kept = [], {}, get
def get(host, path='/'): return kept(host, path, CLOSE)
def tunnel(host='ok.example.org'):
    s, got = connect('%%s:%d' %% host, seconds=60)
    if b' 200 ' not in got: return got.split(b'\\r\\n')[0]
    s.sendall(b'one'); held.append(s); return s.recv(3)
def broken():
    try: held[-1].sendall(b'two'); return held[-1].recv(3) == b''
    except OSError: return True
def page(path='/', host='ok.example.org', seconds=60):
    return talk(P, get(host, 'http://' + host + path), seconds).split(b'\\r\\n\\r\\n')[-1]
def direct(address, name='ok.example.org'): return talk((address, 80), get(name)).split(b'\\r\\n')[0]
def code(what):
    try: what(); return 'OPENED'
    except OSError as e: return errno.errorcode.get(e.errno, e)
def go(name, what):
    def run():
        try: later[name] = what()
        except Exception as e: later[name] = repr(e)
    t = threading.Thread(target=run); t.start(); later['thread ' + name] = t; return 'started'
def get_of(name): later['thread ' + name].join(); return later[name]
print('up', flush=True)
for line in sys.stdin: print(eval(line), flush=True)
""" % ECHO


class Obedient:
    def __init__(self, online, allow=("ok.example.org", f"ok.example.org:{ECHO}"), flags=(), report=True, process=None):
        self.report_file = online.net.root / "report.json"
        more = ["--report", str(self.report_file)] if report else []
        self.process = process or online.popen(["/usr/bin/python3", "-I", "-S", "-c", OBEY], allow=allow, flags=[*more, *flags],
                                               stdin=subprocess.PIPE)
        assert self.process.stdout.readline() == b"up\n", self.process.communicate()

    def do(self, expression):
        self.process.stdin.write(expression.encode() + b"\n")
        self.process.stdin.flush()
        return self.process.stdout.readline().decode().strip()

    def end(self):
        _, err = self.process.communicate(timeout=60)
        assert self.process.returncode == 0, err
        return err.decode(), json.loads(self.report_file.read_text(encoding="utf-8"))

    def finish(self):
        """However it ends."""
        if self.process.poll() is None:
            self.process.communicate(timeout=60)


def kill_egress(known):
    """Kill the one that lives; @known are those that were killed before."""
    new = wait_for(lambda: [p for p in leaks.named("cloche-egress") if p not in known])
    assert len(new) == 1, (new, known)
    os.kill(new[0], signal.SIGKILL)
    known.append(new[0])
