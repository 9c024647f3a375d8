"""cloche gate, and cloche approvals for what waits in cloche serve."""
import json
import threading

import pytest

from helpers import requirement
from helpers.daemon import Daemon, caller
from helpers.runner import wait_for

pytestmark = requirement("R63")

ASYNC = {"Prefer": "respond-async"}


def test_why_says_what_the_built_in_rules_do(cloche):
    result = cloche("gate", "why", "--tool", "code_execute", "--params", '{"code": "x; rm -rf y"}')
    assert result.ok and result.out.startswith("asked: CRITICAL, rule code-dangerous") and "30 s" in result.out, result
    verdict = json.loads(cloche("gate", "why", "--tool=code_destroy_sandbox", "--json").out)
    assert verdict == {"version": 1, "verdict": "allow", "risk": "LOW", "rule": "destroy", "description": "The end of a sandbox, of a volume or of a template",
                       "timeout": 120, "unsure": False}, verdict
    assert "none is about this tool" in cloche("gate", "why", "--tool", "x").out
    assert "HIGH" in cloche("gate", "why", "--tool", "code_execute", "--params", "-", stdin=b'{"code": "print(1)"}').out


def test_check_and_why_read_the_daemons_configuration_too(cloche, tmp_path):
    config = tmp_path / "serve.yaml"
    config.write_text("max-sandboxes: 3\ngate:\n  defaults: false\n  auto-approve: [MEDIUM]\n  rules:\n"
                      "    - {name: all, tools: ['*'], risk: HIGH, timeout: 5}\n")
    result = cloche("gate", "check", str(config))
    assert result.ok and "1 rules" in result.out and "MEDIUM" in result.out, result
    assert "denied after 5 s" in cloche("gate", "why", "--gate", str(config), "--tool", "x").out
    config.write_text("gate: off\n")
    assert "off" in cloche("gate", "check", str(config)).out


@pytest.mark.parametrize("words, code", [
    ([], "cli.gate.verb"), (["check"], "cli.gate.verb"), (["check", "/nowhere"], "gate.read"), (["why"], "cli.gate.verb"),
    (["why", "--tool", "a b"], "gate.tool"), (["why", "--tool", "x", "--params", "["], "gate.params"), (["why", "--tool"], "cli.flag-value"),
    (["why", "--tool", "x", "--params", "[]"], "gate.params"), (["what"], "cli.gate.verb"), (["check", "--what", "x"], "cli.unknown-flag")])
def test_wrong_usage(cloche, words, code):
    result = cloche("gate", *words)
    assert result.code == 125 and f"[{code}]" in result.err, result


@pytest.fixture
def daemon(cloche):
    d = Daemon(cloche, gate=None)
    yield d
    d.stop()


def test_approvals_shows_and_decides_what_waits_in_the_daemon(daemon, cloche):
    agent = caller(daemon, "agent", name="builder")
    box = agent.create()
    assert "builder" not in cloche("approvals").out
    answers = []
    t = threading.Thread(target=lambda: answers.append(agent.post(f"{box.at}/exec", {"command": "echo one\necho two"})))
    t.start()
    wait_for(lambda: "builder" in cloche("approvals").out)
    listed = cloche("approvals", "ls")
    short = listed.out.split()[0]
    assert "HIGH" in listed.out and "    echo one\n    echo two\n" in listed.out and "s left" in listed.out, listed
    (one,) = json.loads(cloche("approvals", "--json").out)["approvals"]
    shown = cloche("approvals", "show", short)
    assert one["digest"] in shown.out and one["id"] in shown.out and box.id in shown.out and "Code execution" in shown.out, shown
    assert json.loads(cloche("approvals", "show", one["id"], "--json").out)["id"] == one["id"]
    done = cloche("approvals", "approve", short, "--reason", "why not")
    assert done.ok, done
    t.join()
    assert answers[0].status == 200 and answers[0].json["stdout"] == "one\ntwo\n", answers
    gone = cloche("approvals", "deny", short)
    assert gone.code == 125 and "cli.approvals.gone" in gone.err, gone
    assert json.loads(cloche("approvals", "show", one["id"], "--json").out)["reason"] == "why not"


def test_scopes_and_their_ends(daemon, cloche):
    agent = caller(daemon, "agent")
    box = agent.create()
    told = agent("POST", f"{box.at}/exec", {"command": "echo 1"}, ASYNC).json
    for words, code in ((["--always"], "cli.approvals.scope"), (["--caller"], "gate.scope"), (["--expires", "soon", "--caller"], "cli.approvals.expires"),
                        (["--expires"], "cli.flag-value")):
        refused = cloche("approvals", "approve", told["approval"], *words)
        assert refused.code == 125 and f"[{code}]" in refused.err, (words, refused)
    assert cloche("approvals", "approve", told["approval"], "--caller", "--expires", "1h").ok
    assert box.exec("echo 2")["stdout"] == "2\n"
    told = agent("PUT", f"{box.at}/files/x", b"", ASYNC).json
    assert json.loads(cloche("approvals", "deny", told["approval"], "--json", "--reason", "no").out)["state"] == "denied"


def test_an_agents_token_decides_nothing_by_the_verb_either(daemon, cloche):
    agent = caller(daemon, "agent")
    box = agent.create()
    told = agent("POST", f"{box.at}/exec", {"command": "echo 1"}, ASYNC).json
    refused = cloche("approvals", "approve", told["approval"], env={"CLOCHE_TOKEN": agent.headers["Authorization"].split()[1]})
    assert refused.code == 125 and "[auth.role]" in refused.err, refused


def test_without_a_daemon_there_is_nothing_of_it(cloche):
    assert json.loads(cloche("approvals", "--json").out) == {"version": 1, "questions": [], "approvals": []}
    must = cloche("approvals", "--socket", "/nowhere/at/all")
    assert must.code == 125 and "[api.down]" in must.err, must
