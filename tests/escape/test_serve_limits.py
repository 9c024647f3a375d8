"""What runs in a sandbox of the daemon's does not keep limits that were taken from it."""
import pytest

from helpers import leaks, requirement
from helpers.daemon import Daemon
from helpers.runner import wait_for

pytestmark = requirement("R26", "R65")

# begun under the old limits, and made to use them when others are in force
LATER = """
import os, sys, time
print("begun", flush=True)
while not os.path.exists("go"):
    time.sleep(0.05)
held = bytearray(int(sys.argv[1]) << 20)
for i in range(0, len(held), 4096):
    held[i] = 1
print("ate", flush=True)
time.sleep(600)
"""


@pytest.mark.parametrize("lowered", [False, True])
def test_a_process_that_was_there_before_is_held_too(daemon, lowered):
    box = daemon.create(policy={"limits": {"memory": "300m"}})
    if not box.record["facts"]["memory_by"].startswith("cgroup"):
        pytest.skip("no cgroup holds memory here")
    begun = daemon.post(f"{box.at}/exec", {"command": ["python3", "-c", LATER, "200"], "background": True, "timeout_ms": 600000})
    assert begun.status == 202, begun
    at = f"{box.at}/exec/{begun.json['exec_id']}"
    assert wait_for(lambda: daemon.get(at).json["stdout_bytes"] == len("begun\n"))
    if lowered:
        answer = daemon("PATCH", f"{box.at}/policy", {"limits": {"memory": "96m"}})
        assert answer.status == 200, answer
    assert box.put("go", b"").ok
    if lowered:
        assert wait_for(lambda: daemon.get(at).json["state"] == "ended"), daemon.get(at)
        assert daemon.get(at).json["oom_killed"] and box.show()["state"] == "ready", (daemon.get(at), box.show())
    else:       # the attack is real
        assert wait_for(lambda: daemon.get(at).json["stdout_bytes"] == len("begun\nate\n")) and box.show()["state"] == "ready"


def test_who_dies_at_will_lives_no_longer_for_it(cloche):
    """Recovery by itself is no way around the lifetime that an agent's sandbox has."""
    daemon = Daemon(cloche, "--max-lifetime", "15s", "--recover-after", "1s", "--recover-tries", "20")
    box = daemon.create()
    first = box.show()
    def ends():
        state = box.show()["state"]
        for keeper in daemon.processes("cloche-keeper") if state == "ready" else []:
            leaks.kill([keeper])
        return state == "stopped"
    assert wait_for(ends, 120, 0.5), box.show()
    last = box.show()
    assert 1 <= last["recovery"]["used"] < 20, last
    assert last["started_ms"] == first["started_ms"] and last["ended_ms"] - last["started_ms"] < 300_000, last
    assert daemon.stop() == 0, daemon.log
