"""Network none: nothing is reachable, by any family, protocol or trick."""
import pytest

from helpers import requirement
from helpers.places import IS_ROOT

pytestmark = requirement("R12", "R14", "R66")
MODES = ["standard", "max", "light"]

REACH = """
import socket, struct, sys, errno
def attempt(name, f):
    try: f(); print('REACHED', name)
    except OSError as e: print(name, errno.errorcode.get(e.errno, e.errno))
def tcp(host, port, family=socket.AF_INET):
    s = socket.socket(family, socket.SOCK_STREAM); s.settimeout(2); s.connect((host, port))
def udp(host, port, family=socket.AF_INET):
    s = socket.socket(family, socket.SOCK_DGRAM); s.settimeout(1); s.sendto(b'ping', (host, port)); s.recv(10)
"""


ADDRESSES = ["169.254.169.254", "100.100.100.200", "168.63.129.16", "10.0.0.1", "192.168.0.1", "172.16.0.1", "8.8.8.8",
             "1.1.1.1", "0.0.0.0", "255.255.255.255", "224.0.0.1", "127.0.0.53", "127.1.2.3"]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("target", ADDRESSES)
def test_no_address_is_reachable(sandbox, bait, mode, target):
    code = REACH + f"""
for port in (80, 443, 53, 22, {bait.tcp}):
    attempt('tcp %d' % port, lambda: tcp({target!r}, port))
"""
    result = sandbox(code, flags=["--mode", mode, "--timeout", "60"])
    assert result.ok and "REACHED" not in result.out, result


@pytest.mark.parametrize("mode", MODES)
def test_v6_and_mapped_addresses(sandbox, bait, bare, mode):
    code = REACH + "".join(f"attempt({a!r}, lambda: tcp({a!r}, {p}, socket.AF_INET6))\n" for a, p in (
        ("::1", bait.tcp6), ("::ffff:127.0.0.1", bait.tcp), ("::ffff:169.254.169.254", 80), ("fe80::1", 80),
        ("fd00:ec2::254", 80),
        ("64:ff9b::7f00:1", bait.tcp), ("2001:db8::1", 443)))
    real = REACH + f"attempt('::1', lambda: tcp('::1', {bait.tcp6}, socket.AF_INET6))"
    assert "REACHED ::1" in bare(real).out, "the attack is real"
    result = sandbox(code, flags=["--mode", mode])
    assert result.ok and "REACHED" not in result.out, result


@pytest.mark.parametrize("mode", MODES)
def test_udp_and_broadcast(sandbox, bait, bare, mode):
    host = f"\nattempt('host', lambda: udp('127.0.0.1', {bait.udp}))\n"
    assert "REACHED host" in bare(REACH + host).out, "the attack is real"
    result = sandbox(REACH + host + """
attempt('dns', lambda: udp('127.0.0.53', 53))
attempt('other dns', lambda: udp('8.8.8.8', 53))
def multicast():
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
    s.sendto(b'x', ('224.0.0.251', 5353))
    s.settimeout(.5)
    s.recv(9)
attempt('mdns', multicast)
""", flags=["--mode", mode])
    assert "REACHED" not in result.out, result


# protocol → a function that returns only when somebody answered, or when the socket alone is too much
PROTOCOLS = {
    "icmp raw": "socket.socket(2, 3, 1)",
    "icmp datagram": """s = socket.socket(2, 2, 1); s.settimeout(1)
    s.sendto(b'\\x08' + b'\\0' * 7, ('127.0.0.1', 0)); s.recv(99)""",
    "packet": "socket.socket(17, 3, 768)",
    "netlink audit": "s = socket.socket(16, 3, 9); s.bind((0, 0)); s.send(b'\\0' * 16)",
    "netlink netfilter": """s = socket.socket(16, 3, 12); s.bind((0, 0)); s.settimeout(1)
    s.send(struct.pack('IHHII', 20, 0x0a00, 0x305, 1, 0) + b'\\0' * 4)
    if struct.unpack_from('i', s.recv(4096), 16)[0] < 0: raise OSError(1, 'an error came back')""",
    "sctp": "socket.socket(2, 5, 132)",
    "vsock": "socket.socket(40, 1).connect((2, 22))",
    "udplite": "s = socket.socket(2, 2, 136); s.settimeout(1); s.sendto(b'x', ('127.0.0.1', 9)); s.recv(9)",
    "mptcp": "socket.socket(2, 1, 262).connect(('127.0.0.1', 9))",
    "raw ipproto": "socket.socket(2, 3, 255)",
}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_other_protocols(sandbox, mode, protocol):
    code = REACH + f"def it():\n    {PROTOCOLS[protocol]}\nattempt('it', it)\n"
    result = sandbox(code, flags=["--mode", mode])
    assert result.ok and "REACHED" not in result.out and "it " in result.out, result


@pytest.mark.parametrize("mode", MODES)
def test_abstract_and_path_sockets(sandbox, bait, bare, mode):
    binds = [[], ["--bind", f"{bait.root}:{bait.root}"], ["--bind", f"{bait.root}:{bait.root}:rw"]]
    if mode == "light" and IS_ROOT:
        binds.pop()         # refused: root's own folder, and nothing maps its owner
    code = REACH + (f"def unix(kind, a): s = socket.socket(socket.AF_UNIX, kind); s.settimeout(2); s.connect(a); "
                    f"s.recv(9) if kind == 1 else s.send(b'x')\n"
                    f"attempt('abstract', lambda: unix(1, '\\0{bait.abstract}'))\nattempt('path', lambda: unix(1, "
                    f"{bait.path!r}))\n"
                    f"attempt('dgram', lambda: unix(2, {bait.dgram!r}))\n"
                    f"pair = lambda: socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)[0]\nattempt('pair', lambda: "
                    f"pair().sendto(b'x', {bait.dgram!r}))\n"
                    f"attempt('sendmsg', lambda: pair().sendmsg([b'x'], [], 0, {bait.dgram!r}))\n"
                    f"attempt('abstract dgram', lambda: socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM).sendto(b'x', "
                    f"'\\0{bait.abstract}'))\n")
    plain = bare(code).out
    assert all(f"REACHED {w}" in plain for w in ("abstract", "path", "dgram", "pair", "sendmsg")), plain
    for flags in binds:
        result = sandbox(code, flags=["--mode", mode, *flags])
        assert result.ok and "REACHED" not in result.out, (flags, result)


PAIRS = """
import array, socket, struct
def end(kind=socket.SOCK_DGRAM, **kw):
    a, b = socket.socketpair(socket.AF_UNIX, kind, **kw)
    a.settimeout(5); b.settimeout(5)
    return a, b
a, b = end()
for text in (b'one', b'', b'x' * 60000):
    a.send(text)
print([len(b.recv(99999)) for _ in range(3)])
a.sendmsg([b'fd'], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array('i', [0]))])
print(len(b.recvmsg(9, 99)[1]), a.getsockname() == '', a.get_inheritable())
c, d = end(socket.SOCK_DGRAM | socket.SOCK_NONBLOCK)
c.setblocking(False)
try: c.recv(1)
except BlockingIOError: print('does not wait')
# to another address: where the pair's other end is, or nowhere
try: c.sendto(b'astray', {bait!r})
except OSError as e: print(e)
else: print('peer', d.recv(9))
# one of them is told, the kernel's own way
import ctypes, os
c = ctypes.CDLL(None, use_errno=True)
before = len(os.listdir('/proc/self/fd'))
print(c.socketpair(1, 2, 0, None), ctypes.get_errno(), c.socketpair(1, 2, 7, (ctypes.c_int * 2)()), len(os.listdir('/proc/self/fd')) - before)
"""


@requirement("R26")
@pytest.mark.parametrize("mode", MODES)
def test_datagram_pairs_work_and_lead_nowhere(sandbox, bait, mode):
    """Issue 13 A8: what a runtime makes for itself works, where connecting is watched over."""
    flags = ["--mode", mode] + ([] if mode == "light" and IS_ROOT else ["--bind", f"{bait.root}:{bait.root}"])
    result = sandbox(PAIRS.replace("{bait!r}", repr(str(bait.dgram))), flags=flags)
    assert result.ok, result
    told = result.out.splitlines()
    assert told[:3] == ["[3, 0, 60000]", "1 True False", "does not wait"], result
    assert told[3] == "peer b'astray'", result
    assert told[4] == "-1 14 -1 0", result


def test_well_known_sockets_of_the_host(sandbox):
    code = REACH + ("import glob\nfor p in ['/var/run/docker.sock', '/run/docker.sock', "
                    "'/run/containerd/containerd.sock', '/run/systemd/private', "
                    "'/run/dbus/system_bus_socket', '/run/user/0/bus', '/run/user/1000/bus', '/tmp/.X11-unix/X0', "
                    "'/run/podman/podman.sock'] + glob.glob('/run/**/*.sock', recursive=True):\n"
                    " def f(): s = socket.socket(socket.AF_UNIX); s.connect(p)\n attempt(p, f)\n")
    result = sandbox(code)
    assert result.ok and "REACHED" not in result.out, result


@pytest.mark.parametrize("mode", ["standard", "max"])
def test_own_loopback_works_and_nobody_outside_sees_it(cloche, mode):
    import socket
    import subprocess
    code = ("import socket\ns=socket.create_server(('127.0.0.1', 0)); p=s.getsockname()[1]; "
            "c=socket.create_connection(('127.0.0.1', p)); "
            "print(p, flush=True); input()")
    process = cloche.popen("run", "--mode", mode, "--", "/usr/bin/python3", "-c", code, stdin=subprocess.PIPE)
    port = int(process.stdout.readline())
    with pytest.raises(OSError):
        socket.create_connection(("127.0.0.1", port), 2)
    process.communicate(b"\n", timeout=60)


def test_interfaces_are_only_loopback(sandbox):
    assert sandbox("import socket; print([n for _, n in socket.if_nameindex()])").out == "['lo']\n"


def test_names_do_not_resolve(sandbox):
    code = """
import socket
for n in ('example.org', 'metadata.google.internal'):
    try: print('REACHED', socket.getaddrinfo(n, 80))
    except OSError as e: print('no', n)
print(socket.gethostbyname('localhost'))
"""
    result = sandbox(code, flags=["--timeout", "60"])
    assert result.ok and "REACHED" not in result.out and result.out.endswith("127.0.0.1\n"), result


def test_network_cannot_be_configured(sandbox):
    code = ("import fcntl,socket,struct\ns=socket.socket(2,2)\n"
            "for r in (0x8914, 0x8916, 0x890b, 0x8922, 0x89a2):\n try: fcntl.ioctl(s, r, struct.pack('16s24s', b'lo', "
            "b'\\0'*24)); print('worked', hex(r))\n except OSError: pass\n"
            "try: open('/dev/net/tun'); print('worked tun')\nexcept OSError: pass\n"
            "try: s=socket.socket(16,3,0); s.bind((0,0)); s.send(struct.pack('IHHIIBxHiII', 32, 16, 0x605, 1, 0, 0, 0, "
            "0, 0, 0)); r=s.recv(4096); print('worked route' if struct.unpack_from('i', r, 16)[0]==0 else "
            "'refused')\nexcept OSError: pass")
    result = sandbox(code)
    assert result.ok and "worked" not in result.out, result


def test_host_network_only_when_asked(cloche, bait):
    code = f"import socket; print(socket.create_connection(('127.0.0.1', {bait.tcp}), 5).recv(20))"
    opened = cloche.sandbox(code, flags=["--network", "host"])
    assert "host service" in opened.out and "warning" in opened.err.lower(), opened
    assert not cloche.sandbox(code).ok
    # Even then the abstract sockets and paths of the host stay closed.
    abstract = f"import socket; s=socket.socket(socket.AF_UNIX); s.connect('\\0{bait.abstract}'); print(s.recv(20))"
    assert "host service" not in cloche.sandbox(abstract, flags=["--network", "host"]).out
