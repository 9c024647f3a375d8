"""cloche serve: sandboxes over HTTP on a unix socket."""
import base64
import concurrent.futures
import hashlib
import json
import os
import socket
import stat

import pytest

from helpers import leaks, requirement
from helpers.daemon import Daemon, OthersDaemon, Sandbox
from helpers.runner import wait_for
from helpers.shared import own, shared
from helpers.websocket import Command

pytestmark = [requirement("R61"), shared]
ESCAPES = "Path escapes workspace."


@pytest.fixture
def box(daemon):
    return daemon.create(name="box")


# --- life -------------------------------------------------------------------------------------------------------------

@requirement("R20", "R42")
def test_a_sandbox_from_its_birth_to_its_end(daemon):
    box = daemon.create(name="first", labels={"team": "a", "who": "me"})
    record = box.show()
    assert record["state"] == "ready" and record["name"] == "first" and not record["paused"], record
    assert record["labels"] == {"team": "a", "who": "me"} and len(box.id) == 32 and record["facts"]["engine"] == "native"
    assert daemon.get("/v1/sandboxes/first").json["id"] == box.id
    assert box.exec("echo hello")["stdout"] == "hello\n"
    ended = box.delete()
    assert ended.status == 200 and ended.json["state"] == "stopped" and ended.json["detail"] == "deleted", ended
    assert not daemon.processes("cloche-guest") and not daemon.processes("cloche-keeper")
    # the record stays until it is deleted too
    assert box.show()["state"] == "stopped"
    assert daemon.get("/v1/sandboxes").json["sandboxes"] == []
    assert [b["id"] for b in daemon.get("/v1/sandboxes?state=all").json["sandboxes"]] == [box.id]
    assert box.delete().status == 200
    assert box.delete().status == 404 and daemon.get(box.at).status == 404
    types = [e["type"] for e in daemon.get(f"/v1/events?sandbox={box.id}").json["events"]]
    assert types[0] == "container_start" and "exec" in types and types[-1] == "container_stop", types


@requirement("R17", "R41")
def test_listing(daemon):
    made = {name: daemon.create(name=name, labels={"kind": name[:1]}).id for name in ("a-1", "a-2", "b-1")}
    names = lambda query: [b["name"] for b in daemon.get("/v1/sandboxes" + query).json["sandboxes"]]
    assert names("") == ["a-1", "a-2", "b-1"]
    assert names("?prefix=a-") == ["a-1", "a-2"]
    assert names("?label=kind%3Db") == ["b-1"] and names("?label=kind%3Dz") == []
    page = daemon.get("/v1/sandboxes?limit=2").json
    assert len(page["sandboxes"]) == 2 and page["next"].startswith(made["a-2"])
    page = daemon.get(f"/v1/sandboxes?limit=2&after={page['next']}").json
    assert [b["name"] for b in page["sandboxes"]] == ["b-1"] and page["next"] is None
    for query in ("?limit=0", "?limit=x", "?after=zz", "?label=no", "?state=some", "?prefix=%zz"):
        assert daemon.get("/v1/sandboxes" + query).status == 400, query


@pytest.mark.parametrize("body, code", [
    ({"name": "-x"}, "sandbox.request"), ({"name": "a" * 64}, "sandbox.request"), ({"name": "0" * 32}, "sandbox.request"),
    ({"name": 1}, "sandbox.request"), ({"labels": {"a b": "c"}}, "sandbox.request"), ({"labels": {"a=b": "c"}}, "sandbox.request"),
    ({"labels": {"a=1\nb": "c"}}, "sandbox.request"), ({"labels": {"a": "x\ny"}}, "sandbox.request"),
    ({"labels": {"a": 1}}, "sandbox.request"), ({"policy": []}, "sandbox.request"), ({"idle_timeout": -1}, "sandbox.request"),
    ({"surprise": 1}, "sandbox.request"), ([], "sandbox.request"), ({"policy": {"mode": "off"}}, "serve.mode-off"),
    ({"policy": {"surprise": 1}}, None), ({"policy": {"mode": "none"}}, None), ({"policy": {"limits": {"memory": "x"}}}, None),
])
def test_what_is_refused(daemon, body, code):
    answer = daemon.post("/v1/sandboxes", body)
    assert answer.status == 400 and answer.json["error"] and answer.json["request_id"], answer
    assert code in (None, answer.json["code"]), answer
    assert daemon.get("/v1/sandboxes?state=all").json["sandboxes"] == []


@pytest.mark.parametrize("path, body, name, known", [
    ("", {"nam": "x"}, "nam", "workspace_key"), ("", {"recovery": {"afetr": 60}}, "afetr", "after, tries, window"),
    ("", {"volume": {"name": "v", "keep": 1}}, "keep", "name, retention"), ("/box/exec", {"comand": "true"}, "comand", "timeout_ms"),
    ("/box/exec", {"x" * 63 + "\u00fc": 1}, "x" * 63, "command, cwd"),
])
def test_a_member_that_there_is_not_is_named(daemon, box, path, body, name, known):
    answer = daemon.post("/v1/sandboxes" + path, body)
    assert box.id and answer.status == 400 and f'there is no member "{name}' in answer.json["error"] and known in answer.json["detail"], answer


def test_numbers_are_shown_as_they_came(daemon):
    # a warning where nothing limits the processor for this user
    box = daemon.create(policy={"fallback": "warn", "limits": {"cpus": 0.1}})
    assert b'"cpus":0.1}' in daemon.get(f"{box.at}/policy").body and b"0.1000000" not in daemon.get(box.at).body


def test_a_name_is_one_sandboxs(daemon, box):
    answer = daemon.post("/v1/sandboxes", {"name": "box"})
    assert answer.status == 409 and answer.json["code"] == "sandbox.name-taken", answer
    box.delete()
    assert daemon.create(name="box").id != box.id
    answer = daemon.post(f"{box.at}/recover")       # nor does the former one take it back
    assert answer.status == 409 and answer.json["code"] == "sandbox.name-taken", answer


def test_each_life_has_a_copy_of_the_workspace(cloche, daemon):
    (cloche.project / "f").write_text("theirs")
    box = daemon.create(policy={"workspace": f"{cloche.project}:cow"})
    states = set()
    for _ in range(3):
        facts = box.show()["facts"]
        states.add(facts["cow"])
        assert box.read("f").body == b"theirs"
        box.put("f", b"mine")
        box.delete()
        again = daemon.post(f"{box.at}/recover")
        assert again.status == 200 and again.json["id"] == box.id, again
    assert len(states) == 3 and (cloche.project / "f").read_text() == "theirs", states


@requirement("R82")
def test_a_copy_knows_what_its_policy_protects(cloche):
    """By the daemon's settings, or by the sandbox's own list in place of theirs: what its API does to these names waits for a person."""
    settings = cloche.home / "protects.yaml"
    settings.write_text("filesystem: {protect: [deploy.sh]}\n", encoding="utf-8")
    daemon = Daemon(cloche, "--settings", str(settings))
    names = {"deploy.sh", "release.sh", "f"}
    for own_list, waits in ((None, {"deploy.sh"}), (["release.sh"], {"release.sh"}), ([], set())):
        for name in names:
            (cloche.project / name).write_text("theirs")
        box = daemon.create(policy={"workspace": f"{cloche.project}:cow"} | ({} if own_list is None else {"filesystem": {"protect": own_list}}))
        assert all(box.put(name, b"api").ok for name in names)
        state = box.show()["facts"]["cow"]
        box.delete()
        applied = cloche("apply", "--json", state, cwd=cloche.project)
        assert applied.code == (2 if waits else 0) and {c["path"] for c in applied.json["withheld"]} == waits, applied
        assert all((cloche.project / name).read_text() == ("theirs" if name in waits else "api") for name in names)
    assert daemon.stop() == 0, daemon.log


def test_what_git_was_told_is_kept_at_the_end(cloche, daemon, has):
    """A daemon's sandbox adds to the project's .git/config what one of `cloche run` does (docs/name-guard.md)."""
    has("git")
    for words in ("init -q", "-c user.name=o -c user.email=o@o commit -q --allow-empty -m one"):
        assert cloche.run(["git", *words.split()], cwd=cloche.project).ok
    before = (cloche.project / ".git/config").read_text()
    box = daemon.create(policy={"workspace": f"{cloche.project}:rw"})
    done = box.exec("git remote add fork https://h/f && git config core.fsmonitor evil; git remote")
    assert "fork" in done["stdout"], done
    assert (cloche.project / ".git/config").read_text() == before
    assert box.delete().status in (200, 204)
    after = (cloche.project / ".git/config").read_text()
    assert after.startswith(before) and 'url = "https://h/f"' in after and "evil" not in after, after


def test_no_more_than_are_allowed(cloche):
    daemon = Daemon(cloche, "--max-sandboxes", "1")
    daemon.create()
    answer = daemon.post("/v1/sandboxes", {})
    assert answer.status == 429 and answer.json["code"] == "sandbox.too-many", answer
    assert daemon.stop() == 0


@requirement("R22")
def test_idle_and_old_ones_end(daemon):
    idle, old = daemon.create(idle_timeout=1), daemon.create(max_lifetime=1)

    def running():          # before its second is over, or another one
        try:
            return daemon.create(idle_timeout=1).stream("echo here; exec sleep 600")
        except AssertionError:
            return None
    busy = wait_for(running, 60)
    assert next(busy) == ("stdout", {"data": "here\n"})
    assert idle.wait_for("stopped") and old.wait_for("stopped")
    assert idle.show()["detail"] == "it was idle for too long" and old.show()["detail"] == "its maximum lifetime was over"
    assert wait_for(lambda: len(daemon.get("/v1/sandboxes").json["sandboxes"]) == 1)
    busy.close()        # now it is idle as well
    assert wait_for(lambda: daemon.get("/v1/sandboxes").json["sandboxes"] == [], 60)


@requirement("R42")
def test_pause_and_resume(daemon, box):
    box.exec("mkfifo p")
    running = box.stream("echo there; cat p; echo done")
    assert next(running) == ("stdout", {"data": "there\n"})
    assert wait_for(lambda: daemon.processes("cat"))
    paused = daemon.post(f"{box.at}/pause")
    assert paused.status == 200 and paused.json["paused"] and paused.json["state"] == "ready", paused
    answer = daemon.post(f"{box.at}/exec", {"command": "true"})
    assert answer.status == 409 and answer.json["code"] == "sandbox.paused", answer
    if box.record["facts"]["pause_by"] == "signals":
        states = lambda: {leaks.parents()[pid][1] for pid in daemon.processes("cat")}
        assert wait_for(lambda: states() == {"T"}), states()
    assert not daemon.post(f"{box.at}/resume").json["paused"]
    assert box.exec("echo on > p; echo on")["stdout"] == "on\n"
    events = list(running)
    assert "".join(data.get("data", "") for _, data in events) == "on\ndone\n"
    assert events[-1][0] == "exit" and events[-1][1]["exit_code"] == 0, events


@own
@requirement("R42")
@pytest.mark.root
@pytest.mark.slow
def test_a_guest_that_hangs_is_degraded_and_can_be_made_anew(daemon, box):
    box.put("kept", b"x")
    guest = daemon.only("cloche-guest")
    os.kill(guest, 19)
    assert box.wait_for("degraded"), box.show()
    os.kill(guest, 18)
    assert box.wait_for("ready"), box.show()
    os.kill(guest, 19)
    assert box.wait_for("degraded")
    again = daemon.post(f"{box.at}/recover")
    assert again.status == 200 and again.json["state"] == "ready" and again.json["id"] == box.id, again
    assert daemon.processes("cloche-guest") != [guest]
    assert box.read("kept").status == 404           # a fresh one
    assert daemon.post(f"{box.at}/recover").status == 409
    box.delete()
    assert daemon.post(f"{box.at}/recover").json["state"] == "ready"


@own
@requirement("R42")
def test_a_keeper_that_hangs_hinders_no_other(daemon):
    """However much is asked of its sandbox."""
    stuck = daemon.create()
    keeper = daemon.only("cloche-keeper")
    box = daemon.create()
    os.kill(keeper, 19)
    waiting = []
    for i in range(300):
        c = daemon.connection()
        c.request("POST", f"{stuck.at}/exec", json.dumps({"command": ["true", "x" * (100_000 if i < 20 else 100)]}))
        waiting.append(c)
    assert box.exec("echo on")["stdout"] == "on\n" and box.delete().json["state"] == "stopped"
    assert stuck.delete().json["state"] == "stopped"        # it is told, then killed
    assert keeper not in daemon.processes("cloche-keeper")
    refused = [json.loads(c.getresponse().read()) for c in waiting]
    assert {r["code"] for r in refused} <= {"sandbox.gone", "sandbox.busy", "sandbox.state"} and len(refused) == 300, refused
    for c in waiting:
        c.close()


@requirement("R51")
def test_the_kill_switch(daemon):
    boxes = [daemon.create() for _ in range(3)]
    streams = [b.stream("echo up; exec sleep 600") for b in boxes]
    for stream in streams:
        assert next(stream)[0] == "stdout"
    assert daemon.post("/v1/kill").json == {"stopped": 3}
    assert not daemon.processes("cloche-guest") and not daemon.processes("sleep")
    assert {b.show()["detail"] for b in boxes} == {"kill switch"}
    for stream in streams:
        assert list(stream)[-1][0] in ("exit", "error")
    daemon.create()


# what is no file is looked at a few times a second, so it has to stay for a while
HOLD = "import time; x = bytearray(b\"x\") * (512 << 20); time.sleep(600)"


@requirement("R26")
def test_memory_that_is_used_up_ends_the_command_and_not_the_sandbox(daemon):
    box = daemon.create(policy={"limits": {"memory": "64m"}})
    assert box.exec(["sh", "-c", "echo kept > kept"])["exit_code"] == 0
    for command in (["python3", "-c", HOLD], ["sh", "-c", f"python3 -c '{HOLD}'; exit $?"]):
        result = box.exec(command)
        assert result["oom_killed"] and (result["signal"] or result["exit_code"] == 137), result
        # what was killed gives its memory back when the kernel comes to it: until then the next command has none either
        assert wait_for(lambda: box.exec(["cat", "kept"])["stdout"] == "kept\n"), box.show()
    assert box.show()["state"] == "ready", box.show()


# --- commands ---------------------------------------------------------------------------------------------------------

def test_commands(box):
    assert box.exec(["printf", "%s|", "a b", ""])["stdout"] == "a b||"
    assert box.exec("exit 7")["exit_code"] == 7
    result = box.exec("kill -9 $$")
    assert result["exit_code"] is None and result["signal"] == 9, result
    assert box.exec("echo $A$B; pwd", env={"A": "1", "B": "é"}, cwd="/tmp")["stdout"] == "1é\n/tmp\n"
    assert box.exec("cat", stdin="x" * 300000)["stdout"] == "x" * 300000
    assert box.exec("cat", stdin="")["stdout"] == ""
    assert box.exec("echo out; echo err >&2")["stderr"] == "err\n"
    result = box.exec(["no-such-command"])
    assert result["exit_code"] == 127 and "no-such-command" in result["stderr"], result
    # one sandbox: files and processes of one command are the next one's
    box.exec("echo kept > f; sleep 600 >/dev/null 2>&1 &")
    assert box.exec("cat f")["stdout"] == "kept\n"
    assert int(box.exec("cat /proc/[0-9]*/comm | grep -c sleep")["stdout"]) == 1


def test_bytes_that_are_no_text(box):
    result = box.exec(r"printf 'a\377b\303'")
    assert result["stdout"] == "a\ufffdb\ufffd", result
    assert base64.b64decode(box.exec(r"printf 'a\377\000b'", encoding="base64")["stdout"]) == b"a\xff\0b"


@requirement("R65")
def test_limits_of_a_command(box):
    result = box.exec("echo before; sleep 600", timeout_ms=5000)
    assert result["timed_out"] and result["signal"] == 15 and result["stdout"] == "before\n", result
    result = box.exec("trap '' TERM; echo deaf; sleep 600", timeout_ms=5000)
    assert result["timed_out"] and result["signal"] == 9, result
    result = box.exec("head -c 3000000 /dev/zero | tr '\\0' x; echo end >&2")
    assert result["stdout"] == "x" * (1 << 20) and result["stdout_truncated"] and not result["stderr_truncated"]
    assert result["stderr"] == "end\n" and result["exit_code"] == 0


@pytest.mark.parametrize("body", [
    b"", b"{", b"[]", b"{}", b'{"command":[]}', b'{"command":""}', b'{"command":[""]}', b'{"command":[1]}', b'{"command":1}',
    b'{"command":"a\\u0000b"}', b'{"command":"x","command":"y"}', b'{"command":"x","timeout_ms":0}',
    b'{"command":"x","timeout_ms":1.5}', b'{"command":"x","env":{"A=B":"c"}}', b'{"command":"x","env":{"A":1}}',
    b'{"command":"x","stdin":1}', b'{"command":"x","encoding":"hex"}', b'{"command":"x","surprise":1}', b'{"command":"\xff"}',
])
def test_malformed_requests_run_nothing(daemon, box, body):
    answer = daemon.post(f"{box.at}/exec", body)
    if body == b'{"command":""}':
        assert answer.status == 200         # a shell's empty line
        return
    assert answer.status == 400 and answer.json["code"], answer
    began = daemon.get(f"/v1/events?sandbox={box.id}").json["events"][0]["number"]
    assert "exec" not in [e["type"] for e in daemon.get("/v1/events").json["events"] if e["number"] >= began]


def test_too_much_is_refused(daemon, box):
    answer = daemon.post(f"{box.at}/exec", {"command": ["echo", "x" * 200000]})
    assert answer.status == 413, answer
    answer = daemon.post(f"{box.at}/exec", b'{"command":"' + b"x" * (11 << 20) + b'"}')
    assert answer.status == 413, answer
    assert daemon.post(f"{box.at}/exec", {"command": ["x"] * 1025}).status == 400
    assert box.exec("echo well")["stdout"] == "well\n"


def test_output_comes_while_the_command_runs(daemon, box):
    stream = box.stream("printf 'one \\303'; while [ ! -e go ]; do sleep 0.01; done; printf '\\244 two'; exit 3")
    assert next(stream) == ("stdout", {"data": "one "})         # half a character waits for its other half
    assert box.put("go", b"").ok
    text = "".join(data.get("data", "") for name, data in [*stream] if name == "stdout")
    assert text == "ä two"


def test_a_client_that_goes_takes_its_command_along(daemon, box):
    stream = box.stream("echo here; exec sleep 600")
    assert next(stream) == ("stdout", {"data": "here\n"})
    assert wait_for(lambda: daemon.processes("sleep"))     # after the echo
    stream.close()
    assert wait_for(lambda: not daemon.processes("sleep"))
    c = daemon.connection()         # and one that waits for a whole answer
    c.request("POST", f"{box.at}/exec", json.dumps({"command": "exec sleep 600"}))
    assert wait_for(lambda: daemon.processes("sleep"))
    c.close()
    assert wait_for(lambda: not daemon.processes("sleep"))
    assert box.exec("echo on")["stdout"] == "on\n"


def test_a_slow_reader_slows_its_own_command_alone(daemon, box):
    c = socket.socket(socket.AF_UNIX)
    c.connect(str(daemon.path))
    body = json.dumps({"command": "yes"}).encode()
    c.sendall(b"POST %s/exec HTTP/1.1\r\nHost: x\r\nAccept: text/event-stream\r\nContent-Length: %d\r\n\r\n%s" %
              (box.at.encode(), len(body), body))
    assert wait_for(lambda: daemon.processes("yes"))
    assert box.exec("echo through")["stdout"] == "through\n"
    c.close()
    assert wait_for(lambda: not daemon.processes("yes"))


# --- files ------------------------------------------------------------------------------------------------------------

@requirement("R61")
def test_files(daemon, box):
    data = os.urandom(5_000_000)
    assert box.put("deep/er/f.bin", data).status == 404
    written = box.put("deep/er/f.bin", data, "?parents=true")
    assert written.json == {"path": "deep/er/f.bin", "size": len(data)}, written
    assert hashlib.sha256(box.read("deep/er/f.bin").body).digest() == hashlib.sha256(data).digest()
    assert daemon.get(box.file("deep/er/f.bin") + "?offset=10&length=7").body == data[10:17]
    assert daemon.get(box.file("deep/er/f.bin") + "?offset=4999990").body == data[-10:]
    assert box.exec("sha256sum deep/er/f.bin")["stdout"].split()[0] == hashlib.sha256(data).hexdigest()
    entries = daemon.get(f"{box.at}/dirs/deep/er").json["entries"]
    assert [(e["name"], e["type"], e["size"]) for e in entries] == [("f.bin", "file", len(data))], entries
    assert daemon.get(f"{box.at}/dirs").json["entries"][0]["name"] == "deep"
    info = daemon.get(f"{box.at}/stat/deep").json
    assert info["type"] == "directory" and info["mode"] == "0755", info
    assert box.put("script", b"#!/bin/sh\necho ran\n", "?mode=755").ok and box.exec("./script")["stdout"] == "ran\n"
    assert box.put("script", b"x", "?exclusive=true").status == 409
    assert box.put("empty", b"").json["size"] == 0 and box.read("empty").body == b""
    assert daemon.post(f"{box.at}/dirs/new").status == 201 and daemon.get(f"{box.at}/stat/new").json["type"] == "directory"
    assert daemon("DELETE", box.file("deep")).status == 409
    assert daemon("DELETE", box.file("deep") + "?recursive=true").json["removed"] == 3
    assert box.read("deep/er/f.bin").status == 404 and box.read("new").status == 409


@requirement("R11", "R24")
@pytest.mark.parametrize("path", ["../etc/passwd", "/etc/passwd", "a/../../x", "/workspace/../etc/passwd", "..", "a/.."])
def test_paths_that_leave_the_workspace(daemon, box, path):
    for method, where in (("GET", "files"), ("PUT", "files"), ("DELETE", "files"), ("GET", "dirs"), ("POST", "dirs"), ("GET", "stat")):
        answer = daemon(method, f"{box.at}/{where}/" + path.replace("/", "%2f").replace(".", "%2e"), b"x" if method == "PUT" else None)
        assert answer.status == 403 and answer.json["error"] == ESCAPES, (method, where, answer)


@requirement("R11", "R24")
def test_links_that_leave_the_workspace(daemon, box):
    box.exec("ln -s /etc out; ln -s /etc/passwd file; mkfifo pipe; ln -s . self")
    for path in ("out/passwd", "file", "out/new"):
        assert box.read(path).json["error"] == ESCAPES and box.put(path, b"x").json["error"] == ESCAPES, path
    assert daemon.get(f"{box.at}/dirs/out").json["error"] == ESCAPES
    assert box.read("pipe").status == 409 and box.read("self/self/f").status == 404
    assert box.read("a%00b").status in (400, 404)
    assert daemon.get(f"{box.at}/files/a%00b").status == 400 and daemon.get(f"{box.at}/files/a%4").status == 400


# --- the server -------------------------------------------------------------------------------------------------------

def test_twenty_at_once(daemon):
    def work(i):
        box = daemon.create(name=f"w{i}", labels={"n": str(i)})
        assert box.put("in", str(i).encode() * 1000).ok
        result = box.exec("cat in | wc -c; cat in | head -c 2; ls", timeout_ms=60000)
        assert result["stdout"].split()[0] == str(len(str(i)) * 1000), result
        assert box.read("in").body == str(i).encode() * 1000
        return box
    with concurrent.futures.ThreadPoolExecutor(20) as pool:
        boxes = list(pool.map(work, range(20)))
        assert len(daemon.get("/v1/sandboxes").json["sandboxes"]) == 20
        assert {r.status for r in pool.map(lambda b: b.delete(), boxes)} == {200}
    assert not daemon.processes("cloche-keeper")


def test_two_sandboxes_share_nothing(daemon):
    one, other = daemon.create(), daemon.create()
    one.put("secret", b"x")
    assert other.read("secret").status == 404 and other.exec("ls")["stdout"] == ""
    one.exec("sleep 600 >/dev/null 2>&1 &")
    assert "sleep" not in other.exec("cat /proc/[0-9]*/comm")["stdout"]


def test_one_connection_many_requests(daemon, box):
    c = daemon.connection()
    for i in range(20):
        c.request("POST", f"{box.at}/exec", json.dumps({"command": f"echo {i}"}))
        response = c.getresponse()
        assert json.loads(response.read())["stdout"] == f"{i}\n"
    c.request("GET", "/v1/nothing")
    response = c.getresponse()
    assert response.status == 404 and json.loads(response.read())["code"] == "http.route"
    c.close()


def test_methods_and_routes(daemon, box):
    answer = daemon("PATCH", "/v1/sandboxes")
    assert answer.status == 405 and answer.headers["Allow"] == "POST, GET, HEAD", answer.headers
    assert daemon.get("/").status == 404 and daemon.get("/v1/sandboxes/").status == 404
    assert daemon.get("/v1/sandboxes/nobody").json["code"] == "sandbox.not-found"
    assert daemon.post("/v1/sandboxes/" + "0" * 32 + "/exec", {"command": "true"}).status == 404
    answer = daemon.get("/v1/health")
    assert answer.json["status"] == "ok" and answer.headers["X-Request-Id"]
    made = daemon.post("/v1/sandboxes", {})
    assert made.headers["Location"] == f"/v1/sandboxes/{made.json['id']}" and daemon.get(made.headers["Location"]).ok


def test_a_whole_number_is_one_however_it_is_written(daemon):
    """As JSON Schema's integer is; what a client computes is 1.5 * 1000 in many languages."""
    made = daemon("POST", "/v1/sandboxes", b'{"idle_timeout": 60.0, "policy": {"limits": {"pids": 1e2}}}')
    assert made.status == 201 and made.json["idle_timeout"] == 60 and made.json["policy"]["limits"] == {"pids": 100}, made
    box = Sandbox(daemon, made.json)
    for number, status in ((b"1500.0", 200), (b"1.5e3", 200), (b"1500.5", 400), (b"1e300", 400), (b"-0.0", 400)):
        answer = daemon("POST", f"{box.at}/exec", b'{"command": "true", "timeout_ms": ' + number + b"}")
        assert answer.status == status, (number, answer)
    command = Command(box, ["stty", "size"], pty={"rows": 30.0, "cols": 90.0})
    assert command.end()["exit_code"] == 0 and command.out == b"30 90\r\n"


def test_head_is_get_without_its_body(daemon, box):
    """RFC 9110, 9.3.2: on one connection, so that nothing of a body is left on it."""
    c = daemon.connection()
    for path in "/health", "/v1/health", "/v1/sandboxes", box.at, f"{box.at}/policy", f"{box.at}/dirs/", "/metrics", "/v1/nothing":
        got = daemon.get(path)
        c.request("HEAD", path)
        answer = c.getresponse()
        assert answer.read() == b"" and answer.status == got.status, path
        assert answer.headers["Content-Type"] == got.headers["Content-Type"], path
        assert path == "/metrics" or answer.headers["Content-Length"] == got.headers["Content-Length"], path
    c.close()
    # an answer that goes on would begin what it answers
    for path in f"{box.at}/exec/ws", f"{box.at}/watch", "/v1/events/stream", "/v1/audit/stream", "/v1/approvals/stream":
        answer = daemon("HEAD", path)
        assert answer.status == 405 and answer.headers["Allow"] == "GET", (path, answer)


@pytest.mark.parametrize("bytes_", [
    b"\r\n\r\n", b"GET\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n", b"GET /" + b"a" * 100000 + b" HTTP/1.1\r\nHost: x\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: x\r\nA: " + b"b" * 100000 + b"\r\n\r\n", b"POST /v1/sandboxes HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n",
    b"POST /v1/sandboxes HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", bytes(range(256)) * 10,
    b"POST /v1/sandboxes HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{",
])
def test_bytes_that_are_no_request(daemon, bytes_):
    c = socket.socket(socket.AF_UNIX)
    c.settimeout(60)
    c.connect(str(daemon.path))
    try:
        c.sendall(bytes_)
    except (BrokenPipeError, ConnectionResetError):
        pass
    c.close()
    assert daemon.get("/v1/health").ok and len(daemon.processes("cloche-front")) == 1
    assert "started again" not in daemon.heard.decode()


@own
def test_many_idle_connections_hinder_nobody(daemon, box):
    held = []
    for _ in range(300):
        c = socket.socket(socket.AF_UNIX)
        c.connect(str(daemon.path))
        held.append(c)
    assert box.exec("echo through")["stdout"] == "through\n"
    for c in held:
        c.close()


@requirement("R67")
def test_configuration(cloche):
    (cloche.home / "base.yaml").write_text("limits:\n  output: 1000\n")
    (cloche.home / "serve.yaml").write_text(f"listen: unix:{cloche.home}/s\nmax-sandboxes: 2\nidle-timeout: 2h\nsettings: base.yaml\n")
    daemon = Daemon(cloche, "--config", "serve.yaml", "--max-lifetime=3h", path=cloche.home / "s")
    mode = os.stat(daemon.path).st_mode
    assert stat.S_ISSOCK(mode) and stat.S_IMODE(mode) == 0o600, oct(mode)
    box = daemon.create()
    assert box.record["idle_timeout"] == 7200 and box.record["max_lifetime"] == 10800, box.record
    assert box.exec("yes | head -c 5000")["stdout_truncated"]
    assert daemon.create(policy={"limits": {"output": 10000}}).exec("yes | head -c 5000")["stdout_truncated"] is False
    assert daemon.stop() == 0


@pytest.mark.parametrize("flags, code", [
    (["--listen", "tcp:localhost:80"], "serve.listen"), (["--listen", "tcp:0.0.0.0:80"], "serve.listen.open"), (["--listen", "/x"], "serve.listen"), (["--max-sandboxes", "0"], "serve.max-sandboxes"),
    (["--idle-timeout", "soon"], "serve.duration"), (["--surprise"], "cli.unknown-flag"), (["--config", "/none"], "serve.config.read"),
    pytest.param(["--state-dir", "/etc"], "serve.state.mode", marks=pytest.mark.root), (["--listen", "unix:/none/x"], "serve.listen"), (["--listen"], "cli.flag-value"),
])
def test_what_serve_refuses(cloche, flags, code):
    result = cloche("serve", *flags)
    assert result.code == 125 and f"[{code}]" in result.err, result


def test_no_more_sandboxes_than_there_are_descriptors_for(cloche):
    few = ["prlimit", "--nofile=100:600", str(cloche.binary), "serve", "--max-sandboxes"]
    result = cloche.run(few + ["300"])
    assert result.code == 125 and "[serve.max-sandboxes]" in result.err and "open files" in result.err, result
    # for 256 the soft limit is raised
    daemon = Daemon(cloche.behind("prlimit", "--nofile=100:1000"), path=cloche.state / "cloche" / "serve" / "api.sock")
    assert daemon.create().exec("ulimit -Sn")["exit_code"] == 0
    with open(f"/proc/{daemon.processes('cloche-keeper')[0]}/limits", encoding="utf-8") as f:
        assert [line.split()[3:5] for line in f if line.startswith("Max open files")] == [["100", "1000"]]
    assert daemon.stop() == 0


def test_one_daemon_for_one_folder(cloche, daemon):
    result = cloche("serve", "--listen", f"unix:{cloche.home}/other")
    assert result.code == 125 and "[serve.state.busy]" in result.err, result
    result = cloche("serve", "--state-dir", cloche.home / "state2", "--listen", f"unix:{daemon.path}")
    assert result.code == 125 and "[serve.listen.busy]" in result.err, result
    assert daemon.get("/v1/health").ok


def test_a_state_folder_behind_a_link(cloche):
    (cloche.home / "real").mkdir(mode=0o700)
    (cloche.home / "link").symlink_to("real")
    daemon = Daemon(cloche, "--state-dir", cloche.home / "link" / "s", path=cloche.home / "real" / "s" / "api.sock")
    assert daemon.create().exec("echo on")["stdout"] == "on\n"
    assert daemon.stop() == 0


def test_readiness_is_said(cloche):
    heard = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    heard.bind(str(cloche.home / "notify"))
    heard.settimeout(60)
    cloche.env["NOTIFY_SOCKET"] = str(cloche.home / "notify")
    daemon = Daemon(cloche)
    assert heard.recv(100) == b"READY=1"
    heard.close()
    assert daemon.stop() == 0


def test_curl(cloche, daemon, command):
    result = command(["curl", "-sS", "--unix-socket", str(daemon.path), "http://localhost/v1/sandboxes", "-d", '{"name":"c"}'])
    assert result.json["state"] == "ready", result
    (cloche.home / "big").write_bytes(b"y" * 3_000_000)         # curl asks before it sends so much (Expect: 100-continue)
    result = command(["curl", "-sS", "-T", cloche.home / "big", "--unix-socket", str(daemon.path),
                      "http://localhost/v1/sandboxes/c/files/big"])
    assert result.json["size"] == 3_000_000, result


@pytest.mark.ordinary
def test_an_ordinary_user_has_a_daemon_too(cloche):
    daemon = OthersDaemon(cloche)
    box = daemon.create(policy={"mode": "max"})
    assert box.exec(["id", "-u"])["stdout"] == "1000\n" and box.record["facts"]["mode"] == "max"
    assert box.put("f", b"x").ok and box.delete().ok
    assert daemon.stop() == 0


@pytest.mark.ordinary
def test_light_mode(cloche):
    daemon = OthersDaemon(cloche)
    boxes = [daemon.create(policy={"mode": "light", "workspace": str(cloche.project)}) for _ in range(2)]
    assert boxes[0].exec("echo x > f; pwd")["stdout"] == f"{cloche.project}\n"
    boxes[0].exec("sleep 600 >/dev/null 2>&1 &")
    assert boxes[1].read("f").body == b"x\n"
    assert boxes[1].delete().ok and wait_for(lambda: len(daemon.processes("sleep")) == 1)
    assert daemon.stop() == 0
