"""Signals to cloche reach the child; a terminal's Ctrl-C too; nothing outlives us."""
import os
import signal
import subprocess

import pytest

from helpers import leaks, requirement
from helpers.places import PYTHON
from helpers.runner import wait_for

REPORTER = r"""
import os, signal, time
def said(number, _):
    os.write(1, b"got " + signal.Signals(number).name.encode() + b"\n")     # print() is not reentrant
    os._exit(33)
for s in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2, signal.SIGQUIT):
    signal.signal(s, said)
os.write(1, b"ready\n")
while True:
    time.sleep(0.05)
"""


def started(cloche, code=REPORTER, flags=(), **kw):
    process = cloche.popen("run", *flags, "--", PYTHON, "-I", "-S", "-c", code, **kw)
    assert process.stdout.readline() == b"ready\n", process.communicate(timeout=10)
    return process


@requirement("R01")
@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2"])
def test_forwarded_to_the_child(cloche, name):
    process = started(cloche)
    process.send_signal(getattr(signal, name))
    out, _ = process.communicate(timeout=60)
    assert out == f"got {name}\n".encode()
    assert process.returncode == 33


@pytest.mark.parametrize("name", ["SIGTERM", "SIGINT"])
def test_child_that_does_not_handle_it_dies_of_it(cloche, name):
    process = cloche.popen("run", "--", "sh", "-c", "echo ready; exec sleep 1000")
    assert process.stdout.readline() == b"ready\n"
    process.send_signal(getattr(signal, name))
    process.communicate(timeout=60)
    assert process.returncode == 128 + getattr(signal, name), process.returncode


@pytest.mark.ordinary
def test_forwarded_as_an_ordinary_user(cloche):
    process = started(cloche)
    process.terminate()
    assert process.communicate(timeout=60)[0] == b"got SIGTERM\n"
    assert process.returncode == 33


def test_signal_during_start_up_is_not_lost(cloche):
    """SIGTERM right after the start: cloche ends (by whatever way), it never hangs."""
    for delay in (0, 0.001, 0.003, 0.006, 0.01, 0.02):
        process = cloche.popen("run", "--", "sleep", "1000")
        try:
            process.wait(delay)
        except subprocess.TimeoutExpired:
            pass
        process.terminate()
        process.communicate(timeout=60)
        assert process.returncode in (128 + 15, -15, 125), process.returncode


def test_child_may_ignore_sigterm(cloche):
    """cloche does not end a child that handles the signal and lives on."""
    code = r"""
import os, signal, sys
signal.signal(signal.SIGTERM, lambda *_: os.write(1, b"no\n"))
os.write(1, b"ready\n")
sys.stdin.readline()
sys.exit(3)
"""
    process = started(cloche, code, stdin=subprocess.PIPE)
    process.terminate()
    assert (line := process.stdout.readline()) == b"no\n", (line, process.communicate(timeout=60), process.returncode)
    process.stdin.write(b"\n")
    process.stdin.close()
    assert process.wait(60) == 3


@requirement("R20")
def test_sigkill_of_cloche_ends_everything(cloche):
    process = started(cloche, REPORTER.replace("os._exit(33)", "pass"))
    before = set(leaks.descendants())
    process.kill()
    process.wait()
    assert wait_for(lambda: leaks.reap_adopted(set()) or not (set(leaks.descendants()) & (before - {process.pid})))


@requirement("R20")
def test_death_of_the_parent_ends_everything(cloche):
    """The shell that started cloche dies (SIGKILL): cloche and its sandbox go too, or live on as its caller wants.

    "die with parent" is about the sandbox: its parent is cloche. A cloche that is orphaned keeps running like any
    other command; ended by SIGTERM it takes all along.
    """
    shell = cloche.start(["/bin/sh", "-c", '"$@" & echo $!; wait', "sh",
                          *cloche.argv("run", "--", "sh", "-c", "sleep 1000 & sleep 1000")])
    pid = int(shell.stdout.readline())
    assert wait_for(lambda: any("sleep" in what for what in leaks.descendants().values()))
    shell.kill()
    shell.wait()
    try:
        os.kill(pid, signal.SIGTERM)
    except ProcessLookupError:
        pass
    assert wait_for(lambda: leaks.reap_adopted(set()) or not any("sleep" in w for w in leaks.descendants().values()))


def test_ctrl_c_at_a_terminal(cloche):
    """The terminal's own ^C: the child gets SIGINT once, and cloche ends with its code."""
    import pexpect
    child = pexpect.spawn(str(cloche.binary), ["run", "--", PYTHON, "-I", "-S", "-c", REPORTER], env=cloche.env,
                          cwd=str(cloche.cwd), timeout=60)
    child.expect("ready")
    child.sendintr()
    child.expect("got SIGINT")
    child.expect(pexpect.EOF)
    child.close()
    assert child.exitstatus == 33


def test_ctrl_c_kills_a_plain_command(cloche):
    import pexpect
    # not a shell: dash catches SIGINT and forgets it when it comes just before an exec
    child = pexpect.spawn(str(cloche.binary), ["run", "--", "cat"], env=cloche.env, cwd=str(cloche.cwd), timeout=60)
    child.sendline("ready")
    child.expect("ready\r\nready\r\n")
    child.sendintr()
    child.expect(pexpect.EOF)
    child.close()
    assert child.exitstatus == 130 or child.signalstatus == signal.SIGINT


def test_ctrl_backslash_and_hang_up(cloche):
    import pexpect
    child = pexpect.spawn(str(cloche.binary), ["run", "--", "sh", "-c", "echo ready; sleep 1000"], env=cloche.env,
                          cwd=str(cloche.cwd), timeout=60)
    child.expect("ready")
    child.close(force=True)         # SIGHUP, SIGCONT, SIGINT, then SIGKILL
    assert wait_for(lambda: leaks.reap_adopted(set()) or not any("sleep" in w for w in leaks.descendants().values()))


def test_stop_and_continue(cloche):
    """SIGTSTP/SIGCONT of cloche itself: it survives being stopped."""
    process = cloche.popen("run", "--", "sh", "-c", "echo ready; read x; echo $x", stdin=subprocess.PIPE)
    assert process.stdout.readline() == b"ready\n"
    process.send_signal(signal.SIGSTOP)
    process.send_signal(signal.SIGCONT)
    process.stdin.write(b"alive\n")
    process.stdin.close()
    assert process.stdout.read() == b"alive\n"
    assert process.wait(60) == 0
