"""The project's own `.git/config`: inside it is a copy that programs write as they like; what they added and what is harmless is the owner's afterwards, the rest is not.

After each attack the real git runs on the host's side, with all that makes it look at its remotes and branches. Issue 18, 10 (v); docs/name-guard.md.
"""
import re
import threading
import time

import pytest

from helpers import requirement
from helpers.git_bench import REPO, STATUS

pytestmark = [requirement("R91", "R11"), pytest.mark.usefixtures("needs_git")]

WAYS = ("standard", "host view")
OWNER = REPO + ("git init -q --bare ../up.git; git config user.name owner; git remote add origin $PWD/../up.git; git push -q -u origin main; "
                "git branch other; ")
REMOTES = ("git -c protocol.ext.allow=always fetch --all; git -c protocol.ext.allow=always remote update; git push; git pull; git remote -v; "
           "git branch -vv; git submodule status; git -c protocol.ext.allow=always push x other; " + STATUS)
EDIT = "edit() { cp .git/config c; cat >> c; mv c .git/config; }; "

# What the sandbox does; every one of them would run $EVIL, or lead the owner's pushes astray, if it came to the owner.
ATTACKS = {
    "a program": "git config core.fsmonitor \"$EVIL\"",
    "a program by hand": EDIT + "printf '[core]\\n\\tfsmonitor = %s\\n' \"$EVIL\" | edit",
    "hooks": "mkdir h; cp \"$EVIL\" h/post-index-change || cp $P h/post-index-change; git config core.hooksPath h",
    "an include": "printf '[core]\\n\\tfsmonitor = %s\\n' \"$EVIL\" > more; git config include.path ../more",
    "a helper's URL": "git remote add x \"ext::$EVIL\"; git remote add y \"ext::$EVIL\"",
    "a helper's URL by hand": EDIT + "printf '[remote \"x\"]\\n\\turl = \"ext::%s\"\\n\\tfetch = a\\n' \"$EVIL\" | edit",
    "a helper as a remote's name": EDIT + "printf '[remote \"ext::%s\"]\\n\\tfetch = +refs/heads/*:refs/remotes/x/*\\n' \"$EVIL\" | edit",
    "a helper as what a branch follows": EDIT + "printf '[branch \"other\"]\\n\\tremote = \"ext::%s\"\\n\\tmerge = refs/heads/main\\n' \"$EVIL\" | edit",
    "another spelling of URLs": "git remote add x 'evil:x'; git config \"url.ext::$EVIL .insteadOf\" evil:",
    "the other side's program": "git remote add x ../up.git; git config remote.x.uploadpack \"$EVIL\"; git config remote.x.receivepack \"$EVIL\"",
    "ssh's option as a host": "git remote add x \"ssh://-oProxyCommand=$EVIL/x\"; git remote add y \"ssh://[-oProxyCommand=$EVIL]/x\"",
    "ssh's option before a path": EDIT + "printf '[remote \"x\"]\\n\\turl = \"-oProxyCommand=%s:x\"\\n\\tfetch = a\\n' \"$EVIL\" | edit",
    "ssh itself": "git config core.sshCommand \"$EVIL\"; git remote add x ssh://localhost/x",
    "a submodule's command": EDIT + "printf '[submodule \"x\"]\\n\\turl = ../x\\n\\tupdate = \"!%s\"\\n' \"$EVIL\" | edit",
    "a text that begins a section elsewhere": EDIT + "printf '[branch \"x\"]\\n\\tdescription = \"\\\\\\n[core]\\\\\\n\\tfsmonitor = %s\"\\n' \"$EVIL\" | edit",
    "a section's name with a line in it": EDIT + "printf '[branch \"x\\n[core]\\n\\tfsmonitor = %s\\n\"]\\n\\tremote = y\\n' \"$EVIL\" | edit",
    "pushed elsewhere": "git remote set-url origin ../evil.git; git remote set-url --push origin ../evil.git; git remote set-url --add origin ../evil.git; "
                        "git config remote.pushDefault ../evil.git; git config branch.main.pushRemote ../evil.git; git branch -u . main; git config branch.main.remote ../evil.git",
    "what is there is taken away": "git remote remove origin; git config --unset user.name; git branch --unset-upstream main; cp /dev/null c; mv c .git/config; rm -f .git/config",
    "the file itself": "rm -f .git/config; mv .git/config x; ln .git/config x; ln -sf ../x .git/config; : > .git/config; printf '[core]\\n\\tfsmonitor = %s\\n' \"$EVIL\" >> .git/config; "
                       "truncate -s 0 .git/config; mv .git x; mkdir d; mv d .git/config; mkfifo f; mv f .git/config; ln -s /etc/passwd l; mv l .git/config",
}


@pytest.fixture
def needs_git(has):
    has("git")


def entries(this):
    return sorted(this.host("git config --local --list").out.splitlines())


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", ATTACKS)
def test_nothing_of_it_comes_to_the_owner(bench, name, way):
    this = bench(way)
    this.host(OWNER)
    before = entries(this)
    done = this.inside(ATTACKS[name])
    assert not re.search("^cloche: (?!warning)", done.err, re.M), done
    assert set(before) <= set(entries(this)), done
    new = set(entries(this)) - set(before)
    assert not [e for e in new if re.match(r"core|include|url|user|credential|remote\.(origin|pushdefault|ext)|branch\.main", e)], new
    done = this.host(REMOTES, check=False)
    assert not this.ran(), (new, done)
    assert "evil.git" not in "".join(new), new


def test_the_attacks_are_real(bench):
    """What makes git run something does so if it is written to the owner's file."""
    real = 0
    for name in ("a program", "a program by hand", "an include", "a helper's URL", "the other side's program", "another spelling of URLs"):
        this = bench("bare")
        this.host("cd ..; rm -rf work up.git; mkdir work; cd work; " + OWNER)
        this.inside(ATTACKS[name])
        this.host(REMOTES, check=False)
        real += this.ran()
        this.host(f"rm -f {this.mark}")
    assert real >= 5


@pytest.mark.parametrize("way", (*WAYS, "ordinary"))
def test_what_is_harmless_is_kept(bench, way):
    this = bench("standard", "ordinary") if way == "ordinary" else bench(way)
    this.host(REPO + "git config user.name owner; git init -q --bare up.git; git remote add origin ./up.git; git push -q -u origin main")
    before = this.host("cat .git/config").out
    done = this.inside("set -e; git remote add fork https://h/f; git checkout -q -b topic; git commit -q --allow-empty -m topic; git push -q -u origin topic; "
                       "git config user.name evil; git config alias.st '!evil'; git remote add gone https://h/x; git remote remove gone; git branch -vv; "
                       "git st || git config user.name")
    assert done.ok and "[origin/topic]" in done.out and done.out.endswith("evil\n"), done
    after = this.host("cat .git/config").out
    assert after.startswith(before) and "gone" not in after and "evil" not in after, after
    assert this.host("git config branch.topic.remote; git config remote.fork.fetch").out == "origin\n+refs/heads/*:refs/remotes/fork/*\n"
    assert "added to .git/config: remote.fork.url, remote.fork.fetch, branch.topic.remote, branch.topic.merge" in done.err, done
    assert "not added to .git/config, it was for the sandbox alone: user.name, alias.st" in done.err, done
    assert this.host("ls -A .git | grep -c config.lock", check=False).out == "0\n"
    # a second run has them from the start, and changes nothing
    done = this.inside("git remote -v; git remote remove fork")
    assert "fork" in done.out and this.host("cat .git/config").out == after, done


def test_the_file_stays_the_one_it_is(bench):
    """Other sandboxes of the same folder have a mount on it, which goes with another file's coming to its name."""
    this = bench("standard")
    this.host(REPO)
    inode = this.host("stat -c %i .git/config").out
    result = {}
    waiting = threading.Thread(target=lambda: result.update(other=this.inside(
        "touch started; for i in $(seq 100); do test -e ended && break; sleep 0.1; done; rm -f .git/config; test -e .git/config && echo kept")))
    waiting.start()
    while not (this.project / "started").exists() and waiting.is_alive():
        time.sleep(0.05)
    assert this.inside("git remote add x https://h/x").ok
    (this.project / "ended").touch()
    waiting.join()
    assert result["other"].out == "kept\n", result
    assert this.host("stat -c %i .git/config").out == inode
    assert this.host("git remote").out == "x\n"


def test_the_owner_writes_meanwhile(bench):
    this = bench("standard")
    this.host(OWNER)
    owner = threading.Thread(target=lambda: this.host("for i in $(seq 200); do test -e started && break; sleep 0.05; done; git config user.name owner; "
                                                      "git remote add mine https://h/m; touch ended"))
    owner.start()
    done = this.inside("git remote add fork https://h/f; git remote add mine https://h/evil; touch started; for i in $(seq 100); do test -e ended && break; sleep 0.1; done")
    owner.join()
    assert done.ok, done
    assert this.host("git remote get-url mine; git remote get-url fork; git config user.name").out == "https://h/m\nhttps://h/f\nowner\n", done


def test_a_lock_is_waited_for(bench):
    this = bench("standard")
    this.host(REPO + "touch .git/config.lock")
    done = this.inside("cp .git/config c; printf '[remote \"x\"]\\n\\turl = https://h/x\\n' >> c; mv c .git/config; git remote")
    assert done.out == "x\n" and "is as it was" in done.err, done
    assert this.host("git remote; ls .git/config.lock").out == ".git/config.lock\n"


def test_a_hard_link_is_the_other_file_too(bench):
    """What else has the file's name is not written to: then it is read-only, as all that is protected."""
    this = bench("standard")
    this.host(REPO + "ln .git/config ../config")
    done = this.inside("git remote add x https://h/x")
    assert not done.ok and this.host("git remote").out == "", done


def test_a_rule_closes_it(bench):
    this = bench("standard")
    this.host(REPO)
    done = this.inside("git remote add x https://h/x", flags=["--deny-write", this.project / ".git/config"])
    assert not done.ok and this.host("git remote").out == "", done
