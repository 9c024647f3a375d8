"""cloche serve: limits of one command inside a sandbox's: what they end, and what they leave (docs/daemon.md)."""
import glob
import time

import pytest

from helpers import leaks, requirement
from helpers.daemon import Daemon
from helpers.runner import wait_for
from helpers.shared import own, shared

pytestmark = [requirement("R65", "R26"), shared]

EAT = "import sys; x = bytearray(int(sys.argv[1]) << 20); x[::4096] = b'x' * len(x[::4096]); print('ate', flush=True)"
REFUSED = ("limits.no-cgroup", "wall.cpu.unsupported")
OWN = {"code": "limits.reached.memory", "limit": "memory", "of": "command"}


def run(box, command, limits=None, **more):
    return box.daemon.post(f"{box.at}/exec", {"command": command, **({"limits": limits} if limits is not None else {}), **more})


@pytest.fixture
def box(daemon):
    box = daemon.create(policy={"limits": {"memory": "300m", "pids": 100, "time": "60s", "output": "1m"}})
    first = run(box, ["true"], {"memory": "64m", "pids": 20})
    if first.status == 409 and first.json["code"] in REFUSED:
        assert "cgroup" in first.json["error"] and not box.record["facts"]["memory_by"].startswith("cgroup v"), (first, box.record)
        pytest.skip("no cgroup for commands here, and it says so")
    assert first.status == 200 and first.json["exit_code"] == 0 and first.json["limit_reached"] is None, first
    return box


def below():
    """Cgroups of commands, of no neighbour's where this can be told."""
    return [at for at in glob.glob("/sys/fs/cgroup/**/cloche-*/cmd-*", recursive=True)
            if not leaks.OURS or any(at.startswith(f"{own_}/") for own_ in leaks.OURS)]


def test_they_are_on_record(box):
    assert run(box, ["/bin/true"], {"memory": "64m", "pids": 20, "time": "30s", "output": "64k"}).status == 200
    entry = [e["metadata"] for e in box.daemon.get("/v1/audit?limit=1000").json["entries"] if e["metadata"].get("command") == "/bin/true"][0]
    said = {name: entry[name] for name in ("memory_bytes", "pids", "timeout_ms", "output_bytes")}
    assert said == {"memory_bytes": 64 << 20, "pids": 20, "timeout_ms": 30000, "output_bytes": 65536} and "cpu_milli" not in entry, entry


def test_memory_ends_the_command_and_not_the_sandbox(box):
    beside = box.daemon.post(f"{box.at}/exec", {"command": ["sleep", "600"], "background": True, "timeout_ms": 600000})
    assert beside.status == 202, beside
    said = run(box, ["python3", "-c", EAT, "150"], {"memory": "64m"}).json
    assert said["oom_killed"] and said["limit_reached"] == OWN and said["stdout"] == "" and said["signal"] == 9, said
    # the same with the sandbox's limits alone, right after it
    said = run(box, ["python3", "-c", EAT, "150"]).json
    assert said["stdout"] == "ate\n" and said["limit_reached"] is None and not said["oom_killed"], said
    assert box.show()["state"] == "ready"
    assert box.daemon.get(f"{box.at}/exec/{beside.json['exec_id']}").json["state"] == "running"


KEEPS = """import ctypes, time
c = ctypes.CDLL(None)
c.shmat.restype = ctypes.c_void_p
while True:
    at = c.shmat(c.shmget(0, 16 << 20, 0o1600), None, 0)
    ctypes.memset(at, 1, 16 << 20)
    c.shmdt(ctypes.c_void_p(at))
    time.sleep(0.02)
"""


def test_memory_that_outlives_its_command_ends_no_other(daemon):
    """With a cgroup, and without one: segments of System V belong to no process. They went over the limit, and nothing that came after could run
    until the sandbox ended for it."""
    box = daemon.create(policy={"limits": {"memory": "100m"}})
    assert box.exec(["python3", "-c", KEEPS])["oom_killed"]
    time.sleep(0.5)
    for _ in range(3):
        said = box.exec(["sh", "-c", "sleep 0.4; echo alive; tail -n +2 /proc/sysvipc/shm"])
        assert said["stdout"] == "alive\n" and not said["oom_killed"], said
    assert box.show()["state"] == "ready"


def test_memory_of_the_sandbox_is_told_apart(box):
    """The command may have as much as the sandbox, which holds something already."""
    hold = ["python3", "-c", EAT + "; import time; time.sleep(600)"]
    held = box.daemon.post(f"{box.at}/exec", {"command": [*hold, "200"], "background": True, "timeout_ms": 600000})
    at = f"{box.at}/exec/{held.json['exec_id']}"
    assert wait_for(lambda: box.daemon.get(at).json["stdout_bytes"] == len("ate\n"))
    said = run(box, [*hold, "200"], {"memory": "300m"}, timeout_ms=600000).json
    assert said["oom_killed"] and said["limit_reached"] == {**OWN, "of": "sandbox"}, said
    assert wait_for(lambda: box.show()["state"] == "ready")


def test_a_part_of_it_that_was_killed(box):
    said = run(box, f"python3 -c \"{EAT}\" 150; echo went on", {"memory": "64m"}).json
    assert said["stdout"] in ("went on\n", "") and said["limit_reached"] == OWN, said      # cgroup v2 ends all of it


def test_processes(box):
    fork = "import os, time\nn = 0\ntry:\n  while n < 60:\n    if os.fork() == 0: time.sleep(2); os._exit(0)\n    n += 1\nexcept OSError: pass\nprint(n)"
    few, many = (run(box, ["python3", "-c", fork], limits).json for limits in ({"pids": 10}, {"pids": 90}))
    assert int(few["stdout"]) == 9 and few["limit_reached"] == {"code": "limits.reached.pids", "limit": "pids", "of": "command"}, few
    assert int(many["stdout"]) == 60 and many["limit_reached"] is None, many


def test_processors(daemon):
    box = daemon.create()
    spin = ["python3", "-c", "import time\nt = time.monotonic()\nwhile time.process_time() < 0.4: pass\nprint(time.monotonic() - t)"]
    slow = run(box, spin, {"cpus": 0.1})
    if slow.status == 409:
        assert slow.json["code"] == "limits.no-cgroup", slow
        pytest.skip("no cgroup for commands here, and it says so")
    # on a busy machine it takes longer, and never less
    assert float(slow.json["stdout"]) > 2 and float(run(box, spin, {"cpus": "0.4", "memory": "64m"}).json["stdout"]) > 0.5


def test_time_and_output_need_no_cgroup(daemon):
    box = daemon.create(policy={"limits": {"time": "60s", "output": "1m"}})
    late = run(box, ["sleep", "600"], {"time": "300ms"}).json
    assert late["timed_out"] and late["limit_reached"] == {"code": "limits.reached.time", "limit": "time", "of": "command"}, late
    cut = run(box, "seq 100000", {"output": "1k"}).json
    assert len(cut["stdout"]) == 1024 and cut["stdout_truncated"] and cut["exit_code"] == 0, cut


@pytest.mark.parametrize("limits", [{"memory": "301m"}, {"pids": 101}, {"time": "61s"}, {"output": "2m"}])
def test_none_is_wider_than_the_sandboxs(daemon, limits):
    box = daemon.create(policy={"limits": {"memory": "300m", "pids": 100, "time": "60s", "output": "1m"}})
    answer = run(box, ["true"], limits)
    assert answer.status == 422 and answer.json["code"] == "limits.wider" and next(iter(limits)) in answer.json["error"], answer
    assert run(box, ["true"], timeout_ms=100).json["exit_code"] == 0


@pytest.mark.parametrize("limits", [{"memory": "1k"}, {"memory": "none"}, {"memory": -1}, {"memory": True}, {"cpus": 0}, {"cpus": "x"},
                                    {"cpus": 0.0001}, {"pids": 1}, {"pids": "5m"}, {"time": 0}, {"time": "25h"}, {"output": 0}, {"disk": "1m"}, {"open-files": 5}, [], "64m", 5])
def test_what_is_no_limit(daemon, limits):
    answer = run(daemon.create(), ["true"], limits)
    assert answer.status == 400 and answer.json["code"] == "exec.request" and "limits" in answer.json["error"], answer


def test_what_does_not_go_together(daemon):
    box = daemon.create()
    for more in ({"limits": {"time": 5}, "timeout_ms": 5000}, {"limits": {"output": 5}, "background": True}):
        answer = box.daemon.post(f"{box.at}/exec", {"command": ["true"], **more})
        assert answer.status == 400 and answer.json["code"] == "exec.request", answer


@pytest.mark.root
def test_its_cgroup_goes_with_it(box):
    """Sixty at once, then those that leave something running, then the sandbox."""
    before = set(below())
    begun = [box.daemon.post(f"{box.at}/exec", {"command": ["sleep", "600"], "background": True, "limits": {"memory": "32m", "pids": 5}}) for _ in range(20)]
    assert all(answer.status == 202 for answer in begun), begun
    assert len(set(below()) - before) >= 20
    for answer in begun:
        box.daemon("DELETE", f"{box.at}/exec/{answer.json['exec_id']}")
    assert wait_for(lambda: not set(below()) - before), below()
    left = run(box, "(setsid sleep 4 &) >/dev/null 2>&1; echo done", {"memory": "32m", "pids": 5}).json
    assert left["stdout"] == "done\n" and set(below()) - before, left         # what it left is held still
    assert wait_for(lambda: not set(below()) - before, 30), below()
    assert run(box, "(setsid sleep 600 &) >/dev/null 2>&1", {"memory": "32m"}).json["exit_code"] == 0 and set(below()) - before
    box.daemon("DELETE", box.at)
    assert wait_for(lambda: not set(below()) - before), below()


@own
@pytest.mark.root
def test_nothing_is_left_when_all_are_killed(cloche):
    daemon = Daemon(cloche)
    box = daemon.create()
    before = set(below())
    for _ in range(3):
        assert box.daemon.post(f"{box.at}/exec", {"command": ["sleep", "600"], "background": True, "limits": {"memory": "32m", "pids": 5}}).status == 202
    assert set(below()) - before
    leaks.kill([*daemon.processes("cloche-keeper"), *daemon.processes("cloche-janitor"), daemon.process.pid])
    daemon.process.communicate()
    again = Daemon(cloche)
    assert wait_for(lambda: not set(below()) - before, 30), below()
    assert again.stop() == 0, again.log


def test_in_the_background(box):
    begun = box.daemon.post(f"{box.at}/exec", {"command": ["python3", "-c", EAT, "150"], "background": True, "limits": {"memory": "64m"}})
    at = f"{box.at}/exec/{begun.json['exec_id']}"
    assert begun.status == 202 and wait_for(lambda: box.daemon.get(at).json["state"] == "ended")
    assert box.daemon.get(at).json["limit_reached"] == OWN and box.daemon.get(at).json["oom_killed"], box.daemon.get(at)


def test_a_lowered_sandbox_lowers_them(box):
    """Of the processor, v1 gives nobody more than those around have, and would refuse the change."""
    if not box.record["facts"]["cpu_by"].startswith("cgroup"):
        answer = box.daemon("PATCH", f"{box.at}/policy", {"limits": {"cpus": 0.5}})
        assert answer.status == 409, answer
        return
    begun = box.daemon.post(f"{box.at}/exec", {"command": ["sleep", "600"], "background": True, "limits": {"cpus": 0.4}})
    assert begun.status == 202, begun
    answer = box.daemon("PATCH", f"{box.at}/policy", {"limits": {"cpus": 0.2}})
    assert answer.status == 200, answer


def test_over_the_command_line(cloche, box):
    socket = ("--socket", str(box.daemon.path))
    words = ("exec", *socket, "--memory", "64m", "--pids", "20", box.id, "--")
    ended = cloche(*words, "python3", "-c", EAT, "150")
    assert ended.code == 137 and "limit" in ended.err and "limits.reached.memory" in ended.err, ended
    fine = cloche(*words, "python3", "-c", EAT, "20")
    assert fine.code == 0 and fine.out == "ate\n" and fine.err == "", fine
    wrong = cloche("exec", *socket, "--memory", "1k", box.id, "--", "true")
    assert wrong.code == 125 and "limits.memory" in wrong.err, wrong
