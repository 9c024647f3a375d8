"""Inside, nobody answers for the owner: the approval socket, forged decisions, floods of questions, and egress killed
at random moments while what reaches the outside is counted."""
import os
import random
import signal
import subprocess
import threading

import pytest

from helpers import leaks, requirement
from helpers.internet import DNS4, ECHO, PRELUDE, SITE4
from helpers.obedient import Obedient
from helpers.runner import wait_for

pytestmark = [requirement("R13", "R28", "R44"), pytest.mark.root]

# Asks for a host, and tries to answer for the owner by every socket that it can find or name.
FORGE = PRELUDE + """
import glob, threading
threading.Thread(target=lambda: talk(P, get('ok.example.org', 'http://ok.example.org/forged', CLOSE), 20), daemon=True).start()
def tries(path):
    for kind in (socket.SOCK_SEQPACKET, socket.SOCK_STREAM, socket.SOCK_DGRAM):
        try:
            s = socket.socket(socket.AF_UNIX, kind)
            s.settimeout(2); s.connect(path); print('CONNECTED', path)
            for n in range(1, 4):
                s.send(json.dumps({'do': 'answer', 'id': n, 'allow': True, 'scope': 'sandbox'}).encode())
            print('ANSWERED' if s.recv(4096) else 'CLOSED', path)
        except OSError: pass
seen = 0
for top in sys.argv[1:]:
    for base, dirs, files in os.walk(top, onerror=lambda e: None):
        for f in files:
            seen += 1
            if f.endswith(('.sock', '.json')): print('SEEN', os.path.join(base, f))
            if f.endswith('.sock'): tries(os.path.join(base, f))
    for i in range(1, 40):
        for path in glob.glob('/proc/%d/fd/*' % i) + glob.glob('/proc/%d/root' % i): tries(path + '/x.sock')
try:
    with open('/proc/net/unix') as f:
        for line in f.read().splitlines()[1:]:
            name = line.split()[-1]
            if 'cloche' in name or '/net/' in name: print('SEEN', name); tries(name)
except OSError: pass
time.sleep(.5)
print('done', seen)
"""


def state_flags(online, how):
    """The state folder where a sandbox is shown its surroundings."""
    state = online.bare.state
    return {"plain": [], "bound": ["--bind", f"{state}:/mnt/state:rw"],
            "parent": ["--bind", f"{state.parent}:/mnt/home:rw"],
            "host": ["--view", "host", "--allow-write", str(state)],
            "workspace": ["--workspace", f"{state}:rw"]}[how]


@pytest.mark.parametrize("how", ["plain", "bound", "parent", "host", "workspace"])
def test_a_sandbox_cannot_answer_for_its_owner(online, how):
    tops = [str(online.bare.state), "/mnt", "/workspace", "/var/lib", "/home"]
    result = online.cloche("run", "--ask", "--ask-timeout", "3s", "--allow-all-unix-sockets", "--timeout", "60",
                           *state_flags(online, how), "--", "/usr/bin/python3", "-I", "-S", "-c", FORGE, *tops)
    assert result.ok and "done" in result.out, result
    assert "ANSWERED" not in result.out and "CONNECTED" not in result.out and "SEEN" not in result.out, result
    assert not online.net.reached() and not online.net.asked() and not online.net.requests


def test_the_attack_is_real_outside(online):
    """The same request from the owner's own process is answered."""
    box = Obedient(online, allow=(), flags=["--ask"])
    try:
        box.do("go('a', lambda: page('/real'))")
        assert wait_for(lambda: online.bare("approvals", "--json").json["questions"])
        code = f"""
import glob, json, os, socket
path = glob.glob({str(online.bare.state)!r} + '/cloche/net/*.sock')[0]
s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET); s.connect(path)
s.send(json.dumps({{'do': 'answer', 'id': 1, 'allow': True, 'scope': 'once'}}).encode()); print(s.recv(4096).decode())
"""
        said = online.bare.run(["/usr/bin/python3", "-I", "-S", "-c", code])
        assert '"ok":true' in said.out, said
        assert "hello" in box.do("get_of('a')")
    finally:
        box.finish()


ASK_OVER = """
import glob, json, socket, sys
path = glob.glob(sys.argv[1] + '/cloche/net/*.sock')[0]
s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
try:
    s.settimeout(5); s.connect(path); s.send(b'{"do":"flush"}'); print('got', s.recv(4096))
except OSError as e: print('refused', e)
"""


@pytest.mark.parametrize("who", ["other-user", "user-namespace", "pid-namespace", "seccomp"])
def test_who_is_listened_to(online, who, command):
    """Even whoever can name the socket: another user, a confined process of the same user."""
    box = Obedient(online)
    try:
        state = online.bare.state
        for path in (state, state / "cloche", state / "cloche" / "net", *(state / "cloche" / "net").glob("*.sock")):
            path.chmod(0o777)       # what no mistake about modes may open
        words = {
            "other-user": ["setpriv", "--reuid=65534", "--clear-groups"],
            "user-namespace": ["unshare", "--user", "--map-root-user"],
            "pid-namespace": ["unshare", "--pid", "--fork"],
            "seccomp": [str(online.bare.binary), "run", "--mode", "light", "--allow-all-unix-sockets",
                        "--allow-read", str(state / "cloche"), "--"],
        }[who]
        said = command([*words, "/usr/bin/python3", "-I", "-S", "-c", ASK_OVER, str(state)], check=who != "seccomp")
        assert "got b''" in said.out or "refused" in said.out or "[policy.own-folder]" in said.err, said
        own = command(["/usr/bin/python3", "-I", "-S", "-c", ASK_OVER, str(state)])
        assert '"ok":true' in own.out, own
    finally:
        box.finish()


def test_a_flood_of_questions_is_bounded(online):
    code = PRELUDE + """
held = []
for i in range(400):
    s = dial(*P); s.sendall(get('f%d.example.org' % i, 'http://f%d.example.org/' % i, CLOSE)); held.append(s)
for i in range(400):
    s = dial(*P); s.sendall(get('f1.example.org', 'http://f1.example.org/', CLOSE)); held.append(s)
refused = [b'ask-too-many' in drain(s, 20) for s in held[32:400]]
print(all(refused), flush=True)
print('hello' in talk(P, get('a.example.org', 'http://a.example.org/', CLOSE), 20).decode(), flush=True)
sys.stdin.readline()
"""
    process = online.popen(["/usr/bin/python3", "-I", "-S", "-c", code], allow=("a.example.org",),
                           flags=["--ask", "--nofile", "4096"], stdin=subprocess.PIPE)
    try:
        assert [process.stdout.readline() for _ in range(2)] == [b"True\n", b"True\n"]
        questions = online.bare("approvals", "--json").json["questions"]
        assert len(questions) == 32 and len({q["host"] for q in questions}) == 32
        # the owner is heard through the flood, and only what was said passes
        one = next(q for q in questions if q["host"] == "f0.example.org")
        assert online.bare("approvals", "deny", one["id"], "--sandbox").ok
    finally:
        _, err = process.communicate(b"\n", timeout=60)
    assert err.count(b"waits for your decision") == 1, err
    assert online.net.asked() <= {"a.example.org"} and online.net.reached() <= {(6, SITE4, 80)}


@requirement("R91")
@pytest.mark.slow
def test_killed_at_random_moments_it_never_opens(online):
    """Transfers, refusals and attempts go on while cloche-egress is killed again and again; outside, only what was
    allowed is ever seen."""
    code = """
import threading
stop = time.monotonic() + 12
def allowed():
    while time.monotonic() < stop:
        try:
            s, head = connect('ok.example.org:%d', seconds=5); s.settimeout(5)
            for _ in range(50): s.sendall(b'x' * 4096); s.recv(4096)
        except OSError: pass
def denied():
    while time.monotonic() < stop:
        for go in (lambda: talk(P, get('evil.example.org', 'http://evil.example.org/'), 2),
                   lambda: connect('evil.example.org:443', seconds=2), lambda: connect('ok.example.org:22', seconds=2),
                   lambda: talk(('93.184.216.35', 80), get('evil.example.org'), 2),
                   lambda: talk(('93.184.216.34', 443), b'evil', 2), lambda: ask('evil.example.org', seconds=1),
                   lambda: socks(1, bytes([10, 0, 0, 5])), lambda: dial('10.0.0.5', 80, 2)):
            try: go()
            except OSError: pass
threads = [threading.Thread(target=t) for t in (allowed, allowed, denied, denied, denied)]
for t in threads: t.start()
print('up', flush=True)
for t in threads: t.join()
print('done', flush=True)
""" % ECHO
    process = online.popen(["/usr/bin/python3", "-I", "-S", "-c", PRELUDE + code], allow=[f"ok.example.org:{ECHO}"],
                           stdin=subprocess.PIPE)
    assert process.stdout.readline() == b"up\n"
    dice, killed, ended = random.Random(8), [], threading.Event()
    # four times: the fifth within a minute closes the network, which is another test's matter
    while len(killed) < 4:
        ended.wait(dice.uniform(0.05, 1.5))
        new = wait_for(lambda: [p for p in leaks.named("cloche-egress") if p not in killed])
        assert new, killed
        os.kill(new[0], signal.SIGKILL)
        killed.append(new[0])
    out, err = process.communicate(timeout=60)
    assert b"done" in out and err.count(b"cloche-egress ended") == 4, (out, err)
    # an answer that comes for a dead cloche-egress is refused by the kernel, to the server that sent it
    assert online.net.reached() <= {(6, SITE4, ECHO), (1, DNS4, 0)}, online.net.reached()
    assert online.net.asked() == {"ok.example.org"} and online.net.echoed, online.net.asked()
