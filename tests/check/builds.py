"""The builds that are tested, each compiled once for all that wants it."""
import json
import os
import re

from check.shell import MESON, NINJA, REPO, clean_environment, run, tail
from check.tally import Tally

# -O1 compiles a third faster than -O2, and no test is about the speed of these builds.
SANITIZE = ['--buildtype=debugoptimized', '-Doptimization=1', '-Db_sanitize=address,undefined',
            '-Dc_args=-fno-sanitize-recover=all -fno-omit-frame-pointer']
# name -> (folder, compiler, meson options). `release` is also what `make` builds; `sanitized` is what unit, end-to-end and
# fuzz runs share, and the tree's compilation by clang with -Werror.
BUILDS = {
    'release': ('build', 'gcc', ['--buildtype=release', '-Doptimization=2']),
    'sanitized': ('build-check-san', 'clang', [*SANITIZE, '-Dfuzz=true', '-Db_lundef=false']),
    'gcc-sanitized': ('build-check-asan', 'gcc', SANITIZE),
    'clang': ('build-check-clang', 'clang', ['--buildtype=release', '-Doptimization=2']),
}


def build(which, targets=()):
    """Configure when needed and build; a failure is one failed test. Returns (directory, Tally)."""
    folder, compiler, options = BUILDS[which]
    folder = os.path.join(REPO, folder)
    env = dict(clean_environment(), CC=compiler)
    tally = Tally(passed=1)
    if not os.path.exists(os.path.join(folder, 'build.ninja')):
        done = run(f'configure-{which}', [MESON, 'setup', folder, *options], env)
        tally.took(done)
        if done.code != 0:
            return folder, Tally().took(done).fail(tail(done.out))
    done = run(f'build-{which}', [NINJA, '-C', folder, *targets], env)
    tally.took(done)
    if done.code != 0:
        errors = [line for line in done.out.split('\n') if re.search(r'error|warning|FAILED|undefined', line)]
        return folder, Tally().took(done).fail('\n'.join(errors[:25]) or tail(done.out))
    return folder, tally


def built(which):
    folder = os.path.join(REPO, BUILDS[which][0])
    return folder if os.path.exists(os.path.join(folder, 'src/cli/cloche')) else None


def introspect(which, what):
    """What meson knows of a build: 'tests' or 'targets'."""
    done = run(f'introspect-{which}-{what}', [MESON, 'introspect', f'--{what}', os.path.join(REPO, BUILDS[which][0])])
    if done.code != 0:
        raise SystemExit(f'meson introspect: {tail(done.out)}')
    return json.loads(done.out)


def programs(which):
    """Ninja's names of all programs but the unit tests and fuzz targets: what the black-box suites run."""
    folder = os.path.join(REPO, BUILDS[which][0])
    return [os.path.relpath(t['filename'][0], folder) for t in introspect(which, 'targets')
            if t['type'] == 'executable' and '/tests/unit/' not in t['filename'][0] and '/fuzz/' not in t['filename'][0]]
