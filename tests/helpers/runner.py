"""Start cloche (or a bare command) and keep all that can be known about the run."""
import errno
import fcntl
import json
import os
import re
import select
import signal
import struct
import subprocess
import termios
import time

from helpers.places import NODE, PYTHON

HANG_GUARD = 240        # seconds; generous, it only turns a hang into a failure


class Result:
    """How one command ended."""

    def __init__(self, argv, code, out, err, seconds=0.0):
        self.argv = argv
        self.code = code            # negative: the process itself died of that signal
        self.out_bytes = out
        self.err_bytes = err
        self.seconds = seconds

    @property
    def out(self):
        return self.out_bytes.decode("utf-8", "replace")

    @property
    def err(self):
        return self.err_bytes.decode("utf-8", "replace")

    @property
    def ok(self):
        return self.code == 0

    @property
    def json(self):
        """The one JSON value on stdout; anything beside it is an error."""
        return json.loads(self.out_bytes)

    @property
    def errno(self):
        """The name of the last errno that a Python or Node program complained about."""
        text = self.out + self.err
        found = re.findall(r"\[Errno (\d+)\]|\berrno=(E[A-Z0-9]+)|\bcode: '(E[A-Z0-9]+)'", text)
        if not found:
            return None
        number, name, node = found[-1]
        return name or node or errno.errorcode.get(int(number))

    def __repr__(self):
        def clip(text):
            return text if len(text) <= 4000 else text[:2000] + " [...] " + text[-2000:]
        argv = " ".join(str(a) if len(str(a)) < 300 else str(a)[:120] + " [...]" for a in self.argv)
        return f"<{clip(argv)}\n exit {self.code}\n stdout: {clip(self.out)!r}\n stderr: {clip(self.err)!r}>"


class Hung(AssertionError):
    pass


def interpreter(code, lang):
    """The words that run @code."""
    if lang == "python":
        return [PYTHON, "-I", "-S", "-c", code]
    if lang == "node":
        return [NODE, "-e", code]
    if lang == "sh":
        return ["/bin/sh", "-c", code, "sh"]
    if lang == "bash":
        return ["/bin/bash", "-c", code, "bash"]
    raise ValueError(lang)


# Words in front of a command: in a session of its own, whose terminal is its stdin.
OWN_TERMINAL = ("/usr/bin/setsid", "--ctty", "--")


def become(uid, gid):
    """Words in front of a command: as that user. subprocess's own `user` and `preexec_fn` fork the tests' process with all its memory,
    which takes 35 ms of a processor; without them it is a vfork."""
    return ["/usr/bin/setpriv", f"--reuid={uid}", f"--regid={gid}", "--clear-groups", "--"]


class Runner:
    """Starts processes as one person in one environment; remembers them so that none is left behind."""

    def __init__(self, env, cwd, person=None):
        self.env = env
        self.cwd = cwd
        self.person = person        # pwd entry to become (root only), or None
        self.started = []

    def identity(self):
        """Words in front of a command, as in become()."""
        return [] if self.person is None or os.geteuid() != 0 else become(self.person.pw_uid, self.person.pw_gid)

    def start(self, argv, *, env=None, cwd=None, bare_env=None, own_terminal=False, **popen):
        """subprocess.Popen with this runner's person and environment (@env adds, None values remove)."""
        full = dict(self.env if bare_env is None else bare_env)
        for name, value in (env or {}).items():
            if value is None:
                full.pop(name, None)
            else:
                full[name] = value
        popen.setdefault("stdin", subprocess.DEVNULL)
        popen.setdefault("stdout", subprocess.PIPE)
        popen.setdefault("stderr", subprocess.PIPE)
        words = [*self.identity(), *(OWN_TERMINAL if own_terminal else ()), *argv]
        process = subprocess.Popen([a if isinstance(a, bytes) else str(a) for a in words], env=full, cwd=str(cwd or self.cwd), **popen)
        self.started.append(process)
        return process

    def run(self, argv, *, stdin=b"", pty=False, timeout=HANG_GUARD, **start):
        if pty:
            return self.run_on_terminal(argv, stdin=stdin, timeout=timeout, **start)
        if isinstance(stdin, str):
            stdin = stdin.encode()
        handle = stdin if not isinstance(stdin, bytes) else subprocess.PIPE
        began = time.monotonic()
        process = self.start(argv, stdin=handle, **start)
        try:
            out, err = process.communicate(stdin if handle is subprocess.PIPE else None, timeout=timeout)
        except subprocess.TimeoutExpired:
            process.kill()
            out, err = collect_after_kill(process)
            raise Hung(f"no end after {timeout} s: {Result(argv, None, out, err)!r}") from None
        return Result(argv, process.returncode, out or b"", err or b"", time.monotonic() - began)

    def run_on_terminal(self, argv, *, stdin=b"", timeout=HANG_GUARD, size=(24, 80), **start):
        """The same on a pseudo-terminal: stdout and stderr are one stream (out)."""
        master, slave = os.openpty()
        try:
            fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", *size, 0, 0))
            began = time.monotonic()
            process = self.start(argv, stdin=slave, stdout=slave, stderr=slave, own_terminal=True, **start)
            os.close(slave)
            slave = -1
            if stdin:
                os.write(master, stdin if isinstance(stdin, bytes) else stdin.encode())
            out = drain_terminal(master, process, began + timeout)
            return Result(argv, process.wait(), out, b"", time.monotonic() - began)
        finally:
            os.close(master)
            if slave >= 0:
                os.close(slave)

    def finish(self):
        """End what a test left running; returns how many there were."""
        alive = [p for p in self.started if p.poll() is None]
        for process in alive:
            process.kill()
            process.wait()
        for process in self.started:
            for stream in (process.stdin, process.stdout, process.stderr):
                if stream and not stream.closed:
                    try:
                        stream.close()
                    except BrokenPipeError:
                        pass
        self.started = []
        return len(alive)


def collect_after_kill(process):
    try:
        return process.communicate(timeout=5)
    except subprocess.TimeoutExpired:
        return b"", b"(its pipes are still held by a survivor)"


def drain_terminal(master, process, deadline):
    out = bytearray()
    while True:
        if time.monotonic() > deadline:
            process.kill()
            process.wait()
            raise Hung(f"no end of terminal session: {bytes(out)!r}")
        ready, _, _ = select.select([master], [], [], 0.05)
        if ready:
            try:
                chunk = os.read(master, 65536)
            except OSError as e:        # EIO: the last holder of the slave has gone
                if e.errno != errno.EIO:
                    raise
                return bytes(out)
            if not chunk:
                return bytes(out)
            out += chunk


class Cloche(Runner):
    """cloche("run", "--", "true") → Result"""

    def __init__(self, binary, env, cwd, person=None, before=()):
        super().__init__(env, cwd, person)
        self.binary = binary
        self.before = list(before)      # words put before the binary (deny ... --)

    def argv(self, *words):
        return [*self.before, str(self.binary), *words]

    def __call__(self, *words, **kw):
        return self.run(self.argv(*words), **kw)

    def popen(self, *words, **kw):
        return self.start(self.argv(*words), **kw)

    def behind(self, *words):
        """The same cloche started through another program: behind("deny", "landlock...", "--")."""
        other = Cloche(self.binary, self.env, self.cwd, self.person, [*words, *self.before])
        other.started = self.started
        return other

    def sandbox(self, code, lang="python", *, flags=(), args=(), verb="run", **kw):
        return self(verb, *flags, "--", *interpreter(code, lang), *args, **kw)


LIMIT_KEYS = {"memory": "memory_bytes", "cpu": "cpu_milli", "pids": "pids", "disk": "disk_bytes", "time": "time_ms",
              "output": "output_bytes", "nofile": "open_files"}


def limit_of(report, name):
    """{"limit": N|None, "enforced_by": ...} of one limit in a report."""
    return report["limits"][LIMIT_KEYS[name]]


def wait_for(condition, seconds=60, every=None):
    """Poll until @condition() is true, @every seconds: else every 10 ms, and of a long wait every 50 ms, for to look is work (most ask a
    daemon). Not a timing assertion: the limit only ends a hang."""
    deadline = time.monotonic() + seconds
    pause = 0.01 if every is None else every
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > deadline:
            return value
        time.sleep(pause)
        if every is None:
            pause = min(pause * 1.2, 0.05)


def signal_name(number):
    return signal.Signals(number).name
