"""B18: how long a change waits for its tests, measured in a clone of its own, and its section of docs/performance.md."""
import os
import re
import shutil
import statistics
import subprocess
import tempfile
import time

QUICK_S, CHECK_S = 120, 900
CHANGED = ('src/warden/who.c', 'src/base/str.c')        # one program has the first, every program the second

HOW = '''Seconds by the clock on an idle machine that has the packages (`tools/deps check`), in a fresh clone: `make check` from nothing,
including its builds; then `make quick` after a line was added to one file, the median of %d. "Processor" is the time of all
processors together. `bench/run --only loop --write docs/performance.md` measures this alone.
'''


def make(place, target):
    """(seconds, what it printed)"""
    began = time.monotonic()
    done = subprocess.run(['make', target], cwd=place, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        failed = re.findall(r'^FAILED: .*', done.stdout, re.M)
        raise SystemExit('\n'.join([f'bench: make {target} failed; its tree and logs are kept: {place}', *failed,
                                    done.stdout[-3000:], done.stderr[-1000:]]))
    return time.monotonic() - began, done.stdout


def measured(tree, rounds, say):
    wall, out = make(tree, 'check')
    say(f'  make check: {wall:.0f} s')
    table = out.split('the phases:\n')[1].split('\n')
    phases = [m.groups() for line in table if (m := re.match(r' *([\d.]+) +([\d.]+) +(.*)', line))]
    facts = {'check': wall, 'phases': phases, 'counted': out.rstrip().split('\n')[-1], 'quick': {}, 'rounds': rounds}
    for name in CHANGED:
        facts['quick'][name] = []
        for number in range(rounds):
            with open(os.path.join(tree, name), 'a', encoding='utf-8') as f:
                f.write(f'\n/* {number} */\n')
            facts['quick'][name].append(make(tree, 'quick')[0])
        say(f'  make quick after {name}: {statistics.median(facts["quick"][name]):.0f} s')
    return facts


def measure(here, rounds, say):
    place = tempfile.mkdtemp(prefix='ct-bench-', dir='/var/tmp')
    tree = os.path.join(place, 'cloche')
    os.chmod(place, 0o755)
    subprocess.run(['git', 'clone', '--quiet', os.path.join(here, '..'), tree], check=True)
    facts = measured(tree, rounds, say)
    shutil.rmtree(place)        # a failure leaves it, to be looked at
    return facts


def section(facts):
    lines = ['## B18: the loop of a change\n', HOW % facts['rounds'], '| | seconds | processor |', '|---|--:|--:|',
             f"| `make check` ({facts['counted']}) | {facts['check']:.0f} | |"]
    lines += [f'| … {name} | {float(wall):.0f} | {float(cpu):.0f} |' for wall, cpu, name in facts['phases']]
    worst = 0
    for name, values in facts['quick'].items():
        worst = max(worst, statistics.median(values))
        lines.append(f'| `make quick` after `{name}` | {statistics.median(values):.0f} ({min(values):.0f}–{max(values):.0f}) | |')
    met = 'met' if facts['check'] <= CHECK_S and worst <= QUICK_S else 'missed'
    lines.append(f'\nBudget B18, `make quick` at most {QUICK_S} s, `make check` at most {CHECK_S} s: {met}.\n')
    return '\n'.join(lines)
