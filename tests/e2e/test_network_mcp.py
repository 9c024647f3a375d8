"""Rules about the tools of a remote MCP server: what is not allowed does not get there, however it is said."""
import json
import os
import subprocess
from pathlib import Path

import pytest

from helpers import pypi, requirement
from helpers.h2 import CLIENT as H2CLIENT
from helpers.h2 import HOST
from helpers.internet import PRELUDE
from helpers.runner import wait_for
from helpers.vaulted import BUNDLE, OK, VALUE, Vaulted, denied, fields

pytestmark = [requirement("R13", "R14", "R85")]
MCP = {"path": "/mcp", "mcp": {"tools": ["read_*", "search"]}}


def call(tool, **more):
    return json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": tool, "arguments": {}}, **more})


def write(project, allow, deny=()):
    path = project / "rules.json"
    path.write_text(json.dumps({"network": {"allow": list(allow), "deny": list(deny)}}), encoding="utf-8")
    return ["--settings", path]


# --- settings, why ----------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("rule,code,words", [
    ({"mcp": {"tools": ["a"]}}, "policy.rule.mcp", ["no path"]),
    ({"path": "/mcp", "mcp": {}}, "policy.rule.mcp", ["names no tool"]),
    ({"path": "/mcp", "mcp": {"tools": []}}, "policy.rule.mcp", ["network.allow[0].mcp.tools"]),
    ({"path": "/mcp", "mcp": {"tools": ["a"] * 33}}, "policy.rule.mcp", ["33"]),
    ({"path": "/mcp", "mcp": {"tools": ["a b"]}}, "policy.rule.mcp", ["network.allow[0].mcp.tools[0]", "a b"]),
    ({"path": "/mcp", "mcp": {"tools": ["a" * 129]}}, "policy.rule.mcp", []),
    ({"path": "/mcp", "mcp": {"tools": "a"}}, "policy.type", ["network.allow[0].mcp.tools"]),
    ({"path": "/mcp", "mcp": {"tools": [1]}}, "policy.type", []),
    ({"path": "/mcp", "mcp": ["a"]}, "policy.type", ["network.allow[0].mcp"]),
    ({"path": "/mcp", "mcp": {"tool": ["a"]}}, "policy.unknown-key", ["tools"]),
], ids=lambda v: json.dumps(v)[:40])
def test_what_is_no_rule_is_refused(cloche, project, rule, code, words):
    result = cloche("policy", "check", write(project, [{"host": OK, **rule}])[1])
    assert result.code == 125 and f"[{code}]" in result.err and all(w in result.err for w in words), result


def test_yaml_and_show(cloche, project):
    path = project / "rules.yaml"
    path.write_text("network:\n  allow:\n    - {host: mcp.example.org, path: /mcp, mcp: {tools: ['read_*', search]}}\n"
                    "  deny:\n    - {host: mcp.example.org, mcp: {tools: [read_secret]}}\n", encoding="utf-8")
    assert cloche("policy", "check", path).ok
    network = cloche("policy", "show", "--json", "--settings", path).json["network"]
    assert network["allow"][0]["mcp"] == {"tools": ["read_*", "search"]} and network["allow"][0]["path"] == "/mcp"
    assert network["deny"][0]["mcp"] == {"tools": ["read_secret"]} and "path" not in network["deny"][0]
    assert "mcp.example.org /mcp mcp:read_*,search" in cloche("policy", "show", "--settings", path).out


@pytest.mark.parametrize("words,allowed,reason", [
    ([], True, "allow-domain"),
    (["--tool", "read_file", "--url-path", "/mcp"], True, "allow-domain"),
    (["--tool", "write_file", "--url-path", "/mcp"], False, "mcp-no-rule"),
    (["--tool", "read_secret", "--url-path", "/mcp"], False, "deny-domain"),
    (["--tool", "read file", "--url-path", "/mcp"], False, "mcp-body"),
    (["--tool", "read_file", "--method", "GET", "--url-path", "/mcp"], False, "mcp-body"),
    (["--tool", "read_file"], False, "scope-no-rule"),
    (["--method", "POST", "--url-path", "/mcp"], True, "allow-domain"),
    (["--method", "PUT", "--url-path", "/mcp"], False, "scope-no-rule"),
], ids=lambda v: "-".join(v) if isinstance(v, list) else str(v))
def test_why(cloche, project, words, allowed, reason):
    flags = write(project, [{"host": OK, **MCP}], [{"host": OK, "mcp": {"tools": ["read_secret"]}}])
    result = cloche("why", "--host", OK, *words, *flags, "--json")
    assert (result.code, result.json["reason"]) == (0 if allowed else 1, reason), result
    assert result.json.get("tool") == (words[1] if words[:1] == ["--tool"] else None)
    if reason == "allow-domain" and words[:1] != ["--tool"]:
        assert ("--tool" in result.json["text"]) == bool(words), result


# --- runs -------------------------------------------------------------------------------------------------------------

# name, request line, fields, body (and how long it is made with blanks), what is answered
J = "Content-Type: application/json\r\n"
LIST = json.dumps({"jsonrpc": "2.0", "id": 2, "method": "tools/list"})
DOUBLE = '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"read_a","name":"write_a"}}'
FOLDED = '{"jsonrpc":"2.0","id":1,"method":"tools/list","Method":"tools/call","params":{"name":"write_a"}}'
REQUESTS = [
    ("list", "POST /mcp", J, LIST, "200"),
    ("allowed", "POST /mcp", J, call("read_file"), "200"),
    ("fields", "POST /mcp", J + "Mcp-Method: tools/call\r\nMcp-Name: search\r\n", call("search"), "200"),
    ("answer", "POST /mcp", J, '{"jsonrpc":"2.0","id":1,"result":{}}', "200"),
    ("stream", "GET /mcp", "Accept: text/event-stream\r\n", "", "200"),
    ("end", "DELETE /mcp", "", "", "200"),
    ("other", "POST /mcp", J, call("write_file"), "mcp-no-rule"),
    ("prefix", "POST /mcp", J, call("xread_file"), "mcp-no-rule"),
    ("batch", "POST /mcp", J, f"[{call('write_file')}]", "mcp-body"),
    ("two", "POST /mcp", J, call("read_file") + call("write_file"), "mcp-body"),
    ("line", "POST /mcp", J, '{"jsonrpc":"2.0","method":"tools/list","params":{"x":\n' + call("write_file") + "\n}}", "mcp-body"),
    ("double", "POST /mcp", J, DOUBLE, "mcp-body"),
    ("folded", "POST /mcp", J, FOLDED, "mcp-body"),
    ("bom", "POST /mcp", J, "\ufeff" + call("read_file"), "mcp-body"),
    ("no-json", "POST /mcp", J, "hello", "mcp-body"),
    ("empty", "POST /mcp", J, "", "mcp-body"),
    ("type", "POST /mcp", "Content-Type: text/plain\r\n", call("read_file"), "mcp-body"),
    ("gzip", "POST /mcp", J + "Content-Encoding: gzip\r\n", call("read_file"), "mcp-body"),
    ("method-field", "POST /mcp", J + "Mcp-Method: tools/call\r\n", LIST, "mcp-body"),
    ("name-field", "POST /mcp", J + "Mcp-Name: write_file\r\n", call("read_file"), "mcp-body"),
    ("underscore", "POST /mcp", J + "Mcp_Name: write_file\r\n", call("read_file"), "mcp-body"),
    ("get-body", "GET /mcp", J, call("write_file"), "mcp-body"),
    ("upgrade", "GET /mcp", "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
     "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n", "", "mcp-body"),
    ("put", "PUT /mcp", J, call("write_file"), "mcp-body"),
    ("head", "HEAD /mcp", "", "", "scope-no-rule"),
    ("path", "POST /other", J, call("read_file"), "scope-no-rule"),
    ("dots", "POST /mcp/../other", J, call("read_file"), "path-ambiguous"),
    ("largest", "POST /mcp", J, (call("read_x"), 65534), "200"),
    ("larger", "POST /mcp", J, (call("read_x"), 65535), "mcp-body"),
    ("far-larger", "POST /mcp", J, (call("read_x"), 3_000_000), "mcp-body"),
]
CLIENT = """
def begin():
    s = dial('ok.example.org', PORT, 40)
    return ssl.create_default_context(cafile=BUNDLE).wrap_socket(s, server_hostname='ok.example.org') if PORT == 443 else s
def ask(line, fields, body, how, s=None):
    s = s or begin()
    body = (body if isinstance(body, str) else body[0].ljust(body[1])).encode()
    head = f'{line} HTTP/1.1\\r\\nHost: ok.example.org\\r\\n{fields}'
    step = 7 if how == 'pieces' and len(body) < 1000 else 4096
    if how == 'length': data = [(head + f'Content-Length: {len(body)}\\r\\n\\r\\n').encode() + body]
    elif not body: data = [(head + '\\r\\n').encode()]
    else:
        data = [(head + 'Transfer-Encoding: chunked\\r\\n\\r\\n').encode()]
        data += [b'%x\\r\\n%s\\r\\n' % (len(p), p) for p in (body[i:i + step] for i in range(0, len(body), step))]
        data += [b'0\\r\\n\\r\\n']
    try:
        for piece in data:
            for i in range(0, len(piece), step if how == 'pieces' else len(piece)): s.sendall(piece[i:i + step] if how == 'pieces' else piece)
    except OSError: pass
    try: got = until(s).decode()
    except OSError: got = ''
    no = [x.split(': ')[1] for x in got.split('\\r\\n') if x.lower().startswith('x-cloche-denied')]
    return (no or [got.split(' ')[1] if ' ' in got else 'cut'])[0]
"""


@pytest.fixture
def vaulted(online, tmp_path):
    return Vaulted(online, tmp_path)


@pytest.mark.root
@pytest.mark.parametrize("how", ["length", "chunked", "pieces"])
@pytest.mark.parametrize("port", [443, 80])
def test_requests(vaulted, project, tmp_path, port, how):
    rows = [(n, *r) for n, *r in REQUESTS if how == "length" or r[2]]
    flags = write(project, [{"host": OK, "port": port, **MCP}])
    result = vaulted.python(f"BUNDLE, PORT = {BUNDLE!r}, {port}\n" + CLIENT + f"""
for name, line, fields, body, _ in json.loads({json.dumps(json.dumps(rows))!s}):
    print(name, ask(line, fields, body, {how!r}))
""", allow=(), flags=[*flags, "--report", tmp_path / "report.json"])
    assert dict(x.split(" ") for x in result.out.split("\n")[:-1]) == {r[0]: r[4] for r in rows}, result
    came = [(r["method"], r["path"], r["data"].decode()) for r in vaulted.net.requests]
    assert came == [(*r[1].split(" "), r[3] if isinstance(r[3], str) else r[3][0].ljust(r[3][1])) for r in rows if r[4] == "200"]
    assert all(r["tls"] == (port == 443) for r in vaulted.net.requests)
    assert all("transfer-encoding" not in dict(r["headers"]) for r in vaulted.net.requests)
    assert {"mcp-no-rule", "mcp-body"} <= {d["rule"] for d in denied(tmp_path)}, denied(tmp_path)


@pytest.mark.root
def test_one_connection(vaulted, project):
    """Each request by itself, also behind one that was refused, and sent ahead; who says Expect is told to go on."""
    flags = write(project, [{"host": OK, "port": 443, **MCP}])
    result = vaulted.python(f"BUNDLE, PORT = {BUNDLE!r}, 443\n" + CLIENT + f"""
s, J, no, yes = begin(), {J!r}, {call('write_file')!r}, {call('read_file')!r}
def request(body, more=''): return f'POST /mcp HTTP/1.1\\r\\nHost: ok.example.org\\r\\n{{J}}{{more}}Content-Length: {{len(body)}}\\r\\n\\r\\n'
def answer():
    head = until(s).decode(); n = [int(x.split(':')[1]) for x in head.split('\\r\\n') if x.lower().startswith('content-length')]
    while n and n[0]: n[0] -= len(s.recv(n[0]))
    return head.split(' ')[1]
s.sendall((request(no) + no + request(yes) + yes + request(no) + no).encode())
print(answer(), answer(), answer())
s.sendall(request(yes, 'Expect: 100-continue\\r\\n').encode()); print(until(s).decode().split(' ')[1])
s.sendall(yes.encode()); print(answer())
""", allow=(), flags=flags)
    assert result.out == "403 200 403\n100\n200\n", result
    assert [r["data"].decode() for r in vaulted.net.requests] == [call("read_file")] * 2


@pytest.mark.root
def test_deny(vaulted, project):
    """The host is open but for one tool: what could call that in some reading is closed, the rest is as it was."""
    flags = write(project, [OK], [{"host": OK, "path": "/mcp", "mcp": {"tools": ["write_*"]}}])
    rows = [("POST /mcp", J, call("read_file")), ("POST /mcp", J, call("write_file")), ("POST /mcp", J, f"[{call('write_file')}]"),
            ("POST /mcp", "", call("write_file")), ("POST /x", "", "anything"), ("HEAD /mcp", "", "")]
    result = vaulted.python(f"BUNDLE, PORT = {BUNDLE!r}, 443\n" + CLIENT + f"""
for line, fields, body in json.loads({json.dumps(json.dumps(rows))!s}): print(ask(line, fields, body, 'length'))
""", allow=(), flags=flags)
    assert result.out.split() == ["200", "deny-domain", "mcp-body", "mcp-body", "200", "200"], result


@pytest.mark.root
def test_secrets(vaulted, project):
    """The token goes into the head; into a body that was decided on goes nothing."""
    flags = write(project, [{"host": OK, "port": 443, **MCP}])
    vaulted.secret(place=["bearer", "body"])
    result = vaulted.python(f"BUNDLE, PORT = {BUNDLE!r}, 443\n" + CLIENT + f"""
J, t = {J!r}, os.environ['TOK']
call = lambda v: json.dumps({{'jsonrpc': '2.0', 'id': 1, 'method': 'tools/call', 'params': {{'name': 'read_x', 'arguments': v}}}})
print(ask('POST /mcp', J + f'Authorization: Bearer {{t}}\\r\\n', call({{}}), 'length'))
print(ask('POST /mcp', J, call({{'x': t}}), 'length'))
print(ask('POST /mcp', J, call({{'x': t}}).replace('read_x', t), 'length'))
""", allow=(), flags=flags)
    assert result.out.split() == ["200", "filter", "mcp-no-rule"], result
    assert [fields(r, "authorization") for r in vaulted.net.requests] == [[f"Bearer {VALUE}"]]
    assert VALUE not in json.dumps(vaulted.online.cloche("net", "log", "--json").json)


@pytest.mark.root
def test_the_record_names_the_tool(vaulted, project):
    flags = write(project, [{"host": OK, "port": 443, **MCP}])
    result = vaulted.python(f"BUNDLE, PORT = {BUNDLE!r}, 443\n" + CLIENT + f"""
for tool in ('read_a', 'read_a', 'read_b', 'write_a'):
    ask('POST /mcp', {J!r}, {call('TOOL')!r}.replace('TOOL', tool), 'length')
""", allow=(), flags=flags)
    assert result.ok, result
    said = [(d["verdict"], d.get("tool"), d["count"]) for d in vaulted.online.cloche("net", "log", "--json").json["decisions"]
            if d["via"] == "http"]
    assert sorted(said) == [("allow", "read_a", 2), ("allow", "read_b", 1), ("deny", "write_a", 1)], said
    assert "write_a mcp-no-rule" in vaulted.online.cloche("net", "log").out
    assert "write_a" in vaulted.online.cloche("audit", "query", "--json").out


@pytest.mark.root
def test_what_is_no_http_is_refused(online, project):
    """At a port where something else is spoken."""
    flags = write(project, [{"host": OK, "port": 7777, **MCP}])
    result = online.python("print(talk(('ok.example.org', 7777), b'\\0\\1words'))", allow=(), flags=[*flags, "--json"])
    assert "words" not in result.json["stdout"] and result.json["denied"], result


SDK = Path(__file__).resolve().parents[1] / "lib" / "mcp_remote.py"


@pytest.mark.root
@pytest.mark.parametrize("mode,version", [("auto", "2026-07-28"), ("legacy", "2025-11-25")])
def test_official_client_and_server(vaulted, project, command, tmp_path, mode, version):
    """Both versions of the protocol: list, an allowed call, and one that is not, of which the server hears nothing."""
    python, log, name, port = pypi.python_with("mcp==2.3.0"), tmp_path / "log", "mcp.example.org", 9444
    net = vaulted.net
    net.names[name] = net.names[OK]
    far = command.start(["nsenter", f"--net=/proc/{os.getpid()}/fd/{net.far}", python, SDK, str(port), net.root / "site.pem",
                         net.root / "site.key", log], cwd="/", stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    assert far.stdout.readline() == b"ready\n"
    net.behind[name.encode()] = port
    folder = python.parents[1]
    try:
        flags = write(project, [{"host": name, "port": 443, **MCP}])
        result = vaulted.run([python, "/mnt/client.py", mode, f"https://{name}/mcp", "read_file", "write_file"], allow=(),
                             flags=[*flags, "--bind", f"{folder}:{folder}", "--bind", f"{SDK}:/mnt/client.py",
                                    "--report", tmp_path / "report.json"])
    finally:
        del net.behind[name.encode()]
        far.terminate()
        far.wait(60)
    lines = result.out.split("\n")
    assert lines[:3] == [f"read_file,write_file {version}", "read_file done", lines[0]], result
    assert lines[3].startswith("refused ") and log.read_text() == "read_file\n", result
    assert f"{name}:443 tool write_file" in {d["target"] for d in denied(tmp_path)}, denied(tmp_path)


@pytest.mark.root
def test_asking(vaulted, project):
    """Nobody is asked about a tool; where a deny rule looks at calls, a yes to the host is none to them."""
    flags = write(project, [{"host": OK, "port": 443, **MCP}], [{"host": OK, "path": "/other", "mcp": {"tools": ["write_*"]}}])
    rows = [("POST /mcp", J, call("write_file")), ("POST /other", J, call("write_file")), ("POST /other", J, call("read_file"))]
    result = vaulted.python(f"BUNDLE, PORT = {BUNDLE!r}, 443\n" + CLIENT + f"""
for line, fields, body in json.loads({json.dumps(json.dumps(rows))!s}): print(ask(line, fields, body, 'length'))
""", allow=(), flags=[*flags, "--ask", "--ask-timeout", "2s"])
    assert result.out.split()[:2] == ["mcp-no-rule", "deny-domain"], result
    assert result.out.split()[2].startswith("ask"), result


ASKED = [{"path": "/other", "mcp": {"tools": ["write_*"]}}]


def approve(online, process):
    """Answer the one question that comes, and return what the client has said at its end."""
    found = wait_for(lambda: online.bare("approvals", "--json").json["questions"])
    assert len(found) == 1 and online.bare("approvals", "approve", found[0]["id"]).ok, found
    return process.communicate(timeout=60)[0].decode()


@pytest.mark.root
def test_a_body_waits_for_the_answer(vaulted, project):
    """It was read already when somebody is asked; what was approved is the host, and still no tool."""
    flags = write(project, [{"host": OK, "port": 443, **MCP}], [{"host": OK, **rule} for rule in ASKED])
    process = vaulted.online.popen(["/usr/bin/python3", "-I", "-c", PRELUDE + f"BUNDLE, PORT, J = {BUNDLE!r}, 443, {J!r}\n"
                                    + CLIENT + f"""
s = begin()
for path, tool in (('/other', 'read_file'), ('/mcp', 'write_file'), ('/other', 'write_file'), ('/mcp', 'read_file')):
    body = {call('TOOL')!r}.replace('TOOL', tool)
    s.sendall(f'POST {{path}} HTTP/1.1\\r\\nHost: ok.example.org\\r\\n{{J}}Content-Length: {{len(body)}}\\r\\n\\r\\n{{body}}'.encode())
    head = until(s).decode(); n = [int(x.split(':')[1]) for x in head.split('\\r\\n') if x.lower().startswith('content-length')][0]
    while n: n -= len(s.recv(n))
    print(head.split(' ')[1])
"""], (), [*vaulted.flags, *flags, "--ask"], env=vaulted.env)
    assert approve(vaulted.online, process).split() == ["200", "403", "403", "200"]
    assert [(r["path"], r["data"].decode()) for r in vaulted.net.requests] == \
        [("/other", call("read_file")), ("/mcp", call("read_file"))]


@pytest.mark.root
def test_a_body_waits_for_the_answer_in_http2(h2, project):
    flags = write(project, [{"host": HOST, "port": 443, **MCP}], [{"host": HOST, **rule} for rule in ASKED])
    process = h2.online.popen(["/usr/bin/python3", "-I", "-c", PRELUDE + H2CLIENT + f"""
c = Client()
streams = [c.ask(path, [('content-type', 'application/json')], 'POST', {call('TOOL').encode()!r}.replace(b'TOOL', tool))
           for path, tool in (('/other', b'read_file'), ('/mcp', b'write_file'), ('/other', b'write_file'), ('/mcp', b'read_file'))]
print([g['status'] for g in c.wait(*streams)])
"""], (), [*h2.flags, *flags, "--ask"], env=h2.env)
    assert approve(h2.online, process) == "[200, 403, 403, 200]\n"
    assert sorted(h2.far.paths()) == ["/mcp", "/other"] and {r["size"] for r in h2.far.requests} == {len(call("read_file"))}


# --- HTTP/2 -----------------------------------------------------------------------------------------------------------

@pytest.mark.root
def test_http2(h2, project, tmp_path):
    h2.flags += write(project, [{"host": HOST, "port": 443, **MCP}])
    result = h2.client(f"""
yes, no, J = {call('read_file').encode()!r}, {call('write_file').encode()!r}, [('content-type', 'application/json')]
c = Client()
def post(body, more=(), **kw): return c.ask('/mcp', [*J, *more], 'POST', body, **kw)
slow = post(yes[:20], end=False)
streams = [post(yes), post(no), post(b'[' + no + b']'), post(yes, [('mcp-name', 'write_file')]), post(yes, trailers=[('mcp-name', 'x')]),
           c.ask('/mcp'), c.ask('/mcp', J, 'GET', no), post(yes, [('content-length', str(len(yes)))]), c.ask('/mcp', J, 'POST')]
answers = c.wait(*streams)
print([g['head'].get('x-cloche-denied', g['status']) for g in answers])
for i in range(20, len(yes)): c.c.send_data(slow, yes[i:i + 1]); c.send()
c.c.send_data(slow, b'', end_stream=True); c.send()
print(c.wait(slow)[0]['status'])
big = post(b'', end=False)
try:
    for i in range(4): c.c.send_data(big, b' ' * 16383); c.send()       # 65532
    c.c.send_data(big, b'  '); c.send(); c.c.send_data(big, b' '); c.send()
except Exception as e: print(e)
print(c.wait(big)[0]['head'].get('x-cloche-denied'))
full = post(yes, end=False)
for n in (16383, 16383, 16383, 65534 - len(yes) - 3 * 16383): c.c.send_data(full, b' ' * n); c.send()
c.c.send_data(full, b'', end_stream=True); c.send()
print(c.wait(full)[0]['status'])
""", allow=(), flags=["--report", tmp_path / "report.json"])
    assert result.out.split("\n")[:-1] == [
        "[200, 'mcp-no-rule', 'mcp-body', 'mcp-body', 'mcp-body', 200, 'mcp-body', 200, 'mcp-body']", "200", "mcp-body", "200"], result
    assert sorted(r["size"] for r in h2.far.requests) == [0, *[len(call("read_file"))] * 3, 65534], h2.far.requests
