"""Plain HTTP through the wall: what a proxy has to do with connections, bodies and odd answers, seen from both ends."""
import hashlib
import os
import threading

import pytest

from helpers import requirement
from helpers.internet import NO_PROXY_VARIABLES, payload
from helpers.runner import wait_for
from helpers.scripted import CLIENT, OK, Scripted, answers, plain, read_exactly, read_head

pytestmark = [requirement("R13", "R14"), pytest.mark.root]
way = pytest.mark.parametrize("transparent", [False, True], ids=["proxy", "transparent"])


def straight(transparent):
    return ["/usr/bin/env", *NO_PROXY_VARIABLES] if transparent else []


@pytest.fixture
def talk(online):
    def run(code, allow=(OK,), **kw):
        result = online.python(CLIENT + code + "\nprint('done')", allow=allow, **kw)
        assert result.ok and result.out.endswith("done\n"), result
        return result
    return run


# --- connections ------------------------------------------------------------------------------------------------------

@way
def test_requests_of_one_connection_share_one_upstream(online, talk, transparent):
    talk(f"""
s = socket.create_connection(('{OK}', 80), 9) if {transparent} else dial(*P)
for i in range(20):
    s.sendall(get('{OK}', '/%d' % i if {transparent} else 'http://{OK}/%d' % i))
    assert answer(s)[::2] == (200, b'hello {OK} /%d\\n' % i)
""")
    assert [r["path"] for r in online.net.requests] == [f"/{i}" for i in range(20)]
    assert len(online.net.connections) == 1, online.net.connections


def test_a_tunnel_to_port_80_carries_many_requests(online, talk):
    talk(f"""
s, got = connect('{OK}:80')
for i in range(5):
    s.sendall(get('{OK}', '/%d' % i)); assert answer(s)[2] == b'hello {OK} /%d\\n' % i
""")
    assert len(online.net.connections) == 1 and len(online.net.requests) == 5


def test_one_proxy_connection_reaches_several_hosts(online, talk):
    talk("""
s = dial(*P)
for host in ('a', 'b', 'b', 'other', 'a'):
    s.sendall(absolute(f'http://{host}.example.org/x')); assert answer(s)[2] == f'hello {host}.example.org /x\\n'.encode()
""", allow=["*.example.org"])
    assert [r["host"].split(".")[0] for r in online.net.requests] == ["a", "b", "b", "other", "a"]
    assert len(online.net.connections) == 4


def test_a_connection_may_end_in_a_tunnel(online, talk):
    talk(f"""
s = dial(*P)
s.sendall(absolute('http://{OK}/1')); assert answer(s)[0] == 200
s.sendall(b'CONNECT {OK}:443 HTTP/1.1\\r\\nHost: {OK}:443\\r\\n\\r\\n'); assert b' 200 ' in until(s)
t = tls(s, '{OK}', True); t.sendall(get('{OK}', '/2')); assert answer(t)[2] == b'hello {OK} /2\\n'
""")
    assert [r["path"] for r in online.net.requests] == ["/1", "/2"]


def test_a_refused_request_does_not_end_the_connection(online, talk):
    talk(f"""
s = dial(*P)
for _ in range(3):
    s.sendall(absolute('http://evil.example.org/')); status, fields, body = answer(s)
    assert status == 403 and fields['x-cloche-denied'] == 'network-no-rule' and b'evil.example.org:80' in body
    s.sendall(absolute('http://{OK}/')); assert answer(s)[0] == 200
s.sendall(b'CONNECT evil.example.org:443 HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n'); assert answer(s)[0] == 403
assert s.recv(1) == b''
""")
    assert len(online.net.requests) == 3 and not [r for r in online.net.requests if r["host"] != OK]


def test_requests_sent_ahead_are_answered_in_order(online, talk):
    talk(f"""
s = dial(*P, 20); n = 200
s.sendall(b''.join(absolute('http://{OK}/%d' % i) for i in range(n)))
for i in range(n): assert answer(s)[2] == b'hello {OK} /%d\\n' % i, i
s.sendall(b''.join(absolute('http://%s/%d' % (('{OK}', 'evil.example.org')[i % 2], i)) for i in range(100)))
for i in range(100): assert answer(s)[0] == (200, 403)[i % 2], i
""")
    assert len(online.net.connections) == 1 and len(online.net.requests) == 250


def test_the_client_may_stop_writing(online, talk):
    talk(f"""
s = dial(*P); s.sendall(absolute('http://{OK}/1') + absolute('http://{OK}/2')); s.shutdown(1)
assert answer(s)[2] == b'hello {OK} /1\\n' and answer(s)[2] == b'hello {OK} /2\\n' and s.recv(1) == b''
""")


@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_a_server_that_closes_between_requests(online, talk, method):
    """It does so without a word: a request that meets the end of a kept connection goes out again on a new one."""
    server = Scripted(online.net, answers(plain(b""), close_after=True))
    talk(f"""
s = dial(*P)
for i in range(9):
    s.sendall(absolute('{server.url()}', method='{method}'))
    r = answer(s, '{method}'); assert r[0] == 200, r
""", allow=server.allow)
    assert [len(kept) for kept in server.seen] == [1] * 9


def test_a_request_that_was_answered_in_part_is_not_sent_again(online, talk):
    def serve(connection, n, kept):
        for reply in (plain(), b"HTTP/1.1 200 OK\r\nContent-"):
            kept.append(read_head(connection))
            connection.sendall(reply)
    server = Scripted(online.net, serve)
    talk(f"""
s = dial(*P)
s.sendall(absolute('{server.url()}')); assert answer(s)[0] == 200
s.sendall(absolute('{server.url()}')); assert answer(s)[0] == 502
""", allow=server.allow)
    assert [len(kept) for kept in server.seen] == [2]


def test_a_request_with_a_body_is_never_sent_twice(online, talk):
    def serve(connection, n, kept):
        kept.append(read_head(connection))
        connection.sendall(plain())
        kept.append(read_head(connection))
    server = Scripted(online.net, serve)
    talk(f"""
s = dial(*P)
s.sendall(absolute('{server.url()}')); assert answer(s)[0] == 200
s.sendall(absolute('{server.url()}', 'Content-Length: 1\\r\\n', 'POST') + b'x'); assert answer(s)[0] == 502
""", allow=server.allow)
    assert [len(kept) for kept in server.seen] == [2]


def test_http_1_0_clients(online, talk):
    chunked = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\nX-T: 1\r\n\r\n"
    server = Scripted(online.net, answers(b"HTTP/1.1 103 Early\r\n\r\n" + chunked, plain()))
    talk(f"""
s = dial(*P); s.sendall(absolute('{server.url()}', version='1.0')); got = drain(s)
head, _, body = got.partition(b'\\r\\n\\r\\n')
assert body == b'abcde' and b'chunked' not in head and b' 103 ' not in head and b'close' in head, got
s = dial(*P); s.sendall(absolute('http://{OK}/k', 'Connection: keep-alive\\r\\n', version='1.0'))
r = answer(s); assert r[1]['connection'] == 'keep-alive' and r[2] == b'hello {OK} /k\\n', r
s.sendall(absolute('http://{OK}/l', version='1.0')); r = answer(s); assert r[1]['connection'] == 'close', r
assert s.recv(1) == b''
""", allow=[*server.allow, OK])


# --- bodies -----------------------------------------------------------------------------------------------------------

def test_chunks_and_trailers_pass_both_ways(online, talk):
    reply = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X-Sum\r\n\r\n5\r\nhello\r\n0\r\nX-Sum: 5\r\n\r\n"
    body = b"4\r\nbody\r\nA\r\n0123456789\r\n0\r\nX-Up: 1\r\n\r\n"

    def serve(connection, n, kept):
        while head := read_head(connection):
            kept.append((head, read_exactly(connection, len(body))))
            connection.sendall(reply)
    server = Scripted(online.net, serve)
    talk(f"""
s = dial(*P)
for _ in range(2):
    s.sendall(absolute('{server.url()}', 'Transfer-Encoding: chunked\\r\\n', 'POST'))
    for byte in {body!r}: s.sendall(bytes([byte]))
    r = answer(s); assert r[2] == b'hello' and 'trailer X-Sum' in r[1], r
""", allow=server.allow)
    (kept,) = server.seen
    assert [got for _, got in kept] == [body] * 2 and b"Transfer-Encoding: chunked" in kept[0][0]


@pytest.mark.parametrize("kind", ["length", "chunked", "close"])
def test_bodies_of_any_framing_and_many_sizes(online, talk, kind):
    sizes = [0, 1, 1000, 4095, 4096, 65535, 65536, 65537, 1 << 20, 5 << 20]

    def serve(connection, n, kept):
        while head := read_head(connection):
            data = payload(int(head.split(b" ")[1][1:]))
            if kind == "length":
                connection.sendall(plain(data))
            elif kind == "close":
                connection.sendall(b"HTTP/1.1 200 OK\r\n\r\n" + data)
                return
            else:
                connection.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
                for at in range(0, len(data), 70001):
                    piece = data[at:at + 70001]
                    connection.sendall(b"%x\r\n%s\r\n" % (len(piece), piece))
                connection.sendall(b"0\r\n\r\n")
    server = Scripted(online.net, serve)
    sums = [hashlib.sha256(payload(size)).hexdigest() for size in sizes]
    talk(f"""
import hashlib
import os
import threading
s = dial(*P)
for size, digest in zip({sizes}, {sums}):
    s.sendall(absolute('{server.url()}%d' % size)); r = answer(s)
    assert r[0] == 200 and hashlib.sha256(r[2]).hexdigest() == digest, (size, len(r[2]))
    if '{kind}' == 'close': assert r[1]['connection'] == 'close'; s = dial(*P)
""", allow=server.allow)


def test_answers_without_a_body(online, talk):
    server = Scripted(online.net, answers(
        b"HTTP/1.1 200 OK\r\nContent-Length: 1234\r\n\r\n", b"HTTP/1.1 204 No Content\r\n\r\n",
        b"HTTP/1.1 304 Not Modified\r\nContent-Length: 99\r\nETag: x\r\n\r\n", plain(b"")))
    talk(f"""
s = dial(*P)
for method, status, length in (('HEAD', 200, '1234'), ('GET', 204, None), ('GET', 304, '99'), ('GET', 200, '0')):
    s.sendall(absolute('{server.url()}', method=method)); r = answer(s, method)
    assert (r[0], r[1].get('content-length'), r[2]) == (status, length, b''), r
""", allow=server.allow)
    assert len(server.seen) == 1


def test_an_answer_that_is_cut_off_looks_cut_off(online, talk):
    def serve(connection, n, kept):
        read_head(connection)
        connection.sendall((b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc",
                            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n")[n % 2])
    server = Scripted(online.net, serve)
    talk(f"""
for _ in range(2):
    s = dial(*P); s.sendall(absolute('{server.url()}')); got = b''
    try:
        while d := s.recv(999): got += d
        how = 'end'
    except ConnectionResetError: how = 'reset'
    print(how, got); assert b'0\\r\\n\\r\\n' not in got
assert how == 'reset'
""", allow=server.allow)


# --- expectations and interim answers ------------------------------------------------------------------------------------

@pytest.mark.parametrize("answer", ["continue", "refuse"])
def test_expect_continue(online, answer):
    """The server's word passes: curl sends the body when it says so, and not when it does not."""
    seen = []

    def serve(connection, n, kept):
        head = read_head(connection)
        seen.append(head)
        if answer == "refuse":
            connection.sendall(plain(b"too large\n", b"413 Content Too Large"))
            kept.append(connection.recv(100))
            return
        connection.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")
        kept.append(read_exactly(connection, 1 << 20))
        connection.sendall(plain(b"%d\n" % len(kept[0])))
    server = Scripted(online.net, serve)
    online.net.root.joinpath("upload").write_bytes(payload(1 << 20))
    result = online.curl("--expect100-timeout", "30", "-H", "Expect: 100-continue", "--data-binary", "@/mnt/upload",
                         server.url(), allow=server.allow, flags=["--bind", f"{online.net.root}/upload:/mnt/upload"])
    assert b"100-continue" in seen[0].lower()
    assert result.out == ("too large\n" if answer == "refuse" else f"{1 << 20}\n"), result
    assert answer == "continue" or b"".join(server.seen[0]) == b""


def test_interim_answers_pass_in_order(online, talk):
    early = b"HTTP/1.1 103 Early Hints\r\nLink: </a.css>\r\n\r\nHTTP/1.1 102 Processing\r\n\r\n"
    server = Scripted(online.net, answers(early + plain()))
    talk(f"""
s = dial(*P)
for _ in range(2):
    s.sendall(absolute('{server.url()}'))
    r = [answer(s) for _ in range(3)]; assert [x[0] for x in r] == [103, 102, 200] and r[0][1]['link'] == '</a.css>', r
""", allow=server.allow)


def test_an_answer_before_the_body_ended(online, talk):
    """The answer reaches the client, and the connection ends behind it: the rest of the body is no request."""
    def serve(connection, n, kept):
        read_head(connection)
        connection.sendall(plain(b"no\n", b"401 Unauthorized"))
        kept.append(connection.recv(1 << 20))
    server = Scripted(online.net, serve)
    talk(f"""
s = dial(*P)
s.sendall(absolute('{server.url()}', 'Content-Length: 5000000\\r\\n', 'POST') + b'x' * 100)
r = answer(s); assert r[0] == 401 and r[1]['connection'] == 'close' and r[2] == b'no\\n', r
try: assert s.recv(1) == b''
except ConnectionError: pass
""", allow=server.allow)
    assert len(server.seen) == 1


# --- WebSocket --------------------------------------------------------------------------------------------------------

@way
def test_websocket(online, transparent):
    """A real client, directly and in a tunnel to port 80; both ends close in order."""
    proxy = "" if transparent else ", http_proxy_host='198.18.0.1', http_proxy_port=3128, proxy_type='http'"
    code = f"""
import websocket
w = websocket.create_connection('ws://{OK}/ws', timeout=20, http_no_proxy=['*'] if {transparent} else ['x']{proxy})
for data in ('hello', 'x' * 300, 'y' * 70000):
    w.send(data); assert w.recv() == data
w.send_binary(bytes(range(256))); assert w.recv() == bytes(range(256))
w.close(); print('done')
"""
    result = online.run([*straight(transparent), "/usr/bin/python3", "-I", "-c", code])
    assert result.out == "done\n", result
    sent = [dict(r["headers"]) for r in online.net.requests]
    assert [(h["upgrade"], h["connection"].lower()) for h in sent] == [("websocket", "upgrade")], sent


@pytest.mark.parametrize("half", ["client", "server"])
def test_after_an_upgrade_each_direction_ends_by_itself(online, talk, half):
    def serve(connection, n, kept):
        read_head(connection)
        connection.sendall(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\nfirst")
        if half == "server":
            connection.shutdown(1)
        while data := connection.recv(65536):
            kept.append(data)
        connection.sendall(b"last") if half == "client" else None
    server = Scripted(online.net, serve)
    there = lambda: b"".join(server.seen[0]) == b"ahead" + b"raw" * 100000 if server.seen else False
    # the sandbox stays until all is there: its way out ends with it
    stdin, last = os.pipe()
    closing = threading.Thread(target=lambda: [wait_for(there), os.close(last)])
    closing.start()
    talk(f"""
s = dial(*P); s.sendall(absolute('{server.url()}', 'Connection: upgrade\\r\\nUpgrade: websocket\\r\\n') + b'ahead')
assert b' 101 ' in until(s)
if '{half}' == 'client': s.sendall(b'raw' * 100000); s.shutdown(1); assert drain(s) == b'firstlast'
else: assert drain(s) == b'first'; s.sendall(b'raw' * 100000); s.shutdown(1)
sys.stdin.read()
""", allow=server.allow, stdin=stdin)
    closing.join()
    os.close(stdin)
    assert there(), server.seen


@pytest.mark.parametrize("asked", ["h2c", "h2c, websocket", "TLS/1.0", "HTTP/2.0"])
def test_other_upgrades_stay_here(online, talk, asked):
    """They are options: without them the request is an ordinary one."""
    server = Scripted(online.net, answers(plain()))
    talk(f"""
s = dial(*P)
for _ in range(2):
    s.sendall(absolute('{server.url()}', 'Connection: Upgrade, HTTP2-Settings\\r\\nUpgrade: {asked}\\r\\n'
                                         'HTTP2-Settings: AAMAAABkAAQAAP__\\r\\n'))
    assert answer(s)[0] == 200
""", allow=server.allow)
    head = server.seen[0][0].lower()
    assert b"h2c" not in head and b"http2-settings" not in head and b"tls" not in head, head
    assert (b"upgrade: websocket\r\n" in head) == ("websocket" in asked), head
