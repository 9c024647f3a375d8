"""Durable workspaces that somebody hostile has filled, and those of others."""
import fcntl
import os
import stat

import pytest

from helpers import requirement
from helpers.daemon import Caller, Daemon, OthersDaemon, Sandbox, caller
from helpers.runner import wait_for
from helpers.shared import own, shared

pytestmark = [requirement("R12", "R22"), shared]


def folder(cloche):
    return cloche.state / "cloche" / "serve" / "volumes"


def volumes(who):
    answer = who.get("/v1/volumes")
    assert answer.status == 200, answer
    return answer.json["volumes"]


def remove(daemon, cloche, box):
    if box.show()["state"] != "stopped":
        assert box.delete().ok
    removed = daemon("DELETE", f"/v1/volumes/{box.record['volume']}")
    assert removed.ok, removed
    assert wait_for(lambda: os.listdir(folder(cloche)) == [], 60), os.listdir(folder(cloche))


def test_others_are_not_there(daemon):
    a, b = caller(daemon, "agent"), caller(daemon, "agent")
    box_a, box_b, box = [who.create(volume={"name": "same"}, workspace_key="w") for who in (a, b, daemon)]
    assert len({x.record["volume"] for x in (box_a, box_b, box)}) == 3
    assert box_a.put("f", b"of a").ok and box_b.read("f").status == 404 and box.read("f").status == 404
    assert [v["id"] for v in volumes(a)] == [box_a.record["volume"]]
    assert [v["id"] for v in volumes(b)] == [box_b.record["volume"]]
    assert len(volumes(daemon)) == 3 and len(volumes(caller(daemon, "auditor"))) == 3
    assert box_a.delete().ok
    refused = b("DELETE", f"/v1/volumes/{box_a.record['volume']}")
    assert refused.status == 404 and refused.json["code"] == "volume.not-found", refused
    # b has made one of that name: it is its own, however often it asks
    assert box_b.delete().ok
    assert Sandbox(b, b.post("/v1/sandboxes", {"volume": {"name": "same"}}).json).read("f").status == 404
    # an id is no name
    stolen = b.create(volume={"name": box_a.record["volume"]})
    assert stolen.record["volume"] != box_a.record["volume"] and stolen.read("f").status == 404
    again = a.create(volume={"name": "same"})
    assert again.read("f").body == b"of a" and len(volumes(a)) == 1


def test_roles(daemon):
    box = daemon.create(volume={"name": "v"})
    assert box.delete().ok
    at = f"/v1/volumes/{box.record['volume']}"
    key = Caller(daemon, X_Sandbox_Key=daemon.create().record["key"])
    for who in (caller(daemon, "approver"), key):
        for answer in (who.get("/v1/volumes"), who("DELETE", at)):
            assert answer.status == 403 and answer.json["code"] == "auth.role", answer
    refused = caller(daemon, "auditor")("DELETE", at)
    assert refused.status == 403 and refused.json["code"] == "auth.role", refused
    assert len(volumes(daemon)) == 1 and caller(daemon, "operator")("DELETE", at).ok


def test_what_it_is_mounted_as(daemon, cloche):
    box = daemon.create(volume={"name": "v"})
    line = [m.split() for m in box.exec("cat /proc/self/mountinfo")["stdout"].splitlines() if m.split()[4] == "/workspace"]
    assert len(line) == 1 and {"nosuid", "nodev", "rw"} <= set(line[0][5].split(",")), line
    assert box.exec("cp /bin/true t && chmod 6755 t && mknod n c 1 3")["exit_code"] != 0
    # above it there is nothing of the host's, nor another volume
    assert box.record["volume"] not in box.exec("ls -a /workspace/.. / ; ls /workspace/../*")["stdout"]
    inside = folder(cloche) / box.record["volume"]
    owner = (inside / "t").stat().st_uid
    assert owner != 0 and owner == inside.stat().st_uid and not (inside / "n").exists()
    assert owner == os.geteuid() or owner >= 0x70000000
    # nobody else can reach that program
    assert stat.S_IMODE(folder(cloche).stat().st_mode) == stat.S_IMODE(inside.stat().st_mode) == 0o700


def test_it_is_not_removed_under_another(anyone):
    """Whoever still has its lock, as a sandbox that is dying, may have closed its folder."""
    daemon = (OthersDaemon if anyone.person else Daemon)(anyone)
    box = daemon.create(volume={"name": "v"})
    assert box.put("f", b"x").ok and box.delete().ok
    fd = os.open(folder(anyone) / box.record["volume"], os.O_RDONLY)
    fcntl.flock(fd, fcntl.LOCK_EX)
    os.fchmod(fd, 0)
    assert daemon("DELETE", f"/v1/volumes/{box.record['volume']}").ok
    assert wait_for(lambda: any("volume.busy" in e["detail"] for e in daemon.get("/v1/events?limit=1000").json["events"]), 60)
    assert os.listdir(fd) == ["f"]
    os.close(fd)
    assert daemon.stop() == 0, daemon.log
    daemon.start()
    assert wait_for(lambda: os.listdir(folder(anyone)) == [], 60), os.listdir(folder(anyone))
    assert daemon.stop() == 0, daemon.log


def test_links_lead_its_removal_nowhere(daemon, cloche):
    victim = cloche.home / "victim"
    victim.mkdir()
    (victim / "f").write_text("mine")
    other = daemon.create(volume={"name": "other"})
    assert other.put("f", b"other").ok
    box = daemon.create(volume={"name": "v"})
    links = f"ln -s {victim} a; ln -s {victim}/f b; ln -s .. c; ln -s ../{other.record['volume']} d; ln -s / e; ln -s /proc/self/root g"
    assert box.exec(links + "; ln -s . h; mkdir x; ln -s ../.. x/y")["exit_code"] == 0
    assert box.delete().ok and daemon("DELETE", f"/v1/volumes/{box.record['volume']}").ok
    assert wait_for(lambda: os.listdir(folder(cloche)) == [other.record["volume"]], 60)
    assert (victim / "f").read_text() == "mine" and other.read("f").body == b"other"


FILL = {
    "deep": "i=0; while [ $i -lt 1500 ]; do mkdir d && cd d || exit 1; i=$((i+1)); done; echo > f",
    "closed": "mkdir -p a/b/c; echo > a/b/c/f; chmod 0 a/b/c a/b a",
    "names": "touch -- \"$(printf 'a\\nb')\" -rf '*' ' ' \"$(printf '\\377')\" .new-x; mkdir -- '..x' '-d'",
    "pipes": "mkfifo p; mkdir s; mkfifo s/p",
    "the root": "echo > f; chmod 0 /workspace",
    "read only": "mkdir r; echo > r/f; chmod 400 r/f; chmod 500 r",
}


@pytest.mark.parametrize("how", FILL)
def test_what_fills_it_can_be_used_and_removed(daemon, cloche, how):
    box = daemon.create(volume={"name": "v"})
    done = box.exec(FILL[how], timeout_ms=300000)
    assert done["exit_code"] == 0, done
    assert box.delete().ok
    again = daemon.create(volume={"name": "v"})
    assert again.record["volume"] == box.record["volume"] and again.exec("echo > new")["exit_code"] == 0
    remove(daemon, cloche, again)


def test_the_count_is_not_led_out(daemon, cloche):
    """What changes under it, and what leads elsewhere, is neither counted nor the end of a sandbox that did nothing else."""
    big = cloche.home / "big"
    big.mkdir()
    (big / "f").write_bytes(b"x" * 30_000_000)
    box = daemon.create(volume={"name": "v"}, policy={"limits": {"disk": "16m", "time": "none"}})
    done = box.exec(f"ln -s {big} l; end=$(($(date +%s)+8)); mkdir a; while [ $(date +%s) -lt $end ]; do mv a b; ln -s {big} a; rm a; mv b a; done",
                    timeout_ms=120000)
    assert done["exit_code"] == 0 and box.show()["state"] == "ready", done
    remove(daemon, cloche, box)
    assert (big / "f").stat().st_size == 30_000_000


def test_many_empty_files_are_too_many(daemon, cloche):
    box = daemon.create(volume={"name": "v"}, policy={"limits": {"disk": "4m"}})
    daemon.post(f"{box.at}/exec", {"command": "i=0; while [ $i -lt 4000 ]; do : > f$i; i=$((i+1)); done; sleep 600", "timeout_ms": 120000})
    assert box.wait_for("stopped") and "volume" in box.show()["detail"], box.show()
    remove(daemon, cloche, box)


CLOSED = {
    "the root": "exec 9> f; chmod 0300 /workspace",
    "the root for all": "exec 9> f; chmod 0 /workspace",
    "a folder that can be listed": "mkdir d; exec 9> d/f; chmod 0400 d",
}


@pytest.mark.parametrize("how", CLOSED)
def test_what_is_closed_is_counted(anyone, how):
    daemon = (OthersDaemon if anyone.person else Daemon)(anyone)
    box = daemon.create(volume={"name": "v"}, policy={"limits": {"disk": "4m"}})
    daemon.post(f"{box.at}/exec", {"command": CLOSED[how] + "; head -c 9000000 /dev/zero >&9; sleep 600", "timeout_ms": 120000})
    assert box.wait_for("stopped") and "volume" in box.show()["detail"], box.show()
    remove(daemon, anyone, box)
    assert daemon.stop() == 0, daemon.log


@own
def test_an_agent_has_its_share(daemon):
    agent = caller(daemon, "agent")
    for i in range(64):
        answer = agent.post("/v1/sandboxes", {"volume": {"name": f"v{i}"}, "policy": {"mode": "light"}})
        assert answer.json["code"] in ("volume.view", "policy.ceiling"), answer
    answer = agent.post("/v1/sandboxes", {"volume": {"name": "one more"}})
    assert answer.status == 429 and answer.json["code"] == "volume.too-many", answer
    assert agent.post("/v1/sandboxes", {"volume": {"name": "v0"}}).status == 201
    assert caller(daemon, "agent").post("/v1/sandboxes", {"volume": {"name": "v"}}).status == 201
