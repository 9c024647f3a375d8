"""What programs beside git obey in a project (issue 13, A): configurations of version control, and the stage of `cloche apply`."""
import os
import shutil
import tempfile
from pathlib import Path

import pytest

from helpers import requirement
from helpers.places import IS_ROOT
from helpers.runner import Runner

pytestmark = requirement("R91", "R82")

# each is read at the next command of its program, and names programs to run (hooks, a pager, a tool for diffs)
# mise remembers that a path is trusted, not what the file said; Helix asks nobody
OBEYED = ["mise.toml", ".mise.toml", "mise.local.toml", ".mise/config.toml", ".config/mise.toml", ".config/mise/config.toml",
          ".helix/languages.toml", ".nvim.lua",
          ".jj/workspace-config.toml", ".jj/repo/config.toml", ".sl/config", ".git/sl/config", ".git/sl/config-git-user", ".git/sl/config-git-repo",
          ".git/lazygit.yml", ".lazygit.yml", ".pijul/config", "_darcs/prefs/defaults"]
PUT = """
import os, sys
from pathlib import Path
for name in sys.argv[1:]:
    try:
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path('x').write_text('evil')
        os.rename('x', name)
    except OSError:
        pass
    try:
        Path(name).write_text('evil')
    except OSError:
        pass
"""


@pytest.mark.parametrize("mode", ["standard", "light"])
def test_configurations_of_version_control_do_not_come_into_being(in_mode, has, mode):
    """.git/ is a repository's at the start; of one that is made inside the end of the run names them."""
    has("git")
    cloche = in_mode(mode)
    assert Runner(cloche.env, cloche.project, cloche.person).run(["git", "init", "-q"]).ok
    result = cloche.sandbox(PUT, "python", args=OBEYED, flags=["--mode", mode, "--workspace", str(cloche.project)], cwd=cloche.project)
    assert result.ok, result
    assert not [name for name in OBEYED if (cloche.project / name).exists()]


@pytest.mark.parametrize("mode", ["standard", "light"])
def test_a_folder_that_is_there_gets_no_configuration(in_mode, mode):
    """Further down too: Mercurial obeys a subrepository's when it is asked about the repository above, and .hgsub makes it one."""
    cloche = in_mode(mode)
    names = [".hgsub", "sub/.hg/hgrc", "sub/.hg/sharedpath", "a/b/.jj/repo/config.toml", "a/.claude/settings.json", "a/.claude/hooks/x",
             ".repo/repo/main.py", ".gclient"]
    # another run makes the folders: so they belong to whoever is inside
    assert cloche.sandbox("mkdir -p sub/.hg a/b/.jj/repo a/.claude a/.hg; printf mine > a/.hg/hgrc", "sh", cwd=cloche.project,
                          flags=["--mode", mode, "--workspace", str(cloche.project)]).ok
    result = cloche.sandbox(PUT, "python", args=[*names, "a/.hg/hgrc", "sub/.hg/dirstate", "a/.claude/notes"],
                            flags=["--mode", mode, "--workspace", str(cloche.project)], cwd=cloche.project)
    assert result.ok, result
    assert not [name for name in names if (cloche.project / name).exists()]
    assert (cloche.project / "a/.hg/hgrc").read_text() == "mine"
    assert (cloche.project / "sub/.hg/dirstate").exists() and (cloche.project / "a/.claude/notes").exists()


def test_configurations_of_version_control_are_not_applied(cloche, has):
    """Not in a repository either that the run made, whose own configuration is harmless."""
    has("git")
    names = [*OBEYED, "new/.git/sl/config", "new/.git/lazygit.yml"]
    code = "import subprocess; subprocess.run(['git', 'init', '-q', 'new'], check=True)\n" + PUT
    result = cloche.sandbox(code, "python", args=names, flags=["--workspace", f"{cloche.project}:cow"], cwd=cloche.project)
    assert result.ok, result
    applied = cloche("apply", "--json", cwd=cloche.project)
    assert applied.code == 2, applied
    assert not [name for name in names if (cloche.project / name).exists()], applied
    assert (cloche.project / "new/.git/config").exists()


# reads what lies in the stage, and writes into it whatever can be written
CHANGE = """
import os, sys, time
print('ready', flush=True)
seen, end = 0, time.time() + 60
while not os.path.exists('done') and time.time() < end:
    for top in [n for n in os.listdir('.') if n.startswith('.cloche')]:
        for at, _, files in os.walk(top):
            for name in files:
                path = os.path.join(at, name)
                try:
                    if open(path).read() == 'looked at\\n':
                        seen += 1
                        open(path, 'w').write('evil\\n')
                except OSError:
                    pass
print('seen', seen)
"""


@pytest.fixture
def elsewhere():
    """A folder for state on another mount than projects: the stage has to be in the project."""
    path = Path(tempfile.mkdtemp(dir="/dev/shm"))
    yield path
    shutil.rmtree(path)


@pytest.mark.parametrize("mode", ["standard", "light"])
def test_a_second_sandbox_does_not_change_what_is_being_applied(in_mode, elsewhere, mode):
    """Its owner looked at the change and names the file; another sandbox of the same project finds the stage there meanwhile."""
    cloche = in_mode(mode)
    project, env = cloche.project, {"XDG_STATE_HOME": str(elsewhere)}
    if os.stat(elsewhere).st_dev == os.stat(project).st_dev:
        pytest.skip("/dev/shm is on the project's file system")
    if cloche.person is not None and IS_ROOT:
        os.chown(elsewhere, cloche.person.pw_uid, cloche.person.pw_gid)
    made = cloche("run", "--workspace", f"{project}:cow", "--", "sh", "-c",
                  "echo looked at > .envrc; for i in $(seq 500); do echo $i > z$i; done", env=env, cwd=project)
    assert made.ok, made
    process = cloche.popen("run", "--mode", mode, "--workspace", project, "--", "python3", "-c", CHANGE, cwd=project)
    assert process.stdout.readline() == b"ready\n"
    # .envrc is staged first and lies there while the others are copied
    applied = cloche("apply", "--include-protected", "--", ".envrc", *(f"z{i}" for i in range(1, 501)), env=env, cwd=project)
    (project / "done").touch()
    out, _ = process.communicate(timeout=90)
    assert applied.ok and (project / ".envrc").read_text() == "looked at\n", (applied, out)
    assert b"seen 0" not in out, "the stage was not there long enough to be found"
    assert not [p for p in project.iterdir() if p.name.startswith(".cloche")]


def test_the_stage_is_not_prepared_by_a_sandbox(cloche, elsewhere):
    """Neither a folder nor a link of the stage's name comes into being."""
    code = ("import os\nfor f in (lambda: os.mkdir('.cloche-apply'), lambda: os.symlink('/tmp', '.cloche-apply'),\n"
            "          lambda: (os.mkdir('q'), os.rename('q', '.cloche-apply'))):\n"
            "    try: f(); print('made')\n    except OSError: pass")
    for verb in ("run", "srt"):
        flags = ["--workspace", str(cloche.project)] if verb == "run" else ["--settings", str(elsewhere / "s")]
        (elsewhere / "s").write_text('{"network": {"allowedDomains": [], "deniedDomains": []},'
                                     ' "filesystem": {"denyRead": [], "allowWrite": ["."], "denyWrite": []}}')
        result = cloche.sandbox(code, "python", verb=verb, flags=flags, cwd=cloche.project)
        assert result.ok and "made" not in result.out, result
        assert not (cloche.project / ".cloche-apply").exists()
