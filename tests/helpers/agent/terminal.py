"""A persistent bash on a pseudo-terminal, as agents keep one between tool calls: state, sizes, interrupts."""
import fcntl
import os
import pty
import select
import signal
import struct
import sys
import termios
import time


def main():
    pid, fd = pty.fork()
    if pid == 0:
        os.execvp("bash", ["bash", "--norc", "--noprofile", "-i"])
    fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 100, 0, 0))

    def until(word, seconds=20):
        seen = b""
        deadline = time.monotonic() + seconds
        while word not in seen:
            if time.monotonic() > deadline:
                sys.exit(f"no {word!r} in {seen!r}")
            if select.select([fd], [], [], 0.1)[0]:
                seen += os.read(fd, 65536)
        return seen

    os.write(fd, b"stty -echo; PS1=; echo rea'dy'\n")
    until(b"ready")
    os.write(fd, b"cd /tmp && export KEPT=state && stty size && echo siz'ed'\n")
    assert b"40 100" in until(b"sized")
    os.write(fd, b"sleep 1000\n")
    time.sleep(0.3)
    os.write(fd, b"\x03")
    os.write(fd, b"echo $KEPT in $PWD aft'er'\n")
    assert b"state in /tmp" in until(b"after")
    os.write(fd, b"exit 4\n")
    os.set_blocking(fd, True)
    _, status = os.waitpid(pid, 0)
    assert os.waitstatus_to_exitcode(status) == 4, status
    print("terminal ok")


signal.alarm(60)
main()
