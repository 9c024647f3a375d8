"""What is looked into, by the keys open-tls, refuse-opaque, refuse-moving-paths and strip-headers: each attack goes through without its
key (the control), and not with it. Judged by what the far servers saw, and by what reached the client."""
import json
import os

import pytest

from helpers import requirement
from helpers.internet import PRELUDE
from helpers.scripted import CLIENT, OK, Scripted, answers, plain
from helpers.vaulted import BUNDLE

pytestmark = [requirement("R02", "R13", "R14"), pytest.mark.root]
EVIL = "evil.example.org"


@pytest.fixture
def look(online, tmp_path):
    """look("--open-tls", code=...): Python inside, behind those flags."""
    env = {**os.environ, "XDG_DATA_HOME": str(tmp_path)}

    def run(*flags, code, allow=(OK,)):
        code = PRELUDE.replace("/mnt/ca.pem", BUNDLE) + CLIENT + code
        result = online.run(["/usr/bin/python3", "-I", "-S", "-c", code], allow, ["--extra-ca", str(online.net.ca), *flags], env=env)
        assert result.ok, result
        return result.out
    run.net = online.net
    return run


# --- TLS that is opened: a request in it that is for another host ---------------------------------------------------------

FRONTED = f"""
s, head = connect('{OK}:443')
t = tls(s, '{OK}'); t.sendall(get('{EVIL}', '/fronted', CLOSE)); print(drain(t).split(b'\\r\\n')[0].decode())
"""


def test_a_request_for_another_host_in_tls(look):
    assert " 200 " in look(code=FRONTED)                            # the attack is real: a name in TLS, another in it
    assert [r["host"] for r in look.net.requests] == [EVIL]
    assert " 403 " in look("--open-tls", code=FRONTED)
    assert len(look.net.requests) == 1


def test_a_host_that_is_kept_closed(look):
    """keep-tls is for hosts that are named there, and takes nothing from the others."""
    assert " 200 " in look("--open-tls", "--keep-tls", OK, code=FRONTED)
    assert " 403 " in look("--open-tls", "--keep-tls", "*.second.example.org", code=FRONTED)


# --- what stays closed ----------------------------------------------------------------------------------------------------

def opaque(port):
    return f"""
def tried(way):
    try: return way()
    except Exception as e: return type(e).__name__
def tunnel():
    s, head = connect('{OK}:{port}'); s.sendall(b'EXFIL-connect\\n'); return drain(s).decode()
def socks5():
    s, _ = socks(3, b'\\x0e{OK}', port={port}); s.sendall(b'EXFIL-socks\\n'); return drain(s).decode()
def direct():
    s = dial('{OK}', {port}); s.sendall(b'EXFIL-direct\\n'); return drain(s).decode()
print(json.dumps([tried(tunnel), tried(socks5), tried(direct)]))
"""


def test_a_protocol_of_its_own(look):
    def serve(connection, _, kept):
        kept.append(connection.recv(100))
        connection.sendall(b"got it\n")
    server = Scripted(look.net, serve)
    code = opaque(server.port)
    assert json.loads(look(code=code, allow=server.allow)) == ["got it\n"] * 3
    assert {b"".join(kept) for kept in server.seen} == {b"EXFIL-connect\n", b"EXFIL-socks\n", b"EXFIL-direct\n"}
    server.seen.clear()
    said = json.loads(look("--refuse-opaque", code=code, allow=server.allow))
    assert not [s for s in said if "got it" in s], said
    assert not b"".join(piece for kept in server.seen for piece in kept), server.seen


def test_a_server_that_speaks_first(look):
    """Its words do not open the way for the client's."""
    def serve(connection, _, kept):
        connection.sendall(b"220 ready\n")
        kept.append(connection.recv(100))
    server = Scripted(look.net, serve)
    code = f"""
s, head = connect('{OK}:{server.port}'); print(until(s, b'\\n')); s.sendall(b'EXFIL\\n'); drain(s)
"""
    assert "220 ready" in look(code=code, allow=server.allow) and server.seen == [[b"EXFIL\n"]]
    server.seen.clear()
    assert "220 ready" not in look("--refuse-opaque", code=code, allow=server.allow)
    assert not b"".join(piece for kept in server.seen for piece in kept), server.seen


TLS = f"""
import ssl
def one(way):
    try:
        s = way(); t = tls(s, '{OK}', True); t.sendall(get('{OK}', '/in-tls', CLOSE)); return drain(t).split(b'\\r\\n')[0].decode()
    except (OSError, ssl.SSLError) as e: return type(e).__name__
print(json.dumps([one(lambda: connect('{OK}:443')[0]), one(lambda: socks(3, b'\\x0e{OK}', port=443)[0]), one(lambda: dial('{OK}', 443))]))
"""


@pytest.mark.parametrize("flags, passes", [((), True), (("--refuse-opaque",), False), (("--refuse-opaque", "--open-tls"), True),
                                           (("--refuse-opaque", "--open-tls", "--keep-tls", OK), False)],
                         ids=["control", "refused", "opened", "kept"])
def test_tls_that_nobody_looks_into(look, flags, passes):
    """What is opened is looked into, so it passes; what is kept closed is refused, by each of the three ways."""
    said = json.loads(look(*flags, code=TLS))
    assert [" 200 " in s for s in said] == [passes] * 3, said
    assert len(look.net.requests) == 3 * passes


# --- paths that mean another one --------------------------------------------------------------------------------------------

MOVING = ["/public/../hidden", "/public/%2e%2E/hidden", "/public/.%2e/hidden", "/./hidden", "//hidden", "/a/%2e", "/a/..",
          "/public/..%2fhidden", "/public/%2e%2E%2Fhidden", "/public/..%5chidden", "/public/..;x/hidden", "/public%2f..%3bx/hidden"]
PLAIN = ["/@scope%2fname", "/a;b=1", "/a;..", "/a%2f..b", "/a%5cb", "/a//b", "/..a/b..", "/a/...", "/%2e%2e%2e", "/?q=/../x", "/a.b/"]


def test_paths_that_move(look):
    code = f"""
said = {{}}
for path in {MOVING + PLAIN!r}:
    for secure in (False, True):
        s = tls(connect('{OK}:443')[0], '{OK}') if secure else dial('{OK}', 80)
        s.sendall(get('{OK}', path, CLOSE)); said[path + str(secure)] = int(drain(s).split()[1])
print(json.dumps(said))
"""
    assert set(json.loads(look("--open-tls", code=code)).values()) == {200}
    look.net.requests.clear()
    said = json.loads(look("--open-tls", "--refuse-moving-paths", code=code))
    assert said == {path + str(secure): 400 if path in MOVING else 200 for path in MOVING + PLAIN for secure in (False, True)}
    assert not [r["path"] for r in look.net.requests if r["path"] in MOVING]
    assert {r["path"] for r in look.net.requests} == set(PLAIN)


FIELDS = ["X-Original-URL: /hidden", "x_rewrite_url: /hidden", "X.Override.Url: /hidden",
          "X-HTTP-Method-Override: PUT\r\nX-Method-Override: DELETE"]
HARMLESS = ["X-Original-Host: a", "X-Rewrite: /hidden", "X-HTTP-Method-Override: PUT"]


def test_fields_that_name_another_path(look):
    """Servers that heed them serve that one, whatever the first line says."""
    code = f"""
said = []
for field in {FIELDS + HARMLESS!r}:
    s = dial('{OK}', 80); s.sendall(get('{OK}', '/public', CLOSE + field + '\\r\\n')); said.append(int(drain(s).split()[1]))
print(json.dumps(said))
"""
    assert set(json.loads(look("--open-tls", code=code))) == {200}
    assert json.loads(look("--open-tls", "--refuse-moving-paths", code=code)) == [400] * len(FIELDS) + [200] * len(HARMLESS)


# --- fields that do not come back -------------------------------------------------------------------------------------------

SPELLED = b"Set-Cookie: a=1\r\nset_cookie: b=2\r\nSET.COOKIE: c=3\r\nX-Kept: yes\r\nSet-Cookies: no\r\n"
ASK = """
s = dial(*P); s.sendall(absolute('%s')); print(drain(s).decode())
"""


def test_headers_that_are_stripped(look):
    early = b"HTTP/1.1 103 Early Hints\r\nSet-Cookie: early=1\r\nLink: </a>\r\n\r\n"
    trailer = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n" + SPELLED + b"\r\n3\r\nabc\r\n0\r\nSet-Cookie: late=1\r\n\r\n"
    for reply in (early + plain(more=SPELLED), trailer):
        server = Scripted(look.net, answers(reply, close_after=True))
        control = look(code=ASK % server.url(), allow=server.allow)
        assert "a=1" in control and "b=2" in control and "c=3" in control, control
        said = look("--strip-header", "sEt.cookie", code=ASK % server.url(), allow=server.allow)
        assert not {"a=1", "b=2", "c=3", "early=1", "late=1"} & set(said.replace("\r", "").replace(" ", "\n").split("\n")), said
        assert "X-Kept: yes" in said and "Set-Cookies: no" in said, said


def test_headers_of_https(look):
    look.net.says["/says"] = (200, [("Set-Cookie", "secure=1"), ("X-Kept", "yes")])
    code = f"""
t = tls(connect('{OK}:443')[0], '{OK}'); t.sendall(get('{OK}', '/says', CLOSE)); print(drain(t).decode())
"""
    assert "secure=1" in look("--open-tls", code=code)
    said = look("--open-tls", "--strip-header", "set-cookie", code=code)
    assert "secure=1" not in said and "X-Kept: yes" in said, said
    assert "secure=1" in look("--strip-header", "set-cookie", code=code)    # documented: only where it is looked into


def test_headers_and_paths_in_http2(h2):
    """Heads, and what follows a body."""
    code = """
c = Client(); a, b = c.get('/mirror'), c.get('/trailers'); m = c.get('/a/../hidden')
print(json.dumps([a['head'].get('x-echo'), b['trailers'], m['status']]))
"""
    flags = ["--open-tls", "--strip-header", "X_Echo", "--strip-header", "grpc.message", "--refuse-moving-paths"]
    control, stripped = (h2.client(code, flags=f) for f in (flags[:1], flags))
    assert control.ok and json.loads(control.out) == ["is none!", {"grpc-status": "0", "grpc-message": "for none"}, 200], control
    assert stripped.ok and json.loads(stripped.out) == [None, {"grpc-status": "0"}, 400], stripped
    assert h2.far.paths().count("/a/../hidden") == 1
