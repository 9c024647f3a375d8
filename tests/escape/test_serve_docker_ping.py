"""Who listens at Docker's socket is not always Docker: one that hangs, floods or drips holds up nobody, and is asked rarely, by
the launcher alone; so does a crowd of clients that ask for it."""
import contextlib
import socket
import threading
import time

import pytest

from helpers import requirement
from helpers.daemon import Daemon, caller, resident
from helpers.runner import wait_for

pytestmark = requirement("R47", "R61", "R81")
OK = b"HTTP/1.1 200 OK\r\n\r\nOK"


class Hostile:
    """@behave(peer) has each connection, in a thread of its own."""

    def __init__(self, path, behave):
        self.at = socket.socket(socket.AF_UNIX)
        self.at.bind(str(path))
        self.at.listen(64)
        self.behave, self.came, self.sent = behave, 0, 0
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        with contextlib.suppress(OSError):
            while True:
                peer, _ = self.at.accept()
                self.came += 1
                threading.Thread(target=self.one, args=(peer,), daemon=True).start()

    def one(self, peer):
        with contextlib.suppress(OSError), peer:
            self.behave(self, peer)


def hangs(_, peer):
    while peer.recv(4096):
        pass


def floods(self, peer):
    while True:
        self.sent += peer.send(b"HTTP/1.1 200 OK\r\nX: " + b"x" * 65536)


def drips(_, peer):
    for byte in OK * 1000:
        peer.send(bytes([byte]))
        time.sleep(0.5)


@pytest.fixture
def asked(request, cloche):
    """A daemon, and who listens where it looks for Docker."""
    hostile = Hostile(cloche.home / "docker.sock", request.param)
    cloche.env["DOCKER_HOST"] = f"unix://{cloche.home}/docker.sock"
    daemon = Daemon(cloche)
    yield daemon, hostile
    assert daemon.stop() == 0, daemon.log
    hostile.at.close()


@pytest.mark.parametrize("asked", (hangs, drips), indirect=True, ids=("hangs", "drips"))
def test_it_is_not_waited_for(asked):
    daemon, hostile = asked
    agent, answers = caller(daemon, "agent"), []
    crowd = [threading.Thread(target=lambda: answers.append(agent.get("/api/sandbox/platform"))) for _ in range(20)]
    began = time.monotonic()
    for one in crowd:
        one.start()
    assert wait_for(lambda: hostile.came)
    # while it is asked everything else goes on, the launcher's part of it too: a connection, a keeper, a wait for one
    assert daemon.create().exec("echo on")["stdout"] == "on\n"
    for one in crowd:
        one.join(60)
    assert len(answers) == 20 and all(a.status == 200 and a.json["dockerRunning"] is False and a.json["dockerAvailable"] is False for a in answers), answers
    assert hostile.came <= 1 + (time.monotonic() - began) / 3, hostile.came


@pytest.mark.parametrize("asked", (floods,), indirect=True, ids=("floods",))
def test_no_more_is_read_than_a_status(asked):
    daemon, hostile = asked
    before = resident(daemon.process.pid)
    for _ in range(50):
        said = daemon.get("/api/sandbox/platform").json
    assert said["dockerRunning"] in (True, False)
    assert hostile.came and hostile.sent < hostile.came << 20, (hostile.came, hostile.sent)       # the rest is in the kernel's buffers
    assert resident(daemon.process.pid) - before < 1024


@pytest.mark.root
@pytest.mark.parametrize("asked", (hangs,), indirect=True, ids=("hangs",))
def test_the_adapter_has_no_connection(asked):
    """It parses what strangers say: whoever takes it over finds no way to a socket that is root's."""
    daemon, _ = asked
    daemon.get("/api/sandbox/platform")
    for name in ("cloche-adapter", "cloche-front", "cloche-warden"):
        for pid in daemon.processes(name):
            with open(f"/proc/{pid}/status", encoding="ascii", errors="replace") as f:
                assert "Seccomp:\t2" in f.read(), name
