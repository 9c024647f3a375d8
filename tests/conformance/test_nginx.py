"""A real nginx in front of `cloche serve`, set up as docs/daemon.md says: every kind of route goes through it."""
import os
import re
import shutil
import socket
import time

import pytest

from helpers import mcp, places, requirement
from helpers.daemon import Daemon, Remote
from helpers.runner import wait_for
from helpers.websocket import Command, WebSocket

pytestmark = requirement("R61", "R62")
NAME = "agents.example.org"


def told():
    """The configuration that the page shows."""
    text = (places.REPO / "docs" / "daemon.md").read_text(encoding="utf-8")
    return re.search(r"```nginx\n(.*?)```", text, re.DOTALL).group(1)


class Front(Remote):
    """Asks for the name that nginx has."""

    def credential(self):
        return {**super().credential(), "Host": NAME}


@pytest.fixture
def proxy(cloche, tmp_path):
    """A daemon as its operator has it behind nginx: (the daemon, the same asked through nginx with an operator's token)."""
    program = shutil.which("nginx", path="/usr/sbin:/usr/bin")
    if program is None:
        pytest.skip("nginx is not installed in /usr")
    config = cloche.home / "serve.yaml"
    config.write_text(f"allowed-hosts: {NAME}\n", encoding="ascii")
    daemon = Daemon(cloche, "--config", str(config), path=cloche.home / "s", tcp=True)
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    server = told().replace("127.0.0.1:7700", "127.0.0.1:%d" % daemon.addresses()[0][1]).replace("listen 443 ssl;", f"listen 127.0.0.1:{port};")
    server = re.sub(r"\n *ssl_[^\n]*", "", server)
    where = cloche.tmp / "nginx"
    where.mkdir()
    paths = "".join(f"{kind}_temp_path {where}/{kind};\n" for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
    whole = where / "nginx.conf"
    whole.write_text(f"daemon off; master_process off; pid {where}/pid; error_log {where}/error.log;\nevents {{}}\n"
                     f"http {{\naccess_log off;\n{paths}{server}}}\n", encoding="ascii")
    process = cloche.start([program, "-c", whole, "-e", where / "error.log"])
    assert wait_for(lambda: answers(port) or process.poll() is not None) and process.poll() is None, process.communicate()
    front = Front(daemon, ("127.0.0.1", port), daemon.token(), None, None)
    yield front
    process.terminate()
    process.wait(60)
    shutil.rmtree(where)
    assert daemon.stop() == 0, daemon.log


def answers(port):
    try:
        socket.create_connection(("127.0.0.1", port), 5).close()
        return True
    except OSError:
        return False


def test_every_kind_of_route(proxy):
    assert proxy.get("/ready").ok and proxy.get("/v1/health").ok
    box = proxy.create(name="one")
    big = os.urandom(8 << 20)
    assert box.put("c d%.bin", big).ok and box.read("c d%.bin").body == big
    ran = box.exec("echo out; echo err >&2; exit 3")
    assert (ran["stdout"], ran["stderr"], ran["exit_code"]) == ("out\n", "err\n", 3), ran
    stream = box.stream("echo first; read -r x; echo never")
    assert next(stream)[0] == "stdout", "events come when they happen"
    stream.close()
    ws = WebSocket(socket.create_connection(proxy.address), f"{box.at}/exec/ws", headers=[f"Authorization: Bearer {proxy.secret}"])
    c = Command.over(ws, "while read -r line; do echo \"got $line\"; done")
    c.ws.stdin("one\n")
    c.until("got one\n")
    c.stdin_end()
    assert c.end()["exit_code"] == 0
    client = mcp.Client(proxy, token=proxy.secret)
    assert client.call("code_execute", sandbox_id=box.id, language="shell", code="echo mcp")["stdout"] == "mcp\n"
    assert proxy.get("/api/sandbox/status").status in (200, 404)
    assert box.delete().ok


def test_who_goes_takes_the_command_along(proxy):
    """nginx ends its side when its client does."""
    box = proxy.create()
    stream = box.stream("echo here; exec sleep 654")
    assert next(stream)[0] == "stdout"
    assert wait_for(lambda: proxy.daemon.processes("sleep"), 60)
    stream.close()
    assert wait_for(lambda: not proxy.daemon.processes("sleep"), 60)


def test_a_slow_client_holds_up_nobody(proxy):
    box = proxy.create()
    slow = []
    for _ in range(60):
        s = socket.create_connection(proxy.address, 60)
        s.sendall(f"PUT {box.at}/files/x HTTP/1.1\r\nHost: {NAME}\r\nAuthorization: Bearer {proxy.secret}\r\nContent-Length: 1000\r\n\r\nx".encode())
        slow.append(s)
    began = time.monotonic()
    assert box.exec("echo quick")["stdout"] == "quick\n" and time.monotonic() - began < 30
    for s in slow:
        s.close()
