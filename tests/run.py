#!/usr/bin/python3
"""Run what is tested, and count it.

    tests/run.py check              what every change is held to (what `make check` and .ci/run do)
    tests/run.py check-all          the same, and what docs/testing.md says that it leaves out
    tests/run.py quick              after a change: build, style, unit tests but the slow ones, smoke tests of every room
    tests/run.py test WHAT          one unit program, one file or test of a suite, or every test with WHAT in its name
    tests/run.py lint               linters only
    tests/run.py fuzz               fuzz targets only, --fuzz-seconds each
    tests/run.py check --only X     phases whose name contains X

One line per phase; failures are shown below their phase and once more at the end (a reader often has only the end), with the
place of the whole log; skips are counted and their reasons listed. Then where the time went. The last line is always
`N passed, N failed, N skipped`, and the exit status is 0 only when nothing failed and something passed.
"""
import argparse
import collections
import concurrent.futures
import os
import sys
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from check import lint, one, suites                 # noqa: E402
from check.builds import build                      # noqa: E402
from check.fuzz import fuzz                         # noqa: E402
from check.shell import LOGS, REPO                  # noqa: E402
from check.tally import Spent, Tally                # noqa: E402
from check.unit import unit                         # noqa: E402

FIRST = 10          # lines of each table of where time went
SET_HERE = ('CLOCHE_TEST_CACHE', 'CLOCHE_TEST_RULE_SETS', 'CLOCHE_TEST_USER', 'CLOCHE_TEST_WORKERS')   # these leave nothing out


def build_phase(which, **how):
    return lambda: build(which, **how)[1]


class Beside:
    """A phase whose work begins with that of an earlier one, @neighbour, and ends in its own place."""
    PATIENT = ('nice', '-n', '15')      # words before its commands: tests wait a lot and leave it a fifth of the processors

    def __init__(self, neighbour, function):
        self.neighbour, self.function, self.begun = neighbour, function, None

    def begin(self):
        self.begun = concurrent.futures.ThreadPoolExecutor(1).submit(self.function)

    def __call__(self):
        return self.begun.result() if self.begun else self.function()


def quick():
    return [('style', lambda: lint.lint(lint.STYLE)), ('gcc -Werror build', build_phase('release')),
            ('unit tests but the slow ones', lambda: unit('release', slow=False)),
            ('smoke tests of every room', suites.smoke)]


def check(everything, seconds):
    me, other = ('root', 'an ordinary user') if os.geteuid() == 0 else ('this user', 'root')
    if everything:      # random rule sets of each view: more than ten thousand together (escape/test_rules_agree.py)
        os.environ.setdefault('CLOCHE_TEST_RULE_SETS', '1450')
    some = '' if everything else ', a quarter'
    first, second = f'end-to-end and escape tests as {me}', f'end-to-end and escape tests as {other}'
    phases = [
        ('linters', lambda: lint.lint(everything=everything)),
        ('gcc -Werror build', build_phase('release')),
        ('unit tests', lambda: unit('release')),
        (first, lambda: suites.as_caller(role='everything' if everything else 'self')),
        ('clang -Werror build, ASan and UBSan', Beside(first, build_phase('sanitized', before=Beside.PATIENT))),
        (second, lambda: suites.as_other(everything)),
        ('unit tests, ASan and UBSan', Beside(second, lambda: unit('sanitized', loops='1' if everything else '0.2', before=Beside.PATIENT))),
        (f'end-to-end tests, ASan and UBSan{some}',
         lambda: suites.as_caller('sanitized', role='everything' if everything else 'sanitized', suites=('tests/e2e',),
                                  loops='0.1')),
        (f'fuzz targets, {seconds} s each{some}', lambda: fuzz(seconds)),
    ]
    if everything:
        phases += [('clang -Werror release build', build_phase('clang')), ('unit tests, clang build', lambda: unit('clang')),
                   ('gcc build, ASan and UBSan', build_phase('gcc-sanitized')),
                   ('unit tests, gcc, ASan and UBSan', lambda: unit('gcc-sanitized')),
                   ('weakened builds that cloche prove must notice', suites.weakened)]
    return phases


def chosen(options):
    """(name, function) in order, for the command."""
    if options.command in ('check', 'check-all'):
        everything = options.command == 'check-all'
        return check(everything, options.fuzz_seconds or (5 if everything else 1))
    if options.command == 'quick':
        return quick()
    if options.command == 'test':
        return one.phases(options.what)
    if options.command == 'lint':
        return [('linters', lint.lint)]
    seconds = options.fuzz_seconds or 60
    return [(f'fuzz targets, {seconds} s each', lambda: fuzz(seconds))]


def perform(name, function):
    """Run one phase and print its line, its failures and its skips. Returns its tally and what it took."""
    began = time.monotonic()
    tally = function()
    wall = time.monotonic() - began
    if not (tally.passed or tally.failed or tally.skipped):
        tally.fail('this phase ran nothing')
    counts = ', '.join(f'{n} {word}' for n, word in
                       ((tally.passed, 'passed'), (tally.failed, 'FAILED'), (tally.skipped, 'skipped')) if n)
    lines = [f'{name:<50} {counts}  ({wall:.0f} s, processor {tally.cpu:.0f} s)']
    lines += ['    ' + text.replace('\n', '\n    ') for text in tally.details]
    lines += [f'    skipped {count} x: {reason}' for reason, count in sorted(tally.reasons.items())]
    print('\n'.join(lines), flush=True)
    return tally, wall


def by_file(times):
    """Spent of each file of tests in each run; what a file's tests share counts where it ends, in the last of them."""
    wall, cpu, tests = collections.Counter(), collections.Counter(), collections.Counter()
    for spent in times:
        file, _, test = spent.name.partition('::')
        name = file + test[test.rfind(' ('):] if test else file
        wall[name] += spent.wall
        cpu[name] += spent.cpu
        tests[name] += 1
    return [Spent(wall[name], cpu[name], f'{name}: {tests[name]}') for name in wall]


def table(title, name, rows):
    """All @rows (Spent, sorted) into the file @name of the logs, the first of them shown."""
    with open(os.path.join(LOGS, name), 'w', encoding='utf-8') as f:
        f.writelines(f'{spent.wall:.2f}\t{spent.cpu:.2f}\t{spent.name}\n' for spent in rows)
    if len(rows) > 1:
        print(f'{title} (s by the clock, s of processor; all: {os.path.relpath(LOGS, REPO)}/{name}):')
        for spent in rows[:FIRST]:
            print(f'{spent.wall:8.1f} {spent.cpu:7.1f}  {spent.name}')


def where_time_went(total, took):
    """So that it stays visible: the slowest tests, the dearest files, and each phase by the clock and in processor time."""
    table(f'the slowest {FIRST} tests', 'times.tsv', sorted(total.times, reverse=True))
    table(f'the {FIRST} files that took most of the processors, and how many tests each has', 'files.tsv',
          sorted(by_file(total.times), key=lambda spent: -spent.cpu))
    print('the phases:')
    for name, wall, cpu in [*took, ('all', sum(t[1] for t in took), sum(t[2] for t in took))]:
        print(f'{wall:8.1f} {cpu:7.1f}  {name}')


def main():
    parser = argparse.ArgumentParser(description=__doc__.split('\n', 1)[0])
    parser.add_argument('command', choices=('check', 'check-all', 'quick', 'test', 'lint', 'fuzz'))
    parser.add_argument('what', nargs='?', default='', help='for test: a program, a file, a test, or a part of a name')
    parser.add_argument('--only', metavar='TEXT', help='only phases whose name contains TEXT')
    parser.add_argument('--fuzz-seconds', type=int, metavar='N')
    options = parser.parse_args()
    os.chdir(REPO)
    os.makedirs(LOGS, exist_ok=True)
    total, took = Tally(), []
    try:
        phases = [(name, function) for name, function in chosen(options) if not options.only or options.only in name]
        for name, function in phases:
            for other in (f for _, f in phases if isinstance(f, Beside) and f.neighbour == name):
                other.begin()
            tally, wall = perform(name, function)
            total.add(tally)
            took.append((name, wall, tally.cpu))
    finally:
        suites.TREE.remove()
    if options.command.startswith('check'):
        where_time_went(total, took)
    total.notes += [f'what {name}={value} leaves out or adds' for name, value in sorted(os.environ.items())
                    if name.startswith('CLOCHE_TEST_') and name not in SET_HERE]
    for note in total.notes:
        print(f'left out: {note}')
    if total.failed:
        print('\n'.join('FAILED: ' + text.replace('\n', '\n    ') for text in total.failures))
        print(f'whole logs: {os.path.relpath(LOGS, REPO)}/')
    print(f'{total.passed} passed, {total.failed} failed, {total.skipped} skipped', flush=True)
    return 0 if total.passed and not total.failed else 1


if __name__ == '__main__':
    sys.exit(main())
