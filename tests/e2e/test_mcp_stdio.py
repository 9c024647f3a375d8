"""cloche mcp: the protocol over stdin and stdout, with the user's daemon or one of its own."""
import json
import os
import signal
import subprocess

import pytest

from helpers import leaks, requirement
from helpers.daemon import answers
from helpers.mcp import META, SESSIONS, STATELESS
from helpers.runner import wait_for

pytestmark = requirement("R62", "R85")


class Session:
    """`cloche mcp` and a client at its ends."""

    def __init__(self, cloche, *flags, version=SESSIONS, gate="off", env=None):
        self.version, self.number = version, 0
        self.process = cloche.popen("mcp", *(["--gate", gate] if gate else []), *flags, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=env or {})
        if version != STATELESS:
            self.initialized = self("initialize", {"protocolVersion": version, "capabilities": {},
                                                   "clientInfo": {"name": "test", "version": "1"}})["result"]
            self.say({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def say(self, message):
        line = message if isinstance(message, bytes) else json.dumps(message).encode()
        self.process.stdin.write(line + b"\n")
        self.process.stdin.flush()

    def hear(self):
        line = self.process.stdout.readline()
        assert line.endswith(b"\n"), (line, self.process.poll(), self.process.stderr.read())
        return json.loads(line)

    def ask(self, method, params=None):
        self.number += 1
        params = dict(params or {})
        if self.version == STATELESS:
            params["_meta"] = {META + "protocolVersion": STATELESS, META + "clientCapabilities": {}, **params.get("_meta", {})}
        self.say({"jsonrpc": "2.0", "id": self.number, "method": method, "params": params})
        return self.number

    def __call__(self, method, params=None):
        number = self.ask(method, params)
        answer = self.hear()
        assert answer["id"] == number, answer
        return answer

    def call(self, tool, **args):
        return self("tools/call", {"name": tool, "arguments": args})["result"]["structuredContent"]

    def end(self):
        """EOF; the exit code. Nothing of it is left."""
        self.process.stdin.close()
        rest = self.process.stdout.read()
        code = self.process.wait(90)
        self.log = self.process.stderr.read().decode()
        assert rest == b"", rest
        return code


def living():
    table = leaks.parents()
    return [what for pid, what in leaks.descendants().items() if pid in table and table[pid][1] not in "ZX"]


def homes(cloche):
    folder = cloche.state / "cloche" / "mcp"
    return list(folder.iterdir()) if folder.exists() else []


@pytest.mark.parametrize("version", [SESSIONS, STATELESS, "2025-03-26"])
def test_a_daemon_of_its_own(cloche, version):
    session = Session(cloche, version=version)
    assert "code_execute" in json.dumps(session("tools/list"))
    assert len(homes(cloche)) == 1
    result = session.call("code_execute", language="python", code="print('caf\u00e9\\0')")
    assert result["stdout"] == "caf\u00e9\0\n" and result["success"], result
    assert session.call("code_execute", language="shell", code="pwd", sandbox_id=result["sandbox_id"])["stdout"] == "/workspace\n"
    assert session.end() == 0, session.log
    assert homes(cloche) == [] and not living(), session.log


def test_the_users_daemon(daemon, cloche):
    session = Session(cloche)
    assert homes(cloche) == []
    box = session.call("create_sandbox", name="mine")["sandbox_id"]
    theirs = daemon.create(name="not-an-agents")
    # it has an agent's rights, not its user's
    assert [b["sandbox_id"] for b in session.call("list_sandboxes")["sandboxes"]] == [box]
    assert session.call("code_execute", language="shell", code="true", sandbox_id=theirs.id)["error_type"] == "sandbox.not-found"
    assert [t["role"] for t in daemon.get("/v1/tokens").json["tokens"]] == ["agent"]
    assert session.end() == 0, session.log
    # what only it could reach ends with it
    assert daemon.state(box) == "stopped" and daemon.state(theirs.id) == "ready" and daemon.get("/v1/tokens").json["tokens"] == []


def test_a_token_from_a_file(daemon, cloche, world):
    made = daemon.post("/v1/tokens", {"role": "agent", "name": "kept"}).json
    file = world.root / "token"
    file.write_text(made["token"] + "\n", encoding="ascii")
    session = Session(cloche, "--token-file", file)
    box = session.call("create_sandbox")["sandbox_id"]
    assert session.end() == 0, session.log
    assert daemon.state(box) == "ready"
    again = Session(cloche, "--token-file", file)
    assert again.call("code_execute", language="shell", code="echo still", sandbox_id=box)["stdout"] == "still\n"
    assert again.end() == 0
    file.write_text("cloche_agent_" + "0" * 64, encoding="ascii")
    refused = Session(cloche, "--token-file", file, version=STATELESS)
    assert refused("tools/list")["error"]["code"] == -32603
    refused.end()


def test_lines_that_are_no_messages(daemon, cloche):
    session = Session(cloche)
    for line, code in ((b"{", -32700), (b"[]", -32600), (b"7", -32700), (b'{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}', -32700),
                       (b"[" * 3000, -32700), (b"x" * (11 << 20), -32600)):
        session.say(line)
        answer = session.hear()
        assert answer["error"]["code"] == code and answer["id"] is None, (line[:50], answer)
    session.say(b"")
    session.say(b'{"jsonrpc":"1.0","id":9,"method":"ping"}')
    assert session.hear()["error"]["code"] == -32600
    assert session("ping")["result"] == {}
    assert session("nothing")["error"]["code"] == -32601
    assert session.end() == 0


def test_calls_run_beside_each_other(daemon, cloche):
    session = Session(cloche)
    box = session.call("create_sandbox")["sandbox_id"]
    waits = session.ask("tools/call", {"name": "code_execute", "arguments": {
        "language": "shell", "sandbox_id": box, "code": "while [ ! -e go ]; do sleep 0.1; done; echo went", "timeout": 600}})
    assert session("ping")["result"] == {}
    writes = session.ask("tools/call", {"name": "code_write_file", "arguments": {"sandbox_id": box, "file_path": "go", "content": ""}})
    answers = {a["id"]: a["result"]["structuredContent"] for a in (session.hear(), session.hear())}
    assert answers[writes]["success"] and answers[waits]["stdout"] == "went\n", answers
    assert session.end() == 0


def sleeps(daemon, box):
    return "1234567" in daemon.post(f"/v1/sandboxes/{box}/exec", {"command": ["sh", "-c", "cat /proc/[0-9]*/cmdline"]}).json["stdout"]


def begin_sleep(session, daemon, box):
    number = session.ask("tools/call", {"name": "code_execute", "_meta": {"progressToken": "p"}, "arguments": {
        "language": "shell", "sandbox_id": box, "code": "echo begun; sleep 1234567", "timeout": 3000}})
    said = session.hear()
    assert said["method"] == "notifications/progress" and said["params"]["message"] == "begun\n", said
    assert wait_for(lambda: sleeps(daemon, box), 60)
    return number


@pytest.mark.parametrize("version", [SESSIONS, STATELESS])
def test_a_cancelled_call_ends_its_run(daemon, cloche, version):
    session = Session(cloche, version=version)
    box = session.call("create_sandbox")["sandbox_id"]
    number = begin_sleep(session, daemon, box)
    params = {"requestId": number}
    if version == STATELESS:
        params["_meta"] = {META + "protocolVersion": STATELESS, META + "clientCapabilities": {}}
    session.say({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params})
    assert wait_for(lambda: not sleeps(daemon, box), 60)
    # whoever cancels hears no more of it
    assert session.end() == 0


@pytest.mark.parametrize("how", ["eof", signal.SIGTERM, signal.SIGKILL])
def test_its_end_is_the_end_of_all(cloche, how):
    session = Session(cloche)
    made = session.call("create_sandbox")
    assert "sandbox_id" in made, made
    box = made["sandbox_id"]
    session.ask("tools/call", {"name": "code_execute", "arguments": {"language": "shell", "sandbox_id": box, "code": "sleep 1234567", "timeout": 3000}})
    if how == "eof":
        session.process.stdin.close()
    else:
        os.kill(session.process.pid, how)
    session.process.wait(90)
    assert wait_for(lambda: not living(), 60)
    if how == signal.SIGKILL:       # its folder is swept by the next one
        assert len(homes(cloche)) == 1
        after = Session(cloche)
        assert len(homes(cloche)) == 1 and after.end() == 0
    assert homes(cloche) == []


INITIALIZE = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
    "protocolVersion": SESSIONS, "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}}
LINES = [json.dumps(m) for m in (INITIALIZE, {"jsonrpc": "2.0", "method": "notifications/initialized"}, {"jsonrpc": "2.0", "id": 2, "method": "tools/list"})]


@pytest.mark.parametrize("text", ["\n".join(LINES) + "\n", "\n".join(LINES), "\r\n".join(LINES) + "\r\n"])
def test_all_lines_at_once(daemon, cloche, text):
    """As `cloche mcp < FILE`: what is for a session waits for it, and is answered though no more will come."""
    result = cloche("mcp", stdin=text)
    answers = [json.loads(line) for line in result.out.splitlines()]
    assert result.code == 0 and result.err == "" and [a["id"] for a in answers] == [1, 2], result
    assert "tools" in answers[1]["result"]


def test_a_line_in_pieces(daemon, cloche):
    session = Session(cloche)
    for byte in b'{"jsonrpc":"2.0","id":"p","method":"ping"}\n':
        session.process.stdin.write(bytes([byte]))
        session.process.stdin.flush()
    assert session.hear() == {"jsonrpc": "2.0", "id": "p", "result": {}}
    assert session.end() == 0


def test_nobody_reads(daemon, cloche):
    """A client that takes no answers can still end it, and its calls."""
    session = Session(cloche)
    box = session.call("create_sandbox")["sandbox_id"]
    number = begin_sleep(session, daemon, box)
    for _ in range(40):
        session.ask("tools/list")       # more than a pipe holds
    session.say({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": number}})
    assert wait_for(lambda: not sleeps(daemon, box), 60)
    session.process.terminate()
    assert session.process.wait(90) == 0
    assert daemon.get("/v1/tokens").json["tokens"] == []


def test_a_reader_that_goes(daemon, cloche):
    session = Session(cloche, gate=None)
    session.process.stdout.close()
    assert session.process.wait(90) == 0 and session.process.stderr.read() == b""


def test_a_session_that_the_daemon_forgot(daemon, cloche):
    """The daemon's sessions end with its front; a client of ours has begun once and cannot know."""
    session = Session(cloche)
    box = session.call("create_sandbox")["sandbox_id"]
    for _ in range(2):
        front = daemon.processes("cloche-front")
        leaks.kill(front)
        assert wait_for(lambda old=front: daemon.processes("cloche-front") not in ([], old), 60) and answers(daemon)
        numbers = [session.ask("tools/call", {"name": "code_execute", "arguments": {"language": "shell", "sandbox_id": box, "code": "echo ran"}})
                   for _ in range(5)]
        heard = [session.hear() for _ in numbers]
        assert sorted(h["id"] for h in heard) == numbers, heard
        assert all(h["result"]["structuredContent"]["stdout"] == "ran\n" for h in heard), heard
    assert session.end() == 0


def test_its_own_daemons_end(cloche):
    """A client is to see that its server has ended, and can start it anew."""
    session = Session(cloche)
    leaks.kill([pid for pid, (parent, _, _) in leaks.parents().items() if parent == session.process.pid])
    assert session.process.wait(90) == 125 and wait_for(lambda: not living(), 60)
    assert b"mcp.daemon" in session.process.stderr.read() and homes(cloche) == []


def test_approvals_of_its_own_daemon(cloche):
    """What a result says is to be typed does it, with the daemon that nobody has named."""
    session = Session(cloche, gate=None)
    run = {"language": "shell", "code": "echo ran"}
    told = session.call("code_execute", **run)
    which = told["approval_id"]
    assert f"cloche approvals approve {which}" in told["error"], told
    assert cloche("approvals").out.startswith(which[:8])
    assert which in cloche("approvals", "show", which[:8]).out
    approved = cloche("approvals", "approve", which)
    assert approved.code == 0, approved
    assert session.call("code_execute", **run)["stdout"] == "ran\n"
    assert cloche("approvals", "deny", "0123abcd").code != 0
    assert session.end() == 0
    assert cloche("approvals").out == ""


def test_what_its_own_daemon_gives(cloche, world):
    """--settings are for its own daemon: without any an agent's sandbox has no network, whoever asks for it."""
    wants = {"network_enabled": True, "allowed_domains": ["example.org"]}
    session = Session(cloche)
    assert session.call("create_sandbox", **wants)["error_type"] == "policy.ceiling"
    assert session.end() == 0
    file = world.root / "settings.yaml"
    file.write_text("network: {mode: allowlist, allow: [example.org]}\n", encoding="ascii")
    session = Session(cloche, "--settings", file)
    assert session.call("create_sandbox", **wants)["network"] == "allowlist"
    assert session.call("create_sandbox", network_enabled=True, allowed_domains=["example.net"])["error_type"] == "policy.ceiling"
    # what is refused explicitly is not there, whatever the settings give
    assert session.call("create_sandbox")["network"] == "allowlist"
    assert session.call("create_sandbox", network_enabled=False)["network"] == "none"
    assert session.end() == 0


def test_flags_that_are_for_a_daemon_of_its_own(daemon, cloche):
    session = Session(cloche, gate="off")
    assert session.end() == 0 and "warning" in session.log and "--gate" in session.log, session.log
    session = Session(cloche, gate=None)
    assert session.end() == 0 and session.log == ""


def test_a_daemon_that_was_named_is_not_made(cloche):
    result = cloche("mcp", "--socket", cloche.state / "none.sock", stdin="")
    assert result.code != 0 and "api.down" in result.err and result.out == "" and homes(cloche) == [], result
