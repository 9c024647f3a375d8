"""A parent proxy between cloche and the world: asked for everything but no_proxy, out of the sandbox's own reach."""
import base64
import json
import re
import socket
import threading
import urllib.parse

import pytest

from helpers import requirement
from helpers.internet import ECHO, HOST4, NO_PROXY_VARIABLES, SITE4, in_namespace
from helpers.obedient import Obedient
from helpers.scripted import read_head

pytestmark = [requirement("R13", "R14"), pytest.mark.root]
OK = "ok.example.org"
way = pytest.mark.parametrize("transparent", [False, True], ids=["proxy", "transparent"])


def pump(source, target):
    try:
        while data := source.recv(65536):
            target.sendall(data)
        target.shutdown(socket.SHUT_WR)
    except OSError:
        pass


class Parent:
    """A real forward proxy on the near host's loopback and outer address. heads: what it was asked."""

    def __init__(self, net):
        self.net, self.heads, self.answer, self.page = net, [], None, None
        self.listeners = [in_namespace(net.near, lambda a=a: net.listen(0, a)) for a in ("127.0.0.1", HOST4)]
        self.port, self.outer = (listener.getsockname()[1] for listener in self.listeners)
        for listener in self.listeners:
            net.thread(net.accept, listener, self.serve)

    def far(self, host, port):
        address = dict(self.net.names.get(host, [("A", host)]))["A"]
        return in_namespace(self.net.near, lambda: socket.create_connection((address, port), 10))

    def serve(self, client):
        far = None
        while head := read_head(client):
            self.heads.append(head.decode())
            if self.answer or self.page:
                client.sendall(self.answer or self.page(head))
                return
            method, target, _ = head.decode().split("\r\n")[0].split(" ")
            if method == "TRACE" and b"max-forwards: 0\r\n" in head.lower():
                client.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(head), head))
                return
            if method == "CONNECT":
                host, _, port = target.partition(":")
                self.tunnel(client, self.far(host, int(port)))
                return
            found = re.match(r"http://([^/:]+):?(\d*)/", target)
            if not found:
                return
            host, port = found.groups()
            far = far or self.far(host, int(port or 80))
            far.sendall(re.sub(rb" http://[^/]+", b" ", head, count=1))
            reply = read_head(far)
            if not reply:
                return
            size = int(re.search(rb"content-length: (\d+)", reply.lower())[1])
            client.sendall(reply + b"".join(far.recv(1) for _ in range(size)))

    @staticmethod
    def tunnel(client, far):
        client.sendall(b"HTTP/1.1 200 Here you are\r\nX: y\r\n\r\n")
        back = threading.Thread(target=pump, args=(far, client))
        back.start()
        pump(client, far)
        back.join()
        far.close()

    def asked(self):
        return [head.split(" HTTP/")[0] for head in self.heads]


@pytest.fixture
def parent(online):
    return Parent(online.net)


def settings(online, allow, dialect="yaml", **proxy):
    """A settings file in either dialect that names @proxy."""
    if dialect == "yaml":
        keys = "".join(f"    {key.replace('_', '-')}: '{value}'\n" for key, value in proxy.items())
        path = online.net.root / "parent.yaml"
        path.write_text(f"version: 1\nnetwork:\n  allow: {json.dumps(allow)}\n  parent-proxy:\n{keys}", encoding="ascii")
    else:
        proxy = {{"no_proxy": "noProxy"}.get(key, key): value for key, value in proxy.items()}
        path = online.net.root / "parent.json"
        path.write_text(json.dumps({
            "network": {"allowedDomains": allow, "deniedDomains": [], "parentProxy": proxy},
            "filesystem": {"denyRead": [], "allowWrite": [], "denyWrite": []}}), encoding="ascii")
    return ["--settings", path]


@way
@pytest.mark.parametrize("scheme", ["http", "https"])
def test_everything_goes_through_it(online, parent, scheme, transparent):
    result = online.curl(f"{scheme}://{OK}/a?b", transparent=transparent, allow=[],
                         flags=settings(online, [OK], http=f"http://127.0.0.1:{parent.port}"))
    assert result.out == f"hello {OK} /a?b\n", result
    assert parent.asked() == ([f"GET http://{OK}/a?b"] if scheme == "http" else [f"CONNECT {OK}:443"])
    assert not online.net.asked(), "the parent resolves"


@pytest.mark.parametrize("dialect", ["yaml", "srt"])
def test_each_kind_has_its_own(online, dialect):
    plain, other = Parent(online.net), Parent(online.net)
    flags = settings(online, [OK], dialect, http=f"http://127.0.0.1:{plain.port}", https=f"127.0.0.1:{other.port}")
    words = [f"http://{OK}/1", f"https://{OK}/2"]
    if dialect == "yaml":
        result = online.curl(*words, allow=[], flags=flags)
    else:
        result = online.cloche("srt", *flags, "-c", " ".join(["/usr/bin/curl -sS --max-time 40 -k", *words]))
    assert result.out == f"hello {OK} /1\nhello {OK} /2\n", result
    assert (plain.asked(), other.asked()) == ([f"GET http://{OK}/1"], [f"CONNECT {OK}:443"])


def test_the_port_of_ones_own_proxy_in_srt(online, parent):
    """The lists of hosts hold before it."""
    path = online.net.root / "port.json"
    path.write_text(json.dumps({"network": {"allowedDomains": [OK], "deniedDomains": [], "httpProxyPort": parent.port},
                                "filesystem": {"denyRead": [], "allowWrite": [], "denyWrite": []}}))
    curl = f"/usr/bin/curl -sS --max-time 40 -k http://{OK}/1 https://{OK}/2 http://evil.example.org/3 -w '%{{http_code}} '"
    result = online.cloche("srt", "--settings", path, "-c", curl)
    assert f"hello {OK} /1\n" in result.out and f"hello {OK} /2\n" in result.out and "403" in result.out, result
    assert parent.asked() == [f"GET http://{OK}/1", f"CONNECT {OK}:443"]


def test_hosts_that_are_not_asked_of_it(online, parent):
    flags = settings(online, ["**.example.org"], http=f"http://127.0.0.1:{parent.port}",
                     no_proxy="b.example.org, .a.example.org:80 *.sub.example.org")
    online.net.names["x.sub.example.org"] = [("A", SITE4)]
    hosts = [f"{name}.example.org" for name in ("a", "b", "deep.a", "x.sub", "ok")]
    result = online.curl(*(f"http://{host}/" for host in hosts), allow=[], flags=flags)
    assert result.out == "".join(f"hello {host} /\n" for host in hosts), result
    assert parent.asked() == ["GET http://a.example.org/", "GET http://ok.example.org/"]


def test_it_is_told_who_asks(online, parent):
    """The user's name and password reach it, and nobody else."""
    flags = settings(online, [OK], http=f"http://me:p%40ss@127.0.0.1:{parent.port}")
    result = online.curl(f"http://{OK}/", f"https://{OK}/", allow=[], flags=flags)
    assert result.ok, result
    word = "Proxy-Authorization: Basic " + base64.b64encode(b"me:p@ss").decode()
    assert len(parent.heads) == 2 and all(word in head for head in parent.heads), parent.heads
    shown = online.bare("policy", "show", *flags)
    assert "***@127.0.0.1" in shown.out and "p%40ss" not in shown.out + shown.err, shown


def test_requests_of_one_connection_share_one_to_it(online, parent):
    code = f"""
import http.client
c = http.client.HTTPConnection(*P)
for i in range(5): c.request('GET', 'http://{OK}/%d' % i); assert c.getresponse().read() == b'hello {OK} /%d\\n' % i
print('done')
"""
    assert online.python(code, allow=[], flags=settings(online, [OK], http=f"http://127.0.0.1:{parent.port}")).out == "done\n"
    assert parent.asked() == [f"GET http://{OK}/{i}" for i in range(5)] and len(online.net.connections) == 1


def test_requests_in_a_tunnel_go_as_to_a_server(online, parent):
    """What is inside is for the host, not for the parent: origin form, and no word of who asks."""
    code = f"""
s, got = connect('{OK}:80'); assert b' 200 ' in got
for i in range(3): s.sendall(get('{OK}', '/%d' % i)); assert b' 200 ' in until(s); print(until(s, b'\\n'))
print('done')
"""
    result = online.python(code, allow=[], flags=settings(online, [OK], http=f"http://me:secret@127.0.0.1:{parent.port}"))
    assert result.out.endswith("done\n"), result
    assert parent.asked() == [f"CONNECT {OK}:80"]
    assert [r["path"] for r in online.net.requests] == ["/0", "/1", "/2"]
    assert not [k for r in online.net.requests for k, _ in r["headers"] if k == "proxy-authorization"]


def test_a_tunnel_in_which_the_server_speaks_first(online, parent):
    result = online.python(f"s, got = connect('{OK}:22'); print(got, until(s, b'\\n'))", allow=[],
                           flags=settings(online, [f"{OK}:22"], http=f"http://127.0.0.1:{parent.port}"))
    assert "SSH-2.0-far" in result.out and parent.asked() == [f"CONNECT {OK}:22"], result


@pytest.mark.parametrize("answer", [b"HTTP/1.1 407 Who?\r\nContent-Length: 0\r\n\r\n", b"HTTP/1.1 503 No\r\n\r\n",
                                    b"garbage\r\n\r\n", b"HTTP/1.1 200 OK"])
def test_when_it_refuses(online, parent, answer):
    parent.answer = answer
    result = online.python(f"s, got = connect('{OK}:443'); print(got, drain(s))", allow=[],
                           flags=settings(online, [OK], http=f"http://127.0.0.1:{parent.port}"))
    assert "HTTP/1.1 502" in result.out and "parent proxy" in result.out, result


def test_when_it_is_not_there_nothing_goes_around_it(online, parent):
    for listener in parent.listeners:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
    flags = settings(online, [OK], http=f"http://127.0.0.1:{parent.port}")
    for scheme in ("http", "https"):
        assert not online.curl("-f", f"{scheme}://{OK}/", allow=[], flags=flags).ok
    assert not online.net.reached() and not online.net.requests


# --- attacks ----------------------------------------------------------------------------------------------------------

# What one that is hostile answers to CONNECT; each has a port of its own.
HOSTILE = {
    "interim": b"HTTP/1.1 100 Continue\r\n\r\n" * 3000 + b"HTTP/1.1 200 OK\r\n\r\nyes", "switch": b"HTTP/1.1 101 Other\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\nyes",
    "elsewhere": b"HTTP/1.1 302 Go\r\nLocation: http://second.example.org/\r\nContent-Length: 0\r\n\r\n", "alternative": b"HTTP/1.1 401 No\r\nWWW-Authenticate: Basic\r\n\r\n",
    "long reason": b"HTTP/1.1 200 " + b"a" * 20000 + b"\r\n\r\nyes", "many fields": b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 20000 + b"\r\nyes",
    "no end": b"HTTP/1.1 200 OK\r\nX: " + b"y" * 200000, "LF": b"HTTP/1.1 200 OK\n\nyes", "status": b"HTTP/1.1 2000 OK\r\n\r\nyes", "version": b"HTTP/2 200\r\n\r\nyes",
    "NUL": b"HTTP/1.1 200 OK\r\nX: \0\r\n\r\nyes", "the same": b"HTTP/1.1 304 Same\r\n\r\nyes", "nothing": b"",
}


def test_whatever_it_answers_to_connect(online, parent):
    """No tunnel but by a plain 2xx, nothing dialled instead, and the next one is served."""
    ports = dict(zip(HOSTILE, range(9001, 9100)))
    well = [9101, 9102]
    by_port = {str(port).encode(): HOSTILE[name] for name, port in ports.items()}
    length = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"      # which means nothing there (RFC 9110, 9.3.6)
    parent.page = lambda head: by_port.get(re.search(rb":(\d+) ", head)[1], length + b"yes")
    result = online.python(f"""
for port in {[*ports.values(), *well]!r}:
    s, got = connect('{OK}:%d' % port); print(port, repr(got.split('\\r\\n')[0] if isinstance(got, str) else got), repr(drain(s)), flush=True)
""", allow=[], flags=settings(online, [f"{OK}:{port}" for port in (*ports.values(), *well)], http=f"http://127.0.0.1:{parent.port}"), timeout=120)
    said = dict(line.split(" ", 1) for line in result.out.splitlines())
    for name, port in ports.items():
        assert "yes" not in said[str(port)] and "502" in said[str(port)], (name, said[str(port)])
    assert all("yes" in said[str(port)] for port in well), said
    assert not online.net.reached() and not online.net.requests and len(parent.heads) == len(ports) + len(well), parent.asked()


def test_it_is_not_led_to_show_what_it_was_sent(online, parent):
    """With "Max-Forwards: 0" (RFC 9110, 7.6.2) TRACE would be answered by the parent, with the name and password in it."""
    word = base64.b64encode(b"me:secret").decode()
    code = f"""
s = socket.create_connection(P)
s.sendall(b'TRACE http://{OK}/ HTTP/1.1\\r\\nHost: {OK}\\r\\nmax-Forwards: 0\\r\\nConnection: close\\r\\n\\r\\n')
print(drain(s))
"""
    result = online.python(code, allow=[], flags=settings(online, [OK], http=f"http://me:secret@127.0.0.1:{parent.port}"))
    assert "HTTP/1.1" in result.out and word not in result.out, result
    assert parent.asked() == [f"TRACE http://{OK}/"] and word in parent.heads[0], parent.heads
    assert "max-forwards" not in parent.heads[0].lower()


SHOWN = base64.b64encode(b"me:?>~???s").decode()        # with "+", "/" and "="


@pytest.mark.parametrize("spell", [lambda text: text, lambda text: urllib.parse.quote(text, safe=""),
                                   lambda text: "".join(f"&#{ord(c)};" for c in text)], ids=["plain", "percent", "html"])
def test_its_own_pages_do_not_show_what_it_was_sent(online, parent, spell):
    """Squid before 7.2 has the whole request in those that say what failed (CVE-2025-62168)."""
    def page(head):
        body = f"<a href='mailto:?body={spell(head.decode())}'>it did not work</a>\n".encode()
        return b"HTTP/1.1 503 No\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s" % (len(body), body)

    parent.page = page
    result = online.curl("--compressed", f"http://{OK}/a", allow=[],
                         flags=settings(online, [OK], http=f"http://me:%3F%3E%7E%3F%3F%3Fs@127.0.0.1:{parent.port}"))
    assert SHOWN in parent.heads[0] and "accept-encoding: identity\r\n" in parent.heads[0].lower(), parent.heads
    assert spell("Basic ") in result.out and "it did not work" in result.out, result
    assert spell(SHOWN) not in result.out and spell(SHOWN[:8]) not in result.out, result


@pytest.mark.parametrize("answer", [f"HTTP/1.1 302 Go\r\nLocation: /?{SHOWN}\r\nContent-Length: 0\r\n\r\n",
                                    f"HTTP/1.1 200 OK\r\nX: {SHOWN}\r\nContent-Length: 3\r\n\r\nyes",
                                    "HTTP/1.1 503 No\r\nContent-Encoding: gzip\r\nContent-Length: 3\r\n\r\nyes"])
def test_what_of_its_pages_does_not_pass(online, parent, answer):
    parent.answer = answer.encode()
    result = online.curl("-i", f"http://{OK}/a", allow=[],
                         flags=settings(online, [OK], http=f"http://me:%3F%3E%7E%3F%3F%3Fs@127.0.0.1:{parent.port}"))
    assert "HTTP/1.1 502" in result.out and SHOWN not in result.out and "yes" not in result.out, result


@pytest.mark.parametrize("status", ["302 Go", "404 Not Found", "407 Who?"])
def test_other_pages_pass_as_they_are(online, parent, status):
    parent.answer = f"HTTP/1.1 {status}\r\nX: y\r\nContent-Length: 0\r\n\r\n".encode()
    flags = settings(online, [OK], http=f"http://me:secret@127.0.0.1:{parent.port}")
    result = online.curl("-i", f"http://{OK}/a", allow=[], flags=flags)
    assert result.out.startswith(f"HTTP/1.1 {status}"), result
    parent.answer = f"HTTP/1.1 {status}\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nyes\r\n0\r\n\r\n".encode()
    assert online.curl(f"http://{OK}/a", allow=[], flags=flags).out == "yes"


def test_rules_hold_before_it_is_asked(online, parent):
    flags = settings(online, [OK], http=f"http://127.0.0.1:{parent.port}")
    for url in ("http://evil.example.org/", "https://evil.example.org/", "http://10.0.0.5/", "http://127.0.0.1/",
                "http://169.254.169.254/", "http://metadata.google.internal/", f"http://{OK}:{ECHO}/"):
        assert not online.curl("-f", url, allow=[], flags=flags).ok, url
    assert not parent.heads


@pytest.mark.parametrize("rules", [["**.example.org", "**.example.org:{port}", "127.0.0.1:{port}", f"{HOST4}:{{port}}"]])
def test_the_sandbox_does_not_reach_it(online, parent, rules):
    """It would open whatever it opens. By name, by address, through itself, around it: also when rules are that wide."""
    online.net.names["proxy.example.org"] = online.net.names["also.example.org"] = [("A", "127.0.0.1")]
    name = "proxy.example.org"
    for host in ("127.0.0.1", name):
        flags = settings(online, [rule.format(port=parent.port) for rule in rules],
                         http=f"http://{host}:{parent.port}", no_proxy="also.example.org")
        if host == name:        # the host's resolver knows it
            online.net.names[name] = [("A", "127.0.0.1")]
        parent.heads.clear()
        code = f"""
import concurrent.futures
hidden = b'GET http://evil.example.org/ HTTP/1.1\\r\\nHost: evil.example.org\\r\\n\\r\\n'
def absolute(at): return talk(P, get(at, 'http://%s:{parent.port}/' % at), 2)[:60]
def tunnel(at):
    s, got = connect('%s:{parent.port}' % at)
    return got, drain(s) if b' 200 ' in got and not s.sendall(hidden) else b''
def direct(at, port):
    try: return talk((at, port), hidden, 2)
    except OSError as e: return e
# most of them only wait for an answer that does not come: all at the same time
with concurrent.futures.ThreadPoolExecutor(16) as pool:
    tried = [(at, pool.submit(way, at, *more)) for at in ('{name}', 'also.example.org', '127.0.0.1', '{HOST4}')
             for way, *more in ((absolute,), (tunnel,), (direct, {parent.port}), (direct, 80))]
for at, one in tried: print(at, one.result())
print('done', len(tried))
"""
        result = online.python(code, allow=[], flags=flags)
        assert "done 16" in result.out, result
        assert not [head for head in parent.heads if "evil" in head], (parent.heads, result)
        assert not [r for r in online.net.requests if r["host"] != name], online.net.requests


@pytest.mark.parametrize("url", ["https://127.0.0.1:1", "socks5://127.0.0.1:1", "http://", "http://127.0.0.1:0",
                                 "http://127.0.0.1:99999", "http://127.0.0.1:1/path", "http://a%zz@127.0.0.1:1"])
def test_addresses_that_are_none(online, url):
    result = online.bare("policy", "check", settings(online, [OK], http=url)[1])
    assert result.code == 125 and "policy.network.parent" in result.err, result


def test_other_variables_do_not_matter(online, parent):
    """What the caller's environment says about proxies is not the policy."""
    words = ["env", f"http_proxy=http://127.0.0.1:{parent.port}", f"https_proxy=http://127.0.0.1:{parent.port}"]
    online.cloche = online.bare.behind(*online.net.words, *words)
    result = online.run(["/usr/bin/env", *NO_PROXY_VARIABLES, "/usr/bin/curl", "-sS", f"http://{OK}/"])
    assert result.out == f"hello {OK} /\n" and not parent.heads, result


def test_a_change_of_rules_leaves_what_goes_through_the_parent(online, tmp_path):
    """The parent's address, which is none that a rule would open, is not the host's."""
    parent = Parent(online.net)
    file = tmp_path / "settings.json"
    file.write_text(json.dumps({"network": {"allow": [OK, f"{OK}:{ECHO}"], "parent-proxy": {
        "http": f"http://{'u' * 190}:{'p' * 60}@127.0.0.1:{parent.port}"}}}), encoding="ascii")
    box = Obedient(online, allow=(), flags=["--settings", str(file)])
    assert box.do("tunnel()") == "b'one'"
    run = online.bare("net", "ls", "--json").json["runs"][0]["id"]
    assert online.bare("net", "allow", run, "other.example.org").ok
    assert box.do("[held[-1].sendall(b'two'), held[-1].recv(3)][1]") == "b'two'"
    box.finish()
