"""The host's clock is set forward or back: by its administrator, by a server of time, by somebody who pretends to be one, or by itself when a machine
wakes up. What is limited for an hour stays so for an hour; what is over stays so; what is kept for a day is not lost at once."""
import contextlib
import os
import signal
import sqlite3
import time

import pytest

from helpers import requirement
from helpers.daemon import Caller, Daemon, kill_one, restart, token
from helpers.false_clock import DAY, HOUR, FalseClock
from helpers.runner import wait_for
from helpers.signing import Signing, signed
from helpers.transcripts import ended, file_of
from helpers.vaulted import Vaulted

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


@pytest.fixture
def daemon(cloche, clock, daemons):     # pylint: disable=unused-argument
    d = Daemon(cloche, gate=None)
    daemons(d)
    return d


def events(daemon, kind):
    return [e for e in daemon.get("/v1/events?limit=1000").json["events"] if e["type"] == kind]


@requirement("R29", "R47")
@pytest.mark.parametrize("what", ["warden", "daemon"])
def test_a_clock_set_forward_ends_nothing_but_what_ends_at_a_date_and_says_so(cloche, clock, daemon, what):
    """Sandboxes, what waits for a repeated request, files of volumes and transcripts: nothing of it is older than it was."""
    made = token(daemon, "operator", expires=3600)
    person = Caller(daemon, Authorization=f"Bearer {made['token']}")
    body = {"name": "once", "max_lifetime": 3600, "idle_timeout": 3600, "persistent": True, "volume": {"name": "v", "retention": 3600}}
    first = daemon("POST", "/v1/sandboxes", body, {"Idempotency-Key": "k"})
    kept = daemon.create(volume={"name": "kept", "retention": 3600})
    assert first.status == 201 and kept.exec("touch /workspace/mine")["exit_code"] == 0 and kept.delete().ok and person.get("/v1/sandboxes").ok
    if what == "daemon":
        assert daemon.stop() == 0
        clock.set(90 * DAY)
        daemon.start()
    else:
        clock.set(90 * DAY)
        restart(daemon)
    assert wait_for(lambda: daemon.state(first.json["id"]) == "ready")
    again = daemon("POST", "/v1/sandboxes", body, {"Idempotency-Key": "k"})
    assert again.ok and again.json["id"] == first.json["id"], again
    assert "kept" in [v["name"] for v in daemon.get("/v1/volumes").json["volumes"]]
    for pid in daemon.processes("cloche-scribe"):
        os.kill(pid, signal.SIGKILL)        # the next one looks at once
    assert wait_for(lambda: daemon.get(f"/v1/sandboxes/{kept.id}/transcript").ok)
    assert len(list((cloche.state / "cloche" / "serve" / "transcripts").iterdir())) >= 2
    # what ends at a date is believed to be over, and nobody has to wonder why
    assert person.get("/v1/sandboxes").json["code"] == "auth.expired"
    assert wait_for(lambda: [e for e in events(daemon, "clock") if "set forward by 777" in e["detail"]]), events(daemon, "clock")
    assert daemon.stop() == 0 and "[serve.clock.forward]" in daemon.log, daemon.log
    clock.set(0)
    daemon.start()
    assert person.get("/v1/sandboxes").json["code"] == "auth.expired" and daemon.state(first.json["id"]) in ("ready", "recovering")
    assert daemon.stop() == 0 and "[serve.clock.back]" in daemon.log, daemon.log


def age(cloche, box, ms):
    """It was ready so long before, as the record has it. No daemon runs."""
    with contextlib.closing(sqlite3.connect(cloche.state / "cloche" / "serve" / "state.db")) as db, db:
        assert db.execute("UPDATE sandbox SET steady_begun = steady_begun - ? WHERE id = ?", (ms, box.id)).rowcount == 1


@requirement("R47")
@pytest.mark.parametrize("back", [0, -DAY])
def test_neither_a_restart_nor_a_clock_set_back_prolongs_a_life(cloche, clock, daemon, back):
    box = daemon.create(name="long", max_lifetime=7200, persistent=True, volume={"name": "v"})
    over = daemon.create(name="over", max_lifetime=7200, persistent=True, volume={"name": "w"})
    assert daemon.stop() == 0
    age(cloche, box, 2 * HOUR - 20000)
    age(cloche, over, 2 * HOUR)
    clock.set(back)
    daemon.start()
    assert wait_for(lambda: daemon.state(box.id) == "ready")
    assert daemon.state(over.id) == "stopped"
    assert wait_for(lambda: daemon.state(box.id) == "stopped", 60)
    assert "lifetime" in daemon.get(f"/v1/sandboxes/{box.id}").json["detail"]


@requirement("R29")
@pytest.mark.parametrize("began", ["2099", "1970"])
def test_a_clock_that_was_wrong_at_first_neither_throws_transcripts_away_nor_keeps_them_for_ever(cloche, clock, daemons, began):
    """Files have the host's dates. Time that began elsewhere goes on elsewhere, over restarts too."""
    now = int(time.time())
    clock.set((4070908800 - now if began == "2099" else 3600 - now) * 1000)
    daemon = Daemon(cloche, gate=None)
    daemons(daemon)
    assert daemon.stop() == 0
    clock.set(0)
    daemon.start()
    fresh, old = daemon.create(), daemon.create()
    for box in (fresh, old):
        assert box.exec("true")["exit_code"] == 0 and ended(daemon, box)
    os.utime(file_of(cloche, old), (now - 40 * 86400,) * 2)
    kill_one(daemon, "cloche-scribe")       # the next one looks at once
    assert wait_for(lambda: not file_of(cloche, old).exists())
    assert file_of(cloche, fresh).exists() and daemon.stop() == 0
    assert f"[serve.clock.{'back' if began == '2099' else 'began'}]" in daemon.log, daemon.log


@requirement("R16")
def test_a_secret_lives_no_longer_by_a_clock_set_back(online, tmp_path):
    v = Vaulted(online, tmp_path)
    clock = FalseClock(online.cloche, tmp_path / "clock")
    v.secret("TOK", "--expires", "15s")
    asked = v.popen("""
import os, time
for i in range(200):
    s = tls(socket.create_connection(('ok.example.org', 443)), 'ok.example.org')
    s.sendall(get('ok.example.org', '/headers', 'Authorization: Bearer ' + os.environ['TOK'] + '\\r\\nConnection: close\\r\\n'))
    said = drain(s).split(b' ')[1:2]
    print(said, flush=True)
    if said != [b'200']: break
    time.sleep(0.3)
""")
    assert asked.stdout.readline() == b"[b'200']\n"
    clock.set(-HOUR)
    out, _ = asked.communicate(timeout=110)
    assert out.splitlines()[-1] != b"[b'200']", "a minute later it is still given out"
