"""B3, B5, B7 and B15 to B17: what a sandbox of the daemon costs, and their section of docs/performance.md.

Every request goes over one kept connection to the unix socket from this Python program, which takes part of the time:
the row "nothing" is the same way to an answer that needs no work.
"""
import json
import os
import re
import shutil
import socket
import statistics
import subprocess
import sys
import time

import daemon

REST_S = 0.05                   # B3: between two runs, so that none shares the processors with what is made after another
LIVE = (1, 100, 1000)           # B7: how many sandboxes there are already
MIB, LARGE, SMALL = 1 << 20, 10 << 20, 1 << 10
IDLE = 50                       # B17: sandboxes at rest
CLIENTS, RATE_S = 4, 3          # B15: closed loops at once, and for how long
BUDGETS = {'create': 1.0, 'exec true': 0.5, 'delete': 0.5}
FLAT, CODE_RATIO, CODE_MS, TAIL = 1.3, 0.2, 2.0, 4
POOLED_MS = {'Python': 0.5, 'Node': 5.0}        # B3 and B5, from the pool
PRINTS = {'Python': ('python', 'print(1)', ['/usr/bin/python3', '-c']), 'Node': ('javascript', 'console.log(1)', ['node', '-e'])}

HOW = '''One client over the unix socket, one request after the other on a kept connection, from a program in Python: the row
"nothing" is `GET /v1/health`, which takes the same way and needs no work. The sandboxes have the default policy. Rates are of
four such clients at once on the same two processors. Between two runs of an interpreter the machine rests until the next
sandbox is made ahead, and 50 ms more.
'''


class Client:
    """HTTP/1.1 over a kept connection, with no more than what the answers here need."""

    def __init__(self, path):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.connect(path)
        self.rest = b''

    def __call__(self, method, path, body=b'', kind='application/json'):
        head = f'{method} {path} HTTP/1.1\r\nHost: localhost\r\n'
        if body or method in ('POST', 'PUT'):
            head += f'Content-Type: {kind}\r\nContent-Length: {len(body)}\r\n'
        self.socket.sendall(head.encode() + b'\r\n' + body)
        while b'\r\n\r\n' not in self.rest:
            self.more()
        head, self.rest = self.rest.split(b'\r\n\r\n', 1)
        status = int(head[9:12])
        length = re.search(rb'\r\ncontent-length: *(\d+)', head, re.I)
        answer = self.sized(int(length[1])) if length else self.chunked() if b'chunked' in head.lower() else b''
        if status >= 300:
            raise RuntimeError(f'{method} {path}: {status} {answer[:300]!r}')
        return answer

    def more(self, n=1 << 20):
        data = self.socket.recv(n)
        if not data:
            raise RuntimeError('the daemon closed the connection')
        self.rest += data

    def sized(self, length):
        parts, there = [self.rest[:length]], min(len(self.rest), length)
        self.rest = self.rest[length:]
        while there < length:
            parts.append(self.socket.recv(min(1 << 20, length - there)))
            there += len(parts[-1])
        return b''.join(parts)

    def chunked(self):
        parts = []
        while True:
            while b'\r\n' not in self.rest:
                self.more()
            line, self.rest = self.rest.split(b'\r\n', 1)
            part = self.sized(int(line.split(b';')[0], 16) + 2)[:-2]
            if not part:
                return b''.join(parts)
            parts.append(part)

    def json(self, method, path, value=None):
        return json.loads(self(method, path, json.dumps(value).encode() if value is not None else b'') or b'null')

    def create(self):
        return '/v1/sandboxes/' + self.json('POST', '/v1/sandboxes', {})['id']


def took(function, *words):
    """Milliseconds, and what it returned."""
    began = time.perf_counter_ns()
    value = function(*words)
    return (time.perf_counter_ns() - began) / 1e6, value


def run_true(client, box):
    done = client.json('POST', f'{box}/exec', {'command': ['/bin/true']})
    if done['exit_code'] != 0:
        raise RuntimeError(done)


def one_by_one(client, count):
    """{row: [ms]}"""
    rows = {name: [] for name in ('nothing', 'create', 'exec true', 'delete')}
    for _ in range(count):
        rows['nothing'].append(took(client, 'GET', '/v1/health')[0])
        ms, box = took(client.create)
        rows['create'].append(ms)
        run_true(client, box)
        rows['exec true'].append(took(run_true, client, box)[0])
        rows['delete'].append(took(client, 'DELETE', box)[0])
    return rows


def loop(path, what, seconds):
    """For a client of its own: how many of @what in that time."""
    client, n, end = Client(path), 0, time.monotonic() + seconds
    box = client.create() if what == 'exec true' else None
    while time.monotonic() < end:
        if box:
            run_true(client, box)
        else:
            client('DELETE', client.create())
        n += 1
    print(n)


def rate(path, what, seconds):
    clients = [subprocess.Popen([sys.executable, __file__, path, what, str(seconds)], stdout=subprocess.PIPE, text=True)
               for _ in range(CLIENTS)]
    return sum(int(c.communicate()[0]) for c in clients) / seconds


def waits(client):
    """Until one is made ahead, and nothing else is being made."""
    for _ in range(2000):
        text = client('GET', '/metrics').decode()
        parked, starting = (float(re.search(rf'^cloche_pool_sandboxes\{{state="{s}"\}} (\S+)', text, re.M)[1]) for s in ('parked', 'starting'))
        if parked > 0 and starting == 0:
            return
        time.sleep(0.005)
    raise RuntimeError('no sandbox is made ahead')


def code(client, pooled, count):
    """{row: [ms]}: a program that prints 1, in a sandbox made for it, in one made ahead, and bare."""
    rows = {}

    def run(words):
        subprocess.run(words, check=True, stdout=subprocess.PIPE)

    def execute(where, language, text):
        done = where.json('POST', '/v1/execute', {'language': language, 'code': text})
        if done['stdout'] != '1\n':
            raise RuntimeError(done)
    for name, (language, text, words) in PRINTS.items():
        bare = [*words, text]       # the one that a sandbox has, whatever PATH has before it
        bwrap = ['bwrap', '--unshare-all', '--die-with-parent', '--ro-bind', '/', '/', '--proc', '/proc', '--dev', '/dev', *bare]
        if not shutil.which(words[0]):
            continue
        execute(pooled, language, text)
        for _ in range(count):
            for row, call in ((f'{name}: cloche, made for it', (execute, client, language, text)),
                              (f'{name}: cloche, made ahead', (execute, pooled, language, text)), (f'{name}: bare', (run, bare)),
                              (f'{name}: bubblewrap', (run, bwrap) if shutil.which('bwrap') else None)):
                if call:
                    waits(pooled)
                    time.sleep(REST_S)
                    rows.setdefault(row, []).append(took(*call)[0])
    return rows


def files(client, count):
    """{row: [ms]}"""
    box = client.create()
    rows = {}
    for name, size, rounds in (('10 MiB', LARGE, max(5, count // 10)), ('1 KiB', SMALL, count)):
        data = os.urandom(size)
        for _ in range(rounds):
            ms, _answer = took(client, 'PUT', f'{box}/files/f', data, 'application/octet-stream')
            rows.setdefault(f'{name} up', []).append(ms)
            ms, back = took(client, 'GET', f'{box}/files/f')
            rows.setdefault(f'{name} down', []).append(ms)
            if back != data:
                raise RuntimeError('a file came back as another')
    client('DELETE', box)
    return rows


def grown(client, count):
    """{live sandboxes: [ms of a create]}: each is removed again, so that their number stays."""
    rows, boxes = {}, []
    for live in LIVE:
        while len(boxes) < live:
            boxes.append(client.create())
        rows[live] = []
        for _ in range(count):
            ms, box = took(client.create)
            rows[live].append(ms)
            client('DELETE', box)
    for box in boxes:
        client('DELETE', box)
    return rows


def memory(server, client):
    """What a sandbox at rest adds: PSS and processes of the daemon's family, and what the machine has less."""
    def looked():
        pss, pids = 0, daemon.family(server.process.pid)
        for pid in pids:
            with open(f'/proc/{pid}/smaps_rollup', encoding='utf-8') as f:
                pss += int(re.search(r'^Pss: +(\d+)', f.read(), re.M)[1])
        with open('/proc/meminfo', encoding='utf-8') as f:
            return pss, len(pids), int(re.search(r'^MemAvailable: +(\d+)', f.read(), re.M)[1])
    client('DELETE', client.create())
    time.sleep(1)
    before = looked()
    boxes = [client.create() for _ in range(IDLE)]
    time.sleep(2)
    after = looked()
    for box in boxes:
        client('DELETE', box)
    return {'pss': (after[0] - before[0]) / 1024 / IDLE, 'processes': (after[1] - before[1]) / IDLE,
            'available': (before[2] - after[2]) / 1024 / IDLE}


def measure(place, cloche, options, say):
    count = 30 if options.quick else max(100, 400 // options.divide)
    sock = os.path.join(place, 'boxes.sock')
    ahead = os.path.join(place, 'ahead.sock')
    flags = ['--rate-limit', '0', '--max-sandboxes', str(2 * LIVE[-1])]
    server, pool = (daemon.Server('cloche', [cloche, 'serve', '--state-dir', at.removesuffix('.sock'), '--listen', f'unix:{at}', '--pool', n,
                                             *flags], f'unix:{at}', '/') for at, n in ((sock, '0'), (ahead, '4')))
    facts = {'count': count}
    try:
        if not server.up() or not pool.up():
            raise SystemExit('cloche serve does not start')
        client = Client(sock)
        say('  sandboxes of the daemon: code')
        facts['code'] = code(client, Client(ahead), count)
        pool.down()
        for name, part in (('one', one_by_one), ('files', files), ('grown', grown)):
            say(f'  sandboxes of the daemon: {name}')
            facts[name] = part(client, count)
        facts['memory'] = memory(server, client)
        facts['rate'] = {name: rate(sock, name, RATE_S) for name in ('create and delete', 'exec true')}
    finally:
        server.down()
        pool.down()
    return facts


def percentile(values, p):
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * p / 100))]


def table(title, rows):
    lines = [f'| {title} | p50 ms | p99 ms |', '|---|--:|--:|']
    return lines + [f'| {name} | {statistics.median(values):.2f} | {percentile(values, 99):.2f} |' for name, values in rows.items()]


def judged(ok):
    return 'met' if ok else '**missed**'


def section(facts, made):
    middle = {name: statistics.median(values) for part in ('one', 'code', 'files', 'grown') for name, values in facts[part].items()}
    lines = ['## B3, B7, B15 to B17: sandboxes of the daemon', '', f'{made}. Medians of {facts["count"]}.', '', HOW]
    lines += table('B15: one request', facts['one']) + ['']
    for name, ms in BUDGETS.items():
        tail = percentile(facts['one'][name], 99)
        lines.append(f'* {name}: p50 {middle[name]:.2f} ms; the budget of {ms} ms is {judged(middle[name] <= ms)}; p99 is '
                     f'{tail / middle[name]:.1f} × p50; the budget of {TAIL} × is {judged(tail <= TAIL * middle[name])}.')
    for name, budget in (('create and delete', 1500), ('exec true', 5000)):
        per_s = facts['rate'][name]
        lines.append(f'* {CLIENTS} clients at once, {name}: {per_s:,.0f}/s; the budget of {budget:,}/s is {judged(per_s >= budget)}.')
    lines += ['', *table('B3, B5: prints 1', facts['code']), '']
    own, bare = middle['Python: cloche, made for it'], middle['Python: bare']
    lines.append(f'* Python in a sandbox and a `python3` made for it: {own / bare:.2f} × bare; the budget of {CODE_RATIO} × and {CODE_MS:.0f} ms is '
                 f'{judged(own <= CODE_RATIO * bare and own <= CODE_MS)}.')
    for name, budget in POOLED_MS.items():
        if f'{name}: bare' in middle:
            own = middle[f'{name}: cloche, made ahead']
            lines.append(f'* {name} in a sandbox made ahead: {own / middle[f"{name}: bare"]:.2f} × bare; the budget of {budget} ms is '
                         f'{judged(own <= budget)}.')
    lines.append('')
    lines += [*table('B7: create, beside sandboxes that are there', {f'{n:,}': v for n, v in facts['grown'].items()}), '']
    times = middle[LIVE[-1]] / middle[LIVE[0]]
    lines += [f'* {times:.2f} × from {LIVE[0]} to {LIVE[-1]:,}; the budget of {FLAT} × is {judged(times <= FLAT)}.', '']
    lines += [*table('B16: files', facts['files']), '']
    for way in ('up', 'down'):
        speed = LARGE / 1e6 / middle[f'10 MiB {way}']
        lines.append(f'* 10 MiB {way}: {speed * 1000:,.0f} MB/s; the budget of 1,000 MB/s is {judged(speed >= 1)}. 1 KiB {way}: '
                     f'the budget of 0.25 ms is {judged(middle[f"1 KiB {way}"] <= 0.25)}.')
    rest = facts['memory']
    lines += ['', f'B17: each of {IDLE} sandboxes at rest adds {rest["pss"]:.2f} MiB of PSS, takes {rest["available"]:.2f} MiB of what the '
              f'machine has available, and has {rest["processes"]:.1f} processes; the budget of 0.5 MiB of PSS and 2 processes is '
              f'{judged(rest["pss"] <= 0.5 and rest["processes"] <= 2)}.']
    return '\n'.join(lines) + '\n'


if __name__ == '__main__':
    loop(sys.argv[1], sys.argv[2], float(sys.argv[3]))
