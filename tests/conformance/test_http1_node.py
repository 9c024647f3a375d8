"""Our HTTP/1 codec beside Node's (llhttp): what we accept, Node accepts, as the same message with the same body.

The other way round nothing is asked: ours is the stricter one (src/wire/http1.h says where).
"""
import base64
import json
import random
import subprocess
from pathlib import Path

import pytest

from helpers import places, requirement

pytestmark = requirement("R13", "R14")
SCRIPT = Path(__file__).resolve().parents[1] / "lib" / "http1_node.js"
HOST = b"Host: a.example\r\n"
CHUNKED = b"Transfer-Encoding: chunked\r\n"
SEED = 9112


def get(*lines, line=b"GET / HTTP/1.1"):
    return line + b"\r\n" + HOST + b"".join(lines) + b"\r\n"


def post(*lines, body=b""):
    return get(*lines, line=b"POST /p HTTP/1.1") + body


def chunks(*datas, trailer=b""):
    return b"".join(b"%x\r\n%s\r\n" % (len(d), d) for d in datas) + b"0\r\n" + trailer + b"\r\n"


def response(*lines, line=b"HTTP/1.1 200 OK", body=b""):
    return line + b"\r\n" + b"".join(lines) + b"\r\n" + body


# Plain messages of every kind that we accept; also what the mutations start from.
REQUESTS = [
    get(), get(b"X: \r\n"), get(b"X:y\r\n", b"X:\ty \t\r\n"), get(b"X: \xc3\xa9\xff\r\n"),
    get(line=b"GET /a/b?c=d&e=%20f?g HTTP/1.1"), get(line=b"GET /[x]|{y}^@;=,~!$&'()*+ HTTP/1.1"),
    get(line=b"GET /?`\\x HTTP/1.1"), get(line=b"GET //b.example/x HTTP/1.1"), get(line=b"GET /http://b/ HTTP/1.1"),
    get(line=b"GET http://b.example/x?y HTTP/1.1"), get(line=b"GET HTTP://b.example:8080 HTTP/1.1"),
    get(line=b"GET http://b.example?y HTTP/1.1"), get(line=b"GET https://b.example/ HTTP/1.1"),
    get(line=b"GET http://[2001:db8::1]:81/ HTTP/1.1"), get(line=b"GET http://127.0.0.1/ HTTP/1.1"),
    get(line=b"GET http://a_b.example/ HTTP/1.1"),
    get(line=b"OPTIONS * HTTP/1.1"), get(line=b"HEAD / HTTP/1.1"), get(line=b"DELETE /x HTTP/1.0"),
    get(line=b"M-SEARCH /x HTTP/1.1"), get(line=b"PATCH /x HTTP/1.1"), get(line=b"QUERYSTRING /x HTTP/1.1"),
    get(line=b"CONNECT b.example:443 HTTP/1.1") + b"\x16\x03\x01", get(line=b"CONNECT [::1]:443 HTTP/1.1"),
    get(line=b"CONNECT 10.0.0.1:22 HTTP/1.0"), get(b"Content-Length: 0\r\n", line=b"CONNECT b.example:80 HTTP/1.1"),
    b"GET / HTTP/1.0\r\n\r\n", b"GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n",
    get(b"Connection: close\r\n"), get(b"Connection: keep-alive, close\r\n"), get(b"Connection: ,x,, y\r\n"),
    get(b"Connection: Upgrade\r\n", b"Upgrade: websocket\r\n"), get(b"Upgrade: h2c\r\n"),
    post(b"Connection: Upgrade\r\n", b"Upgrade: x\r\n", b"Content-Length: 3\r\n", body=b"abc"),
    post(b"Connection: Upgrade\r\n", b"Upgrade: x\r\n", CHUNKED, body=chunks(b"abc")),
    post(b"Content-Length: 5\r\n", body=b"hello"), post(b"Content-Length:005  \r\n", body=b"hello"),
    post(b"content-LENGTH:   5\r\n", body=b"hello" + get()), post(b"Content-Length: 0\r\n", body=get()),
    post(b"Content-Length: 10\r\n", body=b"hello"), post(b"Content-Length: 9999999999999999999\r\n", body=b"hello"),
    post(b"Expect: 100-continue\r\n", b"Content-Length: 2\r\n", body=b"ab"),
    post(CHUNKED, body=chunks()), post(CHUNKED, body=chunks(b"a", b"bc", b"d" * 300)),
    post(b"transfer-encoding:CHUNKED\r\n", body=chunks(b"\r\n0\r\n\r\n") + get()),
    post(b"Transfer-Encoding: chunked \r\n", body=chunks(b"a")), post(b"Transfer-Encoding:   chunked\r\n", body=chunks(b"a")),
    post(b"Transfer-Encoding:chunked\r\n", b"TE: trailers\r\n", body=chunks(b"a", trailer=b"X-Sum: 1\r\nY:\r\n")),
    post(CHUNKED, body=b"00000000000000A\r\n0123456789\r\n000\r\n\r\n"), post(CHUNKED, body=b"a\r\n0123456789\r\n"),
    post(CHUNKED, body=b"5\r\nhel"), post(CHUNKED, body=b"ffffffffffffffff\r\nhel"), post(CHUNKED, body=b""),
    post(CHUNKED, body=chunks(b"a", trailer=b"Via: x\r\nExpect: 1\r\nContent-Lengthy: 5\r\nTE: x\r\nTrailer: x\r\n")),
    get(*[b"X-%d: %d\r\n" % (i, i) for i in range(127)]), get(b"X: " + b"y" * 40000 + b"\r\n"),
    get(line=b"GET /" + b"y" * 16000 + b" HTTP/1.1"),
]

# Where parsers are known to disagree: framing twice, odd numbers, odd names, odd line ends.
DOUBTFUL = [
    post(CHUNKED, b"Content-Length: 3\r\n", body=chunks(b"abc")), post(b"Content-Length: 3\r\n", CHUNKED, body=chunks(b"abc")),
    post(CHUNKED, CHUNKED, body=chunks(b"a")), b"\r\n" + get(), b"\r\n\r\n" + get(), b"\n" + get(), b" " + get(),
    b"GET / HTTP/1.1\r\n\r\n", b"GET / HTTP/1.1\r\nHost:\r\n\r\n", get(HOST), get(line=b"GET /"), get(line=b"PRI * HTTP/2.0"),
    *[post(b"Content-Length: %s\r\n" % v, body=b"0123456789") for v in (
        b"", b"+5", b"-5", b"1_0", b"0x5", b"5,5", b"5, 5", b"5 5", b"5;", b"5.0", b"\x0b5", b"18446744073709551616", b"5\xa0")],
    post(b"Content-Length: 5\r\n", b"Content-Length: 5\r\n", body=b"hello"), post(b"Content-Length: 5 \t\r\n", body=b"hello"),
    post(b"Content-Length:\t5\r\n", body=b"hello"), post(b"Transfer-Encoding: chunked\t\r\n", body=chunks(b"a")),
    post(b"Content-Length: 5\r\n", b"Content-Length: 6\r\n", body=b"hello!"),
    *[post(b"Transfer-Encoding: %s\r\n" % v, body=chunks(b"a")) for v in (
        b"", b"identity", b"chunked, identity", b"identity, chunked", b"chunked,", b",chunked", b"chunkedchunked", b"xchunked",
        b"chunked;q=1", b'"chunked"', b"chun ked", b"\xa0chunked", b"\x0bchunked", b"chunked, chunked", b"\r\n chunked")],
    *[post(CHUNKED, body=v) for v in (
        b"0_2e\r\n\r\n", b"0x1\r\na\r\n0\r\n\r\n", b"+1\r\na\r\n0\r\n\r\n", b"-1\r\na\r\n0\r\n\r\n", b"1 \r\na\r\n0\r\n\r\n", b" 1\r\na\r\n0\r\n\r\n",
        b"1;a=b\r\na\r\n0\r\n\r\n", b'1;a="b"\r\na\r\n0\r\n\r\n', b"1;\r\na\r\n0\r\n\r\n", b"1\na\r\n0\r\n\r\n", b"1\r\na\n0\r\n\r\n",
        b"1\r\na0\r\n\r\n", b"1\r\na\r\n\r\n0\r\n\r\n", b"\r\n\r\n", b"0\r\n\n", b"0\n\r\n", b"0\r\n\rX", b"0\r\nGET / HTTP/1.1\r\n\r\n",
        b"10000000000000001\r\na\r\n0\r\n\r\n", b"00000000000000001\r\na\r\n0\r\n\r\n", b"fffffffffffffffff\r\na",
        b"0\r\nContent-Length: 5\r\n\r\n", b"0\r\nTransfer-Encoding: chunked\r\n\r\n", b"0\r\nTransfer-Encoding: x\r\n\r\n",
        b"0\r\nX: a\nb\r\n\r\n", b"0\r\nX : a\r\n\r\n", b"0\r\nX: a\r\n b\r\n\r\n", b"0\r\n: a\r\n\r\n", b"0\r\nConnection: x\r\n\r\n",
        b"0\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n", b"0\r\nHost: b\r\n\r\n")],
    *[get(v) for v in (
        b"X : y\r\n", b" X: y\r\n", b"X: y\r\n z\r\n", b": y\r\n", b"X\r\n", b"X: a\rb\r\n", b"X: a\nb\r\n", b"X: a\0b\r\n", b"X: a\x7f\r\n",
        b"X: a\x01\r\n", b"X\x80: a\r\n", b"X(: a\r\n", b"X\0: a\r\n", b"\rX: a\r\n", b"X: a\r\r\n", b"\x0bX: a\r\n", b"X:\ny\r\n", b"X:\ry\r\n",
        b"Expect: 200-ok\r\n", b"Connection: host\r\n", b"Connection: a b\r\n", b"Upgrade:\r\nConnection: upgrade\r\n")],
    *[get(line=v) for v in (
        b"GET / http/1.1", b"GET / HTTP/1.2", b"GET / HTTP/0.9", b"GET / HTTP/2.0", b"GET / HTTP/1.1 ", b"GET  / HTTP/1.1", b"GET /  HTTP/1.1",
        b"GET\t/ HTTP/1.1", b"get / HTTP/1.1", b"GETX / HTTP/1.1", b"GET /a\x01 HTTP/1.1", b"GET /a\xc3 HTTP/1.1", b"GET /a#b HTTP/1.1",
        b"GET a HTTP/1.1", b"GET * HTTP/1.1", b"GET http:/// HTTP/1.1", b"GET http://u@b/ HTTP/1.1", b"GET http://b:99999/ HTTP/1.1",
        b"CONNECT / HTTP/1.1", b"CONNECT b HTTP/1.1", b"CONNECT b:0 HTTP/1.1", b"GET / ICE/1.0", b"ANNOUNCE / HTTP/1.1", b"GET b:443 HTTP/1.1")],
]

RESPONSES = [
    ("GET", response(b"Content-Length: 3\r\n", body=b"abc")), ("GET", response(b"Content-Length: 3\r\n", body=b"ab")),
    ("GET", response(body=b"until close")), ("GET", response(line=b"HTTP/1.0 200 OK", body=b"x")), ("GET", response(body=b"")),
    ("GET", response(CHUNKED, body=chunks(b"abc", b"def", trailer=b"X: y\r\n"))), ("GET", response(CHUNKED, body=b"3\r\nab")),
    ("GET", response(b"Content-Length: 0\r\n", line=b"HTTP/1.1 200")), ("GET", response(b"Content-Length: 1\r\n", line=b"HTTP/1.1 200 ", body=b"a")),
    ("GET", response(b"Content-Length: 1\r\n", line=b"HTTP/1.1 404 N\xc3\xb6t\tf", body=b"a")),
    ("GET", response(b"Content-Length: 1\r\n", line=b"HTTP/1.1 999 Odd", body=b"a")), ("GET", response(line=b"HTTP/1.1 500 x", body=b"a")),
    ("GET", response(line=b"HTTP/1.1 204 N")), ("GET", response(b"Content-Length: 0\r\n", line=b"HTTP/1.1 204 N")),
    ("GET", response(b"Content-Length: 9\r\n", line=b"HTTP/1.1 304 N")), ("GET", response(CHUNKED, line=b"HTTP/1.1 304 N")),
    ("HEAD", response(b"Content-Length: 9\r\n")), ("HEAD", response(CHUNKED)), ("HEAD", response()),
    ("CONNECT", response(body=b"\x16\x03")), ("CONNECT", response(b"Content-Length: 5\r\n", body=b"hello")),
    ("CONNECT", response(CHUNKED, body=b"0\r\n\r\n")),
    ("GET", response(b"Connection: Upgrade\r\n", b"Upgrade: websocket\r\n", line=b"HTTP/1.1 101 S", body=b"\x81\x00")),
    ("GET", response(b"Content-Length: 1\r\n", b"Connection: close\r\n", b"Set-Cookie: a\r\n", b"Set-Cookie: b\r\n", body=b"a")),
    ("GET", response(CHUNKED, b"Content-Length: 3\r\n", body=chunks(b"abc"))),
    ("GET", response(b"Transfer-Encoding: gzip, chunked\r\n", body=chunks(b"a"))),
    ("GET", response(CHUNKED, line=b"HTTP/1.0 200 OK", body=chunks(b"a"))), ("GET", response(b"X: a\r\n b\r\n")), ("GET", response(b"X : a\r\n")),
    ("GET", response(b"Content-Length: 3, 3\r\n", body=b"abc")), ("GET", response(line=b"HTTP/1.1 20 OK")),
    ("GET", response(line=b"HTTP/1.1 2000 OK")),
    ("GET", response(line=b"HTTP/1.1 099 OK")), ("GET", response(line=b"HTTP/2 200 OK")), ("GET", response(line=b"http/1.1 200 OK")),
    ("GET", response(b"Content-Length: 5\r\n", line=b"HTTP/1.1 204 N", body=b"hello")), ("GET", b"<html>"),
]


def valid(rng):
    """A request that we must accept, from a grammar of pieces."""
    method = rng.choice([b"GET", b"POST", b"PUT", b"DELETE", b"HEAD", b"OPTIONS", b"PATCH", b"PROPFIND", b"SEARCH"])
    target = rng.choice([b"", b"http://b.example", b"http://b.example:8080", b"http://[::1]:1"]) + rng.choice([b"/", b"/a/b", b"/%2e/"]) + \
        rng.choice([b"", b"?", b"?a=b&c", b"?x?/y"])
    body = bytes(rng.randrange(256) for _ in range(rng.choice([0, 1, 5, 40, 2000])))
    fields = [HOST]
    for _ in range(rng.randrange(6)):
        value = bytes(rng.choice(b"\tabc XYZ019,;=\"()/\x80\xff") for _ in range(rng.randrange(30)))
        fields.append(rng.choice([b"Accept", b"X-Y_z", b"Cookie", b"te", b"!#$%&'*+-.^_`|~"]) + rng.choice([b":", b": ", b":\t "]) + value + b"\r\n")
    how = rng.randrange(3)
    if how == 1:
        fields.append(rng.choice([b"Content-Length: %d\r\n", b"content-length:%d \r\n"]) % len(body))
    elif how == 2:
        cuts = sorted(rng.randrange(len(body) + 1) for _ in range(rng.randrange(4)))
        parts = [body[a:b] for a, b in zip([0, *cuts], [*cuts, len(body)]) if a < b]
        body = chunks(*parts, trailer=rng.choice([b"", b"X: y\r\n", b"A:\r\nB: \x80\r\n"]))
        fields.append(rng.choice([CHUNKED, b"transfer-encoding:Chunked\r\n"]))
    else:
        body = b""
    fields.append(rng.choice([b"", b"", b"Connection: close\r\n", b"Connection: x, keep-alive\r\n"]))
    rng.shuffle(fields)
    return method + b" " + target + b" HTTP/1.1\r\n" + b"".join(fields) + b"\r\n" + body + rng.choice([b"", b"", get()])


PIECES = [b"\r", b"\n", b"\r\n", b"\0", b" ", b"\t", b":", b",", b";", b"\x0b", b"\x7f", b"\x80", b"\xa0", b"0", b"_", b"+", b"-", b"x", b"0x",
          b"chunked", b"\r\n ", b"\r\nContent-Length: 5\r\n", b"\r\nTransfer-Encoding: chunked\r\n", b"#", b"%", b"@", b"\\", b"\""]


def mutated(rng, base):
    at = rng.randrange(len(base))
    how = rng.randrange(4)
    if how == 0:
        return base[:at] + rng.choice(PIECES) + base[at:]
    if how == 1:
        return base[:at] + base[at + 1:]
    if how == 2:
        return base[:at] + rng.choice(PIECES) + base[at + 1:]
    lines = base.split(b"\r\n")
    i, j = rng.randrange(len(lines)), rng.randrange(len(lines))
    lines[i], lines[j] = lines[j], lines[i]
    return b"\r\n".join(lines)


def requests():
    rng = random.Random(SEED)
    plain = REQUESTS + [valid(rng) for _ in range(places.loops(150))]
    short = [one for one in plain if len(one) < 1000]
    return plain, DOUBTFUL + [mutated(rng, rng.choice(short)) for _ in range(places.loops(500))]


@pytest.fixture
def ours(binary):
    cat = places.find_beside(binary, "tests/lib/http1_cat")
    if cat is None:
        pytest.skip("http1_cat is not built")

    def ask(kind, method, raw):
        words = ["request"] if kind == "request" else ["response", method]
        done = subprocess.run([str(cat), *words], input=raw, capture_output=True, timeout=20, check=True)
        said = done.stdout.decode("ascii").split()
        if said[0] != "ok":
            return {"verdict": " ".join(said)}
        what, target, fields, framing, stated, body, digest, end = said[1:]
        return {"verdict": "ok", "head": {"what": what, "target": target, "fields": int(fields)}, "framing": framing,
                "stated": stated, "body": int(body), "hash": int(digest, 16), "end": end}
    return ask


def node(cases):
    given = [{"kind": kind, "method": method, "bytes": base64.b64encode(raw).decode()} for kind, method, raw in cases]
    done = subprocess.run([places.NODE, str(SCRIPT)], input=json.dumps(given), capture_output=True, timeout=240, text=True,
                          check=True)
    said = json.loads(done.stdout)
    assert len(said["results"]) == len(cases)
    assert all(one["error"] != "TIMEOUT" for one in said["results"]), done.stderr
    return said["methods"], said["results"]


def difference(mine, theirs):
    """Why the two answers must not stand beside each other, or None. Mine is "ok"."""
    if theirs["head"] is None:
        return f"we accept, Node refuses ({theirs['error']})"
    if mine["head"] != theirs["head"]:
        return f"another message: {mine['head']}, Node {theirs['head']}"
    if mine["end"] == "whole":
        if not theirs["whole"] or theirs["error"]:
            return f"we see the body's end, Node does not ({theirs['error']})"
        if (mine["body"], mine["hash"]) != (theirs["body"], theirs["hash"]):
            return f"another body: {mine['body']} bytes, Node {theirs['body']}"
    if mine["end"] == "cut":
        if theirs["whole"]:
            return "we wait for more body, Node has seen its end"
        if theirs["error"] not in (None, "HPE_INVALID_EOF_STATE", "ECONNRESET"):
            return f"we wait for more body, Node refuses it ({theirs['error']})"
    return None


def compare(cases, ours):
    methods, theirs = node(cases)
    both, foreign, found = 0, 0, []
    for (kind, method, raw), answer in zip(cases, theirs):
        mine = ours(kind, method, raw)
        if mine["verdict"] != "ok":
            continue
        if kind == "request" and mine["head"]["what"] not in methods:
            foreign += 1        # any token is a method (RFC 9110 §9.1); Node knows a list
            continue
        why = difference(mine, answer)
        if why is None:
            both += 1
        else:
            found.append(f"{why}: {raw[:300]!r}")
    print(f"{len(cases)} messages: {both} read alike, {foreign} with methods unknown to Node")
    assert not found, "\n".join(found)
    return both


def test_plain_requests_are_read_alike(ours):
    plain, _ = requests()
    for raw in plain:
        answer = ours("request", "", raw)
        assert answer["verdict"] == "ok", (answer, raw)
    # one of them has a method of its own
    assert compare([("request", "", raw) for raw in plain], ours) == len(plain) - 1


def test_doubtful_requests(ours):
    _, doubtful = requests()
    assert len(doubtful) >= 100
    assert compare([("request", "", raw) for raw in doubtful], ours) >= len(doubtful) // 20


def test_responses(ours):
    rng = random.Random(SEED)
    cases = [("response", method, raw) for method, raw in RESPONSES]
    cases += [("response", method, mutated(rng, raw)) for method, raw in rng.choices(RESPONSES[:24], k=places.loops(150))]
    # Node goes on to the next response after 1xx; ours is asked of one message
    cases = [one for one in cases if not one[2].startswith(b"HTTP/1.1 1") or one[2].startswith(b"HTTP/1.1 101")]
    assert compare(cases, ours) >= 24


def test_the_comparison_can_fail(ours):
    """Node's answer to a message that differs in one thing is a difference; so the oracle looks at that thing."""
    base = post(b"Content-Length: 5\r\n", body=b"hello")
    mine = ours("request", "", base)
    others = [base, base.replace(b": 5", b": 4"), base.replace(b"hello", b"hellp"), base.replace(b"hello", b"hell"),
              base.replace(b"/p", b"/q"), base.replace(b"POST", b"PUT"), base.replace(b"Content", b"X: y\r\nContent"),
              base.replace(b"Host", b" Host"), base.replace(b"Host", b"Most"), post(CHUNKED, body=b"5\r\nhelloX")]
    _, answers = node([("request", "", raw) for raw in others])
    same = [difference(mine, answer) is None for answer in answers]
    assert same == [True] + [False] * (len(others) - 1), answers
