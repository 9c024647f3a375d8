"""A rule names a path; what is inside puts a link in its way, and the next run follows it (issue 13, A6).

Each attack has two runs. The first plants: it may write the project, and leaves a link to what lies outside of it. The second has
the same rules and writes through the name. Nothing outside may have changed, and where a run refuses it says which link it met.
"""
import json
import os
import shutil
import socket

import pytest

from helpers import requirement

pytestmark = requirement("R11", "R26")

WRITE = "echo PWNED > {name}/pwned; echo PWNED >> {name}/there; rm -f {name}/gone; true"


@pytest.fixture
def victim(anyone):
    """A folder beside the project, of the same person."""
    path = anyone.project.parent / "victim"
    path.mkdir()
    for name in ("there", "gone", "secret"):
        path.joinpath(name).write_text(f"SECRET-{name}", encoding="ascii")
    own(anyone, path, *path.iterdir())
    return path


def own(person, *paths):
    if person.person is not None:
        for path in paths:
            os.chown(path, person.person.pw_uid, person.person.pw_gid, follow_symlinks=False)


def make(person, path):
    """A folder, with those on the way, that belongs to the person."""
    for each in (*reversed(path.parents), path):
        if not each.exists():
            each.mkdir()
            own(person, each)
    return path


def snapshot(path):
    return {str(p.relative_to(path)): (p.lstat().st_mode, p.read_bytes() if p.is_file() else None) for p in path.rglob("*")}


def settings(person, **filesystem):
    path = person.project.parent / "rules.json"
    path.write_text(json.dumps({"network": {"allowedDomains": [], "deniedDomains": []},
                                "filesystem": {"denyRead": [], "allowWrite": ["."], "denyWrite": [], **filesystem}}),
                    encoding="utf-8")
    return path


def srt(person, rules, line, **kw):
    return person("srt", "-s", rules, "-c", line, cwd=person.project, **kw)


# --- the attack of the audit: [".", "./build"] -----------------------------------------------------------------
HOST = ["--view", "host", "--allow-write", ".", "--allow-write", "./build"]


@pytest.mark.parametrize("target", ["../victim", "{victim}", "a/b", "..//victim/."], ids=["relative", "absolute", "chain", "odd"])
def test_host_view(anyone, victim, target):
    before = snapshot(victim)
    plant = f"ln -s {target.format(victim=victim)} build"
    if target == "a/b":
        plant = "ln -s a/b build; ln -s .. a; mkdir x; ln -s ../../victim x/b; rm a; ln -s x a"
    first = anyone("run", *HOST, "--", "sh", "-c", plant, cwd=anyone.project)
    assert first.code == 0 and (anyone.project / "build").is_symlink(), first
    second = anyone("run", *HOST, "--", "sh", "-c", WRITE.format(name="build"), cwd=anyone.project)
    assert snapshot(victim) == before, "the second run wrote through the link"
    assert second.code == 125 and "[policy.link]" in second.err and "build" in second.err, second


def test_cloche_srt(anyone, victim):
    before = snapshot(victim)
    rules = settings(anyone, allowWrite=[".", "./build"])
    first = srt(anyone, rules, "ln -s ../victim build")
    assert first.code == 0 and (anyone.project / "build").is_symlink(), first
    second = srt(anyone, rules, WRITE.format(name="build") + "; echo here > here")
    assert snapshot(victim) == before, "the second run wrote through the link"
    assert "build" in second.err, "it says what it left out"
    assert (anyone.project / "here").exists(), "SRT leaves such a place read-only and goes on"


def test_light(in_mode):
    person = in_mode("light")
    outside = make(person, person.project.parent / "victim")
    flags = ["--mode", "light", "--allow-write", ".", "--allow-write", "./build"]
    first = person("run", *flags, "--", "ln", "-s", "../victim", "build", cwd=person.project)
    assert first.code == 0 and (person.project / "build").is_symlink(), first
    second = person("run", *flags, "--", "sh", "-c", "echo PWNED > build/pwned", cwd=person.project)
    assert not list(outside.iterdir()), "light mode followed an existing link"
    assert second.code == 125 and "[policy.link]" in second.err, second


def test_private_view_writable_bind(anyone, victim):
    before = snapshot(victim)
    make(anyone, anyone.project / "build")
    flags = ["--workspace", anyone.project, "--bind", f"{anyone.project}/build:/mnt/build:rw"]
    first = anyone("run", *flags[:2], "--", "sh", "-c", "mv build old && ln -s ../victim build")
    assert first.code == 0 and (anyone.project / "build").is_symlink(), first
    anyone("run", *flags, "--", "sh", "-c", WRITE.format(name="/mnt/build"))
    assert snapshot(victim) == before


@pytest.mark.parametrize("how", ["bind", "allow-read"])
def test_what_is_shown_read_only_is_not_a_way_to_read(anyone, victim, how):
    """The key of somebody who shows one folder of a project that the sandbox writes."""
    make(anyone, anyone.project / "data")
    more = {"bind": ["--bind", f"{anyone.project}/data:/mnt/data:ro"],
            "allow-read": ["--deny-read", victim, "--allow-read", f"{anyone.project}/data"]}[how]
    flags = ["--workspace", anyone.project, *more]
    anyone("run", *flags[:2], "--", "sh", "-c", "mv data old && ln -s ../victim data")
    assert (anyone.project / "data").is_symlink()
    result = anyone("run", *flags, "--", "sh", "-c", f"cat /mnt/data/secret {victim}/secret {anyone.project}/data/secret")
    assert "SECRET" not in result.out, result


def test_component_in_the_middle(anyone, victim):
    make(anyone, victim / "out")
    make(anyone, anyone.project / "pkg" / "out")
    flags = ["--view", "host", "--allow-write", ".", "--allow-write", "pkg/out"]
    anyone("run", *flags, "--", "sh", "-c", "mv pkg was; ln -s ../victim pkg", cwd=anyone.project)
    if not (anyone.project / "pkg").is_symlink():     # the name is held while it is open itself
        (anyone.project / "pkg").rename(anyone.project / "was")
        (anyone.project / "pkg").symlink_to("../victim")
    before = snapshot(victim)
    anyone("run", *flags, "--", "sh", "-c", WRITE.format(name="pkg/out"), cwd=anyone.project)
    assert snapshot(victim) == before


def test_workspace_below_what_another_rule_opens(anyone, victim):
    before = snapshot(victim)
    flags = ["--view", "host", "--allow-write", anyone.project, "--workspace", anyone.project / "sub"]
    anyone("run", "--workspace", anyone.project, "--", "ln", "-s", "../victim", "sub")
    anyone("run", *flags, "--", "sh", "-c", WRITE.format(name="."))
    assert snapshot(victim) == before


# --- what SRT's settings open by themselves --------------------------------------------------------------------
@pytest.mark.parametrize("place, depth", [(".npm/_logs", "last"), (".npm/_logs", "parent"), (".claude/debug", "last")])
def test_srt_default_places(anyone, victim, place, depth):
    """Run 1 may write ~/.npm, as installs want it; run 2 has the defaults only."""
    make(anyone, victim / "_logs")
    make(anyone, victim / "debug")
    before = snapshot(victim)
    parent, last = place.split("/")
    make(anyone, anyone.home / parent)
    wide = settings(anyone, allowWrite=["~/" + parent])
    if depth == "last":
        planted = srt(anyone, wide, f"ln -s {victim} ~/{place}")
    else:
        wide = settings(anyone, allowWrite=["~"])
        planted = srt(anyone, wide, f"rmdir ~/{parent} && ln -s {victim} ~/{parent}")
    assert planted.code == 0, planted
    result = srt(anyone, settings(anyone, allowWrite=[]), f"touch {victim}/x; " + WRITE.format(name="~/" + place))
    assert snapshot(victim) == before
    assert result.code == 0 and place in result.err, f"left out, and said: {result!r}"


def test_srt_default_places_still_work(anyone):
    make(anyone, anyone.home / ".npm" / "_logs")
    assert srt(anyone, settings(anyone), "echo x > ~/.npm/_logs/log").code == 0
    assert (anyone.home / ".npm/_logs/log").read_text(encoding="ascii") == "x\n"


# --- root's own files ------------------------------------------------------------------------------------------
@pytest.mark.root
@pytest.mark.parametrize("view", ["private", "host", "srt"])
def test_root_never_writes_what_is_roots_behind_a_link(cloche, world, view):
    """The link lies where no rule of this run lets anything be written: another run, or another user, put it there."""
    etc = world.root / "etc"       # stands for a folder of the system, which is root's
    etc.mkdir(mode=0o755)
    link = cloche.project / "build"
    link.symlink_to("/etc" if view == "host" else etc)
    if view != "host":
        os.chown(link, 1000, 1000, follow_symlinks=False)
    name = f"cloche-test-{os.getpid()}"
    try:
        if view == "private":
            result = cloche("run", "--bind", f"{link}:/mnt/b:rw", "--", "touch", f"/mnt/b/{name}")
        elif view == "host":
            result = cloche("run", "--view", "host", "--allow-write", link, "--", "touch", f"{link}/{name}")
        else:
            result = srt(cloche, settings(cloche, allowWrite=["build"]), f"touch build/{name}")
        assert not os.path.exists(f"/etc/{name}") and not (etc / name).exists(), result
        assert result.code != 0
    finally:
        if os.path.exists(f"/etc/{name}"):
            os.unlink(f"/etc/{name}")


# --- what goes on working --------------------------------------------------------------------------------------
def test_links_of_ones_own_are_followed_once(anyone):
    """A link outside of all that runs can write, and one that stays within it, mean what they lead to."""
    real = make(anyone, anyone.project.parent / "real")
    link = anyone.project.parent / "link"
    link.symlink_to("real")
    own(anyone, link)
    result = anyone("run", "--view", "host", "--allow-write", link, "--", "sh", "-c", f"echo x > {link}/f", cwd=anyone.project)
    assert result.code == 0 and (real / "f").exists(), result
    make(anyone, anyone.project / "dist-1")
    (anyone.project / "dist").symlink_to("dist-1")
    own(anyone, anyone.project / "dist")
    result = anyone("run", "--view", "host", "--allow-write", ".", "--allow-write", "dist", "--", "sh", "-c", "echo x > dist/f",
                    cwd=anyone.project)
    assert result.code == 0 and (anyone.project / "dist-1/f").exists(), result


def test_a_link_from_one_open_folder_to_another(anyone, victim):
    (anyone.project / "build").symlink_to(victim)
    own(anyone, anyone.project / "build")
    result = anyone("run", *HOST, "--allow-write", victim, "--", "sh", "-c", "echo x > build/f", cwd=anyone.project)
    assert result.code == 0 and (victim / "f").exists(), result
    shutil.rmtree(victim)


# --- other rules than those that the planting run had ----------------------------------------------------------
@pytest.mark.parametrize("how", ["allow-write", "bind", "workspace", "light"])
def test_a_link_in_the_project_is_not_followed_by_other_rules(in_mode, anyone, how):
    """Run 1 has the project; run 2 names one folder of it, and what lies there now leads out of it."""
    person = in_mode("light") if how == "light" else anyone
    outside = make(person, person.project.parent / "victim")
    (person.project / "build").symlink_to("../victim")
    own(person, person.project / "build")
    flags = {"allow-write": ["--view", "host", "--allow-write", "build"], "bind": ["--bind", "build:/mnt/b:rw"],
             "workspace": ["--workspace", "build"], "light": ["--mode", "light", "--workspace", "build"]}[how]
    result = person("run", *flags, "--", "sh", "-c", "touch x build/x /mnt/b/x /workspace/x", cwd=person.project)
    assert not list(outside.iterdir()), result
    assert result.code == 125 and "[policy.link]" in result.err, result


@pytest.mark.parametrize("view", ["private", "host"])
def test_a_link_at_the_name_of_a_socket(anyone, view):
    """`--allow-unix-socket ./app.sock`, and the project has a link to another socket there."""
    other = anyone.project.parent / "docker.sock"
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(other))
        own(anyone, other)
        server.listen()
        code = ("import socket,sys\ns = socket.socket(socket.AF_UNIX)\ntry: s.connect(sys.argv[1]); print('REACHED')\n"
                "except OSError as e: print(e.errno)")
        shown = ["--view", "host", "--allow-write", "."] if view == "host" else ["--workspace", "."]
        flags = [*shown, "--allow-unix-socket", "./app.sock"]
        anyone("run", *shown, "--", "ln", "-s", str(other), "app.sock", cwd=anyone.project)
        assert (anyone.project / "app.sock").is_symlink()
        result = anyone("run", *flags, "--", "/usr/bin/python3", "-c", code, str(anyone.project / "app.sock"), cwd=anyone.project)
        assert "REACHED" not in result.out, result


def test_copy_on_write(anyone, victim):
    """What is applied later would be written where the link leads."""
    before = snapshot(victim)
    (anyone.project / "build").symlink_to("../victim")
    result = anyone("run", "--workspace", "./build:cow", "--", "sh", "-c", "echo x > pwned", cwd=anyone.project)
    assert result.code == 125 and "[policy.link]" in result.err, result
    assert snapshot(victim) == before
