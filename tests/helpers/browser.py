"""A client of Chrome's DevTools protocol, and the browser of a sandbox that it speaks to."""
import json
import os
import re
import socket
import subprocess
import urllib.request
from urllib.parse import urlsplit

import pytest

from helpers.websocket import TEXT, WebSocket

CHROMIUM = "/usr/lib/chromium/chromium"
MEMORY = "2g"
POLICY = {"limits": {"memory": MEMORY}, "allow-nested-user-namespaces": True}


def needed():
    if not os.path.exists(CHROMIUM):
        pytest.skip("chromium is not installed (400 MB of packages): apt-get install chromium")


class Page:
    """The first page of the browser of @box, spoken to with @headers."""

    def __init__(self, daemon, box, headers=()):
        pages = daemon("GET", f"{box.at}/browser/json/list", headers=dict(h.split(": ") for h in headers))
        assert pages.ok, pages
        url = next(p["webSocketDebuggerUrl"] for p in pages.json if p["type"] == "page")
        self.speak(WebSocket(daemon.path, urlsplit(url).path, headers=headers))

    def speak(self, over):
        self.socket = over
        assert self.socket.status == 101, self.socket.head
        self.n, self.events = 0, []

    def hear(self):
        opcode, data = self.socket.hear()
        assert opcode == TEXT
        return json.loads(data)

    def __call__(self, method, **params):
        self.n += 1
        self.socket.frame(TEXT, json.dumps({"id": self.n, "method": method, "params": params}).encode())
        while True:
            said = self.hear()
            if said.get("id") == self.n:
                assert "error" not in said, said
                return said["result"]
            self.events.append(said)

    def event(self, method):
        while not any(e.get("method") == method for e in self.events):
            self.events.append(self.hear())

    def go(self, url):
        """Its text, or why there is none."""
        self("Page.enable")
        self.events = []
        answer = self("Page.navigate", url=url)
        if "errorText" in answer:
            return f"error: {answer['errorText']}"
        if not answer.get("isDownload"):
            self.event("Page.loadEventFired")
        return self.run("document.documentElement.innerText")

    def run(self, code):
        said = self("Runtime.evaluate", expression=code, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in said, said
        return said["result"].get("value")

    def fetch(self, url):
        """What a page gets of it: its text, whatever its origin says, or "failed"."""
        return self.run(f"fetch({json.dumps(url)}, {{signal: AbortSignal.timeout(15000)}}).then(r => r.text()).catch(e => 'failed')")


class Own(Page):
    """A person's browser, outside of all sandboxes, as a context: for pages of ours alone."""

    def __init__(self, home):       # pylint: disable=super-init-not-called
        self.process = subprocess.Popen(        # pylint: disable=consider-using-with
            [CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run", "--disable-background-networking",
             "--disable-component-update", "--disable-sync", "--remote-debugging-port=0", f"--user-data-dir={home}/browser", "about:blank"],
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True, env={**os.environ, "HOME": str(home)})
        port = None
        while port is None:
            line = self.process.stderr.readline()
            assert line, f"chromium ended: {self.process.wait()}"
            port = re.match(r"DevTools listening on ws://127\.0\.0\.1:(\d+)/", line)
        with urllib.request.urlopen(f"http://127.0.0.1:{port[1]}/json/list") as answer:
            url = urlsplit(next(p["webSocketDebuggerUrl"] for p in json.load(answer) if p["type"] == "page"))
        self.speak(WebSocket(socket.create_connection((url.hostname, url.port)), url.path))

    def blank(self):
        self.go("about:blank")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()
        self.process.kill()
        self.process.communicate()
