"""A person at the desktop of a sandbox: by RFB over the daemon's WebSocket, by its page, and by noVNC (docs/desktop.md)."""
import functools
import http.server
import json
import os
import threading

import pytest

from helpers import browser, desktop, requirement
from helpers.attach import session
from helpers.daemon import Caller, Daemon, caller
from helpers.desktop import events, until, window
from helpers.rfb import Viewer
from helpers.runner import wait_for
from helpers.websocket import WebSocket

pytestmark = [requirement("R48"), desktop.needed]

RED, BLACK = (255, 0, 0), (0, 0, 0)
NOVNC = "/usr/share/novnc"


@pytest.fixture
def desk(daemon):
    assert daemon.post("/api/sandbox/start").ok
    return daemon


@pytest.fixture
def tcp(cloche):
    made = Daemon(cloche, path=cloche.home / "s", tcp=True)
    assert made.post("/api/sandbox/start").ok
    yield made
    assert made.stop() == 0, made.log


def told(box, *kinds):
    return [e for e in events(box) if e[0] in kinds]


def refusal(path, uri, headers=()):
    """Of a WebSocket that is none: its status and code."""
    ws = WebSocket(path, uri, headers=headers)
    return ws.status, ws.refusal()["code"]


# --- looking and sitting there ----------------------------------------------------------------------------------------------


def test_seen_and_controlled(desk):
    box = window(desk)
    one = Viewer.of(desk, box)
    assert "sec-websocket-protocol: binary" in one.ws.head.lower() and (one.width, one.height) == (1280, 800)
    assert one.look().at(400, 350) == RED and one.at(1000, 700) == BLACK
    two = Viewer.of(desk, box, "control", subprotocol=None)
    assert "sec-websocket-protocol" not in two.ws.head.lower()
    two.press("a")
    two.click(310, 320)
    until(lambda: len(told(box, "release", "key-up")) >= 2)
    assert [e[:2] for e in told(box, "key", "key-up")] == [("key", 38), ("key-up", 38)]
    assert [e[:4] for e in told(box, "press", "release")] == [("press", 1, 310, 320), ("release", 1, 310, 320)]
    # both act: what the agent does is in the same place
    assert desk.post("/api/sandbox/computer/click", {"x": 350, "y": 350}).ok
    until(lambda: ("release", 1, 350, 350) in [e[:4] for e in told(box, "release")])
    two.close()
    assert one.look().at(400, 350) == RED
    one.close()


def test_it_outlives_the_time_of_a_command(daemon):
    """limits.time is for what an agent runs; what is looked at goes on."""
    box = daemon.create(policy={"limits": {"time": "2s"}})
    assert daemon.get(f"/api/sandbox/screen/windows?id={box.id}").json == {"windows": []}
    viewer = Viewer.of(daemon, box)
    assert box.exec("sleep 4", timeout_ms=60000)["exit_code"] == 0
    assert viewer.look().at(1, 1) == BLACK
    servers = {c["command"]: c["state"] for c in daemon.get(f"{box.at}/exec").json["commands"]}
    assert servers == {"Xvnc": "running", "openbox": "running"}, servers


def test_the_clipboard_does_not_leave(desk):
    """Neither of who looks nor of who sits there; and a text of who sits there comes in."""
    box = window(desk)
    viewers = [Viewer.of(desk, box, mode).look() for mode in ("view", "control")]
    assert desk.post("/api/sandbox/computer/action", {"action": "clipboard_set", "text": "a secret that was copied"}).ok
    for viewer in viewers:
        viewer.say(b"\6\0\0\0\0\0\0\5typed")
        for _ in range(3):
            viewer.look()
    assert [v.cut for v in viewers] == [[], []]
    until(lambda: desk.post("/api/sandbox/computer/action", {"action": "clipboard_get"}).json.get("text") == "typed", 20)
    assert [v.look().cut for v in viewers] == [[], []]


def test_what_stands_in_the_way_is_said(desk):
    box = desk.create(name="one")
    at = f"{box.at}/desktop/view"
    assert refusal(desk.path, at) == (409, "desktop.none")
    assert refusal(desk.path, at + "?mode=both") == (400, "desktop.mode")
    assert refusal(desk.path, "/v1/sandboxes/nobody/desktop/view") == (404, "sandbox.not-found")
    answer = desk.get(at)
    assert (answer.status, answer.json["code"]) == (426, "http.websocket"), answer
    assert desk.post(f"{box.at}/pause").ok
    assert refusal(desk.path, at)[0] == 409
    assert desk.post(f"{box.at}/resume").ok
    light = desk.create(name="two", policy={"mode": "light"})
    assert refusal(desk.path, f"{light.at}/desktop/view") == (409, "desktop.network")


# --- who ---------------------------------------------------------------------------------------------------------------------


def auth(credential):
    return [f"Authorization: Bearer {credential}"]


def test_a_session_is_for_a_person(desk):
    box = window(desk)
    one = session(desk, box, "view")
    assert one["mode"] == "view" and one["path"] == f"/desktop#view={one['token']}:{box.id}" and one["url"] is None, one
    viewer = Viewer(desk.path, f"/desktop/ws/{one['token']}", headers=["Origin: http://elsewhere.example"])
    assert viewer.look().at(400, 350) == RED
    by_header = Viewer.of(desk, box, headers=auth(one["token"]))
    assert by_header.look().at(400, 350) == RED
    assert [(s["id"], s["mode"]) for s in desk.get(f"{box.at}/attach").json["sessions"]] == [(one["id"], "view")]
    assert desk("DELETE", f"{box.at}/attach/sessions/{one['id']}").ok
    assert viewer.ended() == 1008 and by_header.ended() == 1008
    assert refusal(desk.path, f"/desktop/ws/{one['token']}") == (401, "auth.unknown")
    two = session(desk, box, "control")
    viewer = Viewer(desk.path, f"/desktop/ws/{two['token']}")
    viewer.press("a")
    until(lambda: ("key-up", 38) in [e[:2] for e in told(box, "key-up")])
    entries = wait_for(lambda: (found := desk.get(f"{box.at}/audit?limit=1000").json["entries"]) and "attach_over" in str(found) and found, 60)
    have = [e["metadata"] for e in entries]
    for name, mode, who in (("attach_ticket", "view", one), ("attach_opened", "view", one), ("attach_connected", "view", one), ("attach_closed", "view", one),
                            ("attach_over", "view", one), ("attach_opened", "control", two), ("attach_connected", "control", two)):
        assert [m for m in have if m.get("capability") == name and f"{who['id']}, {mode}" in m["detail"] and "the owner" in m["detail"]], (name, have)
    asked = [m for m in have if m.get("capability") == "desktop" and "attach_mode" in m]
    assert {(m["attach_mode"], m.get("session")) for m in asked} == {("view", one["id"]), ("control", two["id"])} and all(m["by"] for m in asked), asked
    assert "cloche_attach" not in json.dumps(have)


def test_credentials_of_programs(desk):
    """The sandbox's key and its agent; who has none, or may only read records, does not see it."""
    agent = caller(desk, "agent")
    box = agent.create(name="mine")
    assert agent.get(f"/api/sandbox/screen/windows?id={box.id}").json == {"windows": []}
    for who in (agent, Caller(desk, X_Sandbox_Key=box.record["key"])):
        viewer = Viewer.of(desk, box, headers=[f"{k}: {v}" for k, v in who.headers.items()])
        assert viewer.look().at(1, 1) == BLACK
        viewer.close()
    found = wait_for(lambda: [e["metadata"] for e in desk.get(f"{box.at}/audit?limit=1000").json["entries"] if "desktop" == e["metadata"].get("capability")
                              and e["metadata"].get("event") == "result"], 60)
    assert found
    for role, status in (("auditor", 403), ("approver", 403)):
        assert refusal(desk.path, f"{box.at}/desktop/view", auth(caller(desk, role).headers["Authorization"][7:])) == (status, "auth.role")


# --- the verb, the page, and noVNC -------------------------------------------------------------------------------------------


def test_the_verb(cloche, daemon):
    box = daemon.create(name="one")
    env = {"CLOCHE_SOCKET": str(daemon.path)}
    done = cloche("desktop", "one", "--control", "--for", "5m", env=env)
    assert done.ok and done.out.startswith("/desktop#control=cloche_attach_") and "no browser reaches it" in done.err, done
    viewer = Viewer(daemon.path, f"/desktop/ws/{done.out.strip().split('=')[1].split(':')[0]}")
    assert viewer.look().at(1, 1) == BLACK
    said = cloche("desktop", box.id, "--json", env=env)
    assert json.loads(said.out)["mode"] == "view", said
    listed = cloche("attach", "one", "ls", env=env)
    assert " control " in listed.out and " view " in listed.out, listed
    for words, code in (([], "cli.sandbox"), (["none"], "desktop.none"), (["one", "--for", "13h"], "cli.flag-value"), (["one", "two"], "cli.desktop.verb")):
        failed = cloche("desktop", *words, env=env)
        assert failed.code == 125 and f"[{code}]" in failed.err and not failed.out, failed


PIXEL = "(() => { const c = document.querySelector('canvas'); return c && c.width > 1 ? [...c.getContext('2d').getImageData(400, 350, 1, 1).data] : null; })()"


@pytest.fixture
def chromium(tmp_path):
    browser.needed()
    with browser.Own(tmp_path) as own:
        yield own


@pytest.mark.slow
def test_the_page_shows_it(cloche, tcp, chromium):
    box = window(tcp)
    host, port = tcp.addresses()[0]
    for flags, say in (([], "You see"), (["--control"], "You have")):
        url = cloche("desktop", box.id, *flags, env={"CLOCHE_SOCKET": str(tcp.path)}).out.strip()
        assert url.startswith(f"http://{host}:{port}/desktop#"), url
        chromium.blank()
        chromium.go(url)
        assert wait_for(lambda: chromium.run(PIXEL) == [255, 0, 0, 255], 120), chromium.run("document.body.innerText")
        assert chromium.run("document.getElementById('say').textContent").startswith(say)
        # what is drawn below it may look like anything: whose it is is seen however it is scrolled
        said = chromium.run("document.querySelector('strong').innerText")
        assert said == f"Sandbox {box.id}. Everything below is drawn by the sandbox. cloche never asks for a token here.", said
        chromium.run("(() => { const t = document.getElementById('theirs'); t.scrollTop = t.scrollLeft = 1e6; window.scrollTo(1e6, 1e6); })()")
        top, bottom, below = chromium.run("(() => { const r = (e) => document.querySelector(e).getBoundingClientRect(); return [r('strong').top, r('header').bottom, r('main').top]; })()")
        assert 0 <= top < bottom <= below, (top, bottom, below)
        chromium.run("(() => { const t = document.getElementById('theirs'); t.scrollTop = t.scrollLeft = 0; })()")
        for kind in ("rawKeyDown", "keyUp"):
            chromium("Input.dispatchKeyEvent", type=kind, key="a", code="KeyA", windowsVirtualKeyCode=65)
        at = chromium.run("(() => { const b = document.querySelector('canvas').getBoundingClientRect(); return [b.left + 320, b.top + 330]; })()")
        for kind in ("mousePressed", "mouseReleased"):
            chromium("Input.dispatchMouseEvent", type=kind, x=at[0], y=at[1], button="left", buttons=1 if kind == "mousePressed" else 0, clickCount=1)
        if flags:
            until(lambda: told(box, "release") and told(box, "key-up"), 90)
        assert [e[:4] for e in told(box, "press", "release")] == ([("press", 1, 320, 330), ("release", 1, 320, 330)] if flags else [])
        assert [e[:2] for e in told(box, "key", "key-up")] == ([("key", 38), ("key-up", 38)] if flags else [])


@pytest.mark.slow
def test_novnc_shows_it(tcp, chromium):
    """One that a person has, from its own origin."""
    if not os.path.exists(f"{NOVNC}/vnc.html"):
        pytest.skip("novnc is not installed: apt-get install --no-install-recommends novnc")
    box = window(tcp)
    one = session(tcp, box, "control")
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=NOVNC))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    host, port = tcp.addresses()[0]
    try:
        chromium.go(f"http://127.0.0.1:{server.server_address[1]}/vnc.html?autoconnect=true&host={host}&port={port}&path=desktop/ws/{one['token']}&encrypt=0")
        assert wait_for(lambda: chromium.run(PIXEL) == [255, 0, 0, 255], 120), chromium.run("document.body.innerText")
        chromium("Input.dispatchKeyEvent", type="rawKeyDown", key="a", code="KeyA", windowsVirtualKeyCode=65)
        chromium("Input.dispatchKeyEvent", type="keyUp", key="a", code="KeyA", windowsVirtualKeyCode=65)
        until(lambda: ("key-up", 38) in [e[:2] for e in told(box, "key-up")], 90)
    finally:
        server.shutdown()
        server.server_close()


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *args):           # pylint: disable=arguments-differ
        pass


def test_the_page_is_ours_alone(tcp):
    host, port = tcp.addresses()[0]
    for path, kind in (("/desktop", "text/html; charset=utf-8"), ("/desktop/page.js", "text/javascript; charset=utf-8")):
        got = tcp.remote(address=(host, port)).get(path)
        assert got.status == 200 and got.headers["Content-Type"] == kind, got
        assert path != "/desktop" or b"drawn by the sandbox.\ncloche never asks for a token here." in got.body
        assert got.headers["X-Frame-Options"] == "DENY" and "default-src 'none'" in got.headers["Content-Security-Policy"]
        assert got.headers["X-Content-Type-Options"] == "nosniff" and "Access-Control-Allow-Origin" not in got.headers
