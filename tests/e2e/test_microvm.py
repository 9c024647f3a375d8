"""The engine microvm: what any sandbox must do, in a machine of its own; what its walls keep; what it refuses.

What they need is in helpers/machines.py. Sandboxes of cloche serve are in test_serve_microvm.py.
"""
import os
import shutil
import signal

import pytest

from conformance import test_self_check
from e2e import test_image_run as image_tests
from helpers import leaks, requirement
from helpers.engines import Engine
from helpers.machines import PATIENCE, ROOT, why_not
from helpers.runner import wait_for

pytestmark = [requirement("R10"), pytest.mark.root]
DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")
# Those of inspect_ai's checks that a transport without descriptors, or a tree by virtiofs, could break.
SELF_CHECKS = ("read_and_write_file_text", "read_and_write_file_binary", "read_and_write_large_file_binary", "read_file_not_allowed",
               "exec_output", "exec_timeout_kills_child_processes", "exec_env_vars", "exec_input_binary", "cwd_custom")


@pytest.fixture
def machine(cloche):
    if why_not():
        pytest.skip(why_not())
    cloche.env["CLOCHE_KERNEL_ROOT"] = ROOT
    return Engine(cloche, "--engine", "microvm")


@pytest.fixture
def env(machine):
    return test_self_check.Environment(machine.cloche, *machine.chosen)


@requirement("R61")
@pytest.mark.parametrize("name", SELF_CHECKS)
def test_as_in_the_self_check(env, name):
    getattr(test_self_check, "test_" + name)(env)


# --- what any sandbox must do


def test_a_kernel_of_its_own_and_what_a_command_is(machine):
    """As much as one machine can show at once."""
    text = ("uname -r; cat /proc/sys/kernel/random/boot_id; id -u; hostname; pwd; echo $A; ls /sys/class/net 2>/dev/null;"
            "grep -E 'Cap|NoNew|Seccomp:' /proc/self/status; cat /proc/self/uid_map; echo err >&2; exit 42")
    result = machine.sh(text, "--env", "A=a b", "--workdir", "/tmp")
    words = result.out.split()
    with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as f:
        assert words[1] != f.read().strip() and words[0] != os.uname().release, result
    assert words[2:7] == ["1000", "cloche", "/tmp", "a", "b"], result
    assert words.count("0" * 16) == 5 and words[words.index("NoNewPrivs:") + 1] == "1", result
    assert words[words.index("Seccomp:") + 1] == "2" and words[-3:] == ["1000", "1000", "1"], result
    assert result.code == 42 and result.err.endswith("err\n"), result


def test_large_binary_stdin_comes_back(machine):
    data = os.urandom(3_000_000)
    assert machine("cat", stdin=data).out_bytes == data


def test_death_by_signal(machine):
    assert machine.sh("ulimit -c 0; kill -SEGV $$; sleep 60").code == 128 + 11


def test_not_found_and_a_folder_that_is_not_there(machine):
    assert machine("no-such-program-here").code == 127
    result = machine.sh("true", "--workdir", "/nope")
    assert result.code == 125 and "[wall.workdir]" in result.err, result


def test_terminal(machine):
    assert machine.sh('script -qc "tty" /dev/null').out.strip().startswith("/dev/pts/")


@pytest.fixture
def system(machine, tmp_path):
    return image_tests.take(machine.cloche, tmp_path, [image_tests.BASE, image_tests.FILES])


@requirement("R41")
@pytest.mark.parametrize("name", ("its_files_are_the_system", "a_read_only_root"))
def test_an_image_is_the_system(machine, system, name):
    getattr(image_tests, "test_" + name)(machine.cloche, system, "microvm")


@pytest.fixture
def far(machine, online):
    """The same on a host of the test internet."""
    online.cloche.env["CLOCHE_KERNEL_ROOT"] = ROOT
    return online


@requirement("R14", "R12")
@pytest.mark.parametrize("transparent", (False, True))
def test_hosts_by_name(far, transparent):
    """Names are asked over UDP, connections carried as they are made; what no rule names is refused."""
    one = far.curl("https://ok.example.org/a", "http://other.example.org/", flags=("--engine", "microvm"), transparent=transparent)
    assert one.out.startswith("hello ok.example.org /a\n"), one
    assert ("not resolve" in one.err if transparent else "network-no-rule" in one.out), one
    assert [r["host"] for r in far.net.requests] == ["ok.example.org"]


@requirement("R14")
def test_many_connections_and_long_ones(far):
    urls = [f"https://ok.example.org/bytes/{n}" for n in range(1, 60)] + ["https://ok.example.org/mebibytes/5"]
    result = far.curl("--max-time", "200", "--no-progress-meter", "--parallel", "--parallel-max", "40", "-w",
                      "%{size_download}\\n",
                      *(word for _ in urls for word in ("-o", "/dev/null")), *urls, flags=("--engine", "microvm"))
    assert sorted(map(int, result.out.split())) == [*range(1, 60), 5 << 20], result


# --- its walls


@requirement("R11")
def test_nothing_of_the_tree_is_changed(machine):
    text = "for f in /x /etc/x /usr/x /.cloche/x; do echo x > $f; done; rm -f /.cloche/*; mv /.cloche /y; ls /.cloche"
    result = machine.sh(text, "--mode", "max", *PATIENCE)
    assert result.out.split() == ["cloche-guest", "filter", "workdir"], result
    assert result.err.count("annot") == 8, result


@requirement("R65")
def test_limits(machine):
    result = machine.sh("head -c 50000000 /dev/zero > /tmp/x; echo $?; rm /tmp/x; for i in $(seq 60); do sleep 5 & done; wait",
                        "--disk", "20M", "--pids", "20", *PATIENCE)
    assert result.out.split()[0] == "1" and "Cannot fork" in result.err, result
    result = machine("python3", "-c", "a = b'x' * 400000000; print('not limited')", flags=("--memory", "100M"))
    assert result.code in (1, 137) and "not limited" not in result.out, result      # a kernel may refuse it at once


@requirement("R65", "R95")
def test_root_of_a_machine_has_no_limit_of_processes(machine):
    """Its kernel does not count root's, so an explicit limit is no machine, and the default one is told to be none."""
    refused = machine("true", flags=("--user", "0", "--pids", "20"))
    assert refused.code == 125 and "[microvm.pids]" in refused.err, refused
    said = machine("true", flags=("--user", "0", "--pids", "20", "--fallback", "warn"))
    assert said.code == 0 and "limit of processes is not enforced" in said.err, said


@requirement("R40", "R11")
def test_a_project_that_is_written_keeps_its_hooks(machine, command):
    """What exists is kept by the host's mounts, what does not by the name guard, which is in the machine."""
    project = machine.cloche.project
    command(["git", "init", "-q", project])
    (project / "kept").write_text("kept")
    os.symlink("/etc/shadow", project / "out")
    hook = project / ".git/hooks/pre-commit"
    result = machine.sh("echo x > a; echo x > .git/hooks/pre-commit; mv .git/hooks h; echo x > .gitmodules; cat kept out",
                        "--workspace", project)
    assert not hook.exists() and (project / "a").read_text() == "x\n" and (project / ".git/hooks").is_dir(), result
    assert (project / "a").stat().st_uid == project.stat().st_uid and result.out == "kept", result


def test_names_in_a_project_are_moved_and_linked(machine):
    """Whatever virtiofsd does that as: what is made belongs to the project's owner."""
    project = machine.cloche.project
    (project / "f").write_text("text")
    result = machine.sh("mv f g && mkdir d && mv g d/h && mv d e && ln e/h i && echo x > t && mv -f t i && ln -s i l && ls",
                        "--workspace", project)
    assert result.code == 0 and result.out.split() == ["e", "i", "l"], result
    assert (project / "e/h").read_text() == "text" and (project / "i").read_text() == "x\n"
    assert {p.lstat().st_uid for p in project.rglob("*")} == {project.stat().st_uid}


def test_a_project_that_is_read_only_or_copied(machine):
    project = machine.cloche.project
    (project / "f").write_text("text")
    result = machine.sh("cat f; echo x > f; touch y", "--workspace", f"{project}:ro")
    assert result.out == "text" and result.err.count("ead-only") == 2, result
    result = machine.sh("rm f; echo new > g; ls", "--workspace", f"{project}:cow")
    assert result.out == "g\n" and "cloche diff" in result.err, result
    assert [p.name for p in project.iterdir()] == ["f"]
    assert machine.cloche("apply", result.err.split("cloche diff ")[1].split("`")[0]).ok
    assert (project / "g").read_text() == "new\n" and not (project / "f").exists()


def test_the_hosts_devices_stay_the_hosts(machine):
    devices = " ".join(DEVICES)
    result = machine.sh(f"stat -c %u {devices}; for f in {devices}; do chmod 600 $f; done; ls /dev")
    assert result.out.split()[:5] == ["65534"] * 5 and not {"kvm", "vda", "vport0p1", "mem"} & set(result.out.split()), result


@requirement("R26")
def test_what_is_around_it_has_nothing(machine):
    """QEMU and virtiofsd: users that own nothing, no capability over the host, filters, roots and networks of their own."""
    run = machine.cloche.popen(*machine.flags(()), "/bin/sh", "-c", "echo up; exec sleep 600")
    assert run.stdout.readline().strip() == b"up"
    holder, = (p for p in leaks.descendants(run.pid) if p in leaks.named("cloche-vm"))
    below = [p for p in leaks.descendants(holder) if p != holder]
    qemu, = (p for p in below if p in leaks.named("qemu-system-x86"))
    server = max(p for p in below if p in leaks.named("virtiofsd"))
    for pid, root in ((qemu, {"usr", "kernel", "initrd"}), (server, {"usr", "tmp", "workspace"})):
        with open(f"/proc/{pid}/status", encoding="ascii") as f:
            status = dict(line.rstrip("\n").split(":\t", 1) for line in f if ":\t" in line)
        assert status["Seccomp"] == "2" and status["NoNewPrivs"] == "1" and not status["Groups"].strip(), status
        assert 1_000_000 < int(status["Uid"].split()[0]), status
        assert pid == server or int(status["CapBnd"], 16) == int(status["CapPrm"], 16) == 0, status
        for space in ("user", "mnt", "net", "pid", "ipc"):
            assert os.readlink(f"/proc/{pid}/ns/{space}") != os.readlink(f"/proc/self/ns/{space}"), space
        seen = set(os.listdir(f"/proc/{pid}/root/"))
        assert root <= seen and not {"root", "boot", "sys", "work"} & seen, seen
        with open(f"/proc/{pid}/net/dev", encoding="ascii") as f:
            assert [line.split(":")[0].strip() for line in f][2:] == ["lo"]
    run.kill()
    run.wait(60)


@requirement("R80", "R30")
def test_prove(machine):
    result = machine.cloche("prove", "--engine", "microvm", "--json", timeout=3000)     # some machines, hundreds of checks in each
    report = result.json
    assert result.code == 0 and report["n_surprises"] == 0 and report["engine"] == "microvm", result
    assert [m["mode"] for m in report["modes"]] == ["standard", "max"] and report["n_checks"] > 400


@requirement("R95")
def test_the_user_may_be_root_of_the_machine(machine):
    """Who is still nobody on the host."""
    project = machine.cloche.project
    (project / "f").write_text("text")
    result = machine.sh("id -u; mkdir /tmp/m; mount -t tmpfs x /tmp/m && echo mounted; grep CapEff /proc/self/status; cat /proc/self/uid_map; rm f; echo x > g; "
                        "mknod /tmp/mem c 1 1; echo x > /usr/x; cat /etc/shadow; ls", "--user", "0",
                        "--workspace", f"{project}:cow")
    assert result.out.split()[:2] == ["0", "mounted"] and "000001ffffffffff" in result.out and "4294967295" in result.out, result
    assert "/usr/x" in result.err and "mknod" in result.err and result.out.split()[-1] == "g", result
    assert [p.name for p in project.iterdir()] == ["f"]
    result = machine.sh("echo ran", "--user", "0", "--workspace", project)
    assert result.code == 125 and "[microvm.root-user]" in result.err and "ran" not in result.out, result


@requirement("R95")
@pytest.mark.parametrize("flags", ((), ("--mode", "max"), ("--engine", "oci")))
def test_root_is_for_machines(cloche, flags):
    result = cloche("run", "--user", "0", *flags, "--", "echo", "ran")
    assert result.code == 125 and "[policy.user.root]" in result.err and "ran" not in result.out, result


# --- its end


@pytest.mark.parametrize("whom", ("cloche", "cloche-vm", "qemu-system-x86", "virtiofsd"))
def test_nothing_is_left_when_somebody_is_killed(machine, whom):
    """What `world` looks at afterwards: processes, cgroups, mounts."""
    run = machine.cloche.popen(*machine.flags(()), "/bin/sh", "-c", "sleep 600 & echo up; exec sleep 600")
    assert run.stdout.readline().strip() == b"up"
    victim = run.pid if whom == "cloche" else min(p for p in leaks.descendants(run.pid) if p in leaks.named(whom))
    os.kill(victim, signal.SIGKILL)
    assert run.wait(60) == (-signal.SIGKILL if whom == "cloche" else 125)
    wait_for(lambda: leaks.reap_adopted(set()) or not leaks.named("cloche-vm"))


def test_it_can_be_interrupted_before_the_machine_is_up(machine):
    run = machine.cloche.popen(*machine.flags(("--grace", "100ms")), "true")
    wait_for(lambda: set(leaks.named("qemu-system-x86")) & set(leaks.descendants(run.pid)))
    run.send_signal(signal.SIGINT)
    assert run.wait(60) > 0
    wait_for(lambda: leaks.reap_adopted(set()) or not leaks.named("cloche-vm"))


# --- what it refuses


@pytest.mark.parametrize("flags,code", (
    (("--mode", "light"), "microvm.mode"), (("--view", "host"), "microvm.view"), (("--network", "host"), "microvm.network"),
    (("--runtime", "runc"), "policy.runtime.engine")))
def test_refusals(cloche, flags, code):
    result = cloche("run", "--engine", "microvm", *flags, "--", "echo", "ran")
    assert result.code == 125 and f"[{code}]" in result.err and "ran" not in result.out, result


def test_a_kernel_that_is_not_there_or_anybodys(cloche, tmp_path):
    if shutil.which("qemu-system-x86_64") is None:
        pytest.skip("qemu-system-x86_64 is not installed: tools/deps vm")
    cloche.env["CLOCHE_KERNEL_ROOT"] = str(tmp_path)
    assert "[microvm.kernel]" in cloche("run", "--engine", "microvm", "--", "true").err
    (tmp_path / "boot").mkdir()
    (tmp_path / "lib/modules/6.1.0-x/kernel").mkdir(parents=True)
    image = tmp_path / "boot/vmlinuz-6.1.0-x"
    image.write_text("no kernel")
    image.chmod(0o666)
    assert "[microvm.kernel]" in cloche("run", "--engine", "microvm", "--", "true").err
    image.chmod(0o644)
    result = cloche("run", "--engine", "microvm", "--", "true")
    assert result.code == 125 and "[microvm.machine]" in result.err and "QEMU" in result.err, result


def test_a_machine_that_cannot_start_says_why(machine, tmp_path):
    """A kernel without the modules that it needs."""
    for name in os.listdir(os.path.join(ROOT, "boot")):
        if name.startswith("vmlinuz-"):
            version = name.removeprefix("vmlinuz-")
            (tmp_path / "lib/modules" / version / "kernel/fs/fuse").mkdir(parents=True)
            shutil.copytree(os.path.join(ROOT, "lib/modules", version, "kernel/drivers"),
                            tmp_path / "lib/modules" / version / "kernel/drivers")
    shutil.copytree(os.path.join(ROOT, "boot"), tmp_path / "boot")
    machine.cloche.env["CLOCHE_KERNEL_ROOT"] = str(tmp_path)
    result = machine("true")
    assert result.code == 125 and "[microvm.machine]" in result.err and "virtiofs" in result.err, result


@pytest.mark.ordinary
def test_an_ordinary_user_is_told(cloche):
    result = cloche("run", "--engine", "microvm", "--", "true")
    assert result.code == 125 and "[microvm.root]" in result.err, result


@requirement("R05")
def test_doctor(machine):
    engine, = (e for e in machine.cloche("doctor", "--json").json["engines"] if e["engine"] == "microvm")
    assert engine["usable"] and engine["promises"]["kernel-boundary"]["state"] == "enforced", engine
    kernel = engine["promises"]["kernel-boundary"]["how"]
    assert kernel.startswith("QEMU") and f"kernel-boundary ({kernel})" in machine.cloche("doctor").out, engine


@requirement("R05")
def test_an_emulated_machine_is_called_so(machine):
    kernel, = (e["promises"]["kernel-boundary"]["how"] for e in machine.cloche("doctor", "--json").json["engines"] if e["engine"] == "microvm")
    report = machine.cloche("run", "--engine", "microvm", "--json", "--", "true").json
    assert ("emulated" in kernel) == any("emulated" in w for w in report["warnings"]), (kernel, report)
    assert {name: limit["enforced_by"] for name, limit in report["limits"].items()}["memory_bytes"] == "machine", report
