"""What the daemon refuses before a body is there: a client that sends it all the same reads why."""
import contextlib
import gzip
import json
import os
import resource
import select
import socket
import subprocess
import sys

import pytest

from helpers import requirement
from helpers.daemon import Daemon, answers
from helpers.runner import HANG_GUARD, wait_for

pytestmark = requirement("R61")
MIB = 1 << 20
NODE = """
const [base, token, mib] = [process.argv[2], process.argv[3], Number(process.argv[4])];
const body = Buffer.alloc(mib << 20, " "), out = [];
const ask = async (path, method, credential, size) => {
    const headers = credential ? { Authorization: `Bearer ${credential}` } : {};
    try {
        const answer = await fetch(base + path, { method, headers, body: body.subarray(0, size) });
        out.push([answer.status, (await answer.json()).code]);
    } catch (why) {
        out.push(String(why.cause ?? why));
    }
};
for (let i = 0; i < 3; i++) {
    await ask("/v1/sandboxes", "POST", token);
    await ask("/v1/sandboxes/none/files/a", "PUT", "none");
    await ask("/v1/sandboxes/none/files/a", "PUT", undefined);
    await ask("/v1/nothing", "POST", token);
    await ask("/v1/health", "PUT", token);
}
console.log(JSON.stringify(out));
"""
REQUESTS = """
import json, sys
try:
    import requests
except ImportError:
    from pip._vendor import requests
"""
PYTHON = """
base, token, mib = sys.argv[1:]
out, body = [], b" " * (int(mib) << 20)
for method, path, credential in (("POST", "/v1/sandboxes", token), ("PUT", "/v1/sandboxes/none/files/a", "none"),
                                 ("PUT", "/v1/sandboxes/none/files/a", ""), ("POST", "/v1/nothing", token), ("PUT", "/v1/health", token)) * 3:
    try:
        answer = requests.request(method, base + path, data=body, headers={"Authorization": f"Bearer {credential}"} if credential else {})
        out.append([answer.status_code, answer.json()["code"]])
    except requests.RequestException as why:
        out.append(repr(why))
print(json.dumps(out))
"""
SAID = [[413, "http.body-too-large"], [401, "auth.malformed"], [401, "auth.required"], [404, "http.route"], [405, "http.method"]] * 3


@pytest.fixture
def daemon(cloche):
    path = cloche.home / "s"
    made = Daemon(cloche, "--rate-limit", "0", "--client-timeout", "2s", path=path, tcp=True)
    yield made
    assert made.stop() == 0 and "started again" not in made.log, made.log


@pytest.fixture
def base(daemon):
    return "http://{}:{}".format(*daemon.addresses()[0])


def test_a_fetch_of_node_reads_it(daemon, base, has, tmp_path):
    has("node")
    (tmp_path / "ask.mjs").write_text(NODE, encoding="utf-8")
    done = subprocess.run(["node", tmp_path / "ask.mjs", base, daemon.token(), "12"], capture_output=True, text=True, timeout=HANG_GUARD, check=False)
    assert done.returncode == 0 and json.loads(done.stdout) == SAID, done


def test_pythons_requests_reads_it(daemon, base):
    python = next((p for p in (sys.executable, "python3") if subprocess.run([p, "-c", REQUESTS], capture_output=True, check=False).returncode == 0), None)
    if python is None:
        pytest.skip("no Python here has requests")
    done = subprocess.run([python, "-c", REQUESTS + PYTHON, base, daemon.token(), "12"], capture_output=True, text=True, timeout=HANG_GUARD, check=False)
    assert done.returncode == 0 and json.loads(done.stdout) == SAID, done


def refused(daemon):
    """A connection whose request was refused, and answered, before it sent a byte of its body."""
    s = socket.create_connection(daemon.addresses()[0], HANG_GUARD)
    s.sendall(b"POST /v1/sandboxes HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000000000\r\n\r\n")
    got = b""
    while piece := s.recv(65536):       # until it says no more
        got += piece
    assert got.split(b" ")[1] == b"413" and b"http.body-too-large" in got, got
    return s


def test_no_more_is_thrown_away_than_somebody_sends_who_reads(daemon):
    with refused(daemon) as s, pytest.raises(ConnectionError):
        for _ in range(2 * 64):
            s.sendall(b" " * MIB)


@pytest.mark.root
def test_who_sends_nothing_is_not_waited_for(daemon):
    def held():
        return sum(len(os.listdir(f"/proc/{pid}/fd")) for pid in daemon.processes("cloche-front"))
    before = held()
    clients = [refused(daemon) for _ in range(80)]
    few = 10        # what a process of theirs got a moment after it was begun, or has in passing
    assert wait_for(lambda: held() <= before + 64 + few)
    assert wait_for(lambda: held() <= before + few)
    for s in clients:
        s.close()


def test_a_packed_body_is_refused_by_name(daemon):
    text = json.dumps({"name": "one"}).encode()
    packed = gzip.compress(text)
    for coding, body, status in (("gzip", packed, 415), ("GZIP", packed, 415), ("identity, gzip", packed, 415), ("br", text, 415), ("aws-chunked", text, 415),
                                 ("", text, 201), ("Identity", text.replace(b"one", b"two"), 201)):
        answer = daemon("POST", "/v1/sandboxes", body, {"Content-Encoding": coding})
        assert answer.status == status, (coding, answer)
        assert status == 201 or (answer.json["code"] == "http.encoding" and answer.headers["Accept-Encoding"] == "identity"), answer
    for method, path in (("PUT", "/v1/sandboxes/one/files/a"), ("POST", "/api/sandbox/exec"), ("POST", "/mcp"), ("PATCH", "/v1/sandboxes/one/policy")):
        answer = daemon(method, path, packed, {"Content-Encoding": "gzip"})
        assert answer.status == 415, (path, answer)
    assert daemon.get("/v1/sandboxes/one/files/a").status == 404


def test_who_asks_is_not_called_a_stranger_for_want_of_a_descriptor(cloche):
    """The launcher looks who connects, for which it opens files: without room for that nobody is refused as somebody else."""
    daemon = Daemon(cloche)
    soft, hard = resource.prlimit(daemon.process.pid, resource.RLIMIT_NOFILE)
    seen = []
    for n in range(64, 4, -1):
        resource.prlimit(daemon.process.pid, resource.RLIMIT_NOFILE, (n, hard))
        with socket.socket(socket.AF_UNIX) as s:
            s.connect(str(daemon.path))
            with contextlib.suppress(OSError):      # it was faster
                s.sendall(b"GET /v1/health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
            # with so few it is not even accepted, and waits
            if not select.select([s], [], [], HANG_GUARD if n > 24 and not any(b" 503 " in text for text in seen) else 2)[0]:
                break
            seen.append(s.recv(4096))
    resource.prlimit(daemon.process.pid, resource.RLIMIT_NOFILE, (soft, hard))
    assert {int(text.split(b" ")[1]) for text in seen} == {200, 503}, seen
    assert all(b'"serve.full"' in text and b"Retry-After" in text for text in seen if b" 503 " in text), seen
    assert answers(daemon) and daemon.stop() == 0, daemon.log
