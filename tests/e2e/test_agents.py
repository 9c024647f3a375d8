"""`cloche agent`: a program by its profile, with a home that it keeps (issue 18, 10)."""
import os
import shutil
import stat

import pytest

from helpers import requirement
from helpers.places import IS_ROOT

pytestmark = requirement("R01", "R11", "R100")


class Mine:
    """An agent called mine: a shell that runs what it is given, from a profile and a folder of its own."""

    def __init__(self, cloche):
        self.cloche = cloche
        self.tools = cloche.home / "tools/bin"
        self.profiles = cloche.home / ".config/cloche/agents.d"
        self.put(self.tools / "mine", '#!/bin/sh\nexec sh -c "$1"\n', 0o755)
        self.profile("program: mine\nprotect: [.mine/hooks]\n")

    def put(self, path, text="", mode=0o644):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="ascii")
        path.chmod(mode)
        if self.cloche.person is not None:
            at = path
            while at != self.cloche.home:
                os.chown(at, self.cloche.person.pw_uid, self.cloche.person.pw_gid)
                at = at.parent
        return path

    def profile(self, text, name="mine"):
        return self.put(self.profiles / f"{name}.yaml", text)

    def env(self):
        return {"PATH": f"{self.tools}:{os.environ['PATH']}"}

    def __call__(self, *words, name="mine", flags=(), **options):
        options.setdefault("cwd", self.cloche.project)
        return self.cloche("agent", *flags, name, *words, env=self.env(), **options)

    def home(self, name="mine"):
        said = self.cloche("agent", "show", "--json", name, env=self.env(), cwd=self.cloche.project).json
        return type(self.tools)(said["home"])


@pytest.fixture
def mine(anyone):
    return Mine(anyone)


@pytest.fixture
def once(cloche):
    return Mine(cloche)


# where it runs, and what it keeps --------------------------------------------------------------------------------
def test_it_runs_in_the_project(mine):
    result = mine("pwd; echo $HOME; touch made; echo $0")
    assert result.ok and result.out.startswith(f"{mine.cloche.project}\n/home/agent\n"), result
    assert (mine.cloche.project / "made").exists()


def test_a_login_is_kept_and_read_again(mine):
    """Also where its name is that of a place for credentials."""
    save = "mkdir -p .claude .codex; echo token > .claude/.credentials.json; echo t2 > .codex/auth.json; chmod 600 .codex/auth.json"
    assert mine(f"cd; {save}").ok
    result = mine("cd; cat .claude/.credentials.json .codex/auth.json; echo new > .codex/auth.json; cat .codex/auth.json")
    assert result.out == "token\nt2\nnew\n", result
    where = mine.home() / ".codex/auth.json"
    assert stat.S_IMODE(where.parents[1].stat().st_mode) == 0o700 and where.read_text() == "new\n"


def test_no_other_sandbox_sees_it(once):
    once.profile("program: mine\n", "other")
    assert once("echo token > ~/token").ok
    home = once.home()
    result = once("ls -A ~; cat ~/token", name="other")
    assert "token" not in result.out and not result.ok
    for flags in (("--bind", home), ("--bind", f"{home}:/home/agent:rw"), ("--workspace", home),
                  ("--allow-read", home), ("--view", "host")):
        result = once.cloche("run", *flags, "--", "cat", f"{home}/token", "/home/agent/token")
        assert "token\n" not in result.out, result
    result = once("cat $0 ~/../../state/x; ls -d " + str(home), flags=("--bind", home.parents[2]))
    assert not result.ok and "policy.own-folder" in result.err, result


def test_conversations_stay_apart_by_the_projects_path(once):
    save = 'd=$(pwd | tr / -); mkdir -p ~/talk/$d; echo here >> ~/talk/$d/log; cat ~/talk/$d/log'
    second = once.cloche.project / "second"
    second.mkdir()
    assert once(save).out == "here\n" and once(save, cwd=second).out == "here\n"
    assert once(save).out == "here\nhere\n"


def test_flags_have_the_last_word(once):
    result = once("pwd; touch x", flags=("--workspace", ".:cow", "--json"))
    assert result.json["exit_code"] == 0 and not (once.cloche.project / "x").exists(), result
    once.cloche("discard", result.json["workspace"]["id"], cwd=once.cloche.project)
    assert once("-not-a-flag-of-cloche").code != 125
    result = once("true", flags=("--not-a-flag",))
    assert result.code == 125 and "unknown flag" in result.err


# what it cannot write -------------------------------------------------------------------------------------------
def test_its_hooks_and_settings_are_protected(mine):
    """In its home and in the project; by the built-in names and by its profile's."""
    result = mine("for d in ~ .; do cd $d; mkdir -p .mine .claude; echo x > .claude/settings.json; mkdir .mine/hooks; "
                  "echo x > .mine/hooks; ln -s /tmp .mine/hooks; mv .mine m; mkdir .mine/hooks; echo x > .bashrc; "
                  "touch .mine/free; cd - >/dev/null; done")
    for top in (mine.home(), mine.cloche.project):
        left = sorted(str(p.relative_to(top)) for p in top.rglob("*") if not p.is_dir())
        assert left == [".mine/free"], (result, left)
        assert not os.path.lexists(top / ".mine/hooks")


def test_the_users_configuration_is_shown_and_stays(mine):
    home = mine.cloche.home
    mine.put(home / ".mine/config", "yours\n")
    mine.put(home / ".mine/more/a", "a\n")
    mine.put(home / ".mine/private", "secret\n")
    mine.profile("program: mine\nshow: [~/.mine/config, ~/.mine/more, ~/.mine/none]\nprotect: [.mine/config]\n")
    for _ in range(2):
        result = mine("cd; cat .mine/config .mine/more/a .mine/private; echo evil > .mine/config; echo evil > .mine/more/a; "
                      "rm -rf .mine/config .mine/more; touch .mine/own")
        assert result.out == "yours\na\n", result
    assert (home / ".mine/config").read_text() == "yours\n" and (home / ".mine/more/a").read_text() == "a\n"
    assert (mine.home() / ".mine/own").exists()
    (home / ".mine/config").unlink()
    assert mine("cat ~/.mine/config").code != 0, "an empty file was left in the place of the user's"


@requirement("R82")
def test_its_names_are_protected_in_a_copy(once):
    """`cloche apply` knows nothing of the agent's profile: its names came with the copy (workspace/cow.h)."""
    done = once("mkdir .mine; echo evil > .mine/hooks; echo > .mine/other", flags=["--workspace", f"{once.cloche.project}:cow"])
    assert done.ok, done
    applied = once.cloche("apply", "--json", cwd=once.cloche.project)
    assert applied.code == 2 and [c["path"] for c in applied.json["withheld"]] == [".mine/hooks"], applied


def test_what_it_left_leads_nowhere(once):
    """Places in its home are made without following what was written there."""
    home, outside = once.cloche.home, once.cloche.project / "outside"
    outside.mkdir()
    once.profile("program: mine\n")
    once.put(home / ".mine/config", "yours\n")
    assert once(f"cd; rm -rf .mine; ln -s {outside} .mine; ln -s {outside} .seeded; ln -s {outside}/f file").ok
    once.profile("program: mine\nshow: [~/.mine/config]\n")
    result = once("true")
    assert result.code == 125 and "agent.home" in result.err, result
    once.profile("program: mine\nseed: {~/.seeded/x: text}\n")
    assert once("true").code == 125
    once.profile("program: mine\nseed: {~/file: text}\n")
    assert once("true").ok
    assert os.listdir(outside) == []


def test_seeds(once):
    once.profile("program: mine\nseed:\n  ~/.mine/first: |\n    one\n    two\n")
    assert once("cat ~/.mine/first; echo mine > ~/.mine/first").out == "one\ntwo\n"
    assert once("cat ~/.mine/first").out == "mine\n"


# the program ------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("kind", ["npm", "venv", "alone", "interpreter", "found"])
def test_it_is_found_where_people_install(once, has, kind):
    has("python3")
    home, say = once.cloche.home, "print('here')\n"
    (once.tools / "mine").unlink()
    once.put(home / "private", "private\n")
    if kind == "npm":
        once.put(home / "npm/lib/node_modules/mine/lib.py", "WORD = 'here'\n")
        once.put(home / "npm/lib/node_modules/mine/cli.py", "#!/usr/bin/env python3\nimport lib; print(lib.WORD)\n", 0o755)
        (once.tools / "mine").symlink_to(home / "npm/lib/node_modules/mine/cli.py")
    elif kind == "venv":
        assert once.cloche.run(["python3", "-m", "venv", "--without-pip", str(home / "venv")]).ok
        once.put(home / "venv/bin/mine", f"#!{home}/venv/bin/python\nimport sys; assert sys.prefix == '{home}/venv'\n{say}",
                 0o755)
        (once.tools / "mine").symlink_to(home / "venv/bin/mine")
    elif kind == "interpreter":
        once.put(home / "rt/bin/run", "#!/bin/sh\ncat ${0%/*}/../lib/word\n", 0o755)
        once.put(home / "rt/lib/word", "here\n")
        (once.tools / "run").symlink_to(home / "rt/bin/run")
        shutil.copy("/bin/sh", home / "rt/bin/run")
        once.put(once.tools / "mine", "#!/usr/bin/env run\necho here\n", 0o755)
    else:
        once.put(home / ("more" if kind == "found" else "tools/bin") / "mine", "#!/usr/bin/python3\n" + say, 0o755)
        once.profile("program: mine\nfind: [~/more]\n")
    result = once()
    assert result.out == "here\n", result
    shown = once.cloche("agent", "show", "mine", env=once.env(), cwd=once.cloche.project).out
    assert f"--bind {home} " not in shown


def test_one_of_the_projects_is_passed_over(once):
    """What a sandbox wrote there must not say what the next one shows."""
    planted = once.put(once.cloche.home / "elsewhere/notes", "private\n", 0o755)
    bin_folder = once.cloche.project / "node_modules/.bin"
    bin_folder.mkdir(parents=True)
    (bin_folder / "mine").symlink_to(planted)
    env = {"PATH": f"{bin_folder}:node_modules/.bin:{once.env()['PATH']}"}
    result = once.cloche("agent", "mine", f"cat {planted}", env=env, cwd=once.cloche.project)
    assert "private" not in result.out and not result.ok and result.code != 125, result


@pytest.mark.parametrize("way", ["folder by a link", "link by link"])
def test_no_way_leads_through_the_project(once, way):
    """Nor where a link of the user's leads to it first."""
    planted = once.put(once.cloche.home / "elsewhere/notes", "private\n", 0o755)
    (once.cloche.project / "bin").mkdir()
    (once.cloche.project / "bin/mine").symlink_to(planted)
    first = once.cloche.home / "first"
    if way == "link by link":
        first.mkdir()
        (first / "mine").symlink_to(once.cloche.project / "bin/mine")
    else:
        first.symlink_to(once.cloche.project / "bin")
    env = {"PATH": f"{first}:{once.env()['PATH']}"}
    result = once.cloche("agent", "mine", f"cat {planted}", env=env, cwd=once.cloche.project)
    assert "private" not in result.out and not result.ok and result.code != 125, result


def test_an_interpreter_in_local_shows_no_more_than_that(once):
    home = once.cloche.home
    shutil.copy("/bin/sh", once.put(home / ".local/bin/run", "", 0o755))
    once.put(home / ".local/lib/word", "here\n")
    once.put(home / ".local/share/mail", "private\n")
    once.put(once.tools / "mine", f"#!{home}/.local/bin/run\ncat {home}/.local/lib/word {home}/.local/share/mail\n", 0o755)
    result = once()
    assert result.out == "here\n", result


def test_not_installed(once):
    once.profile("program: no-such-program\ninstall: get it there\n")
    result = once()
    assert result.code == 125 and "agent.not-installed" in result.err and "get it there" in result.err, result
    result = once.cloche("agent", "claude", env={"PATH": "/nowhere"}, cwd=once.cloche.project)
    assert result.code == 125 and "npm install -g @anthropic-ai/claude-code" in result.err, result


# profiles ---------------------------------------------------------------------------------------------------------
def test_ls_show_and_new(mine):
    said = mine.cloche("agent", "ls", "--json", env=mine.env(), cwd=mine.cloche.project).json
    assert {"aider", "claude", "codex", "gemini", "opencode", "mine"} == {a["name"] for a in said["agents"]}
    assert "mine" in mine.cloche("agent", "ls").out
    shown = mine.cloche("agent", "show", "mine", env=mine.env(), cwd=mine.cloche.project).out
    assert "--keep-path" in shown and ".mine/hooks" in shown and "agents/mine/home" in shown
    made = mine.cloche("agent", "new", "claude")
    path = made.out.rstrip("\n")
    assert made.ok and "api.anthropic.com" in open(path, encoding="ascii").read()
    again = mine.cloche("agent", "new", "claude")
    assert again.code == 125 and "agent.exists" in again.err
    for name in ("blank", "true"):      # a name that is no text by itself
        made = mine.cloche("agent", "new", name)
        assert made.ok, made
    assert {"blank", "true", "claude"} <= {a["name"] for a in mine.cloche("agent", "ls", "--json").json["agents"]}
    assert mine.cloche("agent", "show", "--json", "claude").json["profile"] == path


def test_an_own_one_replaces_what_came_with_cloche(once):
    once.profile("program: mine\nabout: my own\n", "claude")
    assert once("echo here", name="claude").out == "here\n"


@pytest.mark.parametrize("text,code", [
    ("program: mine\nextra: 1\n", "agent.key"), ("about: x\n", "agent.missing"), ("program: [mine]\n", "agent.value"),
    ("program: ./mine\n", "agent.value"), ("program: a/b\n", "agent.value"),
    ("program: mine\nshow: [/etc/shadow]\n", "agent.value"), ("program: mine\nshow: [~/../x]\n", "agent.value"),
    ("program: mine\nshow: [~/a//b]\n", "agent.value"), ("program: mine\nshow: ~/x\n", "agent.value"),
    ("program: mine\nprotect: [../x]\n", "agent.value"), ("program: mine\nprotect: ['']\n", "agent.value"),
    ("program: mine\nseed: {~/../x: y}\n", "agent.value"), ("program: mine\nseed: {x: y}\n", "agent.value"),
    ("program: mine\nfind: [bin]\n", "agent.value"), ("program: mine\nenv: [A]\n", "agent.value"),
    ("program: mine\nhosts: [[x]]\n", "agent.value"), ("- mine\n", "agent.key"), ("", None),
    ("program: mine\nprogram: mine\n", None), ("program: mine\nhosts: ['*']\n", "policy."),
    ("program: mine\nenv: {'A B': x}\n", "policy."), ("program: mine\nabout: " + "x" * 70000, "agent.read"),
])
def test_refused_profiles(once, text, code):
    once.profile(text)
    result = once("true")
    assert result.code == 125 and (code or "[") in result.err, result


def test_unsafe_profiles(once):
    profile = once.profile("program: mine\n")
    profile.chmod(0o666)
    assert "agent.unsafe" in once("true").err
    profile.chmod(0o644)
    profile.rename(once.cloche.project / "mine.yaml")
    profile.symlink_to(once.cloche.project / "mine.yaml")
    result = once("true")
    assert result.code == 125 and "agent.unsafe" in result.err and "link" in result.err, result
    profile.unlink()
    os.mkfifo(profile)
    assert once("true").code == 125
    profile.unlink()
    once.profile("program: mine\n")
    once.profiles.chmod(0o777)
    assert "agent.unsafe" in once("true").err


def test_unsafe_profiles_beside_the_program(once):
    """A program in a folder of one who runs it, beside a folder that anybody may have made."""
    program = once.cloche.home / "x/cloche"
    program.parent.mkdir()
    shutil.copy(once.cloche.binary, program)
    profile = once.put(once.cloche.home / "share/cloche/agents.d/theirs.yaml", "program: mine\n")
    other = type(once.cloche)(program, once.cloche.env, once.cloche.cwd)
    assert [a["name"] for a in other("agent", "ls", "--json").json["agents"]] == ["mine", "theirs"]
    profile.chmod(0o666)
    assert "agent.unsafe" in other("agent", "ls").err
    profile.chmod(0o644)
    profile.parent.chmod(0o777)
    assert "agent.unsafe" in other("agent", "ls").err


@pytest.mark.parametrize("name", ["ls", "A", "../x", "a b", "", "-x"])
def test_names(once, name):
    result = once.cloche("agent", "new", "--", name)
    assert result.code == 125 and ("agent.name" in result.err), result


@pytest.mark.parametrize("flags,code", [(("--mode", "light"), "policy.agent.view"), (("--mode", "off"), "policy.off.asks"),
                                        (("--view", "host"), "policy.agent.view")])
def test_without_a_root_of_its_own(once, flags, code):
    result = once("true", flags=flags)
    assert result.code == 125 and code in result.err, result


def test_an_unknown_one(once):
    result = once.cloche("agent", "claud")
    assert result.code == 125 and "cloche agent claude" in result.err
    assert "agent.unknown" in once.cloche("agent", "zzzzzz").err


# a folder at the home inside --------------------------------------------------------------------------------------
def test_a_folder_bound_at_the_home(anyone):
    folder = anyone.project / "h"
    folder.mkdir()
    os.chown(folder, anyone.project.stat().st_uid, anyone.project.stat().st_gid)
    flags = ("--bind", f"{folder}:/home/agent:rw")
    result = anyone("run", *flags, "--", "sh", "-c", "cd; pwd; echo x > kept; echo x > .bashrc; ls -A")
    assert result.out == "/home/agent\nkept\n" and os.listdir(folder) == ["kept"], result
    (anyone.project / "x.py").write_text("print(__file__)\n")
    result = anyone("code", *flags, "--workspace", f"{anyone.project}:ro", "--language", "python", anyone.project / "x.py")
    assert result.out.startswith("/tmp/") and os.listdir(folder) == ["kept"], result


@pytest.mark.skipif(not IS_ROOT, reason="needs root: another user's profile")
def test_another_users_profile(once):
    os.chown(once.profile("program: mine\n"), 12345, 12345)
    assert "agent.unsafe" in once("true").err


# git -----------------------------------------------------------------------------------------------------------------
IDENTITY = """[user]
\tname = Ann Lee
\temail = ann@example.org
\tsigningkey = secret
[alias]
\tst = status
[includeIf "gitdir:~/elsewhere/"]
\tpath = other.inc
"""


def repository(mine, *more):
    for argv in (["init", "-q", "-b", "main"], ["-c", "user.name=o", "-c", "user.email=o@o", "commit", "-qm", "one", "--allow-empty"], *more):
        result = mine.cloche.run(["git", *argv], cwd=mine.cloche.project)
        assert result.ok, result
    return mine.cloche.project


def test_git_knows_whose_commits_they_are(mine, has):
    """The name and the mail address, and nothing else of the owner's configuration; the project's own word is stronger."""
    has("git")
    mine.put(mine.cloche.home / ".gitconfig", IDENTITY)
    mine.put(mine.cloche.home / "other.inc", "[user]\n\temail = else@example.org\n")
    show = "git commit -q --allow-empty -m x; git log -1 --format='%an <%ae>'; git config --list --show-origin | grep -v file:.git"
    assert "Ann" not in mine("cat /etc/gitconfig").out, "no repository"
    repository(mine)
    result = mine(show)
    assert result.out == ("Ann Lee <ann@example.org>\nfile:/etc/gitconfig\tuser.name=Ann Lee\nfile:/etc/gitconfig\tuser.email=ann@example.org\n"), result
    assert not mine("echo x >> /etc/gitconfig").ok
    repository(mine, ["config", "user.name", "Mine"])
    assert mine(show).out.startswith("Mine <ann@example.org>\n")


def test_a_git_configuration_that_was_given(once):
    """What somebody binds to /etc/gitconfig, or puts there, stays."""
    once.put(once.cloche.home / ".gitconfig", IDENTITY)
    (once.cloche.project / ".git").mkdir()
    given = once.cloche.project / "given"
    given.write_text("[user]\n\tname = Given\n")
    result = once("cat /etc/gitconfig", flags=["--bind", f"{given}:/etc/gitconfig"])
    assert result.out == given.read_text(), result


def test_an_included_identity(once, has):
    has("git")
    once.put(once.cloche.home / ".gitconfig", IDENTITY.replace("~/elsewhere/", f"{once.cloche.project}/"))
    once.put(once.cloche.home / "other.inc", "[user]\n\temail = else@example.org\n")
    repository(once)
    assert once("git config user.email; git config user.name").out == "else@example.org\nAnn Lee\n"


def test_a_linked_worktree(mine, has):
    """It is said by which flag git finds the repository; with that it works, and the repository is protected as in a project."""
    has("git")
    main = repository(mine, ["branch", "side"], ["worktree", "add", "-q", "wt", "side"])
    tree = main / "wt"
    result = mine("git status", cwd=tree)
    assert f"--bind {main}/.git:rw" in result.err and "not a git repository" in result.err, result
    flags = ["--bind", f"{main}/.git:rw"]
    before = (main / ".git/config").read_text()
    result = mine("git -c user.name=a -c user.email=a@a commit -q --allow-empty -m two; git log --format=%s; git remote add x https://h/x; git config core.hooksPath h; "
                  f"cd {main}/.git; rm -f HEAD hooks/*; echo > hooks/pre-commit; rm -f config; ls HEAD config; git --git-dir . symbolic-ref HEAD refs/heads/side", cwd=tree, flags=flags)
    assert result.out == "two\none\nHEAD\nconfig\n" and "--bind" not in result.err, result
    after = (main / ".git/config").read_text()
    assert after.startswith(before) and 'url = "https://h/x"' in after and "hooksPath" not in after, after
    assert not (main / ".git/hooks/pre-commit").exists() and (main / ".git/HEAD").read_text() == "ref: refs/heads/side\n"


def test_a_redirection_that_nothing_leads_back_to(once, has):
    """No file in the project has the owner offer another project's repository."""
    has("git")
    main = repository(once, ["branch", "side"], ["worktree", "add", "-q", "wt", "side"])
    other = once.cloche.home / "other"
    once.put(other / ".git", f"gitdir: {main}/.git/worktrees/wt\n")
    result = once("true", cwd=other)
    assert result.ok and "--bind" not in result.err, result


def test_a_subfolder_of_a_repository(once, has):
    has("git")
    top = repository(once)
    (top / "sub/deep").mkdir(parents=True)
    result = once("git status; ls ../..", cwd=top / "sub/deep")
    assert f"--workspace {top} --workdir {top}/sub/deep" in result.err and ".git" not in result.out, result
    result = once("git status --short; pwd", cwd=top / "sub/deep", flags=["--workspace", top, "--workdir", top / "sub/deep"])
    assert result.ok and result.out == f"{top}/sub/deep\n" and "--workspace" not in result.err, result


# toolchains of the user's own ------------------------------------------------------------------------------------------
TOOLS = {".cargo/bin/cargo": "echo cargo by $RUSTUP_HOME", ".nvm/versions/node/v9.1.0/bin/node9": "echo nine", ".nvm/versions/node/v20.2.0/bin/node20": "echo twenty",
         ".sdkman/candidates/java/17/bin/javac17": "echo seventeen", ".deno/bin/deno": "echo deno"}


def toolchains(mine):
    home = mine.cloche.home
    for path, text in TOOLS.items():
        mine.put(home / path, f"#!/bin/sh\n{text}\n", 0o755)
    mine.put(home / ".rustup/toolchains/stable/lib/x")
    mine.put(home / ".cargo/credentials.toml", "secret")
    mine.put(home / ".npmrc", "secret")
    (home / ".sdkman/candidates/java/current").symlink_to("17")
    return home


def test_toolchains(mine):
    """By one word, or without any by an agent: read-only, on the PATH, and without the logins beside them."""
    home = toolchains(mine)
    script = (f"cargo; node20; node9; javac17; deno; ls -A {home}/.cargo; cat {home}/.npmrc {home}/.cargo/credentials.toml; "
              f"touch {home}/.rustup/x {home}/.cargo/bin/x {home}/.cargo/x; true")
    told = f"cargo by {home}/.rustup\ntwenty\nseventeen\ndeno\nbin\n"
    result = mine.cloche("run", "--toolchains", "auto", "--", "sh", "-c", script)
    assert result.out == told and "secret" not in result.out + result.err, result
    assert mine(script).out == told
    assert not list(home.glob(".rustup/x")) + list(home.glob(".cargo/bin/x"))
    assert "cargo" not in mine("cargo", flags=["--toolchains", "none"]).out
    result = mine.cloche("run", "--toolchains", "nvm", "--", "sh", "-c", script)
    assert result.out == "twenty\n", result
    # the caller's own choice among versions, and the caller's own PATH
    path = f"{home}/.nvm/versions/node/v9.1.0/bin:{os.environ['PATH']}"
    assert mine.cloche("run", "--toolchains", "nvm", "--", "node9", env={"PATH": path}).out == "nine\n"
    assert mine.cloche("run", "--toolchains", "nvm", "--env", "PATH=/usr/bin:/bin", "--", "sh", "-c", "echo $PATH").out == "/usr/bin:/bin\n"
    assert {"rustup", "nvm", "sdkman", "deno"} <= set(mine.cloche("doctor", "--json").json["toolchains"])


@pytest.mark.parametrize("which,code", [("homebrews", "toolchains.unknown"), ("deno,", "toolchains.unknown"), ("", "toolchains.unknown"), ("bun", "toolchains.absent")])
def test_toolchains_that_are_none(once, which, code):
    toolchains(once)
    result = once.cloche("run", "--toolchains", which, "--", "true", cwd=once.cloche.project)
    assert result.code == 125 and f"[{code}]" in result.err, result


LOGINS = (".nvm/versions/node/v20.2.0/etc/npmrc", ".local/share/fnm/node-versions/v18/installation/etc/npmrc", ".pyenv/versions/3.12.1/pip.conf",
          ".pyenv/versions/3.12.1/envs/x/pip.conf", ".local/share/uv/python/cpython-3.12/pip.conf", ".local/share/uv/tools/ruff/pip.conf", "br[e*]w/etc/npmrc",
          "br[e*]w/var/postgres/base")


def test_logins_in_a_toolchain(mine):
    """What npm and pip keep in an installation for all who use it (`npm config set -g`), and Homebrew's servers."""
    home = toolchains(mine)
    for path in LOGINS:
        mine.put(home / path, "secret")
    mine.put(home / "br[e*]w/bin/brew", "#!/bin/sh", 0o755)
    env = {"HOMEBREW_PREFIX": str(home / "br[e*]w")}
    script = f"grep -rs secret {home}; test -e {home}/br*/bin/brew; echo $?; test -d {home}/.pyenv/versions/3.12.1/envs/x; echo $?"
    told = mine.cloche("run", "--toolchains", "auto", "--", "sh", "-c", script, env=env)
    assert told.out == "0\n0\n", told
    told = mine.cloche("agent", "mine", script, env=mine.env() | env, cwd=mine.cloche.project)
    assert told.out == "0\n0\n", told


def test_a_toolchain_that_the_project_made(once):
    """What a sandbox may have written shows nothing, and is on no PATH."""
    home, project = once.cloche.home, once.cloche.project
    once.put(project / "evil/bin/deno", "#!/bin/sh\necho evil\n", 0o755)
    (home / ".deno").symlink_to(project / "evil")
    result = once("deno; echo $PATH")
    assert "evil" not in result.out and ".deno" not in result.out, result
    result = once.cloche("run", "--toolchains", "auto", "--", "sh", "-c", "deno; echo $PATH", cwd=project, env={"BUN_INSTALL": str(project / "evil"), "DENO_INSTALL": "/"})
    assert "evil" not in result.out, result


def test_a_toolchain_that_is_named_twice(once):
    toolchains(once)
    result = once.cloche("run", "--toolchains", ",".join(["deno", "nvm"] * 200), "--", "deno", cwd=once.cloche.project)
    assert result.out == "deno\n", result


@pytest.mark.parametrize("said", ["{home}/.", "{home}/.deno/..", "{home}/", "{home}/link"])
def test_a_toolchain_that_is_the_whole_home(once, said):
    """However a variable spells it."""
    home = toolchains(once)
    (home / "versions").mkdir()
    (home / "diary").write_text("dear diary")
    (home / "link").symlink_to(home)
    result = once.cloche("run", "--toolchains", "auto", "--", "sh", "-c", f"deno; cat {home}/diary {said.format(home=home)}/diary", cwd=once.cloche.project,
                         env={"PYENV_ROOT": said.format(home=home)})
    assert result.out == "deno\n", result
