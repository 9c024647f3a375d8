"""The protocol's own conformance suite, against the daemon on TCP: nothing that it asks for may fail.

The daemon is the real one; its adapter is a build that has, beside its own tools, those that the suite calls
(tests/lib/mcp_fixtures.c). The suite knows no credentials, so a small proxy adds a token to each of its requests.
"""
import json
import re
import socket
import subprocess
import threading

import pytest

from helpers import npm, requirement
from helpers.daemon import Daemon, other_adapter, token

pytestmark = requirement("R85")
SUITE = "@modelcontextprotocol/conformance@0.2.0-alpha.12"


class Proxy:
    """TCP on loopback to TCP on loopback: one request a connection, with a token, for the port that is behind it."""

    def __init__(self, port, secret):
        self.behind, self.secret = port, secret
        self.server = socket.create_server(("127.0.0.1", 0))
        self.port = self.server.getsockname()[1]
        threading.Thread(target=self.run, daemon=True).start()

    def run(self):
        while True:
            try:
                client, _ = self.server.accept()
            except OSError:
                return
            threading.Thread(target=self.serve, args=(client,), daemon=True).start()

    def serve(self, client):
        head = b""
        while b"\r\n\r\n" not in head:
            piece = client.recv(65536)
            if not piece:
                client.close()
                return
            head += piece
        head, rest = head.split(b"\r\n\r\n", 1)
        lines = [line for line in head.replace(b":%d" % self.port, b":%d" % self.behind).split(b"\r\n")
                 if not line.lower().startswith((b"connection:", b"authorization:"))]
        lines[1:1] = [b"Connection: close", b"Authorization: Bearer " + self.secret.encode()]
        server = socket.create_connection(("127.0.0.1", self.behind))
        server.sendall(b"\r\n".join(lines) + b"\r\n\r\n" + rest)
        threading.Thread(target=self.pump, args=(client, server), daemon=True).start()
        self.pump(server, client)
        for one in (server, client):
            one.close()

    @staticmethod
    def pump(one, other):
        try:
            while piece := one.recv(65536):
                other.sendall(piece)
        except OSError:
            pass
        try:
            other.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass

    def close(self):
        self.server.shutdown(socket.SHUT_RDWR)
        self.server.close()


@pytest.fixture
def url(cloche, world):
    """Of a daemon with the other adapter."""
    with other_adapter(cloche, world, "mcp_adapter"):
        daemon = Daemon(cloche, "--rate-limit", "10000", tcp=True)
        port = int(re.search(rb"tcp:127\.0\.0\.1:(\d+)", daemon.heard)[1])
        proxy = Proxy(port, token(daemon, "agent")["token"])
        yield f"http://127.0.0.1:{proxy.port}/mcp"
        proxy.close()
        assert daemon.stop() == 0, daemon.log


@pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])
def test_the_suite(url, revision, tmp_path):
    folder = npm.packages(SUITE)
    expected = tmp_path / "none.yml"
    expected.write_text("server: []\n", encoding="ascii")
    done = subprocess.run([npm.node(), folder / "node_modules/@modelcontextprotocol/conformance/dist/index.js", "server", "--url", url,
                           "--requirements", revision, "--expected-failures", expected, "-o", tmp_path / "results"], cwd=tmp_path,
                          capture_output=True, text=True, timeout=900, check=False)
    checks = [check for file in (tmp_path / "results").rglob("checks.json") for check in json.loads(file.read_text())]
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-3000:]
    assert len(checks) > 40 and sum(c["status"] == "SUCCESS" for c in checks) > 40
