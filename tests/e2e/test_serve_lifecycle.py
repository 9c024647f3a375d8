"""cloche serve: requests that are made again, lists in pages, the kill switch."""
import os
import signal
import threading

import pytest

from helpers import requirement
from helpers.daemon import Daemon, caller
from helpers.runner import wait_for

pytestmark = requirement("R47", "R61")


def create(daemon, key, body):
    return daemon("POST", "/v1/sandboxes", body, {"Idempotency-Key": key})


def test_a_request_that_is_made_again_makes_one_sandbox(daemon):
    first = create(daemon, "k1", {"name": "b"})
    again = create(daemon, "k1", {"name": "b"})
    assert (first.status, again.status) == (201, 201) and again.json["id"] == first.json["id"], (first, again)
    # without the key it is another request, which finds the name taken
    assert daemon.post("/v1/sandboxes", {"name": "b"}).status == 409
    other = create(daemon, "k1", {"name": "c"})
    assert other.status == 422 and other.json["code"] == "idempotency.conflict", other
    assert create(daemon, "k2", {"name": "c"}).status == 201
    assert len(daemon.processes("cloche-keeper")) == 2
    # it has stopped: the answer is what became of it; its record is removed: the key does not make another one
    assert daemon("DELETE", "/v1/sandboxes/b").status == 200
    assert create(daemon, "k1", {"name": "b"}).json["state"] == "stopped"
    assert daemon("DELETE", f"/v1/sandboxes/{first.json['id']}").status == 200
    gone = create(daemon, "k1", {"name": "b"})
    assert gone.status == 410 and gone.json["code"] == "idempotency.gone", gone


def test_one_that_was_not_made_leaves_its_key(daemon):
    refused = create(daemon, "k", {"policy": {"mode": "off"}})
    assert refused.status == 400 and refused.json["code"] == "serve.mode-off", refused
    assert create(daemon, "k", {"name": "b"}).status == 201


@pytest.mark.parametrize("key", ["", "x" * 256, "a\tb"])
def test_a_key_that_is_none(daemon, key):
    answer = create(daemon, key, {})
    assert answer.status == 400 and answer.json["code"] == "idempotency.key", answer


def test_requests_at_once_with_one_key(daemon):
    answers = []
    threads = [threading.Thread(target=lambda: answers.append(create(daemon, "k", {"name": "b"}))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(90)
    assert [a.status for a in answers] == [201] * 8 and len({a.json["id"] for a in answers}) == 1, answers
    assert len(daemon.processes("cloche-keeper")) == 1


@requirement("R23")
def test_a_key_is_its_callers_own(daemon):
    agents = [caller(daemon, "agent"), caller(daemon, "agent"), daemon]
    answers = [create(a, "k", {"name": "b"}) for a in agents for _ in range(2)]
    assert [a.status for a in answers] == [201] * 6, answers
    assert [answers[i].json["id"] == answers[i + 1].json["id"] for i in range(5)] == [True, False, True, False, True], answers


def test_a_key_outlives_the_daemon(cloche):
    daemon = Daemon(cloche)
    made = create(daemon, "k", {"name": "b"}).json
    daemon.kill()
    daemon.start()
    again = create(daemon, "k", {"name": "b"})
    assert again.json["id"] == made["id"] and again.json["state"] == "stopped", again
    assert daemon.stop() == 0


def test_the_kill_switch_is_a_signal_too(daemon):
    streams = [daemon.create(name=f"b{i}").stream("echo here; exec sleep 600") for i in range(3)]
    for stream in streams:
        assert next(stream)[0] == "stdout"
    daemon.process.send_signal(signal.SIGUSR1)
    assert wait_for(lambda: not daemon.processes("cloche-keeper") and not daemon.processes("sleep"), 60)
    stopped = lambda: [b["detail"] for b in daemon.get("/v1/sandboxes?state=all").json["sandboxes"] if b["state"] == "stopped"]
    assert wait_for(lambda: len(stopped()) == 3, 60) and set(stopped()) == {"kill switch"}, stopped()
    assert daemon.create(name="b0").exec("echo on")["stdout"] == "on\n"


def test_the_kill_switch_asks_nobody(daemon):
    """Neither a warden nor a keeper that stands still."""
    boxes = [daemon.create(), daemon.create()]
    stopped = daemon.processes("cloche-warden") + daemon.processes("cloche-keeper")
    for pid in stopped:
        os.kill(pid, signal.SIGSTOP)
    try:
        daemon.process.send_signal(signal.SIGUSR1)
        assert wait_for(lambda: not daemon.processes("cloche-keeper") and not daemon.processes("cloche-guest"), 60)
    finally:
        for pid in daemon.processes("cloche-warden"):
            os.kill(pid, signal.SIGCONT)
    assert wait_for(lambda: {b.show()["state"] for b in boxes} == {"stopped"}, 60)


def test_cloche_kill(daemon, cloche):
    for name in "abc":
        daemon.create(name=name)
    assert cloche("kill", "a").ok and not daemon.get("/v1/sandboxes/a").ok
    # one that is not there keeps no other alive
    both = cloche("kill", "none", "b", "neither", "--json")
    assert both.code == 125 and both.json["ended"] == 1 and [f["name"] for f in both.json["failed"]] == ["none", "neither"], both
    assert {f["code"] for f in both.json["failed"]} == {"sandbox.not-found"} and both.err.count("[sandbox.not-found]") == 2
    assert [b["name"] for b in daemon.get("/v1/sandboxes").json["sandboxes"]] == ["c"]
    assert cloche("kill", "--json", "--all").json == {"version": 1, "ended": 1, "failed": []}
    assert daemon.get("/v1/sandboxes").json["sandboxes"] == []
    for words in ["kill"], ["kill", "--all", "a"], ["kill", "none"]:
        assert cloche(*words).code == 125


def test_a_list_goes_on_where_it_was_although_that_one_is_gone(daemon):
    boxes = [daemon.create(name=f"b{i}") for i in range(5)]
    page = daemon.get("/v1/sandboxes?limit=2").json
    assert [b["id"] for b in page["sandboxes"]] == [b.id for b in boxes[:2]]
    for box in boxes[1:3]:
        assert box.delete().ok and box.delete().ok      # and its record
    page = daemon.get(f"/v1/sandboxes?limit=1&after={page['next']}").json
    assert [b["id"] for b in page["sandboxes"]] == [boxes[3].id] and page["next"]
    page = daemon.get(f"/v1/sandboxes?limit=1&after={page['next']}").json
    assert [b["id"] for b in page["sandboxes"]] == [boxes[4].id] and page["next"] is None
    # a loop that begins with nothing
    assert daemon.get("/v1/sandboxes?after=").json == daemon.get("/v1/sandboxes").json
    assert daemon.get("/v1/sandboxes?after=x").status == 400
    assert daemon.get(f"/v1/sandboxes?after={boxes[0].id}-x").status == 400
