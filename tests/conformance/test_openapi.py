"""docs/openapi.yaml against the daemon, by schemathesis: requests made of the description, answers judged by it.

The program `schemathesis` comes from PyPI; another one is used where $SCHEMATHESIS names it.
"""
import json
import os
import socket
import subprocess
import threading
from pathlib import Path

import pytest
import yaml

from helpers import pypi, requirement
from helpers.daemon import Daemon

pytestmark = [requirement("R47"), pytest.mark.heavy]
REPO = Path(__file__).resolve().parents[2]
SCHEMATHESIS = "schemathesis==4.32.5"
GENERATOR = "openapi-python-client==0.29.1"
SEED = 47
# what would end what the others need, or fill the daemon, or does not end
ENDS = ["GET /v1/events/stream", "GET /v1/audit/stream", "GET /v1/approvals/stream", "GET /v1/sandboxes/{id}/exec/ws",
        "GET /v1/sandboxes/{id}/exec/{exec_id}/stream", "GET /v1/sandboxes/{id}/watch",
        "DELETE /v1/sandboxes/{id}", "POST /v1/kill", "POST /v1/sandboxes",
        # these make what is called "0", and an id of the wrong type then finds it (test_serve_fork.py asks them)
        "POST /v1/sandboxes/{id}/fork", "POST /v1/sandboxes/{id}/snapshot"]


class Bridge(threading.Thread):
    """A port of the loopback interface that is the daemon's socket."""

    def __init__(self, path):
        super().__init__(daemon=True)
        self.path = str(path)
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]

    def run(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            server = socket.socket(socket.AF_UNIX)
            server.connect(self.path)
            for a, b in (client, server), (server, client):
                threading.Thread(target=self.pump, args=(a, b), daemon=True).start()

    @staticmethod
    def pump(source, sink):
        try:
            while data := source.recv(65536):
                sink.sendall(data)
            sink.shutdown(socket.SHUT_WR)
        except OSError:
            pass

    def close(self):
        self.listener.close()


@pytest.fixture
def daemon(cloche):
    made = Daemon(cloche, "--max-sandboxes", "20")
    yield made
    assert made.stop() == 0, made.log


class Nulls:
    """What the description says in words: a member of a request that is null counts as absent, but in PATCH and in a policy.
    Generators of clients are better off without a null in each type, so it is not in the schemas."""

    def __init__(self, spec):
        self.schemas, self.made = spec["components"]["schemas"], {}
        for path in spec["paths"].values():
            for method, route in path.items():
                body = route.get("requestBody", {}).get("content", {}).get("application/json") if isinstance(route, dict) else None
                if body and method != "patch":
                    body["schema"] = self.with_nulls(body["schema"])
        self.schemas.update(self.made)

    def with_nulls(self, schema):
        if not isinstance(schema, dict):
            return schema
        if "$ref" in schema:
            name = schema["$ref"].rsplit("/", 1)[1]
            if f"{name}-asked" not in self.made:
                self.made[f"{name}-asked"] = {}
                self.made[f"{name}-asked"] = self.with_nulls(self.schemas[name])
            return {**schema, "$ref": f"#/components/schemas/{name}-asked"}
        copy = dict(schema)
        if "items" in copy:
            copy["items"] = self.with_nulls(copy["items"])
        if isinstance(copy.get("additionalProperties"), dict):
            copy["additionalProperties"] = {"anyOf": [self.with_nulls(copy["additionalProperties"]), {"type": "null"}]}
        for key in ("anyOf", "oneOf", "allOf"):
            if key in copy:
                copy[key] = [self.with_nulls(one) for one in copy[key]]
        if "properties" in copy:
            copy["properties"] = {name: one if name == "policy" or name in copy.get("required", ())
                                  else {"anyOf": [self.with_nulls(one), {"type": "null"}]} for name, one in copy["properties"].items()}
        return copy


def description(folder, box):
    """The file, with the sandbox's id where an id is wanted."""
    text = (REPO / "docs" / "openapi.yaml").read_text(encoding="utf-8")
    wanted = "{name: id, in: path, required: true, schema: {type: string}}"
    assert wanted in text
    before, rest = text.split("  /v1/tokens/{id}:", 1)
    text = before.replace(wanted, wanted.replace("type: string", f"type: string, enum: [{box.id}]")) + "  /v1/tokens/{id}:" + rest
    spec = yaml.safe_load(text)
    Nulls(spec)
    path = folder / "openapi.json"
    path.write_text(json.dumps(spec), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def program():
    return os.environ.get("SCHEMATHESIS") or pypi.python_with(SCHEMATHESIS).with_name("schemathesis")


def judge(program, daemon, box, folder, examples, *flags):
    bridge = Bridge(daemon.path)
    bridge.start()
    argv = [program, "run", str(description(folder, box)), "--url", f"http://127.0.0.1:{bridge.port}", "--seed", str(SEED),
            "--phases", "examples,coverage,fuzzing", "--max-examples", str(examples), "--continue-on-failure", "--no-shrink",
            "--suppress-health-check", "all", "--request-timeout", "300", "--warnings", "off", *flags]
    try:
        result = subprocess.run(argv, cwd=folder, capture_output=True, text=True, timeout=900, check=False,
                                env={**os.environ, "NO_COLOR": "1"})
    finally:
        bridge.close()
    assert result.returncode == 0, result.stdout[-20000:] + result.stderr[-4000:]
    assert box.exec("echo on")["stdout"] == "on\n"
    assert len(daemon.processes("cloche-front")) == len(daemon.processes("cloche-warden")) == 1
    assert daemon.process.poll() is None


# What a name, a path or a header has to be is more than a schema says: of well-formed requests some are refused.
ALL = ["--checks", "all", "--exclude-checks", "positive_data_acceptance"]


@pytest.fixture
def box(daemon):
    made = daemon.create(name="described")
    assert made.put("f", b"x").ok
    return made


class TestSchemathesis:
    @pytest.mark.slow
    def test_what_is_asked_of_a_sandbox(self, program, daemon, box, tmp_path):
        skip = [word for name in ENDS for word in ("--exclude-name", name)]
        judge(program, daemon, box, tmp_path, 4, "--include-path-regex", "^/v1/", *skip, *ALL)

    def test_making_and_listing(self, program, daemon, box, tmp_path):
        judge(program, daemon, box, tmp_path, 8, "--include-path", "/v1/sandboxes", *ALL)

    def test_a_manager_of_sandboxes(self, program, daemon, box, tmp_path):
        """Its statuses are another project's: 500 is the answer of what is not there, 404 that to another method."""
        judge(program, daemon, box, tmp_path, 4, "--include-path-regex", "^/api/", "--exclude-path", "/api/sandbox/stop", "--checks",
              "status_code_conformance,content_type_conformance,response_schema_conformance")


USES = """
import io, sys
from made import AuthenticatedClient, models
from made.types import File
from made.api.default import post_v1_execute, post_v1_sandboxes, post_v1_sandboxes_id_exec, put_v1_sandboxes_id_files_path
client = AuthenticatedClient(base_url=sys.argv[1], token=sys.argv[2])
print(post_v1_sandboxes.sync(client=client, body=models.Create(name="g")).name)
print(put_v1_sandboxes_id_files_path.sync_detailed("g", "f", client=client, body=File(payload=io.BytesIO(b"in it"))).status_code.value)
print(post_v1_sandboxes_id_exec.sync("g", client=client, body=models.Exec(command=["cat", "f"])).stdout)
print(post_v1_execute.sync(client=client, body=models.Execute(language="python", code="print(6 * 7)")).stdout)
"""


def test_a_client_that_is_generated(cloche, tmp_path):
    python = pypi.python_with(GENERATOR)
    done = subprocess.run([python.with_name("openapi-python-client"), "generate", "--path", REPO / "docs" / "openapi.yaml", "--meta", "none",
                           "--output-path", tmp_path / "made"], capture_output=True, text=True, timeout=300, check=False)
    said = done.stdout + done.stderr
    assert done.returncode == 0 and "will not be generated" not in said and "Unable to process" not in said, said
    daemon = Daemon(cloche, path=cloche.home / "s", tcp=True)
    url = "http://%s:%d" % daemon.addresses()[0]
    used = subprocess.run([python, "-c", USES, url, daemon.token()], cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False)
    assert used.stdout.split("\n") == ["g", "200", "in it", "42", "", ""], used.stdout + used.stderr
    assert daemon.stop() == 0, daemon.log
