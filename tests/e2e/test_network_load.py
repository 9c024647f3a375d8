"""Many, slow and large connections: they work, and what carries them stays within bounds of its own."""
import hashlib
import json
import os
import resource
import subprocess
import time

import pytest

from helpers import leaks, places, requirement
from helpers.internet import BUNDLE, CROWD, ECHO, PRELUDE, SITE4, payload
from helpers.places import loops
from helpers.runner import wait_for

pytestmark = [requirement("R13", "R91"), pytest.mark.root]
HARD = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
# 10,000, or as many as cloche-egress takes with the open files that this host lets a process have (docs/network.md).
MANY = min(10000, (HARD - 256 - 32) // 20 * 9 - 8)
ROOMY = ["--nofile", str(MANY + 64), "--memory", "2g"]

# Every tunnel is open at once before any byte passes; then each carries its own number and back.
TUNNELS = PRELUDE + f"""
import resource; resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
held = []
for i in range({MANY}):
    s, head = connect('{SITE4}:{CROWD}', seconds=60)
    assert b' 200 ' in head, (i, head)
    held.append(s)
for i, s in enumerate(held): s.sendall(b'%08d' % i)
good = 0
for i, s in enumerate(held):
    got = b''
    while len(got) < 8 and (d := s.recv(8 - len(got))): got += d
    good += got == b'%08d' % i
print(good, flush=True)
sys.stdin.readline()
"""


def is_sanitized(pid):
    """A sanitizer's shadow and quarantine are no memory of the program's."""
    return places.is_sanitized(os.readlink(f"/proc/{pid}/exe"))


def memory_of(pid, what="VmHWM"):
    """Bytes; 0 of a process that cannot be judged."""
    if is_sanitized(pid):
        return 0
    with open(f"/proc/{pid}/status", encoding="ascii") as f:
        return next(int(line.split()[1]) for line in f if line.startswith(what + ":")) << 10


@pytest.fixture
def many_files():
    """The far end's sockets are this process's."""
    was = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (HARD, HARD))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, was)


@pytest.fixture
def one(online):
    """The only cloche-egress there is, for a process that was started."""
    def find():
        found = wait_for(lambda: leaks.named("cloche-egress"))
        assert len(found) == 1, found
        return found[0]
    return find


def finish(process):
    out, err = process.communicate(b"\n", timeout=120)
    assert process.returncode == 0, (out, err)
    return out.decode()


def test_thousands_of_tunnels_at_once(online, one, many_files):
    process = online.popen(["/usr/bin/python3", "-I", "-S", "-c", TUNNELS], allow=[f"{SITE4}:{CROWD}"],
                           flags=[*ROOMY, "--timeout", "300"], stdin=subprocess.PIPE)
    assert process.stdout.readline().decode().strip() == str(MANY), process.communicate()
    pid = one()
    files = os.listdir(f"/proc/{pid}/fd")
    pipes = sum(os.readlink(f"/proc/{pid}/fd/{n}").startswith("pipe:") for n in files)
    assert len(files) > 2 * MANY and pipes <= 200, (len(files), pipes)      # an idle tunnel has none
    assert memory_of(pid) < (24 << 20) + MANY * 4096, memory_of(pid)
    finish(process)


def test_it_is_counted_beside_the_sandbox(online, one):
    if not os.path.exists("/sys/fs/cgroup/memory/memory.limit_in_bytes"):
        pytest.skip("looks at cgroup v1")
    process = online.popen(["/bin/cat"], flags=["--memory", "96m"], stdin=subprocess.PIPE)
    pid = one()

    def group():
        with open(f"/proc/{pid}/cgroup", encoding="ascii") as f:
            return next((line.split(":", 2)[2].strip() for line in f if line.split(":")[1] == "memory"), "")
    assert wait_for(lambda: group().endswith("-net")), group()
    base = f"/sys/fs/cgroup/memory{group()}"
    with open(base + "/memory.limit_in_bytes", encoding="ascii") as f:
        assert int(f.read()) == 96 << 20

    def limited():      # by itself, in its own time
        with open(f"/proc/{pid}/limits", encoding="ascii") as f:
            return is_sanitized(pid) or any(line.startswith("Max data size") and str(256 << 20) in line for line in f)
    assert wait_for(limited)
    finish(process)
    assert not os.path.exists(base)


QUIET = """
print('hello' in talk(P, get('ok.example.org', 'http://ok.example.org/', CLOSE)).decode(), flush=True)
sys.stdin.readline()
print('hello' in talk(P, get('ok.example.org', 'http://ok.example.org/again', CLOSE)).decode(), flush=True)
"""


def test_who_waits_for_nothing_is_not_woken(online, one):
    """A sandbox that is quiet costs no processor time, and is served as before when it speaks again."""
    process = online.popen(["/usr/bin/python3", "-I", "-S", "-c", PRELUDE + QUIET], allow=["ok.example.org"],
                           stdin=subprocess.PIPE)
    assert process.stdout.readline() == b"True\n", process.communicate()
    pid = one()

    def switches():
        with open(f"/proc/{pid}/status", encoding="ascii") as f:
            return sum(int(line.split()[1]) for line in f if "ctxt_switches" in line)
    assert wait_for(lambda: (was := switches(), time.sleep(1.5)) and switches() == was, every=0)
    assert finish(process) == "True\n"


SLOW = """
import resource; resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
held = []
def fill(n, where, data):
    for i in range(n):
        try:
            s = dial(*where, 20); s.setblocking(False); held.append(s)
            sent = 0
            while sent < len(data): sent += s.send(data[sent:])
        except OSError: pass        # refused or full: that is an answer too
head = b'GET http://ok.example.org/ HTTP/1.1\\r\\nHost: ok.example.org\\r\\n'
fill(600, P, head[:9])                                          # slow-loris: a beginning
fill(600, P, head + b'X-Fill: ' + b'a' * 60000)                 # heads that nearly are too large, without an end
fill(300, P, head + b'X-Fill: ' + b'a' * 200000)                # and such as are
fill(300, P, b'\\5')                                            # half a SOCKS greeting
fill(300, ('93.184.216.34', 443), b'\\x16\\3\\1\\x40\\0\\1' + b'a' * 9000)  # half a ClientHello
fill(200, ('93.184.216.34', 53), b'\\xff\\xff' + b'a' * 60000)  # half a question
print(len(held), flush=True)
print('hello' in talk(P, get('ok.example.org', 'http://ok.example.org/after', CLOSE), 60).decode(), flush=True)
sys.stdin.readline()
""".replace("\\\\", "\\")


def test_slow_and_half_requests_hold_little(online, one):
    process = online.popen(["/usr/bin/python3", "-I", "-S", "-c", PRELUDE + SLOW], flags=["--nofile", "8192"],
                           stdin=subprocess.PIPE)
    assert process.stdout.readline().strip() == b"2300", process.communicate()
    assert process.stdout.readline().strip() == b"True", process.communicate()
    # 600 heads of 60 kB are the larger part of it
    assert memory_of(one()) < 160 << 20, memory_of(one())
    finish(process)


def test_half_open_tunnels_end_when_both_sides_have(online, one):
    code = f"""
held = []
for i in range(200):
    s, head = connect('ok.example.org:{ECHO}'); s.sendall(b'x' * 1000); s.shutdown(1); held.append(s)
print(all(len(drain(s, 20)) == 1000 for s in held), flush=True)
sys.stdin.readline()
"""
    process = online.popen(["/usr/bin/python3", "-I", "-S", "-c", PRELUDE + code], allow=[f"ok.example.org:{ECHO}"],
                           stdin=subprocess.PIPE)
    assert process.stdout.readline() == b"True\n", process.communicate()
    pid = one()
    assert wait_for(lambda: sum(os.readlink(f"/proc/{pid}/fd/{n}").startswith("socket:")
                                for n in os.listdir(f"/proc/{pid}/fd")) < 20)
    finish(process)


def intercepting(online, project):
    """Flags of a run that opens TLS to ok.example.org, and goes nowhere else."""
    settings = project / "settings.json"
    settings.write_text(json.dumps({"network": {"allow": [{"host": "ok.example.org", "methods": ["GET", "PUT"]}]}}),
                        encoding="utf-8")
    return ["--settings", str(settings), "--extra-ca", str(online.net.ca), "--timeout", "300", "--nofile", "4096"]


SLOW_TLS = """
import resource; resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
held, good, trust = [], 0, ssl.create_default_context(cafile=BUNDLE)
def opened():
    return trust.wrap_socket(dial('ok.example.org', 443, 60), server_hostname='ok.example.org')
for i in range(300):
    s = opened(); held.append(s)
    try: s.sendall(b'GET / HTTP/1.1\\r\\nX-Fill: ' + b'a' * (0, 60000, 200000)[i % 3])
    except OSError: pass            # it was told that this is too large
for i in range(300):                # a handshake that stops in the middle
    s = dial('ok.example.org', 443, 60); held.append(s)
    out = ssl.MemoryBIO(); half = trust.wrap_bio(ssl.MemoryBIO(), out, server_hostname='ok.example.org')
    try: half.do_handshake()
    except ssl.SSLWantReadError: s.sendall(out.read())
print(len(held), flush=True)
s = opened(); s.sendall(get('ok.example.org', more=CLOSE)); print(b'hello' in drain(s, 60), flush=True)
sys.stdin.readline()
"""


def test_slow_requests_in_opened_tls_hold_little(online, one, project):
    process = online.popen(["/usr/bin/python3", "-I", "-S", "-c", PRELUDE + f"BUNDLE = {BUNDLE!r}\n" + SLOW_TLS], allow=(),
                           flags=intercepting(online, project), stdin=subprocess.PIPE)
    assert process.stdout.readline().strip() == b"600", process.communicate()
    assert process.stdout.readline().strip() == b"True", process.communicate()
    assert memory_of(one()) < 96 << 20, memory_of(one())
    finish(process)


# Up to a gigabyte (CLOCHE_TEST_LOOPS=4) no counter wraps that does not by then; what each record leaves behind shows as growth.
LARGE = max(96, loops(places.rounds(96, 256)))   # mebibytes, up and down
WARM = 8                    # so many first: all buffers have their size
GROWTH = 8 << 20            # bytes that memory may grow by after that: a twelfth of what passes, or less

STREAMS = """
import hashlib, http.client
piece = hashlib.shake_128(b'%d' % (1 << 20)).digest(1 << 20)
class Body:
    def __init__(self, left): self.left = left
    def read(self, n):
        self.left -= 1; return piece if self.left >= 0 else b''
if WAY == 'http': c = http.client.HTTPConnection('ok.example.org', blocksize=1 << 20)
else:
    trust = ssl.create_default_context(cafile=BUNDLE if WAY == 'intercepted' else CA)
    c = http.client.HTTPSConnection('ok.example.org', context=trust, blocksize=1 << 20)
    c.connect()
    assert ('cloche' in str(c.sock.getpeercert()['issuer'])) == (WAY == 'intercepted'), c.sock.getpeercert()
for n in (WARM, LARGE):
    c.request('PUT', '/up', Body(n), {'Content-Length': str(n << 20)})
    print(c.getresponse().read().decode().strip(), flush=True)
    c.request('GET', f'/mebibytes/{n}')
    came, count, total = c.getresponse(), 0, hashlib.sha256()
    while data := came.read(1 << 20): count += len(data); total.update(data)
    print(count, total.hexdigest(), flush=True)
    sys.stdin.readline()
"""


@pytest.mark.parametrize("way", ["http", "https", "intercepted"])
def test_a_large_body(online, one, project, way):
    """Up, where the far end counts it, and down; memory does not grow with it."""
    kw = {"allow": (), "flags": intercepting(online, project)} if way == "intercepted" else {"flags": ["--timeout", "300"]}
    code = f"WAY, BUNDLE, WARM, LARGE = {way!r}, {BUNDLE!r}, {WARM}, {LARGE}\n" + STREAMS
    process = online.popen(["/usr/bin/python3", "-I", "-S", "-c", PRELUDE + code], stdin=subprocess.PIPE, **kw)
    piece, peaks = payload(1 << 20), []
    for count in (WARM, LARGE):
        whole = hashlib.sha256()
        for _ in range(count):
            whole.update(piece)
        for direction in ("up", "down"):
            said = process.stdout.readline().decode()
            assert said == f"{count << 20} {whole.hexdigest()}\n", (count, direction, said, process.communicate())
        peaks.append(memory_of(one()))
        if count == WARM:
            process.stdin.write(b"\n")
            process.stdin.flush()
    assert peaks[1] < 24 << 20 and peaks[1] - peaks[0] < GROWTH, peaks
    assert [("PUT", "/up", way != "http")] * 2 == [(r["method"], r["path"], r["tls"]) for r in online.net.requests if r["method"] == "PUT"]
    finish(process)
