"""As root in mode light the sandbox runs as the owner of the folder: that user's places for credentials are closed too.

The attack: `cloche run --mode light --workspace /home/alice/project` as root read alice's ~/.ssh; and what alice's configuration leads
to in the project, her git and shell then run.
"""
import os
import subprocess

import pytest

from helpers import requirement

pytestmark = [requirement("R14"), pytest.mark.root]

UID = 54321


@pytest.fixture
def alice(cloche):
    """A home of an account that only this test's own view of /etc/passwd has, and cloche in that view."""
    home = cloche.tmp.parent / "alice"
    (home / ".ssh").mkdir(parents=True)
    (home / ".ssh" / "id").write_text("the key", encoding="ascii")
    (home / "project").mkdir()
    for path in (home, home / ".ssh", home / ".ssh" / "id", home / "project"):
        os.chown(path, UID, UID)
    for above in home.parents:
        if above.stat().st_uid == 0 and cloche.tmp.parent in (above, *above.parents):
            above.chmod(0o755)
    passwd = cloche.tmp.parent / "passwd"
    passwd.write_text(f"root:x:0:0:root:/root:/bin/sh\nalice:x:{UID}:{UID}::{home}:/bin/sh\n", encoding="ascii")
    passwd.chmod(0o644)
    script = f'mount --bind {passwd} /etc/passwd && exec "$@"'
    return home, cloche.behind("unshare", "-m", "--", "/bin/sh", "-c", script, "sh")


@pytest.mark.parametrize("folder", [["--workspace"], ["--workspace", None, "--allow-write"]], ids=["workspace", "rule"])
def test_the_owner_of_the_folder(alice, folder):
    home, cloche = alice
    flags = [f"{home}/project" if word is None else word for word in folder] + [f"{home}/project"]
    said = cloche("run", "--mode", "light", *flags, "--", "/bin/sh", "-c", f"id -u; cat {home}/.ssh/id; touch made",
                  cwd=home / "project")
    assert said.out.split() == [str(UID)], said
    assert (home / "project" / "made").exists(), said
    why = cloche("why", "--mode", "light", *flags, "--path", f"{home}/.ssh/id", cwd=home / "project")
    assert why.code == 1 and "credential-place" in why.out, why


def test_a_whole_home_of_somebody_elses(alice):
    home, cloche = alice
    said = cloche("run", "--workspace", home, "--", "cat", "/workspace/.ssh/id", cwd="/")
    assert "the key" not in said.out, said


def test_an_owner_without_an_account_is_said(cloche):
    project = cloche.project / "p"
    project.mkdir()
    os.chown(project, UID, UID)
    said = cloche("run", "--mode", "light", "--workspace", project, "--", "true")
    assert "has no account" in said.err, said


@pytest.mark.parametrize("flags", [["--mode", "light"], ["--view", "host"]], ids=["light", "host"])
def test_no_home_at_all_is_said(cloche, flags):
    state = cloche.tmp.parent / "stranger"
    state.mkdir()
    os.chown(state, UID, UID)
    words = ["setpriv", "--reuid", str(UID), "--regid", str(UID), "--clear-groups", "env", "-u", "HOME",
             f"XDG_STATE_HOME={state}"]
    said = cloche.behind(*words)("run", *flags, "--", "true", cwd="/")
    assert "no home is known" in said.err, said


LED = {".gitconfig": "[core]\n\thooksPath = .githooks\n[include]\n\tpath = ~/project/more\n[remote]\n\tpushDefault = fork\n",
       ".config/git/config": "[core]\n\tfsmonitor = ~/project/watch/w\n"}
MADE = {".githooks/pre-commit": 0o755, "watch/w": 0o755, "own/h": 0o755, "rc": 0o644, "more": 0o644}


@pytest.mark.parametrize("flags", [[], ["--mode", "light"], ["--view", "host"]], ids=["standard", "light", "host"])
def test_what_the_owner_of_the_folder_runs_there(alice, has, flags):
    """Alice's git and shell obey alice's configuration, not root's: what that leads to in the project is closed."""
    has("git")
    home, cloche = alice
    project = home / "project"
    for path, text in LED.items():
        (home / path).parent.mkdir(parents=True, exist_ok=True)
        (home / path).write_text(text, encoding="ascii")
    for path, mode in MADE.items():
        (project / path).parent.mkdir(exist_ok=True)
        (project / path).write_text("good\n", encoding="ascii")
        (project / path).chmod(mode)
    (home / ".bashrc").symlink_to("project/rc")
    subprocess.run(["git", "init", "-q", "."], cwd=project, check=True)
    with open(project / ".git/config", "a", encoding="ascii") as file:
        file.write("[core]\n\thooksPath = ~/project/own\n[remote \"origin\"]\n\turl = https://h/x\n")
    subprocess.run(["chown", "-hR", f"{UID}:{UID}", home], check=True)
    place = ["--allow-write", project] if "host" in flags else ["--workspace", f"{project}:rw"]
    script = "export HOME=/tmp; git remote add fork https://evil/x; git remote add other https://h/y; " + "".join(
        f"echo evil >> {path}; echo evil > x; mv -f x {path}; rm -f {path}; " for path in MADE)
    said = cloche("run", *flags, *place, "--", "sh", "-c", script, cwd=project)
    assert {path: (project / path).read_text(encoding="ascii") for path in MADE} == {path: "good\n" for path in MADE}, said
    told = (project / ".git/config").read_text(encoding="ascii")
    assert "fork" not in told and ("light" in flags or "other" in told), said
