"""Terminal injection and other ioctls: nothing typed from inside reaches the caller's shell."""
import fcntl
import os
import termios

import pytest

from helpers import requirement
from helpers.places import PYTHON

pytestmark = requirement("R26")
# libc's ioctl takes an unsigned long: high bits survive (Python's own fcntl.ioctl would cut them off).
IOCTL = ("import ctypes,sys\nl=ctypes.CDLL(None,use_errno=True)\n"
         "def ioctl(fd, request, arg):\n"
         " r=l.syscall(ctypes.c_long(16), ctypes.c_long(fd), ctypes.c_ulong(request), arg)\n"
         " e=ctypes.get_errno()\n print('errno=' + __import__('errno').errorcode[e] if r < 0 else 'worked')\n")
TIOCSTI, TIOCLINUX, TIOCSETD, TIOCCONS = 0x5412, 0x541C, 0x5423, 0x541D
HIGH = [0, 1 << 32, 0xffffffff << 32, 1 << 63, 0xdead << 32]


def attempt(request, argument="ctypes.c_char_p(b'x')"):
    return IOCTL + f"ioctl(0, {request}, {argument})"


@pytest.mark.parametrize("high", HIGH, ids=hex)
@pytest.mark.parametrize("flags", [["--pty"], ["--no-pty"], ["--mode", "light"], ["--mode", "max"]], ids=" ".join)
def test_tiocsti_is_refused_with_any_high_bits(cloche, bare, high, flags):
    attack = attempt(TIOCSTI | high)
    if high == 0 and "worked" not in bare(attack, pty=True).out:
        pytest.skip("this kernel refuses TIOCSTI to us anyway")
    result = cloche.sandbox(attack, flags=flags, pty=True)
    assert result.errno in ("EPERM", "ENOTTY", "EIO"), result
    assert "worked" not in result.out


@pytest.mark.parametrize("high", HIGH, ids=hex)
@pytest.mark.parametrize("request_number", [TIOCLINUX, TIOCSETD, TIOCCONS], ids=["TIOCLINUX", "TIOCSETD", "TIOCCONS"])
def test_other_dangerous_terminal_ioctls(cloche, request_number, high):
    result = cloche.sandbox(attempt(request_number | high, "ctypes.byref(ctypes.c_int(2))"), flags=["--pty"], pty=True)
    assert "worked" not in result.out and result.errno, result


def test_injected_input_does_not_reach_the_callers_terminal(cloche):
    """End to end: after the sandbox, our own terminal has nothing to read."""
    master, slave = os.openpty()
    code = IOCTL + "[ioctl(0, 0x5412 | h, ctypes.c_char_p(c)) for c in (b'i', b'd', b'\\n') for h in (0, 1 << 32)]"
    try:
        attributes = termios.tcgetattr(slave)
        attributes[3] &= ~(termios.ICANON | termios.ECHO)
        termios.tcsetattr(slave, termios.TCSANOW, attributes)
        for flags in (["--no-pty"], ["--pty"], ["--no-pty", "--mode", "light"]):
            process = cloche.popen("run", *flags, "--", PYTHON, "-I", "-S", "-c", code, stdin=slave)
            process.communicate(timeout=60)
            waiting = bytearray(4)
            fcntl.ioctl(slave, termios.FIONREAD, waiting)
            assert int.from_bytes(waiting, "little") == 0, f"{flags}: injected input is waiting"
    finally:
        os.close(master)
        os.close(slave)


def test_the_callers_terminal_is_not_the_childs_controlling_terminal(cloche):
    """With a pty of its own the child cannot open the caller's /dev/tty, nor signal its group."""
    code = ("import os\nprint(os.ttyname(0))\n"
            "fd = os.open('/dev/tty', os.O_RDWR); print(os.ttyname(0), os.tcgetpgrp(fd) == os.getpgrp())\n")
    result = cloche.sandbox(code, flags=["--pty"], pty=True)
    assert result.out.split()[0].startswith("/dev/pts/"), result
    assert result.out.split()[-1] == "True"


def test_without_a_pty_there_is_no_controlling_terminal(cloche):
    code = ("import os\ntry: os.open('/dev/tty', os.O_RDWR); print('opened')\n"
            "except OSError as e: print('errno', e.errno)")
    result = cloche.sandbox(code, flags=["--no-pty"], pty=True)
    assert "opened" not in result.out, result


def test_the_terminal_of_the_caller_cannot_be_read_after_the_run(cloche):
    """A straggler that keeps stdin cannot read the password typed next: it is dead."""
    result = cloche.sandbox("import os,time\nif os.fork()==0:\n os.setsid()\n while True: os.read(0, 100); "
                            "time.sleep(.01)\n", flags=["--no-pty"], pty=True)
    assert result.code == 0, result


def test_other_terminals_of_the_host_are_not_there(cloche):
    result = cloche("run", "--pty", "--", "ls", "/dev/pts")
    assert set(result.out.split()) <= {"0", "ptmx"}, result


def test_stdout_terminal_cannot_be_reopened_for_reading(cloche):
    """--no-pty with a terminal on stdout only: reading it would be reading the caller's keyboard."""
    code = ("import os\n"
            "for path in ('/proc/self/fd/1', '/dev/stdout', '/dev/tty'):\n"
            " try:\n  fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY); os.write(2, b'reopened ' + "
            "path.encode() + b'\\n')\n"
            " except OSError: pass\n")
    master, slave = os.openpty()
    try:
        process = cloche.popen("run", "--no-pty", "--", PYTHON, "-I", "-S", "-c", code, stdout=slave)
        _, err = process.communicate(timeout=60)
        assert b"reopened" not in err, err
    finally:
        os.close(master)
        os.close(slave)


@pytest.mark.parametrize("high", [0, 1 << 32], ids=hex)
@pytest.mark.parametrize("flags", [["--no-pty"], ["--no-pty", "--mode", "light"], ["--no-pty", "--mode", "max"]], ids=" ".join)
def test_the_callers_terminal_is_not_closed_to_its_other_programs(anyone, flags, high):
    """TIOCEXCL outlives who sets it: ssh, gpg and the like could not open /dev/tty any more, until that terminal's end."""
    exclusive, excl = 0x80045440, 0x540C
    master, slave = os.openpty()
    try:
        anyone.popen("run", *flags, "--", PYTHON, "-I", "-S", "-c", attempt(excl | high, "None"), stdin=slave).communicate(timeout=60)
        state = bytearray(4)
        fcntl.ioctl(slave, exclusive, state)
        assert not any(state), flags
    finally:
        os.close(master)
        os.close(slave)
