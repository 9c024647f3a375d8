"""No file that the inside makes carries a set-user-ID, set-group-ID or sticky bit (issue 13, A3).

Such a file belongs to the folder's owner on the host. An empty one is as bad as a full one: what root on the host
writes into it later does not clear the bit.
"""
import json
import stat

import pytest

from helpers import places, requirement
from helpers.daemon import Daemon, OthersDaemon

pytestmark = requirement("R11")

WAYS = ("standard", "light", "max", "host")

# Each makes the file (or folder) of its name with mode 06755, 02755 or 01755.
MAKERS = r"""
import ctypes, errno, json, os, stat, sys
libc = ctypes.CDLL(None, use_errno=True)
os.umask(0)

def call(number, *args):
    got = libc.syscall(number, *args)
    if got < 0:
        raise OSError(ctypes.get_errno(), "")
    return got

def named(n, mode):
    fd = os.open(".", os.O_TMPFILE | os.O_RDWR, mode)
    os.link(f"/proc/self/fd/{fd}", n, follow_symlinks=True)

def openat2(n, mode):
    how = (ctypes.c_uint64 * 3)(os.O_CREAT | os.O_WRONLY, mode, 0)
    call(437, -100, n.encode(), ctypes.byref(how), 24)

def later(change):
    def make(n, mode):
        with open(n, "w") as f:
            f.write("#!/bin/sh\n")
        change(n, mode)
    return make

def linked(n, mode):
    named(n, 0o755)
    os.chmod(n, mode)

def threaded(n, mode):
    import threading
    said = []
    def work():
        try: os.close(os.open(n, os.O_CREAT | os.O_EXCL, mode))
        except OSError as e: said.append(e)
    t = threading.Thread(target=work); t.start(); t.join()
    if said: raise said[0]

MAKERS = {
    "open": lambda n, m: call(2, n.encode(), os.O_CREAT | os.O_WRONLY, m),
    "openat": lambda n, m: os.open(n, os.O_CREAT | os.O_WRONLY, m),
    "openat-read": lambda n, m: os.open(n, os.O_CREAT | os.O_RDONLY, m),
    "openat-excl": lambda n, m: os.open(n, os.O_CREAT | os.O_RDWR | os.O_EXCL, m),
    "openat-high-bits": lambda n, m: call(257, -100, n.encode(), ctypes.c_uint64(0xffffffff00000000 | os.O_CREAT | 1),
                                          ctypes.c_uint64(0xffffffff00000000 | m)),
    "openat2": openat2,
    "creat": lambda n, m: call(85, n.encode(), m),
    "mknod": lambda n, m: call(133, n.encode(), stat.S_IFREG | m, 0),
    "mknod-no-type": lambda n, m: call(133, n.encode(), m, 0),
    "mknodat": lambda n, m: call(259, -100, n.encode(), stat.S_IFREG | m, 0),
    "fifo": lambda n, m: call(133, n.encode(), stat.S_IFIFO | m, 0),
    "tmpfile": named,
    "tmpfile-chmod": linked,
    "mkdir": lambda n, m: os.mkdir(n, m),
    "thread": threaded,
    "chmod": later(os.chmod),
    "old-chmod": later(lambda n, m: call(90, n.encode(), m)),
    "fchmod": later(lambda n, m: os.fchmod(os.open(n, os.O_RDWR), m)),
    "fchmod-read": later(lambda n, m: os.fchmod(os.open(n, os.O_RDONLY), m)),
    "fchmodat": later(lambda n, m: call(268, -100, n.encode(), m)),
    "fchmodat2": later(lambda n, m: call(452, -100, n.encode(), m, 0)),
    "fchmodat2-empty": later(lambda n, m: call(452, os.open(n, os.O_PATH), b"", m, 0x1000)),
    "chmod-proc": later(lambda n, m: os.chmod(f"/proc/self/fd/{os.open(n, os.O_PATH)}", m)),
}
os.chdir(sys.argv[1])
said = {}
for mode in (0o6755, 0o4755, 0o2755, 0o1755):
    for name, make in MAKERS.items():
        try:
            make(f"{name}-{mode:o}", mode)
            said[f"{name}-{mode:o}"] = "ok"
        except OSError as e:
            said[f"{name}-{mode:o}"] = errno.errorcode.get(e.errno, str(e.errno))
print(json.dumps(said))
"""


def way_in(way, project):
    if way == "host":
        return ["--view", "host", "--allow-write", str(project)], str(project)
    return ["--mode", way, "--workspace", str(project)], str(project) if way == "light" else "/workspace"


def skip_root_light(way, runner):
    if way == "light" and runner.person is None and places.IS_ROOT:
        pytest.skip("root's own folders are not for mode light")


def special(folder):
    """Of files every bit; of folders, where they mean something else, set-user-ID."""
    found = {}
    for path in folder.rglob("*"):
        st = path.lstat()
        bits = st.st_mode & (stat.S_ISUID if stat.S_ISDIR(st.st_mode) else 0o7000)
        if bits and not path.is_symlink():
            found[path.name] = oct(stat.S_IMODE(st.st_mode))
    return found


def test_each_is_an_attack(anyone):
    result = anyone.run([places.PYTHON, "-IS", "-c", MAKERS, str(anyone.project)])
    found = special(anyone.project)
    said = json.loads(result.out)
    assert {n for n in said if said[n] == "ok" and not n.startswith("mkdir")} == set(found), (said, found)
    assert len(found) > 70, (said, found)


@pytest.mark.parametrize("way", WAYS)
def test_no_call_makes_one(anyone, way):
    skip_root_light(way, anyone)
    flags, here = way_in(way, anyone.project)
    result = anyone("run", *flags, "--", places.PYTHON, "-IS", "-c", MAKERS, here)
    said = json.loads(result.out)
    assert special(anyone.project) == {}, said
    assert {n for n in said if said[n] == "ok"} <= {n for n in said if n.startswith("mkdir")}, said


@pytest.mark.parametrize("way", WAYS)
def test_what_root_fills_later_is_a_plain_file(anyone, way):
    """The whole attack: make it empty, and let root on the host write a program into it."""
    skip_root_light(way, anyone)
    flags, here = way_in(way, anyone.project)
    anyone("run", *flags, "--", places.PYTHON, "-IS", "-c",
           "import os, sys\nos.umask(0)\n"
           "for m in (0o6755, 0o755):\n"
           " try: os.open(sys.argv[1] + '/s', os.O_CREAT | os.O_WRONLY, m); break\n"
           " except OSError: pass\n", here)
    path = anyone.project / "s"
    with open(path, "wb") as f:
        f.write(b"\x7fELF")
    assert stat.S_IMODE(path.stat().st_mode) == 0o755


@pytest.mark.parametrize("way", ("standard", "host"))
def test_shared_folders_go_on(anyone, way):
    flags, here = way_in(way, anyone.project)
    result = anyone("run", *flags, "--", "sh", "-c",
                    f"cd {here}; mkdir d; chmod g+s,+t d; stat -c %A d; mkdir d/e; touch d/f; stat -c %A d/e d/f; "
                    "git init -q --shared=group r 2>&1 && ls -ld r/.git")
    assert result.ok and result.out.splitlines()[0] == "drwxr-sr-t" and "s" in result.out.splitlines()[1], result
    assert special(anyone.project) == {}


def test_copy_on_write(anyone):
    """There `openat2` is the only one that can; what it makes stays in the store, which nobody else can enter."""
    result = anyone("run", "--workspace", f"{anyone.project}:cow", "--json", "--", places.PYTHON, "-IS", "-c", MAKERS,
                    "/workspace")
    assert result.json["exit_code"] == 0, result
    applied = anyone("apply", "--json", cwd=anyone.project)
    assert applied.code in (0, 2), applied
    assert special(anyone.project) == {}


@pytest.mark.parametrize("way", WAYS)
def test_the_files_api(anyone, way):
    skip_root_light(way, anyone)
    daemon = (OthersDaemon if anyone.person else Daemon)(anyone)
    policy = {"workspace": str(anyone.project), **({"view": "host"} if way == "host" else {"mode": way})}
    box = daemon.create(policy=policy)
    for mode in ("6755", "4755", "2755", "1755"):
        box.put(f"new-{mode}", b"", f"?mode={mode}")
        box.put("again", b"x")
        box.put("again", b"xy", f"?mode={mode}")
        box.daemon("POST", f"{box.at}/files/dir-{mode}?kind=directory&mode={mode}")
    assert special(anyone.project) == {}
    assert daemon.stop() == 0, daemon.log
