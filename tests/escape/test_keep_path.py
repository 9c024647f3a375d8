"""Attacks on a workspace that keeps its path: its own folders around it are the sandbox's (docs/workspace.md)."""
import os

import pytest

from helpers import requirement

pytestmark = requirement("R11")

# Each would have the host run something, or change a file outside; the first line is what a bare run does.
ATTACKS = {
    "a hook": "mkdir -p .git/objects .git/refs .git/hooks; echo 'ref: refs/heads/m' > .git/HEAD; "
              "echo evil > .git/hooks/post-checkout",
    "an editor": "mkdir -p .vscode; echo evil > .vscode/tasks.json",
    "an agent": "mkdir -p .claude; echo evil > .claude/settings.json",
    "a shape": "mkdir -p r/objects r/refs; echo 'ref: refs/heads/m' > r/HEAD; printf '[core]\\n\\tfsmonitor = evil\\n' > r/config",
    "a hard link": "echo evil > linked",
    "around": "mv ../../../a ../../../b; mkdir -p ../p; cd ../../../b/a/p 2>/dev/null; echo evil > .envrc",
    "a new parent": "mv ../../p ../../q; mv .. ../../q; echo evil > .envrc",
}


@pytest.fixture
def deep(cloche):
    """A folder three levels below one that is the sandbox's own inside (/tmp)."""
    folder = cloche.project / "a/p/p"
    folder.mkdir(parents=True)
    outside = cloche.project / "outside"
    outside.write_text("good\n")
    os.link(outside, folder / "linked")
    if cloche.person is not None:
        for path in (cloche.project / "a", folder.parent, folder, outside):
            os.chown(path, cloche.person.pw_uid, cloche.person.pw_gid)
    return folder


def evil(cloche):
    found = []
    for at, _, names in os.walk(cloche.project):
        for name in names:
            with open(os.path.join(at, name), encoding="ascii") as file:
                if "evil" in file.read():
                    found.append(os.path.relpath(os.path.join(at, name), cloche.project))
    return found


@pytest.mark.parametrize("name", ATTACKS)
def test_they_are_real(cloche, deep, name):
    cloche.run(["sh", "-c", ATTACKS[name]], cwd=deep)
    assert evil(cloche)


@pytest.mark.parametrize("name", ATTACKS)
def test_nothing_gets_out(cloche, deep, name):
    result = cloche("run", "--workspace", ".", "--keep-path", "--", "sh", "-c", ATTACKS[name], cwd=deep)
    assert [f for f in evil(cloche) if f != "a/p/p/linked"] == [], result
    assert (cloche.project / "outside").read_text() == "good\n"


def test_folders_around_it_are_held(anyone):
    """They are the sandbox's own, and the way to what is mounted there."""
    folder = anyone.project
    up = folder.parent
    result = anyone("run", "--workspace", ".", "--keep-path", "--", "sh", "-c",
                    f"mv {up} {up}2; mv . ../other; rmdir .; ls -d {up}; echo x > {folder}/.envrc", cwd=folder)
    assert result.out == f"{up}\n" and os.listdir(folder) == [], result


def test_a_wider_writable_folder_opens_nothing(anyone):
    folder = anyone.project / "p"
    folder.mkdir()
    os.chown(folder, anyone.project.stat().st_uid, anyone.project.stat().st_gid)
    result = anyone("run", "--workspace", folder, "--keep-path", "--bind", f"{anyone.project}:rw", "--", "sh", "-c",
                    f"cd /; echo x > {folder}/.envrc; mv {folder} {folder}2; mkdir {folder}/.vscode; touch {folder}/made")
    assert sorted(os.listdir(folder)) == ["made"], result


# folders of agents that are bound by themselves -----------------------------------------------------------------
RESTS = {".claude": ("settings.json", "hooks", "commands", "agents", "skills"), ".codex": ("config.toml",),
         ".gemini": ("settings.json", "commands"), ".config": ("git", "fish", "systemd")}


@pytest.mark.parametrize("there", [False, True])
@pytest.mark.parametrize("folder", RESTS)
def test_a_bound_folder_of_an_agent_keeps_what_it_runs(anyone, folder, there):
    """Where the tree is the folder itself, under its own name inside, another one, or as the workspace."""
    bound = anyone.home / folder
    bound.mkdir(exist_ok=True)
    for name in RESTS[folder] if there else ():
        (bound / name).write_text("yours")
    if anyone.person is not None:
        for path in (bound, *bound.iterdir()):
            os.chown(path, anyone.person.pw_uid, anyone.person.pw_gid)
    code = "touch free; for n in %s; do echo evil > $n; rm -rf $n; mkdir -p $n; mv $n x.$n; done" % " ".join(RESTS[folder])
    for flags in (("--bind", f"{bound}:/home/agent/{folder}:rw", "--workdir", f"/home/agent/{folder}"),
                  ("--bind", f"{bound}:/mnt/x:rw", "--workdir", "/mnt/x"), ("--workspace", bound)):
        result = anyone("run", *flags, "--", "sh", "-c", code)
        left = {p.name for p in bound.iterdir()}
        assert left == {"free", *(RESTS[folder] if there else ())}, result
        assert not there or all((bound / name).read_text() == "yours" for name in RESTS[folder])
        (bound / "free").unlink()
    said = anyone("why", "--bind", f"{bound}:/mnt/x:rw", "--path", f"/mnt/x/{RESTS[folder][0]}", "--op", "write", "--json").json
    assert said["verdict"] == "denied" and said["reason"] == "protected-name", said
