"""docs/performance.md from what bench/run measured."""
import datetime
import os
import platform
import re
import statistics
import subprocess

import boxes
import daemon
import inside
import loop
import peers
import record
import report_egress

B1_RATIO, B1_MS, B8_TAX = 0.5, 2.0, 3.0
B1_BWRAP_MS = 3.75      # what bubblewrap took where B1_MS was set
B8_GUARD = {'git-clone': 25.0, 'sqlite': 40.0, 'names': 60.0}      # B8g: where the name guard has work, in percent

OPENING = '''# Performance

`bench/run` wrote this page; do not edit it by hand. To repeat it: `make bench` (it installs the peers that Debian and npm have,
and takes about 40 minutes on two cores; B9 to B11 need root). Machines differ and this one is virtual: read the ratios, not
the milliseconds.
'''

HOW = '''
## How it is measured

* A start is a whole process, from before `posix_spawn` until nothing of it is left, always with its teardown: make the
  sandbox, run `/bin/true`, remove everything. Some peers end before process 1 of their sandbox has ended: the timer is a
  subreaper, inherits it and waits for it too. A run that does not exit 0 ends the measurement.
* Three shapes: **spaced** (one every 100 ms, the machine at rest in between), **closed** (one after the other),
  **burst** (100 at once on all cores; each is timed from the beginning of the burst).
* Peers are interleaved round by round. A ratio is the median of the rounds' own ratios, so noise affects both.
* bubblewrap, crun and runc get the same root as a sandbox of cloche: the same read-only folders, the same
  `/etc`, the same hidden parts of `/proc`, a small `/dev`, writable `/tmp`, home and `/workspace`, all namespaces; each
  in its cheapest way (`/etc` is one folder made beforehand; cloche makes it again each time). **small root**
  is bubblewrap without most of `/etc`, `/opt` and the hidden parts. Here they install **no** system call filter, Landlock
  rules or cgroup limits; cloche does. firejail and srt have no such setting and see the host's tree.
* Work inside is timed inside, so a start does not count. "bare" works on a tmpfs, as "cloche" and "bubblewrap" do in
  their own `/tmp`. "bound folder" is one writable folder of the host's disk at `/workspace`, where cloche's name guard
  protects absent names; it is compared with "bare, folder" in the same place.

## What the walls cost, and why

* **A system call that does nothing** costs some tens of nanoseconds more with any filter, whatever the filter says
  (the kernel answers from its bitmap). Programs that do work do not notice. So it is compared with bubblewrap that has
  loaded the same filter: the bench reads it out of a running sandbox (ptrace(2), `PTRACE_SECCOMP_GET_FILTER`, as root).
* **Opening, making and renaming files** passes through Landlock, which walks up to the nearest rule: about a microsecond each.
* **Making and renaming names in a bound folder** passes through the name guard: the call waits for process 1 of the sandbox,
  which checks the name and makes the call itself. That costs two process switches, and on a virtual machine with an
  idle second processor up to 0.1 ms. The guard does not see reading and writing of files, names in `/tmp` and the home
  of a sandbox without a bound folder, or a copy-on-write workspace.
* **A start** spends its time in the kernel: of the processor time of all its processes 7 % is in programs of cloche. The
  largest single part is the network namespace (8 %, in parallel with the root file system on a second processor). By the clock, of
  7.2 ms as root (the fastest quarter of 200 at real-time priority): making the process, policy and plan 1.5, the root
  and the network 1.9, descriptors, rights, Landlock and filter 0.5, the guest and `/bin/true` 1.9 (which alone takes
  1.1), the namespaces' end 0.6, usage, record and exit 0.8. We tried to detach the host's tree on another thread: no
  difference.
* **A start as root** makes a memory cgroup, which an ordinary user without a delegated cgroup does not get: about half
  a millisecond of the difference between the two tables.
'''


def read(path):
    try:
        with open(path, encoding='utf-8') as f:
            return f.read()
    except OSError:
        return ''


def machine():
    cpu = re.search(r'model name\s*:\s*(.*)', read('/proc/cpuinfo'))
    memory = re.search(r'MemTotal:\s*(\d+)', read('/proc/meminfo'))
    name = re.search(r'PRETTY_NAME="([^"]*)"', read('/etc/os-release'))
    virtual = ''
    if os.path.exists('/usr/bin/systemd-detect-virt'):
        done = subprocess.run(['systemd-detect-virt', '--vm'], capture_output=True, text=True, check=False)
        virtual = done.stdout.strip()
    if not virtual and re.search(r'^flags.*\bhypervisor\b', read('/proc/cpuinfo'), flags=re.M):
        virtual = 'yes'
    if os.path.exists('/sys/fs/cgroup/cgroup.controllers'):
        cgroup = 'v2'
    else:
        cgroup = 'hybrid: controllers on v1' if os.path.isdir('/sys/fs/cgroup/unified') else 'v1'
    return [
        ('processor', f'{cpu.group(1) if cpu else platform.machine()}, {os.cpu_count()} cores'),
        ('memory', f'{int(memory.group(1)) / 1048576:.0f} GiB' if memory else 'unknown'),
        ('virtual machine', virtual or 'not detected'),
        ('kernel', 'Linux ' + re.match(r'[\d.]*\d', platform.release()).group(0)),
        ('system', name.group(1) if name else 'unknown'),
        ('cgroups', cgroup),
    ]


def number(value):
    return f'{value:.2f}' if value < 10 else f'{value:.1f}' if value < 100 else f'{value:.0f}'


def ratio(row, base, shape):
    """Median of the rounds' ratios; of the whole when the rounds do not pair up."""
    if shape not in row or shape not in base:
        return None
    ours, theirs = (row[shape]['totals'], base[shape]['totals']) if shape == 'burst' else \
        (row[shape]['rounds'], base[shape]['rounds'])
    pairs = [a / b for a, b in zip(ours, theirs)]
    return statistics.median(pairs) if pairs else None


def start_table(results, missing):
    base = results.get('bubblewrap', {})
    lines = ['| | spaced p50 | p99 | × bwrap | closed p50 | p99 | × bwrap '
             '| burst of 100 | each p50 | p99 | × bwrap |',
             '|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|']
    for name, row in results.items():
        cells = [name + (f' ({row["peer"].note})' if row['peer'].note else '')]
        for shape in ('spaced', 'closed', 'burst'):
            if shape not in row:
                cells += [f'fails: {row["errors"].get(shape, "")}'] + [''] * (3 if shape == 'burst' else 2)
                continue
            data = row[shape]
            if shape == 'burst':
                cells.append(number(data['total']))
            times = ratio(row, base, shape)
            cells += [number(data['p50']), number(data['p99']), f'{times:.2f}' if times else '–']
        lines.append('| ' + ' | '.join(cells) + ' |')
    lines += [f'| {name} | not installed | | | | | | | | | |' for name in missing]
    return '\n'.join(lines)


def verdict(results, who):
    small = results.get('bubblewrap, small root')
    if 'bubblewrap' not in results or 'spaced' not in results.get('cloche', {}):
        return f'* As {who}: no comparison (cloche or bubblewrap did not run).'
    lines = []
    for shape in ('spaced', 'closed', 'burst'):
        times = ratio(results['cloche'], results['bubblewrap'], shape)
        if times is None:
            continue
        judged = 'met' if times <= B1_RATIO else f'**missed** (by {100 * (times / B1_RATIO - 1):.0f} %)'
        text = f'* As {who}, {shape}: {times:.2f} × bubblewrap; the budget of {B1_RATIO} is {judged}.'
        if shape != 'burst':
            p50 = results['cloche'][shape]['p50']
            judged = 'met' if p50 <= B1_MS else '**missed**'
            text += f' p50 {number(p50)} ms; the budget of {B1_MS:.0f} ms is {judged}.'
            slower = (small or results['bubblewrap'])[shape]['p50'] / B1_BWRAP_MS
            judged = 'met' if p50 <= B1_MS * slower else 'missed'
            text += f' (Bubblewrap took {B1_BWRAP_MS} ms where that was set; in proportion it is ' \
                    f'{number(B1_MS * slower)} ms here: {judged}.)'
        beside = small and ratio(results['cloche'], small, shape)
        if beside:
            text += f' ({beside:.2f} × bubblewrap with the small root.)'
        lines.append(text)
    return '\n'.join(lines)


def against(row, case):
    """The case that @case is compared with."""
    return 'bare, folder' if 'bound' in case else 'bare'


def taxed(row, case, base):
    """Percent by which @case is slower than @base: the median of the rounds' own ratios."""
    return 100 * (statistics.median(a / b for a, b in zip(row[case], row[base])) - 1)


def steady_verdict(workload, row, case):
    """One line about a row of cloche. An empty call is compared with one that passes the same filter, as any filter costs."""
    base, budget = against(row, case), B8_GUARD.get(workload, B8_TAX) if 'bound' in case else B8_TAX
    if workload == 'getppid' and peers.EQUAL in row:
        base = peers.EQUAL
    tax = taxed(row, case, base)
    judged = 'met' if tax <= budget else '**missed**'
    return f'* {inside.WORKLOADS[workload][1]}, {case}: {tax:+.1f} % of "{base}"; the budget of {budget:.0f} % is {judged}.'


def steady_table(results):
    cases = list(dict.fromkeys(case for row in results.values() for case in row))
    lines = ['| work | ' + ' | '.join(cases) + ' |', '|---|' + '--:|' * len(cases)]
    verdicts = []
    for workload, row in results.items():
        cells = [inside.WORKLOADS[workload][1]]
        for case in cases:
            if case not in row:
                cells.append('–')
                continue
            cell = f'{statistics.median(row[case]) * 1000:.0f} ms'
            cells.append(cell if case.startswith('bare') else f'{cell} ({taxed(row, case, against(row, case)):+.1f} %)')
            if case.startswith('cloche'):
                verdicts.append(steady_verdict(workload, row, case))
        lines.append('| ' + ' | '.join(cells) + ' |')
    return '\n'.join(lines) + '\n\nBudgets B8 and, for names in a bound folder, B8g:\n\n' + '\n'.join(verdicts)


def page(facts):
    date = datetime.datetime.now(datetime.timezone.utc).date().isoformat()
    parts = [OPENING]
    if facts['quick']:
        parts.append('**Made with `--quick` (two rounds): not to be quoted.**\n')
    rows = [*machine(), ('date', date), ('command', f"`{facts['command']}`"),
            ('load when it began', f"{facts['load']:.1f} (on a busy machine only the ratios mean something)")]
    lines = [f'| {name} | {value} |' for name, value in rows]
    parts.append('\n'.join(['| machine | |', '|---|---|', *lines]) + '\n')
    made = f"`{facts['command']}`, {date}, load when it began {facts['load']:.1f}"
    if 'start' in facts:
        who = 'root' if facts['root'] else 'an ordinary user'
        parts.append(f'## B1: start, run `/bin/true`, tear down\n\n{made}.\n\nMilliseconds. As {who}:\n')
        parts.append(start_table(facts['start'], facts.get('missing', [])) + '\n')
        if 'ordinary' in facts:
            parts.append('As an ordinary user:\n\n' + start_table(facts['ordinary'], []) + '\n')
        parts.append(f'Budget B1, at most {B1_RATIO} × bubblewrap and at most {B1_MS:.0f} ms (p50):\n\n'
                     + verdict(facts['start'], who)
                     + ('\n' + verdict(facts['ordinary'], 'an ordinary user') if 'ordinary' in facts else '') + '\n')
        versions = dict.fromkeys(row['peer'].version for row in facts['start'].values())
        parts.append('Versions: ' + '; '.join(v for v in versions if v != 'no isolation') + '.\n')
    if 'steady' in facts:
        parts.append(f'## B8: what work inside costs\n\n{made}. Median of ' + str(facts['rounds'])
                     + ' interleaved rounds; in brackets, against the same work bare.\n')
        parts.append(steady_table(facts['steady']) + '\n')
    if 'egress' in facts:
        parts.append(report_egress.section(facts['egress'], made))
    if 'audit' in facts:
        parts.append(record.section(facts['audit']))
    if 'daemon' in facts:
        parts.append(daemon.section(facts['daemon']))
    if 'boxes' in facts:
        parts.append(boxes.section(facts['boxes'], made))
    if 'loop' in facts:
        parts.append(loop.section(facts['loop']))
    parts.append(HOW.lstrip('\n'))
    parts.append(report_egress.HOW.lstrip('\n'))
    return '\n'.join(parts)


def chunks(text):
    """[opening, "## ..." section, ...]"""
    first, *rest = text.split('\n## ')
    return [first, *('## ' + part for part in rest)]


def put_into(page_text, part_text):
    """The sections of @part_text in place of those of the same title in @page_text; new ones before how it is
    measured. The opening stays: it tells about the whole page."""
    def title(chunk):
        return chunk.split('\n', 1)[0]
    opening, *old = [chunk.rstrip('\n') for chunk in chunks(page_text)]
    new = {title(chunk): chunk.rstrip('\n') for chunk in chunks(part_text)[1:]}
    out = [new.pop(title(chunk), chunk) for chunk in old]
    at = next((i for i, chunk in enumerate(out) if title(chunk) == '## How it is measured'), len(out))
    ahead = [chunk for name, chunk in new.items() if name.startswith('## B')]
    after = [chunk for name, chunk in new.items() if not name.startswith('## B')]
    return '\n\n'.join([opening, *out[:at], *ahead, *out[at:], *after]) + '\n'
