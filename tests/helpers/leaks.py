"""What may not remain after a sandbox: processes, mounts, cgroups, temporary files, sockets.

Other people may be running cloche on the same machine, so each look is for things that are ours: processes by
descent (the test process is a subreaper, so every orphan of a run becomes its child), the rest by what appeared
during the test and stayed.
"""
import atexit
import contextlib
import ctypes
import glob
import os
import re
import signal
import time

PR_SET_CHILD_SUBREAPER = 36
PATIENCE = 60       # seconds of polling before something that is still there is called a leak: that stays for ever, while
                    # a busy machine needs its time, and what a neighbour's test made is gone by then


def adopt_orphans():
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_CHILD_SUBREAPER)")


def status(pid):
    """(parent, state, command name) of a process, or None: system calls and nothing else, as every test does this often."""
    try:
        fd = os.open(f"/proc/{pid}/stat", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        text = os.read(fd, 4096)
    except OSError:
        return None
    finally:
        os.close(fd)
    comm_end = text.rindex(b")")
    fields = text[comm_end + 2:].split(None, 2)
    return int(fields[1]), fields[0].decode(), text[text.index(b"(") + 1:comm_end].decode("utf-8", "replace")


def parents():
    """pid → (parent, state, command name) of every process that we can see."""
    table = {}
    for name in os.listdir("/proc"):
        if name.isdigit() and (entry := status(name)):
            table[int(name)] = entry
    return table


def children(pid):
    """Those of all its threads, dead ones that nobody waited for too. The kernel may not have such lists."""
    found = []
    try:
        for thread in os.listdir(f"/proc/{pid}/task"):
            fd = os.open(f"/proc/{pid}/task/{thread}/children", os.O_RDONLY | os.O_CLOEXEC)
            try:
                while text := os.read(fd, 65536):
                    found.append(text)
            finally:
                os.close(fd)
    except OSError:         # it has just gone: who was its child is its reaper's
        pass
    return [int(child) for child in b"".join(found).split()]


HAS_CHILDREN = os.path.exists(f"/proc/self/task/{os.getpid()}/children")


def family(root):
    """parents() of all that descends from @root: a test has a few processes, and the machine has hundreds. Of one that ends
    meanwhile the children become ours, or @root's: so these lists are read until they stay."""
    if not HAS_CHILDREN:
        return below(root, parents())
    for _ in range(20):
        began = children(root), children(os.getpid())
        table, queue = {}, list(began[0])
        while queue:
            pid = queue.pop()
            if pid not in table and (entry := status(pid)):
                table[pid] = entry
                queue += children(pid)
        if (children(root), children(os.getpid())) == began:
            break
    return table


def below(root, table):
    """The part of @table (parents() of now) that descends from @root."""
    found, queue, by_parent = {}, [root], {}
    for pid, (parent, _, _) in table.items():
        by_parent.setdefault(parent, []).append(pid)
    while queue:
        for pid in by_parent.get(queue.pop(), []):
            found[pid] = table[pid]
            queue.append(pid)
    return found


def described(table):
    return {pid: f"{pid} {name} [{state}]" for pid, (_, state, name) in table.items()}


def descendants(root=None, table=None):
    """Every living or dead-but-unreaped process below @root (default: us), as pid → description; @table is parents() of now."""
    root = root or os.getpid()
    return described(family(root) if table is None else below(root, table))


def named(name):
    """Our descendants of that name, living ones only."""
    return [pid for pid, (_, state, its) in family(os.getpid()).items() if its == name and state not in "ZX"]


def reap_adopted(known, table=None):
    """Collect zombies that were re-parented to us, and take them out of @table, which is our family() of now; @known are pids
    that somebody else waits for."""
    table = family(os.getpid()) if table is None else table
    for pid, (parent, state, _) in list(table.items()):
        if parent == os.getpid() and state == "Z" and pid not in known:
            try:
                if os.waitpid(pid, os.WNOHANG)[0] == pid:
                    del table[pid]
            except ChildProcessError:
                pass


# of a daemon of containers that tests share (helpers/dockerd.py, podman.py): a neighbour's may begin while a test runs
DAEMONS = re.compile(r"/tmp/ct-(dockerd|podman)-[^/ ]+/(data|store/overlay|run/netns/default)")


def mounts():
    with open("/proc/self/mountinfo", encoding="utf-8", errors="replace") as f:
        return {line for line in f.read().splitlines() if not DAEMONS.fullmatch(line.split(" ")[4])}


OURS = []           # this process's own cgroups of v1: what cloche makes for it is below them, and nobody else's


def enter_own_cgroups():
    """Where root may: cgroups of v1 that hold this process and what it starts, in the hierarchies in which cloche makes its own."""
    atexit.register(leave_own_cgroups, os.getpid())
    for above in groups_of_this_process() if os.geteuid() == 0 else ():
        remove_left_ones(above)
        own = f"{above}/ct-{os.getpid()}"
        try:
            os.mkdir(own)
            OURS.append(own)
            if allow_real_time(own):
                move_to(own)
            else:               # in this hierarchy neighbours are told apart as on v2
                os.rmdir(OURS.pop())
        except OSError:         # a container shows them and lets nobody write; then so in all
            leave_own_cgroups(os.getpid())
            return


def allow_real_time(group):
    """Where the kernel gives each cgroup a share of it, a new one has none, and no test could start anything so.
    False: the group above has none to give."""
    share = f"{group}/cpu.rt_runtime_us"
    try:
        if os.path.exists(share):
            with open(share, "w", encoding="ascii") as f:
                f.write("10000")
    except OSError:
        return False
    return True


def remove_left_ones(above):
    """A test process that was killed left its own; the kernel removes none in which anything runs."""
    for path in folders_in(above):
        name = os.path.basename(path)
        if name.startswith("ct-") and name[3:].isdigit() and not os.path.exists(f"/proc/{name[3:]}"):
            for base, _, _ in os.walk(path, topdown=False):
                with contextlib.suppress(OSError):
                    os.rmdir(base)


def leave_own_cgroups(pid):
    """Nothing remains of them. A fork of this process leaves them to it."""
    while OURS and pid == os.getpid():
        own = OURS.pop()
        try:
            move_to(os.path.dirname(own))
            os.rmdir(own)
        except OSError:
            pass


def move_to(group):
    with open(f"{group}/cgroup.procs", "w", encoding="ascii") as f:
        f.write("0")


def groups_of_this_process():
    """The directories of v1's cgroups that it is in, of the hierarchies that cloche uses."""
    found = []
    with open("/proc/self/cgroup", encoding="ascii") as f:
        for line in f:
            _number, names, path = line.rstrip("\n").split(":", 2)
            found += [f"/sys/fs/cgroup/{name}{path}" for name in names.split(",") if name in ("memory", "cpu", "pids")]
    return [os.path.realpath(path) for path in found if os.path.isdir(path)]


def cgroups():
    """Those that cloche made: below OURS for us alone, elsewhere for whoever runs it."""
    found = set()
    hierarchies = {own.split("/")[4] for own in OURS}
    for above in [*OURS, "/sys/fs/cgroup", *(path for path in folders_in("/sys/fs/cgroup") if os.path.basename(path) not in hierarchies)]:
        for path in folders_in(above):
            if os.path.basename(path).startswith("cloche"):
                found.update((path, *folders_in(path)))
    uid = os.getuid()
    found.update(glob.glob(f"/sys/fs/cgroup/user.slice/user-{uid}.slice/**/*cloche*", recursive=True))
    return {path for path in found if os.path.isdir(path)}


def folders_in(path):
    try:
        with os.scandir(path) as entries:
            return [entry.path for entry in entries if entry.is_dir(follow_symlinks=False)]
    except OSError:
        return []


def cgroup_is_someone_elses(path):
    """It holds processes, none of which descends from us: a neighbour's sandbox."""
    if any(path.startswith(f"{own}/") for own in OURS):
        return not os.path.isdir(path)
    try:
        with open(os.path.join(path, "cgroup.procs"), encoding="ascii") as f:
            pids = {int(line) for line in f.read().split()}
    except OSError:
        return not os.path.isdir(path)
    if not pids:
        return any(cgroup_is_someone_elses(sub) for sub in glob.glob(glob.escape(path) + "/*/"))
    return not pids & set(descendants())


def sockets():
    """Abstract and path unix sockets of the host that carry cloche's name."""
    with open("/proc/net/unix", encoding="utf-8", errors="replace") as f:
        return {line.split()[-1] for line in f.read().splitlines()[1:] if "cloche" in line.split()[-1]}


NEIGHBOURS = ("cloche-unit-", "cloche-cow-", "cloche-guard-",
              "cloche-fuzz-", "cloche-packages-",    # the last by their own test; the unit tests' own folders: they may be running beside us
              "cloche-docker")      # the first container's folder stays, for all later ones: test_docker.py looks into it
TEMPORARY = ("/tmp", "/var/tmp", "/dev/shm", "/run")


def temporary_files():
    found = set()
    for place in (*TEMPORARY, f"/run/user/{os.getuid()}"):
        try:
            found.update(os.path.join(place, n) for n in os.listdir(place) if "cloche" in n.lower()
                         and not n.startswith(NEIGHBOURS))
        except OSError:
            pass
    return found


def somebody_elses(path):
    """It belongs to another person than an ordinary user who tests; or a process that does not descend from us has @path in
    its environment: a neighbour's sandbox in light mode."""
    try:
        if os.geteuid() not in (0, os.lstat(path).st_uid):
            return True
    except OSError:
        return True         # it has just gone
    ours = set(descendants()) | {os.getpid()}
    for pid in parents():
        if pid in ours:
            continue
        try:
            with open(f"/proc/{pid}/environ", "rb") as f:
                if path.encode() in f.read():
                    return True
        except OSError:
            pass
    return False


def kill(pids):
    """SIGKILL, in this order; one that has ended meanwhile is no matter."""
    for pid in pids:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass


def own_cgroups():
    """Those below the cgroups that this process is in: where it may, cloche makes its own there."""
    return {one for group in groups_of_this_process() for one in folders_in(group) if os.path.basename(one).startswith("cloche")}


def remove_empty_cgroups(but):
    """For a test that killed the janitor too: nobody of cloche's was left to do it. What has been empty for a while: a
    neighbour's is empty for a moment, until its sandbox joins."""
    empty = {path for path in (cgroups() | own_cgroups()) - set(but) if not cgroup_is_someone_elses(path)}
    time.sleep(1)
    for path in sorted(empty, key=len, reverse=True):
        if not cgroup_is_someone_elses(path):
            try:
                os.rmdir(path)
            except OSError:
                pass


class Watch:
    """Take at the beginning of a test; remains() at its end."""

    def __init__(self):
        self.mounts = mounts()
        self.cgroups = cgroups()
        self.files = temporary_files()
        self.processes = set(descendants())

    def is_vacant(self, parent, state, name):
        """A daemon that lives on has another one in the place of one that became a sandbox's keeper."""
        return name == "cloche-vacant" and state not in "ZX" and parent in self.processes

    def look(self):
        table = family(os.getpid())
        reap_adopted(self.processes, table)
        left = [f"process {what}" for pid, what in described(table).items()
                if pid not in self.processes and not self.is_vacant(*table[pid])]
        left += [f"mount {line}" for line in mounts() - self.mounts]
        left += [f"cgroup {path}" for path in sorted(cgroups() - self.cgroups)
                 if not cgroup_is_someone_elses(path) and os.path.isdir(path)]
        left += [f"file {path}" for path in sorted(temporary_files() - self.files)
                 if not somebody_elses(path)]
        return left

    def remains(self, patience=PATIENCE):
        """What is still there after waiting for the kernel to finish its dying. Processes are ours by descent; anything
        else only if it was there all the time: what comes and goes is a neighbour's."""
        deadline = time.monotonic() + patience
        pause = 0.002
        stayed = None
        while True:
            left = self.look()
            stayed = set(left) if stayed is None else stayed & set(left)
            left = [what for what in left if what.startswith("process ") or what in stayed]
            if not left or time.monotonic() > deadline:
                return left
            time.sleep(pause)
            pause = min(pause * 2, 0.1)

    def sweep(self):
        """After a leak was reported: end the processes, so that the next test is judged alone."""
        kill(pid for pid in descendants() if pid not in self.processes)
        self.remains(2)
