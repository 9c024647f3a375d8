"""The black-box suites: several workers a core (their tests mostly wait), as several users, each of one copy of the tree.

Who runs what: `parts.py` beside the tests' helpers reads CLOCHE_TEST_* and leaves out what another run of the same check has.
"""
import contextlib
import os
import pwd
import re
import shutil
import subprocess
import tempfile
import threading
import time

from check.builds import built
from check.shell import CORES, PYTHON, REPO, clean_environment, run, tail
from check.tally import Tally, junit

SUITES = ('tests/e2e', 'tests/escape', 'tests/conformance')
QUARTERS = 4            # parts.py has the same
SECOND_TRIES = 3        # more failures at once are no accident
WORKERS = int(os.environ.get('CLOCHE_TEST_WORKERS') or 5 * CORES)


def turn():
    """A number that is one more with each commit: who has which quarter of what takes turns."""
    named = os.environ.get('CLOCHE_TEST_TURN')
    if named:
        return int(named)
    done = subprocess.run(['git', '-c', f'safe.directory={REPO}', 'rev-list', '--count', 'HEAD'], cwd=REPO, capture_output=True,
                          check=False)
    return int(done.stdout) if done.returncode == 0 else int(time.time()) // 86400


def quarter():
    """Which quarter of what takes turns this commit has."""
    return turn() % QUARTERS


def open_to_all(path):
    """Any user may come to @path and read it."""
    path, need = os.path.realpath(path), 0o5
    while os.stat(path).st_mode & need == need:
        if path == '/':
            return True
        path, need = os.path.dirname(path), 0o1
    return False


class Tree:
    """The tests and the programs where any user may read them: where they are, or a copy where a home is closed. One for all
    runs of a check. Bytecode of the tests is kept beside it."""

    def __init__(self):
        self.place, self.lock, self.builds = None, threading.Lock(), {}

    def of(self, which):
        """(the tree, its cloche)"""
        with self.lock:
            if not self.builds:
                self.prepare()
            if which not in self.builds:
                cloche = os.path.join(built(which), 'src/cli/cloche')
                self.builds[which] = cloche if self.place is None and open_to_all(cloche) else self.programs(which)
            return self.root, self.builds[which]

    def prepare(self):
        self.root, self.bytecode = REPO, os.path.join(REPO, 'build-check-tools/bytecode')
        if not open_to_all(os.path.join(REPO, 'tests')):
            self.place = tempfile.mkdtemp(prefix='ct-tree-')
            os.chmod(self.place, 0o755)
            self.root, self.bytecode = os.path.join(self.place, 'repo'), os.path.join(self.place, 'bytecode')
            skip = shutil.ignore_patterns('build*', '.git', '__pycache__', '.pytest_cache')
            shutil.copytree(REPO, self.root, ignore=skip, symlinks=True)
            subprocess.run(['chmod', '-R', 'u=rwX,go=rX', self.place], check=True)

    def programs(self, which):
        """A copy of a build's."""
        folder, target = built(which), tempfile.mkdtemp(prefix='ct-build-', dir=self.place)
        self.place = self.place or target
        for base, folders, files in os.walk(folder):
            folders[:] = [name for name in folders if not name.endswith('.p') and not name.startswith('meson-')
                          and name != 'fuzz' and os.path.relpath(os.path.join(base, name), folder) != 'tests/unit']
            for name in files:
                source = os.path.join(base, name)
                if os.access(source, os.X_OK) and not name.endswith('.so'):
                    there = os.path.join(target, os.path.relpath(source, folder))
                    os.makedirs(os.path.dirname(there), exist_ok=True)
                    shutil.copy2(source, there)
        subprocess.run(['chmod', '-R', 'u=rwX,go=rX', target], check=True)
        return os.path.join(target, 'src/cli/cloche')

    def environment(self):
        return {'PYTHONPYCACHEPREFIX': self.bytecode}

    def remove(self):
        if self.place is not None:
            shutil.rmtree(self.place, ignore_errors=True)


TREE = Tree()


class Suite:
    """One run of the suites against a build: @before are the words that change the user, @env what its tests see, @workers
    how many run at once (None: no worker at all)."""

    def __init__(self, name, which, *, before=(), env=None, suites=SUITES, loops='1', words=(), workers=WORKERS):
        self.name, self.before, self.suites, self.words, self.workers = name, before, suites, words, workers
        self.root, self.cloche = TREE.of(which)
        self.env = {**(env or clean_environment()), **TREE.environment(), 'CLOCHE': self.cloche,
                    'CLOCHE_TEST_LOOPS': os.environ.get('CLOCHE_TEST_LOOPS', loops)}

    def once(self, log, tests, *words, role=None):
        # The results file is made by whoever the tests run as, in a place of its own.
        env = {**self.env, 'CLOCHE_TEST_RUN': role} if role else self.env
        with tempfile.TemporaryDirectory(prefix='ct-junit-') as place:
            os.chmod(place, 0o777)
            results = os.path.join(place, 'results.xml')
            argv = [*self.before, 'env', '-i', *(f'{key}={value}' for key, value in env.items()), PYTHON, '-m', 'pytest',
                    '-q', '--tb=short', '--color=no', f'--junitxml={results}', '-o', 'junit_logging=no', *words, *self.words,
                    *tests]
            done = run(f'suites-{self.name}{log}', argv, env, self.root, timeout=5400)
            tally = junit(results, done.out, done.code).took(done)
            tally.left_out = int((re.findall(r'\b(\d+) deselected', done.out) or [0])[-1])
            tally.times = [t._replace(name=f'{t.name} ({self.name})') for t in tally.times]
            return tally

    def run(self):
        """All of them (tests/helpers/workers.py), then once more what may have a second try."""
        tally = self.once('', self.suites, *(['--workers', str(self.workers)] if self.workers else []))
        if 0 < tally.failed == len(tally.names) <= SECOND_TRIES:
            names = list(dict.fromkeys(tally.names))
            second = self.once('-second-try', names, role='everything')     # what is named is all that it has
            tally.cpu += second.cpu
            if second.passed == len(names) and not second.failed:
                tally.details = [f'only the second time: {text}' for text in tally.details]
                tally.passed, tally.failed, tally.failures = tally.passed + second.passed, 0, []
        return tally


@contextlib.contextmanager
def ordinary_user():
    """An account without privileges: the one asked for, somebody's, or one made for this run and removed after it."""
    named = os.environ.get('CLOCHE_TEST_USER')
    people = [p for p in pwd.getpwall() if 1000 <= p.pw_uid < 60000]
    if named:
        yield pwd.getpwnam(named)
    elif people:
        yield min(people, key=lambda p: p.pw_uid)
    else:
        name = f'cloche-check-{os.getpid()}'
        subprocess.run(['useradd', '--no-create-home', '--shell', '/bin/sh', name], check=True)
        try:
            yield pwd.getpwnam(name)
        finally:
            subprocess.run(['userdel', name], check=False, capture_output=True)


def as_caller(which='release', *, role='self', **options):
    """As whoever calls. @role is what parts.py knows this run as."""
    if built(which) is None:
        return Tally().fail(f'the {which} build is missing')
    env = dict(clean_environment(), CLOCHE_TEST_RUN=role, CLOCHE_TEST_TURN=str(turn()))
    if which == 'release':
        env['CLOCHE_BUILD'] = built(which)
    else:
        env['CLOCHE_TEST_ELSEWHERE'] = 'build'
    return Suite(f'{which}-{role}', which, env=env, **options).run()


def as_other(everything=False):
    """As root: an ordinary user. As an ordinary user: root, when sudo gives it without a question."""
    if built('release') is None:
        return Tally().fail('the release build is missing')
    role = 'everything' if everything else 'other'
    if os.geteuid() != 0:
        if shutil.which('sudo') is None or subprocess.run(['sudo', '-n', 'true'], capture_output=True, check=False).returncode != 0:
            return Tally().skip('the suites as root: not root, and no sudo without a password')
        return Suite('release-root', 'release', before=['sudo', '-n'],
                     env=dict(clean_environment(), CLOCHE_TEST_ELSEWHERE='build', CLOCHE_TEST_RUN='everything')).run()
    with ordinary_user() as person, tempfile.TemporaryDirectory(prefix='ct-home-') as home:
        os.chown(home, person.pw_uid, person.pw_gid)
        env = {'PATH': clean_environment()['PATH'], 'HOME': home, 'USER': person.pw_name, 'LOGNAME': person.pw_name,
               'LC_ALL': 'C.UTF-8', 'TERM': 'dumb', 'CLOCHE_TEST_ELSEWHERE': 'root,build', 'CLOCHE_TEST_RUN': role,
               'CLOCHE_TEST_TURN': str(turn())}
        become = ['setpriv', f'--reuid={person.pw_uid}', f'--regid={person.pw_gid}', '--clear-groups', '--inh-caps=-all']
        return Suite('release-user', 'release', before=become, env=env).run()


def smoke():
    """Some tests of every file, and what that leaves out."""
    tally = as_caller(role='smoke')
    some = tally.passed + tally.failed + tally.skipped
    tally.notes += [f'{tally.left_out} of {tally.left_out + some} black-box tests', 'all of it as the other user and sanitized; fuzz targets; '
                    'linters but the style (`make check` has all of this)']
    return tally


def weakened():
    """Every patch of tests/mutants/prove: builds that are weaker in one thing, which `cloche prove` must notice."""
    done = run('weakened-builds', [PYTHON, '-B', 'tests/mutants/run', 'prove'], timeout=4 * 3600)
    tally = Tally(passed=len(re.findall(r': noticed by ', done.out))).took(done)
    for line in re.findall(r'^\S+ \(.*\): (?:MISSED|broken|hung).*', done.out, re.M):
        tally.fail(line)
    for state in ('refused', 'without effect'):
        n = len(re.findall(rf'^\S+ \(.*\): {state}', done.out, re.M))
        if n:
            tally.skip(f'a weakened build: {state}', n)
    if done.code != 0 and not tally.failed:
        tally.fail(tail(done.out))
    return tally
