"""A page of a browser that runs a command over a WebSocket: its credential is a subprotocol (docs/daemon.md)."""
import socket

import pytest

from helpers import requirement
from helpers.daemon import Daemon, caller, token
from helpers.websocket import Command, WebSocket

pytestmark = [requirement("R87"), requirement("R12")]


@pytest.fixture
def daemon(cloche):
    made = Daemon(cloche, tcp=True)
    yield made
    assert made.stop() == 0, made.log


def over(daemon, box, *headers):
    return WebSocket(socket.create_connection(daemon.addresses()[0]), f"{box.at}/exec/ws", headers=headers)


def offers(*words):
    return f"Sec-WebSocket-Protocol: {', '.join(words)}"


def code_of(ws):
    return ws.status, ws.refusal()["code"]


def test_a_page_says_its_credential_where_it_can(daemon):
    """A browser's WebSocket has no Authorization: the credential is a subprotocol, and the answer names the other one."""
    box = daemon.create()
    said = token(daemon, "operator")
    person = daemon.remote(said["token"])
    ws = over(daemon, box, offers("cloche.exec", f"cloche.bearer.{said['token']}"))
    assert ws.status == 101 and "\r\nsec-websocket-protocol: cloche.exec\r\n" in ws.head.lower(), ws.head
    command = Command.over(ws, ["cat"], pty={"rows": 24, "cols": 80})
    assert daemon("DELETE", f"/v1/tokens/{said['id']}").ok
    last = command.end()
    assert last.get("code") == "auth.ended", last
    assert person.get("/v1/sandboxes").status == 401
    agent, key = caller(daemon, "agent").headers["Authorization"].split()[1], box.record["key"]
    for words, want in ((["cloche.exec"], (401, "auth.required")), (["cloche.exec", "cloche.bearer."], (401, "auth.malformed")),
                        (["cloche.exec", "cloche.bearer.x"], (401, "auth.malformed")), (["cloche.exec", "cloche.bearer." + agent], (404, "sandbox.not-found")),
                        (["cloche.bearer." + agent, "cloche.bearer." + key], (401, "auth.malformed")), (["CLOCHE.BEARER." + key], (401, "auth.required")),
                        (["cloche.bearer.cloche_operator_" + "0" * 64], (401, "auth.unknown"))):
        assert code_of(over(daemon, box, offers(*words))) == want, words
    assert code_of(over(daemon, box, f"Authorization: Bearer {key}", offers("cloche.bearer." + key))) == (401, "auth.malformed")
    assert code_of(over(daemon, box, offers("cloche.bearer." + key), offers("cloche.exec"))) == (401, "auth.malformed")
    assert code_of(over(daemon, box, offers("cloche.bearer." + key), "Origin: https://evil.example.org")) == (403, "http.origin")
    ws = over(daemon, box, offers("cloche.bearer." + key), "Origin: http://localhost")
    assert ws.status == 101 and "sec-websocket-protocol" not in ws.head.lower(), ws.head
    ws.close()
    # and nowhere else
    remote = daemon.remote()
    operator = daemon.token()
    for path in ("/v1/sandboxes", box.at, f"{box.at}/desktop/view"):
        said = remote("GET", path, None, {"Sec-WebSocket-Protocol": f"cloche.bearer.{operator}"})
        assert (said.status, said.json["code"]) == (401, "auth.required"), (path, said)
