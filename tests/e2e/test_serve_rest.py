"""A sandbox in which nothing lives but its guest is left alone by its keeper; one with a process is looked at."""
import os
import time
from pathlib import Path

import pytest

from helpers import requirement
from helpers.daemon import Daemon

REST_S = 6
AT_REST = 2.5           # reads of its keeper in a second: what the warden's questions about its health take
LOOKS = 1               # more than that, for each look at memory

pytestmark = [requirement("R61", "R81"), pytest.mark.root]


@pytest.fixture
def daemon(cloche):
    daemon = Daemon(cloche)
    yield daemon
    daemon.stop()


def reads(pid):
    lines = Path(f"/proc/{pid}/io").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("syscr:"))


def reads_per_s(daemon):
    """Of the keeper of the only sandbox, a moment after its last command."""
    keeper = daemon.only("cloche-keeper")
    time.sleep(3)
    before, began = reads(keeper), time.monotonic()
    time.sleep(REST_S)
    return (reads(keeper) - before) / (time.monotonic() - began)


@pytest.mark.skipif(not os.path.exists("/proc/self/io"), reason="this kernel does not count what processes read")
@pytest.mark.parametrize("used", [False, True])
def test_at_rest(daemon, used):
    box = daemon.create()
    if used:
        assert box.exec("echo on; sleep 0.3")["stdout"] == "on\n"
    assert reads_per_s(daemon) < AT_REST
    assert box.exec("echo on")["stdout"] == "on\n"


@pytest.mark.skipif(not os.path.exists("/proc/self/io"), reason="this kernel does not count what processes read")
def test_with_a_process_that_a_command_left(daemon):
    box = daemon.create()
    assert box.exec("setsid sleep 300 >/dev/null 2>&1 </dev/null & echo on")["stdout"] == "on\n"
    assert reads_per_s(daemon) > AT_REST + LOOKS
    assert box.exec("pkill sleep || kill $(pidof sleep)")["exit_code"] == 0
    assert reads_per_s(daemon) < AT_REST
