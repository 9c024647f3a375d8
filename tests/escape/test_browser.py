"""What a page in a sandbox's browser reaches: nothing of the host's, no metadata, no other sandbox; and where code that
takes the browser's place leads who asks it: nowhere (R49)."""
import http.server
import json
import os
import select
import threading

import pytest

from helpers import browser, requirement
from helpers.browser import POLICY, Page
from helpers.daemon import Daemon, with_curl
from helpers.runner import wait_for

pytestmark = [requirement("R49", "R02")]

SECRET = "a secret of the host's loopback"
SERVER = ("import http.server, os\nclass H(http.server.BaseHTTPRequestHandler):\n  def do_GET(self):\n    self.send_response(200)\n"
          "    self.send_header('Access-Control-Allow-Origin', '*')\n    self.end_headers()\n    self.wfile.write(b'of the other sandbox')\n"
          "s = http.server.HTTPServer(('0.0.0.0', 8124), H)\nos.fork() and os._exit(0)\ns.serve_forever()")


class Handler(http.server.BaseHTTPRequestHandler):
    asked = []

    def do_GET(self):
        self.asked.append(self.path)
        self.send_response(200)
        self.send_header("Access-Control-Allow-Origin", "*")
        self.end_headers()
        self.wfile.write(SECRET.encode())

    def log_message(self, *args):           # pylint: disable=arguments-differ
        pass


@pytest.fixture
def loopback():
    """A server of the host's, that any page may read."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    Handler.asked.clear()
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server.server_address[1]
    server.shutdown()
    server.server_close()


@pytest.mark.root
@pytest.mark.slow
@pytest.mark.parametrize("own_sandbox", [True, False], ids=["own-sandbox", "no-sandbox"])
def test_a_page_stays_in_its_sandbox(online, own_sandbox, loopback, bare, tmp_path):
    browser.needed()
    daemon = Daemon(online.cloche, *with_curl(online.bare), path=online.bare.state / "cloche" / "serve" / "api.sock")
    policy = {**POLICY, "allow-nested-user-namespaces": own_sandbox, "network": {"mode": "allowlist", "allow": ["ok.example.org"]}}
    try:
        box, other = daemon.create(policy=policy), daemon.create()
        assert other.exec(["python3", "-c", SERVER])["exit_code"] == 0
        there = "import urllib.request; print(urllib.request.urlopen('http://127.0.0.1:{}/').read().decode())"
        # the attacks are real: each place answers who is there
        assert SECRET in bare(there.format(loopback)).out and Handler.asked
        assert "of the other sandbox" in other.exec(["python3", "-c", there.format(8124)])["stdout"]
        hidden = tmp_path / "hidden"
        hidden.write_text("a file of the host's")
        Handler.asked.clear()

        page = Page(daemon, box)
        assert "hello ok.example.org" in page.go("http://ok.example.org/page")
        for host in (f"127.0.0.1:{loopback}", f"localhost:{loopback}", f"[::1]:{loopback}", f"host.docker.internal:{loopback}",
                     f"host.cloche.internal:{loopback}", "169.254.169.254", "[fd00:ec2::254]", "127.0.0.1:8124", "10.0.0.5", "evil.example.org"):
            assert SECRET not in page.fetch(f"http://{host}/latest/meta-data/")
            text = page.go(f"http://{host}/latest/meta-data/")
            assert SECRET not in text and "hello" not in text and "of the other" not in text, (host, text)
            page.go("http://ok.example.org/page")
        assert not Handler.asked and online.net.asked() == {"ok.example.org"}
        shadow = open("/etc/shadow", encoding="ascii").read()
        for path in ("/etc/shadow", str(hidden), "/proc/1/root/etc/shadow", "/root/", "/workspace/../../etc/shadow"):
            text = page.go(f"file://{path}")
            assert "a file of the host's" not in text and not any(line in text for line in shadow.splitlines() if line), (path, text)
    finally:
        stopped = daemon.stop()
    assert stopped == 0, daemon.log


# What the keeper starts for Chromium. A path's last part names the answer, in a file of the workspace.
HOSTILE = """#!/usr/bin/python3
import socket, sys, threading
s = socket.socket()
s.bind(('127.0.0.1', 0))
s.listen(200)
port = s.getsockname()[1]
def one(c):
    asked = c.recv(65536).split()[1].decode()
    said = open('/workspace/' + asked.split('/')[-1], 'rb').read().replace(b'PORT_', str(port).encode())
    c.sendall(said)
    if not said.endswith(b'held'):
        c.close()
    else:
        held.append(c)
held = []
sys.stderr.write(f'DevTools listening on ws://127.0.0.1:{port}/devtools/browser/x\\n')
sys.stderr.flush()
while True:
    threading.Thread(target=one, args=(s.accept()[0],), daemon=True).start()
"""


@pytest.fixture
def hostile(daemon, tmp_path):
    """Makes sandboxes with it in Chromium's place."""
    (tmp_path / "chromium").write_text(HOSTILE)
    (tmp_path / "chromium").chmod(0o755)
    policy = {"env": {"PATH": "/hostile:/usr/bin:/bin"}, "binds": [f"{tmp_path}:/hostile:ro"]}
    if os.path.exists(browser.CHROMIUM):
        policy["binds"].append(f"{tmp_path / 'chromium'}:{browser.CHROMIUM}:ro")
    boxes = []

    def make():
        boxes.append(daemon.create(policy=policy))
        return boxes[-1]

    yield make
    for box in boxes:
        assert box.delete().ok


def whole(body, *fields, status="200 OK"):
    return "\r\n".join([f"HTTP/1.1 {status}", *fields, f"Content-Length: {len(body)}", "", ""]).encode() + body


def socket_at(url):
    return whole(b'{"Browser": "Chrome/1", "webSocketDebuggerUrl": "%s"}' % url)


ELSEWHERE = {
    "ws": socket_at(b"ws://evil.example/devtools/browser/x"),
    "escaped": socket_at(rb"ws:\/\/evil.example/devtools/browser/x"),
    "named": socket_at(b"x").replace(b"webSocketDebuggerUrl", rb"webSocket\u0044ebuggerUrl"),
    "path": socket_at(b"ws://localhost:PORT_/devtools/page/../../../v1/x"),
    "twice": whole(b'{"webSocketDebuggerUrl": "ws://localhost:PORT_/devtools/page/x", "WebSocketDebuggerUrl": "ws://evil.example/"}'),
    "until-the-end": b"HTTP/1.1 200 OK\r\n\r\n" + b'{"webSocketDebuggerUrl": "ws://evil.example/devtools/page/x"}',
    "broken": whole(b'{"webSocketDebuggerUrl": "ws://evil.example/",}'),
    "coded": whole(b"\x1f\x8b....", "Content-Encoding: gzip"),
    "large": whole(b" " * (2 << 20) + b"{}"),
    **{f"to-{n}": whole(b"", "Location: /v1/sandboxes/VICTIM/files/planted", status=f"{n} X") for n in (300, 301, 302, 303, 307, 308)},
    "empty": whole(b"", "Location: http://evil.example/", status="204 X"),
    "password": whole(b"{}", "WWW-Authenticate: Basic", status="401 X"),
}


def test_code_in_its_place_leads_nobody_elsewhere(daemon, hostile):
    box = hostile()
    good = b'[{"id": "x", "url": "ws://evil.example/", "webSocketDebuggerUrl": "ws://localhost:PORT_/devtools/page/AB-1", "devtoolsFrontendUrl": "http://evil.example/"}]'
    plain = {"good": whole(good, "Location: http://evil.example/", "Refresh: 0; url=http://evil.example/", "Content-Type: text/html"),
             "text": whole(b"Target is closing", "Content-Type: text/html")}
    for name, said in {**ELSEWHERE, **plain}.items():
        assert box.put(name, said).ok
    at = f"{box.at}/browser/json/"
    for name in ELSEWHERE:
        for method, path in (("GET", at), ("PUT", at), ("GET", f"{box.at}/browser/devtools/page/")):
            answer = daemon(method, path + name)
            assert answer.status == 502 and answer.json["code"] == "browser.answer", (name, method, answer)
            assert b"evil" not in answer.body and not {"Location", "Refresh"} & set(answer.headers), (name, answer)
    answer = daemon("GET", at + "good", headers={"Host": "here:1"})
    assert answer.json == [{"id": "x", "url": "ws://evil.example/", "webSocketDebuggerUrl": f"ws://here:1{box.at}/browser/devtools/page/AB-1"}], answer
    assert not {"Location", "Refresh"} & set(answer.headers) and answer.headers["Content-Type"] == "application/json", answer.headers
    answer = daemon("GET", at + "text")
    assert answer.status == 200 and answer.body == b"Target is closing" and answer.headers["Content-Type"].startswith("text/plain"), answer


def test_its_answers_without_end_are_counted(daemon, hostile):
    """What is kept of them has the bound that all answers have together: the front does not end, and others are served."""
    said = b"HTTP/1.1 200 OK\r\nContent-Length: 2097152\r\n\r\n[" + b" " * (2097152 - 9) + b"held"
    waits, busy = [], []
    try:
        for _ in range(5):
            box = hostile()
            assert box.put("version", said).ok and daemon.post(f"{box.at}/browser").ok
            for _ in range(30):
                waits.append(daemon.connection())
                waits[-1].request("GET", f"{box.at}/browser/json/version")
        fds = {c.sock.fileno(): c for c in waits}
        told = select.select(list(fds), [], [], 20)[0]
        for fd in told:
            answer = fds[fd].getresponse()
            busy.append((answer.status, json.loads(answer.read())["code"]))
        assert busy and set(busy) == {(503, "http.busy")}, busy
        assert daemon.get("/v1/sandboxes").ok
    finally:
        for c in waits:
            c.close()
    assert wait_for(lambda: daemon.get(f"{box.at}/browser/json/none").status == 502, 30)
