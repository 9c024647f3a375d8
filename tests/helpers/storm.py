"""A storm over one cloche serve: at moments that a seed draws, its processes are killed, stopped, held, its disk is full, a file of its state is locked,
while clients make, use and end sandboxes. After each moment the daemon answers or has ended, and where it has ended nothing is left."""
import contextlib
import fcntl
import http.client
import os
import random
import re
import resource
import signal
import threading
import time

from helpers import attach, leaks, mcp, places, signing
from helpers.daemon import Connection, Daemon, Sandbox, command_of
from helpers.runner import wait_for

KINDS = ("cloche serve", "cloche-maker", "cloche-front", "cloche-adapter", "cloche-warden", "cloche-scribe", "cloche-keeper", "cloche-vacant", "cloche-starter", "cloche-guest",
         "cloche-egress", "cloche-vault", "cloche-webhook", "cloche-otlp", "cloche-signer", "cloche-janitor")
# (deed, how often); all of one moment's own are drawn, so that a moment is the same whatever came before
DEEDS = (("kill", 8), ("stop", 6), ("stop-long", 4), ("hang", 1), ("disk", 3), ("lock-audit", 3), ("lock-state", 1), ("kill-two", 3), ("kill-all", 1))
PATIENCE = 90           # seconds; it is not how long anything takes (slowest says that), it only ends a hang on a busy machine
ANSWER = 20             # a client's own
SIZE = "48m"
FAILS = (OSError, AssertionError, ValueError, KeyError, http.client.HTTPException)


class Place:
    """A mount namespace of its own in which the state folder is a small tmpfs."""

    def __init__(self, cloche):
        words = f"mount -t tmpfs -o size={SIZE},mode=755 none '{cloche.state}' && echo there && exec sleep infinity"
        self.holder = cloche.start(["unshare", "-m", "--propagation", "private", "/bin/sh", "-c", words])
        assert self.holder.stdout.readline() == b"there\n", self.holder.stderr.read()
        self.pid = self.holder.pid
        self.state = f"/proc/{self.pid}/root{cloche.state}/cloche"
        self.cloche = cloche.behind("nsenter", f"--mount=/proc/{self.pid}/ns/mnt", "--")
        self.cloche.state = cloche.state
        self.mounts = self.table()

    def table(self):
        with open(f"/proc/{self.pid}/mountinfo", encoding="utf-8") as f:
            return sorted(f.read().splitlines())

    def end(self):
        self.holder.kill()
        self.holder.communicate()

    @contextlib.contextmanager
    def full(self):
        """Not a byte more fits."""
        name = f"{self.state}/filler"
        fd = os.open(name, os.O_CREAT | os.O_WRONLY | os.O_CLOEXEC, 0o600)
        try:
            for piece in (1 << 20, 4096):
                with contextlib.suppress(OSError):
                    while os.write(fd, b"\0" * piece):
                        pass
            yield
        finally:
            os.close(fd)
            os.unlink(name)

    @contextlib.contextmanager
    def locked(self, name, way):
        """Somebody else holds the lock of that file, where it can be had."""
        fd = -1
        with contextlib.suppress(OSError):
            fd = os.open(f"{self.state}/{name}", os.O_RDWR | os.O_CLOEXEC)
            for _ in range(2000):       # between two entries
                try:
                    way(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                except BlockingIOError:
                    time.sleep(0.001)
        try:
            yield
        finally:
            if fd >= 0:
                os.close(fd)

    def notes(self):
        """What its daemons noted before they made it (engine/leavings.h): each cgroup's path, by whose it is."""
        found = {}
        with contextlib.suppress(OSError):
            for name in os.listdir(f"{self.state}/serve/leavings"):
                with contextlib.suppress(OSError), open(f"{self.state}/serve/leavings/{name}", encoding="utf-8", errors="replace") as f:
                    found.update((line.split(" ", 1)[1].rstrip("\n"), name) for line in f if line.startswith(("v1 ", "v2 ")))
        return found

    def make_room(self):
        """What sandboxes leave on purpose fills that small disk after some fifty moments, and then nobody gets anything done."""
        folder = f"{self.state}/serve/transcripts"
        for name in os.listdir(folder):
            os.unlink(f"{folder}/{name}")

    def entries(self):
        """All that is in the record."""
        folder = f"{self.state}/audit"
        text = b""
        for name in sorted(os.listdir(folder)):
            with open(f"{folder}/{name}", "rb") as f:
                text += f.read()
        return text


class Home(Place):
    """The same for whoever can mount nothing: the state folder where it always is; files that may not grow stand for a full disk."""

    def __init__(self, cloche):     # pylint: disable=super-init-not-called
        self.pid, self.mounts, self.cloche = 0, [], cloche
        self.state = f"{cloche.state}/cloche"

    def table(self):
        return []

    def end(self):
        pass

    @contextlib.contextmanager
    def full(self):
        limited = self.writers()
        for pid in limited:
            limit_files(pid, 1)
        try:
            yield
        finally:
            for pid in limited:
                limit_files(pid, resource.RLIM_INFINITY)


def limit_files(pid, n):
    with contextlib.suppress(OSError):
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (n, resource.prlimit(pid, resource.RLIMIT_FSIZE)[1]))


class Busy(threading.Thread):
    """Takes steps until it is over, whatever the daemon does meanwhile."""

    def __init__(self, over):
        super().__init__(daemon=True)
        self.over, self.broken, self.runs = over, [], 0

    def run(self):
        while not self.over.wait(0.05):
            try:
                self.step()
            except FAILS:
                continue
            except Exception as e:      # pylint: disable=broad-exception-caught
                self.broken.append(e)

    def step(self):
        raise NotImplementedError

    def got(self):
        """How much came of it."""
        return len(self.done)


class Client(Busy):
    """Makes, uses and ends sandboxes; keeps account of what it was told."""

    def __init__(self, daemon, number, over):
        super().__init__(over)
        self.box_of, self.number = Impatient(daemon), number
        self.done, self.kept = [], []

    def step(self):
        self.runs += 1
        policy = {"network": {"allow": ["ok.example.org"]}}
        if self.number == 0:
            policy = {"network": {"allow": ["api.github.com"]}, "secrets": ["token"]}
        box = self.box_of.create(name=f"c{self.number}-{self.runs}", policy=policy)
        self.kept.append(box)
        for i in range(3):
            name = f"acknowledged-{self.number}-{self.runs}-{i}-"
            if box.put(name, b"x" * 50000).ok:
                self.done.append((box.id, name))
        ran = box.exec("wc -c acknowledged-*-0-")
        if ran["exit_code"] == 0 and ran["stdout"].split()[:1] != ["50000"]:
            self.broken.append(ran)
        while len(self.kept) > 1:
            self.kept.pop(0).delete()


class Agent(Busy):
    """Does the same through cloche-adapter: MCP, and the routes of /api."""

    def __init__(self, daemon, over):
        super().__init__(over)
        self.asked, self.client, self.done, self.kept = Impatient(daemon), None, [], []

    def step(self):
        self.runs += 1
        while self.kept:
            self.asked("DELETE", f"/v1/sandboxes/{self.kept[-1]}")
            self.kept.pop()
        try:
            self.client = self.client or mcp.Client(self.asked)
            self.work(self.client)
        except FAILS:
            self.client = None      # the next adapter does not know that session
            raise

    def work(self, client):
        made = client.call("create_sandbox")
        if not made["success"]:
            return
        box, name = made["sandbox_id"], f"acknowledged-9-{self.runs}-0-"
        self.kept.append(box)
        if client.call("code_write_file", sandbox_id=box, file_path=name, content="x" * 50000)["success"]:
            self.done.append((box, name))
            ran = client.call("code_execute", sandbox_id=box, language="shell", code=f"wc -c {name}")
            if ran["success"] and ran["stdout"].split()[:1] != ["50000"]:
                self.broken.append(ran)
        assert self.asked.get("/api/sandbox/status").ok


class Coder(Busy):
    """Has code run in sandboxes of its own, some of which were made ahead."""

    def __init__(self, daemon, over):
        super().__init__(over)
        self.asked, self.done, self.right = Impatient(daemon), [], 0

    def got(self):
        return self.right

    def step(self):
        self.runs += 1
        ran = self.asked.post("/v1/execute", {"language": "python", "code": f"print({self.runs} * 2)"}).json
        if ran.get("exit_code") == 0 and ran["stdout"] != f"{self.runs * 2}\n":
            self.broken.append(ran)
        self.right += ran.get("exit_code") == 0


class Files(Busy):
    """Has a volume that outlives its sandboxes, forks them and makes templates of them: what was acknowledged is in the next one."""

    def __init__(self, daemon, over):
        super().__init__(over)
        self.box_of, self.done, self.kept, self.templates = Impatient(daemon), [], [], []
        self.written, self.right = {}, 0

    def got(self):
        return self.right

    def step(self):
        self.runs += 1
        while self.templates:
            assert self.box_of("DELETE", f"/v1/templates/{self.templates[0]}").status in (204, 200, 404)
            self.templates.pop(0)
        while self.kept:
            assert self.kept[0].delete().status in (200, 202, 204, 404, 409)
            self.kept.pop(0)
        box = self.box_of.create(name=f"v-{self.runs}", volume={"name": "files", "retention": 0})
        self.kept.append(box)
        for name, text in list(self.written.items())[-5:]:
            self.is_there(box, name, text)
        name, text = f"acknowledged-7-{self.runs}-0-", os.urandom(20).hex()
        if box.put(name, text.encode()).ok:
            self.written[name] = text
            self.done.append((box.id, name))
            self.copies(box, name, text)

    def is_there(self, box, name, text):
        read = box.read(name)
        if read.status == 404 or (read.status == 200 and read.body != text.encode()):
            self.broken.append((box.id, name, read))
        self.right += read.status == 200

    def copies(self, box, name, text):
        made = self.box_of.post(f"{box.at}/fork", {"count": 1})
        forks = made.json.get("sandboxes", []) if made.ok else []
        for record in forks:
            self.kept.append(Sandbox(self.box_of, record))
            self.is_there(self.kept[-1], name, text)
        made = self.box_of.post(f"{box.at}/snapshot", {"name": f"t-{self.runs}"})
        if made.ok:
            self.templates.append(made.json["id"])


class Attached(Busy):
    """An editor's sessions: a ticket, a session, a connection of it with a key of nobody's, its end."""

    def __init__(self, daemon, over):
        super().__init__(over)
        self.asked, self.done, self.kept, self.sessions = Impatient(daemon), [], [], 0

    def got(self):
        return self.sessions

    def step(self):
        self.runs += 1
        while self.kept:
            self.kept[0].delete()
            self.kept.pop(0)
        box = self.asked.create(name=f"e-{self.runs}")
        self.kept.append(box)
        for mode in ("write", "inspect"):
            one = attach.session(self.asked, box, mode)
            self.sessions += 1
            attach.tunnel(self.asked, box, one, attach.PEM, ANSWER)
            self.asked("DELETE", f"{box.at}/attach/sessions/{one['id']}")


class Signer(Busy):
    """Has transactions signed that the policy signs by itself; each says in the record under which name it was asked for."""

    def __init__(self, daemon, over):
        super().__init__(over)
        self.asked, self.done, self.signed = Impatient(daemon), [], {}

    def step(self):
        self.runs += 1
        name = f"acknowledged-8-{self.runs}-0-"
        answer = self.asked.post("/api/sandbox/sign", signing.body(requestId=name, value=str(self.runs)))
        if answer.status == 200 and answer.json["success"] is True:
            self.done.append(("signer", name))
            if self.signed.setdefault(answer.json["signature"], name) != name:
                self.broken.append(answer)


class Impatient(Daemon):
    """The same daemon, asked by who does not wait long."""

    def __init__(self, daemon):     # pylint: disable=super-init-not-called
        self.path = daemon.path

    def connection(self):
        made = Connection(self.path)
        made.timeout = ANSWER
        return made


class Storm:
    def __init__(self, cloche, world, seed, flags=()):
        # a store of its own: the first client has a secret
        cloche.env["XDG_DATA_HOME"] = str(cloche.home / "data")
        assert cloche("secret", "set", "token", "--binding", "github", stdin="a-value-that-is-long-enough\n").ok
        assert cloche("signer", "add", "main", stdin=signing.KEY + "\n").ok
        self.world, self.seed, self.place = world, seed, Place(cloche) if places.IS_ROOT else Home(cloche)
        self.path = cloche.home / "s"
        self.daemon = Daemon(self.place.cloche, "--audit", "required", "--listen", f"unix:{self.path}", *flags, path=self.path)
        self.place.writers = lambda: self.of("cloche-warden") + self.of("cloche-scribe")
        self.asked = Impatient(self.daemon)
        self.over = threading.Event()
        self.clients = [*(Client(self.daemon, i, self.over) for i in range(2)), Agent(self.daemon, self.over), Coder(self.daemon, self.over),
                        Signer(self.daemon, self.over), Files(self.daemon, self.over), Attached(self.daemon, self.over)]
        self.hit = {}
        self.done, self.ends, self.slowest = {}, 0, {"answer": 0, "end": 0, "gone": 0, "start": 0}
        self.log, self.seen, self.unmet, self.before, self.recent = [], {}, set(KINDS), {}, {}
        for client in self.clients:
            client.start()

    # --- whom ---

    def of(self, kind):
        """Its living processes of that kind."""
        if kind == "cloche serve":
            return [self.daemon.process.pid]
        table = leaks.parents()
        below = [pid for pid in leaks.descendants(self.daemon.process.pid, table) if table[pid][1] not in "ZX"]
        if kind == "cloche-janitor":
            return [pid for pid in below if table[pid][2] == kind]
        return [pid for pid in below if table[pid][2] != "cloche-janitor" and command_of(pid) == kind]

    def victims(self, chance, kind, all_of=False):
        found = sorted(self.of(kind))
        chosen = found if all_of or not found else [chance.choice(found)]
        self.hit[kind] = self.hit.get(kind, 0) + len(chosen)
        return chosen

    # --- what ---

    def moment(self, n):
        """The moment number @n."""
        chance = random.Random(f"{self.seed}-{n}")
        deed = chance.choices([d for d, _ in DEEDS], [w for _, w in DEEDS])[0]
        kind = chance.choice(KINDS)
        pause, lasts, ask_to_end = chance.random() * 0.3, chance.random(), chance.random() < 0.12
        time.sleep(pause)
        what = f"{n}: {deed} {kind if 'disk' not in deed and 'lock' not in deed else ''}{' and the end' if ask_to_end else ''}"
        if len(self.log) % 20 == 0:
            self.before, self.recent = self.recent, {client: client.got() for client in self.clients}
        self.log.append(what)
        self.done[deed] = self.done.get(deed, 0) + 1
        self.remember(what)
        self.unmet -= {k for k in self.unmet if self.of(k)}
        with contextlib.ExitStack() as until:
            self.do(chance, deed, kind, lasts, until)
            if ask_to_end:
                self.end(what)
        self.judge(what)

    def do(self, chance, deed, kind, lasts, until):
        if deed in ("kill", "kill-two"):
            leaks.kill(self.victims(chance, kind))
            if deed == "kill-two":
                time.sleep(lasts * 0.05)
                leaks.kill(self.victims(chance, chance.choice(KINDS)))
        elif deed == "kill-all":
            leaks.kill([pid for kind in KINDS for pid in self.victims(chance, kind, True)])
        elif deed in ("stop", "stop-long", "hang"):
            self.stop(deed, self.victims(chance, kind, chance.random() < 0.2), kind, lasts)
        else:
            self.hold(chance, deed, lasts, until)

    def stop(self, deed, pids, kind, lasts):
        for pid in pids:
            signal_if(pid, signal.SIGSTOP)
        # nobody of cloche's looks after these: they are somebody else's to wake
        alone = kind in ("cloche serve", "cloche-guest", "cloche-egress", "cloche-vault", "cloche-webhook", "cloche-otlp", "cloche-signer", "cloche-starter", "cloche-janitor")
        if deed == "stop":
            time.sleep(lasts * 1.5)
        elif alone or deed == "hang":
            ends = time.monotonic() + (14 if deed == "hang" else 3) * lasts
            while time.monotonic() < ends:
                if deed == "hang":
                    for pid in pids:
                        signal_if(pid, signal.SIGSTOP)
                time.sleep(0.02)
        if deed != "stop-long" or alone:    # otherwise nobody wakes it but cloche itself
            for pid in pids:
                signal_if(pid, signal.SIGCONT)

    def hold(self, chance, deed, lasts, until):
        if deed == "disk":
            until.enter_context(self.place.full())
        elif deed == "lock-audit":
            until.enter_context(self.place.locked("audit/audit.jsonl", fcntl.flock))
        else:
            leaks.kill(self.of("cloche-warden"))
            until.enter_context(self.place.locked("serve/state.db", fcntl.lockf))
        if chance.random() < 0.5:
            time.sleep(lasts * 0.3)
            leaks.kill(self.victims(chance, chance.choice(KINDS)))
        time.sleep(lasts * (8 if chance.random() < 0.2 else 1.5))

    # --- what is to be true afterwards ---

    def answers(self):
        try:
            return all(self.asked.get(path).ok for path in ("/ready", "/v1/sandboxes", "/api/sandbox/status"))
        except (OSError, http.client.HTTPException):
            return False

    def judge(self, what):
        begun = time.monotonic()
        found = wait_for(lambda: self.daemon.process.poll() is not None or self.answers(), PATIENCE, every=0.05)
        self.note("answer", begun)
        assert found, f"{what}: the daemon neither answers nor ends\n{self.said()}"
        if self.daemon.process.poll() is not None:
            self.ended(what)
        elif len(self.log) % 15 == 0:
            self.end(what)
            self.ended(what)

    def end(self, what):
        """SIGTERM: it ends within seconds, whatever is wrong."""
        begun = time.monotonic()
        if self.daemon.process.poll() is None:
            self.daemon.process.send_signal(signal.SIGTERM)
        found = wait_for(lambda: self.daemon.process.poll() is not None, PATIENCE)
        self.note("end", begun)
        assert found, f"{what}: told to end, the daemon does not\n{self.said()}"

    def ended(self, what):
        """Nothing is left of it, and nothing of the record is lost; another one begins."""
        self.ends += 1
        begun = time.monotonic()
        gone = wait_for(lambda: not self.left(), PATIENCE, every=0.05)
        self.note("gone", begun)
        assert gone, f"{what}: left behind: {self.left()}\n{self.said()}"
        assert self.daemon.process.returncode in (0, 125, -signal.SIGKILL), (what, self.daemon.process.returncode, self.said())
        with contextlib.closing(self.daemon.process.stderr):
            self.read_record(what)
        self.place.make_room()
        self.remember(what)
        begun = time.monotonic()
        self.daemon.start()
        self.note("start", begun)
        # what no process was left to remove is removed by the next daemon
        swept = wait_for(lambda: not self.unswept(), PATIENCE, every=0.05)
        assert swept, f"{what}: cgroups are left: {self.unswept()}\n{self.said()}"
        self.seen.clear()

    def remember(self, what):
        """The cgroups that there are of our sandboxes, with the moment of each: those that were noted, and where this process has
        cgroups of its own all that is in them."""
        notes = self.place.notes()
        for path in notes.keys() | (leaks.cgroups() - self.world.watch.cgroups if leaks.OURS else set()):
            self.seen.setdefault(path, f"seen first at {what}; {'noted by ' + notes[path] if path in notes else 'not noted'}")

    def unswept(self):
        return [f"{path} ({whose})" for path, whose in self.seen.items() if os.path.isdir(path)]

    def left(self):
        leaks.reap_adopted({self.daemon.process.pid, self.place.pid})
        table = leaks.parents()
        left = [w for pid, w in leaks.descendants(table=table).items() if pid not in self.world.watch.processes and pid != self.place.pid and
                table.get(pid, (0, "X"))[1] not in "ZX" and "sleep" not in w]
        left += [f"mount {m}" for m in self.place.table() if m not in self.place.mounts]
        return left + [f"file {f}" for f in self.world.temp_files()]

    def read_record(self, what):
        verified = self.place.cloche("audit", "verify")
        assert verified.ok, f"{what}: {verified!r}\n{self.said()}"
        text = self.place.entries()
        # where the vault did not say what is to be hidden, all is
        hidden = set(re.findall(rb'"sandbox":"(\w+)"[^\n]*"path":"\[redacted\]"', text))
        # looked for once and not for each name: of a thousand moments there are too many
        there = set(re.findall(rb"acknowledged-\d+-\d+-\d+-", text))
        lost = [name for client in self.clients for box, name in client.done if name.encode() not in there and box.encode() not in hidden]
        assert not lost, f"{what}: acknowledged, and not in the record: {lost[:5]}\n{self.said()}"
        assert b'"audit_cut"' not in text, f"{what}: a crash is taken for a cut\n{self.said()}"
        for client in self.clients:
            assert not client.broken, client.broken

    def finish(self):
        self.over.set()
        for client in self.clients:
            client.join(PATIENCE)
        idle = [client for client in self.clients if client.got() == self.before.get(client, 0)]
        assert len(self.log) < 20 or not idle, f"these got nothing done in the last twenty moments or more: {idle}"
        # a kind that never lives is never killed, and would pass
        assert len(self.log) < 20 or not self.unmet, f"no moment had one of these: {self.unmet}"
        spared = [kind for kind in KINDS if not self.hit.get(kind)]
        assert len(self.log) < 200 or not spared, f"no moment hit one of these: {spared}"
        self.end("the last")
        self.ended("the last")
        self.end("who sweeps after the last")       # after it there is nothing to sweep
        gone = wait_for(lambda: not self.left(), PATIENCE, every=0.05)
        assert gone, f"the last: left behind: {self.left()}"
        assert not self.place.notes(), self.place.notes()
        self.daemon.process.stderr.close()
        self.place.end()

    def note(self, which, begun):
        took = time.monotonic() - begun
        self.slowest[which] = max(self.slowest[which], round(took, 1))

    def said(self):
        """What the daemon said last, and what was done to it."""
        stderr = self.daemon.process.stderr
        text = b""
        with contextlib.suppress(OSError, ValueError):
            os.set_blocking(stderr.fileno(), False)
            text = os.read(stderr.fileno(), 1 << 20) or b""
        return "\n".join(self.log[-8:]) + "\n" + (self.daemon.heard + text).decode("utf-8", "replace")[-6000:]


def signal_if(pid, number):
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)
