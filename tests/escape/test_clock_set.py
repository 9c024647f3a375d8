"""The host's clock is set forward or back: by its administrator, by a server of time, by somebody who pretends to be one, or by itself when a machine
wakes up. What is limited for an hour stays so for an hour; what is over stays so; what is kept for a day is not lost at once."""
import os
import signal

import pytest

from helpers import requirement
from helpers.daemon import Caller, Daemon, answers, caller, kill_one, restart, token
from helpers.false_clock import DAY, HOUR, FalseClock
from helpers.runner import wait_for
from helpers.signing import Signing, signed

pytestmark = [requirement("R23"), pytest.mark.root]


@pytest.fixture
def clock(cloche, tmp_path):
    return FalseClock(cloche, tmp_path / "clock")


@pytest.fixture
def daemons():
    made = []
    yield made.append
    for d in made:
        d.stop()


@requirement("R46")
@pytest.mark.parametrize("what", ["signer", "warden", "daemon"])
def test_no_clock_makes_room_in_a_signing_limit(cloche, clock, daemons, tmp_path, what):
    s = Signing(cloche, tmp_path, maxTransactionsPerHour=1, maxTransactionsPerDay=2, maxSpendPerDayWei=str(10 ** 18))
    daemons(s.daemon)
    signed(s.ask())
    for ahead in (2 * HOUR, 3 * DAY, -3 * DAY):
        clock.set(ahead)
        if what == "daemon":
            assert s.daemon.stop() == 0
            s.daemon.start()
        else:
            kill_one(s.daemon, f"cloche-{what}")
        s.wait()
        assert s.rule()[0] == "rate_limit_hourly", ahead
