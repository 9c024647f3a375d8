#!/usr/bin/python3
"""Run everything that is tested, and count it.

    tests/run.py check              all phases (what `make check` and .ci/run do)
    tests/run.py quick              unit and black-box suites as the caller
    tests/run.py lint               linters only
    tests/run.py fuzz               fuzz targets only, --fuzz-seconds each
    tests/run.py check --only X     phases whose name contains X

One line per phase; failures are shown below their phase and once more at the end (a reader often has only the end),
with the place of the whole log; skips are counted and their reasons listed. The last line is always `N passed, N failed, N skipped`, and the exit status is 0 only when nothing
failed and something passed.
"""
import argparse
import collections
import concurrent.futures
import contextlib
import glob
import json
import os
import pwd
import re
import shutil
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ElementTree

REPO = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
MESON, NINJA, PYTHON = '/usr/bin/meson', '/usr/bin/ninja', '/usr/bin/python3'
SUITES = ('tests/e2e', 'tests/escape', 'tests/conformance')
LOGS = os.path.join(REPO, 'build-check-logs')
SECOND_TRIES = 3        # more failures at once are no accident
# An attack that got through once is a hole: its test has no second try, but for one that came to no verdict (a peer that
# could not be reached, an answer that did not come).
JUDGED = r'assert|AssertionError|Failed|[\w.]*Hung'
JOBS = max(1, min(4, os.cpu_count() or 1))

# name -> (compiler, meson options). `release` is also what `make` builds.
BUILDS = {
    'release': ('build', 'gcc', ['--buildtype=release', '-Doptimization=2']),
    'sanitized': ('build-check-asan', 'gcc', ['--buildtype=debugoptimized', '-Db_sanitize=address,undefined',
                                              '-Dc_args=-fno-sanitize-recover=all -fno-omit-frame-pointer']),
    'clang': ('build-check-clang', 'clang', ['--buildtype=release', '-Doptimization=2']),
    'fuzz': ('build-check-fuzz', 'clang', ['--buildtype=debugoptimized', '-Dfuzz=true', '-Dtests=false',
                                           '-Db_sanitize=address,undefined', '-Db_lundef=false']),
}


class Tally:
    """What one phase found: counts, the reasons of skips, and text worth showing."""

    def __init__(self, passed=0, failed=0, skipped=0):
        self.passed, self.failed, self.skipped = passed, failed, skipped
        self.reasons = collections.Counter()
        self.details = []
        self.failures = []      # those of the details that were failures to the last
        self.names = []         # of what failed and may be tried again, as pytest is asked for it

    def add(self, other):
        self.passed += other.passed
        self.failed += other.failed
        self.skipped += other.skipped
        self.reasons.update(other.reasons)
        self.details += other.details
        self.failures += other.failures

    def skip(self, reason, n=1):
        self.skipped += n
        self.reasons[reason] += n
        return self

    def fail(self, text, n=1):
        self.failed += n
        self.details.append(text)
        self.failures.append(text)
        return self


def clean_environment():
    """The caller's environment without what would bend a build or a test."""
    drop = {'CFLAGS', 'LDFLAGS', 'CPPFLAGS', 'PYTHONPATH', 'CLOCHE', 'DESTDIR', 'MAKEFLAGS', 'MFLAGS', 'MAKELEVEL'}
    env = {name: value for name, value in os.environ.items() if name not in drop}
    env['PATH'] = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin'
    env['LC_ALL'] = 'C.UTF-8'
    return env


def run(name, argv, env=None, cwd=REPO, timeout=1800):
    """Run @argv with its output in a log; returns (exit code, output)."""
    log = os.path.join(LOGS, re.sub(r'[^\w.-]+', '-', name) + '.log')
    with open(log, 'wb') as out:
        try:
            code = subprocess.run(argv, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT, cwd=cwd,
                                  env=env or clean_environment(), timeout=timeout, check=False).returncode
        except subprocess.TimeoutExpired:
            code = -1
            out.write(f'\nno end after {timeout} s\n'.encode())
        except OSError as e:
            code = 127
            out.write(f'{argv[0]}: {e}\n'.encode())
    with open(log, encoding='utf-8', errors='replace') as f:
        return code, f.read()


def tail(text, lines=25):
    return '\n'.join(text.rstrip().split('\n')[-lines:])


def build(which, targets=()):
    """Configure when needed and build; a failure is one failed test. Returns (directory, Tally)."""
    folder, compiler, options = BUILDS[which]
    folder = os.path.join(REPO, folder)
    env = dict(clean_environment(), CC=compiler)
    if not os.path.exists(os.path.join(folder, 'build.ninja')):
        code, out = run(f'configure-{which}', [MESON, 'setup', folder, *options], env)
        if code != 0:
            return folder, Tally().fail(tail(out))
    code, out = run(f'build-{which}', [NINJA, '-C', folder, *targets], env)
    if code != 0:
        errors = [line for line in out.split('\n') if re.search(r'error|warning|FAILED|undefined', line)]
        return folder, Tally().fail('\n'.join(errors[:25]) or tail(out))
    return folder, Tally(passed=1)


def built(which):
    folder = os.path.join(REPO, BUILDS[which][0])
    return folder if os.path.exists(os.path.join(folder, 'src/cli/cloche')) else None


# ---- unit programs ---------------------------------------------------------------------------------------------------

def tap(output):
    """Count cmocka's TAP lines. Returns None when there are none."""
    tally, seen = Tally(), False
    for line in output.split('\n'):
        match = re.match(r'(not )?ok \d+\s*(?:-\s*)?(.*)', line)
        if not match:
            continue
        seen = True
        if '# SKIP' in line.upper():
            name = match.group(2).replace('# SKIP', '').strip()
            tally.skip(f'unit test {name} skips itself (its source says why)')
        elif match.group(1):
            tally.fail(match.group(2))
        else:
            tally.passed += 1
    return tally if seen else None


def unit_program(which, test):
    """Once more when it fails: its neighbours may have taken the time that it needs."""
    first = unit_once(which, test, '')
    if not first.failed:
        return first
    second = unit_once(which, test, '-second-try')
    if second.failed:
        return first
    second.details = [f'only the second time: {text}' for text in first.details]
    return second


def unit_once(which, test, suffix):
    env = dict(clean_environment(), CMOCKA_MESSAGE_OUTPUT='TAP', **test.get('env', {}))
    code, out = run(f"unit-{which}-{test['name']}{suffix}", test['cmd'], env, test.get('workdir') or REPO,
                    timeout=max(test.get('timeout') or 30, 30) * (4 if which == 'sanitized' else 1))
    tally = tap(out) if '1..' in out else None
    if tally is None:
        if code == 77:
            return Tally().skip(tail(out, 1) or f"{test['name']}: exit 77")
        return Tally(passed=1) if code == 0 else Tally().fail(f"{test['name']}: exit {code}\n{tail(out)}")
    if code != 0 and not tally.failed:
        tally.fail(f'exit {code} after its last case')
    if tally.failed:
        tally.details = [f"{test['name']}: " + ', '.join(tally.details), tail(out)]
    return tally


def unit(which):
    folder = built(which)
    if folder is None:
        return Tally().fail(f'the {which} build is missing')
    code, out = run(f'introspect-{which}', [MESON, 'introspect', '--tests', folder])
    if code != 0:
        return Tally().fail(tail(out))
    total = Tally()
    with concurrent.futures.ThreadPoolExecutor(JOBS) as pool:
        for tally in pool.map(lambda test: unit_program(which, test), json.loads(out)):
            total.add(tally)
    return total


# ---- black-box suites ------------------------------------------------------------------------------------------------

def junit(path, out, code):
    """Count a junit file; a run that wrote none, or ended otherwise than by its tests, is a failure."""
    tally = Tally()
    try:
        cases = list(ElementTree.parse(path).iter('testcase'))
    except (OSError, ElementTree.ParseError):
        return tally.fail(f'pytest wrote no results (exit {code})\n{tail(out)}')
    for case in cases:
        name = f"{case.get('classname')}::{case.get('name')}"
        bad = [*case.findall('failure'), *case.findall('error')]
        skips = case.findall('skipped')
        if bad:
            said = bad[0].get('message') or bad[0].text or ''
            tally.fail(f"{name}\n{tail(said, 12)}")
            if not name.startswith('tests.escape.') or not re.match(JUDGED, said):
                tally.names.append(f"{case.get('classname').replace('.', '/')}.py::{case.get('name')}")
        elif skips:
            tally.skip(skips[0].get('message') or 'no reason')
        else:
            tally.passed += 1
    if code not in (0, 1) or (code == 1 and not tally.failed):
        tally.fail(f'pytest: exit {code}\n{tail(out, 12)}')
    return tally


def pytest(name, cloche, *, root=REPO, before=(), env=None, suites=SUITES, loops='1'):
    """Run the suites of @root against @cloche; @before are the words that change the user."""
    present = [suite for suite in suites if glob.glob(os.path.join(root, suite, 'test_*.py'))]
    if not present:
        return Tally().fail('no test files')
    full = dict(env or clean_environment(), CLOCHE=cloche, CLOCHE_TEST_LOOPS=os.environ.get('CLOCHE_TEST_LOOPS', loops),
                PYTHONDONTWRITEBYTECODE='1')

    def once(log, tests):
        # The results file is made by whoever the tests run as, in a place of its own.
        with tempfile.TemporaryDirectory(prefix='ct-junit-') as place:
            os.chmod(place, 0o777)
            results = os.path.join(place, 'results.xml')
            words = [f'{key}={value}' for key, value in full.items()]
            argv = [*before, 'env', '-i', *words, PYTHON, '-B', '-m', 'pytest', '-q', '--tb=short', '--color=no',
                    f'--junitxml={results}', '-o', 'junit_logging=no', *tests]
            code, out = run(log, argv, full, root, timeout=5400)
            return junit(results, out, code)

    tally = once(name, present)
    if 0 < tally.failed == len(tally.names) <= SECOND_TRIES:
        second = once(f'{name}-second-try', tally.names)
        if second.passed == tally.failed and not second.failed:
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


@contextlib.contextmanager
def copied_tree(folder):
    """The tests and the programs of @folder where any user may read them (a clone is often below a closed home)."""
    place = tempfile.mkdtemp(prefix='ct-tree-')
    try:
        os.chmod(place, 0o755)
        skip = shutil.ignore_patterns('build*', '.git', '__pycache__', '.pytest_cache')
        shutil.copytree(REPO, os.path.join(place, 'repo'), ignore=skip, symlinks=True)
        for base, folders, files in os.walk(folder):
            folders[:] = [name for name in folders if not name.endswith('.p') and not name.startswith('meson-')]
            for name in files:
                source = os.path.join(base, name)
                if os.access(source, os.X_OK) and not name.endswith('.so'):
                    target = os.path.join(place, 'build', os.path.relpath(source, folder))
                    os.makedirs(os.path.dirname(target), exist_ok=True)
                    shutil.copy2(source, target)
        subprocess.run(['chmod', '-R', 'u=rwX,go=rX', place], check=True)
        yield os.path.join(place, 'repo'), os.path.join(place, 'build/src/cli/cloche')
    finally:
        shutil.rmtree(place, ignore_errors=True)


def suites_as_caller(which='release', **options):
    folder = built(which)
    if folder is None:
        return Tally().fail(f'the {which} build is missing')
    env = clean_environment()
    if which == 'release':
        env['CLOCHE_BUILD'] = folder
    else:
        env['CLOCHE_TEST_ELSEWHERE'] = 'build'
    if os.geteuid() == 0:
        with copied_tree(folder) as (root, cloche):     # as root some tests become an ordinary user
            return pytest(f'suites-{which}-self', cloche, root=root, env=env, **options)
    return pytest(f'suites-{which}-self', os.path.join(folder, 'src/cli/cloche'), env=env, **options)


def suites_as_other():
    """As root: an ordinary user. As an ordinary user: root, when sudo gives it without a question."""
    folder = built('release')
    if folder is None:
        return Tally().fail('the release build is missing')
    if os.geteuid() != 0:
        if subprocess.run(['sudo', '-n', 'true'], capture_output=True, check=False).returncode != 0 \
                if shutil.which('sudo') else True:
            return Tally().skip('the suites as root: not root, and no sudo without a password')
        with copied_tree(folder) as (root, cloche):
            return pytest('suites-release-root', cloche, root=root, before=['sudo', '-n'],
                          env=dict(clean_environment(), CLOCHE_TEST_ELSEWHERE='build'))
    with ordinary_user() as person, copied_tree(folder) as (root, cloche), \
            tempfile.TemporaryDirectory(prefix='ct-home-') as home:
        os.chown(home, person.pw_uid, person.pw_gid)
        env = {'PATH': clean_environment()['PATH'], 'HOME': home, 'USER': person.pw_name, 'LOGNAME': person.pw_name,
               'LC_ALL': 'C.UTF-8', 'TERM': 'dumb', 'CLOCHE_TEST_ELSEWHERE': 'root,build'}
        become = ['setpriv', f'--reuid={person.pw_uid}', f'--regid={person.pw_gid}', '--clear-groups',
                  '--inh-caps=-all']
        return pytest('suites-release-user', cloche, root=root, before=become, env=env)


# ---- fuzzing ---------------------------------------------------------------------------------------------------------

def fuzz(seconds):
    folder, tally = build('fuzz')
    if tally.failed:
        return tally
    _, out = run('introspect-fuzz', [MESON, 'introspect', '--targets', folder])
    targets = [t for t in json.loads(out) if t['type'] == 'executable' and '/fuzz/' in t['filename'][0]]
    if not targets:
        return tally.fail('no fuzz targets were built')

    def one(target):
        name = target['name']
        seeds = os.path.join(REPO, 'fuzz', 'corpus', name)
        with tempfile.TemporaryDirectory(prefix='ct-fuzz-') as fresh:
            argv = [target['filename'][0], f'-max_total_time={seconds}', '-timeout=10', '-rss_limit_mb=2048',
                    '-print_final_stats=1', f'-artifact_prefix={LOGS}/{name}-', fresh]
            argv += [seeds] if os.path.isdir(seeds) else []
            code, text = run(f'fuzz-{name}', argv, timeout=seconds + 120)
        if code != 0:
            return Tally().fail(f'{name}: exit {code}\n{tail(text)}')
        runs = re.search(r'stat::number_of_executed_units:\s*(\d+)', text)
        if not runs or int(runs.group(1)) < 20:
            return Tally().fail(f'{name}: fewer than 20 inputs were tried\n{tail(text, 8)}')
        return Tally(passed=1)

    with concurrent.futures.ThreadPoolExecutor(JOBS) as pool:
        for result in pool.map(one, targets):
            tally.add(result)
    return tally


# ---- linters ---------------------------------------------------------------------------------------------------------

def tracked(*patterns):
    """Files of the tree that match, known to git or new."""
    done = subprocess.run(['git', '-c', f'safe.directory={REPO}', 'ls-files', '-co', '--exclude-standard', *patterns],
                          cwd=REPO, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(f'the linters need git and a clone: {done.stderr.strip()}')
    names = done.stdout.split('\n')
    return sorted({name for name in names if name and os.path.isfile(os.path.join(REPO, name))})


def scripts(*interpreters):
    """Tracked files whose first line names one of @interpreters."""
    found = []
    for name in tracked():
        with open(os.path.join(REPO, name), 'rb') as f:
            first = f.readline(200)
        if first.startswith(b'#!') and any(word.encode() in first for word in interpreters):
            found.append(name)
    return found


def lint_one(name, argv):
    code, out = run(f'lint-{name}', argv)
    return Tally(passed=1) if code == 0 else Tally().fail(f'{name}: exit {code}\n{tail(out, 40)}')


def linters():
    shells = sorted({*tracked('*.sh', 'completions/*.bash'), *scripts('/bin/bash', '/bin/sh', 'env bash', 'env sh')})
    pythons = sorted({*tracked('*.py'), *scripts('python3')})
    manuals = tracked('docs/man/*.[1-9]')
    jobs = {
        'checksrc': [PYTHON, 'tools/checksrc.py'],
        'checksrc-itself': [PYTHON, '-B', '-m', 'pytest', '-q', '-c', '/dev/null', '--rootdir=tools',
                            '-p', 'no:cacheprovider', 'tools/test_checksrc.py'],
        'cppcheck': ['tools/lint-cppcheck', str(JOBS)],
        'shellcheck': ['shellcheck', '-x', *shells],
        'pyflakes': ['pyflakes3', *pythons],
        'python-syntax': [PYTHON, '-B', '-c', 'import sys\nfor p in sys.argv[1:]: compile(open(p).read(), p, "exec")',
                          *pythons],
        'mandoc': ['mandoc', '-T', 'lint', '-W', 'warning,stop', *manuals],
        'links': [PYTHON, 'tools/lint-links.py'],
    }
    if not (shells and pythons and manuals):
        return Tally().fail('the linters found no files to read')
    total = Tally()
    with concurrent.futures.ThreadPoolExecutor(JOBS) as pool:
        for tally in pool.map(lambda item: lint_one(*item), jobs.items()):
            total.add(tally)
    return total


def build_phase(which):
    return lambda: build(which)[1]


def phases(options):
    """(name, function) in order, for the command; those of a list run at the same time (a test knows its own processes,
    so that neighbours do not matter)."""
    me = 'root' if os.geteuid() == 0 else 'this user'
    other = 'an ordinary user' if os.geteuid() == 0 else 'root'
    lint = [('checksrc, cppcheck, shellcheck, python, man', linters), ('clang -Werror build', build_phase('clang'))]
    release = [('gcc -Werror build', build_phase('release')), ('unit tests', lambda: unit('release')),
               (f'end-to-end and escape tests as {me}', suites_as_caller)]
    fuzzing = [(f'fuzz targets, {options.fuzz_seconds} s each', lambda: fuzz(options.fuzz_seconds))]
    if options.command == 'quick':
        return release
    if options.command == 'lint':
        return lint
    if options.command == 'fuzz':
        return fuzzing
    return [
        *lint, *release[:-1],
        ('unit tests, clang build', lambda: unit('clang')),
        ('ASan and UBSan build', build_phase('sanitized')),
        ('unit tests, ASan and UBSan', lambda: unit('sanitized')),
        [release[-1], (f'end-to-end and escape tests as {other}', suites_as_other),
         ('end-to-end tests, ASan and UBSan',
          lambda: suites_as_caller('sanitized', suites=('tests/e2e',), loops='0.1'))],
        *fuzzing,
    ]


def perform(name, function):
    """Run one phase and print its line, its failures and its skips."""
    began = time.monotonic()
    tally = function()
    if not (tally.passed or tally.failed or tally.skipped):
        tally.fail('this phase ran nothing')
    counts = ', '.join(f'{n} {word}' for n, word in
                       ((tally.passed, 'passed'), (tally.failed, 'FAILED'), (tally.skipped, 'skipped')) if n)
    lines = [f'{name:<55} {counts}  ({time.monotonic() - began:.0f} s)']
    lines += ['    ' + text.replace('\n', '\n    ') for text in tally.details]
    lines += [f'    skipped {count} x: {reason}' for reason, count in sorted(tally.reasons.items())]
    print('\n'.join(lines), flush=True)
    return tally


def main():
    parser = argparse.ArgumentParser(description=__doc__.split('\n', 1)[0])
    parser.add_argument('command', choices=('check', 'quick', 'lint', 'fuzz'))
    parser.add_argument('--only', metavar='TEXT', help='only phases whose name contains TEXT')
    parser.add_argument('--fuzz-seconds', type=int, default=5, metavar='N')
    options = parser.parse_args()
    os.chdir(REPO)
    os.makedirs(LOGS, exist_ok=True)
    total = Tally()
    for entry in phases(options):
        group = [phase for phase in (entry if isinstance(entry, list) else [entry])
                 if not options.only or options.only in phase[0]]
        with concurrent.futures.ThreadPoolExecutor(max(1, len(group))) as pool:
            for tally in pool.map(lambda phase: perform(*phase), group):
                total.add(tally)
    if total.failed:
        print('\n'.join('FAILED: ' + text.replace('\n', '\n    ') for text in total.failures))
        print(f'whole logs: {os.path.relpath(LOGS, REPO)}/')
    print(f'{total.passed} passed, {total.failed} failed, {total.skipped} skipped', flush=True)
    return 0 if total.passed and not total.failed else 1


if __name__ == '__main__':
    sys.exit(main())
