"""The network section of docs/performance.md from what bench/egress.py measured."""
import statistics

B9_ADDED, B9_RATE, B10_TIMES, B11_CONNECTS, B11_RATE = 20, 60_000, 0.7, 2_000, 20_000
# what peers did where those were set: haproxy for B9, mitmproxy for B11
HAPROXY_ADDED, HAPROXY_RATE, MITMPROXY_CONNECTS = 15, 79_500, 51.5

HOW = '''
## How the network is measured

* `bench/run --only egress --write docs/performance.md`, as root, measures this alone and leaves the other sections.
* The bench makes two network namespaces and one virtual cable between them, with loopback's packet size; nothing
  reaches another network. The server (`bench/far.c`) is in one. The proxies are in the other, which stands for the
  host. Every row uses the same client (`bench/load.c`), which sends no request before the last one's answer.
* The client of cloche is inside `cloche run --allow-domain ...`, that of srt inside `srt`, as their users have it.
  For the other proxies it is in the proxy's own namespace and uses loopback, so that every row has one
  loopback and one cable; "direct" has the cable alone, "direct, loopback" has the client in the server's namespace.
* Every proxy gets a name, resolves it with the same name server, and decides nothing else; they write no access log
  and keep no cache. cloche decides each request by its rules and reports it, as always. haproxy is not a forward proxy: it
  has one fixed server, and its client does not ask it for a tunnel.
* The rows take turns, round by round. A number is the median of the rounds, with the smallest and the largest in
  brackets. "Added" and "×" are computed within a round, against "direct" in it. Client, proxy and server share the same
  processors, so a rate of requests is that of all three together; "processor" is what the proxy's own processes used
  (srt's include the sandbox's helpers).
* A new connection of B11 is a TCP connection, CONNECT, a full TLS handshake without resumption, and one request, by 8
  clients at a time. "Per core" divides by the processor time of the proxy alone. The proxy decides
  about connections to the server: cloche keeps one for the next client (docs/interception.md), so most of its handshakes are with clients.
'''


def number(v):
    return f'{v:,.0f}' if v >= 100 else f'{v:.1f}' if v >= 10 else f'{v:.2f}'


def spread(values, show=number):
    if not values:
        return '–'
    return f'{show(statistics.median(values))} ({show(min(values))}–{show(max(values))})'


def of(session, name, key):
    return [v[key] for v in session.values[name]] if session is not None else []


def against(session, base, name, key, how):
    """@how(ours, theirs) of each round that both have."""
    return [how(a, b) for a, b in zip(of(session, name, key), of(base, name, key))]


def added(session, base, name):
    return against(session, base, name, 'p50', lambda a, b: a - b)


def per_core(session):
    """Connections a second of the proxy's processor time."""
    return [1e6 / v for v in of(session, 'tls-connects', 'cpu') if v > 0]


def table(facts, aim, heads, cells):
    lines = ['| | ' + ' | '.join(heads) + ' |', '|---|' + '--:|' * len(heads)]
    for session in facts['sessions']:
        if aim not in session.row.aims:
            continue
        if aim in session.failures:
            row = ['fails: ' + session.failures[aim].replace('|', '/')] + [''] * (len(heads) - 1)
            if session.row.name == 'cloche, intercepting' and not session.values['tls1']:
                row[0] = 'not available'
        else:
            row = cells(session)
        lines.append(f'| {session.row.name} | ' + ' | '.join(row) + ' |')
    lines += [f'| {name} | not installed |' + ' |' * (len(heads) - 1) for name in facts['missing']]
    return '\n'.join(lines)


def find(facts, name):
    return next((s for s in facts['sessions'] if s.row.name == name), None)


def judged(what, values, budget, unit, *, most=False, peer=None):
    """One line about a budget: at least it, or at @most. @peer: a name, what that did where the budget was set, and what
    it does here."""
    if not values:
        return f'* {what}: not measured.'
    median = statistics.median(values)

    def met(limit):
        return median <= limit if most else median >= limit
    line = f'* {what}: {number(median)}{unit}; the budget of {budget:,}{unit} is {"met" if met(budget) else "**missed**"}.'
    if peer and peer[2]:
        name, there, here = peer
        fair = budget / there * statistics.median(here)
        line += f' ({name}: {number(there)} where that was set; in proportion it is {number(fair)}{unit} here, ' \
                f'{"met" if met(fair) else "missed"}.)'
    return line


def plain(facts, direct, cloche):
    haproxy = find(facts, 'haproxy (to one fixed server)')

    def cells(s):
        again = of(s, 'get32', 'again')
        return [spread(of(s, 'get1', 'p50')), '–' if s is direct else spread(added(s, direct, 'get1')),
                spread(of(s, 'get32', 'rate')), '–' if s is direct else spread(of(s, 'get32', 'cpu')),
                'yes' if again and max(again) < 0.5 else 'no']
    return '\n'.join([
        '### B9: plain HTTP\n', 'Microseconds; requests a second.\n',
        table(facts, 'get', ['1 connection, p50', 'added to direct', '32 connections, requests/s',
                             'processor per request', 'keeps connections'], cells),
        '\nBudget B9:\n',
        judged('Added to one connection', added(cloche, direct, 'get1'), B9_ADDED, ' µs', most=True,
               peer=('haproxy', HAPROXY_ADDED, added(haproxy, direct, 'get1'))),
        judged('32 connections', of(cloche, 'get32', 'rate'), B9_RATE, ' requests/s',
               peer=('haproxy', HAPROXY_RATE, of(haproxy, 'get32', 'rate'))), ''])


def tunnel(facts, direct, cloche):
    loopback = find(facts, 'direct, loopback')

    def times(s, base, name='down'):
        return against(s, base, name, 'gbits', lambda a, b: a / b)

    def cells(s):
        mine = s.row.name.startswith('direct')
        return [spread(of(s, 'down', 'gbits')), spread(times(s, loopback)), spread(times(s, direct)),
                spread(of(s, 'up', 'gbits')), '–' if mine else spread(of(s, 'down', 'cpu')),
                spread(of(s, 'echo', 'p50')), '–' if mine else spread(added(s, direct, 'echo'))]
    return '\n'.join([
        '### B10: a CONNECT tunnel\n', 'Gbit/s of one connection; seconds of processor per gigabyte; microseconds.\n',
        table(facts, 'stream', ['to the client', '× loopback', '× direct', 'to the server', 'processor per GB',
                                'one byte and back, p50', 'added to direct'], cells),
        '\nBudget B10:\n',
        judged('To the client', times(cloche, loopback), B10_TIMES, ' × direct loopback'), ''])


def intercepted(facts, direct):
    ours = find(facts, 'cloche, intercepting')

    def cells(s):
        return [spread(of(s, 'tls-connects', 'rate')), '–' if s is direct else spread(per_core(s)),
                '–' if s is direct else spread(added(s, direct, 'tls1')), spread(of(s, 'tls32', 'rate')),
                '–' if s is direct else spread(of(s, 'tls32', 'cpu'))]
    lines = ['### B11: TLS that is opened on the way\n', 'Connections and requests a second; microseconds.\n',
             table(dict(facts, missing=[n for n in facts['missing'] if n in ('mitmproxy', 'srt')]), 'tls',
                   ['new connections/s', 'per core of the proxy', '1 connection, p50 added',
                    '32 connections, requests/s', 'processor per request'], cells), '\nBudget B11:\n']
    if ours is None or 'tls' in ours.failures:
        lines.append('* cloche did not open TLS: ' + (ours.failures['tls'] if ours else 'no such row') + '.\n')
    else:
        theirs = find(facts, 'mitmproxy')
        lines += [judged('New connections per core', per_core(ours), B11_CONNECTS, '/s',
                         peer=('mitmproxy', MITMPROXY_CONNECTS, per_core(theirs) if theirs else [])),
                  judged('32 connections', of(ours, 'tls32', 'rate'), B11_RATE, ' requests/s'), '']
    return '\n'.join(lines)


def section(facts, made):
    """@made: when, by which command, on how busy a machine."""
    title = '## B9 to B11: the way out\n'
    if isinstance(facts, str):
        return f'{title}\n{facts}\n'
    direct, cloche = find(facts, 'direct'), find(facts, 'cloche')
    versions = dict.fromkeys(s.row.version for s in facts['sessions'] if s.row.version)
    return '\n'.join([
        title, f"{made}. {facts['rounds']} rounds of {facts['ms'] / 1000:g} s for each number: median "
        '(smallest–largest).\n', plain(facts, direct, cloche), tunnel(facts, direct, cloche),
        intercepted(facts, direct), 'Versions: ' + '; '.join(versions) + '.\n'])
