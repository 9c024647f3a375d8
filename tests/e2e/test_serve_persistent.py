"""Persistent sandboxes: they are there again with the next daemon, under the same id, with the files of their volume."""
import pytest

from helpers import requirement
from helpers.daemon import Caller, Daemon, Sandbox, restart, token
from helpers.runner import wait_for
from helpers.shared import own, shared

pytestmark = [requirement("R17"), shared]


def begin(daemon):
    box = daemon.create(name="p", labels={"a": "b"}, persistent=True, volume={"name": "v", "retention": 0}, policy={"env": {"A": "b"}})
    plain = daemon.create(name="q")
    assert box.record["persistent"] is True and plain.record["persistent"] is False
    done = box.exec("echo kept > f; echo gone > ~/g; sleep 1000 > /dev/null 2>&1 &")
    assert done["exit_code"] == 0, done
    return box, plain


def is_there_again(daemon, box, plain):
    assert box.wait_for("ready"), box.show()
    now = box.show()
    assert {k: now[k] for k in ("id", "name", "labels", "policy", "volume", "persistent")} == {k: box.record[k] for k in (
        "id", "name", "labels", "policy", "volume", "persistent")}, now
    done = box.exec("echo $A; cat f; ls -A ~; pgrep -c sleep")
    assert done["stdout"] == "b\nkept\n0\n", (done, "processes, and files outside of the volume, end with the daemon")
    assert plain.show()["state"] == "stopped"
    assert [one["id"] for one in daemon.get("/v1/sandboxes").json["sandboxes"]] == [box.id]


@own
def test_it_comes_back(daemon):
    box, plain = begin(daemon)
    for _ in range(2):
        assert daemon.stop() == 0, daemon.log
        daemon.start()
        is_there_again(daemon, box, plain)
    key = daemon.post(f"{box.at}/key").json["key"]
    assert daemon.stop() == 0, daemon.log
    daemon.start()
    assert box.wait_for("ready")
    assert daemon("GET", box.at, None, {"X-Sandbox-Key": key}).status == 200, "its key stays"


@own
def test_it_comes_back_when_all_was_killed(daemon):
    box, plain = begin(daemon)
    daemon.kill()
    daemon.start()
    is_there_again(daemon, box, plain)


@own
def test_what_was_ended_stays_ended(daemon):
    box, _ = begin(daemon)
    assert box.delete().ok
    assert daemon.stop() == 0, daemon.log
    daemon.start()
    assert box.show()["state"] == "stopped" and daemon.get("/v1/sandboxes").json["sandboxes"] == []


@own
def test_one_that_cannot_be_made_says_why(daemon, cloche):
    box, _ = begin(daemon)
    assert daemon.stop() == 0, daemon.log
    folder = cloche.state / "cloche" / "serve" / "volumes" / box.record["volume"]
    folder.rename(folder.with_name(".aside"))
    folder.write_text("no folder", encoding="utf-8")
    daemon.start()
    assert box.wait_for("stopped") and "not a folder" in box.show()["detail"], box.show()
    folder.unlink()
    folder.with_name(".aside").rename(folder)
    assert daemon.post(f"{box.at}/recover").status == 200 and box.exec("cat f")["stdout"] == "kept\n"


@own
def test_another_warden_changes_nothing(daemon):
    box, _ = begin(daemon)
    restart(daemon)
    assert wait_for(lambda: box.show()["state"] == "ready", 60)
    assert box.exec("pgrep -c sleep")["stdout"] == "1\n", "its processes go on"


@pytest.mark.parametrize("members", [{"persistent": True}, {"persistent": 1, "volume": {"name": "v"}}, {"persistent": True, "workspace_key": "k"}])
def test_what_is_refused(daemon, members):
    answer = daemon.post("/v1/sandboxes", members)
    assert answer.status == 400 and answer.json["code"] == "sandbox.request", answer
    assert Sandbox(daemon, daemon.post("/v1/sandboxes", {"persistent": False}).json).record["persistent"] is False


def agent_of(daemon, **members):
    made = token(daemon, "agent", **members)
    return made, Caller(daemon, Authorization=f"Bearer {made['token']}")


def comes_back(daemon, *boxes):
    """The states of those after another start, when nothing is being made any more."""
    assert daemon.stop() == 0, daemon.log
    daemon.start()
    assert wait_for(lambda: all(daemon.state(box.id) in ("ready", "stopped") for box in boxes))
    return [daemon.state(box.id) for box in boxes]


@own
@requirement("R23")
def test_that_of_an_agent_whose_token_is_over_stays_ended(daemon):
    """Revoked while the daemon ran, over by its time, and one that is still good."""
    (revoked, a), (_, b), (_, c) = agent_of(daemon), agent_of(daemon, expires=30), agent_of(daemon)
    boxes = [who.create(name="p", persistent=True, volume={"name": "v"}) for who in (a, b, c)]
    assert daemon("DELETE", f"/v1/tokens/{revoked['id']}").ok and daemon.state(boxes[0].id) == "ready"     # operators' from then on
    assert wait_for(lambda: b.get("/v1/sandboxes").status == 401)
    assert comes_back(daemon, *boxes) == ["stopped", "stopped", "ready"]
    assert "token" in daemon.get(boxes[0].at).json["detail"]
    assert daemon.post(f"{boxes[0].at}/recover").ok, "whoever may, and wants to, can have it"


@requirement("R23")
def test_those_of_agents_have_the_limits_of_today(cloche):
    daemon = Daemon(cloche, gate=None)
    _, agent = agent_of(daemon)
    mine = daemon.create(name="mine", persistent=True, volume={"name": "v"}, max_lifetime=7200, idle_timeout=7200)
    its = agent.create(name="its", persistent=True, volume={"name": "v"}, max_lifetime=7200, idle_timeout=7200)
    free = agent.create(name="free", persistent=True, volume={"name": "w"})
    daemon.flags = (*daemon.flags, "--max-lifetime", "3600", "--idle-timeout", "1800")
    assert comes_back(daemon, mine, its, free) == ["ready"] * 3
    limits = [[daemon.get(box.at).json[k] for k in ("max_lifetime", "idle_timeout")] for box in (mine, its, free)]
    assert limits == [[7200, 7200], [3600, 1800], [3600, 1800]]
    assert daemon.stop() == 0, daemon.log


@requirement("R20")
def test_those_of_agents_get_no_more_than_the_settings_of_today(cloche, tmp_path):
    settings = tmp_path / "settings.yaml"
    settings.write_text("network: {allow: [example.org]}\nlimits: {memory: 256m}\n")
    daemon = Daemon(cloche, "--settings", str(settings))
    _, agent = agent_of(daemon)
    wide = agent.create(name="wide", persistent=True, volume={"name": "v"}, policy={"network": {"allow": ["example.org"]}})
    large = agent.create(name="large", persistent=True, volume={"name": "w"}, policy={"limits": {"memory": "200m"}})
    plain = agent.create(name="plain", persistent=True, volume={"name": "x"})
    settings.write_text("limits: {memory: 128m}\n")
    assert comes_back(daemon, wide, large, plain) == ["stopped", "stopped", "ready"]
    assert daemon.get(wide.at).json["detail"] != "" and agent("GET", plain.at).json["facts"] is not None
    assert daemon.stop() == 0, daemon.log


@requirement("R23")
def test_no_more_of_an_agent_come_back_than_it_may_have(cloche):
    daemon = Daemon(cloche)
    _, agent = agent_of(daemon)
    boxes = [agent.create(name=f"p{i}", persistent=True, volume={"name": f"v{i}"}) for i in range(4)]
    daemon.flags = (*daemon.flags, "--max-sandboxes-per-agent", "2")
    assert sorted(comes_back(daemon, *boxes)) == ["ready", "ready", "stopped", "stopped"]
    assert daemon.stop() == 0, daemon.log
