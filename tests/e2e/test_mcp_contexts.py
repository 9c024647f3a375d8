"""/mcp: code in contexts."""
import base64

import pytest

from helpers import requirement
from helpers.mcp import SESSIONS, STATELESS, Client

pytestmark = requirement("R62", "R85")


@pytest.fixture(params=[SESSIONS, STATELESS])
def client(request, daemon):
    return Client(daemon, request.param)


def created(client, language="python"):
    box = client.call("create_sandbox")["sandbox_id"]
    context = client.call("code_context", sandbox_id=box, action="create", language=language)
    assert context["success"] and context["state"] == "idle" and context["language"] == language, context
    return {"sandbox_id": box, "context_id": context["context_id"]}


def test_variables_stay_and_results_come_back(client):
    at = created(client)
    first = client.call("code_execute", language="python", code="x = 40", **at)
    assert first["success"] and first["results"] == [] and first["context_state"] == "idle", first
    got = client.call("code_execute", language="python", code="print('out')\nx + 2", **at)
    assert (got["stdout"], got["results"], got["error"]) == ("out\n", [{"main": True, "text": "42"}], None), got
    got = client.call("code_execute", language="python", code="1 / 0", **at)
    assert (got["success"], got["exit_code"], got["error"]) == (False, 1, "ZeroDivisionError: division by zero"), got
    assert 'File "<cell 3>", line 1' in got["stderr"]
    got = client.call("code_execute", language="python", code="while True: pass", timeout=1, **at)
    assert (got["error"], got["context_state"]) == ("TimeoutError", "idle"), got
    assert client.call("code_execute", language="python", code="x", **at)["results"][0]["text"] == "40"


def test_pictures_are_pictures(client):
    at = created(client)
    code = "class P:\n    def __repr__(self): return 'p'\n    def _repr_png_(self): return b'png'\n    def _repr_html_(self): return '<b>'\nP()"
    answer = client("tools/call", {"name": "code_execute", "arguments": {"language": "python", "code": code, **at}})["result"]
    assert answer["structuredContent"]["results"] == [{"main": True, "text": "p", "html": "<b>", "png": "content[1]"}], answer
    assert answer["content"][1:] == [{"type": "image", "mimeType": "image/png", "data": base64.b64encode(b"png").decode()}], answer


def test_they_are_listed_restarted_interrupted_and_deleted(client):
    at = created(client)
    box, one = at["sandbox_id"], at["context_id"]
    listed = client.call("code_context", sandbox_id=box, action="list")
    assert listed["contexts"] == [{"context_id": one, "state": "idle", "language": "python"}], listed
    client.call("code_execute", language="python", code="x = 1", **at)
    assert client.call("code_context", action="interrupt", **at)["success"]
    assert client.call("code_context", action="restart", **at)["state"] == "idle"
    assert client.call("code_execute", language="python", code="x", **at)["error"].startswith("NameError")
    dead = client.call("code_execute", language="python", code="import os; os.kill(os.getpid(), 9)", **at)
    assert (dead["exit_code"], dead["context_state"]) == (137, "dead"), dead
    assert client.call("code_execute", language="python", code="1", **at)["error_type"] == "context.dead"
    assert client.call("code_context", action="delete", **at)["success"]
    for call in (("code_context", {"action": "restart"}), ("code_execute", {"language": "python", "code": "1"})):
        assert client.call(call[0], **call[1], **at)["error_type"] == "context.unknown", call
    assert client.call("code_context", sandbox_id=box, action="list")["contexts"] == []


@pytest.mark.parametrize("tool,args,error", [
    ("code_context", {"action": "create"}, "InvalidArguments"), ("code_context", {"action": "eat"}, "InvalidArguments"),
    ("code_context", {"action": "restart"}, "context.unknown"), ("code_context", {"action": "delete", "context_id": "x"}, "context.unknown"),
    ("code_context", {"action": "interrupt", "context_id": "1"}, "context.unknown"),
    ("code_execute", {"language": "python", "code": "1", "context_id": "77"}, "context.unknown"),
    ("code_execute", {"language": "python", "code": "1", "context_id": "77", "limits": {"pids": 5}}, "InvalidArguments"),
])
def test_malformed_calls(daemon, tool, args, error):
    client = Client(daemon)
    box = client.call("create_sandbox")["sandbox_id"]
    assert client.call(tool, sandbox_id=box, **args)["error_type"] == error


def test_a_context_is_of_one_language(daemon):
    client = Client(daemon)
    at = created(client)
    assert client.call("code_execute", language="shell", code="1", **at)["error_type"] == "context.language"
    assert client.call("code_execute", language="python", code="1", context_id=at["context_id"])["error_type"] == "InvalidArguments"
