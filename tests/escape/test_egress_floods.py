"""Servers that never come to an end, of a host whose answers are searched for secrets: each costs its own connection, the process
that carries it stays small, and everybody else is served (R13, R16, R91)."""
import contextlib
import gzip
import itertools
import json
import threading
import zlib

import pytest

from helpers import leaks, requirement
from helpers.daemon import status_of
from helpers.scripted import CLIENT, OK, Scripted, plain, read_head
from helpers.vaulted import VALUE, Vaulted

pytestmark = [requirement("R13", "R16", "R91"), pytest.mark.root]
HEAD = b"HTTP/1.1 200 OK\r\n"
CHUNKED = HEAD + b"Transfer-Encoding: chunked\r\n\r\n"


def bomb():
    """A quarter of a gibibyte of nothing, in some kibibytes; it does not end."""
    made = zlib.compressobj(9, zlib.DEFLATED, 31)
    return b"".join(made.compress(bytes(1 << 20)) for _ in range(256)) + made.flush(zlib.Z_FULL_FLUSH)


def coded(how):
    return HEAD + b"Content-Encoding: " + how + b"\r\nContent-Length: 10000000000\r\n\r\n"


def once(first, *rest):
    """@first, and then the others without end."""
    return itertools.chain([first], itertools.cycle(rest))


BOMB = bomb()
CHUNK = b"".join(b"1\r\n%c\r\n" % b for b in (VALUE[:12] + "x" * 500).encode())
FLOODS = {
    "head": lambda: once(HEAD, b"X-A: " + b"a" * 500 + b"\r\n"),
    "field": lambda: once(HEAD + b"X-A: ", b"a" * 4096),
    "reason": lambda: once(b"HTTP/1.1 200 ", b"a" * 4096),
    "fields": lambda: once(HEAD, b"a:\r\n" * 1000),
    "blank": lambda: once(b"\r\n", b"\r\n" * 1000),
    "interim": lambda: itertools.repeat(b"HTTP/1.1 100 Continue\r\n\r\n" * 100),
    "hints": lambda: itertools.repeat(b"HTTP/1.1 103 Early Hints\r\nLink: <" + b"x" * 4000 + b">\r\n\r\n"),
    "trailers": lambda: once(CHUNKED + b"1\r\nx\r\n0\r\n", b"X-A: " + b"a" * 500 + b"\r\n"),
    "trailer": lambda: once(CHUNKED + b"1\r\nx\r\n0\r\nX-A: ", b"a" * 4096),
    "size": lambda: once(CHUNKED, b"0" * 4096),
    "extension": lambda: once(CHUNKED + b"1;", b"a" * 4096),
    "extensions": lambda: once(CHUNKED, (b"1;" + b"a" * 200 + b"\r\nx\r\n") * 20),
    "chunks": lambda: once(CHUNKED, CHUNK),
    "begins": lambda: once(HEAD + b"Content-Length: 10000000000\r\n\r\n", VALUE[:-1].encode() * 200),
    "percents": lambda: once(HEAD + b"Content-Length: 10000000000\r\n\r\n", b"%25" * 4000),
    "escapes": lambda: once(HEAD + b"Content-Length: 10000000000\r\n\r\n", b"\\u0074" * 2000),
    "entities": lambda: once(HEAD + b"Content-Length: 10000000000\r\n\r\n", b"&#x74;" * 2000),
    "base64": lambda: once(HEAD + b"Content-Length: 10000000000\r\n\r\n", b"dGtf" * 2000),
    "hex": lambda: once(HEAD + b"Content-Length: 10000000000\r\n\r\n", b"746b5f" * 2000),
    "gzip-bomb": lambda: once(coded(b"gzip") + BOMB),
    "deflate": lambda: once(coded(b"deflate"), b"\0\0\0\xff\xff" * 2000),       # blocks of nothing
    "members": lambda: once(coded(b"gzip"), gzip.compress(b"") * 1000),
    "name": lambda: once(coded(b"gzip") + b"\x1f\x8b\x08\x08\0\0\0\0\0\3", b"a" * 4096),
    "slow": lambda: once(HEAD + b"Content-Length: 10000000000\r\n\r\n"),
}
BODIES = ("chunks", "begins", "percents", "escapes", "entities", "base64", "hex", "gzip-bomb")
CODE = f"""
import threading
def flooded(how):
    s = tls(connect('{OK}:443', seconds=60)[0], '{OK}'); s.settimeout(1)
    s.sendall(f'GET /{{how}} HTTP/1.1\\r\\nHost: {OK}\\r\\nAuthorization: Bearer {{os.environ["TOK"]}}\\r\\n\\r\\n'.encode())
    got, began = 0, time.monotonic()
    try:
        while time.monotonic() - began < 1:
            d = s.recv(65536)
            if not d: return got, 'end'
            got += len(d)
    except TimeoutError: return got, 'waits'
    except OSError as e: return got, type(e).__name__
    return got, 'goes on'
def other():
    began = time.monotonic()
    s = tls(connect('{OK}:443', seconds=60)[0], '{OK}')
    s.sendall(get('{OK}', '/other')); r = answer(s); s.close()
    return r[0], round(time.monotonic() - began, 2)
for how in sys.stdin.readline().split():
    said = []
    t = threading.Thread(target=lambda: said.append(flooded(how))); t.start()
    time.sleep(0.2)
    o = other()
    t.join()
    print(json.dumps([how, *said[0], *o]), flush=True)
sys.stdin.readline()
"""


def test_servers_without_end(online, tmp_path):
    def serve(connection, _, kept):
        with contextlib.suppress(OSError), online.net.context.wrap_socket(connection, server_side=True) as c:
            while head := read_head(c):
                how = head.split()[1].decode()[1:]
                if how not in FLOODS:
                    c.sendall(plain(b"ok"))
                    continue
                for piece in FLOODS[how]():
                    c.sendall(piece)
                    if over.is_set():
                        return
                over.wait(60)
    over = threading.Event()
    far = Scripted(online.net, serve)
    online.net.behind[OK.encode()] = far.port
    vaulted = Vaulted(online, tmp_path).secret()
    process = vaulted.popen(CLIENT + CODE)
    try:
        process.stdin.write(" ".join(FLOODS).encode() + b"\n")
        process.stdin.flush()
        said = [json.loads(process.stdout.readline() or "0") or process.communicate() for _ in FLOODS]
        (egress,) = leaks.named("cloche-egress")
        peak = int(status_of(egress)["VmHWM"].split()[0])
    finally:
        over.set()
        process.communicate(b"\n", timeout=60)
        online.net.behind.clear()
    assert [how for how, *_ in said] == list(FLOODS), said
    assert all(status == 200 for *_, status, _ in said), said
    # what is no body does not come through, and what is one comes at the pace of who reads it
    assert all(got < 4096 for how, got, *_ in said if how not in BODIES), said
    assert all(got > 1 << 16 for how, got, *_ in said if how in BODIES), said
    assert peak < 128 << 10, f"{peak} KiB"      # with sanitizers; some 10 MiB without


@pytest.mark.parametrize("how", ["length", "chunked", "close"])
@pytest.mark.parametrize("pause", [False, True], ids=["whole", "pause"])
def test_an_answer_that_becomes_large_arrives(online, tmp_path, how, pause):
    """Of a body that is unpacked here more comes out than is passed on at once, and nothing wakes anybody for the rest."""
    plain_ = b"all work and no play " * 100000
    packed = gzip.compress(plain_)
    more = {"length": b"Content-Length: %d" % len(packed), "chunked": b"Transfer-Encoding: chunked", "close": b"Connection: close"}[how]

    def serve(connection, _, kept):
        with online.net.context.wrap_socket(connection, server_side=True) as c:
            kept.append(read_head(c))
            body = b"%x\r\n%s\r\n0\r\n\r\n" % (len(packed), packed) if how == "chunked" else packed
            said = HEAD + b"Content-Encoding: gzip\r\n" + more + b"\r\n\r\n" + body
            cut = len(said) - 100 if pause else len(said)
            c.sendall(said[:cut])
            if pause:
                over.wait(2)
                c.sendall(said[cut:])
            if how != "close":
                over.wait(60)
            else:
                c.unwrap()          # an end without this is an answer that was cut off: the client sees a reset
    over = threading.Event()
    online.net.behind[OK.encode()] = Scripted(online.net, serve).port
    try:
        result = Vaulted(online, tmp_path).secret().python(CLIENT + f"""
drain.__defaults__ = (20,)
s = tls(connect('{OK}:443', seconds=60)[0], '{OK}'); s.settimeout(20)
s.sendall(get('{OK}', '/', 'Connection: close\\r\\n' if '{how}' == 'close' else '')); r = answer(s); print(r[0], len(r[2]))
""")
    finally:
        over.set()
        online.net.behind.clear()
    assert result.out == f"200 {len(plain_)}\n", result
