"""kill -9 of any one process of cloche serve, under load: nothing is left, no record is lost, what lives is known.

CLOCHE_KILLS is how many there are (1000 is what the project holds itself to).
"""
import json
import os
import random
import signal
import threading
import time

import pytest

from helpers import leaks, requirement
from helpers.daemon import Daemon, answers
from helpers.runner import wait_for
from helpers.storm import Busy

pytestmark = [requirement("R17", "R22", "R42", "R61"), pytest.mark.heavy]
KILLS = int(os.environ.get("CLOCHE_KILLS", "40"))
KINDS = ("cloche serve", "cloche-warden", "cloche-front", "cloche-adapter", "cloche-keeper", "cloche-guest", "cloche-egress", "cloche-vault",
         "cloche-janitor", "cloche-starter")


class Client(Busy):
    """Makes, uses and ends sandboxes; keeps account of what it was told."""

    def __init__(self, daemon, number, over):
        super().__init__(over)
        self.box_of, self.number = daemon, number
        self.made, self.ended, self.kept = set(), set(), []

    def step(self):
        self.runs += 1
        policy = {"network": {"allow": ["ok.example.org"]}}
        if self.number == 0:
            policy["secrets"] = ["token"]
            policy["network"]["allow"] = ["api.github.com"]
        box = self.box_of.create(name=f"c{self.number}-{self.runs}", policy=policy)
        self.made.add(box.id)
        self.kept.append(box)
        box.put("f", b"x" * 100000)
        assert box.exec("wc -c f")["stdout"].split() == ["100000", "f"]
        if len(self.kept) > 2:
            old = self.kept.pop(0)
            self.ended.add(old.id)      # from now on its record may go
            old.delete()


def victim(daemon, kind):
    if kind == "cloche serve":
        return daemon.process.pid
    table = leaks.parents()
    if kind != "cloche-janitor":
        pids = daemon.processes(kind)
    else:
        keepers = daemon.processes("cloche-keeper")
        pids = [pid for pid, (parent, _, comm) in table.items() if comm == kind and parent in keepers]
    return random.Random(len(pids)).choice(pids) if pids else None


def end_of(daemon):
    """The daemon is gone: so is everything of it."""
    daemon.process.wait(60)
    daemon.process.stderr.close()

    def nothing_left():
        leaks.reap_adopted(set())
        return not [what for what in leaks.descendants().values() if "cloche" in what]
    assert wait_for(nothing_left, 60), leaks.descendants()


def kill(daemon, kind):
    pid = wait_for(lambda: victim(daemon, kind))
    if not pid:
        return False
    if kind == "cloche-janitor":    # it has a successor before anything else goes wrong
        keeper = leaks.parents().get(pid, (0,))[0]
        if keeper not in daemon.processes("cloche-keeper"):
            return False            # its keeper has ended meanwhile, and it is at work
        leaks.kill([pid])

        def replaced():
            table = leaks.parents()
            if keeper not in table or table[keeper][1] in "ZX":
                return True
            return any(parent == keeper and state not in "ZX" and comm == kind and other != pid
                       for other, (parent, state, comm) in table.items())
        assert wait_for(replaced, 60), "no other janitor came"
        return True
    leaks.kill([pid])
    assert wait_for(lambda: leaks.parents().get(pid, (0, "X"))[1] in "ZX", 60), f"{kind} does not die"
    return True


def records(daemon):
    found, after = {}, ""
    while after is not None:
        page = daemon.get("/v1/sandboxes?state=all&limit=200" + (f"&after={after}" if after else "")).json
        found.update({r["id"]: r for r in page["sandboxes"]})
        after = page["next"]
    return found


def judge(daemon, clients):
    """At rest: what is on record is there, what is there is on record, and it works."""
    assert answers(daemon)
    settled = lambda: all(r["state"] in ("ready", "degraded", "stopped") for r in records(daemon).values())
    assert wait_for(settled, 90), records(daemon)
    known = records(daemon)
    for client in clients:
        assert not client.broken, client.broken
        lost = client.made - client.ended - set(known)
        assert not lost, f"records are lost: {lost}"
    live = [r for r in known.values() if r["state"] != "stopped"]
    assert wait_for(lambda: len(daemon.processes("cloche-keeper")) == len(live), 60), (live, daemon.processes("cloche-keeper"))
    for record in live:
        answer = daemon.post(f"/v1/sandboxes/{record['id']}/exec", {"command": "echo on"})
        assert answer.status == 200 and answer.json["stdout"] == "on\n", (record, answer)
    for record in known.values():
        assert record["state"] != "stopped" or record["detail"], record


@pytest.mark.root       # a guest has another user
def test_any_one_process_at_any_moment(cloche, world):
    assert cloche("secret", "set", "token", "--binding", "github", stdin="ghp_" + "TheRealValue0123456789abcdefGHIJKL").ok
    daemon = Daemon(cloche)
    over = threading.Event()
    clients = [Client(daemon, i, over) for i in range(3)]
    for client in clients:
        client.start()
    chance, done, ends = random.Random(9), dict.fromkeys(KINDS, 0), 0
    while sum(done.values()) < KILLS:
        kind = chance.choices(KINDS, [1] + [3] * (len(KINDS) - 1))[0]
        time.sleep(chance.random() * 0.3)
        if kill(daemon, kind):
            done[kind] += 1
        # killed, or it has given up after ten deaths of its processes in a minute
        if kind == "cloche serve" or daemon.process.poll() is not None:
            ends += 1
            end_of(daemon)
            assert daemon.process.returncode in (-signal.SIGKILL, 125)
            daemon.start()
    over.set()
    for client in clients:
        client.join(90)
    print(f"{sum(done.values())} kills: {json.dumps(done)}; {ends} daemons; {sum(c.runs for c in clients)} sandboxes")
    judge(daemon, clients)
    assert daemon.stop() == 0, daemon.log
    assert not world.watch.remains(), world.watch.remains()
