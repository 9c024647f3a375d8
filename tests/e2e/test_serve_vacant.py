"""Keepers that are started before anybody asks for a sandbox: each becomes one's keeper, and no more than that."""
import fcntl
import os
import signal
import time
from pathlib import Path

import pytest

from helpers import leaks, requirement
from helpers.daemon import Daemon, answers
from helpers.runner import wait_for

pytestmark = requirement("R61", "R81")

ENOUGH = 2


def words(pid):
    return Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")[:-1]


def vacant(daemon):
    assert wait_for(lambda: len(daemon.processes("cloche-vacant")) == ENOUGH, 60), daemon.processes("cloche-vacant")
    return daemon.processes("cloche-vacant")


def is_there(pid):
    """And has not just ended: who is left to the first process of a container may not be waited for."""
    table = leaks.parents()
    return pid in table and table[pid][1] not in "ZX"


@pytest.fixture
def daemon(cloche):
    daemon = Daemon(cloche)
    yield daemon
    daemon.stop()


def test_one_becomes_the_keeper_and_another_takes_its_place(daemon):
    before = vacant(daemon)
    assert all(set(words(pid)[1]) == set(b"-") for pid in before)
    box = daemon.create()
    keeper = daemon.only("cloche-keeper")
    assert keeper in before and words(keeper) == [b"cloche-keeper", box.id.encode()]
    assert Path(f"/proc/{keeper}/comm").read_text() == "cloche-keeper\n"
    assert box.exec("echo on")["stdout"] == "on\n"
    assert keeper not in vacant(daemon)
    assert box.delete().ok and wait_for(lambda: not daemon.processes("cloche-keeper"), 60)
    assert not set(vacant(daemon)) & {keeper}


@pytest.mark.root
def test_all_have_the_guest_in_one_file_that_nobody_can_change(daemon):
    """Its pages are no sandbox's own; who had one guest's program in hand could not make it another's, nor one that cannot be run."""
    boxes = [daemon.create() for _ in range(ENOUGH + 2)]
    exes = [f"/proc/{pid}/exe" for pid in daemon.processes("cloche-guest")]
    assert len(exes) == len(boxes) and len({(os.stat(exe).st_dev, os.stat(exe).st_ino) for exe in exes}) == 1
    with open(exes[0], "rb") as f:
        assert fcntl.fcntl(f, fcntl.F_GET_SEALS) & 0xf == 0xf
        if tuple(map(int, os.uname().release.split("-")[0].split(".")[:2])) >= (6, 3):
            with pytest.raises(PermissionError):
                os.fchmod(f.fileno(), 0)
    assert all(box.exec("echo on")["stdout"] == "on\n" for box in boxes)


def test_more_than_are_there_are_made_at_once(daemon):
    vacant(daemon)
    boxes = [daemon.create() for _ in range(2 * ENOUGH + 1)]
    assert len({b.id for b in boxes}) == len(boxes) == len(daemon.processes("cloche-keeper"))
    assert all(b.exec("echo on")["stdout"] == "on\n" for b in boxes)
    vacant(daemon)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_those_that_are_killed_cost_nothing(daemon, number):
    killed = vacant(daemon)
    for pid in killed:
        os.kill(pid, number)
    assert wait_for(lambda: not any(is_there(pid) for pid in killed), 60)
    assert daemon.create().exec("echo on")["stdout"] == "on\n"
    vacant(daemon)


def test_the_kill_switch_is_not_for_them(daemon):
    box = daemon.create()
    before = vacant(daemon)
    daemon.process.send_signal(signal.SIGUSR1)
    assert box.wait_for("stopped")
    after = daemon.create()
    keeper = daemon.only("cloche-keeper")
    assert keeper in before
    # the last of what the switch meant is killed after two seconds
    assert not wait_for(lambda: after.show()["state"] != "ready", 4), after.show()


def used(pid):
    """Ticks of processor time."""
    return sum(int(x) for x in Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[11:13])


def stop_the_next_warden(daemon):
    """Before it has said that it is ready; None where it was faster."""
    before = daemon.only("cloche-warden")
    os.kill(before, signal.SIGKILL)
    now = wait_for(lambda: set(daemon.processes("cloche-warden")) - {before}, 60, every=0.0005)
    os.kill(pid := now.pop(), signal.SIGSTOP)
    stuck = not wait_for(lambda: daemon.processes("cloche-front"), 0.3)
    if not stuck:
        os.kill(pid, signal.SIGCONT)
    return pid if stuck else None


def test_one_that_is_due_while_a_warden_starts_waits_for_it(daemon):
    """It is not asked for all the time: a warden may have much to mend."""
    for _ in range(5):
        for pid in vacant(daemon):
            os.kill(pid, signal.SIGKILL)        # a second later there is one again
        warden = stop_the_next_warden(daemon)
        if warden is not None:
            break
        assert answers(daemon)
    assert warden is not None
    time.sleep(1)
    before = used(daemon.process.pid)
    time.sleep(0.7)
    assert used(daemon.process.pid) - before < 5
    os.kill(warden, signal.SIGCONT)
    assert answers(daemon)
    vacant(daemon)


def test_they_have_the_settings_of_now(cloche, world):
    settings = world.root / "settings.yaml"
    settings.write_text("env: {WHICH: first}\n", encoding="utf-8")
    daemon = Daemon(cloche, "--settings", str(settings))
    vacant(daemon)
    assert daemon.create().exec("echo $WHICH")["stdout"] == "first\n"
    vacant(daemon)
    settings.write_text("env: {WHICH: second}\n", encoding="utf-8")
    assert daemon.create().exec("echo $WHICH")["stdout"] == "second\n"
    before = vacant(daemon)
    assert "read again" in daemon.reload()
    assert wait_for(lambda: not set(daemon.processes("cloche-vacant")) & set(before), 60)
    assert daemon.create().exec("echo $WHICH")["stdout"] == "second\n"
    assert daemon.stop() == 0


@pytest.mark.parametrize("kill", [False, True])
def test_they_end_with_the_daemon(cloche, kill):
    daemon = Daemon(cloche)
    before = vacant(daemon)
    os.kill(before[0], signal.SIGSTOP)
    if kill:
        daemon.kill()
    else:
        assert daemon.stop() == 0
    assert wait_for(lambda: not any(is_there(pid) for pid in before), 60)
