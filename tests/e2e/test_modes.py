"""off, light, standard, max: what each promises, checked by the battery of attacks."""
import json
import os
import signal

import pytest

from helpers import requirement
from helpers.bait import OPEN_IN_LIGHT, assert_wall, opened
from helpers.places import PYTHON
from helpers.runner import limit_of

# Without the wall at least these work for anybody; that makes the tests below mean something.
REAL_FOR_ANYBODY = {"read_host_file", "write_host_file", "create_host_file", "see_host_process", "signal_host_process",
                    "tcp_to_host_loopback", "udp_to_host_loopback", "abstract_socket_of_host", "path_socket_of_host",
                    "datagram_to_path_socket_of_host", "environment_of_host", "may_gain_privileges",
                    "no_syscall_filter",
                    "signal_by_pidfd", "change_priority_of_host_process", "keyring"}


def test_the_attacks_are_real_on_this_host(bait, bare):
    verdicts, _ = bait.attack(bare, bait={"thorough": True})
    assert REAL_FOR_ANYBODY <= set(opened(verdicts)), REAL_FOR_ANYBODY - set(opened(verdicts))


@requirement("R40", "R26", "R12", "R14")
@pytest.mark.parametrize("mode", ["light", "standard", "max"])
def test_the_wall_stands(bait, sandbox, mode):
    verdicts, _ = bait.attack(sandbox, flags=["--mode", mode], bait={"thorough": True})
    assert_wall(verdicts, OPEN_IN_LIGHT if mode == "light" else ())
    assert bait.tally() == 0, "a signal from inside reached a process of the host"


@pytest.mark.ordinary
@requirement("R40", "R26", "R12", "R14")
@pytest.mark.parametrize("mode", ["light", "standard", "max"])
def test_the_wall_stands_for_an_ordinary_user(bait, sandbox, mode):
    verdicts, _ = bait.attack(sandbox, flags=["--mode", mode], bait={"thorough": True})
    assert_wall(verdicts, OPEN_IN_LIGHT if mode == "light" else ())
    assert bait.tally() == 0


@requirement("R11")
@pytest.mark.parametrize("kind", ["rw", "ro", "cow"])
def test_the_wall_stands_around_a_bound_project(bait, cloche, kind):
    flags = ["--workspace", f"{cloche.project}:{kind}", "--report", "r.json"]
    verdicts, _ = bait.attack(cloche.sandbox, flags=flags)
    assert_wall(verdicts)
    if kind == "cow":
        cloche("discard", json.loads((cloche.cwd / "r.json").read_text())["workspace"]["id"])


def test_the_wall_stands_on_a_terminal(bait, cloche):
    result = cloche("run", "--pty", "--json", "--", PYTHON, "-c", __import__("helpers.bait").bait.BATTERY, bait.words())
    assert_wall(json.loads(result.json["stdout"]), {"environment_of_host"})


# off -----------------------------------------------------------------------------------------------------------
@requirement("R40")
def test_off_runs_directly_and_says_so_loudly(cloche, bait):
    result = cloche("run", "--mode", "off", "--", "cat", bait.secret)
    assert result.out == bait.secret_text
    assert "warning" in result.err.lower() and "off" in result.err, result


@requirement("R40")
def test_off_is_recorded_in_the_report(cloche):
    assert cloche("run", "--mode", "off", "--report", "r.json", "--", "sh", "-c", "exit 3").code == 3
    report = json.loads((cloche.cwd / "r.json").read_text())
    assert report["mode"] == "off" and report["exit_code"] == 3 and report["engine"] == "none"
    assert report["warnings"], "running without a wall is a warning"


def test_off_passes_signals_on(cloche, tmp_path):
    """SIGTERM to cloche must not leave the command running."""
    started = cloche.popen("run", "--mode", "off", "--", "sh", "-c",
                           "trap 'echo asked; exit 7' TERM; echo ready; while :; do sleep 0.05; done")
    assert started.stdout.readline().strip() in (b"ready", "ready")
    started.terminate()
    out, _ = started.communicate(timeout=20)
    assert started.returncode == 7 and "asked" in (out if isinstance(out, str) else out.decode())


def test_off_ends_under_a_parent_that_ignores_its_children(cloche):
    """SIGCHLD inherited as ignored: the kernel would reap the command and say nothing."""
    result = cloche.behind(PYTHON, "-I", "-S", "-c", "import os,signal,sys; signal.signal(signal.SIGCHLD, signal.SIG_IGN); "
                           "os.execv(sys.argv[1], sys.argv[1:])")("run", "--mode", "off", "--", "sh", "-c", "exit 7",
                                                                  timeout=20)
    assert result.code == 7, result


def test_off_cannot_be_made_silent(cloche):
    assert "off" in cloche("run", "--mode", "off", "--quiet", "--", "true").err


# light ---------------------------------------------------------------------------------------------------------
@requirement("R40")
def test_light_needs_no_namespaces(bait, cloche, deny):
    """As inside an unprivileged container: no unshare, no clone3, no mounts, no pivot."""
    words = deny("unshare:EPERM", "clone3:ENOSYS", "setns:EPERM", "mount:EPERM", "pivot_root:EPERM", "fsopen:EPERM",
                 "open_tree:EPERM", "move_mount:EPERM", "fsmount:EPERM")
    verdicts, _ = bait.attack(cloche.behind(*words).sandbox, flags=["--mode", "light"])
    assert_wall(verdicts, OPEN_IN_LIGHT)


@pytest.mark.ordinary
@requirement("R40")
def test_light_without_any_namespace_left_on_the_host(bait, cloche, command):
    """max_user_namespaces=0 in an outer user namespace, as in a rootless container: even clone(NEWUSER) fails.

    The only id that there is has the number 0; it is an ordinary user outside, and has no capabilities inside.
    """
    outer = ["unshare", "-Ur", "--", "/bin/sh", "-c",
             'for n in user mnt pid net ipc uts cgroup; do echo 0 > /proc/sys/user/max_${n}_namespaces; done; exec '
             '"$@"', "sh"]
    if not command([*outer, "true"], check=False).ok:
        pytest.skip("no outer user namespace here")
    inside = cloche.behind(*outer)
    assert inside.run([*outer, "unshare", "-U", "true"]).code != 0
    verdicts, _ = bait.attack(inside.sandbox, flags=["--mode", "light"])
    assert_wall(verdicts, OPEN_IN_LIGHT | {"is_root", "become_root", "setuid_file_gives_rights"})


@pytest.mark.root
def test_light_as_root_does_not_pretend_to_write_roots_own_folder(cloche):
    """The sandbox is not root, and without namespaces nothing maps the owner: a refusal that says the way out."""
    result = cloche("run", "--mode", "light", "--workspace", cloche.project, "--", "touch", "f")
    assert result.code == 125 and str(cloche.project) in result.err and "standard" in result.err, result


@pytest.mark.root
def test_light_as_root_with_somebodys_folder(cloche):
    import os
    os.chown(cloche.project, 4321, 4321)
    result = cloche("run", "--mode", "light", "--workspace", cloche.project, "--", "touch", "f")
    assert result.ok and os.stat(cloche.project / "f").st_uid == 4321, result


@pytest.mark.ordinary
def test_light_workspace_is_written_and_the_rest_is_not(cloche, world):
    other = world.root / "other"
    other.mkdir()
    other.chmod(0o777)
    result = cloche("run", "--mode", "light", "--workspace", cloche.project, "--", "sh", "-c",
                    f"echo x > f && cat f; echo y > {other}/f; ls {other}; cat /etc/shadow")
    assert (cloche.project / "f").read_text() == "x\n", result
    assert not list(other.iterdir())


def test_light_has_a_writable_tmp_and_home_that_go_away(cloche, world):
    result = cloche("run", "--mode", "light", "--", "sh", "-c",
                    "echo a > $TMPDIR/f && echo b > $HOME/f && echo $HOME $TMPDIR")
    assert result.ok, result
    for place in result.out.split():
        assert not place.startswith(str(cloche.home)), "the real home is not the sandbox's"


@requirement("R65")
def test_light_limits(cloche):
    assert cloche("run", "--mode", "light", "--timeout", "300ms", "--grace", "100ms", "--", "sleep", "99").code == 124
    report = cloche.sandbox("b=[]\nwhile 1: b.append(b'x'*(1<<22))",
                            flags=["--mode", "light", "--memory", "96m", "--json"])
    assert report.json["reason"] == "memory", report


def test_light_kills_what_double_forked_away(cloche):
    assert cloche("run", "--mode", "light", "--", "sh", "-c", "(setsid sleep 77777 &) ; exit 0").ok


def test_light_leaves_the_children_that_cloche_was_given(cloche):
    """A shell's job that was there before it became cloche is not the sandbox's."""
    shell = cloche.behind("sh", "-c", "sleep 77777 >/dev/null 2>&1 & echo $!; exec \"$@\"", "sh")
    result = shell("run", "--mode", "light", "--", "sh", "-c", "(setsid sleep 77778 &); exit 0")
    job = int(result.out)
    try:
        with open(f"/proc/{job}/stat", encoding="ascii") as f:
            assert f.read().split(")")[1].split()[0] != "Z"
    finally:
        os.kill(job, signal.SIGKILL)


# max -----------------------------------------------------------------------------------------------------------
@requirement("R40")
def test_max_root_is_read_only(cloche):
    result = cloche("run", "--mode", "max", "--", "sh", "-c",
                    "for d in / /usr /etc /opt /var /srv /home /mnt /root; do touch $d/x 2>/dev/null && echo $d; done; "
                    "touch /tmp/x /workspace/x && echo fine")
    assert result.out == "fine\n", result


@requirement("R40")
def test_max_proc_shows_only_processes(cloche):
    result = cloche("run", "--mode", "max", "--", "sh", "-c", "ls /proc | grep -v '^[0-9]*$'")
    assert set(result.out.split()) <= {"self", "thread-self"}, result


@requirement("R40", "R65")
def test_max_limits(cloche):
    report = cloche("run", "--mode", "max", "--json", "--", "sh", "-c", "ulimit -n").json
    for name, value in {"memory": 512 << 20, "cpu": 500, "pids": 64, "disk": 256 << 20, "time": 30000,
                        "nofile": 256}.items():
        assert limit_of(report, name)["limit"] == value, name
    assert report["stdout"] == "256\n"


@requirement("R40")
def test_max_refuses_what_standard_warns_about(cloche):
    standard = cloche("run", "--network", "host", "--", "true")
    assert standard.ok and "network" in standard.err and "warning" in standard.err.lower(), standard
    strict = cloche("run", "--mode", "max", "--network", "host", "--", "true")
    assert strict.code == 125 and "network" in strict.err, strict


STRICTER = """
import ctypes, json, os, sys
libc = ctypes.CDLL(None, use_errno=True); libc.syscall.restype = ctypes.c_long
refused = []
for number in range(0, 470):
    if number in (15, 56, 57, 58, 60, 231, 435, 34, 130, 61, 247, 62, 200, 234):   # would end, fork or stop us
        continue
    pid = os.fork()
    if pid == 0:
        import resource; resource.setrlimit(resource.RLIMIT_CPU, (2, 2))
        import signal; signal.alarm(2)
        libc.syscall(ctypes.c_long(number), *([ctypes.c_long(-1)] * 6))
        os._exit(77 if ctypes.get_errno() in (38, 1) else 0)
    _, status = os.waitpid(pid, 0)
    code = os.waitstatus_to_exitcode(status)
    if code == 77 or code == -31:
        refused.append(number)
print(json.dumps(refused))
"""


@requirement("R40")
def test_max_has_the_smaller_syscall_list(sandbox):
    """Everything that standard refuses, max refuses too; and it refuses more (ptrace among it)."""
    standard = set(json.loads(sandbox(STRICTER).out))
    strict = set(json.loads(sandbox(STRICTER, flags=["--mode", "max", "--timeout", "80"]).out))
    assert standard <= strict, f"allowed in max but not in standard: {sorted(standard - strict)}"
    assert 101 in strict, "ptrace is closed in max"
    assert len(strict) > len(standard)


def test_unknown_mode(cloche):
    result = cloche("run", "--mode", "maximum", "--", "true")
    assert result.code == 125 and "max" in result.err and "standard" in result.err


def test_mode_from_settings_file_and_flag(cloche, project):
    path = project / "p.yaml"
    path.write_text("version: 1\nmode: max\n", encoding="ascii")
    assert cloche("run", "--settings", path, "--json", "--", "true").json["mode"] == "max"
    # A flag is more specific than a file.
    assert cloche("run", "--settings", path, "--mode", "standard", "--json", "--", "true").json["mode"] == "standard"
