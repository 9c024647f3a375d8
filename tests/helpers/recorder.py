"""Which system calls cloche's own processes make once their filter is in force, told by the kernel.

A program for the kernel (BPF, at the raw tracepoint sys_enter, which comes after seccomp's verdict) keeps two tables:
the filter that each process installed, as the kernel was given it, and the calls that followed. Nothing is stopped, traced
or slowed down to be seen, so nothing can hang. Only descendants of the workload count: other tests of the same machine do not.
"""
import ctypes
import os
import platform
import struct
import subprocess
import tempfile
from pathlib import Path

RULES_MAX = 512                 # instructions of a filter; SERVICE_CALLS_MAX asks for no more
FILTER = 8 + 8 * RULES_MAX      # its length, then the instructions
SECCOMP_RET_ALLOW = 0x7fff0000
IOCTLS = (0x5401, 0x5413)       # TCGETS, TIOCGWINSZ: arguments that a rule may be for
AUDIT_ARCH = 0xc000003e
NAMES = Path(__file__).resolve().parents[1] / "escape" / "syscalls_x86_64.tsv"
# x86-64: bpf(2), seccomp(2), socket(2), and where a system call's arguments are in struct pt_regs
SYS_BPF, SYS_SECCOMP, SYS_SOCKET = 321, 317, 41
ARG0, ARG2 = 14 * 8, 12 * 8

# linux/bpf.h
MAP_CREATE, MAP_LOOKUP, MAP_UPDATE, MAP_NEXT, PROG_LOAD, RAW_TRACEPOINT_OPEN = 0, 1, 2, 4, 5, 17
MAP_HASH, MAP_ARRAY, PROG_RAW_TRACEPOINT = 1, 2, 17
LOOKUP, UPDATE, DELETE, PID_TGID, COMM, CURRENT, READ_USER, READ_KERNEL = 1, 2, 3, 14, 16, 35, 112, 113
ANCESTORS = 40                  # how far up the workload is looked for
TYPES = Path("/sys/kernel/btf/vmlinux")


def why_not():
    """What is missing here, or None."""
    if os.geteuid() != 0:
        return "needs root on the host: BPF programs at a tracepoint"
    if platform.machine() != "x86_64":
        return f"needs the numbers of the system calls and the registers of {platform.machine()}"
    if os.stat("/proc/self/ns/pid").st_ino != 0xeffffffc:
        return "needs the first pid namespace: the kernel tells pids of that one"
    try:
        Recorder(["-"]).close()
    except (OSError, ValueError) as e:
        return f"the kernel takes no BPF program at raw_tracepoint/sys_enter: {e}"
    return None


def names():
    """{number: name} of this architecture's system calls."""
    rows = [line.split("\t") for line in NAMES.read_text().splitlines() if not line.startswith("#")]
    return {int(number): name for number, name, *_ in rows}


def member_offsets(structure, *members):
    """Where @members of a kernel's structure are, by the kernel's own description of its types (BTF)."""
    data = TYPES.read_bytes()
    magic, _, _, head, types, length, strings, _ = struct.unpack_from("<HBBIIIII", data)
    if magic != 0xeb9f:
        raise ValueError("no BTF that we can read")

    def text(at):
        at += head + strings
        return data[at:data.index(b"\0", at)].decode()
    # bytes behind the header of each kind: fixed, and for each of its members
    extra = {1: (4, 0), 3: (12, 0), 4: (0, 12), 5: (0, 12), 6: (0, 8), 13: (0, 8), 14: (4, 0), 15: (0, 12), 17: (4, 0), 19: (0, 12)}
    at, end = head + types, head + types + length
    while at < end:
        name, info, _ = struct.unpack_from("<III", data, at)
        kind, n = info >> 24 & 0x1f, info & 0xffff
        at += 12
        if kind == 4 and n > 0 and text(name) == structure:
            rows = struct.iter_unpack("<III", data[at:at + 12 * n])
            found = {text(m): (bits & 0xffffff if info >> 31 else bits) // 8 for m, _, bits in rows}
            if all(m in found for m in members):
                return [found[m] for m in members]
        fixed, each = extra.get(kind, (0, 0))
        at += fixed + each * n
    raise ValueError(f"no struct {structure} with {', '.join(members)}")


def bpf(command, attributes):
    libc = ctypes.CDLL(None, use_errno=True)
    buffer = ctypes.create_string_buffer(attributes.ljust(128, b"\0"), 128)
    value = libc.syscall(SYS_BPF, command, buffer, 128)
    if value < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return value


class Map:
    def __init__(self, kind, key, value, entries):
        self.key, self.value = key, value
        self.fd = bpf(MAP_CREATE, struct.pack("IIII", kind, key, value, entries))

    def _do(self, command, key, value):
        key = ctypes.create_string_buffer(key, self.key) if key is not None else None
        address = ctypes.addressof(key) if key is not None else 0
        bpf(command, struct.pack("IxxxxQQQ", self.fd, address, ctypes.addressof(value), 0))
        return value.raw

    def set(self, key, value):
        self._do(MAP_UPDATE, key, ctypes.create_string_buffer(value, self.value))

    def get(self, key):
        return self._do(MAP_LOOKUP, key, ctypes.create_string_buffer(self.value))

    def keys(self):
        key = None
        while True:
            try:
                key = self._do(MAP_NEXT, key, ctypes.create_string_buffer(self.key))
            except FileNotFoundError:       # the last one
                return
            yield key


class Program:
    """Instructions of BPF with names for the places that are jumped to."""

    def __init__(self):
        self.code, self.places, self.jumps = [], {}, []

    def op(self, code, dst=0, src=0, off=0, imm=0):
        self.code.append((code, dst | src << 4, off, imm))

    def move(self, dst, src):
        self.op(0xbf, dst, src)

    def number(self, dst, imm):
        self.op(0xb7, dst, imm=imm)

    def add(self, dst, imm):
        self.op(0x07, dst, imm=imm)

    def shift(self, code, dst, imm):
        self.op(code, dst, imm=imm)

    def load(self, size, dst, src, off):
        self.op({2: 0x69, 4: 0x61, 8: 0x79}[size], dst, src, off)

    def store(self, size, dst, off, src):
        self.op({4: 0x63, 8: 0x7b}[size], dst, src, off)

    def stack(self, dst, off):
        self.move(dst, 10)
        self.add(dst, off)

    def map(self, dst, which):
        self.op(0x18, dst, 1, imm=which.fd)
        self.op(0)

    def call(self, helper):
        self.op(0x85, imm=helper)

    def jump(self, code, dst, imm, place):
        self.jumps.append((len(self.code), place))
        self.op(code, dst, imm=imm)

    def equal(self, dst, imm, place):
        self.jump(0x15, dst, imm, place)

    def differs(self, dst, imm, place):
        self.jump(0x55, dst, imm, place)

    def above(self, dst, imm, place):
        self.jump(0x25, dst, imm, place)

    def place(self, name):
        self.places[name] = len(self.code)

    def find(self, which, key):
        self.map(1, which)
        self.stack(2, key)
        self.call(LOOKUP)

    def update(self, which, key, value):
        self.map(1, which)
        self.stack(2, key)
        self.stack(3, value)
        self.number(4, 0)
        self.call(UPDATE)

    def bytes(self):
        for at, place in self.jumps:
            code, registers, _, imm = self.code[at]
            self.code[at] = (code, registers, self.places[place] - at - 1, imm)
        return b"".join(struct.pack("<BBhi", *row) for row in self.code)

    def start(self, tracepoint):
        """Load it and let it run: the descriptors that hold it."""
        code, log = self.bytes(), ctypes.create_string_buffer(1 << 16)
        words, license_text = ctypes.create_string_buffer(code, len(code)), ctypes.create_string_buffer(b"GPL")
        head = struct.pack("IIQQIIQ", PROG_RAW_TRACEPOINT, len(code) // 8, ctypes.addressof(words), ctypes.addressof(license_text),
                           1, len(log), ctypes.addressof(log))
        try:
            program = bpf(PROG_LOAD, head)
        except OSError as e:
            raise OSError(e.errno, f"{e.strerror} {log.value.decode('ascii', 'replace')[-600:]}") from None
        name = ctypes.create_string_buffer(tracepoint.encode())
        return program, bpf(RAW_TRACEPOINT_OPEN, struct.pack("QI", ctypes.addressof(name), program))


class Recorder:
    """@processes: what they are called (comm). run() a workload, then ask installed() and used()."""

    def __init__(self, processes):
        self.processes = list(processes)
        self.descriptors = []
        try:
            self.known = self._map(MAP_HASH, 16, 4, len(self.processes))
            self.workload = self._map(MAP_ARRAY, 4, 4, 1)
            self.confined = self._map(MAP_HASH, 4, 4, 8192)
            self.filters = self._map(MAP_ARRAY, 4, FILTER, len(self.processes))
            self.calls = self._map(MAP_HASH, 12, 4, 8192)
            for i, name in enumerate(self.processes):
                self.known.set(name.encode().ljust(16, b"\0"), struct.pack("I", i))
            self.descriptors += self._forget().start("sched_process_exit")
            self.descriptors += self._program().start("sys_enter")
        except OSError:
            self.close()
            raise

    def _map(self, *how):
        made = Map(*how)
        self.descriptors.append(made.fd)
        return made

    def close(self):
        for fd in self.descriptors:
            os.close(fd)
        self.descriptors = []

    def _forget(self):
        """Whoever ends: its pid may be another's soon. (None of them has threads.)"""
        p = Program()
        p.call(PID_TGID)
        p.shift(0x77, 0, 32)
        p.store(4, 10, -4, 0)
        p.map(1, self.confined)
        p.stack(2, -4)
        p.call(DELETE)
        p.number(0, 0)
        p.op(0x95)
        return p

    def _program(self):
        p = Program()
        p.load(8, 7, 1, 8)                      # r7: the call's number
        p.load(8, 6, 1, 0)                      # r6: its registers
        p.call(PID_TGID)
        p.shift(0x77, 0, 32)
        p.store(4, 10, -4, 0)
        p.find(self.confined, -4)
        p.equal(0, 0, "not yet")
        # what a process does that has its filter
        p.load(4, 1, 0, 0)
        p.store(4, 10, -24, 1)
        p.store(4, 10, -20, 7)
        p.number(1, 0)
        p.store(4, 10, -16, 1)
        p.differs(7, SYS_SOCKET, "count")
        self._argument(p, ARG0)
        p.load(4, 1, 10, -32)
        p.store(4, 10, -16, 1)
        p.place("count")
        p.update(self.calls, -24, -4)
        p.number(0, 0)
        p.op(0x95)
        # a filter comes into force: whose, and below our workload?
        p.place("not yet")
        p.differs(7, SYS_SECCOMP, "end")
        self._argument(p, ARG0)
        p.load(8, 1, 10, -32)
        p.differs(1, 1, "end")                  # SECCOMP_SET_MODE_FILTER
        p.stack(1, -56)
        p.number(2, 16)
        p.call(COMM)
        p.find(self.known, -56)
        p.equal(0, 0, "end")
        p.load(4, 1, 0, 0)
        p.store(4, 10, -8, 1)                   # which process
        self._argument(p, ARG2)
        p.load(8, 8, 10, -32)                   # r8: where its struct sock_fprog is
        self._descends(p)
        # the filter itself
        p.stack(1, -80)
        p.number(2, 16)
        p.move(3, 8)
        p.call(READ_USER)
        p.differs(0, 0, "end")
        p.find(self.filters, -8)
        p.equal(0, 0, "end")
        p.load(2, 2, 10, -80)
        p.above(2, RULES_MAX, "end")
        p.store(4, 0, 0, 2)
        p.shift(0x67, 2, 3)
        p.move(1, 0)
        p.add(1, 8)
        p.load(8, 3, 10, -72)
        p.call(READ_USER)
        p.update(self.confined, -4, -8)
        p.place("end")
        p.number(0, 0)
        p.op(0x95)
        return p

    def _descends(self, p):
        """On when the workload is an ancestor, else to the end."""
        parent, tgid = member_offsets("task_struct", "real_parent", "tgid")
        p.number(1, 0)
        p.store(4, 10, -12, 1)
        p.find(self.workload, -12)
        p.equal(0, 0, "end")
        p.load(4, 9, 0, 0)
        p.call(CURRENT)
        p.move(6, 0)
        for _ in range(ANCESTORS):
            self._read(p, -32, 8, 6, parent)
            p.load(8, 6, 10, -32)
            self._read(p, -40, 4, 6, tgid)
            p.load(4, 1, 10, -40)
            p.jumps.append((len(p.code), "ours"))
            p.op(0x1d, 1, 9)                    # equal
        p.jump(0x05, 0, 0, "end")
        p.place("ours")

    @staticmethod
    def _read(p, to, size, base, offset):
        """@size bytes of the kernel's memory, to r10[@to]."""
        p.stack(1, to)
        p.number(2, size)
        p.move(3, base)
        p.add(3, offset)
        p.call(READ_KERNEL)

    def _argument(self, p, which):
        """An argument of the call, to r10[-32]."""
        self._read(p, -32, 8, 6, which)

    def run(self, argv, timeout, **options):
        """Run @argv; (exit code, output)."""
        # into a file: what a workload that hangs leaves behind would keep a pipe open. It begins when its pid is known.
        with tempfile.TemporaryFile() as out, \
                subprocess.Popen(["sh", "-c", 'read -r go && exec "$@" </dev/null', "sh", *argv], stdin=subprocess.PIPE,
                                 stdout=out, stderr=subprocess.STDOUT, **options) as process:
            self.workload.set(struct.pack("I", 0), struct.pack("I", process.pid))
            process.stdin.write(b"go\n")
            process.stdin.close()
            try:
                process.wait(timeout)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            out.seek(0)
            return process.returncode, out.read().decode("utf-8", "replace")

    def installed(self):
        """{process: {(number, argument)}}: what its filter lets pass, asked of the filter itself; the argument of
        socket(2) where it has to be a certain one, else None."""
        found = {}
        for i, name in enumerate(self.processes):
            raw = self.filters.get(struct.pack("I", i))
            code = list(struct.iter_unpack("<HBBI", raw[8:8 + 8 * struct.unpack_from("I", raw)[0]]))
            if code:
                found[name] = set()
                for number in range(1024):
                    allowed = [a for a in (0xffffffff, *range(64), *IOCTLS) if verdict(code, number, a) == SECCOMP_RET_ALLOW]
                    if number == SYS_SOCKET and 0xffffffff not in allowed:
                        found[name] |= {(number, a) for a in allowed}
                    elif allowed:
                        found[name].add((number, None))
        return found

    def used(self):
        """{process: {(number, argument)}}: what was called; the argument of socket(2) only."""
        found = {}
        for key in self.calls.keys():
            which, number, argument = struct.unpack("III", key)
            found.setdefault(self.processes[which], set()).add((number, argument if number == SYS_SOCKET else None))
        return found


def verdict(code, number, argument):
    """What the filter @code answers to a call with that @argument everywhere: the few instructions that wall/service_filter.c
    writes."""
    data = struct.pack("<IIQ6Q", number, AUDIT_ARCH, 0, *(argument,) * 6)
    at = a = 0
    while True:
        op, yes, no, k = code[at]
        at += 1
        if op == 0x20:                          # BPF_LD | BPF_W | BPF_ABS
            a = struct.unpack_from("<I", data, k)[0]
        elif op == 0x15:                        # BPF_JMP | BPF_JEQ | BPF_K
            at += yes if a == k else no
        elif op == 0x54:                        # BPF_ALU | BPF_AND | BPF_K
            a &= k
        elif op == 0x06:                        # BPF_RET | BPF_K
            return k
        else:
            raise ValueError(f"an instruction that no service filter has: {op:#x}")
