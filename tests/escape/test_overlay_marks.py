"""Attributes in which overlays keep their books are not set by a run, and those that are there do not hide unseen
(issue 13, A4).

An empty file of the project with `user.overlay.whiteout` is not there in a later copy-on-write run, and no change.
"""
import json
import os

import pytest

from helpers import places, requirement

pytestmark = requirement("R11")

WAYS = ("standard", "light", "host")
MARKS = ("user.overlay.whiteout", "user.overlay.opaque", "user.overlay.metacopy", "user.overlay.redirect",
         "user.overlay.overlay.whiteout", "user.fuseoverlayfs.opaque", "trusted.overlay.opaque")

SETTERS = r"""
import ctypes, errno, json, os, sys
libc = ctypes.CDLL(None, use_errno=True)

def call(number, *args):
    if libc.syscall(number, *args) < 0:
        raise OSError(ctypes.get_errno(), "")

def setxattrat(path, name):
    args = (ctypes.c_uint64 * 2)(ctypes.addressof(ctypes.create_string_buffer(b"y")), 1)
    call(463, -100, path.encode(), 0, name.encode(), ctypes.byref(args), 16)

SETTERS = {
    "setxattr": lambda p, n: os.setxattr(p, n, b"y"),
    "lsetxattr": lambda p, n: os.setxattr(p, n, b"y", follow_symlinks=False),
    "fsetxattr": lambda p, n: os.setxattr(os.open(p, os.O_RDONLY), n, b"y"),
    "proc": lambda p, n: os.setxattr(f"/proc/self/fd/{os.open(p, os.O_PATH)}", n, b"y"),
    "setxattrat": setxattrat,
}
os.chdir(sys.argv[1])
said = {}
for way, setter in SETTERS.items():
    for name in sys.argv[2:]:
        try:
            setter("empty", name); setter(".", name)
            said[f"{way} {name}"] = "ok"
        except OSError as e:
            said[f"{way} {name}"] = errno.errorcode.get(e.errno, str(e.errno))
os.setxattr("empty", "user.mine", b"1")
print(json.dumps(said))
"""


def way_in(way, project):
    if way == "host":
        return ["--view", "host", "--allow-write", str(project)], str(project)
    return ["--mode", way, "--workspace", str(project)], str(project) if way == "light" else "/workspace"


@pytest.fixture
def project(anyone):
    """With an empty file and one that is not."""
    for name, text in (("empty", ""), ("full", "text\n")):
        path = anyone.project / name
        path.write_text(text)
        if anyone.person is not None and places.IS_ROOT:
            os.chown(path, anyone.person.pw_uid, anyone.person.pw_gid)
    return anyone.project


def marks(path):
    return [n for n in os.listxattr(path) if "overlay" in n]


def test_it_is_an_attack(anyone, project):
    said = json.loads(anyone.run([places.PYTHON, "-IS", "-c", SETTERS, str(project), *MARKS[:-1]]).out)
    assert [n for n in said if said[n] == "ok"] and marks(project / "empty"), said


@pytest.mark.parametrize("way", WAYS)
def test_a_run_sets_none(anyone, project, way):
    if way == "light" and anyone.person is None and places.IS_ROOT:
        pytest.skip("root's own folders are not for mode light")
    flags, here = way_in(way, project)
    result = anyone("run", *flags, "--json", "--", places.PYTHON, "-IS", "-c", SETTERS, here, *MARKS)
    said = json.loads(result.json["stdout"])
    assert not [n for n in said if said[n] == "ok"], said
    assert not marks(project / "empty") and not marks(project), said
    assert os.getxattr(project / "empty", "user.mine") == b"1"
    assert {"setxattr"} == {d["op"] for d in result.json["denied"] if d["rule"] == "marks of overlays"}


def test_marks_that_are_there_are_named(anyone, project):
    """They hide a file from a copy-on-write run; diff and apply say so, in words and in JSON."""
    (project / "deep").mkdir()
    (project / "deep" / "init.py").write_text("")
    os.setxattr(project / "deep" / "init.py", "user.overlay.whiteout", b"y")
    os.setxattr(project / "full", "user.overlay.metacopy", b"")
    result = anyone("run", "--workspace", f"{project}:cow", "--", "sh", "-c", "cat deep/init.py full; true")
    assert result.ok, result
    shown = anyone("diff", cwd=project)
    assert "deep/init.py" in shown.err and "full" in shown.err and "user.overlay" in shown.err, shown
    told = anyone("diff", "--json", cwd=project).json
    assert told["changes"] == [] and sorted(told["marked"]) == ["deep/init.py", "full"] and told["marked_count"] == 2
    assert "deep/init.py" in anyone("apply", cwd=project).err


def test_copy_on_write_does_not_carry_them_over(anyone, project):
    script = ("import os\n"
              "for n in ('user.overlay.whiteout', 'user.fuseoverlayfs.opaque', 'user.mine'):\n"
              " try: os.setxattr('full', n, b'y')\n"
              " except OSError: pass\n"
              "open('full', 'a').write('more')\n")
    assert anyone("run", "--workspace", f"{project}:cow", "--", places.PYTHON, "-IS", "-c", script).ok
    assert anyone("apply", cwd=project).ok
    assert (project / "full").read_text() == "text\nmore" and not marks(project / "full")
    assert os.getxattr(project / "full", "user.mine") == b"y"
