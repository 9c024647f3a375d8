"""Mode light has the host's /dev: of what is in it a command gets what leads to nobody else, and terminals of its own.

The attack: in another of the user's terminals a password is typed, and shown what the sandbox wrote.
"""
import os
import stat
import subprocess
from contextlib import contextmanager

import pytest

from helpers import places, requirement

pytestmark = [requirement("R26"), pytest.mark.ordinary]

ATTACK = """
import os, sys
def attempt(what, fn):
    try: print(what, "open", fn())
    except OSError as why: print(what, "refused")
def opened(flags):
    fd = os.open(path, flags | os.O_NOCTTY | os.O_NONBLOCK)
    return os.read(fd, 100) if flags == os.O_RDONLY else "written %d" % os.write(fd, b"evil")
for path in sys.argv[1:]:
    attempt("read", lambda: opened(os.O_RDONLY))
    attempt("write", lambda: opened(os.O_WRONLY))
    attempt("both", lambda: opened(os.O_RDWR))
    attempt("through", lambda: os.write(os.open("/proc/self/fd/%d" % os.open(path, os.O_PATH), os.O_RDWR | os.O_NOCTTY), b"evil"))
    attempt("mode", lambda: os.chmod(path, 0o666))
    attempt("times", lambda: os.utime(path))
    attempt("link", lambda: (os.symlink(path, "l"), os.write(os.open("l", os.O_WRONLY | os.O_NOCTTY), b"evil")))
"""

MAKES_ITS_OWN = """
import os, pty
master, slave = os.openpty()
os.write(master, b"hi\\n")
print(os.read(slave, 10), os.open(os.ttyname(slave), os.O_RDWR | os.O_NOCTTY) > 2)
pid, master = pty.fork()
if pid == 0:
    os.execv("/bin/sh", ["sh", "-c", "echo a >/dev/tty; echo b >$(tty); echo c >/dev/stderr; cat /dev/stdin <$(tty)"])
os.write(master, b"typed\\n\\4")
said = b""
try:
    while (more := os.read(master, 100)): said += more
except OSError:
    pass
print(said)
"""


@contextmanager
def terminal_of(person):
    """A terminal of the user who runs cloche, in which something was typed: its two ends, and its name."""
    master, slave = os.openpty()
    try:
        if person is not None:
            os.fchown(slave, person.pw_uid, person.pw_gid)
        os.fchmod(slave, 0o620)
        os.write(master, b"a password\n")
        yield master, slave, os.ttyname(slave)
    finally:
        os.close(master)
        os.close(slave)


def assert_all_refused(said):
    lines = said.splitlines()
    assert len(lines) >= 7 and all(line.endswith(" refused") for line in lines), said


@pytest.mark.parametrize("flags", [[], ["--pty", "--quiet"]], ids=["pipes", "terminal"])
@pytest.mark.parametrize("access", ["rw", "ro"])
def test_another_terminal_of_the_users(cloche, flags, access):
    with terminal_of(cloche.person) as (master, slave, name):
        before = os.fstat(slave).st_mode
        words = ["--mode", "light", "--workspace", f"{cloche.project}:{access}", *flags]
        said = cloche("run", *words, "--", places.PYTHON, "-I", "-S", "-c", ATTACK, name, pty=bool(flags))
        assert_all_refused(said.out)
        os.set_blocking(master, False)
        assert b"evil" not in os.read(master, 1000)
        assert stat.S_IMODE(os.fstat(slave).st_mode) == stat.S_IMODE(before)


def test_a_terminal_that_is_opened_later(cloche):
    """... under the number of one that a command had made itself."""
    wait = "import sys; sys.stdin.readline()\n"
    mine = "import os\nm, s = os.openpty(); print(os.ttyname(s), flush=True); os.close(m); os.close(s)\n"
    process = cloche.popen("run", "--mode", "light", "--", places.PYTHON, "-I", "-S", "-c",
                           mine + wait + "sys.argv = ['x', sys.stdin.readline().strip()]\n" + ATTACK, stdin=subprocess.PIPE)
    process.stdout.readline()
    with terminal_of(cloche.person) as (_, _, name):
        out, err = process.communicate(f"\n{name}\n".encode(), timeout=60)
    assert process.returncode == 0, err
    assert_all_refused(out.decode())


def test_a_command_has_terminals_that_it_makes(cloche):
    said = cloche("run", "--mode", "light", "--", places.PYTHON, "-I", "-S", "-c", MAKES_ITS_OWN)
    first, second = said.out.splitlines()
    assert first == r"b'hi\n' True", said
    assert all(word in second for word in ("a\\r\\n", "b\\r\\n", "c\\r\\n", "typed")), said


def test_other_devices_and_the_files_in_dev_shm(cloche):
    path = f"/dev/shm/cloche-test-{os.getpid()}"
    with open(path, "w", encoding="ascii") as file:
        if cloche.person is not None:
            os.fchown(file.fileno(), cloche.person.pw_uid, cloche.person.pw_gid)
    try:
        said = cloche("run", "--mode", "light", "--", "/bin/sh", "-c",
                      f"chmod 666 {path} 2>&-|| echo refused; touch {path} 2>&- || echo refused; "
                      "for d in null zero full random urandom; do head -c 1 /dev/$d >/dev/null || echo closed $d; done; "
                      "head -c 1 /dev/kmsg 2>&- || echo refused; echo x >/dev/null && echo open")
    finally:
        os.unlink(path)
    assert said.out.splitlines() == ["refused", "refused", "refused", "open"], said
