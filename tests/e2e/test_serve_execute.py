"""POST /v1/execute: code in a sandbox of its own, which ends with it (docs/daemon.md)."""
import base64
import hashlib
import json

import pytest

from helpers import requirement
from helpers.approvals import ASYNC, Asking, pending
from helpers.daemon import Daemon, caller
from helpers.runner import wait_for

pytestmark = requirement("R64", "R65", "R85")
HELLO = {"python": "import sys; print('hello', sys.stdin.read())", "javascript": "console.log('hello', require('fs').readFileSync(0, 'utf8'))",
         "shell": "echo hello $(cat)"}


def run(daemon, language, code, **more):
    answer = daemon.post("/v1/execute", {"language": language, "code": code, **more})
    assert answer.status == 200, answer
    return answer.json


def none_lives(daemon):
    return wait_for(lambda: not daemon.get("/v1/sandboxes").json["sandboxes"], 60)


@pytest.mark.parametrize("language", HELLO)
def test_in_every_language(daemon, language):
    assert run(daemon, language, HELLO[language])["stdout"].strip() == "hello"
    said = run(daemon, language, HELLO[language], stdin="you")
    assert said["stdout"].strip() == "hello you" and said["exit_code"] == 0 and not said["stderr"], said
    assert none_lives(daemon)


def test_the_answer_is_a_commands(daemon):
    said = run(daemon, "sh", "echo out; echo err >&2; exit 3")
    assert (said["exit_code"], said["stdout"], said["stderr"]) == (3, "out\n", "err\n"), said
    assert run(daemon, "py", "import os, signal; os.kill(os.getpid(), signal.SIGKILL)")["signal"] == 9
    assert run(daemon, "py", "while True: pass", timeout_ms=200)["timed_out"]
    assert run(daemon, "py", "b = bytearray(b'x' * (200 << 20))", limits={"memory": "64m"})["oom_killed"]
    assert base64.b64decode(run(daemon, "shell", "printf '\\377'", encoding="base64")["stdout"]) == b"\xff"
    assert run(daemon, "shell", "echo $A", env={"A": "b"})["stdout"] == "b\n"
    assert run(daemon, "python", "x = '" + "y" * 500000 + "'; print(len(x))")["stdout"] == "500000\n"
    assert run(daemon, "shell", "hostname", policy={"hostname": "mine"})["stdout"] == "mine\n"
    assert none_lives(daemon)
    events = daemon("POST", "/v1/execute", {"language": "shell", "code": "echo on"}, {"Accept": "text/event-stream"})
    assert events.status == 200 and b'event: stdout\ndata: {"data":"on\\n"}' in events.body and b"event: exit" in events.body, events.body


def test_each_is_alone(daemon):
    run(daemon, "shell", "echo secret > /workspace/f; echo secret > /tmp/f")
    assert run(daemon, "shell", "cat /workspace/f /tmp/f")["exit_code"] != 0
    # what it left in the background ends with it
    run(daemon, "shell", "(sleep 1000; echo on) >/dev/null 2>&1 &")
    assert none_lives(daemon)
    assert "the call that it was made for is over" in str(daemon.get("/v1/events").json["events"])


def test_files_are_there_before_the_code_runs(daemon):
    blob = bytes(range(256)) * 1000
    given = [{"path": "data/in.txt", "content": "h\u00e9llo\n"}, {"path": "a/b/c.bin", "content_base64": base64.b64encode(blob).decode()},
             {"path": "empty", "content": ""}, {"path": "-rf", "content": "x"}]
    said = run(daemon, "python", "import hashlib, os; print(ascii(open('data/in.txt').read()), hashlib.sha256(open('a/b/c.bin', 'rb').read()).hexdigest(),"
               " os.path.getsize('empty'), open('-rf').read(), os.getcwd())", files=given)
    assert said["stdout"].split() == ["'h\\xe9llo\\n'", hashlib.sha256(blob).hexdigest(), "0", "x", "/workspace"], said
    assert run(daemon, "shell", "cat data/in.txt -", stdin="in", files=given)["stdout"] == "h\u00e9llo\nin"
    assert run(daemon, "shell", "ls -A", files=[])["stdout"] == ""
    assert none_lives(daemon)


FILES_REFUSED = {
    "no list": ({}, 400, "files is a list"), "no object": (["x"], 400, "files[0]"), "no path": ([{"content": "x"}], 400, "files[0]"),
    "no content": ([{"path": "x"}], 400, "(x)"), "both": ([{"path": "x", "content": "", "content_base64": ""}], 400, "(x)"),
    "more": ([{"path": "x", "content": "", "mode": "0755"}], 400, "files[0]"), "number": ([{"path": "x", "content": 7}], 400, "(x)"),
    "base64": ([{"path": "x", "content_base64": "YQ"}], 400, "(x)"), "base64 in lines": ([{"path": "x", "content_base64": "YWJj\nYWJj"}], 400, "(x)"),
    "absolute": ([{"path": "/workspace/x", "content": ""}], 400, "begins with a slash"), "empty": ([{"path": "", "content": ""}], 400, "is empty"),
    "up": ([{"path": "../x", "content": ""}], 400, '"../x"'), "up inside": ([{"path": "a/../../x", "content": ""}], 400, ". or .."),
    "up at the end": ([{"path": "a/..", "content": ""}], 400, ". or .."), "dot": ([{"path": "./x", "content": ""}], 400, ". or .."),
    "slashes": ([{"path": "a//x", "content": ""}], 400, "empty"), "folder": ([{"path": "a/", "content": ""}], 400, "empty"),
    "control": ([{"path": "a\nb", "content": ""}], 400, "control"), "NUL": ([{"path": "a\0b", "content": ""}], 400, "JSON"),
    "long": ([{"path": "a/" * 2100 + "x", "content": ""}], 400, "4096"), "twice": ([{"path": "x", "content": ""}] * 2, 400, "twice"),
    "many": ([{"path": f"f{i}", "content": ""} for i in range(33)], 413, "at most 32"),
    "large": ([{"path": "a", "content": "x" * (5 << 20)}, {"path": "b", "content": "x" * (4 << 20)}], 413, "at most 8388608"),
    "a file and a folder": ([{"path": "x", "content": ""}, {"path": "x/y", "content": ""}], None, "files[1] (x/y)"),
    "a name that is too long": ([{"path": "n" * 300, "content": ""}], None, "files[0] (nnn"),
}


@pytest.mark.parametrize("what", FILES_REFUSED)
def test_files_that_are_refused(daemon, what):
    files, status, said = FILES_REFUSED[what]
    answer = daemon.post("/v1/execute", {"language": "shell", "code": "echo ran", "files": files})
    assert answer.status == status if status else 400 <= answer.status < 500, answer
    assert said in answer.json["error"] and b"ran" not in answer.body, answer
    assert none_lives(daemon)


def test_a_path_that_is_no_text_is_refused(daemon):
    body = b'{"language": "shell", "code": "ls", "files": [{"path": "a\xff", "content": "x"}]}'
    assert daemon("POST", "/v1/execute", body, {"Content-Type": "application/json"}).status == 400
    assert none_lives(daemon)


MAKES = ("mkdir -p out/deep 'a b'; printf 'h\\303\\251\\n' > out/x.csv; echo 1 > out/deep/y.csv; printf '\\000\\377' > out/z.bin; echo t > top.csv; "
         ": > out/empty; echo q > 'a b/[x].csv'; echo changed > given.csv")


@pytest.mark.parametrize("patterns,found", [
    (["**/*.csv"], ["a b/[x].csv", "given.csv", "out/deep/y.csv", "out/x.csv", "top.csv"]), (["*.csv"], ["given.csv", "top.csv"]), (["out/*"], ["out/empty", "out/x.csv", "out/z.bin"]),
    (["out/**"], ["out/deep/y.csv", "out/empty", "out/x.csv", "out/z.bin"]), (["top.csv", "out/deep/?.csv"], ["out/deep/y.csv", "top.csv"]),
    (["nothing", "top.csv/x"], []), ([], []), (["a b/\\\\[x\\\\].csv"], ["a b/[x].csv"]), (["same.csv", "*/same.csv"], [])])
def test_files_come_back_that_match(daemon, patterns, found):
    files = [{"path": "given.csv", "content": "given\n"}, {"path": "same.csv", "content": "same\n"}, {"path": "out/same.csv", "content_base64": ""}]
    patterns = [p.replace("\\\\", "\\") for p in patterns]
    said = run(daemon, "shell", MAKES, files=files, collect=patterns)
    assert sorted(f["path"] for f in said["files"]) == found and said["files_truncated"] is False and said["exit_code"] == 0, said
    events = daemon("POST", "/v1/execute", {"language": "shell", "code": MAKES, "files": files, "collect": patterns}, {"Accept": "text/event-stream"})
    lines = [json.loads(line[6:]) for line in events.body.split(b"\n") if line.startswith(b"data: ")]
    assert sorted(f["path"] for f in lines[:-1]) == found and lines[-1]["files_truncated"] is False and lines[-1]["exit_code"] == 0, events
    assert none_lives(daemon)


def test_what_files_hold(daemon):
    said = {f["path"]: f for f in run(daemon, "shell", MAKES + "; exit 3", collect=["**"])["files"]}
    assert said["out/x.csv"] == {"path": "out/x.csv", "content": "h\u00e9\n", "truncated": False} and said["out/empty"]["content"] == "", said
    assert said["out/z.bin"] == {"path": "out/z.bin", "content_base64": "AP8=", "truncated": False}, said
    assert "files" not in run(daemon, "shell", MAKES)
    # nothing hides behind how the code ended
    assert [f["path"] for f in run(daemon, "shell", "echo x > x; sleep 1000", collect=["x"], timeout_ms=500)["files"]] == ["x"]


@pytest.mark.parametrize("collect,said", [("x", "list"), ([7], "no string"), (["/etc/passwd"], "slash"), (["../*"], "or .."), (["a/../b"], "or .."), (["[a"], "collect[0]"),
                                          (["x" * 129], "128"), (["*"] * 9, "at most 8"), ([""], "empty"), (["a\n"], "control")])
def test_patterns_that_are_refused(daemon, collect, said):
    answer = daemon.post("/v1/execute", {"language": "shell", "code": "echo ran", "collect": collect})
    assert answer.status == 400 and answer.json["code"] == "execute.collect" and said in answer.json["error"], answer
    assert none_lives(daemon)


REFUSED = [
    ([], "execute.request"), ({"language": "shell"}, "execute.request"), ({"code": "x"}, "execute.request"),
    ({"language": "cobol", "code": "x"}, "execute.request"), ({"language": "shell", "code": 7}, "execute.request"),
    ({"language": "shell", "code": "x", "cwd": "/"}, "execute.request"), ({"language": "shell", "code": "x", "policy": []}, "execute.request"),
    ({"language": "shell", "code": "x", "limits": 7}, "execute.request"),
    ({"language": "shell", "code": "x", "limits": {}, "policy": {"limits": {}}}, "execute.request"),
    ({"language": "shell", "code": "x", "stdin": 7}, "exec.request"), ({"language": "shell", "code": "x", "timeout_ms": 0}, "exec.request"),
    ({"language": "shell", "code": "x", "env": {"A=": "b"}}, "exec.request"),
    ({"language": "shell", "code": "x" * 130000, "stdin": ""}, "exec.too-long"),
    ({"language": "shell", "code": "x", "limits": {"memory": "lots"}}, "policy.limit.syntax"),
    ({"language": "shell", "code": "x", "policy": {"mode": "off"}}, None),
]


@pytest.mark.parametrize("number", range(len(REFUSED)))
def test_what_is_refused(daemon, number):
    body, code = REFUSED[number]
    answer = daemon.post("/v1/execute", body)
    assert 400 <= answer.status < 500 and code in (None, answer.json["code"]), answer
    assert none_lives(daemon)


def test_a_client_that_goes_takes_it_along(daemon):
    c = daemon.connection()
    c.request("POST", "/v1/execute", body=b'{"language": "shell", "code": "sleep 1000"}')
    assert wait_for(lambda: [s for s in daemon.get("/v1/sandboxes").json["sandboxes"] if s["state"] == "ready"], 60)
    c.close()
    assert none_lives(daemon)


@requirement("R63")
def test_a_policy_of_its_own_is_one_question_more(cloche):
    """The code, then the sandbox, and not the code once more as what nobody can see (standard input)."""
    daemon = Daemon(cloche, gate=None)
    try:
        agent = caller(daemon, "agent")
        wanted = {"language": "shell", "code": "echo mine", "limits": {"memory": "64m"}}
        asking, tools = Asking(agent, "POST", "/v1/execute", wanted), []
        while not wait_for(lambda: asking.answer is not None or pending(daemon), 60) or asking.answer is None:
            for asked in pending(daemon):
                tools.append(asked["tool"])
                assert daemon.post(f"/v1/approvals/{asked['id']}/approve").ok
        assert asking.wait().json["stdout"] == "mine\n" and tools == ["code_execute", "sandbox_create"], (asking.answer, tools)
        assert none_lives(daemon)
        # who asks again and again is served too
        tools = []
        while (told := agent("POST", "/v1/execute", wanted, {"Prefer": "respond-async"})).status == 202 and len(tools) < 6:
            tools.append(told.json["rule"])
            assert daemon.post(told.json["url"] + "/approve").ok
        assert told.status == 200 and told.json["stdout"] == "mine\n", (told, tools)
        assert none_lives(daemon)
    finally:
        assert daemon.stop() == 0


@requirement("R63")
def test_it_is_judged_as_what_it_is(cloche, tmp_path):
    rules = tmp_path / "gate.yaml"
    rules.write_text("gate:\n  rules:\n    - {name: mine, tools: [code_execute], risk: HIGH, conditions: [{param: code, contains: danger}]}\n"
                     "    - {name: others, tools: [code_execute], risk: LOW}\n")
    daemon = Daemon(cloche, gate=rules)
    try:
        agent = caller(daemon, "agent")
        wanted = {"language": "shell", "code": "echo danger"}
        assert run(agent, "shell", "echo fine")["stdout"] == "fine\n"
        told = agent("POST", "/v1/execute", wanted, {"Prefer": "respond-async"})
        assert told.status == 202 and told.json["rule"] == "mine", told
        assert none_lives(daemon)       # that of the former may be going yet
        shown = daemon.get(told.json["url"]).json
        assert shown["tool"] == "code_execute" and shown["params"]["code"] == "echo danger", shown
        assert daemon.post(told.json["url"] + "/approve").ok
        assert run(agent, "shell", "echo danger")["stdout"] == "danger\n"
        # once: it is asked again
        assert agent("POST", "/v1/execute", wanted, {"Prefer": "respond-async"}).status == 202
        told = agent("POST", "/v1/execute", {**wanted, "stdin": "x"}, {"Prefer": "respond-async"})
        assert told.status == 202 and daemon.get(told.json["url"]).json["params"]["stdin"] == "x", told
        assert daemon.post(told.json["url"] + "/deny", {"reason": "no"}).ok
        assert none_lives(daemon)
    finally:
        assert daemon.stop() == 0


@requirement("R63")
def test_files_are_part_of_what_is_asked(cloche):
    """One question, with what each file holds; what was approved are those bytes."""
    daemon = Daemon(cloche, gate=None)
    try:
        agent = caller(daemon, "agent")
        wanted = {"language": "shell", "code": "cat a.txt; ./run.sh || sh run.sh",
                  "files": [{"path": "a.txt", "content": "one\n"}, {"path": "run.sh", "content": "#!/bin/sh\necho two\n"}]}
        told = agent("POST", "/v1/execute", wanted, ASYNC)
        assert told.status == 202, told
        files = daemon.get(told.json["url"]).json["params"]["files"]
        assert [f["file_path"] for f in files] == ["a.txt", "run.sh"] and [f["program"] for f in files] == [False, True], files
        assert files[0]["content_sha256"] == hashlib.sha256(b"one\n").hexdigest() and files[0]["content_start"] == "one\n", files
        assert daemon.post(told.json["url"] + "/approve").ok
        other = {**wanted, "files": [wanted["files"][0], {"path": "run.sh", "content": "#!/bin/sh\necho six\n"}]}
        assert (more := agent("POST", "/v1/execute", other, ASYNC)).status == 202 and more.json["url"] != told.json["url"], more
        assert daemon.post(more.json["url"] + "/deny", {"reason": "no"}).ok
        done = agent("POST", "/v1/execute", wanted, ASYNC)
        assert done.status == 200 and done.json["stdout"] == "one\ntwo\n", done
        assert not pending(daemon) and none_lives(daemon)
    finally:
        assert daemon.stop() == 0
