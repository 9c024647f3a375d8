"""One test per class of container escapes of 2019-2026: the invariant that would have prevented it.

The classes that concern other engines or later parts (microVM side-channel files, AuthZ plug-ins, the API's files) are
not here.
"""
import os
import re
import resource
import subprocess
import uuid

import pytest

from helpers import leaks, requirement
from helpers.places import PYTHON, loops
from helpers.runner import wait_for

pytestmark = requirement("R26", "R80")


# 1. overwriting the host's runtime through /proc/self/exe (CVE-2019-5736) ---------------------------------------------
OVERWRITE = """
import os, sys
won = 0
for pid in [n for n in os.listdir('/proc') if n.isdigit()] + ['self']:
    for name in ('exe', 'root/proc/1/exe', 'map_files'):
        for mode in (os.O_WRONLY, os.O_RDWR, os.O_WRONLY | os.O_TRUNC):
            try:
                fd = os.open(f'/proc/{pid}/{name}', mode)
                won += 1; print('opened', pid, name, os.readlink(f'/proc/self/fd/{fd}'))
            except OSError: pass
print('won', won)
"""


def test_no_process_inside_has_a_writable_executable(sandbox):
    result = sandbox(OVERWRITE)
    assert result.out == "won 0\n", result


@pytest.mark.heavy
def test_proc_self_exe_is_not_overwritten_during_a_thousand_execs(cloche, project):
    """A process opens every /proc/PID/exe for writing in a loop while others exec 1,000 times."""
    before = open(cloche.binary, "rb").read()
    code = f"""
import os, subprocess, sys, threading
won, stop = [], False
def attack():
    while not stop:
        for pid in os.listdir('/proc'):
            if pid.isdigit():
                try:
                    fd = os.open(f'/proc/{{pid}}/exe', os.O_RDONLY | os.O_CLOEXEC)
                except OSError: continue
                try:
                    won.append((pid, os.open(f'/proc/self/fd/{{fd}}', os.O_WRONLY)))
                except OSError: pass
                finally: os.close(fd)
t = threading.Thread(target=attack); t.start()
for i in range({loops(1000)}): subprocess.call(['/bin/true'])
stop = True; t.join()
print('won', won)
"""
    assert cloche.sandbox(code, flags=["--workspace", project]).out == "won []\n"
    assert open(cloche.binary, "rb").read() == before


def test_the_guest_is_sealed(sandbox):
    """PID 1 is a sealed memfd or a read-only file, and cannot be opened at all."""
    code = """
import os
for f in ('exe', 'mem', 'environ', 'maps', 'root', 'cwd'):
    try: print(f, os.open('/proc/1/' + f, os.O_RDONLY))
    except OSError: pass
try: print(os.listdir('/proc/1/fd'))
except OSError: pass
"""
    assert sandbox(code).out == ""


# 2. leaked descriptors and a cwd outside the root (CVE-2024-21626) ----------------------------------------------------
@pytest.mark.parametrize("workdir", [f"/proc/self/fd/{n}" for n in range(3, 20)] +
                         ["/proc/thread-self/cwd", "/proc/self/cwd", "/proc/1/cwd", "/proc/1/root",
                          "/proc/self/root/..",
                          "/dev/fd/7", "/workspace/../../..", "/proc/self/task/1/cwd"])
def test_workdir_cannot_be_a_descriptor_outside(cloche, world, workdir):
    (world.root / "marker").write_text("x", encoding="ascii")
    # FileNotFoundError: the directory of a process that has ended, which leads nowhere at all
    code = ("import os\ntry: cwd = os.getcwd(); os.stat('.')\nexcept FileNotFoundError: print('inside'); raise "
            "SystemExit\nassert cwd.startswith('/'), cwd; assert not os.path.exists('marker')\n"
            "s = os.stat('.'); r = os.stat('/'); p = os.stat(cwd); assert (p.st_ino, p.st_dev) == (s.st_ino, "
            "s.st_dev); print('inside')\n"
            f"up = '.'\nfor i in range(40):\n up += '/..'\n assert not os.path.exists(up + "
            f"{str(world.root / 'marker')!r})")
    result = cloche.sandbox(code, flags=["--workdir", workdir], cwd=world.root)
    assert result.code == 125 or result.out == "inside\n", result


# 3. masked paths swapped for links (CVE-2025-31133, -52565, -52881) ---------------------------------------------------
def test_masked_paths_are_the_real_thing(sandbox):
    """The devices are char devices of the right number, /proc is procfs, and writing /proc is refused."""
    code = """
import ctypes, os, stat, struct
for name, device in {'null': (1, 3), 'zero': (1, 5), 'full': (1, 7), 'random': (1, 8), 'urandom': (1, 9)}.items():
    s = os.lstat('/dev/' + name)
    assert stat.S_ISCHR(s.st_mode) and (os.major(s.st_rdev), os.minor(s.st_rdev)) == device, name
libc = ctypes.CDLL(None); b = ctypes.create_string_buffer(256)
assert libc.statfs(b'/proc', b) == 0 and struct.unpack_from('l', b)[0] == 0x9fa0
writable = []
for base, dirs, files in os.walk('/proc/sys'):
    for f in files:
        try: os.close(os.open(os.path.join(base, f), os.O_WRONLY)); writable.append(os.path.join(base, f))
        except OSError: pass
for f in ('sysrq-trigger', 'kcore', 'kmem', 'keys', 'timer_list', 'sched_debug', 'latency_stats', 'acpi', 'scsi', 'irq', 'bus',
          'fs', 'config.gz', 'kallsyms', 'kpagecount', 'vmallocinfo', 'driver'):
    try: os.close(os.open('/proc/' + f, os.O_WRONLY)); writable.append(f)
    except OSError: pass
for f in ('kcore', 'kmem', 'keys', 'timer_list', 'kpagecount'):
    try:
        fd = os.open('/proc/' + f, os.O_RDONLY); d = os.read(fd, 100)
        if d: writable.append('readable ' + f)
    except OSError: pass
print(writable)
"""
    result = sandbox(code)
    assert result.out == "[]\n", result


@pytest.mark.parametrize("place", ["/dev", "/dev/null", "/dev/pts", "/proc", "/proc/sys", "/sys", "/etc", "/usr",
                                   "/lib", "/bin/sh"])
def test_system_places_cannot_be_replaced_from_inside(sandbox, place):
    code = ("import os,sys; p=sys.argv[1]; before=os.lstat(p)\n"
            "for f in (lambda: os.rename(p, '/tmp/x'), lambda: os.unlink(p), lambda: os.rmdir(p), lambda: "
            "os.symlink('/tmp', p), "
            "lambda: os.rename('/tmp/d', p)):\n"
            " try:\n  os.makedirs('/tmp/d', exist_ok=True); f(); print('changed')\n except OSError: pass\n"
            "assert os.lstat(p).st_ino == before.st_ino\n")
    if place == "/sys":
        code = code.replace("before=os.lstat(p)", "before=os.lstat(p) if os.path.exists(p) else sys.exit(0)")
    result = sandbox(code, args=[place])
    assert result.ok and "changed" not in result.out, result


# 4. symlink races on mount targets (CVE-2021-30465, 2024-45310): tests/escape/test_malicious_trees.py


# 5. parsing of user options (CVE-2026-30892: `exec -u` ran as the wrong user) -----------------------------------------
@pytest.mark.parametrize("user", ["0x3e8", "1000:1000:1000", "1000;0", "+1000", " 1000", "1000 ", "1e3", "01000x",
                                  "18446744073709551616",
                                  "4294967296", "4294967295", "-1", "1000:-1", ":1000", ":", "65536:0", "root:1000",
                                  "1000\n0"])
def test_user_is_parsed_or_refused_never_guessed(cloche, user):
    result = cloche("run", "--user", user, "--", "id")
    assert result.code == 125 and "uid=" not in result.out, result


@pytest.mark.parametrize("user", [1, 999, 1000, 1001, 12345, 65533])
def test_user_that_was_asked_for_is_the_one_that_runs(cloche, user):
    result = cloche("run", "--user", f"{user}:{user}", "--", "sh", "-c",
                    "id -u; id -g; grep -E '^(Uid|Gid|CapEff)' /proc/self/status")
    assert result.out.split()[:2] == [str(user), str(user)], result
    assert "CapEff:\t0000000000000000" in result.out


def test_no_inheritable_capabilities(cloche):
    """CVE-2022-24769 and kin: all five sets are empty, for the command and what it starts."""
    result = cloche("run", "--", "sh", "-c", "sh -c 'grep ^Cap /proc/self/status'")
    sets = dict(line.split(":\t") for line in result.out.splitlines())
    assert {k: int(v, 16) for k, v in sets.items() if k != "CapBnd"} == {"CapInh": 0, "CapPrm": 0, "CapEff": 0,
                                                                         "CapAmb": 0}
    assert int(sets["CapBnd"], 16) == 0, sets


# 6. files pre-created where we write (CVE-2026-1386) ------------------------------------------------------------------
def test_state_directory_prepared_by_an_attacker(cloche, world):
    """XDG_STATE_HOME/cloche is a link to somewhere else: refused or unused, and nothing is created there."""
    target = world.root / "target"
    target.mkdir()
    (cloche.state / "cloche").symlink_to(target)
    result = cloche("run", "--", "echo", "fine")
    assert result.out == "fine\n" or result.code == 125, result
    result = cloche("run", "--workspace", f"{cloche.project}:cow", "--json", "--", "true")
    assert not list(target.iterdir()) or result.ok
    if result.ok:
        assert cloche("discard", result.json["workspace"]["id"]).ok
    assert not [p for p in target.rglob("*") if p.is_file()]


def test_temporary_directory_is_not_trusted(cloche, world):
    """TMPDIR full of traps (links, FIFOs with our names): nothing is followed."""
    for name in ("cloche", "cloche-0", "cloche.sock", ".cloche"):
        (cloche.tmp / name).symlink_to(world.root / "planted")
    result = cloche("run", "--", "echo", "fine")
    assert result.out == "fine\n" and not (world.root / "planted").exists(), result
    for name in ("cloche", "cloche-0", "cloche.sock", ".cloche"):
        (cloche.tmp / name).unlink()


# 7. control sockets (CVE-2020-15257) ----------------------------------------------------------------------------------
def test_no_control_socket_is_reachable_from_inside(sandbox):
    """No abstract or path socket of ours is visible, and the guest's transport cannot be reached through /proc."""
    code = ("import os\nprint(sum(1 for l in open('/proc/net/unix')) - 1)\n"
            "for pid in [n for n in os.listdir('/proc') if n.isdigit()]:\n"
            " try:\n  for fd in os.listdir(f'/proc/{pid}/fd'):\n   t = os.readlink(f'/proc/{pid}/fd/{fd}')\n"
            "   if t.startswith('socket:'): print('socket', pid, fd)\n except OSError: pass")
    result = sandbox(code)
    assert result.ok and "socket" not in result.out, result
    assert int(result.out.split()[0]) <= 4, result


def test_cloche_listens_nowhere_while_running(cloche):
    before = leaks.sockets()
    with open("/proc/net/unix", encoding="utf-8", errors="replace") as f:
        listening_before = {line.split()[-1] for line in f if line.split()[3] == "00010000"}
    process = cloche.popen("run", "--", "sh", "-c", "echo ready; sleep 60")
    assert process.stdout.readline() == b"ready\n"
    with open("/proc/net/unix", encoding="utf-8", errors="replace") as f:
        listening = {line.split()[-1] for line in f if line.split()[3] == "00010000"}
    process.kill()
    process.wait()
    assert leaks.sockets() <= before
    assert not [name for name in listening - listening_before if "cloche" in name]


# 8. cgroups (CVE-2022-0492 release_agent, 2022-0811 core_pattern) -----------------------------------------------------
@requirement("R98")
def test_no_writable_file_below_sys_or_proc_sys(sandbox):
    code = """
import os
found = []
for top in ('/sys', '/proc/sys', '/proc/irq', '/proc/bus', '/proc/fs', '/proc/acpi', '/proc/pressure'):
    for base, dirs, files in os.walk(top):
        for f in files:
            path = os.path.join(base, f)
            try: os.close(os.open(path, os.O_WRONLY | os.O_NONBLOCK)); found.append(path)
            except OSError: pass
        for d in dirs:
            try: os.mkdir(os.path.join(base, d, 'x')); found.append(os.path.join(base, d, 'x'))
            except OSError: pass
print(found, os.path.exists('/sys/fs/cgroup/memory'))
"""
    assert sandbox(code).out == "[] False\n"


def test_cgroup_names_of_the_host_are_not_shown(sandbox):
    text = sandbox("print(open('/proc/self/cgroup').read(), open('/proc/self/mountinfo').read())").out
    assert "cloche" not in text.split("\n\n")[0] or re.search(r":/$", text, re.M), text


def test_mount_table_does_not_tell_host_paths(sandbox, cloche, world):
    """/proc/self/mountinfo shows no source path of the host's file system beyond what was bound."""
    text = sandbox("print(open('/proc/self/mountinfo').read())").out
    assert str(world.root) not in text
    assert "/home/agent" not in [line.split()[3] for line in text.splitlines() if line.strip()]


# 9. terminal injection (CVE-2017-5226, CVE-2023-28100): tests/escape/test_tty.py


# 10. new system calls: tests/escape/test_syscalls.py


# 11. the kernel itself ------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("name,number,args", [
    ("bpf", 321, "0, b, 120"), ("userfaultfd", 323, "0"), ("perf_event_open", 298, "b, 0, -1, -1, 0"),
    ("io_uring_setup", 425, "1, b"), ("io_uring_enter", 426, "0, 0, 0, 0"), ("io_uring_register", 427, "0, 0, 0, 0"),
    ("keyctl", 250, "0, -3, 0, 0, 0"), ("add_key", 248, "b'user', b'x', b'y', 1, -2"),
    ("request_key", 249, "b'user', b'x', 0, -2"),
    ("kexec_load", 246, "0, 0, 0, 0"), ("kexec_file_load", 320, "-1, -1, 0, b, 0"), ("init_module", 175, "b, 0, b''"),
    ("finit_module", 313, "-1, b'', 0"), ("delete_module", 176, "b'x', 0"), ("unshare", 272, "0x10000000"),
    ("setns", 308, "0, 0"), ("mount", 165, "b'n', b'/tmp', b'tmpfs', 0, 0"), ("umount2", 166, "b'/tmp', 2"),
    ("pivot_root", 155, "b'/', b'/'"), ("chroot", 161, "b'/'"), ("swapon", 167, "b'/x', 0"),
    ("reboot", 169, "0, 0, 0, 0"),
    ("open_by_handle_at", 304, "-100, b, 0"), ("open_tree", 428, "-100, b'/', 1"),
    ("move_mount", 429, "0, b'', 0, b'', 0"),
    ("fsopen", 430, "b'tmpfs', 0"), ("fspick", 433, "-100, b'/', 0"), ("mount_setattr", 442, "-100, b'/', 0, b, 32"),
    ("acct", 163, "0"), ("quotactl", 179, "0, 0, 0, 0"), ("settimeofday", 164, "b, 0"), ("clock_settime", 227, "0, b"),
    ("adjtimex", 159, "b'\\x01' + b'\\0' * 300"), ("iopl", 172, "3"), ("ioperm", 173, "0, 1, 1"),
    ("syslog", 103, "3, b, 100"),
    ("fanotify_init", 300, "0, 0"), ("lookup_dcookie", 212, "0, b, 10"), ("vhangup", 153, ""),
    ("sethostname", 170, "b'x', 1"),
    ("setdomainname", 171, "b'x', 1"), ("modify_ldt", 154, "0, b, 16"),
    ("nfsservctl", 180, "0, 0, 0"),
])
def test_dangerous_system_call_is_closed(sandbox, name, number, args):
    code = (f"import ctypes; l=ctypes.CDLL(None,use_errno=True); l.syscall.restype=ctypes.c_long; "
            f"b=ctypes.create_string_buffer(4096)\n"
            f"A=lambda *a: [ctypes.c_long(x) if isinstance(x,int) else x for x in a]\n"
            f"r=l.syscall(ctypes.c_long({number}), *A({args})); e=ctypes.get_errno(); print(r, e)")
    result = sandbox(code)
    r, e = result.out.split() if result.ok else ("-1", "38")
    assert r == "-1" and int(e) in (1, 38), f"{name}: returned {r}, errno {e} (wanted EPERM or ENOSYS): {result!r}"


@pytest.mark.parametrize("family", ["AF_PACKET", "AF_VSOCK", "AF_ALG", "AF_BLUETOOTH", "AF_CAN", "AF_TIPC", "AF_RDS",
                                    "AF_QIPCRTR"])
def test_dangerous_socket_family_is_closed(sandbox, family):
    code = (f"import socket; f = getattr(socket, {family!r}, None) or {{'AF_RDS': 21}}[{family!r}]; "
            "print(socket.socket(f, socket.SOCK_DGRAM))")
    result = sandbox(code)
    assert not result.ok and result.errno in ("EPERM", "EAFNOSUPPORT", "EACCES",
                                              "ENOSYS") or "KeyError" in result.err, result


# 12. what an agent does first: turn the sandbox off -------------------------------------------------------------------
def test_cloche_run_inside_cloche_gives_no_more(cloche, bait, project):
    """The binary itself, bound inside: a nested run is refused or is at least as closed."""
    result = cloche("run", "--bind", f"{cloche.binary}:/mnt/cloche", "--workspace", project, "--", "/mnt/cloche",
                    "run", "--mode", "off",
                    "--", "cat", bait.secret)
    assert bait.secret_text not in result.out
    result = cloche("run", "--bind", f"{cloche.binary}:/mnt/cloche", "--", "/mnt/cloche", "run", "--", "id", "-u")
    assert result.code == 125 or result.out.strip() == "1000", result


def test_settings_found_in_the_project_are_not_obeyed(cloche, project, bait):
    """A repository cannot bring its own policy: only a file that the caller names counts."""
    for name in ("cloche.yaml", ".cloche.yaml", ".cloche/settings.yaml", ".srt-settings.json", "cloche.json"):
        path = project / name
        path.parent.mkdir(exist_ok=True)
        path.write_text("version: 1\nmode: off\n", encoding="ascii")
    result = cloche("run", "--workspace", project, "--json", "--", "true", cwd=project)
    assert result.json["mode"] == "standard"


# 13. teardown races ---------------------------------------------------------------------------------------------------
def test_nothing_runs_on_while_the_report_is_written(cloche):
    """When cloche has ended, everything inside has ended: no grace for stragglers."""
    mark = f"straggler-{uuid.uuid4().hex}"
    result = cloche("run", "--", "bash", "-c", f"(exec -a {mark} sleep 1000 &) ; for i in 1 2 3; do setsid sleep 1000 "
                                               f"& done; exit 0")
    assert result.ok
    table = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True).stdout
    assert mark not in table
    assert wait_for(lambda: leaks.reap_adopted(set()) or not leaks.descendants())


def test_core_dumps_of_the_guest_or_cloche_hold_nothing(cloche, project):
    """Where cores may be as large as they like: the core of cloche would lie in the project."""
    soft, hard = resource.getrlimit(resource.RLIMIT_CORE)
    resource.setrlimit(resource.RLIMIT_CORE, (hard, hard))
    before = os.listdir(project)
    try:
        process = cloche.popen("run", "--workspace", project, "--", "sh", "-c", "echo ready; sleep 60", cwd=project)
        assert process.stdout.readline() == b"ready\n"
        process.send_signal(11)
        _pid, status = os.waitpid(process.pid, 0)
        process.returncode = -11
        # without a wall the command's are its caller's own matter
        off = cloche("run", "--mode", "off", "--", "sh", "-c", "ulimit -c", cwd=project)
    finally:
        resource.setrlimit(resource.RLIMIT_CORE, (soft, hard))
    assert os.WTERMSIG(status) == 11 and not os.WCOREDUMP(status)
    assert os.listdir(project) == before
    assert (off.out.strip() == "unlimited") == (hard == resource.RLIM_INFINITY), off


def test_python_is_the_systems(sandbox):
    """Guard of this suite itself: the attacks ran with the interpreter that they were written for."""
    assert sandbox("import sys; print(sys.executable)").out.strip() in (PYTHON, os.path.realpath(PYTHON))
