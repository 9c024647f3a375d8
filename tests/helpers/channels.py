"""Every way by which two processes of a machine can talk: one offers (OFFER), the other visits (VISIT).

Both are programs for `python3 -I -c`. OFFER takes a mark, prints a line of JSON saying where it is to be found, serves until its
input ends, and prints who came. VISIT reads that line (and `pids`, `guard`) and prints the ways by which it got the mark.
"""
import json
import subprocess

OFFER = r"""
import ctypes, fcntl, json, os, random, signal, socket, struct, sys, threading, time
mark, told, seen, libc = sys.argv[1].encode(), {}, set(), ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = libc.shmat.restype = ctypes.c_long
def offer(name, f):
    try: told[name] = f()
    except (OSError, AttributeError) as e: told[name] = None      # not on this host, or not here
def thread(f): threading.Thread(target=f, daemon=True).start()
def stream(name, s, address):
    s.bind(address); s.listen(9)
    def run():
        while True:
            c, _ = s.accept(); seen.add(name)
            try: c.sendall(mark); c.close()
            except OSError: pass
    thread(run); where = s.getsockname(); return where[1] if isinstance(where, tuple) else 'yes'
def datagrams(name, s, address):
    s.bind(address)
    def run():
        while True:
            _, peer = s.recvfrom(99); seen.add(name)
            try: s.sendto(mark, peer)
            except (OSError, TypeError): pass
    thread(run); where = s.getsockname()
    return (where[0] if s.family == 16 else where[1]) if isinstance(where, tuple) else 'yes'
def member(s, level, option, group): s.setsockopt(level, option, group); return s
A, B, U = socket.AF_INET, socket.AF_INET6, socket.AF_UNIX
lo = 1
for name, kind, address in (('tcp4', (A, 1, 0), ('', 0)), ('tcp6', (B, 1, 0), ('::', 0)), ('mptcp', (A, 1, 262), ('', 0)),
        ('sctp', (A, 1, 132), ('', 0)), ('dccp', (A, 6, 33), ('', 0)), ('vsock', (40, 1, 0), (0xffffffff, 0xffffffff)),
        ('tipc', (30, 1, 0), None), ('abstract', (U, 1, 0), b'\0' + mark), ('abstract seqpacket', (U, 5, 0), b'\0q' + mark),
        ('path', (U, 1, 0), b'/tmp/' + mark)):
    offer(name, lambda: stream(name, socket.socket(*kind), address))
for name, kind, address in (('udp4', (A, 2, 0), ('', 0)), ('udp6', (B, 2, 0), ('::', 0)), ('udplite', (A, 2, 136), ('', 0)),
        ('abstract datagram', (U, 2, 0), b'\0d' + mark), ('netlink', (16, 3, 2), (0, 0)), ('broadcast', (A, 2, 0), ('', 0))):
    offer(name, lambda: datagrams(name, socket.socket(*kind), address))
offer('multicast4', lambda: datagrams('multicast4', member(socket.socket(A, 2), 0, socket.IP_ADD_MEMBERSHIP,
      socket.inet_aton('224.0.0.199') + socket.inet_aton('127.0.0.1')), ('', 0)))
offer('multicast6', lambda: datagrams('multicast6', member(socket.socket(B, 2), 41, socket.IPV6_JOIN_GROUP,
      socket.inet_pton(B, 'ff02::4711') + struct.pack('I', lo)), ('::', 0)))
def raw():
    key = random.randrange(1, 1 << 31); told['key'] = key; return key
raw(); key = told['key']; held = []
def shm():
    i = libc.shmget(key, 4096, 0o1666)
    if i < 0: raise OSError('shmget')
    at = libc.shmat(i, None, 0); ctypes.memmove(at, mark, len(mark)); held.append(lambda: libc.shmctl(i, 0, None)); return key
def sem():
    i = libc.semget(key, 1, 0o1666)
    if i < 0: raise OSError('semget')
    held.append(lambda: libc.semctl(i, 0, 0)); return key
class Msg(ctypes.Structure): _fields_ = [('kind', ctypes.c_long), ('text', ctypes.c_char * 64)]
def msg():
    i = libc.msgget(key, 0o1666)
    if i < 0: raise OSError('msgget')
    held.append(lambda: libc.msgctl(i, 0, None)); m = Msg(1, mark)
    if libc.msgsnd(i, ctypes.byref(m), 64, 0) < 0: raise OSError('msgsnd')
    return key
def mq():
    q = libc.mq_open(b'/' + mark, os.O_CREAT | os.O_RDWR, 0o666, None)
    if q < 0: raise OSError('mq_open')
    os.fchmod(q, 0o666); held.append(lambda: libc.mq_unlink(b'/' + mark)); libc.mq_send(q, mark, len(mark), 0); return 'yes'
def posix():
    open(b'/dev/shm/' + mark, 'wb').write(mark); os.chmod(b'/dev/shm/' + mark, 0o666)
    held.append(lambda: os.unlink(b'/dev/shm/' + mark)); return 'yes'
def keyring():
    k = libc.syscall(248, b'user', mark, mark, ctypes.c_size_t(len(mark)), -4)
    if k < 0: raise OSError('add_key')
    libc.syscall(250, 5, k, 0x3f3f3f3f); held.append(lambda: libc.syscall(250, 3, k)); return 'yes'
for f in (shm, sem, msg, mq, posix, keyring): offer(f.__name__, f)
libc.prctl(0x59616d61, ctypes.c_ulong(-1 & (2**64 - 1)), 0, 0, 0)       # anybody may trace us, where Yama asks
signal.signal(signal.SIGUSR1, lambda *_: seen.add('signal'))
buffer = ctypes.create_string_buffer(mark)
try: memfd = os.memfd_create('m')
except OSError: memfd = os.open('/tmp', os.O_TMPFILE | os.O_RDWR)       # there is none where memory is watched (docs/limits.md)
os.write(memfd, mark)
told.update(address=ctypes.addressof(buffer), memfd=memfd, pid=os.getpid(), mark=sys.argv[1], addresses=['127.0.0.1', '::1'])
def names():
    try: return socket.if_nameindex()
    except OSError: return ()
for line in open('/proc/net/if_inet6') if os.path.exists('/proc/net/if_inet6') else ():
    words = line.split(); text = socket.inet_ntop(B, bytes.fromhex(words[0]))
    told['addresses'].append(text + ('%' + words[5] if text.startswith('fe80') else ''))
for _, name in names():
    try: told['addresses'].append(socket.inet_ntoa(fcntl.ioctl(socket.socket(A, 2), 0x8915, struct.pack('256s', name.encode()))[20:24]))
    except OSError: pass
def beacon():
    s = socket.socket(A, 2)
    while True: s.sendto(mark, ('127.0.0.1', 9)); time.sleep(.02)
thread(beacon)
print(json.dumps(told), flush=True); sys.stdin.read()
for undo in held: undo()
if told['path']: os.unlink(b'/tmp/' + mark)
print(json.dumps(sorted(seen)), flush=True)
"""

VISIT = r"""
import ctypes, json, os, signal, socket, struct, sys
told = json.loads(sys.stdin.readline()); mark, reached, why, libc = told['mark'].encode(), [], {}, ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = libc.shmat.restype = libc.ptrace.restype = libc.msgrcv.restype = ctypes.c_long
signal.signal(signal.SIGUSR1, signal.SIG_IGN)       # a number may mean somebody else here, ourselves too
def visit(name, f):
    if name in told and told[name] is None: return
    try:
        if f() == mark: reached.append(name)
    except (OSError, AttributeError, ValueError, OverflowError) as e: why[name] = str(e)
def talk(kind, address, data=b'hello', on=lambda s: None):
    with socket.socket(*kind) as s:
        s.settimeout(told['guard']); on(s)
        if kind[1] in (2, 3):
            if kind[0] == U: s.bind(b'\0v' + mark)
            if kind[0] == 16: s.bind((0, 0))
            s.sendto(data, address)
        else: s.connect(address)
        return s.recv(99)
A, B, U = socket.AF_INET, socket.AF_INET6, socket.AF_UNIX
lo = 1
for address in told['addresses']:
    six = ':' in address; where = lambda port: socket.getaddrinfo(address, port)[0][4]
    for name, kind in (('tcp6', (B, 1, 0)), ('udp6', (B, 2, 0))) if six else (('tcp4', (A, 1, 0)), ('udp4', (A, 2, 0)),
            ('mptcp', (A, 1, 262)), ('sctp', (A, 1, 132)), ('dccp', (A, 6, 33)), ('udplite', (A, 2, 136))):
        visit(name, lambda: talk(kind, where(told[name])))
        if name in reached and address not in ('127.0.0.1', '::1'): reached.append(name + (' link-local' if '%' in address else ' elsewhere'))
visit('broadcast', lambda: talk((A, 2, 0), ('127.255.255.255', told['broadcast']), on=lambda s: s.setsockopt(1, 6, 1)))
visit('multicast4', lambda: talk((A, 2, 0), ('224.0.0.199', told['multicast4']),
      on=lambda s: s.setsockopt(0, socket.IP_MULTICAST_IF, socket.inet_aton('127.0.0.1'))))
visit('multicast6', lambda: talk((B, 2, 0), ('ff02::4711', told['multicast6'], 0, lo)))
for cid in (1, 2): visit('vsock', lambda: talk((40, 1, 0), (cid, told['vsock'])))
visit('abstract', lambda: talk((U, 1, 0), b'\0' + mark)); visit('abstract seqpacket', lambda: talk((U, 5, 0), b'\0q' + mark))
visit('abstract datagram', lambda: talk((U, 2, 0), b'\0d' + mark)); visit('path', lambda: talk((U, 1, 0), b'/tmp/' + mark))
visit('netlink', lambda: talk((16, 3, 2), (told['netlink'], 0), struct.pack('IHHII', 20, 99, 1, 1, 0) + b'abcd'))
def packet():
    with socket.socket(17, 3, socket.htons(3)) as s:
        s.settimeout(told['guard'])
        for _ in range(100000):
            if mark in s.recv(4096): return mark
visit('packet', packet)
def shm():
    i = libc.shmget(told['key'], 0, 0)
    if i < 0: raise OSError(ctypes.get_errno(), 'shmget')
    return ctypes.string_at(libc.shmat(i, None, 0o10000), len(mark))
class Msg(ctypes.Structure): _fields_ = [('kind', ctypes.c_long), ('text', ctypes.c_char * 64)]
def msg():
    i, m = libc.msgget(told['key'], 0), Msg()
    if i < 0 or libc.msgrcv(i, ctypes.byref(m), 64, 0, 0o4000) < 0: raise OSError(ctypes.get_errno(), 'msg')
    return m.text
def mq():
    q = libc.mq_open(b'/' + mark, os.O_RDWR | os.O_NONBLOCK)
    if q < 0: raise OSError(ctypes.get_errno(), 'mq_open')
    into = ctypes.create_string_buffer(8192); n = libc.mq_receive(q, into, 8192, None); return into.raw[:max(n, 0)]
def keyring():
    k = libc.syscall(250, 10, -4, b'user', mark, 0)
    if k < 0: raise OSError(ctypes.get_errno(), 'keyctl')
    into = ctypes.create_string_buffer(99); n = libc.syscall(250, 11, k, into, 99); return into.raw[:max(n, 0)]
visit('shm', shm); visit('msg', msg); visit('mq', mq); visit('keyring', keyring)
visit('sem', lambda: mark if libc.semget(told['key'], 0, 0) >= 0 else b'')
visit('posix', lambda: open(b'/dev/shm/' + mark, 'rb').read())
visit('unix table', lambda: mark if mark in open('/proc/net/unix', 'rb').read() else b'')
class Vec(ctypes.Structure): _fields_ = [('at', ctypes.c_void_p), ('n', ctypes.c_size_t)]
for pid in told['pids']:
    if pid in (os.getpid(), os.getppid()): continue
    def file(name): return lambda: mark if mark in open(f'/proc/{pid}/{name}', 'rb').read(1 << 16) else b''
    visit('cmdline', file('cmdline')); visit('fd', file('fd/%d' % told['memfd']))
    def mem():
        with open(f'/proc/{pid}/mem', 'rb') as f: f.seek(told['address']); return f.read(len(mark))
    visit('mem', mem)
    def readv():
        into = ctypes.create_string_buffer(len(mark)); a = Vec(ctypes.addressof(into), len(mark)); b = Vec(told['address'], len(mark))
        libc.process_vm_readv(pid, ctypes.byref(a), 1, ctypes.byref(b), 1, 0); return into.raw
    visit('readv', readv)
    def getfd():
        p = libc.syscall(434, pid, 0); fd = libc.syscall(438, p, told['memfd'], 0) if p >= 0 else -1
        if fd < 0: raise OSError(ctypes.get_errno(), 'pidfd')
        return os.pread(fd, 99, 0)
    visit('pidfd', getfd)
    def trace():
        if libc.ptrace(0x4206, pid, None, None) != 0: raise OSError(ctypes.get_errno(), 'ptrace')
        libc.ptrace(0x4207, pid, None, None); os.waitpid(pid, 0x40000000)
        word = libc.ptrace(1, pid, ctypes.c_void_p(told['address']), None); libc.ptrace(17, pid, None, None)
        return mark if struct.pack('q', word) == mark[:8] else b''
    visit('ptrace', trace)
    try: os.kill(pid, signal.SIGUSR1)
    except OSError: pass
print(json.dumps([sorted(set(reached)), why]))
"""


class Offered:
    """An OFFER that runs: `told` where it is; end() who came."""

    def __init__(self, process):
        self.process = process
        line = process.stdout.readline()
        assert line, process.stderr.read()
        self.told = json.loads(line)

    def input(self, pids=(), guard=20):
        return json.dumps({**self.told, "pids": [self.told["pid"], *pids], "guard": guard}).encode() + b"\n"

    def end(self):
        out, err = self.process.communicate(b"", timeout=60)
        assert self.process.returncode == 0, err
        return set(json.loads(out))


PIPE = subprocess.PIPE
