"""cloche exec: commands in a daemon's sandbox from a terminal or a script."""
import os
import pty
import select
import signal
import subprocess

import pytest

from helpers import requirement
from helpers.daemon import token
from helpers.runner import wait_for
from helpers.shared import shared

pytestmark = [requirement("R61", "R65"), shared]


def words(daemon, *rest):
    return ("exec", "--socket", str(daemon.path), *rest)


def test_a_command(daemon, box):
    cloche = daemon.cloche
    done = cloche(*words(daemon, "one", "--", "/bin/sh", "-c", "echo out; echo err >&2; exit 7"))
    assert (done.code, done.out, done.err) == (7, "out\n", "err\n"), done
    assert cloche(*words(daemon, box.id, "echo", "-n", "a  b")).out == "a  b"
    assert cloche(*words(daemon, "--cwd", "/tmp", "--env", "A=b=c", "one", "sh", "-c", "pwd; echo $A")).out == "/tmp\nb=c\n"
    # without -i there is nothing to read
    assert cloche(*words(daemon, "one", "cat"), stdin=b"not for it").out == ""


@pytest.mark.parametrize("command, code", [
    (("sh", "-c", "kill -9 $$"), 137), (("sh", "-c", "exit 255"), 255), (("no-such-program",), 127), (("/etc/passwd",), 126),
])
def test_exit_codes(daemon, box, command, code):
    assert daemon.cloche(*words(daemon, "one", *command)).code == code


def test_time_and_refusals(daemon, box):
    cloche = daemon.cloche
    assert cloche(*words(daemon, "--timeout", "300ms", "one", "sleep", "1000")).code == 124
    for rest, said in ((("nobody", "true"), "sandbox.not-found"), (("one",), "cli.exec"), ((), "cli.exec"), (("--timeout", "x", "one", "true"), "cli.flag-value"),
                       (("--env", "A", "one", "true"), "cli.flag-value"), (("--none", "one", "true"), "cli.unknown-flag"), (("-x", "one", "true"), "cli.unknown-flag"),
                       (("--cwd", "/none", "one", "true"), "exec.cwd"), (("-d", "--cwd", "/none", "one", "true"), "exec.cwd"),
                       (("--cwd", "/tmp/..", "one", "true"), "exec.cwd")):
        refused = cloche(*words(daemon, *rest))
        assert refused.code == 125 and said in refused.err and refused.out == "", (rest, refused)
    assert cloche(*words(daemon, "-d", "one", "no-such-program")).code == 127
    assert cloche("exec", "--socket", str(cloche.home / "none"), "one", "true").code == 125


def test_much_of_everything(daemon, box):
    """More than all buffers hold, both ways, bytes of every kind, and nothing is lost."""
    data = bytes(range(256)) * 4096
    done = daemon.cloche(*words(daemon, "-i", "one", "cat"), stdin=data)
    assert done.code == 0 and done.out_bytes == data
    flood = daemon.cloche(*words(daemon, "one", "sh", "-c", "seq 1 100000; echo over >&2"))
    assert flood.out.endswith("99999\n100000\n") and flood.out.count("\n") == 100000 and flood.err == "over\n"


def test_a_reader_that_goes_away(daemon, box):
    """As in a pipe: what is not read is dropped, and the command goes on to its own end."""
    process = daemon.cloche.popen(*words(daemon, "one", "sh", "-c", "echo first; cat /proc/self/status; exit 3"), stdout=subprocess.PIPE, bufsize=0)
    assert process.stdout.read(6) == b"first\n"
    process.stdout.close()
    assert process.wait(90) == 3


def test_signals_go_to_the_command(daemon, box):
    process = daemon.cloche.popen(*words(daemon, "one", "sh", "-c", "trap 'echo int; exit 5' INT; echo ready; while :; do sleep 0.05; done"),
                                  stdout=subprocess.PIPE, bufsize=0)
    assert process.stdout.read(6) == b"ready\n"
    process.send_signal(signal.SIGINT)
    assert process.stdout.read() == b"int\n" and process.wait(90) == 5


def test_it_ends_with_its_client(daemon, box):
    process = daemon.cloche.popen(*words(daemon, "one", "sh", "-c", "echo ready; exec sleep 4324"), stdout=subprocess.PIPE, bufsize=0)
    assert process.stdout.read(6) == b"ready\n"
    process.kill()
    process.wait()
    process.stdout.close()
    assert wait_for(lambda: box.daemon.get(f"{box.at}/usage").json["usage"][0]["operations"] == 0, 60)


def test_a_terminal(daemon, box):
    """-it: the caller's terminal is raw meanwhile, and as it was afterwards; its size is the command's."""
    ours, theirs = pty.openpty()
    before = subprocess.run(["stty", "-g"], stdin=theirs, capture_output=True, check=True).stdout
    subprocess.run(["stty", "rows", "30", "cols", "90"], stdin=theirs, check=True)
    process = daemon.cloche.popen(*words(daemon, "-it", "one", "sh", "-c", "stty size; echo ready; read -r line; echo \"got $line\"; exec sleep 1000"),
                                  stdin=theirs, stdout=theirs, stderr=theirs)
    heard = b""

    def until(text):
        nonlocal heard
        while text not in heard:
            assert select.select([ours], [], [], 90)[0], heard
            heard += os.read(ours, 4096)
    until(b"ready\r\n")
    assert b"30 90\r\n" in heard
    os.write(ours, b"typed\r")
    until(b"got typed\r\n")
    os.write(ours, b"\x03")         # a byte for the terminal inside, not a signal for cloche
    assert process.wait(90) == 130
    assert subprocess.run(["stty", "-g"], stdin=theirs, capture_output=True, check=True).stdout.split(b":")[:4] == before.split(b":")[:4]
    os.close(ours)
    os.close(theirs)


def test_detached(daemon, box):
    made = daemon.cloche(*words(daemon, "-d", "-i", "one", "sh", "-c", "read -r line; echo $line; exit 4"))
    exec_id = made.out.strip()
    assert made.code == 0 and exec_id.isdigit(), made
    at = f"{box.at}/exec/{exec_id}"
    assert daemon.get(at).json["state"] == "running"
    assert daemon.post(f"{at}/stdin?end=true", b"hello\n").ok
    assert wait_for(lambda: daemon.get(at).json["exit_code"] == 4, 60)


def test_with_a_token(daemon, box):
    agent = token(daemon, "agent")["token"]
    refused = daemon.cloche(*words(daemon, "one", "true"), env={"CLOCHE_TOKEN": agent})
    assert refused.code == 125 and "sandbox.not-found" in refused.err and agent not in refused.err
