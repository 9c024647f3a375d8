"""Every single way to a protected name that needs no luck. Prints what came into being; run in a project's directory.

Tries all, then prints one line `planted: NAMES`. Nothing is raised: where one way is closed, it is the next one's turn.
"""
import ctypes
import os
import socket
import tempfile

LIBC = ctypes.CDLL(None, use_errno=True)
EXCHANGE, NOREPLACE = 2, 1
AT_FDCWD, AT_SYMLINK_FOLLOW, AT_EMPTY_PATH = -100, 0x400, 0x1000


def attempt(way):
    try:
        return way()
    except OSError:
        return None


def create(path, dir_fd=None):
    os.close(os.open(path, os.O_CREAT | os.O_WRONLY, 0o700, dir_fd=dir_fd))


def renameat2(old, new, flags):
    number = 316 if os.uname().machine == "x86_64" else 276
    if LIBC.syscall(number, AT_FDCWD, old.encode(), AT_FDCWD, new.encode(), flags) != 0:
        raise OSError(ctypes.get_errno(), "renameat2")


def linkat(fd, path, new, flags):
    if LIBC.linkat(fd, path.encode(), AT_FDCWD, new.encode(), flags) != 0:
        raise OSError(ctypes.get_errno(), "linkat")


def bind(path):
    with socket.socket(socket.AF_UNIX) as s:
        s.bind(path)


def unnamed(name, flags):
    fd = os.open(".", os.O_TMPFILE | os.O_RDWR, 0o700)
    if flags & AT_EMPTY_PATH:
        linkat(fd, "", name, flags)
    else:
        linkat(AT_FDCWD, f"/proc/self/fd/{fd}", name, flags)


def ladder():
    """Up a ladder of directories, the last step onto .git."""
    os.makedirs("l1/l2/hooks")
    os.rename("l1/l2", "l3")
    os.rename("l1", "l4")
    os.rename("l3", ".git")


def swap_in():
    os.makedirs("s/hooks")
    os.mkdir(".git")
    renameat2("s", ".git", EXCHANGE)


def onto_empty():
    os.makedirs("e/hooks")
    attempt(lambda: os.mkdir(".git"))
    os.rename("e", ".git")


def fill_before_moving():
    os.mkdir("f")
    fd = os.open("f", os.O_RDONLY)
    os.rename("f", ".git")
    os.mkdir("hooks", dir_fd=fd)


def through_link():
    os.mkdir("real")
    os.mkdir("real/hooks")
    os.symlink("real", ".git")


def pointer_file():
    with open(".git", "w", encoding="ascii") as f:
        f.write("gitdir: real\n")


def main():
    home = os.getcwd()
    with tempfile.NamedTemporaryFile(dir=".", delete=False) as plain:
        pass
    name = os.path.basename(plain.name)
    attempt(lambda: os.mkdir(".git"))
    top = os.open(".", os.O_RDONLY)
    attempt(lambda: os.symlink(".git/hooks", "to-hooks"))
    attempt(lambda: os.symlink(".bashrc", "to-bashrc"))
    attempt(lambda: os.symlink(".", "here"))
    for target in (".bashrc", ".git/hooks", ".vscode", ".mcp.json", ".BASHRC", f"{home}/.bashrc", "here/here/.vscode",
                   "/proc/self/cwd/.bashrc", f"/proc/self/root{home}/.bashrc", f"/proc/self/fd/{top}/.idea",
                   f"/dev/fd/{top}/.vscode", f"/proc/{os.getpid()}/cwd/.mcp.json", "/proc/thread-self/cwd/.idea",
                   f"/proc/{os.getppid()}/cwd/.bashrc", "/proc/1/cwd/.bashrc", f"/proc/1/root{home}/.vscode",
                   "./.git/../.bashrc", ".//.vscode", "to-bashrc", "to-hooks"):
        for way in (lambda: create(target), lambda: os.mkdir(target), lambda: os.mkdir(target + "/"),
                    lambda: os.mkfifo(target), lambda: os.mknod(target), lambda: os.symlink(name, target),
                    lambda: os.link(name, target), lambda: os.rename(name, target), lambda: bind(target),
                    lambda: renameat2(name, target, NOREPLACE), lambda: renameat2(name, target, 0),
                    lambda: unnamed(target, AT_SYMLINK_FOLLOW), lambda: unnamed(target, AT_EMPTY_PATH),
                    lambda: create(target, dir_fd=top), lambda: os.mkdir(target, dir_fd=top)):
            attempt(way)
    for way in (ladder, swap_in, onto_empty):
        attempt(way)
    attempt(lambda: os.rename(".git", "elsewhere"))
    attempt(lambda: os.rmdir(".git"))
    for way in (through_link, pointer_file, fill_before_moving):
        attempt(way)
    found = [p for p in (".bashrc", ".git/hooks", ".vscode", ".mcp.json", ".idea", ".BASHRC") if os.path.lexists(p)]
    if os.path.lexists(".git") and (os.path.islink(".git") or not os.path.isdir(".git")):
        found.append(".git that is no directory")
    print("planted:", *found)


main()
