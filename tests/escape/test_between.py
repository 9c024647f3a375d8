"""Two sandboxes: neither sees, signals, reads or talks to the other; nor to processes of the host."""
import json
import os
import subprocess
import uuid

import pytest

from helpers import requirement
from helpers.bait import assert_wall
from helpers.places import PYTHON

pytestmark = requirement("R12", "R20", "R26")

SERVICES = """
import json, os, socket, sys, threading, time
mark = sys.argv[1]
os.makedirs('/tmp/shared', exist_ok=True); open('/tmp/shared/' + mark, 'w').write(mark)
open('/dev/shm/' + mark, 'w').write(mark); open('/workspace/' + mark, 'w').write(mark)
tcp = socket.create_server(('127.0.0.1', 47111)); udp = socket.socket(2, 2); udp.bind(('127.0.0.1', 47112))
abstract = socket.socket(socket.AF_UNIX); abstract.bind('\\0' + mark); abstract.listen()
path = socket.socket(socket.AF_UNIX); path.bind('/tmp/' + mark + '.sock'); path.listen()
import ctypes; libc = ctypes.CDLL(None); queue = libc.shmget(0x4711, 4096, 0o1666)
print('ready', flush=True); sys.stdin.read()
"""

LOOK = """
import ctypes, glob, os, socket, sys
mark = sys.argv[1]; found = []
def attempt(name, f):
    try:
        if f() is not False: found.append(name)
    except OSError: pass
attempt('tmp', lambda: os.path.exists('/tmp/shared/' + mark))
attempt('shm', lambda: os.path.exists('/dev/shm/' + mark))
attempt('workspace', lambda: os.path.exists('/workspace/' + mark))
attempt('tcp', lambda: socket.create_connection(('127.0.0.1', 47111), 2))
def unix(a): s = socket.socket(socket.AF_UNIX); s.connect(a)
attempt('abstract', lambda: unix('\\0' + mark)); attempt('path', lambda: unix('/tmp/' + mark + '.sock'))
attempt('sysv', lambda: ctypes.CDLL(None).shmget(0x4711, 0, 0) >= 0)
for p in glob.glob('/proc/[0-9]*/cmdline'):
    if p.split('/')[2] != str(os.getpid()):
        try:
            if mark.encode() in open(p, 'rb').read(): found.append('process')
        except OSError: pass
attempt('unix table', lambda: mark in open('/proc/net/unix').read())
print(found)
"""


@pytest.fixture
def neighbour(cloche):
    mark = f"n{uuid.uuid4().hex}"
    process = cloche.popen("run", "--", PYTHON, "-I", "-S", "-c", SERVICES, mark, stdin=subprocess.PIPE)
    assert process.stdout.readline() == b"ready\n", process.stderr.read()
    yield mark
    process.communicate(b"", timeout=60)


def test_the_attack_is_real(bare, world):
    """Two bare processes do find each other."""
    mark = f"n{uuid.uuid4().hex}"
    place = world.root / "w"
    place.mkdir()
    services = SERVICES.replace("; libc = ctypes.CDLL(None); queue = libc.shmget(0x4711, 4096, 0o1666)", "")
    services = services.replace("open('/dev/shm/' + mark, 'w').write(mark); ", "")
    for sandboxed in ("'/tmp/", "'/workspace/"):     # the new place lies in /tmp itself
        services = services.replace(sandboxed, f"'{place}/")
    process = world.runners[-1].start([PYTHON, "-I", "-S", "-c", services, mark], stdin=subprocess.PIPE)
    assert process.stdout.readline() == b"ready\n", process.stderr.read()
    look = LOOK.replace("'/tmp/", f"'{place}/").replace("'/workspace/", f"'{place}/")
    found = bare(look, args=[mark]).out
    process.communicate(b"", timeout=60)
    for word in ("tcp", "abstract", "path", "process", "workspace", "unix table"):
        assert word in found, found


@pytest.mark.parametrize("mode", ["standard", "max"])
def test_two_sandboxes_do_not_see_each_other(cloche, neighbour, mode):
    assert cloche.sandbox(LOOK, flags=["--mode", mode], args=[neighbour]).out == "[]\n"


def test_a_light_sandbox_does_not_reach_a_standard_one(cloche, neighbour):
    result = cloche.sandbox(LOOK, flags=["--mode", "light"], args=[neighbour])
    assert set(json.loads(result.out.replace("'", '"'))) <= {"process"}, result


@pytest.mark.parametrize("mode", ["standard", "light"])
def test_two_sandboxes_of_the_same_person_cannot_signal_or_trace_each_other(cloche, mode):
    """As an ordinary user both have the same host uid; as root each has its own."""
    victim = cloche.popen("run", "--mode", mode, "--", PYTHON, "-I", "-S", "-c",
                          "import os,signal,sys\nhit=[]\nsignal.signal(signal.SIGUSR1, lambda *_: "
                          "hit.append(1))\nprint('ready', flush=True)\nsys.stdin.read()\nprint(len(hit))",
                          stdin=subprocess.PIPE)
    assert victim.stdout.readline() == b"ready\n"
    from helpers import leaks
    pids = [pid for pid in leaks.descendants(victim.pid)]
    code = ("import os,sys,ctypes\nwon=[]\nlibc=ctypes.CDLL(None,use_errno=True); libc.syscall.restype=ctypes.c_long\n"
            "for pid in map(int, sys.argv[1:]):\n"
            " try: os.kill(pid, 10); won.append(('kill', pid))\n except OSError: pass\n"
            " if libc.syscall(101, 0x4206, pid, 0, 0) == 0: won.append(('ptrace', pid))\n"
            " fd = libc.syscall(434, pid, 0)\n"
            " if fd >= 0 and libc.syscall(424, fd, 10, 0, 0) == 0: won.append(('pidfd', pid))\n"
            " for f in ('mem', 'environ', 'root/etc/passwd', 'cwd/x', 'fd/0', 'maps'):\n"
            "  try: open(f'/proc/{pid}/{f}', 'rb').read(1); won.append((f, pid))\n  except OSError: pass\n"
            "print(won)")
    result = cloche.sandbox(code, flags=["--mode", mode], args=pids)
    out, _ = victim.communicate(b"", timeout=60)
    if mode == "standard":      # the numbers mean other processes inside: only the victim's tally tells
        assert out == b"0\n", out
    else:
        assert result.out == "[]\n" and out == b"0\n", (result, out)


@pytest.mark.root
def test_each_sandbox_of_root_has_its_own_uid(cloche):
    started = [cloche.popen("run", "--", "sh", "-c", "cat /proc/self/uid_map; read x",
                            stdin=subprocess.PIPE) for _ in range(3)]
    maps = [p.stdout.readline().split() for p in started]
    for process in started:
        process.communicate(b"\n", timeout=60)
    hosts = [int(m[1]) for m in maps]
    assert all(uid >= 65536 for uid in hosts), hosts


def test_the_sandboxes_ids_are_in_no_name_that_a_neighbour_could_guess(cloche):
    one = cloche("run", "--json", "--", "true").json["id"]
    two = cloche("run", "--json", "--", "true").json["id"]
    assert sum(a == b for a, b in zip(one, two)) < 16


def test_a_neighbour_with_the_same_project_shares_only_the_project(cloche, project, neighbour):
    result = cloche.sandbox(LOOK, flags=["--workspace", project], args=[neighbour])
    assert result.out == "[]\n", result


def test_whole_battery_beside_a_neighbour(cloche, bait, neighbour):
    verdicts, _ = bait.attack(cloche.sandbox)
    assert_wall(verdicts)


def test_signals_to_process_groups_of_the_host(cloche, bait):
    """kill(-pgid) of the host's groups, and of our own inherited group."""
    group = os.getpgid(bait.victim.pid)
    code = f"""
import os, signal
signal.signal(signal.SIGUSR1, signal.SIG_IGN)
for target in (0, -1, -{group}, {group}):
    try: os.kill(target, signal.SIGUSR1)
    except OSError: pass
"""
    for mode in ("standard", "light", "max"):
        cloche.sandbox(code, flags=["--mode", mode])
    assert bait.tally() == 0


def test_ptrace_inside_is_for_debuggers_of_own_children_only(cloche):
    code = ("import ctypes,os\nl=ctypes.CDLL(None,use_errno=True); l.syscall.restype=ctypes.c_long\n"
            "print(l.syscall(101, 0x4206, 1, 0, 0), l.syscall(101, 16, 1, 0, 0))")
    assert cloche.sandbox(code).out == "-1 -1\n"
