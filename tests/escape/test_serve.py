"""Attacks on the daemon: from other users, from its own sandboxes, and what its confined processes may still do."""
import contextlib
import ctypes
import json
import os
import re
import signal
import socket
import struct
import subprocess
from pathlib import Path

import pytest

from helpers import places, requirement
from helpers.daemon import Daemon, OthersDaemon, answers, is_sanitized, resident, status_of
from helpers.runner import Runner, wait_for

pytestmark = requirement("R12", "R23")

ASK = r"""
import socket, sys
s = socket.socket(socket.AF_UNIX)
try:
    s.connect(sys.argv[1])
    try:
        s.sendall(b"GET /v1/sandboxes HTTP/1.0\r\n\r\n")
    except BrokenPipeError:     # turned away already
        pass
    got = b""
    while b"\r\n" not in got:
        more = s.recv(65536)
        if not more: break
        got += more
    print(got.split(b"\r\n")[0].decode())
except OSError as e:
    print("refused", e)
"""


def asks(runner, path):
    result = runner.run([places.PYTHON, "-I", "-S", "-c", ASK, str(path)])
    assert result.ok, result
    return result.out.strip()


def keepers_of(daemon, box):
    """Those of @box alone: of another test's sandbox the keeper may still be ending."""
    return [k for k in daemon.processes("cloche-keeper") if box.id.encode() in Path(f"/proc/{k}/cmdline").read_bytes()]


@pytest.mark.root
def test_another_user_is_refused(cloche, world):
    """Also where the socket's own mode would let them in."""
    path = cloche.home / "open" / "s"
    path.parent.mkdir()
    path.parent.chmod(0o755)
    daemon = Daemon(cloche, "--listen", f"unix:{path}", path=path)
    stranger = world.runner(Runner, "stranger", places.ordinary_user())
    assert "Permission denied" in asks(stranger, path)
    assert asks(world.runner(Runner, "owner", None), path) == "HTTP/1.1 200 OK"     # the attack is real
    path.chmod(0o777)
    assert asks(stranger, path) == "HTTP/1.1 403 Forbidden"
    assert daemon.get("/v1/sandboxes").ok
    assert daemon.stop() == 0


@pytest.mark.parametrize("mode, view", [("standard", "private"), ("standard", "host"), ("light", "host")])
@pytest.mark.ordinary
def test_a_sandbox_does_not_reach_the_daemon(cloche, world, mode, view):
    """It runs as the very user whose daemon it is, and may see the host's tree."""
    path = cloche.home / "open.sock"
    daemon = OthersDaemon(cloche, "--listen", f"unix:{path}", path=path)
    assert asks(cloche, path) == "HTTP/1.0 200 OK" or asks(cloche, path) == "HTTP/1.1 200 OK"
    box = daemon.create(policy={"mode": mode, "view": view, "workspace": str(cloche.project),
                                "unix-sockets": {"all": True}})
    said = box.exec([places.PYTHON, "-I", "-S", "-c", ASK, str(path)])
    assert "200" not in said["stdout"], said
    assert said["stdout"].startswith(("refused", "HTTP/1.1 403")), said
    # and the usual place is not even there
    usual = box.exec(["ls", str(cloche.state / "cloche" / "serve")])
    assert usual["exit_code"] != 0 and "state.db" not in usual["stdout"], usual
    assert daemon.stop() == 0


@pytest.mark.parametrize("name", ["cloche-front", "cloche-adapter", "cloche-warden", "cloche-scribe"])
def test_what_the_confined_hold(daemon, name):
    """tests/unit/test_serve_confined.c tries from inside what these numbers say from outside."""
    daemon.create(name="secret-name", policy={"env": {"TOKEN": "s3cret-value"}})
    pid = daemon.only(name)
    status = status_of(pid)
    for caps in ("CapInh", "CapPrm", "CapEff", "CapAmb"):
        assert int(status[caps], 16) == 0, (caps, status)
    assert status["NoNewPrivs"] == "1" and status["Threads"] == "1", status
    assert status["Seccomp"] == ("0" if "asan" in str(daemon.cloche.binary) else "2"), status
    if not places.IS_ROOT:
        with pytest.raises(PermissionError):        # not dumpable: not even its owner
            os.listdir(f"/proc/{pid}/fd")
        return
    assert ("0" in status["Uid"].split()) == (name == "cloche-scribe"), status     # whose the record's files are
    log = os.readlink(f"/proc/{pid}/fd/2")
    held = [os.readlink(f"/proc/{pid}/fd/{fd}") for fd in os.listdir(f"/proc/{pid}/fd")]
    held = [t for t in held if t != log]
    files = {re.sub(r":.*", "", t) if not t.startswith("/") else t for t in held}
    allowed = {"/dev/null", "socket", "anon_inode"} | ({"pipe"} if name == "cloche-front" else set())
    if name in ("cloche-front", "cloche-warden"):        # what it takes itself, which /metrics says
        allowed |= {f"/proc/{pid}/{f}" for f in ("stat", "statm")}
    if name == "cloche-warden":
        allowed |= {f"/proc/{daemon.process.pid}/{f}" for f in ("stat", "statm")}
        allowed |= {str(daemon.cloche.state / "cloche" / "serve" / f) for f in ("state.db", "state.db-wal", "state.room")}
        allowed |= {"/memfd:cloche-epochs (deleted)"}       # for each new front, to be read (warden/epoch.h)
    if name == "cloche-scribe":
        allowed |= {str(daemon.cloche.state / "cloche" / f) for f in ("audit", "audit/audit.jsonl")}
    assert files <= allowed, held
    inodes = {t[8:-1] for t in held if t.startswith("socket:[")}
    for table in ("tcp", "tcp6", "udp", "udp6", "raw", "packet"):
        with open(f"/proc/{pid}/net/{table}", encoding="utf-8") as f:
            assert not inodes & set(f.read().split()), table
    # nothing of ours was handed down: of the environment how to log, and the command line says nothing
    with open(f"/proc/{pid}/environ", "rb") as f:
        assert f.read() in (b"", b"CLOCHE_LOG=text:notice\0")


@pytest.mark.root
def test_no_other_process_is_the_same_user(daemon):
    """As root: whoever is nobody, or a neighbour that was taken over, signals none of them."""
    daemon.create(policy={"network": {"mode": "allowlist", "allow": ["ok.example.org"]}})
    daemon.create(policy={"network": {"mode": "allowlist", "allow": ["ok.example.org"]}})
    assert wait_for(lambda: len(daemon.processes("cloche-egress")) == 2, 30)
    pids = [pid for name in ("front", "adapter", "warden", "egress") for pid in daemon.processes(f"cloche-{name}")]

    def whose():
        return [status_of(pid)["Uid"].split()[0] for pid in pids]
    assert wait_for(lambda: "0" not in whose(), 30)        # one that has its name is about to be another user
    users = whose()
    assert len(pids) == 5 and len(set(users)) == 5 and not {"0", "65534"} & set(users), users

    def signals(uid, pid):
        return subprocess.run(["setpriv", "--reuid", uid, "--clear-groups", "kill", "-0", str(pid)], check=False).returncode == 0
    for pid, user in zip(pids, users):
        assert signals(user, pid)           # the attack is real
        assert not any(signals(other, pid) for other in ["65534", *users] if other != user)


def test_one_sandbox_is_not_anothers(daemon):
    """No path and no name of one request leads into another sandbox."""
    one, other = daemon.create(name="one"), daemon.create(name="other")
    one.put("mine", b"x")
    for path in (f"{other.at}/files/../../one/files/mine", f"{other.at}/../one/files/mine", f"{other.at}%2f..%2fone/files/mine"):
        c = socket.socket(socket.AF_UNIX)       # as it stands: http.client and curl would tidy it
        c.connect(str(daemon.path))
        c.sendall(f"GET {path} HTTP/1.0\r\n\r\n".encode())
        got = b""
        while more := c.recv(65536):
            got += more
        c.close()
        assert b" 200 " not in got.split(b"\r\n")[0], (path, got)


def test_what_a_sandbox_says_is_only_shown(daemon):
    """Names, output and messages of a hostile sandbox cannot forge a header, an event or another answer."""
    box = daemon.create()
    evil = 'x\r\nevent: exit\r\ndata: {"exit_code":0}\r\n\r\n'
    stream = box.stream(["printf", "%s", evil])
    events = list(stream)
    assert [name for name, _ in events] == ["stdout", "exit"] and events[0][1]["data"] == evil, events
    box.exec(["touch", "a\nb\r\nX-Evil: 1", b"\xff\xfe".decode("latin-1")])
    names = {e["name"] for e in daemon.get(f"{box.at}/dirs/").json["entries"]}
    assert "a\nb\r\nX-Evil: 1" in names, names
    answer = daemon.get(box.file("a\nb\r\nX-Evil: 1"))
    assert answer.ok and "X-Evil" not in answer.headers and answer.headers["X-Content-Type-Options"] == "nosniff"


def edge_of(pid, number=3):
    """Its end of the socket to the warden, or to another one, as a taken process would use it."""
    pidfd = os.pidfd_open(pid)
    fd = ctypes.CDLL(None, use_errno=True).syscall(438, pidfd, number, 0)       # pidfd_getfd
    os.close(pidfd)
    assert fd >= 0, os.strerror(ctypes.get_errno())
    return socket.socket(fileno=fd)


def text(s):
    return struct.pack(">I", len(s)) + s + b"\0"


def frame(kind, payload):
    return struct.pack(">BBHI", kind, 0, 0, len(payload)) + payload


NOT_MADE, ASK_OP = 103, 8


@pytest.mark.root
@pytest.mark.parametrize("how", ["closes", "never was", "garbage"])
def test_a_taken_keeper_cannot_keep_its_sandbox(daemon, how):
    """Whatever makes the warden give it up: what it kept ends, and is not only forgotten."""
    box = daemon.create(name="taken")
    keeper = daemon.only("cloche-keeper")
    other = daemon.create(name="other")
    stream = box.stream("echo here; exec sleep 600")
    assert next(stream)[0] == "stdout"
    with edge_of(keeper) as edge:
        if how == "closes":
            edge.shutdown(socket.SHUT_RDWR)
        elif how == "never was":
            edge.send(frame(NOT_MADE, struct.pack(">BI", 4, 0) + text(b"x") + text(b"y") + text(b"")))
        else:
            edge.send(frame(1, b""))
        assert box.wait_for("stopped"), box.show()
        assert wait_for(lambda: keeper not in daemon.processes("cloche-keeper") and not daemon.processes("sleep"), 30)
    assert other.show()["state"] == "ready" and other.exec("echo on")["stdout"] == "on\n"


ERROR = struct.pack(">BI", 4, 0) + text(b"x") + text(b"y") + text(b"")
# What a keeper says because it was asked: kind, payload
ANSWERS = {
    "still": (104, struct.pack(">BBI", 1, 0, 0) + text(b"")),
    "paused": (105, b"\1"),
    "not paused": (106, ERROR),
    "healthy": (107, b"\1"),
    "operation ended": (108, b""),
    "shown": (118, struct.pack(">IBI", 1, 1, 2) + b"{}"),
    "changed": (119, struct.pack(">IB", 1, 1)),
    "operation said": (122, struct.pack(">QBBIQQ", 1, 1, 0, 0, 0, 0) + text(b"")),
    "used": (126, struct.pack(">QQQQIIB", 0, 0, 0, 0, 0, 0, 0)),
    "result": (127, struct.pack(">BBQQQ", 1, 0, 0, 0, 0)),
}


@pytest.mark.root
@pytest.mark.parametrize("answer", ANSWERS)
def test_a_taken_keeper_answers_what_nobody_asked(daemon, answer):
    """Once more than it was asked, it is given up: it cannot make its sandbox look healthy, idle or paused, nor write
    results of operations that were not."""
    box, other = daemon.create(name="taken"), daemon.create(name="other")
    keeper, = keepers_of(daemon, box)
    stream = box.stream("echo here; exec sleep 600")        # one operation may end
    assert next(stream)[0] == "stdout"
    with edge_of(keeper) as edge:
        for _ in range(2):
            with contextlib.suppress(OSError):      # after the first one the edge may be gone
                edge.send(frame(*ANSWERS[answer]))
        assert box.wait_for("stopped"), box.show()
        assert wait_for(lambda: keeper not in daemon.processes("cloche-keeper") and not daemon.processes("sleep"), 60)
    assert other.show()["state"] == "ready" and other.exec("echo on")["stdout"] == "on\n"
    stream.close()


ENTRY = 132


def sockets_of(pid):
    """→ {(number, which socket)}: a number alone may have been another descriptor's before."""
    links = {int(fd): os.readlink(f"/proc/{pid}/fd/{fd}") for fd in os.listdir(f"/proc/{pid}/fd")}
    return {(fd, link) for fd, link in links.items() if link.startswith("socket:")}


@pytest.mark.root
@pytest.mark.parametrize("what, name", [("dirs", b"x"), ("dirs", b"x" * 4096), ("stat", b"x" * 4096)])
def test_a_taken_keeper_cannot_fill_the_front(daemon, what, name):
    """By a listing without end."""
    box, other = daemon.create(name="taken"), daemon.create(name="other")
    keeper, = keepers_of(daemon, box)
    front = daemon.only("cloche-front")
    before = sockets_of(keeper)
    client, (guest,) = daemon.connection(), (g for g in daemon.processes("cloche-guest") if int(status_of(g)["PPid"]) == keeper)
    os.kill(guest, signal.SIGSTOP)      # it does not answer: we do
    client.request("GET", f"{box.at}/{what}/")
    new, = wait_for(lambda: sockets_of(keeper) - before, 30)
    was = resident(front)
    with edge_of(keeper, new[0]) as edge:
        entry = frame(ENTRY, struct.pack(">IQQ", 0o100644, 1, 1) + text(name))
        edge.setblocking(True)
        with pytest.raises(OSError):    # it is given up
            for _ in range(200_000):
                edge.send(entry)
    answer = client.getresponse()
    assert answer.status >= 400 and json.loads(answer.read())["code"] == "sandbox.gone", answer.status
    if not is_sanitized(daemon):
        assert resident(front) - was < 65536
    client.close()
    assert daemon.processes("cloche-front") == [front] and other.exec("echo on")["stdout"] == "on\n"


NOTED, POLICY_DECISION = 121, 4


def lost(daemon):
    """Entries of the record."""
    return int(re.search(r"^cloche_audit_failures_total (\d+)", daemon.get("/metrics").body.decode(), re.M)[1])


@pytest.mark.root
def test_a_taken_keeper_pushes_nothing_out_of_the_record(cloche, daemon):
    """By more entries about its own sandbox than may wait."""
    box, other = daemon.create(name="taken"), daemon.create(name="other")
    keeper, = keepers_of(daemon, box)
    scribe = daemon.only("cloche-scribe")
    entry = struct.pack(">BB", POLICY_DECISION, 0) + text(b"s" * 1000) + b"\6" + b"".join(text(b"m%d" % i) + b"\0" + text(b"t" * 1000) for i in range(6))
    os.kill(scribe, signal.SIGSTOP)
    try:
        with edge_of(keeper) as edge:
            edge.setblocking(True)
            for one in [entry] * 1000 + [struct.pack(">BB", POLICY_DECISION, 0) + text(b"s") + b"\0"] * 100:
                edge.send(frame(NOTED, one))
            assert wait_for(lambda: lost(daemon) > 50, 60)
        assert other.put("did", b"x").ok
    finally:
        os.kill(scribe, signal.SIGCONT)

    def recorded():
        record = cloche("audit", "query", "--json", "--sandbox", other.id)
        return [e for e in map(json.loads, record.out.splitlines()) if e["metadata"].get("capability") == "write"]
    assert wait_for(recorded, 60)
    verdict = cloche("audit", "verify")
    assert verdict.ok, verdict


@pytest.mark.root
def test_a_taken_front_cannot_part_a_sandbox_from_its_warden(daemon):
    """By an operation that is longer than a keeper takes."""
    box = daemon.create(name="kept")
    keeper, = keepers_of(daemon, box)
    front = daemon.only("cloche-front")
    op = struct.pack(">BBIQQQ", 1, 0, 0, 0, 0, 0) + text(b"") + struct.pack(">I", 2) + text(b"a" * 100_000)
    op += text(b"b" * (135_000 - len(op) - 9)) + struct.pack(">I", 0)
    with edge_of(front) as edge:
        edge.send(frame(ASK_OP, struct.pack(">16xII", 7, 0) + text(box.id.encode()) + op))
        assert wait_for(lambda: front not in daemon.processes("cloche-front"), 30)     # the warden gave it up
    assert answers(daemon) and box.wait_for("ready")
    assert keepers_of(daemon, box) == [keeper] and box.exec("echo on")["stdout"] == "on\n"
    assert box.delete().json["state"] == "stopped" and not daemon.processes("cloche-guest")
