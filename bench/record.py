"""B12: the audit record, measured with bench/record.c, and its section of docs/performance.md."""
import glob
import os
import shutil
import statistics
import subprocess
import tempfile

GROUPS = (1, 16, 64, 256, 1024)
MS = 1500               # of one append
APPEND, VERIFY = 100_000, 500_000

HOW = '''Entries a second; milliseconds from the first entry of a group until the whole group is on the disk. One writer on the file system of
`/var/tmp`. "waiting" is how many entries wait for each commit, which is one write and one fdatasync. An entry is a decision
about a connection, about 450 bytes. Checking reads, parses and hashes every written entry, on one core, from
the page cache.
'''


def build(here, place):
    program = os.path.join(place, 'record')
    source = os.path.join(here, '..', 'src')
    subprocess.run(['/usr/bin/gcc', '-O2', '-D_GNU_SOURCE', '-DCLOCHE_VERSION="bench"', '-I', source, '-o', program,
                    os.path.join(here, 'record.c'), *sorted(glob.glob(f'{source}/audit/*.c')),
                    *sorted(glob.glob(f'{source}/base/*.c'))], check=True)
    return program


def ask(program, *words):
    """{name: [values]} of what it prints."""
    done = subprocess.run([program, *words], capture_output=True, text=True, check=True)
    said = {}
    for line in done.stdout.splitlines():
        name, value = line.split()
        said.setdefault(name, []).append(float(value))
    return said


def measure(here, place, rounds, say):
    """{'groups': {waiting: {name: [value of each round]}}, 'lazy': [rates], 'verify': [rates], 'bytes': of an entry}"""
    program = build(here, place)
    facts = {'groups': {n: {} for n in GROUPS}, 'lazy': [], 'verify': [], 'bytes': 0.0}
    for number in range(rounds):
        disk = tempfile.mkdtemp(prefix='ct-bench-', dir='/var/tmp')
        try:
            for group in GROUPS:
                said = ask(program, 'append', f'{disk}/g{group}', str(group), str(MS), 'sync')
                for name, values in said.items():
                    facts['groups'][group].setdefault(name, []).append(values[0])
            facts['lazy'] += ask(program, 'append', f'{disk}/lazy', '256', str(MS), 'nosync')['rate']
            said = ask(program, 'verify', f'{disk}/g{GROUPS[-1]}', '3')
            facts['verify'].append(max(said['rate']))
            facts['bytes'] = said['bytes'][0]
        finally:
            shutil.rmtree(disk)
        say(f'  audit record: round {number + 1}')
    return facts


def spread(values, digits=0):
    return (f'{statistics.median(values):,.{digits}f} ({min(values):,.{digits}f}–{max(values):,.{digits}f})')


def section(facts):
    lines = ['## B12: the audit record\n', HOW, '| waiting | entries/s | p50 | p99 |', '|--:|--:|--:|--:|']
    for group, said in facts['groups'].items():
        lines.append(f"| {group} | {spread(said['rate'])} | {spread(said['p50'], 2)} | {spread(said['p99'], 2)} |")
    lines.append(f"| 256, without waiting for the disk | {spread(facts['lazy'])} | | |")
    best = statistics.median(facts['groups'][GROUPS[-1]]['rate'])
    check = statistics.median(facts['verify'])
    lines += ['', f"Checking: {spread(facts['verify'])} entries/s.", '', 'Budget B12:\n',
              f"* Written to the disk, {GROUPS[-1]} waiting: {best:,.0f} entries/s; the budget of {APPEND:,} is "
              f"{'met' if best >= APPEND else '**missed**'}.",
              f"* Checked: {check:,.0f} entries/s; the budget of {VERIFY:,} is "
              f"{'met' if check >= VERIFY else '**missed**'}.", '']
    return '\n'.join(lines)
