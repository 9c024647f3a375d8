"""Who looks at a desktop presses no key and moves nothing, however it is said; and nobody looks whom it was not given to (docs/desktop.md)."""
import select
import struct
from concurrent.futures import ThreadPoolExecutor

import pytest

from helpers import desktop, requirement
from helpers.approvals import Asking, one_pending, pending
from helpers.attach import session, tunnel
from helpers.daemon import Caller, Daemon, Sandbox, caller, kill_one
from helpers.desktop import events, until, window
from helpers.preview import expose, raw, serve
from helpers.rfb import HELLO, Viewer, encodings, key, pointer, request, text
from helpers.runner import wait_for
from helpers.websocket import BINARY, PING, TEXT, Closed, WebSocket

pytestmark = [requirement("R48"), desktop.needed]

QEMU = struct.pack(">BBHII", 255, 0, 1, ord("a"), 30)
SIZE = struct.pack(">BxHHBx", 251, 640, 480, 1) + struct.pack(">IHHHHI", 0, 0, 0, 640, 480, 0)
PRESS = key("a", 1) + key("a", 0)


def frames(*parts):
    """A message in frames of its own fragments."""
    def send(viewer):
        for i, part in enumerate(parts):
            viewer.ws.frame(BINARY if i == 0 else 0, part, fin=i == len(parts) - 1)
    return send


def messages(*parts):
    def send(viewer):
        for part in parts:
            viewer.ws.frame(BINARY, part)
    return send


# what is said, and whether the connection ends with it
ATTACKS = {
    "a key": (messages(PRESS), False),
    "a click": (messages(pointer(350, 350, 1) + pointer(350, 350)), False),
    "a key, byte by byte": (messages(*(bytes([b]) for b in PRESS)), False),
    "a key in fragments": (frames(PRESS[:1], PRESS[1:5], PRESS[5:]), False),
    "a key behind one that looks": (messages(request(16, 16) + PRESS), False),
    "half a look, and a key": (messages(request(16, 16)[:6], request(16, 16)[6:] + PRESS), False),
    "a key in a text": (messages(text(PRESS)), False),
    "a key behind a text that is shorter than it says": (messages(text(b"", 4) + PRESS), True),
    "a key behind a text that is longer than it says": (messages(text(PRESS, 0)), False),
    "a key behind a text of a negative length": (messages(text(PRESS, -4)), True),
    "a key behind a text of the most negative length": (messages(text(PRESS, -0x80000000)), True),
    "a key behind a text of a small negative length": (messages(text(PRESS, -1)), True),
    "a key behind a text that is too long": (messages(text(PRESS, 0x10001)), True),
    "a key behind a text of all lengths": (messages(text(PRESS, 0xffffffff)), True),
    "a key in a fence": (messages(struct.pack(">BxxxIB", 248, 0, len(PRESS)) + PRESS), False),
    "a key behind a fence that is too long": (messages(struct.pack(">BxxxIB", 248, 0, 255) + PRESS), True),
    "a key behind encodings that are fewer": (messages(encodings(0)[:2] + b"\0\0" + PRESS), False),
    "a key behind too many encodings": (messages(b"\2\0\xff\xff" + PRESS), True),
    "a key among encodings": (messages(b"\2\0\0\4" + PRESS), False),
    "another key of QEMU's": (messages(QEMU), False),
    "sound of QEMU's": (messages(b"\xff\1\0\1" + PRESS), True),
    "another size": (messages(SIZE), False),
    "a reset": (messages(b"\xfa\0\1\4" + PRESS), False),
    "encodings by which keys are said in other words": (messages(encodings(0, -258, -316, -309, -1063131698) + QEMU + b"\5\x81\0\1\0\1\1" + PRESS), True),
    "a message that nobody knows": (messages(b"\7" + PRESS), True),
    "one of another maker's": (messages(b"\x82\0\0\0" + PRESS), True),
    "a format that is divided by": (messages(bytes([0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]) + PRESS), True),
    "a text message": (lambda viewer: viewer.ws.frame(TEXT, PRESS), True),
    "a ping with a key in it": (lambda viewer: viewer.ws.frame(9, PRESS), False),
}


def lives(viewer):
    """Whether it is still shown what there is; the code of its end."""
    try:
        viewer.look()
        return True
    except Closed as closed:
        assert closed.code in (1008, 1003), closed.code
        return False


def test_who_looks_presses_nothing(daemon):
    """Each attack, and behind all of them a key of somebody who may: it is the first one that arrives."""
    assert daemon.post("/api/sandbox/start").ok
    box = window(daemon)
    before = len(events(box))
    for what, (attack, ends) in ATTACKS.items():
        viewer = Viewer.of(daemon, box, "view")
        viewer.look()
        attack(viewer)
        assert lives(viewer) is not ends, what
        viewer.close()
    sure = Viewer.of(daemon, box, "control")
    sure.press("z")
    until(lambda: ("key-up", 52) in [e[:2] for e in events(box)])
    told = [e[:2] for e in events(box)[before:] if e[0] in ("key", "key-up", "press", "release", "move")]
    assert told == [("key", 52), ("key-up", 52)], told
    assert sure.look().at(350, 350) == (255, 0, 0)
    refused = wait_for(lambda: [e for e in daemon.get(f"{box.at}/audit?limit=1000").json["entries"] if e["metadata"].get("error") == "desktop.viewer"], 60)
    assert refused and all(e["severity"] == "warn" and e["metadata"]["capability"] == "desktop" for e in refused), refused
    # they are real: said by who may, they arrive
    for what in ("a key", "a click", "a key, byte by byte", "a key in fragments", "a key behind one that looks"):
        at = len(events(box))
        ATTACKS[what][0](sure)
        until(lambda: [e for e in events(box)[at:] if e[0] in ("key-up", "release")])       # pylint: disable=cell-var-from-loop
    assert sure.look().at(350, 350) == (255, 0, 0)


def test_who_pings_and_does_not_read_fills_nothing(daemon):
    box = daemon.create(name="one")
    assert daemon.get(f"/api/sandbox/screen/windows?id={box.id}").json == {"windows": []}
    viewer = Viewer.of(daemon, box)
    assert 0 < viewer.ws.pings_unread(50000) < 12000
    assert viewer.look().at(1, 1) == (0, 0, 0)


def greeting(daemon, box, *parts):
    """Of who says this for a greeting: the code of the end, None: it goes on."""
    ws = WebSocket(daemon.path, f"{box.at}/desktop/view")
    assert ws.status == 101
    try:
        for part in parts:
            ws.frame(BINARY, part)
        while True:
            ws.hear()
    except Closed as closed:
        return closed.code
    finally:
        ws.close()


def test_a_greeting_is_one_of_one(daemon):
    """No other version, whose messages are others; no password; and who wants the display alone has it with the others."""
    assert daemon.post("/api/sandbox/start").ok
    box = window(daemon)
    first = Viewer.of(daemon, box)
    for parts in ([b"RFB 003.003\n"], [b"RFB 003.007\n\1\1"], [b"RFB 004.001\n"], [b"GET / HTTP/1.1\r\n\r\n"], [HELLO, b"\2"], [HELLO, b"\0"], [HELLO + b"\x13"]):
        assert greeting(daemon, box, *parts) == 1008, parts
    alone = Viewer.of(daemon, box, "view", shared=0)
    assert alone.look().at(350, 350) == (255, 0, 0) and first.look().at(350, 350) == (255, 0, 0)


def status(daemon, uri, headers=()):
    ws = WebSocket(daemon.path, uri, headers=headers)
    if ws.status != 101:
        return ws.status, ws.refusal()["code"]
    ws.close()
    return ws.status, None


def bearer(text_):
    return [f"Authorization: Bearer {text_}"]


def test_a_session_opens_what_it_is_for(daemon):
    """One sandbox, one mode, no command; an editor's opens no desktop; and no other credential is good in an address."""
    box, other = daemon.create(name="one"), daemon.create(name="two")
    for each in (box, other):
        assert daemon.get(f"/api/sandbox/screen/windows?id={each.id}").json == {"windows": []}
    looks, sits, inspects = (session(daemon, box, mode)["token"] for mode in ("view", "control", "inspect"))
    at = f"{box.at}/desktop/view"
    assert status(daemon, at, bearer(looks))[0] == 101 and status(daemon, f"{at}?mode=control", bearer(sits))[0] == 101
    assert status(daemon, f"{at}?mode=control", bearer(looks)) == (403, "attach.mode")
    assert status(daemon, f"/desktop/ws/{looks}?mode=control") == (403, "attach.mode")
    said = [e["detail"] for e in daemon.get(f"/v1/events?sandbox={box.id}&limit=1000").json["events"] if e["type"] == "attach_refused"]
    assert len(said) == 2 and all("session " in s and "[attach.mode]" in s for s in said), said
    assert status(daemon, at, bearer(inspects)) == (403, "attach.mode") == status(daemon, f"/desktop/ws/{inspects}")
    assert status(daemon, f"{other.at}/desktop/view", bearer(looks)) == (404, "sandbox.not-found")
    assert status(daemon, f"{box.at}/attach/ws", bearer(sits)) == (403, "attach.mode")
    who = Caller(daemon, Authorization=f"Bearer {sits}")
    for method, path, body in (("GET", box.at, None), ("POST", f"{box.at}/exec", {"command": "true"}), ("POST", "/api/sandbox/computer/type", {"text": "x"}),
                               ("POST", f"{box.at}/attach", {"mode": "control"}), ("GET", f"/api/sandbox/screen/screenshot?id={box.id}", None)):
        assert who(method, path, body).status in (401, 403), (method, path)
    operator = caller(daemon, "operator").headers["Authorization"][7:]
    for text_ in (operator, box.record["key"]):
        assert status(daemon, f"/desktop/ws/{text_}")[0] in (401, 403), text_
    assert status(daemon, "/desktop/ws/cloche_attach_" + "0" * 64) == (401, "auth.unknown")
    assert status(daemon, "/desktop/ws/x") == (404, "desktop.address")
    # what is upgraded already is refused by the warden too
    assert b"" == tunnel(daemon, box, session(daemon, box, "inspect"), {"host_key": "x", "user_key": "y"})


def refusals(daemon, box, code):
    """What is on record of those who were refused for that."""
    return [e["detail"] for e in daemon.get(f"/v1/events?sandbox={box.id}&limit=1000").json["events"] if e["type"] == "attach_refused" and f"[{code}]" in e["detail"]]


def test_who_is_refused_for_a_pause_is_on_record(daemon):
    box = daemon.create(name="one")
    assert daemon.get(f"/api/sandbox/screen/windows?id={box.id}").json == {"windows": []}
    one = session(daemon, box, "view")
    assert daemon.post(f"{box.at}/pause").ok
    assert status(daemon, f"/desktop/ws/{one['token']}") == (409, "sandbox.paused")
    said = refusals(daemon, box, "sandbox.paused")
    assert len(said) == 1 and "session " in said[0], said


def test_what_is_turned_away_takes_no_place_of_its_session(daemon):
    """All operations of the sandbox are in use, which whoever runs code in it can see to: who comes meanwhile comes when there is room."""
    box = daemon.create(policy={"limits": {"pids": 2000}})
    assert daemon.get(f"/api/sandbox/screen/windows?id={box.id}").json == {"windows": []}
    at = f"/desktop/ws/{session(daemon, box, 'view')['token']}"
    sleeps = []
    while (begun := daemon.post(f"{box.at}/exec", {"command": ["sleep", "1000"], "background": True})).status == 202:
        sleeps.append(begun.json["exec_id"])
    for _ in range(20):         # a session has 16 connections
        assert status(daemon, at) == (429, "sandbox.busy")
    assert len(refusals(daemon, box, "sandbox.busy")) == 20
    assert daemon("DELETE", f"{box.at}/exec/{sleeps[0]}").ok
    assert wait_for(lambda: status(daemon, at)[0] == 101, 20), status(daemon, at)


def test_connections_of_a_session_end_with_their_keeper(daemon):
    box = daemon.create(recovery={"after": 1, "tries": 2, "window": 3600})
    assert daemon.get(f"/api/sandbox/screen/windows?id={box.id}").json == {"windows": []}
    at = f"/desktop/ws/{session(daemon, box, 'view')['token']}"
    viewers = [Viewer(daemon.path, at) for _ in range(16)]
    assert status(daemon, at) == (429, "attach.busy") and len(refusals(daemon, box, "attach.busy")) == 1
    kill_one(daemon, "cloche-keeper")
    assert wait_for(lambda: box.show()["recovery"]["used"] == 1) and box.wait_for("ready"), box.show()
    assert {v.ended() for v in viewers} <= {1000, 1008, None}
    said = [e["detail"] for e in daemon.get(f"/v1/events?sandbox={box.id}&limit=1000").json["events"] if e["type"] == "attach_closed"]
    assert len(said) == 16 and all("its keeper ended" in s for s in said), said


def test_previews_take_no_place_of_who_has_a_session(cloche):
    """Whoever has a preview's address is nobody, and all of them have one share; who has a session in the address is somebody, with a share."""
    daemon = Daemon(cloche.behind("prlimit", "--nofile=640:640"), path=cloche.home / "s", tcp=True)
    box = daemon.create(name="one")
    assert daemon.get(f"/api/sandbox/screen/windows?id={box.id}").json == {"windows": []}
    one, held = session(daemon, box, "view"), []
    for _ in range(4):
        crowd = daemon.create()
        serve(crowd)
        path = expose(crowd)["path"]
        for _ in range(24):
            held.append(raw(daemon.remote()))
            held[-1].sendall(f"GET {path}late HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
    told = wait_for(lambda: select.select(held, [], [], 0)[0], 60)
    assert b" 503 " in told[0].recv(100), "nobody's share is taken"
    ws = WebSocket(raw(daemon.remote()), f"/desktop/ws/{one['token']}")
    assert ws.status == 101, ws.head
    ws.close()
    for c in held:
        c.close()
    assert daemon.stop() == 0, daemon.log


@pytest.mark.parametrize("who", ["agent", "key"])
def test_anothers_desktop_is_not_there(daemon, who):
    mine = caller(daemon, "agent").create(name="mine")
    box = daemon.create(name="one")
    assert daemon.get(f"/api/sandbox/screen/windows?id={box.id}").json == {"windows": []}
    headers = [f"X-Sandbox-Key: {mine.record['key']}"] if who == "key" else bearer(caller(daemon, "agent").headers["Authorization"][7:])
    for mode in ("view", "control"):
        assert status(daemon, f"{box.at}/desktop/view?mode={mode}", headers) == (404, "sandbox.not-found")
    assert status(daemon, f"{box.at}/desktop/view")[0] == 101


def test_a_page_of_another_site_has_no_desktop(daemon):
    """A browser takes no credential of ours along, and a session in an address is what whoever has it opens."""
    box = daemon.create(name="one")
    assert daemon.get(f"/api/sandbox/screen/windows?id={box.id}").json == {"windows": []}
    assert status(daemon, f"{box.at}/desktop/view", ["Origin: http://evil.example"]) == (403, "http.origin")


LIAR = """
import socket, sys, threading, time
s = socket.socket(); s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1); s.bind(("127.0.0.1", 5977)); s.listen()
open("there", "w").close()
def one(c):
    try:
        if sys.argv[1] == "flood":
            while True: c.sendall(b"x" * 65536)
        elif sys.argv[1] == "mute": c.recv(1); time.sleep(600)
        elif sys.argv[1] == "deaf": c.sendall(b"RFB 003.008\\n"); time.sleep(600)
        else: c.sendall(b"HTTP/1.1 200 OK\\r\\n\\r\\n")
    except OSError: pass
    c.close()
while True: threading.Thread(target=one, args=(s.accept()[0],), daemon=True).start()
"""


def lying(daemon, what):
    box = daemon.create(name="one")
    assert box.put("liar.py", LIAR.encode()).ok
    assert box.exec(f"setsid python3 liar.py {what} >/dev/null 2>&1 &")["exit_code"] == 0
    until(lambda: box.read("there").ok)
    return box


@pytest.mark.parametrize("what", ["flood", "mute", "http"])
def test_a_display_that_lies_harms_its_viewer_alone(daemon, what):
    """Whoever runs code in the sandbox can be the display."""
    box = lying(daemon, what)
    ws = WebSocket(daemon.path, f"{box.at}/desktop/view")
    if what == "mute":          # it has so long, and not longer
        assert ws.status == 504, ws.head
    else:
        assert ws.status == 101
        ws.hear()
    assert daemon.get("/ready").ok and box.exec("echo well")["stdout"] == "well\n"
    ws.close()
    assert daemon("DELETE", box.at).ok


def test_a_viewer_of_a_display_that_reads_nothing_is_asked_whether_it_is_there(daemon):
    """Nothing is read of it then: that it has gone shows by what is sent to it, or never."""
    ws = WebSocket(daemon.path, f"{lying(daemon, 'deaf').at}/desktop/view?mode=control")
    assert ws.status == 101 and ws.hear() == (BINARY, HELLO)
    ws.frame(BINARY, HELLO + b"\1\1")
    ws.socket.settimeout(3)
    with pytest.raises(TimeoutError):
        for _ in range(1000):
            ws.frame(BINARY, key("a", 1) * 8192)
    ws.socket.settimeout(25)
    assert ws.hear() == (PING, b"")
    ws.close()


def test_the_gate_is_asked_for_an_agent(cloche):
    """Once: for the session, or for a connection with the agent's own credential; by what it may do there."""
    daemon = Daemon(cloche, gate=None)
    agent, approver = caller(daemon, "agent"), caller(daemon, "approver")
    box = Sandbox(daemon, agent.post("/v1/sandboxes", {}).json)
    assert daemon.get(f"/api/sandbox/screen/windows?id={box.id}").json == {"windows": []}
    for mode, risk in (("view", "MEDIUM"), ("control", "CRITICAL")):
        asking = Asking(agent, "POST", f"{box.at}/attach", {"mode": mode, "seconds": 60})
        asked = one_pending(approver)
        assert (asked["tool"], asked["risk"], asked["rule"]) == ("desktop_view", risk, f"desktop-{mode}"), asked
        assert asked["params"] == {"mode": mode, "seconds": 60}, asked
        assert approver.post(f"/v1/approvals/{asked['id']}/approve", {}).ok
        opened = agent.post(f"{box.at}/attach/open", {"ticket": asking.wait().json["ticket"]})
        assert status(daemon, f"/desktop/ws/{opened.json['token']}")[0] == 101 and not pending(approver)
    with ThreadPoolExecutor(1) as pool:
        waits = pool.submit(status, daemon, f"{box.at}/desktop/view?mode=control", bearer(agent.headers["Authorization"][7:]))
        asked = one_pending(approver)
        assert (asked["tool"], asked["risk"], asked["params"]) == ("desktop_view", "CRITICAL", {"mode": "control"}), asked
        assert approver.post(f"/v1/approvals/{asked['id']}/deny", {}).ok
        assert waits.result(120) == (403, "gate.denied")
    assert daemon.stop() == 0, daemon.log
