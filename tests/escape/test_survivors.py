"""Processes that try to outlive the sandbox: daemons, sessions, ignored signals, stopped and traced ones."""
import os
import signal
import time
import uuid

import pytest

from helpers import leaks, requirement
from helpers.runner import wait_for

pytestmark = requirement("R20", "R22")

# Each starts something that wants to stay, says ready, and (for the first way of ending) leaves.
WAYS = {
    "background child": "sleep 77777 &",
    "nohup": "nohup sleep 77777 >/dev/null 2>&1 &",
    "setsid": "setsid sleep 77777 &",
    "double fork": "(setsid sh -c 'sleep 77777 & exit 0' &)",
    "ignores every signal": "(trap '' HUP INT TERM QUIT USR1 USR2 ALRM; while :; do sleep 7777; done) &",
    "stopped": "sleep 77777 & kill -STOP $!",
    "renamed": "(exec -a '[kworker/0:1]' sleep 77777) &",
    "nested shells": "sh -c 'sh -c \"sh -c \\\"sleep 77777 &\\\" &\" &'",
    "holds all streams": "sleep 77777 <&0 >&1 2>&2 &",
    "own pty": "script -qfc 'sleep 77777' /dev/null >/dev/null 2>&1 &",
    "traced": "python3 -c \"import os,ctypes,signal\np=os.fork()\nif p==0:\n ctypes.CDLL(None).ptrace(0,0,0,0); "
              "os.kill(os.getpid(),19); signal.pause()\nos.waitpid(p,2); signal.pause()\" &",
    "vfork in progress": "python3 -c \"import ctypes,os\nl=ctypes.CDLL(None)\nif l.syscall(58)==0:\n l.sleep(77777)\" "
                         "&",
    "subreaper of its own": "python3 -c \"import ctypes,os,time\nctypes.CDLL(None).prctl(36,1,0,0,0)\nif "
                            "os.fork()==0:\n "
                            "os.setsid()\n if os.fork()==0: time.sleep(77777)\n os._exit(0)\ntime.sleep(77777)\" &",
    "first thread gone": "python3 -c \"import ctypes,os,threading,time\nif os.fork()==0:\n "
                         "threading.Thread(target=time.sleep,args=(77777,)).start()\n "
                         "ctypes.CDLL(None).syscall(ctypes.c_long(60 if os.uname().machine=='x86_64' else 93),0)\" &",
    "respawner": "(while :; do (trap '' TERM; sleep 0.05); done) & (while :; do setsid sleep 0.05; done) &",
}


def gone(pid):
    """Everything below @pid, and what was re-parented to us."""
    return wait_for(lambda: leaks.reap_adopted(set()) or not [p for p in leaks.descendants() if p != pid])


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("mode", ["standard", "light"])
def test_gone_when_the_command_ends(cloche, way, mode):
    result = cloche("run", "--mode", mode, "--", "bash", "-c", WAYS[way] + "\nsleep 0.2; echo ready")
    assert result.out.endswith("ready\n"), result
    assert gone(None)


@pytest.mark.parametrize("way", WAYS)
def test_gone_after_a_timeout(cloche, way):
    result = cloche("run", "--timeout", "400ms", "--grace", "100ms", "--", "bash", "-c", WAYS[way] + "\nsleep 1000")
    assert result.code == 124, result
    assert gone(None)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("mode", ["standard", "light"])
def test_gone_after_sigkill_of_cloche(cloche, way, mode):
    process = cloche.popen("run", "--mode", mode, "--", "bash", "-c",
                           WAYS[way] + "\nsleep 0.2; echo ready; sleep 77777")
    assert process.stdout.readline() == b"ready\n"
    process.kill()
    process.wait()
    assert gone(process.pid), leaks.descendants()


@pytest.mark.ordinary
@pytest.mark.parametrize("way", ["double fork", "ignores every signal", "respawner"])
@pytest.mark.parametrize("mode", ["standard", "light"])
def test_gone_after_sigkill_as_an_ordinary_user(cloche, way, mode):
    process = cloche.popen("run", "--mode", mode, "--", "bash", "-c",
                           WAYS[way] + "\nsleep 0.2; echo ready; sleep 77777")
    assert process.stdout.readline() == b"ready\n"
    process.kill()
    process.wait()
    assert gone(process.pid), leaks.descendants()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT])
def test_gone_after_a_polite_end(cloche, number):
    process = cloche.popen("run", "--", "bash", "-c", WAYS["double fork"] + "\necho ready; exec sleep 77777")
    assert process.stdout.readline() == b"ready\n"
    process.send_signal(number)
    if number == signal.SIGQUIT:        # bash ignores it; the sleep that it becomes does not
        while process.poll() is None:
            process.send_signal(number)
            time.sleep(0.1)
    process.communicate(timeout=60)
    assert gone(process.pid)


def test_gone_when_the_callers_session_dies(cloche):
    """A whole process group is killed (a CI job's end)."""
    process = cloche.popen("run", "--", "bash", "-c", WAYS["setsid"] + "\necho ready; sleep 77777",
                           start_new_session=True)
    assert process.stdout.readline() == b"ready\n"
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    assert gone(process.pid)


def test_gone_when_only_the_guest_is_killed(cloche):
    """Somebody (the kernel's OOM killer) kills PID 1 of the sandbox: cloche says so and ends."""
    process = cloche.popen("run", "--json", "--", "bash", "-c", WAYS["setsid"] + "\nsleep 77777")
    assert wait_for(lambda: any("sleep" in what for what in leaks.descendants(process.pid).values()))
    children = [pid for pid, (parent, _, _) in leaks.parents().items() if parent == process.pid]
    for pid in children:
        os.kill(pid, signal.SIGKILL)
    out, err = process.communicate(timeout=60)
    assert process.returncode in (125, 137), (process.returncode, out, err)
    assert gone(process.pid)


def test_a_stopped_cloche_can_still_be_killed(cloche):
    process = cloche.popen("run", "--", "bash", "-c", "echo ready; sleep 77777")
    assert process.stdout.readline() == b"ready\n"
    process.send_signal(signal.SIGSTOP)
    process.kill()
    process.wait()
    assert gone(process.pid)


def test_light_mode_catches_what_sheds_its_parent(cloche):
    """Light mode has no pid namespace: a daemon in a session of its own, forked away again and again, is still found."""
    mark = f"run-away-{uuid.uuid4().hex}"
    code = f"""
import os, sys, time
for i in range(50):
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            for j in range(20):
                if os.fork() != 0:
                    os._exit(0)
                time.sleep(0.01)
            os.execv('/bin/bash', ['bash', '-c', 'exec -a {mark} sleep 77777'])
        os._exit(0)
time.sleep(0.3)
print('ready', flush=True)
"""
    result = cloche.sandbox(code, flags=["--mode", "light"])
    assert result.out == "ready\n", result
    assert gone(None), leaks.descendants()
