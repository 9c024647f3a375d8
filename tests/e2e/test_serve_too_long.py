"""What is longer than it may be is refused with a code and its limit, on every way in; what is not longer works."""
import pytest

from helpers import requirement
from helpers.mcp import Client
from helpers.shared import shared

pytestmark = [requirement("R20", "R21"), shared]

K = 1024
WORDS, POLICY, PATH = 126976, 65536, 4096


def said(answer, status, code, limit):
    assert answer.status == status and answer.json["code"] == code, answer
    assert str(limit) in answer.json["error"], answer


@pytest.mark.parametrize("size", [100 * K, 128 * K, 1024 * K, 5 << 20])
def test_a_command_and_what_goes_with_it(box, size):
    at, much, fits = f"{box.at}/exec", "x" * size, size < WORDS - 100
    words = [much[i:i + size // 16] for i in range(0, size, size // 16)]
    for body in ({"command": f"true #{much}"}, {"command": ["/bin/true", much]}, {"command": ["/bin/true", *words]},
                 {"command": "true", "env": {"A": much}}, {"command": f"true #{much}", "background": True}):
        answer = box.daemon.post(at, body)
        if fits:
            assert answer.ok and answer.json.get("exit_code") in (0, None), answer
        else:
            said(answer, 413, "exec.too-long", WORDS)
    said(box.daemon.post(at, {"command": "true", "cwd": "/" + much}), 413, "exec.too-long", PATH)
    # over stdin, and as a file, it goes
    answer = box.daemon.post(at, {"command": "wc -c", "stdin": much})
    assert answer.json["stdout"].strip() == str(size), answer
    assert box.put("script", f"true #{much}".encode()).ok
    assert box.daemon.post(at, {"command": ["/bin/sh", "script"]}).json["exit_code"] == 0


def test_a_command_of_too_many_words(box):
    said(box.daemon.post(f"{box.at}/exec", {"command": ["/bin/true"] * 1025}), 400, "exec.request", 1024)
    said(box.daemon.post(f"{box.at}/exec", {"command": "true", "env": {f"A{i}": "" for i in range(1025)}}), 400, "exec.request", 1024)


@pytest.mark.parametrize("size", [100 * K, 128 * K, 1024 * K, 5 << 20])
def test_a_policy(box, size):
    hosts = [f"a{i}.example.org" for i in range(size // 20)]
    for policy in ({"env": {"A": "x" * size}}, {"network": {"mode": "allowlist", "allow": hosts}}):
        said(box.daemon.post("/v1/sandboxes", {"policy": policy}), 413, "policy.too-long", POLICY)
        said(box.daemon("PATCH", f"{box.at}/policy", policy), 413, "policy.too-long", POLICY)
    assert box.daemon.post("/v1/sandboxes", {"policy": {"env": {"A": "x" * (POLICY - 100)}}}).status == 201


@pytest.mark.parametrize("size", [PATH + 1, 8000])
def test_a_path(box, size):
    path = "x/" * (size // 2) + "x" * (size % 2)
    for method, where, body in (("PUT", f"files/{path}", b"x"), ("GET", f"files/{path}", None), ("DELETE", f"files/{path}", None),
                                ("POST", f"dirs/{path}", None), ("GET", f"dirs/{path}", None)):
        answer = box.daemon(method, f"{box.at}/{where}", body)
        said(answer, 414, "files.path", PATH)
    said(box.daemon("GET", f"{box.at}/watch?path={path}"), 400, "files.request", PATH)
    said(box.daemon("GET", f"{box.at}/files/{'x' * 9000}"), 414, "http.uri-too-long", 8191)


@pytest.mark.parametrize("path,body,limit", [
    ("/v1/sandboxes", {"name": "x" * K}, 63), ("/v1/sandboxes", {"workspace_key": "x" * K}, 255), ("/v1/tokens", {"role": "agent", "name": "x" * K}, 63),
    ("/v1/sandboxes", {"labels": {"a": "x" * K}}, 255), ("/v1/sandboxes", {"volume": {"name": "x" * K}}, 255)])
@pytest.mark.parametrize("times", [1, 128, 5 * K])
def test_names(daemon, path, body, limit, times):
    def longer(v):
        return {k: longer(x) for k, x in v.items()} if isinstance(v, dict) else v * times if len(v) == K else v
    answer = daemon.post(path, longer(body))
    assert answer.status == 400 and str(limit) in answer.json["error"], answer


def test_a_body(daemon):
    answer = daemon.post("/v1/sandboxes", {"name": "x" * (11 << 20)})
    assert answer.status == 413 and answer.json["code"] == "http.body-too-large" and "10 MiB" in answer.json["detail"], answer


@pytest.mark.parametrize("size", [128 * K, 1024 * K, 5 << 20])
def test_over_mcp(daemon, size):
    client = Client(daemon)
    made = client.call("create_sandbox")["sandbox_id"]

    def call(tool, **arguments):
        return client.call(tool, sandbox_id=made, **arguments)
    assert call("code_execute", code="print(len('''" + "x" * size + "'''))", language="python")["stdout"].strip() == str(size)
    assert call("code_write_file", file_path="f", content="x" * size)["success"]
    for tool, arguments, limit in (("code_read_file", {"file_path": "x/" * (size // 2)}, PATH), ("code_list_files", {"path": "x" * size}, PATH),
                                   ("code_write_file", {"file_path": "x" * size, "content": ""}, PATH),
                                   ("code_install_package", {"package": "x" * size, "registry": "pypi"}, 214)):
        answer = call(tool, **arguments)
        assert not answer["success"] and str(limit) in answer["error"], answer
    answer = client.call("create_sandbox", network_enabled=True, allowed_domains=[f"a{i}.example.org" for i in range(size // 20)])
    assert not answer["success"] and "64" in answer["error"], answer
