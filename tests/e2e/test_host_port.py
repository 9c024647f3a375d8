"""--allow-host-port: one service of this host's loopback is reached from inside (docs/network.md)."""
import contextlib
import http.server
import json
import socket
import threading

import pytest

from helpers import requirement
from helpers.daemon import Daemon, caller

pytestmark = requirement("R12", "R26")

NAMES = ("host.cloche.internal", "host.docker.internal")
GET = """
import sys, urllib.request
opener = urllib.request.build_opener(*([urllib.request.ProxyHandler({})] if sys.argv[1] == "direct" else []))
try:
    print(opener.open(sys.argv[2], timeout=60).read().decode(), end="")
except OSError as e:
    print("failed", getattr(e, "code", ""))
"""


class Server(http.server.ThreadingHTTPServer):
    def __init__(self, address):
        self.address_family = socket.AF_INET6 if ":" in address else socket.AF_INET
        super().__init__((address, 0), Handler)
        self.came = []
        threading.Thread(target=self.serve_forever, daemon=True).start()


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.server.came.append(self.headers["host"])
        body = b"this host's\n"
        self.send_response(200)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


@pytest.fixture
def servers():
    with contextlib.ExitStack() as stack:
        def make(address="127.0.0.1"):
            server = Server(address)
            stack.callback(server.server_close)
            stack.callback(server.shutdown)
            return server
        yield make


def get(cloche, url, *flags, how="proxy"):
    return cloche("run", *flags, "--", "/usr/bin/python3", "-c", GET, how, url, cwd="/")


@pytest.mark.parametrize("how", ["proxy", "direct"])
@pytest.mark.parametrize("address", ["127.0.0.1", "::1"])
def test_it_is_reached_by_both_names(cloche, servers, address, how):
    server = servers(address)
    port = server.server_port
    for name in (*NAMES, "Host.Docker.Internal."):
        result = get(cloche, f"http://{name}:{port}/", "--allow-host-port", port, how=how)
        assert result.out == "this host's\n", result
    log = cloche("net", "log", "--json").json["decisions"]
    assert {(d["verdict"], d["reason"], d["port"]) for d in log if d["port"]} == {("allow", "allow-host-port", port)}, log


@pytest.mark.parametrize("how", ["proxy", "direct"])
def test_nothing_else_of_the_host_is(cloche, servers, how):
    """The attack: with one service open, reach another one, by its port, its address, or a name for it."""
    server, other = servers(), servers()
    port = server.server_port
    for url in (f"http://host.cloche.internal:{other.server_port}/", f"http://x.host.docker.internal:{port}/",
                f"http://127.0.0.1:{port}/", f"http://localhost:{port}/", f"http://[::ffff:127.0.0.1]:{port}/",
                f"http://127.1:{port}/", f"http://cloche.internal:{port}/"):
        result = get(cloche, url, "--allow-host-port", port, "--allow-domain", "example.org:8443", how=how)
        assert result.out.startswith("failed"), (url, result)
    assert server.came == other.came == []


def test_it_is_closed_unless_it_is_named(cloche, servers):
    server = servers()
    port = server.server_port
    refused = cloche("run", "--allow-host-port", 1, "--", "/usr/bin/curl", "-sS", f"http://host.docker.internal:{port}/", cwd="/")
    assert "can open it with --allow-host-port" in refused.out, refused
    for flags in (("--allow-domain", f"host.docker.internal:{port}"), ("--allow-domain", f"*.docker.internal:{port}"),
                  ("--allow-host-port", port, "--deny-domain", "host.docker.internal"), ("--network", "allowlist"), ()):
        result = get(cloche, f"http://host.docker.internal:{port}/", *flags)
        assert result.out.startswith("failed"), (flags, result)
    assert server.came == []


def test_the_parent_proxy_is_not_a_service(cloche, servers, tmp_path):
    """The attack: the sandbox speaks to the proxy by itself, and asks it for what no rule names."""
    proxy = servers()
    for host in ("127.0.0.1", "localhost", "[::1]", "[::]", "proxy.example"):
        settings = tmp_path / "settings.yaml"
        settings.write_text(json.dumps({"network": {"host-ports": [proxy.server_port], "parent-proxy": {
            "http": f"http://{host}:{proxy.server_port}"}}}))
        settings.chmod(0o600)
        result = get(cloche, f"http://host.cloche.internal:{proxy.server_port}/", "--settings", settings)
        assert result.out.startswith("failed"), result
    assert proxy.came == []


def test_why_and_refusals(cloche):
    def why(*words):
        return cloche("why", "--json", *words).json
    assert why("--allow-host-port", 4000, "--host", "host.cloche.internal:4000")["reason"] == "allow-host-port"
    assert why("--allow-host-port", 4000, "--host", "host.cloche.internal:4001")["reason"] == "port-no-rule"
    closed = why("--host", "host.docker.internal:4000")
    assert closed["verdict"] == "denied" and "--allow-host-port 4000" in json.dumps(closed), closed
    for words, code in ((("--allow-host-port", "0"), "policy.port"), (("--allow-host-port", "127.0.0.1:80"), "policy.port"),
                        (("--allow-host-port", "65536"), "policy.port"),
                        (("--mode", "light", "--allow-host-port", "80"), "policy.network.light"),
                        (("--network", "host", "--allow-host-port", "80"), "policy.network.both"),
                        (("--network", "none", "--allow-host-port", "80"), "policy.network.closed")):
        result = cloche("run", *words, "--", "true")
        assert result.code == 125 and f"[{code}]" in result.err, result


@contextlib.contextmanager
def closing(daemon):
    try:
        yield daemon
    finally:
        assert daemon.stop() == 0, daemon.log


@pytest.mark.root
def test_an_agent_opens_none(cloche, servers):
    """It is its owner's to give; a ceiling that has the port lets agents have it, and no other."""
    server = servers()
    port, policy = server.server_port, {"network": {"host-ports": [server.server_port]}}
    settings = cloche.home / "settings.yaml"
    ask = ["python3", "-c", f"import urllib.request; print(end=urllib.request.urlopen('http://host.cloche.internal:{port}/').read().decode())"]
    settings.write_text(json.dumps(policy))
    with closing(Daemon(cloche)) as daemon:
        assert daemon.create(policy=policy).exec(ask)["stdout"] == "this host's\n"
        assert daemon.create().exec(ask)["exit_code"] != 0
        refused = caller(daemon, "agent")("POST", "/v1/sandboxes", {"policy": policy})
        assert refused.status == 403 and refused.json["code"] == "policy.ceiling", refused
    with closing(Daemon(cloche, "--settings", str(settings))) as daemon:
        agent = caller(daemon, "agent")
        assert agent("POST", "/v1/sandboxes", {"policy": policy}).ok
        refused = agent("POST", "/v1/sandboxes", {"policy": {"network": {"host-ports": [port, 22]}}})
        assert refused.status == 403 and refused.json["code"] == "policy.ceiling", refused
