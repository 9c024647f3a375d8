"""The checks of test_self_check.py, what any sandbox must do, in sandboxes of cloche serve over /v1, on each engine."""
import pytest

from helpers import requirement
from helpers.engines import again
from helpers.served import CHANGED_BY_SELF_CHECK, OverV1, lend

pytestmark = [requirement("R21", "R41", "R60", "R61")]


@pytest.fixture(scope="module", params=("native", "crun", "runc", "runsc", "microvm"))
def lender(request):
    made = lend(request.param, **CHANGED_BY_SELF_CHECK)
    yield made
    made.end()


@pytest.fixture
def env(request, world, cloche, lender):
    daemon = lender.lend(request, world, cloche)
    yield OverV1(daemon, lender.box)
    lender.take_back()


# a sandbox outlives its commands, and so does what they left in the background (docs/daemon.md)
again(globals(), without=("test_exec_timeout_kills_child_processes",))
