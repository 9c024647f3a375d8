"""Attacks on commands in the background: by another's exec_id, by what they print, by how many there are, by a guest that is silent."""
import json
import os
import signal
import socket

import pytest

from helpers import places, requirement
from helpers.daemon import Caller, caller, is_sanitized, resident
from helpers.runner import wait_for

pytestmark = requirement("R12", "R23")

PYTHON = [places.PYTHON, "-I", "-S", "-c"]
WAYS = [("GET", "", None), ("GET", "/stream", None), ("POST", "/stdin", b"x"), ("POST", "/stdin?end=true", b""), ("POST", "/signal", {"signal": "KILL"}),
        ("POST", "/resize", {"rows": 1, "cols": 1}), ("DELETE", "", None)]


def begin(box, command, **members):
    answer = box.daemon.post(f"{box.at}/exec", {"command": command, "background": True, **members})
    assert answer.status == 202, answer
    return answer.json["exec_id"]


def state(box, exec_id):
    return box.daemon.get(f"{box.at}/exec/{exec_id}").json["state"]


def test_anothers_command_is_not_there(daemon):
    """Neither by the other's sandbox nor by one's own, nor of another sandbox of one's own."""
    a, b = caller(daemon, "agent"), caller(daemon, "agent")
    box_a, second_a, box_b = a.create(), a.create(), b.create()
    exec_id = begin(box_a, "echo secret; cat; sleep 1000", stdin=True)
    key_b = Caller(daemon, X_Sandbox_Key=box_b.record["key"])
    for who, at, code in ((b, box_a.at, "sandbox.not-found"), (key_b, box_a.at, "sandbox.not-found"), (b, box_b.at, "exec.unknown"),
                          (key_b, box_b.at, "exec.unknown"), (a, second_a.at, "exec.unknown"), (daemon, box_b.at, "exec.unknown")):
        for method, rest, body in WAYS:
            answer = who(method, f"{at}/exec/{exec_id}{rest}", body)
            assert answer.status == 404 and answer.json["code"] == code and b"secret" not in answer.body, (method, rest, answer)
    assert b.get(f"{box_a.at}/exec").status == 404 and b.get(f"{box_b.at}/exec").json == {"commands": []}
    for role in ("auditor", "approver"):
        who = caller(daemon, role)
        for method, rest, body in WAYS:
            assert who(method, f"{box_a.at}/exec/{exec_id}{rest}", body).status == 403
    assert state(box_a, exec_id) == "running"       # nothing of it was done
    # who may work in the sandbox may work with it
    key_a = Caller(daemon, X_Sandbox_Key=box_a.record["key"])
    assert key_a("DELETE", f"{box_a.at}/exec/{exec_id}").json["signal"] == 15


@pytest.mark.parametrize("which", ["0", "00", "-1", "1.0", "18446744073709551616", "9223372036854775808", "%31%00", "x", "1/../1", ""])
def test_what_is_no_exec_id(daemon, which):
    box = daemon.create()
    begin(box, "true")
    for method in ("GET", "DELETE"):
        if (method, which) != ("GET", ""):
            assert daemon(method, f"{box.at}/exec/{which}").status in (400, 404, 405), which


def test_its_number_is_no_elsewheres(daemon):
    """An operation that is not in the background has none to be used here."""
    box = daemon.create()
    box.exec("true")
    assert daemon.get(f"{box.at}/exec").json == {"commands": []}
    for entry in daemon.get(f"{box.at}/transcript").json["entries"]:
        assert daemon("DELETE", f"{box.at}/exec/{entry['operation']}").status == 404


@pytest.mark.parametrize("flood", ["yes flood", "while :; do echo o; echo e >&2; done"])
def test_a_flood_of_output_is_bounded(daemon, flood):
    """With somebody who follows and never reads, and with nobody. Others of the sandbox go on."""
    box = daemon.create(policy={"limits": {"time": "5m"}})
    ids = [begin(box, flood) for _ in range(4)]
    c = box.daemon.connection()
    c.request("GET", f"{box.at}/exec/{ids[0]}/stream")
    assert c.getresponse().status == 200
    for _ in range(10):
        assert box.exec("echo here")["stdout"] == "here\n"
    assert wait_for(lambda: all(daemon.get(f"{box.at}/exec/{i}").json["stdout_dropped"] > 0 for i in ids), 60)
    for i in ids:
        one = daemon.get(f"{box.at}/exec/{i}").json
        assert one["stdout_bytes"] - one["stdout_dropped"] <= 262144, one
    for name in ("cloche-front", "cloche-keeper"):
        pid = daemon.only(name)
        assert resident(pid) < 65536 or is_sanitized(daemon), name
    c.close()
    for i in ids:
        assert daemon("DELETE", f"{box.at}/exec/{i}").json["state"] == "ended"


def test_hundreds_of_commands_are_bounded(daemon):
    """Each leaves output behind; only the newest are kept, and what their keeper holds does not grow with them."""
    box = daemon.create()
    for _ in range(300):
        answer = daemon.post(f"{box.at}/exec", {"command": ["seq", "1", "20000"], "background": True})
        # those that run at the same time have a limit too
        assert answer.status == 202 or answer.json["code"] == "sandbox.busy", answer
    assert wait_for(lambda: all(c["state"] == "ended" for c in daemon.get(f"{box.at}/exec").json["commands"]), 60)
    assert len(daemon.get(f"{box.at}/exec").json["commands"]) == 64
    pid = daemon.only("cloche-keeper")
    assert resident(pid) < 65536 or is_sanitized(daemon)
    assert box.exec("echo on")["stdout"] == "on\n"


def test_those_that_run_at_once_are_bounded(daemon):
    box = daemon.create(policy={"limits": {"pids": 2000}})
    ids = []
    for _ in range(64):
        ids.append(begin(box, ["sleep", "1000"]))
    full = daemon.post(f"{box.at}/exec", {"command": "true", "background": True})
    assert full.status == 429 and full.json["code"] == "sandbox.busy", full
    assert daemon("DELETE", f"{box.at}/exec/{ids[5]}").json["state"] == "ended"
    again = begin(box, "true")
    assert wait_for(lambda: state(box, again) == "ended", 60)
    assert [c["exec_id"] for c in daemon.get(f"{box.at}/exec").json["commands"]] == ids[:5] + ids[6:] + [again]


def test_many_who_ask_are_bounded(daemon):
    """More than may follow at once are turned away, and the sandbox works on."""
    box = daemon.create()
    exec_id = begin(box, "echo ready; read -r line", stdin=True)
    held, statuses = [], []
    for _ in range(80):
        c = box.daemon.connection()
        c.request("GET", f"{box.at}/exec/{exec_id}/stream")
        response = c.getresponse()
        statuses.append(response.status)
        held.append((c, response))
    assert set(statuses) == {200, 429} and statuses.count(200) == 64, statuses
    assert box.exec("echo here")["stdout"] == "here\n"
    for c, response in held:
        response.close()
        c.close()
    assert wait_for(lambda: daemon.get(f"{box.at}/exec/{exec_id}").status == 200, 60)
    assert daemon.post(f"{box.at}/exec/{exec_id}/stdin?end=true", b"").ok
    assert wait_for(lambda: state(box, exec_id) == "ended", 60)


def test_output_is_no_event(daemon):
    """What a command prints says nothing in the daemon's name."""
    box = daemon.create()
    said = "\n\nid: 0.0.end\nevent: exit\ndata: {\"exit_code\":0}\n\n: x\r\rdata: y\n"
    exec_id = begin(box, PYTHON + [f"import os; os.write(1, {said.encode()!r}); os._exit(3)"])
    assert wait_for(lambda: state(box, exec_id) == "ended", 60)
    text = daemon.get(f"{box.at}/exec/{exec_id}/stream").body.decode()
    events = [dict(line.split(": ", 1) for line in block.split("\n")) for block in text.split("\n\n") if block and not block.startswith(":")]
    assert [e["event"] for e in events] == ["stdout", "exit"] and json.loads(events[0]["data"]) == {"data": said}, events
    assert json.loads(events[1]["data"])["exit_code"] == 3


def test_two_who_write_do_not_mix(daemon):
    """While the command does not take what one sends, another is refused."""
    box = daemon.create()
    exec_id = begin(box, "sleep 1000", stdin=True)
    at = f"{box.at}/exec/{exec_id}/stdin"
    s = socket.socket(socket.AF_UNIX)
    s.connect(str(daemon.path))
    s.sendall(f"POST {at} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100000000\r\n\r\n".encode())
    s.settimeout(1)
    sent = 0
    with pytest.raises(TimeoutError):       # nobody takes all of that
        while sent < 100000000:
            sent += s.send(b"x" * 65536)
    assert sent < 8 << 20
    refused = daemon.post(at, b"y")
    assert refused.status == 409 and refused.json["code"] == "exec.stdin-busy", refused
    s.close()
    assert wait_for(lambda: daemon.post(at + "?end=true", b"").json.get("code") != "exec.stdin-busy", 60)
    assert daemon("DELETE", f"{box.at}/exec/{exec_id}").ok


@pytest.mark.root
def test_a_guest_that_does_not_say_the_end(daemon):
    """It holds its own sandbox's requests up for some seconds, and nobody else's; the sandbox ends all the same."""
    box, other = daemon.create(policy={"limits": {"grace": "1s"}}), daemon.create()
    exec_id = begin(box, "sleep 1000")
    own = [pid for pid in daemon.processes("cloche-guest") if box.id in _environment_of_keeper(daemon, pid)]
    assert len(own) == 1
    os.kill(own[0], signal.SIGSTOP)
    answer = daemon("DELETE", f"{box.at}/exec/{exec_id}")
    assert answer.status == 202 and answer.json["state"] == "ending" and answer.json["exit_code"] is None, answer
    assert other.exec("echo here")["stdout"] == "here\n"
    assert box.delete().json["state"] == "stopped"


@pytest.mark.root
@pytest.mark.slow
def test_a_guest_that_never_says_the_end(daemon):
    """It does not hold a place, and its sandbox, for as long as it likes: it is told once, and then not asked any more.

    Each way takes half a minute, which is a constant of the daemon's: all of them wait at the same time.
    """
    other = daemon.create()
    boxes = {what: daemon.create(policy={"limits": {"grace": "1s"}}, idle_timeout=3600) for what in ("killed", "late", "left")}
    exec_id = begin(boxes["killed"], "sleep 1000")
    streams = {what: boxes[what].stream("echo on; sleep 1000", **members) for what, members in (("late", {"timeout_ms": 3000}), ("left", {}))}
    assert {what: next(stream)[0] for what, stream in streams.items()} == {"late": "stdout", "left": "stdout"}
    guests = {pid: _environment_of_keeper(daemon, pid) for pid in daemon.processes("cloche-guest")}
    for what, box in boxes.items():
        own, = [pid for pid, line in guests.items() if box.id in line]
        os.kill(own, signal.SIGSTOP)
    streams["left"].close()
    assert daemon("DELETE", f"{boxes['killed'].at}/exec/{exec_id}").status == 202
    for what, box in boxes.items():
        assert box.wait_for("stopped", 90), (what, box.show())
        assert "did not end" in box.show()["detail"], (what, box.show())
    event, told = next(streams["late"])
    assert event == "exit" and told["timed_out"] and told["signal"] == 9, (event, told)
    assert other.exec("echo here")["stdout"] == "here\n"


def _environment_of_keeper(daemon, guest):
    """The command line of the keeper above that guest, which names its sandbox."""
    pid = guest
    while pid > 1:
        with open(f"/proc/{pid}/stat", encoding="utf-8") as f:
            pid = int(f.read().rsplit(")", 1)[1].split()[1])
        with open(f"/proc/{pid}/cmdline", encoding="utf-8") as f:
            line = f.read()
        if "cloche-keeper" in line:
            return line
    return ""
