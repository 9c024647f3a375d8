"""500 sandboxes at once in one daemon: all work, the next one is refused, and what they take is bounded."""
import concurrent.futures
import os
from pathlib import Path

import pytest

from helpers import places, requirement
from helpers.daemon import Daemon
from helpers.runner import wait_for

MANY = places.loops(500)
MAKERS = 4
MEMORY = 4 << 30            # of the host's, to be sure of it
DAEMON_KB = 64 * 1024       # of the front, the warden, the scribe and the launcher together
SANDBOX_KB = 4 * 1024       # of a keeper and its guest, shared pages by their share
SANITIZED = 40              # times as much

pytestmark = [requirement("R42"), pytest.mark.heavy, pytest.mark.root]


def share_kb(pid):
    """What a process takes, its shared pages by its share of them."""
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("Pss:"))


def all_of_them(daemon):
    found, after = [], ""
    while after is not None:
        page = daemon.get("/v1/sandboxes?limit=200" + (f"&after={after}" if after else "")).json
        found += page["sandboxes"]
        after = page["next"]
    return found


def make(daemon, n):
    """@n sandboxes, MAKERS at a time."""
    with concurrent.futures.ThreadPoolExecutor(MAKERS) as pool:
        return list(pool.map(lambda _: daemon.create(), range(n)))


@pytest.mark.skipif(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") < MEMORY,
                    reason="this host has less than 4 GB of memory")
def test_many_at_once(cloche, binary):
    daemon = Daemon(cloche, "--max-sandboxes", str(MANY))
    factor = SANITIZED if b"__asan_init" in binary.read_bytes() else 1
    try:
        boxes = make(daemon, MANY)
        assert len(boxes) == MANY == len({box.id for box in boxes})
        refused = daemon.post("/v1/sandboxes", {})
        assert (refused.status, refused.json["code"]) == (429, "sandbox.too-many"), refused
        assert wait_for(lambda: [r["state"] for r in all_of_them(daemon)] == ["ready"] * MANY, 120)
        for i, box in enumerate(boxes[::max(1, MANY // 25)]):
            assert box.exec(f"echo {i}; hostname")["exit_code"] == 0 and box.put("f", str(i).encode()).ok
            assert box.read("f").body == str(i).encode()
        names = [f"cloche-{name}" for name in ("front", "warden", "scribe")]
        own = [daemon.process.pid, *(p for name in names for p in daemon.processes(name))]
        assert len(own) == 4
        daemon_kb = sum(map(share_kb, own))
        keepers, guests = daemon.processes("cloche-keeper"), daemon.processes("cloche-guest")
        assert len(keepers) == len(guests) == MANY
        sandbox_kb = sum(map(share_kb, keepers + guests)) / MANY
        print(f"{MANY} sandboxes: {daemon_kb} kB of the daemon's processes, {sandbox_kb:.0f} kB of each")
        assert daemon_kb < DAEMON_KB * factor and sandbox_kb < SANDBOX_KB * factor, (daemon_kb, sandbox_kb)
        boxes[0].delete()
        assert daemon.create().exec("echo on")["stdout"] == "on\n"
        ended = daemon.post("/v1/kill")
        assert ended.status == 200 and wait_for(lambda: not daemon.processes("cloche-keeper"), 120), ended
        assert daemon.get("/v1/health").ok and all_of_them(daemon) == []
    finally:
        assert daemon.stop() == 0, daemon.log
