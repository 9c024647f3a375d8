"""Sandboxes of a workspace: found by its key, and taken again only while they are what was asked for."""
import threading

import pytest

from helpers import requirement
from helpers.daemon import Daemon, Sandbox, caller, restart
from helpers.runner import wait_for
from helpers.shared import own, shared

pytestmark = [requirement("R20", "R21"), shared]


def ask(daemon, key="w", **members):
    return daemon.post("/v1/sandboxes", {"workspace_key": key, "reattach": True, **members})


def made(daemon, answer, replaced=None, differs=None):
    assert answer.status == 201 and answer.json["reattached"] is False and answer.json["key"], answer
    if replaced is None:
        assert answer.json["replaced"] is None, answer
    else:
        assert answer.json["replaced"] == {"id": replaced, "differs": differs}, answer
    return Sandbox(daemon, answer.json)


def taken(answer, box):
    assert answer.status == 200 and answer.json["id"] == box.id and answer.json["reattached"] is True, answer
    assert answer.json["replaced"] is None and answer.json["key"] is None, answer


def live(daemon, query=""):
    return [b["id"] for b in daemon.get(f"/v1/sandboxes?{query}").json["sandboxes"]]


def test_a_key_alone_shares_nothing(daemon):
    a, b = daemon.create(workspace_key="w"), daemon.create(workspace_key="w")
    other = daemon.create(workspace_key="v")
    assert a.id != b.id and a.record["workspace_key"] == "w" and "reattached" not in a.record
    assert a.put("f", b"a").ok and b.read("f").status == 404
    assert a.exec("echo x > /tmp/t; echo y > ~/h")["exit_code"] == 0
    assert b.exec("ls -A /tmp ~ /workspace")["stdout"].find("t\n") < 0 and b.exec("cat /tmp/t ~/h")["exit_code"] != 0
    assert live(daemon, "workspace_key=w") == [a.id, b.id] and live(daemon, "workspace_key=v") == [other.id]
    assert live(daemon, "workspace_key=none") == [] and len(live(daemon)) == 3
    assert daemon.create().record["workspace_key"] is None


def test_the_same_is_taken_again(daemon):
    box = made(daemon, ask(daemon, name="n", policy={"limits": {"memory": "256m"}}))
    assert box.put("f", b"still here").ok
    taken(ask(daemon, name="n", policy={"limits": {"memory": "256m"}}), box)
    # the name and labels are its own; nothing else was made, and what was compared is gone
    taken(ask(daemon, name="m", labels={"a": "b"}, policy={"limits": {"memory": "256m"}}), box)
    assert box.read("f").body == b"still here" and box.show()["name"] == "n" and box.show()["labels"] == {}
    assert live(daemon, "state=all") == [box.id]
    assert wait_for(lambda: len(daemon.processes("cloche-keeper")) == 1, 60)
    assert "reattached" in [e["type"] for e in daemon.get(f"/v1/events?sandbox={box.id}").json["events"]]


def test_a_paused_one_is_taken_paused(daemon):
    box = made(daemon, ask(daemon))
    assert daemon.post(f"{box.at}/pause").ok
    answer = ask(daemon)
    taken(answer, box)
    assert answer.json["paused"] is True
    assert daemon.post(f"{box.at}/resume").ok and box.exec("true")["exit_code"] == 0


@pytest.mark.parametrize("members", [{"policy": {"limits": {"memory": "256m"}}}, {"policy": {"env": {"A": "b"}}}, {"idle_timeout": 4000},
                                     {"max_lifetime": 4000}, {"policy": {"network": {"mode": "allowlist", "allow": ["example.org"]}}},
                                     {"recovery": {"after": 60}}],
                         ids=["limit", "variable", "idle", "life", "network", "recovery"])
def test_another_profile_is_made_fresh(daemon, members):
    box = made(daemon, ask(daemon, name="n"))
    assert box.put("f", b"old").ok
    new = made(daemon, ask(daemon, name="n", **members), box.id, ["profile"])
    assert new.id != box.id and new.read("f").status == 404 and new.show()["name"] == "n"
    assert box.show()["state"] == "stopped" and "profile" in box.show()["detail"], box.show()
    taken(ask(daemon, **members), new)


def test_the_value_of_a_variable_counts(daemon):
    box = made(daemon, ask(daemon, policy={"env": {"A": "one"}}))
    taken(ask(daemon, policy={"env": {"A": "one"}}), box)
    made(daemon, ask(daemon, policy={"env": {"A": "two"}}), box.id, ["profile"])


def test_one_whose_policy_was_changed_is_another(daemon):
    network = {"policy": {"network": {"mode": "allowlist", "allow": ["example.org"]}}}
    box = made(daemon, ask(daemon, **network))
    patched = daemon("PATCH", f"{box.at}/policy", {"network": {"allow": ["example.org", "example.net"]}})
    assert patched.ok, patched
    made(daemon, ask(daemon, **network), box.id, ["profile"])


def test_other_settings_are_another_template(cloche):
    settings = cloche.home / "settings.yaml"
    settings.write_text("limits: {memory: 300m}\n")
    daemon = Daemon(cloche, "--settings", str(settings))
    box = made(daemon, ask(daemon))
    same = made(daemon, ask(daemon, "other", policy={"limits": {"memory": "200m"}}))
    settings.write_text("limits: {memory: 310m}\n")
    made(daemon, ask(daemon), box.id, ["profile", "template"])
    # what it is held to is the same, what that came from is not
    made(daemon, ask(daemon, "other", policy={"limits": {"memory": "200m"}}), same.id, ["template"])
    assert daemon.stop() == 0, daemon.log


def test_a_stopped_one_is_not_taken(daemon):
    box = made(daemon, ask(daemon))
    assert box.delete().ok
    assert made(daemon, ask(daemon)).id != box.id
    assert daemon.post(f"{box.at}/recover").ok
    # the newest of the key is the one that was made last
    assert ask(daemon).json["id"] == box.id


def test_never_anothers(daemon):
    a, b = caller(daemon, "agent"), caller(daemon, "agent")
    box_a, box = made(a, ask(a)), made(daemon, ask(daemon))
    box_b = made(b, ask(b))
    assert len({box_a.id, box_b.id, box.id}) == 3
    for who, its in ((a, box_a), (b, box_b), (daemon, box)):
        taken(ask(who), its)
        assert [x for x in live(who, "workspace_key=w") if x == its.id]
    assert live(a, "workspace_key=w") == [box_a.id]
    made(a, ask(a, idle_timeout=5000), box_a.id, ["profile"])
    assert box_b.show()["state"] == box.show()["state"] == "ready"


def test_a_policy_that_is_refused_destroys_nothing(daemon):
    box = made(daemon, ask(daemon))
    refused = ask(daemon, policy={"mode": "off"})
    assert refused.status == 400 and refused.json["code"] == "serve.mode-off", refused
    taken(ask(daemon), box)
    agent = caller(daemon, "agent")
    own = made(agent, ask(agent))
    refused = ask(agent, policy={"workspace": "/srv"})
    assert refused.status == 403 and refused.json["code"] == "policy.ceiling", refused
    taken(ask(agent), own)


def test_a_name_that_another_workspace_has(daemon):
    made(daemon, ask(daemon, "one", name="n"))
    refused = ask(daemon, "two", name="n")
    assert refused.status == 409 and refused.json["code"] == "sandbox.name-taken", refused


def test_at_once(daemon):
    answers = []
    threads = [threading.Thread(target=lambda: answers.append(ask(daemon))) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(90)
    assert sorted(a.status for a in answers) == [200] * 5 + [201] and len({a.json["id"] for a in answers}) == 1, answers
    assert wait_for(lambda: len(daemon.processes("cloche-keeper")) == 1, 60)


def test_the_last_place_is_enough(cloche):
    daemon = Daemon(cloche, "--max-sandboxes", "1")
    box = made(daemon, ask(daemon))
    taken(ask(daemon), box)
    # what ended the probe may not have been noticed
    assert wait_for(lambda: len(daemon.processes("cloche-keeper")) == 1, 60)
    assert wait_for(lambda: ask(daemon, idle_timeout=4000).status == 201, 60) and box.show()["state"] == "stopped"
    assert ask(daemon, "another").status == 429
    assert daemon.stop() == 0, daemon.log


@own
def test_a_request_that_is_made_again(daemon):
    box = made(daemon, ask(daemon))
    body = {"workspace_key": "w", "reattach": True}
    answers = [daemon("POST", "/v1/sandboxes", body, {"Idempotency-Key": "k"}) for _ in range(2)]
    taken(answers[0], box)
    assert answers[1].json["id"] == box.id, answers
    assert box.delete().ok
    assert daemon("POST", "/v1/sandboxes", body, {"Idempotency-Key": "k"}).json["state"] == "stopped"


@own
def test_it_outlives_the_warden(daemon):
    box = made(daemon, ask(daemon))
    restart(daemon)
    taken(ask(daemon), box)


@pytest.mark.parametrize("members", [{"workspace_key": ""}, {"workspace_key": "a\nb"}, {"workspace_key": "x" * 256}, {"workspace_key": 1},
                                     {"reattach": True}, {"workspace_key": "w", "reattach": "yes"}])
def test_what_is_no_key(daemon, members):
    answer = daemon.post("/v1/sandboxes", members)
    assert answer.status == 400 and answer.json["code"] == "sandbox.request", answer
