"""cloche serve with sandboxes in machines of their own (the engine microvm): the tests of test_serve_engines.py on it, and what is its own.

What any sandbox must do is in conformance/test_self_check_serve.py and test_self_check_mcp.py. A machine starts in seconds of
a processor where it is emulated: so who asks for a sandbox without any wish has the one that everybody has.
"""
import json
import os
import shutil
import signal
import time
from pathlib import Path

import pytest

from e2e import test_serve_engines
from e2e import test_serve_pool as pool
from helpers import leaks, requirement
from helpers.daemon import Daemon, answers, caller, kill_one, restart, with_curl
from helpers.engines import again
from helpers.machines import ROOT
from helpers.mcp import Client
from helpers.preview import echo, expose, serve
from helpers.runner import wait_for
from helpers.served import lend

pytestmark = [requirement("R10", "R21", "R41"), pytest.mark.root]
# What is of a machine: who holds it, virtiofsd (which is two processes), QEMU; with hosts by name there is another of the first.
OF_IT = ("cloche-vm", "virtiofsd", "qemu-system-x86")


def burnt(pids):
    """{pid: what it has had of the processors}."""
    return {pid: Path(f"/proc/{pid}/stat").read_text("ascii").rpartition(")")[2].split()[11:13] for pid in pids}


@pytest.fixture(scope="module")
def lender():
    made = lend("microvm")
    yield made
    made.end()


class First:
    """The daemon, and of what it makes without any wish the first is there already."""

    def __init__(self, daemon, box):
        self.daemon, self.boxes, self.engine = daemon, [box], "microvm"

    def __getattr__(self, name):
        return getattr(self.daemon, name)

    def __call__(self, *said, **more):
        return self.daemon(*said, **more)

    def create(self, **members):
        return self.boxes.pop() if self.boxes and not members else self.daemon.create(**members)


@pytest.fixture
def daemon(request, world, cloche, lender):
    lent = lender.lend(request, world, cloche)
    yield First(lent, lender.box)
    lender.take_back()


class Own:
    """A daemon of a test's own, and what is left of its machines."""

    def __init__(self, cloche):
        made = lend("microvm")
        cloche.env.update(made.env)
        self.cloche, self.settings, self.before = cloche, made.settings, set(self.now())

    def start(self, *flags, **settings):
        path = self.cloche.home / "machines.yaml"
        path.write_text("".join(f"{name}: {value}\n" for name, value in (settings or self.settings).items()), encoding="utf-8")
        return Daemon(self.cloche, *flags, "--settings", str(path))

    @staticmethod
    def now():
        return [pid for name in OF_IT for pid in leaks.named(name)]

    def nothing_is_left(self):
        """The rest (cgroups, mounts, files) `world` looks at."""
        return wait_for(lambda: leaks.reap_adopted(set()) or not set(self.now()) - self.before, 60)


@pytest.fixture
def own(cloche):
    return Own(cloche)


def family(daemon, *names):
    return test_serve_engines.family(daemon, *names)


again(globals(), of=test_serve_engines, only=(
    "test_who_it_is", "test_limits", "test_two_sandboxes_share_nothing", "test_paused_and_resumed", "test_a_durable_workspace",
    "test_limits_that_change_while_it_lives", "test_limits_of_one_command", "test_forks_and_templates_are_the_native_engines"))


# --- its walls


@requirement("R26")
def test_what_is_around_it_has_nothing_of_the_keepers(daemon):
    """It lives beside a machine's devices: no way to the warden, the launcher or a vault is open to any of it."""
    daemon.create()
    found = family(daemon, *OF_IT)
    assert {name for name in found.values()} == set(OF_IT), found
    sockets = {}
    for pid, name in found.items():
        to = [os.readlink(f"/proc/{pid}/fd/{fd}") for fd in os.listdir(f"/proc/{pid}/fd")]
        sockets.setdefault(name, set()).update(t for t in to if t.startswith("socket:"))
        assert not [t for t in to if str(daemon.cloche.state) in t or str(daemon.cloche.home) in t], to
    keeper, = family(daemon, "cloche-keeper")
    has = {os.readlink(f"/proc/{keeper}/fd/{fd}") for fd in os.listdir(f"/proc/{keeper}/fd")}
    assert not has & set.union(*sockets.values()), (has, sockets)
    assert len(sockets["cloche-vm"]) == 1, sockets       # for the machine's last word


@requirement("R42")
def test_a_machine_of_roots_stands_still_as_a_whole(daemon):
    """The attack: root of the machine has its kernel start something where no signal of the guest's reaches it."""
    box = daemon.create(policy={"user": "0"})
    text = """
        set -e
        mkdir -p /tmp/p && mount -t proc p /tmp/p && cd /workspace
        printf '%s\\n' '#!/bin/sh' 'i=0; while :; do i=$((i + 1)); [ $((i % 2000)) = 0 ] && echo x >> /root/workspace/grows; done' > s
        cp -L /lib64/ld-linux-x86-64.so.2 l; cp -L /lib/x86_64-linux-gnu/libc.so.6 .; cp -L /bin/dash .
        echo '|/root/workspace/l --library-path /root/workspace /root/workspace/dash /root/workspace/s' > /tmp/p/sys/kernel/core_pattern
        ulimit -c unlimited
        sh -c 'kill -SEGV $$' > /dev/null 2>&1 &"""
    said = box.exec(text, timeout_ms=120000)
    assert said["exit_code"] == 0, json.dumps(said)
    size = lambda: len(box.read("grows").body)
    assert wait_for(lambda: box.read("grows").ok), "the attack has started nothing"
    assert daemon.post(f"{box.at}/pause").json["paused"] is True
    used = burnt(family(daemon, "qemu-system-x86"))         # other machines of the daemon's are among them
    time.sleep(1)
    still = {pid: had for pid, had in burnt(used).items() if had == used[pid]}
    if box.record["facts"]["pause_by"] == "machine":
        still = {pid: had for pid, had in still.items() if leaks.status(pid)[1] == "T"}
    assert still, "it runs while it is paused"
    assert daemon.post(f"{box.at}/resume").json["paused"] is False
    before = size()
    assert wait_for(lambda: size() > before) and burnt(still) != still
    assert box.delete().ok


# --- what it is used for


@requirement("R23")
def test_a_server_in_it_is_reached(daemon):
    box = daemon.create()
    serve(box)
    assert echo(daemon.get(expose(box)["path"] + "a"))[0] == "GET /a HTTP/1.1"
    assert daemon("DELETE", f"{box.at}/ports/{daemon.get(f'{box.at}/ports').json['ports'][0]['id']}").ok


@requirement("R62")
def test_code_and_contexts_over_mcp_and_v1(daemon):
    box = daemon.create()
    client = Client(daemon.daemon)
    context = client.call("code_context", sandbox_id=box.id, action="create", language="python")["context_id"]
    for code, out in (("x = 41", ""), ("print(x + 1)", "42\n")):
        ran = client.call("code_execute", sandbox_id=box.id, language="python", code=code, context_id=context)
        assert ran["success"] and ran["stdout"] == out, ran
    assert client.call("code_context", sandbox_id=box.id, action="delete", context_id=context)["success"]
    ran = daemon.post("/v1/execute", {"language": "shell", "code": "echo $((6 * 7))"})     # a machine for this alone
    assert ran.status == 200 and ran.json["stdout"] == "42\n", ran


@requirement("R64", "R69")
def test_one_that_is_made_ahead_takes_the_time_of_a_machine(own):
    """With a tenth of a processor an emulated one starts in half a minute, and its interpreter in some seconds more."""
    daemon = own.start("--pool", "1", "--pool-memory", "4096", engine="microvm", limits="{cpus: 0.1}")
    assert pool.run(daemon, "print(1)")["stdout"] == b"1\n"
    assert wait_for(lambda: pool.parked(daemon) > 0, 280), (pool.numbers(daemon), daemon.log)
    assert pool.run(daemon, "print(2)")["stdout"] == b"2\n" and pool.hits(daemon) == 1
    assert daemon.stop() == 0, daemon.log
    assert own.nothing_is_left()


@requirement("R13", "R14")
def test_hosts_by_name(online):
    made = lend("microvm")
    online.cloche.env.update(made.env)
    daemon = Daemon(online.cloche, *with_curl(online.bare), path=online.bare.state / "cloche" / "serve" / "api.sock")
    box = daemon.create(policy={**made.settings, "network": {"mode": "allowlist", "allow": ["ok.example.org"]}})
    curl = ["/usr/bin/curl", "-sS", "--max-time", "100", "-w", "%{http_code}"]
    get = lambda host: box.exec([*curl, f"http://{host}/page"], timeout_ms=120000)["stdout"]
    assert "hello ok.example.org /page" in get("ok.example.org")
    refused = get("evil.example.org")
    assert "hello" not in refused and "403" in refused and online.net.asked() == {"ok.example.org"}, refused
    # a change of its rules, and another cloche-egress: both are without the machine
    assert daemon("PATCH", f"{box.at}/policy", {"network": {"allow": ["six.example.org"]}}).ok
    assert "hello six.example.org" in get("six.example.org")
    kill_one(daemon, "cloche-egress")
    assert wait_for(lambda: "hello six" in get("six.example.org"))
    assert len(family(daemon, "cloche-vm")) == 2        # one of them carries connections
    assert box.delete().ok and not daemon.processes("cloche-egress") and not family(daemon, *OF_IT)
    assert daemon.stop() == 0, daemon.log


# --- who has one


@requirement("R20", "R60")
def test_a_floor_and_what_agents_may_ask_for(own):
    daemon = own.start(**{"agent-engines": "[microvm]"})
    agent = caller(daemon, "agent")
    assert agent.create().record["facts"]["engine"] == "native"
    box = agent.create(policy={"boundary": "vm"})
    facts = box.record["facts"]
    assert (facts["engine"], facts["boundary"], facts["pids_by"], facts["memory_by"]) == ("microvm", "vm", "rlimit", "machine"), facts
    assert "microvm (vm): taken" in facts["engine_why"] and "emulated" in "".join(facts["warnings"]) or os.path.exists("/dev/kvm"), facts
    assert agent.get(f"{box.at}/policy").json["effective"]["engine"]["value"] == "microvm"
    for policy in ({"runtime": "crun"}, {"engine": "docker"}, {"engine": "microvm", "user": "0"}, {"engine": "microvm", "private-docker": True}):
        refused = agent.post("/v1/sandboxes", {"policy": policy})
        assert not refused.ok and refused.json["code"] == "policy.ceiling", (policy, refused)
    assert daemon.stop() == 0, daemon.log
    assert own.nothing_is_left()


@requirement("R20", "R22")
def test_it_is_adopted_and_taken_again_only_with_the_same_kernel(own, cloche, tmp_path):
    for name in ("boot", "lib/modules"):
        shutil.copytree(Path(ROOT, name), tmp_path / name, symlinks=True)
    cloche.env["CLOCHE_KERNEL_ROOT"] = str(tmp_path)
    daemon = own.start()
    ask = {"workspace_key": "w", "reattach": True}
    made = daemon.post("/v1/sandboxes", ask)
    at = f"/v1/sandboxes/{made.json['id']}"
    assert made.status == 201 and daemon("PUT", f"{at}/files/f", b"here").ok
    restart(daemon)     # another warden adopts it
    assert daemon.get(f"{at}/files/f").body == b"here"
    taken = daemon.post("/v1/sandboxes", ask)
    assert taken.status == 200 and taken.json["reattached"] and taken.json["id"] == made.json["id"], taken
    image, = (tmp_path / "boot").glob("vmlinuz-*")
    image.write_bytes(image.read_bytes() + b"\0")
    fresh = daemon.post("/v1/sandboxes", ask)
    assert fresh.status == 201 and fresh.json["replaced"] == {"id": made.json["id"], "differs": ["runtime"]}, fresh
    assert daemon.stop() == 0, daemon.log
    assert own.nothing_is_left()


def test_what_it_is_not_for_is_refused(daemon):
    for policy, code in (({"mode": "light"}, "microvm.mode"), ({"view": "host"}, "microvm.view"), ({"network": "host"}, "microvm.network"),
                         ({"user": "0", "workspace": f"{daemon.cloche.project}:rw"}, "microvm.root-user"), ({"runtime": "crun"}, "policy.runtime.engine")):
        refused = daemon.post("/v1/sandboxes", {"policy": policy})
        assert not refused.ok and refused.json["code"] == code and refused.json["detail"], refused
    refused = daemon.post("/v1/sandboxes", {"policy": {"user": "0"}, "volume": {"name": "v"}})
    assert not refused.ok and refused.json["code"] == "microvm.root-user", refused
    assert len(family(daemon, "qemu-system-x86")) == 1


def test_a_kernel_that_is_not_there(own, cloche, tmp_path):
    cloche.env["CLOCHE_KERNEL_ROOT"] = str(tmp_path)
    daemon = own.start(mode="standard")
    refused = daemon.post("/v1/sandboxes", {"policy": {"engine": "microvm"}})
    assert refused.status == 501 and refused.json["code"] == "microvm.kernel" and refused.json["detail"], refused
    refused = daemon.post("/v1/sandboxes", {"policy": {"boundary": "vm"}})
    assert refused.status == 501 and refused.json["code"] == "engine.boundary" and "microvm.kernel" in refused.json["error"], refused
    assert daemon.create().exec("true")["exit_code"] == 0
    assert daemon.stop() == 0, daemon.log


@pytest.mark.ordinary
def test_an_ordinary_user_is_told(cloche):
    daemon = Daemon(cloche)
    refused = daemon.post("/v1/sandboxes", {"policy": {"engine": "microvm"}})
    assert refused.status == 501 and refused.json["code"] == "microvm.root", refused
    assert daemon.stop() == 0, daemon.log


# --- its end


@requirement("R17", "R42")
def test_somebody_is_killed(own):
    """The sandbox has ended, the daemon knows and says so, and makes it anew when it is asked to."""
    daemon = own.start()
    box = daemon.create()
    for whom in ("qemu-system-x86", "virtiofsd", "cloche-vm", "cloche-keeper"):
        assert box.exec("setsid sleep 600 > /dev/null 2>&1 &")["exit_code"] == 0
        os.kill(min(family(daemon, whom)), signal.SIGKILL)
        assert box.wait_for("stopped"), whom
        assert own.nothing_is_left(), whom
        answer = daemon.post(f"{box.at}/exec", {"command": "true"})
        assert answer.status in (409, 410) and answer.json["code"] in ("sandbox.state", "sandbox.gone"), (whom, answer)
        assert daemon.post(f"{box.at}/recover").ok and box.exec("echo on")["stdout"] == "on\n", whom
    assert box.delete().ok and box.show()["state"] == "stopped" and not family(daemon, *OF_IT)
    assert daemon.stop() == 0, daemon.log


@requirement("R17", "R42")
@pytest.mark.parametrize("janitor", (False, True))
def test_the_daemon_is_killed(own, janitor):
    """In the middle of a command. @janitor: too, so that nobody is left to remove what lies outside. The next daemon does."""
    daemon = own.start()
    box = daemon.create()
    assert box.exec("while :; do echo x >> /workspace/x; sleep 0.1; done > /dev/null 2>&1 &")["exit_code"] == 0
    watched = leaks.family(daemon.process.pid)
    if janitor:
        keeper, = family(daemon, "cloche-keeper")
        os.kill(keeper, signal.SIGSTOP)
        leaks.kill([pid for pid, (parent, _, name) in watched.items() if name == "cloche-janitor" and parent == keeper])
        os.kill(keeper, signal.SIGKILL)
    daemon.kill()

    def gone():
        leaks.reap_adopted(set())
        table = leaks.parents()
        return not [name for pid, (_, _, name) in watched.items() if pid in table and table[pid][1] not in "ZX" and table[pid][2] == name]
    assert wait_for(gone, 60)
    daemon.start()
    assert answers(daemon) and wait_for(lambda: box.show()["state"] == "stopped")
    assert daemon.post(f"{box.at}/recover").ok and box.exec("echo on")["stdout"] == "on\n"
    kept = Path(daemon.path.parent, "leavings")
    run = box.show()["facts"]["run"]
    assert wait_for(lambda: [p.name for p in kept.iterdir()] == [run], 60), list(kept.iterdir())
    assert daemon.stop() == 0, daemon.log
    assert own.nothing_is_left()


@requirement("R17")
def test_the_daemon_is_killed_while_a_machine_starts(own):
    daemon = own.start()
    client = daemon.connection()
    client.request("POST", "/v1/sandboxes", b"{}")
    assert wait_for(lambda: family(daemon, "qemu-system-x86"))
    daemon.kill()
    client.close()
    assert own.nothing_is_left()
    daemon.start()
    assert answers(daemon) and wait_for(lambda: not list(Path(daemon.path.parent, "leavings").glob("*")), 60)
    assert daemon.stop() == 0, daemon.log
