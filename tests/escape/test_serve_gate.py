"""What an agent may try against the gate of cloche serve."""
import json
import socket
import ssl
import struct
import subprocess
import threading

import pytest

from helpers import requirement
from helpers.daemon import Caller, Daemon, Sandbox, caller, ticks, token
from helpers.runner import wait_for
from helpers.websocket import CLOSE, Closed, Command, WebSocket

pytestmark = requirement("R63")

ASYNC = {"Prefer": "respond-async"}


@pytest.fixture
def daemon(cloche):
    d = Daemon(cloche, gate=None)
    yield d
    assert d.stop() == 0, d.log


def ask(who, box, command="echo done >> /workspace/did", **members):
    return who("POST", f"{box.at}/exec", {"command": command, **members}, ASYNC)


def did(daemon, box):
    answer = daemon.get(f"{box.at}/files/did")
    return answer.body.decode().count("done") if answer.status == 200 else 0


def test_no_route_lets_an_agent_approve(daemon):
    made = token(daemon, "agent")
    agent, other = Caller(daemon, Authorization=f"Bearer {made['token']}"), caller(daemon, "agent")
    record = agent.post("/v1/sandboxes", {}).json
    box = Sandbox(agent, record)
    told = ask(agent, box).json
    key = Caller(daemon, X_Sandbox_Key=record["key"])
    for who in (agent, other, key):
        for verb in ("approve", "deny"):
            answer = who.post(f"{told['url']}/{verb}", {})
            assert answer.status == 403 and answer.json["code"] == "auth.role", answer
        assert who.post("/v1/tokens", {"role": "approver"}).status == 403
        assert who.get("/v1/grants").status == 403 and who("DELETE", f"/v1/grants/{told['approval']}").status == 403
        assert who.get("/v1/approvals/stream").status == 403
    # nor do other's questions show
    assert other.get(told["url"]).status == 404 and other.get("/v1/approvals").json["approvals"] == []
    assert key.get(told["url"]).status == 404
    assert [a["id"] for a in agent.get("/v1/approvals").json["approvals"]] == [told["approval"]]
    assert daemon.get(told["url"]).json["state"] == "pending" and did(daemon, box) == 0
    auditor = caller(daemon, "auditor")
    assert auditor.post(f"{told['url']}/approve").status == 403 and auditor.get(told["url"]).ok


def test_what_is_approved_is_nothing_else(daemon):
    """The command, a variable, the working directory, the sandbox, the caller: each makes another question of it."""
    made = token(daemon, "agent")
    agent, other = Caller(daemon, Authorization=f"Bearer {made['token']}"), caller(daemon, "agent")
    box, second, foreign = agent.create(), agent.create(), other.create()
    told = ask(agent, box).json
    assert daemon.post(f"{told['url']}/approve").ok
    for answer in (ask(agent, box, "echo done >> /workspace/did; true"), ask(agent, box, ["/bin/sh", "-c", "echo done >> /workspace/did "]),
                   ask(agent, box, env={"A": "b"}), ask(agent, box, cwd="/tmp"), ask(agent, box, timeout_ms=1000), ask(agent, box, stdin=""),
                   ask(agent, second), ask(other, foreign)):
        assert answer.status == 202 and answer.json["approval"] != told["approval"], answer
    assert ask(other, box).status == 404
    assert did(daemon, box) == did(daemon, second) == did(daemon, foreign) == 0
    assert ask(agent, box).status == 200 and did(daemon, box) == 1


def test_an_approval_is_used_once_however_many_race_for_it(daemon):
    agent = caller(daemon, "agent")
    box = agent.create()
    told = ask(agent, box).json
    assert daemon.post(f"{told['url']}/approve").ok
    answers = []
    threads = [threading.Thread(target=lambda: answers.append(ask(agent, box))) for _ in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert sorted(a.status for a in answers) == [200] + [202] * 7, answers
    assert did(daemon, box) == 1
    # those that lost wait for one of their own, which is not that one
    assert {a.json["approval"] for a in answers if a.status == 202} != {told["approval"]}


def test_approving_one_of_two_that_wait_does_one(daemon):
    agent = caller(daemon, "agent")
    box = agent.create()
    answers = []
    threads = [threading.Thread(target=lambda: answers.append(agent.post(f"{box.at}/exec", {"command": "echo done >> /workspace/did"})))
               for _ in range(2)]
    for t in threads:
        t.start()
    def both():
        return daemon.get("/v1/approvals?state=pending").json["approvals"]
    wait_for(lambda: len(both()) == 2)
    first, second = both()
    assert daemon.post(f"/v1/approvals/{first['id']}/approve").ok
    wait_for(lambda: len(answers) == 1)
    assert did(daemon, box) == 1
    assert daemon.post(f"/v1/approvals/{second['id']}/deny").ok
    for t in threads:
        t.join()
    assert sorted(a.status for a in answers) == [200, 403] and did(daemon, box) == 1


def pending(daemon):
    return daemon.get("/v1/approvals?state=pending").json["approvals"]


def test_a_websocket_waits_whatever_it_prefers(daemon):
    """There is no later answer for it: it waits, and what is approved is done on it."""
    made = token(daemon, "agent")
    box = Caller(daemon, Authorization=f"Bearer {made['token']}").create()
    headers = [f"Authorization: Bearer {made['token']}", "Prefer: respond-async"]
    c = Command.over(WebSocket(daemon.path, f"{box.at}/exec/ws", headers=headers), "read -r line; echo $line >> /workspace/did; exit 3")
    c.ws.stdin("done\n")
    c.signal("WINCH")
    wait_for(lambda: pending(daemon))
    c.ws.frame(9, b"there?")
    while not c.pongs:
        c.step()
    (asked,) = pending(daemon)
    assert did(daemon, box) == 0 and daemon.post(f"/v1/approvals/{asked['id']}/approve").ok
    assert c.end()["exit_code"] == 3 and did(daemon, box) == 1
    c = Command.over(WebSocket(daemon.path, f"{box.at}/exec/ws", headers=headers), "echo done >> /workspace/did")
    wait_for(lambda: pending(daemon))
    (asked,) = pending(daemon)
    assert daemon.post(f"/v1/approvals/{asked['id']}/deny").ok
    assert c.end()["code"] == "gate.denied" and did(daemon, box) == 1


def certificate(folder):
    cert, key = folder / "c.pem", folder / "c.key"
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-keyout", key,
                    "-out", cert, "-days", "2", "-subj", "/CN=box", "-addext", "subjectAltName=IP:127.0.0.1"],
                   check=True, capture_output=True)
    key.chmod(0o600)
    return cert, key


@pytest.mark.parametrize("over", ["unix", "tcp", "tls"])
def test_a_websocket_that_goes_away_takes_its_question_along(cloche, over):
    """What is approved when nobody is there any more is not run: however it went, and whatever it had sent before."""
    flags, context = [], None
    if over == "tls":
        cert, key = certificate(cloche.home)
        flags = ["--tls-cert", str(cert), "--tls-key", str(key)]
        context = ssl.create_default_context(cafile=str(cert))
    daemon = Daemon(cloche, *flags, path=cloche.home / "s", gate=None, tcp=True)
    made = token(daemon, "agent")
    box = Caller(daemon, Authorization=f"Bearer {made['token']}").create()

    def ask_live():
        if over == "unix":
            s = socket.socket(socket.AF_UNIX)
            s.connect(str(daemon.path))
        else:
            s = socket.create_connection(daemon.addresses()[0])
        s = context.wrap_socket(s, server_hostname="127.0.0.1") if context else s
        ws = WebSocket(s, f"{box.at}/exec/ws", headers=[f"Authorization: Bearer {made['token']}"])
        ws.say({"command": "echo done >> /workspace/did"})
        wait_for(lambda: pending(daemon))
        return ws, pending(daemon)[0]["id"]

    def said_so(ws):
        ws.frame(CLOSE, struct.pack(">H", 1001))
        with pytest.raises(Closed):
            ws.hear()

    def with_much_unread(ws):
        ws.stdin(b"x" * 300000)
        ws.close()

    def behind_what_nobody_takes(ws):
        """Its end has no room on the way either."""
        ws.socket.settimeout(1)
        with pytest.raises(TimeoutError):
            ws.stdin(b"x" * (64 << 20))
        ws.close()

    for go in (WebSocket.close, lambda ws: ws.socket.shutdown(socket.SHUT_RDWR), said_so, with_much_unread, behind_what_nobody_takes):
        ws, asked = ask_live()
        go(ws)
        assert wait_for(lambda: daemon.get(f"/v1/approvals/{asked}").json["state"] != "pending", 90)
        assert daemon.get(f"/v1/approvals/{asked}").json["state"] == "denied"       # and not "timeout"
        answer = daemon.post(f"/v1/approvals/{asked}/approve")
        assert answer.status == 409, answer
        ws.close()
    assert box.show()["state"] == "ready" and did(daemon, box) == 0
    assert daemon.stop() == 0, daemon.log


def test_a_token_that_is_revoked_meanwhile_gets_nothing(daemon):
    made = token(daemon, "agent")
    agent = Caller(daemon, Authorization=f"Bearer {made['token']}")
    box = agent.create()
    answers = []
    t = threading.Thread(target=lambda: answers.append(agent.post(f"{box.at}/exec", {"command": "echo done >> /workspace/did"})))
    t.start()
    wait_for(lambda: daemon.get("/v1/approvals?state=pending").json["approvals"])
    (asked,) = daemon.get("/v1/approvals?state=pending").json["approvals"]
    assert daemon("DELETE", f"/v1/tokens/{made['id']}").ok
    late = daemon.post(f"/v1/approvals/{asked['id']}/approve")     # it ended with the token
    assert (late.status, late.json["code"]) == (409, "gate.decided"), late
    t.join()
    assert answers[0].status in (401, 403) and did(daemon, box) == 0, answers


def test_an_agents_keys_are_the_agent(daemon):
    """As many sandboxes as it likes do not let it ask more, nor ask again for what was denied."""
    greedy, other = caller(daemon, "agent"), caller(daemon, "agent")
    records = [greedy.post("/v1/sandboxes", {}).json for _ in range(3)]
    keys = [Caller(daemon, X_Sandbox_Key=r["key"]) for r in records]
    boxes = [Sandbox(greedy, r) for r in records]
    told = ask(greedy, boxes[0], "touch no").json
    assert daemon.post(f"{told['url']}/deny", {"reason": "not that"}).ok
    again = ask(keys[0], boxes[0], "touch no")
    assert again.status == 403 and "not that" in again.json["error"], again
    answers = [ask(keys[i % 3], boxes[i % 3], f"echo {i}") for i in range(16)]
    assert [a.status for a in answers] == [202] * 16, answers
    for who in (*keys, greedy):
        refused = ask(who, boxes[keys.index(who) if who in keys else 0], "echo more")
        assert refused.status == 429 and refused.json["code"] == "gate.too-many", refused
    assert ask(other, other.create()).status == 202
    # what the owner made was made for somebody else each time
    for _ in range(2):
        record = daemon.post("/v1/sandboxes", {}).json
        assert ask(Caller(daemon, X_Sandbox_Key=record["key"]), Sandbox(daemon, record)).status == 202


def test_one_caller_cannot_fill_the_queue(daemon):
    greedy, other = caller(daemon, "agent"), caller(daemon, "agent")
    box, foreign = greedy.create(), other.create()
    answers = [ask(greedy, box, f"echo {i}") for i in range(20)]
    assert [a.status for a in answers] == [202] * 16 + [429] * 4, answers
    assert answers[-1].json["code"] == "gate.too-many" and "wait for approval already" in answers[-1].json["error"], answers[-1]
    assert ask(other, foreign).status == 202
    big = ask(other, foreign, "echo " + "x" * 70000)
    assert big.status == 413 and big.json["code"] == "gate.too-large" and "bytes" in big.json["error"], big


@pytest.mark.parametrize("pattern", ["(a+)+$", "(a|a)*[0-9]", "^(([a-z])+.)+[A-Z]([a-z])+$", r"\s*+[xy]", "(?:.*?,){40}[yz]"])
def test_no_text_is_too_expensive_to_judge(cloche, tmp_path, pattern):
    """Each pattern would take longer than a person lives on one of these; the rule would let it through."""
    rules = tmp_path / "gate.yaml"
    rules.write_text(json.dumps({"gate": {"rules": [{"name": "tests", "tools": ["code_execute"], "risk": "LOW", "require_approval": False,
                                                     "conditions": [{"param": "code", "matches": pattern}]}]}}))
    daemon = Daemon(cloche, gate=rules)
    agent = caller(daemon, "agent")
    box = agent.create()
    for text in ("a" * 60000 + "!", " " * 60000 + "!", "aa," * 20000 + "!"):
        answer = ask(agent, box, "true #" + text)
        assert answer.status == 202 and answer.json["risk"] in ("HIGH", "CRITICAL"), (text[:10], answer)
    assert daemon.get("/v1/health").ok
    assert daemon.stop() == 0, daemon.log


def test_what_is_shown_does_not_move_a_cursor(daemon):
    agent = caller(daemon, "agent")
    box = agent.create()
    assert ask(agent, box, "rm -rf x\r\x1b[2K\x1b[1Aecho harmless \u202egnihton\x9b2J").status == 202
    shown = daemon.cloche("approvals")
    assert shown.ok and "rm -rf x" in shown.out and "CRITICAL" in shown.out, shown
    for bad in ("\x1b", "\r", "\u202e", "\x9b"):
        assert bad not in shown.out, shown


def test_one_agent_cannot_keep_the_warden_searching(daemon):
    """Each of these texts costs all that one may; together they cost no more than the agent's share."""
    greedy, other = caller(daemon, "agent"), caller(daemon, "agent")
    box, foreign = greedy.create(), other.create()
    (warden,) = daemon.processes("cloche-warden")
    answers = []

    def flood(n):
        for i in range(50):
            answers.append(ask(greedy, box, "find " * 12000 + f"{n} {i}"))

    threads = [threading.Thread(target=flood, args=(n,)) for n in range(8)]
    before = ticks(warden)
    for t in threads:
        t.start()
    while any(t.is_alive() for t in threads):
        assert other.get(foreign.at).ok
    for t in threads:
        t.join()
    # of time on a processor; searching all of each would be some fifty seconds
    assert ticks(warden) - before < 15
    assert len(answers) == 400 and {a.status for a in answers} == {202, 429}
    # somebody else's are searched as ever: nothing is dangerous about this one
    harmless = ask(other, foreign)
    assert harmless.status == 202 and harmless.json["risk"] == "HIGH", harmless


def test_a_stopped_sandbox_is_no_way_around(cloche, tmp_path):
    """Its policy, its next life and its record are judged as those of one that lives."""
    rules = tmp_path / "gate.yaml"
    rules.write_text("gate:\n  apply-to: all\n  rules:\n"
                     "    - {name: ends, tools: [sandbox_recover, code_destroy_sandbox], risk: CRITICAL, timeout: 600}\n")
    daemon = Daemon(cloche, gate=rules)
    operator, agent, other = caller(daemon, "operator"), caller(daemon, "agent"), caller(daemon, "agent")
    boxes = [(who, who.create(max_lifetime=1)) for who in (operator, agent)]
    for who, box in boxes:
        assert box.wait_for("stopped")
        for verb, path, body, tool in (("PATCH", "/policy", {"network": {"mode": "host"}}, "sandbox_policy"),
                                       ("POST", "/recover", None, "sandbox_recover"), ("DELETE", "", None, "code_destroy_sandbox")):
            if who is agent and verb == "PATCH":
                continue        # no agent may, whoever is asked
            asked = who(verb, box.at + path, body, ASYNC)
            assert asked.status == 202, (verb, asked)
            shown = daemon.get(asked.json["url"]).json
            assert (shown["tool"], shown["sandbox"], shown["risk"]) == (tool, box.id, "CRITICAL"), shown
        assert box.show()["state"] == "stopped"
    # another's is none, whatever the rules say, and nobody is asked about it
    assert other("DELETE", boxes[1][1].at, None, ASYNC).status == 404
    who, box = boxes[1]
    (told,) = [a for a in daemon.get("/v1/approvals?state=pending").json["approvals"]
               if a["sandbox"] == box.id and a["tool"] == "code_destroy_sandbox"]
    assert caller(daemon, "approver").post(f"/v1/approvals/{told['id']}/approve").ok
    assert who("DELETE", box.at, None, ASYNC).ok and who.get(box.at).status == 404
    assert daemon.stop() == 0, daemon.log


@pytest.mark.parametrize("verb", ["approve", "deny"])
def test_values_of_variables_are_for_who_decides_while_it_waits(daemon, verb):
    agent, approver, auditor = (caller(daemon, role) for role in ("agent", "approver", "auditor"))
    box = agent.create()
    c = auditor.connection()
    c.request("GET", "/v1/approvals/stream", headers=auditor.headers)
    stream = c.getresponse()

    def event():
        name, data, blank = stream.readline(), stream.readline(), stream.readline()
        assert name == b"event: approval\n" and blank == b"\n", (name, data, blank)
        return json.loads(data[6:])

    def shown(who):
        return [who.get(told["url"]).json, *who.get("/v1/approvals").json["approvals"]]

    told = ask(agent, box, env={"TOKEN": "hunter2=x", "EMPTY": ""}).json
    assert all(sorted(a["params"]["env"]) == ["EMPTY=", "TOKEN=hunter2=x"] for who in (approver, agent) for a in shown(who))
    first = event()
    assert first["id"] == told["approval"] and first["state"] == "pending"
    assert all(sorted(a["params"]["env"]) == ["EMPTY", "TOKEN"] for a in (first, *shown(auditor)))
    assert approver.post(f"{told['url']}/{verb}").ok
    for a in (event(), *(a for who in (daemon, approver, agent, auditor) for a in shown(who))):
        assert a["state"] != "pending" and sorted(a["params"]["env"]) == ["EMPTY", "TOKEN"], a
        assert a["params"]["code"] == "echo done >> /workspace/did" and a["digest"] == first["digest"], a
    # what was approved is done with them all the same
    if verb == "approve":
        ran = ask(agent, box, env={"TOKEN": "hunter2=x", "EMPTY": ""})
        assert ran.status == 200 and did(daemon, box) == 1, ran
    c.close()


def test_values_of_variables_are_not_kept_when_nobody_decides(cloche, tmp_path):
    rules = tmp_path / "gate.yaml"
    rules.write_text("gate:\n  rules:\n    - {name: quick, tools: [code_execute], risk: HIGH, timeout: 1}\n")
    daemon = Daemon(cloche, gate=rules)
    agent = caller(daemon, "agent")
    box = agent.create()
    assert agent.post(f"{box.at}/exec", {"command": "true", "env": {"TOKEN": "hunter2"}}).status == 403
    (late,) = daemon.get("/v1/approvals").json["approvals"]
    assert late["state"] == "timeout" and late["params"]["env"] == ["TOKEN"], late
    assert daemon.stop() == 0, daemon.log
