"""Hostile project folders: what an agent (or a repository) may leave where cloche will look next time."""
import os
import signal
import socket
import subprocess

from helpers.places import PYTHON

# Names below a project that cloche looks at, protects or mounts over.
TOUCHED = [".git", ".git/hooks", ".git/config", ".vscode", ".idea", ".claude", ".claude/commands", ".claude/agents",
           ".gitconfig", ".gitmodules", ".bashrc", ".bash_profile", ".zshrc", ".zprofile", ".profile", ".ripgreprc",
           ".mcp.json", "script.py"]


def make_socket(path):
    """A dead unix socket; bind by a short relative name, since sun_path is small."""
    here = os.getcwd()
    os.chdir(os.path.dirname(path))
    try:
        with socket.socket(socket.AF_UNIX) as s:
            s.bind(os.path.basename(path))
    finally:
        os.chdir(here)


# kind → how to put it at a path; @target is a directory of the host that must stay out of reach
KINDS = {
    "symlink to a host directory": lambda path, target: os.symlink(target, path),
    "symlink to a host file": lambda path, target: os.symlink(target / "secret", path),
    "symlink to /etc": lambda path, target: os.symlink("/etc", path),
    "symlink to /": lambda path, target: os.symlink("/", path),
    "symlink to /proc/self/root": lambda path, target: os.symlink("/proc/self/root", path),
    "symlink upwards": lambda path, target: os.symlink("../" * 30 + str(target).lstrip("/"), path),
    "symlink to itself": lambda path, target: os.symlink(path.name, path),
    "dangling symlink": lambda path, target: os.symlink(target / "not-there-yet", path),
    "fifo": lambda path, target: os.mkfifo(path),
    "socket": lambda path, target: make_socket(str(path)),
    "directory": lambda path, target: path.mkdir(),
    "empty file": lambda path, target: path.touch(),
    "unreadable directory": lambda path, target: path.mkdir(mode=0),
    "unreadable file": lambda path, target: (path.touch(), path.chmod(0)),
    "hard link to a host file": lambda path, target: os.link(target / "linked", path),
}

EXCHANGER = """
import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True)
a, b = os.fsencode(sys.argv[1]), os.fsencode(sys.argv[2])
print("racing", flush=True)
while True:
    for _ in range(200):
        libc.renameat2(-100, a, -100, b, 2)      # RENAME_EXCHANGE
"""


class Exchanger:
    """Swaps two paths as fast as it can, until the block ends. It can only be an attacker who may rename there."""

    def __init__(self, runner, one, other):
        self.runner, self.paths = runner, (one, other)

    def __enter__(self):
        self.process = self.runner.start([PYTHON, "-I", "-S", "-c", EXCHANGER, *self.paths], stdout=subprocess.PIPE)
        assert self.process.stdout.readline() == b"racing\n"
        return self

    def __exit__(self, *_):
        alive = self.process.poll() is None
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()
        assert alive, "the racing renamer had died: the race was not tried"
