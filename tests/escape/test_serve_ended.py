"""What goes on in the name of a credential ends with it: commands, streams, uploads, watches, what waits for approval."""
import http.client
import json
import threading
import time
import types

import pytest

from helpers import requirement
from helpers.daemon import UPLOAD_SEEN, Caller, Daemon, Sandbox, caller, token
from helpers.mcp import Client
from helpers.runner import wait_for
from helpers.websocket import Command, WebSocket

pytestmark = requirement("R23", "R61")

LARGE = 256 * 1024 * 1024


class Open:
    """A request whose answer is read later, or is not there yet; @later: so much of its body is sent then."""

    def __init__(self, box, method, path, headers=(), body=b"", later=0):
        self.connection = box.daemon.connection()
        self.connection.putrequest(method, path)
        for name, value in {**box.daemon.credential(), **dict(headers), "Content-Length": str(len(body) + later)}.items():
            self.connection.putheader(name, value)
        self.connection.endheaders(body)
        self.response, self.later = None, later

    def begun(self):
        self.response = self.connection.getresponse()
        assert self.response.status == 200, self.response.read()
        return self

    def end(self):
        """(status, the rest, whether it came whole)"""
        if self.later > 0:
            self.connection.send(b"x" * self.later)
        self.response = self.response or self.connection.getresponse()
        try:
            rest, whole = self.response.read(), True
        except http.client.IncompleteRead as e:
            rest, whole = e.partial, False
        self.connection.close()
        return self.response.status, rest, whole


def is_refused(status, body):
    assert status == 401 and json.loads(body)["code"] == "auth.ended", (status, body)


def is_told(body):
    """An event stream's last word."""
    assert body.rstrip().endswith(b"}") and b'"auth.ended"' in body.rsplit(b"event: error", 1)[-1], body[-500:]


def waits(box):
    """A command whose client waits for all of it."""
    o = Open(box, "POST", f"{box.at}/exec", body=json.dumps({"command": "echo $$ > pid; exec sleep 1000"}).encode())
    return lambda: is_refused(*o.end()[:2])


def streams(box):
    o = Open(box, "POST", f"{box.at}/exec", {"Accept": "text/event-stream"},
             body=json.dumps({"command": "while :; do echo more; sleep 0.1; done"}).encode()).begun()
    return lambda: is_told(o.end()[1])


def is_live(box):
    c = Command.over(WebSocket(box.daemon.path, f"{box.at}/exec/ws", headers=[f"{k}: {v}" for k, v in box.daemon.credential().items()]), "cat")
    c.ws.stdin("hello\n")
    c.until("hello\n")

    def check():
        last = c.end()
        assert (last["type"], last["code"], c.code) == ("error", "auth.ended", 1008), last
    return check


def watches(box):
    o = Open(box, "GET", f"{box.at}/watch").begun()
    assert o.response.readline() == b"event: watching\n"
    return lambda: is_told(o.end()[1])


def follows(box):
    made = box.daemon.post(f"{box.at}/exec", {"command": "while :; do echo more; sleep 0.1; done", "background": True})
    assert made.status == 202, made
    o = Open(box, "GET", f"{box.at}/exec/{made.json['exec_id']}/stream").begun()
    assert o.response.readline()
    return lambda: is_told(o.end()[1])


def writes(box):
    made = box.daemon.post(f"{box.at}/exec", {"command": "sleep 1000", "background": True, "stdin": True})
    assert made.status == 202, made
    o = Open(box, "POST", f"{box.at}/exec/{made.json['exec_id']}/stdin", body=b"x" * 65536, later=1048576)
    return lambda: is_refused(*o.end()[:2])


def uploads(box):
    o = Open(box, "PUT", box.file("up"), body=b"x" * (UPLOAD_SEEN + 1), later=UPLOAD_SEEN)
    return lambda: is_refused(*o.end()[:2])


def downloads(box):
    assert box.exec(f"truncate -s {LARGE} large")["exit_code"] == 0
    o = Open(box, "GET", box.file("large")).begun()
    assert o.response.read(1000) == b"\0" * 1000

    def check():
        _, rest, whole = o.end()
        assert not whole and len(rest) < LARGE // 2, len(rest)
    return check


KINDS = (waits, streams, is_live, watches, follows, writes, uploads, downloads)


def revoked(daemon):
    made = token(daemon, "agent")
    agent = Caller(daemon, Authorization=f"Bearer {made['token']}")
    return agent.create(), lambda: daemon("DELETE", f"/v1/tokens/{made['id']}").ok


def over(daemon):
    made = token(daemon, "agent", expires=20)
    agent = Caller(daemon, Authorization=f"Bearer {made['token']}")
    return agent.create(), lambda: True


def replaced(daemon):
    """The key of an owner's sandbox."""
    record = daemon.post("/v1/sandboxes", {}).json
    return (Sandbox(Caller(daemon, X_Sandbox_Key=record["key"]), record),
            lambda: daemon.post(f"/v1/sandboxes/{record['id']}/key").ok)


def orphaned(daemon):
    """A key whose sandbox's token is revoked."""
    made = token(daemon, "agent")
    record = Caller(daemon, Authorization=f"Bearer {made['token']}").post("/v1/sandboxes", {}).json
    return (Sandbox(Caller(daemon, X_Sandbox_Key=record["key"]), record),
            lambda: daemon("DELETE", f"/v1/tokens/{made['id']}").ok)


def operations(daemon, box):
    usage = daemon.get(f"{box.at}/usage")
    assert usage.ok, usage
    return usage.json["usage"][0]["operations"]


@pytest.mark.parametrize("way", [revoked, over, replaced, orphaned], ids=lambda f: f.__name__)
def test_what_goes_on_ends_with_its_credential(daemon, way):
    """Everything that one credential can have open; what others have goes on."""
    box, end = way(daemon)
    own = Sandbox(daemon, box.record)
    others = own.stream("cat go; while ! [ -e stop ]; do sleep 0.05; done; echo mine")
    checks = [kind(box) for kind in KINDS]
    assert wait_for(lambda: own.read("pid").ok, 60)
    pid = int(own.read("pid").body)
    assert end()
    for check in checks:
        check()
    # what nobody waits for goes on, and belongs to the sandbox: two commands in the background
    assert [c["state"] for c in daemon.get(f"{box.at}/exec").json["commands"]] == ["running"] * 2
    assert wait_for(lambda: operations(daemon, box) == 3, 60), operations(daemon, box)
    assert own.exec(f"test -e /proc/{pid} || echo gone")["stdout"] == "gone\n"
    assert own.put("stop", b"").ok
    assert [data["data"] for name, data in others if name == "stdout"] == ["mine\n"]


FOLLOWED = ("/v1/events/stream", "/v1/events/stream?after=0", "/v1/audit/stream", "/v1/audit/stream?after=1", "/v1/approvals/stream", "/mcp")


@pytest.mark.parametrize("expires", [0, 3], ids=["revoked", "over"])
def test_what_is_followed_ends_with_its_last_word(daemon, expires):
    """Events, the record, approvals, a session's stream of MCP: nothing happens on them, and each says that it ends, and why, and ends whole."""
    made = token(daemon, "operator", **({"expires": expires} if expires else {}))
    operator = Caller(daemon, Authorization=f"Bearer {made['token']}")
    stays = caller(daemon, "operator")
    streams_of = {who: [Open(types.SimpleNamespace(daemon=who), "GET", path, Client(who).headers() if path == "/mcp" else {}).begun()
                        for path in FOLLOWED] for who in (operator, stays)}
    assert expires or daemon("DELETE", f"/v1/tokens/{made['id']}").ok
    for path, o in zip(FOLLOWED, streams_of[operator]):
        o.connection.sock.settimeout(20)
        _, rest, whole = o.end()
        is_told(rest)
        assert whole, path
    for path, o in zip(FOLLOWED, streams_of[stays]):
        o.connection.sock.settimeout(0.5)
        with pytest.raises(TimeoutError):
            while o.response.readline():
                pass
        o.connection.close()


def test_a_websocket_that_has_not_begun(daemon):
    """It was let through, and what it begins is not: its close says why."""
    for expires in (0, 2):
        made = token(daemon, "agent", **({"expires": expires} if expires else {}))
        box = Caller(daemon, Authorization=f"Bearer {made['token']}").create()
        ws = WebSocket(daemon.path, f"{box.at}/exec/ws", headers=[f"{k}: {v}" for k, v in box.daemon.credential().items()])
        if expires:
            time.sleep(expires + 0.5)
        else:
            assert daemon("DELETE", f"/v1/tokens/{made['id']}").ok
        c = Command.over(ws, "touch /workspace/did")
        last = c.end()
        assert (last["type"], last["code"], c.code) == ("error", "auth.ended", 1008), last
        assert daemon.get(f"{box.at}/files/did").status == 404


def test_anothers_end_ends_nothing(daemon):
    """Two credentials of one sandbox, and those of two: one ends."""
    made, stays = token(daemon, "agent"), caller(daemon, "agent")
    record = Caller(daemon, Authorization=f"Bearer {made['token']}").post("/v1/sandboxes", {}).json
    operator = Sandbox(caller(daemon, "operator"), record)
    commands = [box.stream("until [ -e /workspace/stop ]; do sleep 0.05; done; echo mine") for box in (operator, stays.create())]
    assert daemon("DELETE", f"/v1/tokens/{made['id']}").ok
    for box in (operator, Sandbox(daemon, stays.get("/v1/sandboxes").json["sandboxes"][0])):
        assert box.put("stop", b"").ok
    for c in commands:
        assert [data.get("data", data.get("exit_code")) for _, data in c] == ["mine\n", 0]


def test_what_waits_for_approval_is_denied(cloche):
    daemon = Daemon(cloche, gate=None)
    made = token(daemon, "agent")
    agent = Caller(daemon, Authorization=f"Bearer {made['token']}")
    box, answer = agent.create(), []
    thread = threading.Thread(target=lambda: answer.append(agent.post(f"{box.at}/exec", {"command": "touch /workspace/did"})))
    thread.start()
    assert wait_for(lambda: [a["state"] for a in daemon.get("/v1/approvals?state=pending").json["approvals"]] == ["pending"], 60)
    approval = daemon.get("/v1/approvals").json["approvals"][0]["id"]
    assert daemon("DELETE", f"/v1/tokens/{made['id']}").ok
    thread.join()
    is_refused(answer[0].status, answer[0].body)
    assert daemon.get(f"/v1/approvals/{approval}").json["state"] == "denied"
    assert daemon.post(f"/v1/approvals/{approval}/approve").status == 409
    assert daemon.get(f"{box.at}/files/did").status == 404
    assert daemon.stop() == 0, daemon.log
