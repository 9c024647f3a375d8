"""cloche serve: limits of a sandbox that change while it lives."""
import glob
import json

import pytest

from helpers import requirement
from helpers.daemon import Daemon, Sandbox, caller, restart
from helpers.runner import wait_for
from helpers.shared import own, shared

pytestmark = [requirement("R26", "R65"), shared]

MIB = 1 << 20
# as many bytes as it is told, touched, held until it is told
EAT = "import sys; x = bytearray(int(sys.argv[1]) << 20); x[::4096] = b'x' * len(x[::4096]); print('ate', flush=True)"
HOLD = EAT + "; import time; time.sleep(600)"
# as many children as there may be
FORK = """
import os, time
n = 0
try:
    while n < 400:
        if os.fork() == 0:
            time.sleep(600)
            os._exit(0)
        n += 1
except OSError:
    pass
print(n, flush=True)
import signal
signal.signal(signal.SIGTERM, signal.SIG_IGN)
os.kill(0, signal.SIGTERM)
for _ in range(n):
    os.wait()       # the next one finds none of them
"""


def made(daemon, policy):
    answer = daemon.post("/v1/sandboxes", {"policy": policy})
    if answer.status == 501 and answer.json["code"] == "wall.cpu.unsupported":
        pytest.skip("nothing here limits the processor")
    assert answer.status == 201, answer
    return Sandbox(daemon, answer.json)


def patch(box, limits, **more):
    return box.daemon("PATCH", f"{box.at}/policy", {"limits": limits, **more})


def effective(box):
    limits = box.daemon.get(f"{box.at}/policy").json["effective"]["limits"]
    return {name: limits[name]["value"] for name in ("memory", "cpus", "pids")}


def held(box, which="memory"):
    """Whether a cgroup of ours holds it. Where none does a change of it is refused, and says why."""
    if box.record["facts"][f"{which}_by"].startswith("cgroup"):
        return True
    before = effective(box)
    refused = patch(box, {"memory": {"memory": "300m"}, "cpu": {"cpus": 0.25}, "pids": {"pids": 77}}[which])
    assert refused.status == 409 and refused.json["code"] in ("limits.no-cgroup", "limits.rlimit"), refused
    assert "recover" in refused.json["detail"] and effective(box) == before, refused
    return False


def eat(box, mib):
    """Whether it was there to be had."""
    answer = box.daemon.post(f"{box.at}/exec", {"command": ["python3", "-c", EAT, str(mib)]})
    return answer.status == 200 and answer.json["stdout"] == "ate\n"


def dies_of(box, mib):
    """It was not. What is no file is looked at a few times a second, so it has to stay for a while."""
    answer = box.daemon.post(f"{box.at}/exec", {"command": ["python3", "-c", HOLD, str(mib)], "timeout_ms": 600000})
    return answer.status == 200 and answer.json["oom_killed"] and box.show()["state"] == "ready"


def hold(box, mib):
    begun = box.daemon.post(f"{box.at}/exec", {"command": ["python3", "-c", HOLD, str(mib)], "background": True, "timeout_ms": 600000})
    assert begun.status == 202, begun
    at = f"{box.at}/exec/{begun.json['exec_id']}"
    assert wait_for(lambda: box.daemon.get(at).json["stdout_bytes"] > 0), box.daemon.get(at)
    return at


def files(box, name):
    """What the kernel says, of every cgroup of this life."""
    found = [open(at, encoding="ascii").read().split() for at in
             glob.glob(f"/sys/fs/cgroup/**/cloche-{box.record['facts']['run']}/{name}", recursive=True)]
    return found[0] if found else None


def test_less_memory(daemon):
    box = daemon.create(policy={"limits": {"memory": "256m"}})
    if not held(box):
        pytest.skip("no cgroup holds memory here")
    before = daemon.get(f"{box.at}/policy").headers["ETag"]
    assert eat(box, 128)
    changed = patch(box, {"memory": "96m"})
    assert changed.status == 200 and changed.headers["ETag"] != before and changed.json["policy"] == {"limits": {"memory": "96m"}}, changed
    assert effective(box)["memory"] == 96 * MIB and eat(box, 32)
    assert dies_of(box, 160), box.show()
    # as it is made anew it has what it had last
    assert box.delete().ok and box.wait_for("stopped")
    assert daemon.post(f"{box.at}/recover").json["state"] == "ready"
    assert effective(box)["memory"] == 96 * MIB and eat(box, 32) and dies_of(box, 160)


def test_more_memory(daemon):
    box = daemon.create(policy={"limits": {"memory": "64m"}})
    if not held(box):
        pytest.skip("no cgroup holds memory here")
    assert patch(box, {"memory": "300m"}).status == 200 and effective(box)["memory"] == 300 * MIB
    assert eat(box, 200) and dies_of(box, 600)


@pytest.mark.parametrize("mode", ["standard", "light"])
def test_memory_that_is_in_use_cannot_be_taken(daemon, mode):
    box = made(daemon, {"mode": mode, "limits": {"memory": "256m", "cpus": 1}})
    if not held(box) or not held(box, "cpu"):
        pytest.skip("no cgroup holds memory and the processor here")
    hold(box, 128)
    before, kernel = effective(box), files(box, "cpu.cfs_quota_us") or files(box, "cpu.max")
    refused = patch(box, {"memory": "64m", "cpus": 0.25})
    assert refused.status == 409 and refused.json["code"] == "limits.in-use", refused
    used = int(refused.json["error"].split()[0])
    assert 128 * MIB <= used <= 256 * MIB, refused
    # none of them changed, and nothing was ended for it
    assert effective(box) == before and (files(box, "cpu.cfs_quota_us") or files(box, "cpu.max")) == kernel
    assert box.exec("echo on")["stdout"] == "on\n" and eat(box, 32)
    assert patch(box, {"memory": "200m", "cpus": 0.25}).status == 200
    assert effective(box) == {**before, "memory": 200 * MIB, "cpus": 250}


def test_the_processor(daemon):
    box = made(daemon, {"limits": {"cpus": 0.3}})      # of which a double has no exact value
    if not held(box, "cpu"):
        pytest.skip("no cgroup holds the processor here")
    quota = lambda: int((files(box, "cpu.cfs_quota_us") or files(box, "cpu.max"))[0])
    assert quota() == 30000
    assert patch(box, {"cpus": 0.1}).status == 200 and quota() == 10000
    assert patch(box, {"cpus": 2}).status == 200 and quota() == 200000 and effective(box)["cpus"] == 2000
    assert patch(box, {"cpus": "none"}).status == 200 and (files(box, "cpu.cfs_quota_us") or files(box, "cpu.max"))[0] in ("-1", "max")
    assert patch(box, {"cpus": None}).status == 200 and quota() == 50000        # a service's own


def test_processes(daemon):
    box = daemon.create(policy={"mode": "light", "limits": {"pids": 60}})
    if not held(box, "pids"):
        pytest.skip("no cgroup holds processes here")
    forks = lambda: int(box.exec(["python3", "-c", FORK])["stdout"])
    assert 40 <= forks() < 60
    assert patch(box, {"pids": 20}).status == 200 and 1 <= forks() < 20
    assert patch(box, {"pids": 120}).status == 200 and 100 <= forks() < 120
    assert effective(box)["pids"] == 120


def test_processes_that_rlimits_count(daemon):
    """What each process was given cannot be more; where a cgroup counts too it can be less."""
    box = daemon.create(policy={"limits": {"pids": 60}})
    refused = patch(box, {"pids": 61})
    assert refused.status == 409 and refused.json["code"] == "limits.rlimit" and "RLIMIT_NPROC" in refused.json["error"], refused
    assert patch(box, {"pids": "none"}).status == 409 and effective(box)["pids"] == 60
    less = patch(box, {"pids": 20})
    if box.record["facts"]["pids_by"].startswith("cgroup"):
        assert less.status == 200 and int(box.exec(["python3", "-c", FORK])["stdout"]) < 20
        assert patch(box, {"pids": 60}).status == 200
    else:
        assert less.status == 409 and less.json["code"] == "limits.rlimit" and effective(box)["pids"] == 60, less
    # of what is refused nothing else of the patch is done either
    assert patch(box, {"pids": 61, "output": "5"}).status == 409 and box.exec("echo 123456789")["stdout"] == "123456789\n"


@own
def test_it_outlives_the_warden(daemon):
    box = daemon.create(policy={"limits": {"memory": "256m"}})
    if not held(box):
        pytest.skip("no cgroup holds memory here")
    assert patch(box, {"memory": "96m"}).status == 200
    restart(daemon)
    assert wait_for(lambda: effective(box)["memory"] == 96 * MIB, 60)
    assert eat(box, 32) and dies_of(box, 160)


def test_settings_that_change_are_for_new_ones(cloche):
    """A new warden says of each sandbox what is on record; what the daemon's settings are by then is nothing to it."""
    settings = cloche.home / "base.yaml"
    settings.write_text("limits:\n  memory: 256m\n")
    daemon = Daemon(cloche, "--settings", "base.yaml")
    box = daemon.create()
    settings.write_text("limits:\n  memory: 96m\n")
    restart(daemon)
    assert box.exec("echo on")["stdout"] == "on\n"
    assert effective(box)["memory"] == 256 * MIB
    if held(box):
        assert eat(box, 160)
    assert daemon.stop() == 0, daemon.log


@requirement("R23")
def test_an_agents_are_never_above_the_settings(cloche):
    """Not by itself, nor by an operator: made anew it could not have them."""
    (cloche.home / "base.yaml").write_text("limits:\n  memory: 128m\n  pids: 50\n")
    daemon = Daemon(cloche, "--settings", "base.yaml")
    agent = caller(daemon, "agent")
    made = agent.post("/v1/sandboxes", {})
    assert made.status == 201, made
    box = Sandbox(daemon, made.json)
    mine = agent("PATCH", f"{box.at}/policy", {"limits": {"memory": "64m"}})
    assert mine.status == 403 and mine.json["code"] == "auth.role", mine
    above = patch(box, {"memory": "256m"})
    assert above.status == 403 and above.json["code"] == "policy.ceiling" and "memory" in above.json["error"], above
    assert effective(box)["memory"] == 128 * MIB
    if box.record["facts"]["memory_by"].startswith("cgroup"):
        assert patch(box, {"memory": "64m"}).status == 200 and effective(box)["memory"] == 64 * MIB
        assert dies_of(box, 100)
    own = daemon.create()
    if held(own):
        assert patch(own, {"memory": "256m"}).status == 200 and eat(own, 160)
    assert json.loads(daemon.get(f"{own.at}/policy").body)["policy"] in ({}, {"limits": {"memory": "256m"}})
    assert daemon.stop() == 0, daemon.log
