"""Which engine an agent's sandbox has: an operator's settings say the least boundary, and which engines agents may ask for."""
import json

import pytest

from helpers import requirement
from helpers.daemon import Caller, Daemon, caller, token
from helpers.mcp import Client
from helpers.served import lend

pytestmark = requirement("R20", "R21", "R60")
# Each asks for less than the boundary `kernel`, or for an engine that nobody gave.
WEAKER = ({"boundary": "process"}, {"engine": "native"}, {"engine": "auto", "boundary": "process"}, {"runtime": "crun", "boundary": "process"},
          {"engine": "docker"}, {"engine": "oci", "runtime": "runc"}, {"engineType": "docker", "boundary": "process"}, {"mode": "light"},
          {"boundary": "process", "fallback": "warn"}, {"fallback": "no-sandbox"}, {"agent-engines": ["native"], "engine": "native"},
          {"boundary": "process", "agent-engines": []})
STRONGER = ({"boundary": "kernel"}, {"boundary": "vm"}, {"runtime": "runsc"}, {"engine": "oci"}, {"engine": "microvm"},
            {"agent-engines": ["microvm"], "engine": "microvm"})


@pytest.fixture
def settings(cloche):
    return cloche.home / "settings.yaml"


def serving(cloche, settings, **said):
    """Where the test has lent no runtime there is none."""
    empty = cloche.home / "empty"
    empty.mkdir()
    cloche.env.setdefault("PATH", str(empty))
    settings.write_text(json.dumps({"mode": "standard", **said}))
    daemon = Daemon(cloche, "--settings", str(settings))
    return daemon, caller(daemon, "agent")


def ways(agent, policy):
    """The same policy by everything that takes one."""
    yield agent.post("/v1/sandboxes", {"policy": policy})
    yield agent.post("/v1/execute", {"language": "shell", "code": "echo ran", "policy": policy})


def test_nothing_weaker_than_the_floor(cloche, settings):
    daemon, agent = serving(cloche, settings, boundary="kernel")
    for policy in WEAKER:
        for answer in ways(agent, policy):
            assert answer.status in (400, 403, 422, 501), (policy, answer)
            assert answer.json["code"] in ("policy.ceiling", "engine.boundary"), (policy, answer)
            assert b"ran" not in answer.body, (policy, answer)
        assert daemon.get("/v1/sandboxes").json["sandboxes"] == [], policy
    assert daemon.stop() == 0, daemon.log


def test_the_owner_may_have_less(cloche, settings):
    """The attack, by somebody who may: without the comparison this is what an agent would get."""
    daemon, _ = serving(cloche, settings, boundary="kernel")
    assert daemon.create(policy={"boundary": "process"}).record["facts"]["engine"] == "native"
    assert daemon.stop() == 0, daemon.log


def test_nothing_that_nobody_gave_is_started_as_root(cloche, settings):
    daemon, agent = serving(cloche, settings)
    for policy in STRONGER:
        for answer in ways(agent, policy):
            assert answer.status == 403 and answer.json["code"] == "policy.ceiling", (policy, answer)
        assert daemon.get("/v1/sandboxes").json["sandboxes"] == [], policy
    assert daemon.stop() == 0, daemon.log


def test_a_floor_that_comes_later_holds_for_what_is_made_again(cloche, settings):
    """A sandbox, a template and a fork from before do not come back with less, and a living one is not changed into less."""
    daemon, agent = serving(cloche, settings)
    box = agent.create(name="mine")
    assert box.put("f", b"x").ok and agent.post(f"{box.at}/snapshot", {"name": "t"}).status == 201
    settings.write_text("boundary: kernel\n")
    assert "was read again" in daemon.reload()
    for path, body in ((f"{box.at}/fork", {}), ("/v1/sandboxes", {"template": "t"}), ("/v1/sandboxes", {"template": "t", "policy": {"boundary": "process"}}),
                       ("/v1/sandboxes", {"template": "t", "policy": {"engine": "native"}}), ("/api/sandbox/start", None)):
        answer = agent.post(path, body)
        assert not answer.ok, (path, body, answer)
    assert not daemon("PATCH", f"{box.at}/policy", {"boundary": "process"}).ok
    assert box.delete().ok
    again = agent.post(f"{box.at}/recover")
    assert not again.ok and box.show()["state"] != "ready", again
    assert [b for b in daemon.get("/v1/sandboxes").json["sandboxes"] if b["facts"].get("engine") == "native"] == []
    assert daemon.stop() == 0, daemon.log


def test_over_mcp_nothing_is_chosen(cloche, settings):
    daemon, _ = serving(cloche, settings, boundary="kernel")
    client = Client(daemon, token=token(daemon, "agent")["token"])
    for more in ({}, {"engine": "native"}, {"boundary": "process"}, {"policy": {"boundary": "process"}}, {"language": "shell", "runtime": "crun"}):
        said = client("tools/call", {"name": "create_sandbox", "arguments": more})
        text = json.dumps(said)
        assert "error" in said or said["result"].get("isError") or "engine.boundary" in text, said
    said = json.dumps(client("tools/call", {"name": "code_execute", "arguments": {"language": "shell", "code": "echo ra''n", "policy": {"boundary": "process"}}}))
    assert '"ran' not in said and "ran\\n" not in said, said
    assert daemon.get("/v1/sandboxes").json["sandboxes"] == []
    assert daemon.stop() == 0, daemon.log


@pytest.mark.root
def test_what_is_in_the_list_and_nothing_else(cloche, settings):
    cloche.env.update(lend("crun").env)
    daemon, agent = serving(cloche, settings, **{"agent-engines": ["crun"]})
    box = agent.create(policy={"runtime": "crun"})
    assert (box.record["facts"]["engine"], box.record["facts"]["runtime"]) == ("oci", "crun") and box.exec("id -u")["stdout"] == "1000\n"
    # the engine of that name, but not its other runtimes: what it asked for has become what it may have
    other = agent.create(policy={"engine": "oci"})
    assert other.record["facts"]["runtime"] == "crun" and agent.get(f"{other.at}/policy").json["effective"]["runtime"]["value"] == "crun"
    assert agent.create().record["facts"]["engine"] == "native" == agent.create(policy={"engine": "native"}).record["facts"]["engine"]
    for policy in ({"runtime": "runc"}, {"runtime": "runsc"}, {"engine": "docker"}, {"engine": "microvm"}, {"boundary": "kernel"}, {"boundary": "vm"},
                   {"agent-engines": ["crun", "runc"], "runtime": "runc"}, {"agent-engines": ["runc"], "runtime": "runc"}):
        for answer in ways(agent, policy):
            assert answer.status == 403 and answer.json["code"] == "policy.ceiling", (policy, answer)
    assert not agent.post("/v1/sandboxes", {"policy": {"engine": "native", "runtime": "crun"}}).ok
    assert box.delete().ok and agent.post(f"{box.at}/recover").ok and box.exec("echo on")["stdout"] == "on\n"
    # and what is taken out of it is not had again
    settings.write_text("mode: standard\n")
    assert "was read again" in daemon.reload()
    assert box.delete().ok and agent.post(f"{box.at}/recover").status == 403
    assert daemon.stop() == 0, daemon.log


@pytest.mark.root
def test_what_one_agent_may_have_others_may_not(cloche, settings):
    cloche.env.update(lend("crun").env)
    daemon, _ = serving(cloche, settings)
    mine, theirs = token(daemon, "agent", name="a"), token(daemon, "agent", name="a")
    settings.write_text(json.dumps({"agent-engines": [f"crun@{mine['id']}"]}))
    assert "was read again" in daemon.reload()
    agent, other = (Caller(daemon, Authorization=f"Bearer {t['token']}") for t in (mine, theirs))
    box = agent.create(policy={"runtime": "crun"})
    assert box.record["facts"]["runtime"] == "crun"
    for answer in ways(other, {"runtime": "crun"}):
        assert answer.status == 403 and answer.json["code"] == "policy.ceiling" and mine["id"] not in answer.body.decode(), answer
    # nor by naming oneself, or who may
    for whose in (mine, theirs):
        answer = other.post("/v1/sandboxes", {"policy": {"runtime": "crun", "agent-engines": [f"crun@{whose['id']}"]}})
        assert answer.status == 403 and answer.json["code"] == "policy.ceiling", answer
    shown = agent.get(f"{box.at}/policy").body.decode() + other.get(f"{other.create().at}/policy").body.decode()
    assert mine["id"] not in shown, shown
    assert daemon("PATCH", f"{box.at}/policy", {"limits": {"time": "10s"}}).ok
    for other_one in ({"runtime": "runc"}, {"engine": "native", "runtime": "auto"}, {"boundary": "kernel"}):
        changed = daemon("PATCH", f"{box.at}/policy", other_one)
        assert changed.status == 409 and changed.json["code"] == "policy.fixed", changed
    assert box.exec("echo on")["stdout"] == "on\n"
    assert daemon("DELETE", f"/v1/tokens/{mine['id']}").ok and not agent.post("/v1/sandboxes", {"policy": {"runtime": "crun"}}).ok
    assert daemon.stop() == 0, daemon.log


@pytest.mark.root
def test_the_list_gives_nothing_below_the_floor(cloche, settings):
    cloche.env.update(lend("crun").env)
    daemon, agent = serving(cloche, settings, boundary="kernel", **{"agent-engines": ["crun", "native", "docker"]})
    for policy in ({"runtime": "crun"}, {"engine": "native"}, {"engine": "docker"}, {"runtime": "crun", "boundary": "process"},
                   {"engine": "native", "boundary": "process"}):
        for answer in ways(agent, policy):
            assert not answer.ok and answer.json["code"] in ("policy.ceiling", "engine.boundary"), (policy, answer)
    assert daemon.stop() == 0, daemon.log


@pytest.mark.root
def test_a_floor_that_can_be_kept_is(cloche, settings):
    cloche.env.update(lend("runsc").env)
    daemon, agent = serving(cloche, settings, boundary="kernel")
    for policy in ({}, {"boundary": "kernel"}):
        box = agent.create(policy=policy)
        assert (box.record["facts"]["boundary"], box.record["facts"]["runtime"]) == ("kernel", "runsc"), box.record
        assert box.exec("echo on")["stdout"] == "on\n" and box.delete().ok
    made = Client(daemon, token=token(daemon, "agent")["token"]).call("create_sandbox")
    assert daemon.get(f"/v1/sandboxes/{made['sandbox_id']}").json["facts"]["boundary"] == "kernel", made
    assert daemon.stop() == 0, daemon.log
