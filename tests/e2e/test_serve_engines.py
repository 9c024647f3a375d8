"""cloche serve with sandboxes of other engines than native: walls, limits, network, changes, and that nothing is left of them.

What any sandbox must do is in conformance/test_self_check_serve.py and test_self_check_mcp.py, on the same engines.
"""
import os
import shutil
import signal
from pathlib import Path

import pytest

from helpers import leaks, requirement
from helpers.daemon import Daemon, Sandbox, answers, kill_one, restart, with_curl
from helpers.runner import wait_for
from helpers.served import SETTINGS, lend

pytestmark = [requirement("R21", "R41", "R60"), pytest.mark.root]
ENGINES = ("crun", "runc", "runsc")
OWN_LIMITS = ("runsc", "docker", "microvm")     # the keeper has no cgroup of theirs that it could change
EAT = "x = bytearray({} << 20); x[::4096] = b'x' * len(x[::4096]); print('ate', flush=True)"


@pytest.fixture(scope="module", params=ENGINES)
def lender(request):
    made = lend(request.param)
    made.name = request.param
    yield made
    made.end()


@pytest.fixture
def daemon(request, world, cloche, lender):
    lent = lender.lend(request, world, cloche)
    lent.engine = lender.name
    yield lent
    lender.take_back()


def family(daemon, *names):
    """Living processes below the daemon of those names: pid → name."""
    return {pid: name for pid, (_, state, name) in leaks.family(daemon.process.pid).items() if state not in "ZX" and name in names}


def holders(daemon):
    return family(daemon, "cloche-oci")


def patch(box, **limits):
    return box.daemon("PATCH", f"{box.at}/policy", {"limits": limits})


# --- its walls


@requirement("R26")
def test_who_it_is(daemon):
    box = daemon.create()
    facts = box.record["facts"]
    assert facts["engine"] == SETTINGS[daemon.engine]["engine"] and facts["network"] == "none"
    assert facts.get("runtime") == SETTINGS[daemon.engine].get("runtime") and facts["boundary"] == {"runsc": "kernel", "microvm": "vm"}.get(daemon.engine, "process")
    said = box.exec("id -u; hostname; grep -E 'Cap|NoNew|Seccomp:' /proc/self/status; ls /sys/class/net 2>/dev/null; tr '\\0' ' ' < /proc/1/cmdline")
    words = said["stdout"].split()
    assert (words[0] == "1000" or daemon.engine == "docker" and int(words[0]) > 0x70000000) and words[1] == "cloche", said
    assert words.count("0" * 16) == 5, said
    assert words[words.index("NoNewPrivs:") + 1] == "1" and words[words.index("Seccomp:") + 1] == "2", said
    assert "eth0" not in words and "serve" not in words, said
    said = box.exec("unshare -U id; unshare -r id; mount -t tmpfs x /tmp; echo x > /etc/x; echo x > /.cloche/x")
    assert said["stdout"] == "" and said["exit_code"] != 0, said
    # gVisor lists the numbers of the guest's descriptors; where they lead to, and what it is, nobody inside has
    said = box.exec("cat /proc/1/fd/* /proc/1/environ /proc/1/maps; readlink /proc/1/fd/* /proc/1/exe /proc/1/cwd; ls /proc/1/root/; exec 9>/proc/1/fd/3")
    assert said["stdout"] == "" and said["exit_code"] != 0, said


@requirement("R26", "R65")
def test_limits(daemon):
    box = daemon.create(policy={"limits": {"memory": "200m", "pids": 20, "disk": "20m"}})
    said = box.exec(["python3", "-c", EAT.format(400)])
    # a machine's kernel may refuse at once what its whole memory is not enough for
    assert said["stdout"] == "" and (said["signal"] == 9 or daemon.engine == "microvm" and said["exit_code"] == 1), said
    if box.show()["state"] == "ready":
        assert box.exec("head -c 50000000 /dev/zero > /tmp/x")["exit_code"] == 1
        said = box.exec("for i in $(seq 60); do sleep 2 & done; jobs -p | wc -l")
        assert "annot fork" in said["stderr"] or said["exit_code"] is None, said


def test_two_sandboxes_share_nothing(daemon):
    one, two = daemon.create(), daemon.create(policy={"engine": "native", "runtime": "auto"})
    assert two.record["facts"]["engine"] == "native"
    three = daemon.create()
    assert one.put("f", b"one").ok
    assert one.exec("echo one > /tmp/f; echo one > ~/f; sleep 987 > /dev/null 2>&1 &")["exit_code"] == 0
    for other in (two, three):
        said = other.exec("cat f /tmp/f ~/f; ps ax")
        assert "one\n" not in said["stdout"] and "987" not in said["stdout"] and said["stderr"].count("No such file") == 3, said
    listed = {b["id"]: b["facts"]["engine"] for b in daemon.get("/v1/sandboxes").json["sandboxes"]}
    assert listed == {b.id: b.record["facts"]["engine"] for b in (one, two, three)}


@requirement("R26")
def test_who_holds_a_runtime_has_nothing_of_the_keepers(daemon):
    """It lives beside code that nobody has read, as root: no way to the warden, the launcher or a vault is open to it."""
    daemon.create()
    holder, = holders(daemon)
    open_ = {int(fd): os.readlink(f"/proc/{holder}/fd/{fd}") for fd in os.listdir(f"/proc/{holder}/fd")}
    assert set(open_) <= {0, 1, 2, 3} and not [to for to in open_.values() if not to.startswith(("/dev/null", "pipe:"))], open_


# --- the network


@requirement("R13", "R14")
@pytest.mark.parametrize("engine", ENGINES)
def test_hosts_by_name(online, engine):
    settings = lend(engine)
    online.cloche.env.update(settings.env)
    daemon = Daemon(online.cloche, *with_curl(online.bare), path=online.bare.state / "cloche" / "serve" / "api.sock")
    box = daemon.create(policy={**settings.settings, "network": {"mode": "allowlist", "allow": ["ok.example.org"]}})
    curl = ["/usr/bin/curl", "-sS", "--max-time", "40", "-w", "%{http_code}"]
    assert "hello ok.example.org /page" in box.exec([*curl, "http://ok.example.org/page"], timeout_ms=60000)["stdout"]
    refused = box.exec([*curl, "http://evil.example.org/"], timeout_ms=60000)
    assert "hello" not in refused["stdout"] and "403" in refused["stdout"], refused
    assert online.net.asked() == {"ok.example.org"}
    # a change of its rules, and another cloche-egress: both are without the engine
    changed = daemon("PATCH", f"{box.at}/policy", {"network": {"allow": ["six.example.org"]}})
    assert changed.ok, changed
    assert "hello six.example.org" in box.exec([*curl, "http://six.example.org/"], timeout_ms=60000)["stdout"]
    kill_one(daemon, "cloche-egress")
    assert wait_for(lambda: "hello six" in box.exec([*curl, "http://six.example.org/"], timeout_ms=60000)["stdout"])
    assert box.delete().ok and not daemon.processes("cloche-egress") and not holders(daemon)
    assert daemon.stop() == 0, daemon.log


# --- its life


@requirement("R42", "R65")
def test_limits_that_change_while_it_lives(daemon):
    box = daemon.create(policy={"limits": {"memory": "300m"}})
    assert patch(box, time="2m").ok         # the keeper holds it to that
    changed = patch(box, memory="100m")
    if daemon.engine in OWN_LIMITS:
        assert changed.status == 409 and changed.json["code"] == "limits.no-cgroup" and "recover" in changed.json["detail"], changed
        return
    assert changed.ok, changed
    assert box.exec(["python3", "-c", EAT.format(150)])["stdout"] == ""
    fresh = daemon.create(policy={"limits": {"memory": "100m"}})
    assert patch(fresh, memory="400m").ok and fresh.exec(["python3", "-c", EAT.format(150)])["stdout"] == "ate\n"


@requirement("R65")
def test_limits_of_one_command(daemon):
    box = daemon.create(policy={"limits": {"memory": "300m"}})
    answer = daemon.post(f"{box.at}/exec", {"command": ["python3", "-c", EAT.format(150)], "limits": {"memory": "64m"}})
    if answer.status == 409:
        assert answer.json["code"] == "limits.no-cgroup", answer
        assert daemon.engine in OWN_LIMITS or not box.record["facts"]["memory_by"].startswith("cgroup v"), answer
        return
    assert answer.json["limit_reached"] == {"code": "limits.reached.memory", "limit": "memory", "of": "command"}, answer
    assert box.exec(["python3", "-c", EAT.format(150)])["stdout"] == "ate\n"


@requirement("R42")
def test_paused_and_resumed(daemon):
    box = daemon.create()
    assert box.exec("while :; do echo x >> /workspace/grows; sleep 0.02; done > /dev/null 2>&1 &")["exit_code"] == 0
    assert wait_for(lambda: box.read("grows").ok)
    assert daemon.post(f"{box.at}/pause").json["paused"] is True
    assert daemon.post(f"{box.at}/exec", {"command": "true"}).json["code"] == "sandbox.paused"
    assert daemon.post(f"{box.at}/resume").json["paused"] is False
    size = len(box.read("grows").body)
    assert wait_for(lambda: len(box.read("grows").body) > size)


@requirement("R22")
def test_a_durable_workspace(daemon):
    if daemon.engine == "runsc":
        refused = daemon.post("/v1/sandboxes", {"volume": {"name": "v"}})
        assert refused.status == 501 and refused.json["code"] == "oci.name-guard", refused
        return
    box = daemon.create(volume={"name": "v"})
    assert box.put("f", b"kept").ok and box.exec("mkdir d && echo x > d/g")["exit_code"] == 0
    assert box.delete().ok
    again = daemon.create(volume={"name": "v"})
    assert again.read("f").body == b"kept" and again.exec("cat d/g")["stdout"] == "x\n"


@requirement("R83")
def test_forks_and_templates_are_the_native_engines(daemon):
    box = daemon.create()
    forked = daemon.post(f"{box.at}/fork")
    assert not forked.ok and forked.json["code"] == "template.view" and "engine native" in forked.json["detail"], forked
    assert box.exec("echo on")["stdout"] == "on\n"
    source = daemon.create(policy={"engine": "native", "runtime": "auto"})
    assert daemon.post(f"{source.at}/snapshot", {"name": "t"}).ok
    refused = daemon.post("/v1/sandboxes", {"template": "t", "policy": SETTINGS[daemon.engine]})
    assert refused.status == 409 and refused.json["code"] == "template.view" and "engine native" in refused.json["detail"], refused
    assert daemon.create(template="t").record["facts"]["engine"] == "native"


# --- what is taken for the same


@requirement("R20", "R21")
def test_it_is_taken_again_only_with_the_same_runtime(cloche, tmp_path):
    lend("crun")
    copy = tmp_path / "crun"
    shutil.copy2(shutil.which("crun"), copy)
    cloche.env["PATH"] = os.pathsep.join((str(tmp_path), os.environ["PATH"]))
    daemon = Daemon(cloche)
    ask = {"workspace_key": "w", "reattach": True, "policy": SETTINGS["crun"]}
    box = Sandbox(daemon, daemon.post("/v1/sandboxes", ask).json)
    assert box.put("f", b"here").ok
    again = daemon.post("/v1/sandboxes", ask)
    assert again.status == 200 and again.json["id"] == box.id and again.json["reattached"], again
    restart(daemon)     # another warden adopts it
    assert box.read("f").body == b"here" and box.exec("cat f")["stdout"] == "here"
    other = tmp_path / "other"
    other.write_bytes(copy.read_bytes() + b"\0")
    other.chmod(0o755)
    other.rename(copy)
    fresh = daemon.post("/v1/sandboxes", ask)
    assert fresh.status == 201 and fresh.json["replaced"] == {"id": box.id, "differs": ["runtime"]}, fresh
    assert daemon.stop() == 0, daemon.log


# --- its end


def nothing_is_left(daemon):
    assert wait_for(lambda: leaks.reap_adopted(set()) or not family(daemon, "cloche-oci", "crun", "runc", "runsc"), 60)


def test_deleted(daemon):
    boxes = [daemon.create() for _ in range(2)]
    assert boxes[0].exec("setsid sleep 600 > /dev/null 2>&1 &")["exit_code"] == 0 and len(holders(daemon)) == 2
    for box in boxes:
        assert box.delete().ok and box.show()["state"] == "stopped"
    assert not holders(daemon)


@requirement("R17", "R42")
@pytest.mark.parametrize("whom", ("cloche-oci", "runtime", "cloche-guest", "cloche-keeper"))
def test_somebody_is_killed(daemon, whom):
    """The sandbox has ended, the daemon knows and says so, and makes it anew when it is asked to."""
    if whom == "cloche-guest" and daemon.engine == "runsc":
        pytest.skip("the guest is no process of the host's: gVisor has it")
    box = daemon.create()
    victim, = family(daemon, daemon.engine if whom == "runtime" else whom)
    os.kill(victim, signal.SIGKILL)
    assert box.wait_for("stopped")
    nothing_is_left(daemon)
    answer = daemon.post(f"{box.at}/exec", {"command": "true"})
    assert answer.status in (409, 410) and answer.json["code"] in ("sandbox.state", "sandbox.gone"), answer
    assert daemon.post(f"{box.at}/recover").ok and box.exec("echo on")["stdout"] == "on\n"


@requirement("R17", "R42")
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("janitor", (False, True))
def test_the_daemon_is_killed(cloche, engine, janitor):
    """@janitor: too, so that nobody is left to remove what lies outside. The next daemon does."""
    made = lend(engine)
    cloche.env.update(made.env)
    daemon = Daemon(cloche)
    box = daemon.create(policy=made.settings)
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


# --- what it refuses


@pytest.mark.parametrize("policy,code", (({"mode": "light"}, "oci.mode"), ({"view": "host"}, "oci.view"), ({"network": "host"}, "oci.network"),
                                         ({"engine": "native"}, "policy.runtime.engine")))
def test_refusals(daemon, policy, code):
    refused = daemon.post("/v1/sandboxes", {"policy": policy})
    assert not refused.ok and refused.json["code"] == code and refused.json["detail"], refused
    assert not holders(daemon)


def test_a_runtime_that_is_not_there(cloche, tmp_path):
    cloche.env["PATH"] = str(tmp_path)
    daemon = Daemon(cloche)
    refused = daemon.post("/v1/sandboxes", {"policy": SETTINGS["crun"]})
    assert refused.status == 501 and refused.json["code"] == "oci.runtime" and "crun" in refused.json["error"], refused
    assert daemon.create().exec("true")["exit_code"] == 0
    assert daemon.stop() == 0, daemon.log


@pytest.mark.ordinary
def test_an_ordinary_user_is_told(cloche):
    daemon = Daemon(cloche)
    refused = daemon.post("/v1/sandboxes", {"policy": {"engine": "oci"}})
    assert refused.status == 501 and refused.json["code"] == "oci.root", refused
    assert daemon.stop() == 0, daemon.log
