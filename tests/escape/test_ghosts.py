"""Protecting a name that does not exist leaves nothing behind, whatever happens; and it is protected all the same."""
import os
import subprocess

import pytest

from helpers import leaks, requirement
from helpers.places import PYTHON
from helpers.runner import wait_for

pytestmark = requirement("R91", "R03")
ABSENT = [".bashrc", ".vscode", ".idea", ".git/hooks", ".git/config", ".claude/commands", ".mcp.json", ".gitmodules"]


def names(project):
    return sorted(str(p.relative_to(project)) for p in project.rglob("*"))


@pytest.mark.parametrize("kind", ["rw", "ro", "cow"])
@pytest.mark.parametrize("mode", ["standard", "light", "max"])
def test_an_idle_run_leaves_nothing(in_mode, kind, mode):
    if mode == "light" and kind == "cow":
        pytest.skip("a copy needs a mount namespace")
    cloche = in_mode(mode)
    project = cloche.project
    result = cloche("run", "--mode", mode, "--workspace", f"{project}:{kind}", "--json", "--", "ls", "-A",
                    "/workspace" if mode != "light" else str(project))
    assert result.ok and result.json["stdout"] == "", result
    assert names(project) == []
    if kind == "cow":
        assert cloche("discard", result.json["workspace"]["id"]).ok


def test_nothing_is_visible_even_while_it_runs(cloche, project):
    """Looked at from the host in mid-run: no placeholder files."""
    process = cloche.popen("run", "--workspace", project, "--", "sh", "-c", "echo ready; read x", stdin=subprocess.PIPE)
    assert process.stdout.readline() == b"ready\n"
    assert names(project) == []
    process.communicate(b"\n", timeout=60)
    assert names(project) == []


def test_nothing_is_visible_inside_either(cloche, project):
    result = cloche("run", "--workspace", project, "--", "sh", "-c", "ls -A; git status --short 2>/dev/null; true")
    assert result.out == "", result


@pytest.mark.parametrize("victims", ["cloche", "guest", "everything"])
def test_after_sigkill(cloche, world, project, victims):
    (project / ".git").mkdir()
    (project / ".claude").mkdir()
    process = cloche.popen("run", "--workspace", project, "--", "sh", "-c", "echo ready; sleep 77777")
    assert process.stdout.readline() == b"ready\n"
    below = leaks.descendants(process.pid)
    leaks.kill({"cloche": [process.pid], "guest": below, "everything": [process.pid, *below]}[victims])
    process.communicate(timeout=60)
    assert wait_for(lambda: leaks.reap_adopted(set()) or not leaks.descendants())
    assert names(project) == [".claude", ".git"]
    if victims == "everything":
        leaks.remove_empty_cgroups(world.watch.cgroups)     # the janitor, whose work it is, went with the rest


WAYS = {
    "open": "os.close(os.open(p, os.O_CREAT|os.O_WRONLY))",
    "open O_EXCL": "os.close(os.open(p, os.O_CREAT|os.O_EXCL|os.O_RDWR))",
    "mkdir": "os.mkdir(p)",
    "rename": "open('t','w').close(); os.rename('t', p)",
    "rename a directory": "os.mkdir('t'); os.rename('t', p)",
    "link": "open('t','w').close(); os.link('t', p)",
    "symlink": "os.symlink('t', p)",
    "mknod": "os.mknod(p)",
    "mkfifo": "os.mkfifo(p)",
    "bind a socket": "import socket; socket.socket(socket.AF_UNIX).bind(p)",
    "dir_fd": "d=os.open(os.path.dirname(p) or '.', os.O_RDONLY); os.close(os.open(os.path.basename(p), "
              "os.O_CREAT|os.O_WRONLY, dir_fd=d))",
    "O_TMPFILE and link": "d=os.path.dirname(p) or '.'; f=os.open(d, os.O_TMPFILE|os.O_RDWR); "
                          "os.link(f'/proc/self/fd/{f}', p, dst_dir_fd=os.open('.', os.O_RDONLY), "
                          "follow_symlinks=True)",
    "absolute": "os.close(os.open('/workspace/'+p, os.O_CREAT|os.O_WRONLY))",
    "through /proc/self/cwd": "os.close(os.open('/proc/self/cwd/'+p, os.O_CREAT|os.O_WRONLY))",
    "through a symlink to the parent": "os.symlink(os.path.dirname(p) or '.', 'via'); "
                                       "os.close(os.open('via/'+os.path.basename(p), os.O_CREAT|os.O_WRONLY))",
    "dangling symlink": "os.symlink(p, 'via'); os.close(os.open('via', os.O_CREAT|os.O_WRONLY))",
    "rename of the parent": "q=os.path.dirname(p)\nif q:\n os.makedirs('n'); "
                            "open('n/'+os.path.basename(p),'w').close(); os.rename(q,'old'+str(len(os.listdir('.')))); "
                            "os.rename('n', q)\nelse: raise OSError",
    "renameat2 exchange": "import ctypes; open('t','w').close(); l=ctypes.CDLL(None,use_errno=True)\nif "
                          "l.renameat2(-100,b't',-100,os.fsencode(p),2) and "
                          "l.renameat2(-100,b't',-100,os.fsencode(p),1): raise OSError",
    "creat": "import ctypes; l=ctypes.CDLL(None); l.syscall(85, os.fsencode(p), 0o644)",
    "openat2": "import ctypes,struct; l=ctypes.CDLL(None); l.syscall(437, -100, os.fsencode(p), struct.pack('QQQ', "
               "os.O_CREAT|os.O_WRONLY, 0o644, 0), 24)",
    "in a chdir'ed directory": "q=os.path.dirname(p)\nif q: os.chdir(q)\nos.close(os.open(os.path.basename(p), "
                               "os.O_CREAT|os.O_WRONLY))",
    "fchdir to the parent": "q=os.path.dirname(p) or '.'\nos.fchdir(os.open(q, os.O_RDONLY)); "
                            "os.mkdir('./'+os.path.basename(p))",
    "a thread": "import threading; t=threading.Thread(target=lambda: os.mkdir(p)); t.start(); t.join()",
    "a child of a child": "import subprocess; subprocess.run(['sh', '-c', '(mkdir \"$1\"; true) & wait', 'sh', p])",
}


def attempts(way):
    """Code that tries to create each of its arguments by @way."""
    return ("import os,sys\nhome=os.getcwd()\nfor p in sys.argv[1:]:\n"
            " os.chdir(home)\n"
            " for junk in ('t', 'via', 'n'):\n"
            "  try: os.unlink(junk)\n"
            "  except IsADirectoryError: __import__('shutil').rmtree(junk)\n"
            "  except OSError: pass\n"
            f" try:\n  exec({WAYS[way]!r})\n except OSError as e: print(p, e)\n")


@pytest.mark.parametrize("way", WAYS)
def test_the_ways_are_real(bare, project, way):
    """Without the guard each of them does create the name."""
    (project / ".git").mkdir()
    (project / ".claude").mkdir()
    result = bare(attempts(way), args=ABSENT, cwd=project)
    made = [name for name in ABSENT if os.path.lexists(project / name)]
    if way == "absolute":
        assert "/workspace" in result.out      # there is no such folder here
    else:
        # Each swap of a parent takes away what the one before made below it.
        wanted = {".git/config", ".claude/commands"} if way == "rename of the parent" else set(ABSENT)
        assert set(made) >= wanted, result


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("mode", ["standard", "light"])
def test_absent_names_cannot_be_created_in_any_way(in_mode, way, mode):
    cloche = in_mode(mode)
    project = cloche.project
    owner = project.stat()
    for name in (".git", ".claude"):
        (project / name).mkdir()
        os.chown(project / name, owner.st_uid, owner.st_gid)
    result = cloche.sandbox(attempts(way), flags=["--mode", mode, "--workspace", project], args=ABSENT)
    assert result.code == 0, result
    made = [name for name in ABSENT if os.path.lexists(project / name)]
    assert not made, f"{way}: created {made}"


def test_the_refusal_is_an_ordinary_error(cloche, project):
    """Programs see a plain errno and go on."""
    result = cloche.sandbox("import os\ntry: os.mkdir('.vscode')\nexcept OSError as e: print('[Errno %d]' % e.errno)",
                            flags=["--workspace", project])
    assert result.errno in ("EACCES", "EPERM", "EROFS"), result


def test_denied_names_are_told_in_the_report(cloche, project):
    report = cloche("run", "--workspace", project, "--json", "--", "sh", "-c",
                    "mkdir .vscode; mkdir .vscode; true").json
    told = [d for d in report["denied"] if ".vscode" in d["target"]]
    assert told and told[0]["count"] >= 1 and told[0]["op"] and told[0]["rule"], report["denied"]


def test_a_race_for_the_name(cloche, project):
    """Two threads: one changes the path in memory while the other calls. The guard decides on its own copy."""
    (project / ".git").mkdir()
    code = """
import ctypes, os, threading, time
libc = ctypes.CDLL(None, use_errno=True)
buffer = ctypes.create_string_buffer(b'.git/xxxxx')
stop = False
def swap():
    good, evil = b'.git/xxxxx', b'.git/hooks'
    while not stop:
        ctypes.memmove(buffer, evil, 10); ctypes.memmove(buffer, good, 10)
t = threading.Thread(target=swap); t.start()
end = time.monotonic() + 3
while time.monotonic() < end:
    libc.mkdir(buffer, 0o755); 
    try: os.rmdir('.git/xxxxx')
    except OSError: pass
stop = True; t.join()
print(os.path.lexists('.git/hooks'))
"""
    result = cloche.sandbox(code, flags=["--workspace", project])
    assert result.out == "False\n", result
    assert not (project / ".git/hooks").exists()


def test_names_that_were_there_are_there_afterwards(cloche, project):
    (project / ".vscode").mkdir()
    (project / ".vscode/settings.json").write_text("{}", encoding="ascii")
    (project / ".bashrc").write_text("mine", encoding="ascii")
    before = {p: p.lstat().st_mtime_ns for p in project.rglob("*")}
    result = cloche.sandbox("import os,shutil\nfor f in (lambda: shutil.rmtree('.vscode'), lambda: "
                            "os.unlink('.bashrc'), lambda: os.rename('.bashrc','x'), "
                            "lambda: os.truncate('.bashrc', 0), lambda: os.chmod('.bashrc', 0), lambda: "
                            "os.utime('.bashrc'), lambda: os.rename('.vscode', 'y')):\n"
                            " try: f()\n except OSError: pass", flags=["--workspace", project])
    assert result.ok, result
    assert {p: p.lstat().st_mtime_ns for p in project.rglob("*")} == before
    assert (project / ".bashrc").read_text() == "mine"


def test_interpreter_is_found(sandbox):
    assert sandbox("print(1)").ok and os.path.exists(PYTHON)
