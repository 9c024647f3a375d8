"""cloche serve, and a client that speaks HTTP over its socket."""
import contextlib
import http.client
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import types
from urllib.parse import quote

import pytest

from helpers import leaks, places
from helpers.runner import HANG_GUARD, wait_for


class Connection(http.client.HTTPConnection):
    """http.client over a unix socket."""

    def __init__(self, path):
        super().__init__("localhost", timeout=HANG_GUARD)
        self.path = str(path)

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        # an address of a socket has at most 107 bytes, which a test's folder stays below
        self.sock.connect(self.path)


class TcpConnection(http.client.HTTPConnection):
    """http.client over TCP, with TLS when there is a context; @name is what it asks for (Host, SNI)."""

    def __init__(self, address, context=None, name=None):
        super().__init__(address[0], address[1], timeout=HANG_GUARD)
        self.context, self.name = context, name

    def connect(self):
        self.sock = socket.create_connection((self.host, self.port), self.timeout)
        if self.context is not None:
            self.sock = self.context.wrap_socket(self.sock, server_hostname=self.name)


class Answer:
    def __init__(self, response):
        self.status = response.status
        self.headers = dict(response.getheaders())
        self.body = response.read()

    @property
    def json(self):
        return json.loads(self.body)

    @property
    def ok(self):
        return 200 <= self.status < 300

    def __repr__(self):
        return f"<{self.status} {self.body[:2000]!r}>"


def with_curl(cloche):
    """Flags of a daemon whose sandboxes have curl, which they have not by themselves."""
    settings = cloche.home / "with-curl.yaml"
    settings.write_text("with: [curl]\n", encoding="utf-8")
    return "--settings", str(settings)


class Daemon:
    """One cloche serve of a test's own; `cloche` is the fixture. @gate: a file of rules, "off", or None for the built-in ones;
    @tcp: it listens on a port of 127.0.0.1 too."""

    def __init__(self, cloche, *flags, path=None, gate="off", tcp=False):
        self.cloche = cloche
        self.path = path or cloche.state / "cloche" / "serve" / "api.sock"
        self.flags = flags if gate is None else ("--gate", str(gate), *flags)
        if tcp:
            self.flags += ("--listen", f"unix:{self.path}", "--listen", "tcp:127.0.0.1:0")
        self.process = None
        self.log = ""
        self.start()

    def start(self):
        # without a buffer: communicate() would not know what is in it
        self.process = self.cloche.popen("serve", *self.flags, stderr=subprocess.PIPE, bufsize=0)
        self.heard = b""
        self.hear(b"serving on")
        return self

    def stop(self, patience=HANG_GUARD):
        """SIGTERM; the exit code."""
        if self.process.poll() is None:
            self.process.terminate()
        _, err = self.process.communicate(timeout=patience)
        self.log = (self.heard + err).decode("utf-8", "replace")
        return self.process.returncode

    def kill(self):
        self.process.kill()
        self.process.communicate()

    def connection(self):
        return Connection(self.path)

    def credential(self):
        """Headers: an owner needs none."""
        return {}

    def addresses(self):
        """[(host, port)] of its TCP sockets."""
        found = re.findall(r"tcp:(?:\[(\S+?)\]|([\d.]+)):(\d+)", self.heard.decode())
        return [(six or four, int(port)) for six, four, port in found]

    def token(self, role="operator"):
        made = self.post("/v1/tokens", {"role": role})
        assert made.status == 201, made
        return made.json["token"]

    def remote(self, token=None, address=None, context=None, name=None):
        """The same daemon, asked over TCP."""
        return Remote(self, address or self.addresses()[0], token, context, name)

    def reload(self):
        """SIGHUP, until what it says of it has come: the lines."""
        self.process.send_signal(signal.SIGHUP)
        return self.hear(b"was read again", b"configuration stays")

    def hear(self, *ends):
        lines = b""
        while not any(end in lines for end in ends):
            line = self.process.stderr.readline()
            assert line, f"cloche serve ended: {self.process.wait()} {lines!r}"
            lines += line
        self.heard += lines
        return lines.decode()

    def __call__(self, method, path, body=None, headers=None):
        """One request on a connection of its own. @body: bytes, a generator of such, or what becomes JSON."""
        if body is not None and not isinstance(body, (bytes, types.GeneratorType)):
            body = json.dumps(body).encode()
        c = self.connection()
        try:
            try:
                c.request(method, path, body=body, headers=headers or {})
            except BrokenPipeError:     # refused before the body was through; why is there to be read
                pass
            return Answer(c.getresponse())
        finally:
            c.close()

    def get(self, path):
        return self("GET", path)

    def post(self, path, body=None):
        return self("POST", path, body)

    def create(self, **members):
        made = self.post("/v1/sandboxes", members)
        assert made.status == 201, made
        return Sandbox(self, made.json)

    def state(self, which):
        return self.get(f"/v1/sandboxes/{which}").json["state"]

    def processes(self, name):
        """Living processes of that name (the first word of their command line, without folders) below this daemon."""
        return [pid for pid, (_, state, its) in leaks.family(self.process.pid).items() if state not in "ZX" and
                its != "cloche-janitor" and command_of(pid) == name]

    def running(self, name):
        """The same, when there is one: a process has its name a moment after it was begun."""
        assert wait_for(lambda: self.processes(name), 60), f"no {name}"
        return self.processes(name)

    def only(self, name):
        """The one. What another of our processes begins has its maker's name until it executes its program."""
        assert wait_for(lambda: len(self.processes(name)) == 1, 60), (name, self.processes(name))
        return self.processes(name)[0]


@contextlib.contextmanager
def other_adapter(cloche, world, name):
    """With it tests/lib/NAME is the adapter of daemons that @cloche starts: the programs are laid out as in the build tree."""
    own = cloche.binary
    adapter = places.find_beside(own, f"tests/lib/{name}")
    if adapter is None:
        pytest.skip(f"{name} is not built")
    tree = world.root / "tree"
    (tree / "cli").mkdir(parents=True)
    (tree / "adapters").mkdir()
    for folder in own.parents[1].iterdir():
        if folder.is_dir() and folder.name not in ("cli", "adapters"):
            (tree / folder.name).symlink_to(folder)
    shutil.copy2(own, tree / "cli" / "cloche")
    shutil.copy2(adapter, tree / "adapters" / "cloche-adapter")
    cloche.binary = tree / "cli" / "cloche"
    yield
    cloche.binary = own


def answers(daemon, seconds=60):
    """Whether it answers again, as it does after one of its processes has died."""
    def asked():
        try:
            return daemon.get("/v1/sandboxes").ok
        except (OSError, http.client.HTTPException):
            return False
    return wait_for(asked, seconds)


def kill_one(daemon, name, of=1):
    """SIGKILL to one of its processes, of which there are that many, until it is gone: its pid."""
    # one may have a child of its own name for a moment
    pid = wait_for(lambda: found if len(found := daemon.processes(name)) == of else None)[0]
    os.kill(pid, signal.SIGKILL)
    assert wait_for(lambda: pid not in daemon.processes(name))
    return pid


def restart(daemon, name="cloche-warden"):
    """The same, until the next one is there and the daemon answers again."""
    kill_one(daemon, name)
    assert wait_for(lambda: daemon.processes(name)) and answers(daemon)


def ticks(pid):
    """Seconds on a processor, not on the clock."""
    with open(f"/proc/{pid}/stat", encoding="utf-8") as f:
        user, system = f.read().rsplit(")", 1)[1].split()[11:13]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


def status_of(pid):
    """What /proc says of it, by name."""
    with open(f"/proc/{pid}/status", encoding="utf-8") as f:
        return dict(line.rstrip("\n").split(":\t", 1) for line in f if ":\t" in line)


def resident(pid):
    """KiB of memory."""
    with open(f"/proc/{pid}/status", encoding="utf-8") as f:
        return int(next(line for line in f if line.startswith("VmRSS")).split()[1])


def is_sanitized(daemon):
    """Its figures of memory say nothing."""
    return places.is_sanitized(daemon.cloche.binary)


def command_of(pid):
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as f:
            return f.read().split(b"\0")[0].decode("utf-8", "replace").rsplit("/", 1)[-1]
    except OSError:
        return ""


class Remote(Daemon):
    """Asks a daemon that another object started."""

    def __init__(self, daemon, address, token, context, name):      # pylint: disable=super-init-not-called
        self.daemon, self.address, self.secret, self.context, self.name = daemon, address, token, context, name

    def connection(self):
        return TcpConnection(self.address, self.context, self.name)

    def __call__(self, method, path, body=None, headers=None):
        return super().__call__(method, path, body, {**self.credential(), **(headers or {})})

    def credential(self):
        return {"Authorization": f"Bearer {self.secret}"} if self.secret else {}


# Connects as whoever it runs as, as often as it is asked to, and hands the connections over. They stay its own for the daemon, which
# looks at the process that connected.
DOOR = """
import socket, sys
asked = socket.socket(fileno=0)
while asked.recv(1):
    made = socket.socket(socket.AF_UNIX)
    try: made.connect(sys.argv[1])
    except OSError as e: asked.send(b'%d' % e.errno)
    else: socket.send_fds(asked, [b'0'], [made.fileno()])
    made.close()
"""


class OthersDaemon(Daemon):
    """The same for another user's daemon: it answers nobody else, so that user connects."""

    door = None

    def words(self):
        """In front of who connects."""
        return []

    def connection(self):
        if self.door is None:
            self.door, its = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            with its:
                self.keeper = self.cloche.start([*self.words(), places.PYTHON, "-I", "-S", "-c", DOOR, self.path], stdin=its)
        return OthersConnection(self.door)

    def stop(self, patience=HANG_GUARD):
        self.shut()
        return super().stop(patience)

    def kill(self):
        self.shut()
        super().kill()

    def shut(self):
        if self.door is not None:
            self.door.close()
            self.door = None
            self.keeper.communicate(timeout=HANG_GUARD)


class OthersConnection(http.client.HTTPConnection):
    """@door: the other user's process that connects."""

    def __init__(self, door):
        super().__init__("localhost", timeout=HANG_GUARD)
        self.door = door

    def connect(self):
        self.door.send(b"x")
        said, fds, _, _ = socket.recv_fds(self.door, 16, 1)
        if not fds:
            raise OSError(int(said or b"0"), "the other user cannot connect")
        self.sock = socket.socket(fileno=fds[0])
        self.sock.settimeout(self.timeout)


class Sandbox:
    def __init__(self, daemon, record):
        self.daemon = daemon
        self.record = record
        self.id = record["id"]
        self.at = f"/v1/sandboxes/{self.id}"

    def exec(self, command, **members):
        """The result of a command that ran."""
        answer = self.daemon.post(f"{self.at}/exec", {"command": command, **members})
        assert answer.status == 200, answer
        return answer.json

    def file(self, path):
        return f"{self.at}/files/{quote(path)}"

    def put(self, path, data, query=""):
        return self.daemon("PUT", self.file(path) + query, data)

    def read(self, path):
        return self.daemon.get(self.file(path))

    def show(self):
        return self.daemon.get(self.at).json

    def delete(self):
        return self.daemon("DELETE", self.at)

    def wait_for(self, state, seconds=60):
        return wait_for(lambda: self.show()["state"] == state, seconds)

    def stream(self, command, **members):
        """A command whose output comes as events: an iterator of (event, data); close() ends it early."""
        return Stream(self, {"command": command, **members})


UPLOAD_SEEN = 1 << 20       # so much of a body comes before its upload begins, or all of it


class Upload:
    """A PUT whose body comes later."""

    def __init__(self, box, name, total, query="", chunked=False):
        self.connection = box.daemon.connection()
        self.connection.putrequest("PUT", box.file(name) + query)
        self.chunked = chunked
        length = ("Transfer-Encoding", "chunked") if chunked else ("Content-Length", str(total))
        for header, value in {**box.daemon.credential(), **dict([length])}.items():
            self.connection.putheader(header, value)
        self.connection.endheaders()

    def send(self, data):
        if data:
            self.connection.send(b"%x\r\n%s\r\n" % (len(data), data) if self.chunked else data)
        return self

    def end(self):
        if self.chunked:
            self.connection.send(b"0\r\n\r\n")
        return self.status()

    def status(self):
        answer = self.connection.getresponse()
        body = answer.read()
        self.connection.close()
        return answer.status, json.loads(body).get("code")

    def break_off(self):
        self.connection.close()


class Stream:
    def __init__(self, sandbox, body):
        self.connection = sandbox.daemon.connection()
        self.connection.request("POST", f"{sandbox.at}/exec", json.dumps(body), {"Accept": "text/event-stream", **sandbox.daemon.credential()})
        self.response = self.connection.getresponse()
        assert self.response.status == 200, self.response.read()
        assert self.response.getheader("Content-Type") == "text/event-stream"

    def __iter__(self):
        return self

    def __next__(self):
        name = self.response.readline().decode()
        if not name:
            raise StopIteration
        data = self.response.readline().decode()
        assert name.startswith("event: ") and data.startswith("data: ") and self.response.readline() == b"\n", (name, data)
        return name[7:].rstrip("\n"), json.loads(data[6:])

    def close(self):
        self.connection.close()


class Caller(Daemon):
    """The same daemon, asked with a credential."""

    def __init__(self, daemon, **headers):  # pylint: disable=super-init-not-called
        self.path = daemon.path
        self.headers = {k.replace("_", "-"): v for k, v in headers.items()}

    def credential(self):
        return self.headers

    def __call__(self, method, path, body=None, headers=None):
        return super().__call__(method, path, body, {**self.headers, **(headers or {})})


def token(daemon, role, **members):
    made = daemon.post("/v1/tokens", {"role": role, **members})
    assert made.status == 201, made
    return made.json


def caller(daemon, role, **members):
    return Caller(daemon, Authorization="Bearer " + token(daemon, role, **members)["token"])
