"""A browser in a sandbox, by Chrome's DevTools protocol behind the sandbox's key (R49)."""
import json
import os
import subprocess
from urllib.parse import urlsplit

import pytest

from helpers import browser, images, npm, pypi, requirement
from helpers.browser import POLICY, Page
from helpers.daemon import Caller, Daemon, with_curl
from helpers.runner import wait_for
from helpers.websocket import WebSocket

pytestmark = [requirement("R49"), pytest.mark.slow]

SITE = b"""<!doctype html><title>test</title><h1 id=h>hello</h1><input id=i><button id=b onclick="h.textContent = 'pressed ' + i.value">go</button>
<a id=d href="data:application/octet-stream,kept" download="file.bin">get</a>"""


def site(box):
    box.put("site/index.html", SITE, "?parents=true")
    started = box.exec("cd site && setsid python3 -c '"
                       "import http.server, os; s = http.server.HTTPServer((\"127.0.0.1\", 8123), http.server.SimpleHTTPRequestHandler); "
                       "os.fork() and os._exit(0); s.serve_forever()' >/dev/null 2>&1")
    assert started["exit_code"] == 0, started
    return "http://127.0.0.1:8123/"


@pytest.fixture
def tcp(cloche):
    browser.needed()
    made = Daemon(cloche, path=cloche.home / "s", tcp=True)
    yield made
    assert made.stop() == 0, made.log


@pytest.fixture
def named(online):
    made = Daemon(online.cloche, *with_curl(online.bare), path=online.bare.state / "cloche" / "serve" / "api.sock")
    yield made
    assert made.stop() == 0, made.log


def test_a_page_is_driven_and_its_download_is_in_the_workspace(daemon):
    browser.needed()
    box = daemon.create(policy=POLICY)
    started = daemon.post(f"{box.at}/browser")
    assert started.ok and started.json["path"] == f"{box.at}/browser", started
    version = daemon.get(f"{box.at}/browser/json/version").json
    assert version["Browser"].startswith("Chrome/") and urlsplit(version["webSocketDebuggerUrl"]).path.startswith(f"{box.at}/browser/devtools/browser/")
    page = Page(daemon, box)
    assert page.go(site(box)).startswith("hello")
    page.run("i.value = 'by me'; b.click()")
    assert page.run("h.textContent") == "pressed by me"
    page.run("d.click()")
    assert wait_for(lambda: box.read("Downloads/file.bin").ok, 60) and box.read("Downloads/file.bin").body == b"kept"
    # a profile of this sandbox's, no file of it in the workspace
    assert "Downloads" in box.exec("ls -A")["stdout"].split() and not {".config", ".cache", ".pki"} & set(box.exec("ls -A")["stdout"].split())
    assert box.exec("test -d ~/.browser/Default")["exit_code"] == 0
    # its own sandbox is on: what runs a page is under one filter more than the browser
    seen = {"renderer": [], "plain": []}
    code = ("import glob, os, re\nfor p in glob.glob('/proc/[0-9]*/cmdline'):\n  words = open(p).read()\n"
            "  if not words.startswith('/usr/lib/chromium/chromium'): continue\n  s = re.search('Seccomp_filters:.(.*)', open(p[:-7] + 'status').read())[1]\n"
            "  print('renderer' if '--type=renderer' in words else 'other' if '--type' in words else 'plain', s, '--no-sandbox' in words)")
    for line in box.exec(["python3", "-c", code])["stdout"].splitlines():
        kind, filters, off = line.split()
        assert off == "False", line
        seen.setdefault(kind, []).append(int(filters))
    assert seen["renderer"] and seen["plain"] and min(seen["renderer"]) > max(seen["plain"]), seen
    assert box.delete().ok


def test_behind_the_key(tcp):
    box, other = tcp.create(policy=POLICY), tcp.create()
    remote = tcp.remote()
    at = f"{box.at}/browser/json/version"
    key, wrong = {"X-Sandbox-Key": box.record["key"]}, {"X-Sandbox-Key": other.record["key"]}
    assert remote.get(at).status == 401 and remote("GET", at, headers=wrong).status in (403, 404)
    said = remote("GET", at, headers=key)
    address = "%s:%d" % tcp.addresses()[0]
    assert said.ok and said.json["webSocketDebuggerUrl"].startswith(f"ws://{address}{box.at}/browser/devtools/browser/"), said
    path = urlsplit(said.json["webSocketDebuggerUrl"]).path
    door = remote.connection()
    for headers, status in (((), 401), ([f"X-Sandbox-Key: {other.record['key']}"], (403, 404)), ([f"X-Sandbox-Key: {box.record['key']}"], 101)):
        door.connect()
        socket = WebSocket(door.sock, path, headers=headers)
        assert socket.status == status or socket.status in (status if isinstance(status, tuple) else ()), (headers, socket.head)
    # what is no path of its DevTools is not asked
    assert remote("GET", f"{box.at}/browser/other", headers=key).status == 404
    assert remote("GET", f"{box.at}/browser/%6ason/version", headers=key).json["code"] == "browser.path"
    assert Caller(tcp, Origin="http://evil.example").get(at).status == 403
    # it is on record
    entries = tcp.get(f"/v1/audit?sandbox={box.id}&limit=1000").json["entries"]
    assert [e for e in entries if "browser" in json.dumps(e["metadata"])], entries


def test_without_one_it_is_said_what_to_do(daemon, tmp_path, cloche):
    made = images.layout(tmp_path / "image", [images.system("sh", "ls")], "plain:1")
    assert cloche("image", "import", str(made.path)).ok
    box = daemon.create(policy={"image": "plain:1"})
    answer = daemon.get(f"{box.at}/browser/json/version")
    assert answer.status == 409 and answer.json["code"] == "browser.missing" and "cloche image build browser" in answer.json["detail"], answer


@pytest.mark.root
def test_pages_come_by_name_only(online, named):
    browser.needed()
    daemon = named
    box = daemon.create(policy={**POLICY, "network": {"mode": "allowlist", "allow": ["ok.example.org"]}})
    page = Page(daemon, box)
    assert "hello ok.example.org /page" in page.go("http://ok.example.org/page")
    assert "hello" not in page.go("http://evil.example.org/page")
    assert online.net.asked() == {"ok.example.org"}


SCRIPT = """
    page.goto(site); page.fill("#i", "a script"); page.click("#b")
    assert page.text_content("#h") == "pressed a script", page.text_content("#h")
    page.screenshot(path=sys.argv[3])
"""
PLAYWRIGHT = f"""import sys
from playwright.sync_api import sync_playwright
url, key, site = sys.argv[1], sys.argv[2], sys.argv[4]
with sync_playwright() as p:
    browser = p.chromium.connect_over_cdp(url, headers={{"X-Sandbox-Key": key}})
    page = browser.contexts[0].new_page()
{SCRIPT}
    print(browser.version)
    browser.close()
"""
PUPPETEER = """
const puppeteer = require('puppeteer-core'), [url, key, shot, site] = process.argv.slice(2);
(async () => {
  const headers = { 'X-Sandbox-Key': key };
  const said = await (await fetch(url + '/json/version', { headers })).json();
  const browser = await puppeteer.connect({ browserWSEndpoint: said.webSocketDebuggerUrl, headers });
  const page = await browser.newPage();
  await page.goto(site); await page.type('#i', 'a script'); await page.click('#b');
  const text = await page.$eval('#h', e => e.textContent);
  if (text !== 'pressed a script') throw new Error(text);
  await page.screenshot({ path: shot });
  console.log(await browser.version());
  await browser.disconnect();
})().catch(e => { console.error(e); process.exit(1); });
"""


@pytest.mark.parametrize("client", ["playwright", "puppeteer"])
def test_clients_as_they_are(tcp, tmp_path, client):
    box = tcp.create(policy=POLICY)
    url = "http://%s:%d" % tcp.addresses()[0] + f"{box.at}/browser"
    args = [url, box.record["key"], str(tmp_path / "shot.png"), site(box)]
    if client == "playwright":
        (tmp_path / "script.py").write_text(PLAYWRIGHT)
        argv, env = [pypi.python_with("playwright==1.49.1"), tmp_path / "script.py", *args], {}
    else:
        folder = npm.packages("puppeteer-core@23.11.1")
        (tmp_path / "script.js").write_text(PUPPETEER)
        argv, env = [npm.node(), tmp_path / "script.js", *args], {"NODE_PATH": str(folder / "node_modules")}
    done = subprocess.run(list(map(str, argv)), env={**os.environ, **env}, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0 and done.stdout.strip(), done
    assert (tmp_path / "shot.png").read_bytes().startswith(b"\x89PNG"), "no screenshot"
