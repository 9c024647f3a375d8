"""Who starts a keeper's cloche-egress anew: what a keeper that was taken over can have from it, and what it cannot do by itself."""
import os
import signal
import socket
import struct
import subprocess

import pytest

from helpers import leaks, places, requirement
from helpers.daemon import Daemon, is_sanitized, status_of
from helpers.runner import wait_for

pytestmark = requirement("R26", "R61")

GIVE, START, STARTED, FAILED = 1, 2, 3, 4
CGROUP, LISTENERS, MOST = 4, 38, 4 + 1 + 64
NET = {"network": {"mode": "allowlist", "allow": ["ok.example.org"]}}


def frame(kind, body=b"", flags=0):
    return struct.pack(">BBHI", kind, flags, 0, len(body)) + body


class Starter:
    """cloche-starter, and we are its keeper."""

    def __init__(self, cloche):
        self.socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.socket.settimeout(60)

        def place():
            os.dup2(theirs.fileno(), 3)
        self.process = subprocess.Popen(["cloche-starter"], executable=str(cloche.binary), preexec_fn=place, pass_fds=(3,))
        theirs.close()

    def give(self, *fds):
        """None: there is none in its place."""
        for fd in fds:
            if fd is None:
                self.socket.send(frame(GIVE))
            else:
                socket.send_fds(self.socket, [frame(GIVE)], [fd])

    def start(self, kind=0):
        self.socket.send(frame(START, struct.pack(">I", kind)))
        return self.hear()

    def hear(self):
        """(kind, number), or None at the end."""
        try:
            said = self.socket.recv(4096)
        except (ConnectionResetError, BrokenPipeError):
            said = b""
        return (said[0], struct.unpack(">I", said[8:])[0]) if said else None

    def end(self):
        self.socket.close()
        return self.process.wait(60)


@pytest.fixture
def starter(cloche):
    made = Starter(cloche)
    yield made
    made.end()


def test_it_starts_one_program_as_a_child_of_who_asks(starter, cloche):
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    for _ in range(2):      # nothing of the first is left for the second
        starter.give(*[None] * CGROUP, theirs.fileno(), *[None] * (LISTENERS + 2))
        kind, pid = starter.start()
        assert kind == STARTED
        assert wait_for(lambda: status_of(pid)["Name"] == "cloche-egress", 60)
        assert status_of(pid)["PPid"] == str(os.getpid())           # ours, not the starter's
        with open(f"/proc/{pid}/cmdline", "rb") as f:
            assert f.read() == b"cloche-egress\0"
        if places.IS_ROOT:      # it is not dumpable
            assert os.path.basename(os.readlink(f"/proc/{pid}/exe")) == "cloche-egress"
            with open(f"/proc/{pid}/environ", "rb") as f:
                assert not f.read()
        os.kill(pid, signal.SIGKILL)
        assert os.waitpid(pid, 0)[0] == pid
    ours.close()
    theirs.close()
    if places.IS_ROOT:      # it is not dumpable
        held = [os.readlink(f"/proc/{starter.process.pid}/fd/{fd}") for fd in os.listdir(f"/proc/{starter.process.pid}/fd")]
        assert len(held) == 4, held         # stdio, and its keeper
    assert starter.end() == 0


BAD = {
    "nothing given": [frame(START, bytes(4))], "no end of a socket": [*[frame(GIVE)] * CGROUP, frame(START, bytes(4))],
    "too much given": [frame(GIVE)] * (MOST + 1), "no cgroup of that kind": [*[frame(GIVE)] * 5, frame(START, b"\0\0\0\x04")],
    "no kind": [frame(START)], "two kinds": [*[frame(GIVE)] * 5, frame(START, bytes(8))], "words": [frame(GIVE, b"x")],
    "an answer": [frame(STARTED, b"\0\0\0\1")], "an unknown message": [frame(9)], "flags": [frame(GIVE, flags=1)],
    "two frames": [frame(GIVE) + frame(GIVE)], "half a frame": [frame(GIVE)[:5]], "nothing": [frame(0)],
}


@pytest.mark.parametrize("what", sorted(BAD))
def test_anything_else_ends_it(starter, what):
    before = set(leaks.descendants())
    try:
        for message in BAD[what]:
            starter.socket.send(message)
    except (BrokenPipeError, ConnectionResetError):
        pass                # it has ended before the last one
    assert starter.hear() is None
    assert starter.process.wait(60) == 125 and set(leaks.descendants()) <= before


def test_a_descriptor_with_the_word_to_begin_ends_it(starter):
    starter.give(*[None] * 8)
    null = os.open("/dev/null", os.O_RDWR)
    socket.send_fds(starter.socket, [frame(START, bytes(4))], [null])
    os.close(null)
    assert starter.hear() is None and starter.process.wait(60) == 125


def test_it_is_started_by_a_keeper_alone(cloche):
    done = subprocess.run(["cloche-starter"], executable=str(cloche.binary), capture_output=True, check=False, stdin=subprocess.DEVNULL)
    assert done.returncode == 125 and b"started by a keeper" in done.stderr


# --- in a daemon ----------------------------------------------------------------------------------------------------------

def test_there_is_one_where_there_is_something_to_start(daemon):
    bare = daemon.create()
    assert not daemon.processes("cloche-starter")
    box = daemon.create(policy=NET)
    keeper, = (int(status_of(pid)["PPid"]) for pid in daemon.running("cloche-starter"))
    starter = daemon.only("cloche-starter")
    assert keeper in daemon.processes("cloche-keeper")
    if not is_sanitized(daemon):
        assert status_of(starter)["Seccomp"] == "2" and status_of(starter)["NoNewPrivs"] == "1"
    assert box.delete().ok and bare.delete().ok
    assert wait_for(lambda: not daemon.processes("cloche-starter"), 60)


def test_it_ends_with_its_keeper_however_that_ends(daemon):
    daemon.create(policy=NET)
    starter, = daemon.running("cloche-starter")
    os.kill(int(status_of(starter)["PPid"]), signal.SIGKILL)
    assert wait_for(lambda: leaks.parents().get(starter, (0, "Z"))[1] in "ZX", 60)


def test_without_it_the_network_closes_and_the_sandbox_goes_on(cloche):
    daemon = Daemon(cloche)
    box = daemon.create(policy=NET)
    starter, = daemon.running("cloche-starter")
    egress = daemon.only("cloche-egress")
    keeper = int(status_of(starter)["PPid"])
    os.kill(starter, signal.SIGKILL)
    os.kill(egress, signal.SIGKILL)
    daemon.hear(b"serve.starter")
    assert not daemon.processes("cloche-egress") and keeper in daemon.processes("cloche-keeper")
    assert box.exec("echo on")["stdout"] == "on\n"
    assert box.delete().ok and daemon.stop() == 0
