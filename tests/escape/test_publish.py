"""--publish opens one door inwards, and none out."""
import os
import re
import resource
import signal
import socket
import time

import pytest

from helpers import requirement
from helpers.daemon import ticks
from helpers.runner import wait_for

pytestmark = [requirement("R40", "R26", "R27")]

# listens on three ports, then says what it can reach, and what it sees
LOOK = """
import glob, os, socket, sys, time
doors = [socket.create_server(("127.0.0.1", p)) for p in (8000, 8001, 9000)]
print("ready", flush=True)
host = int(sys.stdin.readline())
for at in (("127.0.0.1", host), ("10.0.0.1", host), ("198.18.0.1", host), ("192.0.2.1", host)):
    with socket.socket() as s:
        s.settimeout(5)
        try:
            s.connect(at)
            print("reached", at[0])
        except OSError as e:
            print("no", at[0], e.errno)
seen = [open(p).read() for p in ("/proc/net/tcp", "/proc/net/tcp6") if os.path.exists(p)]
print("sees", any(f":{host:04X} " in text for text in seen))
held = sorted(os.readlink(p) for p in glob.glob("/proc/self/fd/*") if os.path.exists(p))
print("held", sum("socket" in name for name in held) - len(doors))
print("done", flush=True)
time.sleep(600)
"""


def start(cloche, *flags, code=LOOK, publish="0:8000"):
    process = cloche.popen("run", "--publish", publish, *flags, "--", "python3", "-c", code, stdin=-1)
    line = ""
    while "of the sandbox" not in line or "is port" not in line:        # warnings of this host come before it
        line = process.stderr.readline().decode()
        assert line, process.communicate()
    port = int(re.fullmatch(r"cloche: \S+:(\d+) is port \d+ of the sandbox\n", line).group(1))
    assert process.stdout.readline().strip() == b"ready"
    return process, port


def end(process):
    process.send_signal(signal.SIGTERM)
    return process.communicate(timeout=120)


def heard(process):
    lines = []
    while not lines or lines[-1] != "done":
        line = process.stdout.readline().decode().strip()
        assert line, (lines, process.communicate())
        lines.append(line)
    return lines


@pytest.mark.parametrize("flags", [(), ("--network", "allowlist"), ("--allow-domain", "example.org"), ("--mode", "max", "--timeout", "5m")])
def test_the_inside_has_no_way_out_by_it(cloche, flags):
    """Neither to the door, nor to what else listens on the host; and it sees nothing of the door."""
    with socket.create_server(("127.0.0.1", 0)) as other:
        process, port = start(cloche, *flags)
        try:
            process.stdin.write(f"{port}\n".encode())
            process.stdin.flush()
            lines = heard(process)
            assert sum(line.startswith("no ") for line in lines) == 4 and lines[-3:] == ["sees False", "held 0", "done"], lines
            other.settimeout(0.2)
            with pytest.raises(TimeoutError):
                other.accept()
        finally:
            end(process)


def test_the_door_leads_to_its_port_alone(cloche):
    """A client chooses nothing: whatever it says goes to that server as bytes."""
    code = LOOK.split("host = ")[0] + """
import threading
def serve(n):
    while True:
        c = doors[n].accept()[0]
        c.sendall(b"door %d" % n)
        c.close()
for n in range(3):
    threading.Thread(target=serve, args=(n,), daemon=True).start()
time.sleep(600)
"""
    process, port = start(cloche, code=code)
    try:
        for _ in range(20):
            with socket.create_connection(("127.0.0.1", port), 60) as s:
                s.sendall(b"CONNECT 127.0.0.1:9000 HTTP/1.1\r\n\r\n")
                assert s.recv(100) == b"door 0"
        for other in (8001, 9000):
            with pytest.raises(ConnectionRefusedError):
                socket.create_connection(("127.0.0.1", other), 5)
    finally:
        end(process)


def test_who_only_connects_holds_nothing_up(cloche):
    """More clients than there are places, silent all of them: the command runs and ends as ever."""
    code = "import socket, time; s = socket.create_server(('127.0.0.1', 8000)); print('ready', flush=True); time.sleep(5); print('over', flush=True)"
    process, port = start(cloche, code=code)
    idle = [socket.create_connection(("127.0.0.1", port), 60) for _ in range(80)]
    out, err = process.communicate(timeout=120)
    assert process.returncode == 0 and b"over" in out, (process.returncode, out, err)
    for s in idle:
        s.close()


def rss(pid):
    with open(f"/proc/{pid}/status", encoding="ascii") as f:
        return int(re.search(r"VmRSS:\s+(\d+)", f.read()).group(1)) << 10


def test_a_server_that_never_stops_talking_fills_nothing(cloche):
    code = """
import socket, threading, time
s = socket.create_server(("127.0.0.1", 8000))
print("ready", flush=True)
def serve(c):
    try:
        while True:
            c.sendall(b"x" * 65536)
    except OSError:
        pass
while True:
    threading.Thread(target=serve, args=(s.accept()[0],), daemon=True).start()
"""
    process, port = start(cloche, code=code)
    try:
        before = rss(process.pid)
        deaf = [socket.create_connection(("127.0.0.1", port), 60) for _ in range(24)]
        time.sleep(3)
        assert rss(process.pid) - before < 48 << 20, (before, rss(process.pid))
        with socket.create_connection(("127.0.0.1", port), 60) as hears:      # who takes it is served all the same
            got = 0
            while got < 8 << 20:
                got += len(hears.recv(1 << 20))
        for s in deaf:
            s.close()
        assert process.poll() is None
    finally:
        end(process)


def test_the_door_closes_with_the_run_however_that_ends(cloche):
    for number in (signal.SIGTERM, signal.SIGKILL):
        process, port = start(cloche, code="import socket, time; s = socket.create_server(('127.0.0.1', 8000)); print('ready', flush=True); time.sleep(600)")
        client = socket.create_connection(("127.0.0.1", port), 60)
        process.send_signal(number)
        process.communicate(timeout=120)

        def refused():
            try:
                socket.create_connection(("127.0.0.1", port), 5).close()
                return False
            except ConnectionRefusedError:
                return True
        assert wait_for(refused), number
        client.close()


def test_another_sandbox_does_not_reach_it(cloche):
    """Networks of its own, closed or open by name, do not lead to this host; the host's own does, as to all that listens there."""
    process, port = start(cloche, code="import socket, time; s = socket.create_server(('127.0.0.1', 8000)); print('ready', flush=True); time.sleep(600)")
    knock = f"import socket; s = socket.create_connection(('127.0.0.1', {port}), 5); s.sendall(b'x'); print('in', s.recv(1))"
    try:
        for flags in ((), ("--network", "allowlist"), ("--allow-domain", "example.org"), ("--publish", "0:8000")):
            result = cloche("run", *flags, "--", "python3", "-c", knock)
            assert not result.ok and "in" not in result.out, (flags, result)
        proxied = cloche("run", "--allow-domain", "example.org", "--", "python3", "-c", f"""
import socket
s = socket.create_connection(("198.18.0.1", 3128), 10)
s.sendall(b"CONNECT 127.0.0.1:{port} HTTP/1.1\\r\\nHost: 127.0.0.1:{port}\\r\\n\\r\\n")
print(s.recv(100).split(b" ")[1].decode())
""")
        assert proxied.ok and proxied.out.strip() not in ("200", ""), proxied
    finally:
        end(process)


def turns(process, knock):
    """What it costs that @knock()'s connection waits for want of descriptors (seconds of a processor), and that it is let in after."""
    def wait_quietly():
        began = ticks(process.pid)
        time.sleep(2)
        return ticks(process.pid) - began
    was = resource.prlimit(process.pid, resource.RLIMIT_NOFILE)
    used = {int(name) for name in os.listdir(f"/proc/{process.pid}/fd")}
    resource.prlimit(process.pid, resource.RLIMIT_NOFILE, (min(set(range(len(used) + 1)) - used), was[1]))
    with knock() as waits:
        spent = wait_quietly()
        resource.prlimit(process.pid, resource.RLIMIT_NOFILE, was)
        waits.settimeout(60)
        waits.sendall(b"x")
        return spent, waits.recv(100)


def test_who_waits_for_a_descriptor_keeps_nobody_awake(cloche):
    process, port = start(cloche, code="""
import socket
s = socket.create_server(('127.0.0.1', 8000)); print('ready', flush=True)
while True:
    c, _ = s.accept(); c.sendall(c.recv(10))
""")
    try:
        spent, got = turns(process, lambda: socket.create_connection(("127.0.0.1", port), 60))
    finally:
        end(process)
    assert got == b"x" and spent < 0.3, (got, spent)


def test_nor_at_the_owners_door(cloche):
    process = cloche.popen("run", "--allow-domain", "ok.example.org", "--", "python3", "-c", "print('ready', flush=True); input()", stdin=-1)
    assert process.stdout.readline() == b"ready\n"
    path, = (cloche.state / "cloche" / "net").glob("*.sock")

    def knock():
        made = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        made.connect(str(path))
        return made
    try:
        spent, got = turns(process, knock)
    finally:
        end(process)
    assert b"error" in got and spent < 0.3, (got, spent)
