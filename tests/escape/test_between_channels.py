"""Two sandboxes, and a sandbox and the host: no family of sockets, no shared object, no process leads from one to the other."""
import json
import uuid

import pytest

from helpers import leaks, requirement
from helpers.channels import OFFER, Offered, PIPE, VISIT
from helpers.places import IS_ROOT, PYTHON, rounds
from helpers.runner import Runner

pytestmark = requirement("R12", "R20", "R26")
NETWORKS = {"none": [], "names": ["--allow-domain", "ok.example.org"]}
# What every Linux has between two processes of one person. Others are tried where the host has them.
USUAL = {"tcp4", "tcp6", "udp4", "udp6", "abstract", "abstract seqpacket", "abstract datagram", "path", "unix table", "netlink",
         "broadcast", "multicast4", "shm", "sem", "msg", "posix", "cmdline", "fd", "mem", "readv", "pidfd", "ptrace"}


@pytest.fixture
def bare_runner(world, cloche):
    runner = Runner(cloche.env, cloche.cwd, cloche.person)
    world.runners.append(runner)
    runner.tmp = cloche.tmp
    return runner


def words(program, *args):
    return [PYTHON, "-I", "-S", "-c", program, *args]


def mark():
    return f"m{uuid.uuid4().hex}"


def family(process):
    return [process.pid, *leaks.descendants(process.pid)]


def visited(result):
    assert result.ok, result
    return set(json.loads(result.out)[0])


def has_six():
    try:
        with open("/proc/net/if_inet6", encoding="ascii") as f:
            return bool(f.read())
    except OSError:
        return False


def test_the_channels_are_real(bare_runner):
    """Two bare processes of one person have all of them."""
    there = Offered(bare_runner.start(words(OFFER, mark()), stdin=PIPE))
    reached = visited(bare_runner.run(words(VISIT), stdin=there.input()))
    missing = USUAL - reached - ({"tcp6", "udp6"} if not has_six() else set())
    assert not missing and there.end() >= {"signal", "tcp4", "udp4", "abstract", "path", "netlink"}, (missing, reached)
    if IS_ROOT:
        assert "packet" in reached


@pytest.mark.parametrize("network", NETWORKS)
@pytest.mark.parametrize("modes", [("standard", "standard"), ("max", "standard"), ("standard", "max")], ids="-".join)
def test_two_sandboxes(cloche, modes, network):
    flags = NETWORKS[network]
    process = cloche.popen("run", "--mode", modes[0], *flags, "--", *words(OFFER, mark()), stdin=PIPE)
    there = Offered(process)
    assert {"tcp4", "udp4", "abstract", "path"} <= {name for name, where in there.told.items() if where is not None}, there.told
    # its own pid as it knows it, and as the host does
    result = cloche("run", "--mode", modes[1], *flags, "--", *words(VISIT), stdin=there.input(family(process), guard=0.3))
    assert visited(result) == set(), result
    came = there.end()
    assert came == set(), came


@pytest.mark.parametrize("mode", ["standard", "max"])
@pytest.mark.parametrize("network", NETWORKS)
def test_a_sandbox_and_the_host(cloche, bare_runner, mode, network):
    process = bare_runner.start(words(OFFER, mark()), stdin=PIPE)
    there = Offered(process)
    result = cloche("run", "--mode", mode, *NETWORKS[network], "--", *words(VISIT), stdin=there.input(guard=0.3))
    assert visited(result) == set(), result
    came = there.end()
    assert came == set(), came


def test_a_light_sandbox_and_the_host(in_mode, world):
    """Light has no namespaces: the host's processes and names are seen, files that everybody may read are read; nothing is reached."""
    cloche = in_mode("light")
    runner = Runner(cloche.env, cloche.cwd, cloche.person)
    world.runners.append(runner)
    runner.tmp = cloche.tmp
    there = Offered(runner.start(words(OFFER, mark()), stdin=PIPE))
    result = cloche("run", "--mode", "light", "--", *words(VISIT), stdin=there.input(guard=0.3))
    assert visited(result) <= {"cmdline", "unix table", "posix"}, result
    came = there.end()
    assert came == set(), came


@pytest.mark.root
def test_on_a_host_with_a_network(online):
    """Its addresses on the cable too: link-local ones, those of its interface, what is sent to everybody."""
    there = Offered(online.bare.start([*online.net.words, *words(OFFER, mark())], stdin=PIPE))
    reached = visited(online.host(words(VISIT), stdin=there.input()))
    assert {"tcp6 link-local", "udp6 link-local", "tcp4 elsewhere", "udp4 elsewhere", "tcp6 elsewhere"} <= reached, reached
    assert there.end() >= {"tcp4", "tcp6", "udp4", "udp6"}
    there = Offered(online.bare.start([*online.net.words, *words(OFFER, mark())], stdin=PIPE))
    for flags in NETWORKS.values():
        result = online.cloche("run", *flags, "--", *words(VISIT), stdin=there.input(guard=0.3))
        assert visited(result) == set(), result
    came = there.end()
    assert came == set() and not online.net.reached(), (came, online.net.reached())


@pytest.mark.root
def test_two_sandboxes_that_share_the_hosts_network(cloche):
    """The test can fail: what is opened by a person is open, and nothing else."""
    process = cloche.popen("run", "--network", "host", "--", *words(OFFER, mark()), stdin=PIPE)
    there = Offered(process)
    result = cloche("run", "--network", "host", "--", *words(VISIT), stdin=there.input(family(process), guard=5))
    reached = visited(result)
    assert {"tcp4", "udp4"} <= reached, result
    assert not reached & {"shm", "sem", "msg", "mq", "posix", "path", "cmdline", "fd", "mem", "readv", "pidfd", "ptrace", "keyring",
                          "packet", "signal"}, result
    assert there.end() >= {"tcp4", "udp4"}


# Sends a descriptor of its own to whoever connects, and puts its socket in the place of each that another sandbox binds.
PASS = """
import os, socket, threading, time
s = socket.socket(socket.AF_UNIX)
s.bind('theirs'); s.listen(50)
def serve():
    while True:
        socket.send_fds(s.accept()[0], [b'x'], [os.open('/etc/hostname', os.O_RDONLY)])
threading.Thread(target=serve, daemon=True).start()
print('ready', flush=True)
while not os.path.exists('done'):
    for f in (lambda: os.link('theirs', 'again'), lambda: os.rename('again', 'mine')):
        try: f()
        except OSError: pass
    time.sleep(0.0003)
"""
TAKE = """
import os, socket, sys, time
end, bound, taken = time.time() + float(sys.argv[1]), 0, ''
while time.time() < end and bound < 2000 and not taken:
    s = socket.socket(socket.AF_UNIX)
    try: os.unlink('mine')
    except OSError: pass
    try: s.bind('mine')
    except OSError: continue
    bound += 1
    if bound % 20 == 0:
        c = socket.socket(socket.AF_UNIX)
        try:
            c.connect('theirs')
            taken = os.read(socket.recv_fds(c, 1, 1)[1][0], 99).decode()
        except OSError: pass
os.unlink('mine') if os.path.exists('mine') else 0
s = socket.socket(socket.AF_UNIX); s.bind('alone'); s.listen(1)
socket.socket(socket.AF_UNIX).connect('alone')
open('done', 'w').close()
print(bound, taken or 'nothing')
"""


# The same with a path of two names: the folder is exchanged for another one between the guard's look and the kernel's.
PASS_BESIDE = """
import ctypes, os, socket, threading, time
s = socket.socket(socket.AF_UNIX)
s.bind('theirs'); s.listen(50)
def serve():
    while True:
        socket.send_fds(s.accept()[0], [b'x'], [os.open('/etc/hostname', os.O_RDONLY)])
threading.Thread(target=serve, daemon=True).start()
libc = ctypes.CDLL(None)
for d in 'bc': os.mkdir(d)
print('ready', flush=True)
while not os.path.exists('done'):
    for f in (lambda: os.link('theirs', 'again'), lambda: libc.renameat2(-100, b'b', -100, b'c', 2), lambda: os.rename('again', 'c/mine'),
              lambda: libc.renameat2(-100, b'b', -100, b'c', 2)):
        try: f()
        except OSError: pass
"""
TAKE_BESIDE = TAKE.replace("try: os.unlink('mine')\n    except OSError: pass",
                           "for d in 'bc':\n        try: os.unlink(d + '/mine')\n        except OSError: pass") \
                  .replace("s.bind('mine')", "s.bind('b/mine')").replace("s.bind('alone')", "os.mkdir('d'); s.bind('d/alone')") \
                  .replace(".connect('alone')", ".connect('d/alone')").replace("bound < 2000", f"bound < {rounds(7000, 20000)}")


@requirement("R12")
@pytest.mark.parametrize("passes,takes", [(PASS, TAKE), (PASS_BESIDE, TAKE_BESIDE)], ids=["name", "path"])
@pytest.mark.parametrize("mode", ["standard", "light"])
def test_no_descriptor_comes_from_a_sandbox_of_the_same_project(in_mode, mode, passes, takes):
    """A sandbox may connect to what it bound itself: another one puts its own socket there just after that."""
    cloche = in_mode(mode)
    flags = ["--mode", mode, "--workspace", cloche.project]
    other = cloche.popen("run", *flags, "--", *words(passes), stdout=PIPE, cwd=cloche.project)
    assert other.stdout.readline() == b"ready\n"
    result = cloche("run", *flags, "--", *words(takes, "20"), cwd=cloche.project)
    (cloche.project / "done").touch()
    other.communicate(timeout=60)
    bound, _, taken = result.out.strip().partition(" ")
    assert result.ok and taken == "nothing" and int(bound) > 20, result
