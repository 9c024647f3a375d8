"""/mcp: both forms of the Model Context Protocol over HTTP, the tools, and what is refused."""
import json
import time

import pytest

from helpers import requirement
from helpers.mcp import META, SESSIONS, STATELESS, Client
from helpers.runner import wait_for

pytestmark = requirement("R62", "R85")
TOOLS = ["code_execute", "code_context", "code_install_package", "code_write_file", "code_read_file", "code_list_files", "code_destroy_sandbox",
         "create_sandbox", "list_sandboxes", "expose_port", "computer", "diff", "apply"]


@pytest.fixture(params=[SESSIONS, STATELESS])
def client(request, daemon):
    return Client(daemon, request.param)


# --- the protocol -----------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("asked,got", [("2025-11-25", "2025-11-25"), ("2025-06-18", "2025-06-18"), ("2025-03-26", "2025-03-26"),
                                       ("2024-11-05", "2025-11-25"), ("2026-07-28", "2025-11-25")])
def test_initialize_negotiates(daemon, asked, got):
    raw = daemon("POST", "/mcp", {"jsonrpc": "2.0", "id": "a", "method": "initialize", "params":
                 {"protocolVersion": asked, "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}},
                 {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"})
    assert raw.status == 200 and raw.json["id"] == "a", raw
    result = raw.json["result"]
    assert result["protocolVersion"] == got and result["serverInfo"]["name"] == "cloche" and "tools" in result["capabilities"]
    assert len(raw.headers["Mcp-Session-Id"]) == 32


def test_a_session_ends(daemon):
    client = Client(daemon)
    assert client("ping")["result"] == {}
    assert client.raw(None, method="DELETE").status == 204
    assert client.raw(client.message("ping")).status == 404
    assert client.raw(None, method="DELETE").status == 404


def test_without_a_session(daemon):
    client = Client(daemon)
    client.session = None
    assert client.raw(client.message("tools/list")).status == 400
    answer = client.raw(None, method="GET")
    assert answer.status == 405 and answer.headers["Allow"] == "POST", answer.headers


def test_discover(daemon):
    client = Client(daemon, STATELESS)
    result = client("server/discover")["result"]
    assert result["supportedVersions"] == [STATELESS] and result["resultType"] == "complete" and "tools" in result["capabilities"]
    assert result["_meta"][META + "serverInfo"]["name"] == "cloche"


def test_tools_are_listed_always_alike(client):
    listed = client("tools/list")["result"]
    assert [t["name"] for t in listed["tools"]] == TOOLS
    assert client("tools/list")["result"] == listed
    execute = client.tools()["code_execute"]["inputSchema"]
    assert execute["required"] == ["language", "code"] and list(execute["properties"]) == [
        "language", "code", "sandbox_id", "context_id", "timeout", "limits", "network_enabled", "allowed_domains"]
    assert execute["properties"]["language"]["enum"] == ["python", "javascript", "shell"]
    assert execute["properties"]["timeout"]["default"] == 30
    hints = {name: tool["annotations"] for name, tool in client.tools().items()}
    assert [n for n in TOOLS if hints[n]["openWorldHint"]] == ["code_execute", "code_install_package", "expose_port"]
    assert [n for n in TOOLS if hints[n]["readOnlyHint"]] == ["code_read_file", "code_list_files", "list_sandboxes", "diff", "apply"]
    if client.version == STATELESS:
        assert listed["ttlMs"] >= 0 and listed["cacheScope"] == "public" and listed["resultType"] == "complete"


def test_what_there_is_not(client):
    answer = client("resources/list")
    assert answer["error"]["code"] == -32601
    assert client.answer.status == (404 if client.version == STATELESS else 200)
    assert client("tools/call", {"name": "nothing", "arguments": {}})["error"]["code"] == -32602


@pytest.mark.parametrize("body,code", [
    (b"", -32700), (b"{", -32700), (b"[1,2", -32700), (b'{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}', -32700),
    (b'{"jsonrpc":"2.0","id":1,"method":"pi\\u0000ng"}', -32700), (b'{"jsonrpc":"2.0","id":1,"method":"\xff"}', -32700),
    (b"[" * 100 + b"]" * 100, -32700), (b'{"a":' * 3000 + b"1" + b"}" * 3000, -32700),
    (b'[{"jsonrpc":"2.0","id":1,"method":"ping"}]', -32600), (b"[]", -32600), (b"1", -32700), (b"{}", -32600),
    (b'{"jsonrpc":"1.0","id":1,"method":"ping"}', -32600), (b'{"jsonrpc":"2.0","id":null,"method":"ping"}', -32600),
    (b'{"jsonrpc":"2.0","id":1.5,"method":"ping"}', -32600), (b'{"jsonrpc":"2.0","id":{},"method":"ping"}', -32600),
    (b'{"jsonrpc":"2.0","id":1,"method":7}', -32600), (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":[]}', -32600),
    (b'{"jsonrpc":"2.0","id":1,"method":"ping","result":{}}', -32600), (b'{"jsonrpc":"2.0","id":1}', -32600),
    (b'{"jsonrpc":"2.0","id":1,"result":{},"error":{}}', -32600), (b'{"jsonrpc":"2.0","result":{}}', -32600),
    (b'{"jsonrpc":"2.0","id":"' + b"x" * 300 + b'","method":"ping"}', -32600)])
def test_malformed_messages(daemon, body, code):
    client = Client(daemon)
    answer = client.raw(body)
    assert answer.status == 400 and answer.json["error"]["code"] == code and answer.json["jsonrpc"] == "2.0", answer
    assert client("ping")["result"] == {}


def test_a_message_that_is_too_large(daemon):
    client = Client(daemon)
    assert client.raw(b'{"a":"' + b"x" * (11 << 20) + b'"}').status == 413


@pytest.mark.parametrize("name,value,status", [("Content-Type", "text/plain", 415), ("Accept", "application/json", 406),
                                               ("Accept", "text/event-stream", 406), ("MCP-Protocol-Version", "2024-01-01", 400),
                                               ("Mcp-Session-Id", "0" * 32, 404), ("Mcp-Session-Id", "../../x", 404)])
def test_wrong_headers(daemon, name, value, status):
    client = Client(daemon)
    answer = client.raw(client.message("ping"), {**client.headers(), name: value})
    assert answer.status == status and "error" in answer.json, answer


@pytest.mark.parametrize("name,value,code", [
    ("MCP-Protocol-Version", None, -32020), ("MCP-Protocol-Version", "2025-11-25", -32020), ("Mcp-Method", None, -32020),
    ("Mcp-Method", "ping", -32020), ("Mcp-Name", None, -32020), ("Mcp-Name", "apply", -32020),
    ("Mcp-Name", "=?base64?ZGlmZg==?=", None), ("Mcp-Name", "=?base64?ZGlm!g==?=", -32020)])
def test_headers_say_what_the_message_says(daemon, name, value, code):
    client = Client(daemon, STATELESS)
    params = {"name": "diff", "arguments": {"sandbox_id": "none"}}
    headers = {**client.headers("tools/call", params), name: value}
    answer = client.raw(client.message("tools/call", params), {k: v for k, v in headers.items() if v is not None})
    if code is None:
        assert answer.status == 200 and answer.json["result"]["isError"], answer
    else:
        assert answer.status == 400 and answer.json["error"]["code"] == code, answer


@pytest.mark.parametrize("meta,code", [({}, -32602), ({META + "protocolVersion": STATELESS}, -32602),
                                       ({META + "protocolVersion": STATELESS, META + "clientCapabilities": []}, -32602),
                                       ({META + "protocolVersion": "v9"}, -32020)])
def test_a_request_says_all_about_itself(daemon, meta, code):
    client = Client(daemon, STATELESS)
    answer = client.raw({"jsonrpc": "2.0", "id": 7, "method": "tools/list", "params": {"_meta": meta}}, client.headers("tools/list"))
    assert answer.status == 400 and answer.json["error"]["code"] == code and answer.json["id"] == 7, answer


def test_unknown_versions_are_told_the_known_one(daemon):
    client = Client(daemon, STATELESS)
    client.version = "v999"
    meta = {META + "protocolVersion": "v999", META + "clientCapabilities": {}}
    answer = client.raw({"jsonrpc": "2.0", "id": 7, "method": "tools/list", "params": {"_meta": meta}},
                        {**client.headers(), "MCP-Protocol-Version": "v999"})
    assert answer.status == 400 and answer.json["error"]["code"] == -32022, answer
    assert answer.json["error"]["data"] == {"supported": [STATELESS], "requested": "v999"}


# --- the tools --------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("language,code,out", [("python", "import sys; print(6 * 7, sys.stdin.read() == '')", "42 True\n"),
                                               ("javascript", "console.log(6 * 7)", "42\n"),
                                               ("shell", "cat; echo $((6 * 7)); cat <<E\nx\nE", "42\nx\n")])
def test_code_execute(client, language, code, out):
    result = client.call("code_execute", language=language, code=code)
    assert result["stdout"] == out and result["exit_code"] == 0 and result["error"] is None and result["stderr"] == "", result
    assert set(result) == {"success", "sandbox_id", "stdout", "stderr", "exit_code", "execution_time", "limit_reached", "error"}
    # it stays until it is destroyed
    box = result["sandbox_id"]
    assert client.call("code_execute", language="shell", code="pwd; exit 3", sandbox_id=box)["exit_code"] == 3
    assert [b["sandbox_id"] for b in client.call("list_sandboxes")["sandboxes"]] == [box]
    assert client.call("code_destroy_sandbox", sandbox_id=box)["message"] == "Sandbox destroyed successfully"
    gone = client.call("code_execute", language="shell", code="true", sandbox_id=box)
    assert gone["error_type"] in ("sandbox.state", "sandbox.not-found"), gone


def test_a_run_that_takes_too_long(client):
    result = client.call("code_execute", language="python", code="print('begun', flush=True)\nimport time\ntime.sleep(1000)", timeout=1.0)
    assert result["exit_code"] == -1 and result["error"] == "TimeoutError" and result["stdout"] == "begun\n", result
    assert result["stderr"] == "Execution timeout after 1s"


def test_limits_of_one_execution(client):
    """In a sandbox that stays: no cgroup for it is said, and nothing else makes a difference."""
    box = client.call("create_sandbox")["sandbox_id"]
    eat = "x = bytearray(100 << 20); x[::4096] = b'x' * len(x[::4096]); print('ate')"
    said = client.call("code_execute", language="python", code=eat, sandbox_id=box, limits={"memory": "32m"})
    if said.get("error_type") == "limits.no-cgroup":
        return
    assert said["error"] == "MemoryError" and said["limit_reached"] == {"code": "limits.reached.memory", "limit": "memory", "of": "command"}, said
    again = client.call("code_execute", language="python", code=eat, sandbox_id=box)
    assert again["stdout"] == "ate\n" and again["limit_reached"] is None, again


@pytest.mark.parametrize("limits", [{"memory": "1k"}, {"time": 5}, {"disk": "1m"}, {"cpus": []}])
def test_limits_that_are_none(client, limits):
    said = client.call("code_execute", language="python", code="pass", limits=limits)
    assert said["success"] is False and said["error_type"] == "InvalidArguments", said


def test_whole_numbers(client):
    """30.0 is one, as JSON Schema has it; 1.5 is none, nor is what no integer holds."""
    result = client.call("code_execute", language="shell", code="echo ran", timeout=30.0)
    assert result["stdout"] == "ran\n", result
    for timeout in (1.5, 1e300, -0.0, 3601.0):
        assert client.call("code_execute", language="shell", code="echo ran", timeout=timeout)["error_type"] == "InvalidArguments", timeout


def test_output_is_cut(client):
    result = client.call("code_execute", language="shell", code="yes | head -c 1500000; printf x >&2")
    assert result["stdout"].endswith("\n[OUTPUT TRUNCATED]") and len(result["stdout"]) == (1 << 20) + 19, len(result["stdout"])
    assert result["stderr"] == "x"
    result = client.call("code_execute", language="shell", code="printf 'a\\0b'; printf '\\377' >&2", sandbox_id=result["sandbox_id"])
    assert result["stdout"] == "a\0b" and result["stderr"] == "\ufffd"


def test_a_large_program(client):
    result = client.call("code_execute", language="python", code=f"x = '{'a' * 2000000}'\nprint(len(x))")
    assert result["stdout"] == "2000000\n", result
    result = client.call("code_execute", language="shell", code=f"x={'a' * 2000000}\necho ${{#x}}", sandbox_id=result["sandbox_id"])
    assert result["stdout"] == "2000000\n", result


def test_files(client):
    box = client.call("create_sandbox", name="files")["sandbox_id"]
    assert client.call("code_write_file", sandbox_id=box, file_path="/workspace/a/b.txt", content="h\u00e9llo")["success"]
    read = client.call("code_read_file", sandbox_id=box, file_path="a/b.txt")
    assert read["content"] == "h\u00e9llo" and not read["truncated"] and read["path"] == "a/b.txt", read
    assert client.call("code_list_files", sandbox_id=box)["files"] == ["a/"]
    assert client.call("code_list_files", sandbox_id="files", path="/workspace/a")["files"] == ["b.txt"]
    client.call("code_execute", language="shell", sandbox_id=box, code="yes | head -c 2000000 > big; seq 1 1200 | xargs touch")
    big = client.call("code_read_file", sandbox_id=box, file_path="big")
    assert big["truncated"] and len(big["content"]) == (1 << 20) + 19
    many = client.call("code_list_files", sandbox_id=box)
    assert many["truncated"] and len(many["files"]) == 1000
    assert client.call("code_read_file", sandbox_id=box, file_path="none")["error_type"] == "files.not-found"


@pytest.mark.parametrize("tool,args,kind", [
    ("code_execute", {"code": "x"}, "InvalidArguments"), ("code_execute", {"language": "perl", "code": "x"}, "InvalidArguments"),
    ("code_execute", {"language": "shell", "code": 7}, "InvalidArguments"),
    ("code_execute", {"language": "shell", "code": "x", "timeout": 0}, "InvalidArguments"),
    ("code_execute", {"language": "shell", "code": "x", "timeout": 1e9}, "InvalidArguments"),
    ("code_execute", {"language": "shell", "code": "x", "extra": 1}, "InvalidArguments"),
    ("code_execute", {"language": "shell", "code": "x", "allowed_domains": ["a.example"]}, "InvalidArguments"),
    ("code_execute", {"language": "shell", "code": "x", "network_enabled": True, "allowed_domains": ["10.0.0.1"]}, "InvalidArguments"),
    ("create_sandbox", {"name": "../x"}, "InvalidArguments"), ("code_read_file", {"sandbox_id": "../x", "file_path": "f"}, "sandbox.not-found"),
    ("expose_port", {"sandbox_id": "x", "port": 70000}, "InvalidArguments")])
def test_arguments_are_judged(client, tool, args, kind):
    result = client.call(tool, **args)
    assert result["error_type"] == kind and result["error"], result
    assert client.call("list_sandboxes")["sandboxes"] == []


def test_packages_need_a_network(client):
    box = client.call("create_sandbox")["sandbox_id"]
    assert client.call("code_install_package", sandbox_id=box, package="requests")["error_type"] == "NetworkDisabled"
    assert client.call("code_install_package", sandbox_id=box, package="x", registry="cpan")["error_type"] == "UnsupportedLanguage"
    again = client.call("code_execute", language="shell", code="true", sandbox_id=box, network_enabled=True)
    assert again["error_type"] == "NetworkDisabled", again


def test_a_network_of_names(client):
    box = client.call("create_sandbox", network_enabled=True, allowed_domains=["ok.example.org", "*.b.example.org:8443"])
    assert box["network"] == "allowlist", box
    policy = client.daemon.get(f"/v1/sandboxes/{box['sandbox_id']}").json["policy"]
    assert policy["network"]["allow"] == ["ok.example.org", "*.b.example.org:8443"]


def test_progress_is_the_output(client):
    result = client.call("code_execute", {"progressToken": "t"}, language="shell", code="echo one; echo two >&2")
    assert result["success"] and client.answer.headers["X-Accel-Buffering"] == "no"
    said = [m["params"] for m in client.heard[:-1]]
    assert all(m["method"] == "notifications/progress" for m in client.heard[:-1]) and {p["progressToken"] for p in said} == {"t"}
    assert sorted("".join(p["message"] for p in said).split()) == ["one", "two"]
    steps = [p["progress"] for p in said]
    assert steps == sorted(set(steps)) and steps[-1] == 8


# --- cancelling -------------------------------------------------------------------------------------------------------

def sleeper(client, box=None):
    """A run that has begun: its connection and its request's id."""
    params = {"name": "code_execute", "arguments": {"language": "shell", "code": "echo begun; sleep 1234567", "timeout": 3000},
              "_meta": {"progressToken": 1}}
    if box:
        params["arguments"]["sandbox_id"] = box
    message = client.message("tools/call", params)
    connection = client.daemon.connection()
    connection.request("POST", "/mcp", json.dumps(message), client.headers("tools/call", params))
    response = connection.getresponse()
    while b"begun" not in response.readline():
        pass
    assert box is None or wait_for(lambda: sleeps(client, box), 60)     # its shell has said so, and starts it now
    return connection, response, message["id"]


def sleeps(client, box):
    return "1234567" in client.call("code_execute", language="shell", sandbox_id=box, code="cat /proc/[0-9]*/cmdline | tr '\\0' ' '")["stdout"]


def test_closing_the_stream_ends_the_run(client):
    box = client.call("create_sandbox")["sandbox_id"]
    connection, response, _ = sleeper(client, box)
    assert sleeps(client, box)
    response.close()
    connection.close()
    assert wait_for(lambda: not sleeps(client, box), 60)


def test_a_sandbox_that_nobody_was_told_of(client):
    """A call makes one; who left before it was named would not know what to end."""
    connection, response, number = sleeper(client)
    assert len(client.call("list_sandboxes")["sandboxes"]) == 1
    if client.version == SESSIONS:
        client.tell("notifications/cancelled", {"requestId": number})
        assert b'"result"' not in response.read()
    response.close()
    connection.close()
    assert wait_for(lambda: client.call("list_sandboxes")["sandboxes"] == [], 60)


def test_a_sandbox_that_is_being_made_for_nobody(client):
    """Whenever they leave: before it is asked for, while it is made, when it is there and not said yet."""
    params = {"name": "code_execute", "arguments": {"language": "shell", "code": "sleep 600", "timeout": 3000}}
    for i in range(24):
        connection = client.daemon.connection()
        connection.request("POST", "/mcp", json.dumps(client.message("tools/call", params)), client.headers("tools/call", params))
        time.sleep(i * 0.001)
        connection.close()
    assert wait_for(lambda: client.call("list_sandboxes")["sandboxes"] == [], 60), client.call("list_sandboxes")
    box = client.call("create_sandbox")["sandbox_id"]       # one that was named stays, whoever leaves
    connection, response, _ = sleeper(client, box)
    response.close()
    connection.close()
    assert wait_for(lambda: not sleeps(client, box), 60)


def test_a_cancelled_request_ends_its_run(daemon):
    client = Client(daemon)
    box = client.call("create_sandbox")["sandbox_id"]
    other, (connection, response, number) = Client(daemon), sleeper(client, box)
    other.tell("notifications/cancelled", {"requestId": number})
    assert sleeps(client, box)      # another session's word
    client.tell("notifications/cancelled", {"requestId": number})
    assert b'"result"' not in response.read()
    connection.close()
    assert wait_for(lambda: not sleeps(client, box), 60)


def test_the_end_of_a_session_ends_its_runs(daemon):
    client, watcher = Client(daemon), Client(daemon)
    box = client.call("create_sandbox")["sandbox_id"]
    connection, response, _ = sleeper(client, box)
    assert client.raw(None, method="DELETE").status == 204
    assert b'"result"' not in response.read()
    connection.close()
    assert wait_for(lambda: not sleeps(watcher, box), 60)
