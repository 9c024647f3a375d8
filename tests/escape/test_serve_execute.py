"""Files that a call of POST /v1/execute brings along, as a way round the gate, out of the workspace, or to be left behind."""
import pytest

from helpers import requirement
from helpers.approvals import ASYNC, Asking, one_pending, pending
from helpers.daemon import Daemon, answers, caller, kill_one
from helpers.runner import wait_for

pytestmark = [requirement("R63"), requirement("R68")]
PROGRAM, TEXT = "#!/bin/sh\necho ran\n", "plain words\n"


def wanted(*files, code="true"):
    return {"language": "shell", "code": code, "files": [{"path": path, "content": content} for path, content in files]}


def none_lives(daemon):
    return wait_for(lambda: not daemon.get("/v1/sandboxes").json["sandboxes"], 60)


@pytest.fixture
def lenient(cloche):
    """Code is run unasked, and text is written; programs are not."""
    rules = cloche.cwd / "gate.yaml"
    rules.write_text("gate:\n  auto-approve: [LOW, MEDIUM]\n  rules:\n    - {name: free-code, tools: [code_execute], risk: LOW}\n", encoding="ascii")
    daemon = Daemon(cloche, gate=rules)
    yield daemon
    assert daemon.stop() == 0


@pytest.mark.parametrize("files", [[("x", PROGRAM)], [("x", TEXT), ("y", PROGRAM)], [("x.sh", TEXT)], [("x", "\x7fELF\2\1\1")]],
                         ids=["alone", "behind another", "by its name", "elf"])
def test_a_program_among_them_is_asked_about(lenient, files):
    agent = caller(lenient, "agent")
    assert agent.post("/v1/execute", wanted(("x", TEXT), code="cat x")).json["stdout"] == TEXT
    told = agent("POST", "/v1/execute", wanted(*files), ASYNC)
    assert told.status == 202 and told.json["risk"] == "HIGH", told
    assert lenient.post(told.json["url"] + "/deny", {"reason": "no"}).ok
    assert agent("POST", "/v1/execute", wanted(*files), ASYNC).status == 403
    assert none_lives(lenient)


def test_what_is_too_long_to_be_asked_about_at_once_is_asked_about_in_parts(lenient):
    """Above 60 KiB of code nobody is asked about the call: its code and each file are, by themselves."""
    agent = caller(lenient, "agent")
    asking = Asking(agent, "POST", "/v1/execute", wanted(("x", TEXT), ("y", PROGRAM), code="sh y #" + "x" * 70000))
    asked = one_pending(lenient)
    assert asked["tool"] == "code_write_file" and asked["params"]["file_path"] == "y", asked
    assert lenient.post(f"/v1/approvals/{asked['id']}/deny", {"reason": "no"}).ok
    assert asking.wait().status == 403 and "files[1] (y)" in asking.answer.json["error"], asking.answer
    assert none_lives(lenient) and not pending(lenient)


def test_a_path_leads_nowhere_else(daemon):
    for path in ("../etc/x", "/etc/x", "a/../../x", "..", "/", "a/./b", "~/../x\n", "C:/../x"):
        assert daemon.post("/v1/execute", wanted((path, "x"))).status == 400, path
    # what looks like a way out and is none is a name
    said = daemon.post("/v1/execute", wanted(("..x", "1"), ("...", "2"), ("~", "3"), ("$HOME", "4"), ("%2e%2e", "5"), ("..\\x", "6"), code="ls -A | wc -l"))
    assert said.json["stdout"].strip() == "6", said
    assert none_lives(daemon)


def test_nothing_is_left_when_who_asked_for_it_dies(daemon):
    """The process that reads what strangers say; the warden does not wait for the sandbox to be idle."""
    asking = Asking(daemon, "POST", "/v1/execute", {"language": "shell", "code": "sleep 1000", "files": [{"path": "x", "content": "x"}]})
    assert wait_for(lambda: [s for s in daemon.get("/v1/sandboxes").json["sandboxes"] if s["state"] == "ready"], 60)
    kill_one(daemon, "cloche-front")
    assert answers(daemon) and wait_for(lambda: not daemon.get("/v1/sandboxes").json["sandboxes"], 30), asking.answer
    assert "who asked for it is gone" in str(daemon.get("/v1/events").json["events"])
