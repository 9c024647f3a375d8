"""A value that is in use is looked for in every process of the host, in files and in cores.

Neither this test nor the programs that it starts, but for the server that the value is sent to, ever hold it in clear
(helpers/hunt.py): so no process is left out of the search but those.
"""
import os
import re
import signal
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import pytest

from helpers import hunt, leaks, memory, requirement
from helpers.internet import PRELUDE
from helpers.runner import wait_for
from helpers.vaulted import BUNDLE, OK

pytestmark = [requirement("R12", "R16"), pytest.mark.root]
HUNT = Path(hunt.__file__)
PORT = 9443
OURS = ("cloche", "cloche-vault", "cloche-egress")

USE = """
def ask():
    c = ssl.create_default_context(cafile=CA).wrap_socket(socket.create_connection(('ok.example.org', 9443)),
                                                          server_hostname='ok.example.org')
    c.sendall(get('ok.example.org:9443', '/', 'Authorization: Bearer %s\\r\\nConnection: close\\r\\n' % os.environ['TOK']))
    return drain(c, 60)[:300].decode().replace('\\r\\n', ' | ').replace('\\n', ' ')
print(ask(), flush=True)
kept = os.environ['TOK'], open('/run/tok').read()
for line in sys.stdin: print(ask(), flush=True)
"""


class Hunted:
    def __init__(self, online, home, server):
        self.online, self.home, self.server = online, home, server
        self.value = hunt.new()
        self.env = {**os.environ, "XDG_DATA_HOME": str(home / "data"), "XDG_STATE_HOME": str(home / "state"),
                    "TMPDIR": str(home / "tmp")}
        for name in ("data", "state", "tmp", "project"):
            (home / name).mkdir(mode=0o700)
        done = online.bare("secret", "set", "TOK", "--host", OK, "--port", PORT, "--place", "bearer", "--env", "TOK",
                           "--from-command", "--", sys.executable, "-I", HUNT, "say", self.value, env=self.env)
        assert done.ok, done

    @contextmanager
    def running(self):
        process = self.online.popen(["/usr/bin/python3", "-I", "-S", "-c", PRELUDE.replace("/mnt/ca.pem", BUNDLE) + USE],
                                    allow=(f"{OK}:{PORT}",), env=self.env,
                                    flags=["--extra-ca", str(self.online.net.ca), "--secret", "TOK", "--secret-file", "/run/tok=TOK",
                                           "--report", str(self.home / "report.json"), "--workspace", str(self.home / "project"),
                                           "--timeout", "600s"],
                                    stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=self.home)
        try:
            first = process.stdout.readline()
            assert " 200 " in first, first
            yield process
        finally:
            process.terminate()
            process.communicate()

    def processes(self, process):
        """{name: pids} of the run's own processes."""
        out = {}
        for pid in [process.pid, *leaks.descendants(process.pid)]:
            out.setdefault(memory.name_of(pid), []).append(pid)
        return out

    def in_files(self):
        return hunt.ask("files", self.value, self.home, *[p for p in ("/var/lib/systemd/coredump", "/var/crash", "/var/log",
                                                                      "/dev/shm", "/run/log") if os.path.isdir(p)])


@pytest.fixture
def hunted(online, tmp_path):
    """The secret, and a server that is a process of its own."""
    net = online.net
    server = subprocess.Popen(["nsenter", f"--net=/proc/{os.getpid()}/fd/{net.far}", "openssl", "s_server", "-quiet", "-www",
                               "-accept", str(PORT), "-cert", net.root / "site.pem", "-key", net.root / "site.key"],
                              stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                              pass_fds=[net.far])
    try:
        yield Hunted(online, tmp_path, server)
    finally:
        server.kill()
        server.wait()


def test_the_hunt_finds_what_is_there(tmp_path):
    """In memory, in an environment, on a command line and in a file; and does not find itself."""
    value = hunt.new()
    clear = subprocess.run([sys.executable, "-I", HUNT, "say", value], capture_output=True, check=True).stdout
    assert len(clear) == 40 and clear.startswith(hunt.PREFIX)
    holder = subprocess.Popen([sys.executable, "-I", "-S", "-c", "import sys; v = sys.stdin.readline(); print('ready', flush=True); "
                               "sys.stdin.readline()"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    named = subprocess.Popen(["/bin/sleep", "600"], env={"V": clear.decode()})
    try:
        holder.stdin.write(clear + b"\n")
        holder.stdin.flush()
        assert holder.stdout.readline() == b"ready\n"
        (tmp_path / "deep").mkdir()
        (tmp_path / "deep" / "file").write_bytes(b"x" * 5000 + clear + b"y")
        seen = hunt.ask("pids", value)
        assert {str(holder.pid), str(named.pid), str(os.getpid())} <= set(seen["found"]) and seen["looked"] > 3, seen
        assert hunt.ask("files", hunt.new(), tmp_path) == {"found": [], "looked": 1}
        assert hunt.ask("files", value, tmp_path)["found"] == [str(tmp_path / "deep" / "file")]
    finally:
        for p in (holder, named):
            p.kill()
            p.communicate()


def test_the_value_is_in_no_process_but_the_vault_and_egress(hunted):
    with hunted.running() as process:
        ours = hunted.processes(process)
        assert len(ours["cloche-vault"]) == 1 and len(ours["cloche-egress"]) >= 1, ours
        for _ in range(2):
            process.stdin.write("again\n")
            process.stdin.flush()
            assert " 200 " in process.stdout.readline()
        seen = hunt.ask("pids", hunted.value, "not", hunted.server.pid)
        found = {int(pid): name for pid, name in seen["found"].items()}
        assert ours["cloche-vault"][0] in found, seen               # the search finds it where it has to be
        assert set(found) <= {*ours["cloche-vault"], *ours["cloche-egress"]}, (found, ours)
        assert seen["looked"] > 5, seen
        files = hunted.in_files()
        assert files["found"] == [] and files["looked"] > 3, files
    files = hunted.in_files()
    assert files["found"] == [] and (hunted.home / "report.json").exists(), files
    # with the run it is gone from everywhere
    assert hunt.ask("pids", hunted.value, "not", hunted.server.pid)["found"] == {}


@pytest.mark.parametrize("number", [signal.SIGSEGV, signal.SIGABRT], ids=["segv", "abrt"])
@pytest.mark.parametrize("victim", OURS)
def test_no_core_holds_it(hunted, victim, number):
    """Each of our processes dies by a fault, where cores may be as large as they like, with the value in use."""
    import resource
    soft, hard = resource.getrlimit(resource.RLIMIT_CORE)
    resource.setrlimit(resource.RLIMIT_CORE, (hard, hard))
    try:
        with hunted.running() as process:
            for pid in hunted.processes(process)[victim]:
                if victim != "cloche":      # those that may have held it make none at all
                    limits = Path(f"/proc/{pid}/limits").read_text(encoding="ascii")
                    assert re.search(r"^Max core file size +0 +0 ", limits, re.M), limits
                os.kill(pid, number)
                assert wait_for(lambda p=pid: memory.name_of(p) == "gone" or state(p) == "Z")
        files = hunted.in_files()
    finally:
        resource.setrlimit(resource.RLIMIT_CORE, (soft, hard))
    assert files["found"] == [] and files["looked"] > 2, files


def state(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as f:
            return f.read().rsplit(")", 1)[1].split()[0]
    except OSError:
        return "Z"
