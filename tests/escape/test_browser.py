"""What a page in a sandbox's browser reaches: nothing of the host's, no metadata, no other sandbox (R49)."""
import http.server
import threading

import pytest

from helpers import browser, requirement
from helpers.browser import POLICY, Page
from helpers.daemon import Daemon, with_curl

pytestmark = [requirement("R49", "R02"), pytest.mark.root, pytest.mark.slow]

SECRET = "a secret of the host's loopback"
SERVER = ("import http.server, os\nclass H(http.server.BaseHTTPRequestHandler):\n  def do_GET(self):\n    self.send_response(200)\n"
          "    self.send_header('Access-Control-Allow-Origin', '*')\n    self.end_headers()\n    self.wfile.write(b'of the other sandbox')\n"
          "s = http.server.HTTPServer(('0.0.0.0', 8124), H)\nos.fork() and os._exit(0)\ns.serve_forever()")


class Handler(http.server.BaseHTTPRequestHandler):
    asked = []

    def do_GET(self):
        self.asked.append(self.path)
        self.send_response(200)
        self.send_header("Access-Control-Allow-Origin", "*")
        self.end_headers()
        self.wfile.write(SECRET.encode())

    def log_message(self, *args):           # pylint: disable=arguments-differ
        pass


@pytest.fixture
def loopback():
    """A server of the host's, that any page may read."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    Handler.asked.clear()
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server.server_address[1]
    server.shutdown()
    server.server_close()


@pytest.mark.parametrize("own_sandbox", [True, False], ids=["own-sandbox", "no-sandbox"])
def test_a_page_stays_in_its_sandbox(online, own_sandbox, loopback, bare, tmp_path):
    browser.needed()
    daemon = Daemon(online.cloche, *with_curl(online.bare), path=online.bare.state / "cloche" / "serve" / "api.sock")
    policy = {**POLICY, "allow-nested-user-namespaces": own_sandbox, "network": {"mode": "allowlist", "allow": ["ok.example.org"]}}
    try:
        box, other = daemon.create(policy=policy), daemon.create()
        assert other.exec(["python3", "-c", SERVER])["exit_code"] == 0
        there = "import urllib.request; print(urllib.request.urlopen('http://127.0.0.1:{}/').read().decode())"
        # the attacks are real: each place answers who is there
        assert SECRET in bare(there.format(loopback)).out and Handler.asked
        assert "of the other sandbox" in other.exec(["python3", "-c", there.format(8124)])["stdout"]
        hidden = tmp_path / "hidden"
        hidden.write_text("a file of the host's")
        Handler.asked.clear()

        page = Page(daemon, box)
        assert "hello ok.example.org" in page.go("http://ok.example.org/page")
        for host in (f"127.0.0.1:{loopback}", f"localhost:{loopback}", f"[::1]:{loopback}", f"host.docker.internal:{loopback}",
                     f"host.cloche.internal:{loopback}", "169.254.169.254", "[fd00:ec2::254]", "127.0.0.1:8124", "10.0.0.5", "evil.example.org"):
            assert SECRET not in page.fetch(f"http://{host}/latest/meta-data/")
            text = page.go(f"http://{host}/latest/meta-data/")
            assert SECRET not in text and "hello" not in text and "of the other" not in text, (host, text)
            page.go("http://ok.example.org/page")
        assert not Handler.asked and online.net.asked() == {"ok.example.org"}
        shadow = open("/etc/shadow", encoding="ascii").read()
        for path in ("/etc/shadow", str(hidden), "/proc/1/root/etc/shadow", "/root/", "/workspace/../../etc/shadow"):
            text = page.go(f"file://{path}")
            assert "a file of the host's" not in text and not any(line in text for line in shadow.splitlines() if line), (path, text)
    finally:
        stopped = daemon.stop()
    assert stopped == 0, daemon.log
