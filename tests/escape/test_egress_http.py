"""Plain HTTP over connections that live on: requests that hide behind others, answers that are more than one.

Judged by what the far servers saw and by what reached the client, never by what the proxy says of itself.
"""
import subprocess
import threading

import pytest

from helpers import leaks, requirement
from helpers.internet import PRELUDE
from helpers.runner import wait_for
from helpers.scripted import CLIENT, OK, Scripted, answers, plain, read_exactly, read_head

pytestmark = [requirement("R13", "R14"), pytest.mark.root]
EVIL = "evil.example.org"
HIDDEN = f"GET /hidden HTTP/1.1\r\nHost: {EVIL}\r\n\r\n"
way = pytest.mark.parametrize("how", ["proxy", "transparent", "connect", "socks"])

# begin(how) is a connection to OK's port 80, over which request(path) is a request; all three ways lead to one decision
WAYS = f"""
def begin(how):
    if how == 'proxy': return dial(*P)
    if how == 'transparent': return socket.create_connection(('{OK}', 80), 5)
    if how == 'connect': return connect('{OK}:80')[0]
    s, _ = socks(3, b'\\x0e{OK}'); return s
def request(how, path='/', more='', method='GET', host='{OK}'):
    return f"{{method}} {{'http://' + host if how == 'proxy' else ''}}{{path}} HTTP/1.1\\r\\nHost: {{host}}\\r\\n{{more}}\\r\\n".encode()
def end(s):         # we say no more: what is still answered, when all that we said was looked at
    try: s.shutdown(socket.SHUT_WR)
    except OSError: pass        # it is over already
    return drain(s, 20)
"""


@pytest.fixture
def talk(online):
    def run(code, allow=(OK,), **kw):
        result = online.python(CLIENT + WAYS + code + "\nprint('done')", allow=allow, **kw)
        assert result.ok and result.out.endswith("done\n"), result
        return result
    return run


def saw_only(online, hosts=(OK,)):
    assert {r["host"] for r in online.net.requests} <= set(hosts), online.net.requests
    assert not [r for r in online.net.requests if "hidden" in r["path"]], online.net.requests


# --- the next request --------------------------------------------------------------------------------------------------

@way
@pytest.mark.parametrize("ahead", [False, True], ids=["after the answer", "sent ahead"])
def test_the_second_request_is_decided_too(online, talk, how, ahead):
    talk(f"""
s = begin('{how}')
s.sendall(request('{how}') + (request('{how}', '/hidden', host='{EVIL}') if {ahead} else b''))
assert answer(s)[0] == 200
if not {ahead}: s.sendall(request('{how}', '/hidden', host='{EVIL}'))
r = answer(s); assert r[0] == 403 and r[1]['x-cloche-denied'] in ('network-no-rule', 'http-name-mismatch'), r
""")
    assert len(online.net.requests) == 1
    saw_only(online)


@way
def test_nor_does_an_allowed_name_leave_the_connection_that_was_made_to_another(online, talk, how):
    """Where a connection was made to one host, the next request cannot lead to another, allowed or not."""
    talk(f"""
s = begin('{how}'); s.sendall(request('{how}')); assert answer(s)[0] == 200
s.sendall(request('{how}', host='a.example.org')); r = answer(s)
assert (r[0] == 200 and r[2] == b'hello a.example.org /\\n') if '{how}' == 'proxy' else r[0] == 403, r
""", allow=["*.example.org"])
    assert [r["host"] for r in online.net.requests] == [OK] + ["a.example.org"] * (how == "proxy")


@way
def test_a_refusal_is_no_way_past_it(online, talk, how):
    """What is malformed ends the connection: what follows is not looked at. What is only denied is one request."""
    talk(f"""
s = begin('{how}')
s.sendall(request('{how}', '/1') + request('{how}', '/hidden', host='{EVIL}') + request('{how}', '/2')
          + b'GET /hidden\\r\\n' + request('{how}', '/hidden'))
got = drain(s); assert got.count(b'HTTP/1.1 200') == 2 and got.count(b'HTTP/1.1 4') + got.count(b'HTTP/1.1 505') == 2, got
""")
    assert [r["path"] for r in online.net.requests] == ["/1", "/2"]


@way
def test_a_request_behind_a_declined_upgrade(online, talk, how):
    """The server does not upgrade: what was said to be WebSocket is a request like any other."""
    talk(f"""
s = begin('{how}')
s.sendall(request('{how}', '/up', 'Connection: Upgrade\\r\\nUpgrade: websocket\\r\\n') + {HIDDEN.encode()!r})
r = answer(s); assert r[0] == 200, r
print(end(s))
""")
    assert [r["path"] for r in online.net.requests] == ["/up"]
    saw_only(online)


@pytest.mark.parametrize("more", ["Connection: Upgrade\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n",
                                  "Upgrade: websocket\r\n", "Connection: Upgrade\r\nUpgrade: TLS/1.2\r\n", ""])
def test_a_server_does_not_switch_by_itself(online, talk, more):
    """Nobody asked it for WebSocket: what the client says afterwards does not reach it."""
    def serve(connection, n, kept):
        kept.append(read_head(connection))
        connection.sendall(b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
        kept.append(connection.recv(1000))
    server = Scripted(online.net, serve)
    talk(f"""
s = dial(*P); s.sendall(absolute('{server.url()}', {more!r})); r = answer(s); assert r[0] == 502, r
s.sendall({HIDDEN.encode()!r}); print(end(s))
""", allow=server.allow)
    wait_for(lambda: sum(len(kept) for kept in server.seen) == 2)       # it hears of the end after the client does
    assert [b"hidden" in piece for kept in server.seen for piece in kept] == [False, False], server.seen
    saw_only(online)


@pytest.mark.parametrize("how", ["proxy", "connect", "socks"])
def test_a_body_that_is_not_taken_is_no_request(online, talk, how):
    """The server has answered before the body came: whoever sends now may mean either, so nothing is read any more."""
    def serve(connection, n, kept):
        kept.append(read_head(connection))
        connection.sendall(plain(b"no\n", b"417 Expectation Failed"))
        kept.append(connection.recv(1000))
    server = Scripted(online.net, serve)
    begin = {"proxy": "dial(*P)", "connect": f"connect('{OK}:{server.port}')[0]",
             "socks": f"socks(3, b'\\x0e{OK}', port={server.port})[0]"}[how]
    where = f"http://{OK}:{server.port}/" if how == "proxy" else "/"
    talk(f"""
s = {begin}
s.sendall(b'POST {where} HTTP/1.1\\r\\nHost: {OK}:{server.port}\\r\\nExpect: 100-continue\\r\\nContent-Length: 1000\\r\\n\\r\\n')
r = answer(s); assert r[0] == 417 and r[1]['connection'] == 'close', r
try: s.sendall(absolute('http://{OK}/hidden')); print(end(s))
except OSError as e: print(e)
""", allow=[*server.allow, OK])
    assert not online.net.requests and len(server.seen) == 1


@way
@pytest.mark.parametrize("cut", ["length", "chunked"])
def test_a_body_that_was_cut_is_not_whole(online, talk, how, cut):
    """The client goes away in the middle: the server is not told that this was all."""
    framing = {"length": "Content-Length: 100\\r\\n", "chunked": "Transfer-Encoding: chunked\\r\\n"}[cut]
    data = {"length": b"x" * 50, "chunked": b"32\r\n" + b"x" * 50 + b"\r\n"}[cut]
    talk(f"""
s = begin('{how}'); s.sendall(request('{how}', '/cut', '{framing}', 'POST') + {data!r}); s.shutdown(1); print(drain(s, 2))
s = begin('{how}'); s.sendall(request('{how}', '/next')); assert answer(s)[0] == 200
""")
    assert not [r for r in online.net.requests if r["path"] == "/cut" and (r["body"] >= 100 or cut == "chunked")]


# --- answers ----------------------------------------------------------------------------------------------------------

def test_an_answer_to_nothing_is_nobodys(online, talk):
    """A server that says two answers poisons nothing: the next request gets its own, on a new connection."""
    twice = plain(b"first\n") + plain(b"poison\n", more=b"X-Poison: yes\r\n")

    def serve(connection, n, kept):
        while head := read_head(connection):
            kept.append(head)
            connection.sendall(twice if n == 1 else plain(b"own\n"))
    server = Scripted(online.net, serve)
    talk(f"""
s = dial(*P)
for body in (b'first\\n', b'own\\n', b'own\\n'):
    s.sendall(absolute('{server.url()}')); r = answer(s); assert r[2] == body and 'x-poison' not in r[1], r
""", allow=server.allow)
    assert [len(kept) for kept in server.seen] == [1, 2]


def test_an_answer_before_the_question(online, talk):
    def serve(connection, n, kept):
        if n == 1:
            connection.sendall(plain(b"early\n"))
        kept.append(read_head(connection))
        connection.sendall(plain(b"own\n"))
        kept.append(read_head(connection))
    server = Scripted(online.net, serve)
    talk(f"""
s = dial(*P)
s.sendall(absolute('{server.url('/1')}')); assert answer(s)[0] == 200
s.sendall(absolute('{server.url('/2')}')); r = answer(s); assert r[2] == b'own\\n', r
""", allow=server.allow)


H = b"HTTP/1.1 200 OK\r\n"
BAD = {
    "TE and CL": H + b"Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n",
    "two lengths": H + b"Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello!",
    "TE twice": H + b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "TE gzip": H + b"Transfer-Encoding: gzip\r\n\r\nhello",
    "negative": H + b"Content-Length: -5\r\n\r\nhello",
    "space before colon": H + b"Content-Length : 5\r\n\r\nhello",
    "obs-fold": H + b"X: a\r\n b\r\nContent-Length: 5\r\n\r\nhello",
    "bare LF": b"HTTP/1.1 200 OK\nContent-Length: 5\n\nhello", "bare CR": H + b"X: a\rY: b\r\nContent-Length: 5\r\n\r\nhello",
    "NUL": H + b"X: a\0b\r\nContent-Length: 5\r\n\r\nhello", "no name": H + b": a\r\nContent-Length: 5\r\n\r\nhello",
    "status 20": b"HTTP/1.1 20 OK\r\nContent-Length: 5\r\n\r\nhello", "status 099": b"HTTP/1.1 099 X\r\n\r\n",
    "HTTP/2.0": b"HTTP/2.0 200 OK\r\nContent-Length: 5\r\n\r\nhello", "no HTTP": b"hello\r\n\r\n", "HTTP/0.9": b"<html>hello",
    "204 with a length": b"HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\nhello",
    "100 with chunks": b"HTTP/1.1 100 Continue\r\nTransfer-Encoding: chunked\r\n\r\n",
    "too many 1xx": b"HTTP/1.1 100 Continue\r\n\r\n" * 1000 + H + b"Content-Length: 5\r\n\r\nhello",
    "too many fields": H + b"X: y\r\n" * 500 + b"\r\n", "a large head": H + b"X: " + b"y" * 70000 + b"\r\n\r\n",
    "TE in 1.0": b"HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
}


def test_answers_that_two_readers_read_differently(online, talk):
    """Nothing of them reaches the client; the connection upstream ends, the one to the client goes on."""
    def says(case):
        def serve(connection, n, kept):
            kept.append(read_head(connection))
            connection.sendall(BAD[case])
            if case == "HTTP/0.9":
                return
            kept.append(connection.recv(1))     # until it is hung up on
        return Scripted(online.net, serve)
    servers = {case: says(case) for case in BAD}
    talk(f"""
for case, url in {[(case, server.url()) for case, server in servers.items()]!r}:
    s = dial(*P); s.sendall(absolute(url))
    r = answer(s)
    while r[0] == 100: r = answer(s)
    assert r[0] == 502 and b'hello' not in r[2], (case, r)
    s.sendall(absolute('http://{OK}/next')); assert answer(s)[0] == 200, case
""", allow=[OK, *(rule for server in servers.values() for rule in server.allow)])
    assert {case: len(server.seen) for case, server in servers.items()} == dict.fromkeys(BAD, 1)
    assert [r["path"] for r in online.net.requests] == ["/next"] * len(BAD)


CHUNKS = [b"0x5\r\nhello\r\n0\r\n\r\n", b"5;a=b\r\nhello\r\n0\r\n\r\n", b"5\nhello\r\n0\r\n\r\n", b"5\r\nhelloXX0\r\n\r\n",
          b"5\r\nhello\r\n0\r\nContent-Length: 9\r\n\r\n", b"ffffffffffffffff1\r\nhello"]


def test_chunks_that_two_readers_end_differently(online, talk):
    """The head has gone out already: then the client's connection ends, and not as if that were all."""
    head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    servers = [Scripted(online.net, answers(head + body + plain(b"second\n"))) for body in CHUNKS]
    talk(f"""
for body, url in {[(body, server.url()) for body, server in zip(CHUNKS, servers)]!r}:
    s = dial(*P); s.sendall(absolute(url) * 2)
    got = b''
    try:
        while d := s.recv(999): got += d
    except ConnectionResetError: pass
    assert b'second' not in got and not got.endswith(b'0\\r\\n\\r\\n') and got.count(b'HTTP/1.1') <= 1, (body, got)
""", allow=[rule for server in servers for rule in server.allow])


FIELDS = ["Connection: close, X-Secret\r\nX-Secret: 1", "Keep-Alive: timeout=1", "Trailer: X\r\nTE: x",
          "Proxy-Authenticate: Basic realm=x", "Upgrade: h2c\r\nConnection: upgrade", "Proxy-Connection: keep-alive"]


def test_fields_of_one_connection_stay_on_it(online, talk):
    def says(fields):
        reply = b"HTTP/1.1 200 OK\r\n" + fields.encode() + b"\r\nX-End: kept\r\nContent-Length: 0\r\n\r\n"
        return Scripted(online.net, answers(reply, close_after="close" in fields))
    servers = [says(fields) for fields in FIELDS]
    talk(f"""
for fields, url in {[(fields, server.url()) for fields, server in zip(FIELDS, servers)]!r}:
    s = dial(*P)
    for _ in range(2):
        s.sendall(absolute(url)); r = answer(s)
        assert set(r[1]) == {{'x-end', 'content-length'}}, (fields, r)
""", allow=[rule for server in servers for rule in server.allow])


def test_memory_stays_bounded_when_nobody_reads(online):
    """Servers that never stop and clients that never read; clients that never stop and servers that never read."""
    def serve(connection, n, kept):
        if b"POST" in read_head(connection):
            kept.append(read_exactly(connection, 1000))
            over.wait(60)
            return
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 10000000000\r\n\r\n")
        while not over.is_set():
            connection.sendall(bytes(1 << 20))
    over = threading.Event()
    server = Scripted(online.net, serve)
    code = f"""
import threading
down = [dial(*P) for _ in range(8)]
for s in down: s.sendall(absolute('{server.url()}'))
up = []
def fill():
    s = dial(*P); s.sendall(absolute('{server.url()}', 'Content-Length: 10000000000\\r\\n', 'POST')); s.settimeout(1)
    try:
        while True: s.send(bytes(1 << 20))
    except TimeoutError: up.append(s)
threads = [threading.Thread(target=fill) for _ in range(8)]
for t in threads: t.start()
for t in threads: t.join()
s = dial(*P); s.sendall(absolute('http://{OK}/')); assert answer(s)[0] == 200
print(len(up), flush=True); sys.stdin.readline()
"""
    process = online.popen(["/usr/bin/python3", "-I", "-S", "-c", PRELUDE + CLIENT + code], allow=[*server.allow, OK],
                           stdin=subprocess.PIPE)
    try:
        assert process.stdout.readline() == b"8\n"
        table = leaks.parents()
        (egress,) = [pid for pid in leaks.descendants() if pid in table and table[pid][2] == "cloche-egress"]
        with open(f"/proc/{egress}/status", encoding="ascii") as f:
            peak = next(int(line.split()[1]) for line in f if line.startswith("VmHWM:"))
        assert peak < 128 << 10, f"{peak} KiB"      # with sanitizers; some 8 MiB without
    finally:
        over.set()
        process.communicate(b"\n", timeout=60)
