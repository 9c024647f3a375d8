"""E2B's official client libraries, as they are published, drive cloche serve with nothing but environment variables (docs/e2b.md)."""
import json
import re
import subprocess
from pathlib import Path

import pytest

from helpers import npm, pypi, requirement
from helpers.daemon import Daemon, token

pytestmark = requirement("R84")
PYTHON = ("e2b==2.63.0", "e2b-code-interpreter==2.11.5")
JAVASCRIPT = ("e2b@2.51.0", "@e2b/code-interpreter@2.8.0")
LIB = Path(__file__).resolve().parents[1] / "lib"


@pytest.fixture
def served(cloche):
    daemon = Daemon(cloche, tcp=True)
    port = int(re.search(rb"tcp:127\.0\.0\.1:(\d+)", daemon.heard)[1])
    url = f"http://127.0.0.1:{port}/e2b"
    yield {**cloche.env, "E2B_API_URL": url, "E2B_SANDBOX_URL": url, "E2B_VALIDATE_API_KEY": "false",
           "E2B_API_KEY": token(daemon, "agent")["token"]}
    assert daemon.stop() == 0, daemon.log


def run(argv, env, cwd):
    done = subprocess.run([str(w) for w in argv], cwd=cwd, env=env, capture_output=True, text=True, timeout=300, check=False)
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert done.returncode == 0, (lines[-3:], done.stderr[-3000:])
    assert not [line for line in lines if line[0].startswith("failed")], lines
    return dict(lines)


def judge_commands(said):
    assert said["run"] == ["out\n", "err\n", 0] and said["callbacks"] == [["err", "b\n"], ["out", "a\n"]]
    assert said["env and cwd"] == "a b\n/\n" and said["exit"] == [7, "no\n"] and said["envs"] == "yes\n"
    assert said["signal"][0] == "CommandExitException" and said["timeout"][0] == "TimeoutException"
    assert said["large"] == 3000000 and said["listed"] and said["background"] == "got hello\nmore\n"
    assert said["killed"] == [True, False, False] and said["ended"][0] == "CommandExitException" and said["terminal"]


def judge_files(said):
    assert said["write"] == ["b.txt", "/workspace/a/b.txt"] and said["read"] == ["h\u00e4llo"] * 3
    assert said["bytes"] and said["empty"] == "" and said["several"] == ["one", "two"] and said["octets"] == "--x\r\n"
    assert said["list"] == [["1", "file", "/workspace/m/1", 3], ['2 "q"', "file", '/workspace/m/2 "q"', 3]]
    assert said["deep"] == ["/workspace/a", "/workspace/a/b.txt", "/workspace/m", "/workspace/m/1", '/workspace/m/2 "q"']
    assert said["exists"] == [True, False] and said["make_dir"] == [True, False]
    assert said["get_info"][:4] == ["1", "file", 3, "/workspace/m/1"] and re.match("-rw", said["get_info"][4])
    assert said["rename"] == ["/workspace/other/one", False, "one"] and said["remove"] is False
    assert [found[0] for found in said["no file"]] == ["FileNotFoundException"] * 4
    # what is not offered says so, and what to use
    assert "files.path-escapes" in said["outside"][1] and "0.6.2" in said["metadata"][1]
    assert "e2b.not-offered" in said["watch"][1] and "http.encoding" in said["gzip"][1]


def judge_code(said):
    assert said["code"] == ["42", ["hi\n"], True, True] and said["kept"] == "7"
    assert said["error"] == ["ZeroDivisionError", "division by zero", True] and said["streamed"] == ["a\n", "b\n"]
    assert said["own"] == ["NameError", "python"] and said["contexts"] and said["restarted"] == "NameError" and said["removed"] is False
    assert "context.unknown" in said["gone"][1] and said["bash"] == ["42\n"] and "no such language" in said["no language"][1]


def judge_lives(said):
    assert said["is_running"] and said["info"] == [True, {"who": "sdk"}, "running", "code-interpreter-v1"] and said["set_timeout"]
    assert said["list sandboxes"] and said["connect"] == ["other\n", "still\n", "6"]
    assert said["pause"] == [True, "paused", False] and said["resume"] == ["awake\n", True]
    assert "e2b.not-offered" in said["snapshots"][1] and "e2b.not-offered" in said["metrics"][1]
    assert said["unknown"][0] == "SandboxNotFoundException" and "404" in said["no template"][1] and "501" in said["not offered"][1]
    assert said["kill"] == [True, False, False] and said["killed sandbox"][0] == "SandboxNotRunningException"


def test_python(served, tmp_path):
    said = run([pypi.python_with(*PYTHON), LIB / "e2b_sdk.py"], served, tmp_path)
    for judge in (judge_commands, judge_files, judge_code, judge_lives):
        judge(said)


def test_javascript(served):
    said = run([npm.node(), LIB / "e2b_sdk.mjs"], served, npm.packages(*JAVASCRIPT))
    assert said["run"] == ["out\n", "err\n", 0] and said["callbacks"] == ["a\nw\n/\n", "b\n"] and said["exit"] == [True, 7]
    assert said["listed"] and said["background"] == "got hello\n" and said["killed"] == [True, False]
    assert said["write"] == ["b.txt", "/workspace/a/b.txt"] and said["read"] == ["h\u00e4llo"] * 2
    assert said["list"] == [["1", "file", "/workspace/m/1"], ["2", "file", "/workspace/m/2"]] and said["exists"] == [True, False]
    assert said["makeDir"] == [True, False] and said["rename"] == ["/workspace/m/3", "one"] and said["remove"] is False and said["no file"][0]
    assert "e2b.not-offered" in said["watch"][1]
    assert said["code"] == ["42", ["hi\n"]] and said["error"] == "ZeroDivisionError" and said["context"] == ["5", True]
    assert said["running"] and said["info"] == [{"who": "js"}, "running"] and said["connect"] == ["other\n", "still\n"]
    assert said["sandboxes"] == [True] and "404" in said["no template"][1] and said["kill"] == [True, False]
