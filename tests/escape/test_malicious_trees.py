"""A project folder is hostile input: links, FIFOs and sockets wherever cloche looks, and a racing renamer."""
import os
import shutil
import uuid

import pytest

from helpers import requirement
from helpers.places import loops
from helpers.trees import KINDS, TOUCHED, Exchanger

pytestmark = requirement("R11", "R26")


@pytest.fixture
def outside(world, cloche):
    """A directory of the host with a secret, that nothing inside may read or change."""
    path = world.root / "outside"
    path.mkdir()
    path.joinpath("secret").write_text(f"SECRET-{uuid.uuid4().hex}", encoding="ascii")
    path.joinpath("linked").write_text("linked", encoding="ascii")
    path.joinpath("hooks").mkdir()
    return path


def snapshot(path):
    return {str(p.relative_to(path)): (p.lstat().st_mode, p.lstat().st_size,
                                       p.lstat().st_mtime_ns) for p in path.rglob("*")}


READ_ALL = """
import os, sys
found = []
for base, dirs, files in os.walk('/workspace', followlinks=False):
    for name in dirs + files:
        path = os.path.join(base, name)
        if os.path.islink(path):
            for deeper in ('', '/secret', '/passwd', '/shadow'):
                try:
                    fd = os.open(path + deeper, os.O_RDONLY | os.O_NONBLOCK)
                    found.append(os.read(fd, 4000)); os.close(fd)
                except OSError: pass
            for deeper in ('', '/planted', '/hooks/planted'):
                try:
                    fd = os.open(path + deeper, os.O_WRONLY | os.O_NONBLOCK | os.O_CREAT, 0o600)
                    os.write(fd, b'EVIL'); os.close(fd)
                except OSError: pass
sys.stdout.buffer.write(b''.join(found))
"""


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", [".git", ".git/hooks", ".vscode", ".bashrc", ".claude/commands"])
def test_hostile_thing_at_a_protected_name(cloche, outside, project, kind, name):
    path = project / name
    path.parent.mkdir(exist_ok=True)
    KINDS[kind](path, outside)
    before = snapshot(outside)
    result = cloche.sandbox(READ_ALL, flags=["--workspace", project], timeout=60)
    assert result.code in (0, 125), result
    if result.code == 125:
        assert name in result.err or path.name in result.err, f"a refusal names the thing: {result!r}"
    assert b"SECRET-" not in result.out_bytes and b"root:$" not in result.out_bytes, result
    assert snapshot(outside) == before, "something outside changed"
    path.chmod(0o700) if kind.startswith("unreadable") else None


def test_hostile_things_at_all_names_at_once(cloche, outside, project):
    kinds = list(KINDS)
    for i, name in enumerate(sorted(TOUCHED, key=len)):
        path = project / name
        if not path.parent.is_dir() or path.parent.is_symlink():
            continue
        if name in (".git", ".claude"):
            path.mkdir()
        else:
            KINDS[kinds[i % len(kinds)]](path, outside)
    before = snapshot(outside)
    result = cloche.sandbox(READ_ALL, flags=["--workspace", project])
    assert result.code in (0, 125), result
    assert b"SECRET-" not in result.out_bytes
    assert snapshot(outside) == before


@pytest.mark.parametrize("kind", [k for k in KINDS if "symlink" in k or k in ("fifo", "socket", "empty file")])
def test_the_workspace_itself_is_a_hostile_thing(cloche, outside, project, kind):
    """A symlink as --workspace is the caller's own choice and followed once, by us; never to / or a system folder."""
    path = project / "ws"
    KINDS[kind](path, outside)
    before = snapshot(outside)
    result = cloche("run", "--workspace", f"{path}:ro", "--", "sh", "-c", "ls; cat shadow", timeout=60)
    if kind not in ("symlink to a host directory", "symlink upwards"):
        assert result.code == 125, result
    assert snapshot(outside) == before


def test_a_link_inside_to_the_outside_leads_nowhere(cloche, outside, project, bare):
    (project / "l").symlink_to(outside / "secret")
    (project / "d").symlink_to(outside)
    read = "print(open('l').read(), open('d/secret').read())"
    assert "SECRET-" in bare(read, cwd=project).out
    for kind in ("rw", "ro"):
        result = cloche.sandbox(read, flags=["--workspace", f"{project}:{kind}"])
        assert not result.ok and "SECRET-" not in result.out, result


def test_a_link_made_inside_is_only_a_link(cloche, outside, project):
    result = cloche("run", "--workspace", project, "--", "sh", "-c",
                    f"ln -s {outside}/secret l; ln -s / r; cat l; cat r{outside}/secret")
    assert "SECRET" not in result.out
    assert os.readlink(project / "l") == str(outside / "secret")


@pytest.mark.parametrize("source", ["/etc/passwd", "/usr/bin/env", "/tmp/own"])
def test_hard_links_and_moves_across_the_border_fail(cloche, project, source):
    """link(2) and rename(2) between the project and the rest of what is visible: other file systems, or refused."""
    code = ("import os,sys\nopen('/tmp/own', 'w').close()\n"
            "for f in (os.link, os.rename, lambda a, b: os.link('/proc/self/root' + a, b)):\n"
            " try: f(sys.argv[1], 'here')\n except OSError: pass\n")
    result = cloche.sandbox(code, flags=["--workspace", project], args=[source])
    assert result.ok and not list(project.iterdir()), result


@requirement("R11")
def test_hard_link_farm_around_the_workspace(cloche, outside, project):
    """Writing to a hard link of a protected file makes a copy: the protected file stays."""
    (project / ".git/hooks").mkdir(parents=True)
    (project / ".git/hooks/real").write_text("#!/bin/sh\n", encoding="ascii")
    for i in range(50):
        os.link(project / ".git/hooks/real", project / f"alias{i}")
    result = cloche("run", "--workspace", project, "--json", "--", "sh", "-c",
                    "for f in alias*; do echo evil >> $f; done; true")
    assert result.json["exit_code"] == 0 and (project / "alias7").read_text() == "#!/bin/sh\nevil\n"
    assert (project / ".git/hooks/real").read_text() == "#!/bin/sh\n", "a hook was rewritten through a hard link"


def test_symlink_farm(cloche, outside, project):
    """40 links in a row, loops, links through links: nothing follows them out, nothing hangs."""
    last = outside / "secret"
    for i in range(38):
        (project / f"l{i}").symlink_to(last)
        last = project / f"l{i}"
    (project / "a").symlink_to("b")
    (project / "b").symlink_to("a")
    deep = project
    for i in range(30):
        deep = deep / f"d{i}"
        deep.mkdir()
        (deep / "up").symlink_to("../" * (i + 40))
        (deep / ".git").symlink_to(outside)
    result = cloche.sandbox(READ_ALL, flags=["--workspace", project])
    assert result.code in (0, 125) and b"SECRET-" not in result.out_bytes, result
    assert not (outside / "hooks/planted").exists() and not (outside / "planted").exists()


# races ---------------------------------------------------------------------------------------------------------
PROBE = ("for p in secret .git/secret hooks/secret; do cat $p; done; cat /etc/shadow; ls -A; "
         "echo EVIL > planted; echo EVIL > .git/planted; echo EVIL > .git/hooks/planted; true")


@pytest.mark.heavy
@pytest.mark.parametrize("what", ["workspace", "git", "hooks", "parent", "bind"])
def test_racing_renamer(cloche, outside, world, what):
    """renameat2(RENAME_EXCHANGE) swaps a folder with a link to the outside while cloche starts, over and over.

    The caller names PATH; whoever may rename there decides what is at PATH. What must never happen: that the sandbox
    reaches something that was at no moment below PATH as a real directory, or writes a protected place.
    """
    arena = world.root / "arena"
    (arena / "p/.git/hooks").mkdir(parents=True)
    (arena / "p/inside").write_text("fine", encoding="ascii")
    swapped, flags = {
        # Here the link *is* what the caller named, half of the time: only refusals and the folder itself are right.
        "workspace": (arena / "p", ["--workspace", f"{arena}/p"]),
        "git": (arena / "p/.git", ["--workspace", f"{arena}/p"]),
        "hooks": (arena / "p/.git/hooks", ["--workspace", f"{arena}/p"]),
        "parent": (arena, ["--workspace", f"{arena}/p"]),
        "bind": (arena / "p/.git", ["--bind", f"{arena}/p/.git:/mnt/g:rw", "--workspace", f"{arena}/p"]),
    }[what]
    shutil.copytree(arena / "p", outside / "p")
    (outside / "p/secret").write_text((outside / "secret").read_text(), encoding="ascii")
    bystander = world.root / f"{swapped.name}-link"
    if what in ("git", "hooks"):
        bystander = world.root / "link"
        bystander.symlink_to(outside)
    else:
        bystander.symlink_to(outside / "p" if what == "workspace" else outside)
    rounds = loops(40)
    codes = {}
    named_outside = what in ("workspace", "parent", "bind")     # the caller's own words may lead there
    with Exchanger(cloche, swapped, bystander):
        for _ in range(rounds):
            result = cloche("run", *flags, "--", "sh", "-c", PROBE)
            codes[result.code] = codes.get(result.code, 0) + 1
            assert "root:" not in result.out, result
            if not named_outside:
                assert "SECRET-" not in result.out, result
    assert set(codes) <= {0, 125}, codes
    # Whoever swaps .git itself from outside can write its hooks without us; elsewhere the protection must hold.
    own = arena.rglob("hooks/planted") if what in ("workspace", "parent") else []
    hooks = [*outside.rglob("hooks/planted"), *own]
    assert not hooks, f"a protected place was written through the race: {hooks}"
    if not named_outside:
        assert not [p for p in outside.rglob("planted")], "written outside through the race"
        assert (outside / "secret").read_text().startswith("SECRET-")


def test_mount_target_inside_a_hostile_workspace(cloche, outside, project, world):
    """--bind DEST below the workspace where a link lies: the mount does not land outside."""
    data = world.root / "data"
    data.mkdir()
    (data / "d").write_text("data", encoding="ascii")
    (project / "vendor").symlink_to("/usr")
    (project / "deep").symlink_to(outside)
    for dest in ("/workspace/vendor", "/workspace/deep/hooks", "/workspace/vendor/bin"):
        result = cloche("run", "--workspace", project, "--bind", f"{data}:{dest}", "--", "sh", "-c",
                        "ls /usr/bin | head -3; id -u")
        assert result.code in (0, 125), result
        if result.ok:
            assert "1000" in result.out
    assert sorted(p.name for p in outside.iterdir()) == ["hooks", "linked", "secret"]


def test_names_that_look_like_protected_ones(cloche, project):
    """Case, trailing slashes, dots and unicode do not get around a protected name."""
    for name in (".git//hooks", ".git/./hooks", "x/../.git/hooks", ".git/hooks/", ".git/hooks/../hooks"):
        (project / ".git").mkdir()
        cloche("run", "--workspace", project, "--", "sh", "-c",
               f"mkdir -p x .git; mkdir -p {name}; echo evil > {name}/pre-commit")
        assert not (project / ".git/hooks").exists(), name
        for left in ("x", ".git"):
            if (project / left).is_dir():
                os.rmdir(project / left)


def test_protected_directory_cannot_be_swapped_by_its_parent(cloche, project):
    """mv .git elsewhere, make a new one with hooks, move it back."""
    (project / ".git/hooks").mkdir(parents=True)
    (project / ".git/hooks/real").write_text("real", encoding="ascii")
    (project / ".git/config").write_text("real", encoding="ascii")
    cloche("run", "--workspace", project, "--", "sh", "-c",
           "mv .git old; mkdir new; mkdir new/hooks; echo evil > new/hooks/evil; mv new .git; cp -r .git copy; "
           "rm -rf .git; mv copy .git; echo evil > old/hooks/evil; echo evil > old/config")
    assert (project / ".git/hooks/real").read_text() == "real"
    assert sorted(os.listdir(project / ".git/hooks")) == ["real"]
    assert (project / ".git/config").read_text() == "real"


@pytest.mark.parametrize("depth,flags", [(1, []), (2, []), (3, ["--settings", "deep.yaml"]),
                                         (6, ["--settings", "deep.yaml"])])
def test_nested_repositories_are_protected_too(cloche, project, depth, flags):
    """As deep as protect-depth says (docs/policy.md); 3 by default."""
    (cloche.cwd / "deep.yaml").write_text("version: 1\nfilesystem:\n  protect-depth: 10\n", encoding="ascii")
    nested = project.joinpath(*[f"d{i}" for i in range(depth)])
    (nested / ".git/hooks").mkdir(parents=True)
    (nested / ".git/config").write_text("real", encoding="ascii")
    inside = "/workspace/" + str(nested.relative_to(project))
    cloche("run", *flags, "--workspace", project, "--", "sh", "-c",
           f"cd {inside}; echo evil > .git/hooks/x; echo evil > .git/config")
    assert not list((nested / ".git/hooks").iterdir()) and (nested / ".git/config").read_text() == "real"


def test_tree_of_thousands_of_levels(cloche, project, bare):
    """Deeper than any path: cloche starts over it, works in it, and ends."""
    code = "import os,sys\nfor i in range(int(sys.argv[1])):\n os.mkdir('d'); os.chdir('d')\nprint('made')"
    # In a bound folder every new name passes the guard, which looks at all parents: fewer levels, beyond PATH_MAX.
    assert cloche.sandbox(code, flags=["--workspace", project], args=["2500"]).out == "made\n"
    (project / "more").mkdir()
    assert bare(code, args=["5000"], cwd=project / "more").ok
    assert sorted(cloche("run", "--workspace", project, "--", "ls").out.split()) == ["d", "more"]
    result = cloche("run", "--workspace", f"{project}:cow", "--json", "--", "ls")
    assert result.ok, result
    assert cloche("discard", result.json["workspace"]["id"]).ok


def test_a_chain_of_links_from_a_protected_place(cloche, project):
    """Each folder leads to the next; they are followed no further than a path could be."""
    (project / ".vscode").mkdir()
    (project / ".vscode/a").symlink_to("../d/0")
    for i in range(2500):
        (project / f"d/{i}").mkdir(parents=True)
        (project / f"d/{i}/a").symlink_to(f"../{i + 1}")
    result = cloche("run", "--workspace", project, "--", "sh", "-c", "echo 1 > d/3/x || echo closed; echo 1 > d/2000/x && echo open")
    assert result.ok and result.out == "closed\nopen\n", result


def test_a_repository_that_names_too_many_programs(cloche, project):
    """Refused at once: that took minutes, and grew with the square of their number."""
    (project / "n/.git/objects").mkdir(parents=True)
    (project / "n/.git/refs").mkdir()
    (project / "n/.git/HEAD").write_text("ref: refs/heads/main\n")
    (project / "n/.git/config").write_text("[core]\n" + "".join(f"pager = a/{i}\n" for i in range(60000)))
    result = cloche("run", "--workspace", project, "--", "true", timeout=200)
    assert result.code == 125 and "guard.plan.limit" in result.err, result


def test_many_protected_places(cloche, project):
    """Two hundred repositories side by side: all covered, or refused; never only the first hundred."""
    for i in range(200):
        (project / f"r{i}/.git/hooks").mkdir(parents=True)
    result = cloche("run", "--workspace", project, "--", "sh", "-c",
                    "for r in r*; do echo evil > $r/.git/hooks/x; done 2>/dev/null; true")
    assert result.code in (0, 125), result
    assert not list(project.glob("r*/.git/hooks/x"))
