"""cloche serve: what a sandbox is held to, and changes of it while it lives."""
import json
import os
import signal
import threading

import pytest

from helpers import requirement
from helpers.daemon import Daemon, Sandbox, caller, with_curl
from helpers.runner import wait_for
from helpers.shared import own, shared

pytestmark = [requirement("R47", "R61"), shared]


def patch(box, body, **headers):
    return box.daemon("PATCH", f"{box.at}/policy", body, {name.replace("_", "-"): v for name, v in headers.items()})


def show(box):
    answer = box.daemon.get(f"{box.at}/policy")
    assert answer.status == 200 and answer.headers["ETag"] == f'"{answer.json["revision"]}"', answer
    return answer.json


def test_what_it_is_held_to(daemon):
    box = daemon.create(policy={"limits": {"memory": "100m", "time": "7s"}, "env": {"A": "the value"}})
    shown = show(box)
    assert shown["policy"] == {"limits": {"memory": "100m", "time": "7s"}, "env": {"A": "the value"}}
    memory, disk = shown["effective"]["limits"]["memory"], shown["effective"]["limits"]["disk"]
    assert memory["value"] == 100 << 20 and memory["from"]["kind"] == "file" and memory["from"]["name"] == "policy", memory
    assert disk["value"] == 1 << 30 and disk["from"]["kind"] == "mode", disk
    assert shown["effective"]["credentials"] and "the value" not in json.dumps(shown["effective"])
    assert show(daemon.create())["policy"] == {}
    assert daemon.get("/v1/sandboxes/none/policy").status == 404
    assert box.delete().ok
    assert show(box)["effective"] is None


def test_limits_of_commands_change(daemon):
    box = daemon.create(policy={"limits": {"memory": "100m"}})
    before = show(box)
    changed = patch(box, {"limits": {"output": "5", "time": "1s"}})
    assert changed.status == 200 and changed.json["policy"] == {"limits": {"memory": "100m", "output": "5", "time": "1s"}}, changed
    assert changed.headers["ETag"] != f'"{before["revision"]}"'
    assert show(box)["effective"]["limits"]["output"]["value"] == 5
    assert box.exec("echo 123456789")["stdout"] == "12345"
    assert box.exec("sleep 600")["timed_out"] is True
    # null takes a member away (RFC 7396)
    assert patch(box, {"limits": {"output": None, "time": None}}).json["policy"] == {"limits": {"memory": "100m"}}
    assert box.exec("echo 123456789")["stdout"] == "123456789\n"
    assert show(box)["revision"] == before["revision"]      # the same policy again
    assert any("policy was changed" in e["detail"] for e in daemon.get(f"/v1/events?sandbox={box.id}").json["events"])


@pytest.mark.parametrize("body, key", [
    ({"limits": {"disk": "200m"}}, "limits.disk"), ({"mode": "max"}, "mode"), ({"env": {"A": "2"}}, "env"),
    ({"env": {"B": "2"}}, "env"), ({"binds": ["/opt:/mnt/opt"]}, "binds"), ({"network": {"allow": ["example.org"]}}, "network.mode"),
    ({"network": "host"}, "network.mode"), ({"filesystem": {"allow-write": ["/opt"]}}, "filesystem.allow-write"),
])
def test_what_the_walls_are_made_of_does_not(daemon, body, key):
    box = daemon.create(policy={"env": {"A": "1"}, "limits": {"memory": "100m"}})
    refused = patch(box, body)
    assert refused.status == 409 and refused.json["code"] == "policy.fixed", refused
    assert refused.json["error"].startswith(key + " cannot change") and "recover" in refused.json["detail"], refused
    assert show(box)["policy"] == {"env": {"A": "1"}, "limits": {"memory": "100m"}}
    # the way that it names
    assert box.delete().ok
    changed = patch(box, body)
    assert changed.status == 200, changed
    if key != "filesystem.allow-write":
        recovered = daemon.post(f"{box.at}/recover")
        assert recovered.status == 200, recovered
        assert show(box)["policy"] == changed.json["policy"]


@pytest.mark.parametrize("body, status, code", [
    ([], 400, "policy.patch"), ("x", 400, "http.json"), (b"{", 400, "http.json"), (b"", 400, "policy.patch"),
    ({"surprise": 1}, 400, "policy.unknown-key"), ({"limits": {"time": "never"}}, 400, None), ({"mode": "off"}, 400, "serve.mode-off"),
])
def test_what_is_no_policy(daemon, body, status, code):
    box = daemon.create()
    answer = patch(box, body)
    assert answer.status == status and answer.json["code"] == (code or answer.json["code"]), answer
    assert show(box)["policy"] == {} and box.exec("echo on")["stdout"] == "on\n"


def test_revisions(daemon):
    box = daemon.create()
    tag = daemon.get(f"{box.at}/policy").headers["ETag"]
    first = patch(box, {"limits": {"output": "5"}}, If_Match=tag)
    assert first.status == 200
    stale = patch(box, {"limits": {"output": "6"}}, If_Match=tag)
    assert stale.status == 412 and stale.json["code"] == "policy.stale", stale
    assert patch(box, {"limits": {"output": "6"}}, If_Match="W/" + first.headers["ETag"]).status == 412
    assert patch(box, {"limits": {"output": "6"}}, If_Match=f'"x", {first.headers["ETag"]}').status == 200
    assert patch(box, {"limits": {"output": "7"}}, If_Match="*").status == 200
    assert show(box)["policy"] == {"limits": {"output": "7"}}
    refused = patch(box, {"limits": {"output": "8"}}, Content_Type="text/plain")
    assert refused.status == 415 and refused.headers["Accept-Patch"] == "application/merge-patch+json", refused
    assert patch(box, {"limits": {"output": "8"}}, Content_Type="application/merge-patch+json").status == 200


@requirement("R23")
def test_who_may(daemon):
    agent, other, auditor = caller(daemon, "agent"), caller(daemon, "agent"), caller(daemon, "auditor")
    made = agent.post("/v1/sandboxes", {"policy": {"limits": {"output": "5"}}}).json
    box = Sandbox(agent, made)
    assert show(box)["policy"] == {"limits": {"output": "5"}}
    assert auditor.get(f"{box.at}/policy").ok and other.get(f"{box.at}/policy").status == 404
    for who in agent, other, auditor, caller(daemon, "approver"):
        assert who("PATCH", f"{box.at}/policy", {"limits": {"output": None}}).status in (403, 404)
    assert caller(daemon, "operator")("PATCH", f"{box.at}/policy", {"limits": {"output": None}}).status == 200
    assert show(box)["policy"] == {"limits": {}}


def test_of_changes_at_once_none_is_lost(daemon):
    box = daemon.create()
    bodies = [{"limits": {"output": "5"}}, {"limits": {"time": "50s"}}, {"limits": {"grace": "6s"}}]
    def send(body):
        while True:
            answer = patch(box, body)
            if answer.status == 200:
                return
            assert answer.status in (412, 429), answer      # another one was under way
    threads = [threading.Thread(target=send, args=(body,)) for body in bodies]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(90)
    assert show(box)["policy"] == {"limits": {"output": "5", "time": "50s", "grace": "6s"}}


@own
def test_a_change_outlives_the_warden(daemon):
    box = daemon.create()
    assert patch(box, {"limits": {"output": "5"}}).status == 200
    pid = daemon.processes("cloche-warden")[0]
    os.kill(pid, signal.SIGKILL)
    def again():
        try:
            return pid not in daemon.processes("cloche-warden") and show(box)["policy"] == {"limits": {"output": "5"}}
        except (OSError, ValueError, AssertionError):
            return False
        except Exception as e:      # http.client has many names for a connection that ended
            assert type(e).__module__ == "http.client", e
            return False
    assert wait_for(again, 60)
    assert box.exec("echo 123456789")["stdout"] == "12345"


@pytest.mark.root
@requirement("R13")
class TestNetwork:
    @pytest.fixture
    def daemon(self, online):
        made = Daemon(online.cloche, *with_curl(online.bare), path=online.bare.state / "cloche" / "serve" / "api.sock")
        yield made
        assert made.stop() == 0, made.log

    def test_rules_change(self, daemon):
        box = daemon.create(policy={"network": {"allow": ["ok.example.org"]}})
        def reaches(host):
            result = box.exec(["/usr/bin/curl", "-sS", "--max-time", "40", f"http://{host}/"], timeout_ms=60000)
            return "hello" in result["stdout"]
        assert reaches("ok.example.org") and not reaches("other.example.org")
        changed = patch(box, {"network": {"allow": ["other.example.org"]}})
        assert changed.status == 200, changed
        assert not reaches("ok.example.org") and reaches("other.example.org")
        assert [e["value"] for e in show(box)["effective"]["network"]["allow"]] == ["other.example.org"]
        # a cloche-egress that is started anew has them too
        pid = daemon.running("cloche-egress")[0]
        os.kill(pid, signal.SIGKILL)
        assert wait_for(lambda: daemon.processes("cloche-egress") not in ([], [pid]), 60)
        assert reaches("other.example.org") and not reaches("ok.example.org")
        assert patch(box, {"network": {"mode": "allowlist", "allow": None, "deny": ["other.example.org"]}}).status == 200
        assert not reaches("other.example.org")
        for allow, why in (["ok.example.org:22"], "port 22"), ([{"host": "ok.example.org", "methods": ["GET"]}], "TLS"):
            refused = patch(box, {"network": {"allow": allow}})
            assert refused.status == 409 and why in refused.json["error"], refused
        assert not reaches("ok.example.org")
