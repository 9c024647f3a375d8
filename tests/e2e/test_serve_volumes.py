"""Durable workspaces: volumes outlive sandboxes, one has one at a time, and they go when nobody has used them."""
import fcntl
import json
import os
import signal
import sqlite3
import time

import pytest

from helpers import requirement
from helpers.daemon import Answer, Daemon, Sandbox, caller, restart
from helpers.runner import wait_for
from helpers.shared import own, shared

pytestmark = [requirement("R22"), shared]


def folder(cloche):
    return cloche.state / "cloche" / "serve" / "volumes"


def names(cloche):
    return sorted(os.listdir(folder(cloche)))


def volumes(daemon):
    return daemon.get("/v1/volumes").json["volumes"]


def ask(daemon, name="v", **members):
    return daemon.post("/v1/sandboxes", {"volume": {"name": name}, **members})


def test_it_outlives_its_sandbox(daemon, cloche):
    box = daemon.create(volume={"name": "v"})
    assert box.put("f", b"kept").ok and box.exec("mkdir d && echo x > d/g && ln -s d l")["exit_code"] == 0
    [volume] = volumes(daemon)
    assert volume["id"] == box.record["volume"] and volume["name"] == "v" and volume["sandbox"] == box.id, volume
    assert volume["owner"] is None and volume["retention"] == 7 * 24 * 3600
    assert names(cloche) == [volume["id"]] and (folder(cloche) / volume["id"]).stat().st_mode & 0o7777 == 0o700
    assert box.show()["facts"]["volume_by"] == "looks"
    assert box.delete().ok
    assert volumes(daemon)[0]["sandbox"] is None and names(cloche) == [volume["id"]]
    again = daemon.create(volume={"name": "v"})
    assert again.read("f").body == b"kept" and again.exec("cat l/g; pwd")["stdout"] == "x\n/workspace\n"
    assert again.exec("rm -r d && echo new > f")["exit_code"] == 0
    assert again.read("f").body == b"new\n" and len(volumes(daemon)) == 1


@own
def test_it_tells_nothing_of_whose_daemon_it_is(daemon, cloche):
    """A repository in a volume is its caller's: git is not told there who runs the daemon."""
    (cloche.home / ".gitconfig").write_text("[user]\n\tname = Operator\n")
    box = daemon.create(volume={"name": "v"})
    assert box.exec("mkdir .git")["exit_code"] == 0 and box.delete().ok
    again = daemon.create(volume={"name": "v"})
    assert again.exec("ls -d .git; cat /etc/gitconfig")["stdout"] == ".git\n"
    (cloche.project / ".git").mkdir()
    project = daemon.create(policy={"workspace": str(cloche.project)})
    assert "Operator" in project.exec("cat /etc/gitconfig")["stdout"], "a project is its owner's"


def test_one_sandbox_at_a_time(daemon):
    box = daemon.create(volume={"name": "v"})
    busy = ask(daemon)
    assert busy.status == 409 and busy.json["code"] == "volume.busy" and box.id in busy.json["error"], busy
    assert daemon("DELETE", f"/v1/volumes/{box.record['volume']}").json["code"] == "volume.busy"
    other = daemon.create(volume={"name": "w"})
    assert other.record["volume"] != box.record["volume"]
    assert box.delete().ok
    taken = ask(daemon)
    assert taken.status == 201 and taken.json["volume"] == box.record["volume"], taken
    # what it had was taken by another one meanwhile
    assert daemon.post(f"{box.at}/recover").json["code"] == "volume.busy"


@own
def test_what_is_refused_changes_none(daemon):
    daemon.create(name="n", volume={"name": "v", "retention": 3600})

    def kept():
        return {v["name"]: v["retention"] for v in volumes(daemon)}
    busy = daemon.post("/v1/sandboxes", {"volume": {"name": "v", "retention": 1}})
    assert busy.status == 409 and busy.json["code"] == "volume.busy" and kept() == {"v": 3600}, busy
    refused = daemon.post("/v1/sandboxes", {"name": "n", "volume": {"name": "w", "retention": 1}})
    assert refused.status == 409 and refused.json["code"] == "sandbox.name-taken" and kept() == {"v": 3600}, refused
    # as a probe it is refused later: by then somebody else has it
    late = daemon.post("/v1/sandboxes", {"workspace_key": "w", "reattach": True, "volume": {"name": "v", "retention": 1}})
    assert late.status == 409 and late.json["code"] == "volume.busy" and kept() == {"v": 3600}, late
    assert [e["detail"].split(" ", 1)[1] for e in daemon.get("/v1/events?limit=1000").json["events"] if e["type"] == "volume"] == ["was made"]


def test_a_taken_one_is_kept_as_said(daemon):
    members = {"workspace_key": "w", "reattach": True}
    first = daemon.post("/v1/sandboxes", {**members, "volume": {"retention": 3600}})
    assert first.status == 201 and volumes(daemon)[0]["retention"] == 3600, first
    taken = daemon.post("/v1/sandboxes", {**members, "volume": {"retention": 1800}})
    assert taken.status == 200 and taken.json["id"] == first.json["id"] and volumes(daemon)[0]["retention"] == 1800, taken
    other = daemon.post("/v1/sandboxes", {**members, "volume": {"retention": 900}, "policy": {"env": {"A": "b"}}})
    assert other.status == 201 and volumes(daemon)[0]["retention"] == 900 and len(volumes(daemon)) == 1, other


def test_without_one_nothing_stays(daemon, cloche):
    box = daemon.create(workspace_key="w")
    assert box.record["volume"] is None and box.put("f", b"x").ok and box.delete().ok
    assert daemon.create(workspace_key="w").read("f").status == 404
    assert volumes(daemon) == [] and names(cloche) == []


def test_a_workspace_names_it(daemon):
    box = daemon.create(workspace_key="a key", volume={})
    assert volumes(daemon)[0]["name"] == "a key"
    assert box.put("f", b"kept").ok
    taken = daemon.post("/v1/sandboxes", {"workspace_key": "a key", "volume": {}, "reattach": True})
    assert taken.status == 200 and taken.json["id"] == box.id, taken
    # another profile: the sandbox goes, the volume stays
    fresh = daemon.post("/v1/sandboxes", {"workspace_key": "a key", "volume": {}, "reattach": True, "policy": {"env": {"A": "b"}}})
    assert fresh.status == 201 and fresh.json["replaced"]["id"] == box.id and fresh.json["volume"] == box.record["volume"], fresh
    assert Sandbox(daemon, fresh.json).read("f").body == b"kept"
    # without the volume it is another profile too
    bare = daemon.post("/v1/sandboxes", {"workspace_key": "a key", "reattach": True, "policy": {"env": {"A": "b"}}})
    assert bare.json["replaced"] == {"id": fresh.json["id"], "differs": ["profile"]} and bare.json["volume"] is None, bare


@own
def test_one_that_is_asked_for_is_not_unused(daemon):
    """While it is not known yet whether the caller has a sandbox like that already."""
    making, other = daemon.connection(), daemon.connection()

    def on(connection, method, path):
        connection.request(method, path)
        return Answer(connection.getresponse())
    assert on(making, "GET", "/v1/volumes").ok and on(other, "GET", "/v1/volumes").ok
    os.kill(daemon.process.pid, signal.SIGSTOP)         # it takes connections, and starts what would tell
    try:
        making.request("POST", "/v1/sandboxes", json.dumps({"workspace_key": "w", "reattach": True, "volume": {"name": "v", "retention": 1}}))
        assert wait_for(lambda: on(other, "GET", "/v1/volumes").json["volumes"] != [], 60)
        time.sleep(2)       # longer than it is kept
        [volume] = on(other, "GET", "/v1/volumes").json["volumes"]
        assert volume["sandbox"] is None, volume
        refused = on(other, "DELETE", f"/v1/volumes/{volume['id']}")
        assert refused.status == 409 and refused.json["code"] == "volume.busy", refused
    finally:
        os.kill(daemon.process.pid, signal.SIGCONT)
    made = Answer(making.getresponse())
    assert made.status == 201 and made.json["volume"] == volume["id"], made
    making.close()
    other.close()


def test_recovery_keeps_it(daemon):
    box = daemon.create(volume={"name": "v"})
    assert box.put("f", b"kept").ok and box.exec("echo gone > /tmp/t")["exit_code"] == 0 and box.delete().ok
    assert daemon.post(f"{box.at}/recover").ok
    assert box.read("f").body == b"kept" and box.exec("cat /tmp/t")["exit_code"] != 0


@own
def test_it_is_removed(daemon, cloche):
    box = daemon.create(volume={"name": "v"})
    assert box.exec("mkdir -p a/b/c && touch a/b/c/d && chmod 0 a/b && ln -s /etc l")["exit_code"] == 0
    assert box.delete().ok
    gone = daemon("DELETE", f"/v1/volumes/{box.record['volume']}")
    assert gone.status == 200 and gone.json["id"] == box.record["volume"], gone
    assert volumes(daemon) == [] and wait_for(lambda: names(cloche) == [], 60)
    assert daemon("DELETE", f"/v1/volumes/{box.record['volume']}").status == 404

    def notes():        # of the end it is told a moment after the files are gone
        return [e["detail"] for e in daemon.get("/v1/events?limit=1000").json["events"] if e["type"] == "volume"]
    assert wait_for(lambda: len(notes()) == 3, 60), notes()
    refused = daemon.post(f"{box.at}/recover")
    assert refused.status == 410 and refused.json["code"] == "volume.gone", refused
    new = daemon.create(volume={"name": "v"})
    assert new.record["volume"] != box.record["volume"] and new.exec("ls -A")["stdout"] == ""
    assert daemon("DELETE", "/v1/volumes/x").status == 400
    assert [n.split(" ", 1)[1] for n in notes()] == ["was made", "is to be removed", "was removed", "was made"], notes()


@own
def test_the_kill_switch_does_not_wait_for_removals(daemon, cloche):
    box = daemon.create(volume={"name": "v"})
    assert box.put("f", b"x").ok and box.delete().ok
    daemon.create()
    lock = os.open(folder(cloche) / box.record["volume"], os.O_RDONLY)
    fcntl.flock(lock, fcntl.LOCK_EX)        # what removes it waits for this
    try:
        assert daemon("DELETE", f"/v1/volumes/{box.record['volume']}").ok
        assert daemon.post("/v1/kill").json == {"stopped": 1}
    finally:
        os.close(lock)
    assert wait_for(lambda: daemon.processes("cloche-keeper") == [], 60)


def test_retention(daemon, cloche):
    box = daemon.create(volume={"name": "short", "retention": 1})
    daemon.create(volume={"name": "for ever", "retention": 0}).delete()
    assert box.put("f", b"x").ok
    time.sleep(2)       # a volume that is used stays, however long
    assert len(volumes(daemon)) == 2 and box.read("f").body == b"x"
    assert box.delete().ok
    assert wait_for(lambda: [v["name"] for v in volumes(daemon)] == ["for ever"], 60)
    assert wait_for(lambda: len(names(cloche)) == 1, 60)
    # said anew it counts from then on
    daemon.create(volume={"name": "for ever", "retention": 1}).delete()
    assert wait_for(lambda: volumes(daemon) == [] and names(cloche) == [], 60)


def clock(cloche, ms):
    """The warden's clock was so far behind (in milliseconds) when it last wrote."""
    with sqlite3.connect(cloche.state / "cloche" / "serve" / "state.db") as db:
        db.execute("INSERT OR REPLACE INTO volume_clock (one, at) VALUES (1, ?)", (int(time.time() * 1000) - ms,))
    db.close()


def test_retention_goes_on_while_no_daemon_runs(cloche):
    daemon = Daemon(cloche)
    box = daemon.create(volume={"name": "v", "retention": 3600})
    assert box.put("f", b"x").ok and box.delete().ok and daemon.stop() == 0
    clock(cloche, -10 ** 10)        # it was set back meanwhile: no time has passed
    daemon.start()
    assert len(volumes(daemon)) == 1 and daemon.stop() == 0
    clock(cloche, 1800 * 1000)
    daemon.start()
    assert [v["unused_ms"] // 1000 // 60 for v in volumes(daemon)] == [30] and daemon.stop() == 0
    clock(cloche, 1900 * 1000)
    daemon.start()
    assert wait_for(lambda: volumes(daemon) == [] and names(cloche) == [], 60)
    assert daemon.stop() == 0, daemon.log


def test_it_outlives_the_daemon(cloche):
    daemon = Daemon(cloche)
    box = daemon.create(volume={"name": "v"})
    assert box.put("f", b"kept").ok
    daemon.kill()
    daemon.start()
    assert volumes(daemon)[0]["sandbox"] is None
    assert Sandbox(daemon, ask(daemon).json).read("f").body == b"kept"
    assert daemon.stop() == 0, daemon.log


def test_a_removal_is_finished_by_the_next_daemon(cloche):
    daemon = Daemon(cloche)
    box = daemon.create(volume={"name": "v"})
    assert box.exec("mkdir d && cd d && for i in $(seq 300); do mkdir -p $i/a && echo > $i/b; done", timeout_ms=60000)["exit_code"] == 0
    assert box.delete().ok and daemon("DELETE", f"/v1/volumes/{box.record['volume']}").ok
    daemon.kill()
    daemon.start()
    assert volumes(daemon) == [] and wait_for(lambda: names(cloche) == [], 60)
    assert daemon.stop() == 0, daemon.log


@own
def test_the_warden_is_killed(daemon):
    box = daemon.create(volume={"name": "v", "retention": 1})
    assert box.put("f", b"kept").ok
    restart(daemon)
    assert volumes(daemon)[0]["sandbox"] == box.id and ask(daemon).json["code"] == "volume.busy"
    time.sleep(2)
    assert volumes(daemon)[0]["sandbox"] == box.id and box.read("f").body == b"kept"


def test_the_disk_limit(daemon):
    box = daemon.create(volume={"name": "v"}, policy={"limits": {"disk": "8m"}})
    assert box.exec("head -c 4000000 /dev/zero > a")["exit_code"] == 0
    # many links are one file
    assert box.exec("for i in 1 2 3 4 5; do ln a l$i; done; sleep 8")["exit_code"] == 0 and box.show()["state"] == "ready"
    box.daemon.post(f"{box.at}/exec", {"command": "mkdir -m 0 d; chmod 700 d; head -c 9000000 /dev/zero > d/b; chmod 0 d"})
    assert box.wait_for("stopped") and box.show()["detail"] == "its volume is larger than its disk limit", box.show()
    full = ask(daemon, policy={"limits": {"disk": "8m"}})
    assert full.status == 507 and full.json["code"] == "volume.full", full
    wide = Sandbox(daemon, ask(daemon, policy={"limits": {"disk": "100m"}}).json)
    assert wide.exec("chmod 700 d && rm -r d")["exit_code"] == 0 and wide.delete().ok
    assert ask(daemon, policy={"limits": {"disk": "8m"}}).status == 201


@pytest.mark.parametrize("policy, code", [({"workspace": "/srv"}, "volume.workspace"), ({"mode": "light"}, "volume.view"),
                                          ({"view": "host"}, "volume.view")])
def test_where_none_can_be(daemon, policy, code):
    refused = ask(daemon, policy=policy)
    assert refused.status == 400 and refused.json["code"] == code, refused


@pytest.mark.parametrize("volume", ["v", {}, {"name": ""}, {"name": "a\nb"}, {"name": "x" * 256}, {"name": 1}, {"name": "v", "size": 1},
                                    {"name": "v", "retention": -1}, {"name": "v", "retention": "1h"}])
def test_what_is_no_volume(daemon, volume):
    answer = daemon.post("/v1/sandboxes", {"volume": volume})
    assert answer.status == 400 and answer.json["code"] == "sandbox.request", answer
    assert volumes(daemon) == []


def test_cloche_volume(daemon, cloche):
    box = daemon.create(volume={"name": "v"})
    listed = cloche("volume", "ls")
    assert listed.ok and box.record["volume"] in listed.out and box.id in listed.out, listed
    assert cloche("volume", "ls", "--json").json["volumes"] == volumes(daemon)
    refused = cloche("volume", "rm", box.record["volume"])
    assert refused.code == 125 and "volume.busy" in refused.err, refused
    # one that is refused keeps no other
    spare = daemon.create(volume={"name": "spare"})
    assert spare.delete().ok
    both = cloche("volume", "rm", box.record["volume"], spare.record["volume"], "--json")
    assert both.code == 125 and both.json["removed"] == 1, both
    assert [(f["name"], f["code"]) for f in both.json["failed"]] == [(box.record["volume"], "volume.busy")], both
    assert box.delete().ok and cloche("volume", "rm", box.record["volume"]).ok and volumes(daemon) == []
    for words in ([], ["rm"], ["rm", "none"], ["ls", "x"], ["mv"]):
        assert cloche("volume", *words).code == 125
    assert "usage: cloche volume" in cloche("volume", "--help").out


def test_on_record(daemon, cloche):
    agent = caller(daemon, "agent")
    box = agent.create(volume={"name": "v"})
    assert box.delete().ok and agent("DELETE", f"/v1/volumes/{box.record['volume']}").ok

    def entries():
        return [json.dumps(json.loads(line)) for line in cloche("audit", "query", "--json").out.splitlines()]
    # nobody waits for the disk
    assert wait_for(lambda: any("remove_volume" in e and box.record["volume"] in e for e in entries()), 60), entries()[-5:]
    assert wait_for(lambda: any("was removed" in e and box.record["volume"] in e for e in entries()), 60), entries()[-5:]
