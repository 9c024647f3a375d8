"""Agents' tokens: what their sandboxes may be given, which is never more than the daemon's settings give; and what one agent leaves for others."""
import json
import os
import signal
import threading
from pathlib import Path

import pytest

from helpers import requirement
from helpers.daemon import Caller, Daemon, caller, token
from helpers.runner import wait_for

pytestmark = requirement("R20", "R23")


@pytest.fixture
def place(tmp_path):
    """A folder of the host's with something to steal, and one that the daemon's settings give."""
    for name in ("private", "given"):
        (tmp_path / name).mkdir(mode=0o755)
        (tmp_path / name / "f").write_text(f"words of {name}\n")
    return tmp_path


@pytest.fixture
def daemon(cloche, place):
    settings = place / "settings.yaml"
    settings.write_text(f"binds: [\"{place}/given:/given\"]\nlimits:\n  memory: 128m\n")
    made = Daemon(cloche, "--settings", str(settings))
    yield made
    assert made.stop() == 0, made.log


@pytest.fixture
def agent(daemon):
    return Caller(daemon, Authorization="Bearer " + token(daemon, "agent")["token"])


WIDER = {
    "a folder as workspace": {"workspace": "{}:ro"},
    "a folder to write": {"workspace": "{}:rw"},
    "a copy of a folder": {"workspace": "{}:cow"},
    "a bind": {"binds": ["{}:/p"]},
    "writing to what is given": {"binds": ["{given}:/given:rw"]},
    "what is given, elsewhere": {"binds": ["{given}:/elsewhere"]},
    "a path to read": {"filesystem": {"allow-read": ["{}"]}},
    "a path to write": {"filesystem": {"allow-write": ["{}"]}},
    "a template of secrets": {"secret-files": [{"path": "/workspace/t", "template": "{}/f"}]},
    "the host's tree": {"view": "host"},
    "a weaker mode": {"mode": "light"},
    "a socket": {"unix-sockets": ["/run/dbus/system_bus_socket"]},
    "every socket": {"unix-sockets": {"all": True}},
    "the host's network": {"network": "host"},
    "a network": {"network": {"allow": ["example.org"]}},
    "questions": {"network": {"ask": True}},
    "another way out": {"network": {"parent-proxy": {"http": "http://127.0.0.1:1"}}},
    "another authority": {"network": {"extra-ca": ["{}/f"]}},
    "a secret": {"secrets": ["GITHUB_TOKEN"]},
    "the daemon's variables": {"env": {"HOME_OF_SECRETS": None}},
    "more memory": {"limits": {"memory": "1g"}},
    "no limit": {"limits": {"memory": 0}},
    "no end": {"limits": {"time": 0}},
    "walls that may be missing": {"fallback": "warn"},
    "another engine": {"engine": "oci"},
    "an OCI runtime": {"runtime": "crun"},
    "the Docker daemon's containers": {"engineType": "docker"},
    "a machine": {"engine": "microvm"},
    "another system": {"image": "python:3.12"},
}


def filled(value, place):
    if isinstance(value, str):
        return value.replace("{given}", str(place / "given")).replace("{}", str(place / "private"))
    if isinstance(value, list):
        return [filled(v, place) for v in value]
    if isinstance(value, dict):
        return {k: filled(v, place) for k, v in value.items()}
    return value


def test_the_owner_may_show_a_folder(daemon, place):
    """The attack, by somebody who may."""
    box = daemon.create(policy=filled(WIDER["a bind"], place))
    assert box.exec("cat /p/f /given/f")["stdout"] == "words of private\nwords of given\n"


def test_an_agent_takes_its_share_of_sandboxes_and_no_more(cloche):
    daemon = Daemon(cloche, "--max-sandboxes", "8")
    agent, other = caller(daemon, "agent"), caller(daemon, "agent")
    mine = [agent.create(name="one"), agent.create(name="two")]
    for path, body in (("/v1/sandboxes", {}), ("/v1/sandboxes", {"name": "three"})):
        answer = agent.post(path, body)
        assert answer.status == 429 and answer.json["code"] == "sandbox.too-many", answer
        assert "--max-sandboxes-per-agent" in answer.json["detail"], answer
    started = agent.post("/api/sandbox/start")
    assert not started.ok and "sandboxes of this agent" in started.json["error"], started
    assert other.create().exec("true")["exit_code"] == 0
    assert len([daemon.create() for _ in range(3)]) == 3        # the owner has no share of that kind
    # what has stopped does not count, and does not come back as one too many
    assert mine[0].delete().ok and agent.create(name="three").record["name"] == "three"
    again = agent.post(f"{mine[0].at}/recover")
    assert again.status == 429 and again.json["code"] == "sandbox.too-many", again
    assert daemon.post(f"{mine[0].at}/recover").ok
    assert daemon.stop() == 0, daemon.log


def test_all_agents_leave_room_for_the_owner(cloche):
    daemon = Daemon(cloche, "--max-sandboxes", "8", "--max-sandboxes-per-agent", "4")
    made = [token(daemon, "agent") for _ in range(2)]
    agents = [Caller(daemon, Authorization=f"Bearer {t['token']}") for t in made]
    assert len([a.create() for a in agents for _ in range(3)]) == 6
    agents[0].create()
    answer = agents[1].post("/v1/sandboxes", {})
    assert answer.status == 429 and answer.json["code"] == "sandbox.too-many" and "of all agents is 7" in answer.json["error"], answer
    # those of a token that is no more count too
    assert daemon("DELETE", f"/v1/tokens/{made[0]['id']}").ok
    assert agents[1].post("/v1/sandboxes", {}).status == 429
    assert caller(daemon, "operator").create().delete().ok and daemon.create().exec("true")["exit_code"] == 0
    assert daemon.stop() == 0, daemon.log


def test_an_agent_lives_no_longer_than_the_daemon_says(cloche):
    daemon = Daemon(cloche, "--max-lifetime", "1h", "--idle-timeout", "30m")
    agent = caller(daemon, "agent")
    for asked, given in (({}, (1800, 3600)), ({"idle_timeout": 86400, "max_lifetime": 864000}, (1800, 3600)),
                         ({"idle_timeout": 1801, "max_lifetime": 3599}, (1800, 3599)), ({"idle_timeout": 0, "max_lifetime": 10 ** 7}, (1800, 3600)),
                         ({"idle_timeout": 60, "max_lifetime": 120}, (60, 120))):
        box = agent.create(**asked)
        assert (box.record["idle_timeout"], box.record["max_lifetime"]) == given, (asked, box.record)
        assert box.delete().ok
    box = daemon.create(idle_timeout=86400, max_lifetime=864000)        # whoever sets the limits may
    assert (box.record["idle_timeout"], box.record["max_lifetime"]) == (86400, 864000), box.record
    assert daemon.stop() == 0, daemon.log


def test_an_agents_share_can_be_said_and_changed(cloche):
    config = cloche.home / "serve.yaml"
    config.write_text("max-sandboxes-per-agent: 1\n")
    daemon = Daemon(cloche, "--config", "serve.yaml")
    agent = caller(daemon, "agent")
    agent.create()
    assert agent.post("/v1/sandboxes", {}).status == 429
    config.write_text("max-sandboxes-per-agent: 2\n")
    assert "was read again" in daemon.reload()
    assert wait_for(lambda: agent.post("/v1/sandboxes", {}).status == 201)     # the warden hears of it by itself
    assert agent.post("/v1/sandboxes", {}).status == 429
    assert daemon.stop() == 0, daemon.log


@pytest.mark.parametrize("asked", WIDER, ids=lambda name: name.replace(" ", "-"))
def test_an_agent_gets_no_more_than_the_settings_give(daemon, agent, place, asked):
    answer = agent.post("/v1/sandboxes", {"name": "mine", "policy": filled(WIDER[asked], place)})
    assert answer.status in (400, 403), answer
    assert answer.json["code"].startswith(("policy.", "gate.")), answer
    assert agent.get("/v1/sandboxes").json["sandboxes"] == []
    assert daemon.get("/v1/sandboxes").json["sandboxes"] == []


def test_what_the_gate_lets_through_is_a_network_and_limits_only(cloche, place):
    rules = place / "gate.yaml"
    rules.write_text("gate:\n  rules:\n    - {name: all, tools: ['*'], risk: LOW, require_approval: false}\n")
    daemon = Daemon(cloche, gate=rules)
    agent = Caller(daemon, Authorization="Bearer " + token(daemon, "agent")["token"])
    judged = ("a network", "more memory", "no limit", "no end")
    for name in WIDER:
        answer = agent.post("/v1/sandboxes", {"policy": filled(WIDER[name], place)})
        assert (answer.status == 201) == (name in judged), (name, answer)
        if name not in judged:
            assert answer.json["code"].startswith("policy."), (name, answer)
    assert daemon.stop() == 0, daemon.log


def test_within_the_settings_it_may_choose(daemon, agent, place):
    box = agent.create(policy={"mode": "max", "limits": {"memory": "64m", "pids": 20}, "env": {"A": "1"},
                               "filesystem": {"deny-read": ["/etc/hostname"]}})
    assert box.exec("cat /given/f; echo $A")["stdout"] == "words of given\n1\n"
    assert box.exec(f"cat {place}/private/f")["exit_code"] != 0


@pytest.mark.root
def test_what_an_agent_denies_comes_on_top(cloche, place):
    """Less is never refused: its denials, and the same folders for reading only. What the settings deny stays denied, and is not told."""
    settings = place / "settings.yaml"
    settings.write_text(json.dumps({"binds": [f"{place}/given:/given:rw"], "filesystem": {"deny-read": [f"{place}/given/f"], "protect": ["mine"]},
                                    "network": {"allow": ["ok.example.org", "no.example.org"], "deny": ["no.example.org"]}}))
    (place / "given" / "g").write_text("words of g")
    daemon = Daemon(cloche, "--settings", str(settings))
    agent = caller(daemon, "agent")
    own = {"filesystem": {"deny-read": ["/etc/hostname"], "deny-write": ["/given/g"], "protect": ["theirs"]}, "network": {"deny": ["ok.example.org"]},
           "binds": [f"{place}/given:/given:ro"]}
    for less in ({}, own, {"binds": own["binds"]}):
        box = agent.create(policy=less)
        assert box.exec("cat /given/f")["exit_code"] != 0 and box.exec("cat /given/g")["stdout"] == "words of g", less
        assert (box.exec("touch /given/new")["exit_code"] == 0) == ("binds" not in less), less
        assert box.exec("mkdir -p /given/.git/hooks && touch /given/.git/hooks/post-checkout; touch /given/mine")["exit_code"] != 0
        effective = daemon.get(f"{box.at}/policy").json["effective"]
        denied = [e["value"] for e in effective["network"]["deny"]]
        assert denied == (["no.example.org", "ok.example.org"] if less is own else ["no.example.org"]), denied
        assert box.delete().ok
    for more in ({"filesystem": {"deny-read": []}}, {"network": {"deny": []}}, {"filesystem": {"allow-read": [f"{place}/given/f"]}}):
        answer = agent.post("/v1/sandboxes", {"policy": more})
        assert answer.status == 403 and answer.json["code"] == "policy.ceiling", answer
        assert "allow-read" in json.dumps(more) or str(place) not in answer.body.decode(), answer
    assert daemon.stop() == 0


@pytest.mark.root
def test_what_is_built_in_is_denied_whoever_says_what(cloche, place):
    """Each layer's own list of protected names is above the built-in one, not in its place."""
    settings = place / "settings.yaml"
    settings.write_text(json.dumps({"binds": [f"{place}/given:/given:rw"], "filesystem": {"protect": ["mine"]}}))
    daemon = Daemon(cloche, "--settings", str(settings))
    box = daemon.create(policy={"filesystem": {"protect": ["theirs"]}})
    assert box.exec("mkdir -p /given/.git/hooks && echo evil >/given/.git/hooks/post-checkout")["exit_code"] != 0
    assert not (place / "given" / ".git" / "hooks" / "post-checkout").exists()
    assert daemon.stop() == 0


def networked(cloche, place, network):
    settings = place / "settings.yaml"
    settings.write_text(json.dumps({"network": {"mode": "allowlist", **network}}))
    daemon = Daemon(cloche, "--settings", str(settings))
    return daemon, caller(daemon, "agent")


@pytest.mark.root
def test_less_of_the_network_is_never_refused(cloche, place):
    daemon, agent = networked(cloche, place, {"allow": ["ok.example.org", "*.some.example.org"], "deny": ["no.some.example.org"], "ask": True})
    for less in ("none", {"mode": "none"}, {"allow": ["ok.example.org:443"]}, {"allow": ["a.some.example.org"]}, {"allow": []}, {"ask": False},
                 {"allow": [{"host": "ok.example.org", "methods": ["GET"], "path": "/a/**"}]}):
        box = agent.create(policy={"network": less})
        closed = less in ("none", {"mode": "none"})
        assert box.exec("echo ${http_proxy:-none}")["stdout"].startswith("none" if closed else "http:"), less
        assert box.delete().ok
    for more in ({"allow": ["ok.example.org:22"]}, {"allow": ["**.some.example.org"]}, {"mode": "none", "allow": ["ok.example.org"]},
                 {"allow": ["a.b.some.example.org"]}):
        answer = agent.post("/v1/sandboxes", {"policy": {"network": more}})
        assert answer.status in (400, 403) and str(place) not in answer.body.decode(), answer
    # nor does a contradiction say where the operator keeps files
    answer = agent.post("/v1/sandboxes", {"policy": {"workspace": f"{place}/given:ro", "network": {"allow": ["ok.example.org", "10.0.0.1/8"]}}})
    assert answer.status in (400, 403) and "settings.yaml" not in answer.body.decode(), answer
    assert daemon.stop() == 0


@pytest.mark.root
def test_a_registry_is_its_hosts(cloche, place):
    daemon, agent = networked(cloche, place, {"registries": ["debian"]})
    mine = daemon.create()
    hosts = [entry["value"] for entry in daemon.get(f"{mine.at}/policy").json["effective"]["network"]["allow"]]
    assert hosts
    assert agent.post("/v1/sandboxes", {"policy": {"network": {"registries": [], "allow": hosts[:1]}}}).status == 201
    assert agent.post("/v1/sandboxes", {"policy": {"network": {"registries": [], "allow": ["other.example.org"]}}}).status == 403
    assert daemon.stop() == 0
    daemon, agent = networked(cloche, place, {"allow": hosts})
    assert agent.post("/v1/sandboxes", {"policy": {"network": {"registries": ["debian"], "allow": []}}}).status == 201
    assert daemon.stop() == 0
    daemon, agent = networked(cloche, place, {"allow": ["other.example.org"]})
    assert agent.post("/v1/sandboxes", {"policy": {"network": {"registries": ["debian"], "allow": []}}}).status == 403
    assert daemon.stop() == 0


def test_recovery_keeps_the_ceiling(daemon, agent, place):
    """A link that the daemon would follow is no way around what is compared: the folder's name."""
    (place / "link").symlink_to(place / "private")
    for name in (f"{place}/link", f"{place}/given/../private", f"{place}/given/./"):
        answer = agent.post("/v1/sandboxes", {"policy": {"binds": [f"{name}:/p"]}})
        assert answer.status == 403 and answer.json["code"] == "policy.ceiling", (name, answer)
    box = agent.create(name="again")
    assert box.delete().ok
    assert agent.post(f"{box.at}/recover").ok
    assert box.exec("cat /given/f")["stdout"] == "words of given\n"


@pytest.mark.root
def test_an_agent_that_asks_what_is_used_leaves_room_for_others(daemon):
    """However often, while the keeper of its own sandbox does not answer."""
    mine = caller(daemon, "agent")
    box = mine.create()
    daemon.create()
    held, = (k for k in daemon.processes("cloche-keeper") if box.id.encode() in Path(f"/proc/{k}/cmdline").read_bytes())
    os.kill(held, signal.SIGSTOP)
    stop, codes = threading.Event(), []

    def ask():
        while not stop.is_set():
            codes.append(mine.get("/v1/usage").status)
    asking = [threading.Thread(target=ask) for _ in range(72)]
    for thread in asking:
        thread.start()
    try:
        assert wait_for(lambda: 429 in codes, 30), set(codes)
        told = [daemon.get(path).status for path in ("/v1/usage", "/metrics") * 3]
    finally:
        stop.set()
        for thread in asking:
            thread.join()
        os.kill(held, signal.SIGCONT)
    assert set(told) == {200}, told
