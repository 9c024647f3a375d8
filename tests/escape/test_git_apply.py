"""State that git runs, taken over by `cloche apply` (issue 13, A1): by the shape of a repository, at any depth and name.

Each attack leaves something in the copy-on-write layer. A careless person applies it and works on with the real git, in
every directory that git could take for a repository. A marker that only the sandbox's programs would make must not be.
"""
import os

import pytest

from helpers import requirement
from helpers.git_bench import INDEX_PYTHON
from helpers.places import rounds

pytestmark = requirement("R82")

GIT = ["git", "-c", "user.name=t", "-c", "user.email=t@t", "-c", "protocol.file.allow=always", "-c", "init.defaultBranch=main"]
# what most of the attacks begin with, inside
HEAD = """
import os, subprocess
from pathlib import Path
def git(*words, cwd='.', check=True):
    return subprocess.run(['git', '-c', 'user.name=a', '-c', 'user.email=a@a', '-c', 'protocol.file.allow=always', *words],
                          cwd=cwd, check=check, stdout=subprocess.DEVNULL)
def put(path, text, mode=0o644):
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    Path(path).write_text(text)
    os.chmod(path, mode)
def bare(at, config):
    for d in ('objects', 'refs'):
        os.makedirs(os.path.join(at, d), exist_ok=True)
    put(os.path.join(at, 'HEAD'), 'ref: refs/heads/main\\n')
    put(os.path.join(at, 'config'), config)
RUN = 'touch ' + MARK + '; false'
HARM = '[core]\\n\\trepositoryformatversion = 0\\n\\tfsmonitor = "' + RUN + '"\\n'
BARE = HARM + '\\tbare = false\\n\\tworktree = .\\n'
""" + INDEX_PYTHON + """
WHAT = b'#!/bin/sh\\n' + RUN.encode()
"""


@pytest.fixture
def repo(cloche, command, has, world):
    """The project as a repository with one commit, and what else a person may have there."""
    has("git")
    project = cloche.project
    (project / "file").write_text("1\n")
    (project / "sub").mkdir()
    (project / "sub/file").write_text("1\n")
    command([*GIT, "init", "-q"], cwd=project)
    command([*GIT, "add", "."], cwd=project)
    command([*GIT, "commit", "-qm", "one"], cwd=project)
    return project


def cow(cloche, world, code, at=None):
    """Run @code on the project, copy on write; apply without a second thought. → what apply reported."""
    project = at or cloche.project
    code = f"MARK = {str(world.root / 'marker')!r}\n{HEAD}\n{code}"
    result = cloche.sandbox(code, "python", flags=["--workspace", f"{project}:cow", "--json"], cwd=project)
    assert result.ok and result.json["exit_code"] == 0, result
    applied = cloche("apply", "--json", cwd=project)
    assert applied.code in (0, 2), applied
    assert cloche("discard", cwd=project).code in (0, 125)
    return {key: {c["path"]: c for c in applied.json[key]} for key in ("applied", "withheld")}


def works_on(command, project, *more):
    """What a person does next, in every directory there is; only `checkout .` and `status` outside of the project's top."""
    words = [["status"], ["diff"], ["checkout", "."], ["checkout", "-q", "-b", "next"], ["commit", "-q", "--allow-empty"],
             ["commit", "-q", "--allow-empty", "-m", "x"], ["fetch"], *more]
    for one in words:
        command([*GIT, *one], cwd=project, check=False, env={"GIT_EDITOR": "true"})
    for at, directories, _ in os.walk(project):
        directories[:] = [d for d in directories if d != "objects"]
        command([*GIT, "checkout", "."], cwd=at, check=False)
        command([*GIT, "status"], cwd=at, check=False)


ATTACKS = {
    "gitlink": "git('init', '-q', 'in'); put('in/f', '1'); git('add', '.', cwd='in'); git('commit', '-qm', '1', cwd='in')\n"
               "git('add', 'in'); git('config', 'core.fsmonitor', RUN, cwd='in')",
    "gitlink, its hooks": "git('init', '-q', 'in'); put('in/f', '1'); git('add', '.', cwd='in'); git('commit', '-qm', '1', cwd='in')\n"
                          "git('add', 'in'); put('in/.git/hooks/post-index-change', '#!/bin/sh\\n' + RUN, 0o755)",
    "include": "git('init', '-q', 'in'); put('in/f', '1'); git('add', '.', cwd='in'); git('commit', '-qm', '1', cwd='in')\n"
               "git('add', 'in'); put('in/more', HARM); git('config', 'include.path', '../more', cwd='in')",
    "bare below": "bare('sub/x', BARE)",
    "bare at the top": "os.remove('.git/HEAD'); bare('.', BARE)",
    "bare, hooks as a link": "bare('x', '[core]\\n\\tworktree = .\\n'); put('h/post-index-change', '#!/bin/sh\\n' + RUN, 0o755)\n"
                             "os.symlink('../h', 'x/hooks')",
    "bare, configuration as a link": "bare('x', ''); os.remove('x/config'); put('y', BARE); os.symlink('../y', 'x/config')",
    "bare, parts as links": "bare('x', BARE); [(os.rename(f'x/{d}', d), os.symlink('../' + d, f'x/{d}')) for d in ('objects', 'refs')]",
    "a submodule called refs": "bare('.git/modules/refs/m', HARM + '\\tworktree = ../../../../mod\\n')\n"
                               "put('mod/.git', 'gitdir: ../.git/modules/refs/m\\n')",
    "an invented submodule": "bare('.git/modules/m', HARM); put('mod/.git', 'gitdir: ../.git/modules/m\\n')",
    "a git directory of another name": "bare('data', HARM + '\\tworktree = ../mod\\n'); put('mod/.git', 'gitdir: ../data\\n')",
    "worktree with another common directory": "bare('data', HARM); put('.git/worktrees/w/HEAD', 'ref: refs/heads/main\\n')\n"
                                              "put('.git/worktrees/w/commondir', '../../../data\\n')\n"
                                              "put('w/.git', 'gitdir: ../.git/worktrees/w\\n')",
    "HEAD and commondir": "bare('data', BARE); put('x/HEAD', 'ref: refs/heads/main\\n'); put('x/commondir', '../data\\n')",
    "config.worktree": "bare('x', '[core]\\n\\trepositoryformatversion = 1\\n\\tworktree = .\\n[extensions]\\n\\tworktreeConfig = true\\n')\n"
                       "put('x/config.worktree', HARM)",
    "todo": "put('.git/rebase-merge/git-rebase-todo', 'exec ' + RUN + '\\n')\n"
            "head = Path('.git/refs/heads/main').read_text()\n"
            "[put('.git/rebase-merge/' + k, v) for k, v in {'head-name': 'refs/heads/main\\n', 'onto': head, 'orig-head': head,\n"
            "  'interactive': '', 'done': '', 'msgnum': '0\\n', 'end': '1\\n'}.items()]",
    "strategy": "put('git-merge-../x', ''); put('x', '#!/bin/sh\\n' + RUN, 0o755)\n"
                "put('.git/rebase-merge/git-rebase-todo', 'pick ' + Path('.git/refs/heads/main').read_text())\n"
                "head = Path('.git/refs/heads/main').read_text()\n"
                "[put('.git/rebase-merge/' + k, v) for k, v in {'head-name': 'refs/heads/main\\n', 'onto': head, 'orig-head': head,\n"
                "  'interactive': '', 'done': '', 'msgnum': '0\\n', 'end': '1\\n', 'strategy': '../x\\n'}.items()]",
    "a message that becomes the configuration": "put('.git/MERGE_MSG', HARM); os.remove('.git/COMMIT_EDITMSG'); os.symlink('config', '.git/COMMIT_EDITMSG')",
    "an index with a hook": "Path('.git/index').write_bytes(index('file', '.git/hooks/post-index-change'))",
    "an index that leads out": "Path('.git/index').write_bytes(index('file', MARK))",
    "an index with a hook in a nested repository": "git('init', '-q', 'in'); Path('in/.git/index').write_bytes(index('../.git/hooks/post-index-change'))\n"
                                                   "git('init', '-q', 'on'); os.chdir('on'); Path('.git/index').write_bytes(index('.git/hooks/post-index-change'))",
    "old remote": "put('.git/remotes/origin', 'URL: ext::sh -c ' + RUN.replace(' ', '% ') + '\\n')",
}


@pytest.mark.parametrize("attack", ATTACKS)
def test_nothing_that_git_runs_is_taken_over(cloche, command, repo, world, attack):
    told = cow(cloche, world, ATTACKS[attack])
    works_on(command, repo, ["rebase", "--continue"], ["-c", "protocol.ext.allow=always", "fetch", "origin"])
    assert not (world.root / "marker").exists(), f"{attack}: ran on the host; withheld: {sorted(told['withheld'])}"
    # what is refused is named, with the reason, and the rest is there
    reasons = {note for c in told["withheld"].values() for note in c["notes"]}
    assert reasons & {"git-runs-it", "protected"}, told


def test_a_subfolder_of_a_repository(cloche, command, repo, world):
    """The workspace is a folder within a repository: its own top becomes a repository."""
    told = cow(cloche, world, "bare('.', BARE)", at=repo / "sub")
    works_on(command, repo / "sub")
    assert not (world.root / "marker").exists()
    assert "git-runs-it" in told["withheld"]["config"]["notes"] and "HEAD" in told["applied"], told


@pytest.mark.parametrize("first,second", [("put('x/config', BARE)", "bare('y', ''); [os.rename(f'y/{d}', f'x/{d}') for d in ('objects', 'refs', 'HEAD')]"),
                                          ("bare('x', BARE)", "pass")])
def test_a_shape_in_two_steps(cloche, command, repo, world, first, second):
    """What is harmless by itself is judged again with what completes it."""
    cow(cloche, world, first)
    cow(cloche, world, second)
    works_on(command, repo)
    assert not (world.root / "marker").exists()


@pytest.mark.parametrize("way", ["put('x/.git', 'gitdir: ../data\\n')", "put('.git/worktrees/w/HEAD', 'ref: refs/heads/main\\n')\n"
                                 "put('x/.git', 'gitdir: ../.git/worktrees/w\\n'); put('.git/worktrees/w/commondir', '../../../data\\n')"])
def test_nothing_leads_to_what_a_checkout_brings(cloche, command, repo, world, way):
    """A repository that is harmless when it is taken over, and what git itself makes of it when the person goes on to another commit."""
    told = cow(cloche, world, f"""
bare('data', '[core]\\n\\trepositoryformatversion = 0\\n'); put('data/objects/k', ''); put('data/refs/k', '')
git('add', 'data'); git('update-index', '--add', '--cacheinfo', '160000,' + Path('.git/refs/heads/main').read_text().strip() + ',x')
git('commit', '-qm', 'two'); put('data/config', HARM); git('checkout', '-q', '-b', 'other'); git('add', 'data'); git('commit', '-qm', 'three'); git('checkout', '-q', 'main')
{way}""")
    assert "data/config" in told["applied"], told
    command([*GIT, "checkout", "-q", "other"], cwd=repo)
    assert "fsmonitor" in (repo / "data/config").read_text()
    for _ in range(2):
        command([*GIT, "status"], cwd=repo, check=False)
    assert not (world.root / "marker").exists()
    assert "git-runs-it" in (told["withheld"].get("x/.git") or told["withheld"][".git/worktrees/w/commondir"])["notes"], told
    # what is withheld would have had it run
    command(["python3", "-IS", "-c", f"MARK = {str(world.root / 'marker')!r}\n{HEAD}\n{way}"], cwd=repo)
    command([*GIT, "status"], cwd=repo, check=False)
    assert (world.root / "marker").exists()


def test_no_file_of_the_owners_is_taken_into_a_conflict(cloche, command, repo, world):
    """git copies what MERGE_RR names into rr-cache, at the next commit."""
    (world.root / "secret").write_text("evil-to-touch\n")
    code = (f"put('.git/rr-cache/' + '1' * 40 + '/preimage', 'x'); put('.git/MERGE_RR', '1' * 40 + '\\t{world.root}/secret\\0')")
    told = cow(cloche, world, code)
    command([*GIT, "commit", "-q", "--allow-empty", "-m", "x"], cwd=repo)
    assert not (repo / ".git/rr-cache" / ("1" * 40) / "postimage").exists()
    assert "git-runs-it" in told["withheld"][".git/MERGE_RR"]["notes"], told
    (repo / ".git/MERGE_RR").write_text("1" * 40 + f"\t{world.root}/secret\0")
    command([*GIT, "commit", "-q", "--allow-empty", "-m", "x"], cwd=repo)
    assert (repo / ".git/rr-cache" / ("1" * 40) / "postimage").exists()


def test_a_part_of_the_changes(cloche, command, repo, world):
    """Named alone, a file of a repository is still one; named with --include-protected, it is the person's wish."""
    code = f"MARK = {str(world.root / 'marker')!r}\n{HEAD}\nbare('x', BARE)"
    assert cloche.sandbox(code, "python", flags=["--workspace", f"{repo}:cow"], cwd=repo).ok
    shown = cloche("diff", cwd=repo)
    assert "x/config" in shown.err and "git would run" in shown.err, shown
    result = cloche("apply", "--json", "--", "x/config", cwd=repo)
    assert result.code == 2 and not (repo / "x/config").exists(), result
    result = cloche("apply", "--json", "--include-protected", "--", "x/config", cwd=repo)
    assert result.code == 0 and (repo / "x/config").exists(), result


def test_head_stays(cloche, command, repo, world):
    told = cow(cloche, world, "os.remove('.git/HEAD'); put('other', '1')")
    assert ".git/HEAD" in told["withheld"] and "other" in told["applied"], told
    assert command([*GIT, "log", "--oneline"], cwd=repo).ok


# what must go on working -------------------------------------------------------------------------------------------------
def test_commits_at_the_top(cloche, command, repo, world):
    told = cow(cloche, world, "put('new', '1'); git('add', 'new'); git('commit', '-qm', 'two'); git('checkout', '-q', '-b', 'side')\n"
               "put('new', '2'); git('commit', '-qam', 'three'); git('gc', '-q')")
    assert not told["withheld"], told
    assert command([*GIT, "log", "--oneline"], cwd=repo).out.count("\n") == 3
    assert not command([*GIT, "status", "--porcelain"], cwd=repo).out
    assert command([*GIT, "fsck"], cwd=repo).ok


def test_nested_repositories(cloche, command, repo, world):
    """init, clone and a bare clone with what git itself writes into their configuration."""
    told = cow(cloche, world, """
git('init', '-q', 'new'); put('new/f', '1'); git('add', '.', cwd='new'); git('commit', '-qm', '1', cwd='new')
git('clone', '-q', 'new', 'deep/er/copy'); git('config', 'user.name', 'me', cwd='deep/er/copy')
git('clone', '-q', '--bare', 'new', 'copy.git')
""")
    assert not told["withheld"], told
    for at in ("new", "deep/er/copy", "copy.git"):
        assert command([*GIT, "log", "--oneline"], cwd=repo / at).out.count("\n") == 1, at
    assert command([*GIT, "config", "user.name"], cwd=repo / "deep/er/copy").out


def test_submodules_and_worktrees(cloche, command, repo, world):
    """Their redirections lead within the project, to harmless configurations; only .gitmodules waits, as ever."""
    told = cow(cloche, world, """
git('init', '-q', 'new'); put('new/f', '1'); git('add', '.', cwd='new'); git('commit', '-qm', '1', cwd='new')
git('submodule', '--quiet', 'add', os.path.abspath('new'), 'lib')
git('worktree', 'add', '-q', 'tree'); git('worktree', 'add', '-q', 'other')
put('tree/.git', 'gitdir: ../.git/worktrees/tree\\n')       # as newer versions write it; inside, the project has another path
""")
    assert set(told["withheld"]) == {".gitmodules", ".git/config", "other/.git"}, told["withheld"]
    assert command([*GIT, "log", "--oneline"], cwd=repo / "lib").out.count("\n") == 1
    assert command([*GIT, "status"], cwd=repo / "tree").ok


def test_a_rebase_in_progress(cloche, command, repo, world):
    """Stopped inside at a conflict, finished outside."""
    told = cow(cloche, world, """
git('checkout', '-q', '-b', 'side'); put('file', '2'); git('commit', '-qam', 'two'); git('checkout', '-q', '-')
put('file', '3'); git('commit', '-qam', 'three')
git('rebase', '-q', 'side', check=False)
assert os.path.exists('.git/rebase-merge/git-rebase-todo')
""")
    assert not told["withheld"], told
    (repo / "file").write_text("4\n")
    command([*GIT, "add", "file"], cwd=repo)
    assert command([*GIT, "rebase", "--continue"], cwd=repo, env={"GIT_EDITOR": "true"}).ok
    assert command([*GIT, "log", "--oneline"], cwd=repo).out.count("\n") == 3


# Another sandbox waits for the first of what is applied. By the time that the folder's turn comes it is something else.
MEANWHILE = """
import os, time
def until(*names):
    end = time.time() + 60
    while not any(map(os.path.exists, names + ('done',))) and time.time() < end:
        if 'a0' in names: time.sleep(0.0005)        # hundreds of files come after it
def attempt(f, *words):
    try: f(*words)
    except OSError as e: print(e)
def complete(at):
    for name in (at + '/objects', at + '/refs'):
        attempt(os.mkdir, name)
    open(at + '/HEAD', 'w').write('ref: refs/heads/main\\n')
print('ready', flush=True)
until('a0')
"""
PUT_CONFIG, PUT_HOOK = "put('x/config', BARE)", "put('x/hooks/post-index-change', WHAT.decode(), 0o755)"
FILES = rounds(700, 1500)        # before what matters, and behind it
# what is applied, and what the other does
MEANWHILES = {
    "config": (PUT_CONFIG, "complete('x')"),
    "hook": (PUT_HOOK, "complete('x')"),
    "config, and renamed away": (PUT_CONFIG, "complete('x'); until('x/config'); attempt(os.rename, 'x', 'y')"),
    "hook, and renamed away": (PUT_HOOK, "complete('x'); until('x/hooks/post-index-change'); attempt(os.rename, 'x', 'y')"),
    "config, renamed away, and what comes later refused": (PUT_CONFIG, "complete('x'); until('x/config')\n"
                                                           "attempt(os.rename, 'x', 'y'); open('LAST', 'w')"),
    "its hooks in another repository": (PUT_HOOK, "os.mkdir('n'); complete('n'); attempt(os.rename, 'x/hooks', 'n/hooks')\n"
                                        "attempt(os.rename, 'x', 'o'); attempt(os.rename, 'n', 'x')\n"
                                        "until('x/hooks/post-index-change'); attempt(os.rename, 'x', 'y')"),
    # the hook was in the project, in a folder that was no repository; the run removed it, and undoing brings it back
    "a hook that went": ("os.remove('x/hooks/old')", "until('z0'); complete('x'); open('LAST', 'w')"),
    "a hook that went, for a protected name": ("os.remove('v/commands/old'); os.rmdir('v/commands')",
                                               "until('z0'); attempt(os.rename, 'v', '.claude'); open('LAST', 'w')"),
    "the rest of a new repository": ("bare('x', ''); os.remove('x/config')", "open('x/config', 'w').write(BARE)"),
    "the hook of a new repository": ("bare('x', '[core]\\n\\tbare = false\\n\\tworktree = .\\n')",
                                     "open('x/hooks/post-index-change', 'wb').write(WHAT); os.chmod('x/hooks/post-index-change', 0o755)"),
}


@pytest.mark.parametrize("what,files", [(what, None) for what in MEANWHILES] + [("config, and renamed away", 64), ("config", 64)])
def test_a_folder_that_another_sandbox_makes_a_repository_meanwhile(cloche, command, world, repo, what, files):
    """It was none when `apply` decided, so its `config` was like any file; it is one when the file comes."""
    places = [repo / name for name in ("x", "y", "n", "o")]
    for name in ("x/hooks/old", "x/keep", "v/commands/old", "v/keep"):
        (repo / name).parent.mkdir(parents=True, exist_ok=True)
        (repo / name).write_text("")
    put, other_does = MEANWHILES[what]
    other_does = other_does.replace("LAST", f"z{FILES - 1}")
    if "went" not in what:
        (repo / "x/hooks/old").unlink()
    begin = f"MARK = {str(world.root / 'marker')!r}\n{HEAD}\n"
    code = begin + f"for i in range({FILES}): put(f'a{{i}}', ''); put(f'z{{i}}', '')\n{put}\n"
    result = cloche.sandbox(code, "python", flags=["--workspace", f"{repo}:cow"], cwd=repo)
    assert result.ok, result
    other = cloche.popen("run", "--workspace", repo, "--", "python3", "-IS", "-c", f"{begin}{MEANWHILE}\n{other_does}", cwd=repo)
    assert other.stdout.readline() == b"ready\n"
    # with @files descriptors no folder can be kept open
    applied = (cloche.behind("prlimit", f"--nofile={files}:{files}", "--") if files else cloche)("apply", cwd=repo)
    (repo / "done").touch()
    said = other.communicate(timeout=90)
    for at in filter(os.path.exists, places):
        command(["git", "status"], cwd=at, check=False)
        if (at / "objects").exists() and (at / "refs").exists():
            assert not (at / "hooks").exists() or not os.listdir(at / "hooks"), (applied, said)
            assert not (at / "config").exists() or "fsmonitor" not in (at / "config").read_text(), (applied, said)
    assert not (world.root / "marker").exists(), (applied, said)
    assert not (repo / ".claude/commands").exists(), (applied, said)
    assert applied.ok or applied.code == 125, applied
    # all of it or nothing; what was in a folder that is something else by now is kept in the state
    assert (repo / "a0").exists() == applied.ok, applied
    if not applied.ok:
        assert "raced" in applied.err or "nothing was applied" in applied.err or \
            ("went" in what and "old content is kept" in applied.err), applied
        assert cloche("apply", cwd=repo).code in (0, 1, 2, 125)
        assert not (repo / ".claude/commands").exists() and not (repo / "x/hooks/old").exists() or not (repo / "x/objects").exists()


def test_a_shape_that_another_run_completes(cloche, command, world, repo):
    """A `.git` that is no repository yet, with what git would run in one, and then a run that makes it one."""
    todo = "put('in/.git/rebase-merge/git-rebase-todo', 'exec ' + RUN + '\\n')"
    listed = "Path('in/.git/index').write_bytes(index('.git/hooks/post-index-change'))"
    told = cow(cloche, world, f"{todo}; {listed}; put('in/.git/remotes/origin', 'URL: x')")
    assert set(told["withheld"]) >= {"in/.git/rebase-merge/git-rebase-todo", "in/.git/index", "in/.git/remotes/origin"}, told
