"""/workspace in its four kinds, binds, and who owns what is created."""
import os
import stat

import pytest

from helpers import requirement
from helpers.places import IS_ROOT

WRITE = "echo inside > made; mkdir -p d/e; ln -s made link; echo changed > given"


def tree(path):
    return sorted(str(p.relative_to(path)) for p in path.rglob("*"))


@pytest.fixture
def given(project, cloche):
    (project / "given").write_text("given\n", encoding="ascii")
    if cloche.person is not None:
        os.chown(project / "given", cloche.person.pw_uid, cloche.person.pw_gid)
    return project


# kinds ---------------------------------------------------------------------------------------------------------
@requirement("R20")
def test_tmpfs_is_empty_and_gone_afterwards(cloche):
    assert cloche("run", "--", "sh", "-c", "ls -A; echo x > f; ls").out == "f\n"
    assert cloche("run", "--", "ls", "-A").out == ""


@requirement("R11")
def test_rw_is_the_folder_itself(cloche, given):
    assert cloche("run", "--workspace", f"{given}:rw", "--", "sh", "-c", "cat given; " + WRITE).out == "given\n"
    assert (given / "made").read_text() == "inside\n"
    assert (given / "given").read_text() == "changed\n"
    assert os.readlink(given / "link") == "made"
    assert (given / "d/e").is_dir()


def test_rw_is_the_default(cloche, given):
    assert cloche("run", "--workspace", given, "--", "touch", "made").ok
    assert (given / "made").exists()


@requirement("R11")
def test_ro_cannot_be_written(cloche, given):
    result = cloche("run", "--workspace", f"{given}:ro", "--", "sh", "-c",
                    "cat given; echo x > given; echo x > new; rm -f given; mkdir d; chmod 777 given; mv given g2; "
                    "ln given hard; true")
    assert result.out == "given\n", result
    assert tree(given) == ["given"]
    assert (given / "given").read_text() == "given\n"


def test_ro_cannot_be_remounted(cloche, given):
    code = ("import ctypes,os; l=ctypes.CDLL(None,use_errno=True); "
            "r=l.mount(None,b'/workspace',None,4096|32,None); print(r, ctypes.get_errno())")
    result = cloche.sandbox(code, flags=["--workspace", f"{given}:ro"])
    assert result.out.startswith("-1 "), result


@requirement("R82")
def test_cow_shows_the_folder_and_leaves_it_alone(cloche, given):
    result = cloche("run", "--workspace", f"{given}:cow", "--report", "r.json", "--", "sh", "-c", "cat given; " + WRITE
                    + "; cat given")
    assert result.out == "given\nchanged\n", result
    assert tree(given) == ["given"]
    assert (given / "given").read_text() == "given\n"
    import json
    report = json.loads((cloche.cwd / "r.json").read_text())
    assert report["workspace"]["kind"] == "cow"
    assert cloche("discard", report["workspace"]["id"]).ok


@pytest.mark.ordinary
@requirement("R82")
def test_cow_as_an_ordinary_user(cloche, given):
    result = cloche("run", "--workspace", f"{given}:cow", "--json", "--", "sh", "-c", "echo changed > given; cat given")
    assert result.ok and result.json["stdout"] == "changed\n", result
    assert (given / "given").read_text() == "given\n"
    assert cloche("discard", result.json["workspace"]["id"]).ok


# arguments -----------------------------------------------------------------------------------------------------
def test_missing_folder_is_told(cloche, project):
    result = cloche("run", "--workspace", project / "nothing", "--", "true")
    assert result.code == 125, result
    assert str(project / "nothing") in result.err


def test_a_file_is_no_workspace(cloche, given):
    result = cloche("run", "--workspace", given / "given", "--", "true")
    assert result.code == 125, result


@pytest.mark.parametrize("suffix", [":wr", ":", ":rw:ro", ":COW"])
def test_unknown_kind_is_refused(cloche, project, suffix):
    result = cloche("run", "--workspace", f"{project}{suffix}", "--", "true")
    assert result.code == 125, result


@pytest.mark.parametrize("folder", ["/", "/proc", "/sys", "/dev"])
def test_places_that_would_undo_the_wall_are_refused(cloche, folder):
    result = cloche("run", "--workspace", folder, "--", "true")
    assert result.code == 125, result


def test_relative_workspace_is_the_callers(cloche, given):
    result = cloche("run", "--workspace", ".", "--", "cat", "given", cwd=given)
    assert result.out == "given\n", result


def test_tilde_is_the_callers_home(cloche):
    (cloche.home / "p").mkdir()
    (cloche.home / "p/f").write_text("tilde\n", encoding="ascii")
    assert cloche("run", "--workspace", "~/p", "--", "cat", "f").out == "tilde\n"


@pytest.mark.parametrize("name", ["with space", "ünï🛎", "new\nline", "quo'te\"", "back\\slash", "a:b", "-dash", "*"])
def test_folder_names_of_every_kind(cloche, project, name):
    folder = project / name
    folder.mkdir()
    if cloche.person:
        os.chown(folder, cloche.person.pw_uid, -1)
    (folder / "f").write_text("here\n", encoding="ascii")
    result = cloche("run", "--workspace", f"{folder}:ro", "--", "cat", "f")
    assert result.out == "here\n", result


# binds ---------------------------------------------------------------------------------------------------------
def test_bind_is_read_only_by_default(cloche, given):
    result = cloche("run", "--bind", f"{given}:/mnt/data", "--", "sh", "-c",
                    "cat /mnt/data/given; echo x > /mnt/data/n")
    assert result.out == "given\n" and not result.ok, result
    assert tree(given) == ["given"]


def test_bind_writable(cloche, given):
    assert cloche("run", "--bind", f"{given}:/mnt/data:rw", "--", "touch", "/mnt/data/n").ok
    assert tree(given) == ["given", "n"]


def test_bind_keeps_its_own_path_without_destination(cloche, given):
    assert cloche("run", "--bind", given, "--", "cat", f"{given}/given").out == "given\n"


def test_bind_of_one_file(cloche, given):
    assert cloche("run", "--bind", f"{given}/given:/etc/given.conf", "--", "cat", "/etc/given.conf").out == "given\n"


def test_bind_inside_the_workspace(cloche, given, world):
    other = world.root / "other"
    other.mkdir()
    (other / "f").write_text("other\n", encoding="ascii")
    (given / "vendor").mkdir()
    result = cloche("run", "--workspace", given, "--bind", f"{other}:/workspace/vendor", "--", "cat", "vendor/f")
    assert result.out == "other\n", result
    assert tree(given) == ["given", "vendor"]


def test_bind_of_nothing_is_refused(cloche):
    result = cloche("run", "--bind", "/no/such/thing:/mnt/x", "--", "true")
    assert result.code == 125 and "/no/such/thing" in result.err, result


@pytest.mark.parametrize("dest", ["/proc", "/proc/self", "/dev", "/dev/null", "/", "relative", "/a/../../etc"])
def test_bind_over_what_the_wall_needs_is_refused(cloche, given, dest):
    result = cloche("run", "--bind", f"{given}:{dest}", "--", "true")
    assert result.code == 125, result


def test_bind_sees_no_setuid_and_no_devices(cloche, given):
    tool = given / "tool"
    tool.write_bytes(open("/usr/bin/id", "rb").read())
    tool.chmod(0o4755)
    result = cloche("run", "--bind", f"{given}:/mnt/d:rw", "--", "/mnt/d/tool", "-u")
    assert result.out == "1000\n", result


# ownership -----------------------------------------------------------------------------------------------------
@requirement("R26")
@pytest.mark.parametrize("kind", ["workspace", "bind"])
def test_created_files_belong_to_the_owner_of_the_folder(anyone, kind):
    flags = ["--workspace", anyone.project] if kind == "workspace" else \
        ["--bind", f"{anyone.project}:/workspace/p:rw", "--workdir", "/workspace/p"]
    result = anyone("run", *flags, "--", "sh", "-c", "umask 027; echo x > f; mkdir d; ln -s f l; mkfifo p; chmod 640 f")
    assert result.ok, result
    owner = anyone.project.stat()
    for name in ("f", "d", "l", "p"):
        made = os.lstat(anyone.project / name)
        assert (made.st_uid, made.st_gid) == (owner.st_uid, owner.st_gid), name
    assert stat.S_IMODE(os.stat(anyone.project / "d").st_mode) == 0o750


@requirement("R26")
def test_the_owners_files_look_like_ours_inside(anyone):
    (anyone.project / "f").write_text("x", encoding="ascii")
    if anyone.person:
        os.chown(anyone.project / "f", anyone.person.pw_uid, anyone.person.pw_gid)
    result = anyone("run", "--workspace", anyone.project, "--", "stat", "-c", "%U %u", "f", ".")
    assert result.out == "agent 1000\nagent 1000\n", result


@pytest.mark.root
def test_root_with_a_project_of_somebody(cloche, project):
    """root runs cloche on somebody's folder: new files are that person's, not root's."""
    os.chown(project, 4321, 4321)
    result = cloche("run", "--workspace", project, "--", "sh", "-c", "echo x > f && stat -c %u f")
    assert result.ok and result.out == "1000\n", result
    assert os.stat(project / "f").st_uid == 4321


@pytest.mark.root
def test_files_of_third_persons_stay_closed(cloche, project):
    """In root's own folder, a 0600 file of somebody else is not readable inside."""
    other = project / "theirs"
    other.write_text("private", encoding="ascii")
    other.chmod(0o600)
    os.chown(other, 7777, 7777)
    assert not cloche("run", "--workspace", project, "--", "cat", "theirs").ok


def test_setuid_bit_cannot_be_planted_for_the_host(anyone):
    """A setuid file made inside does not become a setuid file of root on the host."""
    anyone("run", "--workspace", anyone.project, "--", "sh", "-c", "cp /usr/bin/id x; chmod 4777 x; chmod 2777 x")
    path = anyone.project / "x"
    if path.exists() and IS_ROOT:
        made = os.stat(path)
        planted = made.st_uid == 0 and made.st_mode & stat.S_ISUID and anyone.project.stat().st_uid != 0
        assert not planted


def test_modes_and_times_survive(cloche, given):
    code = "import os; os.chmod('given', 0o755); os.utime('given', (1000000000, 1000000001)); s=os.stat('given'); " \
           "print(oct(s.st_mode & 0o777), int(s.st_mtime))"
    assert cloche.sandbox(code, flags=["--workspace", given]).out == "0o755 1000000001\n"
    assert int((given / "given").stat().st_mtime) == 1000000001


def test_large_file_and_sparse_file(cloche, project):
    code = "f=open('big','wb'); f.truncate(3<<30); f.seek(2<<30); f.write(b'x'); f.close()"
    assert cloche.sandbox(code, flags=["--workspace", project]).ok
    assert (project / "big").stat().st_size == 3 << 30


def test_exec_from_the_workspace(cloche, project):
    (project / "tool").write_text("#!/usr/bin/python3\nprint('ran')\n", encoding="ascii")
    (project / "tool").chmod(0o755)
    assert cloche("run", "--workspace", project, "--", "./tool").out == "ran\n"


def test_two_runs_share_only_what_was_bound(cloche, given):
    cloche("run", "--workspace", given, "--", "sh", "-c", "touch /tmp/x ~/y shared")
    result = cloche("run", "--workspace", given, "--", "sh", "-c", "ls -A /tmp ~; ls shared")
    assert "x" not in result.out.split() and "y" not in result.out.split() and "shared" in result.out, result
