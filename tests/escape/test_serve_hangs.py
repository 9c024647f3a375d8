"""Processes of cloche serve that hang: nobody waits for them for ever, and nothing outlives its daemon by more than seconds.

One that is stopped is woken. One that hangs (Hung) is killed.
"""
import contextlib
import json
import os
import shutil
import signal
import time

import pytest

from helpers import leaks, places, requirement
from helpers.approvals import Asking, one_pending
from helpers.daemon import Daemon, answers, caller, command_of
from helpers.hung import Hung, holds
from helpers.runner import wait_for

pytestmark = requirement("R22", "R42", "R61")
ALL = ("cloche-warden", "cloche-front", "cloche-adapter", "cloche-scribe", "cloche-maker", "cloche-keeper", "cloche-egress", "cloche-vault", "cloche-starter",
       "cloche-janitor")


def ours(daemon):
    """Its living processes, but those that run in sandboxes: {pid: name}."""
    table = leaks.parents()
    named = {pid: table[pid][2] if table[pid][2] == "cloche-janitor" else command_of(pid)
             for pid in leaks.descendants(daemon.process.pid, table) if pid in table and table[pid][1] not in "ZX"}
    return {pid: name for pid, name in named.items() if name in ALL}


def gone(pids, seconds):
    def none():
        leaks.reap_adopted(set())
        table = leaks.parents()
        return not [pid for pid in pids if pid in table and table[pid][1] not in "ZX"]
    return wait_for(none, seconds)


def with_all(cloche):
    """A daemon that has a process of each kind."""
    daemon = Daemon(cloche)
    box = daemon.create(policy={"network": {"mode": "allowlist", "allow": [{"host": "ok.example.org", "methods": ["GET"]}]}})
    # each is known by its name only when it has become what it is; without a cgroup there is no janitor
    wanted = set(ALL) if places.IS_ROOT else set(ALL) - {"cloche-janitor"}
    assert wait_for(lambda: wanted <= set(ours(daemon).values())), ours(daemon)
    return daemon, box


def test_a_warden_that_is_stopped_costs_a_moment(daemon):
    box = daemon.create()
    warden = daemon.only("cloche-warden")
    os.kill(warden, signal.SIGSTOP)
    begun = time.monotonic()
    assert box.exec("echo on")["stdout"] == "on\n" and time.monotonic() - begun < 30
    assert daemon.processes("cloche-warden") == [warden]


@holds
def test_a_warden_that_hangs_costs_what_was_asked_of_it(daemon):
    box = daemon.create()
    warden = daemon.only("cloche-warden")
    assert daemon.get("/ready").status == 200
    with Hung(warden):
        for path in ("/v1/sandboxes", "/ready"):
            begun, answer = time.monotonic(), daemon.get(path)
            assert answer.status == 503 and answer.json["code"] == "serve.warden.late" and int(answer.headers["Retry-After"]) > 0, answer
            assert time.monotonic() - begun < 30
        assert daemon.get("/health").status == 200
        assert gone([warden], 60)
    assert answers(daemon) and daemon.get("/ready").status == 200
    assert box.exec("echo on")["stdout"] == "on\n" and len(daemon.processes("cloche-keeper")) == 1


@holds
def test_a_warden_that_hangs_for_a_moment_costs_nothing_that_it_had_read(cloche):
    """An approval that somebody waits for is not taken back because the machine was busy."""
    daemon = Daemon(cloche, gate=None)
    agent = caller(daemon, "agent")
    box = agent.create()
    warden = daemon.only("cloche-warden")
    asking = Asking(agent, "POST", f"{box.at}/exec", {"command": "echo on"})
    asked = one_pending(daemon)
    for _ in range(3):      # rounds in which it is asked whether it is there
        time.sleep(1)
        assert daemon.get("/ready").status == 200
    with Hung(warden):
        answer = daemon.get("/v1/sandboxes")
        assert answer.status == 503 and answer.json["code"] == "serve.warden.late", answer
    assert wait_for(lambda: daemon.get("/ready").status == 200, 30) and daemon.processes("cloche-warden") == [warden]
    assert one_pending(daemon)["id"] == asked["id"]
    assert daemon.post(f"/v1/approvals/{asked['id']}/approve").ok
    answer = asking.wait()
    assert answer.ok and answer.json["stdout"] == "on\n", answer
    assert daemon.stop() == 0


@holds
def test_a_front_that_hangs_is_replaced(daemon):
    box = daemon.create()
    front = daemon.only("cloche-front")
    with Hung(front):
        assert gone([front], 60)
    assert answers(daemon) and box.exec("echo on")["stdout"] == "on\n"


@holds
def test_an_adapter_that_hangs_is_replaced(daemon):
    """And nobody who does not need it waits for it."""
    box = daemon.create()
    adapter = daemon.only("cloche-adapter")
    with Hung(adapter):
        begun = time.monotonic()
        assert box.exec("echo on")["stdout"] == "on\n" and time.monotonic() - begun < 10
        assert gone([adapter], 60)
    assert wait_for(lambda: daemon.get("/api/sandbox/capabilities").status == 200, 60)


def test_a_keeper_that_is_stopped_costs_a_moment(daemon):
    box = daemon.create()
    keeper = daemon.only("cloche-keeper")
    for paused in (False, True):
        if paused:
            assert daemon.post(f"{box.at}/pause").ok
        os.kill(keeper, signal.SIGSTOP)
        if paused:
            assert daemon.post(f"{box.at}/resume").ok
        assert box.exec("echo on")["stdout"] == "on\n" and daemon.processes("cloche-keeper") == [keeper]


@holds
@pytest.mark.slow
def test_a_keeper_that_hangs_ends_with_its_sandbox(daemon):
    """Whoever waits for it is told; nothing else is touched."""
    box = daemon.create()
    keeper = daemon.only("cloche-keeper")
    other = daemon.create()
    with Hung(keeper):
        begun, answer = time.monotonic(), daemon.post(f"{box.at}/exec", {"command": "echo on"})
        assert answer.status >= 400 and time.monotonic() - begun < 120, answer
        assert other.exec("echo on")["stdout"] == "on\n"
        assert gone([keeper], 10)
    assert box.wait_for("stopped") and other.exec("echo on")["stdout"] == "on\n" and other.show()["state"] == "ready"


@pytest.mark.parametrize("hangs", [False, pytest.param(True, marks=holds)])
def test_a_scribe_that_hangs_costs_no_entry(cloche, hangs):
    """Where the record is required, what is asked waits for it."""
    daemon = Daemon(cloche, "--audit", "required")
    box = daemon.create()
    scribe = daemon.only("cloche-scribe")
    if hangs:
        with Hung(scribe):
            assert box.put("while", b"x").ok and gone([scribe], 60)
    else:
        os.kill(scribe, signal.SIGSTOP)
        assert box.put("while", b"x").ok and daemon.processes("cloche-scribe") == [scribe]
    assert daemon.stop() == 0
    entries = [json.loads(line) for line in cloche("audit", "query", "--json", "--sandbox", box.id).out.splitlines()]
    assert [e["metadata"].get("path") for e in entries if e["metadata"].get("capability") == "write"].count("while") == 1, entries
    assert cloche("audit", "verify").ok


@pytest.mark.parametrize("hangs", [False, pytest.param(True, marks=holds)])
def test_a_maker_that_hangs_costs_a_request(daemon, hangs):
    box, made = daemon.create(), 2
    maker = daemon.only("cloche-maker")
    if hangs:
        with Hung(maker):
            # keepers that are there already need no maker
            answers = [daemon.post("/v1/sandboxes", {})]
            while answers[-1].status == 201 and len(answers) < 4:
                answers.append(daemon.post("/v1/sandboxes", {}))
            assert answers[-1].status == 503 and answers[-1].json["code"] == "serve.maker.late", answers
            assert box.exec("echo on")["stdout"] == "on\n"
        made += len(answers) - 1
        assert wait_for(lambda: daemon.post("/v1/sandboxes", {}).status == 201, 60)
    else:
        os.kill(maker, signal.SIGSTOP)
        daemon.create()
    assert daemon.processes("cloche-maker") == [maker] and box.exec("echo on")["stdout"] == "on\n"
    assert wait_for(lambda: len(daemon.processes("cloche-keeper")) == made)  # nothing is left of what was answered too late


@pytest.mark.parametrize("name", ALL)
def test_a_daemon_ends_soon_whoever_is_stopped(cloche, name):
    daemon, _ = with_all(cloche)
    before = ours(daemon)
    for pid in [pid for pid, its in before.items() if its == name]:
        os.kill(pid, signal.SIGSTOP)
    begun = time.monotonic()
    assert daemon.stop() == 0, daemon.log
    assert time.monotonic() - begun < 15
    assert gone(before, 30), before


@holds
@pytest.mark.parametrize("name", ["cloche-warden", "cloche-keeper", "cloche-starter", "cloche-egress", "cloche-vault"])
def test_a_daemon_ends_whoever_hangs(cloche, name):
    daemon, _ = with_all(cloche)
    before = ours(daemon)
    with contextlib.ExitStack() as all_of:
        for pid in [pid for pid, its in before.items() if its == name]:
            all_of.enter_context(Hung(pid))
        begun = time.monotonic()
        daemon.stop()
        assert time.monotonic() - begun < 60, daemon.log
        assert gone(before, 30), before


@pytest.mark.parametrize("killed", [(), ("cloche-maker",)])
def test_nothing_that_is_stopped_outlives_the_launcher(cloche, killed):
    """What runs in a sandbox whose keeper was stopped would go on writing to the workspace, under a record that says
    that there is none."""
    daemon, box = with_all(cloche)
    before = ours(daemon)
    box.exec("(while :; do date +%s.%N >beat; sleep 0.05; done) >/dev/null 2>&1 &")
    for pid in before:
        os.kill(pid, signal.SIGSTOP)
    for pid in [pid for pid, name in before.items() if name in killed]:
        os.kill(pid, signal.SIGKILL)
    daemon.kill()
    assert gone(before, 60), {pid: name for pid, name in before.items() if os.path.exists(f"/proc/{pid}")}
    daemon.start()
    assert box.show()["state"] == "stopped" and not daemon.processes("cloche-guest")
    assert daemon.stop() == 0


@holds
def test_nothing_that_hangs_outlives_the_launcher_for_long(cloche):
    daemon, box = with_all(cloche)
    before = ours(daemon)
    with contextlib.ExitStack() as all_of:
        for pid in [pid for pid, name in before.items() if name not in ("cloche-janitor", "cloche-maker")]:
            # the one has to outlive them, the other kills whoever is left
            all_of.enter_context(Hung(pid))
        daemon.kill()
        assert gone(before, 40), {pid: name for pid, name in before.items() if os.path.exists(f"/proc/{pid}")}
    daemon.start()
    assert box.show()["state"] == "stopped"
    assert daemon.stop() == 0


@pytest.mark.root       # cgroups
@pytest.mark.parametrize("mode", ["standard", "light"])
def test_what_nobody_was_left_to_remove_goes_with_the_next_start(cloche, world, mode):
    daemon = Daemon(cloche)
    daemon.create(policy={"mode": mode, "limits": {"memory": "256m"}, **({} if mode == "light" else {"network": {"allow": ["ok.example.org"]}})})
    before, made = ours(daemon), set(world.watch.look())
    assert [what for what in made if what.startswith(("cgroup ", "file "))], made
    for pid in (daemon.process.pid, *before):       # the launcher first: it would remove what a dead keeper left
        os.kill(pid, signal.SIGSTOP)
    # and of the others the janitors: each is woken when its keeper dies, which may be long before this comes to it
    for pid in sorted(before, key=lambda pid: before[pid] != "cloche-janitor"):
        os.kill(pid, signal.SIGKILL)
    daemon.kill()
    assert gone(before, 20)
    left = {what for what in world.watch.look() if not what.startswith("process ")}
    assert left, "somebody removes them: this test shows nothing"
    daemon.start()
    assert wait_for(lambda: not left & set(world.watch.look()), 60), world.watch.look()
    assert wait_for(lambda: not os.listdir(cloche.state / "cloche" / "serve" / "leavings"), 60)     # the note of it is the last
    assert daemon.stop() == 0


@pytest.mark.root
def test_a_daemon_that_is_refused_removes_nothing_of_the_one_that_lives(cloche):
    daemon, box = with_all(cloche)
    assert os.listdir(cloche.state / "cloche" / "serve" / "leavings") == [box.id]
    other = cloche("serve", "--gate", "off")
    assert not other.ok and "serve.state.busy" in other.err, other
    assert box.exec("echo on")["stdout"] == "on\n"
    assert box.delete().ok and not os.listdir(cloche.state / "cloche" / "serve" / "leavings")
    assert daemon.stop() == 0


@pytest.mark.root
@pytest.mark.parametrize("hard", [False, True])
def test_a_daemon_on_a_copy_ends_nothing_of_the_one_that_lives(cloche, hard):
    """Whoever tries something on a copy of the state folder has a copy of the notes too."""
    daemon, box = with_all(cloche)
    copy = cloche.home / "copy"
    shutil.copytree(cloche.state / "cloche" / "serve", copy, ignore=lambda _, names: [n for n in names if n.endswith(".sock")])
    copy.chmod(0o700)
    if hard:        # as snapshots by hard links have it
        (copy / "leavings" / box.id).unlink()
        os.link(cloche.state / "cloche" / "serve" / "leavings" / box.id, copy / "leavings" / box.id)
    assert os.listdir(copy / "leavings") == [box.id]
    other = Daemon(cloche, "--state-dir", str(copy), "--listen", f"unix:{cloche.home}/s", path=cloche.home / "s")
    assert wait_for(lambda: not os.listdir(copy / "leavings"), 60)
    assert box.exec("echo on")["stdout"] == "on\n" and box.show()["state"] == "ready"
    assert other.stop() == 0 and box.delete().ok and daemon.stop() == 0
