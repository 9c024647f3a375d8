"""Persistent sandboxes: they are there again with the next daemon, under the same id, with the files of their volume."""
import pytest

from helpers import requirement
from helpers.daemon import Sandbox, restart
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
