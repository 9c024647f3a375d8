"""Python that takes what memory it can get: each piece takes FULL bytes, says when it has it all, and waits to be ended."""

FULL = 600 << 20
MEMFD = """
import ctypes, os, select
try:
    fd = os.memfd_create('x')
except OSError as why:
    print('refused', why.errno); raise SystemExit(3)
piece = b'x' * (1 << 20)
for i in range(FULL >> 20): os.write(fd, piece)
print('has it', flush=True); select.select([], [], [], 5)
"""
MEMFD_IN_FLIGHT = """
import array, os, select, socket
try:
    fds = [os.memfd_create('x') for i in range(6)]
except OSError as why:
    print('refused', why.errno); raise SystemExit(3)
a, b = socket.socketpair()
piece = b'x' * (1 << 20)
for fd in fds:
    for i in range(FULL // 6 >> 20): os.write(fd, piece)
    a.sendmsg([b'f'], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array('i', [fd]))]); os.close(fd)
print('has it', flush=True); select.select([], [], [], 5)
"""
SYSV = """
import ctypes, select
libc = ctypes.CDLL(None, use_errno=True)
libc.shmat.restype = ctypes.c_void_p
libc.shmat.argtypes = libc.shmdt.argtypes = None
for i in range(FULL >> 25):
    segment = libc.shmget(0, 1 << 25, 0o1600)
    at = libc.shmat(segment, None, 0)
    ctypes.memset(ctypes.c_void_p(at), 120, 1 << 25)
    libc.shmdt(ctypes.c_void_p(at))
print('has it', flush=True); select.select([], [], [], 5)
"""
SOCKETS = """
import select, socket
kept = []
def fill(s):
    s.setblocking(False)
    total = 0
    try:
        while True: total += s.send(PIECE)
    except OSError: return total
total = 0
while total < FULL and len(kept) < 30000:
    a, b = socket.socketpair(*PAIR)
    total += fill(a) * WEIGHT + fill(b) * WEIGHT
    kept += [b] if CLOSE else [a, b]
print('has it', flush=True); select.select([], [], [], 5)
"""
TCP = """
import select, socket
listener = socket.create_server(('127.0.0.1', 0)); kept = [listener]
total = 0
while total < FULL and len(kept) < 1500:
    a = socket.create_connection(listener.getsockname()); b, _ = listener.accept()
    kept += [a, b]
    for s in (a, b):
        s.setblocking(False)
        try:
            while True: total += s.send(b'x' * 65536)
        except OSError: pass
if total < FULL: print('refused'); raise SystemExit(3)
print('has it', flush=True); select.select([], [], [], 5)
"""
# How much lies there the kernel says: what finds no room is dropped.
UDP = """
import select, socket
def lies_there():
    return int(next(line for line in open('/proc/net/sockstat') if line.startswith('UDP:')).split()[-1]) * 4096
kept = []
while lies_there() < FULL and len(kept) < 6000:
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.bind(('127.0.0.1', 0)); s.connect(s.getsockname())
    s.setblocking(False); kept.append(s)
    try:
        for i in range(4): s.send(b'x' * 60000)
    except OSError: pass
if lies_there() < FULL: print('refused'); raise SystemExit(3)
print('has it', flush=True); select.select([], [], [], 5)
"""
SHARED = """
import mmap, select
m = mmap.mmap(-1, FULL)
for at in range(0, FULL, 4096): m[at] = 1
print('has it', flush=True); select.select([], [], [], 5)
"""
# A process whose first thread has ended looks like a zombie.
HEADLESS = """
import ctypes, os, threading, time
def work():
    time.sleep(0.3); kept = []
    for i in range(FULL >> 20): kept.append(b'x' * (1 << 20)); time.sleep(0.002)
    print('has it', flush=True); time.sleep(5); os._exit(0)
threading.Thread(target=work).start()
ctypes.CDLL(None).syscall(ctypes.c_long(60 if os.uname().machine == 'x86_64' else 93), 0)
"""
# One byte in each 2 MiB is read: no page of its own, but a page of tables each.
TABLES = """
import mmap, select, time
piece = 1 << 33
kept = []
for i in range(FULL // 4096 * 2 // 8192 + 1):
    m = mmap.mmap(-1, piece, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x4000, prot=mmap.PROT_READ)
    m.madvise(15)
    for at in range(0, piece, 1 << 21): m[at]
    kept.append(m); time.sleep(0.02)
print('has it', flush=True); select.select([], [], [], 5)
"""
SEMAPHORES = """
import ctypes, select, time
libc = ctypes.CDLL(None)
for i in range(FULL >> 21):
    if libc.semget(0, 32000, 0o1600) < 0: print('refused'); raise SystemExit(3)
    time.sleep(0.005)
print('has it', flush=True); select.select([], [], [], 5)
"""
MESSAGES = """
import ctypes, select, time
libc, total = ctypes.CDLL(None), 0
text = ctypes.create_string_buffer(b'\\1' * 9000)
while total < 300 << 20:
    queue = libc.msgget(0, 0o1600)
    if queue < 0: print('refused'); raise SystemExit(3)
    while libc.msgsnd(queue, text, 8192, 0o4000) == 0: total += 8192
    if queue % 128 == 0: time.sleep(0.005)
print('has it', flush=True); select.select([], [], [], 5)
"""
EMPTY_FILES = """
import os, select
os.mkdir('/tmp/many')
for i in range(240000): os.close(os.open(f'/tmp/many/{i}', os.O_CREAT))
print('has it', flush=True); select.select([], [], [], 5)
"""


def sockets(pair, close=False, piece="b'x' * 65536", weight=1):
    return (SOCKETS.replace("*PAIR", pair).replace("CLOSE", str(close)).replace("PIECE", piece)
            .replace("WEIGHT", str(weight)))


ATTACKS = {
    "memfd": MEMFD, "memfd in flight": MEMFD_IN_FLIGHT, "sysv": SYSV, "tcp": TCP, "udp": UDP, "shared": SHARED, "first thread gone": HEADLESS,
    "page tables": TABLES, "semaphores": SEMAPHORES, "messages": MESSAGES, "empty files": EMPTY_FILES,
    "stream": sockets(""), "datagrams": sockets("socket.AF_UNIX, socket.SOCK_DGRAM"),
    "packets": sockets("socket.AF_UNIX, socket.SOCK_SEQPACKET"),
    "whose sender is gone": sockets("", close=True), "of one byte each, whose sender is gone": sockets("", True, "b'x'", 768),
}


def hoard(what):
    return ATTACKS[what].replace("FULL", str(FULL))
