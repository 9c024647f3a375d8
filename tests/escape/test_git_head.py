"""The owner's programs replace files by rename while a sandbox runs: a mount on the old file goes with it. What is protected stays so, and the repository at the
top stays the one that the owner's git finds. Issue 13, A1; docs/name-guard.md.

The owner checks out a branch with a whole bare repository at its top (no program inside made it, so no guard judged it). Only `.git` keeps the owner's git from
taking that for the repository. So nothing inside may take `.git`, or what makes it one, away.
"""
import shlex
import threading

import pytest

from helpers import requirement
from helpers.git_bench import HEAD, REPO, STATUS, config

pytestmark = [requirement("R91", "R11"), pytest.mark.usefixtures("needs_git")]

WAIT = "wait_for() { i=0; while test $i -lt 1500 && ! test -e $1; do sleep 0.02; i=$((i + 1)); done; test -e $1; }; "
PY = "python3 -c 'import ctypes, os; {}'"
EXCHANGE = PY.format('ctypes.CDLL(None).renameat2(-100, b"{}", -100, b"{}", 2)')

# The branch `other` is a bare repository at its top.
BRANCH = (REPO + "EVIL=$HOME/evil; git checkout -q -b other; mkdir objects refs; touch objects/k refs/k; " + HEAD + config() +
          " | sed 's/bare = false/bare = false\\n\\tworktree = .\\//' > config; git add HEAD config objects refs; git commit -qm other; git checkout -q main; ")

# How `.git` would stop being a repository.
WAYS_IN = {
    "HEAD removed": "rm -f .git/HEAD",
    "HEAD removed by a descriptor": PY.format('os.unlink("HEAD", dir_fd=os.open(".git", os.O_RDONLY))'),
    "HEAD removed by other ways": "rm -f $PWD/.git/HEAD; cd .git; unlink HEAD; unlink ../.git/./HEAD; unlink /proc/self/cwd/HEAD; mkdir x; unlink x/../HEAD; "
                                  "ln -s .. ../l; unlink ../l/.git/HEAD; ln -s .git ../g; unlink ../g/HEAD",
    "HEAD moved away": "mv .git/HEAD .git/h; mv .git/HEAD h",
    "HEAD exchanged": "touch h; " + EXCHANGE.format(".git/HEAD", "h"),
    "HEAD replaced": "echo x > h; mv -f h .git/HEAD; ln -s h l; mv -fT l .git/HEAD; mkdir d; mv -fT d .git/HEAD",
    "HEAD written": "echo x > .git/HEAD; truncate -s 0 .git/HEAD",
    "HEAD by another name": "ln .git/HEAD h; echo x > h",
    "HEAD removed with all of it": "rm -rf .git",
    "objects moved away": "mv .git/objects .git/o; mv .git/objects o",
    "objects removed": "rm -rf .git/objects",
    "objects exchanged": "touch o; " + EXCHANGE.format(".git/objects", "o"),
    "refs moved away": "mv .git/refs .git/r; mv .git/refs r",
    "refs removed": "rm -rf .git/refs; rmdir .git/refs/heads .git/refs/tags .git/refs",
    "refs replaced": "rm -rf .git/refs; touch .git/refs; ln -s nowhere .git/refs",
    "a commondir": "echo nowhere > .git/commondir; echo nowhere > c; mv c .git/commondir; mkdir -p .git/worktrees/w; echo worktrees/w > c; cp .git/HEAD .git/worktrees/w; "
                   "echo .. > .git/worktrees/w/commondir; mv c .git/commondir; mkdir -p .git/modules/m; echo modules/m > c; mv c .git/commondir",
    ".git moved away": "mv .git g",
    ".git exchanged": "mkdir g; " + EXCHANGE.format(".git", "g"),
}
# root enters what it shut
SHUT = {
    "HEAD shut": "chmod 0 .git/HEAD",
    "HEAD shut by a descriptor": PY.format('os.fchmod(os.open(".git/HEAD", os.O_RDONLY), 0)'),
    "HEAD shut by its attributes": PY.format('import struct; os.setxattr(".git/HEAD", "system.posix_acl_access", '
                                             'struct.pack("<IHHIHHIHHI", 2, 1, 0, 2**32 - 1, 4, 0, 2**32 - 1, 32, 0, 2**32 - 1))'),
    "objects shut": "chmod 0 .git/objects",
    "refs shut": "chmod 600 .git/refs; cd .git; chmod 0 refs",
    "refs shut by a descriptor": PY.format('os.fchmod(os.open(".git/refs", os.O_RDONLY), 0)'),
    ".git shut": "chmod 600 .git; cd .git && chmod 0 .",
    ".git shut by a descriptor": PY.format('os.fchmod(os.open(".git", os.O_RDONLY), 0)'),
}
ALL = {**WAYS_IN, **SHUT}


@pytest.fixture
def needs_git(has):
    has("git")


class Owner(threading.Thread):
    """A script of the owner's beside the sandbox: when it says so (`ready`), and it waits for it (`done`)."""

    def __init__(self, this, script):
        super().__init__()
        self.this, self.script, self.done = this, script, None
        self.start()

    def run(self):
        self.done = self.this.host(WAIT + f"wait_for ready; {self.script}; touch done", check=False)


def meanwhile(this, owner, script, flags=()):
    """The sandbox does @script after the owner has done @owner, while it runs."""
    thread = Owner(this, owner)
    done = this.inside(WAIT + f"touch ready; wait_for done || exit 9; ({script}) 2>&1\ntrue", flags=flags)
    thread.join()
    assert done.code != 9, (done, thread.done)
    return done


def attack(this, how, switch="git checkout -q other"):
    this.host(BRANCH)
    done = meanwhile(this, switch, ALL[how])
    # what was shut for the sandbox's user is so for its owner
    this.host(STATUS, check=False)
    return done


def who_is_it(how):
    return "ordinary" if how in SHUT else "self"


REAL = [how for how in ALL if how not in ("HEAD removed by other ways", "HEAD by another name", "a commondir")]


@pytest.mark.parametrize("how", REAL)
def test_the_attacks_are_real(bench, how):
    this = bench("bare", who_is_it(how))
    done = attack(this, how)
    assert this.ran(), done


@pytest.mark.parametrize("how", ALL)
def test_the_repository_at_the_top_stays_one(bench, how):
    this = bench("standard", who_is_it(how))
    done = attack(this, how)
    assert not this.ran(), done


@pytest.mark.parametrize("way", ("light", "host view", "code", "shell"))
@pytest.mark.parametrize("how", ("HEAD removed", "objects moved away", "refs removed", "a commondir"))
def test_other_ways(bench, how, way):
    this = bench(way)
    done = attack(this, how)
    assert not this.ran(), done


# The owner may have set the repository up in other ways.
SETUPS = {
    "a link for HEAD": ("git -c core.preferSymlinkRefs=true checkout -q other; test -L .git/HEAD", "rm -f .git/HEAD; echo x > h; mv h .git/HEAD"),
    "a link for .git": ("git checkout -q other", "rm -f .git; rm -rf store/HEAD store/objects store/refs; mv store s"),
    "a file for .git": ("git checkout -q other; cp .git g; mv g .git", "rm -f .git; mv .git x; echo gitdir: nowhere > .git; chmod 0 .git"),
    "pulled": ("git merge -q other", "rm -f .git/HEAD; rm -rf .git/objects .git/refs"),
    "rebased": ("git rebase -q other", "rm -f .git/HEAD; rm -rf .git/objects .git/refs"),
    "twice": ("git checkout -q other; git checkout -q main; git checkout -q other", "rm -f .git/HEAD"),
}


@pytest.mark.parametrize("setup", SETUPS)
def test_other_setups(bench, setup):
    this = bench("standard")
    owner, how = SETUPS[setup]
    this.host(BRANCH + {"a link for .git": "mv .git store; ln -s store .git", "a file for .git": "git init -q --separate-git-dir ../store ."}.get(setup, ""))
    done = meanwhile(this, owner, how)
    this.host(STATUS, check=False)
    assert not this.ran() and this.host("d=$(git rev-parse --git-dir); test -e $d/HEAD && test -d $d/objects && test -d $d/refs && test $d != .", check=False).ok, done


NESTED = ("mkdir n; cd n; " + BRANCH + "cd ..; ")


@pytest.mark.parametrize("way", ("standard", "light"))
@pytest.mark.parametrize("how", ("HEAD removed", "HEAD moved away", "HEAD replaced", "HEAD written", "objects moved away", "objects removed", "refs removed", "a commondir",
                                 ".git moved away"))
def test_a_nested_repository_stays_one(bench, how, way):
    this = bench(way)
    this.host(REPO + NESTED)
    done = meanwhile(this, "git -C n checkout -q other", "cd n; " + ALL[how])
    this.host("cd n; " + STATUS, check=False)
    assert not this.ran(), done


@pytest.mark.parametrize("way", ("standard", "light"))
@pytest.mark.parametrize("how", ("HEAD removed", "objects moved away", ".git moved away", ".git exchanged"))
def test_a_repository_far_down_stays_one(bench, how, way):
    """Deeper than rules by name look (protect-depth)."""
    this = bench(way)
    this.host(REPO + "mkdir -p far/b/c/d; cd far/b/c/d; " + NESTED)
    done = meanwhile(this, "git -C far/b/c/d/n checkout -q other", "cd far/b/c/d/n; " + ALL[how])
    this.host("cd far/b/c/d/n; " + STATUS, check=False)
    assert not this.ran(), done


# Where no repository is when the run starts, and the owner makes one meanwhile.
LATE = {
    "init": ("", BRANCH + "git checkout -q other", "."),
    "clone": ("mkdir ../up; cd ../up; " + BRANCH, "git clone -q ../up n; cd n; git checkout -q other", "n"),
    "clone at the top": ("mkdir ../up; cd ../up; " + BRANCH, "mkdir n; git clone -q ../up x; mv x/.git .; rm -rf x n; git checkout -qf other", "."),
    "clone far down": ("mkdir -p ../up a/b/c/d; cd ../up; " + BRANCH, "git clone -q ../up a/b/c/d/n; cd a/b/c/d/n; git checkout -q other", "a/b/c/d/n"),
    "work tree": ("mkdir ../up; cd ../up; " + BRANCH, "git -C ../up worktree add -q $PWD/n other", "n"),
    "HEAD in a folder": ("mkdir .git", BRANCH + "git checkout -q other", "."),
}
LATE_WAYS = ("HEAD removed with all of it", "HEAD removed", "HEAD removed by a descriptor", "objects removed", "refs removed", ".git moved away")
LATE_REAL = [(late, how) for late in LATE for how in LATE_WAYS[:{"init": 6, "clone": 6, "work tree": 1}.get(late, 2)]]


def attack_late(this, late, how):
    before, owner, where = LATE[late]
    this.host(before)
    done = meanwhile(this, f"({owner})", f"cd {where}; " + ALL[how])
    this.host(f"cd {where}; " + STATUS, check=False)
    return done


@pytest.mark.parametrize("late,how", LATE_REAL)
def test_the_late_attacks_are_real(bench, late, how):
    this = bench("bare")
    done = attack_late(this, late, how)
    assert this.ran(), done


@pytest.mark.parametrize("way", ("standard", "host view"))
@pytest.mark.parametrize("late,how", LATE_REAL)
def test_a_repository_that_came_meanwhile_stays_one(bench, late, how, way):
    this = bench(way)
    done = attack_late(this, late, how)
    assert not this.ran(), done


def test_repositories_without_that_shape_can_be_removed(bench):
    this = bench("standard")
    this.host(REPO)
    done = this.inside("set -e; git init -q n; cd n; git commit -q --allow-empty -m n; rm .git/HEAD; mv .git/refs .git/r; rm -rf .git; cd ..; git clone -q . m; rm -rf m n; "
                       "git clone -q --bare . b; rm b/HEAD; rm -rf b; git checkout -q -b x; echo b > b; git add b; git commit -qm b; git gc -q; git pack-refs --all; "
                       "chmod -R go-w .git/refs .git/objects .git/logs; chmod u+rw .git/refs; git status")
    assert done.ok, done


# --- each protected name, after a program of the owner's has replaced it

SAVE = "cp -p {0} {0}.new; mv {0}.new {0}"
PINNED = {
    ".git/config": SAVE, ".bashrc": SAVE, ".vscode/settings.json": SAVE, ".mcp.json": SAVE, "n/.git/config": SAVE, "sub/.vscode/tasks.json": SAVE,
    ".git/hooks/pre-commit": SAVE,
    ".git/hooks": "cp -rp {0} {0}.new; mv {0} {0}.old; mv {0}.new {0}; rm -rf {0}.old",
    ".vscode": "cp -rp {0} {0}.new; rm -rf {0}; mv {0}.new {0}",
}
HARM = ("rm -rf {0}; mv {0} gone; echo evil > {0}; echo evil >> {0}; truncate -s 0 {0}; chmod 777 {0}; ln {0} other && echo evil > other; echo evil > e; mv -f e {0}; "
        "ln -sf /etc/passwd {0}; touch e; " + EXCHANGE.format("e", "{0}") + "; mkdir {0}; echo evil > {0}/evil; cp $P {0}; touch -d 2001-01-01 {0}; setfattr -n user.x -v y {0}; "
        "rm -rf $(dirname {0}); mv $(dirname {0}) away")
LOOK = "import os, sys\nfor path in sys.argv[1:]:\n    for top, dirs, files in [*os.walk(path)] or [('', [], [path])]:\n" \
       "        for f in sorted(files): s = os.stat(p := os.path.join(top, f)); print(p, oct(s.st_mode), s.st_mtime_ns, open(p).read())\n"


@pytest.mark.parametrize("way", ("standard", "host view"))
@pytest.mark.parametrize("name", PINNED)
def test_what_was_replaced_stays_protected(bench, name, way):
    this = bench(way)
    look = f"python3 -c {shlex.quote(LOOK)} {name}"
    this.host(REPO + "git init -q n; mkdir -p .vscode sub/.vscode; for f in .bashrc .vscode/settings.json .mcp.json sub/.vscode/tasks.json .git/hooks/pre-commit; "
              "do echo mine > $f; done")
    before = this.host(look).out
    done = meanwhile(this, PINNED[name].format(name), HARM.format(name))
    after = this.host(look, check=False).out
    assert "mine" in before or "core" in before
    assert after == before, done


@pytest.mark.parametrize("way", ("bare", "standard", "host view"))
def test_a_protected_file_that_came_meanwhile(bench, way):
    """Where there was none, and no mount is."""
    this = bench(way)
    this.host("echo a > a")
    done = meanwhile(this, "mkdir .vscode; echo mine > .vscode/settings.json; echo mine > .bashrc", "rm -f .vscode/settings.json .bashrc; rm -rf .vscode; rm a")
    kept = [(this.project / name).exists() for name in (".vscode/settings.json", ".bashrc", "a")]
    assert kept == ([False] * 3 if way == "bare" else [True, True, False]), done


def test_an_editors_file_where_no_repository_is(bench):
    this = bench("standard")
    this.host("mkdir .vscode; echo mine > .vscode/settings.json")
    done = meanwhile(this, SAVE.format(".vscode/settings.json"), "rm .vscode/settings.json; mv .vscode x; rm -rf .vscode")
    assert (this.project / ".vscode/settings.json").read_text() == "mine\n", done
