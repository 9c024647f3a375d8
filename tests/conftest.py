"""Fixtures of the black-box suites: the program under test, the same code without it, and the leak check.

docs/testing.md says how they are used.
"""
import collections
import gc
import os
import resource
import shutil
import stat
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

sys.dont_write_bytecode = sys.pycache_prefix is None     # the same tree is tested as root and as an ordinary user

from helpers import leaks, parts, places, shared, workers  # noqa: E402
from helpers.runner import Cloche, Runner, interpreter      # noqa: E402

own_daemon, shared_daemon, shared_or_own = shared.own_daemon, shared.shared_daemon, shared.shared_or_own
BEGAN = pytest.StashKey()
CHOSEN, HEARD_OF = set(), set()     # ids of tests, in the process that sums up: what is to be run, and what was
PROVEN = collections.defaultdict(collections.Counter)


def pytest_addoption(parser):
    workers.add_option(parser)


def pytest_configure(config):
    if not config.option.workers:       # they do it themselves
        leaks.adopt_orphans()
        leaks.enter_own_cgroups()
    os.environ["PYTHONDONTWRITEBYTECODE"] = "1"     # of what tests start; pytest's own goes where PYTHONPYCACHEPREFIX says:
    os.environ.pop("PYTHONPYCACHEPREFIX", None)     # what tests start has its bytecode beside its modules


def pytest_report_header(config):
    who = "root" if places.IS_ROOT else f"uid {os.getuid()}"
    return f"cloche: {places.find_cloche() or 'NOT BUILT'}, as {who}"


@pytest.hookimpl(hookwrapper=True)
def pytest_collection():
    """Nothing of what is collected becomes garbage: to look for some costs each worker a fifth of its time here."""
    gc.disable()
    yield
    gc.freeze()
    gc.enable()


def pytest_ignore_collect(collection_path):
    return parts.has_none_of(collection_path) or None


def pytest_collection_modifyitems(config, items):
    chosen = parts.chosen(items)
    left = [item for item in items if item not in chosen]
    if left:
        config.hook.pytest_deselected(items=left)
        items[:] = [item for item in items if item in chosen]


def pytest_collection_finish(session):
    CHOSEN.update(item.nodeid for item in session.items)


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session):
    return workers.run_tests(session)


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session):
    """A run that ended early (pytest.exit(), a worker that said goodbye) has not passed."""
    if session.config.option.collectonly:
        return
    missed = sorted(CHOSEN - HEARD_OF)
    if missed and session.exitstatus == 0:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
        print(f"\n{len(missed)} of {len(CHOSEN)} tests were not run: {', '.join(missed[:5])} ...")


def spent():
    """Processor time of this process and of all that it and its children waited for."""
    return sum(sum(resource.getrusage(who)[:2]) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))


@pytest.hookimpl(hookwrapper=True, tryfirst=True)
def pytest_runtest_protocol(item, nextitem):
    item.stash[BEGAN] = spent()
    yield


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    """What a report carries from the process that ran the test: what it proves, and the processor time until now."""
    outcome = yield
    report = outcome.get_result()
    if report.when == "teardown":
        report.user_properties += [("cpu", f"{spent() - item.stash[BEGAN]:.3f}"), ("test", item.nodeid)]
    if report.when == "call" or report.outcome != "passed":
        report.user_properties += [("proves", row) for mark in item.iter_markers("requirement") for row in mark.args]


def pytest_runtest_logreport(report):
    if report.when == "teardown" or report.outcome == "failed":
        HEARD_OF.add(report.nodeid)
    if report.when == "call" or report.outcome != "passed":
        for name, row in report.user_properties:
            if name == "proves":
                PROVEN[row][report.outcome] += 1


def pytest_terminal_summary(terminalreporter):
    if not PROVEN:
        return
    terminalreporter.section("requirements")
    proven = [row for row in sorted(PROVEN) if not PROVEN[row]["failed"] and PROVEN[row]["passed"]]
    terminalreporter.write_line("proven: " + (", ".join(f"{r} ({PROVEN[r]['passed']})" for r in proven) or "none"))
    for row in sorted(PROVEN):
        count = PROVEN[row]
        if count["failed"]:
            terminalreporter.write_line(f"NOT PROVEN: {row}: {count['failed']} failed, {count['passed']} passed")
        elif not count["passed"]:
            terminalreporter.write_line(f"not tried: {row}: {count['skipped']} skipped")


class World:
    """One test's own corner of the file system, with its environment. The leak check runs when it ends."""

    def __init__(self, binary):
        self.binary = binary
        # Not pytest's tmp_path: that one is closed (0700) to the ordinary user that some tests become.
        self.root = Path(tempfile.mkdtemp(prefix="ct-", dir="/tmp"))
        self.root.chmod(0o755)
        self.runners = []
        self.watch = None

    def person_dirs(self, name, person):
        """HOME, TMPDIR and a state directory for @person (None: ourselves)."""
        made = {}
        for part in ("home", "tmp", "state", "project"):
            path = self.root / name / part
            path.mkdir(parents=True)
            path.chmod(0o755)
            made[part] = path
            if person is not None and places.IS_ROOT:
                os.chown(path, person.pw_uid, person.pw_gid)
        return made

    def runner(self, kind, name, person):
        dirs = self.person_dirs(name, person)
        env = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME": str(dirs["home"]),
               "TMPDIR": str(dirs["tmp"]), "XDG_STATE_HOME": str(dirs["state"]), "LANG": "C.UTF-8",
               "USER": person.pw_name if person else "tester", "TERM": "xterm", "PYTHONDONTWRITEBYTECODE": "1"}
        made = Cloche(self.binary, env, dirs["home"], person) if kind is Cloche else \
            Runner(env, dirs["home"], person)
        made.home, made.tmp, made.state, made.project = (dirs[k] for k in ("home", "tmp", "state", "project"))
        self.runners.append(made)
        return made

    def temp_files(self):
        """What runs left in TMPDIR."""
        left = []
        for runner in self.runners:
            for base, dirs, files in os.walk(runner.tmp):
                left += [os.path.join(base, n) for n in (*dirs, *files)]
        return left

    def remove(self):
        try:        # the usual case, without a process for it
            shutil.rmtree(self.root)
            return
        except (OSError, RecursionError):
            pass
        # rm(1) copes with ten thousand levels; where it may not enter, it may after chmod.
        for argv in (["rm", "-rf"], ["chmod", "-R", "u+rwx"], ["rm", "-rf"]):
            subprocess.run([*argv, "--", str(self.root)], check=False, capture_output=True)
            if not self.root.exists():
                return
        assert not self.root.exists(), f"cannot remove {self.root}"


@pytest.fixture(scope="session")
def binary():
    path = places.find_cloche()
    if path is None or not path.exists():
        pytest.exit(f"no cloche to test: build it (ninja -C build), or name it in CLOCHE (now {path})", 2)
    mode = path.stat().st_mode
    assert mode & stat.S_IXOTH, f"{path} must be executable by everybody: tests run it as an ordinary user too"
    return path


@pytest.fixture(autouse=True)
def world(request, binary):
    """Own directories, and after the test: nothing of cloche remains."""
    need = {m.name for m in request.node.iter_markers()}
    if "root" in need and not places.IS_ROOT:
        pytest.skip("needs root on the host")
    this = World(binary)
    this.watch = leaks.Watch()
    yield this
    try:
        hung = sum(runner.finish() for runner in this.runners)
        left = this.watch.remains()
        if left:
            this.watch.sweep()
        temp = this.temp_files()
        allowed = [m.args[0] for m in request.node.iter_markers("leaves")]
        left = [what for what in left if not any(word in what for word in allowed)]
        assert not left, "left behind: " + "; ".join(left)
        assert not temp, f"temporary files left behind: {temp}"
        assert not hung or "processes" in allowed, f"{hung} started processes were still running"
    finally:
        this.remove()


@pytest.fixture
def cloche(request, world):
    """The program under test, as whoever runs the tests (an ordinary user when marked `ordinary`)."""
    person = places.ordinary_user() if request.node.get_closest_marker("ordinary") and places.IS_ROOT else None
    return world.runner(Cloche, "own", person)


@pytest.fixture
def box(daemon):
    """A sandbox of the daemon's owner."""
    return daemon.create(name="one")


@pytest.fixture(params=["self", "ordinary"] if places.IS_ROOT else ["self"])
def anyone(request, world):
    """cloche as ourselves; and when we are root once more, as an ordinary user."""
    if request.param == "self":
        return world.runner(Cloche, "self", None)
    return world.runner(Cloche, "ordinary", places.ordinary_user())


@pytest.fixture
def in_mode(world, cloche):
    """in_mode("light") → the cloche to test that mode with, and whose `.project` it can write.

    Light mode has no namespaces to map owners with: as root it refuses a folder of root's own. An ordinary user it is.
    """
    def choose(mode):
        if mode == "light" and places.IS_ROOT:
            return world.runner(Cloche, "light", places.ordinary_user())
        return cloche
    return choose


@pytest.fixture
def sandbox(cloche):
    """sandbox(code, lang="python", pty=False, flags=[...]) → Result of the code inside a sandbox."""
    return cloche.sandbox


@pytest.fixture
def bare(world, cloche):
    """The same code without the wall: shows that an attack is real on this host."""
    runner = Runner(cloche.env, cloche.cwd, cloche.person)
    world.runners.append(runner)
    runner.tmp = cloche.tmp

    def run(code, lang="python", *, args=(), flags=(), **kw):
        return runner.run([*interpreter(code, lang), *args], **kw)
    return run


@pytest.fixture
def command(world, cloche):
    """Run any host command in the test's environment: command(["git", "init"], cwd=...)."""
    runner = Runner(cloche.env, cloche.cwd, cloche.person)
    world.runners.append(runner)
    runner.tmp = cloche.tmp

    def run(argv, check=True, **kw):
        result = runner.run(argv, **kw)
        assert not check or result.ok, result
        return result
    run.start = runner.start
    return run


@pytest.fixture
def project(cloche):
    """An empty folder of the person who runs cloche."""
    return cloche.project


@pytest.fixture
def deny(binary):
    """deny("openat2:ENOSYS") → the words that start a program without that system call."""
    path = places.find_beside(binary, "tests/lib/deny")
    if path is None:
        pytest.skip("tests/lib/deny is not built")

    def words(*calls):
        return [str(path), ",".join(calls), "--"]
    return words


@pytest.fixture(scope="session")
def has():
    """has("git") or skip: the suites use the host's own tools and say which are missing."""
    def check(*tools):
        for tool in tools:
            if shutil.which(tool, path="/usr/bin:/bin:/usr/sbin:/sbin") is None:
                pytest.skip(f"{tool} is not installed in /usr")
    return check


@pytest.fixture
def bench(world, in_mode, cloche):                          # pylint: disable=unused-argument
    """bench(way, who) → Bench: a project with git on the host's side, and the sandbox in one of its modes."""
    from helpers.git_bench import make_bench

    return lambda way, who="self": make_bench(world, cloche, way, who)


@pytest.fixture
def bait(world, cloche):
    """Host services, files and a process to attack: bait.attack(sandbox, flags=...)."""
    from helpers.bait import Bait
    with Bait(world, cloche) as made:
        yield made


@pytest.fixture(scope="session")
def internet():
    """Namespaces with servers (helpers/internet.py), for the whole session."""
    from helpers.internet import Internet
    if not places.IS_ROOT:
        pytest.skip("needs root on the host")
    root = Path(tempfile.mkdtemp(prefix="ct-net-", dir="/tmp"))
    root.chmod(0o755)
    try:
        with Internet(root) as made:
            yield made
    finally:
        shutil.rmtree(root)


@pytest.fixture
def online(internet, cloche):
    """cloche on a host of that internet, of which nothing has been seen yet."""
    from helpers.internet import Online
    internet.forget()
    return Online(internet, cloche)


@pytest.fixture
def h2(online, command, tmp_path):
    """The same with a server of HTTP/2 (helpers/h2.py)."""
    from helpers.h2 import start
    made = start(online, command, tmp_path)
    yield made
    made.far.finish()


@pytest.fixture
def opened(h2):
    """A secret for the host makes sure that its TLS is opened."""
    from helpers.h2 import HOST
    return h2.secret(host=HOST)
