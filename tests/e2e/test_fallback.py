"""`fallback`: weaker walls in their order, only where the *host* lacks one, and none at all only for its own word.

What a project holds, a full disk and namespaces that are used up can be brought about from inside a sandbox: then
the next run is refused, whatever the policy says.
"""
import json
import os

import pytest

from helpers import requirement

pytestmark = requirement("R05")

NO_USERNS = ["@userns"]
NO_WALL = ["@userns", "@landlock"]
USED_UP = ["clone:flags&0x10000000=ENOSPC", "unshare:flags&0x10000000=ENOSPC", "clone3:EPERM"]
NO_PROCESS_LEFT = ["clone:flags&0x10000000=EAGAIN", "unshare:flags&0x10000000=EAGAIN", "clone3:EPERM"]
WORDS = ("warn", "no-sandbox")


def with_walls(result):
    return "NO SANDBOX" not in result.err


def unsandboxed(cloche):
    log = cloche.state / "cloche" / "unsandboxed.log"
    return log.read_text(encoding="utf-8").splitlines() if log.exists() else []


# what a sandbox can bring about --------------------------------------------------------------------------------
@pytest.mark.parametrize("word", WORDS)
def test_a_file_made_inside_does_not_take_the_wall_away(anyone, word):
    """The attack: `touch x.key` in a folder that is open, with *.key denied; Landlock cannot hide it there."""
    if os.geteuid() == 0:       # in light mode root's own folder cannot be opened
        os.chown(anyone.project, *((anyone.person.pw_uid, anyone.person.pw_gid) if anyone.person else (65534, 65534)))
    flags = ["--mode", "light", "--fallback", word, "--workspace", anyone.project,
             "--deny-read", f"{anyone.project}/*.key"]
    made = anyone("run", *flags, "--", "touch", "x.key", cwd=anyone.project)
    assert made.ok and with_walls(made), made
    (anyone.home / ".ssh").mkdir()
    (anyone.home / ".ssh" / "id").write_text("the key", encoding="ascii")
    again = anyone("run", *flags, "--", "cat", anyone.home / ".ssh" / "id", cwd=anyone.project)
    assert again.code == 125 and "wall.light.deny-inside" in again.err, again
    assert "the key" not in again.out and with_walls(again) and not unsandboxed(anyone), again


@pytest.mark.parametrize("word", WORDS)
@pytest.mark.parametrize("shortage", [USED_UP, NO_PROCESS_LEFT], ids=["namespaces", "processes"])
def test_what_can_be_used_up_is_no_missing_feature(anyone, deny, word, shortage):
    result = anyone.behind(*deny(*shortage))("run", "--fallback", word, "--", "echo", "ran")
    assert result.code == 125 and result.out == "" and with_walls(result), result


@pytest.mark.root
@pytest.mark.parametrize("word", WORDS)
@pytest.mark.parametrize("mode", ["light", "standard"])
def test_a_full_disk_is_no_missing_feature(cloche, word, mode):
    """/tmp has no room: mode light cannot make its folder there."""
    cloche.project.joinpath("x").write_text("", encoding="ascii")
    words = ["unshare", "-m", "--", "/bin/sh", "-c",
             # the program itself may lie in /tmp: it is opened before
             'exec 9<"$1"; shift; mount -t tmpfs -o nr_inodes=1 none /mnt && mount --bind /mnt /tmp; exec /proc/self/fd/9 "$@"', "sh"]
    result = cloche.behind(*words)("run", "--mode", mode, "--fallback", word, "--workspace", "/etc:ro", "--", "true",
                                   cwd="/")
    assert with_walls(result), result
    if mode == "light":
        assert result.code == 125 and "No space left" in result.err, result


@pytest.mark.root
@pytest.mark.parametrize("word", WORDS)
def test_a_file_system_without_overlay_is_no_missing_feature(cloche, word):
    """Where the project lies decides whether `:cow` works; the host could do it elsewhere."""
    words = ["unshare", "-m", "--", "/bin/sh", "-c", 'mount -t ramfs none /mnt && mkdir /mnt/p && exec "$@"', "sh"]
    result = cloche.behind(*words)("run", "--fallback", word, "--workspace", "/mnt/p:cow", "--", "true", cwd="/",
                                   env={"XDG_STATE_HOME": "/mnt/p/state"})
    assert with_walls(result), result


# where the host lacks a wall -----------------------------------------------------------------------------------
@pytest.mark.ordinary
def test_warn_goes_on_in_mode_light(cloche, deny):
    behind = cloche.behind(*deny(*NO_USERNS))
    (cloche.home / ".ssh").mkdir()
    (cloche.home / ".ssh" / "id").write_text("the key", encoding="ascii")
    (cloche.home / ".ssh" / "id").chmod(0o644)
    (cloche.home / ".ssh").chmod(0o755)
    assert behind("run", "--", "true").code == 125
    report = cloche.tmp.parent / "project" / "report.json"
    result = behind("run", "--fallback", "warn", "--report", report, "--", "/bin/sh", "-c",
                    f"echo ran; cat {cloche.home}/.ssh/id; touch {cloche.home}/mine")
    said = json.loads(report.read_text(encoding="utf-8"))
    assert result.out == "ran\n" and "WEAKER WALL" in result.err and with_walls(result), result
    assert (said["mode"], said["engine"]) == ("light", "native"), said
    assert any("mode light" in text for text in said["warnings"]), said
    assert not (cloche.home / "mine").exists() and not unsandboxed(cloche)


@pytest.mark.ordinary
def test_warn_shows_the_guidance_and_is_not_quietened(cloche, deny):
    settings = cloche.project / "s.yaml"
    settings.write_text("fallback: {action: warn, url: 'https://example.org/runner'}\n", encoding="ascii")
    result = cloche.behind(*deny(*NO_USERNS))("run", "--quiet", "--settings", settings, "--", "echo", "ran")
    assert result.out == "ran\n", result
    assert "WEAKER WALL" in result.err and "https://example.org/runner" in result.err, result


@pytest.mark.ordinary
def test_warn_never_runs_without_a_wall(cloche, deny):
    result = cloche.behind(*deny(*NO_WALL))("run", "--fallback", "warn", "--", "echo", "ran")
    assert result.code == 125 and result.out == "" and with_walls(result), result
    assert "landlock" in result.err.lower() and not unsandboxed(cloche), result


@pytest.mark.ordinary
@pytest.mark.parametrize("flags", [["--network", "allowlist"], ["--allow-domain", "example.org"], ["--disk", "10m"],
                                   ["--hostname", "x"]])
def test_what_light_cannot_keep_is_refused_with_warn(cloche, deny, flags):
    result = cloche.behind(*deny(*NO_USERNS))("run", "--fallback", "warn", *flags, "--", "echo", "ran")
    assert result.code == 125 and result.out == "" and "[policy." in result.err, result
    assert "user namespace" in result.err, f"both reasons are said: {result!r}"


@pytest.mark.ordinary
def test_warn_in_a_copy_on_write_workspace_is_refused(cloche, deny):
    """Light would write to the project itself."""
    result = cloche.behind(*deny(*NO_USERNS))("run", "--fallback", "warn", "--workspace", f"{cloche.project}:cow", "--",
                                              "touch", "x")
    assert result.code == 125 and not (cloche.project / "x").exists(), result


@pytest.mark.parametrize("source", ["file", "pipe"])
@pytest.mark.ordinary
def test_the_second_try_has_the_whole_input(cloche, deny, source):
    text = "".join(f"{i}\n" for i in range(20000))
    given = cloche.project / "in.txt"
    given.write_text(text, encoding="ascii")
    feed = '"$@" < in.txt' if source == "file" else 'cat in.txt | "$@"'
    words = cloche.behind(*deny(*NO_USERNS)).argv("run", "--fallback", "warn", "--json", "--output", "4m", "--", "cat")
    result = cloche.run(["/bin/sh", "-c", feed, "sh", *words], cwd=cloche.project)
    assert result.ok and result.json["stdout"] == text, result


# no wall at all ------------------------------------------------------------------------------------------------
@pytest.mark.ordinary
def test_no_sandbox_prefers_a_wall(cloche, deny):
    result = cloche.behind(*deny(*NO_USERNS))("run", "--fallback", "no-sandbox", "--", "grep", "Seccomp:",
                                              "/proc/self/status")
    assert result.out.split() == ["Seccomp:", "2"] and with_walls(result) and "WEAKER WALL" in result.err, result


@pytest.mark.ordinary
@pytest.mark.parametrize("lacking, flags", [
    (NO_WALL, []),
    (NO_USERNS, ["--allow-domain", "example.org"]),
    (NO_USERNS, ["--disk", "10m"]),
], ids=["no wall", "an allowlist", "a disk limit"])
def test_no_sandbox_runs_as_the_source_does(cloche, deny, lacking, flags):
    """R05: the flow runs directly, with a warning and a link, and its status is the command's."""
    settings = cloche.project / "s.yaml"
    settings.write_text("fallback: {action: no-sandbox, url: 'https://example.org/runner'}\n", encoding="ascii")
    result = cloche.behind(*deny(*lacking))("run", "--settings", settings, *flags, "--report", "report.json", "--", "/bin/sh",
                                            "-c", "pwd; exit 7", cwd=cloche.project)
    said = json.loads((cloche.project / "report.json").read_text(encoding="utf-8"))
    assert (said["mode"], said["engine"]) == ("off", "none") and all("no sandbox" in text for text in said["warnings"]), said
    assert (result.code, result.out) == (7, f"{cloche.project}\n"), result
    assert "NO SANDBOX" in result.err and "https://example.org/runner" in result.err, result
    assert json.loads(unsandboxed(cloche)[0])["type"] == "sandbox_off"


@pytest.mark.ordinary
@pytest.mark.parametrize("flags, where", [
    (["--workspace", "{project}"], "{project}"),
    (["--workspace", "{project}:ro"], "{project}"),
    (["--workspace", "{project}", "--workdir", "sub"], "{project}/sub"),
    (["--workspace", "{project}", "--bind", "{home}:/mnt/h", "--workdir", "/mnt/h"], "{home}"),
    (["--workdir", "/tmp"], "{tmp}"),
    (["--view", "host", "--workdir", "{home}"], "{home}"),
])
def test_no_sandbox_works_in_the_folder_that_was_meant(cloche, deny, flags, where):
    """Folders by their names on the host; what only the sandbox would have had is where the caller is."""
    names = {"project": cloche.project, "home": cloche.home, "tmp": cloche.tmp}
    (cloche.project / "sub").mkdir()
    result = cloche.behind(*deny(*NO_WALL))("run", "--fallback", "no-sandbox", *[f.format(**names) for f in flags], "--",
                                            "pwd", "-P", cwd=cloche.tmp)
    assert result.out == f"{where.format(**names)}\n", result


@pytest.mark.root
def test_no_sandbox_as_root_in_a_folder_of_roots(cloche, deny):
    """A job in a container: root, its folder is root's, no namespaces."""
    result = cloche.behind(*deny(*NO_USERNS))("run", "--fallback", "no-sandbox", "--workspace", cloche.project, "--", "pwd")
    assert result.out == f"{cloche.project}\n" and "NO SANDBOX" in result.err, result
    refused = cloche.behind(*deny(*NO_USERNS))("run", "--fallback", "warn", "--workspace", cloche.project, "--", "pwd")
    assert refused.code == 125 and with_walls(refused), refused


@pytest.mark.root
def test_a_folder_of_roots_is_no_missing_feature_where_standard_can_be_built(cloche):
    result = cloche("run", "--mode", "light", "--fallback", "no-sandbox", "--workspace", cloche.project, "--", "echo", "x")
    assert result.code == 125 and result.out == "" and with_walls(result), result


@pytest.mark.ordinary
def test_no_sandbox_does_not_run_code_that_has_no_root(cloche, deny):
    result = cloche.behind(*deny(*NO_WALL))("code", "--fallback", "no-sandbox", "--language", "python", "-",
                                            stdin="print(1)")
    assert result.code == 125 and result.out == "" and "cli.off.code" in result.err, result


def test_no_sandbox_is_never_a_hint(cloche, deny):
    for lacking in (NO_USERNS, NO_WALL, ["seccomp:ENOSYS"], ["openat2:ENOSYS"]):
        for flags in ([], ["--mode", "light"], ["--fallback", "warn"]):
            result = cloche.behind(*deny(*lacking))("run", *flags, "--", "true")
            assert "no-sandbox" not in result.err, result


@pytest.mark.parametrize("word", WORDS)
def test_mode_max_has_no_fallback(cloche, word):
    result = cloche("run", "--mode", "max", "--fallback", word, "--", "true")
    assert result.code == 125 and "policy.max.asks" in result.err, result


def test_an_unknown_word_names_the_known_ones(cloche):
    result = cloche("run", "--fallback", "none", "--", "true")
    assert result.code == 125 and "no-sandbox" in result.err and "refuse" in result.err, result


# what one feature by itself says is not what the mode says ------------------------------------------------------
NO_SETFCAP = ["setpriv", "--bounding-set", "-setfcap", "--inh-caps", "-setfcap", "--"]


def too_many_keys(cloche, words, flags):
    """The attack: `touch {1..1100}.key` in a folder that is open, with **/*.key denied: more than there can be mounts for."""
    (cloche.home / ".ssh").mkdir()
    (cloche.home / ".ssh" / "id").write_text("the key", encoding="ascii")
    flags = [*flags, "--workspace", cloche.project, "--deny-read", f"{cloche.project}/**/*.key"]
    made = cloche.behind(*words)("run", *flags, "--", "/bin/bash", "-c", "for i in {1..1100}; do : > $i.key; done")
    assert made.ok and with_walls(made), made
    return cloche.behind(*words)("run", *flags, "--", "cat", cloche.home / ".ssh" / "id", "/etc/shadow")


@pytest.mark.root
@pytest.mark.parametrize("word", WORDS)
@pytest.mark.parametrize("lacking", ["setfcap", "execveat"])
def test_a_refusal_that_content_causes_is_none_where_a_feature_seems_to_lack(cloche, deny, word, lacking):
    """Root without CAP_SETFCAP cannot map its own uid, and no sandbox does; without execveat there is another way."""
    words = NO_SETFCAP if lacking == "setfcap" else deny("execveat:ENOSYS")
    again = too_many_keys(cloche, words, ["--fallback", word])
    assert again.code == 125 and "wall.root.too-many" in again.err and again.out == "", again
    assert with_walls(again) and "WEAKER" not in again.err and not unsandboxed(cloche), again


@pytest.mark.root
@pytest.mark.parametrize("word", WORDS)
@pytest.mark.parametrize("lacking", ["unshare:flags&0x10000000=EPERM", "mount:EPERM"])
def test_a_feature_that_seems_to_lack_does_not_count_where_the_mode_starts(cloche, deny, word, lacking):
    """The probe of single features takes ways of its own: a run clones where it unshares, and mounts by descriptor."""
    again = too_many_keys(cloche, deny(lacking), ["--fallback", word])
    assert again.code == 125 and "wall.root.too-many" in again.err and again.out == "", again
    assert with_walls(again) and "WEAKER" not in again.err and not unsandboxed(cloche), again


@pytest.mark.root
@pytest.mark.parametrize("lacking", ["setfcap", "execveat"])
def test_doctor_says_of_a_mode_what_a_run_says(cloche, deny, lacking):
    behind = cloche.behind(*(NO_SETFCAP if lacking == "setfcap" else deny("execveat:ENOSYS")))
    modes = behind("doctor", "--json").json["modes"]
    for mode in ("light", "standard", "max"):
        assert modes[mode]["usable"] == behind("run", "--mode", mode, "--", "/bin/true").ok, (mode, modes)
