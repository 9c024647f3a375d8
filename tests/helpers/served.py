"""Sandboxes of cloche serve on each engine, and the interface of conformance/test_self_check.py over /v1 and over MCP.

One daemon an engine, whose settings choose it; one sandbox a test."""
import base64
import json
import os
import shlex
import shutil
import types

import pytest

from helpers import places
from helpers.machines import ROOT, MachineLender, why_not
from helpers.mcp import Client
from helpers.shared import Lender

BUILD = places.find_cloche().parents[2]
SETTINGS = {"native": {}, "crun": {"engine": "oci", "runtime": "crun"}, "runc": {"engine": "oci", "runtime": "runc"},
            "runsc": {"engine": "oci", "runtime": "runsc"}, "docker": {"engine": "docker"}, "microvm": {"engine": "microvm"}}
CHANGED_BY_SELF_CHECK = {"limits": {"grace": "100ms", "output": "8m", "time": "5m"}}      # what `cloche run` takes from flags, or has none of


def lend(name, dockerd=None, **more):
    """A Lender of daemons whose sandboxes are of engine @name, in which a test has one that others had before where it is a
    machine; the test is skipped where there is no such runtime."""
    env = {"DOCKER_HOST": dockerd.host} if dockerd is not None else {}
    if name == "microvm":
        if why_not() or not places.IS_ROOT:
            pytest.skip(why_not() or "the engine microvm needs root")
        return MachineLender({**SETTINGS[name], **more}, CLOCHE_KERNEL_ROOT=ROOT)
    if name in ("crun", "runc", "runsc"):
        if not places.IS_ROOT:
            pytest.skip("the engine oci needs root")
        env["PATH"] = os.pathsep.join((str(BUILD), os.environ["PATH"]))
        if shutil.which(name, path=env["PATH"]) is None:
            pytest.skip("runsc is not built: make runsc" if name == "runsc" else f"{name} is not installed: tools/deps check")
    return Lender({**SETTINGS[name], **more}, **env)


class Result:
    """As a run of `cloche run --json` has it."""

    def __init__(self, code, out=b"", err="", said=None):
        self.code, self.out_bytes, self.err = code, out, err
        self.ok, self.out = code == 0, out.decode("utf-8", "replace")
        self.json = said

    def __repr__(self):
        return f"<{self.code} {self.out[:1000]!r} {self.err[:1000]!r} {self.json}>"


def said_in(flags):
    """{flag: [value]} of words such as --json --timeout 3s."""
    found, at = {}, iter(flags)
    for flag in at:
        found.setdefault(flag, []).append(None if flag == "--json" else next(at))
    return found


class OverV1:
    """exec by /exec, files by /files; a file that is not below the workspace by a command."""

    def __init__(self, daemon, box=None):
        self.daemon = daemon
        self.box = box or daemon.create()

    def exec(self, *argv, flags=(), stdin=None):
        said, body = said_in(flags), {"command": list(argv), "encoding": "base64"}
        if isinstance(stdin, bytes) and stdin:      # what is no text is a file first
            assert self.box.put(".stdin", stdin).ok
            body["command"] = ["sh", "-c", 'rm .stdin; exec "$@"', "sh", *argv]
            body["command"] = ["sh", "-c", 'exec "$@" < .stdin', "sh", *body["command"]]
        elif stdin:
            body["stdin"] = stdin
        body["env"] = dict(word.split("=", 1) for word in said.get("--env", ()))
        for flag, limit in (("--timeout", "time"), ("--output", "output")):
            if flag in said:
                body.setdefault("limits", {})[limit] = said[flag][0]
        if "--workdir" in said:
            body["cwd"] = said["--workdir"][0]
        box = self.box
        if "--user" in said:
            made = self.daemon.post("/v1/sandboxes", {"policy": {"user": said["--user"][0]}})
            if made.status != 201:
                return Result(125, err=made.json["error"])
            box = types.SimpleNamespace(at=f"/v1/sandboxes/{made.json['id']}")
        answer = self.daemon.post(f"{box.at}/exec", body)
        assert answer.status == 200, answer
        got = answer.json
        out, err = (base64.b64decode(got[stream]) for stream in ("stdout", "stderr"))
        code = 124 if got["timed_out"] else got["exit_code"] if got["signal"] is None else 128 + got["signal"]
        shown = {**got, "stdout": out.decode("utf-8", "replace"), "stderr": err.decode("utf-8", "replace"),
                 "reason": "exited" if got["signal"] is None else "signaled"}
        return Result(code, json.dumps(shown).encode() if "--json" in said else out, err.decode(), shown)

    def write_file(self, name, content):
        content = content.encode() if isinstance(content, str) else content
        if name.startswith("/"):
            return self.exec("/bin/sh", "-c", 'mkdir -p -- "$(dirname -- "$1")" && cat > "$1"', "sh", name, stdin=content)
        answer = self.box.put(name, content, "?parents=true")
        return Result(0) if answer.ok else Result(1, err=answer.json["error"])

    def read_file(self, name):
        if name.startswith("/"):
            return self.exec("cat", "--", name)
        answer = self.box.read(name)
        return Result(0, answer.body) if answer.ok else Result(1, err=answer.json["error"])


class OverMcp:
    """exec by code_execute in the language shell, files by code_write_file and code_read_file."""

    def __init__(self, daemon, box=None):
        self.client, self.own = Client(daemon), box is None
        self.id = box.id if box else self.client.call("create_sandbox")["sandbox_id"]

    def call(self, tool, **members):
        return self.client.call(tool, sandbox_id=self.id, **members)

    def exec(self, *argv, flags=(), stdin=None):
        said = said_in(flags)
        code = shlex.join(argv)
        if stdin:
            data = base64.b64encode(stdin.encode() if isinstance(stdin, str) else stdin).decode()
            code = f"base64 -d <<'E' | {code}\n{data}\nE\n"
        code = "".join(f"export {shlex.quote(word)}\n" for word in said.get("--env", ())) + code
        if "--workdir" in said:
            code = f"cd {shlex.quote(said['--workdir'][0])}\n{code}"
        limits = {"limits": {"output": said["--output"][0]}} if "--output" in said else {}
        got = self.call("code_execute", language="shell", code=code, **limits)
        if "exit_code" not in got:
            return Result(125, err=got["error"], said=got)
        return Result(got["exit_code"], got["stdout"].encode(), got["stderr"], got)

    def write_file(self, name, content):
        got = self.call("code_write_file", file_path=name, content=content)
        return Result(0 if got["success"] else 1, err=got.get("error") or "")

    def read_file(self, name):
        got = self.call("code_read_file", file_path=name)
        return Result(0, got["content"].encode()) if got["success"] else Result(1, err=got["error"])


