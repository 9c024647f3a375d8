"""Connections to servers that serve one client after the other: nothing of one client's may become the next one's.

Judged by what the far server saw on which of its connections, and by what reached the clients.
"""
import json
import subprocess
import threading

import pytest

from helpers import requirement
from helpers.internet import OTHER4, PRELUDE, SITE4
from helpers.obedient import Obedient
from helpers.scripted import CLIENT, OK, Scripted, plain, read_exactly, read_head
from helpers.vaulted import BUNDLE, VALUE, Vaulted

pytestmark = [requirement("R13", "R14"), pytest.mark.root]
MANY = 12           # clients in a row; a slow machine may let a connection wait for too long, but not each time

# client(...): a client of its own, TLS inside a tunnel; (status, body) of the answer to one request
CLIENTS = CLIENT + f"""
import ssl
def client(path='/', more='', method='GET', body=b'', reads=True):
    if os.environ.get('STRAIGHT'): s = socket.create_connection(('{OK}', 443), 30)
    else: s = connect('{OK}:443', seconds=30)[0]
    s = tls(s, '{OK}')
    s.sendall(f'{{method}} {{path}} HTTP/1.1\\r\\nHost: {OK}\\r\\n{{more}}\\r\\n'.encode() + body)
    r = answer(s, method) if reads else None
    s.close()
    return r and (r[0], r[2])
"""


@pytest.fixture
def opened(online, tmp_path):
    """A secret for the host makes sure that its TLS is opened."""
    made = Vaulted(online, tmp_path).secret()
    made.clients = lambda code, **kw: made.python(CLIENTS + code + "\nprint('done')", **kw)
    yield made
    online.net.behind.clear()


def over_tls(net, serve):
    """A scripted server in the place of OK's."""
    def wrapped(connection, n, kept):
        with net.context.wrap_socket(connection, server_side=True) as c:
            serve(c, n, kept)
    made = Scripted(net, wrapped)
    net.behind[OK.encode()] = made.port
    return made


def did(result):
    assert result.ok and result.out.endswith("done\n"), result
    return result.out.removesuffix("done\n")


def paths(kept):
    return [head.split()[1] for head in kept]


def answer_all(connection, _, kept):
    while head := read_head(connection):
        kept.append(head)
        connection.sendall(plain(head.split()[1]))


# --- that it happens at all: else nothing below would say anything ------------------------------------------------------

@pytest.mark.parametrize("more", ["", "Connection: close\\r\\n", "Authorization: Bearer x\\r\\n", "Cookie: a=b\\r\\n"],
                         ids=["plain", "close", "bearer", "cookie"])
@pytest.mark.parametrize("straight", [False, True], ids=["tunnel", "straight"])
def test_clients_share_a_connection(opened, more, straight):
    far = over_tls(opened.net, answer_all)
    did(opened.clients(f"""
if {straight}: os.environ['STRAIGHT'] = '1'
for i in range({MANY}):
    r = client(f'/{{i}}', '{more}'); assert r == (200, b'/%d' % i), r
"""))
    assert sorted(p for kept in far.seen for p in paths(kept)) == sorted(b"/%d" % i for i in range(MANY))
    assert len(far.seen) < MANY, far.seen


# --- what is one client's alone -----------------------------------------------------------------------------------------

@pytest.mark.parametrize("call", [
    "'/', 'Authorization: NTLM TlRMTVNTUAAB\\r\\n'", "'/', 'Authorization: Negotiate YII\\r\\n'",
    "'/', 'authorization: Unheard-Of x\\r\\n'", "'/', 'Authorization: Basic\\tx\\r\\nAuthorization: NTLM x\\r\\n'",
    "'/401'", "'/', 'Content-Length: 5\\r\\n', 'POST', b'hello'", "'/', 'Content-Length: 5\\r\\n', 'PUT', b'hello'",
    "'/', 'Transfer-Encoding: chunked\\r\\n', 'POST', b'0\\r\\n\\r\\n'",
    "'/', 'Connection: Upgrade\\r\\nUpgrade: websocket\\r\\nSec-WebSocket-Key: x\\r\\nSec-WebSocket-Version: 13\\r\\n'"],
    ids=["ntlm", "negotiate", "unknown", "two", "401", "post", "put", "chunked", "upgrade"])
def test_a_connection_that_may_be_somebodys_is_nobody_elses(opened, call):
    """Credentials may be the connection's (NTLM), a body may be taken for a request: the answer to it would be the next client's."""
    def serve(connection, _, kept):
        while head := read_head(connection):
            kept.append(head)
            if b"chunked" in head:
                read_exactly(connection, 5)
            elif b"Content-Length: 5" in head:
                read_exactly(connection, 5)
            status = b"401 Unauthorized" if b" /401 " in head else b"200 OK"
            connection.sendall(plain(b"x", status))
    far = over_tls(opened.net, serve)
    did(opened.clients(f"for i in range(3): client({call}); assert client('/next')[0] == 200"))
    for kept in far.seen:       # whatever came first: behind such a request nothing comes
        assert all(path == b"/next" for path in paths(kept)[:-1]), far.seen
    assert sum(len(kept) for kept in far.seen) == 6, far.seen


def test_an_answer_to_nothing_is_not_the_next_clients(opened):
    """A server that says two answers to one request, at once."""
    def serve(connection, _, kept):
        while head := read_head(connection):
            kept.append(head)
            connection.sendall(plain(head.split()[1]) + plain(b"POISON"))
    far = over_tls(opened.net, serve)
    out = did(opened.clients("for i in range(6): print(client(f'/{i}'))"))
    assert "POISON" not in out and out.count("200") == 6, (out, far.seen)


def test_nor_when_it_is_said_while_the_connection_waits(opened):
    """... which ends it: the server sees that before the next client asks."""
    closed = threading.Event()

    def serve(connection, n, kept):
        while head := read_head(connection):
            kept.append(head)
            connection.sendall(plain(head.split()[1]))
            if n == 1:
                go.wait(60)
                connection.sendall(plain(b"POISON"))
                kept.append(connection.recv(1))
                closed.set()
                return
    go = threading.Event()
    far = over_tls(opened.net, serve)
    process = opened.popen(CLIENTS + "print(client('/1'), flush=True); sys.stdin.readline(); print(client('/2'))")
    assert process.stdout.readline() == b"(200, b'/1')\n", process.stderr.read()
    go.set()
    assert closed.wait(60)
    out, err = process.communicate(b"\n", timeout=60)
    assert out == b"(200, b'/2')\n", (out, err)
    assert [len(kept) for kept in far.seen] == [2, 1] and far.seen[0][1] == b"", far.seen


def test_half_an_answer_is_not_continued(opened):
    """The client leaves in the middle of an answer: what is left of it is nobody's."""
    def serve(connection, _, kept):
        while head := read_head(connection):
            kept.append(head)
            if b"/half" in head:
                connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nPOISON")
            else:
                connection.sendall(plain(head.split()[1]))
    far = over_tls(opened.net, serve)
    out = did(opened.clients("""
for i in range(3):
    client('/half', reads=False); print(client(f'/{i}'))
"""))
    assert out == "".join(f"(200, b'/{i}')\n" for i in range(3)), (out, far.seen)
    assert all(b"/half" not in paths(kept)[:-1] for kept in far.seen), far.seen


# --- what may not go out twice ------------------------------------------------------------------------------------------

def test_a_kept_connection_that_dies(opened):
    """What may be repeated is, on a new one; what may not goes out once."""
    def serve(connection, _, kept):
        while head := read_head(connection):
            kept.append(head)
            if len(kept) > 1:       # it takes one request more, and ends
                return
            connection.sendall(plain(head.split()[1]))
    far = over_tls(opened.net, serve)
    out = did(opened.clients("""
for i in range(6):
    r = client(f'/get{i}'); assert r == (200, b'/get%d' % i), r
for i in range(6):
    client('/first'); print(client(f'/post{i}', 'Content-Length: 0\\r\\n', 'POST')[0])
"""))
    seen = [p for kept in far.seen for p in paths(kept)]
    assert set(out.split()) <= {"200", "502"}, out
    assert all(seen.count(b"/post%d" % i) == 1 for i in range(6)), seen


# --- it is judged like a new one ----------------------------------------------------------------------------------------

def test_a_name_that_leads_elsewhere_now(opened):
    process = opened.popen(CLIENTS + "print(client('/before'), flush=True); sys.stdin.readline(); print(client('/after'))")
    assert process.stdout.readline().startswith(b"(200,"), process.stderr.read()
    opened.net.names[OK] = [("A", OTHER4)]
    out, err = process.communicate(b"\n", timeout=60)
    assert out.startswith(b"(200,"), (out, err)
    to = {r["path"]: r["to"].removeprefix("::ffff:") for r in opened.net.requests}
    assert to["/before"] == SITE4 and to["/after"] == OTHER4, to


def test_rules_that_have_changed(online, tmp_path):
    """With whatever change: what waits ends, and the next one is dialled and judged like the first."""
    file = tmp_path / "settings.json"
    file.write_text(json.dumps({"network": {"allow": [{"host": OK, "path": "/**"}]}}), encoding="ascii")
    far = over_tls(online.net, answer_all)
    box = Obedient(online, allow=(), flags=["--settings", str(file), "--extra-ca", str(online.net.ca)])

    def ask(path):
        return box.do(f"[(s := tls(connect('{OK}:443', seconds=60)[0], '{OK}')).sendall(get('{OK}', '{path}')), drain(s, 30), "
                      "s.close()][1]")
    try:
        run = online.bare("net", "ls", "--json").json["runs"][0]["id"]
        assert "200" in ask("/first")
        assert online.bare("net", "allow", run, "other.example.org").ok
        assert "200" in ask("/second")
        assert online.bare("net", "deny", run, OK).ok
        assert "200" not in box.do(f"connect('{OK}:443')[1]")
    finally:
        box.finish()
        online.net.behind.clear()
    assert [paths(kept) for kept in far.seen] == [[b"/first"], [b"/second"]], far.seen


def test_two_sandboxes_share_nothing(opened):
    far = over_tls(opened.net, answer_all)
    first = opened.popen(CLIENTS + "print(client('/a'), flush=True); sys.stdin.readline()")
    assert first.stdout.readline().startswith(b"(200,"), first.stderr.read()
    did(opened.clients("assert client('/b')[0] == 200"))
    first.communicate(b"\n", timeout=60)
    assert [paths(kept) for kept in far.seen] == [[b"/a"], [b"/b"]], far.seen


# --- a tunnel in which something else than TLS begins -------------------------------------------------------------------

@pytest.mark.parametrize("inside", [f"b'GET /hidden HTTP/1.1\\r\\nHost: {OK}\\r\\nConnection: close\\r\\n\\r\\n'",
                                    "b'SSH-2.0-x\\r\\n'",
                                    "b'\\x16\\x03\\x01\\x00\\x05hello'"], ids=["http", "ssh", "no hello"])
def test_plain_bytes_do_not_go_into_tls(opened, inside):
    """For a tunnel to 443 a kept connection is at hand; its TLS would be a way that nobody opened for these bytes."""
    far = over_tls(opened.net, answer_all)
    out = did(opened.clients(f"""
for i in range(3):
    assert client('/x')[0] == 200
    s, head = connect('{OK}:443'); assert b'200' in head, head
    s.sendall({inside}); print(b'/hidden' in drain(s, 30)); s.close()
"""))
    assert out == "False\n" * 3, out
    assert not [p for kept in far.seen for p in paths(kept) if p != b"/x"], far.seen


# --- another sandbox ----------------------------------------------------------------------------------------------------

def test_another_sandbox_gets_no_connection_of_this_one(opened, project):
    """Two at once, one server that answers whoever it knows by the connection; the secret is the first one's alone."""
    def serve(connection, n, kept):
        with opened.net.context.wrap_socket(connection, server_side=True) as c:
            kept.append(c.session_reused)
            known = b"nobody"
            while head := read_head(c):
                kept.append(head)
                known = b"owner" if VALUE.encode() in head else known       # as NTLM does
                c.sendall(plain(known))
    far = Scripted(opened.net, serve)
    opened.net.behind[OK.encode()] = far.port
    settings = project / "other.json"
    settings.write_text(json.dumps({"network": {"allow": [{"host": OK, "path": "/**"}]}}), encoding="ascii")
    loop = "\nfor line in sys.stdin: print(client(line.strip(), MORE), flush=True)"
    first = opened.popen(CLIENTS + "MORE = 'Authorization: Bearer ' + os.environ['TOK'] + '\\r\\n'" + loop)
    words = ["/usr/bin/python3", "-I", "-S", "-c", PRELUDE.replace("/mnt/ca.pem", BUNDLE) + CLIENTS + "MORE = ''" + loop]
    second = opened.online.popen(words, flags=["--settings", settings, "--extra-ca", opened.net.ca], stdin=subprocess.PIPE)

    def asks(process, path):
        process.stdin.write(f"{path}\n".encode())
        process.stdin.flush()
        return process.stdout.readline()
    try:
        for i in range(MANY):
            assert asks(first, f"/first/{i}") == b"(200, b'owner')\n", first.communicate()
            assert asks(second, f"/second/{i}") == b"(200, b'nobody')\n", second.communicate()
    finally:
        for process in (first, second):
            process.communicate(timeout=60)
    whose = [{path.split(b"/")[1] for path in paths(kept[1:])} for kept in far.seen]
    assert all(len(one) == 1 for one in whose) and {b"first"} in whose and {b"second"} in whose, far.seen
    assert len(far.seen) < 2 * MANY, "each has a connection that is used again"
    began = {}
    for kept, (one,) in zip(far.seen, whose):
        assert not (kept[0] and one not in began), "a session of the other one's"
        began[one] = True
