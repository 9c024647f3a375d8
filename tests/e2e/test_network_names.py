"""The network by name: what rules open works with every kind of client, what they do not is refused at once."""
import hashlib
import json
import os
import re
import socket
import subprocess
import time

import pytest

from helpers import leaks, requirement
from helpers.internet import CA_INSIDE, DNS4, ECHO, NO_PROXY_VARIABLES, OTHER4, PRELUDE, SITE4, SITE6, payload
from helpers.runner import wait_for
from helpers.scripted import Scripted, read_exactly

pytestmark = [requirement("R13", "R14"), pytest.mark.root]
BIG = 50 << 20
WAYS = [False, True]        # by the proxy variables; transparent
way = pytest.mark.parametrize("transparent", WAYS, ids=["proxy", "transparent"])
scheme = pytest.mark.parametrize("scheme", ["http", "https"])


def digest(size):
    return hashlib.sha256(payload(size)).hexdigest()


def straight(transparent):
    return ["/usr/bin/env", *NO_PROXY_VARIABLES] if transparent else []


# --- clients ----------------------------------------------------------------------------------------------------------

@way
@scheme
def test_curl(online, scheme, transparent):
    result = online.curl(f"{scheme}://ok.example.org/a?b=c", transparent=transparent)
    assert result.ok and result.out == "hello ok.example.org /a?b=c\n", result
    assert [r["host"] for r in online.net.requests] == ["ok.example.org"]
    assert online.net.reached() == {(6, SITE4, 443 if scheme == "https" else 80)}


@way
@scheme
def test_wget(online, has, scheme, transparent):
    has("wget")
    words = ["/usr/bin/wget", "-nv", "-O", "-", f"--ca-certificate={CA_INSIDE}", f"{scheme}://ok.example.org/w"]
    result = online.run([*straight(transparent), *words])
    assert result.ok and result.out == "hello ok.example.org /w\n", result


@way
@scheme
def test_python_urllib(online, scheme, transparent):
    code = (f"import urllib.request as u\nprint(u.urlopen('{scheme}://ok.example.org/p', "
            "context=ssl.create_default_context(cafile=CA)).read().decode())")
    if transparent:
        code = "for n in [n for n in os.environ if n.lower().endswith('_proxy')]: del os.environ[n]\n" + code
    result = online.python(code)
    assert result.ok and "hello ok.example.org /p" in result.out, result


@scheme
def test_node_fetch(online, has, scheme):
    has("node")
    code = f"fetch('{scheme}://ok.example.org/n').then(r => r.text()).then(t => process.stdout.write(t))"
    result = online.run(["/usr/bin/env", f"NODE_EXTRA_CA_CERTS={CA_INSIDE}", "/usr/bin/node", "-e", code])
    assert result.ok and result.out == "hello ok.example.org /n\n", result


@way
def test_git_clone(online, command, has, transparent):
    has("git")
    work, bare = online.net.root / "work", online.net.root / "git" / "repo.git"
    if not bare.exists():
        who = ["-c", "user.name=t", "-c", "user.email=t@example.org"]
        work.mkdir()
        command(["git", "init", "-q", work])
        (work / "big").write_bytes(payload(1 << 20))
        command(["git", "-C", work, "add", "big"])
        command(["git", "-C", work, *who, "commit", "-qm", "first"])
        command(["git", "clone", "-q", "--bare", work, bare])
        command(["git", "-C", bare, "update-server-info"])
    code = (f"cd /tmp && git -c http.sslCAInfo={CA_INSIDE} clone -q https://ok.example.org/git/repo.git got && "
            "sha256sum < got/big")
    result = online.run([*straight(transparent), "/bin/sh", "-c", code])
    assert result.ok and digest(1 << 20) in result.out, result


@scheme
@pytest.mark.parametrize("option", ["--socks5-hostname", "--socks5"])
@pytest.mark.parametrize("port", [1080, 3128])
def test_socks(online, scheme, option, port):
    """Names resolved by the proxy, or by the client itself; both ports speak it."""
    result = online.curl(option, f"198.18.0.1:{port}", "--noproxy", "", f"{scheme}://ok.example.org/s")
    assert result.ok and result.out == "hello ok.example.org /s\n", result


# --- amounts ----------------------------------------------------------------------------------------------------------

@way
@scheme
def test_big_download(online, scheme, transparent):
    curl = f"curl -sS --cacert {CA_INSIDE} {scheme}://ok.example.org/bytes/{BIG} | sha256sum"
    result = online.run([*straight(transparent), "/bin/sh", "-c", curl])
    assert result.out.split()[0] == digest(BIG), result


@way
@scheme
@pytest.mark.parametrize("chunked", [False, True], ids=["length", "chunked"])
def test_big_upload(online, scheme, transparent, chunked):
    size = 10 << 20 if chunked else BIG
    online.net.root.joinpath("upload").write_bytes(payload(size))
    more = ["-H", "Transfer-Encoding: chunked"] if chunked else []
    result = online.curl("-X", "PUT", "-H", "Expect:", *more, "--data-binary", "@/mnt/upload",
                         f"{scheme}://ok.example.org/up", transparent=transparent,
                         flags=["--bind", f"{online.net.root}/upload:/mnt/upload"])
    assert result.out == f"{size} {digest(size)}\n", result


@way
def test_upload_that_waits_for_100_continue(online, transparent):
    online.net.root.joinpath("upload").write_bytes(payload(2 << 20))
    result = online.curl("-H", "Expect: 100-continue", "--data-binary", "@/mnt/upload", "http://ok.example.org/up",
                         transparent=transparent, flags=["--bind", f"{online.net.root}/upload:/mnt/upload"])
    assert result.out == f"{2 << 20} {digest(2 << 20)}\n", result


@way
@scheme
def test_a_hundred_at_once(online, scheme, transparent):
    words = [w for i in range(100) for w in ("-o", "-", f"{scheme}://ok.example.org/n{i}")]
    result = online.curl("--no-progress-meter", "--parallel", "--parallel-immediate", "--parallel-max", "100", *words,
                         transparent=transparent)
    assert result.ok and sorted(result.out.split("\n"))[1:] == sorted(f"hello ok.example.org /n{i}" for i in range(100))


def test_idle_connections_do_not_stop_others(online):
    code = """
idle = [dial(*P) for _ in range(200)]
half = [dial(*P) for _ in range(50)]
for s in half: s.sendall(b'GET http://ok.example')
print(talk(P, get('ok.example.org', 'http://ok.example.org/after')).decode())
"""
    began = time.monotonic()
    result = online.python(code)
    assert "hello ok.example.org /after" in result.out and time.monotonic() - began < 30, result


# --- HTTP -------------------------------------------------------------------------------------------------------------

@way
@scheme
@pytest.mark.parametrize("method", ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"])
def test_methods(online, scheme, transparent, method):
    words = ["-I"] if method == "HEAD" else ["-X", method]
    words += ["-d", "body"] if method in ("POST", "PUT", "PATCH") else []
    result = online.curl(*words, f"{scheme}://ok.example.org/m", transparent=transparent)
    assert result.ok, result
    assert [(r["method"], r["path"], r["host"]) for r in online.net.requests] == [(method, "/m", "ok.example.org")]


@way
@scheme
def test_clients_that_keep_connections(online, scheme, transparent):
    result = online.curl(f"{scheme}://ok.example.org/1", f"{scheme}://ok.example.org/2", f"{scheme}://ok.example.org/3",
                         transparent=transparent)
    assert result.out == "".join(f"hello ok.example.org /{i}\n" for i in (1, 2, 3)), result


def test_one_tls_connection_carries_many_requests(online):
    code = """
import http.client
c = http.client.HTTPSConnection('ok.example.org', context=ssl.create_default_context(cafile=CA))
for i in range(5):
    c.request('GET', '/%d' % i); print(c.getresponse().read().decode(), end='')
    own = own if i else c.sock.getsockname()
    assert own == c.sock.getsockname()
"""
    result = online.python(code)
    assert result.out == "".join(f"hello ok.example.org /{i}\n" for i in range(5)), result


@way
def test_fields_reach_the_client_and_the_server(online, transparent):
    result = online.curl("-i", "-H", "X-Mine: 1", "-A", "agent/1", "http://ok.example.org/", transparent=transparent)
    assert "X-Site: yes" in result.out, result
    sent = dict(online.net.requests[0]["headers"])
    assert (sent["x-mine"], sent["user-agent"], sent["host"]) == ("1", "agent/1", "ok.example.org")


def test_certificates_are_the_servers_own(online):
    """Not inspected: the client checks the real chain, and refuses a stranger's."""
    result = online.run(["/usr/bin/curl", "-sS", "https://ok.example.org/"])
    assert result.code == 60, result
    assert not online.net.requests


# --- DNS --------------------------------------------------------------------------------------------------------------

def test_getent(online):
    result = online.run(["/bin/sh", "-c", "getent ahosts ok.example.org; getent hosts evil.example.org || echo none"])
    assert "198.1" in result.out and "fd63:" in result.out and result.out.endswith("none\n"), result
    assert not online.net.asked(), "a name is only looked up when it is connected to"


@pytest.mark.parametrize("database", ["ahostsv4", "ahostsv6"])
def test_getent_of_one_family(online, database):
    """Clients that ask for one family and set AI_ADDRCONFIG."""
    result = online.run(["/usr/bin/getent", database, "ok.example.org"])
    assert result.ok and re.match("198.1|fd63:", result.out), result


@pytest.mark.parametrize("server", ["198.18.0.1", "8.8.8.8", DNS4, "127.0.0.53", "2001:4860:4860::8888"])
def test_any_name_server_is_ours(online, server):
    code = f"""
for name in ('ok.example.org', 'OK.Example.ORG', 'evil.example.org'):
    for kind in (1, 28): print(name, kind, *summary(ask(name, kind, {server!r})))
with dial({server!r}, 53) as s:
    q = question('ok.example.org'); s.sendall(struct.pack('>H', len(q)) + q); s.sendall(struct.pack('>H', len(q)) + q)
    time.sleep(.2)
    n = struct.unpack('>H', s.recv(2))[0]; print('tcp', *summary(s.recv(n)))
"""
    result = online.python(code)
    lines = result.out.splitlines()
    assert lines[:6] == ["ok.example.org 1 0 1", "ok.example.org 28 0 1", "OK.Example.ORG 1 0 1",
                         "OK.Example.ORG 28 0 1", "evil.example.org 1 3 0", "evil.example.org 28 3 0"], result
    assert lines[6] == "tcp 0 1", result
    assert not online.net.reached() and not online.net.asked()


def test_a_name_server_of_the_policys_is_asked_in_place_of_the_hosts(online, tmp_path):
    """As a flag, and by the key of other systems' settings; the sandbox itself does not reach it."""
    (tmp_path / "p.yaml").write_text(f"network: {{allow: [ok.example.org]}}\ndns: [{OTHER4}]\n", encoding="ascii")
    for flags in (("--dns", OTHER4), ("--settings", str(tmp_path / "p.yaml"))):
        online.net.forget()
        result = online.run(["/usr/bin/curl", "-sS", "http://ok.example.org/d"], flags=flags)
        assert result.ok and result.out == "hello ok.example.org /d\n", result
        asked = {(proto, to) for proto, to, port in online.net.sniffer.packets if port == 53}
        assert asked == {(17, OTHER4)} and online.net.asked() == {"ok.example.org"}, asked
    online.net.forget()
    result = online.python(f"print(*summary(ask('evil.example.org', 1, {OTHER4!r})))", flags=("--dns", OTHER4))
    assert result.out == "3 0\n" and not online.net.reached() and not online.net.asked(), result


def test_other_records_are_empty(online):
    """Above all HTTPS and SVCB (65, 64), which would hand a client the keys of an encrypted ClientHello."""
    result = online.python("for k in (65, 64, 16, 15, 33, 6, 2, 257, 10): print(k, *summary(ask('ok.example.org', k)))")
    assert len(result.out.splitlines()) == 9 and all(line.endswith(" 0") for line in result.out.splitlines()), result
    assert not online.net.asked()


def test_ptr(online):
    code = """
a = socket.gethostbyname('ok.example.org'); print(socket.gethostbyaddr(a)[0])
six = socket.getaddrinfo('ok.example.org', 443, socket.AF_INET6)[0][4][0]; print(socket.gethostbyaddr(six)[0])
for other in ('93.184.216.34', '198.18.200.1', '10.0.0.5'):
    try: print(socket.gethostbyaddr(other))
    except OSError as e: print('unknown')
"""
    result = online.python(code)
    assert result.out.splitlines() == ["ok.example.org", "ok.example.org", *["unknown"] * 3], result
    assert not online.net.asked()


def test_a_name_keeps_its_address_and_names_share_none(online):
    code = """
names = ['n%d.example.org' % i for i in range(300)]
first = [socket.gethostbyname(n) for n in names]
print(len(set(first)), first == [socket.gethostbyname(n) for n in names])
"""
    assert online.python(code, allow=["*.example.org"]).out == "300 True\n"


# --- what is not allowed ----------------------------------------------------------------------------------------------

def test_denied_is_quick_and_says_why(online):
    code = """
began = time.monotonic()
try: socket.getaddrinfo('evil.example.org', 443)
except socket.gaierror as e: print(e.errno == socket.EAI_NONAME)
print(talk(P, get('evil.example.org', 'http://evil.example.org/', 'Connection: close\\r\\n')).decode())
s, head = connect('evil.example.org:443')
print((head + until(s, b'--allow-domain\\n')).decode())
print(time.monotonic() - began < 15)     # less than anything that waits for an answer in vain
"""
    result = online.python(code)
    assert result.out.startswith("True\n") and result.out.endswith("True\n"), result
    assert result.out.count("HTTP/1.1 403 Forbidden") == 2 and "X-Cloche-Denied: network-no-rule" in result.out
    assert "--allow-domain" in result.out and "evil.example.org:443" in result.out
    assert not online.net.asked() and not online.net.reached()


def test_report_lists_denials(online):
    result = online.curl("https://evil.example.org/", "https://denied.example.org:8443/", flags=["--json"])
    denied = {d["target"] for d in result.json["denied"]}
    assert {"evil.example.org:443", "denied.example.org:8443"} <= denied, result.json["denied"]
    assert {d["op"] for d in result.json["denied"]} == {"connect"}


def test_report_lists_a_name_that_was_only_looked_up(online):
    result = online.run(["/usr/bin/getent", "hosts", "evil.example.org"], flags=["--json"])
    assert "evil.example.org" in {d["target"] for d in result.json["denied"]}, result.json["denied"]


def test_without_denials_there_are_none(online):
    assert online.curl("http://ok.example.org/", flags=["--json"]).json["denied"] == []


RULES = [
    (["*.example.org"], [], {"a.example.org": 1, "example.org": 0, "deep.a.example.org": 0}),
    (["**.example.org"], [], {"a.example.org": 1, "example.org": 0, "deep.a.example.org": 1}),
    (["*.example.org", "example.org"], [], {"a.example.org": 1, "example.org": 1}),
    (["*.example.org"], ["evil.example.org"], {"a.example.org": 1, "evil.example.org": 0}),
    (["**.example.org"], ["*.a.example.org"], {"a.example.org": 1, "deep.a.example.org": 0}),
    (["ok.example.org"], ["ok.example.org"], {"ok.example.org": 0}),
    (["OK.EXAMPLE.ORG"], [], {"ok.example.org": 1, "OK.Example.Org": 1, "evil.example.org": 0}),
    (["ok.example.org:80"], [], {"ok.example.org": 1, "ok.example.org:8080": 0}),
    (["ok.example.org:8080"], [], {"ok.example.org:8080": 1, "ok.example.org": 0}),
    (["ok.example.org"], [], {"ok.example.org:8080": 0, "ok.example.org": 1}),
    (["*.example.org:8080"], ["b.example.org:8080"], {"a.example.org:8080": 1, "b.example.org:8080": 0}),
    (["*.example.org"], ["b.example.org:443"], {"b.example.org": 1}),
    ([SITE4], [], {SITE4: 1, "93.184.216.35": 0, "ok.example.org": 0}),
    ([SITE4 + ":8080"], [], {SITE4 + ":8080": 1, SITE4: 0}),
    ([f"[{SITE6}]"], [], {f"[{SITE6}]": 1, "[2606:2800:220:1::35]": 0}),
    (["10.0.0.5"], [], {"10.0.0.5": 1, "172.16.0.9": 0}),
    (["*.example.org"], [SITE4], {"a.example.org": 0, "other.example.org": 1}),
]


@way
@pytest.mark.parametrize("case", range(len(RULES)))
def test_rules(online, case, transparent):
    allow, deny, targets = RULES[case]
    flags = [w for host in deny for w in ("--deny-domain", host)]
    for target, opened in targets.items():
        if transparent and re.search(r"\w:8080$", target):
            continue        # only 80 and 443 are captured; other ports go by the proxy
        online.net.forget()
        result = online.curl("-f", "--globoff", f"http://{target}/x", allow=allow, flags=flags, transparent=transparent)
        assert result.ok == bool(opened), (target, result)
        assert bool(online.net.requests) == bool(opened), (target, online.net.requests)
        if opened:
            assert online.net.requests[0]["host"].lower() == target.lower()


@way
def test_https_to_address_literals(online, transparent):
    for url in (f"https://{SITE4}/", f"https://[{SITE6}]/"):
        result = online.curl("--globoff", url, allow=[SITE4, f"[{SITE6}]"], transparent=transparent)
        assert result.ok and "hello" in result.out, result


@way
@pytest.mark.parametrize("name", ["six", "both", "many", "alias"])
def test_kinds_of_answers(online, name, transparent):
    """IPv6 alone, both families, several addresses, an alias."""
    for s in ("http", "https"):
        result = online.curl(f"{s}://{name}.example.org/", allow=[f"{name}.example.org"], transparent=transparent)
        assert result.out == f"hello {name}.example.org /\n", result
    assert online.net.reached() & {(6, SITE4, 80), (6, OTHER4, 80), (6, SITE6, 80)}


@pytest.mark.parametrize("ttl, asked", [(0, 3), (60, 1)])
def test_an_answer_is_kept_as_long_as_it_says(online, ttl, asked):
    online.net.ttl = ttl
    code = "for i in range(3): print(b'hello' in talk(P, get('alias.example.org', f'http://alias.example.org/{i}', CLOSE)))"
    result = online.python(code, allow=["alias.example.org"])
    assert result.out.split() == ["True"] * 3, result
    assert [kind for _, kind in online.net.queries].count("A") == asked, online.net.queries


def test_of_two_addresses_the_one_that_lives_is_used(online):
    assert online.curl("http://half.example.org/", allow=["half.example.org"]).out == "hello half.example.org /\n"


@way
def test_a_redirect_is_decided_anew(online, transparent):
    result = online.curl("-L", "-f", "http://ok.example.org/redirect", transparent=transparent)
    assert not result.ok and [r["host"] for r in online.net.requests] == ["ok.example.org"], result


def test_a_name_that_nobody_knows(online):
    began = time.monotonic()
    result = online.curl("-i", "http://nowhere.example.org/", allow=["nowhere.example.org"])
    assert "502" in result.out and time.monotonic() - began < 30, result


def test_a_port_where_nobody_listens(online):
    result = online.curl("-i", "http://ok.example.org:81/", allow=["ok.example.org:81"])
    assert "HTTP/1.1 502" in result.out, result


# --- other protocols, when a rule names their port ---------------------------------------------------------------------

@pytest.mark.parametrize("how", ["connect", "socks"])
def test_tunnel_to_another_protocol(online, how):
    opening = {"connect": "s, got = connect('ok.example.org:%d')" % ECHO,
               "socks": "s, got = socks(3, b'\\x0eok.example.org', port=%d)" % ECHO}[how]
    code = f"""
{opening}
print(got)
data = os.urandom(1 << 20); back = b''
import threading
threading.Thread(target=lambda: (s.sendall(b'\\x01\\x02' + data), s.shutdown(1))).start()
while d := s.recv(65536): back += d
print(back == b'\\x01\\x02' + data)
"""
    result = online.python(code, allow=[f"ok.example.org:{ECHO}"])
    assert result.out.endswith("True\n"), result
    assert (6, SITE4, ECHO) in online.net.reached()


def test_tunnel_that_is_fast_then_slow_then_fast(online):
    """Its pipes grow and shrink on the way; a reader in small steps fills them to the brim."""
    code = f"""
import hashlib, threading
s, got = connect('ok.example.org:{ECHO}')
parts = [b'\\x01\\x02', os.urandom(24 << 20), *(os.urandom(100) for _ in range(2000)), os.urandom(24 << 20)]
def send():
    for part in parts: s.sendall(part)
    s.shutdown(1)
threading.Thread(target=send).start()
back, n, step = hashlib.sha256(), 0, 64
while d := s.recv(step):
    back.update(d); n += len(d)
    step = 64 if n % (8 << 20) < 1 << 16 else 1 << 18
print(n, back.hexdigest() == hashlib.sha256(b''.join(parts)).hexdigest())
"""
    result = online.python(code, allow=[f"ok.example.org:{ECHO}"])
    assert result.out == f"{(48 << 20) + 200002} True\n", result


def test_tunnel_in_which_the_server_speaks_first(online):
    result = online.python("s, got = connect('ok.example.org:22'); print(got, s.recv(100))",
                           allow=["ok.example.org:22"])
    assert b"SSH-2.0-far" in result.out_bytes, result


@pytest.mark.parametrize("how,seen", [("reset", ConnectionResetError), ("end", b"")])
def test_a_client_that_is_reset_has_not_ended(online, how, seen):
    """The server has ended its own direction before: that the tunnel is over makes no whole of a part."""
    ends = []

    def serve(connection, _, kept):
        read_exactly(connection, 6)
        connection.shutdown(socket.SHUT_WR)
        try:
            ends.append(connection.recv(100))
        except OSError as e:
            ends.append(type(e))
    server = Scripted(online.net, serve)
    result = online.python(f"""
s, got = connect('ok.example.org:{server.port}')
s.sendall(b'\\x01\\x02part'); print(s.recv(100))
if {how!r} == 'reset': s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack('ii', 1, 0))
s.close()
""", allow=server.allow)
    assert result.out == "b''\n", result
    assert wait_for(lambda: ends) == [seen]


# --- the sandbox's own loopback ----------------------------------------------------------------------------------------

@requirement("R12")
@pytest.mark.parametrize("address", ["127.0.0.1", "localhost", "::1"])
def test_own_servers_work(online, address):
    """By libraries that read no_proxy, and by curl, which knows [::1] there as ::1 (urllib does not: docs/network.md)."""
    code = f"""
import http.server, threading, urllib.request
class S(http.server.ThreadingHTTPServer): address_family = family({address!r})
w = S(({address!r}, 0), http.server.SimpleHTTPRequestHandler)
threading.Thread(target=w.serve_forever, daemon=True).start()
host = {address!r} if ':' not in {address!r} else '[::1]'
url = 'http://%s:%d/' % (host, w.server_port)
if host != '[::1]': assert urllib.request.urlopen(url).status == 200
import subprocess
print(subprocess.run(['curl', '-s', '-o', '/dev/null', '-w', '%{{http_code}}', url], stdout=-1).stdout.decode())
"""
    result = online.python(code)
    assert result.out == "200\n", result


# --- its end ----------------------------------------------------------------------------------------------------------

HOLD = f"""
s, got = connect('ok.example.org:{ECHO}')
s.sendall(b'one'); print(s.recv(9).decode(), flush=True)
sys.stdin.readline()
try: s.sendall(b'two'); print('still', s.recv(9))
except OSError as e: print('closed', e.errno)
for where in (P, S, ('93.184.216.34', 80), ('93.184.216.34', 443), ('93.184.216.34', 53)):
    try: dial(*where); print('OPENED', where)
    except OSError as e: print(errno.errorcode.get(e.errno, e))
"""


def holding(online):
    process = online.popen(["/usr/bin/python3", "-I", "-S", "-c", PRELUDE + HOLD],
                           allow=[f"ok.example.org:{ECHO}"], stdin=subprocess.PIPE)
    assert process.stdout.readline() == b"one\n"
    return process


@requirement("R91", "R20")
def test_kill_9_of_cloche_ends_egress(online):
    process = holding(online)
    pids = leaks.named("cloche-egress")
    process.kill()
    process.communicate()

    def gone():
        leaks.reap_adopted(set())
        return not [p for p in pids if os.path.exists(f"/proc/{p}")]
    assert pids and wait_for(gone), leaks.descendants()


def test_egress_holds_no_rights(online):
    """It reads strangers' bytes: a uid of its own, no capability, not to be looked into, nothing open that it needs not."""
    process = holding(online)
    try:
        pid = leaks.named("cloche-egress")[0]
        with open(f"/proc/{pid}/status", encoding="ascii") as f:
            status = dict(line.split(":\t", 1) for line in f if ":\t" in line)
        assert status["Uid"] == status["Gid"] and len(set(status["Uid"].split())) == 1, status
        assert int(status["Uid"].split()[0]) >= 60000, status
        assert all(int(status[c], 16) == 0 for c in ("CapInh", "CapPrm", "CapEff", "CapAmb")), status
        with open(f"/proc/{pid}/environ", "rb") as f:
            assert f.read() == b""
        files = [os.readlink(f"/proc/{pid}/fd/{n}") for n in os.listdir(f"/proc/{pid}/fd") if int(n) > 2]
        assert all(re.match(r"socket:|pipe:|anon_inode:\[eventpoll\]", f) for f in files), files
    finally:
        process.communicate(b"\n", timeout=30)


def test_ordinary_end_leaves_nothing(online):
    for _ in range(3):
        assert online.curl("http://ok.example.org/").ok
    assert wait_for(lambda: not leaks.named("cloche-egress"))


# --- policy -----------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("flags", [["--network", "none"], ["--network", "host"], ["--mode", "light"],
                                   ["--mode", "off"]], ids=" ".join)
def test_rules_that_cannot_be_kept_are_refused(online, flags):
    result = online.cloche("run", "--allow-domain", "ok.example.org", *flags, "--", "/bin/echo", "ran")
    assert result.code == 125 and result.out == "" and "policy." in result.err, result


@pytest.mark.parametrize("rule", ["*", "*.org", "http://ok.example.org", "ok.example.org/x", "a b", "ok.example.org:0",
                                  "ok.example.org:65536", "*.*.example.org", "ok.*.example.org", "user@ok.example.org",
                                  "", "-ok.example.org", "ok..example.org", "2606:2800::34:443:1:1:1:1:1"])
def test_bad_rules_are_refused(online, rule):
    result = online.bare("run", "--allow-domain", rule, "--", "/bin/echo", "ran")
    assert result.code == 125 and result.out == "", result


def test_rules_from_a_policy_file(online):
    policy = online.net.root / "policy.json"
    policy.write_text(json.dumps({"version": 1, "network": {"mode": "allowlist", "allow": ["*.example.org"],
                                                            "deny": ["evil.example.org"]}}), encoding="ascii")
    for name, opened in (("a", True), ("evil", False)):
        result = online.curl("-f", f"http://{name}.example.org/", allow=[], flags=["--settings", policy])
        assert result.ok == opened, result
