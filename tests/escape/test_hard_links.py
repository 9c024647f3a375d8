"""Hard links with names outside of the writable folder: no writing call reaches such a file (issue 13, A2).

The name in the folder becomes a copy first, as an overlay does it; docs/name-guard.md, "Hard links".
"""
import inspect
import json
import os
import stat
import subprocess

import pytest

from helpers import places, requirement
from helpers.daemon import UPLOAD_SEEN, Daemon, OthersDaemon
from helpers.mcp import Client

pytestmark = requirement("R11")

WAYS = ("standard", "light", "host")

# One function an attack; each has a file of its own, which it is given by name in the folder. What it says is what it
# got: "ok", or the errno's name. All are tried bare too, where each changes the file outside.
ATTACKS = r"""
import ctypes, errno, json, mmap, os, sys
libc = ctypes.CDLL(None, use_errno=True)

def call(number, *args):
    if libc.syscall(number, *args) < 0:
        raise OSError(ctypes.get_errno(), "")

def opened(n, flags, data=b"evil"):
    fd = os.open(n, flags)
    if data:
        os.write(fd, data)
    return fd

def mapped(n):
    fd = os.open(n, os.O_RDWR)
    with mmap.mmap(fd, 0) as m:
        m[0:4] = b"evil"

def reopened(n):
    opened(f"/proc/self/fd/{os.open(n, os.O_RDONLY)}", os.O_WRONLY)

def reopened_path(n):
    opened(f"/dev/fd/{os.open(n, os.O_PATH)}", os.O_RDWR)

def other_name(n):
    os.link(n, n + ".new")
    opened(n + ".new", os.O_WRONLY)

def renamed(n):
    os.rename(n, n + ".moved")
    opened(n + ".moved", os.O_WRONLY)
    os.rename(n + ".moved", n)

def symlinked(n):
    os.symlink(n, n + ".link")
    opened(n + ".link", os.O_WRONLY | os.O_CREAT)

def folder_moved(n):
    os.mkdir("d." + n)
    os.rename(n, f"d.{n}/f")
    os.rename("d." + n, "e." + n)
    opened(f"e.{n}/f", os.O_WRONLY)
    os.rename(f"e.{n}/f", n)

def old_open(n):
    call(2, n.encode(), os.O_WRONLY)
    opened(n, os.O_WRONLY)

def inode_flags(n):
    import fcntl
    fd = os.open(n, os.O_RDONLY)
    fcntl.ioctl(fd, 0x40086602, (0x80).to_bytes(8, "little"))    # FS_IOC_SETFLAGS, no atime

def gone(n, then):
    # with the name in the folder removed, the one outside is the only one
    fd = os.open(n, os.O_RDONLY)
    os.unlink(n)
    try:
        then(fd)
    finally:
        open(n, "x").close()

def linked_back(n, fd):
    if libc.linkat(-100, b"/proc/self/fd/%d" % fd, -100, n.encode() + b".back", 0x400) < 0:
        raise OSError(ctypes.get_errno(), "")
    opened(n + ".back", os.O_WRONLY)

ATTACKS = {
    "write": lambda n: opened(n, os.O_WRONLY),
    "read-write": lambda n: opened(n, os.O_RDWR),
    "append": lambda n: opened(n, os.O_WRONLY | os.O_APPEND),
    "create": lambda n: opened(n, os.O_WRONLY | os.O_CREAT, b"evil"),
    "truncate-open": lambda n: opened(n, os.O_WRONLY | os.O_TRUNC),
    "truncate-read": lambda n: opened(n, os.O_RDONLY | os.O_TRUNC, None),
    "creat": lambda n: call(85, n.encode(), 0o644),
    "old-open": old_open,
    "truncate": lambda n: os.truncate(n, 1),
    "truncate-longer": lambda n: os.truncate(n, 5000),
    "mmap": mapped,
    "reopen": reopened,
    "reopen-path": reopened_path,
    "link-then-write": other_name,
    "rename-then-write": renamed,
    "folder-then-write": folder_moved,
    "symlink-then-write": symlinked,
    "chmod": lambda n: os.chmod(n, 0o600),
    "fchmod": lambda n: os.fchmod(os.open(n, os.O_RDONLY), 0o600),
    "chmod-fd": lambda n: os.chmod(f"/proc/self/fd/{os.open(n, os.O_PATH)}", 0o600),
    "utime": lambda n: os.utime(n, (1, 1)),
    "utime-now": lambda n: os.utime(n),
    "futimens": lambda n: os.utime(os.open(n, os.O_RDONLY), (1, 1)),
    "old-utime": lambda n: call(132, n.encode(), None),
    "setxattr": lambda n: os.setxattr(n, "user.evil", b"x"),
    "fsetxattr": lambda n: os.setxattr(os.open(n, os.O_RDONLY), "user.evil", b"x"),
    "removexattr": lambda n: os.removexattr(n, "user.mine"),
    "inode-flags": inode_flags,
    "gone-reopen": lambda n: gone(n, lambda fd: opened(f"/proc/self/fd/{fd}", os.O_WRONLY)),
    "gone-truncate": lambda n: gone(n, lambda fd: os.truncate(f"/proc/self/fd/{fd}", 1)),
    "gone-fchmod": lambda n: gone(n, lambda fd: os.fchmod(fd, 0o600)),
    "gone-futimens": lambda n: gone(n, lambda fd: os.utime(fd, (1, 1))),
    "gone-fsetxattr": lambda n: gone(n, lambda fd: os.setxattr(fd, "user.evil", b"x")),
    "gone-link": lambda n: gone(n, lambda fd: linked_back(n, fd)),
}
if __name__ == "__main__":
    os.chdir(sys.argv[1])
    said = {}
    for name in sys.argv[2:] or ATTACKS:
        try:
            ATTACKS[name](name)
            said[name] = "ok"
        except OSError as e:
            said[name] = errno.errorcode.get(e.errno, str(e.errno))
    print(json.dumps(said))
"""
NAMES = [line.split('"')[1] for line in ATTACKS.splitlines() if line.startswith('    "') and "lambda" in line
         or line.startswith('    "') and line.rstrip().endswith(",") and ":" in line]
# The flags of an inode do not change where writes are watched; and where the name is gone there is none to copy to.
REFUSED = {"inode-flags", "gone-reopen", "gone-truncate", "gone-fchmod", "gone-futimens", "gone-fsetxattr"}


def look(path):
    """What a write of any kind would change of @path."""
    st = path.stat()
    marks = {n: os.getxattr(path, n) for n in os.listxattr(path)}
    return (path.read_bytes(), stat.S_IMODE(st.st_mode), st.st_uid, st.st_gid, st.st_mtime_ns, marks, st.st_ino)


def store(runner, names=NAMES):
    """A folder of the host's with a file for each of @names, all linked into the project."""
    folder = runner.project.parent / "store"
    folder.mkdir()
    folder.chmod(0o755)
    for name in names:
        path = folder / name
        path.write_bytes(b"theirs, all of it")
        os.setxattr(path, "user.mine", b"1")
        os.utime(path, (1_500_000_000, 1_500_000_000))
        path.chmod(0o644)
        if runner.person is not None and places.IS_ROOT:
            os.chown(path, runner.person.pw_uid, runner.person.pw_gid)
        os.link(path, runner.project / name)
    return folder


def way_in(way, project, *flags):
    """Flags for a run with the project writable, and where it is inside."""
    if way == "host":
        return ["--view", "host", "--allow-write", str(project), *flags], str(project)
    return ["--mode", way, "--workspace", str(project), *flags], str(project) if way == "light" else "/workspace"


def skip_root_light(way, runner):
    if way == "light" and runner.person is None and places.IS_ROOT:
        pytest.skip("root's own folders are not for mode light")


def test_each_is_an_attack(anyone, command):
    """Bare, each changes the file outside: otherwise the tests below could not fail."""
    folder = store(anyone)
    before = {n: look(folder / n) for n in NAMES}
    said = json.loads(anyone.run([places.PYTHON, "-IS", "-c", ATTACKS, str(anyone.project)]).out)
    harmless = {n for n in NAMES if look(folder / n) == before[n]} - {"inode-flags"}
    assert len(NAMES) > 25 and not harmless, (harmless, said)


@pytest.mark.parametrize("way", WAYS)
def test_no_call_reaches_the_file_outside(anyone, way):
    skip_root_light(way, anyone)
    folder = store(anyone)
    before = {n: look(folder / n) for n in NAMES}
    flags, here = way_in(way, anyone.project)
    result = anyone("run", *flags, "--", places.PYTHON, "-IS", "-c", ATTACKS, here)
    said = json.loads(result.out)
    changed = {n for n in NAMES if look(folder / n) != before[n]}
    assert not changed, (changed, said)
    assert {n for n in NAMES if said[n] != "ok"} == REFUSED, said
    same = {n for n in NAMES if (anyone.project / n).stat().st_ino == (folder / n).stat().st_ino}
    # the copy has what was written, and the rest of the file
    assert same <= REFUSED | {"link-then-write"}, same
    assert (anyone.project / "write").read_bytes() == b"evil" + b"theirs, all of it"[4:]
    assert (anyone.project / "append").read_bytes() == b"theirs, all of itevil"
    copy = anyone.project / "chmod"
    assert look(copy)[0] == b"theirs, all of it" and stat.S_IMODE(copy.stat().st_mode) == 0o600
    assert os.getxattr(copy, "user.mine") == b"1" and copy.stat().st_mtime == 1_500_000_000
    assert not [n for n in os.listdir(anyone.project) if n.startswith(".cloche-")]


@pytest.mark.parametrize("way", WAYS)
def test_links_with_all_names_inside_are_left_alone(anyone, way):
    """Also those that are made, moved and removed inside, before and after the first look."""
    skip_root_light(way, anyone)
    folder = store(anyone, ["foreign"])
    (anyone.project / "sub").mkdir(mode=0o777)
    os.chmod(anyone.project / "sub", 0o777)
    for name in ("a", "c"):
        (anyone.project / name).write_text("mine")
        if anyone.person is not None and places.IS_ROOT:
            os.chown(anyone.project / name, anyone.person.pw_uid, anyone.person.pw_gid)
    os.link(anyone.project / "a", anyone.project / "sub" / "b")
    flags, here = way_in(way, anyone.project)
    script = ("echo more >> a; cmp a sub/b || exit 1; "                 # the host's own pair
              "echo x > n; ln n m; echo y >> n; cmp n m || exit 2; "    # made after the walk
              "ln m k; rm n; mv k sub/k; echo z >> m; cmp m sub/k || exit 3; "
              "ln c sub/c; chmod 600 c; touch -d @5 c; [ c -ef sub/c ] || exit 4; "
              "mv sub bus; echo more >> a; cmp a bus/b || exit 5; "
              "echo 1 > q; exec 7<q; ln q r; rm q; echo 2 >> /proc/self/fd/7; [ $(wc -l < r) = 2 ] || exit 7; "
              "rm r; echo 3 >> /proc/self/fd/7 || exit 8; "             # it has no name at all
              "echo evil >> foreign; ln foreign f2; echo evil >> f2; [ foreign -ef f2 ] || exit 6")
    result = anyone("run", *flags, "--", "sh", "-c", f"cd {here} && {script}")
    assert result.ok, result
    assert (anyone.project / "a").stat().st_nlink == 2 and (anyone.project / "a").read_text() == "mine" + "more\n" * 2
    assert (folder / "foreign").read_bytes() == b"theirs, all of it"


@pytest.mark.parametrize("way", WAYS)
def test_a_protected_file_is_not_reached_by_its_other_name(anyone, way):
    """The other name lies in the folder, but not where it may be written: it is as good as outside."""
    skip_root_light(way, anyone)
    hooks = anyone.project / ".git" / "hooks"
    hooks.mkdir(parents=True)
    (hooks / "pre-commit").write_text("theirs")
    if anyone.person is not None and places.IS_ROOT:
        for path in (hooks.parent, hooks, hooks / "pre-commit"):
            os.chown(path, anyone.person.pw_uid, anyone.person.pw_gid)
    os.link(hooks / "pre-commit", anyone.project / "other")
    flags, here = way_in(way, anyone.project)
    anyone("run", *flags, "--", "sh", "-c", f"cd {here}; echo evil >> other; chmod 755 other; true")
    assert (hooks / "pre-commit").read_text() == "theirs"
    assert not (hooks / "pre-commit").stat().st_mode & 0o111


@pytest.mark.parametrize("way", WAYS)
def test_where_no_copy_can_be_made_it_is_refused(anyone, way):
    skip_root_light(way, anyone)
    closed = anyone.project / "closed"
    closed.mkdir()
    folder = store(anyone, ["f"])
    os.rename(anyone.project / "f", closed / "f")
    os.mkfifo(folder / "fifo", 0o666)
    os.chmod(folder / "fifo", 0o666)
    os.link(folder / "fifo", anyone.project / "fifo")
    if anyone.person is not None and places.IS_ROOT:
        os.chown(closed, anyone.person.pw_uid, anyone.person.pw_gid)
    os.chmod(closed, 0o555)
    before = look(folder / "f")
    flags, here = way_in(way, anyone.project)
    result = anyone("run", "--json", *flags, "--", "sh", "-c",
                    f"cd {here}; echo evil >> closed/f; chmod 777 closed/f; touch closed/f; echo evil 1<> fifo; true")
    os.chmod(closed, 0o755)
    assert look(folder / "f") == before
    denied = {(d["op"], os.path.basename(d["target"])) for d in result.json["denied"]
              if d["rule"] == "hard link outside"}
    assert {("create", "f"), ("chmod", "f")} <= denied and any(n == "fifo" for _, n in denied), result.json["denied"]


def test_copy_on_write_needs_nothing(anyone):
    folder = store(anyone)
    before = {n: look(folder / n) for n in NAMES}
    result = anyone("run", "--workspace", f"{anyone.project}:cow", "--", places.PYTHON, "-IS", "-c", ATTACKS, "/workspace")
    assert result.ok, result
    assert {n for n in NAMES if look(folder / n) != before[n]} == set()
    assert {n for n in NAMES if look(anyone.project / n) != before[n]} == set()


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("query", ["", "?mode=0600"])
def test_the_files_api(anyone, way, query):
    skip_root_light(way, anyone)
    folder = store(anyone, ["f", "g"])
    before = look(folder / "f")
    daemon = (OthersDaemon if anyone.person else Daemon)(anyone)
    policy = {"mode": way, "workspace": str(anyone.project)} if way != "host" else \
        {"view": "host", "workspace": str(anyone.project)}
    box = daemon.create(policy=policy)
    answer = box.put("f", b"evil", query)
    assert answer.ok, answer
    assert look(folder / "f") == before
    assert (anyone.project / "f").read_bytes().endswith(b"evil")
    assert daemon.stop() == 0, daemon.log


def through_the_api(box, project):
    """Each way in which what the daemon's routes and tools do would change a file's mode, by the name of the file: what it answered."""
    tools = Client(box.daemon)
    (project / "symlink").symlink_to("linked")
    return {
        "put": lambda n: box.put(n, b"evil", "?mode=777").status,
        "empty": lambda n: box.put(n, b"", "?mode=777").status,
        "large": lambda n: box.put(n, b"x" * (2 * UPLOAD_SEEN), "?mode=777").status,
        "twice": lambda n: [box.put(n, b"evil", f"?mode={mode}").status for mode in ("600", "777")][1],
        "linked": lambda n: box.put("symlink", b"evil", "?mode=777").status,
        "exclusive": lambda n: box.put(n, b"evil", "?mode=777&exclusive=true").status,
        "folder": lambda n: box.put(f"{n}/below", b"evil", "?mode=777&parents=true").status,
        "mkdir": lambda n: box.daemon.post(f"{box.at}/dirs/{n}").status,
        "anew": lambda n: [box.daemon("DELETE", box.file(n)).status, box.put(n, b"evil", "?mode=777").status][1],
        "tool": lambda n: 200 if tools.call("code_write_file", sandbox_id=box.id, file_path=n, content="evil")["success"] else 409,
        "chmod": lambda n: 200 if box.exec(f"chmod 777 {n}")["exit_code"] == 0 else 409,
        "moved": lambda n: [box.exec(f"mv {n} moved-{n}"), box.put(f"moved-{n}", b"evil", "?mode=777").status][1],
        "over": lambda n: [box.put(f"new-{n}", b"evil", "?mode=777"), 200 if box.exec(f"mv new-{n} {n}")["exit_code"] == 0 else 409][1],
        "again": lambda n: [box.exec(f"ln {n} another-{n}"), box.put(f"another-{n}", b"evil", "?mode=777").status][1],
    }


REFUSED_BY_API = {"exclusive", "folder", "mkdir"}


@requirement("R61")
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("mode", [0o600, 0o400])
def test_the_files_api_changes_no_mode_outside(anyone, way, mode):
    """A mode that is asked for with an upload is the new file's (0600 became 0777 outside)."""
    skip_root_light(way, anyone)
    names = [line.split('"')[1] for line in inspect.getsource(through_the_api).splitlines() if '": lambda n' in line]
    folder = store(anyone, names)
    for name in names:
        (folder / name).chmod(mode)
    before = {n: look(folder / n) for n in names}
    daemon = (OthersDaemon if anyone.person else Daemon)(anyone)
    where = {"view": "host"} if way == "host" else {"mode": way}
    box = daemon.create(policy={**where, "workspace": str(anyone.project)})
    said = {name: do(name) for name, do in through_the_api(box, anyone.project).items()}
    assert {n: look(folder / n) for n in names} == before, said
    refused = {n for n in names if said[n] not in (200, 201)}
    assert REFUSED_BY_API <= refused and (mode != 0o600 or refused == REFUSED_BY_API), said
    for name in {"put", "empty", "large", "twice", "linked", "anew", "chmod"} - refused:
        found = (anyone.project / name).stat()
        assert stat.S_IMODE(found.st_mode) == 0o777 and found.st_ino != (folder / name).stat().st_ino, (name, said)
    # the control: by its name in the folder it is the file outside that changes
    os.chmod(anyone.project / "exclusive", 0o777)
    assert stat.S_IMODE((folder / "exclusive").stat().st_mode) == 0o777
    assert daemon.stop() == 0, daemon.log


@pytest.mark.parametrize("way", (*WAYS, "cow"))
def test_reading_is_denied_where_the_policy_says_so(anyone, way):
    """`deny-hard-links`: what has a name elsewhere is closed; what has all of them inside is not."""
    skip_root_light(way, anyone)
    folder = store(anyone, ["foreign"])
    (anyone.project / "own").write_text("mine")
    (anyone.project / "own").chmod(0o644)
    os.link(anyone.project / "own", anyone.project / "own2")
    flags, here = way_in(way, anyone.project) if way != "cow" else \
        (["--workspace", f"{anyone.project}:cow"], "/workspace")
    script = f"cd {here}; cat own own2; cat foreign; true"
    assert "theirs" in anyone("run", *flags, "--", "sh", "-c", script).out
    result = anyone("run", *flags, "--deny-hard-links", "--", "sh", "-c", script)
    if way == "light":      # without mounts a file in an open folder cannot be hidden: no start
        assert result.code == 125 and "wall.light.deny-inside" in result.err and not result.out, result
        return
    assert result.ok and result.out == "minemine", result
    assert (folder / "foreign").read_bytes() == b"theirs, all of it"


# puts another name of a file that lies outside too in the place of each file that another sandbox makes
RENAMES = """
import os
print('ready', flush=True)
while not os.path.exists('done'):
    for f in (lambda: os.link('foreign', 'another'), lambda: os.rename('another', 'mine')):
        try: f()
        except OSError: pass
"""
WRITES = """
import os, sys, time
end, n = time.time() + 10, 0
while time.time() < end and n < int(sys.argv[1]):
    try: os.unlink('mine')
    except OSError: pass
    try:
        fd = os.open('mine', os.O_WRONLY | os.O_CREAT | (os.O_TRUNC if n % 2 else 0))
        os.write(fd, b'evil')
        os.close(fd)
        n += 1
    except OSError: pass
    if n % 50 == 0 and open('foreign').read() != 'theirs, all of it':
        break
open('done', 'w').close()
print(n)
"""


@pytest.mark.parametrize("way", WAYS)
def test_two_sandboxes_of_one_project(anyone, way):
    """One renames, the other writes: what it opened is looked at again, and emptied only then."""
    skip_root_light(way, anyone)
    folder = store(anyone, ["foreign"])
    flags, _ = way_in(way, anyone.project)
    other = anyone.popen("run", *flags, "--", places.PYTHON, "-IS", "-c", RENAMES, cwd=anyone.project, stdout=subprocess.PIPE)
    assert other.stdout.readline() == b"ready\n"
    result = anyone("run", *flags, "--", places.PYTHON, "-IS", "-c", WRITES, str(places.rounds(2000, 6000)), cwd=anyone.project)
    (anyone.project / "done").touch()
    other.communicate(timeout=60)
    assert result.ok and int(result.out) > 50, result
    assert (folder / "foreign").read_bytes() == b"theirs, all of it", result
