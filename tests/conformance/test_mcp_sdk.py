"""The official client libraries drive every tool, over HTTP and over stdin and stdout."""
import json
import re
import subprocess
from pathlib import Path

import pytest

from helpers import npm, pypi, requirement
from helpers.daemon import Daemon, token

pytestmark = requirement("R62", "R85")
TYPESCRIPT = "@modelcontextprotocol/sdk@1.32.2"
PYTHON = "mcp==2.3.0"
LIB = Path(__file__).resolve().parents[1] / "lib"


@pytest.fixture(params=["stdio", "http"])
def way(request, cloche):
    """The words that say where the server is."""
    if request.param == "stdio":
        yield ["stdio", cloche.binary, "mcp", "--gate", "off"]
        return
    daemon = Daemon(cloche, tcp=True)
    port = int(re.search(rb"tcp:127\.0\.0\.1:(\d+)", daemon.heard)[1])
    yield ["http", f"http://127.0.0.1:{port}/mcp", token(daemon, "agent")["token"]]
    assert daemon.stop() == 0, daemon.log


def run(cloche, argv, cwd):
    done = subprocess.run([str(w) for w in argv], cwd=cwd, env=cloche.env, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def judge(lines):
    said = dict(lines)
    assert said["code_execute"]["stdout"] == "42\n" and said["code_execute"]["exit_code"] == 0 and said["progress"] == "42\n", lines
    assert said["code_write_file"]["success"] and said["code_read_file"]["content"] == "hello"
    assert said["code_list_files"]["files"] == ["a.txt"] and said["code_install_package"]["error_type"] == "NetworkDisabled"
    assert [b["name"] for b in said["list_sandboxes"]["sandboxes"]] == ["sdk"]
    assert said["diff"]["error_type"] == said["apply"]["error_type"] == "NoCopyOnWrite"
    assert said["code_destroy_sandbox"]["success"]
    # every tool that there is was called
    assert set(said["tools"]) <= set(said), set(said["tools"]) - set(said)


def test_typescript(cloche, way):
    folder = npm.packages(TYPESCRIPT)
    lines = run(cloche, [npm.node(), LIB / "mcp_sdk.mjs", *way], folder)
    assert ["aborted", True] in lines
    judge(lines)


@pytest.mark.parametrize("mode,version", [("auto", "2026-07-28"), ("legacy", "2025-11-25")])
def test_python(cloche, way, mode, version, tmp_path):
    lines = run(cloche, [pypi.python_with(PYTHON), LIB / "mcp_sdk.py", mode, *way], tmp_path)
    assert ["version", version] in lines
    judge(lines)
