"""kill -9 of cloche at any moment: nothing remains, and nothing is left half-made in the project."""
import os
import random
import subprocess

import pytest

from helpers import leaks, requirement
from helpers.places import loops
from helpers.runner import wait_for

pytestmark = [requirement("R91", "R20"), pytest.mark.heavy]
BUSY = "(setsid sleep 77777 &); sleep 77777 & echo x > f$$; exec sleep 77777"
SEED = int(os.environ.get("CLOCHE_TEST_SEED", "20240229"))


def nothing_below_us(but=()):
    def look():
        leaks.reap_adopted(set(but))
        return not [pid for pid in leaks.descendants() if pid not in but]
    return wait_for(look)


def kill_at(cloche, seconds, *words):
    """Start, wait @seconds, SIGKILL, and see to it that everything goes."""
    process = cloche.popen("run", *words)
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        pass
    process.kill()
    process.communicate()
    assert nothing_below_us(), f"after {seconds * 1000:.2f} ms: {leaks.descendants()}"
    return process


def assert_clean(world, when):
    left = world.watch.remains()
    assert not left, f"{when}: {left}"
    assert not world.temp_files(), (when, world.temp_files())


@pytest.mark.parametrize("shape", ["plain", "project", "cow", "light", "max", "pty", "json"])
def test_at_random_points(cloche, world, shape):
    flags = {"plain": [], "project": ["--workspace", cloche.project], "cow": ["--workspace", f"{cloche.project}:cow"],
             "light": ["--mode", "light"], "max": ["--mode", "max", "--timeout", "none"], "pty": ["--pty"],
             "json": ["--json"]}[shape]
    (cloche.project / ".git").mkdir()
    (cloche.project / "kept").write_text("kept", encoding="ascii")
    dice = random.Random(f"{SEED}-{shape}")
    for i in range(loops(40)):
        kill_at(cloche, dice.uniform(0, 0.020) if i % 4 else dice.uniform(0.02, 0.12), *flags, "--", "bash", "-c", BUSY)
        ghosts = [p for p in cloche.project.rglob("*") if p.name not in (".git", "kept") and not
                  (shape in ("project",) and p.name.startswith("f"))]
        assert not ghosts, ghosts
        if i % 10 == 9:
            assert_clean(world, f"{shape}, round {i}")
    assert (cloche.project / "kept").read_text() == "kept"
    assert_clean(world, shape)
    if shape == "cow":          # what was written on the copy is kept until discarded: that is its purpose
        subprocess.run(["rm", "-rf", str(cloche.state)], check=False)


@pytest.mark.ordinary
def test_at_random_points_as_an_ordinary_user(cloche, world):
    dice = random.Random(f"{SEED}-ordinary")
    for i in range(loops(40)):
        flags = [["--workspace", cloche.project], ["--mode", "light"]][i % 2]
        kill_at(cloche, dice.uniform(0, 0.025), *flags, "--", "bash", "-c", BUSY)
    assert_clean(world, "ordinary")


def test_the_whole_tree_at_once(cloche, world):
    """cloche, the guest and all inside get SIGKILL in random order: still no ghost in the project."""
    (cloche.project / ".git").mkdir()
    dice = random.Random(f"{SEED}-tree")
    for _ in range(loops(30)):
        process = cloche.popen("run", "--workspace", cloche.project, "--", "bash", "-c",
                               "while :; do mkdir -p .git/hooks .vscode; echo x > .bashrc; done 2>/dev/null")
        try:
            process.wait(dice.uniform(0, 0.06))
        except subprocess.TimeoutExpired:
            pass
        victims = [process.pid, *leaks.descendants(process.pid)]
        dice.shuffle(victims)
        leaks.kill(victims)
        process.communicate()
        assert nothing_below_us()
        assert sorted(p.name for p in cloche.project.rglob("*")) == [".git"], "a ghost file"
    left = [what for what in world.watch.remains() if not what.startswith("cgroup")]
    assert not left, left
    # The janitor that removes the cgroups was among the victims: empty ones may stay, nothing else.
    leaks.remove_empty_cgroups(world.watch.cgroups)
    assert cloche("run", "--", "true").ok
    assert_clean(world, "after the next run")


def test_during_the_end(cloche, world):
    """The kill comes while cloche is tearing down a large sandbox."""
    dice = random.Random(f"{SEED}-end")
    for _ in range(loops(15)):
        kill_at(cloche, dice.uniform(0.03, 0.12), "--workspace", cloche.project, "--", "bash", "-c",
                "for i in 1 2 3 4 5 6 7 8; do sleep 77777 & done; mkdir -p /tmp/a/b/c; exit 0")
    assert_clean(world, "end")


def test_during_a_timeout(cloche, world):
    dice = random.Random(f"{SEED}-timeout")
    for _ in range(loops(10)):
        kill_at(cloche, dice.uniform(0.05, 0.2), "--timeout", "60ms", "--grace", "60ms", "--", "bash", "-c",
                "trap '' TERM; " + BUSY)
    assert_clean(world, "timeout")


def test_sigterm_at_random_points(cloche, world):
    """A polite end is as clean."""
    dice = random.Random(f"{SEED}-term")
    for _ in range(loops(30)):
        process = cloche.popen("run", "--workspace", cloche.project, "--", "bash", "-c", "exec sleep 77777")
        try:
            process.wait(dice.uniform(0, 0.02))
        except subprocess.TimeoutExpired:
            pass
        process.terminate()
        process.communicate(timeout=60)
        assert nothing_below_us()
    assert_clean(world, "SIGTERM")
