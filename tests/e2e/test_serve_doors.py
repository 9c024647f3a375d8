"""cloche serve: what it listens on, and who is let in: TCP, TLS, Host and Origin, sockets that are passed in."""
import json
import os
import signal
import socket
import ssl
import subprocess
import time

import pytest

from helpers import requirement
from helpers.daemon import Daemon, caller
from helpers.runner import wait_for

pytestmark = requirement("R61", "R67")
LOOPBACK = ["--listen", "tcp:127.0.0.1:0"]


def has_ipv6():
    try:
        with socket.socket(socket.AF_INET6) as s:
            s.bind(("::1", 0))
        return True
    except OSError:
        return False


@pytest.fixture
def serve(cloche):
    """Daemons of this test's own, each with a unix socket for its owner; all end with it."""
    made = []

    def start(*flags):
        path = cloche.home / f"s{len(made)}"
        made.append(Daemon(cloche, "--listen", f"unix:{path}", "--state-dir", str(cloche.home / f"state{len(made)}"), *flags,
                           path=path))
        return made[-1]
    yield start
    for daemon in made:
        assert daemon.stop() == 0, daemon.log


@pytest.fixture
def daemon(serve):
    return serve(*LOOPBACK)


# --- TCP --------------------------------------------------------------------------------------------------------------

def test_over_tcp_a_credential_opens_and_nothing_else(daemon):
    stranger, operator = daemon.remote(), daemon.remote(daemon.token())
    assert len(daemon.processes("cloche-front")) == 2
    assert stranger.get("/v1/health").ok
    for method, path in (("GET", "/v1/sandboxes"), ("POST", "/v1/sandboxes"), ("POST", "/v1/kill"), ("GET", "/v1/events"),
                         ("GET", "/api/sandbox/status"), ("POST", "/v1/tokens"), ("GET", "/v1/tokens")):
        answer = stranger(method, path, {} if method == "POST" else None)
        assert answer.status == 401, (method, path, answer)
    assert daemon.get("/v1/sandboxes?state=all").json["sandboxes"] == []
    box = operator.create(name="far")
    assert box.exec("echo hello")["stdout"] == "hello\n" and daemon.get("/v1/sandboxes/far").json["id"] == box.id


def test_without_a_tcp_address_there_is_no_front_for_strangers(serve):
    daemon = serve()
    assert daemon.addresses() == [] and len(daemon.processes("cloche-front")) == 1


def test_several_addresses_and_the_ports_that_were_found(serve, cloche):
    flags = ["--listen", "tcp:127.0.0.1:0", "--listen", "tcp:127.0.0.2:0"]
    if has_ipv6():
        flags += ["--listen", "tcp:[::1]:0"]
    daemon = serve(*flags, "--json")
    ready = json.loads(daemon.process.stdout.readline())
    assert ready["pid"] == daemon.process.pid and len(ready["listening"]) == len(flags) // 2 + 1, ready
    assert ready["listening"][0] == f"unix:{daemon.path}" and not any(":0" == a[-2:] for a in ready["listening"])
    for address in daemon.addresses():
        assert daemon.remote(address=address).get("/v1/health").ok, address


def test_a_port_that_is_taken_is_said(cloche):
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        s.listen()
        result = cloche("serve", "--listen", f"tcp:127.0.0.1:{s.getsockname()[1]}")
    assert result.code == 125 and "[serve.listen]" in result.err and "another process listens there" in result.err, result


@pytest.mark.parametrize("address", ["tcp:0.0.0.0:0", "tcp:192.0.2.1:8080", "tcp:[::]:0"])
def test_what_others_reach_needs_tls(cloche, address):
    result = cloche("serve", "--listen", address)
    assert result.code == 125 and "[serve.listen.open]" in result.err and "tls-cert" in result.err, result


def test_a_front_that_dies_leaves_the_other_alone(daemon):
    fronts = daemon.processes("cloche-front")
    strangers = [pid for pid in fronts if b"strangers" in open(f"/proc/{pid}/cmdline", "rb").read()]
    box, remote = daemon.create(), daemon.remote(daemon.token())
    running = box.stream("echo here; exec sleep 600")
    assert next(running) == ("stdout", {"data": "here\n"})
    os.kill(strangers[0], 9)
    daemon.hear(b"started again")
    assert wait_for(lambda: len(daemon.processes("cloche-front")) == 2)
    assert remote.get(box.at).json["state"] == "ready" and daemon.get(box.at).json["state"] == "ready"
    running.close()


# --- Host and Origin --------------------------------------------------------------------------------------------------

def ask(daemon, *headers, unix=False):
    """The status of GET /v1/health with these header lines and no other."""
    s = socket.socket(socket.AF_UNIX) if unix else socket.create_connection(daemon.addresses()[0])
    with s:
        if unix:
            s.connect(str(daemon.path))
        s.sendall(b"\r\n".join([b"GET /v1/health HTTP/1.1", *[h.encode() for h in headers], b"Connection: close", b"", b""]))
        text = b""
        while piece := s.recv(65536):
            text += piece
    status = int(text.split(b" ")[1])
    return (status, json.loads(text.split(b"\r\n\r\n", 1)[1])["code"]) if status == 403 else status


def test_a_name_that_a_stranger_gave_us_is_refused(serve):
    daemon = serve(*LOOPBACK, "--allowed-hosts", "box.example.org", "--allowed-hosts", "other.example.org:8443")
    port = daemon.addresses()[0][1]
    for well in ("localhost", f"localhost:{port}", f"127.0.0.1:{port}", "127.0.0.1", "LOCALHOST", "box.example.org", "localhost \t",
                 "box.example.org:1", "other.example.org:8443"):
        assert ask(daemon, f"Host: {well}") == 200, well
    for bad in ("evil.example", f"evil.example:{port}", "127.0.0.2", "other.example.org", "localhost.evil.example",
                f"127.0.0.1.evil.example:{port}", "10.0.0.1", "[::1]", "localhost, evil.example", "localhost:99999", ""):
        assert ask(daemon, f"Host: {bad}") == (403, "http.host"), bad
    assert ask(daemon, "Host: localhost", "Host: evil.example") in (400, (403, "http.host"))
    assert ask(daemon, "Host: evil.example", "Host: localhost") in (400, (403, "http.host"))
    assert ask(daemon) == 400
    assert ask(daemon, "Host: anything", unix=True) == 200


def test_a_page_of_another_site_is_refused(serve):
    daemon = serve(*LOOPBACK, "--allowed-origins", "https://console.example.org")
    port = daemon.addresses()[0][1]
    own = f"Host: localhost:{port}"
    for well in (f"http://localhost:{port}", "https://console.example.org", "https://console.example.org:443"):
        assert ask(daemon, own, f"Origin: {well}") == 200, well
    for bad in ("http://evil.example", "null", f"https://localhost:{port}", "http://localhost", f"http://127.0.0.1:{port}",
                "http://console.example.org", "https://console.example.org.evil.example", "https://console.example.org:8443",
                "https://console.example.org/", ""):
        assert ask(daemon, own, f"Origin: {bad}") == (403, "http.origin"), bad
    assert ask(daemon, own, "Origin: https://console.example.org", "Origin: http://evil.example") == (403, "http.origin")
    assert ask(daemon, "Host: x", "Origin: https://console.example.org", unix=True) == 200
    for bad in ("http://evil.example", "null", "http://x"):
        assert ask(daemon, "Host: x", f"Origin: {bad}", unix=True) == (403, "http.origin"), bad


def target(daemon, line, *headers, unix=False):
    """The status of a request of that line, and what it says."""
    s = socket.socket(socket.AF_UNIX) if unix else socket.create_connection(daemon.addresses()[0])
    with s:
        if unix:
            s.connect(str(daemon.path))
        s.sendall("\r\n".join([line, *headers, "Connection: close", "", ""]).encode())
        text = b""
        while piece := s.recv(65536):
            text += piece
    return int(text.split(b" ")[1]), text.split(b"\r\n\r\n", 1)[1]


def test_a_target_may_be_a_whole_url(serve):
    """RFC 9112, 3.2.2; of the name that Host says too, and of no other."""
    daemon = serve(*LOOPBACK, "--allowed-hosts", "box.example.org")
    port = daemon.addresses()[0][1]
    for unix in (False, True):
        for url, host in ((f"http://localhost:{port}/v1/health", f"localhost:{port}"), ("HTTP://LocalHost/v1/health?x=1", "localhost:80"),
                          ("http://box.example.org:80/v1/health", "Box.example.org"), ("http://127.0.0.1/v1/%68ealth", "127.0.0.1")):
            status, body = target(daemon, f"GET {url} HTTP/1.1", f"Host: {host}", unix=unix)
            assert status == 200 and json.loads(body)["status"] == "ok", (url, host)
        assert target(daemon, "GET http://localhost HTTP/1.1", "Host: localhost", unix=unix)[0] == 404     # "/"
        assert target(daemon, "GET http://localhost?a HTTP/1.1", "Host: localhost", unix=unix)[0] == 404
        for url, host in (("http://evil.example/v1/health", "localhost"), ("http://localhost:1/v1/health", "localhost:2"),
                          ("https://localhost/v1/health", "localhost"), ("http://localhost@evil.example/v1/health", "localhost"),
                          ("http://evil.example@localhost/v1/health", "localhost"), ("http://localhost\\.evil.example/v1/health", "localhost"),
                          ("http:///v1/health", "localhost"), ("http:localhost/v1/health", "localhost"), ("//localhost/v1/health", "localhost"),
                          ("ftp://localhost/v1/health", "localhost"), ("http://localhost:/v1/health", "localhost"), ("localhost/v1/health", "localhost"),
                          ("http://localhost%2f/v1/health", "localhost"), ("http://", "localhost"), ("*", "localhost")):
            status, body = target(daemon, f"GET {url} HTTP/1.1", f"Host: {host}", unix=unix)
            assert status in (400, 404) and b'"ok"' not in body, (url, host, status, body)
    for url, host in (("http://evil.example/v1/health", "evil.example"), ("http://localhost.evil.example/v1/health", "localhost.evil.example")):
        assert target(daemon, f"GET {url} HTTP/1.1", f"Host: {host}")[0] == 403     # they agree, and are not ours
    status, body = target(daemon, "GET http://localhost/v1/health HTTP/1.1", "Host: localhost", "Origin: http://evil.example")
    assert status == 403 and json.loads(body)["code"] == "http.origin"
    assert target(daemon, "GET http://localhost/v1/sandboxes HTTP/1.1", "Host: localhost")[0] == 401


def test_what_is_refused_for_its_origin_has_done_nothing(daemon):
    answer = daemon("POST", "/v1/sandboxes", {"name": "theirs"}, {"Origin": "http://evil.example"})
    assert answer.status == 403 and answer.json["code"] == "http.origin" and answer.json["detail"], answer
    assert daemon.get("/v1/sandboxes?state=all").json["sandboxes"] == []
    api = daemon("GET", "/api/sandbox/status", None, {"Origin": "http://evil.example"})
    assert api.status == 403 and set(api.json) == {"error"}, api


# --- limits -----------------------------------------------------------------------------------------------------------

def test_requests_of_one_credential_are_counted(serve):
    daemon = serve(*LOOPBACK, "--rate-limit", "1")
    greedy, modest = daemon.remote(daemon.token()), daemon.remote(daemon.token("agent"))
    answers = []
    assert wait_for(lambda: answers.append(greedy.get("/v1/sandboxes")) or answers[-1].status == 429, 30, every=0)
    assert answers[0].ok and answers[-1].json["code"] == "http.rate" and int(answers[-1].headers["Retry-After"]) >= 1
    assert wait_for(lambda: greedy.get("/v1/sandboxes").ok, 30, every=0.2)
    assert all(daemon.get("/v1/sandboxes").ok for _ in range(20))       # the owner is not counted
    assert wait_for(lambda: modest.get("/v1/sandboxes").ok, 30, every=0.2)


def test_who_guesses_is_slowed_and_who_knows_is_not(serve):
    daemon = serve(*LOOPBACK, "--rate-limit", "1")
    known = daemon.remote(daemon.token())
    assert known.get("/v1/sandboxes").ok

    def guess(n):
        return daemon.remote(f"cloche_operator_{n:064x}").get("/v1/sandboxes").status
    seen = [guess(n) for n in range(40)]
    assert set(seen) == {401, 429} and seen[0] == 401, seen
    assert known.get("/v1/sandboxes").ok


def idle(address, n):
    """That many connections that say nothing, as many as there are descriptors for."""
    held = []
    for _ in range(n):
        try:
            held.append(socket.create_connection(address))
        except OSError:
            break
    return held


def test_idle_connections_of_strangers_stop_nobody(daemon):
    """5,000, where the limit of open files of this test and of the daemon has room for them."""
    import resource
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    remote, box = daemon.remote(daemon.token()), daemon.create()
    held = []
    try:
        held = idle(daemon.addresses()[0], 5000)
        print(f"{len(held)} idle connections")
        assert len(held) == min(5000, hard - 256) or len(held) > 500
        assert remote.get(box.at).ok and box.exec("echo through")["stdout"] == "through\n"
        assert remote("POST", f"{box.at}/exec", {"command": "echo too"}).json["stdout"] == "too\n"
        held += idle(daemon.addresses()[0], 2500)       # beyond what it keeps: the oldest make room
        assert remote.get(box.at).ok
    finally:
        for s in held:
            s.close()
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert remote.get(box.at).ok and "started again" not in daemon.heard.decode()


@pytest.mark.parametrize("said", [b"", b"GET /v1/health HT", b"POST /v1/sandboxes HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\n{"])
def test_a_client_that_does_not_go_on_is_let_go(serve, said):
    daemon = serve(*LOOPBACK, "--client-timeout", "1s")
    with socket.create_connection(daemon.addresses()[0]) as s:
        s.settimeout(60)
        s.sendall(said)
        while s.recv(65536):        # maybe an answer, and then the end
            pass
    with socket.socket(socket.AF_UNIX) as s:
        s.settimeout(60)
        s.connect(str(daemon.path))
        s.sendall(said)
        while s.recv(65536):
            pass


# --- sockets that are passed in ---------------------------------------------------------------------------------------

def passing(cloche, sockets, *flags, names=None):
    """cloche serve with those sockets from descriptor 3 on, as systemd passes them (sd_listen_fds(3))."""
    def put():
        high = [os.dup(s.fileno()) for s in sockets]
        for i, fd in enumerate(high):
            os.dup2(fd, 3 + i)
    env = f"LISTEN_FDS={len(sockets)}" + (f" LISTEN_FDNAMES={names}" if names else "")
    argv = ["/bin/sh", "-c", f'LISTEN_PID=$$ {env} exec "$@"', "sh", *map(str, cloche.argv("serve", *flags))]
    return subprocess.Popen(argv, preexec_fn=put, pass_fds=[3 + i for i in range(len(sockets))], env=cloche.env,
                            cwd=cloche.cwd, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


class Passed(Daemon):
    def __init__(self, cloche, sockets, *flags, path=None):
        self.sockets = sockets
        super().__init__(cloche, *flags, path=path)

    def start(self):
        self.process = passing(self.cloche, self.sockets, *self.flags, names="api:tcp")
        self.heard = b""
        self.hear(b"serving on")
        return self


def test_sockets_that_are_passed_in_are_used(cloche):
    path = cloche.home / "passed"
    with socket.socket(socket.AF_UNIX) as unix, socket.socket() as tcp:
        unix.bind(str(path))
        unix.listen()
        tcp.bind(("127.0.0.1", 0))
        tcp.listen()
        early = socket.create_connection(tcp.getsockname())     # before anybody serves: it waits
        early.sendall(b"GET /v1/health HTTP/1.0\r\nHost: localhost\r\n\r\n")
        daemon = Passed(cloche, [unix, tcp], path=path)
        assert f"unix:{path}" in daemon.heard.decode() and daemon.addresses() == [tcp.getsockname()]
        assert early.recv(12).startswith(b"HTTP/1.")
        early.close()
        assert daemon.get("/v1/health").ok and daemon.remote().get("/v1/sandboxes").status == 401
        assert not (cloche.state / "cloche" / "serve" / "api.sock").exists()
        seen = daemon.create().exec("env; ls /proc/self/fd")["stdout"]
        assert "LISTEN_" not in seen and "NOTIFY_" not in seen, seen
        assert daemon.stop() == 0
    assert path.exists()        # it is not ours to remove


def test_what_is_no_listening_socket_is_refused(cloche):
    a, b = socket.socketpair()
    datagram, mute = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM), socket.socket()
    opened = socket.socket()
    opened.bind(("0.0.0.0", 0))
    opened.listen()
    for s, code in ((a, "serve.passed"), (datagram, "serve.passed"), (mute, "serve.passed"), (opened, "serve.listen.open")):
        process = passing(cloche, [s])
        _, err = process.communicate(timeout=60)
        assert process.returncode == 125 and f"[{code}]".encode() in err, err
    for s in (a, b, datagram, mute, opened):
        s.close()


# --- TLS --------------------------------------------------------------------------------------------------------------

def certificate(folder, name, *names):
    """(certificate, key) for those names, signed by itself."""
    cert, key = folder / f"{name}.pem", folder / f"{name}.key"
    said = ",".join(f"IP:{n}" if n[0].isdigit() else f"DNS:{n}" for n in names)
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-keyout", key,
                    "-out", cert, "-days", "2", "-subj", f"/CN={name}", "-addext", f"subjectAltName={said}"],
                   check=True, capture_output=True)
    key.chmod(0o600)
    return cert, key


def trusting(cert):
    return ssl.create_default_context(cafile=str(cert))


@requirement("R67")
def test_tls(serve, cloche):
    cert, key = certificate(cloche.home, "box", "localhost", "127.0.0.1")
    daemon = serve(*LOOPBACK, "--tls-cert", str(cert), "--tls-key", str(key))
    operator = daemon.remote(daemon.token(), context=trusting(cert), name="localhost")
    box = operator.create()
    assert box.exec("echo hello")["stdout"] == "hello\n"
    events = box.stream("for i in 1 2 3; do echo $i; done")
    assert "".join(d["data"] for e, d in events if e == "stdout") == "1\n2\n3\n"
    big = os.urandom(3 << 20)
    assert box.put("big", big).ok and box.read("big").body == big
    assert daemon.remote(context=trusting(cert), name="localhost").get("/v1/sandboxes").status == 401
    with pytest.raises(ssl.SSLError):       # the stranger's own trust is not ours
        daemon.remote(context=ssl.create_default_context(), name="localhost").get("/v1/health")
    for version, well in (("-tls1", False), ("-tls1_1", False), ("-tls1_2", True), ("-tls1_3", True)):
        hand = subprocess.run(["openssl", "s_client", "-connect", "%s:%d" % daemon.addresses()[0], version, "-cipher",
                               "ALL:@SECLEVEL=0"], stdin=subprocess.DEVNULL, capture_output=True, check=False, timeout=60)
        assert (hand.returncode == 0) == well, (version, hand)
    with socket.create_connection(daemon.addresses()[0]) as s:      # in the clear
        s.sendall(b"GET /v1/health HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert b"status" not in s.recv(4096)
    assert operator.get("/v1/health").ok


@requirement("R67")
def test_other_addresses_with_tls(serve, cloche):
    cert, key = certificate(cloche.home, "box", "localhost", "127.0.0.1")
    daemon = serve("--listen", "tcp:0.0.0.0:0", "--tls-cert", str(cert), "--tls-key", str(key), "--allowed-hosts", "localhost")
    address = ("127.0.0.1", daemon.addresses()[0][1])
    asked = daemon.remote(address=address, context=trusting(cert), name="localhost")
    assert asked.get("/v1/health").ok       # any address of ours is a name of ours
    assert asked("GET", "/v1/health", None, {"Host": "evil.example"}).status == 403


@requirement("R67", "R63")
def test_a_configuration_that_a_front_refuses_ends_no_grant(cloche):
    """Nor is the next one, which is good, refused for what the warden had against the first."""
    cert, key = certificate(cloche.home, "first", "localhost")
    _, other = certificate(cloche.home, "second", "localhost")
    good, rules = key.read_bytes(), cloche.home / "gate.yaml"
    rule = "gate: {rules: [{name: mine, tools: [code_execute], risk: HIGH, timeout: %s}]}\n"
    rules.write_text(rule % 60)
    path = cloche.home / "s"
    daemon = Daemon(cloche, "--listen", f"unix:{path}", *LOOPBACK, "--tls-cert", str(cert), "--tls-key", str(key), path=path, gate=rules)
    try:
        agent = caller(daemon, "agent")
        box = agent.create()
        told = agent("POST", f"{box.at}/exec", {"command": "echo 1"}, {"Prefer": "respond-async"})
        assert daemon.post(told.json["url"] + "/approve", {"scope": "caller", "expires": 3600}).ok
        key.write_bytes(other.read_bytes())
        rules.write_text(rule % 61)
        assert "configuration stays" in daemon.reload()
        assert len(daemon.get("/v1/grants").json["grants"]) == 1
        assert wait_for(lambda: box.exec("echo 2").get("stdout") == "2\n")
        # both refuse, and the warden says so when the next configuration has been read already
        (warden,) = daemon.processes("cloche-warden")
        os.kill(warden, signal.SIGSTOP)
        rules.write_text("gate: {rules: [{name: mine}]}\n")
        assert "configuration stays" in daemon.reload()
        key.write_bytes(good)
        rules.write_text(rule % 62)
        daemon.process.send_signal(signal.SIGHUP)
        time.sleep(0.3)
        os.kill(warden, signal.SIGCONT)
        assert "configuration stays" not in daemon.hear(b"was read again", b"configuration stays")
        assert wait_for(lambda: daemon.get("/v1/grants").json["grants"] == [])
        assert daemon.processes("cloche-warden") == [warden]
    finally:
        assert daemon.stop() == 0, daemon.log


@requirement("R67")
def test_a_new_certificate_counts_from_the_next_connection_on(serve, cloche):
    first, first_key = certificate(cloche.home, "first", "localhost")
    second, second_key = certificate(cloche.home, "second", "localhost")
    cert, key = cloche.home / "cert.pem", cloche.home / "key.pem"

    def put(c, k):
        cert.write_bytes(c.read_bytes())
        key.write_bytes(k.read_bytes())
        key.chmod(0o600)
    put(first, first_key)
    daemon = serve(*LOOPBACK, "--tls-cert", str(cert), "--tls-key", str(key))
    before, after = (daemon.remote(context=trusting(c), name="localhost") for c in (first, second))
    kept = before.connection()
    kept.request("GET", "/v1/health")
    assert kept.getresponse().read()
    put(second, second_key)
    assert "was read again" in daemon.reload()
    assert after.get("/v1/health").ok
    with pytest.raises(ssl.SSLError):
        before.get("/v1/health")
    kept.request("GET", "/v1/health")       # who was connected stays so
    assert kept.getresponse().read()
    kept.close()
    put(first, second_key)                  # not its key
    said = daemon.reload()
    assert "configuration stays" in said and "[serve.tls.refused]" in said, said
    assert after.get("/v1/health").ok
    key.unlink()
    assert "[serve.tls.read]" in daemon.reload() and after.get("/v1/health").ok
    os.kill([p for p in daemon.processes("cloche-front") if b"tls" in open(f"/proc/{p}/cmdline", "rb").read()][0], 9)
    daemon.hear(b"started again")           # with what it had, though the file is gone
    assert wait_for(lambda: len(daemon.processes("cloche-front")) == 2) and after.get("/v1/health").ok


@pytest.mark.parametrize("what, code", [("no-key", "serve.tls"), ("other-key", "serve.tls.refused"), ("no-pem", "serve.tls.pem"),
                                        ("absent", "serve.tls.read"), ("open", "serve.tls.mode")])
def test_certificates_that_are_refused(cloche, what, code):
    cert, key = certificate(cloche.home, "a", "localhost")
    if what == "other-key":
        key = certificate(cloche.home, "b", "localhost")[1]
    elif what == "no-pem":
        key.write_text("secret")
    elif what == "absent":
        cert = cloche.home / "none"
    elif what == "open":
        key.chmod(0o644)
    flags = ["--tls-cert", str(cert)] + ([] if what == "no-key" else ["--tls-key", str(key)])
    result = cloche("serve", *LOOPBACK, *flags)
    assert result.code == 125 and f"[{code}]" in result.err, result


# --- what is asked for in many ways -----------------------------------------------------------------------------------

@requirement("R43")
def test_readiness_is_said_as_systemd_hears_it(cloche):
    path = cloche.home / "notify"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as s:
        s.bind(str(path))
        s.settimeout(60)
        os.chmod(path, 0o777)
        cloche.env["NOTIFY_SOCKET"] = str(path)
        daemon = Daemon(cloche)
        assert s.recv(4096) == b"READY=1"
        daemon.reload()
        assert s.recv(4096).startswith(b"RELOADING=1\nMONOTONIC_USEC=") and s.recv(4096) == b"READY=1"
        assert daemon.stop() == 0 and s.recv(4096) == b"STOPPING=1"
