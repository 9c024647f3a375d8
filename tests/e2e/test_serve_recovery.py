"""cloche serve: sandboxes that are made anew by themselves."""
import os
import signal
import time

import pytest

from helpers import requirement
from helpers.daemon import Daemon, Sandbox, caller, kill_one, restart
from helpers.hung import Hung, holds
from helpers.runner import wait_for

pytestmark = requirement("R42", "R22")

OFTEN = {"after": 1, "tries": 3, "window": 3600}
SLOW = {"after": 600, "tries": 3, "window": 3600}       # a second recovery within the window is far away


def notes(daemon, box):
    return [e["detail"] for e in daemon.get(f"/v1/events?sandbox={box.id}").json["events"] if e["type"] == "recovery"]


def waits(box):
    """It is to be made anew later."""
    record = box.show()
    return record["state"] == "recovering" and record["recovery"]["next_ms"] is not None


def spent(daemon, **members):
    """One that has been recovered once, and waits for the next time, ten minutes."""
    box = daemon.create(recovery=SLOW, **members)
    kill_one(daemon, "cloche-keeper")
    assert box.wait_for("ready"), box.show()
    kill_one(daemon, "cloche-keeper")
    assert wait_for(lambda: waits(box)), box.show()
    return box


def so_many(daemon, name, count):
    """Its processes of that name, when there are @count: one may have a child of its own name for a moment."""
    found = []

    def settled():
        found[:] = daemon.processes(name)
        return len(found) == count
    assert wait_for(settled), (name, count, found)
    return set(found)


@holds
@pytest.mark.slow
def test_one_that_hangs(daemon):
    """Its keeper, and in another its guest: both wait for the daemon's patience at the same time."""
    names = ["cloche-keeper", "cloche-guest"]
    boxes, first, hung = {}, {}, {}
    for name in names:
        before = so_many(daemon, name, len(boxes))
        box = boxes[name] = daemon.create(name=name, recovery=OFTEN, labels={"a": "b"}, policy={"limits": {"memory": "100m"}})
        box.put("f", b"x")
        first[name] = box.show()
        assert first[name]["recovery"] == {**OFTEN, "used": 0, "given_up": False, "next_ms": None}, first
        hung[name], = so_many(daemon, name, len(boxes)) - before
    os.kill(hung["cloche-guest"], signal.SIGSTOP)
    with Hung(hung["cloche-keeper"]):
        for name, box in boxes.items():
            assert wait_for(lambda box=box: notes(daemon, box), 90), box.show()
            assert box.wait_for("ready", 90), box.show()
    for name, box in boxes.items():
        assert hung[name] not in so_many(daemon, name, len(boxes))
        is_made_anew(daemon, box, first[name])


def is_made_anew(daemon, box, first):
    """Itself, with what it may do and what it is known by, but empty."""
    again = box.show()
    assert {k: again[k] for k in ("id", "name", "labels", "policy", "created_ms")} == {k: first[k] for k in ("id", "name", "labels", "policy", "created_ms")}
    assert again["recovery"]["used"] == 1 and not again["recovery"]["given_up"], again
    assert box.read("f").status == 404 and box.exec("echo on")["stdout"] == "on\n"
    mine = daemon("GET", box.at, None, {"X-Sandbox-Key": box.record["key"]})
    assert mine.status == 200 and mine.json["id"] == box.id, mine
    # nobody used it: neither of its clocks began anew
    assert again["started_ms"] == first["started_ms"], (first, again)
    entries = daemon.get(f"/v1/audit?sandbox={box.id}").json["entries"]
    said = [e for e in entries if e["metadata"].get("event") == "recovery"]
    assert len(said) == 1 and said[0]["metadata"]["by"] == "the daemon" and "does not answer" in said[0]["metadata"]["detail"], entries


@pytest.mark.root
def test_one_that_is_well_again_in_time(daemon):
    box = daemon.create(recovery=SLOW)
    keeper = daemon.only("cloche-keeper")
    guest, = daemon.processes("cloche-guest")       # a keeper would be told to go on
    os.kill(guest, signal.SIGSTOP)
    assert box.wait_for("degraded"), box.show()
    assert wait_for(lambda: box.show()["recovery"]["next_ms"] is not None), box.show()
    os.kill(guest, signal.SIGCONT)
    assert box.wait_for("ready") and wait_for(lambda: box.show()["recovery"]["next_ms"] is None), box.show()
    assert daemon.processes("cloche-keeper") == [keeper] and not notes(daemon, box)


@pytest.mark.parametrize("name", ["cloche-keeper", pytest.param("cloche-guest", marks=pytest.mark.root)])
def test_one_that_dies_has_so_many_lives(daemon, name):
    box = daemon.create(name="b", recovery={"after": 1, "tries": 2, "window": 3600}, volume={"name": "v"})
    box.put("f", b"kept")
    for life in 1, 2:
        old = kill_one(daemon, name)
        assert wait_for(lambda: box.show()["recovery"]["used"] == life), box.show()
        assert box.wait_for("ready"), box.show()
        assert daemon.processes(name) != [] and old not in daemon.processes(name)
        assert box.read("f").body == b"kept" and box.exec("echo on")["stdout"] == "on\n"
    kill_one(daemon, name)
    assert box.wait_for("stopped"), box.show()
    last = box.show()
    assert last["recovery"]["given_up"] and last["recovery"]["used"] == 2 and last["recovery"]["next_ms"] is None, last
    assert "not recovered by itself any more: 2 recoveries within 3600 seconds" in last["detail"], last
    assert notes(daemon, box)[:2] != [] and "given up" in notes(daemon, box)[-1]
    # who recovers it has all of them again
    again = daemon.post(f"{box.at}/recover")
    assert again.status == 200 and again.json["recovery"] == {"after": 1, "tries": 2, "window": 3600, "used": 0, "given_up": False, "next_ms": None}, again
    kill_one(daemon, name)
    assert wait_for(lambda: box.show()["recovery"]["used"] == 1) and box.wait_for("ready"), box.show()


def test_it_is_not_unless_somebody_asked(daemon):
    box = daemon.create()
    assert box.record["recovery"] is None
    kill_one(daemon, "cloche-keeper")
    assert box.wait_for("stopped") and box.show()["recovery"] is None
    assert not notes(daemon, box)


@pytest.mark.parametrize("recovery", [True, 1, [], {}, {"tries": 3}, {"after": 0}, {"after": "1s"}, {"after": 1.5}, {"after": 86401},
                                      {"after": 1, "tries": 0}, {"after": 1, "tries": 21}, {"after": 1, "window": 59},
                                      {"after": 1, "window": 2592001}, {"after": 1, "surprise": 1}, {"after": -1}])
def test_what_cannot_be_asked_for(daemon, recovery):
    answer = daemon.post("/v1/sandboxes", {"recovery": recovery})
    assert answer.status == 400 and answer.json["code"] == "sandbox.request", answer


@requirement("R67")
def test_the_daemons_own(cloche):
    (cloche.home / "serve.yaml").write_text("recover-after: 10m\nrecover-tries: 2\nrecover-window: 2h\n")
    daemon = Daemon(cloche, "--config", "serve.yaml", "--recover-tries", "4")
    usual = {"after": 600, "tries": 4, "window": 7200, "used": 0, "given_up": False, "next_ms": None}
    assert daemon.create().record["recovery"] == usual
    assert daemon.create(recovery={"after": 5}).record["recovery"] == {**usual, "after": 5}
    assert daemon.create(recovery=False).record["recovery"] is None
    assert caller(daemon, "agent").post("/v1/sandboxes", {}).json["recovery"] == usual
    assert daemon.post("/api/sandbox/start").ok and daemon.get("/v1/sandboxes").json["sandboxes"][-1]["recovery"] == usual
    assert [b["recovery"] for b in cloche("ps", "--json").json["sandboxes"]][:3] == [usual, {**usual, "after": 5}, None]
    (cloche.home / "serve.yaml").write_text("recover-after: 0\n")
    assert "was read again" in daemon.reload()
    assert daemon.create().record["recovery"] is None
    assert daemon.stop() == 0, daemon.log


@requirement("R67")
@pytest.mark.parametrize("text", ["recover-after: 25h\n", "recover-tries: 0\n", "recover-tries: 21\n", "recover-window: 59s\n", "recover-after: -1\n"])
def test_what_the_daemon_cannot_be_told(cloche, text):
    (cloche.home / "serve.yaml").write_text(text)
    result = cloche("config", "check", "serve.yaml")
    assert result.code == 125 and "serve.yaml:1: recover-" in result.err, result


# --- what ends it for good ------------------------------------------------------------------------------------------

def test_a_paused_one_stays_dead(daemon):
    box = daemon.create(recovery=OFTEN)
    assert daemon.post(f"{box.at}/pause").ok
    kill_one(daemon, "cloche-keeper")
    assert box.wait_for("stopped") and not notes(daemon, box)


def test_a_limit_that_was_reached_is_no_fault(daemon):
    box = daemon.create(recovery=OFTEN, policy={"limits": {"memory": "64m"}})
    # what is no file is looked at a few times a second, so it has to stay for a while
    daemon.post(f"{box.at}/exec", {"command": ["python3", "-c", "x = b'x' * (512 << 20); import time; time.sleep(600)"], "timeout_ms": 600000})
    assert box.show()["state"] == "ready" and not notes(daemon, box), box.show()


def test_what_waits_can_be_ended(daemon):
    box = spent(daemon, name="b")
    assert daemon.get("/v1/sandboxes").json["sandboxes"][0]["recovery"] == box.show()["recovery"]       # from the file, and from memory
    assert not daemon.processes("cloche-keeper")
    answer = daemon.post(f"{box.at}/exec", {"command": "true"})
    assert answer.status == 409 and answer.json["code"] == "sandbox.state", answer
    gone = box.delete()
    assert gone.status == 200 and gone.json["state"] == "stopped" and gone.json["detail"] == "deleted", gone
    assert gone.json["recovery"]["next_ms"] is None, gone
    assert daemon.create(name="b").exec("echo on")["stdout"] == "on\n"


def test_what_waits_can_be_hastened(daemon):
    box = spent(daemon)
    again = daemon.post(f"{box.at}/recover")
    assert again.status == 200 and again.json["state"] == "ready" and box.exec("echo on")["stdout"] == "on\n", again


def test_the_kill_switch_ends_what_waits(daemon):
    box = spent(daemon)
    assert daemon.post("/v1/kill").json == {"stopped": 1}
    assert box.show()["state"] == "stopped" and box.show()["detail"] == "kill switch", box.show()
    time.sleep(2)
    assert not daemon.processes("cloche-keeper")


def test_an_orderly_end_does_not_wait_for_it(cloche):
    daemon = Daemon(cloche)
    box = spent(daemon)
    assert daemon.stop() == 0, daemon.log
    daemon.start()
    assert box.show()["state"] == "stopped" and box.show()["detail"] == "cloche serve ended", box.show()
    assert daemon.stop() == 0


@pytest.mark.slow
def test_its_life_is_not_longer_for_it(daemon):
    """Neither while it waits, nor by the life that it began."""
    box = daemon.create(recovery=SLOW, max_lifetime=25)
    kill_one(daemon, "cloche-keeper")
    assert box.wait_for("ready") and box.show()["started_ms"] == box.record["started_ms"], box.show()
    kill_one(daemon, "cloche-keeper")
    assert box.wait_for("stopped", 120) and box.show()["detail"] == "its maximum lifetime was over", box.show()
    assert box.show()["ended_ms"] - box.record["started_ms"] < 300_000


@requirement("R21")
def test_what_waits_is_not_taken_again(daemon):
    box = spent(daemon, workspace_key="w")
    other = daemon.post("/v1/sandboxes", {"workspace_key": "w", "reattach": True, "recovery": SLOW})
    assert other.status == 201 and other.json["replaced"] == {"id": box.id, "differs": ["state"]}, other
    mine = Sandbox(daemon, other.json)
    differs = daemon.post("/v1/sandboxes", {"workspace_key": "w", "reattach": True, "recovery": OFTEN})
    assert differs.status == 201 and differs.json["replaced"] == {"id": mine.id, "differs": ["profile"]}, differs


# --- the daemon's own processes -------------------------------------------------------------------------------------

def test_the_warden_dies_while_it_waits(daemon):
    box = spent(daemon)
    restart(daemon)
    assert wait_for(lambda: waits(box)), box.show()
    assert box.show()["recovery"]["used"] == 1
    assert daemon.post(f"{box.at}/recover").json["state"] == "ready"
    assert box.show()["recovery"]["used"] == 2 and box.exec("echo on")["stdout"] == "on\n"


def test_it_dies_while_there_is_no_warden(daemon):
    boxes = [daemon.create(recovery=OFTEN), daemon.create()]
    warden = daemon.only("cloche-warden")
    os.kill(warden, signal.SIGSTOP)
    for keeper in daemon.processes("cloche-keeper"):
        os.kill(keeper, signal.SIGKILL)
    assert wait_for(lambda: not daemon.processes("cloche-keeper"))
    restart(daemon)
    assert boxes[0].wait_for("ready"), boxes[0].show()
    assert boxes[0].exec("echo on")["stdout"] == "on\n" and boxes[1].show()["state"] == "stopped"


def test_the_kill_switch_outlives_a_warden_that_hangs(daemon):
    """Told while the warden hears nothing, it is the next one that ends all sandboxes, and makes none anew."""
    box = daemon.create(recovery=OFTEN)
    warden = daemon.only("cloche-warden")
    os.kill(warden, signal.SIGSTOP)
    daemon.process.send_signal(signal.SIGUSR1)
    assert wait_for(lambda: not daemon.processes("cloche-keeper"))
    restart(daemon)
    assert box.wait_for("stopped"), box.show()
    time.sleep(3)           # it would be made anew after one second
    assert box.show()["state"] == "stopped" and not daemon.processes("cloche-keeper"), box.show()


@holds
def test_a_hanging_keeper_and_a_warden_that_dies(daemon):
    """Its recovery has begun when the warden dies: the next one goes on with it."""
    box = daemon.create(recovery=OFTEN)
    keeper = daemon.only("cloche-keeper")
    with Hung(keeper):
        assert wait_for(lambda: box.show()["state"] == "recovering"), box.show()
        restart(daemon)
        assert box.wait_for("ready"), box.show()
    assert box.exec("echo on")["stdout"] == "on\n" and keeper not in daemon.processes("cloche-keeper")


@pytest.mark.parametrize("moment", [0.0, 0.2, 0.6])
def test_the_warden_dies_while_it_is_made_anew(daemon, moment):
    """Whenever that is, it is one of two things afterwards, and what runs is what the record says."""
    box = daemon.create(recovery=OFTEN)
    kill_one(daemon, "cloche-keeper")
    assert wait_for(lambda: notes(daemon, box) or box.show()["recovery"]["used"] == 1)
    time.sleep(moment)
    restart(daemon)
    assert box.wait_for("ready"), box.show()
    assert box.exec("echo on")["stdout"] == "on\n" and len(daemon.processes("cloche-keeper")) == 1
    assert 1 <= box.show()["recovery"]["used"] <= 2


@pytest.mark.parametrize("waiting", [False, True])
def test_sandboxes_do_not_outlive_the_daemon(cloche, waiting):
    daemon = Daemon(cloche)
    box = spent(daemon) if waiting else daemon.create(recovery=OFTEN)
    daemon.kill()
    daemon.start()
    assert box.show()["state"] == "stopped" and "the daemon was killed" in box.show()["detail"], box.show()
    time.sleep(2)
    assert box.show()["state"] == "stopped" and not daemon.processes("cloche-keeper")
    assert daemon.post(f"{box.at}/recover").json["state"] == "ready"
    assert daemon.stop() == 0
