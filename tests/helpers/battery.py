"""Run inside (python3 -c SOURCE JSON): try each attack, print which ones worked.

Prints one JSON object, attack → {"open": bool, "why": str}. "open" means that the attack succeeded. Everything here
is harmless when it does succeed, so that the suites can show that it works without the wall.
"""
import ctypes
import errno
import json
import os
import signal
import socket
import struct
import sys

BAIT = json.loads(sys.argv[1])
libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long
PROBES = {}
DESCRIPTORS = {}        # what we were started with, before any probe opens something
for _name in os.listdir("/proc/self/fd"):
    try:
        DESCRIPTORS[int(_name)] = os.readlink(f"/proc/self/fd/{_name}")
    except OSError:     # the one that listed the directory
        pass
CLONE_NEWUSER, CLONE_NEWNS, CLONE_NEWNET = 0x10000000, 0x00020000, 0x40000000


def probe(f):
    PROBES[f.__name__] = f
    return f


def sysc(number, *args):
    """A raw system call: the result, or OSError. Integers are passed as 64-bit words."""
    words = [ctypes.c_long(a) if isinstance(a, int) else a for a in args]
    result = libc.syscall(ctypes.c_long(number), *words)
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return result


def in_child(f):
    """True when @f succeeds in a forked child (for calls that change the caller)."""
    read_end, write_end = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            f()
            os.write(write_end, b"ok")
        except BaseException as e:
            os.write(write_end, repr(e).encode()[:200])
        os._exit(0)
    os.close(write_end)
    said = os.read(read_end, 4096)
    os.close(read_end)
    os.waitpid(pid, 0)
    if said != b"ok":
        raise PermissionError(said.decode("utf-8", "replace") or "the child was killed")
    return True


# files ---------------------------------------------------------------------------------------------------------
@probe
def read_host_file():
    with open(BAIT["secret"], encoding="utf-8") as f:
        return f.read() == BAIT["secret_text"]


@probe
def write_host_file():
    with open(BAIT["writable"], "a", encoding="utf-8") as f:
        f.write("x")
    return True


@probe
def create_host_file():
    path = os.path.join(os.path.dirname(BAIT["writable"]), "made-by-an-attack")
    open(path, "w", encoding="utf-8").close()
    return os.path.exists(path)


@probe
def open_by_root_of_pid1():
    with open("/proc/1/root" + BAIT["secret"], encoding="utf-8") as f:
        return f.read() == BAIT["secret_text"]


@probe
def open_by_handle():
    class Handle(ctypes.Structure):
        _fields_ = [("bytes", ctypes.c_uint), ("type", ctypes.c_int), ("data", ctypes.c_ubyte * 128)]
    handle, mount = Handle(bytes=128), ctypes.c_int()
    sysc(303, -100, b"/usr", ctypes.byref(handle), ctypes.byref(mount), 0)
    directory = os.open("/usr", os.O_RDONLY | os.O_DIRECTORY)
    try:
        return os.close(sysc(304, directory, ctypes.byref(handle), os.O_RDONLY)) is None
    finally:
        os.close(directory)


@probe
def write_system():
    path = "/usr/.attack-write-test"
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT, 0o600))
    os.unlink(path)
    return True


@probe
def write_etc():
    os.close(os.open("/etc/passwd", os.O_WRONLY))
    return True


@probe
def write_core_pattern():
    os.close(os.open("/proc/sys/kernel/core_pattern", os.O_WRONLY))
    return True


@probe
def write_sysrq():
    os.close(os.open("/proc/sysrq-trigger", os.O_WRONLY))
    return True


@probe
def write_sys():
    for base, folders, files in os.walk("/sys/kernel"):
        if not BAIT.get("thorough"):        # thousands of files, each asked for of the guard: test_modes.py has all of them
            folders[:] = [name for name in sorted(folders)[:40] if name not in ("slab", "irq")]
        for name in files:
            try:
                os.close(os.open(os.path.join(base, name), os.O_WRONLY | os.O_NONBLOCK))
                return True
            except OSError:
                pass
    raise PermissionError("nothing writable below /sys/kernel")


@probe
def make_block_device():
    path = os.path.join(BAIT["scratch"], "disk")
    os.mknod(path, 0o60600, os.makedev(7, 0))
    os.unlink(path)
    return True


@probe
def setuid_file_gives_rights():
    """A setuid program of the system gives no more than we have."""
    import subprocess
    import time
    with subprocess.Popen(["/usr/bin/su", "root"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL,
                          stderr=subprocess.DEVNULL) as su:
        try:        # it waits for a password (or is a shell, when we are root): look whose rights it has meanwhile
            for _ in range(2000):
                with open(f"/proc/{su.pid}/status", encoding="ascii", errors="replace") as f:
                    facts = dict(line.rstrip("\n").split(":\t", 1) for line in f if ":\t" in line)
                if facts["Name"] in ("su", "sh", "bash") or su.poll() is not None:
                    break
                time.sleep(0.001)
            return "Uid" in facts and facts["Uid"].split()[1] == "0"
        finally:
            su.kill()


# processes -----------------------------------------------------------------------------------------------------
@probe
def see_host_process():
    with open(f"/proc/{BAIT['victim']}/cmdline", "rb") as f:
        return BAIT["victim_mark"].encode() in f.read()


@probe
def signal_host_process():
    os.kill(BAIT["victim"], 0)
    return True


@probe
def signal_everybody():
    """kill(-1, 0) finds nobody outside: checked through the victim's own tally of SIGUSR1."""
    return in_child(lambda: os.kill(BAIT["victim"], signal.SIGUSR1))


@probe
def ptrace_host_process():
    def seize():
        sysc(101, 0x4206, BAIT["victim"], 0, 0)     # PTRACE_SEIZE
    return in_child(seize)


@probe
def read_host_memory():
    with open(f"/proc/{BAIT['victim']}/mem", "rb"):
        return True


@probe
def process_vm_readv():
    class Iovec(ctypes.Structure):
        _fields_ = [("base", ctypes.c_void_p), ("len", ctypes.c_size_t)]
    buffer = ctypes.create_string_buffer(16)
    here = Iovec(ctypes.cast(buffer, ctypes.c_void_p), 16)
    there = Iovec(BAIT["victim_address"], 16)
    return sysc(310, BAIT["victim"], ctypes.byref(here), 1, ctypes.byref(there), 1, 0) == 16


@probe
def signal_by_pidfd():
    pidfd = sysc(434, BAIT["victim"], 0)
    try:
        return sysc(424, pidfd, 0, 0, 0) == 0
    finally:
        os.close(pidfd)


@probe
def read_host_shadow():
    """Root's own files: light mode started by root must not have root's rights over them."""
    with open("/etc/shadow", encoding="utf-8") as f:
        return "root:" in f.read()


@probe
def change_priority_of_host_process():
    os.setpriority(os.PRIO_PROCESS, BAIT["victim"], 19)
    return True


# network -------------------------------------------------------------------------------------------------------
def tcp(family, address):
    with socket.socket(family, socket.SOCK_STREAM) as s:
        s.settimeout(5)
        s.connect(address)
        return s.recv(64) == b"host service"


@probe
def tcp_to_host_loopback():
    return tcp(socket.AF_INET, ("127.0.0.1", BAIT["tcp"]))


@probe
def tcp_to_host_loopback_v6():
    return tcp(socket.AF_INET6, ("::1", BAIT["tcp6"]))


@probe
def tcp_fast_open_to_host():
    """sendto(MSG_FASTOPEN) connects without connect(2)."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as s:
        s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, struct.pack("ll", 5, 0))
        s.sendto(b"x", 0x20000000, ("127.0.0.1", BAIT["tcp"]))
        return s.recv(64) == b"host service"


@probe
def udp_to_host_loopback():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        s.settimeout(0.3)
        s.sendto(b"ping", ("127.0.0.1", BAIT["udp"]))
        return s.recv(64) == b"host answer"


@probe
def abstract_socket_of_host():
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as s:
        s.settimeout(5)
        s.connect("\0" + BAIT["abstract"])
        return s.recv(64) == b"host service"


@probe
def path_socket_of_host():
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as s:
        s.settimeout(5)
        s.connect(BAIT["unix"])
        return s.recv(64) == b"host service"


@probe
def datagram_to_path_socket_of_host():
    """socketpair(SOCK_DGRAM) and sendto: no connect(2) involved."""
    one, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    other.setblocking(False)
    try:
        one.sendto(b"attack", BAIT["unix_dgram"])
        # a pair that is none of datagrams sends to its other end, whatever the address
        return other.recv(9) == b""
    except BlockingIOError:
        return True
    finally:
        one.close()
        other.close()


@probe
def raw_socket():
    socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP).close()
    return True


@probe
def packet_socket():
    socket.socket(socket.AF_PACKET, socket.SOCK_RAW).close()
    return True


@probe
def alg_socket():
    socket.socket(38, socket.SOCK_SEQPACKET).close()
    return True


# kernel surface ------------------------------------------------------------------------------------------------
@probe
def new_user_namespace():
    return in_child(lambda: sysc(272, CLONE_NEWUSER))


@probe
def new_mount_namespace():
    return in_child(lambda: sysc(272, CLONE_NEWNS))


@probe
def new_user_namespace_by_clone():
    pid = sysc(56, CLONE_NEWUSER | signal.SIGCHLD, 0, 0, 0, 0)
    if pid == 0:
        os._exit(0)
    os.waitpid(pid, 0)
    return True


@probe
def new_user_namespace_by_clone3():
    arguments = struct.pack("11Q", CLONE_NEWUSER, 0, 0, 0, signal.SIGCHLD, 0, 0, 0, 0, 0, 0)
    pid = sysc(435, ctypes.c_char_p(arguments), len(arguments))
    if pid == 0:
        os._exit(0)
    os.waitpid(pid, 0)
    return True


@probe
def chroot():
    return in_child(lambda: os.chroot("/usr"))


@probe
def io_uring():
    parameters = ctypes.create_string_buffer(120)
    return os.close(sysc(425, 1, parameters)) is None


@probe
def bpf():
    attributes = ctypes.create_string_buffer(struct.pack("IIII", 2, 4, 8, 1) + b"\0" * 104)   # a small array map
    return os.close(sysc(321, 0, attributes, 120)) is None


@probe
def perf_event():
    attributes = ctypes.create_string_buffer(struct.pack("IIQ", 1, 112, 1) + b"\0" * 96)
    return os.close(sysc(298, attributes, 0, -1, -1, 0)) is None


@probe
def userfaultfd():
    return os.close(sysc(323, 0)) is None


@probe
def keyring():
    return sysc(248, b"user", b"attack", b"x", 1, -1) > 0      # add_key to the thread keyring


@probe
def kernel_log():
    return sysc(103, 3, ctypes.create_string_buffer(64), 64) >= 0


@probe
def module_loading():
    try:
        sysc(175, ctypes.create_string_buffer(8), 8, b"")
    except OSError as e:
        if e.errno in (errno.EPERM, errno.ENOSYS, errno.EACCES):
            raise
    return True         # the kernel looked at the (bad) module: we were allowed


# posture -------------------------------------------------------------------------------------------------------
def status():
    with open("/proc/self/status", encoding="ascii", errors="replace") as f:
        return dict(line.rstrip("\n").split(":\t", 1) for line in f if ":\t" in line)


@probe
def has_capabilities():
    return any(int(status()[k], 16) for k in ("CapInh", "CapPrm", "CapEff", "CapAmb"))


@probe
def may_gain_privileges():
    return status()["NoNewPrivs"] != "1"


@probe
def no_syscall_filter():
    return status()["Seccomp"] != "2"


@probe
def is_root():
    return 0 in os.getresuid() + os.getresgid()


@probe
def become_root():
    return in_child(lambda: os.setresuid(0, 0, 0))


@probe
def inherited_descriptors():
    extra = {n: target for n, target in DESCRIPTORS.items() if n > 2}
    if not extra:
        raise PermissionError("only 0, 1 and 2")
    return True


@probe
def environment_of_host():
    return BAIT["env_text"] in json.dumps(dict(os.environ))


@probe
def environment_of_pid1():
    with open("/proc/1/environ", "rb") as f:
        return bool(f.read())


def main():
    said = {}
    for name, attack in PROBES.items():
        try:
            said[name] = {"open": bool(attack()), "why": "it worked"}
        except Exception as e:
            said[name] = {"open": False, "why": f"{type(e).__name__}: {e}"}
    print(json.dumps(said))


main()
