"""What runs in a sandbox answers for its screen and its sound: programs that lie, sockets that are somebody else's."""
import pytest

from helpers import desktop, requirement
from helpers.approvals import Asking, one_pending, pending
from helpers.daemon import Daemon, Sandbox, caller
from helpers.desktop import begin

pytestmark = [requirement("R48"), desktop.needed]
LISTENS = """
import os, selectors, socket, sys
ready = selectors.DefaultSelector()
for name in sys.argv[1:]:
    os.makedirs(os.path.dirname(name), exist_ok=True)
    for address in (name, "\\0" + name):
        s = socket.socket(socket.AF_UNIX)
        s.bind(address)
        s.listen()
        ready.register(s, 1)
kept = []
while True:
    c = ready.select()[0][0].fileobj.accept()[0]
"""
MUTE = LISTENS + "    kept.append(c)\n"
LOUD = LISTENS + """
    try:
        while True:
            c.sendall(b"\\x01" * 65536)
    except OSError:
        pass
"""


def well(daemon, box):
    assert daemon.get("/ready").ok and box.exec("echo well")["stdout"] == "well\n"


HOSTILE = {
    "a flood": "head -c 64M /dev/zero",
    "a flood to the file": "for file; do :; done; if [ $file = - ]; then head -c 2M /dev/zero; else head -c 64M /dev/zero >$file; fi",
    "a pipe for a file": "for file; do :; done; if [ $file = - ]; then head -c 2M /dev/zero; else mkfifo $file; fi",
    "not the end": "exec sleep 600",
    "no picture": "echo hello",
    "half a picture": r"printf '\211PNG\r\n\032\n\0\0\0\015IHDR\0\0\0\001\0\0\0\001'",
    "nothing": "true",
    "a failure": "echo no such luck >&2; exit 3",
}


@pytest.mark.parametrize("what", HOSTILE)
def test_a_sandbox_that_lies_harms_nobody(daemon, what):
    """Its own programs come first on its PATH: what they say is bounded and looked at."""
    box = daemon.create(policy={"env": {"PATH": "/workspace:/usr/bin:/bin"}})
    box.put("ffmpeg", f"#!/bin/sh\n{HOSTILE[what]}\n".encode(), "?mode=755")
    answer = daemon.get(f"/api/sandbox/screen/screenshot?id={box.id}")
    assert answer.status == 500 and answer.json["error"].startswith("Screenshot failed: "), answer
    if what == "a flood":
        assert answer.json["error"] != "Screenshot failed: ", answer
    elif what == "a flood to the file":
        assert answer.json["error"] == "Screenshot failed: the sandbox says more than 16 MiB", answer
    elif what == "a pipe for a file":
        assert answer.json["error"].startswith("Screenshot failed: "), answer
    elif what == "not the end":
        assert answer.json["error"] == "Screenshot failed: it takes too long", answer
    elif what == "a failure":
        assert answer.json["error"] == "Screenshot failed: no such luck"
    else:
        assert "is no PNG" in answer.json["error"], answer
    assert daemon.get("/ready").ok and box.exec("echo well")["stdout"] == "well\n"


@pytest.mark.parametrize("program, what", [("xdotool", "exec head -c 64M /dev/zero"), ("xdotool", "echo 1280 800 >&2; exit 1"),
                                           ("Xvnc", "head -c 64M /dev/zero; exit 1"), ("xkbcomp", "exit 7"), ("openbox", "exit 1")])
def test_each_program_may_be_another(daemon, program, what):
    box = daemon.create(policy={"env": {"PATH": "/workspace:/usr/bin:/bin"}})
    box.put(program, f"#!/bin/sh\n{what}\n".encode(), "?mode=755")
    answer = daemon.post(f"/api/sandbox/computer/type?id={box.id}", {"text": "\u0142"})
    assert answer.status == 200 if program == "openbox" else answer.json["error"].startswith("Type failed: "), answer
    well(daemon, box)


def test_lists_are_bounded_text(daemon):
    box = daemon.create(policy={"env": {"PATH": "/workspace:/usr/bin:/bin"}})
    lines = "i=0; while [ $i -lt 5000 ]; do printf '0x1 0 a.b h \\377\\001<b>\\n\\n  \\n'; i=$((i+1)); done"
    box.put("wmctrl", f"#!/bin/sh\n{lines}\n".encode(), "?mode=755")
    windows = daemon.get(f"/api/sandbox/screen/windows?id={box.id}").json["windows"]
    assert len(windows) == 256 and windows[0] == {"id": "0x1", "title": "\ufffd\x01<b>", "app": "a.b"}, windows[:2]
    well(daemon, box)


@pytest.mark.parametrize("talk", [MUTE, LOUD], ids=["mute", "loud"])
def test_a_planted_socket_is_no_display(daemon, talk):
    """Xvnc may take its path over, or not: it holds up its own sandbox's request for a while, and nothing else."""
    assert daemon.post("/api/sandbox/start").ok
    box = begin(daemon, desktop.python(talk, "/tmp/.X11-unix/X77"))
    answer = daemon.get("/api/sandbox/screen/screenshot")
    assert answer.ok or answer.json["error"].startswith("Screenshot failed: this sandbox has no screen: "), answer
    well(daemon, box)


@pytest.mark.parametrize("talk", [MUTE, LOUD], ids=["mute", "loud"])
def test_a_planted_socket_is_no_sound(daemon, talk):
    assert daemon.post("/api/sandbox/start").ok
    box = begin(daemon, desktop.python(talk, "/tmp/.cloche-pulse"))
    answer = daemon.post("/api/sandbox/audio/record", {"durationMs": 250})      # its path may be taken over
    assert answer.ok or answer.json["error"].startswith("Audio recording failed: this sandbox has no audio: "), answer
    well(daemon, box)


def test_a_desktop_is_of_one_sandbox(daemon):
    """Neither its screen nor its sockets are another's."""
    assert daemon.post("/api/sandbox/start").ok
    one, other = desktop.window(daemon), daemon.create()
    assert daemon.get(f"/api/sandbox/screen/screenshot?id={other.id}").ok
    part = daemon.post(f"/api/sandbox/screen/screenshot?id={other.id}", {"x": 300, "y": 300, "width": 2, "height": 2}).json
    assert bytes(desktop.decoded(part)[2][0]) == bytes(6)
    assert one.exec("touch /tmp/.X11-unix/mine")["exit_code"] == 0
    assert other.exec("ls -A /tmp/.X11-unix")["stdout"] == "X77\n"


def test_the_hosts_network_has_the_hosts_displays(daemon):
    box = daemon.create(policy={"network": "host"})
    answer = daemon.get(f"/api/sandbox/screen/screenshot?id={box.id}")
    assert answer.status == 500 and "shares the host's network" in answer.json["error"], answer
    assert not daemon.get(f"/api/sandbox/capabilities?id={box.id}").json["screenshot"]["available"]


def test_the_gate_hears_of_an_action_once(cloche):
    """An agent's action is judged as it was sent. What it takes to do it is not judged again, and the next one is."""
    daemon = Daemon(cloche, gate=None)
    agent, approver = caller(daemon, "agent"), caller(daemon, "approver")
    box = Sandbox(agent, agent.post("/v1/sandboxes", {}).json)
    at = f"/api/sandbox/computer/action?id={box.id}"
    for action in ({"type": "keypress", "keys": ["a"]}, {"action": "type", "text": "\u0142"}, {"type": "screenshot"}):
        asking = Asking(agent, "POST", at, action)
        asked, name = one_pending(approver), next(iter(action.values())).replace("keypress", "key")
        sees = name == "screenshot"
        assert (asked["tool"], asked["risk"], asked["rule"]) == ("computer", "MEDIUM" if sees else "HIGH", "computer-sees" if sees else "computer"), asked
        assert asked["params"]["action"] == name and "type" not in asked["params"], asked
        assert approver.post(f"/v1/approvals/{asked['id']}/approve", {}).ok
        assert asking.wait().json["success"] and not pending(approver), asking.answer
    asking = Asking(agent, "POST", f"/api/sandbox/computer/click?id={box.id}", {"x": 1, "y": 1})
    asked = one_pending(approver)
    assert asked["params"] == {"action": "left_click", "x": 1, "y": 1}, asked
    assert approver.post(f"/v1/approvals/{asked['id']}/deny", {}).ok
    assert asking.wait().status == 403, asking.answer
    assert daemon.stop() == 0, daemon.log
