"""syscalls.allow, syscalls.deny (docs/syscalls.md#calls-of-your-own); apparmor, selinux (docs/security.md)."""
import json
import os
import platform

import pytest

from helpers import requirement

pytestmark = [requirement("R69", "R26"),
              pytest.mark.skipif(platform.machine() != "x86_64", reason="the numbers are those of x86-64")]

# kcmp(self, self, KCMP_FILE, 0, 0): 0 where the kernel is reached
KCMP, PERSONALITY, GETPPID = 312, 135, 110
CALL = """
import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True)
def call(*words):
    r = libc.syscall(*words)
    return "ok" if r >= 0 else os.strerror(ctypes.get_errno())
me = os.getpid()
"""
TRY_KCMP = CALL + f"print(call({KCMP}, me, me, 0, 0, 0))"
LABELS = {"apparmor": "/sys/module/apparmor/parameters/enabled", "selinux": "/sys/fs/selinux/enforce"}


def has(module):
    path = LABELS[module]
    return os.path.exists(path) and (module == "selinux" or open(path).read().startswith("Y"))


def python(cloche, code, *flags):
    return cloche("run", *flags, "--", "python3", "-c", code)


@pytest.mark.parametrize("mode", ["standard", "max"])
def test_a_refused_call_is_opened_by_name(cloche, mode):
    assert python(cloche, TRY_KCMP, "--mode", mode).out.strip() == "Operation not permitted"
    assert python(cloche, TRY_KCMP, "--mode", mode, "--allow-syscall", "kcmp").out.strip() == "ok"


def test_opened_calls_open_nothing_else(cloche):
    """bpf, io_uring_setup, open_by_handle_at, the x32 kcmp: as before."""
    code = CALL + f"print([call(321, -1, 0, 0), call(425, 1, 0), call(304, -1, 0, 0), call({KCMP} | 0x40000000, me, me, 0, 0, 0)])"
    plain, opened = python(cloche, code), python(cloche, code, "--allow-syscall", "kcmp", "--allow-syscall", "move_pages")
    assert plain.out == opened.out and "ok" not in plain.out, (plain, opened)


@pytest.mark.parametrize("mode", ["standard", "light"])
def test_a_denied_call_is_refused_to_commands_and_their_children(cloche, mode):
    code = CALL + f"print(call({GETPPID}), call({PERSONALITY}, 0xffffffff)); sys.stdout.flush(); os.fork() or print(call({GETPPID}))"
    assert "ok ok" in python(cloche, code, "--mode", mode).out
    denied = python(cloche, code, "--mode", mode, "--deny-syscall", "getppid", "--deny-syscall", "personality").out
    assert "ok" not in denied and denied.count("Operation not permitted") == 3, denied


def test_deny_wins_over_allow(cloche):
    assert "not permitted" in python(cloche, TRY_KCMP, "--allow-syscall", "kcmp", "--deny-syscall", "kcmp").out


def test_nothing_started_inside_undoes_a_denial(cloche, project):
    """Not a new filter, not another interpreter, not a script: all of them are below it."""
    (project / "again.sh").write_text(f"#!/bin/sh\nexec python3 -c '{CALL}print(call({GETPPID}))'\n")
    (project / "again.sh").chmod(0o755)
    result = cloche("run", "--workspace", str(project), "--deny-syscall", "getppid", "--", "sh", "-c", "setsid ./again.sh")
    assert result.out.strip() == "Operation not permitted", result


@pytest.mark.parametrize("flag, name, code", [
    ("--allow-syscall", "no_such_call", "policy.syscall.unknown"), ("--deny-syscall", "no_such_call", "policy.syscall.unknown"),
    ("--deny-syscall", "execve", "policy.syscall.vital"), ("--allow-syscall", "", "policy.syscall.unknown"),
    *[("--allow-syscall", name, "policy.syscall.never") for name in (
        "io_uring_setup", "bpf", "open_by_handle_at", "userfaultfd", "mount", "clone3", "keyctl", "ptrace", "perf_event_open",
        "init_module", "get_robust_list", "memfd_secret", "file_setattr")]])
def test_what_is_never_opened_is_refused_by_name(cloche, flag, name, code):
    result = cloche("run", flag, name, "--", "true")
    assert result.code == 125 and code in result.err, result


def test_light_opens_nothing_that_is_the_hosts(cloche):
    for name in ("kcmp", "shmget", "move_pages"):
        result = cloche("run", "--mode", "light", "--allow-syscall", name, "--", "true")
        assert result.code == 125 and ("policy.syscall.mode" in result.err), result


@pytest.mark.parametrize("names, needs", [(("shmget", "shmat", "shmdt"), "shmctl"), (("msgget", "msgsnd"), "msgctl"), (("semget",), "semctl")])
def test_what_holds_memory_is_opened_with_what_counts_it(cloche, names, needs):
    """The guest counts shared memory by shmctl, behind the same list: without it, what is detached was held for nothing."""
    flags = [word for name in names for word in ("--allow-syscall", name)]
    result = cloche("run", "--mode", "max", *flags, "--", "true")
    assert result.code == 125 and "[policy.syscall.with]" in result.err and needs in result.err, result
    assert cloche("run", "--mode", "max", *flags, "--allow-syscall", needs, "--", "true").ok
    assert cloche("run", "--allow-syscall", names[0], "--", "true").ok      # the list of standard has all of them


def test_settings_say_the_same(cloche, project):
    settings = project / "s.yaml"
    settings.write_text("syscalls:\n  allow: [kcmp]\n  deny: [getppid]\n")
    code = TRY_KCMP + f"; print(call({GETPPID}))"
    assert python(cloche, code, "--settings", str(settings)).out.split("\n")[:2] == ["ok", "Operation not permitted"]


def test_show_digest_and_why_know_them(cloche):
    def show(*flags):
        return json.loads(cloche("policy", "show", "--json", *flags).out)

    plain, changed = show(), show("--allow-syscall", "kcmp", "--deny-syscall", "ptrace")
    assert plain["digest"] != changed["digest"]
    assert "kcmp" in json.dumps(changed) and "ptrace" in json.dumps(changed)

    def why(name, *flags):
        result = cloche("why", "--syscall", name, "--json", *flags)
        answer = json.loads(result.out)
        assert result.code == (0 if answer["verdict"] == "allowed" else 1)
        return answer

    assert why("kcmp")["reason"] == "syscall-refused" and why("kcmp")["suggested_flag"] == "--allow-syscall kcmp"
    assert why("bpf")["suggested_flag"] is None
    assert why("kcmp", "--allow-syscall", "kcmp")["reason"] == "syscall-opened"
    assert why("read")["reason"] == "syscall-list"
    assert why("read", "--deny-syscall", "read")["reason"] == "syscall-denied"
    assert why("clone")["reason"] == "syscall-arguments"
    assert cloche("why", "--syscall", "nothing_such").code == 125


def test_prove_expects_what_the_policy_says(cloche):
    result = cloche("prove", "--quick", "--json", "--allow-syscall", "kcmp", "--deny-syscall", "getppid", timeout=600)
    found = json.loads(result.out)
    calls = {m["mode"]: c for m in found["modes"] for c in m["checks"] if c["id"] == "attack.system-calls"}
    assert {c["state"] for c in calls.values()} == {"held"} and set(calls) == {"standard", "max"}, calls
    assert found["n_surprises"] == 0


@pytest.mark.parametrize("module", LABELS)
def test_a_label_without_its_module_is_refused_or_said(cloche, module):
    if has(module):
        pytest.skip(f"this host has {module}: it would be applied")
    result = cloche("run", f"--{module}", "some-label", "--", "true")
    assert result.code == 125 and "wall.label.absent" in result.err and "some-label" in result.err, result
    result = cloche("run", f"--{module}", "some-label", "--fallback", "warn", "--", "echo", "ran")
    assert result.code == 0 and result.out == "ran\n" and "nothing runs under some-label" in result.err, result


@pytest.mark.parametrize("module", LABELS)
def test_a_label_that_the_module_does_not_know_is_refused(cloche, module):
    if not has(module):
        pytest.skip(f"this host has no {module}")
    result = cloche("run", f"--{module}", "cloche-no-such-label", "--", "true")
    assert result.code == 125 and "wall.label" in result.err, result


@pytest.mark.parametrize("module", LABELS)
@pytest.mark.parametrize("bad", ["two words", "line\nbreak", "", "x" * 256])
def test_a_label_is_one_word(cloche, module, bad):
    result = cloche("run", f"--{module}", bad, "--", "true")
    assert result.code == 125 and ("policy.label" in result.err or "policy.flag" in result.err), result
