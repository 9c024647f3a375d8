"""A rule of the gate is about a thing, not about a spelling: one file, host, package, language, sandbox has many."""
import pytest

from helpers import requirement
from helpers.approvals import ASYNC
from helpers.daemon import Daemon
from helpers.mcp import Client

pytestmark = requirement("R63")

RULES = r"""
gate:
  apply-to: all
  defaults: false
  rules:
    - {name: own, tools: [sandbox_create], risk: LOW}
    - name: file
      tools: [code_read_file, code_write_file, code_delete_file]
      conditions: [{param: file_path, equals: %s}]
      risk: CRITICAL
      timeout: 1
    - {name: begins, tools: ["code_*"], conditions: [{param: file_path, matches: '\Ashut/'}], risk: CRITICAL}
    - {name: whole, tools: ["code_*"], conditions: [{param: file_path, matches: '\A/workspace/closed/'}], risk: CRITICAL}
    - {name: folder, tools: [code_list_files, code_make_folder], conditions: [{param: path, one-of: [secret]}], risk: CRITICAL}
    - {name: language, tools: [code_execute], conditions: [{param: language, equals: python}], risk: CRITICAL}
    - {name: own-language, tools: [code_execute], conditions: [{param: language, equals: pl}], risk: CRITICAL}
    - {name: at, tools: [code_execute], conditions: [{param: cwd, equals: /tmp}], risk: CRITICAL}
    - {name: hosts, tools: [code_execute], conditions: [{param: allowed_domains, equals: [evil.example]}], risk: CRITICAL}
    - {name: package, tools: [code_install_package], conditions: [{param: package, matches: '\Aevil-pack\b'}], risk: CRITICAL}
    - {name: registry, tools: [code_install_package], conditions: [{param: registry, equals: pypi}], risk: CRITICAL}
    - {name: prod, tools: [code_delete_file, expose_port], conditions: [{param: sandbox_id, equals: prod}], risk: CRITICAL}
    - {name: kept, tools: [code_destroy_sandbox, sandbox_recover, sandbox_policy], conditions: [{param: sandbox_id, equals: kept}], risk: CRITICAL}
    - {name: rest, tools: ["*"], risk: LOW}
"""

# of the file "NAME" below /workspace, as a request line may say it
IN_URLS = ("NAME", "%2fworkspace%2fNAME", "/workspace/NAME", "/workspace//NAME", "/workspace/./NAME", "./NAME", "%2e/NAME", ".%2fNAME",
           "././/NAME", "NAME/", "NAME%2f", "NAME//", "a/../NAME", "a/%2e%2e/NAME", "../workspace/NAME", "//workspace/NAME", "/./workspace/NAME",
           "/workspace/../workspace/NAME")
IN_CALLS = ("NAME", "./NAME", ".//NAME", "NAME/", "/workspace/NAME", "/workspace//NAME", "/workspace/./NAME/", "a/../NAME", "//workspace/NAME",
            "/workspace/a/../NAME")


@pytest.fixture
def daemon(cloche):
    made = serve(cloche)
    yield made
    assert made.stop() == 0, made.log


def serve(cloche, *flags, equals=".env"):
    rules = cloche.cwd / "gate.yaml"
    rules.write_text(RULES % equals, encoding="ascii")
    return Daemon(cloche, *flags, gate=rules)


def spellings(of, name):
    return [s.replace("NAME", name) for s in of] + ([s.replace("NAME", "%" + f"{ord(name[0]):02x}" + name[1:]) for s in of] if of is IN_URLS else [])


def is_asked(answer):
    """It waits for somebody (or would, but for those that wait already); else it is refused as no path of the workspace. It is not done."""
    assert answer.status == 202 or 400 <= answer.status < 500, answer
    return answer.status == 202 or answer.json["code"].startswith("gate.")


def is_held(answer, served):
    """The same of a call, where another one of that spelling was @served."""
    assert not answer["success"], answer
    return not served or answer["error_type"] == "ApprovalRequired" or answer["error_type"].startswith("gate.")


def fill(box):
    made = box.exec("mkdir a secret open shut closed; for f in .env ok shut/x closed/x open/x; do echo $f > $f; done")
    assert made["exit_code"] == 0, made


@pytest.mark.parametrize("equals", [".env", "/workspace/.env", "./a/../.env/"])
def test_a_file_by_any_path_of_a_route(cloche, equals):
    daemon = serve(cloche, equals=equals)
    box = daemon.create()
    fill(box)
    doors = [("GET", "files", None), ("PUT", "files", b"x"), ("DELETE", "files", None)]
    real = 0
    for free, shut in (("ok", ".env"), ("open/x", "shut/x"), ("open/x", "closed/x")):
        for one, other in zip(spellings(IN_URLS, free), spellings(IN_URLS, shut)):
            done = [daemon("PUT", f"{box.at}/files/{one}", b"x", ASYNC), daemon("GET", f"{box.at}/files/{one}", None, ASYNC)]
            served = all(answer.status == 200 for answer in done)
            asked = [is_asked(daemon(method, f"{box.at}/{kind}/{other}", body, ASYNC)) for method, kind, body in doors]
            assert all(asked) or not served, (other, asked)
            real += served
    assert real >= 30, "spellings that are a file for the one who is not asked"
    for one, other in zip(spellings(IN_URLS, "open"), spellings(IN_URLS, "secret")):
        served = daemon.get(f"{box.at}/dirs/{one}").status == 200
        for method, kind in (("GET", "dirs"), ("GET", "stat"), ("POST", "dirs")):
            assert is_asked(daemon(method, f"{box.at}/{kind}/{other}", None, ASYNC)) or not served, (method, kind, other)
    assert box.exec("cat .env shut/x closed/x")["stdout"] == ".env\nshut/x\nclosed/x\n"
    assert daemon.stop() == 0, daemon.log


def test_a_file_by_any_path_of_a_call(daemon):
    client, box = Client(daemon), daemon.create()
    fill(box)
    real = 0
    for one, other in zip(spellings(IN_CALLS, "ok"), spellings(IN_CALLS, ".env")):
        served = client.call("code_read_file", sandbox_id=box.id, file_path=one)["success"]
        for tool, more in (("code_read_file", {}), ("code_write_file", {"content": "x"})):
            answer = client.call(tool, sandbox_id=box.id, file_path=other, **more)
            assert is_held(answer, served), (other, answer)
        real += served
    assert real >= 6
    # one that is too long to be judged as a call waits as an operation
    late = client.call("code_write_file", sandbox_id=box.id, file_path="/workspace//.env/", content="x" * 70000)
    assert is_held(late, True), late
    for one, other in zip(spellings(IN_CALLS, "open"), spellings(IN_CALLS, "secret")):
        served = client.call("code_list_files", sandbox_id=box.id, path=one)["success"]
        answer = client.call("code_list_files", sandbox_id=box.id, path=other)
        assert is_held(answer, served), (other, answer)
    assert box.exec("cat .env")["stdout"] == ".env\n"


def test_a_workspace_at_its_own_path(cloche):
    """In mode light it is where it is on the host; MCP calls it /workspace all the same."""
    (cloche.project / ".env").write_text("mine\n")
    (cloche.project / "ok").write_text("ok\n")
    settings = cloche.home / "light.yaml"
    settings.write_text(f"mode: light\nworkspace: {cloche.project}:ro\n")
    daemon = serve(cloche, "--settings", str(settings), equals=f"{cloche.project}/.env")
    client, box, real = Client(daemon), daemon.create(), 0
    for at in ("NAME", "./NAME", f"{cloche.project}/NAME", f"{cloche.project}//./NAME/", "/workspace/NAME"):
        one, other = at.replace("NAME", "ok"), at.replace("NAME", ".env")
        served = daemon.get(f"{box.at}/files/{one}").status == 200
        assert is_asked(daemon("GET", f"{box.at}/files/{other}", None, ASYNC)) or not served, other
        called = client.call("code_read_file", sandbox_id=box.id, file_path=one)["success"]
        answer = client.call("code_read_file", sandbox_id=box.id, file_path=other)
        assert is_held(answer, called), (other, answer)
        real += served + called
    assert real >= 8
    assert daemon.stop() == 0, daemon.log


def test_languages_folders_hosts_packages_and_sandboxes_by_any_name(daemon):
    client, box, prod = Client(daemon), daemon.create(), daemon.create(name="prod")
    fill(box)
    for name in ("python", "py"):
        assert is_asked(daemon("POST", "/v1/execute", {"language": name, "code": "print(1)"}, ASYNC)), name
    for cwd in ("/tmp", "/tmp/", "//tmp", "/./tmp", "/tmp/."):
        assert is_asked(daemon("POST", f"{box.at}/exec", {"command": "pwd", "cwd": cwd}, ASYNC)), cwd
    for host in ("evil.example", "Evil.EXAMPLE", "evil.example."):
        answer = client.call("code_execute", language="shell", code=":", network_enabled=True, allowed_domains=[host])
        assert answer.get("error_type") == "ApprovalRequired", (host, answer)
    for package in ("evil-pack", "Evil_Pack", "evil.pack==1.0", "EVIL-._pack[x]>=1"):
        answer = client.call("code_install_package", sandbox_id=box.id, package=package, registry="pypi")
        assert answer["error_type"] == "ApprovalRequired", (package, answer)
    assert client.call("code_install_package", sandbox_id=box.id, package="x")["error_type"] == "ApprovalRequired"
    for which in (prod.id, "prod"):
        assert client.call("expose_port", sandbox_id=which, port=80)["error_type"] == "ApprovalRequired", which
        assert is_asked(daemon("DELETE", f"/v1/sandboxes/{which}/files/x", None, ASYNC)), which
    assert daemon("DELETE", f"{box.at}/files/ok", None, ASYNC).status in (200, 204)


def test_what_is_shown_and_approved_is_the_one_form(daemon):
    box = daemon.create()
    fill(box)
    first = daemon("GET", f"{box.at}/files/%2e/.env/", None, ASYNC)
    assert first.status == 202, first
    asked = daemon.get(first.json["url"]).json
    assert asked["params"] == {"file_path": ".env"}, asked


def test_a_folder_that_its_text_does_not_say(daemon):
    """`..` behind a link leads to where the link leads: nobody is asked about, and nothing runs in, such a cwd."""
    box = daemon.create()
    assert box.exec("mkdir -p /tmp/evil/x && ln -s /tmp/evil/x L")["exit_code"] == 0
    for cwd in ("L/..", "L/../", "..", "/tmp/evil/..", "./L//../x"):
        for at, body in ((f"{box.at}/exec", {"command": "pwd"}), (f"{box.at}/exec", {"command": "pwd", "background": True}),
                         (f"{box.at}/contexts", {"language": "shell"})):
            refused = daemon("POST", at, {**body, "cwd": cwd}, ASYNC)
            assert (refused.status, refused.json["code"]) == (400, "exec.cwd"), (at, cwd, refused)
    # the warden's own, of what no front has looked at
    assert daemon.post("/api/sandbox/start").json["state"] == "ready"
    run = daemon.post("/api/sandbox/exec", {"command": "pwd", "workdir": "/tmp/.."})
    assert run.status == 400 and "`..`" in run.json["error"], run
    assert box.exec("pwd", cwd="/tmp/evil/x")["stdout"] == "/tmp/evil/x\n" and box.exec("pwd", cwd="L")["exit_code"] == 0
    assert box.exec("mkdir a..b ...; pwd")["exit_code"] == 0 and box.exec("pwd", cwd="a..b")["stdout"].endswith("/a..b\n")


def test_a_rule_about_a_sandbox_is_about_the_stopped_one_too(daemon):
    """Its name and id are what the rule says while it lives and after that: it is not recovered, changed or removed unasked."""
    kept, other = daemon.create(name="kept"), daemon.create(name="other")
    assert daemon.post("/v1/kill").json == {"stopped": 2} and kept.wait_for("stopped") and other.wait_for("stopped")
    for method, rest, body in (("POST", "/recover", None), ("PATCH", "/policy", {"policy": {}}), ("DELETE", "", None)):
        asked = daemon(method, f"{kept.at}{rest}", body, ASYNC)
        assert asked.status == 202, (method, rest, asked)
    assert daemon.post(f"{other.at}/recover").json["state"] == "ready"


def test_a_language_of_the_users_own_by_its_alias(cloche):
    folder = cloche.home / "config/cloche/runtimes.d"
    folder.mkdir(parents=True)
    (folder / "perl.yaml").write_text('command: [perl, -w, "{file}"]\nextension: pl\nalias: pl\n')
    cloche.env["XDG_CONFIG_HOME"] = str(cloche.home / "config")
    daemon = serve(cloche)
    for name in ("perl", "pl"):
        assert is_asked(daemon("POST", "/v1/execute", {"language": name, "code": "print 1"}, ASYNC)), name
    assert daemon.stop() == 0, daemon.log
