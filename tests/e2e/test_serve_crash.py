"""cloche serve when its processes are killed: no record is lost, nothing is left, what can live on does."""
import http.client
import json
import os
import random
import signal
import sqlite3
import subprocess
import threading
import time

import pytest

from helpers import leaks, mcp, places, requirement
from helpers.daemon import Daemon, OthersDaemon, TcpConnection, answers, kill_one, restart
from helpers.runner import become, wait_for

pytestmark = requirement("R42", "R61")


def test_the_front_is_killed(daemon):
    box = daemon.create(name="b")
    box.put("f", b"kept")
    stream = box.stream("echo here; exec sleep 600")
    assert next(stream)[0] == "stdout"
    restart(daemon, "cloche-front")
    assert box.read("f").body == b"kept" and box.show()["state"] == "ready"
    assert wait_for(lambda: not daemon.processes("sleep"))      # its client is gone, and so is it


def test_an_adapter_is_killed(daemon):
    """Its clients are told, and what it ran for them ends; the front, and who speaks /v1, notice nothing."""
    box, front, statuses = daemon.create(), daemon.processes("cloche-front"), []
    client = mcp.Client(daemon)
    args = {"sandbox_id": box.id, "language": "shell", "code": "exec sleep 600"}
    calls = [client.message("tools/call", {"name": "code_execute", "arguments": args}) for _ in range(3)]
    threads = [threading.Thread(target=lambda call=call: statuses.append(client.raw(call).status)) for call in calls]
    stream = box.stream("echo here; exec sleep 700")
    assert next(stream)[0] == "stdout"
    for thread in threads:
        thread.start()
    assert wait_for(lambda: len(daemon.processes("sleep")) == 4)
    restart(daemon, "cloche-adapter")
    for thread in threads:
        thread.join()
    assert statuses == [503] * 3
    assert wait_for(lambda: len(daemon.processes("sleep")) == 1) and daemon.processes("cloche-front") == front
    # sessions were its own; nothing else is lost
    assert client.raw(client.message("tools/list")).status == 404
    assert mcp.Client(daemon).call("code_execute", **{**args, "code": "echo on"})["stdout"] == "on\n"
    assert box.exec("echo on")["stdout"] == "on\n"


def test_the_warden_is_killed(daemon):
    box = daemon.create(name="b", labels={"a": "b"})
    box.put("f", b"kept")
    before = box.show()
    restart(daemon)
    after = box.show()
    assert {**after, "last_used_ms": 0} == {**before, "last_used_ms": 0}
    assert box.read("f").body == b"kept" and box.exec("echo on")["stdout"] == "on\n"
    assert daemon.post(f"{box.at}/pause").json["paused"]
    restart(daemon)
    assert box.show()["paused"]
    assert not daemon.post(f"{box.at}/resume").json["paused"]
    assert box.delete().json["state"] == "stopped"
    assert not daemon.processes("cloche-keeper")
    assert any("adopted" in e["detail"] for e in daemon.get("/v1/events").json["events"])


def test_the_warden_is_killed_under_operations(daemon):
    """The next one knows of those that still run: their ends are not more than their keeper may say."""
    box = daemon.create(name="b")
    for _ in range(3):
        streams = [box.stream("echo here; exec sleep 600") for _ in range(6)]
        assert all(next(stream)[0] == "stdout" for stream in streams)
        restart(daemon)
        for stream in streams:
            stream.close()
        assert wait_for(lambda: not daemon.processes("sleep"), 60)      # their front is gone too
        assert box.exec("echo on")["stdout"] == "on\n" and box.show()["state"] == "ready"
    assert wait_for(lambda: daemon.get("/v1/usage").json["usage"][0]["running"] == [], 60)
    assert daemon.post(f"{box.at}/pause").json["paused"] and not daemon.post(f"{box.at}/resume").json["paused"]


@pytest.mark.parametrize("name", ["cloche-keeper", pytest.param("cloche-guest", marks=pytest.mark.root)])
def test_what_holds_a_sandbox_is_killed(daemon, name):
    boxes = [daemon.create(name=f"b{i}") for i in range(2)]
    streams = [b.stream("echo here; exec sleep 600") for b in boxes]
    for stream in streams:
        assert next(stream)[0] == "stdout"
    kill_one(daemon, name, of=2)
    assert wait_for(lambda: sorted(b.show()["state"] for b in boxes) == ["ready", "stopped"], 30), [b.show() for b in boxes]
    gone = [b for b in boxes if b.show()["state"] == "stopped"][0]
    assert gone.show()["detail"], gone.show()
    # its client hears of it, the other's command goes on
    last = list(streams[boxes.index(gone)])
    assert last and last[-1][0] in ("exit", "error"), last
    assert wait_for(lambda: len(daemon.processes("sleep")) == 1) and len(daemon.processes("cloche-keeper")) == 1


@pytest.mark.parametrize("name", [None, "cloche-warden"])
def test_everything_is_killed_and_comes_again(cloche, name):
    daemon = Daemon(cloche)
    box = daemon.create(name="b", labels={"a": "b"})
    assert next(box.stream("echo here; exec sleep 600"))[0] == "stdout"
    if name is not None:        # the launcher too, while it starts another one
        os.kill(daemon.processes(name)[0], signal.SIGKILL)
    daemon.kill()
    def nothing_left():
        leaks.reap_adopted(set())
        return not [what for what in leaks.descendants().values() if "cloche" in what or "sleep" in what]
    assert wait_for(nothing_left, 60), leaks.descendants()
    daemon.start()
    record = box.show()
    assert record["state"] == "stopped" and record["labels"] == {"a": "b"} and "killed" in record["detail"], record
    assert daemon.create(name="b").exec("echo on")["stdout"] == "on\n"
    assert daemon.stop() == 0
    # and after an orderly end
    daemon.start()
    records = daemon.get("/v1/sandboxes?state=all").json["sandboxes"]
    assert [r["state"] for r in records] == ["stopped", "stopped"] and records[1]["detail"] == "cloche serve ended", records
    assert daemon.stop() == 0


@pytest.mark.parametrize("log", ["empty", "none"])
def test_it_begins_with_a_record_that_is_all_written(cloche, log):
    """SQLite opens the folder once for each log; by the time of the first checkpoint the warden opens nothing any more."""
    daemon = Daemon(cloche)
    box = daemon.create(name="b")
    daemon.kill()
    path = cloche.state / "cloche" / "serve" / "state.db"
    wal = path.with_name("state.db-wal")
    def unheld():       # its warden may still be ending
        try:
            connection = sqlite3.connect(path)
            try:
                return connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0] == 0
            finally:
                connection.close()
        except sqlite3.OperationalError:
            return False
    assert wait_for(unheld, 60)
    if log == "empty":
        wal.write_bytes(b"")
    daemon.start()
    for i in range(400):        # a checkpoint comes after a thousand pages
        assert daemon.get(f"/v1/sandboxes/{box.id}").json["state"] == "stopped"
        assert daemon("PATCH", f"{box.at}/policy", {"hostname": f"h{i}"}).status == 200
    assert len(daemon.processes("cloche-warden")) == 1
    assert daemon.stop() == 0 and "started again" not in daemon.log, daemon.log


@requirement("R29")
def test_it_begins_with_many_transcripts(cloche):
    """Whoever sorts them must not need what was given up."""
    daemon = Daemon(cloche)
    for i in range(100):
        box = daemon.create(name=f"b{i}")
        box.exec("true")
        assert box.delete().ok
    daemon.kill()
    daemon.start()
    assert daemon.create(name="last").exec("echo on")["stdout"] == "on\n"
    assert daemon.stop() == 0 and "started again" not in daemon.log, daemon.log


def test_it_is_killed_while_a_sandbox_is_made(cloche, world):
    """By a package manager of the host, which takes its time."""
    folder = world.root / "bin"
    folder.mkdir()
    (folder / "npm").write_text("#!/bin/sh\nexec sleep 610\n", encoding="utf-8")
    (folder / "npm").chmod(0o755)
    cloche.env["PATH"] = f"{folder}:{cloche.env['PATH']}"
    daemon = Daemon(cloche)
    c = daemon.connection()
    c.request("POST", "/v1/sandboxes", json.dumps({"policy": {"network": {"registries": ["npm"]}}}))
    asked = wait_for(lambda: daemon.processes("sleep"), 60)
    assert asked, daemon.get("/v1/events").body
    daemon.kill()
    c.close()
    def nothing_left():
        leaks.reap_adopted(set())
        return not [what for what in leaks.descendants().values() if "cloche" in what or "sleep" in what]
    assert wait_for(nothing_left, 30), leaks.descendants()
    daemon.start()
    assert [b["state"] for b in daemon.get("/v1/sandboxes?state=all").json["sandboxes"]] == ["stopped"]
    assert daemon.stop() == 0


def test_a_front_that_always_dies_is_given_up(cloche):
    daemon = Daemon(cloche)
    daemon.create()

    def given_up():
        leaks.kill(daemon.processes("cloche-front"))
        return daemon.process.poll() is not None
    assert wait_for(given_up, 60)
    _, err = daemon.process.communicate(timeout=60)
    assert daemon.process.returncode == 125 and b"[serve.crash-loop]" in err, err


def test_an_adapter_that_always_dies_takes_nothing_with_it(cloche):
    """Who speaks MCP waits for a minute; sandboxes, and who speaks /v1, do not."""
    daemon = Daemon(cloche)
    box = daemon.create()
    for _ in range(10):
        kill_one(daemon, "cloche-adapter")
    assert wait_for(lambda: daemon.get("/api/sandbox/capabilities").json.get("error", "").endswith("is not there"))
    assert not wait_for(lambda: daemon.processes("cloche-adapter"), 1)     # nor soon
    assert not daemon.processes("cloche-adapter") and box.exec("echo on")["stdout"] == "on\n"
    assert daemon.stop() == 0 and "started again in a minute" in daemon.log, daemon.log


@pytest.mark.heavy
def test_kills_at_random_moments_under_load(cloche):
    """Clients create, run, write and delete while processes die; afterwards nothing is there that no record explains."""
    daemon = Daemon(cloche)
    over, made, broken = threading.Event(), [], []

    def client(number):
        n, kept = 0, []
        while not over.wait(0.1) and n < 200:       # so that no record of one that stopped is too old to be kept
            n += 1
            try:
                box = daemon.create(name=f"c{number}-{n}")
                made.append(box.id)
                box.put("f", b"x" * 100000)
                box.exec("wc -c f")
                kept.append(box)
                if len(kept) > 4:       # of one that had stopped this removes the record
                    made.remove(kept[0].id)
                    kept.pop(0).delete()
            except (OSError, AssertionError, ValueError, KeyError):
                pass
            except Exception as e:
                if type(e).__module__ != "http.client":
                    broken.append(e)
    threads = [threading.Thread(target=client, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    chance = random.Random(4)
    for _ in range(places.loops(8)):
        time.sleep(chance.random() * 0.4)
        pids = [pid for name in ("cloche-front", "cloche-warden", "cloche-keeper", "cloche-keeper", "cloche-guest")
                for pid in daemon.processes(name)[:1]]
        if pids and daemon.process.poll() is None:
            leaks.kill([chance.choice(pids)])
        time.sleep(1)           # fewer deaths in a minute than it gives up at
    over.set()
    for thread in threads:
        thread.join(90)
    if daemon.process.poll() is not None:
        pytest.fail(daemon.process.stderr.read().decode())
    assert not broken
    assert answers(daemon)
    records = {}
    after = ""
    while after is not None:
        page = daemon.get("/v1/sandboxes?state=all&limit=200" + (f"&after={after}" if after else "")).json
        records.update({r["id"]: r for r in page["sandboxes"]})
        after = page["next"]
    assert not [i for i in made if i not in records], "a record is lost"
    # each sandbox that lives is known, and each that is known lives
    settled = lambda: {r["state"] for r in daemon.get("/v1/sandboxes?limit=200").json["sandboxes"]} <= {"ready", "degraded"}
    assert wait_for(settled, 60)
    live = daemon.get("/v1/sandboxes?limit=200").json["sandboxes"]
    assert wait_for(lambda: len(daemon.processes("cloche-keeper")) == len(live), 30), (len(live), daemon.processes("cloche-keeper"))
    for r in live:
        answer = daemon.post(f"/v1/sandboxes/{r['id']}/exec", {"command": "echo on"})
        assert answer.status == 200 and answer.json["stdout"] == "on\n", (r, answer)
    assert daemon.stop() == 0


# --- limits that its caller set -------------------------------------------------------------------------------------------

def test_a_limit_on_the_size_of_files_is_an_error_like_a_full_disk(cloche):
    """RLIMIT_FSIZE: whoever meets it lives on and says so, and is not killed and begun again until the daemon ends."""
    daemon = Daemon(cloche.behind("prlimit", "--fsize=200000:200000", "--"), path=cloche.state / "cloche" / "serve" / "api.sock")
    before = daemon.running("cloche-warden")
    for _ in range(3):
        said = daemon.post("/v1/sandboxes", {})
        assert (said.status, said.json["code"]) in ((507, "wall.guest.memfd"), (500, "serve.state")), said
    ready = daemon.get("/ready")
    assert ready.ok or ready.json["code"] == "serve.state.behind", ready
    assert daemon.running("cloche-warden") == before
    assert daemon.stop() == 0, daemon.log


def test_and_a_start_that_meets_it_says_why(cloche):
    said = cloche.behind("prlimit", "--fsize=1000:1000", "--")("serve", "--gate", "off")
    assert said.code == 125 and "state.db" in said.err and "[serve.state]" in said.err, said


def test_nor_does_it_kill_who_keeps_secrets(cloche):
    said = cloche.behind("prlimit", "--fsize=10:10", "--")("secret", "set", "TOK", "--host", "ok.example.org", "--place", "bearer", stdin="a-value-that-is-long-enough")
    assert said.code == 125 and "File too large" in said.err, said


def lower(pid, what, n):
    """The soft limit of another process; as its own user, for not every root may do that."""
    with open(f"/proc/{pid}/status", encoding="ascii") as f:
        uid, gid = [int(line.split()[1]) for line in f if line.startswith(("Uid:", "Gid:"))]
    who = become(uid, gid) if places.IS_ROOT else []
    subprocess.run([*who, "prlimit", "--pid", str(pid), f"--{what}={n}:"], check=True)


def places_for(pid, spare):
    """A limit that leaves so many free; where nobody may count them (an ordinary user), none."""
    try:
        return max(map(int, os.listdir(f"/proc/{pid}/fd"))) + 1 + spare
    except PermissionError:
        return 8


def tried(daemon, box, what):
    """What is answered, some six times; it is no error of the daemon's. Without a descriptor the front takes no connection."""
    def ask(path, body):
        try:
            return daemon.post(path, body)
        except (http.client.RemoteDisconnected, ConnectionResetError):
            return None
    said = [ask("/v1/sandboxes", {}) for _ in range(4)] + [ask(f"{box.at}/exec", {"command": "true"}),
                                                           ask("/v1/execute", {"language": "shell", "code": "true"})]
    for a in said:
        assert a is None and what == "cloche-front" or a is not None and (a.ok or a.status == 503 and a.headers["Retry-After"] and a.json["code"]), (what, a)
    return [a for a in said if a is not None and a.status == 503]


@requirement("R91")
@pytest.mark.parametrize("name", ["cloche-warden", "cloche-front", "cloche-maker", "cloche-vacant", "launcher"])
def test_who_has_no_descriptor_left_says_so_and_lives_on(cloche, name):
    """503 and why; nobody ends, above all not cloche-maker, with which all would."""
    if name == "launcher" and not places.IS_ROOT:
        pytest.skip("nobody may count its descriptors, and without any it takes no connection to the front")
    daemon = Daemon(cloche)
    box, refused = daemon.create(), []
    all_of_them = ("cloche-warden", "cloche-front", "cloche-maker", "cloche-scribe")
    before = {its: daemon.running(its) for its in all_of_them}
    for spare in (0, 1, 2):
        pids = [daemon.process.pid] if name == "launcher" else daemon.running(name)
        for pid in pids:
            lower(pid, "nofile", places_for(pid, spare))
        refused += tried(daemon, box, name)
        for pid in pids:
            if os.path.exists(f"/proc/{pid}/fd"):   # one of cloche-vacant became a keeper and may be gone
                lower(pid, "nofile", 1000)
        assert wait_for(lambda: answers(daemon)) and wait_for(lambda: daemon.post("/v1/sandboxes", {}).status == 201)
    assert refused or name == "cloche-front"
    assert {its: daemon.processes(its) for its in all_of_them} == before
    assert box.exec(["echo", "on"])["stdout"] == "on\n" and daemon.stop() == 0, daemon.log


def fill(daemon, box):
    """→ the keeper, which has no descriptor left, and the streams that have them."""
    keeper, streams = daemon.running("cloche-keeper")[0], []
    lower(keeper, "nofile", places_for(keeper, 2))
    for _ in range(60):         # each is a descriptor of the keeper's
        c = daemon.connection()
        c.request("POST", f"{box.at}/exec", json.dumps({"command": "echo on; exec sleep 600"}), {"Accept": "text/event-stream"})
        answer = c.getresponse()
        if answer.status != 200 or b"stdout" not in answer.fp.peek():
            break
        streams.append(c)
    assert 0 < len(streams) < 60, answer.read()
    c.close()
    return keeper, streams


@requirement("R91")
@pytest.mark.root
def test_a_sandbox_whose_keeper_has_no_descriptor_left_is_not_gone(cloche):
    """503 and not 410: it lives, and works when there is one again."""
    daemon = Daemon(cloche)
    box = daemon.create()
    box.put("f", b"on")
    asked = [("POST", "/exec", {"command": "true"}), ("GET", "/files/f", None), ("GET", "/exec", None), ("POST", "/exec", {"command": "true"})]
    keeper, streams = fill(daemon, box)
    for method, path, body in asked * 2:
        said = daemon(method, box.at + path, body)
        assert (said.status, said.json["code"]) == (503, "serve.op") and said.headers["Retry-After"], (path, said)
    assert box.show()["state"] == "ready", box.show()
    for c in streams:
        c.close()
    assert wait_for(lambda: daemon.get(f"{box.at}/exec").ok)        # the same limit, and there is a place
    lower(keeper, "nofile", 1000)
    assert box.exec("echo on")["stdout"] == "on\n" and box.read("f").body == b"on"
    assert daemon.running("cloche-keeper") == [keeper] and daemon.stop() == 0, daemon.log


@requirement("R91")
@pytest.mark.root
def test_a_new_warden_finds_a_keeper_that_has_no_descriptor_left(cloche):
    """The way to it is a descriptor too."""
    daemon = Daemon(cloche)
    box = daemon.create()
    keeper, streams = fill(daemon, box)
    kill_one(daemon, "cloche-warden")
    assert wait_for(lambda: answers(daemon)) and box.show()["state"] == "ready", box.show()
    lower(keeper, "nofile", 1000)
    assert box.exec("echo on")["stdout"] == "on\n"
    for c in streams:
        c.close()
    assert daemon.running("cloche-keeper") == [keeper] and daemon.stop() == 0, daemon.log


def no_place(pid):
    """A limit that leaves not one free: below the first number that nothing has."""
    used = set(map(int, os.listdir(f"/proc/{pid}/fd")))
    return next(n for n in range(1000) if n not in used)


@requirement("R91")
@pytest.mark.root
def test_a_launcher_that_has_no_descriptor_left_lets_nobody_wait(cloche):
    """Over both kinds of socket; also behind one who connects and says nothing."""
    daemon = Daemon(cloche, tcp=True)
    box, launcher = daemon.create(), daemon.process.pid
    for _ in range(2):
        lower(launcher, "nofile", no_place(launcher))
        silent = daemon.connection()
        silent.connect()
        for c in [daemon.connection() for _ in range(4)] + [TcpConnection(daemon.addresses()[0])]:
            c.timeout = 10
            try:
                c.request("GET", "/v1/sandboxes")
            except BrokenPipeError:     # refused before it was through; why is there to be read
                pass
            said = c.getresponse()
            assert said.status == 503 and said.headers["Retry-After"] and json.load(said)["code"] == "serve.full"
            c.close()
        silent.close()
        lower(launcher, "nofile", 1000)
        assert wait_for(lambda: answers(daemon))
        assert box.exec(["echo", "on"])["stdout"] == "on\n"
    assert daemon.stop() == 0, daemon.log


@requirement("R91")
@pytest.mark.ordinary
def test_who_may_start_no_process_says_so_and_lives_on(cloche):
    daemon = OthersDaemon(cloche)
    box, maker = daemon.create(), daemon.running("cloche-maker")
    lower(maker[0], "nproc", 1)
    refused = tried(daemon, box, "cloche-maker")
    assert refused and "fork" in refused[0].json["error"], refused
    lower(maker[0], "nproc", 10000)
    assert wait_for(lambda: daemon.post("/v1/sandboxes", {}).status == 201)
    assert daemon.only("cloche-maker") == maker[0] and daemon.stop() == 0, daemon.log
