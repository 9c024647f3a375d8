"""Attacks in HTTP/2, from inside the sandbox and from a server: past the rules, past the secrets, and at the memory.

A table's cases are tried in one sandbox, each on a connection of its own.
"""
import collections
import json
import os

import pytest

from helpers import leaks, memory, places, requirement
from helpers.h2 import CLIENT, HOST, field
from helpers.internet import PRELUDE
from helpers.vaulted import BUNDLE, VALUE, denied

pytestmark = [requirement("R13", "R14", "R16"), pytest.mark.root]
OTHER = "second.example.org"


# each(cases, attack): what attack(a new client, case) says of every case, by its name, as JSON.
EACH = """
def each(cases, attack):
    said = {}
    for name, case in cases.items():
        try: said[name] = attack(Client(), case)
        except Exception as e: said[name] = f'{type(e).__name__}: {e}'
    print(json.dumps(said))
"""


def said(result, cases):
    """What was said of each of @cases, none left out."""
    assert result.ok, result
    answers = json.loads(result.out)
    assert list(answers) == list(cases), result
    return answers


def counted(tmp_path):
    """How often each rule refused something, as the report has it."""
    counts = collections.Counter()
    for entry in denied(tmp_path):
        counts[entry["rule"]] += entry["count"]
    return counts


@pytest.fixture
def ruled(h2, project):
    """GET below /v1 and nothing else."""
    settings = project / "rules.json"
    settings.write_text(json.dumps({"network": {"allow": [{"host": HOST, "port": 443, "methods": ["GET"], "path": "/v1/**"},
                                                          OTHER]}}))
    h2.flags += ["--settings", settings]
    return h2


# --- other hosts, other paths -------------------------------------------------------------------------------------------

def test_the_authority_of_another_host(ruled, tmp_path):
    """A host that is allowed by itself is no way to it through this connection."""
    result = ruled.client(f"""
c = Client()
for a in ('{OTHER}', 'evil.example.org', HOST + ':8443', 'x@' + HOST, HOST + ',{OTHER}', '127.0.0.1', HOST + '\\0.evil'):
    print(c.brief(c.get('/v1/x', authority=a)), end=' ')
print('and', c.brief(c.get('/v1/last')))
""", allow=(), flags=["--report", str(tmp_path / "report.json")])
    words = result.out.split()
    assert words[-2:] == ["and", "200"] and "200" not in words[:-2], result
    assert ruled.far.paths() == ["/v1/last"] and not ruled.net.requests
    assert any(d["rule"] == "http-name-mismatch" for d in denied(tmp_path)), denied(tmp_path)


HEADS = {
    "host of another": [("host", OTHER)],
    "host twice": [("host", HOST), ("host", HOST)],
    "second authority": [(":authority", OTHER)],
    "second path": [(":path", "/v2/x")],
    "path behind a field": [("x-a", "b"), (":path", "/v2/x")],
    "method behind": [(":method", "DELETE")],
    "extended connect": [(":protocol", "websocket")],
    "unknown pseudo": [(":x", "y")],
    "line end": [("x-a", "b\r\nx-evil: yes")],
    "line feed": [("x-a", "b\nx-evil: yes")],
    "nul": [("x-a", "b\0c")],
    "line end in a name": [("x-a\r\nx-evil", "b")],
    "upper case": [("X-Method", "DELETE")],
    "blank in a name": [("x a", "b")],
    "colon in a name": [("x-a:b", "c")],
    "empty name": [("", "b")],
    "connection": [("connection", "close")],
    "upgrade": [("upgrade", "websocket")],
    "transfer-encoding": [("transfer-encoding", "chunked")],
    "keep-alive": [("keep-alive", "5")],
    "proxy-connection": [("proxy-connection", "close")],
    "te": [("te", "gzip")],
    "two lengths": [("content-length", "0"), ("content-length", "5")],
    "a length without a body": [("content-length", "5")],
    "no number": [("content-length", "0x0")],
}


def test_heads_that_nobody_reads_alike(ruled):
    """Each is refused, none reaches the server, and the connection goes on or ends."""
    result = ruled.client(EACH + f"""
def attack(c, more):
    first = c.brief(c.get('/v1/attack', more))
    if not c.over: c.get('/v1/last')
    return str(first)
each({HEADS!r}, attack)
""", allow=())
    for name, first in said(result, HEADS).items():
        assert first.startswith("reset") or first in ("400", "403", "417"), (name, first)
    assert set(ruled.far.paths()) <= {"/v1/last"}, ruled.far.requests
    assert "x-evil" not in str(ruled.far.requests)


TARGETS = {
    "connect": "[(':method', 'CONNECT'), (':authority', 'second.example.org:443')]",
    "extended connect": "[(':method', 'CONNECT'), (':protocol', 'websocket'), (':scheme', 'https'), (':authority', HOST), "
                        "(':path', '/v1/x')]",
    "http scheme": "[(':method', 'GET'), (':scheme', 'http'), (':authority', HOST), (':path', '/v1/x')]",
    "no scheme": "[(':method', 'GET'), (':authority', HOST), (':path', '/v1/x')]",
    "no path": "[(':method', 'GET'), (':scheme', 'https'), (':authority', HOST)]",
    "no method": "[(':scheme', 'https'), (':authority', HOST), (':path', '/v1/x')]",
    "no host": "[(':method', 'GET'), (':scheme', 'https'), (':path', '/v1/x')]",
    "absolute path": "c.head('https://second.example.org/v1/x')",
    "path that is none": "c.head('v1/x')",
    "star": "c.head('*')",
    "a second request in the path": "c.head('/v1/x HTTP/1.1\\r\\nHost: second.example.org\\r\\n\\r\\nGET /v2')",
    "a blank in the path": "c.head('/v1/x /v2')",
    "a fragment": "c.head('/v1/x#y')",
    "bad escape": "c.head('/v1/%zz')",
    "a line end in the method": "c.head('/v1/x', method='GET /v2 HTTP/1.1\\r\\nX: y\\r\\n\\r\\nGET')",
    "up": "c.head('/v1/../v2/x')",
    "up, escaped": "c.head('/v1/%2e%2e/v2/x')",
    "up, escaped slash": "c.head('/v1/..%2fv2/x')",
    "backslash": "c.head('/v1/..\\\\v2')",
    "double slash": "c.head('//v2/x')",
    "another method": "c.head('/v1/x', method='DELETE')",
    "a method in lower case": "c.head('/v1/x', method='get')",
}


def test_targets(ruled):
    result = ruled.client(EACH + f"""
def attack(c, head):
    first = c.brief(c.wait(c.ask(head=head(c)))[0])
    if not c.over: c.get('/v1/last')
    return str(first)
each({{{", ".join(f"{name!r}: lambda c: {head}" for name, head in TARGETS.items())}}}, attack)
""", allow=())
    for name, first in said(result, TARGETS).items():
        assert first.startswith("reset") or first in ("400", "403"), (name, first)
    assert set(ruled.far.paths()) <= {"/v1/last"} and not ruled.net.requests, ruled.far.requests


def test_denied_streams_between_allowed_ones(ruled):
    """Interleaved, with bodies and trailers: what is refused leaves no trace in what passes."""
    result = ruled.client("""
c = Client()
streams = []
for i in range(60):
    bad = i % 3 == 1
    streams.append(c.ask('/v2/%d' % i if bad else '/v1/%d' % i, (('x-n', str(i)),), method='GET', body=b'b' * i if i % 2 else None))
print([g['status'] for g in c.wait(*streams)] == [403 if i % 3 == 1 else 200 for i in range(60)])
""", allow=())
    assert result.out == "True\n", result
    got = {r["path"]: (field(r, "x-n"), r["body"]) for r in ruled.far.requests}
    assert got == {f"/v1/{i}": ([str(i)], "b" * i if i % 2 else "") for i in range(60) if i % 3 != 1}


# --- secrets --------------------------------------------------------------------------------------------------------------

def test_a_placeholder_to_a_wrong_path(h2, tmp_path):
    """The binding is for one path: the other request is refused, or goes without the value."""
    h2.secret("TOK", "--path", "/v1/**", host=HOST)
    result = h2.client("""
c = Client(); t = (('authorization', 'Bearer ' + os.environ['TOK']),)
print([c.brief(g) for g in c.wait(*[c.ask(p, t) for p in ('/v1/a', '/v2/b', '/v1/../v2/c')])])
""", flags=["--report", str(tmp_path / "report.json")])
    seen = {r["path"]: field(r, "authorization") for r in h2.far.requests}
    assert result.out.startswith("[200, 403, 403"), result
    assert seen == {"/v1/a": [f"Bearer {VALUE}"]}, seen
    assert any(d["rule"] == "secret-not-bound" for d in denied(tmp_path)), denied(tmp_path)


WRONG = {
    "field": "c.ask('/p', (('x-any', t),))",
    "name": "c.ask('/p', (('x-' + t.lower(), 'a'), ('x-any', t)))",
    "query": "c.ask('/p?k=' + t)",
    "path": "c.ask('/' + t)",
    "crumbs of cookies": "c.ask('/p', (('cookie', 'a=' + t[:9]), ('cookie', t[9:]), ('cookie', 's=' + t)))",
    "body": "c.ask('/p', method='POST', body=('k=' + t).encode())",
    "trailer": "c.ask('/p', method='POST', body=b'x', trailers=[('x-t', t)])",
    "base64": "c.ask('/p', (('authorization', 'Basic ' + __import__('base64').b64encode(('u:' + t).encode()).decode()),))",
}


def test_a_placeholder_on_its_way_to_a_wrong_host(h2, tmp_path):
    # another secret makes sure that this host is looked into
    h2.secret(host=OTHER).secret("MINE", host=HOST, value="another-secret-0123456789")
    result = h2.client(EACH + f"""
t = os.environ['TOK']
def attack(c, ask):
    g = c.wait(ask(c))[0]; return str(c.brief(g)), g['head'].get('x-cloche-denied'), t
each({{{", ".join(f"{name!r}: lambda c: {ask}" for name, ask in WRONG.items())}}}, attack)
""", allow=(HOST, OTHER), flags=["--report", str(tmp_path / "report.json")])
    for where, (first, rule, placeholder) in said(result, WRONG).items():
        assert first != "200" and rule in (None, "secret-wrong-host"), (where, first, rule)
    assert placeholder not in str(h2.far.lines()) and VALUE not in str(h2.far.lines()), h2.far.lines()
    assert counted(tmp_path)["secret-wrong-host"] == len(WRONG), denied(tmp_path)


def test_a_placeholder_split_over_frames(h2):
    """In the body of one stream, with other streams' frames in between, a byte each."""
    h2.secret(host=HOST, place="body")
    result = h2.client("""
c, t = Client(), os.environ['TOK'].encode()
a, b = (c.ask('/mirror?%d' % i, method='POST', end=False) for i in range(2))
for i in range(len(t)):
    for n in (a, b):
        c.c.send_data(n, t[i:i + 1], end_stream=i == len(t) - 1); c.send()
print([t in g['body'] for g in c.wait(a, b)])
""")
    assert result.out == "[True, True]\n" and VALUE not in result.out, result
    assert [r["body"] for r in h2.far.requests] == [VALUE, VALUE]


def test_the_value_is_in_no_table_of_the_client(opened):
    """What goes out is marked as never to be indexed, and what comes back is made anew from the placeholder."""
    result = opened.client("""
c, t = Client(), os.environ['TOK']
for _ in range(3): g = c.get('/mirror', (('authorization', 'Bearer ' + t),))
print(g['head']['x-echo'] == 'is %s!' % t, [v for k, v in c.c.decoder.header_table.dynamic_entries if b'tk_Live' in v])
""")
    assert result.out == "True []\n", result


# --- floods: the connection ends, the rest of the sandbox's network lives ---------------------------------------------------

FLOODS = {
    "rapid reset": ("h2-reset-flood", """
n = 1
while not c.over and n < 30001:
    block = b''.join(frame(1, 5, n + 2 * i, c.h.encode(c.head('/v1/flood'))) + frame(3, 0, n + 2 * i, b'\\0\\0\\0\\x08') for i in range(50))
    c.raw(block); n += 100
"""),
    "made to reset": ("h2-reset-flood", """
n = 1
while not c.over and n < 30001:     # a window beyond 2^31 is a fault that is answered with RST_STREAM
    block = b''.join(frame(1, 4, n + 2 * i, c.h.encode(c.head('/v1/flood', method='GET'))) + frame(8, 0, n + 2 * i, b'\\x7f\\xff\\xff\\xff') for i in range(50))
    c.raw(block); n += 100
"""),
    "trailers that are too many": ("h2-reset-flood", """
n = 1
while not c.over and n < 12001:
    pair = lambda n: frame(1, 4, n, c.h.encode(c.head('/v1/flood'))) + frame(1, 5, n, c.h.encode([(f'x{k}', 'y') for k in range(70)]))
    c.raw(b''.join(pair(n + 2 * i) for i in range(50))); n += 100
"""),
    "ping": ("h2-small-flood", "\nwhile not c.over: c.raw(frame(6, 0, 0, bytes(8)) * 500)\n"),
    "settings": ("h2-small-flood", "\nwhile not c.over: c.raw(frame(4, 0, 0) * 500)\n"),
    "priority": ("h2-small-flood", "\nwhile not c.over: c.raw(frame(2, 0, 99, bytes(5)) * 500)\n"),
    "window": ("h2-small-flood", "\nwhile not c.over: c.raw(frame(8, 0, 0, b'\\0\\0\\0\\1') * 500)\n"),
    "empty data": ("h2-small-flood", """
n = c.ask('/v1/hang', method='GET', end=False)
while not c.over: c.raw(frame(0, 0, n) * 500)
"""),
    "unknown frames": ("h2-small-flood", "\nwhile not c.over: c.raw(frame(99, 0, 0) * 500)\n"),
    "continuation": ("h2-continuation-flood", """
c.raw(frame(1, 1, 1, c.h.encode(c.head('/v1/x'))))
while not c.over: c.raw(frame(9, 0, 1, b'\\0\\1a\\1b') * 500)
"""),
    "empty continuation": ("h2-continuation-flood", """
c.raw(frame(1, 1, 1, c.h.encode(c.head('/v1/x'))))
while not c.over: c.raw(frame(9, 0, 1) * 500)
"""),
    "a frame in a block": ("h2-protocol", "\nc.raw(frame(1, 1, 1, b'') + frame(6, 0, 0, bytes(8)))\n"),
    "large frame": ("h2-frame-size", "\nc.raw(frame(0, 0, 1, bytes(20000)))\n"),
    "push": ("h2-push", "\nc.raw(frame(5, 4, 1, b'\\0\\0\\0\\2'))\n"),
}


def test_floods(ruled, tmp_path):
    """All at once: each ends its own connection, and nobody else's."""
    result = ruled.client(f"""
import textwrap, threading
said = {{}}
def flood(name, attack):
    try:
        c = Client(); c.s.settimeout(50)
        exec(attack, {{**globals(), 'c': c}})
        try: c.to_end()
        except TimeoutError: pass
        said[name] = [c.over, Client().get('/v1/after')['status']]
    except Exception as e: said[name] = f'{{type(e).__name__}}: {{e}}'
threads = [threading.Thread(target=flood, args=case) for case in {[(name, attack) for name, (_, attack) in FLOODS.items()]!r}]
for t in threads: t.start()
for t in threads: t.join()
print(json.dumps(said))
""", allow=(), flags=["--report", str(tmp_path / "report.json")], timeout=120)
    assert result.ok and json.loads(result.out) == {name: [True, 200] for name in FLOODS}, result
    counts, words = counted(tmp_path), collections.Counter(word for word, _ in FLOODS.values())
    assert {word: counts[word] for word in words} == words, denied(tmp_path)
    assert ruled.far.paths().count("/v1/after") == len(FLOODS)


def test_what_is_no_preface(ruled, tmp_path):
    result = ruled.client("""
context = ssl.create_default_context(cafile=BUNDLE); context.set_alpn_protocols(['h2'])
for data in (b'GET /v1/x HTTP/1.1\\r\\nHost: h2.example.org\\r\\n\\r\\n', b'PRI * HTTP/2.0\\r\\n\\r\\nXX\\r\\n\\r\\n' + bytes(20)):
    s = context.wrap_socket(socket.create_connection((HOST, 443)), server_hostname=HOST)
    s.sendall(data); print(b'hello' in drain(s, 20))
""", allow=(), flags=["--report", str(tmp_path / "report.json")])
    assert result.out == "False\nFalse\n" and not ruled.far.requests, result
    assert any(d["rule"] == "h2-preface" for d in denied(tmp_path)), denied(tmp_path)


BOMBS = {
    "one large field": "(('x-a', 'v' * 70000),)",
    "many fields": "tuple(('x-%d' % i, 'v') for i in range(200))",
    "a table entry named a thousand times": "tuple(('x-bomb', 'v' * 3000) for i in range(5000))",
    "a long path": None,
    "an entry used in bytes": "raw",
}
# an entry of the table of 3,900 bytes, and a byte for each of its 115,000 uses: half a gigabyte
ENTRY = """
def used(c):
    block = c.h.encode(c.head('/v1/bomb')) + b'\\x40\\2xa\\x7f\\xbd\\x1d' + b'v' * 3900 + b'\\xbe' * 115000
    parts = [block[i:i + 16000] for i in range(0, len(block), 16000)]
    c.got[1] = {'status': 0, 'head': {}, 'body': b'', 'trailers': {}, 'reset': None, 'ended': False}
    c.c.get_next_available_stream_id(); c.raw(b''.join(frame(9 if i else 1, (0 if i else 1) | (4 if i == len(parts) - 1 else 0), 1, p) for i, p in enumerate(parts)))
    return 1
"""


def test_header_bombs(ruled):
    asks = {name: "used(c)" if more == "raw" else "c.ask('/v1/' + 'a' * 20000)" if more is None else f"c.ask('/v1/bomb', {more})" for name, more in BOMBS.items()}
    result = ruled.client(EACH + ENTRY + f"""
def attack(c, ask):
    first = str(c.brief(c.wait(ask(c))[0]))
    return first, Client().get('/v1/after')['status']
each({{{", ".join(f"{name!r}: lambda c: {ask}" for name, ask in asks.items())}}}, attack)
""", allow=())
    for name, (first, after) in said(result, BOMBS).items():
        assert after == 200 and (first in ("431", "414") or first.startswith("reset")), (name, first, after)
    assert ruled.far.paths() == ["/v1/after"] * len(BOMBS)


def test_more_streams_than_there_may_be(opened):
    """A client that passes over the limit that it was told, and acknowledged, loses its connection, and no more."""
    result = opened.client("""
c = Client()
c.wait(done=lambda: c.c.remote_settings.max_concurrent_streams < 1000)
print(c.c.remote_settings.max_concurrent_streams)
c.raw(b''.join(frame(1, 5, 2 * i + 1, c.h.encode(c.head('/hang'))) for i in range(300)))
c.to_end(); print(c.over)
d = Client(); print(d.get('/x')['status'])
""")
    assert result.out == "128\nTrue\n200\n", result
    assert opened.far.paths().count("/hang") <= 128


FULL = """
clients = []
for _ in range(3):
    c = Client(); clients.append(c)
    c.wait(done=lambda: c.c.remote_settings.max_concurrent_streams < 1000)
    streams = [c.ask('/stuck', method='POST', end=False) for i in range(50)]
    more = [c.ask('/bytes/2000000') for i in range(50)]
    for n in streams:
        for _ in range(10):
            k = min(c.c.local_flow_control_window(n), 16000)
            if k > 0: c.c.send_data(n, b'x' * k)
    c.send()
    # the answers' windows are used up, and not given back
    seen = {n: 0 for n in more}
    def hold(e):
        if type(e).__name__ == 'DataReceived': seen[e.stream_id] += len(e.data); c.c.increment_flow_control_window(e.flow_controlled_length)
    c.take = hold
    while min(seen.values()) < 65535: c.step()
print('full', flush=True); time.sleep(50)
"""


def test_bodies_that_nobody_reads_stay_bounded(h2):
    """Every stream full in both directions, on several connections: what egress holds is what the windows say."""
    h2.secret(host=HOST, place=("body", "bearer"))
    process = h2.online.popen(["/usr/bin/python3", "-I", "-c", PRELUDE.replace("/mnt/ca.pem", BUNDLE) + CLIENT + FULL], allow=(HOST,), flags=h2.flags, env=h2.env)
    line = process.stdout.readline()
    assert line == b"full\n", (line, process.communicate())
    pids = [pid for pid in leaks.descendants(process.pid) if memory.name_of(pid) == "cloche-egress"]
    kib = sum(int(x.split()[1]) for pid in pids for x in open(f"/proc/{pid}/status") if x.startswith("VmRSS"))
    # a sanitizer's shadow and quarantine are no memory of the program's
    sanitized = any(places.is_sanitized(os.readlink(f"/proc/{pid}/exe")) for pid in pids)
    process.terminate()
    process.communicate()
    # three connections with 100 streams: 64 KiB up and down each, the larger windows, and what the program is
    assert sanitized or 0 < kib < 3 * (100 * 2 * 64 + 8 * 1024) + 40 * 1024, kib


# --- plain HTTP: nothing is upgraded, nothing is guessed ----------------------------------------------------------------------

def test_h2c_is_not_upgraded(opened):
    """The request passes as the plain one that it is, or not at all; never as the beginning of another protocol."""
    result = opened.python("""
h = 'GET /x HTTP/1.1\\r\\nHost: ok.example.org\\r\\nConnection: Upgrade, HTTP2-Settings, close\\r\\nUpgrade: h2c\\r\\n' \\
    'HTTP2-Settings: AAMAAABkAAQAAP__\\r\\n\\r\\n'
print(talk(('ok.example.org', 80), h.encode(), 20).split(b'\\r\\n')[0])
""", allow=(HOST, "ok.example.org"))
    assert b"101" not in result.out.encode() and "200" in result.out, result
    assert not {k for r in opened.net.requests for k, _ in r["headers"]} & {"upgrade", "http2-settings"}


@pytest.mark.parametrize("port", [80, 3128, 1080])
def test_prior_knowledge(opened, port):
    result = opened.python(f"""
data = b'PRI * HTTP/2.0\\r\\n\\r\\nSM\\r\\n\\r\\n' + bytes([0, 0, 0, 4, 0, 0, 0, 0, 0])
where = ('ok.example.org', 80) if {port} == 80 else ('198.18.0.1', {port})
print(talk(where, data, 10)[:12])
""", allow=(HOST, "ok.example.org"))
    assert result.ok and not opened.net.requests and not any(kept for _, kept in opened.net.connections), result


def test_h2_in_a_tunnel_without_tls(opened):
    result = opened.python("""
s, said = connect('ok.example.org:80')
s.sendall(b'PRI * HTTP/2.0\\r\\n\\r\\nSM\\r\\n\\r\\n' + bytes([0, 0, 0, 4, 0, 0, 0, 0, 0]))
print(b'PRI' in drain(s, 10))
""", allow=(HOST, "ok.example.org"))
    assert result.out == "False\n", result
    assert not any(b"PRI" in kept for _, kept in opened.net.connections)


def test_a_client_that_offers_http1_and_says_http2(opened):
    result = opened.client("""
context = ssl.create_default_context(cafile=BUNDLE); context.set_alpn_protocols(['http/1.1'])
try:
    s = context.wrap_socket(socket.create_connection((HOST, 443)), server_hostname=HOST)
    s.sendall(b'PRI * HTTP/2.0\\r\\n\\r\\nSM\\r\\n\\r\\n' + frame(4, 0, 0)); print(drain(s, 20).split(b'\\r\\n')[0])
except OSError as e: print(type(e).__name__)
""")
    assert "200" not in result.out and not opened.far.requests, result


# --- servers ------------------------------------------------------------------------------------------------------------------

BAD = ["crlf", "nul", "upper", "connection", "coding", "status", "switch", "twice", "none", "large", "lengths", "data", "bomb"]


def test_answers_that_are_none(opened):
    result = opened.client(EACH + f"""
def attack(c, how):
    g = c.get('/bad/' + how)
    return f"{{c.brief(g)}} {{g['head']}}", Client().get('/x')['status']
each({{how: how for how in {BAD!r}}}, attack)
""")
    for how, (first, after) in said(result, BAD).items():
        assert after == 200 and first.startswith(("502", "reset")) and "x-evil" not in first, (how, first, after)


@pytest.mark.parametrize("how", ["push", "ping", "endless"])
def test_servers_that_flood(opened, how, tmp_path):
    result = opened.client(f"""
c = Client()
print(c.brief(c.get('/bad/{how}')))
d = Client(); print(d.get('/x')['status'])
""", flags=["--report", str(tmp_path / "report.json")])
    assert result.out in ("502\n200\n", "reset 2\n200\n", "reset None\n200\n"), result
    words = {"push": "h2-push", "ping": "h2-small-flood", "endless": "h2-continuation-flood"}
    assert any(d["rule"] == words[how] for d in denied(tmp_path)), denied(tmp_path)


def test_servers_that_flood_with_what_is_allowed(opened):
    """20,000 frames of one kind: it ends, and is no whole answer, for who asked; others are served."""
    floods = ["settings", "sizes", "resets", "windows", "empty", "interim", "again", "priorities", "unknown", "goaways", "acks"]
    result = opened.client(f"""
for how in {floods!r}:
    g = Client().get('/bad/' + how)
    print(how, g['status'], g['reset'], g['ended'], len(g['body']), Client().get('/x')['status'])
""")
    lines = [line.split() for line in result.out.splitlines()]
    assert [line[0] for line in lines] == floods and {line[-1] for line in lines} == {"200"}, result
    assert not [line for line in lines if line[1] != "502" and line[3:5] != ["False", "0"]], result


def test_an_answer_that_ends_too_early(opened):
    result = opened.client("c = Client(); g = c.get('/bad/short'); print(g['reset'], g['ended'])")
    assert result.out.split()[1] == "False" and result.out.split()[0] != "None", result


def test_an_encoding_that_cannot_be_searched(opened):
    result = opened.client("""
g = Client().get('/bad/encoding', (('authorization', 'Bearer ' + os.environ['TOK']),)); print(g)
""")
    assert "answer-encoding" in result.out and VALUE not in result.out, result
