"""Things of the host that a sandbox must not reach, and the battery that tries to."""
import json
import os
import socket
import subprocess
import threading
import uuid
from pathlib import Path

from helpers import places

BATTERY = (Path(__file__).parent / "battery.py").read_text(encoding="utf-8")

# The victim counts SIGUSR1 and prints the tally at its end.
VICTIM = """
import ctypes, os, signal, sys
tally = 0
def on_usr1(*_):
    global tally
    tally += 1
signal.signal(signal.SIGUSR1, on_usr1)
libc = ctypes.CDLL(None)
libc.prctl(0x59616d61, ctypes.c_ulong(-1 & (2**64 - 1)), 0, 0, 0)    # PR_SET_PTRACER_ANY, where Yama asks for it
held = ctypes.create_string_buffer(b"victim's memory.")
print(ctypes.addressof(held), flush=True)
sys.stdin.read()
print(tally, flush=True)
"""

# What light mode does not promise (docs/security.md): without namespaces the host's /proc lists its processes, and the
# host's files that are no credentials can be read. Touching either is still refused.
OPEN_IN_LIGHT = frozenset({"see_host_process", "read_host_file"})


class Bait:
    """Services, files and a process on the host. Use as a context manager."""

    def __init__(self, world, runner):
        self.runner = runner
        self.root = world.root / f"bait-{uuid.uuid4().hex[:8]}"
        self.stopping = False
        self.listeners = []
        self.threads = []

    def __enter__(self):
        self.root.mkdir(mode=0o755)
        self.scratch = self.root / "scratch"
        self.scratch.mkdir()
        self.secret_text = uuid.uuid4().hex
        self.secret = self.root / "secret"
        self.secret.write_text(self.secret_text, encoding="ascii")
        self.writable = self.root / "writable"
        self.writable.write_text("", encoding="ascii")
        self.abstract = f"ct-{uuid.uuid4().hex}"
        self.path = str(self.root / "service.sock")
        self.dgram = str(self.root / "dgram.sock")
        self.env_text = uuid.uuid4().hex
        self.tcp = self.listen(socket.AF_INET, ("127.0.0.1", 0))
        self.tcp6 = self.listen(socket.AF_INET6, ("::1", 0))
        self.listen(socket.AF_UNIX, "\0" + self.abstract)
        self.listen(socket.AF_UNIX, self.path)
        self.udp = self.answer_datagrams(socket.AF_INET, ("127.0.0.1", 0))
        self.answer_datagrams(socket.AF_UNIX, self.dgram)
        os.chmod(self.path, 0o777)
        os.chmod(self.dgram, 0o777)
        self.chown()
        self.mark = f"victim-{uuid.uuid4().hex}"
        self.victim = self.runner.start([places.PYTHON, "-c", VICTIM, self.mark], stdin=subprocess.PIPE)
        self.victim_address = int(self.victim.stdout.readline())
        return self

    def chown(self):
        person = self.runner.person
        if person is not None and places.IS_ROOT:
            for path in (self.root, self.scratch, self.secret, self.writable):
                os.chown(path, person.pw_uid, person.pw_gid)

    def __exit__(self, *_):
        self.stopping = True
        for listener in self.listeners:
            try:
                listener.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
        for thread in self.threads:
            thread.join(10)
        for listener in self.listeners:
            listener.close()
        self.tally()

    def listen(self, family, address):
        listener = socket.socket(family, socket.SOCK_STREAM)
        listener.bind(address)
        listener.listen(64)
        self.serve(listener, self.accept_all)
        return listener.getsockname()[1] if family != socket.AF_UNIX else None

    def accept_all(self, listener):
        while not self.stopping:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            with connection:
                try:
                    connection.sendall(b"host service")
                except OSError:
                    pass

    def answer_datagrams(self, family, address):
        listener = socket.socket(family, socket.SOCK_DGRAM)
        listener.bind(address)
        listener.settimeout(0.2)
        self.serve(listener, self.answer_all)
        return listener.getsockname()[1] if family != socket.AF_UNIX else None

    def answer_all(self, listener):
        while not self.stopping:
            try:
                _, peer = listener.recvfrom(64)
                if peer:
                    listener.sendto(b"host answer", peer)
            except OSError:
                continue

    def serve(self, listener, how):
        self.listeners.append(listener)
        thread = threading.Thread(target=how, args=(listener,), daemon=True)
        thread.start()
        self.threads.append(thread)

    def tally(self):
        """End the victim; how many SIGUSR1 it got. Fails when somebody killed it."""
        if self.victim.poll() is None and not self.victim.stdin.closed:
            self.victim.stdin.close()
            self.counted = int(self.victim.stdout.read())
            self.victim.wait()
        return self.counted

    def words(self, **more):
        """The JSON that the battery takes."""
        return json.dumps({
            "secret": str(self.secret), "secret_text": self.secret_text, "writable": str(self.writable),
            "scratch": str(self.scratch), "victim": self.victim.pid, "victim_mark": self.mark,
            "victim_address": self.victim_address, "tcp": self.tcp, "tcp6": self.tcp6, "udp": self.udp,
            "abstract": self.abstract, "unix": self.path, "unix_dgram": self.dgram, "env_text": self.env_text,
            **more})

    def attack(self, sandbox, flags=(), expect_ok=True, **kw):
        """Run the battery through @sandbox; attack → verdict. None when cloche refused to start it."""
        result = sandbox(BATTERY, flags=flags, args=[self.words(**kw.pop("bait", {}))],
                         env={"CT_ENV_SECRET": self.env_text}, **kw)
        if not expect_ok and result.code == 125:
            return None, result
        assert result.ok, result
        return result.json, result


def opened(verdicts):
    """The attacks that worked."""
    return sorted(name for name, verdict in verdicts.items() if verdict["open"])


def assert_wall(verdicts, except_for=()):
    holes = {name: verdicts[name]["why"] for name in opened(verdicts) if name not in except_for}
    assert not holes, f"the wall has holes: {holes}"
    assert len(verdicts) > 40, "the battery did not run to its end"
