"""What a tool's call comes to when somebody has to approve it: told in the way that the client understands."""
import json
import re
import threading

import pytest

from helpers import requirement
from helpers.daemon import Daemon, Remote, token
from helpers.mcp import SESSIONS, STATELESS, Client, events
from helpers.runner import wait_for

pytestmark = [requirement("R62"), requirement("R63"), requirement("R85")]
CODE = {"language": "shell", "code": "echo ran"}
URLS = {"elicitation": {"form": {}, "url": {}}}


@pytest.fixture
def daemon(cloche):
    made = Daemon(cloche, gate=None, tcp=True)
    made.port = int(re.search(rb"tcp:127\.0\.0\.1:(\d+)", made.heard)[1])
    yield made
    assert made.stop() == 0, made.log


def agent(daemon, version, capabilities=None, tcp=False):
    secret = token(daemon, "agent")["token"]
    at = Remote(daemon, ("127.0.0.1", daemon.port), secret, None, None) if tcp else daemon
    return Client(at, version, token=secret, capabilities=capabilities)


def pending(daemon):
    return daemon.get("/v1/approvals?state=pending").json["approvals"]


def decide(daemon, which, verb="approve"):
    answer = daemon.post(f"/v1/approvals/{which}/{verb}", {})
    assert answer.ok, answer


class Calling:
    """A call on a thread of its own, that waits for a decision."""

    def __init__(self, client, *args, **kw):
        self.result = None
        self.thread = threading.Thread(target=self.run, args=(client, args, kw), daemon=True)
        self.thread.start()

    def run(self, client, args, kw):
        self.result = client.call(*args, **kw)

    def wait(self):
        self.thread.join(120)
        assert self.result is not None
        return self.result


@pytest.mark.parametrize("capabilities", [{}, {"elicitation": {}}, {"elicitation": {"form": {}}}])
def test_a_client_that_cannot_ask_is_told_what_to_do(daemon, capabilities):
    client = agent(daemon, STATELESS, capabilities, tcp=True)
    told = client.call("code_execute", **CODE)
    which = told["approval_id"]
    assert told["error_type"] == "ApprovalRequired" and f"cloche approvals approve {which}" in told["error"], told
    assert told["approval_url"] == f"http://127.0.0.1:{daemon.port}/approvals/{which}"
    assert [a["id"] for a in pending(daemon)] == [which] and daemon.get("/v1/sandboxes").json["sandboxes"] == []
    assert client.call("code_execute", **CODE)["approval_id"] == which
    # its own credential decides nothing
    assert client.daemon.post(f"/v1/approvals/{which}/approve", {}).status == 403
    decide(daemon, which)
    assert client.call("code_execute", **{**CODE, "code": "echo other"})["approval_id"] != which
    assert client.call("code_execute", **CODE)["stdout"] == "ran\n"
    # once
    assert client.call("code_execute", **CODE)["approval_id"] != which


def test_a_url_for_who_can_show_one(daemon):
    client = agent(daemon, STATELESS, URLS, tcp=True)
    params = {"name": "code_execute", "arguments": CODE}
    asked = client("tools/call", params)["result"]
    assert asked["resultType"] == "input_required", asked
    wanted = asked["inputRequests"]["approval"]
    which = wanted["params"]["elicitationId"]
    assert wanted["method"] == "elicitation/create" and wanted["params"]["mode"] == "url" and "requestedSchema" not in wanted["params"]
    assert wanted["params"]["url"] == f"http://127.0.0.1:{daemon.port}/approvals/{which}"
    again = {**params, "inputResponses": {"approval": {"action": "accept"}}, "requestState": asked["requestState"]}
    for changed in ({"requestState": asked["requestState"][:-1] + "x"}, {"requestState": 7}, {"arguments": {**CODE, "code": "echo other"}}):
        assert client("tools/call", {**again, **changed})["error"]["code"] == -32602, changed
    # nor does another caller's word count
    other = agent(daemon, STATELESS, URLS, tcp=True)
    assert other("tools/call", again)["error"]["code"] == -32602
    decide(daemon, which)
    done = client("tools/call", again)["result"]
    assert done["resultType"] == "complete" and done["structuredContent"]["stdout"] == "ran\n", done
    # what was used is used: it has to be approved anew
    waits = Calling(client, "list_sandboxes")
    assert len(waits.wait()["sandboxes"]) == 1
    assert client("tools/call", params)["result"]["inputRequests"]["approval"]["params"]["elicitationId"] != which


@pytest.mark.parametrize("verb", ["approve", "deny"])
def test_a_session_waits(daemon, verb):
    client = agent(daemon, SESSIONS)
    waits = Calling(client, "code_execute", {"progressToken": "t"}, **CODE)
    assert wait_for(lambda: pending(daemon), 60)
    which = pending(daemon)[0]["id"]
    decide(daemon, which, verb)
    result = waits.wait()
    assert f"cloche approvals approve {which}" in client.heard[0]["params"]["message"]
    if verb == "approve":
        assert result["stdout"] == "ran\n"
    else:
        assert result["error_type"] == "gate.denied" and daemon.get("/v1/sandboxes?state=all").json["sandboxes"] == []


def test_a_session_that_cannot_be_told_does_not_wait(daemon):
    """Without a token for its progress nothing could say what a call waits for."""
    client = agent(daemon, SESSIONS)
    told = client.call("code_execute", **CODE)
    assert told["error_type"] == "ApprovalRequired" and f"cloche approvals approve {told['approval_id']}" in told["error"], told
    decide(daemon, told["approval_id"])
    assert client.call("code_execute", **CODE)["stdout"] == "ran\n"


NETWORK = {"network_enabled": True, "allowed_domains": ["example.org"]}


def test_a_sandbox_that_has_to_be_approved(daemon):
    """It is judged as what it comes to, and said in the same ways."""
    client = agent(daemon, STATELESS)
    told = client.call("create_sandbox", **NETWORK)
    assert told["error_type"] == "ApprovalRequired", told
    assert [(a["id"], a["tool"]) for a in pending(daemon)] == [(told["approval_id"], "sandbox_create")]
    assert client.call("create_sandbox", **NETWORK)["approval_id"] == told["approval_id"]
    decide(daemon, told["approval_id"], "deny")
    assert client.call("create_sandbox", **NETWORK)["error_type"] == "gate.denied"


def test_a_sandbox_that_has_to_be_approved_by_url(daemon):
    client = agent(daemon, STATELESS, URLS, tcp=True)
    params = {"name": "create_sandbox", "arguments": NETWORK}
    asked = client("tools/call", params)["result"]
    assert asked["resultType"] == "input_required" and asked["inputRequests"]["approval"]["params"]["mode"] == "url", asked
    again = {**params, "inputResponses": {"approval": {"action": "accept"}}, "requestState": asked["requestState"]}
    assert client("tools/call", {**again, "arguments": {}})["error"]["code"] == -32602
    decide(daemon, asked["inputRequests"]["approval"]["params"]["elicitationId"], "deny")
    assert client("tools/call", again)["result"]["structuredContent"]["error_type"] == "gate.denied"


def test_a_session_waits_for_its_sandbox(daemon):
    client = agent(daemon, SESSIONS)
    waits = Calling(client, "create_sandbox", {"progressToken": "t"}, **NETWORK)
    assert wait_for(lambda: pending(daemon), 60)
    which = pending(daemon)[0]["id"]
    decide(daemon, which, "deny")
    assert waits.wait()["error_type"] == "gate.denied" and which in client.heard[0]["params"]["message"], client.heard


@pytest.mark.parametrize("action", ["accept", "decline"])
def test_a_session_that_can_show_a_url(daemon, action):
    client = agent(daemon, SESSIONS, URLS, tcp=True)
    message = client.message("tools/call", {"name": "code_execute", "arguments": CODE})
    connection = client.daemon.connection()
    connection.request("POST", "/mcp", json.dumps(message), client.headers())
    response = connection.getresponse()
    said = b""
    while b"data: " not in said or not said.endswith(b"\n\n"):
        said += response.readline()
    asked = events(said.decode())[0]
    assert asked["method"] == "elicitation/create" and asked["params"]["mode"] == "url", asked
    which = asked["params"]["elicitationId"]
    assert client.raw({"jsonrpc": "2.0", "id": asked["id"], "result": {"action": action}}).status == 202
    if action == "accept":      # which alone approves nothing
        assert [a["id"] for a in pending(daemon)] == [which]
        decide(daemon, which)
    result = events(response.read().decode())[-1]["result"]["structuredContent"]
    connection.close()
    if action == "accept":
        assert result["stdout"] == "ran\n", result
    else:
        assert result["error_type"] == "gate.declined" and wait_for(lambda: not pending(daemon), 60), result


def test_what_is_not_asked_about(daemon):
    client = agent(daemon, STATELESS)
    box = client.call("create_sandbox")["sandbox_id"]
    assert client.call("list_sandboxes")["sandboxes"][0]["sandbox_id"] == box
    assert client.call("code_destroy_sandbox", sandbox_id=box)["success"] and not pending(daemon)
    # the owner is not asked
    assert Client(daemon, STATELESS).call("code_execute", **CODE)["stdout"] == "ran\n"


def test_a_client_that_goes_takes_its_question_along(daemon):
    client = agent(daemon, SESSIONS)
    connection = daemon.connection()
    params = {"name": "code_execute", "arguments": CODE, "_meta": {"progressToken": 1}}
    connection.request("POST", "/mcp", json.dumps(client.message("tools/call", params)), client.headers())
    assert wait_for(lambda: pending(daemon), 60)
    connection.close()
    assert wait_for(lambda: not pending(daemon), 60)


RULE = """gate:
  auto-approve: [LOW, MEDIUM, HIGH]
  rules:
    - name: keyboard
      tools: [computer]
      conditions: [{param: action, one-of: [type, key, hold_key, right_click, clipboard_set]}]
      risk: CRITICAL
    - {name: copying, tools: [computer], conditions: [{param: text, matches: 'ctrl\\+c'}], risk: CRITICAL}
"""
# Each of them types, presses or sets; what is between is ignored by who does it.
SAID = [{"action": "type", "text": "x"}, {"type": "type", "text": "y"}, {"type": "keypress", "keys": ["a"]}, {"action": "keypress", "text": "b"},
        {"action": "hold_key", "keys": ["a"]}, {"type": "click", "button": "right"}, {"type": "click", "keys": ["Control", "C"]},
        {"type": "type", "text": "x", "path": [{"ignored": "y" * 61000}]}, {"action": "clipboard_set", "text": "x" * 61500}]


def test_a_desktops_action_has_one_name(cloche):
    """Rules name actions; an agent has other words for them, and room to be long."""
    rules = cloche.home / "rules.yaml"
    rules.write_text(RULE, encoding="ascii")
    daemon = Daemon(cloche, gate=rules)
    client = agent(daemon, STATELESS)
    box = client.call("create_sandbox")["sandbox_id"]
    seen = client.call("computer", sandbox_id=box, type="move", x=1, y=1)
    assert seen.get("error_type") != "ApprovalRequired" and not pending(daemon), "what no rule names goes on"
    for said in SAID:
        waits = Calling(client, "computer", sandbox_id=box, **said)
        assert wait_for(lambda: pending(daemon) or waits.result is not None, 60)
        [asked] = pending(daemon) or pytest.fail(f"unasked: {said}"[:200] + f" {waits.result}")
        assert asked["tool"] == "computer" and asked["rule"] in ("keyboard", "copying"), asked
        decide(daemon, asked["id"], "deny")
        waits.wait()
    # so that who was denied is denied in other words too
    assert client.call("computer", sandbox_id=box, type="type", text="x")["error_type"] == "gate.denied"
    rules.write_text(RULE.replace("hold_key", "keypress"), encoding="ascii")
    checked = cloche("gate", "check", rules)
    assert checked.code == 125 and "[gate.condition]" in checked.err and "call it key" in checked.err, checked
    assert daemon.stop() == 0, daemon.log
