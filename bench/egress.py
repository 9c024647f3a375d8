"""B9 to B11: what the way out costs, beside proxies; the section `egress` of bench/run.

Every row keeps its client (bench/load.c) and its proxy for the whole measurement, and the rows take turns round by
round. A number is what one round of one row gave; the report shows the median of the rounds and their range.
"""
import os
import select
import subprocess
import time

import proxies
from wires import FAR_CA, Wires

ROUNDS, QUICK_ROUNDS = 9, 2
MS, QUICK_MS = 1000, 250
PATIENCE = 45                   # seconds without an answer of the client
START = 20                      # ... until a proxy takes connections
CLIENT = 'ct-load'

# name -> (command of load.c, aim of the row, connections)
MEASURES = {
    'get1': ('requests', 'get', 1),
    'get32': ('requests', 'get', 32),
    'down': ('down', 'stream', 1),
    'up': ('take', 'stream', 1),
    'echo': ('echo', 'stream', 1),
    'tls-connects': ('connects', 'tls', 8),
    'tls1': ('requests', 'tls', 1),
    'tls32': ('requests', 'tls', 32),
}


class Failure(Exception):
    pass


def processes():
    """{pid: (parent, name, clock ticks used by it and by children that it waited for)}"""
    out = {}
    for name in filter(str.isdigit, os.listdir('/proc')):
        try:
            with open(f'/proc/{name}/stat', encoding='utf-8', errors='replace') as f:
                text = f.read()
        except OSError:
            continue
        comm, rest = text[text.index('(') + 1:text.rindex(')')], text[text.rindex(')') + 2:].split()
        out[int(name)] = (int(rest[1]), comm, sum(int(field) for field in rest[11:15]))
    return out


def processor_seconds(root):
    """What the processes below @root have used so far, the client itself left out."""
    table = processes()
    below = {root}
    while True:
        more = {pid for pid, row in table.items() if row[0] in below} - below
        if not more:
            break
        below |= more
    ticks = sum(table[pid][2] for pid in below if pid in table and table[pid][1] != CLIENT)
    return ticks / os.sysconf('SC_CLK_TCK')


class Session:
    """One row at work: its proxy, and the client that talks to it."""

    def __init__(self, row, wires, log):
        self.row, self.log = row, log
        self.failures = {}      # aim -> why it is not measured any more
        self.values = {name: [] for name in MEASURES}
        env = {**os.environ, **row.env}
        kw = {'stderr': log, 'env': env}
        self.proxy = row.serve and wires.start(row.serve, stdin=subprocess.DEVNULL, stdout=log, **kw)
        self.client = wires.start(row.load, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=1, **kw)
        self.watched = (self.proxy or self.client).pid

    def why_ended(self):
        self.log.seek(0)
        text = [line.strip() for line in self.log.read().split('\n') if line.strip()]
        return text[0][:160] if text else 'it ended'

    def ask(self, command, aim, connections, ms):
        """The words behind "ok"."""
        try:
            self.client.stdin.write(f'{command} {self.row.aims[aim]} {connections} {ms}\n')
        except OSError as e:
            raise Failure(self.why_ended()) from e
        if not select.select([self.client.stdout], [], [], PATIENCE)[0]:
            raise Failure(f'no answer for {PATIENCE} s')
        words = self.client.stdout.readline().split()
        if not words:
            raise Failure(self.why_ended())
        if words[0] != 'ok':
            raise Failure(' '.join(words[1:]))
        return words[1:]

    def wait_until_ready(self):
        aim = next(iter(self.row.aims))
        command = next(command for command, name, _ in MEASURES.values() if name == aim)
        until = time.monotonic() + START
        while True:
            try:
                self.ask(command, aim, 1, 10)
                return
            except Failure as e:
                if 'Connection refused' not in str(e) or time.monotonic() > until or self.client.poll() is not None:
                    self.failures[aim] = str(e)
                    return
            time.sleep(0.1)

    def measure(self, name, ms):
        command, aim, connections = MEASURES[name]
        if aim not in self.row.aims or aim in self.failures:
            return
        before = processor_seconds(self.watched)
        try:
            words = self.ask(command, aim, connections, ms)
        except Failure as e:
            self.failures[aim] = str(e)
            return
        used = processor_seconds(self.watched) - before
        if command == 'connects' and self.row.name != 'direct' and ' '.join(words[4:]) == FAR_CA:
            self.failures[aim] = 'not intercepted: the certificate is the server\'s own'
            return
        self.values[name].append(value(command, words, used))


def value(command, words, used):
    """What one round gave: {"rate", "p50" (microseconds), "cpu" (microseconds each), "again"} or {"gbits", "cpu"}."""
    count, seconds = int(words[0]), int(words[1]) / 1e9
    if command in ('down', 'take'):
        return {'gbits': count * 8 / seconds / 1e9, 'cpu': used / (count / 1e9) if count else 0}
    return {'rate': count / seconds, 'p50': int(words[2]) / 1e3, 'cpu': used * 1e6 / count if count else 0,
            'again': 0 if command == 'connects' else int(words[4]) / max(count, 1)}


def measure(here, place, cloche, options, say):
    """What report_egress.section() shows, or the reason why there is nothing to show."""
    if os.geteuid() != 0:
        return 'Not measured: it makes network namespaces, which needs root.'
    place = os.path.join(place, 'egress')
    os.mkdir(place, 0o755)
    try:
        load, far = proxies.build(here, place)
    except RuntimeError as e:
        return f'Not measured: its client and server could not be compiled ({e}).'
    rounds = QUICK_ROUNDS if options.quick else max(3, ROUNDS // options.divide)
    with Wires(place, far) as wires:
        rows, missing = proxies.rows(wires, load, cloche, place, options.srt)
        sessions = []
        for number, row in enumerate(rows):
            log = open(os.path.join(place, f'log-{number}'), 'w+', encoding='utf-8', errors='replace')
            sessions.append(Session(row, wires, log))
        for session in sessions:
            session.wait_until_ready()
            for aim, why in session.failures.items():
                say(f'  {session.row.name}: {aim}: {why}')
        for number in range(rounds):
            for name in MEASURES:
                for session in sessions:
                    session.measure(name, QUICK_MS if options.quick else MS)
            say(f'  egress: round {number + 1} of {rounds}')
    for session in sessions:
        session.log.close()
    return {'sessions': sessions, 'missing': missing, 'rounds': rounds, 'ms': QUICK_MS if options.quick else MS}
