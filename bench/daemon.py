"""B13 and B14: the daemon's HTTP API at full speed, and the daemon at rest, and their section of docs/performance.md."""
import json
import os
import re
import shutil
import socket
import statistics
import subprocess
import time

CONNECTIONS, MS, IDLE_S = 32, 3000, 60
RATE, MEMORY_MB = 50_000, 20

HOW = f'''`GET /api/sandbox/status` over {CONNECTIONS} kept connections, each with one request at a time, from one thread of `bench/api.c`
on the same processors as the server. The same program measures nginx (one worker, an answer of its configuration) and dockerd's `/_ping`.
At rest: no request for {IDLE_S} s; memory is the sum over all of the daemon's processes, PSS counts shared pages once.
'''


class Server:
    def __init__(self, name, argv, at, path, env=None, header=None):
        self.name, self.at, self.path, self.header = name, at, path, header
        self.process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                        env=env, start_new_session=True)

    def up(self):
        for _ in range(300):
            if self.process.poll() is not None:
                return False
            try:
                if self.at.startswith('unix:'):
                    with socket.socket(socket.AF_UNIX) as s:
                        s.connect(self.at[5:])
                else:
                    host, port = self.at[4:].rsplit(':', 1)
                    socket.create_connection((host, int(port))).close()
                return True
            except OSError:
                time.sleep(0.1)
        return False

    def down(self):
        if self.process.poll() is None:
            self.process.terminate()
        self.process.wait()


def free_port():
    with socket.socket() as s:
        s.bind(('127.0.0.1', 0))
        return s.getsockname()[1]


def cloche_server(cloche, place):
    state = os.path.join(place, 'serve')
    port = free_port()
    sock = os.path.join(place, 'api.sock')
    return Server('cloche', [cloche, 'serve', '--state-dir', state, '--listen', f'unix:{sock}', '--listen',
                             f'tcp:127.0.0.1:{port}', '--rate-limit', '0'], f'unix:{sock}', '/api/sandbox/status'), port


def ask(at, path, body=None):
    done = subprocess.run(['curl', '-sS', '--unix-socket', at[5:], 'http://localhost' + path,
                           *(['-d', json.dumps(body)] if body is not None else [])], capture_output=True, check=True)
    return json.loads(done.stdout)


def nginx(place):
    program = shutil.which('nginx') or '/usr/sbin/nginx'
    if not os.path.exists(program):
        return None
    config, sock = os.path.join(place, 'nginx.conf'), os.path.join(place, 'nginx.sock')
    with open(config, 'w', encoding='utf-8') as f:
        f.write(f'daemon off; worker_processes 1; pid {place}/nginx.pid; error_log /dev/null;\n'
                'events { worker_connections 1024; }\n'
                f'http {{ access_log off; keepalive_requests 100000000; server {{ listen unix:{sock}; location / {{ '
                'default_type application/json; return 200 \'{"state":"ready"}\'; } } }\n')
    return Server('nginx', [program, '-c', config, '-p', place], f'unix:{sock}', '/')


def dockerd(place):
    if not shutil.which('dockerd') or os.geteuid() != 0:
        return None
    sock = os.path.join(place, 'docker.sock')
    return Server('dockerd', ['dockerd', '-H', f'unix://{sock}', '--data-root', f'{place}/docker', '--exec-root',
                              f'{place}/docker-run', '-p', f'{place}/docker.pid', '--bridge=none', '--iptables=false'],
                  f'unix:{sock}', '/_ping')


def rate(program, at, path, ms, header=None):
    """(requests a second, p50 in us, p99 in us)"""
    done = subprocess.run([program, at, str(CONNECTIONS), str(ms), path, *([header] if header else [])],
                          capture_output=True, text=True, check=True)
    n, ns, p50, p99 = map(int, done.stdout.split())
    return n * 1e9 / ns, p50 / 1000, p99 / 1000


def family(pid):
    """It and what descends from it, and what containerd and the like made of themselves."""
    table = {}
    for entry in os.listdir('/proc'):
        if entry.isdigit():
            try:
                with open(f'/proc/{entry}/stat', encoding='utf-8', errors='replace') as f:
                    table[int(entry)] = int(f.read().rsplit(')', 1)[1].split()[1])
            except OSError:
                pass
    found = [pid]
    for one in found:
        found += [p for p, parent in table.items() if parent == one]
    return found


def rest(server, seconds):
    """{'rss': MB, 'pss': MB, 'cpu_ms': in that time, 'processes': how many}"""
    def looked():
        rss = pss = ticks = 0
        pids = family(server.process.pid)
        for pid in pids:
            with open(f'/proc/{pid}/smaps_rollup', encoding='utf-8') as f:
                text = f.read()
            rss += int(re.search(r'^Rss: +(\d+)', text, re.M)[1])
            pss += int(re.search(r'^Pss: +(\d+)', text, re.M)[1])
            with open(f'/proc/{pid}/schedstat', encoding='utf-8') as f:
                ticks += int(f.read().split()[0])
        return rss / 1024, pss / 1024, ticks / 1e6, len(pids)
    before = looked()
    time.sleep(seconds)
    after = looked()
    return {'rss': after[0], 'pss': after[1], 'cpu_ms': after[2] - before[2], 'processes': after[3], 'seconds': seconds}


def measure(here, place, cloche, options, say):
    program = os.path.join(place, 'api')
    subprocess.run(['/usr/bin/gcc', '-O2', '-D_GNU_SOURCE', '-o', program, os.path.join(here, 'api.c')], check=True)
    rounds, ms, idle = (2, 500, 2) if options.quick else (max(3, 7 // options.divide), MS, IDLE_S)
    own, port = cloche_server(cloche, place)
    servers = [own, *(s for s in (nginx(place), dockerd(place)) if s)]
    facts = {'rate': {}, 'rest': {}, 'rounds': rounds, 'missing': [n for n in ('nginx', 'dockerd') if n not in [s.name for s in servers]]}
    try:
        for server in servers:
            if not server.up():
                raise SystemExit(f'{server.name} does not start')
        time.sleep(1)
        for server in servers:
            if server.name != 'nginx':
                say(f'  at rest: {server.name}')
                facts['rest'][server.name] = rest(server, idle)
        token = ask(own.at, '/v1/tokens', {'role': 'operator'})['token']
        ask(own.at, '/api/sandbox/start', {})
        targets = [('cloche, unix socket', own.at, own.path, None),
                   ('cloche, TCP with a token', f'tcp:127.0.0.1:{port}', own.path, f'Authorization: Bearer {token}'),
                   *((s.name + ', unix socket', s.at, s.path, None) for s in servers[1:])]
        for number in range(rounds):
            for name, at, path, header in targets:
                facts['rate'].setdefault(name, []).append(rate(program, at, path, ms, header))
            say(f'  API: round {number + 1}')
    finally:
        for server in servers:
            server.down()
    return facts


def section(facts):
    lines = ['## B13, B14: the daemon', '', HOW, f'| | requests/s | p50 µs | p99 µs | of the budget ({RATE:,}/s) |', '|---|--:|--:|--:|--:|']
    for name, rounds in facts['rate'].items():
        rates, p50, p99 = zip(*rounds)
        middle = statistics.median(rates)
        lines.append(f'| {name} | {middle:,.0f} ({min(rates):,.0f} to {max(rates):,.0f}) | {statistics.median(p50):,.0f} | '
                     f'{statistics.median(p99):,.0f} | {middle / RATE:.2f} |')
    lines += ['', f'| at rest | processes | RSS MB | PSS MB | processor ms in {IDLE_S} s |', '|---|--:|--:|--:|--:|']
    for name, r in facts['rest'].items():
        lines.append(f'| {name} | {r["processes"]} | {r["rss"]:.1f} | {r["pss"]:.1f} | {r["cpu_ms"] * IDLE_S / r["seconds"]:.0f} |')
    lines += ['', f'The budget is {MEMORY_MB} MB in all, and no processor.']
    if facts['missing']:
        lines.append(f'Not installed here: {", ".join(facts["missing"])}.')
    return '\n'.join(lines) + '\n'
