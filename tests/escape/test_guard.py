"""The name guard, from outside: no attack makes a protected name, and honest programs do not notice it.

docs/name-guard.md has the theory; tests/unit/test_guard*.c try the guard alone.
"""
import os
import re
import shutil
import socket
import subprocess
import threading
from pathlib import Path

import pytest

from helpers import leaks, requirement
from helpers.places import PYTHON, REPO, loops, rounds
from helpers.runner import wait_for

pytestmark = requirement("R91", "R11")

ATTACKS = Path(__file__).parent / "attacks"
RACES = re.findall(r'^    \{ "([a-z-]+)", "', (ATTACKS / "guard_race.c").read_text(encoding="ascii"), re.M)
PROTECTED = (".git/hooks", ".git/config", ".bashrc", ".vscode", ".idea", ".mcp.json", ".claude/commands")
MODES = ("standard", "light", "max")


@pytest.fixture(scope="session")
def racer(tmp_path_factory):
    """The race program, built once."""
    if shutil.which("cc") is None:
        pytest.skip("no C compiler")
    built = tmp_path_factory.mktemp("racer") / "guard_race"
    subprocess.run(["cc", "-O2", "-D_GNU_SOURCE", "-pthread", "-I", REPO / "src", "-o", built, ATTACKS / "guard_race.c"], check=True)
    return built


def put(source, project, cloche):
    target = project / source.name
    shutil.copy(source, target)
    target.chmod(0o755)
    if cloche.person is not None and os.geteuid() == 0:
        os.chown(target, cloche.person.pw_uid, cloche.person.pw_gid)
    return target


def own_git(project, cloche):
    """A `.git`: what is in it by name is protected where there was one; where not, by shape (test_git_state.py)."""
    git = project / ".git"
    git.mkdir()
    if cloche.person is not None and os.geteuid() == 0:
        os.chown(git, cloche.person.pw_uid, cloche.person.pw_gid)


def inside(project, mode):
    return str(project) if mode == "light" else "/workspace"


def assert_nothing_planted(project):
    planted = [name for name in PROTECTED if os.path.lexists(project / name)]
    assert not planted, f"on the host's side: {planted}"
    git = project / ".git"
    assert not git.is_symlink() and (git.is_dir() or not git.exists()), "a .git that leads elsewhere"


def test_there_are_races():
    assert len(RACES) >= 10


@pytest.mark.ordinary
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("race", RACES)
def test_races(cloche, command, project, racer, mode, race):
    program = put(racer, project, cloche)
    if mode == "standard":
        bare = project.parent / "bare"
        bare.mkdir(mode=0o777)
        bare.chmod(0o777)
        assert command([program, race, "30000"], cwd=bare, check=False).code == 0, "no attack at all"
    own_git(project, cloche)
    result = cloche("run", "--mode", mode, "--workspace", project, "--", f"{inside(project, mode)}/{program.name}",
                    race, "600", timeout=120)
    assert result.code == 1, f"{race} made a protected name: {result!r}"
    assert_nothing_planted(project)


@pytest.mark.ordinary
@pytest.mark.parametrize("mode", MODES)
def test_every_way(cloche, command, project, mode):
    script = put(ATTACKS / "guard_ways.py", project, cloche)
    if mode == "standard":
        bare = project.parent / "bare"
        bare.mkdir(mode=0o777)
        bare.chmod(0o777)
        assert ".git/hooks" in command([PYTHON, "-IS", script], cwd=bare).out, "no attack at all"
    own_git(project, cloche)
    result = cloche("run", "--mode", mode, "--workspace", project, "--", PYTHON, "-IS",
                    f"{inside(project, mode)}/{script.name}")
    assert result.out.strip() == "planted:", result
    assert_nothing_planted(project)


@pytest.mark.ordinary
@pytest.mark.parametrize("mode", MODES)
def test_denials_are_reported(cloche, project, mode):
    own_git(project, cloche)
    result = cloche("run", "--mode", mode, "--workspace", project, "--json", "--", "sh", "-c",
                    "for i in 1 2 3; do echo > .bashrc; done; mkdir -p .git/hooks; true")
    denied = {(d["op"], os.path.basename(d["target"])): d for d in result.json["denied"]}
    assert denied[("create", ".bashrc")]["count"] == 3, result.json["denied"]
    assert denied[("mkdir", "hooks")]["rule"].endswith(".git/hooks"), result.json["denied"]


@pytest.mark.ordinary
@pytest.mark.parametrize("signal_to", ["cloche", "everything"])
def test_sigkill_in_the_middle_of_attacks(cloche, project, racer, signal_to):
    """Whatever is killed first, a call that was under way is not finished without its judge."""
    program = put(racer, project, cloche)
    own_git(project, cloche)
    for delay in (0.05, 0.2, 0.4):
        process = cloche.popen("run", "--workspace", project, "--", f"/workspace/{program.name}", "open", "5000")
        threading.Event().wait(delay)
        leaks.kill([process.pid] if signal_to == "cloche" else [*leaks.descendants(process.pid), process.pid])
        process.communicate(timeout=60)
        assert wait_for(lambda: leaks.reap_adopted(set()) or not leaks.descendants())
        assert_nothing_planted(project)


# --- honest programs


def tree(path):
    """Names, kinds, modes and contents below @path."""
    found = {}
    for entry in sorted(path.rglob("*")):
        st = entry.lstat()
        what = os.readlink(entry) if entry.is_symlink() else entry.read_bytes() if entry.is_file() else None
        found[str(entry.relative_to(path))] = (st.st_mode, what)
    return found


@pytest.mark.ordinary
@pytest.mark.parametrize("mode", ["standard", "light"])
def test_git_clone_of_a_thousand_files(cloche, command, project, has, mode):
    has("git")
    count = max(1500, loops(1500))      # three times what git gives to one thread that looks at its index
    origin = project / "origin"
    command([PYTHON, "-IS", "-c", "import os,sys\n"
             f"for i in range({count}):\n"
             " d = f'{sys.argv[1]}/d{i // 30}/e{i % 7}'; os.makedirs(d, exist_ok=True)\n"
             " open(f'{d}/f{i}', 'w').write(str(i))\n", origin])
    git = ["git", "-c", "user.name=t", "-c", "user.email=t@t", "-c", "core.hooksPath=/dev/null"]
    for words in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "all"]):
        command([*git, *words], cwd=origin)
    here = inside(project, mode)
    result = cloche("run", "--mode", mode, "--workspace", project, "--", "sh", "-ec",
                    f"cd {here}; git clone -q origin copy; cd copy; git status --short; "
                    "git log --oneline | wc -l; "
                    "echo new > new; git add new; git -c user.name=a -c user.email=a commit -qm more; "
                    "git mv new newer; "
                    "git checkout -q -b side; git stash -q; git gc -q; git fsck", timeout=300)
    assert result.ok, result
    assert sum(1 for p in (project / "copy").rglob("f*") if p.is_file() and ".git" not in p.parts) == count


PACKAGES = """
const fs = require('fs'), path = require('path');
const top = process.argv[1];
for (let i = 0; i < COUNT; i++) {
  const staging = path.join(top, 'node_modules', `.p${i}-${Math.random().toString(36).slice(2, 8)}`);
  fs.mkdirSync(path.join(staging, 'lib', 'deep'), { recursive: true });
  for (const f of ['package.json', 'index.js', 'lib/a.js', 'lib/deep/b.js'])
    fs.writeFileSync(path.join(staging, f), f + i);
  fs.chmodSync(path.join(staging, 'index.js'), 0o755);
  const home = path.join(top, 'node_modules', `p${i}`);
  fs.renameSync(staging, home);
  fs.mkdirSync(path.join(top, 'node_modules', '.bin'), { recursive: true });
  fs.symlinkSync(`../p${i}/index.js`, path.join(top, 'node_modules', '.bin', `p${i}`));
  fs.utimesSync(path.join(home, 'index.js'), 1e9, 1e9);
  if (i % 3 == 0) fs.linkSync(path.join(home, 'lib/a.js'), path.join(home, 'lib/c.js'));
  if (i % 5 == 0) fs.rmSync(path.join(home, 'lib/deep'), { recursive: true });
}
""".replace("COUNT", str(rounds(100, 300)))


@pytest.mark.ordinary
@pytest.mark.parametrize("mode", ["standard", "light"])
def test_a_package_tree_is_the_same(cloche, command, project, has, mode):
    has("node")
    bare = cloche.home / "bare"
    command(["mkdir", bare])
    command(["node", "-e", PACKAGES, bare])
    result = cloche("run", "--mode", mode, "--workspace", project, "--", "node", "-e", PACKAGES, inside(project, mode),
                    timeout=300)
    assert result.ok, result
    assert tree(project) == tree(bare)


@pytest.mark.ordinary
@pytest.mark.parametrize("mode", MODES)
def test_redirections_and_terminals(cloche, project, mode):
    # --json: the pipes are the sandbox's own; a pipe of another user cannot be opened again by name, guard or not
    result = cloche("run", "--mode", mode, "--workspace", project, "--json", "--", "sh", "-c",
                    "echo out > /dev/stdout; echo err > /dev/stderr; echo fd > /dev/fd/1; echo null > /dev/null; "
                    "echo x > new && cat < new; mkfifo p; (echo piped > p) & cat p; wait")
    report = result.json
    assert report["exit_code"] == 0 and report["stdout"] == "out\nfd\nx\npiped\n", result
    assert report["stderr"] == "err\n", result
    result = cloche("run", "--mode", mode, "--workspace", project, "--pty", "--", "sh", "-c",
                    "echo to the terminal > /dev/tty", pty=True)
    assert result.ok and "to the terminal" in result.out, result


# --- sockets


class Listener:
    """A host service on a unix socket; counts who comes."""

    def __init__(self, path):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.bind(str(path))
        self.socket.listen(16)
        self.path = str(path)
        path.chmod(0o777)
        self.came = 0
        self.thread = threading.Thread(target=self.serve, daemon=True)
        self.thread.start()

    def serve(self):
        while True:
            try:
                peer, _ = self.socket.accept()
            except OSError:
                return
            self.came += 1
            peer.close()

    def visits(self):
        """How many came since the last look. The last of the queue are we ourselves: before us all were counted."""
        with socket.socket(socket.AF_UNIX) as s:
            s.connect(self.path)
            assert s.recv(1) == b""
        came, self.came = self.came - 1, 0
        return came

    def close(self):
        self.socket.shutdown(socket.SHUT_RDWR)
        self.socket.close()
        self.thread.join()


@pytest.fixture
def services(project):
    made = {name: Listener(project / name) for name in ("agent", "docker")}
    yield made
    for listener in made.values():
        listener.close()


CONNECT = """
import os, socket, sys
top, names = sys.argv[1], sys.argv[2:]
os.chdir(top)
fd = os.open('.', os.O_RDONLY)
for name in names:
    for path in (name, f'{top}/{name}', f'./x/../{name}', f'/proc/self/cwd/{name}', f'/proc/self/fd/{fd}/{name}',
                 f'link-{name}'):
        try:
            os.makedirs('x', exist_ok=True)
            if path.startswith('link-') and not os.path.lexists(path): os.symlink(name, path)
            with socket.socket(socket.AF_UNIX) as s: s.connect(path)
            print(name, 'open')
        except OSError as e:
            print(name, e.errno)
"""


@pytest.mark.parametrize("mode", ["standard", "light"])
@pytest.mark.ordinary
def test_sockets_by_path(cloche, command, project, services, mode):
    assert command([PYTHON, "-IS", "-c", CONNECT, project, "docker"]).out.split() == ["docker", "open"] * 6
    assert services["docker"].visits() == 6
    result = cloche("run", "--mode", mode, "--workspace", project, "--", PYTHON, "-IS", "-c", CONNECT, inside(project, mode),
                    "agent", "docker")
    assert "open" not in result.out and result.ok, result
    assert services["agent"].visits() == services["docker"].visits() == 0
    allowed = f"{project}/agent" if mode == "light" else "/workspace/agent"
    result = cloche("run", "--mode", mode, "--workspace", project, "--allow-unix-socket", allowed, "--", PYTHON, "-IS", "-c",
                    CONNECT, inside(project, mode), "agent", "docker")
    if result.code == 125:
        pytest.skip(f"this path cannot be allowed in this view: {result.err}")
    assert result.out.count("agent open") == 6 and "docker open" not in result.out, result
    assert services["docker"].visits() == 0


@pytest.mark.ordinary
@pytest.mark.parametrize("mode", ["standard", "light"])
def test_own_sockets_in_the_project_work(cloche, project, mode):
    code = ("import os, socket, sys; os.chdir(sys.argv[1]); "
            "s = socket.socket(socket.AF_UNIX); s.bind('own.sock'); s.listen(); "
            "assert s.getsockname() == 'own.sock'; c = socket.socket(socket.AF_UNIX); c.connect('own.sock'); "
            "s.accept()[0].sendall(b'hello'); print(c.recv(9).decode())")
    result = cloche("run", "--mode", mode, "--workspace", project, "--", PYTHON, "-IS", "-c", code, inside(project, mode))
    assert result.out == "hello\n", result


def test_more_protected_names_than_mounts(cloche, command):
    """A run may have made thousands of such folders: the next one starts, and all of them are kept."""
    project = cloche.project
    command(["sh", "-c", "for i in $(seq 850); do mkdir -p d$i/.vscode; echo 1 > d$i/.vscode/t; done"], cwd=project)
    result = cloche("run", "--workspace", f"{project}:rw", "--", "sh", "-c", """
for i in 1 849; do
    for attack in "echo 2 > d$i/.vscode/t" "rm d$i/.vscode/t" "rm -r d$i/.vscode" "mv d$i/.vscode x" "mv d$i x" "mkdir d$i/.vscode/n" \
                  "echo 2 > x; mv x d$i/.vscode/t" "ln d$i/.vscode/t y; echo 2 > y" "truncate -s 0 d$i/.vscode/t" "chmod 0 d$i/.vscode/t"; do
        sh -ec "$attack" 2> /dev/null && echo "$attack"
    done
    echo 1 > d$i/new; rm d$i/new
done
mkdir q; mv q r; rmdir r; echo end""")
    assert result.ok and result.out == "end\n", result
    # the devices are the sandbox's own all the same
    code = ("import os; m, s = os.openpty(); name = os.ttyname(s); os.chmod(name, 0o600); os.utime('/dev/null');"
            "print(os.write(os.open(name, os.O_WRONLY | os.O_NOCTTY), b'x'))")
    again = ("import os; s = os.ttyname(0); os.fork() and os._exit(os.waitstatus_to_exitcode(os.wait()[1]));"
             "os.setsid(); os.write(os.open(s, os.O_WRONLY | os.O_NOCTTY), b'here')")
    result = cloche("run", "--workspace", f"{project}:rw", "--", PYTHON, "-IS", "-c", code)
    assert result.ok and result.out == "1\n", result
    result = cloche("run", "--pty", "--workspace", f"{project}:rw", "--", PYTHON, "-IS", "-c", again, pty=True)
    assert result.ok and "here" in result.out, result
    kept = [entry for entry in project.glob("d*/.vscode/t") if entry.read_text() == "1\n" and entry.stat().st_mode & 0o777 == 0o644]
    assert len(kept) == 850, f"{850 - len(kept)} have changed"


PROCESSORS = """
import os, threading, time
cpus = sorted(os.sched_getaffinity(0))
sets = [{cpus[0]}, {cpus[1]}, set(cpus)]
def make(i):
    os.close(os.open(f'f{i % 7}', os.O_CREAT | os.O_WRONLY | os.O_TRUNC))
for i in range(600):            # another one each time, so that the guard finds itself elsewhere
    os.sched_setaffinity(0, sets[i % 3])
    make(i)
    assert os.sched_getaffinity(0) == sets[i % 3], (i, os.sched_getaffinity(0))
stop, kept, tid = False, 0, []
def loop():
    tid.append(threading.get_native_id())
    while not stop:
        make(0)
maker = threading.Thread(target=loop)
maker.start()
while not tid:
    time.sleep(0.01)
for i in range(300):
    os.sched_setaffinity(tid[0], sets[i % 2])
    time.sleep(0.002)
    for _ in range(50):         # it may be looked at in the moment when a descriptor is passed
        if os.sched_getaffinity(tid[0]) == sets[i % 2]:
            kept += 1
            break
stop = True
maker.join()
print(kept, os.sched_getaffinity(0) == set(cpus))
"""


def test_processors_of_a_caller_stay_its_own(cloche, project):
    """Guard and caller share a processor while a descriptor is passed; nobody finds anything of it afterwards."""
    if len(os.sched_getaffinity(0)) < 2:
        pytest.skip("one processor")
    result = cloche("run", "--workspace", project, "--", PYTHON, "-I", "-S", "-c", PROCESSORS)
    kept, own = result.out.split()
    assert own == "True" and int(kept) >= 285, result


NEW_FILES = """
import errno, os, stat
def new(path, mode=0o666):
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, mode))
        return 'made'
    except OSError as e:
        return errno.errorcode[e.errno]
top = os.getcwd()
os.makedirs('a/b')
os.makedirs('r/objects')
os.makedirs('r/refs')
os.makedirs('r/later/deep')
os.makedirs('r/branches')
os.symlink('r', 'way')
os.symlink(top + '/a', 'link')
print(new('a/b/1'), new(top + '/a/b/2'), new('link/b/3'), new('a/../a/b/4'), new('a//b/5'), sorted(os.listdir('a/b')))
os.chdir('a/b')
print(new('/proc/self/cwd/6'), new('/proc/thread-self/cwd/7'), os.path.exists('6'), os.path.exists('7'))
os.umask(0o077)
print(new('8'), oct(os.stat('8').st_mode), new(top + '/a/9'), oct(os.stat('../9').st_mode))
os.umask(0)
print(new('10'), oct(os.stat('10').st_mode), new(top + '/a/11'), oct(os.stat('../11').st_mode))
os.umask(0o022)
os.chdir(top + '/r/later/deep')                   # what it is called comes later
print(new('12'), os.unlink('12'))
os.rmdir(top + '/r/later/deep')
print(new('13'), os.chdir(top + '/r/later'), new('14'), os.unlink('14'))
os.rename(top + '/r/later', top + '/r/hooks')
print(new('pre-commit'), new(top + '/r/hooks/pre-push'), new(top + '/way/hooks/update'), new('x.sample'))
os.rename(top + '/r/hooks', top + '/r/earlier')
print(new('pre-commit'), new(top + '/r/hooks'), new(top + '/.bashrc'), new(top + '/.GIT/Hooks'), new(top + '/sub'))
os.chdir(top + '/r/branches')
print(new('x'), new(top + '/r/branches/y'), new(top + '/r/config.worktree/z'), new(top + '/r/sequencer'), new(top + '/r/x'))
"""


@pytest.mark.ordinary
@pytest.mark.parametrize("mode", MODES)
def test_files_that_nobody_asks_about(cloche, project, mode):
    """Made by one call where no name on the path matters: the path is asked for each time, and links go the long way."""
    own_git(project, cloche)
    result = cloche("run", "--mode", mode, "--workspace", project, "--", PYTHON, "-I", "-S", "-c", NEW_FILES)
    assert result.out.splitlines() == [
        "made made made made made ['1', '2', '3', '4', '5']",
        "made made True True",
        "made 0o100600 made 0o100600",
        "made 0o100666 made 0o100666",
        "made None",
        "ENOENT None made None",
        "EACCES EACCES EACCES made",
        "made EACCES EACCES ENOENT made",
        "EACCES EACCES ENOENT EACCES made",
    ], result
    assert_nothing_planted(project)


# many folders ---------------------------------------------------------------------------------------------------------
@pytest.fixture
def folders(cloche):
    """500 writable folders, and one more than there may be; the settings that open the first @n of them."""
    made = [cloche.project / f"pkg/d{number}" for number in range(601)]
    for folder in made:
        folder.mkdir(parents=True)
        if cloche.person is not None and os.geteuid() == 0:
            os.chown(folder, cloche.person.pw_uid, cloche.person.pw_gid)

    def settings(n, mode="view: host"):
        path = cloche.home / f"{n}.yaml"
        path.write_text(f"{mode}\nfilesystem:\n  allow-write:\n" + "".join(f"  - {folder}\n" for folder in made[:n]), encoding="utf-8")
        return str(path)
    return made, settings


@pytest.mark.parametrize("mode", ["view: host", "mode: light"])
def test_in_each_of_five_hundred_folders(cloche, folders, mode):
    """A protected name is one in the first, the last, and any other folder; what is in one of them is not in another."""
    made, settings = folders
    if mode == "mode: light" and cloche.person is None and os.geteuid() == 0:
        pytest.skip("root's own folders are not for mode light")
    (made[77] / ".vscode").mkdir()
    (made[77] / ".vscode/tasks.json").write_text("mine")
    probe = f"""
import os
def tried(what, *words):
    try: what(*words); return True
    except OSError as why: return False
pkg = {str(made[0].parent)!r}
out = []
for n in 0, 1, 63, 64, 77, 255, 499:
    os.chdir(f'{{pkg}}/d{{n}}')
    out.append([tried(os.mkdir, 'src'), tried(os.mkdir, 'src/.vscode'), tried(os.mkdir, '.claude'), tried(os.rename, 'src', 'lib'),
                not tried(os.mkdir, '.VSCode'), not tried(open, '.bashrc', 'w'), not tried(os.mkdir, '.claude/commands'),
                not tried(os.rename, '.claude', 'x'), not tried(os.rename, 'lib', '.vscode'),
                not tried(os.symlink, '/', '.idea'), tried(open, 'f', 'w')])
out.append([not tried(open, pkg + '/d77/.vscode/tasks.json', 'w'), not tried(os.link, pkg + '/d77/.vscode/tasks.json', pkg + '/d77/t'),
            not tried(open, pkg + '/d500/f', 'w')])
print(out)
"""
    done = cloche.sandbox(probe, "python", flags=["--settings", settings(500, mode)])
    assert done.ok and "False" not in done.out and done.out.count("True") == 7 * 11 + 3, done
    assert (made[77] / ".vscode/tasks.json").read_text() == "mine"


@pytest.mark.parametrize("mode", ["view: host", "mode: light"])
def test_two_spellings_of_a_name_in_two_folders(cloche, mode):
    """Where both are closed, both are: each folder has its own, and a name is looked for as it is written in either."""
    if mode == "mode: light" and cloche.person is None and os.geteuid() == 0:
        pytest.skip("root's own folders are not for mode light")
    one, other = cloche.home / "one", cloche.home / "other"
    for place in (one / "build", other / "Build", one / "sub/.claude", other / "Sub/.claude"):
        place.mkdir(parents=True)
        (place / "f").write_text("mine")
    subprocess.run(["chown", "-R", f"--reference={cloche.project}", one, other], check=True)
    settings = cloche.home / "two.yaml"
    settings.write_text(f"{mode}\nfilesystem:\n  allow-write: [{one}, {other}]\n  deny-write: [{one}/build, {other}/Build]\n", encoding="utf-8")
    probe = f"""
import os, shutil
def refused(what, *words):
    try: what(*words); return False
    except OSError: return True
out = []
for place in {str(one / "build")!r}, {str(other / "Build")!r}:
    out += [refused(open, place + '/g', 'w'), refused(open, place + '/f', 'w'), refused(os.mkdir, place + '/d'), refused(os.unlink, place + '/f'),
            refused(os.rename, place, place + 'x')]
for folder in {str(one / "sub")!r}, {str(other / "Sub")!r}:
    out.append(refused(os.mkdir, folder + '/.claude/commands'))
print(out)
"""
    done = cloche.sandbox(probe, "python", flags=["--settings", str(settings)])
    assert done.ok and "False" not in done.out and done.out.count("True") == 12, done
    assert all((place / "f").read_text() == "mine" and len(list(place.iterdir())) == 1 for place in (one / "build", other / "Build"))


@pytest.mark.parametrize("second", [False, True])
@pytest.mark.parametrize("led", [".envrc", "mise.toml"])
def test_a_repository_that_spells_a_name_otherwise(cloche, led, second):
    """What a link of its own names is one more protected name, and takes no other one's place: not in it, nor in a folder beside it."""
    beside = cloche.home / "beside"
    beside.mkdir()
    hostile = beside if second else cloche.project
    (hostile / ".Claude").mkdir()
    (hostile / ".Claude/env").write_text("x")
    (hostile / led).symlink_to(".Claude/env")
    subprocess.run(["chown", "-hR", f"--reference={cloche.project}", hostile, beside], check=True)
    probe = """
import os
for folder in '/workspace', '/beside':
    os.chdir(folder)
    os.mkdir('x')
    open('x/settings.json', 'w').write('evil')
    try: os.rename('x', '.claude'); print('moved')
    except OSError: print('refused')
"""
    done = cloche.sandbox(probe, "python", flags=["--workspace", str(cloche.project), "--bind", f"{beside}:/beside:rw"])
    assert done.ok and done.out == "refused\nrefused\n", done


def test_more_folders_than_there_may_be(cloche, folders):
    made, settings = folders
    refused = cloche("run", "--settings", settings(601), "--", "true")
    assert refused.code == 125 and "wall.bind.too-many" in refused.err and "600" in refused.err and str(made[600]) in refused.err, refused
