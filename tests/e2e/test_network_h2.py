"""HTTP/2 where TLS is opened: real clients, many streams, each decided on by itself; secrets go in and do not come out."""
import hashlib
import json
import shutil
import subprocess

import pytest

from helpers import golang, requirement
from helpers.h2 import CLIENT, HOST, Far, field, needs, start
from helpers.internet import NO_PROXY_VARIABLES, PRELUDE
from helpers.runner import wait_for
from helpers.vaulted import BUNDLE, OK, VALUE, denied, fields, only_request

pytestmark = [requirement("R13", "R14", "R16"), pytest.mark.root]
way = pytest.mark.parametrize("transparent", [False, True], ids=["proxy", "transparent"])
GRPC = "grpc.example.org"


# --- clients ----------------------------------------------------------------------------------------------------------

@way
def test_curl(opened, transparent):
    result = opened.sh("curl -sS --max-time 40 -w ' %{http_version}' -H \"Authorization: Bearer $TOK\" "
                       f"https://{HOST}/mirror; echo; echo $TOK", transparent, allow=(HOST,))
    placeholder = result.out.strip().rsplit("\n", 1)[-1]
    assert result.ok and " 2\n" in result.out and VALUE not in result.out, result
    assert f"authorization: Bearer {placeholder}" in result.out
    assert field(opened.far.requests[0], "authorization") == [f"Bearer {VALUE}"]


def test_curl_that_speaks_http1_only_meets_a_server_that_does_not(opened):
    """Nothing is translated: the server is offered what the client speaks."""
    result = opened.sh(f"curl -sS -i --http1.1 https://{HOST}/x", allow=(HOST,))
    assert "HTTP/1.1 502" in result.out and not opened.far.requests, result


def test_a_server_without_http2_is_spoken_to_as_before(h2):
    result = h2.secret().sh("curl -sS -w ' %{http_version}' --http2 -H \"Authorization: Bearer $TOK\" https://ok.example.org/x")
    assert result.out.endswith(" 1.1"), result
    assert fields(only_request(h2.net), "authorization") == [f"Bearer {VALUE}"]


def test_python_httpx(opened):
    needs("httpx", "h2")
    result = opened.run(["/usr/bin/python3", "-c", f"""
import httpx, os
with httpx.Client(http2=True) as c:
    r = c.post('https://{HOST}/mirror', headers={{'Authorization': 'Bearer ' + os.environ['TOK']}}, content=b'x' * 100000)
    print(r.http_version, r.status_code, len(r.content) > 100000)
    print(c.get('https://{HOST}/second').text)"""], allow=(HOST,))
    assert result.out == f"HTTP/2 200 True\nhello {HOST} /second\n\n", result
    assert field(opened.far.requests[0], "authorization") == [f"Bearer {VALUE}"]
    assert opened.far.requests[0]["size"] == 100000 and len(opened.far.events("open")) == 1


NODE = """
const h2 = require('http2'), fs = require('fs');
const s = h2.connect('https://%s', {ca: fs.readFileSync(process.env.SSL_CERT_FILE)});
s.on('error', e => console.log('session', e.code));
function ask(path, body) {
  return new Promise(done => {
    const r = s.request({':path': path, ':method': body ? 'POST' : 'GET', authorization: 'Bearer ' + process.env.TOK});
    let status, text = '', trailers = {};
    r.on('response', h => status = h[':status']); r.on('trailers', t => trailers = t);
    r.on('error', e => done(['error', e.code])); r.setEncoding('latin1');
    r.on('data', d => text += d); r.on('close', () => done([status, text, trailers]));
    if (body) r.write(body); r.end();
  });
}
"""


def node(opened, code, **kw):
    return opened.run(["/usr/bin/env", *NO_PROXY_VARIABLES, "/usr/bin/node", "-e", NODE % HOST + code], allow=(HOST,), **kw)


def test_node_with_a_hundred_streams(opened, has):
    has("node")
    result = node(opened, """
(async () => {
  const all = await Promise.all([...Array(100).keys()].map(i => i % 2 ? ask('/n' + i) : ask('/mirror?' + i, 'b'.repeat(i * 300))));
  console.log(all.every(([status], i) => status == 200), all.every(([, text], i) => i % 2 ? text.includes('/n' + i + '\\n')
              : text.endsWith('b'.repeat(i * 300)) && text.includes('/mirror?' + i + '\\n')));
  s.close();
})()""")
    assert result.out == "true true\n" and VALUE not in result.out, result
    assert len(opened.far.requests) == 100 and len(opened.far.events("open")) == 1
    assert all(field(r, "authorization") == [f"Bearer {VALUE}"] for r in opened.far.requests)


def test_node_trailers(opened, has):
    has("node")
    result = node(opened, "ask('/trailers').then(r => { console.log(JSON.stringify(r)); s.close(); })")
    status, text, trailers = json.loads(result.out)
    assert (status, text, trailers["grpc-status"]) == (200, "body of it\n", "0"), result
    assert trailers["grpc-message"].startswith("for ") and VALUE not in result.out, result


GO = """package main
import ("fmt"; "io"; "net/http"; "os"; "strings")
func main() {
    for _, url := range os.Args[1:] {
        r, _ := http.NewRequest("POST", url, strings.NewReader(strings.Repeat("y", 70000)))
        r.Header.Set("Authorization", "Bearer " + os.Getenv("TOK"))
        answer, err := http.DefaultClient.Do(r)
        if err != nil { fmt.Println("error:", err); continue }
        body, _ := io.ReadAll(answer.Body)
        fmt.Println(answer.Proto, answer.StatusCode, len(body) > 70000, answer.Trailer.Get("X-Sum") != "")
    }
}
"""


def test_go(opened):
    shutil.copy(golang.program(GO), opened.net.root / "h2fetch")        # where the sandbox's user may read it
    result = opened.run(["/usr/bin/env", *NO_PROXY_VARIABLES, "/mnt/fetch", f"https://{HOST}/mirror"], allow=(HOST,),
                        flags=["--bind", f"{opened.net.root}/h2fetch:/mnt/fetch"])
    assert result.out == "HTTP/2.0 200 true false\n", result
    assert field(opened.far.requests[0], "authorization") == [f"Bearer {VALUE}"]


# --- gRPC -------------------------------------------------------------------------------------------------------------

@pytest.fixture
def grpc(online, command, tmp_path):
    needs("grpc")
    made = start(online, command, tmp_path)
    made.far.finish()
    made.far = Far(online.net, command, tmp_path / "grpc.log", "grpc_server.py", GRPC, 9444)
    yield made.secret(host=GRPC)
    made.far.finish()


GRPC_CLIENT = f"""
import grpc, os
tok = (('authorization', 'Bearer ' + os.environ['TOK']),)
channel = grpc.secure_channel('{GRPC}:443', grpc.ssl_channel_credentials(),
    options=[('grpc.max_receive_message_length', 64 << 20)])
unary = channel.unary_unary('/test.Echo/Unary')
"""


@way
def test_grpc(grpc, transparent):
    """The library finds the CA by its own variable, and goes straight or through the proxy."""
    straight = ["/usr/bin/env", *NO_PROXY_VARIABLES] if transparent else []
    result = grpc.run([*straight, "/usr/bin/python3", "-c", GRPC_CLIENT + """
answer, call = unary.with_call(b'hello', metadata=tok, timeout=40)
print(answer == b'got hello from Bearer ' + os.environ['TOK'].encode(), dict(call.trailing_metadata())['x-said'] == tok[0][1])
both = channel.stream_stream('/test.Echo/Both')
import queue
asked = queue.Queue()
answers = both(iter(asked.get, None), metadata=tok, timeout=40)
for i in range(20):         # each answer before the next question
    asked.put(b'%d' % i)
    assert next(answers) == b'echo %d' % i
asked.put(None)
print(list(answers), answers.code())
try: channel.unary_unary('/test.Echo/Fails')(b'x', metadata=tok, timeout=40)
except grpc.RpcError as e: print(e.code(), e.details() == 'not ' + tok[0][1])
big = os.urandom(3 << 20)
print(channel.unary_unary('/test.Echo/Large')(big, metadata=tok, timeout=60) == big * 2)
many = [unary.future(b'm%d' % i, metadata=tok, timeout=40) for i in range(100)]
print(all(f.result().startswith(b'got m') for f in many))
"""], allow=(GRPC,))
    assert result.out == ("True True\n[] StatusCode.OK\nStatusCode.FAILED_PRECONDITION True\nTrue\nTrue\n"), result
    assert VALUE not in result.out + result.err
    assert {dict(r["metadata"])["authorization"] for r in grpc.far.lines()} == {f"Bearer {VALUE}"}
    assert len(grpc.far.lines()) == 104


def test_grpc_that_is_refused(grpc, project, tmp_path):
    """gRPC reads a 403 as what it is; the other method goes on, on the same connection."""
    settings = project / "rules.json"
    settings.write_text(json.dumps({"network": {"allow": [{"host": GRPC, "port": 443, "path": "/test.Echo/Unary"}]}}))
    result = grpc.run(["/usr/bin/python3", "-c", GRPC_CLIENT + """
print(unary(b'a', timeout=40)[:5])
try: channel.unary_unary('/test.Echo/Large')(b'x', timeout=40)
except grpc.RpcError as e: print(e.code())
print(unary(b'b', timeout=40)[:5])
"""], allow=(), flags=["--settings", settings, "--report", str(tmp_path / "report.json")])
    assert result.out == "b'got a'\nStatusCode.PERMISSION_DENIED\nb'got b'\n", result
    assert [r["method"] for r in grpc.far.lines()] == ["Unary", "Unary"]
    assert any(d["target"] == f"{GRPC}:443" for d in denied(tmp_path)), denied(tmp_path)


def test_grpc_with_a_bad_server(online, command, tmp_path):
    """A client that speaks nothing but HTTP/2 is told too."""
    needs("grpc")
    host = "expired.example.org"
    made = start(online, command, tmp_path)
    made.far.finish()
    result = made.secret(host=host).run(["/usr/bin/python3", "-c", GRPC_CLIENT.replace(GRPC, host) + """
try: unary(b'x', timeout=40)
except grpc.RpcError as e: print(e.code(), e.details())
"""], allow=(host,), flags=["--report", str(tmp_path / "report.json")])
    assert "StatusCode.UNAVAILABLE" in result.out and "502" in result.out, result
    assert {"target": f"{host}:443", "rule": "upstream-cert-expired"}.items() <= denied(tmp_path)[0].items()


def test_a_client_of_http2_only_and_a_server_without_it(h2, tmp_path):
    result = h2.secret().client(f"""
c = Client({OK!r}, alpn=['h2'])
g = c.get('/x'); print(c.alpn, g['status'], g['head']['x-cloche-denied'], g['body'].decode())
c.wait(done=lambda: c.goaway is not None); print(c.goaway)
""", allow=(OK,), flags=["--report", str(tmp_path / "report.json")])
    assert result.out.startswith("h2 502 upstream-no-h2 cloche: ok.example.org:443: upstream-no-h2: "), result
    assert result.out.endswith("\n0\n") and not h2.net.requests, result
    assert any(d["rule"] == "upstream-no-h2" for d in denied(tmp_path))


# --- each stream by itself ----------------------------------------------------------------------------------------------

@pytest.fixture
def ruled(h2, project):
    """GET below /v1 of the host, and nothing else: no secret is needed to have that looked at."""
    settings = project / "rules.json"
    settings.write_text(json.dumps({"network": {"allow": [
        {"host": HOST, "port": 443, "methods": ["GET", "POST"], "path": "/v1/**"}]}}))
    h2.flags += ["--settings", settings]
    return h2


def test_rules_on_one_connection(ruled, tmp_path):
    result = ruled.client("""
c = Client()
streams = [c.ask('/v1/a'), c.ask('/v2/b'), c.ask('/v1/c', method='DELETE'), c.ask('/v1/d', method='POST', body=b'x'),
           c.ask('/v1/../v2/e'), c.ask('/v1/f')]
print([g['status'] for g in c.wait(*streams)])
no = c.got[streams[1]]
print(no['head']['x-cloche-denied'], no['head']['content-type'], no['body'].decode())
""", allow=(), flags=["--report", str(tmp_path / "report.json")])
    lines = result.out.split("\n")
    assert lines[0] == "[200, 403, 403, 200, 403, 200]", result
    assert lines[1].startswith(f"scope-no-rule text/plain; charset=utf-8 cloche: {HOST}:443: "), result
    assert ruled.far.paths() == ["/v1/a", "/v1/d", "/v1/f"] and len(ruled.far.events("open")) == 1
    assert len(denied(tmp_path)) >= 1


def test_a_refusal_reads_as_in_http1(h2, project):
    """Field by field, but for those that HTTP/1.1 alone has."""
    settings = project / "rules.json"
    settings.write_text(json.dumps({"network": {"allow": [{"host": h, "port": 443, "path": "/v1"} for h in (HOST, OK)]}}))
    h2.flags += ["--settings", settings]
    texts = [h2.run(["/usr/bin/curl", "-sS", "-i", "--suppress-connect-headers", f"https://{h}/x"], allow=()).out for h in (HOST, OK)]
    heads, bodies = zip(*(t.split("\r\n\r\n", 1) for t in texts))
    assert heads[0].startswith("HTTP/2 403") and heads[1].startswith("HTTP/1.1 403 Forbidden"), texts
    assert bodies[0] == bodies[1].replace(OK, HOST) and bodies[0].startswith(f"cloche: {HOST}:443: "), texts
    rows = [{tuple(x.lower().split(": ")) for x in h.split("\r\n")[1:] if not x.lower().startswith(("connection", "content-length"))}
            for h in heads]
    assert rows[0] == rows[1] and ("x-cloche-denied", "scope-no-rule") in rows[0], rows


def test_a_stream_that_is_asked_about_waits_and_the_others_go_on(ruled):
    process = ruled.online.popen(["/usr/bin/python3", "-I", "-c", PRELUDE.replace("/mnt/ca.pem", BUNDLE) + CLIENT + """
c = Client()
waits = [c.ask('/v2/a'), c.ask('/v2/b')]
print([c.get('/v1/%d' % i)['status'] for i in range(3)], flush=True)
print(c.wait(waits[1])[0]['status'], flush=True)
print([g['status'] for g in c.wait(*waits)], c.get('/v1/3')['status'], flush=True)
"""], allow=(), flags=[*ruled.flags, "--ask"], env=ruled.env)
    assert process.stdout.readline() == b"[200, 200, 200]\n", process.communicate()
    found = {q["path"]: q for q in ruled.online.bare("approvals", "--json").json["questions"]}
    assert sorted((q["host"], q["port"], q["path"]) for q in found.values()) == [(HOST, 443, "/v2/a"), (HOST, 443, "/v2/b")], found
    assert ruled.far.paths() == ["/v1/0", "/v1/1", "/v1/2"]
    # each by itself: a yes to one is none to the other
    assert ruled.online.bare("approvals", "approve", found["/v2/b"]["id"]).ok
    assert process.stdout.readline() == b"200\n", process.communicate()
    assert [q["path"] for q in ruled.online.bare("approvals", "--json").json["questions"]] == ["/v2/a"]
    assert ruled.online.bare("approvals", "deny", found["/v2/a"]["id"]).ok
    assert process.stdout.readline() == b"[403, 200] 200\n", process.communicate()
    process.communicate()
    assert ruled.far.paths()[3:] == ["/v2/b", "/v1/3"]


def test_a_stream_that_is_asked_about_and_denied(ruled):
    process = ruled.online.popen(["/usr/bin/python3", "-I", "-c", PRELUDE.replace("/mnt/ca.pem", BUNDLE) + CLIENT + """
c = Client()
waits = [c.ask('/v2/a'), c.ask('/v2/b', method='POST', body=b'x' * 1000)]
print(c.get('/v1/x')['status'], flush=True)
print([(g['status'], g['head']['x-cloche-denied']) for g in c.wait(*waits)], c.get('/v1/y')['status'], flush=True)
"""], allow=(), flags=[*ruled.flags, "--ask"], env=ruled.env)
    assert process.stdout.readline() == b"200\n", process.communicate()
    found = ruled.online.bare("approvals", "--json").json["questions"]
    assert len(found) == 2 and all(ruled.online.bare("approvals", "deny", q["id"]).ok for q in found), found
    assert process.stdout.readline() == b"[(403, 'ask-denied'), (403, 'ask-denied')] 200\n", process.communicate()
    process.communicate()
    assert ruled.far.paths() == ["/v1/x", "/v1/y"]


def test_a_body_that_is_refused_is_stopped(ruled):
    """The answer comes at once; the client is told to stop sending, and its connection goes on."""
    result = ruled.client("""
c = Client()
n = c.ask('/v2/upload', method='POST', end=False)
c.wait(done=lambda: c.got[n]['ended'] and c.got[n]['reset'] is not None)
print(c.got[n]['status'], c.got[n]['reset']); print(c.get('/v1/next')['status'])
""", allow=())
    assert result.out == "403 0\n200\n", result


# --- bodies ---------------------------------------------------------------------------------------------------------------

def test_large_bodies_both_ways(opened):
    result = opened.sh(f"head -c 30000000 /dev/zero | curl -sS -T - https://{HOST}/sum; "
                       f"curl -sS https://{HOST}/bytes/20000000 | sha256sum", allow=(HOST,))
    want = hashlib.sha256(hashlib.shake_128(b"20000000").digest(20000000)).hexdigest()
    assert result.out == f"30000000 {hashlib.sha256(bytes(30000000)).hexdigest()}\n{want}  -\n", result


def test_large_bodies_through_the_search(h2):
    """With a secret that may be in bodies every byte is looked at, in either direction."""
    h2.secret(host=HOST, place=("body", "bearer"))
    result = h2.client("""
import hashlib
t, c = os.environ['TOK'].encode(), Client()
body = (b'0123456789abcdef' * 999 + t) * 100
n = c.ask('/echo', (('authorization', 'Bearer ' + t.decode()),), 'POST', end=False)
left = body
while left or not c.got[n]['ended']:
    while left and c.c.local_flow_control_window(n) > 0:
        k = min(c.c.local_flow_control_window(n), 16384, len(left))
        c.c.send_data(n, left[:k], end_stream=k == len(left)); left = left[k:]
    c.send(); c.step()
    assert not c.over
print(c.got[n]['body'] == body, len(body), c.got[n]['trailers']['x-sum'])
""")
    body = (b"0123456789abcdef" * 999 + VALUE.encode()) * 100
    assert result.out == f"True {len(body)} {hashlib.sha256(body[:1 << 20]).hexdigest()}\n", result


def test_both_directions_at_once(opened):
    result = opened.client("""
c = Client()
n = c.ask('/echo', method='POST', end=False)
for i in range(50):
    c.c.send_data(n, b'piece %d;' % i); c.send()
    c.wait(done=lambda: c.got[n]['body'].endswith(b'piece %d;' % i))     # its echo before the next one
c.c.end_stream(n); c.send()
g = c.wait(n)[0]; print(g['status'], g['body'].count(b';'), g['trailers']['x-sum'][:8])
""")
    sum8 = hashlib.sha256(b"".join(b"piece %d;" % i for i in range(50))).hexdigest()[:8]
    assert result.out == f"200 50 {sum8}\n", result


def test_a_stream_that_nobody_reads_holds_up_no_other(opened):
    result = opened.client("""
c = Client()
slow = c.ask('/bytes/5000000')
# never read: its window stays shut, but the connection's is given back
n = 0
class Shut(dict): pass
take = c.take
def hold(e):
    global n
    if type(e).__name__ == 'DataReceived' and e.stream_id == slow:
        n += len(e.data); c.c.increment_flow_control_window(e.flow_controlled_length); return
    take(e)
c.take = hold
for i in range(20): print(c.get('/bytes/100000')['body'] == __import__('hashlib').shake_128(b'100000').digest(100000), end=' ')
print(n <= 65535)
""")
    assert result.out == "True " * 20 + "True\n", result


def test_request_trailers(opened):
    result = opened.client("""
c = Client()
print(c.get('/x', method='POST', body=b'data', trailers=[('x-check', 'sum')])['status'])
""")
    assert result.out == "200\n" and opened.far.requests[0]["trailers"] == [["x-check", "sum"]], opened.far.requests


def test_interim_answers_pass_without_their_fields(opened):
    result = opened.client("""
g = Client().get('/early-hints', (('authorization', 'Bearer ' + os.environ['TOK']),))
print(g['status'], g['early'], g['body'])
""")
    assert result.out == "200 [{':status': '103'}] b'after hints\\n'\n", result


def test_head_and_empty_answers(opened):
    result = opened.client("""
c = Client()
g = c.get('/bytes/100', method='HEAD'); print(g['status'], g['reset'])
g = c.get('/bytes/0'); print(g['status'], g['body'], g['ended'])
g = c.get('/only-trailers'); print(g['status'], g['head']['grpc-status'])
""")
    assert result.out.endswith("200 b'' True\n200 5\n"), result


@pytest.mark.parametrize("code", [2, 8, 11])
def test_a_reset_passes_with_its_code(opened, code):
    result = opened.client(f"""
c = Client()
n, other = c.ask('/reset/{code}'), c.ask('/x')
c.wait(n, other); print(c.got[n]['reset'], c.got[other]['status'])
n = c.ask('/hang'); c.c.reset_stream(n, {code}); c.send(); print(c.get('/last')['status'])
""")
    assert result.out == f"{code} 200\n200\n", result
    # it may still be on its way
    assert wait_for(lambda: [e["code"] for e in opened.far.events("reset")] in ([code], []))


def test_a_client_that_gives_up_is_known_upstream(opened):
    result = opened.client("""
c = Client()
n = c.ask('/hang', method='POST', body=b'x'); c.get('/sync')
c.c.reset_stream(n, 8); c.send(); print(c.get('/after')['status'])
""")
    assert result.out == "200\n", result
    assert wait_for(lambda: [(e["path"], e["code"]) for e in opened.far.events("reset")] == [("/hang", 8)])


def test_goaway_passes(opened):
    """What is under way ends; the client learns that the next request needs another connection."""
    result = opened.client("""
c = Client()
n = c.ask('/goaway'); g = c.wait(n)[0]; print(g['status'], g['body'])
c.wait(done=lambda: c.goaway is not None); print(c.goaway)
print(Client().get('/again')['status'])
""")
    assert result.out == "200 b'the last\\n'\n0\n200\n", result
    assert len(opened.far.events("open")) == 2


def test_a_server_that_goes_away(opened):
    result = opened.client("""
c = Client()
hang, cut = c.ask('/hang'), c.ask('/cut')
for g in c.wait(hang, cut): print(g['status'], g['head'].get('x-cloche-denied'))
""")
    assert result.out == "502 unreachable\n" * 2, result


# --- secrets ----------------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("place,ask,where", [
    ("header X-Api-Key", "c.ask('/p', (('x-api-key', t),))", lambda r: field(r, "x-api-key") == [VALUE]),
    ("query key", "c.ask('/p?a=1&key=' + t)", lambda r: r["path"] == f"/p?a=1&key={VALUE}"),
    ("cookie sid", "c.ask('/p', (('cookie', 'a=b'), ('cookie', 'sid=' + t)))",
     lambda r: field(r, "cookie") == [f"a=b; sid={VALUE}"]),
    ("body", "c.ask('/p', method='POST', body=('k=' + t).encode())", lambda r: r["body"] == f"k={VALUE}"),
])
def test_places(h2, place, ask, where):
    h2.secret(host=HOST, place=place)
    result = h2.client(f"c, t = Client(), os.environ['TOK']; print(c.wait({ask})[0]['status'])")
    assert result.out == "200\n" and where(h2.far.requests[0]), (result, h2.far.requests)


@pytest.mark.parametrize("path", ["/mirror", "/gzip", "/trailers", "/only-trailers", "/typed", "/early-hints"])
def test_no_answer_brings_the_value(opened, path):
    result = opened.client(f"""
g = Client().get({path!r}, (('authorization', 'Bearer ' + os.environ['TOK']), ('accept-encoding', 'gzip')))
print(g['status'], g); print(os.environ['TOK'])
""")
    assert result.out.startswith("200") and VALUE not in result.out, result
    placeholder = result.out.strip().rsplit("\n", 1)[-1]
    assert path == "/early-hints" or result.out.count(placeholder) >= 2, result
    assert field(opened.far.requests[0], "authorization") == [f"Bearer {VALUE}"]


def test_what_is_stored_is_no_grpc(opened):
    """Who calls the request gRPC, and chose the type of what is stored, does not say by that where the search ends."""
    result = opened.client("""
grpc = (('content-type', 'application/grpc'), ('te', 'trailers'), ('authorization', 'Bearer ' + os.environ['TOK']))
g = Client().get('/typed', grpc, method='POST', body=bytes(5))
print(g['status'], g['body'].split(b'it is ')[-1].decode('latin-1')); print(os.environ['TOK'])
""")
    said, placeholder = result.out.strip().split("\n")
    assert said == f"200 {placeholder}!" and VALUE not in result.out, result


def test_a_fresh_lease_for_each_stream(opened):
    result = opened.client("""
c = Client()
t = (('authorization', 'Bearer ' + os.environ['TOK']),)
g = c.wait(*[c.ask('/mirror?%d' % i, t if i % 2 else ()) for i in range(60)])
print(all(x['status'] == 200 for x in g), sum(os.environ['TOK'].encode() in x['body'] for x in g))
""")
    assert result.out == "True 30\n", result
    assert sorted(field(r, "authorization") == [f"Bearer {VALUE}"] for r in opened.far.requests) == [False] * 30 + [True] * 30
    log = opened.online.bare("net", "log", "--json").json["decisions"]
    # each said once in a connection's life: it was put into requests, and kept out of answers
    assert sorted((d["verdict"], d.get("reason", ""), d["count"]) for d in log if d.get("secret") == "TOK") == [
        ("allow", "", 1), ("allow", "secret-scrubbed", 1)], log


@way
def test_revoking_ends_the_connection(opened, transparent):
    straight = ["/usr/bin/env", *NO_PROXY_VARIABLES] if transparent else []
    code = PRELUDE.replace("/mnt/ca.pem", BUNDLE) + CLIENT + """
c = Client()
print(c.get('/r', (('authorization', 'Bearer ' + os.environ['TOK']),))['status'], flush=True)
try: c.to_end(); print('ended', flush=True)
except OSError: print('timeout', flush=True)
"""
    process = opened.online.popen([*straight, "/usr/bin/python3", "-I", "-c", code], allow=(HOST,), flags=opened.flags,
                                  env=opened.env, stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "200\n", process.communicate()
    assert opened.online.bare("secret", "revoke", "TOK", env=opened.env).ok
    assert process.stdout.readline() == "ended\n"
    process.communicate()
