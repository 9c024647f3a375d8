"""Ports of sandboxes that are exposed, and their previews."""
import http.client
import json
import os
import time

import pytest

from helpers import requirement
from helpers.daemon import Caller, Daemon, caller
from helpers.preview import echo, end_of, expose, handshake, raw, read_exactly, read_head, serve, sha256
from helpers.runner import wait_for

pytestmark = requirement("R23", "R61")


@pytest.fixture
def box(daemon):
    made = daemon.create(name="one")
    serve(made)
    return made


def test_a_server_is_reached(daemon, box):
    made = expose(box, name="web")
    assert made["port"] == 8000 and made["name"] == "web" and made["expires_ms"] is None and made["sandbox"] == box.id
    assert made["path"].startswith("/preview/") and len(made["path"]) == len("/preview/") + 40 + 1
    line, fields = echo(daemon.get(made["path"] + "a%2Fb/../c?x=1&y=%20"))
    assert line == "GET /a%2Fb/../c?x=1&y=%20 HTTP/1.1"
    assert fields["host"] == "localhost:8000" and fields["connection"] == "close"
    assert fields["x-forwarded-prefix"] == made["path"][:-1]
    listed = daemon.get(f"{box.at}/ports").json["ports"]
    assert [(p["id"], p["port"], p["connections"]) for p in listed] == [(made["id"], 8000, 1)]
    assert "url" not in listed[0] and made["path"][9:-1] not in json.dumps(listed)


def test_bare_address_leads_to_its_folder(daemon, box):
    made = expose(box)
    answer = daemon.get(made["path"][:-1])
    assert answer.status == 308 and answer.headers["Location"] == made["path"]


def test_on_ipv6_only(daemon):
    box = daemon.create()
    serve(box, 8001, six=True)
    assert echo(daemon.get(expose(box, 8001)["path"] + "echo"))[0] == "GET /echo HTTP/1.1"


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE", "OPTIONS"])
def test_methods_and_bodies(daemon, box, method):
    made = expose(box)
    answer = daemon(method, made["path"] + "echo", b"a body", {"X-Own": "kept"})
    line, fields = echo(answer)
    assert line == f"{method} /echo HTTP/1.1" and fields["content-length"] == "6" and fields["x-own"] == "kept"
    assert answer.json["sha256"] == sha256(b"a body")
    refused = daemon("PROPFIND", made["path"] + "echo")
    assert refused.status == 405 and refused.json["code"] == "http.method"


def test_head(daemon, box):
    box.put("h", b"HTTP/1.1 200 OK\r\nContent-Length: 12345\r\nX-A: b\r\n\r\n")
    answer = daemon("HEAD", expose(box)["path"] + "say/h")
    assert answer.status == 200 and answer.headers["Content-Length"] == "12345" and answer.body == b""


@pytest.mark.parametrize("raw_answer,status,body", [
    (b"HTTP/1.1 204 No Content\r\nX-A: b\r\n\r\n", 204, b""),
    (b"HTTP/1.1 304 Not Modified\r\nETag: \"x\"\r\n\r\n", 304, b""),
    (b"HTTP/1.1 404 No\r\nContent-Length: 3\r\n\r\nnot", 404, b"not"),
    (b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", 200, b""),
    (b"HTTP/1.0 200 OK\r\n\r\nuntil the end", 200, b"until the end"),
    (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\nX-T: 1\r\n\r\n", 200, b"abcde"),
    (b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 201 Made\r\nContent-Length: 1\r\n\r\nx", 201, b"x"),
])
def test_answers(daemon, box, raw_answer, status, body):
    box.put("a", raw_answer)
    answer = daemon.get(expose(box)["path"] + "say/a")
    assert (answer.status, answer.body) == (status, body)


def test_large_bodies_both_ways(daemon, box):
    """More than any buffer on the way, with its length and without one."""
    path = expose(box)["path"]
    data = os.urandom(1 << 20) * 6
    answer = daemon("POST", path + "echo", data)
    assert answer.json["n"] == len(data) and answer.json["sha256"] == sha256(data)
    c = daemon.connection()
    c.request("POST", path + "echo", body=(data[i:i + 100000] for i in range(0, len(data), 100000)), encode_chunked=True,
              headers={"Transfer-Encoding": "chunked"})
    said = json.loads(c.getresponse().read())
    c.close()
    assert said["n"] == len(data) and said["sha256"] == sha256(data)
    n = 6 << 20
    assert sha256(daemon.get(f"{path}much?{n}").body) == sha256((bytes(range(256)) * 256) * (n >> 16))


def test_slow_reader_stops_the_server(daemon, box):
    """Nothing is read ahead without a bound: the server stands still until its client goes on."""
    path = expose(box)["path"]
    n = 64 << 20
    sock = raw(daemon)
    sock.sendall(f"GET {path}much?{n} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
    assert read_head(sock)[0] == "HTTP/1.1 200 OK"
    wait_for(lambda: box.read("sent").ok, 60)

    def stands():
        was = box.read("sent").body
        time.sleep(1)
        return was and was == box.read("sent").body
    wait_for(stands, 60)
    assert int(box.read("sent").body) < n
    came = 0
    while came < n:         # all of it, and not kept: to put it together would take longer than to get it
        piece = sock.recv(min(1 << 20, n - came))
        assert piece, came
        came += len(piece)
    sock.close()


def test_slow_server_stops_the_client(daemon, box):
    path = expose(box)["path"]
    data = os.urandom(1 << 20) * 8
    c = daemon.connection()
    c.connect()
    c.sock.settimeout(5)
    head = f"POST {path}deaf HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(data)}\r\n\r\n".encode()
    sent = 0
    c.sock.sendall(head)
    try:
        while sent < len(data):
            sent += c.sock.send(data[sent:sent + 65536])
    except TimeoutError:
        pass
    # sockets' own buffers and a bounded one of the daemon's
    assert sent < len(data)
    box.put("go", b"")
    c.sock.settimeout(90)
    c.sock.sendall(data[sent:])
    assert read_head(c.sock)[0] == "HTTP/1.1 200 OK"
    assert read_exactly(c.sock, 64).decode() == sha256(data)
    c.close()


def test_body_that_comes_back_while_it_is_sent(daemon, box):
    data = os.urandom(300000)
    answer = daemon("POST", expose(box)["path"] + "mirror", data)
    assert answer.status == 200 and answer.body == data


def test_events_come_as_they_are_said(daemon, box):
    sock = raw(daemon)
    sock.sendall(f"GET {expose(box)['path']}sse HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
    _, fields = read_head(sock)
    assert ("content-type", "text/event-stream") in fields
    data = b""
    while b"data: 5\n\n" not in data:
        data += sock.recv(4096)
    sock.close()


def test_websocket(daemon, box):
    sock = raw(daemon)
    sock.sendall(handshake(expose(box)["path"] + "ws", "Sec-WebSocket-Protocol: chat", "Cookie: a=b"))
    status, fields = read_head(sock)
    assert status.split()[1] == "101" and ("sec-websocket-protocol", "chat") in fields
    assert read_exactly(sock, 5) == b"hello"
    data = os.urandom(1 << 20)
    got = b""
    for i in range(0, len(data), 65536):
        sock.sendall(data[i:i + 65536])
        got += read_exactly(sock, len(data[i:i + 65536]))
    assert got == data
    assert b"cookie" not in box.read("seen").body.lower()
    sock.close()
    wait_for(lambda: box.read("ws-ended").ok, 60)


def test_websocket_that_the_server_ends(daemon, box):
    box.put("w", b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\nlast words")
    sock = raw(daemon)
    sock.sendall(handshake(expose(box)["path"] + "say/w"))
    assert read_head(sock)[0].split()[1] == "101"
    assert end_of(sock) == b"last words"


def test_own_name(cloche):
    """A name of its own for each capability, so that browsers keep its pages apart."""
    daemon = Daemon(cloche, path=cloche.home / "s", tcp=True)
    box = daemon.create()
    serve(box)
    made = expose(box)
    port = daemon.addresses()[0][1]
    capability = made["path"][9:-1]
    assert made["url"] == f"http://127.0.0.1:{port}{made['path']}"
    assert made["host_url"] == f"http://{capability}.preview.localhost:{port}/"
    remote = daemon.remote()
    host = f"{capability.upper()}.preview.localhost:{port}"
    answer = remote("GET", "/v1/health?x", headers={"Host": host, "Origin": f"http://{host}"})
    line, fields = echo(answer)
    assert line == "GET /v1/health?x HTTP/1.1" and fields["origin"] == "http://localhost:8000" and "x-forwarded-prefix" not in fields
    assert "Content-Security-Policy" not in answer.headers and answer.headers["X-Content-Type-Options"] == "nosniff"
    assert echo(remote("GET", made["path"] + "x", headers={"Host": f"127.0.0.1:{port}"}))[0] == "GET /x HTTP/1.1"
    refused = remote("PROPFIND", "/", headers={"Host": host})
    assert refused.status == 405 and refused.headers["Allow"] == "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS"
    assert daemon.stop() == 0, daemon.log


def test_places_that_the_server_names(daemon, box):
    made = expose(box)
    root = made["path"][:-1]
    rows = [("/login?a", root + "/login?a"), ("http://localhost:8000/b", root + "/b"), ("http://127.0.0.1:8000", root + "/"),
            ("//evil.test/c", "//evil.test/c"), ("relative", "relative"), ("http://localhost:80001/b", "http://localhost:80001/b"),
            ("https://example.org/d", "https://example.org/d")]
    for said, found in rows:
        box.put("l", f"HTTP/1.1 302 Found\r\nLocation: {said}\r\nContent-Length: 0\r\n\r\n".encode())
        assert daemon.get(made["path"] + "say/l").headers["Location"] == found


def test_taking_back_ends_what_is_open(daemon, box):
    made, other = expose(box), expose(box)
    box.put("part", b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nsome")
    held = raw(daemon)
    held.sendall(f"GET {made['path']}hold/part HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
    assert read_head(held)[0] == "HTTP/1.1 200 OK" and read_exactly(held, 4) == b"some"
    waits = raw(daemon)
    waits.sendall(f"GET {made['path']}late HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
    wait_for(lambda: b"GET /late" in box.read("seen").body, 60)
    ended = daemon("DELETE", f"{box.at}/ports/{made['id']}")
    assert ended.status == 200 and ended.json["id"] == made["id"] and ended.json["connections"] == 2
    assert end_of(held) == b""
    assert read_head(waits)[0].split()[1] == "404"
    wait_for(lambda: box.read("hold-ended").ok, 60)
    gone = daemon.get(made["path"])
    assert gone.status == 404 and gone.json["code"] == "preview.none"
    assert daemon("DELETE", f"{box.at}/ports/{made['id']}").json["code"] == "ports.none"
    assert echo(daemon.get(other["path"]))


def test_its_time_is_over(daemon, box):
    made = expose(box, ttl=1)
    assert made["expires_ms"] == made["created_ms"] + 1000
    wait_for(lambda: daemon.get(made["path"]).status == 404, 60)
    wait_for(lambda: daemon.get(f"{box.at}/ports").json["ports"] == [], 60)


def test_what_is_not_there(daemon, box):
    nobody = daemon.get(expose(box, 9)["path"])
    assert nobody.status == 502 and nobody.json["code"] == "ports.refused"
    made = expose(box)
    assert daemon.post(f"{box.at}/pause").ok
    paused = daemon.get(made["path"])
    assert paused.status == 503 and paused.json["code"] == "sandbox.paused" and paused.headers["Retry-After"] == "1"
    assert daemon.post(f"{box.at}/resume").ok
    assert echo(daemon.get(made["path"]))
    box.put("nothing", b"")
    silent = daemon.get(made["path"] + "say/nothing")
    assert silent.status == 502 and silent.json["code"] == "preview.closed"
    assert box.delete().ok
    assert daemon.get(made["path"]).status == 404


def test_sandbox_that_ends_under_it(daemon, box):
    made = expose(box)
    sock = raw(daemon)
    sock.sendall(f"GET {made['path']}late HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
    wait_for(lambda: b"GET /late" in box.read("seen").body, 60)
    assert box.delete().ok
    assert read_head(sock)[0].split()[1] in ("404", "502")
    sock.close()


def test_previews_outlive_a_warden(daemon, box):
    made = expose(box, name="kept")
    (pid,) = daemon.processes("cloche-warden")
    os.kill(pid, 9)

    def answers():
        try:
            return daemon.get(made["path"]).status == 200
        except (OSError, http.client.HTTPException):
            return False
    wait_for(answers, 60)
    assert [p["name"] for p in daemon.get(f"{box.at}/ports").json["ports"]] == ["kept"]


def test_form_of_the_request(daemon, box):
    at = f"{box.at}/ports"
    for body in ({}, {"port": 0}, {"port": 65536}, {"port": "80"}, {"port": 1, "ttl": -1}, {"port": 1, "name": "a b"}, {"port": 1, "x": 1}, []):
        refused = daemon.post(at, body)
        assert refused.status == 400 and refused.json["code"] == "ports.request", (body, refused)
    assert daemon.post("/v1/sandboxes/none/ports", {"port": 1}).status == 404
    assert daemon("DELETE", f"{at}/nothing").status == 404


def test_limit_of_ports(daemon, box):
    made = [expose(box, 1000 + i) for i in range(32)]
    refused = daemon.post(f"{box.at}/ports", {"port": 2000})
    assert refused.status == 429 and refused.json["code"] == "ports.too-many"
    assert daemon("DELETE", f"{box.at}/ports/{made[0]['id']}").ok
    assert expose(box, 2000)


def test_connections_at_once(daemon, box):
    made = expose(box)
    socks = [raw(daemon) for _ in range(33)]
    for i, sock in enumerate(socks[:32]):
        sock.sendall(f"GET {made['path']}late?{i} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
    wait_for(lambda: box.read("seen").body.count(b"GET /late") == 32, 60)
    socks[32].sendall(f"GET {made['path']}echo HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
    assert read_head(socks[32])[0].split()[1] == "503"
    # what the sandbox does otherwise is not in their way
    assert box.exec("echo still")["stdout"] == "still\n"
    box.put("go", b"")
    for sock in socks[:32]:
        assert read_head(sock)[0].split()[1] == "200"
    for sock in socks:
        sock.close()
    wait_for(lambda: daemon.get(made["path"]).status == 200, 60)


def test_roles(daemon, box):
    """Exposing is for those who run things; looking on is for auditors; a preview is for whoever has its address."""
    agent = caller(daemon, "agent")
    own = agent.create(name="its")
    serve(own)
    made = expose(own)
    assert echo(Caller(daemon, Authorization="Bearer nonsense").get(made["path"]))
    assert caller(daemon, "auditor").get(f"{own.at}/ports").json["ports"][0]["id"] == made["id"]
    for role in ("auditor", "approver"):
        assert caller(daemon, role).post(f"{own.at}/ports", {"port": 1}).json["code"] == "auth.role"
    key = Caller(daemon, X_Sandbox_Key=own.record["key"])
    assert key.post(f"{own.at}/ports", {"port": 1}).json["code"] == "auth.role"


def test_ends_with_the_token_of_its_sandbox(daemon):
    token = daemon.post("/v1/tokens", {"role": "agent"}).json
    own = Caller(daemon, Authorization=f"Bearer {token['token']}").create()
    serve(own)
    made = expose(own)
    assert echo(daemon.get(made["path"]))
    assert daemon("DELETE", f"/v1/tokens/{token['id']}").ok
    assert daemon.get(made["path"]).status == 404


def test_in_the_record(daemon, box):
    made = expose(box, name="web")
    for _ in range(3):
        assert echo(daemon.get(made["path"] + "echo?secret-word"))
    assert daemon("DELETE", f"{box.at}/ports/{made['id']}").ok

    def said():
        return [json.dumps(e) for e in daemon.get(f"/v1/audit?sandbox={box.id}&limit=1000").json["entries"]]
    wait_for(lambda: any("port_closed" in e for e in said()), 60)
    lines = said()
    assert any("expose_port" in e and '"port": 8000' in e for e in lines)
    assert any('"preview"' in e and "connections" in e for e in lines) and any("unexpose_port" in e for e in lines)
    assert not any("secret-word" in e or made["path"][9:-1] in e for e in lines)
    events = daemon.get(f"/v1/events?sandbox={box.id}").json["events"]
    assert {"port_exposed", "preview", "port_closed"} <= {e["type"] for e in events}
