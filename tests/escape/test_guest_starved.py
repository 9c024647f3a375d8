"""The guest keeps limits and names. What is inside is the same user, and must not be able to leave it nothing to do that with:
no descriptor, no time; and what the guest cannot look at for want of something is never "not there".
"""
import os
import time
from pathlib import Path

import pytest

from helpers import requirement
from helpers.runner import HANG_GUARD

MODES = ["light", "standard", "max"]

# every call that takes away from another process, on process 1; each is tried on the caller itself too
TAKE = """
import ctypes, errno, os, resource, struct
libc = ctypes.CDLL(None, use_errno=True)
def call(name, *args):
    ctypes.set_errno(0)
    rc = libc.syscall(*[ctypes.c_long(a) if isinstance(a, int) else a for a in args])
    print(name, 'ok' if rc == 0 else errno.errorcode[ctypes.get_errno()])
limit = ctypes.create_string_buffer(struct.pack('QQ', 6, 6))
none = ctypes.create_string_buffer(struct.pack('i', 0))
attr = ctypes.create_string_buffer(struct.pack('IIQiIQQQ', 48, 5, 0, 0, 0, 0, 0, 0))
mask = ctypes.create_string_buffer(struct.pack('Q', 1) + bytes(120))
x86 = os.uname().machine == 'x86_64'
N = (dict(prlimit=302, scheduler=144, param=142, attr=314, affinity=203, priority=141, io=251) if x86 else
     dict(prlimit=261, scheduler=119, param=118, attr=274, affinity=122, priority=140, io=30))
for who in (1,):
    call('prlimit', N['prlimit'], who, resource.RLIMIT_NOFILE, limit, 0)
    call('prlimit high', N['prlimit'], who | 1 << 32, resource.RLIMIT_NOFILE, limit, 0)
    call('scheduler', N['scheduler'], who, 5, none)
    call('param', N['param'], who, none)
    call('attr', N['attr'], who, attr, 0)
    call('affinity', N['affinity'], who, 8, mask)
    call('priority', N['priority'], 0, who, 19)
    call('priority of its group', N['priority'], 1, who, 19)
    call('io', N['io'], 1, who, 3 << 13)
"""


@requirement("R30", "R11")
@pytest.mark.parametrize("mode", MODES)
def test_nothing_is_taken_from_process_1(anyone, mode):
    result = anyone("run", "--mode", mode, "--", "/usr/bin/python3", "-c", TAKE)
    assert result.ok, result
    assert [line.rsplit(" ", 1)[1] for line in result.out.splitlines()] == ["EPERM"] * 9, result.out


@requirement("R17")
def test_own_limits_and_scheduling_still_change(anyone):
    code = ("import os, resource\n"
            "pid = os.fork()\n"
            "if pid == 0: import time; time.sleep(20)\n"
            "resource.prlimit(pid, resource.RLIMIT_NOFILE, (9, 9)); resource.setrlimit(resource.RLIMIT_NOFILE, (99, 99))\n"
            "os.sched_setaffinity(pid, {min(os.sched_getaffinity(0))}); os.setpriority(os.PRIO_PROCESS, pid, 5); os.nice(1)\n"
            "os.sched_setscheduler(pid, os.SCHED_BATCH, os.sched_param(0)); print(resource.prlimit(1, resource.RLIMIT_CORE))\n"
            "os.kill(pid, 9)\n")
    result = anyone("run", "--", "/usr/bin/python3", "-c", code)
    assert result.out == "(1, 1)\n", result       # 0 would not keep the host's own handler from being started


@requirement("R30")
@pytest.mark.ordinary
@pytest.mark.parametrize("left", range(4, 9))
def test_memory_counts_whatever_is_left_to_the_guest(cloche, left):
    """The attack: with just one descriptor left /proc can be opened, and no process in it be looked at."""
    code = (f"import resource\ntry: resource.prlimit(1, resource.RLIMIT_NOFILE, ({left}, {left}))\nexcept OSError: pass\n"
            "import time; kept = []\n"
            "for i in range(400): kept.append(b'x' * (1 << 20)); time.sleep(0.02)\n"
            "print('has it', flush=True); time.sleep(5)\n")
    result = cloche.sandbox(code, flags=["--memory", "100m", "--json"])
    assert "has it" not in result.out, result


def process_1_of(parent):
    end = time.monotonic() + HANG_GUARD
    while time.monotonic() < end:
        for child in Path(f"/proc/{parent}/task/{parent}/children").read_text("ascii").split():
            try:
                if "memfd:cloche-guest" in os.readlink(f"/proc/{child}/exe"):
                    return int(child)
            except FileNotFoundError:       # a helper that has ended
                pass
        time.sleep(0.02)
    raise AssertionError("no guest")


@requirement("R11")
@pytest.mark.root
@pytest.mark.parametrize("left", range(6, 16))
def test_a_guest_without_descriptors_lets_nothing_through(cloche, left):
    """Whatever took them: here from outside. A file that cannot be looked for is not taken for one without names elsewhere."""
    import resource
    outside = cloche.home / "outside"
    outside.write_text("kept\n", encoding="ascii")
    os.link(outside, cloche.project / "linked")
    (cloche.project / ".vscode").mkdir()
    code = ("read x; echo EVIL >> linked; echo EVIL > .vscode/tasks.json; echo EVIL > .zshrc; mkdir -p .git/hooks; "
            "echo EVIL > .git/hooks/post-checkout; mkdir b; cd b; mkdir objects refs; echo 'ref: refs/heads/x' > HEAD; "
            "printf '[core]\\n\\tfsmonitor = EVIL\\n' > config; true")
    process = cloche.popen("run", "--workspace", cloche.project, "--", "bash", "-c", code, stdin=-1, stdout=-1, stderr=-1)
    guest = process_1_of(process.pid)
    time.sleep(0.5)
    resource.prlimit(guest, resource.RLIMIT_NOFILE, (left, left))
    process.communicate(b"go\n", timeout=HANG_GUARD)
    assert outside.read_text(encoding="ascii") == "kept\n"
    evil = [path for path in cloche.project.rglob("*")
            if path.is_file() and "EVIL" in path.read_text("utf-8") and path.name != "linked" and
            (path.name != "config" or all((path.parent / name).exists() for name in ("HEAD", "objects", "refs")))]
    assert not evil, evil
