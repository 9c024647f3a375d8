"""Copy-on-write workspaces: run, then diff, apply, discard (R82)."""
import json
import os
import random
import shutil
import signal
import stat
import subprocess
import time

import pytest

from helpers import requirement
from helpers.places import IS_ROOT, PYTHON, loops
from helpers.runner import wait_for

pytestmark = requirement("R82")


def own(runner, *paths):
    """Give what the test made to the person who runs cloche."""
    if runner.person is None or not IS_ROOT:
        return
    for top in paths:
        for base, dirs, files in os.walk(top):
            for name in (".", *dirs, *files):
                os.chown(os.path.join(base, name), runner.person.pw_uid, runner.person.pw_gid, follow_symlinks=False)


def fill(runner):
    """A small project with one of each."""
    p = runner.project
    (p / "src/deep").mkdir(parents=True)
    (p / "src/main.c").write_text("one\ntwo\nthree\n")
    (p / "src/deep/x").write_text("x\n")
    (p / "gone").write_text("gone\n")
    (p / "old-name").write_text("content that moves\n")
    (p / "script").write_text("#!/bin/sh\n")
    (p / "link").symlink_to("src/main.c")
    (p / "bin").write_bytes(b"\0\1\2")
    (p / "tree/a").mkdir(parents=True)
    (p / "tree/a/leaf").write_text("leaf\n")
    (p / "swap").write_text("file\n")
    os.chmod(p / "src", 0o755)
    own(runner, p)
    return p


CHANGE = r"""
sed -i s/two/TWO/ src/main.c; rm gone; mv old-name new-name; chmod 755 script; ln -sf src/deep/x link
printf '\0\1\3' > bin; rm -r tree; rm swap; mkdir swap; echo in > swap/in; mkdir empty; printf 'no newline' > "with space"
ln "with space" hard; touch -d 2001-02-03T04:05:06Z "with space"; chmod 700 src/deep
"""


def cow(runner, command, *flags, **kw):
    """Run a shell command over the project; the state's id."""
    result = runner("run", "--workspace", f"{runner.project}:cow", *flags, "--json", "--", "bash", "-ec", command, **kw)
    assert result.ok and result.json["exit_code"] == 0, result
    return result.json["workspace"]["id"]


def snapshot(top, times=False):
    """{name: what it is} of everything below @top."""
    found = {}
    for base, dirs, files in os.walk(os.fsencode(top)):
        for name in dirs + files:
            path = os.path.join(base, name)
            st = os.lstat(path)
            kind = stat.S_IFMT(st.st_mode)
            what = [kind, stat.S_IMODE(st.st_mode) if kind != stat.S_IFLNK else 0, st.st_uid]
            if kind == stat.S_IFREG:
                with open(path, "rb") as f:
                    what.append(f.read())
                if times:
                    what.append(st.st_mtime_ns)
            elif kind == stat.S_IFLNK:
                what.append(os.readlink(path))
            found[os.path.relpath(path, os.fsencode(top))] = tuple(what)
    return found


def changes(result):
    return {c["path"]: c["change"] for c in result.json["changes"]}


# the whole way -------------------------------------------------------------------------------------------------------
def test_diff_apply_and_the_state_is_gone(anyone):
    project = fill(anyone)
    before = snapshot(project, times=True)
    state = cow(anyone, CHANGE)
    assert snapshot(project, times=True) == before, "the run wrote to the project"

    result = anyone("diff", "--json", cwd=project)
    assert result.ok and result.json["id"] == state, result
    assert changes(result) == {
        "src/main.c": "modified", "gone": "deleted", "new-name": "renamed", "script": "mode-changed", "link": "modified",
        "bin": "modified", "tree": "deleted", "tree/a": "deleted", "tree/a/leaf": "deleted", "swap": "type-changed",
        "swap/in": "added", "empty": "added", "with space": "added", "hard": "added", "src/deep": "mode-changed"}
    assert [c["from"] for c in result.json["changes"] if c["change"] == "renamed"] == ["old-name"]
    assert not [c for c in result.json["changes"] if c["notes"]]

    result = anyone("apply", "--dry-run", "--json", cwd=project)
    assert result.ok and snapshot(project, times=True) == before, result
    result = anyone("apply", "--json", cwd=project)
    assert result.ok and result.json["discarded"] and not result.json["withheld"], result
    assert (project / "src/main.c").read_text() == "one\nTWO\nthree\n"
    assert not (project / "gone").exists() and not (project / "tree").exists()
    assert (project / "new-name").read_text() == "content that moves\n" and not (project / "old-name").exists()
    assert stat.S_IMODE((project / "script").stat().st_mode) == 0o755
    assert os.readlink(project / "link") == "src/deep/x"
    assert (project / "bin").read_bytes() == b"\0\1\3"
    assert (project / "swap/in").read_text() == "in\n"
    assert not list((project / "empty").iterdir())
    assert (project / "hard").samefile(project / "with space")
    assert (project / "with space").stat().st_mtime == 981173106
    assert stat.S_IMODE((project / "src/deep").stat().st_mode) == 0o700
    owner = project.stat().st_uid
    assert {what[2] for what in snapshot(project).values()} == {owner}
    assert anyone("diff", "--list", "--json").json["states"] == []
    assert not list((anyone.state / "cloche/cow").iterdir())


def test_discard_leaves_the_project_alone(anyone):
    project = fill(anyone)
    before = snapshot(project, times=True)
    state = cow(anyone, CHANGE + "mkdir -m 000 closed; mkdir -p a/b/c; chmod 000 a")
    result = anyone("discard", state[:8], "--json")
    assert result.ok and result.json["id"] == state, result
    assert snapshot(project, times=True) == before
    assert not list((anyone.state / "cloche/cow").iterdir())
    result = anyone("discard", state)
    assert result.code == 125 and "workspace.state.none" in result.err, result


def test_the_patch_is_one_that_git_applies(cloche, command, has, world):
    has("git")
    project = fill(cloche)
    copy = world.root / "copy"
    shutil.copytree(project, copy, symlinks=True)
    cow(cloche, "sed -i s/two/TWO/ src/main.c; rm gone; mv old-name new-name; chmod 755 script; ln -sf src/deep/x link; "
        "echo new > 'with space'; rm swap; printf 'x\ny' > $'tab\\there'; mkdir swap; echo in > swap/in")
    patch = cloche("diff", cwd=project)
    assert patch.ok and not patch.err, patch
    command(["git", "apply", "-"], cwd=copy, stdin=patch.out_bytes)
    assert cloche("apply", cwd=project).ok
    same = snapshot(project)
    assert {k: v[3:] for k, v in snapshot(copy).items()} == {k: v[3:] for k, v in same.items()}
    assert (copy / "script").stat().st_mode & 0o111


@pytest.mark.parametrize("seed", range(8))
def test_apply_gives_what_running_on_the_folder_itself_gives(anyone, world, seed):
    """The oracle: the same random operations on a copy that is bound writable."""
    project = fill(anyone)
    twin = world.root / f"twin-{seed}"
    shutil.copytree(project, twin, symlinks=True)
    own(anyone, twin)
    if anyone.person is not None:
        os.chown(twin, anyone.person.pw_uid, anyone.person.pw_gid)
    code = RANDOM_WORK.replace("SEED", str(seed))
    real = anyone("run", "--workspace", f"{twin}:rw", "--", PYTHON, "-I", "-S", "-c", code)
    assert real.ok, real
    copied = anyone("run", "--workspace", f"{project}:cow", "--", PYTHON, "-I", "-S", "-c", code)
    assert copied.ok, copied
    result = anyone("apply", "--json", "--allow-outside-links", project)
    assert result.ok, result
    assert snapshot(project, times=False) == snapshot(twin, times=False), f"seed {seed}"


RANDOM_WORK = r"""
import os, random, shutil
r = random.Random(SEED)
names = ["a", "b", "src", "tree", "swap", "gone", "link", "bin", "x y", "\u00e4", "n\nl"]
def everything():
    found = []
    for base, dirs, files in os.walk("."):
        found += [os.path.join(base, n) for n in sorted(dirs) + sorted(files)]
    return sorted(found)
def directory():
    return r.choice(["."] + [p for p in everything() if os.path.isdir(p) and not os.path.islink(p)])
def remove(p):
    if os.path.isdir(p) and not os.path.islink(p): shutil.rmtree(p)
    elif os.path.lexists(p): os.unlink(p)
for i in range(120):
    op = r.randrange(9)
    target = os.path.join(directory(), r.choice(names))
    there = everything()
    some = r.choice(there) if there else target
    plain = os.path.isfile(some) and not os.path.islink(some)
    if op <= 1:
        remove(target); open(target, "w").write(f"content {i}\n" * r.randrange(200))
    elif op == 2 and plain and os.access(some, os.W_OK):
        open(some, "a").write(f"more {i}\n")
    elif op == 3:
        remove(some)
    elif op == 4:
        remove(target); os.mkdir(target); open(os.path.join(target, "in"), "w").write(str(i))
    elif op == 5 and not (target + "/").startswith(some + "/"):
        remove(target)
        if os.path.lexists(some): shutil.move(some, target)
    elif op == 6 and not os.path.islink(some):
        os.chmod(some, r.choice([0o755, 0o700, 0o775]) if os.path.isdir(some) else r.choice([0o644, 0o600, 0o755, 0o400]))
    elif op == 7:
        remove(target); os.symlink(r.choice(["a", "b/in", "../x"]), target)
    elif op == 8 and plain and some != target and not (some + "/").startswith(target + "/"):
        remove(target); os.link(some, target)
"""


def test_names_with_any_byte(cloche):
    project = cloche.project
    code = ("import os\nfor n in (b'new\\nline', b'\\xff\\xfe', b'tab\\t', b'\\x1b[31mred', b'-rf', b'a\\\\b', b'%41', b' '):\n"
            " open(n, 'wb').write(n)")
    result = cloche.sandbox(code, flags=["--workspace", f"{project}:cow"])
    assert result.ok, result
    for flags in (["--name-only"], [], ["--stat"]):
        shown = cloche("diff", *flags, cwd=project)
        assert shown.ok and b"\x1b" not in shown.out_bytes.replace(b"+\x1b[31mred", b"") and b"\xff" not in \
            shown.out_bytes.replace(b"+\xff\xfe", b""), shown
    listed = cloche("diff", "--json", cwd=project).json["changes"]
    assert {c["path_encoded"] for c in listed if "path_encoded" in c} == {"%ff%fe"}
    assert cloche("apply", "--", "-rf", cwd=project).ok and (project / "-rf").exists()
    assert cloche("apply", cwd=project).ok
    assert {n: (open(os.path.join(os.fsencode(project), n), "rb").read()) for n in os.listdir(os.fsencode(project))} == {
        n: n for n in (b"new\nline", b"\xff\xfe", b"tab\t", b"\x1b[31mred", b"-rf", b"a\\b", b"%41", b" ")}


def test_a_terminal_is_not_obeyed(cloche):
    cow(cloche, r"printf 'title \033]0;owned\007 \r \n' > f; printf x > $'\033]0;name\007'")
    shown = cloche("diff", cwd=cloche.project, pty=True)
    assert shown.ok and b"\x1b]" not in shown.out_bytes and b"^[]0;owned^G" in shown.out_bytes, shown
    piped = cloche("diff", cwd=cloche.project)
    assert b"\x1b]0;owned\x07" in piped.out_bytes, "a patch that is not looked at is exact"


# choosing ---------------------------------------------------------------------------------------------------------------
def test_some_paths_only(cloche):
    project = fill(cloche)
    cow(cloche, CHANGE)
    result = cloche("apply", "--json", "main.c", "../swap/", cwd=project / "src")
    assert result.ok and not result.json["discarded"], result
    assert sorted(c["path"] for c in result.json["applied"]) == ["src/main.c", "swap", "swap/in"]
    assert (project / "gone").exists()
    left = changes(cloche("diff", "--json", cwd=project))
    assert "src/main.c" not in left and "gone" in left
    for path, code in (("nothing", "no-such-change"), ("/etc", "workspace.apply.path"), ("../..", "workspace.apply.path")):
        result = cloche("apply", "--", path, cwd=project)
        assert result.code == 125 and code in result.err, result
    assert cloche("apply", ".", cwd=project).ok
    assert not (project / "gone").exists()


def test_which_state(cloche, world):
    project = fill(cloche)
    first = cow(cloche, "echo 1 > f")
    second = cow(cloche, "echo 2 > f")
    assert cloche("diff", "--json", cwd=project / "src/deep").json["id"] == second
    assert cloche("diff", "--json", first).json["id"] == first
    assert cloche("diff", "--json", project).json["id"] == second
    listed = cloche("diff", "--list", "--json").json["states"]
    assert [s["id"] for s in listed] == [second, first]
    assert {s["project"] for s in listed} == {str(project)}
    assert first[:12] in cloche("diff", "--list").out
    for which in ("ffffffff", "/", "no-such-directory", "abc"):
        result = cloche("diff", which, cwd="/")
        assert result.code == 125 and "workspace.state.none" in result.err, result
    assert cloche("apply", first, cwd="/").ok
    assert (project / "f").read_text() == "1\n"
    # the second run did not know of it
    result = cloche("apply", "--json", cwd=project)
    assert result.code == 1 and [c["path"] for c in result.json["conflicts"]] == ["f"], result
    assert cloche("apply", "--force", cwd=project).ok and (project / "f").read_text() == "2\n"


@pytest.mark.parametrize("words", [["diff", "--stat", "--name-only"], ["diff", "a", "b"], ["diff", "--list", "x"],
                                   ["discard", "a", "b"], ["apply", "--nonsense"], ["diff", "-x"],
                                   ["apply", "--include-protected"]])
def test_wrong_words_are_refused(cloche, words):
    cow(cloche, "echo 1 > f")
    result = cloche(*words, cwd=cloche.project)
    assert result.code == 125 and result.err, result
    assert not (cloche.project / "f").exists()


def test_help(cloche):
    for verb in ("diff", "apply", "discard"):
        result = cloche(verb, "--help")
        assert result.ok and f"usage: cloche {verb}" in result.out and "--json" in result.out, result


def test_a_refusal_in_json(cloche):
    result = cloche("diff", "--json", cwd="/")
    assert result.code == 125 and result.json["error"]["code"] == "workspace.state.none", result


def test_a_running_sandbox_keeps_its_state(cloche):
    run = cloche.popen("run", "--workspace", f"{cloche.project}:cow", "--", "sh", "-c", "echo 1 > f; echo up; cat",
                       stdin=subprocess.PIPE)
    assert run.stdout.readline() == b"up\n"
    assert cloche("diff", "--list", "--json").json["states"][0]["running"] is True
    for verb in ("diff", "apply", "discard"):
        result = cloche(verb, cwd=cloche.project)
        assert result.code == 125 and "workspace.state.busy" in result.err, result
    run.stdin.close()
    assert run.wait() == 0
    assert cloche("apply", cwd=cloche.project).ok and (cloche.project / "f").exists()


def test_a_killed_run_leaves_its_changes_to_be_seen(cloche):
    run = cloche.popen("run", "--workspace", f"{cloche.project}:cow", "--", "sh", "-c", "echo 1 > f; echo up; sleep 1000",
                       stdin=subprocess.PIPE)
    assert run.stdout.readline() == b"up\n"
    run.send_signal(signal.SIGKILL)
    run.wait()
    wait_for(lambda: cloche("diff", cwd=cloche.project).ok)
    assert changes(cloche("diff", "--json", cwd=cloche.project)) == {"f": "added"}
    assert cloche("discard", cwd=cloche.project).ok


# conflicts -----------------------------------------------------------------------------------------------------------------
def test_conflicts_apply_nothing(anyone):
    project = fill(anyone)
    cow(anyone, CHANGE + "echo mine > both-added")
    (project / "src/main.c").write_text("the host's\n")
    (project / "both-added").write_text("the host's\n")
    (project / "tree/a/new").write_text("the host's, in a directory that the run deleted\n")
    own(anyone, project)
    before = snapshot(project, times=True)
    result = anyone("apply", "--json", cwd=project)
    # the ordinary user's files were given to him by chown, which is a change too
    conflicts = {c["path"] for c in result.json["conflicts"]}
    assert result.code == 1 and result.json["applied"] == [], result
    assert {"src/main.c", "both-added", "tree/a/new"} <= conflicts
    assert snapshot(project, times=True) == before
    assert anyone("apply", cwd=project).code == 1
    assert anyone("apply", "--force", cwd=project).ok
    assert (project / "both-added").read_text() == "mine\n" and not (project / "tree").exists()


def test_the_same_change_on_both_sides_is_no_conflict(cloche):
    project = fill(cloche)
    cow(cloche, "echo same > gone; echo other > swap")
    (project / "gone").write_text("same\n")
    assert cloche("apply", cwd=project).ok
    assert (project / "swap").read_text() == "other\n"


def test_what_the_host_removed(cloche):
    project = fill(cloche)
    cow(cloche, "echo more >> src/deep/x; rm gone")
    shutil.rmtree(project / "src/deep")
    (project / "gone").unlink()
    result = cloche("apply", "--json", cwd=project)
    assert result.code == 1 and "src/deep" in {c["path"] for c in result.json["conflicts"]}, result
    assert not (project / "src/deep").exists()
    assert cloche("apply", "--force", cwd=project).ok and (project / "src/deep/x").read_text() == "x\nmore\n"


def test_another_directory_in_the_projects_place(cloche, world):
    project = fill(cloche)
    cow(cloche, "echo 1 > f")
    project.rename(world.root / "moved")
    project.mkdir()
    for verb in ("diff", "apply"):
        result = cloche(verb, cwd=project)
        # by its name the directory is found no more; by the state's id it is refused
        assert result.code == 125, result
        state = cloche("diff", "--list", "--json").json["states"][0]["id"]
        result = cloche(verb, state)
        assert result.code == 125 and "workspace.project.changed" in result.err, result
    assert not list(project.iterdir())
    assert cloche("discard", state).ok


# interrupted -----------------------------------------------------------------------------------------------------------------
def old_or_new(project, old, new):
    now = snapshot(project)
    assert now in (old, new), sorted(set(now.items()) ^ set(old.items()))[:5]
    return now == new


@requirement("R91", "R82")
def test_names_of_a_home_matter_in_one(cloche):
    """A shell obeys its files in a home: they wait for a person at the top, and where the project has them. Elsewhere what obeys them is told."""
    project = cloche.project
    for name in ("sub/.bashrc", "node_modules/a/.profile"):
        (project / name).parent.mkdir(parents=True)
        (project / name).write_text("old\n")
    own(cloche, project)
    wait = {".bashrc", ".ssh/config", "sub/.bashrc", "node_modules/a/.envrc", "vendor/a/.vscode/tasks.json"}
    come = {"vendor/a/.bashrc", "vendor/a/.ssh/config", "vendor/a/.config/fish/config.fish", "node_modules/a/.profile", "node_modules/b/.zshrc"}
    cow(cloche, "".join(f"mkdir -p $(dirname {name}); echo new > {name}; " for name in sorted(wait | come)))
    done = cloche("apply", "--json", cwd=project)
    assert done.code == 2, done
    told = tuple(c["path"] for c in done.json["withheld"])
    withheld = {name for name in wait | come if name in told or name.startswith(tuple(f"{path}/" for path in told))}
    assert withheld == wait, done
    assert all((project / name).read_text() == "new\n" for name in come), done
    assert (project / "sub/.bashrc").read_text() == "old\n" and not any((project / name).exists() for name in wait - {"sub/.bashrc"})


@pytest.mark.heavy
@pytest.mark.parametrize("elsewhere", [False, pytest.param(True, marks=pytest.mark.root)])
def test_killed_anywhere_all_or_nothing(cloche, world, elsewhere):
    """SIGKILL of apply at random points: the project is as before, or as applied; no file of ours stays in it."""
    project = cloche.project
    for i in range(40):
        (project / f"dir{i % 5}").mkdir(exist_ok=True)
        (project / f"dir{i % 5}/f{i}").write_text(f"old {i}\n" * 50)
    old = snapshot(project)
    if elsewhere:       # another mount: the stage has to be in the project
        subprocess.run(["mount", "--bind", cloche.state, cloche.state], check=True)
    try:
        state = cow(cloche, "for f in dir*/*; do echo new >> $f; done; rm -r dir1; mkdir -p fresh/er; echo n > fresh/er/f; "
                    "rm -r dir2; echo file > dir2")
        plain = cloche("apply", "--dry-run", "--json", state)
        assert plain.ok, plain
        rng = random.Random(int(os.environ.get("CLOCHE_TEST_SEED", "1")))
        new, done = None, 0
        for _ in range(loops(40)):
            apply = cloche.popen("apply", "--keep", "--force", state)
            time.sleep(rng.uniform(0, 0.02))
            apply.kill()
            apply.wait()
            # whoever outlives it has the lock until it has put everything back
            wait_for(lambda: "workspace.state.busy" not in cloche("diff", state).err)
            assert not list(project.glob(".cloche*")), "a stage was left in the project"
            now = snapshot(project)
            if now != old:
                new = new or now
                done += 1
                assert (project / "fresh/er/f").read_text() == "n\n" and (project / "dir2").read_text() == "file\n"
                assert not (project / "dir1").exists()
                assert all(p.read_text().endswith("new\n") for p in project.glob("dir*/*"))
                restore(project)
                state = again(cloche, state)
                old = snapshot(project)
        assert cloche("apply", "--force", state).ok
    finally:
        if elsewhere:
            subprocess.run(["umount", cloche.state], check=True)


def restore(project):
    for path in project.iterdir():
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    for i in range(40):
        (project / f"dir{i % 5}").mkdir(exist_ok=True)
        (project / f"dir{i % 5}/f{i}").write_text(f"old {i}\n" * 50)


def again(cloche, state):
    assert cloche("discard", state).ok
    return cow(cloche, "for f in dir*/*; do echo new >> $f; done; rm -r dir1; mkdir -p fresh/er; echo n > fresh/er/f; "
               "rm -r dir2; echo file > dir2")


def test_no_space_leaves_everything_as_it_was(cloche):
    """A file system limit met while staging."""
    project = fill(cloche)
    cow(cloche, "head -c 3000000 /dev/urandom > big; echo 1 > small; rm gone")
    before = snapshot(project, times=True)
    limited = cloche.behind("prlimit", "--fsize=100000", "--")
    result = limited("apply", cwd=project)
    assert not result.ok, result
    wait_for(lambda: "workspace.state.busy" not in cloche("diff", "--stat", cwd=project).err)
    assert snapshot(project, times=True) == before
    assert cloche("apply", cwd=project).ok and (project / "big").stat().st_size == 3000000


@pytest.mark.root
def test_no_room_for_a_name_leaves_everything_as_it_was(cloche, world):
    """The project's disk has no inode left: what apply had put there goes again, by itself."""
    project = world.root / "small"
    project.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "nr_inodes=16", "none", project], check=True)
    try:
        (project / "f").write_text("old\n")
        assert cloche("run", "--workspace", f"{project}:cow", "--", "sh", "-c", "echo new > f; mkdir d; for i in $(seq 20); do echo > n$i; echo > d/n$i; done",
                      cwd=project).ok
        result = cloche("apply", cwd=project)
        assert result.code == 125 and "[workspace.apply.stage]" in result.err and "the project is as it was" in result.err, result
        assert [p.name for p in project.iterdir()] == ["f"] and (project / "f").read_text() == "old\n"
        assert len(cloche("diff", "--name-only", cwd=project).out.splitlines()) == 42
        subprocess.run(["mount", "-o", "remount,nr_inodes=100", project], check=True)
        assert cloche("apply", cwd=project).ok and (project / "f").read_text() == "new\n" and (project / "d/n20").exists()
    finally:
        subprocess.run(["umount", project], check=True)


@pytest.mark.root
def test_the_last_inode(cloche, world):
    """Where what is applied takes the last one, the folder in which it was prepared goes all the same."""
    for inodes in range(4, 9):
        project = world.root / f"last{inodes}"
        project.mkdir()
        subprocess.run(["mount", "-t", "tmpfs", "-o", f"nr_inodes={inodes}", "none", project], check=True)
        try:
            (project / "f").write_text("old\n")
            assert cloche("run", "--workspace", f"{project}:cow", "--", "sh", "-c", "echo > n", cwd=project).ok
            result = cloche("apply", cwd=project)
            assert sorted(p.name for p in project.iterdir()) == (["f", "n"] if result.ok else ["f"]), (inodes, result)
            assert result.ok or "the project is as it was" in result.err, (inodes, result)
        finally:
            subprocess.run(["umount", project], check=True)
    assert result.ok


def test_more_folders_than_may_be_open(cloche):
    """The folders of an apply are kept open, where there is room for that."""
    project = fill(cloche)
    for i in range(150):
        (project / f"many/{i}").mkdir(parents=True)
        (project / f"many/{i}/f").write_text("old\n")
    cow(cloche, "for d in many/*; do echo new > $d/f; echo new > $d/g; done")
    limited = cloche.behind("prlimit", "--nofile=90:90", "--")("apply", cwd=project)
    assert limited.ok, limited
    assert all((project / f"many/{i}/{n}").read_text() == "new\n" for i in range(150) for n in "fg")


# places ----------------------------------------------------------------------------------------------------------------------
def test_state_inside_the_project_is_refused(cloche):
    project = fill(cloche)
    (project / "state").mkdir()
    own(cloche, project)
    result = cloche("run", "--workspace", f"{project}:cow", "--", "true", env={"XDG_STATE_HOME": str(project / "state")})
    assert result.code == 125 and "workspace.state.inside-project" in result.err, result


@pytest.mark.parametrize("call", ["openat2:ENOSYS", "statx:ENOSYS", "renameat2:ENOSYS"])
def test_a_missing_system_call(cloche, deny, call):
    """Another way, or a refusal; never half."""
    project = fill(cloche)
    cow(cloche, CHANGE)
    before = snapshot(project)
    result = cloche.behind(*deny(call))("apply", cwd=project)
    if result.ok:
        assert (project / "src/main.c").read_text() == "one\nTWO\nthree\n" and not (project / "tree").exists()
        assert (project / "swap/in").read_text() == "in\n" and not list(project.glob(".cloche*"))
    else:
        assert result.code == 125 and snapshot(project) == before, result
        assert cloche("apply", cwd=project).ok


@pytest.mark.root
def test_files_of_others_in_the_project(cloche):
    """What the sandbox's user may not write on the host cannot be changed in the copy either."""
    project = fill(cloche)
    os.chown(project / "gone", 65534, 65534)
    os.chmod(project / "gone", 0o644)
    state = cow(cloche, "cat gone; ! echo x >> gone")
    assert changes(cloche("diff", "--json", state)) == {}
    assert cloche("discard", state).ok


def test_report_and_state_agree(cloche):
    result = cloche("run", "--workspace", f"{cloche.project}:cow", "--json", "--", "true")
    workspace = result.json["workspace"]
    assert workspace["kind"] == "cow" and workspace["dir"] == str(cloche.project)
    listed = cloche("diff", "--list", "--json").json["states"]
    assert [s["id"] for s in listed] == [workspace["id"]]
    meta = json.loads((cloche.state / "cloche/cow" / workspace["id"] / "meta.json").read_text())
    assert meta["id"] == workspace["id"] and meta["version"] == 2 and meta["protect"] == []
