"""`make test T=...`: what the words of a person mean, and only what it needs is built."""
import os
import re

from check import suites
from check.builds import build, introspect, programs
from check.shell import CORES, REPO
from check.unit import unit_program

HELP = '''make test T=WHAT: WHAT is one of
  test_str, tests/unit/test_str.c               a unit program
  tests/e2e/test_cow.py, test_cow.py            a file of the black-box suites
  tests/e2e/test_cow.py::test_apply             a test of it
  rebinding                                     every test with that in its name, as pytest's -k'''


def unit_name(what):
    """The unit program that is meant, or None."""
    name = os.path.basename(what).removesuffix('.c')
    return name if os.path.exists(os.path.join(REPO, 'tests/unit', f'{name}.c')) and not what.endswith('.py') else None


def run_unit(name):
    _, tally = build('release', [f'tests/unit/{name}'])
    if tally.failed:
        return tally
    test = next(test for test in introspect('release', 'tests') if test['name'] == name)
    return unit_program('release', test)


def has(place, test):
    """The file at @place has that function or class."""
    name = re.split(r'::|\[', test)[0]
    with open(os.path.join(REPO, place), encoding='utf-8') as f:
        return re.search(rf'^(def|class) {re.escape(name)}\b', f.read(), re.M) is not None


def suite_words(what):
    """How the suites are run for it: one test is sooner done than several workers are there, a file than ten."""
    path, _, test = what.partition('::')
    if not path.endswith('.py'):
        return {'words': ['-k', what], 'workers': None}
    places = [path, *(os.path.join(suite, path) for suite in suites.SUITES)]
    found = [place for place in places if os.path.exists(os.path.join(REPO, place))]
    if not found:
        raise SystemExit(f'make test: there is no "{path}"\n{HELP}')
    if test:        # files of two suites may have the same name
        found = [place for place in found if has(place, test)] or found
    return {'suites': [f'{place}::{test}' if test else place for place in found],
            'workers': None if test else 2 * CORES}


def phases(what):
    if not what:
        raise SystemExit(HELP)
    if name := unit_name(what):
        return [(f'unit program {name}', lambda: run_unit(name))]
    how = suite_words(what)
    return [('build', lambda: build('release', needed())[1]),
            (f'tests of {what}', lambda: suites.as_caller(role='everything', **how))]


def needed():
    """The programs that the suites run; before the first build nobody knows them: then everything is built."""
    if not os.path.exists(os.path.join(REPO, 'build/build.ninja')):
        _, tally = build('release', ['src/cli/cloche'])
        if tally.failed:
            return []
    return programs('release')
