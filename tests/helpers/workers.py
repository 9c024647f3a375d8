"""`pytest --workers N`: tests in N processes at once. They are forks of the one that has collected the tests: the tests' files are
read once, not by each process (which took a core's half minute in each run of `make check`).

The parent hands out the tests and hears the reports; it runs none itself. A worker takes the tests of a file in their order, so
that what a file shares (helpers/shared.py) is made once; when all files are begun, a worker without work takes the second half of
what another one has left. Tests that wait long (mark `slow`) begin first; those with the mark `alone` run when all others have ended.
A worker that dies has failed the test that it ran, and another one takes its place.
"""
import collections
import contextlib
import itertools
import multiprocessing
import multiprocessing.connection
import os
import random
import signal
import sys
import traceback

import pytest

from helpers import leaks

ENOUGH_DEATHS = 5           # of workers: then something is wrong with all of them


class Worker:
    """A forked process, as its parent sees it."""

    def __init__(self, session, number, others):
        self.number, self.last_words = number, ""
        self.tests, self.taken, self.at = collections.deque(), [], None     # indexes: to be had, in its hands, begun
        self.connection, theirs = multiprocessing.Pipe()
        sys.stdout.flush()
        sys.stderr.flush()
        self.pid = os.fork()
        if self.pid == 0:
            self.connection.close()
            for other in others:
                other.connection.close()
            live(session, theirs)       # does not return
        theirs.close()

    def end(self):
        """How it ended; "" in good order."""
        self.connection.close()
        code = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        return f"exit {code}" if code != 0 or self.taken else ""        # negative: of that signal


def live(session, connection):
    """The whole life of a worker."""
    code = 1
    try:
        become_worker(session.config, connection)
        work(session, connection)
        code = 0
    except BaseException:       # pylint: disable=broad-except
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        words = traceback.format_exc()
        with contextlib.suppress(BaseException):    # what it has made for several tests ends with it
            session._setupstate.teardown_exact(None)        # pylint: disable=protected-access
        with contextlib.suppress(OSError):          # the parent has ended
            connection.send(("last words", words))
    finally:
        leaks.leave_own_cgroups(os.getpid())
        os._exit(code)


def become_worker(config, connection):
    """What a fork must not share with its parent: the file that captures output, the terminal, what is drawn at random."""
    plugins = config.pluginmanager
    capture = plugins.getplugin("capturemanager")
    capture.stop_global_capturing()
    nothing = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, 1)
    os.close(nothing)
    capture.start_global_capturing()
    capture.suspend_global_capture()
    for plugin in [plugins.getplugin("terminalreporter"), *(p for p in plugins.get_plugins() if type(p).__name__ == "LogXML")]:
        plugins.unregister(plugin)
    plugins.register(Reporter(config, connection))
    random.seed()
    leaks.adopt_orphans()
    leaks.enter_own_cgroups()


class Reporter:
    """A worker's plugin: the parent hears its reports."""

    def __init__(self, config, connection):
        self.config, self.connection = config, connection

    @pytest.hookimpl
    def pytest_runtest_logreport(self, report):
        self.connection.send(("report", self.config.hook.pytest_report_to_serializable(config=self.config, report=report)))


def work(session, connection):
    """One test after the other. The next one has to be known before: what both share is not ended between them."""
    def take():
        connection.send(("take", None))
        index = connection.recv()
        return None if index is None else (index, session.items[index])
    now = take()
    while now:
        following = take()
        index, item = now
        connection.send(("at", index))
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=following and following[1])
        now = following


class Pool:
    """The parent's side."""

    def __init__(self, session, most):
        self.session, self.most = session, most
        self.workers, self.numbers, self.deaths = [], itertools.count(), 0
        self.waiting = collections.deque()      # lists of indexes: of a file each

    def run(self):
        """All tests: those that may have neighbours, then the others."""
        alone = {i for i, item in enumerate(self.session.items) if item.get_closest_marker("alone")}
        try:
            self.run_those([i for i in range(len(self.session.items)) if i not in alone], self.most)
            self.run_those(sorted(alone), 1)
        finally:
            for worker in self.workers:
                worker.end()

    def run_those(self, indexes, most):
        self.waiting = collections.deque(self.groups(indexes))
        for _ in range(min(most, len(indexes))):
            self.begin()
        while self.workers:
            ready = multiprocessing.connection.wait([worker.connection for worker in self.workers])
            for worker in [worker for worker in self.workers if worker.connection in ready]:
                self.hear(worker)

    def groups(self, indexes):
        """The tests of each file; before them, each alone, those that take long."""
        slow, files = [], {}
        for i in indexes:
            item = self.session.items[i]
            if item.get_closest_marker("slow"):
                slow.append([i])
            else:
                files.setdefault(item.path, []).append(i)
        return [*slow, *files.values()]

    def begin(self, tests=()):
        worker = Worker(self.session, next(self.numbers), self.workers)
        worker.tests.extend(tests)
        self.workers.append(worker)

    def hear(self, worker):
        try:
            what, value = worker.connection.recv()
        except (EOFError, OSError):
            self.workers.remove(worker)
            if how := worker.end():
                self.died(worker, how)
            return
        if what == "take":
            with contextlib.suppress(OSError):      # it died meanwhile, which is heard next
                worker.connection.send(self.next_for(worker))
        elif what == "at":
            worker.at = value
        elif what == "last words":
            worker.last_words = value
        else:
            self.report(worker, value)

    def next_for(self, worker):
        """The index of a test, or None at the end."""
        if self.session.shouldfail or self.session.shouldstop:
            return None
        if not worker.tests:
            if self.waiting:
                worker.tests.extend(self.waiting.popleft())
            else:
                self.steal_for(worker)
        if not worker.tests:
            return None
        worker.taken.append(worker.tests.popleft())
        return worker.taken[-1]

    def steal_for(self, worker):
        richest = max(self.workers, key=lambda other: len(other.tests))
        for _ in range((len(richest.tests) + 1) // 2):
            worker.tests.appendleft(richest.tests.pop())

    def report(self, worker, told):
        hook, config = self.session.config.hook, self.session.config
        report = hook.pytest_report_from_serializable(config=config, data=told)
        hook.pytest_runtest_logreport(report=report)
        if report.when == "teardown":
            worker.taken.remove(worker.at)
            worker.at = None
            hook.pytest_runtest_logfinish(nodeid=report.nodeid, location=report.location)

    def died(self, worker, how):
        """Within a test, or between two: that is a failure, of the test that it was at."""
        self.deaths += 1
        item = self.session.items[worker.at] if worker.at is not None else None
        nodeid, location = (item.nodeid, item.location) if item else ("between two tests", ("", None, ""))
        told = f"worker {worker.number} crashed while running {nodeid!r}: {how}\n{worker.last_words}"
        self.session.config.hook.pytest_runtest_logreport(
            report=pytest.TestReport(nodeid, location, {}, "failed", told, "???"))
        left = [*(index for index in worker.taken if index != worker.at), *worker.tests]
        if self.deaths > ENOUGH_DEATHS:
            self.session.shouldfail = f"{self.deaths} workers have died"
        elif left or self.waiting:
            self.begin(left)


def add_option(parser):
    parser.addoption("--workers", type=int, default=0, metavar="N", help="tests run in N forks of this process (0: in itself)")


def run_tests(session):
    """True: all have run here. None: pytest does it, as always."""
    config = session.config
    if not config.option.workers or config.option.collectonly or session.testsfailed:
        return None
    reporter = config.pluginmanager.getplugin("terminalreporter")
    if reporter:
        reporter.showfspath = False     # of which there are several at once
    factory = getattr(config, "_tmp_path_factory", None)
    if factory:
        factory.getbasetemp()           # one for all
    Pool(session, config.option.workers).run()
    if session.shouldfail:
        raise session.Failed(session.shouldfail)
    if session.shouldstop:
        raise session.Interrupted(session.shouldstop)
    return True
