"""Who starts the daemon's processes: what a launcher that was taken over can have from it, and what it cannot do by itself."""
import http.client
import os
import resource
import signal
import socket
import struct
import subprocess
import threading

import pytest

from helpers import leaks, places, requirement
from helpers.daemon import Daemon, OthersDaemon, is_sanitized, status_of
from helpers.runner import wait_for

pytestmark = requirement("R26", "R61")

GIVE, MAKE, MADE, NOT_MADE = 1, 2, 3, 4
KEEPER, WARDEN, FRONT, ADAPTER, SCRIBE, WEBHOOK, OTLP, SIGNER = range(8)


def text(word):
    word = word if isinstance(word, bytes) else word.encode()
    return struct.pack(">I", len(word)) + word + b"\0"


def order(program, *words, log="CLOCHE_LOG=text:notice", files=(0, 0, 0), n=None):
    body = struct.pack(">BBQQ", program, *files) + text(log) + struct.pack(">H", len(words) if n is None else n)
    return frame(MAKE, body + b"".join(map(text, words)))


def frame(kind, body=b"", flags=0):
    return struct.pack(">BBHI", kind, flags, 0, len(body)) + body


class Maker:
    """cloche-maker, and we are its launcher. @paths: of the programs. @files: how many it may open."""

    def __init__(self, cloche, *paths, files=None):
        self.socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.socket.settimeout(60)

        def place():
            os.dup2(theirs.fileno(), 3)
            if files is not None:
                resource.setrlimit(resource.RLIMIT_NOFILE, (files, files))
        paths = [*paths, *[""] * (SIGNER + 1 - len(paths))]
        self.process = subprocess.Popen(["cloche-maker", *paths], executable=str(cloche.binary), preexec_fn=place, pass_fds=(3,),
                                        stderr=subprocess.PIPE)
        theirs.close()

    def say(self, message, *fds):
        if fds:
            socket.send_fds(self.socket, [message], list(fds))
        else:
            self.socket.send(message)

    def hear(self):
        """(kind, number), or None at the end."""
        try:
            said = self.socket.recv(65536)
        except ConnectionResetError:
            said = b""
        return (said[0], struct.unpack(">I", said[8:])[0]) if said else None

    def end(self):
        self.socket.close()
        code = self.process.wait(60)
        self.process.stderr.close()
        return code


def program_at(tmp_path, name="program"):
    """Says that it was started, with what, and what it was given."""
    path = tmp_path / name
    path.write_text("#!/bin/sh\necho \"$0 $*\" >&3\nenv >&3\nls /proc/self/fd >&3\n")
    path.chmod(0o755)
    return str(path)


@pytest.fixture
def maker(cloche, tmp_path):
    made = Maker(cloche, "", program_at(tmp_path), program_at(tmp_path, "front"), program_at(tmp_path, "adapter"), program_at(tmp_path, "scribe"), "", "")
    yield made
    made.end()


def test_what_is_asked_for_is_started_as_a_child_of_who_asks(maker):
    read, write = os.pipe()
    maker.say(frame(GIVE), write)
    maker.say(order(WARDEN, "cloche-warden", "one", "two words"))
    os.close(write)
    kind, pid = maker.hear()
    assert kind == MADE
    assert os.waitpid(pid, 0)[0] == pid                 # ours, not the maker's
    with open(read, encoding="utf-8") as f:
        said = f.read().splitlines()
    assert said[0].endswith("/program one two words") and "CLOCHE_LOG=text:notice" in said
    assert not [line for line in said if line.startswith("HOME=")]


def test_the_signer_hears_of_the_environment_where_the_store_is(cloche, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_DATA_HOME", "/somewhere")
    monkeypatch.setenv("LD_PRELOAD_OF_A_TEST", "x")
    maker = Maker(cloche, *[""] * SIGNER, program_at(tmp_path))
    read, write = os.pipe()
    maker.say(frame(GIVE), write)
    maker.say(order(SIGNER, "cloche-signer"))
    os.close(write)
    kind, pid = maker.hear()
    assert kind == MADE and os.waitpid(pid, 0)[0] == pid
    with open(read, encoding="utf-8") as f:
        names = {line.split("=")[0] for line in f.read().splitlines() if "=" in line}
    assert {"XDG_DATA_HOME", "CLOCHE_LOG"} <= names <= {"XDG_DATA_HOME", "CLOCHE_LOG", "HOME", "PWD", "SHLVL", "OLDPWD", "_"}, names
    maker.end()


BAD = {
    "another program": order(8, "x"), "the last": order(255, "x"), "one that is not there": order(WEBHOOK, "cloche-webhook"), "another one that is not there": order(OTLP, "cloche-otlp"),
    "no words": order(WARDEN), "too many words": order(WARDEN, *["x"] * 13), "fewer words than said": order(WARDEN, "x", n=3),
    "more words than said": order(WARDEN, "x", "y", n=1), "no end of a word": frame(MAKE, order(WARDEN, "x")[8:-1] + b"x"),
    "a NUL within": order(WARDEN, b"a\0b"), "neither yes nor no": order(WARDEN, "x", files=(2, 0, 0)),
    "another variable": order(WARDEN, "x", log="LD_PRELOAD=/x.so"), "a path": order(WARDEN, "x", log="PATH=/x"),
    "no setting": order(WARDEN, "x", log="CLOCHE_LOG"), "an odd setting": order(WARDEN, "x", log="CLOCHE_LOG=text:notice:LD_PRELOAD=x"),
    "a long log": order(WARDEN, "x", log="CLOCHE_LOG=" + "x" * 64), "an unknown message": frame(9), "an answer": frame(MADE, b"\0\0\0\1"),
    "a descriptor that is none": frame(GIVE), "flags": frame(MAKE, order(WARDEN, "x")[8:], flags=1), "nothing": frame(MAKE),
    "two frames": order(WARDEN, "x") + order(WARDEN, "x"), "a long word": order(WARDEN, "x" * 65537), "half a frame": order(WARDEN, "x")[:20],
}


@pytest.mark.parametrize("what", sorted(BAD))
def test_anything_else_ends_it(maker, what):
    before = set(leaks.descendants())
    maker.say(BAD[what])
    assert maker.hear() is None
    maker.process.wait(60)
    assert maker.process.returncode == 125 and set(leaks.descendants()) <= before


def test_descriptors_are_few_and_go_with_their_order(maker):
    null = os.open("/dev/null", os.O_RDWR)
    maker.say(frame(GIVE), null)
    maker.say(frame(GIVE), null)
    maker.say(order(SCRIBE, "cloche-scribe"))
    kind, pid = maker.hear()
    assert kind == MADE and os.waitpid(pid, 0)[0] == pid
    held = [os.readlink(f"/proc/{maker.process.pid}/fd/{fd}") for fd in os.listdir(f"/proc/{maker.process.pid}/fd")] if places.IS_ROOT else []
    assert not [t for t in held[3:] if t == "/dev/null"], held      # what was given went along
    for _ in range(5):
        maker.say(frame(GIVE), null)
    os.close(null)
    assert maker.hear() is None                 # the fifth


@pytest.mark.parametrize("files", [48, 150])
def test_those_that_have_ended_take_no_descriptor(cloche, tmp_path, files):
    """Whoever runs code often enough would end what starts all sandboxes."""
    (tmp_path / "silent").write_text("#!/bin/sh\n")       # nobody reads what it would say
    (tmp_path / "silent").chmod(0o755)
    maker = Maker(cloche, "", str(tmp_path / "silent"), "", "", "", "", "", files=files)
    for i in range(200):
        maker.say(order(WARDEN, "x"))
        kind, number = maker.hear()
        assert kind == MADE, f"after {i}: {os.strerror(number)}"
        assert os.waitpid(number, 0)[0] == number
    assert maker.end() == 0


def test_a_descriptor_with_an_order_ends_it(maker):
    null = os.open("/dev/null", os.O_RDWR)
    maker.say(order(WARDEN, "x"), null)
    os.close(null)
    assert maker.hear() is None


def test_it_ends_with_its_launcher_and_not_before(maker):
    for signals in ((), (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1)):     # the first time it has begun
        for signo in signals:
            maker.process.send_signal(signo)
        maker.say(order(WARDEN, "x"))
        kind, pid = maker.hear()
        assert kind == MADE and os.waitpid(pid, 0)[0] == pid
    assert maker.end() == 0


@pytest.mark.ordinary
@pytest.mark.parametrize("name", ["maker", "launcher", "keeper"])
def test_it_is_not_written_into(cloche, name):
    """By its own user: by another keeper, for one."""
    daemon = OthersDaemon(cloche) if places.IS_ROOT else Daemon(cloche)
    daemon.create()
    pid = daemon.only(f"cloche-{name}") if name != "launcher" else daemon.process.pid
    assert status_of(pid)["Name"] == f"cloche-{name}"
    me = cloche.run([places.PYTHON, "-I", "-S", "-c", "import sys; open(f'/proc/{sys.argv[1]}/mem', 'r+b')", str(pid)])
    assert not me.ok and "PermissionError" in me.err, me
    anybody = cloche.run([places.PYTHON, "-I", "-S", "-c", "import sys; open(f'/proc/{sys.argv[1]}/status')", str(pid)])
    assert anybody.ok
    assert daemon.stop() == 0


def test_one_that_hangs_does_not_hold_up_the_kill_switch(cloche):
    daemon = Daemon(cloche)
    box = daemon.create(name="b")
    pid = daemon.only("cloche-maker")
    os.kill(pid, signal.SIGSTOP)
    answer = []
    asking = threading.Thread(target=lambda: answer.append(ask_quietly(daemon)))
    asking.start()
    daemon.process.send_signal(signal.SIGUSR1)
    assert box.wait_for("stopped", 30), box.show()
    asking.join(60)
    assert answer and daemon.create().exec("echo on")["stdout"] == "on\n"
    assert daemon.stop() == 0


def ask_quietly(daemon):
    try:
        return daemon.post("/v1/sandboxes", {})
    except (OSError, http.client.HTTPException):
        return None


def test_it_is_started_by_the_daemon_alone(cloche):
    done = subprocess.run(["cloche-maker"], executable=str(cloche.binary), capture_output=True, check=False)
    assert done.returncode == 125 and b"started by cloche serve" in done.stderr


# --- in a daemon ----------------------------------------------------------------------------------------------------------

def test_the_launcher_starts_nothing(daemon):
    """tests/conformance/test_service_calls.py knows what its filter lets through."""
    box = daemon.create()
    launcher, (maker,) = daemon.process.pid, daemon.processes("cloche-maker")
    status = status_of(launcher)
    assert status["Name"] == "cloche-launcher" and status["NoNewPrivs"] == "1", status
    assert status["Seccomp"] == ("0" if is_sanitized(daemon) else "2"), status
    # who starts them has no filter, for it would be theirs; and they are the launcher's children all the same
    assert status_of(maker)["Seccomp"] == status_of(os.getpid())["Seccomp"]
    for name in ("cloche-maker", "cloche-front", "cloche-adapter", "cloche-warden", "cloche-scribe", "cloche-keeper"):
        assert [status_of(pid)["PPid"] for pid in daemon.processes(name)] == [str(launcher)], name
    if places.IS_ROOT:      # it is not dumpable
        held = {os.readlink(f"/proc/{maker}/fd/{fd}") for fd in os.listdir(f"/proc/{maker}/fd")}
        assert {t.split(":")[0] for t in held - {os.readlink(f"/proc/{launcher}/fd/2")}} == {"/dev/null", "socket", "anon_inode"}, held
        assert sum(t.startswith("socket:") for t in held) == 1, held
    # no filter of the launcher's is in the way inside
    inside = box.exec("grep -E '^(Seccomp_filters|NoNewPrivs)' /proc/self/status")["stdout"]
    assert "Seccomp_filters:\t1" in inside or "Seccomp_filters:\t2" in inside or not inside, inside


@pytest.mark.root
def test_a_keeper_whose_sandbox_is_made(daemon):
    """It has ways into other processes and the machine's affairs no more; what runs in its sandbox has no filter for it,
    and what it starts later works with it."""
    before = status_of(os.getpid())
    box = daemon.create(policy={"network": {"mode": "allowlist", "allow": ["ok.example.org"]}})
    keeper = daemon.only("cloche-keeper")
    status = status_of(keeper)
    assert status["NoNewPrivs"] == "1" and status["Seccomp"] == ("0" if is_sanitized(daemon) else "2"), status
    guest = daemon.only("cloche-guest")
    if not is_sanitized(daemon):
        assert int(status["Seccomp_filters"]) == int(before["Seccomp_filters"]) + 1, status
        assert int(status_of(guest)["Seccomp_filters"]) == int(before["Seccomp_filters"]) + 1, status_of(guest)
    egress = daemon.only("cloche-egress")
    os.kill(egress, signal.SIGKILL)
    assert wait_for(lambda: daemon.processes("cloche-egress") not in ([], [egress]), 60)
    assert box.exec("echo on")["stdout"] == "on\n" and daemon.post(f"{box.at}/pause").ok and daemon.post(f"{box.at}/resume").ok
    assert box.delete().json["state"] == "stopped"


def test_without_its_maker_a_daemon_ends_in_order(cloche):
    daemon = Daemon(cloche)
    box = daemon.create(name="b")
    pid = daemon.only("cloche-maker")
    os.kill(pid, signal.SIGKILL)
    assert daemon.process.wait(60) == 125
    assert b"serve.maker" in daemon.process.stderr.read()

    def nothing_left():
        leaks.reap_adopted(set())
        return not [what for what in leaks.descendants().values() if "cloche" in what]
    assert wait_for(nothing_left, 60), leaks.descendants()
    daemon.start()
    assert box.show()["state"] == "stopped", box.show()
    assert daemon.stop() == 0
