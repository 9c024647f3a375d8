"""Files that a call of POST /v1/execute brings along, as a way round the gate, out of the workspace, or to be left behind."""
import time

import pytest

from helpers import requirement
from helpers.approvals import ASYNC, Asking, one_pending, pending
from helpers.daemon import Caller, Daemon, answers, caller, kill_one, token
from helpers.mcp import Client
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
    daemon.gate_file = rules
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


@pytest.mark.parametrize("headers", [{}, ASYNC], ids=["waits", "would not wait"])
def test_what_is_too_long_to_be_asked_about_at_once_is_asked_about_in_parts(lenient, headers):
    """Above 60 KiB of code nobody is asked about the call: its code and each file are, by themselves. Whoever does not wait waits too: an
    approval for a sandbox that is gone is for nothing."""
    agent = caller(lenient, "agent")
    asking = Asking(agent, "POST", "/v1/execute", wanted(("x", TEXT), ("y", PROGRAM), code="sh y #" + "x" * 70000), headers)
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


@pytest.mark.parametrize("events", [False, True], ids=["whole", "events"])
@pytest.mark.parametrize("expires", [0, 5], ids=["revoked", "over"])
@pytest.mark.parametrize("role", ["agent", "operator"])
def test_nothing_is_left_when_its_credential_ends(daemon, role, expires, events):
    """What the code left running neither: nobody can reach that sandbox, and it is not idle for a minute before it ends."""
    made = token(daemon, role, **({"expires": expires} if expires else {}))
    asking = Asking(Caller(daemon, Authorization=f"Bearer {made['token']}"), "POST", "/v1/execute",
                    {"language": "shell", "code": "setsid sleep 1000 & exec sleep 1000"}, {"Accept": "text/event-stream"} if events else {})
    assert wait_for(lambda: [s for s in daemon.get("/v1/sandboxes").json["sandboxes"] if s["state"] == "ready"], 60)
    assert expires or daemon("DELETE", f"/v1/tokens/{made['id']}").ok
    answer = asking.wait()
    assert b'"auth.ended"' in answer.body, answer
    assert wait_for(lambda: not daemon.get("/v1/sandboxes").json["sandboxes"], 20), daemon.get("/v1/sandboxes")


def back(daemon, code, patterns=("**",), **more):
    answer = daemon.post("/v1/execute", {"language": "shell", "code": code, "collect": list(patterns), **more})
    assert answer.status == 200, answer
    return {f["path"]: f for f in answer.json["files"]}, answer.json["files_truncated"]


def test_what_is_no_file_does_not_come_back(daemon):
    """Links lead nowhere, whatever they name, nor does what a read would wait for."""
    code = ("ln -s /etc/passwd link; ln -s /etc dir; ln -s . loop; ln -s ../../../../etc/passwd up; mkfifo fifo; mkdir d; ln -s ../real d/inside; "
            "echo r > real; python3 -c 'import socket; socket.socket(socket.AF_UNIX).bind(\"sock\")'; echo s > shut; chmod 0 shut")
    found, cut = back(daemon, code, ["**", "link", "dir/passwd", "loop/real", "up", "fifo", "sock"])
    assert set(found) <= {"real", "shut"} and found["real"]["content"] == "r\n" and not cut, found
    assert none_lives(daemon)


def test_more_than_there_is_room_for_is_cut_and_said(daemon):
    found, cut = back(daemon, "i=0; while [ $i -lt 100 ]; do echo x > f$i; i=$((i+1)); done")
    assert len(found) == 64 and cut, len(found)
    found, cut = back(daemon, "truncate -s 3000000000 big; head -c 2000000 /dev/zero | tr '\\0' x > text")
    assert cut and all(f["truncated"] for f in found.values()) and len(found["text"]["content"]) == 1 << 20, [len(str(f)) for f in found.values()]
    found, cut = back(daemon, "for i in 1 2 3 4 5 6 7 8 9; do head -c 1000000 /dev/urandom > r$i; done")
    assert cut and 8 <= len(found) <= 9, len(found)
    assert back(daemon, "i=0; while [ $i -lt 300 ]; do mkdir d$i; i=$((i+1)); done")[1]
    deep, cut = back(daemon, "i=0; while [ $i -lt 30 ]; do mkdir $(printf %0100d 1) && cd $(printf %0100d 1) && echo x > x; i=$((i+1)); done")
    assert cut and 4 <= len(deep) < 10, len(deep)
    assert none_lives(daemon)


def test_a_million_names_stop_nobody(daemon):
    found, cut = back(daemon, "echo x > x; mkdir many; seq -f many/%06.0f 20000 | xargs touch", ["many/*", "x"])
    assert cut and found["x"]["content"] == "x\n", len(found)
    assert none_lives(daemon)


def test_a_file_that_grows_and_names_that_change_while_they_are_read(daemon):
    code = ("(while :; do printf %065536d 1 >> grows; done) >/dev/null 2>&1 & (while :; do rm -f t; ln -s /etc/passwd t; rm -f t; mkfifo t; rm t; echo x > t; done) >/dev/null 2>&1 &"
            " (while :; do rm -rf w; ln -s /etc w; rm w; mkdir w; echo x > w/passwd; done) >/dev/null 2>&1 & sleep 0.3")
    for _ in range(10):
        found, _cut = back(daemon, code, ["grows", "t", "w/*"], limits={"disk": "64m"})
        assert "root:" not in str(found) and len(found.get("grows", {}).get("content", "")) <= 1 << 20, str(found)[:2000]
    assert none_lives(daemon)


def test_names_that_are_no_text_come_back_as_what_they_are(daemon):
    found, _ = back(daemon, "printf x > $(printf 'a\\377'); printf y > \"$(printf 'b\\nc')\"; printf z > '..\\\\w'")
    assert {f.get("path_base64") for f in found.values()} == {"Yf8=", None} and found["b\nc"]["content"] == "y" and len(found) == 3, found
    assert none_lives(daemon)


def test_patterns_that_cost_much_stop_nobody(daemon):
    costly = ["**/*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*b", "/".join(["**"] * 40)[:120] + "/zz"] * 4
    asking = Asking(daemon, "POST", "/v1/execute", {"language": "shell", "collect": costly, "code":
                    "p=$(printf %0200d 1 | tr 01 aa); mkdir -p $p; cd $p; i=0; while [ $i -lt 2000 ]; do : > $p$i; i=$((i+1)); done"})
    longest = 0
    while asking.thread.is_alive():
        began = time.monotonic()
        assert daemon.get("/healthz").status in (200, 404)
        longest = max(longest, time.monotonic() - began)
    assert asking.wait().status == 200 and longest < 5, (asking.answer, longest)
    assert none_lives(daemon)


def test_taking_back_is_part_of_what_is_asked(lenient):
    rules = "gate:\n  auto-approve: [LOW]\n  rules:\n    - {name: free-code, tools: [code_execute], risk: LOW}\n"
    lenient.gate_file.write_text(rules, encoding="ascii")
    lenient.reload()
    agent = caller(lenient, "agent")
    assert agent.post("/v1/execute", {"language": "shell", "code": "echo x"}).json["stdout"] == "x\n"
    call = {"language": "shell", "code": "echo x > x", "collect": ["x"]}
    told = agent("POST", "/v1/execute", call, ASYNC)
    assert told.status == 202 and told.json["risk"] == "MEDIUM" and lenient.get(told.json["url"]).json["params"]["collect"] == ["x"], told
    assert lenient.post(told.json["url"] + "/approve").ok
    done = agent("POST", "/v1/execute", call, ASYNC)
    assert done.status == 200 and done.json["files"][0]["content"] == "x\n" and not pending(lenient), done
    assert none_lives(lenient)


def test_others_calls_take_nobodys_files(lenient):
    """The call that is let through is remembered until its files are back, whatever others do meanwhile, and no longer."""
    one, other = caller(lenient, "agent"), token(lenient, "agent")["token"]
    asking = Asking(one, "POST", "/v1/execute", {"language": "shell", "code": "while ! [ -e /tmp/go ]; do sleep 0.1; done; echo x > x", "collect": ["x"],
                                              "timeout_ms": 300000})
    made, = wait_for(lambda: [s for s in lenient.get("/v1/sandboxes").json["sandboxes"] if s["state"] == "ready"], 60)
    client = Client(lenient, token=other)
    box = Caller(lenient, Authorization=f"Bearer {other}").create()
    for _ in range(270):        # more than are remembered
        assert client.call("code_execute", language="shell", sandbox_id=box.id, code="true")["success"]
    assert lenient.post(f"/v1/sandboxes/{made['id']}/exec", {"command": "touch /tmp/go"}).status == 200
    answer = asking.wait()
    assert answer.status == 200 and [f.get("content") for f in answer.json["files"]] == ["x\n"] and not answer.json["files_truncated"], answer
    assert box.delete().ok and none_lives(lenient)
