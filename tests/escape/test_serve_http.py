"""Broken, huge, slow, truncated and piled-up requests to the daemon over TCP: a clear answer or an end, and nobody else minds."""
import contextlib
import json
import os
import random
import select
import socket
import time

import pytest

from helpers import places, requirement
from helpers.daemon import Daemon, is_sanitized, resident, ticks
from helpers.preview import handshake, read_head
from helpers.runner import wait_for

pytestmark = requirement("R61")

# What RFC 8259 does not allow, in the manner of JSONTestSuite's n_ files; and what it leaves open and is refused: a name
# twice, a NUL, depth without end, and what is neither object nor list.
NOT_JSON = [
    b"[1 true]", b"[a\xe5]", b'["": 1]', b'[""],', b"[,1]", b"[1,,2]", b'["x",,]', b'["x"]]', b'["",]', b'["x"', b"[x", b"[3[4]]", b"[\xff]",
    b"[1:2]", b"[,]", b"[-]", b"[   , \"\"]", b'["a",\n4\n,1,', b"[1,]", b"[1,,]", b'["\x0ba"\\f]', b"[*]", b'[""', b"[1,", b"[1,\n1\n,1", b"[{}",
    b"[fals]", b"[nul]", b"[tru]", b"123\0", b"[++1234]", b"[+1]", b"[+Inf]", b"[-01]", b"[-1.0.]", b"[-2.]", b"[-NaN]", b"[.-1]", b"[.2e-3]",
    b"[0.1.2]", b"[0.3e+]", b"[0.3e]", b"[0.e1]", b"[0E+]", b"[0E]", b"[0e+]", b"[0e]", b"[1.0e+]", b"[1.0e-]", b"[1.0e]", b"[1 000.0]", b"[1eE2]",
    b"[2.e+3]", b"[2.e-3]", b"[2.e3]", b"[9.e+]", b"[1+2]", b"[0x1]", b"[0x42]", b"[Infinity]", b"[0e+-1]", b"[-123.123foo]", b"[123\xe5]",
    b"[1e1\xe5]", b"[0\xe5]", b"[-Infinity]", b"[-foo]", b"[- 1]", b"[-012]", b"[-.123]", b"[-1x]", b"[1ea]", b"[1e\xe5]", b"[1.]", b"[.123]",
    b"[1.2a-3]", b"[1.8011670033376514H-308]", b"[012]", b'["x", truth]', b'{[: "x"}\n', b'{"x", null}', b'{"x"::"b"}', b"{\xf0\x9f\x87\xa8}",
    b'{"a":"a" 123}', b"{key: 'value'}", b'{"\xb9":"0",}', b'{"a" b}', b'{:"b"}', b'{"a" "b"}', b'{"a":', b'{"a"', b"{1:1}", b"{9999E9999:1}",
    b"{null:null,null:null}", b'{"id":0,,,,,}', b"{'a':0}", b'{"id":0,}', b'{"a":"b"}/**/', b'{"a":"b"}/**//', b'{"a":"b"}//', b'{"a":"b"}/',
    b'{"a":"b",,"c":"d"}', b'{a: "b"}', b'{"a":"a', b'{ "foo" : "bar", "a" }', b'{"a":"b"}#', b" ", b'["\\uD800\\"]', b'["\\uD800\\u"]',
    b'["\\uD800\\u1"]', b'["\\uD800\\u1x"]', b"[\xc3\xa9]", b'["\\\0"]', b'["\\x00"]', b'["\\\\\\"]', b'["\\\t"]', b'["\\\xf0\x9f\x8c\x80"]', b'["\\"]',
    b'["\\u00A"]', b'["\\uD834\\uDd"]', b'["\\uD800\\uD800\\x"]', b'["\\u\xe5"]', b'["\\a"]', b'["\\uqqqq"]', b'["\\\xe5"]', b"[\\u0020\"asd\"]",
    b"[\\n]", b'"', b"['single quote']", b"abc", b'["\\', b'["a\0a"]', b'["new\nline"]', b'["\t"]', b'"\\UA66D"', b'""x', b"<.>", b"[<null>]", b"[1]x",
    b"[1]]", b'["asd]', b"a\xc3\xa5", b"[True]", b"1]", b'{"x": true,', b"[][]", b"]", b"\xef\xbb{}", b"\xe5", b"[", b"", b"[\0]", b'{"":', b'{"a":/*comment*/"b"}',
    b'{"a": true} "x"', b"['", b'["a', b'[{"":[{"":', b"{]", b"{,", b"{[", b'{"a', b"{'a'", b'["\\{["\\{["\\{["\\{', b"*", b'{"a":"b"}#{}', b"[\\u000A\"\"]",
    b"[1", b'{"asd":"asd"', b"\xe2\x81\xa0", b"[\x0c]", b'["\\ud800"]', b'["\xed\xa0\x80"]', b'["\xc0\xaf"]', b'["\xf4\xbf\xbf\xbf"]', b'["\x80"]', b'["\xe0\xff"]',
    b"42", b"null", b'"text"', b'{"a":1,"a":2}', b'{"foo\\u0000bar": 42}', b'["\\u0000"]', b"\xff\xfe[\0]\0", b"[" * 100000, b'{"a":' * 50000,
]
EMPTY = (b"",)      # a request without a body is one
# What it does allow, odd as it looks; objects and lists, for nothing else is a request.
JSON = [
    b"[[]   ]", b'[""]', b"[]", b'["a"]', b"[false]", b'[null, 1, "1", {}]', b"[null]", b"[1\n]", b" [1]", b"[1,null,null,null,2]", b"[2] ", b"[123e65]", b"[0e+1]",
    b"[0e1]", b"[ 4]", b"[-0.000000000000000000000000000000000000000000000000000000000000000000000000000000001]\n", b"[20e1]", b"[-0]", b"[-123]",
    b"[-1]", b"[1E22]", b"[1E-2]", b"[123.456e78]", b"[123.456789]", b'{"asd":"sdf", "dfg":"fgh"}', b'{"a":"b"}', b"{}", b'{"":0}',
    b'{"min": -1.0e+28, "max": 1.0e+28}', b'{"a":[]}', b'{"title":"\\u041f\\u043e"}', b"{\n\"a\": \"b\"\n}", b'["\\u0060\\u012a\\u12AB"]', b'["\\uD801\\udc37"]',
    b'["\\"\\\\\\/\\b\\f\\n\\r\\t"]', b'["\\\\u0000"]', b'["\\""]', b'["a/*b*/c"]', b'["\\u0012"]', b'["\xf4\x8f\xbf\xbf"]', b'["\xef\xbf\xbf"]', b'[ "asd"]',
    b'["new\\u000Aline"]', b'["\x7f"]', b'["\\uA66D"]', b'["\xe2\x82\xac"]', b"[\"a\"]\n", b"[true]", b" [] ",
]


@pytest.fixture
def daemon(cloche, request):
    made = Daemon(cloche, "--rate-limit", "0", "--client-timeout", getattr(request, "param", "15s"), path=cloche.home / "s", tcp=True)
    yield made
    fronts = made.processes("cloche-front")
    assert made.get("/v1/health").ok and made.remote().get("/v1/health").ok
    assert len(fronts) == 2 and made.stop() == 0 and "started again" not in made.log, made.log


@pytest.fixture
def operator(daemon):
    return daemon.remote(daemon.token())


# For those that send what is no whole request, and wait until the daemon has waited long enough.
impatient = pytest.mark.parametrize("daemon", ["2s"], indirect=True, ids=["impatient"])


def dial(daemon):
    s = socket.create_connection(daemon.addresses()[0])
    s.settimeout(90)
    return s


def head(operator, line, *more, length=None):
    lines = [line, "Host: localhost", f"Authorization: Bearer {operator.secret}", *more]
    if length is not None:
        lines.append(f"Content-Length: {length}")
    return "\r\n".join([*lines, "", ""]).encode()


def read_all(s):
    got = b""
    try:
        while piece := s.recv(65536):
            got += piece
    except ConnectionError:
        pass
    return got


def statuses(text):
    return [int(part.split(b" ", 2)[1]) for part in text.split(b"HTTP/1.1 ")[1:] for part in [b"HTTP/1.1 " + part]]


# --- JSON -------------------------------------------------------------------------------------------------------------

def test_bodies_that_are_no_json(operator):
    for body in NOT_JSON:
        if body in EMPTY:
            continue
        answer = operator("POST", "/v1/sandboxes", body)
        assert answer.status == 400 and answer.json["code"] == "http.json" and answer.json["request_id"], (body[:60], answer)
        assert len(answer.body) < 4096
    assert operator.get("/v1/sandboxes?state=all").json["sandboxes"] == []


def test_bodies_that_are_json_and_no_request(operator):
    for body in JSON:
        answer = operator("POST", "/v1/tokens", body)
        assert answer.status == 400 and answer.json["code"] != "http.json", (body[:60], answer)
    assert len(operator.get("/v1/tokens").json["tokens"]) == 1


def test_deep_and_wide_bodies_are_bounded(operator):
    for body in (b'{"labels":' + b"[" * 5000 + b"]" * 5000 + b"}", b'{"name": "' + b"a" * 9_000_000 + b'"}',
                 json.dumps({"labels": {f"k{i}": "v" for i in range(200_000)}}).encode(),
                 b'{"idle_timeout": ' + b"9" * 100_000 + b"}", b'{"idle_timeout": 1e400}'):
        answer = operator("POST", "/v1/sandboxes", body)
        assert answer.status == 400 and answer.json["code"] in ("http.json", "sandbox.request"), (body[:40], answer)


# --- size, time, order ------------------------------------------------------------------------------------------------

def test_huge_ones(daemon, operator):
    over = operator("POST", "/v1/sandboxes", b" " * (10 * 1024 * 1024 + 1))
    assert over.status == 413 and over.json["code"] == "http.body-too-large" and "10 MiB" in over.json["detail"], over
    with dial(daemon) as s:         # said before the body is there
        s.sendall(head(operator, "POST /v1/sandboxes HTTP/1.1", length=1 << 60))
        assert b" 413 " in read_all_head(s)
    with dial(daemon) as s:         # not said, and sent in pieces
        s.sendall(head(operator, "POST /v1/sandboxes HTTP/1.1", "Transfer-Encoding: chunked"))
        piece = b"10000\r\n" + b" " * 65536 + b"\r\n"
        try:
            for _ in range(200):
                s.sendall(piece)
            s.sendall(b"0\r\n\r\n")
        except ConnectionError:
            pass
        assert b" 413 " in read_all_head(s)
    for text in (b"GET /" + b"a" * 100_000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n",
                 b"GET /v1/health HTTP/1.1\r\nHost: localhost\r\nX: " + b"a" * 100_000 + b"\r\n\r\n",
                 b"GET /v1/health HTTP/1.1\r\nHost: localhost\r\n" + b"X: y\r\n" * 20_000 + b"\r\n"):
        with dial(daemon) as s:
            try:
                s.sendall(text)
            except ConnectionError:
                continue
            answer = read_all_head(s)
            assert answer == b"" or answer.split(b" ")[1] in (b"400", b"413", b"414", b"431"), answer


def read_all_head(s):
    got = b""
    try:
        while b"\r\n\r\n" not in got and (piece := s.recv(4096)):
            got += piece
    except ConnectionError:
        pass
    return got


BROKEN = [
    b"\r\n\r\n", b"\0" * 1000, b"GET\r\n\r\n", b"GET / HTTP/9.9\r\nHost: localhost\r\n\r\n", b"GET  HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"GET /v1/health HTTP/1.1\r\nHost : localhost\r\n\r\n", b"GET /v1/health HTTP/1.1\r\n Host: localhost\r\n\r\n",
    b"GET /v1/health HTTP/1.1\nHost: localhost\n\n", b"GET http://localhost/v1/health HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"GET /v1/%zz HTTP/1.1\r\nHost: localhost\r\n\r\n", b"GET /v1/health%00 HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"GET /../../etc/passwd HTTP/1.1\r\nHost: localhost\r\n\r\n", b"GET //v1/health HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"OPTIONS * HTTP/1.1\r\nHost: localhost\r\n\r\n", b"CONNECT a.example:443 HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"TRACE /v1/health HTTP/1.1\r\nHost: localhost\r\n\r\n", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"a" * 500,
    b"SSH-2.0-x\r\n", b"GET /v1/health HTTP/1.1\r\nHost: localhost\r\nHost: localhost\r\n\r\n",
    b"POST /v1/sandboxes HTTP/1.1\r\nHost: localhost\r\nContent-Length: -1\r\n\r\n",
    b"POST /v1/sandboxes HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999999999999999999999\r\n\r\n",
    b"POST /v1/sandboxes HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello",
    b"POST /v1/sandboxes HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\nContent-Length: 6\r\n\r\n0\r\n\r\nG",
    b"POST /v1/sandboxes HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", b"GET /v1/health HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0x5\r\n\r\n",
    b"POST /v1/sandboxes HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\n",
    b"GET /v1/health HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer " + b"\xff" * 300 + b"\r\n\r\n",
]


@impatient
def test_broken_ones_are_answered_or_ended(daemon):
    for text in BROKEN:
        with dial(daemon) as s:
            try:
                s.sendall(text)
                s.shutdown(socket.SHUT_WR)
            except OSError:         # it was faster
                pass
            codes = statuses(read_all(s))
            assert all(c in (200, 400, 401, 403, 404, 405, 413, 414, 431, 501, 505) for c in codes), (text[:80], codes)
    assert daemon.get("/v1/sandboxes?state=all").json["sandboxes"] == []


def test_truncated_at_every_byte_nothing_happens(daemon, operator):
    whole = head(operator, "POST /v1/sandboxes HTTP/1.1", "Content-Type: application/json", length=len(b'{"name": "cut"}')) + b'{"name": "cut"}'
    held = []
    for n in range(len(whole)):
        s = dial(daemon)
        s.sendall(whole[:n])
        if n % 2:
            s.close()               # some go, some stay
        else:
            held.append(s)
    assert operator.get("/v1/sandboxes?state=all").json["sandboxes"] == []
    for s in held:
        s.close()
    assert operator.get("/v1/sandboxes?state=all").json["sandboxes"] == []
    with dial(daemon) as s:
        s.sendall(whole)
        assert b" 201 " in read_all_head(s)


def test_piled_up_ones_are_answered_in_order(daemon, operator):
    box = operator.create(name="one")
    line = head(operator, "GET /v1/sandboxes/one HTTP/1.1")
    missing = head(operator, "GET /v1/sandboxes/none HTTP/1.1")
    last = head(operator, "GET /v1/sandboxes/one HTTP/1.1", "Connection: close")
    with dial(daemon) as s:
        s.sendall((line + missing) * 50 + last)
        text = read_all(s)
    codes = [int(c.split(b" ")[0]) for c in text.split(b"HTTP/1.1 ")[1:]]
    assert codes == [200, 404] * 50 + [200], codes
    assert text.count(box.id.encode()) >= 51
    command = json.dumps({"command": "echo $((6 * 7))"}).encode()
    run = head(operator, "POST /v1/sandboxes/one/exec HTTP/1.1", length=len(command)) + command
    with dial(daemon) as s:         # that has to wait in between
        s.sendall(run * 5 + last)
        assert read_all(s).count(b'"stdout":"42\\n"') == 5


def test_slow_ones_wait_alone(daemon, operator):
    """One byte and then nothing, of requests in every state; others are served meanwhile and the slow are let go."""
    box = operator.create()
    body = b'{"command": "echo late"}'
    whole = head(operator, f"POST {box.at}/exec HTTP/1.1", length=len(body)) + body
    slow = []
    for n in range(1, len(whole), 3):
        s = dial(daemon)
        s.sendall(whole[:n])
        slow.append(s)
    for _ in range(5):
        assert box.exec("echo on")["stdout"] == "on\n"
    for s in slow:
        read_all(s)                 # its end comes
        s.close()


def test_who_does_not_read_stops_nobody(daemon, operator):
    box = operator.create()
    assert box.put("big", os.urandom(8 << 20)).ok
    held = []
    for _ in range(20):
        s = dial(daemon)
        s.sendall(head(operator, f"GET {box.file('big')} HTTP/1.1"))
        held.append(s)
    streams = [dial(daemon) for _ in range(5)]
    command = json.dumps({"command": "yes"}).encode()
    for s in streams:
        s.sendall(head(operator, f"POST {box.at}/exec HTTP/1.1", "Accept: text/event-stream", length=len(command)) + command)
    assert box.exec("echo on")["stdout"] == "on\n" and operator.get(box.at).ok and daemon.get(box.at).ok
    for s in held + streams:
        s.close()
    assert wait_for(lambda: "yes" not in box.exec("ps -e -o comm= || cat /proc/[0-9]*/comm")["stdout"].split(), 60, every=0.2)


@impatient
def test_random_bytes(daemon):
    seed = int(os.environ.get("CLOCHE_TEST_SEED", "0")) or time.time_ns()
    print("seed", seed)
    chance = random.Random(seed)
    pieces = [b"GET ", b"POST ", b"/v1/health", b"/v1/sandboxes", b" HTTP/1.1\r\n", b"Host: localhost\r\n", b"\r\n", b"Content-Length: 7\r\n", b"\0", b"{", b"\xff" * 9,
              b"Transfer-Encoding: chunked\r\n", b"5\r\nabcde\r\n", b"0\r\n\r\n", b"Expect: 100-continue\r\n", b"Upgrade: websocket\r\nConnection: Upgrade\r\n", b"%", b":"]
    for _ in range(places.loops(300)):
        with dial(daemon) as s:
            try:
                s.sendall(b"".join(chance.choice(pieces) for _ in range(chance.randrange(1, 30))))
                if chance.random() < 0.5:
                    s.shutdown(socket.SHUT_WR)
                    read_all(s)
            except ConnectionError:
                pass


@pytest.mark.parametrize("members", [{}, {"reattach": True}])
def test_the_largest_of_all_texts_is_a_request_like_others(daemon, members):
    """Each is within its own ceiling; all together are within that of the question that the front makes of them."""
    labels, left = {}, 4096 - 1
    while left > 300:
        name = f"label{len(labels)}"
        labels[name] = "v" * min(200, left - 2 - len(name))
        left -= len(name) + 2 + len(labels[name])
    empty = len(json.dumps({"x": ""}, separators=(",", ":")))
    body = {"name": "n" * 63, "labels": labels, "workspace_key": "w" * 255, "volume": {"name": "v" * 255},
            "policy": {"x": "p" * (65536 - empty)}, **members}
    for who in (daemon, daemon.remote(daemon.token("agent"))):
        answer = who("POST", "/v1/sandboxes", body, {"Idempotency-Key": "k" * 64})
        assert 400 <= answer.status < 500 and answer.json["code"].startswith("policy."), answer


# --- memory -----------------------------------------------------------------------------------------------------------

def test_bodies_that_wait_leave_room_for_others(daemon, operator):
    """What one agent holds, by its token and by the keys of its sandboxes, is a share of what all may hold together."""
    agent = daemon.remote(daemon.token("agent"))
    held = []
    for _ in range(16):
        s = dial(daemon)
        held.append(s)
        s.settimeout(5)
        try:
            s.sendall(head(agent, "POST /v1/sandboxes HTTP/1.1", length=10 << 20) + b" " * ((10 << 20) - 1))
        except OSError:         # refused while it was sent
            pass
    answer = operator("POST", "/v1/sandboxes", b'{"name": "' + b"a" * 9_000_000 + b'"}')
    assert answer.status == 400 and answer.json["code"] == "sandbox.request", answer
    for s in held:
        s.close()


def ask_deaf(daemon, who, at, body, *more):
    """A client that reads nothing of its answer."""
    s = dial(daemon)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    text = json.dumps(body).encode()
    s.sendall(head(who, f"POST {at} HTTP/1.1", *more, length=len(text)) + text)
    return s


# What a command prints so often becomes six times as long in JSON.
CONTROL = "head -c 1048576 /dev/zero | tr '\\0' '\\1' | tee /dev/stderr"


def fill(daemon, agent, box):
    """Clients of the agent's that take nothing, until one is told that there is no room."""
    held = []
    for _ in range(60):
        held.append(ask_deaf(daemon, agent, f"{box.at}/exec", {"command": CONTROL}))
        first = held[-1].recv(15)
        if first != b"HTTP/1.1 200 OK":
            assert first == b"HTTP/1.1 503 Se", first
            return held
    return pytest.fail("there was room for all of it")


def test_answers_that_nobody_takes_leave_room_for_others(daemon, operator):
    """What waits for one agent's clients is bounded; above that it is told, and another one's large answer is whole."""
    agent, other = (daemon.remote(daemon.token("agent")) for _ in range(2))
    box, mine = agent.create(), other.create()
    fronts = daemon.processes("cloche-front")
    held = fill(daemon, agent, box)
    told = agent.post(f"{box.at}/exec", {"command": CONTROL})
    assert told.status == 503 and told.json["code"] == "http.busy", told
    assert agent.post(f"{box.at}/exec", {"command": "echo on"}).json["stdout"] == "on\n"
    assert mine.exec(CONTROL)["stdout"] == "\1" * 1048576
    assert daemon.processes("cloche-front") == fronts
    assert is_sanitized(daemon) or max(resident(pid) for pid in fronts) < 400 * 1024, [resident(pid) for pid in fronts]
    for s in held:
        s.close()
    assert wait_for(lambda: agent.post(f"{box.at}/exec", {"command": CONTROL}).ok, 60)


def test_a_stream_waits_for_room_that_its_caller_uses_up(daemon, operator):
    agent, other = (daemon.remote(daemon.token("agent")) for _ in range(2))
    box, mine = agent.create(), other.create()
    held = fill(daemon, agent, box)
    # until one of them is told nothing any more but that it began (one that is refused is told so sooner, also under load)
    while select.select([(one := box.stream(CONTROL)).connection.sock], [], [], 5)[0]:
        held.append(one)
        assert len(held) < 90
    assert sum(len(data["data"]) for name, data in mine.stream(CONTROL) if name == "stdout") == 1048576
    for s in held:
        s.close()
    last = list(one)[-1]
    assert last[0] == "exit" and not last[1]["stdout_truncated"], last


def test_what_was_missed_waits_for_room_that_its_caller_uses_up(daemon, operator):
    """Streams of the audit record, too: those that nobody reads are bounded, and who reads is told all when there is room."""
    agent = daemon.remote(daemon.token("agent"))
    box = agent.create()
    fronts, first = daemon.processes("cloche-front"), wait_for(lambda: agent.get(f"{box.at}/audit").json["entries"])
    since = first[0]["seq"]
    for i in range(300):
        assert box.put("x" * 200 + str(i), b"").ok
    held = fill(daemon, agent, box)
    for _ in range(100):
        held.append(dial(daemon))
        held[-1].sendall(head(agent, "GET /v1/audit/stream HTTP/1.1", f"Last-Event-ID: {since}", length=0))
    told = agent.connection()
    told.request("GET", "/v1/audit/stream", headers={**agent.credential(), "Last-Event-ID": str(since)})
    response = told.getresponse()
    assert response.status == 200 and operator.get("/v1/sandboxes").ok and daemon.processes("cloche-front") == fronts
    assert is_sanitized(daemon) or max(resident(pid) for pid in fronts) < 400 * 1024, [resident(pid) for pid in fronts]
    for s in held:
        s.close()
    seen = set()
    while "x" * 200 + "299" not in seen:
        line = response.readline()
        assert line
        if line.startswith(b"data: "):
            seen.add(json.loads(line[6:])["metadata"].get("path"))
    assert seen >= {"x" * 200 + str(i) for i in range(300)}
    told.close()


DEAF = """
import socket, threading
s = socket.create_server(('127.0.0.1', 8000), backlog=64)
open('listens', 'w').close()
held = []
while True:
    c, _ = s.accept(); held.append(c)
    while b'\\r\\n\\r\\n' not in c.recv(65536, socket.MSG_PEEK): pass
    c.sendall(b'HTTP/1.1 101 Switching Protocols\\r\\nConnection: Upgrade\\r\\nUpgrade: websocket\\r\\n\\r\\n')
"""


def deaf_tunnels(daemon, operator, n):
    """So many connections through a preview to a server that reads nothing."""
    box = operator.create()
    assert box.put("deaf.py", DEAF.encode()).ok
    assert box.exec("setsid python3 deaf.py >/dev/null 2>&1 </dev/null &")["exit_code"] == 0
    wait_for(lambda: box.read("listens").ok, 60)
    at = operator.post(f"{box.at}/ports", {"port": 8000}).json["path"]
    made = []
    for _ in range(n):
        made.append(dial(daemon))
        made[-1].setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
        made[-1].sendall(handshake(at))
        assert read_head(made[-1])[0].split()[1] == "101"
        made[-1].setblocking(False)
    return made


def test_what_no_server_of_a_preview_takes_leaves_room_for_others(daemon, operator):
    """Whoever has a preview's address has no credential: all of them together have one share of what waits."""
    agent = daemon.remote(daemon.token("agent"))
    held = fill(daemon, agent, agent.create())
    front = max(daemon.processes("cloche-front"), key=resident)
    tunnels = [t for _ in range(12) for t in deaf_tunnels(daemon, operator, 32)]
    before, idle = resident(front), 0
    while idle < 20:            # one second in which nothing more was taken
        idle += 1
        for t in tunnels:
            with contextlib.suppress(BlockingIOError):
                idle = 0 if t.send(b"x" * 65536) > 0 else idle
        time.sleep(0.05)
    grown = resident(front) - before
    assert is_sanitized(daemon) or grown < 26 * 1024, f"{grown} KiB"
    assert operator.create().exec(CONTROL)["stdout"] == "\1" * 1048576
    for s in (*held, *tunnels):
        s.close()


def test_bodies_of_many_values(operator):
    """A value of two bytes can be a hundred in memory."""
    answer = operator("POST", "/v1/sandboxes", json.dumps({"labels": [0] * 600_000}).encode())
    assert answer.status == 413 and answer.json["code"] == "http.body-too-large" and "values" in answer.json["error"], answer
    # those in a text are none
    answer = operator("POST", "/v1/sandboxes", json.dumps({"name": "[,{" * 600_000}).encode())
    assert answer.status == 400, answer


def test_who_has_no_credential_says_little(daemon):
    for n, statuses_ in ((8193, (413,)), (8192, (400, 403, 404, 422))):
        answer = daemon.remote().post("/approvals/x", b"a" * n)
        assert answer.status in statuses_, (n, answer)
        assert answer.status != 413 or answer.json["detail"] == "a body that comes without a credential has at most 8 KiB"
    with dial(daemon) as s:         # said before the body is there
        s.sendall(head(daemon.remote(), "POST /approvals/x HTTP/1.1", length=8193))
        assert b" 413 " in read_all_head(s)
    with dial(daemon) as s:         # not said, and sent in pieces
        s.sendall(head(daemon.remote(), "POST /approvals/x HTTP/1.1", "Transfer-Encoding: chunked") +
                  3 * (b"1000\r\n" + b"a" * 4096 + b"\r\n") + b"0\r\n\r\n")
        assert b"at most 8 KiB" in s.recv(65536)


def test_a_result_that_nobody_takes_is_not_looked_at_all_the_time(daemon, operator):
    """Its sandbox has ended, what it said before waits for the client, and the front waits too."""
    box = operator.create(policy={"limits": {"output": "100m"}})
    stream = box.stream("yes")
    assert next(stream)[0] == "stdout"
    time.sleep(1)       # what lies between the two fills
    assert box.delete().ok
    fronts = daemon.processes("cloche-front")
    before = [ticks(pid) for pid in fronts]
    time.sleep(3)
    assert sum(ticks(pid) - was for pid, was in zip(fronts, before)) < 1.5
    stream.close()
