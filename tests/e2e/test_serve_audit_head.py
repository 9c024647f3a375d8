"""The daemon remembers how far it wrote into the audit record: what somebody cut off, put back or wrote anew while no daemon ran is noticed at the
next start, and no crash is taken for it."""
import contextlib
import hashlib
import json
import os
import random
import shutil
import signal
import sqlite3
import time

import pytest

from helpers import places, requirement
from helpers.daemon import Daemon, answers, kill_one
from helpers.runner import wait_for

pytestmark = requirement("R45", "R47")


def folder(cloche):
    return cloche.state / "cloche" / "audit"


def lines(cloche):
    return (folder(cloche) / "audit.jsonl").read_bytes().splitlines(keepends=True)


def put_lines(cloche, what):
    (folder(cloche) / "audit.jsonl").write_bytes(b"".join(what))


def some_entries(cloche, n=3):
    """A daemon that has written, and ended well."""
    daemon = Daemon(cloche)
    box = daemon.create()
    for i in range(n):
        assert box.put(f"f{i}", b"x").ok
    assert daemon.stop() == 0, daemon.log
    return lines(cloche)


def cuts(cloche):
    found = cloche("audit", "query", "--json", "--type", "privileged_capability_invocation")
    assert found.ok, found
    return [e for e in map(json.loads, found.out.splitlines())
            if e["metadata"]["capability"] in ("audit_cut", "audit_uncompared")]


def chained(body_lines, first=1, prev="0" * 64):
    """The same entries in a sound chain of their own."""
    made = []
    for seq, line in enumerate(body_lines, first):
        body = line[line.index(b",\"timestamp\""):line.rindex(b",\"prev\":")]
        text = b'{"seq":%d%s,"prev":"%s"' % (seq, body, prev.encode())
        prev = hashlib.sha256(text).hexdigest()
        made.append(text + b',"hash":"' + prev.encode() + b'"}\n')
    return made


def noticed(cloche, last, left=None):
    """The next start says so: on its standard error, in the record, and so does verify; the one after that is content."""
    daemon = Daemon(cloche)
    assert answers(daemon)
    assert wait_for(lambda: (folder(cloche) / "audit.jsonl").exists() and cuts(cloche))
    assert daemon.stop() == 0, daemon.log
    cut, = cuts(cloche)
    assert cut["severity"] == "critical" and cut["metadata"]["capability"] == "audit_cut", cut
    assert cut["metadata"]["written"] == last["seq"] and cut["metadata"]["hash"] == last["hash"], (cut, last)
    assert left is None or cut["metadata"]["left"] == left, cut
    assert "the audit record was cut or rewritten" in daemon.log and "[audit.cut]" in daemon.log, daemon.log
    verdict = cloche("audit", "verify")
    assert verdict.code == 1 and "ENTRIES ARE MISSING" in verdict.out, verdict
    again = Daemon(cloche)
    assert again.stop() == 0 and "[audit.cut]" not in again.log, again.log
    assert len(cuts(cloche)) == 1


@pytest.mark.parametrize("n", [1, 4])
def test_the_end_was_cut(cloche, n):
    was = some_entries(cloche)
    put_lines(cloche, was[:-n])
    noticed(cloche, json.loads(was[-1]), left=len(was) - n)


def test_all_of_it_was_cut(cloche):
    was = some_entries(cloche)
    put_lines(cloche, [])
    noticed(cloche, json.loads(was[-1]), left=0)


@pytest.mark.parametrize("what", ["file", "folder"])
def test_it_was_removed(cloche, what):
    was = some_entries(cloche)
    if what == "file":
        (folder(cloche) / "audit.jsonl").unlink()
    else:
        shutil.rmtree(folder(cloche))
    noticed(cloche, json.loads(was[-1]), left=0)


def test_an_old_copy_was_put_back(cloche):
    old = some_entries(cloche)
    was = some_entries(cloche)
    put_lines(cloche, old)
    noticed(cloche, json.loads(was[-1]), left=len(old))


@pytest.mark.parametrize("more", [0, 3])
def test_it_was_written_anew(cloche, more):
    """A sound chain, as long as the one that was there or longer, in which an entry says something else."""
    was = some_entries(cloche)
    forged = [line.replace(b'"path":"f1"', b'"path":"g1"') for line in was] + was[-more:] * (more > 0)
    assert forged != was
    put_lines(cloche, chained(forged))
    assert cloche("audit", "verify").ok             # the chain alone does not show it
    noticed(cloche, json.loads(was[-1]))


def test_it_was_cut_and_others_wrote_behind_it(cloche):
    """So that as many entries are there as before, and more."""
    was = some_entries(cloche)
    put_lines(cloche, was[:-2])
    for _ in range(3):
        assert cloche("run", "--", "true").ok
    assert len(lines(cloche)) > len(was) and cloche("audit", "verify").ok
    noticed(cloche, json.loads(was[-1]))


def test_it_is_noticed_while_the_daemon_runs_too(cloche):
    """As much was written behind the cut as had been cut off; and by another scribe than the one that wrote it."""
    daemon = Daemon(cloche)
    box = daemon.create()
    for i in range(4):
        assert box.put(f"f{i}", b"x").ok
    assert wait_for(lambda: any(b'"f3"' in line for line in lines(cloche)))
    time.sleep(0.5)
    was = lines(cloche)
    put_lines(cloche, was[:-4])
    for _ in range(4):
        assert cloche("run", "--", "true").ok
    kill_one(daemon, "cloche-scribe")
    assert wait_for(lambda: cuts(cloche))
    assert daemon.stop() == 0
    assert cuts(cloche)[0]["metadata"]["written"] == json.loads(was[-1])["seq"]
    assert len(cuts(cloche)) == 1


def test_nothing_is_said_of_what_is_there(cloche):
    """Others write into the record meanwhile, and it goes on in another file."""
    some_entries(cloche)
    assert cloche("run", "--", "true").ok
    some_entries(cloche)
    first = folder(cloche) / "audit.jsonl"
    first.chmod(0o400)
    first.rename(folder(cloche) / f"audit-{1:020}.jsonl")
    assert cloche("run", "--", "true").ok           # begins the next file
    daemon = Daemon(cloche)
    assert answers(daemon)
    time.sleep(0.5)
    assert daemon.stop() == 0 and "audit." not in daemon.log, daemon.log
    assert cuts(cloche) == [] and cloche("audit", "verify").ok


def test_what_was_let_go_cannot_be_compared(cloche):
    """Others filled and removed files while no daemon ran: that is said, and is no alarm."""
    was = some_entries(cloche)
    last = json.loads(was[-1])
    put_lines(cloche, chained(was, first=last["seq"] + 100))
    daemon = Daemon(cloche)
    assert wait_for(lambda: cuts(cloche))
    assert daemon.stop() == 0
    said, = cuts(cloche)
    assert said["metadata"]["capability"] == "audit_uncompared" and said["severity"] == "warn", said
    assert "[audit.uncompared]" in daemon.log and "[audit.cut]" not in daemon.log, daemon.log


def test_a_cut_after_the_machine_was_started_anew_says_so(cloche):
    """A loss of power may cost entries that nobody waited for: whoever reads of a cut is told that it may be that."""
    was = some_entries(cloche)
    with contextlib.closing(sqlite3.connect(cloche.state / "cloche" / "serve" / "state.db")) as db, db:
        assert db.execute("UPDATE audit_head SET boot = 'another'").rowcount == 1
    put_lines(cloche, was[:-1])
    daemon = Daemon(cloche)
    assert wait_for(lambda: cuts(cloche))
    assert daemon.stop() == 0
    said, = cuts(cloche)
    assert said["metadata"]["rebooted"] is True and "power" in daemon.log, (said, daemon.log)


def test_a_crash_is_no_cut(cloche):
    """Everything of the daemon is killed at some moment, often: the record is ahead of what the daemon remembers, or as far."""
    draw = random.Random(os.environ.get("CLOCHE_TEST_SEED", "7"))
    for _ in range(places.rounds(5, 25)):
        daemon = Daemon(cloche)
        box = daemon.create()
        end = time.monotonic() + draw.uniform(0, 0.3)
        while time.monotonic() < end:
            assert box.put("f", b"x").ok
        daemon.process.send_signal(signal.SIGSTOP)      # so that it starts none of them anew
        for name in ("cloche-scribe", "cloche-warden"):
            for pid in daemon.processes(name):
                os.kill(pid, signal.SIGKILL)
        daemon.kill()
    daemon = Daemon(cloche)
    assert answers(daemon)
    time.sleep(0.5)
    assert daemon.stop() == 0, daemon.log
    assert cuts(cloche) == [], cuts(cloche)
    verdict = cloche("audit", "verify", "--json")
    assert verdict.ok and json.loads(verdict.out)["cuts"] == 0, verdict
