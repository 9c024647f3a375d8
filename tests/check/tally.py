"""What a phase found: counts, reasons, failures, and where its time went."""
import collections
import re
import xml.etree.ElementTree as ElementTree

from check.shell import tail

# An attack that got through once is a hole: its test has no second try, but for one that came to no verdict (a peer that
# could not be reached, an answer that did not come).
JUDGED = r'assert|AssertionError|Failed|[\w.]*Hung'

NO_REASON = ('', 'Skipped', 'unconditional skip')      # of pytest.skip() and @pytest.mark.skip

Spent = collections.namedtuple('Spent', 'wall cpu name')


class Tally:
    """What one phase found: counts, the reasons of skips, and text worth showing."""

    def __init__(self, passed=0, failed=0, skipped=0):
        self.passed, self.failed, self.skipped = passed, failed, skipped
        self.reasons = collections.Counter()
        self.details = []
        self.failures = []      # those of the details that were failures to the last
        self.names = []         # of what failed and may be tried again, as pytest is asked for it
        self.times = []         # Spent of each test that is known
        self.cpu = 0.0          # seconds of processor time of all that was started
        self.left_out = 0       # tests that pytest found, and this run has not
        self.notes = []         # lines for the end: what a run left out

    def add(self, other):
        self.passed += other.passed
        self.failed += other.failed
        self.skipped += other.skipped
        self.cpu += other.cpu
        self.reasons.update(other.reasons)
        for mine, more in ((self.details, other.details), (self.failures, other.failures), (self.times, other.times),
                           (self.notes, other.notes)):
            mine += more

    def skip(self, reason, n=1):
        self.skipped += n
        self.reasons[reason] += n
        return self

    def fail(self, text, n=1):
        self.failed += n
        self.details.append(text)
        self.failures.append(text)
        return self

    def took(self, done):
        """@done is how a command ended (shell.run)."""
        self.cpu += done.cpu
        return self


def tap(output):
    """Count cmocka's TAP lines. Returns None when there are none."""
    tally, seen, planned = Tally(), 0, 0
    for line in output.split('\n'):
        if plan := re.match(r'1\.\.(\d+)$', line):
            planned += int(plan.group(1))
        match = re.match(r'(not )?ok \d+\s*(?:-\s*)?(.*)', line)
        if not match:
            continue
        seen += 1
        if '# SKIP' in line.upper():
            name = match.group(2).replace('# SKIP', '').strip()
            tally.skip(f'unit test {name} skips itself (its source says why)')
        elif match.group(1):
            tally.fail(match.group(2))
        else:
            tally.passed += 1
    if planned and seen != planned:
        tally.fail(f'{seen} of {planned} cases were heard of')
    return tally if planned else None


def name_of(case, told):
    """As pytest is asked for it. A test that fails twice, in its body and behind it, says it of the second alone."""
    if 'test' in told:
        return told['test']
    words = case.get('classname').split('.')
    n = next((i for i, word in enumerate(words) if word.startswith('test_')), len(words) - 1) + 1
    return '::'.join(['/'.join(words[:n]) + '.py', *words[n:], case.get('name')])


def junit(path, out, code):
    """Count a junit file; a run that wrote none, or ended otherwise than by its tests, is a failure."""
    tally = Tally()
    try:
        cases = list(ElementTree.parse(path).iter('testcase'))
    except (OSError, ElementTree.ParseError):
        return tally.fail(f'pytest wrote no results (exit {code})\n{tail(out)}')
    for case in cases:
        if not case.get('name'):        # pytest ended within it
            tally.fail(f'a test began and did not end (exit {code})\n{tail(out, 4)}')
            continue
        told = {p.get('name'): p.get('value') for p in case.iter('property')}
        name = name_of(case, told)
        bad = [*case.findall('failure'), *case.findall('error')]
        skips = case.findall('skipped')
        if bad:
            said = bad[0].get('message') or bad[0].text or ''
            tally.fail(f"{name}\n{tail(said, 12)}")
            crashed = 'crashed while running' in said       # whatever killed the tests' own process has done so once
            if not crashed and (not name.startswith('tests/escape/') or not re.match(JUDGED, said)):
                tally.names.append(name)
        elif skips and (skips[0].get('message') or '') in NO_REASON:
            tally.fail(f'{name} is skipped without a reason')
        elif skips:
            tally.skip(skips[0].get('message'))
        else:
            tally.passed += 1
        tally.times.append(Spent(float(case.get('time') or 0), float(told.get('cpu') or 0), name))
    if code == 5:
        tally.fail('no test matches')
    elif code not in (0, 1) or (code == 1 and not tally.failed):
        tally.fail(f'pytest: exit {code}\n{tail(out, 12)}')
    return tally
