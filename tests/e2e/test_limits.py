"""Limits hold, and the report tells which one ended the run."""
import re
import resource

import pytest

from helpers import leaks, requirement
from helpers.places import PYTHON
from helpers.runner import limit_of, wait_for

EAT = "b = []\nwhile True: b.append(bytearray(b'x' * (4 << 20)))"


def gone(word):
    return wait_for(lambda: leaks.reap_adopted(set()) or
                    not any(word in what for what in leaks.descendants().values()))


# time ----------------------------------------------------------------------------------------------------------
@requirement("R65")
def test_timeout_is_told(cloche):
    result = cloche("run", "--json", "--timeout", "500ms", "--grace", "200ms", "--", "sleep", "1000")
    assert result.code == 124
    report = result.json
    assert report["reason"] == "timeout" and report["timed_out"] is True and report["oom_killed"] is False
    assert report["duration_ms"] >= 500


@requirement("R65")
def test_timeout_asks_first(cloche):
    """SIGTERM, and the grace to act on it."""
    code = ("import signal,sys,time\n"
            "def bye(*_):\n import os; os.write(1, b'saved\\n'); os._exit(0)\n"
            "signal.signal(signal.SIGTERM, bye)\nprint('ready', flush=True)\ntime.sleep(1000)")
    result = cloche.sandbox(code, flags=["--timeout", "1", "--grace", "20"])
    assert result.out == "ready\nsaved\n", result
    assert result.code == 124


@requirement("R65")
def test_timeout_then_kills_what_does_not_listen(cloche):
    result = cloche("run", "--json", "--timeout", "300ms", "--grace", "300ms", "--", "sh", "-c",
                    "trap '' TERM INT HUP; while :; do sleep 1; done")
    assert result.code == 124 and result.json["reason"] == "timeout"


@requirement("R65")
def test_timeout_kills_the_whole_tree(cloche):
    cloche("run", "--timeout", "300ms", "--grace", "200ms", "--", "bash", "-c",
           "trap '' TERM; for i in 1 2 3; do (trap '' TERM; setsid sleep 77777 & sleep 77777) & done; sleep 77777")
    assert gone("sleep")


def test_timeout_during_the_grace_is_not_counted_twice(cloche):
    """The child ends in its grace: the run is a timeout all the same, whatever its code."""
    result = cloche("run", "--json", "--timeout", "300ms", "--grace", "20", "--", "bash", "-c",
                    "trap 'exit 0' TERM; sleep 1000 & wait")
    assert result.code == 124 and result.json["timed_out"] is True


@requirement("R65")
@pytest.mark.parametrize("code,reason,signal", [("exit 143", "exited", None),
                                                ("kill -TERM $$; sleep 9", "signaled", "SIGTERM"),
                                                ("exit 124", "exited", None), ("exit 137", "exited", None),
                                                ("kill -KILL $$; sleep 9", "signaled", "SIGKILL")])
def test_codes_that_look_like_a_timeout_are_none(cloche, code, reason, signal):
    result = cloche("run", "--json", "--timeout", "60", "--memory", "256m", "--", "sh", "-c", code)
    report = result.json
    assert report["timed_out"] is False and report["oom_killed"] is False
    assert (report["reason"], report["signal"]) == (reason, signal)


def test_no_timeout_by_default(cloche):
    assert limit_of(cloche("run", "--json", "--", "true").json, "time")["limit"] is None


@pytest.mark.parametrize("value", ["-1", "1x", "", "1.5.2", "99999999999999999999", " 5", "0x10"])
def test_timeout_malformed_is_refused(cloche, value):
    result = cloche("run", "--timeout", value, "--", "true")
    assert result.code == 125, result


# memory --------------------------------------------------------------------------------------------------------
@requirement("R65", "R26")
def test_memory_bomb_is_told_from_other_deaths(anyone):
    result = anyone.sandbox(EAT, flags=["--json", "--memory", "96m", "--timeout", "60"])
    report = result.json
    assert report["reason"] == "memory" and report["oom_killed"] is True, report
    assert report["timed_out"] is False
    assert result.code == 137, result


def test_a_limit_without_a_cgroup_is_said_in_words(anyone):
    """Why, then for which limits."""
    report = anyone("code", "--language", "shell", "--json", "-", stdin="true").json
    missing = [w for w in report["warnings"] if w.startswith("the CPU limit is not enforced: ")]
    assert all(re.fullmatch(r"[^:]+: [^()]+ for (memory, )?cpu(, pids)?", w) for w in missing), missing


@requirement("R65")
def test_memory_of_all_children_together(anyone):
    """Eight children of 40 MiB are more than 128 MiB, though none of them is."""
    code = ("import os,time\n"
            "for i in range(8):\n"
            " if os.fork() == 0:\n"
            "  b = bytearray(b'x' * (40 << 20)); time.sleep(60); os._exit(0)\n"
            "ends = [os.wait()[1] for i in range(8)]\n"
            "print('ends', ends)\n")
    result = anyone.sandbox(code, flags=["--json", "--memory", "128m", "--timeout", "50", "--grace", "1"])
    report = result.json
    assert report["oom_killed"] is True and report["timed_out"] is False, report


def test_below_the_memory_limit_all_is_well(anyone):
    result = anyone.sandbox("b = bytearray(b'x' * (60 << 20)); print(len(b))", flags=["--memory", "128m"])
    assert result.ok, result


def test_memory_in_tmpfs_counts_or_is_limited_by_disk(cloche):
    result = cloche("run", "--memory", "64m", "--disk", "32m", "--json", "--", "sh", "-c",
                    "head -c 200000000 /dev/zero > /tmp/f; echo $?; ls -l /tmp/f | cut -d' ' -f5")
    size = int(result.json["stdout"].split()[-1]) if result.json["stdout"].split() else 0
    assert size <= 64 << 20


# pids ----------------------------------------------------------------------------------------------------------
FORKS = """
import os, time
made = 0
try:
    for i in range(400):
        if os.fork() == 0:
            time.sleep(100)
            os._exit(0)
        made += 1
    print("all", made)
except OSError as e:
    print("stopped", made, "errno=" + __import__("errno").errorcode[e.errno])
"""


@requirement("R65", "R26")
def test_pids_limit(anyone):
    result = anyone.sandbox(FORKS, flags=["--pids", "60"])
    words = result.out.split()
    assert words and words[0] == "stopped", result
    assert int(words[1]) < 60 and result.errno == "EAGAIN"


@pytest.mark.root
def test_pids_limit_of_a_root_that_keeps_its_uid(cloche):
    """Without CAP_SYS_ADMIN the sandbox is uid 0 outside, which the kernel exempts from RLIMIT_NPROC."""
    run = cloche.behind("setpriv", "--bounding-set", "-sys_admin", "--inh-caps", "-sys_admin")
    report = run("run", "--json", "--pids", "20", "--", PYTHON, "-I", "-S", "-c", FORKS)
    stopped = report.json["stdout"].split()
    assert (stopped[0] == "stopped" and int(stopped[1]) < 20) or \
        any("limit of processes" in w for w in report.json["warnings"]), report


def test_threads_count_as_pids(anyone):
    code = ("import threading,time\nn=0\n"
            "try:\n for i in range(300):\n  threading.Thread(target=time.sleep, args=(30,), daemon=True).start(); "
            "n+=1\n"
            "except RuntimeError: pass\nprint(n, flush=True)\nimport os; os._exit(0)")
    result = anyone.sandbox(code, flags=["--pids", "40"])
    assert int(result.out) < 40, result


# disk ----------------------------------------------------------------------------------------------------------
@requirement("R65")
@pytest.mark.parametrize("place", ["/tmp", "/workspace", "/home/agent", "/var/tmp", "/dev/shm", "/run"])
def test_disk_limit_in_every_writable_place(cloche, place):
    code = ("import sys\nn=0\ntry:\n f=open(sys.argv[1]+'/f','wb')\n"
            " while n < 128: f.write(b'x'*(1<<20)); f.flush(); n+=1\n"
            "except OSError as e: print('errno='+__import__('errno').errorcode[e.errno])\nprint(n)")
    result = cloche.sandbox(code, flags=["--disk", "16m", "--memory", "1g"], args=[place])
    if result.ok and place == "/run" and "EACCES" in result.out:
        return                                      # not writable at all
    assert result.ok and int(result.out.split()[-1]) <= 17, result
    assert result.errno in ("ENOSPC", "EDQUOT"), result


@requirement("R65")
def test_disk_limit_of_all_places_together(cloche):
    """One budget: /tmp, the home and /workspace cannot each have it all."""
    code = ("total = 0\n"
            "for d in ('/tmp', '/workspace', '/home/agent', '/var/tmp', '/dev/shm'):\n"
            " try:\n  f = open(d + '/f', 'wb')\n  while total < (256 << 20): total += f.write(b'x' * (1 << 20)); "
            "f.flush()\n"
            " except OSError: pass\nprint(total >> 20)")
    result = cloche.sandbox(code, flags=["--disk", "20m", "--memory", "1g"])
    assert int(result.out) <= 42, result            # /dev/shm may have a share of its own


@requirement("R65")
def test_inodes_are_limited(cloche):
    """Empty files cost memory too: a small disk holds a bounded number of them."""
    code = ("import os\nn=0\ntry:\n"
            " for d in range(300):\n  os.mkdir('/tmp/%d' % d)\n"
            "  for i in range(1000): os.close(os.open('/tmp/%d/%d' % (d, i), os.O_CREAT | os.O_WRONLY)); n+=1\n"
            "except OSError as e: print('errno='+__import__('errno').errorcode[e.errno])\nprint(n)")
    result = cloche.sandbox(code, flags=["--disk", "16m", "--memory", "2g"])
    assert result.errno in ("ENOSPC", "EDQUOT") or result.code == 137, result
    if result.ok:
        assert int(result.out.split()[-1]) < 200_000


# output --------------------------------------------------------------------------------------------------------
@requirement("R65")
@pytest.mark.parametrize("stream", ["stdout", "stderr"])
def test_output_is_cut_with_a_warning(cloche, stream):
    to = "" if stream == "stdout" else " >&2"
    result = cloche("run", "--json", "--output", "100k", "--", "sh", "-c", f"yes | head -c 5000000{to}; exit 6")
    assert result.code == 6, "the child ran to its own end"
    report = result.json
    other = "stderr" if stream == "stdout" else "stdout"
    assert report[f"{stream}_truncated"] is True and report[f"{other}_truncated"] is False
    assert len(report[stream]) == 100 * 1024
    assert report["reason"] == "exited"
    assert any(stream in w for w in report["warnings"]), report["warnings"]


@requirement("R65")
def test_output_is_cut_when_it_passes_through(cloche):
    result = cloche("run", "--output", "100k", "--", "sh", "-c", "yes | head -c 5000000")
    assert result.ok
    assert len(result.out_bytes) == 100 * 1024
    assert "warning" in result.err and "stdout" in result.err and "102400" in result.err, result.err


def test_output_exactly_at_the_limit_is_not_cut(cloche):
    report = cloche("run", "--json", "--output", "1000", "--", "sh", "-c", "yes | head -c 1000").json
    assert report["stdout_truncated"] is False and len(report["stdout"]) == 1000


def test_json_has_a_limit_of_one_mebibyte_by_default(cloche):
    report = cloche("run", "--json", "--", "sh", "-c", "yes | head -c 3000000").json
    assert len(report["stdout"]) == 1 << 20 and report["stdout_truncated"] is True


# files ---------------------------------------------------------------------------------------------------------
def test_open_files_limit(cloche):
    code = ("import os\nn=0\ntry:\n while True: os.open('/dev/null', 0); n+=1\n"
            "except OSError as e: print(n, 'errno='+__import__('errno').errorcode[e.errno])")
    result = cloche.sandbox(code, flags=["--nofile", "100"])
    assert result.errno == "EMFILE" and int(result.out.split()[0]) < 100, result


def test_open_files_limit_cannot_be_raised(cloche):
    code = "import resource; resource.setrlimit(resource.RLIMIT_NOFILE, (5000, 5000))"
    assert not cloche.sandbox(code, flags=["--nofile", "100"]).ok


@pytest.mark.parametrize("mode", ["light", "standard"])
def test_core_files_are_off(cloche, project, mode):
    """No file, whatever core_pattern calls it; and nothing for a handler, which the host's root would run: a limit of 0
    does not bind it, and 1 is what the kernel starts none for."""
    code = ("import os, resource\npid = os.fork()\nif pid == 0: os.abort()\n"
            "print(os.WCOREDUMP(os.waitpid(pid, 0)[1]), *resource.getrlimit(resource.RLIMIT_CORE))")
    soft, hard = resource.getrlimit(resource.RLIMIT_CORE)
    resource.setrlimit(resource.RLIMIT_CORE, (hard, hard))
    before = set(project.iterdir())
    try:
        opened = ["--workspace", project] if mode == "standard" else []     # light opens no folder of root's
        said = cloche("run", "--mode", mode, *opened, "--", "/usr/bin/python3", "-c", code, cwd=project)
    finally:
        resource.setrlimit(resource.RLIMIT_CORE, (soft, hard))
    least = str(min(1, hard) if hard >= 0 else 1)
    assert said.out.split() == ["False", least, least] and set(project.iterdir()) == before, said


@pytest.mark.parametrize("mode", ["light", "standard", "max"])
def test_the_limit_of_core_files_stays(cloche, mode):
    """Programs lower it to 0 in good faith; the kernel takes that as leave to start the host's handler, as root."""
    code = """
import ctypes, os, resource, subprocess
now = lambda: print(*resource.getrlimit(resource.RLIMIT_CORE))
libc, zero = ctypes.CDLL(None, use_errno=True), (ctypes.c_ulong * 2)(0, 0)
resource.setrlimit(resource.RLIMIT_CORE, (0, 0)); now()
resource.setrlimit(resource.RLIMIT_CORE, (0, 1)); now()
print(libc.syscall(160 if os.uname().machine == 'x86_64' else 164, resource.RLIMIT_CORE, zero)); now()
print(libc.syscall(302 if os.uname().machine == 'x86_64' else 261, os.getpid(), resource.RLIMIT_CORE, zero, None), ctypes.get_errno()); now()
print(libc.syscall(302 if os.uname().machine == 'x86_64' else 261, 0, ctypes.c_ulong(resource.RLIMIT_CORE + (1 << 32)), zero, None)); now()
print(subprocess.run('ulimit -c 0 && prlimit --core=0:0 true && echo well', shell=True, capture_output=True, text=True).stdout.strip()); now()
resource.setrlimit(resource.RLIMIT_NOFILE, (50, 60)); print(*resource.getrlimit(resource.RLIMIT_NOFILE))"""
    least = "1 1" if resource.getrlimit(resource.RLIMIT_CORE)[1] != 0 else "0 0"
    said = cloche("run", "--mode", mode, "--", "/usr/bin/python3", "-c", code)
    assert said.out.splitlines() == [least, least, "0", least, "-1 1", least, "0", least, "well", least, "50 60"], said


# cpu -----------------------------------------------------------------------------------------------------------
def test_cpus_is_reported(cloche):
    result = cloche("run", "--json", "--cpus", "0.5", "--", "true")
    if result.code == 125:      # without a cgroup nothing can hold a CPU share: refused, not claimed
        assert result.json["error"]["code"] == "wall.cpu.unsupported", result
        return
    assert limit_of(result.json, "cpu")["limit"] == 500


@pytest.mark.root
def test_cpu_share_is_enforced_by_the_cgroup(cloche):
    """Two seconds of CPU at a quarter of a CPU cannot be used in one second of wall clock."""
    code = ("import time\nw=time.monotonic(); c=time.process_time()\n"
            "while time.monotonic() - w < 2: pass\nprint(time.process_time() - c)")
    result = cloche.sandbox(code, flags=["--cpus", "0.25"])
    report = cloche("run", "--json", "--cpus", "0.25", "--", "true").json
    assert "cgroup" in limit_of(report, "cpu")["enforced_by"], report
    assert float(result.out) < 1.2, result


# values --------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("flag,value", [("--memory", "0"), ("--memory", "none"), ("--pids", "none"), ("--disk", "0"),
                                        ("--timeout", "none"), ("--output", "none"), ("--cpus", "none"),
                                        ("--cpus", "0.25"), ("--memory", "1GiB"), ("--memory", "512M"),
                                        ("--timeout", "2m"), ("--timeout", "90000ms"), ("--nofile", "none")])
def test_values_that_are_understood(cloche, flag, value):
    result = cloche("run", flag, value, "--", "true")
    assert result.ok or (flag == "--cpus" and "[wall.cpu.unsupported]" in result.err), result


@pytest.mark.parametrize("flag,value", [("--memory", "-1"), ("--memory", "1.5m"), ("--memory", "12q"), ("--cpus", "-1"),
                                        ("--cpus", "1,5"), ("--cpus", "NaN"), ("--pids", "1e3"), ("--pids", ""),
                                        ("--disk", "99999999999999999999g"), ("--output", "many"), ("--nofile", "1"),
                                        ("--memory", "1k"), ("--grace", "-2s"), ("--pids", "0x10")])
def test_values_that_are_refused(cloche, flag, value):
    result = cloche("run", flag, value, "--", "true")
    assert result.code == 125, result
    assert flag in result.err or flag.strip("-") in result.err, result
