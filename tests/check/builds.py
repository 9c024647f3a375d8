"""The builds that are tested, each compiled once for all that wants it."""
import json
import os
import re

from check.shell import MESON, NINJA, REPO, clean_environment, run, tail
from check.tally import Tally

# At a fixed address: a sanitizer's tables have some 270,000 addresses in cloche alone, all of which each start had to write, a quarter of its time.
FIXED = ['-Db_pie=false', '-Db_staticpic=false', '-Dc_link_args=-no-pie']
# -O1 compiles a third faster than -O2, and no test is about the speed of these builds; -O0, which takes half of that, is for what
# unit tests and fuzz targets do not repeat (`plain` in meson.build). Lines are all of the debug information that a report needs: a fifth of the time.
PATIENCE = 5400         # s for a build: one that goes on beside the tests has what they leave of a busy machine
SANITIZE = [*FIXED, '-Ddebug=false', '-Doptimization=1', '-Db_sanitize=address,undefined', '-Dc_args=-g1 -fno-sanitize-recover=all -fno-omit-frame-pointer']
# name -> (folder, compiler, meson options). `release` is also what `make` builds; `sanitized` is what unit, end-to-end and
# fuzz runs share, and the tree's compilation by clang with -Werror.
BUILDS = {
    'release': ('build', 'gcc', ['--buildtype=release', '-Doptimization=2']),
    'sanitized': ('build-check-san', 'clang', [*SANITIZE, '-Dfuzz=true', '-Db_lundef=false']),
    'gcc-sanitized': ('build-check-asan', 'gcc', SANITIZE),
    'clang': ('build-check-clang', 'clang', ['--buildtype=release', '-Doptimization=2']),
}


def build(which, targets=(), before=()):
    """Configure when needed and build, by words that are preceded by @before; a failure is one failed test. Returns
    (directory, Tally)."""
    folder, compiler, options = BUILDS[which]
    folder = os.path.join(REPO, folder)
    env = dict(clean_environment(), CC=compiler)
    tally = Tally(passed=1)
    setup = []
    if not os.path.exists(os.path.join(folder, 'build.ninja')):
        setup = [folder]
    elif targets:       # `make test`: as the person at the keyboard wants it
        pass
    elif other := differs(which):
        if which == 'release':      # whose folder is a person's
            return folder, Tally().fail(f'the folder {os.path.relpath(folder, REPO)} is configured otherwise ({other}): '
                                        'remove it, or `make clean`')
        setup = ['--wipe', folder]
    if setup:
        done = run(f'configure-{which}', [*before, MESON, 'setup', *setup, *options], env)
        tally.took(done)
        if done.code != 0:
            return folder, Tally().took(done).fail(tail(done.out))
    done = run(f'build-{which}', [*before, NINJA, '-C', folder, *targets], env, timeout=PATIENCE)
    tally.took(done)
    if done.code != 0:
        errors = [line for line in done.out.split('\n') if re.search(r'error|warning|FAILED|undefined', line)]
        return folder, Tally().took(done).fail('\n'.join(errors[:25]) or tail(done.out))
    return folder, tally


def differs(which):
    """What of a build folder that is there is not as BUILDS says, or '': one from before a change, or made by hand."""
    _, compiler, words = BUILDS[which]
    wanted = dict(word.lstrip('-').removeprefix('D').split('=', 1) for word in words)
    wanted['werror'] = 'true'
    wanted['tests'] = 'true'
    known = {option['name']: option['value'] for option in introspect(which, 'buildoptions')}
    at = {name: '' if name not in known else ' '.join(known[name]) if isinstance(known[name], list) else str(known[name])
          for name in wanted}
    other = [f'{name} is {at[name]}' for name, value in wanted.items() if at[name].lower() != value.lower()]
    with open(os.path.join(REPO, BUILDS[which][0], 'build.ninja'), encoding='utf-8') as f:
        used = re.search(r'^rule c_COMPILER\n command = (?:\S*ccache )?(\S+)', f.read(), re.M)
    used = os.path.basename(used.group(1)) if used else 'none'
    if not re.match(rf'({compiler}|cc)\b' if compiler == 'gcc' else compiler, used):
        other.append(f'the compiler is {used}')
    return ', '.join(other)


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
