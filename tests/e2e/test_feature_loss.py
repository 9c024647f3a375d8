"""A kernel feature taken away gives the same wall by another way, or a refusal that names what is missing.

Never a weaker wall silently: where cloche starts, the whole battery of attacks runs inside and must fail.
"""
import os
import shutil

import pytest

from helpers import places, requirement
from helpers.bait import OPEN_IN_LIGHT, assert_wall
from helpers.runner import limit_of

pytestmark = requirement("R05", "R26", "R30")

# what is taken away → words of which the refusal must contain one
LOSSES = {
    "user namespaces": (["@userns"], ["namespace"]),
    "clone3": (["clone3:ENOSYS"], ["clone3"]),
    "the seccomp listener (name guard)": (["@notify"], ["seccomp", "notif", "guard"]),
    "landlock": (["landlock_create_ruleset:ENOSYS", "landlock_add_rule:ENOSYS", "landlock_restrict_self:ENOSYS"],
                 ["landlock"]),
    "landlock disabled at boot": (["landlock_create_ruleset:EOPNOTSUPP"], ["landlock"]),
    "landlock_restrict_self only": (["landlock_restrict_self:EPERM"], ["landlock"]),
    "openat2": (["openat2:ENOSYS"], ["openat2"]),
    "openat2 by a container's filter": (["openat2:EPERM"], ["openat2"]),
    "open_tree": (["open_tree:ENOSYS"], ["open_tree", "mount"]),
    "move_mount": (["move_mount:ENOSYS"], ["move_mount", "mount"]),
    "fsopen": (["fsopen:ENOSYS"], ["fsopen", "mount"]),
    "mount_setattr": (["mount_setattr:ENOSYS"], ["mount_setattr", "mount"]),
    "the new mount API": (["open_tree:ENOSYS", "move_mount:ENOSYS", "fsopen:ENOSYS", "fsconfig:ENOSYS",
                           "fsmount:ENOSYS",
                           "mount_setattr:ENOSYS"], ["open_tree", "fsopen", "mount"]),
    "unshare, by a filter that kills the thread": (["unshare:KILL_THREAD"], ["unshare"]),
    "memfd_create": (["memfd_create:ENOSYS"], ["memfd"]),
    "close_range": (["close_range:ENOSYS"], ["close_range"]),
    "pidfd_open": (["pidfd_open:ENOSYS"], ["pidfd"]),
    "pidfd_send_signal": (["pidfd_send_signal:ENOSYS"], ["pidfd"]),
    "pivot_root": (["pivot_root:EPERM"], ["pivot_root"]),
    "mount": (["mount:EPERM"], ["mount"]),
    "execveat": (["execveat:ENOSYS"], ["execveat", "fexecve", "memfd"]),
    "seccomp": (["seccomp:ENOSYS"], ["seccomp"]),
    "seccomp by a filter": (["seccomp:EPERM"], ["seccomp"]),
    "setns": (["setns:EPERM"], ["setns", "namespace"]),
    "sethostname": (["sethostname:EPERM"], ["host name", "hostname"]),
    "statx": (["statx:ENOSYS"], ["statx"]),
    "faccessat2": (["faccessat2:ENOSYS"], ["faccessat2"]),
    "io_uring (nobody needs it)": (["io_uring_setup:ENOSYS"], []),
    "prctl NO_NEW_PRIVS": (["prctl:EPERM"], None),
    "capset": (["capset:EPERM"], ["cap"]),
    "signalfd and eventfd": (["signalfd4:ENOSYS", "eventfd2:ENOSYS"], ["signalfd", "eventfd"]),
    "name_to_handle_at": (["name_to_handle_at:ENOSYS"], []),
    "socketpair": (["socketpair:EPERM"], ["socket"]),
    "what it holds (capget)": (["capget:EPERM"], ["cap"]),
    "a session of its own": (["setsid:EPERM"], ["setsid"]),
    "lstat": (["lstat:EACCES"], None),
}


def assert_same_wall_or_refusal(verdicts, result, words, exceptions=()):
    if verdicts is not None:
        assert_wall(verdicts, exceptions)
        return
    said = result.err.lower()
    assert result.code == 125
    assert words is None or any(word.lower() in said for word in words), f"the refusal does not name it: {result!r}"
    assert "[" in result.err, f"a refusal has a stable code: {result!r}"


@pytest.mark.parametrize("what", LOSSES)
def test_standard(bait, cloche, deny, what):
    calls, words = LOSSES[what]
    verdicts, result = bait.attack(cloche.behind(*deny(*calls)).sandbox, expect_ok=False)
    assert_same_wall_or_refusal(verdicts, result, words)
    assert bait.tally() == 0


@pytest.mark.ordinary
@pytest.mark.parametrize("what", LOSSES)
def test_standard_as_an_ordinary_user(bait, cloche, deny, what):
    calls, words = LOSSES[what]
    verdicts, result = bait.attack(cloche.behind(*deny(*calls)).sandbox, expect_ok=False)
    assert_same_wall_or_refusal(verdicts, result, words)
    assert bait.tally() == 0


@pytest.mark.parametrize("what", LOSSES)
def test_light(bait, cloche, deny, what):
    calls, words = LOSSES[what]
    verdicts, result = bait.attack(cloche.behind(*deny(*calls)).sandbox, flags=["--mode", "light"], expect_ok=False)
    assert_same_wall_or_refusal(verdicts, result, words, OPEN_IN_LIGHT)


@pytest.mark.parametrize("flags", [["--mode", "light"], ["--view", "host"]], ids=["light", "host view"])
def test_a_tree_that_cannot_be_looked_at_has_no_open_sockets(bait, cloche, deny, flags):
    code = ("import socket\ns = socket.socket(socket.AF_UNIX)\n"
            f"try: s.connect({bait.path!r}); print('open', s.recv(20))\nexcept OSError as why: print('refused', why.errno)\n")
    result = cloche.behind(*deny("stat:EPERM"))("run", *flags, "--", "/usr/bin/python3", "-c", code)
    assert "open" not in result.out and (result.out.startswith("refused") or result.code != 0), result


def test_light_refuses_without_landlock(cloche, deny):
    """In light mode Landlock is the wall for files: there is no other way."""
    words = deny("landlock_create_ruleset:ENOSYS")
    result = cloche.behind(*words)("run", "--mode", "light", "--", "true")
    assert result.code == 125 and "landlock" in result.err.lower(), result


def test_no_mode_starts_without_a_syscall_filter(cloche, deny):
    for mode in ("light", "standard", "max"):
        result = cloche.behind(*deny("seccomp:ENOSYS"))("run", "--mode", mode, "--", "true")
        if result.code != 125:      # another way: prctl(PR_SET_SECCOMP)
            inside = cloche.behind(*deny("seccomp:ENOSYS"))("run", "--mode", mode, "--", "grep", "Seccomp:",
                                                            "/proc/self/status")
            assert inside.out.split() == ["Seccomp:", "2"], inside


@pytest.mark.parametrize("mode", ["light", "standard", "max"])
@pytest.mark.parametrize("answer", ["EPERM", "ENOSYS"])
def test_who_cannot_tell_its_capabilities_gives_none_away(cloche, deny, mode, answer):
    result = cloche.behind(*deny(f"capget:{answer}"))("run", "--mode", mode, "--", "grep", "CapBnd", "/proc/self/status")
    assert result.code == 125 and "wall.caps" in result.err, result


NOT_IN_LIGHT = {"setns", "umount2", "mount_setattr", "sethostname"}


@pytest.mark.root
@pytest.mark.parametrize("mode", ["light", "standard"])
@pytest.mark.parametrize("call", ["setresuid", "setresgid", "setns", "seccomp", "umount2", "mount_setattr", "sethostname",
                                  "prlimit64", "close_range", "setsid", "capget"])
def test_a_success_that_is_none_is_seen(cloche, deny, mode, call):
    """Emulations of root (Charliecloud's, fakeroot's filters) say yes and do nothing."""
    result = cloche.behind(*deny(f"{call}:SUCCESS"))("run", "--mode", mode, "--", "cat", "/etc/shadow")
    if mode == "light" and call in NOT_IN_LIGHT:
        assert result.code == 1 and result.out == "", result
    else:
        assert result.code == 125 and result.out == "" and "[wall." in result.err, result


@pytest.mark.ordinary
@pytest.mark.parametrize("call", ["seccomp", "prlimit64", "close_range", "landlock_restrict_self"])
def test_light_sees_a_success_that_is_none(cloche, deny, call):
    (cloche.home / ".ssh").mkdir()
    (cloche.home / ".ssh" / "id").write_text("the key", encoding="ascii")
    result = cloche.behind(*deny(f"{call}:SUCCESS"))("run", "--mode", "light", "--", "cat", cloche.home / ".ssh" / "id")
    assert result.code == 125 and result.out == "" and "[wall." in result.err, result


@pytest.mark.parametrize("mode", ["light", "standard"])
@pytest.mark.parametrize("rule", ["geteuid:EPERM", "geteuid:SUCCESS", "getegid:ENOSYS", "getresuid:EPERM",
                                  "getresuid:SUCCESS"])
def test_who_we_are_is_not_guessed(cloche, deny, mode, rule):
    """The attack: as root, without geteuid, mode light ran as root: /etc/shadow could be read."""
    result = cloche.behind(*deny(rule))("run", "--mode", mode, "--", "cat", "/etc/shadow")
    if os.geteuid() == 0 and rule == "geteuid:SUCCESS":        # which is true
        assert result.code == 1 and result.out == "", result
    else:
        assert result.code == 125 and result.out == "" and "[wall." in result.err, result


@pytest.mark.root
@pytest.mark.parametrize("mode", ["light", "standard"])
@pytest.mark.parametrize("ids", [["--euid=65533", "--egid=65533"], ["--ruid=65533", "--rgid=65533"],
                                 ["--ruid=65533", "--regid=65533"]])
def test_no_other_user_is_left_to_become(cloche, mode, ids):
    """The attack: the real uid 0 and another effective one; inside setuid(0) gave root back."""
    code = ("import os\nfor call in (os.setuid, os.setgid):\n    try: call(0); print('became 0 by', call.__name__)\n"
            "    except OSError: pass\nprint(set(os.getresuid()) == {os.getuid()}, set(os.getresgid()) == {os.getgid()})\n"
            "print(open('/etc/shadow').read(4))\n")
    os.chmod(cloche.home, 0o755)
    if places.is_sanitized(cloche.binary):
        pytest.skip("the leak sanitizer cannot look at a process of two users")
    result = cloche.behind("setpriv", *ids, "--clear-groups")("run", "--mode", mode, "--", "/usr/bin/python3", "-c", code,
                                                              cwd="/")
    if mode == "standard" and result.code == 125:       # whose files in /proc are root's: no maps can be written
        assert result.out == "" and "wall.userns.map" in result.err, result
    else:
        assert result.out == "True True\n" and result.code == 1, result


@pytest.mark.root
@pytest.mark.parametrize("mode", ["light", "standard"])
@pytest.mark.parametrize("words", [["chrt", "-f", "5"], ["chrt", "-r", "5"], ["nice", "-n", "-15"], ["ionice", "-c1"]])
def test_precedence_of_the_caller_is_not_inherited(cloche, mode, words):
    code = ("import ctypes, os\nprint(os.sched_getscheduler(0), os.getpriority(os.PRIO_PROCESS, 0) >= 0, "
            "ctypes.CDLL(None).syscall(252, 1, 0) >> 13)")
    result = cloche.behind(*words)("run", "--mode", mode, "--", "/usr/bin/python3", "-c", code, cwd="/")
    if result.err.startswith("chrt: "):
        pytest.skip("the cgroup of this machine's tests has no real-time share: " + result.err)
    assert result.out.split()[:2] == ["0", "True"] and result.out.split()[2] != "1", result


@pytest.mark.root
@pytest.mark.parametrize("mode", ["light", "standard"])
def test_what_spares_the_caller_when_memory_runs_out_is_not_inherited(cloche, mode):
    result = cloche.behind("choom", "-n", "-500", "--")("run", "--mode", mode, "--", "cat", "/proc/self/oom_score_adj", cwd="/")
    if "choom" in result.err:
        pytest.skip("needs CAP_SYS_RESOURCE: " + result.err)
    assert result.out.strip() == "0", result


@pytest.mark.root
def test_root_without_a_way_to_another_user_says_so(cloche):
    """Its sandbox's user is uid 0 outside: named, and what kernel file systems keep for root is closed."""
    words = ["setpriv", "--bounding-set", "-setuid", "--inh-caps", "-setuid", "--"]
    result = cloche.behind(*words)("run", "--", "cat", "/proc/self/uid_map")
    assert result.out.split()[1] != "0" or 'weaker form "root"' in result.err, result
    seen = cloche.behind(*words)("run", "--view", "host", "--", "ls", "/sys", "/etc/ssh")
    assert seen.out == "" and 'weaker form "root"' in seen.err, seen


@pytest.mark.root
@pytest.mark.parametrize("mode,lost", [("standard", "sys_admin"), ("light", "kill")])
def test_root_without_a_way_to_another_user_gives_its_groups_up(cloche, mode, lost):
    """Whoever may not become another user may still give up the groups that it has: a container's root is in many."""
    words = ["setpriv", "--groups", "4,24,27", "--bounding-set", f"-{lost}", "--inh-caps", f"-{lost}", "--"]
    result = cloche.behind(*words)("run", "--mode", mode, "--", "grep", "Groups", "/proc/self/status", cwd="/")
    assert "is uid 0 outside" in result.err, result
    assert not {"4", "24", "27", "65534"} & set(result.out.split()), result


# user namespaces by the administrator's switch ------------------------------------------------------------------
def outer(*zeroed):
    script = "".join(f"echo 0 > /proc/sys/user/max_{kind}_namespaces || exit 99; " for kind in zeroed)
    return ["unshare", "-Ur", "--", "/bin/sh", "-c", script + 'exec "$@"', "sh"]


@pytest.mark.ordinary
@pytest.mark.parametrize("kind", ["user", "mnt", "pid", "net", "ipc", "uts", "cgroup"])
def test_one_namespace_kind_forbidden(bait, cloche, command, kind):
    words = outer(kind)
    if not command([*words, "true"], check=False).ok:
        pytest.skip("no outer user namespace here")
    verdicts, result = bait.attack(cloche.behind(*words).sandbox, expect_ok=False)
    assert_same_wall_or_refusal(verdicts, result, ["namespace"])


@pytest.mark.ordinary
def test_refusal_without_user_namespaces_tells_the_remedy(cloche, command):
    words = outer("user")
    if not command([*words, "true"], check=False).ok:
        pytest.skip("no outer user namespace here")
    result = cloche.behind(*words)("run", "--", "true")
    assert result.code == 125
    assert "user" in result.err and "namespace" in result.err
    assert "max_user_namespaces" in result.err or "--mode light" in result.err, result


@pytest.mark.ordinary
def test_inside_another_user_namespace(bait, cloche, command):
    """As in a rootless container: we are 'root' of a namespace that maps one id."""
    if not command(["unshare", "-Ur", "true"], check=False).ok:
        pytest.skip("no outer user namespace here")
    verdicts, result = bait.attack(cloche.behind("unshare", "-Ur", "--").sandbox, expect_ok=False)
    assert_same_wall_or_refusal(verdicts, result, None)


# fallback: only when asked, and loudly --------------------------------------------------------------------------
@pytest.mark.ordinary
@requirement("R05")
def test_fallback_warn_runs_with_a_visible_warning(cloche, deny):
    behind = cloche.behind(*deny("@userns"))
    refused = behind("run", "--", "true")
    if refused.code != 125:
        pytest.skip("this cloche built the wall another way")
    result = behind("run", "--fallback", "warn", "--", "echo", "ran")
    if result.ok:
        assert result.out == "ran\n" and "warning" in result.err.lower(), result
    else:
        assert result.code == 125, result


# cgroups --------------------------------------------------------------------------------------------------------
@pytest.mark.root
def test_without_any_cgroup_hierarchy(bait, cloche):
    """/sys/fs/cgroup hidden: limits are kept by other means, and the report says by which."""
    words = ["unshare", "-m", "--", "/bin/sh", "-c", 'mount -t tmpfs none /sys/fs/cgroup && exec "$@"', "sh"]
    behind = cloche.behind(*words)
    verdicts, result = bait.attack(behind.sandbox, expect_ok=False)
    assert_same_wall_or_refusal(verdicts, result, ["cgroup"])
    report = behind("run", "--json", "--memory", "128m", "--pids", "50", "--", "true")
    if report.ok:
        assert limit_of(report.json, "memory")["enforced_by"] == "supervised", report.json["limits"]
        bomb = behind.sandbox("b=[]\nwhile 1: b.append(b'x'*(1<<22))", flags=["--memory", "96m", "--json"])
        assert bomb.json["reason"] == "memory", bomb


@pytest.mark.root
def test_read_only_cgroup_hierarchy(cloche):
    words = ["unshare", "-m", "--", "/bin/sh", "-c",
             'for d in /sys/fs/cgroup/*; do mount -o remount,bind,ro $d 2>/dev/null || { mount --bind $d $d; '
             'mount -o remount,bind,ro $d; }; done; exec "$@"', "sh"]
    report = cloche.behind(*words)("run", "--json", "--memory", "128m", "--", "true")
    if report.ok:
        assert limit_of(report.json, "memory")["enforced_by"] == "supervised", report.json["limits"]
    else:
        assert report.code == 125 and "cgroup" in report.out, report


@pytest.mark.ordinary
def test_an_ordinary_user_without_cgroups_is_limited_all_the_same(cloche):
    report = cloche("run", "--json", "--memory", "64m", "--", "true").json
    if limit_of(report, "memory")["enforced_by"] == "none":
        pytest.fail("a memory limit that nobody enforces must be refused or supervised")
    bomb = cloche.sandbox("b=[]\nwhile 1: b.append(b'x'*(1<<22))", flags=["--memory", "96m", "--json"])
    assert bomb.json["reason"] == "memory", bomb


# the host's shape -----------------------------------------------------------------------------------------------
@pytest.mark.root
def test_without_proc(cloche):
    """No /proc on the host side: refusal or the same wall, not a crash."""
    words = ["unshare", "-m", "--", "/bin/sh", "-c", 'umount -l /proc && exec "$@"', "sh"]
    result = cloche.behind(*words)("run", "--", "grep", "Seccomp:", "/proc/self/status")
    same = result.ok and result.out.split() == ["Seccomp:", "2"]
    # a build with LeakSanitizer ends as that likes: it looks for leaks through /proc
    code = 125 if "LeakSanitizer has encountered a fatal error" in result.err else result.code
    assert same or (code == 125 and "/proc" in result.err), result


@pytest.mark.root
def test_partly_masked_proc(cloche):
    """As in a Docker container: /proc/sys read-only, /proc/kcore masked.

    The kernel then refuses a new procfs in a user namespace.
    """
    words = ["unshare", "-m", "--", "/bin/sh", "-c",
             'mount --bind /dev/null /proc/kcore 2>/dev/null || mount --bind /dev/null /proc/keys; '
             'mount --bind /proc/sys /proc/sys && mount -o remount,bind,ro /proc/sys; exec "$@"', "sh"]
    result = cloche.behind(*words)("run", "--", "sh", "-c", "grep Seccomp: /proc/self/status; ls -d /proc/[0-9]* | wc "
                                                            "-l")
    if result.ok:
        assert result.out.split()[:2] == ["Seccomp:", "2"], result
        assert int(result.out.split()[2]) < 10, "the host's processes are visible"
    else:
        assert result.code == 125 and "/proc" in result.err, result


def test_binary_moved_elsewhere(cloche, world):
    """The guest is embedded: one file is the whole program."""
    copy = world.root / "elsewhere" / "cloche"
    copy.parent.mkdir()
    shutil.copy(cloche.binary, copy)
    copy.chmod(0o755)
    assert cloche.run([copy, "run", "--", "echo", "fine"]).out == "fine\n"


def test_start_from_a_directory_that_is_gone(cloche, world):
    script = 'mkdir -p "$0" && cd "$0" && rmdir "$0" && exec "$@"'
    result = cloche.run(["/bin/sh", "-c", script, str(cloche.tmp / "gone"), *cloche.argv("run", "--", "echo", "fine")])
    assert result.out == "fine\n" or result.code == 125, result


@pytest.mark.root
def test_root_with_few_capabilities(bait, cloche):
    """Root of a container: uid 0 without CAP_SYS_ADMIN."""
    words = ["setpriv", "--bounding-set", "-sys_admin,-sys_ptrace,-setpcap", "--inh-caps", "-sys_admin", "--"]
    verdicts, result = bait.attack(cloche.behind(*words).sandbox, expect_ok=False)
    assert_same_wall_or_refusal(verdicts, result, None)


def test_low_descriptor_limit_of_the_caller(cloche):
    result = cloche.run(["/bin/sh", "-c", 'ulimit -n 24; exec "$@"', "sh", *cloche.argv("run", "--", "echo", "fine")])
    assert result.out == "fine\n" or (result.code == 125 and result.err), result


def test_low_process_limit_of_the_caller(cloche):
    result = cloche.run(["/bin/sh", "-c", 'ulimit -u 1; exec "$@"', "sh", *cloche.argv("run", "--", "echo", "fine")])
    assert result.out == "fine\n" or (result.code == 125 and result.err), result


def test_home_unset_or_missing(cloche):
    assert cloche("run", "--", "echo", "fine", env={"HOME": None}).out == "fine\n"
    assert cloche("run", "--", "echo", "fine", env={"HOME": "/no/such/home", "TMPDIR": None}).out == "fine\n"
    assert os.path.exists("/no/such") is False


def test_empty_environment(cloche):
    result = cloche.run(cloche.argv("run", "--", "echo", "fine"), bare_env={})
    assert result.out == "fine\n", result
