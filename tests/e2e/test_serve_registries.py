"""cloche serve asks registries' clients beside everything else that it does, once, and not again while nothing has changed."""
import json
import os
import signal

import pytest

from helpers import leaks, requirement
from helpers.approvals import Asking
from helpers.daemon import Daemon, restart
from helpers.runner import wait_for

pytestmark = requirement("R66", "R47")
POLICY = {"policy": {"network": {"registries": ["npm"]}}}
# Addresses are not looked up.
PLACE, OTHER = "192.0.2.1:8080", "192.0.2.2:8080"
# Another line as long as it is there; each asker is one line, and what it begins ends with it.
CLIENT = """#!/bin/sh
[ "$1" = config ] && echo asked >> {root}/asked
while [ -e {root}/slow ]; do (sleep 300; :) > /dev/null 2>&1 & echo $! >> {root}/begun; wait; done
[ "$1" = view ] && {{ echo http://$(cat {rc})/x.tgz; exit; }}
printf '{{"registry": "http://%s/npm/", "userconfig": "{rc}", "globalconfig": "/nowhere/npmrc"}}' "$(cat {rc})"
"""


class Npm:
    """A package manager that takes its time as long as the test says so."""

    def __init__(self, cloche, root):
        self.root, self.rc = root, cloche.home / ".npmrc"
        self.rc.write_text(PLACE)
        client = root / "bin" / "npm"
        client.parent.mkdir()
        client.write_text(CLIENT.format(root=root, rc=self.rc))
        client.chmod(0o755)
        cloche.env["PATH"] = f"{client.parent}:{cloche.env['PATH']}"

    def asked(self):
        return len((self.root / "asked").read_text().splitlines()) if (self.root / "asked").exists() else 0

    def slow(self, is_slow):
        if is_slow:
            (self.root / "slow").touch()
        else:
            (self.root / "slow").unlink()
            for pid in self.living():
                os.kill(pid, signal.SIGKILL)

    def living(self):
        begun, table = self.root / "begun", leaks.parents()
        return [pid for pid in map(int, begun.read_text().split() if begun.exists() else ()) if pid in table and table[pid][1] not in "ZX"]


@pytest.fixture
def npm(cloche, tmp_path):
    return Npm(cloche, tmp_path)


@pytest.fixture
def daemon(npm, cloche):
    made = Daemon(cloche)
    yield made
    assert made.stop() == 0, made.log
    assert wait_for(lambda: not npm.living()), "what a client began lives on"


def begin(daemon, npm, name):
    """A sandbox that waits for the client."""
    before = len(npm.living())
    asked = Asking(daemon, "POST", "/v1/sandboxes", {"name": name, **POLICY})
    assert wait_for(lambda: len(npm.living()) > before)
    return asked


def begin_unheard(daemon, npm, name):
    """The same, where who asked does not live to hear the answer."""
    c = daemon.connection()
    c.request("POST", "/v1/sandboxes", json.dumps({"name": name, **POLICY}))
    assert wait_for(npm.living)
    return c


def opened(daemon, which):
    return [entry["value"] for entry in daemon.get(f"/v1/sandboxes/{which}/policy").json["effective"]["network"]["allow"]]


def settle(daemon, npm):
    """Until an answer is kept: files that have only just changed are not relied upon."""
    def kept():
        before = npm.asked()
        assert daemon.create(**POLICY).delete().ok
        return npm.asked() == before
    assert wait_for(kept, every=0.15)


def test_a_slow_client_delays_nobody_and_ends_with_who_waits_for_it(daemon, npm):
    """Others are served, and so is whoever wants to end that sandbox: at once, and not when the client is done, or somebody runs out of patience."""
    npm.slow(True)
    asked = begin(daemon, npm, "slow")
    assert daemon.create(name="other").exec("echo hello")["stdout"] == "hello\n"
    assert daemon.state("slow") == "initializing" and npm.asked() == 1
    assert daemon("DELETE", "/v1/sandboxes/slow").ok and asked.wait().status == 410, asked.wait()
    assert wait_for(lambda: not npm.living())


def test_it_is_asked_once(daemon, npm):
    npm.slow(True)
    asked = [begin(daemon, npm, "one")]
    asked += [Asking(daemon, "POST", "/v1/sandboxes", {"name": name, **POLICY}) for name in ("two", "three")]
    assert wait_for(lambda: len(daemon.processes("cloche-keeper")) >= 6)    # each and its asker
    assert npm.asked() == 1
    npm.slow(False)
    assert [one.wait().status for one in asked] == [201] * 3, [one.wait() for one in asked]
    assert {tuple(opened(daemon, name)) for name in ("one", "two", "three")} == {(PLACE,)}
    settle(daemon, npm)


def test_what_was_said_holds_until_a_configuration_changes(daemon, npm):
    settle(daemon, npm)
    before = npm.asked()
    assert opened(daemon, daemon.create(**POLICY).id) == [PLACE] and npm.asked() == before
    npm.rc.write_text(OTHER)
    assert opened(daemon, daemon.create(**POLICY).id) == [OTHER] and npm.asked() == before + 1


@requirement("R23")
def test_the_end_of_the_daemon_does_not_wait(npm, cloche):
    npm.slow(True)
    daemon = Daemon(cloche)
    c = begin_unheard(daemon, npm, "slow")
    assert daemon.stop() == 0, daemon.log
    c.close()
    assert wait_for(lambda: not npm.living())


@requirement("R23")
@pytest.mark.parametrize("who", ["cloche-keeper", "cloche-warden"])
def test_one_that_dies_meanwhile(daemon, npm, who):
    """A keeper takes its asker along. The next warden wants the same sandbox, and does not wait for what the former one's asker is told."""
    npm.slow(True)
    if who == "cloche-keeper":
        asked = begin(daemon, npm, "slow")
        table, both = leaks.parents(), daemon.processes(who)
        os.kill(next(pid for pid in both if table[pid][0] not in both), signal.SIGKILL)
        assert not asked.wait().ok
        assert wait_for(lambda: not npm.living())
        return
    c = begin_unheard(daemon, npm, "slow")
    restart(daemon, who)
    c.close()
    npm.slow(False)
    assert wait_for(lambda: daemon.state("slow") == "ready"), daemon.get("/v1/sandboxes/slow")
    assert opened(daemon, "slow") == [PLACE]


def test_a_client_that_fails(daemon, npm):
    npm.rc.unlink()
    answer = daemon.post("/v1/sandboxes", POLICY)
    assert answer.status == 400 and answer.json["code"] == "policy.registry.answer", answer
