"""--publish: a port of a run is reached from the host (docs/network.md)."""
import hashlib
import json
import re
import signal
import socket
import threading

import pytest

from helpers import requirement
from helpers.runner import wait_for

pytestmark = requirement("R40", "R26")

# answers each connection, when that says no more, with how much came and its hash; and with as much again as it is told
SERVER = """
import hashlib, socket, sys, threading
s = socket.create_server(("::1" if "six" in sys.argv else "127.0.0.1", 8000), family=socket.AF_INET6 if "six" in sys.argv else socket.AF_INET)
print("listens", flush=True)
def serve(c):
    h, n = hashlib.sha256(), 0
    while True:
        data = c.recv(65536)
        if not data:
            break
        h.update(data)
        n += len(data)
    c.sendall(f"{n} {h.hexdigest()} {c.getpeername()[0]} ".encode() + b"z" * (n if "back" in sys.argv else 0))
    c.close()
while True:
    threading.Thread(target=serve, args=(s.accept()[0],), daemon=True).start()
"""


class Run:
    """cloche run with a server inside, and where it is reached."""

    def __init__(self, cloche, *flags, server=SERVER, words=(), publish="0:8000"):
        self.process = cloche.popen("run", "--publish", publish, *flags, "--", "python3", "-c", server, *words)
        line = self.process.stderr.readline().decode()
        while "is port 8000 of the sandbox" not in line:
            assert line, self.process.communicate()
            line = self.process.stderr.readline().decode()
        host, port = re.fullmatch(r"cloche: (\S+):(\d+) is port 8000 of the sandbox\n", line).groups()
        self.at = (host.strip("[]"), int(port))

    def listens(self):
        assert self.process.stdout.readline().strip() == b"listens"
        return self

    def end(self):
        self.process.send_signal(signal.SIGTERM)
        out, err = self.process.communicate(timeout=120)
        return out.decode(), err.decode()


def say(at, data=b"hello"):
    with socket.create_connection(at, 120) as s:
        sender = threading.Thread(target=lambda: (s.sendall(data), s.shutdown(socket.SHUT_WR)))
        sender.start()
        got = b""
        while True:
            more = s.recv(65536)
            if not more:
                break
            got += more
        sender.join()
    return got


def reached(at):
    try:
        socket.create_connection(at, 10).close()
        return True
    except ConnectionRefusedError:
        return False


@pytest.mark.parametrize("flags", [(), ("--mode", "max", "--timeout", "5m"), ("--network", "allowlist"), ("--view", "host"), ("--output", "1m")])
def test_a_server_inside_is_reached(cloche, flags):
    run = Run(cloche, *flags).listens()
    try:
        assert run.at[0] == "127.0.0.1"
        assert say(run.at).decode().split()[:3] == ["5", hashlib.sha256(b"hello").hexdigest(), "127.0.0.1"]
    finally:
        run.end()
    assert wait_for(lambda: not reached(run.at))


def test_much_in_both_directions_and_many_at_once(cloche):
    run = Run(cloche, words=["back"]).listens()
    data = bytes(range(256)) * (48 << 10)       # 12 MiB
    try:
        found = []
        threads = [threading.Thread(target=lambda: found.append(say(run.at, data))) for _ in range(6)]
        threads += [threading.Thread(target=lambda: found.append(say(run.at, b"a"))) for _ in range(50)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        large = [f for f in found if len(f) > len(data)]
        assert len(found) == 56 and len(large) == 6, [len(f) for f in found]
        assert {f.split()[1].decode() for f in large} == {hashlib.sha256(data).hexdigest()} and all(f.endswith(b"z" * len(data)) for f in large)
    finally:
        run.end()


def test_the_servers_own_loopback_address_may_be_that_of_ipv6(cloche):
    run = Run(cloche, words=["six"], publish="[::1]:0:8000").listens()
    try:
        assert run.at[0] == "::1" and say(run.at).split()[2] == b"::1"
    finally:
        run.end()


def test_nobody_listens_inside(cloche):
    """The client is told, by an end; the run goes on."""
    run = Run(cloche, server="import time; print('listens', flush=True); time.sleep(600)").listens()
    try:
        for _ in range(40):
            try:
                assert say(run.at) == b""
            except ConnectionError:
                pass
        assert run.process.poll() is None
    finally:
        run.end()


def test_the_port_asked_for_and_one_that_is_taken(cloche):
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        refused = cloche("run", "--publish", f"{port}:8000", "--", "true")
        assert refused.code == 125 and "publish.taken" in refused.err and str(port) in refused.err, refused
        every = cloche("run", "--publish", f"0.0.0.0:{port}:8000", "--", "true")
        assert every.code == 125 and "publish.taken" in every.err, every
    run = Run(cloche, publish=f"{port}:8000").listens()
    try:
        assert run.at == ("127.0.0.1", port) and say(run.at).startswith(b"5 ")
    finally:
        run.end()
    again = Run(cloche, publish=f"127.0.0.1:{port}:8000")
    again.end()
    twice = cloche("run", "--publish", f"{port}:1", "--publish", f"{port}:2", "--", "true")
    assert twice.code == 125 and "publish.taken" in twice.err, twice


@pytest.mark.parametrize("words,code", [
    (["80"], "policy.publish"), (["1023:80"], "policy.publish"), (["x"], "policy.publish"), (["0"], "policy.publish"),
    (["localhost:3000"], "policy.publish"), (["192.0.2.77:3000"], "publish.address"), (["[2001:db8::77]:3000"], "publish.address"),
    (["3000", "--network", "host"], "policy.publish.host"), (["3000", "--mode", "light"], "policy.light.asks"),
    (["3000", "--mode", "off"], "policy.off.asks"), (["8080:443", "--network", "allowlist"], "policy.publish.reserved"),
    (["8080:53", "--network", "allowlist"], "policy.publish.reserved"),
    (["5432", "--allow-domain", "db.example.org:5432"], "policy.publish.reserved")])
def test_what_is_refused(cloche, words, code):
    result = cloche("run", "--publish", *words, "--", "true")
    assert result.code == 125 and f"[{code}]" in result.err, result


def test_other_addresses_are_warned_of(cloche):
    run = Run(cloche, publish="0.0.0.0:0:8000").listens()
    try:
        assert say(("127.0.0.1", run.at[1])).startswith(b"5 ")
    finally:
        _, err = run.end()
    result = cloche("run", "--publish", "0.0.0.0:0:8000", "--json", "--", "true")
    assert "open to others than this host" in str(result.json["warnings"]), result
    local = cloche("run", "--publish", "127.0.0.2:0:8000", "--json", "--", "true")
    assert "open to others" not in str(local.json["warnings"]), local


def test_report_audit_and_quiet(cloche):
    run = Run(cloche, "--report", cloche.home / "report.json").listens()
    for _ in range(3):
        say(run.at)
    run.end()
    report = json.loads((cloche.home / "report.json").read_text())
    assert report["published"] == {"ports": [{"address": "127.0.0.1", "host_port": run.at[1], "port": 8000}], "connections": 3}, report
    entries = [json.loads(line) for line in cloche("audit", "query", "--json").out.splitlines()]
    text = json.dumps(entries)
    assert f"127.0.0.1:{run.at[1]}:8000" in text and '"connections": 3' in text, text
    quiet = cloche("run", "--quiet", "--publish", "0:8000", "--", "true")
    assert quiet.ok and quiet.err == "", quiet
    assert "published" not in cloche("run", "--json", "--", "true").json


def test_settings_and_why(cloche):
    (cloche.home / "s.yaml").write_text("network:\n  publish: [8123, \"0:8000\", \"127.0.0.1:9000\"]\n")
    flags = ("--settings", cloche.home / "s.yaml")
    shown = cloche("policy", "show", "--json", *flags).json
    assert "127.0.0.1:8123:8123" in json.dumps(shown) and "127.0.0.1:0:8000" in json.dumps(shown), shown
    yes = cloche("why", "--port", "8000", "--json", *flags)
    assert yes.code == 0 and yes.json["reason"] == "published" and yes.json["rule"] == "0:8000" and yes.json["source"]["line"] == 2, yes
    no = cloche("why", "--port", "3000", "--json")
    assert no.code == 1 and no.json["reason"] == "not-published" and no.json["suggested_flag"] == "--publish 3000", no
    assert cloche("why", "--port", "80", "--json").json["suggested_flag"] == "--publish 8080:80"
    reserved = cloche("why", "--port", "443", "--network", "allowlist")
    assert reserved.code == 1 and "[reserved]" in reserved.out, reserved
    assert cloche("why", "--port", "0").code == 125 and cloche("why", "--port", "1", "--path", "/").code == 125


def test_shell_and_code(cloche):
    for words in (("shell",), ("code", "--language", "python", "-")):
        done = cloche(*words[:1], "--publish", "0:8000", *words[1:], stdin=b"exit\n" if words[0] == "shell" else b"pass")
        assert done.ok and "is port 8000 of the sandbox" in done.err, done


def test_a_daemons_sandbox_has_its_own_way(daemon):
    refused = daemon.post("/v1/sandboxes", {"policy": {"network": {"publish": ["8000"]}}})
    assert refused.status >= 400 and refused.json["code"] == "policy.publish.daemon" and "cloche ports" in refused.json["detail"], refused
