"""A sandbox of the daemon has the network by name, and secrets, as one of cloche run has."""
import json
import os
import signal

import pytest

from helpers import requirement
from helpers.daemon import Daemon, caller, with_curl
from helpers.runner import wait_for

pytestmark = [requirement("R02", "R13", "R61"), pytest.mark.root]


@pytest.fixture
def daemon(online):
    made = Daemon(online.cloche, *with_curl(online.bare), path=online.bare.state / "cloche" / "serve" / "api.sock")
    yield made
    assert made.stop() == 0, made.log


def test_hosts_by_name(online, daemon):
    box = daemon.create(policy={"network": {"mode": "allowlist", "allow": ["ok.example.org"]}})
    other = daemon.create()
    curl = ["/usr/bin/curl", "-sS", "--max-time", "40", "-w", "%{http_code}"]
    assert box.record["facts"]["network"] == "allowlist" and other.record["facts"]["network"] == "none"
    result = box.exec([*curl, "http://ok.example.org/page"], timeout_ms=60000)
    assert "hello ok.example.org /page" in result["stdout"], result
    result = box.exec([*curl, "http://evil.example.org/"], timeout_ms=60000)
    assert "hello" not in result["stdout"] and "403" in result["stdout"], result
    assert other.exec([*curl, "http://ok.example.org/"], timeout_ms=60000)["exit_code"] != 0
    assert online.net.asked() == {"ok.example.org"}
    # what was decided is the owner's to read, and egress ends with its sandbox
    log = online.bare("net", "log", "--json", box.id[:12]).json
    assert {(d["verdict"], d["host"]) for d in log["decisions"]} == {("allow", "ok.example.org"), ("deny", "evil.example.org")}, log
    assert len(daemon.running("cloche-egress")) == 1
    assert box.delete().ok and not daemon.processes("cloche-egress")


def test_a_rule_that_its_owner_adds(online, daemon):
    """Told to its keeper by `cloche net`; the warden hears of it, and the sandbox lives on."""
    boxes = [daemon.create(policy={"network": {"mode": "allowlist", "allow": ["ok.example.org"]}}) for _ in range(2)]
    run = boxes[0].record["facts"]["run"]
    curl = ["/usr/bin/curl", "-sS", "--max-time", "40"]
    for verb, host in (("allow", "six.example.org"), ("deny", "ok.example.org")):
        result = online.bare("net", verb, run, host)
        assert result.ok, result

    def told():
        found = daemon.get(f"/v1/audit?sandbox={boxes[0].id}&type=privileged_capability_invocation").json["entries"]
        return [(e["metadata"]["decision"], e["metadata"]["rule"]) for e in found if e["metadata"]["capability"] == "network_rule"]
    assert wait_for(lambda: len(told()) == 2, 60), told()
    assert sorted(told()) == [("allow", "six.example.org"), ("deny", "ok.example.org")]
    for box in boxes:
        assert box.show()["state"] == "ready", box.show()
    assert "hello six.example.org" in boxes[0].exec([*curl, "http://six.example.org/"], timeout_ms=60000)["stdout"]
    assert "hello" not in boxes[0].exec([*curl, "http://ok.example.org/"], timeout_ms=60000)["stdout"]
    assert "hello" not in boxes[1].exec([*curl, "http://six.example.org/"], timeout_ms=60000)["stdout"]
    assert "hello ok.example.org" in boxes[1].exec([*curl, "http://ok.example.org/"], timeout_ms=60000)["stdout"]


def test_the_kill_switch_closes_the_network(online, daemon):
    box = daemon.create(policy={"network": {"mode": "allowlist", "allow": ["ok.example.org"]}})
    assert box.record["state"] == "ready" and daemon.running("cloche-egress")
    assert daemon.post("/v1/kill").json == {"stopped": 1}
    assert not daemon.processes("cloche-egress") and not daemon.processes("cloche-keeper")


@requirement("R16")
def test_a_secret_is_a_placeholder_inside(online, daemon):
    value = "ghp_" + "TheRealValue0123456789" + "abcdefGHIJKL"
    assert online.bare("secret", "set", "token", "--binding", "github", stdin=value).ok
    box = daemon.create(policy={"secrets": ["token"], "network": {"mode": "allowlist", "allow": ["api.github.com"]}})
    told = box.exec("env")["stdout"]
    assert "GITHUB_TOKEN=ghp_" in told and value not in told, told
    assert daemon.processes("cloche-vault")
    assert box.delete().ok and not daemon.processes("cloche-vault")


@requirement("R16", "R21")
def test_a_template_that_changed_is_another_sandbox(online, daemon):
    """What a file with placeholders holds is what a sandbox is held to, wherever it is written."""
    assert online.bare("secret", "set", "token", "--binding", "github", stdin="ghp_" + "TheRealValue0123456789" + "abcdefGHIJKL").ok
    template = online.bare.home / "t.in"
    policy = {"secrets": ["token"], "network": {"mode": "allowlist", "allow": ["api.github.com"]},
              "secret-files": [{"path": "/run/t", "template": str(template)}]}

    def ask(text):
        template.write_text(text + " ${token}")
        return daemon.post("/v1/sandboxes", {"workspace_key": "w", "reattach": True, "policy": policy})
    first, same, other = ask("a").json, ask("a").json, ask("b").json
    assert same["id"] == first["id"] and same["reattached"], same
    assert other["replaced"] == {"id": first["id"], "differs": ["profile"]}, other


@requirement("R16", "R45")
def test_what_was_kept_out_of_an_answer_is_in_the_record(online, daemon):
    value = "ghp_" + "TheRealValue0123456789" + "abcdefGHIJKL"
    assert online.bare("secret", "set", "TOK", "--host", "ok.example.org", "--place", "bearer", "--env", "TOK", stdin=value).ok
    network = {"mode": "allowlist", "allow": ["ok.example.org"], "extra-ca": [str(online.net.ca)]}
    box = daemon.create(policy={"secrets": ["TOK"], "network": network})
    result = box.exec("curl -sS --max-time 40 -H \"Authorization: Bearer $TOK\" https://ok.example.org/mirror/plain; echo; echo $TOK", timeout_ms=60000)
    placeholder = result["stdout"].split()[-1]
    assert value not in result["stdout"] and result["stdout"].count(placeholder) >= 2, result

    def told():
        return daemon.get(f"/v1/audit?sandbox={box.id}&type=secret_sanitization_inbound").json["entries"]
    assert wait_for(told, 60)
    entry, = told()
    assert (entry["metadata"]["secret"], entry["metadata"]["host"], entry["metadata"]["count"]) == ("TOK", "ok.example.org", 1), entry
    assert value not in json.dumps(entry) and placeholder not in json.dumps(entry)


@requirement("R89")
def test_what_happens_to_a_sandbox_is_in_the_log(online):
    daemon = Daemon(online.cloche, "--log-format", "json", path=online.bare.state / "cloche" / "serve" / "api.sock")
    daemon.create(policy={"network": {"mode": "allowlist", "allow": ["ok.example.org"]}})
    os.kill(daemon.running("cloche-egress")[0], signal.SIGKILL)
    daemon.hear(b"cloche-egress ended")
    assert daemon.stop() == 0, daemon.log
    said = [e for e in map(json.loads, daemon.log.splitlines()) if "cloche-egress ended" in e["message"]]
    assert [(e["process"], e["level"]) for e in said] == [("cloche-keeper", "warn")], said


@requirement("R63")
@pytest.mark.parametrize("host", ["ok.example.org", "six.example.org"])
def test_a_server_that_is_told_of_approvals_has_a_name(online, host):
    """By the resolver of the host, over either family, in TLS."""
    key = online.bare.home / "hook.secret"
    key.write_bytes(b"a-secret-of-the-webhook-0123456789\n")
    key.chmod(0o600)
    daemon = Daemon(online.cloche, "--webhook-url", f"https://{host}/hook", "--webhook-secret", str(key), "--webhook-ca",
                    str(online.net.ca), path=online.bare.state / "cloche" / "serve" / "api.sock", gate=None)
    try:
        agent = caller(daemon, "agent")
        box = agent.create()
        told = agent("POST", f"{box.at}/exec", {"command": "echo x"}, {"Prefer": "respond-async"})
        assert told.status == 202, told
        assert wait_for(lambda: online.net.requests)
    finally:
        assert daemon.stop() == 0, daemon.log
    first = online.net.requests[0]
    assert (first["method"], first["path"], first["host"], first["tls"]) == ("POST", "/hook", host, True), first


@requirement("R89")
@pytest.mark.parametrize("host", ["ok.example.org", "six.example.org"])
def test_a_collector_has_a_name_and_is_told_of_connections(online, host):
    daemon = Daemon(online.cloche, "--otlp-endpoint", f"https://{host}", "--otlp-ca", str(online.net.ca), *with_curl(online.bare),
                    path=online.bare.state / "cloche" / "serve" / "api.sock")
    work = "0af7651916cd43dd8448eb211c80319c"
    try:
        box = daemon("POST", "/v1/sandboxes", {"policy": {"network": {"mode": "allowlist", "allow": ["ok.example.org"]}}},
                     {"traceparent": f"00-{work}-b7ad6b7169203331-01"}).json["id"]
        daemon("POST", f"/v1/sandboxes/{box}/exec", {"command": "curl -sm 60 http://ok.example.org/; curl -sm 60 http://evil.example.org/; sleep 2"},
               {"traceparent": f"00-{work}-b7ad6b7169203331-01"})
        told = lambda: b"".join(r["data"] for r in online.net.requests if r["path"] == "/v1/traces")
        assert wait_for(lambda: b"evil.example.org" in told() and b"sandbox exec" in told(), 60), online.net.requests
    finally:
        assert daemon.stop() == 0, daemon.log
    said = told()
    assert said.count(b"connection") == 2 and b"server.address" in said and bytes.fromhex(work) in said
    first = next(r for r in online.net.requests if r["path"] == "/v1/traces")
    assert (first["method"], first["host"], first["tls"]) == ("POST", host, True), first


@requirement("R63")
def test_a_server_that_is_told_of_approvals_hears_of_no_host(online):
    """What a sandbox's code connects to is a parameter as others are, which code wrote that nobody has read."""
    key = online.bare.home / "hook.secret"
    key.write_bytes(b"a-secret-of-the-webhook-0123456789\n")
    key.chmod(0o600)
    daemon = Daemon(online.cloche, "--webhook-url", "https://ok.example.org/hook", "--webhook-secret", str(key), "--webhook-ca",
                    str(online.net.ca), *with_curl(online.bare), path=online.bare.state / "cloche" / "serve" / "api.sock", gate=None)
    try:
        box = caller(daemon, "operator").create(policy={"network": {"mode": "allowlist", "ask": True}})
        answer = daemon.post(f"{box.at}/exec", {"command": "curl -sm 60 http://leaks-by-its-name.example.org/", "background": True})
        assert answer.status == 202, answer
        assert wait_for(lambda: [r for r in online.net.requests if r["path"] == "/hook"])
        (asked,) = daemon.get("/v1/approvals?state=pending").json["approvals"]
        assert asked["tool"] == "network" and "leaks-by-its-name" in json.dumps(asked), asked
        assert daemon.post(f"/v1/approvals/{asked['id']}/deny").ok
        told = [r["data"] for r in online.net.requests if r["path"] == "/hook"]
        assert told and not any(b"leaks-by-its-name" in data for data in told), told
    finally:
        assert daemon.stop() == 0, daemon.log
