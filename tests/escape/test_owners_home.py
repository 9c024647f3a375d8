"""As root in mode light the sandbox runs as the owner of the folder: that user's places for credentials are closed too.

The attack: `cloche run --mode light --workspace /home/alice/project` as root read alice's ~/.ssh.
"""
import os

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
