"""The owner's git writes in the project while a sandbox runs there: what it renames into place (`index.lock`, `config.lock` of a submodule, a todo list's
lock ...) must be what it wrote, or at least harmless. Issue 13, A1; docs/name-guard.md.

The owner's side is a program that does what git does (make the lock, write, wait, rename), and git itself where it waits for an editor.
"""
import shlex
import threading

import pytest

from helpers import requirement
from helpers.git_bench import INDEX_PYTHON, REPO, STATUS

pytestmark = [requirement("R91", "R11"), pytest.mark.usefixtures("needs_git")]

# What git does with a file of its own. It waits before it closes, as a git that is slow does.
HOLDER = """
import os, sys, time
path, lock = sys.argv[1:3]
text = open(path, 'rb').read() if os.path.exists(path) else b''
fd = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o666)
os.write(fd, text)
open('held', 'w').close()
end = time.time() + 30
while not os.path.exists('tampered') and time.time() < end: time.sleep(0.01)
os.close(fd)
try: os.rename(lock, path)
except OSError as e: print(e)
open('renamed', 'w').close()
"""
WAIT = "wait_for() { i=0; while test $i -lt 1500 && ! test -e $1; do sleep 0.02; i=$((i + 1)); done; test -e $1; }; "

# What the sandbox does to the lock $L; what it would have there is in the file e.
WAYS_IN = {
    "written": 'cat e > "$L"',
    "written over": 'dd if=e of="$L" conv=notrunc status=none',
    "cut off and added to": 'truncate -s 0 "$L"; cat e >> "$L"',
    "by a descriptor": 'exec 3< "$L"; cat e > /proc/self/fd/3',
    "by another name": 'ln "$L" o; cat e > o',
    "removed and made": 'rm -f "$L"; cp e "$L"',
    "removed and written": 'rm -f "$L"; cat e > "$L"',
    "replaced": 'mv -f e "$L"',
    "replaced by a link": 'rm -f "$L"; ln e "$L"',
    "replaced by a symbolic link": 'ln -sfn "$PWD/e" "$L"',
    "moved away and back": 'mv "$L" o; cat e > o; mv o "$L"',
    "exchanged": 'python3 -IS -c "import ctypes, os; ctypes.CDLL(None).renameat2(-100, b\'e\', -100, os.environ[\'L\'].encode(), 2)"',
    "kept open": 'rm -f "$L"; (python3 -IS -c "import os, time; t = open(\'e\', \'rb\').read(); fd = os.open(os.environ[\'L\'], os.O_RDWR | os.O_CREAT | os.O_EXCL)\n'
                 'open(\'tampered\', \'w\')\nwhile not os.path.exists(\'renamed\'): time.sleep(0.01)\nos.ftruncate(fd, 0); os.pwrite(fd, t, 0)")',
}
EVIL_CONFIG = "printf '[core]\\n\\trepositoryformatversion = 0\\n\\tbare = false\\n\\tfsmonitor = %s\\n' \"$EVIL\" > e; "
EVIL_INDEX = f"""cat > i.py <<'END'
import os
{INDEX_PYTHON}
WHAT = open(os.environ['P'], 'rb').read()
open('e', 'wb').write(index('.git/hooks/post-index-change', 'a'))
END
python3 -IS i.py; """
NESTED = REPO + "git init -q -b main n; cd n; echo b > b; git add b; git commit -qm one; cd ..; "
MODULE = "git init -q -b main ../m; git -C ../m commit -q --allow-empty -m m; " + REPO + "git -c protocol.file.allow=always submodule --quiet add ../m m; git commit -qm m; "
REBASE = REPO + "echo b > a; git commit -qam two; echo c > a; git commit -qam three; GIT_SEQUENCE_EDITOR='sed -i 1s/pick/edit/' git rebase -q -i HEAD~2; "
EVIL_TODO = "printf 'exec %s\\n#%999s\\n' \"$EVIL\" > e; "

# The file that the owner's git renames into place, what the sandbox would have there, what is there before, and what the owner does afterwards.
FILES = {
    "index": (".git/index", EVIL_INDEX, REPO, "git checkout .; git add a; git status"),
    "a nested configuration": ("n/.git/config", EVIL_CONFIG, NESTED, "cd n; " + STATUS),
    "a submodule's configuration": (".git/modules/m/config", EVIL_CONFIG, MODULE, "cd m; " + STATUS),
    "a worktree's configuration": (".git/config.worktree", EVIL_CONFIG, REPO + "git config extensions.worktreeConfig true; ", STATUS),
    "a todo list": (".git/rebase-merge/git-rebase-todo", EVIL_TODO, REBASE, "git rebase --continue"),
}
# of these not every way is tried
MORE = {
    "a submodule's index": (".git/modules/m/index", EVIL_INDEX.replace("'.git/", "'x/.git/"), MODULE, "cd m; git checkout .; git status"),
    "a nested index": ("n/.git/index", EVIL_INDEX, NESTED, "cd n; git checkout .; git add b; git status"),
    "the configuration": (".git/config", EVIL_CONFIG, REPO, STATUS),
}
SHARED_LOCK = (".git/sharedindex.1", ".git/sharedindex_AbCdEf")


@pytest.fixture
def needs_git(has):
    has("git")


class Owner(threading.Thread):
    """A script of the owner's beside the sandbox."""

    def __init__(self, this, script):
        super().__init__()
        self.this, self.script, self.done = this, script, None
        self.start()

    def run(self):
        self.done = self.this.host(self.script, check=False)


def hold(this, path, lock):
    return Owner(this, f"python3 -IS -c {shlex.quote(HOLDER)} {path} {lock}")


def tamper(this, path, evil, how, lock=None):
    """The sandbox changes the lock while the owner's program has it."""
    lock = lock or path + ".lock"
    owner = hold(this, path, lock)
    done = this.inside(WAIT + f"L={lock}; export L; {evil} cp e e.kept; wait_for held || exit 9; {how}\ntouch tampered; wait_for renamed; sleep 0.1")
    owner.join()
    assert done.code != 9, (done, owner.done)
    return done


def came(this, path):
    """What the sandbox wanted is at @path."""
    there = this.project / path
    return there.is_symlink() or (there.exists() and there.read_bytes() == (this.project / "e.kept").read_bytes())


def attack(this, file, how):
    path, evil, before, after = file
    this.host(before)
    done = tamper(this, path, evil, how)
    this.host(after, check=False)
    return done


@pytest.mark.parametrize("how", WAYS_IN)
@pytest.mark.parametrize("file", ("index", "a nested configuration", "a todo list"))
def test_the_attacks_are_real(bench, file, how):
    this = bench("bare")
    done = attack(this, FILES[file], WAYS_IN[how])
    assert this.ran() or came(this, FILES[file][0]), done


@pytest.mark.parametrize("how", WAYS_IN)
@pytest.mark.parametrize("file,way", [(file, "standard") for file in FILES] + [("index", "light"), ("a nested configuration", "light")])
def test_the_owners_lock_is_the_owners(bench, file, how, way):
    this = bench(way)
    done = attack(this, FILES[file], WAYS_IN[how])
    assert not this.ran() and not came(this, FILES[file][0]), done


@pytest.mark.parametrize("way", ("standard", "light", "host view", "ordinary"))
@pytest.mark.parametrize("how", ("written", "removed and made", "replaced", "replaced by a symbolic link"))
@pytest.mark.parametrize("file", MORE)
def test_other_locks(bench, file, how, way):
    this = bench("standard", "ordinary") if way == "ordinary" else bench(way)
    done = attack(this, MORE[file], WAYS_IN[how])
    assert not this.ran() and not came(this, MORE[file][0]), done


def test_a_refusal_is_said(bench):
    this = bench("standard")
    this.host(REPO + "echo mine > .git/index.lock")
    done = this.inside("echo evil > .git/index.lock")
    assert "Permission denied" in done.err and this.host("cat .git/index.lock").out == "mine\n", done


@pytest.mark.parametrize("name,write,why", (("index.lock", "os.O_EXCL", "too many locks at once"), ("commondir", "0", "too many files written in place at once")))
def test_more_at_once_than_the_guard_holds(bench, name, write, why):
    this = bench("standard")
    this.host(REPO)
    done = this.inside(f"""python3 -c "
import os
for i in range(40):
    os.makedirs(f'r{{i}}/objects'); os.mkdir(f'r{{i}}/refs')
kept, refused = [], 0
for i in range(40):
    try: kept.append(os.open(f'r{{i}}/{name}', os.O_WRONLY | os.O_CREAT | {write}))
    except PermissionError: refused += 1
print(refused, len(kept))
for fd in kept: os.close(fd)
" """, flags=["--json"])
    refused, kept = done.json["stdout"].split()
    assert int(refused) > 0 and int(kept) >= 16, done
    assert sum(d["count"] for d in done.json["denied"] if d["rule"] == "git state: " + why) == int(refused), done.json["denied"]


@pytest.mark.parametrize("how", WAYS_IN)
def test_a_shared_index(bench, how):
    """Its lock has a name of its own."""
    this = bench("standard")
    this.host(REPO + "cp .git/index .git/sharedindex.1")
    done = tamper(this, SHARED_LOCK[0], EVIL_INDEX, WAYS_IN[how], SHARED_LOCK[1])
    assert not came(this, SHARED_LOCK[0]), done


@pytest.mark.parametrize("way", ("standard", "light"))
@pytest.mark.parametrize("how", ("written", "removed and made", "replaced"))
def test_a_commit_that_waits_for_its_editor(bench, how, way):
    """`git commit -a` reads its lock again when the editor has ended, and makes it the index."""
    this = bench(way)
    this.host(REPO + "echo b > a")
    owner = Owner(this, WAIT + "edit() { touch held; wait_for tampered; echo two > \"$1\"; }; " + "cat > ../edit <<'END'\n#!/bin/sh\n" + WAIT +
                  "touch held; wait_for tampered; echo two > \"$1\"\nEND\nchmod 755 ../edit; GIT_EDITOR=$PWD/../edit git commit -a; touch renamed")
    done = this.inside(WAIT + "L=.git/index.lock; export L; " + EVIL_INDEX + f"wait_for held || exit 9; {WAYS_IN[how]}\ntouch tampered; wait_for renamed")
    owner.join()
    assert done.code != 9, (done, owner.done)
    this.host("git checkout .; git add a; git status", check=False)
    assert not this.ran(), (done, owner.done)


@pytest.mark.parametrize("what", ("packed-refs", "shallow", "index", "HEAD", "sharedindex_a"))
def test_no_link_is_renamed_into_place(bench, what):
    """git writes through a link that it finds there later."""
    this = bench("standard")
    this.host(REPO)
    done = this.inside(f"ln -s /etc/passwd .git/{what}.lock; ln -s /etc/passwd l; mv l .git/{what}.lock; ln -s /etc/passwd .git/packed-refs.new")
    assert not [p for p in (this.project / ".git").iterdir() if p.is_symlink()], done


# --- locks inside go on to work

@pytest.mark.parametrize("way", ("standard", "light"))
def test_locks_exclude(bench, way):
    """Inside, between the owner and the inside, and between two sandboxes."""
    this = bench(way)
    this.host(REPO)
    owner = hold(this, ".git/index", ".git/index.lock")
    done = this.inside(WAIT + "wait_for held; echo b > b; git add b && echo added; touch tampered; wait_for renamed; git add b; git ls-files; "
                       "python3 -IS -c \"import os; fd = os.open('.git/index.lock', os.O_RDWR | os.O_CREAT | os.O_EXCL); os.system('git add a')\"; ls .git/*.lock")
    assert "added" not in done.out and "a\nb\n.git/index.lock\n" in done.out, done
    assert "File exists" in done.err, done
    owner.join()
    assert not this.host("git add a", check=False).ok
    this.host("rm -f .git/index.lock; git add a; git fsck")
    assert this.host("git ls-files").out == "a\nb\n"


@pytest.mark.parametrize("way", ("standard", "light"))
def test_a_lock_is_read_by_its_name(bench, way):
    """git reads its own lock again, and so do hooks, as soon as it is closed."""
    this = bench(way)
    this.host(REPO + "printf '#!/bin/sh\\ngit diff --cached --name-only >> seen\\ntest ! -e b || git add b\\n' > .git/hooks/pre-commit; chmod 755 .git/hooks/pre-commit")
    done = this.inside("""set -e
for i in $(seq 20); do echo $i > a; git commit -qam $i; done
echo x > a; echo b > b; git commit -qam both; test "$(git show --name-only --format=)" = "$(printf 'a\\nb')"
echo y > a; echo c > c; git add c; git commit -qm part a; test "$(git status --short c)" = "A  c"
python3 -IS - <<'END'
import os
here = '.git/index.lock'
for i in range(200):
    fd = os.open(here, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o640)
    text = open('.git/index', 'rb').read()
    os.write(fd, text)
    os.close(fd)
    assert open(here, 'rb').read() == text, i
    os.chmod(here, 0o644)
    if i % 2:
        os.unlink(here)
    else:
        os.rename(here, '.git/index')
        assert os.stat('.git/index').st_mode & 0o777 == 0o644
    assert not os.path.exists(here)
END
git status --short; echo all""")
    assert done.ok and done.out.endswith("all\n"), done
    assert this.host("git fsck --no-dangling; git log --oneline | wc -l").out.strip() == "23"
    assert (this.project / "seen").read_text().count("a\n") >= 21
    assert not list((this.project / ".git").glob("*.lock"))


def test_two_sandboxes_add_at_once(bench):
    this = bench("standard")
    this.host(REPO)
    script = "for i in $(seq 40); do echo $i > {0}$i; until git add {0}$i 2> /dev/null; do sleep 0.01; done; done"
    results = []
    both = [threading.Thread(target=lambda n=n: results.append(this.inside(script.format(n)))) for n in "xy"]
    for t in both:
        t.start()
    for t in both:
        t.join()
    assert all(r.ok for r in results), results
    assert this.host("git ls-files | wc -l").out.strip() == "81"


@pytest.mark.parametrize("way", ("standard", "light"))
def test_a_commit_that_asks_for_each_part(bench, way):
    """`git commit -p` has others write an index with the name of its lock, and then opens that by its name."""
    this = bench(way)
    this.host(REPO)
    done = this.inside("set -e; echo b > a; printf 'y\\n' | git commit -q -p -m x; test -z \"$(git status --short -uno)\"; git show --format= --name-only; ls .git/*.lock || echo none")
    assert done.ok and done.out.endswith("a\nnone\n"), done
    assert this.host("git fsck --no-dangling; git log --oneline | wc -l").out.strip() == "2"


@pytest.mark.parametrize("way", ("standard", "light"))
def test_a_lock_that_gets_its_own_name(bench, way):
    """POSIX: nothing happens."""
    this = bench(way)
    this.host(REPO)
    done = this.inside("python3 -IS -c \"import os; l = '.git/index.lock'; t = open('.git/index', 'rb').read(); f = open(l, 'wb'); f.write(t); f.close(); "
                       "os.rename(l, l); assert open(l, 'rb').read() == t; os.rename(l, '.git/index')\" && git status --short -uno && echo done")
    assert done.ok and done.out == "done\n", done


def test_a_lock_that_the_owner_took(bench):
    """What is written to a lock after the owner has renamed that into place goes nowhere."""
    this = bench("standard")
    this.host(REPO + "git init -q n")
    owner = Owner(this, WAIT + "wait_for held; mv -f n/.git/config.lock n/.git/config; touch taken")
    done = this.inside(r"""cat > p.py <<'END'
import os, time
fd = os.open('n/.git/config.lock', os.O_RDWR | os.O_CREAT | os.O_EXCL)
os.write(fd, b'[core]\n\tbare = true\n')
open('held', 'w').close()
while not os.path.exists('taken'): time.sleep(0.01)
os.close(fd)
assert open('n/.git/config').read() == ''
for i in range(20):
    open('x', 'w').close()
    time.sleep(0.02)
END
python3 -IS p.py""")
    owner.join()
    assert done.ok and (this.project / "n/.git/config").read_bytes() == b"", (done, owner.done)


# --- a submodule's repository that the owner's git is making

HALF = REPO + "mkdir -p .git/modules/{0}/hooks .git/modules/{0}/refs; printf '[core]\\n\\tbare = false\\n' > .git/modules/{0}/config.lock; "
PLANTS = {
    "hook": "cp .p $m/hooks/post-checkout; mv .p $m/hooks/post-checkout; ln .p $m/hooks/post-checkout; ln -s ../../../../.p $m/hooks/post-checkout",
    "hooks": "mkdir h; cp .p h/post-checkout; rmdir $m/hooks; mv h $m/hooks; ln -s ../../../h $m/hooks",
    "config": "cp e $m/config; mv e $m/config; ln -s ../../../e $m/config",
    "config.lock": "rm -f $m/config.lock; cp e $m/config.lock; mv e $m/config.lock; ln -s ../../../e $m/config.lock",
    "whole": "mv $m o; mkdir -p o/hooks; cp e o/config; cp .p o/hooks/post-checkout; mv o $m",
    "before": "rm -rf .git/modules; mkdir -p $m/hooks; cp e $m/config; cp .p $m/hooks/post-checkout",
}


# A folder of the sandbox's around it that is, or is not, a repository to git: its HEAD says so, and may say another thing the next moment. Where it is none
# git makes a submodule of that name (`git submodule add --name a/refs/b`), in what would be its refs.
AROUND = {
    "a/b": "",
    "a/refs/b": "mkdir -p .git/modules/a/objects .git/modules/a/refs; echo none > .git/modules/a/HEAD; ",
    "a/refs/heads/b": "mkdir -p .git/modules/a/objects .git/modules/a/refs; echo ref: refs/heads/main > .git/modules/a/HEAD; ",
    "a/logs/b": "mkdir -p .git/modules/a/objects .git/modules/a/refs; touch .git/modules/a/HEAD; ",
    "a/objects/b": "mkdir -p .git/modules/a/objects .git/modules/a/refs; ln -s refs/heads/x .git/modules/a/HEAD; ",
}


# The same in the owner's part of a worktree, and in a repository that is not called .git.
ELSEWHERE = {
    "../worktrees/w/modules/b": "git worktree add -q w; ",
    "../../store.git/modules/b": "git init -q --bare store.git; ",
    "../../store.git/worktrees/w/modules/a/refs/b": "git clone -q --bare . store.git; git -C store.git worktree add -q ../w; ",
}


@pytest.mark.parametrize("name", ("lib", *AROUND, *ELSEWHERE))
@pytest.mark.parametrize("what", PLANTS)
def test_a_submodule_in_the_making(bench, what, name):
    this = bench("standard")
    this.host(HALF.format(name).replace("mkdir", ELSEWHERE.get(name, "") + "mkdir -p .git/modules; mkdir", 1))
    done = this.inside(AROUND.get(name, "") + f"m=.git/modules/{name}; {EVIL_CONFIG}" + PLANTS[what])
    there = this.project / ".git/modules" / name
    for path in ("config", "config.lock"):
        assert not (there / path).is_symlink() and (not (there / path).exists() or "fsmonitor" not in (there / path).read_text()), done
    assert not (there / "hooks").is_symlink() and not list((there / "hooks").glob("post*")), done


@pytest.mark.parametrize("lies", (".git", ".git/modules/lib"))
def test_a_worktree_in_the_making(bench, lies):
    this = bench("standard")
    this.host(REPO + f"mkdir -p .git/modules/lib/objects .git/modules/lib/refs {lies}/worktrees/w; touch {lies}/worktrees/w/HEAD")
    done = this.inside(f"m={lies}/worktrees/w; {EVIL_CONFIG} mv $m/HEAD h; cp e $m/config.worktree; ln -s ../../../e $m/index; mv e $m/config.worktree; mv h $m/HEAD; ls $m")
    assert done.out == "HEAD\n" and not (this.project / lies / "worktrees/w/config.worktree").exists(), done


def test_a_repository_of_a_submodule_is_moved_there(bench):
    """With its branches, and those of its remote."""
    this = bench("standard")
    this.host(MODULE)
    done = this.inside("git clone -q m n; git -C n branch hook/s; mv n/.git .git/modules/n; git --git-dir=.git/modules/n branch next; "
                       "git --git-dir=.git/modules/n for-each-ref --format='%(refname)'")
    assert done.out.split() == ["refs/heads/hook/s", "refs/heads/main", "refs/heads/next", "refs/remotes/origin/HEAD", "refs/remotes/origin/main"], done


def test_a_repository_of_a_submodule_is_copied_in_any_order(bench):
    """Its refs may come before what makes it whole; what else `remotes` have is refused until then."""
    this = bench("standard")
    this.host(REPO)
    done = this.inside("m=.git/modules/lib; mkdir -p $m/refs/remotes/origin $m/logs/refs/remotes/origin; echo x > $m/refs/remotes/origin/main; mkdir -p $m/remotes/origin; ls -d $m/*")
    assert done.out.split() == [".git/modules/lib/logs", ".git/modules/lib/refs", ".git/modules/lib/remotes"], done
    assert (this.project / ".git/modules/lib/refs/remotes/origin/main").read_text() == "x\n"
    assert (this.project / ".git/modules/lib/logs/refs/remotes/origin").is_dir()
    assert not (this.project / ".git/modules/lib/remotes/origin").exists()


def test_branches_of_a_submodule(bench):
    """Work with them goes on inside. What lies in a folder of .git/modules is judged whatever git takes the folder for: so a name with a part that git has for
    its own state is refused (docs/name-guard.md), and the repository stays whole."""
    this = bench("standard")
    this.host("git init -q -b main ../m; cd ../m; git commit -q --allow-empty -m m; for b in config index hooks x/hooks/y remotes/z; do git branch $b; done")
    this.host(REPO + "git clone -q --bare ../m b.git")
    done = this.inside("set -e; mkdir deep; cd deep; git init -q .; git -c protocol.file.allow=always submodule --quiet add --name a/b \"$PWD/../b.git\" s; cd s; "
                       "for b in opts sequencer/x feature/one; do git checkout -q -b $b; git commit -q --allow-empty -m $b; done; "
                       "git fetch -q; git gc -q; git checkout -q main; git branch -D -q opts; git branch opts main; git worktree add -q ../wt; cd ../wt; git commit -q --allow-empty -m w; "
                       "for b in branches/x hooks/y config; do if git branch $b 2> /dev/null; then echo made $b; fi; done; git fsck; "
                       "git status --short; echo all")
    assert done.ok and done.out.endswith("all\n") and "made" not in done.out, done
