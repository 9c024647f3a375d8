# tried: reach io_uring, bpf, userfaultfd, keyctl, perf and AF_PACKET
# would: put a kernel bug of the year within reach
# bare: no
import ctypes, os, socket, sys
libc = ctypes.CDLL(None, use_errno=True)
calls = {"io_uring_setup": 425, "bpf": 321, "userfaultfd": 323, "keyctl": 250, "perf_event_open": 298}
if os.uname().machine != "x86_64":
    calls = {"io_uring_setup": 425, "bpf": 280, "userfaultfd": 282, "keyctl": 219, "perf_event_open": 241}
memory = ctypes.create_string_buffer(256)
reached = []
for name, number in calls.items():
    ctypes.set_errno(0)
    # The arguments are sound enough that a reachable call answers otherwise than "no such call, not permitted".
    if libc.syscall(number, 1 if name == "io_uring_setup" else 0, memory, 0, 0, 0) >= 0 or \
            ctypes.get_errno() not in (1, 38):
        reached.append(name)
try:
    socket.socket(17, socket.SOCK_RAW)
    reached.append("AF_PACKET")
except OSError:
    pass
if reached:
    print("reached", *reached)
    sys.exit(0)
print("all six are closed")
sys.exit(3)
