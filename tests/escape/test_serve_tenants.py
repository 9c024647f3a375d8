"""One caller's credential on everything that is another's, route by route: every route of docs/openapi.yaml is tried."""
import ctypes
import http.client
import json
import os
import select
import socket
import sqlite3
import struct
import time

import pytest

from helpers import requirement
from helpers.daemon import HANG_GUARD, Caller, Daemon, Sandbox, caller, kill_one, token
from helpers.mcp import STATELESS, Client
from helpers.routes import documented, request_of
from helpers.runner import wait_for
from helpers.websocket import Command, WebSocket

pytestmark = requirement("R12", "R23")

# What a route is about. One below /v1/sandboxes/{id} is about that sandbox; for every other one this says it, and a new
# one that is not here fails the test.
ANYBODY, STATIC, OPERATORS, APPROVERS, LIST, MAKE, DEFAULT, MCP = "anybody", "static", "operators", "approvers", "list", "make", "default", "mcp"
NUMBERS, FOLLOWED = "numbers", "followed"      # of the daemon as a whole; events that come
TYPED = "typed"     # the credential is in the form, without which it is none
VOLUMES = "volumes"     # test_serve_volumes.py
TEMPLATES = "templates" # test_serve_fork.py
E2B = "e2b"         # test_serve_e2b.py
COUNT = "count"     # how many entries of a list there are
JUDGED = {
    ("GET", "/v1/health"): ANYBODY,
    ("GET", "/health"): ANYBODY,
    ("GET", "/ready"): ANYBODY,
    ("GET", "/v1/version"): STATIC,
    ("GET", "/metrics"): NUMBERS,
    ("GET", "/v1/usage"): LIST,
    ("GET", "/v1/events/stream"): FOLLOWED,
    ("GET", "/v1/events"): LIST,
    ("POST", "/v1/kill"): OPERATORS,
    **{(method, "/preview/{id}/{path}"): STATIC for method in ("GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")},
    ("GET", "/v1/sandboxes"): LIST,
    ("POST", "/v1/sandboxes"): MAKE,
    ("POST", "/v1/execute"): MAKE,
    ("GET", "/v1/volumes"): VOLUMES,
    ("DELETE", "/v1/volumes/{id}"): VOLUMES,
    ("GET", "/v1/templates"): TEMPLATES,
    ("DELETE", "/v1/templates/{id}"): TEMPLATES,
    ("GET", "/v1/tokens"): OPERATORS,
    ("POST", "/v1/tokens"): OPERATORS,
    ("DELETE", "/v1/tokens/{id}"): OPERATORS,
    ("GET", "/v1/audit"): LIST,
    ("GET", "/v1/audit/stream"): FOLLOWED,
    ("GET", "/api/audit/feed"): LIST,
    ("GET", "/v1/audit/size"): COUNT,
    ("GET", "/api/audit/feed/size"): COUNT,
    ("GET", "/v1/approvals"): STATIC,
    ("GET", "/v1/approvals/stream"): STATIC,
    ("GET", "/v1/approvals/{id}"): STATIC,
    ("POST", "/v1/approvals/{id}/approve"): APPROVERS,
    ("POST", "/v1/approvals/{id}/deny"): APPROVERS,
    ("GET", "/v1/grants"): APPROVERS,
    # the page looks at the token in its form, and at no other credential: test_serve_approval_page.py
    ("GET", "/approvals/style.css"): ANYBODY,
    ("GET", "/approvals/{id}"): ANYBODY,
    ("POST", "/v1/console"): OPERATORS,
    # for whoever has a ticket: test_console.py
    ("POST", "/v1/console/open"): TYPED,
    ("GET", "/console"): ANYBODY,
    ("GET", "/console/{file}"): ANYBODY,
    ("GET", "/desktop"): ANYBODY,
    ("GET", "/desktop/page.js"): ANYBODY,
    # by a session's credential, which is in the address: test_desktop_view.py
    ("GET", "/desktop/ws/{token}"): STATIC,
    ("POST", "/approvals/{id}"): TYPED,
    ("DELETE", "/v1/grants/{id}"): APPROVERS,
    ("POST", "/mcp"): MCP,
    ("GET", "/mcp"): MCP,
    ("DELETE", "/mcp"): MCP,
    # ?id= names a sandbox, without it they are about the caller's default one
    ("GET", "/api/sandbox/status"): DEFAULT,
    ("GET", "/api/sandbox/events"): DEFAULT,
    ("POST", "/api/sandbox/start"): DEFAULT,
    ("POST", "/api/sandbox/stop"): DEFAULT,
    ("POST", "/api/sandbox/recover"): DEFAULT,
    ("POST", "/api/sandbox/exec"): DEFAULT,
    # they say the same to everybody, of no sandbox
    ("GET", "/api/sandbox/platform"): STATIC,
    ("POST", "/api/sandbox/docker/start"): STATIC,
    ("GET", "/api/sandbox/browser"): DEFAULT,
    ("GET", "/api/sandbox/screen/screenshot"): DEFAULT,
    ("POST", "/api/sandbox/screen/screenshot"): DEFAULT,
    ("GET", "/api/sandbox/screen/windows"): DEFAULT,
    ("POST", "/api/sandbox/audio/record"): DEFAULT,
    ("POST", "/api/sandbox/audio/play"): DEFAULT,
    ("POST", "/api/sandbox/computer/click"): DEFAULT,
    ("POST", "/api/sandbox/computer/type"): DEFAULT,
    ("POST", "/api/sandbox/computer/keypress"): DEFAULT,
    ("POST", "/api/sandbox/computer/action"): DEFAULT,
    ("POST", "/api/sandbox/sign"): STATIC,
    ("POST", "/api/sandbox/sign/message"): STATIC,
    ("POST", "/api/sandbox/sign/typed-data"): STATIC,
    ("POST", "/api/sandbox/sign/approve"): STATIC,
    ("POST", "/api/sandbox/sign/reject"): STATIC,
    ("GET", "/api/sandbox/sign/pending"): STATIC,
    ("GET", "/api/sandbox/sign/address"): STATIC,
    ("GET", "/api/sandbox/capabilities"): DEFAULT,
}
# What of a sandbox a role may ask that reaches all of them, and that a key may ask of its own.
READS = {("GET", "/v1/sandboxes/{id}"), ("GET", "/v1/sandboxes/{id}/usage"), ("GET", "/v1/sandboxes/{id}/policy"),
         ("GET", "/v1/sandboxes/{id}/ports"), ("GET", "/v1/sandboxes/{id}/attach"), ("GET", "/v1/sandboxes/{id}/audit"), ("GET", "/v1/sandboxes/{id}/transcript"),
         ("GET", "/v1/sandboxes/{id}/logs"), ("GET", "/v1/sandboxes/{id}/messages")}
KEYED = {("GET", "/v1/sandboxes/{id}"), ("POST", "/v1/sandboxes/{id}/exec"), ("GET", "/v1/sandboxes/{id}/exec/ws"),
         ("GET", "/v1/sandboxes/{id}/files/{path}"), ("PUT", "/v1/sandboxes/{id}/files/{path}"),
         ("DELETE", "/v1/sandboxes/{id}/files/{path}"), ("GET", "/v1/sandboxes/{id}/dirs/{path}"),
         ("POST", "/v1/sandboxes/{id}/dirs/{path}"), ("GET", "/v1/sandboxes/{id}/stat/{path}"),
         ("GET", "/v1/sandboxes/{id}/transcript"), ("GET", "/v1/sandboxes/{id}/logs"),
         ("GET", "/v1/sandboxes/{id}/messages"), ("POST", "/v1/sandboxes/{id}/messages"),
         ("GET", "/v1/sandboxes/{id}/exec"), ("GET", "/v1/sandboxes/{id}/watch"),
         ("GET", "/v1/sandboxes/{id}/desktop/view"), ("POST", "/v1/sandboxes/{id}/browser"), ("GET", "/v1/sandboxes/{id}/browser/json"), ("GET", "/v1/sandboxes/{id}/browser/json/{path}"),
         ("PUT", "/v1/sandboxes/{id}/browser/json"), ("PUT", "/v1/sandboxes/{id}/browser/json/{path}"),
         ("GET", "/v1/sandboxes/{id}/browser/devtools/{path}"),
         *((method, "/v1/sandboxes/{id}/exec/{exec_id}" + rest) for method, rest in (
             ("GET", ""), ("DELETE", ""), ("GET", "/stream"), ("POST", "/stdin"), ("POST", "/signal"), ("POST", "/resize"))),
         *((method, "/v1/sandboxes/{id}/contexts" + rest) for method, rest in (
             ("GET", ""), ("POST", ""), ("GET", "/{context_id}"), ("DELETE", "/{context_id}"), ("POST", "/{context_id}/execute"),
             ("POST", "/{context_id}/interrupt"), ("POST", "/{context_id}/restart")))}
SESSIONS = ("GET", "/v1/sandboxes/{id}/attach/ws")      # for the credential of an editor's session alone
BODIES = {"/api/sandbox/exec": {"command": "touch /workspace/was-here"}}


def judged(method, path):
    if path.startswith("/v1/sandboxes/{id}"):
        return "own"
    if path.startswith("/e2b/"):
        return E2B
    assert (method, path) in JUDGED, f"{method} {path} is new: say in JUDGED what it is about, and who may"
    return JUDGED[method, path]


def test_every_route_is_judged():
    for method, path in documented():
        judged(method, path)
    assert set(JUDGED) <= set(documented())


class Town:
    """Two agents, each with a sandbox of the same name, and the owner's own, with files and keys."""

    def __init__(self, daemon):
        self.daemon = daemon
        self.a = caller(daemon, "agent", name="a")
        self.b = caller(daemon, "agent", name="b")
        self.box_a = self.a.create(name="work", labels={"of": "a"})
        self.box_b = self.b.create(name="work")
        self.box_owner = daemon.create(name="owners")
        self.key_b = Caller(daemon, X_Sandbox_Key=self.box_b.record["key"])
        for box in (self.box_a, self.box_b, self.box_owner):
            assert box.put("f", f"of {box.id}".encode()).ok

    def untouched(self, box):
        """Seen by the owner, who reaches all."""
        seen = Sandbox(self.daemon, box.record)
        now = {k: v for k, v in seen.show().items() if k not in ("last_used_ms", "key")}
        was = {k: v for k, v in box.record.items() if k not in ("last_used_ms", "key")}
        assert now == was, (now, was)
        assert seen.read("f").body == f"of {box.id}".encode()
        names = {e["name"] for e in self.daemon.get(f"{box.at}/dirs/").json["entries"]}
        assert names == {"f"}, names
        assert Caller(self.daemon, X_Sandbox_Key=box.record["key"]).get(box.at).ok
        assert not [e for e in self.daemon.get(f"/v1/events?sandbox={box.id}&limit=1000").json["events"] if e["type"].startswith("exec")]


@pytest.fixture
def town(cloche):
    daemon = Daemon(cloche)
    yield Town(daemon)
    assert daemon.stop() == 0, daemon.log


@pytest.fixture
def tcp_town(cloche):
    daemon = Daemon(cloche, path=cloche.home / "s", tcp=True)
    yield Town(daemon)
    assert daemon.stop() == 0, daemon.log


def tried(attacker, method, path, target):
    """(status, code, words) of a request on the sandbox @target; of a command over a WebSocket what became of it."""
    at, body = request_of(method, path, target)
    if not path.endswith("/ws"):
        answer = attacker(method, at, body)
        if answer.ok:
            return answer.status, None, answer.body
        return answer.status, answer.json["code"], answer.json["error"]
    ws = WebSocket(attacker.path, at, headers=[f"{k}: {v}" for k, v in attacker.headers.items()])
    if ws.status == 101:
        last = Command.over(ws, "touch was-here").end()
        return (403 if last["code"] == "auth.role" else 200), last.get("code"), last
    said = ws.refusal()
    return ws.status, said["code"], said["error"]


def elsewhere():
    return sorted(r for r in documented() if judged(*r) != "own")


@pytest.mark.parametrize("who", ["agent", "key"])
@pytest.mark.parametrize("named", ["id", "name"])
def test_anothers_sandbox_is_not_there(town, who, named):
    attacker = town.b if who == "agent" else town.key_b
    for victim in (town.box_a, town.box_owner):
        if named == "name" and victim is town.box_a:
            continue        # they have one of that name themselves: below
        target = victim.id if named == "id" else "owners"
        for method, path in sorted(r for r in documented() if judged(*r) == "own"):
            status, code, words = tried(attacker, method, path, target)
            refused = [(404, "sandbox.not-found")]
            if (who == "key" and (method, path) not in KEYED) or (method, path) == SESSIONS:
                refused.append((403, "auth.role"))
            assert (status, code) in refused, (method, path, status, code, words)
            # and not another word than about one that never was
            nobodys = "0" * 32 if named == "id" else "nobody"
            assert tried(attacker, method, path, nobodys) == (status, code, words.replace(target, nobodys)), (method, path, words)
        town.untouched(victim)


@pytest.mark.parametrize("who", ["agent", "key"])
def test_head_says_no_more_than_get(town, who):
    """Not by its length either."""
    attacker = town.b if who == "agent" else town.key_b
    for path in sorted(path for method, path in documented() if method == "GET" and judged(method, path) == "own"):
        at, _ = request_of("GET", path, town.box_a.id)
        answer = attacker("HEAD", at)
        if answer.status == 405 and answer.headers["Allow"] == "GET":
            continue        # it goes on
        refused = attacker("GET", at)
        assert refused.status in (403, 404) and answer.status == refused.status, (at, answer)
        assert answer.body == b"" and int(answer.headers["Content-Length"]) == len(refused.body), (at, answer.headers)
    town.untouched(town.box_a)


def test_the_same_name_is_each_ones_own(town):
    assert town.a.get("/v1/sandboxes/work").json["id"] == town.box_a.id
    assert town.b.get("/v1/sandboxes/work").json["id"] == town.box_b.id
    assert town.b.post("/v1/sandboxes/work/exec", {"command": "cat f"}).json["stdout"] == f"of {town.box_b.id}"
    taken = town.b.post("/v1/sandboxes", {"name": "work"})
    assert taken.status == 409, taken
    free = town.b.post("/v1/sandboxes", {"name": "owners"})     # that the owner has one is nobody's business
    assert free.status == 201 and free.json["owner"] == town.box_b.record["owner"], free
    assert town.b("DELETE", "/v1/sandboxes/owners").ok
    town.untouched(town.box_a)
    town.untouched(town.box_owner)


def test_who_takes_anothers_name_gets_nothing_for_it(town):
    """The owner's "work" is over and agent A makes one; then two agents have "shared". A name that was the asker's own, or that several have,
    names none of theirs."""
    owner, secret = town.daemon, {"command": "echo s3cr3t > got; cat got"}
    mine = owner.create(name="builder")
    assert mine.delete().ok
    squatter = town.a.create(name="builder")
    for answer in (owner.post("/v1/sandboxes/builder/exec", secret), owner("PUT", "/v1/sandboxes/builder/files/got", b"s3cr3t"),
                   owner.get("/v1/sandboxes/builder"), owner("DELETE", "/v1/sandboxes/builder"), owner.post("/v1/sandboxes/builder/recover"),
                   owner.post("/v1/sandboxes/builder/key"), owner.post("/v1/sandboxes/builder/pause"),
                   owner.post("/v1/sandboxes/builder/ports", {"port": 8000}), owner("PATCH", "/v1/sandboxes/builder/policy", {})):
        assert (answer.status, answer.json["code"]) == (404, "sandbox.not-found"), answer
    assert squatter.read("got").status == 404 and squatter.show()["state"] == "ready"
    # by its id, and by a name that only it has and had, it is reached
    assert owner.post(f"{squatter.at}/exec", secret).ok
    assert squatter.delete().ok
    first = town.a.create(name="shared")
    assert owner.get("/v1/sandboxes/shared").json["id"] == first.id
    second = town.b.create(name="shared")
    operator = caller(town.daemon, "operator")
    for who in (owner, operator):
        assert who.post("/v1/sandboxes/shared/exec", secret).status == 404 and who("DELETE", "/v1/sandboxes/shared").status == 404
    assert first.read("got").status == second.read("got").status == 404
    assert town.a.get("/v1/sandboxes/shared").json["id"] == first.id and town.b.get("/v1/sandboxes/shared").json["id"] == second.id
    # its own comes first, whoever else has one
    own = operator.create(name="shared")
    assert operator.get("/v1/sandboxes/shared").json["id"] == own.id
    for box in (first, second, own):
        assert box.delete().ok


def test_a_key_is_for_working_in_its_sandbox(town):
    for method, path in sorted(r for r in documented() if judged(*r) == "own" and r not in KEYED):
        assert tried(town.key_b, method, path, town.box_b.id)[:2] == (403, "auth.role"), (method, path)
    town.untouched(town.box_b)
    for method, path in sorted(KEYED):
        at, body = request_of(method, path, town.box_b.id)
        assert town.key_b(method, at, body).status not in (401, 403), (method, at)


@pytest.mark.parametrize("role", ["approver", "auditor"])
def test_who_has_no_sandboxes_changes_none(town, role):
    attacker = caller(town.daemon, role)
    for method, path in sorted(r for r in documented() if judged(*r) == "own"):
        status, code, words = tried(attacker, method, path, town.box_a.id)
        if role == "auditor" and (method, path) in READS:
            assert status == 200, (method, path, status, words)
        else:
            assert (status, code) == (403, "auth.role"), (method, path, status, words)
    town.untouched(town.box_a)


@pytest.mark.parametrize("who", ["agent", "key", "approver", "auditor"])
def test_what_is_about_no_one_sandbox(town, who):
    attacker = {"agent": town.b, "key": town.key_b}.get(who) or caller(town.daemon, who)
    victims = (town.box_a, town.box_owner)
    for method, path in elsewhere():
        about = judged(method, path)
        at, body = request_of(method, path, token(town.daemon, "auditor")["id"])
        if about == DEFAULT:
            for victim in victims:
                for target in (victim.id, "owners"):
                    answer = attacker(method, f"{at}?id={target}", BODIES.get(path, body))
                    if who == "auditor" and method == "GET":
                        continue        # it may know
                    assert not answer.ok or victim.id.encode() not in answer.body, (method, at, answer)
                    assert b'"running":true' not in answer.body and b'"executedInSandbox":true' not in answer.body, (method, at, answer)
            continue
        if (about == MAKE and who == "agent") or about in (MCP, FOLLOWED, VOLUMES, TEMPLATES, E2B):
            continue        # its own: tested above; tool by tool, and event by event, below
        answer = attacker(method, at + "?limit=1000" * (path == "/v1/audit"), BODIES.get(path, body))
        if about == APPROVERS:
            refused = answer.status == 403 and answer.json["code"] == "auth.role"
            assert refused == (who != "approver"), (method, at, answer)
        elif about == NUMBERS and who == "auditor":
            assert answer.ok, (method, at, answer)
        elif about in (OPERATORS, MAKE, NUMBERS) or (about in (LIST, COUNT) and who in ("key", "approver")):
            assert answer.status == 403 and 403 in documented()[method, path], (method, at, answer)
            assert path.startswith("/api") or answer.json["code"] == "auth.role", (method, at, answer)
        elif about == COUNT:        # of those that it may see
            seen = len(attacker.get("/v1/audit?limit=1000").json["entries"])
            assert answer.json["size"] <= seen <= attacker.get(at).json["size"], (method, at, answer, seen)
            assert who == "auditor" or 0 < seen < len(town.daemon.get("/v1/audit?limit=1000").json["entries"]), (method, at, seen)
        elif about == LIST and who == "auditor":
            assert answer.ok and town.box_a.id.encode() in answer.body, (method, at, answer)
        else:
            assert answer.status not in (401, 403), (method, at, answer)
            for victim in victims:
                assert victim.id.encode() not in answer.body, (method, at, answer)
    for victim in victims:
        town.untouched(victim)


ARGUMENTS = {"language": "shell", "code": "touch /workspace/was-here", "file_path": "f", "content": "of another", "path": ".",
             "package": "requests", "registry": "pypi", "port": 8080, "command": "true"}


@pytest.mark.parametrize("who", ["agent", "key", "approver", "auditor"])
def test_no_tool_reaches_anothers_sandbox(town, who):
    attacker = {"agent": town.b, "key": town.key_b}.get(who) or caller(town.daemon, who)
    client = Client(attacker, STATELESS)
    tried = 0
    for name, tool in sorted(client.tools().items()):
        known = tool["inputSchema"]["properties"]
        if "sandbox_id" not in known:
            continue
        for victim in (town.box_a, town.box_owner):
            args = {k: v for k, v in ARGUMENTS.items() if k in known}
            done = client.call(name, sandbox_id=victim.id, **args)
            assert not done["success"] and f"of {victim.id}" not in str(done), (name, done)
            tried += 1
    assert tried >= 12
    if who == "agent":
        assert {b["sandbox_id"] for b in client.call("list_sandboxes")["sandboxes"]} == {town.box_b.id}
    town.untouched(town.box_a)
    town.untouched(town.box_owner)


def test_no_key_outlives_the_token_of_its_sandbox(town):
    """Neither that of a sandbox, nor one that was made a moment before, nor that of one that has stopped."""
    made = token(town.daemon, "agent")
    agent = Caller(town.daemon, Authorization="Bearer " + made["token"])
    living, stopped = agent.create(name="living"), agent.create(name="stopped")
    first = Caller(town.daemon, X_Sandbox_Key=living.record["key"])
    minted = Caller(town.daemon, X_Sandbox_Key=agent.post(f"{living.at}/key").json["key"])
    old = Caller(town.daemon, X_Sandbox_Key=stopped.record["key"])
    assert stopped.delete().ok and old.get(stopped.at).ok
    assert first.get(living.at).status == 401 and minted.post(f"{living.at}/exec", {"command": "true"}).ok
    assert town.daemon("DELETE", f"/v1/tokens/{made['id']}").ok
    for key, box in ((minted, living), (old, stopped)):
        for answer in (key.post(f"{box.at}/exec", {"command": "touch was-here"}), key.get(box.at), key("PUT", box.file("f"), b"x")):
            assert answer.status == 401 and answer.json["code"] == "auth.unknown", answer
    assert agent.get(living.at).status == 401
    assert town.daemon.get(living.at).json["state"] == "ready"      # it stays, for operators
    town.untouched(town.box_a)
    town.untouched(town.box_b)


def test_no_key_outlives_the_time_of_its_sandboxs_token(town):
    agent = town.box_a.record["owner"]
    key_a = Caller(town.daemon, X_Sandbox_Key=town.box_a.record["key"])
    assert key_a.get(town.box_a.at).ok and town.key_b.get(town.box_b.at).ok
    assert town.daemon.stop() == 0, town.daemon.log
    with sqlite3.connect(town.daemon.cloche.state / "cloche" / "serve" / "state.db") as db:
        assert db.execute("UPDATE token SET expires = 1 WHERE id = ?", [agent]).rowcount == 1
    db.close()
    town.daemon.start()
    answer = key_a.get(town.box_a.at)       # its record is there, and so is the token's
    assert answer.status == 401 and answer.json["code"] == "auth.unknown", answer
    assert town.key_b.get(town.box_b.at).ok and town.daemon.get(town.box_a.at).ok


def test_a_session_is_of_the_caller_who_began_it(town):
    mine = Client(town.a)
    for thief in (town.b, town.key_b, caller(town.daemon, "agent"), town.daemon):
        stolen = Client(thief, STATELESS)
        headers = mine.headers()
        for method, body in (("POST", mine.message("tools/list")), ("POST", mine.message("notifications/cancelled", {"requestId": 1}, True)),
                             ("GET", None), ("DELETE", None)):
            answer = stolen.raw(body, headers, method)
            assert answer.status == 404, (method, answer)
    assert "code_execute" in mine.tools()


def test_lists_of_an_agent_are_its_own(town):
    for query in ("", "?state=all", "?prefix=own", "?prefix=work", "?label=of=a", f"?after={town.box_a.id}", "?limit=200"):
        ids = {b["id"] for b in town.b.get("/v1/sandboxes" + query).json["sandboxes"]}
        assert ids <= {town.box_b.id}, (query, ids)
    for query in ("", "?limit=1000"):
        events = town.b.get("/v1/events" + query).json["events"]
        assert {e["sandbox"] for e in events} <= {town.box_b.id}, (query, events)
    for path in ("/v1/events", "/v1/events/stream"):
        for which in (town.box_a.id, "0" * 32):         # which says nothing about whether there is one
            assert town.b.get(f"{path}?sandbox={which}").json["code"] == "sandbox.not-found", (path, which)
    assert town.b.get(f"/v1/events?sandbox={town.box_b.id}").json["events"]


def test_who_asks_does_not_answer(cloche):
    """An approval is given by another credential than the one that asked, of a role that may; others do not see it."""
    daemon = Daemon(cloche, gate=None)
    a, b = caller(daemon, "agent"), caller(daemon, "agent")
    box, other = a.create(), b.create()
    key_a, key_b = (Caller(daemon, X_Sandbox_Key=made.record["key"]) for made in (box, other))
    auditor, approver = caller(daemon, "auditor"), caller(daemon, "approver")
    body = {"command": "echo ran > f"}
    asked = a("POST", f"{box.at}/exec", body, {"Prefer": "respond-async"})
    assert asked.status == 202, asked
    approval, = daemon.get("/v1/approvals").json["approvals"]
    at = f"/v1/approvals/{approval['id']}"
    for who in (a, b, key_a, key_b, auditor):
        for verb in ("approve", "deny"):
            answer = who.post(f"{at}/{verb}", {})
            assert answer.status == 403 and answer.json["code"] == "auth.role", answer
        for method, path in (("GET", "/v1/grants"), ("DELETE", f"/v1/grants/{approval['id']}")):
            assert who(method, path).status == 403, (method, path)
    for who in (b, key_b):
        assert who.get(at).status == 404 and who.get("/v1/approvals").json["approvals"] == [], who.get(at)
    assert approver.get(at).json["state"] == "pending"
    assert daemon.get(f"{box.at}/files/f").status == 404
    assert approver.post(f"{at}/approve", {}).status == 200
    assert approver.post(f"{at}/approve", {}).status == 409       # once
    for who in (b, key_b):      # what was given to one is of no use to another
        assert who.post(f"{box.at}/exec", body).status == 404
    assert b("POST", f"{other.at}/exec", body, {"Prefer": "respond-async"}).status == 202
    assert a.post(f"{box.at}/exec", body).ok and daemon.get(f"{box.at}/files/f").body == b"ran\n"
    assert a("POST", f"{box.at}/exec", body, {"Prefer": "respond-async"}).status == 202       # and it was for once
    assert daemon.stop() == 0, daemon.log


class Followed:
    """/v1/audit/stream as a caller sees it."""

    def __init__(self, who):
        self.connection = who.connection()
        self.connection.request("GET", "/v1/audit/stream", headers=who.headers)
        self.response = self.connection.getresponse()

    def until(self, text):
        """What comes up to the line with that text."""
        heard = b""
        while text not in heard:
            line = self.response.readline()
            assert line, heard
            heard += line
        return heard


def test_who_follows_the_record_follows_its_own(town):
    mine, all_of_it = Followed(town.b), Followed(caller(town.daemon, "auditor"))
    assert mine.response.status == all_of_it.response.status == 200
    for who in (town.key_b, caller(town.daemon, "approver")):
        assert Followed(who).response.status == 403
    for box in (town.box_a, town.box_owner, town.box_b):
        town.daemon.post(f"{box.at}/exec", {"command": [f"marker-{box.id}"]})
    assert f"marker-{town.box_a.id}".encode() in all_of_it.until(f"marker-{town.box_b.id}".encode())
    heard = mine.until(f"marker-{town.box_b.id}".encode())
    assert town.box_a.id.encode() not in heard and town.box_owner.id.encode() not in heard, heard
    # and ends with the credential, at the next event at the latest
    token_id = town.box_b.record["owner"]
    assert town.daemon("DELETE", f"/v1/tokens/{token_id}").ok
    assert town.daemon.post(f"{town.box_b.at}/exec", {"command": "true"}).ok
    try:
        rest = mine.response.read()
    except http.client.IncompleteRead as e:
        rest = e.partial
    assert rest.count(b'"exec"') <= 1, rest


@pytest.mark.parametrize("stream, code", [("/v1/events/stream", "events.too-many"), ("/v1/audit/stream", "audit.followers")])
def test_agents_do_not_take_all_places_of_a_stream(town, stream, code):
    """Not one of them, and not all together: the owner, operators and auditors follow what agents do."""
    held = []

    def follow(who):
        connection = who.connection()
        connection.request("GET", stream, headers=getattr(who, "headers", {}))
        response = connection.getresponse()
        held.append((connection, response))     # open until the end
        return response.status, json.loads(response.read())["code"] if response.status != 200 else None

    assert [follow(town.a) for _ in range(9)] == [(200, None)] * 8 + [(429, code)]
    assert follow(town.b) == (200, None)
    agents = [town.b, *(caller(town.daemon, "agent") for _ in range(6))]
    others = [follow(who) for who in agents for _ in range(8)]
    assert others.count((200, None)) == 48 - 9 and set(others) == {(200, None), (429, code)}, others
    auditor, operator = caller(town.daemon, "auditor"), caller(town.daemon, "operator")
    assert follow(auditor) == follow(operator) == (200, None)
    assert [follow(town.daemon) for _ in range(9)] == [(200, None)] * 9
    for connection, response in held:
        response.close()
        connection.close()


def test_the_default_sandbox_is_each_ones_own(town):
    mine = town.a.post("/api/sandbox/start").json["containerId"]
    others = town.b.post("/api/sandbox/start").json["containerId"]
    owners = town.daemon.post("/api/sandbox/start").json["containerId"]
    assert len({mine, others, owners}) == 3
    for who, box in ((town.a, mine), (town.b, others), (town.daemon, owners)):
        assert who.get("/api/sandbox/status").json["containerId"] == box
        assert who.post("/api/sandbox/exec", {"command": f"touch {box}"}).ok
        assert {e["name"] for e in who.get(f"/v1/sandboxes/{box}/dirs/").json["entries"]} == {box}
    # a key means its own sandbox
    assert town.key_b.get("/api/sandbox/status").json["containerId"] == town.box_b.id
    assert town.b.post("/api/sandbox/stop").ok
    assert town.a.get("/api/sandbox/status").json["containerId"] == mine


def test_an_idempotency_key_is_each_ones_own(town):
    made = {}
    for name, who in (("a", town.a), ("b", town.b), ("owner", town.daemon)):
        answer = who("POST", "/v1/sandboxes", {"name": "same"}, {"Idempotency-Key": "k"})
        assert answer.status == 201, answer
        made[name] = answer.json["id"]
    assert len(set(made.values())) == 3, made


def test_a_credential_that_ends_ends_on_an_open_connection_too(town):
    """Replayed where it was good a moment ago: nothing about a caller is remembered with a connection."""
    made = token(town.daemon, "agent")
    connection = town.daemon.connection()

    def ask(headers):
        connection.request("GET", "/v1/sandboxes", headers=headers)
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read())
    assert ask({"Authorization": f"Bearer {made['token']}"})[0] == 200
    town.daemon("DELETE", f"/v1/tokens/{made['id']}")
    status, said = ask({"Authorization": f"Bearer {made['token']}"})
    assert status == 401 and said["code"] == "auth.unknown", said
    # nor is its absence: the next request is the owner's again, the one after it the key's
    assert ask({})[0] == 200
    assert ask({"X-Sandbox-Key": town.box_b.record["key"]})[0] == 403
    connection.close()


def test_credentials_are_nowhere_to_be_read(town):
    """Not in a record, a list, an event or the environment of a sandbox, and the daemon's log has none."""
    secrets = [town.box_a.record["key"], town.box_b.record["key"], town.b.headers["Authorization"].split()[1]]
    for path in ("/v1/sandboxes?state=all", "/v1/events?limit=1000", "/v1/tokens", town.box_a.at, f"{town.box_a.at}/policy"):
        body = town.daemon.get(path).body
        assert not [s for s in secrets if s[-64:].encode() in body], (path, body)
    inside = Sandbox(town.b, town.box_b.record).exec("env; cat /proc/*/environ /proc/*/cmdline; ls -aR /workspace /home /tmp")
    assert not [s for s in secrets if s[-64:] in inside["stdout"]], inside


def test_over_tcp_nobody_is_the_owner(tcp_town):
    daemon = tcp_town.daemon
    stranger, agent = daemon.remote(), daemon.remote(tcp_town.b.headers["Authorization"].split()[1])
    for (method, path), statuses in sorted(documented().items()):
        at, body = request_of(method, path, tcp_town.box_a.id)
        answer = stranger(method, at, body)
        assert answer.status in statuses, (method, at, answer, statuses)
        if judged(method, path) == ANYBODY:
            assert answer.ok, (method, at, answer)
            continue
        if judged(method, path) == TYPED:
            assert answer.status == 400, (method, at, answer)
            continue
        if path.startswith(("/preview/", "/desktop/ws/")):     # nobody asks for a credential, and this is no capability
            assert answer.status == 404 and answer.json["code"] in ("preview.none", "desktop.address"), (method, at, answer)
            continue
        assert answer.status == 401 and answer.headers["WWW-Authenticate"].startswith("Bearer"), (method, at, answer)
        if judged(method, path) == "own" and not path.endswith("/ws"):
            assert agent(method, at, body).status == 404, (method, at)
    assert agent.get(tcp_town.box_b.at).json["id"] == tcp_town.box_b.id
    assert stranger("GET", tcp_town.box_b.at, headers={"X-Sandbox-Key": tcp_town.box_b.record["key"]}).ok
    tcp_town.untouched(tcp_town.box_a)


def edge_of(pid):
    """Its end of the socket to the warden, as a taken process would use it."""
    pidfd = os.pidfd_open(pid)
    fd = ctypes.CDLL(None, use_errno=True).syscall(438, pidfd, 3, 0)       # pidfd_getfd
    os.close(pidfd)
    assert fd >= 0, os.strerror(ctypes.get_errno())
    edge = socket.socket(fileno=fd)
    edge.settimeout(HANG_GUARD)     # it waits while the socket is full
    return edge


def question(kind, who, payload=b""):
    """A trace and span, a ticket, who asks, and what."""
    return struct.pack(">BBHI25xII", kind, 0, 0, 33 + len(payload), 7_000_000, who) + payload


ASK_STOP_ALL, ASK_TOKEN, HANDLES = 9, 12, 8192


@pytest.mark.root
def test_a_taken_front_of_strangers_is_not_the_owner(tcp_town):
    """It may ask what its clients may, whose handles it has; neither as nobody nor by another front's handle is it more."""
    daemon = tcp_town.daemon
    operator = caller(daemon, "operator")
    assert operator.get("/v1/sandboxes").ok         # which has a handle now, on the other edge
    agent = daemon.remote(tcp_town.b.headers["Authorization"].split()[1])
    assert agent.get("/v1/sandboxes").ok
    fronts = {}
    for pid in daemon.processes("cloche-front"):
        with open(f"/proc/{pid}/cmdline", "rb") as f:
            fronts[b"strangers" in f.read()] = pid
    make = struct.pack(">BBQ", 1, 1, 0) + struct.pack(">I", 5) + b"taken\0"
    # nor by a handle that was another's, or will be: each place of one is tried, with an operator's among them
    assert daemon.remote(operator.headers["Authorization"].split()[1]).get("/v1/sandboxes").ok
    with edge_of(fronts[True]) as edge:
        for who in [0, 1, 2**32 - 1, *range(HANDLES), *range(2 * HANDLES, 3 * HANDLES), *range(1000 * HANDLES, 1001 * HANDLES)]:
            edge.send(question(ASK_STOP_ALL, who))
            edge.send(question(ASK_TOKEN, who, make))
    assert agent.get("/v1/sandboxes").ok            # what went before it on this edge is done with
    assert {t["role"] for t in daemon.get("/v1/tokens").json["tokens"]} == {"agent", "operator"}
    assert "taken" not in {t["name"] for t in daemon.get("/v1/tokens").json["tokens"]}
    for box in (tcp_town.box_a, tcp_town.box_b, tcp_town.box_owner):
        tcp_town.untouched(box)
    # the attack is real: what the owner's front says in its owner's name is done
    with edge_of(fronts[False]) as edge:
        edge.send(question(ASK_TOKEN, 0, make))
    assert "taken" in {t["name"] for t in daemon.get("/v1/tokens").json["tokens"]}


def test_one_tenant_takes_nobody_elses_connections(cloche):
    """Connections whose commands run are not closed for others: of them, and of descriptors, each tenant has a share."""
    files = 640
    daemon = Daemon(cloche.behind("prlimit", f"--nofile={files}:{files}"), "--max-sandboxes", "24", "--max-sandboxes-per-agent", "8", path=cloche.home / "s",
                    tcp=True)
    crowd, victim, operator = (daemon.remote(daemon.token(role)) for role in ("agent", "agent", "operator"))
    box, fronts = victim.create(), sorted(daemon.processes("cloche-front"))
    held = []
    for crowded in [crowd.create() for _ in range(6)]:
        for _ in range(60):
            held.append(crowd.connection())
            held[-1].request("POST", f"/v1/sandboxes/{crowded.id}/exec", body=b'{"command": "sleep 300", "timeout_ms": 300000}', headers=crowd.credential())
            time.sleep(0.002)       # it is read before the next one comes
    assert wait_for(lambda: len(poll(held)) > 200), len(poll(held))
    refused = [c.getresponse() for c in held if c in poll(held)[:20]]
    assert {(r.status, json.loads(r.read())["code"], len(r.msg.get_all("Retry-After"))) for r in refused} == {(503, "http.busy", 1)}
    # the others' requests, many at once, go on as if nobody else were there
    theirs = []
    for _ in range(8):
        theirs.append(victim.connection())
        theirs[-1].request("POST", f"/v1/sandboxes/{box.id}/exec", body=b'{"command": "sleep 1; echo done"}', headers=victim.credential())
    assert [json.loads(c.getresponse().read())["stdout"] for c in theirs] == ["done\n"] * 8
    assert operator.get("/v1/sandboxes").ok and daemon.get("/v1/sandboxes").ok
    assert sorted(daemon.processes("cloche-front")) == fronts
    for c in held + theirs:
        c.close()
    # and what they had is free again
    assert wait_for(lambda: crowd.post("/v1/sandboxes", {"name": "again"}).status == 201)
    assert wait_for(lambda: crowd.post("/v1/sandboxes/again/exec", {"command": "echo back"}).json.get("stdout") == "back\n")
    assert daemon.stop() == 0


def poll(connections):
    """Those on which something has come."""
    asked = select.poll()
    found = {c.sock.fileno(): c for c in connections if c.sock is not None}
    for fd in found:
        asked.register(fd, select.POLLIN)
    return [found[fd] for fd, _ in asked.poll(0)]


def test_one_tenant_pushes_nobody_elses_transcripts_out(cloche):
    """Transcripts are kept by count: who has most of them loses its own."""
    daemon = Daemon(cloche, "--transcript-keep", "5")
    victim, crowd = caller(daemon, "agent"), caller(daemon, "agent")

    def ended(who):
        box = who.create()
        assert box.exec("echo mine")["exit_code"] == 0 and box.delete().ok
        return box

    made = {name: [ended(who) for _ in range(n)] for name, who, n in (("victim", victim, 2), ("owner", daemon, 1), ("crowd", crowd, 8))}
    # nothing was ever run in these
    for _ in range(3):
        assert crowd.create().delete().ok
    folder = cloche.state / "cloche" / "serve" / "transcripts"
    kill_one(daemon, "cloche-scribe")       # the next one looks at once
    assert wait_for(lambda: len(os.listdir(folder)) <= 5)
    left = {name: [b for b in boxes if (folder / f"{b.id}.jsonl").exists()] for name, boxes in made.items()}
    assert left["victim"] == made["victim"] and left["owner"] == made["owner"] and len(os.listdir(folder)) == 5, left
    # whose it is is no entry, and who may read it has not changed
    found = wait_for(lambda: daemon.get(f"/v1/sandboxes/{made['victim'][0].id}/transcript").json.get("entries"))     # the next one is there
    assert [e["event"] for e in found] == ["exec", "output", "result"]
    assert crowd.get(f"/v1/sandboxes/{made['victim'][0].id}/transcript").status == 404
    assert daemon.stop() == 0
