"""What stands between bench/load.c and bench/far.c, row by row: nothing, cloche, and the proxies beside it."""
import json
import os
import shutil
import subprocess

import peers
from wires import HOST, RAW, SITE

PORTS = {'squid': 3201, 'tinyproxy': 3202, 'mitmproxy': 3203, 'haproxy': 3204}
# haproxy is no forward proxy: it gets a port for each server, which it connects to without being asked.
HAPROXY_STREAM = 3205


class Row:
    """@load: words that start the client where it belongs; @serve: words that start the proxy, when it is not what
    @load starts. @aims: what is measured -> "AT FORM HOST PORT" of load.c:

        get  plain HTTP    stream  what a tunnel carries    tls  TLS that is opened on the way
    """

    def __init__(self, name, load, aims, *, version='', serve=None, env=None):
        self.name, self.load, self.aims = name, load, aims
        self.version, self.serve, self.env = version, serve, env or {}


def forward(at):
    return {'get': f'{at} absolute {HOST} 80', 'stream': f'{at} tunnel {RAW} 7777',
            'tls': f'{at} tunnel-tls {HOST} 443'}


def without(aims, *names):
    return {name: aim for name, aim in aims.items() if name not in names}


def contained(*words):
    """In a process namespace of its own, so that nothing of it outlives us. Its process 1 is a shell: a proxy that
    becomes another user would lose the word that it is to end with its parent."""
    return ['unshare', '--pid', '--fork', '--kill-child', '--mount-proc', '--', '/bin/sh', '-c', '"$@"; exit', 'sh',
            *words]


def found(name):
    return shutil.which(name, path=os.environ['PATH'] + ':/usr/sbin:/sbin')


def written(path, text):
    with open(path, 'w', encoding='utf-8') as f:
        f.write(text)
    return path


def direct(wires, load):
    aims = {'get': f'{SITE}:80 origin {HOST} 80', 'stream': f'{SITE}:7777 origin {RAW} 7777',
            'tls': f'{SITE}:443 tls {HOST} 443'}
    return [Row('direct', wires.near(load), aims),
            Row('direct, loopback', wires.far(load), {'stream': aims['stream']})]


def cloche(wires, load, program, place):
    run = [program, 'run', '--quiet', '--bind', load]
    names = [word for name in (HOST, f'{RAW}:7777') for word in ('--allow-domain', name)]
    version = peers.first_line(program, 'version')
    settings = written(os.path.join(place, 'intercept.json'), json.dumps(
        {'network': {'allow': [{'host': HOST, 'methods': ['GET']}]}}))
    return [Row('cloche', wires.near(*run, *names, '--', load), without(forward('proxy'), 'tls'), version=version),
            Row('cloche, not asked for a proxy', wires.near(*run, *names, '--', load),
                {'get': f'{HOST}:80 origin {HOST} 80'}, version=version),
            Row('cloche, intercepting', wires.near(*run, '--settings', settings, '--', load),
                {'tls': forward('proxy')['tls']}, version=version)]


def squid(wires, load, place):
    program = found('squid')
    if program is None:
        return None
    # No cache, no access log, no helper processes: forwarding alone.
    path = written(os.path.join(place, 'squid.conf'), f'''http_port 127.0.0.1:{PORTS['squid']}
http_access allow all
cache deny all
access_log none
cache_log /dev/null
cache_store_log none
pid_filename none
netdb_filename none
pinger_enable off
via off
forwarded_for delete
shutdown_lifetime 0 seconds
coredump_dir /tmp
''')
    return Row('squid', wires.near(load), without(forward(f"127.0.0.1:{PORTS['squid']}"), 'tls'),
               version=peers.first_line(program, '-v'), serve=wires.near(*contained(program, '-N', '-f', path)))


def tinyproxy(wires, load, place):
    program = found('tinyproxy')
    if program is None:
        return None
    path = written(os.path.join(place, 'tinyproxy.conf'), f'''Port {PORTS['tinyproxy']}
Listen 127.0.0.1
MaxClients 500
LogLevel Critical
Timeout 600
DisableViaHeader Yes
''')
    return Row('tinyproxy', wires.near(load), without(forward(f"127.0.0.1:{PORTS['tinyproxy']}"), 'tls'),
               version=peers.first_line(program, '-v'), serve=wires.near(*contained(program, '-d', '-c', path)))


def mitmproxy(wires, load, place):
    program = found('mitmdump')
    if program is None:
        return None
    words = [program, '--quiet', '--listen-host', '127.0.0.1', '--listen-port', str(PORTS['mitmproxy']),
             '--set', f'confdir={place}/mitmproxy', '--set', f'ssl_verify_upstream_trusted_ca={wires.ca}',
             '--ignore-hosts', '^raw[.]']
    return Row('mitmproxy', wires.near(load), forward(f"127.0.0.1:{PORTS['mitmproxy']}"),
               version=peers.first_line(program, '--version'), serve=wires.near(*contained(*words)))


def haproxy(wires, load, place):
    program = found('haproxy')
    if program is None:
        return None
    path = written(os.path.join(place, 'haproxy.cfg'), f'''defaults
    timeout connect 10s
    timeout client 10m
    timeout server 10m
    maxconn 1000
listen plain
    mode http
    bind 127.0.0.1:{PORTS['haproxy']}
    server far {SITE}:80
listen stream
    mode tcp
    option splice-auto
    bind 127.0.0.1:{HAPROXY_STREAM}
    server far {SITE}:7777
''')
    aims = {'get': f"127.0.0.1:{PORTS['haproxy']} origin {HOST} 80",
            'stream': f'127.0.0.1:{HAPROXY_STREAM} origin {RAW} 7777'}
    return Row('haproxy (to one fixed server)', wires.near(load), aims, version=peers.first_line(program, '-v'),
               serve=wires.near(*contained(program, '-db', '-f', path)))


def srt(wires, load, place, prefix):
    """Its proxy, as its users get it: from inside its sandbox. The second row has TLS opened."""
    made = peers.srt(place, prefix)
    if made is None:
        return None
    rows = []
    for name, more, aims in (('srt', {}, without(forward('proxy'), 'tls')),
                             ('srt, tlsTerminate', {'tlsTerminate': {}}, {'tls': forward('proxy')['tls']})):
        settings = written(os.path.join(place, f'srt-net-{len(more)}.json'), json.dumps(
            {'network': {'allowedDomains': [HOST, RAW], 'deniedDomains': [], **more},
             'filesystem': {'denyRead': [], 'allowWrite': ['/tmp'], 'denyWrite': []}}))
        own = os.path.join(place, f'srt-{len(more)}')       # its sockets are named after its process, which is 2 in both
        os.mkdir(own)
        rows.append(Row(name, wires.near(*contained(made.argv([])[0], '--settings', settings, '--', load)), aims,
                        version=made.version, env={'NODE_EXTRA_CA_CERTS': wires.ca, 'TMPDIR': own}))
    return rows


def rows(wires, load, program, place, prefix):
    """(the rows, the names of those that are not installed)"""
    made, missing = [*direct(wires, load), *cloche(wires, load, program, place)], []
    for name, row in (('haproxy', haproxy(wires, load, place)), ('squid', squid(wires, load, place)),
                      ('tinyproxy', tinyproxy(wires, load, place)), ('mitmproxy', mitmproxy(wires, load, place)),
                      ('srt', srt(wires, load, place, prefix))):
        if row is None:
            missing.append(name)
        else:
            made += row if isinstance(row, list) else [row]
    return made, missing


def build(here, place):
    """(client, far end), compiled; RuntimeError with why, such as OpenSSL's headers missing."""
    out = []
    for sources, name in ((('load.c', 'load_conn.c'), 'ct-load'), (('far.c',), 'ct-far')):
        path = os.path.join(place, name)
        done = subprocess.run(['/usr/bin/gcc', '-O2', '-D_GNU_SOURCE', '-o', path,
                               *(os.path.join(here, source) for source in sources), '-lssl', '-lcrypto', '-pthread'],
                              capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise RuntimeError(done.stderr.strip().split('\n')[0])
        out.append(path)
    return out
