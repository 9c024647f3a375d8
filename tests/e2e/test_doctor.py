"""`cloche doctor`: true about this host, about a poorer one, and leaving nothing."""
import json
import os
import re
import shutil
import socket
from pathlib import Path

import pytest

from helpers import requirement

pytestmark = requirement("R05", "R30")

# what is taken away → the features of which one must be named as missing
LOSSES = {
    "user namespaces": (["@userns"], {"user-namespace"}),
    "no namespace but the user's": (["unshare:flags&0x60020000=EPERM", "clone:flags&0x60020000=EPERM", "clone3"],
                                    {"mount-namespace", "process-namespace", "network-namespace", "pid-namespace"}),
    "landlock": (["@landlock"], {"landlock"}),
    "fsopen": (["fsopen"], {"fsopen"}),
    "open_tree": (["open_tree"], {"open-tree"}),
    "move_mount": (["move_mount"], {"move-mount"}),
    "mount_setattr": (["mount_setattr"], {"mount-setattr"}),
    "openat2": (["openat2"], {"openat2"}),
    "memfd_create": (["memfd_create"], {"memfd-exec"}),
    "notify": (["@notify"], {"seccomp-notify"}),
    "clone3": (["clone3"], {"clone3"}),
    "close_range": (["close_range"], {"close-range"}),
    "pidfd": (["pidfd_open"], {"pidfd"}),
}


def doctor(runner, *before, args=()):
    result = runner.run([*before, runner.binary, "doctor", *args])
    assert result.err == ""
    return result


@requirement("R30")
def test_json_is_one_object_with_stable_keys(anyone):
    result = doctor(anyone, args=["--json"])
    report = result.json
    assert set(report) == {"version", "cloche", "engine", "host", "modes", "features", "promises", "programs",
                           "own_programs", "engines", "boundaries", "toolchains", "not_in_this_release"}
    assert report["version"] == 1
    assert set(report["modes"]) == {"light", "standard", "max"}
    for name, feature in report["features"].items():
        assert feature["status"] in ("yes", "no", "partial", "unused"), name
        if feature["status"] in ("no", "partial"):
            assert feature["why"], name
        else:
            assert feature["why"] is None, name
    for name, promise in report["promises"].items():
        assert promise["state"] in ("enforced", "not-enforced", "supervised"), name
        assert (promise["state"] == "enforced") == (promise["why"] is None), (name, promise)


VERSIONS = (("1.1.5+ds1", {"CVE-2024-21626", "CVE-2025-31133", "CVE-2026-41579"}, {"CVE-2023-27561"}),
            ("1.0.3", {"CVE-2023-27561", "CVE-2024-21626"}, set()), ("1.1.12", {"CVE-2024-45310"}, {"CVE-2024-21626"}),
            ("1.2.8", {"CVE-2026-41579"}, {"CVE-2025-52881", "CVE-2024-45310"}), ("1.3.2", {"CVE-2025-52565"}, {"CVE-2024-45310"}),
            ("1.2.0-rc.2", {"CVE-2024-45310"}, {"CVE-2024-21626"}), ("1.5.0", set(), {"CVE-2026-41579", "CVE-2025-31133"}), ("VERSION_MISSING", set(), {""}))


@requirement("R21", "R30")
@pytest.mark.root
@pytest.mark.parametrize("version,open_,mended", VERSIONS)
def test_every_engine_is_shown_with_what_is_known_of_its_version(cloche, tmp_path, version, open_, mended):
    planted = tmp_path / "runc"
    planted.write_text(f"#!/bin/sh\necho runc version {version}; echo spec: 1.0.2\n")
    planted.chmod(0o755)
    cloche.env["PATH"] = str(tmp_path)
    engines = {(e["engine"], e["runtime"]): e for e in doctor(cloche, args=["--json"]).json["engines"]}
    assert set(engines) == {("native", None), ("oci", "runsc"), ("oci", "crun"), ("oci", "runc"), ("docker", None),
                            ("microvm", None)}
    found, absent = engines["oci", "runc"], engines["oci", "crun"]
    assert (found["path"], found["version"]) == (str(planted), version) and found["usable"] and found["missing"] is None
    holes = {h["name"]: h for h in found["known_holes"]}
    assert open_ <= set(holes) and not mended & set(holes) and (open_ or not holes), holes
    assert not absent["usable"] and absent["missing"] == "oci-runtime" and absent["path"] is None and not absent["known_holes"]
    assert found["promises"]["kernel-boundary"]["state"] == "not-enforced" != engines["oci", "runsc"]["promises"]["own-root"]["state"]
    shown = doctor(cloche).out
    assert all(name in shown for name in open_) and f"{planted} {version}" in shown, shown


@requirement("R30")
@pytest.mark.ordinary
def test_an_ordinary_user_is_told_what_the_other_engines_need(cloche):
    engines = doctor(cloche, args=["--json"]).json["engines"]
    assert {e["missing"] for e in engines if e["engine"] == "oci"} == {"oci-root"}, engines
    assert all("root" in e["why"] for e in engines if e["engine"] == "oci")


@requirement("R30")
def test_verdict_is_what_happens(anyone):
    """The verdict of every mode is tried."""
    result = doctor(anyone, args=["--json"])
    modes = result.json["modes"]
    for mode, verdict in modes.items():
        tried = anyone("run", "--mode", mode, "--", "/bin/true")
        assert tried.ok == verdict["usable"], (mode, verdict, tried)
    want = 0 if modes["standard"]["usable"] else 1 if modes["light"]["usable"] else 2
    assert result.code == want


@pytest.mark.parametrize("what", LOSSES)
def test_a_loss_is_named_and_the_verdict_stays_true(anyone, deny, what):
    rules, names = LOSSES[what]
    before = deny(*rules)
    report = doctor(anyone, *before, args=["--json"]).json
    missing = {n for n, f in report["features"].items() if f["status"] in ("no", "partial")}
    assert missing & names, (what, missing)
    for name in missing & names:
        assert report["features"][name]["remedy"] or report["features"][name]["why"]
    assert report["host"]["outer_filter"] is True
    for mode, verdict in report["modes"].items():
        tried = anyone.run([*before, anyone.binary, "run", "--mode", mode, "--", "/bin/true"])
        assert tried.ok == verdict["usable"], (what, mode, verdict, tried)
        if not tried.ok:
            assert tried.code == 125


def test_nothing_left_exits_two(anyone, deny):
    result = doctor(anyone, *deny("@userns", "@landlock", "@seccomp"))
    assert result.code == 2
    assert "light mode: no" in result.out and "standard mode: no" in result.out


def test_only_light_exits_one(anyone, deny):
    # as a container's filter does it: clone3 is hidden, because a filter cannot see its flags
    rules = deny("unshare:flags&0x10000000=EPERM", "clone:flags&0x10000000=EPERM", "clone3")
    result = doctor(anyone, *rules)
    assert result.code == 1 and "light mode: yes" in result.out


def test_text_says_why_and_what_to_do(anyone, deny):
    result = doctor(anyone, *deny("@userns"))
    lines = result.out.splitlines()
    at = next(i for i, line in enumerate(lines) if "✗ user namespace" in line)
    assert lines[at + 1].strip().startswith("why: ") and lines[at + 2].strip().startswith("fix: ")
    assert "--mode light" in lines[at + 2]
    assert "Not in this release" in result.out


def test_ascii_without_utf8(anyone):
    result = anyone.run([anyone.binary, "doctor"], env={"LC_ALL": "C", "LANG": "C"})
    assert result.out_bytes.isascii()
    assert "+ system call filter" in result.out or "x system call filter" in result.out


def test_colours_only_on_a_terminal(cloche):
    assert "\033[" not in cloche.run([cloche.binary, "doctor"]).out
    assert "\033[" in cloche.run([cloche.binary, "doctor"], pty=True).out
    assert "\033[" not in cloche.run([cloche.binary, "doctor"], pty=True, env={"NO_COLOR": "1"}).out


def test_hundred_probes_leave_nothing(cloche):
    """The leak check of the suite looks at processes, mounts and cgroups after this."""
    for _ in range(100):
        assert cloche.run([cloche.binary, "doctor", "--json"]).code in (0, 1, 2)


def test_unknown_argument_is_refused(cloche):
    result = cloche("doctor", "--jsn")
    assert result.code == 125 and "--jsn" in result.err


def test_a_full_output_is_an_error(cloche):
    with open("/dev/full", "wb") as full:
        assert cloche.run([cloche.binary, "doctor", "--json"], stdout=full).code == 125


@requirement("R64")
def test_languages_are_found_where_a_sandbox_has_them(cloche):
    programs = json.loads(cloche("doctor", "--json").out)["programs"]
    for language, found in programs.items():
        inside = cloche("run", "--", "/bin/sh", "-c", f"command -v {found['program']}")
        assert (found["path"] is not None) == inside.ok, (language, found, inside)
        if found["path"]:
            assert os.path.realpath(found["path"]) == os.path.realpath(inside.out.strip())


def helpers_of_the_build():
    sources = (Path(__file__).resolve().parents[2] / "src").glob("*/meson.build")
    programs = [text for source in sources for text in source.read_text().split("executable('")[1:]]
    return {text.split("'")[0] for text in programs if "libexecdir" in text}


@requirement("R90")
def test_every_program_of_ours_is_looked_for(anyone):
    """What is installed beside cloche is what doctor knows, and it is there in a build."""
    own = doctor(anyone, args=["--json"]).json["own_programs"]
    assert set(own) == helpers_of_the_build() >= {"cloche-egress", "cloche-webhook", "cloche-otlp"}
    for name, found in own.items():
        assert found["path"] and Path(found["path"]).name == name and os.access(found["path"], os.X_OK), (name, found)


@requirement("R90")
def test_a_program_that_is_not_there_is_named(cloche, world):
    """cloche alone, without what it starts: doctor says what cannot be had, and its verdict stays what it was."""
    whole = doctor(cloche, args=["--json"])
    (world.root / "bin").mkdir()
    cloche.binary = shutil.copy(cloche.binary, world.root / "bin" / "cloche")
    alone, text = doctor(cloche, args=["--json"]), doctor(cloche)
    assert alone.code == whole.code and alone.json["modes"] == whole.json["modes"]
    assert {found["path"] for found in alone.json["own_programs"].values()} == {None}
    assert re.search(r"~ cloche-webhook +not found .*needed by: webhook-url of cloche serve", text.out), text


@pytest.mark.root       # root has to listen: nobody else's daemon is asked
@pytest.mark.parametrize("queue", ["says nothing", "takes nobody"])
def test_a_docker_socket_that_is_silent_holds_nobody_up(cloche, tmp_path, queue):
    with socket.socket(socket.AF_UNIX) as silent, socket.socket(socket.AF_UNIX) as first:
        silent.bind(str(tmp_path / "docker.sock"))
        silent.listen(0)
        if queue == "takes nobody":
            first.connect(str(tmp_path / "docker.sock"))        # the queue has room for one
        # two minutes, or for ever, before
        said = cloche("doctor", env={"DOCKER_HOST": f"unix://{tmp_path}/docker.sock"}, timeout=100)
        assert said.ok and "docker" in said.out, said
