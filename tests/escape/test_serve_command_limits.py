"""A command with limits of its own stays in its cgroup, and sees nothing of it."""
import glob
import os

import pytest

from helpers import requirement

pytestmark = [requirement("R26", "R65", "R27"), pytest.mark.root]

# Its own session, another parent, another process group, a name that is not the command's: still in there.
EAT = "import os, sys, time; x = bytearray(150 << 20); x[::4096] = b'x' * len(x[::4096]); os.write(int(sys.argv[1]), b'x'); time.sleep(60)"
AWAY = f"""
import os
r, w = os.pipe()
os.set_inheritable(w, True)
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.setpgid(0, 0)
        os.execvp("python3", ["other", "-c", {EAT!r}, str(w)])
    os._exit(0)
os.close(w)
os.wait()
print("out" if os.read(r, 1) == b"x" else "killed")
"""
LOOK = """
import glob, os
print(sorted(os.readlink(f"/proc/self/fd/{n}") for n in os.listdir("/proc/self/fd") if int(n) > 2 and os.path.exists(f"/proc/self/fd/{n}")))
for at in ("/sys/fs/cgroup", "/proc/1/fd", "/proc/1/root/sys/fs/cgroup"):
    try:
        print(at, os.listdir(at))
    except OSError as e:
        print(at, "no")
for path in glob.glob("/proc/[0-9]*/fd/*"):
    try:
        at = os.readlink(path)
    except OSError:
        continue
    if "tasks" in at or "cgroup" in at:
        print("found", path, at)
"""
JOIN = """
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
print("mount", libc.mount(b"none", b"/tmp", b"cgroup", 0, b"memory"), libc.mount(b"none", b"/tmp", b"cgroup2", 0, None))
print("unshare", libc.unshare(0x02000000))
try:
    open("/proc/self/cgroup", "w").write("0")
    print("wrote")
except OSError:
    print("refused")
"""


@pytest.fixture
def box(daemon):
    box = daemon.create(policy={"limits": {"memory": "300m"}})
    if not box.record["facts"]["memory_by"].startswith("cgroup v"):
        pytest.skip("no cgroup here")
    return box


def test_no_descendant_leaves(box):
    assert box.exec(["python3", "-c", AWAY])["stdout"] == "out\n"         # the attack is real
    said = box.exec(["python3", "-c", AWAY], limits={"memory": "64m"})
    assert said["stdout"] == "killed\n" and said["limit_reached"]["of"] == "command", said
    assert box.show()["state"] == "ready"


def test_nothing_of_it_is_seen(box):
    said = box.exec(["python3", "-c", LOOK], limits={"memory": "64m", "pids": 20})
    lines = said["stdout"].splitlines()
    assert said["exit_code"] == 0 and lines[0] == "[]" and "found" not in said["stdout"], said
    assert lines[1] in ("/sys/fs/cgroup no", "/sys/fs/cgroup []") and lines[2:] == ["/proc/1/fd no", "/proc/1/root/sys/fs/cgroup no"], said


def test_nothing_can_be_joined(box):
    said = box.exec(["python3", "-c", JOIN], limits={"memory": "64m"})
    assert said["stdout"].splitlines() == ["mount -1 -1", "unshare -1", "refused"], said


def test_what_is_inside_has_no_name_of_other_sandboxes(box, daemon):
    """A count of commands would tell how busy the daemon is: it begins with 1 in every sandbox."""
    other = daemon.create(policy={"limits": {"memory": "300m"}})
    for _ in range(3):
        assert other.exec(["true"], limits={"memory": "64m"})["exit_code"] == 0
    said = box.exec(["cat", "/proc/self/cgroup"], limits={"memory": "64m"})
    assert "cmd-1" in said["stdout"] and other.id not in said["stdout"], said


def test_many_at_once_do_not_mix(box):
    """Descriptors of cgroups travel beside others' messages: each command is in its own, by what holds it."""
    begun = {}
    for n in range(24):
        mib = 8 + n
        made = box.daemon.post(f"{box.at}/exec", {"command": ["sleep", "600"], "background": True, "limits": {"memory": f"{mib}m", "pids": 5}})
        assert made.status == 202, made
        begun[mib << 20] = made.json["exec_id"]
    found = {}
    for at in glob.glob(f"/sys/fs/cgroup/**/cloche-{box.id}/cmd-*", recursive=True):
        for name in ("memory.limit_in_bytes", "memory.max"):
            if os.path.exists(f"{at}/{name}"):
                with open(f"{at}/cgroup.procs", encoding="ascii") as f:
                    found[int(open(f"{at}/{name}", encoding="ascii").read())] = f.read().split()
    assert set(found) == set(begun) and all(len(pids) == 1 for pids in found.values()), found
    assert len({pids[0] for pids in found.values()}) == len(begun), found
