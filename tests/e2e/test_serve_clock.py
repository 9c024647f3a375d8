"""cloche serve: what was over stays over when the host's clock is set back. No test sets the host's clock: the record of the latest time that was
seen is set ahead instead, which is the same to the daemon."""
import contextlib
import os
import signal
import sqlite3
import time

import pytest

from helpers import requirement
from helpers.approvals import ASYNC
from helpers.daemon import Caller, Daemon, answers, caller, kill_one, restart, token
from helpers.runner import wait_for

pytestmark = [requirement("R23", "R47")]

HOUR = 3600 * 1000


def state_file(cloche):
    return cloche.state / "cloche" / "serve" / "state.db"


def latest(cloche):
    with contextlib.closing(sqlite3.connect(f"file:{state_file(cloche)}", uri=True)) as db:
        return db.execute("SELECT at FROM latest").fetchone()[0]


def set_back(cloche, ms):
    """The clock of the host, as the next daemon sees it, by that much."""
    with contextlib.closing(sqlite3.connect(state_file(cloche))) as db, db:
        assert db.execute("UPDATE latest SET at = ?", (int(time.time() * 1000) + ms,)).rowcount == 1


def bearer(daemon, made):
    return Caller(daemon, Authorization=f"Bearer {made['token']}")


@pytest.fixture
def daemon(cloche):
    d = Daemon(cloche, gate=None)
    yield d
    d.stop()


def test_a_token_that_was_over_stays_so(cloche, daemon):
    short, for_ever = token(daemon, "operator", expires=3600), token(daemon, "operator")
    assert bearer(daemon, short).get("/v1/sandboxes").ok
    assert daemon.stop() == 0
    set_back(cloche, 2 * HOUR)
    daemon.start()
    answer = bearer(daemon, short).get("/v1/sandboxes")
    assert answer.status == 401 and answer.json["code"] == "auth.expired", answer
    assert bearer(daemon, for_ever).get("/v1/sandboxes").ok
    # one that is made now counts from that time on
    fresh = token(daemon, "operator", expires=3600)
    assert fresh["expires_ms"] - fresh["created_ms"] == HOUR and fresh["created_ms"] > (time.time() + 7000) * 1000
    for _ in range(3):
        assert bearer(daemon, fresh).get("/v1/sandboxes").ok
    restart(daemon)
    assert bearer(daemon, fresh).get("/v1/sandboxes").ok and bearer(daemon, short).get("/v1/sandboxes").status == 401
    brief = token(daemon, "operator", expires=1)
    assert wait_for(lambda: bearer(daemon, brief).get("/v1/sandboxes").status == 401)
    assert daemon.stop() == 0
    assert "behind the latest time" in daemon.log and "[serve.clock.back]" in daemon.log, daemon.log


def test_the_time_is_on_record_when_a_token_ends(cloche, daemon):
    """So that no kill at once afterwards, and no clock, brings it back."""
    made = token(daemon, "operator", expires=1)
    assert wait_for(lambda: bearer(daemon, made).get("/v1/sandboxes").status == 401)
    for _ in range(2):      # the front knows by itself that it is over: the warden has its turn between these two
        assert daemon.get("/v1/sandboxes").ok
    daemon.process.send_signal(signal.SIGSTOP)      # it starts no other warden
    for pid in daemon.processes("cloche-warden"):
        os.kill(pid, signal.SIGKILL)
    daemon.kill()
    assert latest(cloche) >= made["expires_ms"]
    daemon.start()
    assert "[serve.clock.back]" not in daemon.heard.decode()


def test_grants_and_ports_too(cloche, daemon):
    agent = caller(daemon, "agent")
    box = agent.create(name="b")

    def ask(n):
        return agent("POST", f"{box.at}/exec", {"command": f"echo {n}"}, ASYNC)
    assert daemon.post(ask(1).json["url"] + "/approve", {"scope": "sandbox", "expires": 3600}).ok
    assert ask(2).status == 200
    ready = ask("ready")
    assert ready.status == 200
    kill_one(daemon, "cloche-warden")
    assert answers(daemon) and wait_for(lambda: daemon.state(box.id) == "ready") and ask(3).status == 200
    assert daemon.stop() == 0
    set_back(cloche, 2 * HOUR)
    daemon.start()
    assert daemon.get("/v1/grants").json["grants"] == []


def test_a_clock_that_is_right_is_not_spoken_of(cloche, daemon):
    token(daemon, "agent", expires=3600)
    assert daemon.stop() == 0 and abs(latest(cloche) - time.time() * 1000) < 60000
    daemon.start()
    assert daemon.stop() == 0 and "serve.clock" not in daemon.log
