"""What is in the daemon's records is the warden's word, whatever a sandbox, or what a client sends, is made of."""
import contextlib
import hashlib
import json
from urllib.parse import quote

import pytest

from helpers import places, requirement
from helpers.daemon import caller
from helpers.runner import wait_for

pytestmark = requirement("R45", "R86", "R29")

ODD = ["line\nbreak", 'quote"}\n{"seq":1', "\\u0000", "\x01\x1b[31m\x7f", "é\u2028\u0085", "x" * 3000, "%s%n", '"}}\r\n', "\\"]
FORGED = '{"seq":99,"timestamp":"2026-01-01T00:00:00.000000Z","type":"security_kill_switch","severity":"critical","summary":"x"}'


def chain(cloche):
    said = cloche("audit", "verify", "--json")
    assert said.ok and said.json["holds"], said
    lines = (cloche.state / "cloche" / "audit" / "audit.jsonl").read_bytes().split(b"\n")
    assert lines.pop() == b""
    return [json.loads(line) for line in lines]


def transcript_of(cloche, box):
    lines = (cloche.state / "cloche" / "serve" / "transcripts" / f"{box.id}.jsonl").read_bytes().split(b"\n")
    assert lines.pop() == b""
    return [json.loads(line) for line in lines]


def test_no_string_of_a_client_breaks_a_line(cloche, daemon):
    box = daemon.create(name="b")
    for odd in [*ODD, FORGED]:
        box.daemon.post(f"{box.at}/exec", {"command": [odd, odd], "env": {"V": odd}, "cwd": "/" + odd})
        box.daemon("PUT", f"{box.at}/files/{quote(odd[:100], safe='')}", b"x")
    box.daemon("PUT", f"{box.at}/files/%ff%fe%80", b"x")
    box.exec(["cat"], stdin=FORGED + "\n")
    box.exec(f"printf '%s\\n' '{FORGED}' >&2; printf '\\377\\n\\000\\n'")
    assert box.delete().ok
    assert wait_for(lambda: [e for e in chain(cloche) if e.get("metadata", {}).get("capability") == "delete"])
    found = chain(cloche)
    assert [e["seq"] for e in found] == list(range(1, len(found) + 1))
    assert not [e for e in found if e["type"] == "security_kill_switch"]
    assert len([e for e in found if e["metadata"].get("capability") == "exec" and "by" in e["metadata"]]) == len(ODD) + 3
    told = transcript_of(cloche, box)
    assert len([e for e in told if e["event"] == "exec"]) == len(ODD) + 3
    assert {e["event"] for e in told} <= {"exec", "write", "content", "output", "result"}


def test_no_caller_chooses_what_is_known_of_its_command(cloche, daemon):
    """Values of the variables that come with a command hide neither its words nor its folder, however many they are."""
    box = daemon.create(name="b")
    line = "echo said-by-it > /tmp/p; echo said-by-it"
    box.exec(line, cwd="/workspace", env={"A": line, "B": "/workspace", "C": "said-by-it"})
    many = {f"V{i}": f"value-number-{i}" for i in range(400)}
    box.exec(line, env={**many, "A": line})
    told = transcript_of(cloche, box)
    words = ["/bin/sh", "-c", line]
    asked = [e for e in told if e["event"] == "exec"]
    assert [e["argv"] for e in asked] == [words, words] and asked[0]["cwd"] == "/workspace"
    assert {e["argv_sha256"] for e in asked} == {hashlib.sha256("".join(w + "\0" for w in words).encode()).hexdigest()}
    assert [e["text"] for e in told if e["event"] == "output"] == ["[variable C]\n", "said-by-it\n"]
    recorded = [e["metadata"]["argv_sha256"] for e in chain(cloche) if e.get("metadata", {}).get("capability") == "exec" and "by" in e["metadata"]]
    assert recorded == [asked[0]["argv_sha256"]] * 2


REACH = """
import os, sys
for place in sys.argv[1:]:
    for how in (lambda: os.listdir(place), lambda: open(place + '/audit.jsonl').read(), lambda: os.mkdir(place + '/x'),
                lambda: open(place + '/audit.jsonl', 'a').write('x'), lambda: os.rename(place, place + 'x')):
        try: how(); print('REACHED', place)
        except OSError: pass
"""


@pytest.mark.parametrize("view", ["private", "host"])
def test_no_sandbox_reaches_the_records(cloche, daemon, view):
    box = daemon.create(policy={"view": view, "workspace": str(cloche.project)})
    state = cloche.state / "cloche"
    assert (state / "audit").is_dir() and (state / "serve" / "transcripts").is_dir()
    said = box.exec([places.PYTHON, "-I", "-S", "-c", REACH, str(state / "audit"), str(state / "serve" / "transcripts"), str(state / "serve")])
    assert said["exit_code"] == 0 and "REACHED" not in said["stdout"], said
    assert cloche("audit", "verify").ok


def test_one_sandbox_says_nothing_about_another(daemon):
    one, other = daemon.create(name="one"), daemon.create(name="other")
    one.exec(["true", other.id])
    found = wait_for(lambda: [e for e in daemon.get("/v1/sandboxes/one/audit?limit=1000").json["entries"]
                              if e["metadata"].get("event") == "result"])
    assert {e["sandbox"] for e in found} == {one.id} and {e["metadata"]["from"] for e in found} == {"keeper"}
    assert not [e for e in daemon.get("/v1/sandboxes/other/audit?limit=1000").json["entries"]
                if e["metadata"].get("capability") == "exec"]


def test_who_asks_much_of_the_record_ends_nobodys_front(daemon):
    """An agent fills the newest entries with long ones and asks for all of them a hundred times at once: more than may
    wait for a front."""
    agent, other = caller(daemon, "agent"), daemon.create()
    box, stream = agent.create(), other.stream("echo here; until [ -e /workspace/stop ]; do sleep 0.05; done; echo there", timeout_ms=300_000)
    front = daemon.only("cloche-front")
    assert next(stream) == ("stdout", {"data": "here\n"})
    for i in range(300):
        agent("PUT", f"{box.at}/files/{i}{quote(chr(1) * 200)}", b"")
    whole = agent.get("/v1/audit?limit=1000")
    assert whole.ok and len(whole.body) > 300_000
    with contextlib.ExitStack() as held:
        asked = [daemon.connection() for _ in range(100)]
        for c in asked:
            held.callback(c.close)
            c.request("GET", "/v1/audit?limit=1000", headers=agent.credential())
        for c in asked:
            answer = c.getresponse()
            assert answer.status in (200, 429, 503), answer.read()
            answer.read()
    assert other.put("stop", b"").ok
    assert next(stream) == ("stdout", {"data": "there\n"}) and daemon.processes("cloche-front") == [front]
