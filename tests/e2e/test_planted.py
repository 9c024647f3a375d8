"""`cloche why --planted` and the end of a run: what in a folder makes another program run something (issue 13, A1)."""
import os
import re
import shutil
import time

import pytest

from helpers import requirement
from helpers.places import REPO, ordinary_user

pytestmark = requirement("R82")

HARM = "[core]\n\tfsmonitor = x\n"


def put(path, text=""):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def bare(at, config=HARM):
    for name in ("objects", "refs"):
        (at / name).mkdir(parents=True, exist_ok=True)
    put(at / "HEAD", "ref: refs/heads/main\n")
    put(at / "config", config)


def planted(cloche, folder, code=None):
    """→ {path below the folder: find} of `cloche why --planted`."""
    result = cloche("why", "--planted", "--json", folder)
    assert result.code in (0, 1) and result.json["complete"], result
    assert result.code == (1 if result.json["planted"] else 0)
    return {os.path.relpath(f["path"], folder): f for f in result.json["planted"]}


def test_nothing_in_an_ordinary_repository(cloche, command, has, project):
    has("git")
    command(["git", "init", "-q", "in/it"], cwd=project)
    command(["git", "init", "-q", "--bare", "bare.git"], cwd=project)
    put(project / "src/main.c")
    put(project / "config")
    put(project / "hooks/pre-commit")
    assert planted(cloche, project) == {}
    result = cloche("why", "--planted", cwd=project)
    assert result.code == 0 and not result.out and "0 found among" in result.err, result


def test_state_of_git(cloche, project):
    """By shape, at any depth and name; where it leads counts too."""
    bare(project / "a/b")
    bare(project / "harmless", "[core]\n\tbare = true\n")
    bare(project / "c/.git", "")
    put(project / "c/.git/hooks/pre-commit", "x")
    put(project / "c/.git/hooks/pre-commit.sample", "x")
    put(project / "c/.git/rebase-merge/git-rebase-todo", "pick 1\nexec x\n")
    put(project / "w/HEAD")
    put(project / "w/commondir", "../harmless\n")
    put(project / "v/HEAD")
    put(project / "v/commondir", "../../elsewhere\n")
    put(project / "s/.git", "gitdir: ../harmless\n")
    bare(project / "c/.git/modules/n", "")
    put(project / "n/.git", "gitdir: ../c/.git/modules/n\n")
    put(project / "c/.git/worktrees/x/HEAD")
    put(project / "c/.git/worktrees/x/commondir", "../..\n")
    put(project / "t/.git", "gitdir: /tmp/x\n")
    put(project / "u/.git", "gitdir: link/x\n")
    os.symlink("/tmp", project / "u/link")
    put(project / "only/config", HARM)
    bare(project / "l", "")
    (project / "l/hooks").symlink_to("../src")
    bare(project / "wt", "[core]\n\tbare = false\n\tworktree = out\n")
    (project / "wt/out").symlink_to("/tmp")
    bare(project / "wl", "[core]\n\tbare = false\n\tworktree = ../src\n")
    (project / "src").mkdir()
    found = planted(cloche, project)
    assert set(found) == {"a/b/config", "c/.git/hooks/pre-commit", "c/.git/rebase-merge/git-rebase-todo", "v/commondir",
                          "s/.git", "t/.git", "u/.git", "w/commondir", "l/hooks", "wt/config"}, found
    assert found["s/.git"]["detail"] == "leads to what is no .git" and found["t/.git"]["detail"] == "leads out of the folder"
    assert "symbolic link" in found["wt/config"]["detail"]
    assert found["a/b/config"]["detail"] == "core.fsmonitor" and "git" in found["a/b/config"]["runs"]


def test_a_bare_repository_that_the_owner_makes(cloche, command, has, project):
    """What a run put there before it was one, git keeps (docs/name-guard.md says so); it is named before the first push."""
    has("git")
    ran = cloche("run", "--workspace", project, "--", "sh", "-c",
                 "mkdir -p x/hooks && printf '#!/bin/sh\\necho ran\\n' > x/hooks/post-receive && chmod +x x/hooks/post-receive &&"
                 "printf '[core]\\n\\tfsmonitor = x\\n' > x/config")
    assert ran.code == 0 and planted(cloche, project) == {}, ran
    command(["git", "init", "-q", "--bare", "x"], cwd=project)
    assert set(planted(cloche, project)) == {"x/config", "x/hooks/post-receive"}


def test_links_where_git_writes(cloche, project):
    """It would write, or remove, what they lead to."""
    bare(project / "a/.git", "")
    bare(project / "a/.git/modules/m", "")
    put(project / "a/.git/logs/refs/heads/side")
    for name in ("index", "logs/HEAD", "logs/refs/heads/main", "worktrees", "modules/m/FETCH_HEAD", "objects/info"):
        (project / "a/.git" / name).symlink_to("../../x")
    (project / "a/.git/mine").symlink_to("x")
    (project / "index").symlink_to("x")
    found = planted(cloche, project)
    assert set(found) == {f"a/.git/{n}" for n in ("index", "logs/HEAD", "logs/refs/heads/main", "worktrees", "modules/m/FETCH_HEAD",
                                                  "objects/info")}, found
    assert {f["what"] for f in found.values()} == {"link where git writes"}


def test_a_bare_repository_at_the_top(cloche, project):
    put(project / "HEAD")
    (project / "objects").mkdir()
    (project / "refs").mkdir()
    assert planted(cloche, project)["HEAD"]["what"] == "bare repository"


FILES = {".envrc": "direnv", "x/.vscode/tasks.json": "VS Code tasks", "x/.vscode/settings.json": "VS Code settings",
         ".idea/runConfigurations/a.xml": "JetBrains settings", "a.code-workspace": "VS Code workspace", ".exrc": "vi, Vim, Neovim",
         "d/.nvim.lua": "Neovim", "d/.dir-locals.el": "Emacs", ".npmrc": "npm, pnpm", ".yarnrc.yml": "Yarn",
         "x/.cargo/config.toml": "Cargo", ".tool-versions": "asdf, mise", ".mise.toml": "mise", ".hg/hgrc": "Mercurial",
         ".jj/repo/config.toml": "Jujutsu", ".git/lazygit.yml": "lazygit", ".sl/config": "Sapling", ".pijul/config": "Pijul",
         ".jj/workspace-config.toml": "Jujutsu", ".git/sl/config": "Sapling", "sub/.git/sl/config-git-repo": "Sapling", "sub/.jj/repo": "Jujutsu", "_darcs/prefs/defaults": "darcs",
         ".gdbinit": "GDB", ".lldbinit": "LLDB", ".mcp.json": "MCP servers",
         ".claude/settings.json": "Claude Code", "v/sitecustomize.py": "Python", ".devcontainer/x/devcontainer.json": "development container",
         ".husky/pre-commit": "husky", ".config/mise/config.toml": "mise", "mise.local.toml": "mise", "a/.hg/sharedpath": "Mercurial",
         "eslint.config.mjs": "ESLint", "b/.prettierrc": "Prettier", ".repo/repo/main.py": "repo", "b/.reviewboardrc": "RBTools",
         "CVS/Root": "CVS", "_FOSSIL_": "Fossil", "tools/bazel": "Bazelisk", "jupyter_server_config.py": "Jupyter",
         "lefthook.yaml": "lefthook", "b/opencode.json": "opencode", "b/.GDBInit": "GDB", "c/.VSCode/Tasks.JSON": "VS Code tasks",
         "b/.env": "autoenv, zsh's dotenv", "b/.venv": "what activates environments", ".shadowenv.d/500.lisp": "Shadowenv", "x/.vscode/c_cpp_properties.json": "VS Code's C and C++",
         "b/.bsp/sbt.json": "Build Server Protocol", "hie.yaml": "Haskell language server", "b/.lite_project.lua": "Lite XL", "b/.project": "Eclipse, Java language server",
         "b/mypy.ini": "mypy", "b/.golangci.yml": "golangci-lint", ".kilocode/mcp.json": "Kilo Code", ".github/hooks/a.json": "GitHub Copilot", "b/uv.toml": "uv",
         ".bazelversion": "Bazelisk", "b/global.json": ".NET SDK", ".octaverc": "Octave", "b/.ssh/rc": "SSH server", ".p4config": "Perforce", "lefthook.toml": "lefthook"}


def test_files_that_tools_obey(cloche, project):
    for name in FILES:
        put(project / name, "x")
    for name in ("x/tasks.json", "config.toml", "x/.vscode/other.json", "envrc", "hgrc", ".github/workflows/a.yml", "venv/.venv/f", "ssh/config", ".env.example", ".jj/x/repo", "sub/.jj/working_copy/repo"):
        put(project / name, "x")
    assert {path: f["what"] for path, f in planted(cloche, project).items()} == FILES


# Of these names nothing runs by itself where they are not at the top of a home or of a repository, or git's own shape says so.
ONLY_PROTECTED = {".gitmodules", ".ripgreprc", ".srt-settings.json", ".git/hooks", ".git/config", ".git/config.worktree", ".git/commondir", ".git/info/attributes",
                  ".config/git", ".config/environment.d", ".config/systemd", ".config/autostart", ".cloche-apply"}
A_FILE_IN = {".vscode": "tasks.json", ".github/hooks": "a.json", ".repo/repo": "main.py", ".config/mise": "config.toml", ".config/fish": "config.fish"}


def test_every_protected_name_is_named_where_it_is_not_protected(cloche, project):
    """Far down, or in a folder that a run made. So who adds a name to one table adds it to the other."""
    page = (REPO / "docs/policy.md").read_text().partition("### Protected names")[2].partition("\n## ")[0]
    names = {name for line in page.splitlines() if line.startswith(("* like SRT", "  `.vscode`", "* in addition")) for name in re.findall("`([^`]+)`", line)}
    assert len(names) > 100
    for name in names - ONLY_PROTECTED:
        put(project / "file/b/c/d" / name.replace("/", "+") / name, "x")
        put(project / "folder/b/c/d" / name.replace("/", "+") / name / A_FILE_IN.get(name, "x"), "x")
    named = {path.split("/")[4].replace("+", "/") for path in planted(cloche, project)}
    missed = names - ONLY_PROTECTED - named
    assert not missed


def test_a_link_in_place_of_such_a_folder(cloche, project):
    put(project / "plain/tasks.json")
    (project / "sub").mkdir()
    (project / "sub/tools").symlink_to("../plain")
    for name in (".vscode", ".cargo"):
        (project / "sub" / name).symlink_to("../plain")
    found = planted(cloche, project)
    assert {path: f["detail"] for path, f in found.items()} == {"sub/.vscode": "a symbolic link", "sub/.cargo": "a symbolic link"}, found


def test_diff_and_apply_name_them(cloche, project):
    """What is not protected is applied, and said."""
    code = "mkdir -p s/.cargo src; for f in .npmrc s/.cargo/config.toml src/main.c; do echo x > $f; done; ln -s ../src s/.mvn"
    assert cloche("run", "--workspace", f"{project}:cow", "--", "sh", "-c", code, cwd=project).ok
    shown = cloche("diff", "--json", cwd=project).json
    noted = {c["path"] for c in shown["changes"] if "tool-runs-it" in c["notes"]}
    assert noted == {".npmrc", "s/.cargo/config.toml", "s/.mvn"}, noted
    applied = cloche("apply", cwd=project)
    assert applied.ok and (project / ".npmrc").exists(), applied
    assert all(f"note: {name}: another program runs what it says" in applied.err for name in noted), applied


def test_names_are_shown_as_text(cloche, project):
    put(project / "a\u202e\x1b[2J/.envrc")
    result = cloche("why", "--planted", cwd=project, pty=True)
    assert "\x1b[2J" not in result.out and "\u202e" not in result.out and ".envrc" in result.out, result
    assert len(planted(cloche, project)) == 1


def test_an_unreadable_folder_is_said(world, has, tmp_path):
    from helpers.runner import Cloche
    person = ordinary_user()
    runner = world.runner(Cloche, "person", person)
    put(runner.project / "open/.envrc")
    put(runner.project / "closed/x")
    (runner.project / "closed").chmod(0)
    try:
        result = runner("why", "--planted", "--json", runner.project)
        if person is not None or os.getuid() != 0:
            assert result.code == 1 and result.json["complete"] is False and len(result.json["planted"]) == 1, result
    finally:
        (runner.project / "closed").chmod(0o755)


@pytest.mark.parametrize("words", [["--planted", "/nowhere"], ["--planted", "--path", "/x"], ["--planted", "a", "b"]])
def test_usage(cloche, project, words):
    result = cloche("why", *words, cwd=project)
    assert result.code == 125 and "cloche:" in result.err, result


# at the end of a run ----------------------------------------------------------------------------------------------------
def test_a_run_says_what_it_left(cloche, project):
    """What was there before is not its doing. (Names that the guard lets through.)"""
    put(project / "old/.tool-versions", "x")
    put(project / "changed/.tool-versions", "x")
    began = (project / "changed/.tool-versions").stat().st_ctime
    probe = project / "probe"
    put(probe)
    while probe.stat().st_ctime - began < 0.05:     # stamps have the clock's tick: leave it behind
        put(probe, "x")
    code = "mkdir new; echo x > new/.tool-versions; echo y > changed/.tool-versions\n" \
           "for i in 1 2 3 4 5 6 7 8 9 10 11; do mkdir $i; echo > $i/sitecustomize.py; done"
    result = cloche.sandbox(code, "sh", flags=["--workspace", f"{project}:rw"], cwd=project)
    assert result.ok and (project / "new/.tool-versions").exists(), result
    lines = [line for line in result.err.splitlines() if "run by" in line]
    assert len(lines) == 10 and "and 3 more" in result.err and "old/" not in result.err, result


def test_a_program_that_is_found_before_yours(cloche, project):
    """In a folder of the project that is on the caller's PATH, as an activated .venv/bin: `git` there is run by whoever types git."""
    put(project / "there/cat")
    put(project / ".venv/bin/true", "old")
    (project / ".venv/bin/true").chmod(0o755)
    time.sleep(0.1)
    code = "for i in there .venv/bin; do echo evil > $i/ls; chmod 755 $i/ls; echo mine > $i/no-other-program; done; echo no > ls"
    env = {"PATH": f"{project}/.venv/bin::.:{project}/no:{os.environ['PATH']}:{project}/there"}
    result = cloche.sandbox(code, "sh", flags=["--workspace", f"{project}:rw"], cwd=project, env=env)
    lines = [line.strip() for line in result.err.splitlines() if "run by" in line]
    assert len(lines) == 1 and lines[0].startswith(f"{project}/.venv/bin/ls: program on your PATH (in place of /"), result
    (project / "behind").symlink_to(".venv")
    result = cloche.sandbox("ln -sf ../../a .venv/bin/cat; cp .venv/bin/ls x; mv x .venv/bin/ls", "sh", flags=["--workspace", f"{project}:rw", "--json"], cwd=project,
                            env={"PATH": f"{project}/behind/bin:{os.environ['PATH']}"})
    found = {os.path.relpath(f["path"], project) for f in result.json["planted"]["found"]}
    assert found == {".venv/bin/cat", ".venv/bin/ls"}, result


def test_the_report_has_it(cloche, project):
    code = "mkdir d; echo > d/sitecustomize.py"
    report = cloche.sandbox(code, "sh", flags=["--workspace", f"{project}:rw", "--json"], cwd=project).json
    assert report["planted"]["complete"] is True and report["planted"]["more"] == 0, report
    paths = {os.path.relpath(f["path"], project) for f in report["planted"]["found"]}
    assert "d/sitecustomize.py" in paths, report
    again = cloche.sandbox("true", "sh", flags=["--workspace", f"{project}:rw", "--json"], cwd=project).json
    assert "planted" in again and report["planted"]["entries"] > 0
    assert "planted" not in cloche.sandbox("true", "sh", flags=["--json"]).json


def test_quiet_says_nothing(cloche, project):
    result = cloche.sandbox("echo > sitecustomize.py", "sh", flags=["--workspace", f"{project}:rw", "--quiet"], cwd=project)
    assert result.ok and "sitecustomize" not in result.err, result


def test_hostile_trees(cloche, project):
    """Deeper than is searched: it ends, and says so. A FIFO with a name that is read does not stop it."""
    at = os.open(project, os.O_RDONLY)
    for _ in range(300):
        os.mkdir("d", dir_fd=at)
        below = os.open("d", os.O_RDONLY, dir_fd=at)
        os.close(at)
        at = below
    os.close(at)
    os.mkfifo(project / ".envrc")
    bare(project / "x", "")
    (project / "x/config").unlink()
    os.mkfifo(project / "x/config")
    (project / "y").mkdir()
    os.mkfifo(project / "y/.git")
    result = cloche("why", "--planted", "--json", project, timeout=60)
    assert result.code == 1 and result.json["complete"] is False, result
    assert {os.path.relpath(f["path"], project) for f in result.json["planted"]} == {"x/config"}, result
    shutil.rmtree(project / "d")
