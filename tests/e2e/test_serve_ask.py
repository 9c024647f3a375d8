"""network.ask of the daemon's sandboxes: connections wait in the same queue as everything else that somebody decides."""
import http.client
import threading

import pytest

from helpers import requirement
from helpers.daemon import Daemon, caller, restart, with_curl
from helpers.runner import wait_for

pytestmark = [requirement("R13", "R28", "R63"), pytest.mark.root]

PATIENT = {"mode": "allowlist", "ask": True, "ask-timeout": "10m"}
CURL = ["/usr/bin/curl", "-sS", "--max-time", "300", "-w", "%{http_code}"]


@pytest.fixture
def daemon(online):
    made = Daemon(online.cloche, *with_curl(online.bare), path=online.bare.state / "cloche" / "serve" / "api.sock")
    yield made
    assert made.stop() == 0, made.log


@pytest.fixture
def settled(online, tmp_path):
    """A daemon whose own settings ask, so that agents' sandboxes do."""
    settings = tmp_path / "settings.yaml"
    settings.write_text("network: {mode: allowlist, ask: true, ask-timeout: 10m}\nwith: [curl]\n")
    made = Daemon(online.cloche, "--settings", str(settings), path=online.bare.state / "cloche" / "serve" / "api.sock")
    yield made
    assert made.stop() == 0, made.log


class Fetching:
    """curl in a sandbox, on a thread of its own."""

    def __init__(self, box, url):
        self.box, self.url, self.result = box, url, None
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def run(self):
        try:
            answer = self.box.daemon.post(f"{self.box.at}/exec", {"command": [*CURL, self.url], "timeout_ms": 300000})
        except (OSError, http.client.HTTPException):    # the front has ended
            return
        self.result = answer.json

    def wait(self):
        self.thread.join(300)
        assert self.result is not None, "no answer"
        return self.result["stdout"]


def pending(who, n=1):
    found = wait_for(lambda: (a := who.get("/v1/approvals?state=pending").json["approvals"]) and len(a) == n and a, 60)
    assert found, who.get("/v1/approvals").json
    return found


def decide(who, one, what="approve", **members):
    answer = who.post(f"/v1/approvals/{one['id']}/{what}", members or None)
    assert answer.status == 200, answer
    return answer.json


def events(daemon, kind):
    return [e["detail"] for e in daemon.get("/v1/events?limit=1000").json["events"] if e["type"] == kind]


def test_a_connection_waits_in_the_queue(online, daemon):
    box, approver = daemon.create(policy={"network": PATIENT}), caller(daemon, "approver")
    fetching = Fetching(box, "http://ok.example.org/page")
    one = pending(approver)[0]
    assert (one["tool"], one["risk"], one["rule"], one["sandbox"]) == ("network", "HIGH", "ok.example.org:80", box.id), one
    assert one["params"] == {"host": "ok.example.org", "port": 80, "method": "GET", "path": "/page"} and one["caller"] == "owner" and one["remaining_ms"] > 0, one
    assert not online.net.reached() and not online.net.asked(), "nothing is done before the answer"
    # one queue: what the keeper's own socket says has it no second time
    listed = online.bare("approvals", "--json").json
    assert listed["questions"] == [] and [a["id"] for a in listed["approvals"]] == [one["id"]], listed
    assert decide(approver, one, reason="fine")["state"] == "approved"
    assert "hello ok.example.org /page" in fetching.wait()
    kept = daemon.get(f"/v1/approvals/{one['id']}").json
    assert kept["used"] and kept["decided_by"].startswith("approver:") and kept["reason"] == "fine", kept
    # once was once
    fetching = Fetching(box, "http://ok.example.org/again")
    assert online.bare("approvals", "deny", pending(daemon)[0]["id"][:8]).ok
    assert "hello" not in fetching.wait() and "403" in fetching.wait()
    assert [r["path"] for r in online.net.requests] == ["/page"]
    # and is not asked about again for a while
    fetching = Fetching(box, "http://ok.example.org/again")
    assert "403" in fetching.wait()
    assert daemon.get("/v1/approvals?state=pending").json["approvals"] == []
    for kind in ("gate_asked", "gate_approved", "gate_denied"):
        assert any("network" in e for e in events(daemon, kind)), kind


def test_for_the_sandbox_is_for_as_long_as_it_lives(online, daemon):
    box, other = [daemon.create(policy={"network": PATIENT}) for _ in range(2)]
    fetching = Fetching(box, "http://ok.example.org/1")
    one = pending(daemon)[0]
    refused = daemon.post(f"/v1/approvals/{one['id']}/approve", {"scope": "sandbox", "expires": 60})
    assert refused.status == 400 and refused.json["code"] == "gate.scope", refused
    decide(daemon, one, scope="sandbox")
    assert "hello" in fetching.wait() and "hello ok.example.org /2" in Fetching(box, "http://ok.example.org/2").wait()
    assert daemon.get("/v1/grants").json["grants"] == []
    theirs = Fetching(other, "http://ok.example.org/3")
    decide(daemon, pending(daemon)[0], "deny")
    assert "403" in theirs.wait()
    assert sorted(r["path"] for r in online.net.requests) == ["/1", "/2"]


def test_for_the_caller_is_a_grant_that_ends(daemon):
    box, other = [daemon.create(policy={"network": PATIENT}) for _ in range(2)]
    fetching = Fetching(box, "http://ok.example.org/1")
    one = pending(daemon)[0]
    assert daemon.post(f"/v1/approvals/{one['id']}/approve", {"scope": "caller"}).status == 400
    decide(daemon, one, scope="caller", expires=3600)
    assert "hello" in fetching.wait() and "hello ok.example.org /2" in Fetching(other, "http://ok.example.org/2").wait()
    grant = daemon.get("/v1/grants").json["grants"][0]
    assert (grant["tool"], grant["rule"], grant["sandbox"]) == ("network", "ok.example.org:80", None), grant
    assert daemon("DELETE", f"/v1/grants/{grant['id']}").ok
    fetching = Fetching(other, "http://ok.example.org/3")
    decide(daemon, pending(daemon)[0], "deny")
    assert "403" in fetching.wait()


def test_what_the_rules_of_a_host_left_out_is_approved_once_only(daemon):
    narrow = daemon.create(policy={"network": {**PATIENT, "allow": [{"host": "ok.example.org", "path": "/read/**"}]}})
    wide = daemon.create(policy={"network": PATIENT})
    assert "hello" in Fetching(narrow, "http://ok.example.org/read/x").wait()
    # a grant for the host is none for what another sandbox's rules left out
    fetching = Fetching(wide, "http://ok.example.org/1")
    decide(daemon, pending(daemon)[0], scope="caller", expires=3600)
    assert "hello" in fetching.wait()
    fetching = Fetching(narrow, "http://ok.example.org/write")
    one = pending(daemon)[0]
    assert one["rule"] is None and "other requests" in one["description"], one
    for scope in ({"scope": "sandbox"}, {"scope": "caller", "expires": 3600}):
        refused = daemon.post(f"/v1/approvals/{one['id']}/approve", scope)
        assert refused.status == 400 and refused.json["code"] == "gate.scope" and "once" in refused.json["detail"], refused
    decide(daemon, one)
    assert "hello" in fetching.wait()


def test_what_waits_is_asked_anew_when_rules_come_that_leave_it_out(daemon):
    scoped = [{"host": "a.example.org", "path": "/x"}]
    box = daemon.create(policy={"network": {**PATIENT, "allow": scoped}})
    fetching = [Fetching(box, "http://ok.example.org/x") for _ in range(3)]
    first = pending(daemon)[0]
    assert first["rule"] == "ok.example.org:80"
    # other rules, which are about something else: the question stays
    assert daemon("PATCH", f"{box.at}/policy", {"network": {"allow": [*scoped, {"host": "b.example.org"}]}}).ok
    assert pending(daemon)[0]["id"] == first["id"]
    assert daemon("PATCH", f"{box.at}/policy", {"network": {"allow": [*scoped, {"host": "ok.example.org", "path": "/read/**"}]}}).ok
    assert wait_for(lambda: daemon.get(f"/v1/approvals/{first['id']}").json["state"] == "denied")
    one = pending(daemon)[0]
    assert one["rule"] is None, one
    assert daemon.post(f"/v1/approvals/{one['id']}/approve", {"scope": "sandbox"}).json["code"] == "gate.scope"
    decide(daemon, one)
    # one that came later than the answer asks again
    for fetched in fetching:
        while fetched.thread.is_alive():
            for late in daemon.get("/v1/approvals?state=pending").json["approvals"]:
                daemon.post(f"/v1/approvals/{late['id']}/approve")
            fetched.thread.join(0.2)
        assert "hello" in fetched.wait()


def test_nobody_in_time_and_an_end_meanwhile(daemon):
    quick = daemon.create(policy={"network": {**PATIENT, "ask-timeout": "1s"}})
    assert "403" in Fetching(quick, "http://ok.example.org/").wait()
    late = wait_for(lambda: (a := daemon.get("/v1/approvals?state=timeout").json["approvals"]) and a[0], 60)
    assert late and late["decided_by"] is None and daemon.post(f"/v1/approvals/{late['id']}/approve").status == 409
    box = daemon.create(policy={"network": PATIENT})
    fetching = Fetching(box, "http://ok.example.org/")
    one = pending(daemon)[0]
    assert box.delete().ok
    fetching.thread.join(300)
    gone = daemon.get(f"/v1/approvals/{one['id']}").json
    assert gone["state"] == "denied" and gone["decided_by"] is None, gone


def test_a_new_warden_is_told_what_waits(online, daemon):
    box = daemon.create(policy={"network": PATIENT})
    fetching = Fetching(box, "http://ok.example.org/page")
    one = pending(daemon)[0]
    restart(daemon)

    def anew():
        found = daemon.get("/v1/approvals?state=pending").json["approvals"]
        return found if found and found[0]["id"] != one["id"] else None
    again = wait_for(anew, 60)
    assert again and again[0]["params"]["host"] == "ok.example.org", again
    assert daemon.get(f"/v1/approvals/{one['id']}").json["state"] == "denied"
    # whose command it was is gone with the front, and with it the connection: so it is nobody's any more, or is decided
    decided = daemon.post(f"/v1/approvals/{again[0]['id']}/deny")
    assert decided.status in (200, 409), decided
    fetching.thread.join(300)
    assert not online.net.reached()


def test_agents_see_their_own_and_decide_nothing(settled):
    agent, other, approver = caller(settled, "agent"), caller(settled, "agent"), caller(settled, "approver")
    made = agent.post("/v1/sandboxes", {})
    assert made.status == 201, made
    at, key = f"/v1/sandboxes/{made.json['id']}", made.json["key"]
    body = {"command": [*CURL, "http://ok.example.org/page"], "timeout_ms": 300000}
    got = []
    thread = threading.Thread(target=lambda: got.append(agent.post(f"{at}/exec", body)), daemon=True)
    thread.start()
    one = pending(approver)[0]
    assert one["caller"].startswith("agent:") and one["sandbox"] == made.json["id"], one
    for who in (agent, other):
        answer = who.post(f"/v1/approvals/{one['id']}/approve")
        assert answer.status == 403 and answer.json["code"] == "auth.role", answer
    held = settled("POST", f"/v1/approvals/{one['id']}/approve", {}, {"X-Sandbox-Key": key})
    assert held.status == 403, held
    assert agent.get(f"/v1/approvals/{one['id']}").json["state"] == "pending"
    assert other.get(f"/v1/approvals/{one['id']}").status == 404
    decide(approver, one)
    thread.join(300)
    assert got and "hello ok.example.org /page" in got[0].json["stdout"], got


def test_one_sandbox_fills_not_the_queue(daemon):
    box = daemon.create(policy={"network": PATIENT})
    script = "for i in $(seq 20); do curl -s --max-time 300 http://h$i.example.org/ -o /dev/null -w '%{http_code} ' & done; wait"
    result = []
    thread = threading.Thread(target=lambda: result.append(box.exec(script, timeout_ms=300000)), daemon=True)
    thread.start()
    waiting = pending(daemon, 8)
    for one in waiting:
        decide(daemon, one, "deny")

    def over():
        for one in daemon.get("/v1/approvals?state=pending").json["approvals"]:
            daemon.post(f"/v1/approvals/{one['id']}/deny")
        return not thread.is_alive()
    assert wait_for(over, 240)
    assert result[0]["stdout"].split() == ["403"] * 20, result


def test_connections_take_no_room_from_operations(online, tmp_path):
    """What the code in an agent's sandboxes asks for does not keep the agent from asking."""
    settings, gate = tmp_path / "settings.yaml", tmp_path / "gate.yaml"
    settings.write_text("network: {mode: allowlist, ask: true, ask-timeout: 10m}\nwith: [curl]\n")
    gate.write_text("gate:\n  rules:\n    - name: fetch\n      tools: [code_execute]\n      risk: LOW\n"
                    "      conditions: [{param: code, contains: curl}]\n")
    daemon = Daemon(online.cloche, "--settings", str(settings), path=online.bare.state / "cloche" / "serve" / "api.sock", gate=gate)
    agent, boxes, threads = caller(daemon, "agent"), [], []
    script = "for i in $(seq 8); do curl -s --max-time 300 http://h$i.example.org/ -o /dev/null & done; wait"

    def fetch(box):
        try:
            agent.post(f"{box.at}/exec", {"command": script, "timeout_ms": 300000})
        except (OSError, http.client.HTTPException):    # the front has ended
            pass
    for _ in range(3):
        boxes.append(agent.create())
        threads.append(threading.Thread(target=fetch, args=(boxes[-1],), daemon=True))
    for thread in threads[:2]:
        thread.start()
    assert {a["tool"] for a in pending(daemon, 16)} == {"network"}
    # a third sandbox of the same caller is denied what it asks: no more of its connections wait
    threads[2].start()
    threads[2].join(300)
    assert not threads[2].is_alive() and len(pending(daemon, 16)) == 16
    told = [agent("POST", f"{boxes[0].at}/exec", {"command": f"echo {i}"}, {"Prefer": "respond-async"}) for i in range(17)]
    assert [t.status for t in told] == [202] * 16 + [429] and "16 operations" in told[-1].json["error"], told
    for box in boxes:
        assert box.delete().ok
    for thread in threads:
        thread.join(300)
    assert daemon.stop() == 0, daemon.log
