"""cloche serve as the first process of a container, or below one that reaps nobody: nothing that has ended stays."""
import os
import signal


import pytest

from helpers import leaks, places, requirement
from helpers.daemon import OthersDaemon
from helpers.runner import HANG_GUARD, wait_for

pytestmark = [requirement("R05", "R22", "R42"), pytest.mark.root]
CONTAINER = ("/usr/bin/unshare", "--pid", "--fork", "--mount-proc", "--")
# a first process as many images have one: it starts a program and waits for that alone
DULL = (*CONTAINER, places.PYTHON, "-c", "import os, sys\nos.waitpid(os.spawnv(os.P_NOWAIT, sys.argv[1], sys.argv[1:]), 0)")


class Contained(OthersDaemon):
    """It answers nobody of another pid namespace: who connects is put into its own."""

    def launcher(self):
        table = leaks.parents()
        [pid] = [pid for pid in leaks.descendants(self.process.pid, table) if table[pid][2] == "cloche-launcher"]
        return pid

    def words(self):
        return ["/usr/bin/nsenter", "--pid", "--target", str(self.launcher()), "--"]

    def stop(self, patience=HANG_GUARD):
        os.kill(self.launcher(), signal.SIGTERM)        # unshare(1) passes none on
        self.shut()
        self.process.communicate(timeout=patience)
        return self.process.returncode


def ended(daemon):
    """What has ended below it and was not waited for."""
    table = leaks.parents()
    return [table[pid] for pid in leaks.descendants(daemon.process.pid, table) if pid in table and table[pid][1] == "Z"]


@pytest.fixture(params=[CONTAINER, DULL], ids=["first", "below a dull one"])
def contained(cloche, request):
    daemon = Contained(cloche.behind(*request.param), path=cloche.state / "cloche" / "serve" / "api.sock")
    yield daemon
    assert daemon.stop() == 0


def test_nothing_that_has_ended_stays(contained):
    for _ in range(4):
        boxes = [contained.create() for _ in range(4)]
        for box in boxes:
            assert box.exec("echo on")["stdout"] == "on\n"
            assert box.delete().ok
    assert wait_for(lambda: not ended(contained), HANG_GUARD), ended(contained)


def test_nothing_of_a_keeper_that_is_killed_stays(contained):
    box = contained.create()
    assert box.exec("sleep 1000 & echo on")["stdout"] == "on\n"
    table = leaks.parents()
    [keeper] = [pid for pid in leaks.descendants(contained.process.pid, table) if table[pid][2] == "cloche-keeper"]
    os.kill(keeper, signal.SIGKILL)
    assert wait_for(lambda: not ended(contained), HANG_GUARD), ended(contained)
    assert contained.create().exec("echo on")["stdout"] == "on\n"
