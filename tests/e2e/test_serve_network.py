"""A sandbox of the daemon has the network by name, and secrets, as one of cloche run has."""
import json
import os
import signal

import pytest

from helpers import requirement
from helpers.daemon import Daemon

pytestmark = [requirement("R02", "R13", "R61"), pytest.mark.root]


@pytest.fixture
def daemon(online):
    made = Daemon(online.cloche, path=online.bare.state / "cloche" / "serve" / "api.sock")
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
    assert len(daemon.processes("cloche-egress")) == 1
    assert box.delete().ok and not daemon.processes("cloche-egress")


def test_the_kill_switch_closes_the_network(online, daemon):
    box = daemon.create(policy={"network": {"mode": "allowlist", "allow": ["ok.example.org"]}})
    assert box.record["state"] == "ready" and daemon.processes("cloche-egress")
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


@requirement("R89")
def test_what_happens_to_a_sandbox_is_in_the_log(online):
    daemon = Daemon(online.cloche, "--log-format", "json", path=online.bare.state / "cloche" / "serve" / "api.sock")
    daemon.create(policy={"network": {"mode": "allowlist", "allow": ["ok.example.org"]}})
    os.kill(daemon.processes("cloche-egress")[0], signal.SIGKILL)
    daemon.hear(b"cloche-egress ended")
    assert daemon.stop() == 0, daemon.log
    said = [e for e in map(json.loads, daemon.log.splitlines()) if "cloche-egress ended" in e["message"]]
    assert [(e["process"], e["level"]) for e in said] == [("cloche-keeper", "warn")], said
