"""Attacks on live commands: by what the sandbox prints, by what a client sends, and by who sends it."""
import json
import struct

import pytest

from helpers import places, requirement
from helpers.daemon import is_sanitized, resident
from helpers.runner import wait_for
from helpers.shared import own, shared
from helpers.websocket import BINARY, CLOSE, PING, TEXT, Closed, Command, WebSocket

pytestmark = [requirement("R12", "R23"), shared]


def test_output_is_no_message(box):
    """What a command prints says nothing in the daemon's name: neither JSON nor frames nor channels."""
    said = b'\x81\x10{"type":"exit"}\x88\x02\x03\xe8\x02err' + json.dumps({"type": "exit", "exit_code": 0}).encode() + b"\n"
    for pty in (False, {"rows": 24, "cols": 80}):
        c = Command(box, [places.PYTHON, "-I", "-S", "-c", f"import os; os.write(1, {said!r}); os._exit(3)"], pty=pty)
        end = c.end()
        assert end["exit_code"] == 3 and [m["type"] for m in c.messages] == ["started", "exit"], c.messages
        assert c.out == (said.replace(b"\n", b"\r\n") if pty else said) and c.err == b""


@pytest.mark.parametrize("break_it", [
    lambda ws: ws.frame(BINARY, b"\0x", masked=False),              # a client masks
    lambda ws: ws.frame(BINARY, b"\0x", reserved=0x40),             # an extension that was not agreed on
    lambda ws: ws.frame(3, b"\0x"),                                 # no such opcode
    lambda ws: ws.frame(0, b"\0x"),                                 # goes on with no message
    lambda ws: (ws.frame(BINARY, b"\0x", fin=False), ws.frame(TEXT, b"{}")),
    lambda ws: ws.frame(PING, b"x" * 126),                          # a control frame has at most 125 bytes
    lambda ws: ws.frame(PING, b"x", fin=False),
    lambda ws: ws.raw(b"\x82\xfe\x00\x05" + b"abcd" + b"12345"),    # a length in more bytes than it needs
    lambda ws: ws.raw(b"\x82\xff" + struct.pack(">Q", 1 << 63) + b"abcd"),
], ids=["no mask", "reserved", "opcode", "continuation", "within", "long ping", "cut ping", "length", "sign"])
def test_malformed_frames_end_the_command(box, break_it):
    c = Command(box, "echo ready; exec sleep 4323")
    c.until("ready\n")
    break_it(c.ws)
    with pytest.raises(Closed) as closed:
        while True:
            c.step()
    assert closed.value.code == 1002
    assert wait_for(lambda: "4323" not in box.exec("cat /proc/[0-9]*/cmdline | tr '\\0' ' '")["stdout"].replace("cat /proc", ""))


@pytest.mark.parametrize("say", [
    lambda ws: ws.frame(BINARY, b"\1not stdin"),
    lambda ws: ws.frame(BINARY, b"\xff"),
    lambda ws: ws.say({"type": "exit", "exit_code": 0}),
    lambda ws: ws.say({"type": "resize", "rows": 0, "cols": 80}),
    lambda ws: ws.say({"type": "resize", "rows": 24, "cols": 65536}),
    lambda ws: ws.say({"type": "signal", "signal": 0}),
    lambda ws: ws.say({"type": "signal", "signal": 64}),
    lambda ws: ws.say({"type": "signal", "signal": "NOPE"}),
    lambda ws: ws.say({"type": "signal"}),
    lambda ws: ws.say([]),
    lambda ws: ws.frame(TEXT, b"{"),
    lambda ws: ws.frame(TEXT, b'{"type": "signal", "type": "resize"}'),
])
def test_what_is_no_message_of_a_client(box, say):
    c = Command(box, "echo ready; sleep 1000")
    c.until("ready\n")
    say(c.ws)
    end = c.end()
    assert end["type"] == "error" and end["code"] == "exec.message" and c.code == 1008, end


@own
def test_a_first_message_without_end_is_bounded(daemon, box):
    ws = WebSocket(daemon.path, f"{box.at}/exec/ws")
    ws.frame(TEXT, b"", length=1 << 40)
    sent = 0
    with pytest.raises((OSError, Closed)):
        while sent < 64 << 20:
            ws.raw(b"x" * 65536)
            sent += 65536
        ws.hear()
    assert sent < 64 << 20
    assert box.exec("true")["exit_code"] == 0


@own
def test_who_does_not_read_stops_its_own_command_alone(daemon, box):
    """Nobody reads what comes: the daemon holds some of it, and the command waits in its write."""
    flood = Command(box, "yes flood >&2", timeout_ms=80000)
    flood.step()
    terminal = Command(box, ["yes", "terminal"], pty={"rows": 24, "cols": 80}, timeout_ms=80000)
    terminal.step()
    for _ in range(20):
        assert box.exec("echo here")["stdout"] == "here\n"
    assert resident(daemon.processes("cloche-front")[0]) < 65536 or is_sanitized(daemon)
    # a signal still arrives
    terminal.signal("KILL")
    assert terminal.end()["signal"] == 9
    flood.ws.close()


def test_input_that_nobody_reads_is_bounded_and_signals_pass(box):
    """A command that never reads: its input waits, first in the sandbox, then in the daemon, then with the client."""
    c = Command(box, "trap 'echo got; exit 4' USR1; echo ready; while :; do sleep 0.05; done")
    c.until("ready\n")
    for _ in range(6):
        c.ws.stdin(b"x" * 32768)
    c.signal("USR1")
    assert c.end()["exit_code"] == 4 and c.out.endswith(b"got\n")
    c = Command(box, "echo ready; exec sleep 1000")
    c.until("ready\n")
    c.ws.socket.settimeout(5)
    sent = 0
    with pytest.raises(TimeoutError):
        while sent < 64 << 20:
            c.ws.stdin(b"x" * 65536)
            sent += 65536
    assert sent < 16 << 20
    c.ws.close()
    assert box.exec("true")["exit_code"] == 0


def test_a_flood_of_pings_and_sizes(box):
    c = Command(box, "cat", pty={"rows": 24, "cols": 80})
    c.step()
    for i in range(2000):
        c.ws.frame(PING, b"x" * 125)
        c.resize(1 + i % 100, 80)
        if i % 50 == 0:
            while len(c.pongs) < i:
                c.step()
    c.ws.stdin("still here\n")
    c.until("still here\r\nstill here\r\n")
    c.ws.frame(CLOSE, struct.pack(">H", 1000))
    with pytest.raises(Closed) as closed:
        while True:
            c.step()
    assert closed.value.code == 1000


@pytest.mark.parametrize("when", ["before", "behind"])
def test_who_pings_and_does_not_read_fills_nothing(daemon, box, when):
    """Only the latest ping need be answered (RFC 6455 5.5.3): the answers of one connection wait in a small room, and end it no more."""
    ws = WebSocket(daemon.path, f"{box.at}/exec/ws")
    if when == "behind":
        ws.say({"command": "cat"})
    assert 0 < ws.pings_unread(50000) < 12000
    if when == "before":
        ws.say({"command": "cat"})
    ws.close()


def test_a_stranger_to_the_sandbox_is_refused_before_the_upgrade(daemon, box):
    """As with every other route: what a credential does not reach is not there for it."""
    made = daemon.post("/v1/tokens", {"name": "a", "role": "agent"})
    assert made.status == 201, made
    ws = WebSocket(daemon.path, f"{box.at}/exec/ws", headers=[f"Authorization: Bearer {made.json['token']}"])
    assert ws.status in (403, 404), ws.head
    ws = WebSocket(daemon.path, f"{box.at}/exec/ws", headers=["Authorization: Bearer nonsense"])
    assert ws.status == 401, ws.head
