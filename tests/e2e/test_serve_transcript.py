"""The transcript of a sandbox of the daemon: what was run and written in it, kept when it is gone, without secrets."""
import base64
import hashlib
import json
import os
import signal
import time

import pytest

from helpers import requirement
from helpers.daemon import Daemon, caller, restart
from helpers.mcp import SESSIONS, STATELESS, Client
from helpers.runner import wait_for
from helpers.transcripts import ended, file_of, fragments, of, transcript

pytestmark = requirement("R29", "R68")


def text(found, stream="stdout"):
    return "".join(e["text"] for e in of(found, "output") if e["stream"] == stream)


def test_logs_are_what_commands_wrote(daemon):
    box = daemon.create()
    box.exec("echo out; echo err >&2")
    box.put("f", b"12345")
    box.exec("head -c 200000 /dev/zero | tr '\\0' x; echo last")
    assert box.delete().ok
    found = [{k: v for k, v in e.items() if k != "event"} for e in of(transcript(daemon, box.id), "output")]
    logs, offset = [], 0
    while True:
        page = daemon.get(f"{box.at}/logs?offset={offset}")
        assert page.status == 200 and set(page.json) == {"logs", "next"}, page
        logs += page.json["logs"]
        if page.json["next"] == offset:
            break
        offset = page.json["next"]
    assert logs == found and all(set(e) == {"at", "operation", "stream", "text"} for e in logs)
    assert logs[0]["text"] + logs[1]["text"] in ("out\nerr\n", "err\nout\n") and logs[-1]["text"].endswith("xlast\n")
    assert daemon.get(f"{box.at}/logs?offset=x").status == 400 and daemon.get("/v1/sandboxes/nobody/logs").status == 404


def test_everything_that_was_done_outlives_the_sandbox(cloche, daemon):
    box = daemon.create(name="b")
    box.exec("echo out; echo err >&2; exit 3", cwd="/tmp")
    box.exec(["sh", "-c", "kill -9 $$"])
    daemon.post(f"{box.at}/exec", {"command": ["/no/such/program"]})
    box.put("f", b"12345")
    box.read("f")
    daemon("DELETE", box.file("f"))
    box.read("f")
    assert box.delete().ok
    found = transcript(daemon, box.id)
    begun = [e["event"] for e in found if e["event"] not in ("output", "content", "result")]
    assert begun == ["exec", "exec", "exec", "write", "read", "remove", "read"]
    first = of(found, "exec")[0]
    assert first["argv"] == ["/bin/sh", "-c", "echo out; echo err >&2; exit 3"] and first["cwd"] == "/tmp"
    assert text(found) == "out\n" and text(found, "stderr") == "err\n"
    results = {e["operation"]: e for e in of(found, "result")}
    ordered = [results[e["operation"]] for e in found if e["event"] not in ("output", "content", "result")]
    assert ordered[0]["exit_code"] == 3 and ordered[1]["signal"] == 9 and ordered[2]["error"]
    assert ordered[3]["count"] == 5 and ordered[3]["sha256"] == hashlib.sha256(b"12345").hexdigest()
    assert ordered[6]["error"] == "files.not-found"
    assert file_of(cloche, box).stat().st_mode & 0o777 == 0o600
    # the numbers are the audit record's
    asked = [e["metadata"]["operation"] for e in daemon.get("/v1/audit?limit=1000").json["entries"]
             if e.get("sandbox") == box.id and e["metadata"].get("capability") == "exec" and "by" in e["metadata"]]
    assert asked == [e["operation"] for e in of(found, "exec")]
    # also when its record is gone, by its id; nothing else names it then
    assert box.delete().ok and daemon.get(box.at).status == 404
    assert transcript(daemon, box.id) == found
    assert daemon.get("/v1/sandboxes/b/transcript").status == 404
    assert daemon.get(f"/v1/sandboxes/{'0' * 32}/transcript").json["code"] == "transcript.none"


def test_much_output_comes_in_pages_and_has_a_ceiling(daemon):
    box = daemon.create(policy={"limits": {"output": "4m"}})
    box.exec("yes 0123456789abcdef | head -c 2000000; echo odd '\\377\\000\\033[31m\"\\\\' >&2; printf '\\377\\001\"' >&2")
    found = transcript(daemon, box.id)
    said = text(found)
    assert said == ("0123456789abcdef\n" * 16000)[:len(said)] and 250_000 < len(said) <= 256 * 1024
    result, = of(found, "result")
    assert result["output_cut"] is True and result["stdout_bytes"] == 2000000
    assert "\\xff" in text(found, "stderr") and "\x01" in text(found, "stderr")


def test_a_transcript_goes_on_after_recovery_and_a_killed_keeper(cloche, daemon):
    box = daemon.create(name="b")
    box.exec("echo one")
    os.kill(daemon.processes("cloche-keeper")[0], signal.SIGKILL)
    box.wait_for("stopped")
    with open(file_of(cloche, box), "a") as f:
        f.write('{"half a li')          # as if it had died in the middle
    assert daemon.post(f"{box.at}/recover").ok
    box.exec("echo two")
    assert text(transcript(daemon, box.id)) == "one\ntwo\n"


def test_modes(cloche):
    daemon = Daemon(cloche, "--transcript", "commands")
    box = daemon.create()
    box.exec("echo said")
    found = transcript(daemon, box.id)
    assert [e["event"] for e in found] == ["exec", "result"] and found[1]["stdout_bytes"] == 5
    assert daemon.stop() == 0
    daemon = Daemon(cloche, "--transcript", "off")
    box = daemon.create()
    box.exec("echo said")
    assert daemon.get(f"{box.at}/transcript").status == 404 and not file_of(cloche, box).exists()
    assert daemon.stop() == 0
    assert cloche("serve", "--transcript", "some").code == 125


def test_old_transcripts_go_and_those_of_the_living_stay(cloche):
    daemon = Daemon(cloche)
    boxes = [daemon.create() for _ in range(5)]
    for i, box in enumerate(boxes):
        box.exec("true")
        os.utime(file_of(cloche, box), (1000 * i, 1000 * i))
    assert daemon.stop() == 0
    daemon = Daemon(cloche, "--transcript-keep", "2", "--transcript-retention", "0")
    assert wait_for(lambda: [file_of(cloche, b).exists() for b in boxes] == [False] * 3 + [True] * 2)
    living = daemon.create()
    living.exec("true")
    os.utime(file_of(cloche, living), (0, 0))
    os.kill(daemon.processes("cloche-scribe")[0], signal.SIGKILL)       # the next one looks at once
    assert wait_for(lambda: daemon.get(f"{living.at}/transcript").ok)
    assert file_of(cloche, living).exists() and daemon.stop() == 0
    daemon = Daemon(cloche, "--transcript-retention", "1h")             # and by age
    assert wait_for(lambda: not any(file_of(cloche, b).exists() for b in [*boxes, living]))
    assert daemon.stop() == 0


def test_transcripts_have_a_bound_in_bytes(cloche):
    """The oldest of ended sandboxes go, of whoever has most; what went is an event and an entry of the record."""
    daemon = Daemon(cloche)
    agent = caller(daemon, "agent")
    small = agent.create()
    boxes = [daemon.create() for _ in range(5)]
    for i, box in enumerate([small, *boxes]):
        box.exec("true")
        os.utime(file_of(cloche, box), (1000 * i, 1000 * i))
    assert daemon.stop() == 0
    for i, box in enumerate(boxes):
        with open(file_of(cloche, box), "ab") as f:
            f.write(b"{}\n" * (256 * 1024))         # 768 KiB
        os.utime(file_of(cloche, box), (time.time(),) * 2 if i == 0 else (time.time() - 1000 * (9 - i),) * 2)
    os.utime(file_of(cloche, small), (time.time() - 90000,) * 2)
    daemon = Daemon(cloche, "--transcript-space", "2")
    assert wait_for(lambda: [file_of(cloche, b).exists() for b in boxes] == [True, False, False, False, True])
    assert file_of(cloche, small).exists()
    told = wait_for(lambda: [e for e in daemon.get("/v1/events?limit=1000").json["events"] if e["type"] == "transcript"])
    assert told[0]["detail"].startswith("3 of sandboxes that ended, the oldest, were removed: 2"), told
    assert wait_for(lambda: [e for e in daemon.get("/v1/audit?limit=1000").json["entries"] if e["metadata"].get("event") == "transcript"])
    living = daemon.create()
    living.exec("true")
    assert living.delete().ok
    with open(file_of(cloche, living), "ab") as f:
        f.write(b"{}\n" * (1024 * 1024))            # more than all
    assert wait_for(lambda: not file_of(cloche, living).exists(), 120)       # looked at every 15 s
    assert file_of(cloche, small).exists() and daemon.stop() == 0


def test_nobody_loses_a_transcript_for_what_anothers_sandbox_writes(cloche):
    """Those of sandboxes that live cannot go, so they do not count: else one agent's output would be the end of everybody's record."""
    daemon = Daemon(cloche, "--transcript-space", "1")
    agent = caller(daemon, "agent")
    mine, its = daemon.create(), agent.create()
    for box in (mine, its):
        box.exec("true")
    ended(daemon, mine)
    living = agent.create()
    for _ in range(7):
        living.exec("head -c 250000 /dev/zero | tr '\\0' x")
    ended(daemon, its)
    assert file_of(cloche, living).stat().st_size > 1.5 * 2 ** 20
    with open(file_of(cloche, its), "ab") as f:
        f.write(b"{}\n" * (400 * 1024))             # of its that ended there is too much too: it goes, and shows that there was a look
    os.kill(daemon.processes("cloche-scribe")[0], signal.SIGKILL)       # the next one looks at once
    assert wait_for(lambda: not file_of(cloche, its).exists())
    told = wait_for(lambda: [e for e in daemon.get("/v1/events?limit=1000").json["events"] if e["type"] == "transcript"])
    assert told[0]["detail"].startswith("1 of sandboxes that ended"), told
    assert file_of(cloche, mine).exists() and file_of(cloche, living).exists() and daemon.stop() == 0


def everything(daemon, cloche, box):
    """The records, as bytes on the disk, and the events."""
    written = wait_for(lambda: [e for e in daemon.get("/v1/audit?limit=1000").json["entries"]
                                if e["metadata"].get("capability") == "delete"])
    assert written
    return ((cloche.state / "cloche" / "audit" / "audit.jsonl").read_text(), file_of(cloche, box).read_text(),
            daemon.get("/v1/events?limit=1000").body.decode())


def forms(value):
    """What encoders make of it, and of that what is the value's alone."""
    for k in range(3):
        whole = base64.b64encode(b"x" * k + value.encode()).decode()
        yield whole, whole[4:-4]
    percent = "".join(c if c.isalnum() or c in "-._~" else f"%{ord(c):02X}" for c in value)
    yield from ((f, f) for f in (value.encode().hex(), percent))


def betray(box, value):
    """Whoever asks puts the value wherever it fits."""
    box.exec(["echo", "--password", value], env={"A": value}, cwd="/tmp")
    box.exec(f"echo {value}; printf %s {value[:10]}; sleep 0.1; printf %s {value[10:]}; echo {value.upper()} >&2")
    box.daemon.post(f"{box.at}/exec", {"command": [f"/bin/{value}"]})
    box.daemon.post(f"{box.at}/exec", {"command": ["true"], "cwd": f"/{value}"})
    box.exec(["cat"], stdin=value * 3)
    for whole, _ in forms(value):
        box.exec(["echo", "--header", f"Basic {whole}"])
    box.exec(["sh", "-c", "for p in '' x xx; do printf %s \"$p$1\" | base64 -w0; echo; done", "-", value])
    box.daemon.post(f"{box.at}/exec", {"command": ["true"], "cwd": "/" + next(forms(value))[0]})
    box.exec(f"yes {value} | head -c 600000")
    box.put(f"dir-{value}", value.encode())
    box.read(f"dir-{value}")
    box.daemon("DELETE", box.file(f"dir-{value}"))
    box.daemon("DELETE", box.file(f"not/{value}"))


def test_no_variables_value_is_in_a_record(cloche, daemon):
    value = "s3cr3t-v4lue?01/23+456789"
    box = daemon.create(policy={"env": {"TOKEN": value}, "limits": {"output": "4m"}})
    betray(box, value)
    box.exec("echo $TOKEN")
    assert box.delete().ok
    for record in everything(daemon, cloche, box):
        assert value.lower() not in record.lower() and "[variable TOKEN]" in record
        assert fragments(value, record) < 11, fragments(value, record)
        assert not [whole for whole, core in forms(value) if core in record]
    other = daemon.create()
    other.exec("echo $MINE", env={"MINE": "of-this-command-only-1"})
    assert "[variable MINE]" in text(transcript(daemon, other.id))


@pytest.mark.root
@requirement("R16", "R45")
def test_no_secrets_value_is_in_a_record(online):
    """The real value of a secret, which neither the keeper nor the warden has."""
    value = "ghp_" + "TheRealValue0123456789" + "abcdefGHIJKL"
    daemon = Daemon(online.cloche, path=online.bare.state / "cloche" / "serve" / "api.sock")
    assert online.bare("secret", "set", "token", "--binding", "github", stdin=value).ok
    box = daemon.create(policy={"secrets": ["token"], "limits": {"output": "4m"},
                                "network": {"mode": "allowlist", "allow": ["api.github.com"]}})
    placeholder = box.exec("printf %s $GITHUB_TOKEN")["stdout"]
    betray(box, value)
    restart(daemon)     # the next one knows it too
    assert box.wait_for("ready")
    betray(box, value)
    assert box.delete().ok
    for record in everything(daemon, online.bare, box):
        assert value.lower() not in record.lower() and "[secret token]" in record
        assert placeholder not in record
        assert fragments(value, record) < 11, fragments(value, record)
        assert not [whole for whole, core in forms(value) if core in record]
    assert daemon.stop() == 0


def test_a_transcript_has_a_hole_rather_than_half_a_line(cloche, daemon):
    """Each line of the file is whole JSON."""
    box = daemon.create()
    for i in range(20):
        box.exec(f"head -c {i * 3000} /dev/urandom; head -c {i * 3000} /dev/urandom >&2")
    lines = file_of(cloche, box).read_bytes().split(b"\n")
    assert lines.pop() == b""
    for line in lines:
        json.loads(line)


# --- files -----------------------------------------------------------------------------------------------------------

@requirement("R29", "R45")
@pytest.mark.parametrize("by", ["the route", "a tool"])
def test_what_files_were_given_outlives_the_sandbox(cloche, daemon, by):
    """Each edit that came from outside, as it was, also when a later one, or a command, made it another."""
    box, client = daemon.create(), Client(daemon)
    for content in ("first\n", "second \u00e9\n"):
        if by == "the route":
            box.put("a.txt", content.encode())
        else:
            assert client.call("code_write_file", sandbox_id=box.id, file_path="a.txt", content=content)["success"]
    box.exec("rm a.txt")
    box.put("binary", b"\xff\x00\x1b")
    box.put("large", b"x" * 300000)
    assert box.delete().ok
    found = transcript(daemon, box.id)
    written = {}
    for e in of(found, "content"):
        written[e["operation"]] = written.get(e["operation"], "") + e["text"]
    writes = [(e["operation"], e["path"].rsplit("/", 1)[-1]) for e in of(found, "write")]
    assert [written[n] for n, name in writes if name == "a.txt"] == ["first\n", "second \u00e9\n"], writes
    assert [written[n] for n, name in writes if name == "binary"] == ["\\xff\\x00\x1b"]
    results = {e["operation"]: e for e in of(found, "result")}
    large, = [n for n, name in writes if name == "large"]
    assert written[large] == "x" * len(written[large]) and 250_000 < len(written[large]) <= 256 * 1024
    assert results[large]["content_cut"] and results[large]["sha256"] == hashlib.sha256(b"x" * 300000).hexdigest()
    assert not any(results[n]["content_cut"] for n, name in writes if name != "large")
    # what commands wrote is a list of its own
    assert not any("first" in entry["text"] for entry in daemon.get(f"{box.at}/logs").json["logs"])


def test_no_secret_is_in_what_a_file_was_given(daemon):
    secret = "a-value-that-nobody-may-see-0123456789"
    box = daemon.create(policy={"env": {"SERVICE_PASSWORD": secret}})
    box.put("config", b"x" * 8180 + f"password={secret}\n".encode() + b"y" * 9000)      # across two pieces
    said = json.dumps(transcript(daemon, box.id))
    assert secret not in said and secret[10:] not in said and "password=[" in said


def test_without_output_there_is_no_content(cloche):
    daemon = Daemon(cloche, "--transcript", "commands")
    box = daemon.create()
    box.put("f", b"not-to-be-kept")
    found = transcript(daemon, box.id)
    assert daemon.stop() == 0 and of(found, "write") and "not-to-be-kept" not in json.dumps(found)


# --- the conversation ------------------------------------------------------------------------------------------------

def say(daemon, box, role, content):
    return daemon("POST", f"{box.at}/messages", {"role": role, "content": content})


@requirement("R29", "R45")
def test_messages_outlive_the_sandbox(cloche, daemon):
    agent = caller(daemon, "agent", name="builder")
    box = agent.create()
    first = say(agent, box, "user", "list the files of \"this\" folder\n\u00e9")
    assert first.status == 201, first
    assert agent("POST", f"{box.at}/exec", {"command": "ls"}).json["exit_code"] == 0
    parts = [{"type": "text", "text": "there are none"}, {"type": "tool_use", "n": 1}]
    second = say(daemon, box, "assistant", parts)
    assert second.status == 201 and second.json["operation"] > first.json["operation"], second
    assert box.delete().ok and daemon("DELETE", f"{box.at}?record=true").status in (200, 204, 404)
    found = transcript(daemon, box.id)
    assert [e["event"] for e in found if e["event"] != "output"] == ["message", "exec", "result", "message"], found
    one, two = of(found, "message")
    assert (one["role"], one["text"], one["operation"]) == ("user", "list the files of \"this\" folder\n\u00e9", first.json["operation"])
    assert one["by"].endswith(" builder") and two["by"] == "the owner" and two["json"] and json.loads(two["text"]) == parts
    listed = daemon.get(f"{box.at}/messages").json
    assert [{**m, "event": "message"} for m in listed["messages"]] == [one, two]
    asked = [e for e in daemon.get(f"/v1/audit?sandbox={box.id}&limit=1000").json["entries"] if e["metadata"].get("capability") == "message"]
    assert [(e["metadata"]["role"], e["metadata"]["operation"]) for e in asked] == [("user", one["operation"]), ("assistant", two["operation"])]
    assert "folder" not in json.dumps(asked)        # what it says is in the transcript alone


def test_no_secret_is_in_a_message(daemon):
    secret = "a-value-that-nobody-may-see-0123456789"
    box = daemon.create(policy={"env": {"SERVICE_PASSWORD": secret}})
    assert say(daemon, box, "user", f"my password is {secret}").status == 201
    assert say(daemon, box, "tool", {"result": secret}).status == 201
    said = json.dumps(transcript(daemon, box.id))
    assert secret not in said and "my password is [" in said


@pytest.mark.parametrize("body", [
    {}, {"role": "user"}, {"content": "x"}, {"role": "", "content": "x"}, {"role": "User", "content": "x"}, {"role": "a b", "content": "x"},
    {"role": "a" * 32, "content": "x"}, {"role": 1, "content": "x"}, {"role": "user", "content": "x", "more": 1}, [], "x",
    {"role": "user", "content": "a\0b"},
])
def test_what_is_no_message(daemon, body):
    box = daemon.create()
    answer = daemon("POST", f"{box.at}/messages", body)
    assert answer.status == 400 and answer.json["code"] in ("message.request", "http.json"), answer
    assert not of(transcript(daemon, box.id), "message")


def test_messages_have_their_limits(cloche, daemon):
    box = daemon.create()
    assert say(daemon, box, "user", "x" * 65536).status == 201 and say(daemon, box, "user", "").status == 201
    assert say(daemon, box, "user", "x" * 65537).status == 413
    assert say(daemon, box, "a" * 31, [12]).status == 201
    assert [len(m["text"]) for m in of(transcript(daemon, box.id), "message")] == [65536, 0, 4]
    assert daemon.post(f"{box.at}/pause").ok and say(daemon, box, "user", "while it stands still").status == 201
    other = caller(daemon, "agent").create()
    stranger = caller(daemon, "agent")
    assert say(stranger, other, "user", "x").status == 404 and say(caller(daemon, "auditor"), other, "user", "x").status == 403
    assert box.delete().ok and say(daemon, box, "user", "too late").status in (404, 409)


def test_where_no_transcript_is_kept_a_message_is_refused(cloche):
    daemon = Daemon(cloche, "--transcript", "off")
    refused = say(daemon, daemon.create(), "user", "x")
    assert daemon.stop() == 0 and refused.status == 409 and refused.json["code"] == "transcript.off", refused


@requirement("R29", "R62")
@pytest.mark.parametrize("form", [SESSIONS, STATELESS])
@pytest.mark.parametrize("gate", ["off", None])
def test_calls_of_tools_are_there_by_themselves(cloche, request, form, gate):
    daemon = Daemon(cloche, gate=gate)
    request.addfinalizer(lambda: daemon.process.poll() is None and daemon.stop())
    client = Client(daemon, form)           # the owner, who is not judged
    ran = client.call("code_execute", language="shell", code="echo the-code")
    assert ran["success"], ran
    box = ran["sandbox_id"]
    assert client.call("code_write_file", sandbox_id=box, file_path="a.txt", content="hello")["success"]
    assert client.call("code_read_file", sandbox_id=box, file_path="a.txt")["success"]
    assert client.call("code_destroy_sandbox", sandbox_id=box)["success"]
    found = transcript(daemon, box)
    calls = of(found, "call")
    assert [c["tool"] for c in calls] == ["code_execute", "code_write_file", "code_read_file", "code_destroy_sandbox"], found
    assert json.loads(calls[0]["arguments"])["code"] == "echo the-code" and {c["by"] for c in calls} == {"the owner"}
    # before the operations that it came to
    assert [e["event"] for e in found].index("call") < [e["event"] for e in found].index("exec")
    assert daemon.stop() == 0
