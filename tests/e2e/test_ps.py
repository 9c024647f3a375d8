"""cloche ps, top and events: what a running daemon's sandboxes do, for a person."""
import fcntl
import json
import os
import pty
import re
import select
import struct
import subprocess
import termios

import pytest

from helpers import requirement
from helpers.daemon import caller, token
from helpers.runner import HANG_GUARD, wait_for
from helpers.shared import own, shared

pytestmark = [requirement("R89"), shared]


@pytest.fixture
def ask(cloche, daemon):
    def run(*words, **env):
        return cloche(*words, "--socket", str(daemon.path), env=env or None)
    return run


def rows(text):
    head, *lines = text.splitlines()
    assert head.split() == ["ID", "NAME", "STATE", "AGE", "IDLE", "MEMORY", "CPU", "PIDS", "RUNNING"], head
    return {line.split()[1]: line.split() for line in lines}


def test_ps(daemon, ask):
    assert rows(ask("ps").out) == {}
    one, two = daemon.create(name="one", labels={"team": "a"}), daemon.create(name="two")
    runs = one.stream("echo up; sleep 600")
    assert next(runs) == ("stdout", {"data": "up\n"})
    found = rows(ask("ps").out)
    assert set(found) == {"one", "two"}
    busy = found["one"]
    assert busy[0] == one.id[:12] and busy[2] == "ready" and re.match(r"\d+s$", busy[3]) and busy[8] == "/bin/sh"
    assert re.match(r"\d+\.\d[KMG]$", busy[5]) and re.match(r"\d+\.\d\ds$", busy[6]) and int(busy[7]) >= 2, busy
    assert len(found["two"]) == 8                       # nothing runs in it
    assert set(rows(ask("ps", "--label", "team=a").out)) == {"one"}
    assert daemon.post(f"{two.at}/pause").ok
    assert rows(ask("ps").out)["two"][2] == "paused"
    two.delete()
    assert set(rows(ask("ps").out)) == {"one"} and rows(ask("ps", "--all").out)["two"][2] == "stopped"
    said = json.loads(ask("ps", "--all", "--json").out)
    assert said["version"] == 1
    by_name = {b["name"]: b for b in said["sandboxes"]}
    assert by_name["one"]["usage"]["running"] == ["/bin/sh"] and by_name["two"]["usage"] is None
    runs.close()


@own
def test_ps_of_more_than_a_page(daemon, ask):
    """A page of the API's has 200."""
    for i in range(205):
        daemon.create(name=f"box-{i}", policy={"mode": "light"}).delete()
    assert set(rows(ask("ps", "--all").out)) == {f"box-{i}" for i in range(205)}


def test_what_a_stranger_chose_moves_no_cursor(daemon, ask):
    box = daemon.create(name="calm")
    evil = "/bin/\x1b[2Jevil\n\u202e"
    assert daemon.post(f"{box.at}/exec", {"command": [evil]}).status == 200
    assert box.put("s", b"#!/bin/sh\necho up; sleep 600\n", "?mode=755").ok
    assert box.exec("mv s \"$(printf 's\\033[31m')\"")["exit_code"] == 0
    runs = box.stream(["/workspace/s\x1b[31m"])
    assert next(runs) == ("stdout", {"data": "up\n"})
    for words in (("ps",), ("top", "--once"), ("events",), ("logs", "calm")):
        shown = ask(*words)
        assert shown.ok and "\x1b" not in shown.out and "\u202e" not in shown.out, (words, shown.out)
        assert "\\033[" in shown.out, (words, shown.out)
    runs.close()


def test_top_once(daemon, ask):
    box = daemon.create(name="busy")
    runs = box.stream("echo up; while :; do :; done")
    assert next(runs) == ("stdout", {"data": "up\n"})
    shown = rows(ask("top", "--once").out)["busy"]
    assert re.match(r"\d+\.\d%$", shown[6]), shown
    said = json.loads(ask("top", "--json").out)
    assert said["version"] == 1 and said["sandboxes"][0]["name"] == "busy"
    runs.close()


def test_top_on_a_terminal(cloche, daemon):
    """It draws on the other screen, again and again, and gives the terminal back."""
    daemon.create(name="shown")
    here, there = pty.openpty()
    process = cloche.popen("top", "--interval", "100ms", "--socket", str(daemon.path), stdin=there, stdout=there, stderr=subprocess.PIPE)
    os.close(there)
    seen = b""

    def until(what):
        nonlocal seen
        while what not in seen:
            more = os.read(here, 4096)
            assert more, seen
            seen += more
    until(b"\x1b[?1049h")
    until(b"shown")
    seen = seen.split(b"shown", 1)[1]
    until(b"%")                 # the second look knows what the first one saw
    os.write(here, b"q")
    until(b"\x1b[?1049l")
    assert process.wait(HANG_GUARD) == 0, process.stderr.read()
    process.stderr.close()
    os.close(here)


def test_top_on_a_narrow_terminal(cloche, daemon):
    """What is behind a long name is there too, and no line is longer than the terminal."""
    daemon.create(name="n" * 63)
    here, there = pty.openpty()
    fcntl.ioctl(there, termios.TIOCSWINSZ, struct.pack("HHHH", 10, 100, 0, 0))
    process = cloche.popen("top", "--interval", "100ms", "--socket", str(daemon.path), stdin=there, stdout=there)
    os.close(there)
    seen = b""
    while seen.count(b"\x1b[H") < 3:
        seen += os.read(here, 4096)
    os.write(here, b"q")
    assert process.wait(HANG_GUARD) == 0
    os.close(here)
    for drawn in seen.split(b"\x1b[H")[1:3]:
        head, row = [line.replace(b"\x1b[K", b"").strip() for line in drawn.split(b"\n")[:2]]
        assert len(head) <= 100 and len(row) <= 100 and head.index(b"STATE") == row.index(b"ready") and b"n" * 20 in row, drawn


@own
def test_events(daemon, ask):
    one, two = daemon.create(name="one"), daemon.create(name="two")
    one.exec("true")
    shown = ask("events").out.splitlines()
    assert any(one.id[:12] in line and "exec" in line for line in shown) and any(two.id[:12] in line for line in shown)
    for which in ("one", one.id):
        of_one = ask("events", "--sandbox", which).out
        assert one.id[:12] in of_one and two.id[:12] not in of_one
    entries = [json.loads(line) for line in ask("events", "--json", "--limit", "2").out.splitlines()]
    assert len(entries) == 2 and entries[0]["number"] < entries[1]["number"]
    assert ask("events", "--limit", "0").out == ""


@own
def test_events_as_they_come(cloche, daemon):
    box = daemon.create(name="one")
    process = cloche.popen("events", "--follow", "--json", "--limit", "1000", "--socket", str(daemon.path), stdout=subprocess.PIPE)
    logs = cloche.popen("events", "--sandbox", "one", "--follow", "--limit", "0", "--socket", str(daemon.path), stdout=subprocess.PIPE)
    try:
        while json.loads(process.stdout.readline())["type"] != "container_start":
            pass
        # who follows is told from when it does: until something is
        def told():
            box.exec(["true"])
            return select.select([logs.stdout], [], [], 0)[0]
        assert wait_for(told, 60)
        while json.loads(process.stdout.readline())["type"] != "exec":
            pass
        other = daemon.create(name="other")
        while json.loads(process.stdout.readline())["sandbox"] != other.id:
            pass
        assert box.delete().ok
        for line in iter(logs.stdout.readline, b""):
            assert other.id[:12].encode() not in line
            if b"container_stop" in line:
                break
        else:
            raise AssertionError("the stream ended")
    finally:
        for p in (process, logs):
            p.terminate()
            p.wait(HANG_GUARD)
            p.stdout.close()


def test_what_is_refused(cloche, daemon, ask):
    for words, code in (
            (("ps", "word"), "cli.operand"), (("ps", "--follow"), "cli.unknown-flag"), (("top", "--interval", "1ms"), "cli.flag-value"),
            (("events", "--limit", "1001"), "cli.flag-value"), (("logs",), "cli.sandbox"), (("logs", "nobody"), "sandbox.not-found"),
            (("events", "--sandbox", "nobody"), "sandbox.not-found"), (("ps", "--label"), None)):
        refused = ask(*words)
        assert refused.code == 125 and not refused.out and (code is None or f"[{code}]" in refused.err), (words, refused)
    down = cloche("ps", "--socket", str(daemon.path) + "x")
    assert down.code == 125 and "[api.down]" in down.err, down


@requirement("R23")
def test_a_token_sees_its_own(cloche, daemon):
    agent = caller(daemon, "agent")
    agent.create(name="mine")
    daemon.create(name="owners")
    bearer = agent.headers["Authorization"].split()[1]
    ask = lambda *words: cloche(*words, "--socket", str(daemon.path), env={"CLOCHE_TOKEN": bearer})
    assert set(rows(ask("ps").out)) == {"mine"} and ask("logs", "owners").code == 125
    approver = token(daemon, "approver")["token"]
    refused = cloche("ps", "--socket", str(daemon.path), env={"CLOCHE_TOKEN": approver})
    assert refused.code == 125 and "[auth.role]" in refused.err, refused
    assert wait_for(lambda: ask("events").ok, 60)
