"""Descriptors: the child gets 0, 1 and 2, whatever its caller held open."""
import fcntl
import json
import os
import socket

import pytest

from helpers import requirement
from helpers.places import PYTHON

pytestmark = requirement("R26")
LIST = """
import json, os
held = {}
for name in os.listdir('/proc/self/fd'):
    try: held[int(name)] = os.readlink('/proc/self/fd/' + name)
    except OSError: pass
print(json.dumps({n: t for n, t in held.items() if '/fd' not in t or not t.startswith('/proc')}))
"""


@pytest.fixture
def fifty(world):
    """Fifty inheritable descriptors of all kinds, directories among them, some with high numbers."""
    root = world.root
    held = [os.open(p, os.O_RDONLY | os.O_DIRECTORY) for p in ("/", "/etc", "/proc", "/tmp", str(root))]
    held += [os.open("/etc/passwd", os.O_RDONLY), os.open("/dev/null", os.O_RDWR), os.open("/", os.O_PATH)]
    held += [s.detach() for s in socket.socketpair()] + list(os.pipe()) + [os.memfd_create("held")]
    held += [os.pidfd_open(os.getpid()), os.eventfd(0)]
    held += [os.dup(held[i % len(held)]) for i in range(49 - len(held))]
    held += [fcntl.fcntl(held[0], fcntl.F_DUPFD, 900)]
    for fd in held:
        os.set_inheritable(fd, True)
    yield held
    for fd in held:
        os.close(fd)


@pytest.mark.parametrize("flags", [[], ["--json"], ["--pty"], ["--mode", "light"], ["--mode", "max"],
                                   ["--report", "r.json"]],
                         ids=lambda f: " ".join(f) or "plain")
def test_none_of_fifty_reaches_the_inside(cloche, bare, fifty, flags):
    assert len(json.loads(bare(LIST, pass_fds=fifty).out)) >= 50, "they do arrive without cloche"
    result = cloche.sandbox(LIST, flags=flags, pass_fds=fifty)
    text = result.json["stdout"] if "--json" in flags else result.out
    assert set(json.loads(text)) == {"0", "1", "2"}, result


@pytest.mark.ordinary
def test_none_of_fifty_for_an_ordinary_user(cloche, fifty):
    assert set(json.loads(cloche.sandbox(LIST, pass_fds=fifty).out)) == {"0", "1", "2"}


@pytest.mark.root
def test_the_guest_holds_none_of_them(cloche, fifty):
    """Looked at from the host: no process of the sandbox holds a file of the host's, but for its standard streams."""
    from helpers import leaks
    process = cloche.popen("run", "--", "sh", "-c", "echo ready; sleep 60 & read x", stdin=-1, pass_fds=fifty)
    assert process.stdout.readline() == b"ready\n"
    held = {}
    for pid in leaks.descendants(process.pid):
        for name in os.listdir(f"/proc/{pid}/fd"):
            try:
                held[pid, int(name)] = os.readlink(f"/proc/{pid}/fd/{name}")
            except OSError:
                pass
    process.kill()
    process.wait()
    directories = {k: v for k, v in held.items() if v in ("/", "/etc", "/proc", "/tmp") and k[1] > 2}
    assert held and not directories, directories


@pytest.mark.parametrize("closed", ["0", "1", "2", "0 1", "0 2", "1 2", "0 1 2"])
def test_started_with_standard_streams_closed(cloche, closed, project):
    """Whatever cloche opens must not end up as the child's 0, 1 or 2."""
    shut = " ".join(f"{n}<&-" if n == "0" else f"{n}>&-" for n in closed.split())
    code = LIST.replace("print(", "open('/workspace/said', 'w').write(")
    result = cloche.run(["/bin/sh", "-c", f'exec "$@" {shut}', "sh",
                         *cloche.argv("run", "--workspace", project, "--", PYTHON, "-I", "-S", "-c", code)])
    if result.code == 125:
        return
    held = json.loads((project / "said").read_text())
    for n in closed.split():
        assert held.get(n, "/dev/null") == "/dev/null", held
    assert set(held) <= {"0", "1", "2"} | ({str(n) for n in range(3, 5)} if closed else set()), held


def test_descriptors_of_other_processes_cannot_be_taken(sandbox):
    """pidfd_getfd, /proc/PID/fd of PID 1 and of siblings of another user: nothing of the guest can be had."""
    code = """
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True); libc.syscall.restype = ctypes.c_long
won = []
pidfd = libc.syscall(434, 1, 0)
for n in range(0, 40):
    if pidfd >= 0 and libc.syscall(438, pidfd, n, 0) >= 0: won.append(('pidfd_getfd', n))
    try: won.append(('proc', os.open(f'/proc/1/fd/{n}', os.O_RDWR)))
    except OSError: pass
print(won)
"""
    assert sandbox(code).out == "[]\n"


class Directory:
    """A directory's descriptor in the form that subprocess takes."""

    def __init__(self, fd):
        self.fd = fd

    def fileno(self):
        return self.fd


def test_a_directory_as_stdin_is_no_way_out(cloche, world, bare):
    """stdin that is a directory of the host: openat(0, "..") must not walk the host's tree."""
    (world.root / "secret").write_text("SECRET", encoding="ascii")
    inner = world.root / "inner"
    inner.mkdir()
    code = ("cat /proc/self/fd/0/../secret /dev/stdin/../secret; cd /proc/self/fd/0/.. && cat secret; "
            "cd /dev/fd/0 && cat ../secret")
    stdin = Directory(os.open(inner, os.O_RDONLY | os.O_DIRECTORY))
    try:
        assert "SECRET" in bare(code, "sh", stdin=stdin).out, "the attack is real"
        result = cloche.sandbox(code, "sh", stdin=stdin)
    finally:
        os.close(stdin.fileno())
    assert "SECRET" not in result.out, result


def test_a_read_only_stdin_cannot_be_reopened_for_writing(cloche, world):
    """/proc/self/fd/0 of a passed-through file: opening it again does not give more than was given."""
    path = world.root / "input"
    path.write_text("given", encoding="ascii")
    path.chmod(0o666)
    code = ("import os\ntry:\n fd = os.open('/proc/self/fd/0', os.O_WRONLY); os.write(fd, b'EVIL!')\n"
            "except OSError as e: print('errno', e.errno)")
    with open(path, "rb") as f:
        cloche.sandbox(code, stdin=f)
    assert path.read_text() == "given"


def test_passing_descriptors_back_out_is_impossible(sandbox):
    """SCM_RIGHTS needs a peer outside: there is no socket that leads there."""
    code = ("import os,stat\nprint([n for n in range(0, 64) if os.path.exists(f'/proc/self/fd/{n}') "
            "and stat.S_ISSOCK(os.fstat(n).st_mode)])")
    assert sandbox(code).out == "[]\n"
