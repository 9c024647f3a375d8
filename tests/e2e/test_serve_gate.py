"""cloche serve: operations of agents that somebody has to approve."""
import json

import pytest

from helpers import requirement
from helpers.approvals import ASYNC, Asking, one_pending, pending
from helpers.daemon import Caller, Daemon, caller, restart
from helpers.routes import documented, request_of
from helpers.runner import wait_for

pytestmark = [requirement("R63"), requirement("R68")]

@pytest.fixture
def daemon(cloche):
    d = Daemon(cloche, gate=None)
    yield d
    d.stop()


def exec_later(who, box, command, **members):
    return Asking(who, "POST", f"{box.at}/exec", {"command": command, **members})


def events(daemon, kind):
    return [e["detail"] for e in daemon.get("/v1/events?limit=1000").json["events"] if e["type"] == kind]


def test_an_agents_command_waits_until_somebody_else_approves_it(daemon):
    agent, approver = caller(daemon, "agent", name="builder"), caller(daemon, "approver")
    box = agent.create()
    asking = exec_later(agent, box, "echo ran > f; cat f")
    asked = one_pending(approver)
    assert (asked["tool"], asked["risk"], asked["rule"], asked["state"]) == ("code_execute", "HIGH", "code", "pending"), asked
    assert asked["params"] == {"language": "shell", "code": "echo ran > f; cat f", "stdin": False}, asked
    assert asked["sandbox"] == box.id and "builder" in asked["caller_name"] and len(asked["digest"]) == 64, asked
    assert 0 < asked["remaining_ms"] <= 60000 and asked["decided_by"] is None, asked
    done = approver.post(f"/v1/approvals/{asked['id']}/approve", {"reason": "looks fine"})
    assert done.status == 200 and done.json["state"] == "approved" and done.json["reason"] == "looks fine", done
    result = asking.wait()
    assert result.status == 200 and result.json["stdout"] == "ran\n", result
    kept = approver.get(f"/v1/approvals/{asked['id']}").json
    assert kept["state"] == "approved" and kept["used"] and kept["decided_by"].startswith("approver:"), kept
    assert approver.post(f"/v1/approvals/{asked['id']}/approve").status == 409
    for kind in ("gate_asked", "gate_approved"):
        assert any(asked["id"] in e and asked["digest"] in e for e in events(daemon, kind)), kind


def test_a_denial_is_told_with_its_reason_and_stands_for_a_while(daemon):
    agent = caller(daemon, "agent")
    box = agent.create()
    asking = exec_later(agent, box, "touch no")
    asked = one_pending(daemon)
    assert daemon.post(f"/v1/approvals/{asked['id']}/deny", {"reason": "not today"}).json["state"] == "denied"
    for answer in (asking.wait(), agent.post(f"{box.at}/exec", {"command": "touch no"})):
        assert answer.status == 403 and answer.json["code"] == "gate.denied" and "not today" in answer.json["error"], answer
    restart(daemon)
    for answer in (agent.post(f"{box.at}/exec", {"command": "touch no"}),
                   Caller(daemon, X_Sandbox_Key=box.record["key"]).post(f"{box.at}/exec", {"command": "touch no"})):
        assert answer.status == 403 and answer.json["code"] == "gate.denied" and "not today" in answer.json["error"], answer
    assert daemon.get(f"{box.at}/files/no").status == 404
    assert daemon.get("/v1/approvals?state=denied").json["approvals"][0]["decided_by"] == "owner"


def test_nobody_in_time_is_a_denial(cloche, tmp_path):
    rules = tmp_path / "gate.yaml"
    rules.write_text("gate:\n  rules:\n    - {name: quick, tools: [code_execute], risk: HIGH, timeout: 1}\n")
    daemon = Daemon(cloche, gate=rules)
    agent = caller(daemon, "agent")
    box = agent.create()
    answer = agent.post(f"{box.at}/exec", {"command": "touch no"})
    assert answer.status == 403 and answer.json["code"] == "gate.timeout", answer
    late = daemon.get("/v1/approvals").json["approvals"][0]
    assert late["state"] == "timeout" and late["decided_by"] is None and late["rule"] == "quick", late
    assert daemon.post(f"/v1/approvals/{late['id']}/approve").status == 409
    assert daemon.get(f"{box.at}/files/no").status == 404
    daemon.stop()


def test_who_does_not_want_to_wait_asks_again_and_is_served_once(daemon):
    agent = caller(daemon, "agent")
    box = agent.create()
    body = {"command": "echo x >> f; cat f"}
    told = agent("POST", f"{box.at}/exec", body, ASYNC)
    assert told.status == 202 and told.headers["Location"] == told.json["url"] and told.json["risk"] == "HIGH", told
    again = agent("POST", f"{box.at}/exec", body, ASYNC)
    assert again.status == 202 and again.json["approval"] == told.json["approval"], again
    assert agent.get(told.json["url"]).json["state"] == "pending"
    assert daemon.post(told.json["url"] + "/approve").ok
    ran = agent("POST", f"{box.at}/exec", body, ASYNC)
    assert ran.status == 200 and ran.json["stdout"] == "x\n", ran
    assert agent.get(told.json["url"]).json["used"] is True
    another = agent("POST", f"{box.at}/exec", body, ASYNC)
    assert another.status == 202 and another.json["approval"] != told.json["approval"], another


def test_a_decision_that_names_a_digest_is_about_that_alone(daemon):
    agent = caller(daemon, "agent")
    box = agent.create()
    told = agent("POST", f"{box.at}/exec", {"command": "echo x"}, ASYNC)
    at, digest = told.json["url"], daemon.get(told.json["url"]).json["digest"]
    for what in ("approve", "deny"):
        other = daemon.post(f"{at}/{what}", {"digest": "0" * 64})
        assert (other.status, other.json["code"]) == (409, "gate.digest"), other
        for odd in ("", "0" * 63, "A" * 64, 1):
            assert daemon.post(f"{at}/{what}", {"digest": odd}).status == 400, odd
    assert daemon.get(at).json["state"] == "pending"
    assert daemon.post(f"{at}/approve", {"digest": digest}).json["state"] == "approved"


def test_the_owner_and_operators_are_not_asked_unless_all_are(cloche, tmp_path, daemon):
    box = daemon.create()
    assert box.exec("true")["exit_code"] == 0
    operator = caller(daemon, "operator")
    assert operator.post(f"{box.at}/exec", {"command": "true"}).status == 200
    daemon.stop()
    rules = tmp_path / "serve.yaml"
    rules.write_text("gate:\n  apply-to: all\n  auto-approve: [LOW, MEDIUM]\nmax-sandboxes: 3\n")
    d = Daemon(cloche, "--config", str(rules), gate=None)
    operator, box = caller(d, "operator"), d.create()
    asking = exec_later(d, box, "echo yes")
    asked = one_pending(operator)
    assert asked["caller"] == "owner"
    own = d.post(f"/v1/approvals/{asked['id']}/approve")
    assert own.status == 403 and own.json["code"] == "gate.own", own
    assert operator.post(f"/v1/approvals/{asked['id']}/approve").ok
    assert asking.wait().json["stdout"] == "yes\n"
    d.stop()


def test_an_operator_that_is_judged_has_no_second_voice(cloche, tmp_path):
    """Neither by a token of its own making, nor for the keys of its own sandboxes."""
    rules = tmp_path / "gate.yaml"
    rules.write_text("gate:\n  apply-to: all\n")
    d = Daemon(cloche, gate=rules)
    operator, other = caller(d, "operator", name="one"), caller(d, "operator", name="other")
    for role in ("approver", "operator", "agent"):
        told = operator("POST", "/v1/tokens", {"role": role, "name": "mine", "expires": 60}, ASYNC)
        assert (told.status, told.json["risk"], told.json["rule"]) == (202, "CRITICAL", "credential"), told
        own = operator.post(told.json["url"] + "/approve")
        assert own.status == 403 and own.json["code"] == "gate.own", own
    assert len(d.get("/v1/tokens").json["tokens"]) == 2
    asked = other.get(told.json["url"]).json
    assert asked["tool"] == "token_create" and asked["params"] == {"role": "agent", "name": "mine", "expires": 60}, asked
    assert other.post(told.json["url"] + "/approve").ok
    made = operator("POST", "/v1/tokens", {"role": "agent", "name": "mine", "expires": 60}, ASYNC)
    assert made.status == 201 and made.json["role"] == "agent", made
    assert operator("POST", "/v1/tokens", {"role": "approver", "name": "mine", "expires": 60}, ASYNC).status == 202

    box = operator.create()
    key = Caller(d, **{"X-Sandbox-Key": operator.post(f"{box.at}/key").json["key"]})
    asking = exec_later(key, box, "echo yes")
    asked = wait_for(lambda: [a for a in pending(other) if a["caller"] == "key:" + box.id])[0]
    own = operator.post(f"/v1/approvals/{asked['id']}/approve")
    assert own.status == 403 and own.json["code"] == "gate.own", own
    assert other.post(f"/v1/approvals/{asked['id']}/approve").ok
    assert asking.wait().json["stdout"] == "yes\n"

    # nor a key of a sandbox that another one made, the owner too
    for whose in (other.create(), d.create()):
        told = operator("POST", f"{whose.at}/key", None, ASYNC)
        assert (told.status, told.json["risk"], told.json["rule"]) == (202, "CRITICAL", "credential"), told
        own = operator.post(told.json["url"] + "/approve")
        assert own.status == 403 and own.json["code"] == "gate.own", own
        asked = other.get(told.json["url"]).json
        assert (asked["tool"], asked["params"], asked["sandbox"]) == ("token_create", {"role": "key"}, whose.id), asked
        assert other.post(told.json["url"] + "/approve").ok
        assert operator("POST", f"{whose.at}/key", None, ASYNC).json["key"].startswith("cloche_key_")
        assert d.post(f"{whose.at}/key").status == 200      # the owner is not asked
    d.stop()


def test_auto_approval_is_explicit_and_said(cloche, tmp_path):
    rules = tmp_path / "gate.yaml"
    rules.write_text("gate:\n  auto-approve: [LOW, MEDIUM, HIGH]\n")
    daemon = Daemon(cloche, gate=rules)
    agent = caller(daemon, "agent")
    box = agent.create()
    assert box.exec("echo 1")["stdout"] == "1\n"
    assert box.put("f.sh", b"x").ok and box.read("f.sh").body == b"x"
    told = agent("POST", f"{box.at}/exec", {"command": "rm -rf ."}, ASYNC)
    assert told.status == 202 and told.json["risk"] == "CRITICAL", told
    assert any("LOW, MEDIUM, HIGH" in e for e in events(daemon, "gate")), events(daemon, "gate")
    assert any("HIGH" in e for e in events(daemon, "gate_allowed"))
    daemon.stop()
    assert "approves without asking: LOW, MEDIUM, HIGH" in daemon.log, daemon.log


def test_off_is_off_and_said(cloche):
    daemon = Daemon(cloche, gate="off")
    agent = caller(daemon, "agent")
    assert agent.create().exec("rm -rf x; echo $?")["stdout"] == "0\n"
    daemon.stop()
    assert "the gate is off" in daemon.log, daemon.log


@pytest.mark.parametrize("text, code", [("gate: {rules: [{name: x}]}", "gate.rule"), ("gates: off", "gate.rule"), ("gate: on", "gate.rule"),
                                        ("gate: {auto-approve: [CRITICAL]}", "gate.rule"),
                                        ("gate: {rules: [{name: a, tools: [t], risk: LOW, conditions: [{param: p, matches: '('}]}]}",
                                         "gate.pattern")])
def test_the_daemon_does_not_start_with_ill_formed_rules(cloche, tmp_path, text, code):
    rules = tmp_path / "gate.yaml"
    rules.write_text(text)
    result = cloche("serve", "--gate", str(rules))
    assert result.code == 125 and f"[{code}]" in result.err and "gate.yaml" in result.err, result


def test_a_condition_that_there_is_not_is_named(cloche, tmp_path):
    rules = tmp_path / "gate.yaml"
    rules.write_text("gate: {rules: [{name: a, tools: [t], risk: LOW, conditions: [{param: p, matchs: x}]}]}")
    result = cloche("gate", "check", str(rules))
    assert result.code == 125 and 'gate.yaml:1: there is no condition "matchs"' in result.err and "matches, contains" in result.err, result


def test_what_each_route_is_judged_as(daemon):
    agent = caller(daemon, "agent")
    box = agent.create()
    for method, path, body, tool, risk in (
            ("PUT", f"{box.at}/files/a.txt", b"x", "code_write_file", "MEDIUM"),
            ("PUT", f"{box.at}/files/a.sh", b"x", "code_write_file", "HIGH"),
            ("PUT", f"{box.at}/files/a?mode=755", b"x", "code_write_file", "HIGH"),
            ("GET", f"{box.at}/files/a", None, "code_read_file", "MEDIUM"),
            ("GET", f"{box.at}/dirs/", None, "code_list_files", "MEDIUM"),
            ("GET", f"{box.at}/stat/a", None, "code_list_files", "MEDIUM"),
            ("POST", f"{box.at}/dirs/d", None, "code_make_folder", "MEDIUM"),
            ("DELETE", f"{box.at}/files/a", None, "code_delete_file", "MEDIUM"),
            ("POST", f"{box.at}/exec", {"command": ["rm", "-fr", "a b"]}, "code_execute", "CRITICAL"),
            ("POST", f"{box.at}/exec", {"command": "cat", "stdin": "x"}, "code_execute", "CRITICAL"),
            ("POST", f"{box.at}/exec", {"command": "true", "env": {"LD_PRELOAD": "x"}}, "code_execute", "CRITICAL"),
            ("POST", "/v1/sandboxes", {"policy": {"network": {"mode": "allowlist", "allow": ["ok.example.org"]}}}, "sandbox_create", "CRITICAL"),
            ("POST", "/v1/sandboxes", {"policy": {"limits": {"memory": "64m"}}}, "sandbox_create", "HIGH")):
        told = agent(method, path, body, ASYNC)
        assert told.status == 202 and told.json["risk"] == risk, (method, path, body, told)
        shown = daemon.get(told.json["url"]).json
        assert shown["tool"] == tool, (method, path, shown)
        daemon.post(told.json["url"] + "/deny")
    shown = [a["params"].get("code") for a in daemon.get("/v1/approvals").json["approvals"]]
    assert "rm -fr 'a b'" in shown, shown
    assert box.delete().ok      # LOW: nobody is asked


@pytest.mark.parametrize("later", [False, True], ids=["waits", "asks again"])
def test_nobody_is_asked_about_what_would_be_refused(cloche, tmp_path, later):
    """A yes to what the daemon's settings do not give, or to what is no policy, would be a no after all."""
    settings, rules = tmp_path / "settings.yaml", tmp_path / "gate.yaml"
    settings.write_text(json.dumps({"mode": "standard", "env": {"GIVEN": "1"}}))
    rules.write_text("gate:\n  rules:\n    - {name: all, tools: [sandbox_create, sandbox_policy], risk: HIGH}\n")
    daemon = Daemon(cloche, "--settings", str(settings), gate=rules)
    agent, mine = caller(daemon, "agent"), {"name": "mine", "policy": {"limits": {"cpus": 1}}}

    def ask(method, path, body):
        return agent(method, path, body, ASYNC if later else None)
    for policy, status, code in (({"mode": "light"}, 403, "policy.ceiling"), ({"binds": ["/etc:/given:ro"]}, 403, "policy.ceiling"),
                                 ({"limits": {"memory": "many"}}, 400, None), ({"mode": "off"}, 400, "serve.mode-off")):
        refused = ask("POST", "/v1/sandboxes", {"policy": policy})
        assert refused.status == status and code in (None, refused.json["code"]), (policy, refused)
    assert not daemon.get("/v1/approvals").json["approvals"] and not daemon.get("/v1/sandboxes?state=all").json["sandboxes"]
    # what may be had is asked about as ever, once
    asking = Asking(agent, "POST", "/v1/sandboxes", mine, ASYNC if later else None)
    asked = one_pending(daemon)
    assert asked["tool"] == "sandbox_create" and asked["params"]["policy"] == mine["policy"], asked
    assert daemon.post(f"/v1/approvals/{asked['id']}/approve").ok
    box = (agent("POST", "/v1/sandboxes", mine, ASYNC) if later else asking.wait()).json
    assert box["name"] == "mine" and [b["id"] for b in daemon.get("/v1/sandboxes?state=all").json["sandboxes"]] == [box["id"]], box
    refused = ask("POST", "/v1/sandboxes", mine)
    assert refused.json["code"] == "sandbox.name-taken", refused
    for policy, status in (({"env": {"OTHER": "2"}}, 403), ({"network": {"mode": "host"}}, 403)):
        refused = ask("PATCH", f"/v1/sandboxes/{box['id']}/policy", policy)
        assert refused.status == status, (policy, refused)
    assert len(daemon.get("/v1/approvals").json["approvals"]) == 1
    assert daemon.stop() == 0


def test_grants_stand_as_long_as_they_say(daemon):
    agent, other = caller(daemon, "agent"), caller(daemon, "agent")
    box, second = agent.create(), agent.create()
    foreign = other.create()
    asking = exec_later(agent, box, "echo 1")
    asked = one_pending(daemon)
    assert daemon.post(f"/v1/approvals/{asked['id']}/approve", {"scope": "sandbox"}).ok
    assert asking.wait().ok
    assert box.exec("echo 2")["stdout"] == "2\n"
    for who, at, command in ((agent, second.at, "echo 3"), (other, foreign.at, "echo 3"), (agent, box.at, "rm -rf x")):
        told = who("POST", f"{at}/exec", {"command": command}, ASYNC)
        assert told.status == 202, (at, command, told)
        daemon.post(told.json["url"] + "/deny")
    (grant,) = daemon.get("/v1/grants").json["grants"]
    assert (grant["tool"], grant["rule"], grant["sandbox"], grant["expires_ms"]) == ("code_execute", "code", box.id, None), grant
    daemon.stop()
    daemon.start()
    assert [g["id"] for g in daemon.get("/v1/grants").json["grants"]] == [grant["id"]]
    assert daemon("DELETE", f"/v1/grants/{grant['id']}").ok and daemon.get("/v1/grants").json["grants"] == []


def test_a_grant_for_a_caller_ends_at_its_time(daemon):
    agent = caller(daemon, "agent")
    box, second = agent.create(), agent.create()
    told = agent("POST", f"{box.at}/exec", {"command": "echo 1"}, ASYNC).json
    assert daemon.post(told["url"] + "/approve", {"scope": "caller"}).json["code"] == "gate.scope"
    assert daemon.post(told["url"] + "/approve", {"scope": "caller", "expires": 3600}).ok
    assert second.exec("echo 2")["stdout"] == "2\n"
    told = agent("POST", f"{box.at}/exec", {"command": "rm -rf a"}, ASYNC).json
    assert daemon.post(told["url"] + "/approve", {"scope": "sandbox"}).json["code"] == "gate.scope"
    assert daemon.post(told["url"] + "/approve", {"scope": "sandbox", "expires": 90000}).json["code"] == "gate.scope"
    assert daemon.post(told["url"] + "/approve", {"scope": "sandbox", "expires": 1}).ok
    def over():
        answer = agent("POST", f"{box.at}/exec", {"command": "rm -rf b"}, ASYNC)
        return answer.status == 202
    wait_for(over)
    wait_for(lambda: len(daemon.get("/v1/grants").json["grants"]) == 1)


def test_every_route_that_may_wait_is_described(cloche, tmp_path):
    """202 of Prefer: respond-async, in docs/openapi.yaml."""
    rules = tmp_path / "gate.yaml"
    rules.write_text("gate: off\n")
    daemon = Daemon(cloche, gate=rules)
    try:
        box, operator, other = daemon.create(), caller(daemon, "operator"), caller(daemon, "operator")
        volume = daemon.create(volume={"name": "kept"})
        assert volume.delete().ok and volume.wait_for("stopped")
        ids = {"volumes": daemon.get("/v1/volumes").json["volumes"][0]["id"],
               "templates": daemon.post(f"{box.at}/snapshot", {"name": "kept"}).json["id"]}
        rules.write_text("gate:\n  apply-to: all\n  rules:\n    - {name: all, tools: ['*'], risk: HIGH}\n")
        assert "was read again" in daemon.reload()
        described, waits = documented(), set()
        for method, path in sorted(described):
            if not path.startswith("/v1/") or path in ("/v1/kill", "/v1/sandboxes/{id}/exec/ws") or path.endswith("/stream"):
                continue
            who = caller(daemon, "operator") if "/browser" in path else operator     # which are one question, once denied
            told = who(*((method,) + request_of(method, path, ids.get(path.split("/")[2], box.id))), ASYNC)
            if told.status == 202 and "approval" in told.json:
                waits.add((method, path))
                assert other.post(told.json["url"] + "/deny").ok
        said = {route for route, statuses in described.items() if 202 in statuses and route[1].startswith("/v1/")}
        # of a context that is not there nobody is asked: test_serve_contexts.py has one that is
        assert waits == said - {("DELETE", "/v1/sandboxes/{id}/exec/{exec_id}"), ("POST", "/v1/sandboxes/{id}/contexts/{context_id}/execute")}, \
            (waits - said, said - waits)
    finally:
        daemon.stop()


def test_a_grant_ends_when_its_rule_changes(cloche, tmp_path):
    rules = tmp_path / "gate.yaml"
    own = "{name: mine, tools: [code_execute], risk: HIGH, conditions: [{param: code, contains: '%s'}]}"

    def write(*some):
        rules.write_text("gate:\n  rules:\n" + "".join(f"    - {r}\n" for r in some))

    write(own % "echo")
    daemon = Daemon(cloche, gate=rules)
    try:
        agent = caller(daemon, "agent")
        box = agent.create()

        def ask(command):
            return agent("POST", f"{box.at}/exec", {"command": command}, ASYNC)

        assert daemon.post(ask("echo 1").json["url"] + "/approve", {"scope": "caller", "expires": 3600}).ok
        assert box.exec("echo 2")["stdout"] == "2\n"
        # another rule, and this one written in another way
        write("{name: other, tools: [file_read], risk: LOW}",
              '{"name": "mine", "tools": ["code_execute"], risk: HIGH, conditions: [{"param": code, contains: "echo"}]}   # the same')
        assert "was read again" in daemon.reload()
        assert box.exec("echo 3")["stdout"] == "3\n"
        daemon.stop()
        daemon.start()
        assert len(daemon.get("/v1/grants").json["grants"]) == 1
        box = agent.create()
        assert box.exec("echo 4")["stdout"] == "4\n"
        waiting = ask("true")       # the built-in rule asks
        assert waiting.status == 202
        # the same rule, but it gets what another one before it had
        before = "{name: prod, tools: [code_*], risk: CRITICAL, conditions: [{param: code, contains: prod}]}"
        write(before, own % "echo")
        assert "was read again" in daemon.reload()
        assert daemon.get("/v1/grants").json["grants"] == []
        assert daemon.post(ask("echo 7").json["url"] + "/approve", {"scope": "caller", "expires": 3600}).ok
        write(own % "echo")
        assert "was read again" in daemon.reload() and ask("echo prod").status == 202
        write(before, own % "echo")
        assert "was read again" in daemon.reload() and ask("echo 8").status == 202
        # the same name, for more
        write(own % "e")
        assert "was read again" in daemon.reload()
        assert daemon.get("/v1/grants").json["grants"] == []
        assert "its rule is not what it was" in events(daemon, "gate_revoked")[-1]
        told = ask("echo 5")
        assert told.status == 202, told
        # what was asked under the former rule is over (test_serve_gate_change.py)
        write(own % "echo")
        assert "was read again" in daemon.reload()
        late = daemon.post(told.json["url"] + "/approve", {"scope": "caller", "expires": 3600})
        assert late.status == 409 and late.json["code"] == "gate.decided", late
        assert ask("echo 5").status == 202
    finally:
        daemon.stop()


def test_what_was_approved_outlives_the_warden_and_what_waited_does_not(daemon):
    agent = caller(daemon, "agent")
    box = agent.create()
    ready = agent("POST", f"{box.at}/exec", {"command": "echo ready"}, ASYNC).json
    assert daemon.post(ready["url"] + "/approve").ok
    open_one = agent("POST", f"{box.at}/exec", {"command": "echo open"}, ASYNC).json
    restart(daemon)
    assert wait_for(lambda: agent.get(open_one["url"]).json.get("state") == "denied")
    assert wait_for(lambda: daemon.state(box.id) == "ready")
    ran = agent("POST", f"{box.at}/exec", {"command": "echo ready"}, ASYNC)
    assert ran.status == 200 and ran.json["stdout"] == "ready\n", ran


def test_a_client_that_goes_takes_its_question_along(daemon):
    agent = caller(daemon, "agent")
    box = agent.create()
    c = agent.connection()
    c.request("POST", f"{box.at}/exec", json.dumps({"command": "touch no"}), agent.headers)
    asked = one_pending(daemon)
    c.close()
    wait_for(lambda: daemon.get(f"/v1/approvals/{asked['id']}").json["state"] == "denied")
    assert daemon.post(f"/v1/approvals/{asked['id']}/approve").status == 409


def test_the_stream_tells_what_is_open_and_what_becomes_of_it(daemon):
    agent, approver = caller(daemon, "agent"), caller(daemon, "approver")
    box = agent.create()
    told = agent("POST", f"{box.at}/exec", {"command": "echo 1"}, ASYNC).json
    c = approver.connection()
    c.request("GET", "/v1/approvals/stream", headers=approver.headers)
    stream = c.getresponse()
    def event():
        name, data, blank = stream.readline(), stream.readline(), stream.readline()
        assert name == b"event: approval\n" and blank == b"\n", (name, data, blank)
        return json.loads(data[6:])
    assert stream.status == 200 and event()["id"] == told["approval"]
    assert approver.post(told["url"] + "/deny").ok
    assert (lambda e: (e["id"], e["state"]))(event()) == (told["approval"], "denied")
    second = agent("POST", f"{box.at}/exec", {"command": "echo 2"}, ASYNC).json
    assert event()["id"] == second["approval"]
    c.close()


def test_lists_go_on_where_they_ended(daemon):
    """All of them, each once, whatever is decided or asked for meanwhile; also what `cloche approvals` shows."""
    boxes = [(agent, agent.create()) for agent in (caller(daemon, "agent", name=f"a{i}") for i in range(7))]

    def ask(i):
        agent, box = boxes[i % 7]
        return agent("POST", f"{box.at}/exec", {"command": f"echo {i}"}, ASYNC).json["approval"]
    made = [ask(i) for i in range(110)]
    seen, after = [], ""
    while after is not None:
        page = daemon.get(f"/v1/approvals?state=pending&limit=20&after={after}").json
        seen += [a["id"] for a in page["approvals"]]
        assert page["more"] == (page["next"] is not None) == (len(seen) < 110), page["next"]
        if len(seen) == 40:
            assert daemon.post(f"/v1/approvals/{seen[39]}/deny").ok and ask(111) not in seen
        after = page["next"]
    assert len(seen) == len(set(seen)) == 110 and set(seen) == set(made)
    exact = daemon.get("/v1/approvals?state=denied&limit=1").json
    assert exact["more"] is False and exact["next"] is None and len(exact["approvals"]) == 1
    shown = daemon.cloche("approvals", "--socket", daemon.path, "--json")
    assert shown.ok and len(json.loads(shown.out)["approvals"]) == 110, shown
    told = daemon("GET", "/v1/approvals/stream?follow=false")
    assert told.body.count(b"event: approval") == 110
    for bad in ("after=x", "after=" + "0" * 31, "after=" + "0" * 32 + "-x", "after=" + "0" * 32 + "-1-1"):
        assert daemon.get(f"/v1/approvals?{bad}").status == 400, bad
    assert daemon.get("/v1/approvals?after=" + "0" * 32).json["approvals"] == []


def test_a_sandboxs_key_is_asked_about_too(daemon):
    made = daemon.post("/v1/sandboxes", {}).json
    holder = Caller(daemon, X_Sandbox_Key=made["key"])
    told = holder("POST", f"/v1/sandboxes/{made['id']}/exec", {"command": "echo 1"}, ASYNC)
    assert told.status == 202 and daemon.get(told.json["url"]).json["caller"] == f"key:{made['id']}", told


def test_destruction_is_asked_about_where_a_rule_says_so(cloche, tmp_path):
    """Removing a volume is judged; what a new sandbox may destroy, and how long it and its volume stay, is shown."""
    rules = tmp_path / "gate.yaml"
    rules.write_text(json.dumps({"gate": {"rules": [
        {"name": "first", "tools": ["sandbox_create"], "conditions": [{"param": "name", "equals": "first"}], "risk": "LOW"},
        {"name": "end", "tools": ["code_destroy_sandbox"], "risk": "LOW"},
        {"name": "rest", "tools": ["*"], "risk": "HIGH"}]}}))
    daemon = Daemon(cloche, gate=rules)
    agent, other = caller(daemon, "agent"), caller(daemon, "agent")
    made = agent.create(name="first", workspace_key="k", volume={"name": "cache"})
    volume = made.record["volume"]
    assert made.delete().ok and agent.get("/v1/volumes").ok
    told = agent("DELETE", f"/v1/volumes/{volume}", None, ASYNC)
    assert told.status == 202 and told.json["risk"] == "HIGH", told
    shown = daemon.get(told.json["url"]).json
    assert shown["tool"] == "volume_remove" and shown["params"] == {"volume": volume, "name": "cache"}, shown
    assert [v["id"] for v in agent.get("/v1/volumes").json["volumes"]] == [volume]
    assert other("DELETE", f"/v1/volumes/{volume}").status == 404
    assert daemon.post(told.json["url"] + "/approve").ok and agent("DELETE", f"/v1/volumes/{volume}").ok
    assert wait_for(lambda: agent.get("/v1/volumes").json["volumes"] == [])
    members = {"name": "n", "workspace_key": "k", "reattach": True, "idle_timeout": 60, "max_lifetime": 600}
    told = agent("POST", "/v1/sandboxes", {**members, "volume": {"name": "cache", "retention": 0}}, ASYNC)
    assert told.status == 202 and told.json["risk"] == "HIGH", told
    shown = daemon.get(told.json["url"]).json
    assert shown["tool"] == "sandbox_create" and shown["params"] == {**members, "volume": "cache", "retention": 0}, shown
    assert daemon.stop() == 0, daemon.log
