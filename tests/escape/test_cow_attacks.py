"""What a sandbox leaves in its copy-on-write layer to be read by cloche, and taken over by a careless person.

Each attack acts through `cloche diff` and `cloche apply`, which run on the host with the caller's rights.
"""
import os
import shutil
import stat
import subprocess
import threading

import pytest

from helpers import requirement
from helpers.places import IS_ROOT, loops

pytestmark = requirement("R82")


def cow(runner, code, lang="python", **kw):
    result = runner.sandbox(code, lang, flags=["--workspace", f"{runner.project}:cow", "--json"], **kw)
    assert result.ok and result.json["exit_code"] == 0, result
    return result.json["workspace"]["id"]


def owned(runner, path):
    """@path belongs to whoever runs cloche."""
    if runner.person is not None and IS_ROOT:
        os.chown(path, runner.person.pw_uid, runner.person.pw_gid, follow_symlinks=False)
    return path


@pytest.fixture
def victim(anyone, world):
    """A directory of the host with a secret, writable by whoever runs cloche."""
    path = world.root / "victim"
    path.mkdir(exist_ok=True)
    (path / "secret").write_text("top secret\n")
    owned(anyone, path)
    owned(anyone, path / "secret")
    yield path
    assert sorted(p.name for p in path.iterdir()) == ["secret"], "something was written outside the project"
    assert (path / "secret").read_text() == "top secret\n"


# what is planted in the layer -----------------------------------------------------------------------------------------
def test_symlinks_everywhere(anyone, victim):
    """Files and directories replaced by links to the host: neither read nor written through."""
    project = anyone.project
    for name in ("file", "dir/inner"):
        (project / name).parent.mkdir(exist_ok=True)
        (project / name).write_text("mine\n")
    owned(anyone, project / "dir")
    owned(anyone, project / "file")
    cow(anyone, f"""
import os
v = {str(victim)!r}
os.remove('file'); os.symlink(v + '/secret', 'file')
os.remove('dir/inner'); os.rmdir('dir'); os.symlink(v, 'dir')
os.symlink('/', 'root'); os.symlink('/proc/self/root' + v, 'proc'); os.symlink('../' * 20 + v[1:], 'up')
os.symlink('.', 'here'); os.mkdir('d'); os.symlink('../here/../' + v, 'd/through')
os.symlink('loop', 'loop')
""")
    shown = anyone("diff", cwd=project)
    assert shown.ok and "top secret" not in shown.out, shown
    result = anyone("apply", "--json", cwd=project)
    assert result.code == 2, result
    withheld = {c["path"] for c in result.json["withheld"]}
    assert {"file", "dir", "root", "proc", "up", "d/through"} <= withheld, result
    assert (project / "file").read_text() == "mine\n" and (project / "dir/inner").read_text() == "mine\n"
    assert os.readlink(project / "loop") == "loop"
    assert anyone("discard", cwd=project).ok


@pytest.mark.parametrize("place", [".git/hooks/post-checkout", ".git/config", "deep/er/.git/hooks/pre-commit", ".vscode/tasks.json",
                                   ".bashrc", ".git/modules/sub/hooks/post-checkout", ".git/commondir", ".GIT/hooks/x",
                                   ".mcp.json", ".claude/commands/x.md", ".envrc"])
def test_what_the_host_would_run_is_withheld(cloche, place):
    cow(cloche, f"import os; p = {place!r}; os.makedirs(os.path.dirname(p) or '.', exist_ok=True); open(p, 'w').write('evil')")
    result = cloche("apply", "--json", cwd=cloche.project)
    assert result.code == 2 and place in {c["path"] for c in result.json["withheld"]}, result
    assert not (cloche.project / place).exists()
    # not by a path that merely contains it, and not by the flag alone
    assert cloche("apply", "--include-protected", cwd=cloche.project).code == 125
    result = cloche("apply", "--include-protected", "--json", "--", place, cwd=cloche.project)
    assert result.code == 0 and (cloche.project / place).read_text() == "evil", result


# what the policy of the run protects beside the built-in names
OWN = {
    "a file": ("deploy.sh", "open('deploy.sh', 'a').write('evil')"),
    "one that is not there": ("release.sh", "open('release.sh', 'w').write('evil')"),
    "replaced by rename": ("deploy.sh", "open('x', 'w').write('evil'); os.rename('x', 'deploy.sh')"),
    "a file further down": ("sub/deploy.sh", "os.makedirs('sub'); open('sub/deploy.sh', 'w').write('evil')"),
    "another case": ("DEPLOY.sh", "open('DEPLOY.sh', 'w').write('evil')"),
    "removed": ("deploy.sh", "os.remove('deploy.sh')"),
    "by a link": ("deploy.sh", "os.remove('deploy.sh'); open('x', 'w').write('evil'); os.symlink('x', 'deploy.sh')"),
    "in a folder": ("ops/run", "open('ops/run', 'w').write('evil')"),
    "new in a folder": ("ops/new/more", "os.makedirs('ops/new'); open('ops/new/more', 'w').write('evil')"),
    "a link for the folder": ("ops", "shutil.move('ops', 'x'); os.symlink('x', 'ops')"),
    "of two names": ("conf/site.yaml", "open('conf/site.yaml', 'w').write('evil')"),
    "the folder of two names": ("conf", "shutil.move('conf', 'x'); os.symlink('x', 'conf')"),
}


@pytest.fixture
def guarded(cloche, world):
    """A project with files that only the settings of the run protect, and those settings, outside it."""
    for name in ("deploy.sh", "ops/run", "conf/site.yaml"):
        (cloche.project / name).parent.mkdir(exist_ok=True)
        owned(cloche, (cloche.project / name).parent)
        (cloche.project / name).write_text("mine\n")
        owned(cloche, cloche.project / name)
    settings = world.root / "policy.yaml"
    settings.write_text("filesystem:\n  protect: [deploy.sh, release.sh, ops, conf/site.yaml]\n")
    return settings


@pytest.mark.parametrize("place, code", OWN.values(), ids=OWN.keys())
def test_what_the_settings_protect_is_withheld(cloche, guarded, place, code):
    """apply is another command, perhaps of another day, and nobody gives it the settings of the run."""
    bare = cloche.sandbox("open('kept', 'w')", "python", flags=["--settings", str(guarded), "--workspace", f"{cloche.project}:cow", "--json"])
    assert bare.json["exit_code"] == 0 and cloche("apply", cwd=cloche.project).code == 0 and (cloche.project / "kept").exists()
    done = cloche.sandbox("import os, shutil\n" + code, "python", flags=["--settings", str(guarded), "--workspace", f"{cloche.project}:cow", "--json"])
    assert done.json["exit_code"] == 0, done
    before = {p: p.read_text() for p in cloche.project.rglob("*") if p.is_file()}
    seen = cloche("diff", "--json", cwd=cloche.project).json["changes"]
    assert any(place == c["path"] or place.startswith(c["path"] + "/") for c in seen if "protected" in c["notes"]), seen
    applied = cloche("apply", "--json", cwd=cloche.project)
    assert applied.code == 2, applied
    assert {p: p.read_text() for p in before} == before and not (cloche.project / place).is_symlink(), applied
    assert not any(p.read_text() == "evil" for p in cloche.project.rglob("*") if p.is_file() and p.name != "x"), applied
    assert cloche("apply", "--include-protected", "--json", "--", place, cwd=cloche.project).code == 0


def test_another_run_of_the_project_opens_nothing(cloche, guarded, world):
    """Each copy has the names of its own run: neither a later run's settings nor empty ones take them away."""
    flags = ["--workspace", f"{cloche.project}:cow", "--json"]
    write = "open('deploy.sh', 'w').write('evil')"
    more = world.root / "more.yaml"
    more.write_text("filesystem:\n  protect: []\n")
    first = cloche.sandbox(write, "python", flags=["--settings", str(guarded), *flags])
    other = cloche.sandbox(write, "python", flags=["--settings", str(more), *flags])
    guarded.write_text("filesystem:\n  protect: []\n")
    first, other = (run.json["workspace"]["id"] for run in (first, other))
    assert cloche("apply", "--json", first, cwd=cloche.project).code == 2
    assert (cloche.project / "deploy.sh").read_text() == "mine\n"
    assert cloche("apply", "--json", other, cwd=cloche.project).code == 0      # its run had no such rule
    assert (cloche.project / "deploy.sh").read_text() == "evil"


def test_a_project_in_the_place_of_a_names_beginning(cloche):
    """Of .claude/settings.json and .claude/hooks the rest is at the top of a project that is a .claude, as the guard has it."""
    project = cloche.project / ".claude"
    project.mkdir()
    owned(cloche, project)
    made = cloche.sandbox("import os\nos.mkdir('hooks')\nfor n in 'settings.json', 'hooks/x', 'kept': open(n, 'w').write('evil')", "python",
                          flags=["--workspace", f"{project}:cow", "--json"])
    assert made.json["exit_code"] == 0, made
    applied = cloche("apply", "--json", made.json["workspace"]["id"], cwd=project)
    assert applied.code == 2 and {p.name for p in project.iterdir()} == {"kept"}, applied


def test_a_protected_name_behind_a_link_of_a_folder(cloche, world):
    """Whether it is there or not: what comes to be in the real folder is what the name would find."""
    settings = world.root / "policy.yaml"
    settings.write_text("filesystem:\n  protect: [build/out]\n")
    (cloche.project / "gen").mkdir()
    owned(cloche, cloche.project / "gen")
    (cloche.project / "build").symlink_to("gen")
    made = cloche.sandbox("import os\nos.mkdir('gen/out')\nfor n in 'gen/out/x', 'kept': open(n, 'w').write('evil')", "python",
                          flags=["--settings", str(settings), "--workspace", f"{cloche.project}:cow", "--json"])
    assert made.json["exit_code"] == 0, made
    assert cloche("apply", "--json", cwd=cloche.project).code == 2
    assert not (cloche.project / "gen/out").exists() and (cloche.project / "kept").exists()


def test_the_settings_file_in_the_project(cloche):
    """It says what the next run protects: a copy of it is closed to the command like the file itself."""
    settings = cloche.project / "policy.yaml"
    settings.write_text("filesystem:\n  protect: [deploy.sh]\n")
    owned(cloche, settings)
    made = cloche.sandbox("import os\ntry: os.rename('policy.yaml', 'x')\nexcept OSError: pass\nopen('policy.yaml', 'w').write('{}')", "python",
                          flags=["--settings", str(settings), "--workspace", f"{cloche.project}:cow", "--json"])
    assert made.json["exit_code"] == 1, made
    assert cloche("apply", "--json", cwd=cloche.project).json["applied"] == [] and "deploy.sh" in settings.read_text()


@pytest.mark.parametrize("kind", ["file", "symlink", "gone"])
def test_a_repository_is_not_replaced(cloche, command, has, kind):
    """.git as a file or a link would lead git to the sandbox's configuration and hooks."""
    has("git")
    command(["git", "init", "-q", "."], cwd=cloche.project)
    make = {"file": "open('.git', 'w').write('gitdir: evil')", "symlink": "os.symlink('evil', '.git')", "gone": ""}[kind]
    cow(cloche, "import os, shutil\nshutil.copytree('.git', 'evil')\nopen('evil/hooks/post-checkout', 'w').write('evil')\n"
        f"shutil.rmtree('.git')\n{make}")
    result = cloche("apply", "--json", cwd=cloche.project)
    assert result.code == 2 and ".git" in {c["path"] for c in result.json["withheld"]}, result
    assert (cloche.project / ".git/config").is_file() and (cloche.project / ".git/hooks").is_dir()


def test_nothing_unseen_on_a_terminal(cloche):
    """Characters that reorder a line or that nobody sees are named, in names and in what is in the files (issue 13, A4)."""
    unseen = "\u202e\u2066\u200b\u200d\u2060\ufeff\u061c\u00ad\u3164\ufe0f\U000e0041"
    cow(cloche, f"""
for i, c in enumerate({unseen!r}):
    open(f'{{i}}{{c}}.txt', 'w').write(f'if x{{c}}: pass\\n')
""")
    for words in (["diff"], ["diff", "--stat"], ["diff", "--name-only"], ["diff", "--json"], ["apply", "--dry-run"], ["apply", "--dry-run", "--json"]):
        shown = cloche(*words, pty=True, cwd=cloche.project)
        assert ".txt" in shown.out and not set(unseen) & set(shown.out), (words, ascii(shown.out))
    assert "0\u202e.txt" in {c["path"] for c in cloche("diff", "--json", cwd=cloche.project).json["changes"]}
    assert "<U+202E>" in cloche("diff", pty=True, cwd=cloche.project).out
    assert "x\u202e" in cloche("diff", cwd=cloche.project).out, "a patch in a pipe is exact"
    assert cloche("discard", cwd=cloche.project).ok


def test_set_id_bits_and_attributes(anyone):
    """The filter forbids set-id bits inside; were they there all the same, they would not be taken over."""
    project = anyone.project
    state = cow(anyone, """
import os
for name in ('suid', 'sgid', 'sticky'): open(name, 'w').write('#!/bin/sh\\n')
os.mkdir('sgid-dir')
os.setxattr('suid', 'user.note', b'travels')
for name in (b'user.overlay.opaque', b'user.overlay.whiteout', b'user.overlay.redirect', b'security.capability', b'trusted.x',
             b'user.cloche.mode'):
    try: os.setxattr('sgid', name, b'y')
    except OSError: pass
for mode in (0o4755, 0o6755):
    try: os.chmod('suid', mode)
    except OSError: pass
    assert not os.stat('suid').st_mode & 0o4000
""")
    upper = anyone.state / "cloche/cow" / state / "layers/upper"
    for name, mode in (("suid", 0o4755), ("sgid", 0o2755), ("sticky", 0o1777), ("sgid-dir", 0o7777)):
        os.chmod(upper / name, mode)
    result = anyone("apply", "--json", cwd=project)
    assert result.ok, result
    for path in project.iterdir():
        assert not path.lstat().st_mode & 0o7000, path
    assert os.listxattr(project / "sgid") == [], "only user attributes that are not ours travel"
    assert os.getxattr(project / "suid", "user.note") == b"travels"
    dropped = {c["path"] for c in result.json["applied"] if "set-id-dropped" in c["notes"]}
    assert dropped == {"suid", "sgid", "sticky", "sgid-dir"}


def test_special_files_are_told_and_left(anyone):
    """A FIFO would block whoever opens it; a socket and a device are no files at all."""
    cow(anyone, """
import os, socket
os.mkfifo('fifo'); socket.socket(socket.AF_UNIX).bind('socket'); open('plain', 'w').write('x')
for name, mode in (('char', 0o20666), ('block', 0o60666)):
    try: os.mknod(name, mode, os.makedev(1, 3))
    except OSError: pass
try: os.mknod('whiteout', 0o20000, 0)
except OSError: print('no whiteout')
""")
    for verb in (["diff"], ["diff", "--stat"], ["apply"]):
        result = anyone(*verb, cwd=anyone.project, timeout=30)
        assert result.code in (0, 2), result
    assert [p.name for p in anyone.project.iterdir()] == ["plain"]


def test_a_whiteout_cannot_be_forged(anyone):
    """Deleting through a forged mark would hide deletions from overlayfs and show them to us."""
    (anyone.project / "keep").write_text("keep\n")
    owned(anyone, anyone.project / "keep")
    cow(anyone, """
import os
open('empty', 'w')
for target in ('empty', '.', 'keep'):
    for name in ('whiteout', 'opaque', 'origin', 'metacopy', 'redirect'):
        for prefix in ('user.overlay.', 'trusted.overlay.'):
            try: os.setxattr(target, prefix + name, b'y')
            except OSError: pass
""")
    shown = anyone("diff", "--json", cwd=anyone.project)
    assert shown.ok and "deleted" not in {c["change"] for c in shown.json["changes"]}, shown
    assert anyone("apply", cwd=anyone.project).ok
    assert (anyone.project / "keep").read_text() == "keep\n"
    assert not [a for a in os.listxattr(anyone.project / "empty") if "overlay" in a]


# size ---------------------------------------------------------------------------------------------------------------------
@pytest.mark.slow
def test_thousands_of_levels(anyone):
    """More than a path can name, which is PATH_MAX / 2 of one letter each."""
    cow(anyone, "import os\nfor i in range(2200):\n os.mkdir('d'); os.chdir('d')\nopen('leaf', 'w')")
    shown = anyone("diff", "--json", cwd=anyone.project)
    assert shown.ok and sum("too-deep" in c["notes"] for c in shown.json["changes"]) == 1
    assert anyone("diff", "--name-only", cwd=anyone.project).ok
    result = anyone("apply", "--json", cwd=anyone.project)
    assert result.code == 2, result.err
    assert (anyone.project / "d/d/d").is_dir()
    assert anyone("discard", cwd=anyone.project).ok


def test_a_path_at_the_limit_hides_nothing(cloche):
    """Paths of as many bytes as are entered (4000), of some less and of some more: what else was changed is shown and applied all the same."""
    cow(cloche, "import os\nopen('other', 'w').write('text\\n')\nfor i in range(19):\n os.mkdir(199 * 'd'); os.chdir(199 * 'd')\n"
                "for n in range(197, 205): open(n * 'f', 'w').write(f'deep {n}\\n')")
    for flags in ((), ("--stat",), ("--json", "--stat")):
        shown = cloche("diff", *flags, cwd=cloche.project)
        assert shown.ok and "other" in shown.out, (flags, shown.err)
    assert [n for n in range(197, 205) if f"+deep {n}" in cloche("diff", cwd=cloche.project).out] == [197, 198, 199, 200]
    assert cloche("apply", cwd=cloche.project).code == 2        # not all of it
    assert (cloche.project / "other").read_text() == "text\n" and len(os.listdir(cloche.project / "/".join(19 * [199 * "d"]))) == 4


@pytest.mark.heavy
def test_ten_thousand_entries(cloche):
    count = loops(10000)
    cow(cloche, f"import os\nfor i in range({count}): os.mknod(f'f{{i}}')", timeout=300)
    shown = cloche("diff", "--name-only", cwd=cloche.project, timeout=300)
    assert shown.ok and shown.out.count("\n") == count
    assert cloche("apply", cwd=cloche.project, timeout=300).ok
    assert len(os.listdir(cloche.project)) == count


def test_sparse_bombs(cloche):
    cow(cloche, """
import os
for i in range(20):
    with open(f'sparse{i}', 'wb') as f: f.truncate(4 << 40); f.seek(1 << 40); f.write(b'middle')
""")
    for verb in (["diff", "--stat"], ["diff"]):
        assert cloche(*verb, cwd=cloche.project).ok
    assert cloche("apply", cwd=cloche.project).ok
    st = (cloche.project / "sparse7").stat()
    assert st.st_size == 4 << 40 and st.st_blocks < 1000


def test_one_inode_with_many_names(cloche):
    cow(cloche, "import os\nopen('a', 'w').write('x' * 100000)\nfor i in range(5000): os.link('a', f'l{i}')")
    assert cloche("apply", cwd=cloche.project).ok
    assert (cloche.project / "l4999").stat().st_nlink == 5001


# the project changes under our hands -----------------------------------------------------------------------------------------
@pytest.mark.heavy
def test_a_racing_renamer_in_the_project(anyone, victim, world):
    """Another sandbox (or anybody) swaps a directory for a link to the victim while changes are applied."""
    project = anyone.project
    real = owned(anyone, world.root / "elsewhere") if (world.root / "elsewhere").exists() else world.root / "elsewhere"
    shutil.copytree(victim, real, dirs_exist_ok=True)
    owned(anyone, real)
    (project / "d").mkdir()
    for i in range(20):
        (project / f"d/f{i}").write_text("old\n")
    (project / "trap").symlink_to(victim)
    for path in [project / "d", *project.rglob("*")]:
        owned(anyone, path)
    state = cow(anyone, "import os\nfor i in range(20): open(f'd/f{i}', 'w').write('evil\\n')\n"
                "for n in ('secret', 'planted'): open('d/' + n, 'w').write('evil\\n')")
    stop = threading.Event()

    def race():
        while not stop.is_set():
            for a, b in (("d", "d-away"), ("trap", "d"), ("d", "trap"), ("d-away", "d")):
                try:
                    os.rename(project / a, project / b)
                except OSError:
                    pass
    racer = threading.Thread(target=race)
    racer.start()
    try:
        for _ in range(loops(30)):
            result = anyone("apply", "--force", "--keep", "--json", state)
            assert result.code in (0, 1, 2, 125), result
            assert sorted(os.listdir(victim)) == ["secret"], result
            assert (victim / "secret").read_text() == "top secret\n"
    finally:
        stop.set()
        racer.join()
    assert anyone("diff", "--name-only", state).code in (0, 125)
    assert not list(project.glob(".cloche*"))
    # whichever way the races went, old and new files are whole
    for path in project.glob("d*/f*"):
        assert path.read_text() in ("old\n", "evil\n")


def test_hard_links_out_of_the_project_are_not_written_through(anyone, victim):
    project = anyone.project
    os.link(victim / "secret", project / "inside")
    state = cow(anyone, "import os\nopen('inside', 'a').write('evil\\n'); os.chmod('inside', 0o777)")
    assert anyone("apply", "--json", state).ok
    assert (project / "inside").read_text() == "top secret\nevil\n"
    assert stat.S_IMODE((victim / "secret").stat().st_mode) != 0o777


@pytest.mark.root
def test_a_mount_in_the_project_is_not_entered(cloche, world):
    """What is mounted below the project on the host was not visible to the sandbox, and is not written."""
    project = cloche.project
    (project / "mnt").mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "none", project / "mnt"], check=True)
    try:
        (project / "mnt/secret").write_text("secret")
        cow(cloche, "import os\nassert os.listdir('mnt') == []\nopen('mnt/secret', 'w').write('evil'); open('ok', 'w')")
        shown = cloche("diff", cwd=project)
        assert shown.ok and "secret" not in shown.out.replace("mnt/secret", ""), shown
        result = cloche("apply", "--json", cwd=project)
        assert result.code == 2 and (project / "mnt/secret").read_text() == "secret", result
        assert (project / "ok").exists()
    finally:
        subprocess.run(["umount", project / "mnt"], check=True)


# the state directory -----------------------------------------------------------------------------------------------------------
def test_the_store_is_closed_to_others_and_to_the_sandbox(anyone):
    state = cow(anyone, "open('f', 'w')")
    path = anyone.state / "cloche/cow" / state
    for directory in (path, path.parent, path.parent.parent):
        assert stat.S_IMODE(directory.stat().st_mode) & 0o077 == 0, directory
    seen = anyone("run", "--", "ls", str(path))
    assert not seen.ok, "the sandbox sees the state directory"
    assert anyone("discard", state).ok


@pytest.mark.parametrize("trap", ["cloche", "cloche/cow"])
def test_a_planted_store_is_refused(cloche, victim_dir, trap):
    place = cloche.state / trap
    place.parent.mkdir(exist_ok=True, mode=0o700)
    place.symlink_to(victim_dir)
    result = cloche("run", "--workspace", f"{cloche.project}:cow", "--", "true")
    assert result.code == 125 and "workspace.state.unsafe" in result.err, result
    for verb in (["diff", "--list"], ["discard", "aaaaaaaa"]):
        assert cloche(*verb).code == 125
    assert not list(victim_dir.iterdir())


@pytest.fixture
def victim_dir(world):
    path = world.root / "planted"
    path.mkdir()
    return path
