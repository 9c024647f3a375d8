"""The engine oci: what any sandbox must do, on each OCI runtime; what its walls keep; what it refuses.

runsc is tested where `make runsc` has built it (docs/engines.md), crun and runc where Debian's packages are (tools/deps check).
"""
import os
import shutil
import signal

import pytest

from conformance import test_self_check
from helpers import leaks, places, requirement
from helpers.engines import Engine, again
from helpers.runner import wait_for

pytestmark = [requirement("R21", "R60"), pytest.mark.root]
BUILD = places.find_cloche().parents[2]
NAMES = ("crun", "runc", "runsc")
DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")
LINES = 'i=0; while [ $i -lt 20000 ]; do echo "line $i"; i=$((i+1)); done'


def installed(name):
    path = os.pathsep.join((str(BUILD), os.environ["PATH"]))
    if shutil.which(name, path=path) is None:
        pytest.skip("runsc is not built: make runsc" if name == "runsc" else f"{name} is not installed: tools/deps check")
    return path


class Sandbox(Engine):
    """cloche run on one runtime."""

    def __init__(self, cloche, name):
        super().__init__(cloche, "--engine", "oci", "--runtime", name)
        self.name = name
        cloche.env["PATH"] = installed(name)


@pytest.fixture(params=NAMES)
def sandbox(request, cloche):
    return Sandbox(cloche, request.param)


@pytest.fixture(params=("crun", "runc"))
def shared(request, cloche):
    """The runtimes that share the host's kernel: they have the name guard, and so folders that can be written."""
    return Sandbox(cloche, request.param)


@pytest.fixture
def env(shared):
    return test_self_check.Environment(shared.cloche, "--runtime", shared.name)


again(globals(), requirement("R61"))


# --- what any sandbox must do


@pytest.mark.parametrize("code", (0, 1, 42, 255))
def test_exit_code(sandbox, code):
    assert sandbox.sh(f"exit {code}").code == code


@pytest.mark.parametrize("name,number", (("TERM", 15), ("KILL", 9), ("SEGV", 11)))
def test_death_by_signal(sandbox, name, number):
    assert sandbox.sh(f"ulimit -c 0; kill -{name} $$; sleep 60").code == 128 + number


def test_streams_are_apart(sandbox):
    result = sandbox.sh("echo out; echo err >&2")
    assert (result.out, result.err) == ("out\n", "err\n") and result.ok, result


def test_large_binary_stdin_comes_back(sandbox):
    data = os.urandom(3_000_000)
    assert sandbox("cat", stdin=data).out_bytes == data


def test_many_lines(sandbox):
    assert sandbox.sh(LINES).out.splitlines()[-1] == "line 19999"


def test_not_found_and_not_executable(sandbox):
    assert sandbox("no-such-program-here").code == 127
    assert sandbox("/etc/passwd").code == 126


def test_files_that_are_not_there_or_folders(sandbox):
    result = sandbox.sh("cat /nope; cat /tmp; cat /root/x; echo x > /tmp; true")
    assert "No such file" in result.err and "s a directory" in result.err, result


def test_environment_and_working_directory(sandbox):
    result = sandbox.sh("echo $A; pwd", "--env", "A=a b", "--workdir", "/tmp")
    assert result.out == "a b\n/tmp\n", result
    result = sandbox.sh("true", "--workdir", "/nope")
    assert result.code == 125 and "[wall.workdir]" in result.err, result


def test_timeout_ends_the_whole_tree(sandbox):
    result = sandbox.sh("setsid sleep 987123 & sleep 987123", "--timeout", "1s")
    assert result.code == 124, result
    wait_for(lambda: leaks.reap_adopted(set()) or not set(leaks.named("sleep")) & set(leaks.descendants()))


def test_terminal(sandbox):
    assert sandbox.sh('script -qc "tty" /dev/null').out.strip().startswith("/dev/pts/")


# --- its walls


def test_who_it_is(sandbox):
    result = sandbox.sh("id -u; hostname; grep -E 'Cap|NoNew|Seccomp:' /proc/self/status; ls /sys/class/net 2>/dev/null")
    words = result.out.split()
    assert words[:2] == ["1000", "cloche"], result
    assert words.count("0" * 16) == 5 and words[words.index("NoNewPrivs:") + 1] == "1", result
    assert words[words.index("Seccomp:") + 1] == "2", result


def test_nothing_of_the_tree_is_changed(sandbox):
    text = "for f in /x /etc/x /usr/x /.cloche/x; do echo x > $f; done; rm -f /.cloche/*; mv /.cloche /y; ls /.cloche"
    result = sandbox.sh(text)
    assert result.out.split() == ["cloche-guest", "filter", "workdir"], result
    assert result.err.count("annot") == 8, result


@requirement("R65")
def test_limits(sandbox):
    assert sandbox.sh("head -c 50000000 /dev/zero > /tmp/x", "--disk", "20M").code == 1
    result = sandbox("python3", "-c", "a = b'x' * 400000000; print('not limited')", flags=("--memory", "100M"))
    assert result.code == 137 and not result.out, result
    result = sandbox.sh("for i in $(seq 60); do sleep 5 & done; jobs -p | wc -l; wait", "--pids", "20", "--timeout", "30s")
    assert "Cannot fork" in result.err or "limits.pids" in result.err, result


@requirement("R26")
def test_user_namespaces_and_mounts_are_refused(sandbox):
    result = sandbox.sh("unshare -U id; unshare -r id; mount -t tmpfs x /tmp")
    assert not result.out and result.code != 0, result


def test_read_only_project(sandbox):
    (sandbox.cloche.project / "f").write_text("text")
    result = sandbox.sh("cat f; echo x > f; touch y", "--workspace", f"{sandbox.cloche.project}:ro")
    assert result.out == "text" and result.err.count("ead-only") == 2, result
    assert [p.name for p in sandbox.cloche.project.iterdir()] == ["f"]


@requirement("R26")
def test_the_hosts_devices_stay_the_hosts(sandbox):
    """crun gives what it has as descriptors 0 to 2 to the sandbox's user. To what they are already: others use them."""
    devices = " ".join(DEVICES)
    result = sandbox.sh(f"stat -c %u {devices}; for f in {devices}; do chmod 666 $f; chown 1000 $f; done")
    assert result.err.count("not permitted") == 2 * len(DEVICES) and "1000" not in result.out.split(), result


@requirement("R40")
def test_a_project_that_is_written_keeps_its_hooks(shared, command):
    project = shared.cloche.project
    command(["git", "init", "-q", project])
    hook = project / ".git/hooks/pre-commit"
    result = shared.sh("echo x > a; echo x > .git/hooks/pre-commit; mv .git/hooks h; ls -a", "--workspace", project)
    assert not hook.exists() and (project / "a").read_text() == "x\n" and (project / ".git/hooks").is_dir(), result


def test_copy_on_write(shared):
    (shared.cloche.project / "f").write_text("text")
    result = shared.sh("rm f; echo new > g; ls", "--workspace", f"{shared.cloche.project}:cow")
    assert result.out == "g\n" and "cloche diff" in result.err, result
    assert [p.name for p in shared.cloche.project.iterdir()] == ["f"]
    state = result.err.split("cloche diff ")[1].split("`")[0]
    assert shared.cloche("apply", state).ok
    assert (shared.cloche.project / "g").read_text() == "new\n" and not (shared.cloche.project / "f").exists()


def test_no_network(sandbox):
    code = "import socket as s\ntry: s.create_connection(('192.0.2.1', 80), 5)\nexcept OSError as e: print(e.errno)"
    assert sandbox("python3", "-c", code).out.strip() in ("101", "113"), sandbox.name


@requirement("R14")
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("transparent", (False, True))
def test_hosts_by_name(online, name, transparent):
    online.cloche.env["PATH"] = installed(name)
    result = online.curl("https://ok.example.org/a", flags=("--runtime", name), transparent=transparent)
    assert result.ok and result.out == "hello ok.example.org /a\n", result
    assert [r["host"] for r in online.net.requests] == ["ok.example.org"]
    refused = online.curl("http://other.example.org/", flags=("--runtime", name), transparent=transparent)
    assert ("not resolve" in refused.err if transparent else "network-no-rule" in refused.out) and len(online.net.requests) == 1, refused


@requirement("R80", "R30")
def test_prove(sandbox):
    result = sandbox.cloche("prove", "--engine", "oci", "--runtime", sandbox.name, "--json")
    report = result.json
    assert result.code == 0 and report["n_surprises"] == 0 and report["engine"] == "oci", result
    assert [m["mode"] for m in report["modes"]] == ["standard", "max"] and report["n_checks"] > 400


# --- its end


@pytest.mark.parametrize("whom", ("cloche", "holder", "runtime"))
def test_nothing_is_left_when_somebody_is_killed(sandbox, whom):
    """What `world` looks at afterwards: processes, cgroups, mounts."""
    run = sandbox.cloche.popen(*sandbox.flags(()), "/bin/sh", "-c", "sleep 600 & echo up; exec sleep 600")
    assert run.stdout.readline().strip() in ("up", b"up")
    table = leaks.parents()
    holder = [pid for pid, (parent, _, _) in table.items() if parent == run.pid and pid in leaks.named("cloche-oci")]
    runtime = [pid for pid, (parent, _, _) in table.items() if parent in holder]
    os.kill({"cloche": run.pid, "holder": holder[0], "runtime": runtime[0]}[whom], signal.SIGKILL)
    assert run.wait(30) == (-signal.SIGKILL if whom == "cloche" else 125)
    wait_for(lambda: leaks.reap_adopted(set()) or not leaks.named("cloche-oci"))


def test_a_runtime_that_hangs_is_interrupted(cloche, tmp_path):
    """Nobody inside is there yet whom an interrupt could be told."""
    planted = tmp_path / "crun"
    planted.write_text("#!/bin/sh\nexec sleep 986421\n")
    planted.chmod(0o755)
    cloche.env["PATH"] = os.pathsep.join((str(tmp_path), os.environ["PATH"]))
    run = cloche.popen("run", "--runtime", "crun", "--grace", "100ms", "--", "true")
    wait_for(lambda: set(leaks.named("sleep")) & set(leaks.descendants()))
    run.send_signal(signal.SIGINT)
    assert run.wait(60) > 0
    wait_for(lambda: leaks.reap_adopted(set()) or not leaks.named("cloche-oci"))


def test_a_command_that_minds_no_interrupt_goes_on(sandbox):
    """The guest is there, so it is told; the grace period is for those who are not."""
    text = "trap 'echo int' INT; echo up; i=0; while [ $i -lt 20 ]; do sleep 0.1; i=$((i+1)); done; echo done"
    run = sandbox.cloche.popen(*sandbox.flags(("--grace", "100ms")), "/bin/sh", "-c", text)
    assert run.stdout.readline().strip() in ("up", b"up")
    run.send_signal(signal.SIGINT)
    assert b"".join(run.stdout.readlines()).split() == [b"int", b"done"] and run.wait(60) == 0


# --- what it refuses


@pytest.mark.parametrize("flags,code", (
    (("--mode", "light"), "oci.mode"), (("--view", "host"), "oci.view"), (("--network", "host"), "oci.network"),
    (("--engine", "native"), "policy.runtime.engine"), (("--fallback", "no-sandbox", "--mode", "light"), "oci.mode")))
def test_refusals(cloche, flags, code):
    cloche.env["PATH"] = installed("crun")
    result = cloche("run", "--runtime", "crun", *flags, "--", "echo", "ran")
    assert result.code == 125 and f"[{code}]" in result.err and "ran" not in result.out, result


@pytest.mark.parametrize("kind,code", (("rw", "oci.name-guard"), ("cow", "oci.cow")))
def test_what_runsc_cannot_keep(cloche, kind, code):
    cloche.env["PATH"] = installed("runsc")
    result = cloche("run", "--runtime", "runsc", "--workspace", f"{cloche.project}:{kind}", "--", "echo", "ran")
    assert result.code == 125 and f"[{code}]" in result.err and not result.out, result


def test_a_runtime_that_is_not_there(cloche, tmp_path):
    cloche.env["PATH"] = str(tmp_path)
    assert "[oci.runtime]" in cloche("run", "--engine", "oci", "--", "true").err
    planted = tmp_path / "crun"
    planted.write_text("#!/bin/sh\ntouch /tmp/planted\n")
    planted.chmod(0o777)
    assert "[oci.runtime]" in cloche("run", "--runtime", "crun", "--", "true").err
    assert "policy.runtime.unknown" in cloche("run", "--runtime", "podman", "--", "true").err


@pytest.mark.ordinary
def test_an_ordinary_user_is_told(cloche):
    result = cloche("run", "--engine", "oci", "--", "true")
    assert result.code == 125 and "[oci.root]" in result.err, result
