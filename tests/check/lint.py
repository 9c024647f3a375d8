"""The linters: style, C, shell, Python, manual pages, links."""
import concurrent.futures
import os
import subprocess
import zlib

from check.shell import CORES, PYTHON, REPO, run, tail
from check.suites import QUARTERS, quarter
from check.tally import Tally


def git(*words):
    return subprocess.run(['git', '-c', f'safe.directory={REPO}', *words], cwd=REPO, capture_output=True, text=True, check=False)


def tracked(*patterns):
    """Files of the tree that match, known to git or new."""
    done = git('ls-files', '-co', '--exclude-standard', *patterns)
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
    done = run(f'lint-{name}', argv)
    tally = Tally(passed=1) if done.code == 0 else Tally().fail(f'{name}: exit {done.code}\n{tail(done.out, 40)}')
    return tally.took(done)


STYLE = {'checksrc': [PYTHON, 'tools/checksrc.py']}


def in_turn(sources):
    """A quarter of @sources, another one after each commit, and what the last commit changed or nobody has committed yet."""
    changed = git('diff', '--name-only', 'HEAD~1')
    if changed.returncode != 0:         # a clone without history
        return sources
    its = quarter()
    new = {*changed.stdout.split('\n'), *git('ls-files', '-o', '--exclude-standard').stdout.split('\n')}
    return [name for name in sources if name in new or zlib.crc32(name.encode()) % QUARTERS == its]


def commands(everything):
    shells = sorted({*tracked('*.sh', 'completions/*.bash'), *scripts('/bin/bash', '/bin/sh', 'env bash', 'env sh')})
    pythons = sorted({*tracked('*.py'), *scripts('python3')})
    manuals = tracked('docs/man/*.[1-9]')
    sources = tracked('src/*.c', 'fuzz/*.c')
    if not (shells and pythons and manuals and sources):
        return {}
    return {
        'cppcheck': ['tools/lint-cppcheck', str(CORES), *(sources if everything else in_turn(sources))],        # the longest first
        **STYLE,
        'checksrc-itself': [PYTHON, '-B', '-m', 'pytest', '-q', '-c', '/dev/null', '--rootdir=tools',
                            '-p', 'no:cacheprovider', 'tools/test_checksrc.py'],
        'shellcheck': ['shellcheck', '-x', *shells],
        'pyflakes': ['pyflakes3', *pythons],
        'python-syntax': [PYTHON, '-B', '-c', 'import sys\nfor p in sys.argv[1:]: compile(open(p).read(), p, "exec")',
                          *pythons],
        'mandoc': ['mandoc', '-T', 'lint', '-W', 'warning,stop', *manuals],
        'links': [PYTHON, 'tools/lint-links.py'],
        'tests': [PYTHON, '-B', 'tools/lint-tests.py'],
        'check-all': [PYTHON, '-B', 'tools/lint-check-all.py'],
    }


def lint(those=None, everything=True):
    """@everything: not only a part of what takes turns."""
    jobs = those or commands(everything)
    if not jobs:
        return Tally().fail('the linters found no files to read')
    total = Tally()
    with concurrent.futures.ThreadPoolExecutor(CORES) as pool:
        for tally in pool.map(lambda item: lint_one(*item), jobs.items()):
            total.add(tally)
    return total
