"""One cloche serve for the tests of a file, in place of one for each of them.

    from helpers.shared import own, shared

    pytestmark = [requirement("R61"), shared]       # the fixture `daemon` of this file is one that others had before

    @own                                            # and in such a file: a test with a daemon of its own
    def test_the_warden_is_killed(daemon): ...

A test wants its own when it kills, stops, reloads or restarts any of it; when it looks at what the whole daemon counts or
keeps for ever (/v1/events, /metrics, /v1/usage, the audit, throttles); when it fills what is bounded; when it looks at its
log, its memory or its files. Everything else a test finds as it would in a new one: what former ones made is gone.
"""
import json
import os
import select
import subprocess

import pytest

from helpers import leaks
from helpers.daemon import Answer, Daemon
from helpers.runner import Cloche, wait_for

shared = pytest.mark.usefixtures("shared_daemon")
own = pytest.mark.usefixtures("own_daemon")

# what a test may leave in a daemon: the list, the member with its entries, where one of them is deleted
KEPT = (("/v1/sandboxes?state=all&limit=200", "sandboxes", "/v1/sandboxes/"), ("/v1/volumes", "volumes", "/v1/volumes/"),
        ("/v1/templates", "templates", "/v1/templates/"),
        ("/v1/tokens", "tokens", "/v1/tokens/"), ("/v1/grants", "grants", "/v1/grants/"))
WATCHED = ("mounts", "cgroups", "files", "processes")       # of a leaks.Watch


class Lender:
    """A daemon in a corner of its own, which one test after the other has. After one that failed the next has another.
    @settings: of all its sandboxes; @env: its environment's, besides the usual."""

    box = None      # a sandbox that all of them have (helpers/machines.py)

    def __init__(self, settings=None, **env):
        self.settings, self.env = settings, env
        self.world = self.daemon = None
        self.failed = 0         # tests, when it was lent last

    def start(self, world):
        """What there is now belongs to nobody's test; what came with the daemon has to go with it."""
        before = leaks.Watch()
        self.world = type(world)(world.binary)
        keeper = self.world.runner(Cloche, "own", None)
        keeper.env.update(self.env)
        flags = ()
        if self.settings is not None:
            (keeper.home / "settings.yaml").write_text(json.dumps(self.settings), encoding="utf-8")
            flags = "--settings", str(keeper.home / "settings.yaml")
        self.daemon = Daemon(keeper, *flags)
        self.process, self.keeper = self.daemon.process, self.daemon.cloche
        world.watch = leaks.Watch()
        self.came = {what: getattr(world.watch, what) - getattr(before, what) for what in WATCHED}

    def lend(self, request, world, cloche):
        """The daemon for one test, whose @cloche finds it where it would find its own, and starts what the test starts."""
        if self.daemon is not None and self.failed != request.session.testsfailed:
            self.discard()
        if self.daemon is None:
            self.start(world)
        cloche.state = self.daemon.cloche.state
        cloche.env["XDG_STATE_HOME"] = str(cloche.state)
        self.daemon.cloche = cloche
        self.failed = request.session.testsfailed
        return self.daemon

    def take_back(self):
        """After a test, before its leak check: nothing of it is left, and the daemon is as it was."""
        self.daemon.cloche = self.keeper
        try:
            assert self.daemon.process is self.process and self.process.poll() is None, "the shared daemon ended: this test wants its own"
            self.clear()
            self.listen()
        except BaseException:
            self.discard()
            raise

    def clear(self):
        connection = self.daemon.connection()

        def ask(method, path):
            connection.request(method, path)
            return Answer(connection.getresponse())
        try:
            for path, member, at in KEPT:
                while entries := [e for e in ask("GET", path).json[member] if self.box is None or e["id"] != self.box.id]:
                    # the first DELETE ends a sandbox, the second one forgets it
                    gone = [ask("DELETE", at + entry["id"]) for entry in entries]
                    assert {g.status for g in gone} <= {200, 404} and any(g.ok for g in gone), (at, entries, gone)
            assert ask("GET", "/v1/health").json["status"] == "ok"
            pending = ask("GET", "/v1/approvals?state=pending").json["approvals"]
            assert not pending, pending
        finally:
            connection.close()
        volumes = self.daemon.path.parent / "volumes"       # whose files go a moment later
        assert wait_for(lambda: not volumes.exists() or not os.listdir(volumes), 60), json.dumps(os.listdir(volumes))
        assert wait_for(lambda: not self.world.temp_files(), 60), self.world.temp_files()

    def listen(self):
        """Take what it said: a pipe that is full would stop it."""
        err = self.daemon.process.stderr
        while select.select([err], [], [], 0)[0]:
            said = os.read(err.fileno(), 1 << 16)
            assert said, self.daemon.heard
            self.daemon.heard += said

    def discard(self):
        """No assertion: what is wrong is told already."""
        self.daemon = None
        try:
            self.process.terminate()
            self.process.wait(30)
        except subprocess.TimeoutExpired:
            pass
        self.keeper.finish()
        self.world.remove()

    def end(self):
        """The daemon ends in good order, and nothing of it is left."""
        if self.daemon is None:
            return
        watch = leaks.Watch()
        for what in WATCHED:
            getattr(watch, what).difference_update(self.came[what])
        watch.processes.difference_update(leaks.descendants(self.process.pid))
        try:
            assert self.daemon.stop() == 0, self.daemon.log
            assert not self.daemon.path.exists()
            left, temp = watch.remains(), self.world.temp_files()
            assert not left and not temp, f"left behind by the shared daemon: {left} {temp}"
        finally:
            self.discard()


@pytest.fixture(scope="module")
def shared_daemon():
    """For the mark `shared`: who has the daemon of a file. It is started by the first test that asks for `daemon`."""
    made = Lender()
    yield made
    made.end()


@pytest.fixture
def own_daemon():
    """For the mark `own`."""


@pytest.fixture(name="daemon")
def shared_or_own(request, world, cloche):
    """cloche serve without a gate, which ends in good order: a test's own, or in a file with the mark `shared` one that
    is everybody's there (helpers/shared.py says when which)."""
    named = request.fixturenames
    if "shared_daemon" in named and "own_daemon" not in named and cloche.person is None:
        lender = request.getfixturevalue("shared_daemon")
        yield lender.lend(request, world, cloche)
        lender.take_back()
        return
    made = Daemon(cloche)
    yield made
    assert made.stop() == 0, made.log
    assert not made.path.exists()
