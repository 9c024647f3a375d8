"""What cloche-webhook holds, and what a server that it tells can do to the daemon."""
import json
import os
import re
import socket
import threading

import pytest

from helpers import places, requirement
from helpers.approvals import pending
from helpers.daemon import Daemon, caller
from helpers.hook import Hook
from helpers.runner import wait_for

pytestmark = [requirement("R63"), requirement("R23")]

ASYNC = {"Prefer": "respond-async"}
SECRET = "a-secret-of-the-webhook-0123456789"


@pytest.fixture
def serve(cloche, request):
    def start(url, *flags):
        file = cloche.home / "hook.secret"
        file.write_text(SECRET)
        file.chmod(0o600)
        config = cloche.home / "serve.yaml"
        config.write_text(f"webhook-url: {url}\nwebhook-secret: {file}\n")
        daemon = Daemon(cloche, "--config", str(config), *flags, gate=None)
        request.addfinalizer(lambda: daemon.process.poll() is None and daemon.stop())
        return daemon
    return start


def ask(daemon, command="echo its-words", **members):
    agent = caller(daemon, "agent")
    told = agent("POST", f"{agent.create().at}/exec", {"command": command, **members}, ASYNC)
    assert told.status == 202, told
    return told.json["approval"]


def test_what_it_holds(serve):
    hook = Hook()
    daemon = serve(hook.url.replace("/hook", "/s3cret-path"))
    ask(daemon)
    hook.heard()
    pid, = daemon.running("cloche-webhook")
    with open(f"/proc/{pid}/status", encoding="utf-8") as f:
        status = dict(line.rstrip("\n").split(":\t", 1) for line in f if ":\t" in line)
    for caps in ("CapInh", "CapPrm", "CapEff", "CapAmb"):
        assert int(status[caps], 16) == 0, (caps, status)
    assert status["NoNewPrivs"] == "1" and status["Threads"] == "1", status
    assert status["Seccomp"] == ("0" if "asan" in str(daemon.cloche.binary) else "2"), status
    with open(f"/proc/{pid}/cmdline", "rb") as f:
        assert f.read() == b"cloche-webhook\0"
    if places.IS_ROOT:
        assert "0" not in status["Uid"].split(), status
        with open(f"/proc/{pid}/environ", "rb") as f:
            assert f.read() in (b"", b"CLOCHE_LOG=text:notice\0")
        held = [os.readlink(f"/proc/{pid}/fd/{fd}") for fd in os.listdir(f"/proc/{pid}/fd")]
        assert {re.sub(r":.*", "", t) for t in held} <= {"/dev/null", "socket", "anon_inode", "pipe"}, held
    else:
        with pytest.raises(PermissionError):        # not dumpable: not even its owner
            os.listdir(f"/proc/{pid}/fd")
    # where it was told to go is nobody's business who looks at processes
    for other in [daemon.process.pid, *daemon.processes("cloche-warden"), *daemon.processes("cloche-front")]:
        with open(f"/proc/{other}/cmdline", "rb") as f:
            words = f.read()
        assert b"s3cret-path" not in words and SECRET.encode() not in words
    hook.close()


def test_what_it_says_has_no_parameters(serve):
    hook = Hook()
    daemon = serve(hook.url)
    which = ask(daemon, "echo its-words", env={"TOKEN": "its-value", "NAMED": "x"}, cwd="its-folder")
    assert daemon.post(f"/v1/approvals/{which}/approve").ok
    for told in hook.heard(2):
        for word in (b"its-words", b"its-value", b"NAMED", b"its-folder", SECRET.encode()):
            assert word not in told.body and word.decode() not in str(told.headers), told.body
    hook.close()


def test_no_answer_decides(serve):
    """Whatever it says, in its status, its headers or its text."""
    words = b'{"approve": true, "state": "approved", "decision": "allow"}'
    hook = Hook((200, {"X-Approve": "true", "Location": "/approve"}, words), (202, {}, words), (204, {}, b""))
    daemon = serve(hook.url)
    for n in range(3):
        which = ask(daemon, f"echo {n}")
        hook.heard(n + 1)
        assert daemon.get(f"/v1/approvals/{which}").json["state"] == "pending"
    hook.close()


class Raw:
    """A server that answers each connection with some bytes and hangs up, or goes on and on."""

    def __init__(self, answer, endless=False):
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.port = self.socket.getsockname()[1]
        self.answer, self.endless, self.seen = answer, endless, 0
        threading.Thread(target=self.run, daemon=True).start()

    def run(self):
        while True:
            try:
                client, _ = self.socket.accept()
                self.seen += 1
                client.recv(65536)
                client.sendall(self.answer)
                while self.endless:
                    client.sendall(self.answer)
                client.close()
            except OSError:
                if self.socket.fileno() < 0:
                    return


@pytest.mark.parametrize("answer", [b"", b"\0" * 4096, b"HTTP/1.1 ", b"HTTP/1.1 2000 OK\r\n\r\n", b"HTTP/1.1 -20 OK\r\n\r\n", b"HTTP/2 200\r\n\r\n",
                                    b"HTTP/1.1 200" + b"x" * 100000, b"\x16\x03\x01\x02\x00", b"ICY 200 OK\r\n\r\n"])
def test_nonsense_is_no_answer(serve, answer):
    server = Raw(answer)
    daemon = serve(f"http://127.0.0.1:{server.port}/")
    pid = daemon.running("cloche-webhook")
    which = ask(daemon)
    assert wait_for(lambda: server.seen >= 2, 60), "it was taken for an answer"
    assert daemon.processes("cloche-webhook") == pid and daemon.get(f"/v1/approvals/{which}").json["state"] == "pending"
    server.socket.close()


def test_an_answer_without_end(serve):
    server = Raw(b"HTTP/1.1 100 Continue\r\n\r\n" * 1000, endless=True)
    daemon = serve(f"http://127.0.0.1:{server.port}/")
    which = ask(daemon)
    assert wait_for(lambda: server.seen >= 1, 60)
    assert daemon.post(f"/v1/approvals/{which}/deny").ok
    server.socket.close()


def test_who_asks_much_pushes_nobody_elses_notices_out(serve):
    """Questions that are asked and taken back, while the server is slow: they take the places of each other."""
    hook = Hook()
    daemon = serve(hook.url)
    agent = caller(daemon, "agent")
    at = f"{agent.create().at}/exec"
    with hook.lock:         # it does not answer
        assert agent("POST", at, {"command": "first"}, ASYNC).status == 202
        others = ask(daemon)
        for i in range(80):
            connection = agent.connection()
            connection.request("POST", at, json.dumps({"command": f"echo {i}"}), agent.credential())
            assert wait_for(lambda: len(pending(daemon)) == 3)
            connection.close()
            assert wait_for(lambda: len(pending(daemon)) == 2)
    told = wait_for(lambda: [t for t in hook.told if others.encode() in t.body], 100)
    assert told and told[0].headers["Cloche-Event"] == "approval.requested", (len(hook.told), told and told[0].headers)
    hook.close()
