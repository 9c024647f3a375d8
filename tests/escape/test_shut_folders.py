"""A folder that nobody may search: what one run closed (chmod), the next must not open again and find without rules.

The start cannot look into such a folder of its own user's, so what rules name in there is not seen. It is closed whole, or read-only.
"""
import os

import pytest

from helpers import requirement

pytestmark = [requirement("R11", "R26"), pytest.mark.ordinary]

# what the second run has, and what it must not do: read a secret, write to what is kept
CASES = {
    "a path": (["--deny-read", "{sub}/secret.key"], "read one"),
    "a path in the host's tree": (["--view", "host", "--allow-write", "{project}", "--deny-read", "{sub}/secret.key"], "read one"),
    "a pattern": (["--deny-read", "**/*.key"], "read"),
    "a pattern that begins there": (["--deny-read", "{sub}/*.key"], "read one"),
    "hard links": (["--deny-hard-links"], "read link"),
    "a kept path": (["--deny-write", "{sub}/keep"], "write"),
    "a kept pattern": (["--deny-write", "**/keep"], "write"),
    "protected names": ([], "name"),
}
READ = "cat sub/secret.key sub/deep/secret.key"
DO = {"read": READ, "read one": "cat sub/secret.key", "read link": "cat sub/link", "write": "echo EVIL >> sub/keep/file",
      "name": "echo EVIL > sub/.vscode/tasks.json; echo EVIL >> sub/deep/.claude/commands/x"}


def prepare(cloche):
    sub = cloche.project / "sub"
    for name in ("keep", ".vscode", "deep/.claude/commands"):
        (sub / name).mkdir(parents=True)
    for name in ("secret.key", "deep/secret.key", "link"):
        (sub / name).write_text("SECRET")
    os.link(sub / "link", cloche.home / "link")
    (sub / "keep" / "file").write_text("kept")
    if cloche.person is not None:
        for at, dirs, files in os.walk(sub):
            for path in [at] + [os.path.join(at, f) for f in files]:
                os.chown(path, cloche.person.pw_uid, cloche.person.pw_gid)
    return sub


def evil(project):
    return [path for path in project.rglob("*") if path.is_file() and "EVIL" in path.read_text()]


@pytest.mark.parametrize("mode", ["000", "400", "111"])
@pytest.mark.parametrize("name", CASES)
def test_what_was_closed_stays_closed(cloche, name, mode):
    sub = prepare(cloche)
    flags, what = CASES[name]
    project = cloche.project
    flags = [f.format(sub=sub, project=project) for f in flags]
    if "--view" not in flags:
        flags = ["--workspace", f"{project}:rw", "--workdir", "/workspace", *flags]
    first = cloche("run", "--workspace", f"{project}:rw", "--", "chmod", mode, "sub", cwd=project)
    assert first.ok, first
    done = cloche("run", *flags, "--", "sh", "-c", f"{DO[what]}; chmod 755 sub; {DO[what]}; mv sub bus; cat bus/secret.key; true",
                  cwd=project)
    os.chmod(sub if sub.exists() else project / "bus", 0o755)
    if what.startswith("read"):
        assert "SECRET" not in done.out, done
    assert not evil(project), done


# --- what hides more than the folder itself

def second(cloche, script, *flags):
    return cloche("run", "--workspace", f"{cloche.project}:rw", "--workdir", "/workspace", *flags, "--", "sh", "-c", script, cwd=cloche.project)


def own(cloche, *paths):
    for path in paths:
        if cloche.person is not None:
            os.chown(path, cloche.person.pw_uid, cloche.person.pw_gid)


@pytest.mark.parametrize("mode", ["400", "600"])
def test_a_folder_that_can_only_be_listed_hides_nothing_deeper(cloche, mode):
    deep = cloche.project / "sub" / "deep"
    (deep / ".vscode").mkdir(parents=True)
    (deep / "x.key").write_text("SECRET")
    own(cloche, cloche.project / "sub", deep, deep / ".vscode", deep / "x.key")
    assert cloche("run", "--workspace", f"{cloche.project}:rw", "--", "chmod", mode, "sub", cwd=cloche.project).ok
    done = second(cloche, "chmod 755 sub; cat sub/deep/x.key; echo EVIL > sub/deep/.vscode/tasks.json; true", "--deny-read", "**/*.key")
    os.chmod(cloche.project / "sub", 0o755)
    assert "SECRET" not in done.out and not evil(cloche.project), done


def test_a_root_that_cannot_be_listed_is_refused(cloche):
    (cloche.project / "sub" / ".vscode").mkdir(parents=True)
    own(cloche, cloche.project / "sub", cloche.project / "sub" / ".vscode")
    assert cloche("run", "--workspace", f"{cloche.project}:rw", "--", "chmod", "311", "/workspace").ok
    done = cloche("run", "--workspace", f"{cloche.project}:rw", "--", "sh", "-c",
                  "cd /workspace; chmod 755 .; echo EVIL > sub/.vscode/tasks.json; true")
    os.chmod(cloche.project, 0o755)
    assert not evil(cloche.project), done
    assert done.ok if os.geteuid() == 0 and cloche.person is None else "[wall.protect.shut]" in done.err, done


def test_a_repository_that_cannot_be_searched_is_refused(cloche, command):
    command(["git", "init", "-q", cloche.project])
    command(["git", "-C", cloche.project, "config", "core.hooksPath", ".husky"])
    (cloche.project / ".husky").mkdir()
    for at, dirs, files in os.walk(cloche.project):
        own(cloche, at, *(os.path.join(at, f) for f in files))
    cloche("run", "--workspace", f"{cloche.project}:rw", "--", "chmod", "000", ".git", cwd=cloche.project)
    done = second(cloche, "chmod 755 .git; echo EVIL > .husky/pre-commit; true")
    os.chmod(cloche.project / ".git", 0o755)
    assert not evil(cloche.project / ".husky"), done


def test_a_shut_folder_behind_a_link(cloche):
    store = cloche.project / "store"
    store.mkdir()
    (store / "secret").write_text("SECRET")
    (cloche.project / "data").symlink_to("store")
    own(cloche, store, store / "secret")
    assert cloche("run", "--workspace", f"{cloche.project}:rw", "--", "chmod", "000", "store", cwd=cloche.project).ok
    done = second(cloche, "chmod 755 store; cat store/secret data/secret; true", "--deny-read", f"{cloche.project}/data/secret")
    os.chmod(store, 0o755)
    assert "SECRET" not in done.out, done


# Who owns a folder can shut it, act behind it through descriptors that it holds, and open it again: nobody can look by
# name meanwhile, and must not take that for "not there".
BEHIND = """
import os, sys
shut, top = sys.argv[1], os.open('.', os.O_RDONLY)
made = []
for name in ('.claude', '.idea'):
    try: os.mkdir(name)
    except OSError: pass
held = {}
for name in ('.', '.vscode', '.git', '.git/hooks', '.claude', 'sub', 'sub/keep', 'sub/keep/deep'):
    try: held[name] = os.open(name, os.O_RDONLY | os.O_DIRECTORY)
    except OSError: pass
was = os.stat(shut).st_mode
def tried(what, *args, **kw):
    try: return what(*args, **kw)
    except OSError: return None
tried(os.chmod, shut, 0)
def write(name, at, flags):
    fd = tried(os.open, name, os.O_WRONLY | flags, 0o755, dir_fd=at)
    if fd is not None: os.write(fd, b'EVIL')
for at in held.values():
    for name in ('settings.json', 'config', 'applypatch-msg.sample', 'file', 'absent'): write(name, at, 0)
    for name in ('tasks.json', 'post-checkout', 'file2', 'absent', 'settings.json'): write(name, at, os.O_CREAT)
    for name in ('commands', 'hooks'):
        if tried(os.mkdir, name, dir_fd=at) is None: tried(os.mkdir, name, dir_fd=at)
    tried(os.rename, 'keep', 'moved', src_dir_fd=at, dst_dir_fd=at)
    tried(os.link, 'file', 'linked', src_dir_fd=at, dst_dir_fd=top)
    write('linked', top, 0)
tried(os.fchmod, held['sub'] if shut == 'sub' else top, was & 0o7777)
for name in ('.claude/commands/x', 'sub/moved/file', 'linked', 'moved/file'):
    write(name, top, os.O_CREAT)
print(oct(os.stat(shut).st_mode & 0o777))
"""


@pytest.mark.parametrize("flags", [[], ["--view", "host"], ["--mode", "light"]], ids=["standard", "host", "light"])
@pytest.mark.parametrize("shut", [".", "sub"])
def test_what_is_shut_while_it_runs_is_not_taken_for_absent(cloche, shut, flags):
    project = cloche.project
    for name in (".vscode", ".git/hooks", ".git/objects", ".git/refs", "sub/keep/deep"):
        (project / name).mkdir(parents=True)
    for name in (".vscode/settings.json", ".git/config", ".git/HEAD", ".git/hooks/applypatch-msg.sample", "sub/keep/file",
                 "sub/keep/deep/file", "free"):
        (project / name).write_text("", encoding="ascii")
    if cloche.person is not None:
        for at, _, files in os.walk(project):
            for path in [at] + [os.path.join(at, f) for f in files]:
                os.chown(path, cloche.person.pw_uid, cloche.person.pw_gid)
    tree = ["--allow-write", project] if flags else ["--workspace", f"{project}:rw", "--workdir", "/workspace"]
    done = cloche("run", *flags, *tree, "--deny-write", project / "sub" / "keep", "--", "/usr/bin/python3", "-c", BEHIND, shut,
                  cwd=project)
    assert done.ok and done.out == "0o755\n", done
    names = [str(path.relative_to(project)) for path in evil(project)]
    closed = [name for name in names if name.startswith((".vscode/", ".git/hooks/", ".claude/commands", "moved", "sub/keep", "sub/moved"))
              or name == ".git/config"]
    assert not closed and not (project / ".claude" / "commands").exists(), closed
    assert (project / "sub" / "keep" / "file").exists(), "moved away"


@pytest.mark.parametrize("flags", [[], ["--mode", "light"]], ids=["standard", "light"])
def test_a_folder_of_ones_own_can_be_shut_and_opened_again(cloche, flags):
    tree = ["--allow-write", cloche.project] if flags else ["--workspace", f"{cloche.project}:rw", "--workdir", "/workspace"]
    done = cloche("run", *flags, *tree, "--", "sh", "-c", "mkdir -p a/b; chmod 0 a; echo x > free; chmod 755 a; echo x > a/b/f; "
                  "chmod 0 .; chmod 755 \"$PWD\"; mv a c; cat c/b/f free", cwd=cloche.project)
    assert done.out == "x\nx\n", done


def test_what_is_closed_to_reading_closes_no_namesakes(cloche, command):
    """Protected names in a folder that deny-read closes are behind the sandbox's own mask, which nobody inside can open."""
    project = cloche.project
    command(["sh", "-c", "mkdir -p closed/r/.vscode other; echo 1 > closed/r/.vscode/t; echo 1 > closed/f"], cwd=project)
    result = cloche("run", "--workspace", f"{project}:rw", "--deny-read", f"{project}/closed", "--deny-write", f"{project}/closed/f", "--", "sh", "-c",
                    "mkdir other/.vscode && echo 1 > other/.vscode/t && echo 1 > other/f && mkdir x && mv x y && echo on; chmod 700 closed || "
                    "mkdir closed/n || mv closed z || echo kept")
    assert result.out == "on\nkept\n", result
