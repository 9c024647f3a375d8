"""Podman for tests, as root or as an ordinary user: its own folders and cgroup parent, and the image that dockerd gets too."""
import contextlib
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from helpers.dockerd import remove_cgroups, unmount_below, write_image
from helpers.runner import wait_for

PODMAN = "/usr/bin/podman"
IMAGE = "localhost/cloche-test-base:1"
# whoever may not raise limits can give containers none of Podman's own
LIMITS = ["--ulimit", "nofile=1024:1024", "--ulimit", "nproc=1000:1000"]
FIRST_ID, IDS = 100000, 65536
# with ids for the account, which /etc/subuid need not have: seen by nobody else
AS_ACCOUNT = ('mount --bind "$1" /etc/subuid; mount --bind "$1" /etc/subgid; u=$2; g=$3; shift 3; cd /; '
              'exec setpriv --reuid "$u" --regid "$g" --clear-groups "$@"')


def lacks(rootless):
    """The first program that is missing, or None."""
    needed = ["podman", "runc", *(["newuidmap", "fuse-overlayfs"] if rootless else [])]
    return next((name for name in needed if shutil.which(name) is None), None)


class Podman:
    def __init__(self, account=None):
        """@account: of pwd, who is no root; None is root."""
        self.root = Path(tempfile.mkdtemp(prefix="ct-podman-", dir="/tmp"))
        self.root.chmod(0o755)
        self.account = account
        for name in ("home", "run", "tmp", "store"):
            (self.root / name).mkdir()
            if account is not None:
                shutil.chown(self.root / name, account.pw_uid, account.pw_gid)
        self.env = {"PATH": "/usr/bin:/bin:/usr/sbin:/sbin", "HOME": str(self.root / "home"), "XDG_RUNTIME_DIR": str(self.root / "run")}
        if account is not None:
            (self.root / "ids").write_text(f"{account.pw_name}:{FIRST_ID}:{IDS}\n", "ascii")

    def words(self, *words):
        words = [PODMAN, "--root", self.root / "store", "--runroot", self.root / "run", "--tmpdir", self.root / "tmp",
                 "--cgroup-manager", "cgroupfs", "--events-backend", "none", "--runtime", "runc", *words]
        if self.account is not None:
            words = ["unshare", "-m", "sh", "-c", AS_ACCOUNT, "sh", self.root / "ids", self.account.pw_uid, self.account.pw_gid, *words]
        return list(map(str, words))

    def podman(self, *words):
        return subprocess.run(self.words(*words), capture_output=True, text=True, check=False, timeout=240, stdin=subprocess.DEVNULL,
                              cwd="/", env=self.env)

    @contextlib.contextmanager
    def service(self):
        """The Docker Engine API on a unix socket, as DOCKER_HOST says it."""
        where = self.root / "socket"
        with (self.root / "log").open("wb") as log, subprocess.Popen(
                self.words("system", "service", "--time", "0", f"unix://{where}"), stdout=log, stderr=log, stdin=subprocess.DEVNULL,
                cwd="/", env=self.env) as served:
            try:
                wait_for(lambda: where.exists() or served.poll() is not None)
                yield f"unix://{where}"
            finally:
                served.terminate()
                served.wait(60)

    def make_image(self, programs):
        """None, or why there is none."""
        write_image(self.root / "image.tar", programs)
        made = self.podman("import", self.root / "image.tar", IMAGE)
        if made.returncode == 0:
            made = self.run([], ["/usr/bin/true"])
        return None if made.returncode == 0 else made.stderr.strip()[-300:]

    def outside(self, uid):
        """Who @uid of a container is out here."""
        return uid if self.account is None else FIRST_ID + uid - 1 if uid else self.account.pw_uid

    def run(self, words, command):
        parent = ["--cgroup-parent", self.root.name] if self.account is None else []
        return self.podman("run", "--rm", "--network", "none", *LIMITS, *parent, *words, IMAGE, *command)

    def end(self):
        self.podman("rm", "--all", "--force")
        self.podman("rmi", "--all", "--force")
        if self.account is not None:
            self.podman("unshare", "rm", "-rf", self.root / "store", self.root / "home")
        # a process that keeps the user namespace of an ordinary user
        for file in self.root.rglob("pause.pid"):
            with contextlib.suppress(OSError, ValueError):
                os.kill(int(file.read_text("ascii")), 9)
        unmount_below(self.root)
        remove_cgroups(self.root.name)
        shutil.rmtree(self.root, ignore_errors=True)
