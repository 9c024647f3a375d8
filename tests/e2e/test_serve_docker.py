"""cloche serve with sandboxes in containers of a real dockerd: the tests of test_serve_engines.py on it, and what is its own.

Needs root and dockerd (Debian's docker.io, tools/deps check), of which one is started for all of these.
"""
import os
import signal
from pathlib import Path

import pytest

from e2e import test_docker, test_serve_engines
from e2e.test_docker import containers, orphans
from e2e.test_serve_engines import family
from helpers import leaks, requirement
from helpers.daemon import Caller, Daemon, answers, kill_one, restart, token, with_curl
from helpers.engines import again
from helpers.runner import wait_for
from helpers.served import lend

pytestmark = [requirement("R21", "R41"), pytest.mark.root]
dockerd = test_docker.dockerd


@pytest.fixture(scope="module")
def lender(dockerd):
    made = lend("docker", dockerd)
    yield made
    made.end()


@pytest.fixture
def daemon(request, world, cloche, lender, dockerd):
    lent = lender.lend(request, world, cloche)
    lent.engine = "docker"
    yield lent
    lender.take_back()
    nothing_is_left(dockerd)


def nothing_is_left(dockerd):
    mounted = lambda: f"{dockerd.root}/data/overlay2/" in Path("/proc/self/mountinfo").read_text("utf-8")
    assert wait_for(lambda: not containers(dockerd) and not orphans() and not mounted(), 60), (containers(dockerd), orphans())


def connections(dockerd):
    """To the daemon's socket, as it has accepted them."""
    path = dockerd.host.partition("://")[2]
    return [line for line in Path("/proc/net/unix").read_text("ascii").splitlines() if line.split()[-1] == path and line.split()[5] == "03"]


again(globals(), of=test_serve_engines, only=(
    "test_who_it_is", "test_limits", "test_two_sandboxes_share_nothing", "test_paused_and_resumed", "test_a_durable_workspace",
    "test_limits_that_change_while_it_lives", "test_limits_of_one_command", "test_forks_and_templates_are_the_native_engines"))


@requirement("R26")
def test_a_sandbox_that_lives_has_no_way_to_the_daemon(daemon, dockerd):
    """Who speaks to that socket is root: nobody who hears a sandbox holds a connection, or could make one."""
    box = daemon.create()
    assert wait_for(lambda: not connections(dockerd)), connections(dockerd)
    keeper, = family(daemon, "cloche-keeper")
    assert "Seccomp:\t2" in Path(f"/proc/{keeper}/status").read_text("ascii")
    holder, = family(daemon, "cloche-docker")
    assert sorted(map(int, os.listdir(f"/proc/{holder}/fd"))) == [0, 1, 2, 3]
    path = dockerd.host.partition("://")[2]
    said = box.exec(["python3", "-c", f"import socket\nsocket.socket(socket.AF_UNIX).connect({path!r})"])
    assert said["exit_code"] != 0 and "Error" in said["stderr"], said
    assert box.delete().ok and box.show()["state"] == "stopped"


@requirement("R26", "R41")
@pytest.mark.parametrize("policy", ({"workspace": "{}:ro"}, {"binds": ["{}:/d"]}, {"unix-sockets": {"allow": ["{}/socket"]}}), ids=str)
def test_the_daemons_socket_is_given_to_nobody(daemon, dockerd, policy):
    def filled(value):
        return value.replace("{}", str(dockerd.root)) if isinstance(value, str) else [filled(v) for v in value] if isinstance(value, list) \
            else {k: filled(v) for k, v in value.items()}
    refused = daemon.post("/v1/sandboxes", {"policy": filled(policy)})
    assert not refused.ok and refused.json["code"] == "docker.socket.reachable", refused


@requirement("R20", "R41")
def test_an_agent_gets_the_operators_engine_and_no_other(daemon, dockerd):
    agent = Caller(daemon, Authorization="Bearer " + token(daemon, "agent")["token"])
    box = agent.create()
    assert box.record["facts"]["engine"] == "docker" and len(containers(dockerd)) == 1
    for policy in ({"engine": "native"}, {"engine": "auto"}, {"container-prefix": "others-"}, {"runtime": "crun"}):
        refused = agent.post("/v1/sandboxes", {"policy": policy})
        assert refused.status == 403 and refused.json["code"] == "policy.ceiling", refused
    assert agent("DELETE", box.at).ok


@requirement("R13", "R14")
def test_hosts_by_name(online, dockerd):
    online.cloche.env["DOCKER_HOST"] = dockerd.host
    daemon = Daemon(online.cloche, *with_curl(online.bare), path=online.bare.state / "cloche" / "serve" / "api.sock")
    box = daemon.create(policy={"engine": "docker", "network": {"mode": "allowlist", "allow": ["ok.example.org"]}})
    curl = ["/usr/bin/curl", "-sS", "--max-time", "40", "-w", "%{http_code}"]
    assert "hello ok.example.org /page" in box.exec([*curl, "http://ok.example.org/page"], timeout_ms=60000)["stdout"]
    refused = box.exec([*curl, "http://evil.example.org/"], timeout_ms=60000)
    assert "hello" not in refused["stdout"] and "403" in refused["stdout"] and online.net.asked() == {"ok.example.org"}, refused
    kill_one(daemon, "cloche-egress")
    assert wait_for(lambda: "hello ok" in box.exec([*curl, "http://ok.example.org/"], timeout_ms=60000)["stdout"])
    assert box.delete().ok and not daemon.processes("cloche-egress")
    assert daemon.stop() == 0, daemon.log
    nothing_is_left(dockerd)


@requirement("R42")
def test_another_warden_adopts_it(cloche, dockerd):
    cloche.env["DOCKER_HOST"] = dockerd.host
    settings = cloche.home / "docker.yaml"
    settings.write_text("engine: docker\n", encoding="utf-8")
    daemon = Daemon(cloche, "--settings", str(settings))
    ask = {"workspace_key": "w", "reattach": True}
    made = daemon.post("/v1/sandboxes", ask)
    at = f"/v1/sandboxes/{made.json['id']}"
    assert daemon("PUT", f"{at}/files/f", b"here").ok
    restart(daemon)
    assert daemon.get(f"{at}/files/f").body == b"here" and len(containers(dockerd)) == 1
    again_ = daemon.post("/v1/sandboxes", ask)
    assert again_.status == 200 and again_.json["reattached"] and again_.json["id"] == made.json["id"], again_
    assert daemon.stop() == 0, daemon.log
    nothing_is_left(dockerd)


@requirement("R17", "R42")
@pytest.mark.parametrize("whom", ("guest", "cloche-keeper", "container"))
def test_somebody_is_killed(daemon, dockerd, whom):
    box = daemon.create()
    if whom == "guest":
        os.kill(int(dockerd.docker("inspect", "-f", "{{.State.Pid}}", *containers(dockerd)).stdout), signal.SIGKILL)
    elif whom == "container":
        assert dockerd.docker("rm", "-f", *containers(dockerd)).returncode == 0
    else:
        victim, = family(daemon, whom)
        os.kill(victim, signal.SIGKILL)
    assert box.wait_for("stopped")
    nothing_is_left(dockerd)
    assert daemon.post(f"{box.at}/recover").ok and box.exec("echo on")["stdout"] == "on\n"


@requirement("R42")
def test_who_only_waits_is_killed(daemon):
    """The container is the daemon's: it goes on, and ends as always."""
    box = daemon.create()
    victim, = family(daemon, "cloche-docker")
    os.kill(victim, signal.SIGKILL)
    assert wait_for(lambda: not family(daemon, "cloche-docker")) and box.exec("echo on")["stdout"] == "on\n"
    assert box.delete().ok and box.show()["state"] == "stopped"


@requirement("R17", "R42")
def test_a_janitor_that_was_killed(daemon, dockerd):
    """The next one cannot ask the daemon for anything; the container goes all the same."""
    box = daemon.create()
    keeper, = family(daemon, "cloche-keeper")
    janitors = lambda: [pid for pid, (parent, state, name) in leaks.parents().items()
                        if parent == keeper and name == "cloche-janitor" and state not in "ZX"]
    first, = janitors()
    os.kill(first, signal.SIGKILL)
    assert wait_for(lambda: (found := janitors()) and found != [first], 60)
    assert box.exec("echo on")["stdout"] == "on\n" and box.delete().ok
    nothing_is_left(dockerd)


@requirement("R17", "R42")
@pytest.mark.parametrize("janitor", (False, True))
def test_the_daemon_is_killed(cloche, dockerd, janitor):
    """@janitor: too, and dockerd does not answer meanwhile. The next cloche serve removes what is left."""
    cloche.env["DOCKER_HOST"] = dockerd.host
    daemon = Daemon(cloche)
    box = daemon.create(policy={"engine": "docker"})
    watched = leaks.family(daemon.process.pid)
    if janitor:
        keeper, = family(daemon, "cloche-keeper")
        dockerd.process.send_signal(signal.SIGSTOP)
        os.kill(keeper, signal.SIGSTOP)
        leaks.kill([pid for pid, (parent, _, name) in watched.items() if name == "cloche-janitor" and parent == keeper])
        os.kill(keeper, signal.SIGKILL)
    daemon.kill()

    def gone():
        leaks.reap_adopted(set())
        table = leaks.parents()
        return not [name for pid, (_, _, name) in watched.items() if pid in table and table[pid][1] not in "ZX" and table[pid][2] == name]
    assert wait_for(gone, 60)
    assert not janitor or orphans()
    dockerd.process.send_signal(signal.SIGCONT)
    daemon.start()
    assert answers(daemon) and wait_for(lambda: box.show()["state"] == "stopped")
    nothing_is_left(dockerd)
    assert daemon.stop() == 0, daemon.log


@requirement("R42")
def test_a_daemon_that_hangs_holds_up_nobody(daemon, dockerd):
    box, other = daemon.create(), daemon.create(policy={"engine": "native"})
    dockerd.process.send_signal(signal.SIGSTOP)
    try:
        assert box.exec("echo on")["stdout"] == "on\n"
        assert box.delete().ok and box.show()["state"] == "stopped"
        assert other.exec("echo on")["stdout"] == "on\n" and daemon.create(policy={"engine": "native"}).exec("true")["exit_code"] == 0
        assert daemon.get("/v1/health").json["status"] == "ok"
    finally:
        dockerd.process.send_signal(signal.SIGCONT)
    nothing_is_left(dockerd)


def test_no_daemon_answers(cloche, tmp_path):
    cloche.env["DOCKER_HOST"] = f"unix://{tmp_path}/none"
    daemon = Daemon(cloche)
    refused = daemon.post("/v1/sandboxes", {"policy": {"engine": "docker"}})
    assert not refused.ok and refused.json["code"] == "docker.socket.absent" and "systemctl" in refused.json["detail"], refused
    assert daemon.create().exec("true")["exit_code"] == 0
    assert daemon.stop() == 0, daemon.log
