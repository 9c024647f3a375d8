"""A memory limit without a cgroup: what the kernel holds for a sandbox counts, not only what its processes map.

An ordinary user's, on a host that delegates no cgroup. Where one is delegated, it keeps the limit and counts all of it.
"""
import json

import pytest

from helpers import requirement
from helpers.runner import limit_of

pytestmark = [requirement("R30"), pytest.mark.ordinary]
LIMIT = ["--memory", "100m"]
FULL = 600 << 20
# Each takes what it can get, says when it has it all, and waits to be ended.
MEMFD = """
import ctypes, os, select
try:
    fd = os.memfd_create('x')
except OSError as why:
    print('refused', why.errno); raise SystemExit(3)
piece = b'x' * (1 << 20)
for i in range(FULL >> 20): os.write(fd, piece)
print('has it', flush=True); select.select([], [], [], 5)
"""
MEMFD_IN_FLIGHT = """
import array, os, select, socket
try:
    fds = [os.memfd_create('x') for i in range(6)]
except OSError as why:
    print('refused', why.errno); raise SystemExit(3)
a, b = socket.socketpair()
piece = b'x' * (1 << 20)
for fd in fds:
    for i in range(FULL // 6 >> 20): os.write(fd, piece)
    a.sendmsg([b'f'], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array('i', [fd]))]); os.close(fd)
print('has it', flush=True); select.select([], [], [], 5)
"""
SYSV = """
import ctypes, select
libc = ctypes.CDLL(None, use_errno=True)
libc.shmat.restype = ctypes.c_void_p
libc.shmat.argtypes = libc.shmdt.argtypes = None
for i in range(FULL >> 25):
    segment = libc.shmget(0, 1 << 25, 0o1600)
    at = libc.shmat(segment, None, 0)
    ctypes.memset(ctypes.c_void_p(at), 120, 1 << 25)
    libc.shmdt(ctypes.c_void_p(at))
print('has it', flush=True); select.select([], [], [], 5)
"""
SOCKETS = """
import select, socket
kept = []
def fill(s):
    s.setblocking(False)
    total = 0
    try:
        while True: total += s.send(PIECE)
    except OSError: return total
total = 0
while total < FULL and len(kept) < 30000:
    a, b = socket.socketpair(*PAIR)
    total += fill(a) * WEIGHT + fill(b) * WEIGHT
    kept += [b] if CLOSE else [a, b]
print('has it', flush=True); select.select([], [], [], 5)
"""
TCP = """
import select, socket
listener = socket.create_server(('127.0.0.1', 0)); kept = [listener]
total = 0
while total < FULL:
    a = socket.create_connection(listener.getsockname()); b, _ = listener.accept()
    kept += [a, b]
    for s in (a, b):
        s.setblocking(False)
        try:
            while True: total += s.send(b'x' * 65536)
        except OSError: pass
print('has it', flush=True); select.select([], [], [], 5)
"""
# A process whose first thread has ended looks like a zombie.
HEADLESS = """
import ctypes, os, threading, time
def work():
    time.sleep(0.3); kept = []
    for i in range(FULL >> 20): kept.append(b'x' * (1 << 20)); time.sleep(0.002)
    print('has it', flush=True); time.sleep(5); os._exit(0)
threading.Thread(target=work).start()
ctypes.CDLL(None).syscall(ctypes.c_long(60 if os.uname().machine == 'x86_64' else 93), 0)
"""
# One byte in each 2 MiB is read: no page of its own, but a page of tables each.
TABLES = """
import mmap, select, time
piece = 1 << 33
kept = []
for i in range(FULL // 4096 * 2 // 8192 + 1):
    m = mmap.mmap(-1, piece, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x4000, prot=mmap.PROT_READ)
    m.madvise(15)
    for at in range(0, piece, 1 << 21): m[at]
    kept.append(m); time.sleep(0.02)
print('has it', flush=True); select.select([], [], [], 5)
"""
SEMAPHORES = """
import ctypes, select, time
libc = ctypes.CDLL(None)
for i in range(FULL >> 21):
    if libc.semget(0, 32000, 0o1600) < 0: print('refused'); raise SystemExit(3)
    time.sleep(0.005)
print('has it', flush=True); select.select([], [], [], 5)
"""
MESSAGES = """
import ctypes, select, time
libc, total = ctypes.CDLL(None), 0
text = ctypes.create_string_buffer(b'\\1' * 9000)
while total < 300 << 20:
    queue = libc.msgget(0, 0o1600)
    if queue < 0: print('refused'); raise SystemExit(3)
    while libc.msgsnd(queue, text, 8192, 0o4000) == 0: total += 8192
    if queue % 128 == 0: time.sleep(0.005)
print('has it', flush=True); select.select([], [], [], 5)
"""
EMPTY_FILES = """
import os, select
os.mkdir('/tmp/many')
for i in range(240000): os.close(os.open(f'/tmp/many/{i}', os.O_CREAT))
print('has it', flush=True); select.select([], [], [], 5)
"""


def sockets(pair, close=False, piece="b'x' * 65536", weight=1):
    return (SOCKETS.replace("*PAIR", pair).replace("CLOSE", str(close)).replace("PIECE", piece)
            .replace("WEIGHT", str(weight)))


ATTACKS = {
    "memfd": MEMFD, "memfd in flight": MEMFD_IN_FLIGHT, "sysv": SYSV, "tcp": TCP, "first thread gone": HEADLESS,
    "page tables": TABLES, "semaphores": SEMAPHORES, "messages": MESSAGES, "empty files": EMPTY_FILES,
    "stream": sockets(""), "datagrams": sockets("socket.AF_UNIX, socket.SOCK_DGRAM"),
    "packets": sockets("socket.AF_UNIX, socket.SOCK_SEQPACKET"),
    "whose sender is gone": sockets("", close=True), "of one byte each, whose sender is gone": sockets("", True, "b'x'", 768),
}


@pytest.fixture
def supervised(cloche):
    """The limit is the guest's and the supervisor's to keep."""
    report = cloche("run", "--json", *LIMIT, "--", "true")
    assert report.ok, report
    if limit_of(report.json, "memory")["enforced_by"] != "supervised":
        pytest.skip("this user's memory is limited by a cgroup")
    return report.json


@pytest.mark.parametrize("what", ATTACKS)
def test_what_the_kernel_holds_counts(cloche, supervised, what):
    del supervised
    result = cloche.sandbox(ATTACKS[what].replace("FULL", str(FULL)), flags=[*LIMIT, "--json"])
    refused = result.json["exit_code"] == 3 and "refused" in result.json["stdout"]
    assert refused or result.json["reason"] == "memory", result
    assert "has it" not in result.json["stdout"], result


def test_files_in_memory_count_in_the_host_view(cloche, supervised):
    """There the root is the host's disk, and /dev/shm is memory all the same."""
    del supervised
    code = ("import os, select\nf = open('/dev/shm/x', 'wb')\n"
            f"for i in range({FULL} >> 20): f.write(b'x' * (1 << 20)); f.flush()\n"
            "print('has it', flush=True); select.select([], [], [], 5)\n")
    result = cloche.sandbox(code, flags=[*LIMIT, "--view", "host", "--json"])
    assert result.json["reason"] == "memory" and "has it" not in result.json["stdout"], result


def test_light_mode_sees_a_process_without_its_first_thread(cloche, supervised):
    del supervised
    result = cloche.sandbox(HEADLESS.replace("FULL", str(FULL)), flags=[*LIMIT, "--mode", "light", "--json"])
    assert result.json["reason"] == "memory" and "has it" not in result.json["stdout"], result


def test_it_is_said_that_it_is_watched_and_not_enforced(cloche, supervised):
    assert any("memory" in text and "cgroup" in text for text in supervised["warnings"]), supervised
    silent = cloche("run", "--json", "--", "true").json
    assert not any("memory" in text for text in silent["warnings"]), "nobody asked for a limit"


def test_a_limit_that_cannot_be_counted_is_refused(cloche, supervised, deny):
    """Without the kernel's word on sockets nobody knows what they hold."""
    del supervised
    behind = cloche.behind(*deny("socket:arg0==16=EPERM"))
    refused = behind("run", *LIMIT, "--", "true")
    assert refused.code == 125 and "wall.memory.unsupported" in refused.err, refused
    warned = behind("run", *LIMIT, "--fallback", "warn", "--json", "--", "echo", "ran").json
    assert warned["stdout"] == "ran\n" and any("memory" in text for text in warned["warnings"]), warned
    assert behind("run", "--", "echo", "ran").out == "ran\n", "a preset's is not refused"


def test_ordinary_work_with_sockets_and_shared_memory_goes_on(cloche, supervised):
    del supervised
    code = ("import multiprocessing, socket, mmap\n"
            "pairs = [socket.socketpair() for i in range(200)]\n"
            "[a.send(b'x' * 1000) for a, b in pairs]\n"
            "m = mmap.mmap(-1, 20 << 20); m.write(b'x' * (20 << 20))\n"
            "with multiprocessing.get_context('fork').Pool(3) as p: print(sum(p.map(abs, range(100))))\n")
    result = cloche.sandbox(code, flags=LIMIT)
    assert result.out == "4950\n", result


def test_the_check_says_that_a_cpu_limit_will_be_refused(cloche):
    settings, config = cloche.project / "s.yaml", cloche.project / "serve.yaml"
    settings.write_text("limits: {max_cpu_cores: 1}\n", encoding="ascii")
    config.write_text("security: {sandbox: {limits: {max_cpu_cores: 1}}}\n", encoding="ascii")
    started = cloche("run", "--settings", settings, "--", "true")
    for words in (["policy", "check", settings], ["config", "check", config]):
        said = cloche(*words)
        assert said.ok and ("wall.cpu.unsupported" in said.err) == (started.code == 125), (said, started)
    checked = json.loads(cloche("policy", "check", "--json", settings).out)
    assert bool(checked.get("refused_here")) == (started.code == 125), checked
