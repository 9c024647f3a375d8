"""What of the project's `.git/config` a sandbox could turn round without running anything: where the owner pushes, from where they fetch, what is read by whom.

Each of them is an addition by which git would do something else than before. Issue 18, 10 (v); docs/name-guard.md.
"""
import os
import pathlib
import subprocess
import threading
import time

import pytest

from helpers import places, requirement
from helpers.git_bench import REPO

pytestmark = [requirement("R91", "R11"), pytest.mark.usefixtures("needs_git")]

EDIT = "edit() { cp .git/config c; cat >> c; mv c .git/config; }; "
EVIL = "../evil.git"
# The owner's other repositories; "private" is what no sandbox may see.
BEGIN = ("git init -q --bare ../up.git; git init -q --bare ../evil.git; git init -q -b main ../private; "
         "git -C ../private commit -q --allow-empty -m secret; " + REPO)
ORIGIN = "git remote add origin ../up.git; git push -q -u origin main; "

# Name: what the owner has, what the sandbox does, what the owner does.
ATTACKS = {
    "a tab in a branch's name": (
        ORIGIN + "git checkout -q -b test; git push -q -u origin test", EDIT + "printf '[branch \"\\test\"]\\n\\tremote = ../evil.git\\n\\tmerge = refs/heads/test\\n' | edit", "git push"),
    "a remote that is called like a URL": (
        "git push -q ../up.git main; git config branch.main.remote ../up.git; git config branch.main.merge refs/heads/main",
        EDIT + "printf '[remote \"../up.git\"]\\n\\turl = ../evil.git\\n' | edit", "git push ../up.git main; git push"),
    "a remote that is this repository": (
        "git branch base; git checkout -q -b topic; git config branch.topic.remote .; git config branch.topic.merge refs/heads/base; git config push.default upstream",
        EDIT + "printf '[remote \".\"]\\n\\turl = ../evil.git\\n' | edit", "git push"),
    "a remote of the owner's home": (
        "printf '[remote \"up\"]\\n\\tpushurl = ../up.git\\n' >> ~/.gitconfig", EDIT + "printf '[remote \"up\"]\\n\\tpushurl = ../evil.git\\n' | edit", "git push up main"),
    "a remote of an included file": (
        "printf '[remote \"up\"]\\n\\turl = ../up.git\\n' > ../more; git config include.path ../../more",
        EDIT + "printf '[remote \"up\"]\\n\\turl = ../evil.git\\n' | edit", "git push up main"),
    "a branch of the owner's home": (
        ORIGIN + "git config --unset branch.main.remote; git config --unset branch.main.merge; git remote add evil ../evil.git; "
        "printf '[branch \"main\"]\\n\\tremote = origin\\n' >> ~/.gitconfig; git config push.default current",
        "git config branch.main.remote evil", "git push"),
    "a remote that the owner's home pushes to": (
        "git config --global remote.pushDefault mine; git config push.default current", "git remote add mine ../evil.git", "git push"),
    "another one of the owner's remotes": (
        ORIGIN + "git branch -q --unset-upstream; git remote add public ../evil.git; git config push.default current",
        "git config branch.main.remote public; git config branch.main.merge refs/heads/main", "git push"),
    "a push remote": (
        ORIGIN + "git branch -q --unset-upstream; git remote add public ../evil.git; git config push.default current",
        "git config branch.main.pushRemote public", "git push"),
    "a branch that followed nothing": (
        ORIGIN + "git checkout -q -b work; git config push.default current",
        "git remote add x ../evil.git; git config branch.work.remote x; git config branch.work.merge refs/heads/work", "git push"),
    "origin beside the only remote": (
        "git remote add up ../up.git; git config push.default current", "git remote add origin ../evil.git", "git push"),
}


@pytest.fixture
def needs_git(has):
    has("git")


@pytest.mark.parametrize("name", ATTACKS)
def test_pushes_go_where_they_went(bench, name):
    this = bench("standard")
    owner, inside, after = ATTACKS[name]
    this.host(BEGIN + owner)
    before = this.host("cat .git/config").out
    done = this.inside(inside)
    # what an attacker would rather name is on the network; here it must be a path
    this.host("git commit -q --allow-empty -m two; " + after, check=False)
    assert this.host("git -C ../evil.git for-each-ref").out == "", (done, this.host("cat .git/config").out)
    assert this.host("cat .git/config").out.startswith(before)


def test_a_second_run_leads_no_further(bench):
    """A remote that a sandbox added is not one of the owner's to the next."""
    this = bench("standard")
    this.host(BEGIN)
    assert this.inside("git remote add x https://h/x; git config branch.main.remote x; git config branch.main.merge refs/heads/main").ok
    assert this.host("git remote").out == "x\n"
    assert this.inside("git config branch.main.remote x; git config branch.main.merge refs/heads/main").ok
    assert this.host("git config --get-regexp branch", check=False).out == ""


@pytest.mark.parametrize("url", ("../private", "$PWD/../private", "file://$PWD/../private"))
def test_no_other_repository_is_fetched_into_the_project(bench, url):
    """The next run could read what the owner's git fetches from where only the owner can."""
    this = bench("standard")
    this.host(BEGIN)
    this.inside(f"git remote add x {url}; git config branch.main.remote x; git config branch.main.merge refs/heads/main; true")
    this.host("git fetch --all; git remote update; git fetch; git maintenance run --task=prefetch", check=False)
    assert this.host("git cat-file -e $(git -C ../private rev-parse HEAD)", check=False).code != 0
    assert "private" not in this.host("cat .git/config").out


def test_each_repository_is_judged_by_its_own_remotes(bench):
    """Of two folders with a repository: what the one calls `origin` is a folder in the other, which anybody inside makes."""
    this = bench("standard")
    this.host(BEGIN + "git remote add origin ../up.git; git init -q ../second; git -C ../second remote add upstream https://h/x")
    second = this.project.parent / "second"
    assert this.inside("cd /mnt/second; git config branch.topic.remote origin; git config branch.topic.merge refs/heads/topic; "
                       "git config branch.next.remote upstream; git config branch.next.merge refs/heads/next",
                       flags=["--bind", f"{second}:/mnt/second:rw"]).ok
    told = (second / ".git/config").read_text()
    assert "topic" not in told and "next" in told, told


def test_nothing_asks_an_added_remote_by_itself(bench):
    """fetch --all, remote update and git's own maintenance leave it out, whatever it is."""
    this = bench("standard")
    this.host(BEGIN + ORIGIN)
    assert this.inside("git remote add x https://x.invalid/x").ok
    assert this.host("git remote").out == "origin\nx\n"
    done = this.host("GIT_TRACE=1 git fetch --all; GIT_TRACE=1 git remote update; GIT_TRACE=1 git maintenance run --task=prefetch", check=False)
    assert "x.invalid" not in done.err and "origin" in done.out + done.err, done


# Name: what the owner has, the remote that the sandbox adds, what the owner's git would make of it.
TAKEN = {
    "a remote of the oldest form": ("mkdir -p .git/branches; echo https://mine/x > .git/branches/up", "up https://evil/x", "git ls-remote --get-url up"),
    "one of the form before": ("mkdir -p .git/remotes; echo URL: https://mine/x > .git/remotes/up", "up https://evil/x", "git ls-remote --get-url up"),
    "a repository beside": ("git init -q mirror", "mirror https://evil/x", "git ls-remote --get-url mirror"),
    "a bare repository beside": ("git init -q --bare backup.git", "backup https://evil/x", "git ls-remote --get-url backup"),
    "its whole name": ("git init -q --bare backup.git", "backup.git https://evil/x", "git ls-remote --get-url backup.git"),
    "one that is gone": ("true", "backup.git https://evil/x", "git ls-remote --get-url backup.git"),
    "what another work tree pushes to": (
        "git config extensions.worktreeConfig true; git worktree add -q ../tree; git -C ../tree config --worktree remote.pushDefault up",
        "up https://evil/x", "git -C ../tree ls-remote --get-url up"),
    "a path of the owner's by insteadOf": ("git config --global url.$PWD/../.insteadOf me:", "up me:private", "git ls-remote --get-url up"),
    "a path by insteadOf of an address": ("git config --global url.file://$PWD/../.pushInsteadOf https://me/", "up https://me/private", "git remote get-url --push up"),
    "a program by insteadOf": ("git config --global 'url.ext::sh -c .insteadOf' me:", "up me:evil", "git ls-remote --get-url up"),
    "an include that waits for it": (
        "printf '[core]\\n\\tsshCommand = work\\n' > ~/.gitconfig-work; git config --global 'includeIf.hasconfig:remote.*.url:https://work/**.path' '~/.gitconfig-work'",
        "up https://work/x", "git config core.sshCommand || true"),
}


@pytest.mark.parametrize("name", TAKEN)
def test_a_new_remote_takes_no_place(bench, name):
    """What the owner's git understands by a name, or an address, stays what it is."""
    this = bench("standard")
    owner, remote, question = TAKEN[name]
    this.host(BEGIN + "git remote add origin https://h/x; " + owner)
    before = this.host(question, check=False).out
    nick, url = remote.split()
    done = this.inside(EDIT + f"printf '[remote \"{nick}\"]\\n\\turl = {url}\\n' | edit; git remote get-url {nick}; git remote add other https://h/y")
    assert done.ok, done
    assert this.host(question, check=False).out == before, done
    assert this.host("git remote").out == "origin\nother\n"


@pytest.mark.parametrize("way", ("a file", "a file in the project", "variables"))
def test_the_environment_of_the_owner_counts(world, bench, way):
    """git's own variables say where the owner's configuration is."""
    this = bench("standard")
    own = this.project / ".owner" if way == "a file in the project" else this.project.parent / "owner"
    env = {"GIT_CONFIG_GLOBAL": own} if way != "variables" else {
        "GIT_CONFIG_COUNT": "2", "GIT_CONFIG_KEY_0": "alias.x", "GIT_CONFIG_VALUE_0": "status", "GIT_CONFIG_KEY_1": "remote.pushDefault", "GIT_CONFIG_VALUE_1": "up"}
    text = "[remote]\n\tpushDefault = up\n[core]\n\thooksPath = tools\n"
    this.host(BEGIN + "git remote add origin https://h/x")
    if way != "variables":
        own.write_text(text)
    script = f"git remote add up https://evil/x; git remote add other https://h/y; mkdir tools && echo > tools/pre-push; echo >> {own.name}; mv -f {own.name} x"
    done = this.cloche("run", "--workspace", f"{this.project}:rw", "--", "sh", "-c", "export HOME=/tmp; " + script, env={k: str(v) for k, v in env.items()})
    assert this.host("git remote").out == "origin\nother\n", done
    assert way == "variables" or not (this.project / "tools").exists()
    assert way == "variables" or own.read_text() == text


REFSPECS = ("+refs/heads/*:refs/heads/*", "refs/*:refs/*", "+refs/heads/main:refs/heads/main", "+HEAD:refs/heads/main", "+refs/heads/*:refs/remotes/origin/*",
            "+refs/heads/*:refs/remotes/x/../origin/*", "+refs/tags/*:refs/tags/*", "^refs/heads/x", "+refs/heads/*:refs/remotes/x*", "refs/heads/*:refs/remotes/x/a*b*",
            "+refs/heads/main:refs/remotes/xy/main", "+refs/heads/*:refs/remotes/x/main", "main:refs/remotes/x/main", "+refs/heads/main:refs/remotes/x/", "+refs/heads/m")


@pytest.mark.parametrize("refspec", REFSPECS)
def test_a_fetch_writes_to_that_remotes_branches_only(bench, refspec):
    this = bench("standard")
    this.host(BEGIN)
    this.inside(EDIT + f"printf '[remote \"x\"]\\n\\turl = https://h/x\\n\\tfetch = {refspec}\\n' | edit")
    assert this.host("git config --get-regexp remote", check=False).out == ""


def test_a_branch_at_its_remote_is_fetched(bench):
    this = bench("standard")
    this.host(BEGIN)
    assert this.inside("git remote add -t main -t a/b x https://h/x").ok
    assert this.host("git config --get-all remote.x.fetch").out == "+refs/heads/main:refs/remotes/x/main\n+refs/heads/a/b:refs/remotes/x/a/b\n"


def test_a_submodule_is_the_owners_to_begin(bench):
    """`git submodule update` and `pull` clone what is in the configuration: with the owner's keys, into the project."""
    this = bench("standard")
    this.host(BEGIN)
    this.inside(EDIT + "printf '[submodule \"s\"]\\n\\turl = https://h/private\\n\\tactive = true\\n' | edit; "
                "printf '[submodule \"s\"]\\n\\tpath = s\\n\\turl = https://h/private\\n' > .gitmodules; "
                "git add .gitmodules; git update-index --add --cacheinfo 160000,$(git rev-parse HEAD),s; git commit -qm s")
    done = this.host("GIT_TRACE=1 git submodule update", check=False)
    assert "clone" not in done.err, done
    assert "submodule" not in this.host("cat .git/config").out


RENAMES = """
import os, time
end = time.time() + 10
open('started', 'w').close()
while time.time() < end and not os.path.exists('ended'):
    try:
        with open('t', 'w') as f:
            f.write('[core]\\n\\tbare = false\\n[x]\\n\\ty = evil\\n' + '#' * 900)
        os.rename('t', '.git/config')
    except OSError:
        pass
"""


def guard_of(command):
    """The process that answers the calls of the sandbox whose command has @command in it: its parent."""
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            if command.encode() in pathlib.Path(f"/proc/{pid}/cmdline").read_bytes() and "python" in os.readlink(f"/proc/{pid}/exe"):
                parent = int(pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[1])
                if "cloche" in pathlib.Path(f"/proc/{parent}/comm").read_text() or "guest" in os.readlink(f"/proc/{parent}/exe"):
                    return parent
        except OSError:
            continue
    return None


def test_the_owners_new_file_is_not_the_sandboxs(bench, has):
    """When the owner's git writes the file in the middle of a rename to it, the mount of the sandbox's own is gone."""
    if not places.IS_ROOT:
        pytest.skip("slows down the guard, as root")
    has("strace")
    this = bench("standard")
    this.host(BEGIN)
    for turn in range(5):
        this.host("rm -f started ended")
        script = RENAMES + f"# {this.project.parent.parent.name}-{turn}"
        (this.project / "r.py").write_text(script)
        thread = threading.Thread(target=lambda: this.inside("exec python3 -IS -c \"$(cat r.py)\""))
        thread.start()
        while not (this.project / "started").exists() and thread.is_alive():
            time.sleep(0.02)
        guard = guard_of(script.rsplit("# ", 1)[1])
        assert guard is not None
        with subprocess.Popen(["strace", "-qq", "-o", "/dev/null", "-p", str(guard), "-e", "trace=openat", "-e", "inject=openat:delay_enter=20000"]) as slow:
            time.sleep(0.4)
            this.host("git config user.name owner")
            time.sleep(0.3)
            (this.project / "ended").touch()
            slow.terminate()
        thread.join()
        assert this.host("git config user.name; grep -c evil .git/config", check=False).out == "owner\n0\n"


LOCK = """
import os, time
end = time.time() + 8
text = b'[x]\\n\\ty = evil\\n'
open('started', 'w').close()
def attempt(what, *a):
    try:
        return what(*a)
    except OSError:
        return None
while time.time() < end and not os.path.exists('ended'):
    f = attempt(os.open, '.git/config.lock', os.O_WRONLY | os.O_APPEND)
    if f is not None:
        attempt(os.write, f, text)
        os.close(f)
    if TURN and os.path.exists('.git/config.lock'):
        attempt(os.unlink, '.git/config.lock')
        for make in range(3):
            open('t', 'wb').write(text)
            attempt(os.rename, 't', '.git/config.lock')
            attempt(os.link, 't', '.git/config.lock')
            attempt(os.symlink, '../t', '.git/config.lock')
            f = attempt(os.open, '.git/config.lock', os.O_WRONLY | os.O_CREAT | os.O_EXCL)
            if f is not None:
                attempt(os.write, f, text)
                os.close(f)
"""


@pytest.mark.parametrize("way", ("standard", "host view", "light"))
@pytest.mark.parametrize("turn", (0, 1))
def test_the_owners_lock_is_not_written_to(bench, turn, way):
    """The owner's git writes its configuration to config.lock: what came into that would be the owner's."""
    this = bench(way)
    this.host(BEGIN)
    (this.project / "l.py").write_text(LOCK.replace("TURN", str(turn)))
    thread = threading.Thread(target=lambda: this.inside("python3 -IS l.py"))
    thread.start()
    while not (this.project / "started").exists() and thread.is_alive():
        time.sleep(0.02)
    this.host("for i in $(seq 300); do git config user.name owner$i; done 2> /dev/null; touch ended", check=False)
    thread.join()
    assert "evil" not in this.host("cat .git/config").out


def test_programs_inside_write_one_after_the_other(bench):
    """The lock of the sandbox's own is no file of the project's; who comes while it is taken is told, as ever."""
    this = bench("standard")
    this.host(BEGIN + ORIGIN)
    done = this.inside("""set -e; for i in 1 2 3 4 5; do git config a.b$i c$i; done; git config --unset no.such || true; git config a.b6 c6
python3 -IS - <<'P'
import os, subprocess
f = os.open('.git/config.lock', os.O_WRONLY | os.O_CREAT | os.O_EXCL)
assert subprocess.run(['git', 'config', 'a.b', 'd'], stderr=subprocess.PIPE).returncode != 0
assert not os.path.exists('.git/config.lock')
os.write(f, open('.git/config', 'rb').read() + b'[x]\\n\\ty = z\\n')
os.close(f)
os.rename('.git/config.lock', '.git/config')
P
git config --get-regexp 'a|x'; git config a.b7 c7; git remote rename origin up; git remote""")
    assert done.ok and "a.b6 c6" in done.out and "x.y z" in done.out and done.out.endswith("up\n"), done
    assert this.host("ls .git | grep -c lock", check=False).out == "0\n"
