"""What the owner's git is led to in the project: by the configuration of any of the repositories there, by the owner's own, and by
links in place of hooks, configurations and start-up files (issue 13, A1). Inside it is read-only, or not made; apply withholds it.

The same bench as in test_git_state.py: each attack is tried bare, then in the sandbox.
"""
import subprocess

import pytest

from helpers import requirement
from helpers.git_bench import REPO, STATUS, config

pytestmark = [requirement("R91", "R11"), pytest.mark.usefixtures("needs_git")]

WAYS = ("standard", "light")
COMMIT = "git commit --allow-empty -m x"
NEST = "git init -q -b main n; cd n; echo b > b; git add b; git commit -qm n; "
LIB = "git init -q -b main ../lib; (cd ../lib; echo l > l; git add l; git commit -qm l); " + REPO + (
    "git -c protocol.file.allow=always submodule --quiet add ../lib lib; git commit -qm sub; ")
TOOL = "mkdir -p {0}; printf '#!/bin/sh\\n' > {0}/w; chmod 755 {0}/w; "
CONFIG = config() + " > {0}; " + config() + " > x; mv x {0}"
HOOK = "cat $P > {0}; cp $P x; mv x {0}; chmod 755 {0}"

# name: (made on the host before, done inside, what the owner runs next, where)
ATTACKS = {
    "hooksPath of a nested repository": (
        REPO + NEST + "git config core.hooksPath tools/hooks", "mkdir -p n/tools/hooks; " + HOOK.format("n/tools/hooks/pre-commit"), COMMIT, "n"),
    "fsmonitor of a nested repository": (REPO + NEST + TOOL.format("tools") + "git config core.fsmonitor tools/w", HOOK.format("n/tools/w"), STATUS, "n"),
    "include of a nested repository": (REPO + NEST + "git config include.path ../local.inc", CONFIG.format("n/local.inc"), STATUS, "n"),
    "include of a submodule": (LIB + "git -C lib config include.path ../../../local.inc", CONFIG.format("local.inc"), STATUS, ""),
    "hooksPath in a worktree": (
        REPO + "git worktree add -q wt; git config core.hooksPath .h", "mkdir -p wt/.h; " + HOOK.format("wt/.h/pre-commit"), COMMIT, "wt"),
    "the owner's hooksPath in a nested repository": (
        REPO + NEST + "git config --global core.hooksPath .h", "mkdir n/.h; " + HOOK.format("n/.h/pre-commit"), COMMIT, "n"),
    "a program behind env": (REPO + TOOL.format("tools") + "git config core.fsmonitor 'env X=1 tools/w'", HOOK.format("tools/w"), STATUS, ""),
    "a program for sh -c": (REPO + TOOL.format("tools") + "git config core.fsmonitor 'sh -c tools/w'", HOOK.format("tools/w"), STATUS, ""),
    "a program in an alias": (REPO + TOOL.format("tools") + "git config alias.st '!f() { git status; tools/w; }; f'", HOOK.format("tools/w"), "git st", ""),
    "a hook that is a link": (REPO + TOOL.format("tools") + "ln -s ../../tools/w .git/hooks/pre-commit", HOOK.format("tools/w"), COMMIT, ""),
    "a hook behind two links": (
        REPO + TOOL.format("s") + "ln -s s/w l; ln -s ../../l .git/hooks/pre-commit",
        HOOK.format("s/w") + "; mv s t; mkdir s; cp $P s/w; rm l; cp $P l; ln -s s/v l; cp $P s/v; chmod 755 l s/*", COMMIT, ""),
    "hooks that are a link, and links": (
        REPO + TOOL.format("tools") + "mkdir hk; ln -s ../tools/w hk/pre-commit; rm -rf .git/hooks; ln -s ../hk .git/hooks",
        HOOK.format("tools/w") + "; rm hk/pre-commit; " + HOOK.format("hk/pre-commit"), COMMIT, ""),
    "a hook of a nested repository that is a link": (
        REPO + NEST + TOOL.format("tools") + "ln -s ../../tools/w .git/hooks/pre-commit", HOOK.format("n/tools/w"), COMMIT, "n"),
    "hooks of a nested repository that are a link": (
        REPO + NEST + TOOL.format("tools") + "mv tools/w tools/pre-commit; rm -rf .git/hooks; ln -s ../tools .git/hooks",
        HOOK.format("n/tools/pre-commit"), COMMIT, "n"),
    "a hook of a submodule that is a link": (
        LIB + TOOL.format("tools") + "ln -s ../../../../tools/w .git/modules/lib/hooks/pre-commit", HOOK.format("tools/w"), COMMIT, "lib"),
    "a configuration of a nested repository that is a link": (
        REPO + NEST + "mv .git/config cfg; ln -s ../cfg .git/config", CONFIG.format("n/cfg"), STATUS, "n"),
    "the owner's configuration, a link into the project": (
        REPO + "mkdir dot; touch dot/gitconfig; ln -s $PWD/dot/gitconfig $HOME/.gitconfig", CONFIG.format("dot/gitconfig"), STATUS, ""),
    "the owner's configuration, in a folder that is one": (
        REPO + "mkdir -p dot/git $HOME/.config; touch dot/git/config; ln -s $PWD/dot/git $HOME/.config/git", CONFIG.format("dot/git/config"),
        STATUS, ""),
    "a start-up file of the owner's, a link into the project": (
        REPO + "mkdir dot; touch dot/bashrc; ln -s $PWD/dot/bashrc $HOME/.bashrc", "cat $P >> dot/bashrc; cp $P x; mv x dot/bashrc",
        "bash --rcfile $HOME/.bashrc -ic true", ""),
}
SUBFOLDER = (REPO + TOOL.format("sub/tools") + "ln -s ../../sub/tools/w .git/hooks/pre-commit", HOOK.format("tools/w"), COMMIT, "")


@pytest.fixture
def needs_git(has):
    has("git")


def attack(this, planted, sub="", flags=()):
    before, inside, after, where = planted
    this.host(before)
    done = this.inside(inside, sub, flags)
    this.host(after, cwd=this.project / where, check=False)
    return done


@pytest.mark.parametrize("name", ATTACKS)
def test_the_attacks_are_real(bench, name):
    this = bench("bare")
    done = attack(this, ATTACKS[name])
    assert this.ran(), f"no attack at all: {done!r}"


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", ATTACKS)
def test_nothing_runs_on_the_host(bench, name, way):
    this = bench(way)
    done = attack(this, ATTACKS[name])
    assert not this.ran() and done.code != 125, done


@pytest.mark.parametrize("way", ["bare", *WAYS])
def test_a_hook_above_the_workspace(bench, way):
    this = bench(way)
    done = attack(this, SUBFOLDER, "sub")
    assert this.ran() == (way == "bare") and done.code != 125, done


def test_a_hook_that_leads_into_another_folder(bench):
    """Of two folders that may be written, one's repository leads to the other."""
    this = bench("standard")
    other = this.project / "tools"
    this.host(REPO + TOOL.format("tools") + "mkdir r; cd r; git init -q; ln -s ../../../tools/w .git/hooks/pre-commit")
    done = this.cloche("run", "--workspace", f"{this.project}/r:rw", "--bind", f"{other}:/tools:rw", "--", "sh", "-c",
                       f"printf '#!/bin/sh\\ntouch {this.mark}\\n' > /tools/w; echo on > /tools/other")
    this.host(COMMIT, cwd=this.project / "r", check=False)
    assert not this.ran() and (other / "other").read_text() == "on\n", done


def test_what_is_named_for_all_repositories_is_said(bench):
    """One that is made inside has it too: it cannot be kept."""
    this = bench("standard")
    this.host(REPO + "git config --global core.hooksPath .h")
    done = this.inside("true")
    assert "warning: git's configuration names .h in every repository" in done.err, done
    this.host("git config --global core.hooksPath $HOME/.h; git config --global alias.x '!tools/x'; git config --global core.pager 'less -R'")
    assert "every repository" not in this.inside("true").err


def test_what_a_configuration_includes_is_opened_only_if_it_is_a_file(bench):
    """To open a device may be enough to set it going; here it would let the FIFO's writer pass."""
    this = bench("standard")
    this.host(REPO + NEST + "mkfifo .git/fifo; git config include.path fifo")
    with subprocess.Popen(["sh", "-c", 'exec 3> "$1"', "sh", this.project / "n/.git/fifo"]) as writer:
        try:
            done = this.inside("true")
            assert done.ok and writer.poll() is None, done
        finally:
            writer.kill()


def test_an_owner_with_many_includes(bench):
    this = bench("standard")
    this.host(REPO + "for i in $(seq 80); do printf '[include]\\n path = i%d\\n' $i >> $HOME/.gitconfig; "
              "printf '[core]\\n hooksPath = h%d\\n' $i > $HOME/i$i; done")
    assert this.inside("for i in $(seq 80); do mkdir h$i 2> /dev/null && echo open $i; done; true").out == ""


def test_an_owner_with_many_aliases(bench):
    """However many come before it, a hooksPath is of each repository there; too many programs are refused, not forgotten."""
    this = bench("standard")
    config = """seq 1100 | sed 's#.*#[alias] a& = "{0}"#' > $HOME/.gitconfig; git config --global core.hooksPath .h"""
    this.host(REPO + NEST + config.format("log -n&"))
    done = this.inside("mkdir n/.h 2> /dev/null || echo closed; mkdir .h 2> /dev/null || echo closed")
    assert done.out == "closed\nclosed\n" and "names .h in every repository" in done.err, done
    this.host(config.format("!tools/&"))
    done = this.inside("true")
    assert done.code == 125 and "wall.git.too-many" in done.err, done


@pytest.mark.parametrize("way", WAYS)
def test_the_rest_of_the_project_stays_writable(bench, way):
    """Links of no protected name, links that lead out or round, and what only looks like a program."""
    this = bench(way)
    this.host(REPO + TOOL.format("tools") + TOOL.format("src") + "ln -s src/w link; ln -s . here; mkdir .vscode; ln -s .. .vscode/up; ln -s ../.vscode "
              ".vscode/round; ln -s ../tools/w .vscode/tasks.json; ln -s /nowhere/x .git/hooks/pre-push; mkdir sub; ln -s ../src/w sub/w; mkdir -p "
              "sub/.vscode; ln -s ../../src/w sub/.vscode/tasks.json; git config alias.l '!git log -- src/w.txt'; touch src/w.txt src/plain; "
              "git config core.pager 'less src/plain'")
    done = this.inside("set -e; echo 1 >> src/w; echo 1 > src/w.txt; echo 1 > src/plain; echo 1 > tools/new; echo 1 > sub/x; rm link here; "
                       "mv src s2; echo 1 >> tools/w 2> /dev/null || echo closed")
    assert done.out == "closed\n" and done.ok, done


def test_apply_withholds_them(bench):
    this = bench("standard")
    this.host(REPO + TOOL.format("tools") + TOOL.format("s") + "git config core.hooksPath .h; mkdir .vscode; ln -s ../s/w .vscode/tasks.json; " +
              NEST + "git config include.path ../local.inc")
    done = this.cloche("run", "--workspace", f"{this.project}:cow", "--", "sh", "-c", "mkdir .h; echo 1 > .h/pre-commit; echo 1 > s/w; "
                       "echo 1 > n/local.inc; echo 1 > n/b; echo 1 > tools/w")
    assert done.ok, done
    applied = this.cloche("apply", "--json", cwd=this.project)
    withheld = {change["path"]: change["notes"] for change in applied.json["withheld"]}
    assert withheld == {".h": ["protected"], ".h/pre-commit": ["protected"], "s/w": ["protected"], "n/local.inc": ["protected"]}, applied
    assert {change["path"] for change in applied.json["applied"]} == {"n/b", "tools/w"}, applied


def test_why_says_so(bench):
    this = bench("standard")
    this.host(REPO + TOOL.format("tools") + TOOL.format("s") + "ln -s ../../tools/w .git/hooks/pre-commit; git config core.hooksPath .h")
    for path, code in (("tools/w", 1), (".h/pre-commit", 1), ("s/w", 0)):
        said = this.cloche("why", "--workspace", f"{this.project}:rw", "--op", "write", "--path", f"/workspace/{path}")
        assert said.code == code, said
