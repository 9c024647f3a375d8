"""The unit programs: cmocka, counted case by case; the longest begin first, several run at once."""
import concurrent.futures

from check.builds import built, introspect
from check.shell import CORES, REPO, clean_environment, run, tail
from check.tally import Spent, Tally, tap

AT_ONCE = 2 * CORES     # some of them wait


def tests(which):
    """meson's rows of the unit programs, longest first (tests/unit/meson.build gives those a priority)."""
    return sorted(introspect(which, 'tests'), key=lambda test: -test['priority'])


def unit_program(which, test, loops='1', before=()):
    """Once more when it fails: its neighbours may have taken the time that it needs."""
    first = unit_once(which, test, '', loops, before)
    if not first.failed:
        return first
    second = unit_once(which, test, '-second-try', loops, before)
    second.cpu += first.cpu
    if second.failed:
        return first
    second.details = [f'only the second time: {text}' for text in first.details]
    return second


def unit_once(which, test, suffix, loops, before=()):
    env = dict(clean_environment(), CMOCKA_MESSAGE_OUTPUT='TAP', **test.get('env', {}))
    env.setdefault('CLOCHE_TEST_LOOPS', loops)
    done = run(f"unit-{which}-{test['name']}{suffix}", [*before, *test['cmd']], env, test.get('workdir') or REPO,
               timeout=max(test.get('timeout') or 30, 30) * (1 if which in ('release', 'clang') else 4))
    tally = counted(test['name'], done).took(done)
    tally.times.append(Spent(done.wall, done.cpu, f"{test['name']} ({which})"))
    return tally


def counted(name, done):
    tally = tap(done.out)
    if tally is None:
        if done.code == 77 and tail(done.out, 1):
            return Tally().skip(tail(done.out, 1))
        return Tally().fail(f'{name}: exit {done.code}, and it counted no case\n{tail(done.out)}')
    if done.code != 0 and not tally.failed:
        tally.fail(f'exit {done.code} after its last case')
    if tally.failed:
        tally.details = [f'{name}: ' + ', '.join(tally.details), tail(done.out)]
    return tally


def unit(which, slow=True, loops='1', before=()):
    """All of them, or all but those that meson.build calls slow. @loops: how many of the usual rounds those do that race or draw; @before: words
    before each command."""
    if built(which) is None:
        return Tally().fail(f'the {which} build is missing')
    every = tests(which)
    those = [test for test in every if slow or 'slow' not in ' '.join(test['suite'])]
    total = Tally()
    with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        for tally in pool.map(lambda test: unit_program(which, test, loops, before), those):
            total.add(tally)
    if len(those) < len(every):
        left = ', '.join(sorted(test['name'] for test in every if test not in those))
        total.notes.append(f'{len(every) - len(those)} slow unit programs: {left}')
    return total
