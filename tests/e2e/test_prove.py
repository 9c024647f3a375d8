"""`cloche prove`: silent about a wall that holds, loud about one that does not."""
import json
import os
import platform
import shutil
import signal
import sys
import time
from pathlib import Path

import pytest

from helpers import requirement
from helpers.places import IS_ROOT, is_sanitized
from helpers.runner import wait_for

pytestmark = requirement("R80", "R30")

PRETEND = Path(__file__).resolve().parent.parent / "helpers" / "pretend.py"
KINDS = {"held", "surprise", "not-promised", "not-applicable"}


def prove(runner, *flags, before=(), code=0):
    result = runner.run([*before, runner.binary, "prove", "--json", *flags])
    assert result.code == code, (result, surprises(result))
    return result.json


def checks(report, *states):
    return {c["id"]: c for mode in report["modes"] for c in mode["checks"] if c["state"] in states}


def surprises(result):
    try:
        return sorted(checks(result.json, "surprise"))
    except (ValueError, KeyError):     # no report, or a refusal
        return None


@requirement("R80")
def test_every_mode_of_this_host_holds(anyone):
    report = prove(anyone)
    able = json.loads(anyone("doctor", "--json").out)["modes"]
    assert {m["mode"] for m in report["modes"]} == {m for m, v in able.items() if v["usable"]}
    assert {s["mode"] for s in report["skipped"]} == {m for m, v in able.items() if not v["usable"]}
    assert report["n_surprises"] == 0
    assert report["n_checks"] == sum(len(m["checks"]) for m in report["modes"])
    for mode in report["modes"]:
        assert mode["not_promised"]
        seen = {(c["id"], c["when"]) for c in mode["checks"]}
        # posture before and after activity; each attack once; a second sandbox; sandboxes of prove's own
        assert {"outside", "trial"} <= {c["when"] for c in mode["checks"]}
        assert ("posture.caps.zero", "before") in seen and ("posture.caps.zero", "after") in seen
        attacks = [c["id"] for c in mode["checks"] if c["id"].startswith("attack.")]
        assert len(attacks) == len(set(attacks)) > 60
        for check in mode["checks"]:
            assert check["state"] in KINDS and check["title"] and check["requirement"].startswith("R"), check


@pytest.mark.parametrize("flags", [["--mode", "light"], ["--mode", "standard", "--view", "host"], ["--mode", "max"]],
                         ids=["light", "host view", "max"])
def test_in_a_folder_that_only_root_can_enter(anyone, flags):
    """The sandbox's user is another one; and so may the caller be, who became somebody there."""
    closed = anyone.tmp / "closed"
    closed.mkdir(mode=0o700)
    words = anyone.argv("prove", "--json", "--quick", *flags)
    if not IS_ROOT:
        words = ["/bin/sh", "-c", 'chmod 0 . && "$@"; s=$?; chmod 700 .; exit $s', "sh", *words]
    result = anyone.run(words, cwd=closed)
    closed.rmdir()
    assert result.code == 0 and result.json["n_surprises"] == 0, (result, surprises(result))


def test_in_a_folder_that_is_gone(anyone):
    """What is proven does not depend on the place: it chooses one."""
    gone = anyone.tmp / "gone"
    result = anyone.run(["/bin/sh", "-c", 'mkdir "$0" && cd "$0" && rmdir "$0" && exec "$@"', gone,
                         *anyone.argv("prove", "--json", "--quick", "--mode", "max")])
    assert result.code == 0 and result.json["n_surprises"] == 0, (result, surprises(result))


@requirement("R80")
def test_nearly_all_is_promised_in_standard_and_max(anyone):
    """A wall that promises nothing would never surprise: what may stay open is listed here, one by one."""
    for mode in ("standard", "max"):
        report = prove(anyone, "--mode", mode)
        # an ordinary user has one uid and cannot give its groups up
        assert set(checks(report, "not-promised")) <= {"posture.walks.complete", "outside.groups"}
        kept_elsewhere = {"outside.cgroup.memory", "outside.cgroup.cpu", "outside.cgroup.pids"}
        # nor give a run another table of names
        kept_elsewhere |= {"trial.egress.led"} if anyone.run(["id", "-u"]).out.strip() != "0" else set()
        assert set(checks(report, "not-applicable")) <= {"attack.tiocsti", "attack.tioclinux", "attack.tiocsetd",
                                                         *kept_elsewhere}


POLICIES = {
    "workspace": ["--workspace", "{project}"],
    "workspace read-only": ["--workspace", "{project}:ro"],
    "workspace copy-on-write": ["--workspace", "{project}:cow"],
    "bind": ["--bind", "{project}:/data:rw"],
    "home bound": ["--bind", "{home}"],
    "read-only root": ["--read-only-root"],
    "host view": ["--view", "host"],
    "host view, a writable project": ["--view", "host", "--allow-write", "{project}"],
    "host network": ["--network", "host"],
    "hosts by name": ["--allow-domain", "example.com", "--deny-domain", "www.example.com"],
    "hosts by name, at a port": ["--allow-domain", "example.com:8443"],
    "all unix sockets": ["--allow-all-unix-sockets"],
    "environment": ["--env", "PROVE_TEST=1"],
    "limits": ["--memory", "256m", "--pids", "40", "--nofile", "100", "--timeout", "100s"],
    "light, a project": ["--mode", "light", "--workspace", "{project}"],
    "max, a project": ["--mode", "max", "--workspace", "{project}:ro"],
}


@pytest.mark.parametrize("name", POLICIES)
def test_expectations_follow_the_policy(anyone, name):
    (anyone.project / ".git").mkdir()
    (anyone.home / ".ssh").mkdir()
    (anyone.home / ".ssh" / "id_ed25519").write_text("a key")
    flags = [f.format(project=anyone.project, home=anyone.home) for f in POLICIES[name]]
    if "light" in flags and IS_ROOT and anyone.person is None:
        # mode light as root refuses a folder that is root's own
        for path in (anyone.project, anyone.project / ".git"):
            os.chown(path, 1000, 1000)
    if "--mode" not in flags:
        flags = ["--mode", "standard", *flags]
    report = prove(anyone, "--quick", *flags)
    held = checks(report, "held")
    assert "posture.caps.zero" in held and "attack.mount" in held


@requirement("R03")
@pytest.mark.parametrize("mode", ["light", "standard", "max"])
def test_links_beside_a_credential_place_do_not_open_it(anyone, mode):
    """Rules of mode light are made for what lies around a closed place: a link there must not carry them into it."""
    (anyone.home / ".ssh").mkdir()
    key = anyone.home / ".ssh" / "id_ed25519"
    key.write_text("a key")
    links = {"folder": ".ssh", "file": ".ssh/id_ed25519", "itself": "itself", "nowhere": "gone"}
    for name, leads in links.items():
        (anyone.home / name).symlink_to(leads)
    report = prove(anyone, "--quick", "--mode", mode)
    assert "posture.paths.credentials" in checks(report, "held")
    ways = [key, *(anyone.home / name for name in links), anyone.home / "folder" / "id_ed25519"]
    inside = anyone.sandbox('for way; do cat "$way" && echo "$way is open"; done; true', "sh", flags=["--mode", mode], args=ways)
    assert inside.ok and inside.out == "", inside


@requirement("R03")
@pytest.mark.parametrize("flags", [["--mode", "light"], ["--mode", "standard", "--view", "host"], ["--mode", "standard"]])
def test_a_credential_place_that_is_a_link_is_closed_too(anyone, flags):
    """~/.ssh as a link to where a dotfile manager keeps it."""
    kept = anyone.home / "dotfiles" / "ssh"
    kept.mkdir(parents=True)
    (kept / "id_ed25519").write_text("a key")
    (anyone.home / ".ssh").symlink_to("dotfiles/ssh")
    report = prove(anyone, "--quick", *flags)
    assert "posture.paths.credentials" in checks(report, "held")
    inside = anyone("run", *flags, "--", "/bin/cat", anyone.home / ".ssh" / "id_ed25519")
    assert inside.code == 1 and "a key" not in inside.out


def test_what_a_policy_opens_is_shown_as_not_promised(cloche):
    report = prove(cloche, "--quick", "--mode", "standard", "--network", "host")
    open_ = checks(report, "not-promised")
    assert "attack.host-loopback" in open_ and "posture.namespace.net" in open_
    assert any("--network host" in line for m in report["modes"] for line in m["not_promised"])


@requirement("R40")
def test_without_a_wall_it_is_full_of_surprises(anyone):
    result = anyone("prove", "--json", "--mode", "off")
    assert result.code == 1
    found = set(checks(result.json, "surprise"))
    assert {"posture.root", "posture.seccomp", "posture.no-new-privs", "posture.namespace.pid", "posture.namespace.user",
            "posture.processes.visible", "posture.network.interfaces", "posture.hostname", "attack.undo-seccomp",
            "attack.dotdot-root", "attack.host-file-read", "attack.host-file-write", "attack.host-unix-socket",
            "attack.host-abstract-socket", "attack.host-loopback", "attack.signal-host", "attack.netlink",
            "attack.tiocsti", "attack.read-implies-exec", "attack.host-priority"} <= found


def test_an_environment_variable_too_many_is_seen(cloche):
    result = cloche.run([cloche.binary, "prove", "--json", "--mode", "off"], env={"SECRET_OF_THE_TEST": "x"})
    assert "posture.environment" in checks(result.json, "surprise")


X86 = platform.machine() == "x86_64"

# A step of the wall that only pretends to have happened → checks of which one must see it; None: refusing to start is
# right too, and seeing nothing is not.
HOLES = {
    "mounts keep their attributes": ("442", "standard", {"posture.mounts.read-only", "posture.mounts.nosuid",
                                                         "posture.paths.read-only"}),
    "Landlock rules are not applied": ("446", "light", {"attack.host-abstract-socket"}),
    "the filter is not installed": ("317", "standard", {"attack.bpf", "attack.keyrings", "attack.io-uring"}),
    "the filter is not installed (light)": ("317", "light", {"attack.bpf", "attack.nested-user-namespace"}),
    "capabilities are not dropped": ("126", "standard", {"posture.caps.zero", "attack.raise-capabilities"}),
    "the bounding set is not emptied": ("157:0=24", "standard", {"posture.caps.zero"}),
    "no_new_privs is not set": ("157:0=38", "standard", {"posture.no-new-privs"}),
    "the host name is not set": ("170", "standard", {"posture.hostname"}),
    "the user is not changed": ("117", "standard", {"posture.identity.ids"}),
    "groups are kept": ("116", "standard", {"outside.groups", "attack.setuid-zero"}),
    "securebits are not locked": ("157:0=28", "standard", {"posture.securebits"}),
}


@pytest.mark.root
@pytest.mark.skipif(not X86, reason="system call numbers of x86-64")
def test_holes_are_found(cloche):
    """Never exit status 0: either the hole is seen, or cloche noticed by itself and refused to start. Some have to be seen:
    a prove that always refuses would be right each time. (cloche looks whether most of these calls did what they say.)"""
    seen = []
    for hole, (rule, mode, wanted) in HOLES.items():
        result = cloche.run([sys.executable, str(PRETEND), rule, "--", str(cloche.binary), "prove", "--json", "--quick",
                             "--mode", *mode.split()])
        assert result.code in (1, 125), (hole, result.code)
        if result.code == 1:
            assert wanted & set(checks(result.json, "surprise")), (hole, surprises(result))
            seen.append(hole)
    assert len(seen) >= 3, seen


def test_bare_shows_which_attacks_are_real(anyone):
    report = prove(anyone, "--bare")
    assert report["bare"] is True
    states = {c["id"]: c["state"] for m in report["modes"] for c in m["checks"]}
    assert set(states.values()) <= {"works", "refused-by-host", "not-applicable"}
    assert sum(s == "works" for s in states.values()) >= 20
    for real in ("attack.host-file-read", "attack.host-unix-socket", "attack.signal-host", "attack.undo-seccomp"):
        assert states[real] == "works", (real, states[real])


def host_settings():
    """What an attack that does harm would change."""
    settings = {}
    for path in ("/proc/sys/kernel/hostname", "/proc/sys/kernel/core_pattern", "/proc/sys/kernel/randomize_va_space",
                 "/proc/sys/kernel/modprobe", "/proc/swaps", "/proc/modules", "/proc/mounts", "/proc/cmdline"):
        if os.path.exists(path):
            settings[path] = Path(path).read_text()
    settings["nice"] = os.nice(0)
    settings["tmp"] = os.stat("/tmp").st_mode
    settings["passwd"] = (os.stat("/etc/passwd").st_mtime, os.stat("/etc/passwd").st_nlink)
    return settings


@pytest.mark.alone      # a neighbour's probe among the mounts of the host would be taken for ours
def test_bare_and_off_do_no_harm(anyone):
    before = host_settings()
    assert anyone("prove", "--bare").code == 0
    assert anyone("prove", "--mode", "off").code == 1
    after = host_settings()
    mounts = before.pop("/proc/mounts"), after.pop("/proc/mounts")
    assert before == after
    assert not [m for m in mounts[1].splitlines() if "cloche-probe" in m]


def baits():
    return [p for place in ("/tmp", "/var/tmp", "/dev/shm", "/run") for p in Path(place).glob("clb-*")]


@pytest.mark.parametrize("flags", [["--bare"], ["--mode", "off"], ["--mode", "standard"], ["--mode", "light"]])
def test_killed_at_any_moment_it_leaves_nothing(cloche, flags):
    old = set(baits())
    for step in range(12):
        process = cloche.popen("prove", *flags)
        time.sleep(0.012 * step)
        process.send_signal(signal.SIGKILL)
        process.wait()
    left = set(baits()) - old      # among them what neighbours are using now
    assert wait_for(lambda: not left & set(baits())), left & set(baits())


@requirement("R14")
def test_hosts_by_name_are_tried(cloche):
    """Intact, a network by name gave ten false alarms; and what it lets through was not asked at all."""
    report = prove(cloche, "--mode", "standard", "--allow-domain", "example.com")
    assert not checks(report, "surprise")
    held = checks(report, "held")
    assert {"trial.egress.real", "trial.egress.names", "trial.egress.connect", "trial.egress.request", "trial.egress.socks",
            "trial.egress.denied", "trial.egress.port", "trial.egress.loopback", "trial.egress.direct",
            "trial.egress.rights", "trial.vault.rights", "trial.egress.scope", "trial.egress.another",
            "trial.egress.hello"} <= set(held)
    assert is_sanitized(cloche.binary) or "seccomp 2" in held["trial.egress.rights"]["detail"]


@requirement("R12", "R14")
@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives a run another table of names")
def test_names_that_lead_to_the_host_are_tried(cloche):
    """Which class an address has nobody saw that was weakened: no name led to one."""
    found = {c["id"]: c for m in prove(cloche, "--mode", "standard")["modes"] for c in m["checks"]}["trial.egress.led"]
    if found["state"] == "not-applicable":
        pytest.skip(found["detail"])
    assert found["state"] == "held" and "refused for where they lead" in found["detail"]


@requirement("R14", "R80")
def test_a_mode_that_cannot_have_the_policy_is_named(anyone):
    """Mode light has no network by name: that it cannot be proven is no reason to prove none."""
    report = prove(anyone, "--quick", "--allow-domain", "example.com")
    assert {m["mode"] for m in report["modes"]} == {"standard", "max"} and not checks(report, "surprise")
    assert [s["why"] for s in report["skipped"] if s["mode"] == "light" and "by name" in s["why"]]


@requirement("R03", "R65")
def test_what_is_tried_is_really_there(anyone):
    """A trial that finds nothing to try would hold for ever: the projects can be written to, the limits were met."""
    held = checks(prove(anyone, "--mode", "standard"), "held")
    for name in ("trial.project.writable", "trial.project.writable.host-view", "trial.limit.real"):
        assert name in held, name
    for name in ("present", "absent", "moved"):
        assert f"trial.project.protected-{name}" in held and f"trial.project.protected-{name}.host-view" in held
    assert {"policy.defaults", "policy.limits", "posture.etc.names", "posture.etc.hosts"} <= set(held)
    # what outside sees of it
    assert "the project is as it was" in held["trial.copy.apart"]["detail"] or "trial.copy.real" not in held
    assert "nothing of it goes on" in held["trial.project.leaves"]["detail"]
    assert "is as it was" in held["trial.project.linked.host-view"]["detail"]
    for name in ("shut", "shut-absent", "git-leads", "git-in-place", "led-to", "last-name"):
        assert f"trial.project.{name}" in held and f"trial.project.{name}.host-view" in held, name
    assert "is as it was" in held["trial.project.last-name"]["detail"]
    assert {"trial.limit.memory.shared", "trial.limit.memory.sockets", "trial.limit.memory.datagrams"} <= set(held)
    assert {"trial.project.git-state", "trial.project.overlay-marks", "trial.project.socket"} <= set(held)
    assert {"trial.limit.precedence", "trial.copy.mount"} <= set(held) or "trial.copy.real" not in held
    assert "a harmless one comes" in held["trial.project.git-index"]["detail"]
    assert "where no path leads" in held["trial.project.git-later"]["detail"]
    for name in ("git-keys", "git-steps", "git-later", "protected-relative", "modes", "tree", "git-index", "further",
                 "environment"):
        assert f"trial.project.{name}" in held and f"trial.project.{name}.host-view" in held, name
    assert {"attack.host-terminals", "posture.environment.values"} <= set(held)
    assert "letters go to the pair" in held["trial.project.socket.host-view"]["detail"]
    assert "door" not in held["trial.project.socket"]["detail"] and "connect" in held["trial.project.socket"]["detail"]
    children = int(held["trial.limit.pids"]["detail"].split()[0])
    assert 10 <= children <= 24, held["trial.limit.pids"]
    assert held["trial.limit.memory"]["detail"].startswith("ended: ")
    assert "timeout" in held["trial.limit.time"]["detail"]
    tokens = int(held["trial.project.bait.host-view"]["detail"].split(",")[1].split()[0])
    assert tokens >= 1, "in the host's view what is not closed is found: the search works"


REPO = Path(__file__).resolve().parents[2]


@pytest.mark.skipif(not (REPO / ".git").exists() or not shutil.which("git"), reason="needs the repository, and git")
def test_every_weakened_build_still_applies(command):
    """Patches rot with the code that they weaken: whoever changes that mends them, and not who takes the score."""
    patches = sorted((REPO / "tests/mutants/prove").glob("*.patch"))
    assert len(patches) >= 80
    stale = [p.name for p in patches if not command(["git", "-C", REPO, "apply", "--check", p], check=False).ok]
    assert not stale, stale


@requirement("R26")
@pytest.mark.skipif(not X86, reason="the table is that of x86-64")
def test_every_refused_call_is_tried(cloche):
    held = checks(prove(cloche, "--quick", "--mode", "max"), "held")
    assert int(held["attack.system-calls"]["detail"].split()[1]) > 110
    assert {"attack.prctl-options", "attack.ioctl-requests", "attack.set-user-id"} <= set(held)


def test_text_report(cloche):
    result = cloche("prove", "--mode", "standard", "--quick")
    assert result.code == 0
    lines = result.out.splitlines()
    assert lines[0] == "Mode standard"
    assert lines[-1].endswith(" checks, 0 surprises")
    assert "not promised" in result.out and "  ✓ no thread has any capability in any of the five sets" in lines
    assert "✗" not in result.out
    plain = cloche("prove", "--mode", "standard", "--quick", env={"LC_ALL": "C", "LANG": "C"})
    assert plain.out_bytes.isascii() and "  + the root is not the host's" in plain.out


def test_a_sandbox_that_cannot_start_is_125(anyone, deny):
    result = anyone.run([*deny("@userns"), anyone.binary, "prove", "--json", "--mode", "standard"])
    assert result.code == 125
    assert result.json["reason"] == "refused"


def test_modes_that_the_host_cannot_build_are_named(anyone, deny):
    report = prove(anyone, "--quick", before=deny("unshare:flags&0x10000000=EPERM", "clone:flags&0x10000000=EPERM", "clone3"))
    assert [m["mode"] for m in report["modes"]] == ["light"]
    assert {s["mode"] for s in report["skipped"]} == {"standard", "max"}
    assert all("user namespace" in s["why"] for s in report["skipped"])


@pytest.mark.parametrize("argv", [["--", "true"], ["--jsn"], ["--mode", "none"], ["--workspace", "/nonexistent/x"]])
def test_mistakes_are_refused(cloche, argv):
    assert cloche("prove", *argv).code == 125
