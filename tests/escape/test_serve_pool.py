"""What is made ahead for one caller's code is nobody else's, and is as walled and as fresh as what is made for it."""
import base64
import json
import os
import signal
import socket
import threading

import pytest

from helpers import probed, requirement
from helpers.daemon import Daemon, answers, kill_one
from helpers.runner import wait_for

pytestmark = requirement("R64", "R69", "R81")


def pool(daemon, which):
    return float(next(x for x in daemon.get("/metrics").body.decode().splitlines() if x.startswith(f"cloche_pool_{which} ")).rsplit(" ", 1)[1])


def parked(daemon):
    return pool(daemon, 'sandboxes{state="parked"}')


def hits(daemon):
    return pool(daemon, 'requests_total{result="hit"}')


def run(daemon, code, token=None, **more):
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    answer = daemon("POST", "/v1/execute", {"language": "python", "code": code, **more}, headers)
    assert answer.status == 200, answer
    return answer.json


def warm(daemon, n=1, **more):
    assert wait_for(lambda: parked(daemon) >= n or not run(daemon, "", **more), 60), daemon.log


def interpreters(daemon):
    """Processes of sandboxes that wait: children of the children of keepers that do."""
    def read(path):
        try:
            with open(path, encoding="utf-8") as f:
                return f.read()
        except OSError:         # it has ended since
            return ""

    def children(pid):
        return [int(x) for x in read(f"/proc/{pid}/task/{pid}/children").split()]

    def name(pid):
        return read(f"/proc/{pid}/comm").strip()
    return [(k, p) for k in daemon.processes("cloche-keeper") if name(k) == "cloche-pooled" for g in children(k) for p in children(g)]


def asks(daemon, n):
    """So many calls at once: some find none that waits."""
    made = [threading.Thread(target=run, args=(daemon, "")) for _ in range(n)]
    for t in made:
        t.start()
    return made


@pytest.fixture
def daemon(cloche):
    made = Daemon(cloche, "--pool", "2")
    yield made
    assert made.stop() == 0, made.log


LEARNS = """
import os, random, sys, uuid, json, hashlib
maps = [x.split()[0] for x in open('/proc/self/maps') if '[stack]' in x or '[heap]' in x or 'libc' in x]
print(json.dumps({'hash': hash('a'), 'random': random.random(), 'bytes': os.urandom(8).hex(), 'maps': maps, 'id': os.environ['CLOCHE_SANDBOX'],
    'canary': hashlib.sha256(open('/proc/self/auxv', 'rb').read()).hexdigest(),
    'fds': {n: os.readlink('/proc/self/fd/' + n) for n in os.listdir('/proc/self/fd') if os.path.exists('/proc/self/fd/' + n)},
    'files': [os.path.join(d, f) for top in ('/tmp', '/workspace', os.environ['HOME'], '/dev/shm') for d, _, fs in os.walk(top) for f in fs],
    'pids': [p for p in os.listdir('/proc') if p.isdigit()]}))
for place in ('/tmp', '/workspace', '/dev/shm'):
    try:
        open(place + '/left', 'w').write('secret')
    except OSError:
        pass
"""


def test_siblings_share_nothing(daemon):
    found = []
    for _ in range(6):
        warm(daemon)
        before = hits(daemon)
        found.append(json.loads(run(daemon, LEARNS)["stdout"]))
        assert hits(daemon) == before + 1
    for name in ("hash", "random", "bytes", "id", "canary"):
        assert len({x[name] for x in found}) == 6, (name, [x[name] for x in found])
    for i, one in enumerate(found):
        assert one["files"] == [], one
        assert sorted(one["fds"]) == ["0", "1", "2"] and all(v.startswith("pipe:") for v in one["fds"].values()), one["fds"]
        assert len(one["pids"]) <= 2, one
        for other in found[:i]:
            assert not set(one["maps"]) & set(other["maps"])
            assert not set(one["fds"].values()) & set(other["fds"].values())
    assert wait_for(lambda: len(interpreters(daemon)) == 2 or not [t.join() for t in asks(daemon, 2)], 60)
    one, two = (pid for _, pid in interpreters(daemon))
    for kind in ("mnt", "net", "pid", "ipc", "uts", "user", "cgroup"):
        assert os.readlink(f"/proc/{one}/ns/{kind}") != os.readlink(f"/proc/{two}/ns/{kind}"), kind


def test_it_stands_behind_the_same_walls(daemon, cloche):
    """Namespaces, capabilities, filter, limits, mounts: as in one that was started for it."""
    asks = """
import os, resource, json
s = dict(x.rstrip('\\n').split(':\\t', 1) for x in open('/proc/self/status') if ':\\t' in x)
m = sorted(' '.join(sorted(x.split(' - ')[1].split()[:1] + x.split()[4:6])) for x in open('/proc/self/mountinfo'))
def tries(f):
    try:
        f(); return 'done'
    except OSError as e:
        return e.errno
import socket, ctypes
c = ctypes.CDLL(None, use_errno=True)
def call(n, *a):
    ctypes.set_errno(0); c.syscall(n, *a); return ctypes.get_errno()
s['NSpid'] = len(s['NSpid'].split())        # the number itself is whose turn it was
print(json.dumps([{k: s[k] for k in ('CapEff', 'CapBnd', 'CapPrm', 'CapInh', 'CapAmb', 'NoNewPrivs', 'Seccomp', 'Seccomp_filters', 'Uid', 'Gid', 'Groups', 'NSpid', 'Threads', 'SigBlk', 'SigIgn')},
    m, [resource.getrlimit(i) for i in range(16)], [call(n, -1, 0, 0, 0, 0) for n in (155, 165, 166, 175, 246, 248, 250, 272, 298, 304, 308, 321, 323, 425, 428, 429, 430, 431, 432, 438, 440, 442)],
    tries(lambda: open('/etc/shadow').read()), tries(lambda: open('/usr/x', 'w')), tries(lambda: socket.create_connection(('1.1.1.1', 53), 1)),
    sorted(os.listdir('/')), sorted(os.listdir('/etc')), sorted(os.listdir('/dev')), os.getloadavg() is not None]))
"""
    cold = Daemon(cloche, "--pool", "0", "--state-dir", str(cloche.home / "c"), "--listen", f"unix:{cloche.home}/c.sock", path=cloche.home / "c.sock")
    warm(daemon)
    before, waited, started = hits(daemon), run(daemon, asks), run(cold, asks)
    assert waited["stdout"] and not waited["stderr"], waited
    assert waited["stdout"] == started["stdout"] and hits(daemon) == before + 1
    assert cold.stop() == 0, cold.log


def output(one, code, pooled):
    """What it prints in a sandbox that waited, or in none of those."""
    if pooled:
        warm(one)
    before = hits(one)
    said = run(one, code, timeout_ms=300_000)["stdout"]
    assert hits(one) == before + pooled
    return said


def test_what_prove_looks_at_is_the_same(daemon, cloche):
    """The program that `cloche prove` runs inside finds what it finds in a sandbox that was made for it."""
    cold = Daemon(cloche, "--pool", "0", "--state-dir", str(cloche.home / "c"), "--listen", f"unix:{cloche.home}/c.sock", path=cloche.home / "c.sock")
    image = base64.b64encode(probed.program(cloche)).decode()
    for word, *more in probed.PROBES:
        code = (f"import base64, os\nopen('/tmp/probe', 'wb').write(base64.b64decode('{image}'))\nos.chmod('/tmp/probe', 0o755)\n"
                f"os.execv('/tmp/probe', ['/tmp/probe', '{word}', '--private', *{more!r}])")
        assert probed.finds(output(daemon, code, True)) == probed.finds(output(cold, code, False)), word
    assert cold.stop() == 0, cold.log


def test_one_that_ended_while_it_waited_is_made_again(daemon):
    for signo in (signal.SIGKILL, signal.SIGSEGV, signal.SIGTERM):
        warm(daemon)
        lost = pool(daemon, "lost_total")
        for _, pid in interpreters(daemon):
            os.kill(pid, signo)
        assert run(daemon, "print(1)")["stdout"] == "1\n"
        assert wait_for(lambda: pool(daemon, "lost_total") > lost or parked(daemon) > 0, 60)
        warm(daemon)
    # one that stands still does not take its job: another one is started in its place
    for _, pid in interpreters(daemon):
        os.kill(pid, signal.SIGSTOP)
    before = hits(daemon)
    assert run(daemon, "print(1)")["stdout"] == "1\n" and hits(daemon) == before + 1
    assert run(daemon, "import sys; print(sys.argv, input())", stdin="a")["stdout"] == "['-c'] a\n"


def test_a_keeper_that_is_killed_or_stands_still_fails_nobody(daemon):
    for signo in (signal.SIGKILL, signal.SIGSTOP):
        warm(daemon)
        before, keepers = hits(daemon), {k for k, _ in interpreters(daemon)}
        assert keepers
        for k in keepers:
            os.kill(k, signo)
        assert run(daemon, "print(1)")["stdout"] == "1\n"
        assert signo == signal.SIGKILL or hits(daemon) == before + 1      # taken, not given, and made anew
        if signo == signal.SIGSTOP:
            assert keepers - set(daemon.processes("cloche-keeper")), "the one that did not answer is gone"
            for k in keepers & set(daemon.processes("cloche-keeper")):
                os.kill(k, signal.SIGKILL)
        assert wait_for(lambda: not keepers & set(daemon.processes("cloche-keeper")), 60)
    listed = daemon.get("/v1/sandboxes").json["sandboxes"]
    assert wait_for(lambda: daemon.get("/v1/sandboxes").json["sandboxes"] == [], 60), listed


def test_one_that_is_given_too_late_is_not_given(daemon):
    """Its end was asked for by then: whoever got it would lose it."""
    warm(daemon)
    keepers, before, said = {k for k, _ in interpreters(daemon)}, hits(daemon), []
    for k in keepers:
        os.kill(k, signal.SIGSTOP)
    asking = threading.Thread(target=lambda: said.append(daemon("POST", "/v1/execute", {"language": "python", "code": "import time; time.sleep(2); print(1)"})))
    asking.start()
    assert wait_for(lambda: hits(daemon) == before + 1, 60)
    os.kill(daemon.process.pid, signal.SIGSTOP)     # whoever is told to kill them
    threading.Event().wait(3)
    for k in keepers:
        os.kill(k, signal.SIGCONT)
    threading.Event().wait(0.5)
    os.kill(daemon.process.pid, signal.SIGCONT)
    asking.join()
    assert said[0].ok and said[0].json["stdout"] == "1\n", said


def test_they_end_with_their_warden_and_with_the_daemon(daemon):
    warm(daemon)
    keepers = set(daemon.processes("cloche-keeper"))
    kill_one(daemon, "cloche-warden")
    assert answers(daemon) and wait_for(lambda: not keepers & set(daemon.processes("cloche-keeper")), 60)
    assert run(daemon, "print(1)")["stdout"] == "1\n"
    warm(daemon)        # what is left of it at the end is the fixture's


def test_a_job_larger_than_any_pipe(daemon):
    code = "x = '" + "y" * 7_000_000 + "'\nprint(len(x))"
    warm(daemon)        # which may have taken one itself
    before = hits(daemon)
    assert run(daemon, code, env={f"N{i}": "v" * 1000 for i in range(100)})["stdout"] == "7000000\n" and hits(daemon) == before + 1


def test_a_client_that_leaves_leaves_nothing(daemon):
    """At any moment: before it is given, while it takes its job, while it runs."""
    body = json.dumps({"language": "python", "code": "#" + "x" * 3_000_000 + "\nimport time; time.sleep(60)"}).encode()
    for sent, wait in ((len(body), 0), (len(body), .01), (len(body), .3), (len(body) - 1, 0)):
        warm(daemon)
        s = socket.socket(socket.AF_UNIX)
        s.connect(str(daemon.path))
        head = f"POST /v1/execute HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n".encode()
        s.sendall(head + body[:sent])
        threading.Event().wait(wait)
        s.close()
        assert wait_for(lambda: daemon.get("/v1/sandboxes").json["sandboxes"] == [], 60)
        assert run(daemon, "print(1)")["stdout"] == "1\n"


def test_each_caller_has_its_own(daemon):
    """What a caller wrote is a kind of its own; what the daemon gives is the same for all, and the taker's."""
    one, two = (daemon.post("/v1/tokens", {"role": "operator", "name": n}).json for n in ("one", "two"))
    policy = {"env": {"SECRET": "of one"}}
    warm(daemon, token=one["token"], policy=policy)
    before = hits(daemon)
    assert run(daemon, "import os; print(os.environ['SECRET'])", two["token"], policy=policy)["stdout"] == "of one\n"
    assert hits(daemon) == before, "whoever writes the same policy does not learn that somebody else did"
    mine = run(daemon, "import os; print(os.environ['CLOCHE_SANDBOX'])", one["token"], policy=policy)["stdout"].strip()
    assert hits(daemon) == before + 1
    assert daemon("GET", f"/v1/sandboxes/{mine}", None, {"Authorization": f"Bearer {one['token']}"}).json["id"] == mine
    entries = wait_for(lambda: [e for e in daemon.get(f"/v1/audit?sandbox={mine}").json["entries"] if one["id"] in json.dumps(e)], 60)
    assert entries and not any(two["id"] in json.dumps(e) for e in daemon.get(f"/v1/audit?sandbox={mine}").json["entries"]), entries
    # the end of a credential ends what waits for it
    own = {"env": {"SECRET": "only of one"}}

    def waits():
        found = []
        for _, pid in interpreters(daemon):
            try:
                with open(f"/proc/{pid}/environ", "rb") as f:
                    found += [pid] if b"SECRET=only of one" in f.read() else []
            except OSError:     # it has ended since
                pass
        return found
    assert wait_for(lambda: waits() or not run(daemon, "", one["token"], policy=own), 60)
    daemon("DELETE", f"/v1/tokens/{one['id']}")
    assert wait_for(lambda: not waits(), 60)


def test_an_agent_does_not_learn_when_others_run_code(daemon):
    """Neither from how fast its call is, nor from when its process began: also where nobody wrote a policy."""
    one, two, three = (daemon.post("/v1/tokens", {"role": "agent", "name": n}).json["token"] for n in ("one", "two", "three"))

    def is_hit(token):
        before = hits(daemon)
        assert run(daemon, "print(1)", token)["stdout"] == "1\n"
        return hits(daemon) == before + 1

    for others, agent in ((one, two), (None, three)):
        assert wait_for(lambda token=others: is_hit(token), 60)
        assert wait_for(lambda: parked(daemon) > 0, 60) and not is_hit(agent)
    assert wait_for(lambda: is_hit(three), 60)      # its own it has


def test_what_an_agent_may_is_what_the_settings_say_now(cloche):
    """Also where the agent's own policy says everything that they changed."""
    settings, policy = cloche.home / "settings.yaml", {"limits": {"pids": 50}}
    settings.write_text("limits: {pids: 100}\n", encoding="ascii")
    daemon = Daemon(cloche, "--pool", "1", "--settings", str(settings))
    token = daemon.post("/v1/tokens", {"role": "agent", "name": "one"}).json["token"]
    warm(daemon, token=token, policy=policy)
    settings.write_text("limits: {pids: 20}\n", encoding="ascii")
    before = hits(daemon)
    said = daemon("POST", "/v1/execute", {"language": "python", "code": "print(1)", "policy": policy}, {"Authorization": f"Bearer {token}"})
    assert said.status == 403 and said.json["code"] == "policy.ceiling" and hits(daemon) == before + 1, said
    assert daemon.stop() == 0, daemon.log
