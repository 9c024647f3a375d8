"""Attacks on exposed ports: from outside without a capability, by a server in a sandbox, and on what a browser holds."""
import json
import os
import socket
import threading

import pytest

from helpers import requirement
from helpers.daemon import Caller, Daemon, caller, is_sanitized, resident
from helpers.preview import echo, end_of, expose, handshake, raw, read_head, serve
from helpers.runner import wait_for

pytestmark = requirement("R12", "R23")


@pytest.fixture
def box(daemon):
    made = daemon.create(name="one")
    serve(made)
    return made


@pytest.fixture
def tcp(cloche):
    made = Daemon(cloche, path=cloche.home / "s", tcp=True)
    yield made
    assert made.stop() == 0, made.log


@pytest.fixture
def hosts_server():
    """Something of the host's that listens where no sandbox may get to: its port, and what came."""
    came = []
    server = socket.create_server(("127.0.0.1", 0))

    def run():
        while True:
            try:
                c, _ = server.accept()
            except OSError:
                return
            came.append(c.recv(1000))
            c.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nsecret")
            c.close()
    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    yield server.getsockname()[1], came
    server.close()


# --- without the capability ---------------------------------------------------------------------------------------

def test_guesses(daemon, box):
    made = expose(box)
    capability = made["path"][9:-1]
    near = capability[:-1] + ("0" if capability[-1] != "0" else "1")
    before = box.read("seen").status
    for guess in ("0" * 40, near, capability[:-1], capability + "0", capability.upper(), "%30" + capability[1:], made["id"], box.id, "", ".", "*"):
        if guess == capability:
            continue
        answer = daemon.get(f"/preview/{guess}/")
        assert answer.status == 404, (guess, answer)
    assert daemon.get(f"/preview/x/../{capability}/").status == 404
    assert daemon.get(f"//preview/{capability}/").status == 404
    assert box.read("seen").status == before
    assert [e for e in daemon.get("/v1/events?limit=1000").json["events"] if e["type"] == "auth_refused" and "preview" in e["detail"]]
    assert echo(daemon.get(made["path"]))


def test_what_is_kept_opens_nothing(daemon, box):
    """Neither lists, records, events, logs nor the state's file have a capability in them."""
    made = expose(box, name="kept")
    capability = made["path"][9:-1].encode()
    assert echo(daemon.get(made["path"]))
    for path in ("/v1/sandboxes", box.at, f"{box.at}/ports", "/v1/events?limit=1000", "/v1/audit?limit=1000", f"{box.at}/transcript", "/metrics"):
        assert capability not in daemon.get(path).body, path
    for folder, _, files in os.walk(daemon.cloche.state):
        for name in files:
            at = os.path.join(folder, name)
            if os.path.isfile(at):
                with open(at, "rb") as f:
                    assert capability not in f.read(), at


def test_only_that_port_and_that_sandbox(daemon, box):
    """A server that was not exposed, in the same sandbox or another one, is reached by no spelling of an address."""
    assert box.exec("setsid python3 server.py 8002 >log2 2>&1 </dev/null &")["exit_code"] == 0
    wait_for(lambda: box.read("ready-8002").ok, 60)
    other = daemon.create(name="other")
    made = expose(box)
    # the port is exposed in one, and in the other one nobody listens there
    elsewhere = expose(other)
    assert daemon.get(elsewhere["path"]).json["code"] == "ports.refused"
    for path in ("http://localhost:8002/", "//localhost:8002/", ":8002/", "@localhost:8002/", "/../../8002"):
        answer = daemon.get(made["path"] + path)
        assert answer.status == 400 or echo(answer)[1]["host"] == "localhost:8000", (path, answer)
    answer = daemon("GET", made["path"], headers={"Host": "localhost:8002", "X-Forwarded-Host": "evil.test", "Forwarded": "host=evil.test"})
    _, fields = echo(answer)
    assert fields["host"] == "localhost:8000" and fields["x-forwarded-host"] == "localhost:8002" and "forwarded" not in fields


def test_no_caller_connects_without_exposing(daemon):
    """An operation that is a connection is the warden's own; a key and an agent of another's expose nothing."""
    mine, theirs = caller(daemon, "agent"), caller(daemon, "agent")
    box = mine.create(name="mine")
    made = expose(box)
    for attacker in (theirs, Caller(daemon, X_Sandbox_Key=theirs.create().record["key"])):
        assert attacker.post(f"{box.at}/ports", {"port": 8000}).json["code"] in ("sandbox.not-found", "auth.role")
        assert attacker.get(f"{box.at}/ports").json["code"] in ("sandbox.not-found", "auth.role")
        assert attacker("DELETE", f"{box.at}/ports/{made['id']}").json["code"] in ("sandbox.not-found", "auth.role")
    own = theirs.create(name="own")
    assert theirs("DELETE", f"{own.at}/ports/{made['id']}").json["code"] == "ports.none"
    assert [p["id"] for p in mine.get(f"{box.at}/ports").json["ports"]] == [made["id"]]


def test_an_agent_has_to_ask(cloche):
    daemon = Daemon(cloche, gate=None)
    agent = caller(daemon, "agent")
    box = agent.create(name="its")
    waits = agent("POST", f"{box.at}/ports", {"port": 8000}, {"Prefer": "respond-async"})
    assert waits.status == 202, waits
    shown = daemon.get("/v1/approvals").json["approvals"][0]
    assert shown["tool"] == "expose_port" and shown["params"]["port"] == 8000 and shown["risk"] == "HIGH"
    # what was approved is that port, and no other
    assert daemon.post(f"/v1/approvals/{shown['id']}/approve", {}).ok
    assert agent("POST", f"{box.at}/ports", {"port": 8001}, {"Prefer": "respond-async"}).status == 202
    assert agent("POST", f"{box.at}/ports", {"port": 8000}, {"Prefer": "respond-async"}).status == 201
    assert daemon.stop() == 0, daemon.log


# --- ports of the host's ------------------------------------------------------------------------------------------

def test_ports_of_the_host(daemon, box, hosts_server):
    port, came = hosts_server
    answer = daemon.get(expose(box, port)["path"])
    assert answer.status == 502 and answer.json["code"] == "ports.refused", answer
    assert not came


def test_sandboxes_without_a_network_of_their_own(daemon, hosts_server):
    """There the host's ports would be the sandbox's: nothing is exposed."""
    port, came = hosts_server
    for policy in ({"mode": "light"}, {"network": {"mode": "host"}}):
        made = daemon.post("/v1/sandboxes", {"policy": {**policy, "fallback": "warn"}})
        if made.status != 201:
            continue        # this host cannot have such a one
        refused = daemon.post(f"/v1/sandboxes/{made.json['id']}/ports", {"port": port})
        assert refused.status == 409 and refused.json["code"] == "ports.network", refused
    assert not came


def test_ports_that_lead_out(daemon):
    """Where the network is open, its way out is no server of the sandbox's: nobody borrows it by an address."""
    box = daemon.create(policy={"network": {"mode": "allowlist", "allow": ["example.test", "example.test:8443"]}})
    for port in (53, 80, 443, 8443):
        refused = daemon.post(f"{box.at}/ports", {"port": port})
        assert refused.status == 409 and refused.json["code"] == "ports.reserved", (port, refused)
    assert expose(box, 8000)


# --- smuggling ----------------------------------------------------------------------------------------------------

REQUESTS = [
    b"POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET /smuggled HTTP/1.1\r\nHost: x\r\n\r\n",
    b"POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\nContent-Length: 40\r\n\r\nGET /smuggled HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"POST %s HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: xchunked\r\n\r\n0\r\n\r\nGET /smuggled HTTP/1.1\r\nHost: x\r\n\r\n",
    b"POST %s HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding : chunked\r\n\r\n0\r\n\r\nGET /smuggled HTTP/1.1\r\nHost: x\r\n\r\n",
    b"POST %s HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n5;x=\n\r\nGET /smuggled HTTP/1.1\r\n\r\n0\r\n\r\n",
    b"GET %s HTTP/1.1\r\nHost: localhost\r\nX: a\r\n GET /smuggled HTTP/1.1\r\n\r\n",
    b"GET %s HTTP/1.1\r\nHost: localhost\r\nX: a\rGET /smuggled HTTP/1.1\r\n\r\n",
    b"GET %s?x HTTP/1.1\r\nHost: localhost\r\nConnection: close, X-Forwarded-Host, X-Secret\r\nX-Secret: s\r\n\r\n",
    b"GET %s\x0bsmuggled HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"GET %s%%0d%%0aGET%%20/smuggled HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"GET %s#/smuggled HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"GET http://localhost%s HTTP/1.1\r\nHost: localhost\r\n\r\n",
]


@pytest.mark.parametrize("which", range(len(REQUESTS)))
def test_a_request_is_one_request(daemon, box, which):
    path = expose(box)["path"].encode()
    sock = raw(daemon)
    sock.sendall(REQUESTS[which].replace(b"%s", path + b"echo", 1).replace(b"%%", b"%"))
    sock.shutdown(socket.SHUT_WR)
    answer = end_of(sock)
    seen = box.read("seen").body if box.read("seen").ok else b""
    odd = box.read("odd").body if box.read("odd").ok else b""
    lines = [line for line in (seen + odd).split(b"\r\n") if b" HTTP/1." in line]
    assert all(b"/smuggled HTTP" not in line.replace(b"%20/smuggled HTTP", b"") for line in lines), (seen, odd, answer)
    assert len(lines) <= 2, (seen, answer)      # a pipelined second request of the client's own goes its own way
    assert b"x-secret" not in seen.lower()
    assert b"\nGET /smuggled" not in seen, seen
    sock.close()


ANSWERS = [
    b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nabc",
    b"HTTP/1.1 200 OK\r\nContent-Length: 2, 2\r\n\r\nab",
    b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n0\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\nab",
    b"HTTP/1.1 200 OK\r\nX : y\r\n\r\n", b"HTTP/1.1 200 OK\r\n X: y\r\n\r\n", b"HTTP/1.1 200 OK\nContent-Length: 0\n\n",
    b"HTTP/1.1 200 OK\r\nX: a\x00b\r\n\r\n", b"HTTP/2 200\r\n\r\n", b"ICY 200 OK\r\n\r\n", b"HTTP/1.1 20 OK\r\n\r\n",
    b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n", b"SSH-2.0-x\r\n", b"\r\n\r\n",
    b"HTTP/1.1 100 Continue\r\n\r\n" * 20 + b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nX: " + b"a" * 70000 + b"\r\n\r\n", b"HTTP/1.1 200 OK\r\n" + b"X: a\r\n" * 2000 + b"\r\n", b"a" * 200000,
]


@pytest.mark.parametrize("which", range(len(ANSWERS)))
def test_an_answer_is_one_or_none(daemon, box, which):
    box.put("a", ANSWERS[which])
    answer = daemon.get(expose(box)["path"] + "hold/a")
    assert answer.status == 502 and answer.json["code"] in ("preview.answer", "preview.closed"), answer
    assert daemon.get("/v1/health").ok


@pytest.mark.parametrize("body", [
    b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nshort", b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nabcde\r\n",
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nabcdeX\r\n0\r\n\r\n", b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nab\r\n0\r\n\r\n"])
def test_a_part_is_not_taken_for_the_whole(daemon, box, body):
    box.put("a", body)
    sock = raw(daemon)
    sock.sendall(f"GET {expose(box)['path']}say/a HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
    status, fields = read_head(sock)
    rest = end_of(sock)
    if status.split()[1] == "200":
        assert dict(fields).get("content-length") == "10" and len(rest) < 10 or not rest.endswith(b"0\r\n\r\n"), (fields, rest)
    else:
        assert status.split()[1] == "502"


def test_nothing_follows_an_answer(daemon, box):
    """A second answer behind the first is nobody's: not the next request's on that connection."""
    box.put("a", b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokHTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\npoison")
    path = expose(box)["path"]
    c = daemon.connection()
    for _ in range(3):
        c.request("GET", path + "say/a")
        assert c.getresponse().read() == b"ok"
        c.request("GET", "/v1/health")
        assert json.loads(c.getresponse().read())["status"] == "ok"
    c.close()


# --- what a browser holds -----------------------------------------------------------------------------------------

HELD = {"Cookie": "session=s3cr3t", "Authorization": "Bearer s3cr3t", "X-Sandbox-Key": "s3cr3t", "Proxy-Authorization": "Basic s3cr3t",
        "Idempotency-Key": "s3cr3t", "Referer": "http://localhost/s3cr3t", "X-Forwarded-For": "s3cr3t", "X-Forwarded-User": "s3cr3t",
        "x-forwarded-port": "s3cr3t", "X-Real-IP": "s3cr3t",
        # what a proxy in front says of who asks, often in a form that opens other servers too
        "Cf-Access-Jwt-Assertion": "s3cr3t", "X-Auth-Request-Access-Token": "s3cr3t", "X-Amzn-Oidc-Data": "s3cr3t", "X-Goog-IAP-JWT-Assertion": "s3cr3t",
        "X-MS-TOKEN-AAD-ACCESS-TOKEN": "s3cr3t", "X-MS-CLIENT-PRINCIPAL": "s3cr3t", "Remote-User": "s3cr3t", "X-Remote-User": "s3cr3t",
        "X-WEBAUTH-USER": "s3cr3t", "X-authentik-jwt": "s3cr3t", "X-Pomerium-Jwt-Assertion": "s3cr3t", "Teleport-Jwt-Assertion": "s3cr3t",
        "Tailscale-User-Login": "s3cr3t", "X-SSL-Client-Cert": "s3cr3t", "SSL-Client-Cert": "s3cr3t", "Client-Cert": "s3cr3t",
        "X-Client-Cert": "s3cr3t", "X-Client-IP": "s3cr3t", "True-Client-IP": "s3cr3t", "CF-Connecting-IP": "s3cr3t", "Via": "s3cr3t"}


def test_nothing_that_is_ours_goes_in(daemon, box):
    made = expose(box)
    _, fields = echo(daemon("POST", made["path"] + "echo", b"x", {**HELD, "Accept": "kept"}))
    assert "s3cr3t" not in str(fields) and fields["accept"] == "kept"
    sock = raw(daemon)
    sock.sendall(handshake(made["path"] + "ws", *[f"{k}: {v}" for k, v in HELD.items()]))
    assert read_head(sock)[0].split()[1] == "101"
    sock.close()
    assert b"s3cr3t" not in box.read("seen").body


OURS = ["Set-Cookie: a=b; Path=/", "Set-Cookie2: a=b", "WWW-Authenticate: Basic realm=x", "Clear-Site-Data: \"*\"",
        "Strict-Transport-Security: max-age=1", "Alt-Svc: h2=\":1\"", "Service-Worker-Allowed: /", "Access-Control-Allow-Credentials: true",
        "Accept-CH: Sec-CH-UA", "Critical-CH: Sec-CH-UA", "Set-Login: logged-in", "Sec-Session-Registration: (ES256);path=\"/x\"",
        "Secure-Session-Registration: (ES256);path=\"/x\"", "Secure-Session-Challenge: \"x\"", "Sec-Session-Challenge: \"x\"",
        "Observe-Browsing-Topics: ?1", "Attribution-Reporting-Register-Source: {}", "Attribution-Reporting-Register-Trigger: {}",
        "Shared-Storage-Write: set;key=a;value=b", "Ad-Auction-Signals: []",
        "Use-As-Dictionary: match=\"/*\"", "Speculation-Rules: \"/v1\"", "Activate-Storage-Access: load", "X-Request-Id: forged", "Keep-Alive: timeout=1", "Proxy-Authenticate: Basic",
        # what a proxy in front would do: another file or another address of its own in place of this answer
        "X-Accel-Redirect: /internal/secret", "X-Accel-Expires: 3600", "X-Sendfile: /etc/passwd", "X-Sendfile2: /etc/passwd 0-", "X-LIGHTTPD-send-file: /etc/passwd",
        "X-LiteSpeed-Location: /internal", "X-Reproxy-URL: http://169.254.169.254/", "X-Envoy-Original-Path: /"]


def test_nothing_about_our_origin_goes_out(daemon, box):
    made = expose(box)
    box.put("a", ("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n" + "\r\n".join(OURS) + "\r\nContent-Security-Policy: default-src *\r\n"
                  "Content-Length: 2\r\n\r\nok").encode())
    sock = raw(daemon)
    sock.sendall(f"GET {made['path']}say/a HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode())
    _, fields = read_head(sock)
    sock.close()
    said = [f"{n}: {v}".lower() for n, v in fields]
    for line in OURS:
        assert line.lower() not in said, (line, said)
    policies = [v for n, v in fields if n == "content-security-policy"]
    assert "default-src *" in policies and any(v.startswith("sandbox ") and "allow-same-origin" not in v for v in policies)
    one = dict(fields)
    assert one["x-content-type-options"] == "nosniff" and one["referrer-policy"] == "no-referrer" and one["cache-control"] == "no-store"
    assert "access-control-allow-origin" not in one and one["content-type"] == "text/html"


@pytest.mark.parametrize("kind", ["multipart/x-mixed-replace; boundary=b", "MULTIPART/X-Mixed-Replace;boundary=b", "text/html\r\nContent-Type: multipart/x-mixed-replace",
                                  "multipart/x-mixed-replace, text/html", "text/html, multipart/x-mixed-replace;boundary=b"])
def test_no_part_of_an_answer_has_fields_of_its_own(tcp, kind):
    """Browsers take Set-Cookie, and policies, of a part as the answer's: nobody would have looked at them."""
    box = tcp.create()
    serve(box)
    made = expose(box)
    body = "--b\r\nContent-Type: text/html\r\nSet-Cookie: a=b\r\n\r\nok\r\n--b--\r\n"
    box.put("parts", f"HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode())
    box.put("form", f"HTTP/1.1 200 OK\r\nContent-Type: multipart/form-data; boundary=b\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode())
    remote = tcp.remote()
    for path, host in ((made["path"], {}), ("/", {"Host": made["host_url"][7:-1]})):
        answer = remote("GET", path + "say/parts", headers=host)
        assert answer.status == 502 and answer.json["code"] == "preview.answer", answer
        assert remote("GET", path + "say/form", headers=host).body == body.encode()


def test_who_reads_is_the_servers_to_say(tcp):
    """No other site's page reads what a server has not opened to it, at either address, nor any refusal of ours; what it has opened is so."""
    box = tcp.create()
    serve(box)
    made = expose(box)
    box.put("shut", b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
    box.put("open", b"HTTP/1.1 200 OK\r\nAccess-Control-Allow-Origin: https://a.test\r\nAccess-Control-Allow-Credentials: true\r\n"
                    b"Content-Length: 2\r\n\r\nok")
    remote = tcp.remote()
    at_ours, at_its_own = (made["path"], {}), ("/", {"Host": made["host_url"][7:-1]})
    for path, host in (at_ours, at_its_own):
        for origin in ("https://a.test", "https://evil.test", "null"):
            for method in ("GET", "HEAD", "OPTIONS"):
                headers = {**host, "Origin": origin, "Access-Control-Request-Method": "GET"}
                shut = remote(method, f"{path}say/shut", headers=headers)
                assert shut.status == 200 and not [n for n in shut.headers if n.lower().startswith("access-control")], (method, origin, shut.headers)
                opened = remote(method, f"{path}say/open", headers=headers)
                assert opened.headers["Access-Control-Allow-Origin"] == "https://a.test", opened.headers
                assert host or "Access-Control-Allow-Credentials" not in opened.headers, opened.headers
    for path in ("/preview/" + "0" * 40 + "/", made["path"][:-1], "/preview/x"):
        none = remote("GET", path, headers={"Origin": "https://evil.test"})
        assert none.status in (308, 404) and not [n for n in none.headers if n.lower().startswith("access-control")], none.headers


def test_pages_of_a_preview_are_strangers_to_the_api(tcp):
    """A page has the origin "null" at our address and one of its own at its own: the API takes neither."""
    box = tcp.create()
    serve(box)
    made = expose(box)
    port = tcp.addresses()[0][1]
    host = made["host_url"][7:-1]
    secret = tcp.token("operator")
    remote = tcp.remote(secret)
    for origin in ("null", f"http://{host}", f"http://127.0.0.1:{port + 1}"):
        refused = remote("POST", f"{box.at}/exec", {"command": "touch was-here"}, {"Origin": origin})
        assert refused.status == 403 and refused.json["code"] == "http.origin", (origin, refused)
    assert box.read("was-here").status == 404
    # while the preview itself is for pages of any site, by its capability
    assert echo(tcp.remote()("GET", made["path"], headers={"Origin": "null"}))[1]["origin"] == "null"


def test_names(tcp):
    """Only names of ours, and only with the whole capability in front, are a preview's; and those are never the API's."""
    box = tcp.create()
    serve(box)
    made = expose(box)
    capability, port = made["path"][9:-1], tcp.addresses()[0][1]
    operator = tcp.remote(tcp.token("operator"))
    for host in (f"{capability}.preview.evil.test", f"{capability}.evil.test", f"x.{capability}.preview.localhost:{port}", f"preview.localhost:{port}",
                 f"{capability[:-1]}.preview.localhost:{port}", f"{capability}.preview.", f"{capability}.preview.localhost.evil.test"):
        for path in ("/", made["path"], "/v1/sandboxes"):
            refused = operator("GET", path, headers={"Host": host})
            assert refused.status == 403 and refused.json["code"] == "http.host", (host, path, refused)
    for none in ("0" * 40, capability):
        answer = operator("GET", "/v1/sandboxes", headers={"Host": f"{none}.preview.localhost:{port}"})
        if none == capability:
            line, fields = echo(answer)
            assert line == "GET /v1/sandboxes HTTP/1.1" and "authorization" not in fields
        else:
            assert answer.status == 404 and answer.json["code"] == "preview.none"
    assert b"/v1/sandboxes" in box.read("seen").body


# --- a hostile sandbox --------------------------------------------------------------------------------------------

def test_a_server_that_never_ends(daemon, box):
    """Heads and bodies without end, connections that hang: bounded, and nobody else's are in the way."""
    made = expose(box)
    box.put("part", b"HTTP/1.1 200 OK\r\nX: ")
    hanging = []
    for _ in range(8):
        sock = raw(daemon)
        sock.sendall(f"GET {made['path']}hold/part HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
        hanging.append(sock)
    other = daemon.create(name="other")
    serve(other)
    assert echo(daemon.get(expose(other)["path"]))
    assert echo(daemon.get(made["path"]))
    for sock in hanging:
        sock.close()
    wait_for(lambda: box.read("hold-ended").ok and len(box.read("hold-ended").body) == 8, 60)


def test_giant_requests(daemon, box):
    made = expose(box)
    for field in ("x" * 40000, "\r\n".join(f"X-{i}: {'y' * 20}" for i in range(600))):
        sock = raw(daemon)
        try:
            sock.sendall(f"GET {made['path']} HTTP/1.1\r\nHost: localhost\r\nX: {field}\r\n\r\n".encode())
        except OSError:
            pass
        answer = end_of(sock)
        assert answer == b"" or answer.split()[1] in (b"400", b"413", b"431"), answer[:200]
        sock.close()
    assert daemon.get(made["path"] + "a" * 9000).status in (400, 414)
    assert daemon.get(made["path"] + "?" + "a" * 9000).status in (400, 414)
    assert echo(daemon.get(made["path"]))


def test_answers_that_come_too_early(daemon):
    """A server that answers before its request is through fills what is kept for its client: of all of them a bounded part."""
    front = daemon.only("cloche-front")
    socks, places_ = [], []
    for name in ("a", "b", "c"):
        one = daemon.create(name=name)
        serve(one)
        assert one.put("early", b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n" + b"x" * 900_000).ok
        places_.append(expose(one))
    before = resident(front)
    for made in places_:
        for _ in range(24):
            sock = raw(daemon)
            sock.sendall(f"POST {made['path']}hold/early HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\n1".encode())
            socks.append(sock)
    other = daemon.create(name="other")
    serve(other)
    assert echo(daemon.get(expose(other)["path"]))
    wait_for(lambda: resident(front) - before > 15000, 10)
    assert resident(front) - before < 45000 or is_sanitized(daemon), resident(front) - before
    for sock in socks:
        sock.close()
    # and there is room again
    wait_for(lambda: all(daemon("POST", made["path"] + "echo", b"x").status == 200 for made in places_))
    assert echo(daemon("POST", places_[0]["path"] + "echo", b"x"))
