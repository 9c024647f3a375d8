"""cloche logs: what was run in a daemon's sandbox, by whom, and what it wrote."""
import json
import subprocess

import pytest

from helpers import requirement
from helpers.daemon import caller
from helpers.runner import wait_for
from helpers.shared import shared

pytestmark = [requirement("R29"), requirement("R89"), shared]


@pytest.fixture
def ask(daemon):
    return lambda *words: daemon.cloche("logs", *words, "--socket", str(daemon.path))


def begin(box, command, **members):
    answer = box.daemon.post(f"{box.at}/exec", {"command": command, "background": True, **members})
    assert answer.status == 202, answer
    return answer.json["exec_id"]


def test_who_what_and_what_came_of_it(daemon, ask):
    agent = caller(daemon, "agent", name="builder")
    box = agent.create(name="work")
    assert box.exec("printf 'one\\ttwo\\n'; echo err >&2; exit 3")["exit_code"] == 3
    assert daemon.post(f"{box.at}/exec", {"command": ["echo", "from the owner"]}).ok
    lines = ask("work").out.splitlines()
    assert f" exec by agent {box.record['owner']} builder /bin/sh -c " in lines[0] and "printf" in lines[0], lines
    assert "one\ttwo" in lines and "err" in lines and any(line.endswith("result exit code 3") for line in lines), lines
    owners = next(line for line in lines if "by the owner" in line)
    assert "echo" in owners and lines[lines.index(owners) + 1] == "from the owner", lines
    assert ask(box.id).out == ask("work").out
    entries = [json.loads(line) for line in ask("work", "--json").out.splitlines()]
    assert entries == daemon.get(f"{box.at}/transcript").json["entries"] and entries[0]["by"].startswith("agent ")
    # when it has stopped its id names it, and when its record is no more
    before = ask(box.id).out
    assert box.delete().ok and ask(box.id).out == before
    assert daemon("DELETE", box.at).ok and ask(box.id).out == before


def test_of_one_command(daemon, ask):
    box = daemon.create(name="one")
    box.exec("echo another")
    exec_id = begin(box, "echo its own; echo more; read -r line; echo $line; exit 4", stdin=True)
    assert wait_for(lambda: daemon.get(f"{box.at}/exec/{exec_id}").json["stdout_bytes"] == 13, 60)
    follow = daemon.cloche.popen("logs", "one", "--exec", exec_id, "--follow", "--socket", str(daemon.path), stdout=subprocess.PIPE, bufsize=0)
    heard = b""
    while not heard.endswith(b"more\n"):
        byte = follow.stdout.read(1)
        assert byte, heard
        heard += byte
    assert daemon.post(f"{box.at}/exec/{exec_id}/stdin", b"last\n").ok
    assert follow.stdout.read() == b"last\n" and follow.wait(90) == 0
    assert heard == b"its own\nmore\n"
    assert ask("one", "--exec", exec_id).out == "its own\nmore\nlast\n"
    assert ask("one", "--exec", exec_id, "--follow").out == "its own\nmore\nlast\n"
    # one that was not in the background has its transcript alone
    first = daemon.get(f"{box.at}/transcript").json["entries"][0]["operation"]
    assert ask("one", "--exec", str(first)).out == ask("one", "--exec", str(first), "--follow").out == "another\n"
    assert ask("one", "--exec", "1").out == ""


def test_what_is_gone_is_told(daemon, ask):
    box = daemon.create(name="one")
    exec_id = begin(box, "seq 100000 200000")
    assert wait_for(lambda: daemon.get(f"{box.at}/exec/{exec_id}").json["state"] == "ended", 60)
    lines = ask("one", "--exec", exec_id, "--follow").out.splitlines()
    assert lines[0].endswith("bytes of stdout are kept no more]") and lines[-1] == "200000", (lines[:2], lines[-1])


def test_following_all_of_it_ends_with_the_sandbox(daemon):
    box = daemon.create(name="one")
    follow = daemon.cloche.popen("logs", "one", "--follow", "--socket", str(daemon.path), stdout=subprocess.PIPE, bufsize=0)
    box.exec("echo now")
    heard = b""
    while b"\nnow\n" not in heard:
        byte = follow.stdout.read(1)
        assert byte, heard
        heard += byte
    assert box.delete().ok
    rest = follow.stdout.read()
    assert follow.wait(90) == 0 and b"exit code 0" in rest, rest


def test_what_a_command_prints_moves_no_cursor(daemon, ask):
    box = daemon.create(name="one")
    exec_id = begin(box, ["/bin/sh", "-c", "printf 'a\\033[2Jb\\nplain\\n\\342\\200\\256x\\n'; echo up; sleep 1000"])
    assert wait_for(lambda: daemon.get(f"{box.at}/exec/{exec_id}").json["stdout_bytes"] > 0, 60)
    assert daemon("DELETE", f"{box.at}/exec/{exec_id}").ok
    for words in ((), ("--exec", exec_id), ("--exec", exec_id, "--follow")):
        shown = ask("one", *words).out
        assert "\x1b" not in shown and "\u202e" not in shown and '"a\\033[2Jb"' in shown and "plain\n" in shown, (words, shown)


def test_what_is_refused(daemon, ask):
    daemon.create(name="one")
    agent = caller(daemon, "agent").headers["Authorization"].split()[1]
    for words, code in (((), "cli.sandbox"), (("nobody",), "sandbox.not-found"), (("one", "--exec", "x"), "cli.flag-value"),
                        (("0" * 32,), "transcript.none"), (("one", "two"), "cli.operand"), (("one", "--limit", "1"), "cli.unknown-flag")):
        refused = ask(*words)
        assert refused.code == 125 and f"[{code}]" in refused.err and refused.out == "", (words, refused)
    others = daemon.cloche("logs", "one", "--socket", str(daemon.path), env={"CLOCHE_TOKEN": agent})
    assert others.code == 125 and "sandbox.not-found" in others.err, others
