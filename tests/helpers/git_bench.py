"""A project with git on the host's side and a sandbox on the other: what a run leaves, the owner's git then meets."""
import shlex

from . import places
from .runner import Cloche, Runner


class Bench:
    """A project, git on the host's side, and the sandbox in one of its modes."""

    def __init__(self, cloche, command, way):
        self.cloche, self.way = cloche, way
        self.project = cloche.project / "work"
        self.mark = cloche.home / "ran"
        self.command = command
        self.run = cloche.home / "evil"
        self.command(["sh", "-c", f"mkdir {self.project}; printf '#!/bin/sh\\ntouch {self.mark}\\n' > {self.run}; "
                      f"chmod 755 {self.run}"])

    def host(self, script, cwd=None, check=True):
        """A shell script by the owner, on the host."""
        env = {"GIT_CONFIG_NOSYSTEM": "1", "GIT_AUTHOR_NAME": "o", "GIT_AUTHOR_EMAIL": "o@o", "GIT_COMMITTER_NAME": "o",
               "GIT_COMMITTER_EMAIL": "o@o", "GIT_EDITOR": "true", "GIT_TERMINAL_PROMPT": "0"}
        return self.command(["sh", "-ec" if check else "-c", script], cwd=cwd or self.project, env=env, check=check)

    def inside(self, script, sub="", flags=()):
        """The same by the sandbox, in @sub of the project, which is all that it may write to."""
        tree = self.project / sub
        script = ("export HOME=/tmp GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@a GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@a "
                  f"GIT_EDITOR=true EVIL={shlex.quote(str(self.run))} P=$PWD/.p; export EVIL\n"
                  f"printf '#!/bin/sh\\ntouch {self.mark}\\n' > .p; chmod 755 .p\n{script}")
        sh = ["--", "sh", "-c", script]
        if self.way == "bare":
            return self.command(["sh", "-c", script], cwd=tree, check=False)
        if self.way == "standard":
            return self.cloche("run", *flags, "--workspace", f"{tree}:rw", *sh)
        if self.way == "light":
            return self.cloche("run", "--mode", "light", *flags, "--workspace", f"{tree}:rw", *sh, cwd=tree)
        if self.way == "host view":
            return self.cloche("run", "--view", "host", *flags, "--allow-write", tree, *sh, cwd=tree)
        if self.way == "shell":
            return self.cloche("shell", *flags, "--workspace", f"{tree}:rw", stdin=script + "\nexit $?\n")
        return self.cloche("code", "--language", "shell", *flags, "--workspace", f"{tree}:rw", "-", stdin=script)

    def ran(self):
        return self.mark.exists()


def make_bench(world, cloche, way, who="self"):
    """A Bench for @way; light mode, and @who "ordinary", as an ordinary user where root runs the tests."""
    ordinary = (who == "ordinary" or way == "light") and places.IS_ROOT
    runner = world.runner(Cloche, who, places.ordinary_user()) if ordinary else cloche
    host = Runner(runner.env, runner.home, runner.person)
    world.runners.append(host)
    host.tmp = runner.tmp

    def command(argv, check=True, **kw):
        result = host.run(argv, **kw)
        assert not check or result.ok, result
        return result
    return Bench(runner, command, way)


def config():
    """Shell: print a configuration that runs $EVIL."""
    return "printf '[core]\\n\\trepositoryformatversion = 0\\n\\tbare = false\\n\\tfsmonitor = %s\\n' \"$EVIL\""


REPO = "git init -q -b main .; echo a > a; git add a; git commit -qm one; "
HEAD = "printf 'ref: refs/heads/main\\n' > HEAD; "
STATUS = "git status; git status"

# Python that makes an index of git's by hand, with paths that git itself would put in none. Each is the file WHAT.
INDEX_PYTHON = """
import hashlib, struct, subprocess
VERSION, WHAT = 2, b''
def entry(path, oid, prev):
    head = struct.pack('>10I', 0, 0, 0, 0, 0, 0, 0o100755, 0, 0, 0) + bytes.fromhex(oid) + struct.pack('>H', len(path))
    if VERSION < 4:
        return head + path + bytes(8 - (len(head) + len(path)) % 8)
    strip = len(prev)
    return head + bytes([strip] if strip < 128 else [(strip >> 7) - 1 | 128, strip & 127]) + path + bytes(1)
def index(*paths, more=b''):
    oid = subprocess.run(['git', 'hash-object', '-w', '--stdin'], input=WHAT, stdout=subprocess.PIPE, check=True).stdout.decode().strip()
    prev, text = b'', b'DIRC' + struct.pack('>II', VERSION, len(paths))
    for path in sorted(p.encode() for p in paths):
        text += entry(path, oid, prev)
        prev = path
    return text + more + hashlib.sha1(text + more).digest()
"""
